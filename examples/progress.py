#!/usr/bin/env python3
"""Publishes a topic, and how far it is, so that nobody has to wait for it longer than needed: progress.py tcp/localhost:7447"""
import json, sys, time, zenoh

config = zenoh.Config()
config.insert_json5("connect/endpoints", json.dumps(sys.argv[1:]))
with zenoh.open(config) as session:
    done = time.time()
    while True:
        now = time.time()
        session.put("vehicle/gear", json.dumps({"stamp": now, "report": 2}))
        # All messages of `gear` up to `now` were sent; the one since `done` is one.
        session.put("vehicle/progress", json.dumps({"topic": "gear", "complete": now, "after": done, "count": 1}))
        done = now
        time.sleep(0.1)
