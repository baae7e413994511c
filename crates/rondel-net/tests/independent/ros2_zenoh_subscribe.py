#!/usr/bin/env python3
"""Subscribes to std_msgs/msg/String, or another type, in rmw_zenoh's format, with eclipse-zenoh for the network and rosbags for CDR.

Prints `ready`, then a line of JSON for each message; with --graph it prints the tokens of the domain instead, once
there are so many. Ends after COUNT messages, with exit status 1 if there were fewer within 30 s.
"""
import argparse
import dataclasses
import json
import struct
import sys
import threading
import time

import zenoh.ext

from ros2_session import data_key, define, ros2_arguments, store, token_key
from zenoh_session import open_session, session_arguments

parser = argparse.ArgumentParser(description=__doc__)
ros2_arguments(parser)
parser.add_argument("--count", type=int, default=10)
parser.add_argument("--graph", type=int, help="print the tokens once there are so many besides those of this session")
session_arguments(parser)
arguments = parser.parse_args()
define(arguments)

received = 0
done = threading.Event()


def on_sample(sample):
    global received
    attached = sample.attachment.to_bytes() if sample.attachment is not None else b""
    if len(attached) != 33 or attached[16] != 16:
        # As rmw_zenoh does, which passes on no message without an attachment.
        print(json.dumps({"attachment": attached.hex()}), flush=True)
        return
    number, at = struct.unpack("<qq", attached[:16])
    message = store.deserialize_cdr(sample.payload.to_bytes(), arguments.type)
    line = {**dataclasses.asdict(message), "number": number, "time": at, "gid": attached[17:].hex(), "key": str(sample.key_expr)}
    line.pop("__msgtype__", None)
    print(json.dumps(line), flush=True)
    received += 1
    if received >= arguments.count:
        done.set()


with open_session(arguments) as session:
    if arguments.graph is not None:
        own, deadline, tokens = str(session.info.zid()), time.monotonic() + 30, []
        while len(tokens) < arguments.graph and time.monotonic() < deadline:
            replies = session.liveliness().get(f"@ros2_lv/{arguments.domain}/**", timeout=1)
            tokens = sorted(str(reply.ok.key_expr) for reply in replies if reply.ok)
            tokens = [token for token in tokens if f"/{own}/" not in token]
        print("\n".join(tokens), flush=True)
        sys.exit(len(tokens) != arguments.graph)
    key = data_key(arguments)
    if arguments.keep:
        history = zenoh.ext.HistoryConfig(detect_late_publishers=True, max_samples=arguments.keep)
        subscriber = zenoh.ext.declare_advanced_subscriber(
            session, key, on_sample, history=history, recovery=zenoh.ext.RecoveryConfig(heartbeat=True)
        )
    else:
        subscriber = session.declare_subscriber(key, on_sample)
    tokens = [session.liveliness().declare_token(token_key(session, kind, arguments)) for kind in ("NN", "MS")]
    print("ready", flush=True)
    done.wait(30)
sys.exit(received < arguments.count)
