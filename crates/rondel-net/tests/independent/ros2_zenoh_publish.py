#!/usr/bin/env python3
"""Publishes std_msgs/msg/String in rmw_zenoh's format, with eclipse-zenoh for the network and rosbags for CDR and hashes.

Publishes `n 0`, `n 1` … Prints `early N` after the messages before any subscription, `sent N` at the end.
"""
import argparse
import os
import struct
import sys
import time

import zenoh
import zenoh.ext

from ros2_session import data_key, ros2_arguments, store, token_key
from zenoh_session import open_session, session_arguments

parser = argparse.ArgumentParser(description=__doc__)
ros2_arguments(parser)
parser.add_argument("--early", type=int, default=0, help="publish this many messages without a subscription")
parser.add_argument("--count", type=int, default=10, help="publish this many messages with one")
parser.add_argument("--lose", type=int, nargs="*", default=[], help="numbers of messages that are not sent")
parser.add_argument("--attachment", choices=["good", "named", "none", "short"], default="good")
parser.add_argument("--wait-for-line", action="store_true", help="publish them after a line on standard input")
parser.add_argument("--stay", action="store_true", help="stay until standard input ends")
session_arguments(parser)
arguments = parser.parse_args()

gid = os.urandom(16)
sequence = 0


def attachment():
    number, at = struct.pack("<q", sequence), struct.pack("<q", 1_700_000_000_000_000_000 + sequence)
    if arguments.attachment == "named":
        return b"\x0fsequence_number" + number + b"\x10source_timestamp" + at + b"\x0asource_gid\x10" + gid
    whole = number + at + b"\x10" + gid
    return {"good": whole, "short": whole[:-1], "none": None}[arguments.attachment]


def publish(publisher, text):
    global sequence
    sequence += 1
    if sequence in arguments.lose:
        return
    message = store.types["std_msgs/msg/String"](data=text)
    payload = bytes(store.serialize_cdr(message, "std_msgs/msg/String"))
    publisher.put(payload, attachment=attachment())


with open_session(arguments) as session:
    key = data_key(arguments)
    settings = {
        "congestion_control": zenoh.CongestionControl.BLOCK,
        "reliability": zenoh.Reliability.RELIABLE,
    }
    if arguments.keep:
        # As rmw_zenoh does with the durability transient_local.
        settings["cache"] = zenoh.ext.CacheConfig(max_samples=arguments.keep)
        settings["sample_miss_detection"] = zenoh.ext.MissDetectionConfig()
        settings["publisher_detection"] = True
        publisher = zenoh.ext.declare_advanced_publisher(session, key, **settings)
    else:
        publisher = session.declare_publisher(key, **settings)
    plain = session.declare_publisher(key)
    tokens = [session.liveliness().declare_token(token_key(session, kind, arguments)) for kind in ("NN", "MP")]
    for i in range(arguments.early):
        publish(publisher, f"n {i}")
    print(f"early {arguments.early}", flush=True)
    if arguments.wait_for_line:
        sys.stdin.readline()
    deadline = time.monotonic() + 30
    while arguments.count and not plain.matching_status.matching:
        if time.monotonic() > deadline:
            sys.exit(f"no subscription on {key}")
        time.sleep(0.01)
    for i in range(arguments.early, arguments.early + arguments.count):
        publish(publisher, f"n {i}")
    print(f"sent {arguments.early + arguments.count}", flush=True)
    if arguments.stay:
        sys.stdin.read()
