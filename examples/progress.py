#!/usr/bin/env python3
"""A publisher that says how far it is: what it sends on vehicle/gear needs no waiting for (pip install eclipse-zenoh)."""
import json
import time

import zenoh

with zenoh.open(zenoh.Config()) as session:
    done, gear = time.time(), 1
    while True:
        now = time.time()
        session.put("vehicle/gear", json.dumps({"stamp": now, "report": gear}))
        # All messages of the topic `gear` with times up to `now` are sent; the one since `done` is one.
        session.put("vehicle/progress", json.dumps({"topic": "gear", "complete": now, "after": done, "count": 1}))
        done = now
        time.sleep(0.1)
