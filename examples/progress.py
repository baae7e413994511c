#!/usr/bin/env python3
"""Publish a topic and its progress markers, so that a monitor waits no longer than necessary.

    progress.py tcp/localhost:7447
"""
import json, sys, time, zenoh

config = zenoh.Config()
config.insert_json5("connect/endpoints", json.dumps(sys.argv[1:]))
with zenoh.open(config) as session:
    done = time.time()
    while True:
        now = time.time()
        session.put("vehicle/gear", json.dumps({"stamp": now, "report": 2}))
        # The marker: all messages of `gear` up to `now` were sent, one of them after `done`.
        session.put("vehicle/progress", json.dumps({"topic": "gear", "complete": now, "after": done, "count": 1}))
        done = now
        time.sleep(0.1)
