#!/usr/bin/env python3
"""Publishes on Zenoh with the eclipse-zenoh package: COUNT messages, the lines of a file, or bytes.

Waits for a subscriber first. With --advanced it keeps the messages for subscribers that missed them. Prints `sent N` at the end.
"""
import argparse
import sys
import time

import zenoh
import zenoh.ext

from zenoh_session import open_session, session_arguments

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("key", help="key expression to publish on")
what = parser.add_mutually_exclusive_group(required=True)
what.add_argument("--count", type=int, help='publish {"n": 0}, {"n": 1} … this many times')
what.add_argument("--file", help="publish the lines of this file (- for standard input)")
what.add_argument("--hex", nargs="+", help="publish these bytes, written in hexadecimal")
parser.add_argument("--rate", type=float, default=0, help="messages per second; 0 for as fast as it goes")
parser.add_argument("--timeout", type=float, default=30, help="seconds to wait for a subscriber")
parser.add_argument("--advanced", action="store_true", help="be an advanced publisher, with a cache")
parser.add_argument("--stay", action="store_true", help="stay until standard input ends")
session_arguments(parser)
arguments = parser.parse_args()


def payloads():
    if arguments.count is not None:
        yield from (f'{{"n": {i}}}' for i in range(arguments.count))
    elif arguments.hex:
        yield from map(bytes.fromhex, arguments.hex)
    else:
        with sys.stdin if arguments.file == "-" else open(arguments.file, encoding="utf-8") as lines:
            yield from (line.rstrip("\n") for line in lines)


with open_session(arguments) as session:
    settings = {
        "congestion_control": zenoh.CongestionControl.BLOCK,
        "reliability": zenoh.Reliability.RELIABLE,
    }
    plain = publisher = session.declare_publisher(arguments.key, **settings)
    if arguments.advanced:
        settings["cache"] = zenoh.ext.CacheConfig(max_samples=100_000)
        settings["sample_miss_detection"] = zenoh.ext.MissDetectionConfig()
        publisher = zenoh.ext.declare_advanced_publisher(session, arguments.key, **settings)
    deadline = time.monotonic() + arguments.timeout
    while not plain.matching_status.matching:
        if time.monotonic() > deadline:
            sys.exit(f"no subscriber on {arguments.key} within {arguments.timeout} s")
        time.sleep(0.01)
    sent = 0
    start = time.monotonic()
    for payload in payloads():
        publisher.put(payload)
        sent += 1
        if arguments.rate:
            time.sleep(max(0, start + sent / arguments.rate - time.monotonic()))
    print(f"sent {sent}", flush=True)
    if arguments.stay:
        sys.stdin.read()
