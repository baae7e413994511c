#!/usr/bin/env python3
"""Subscribes on Zenoh with the eclipse-zenoh package and counts.

Prints `ready` when subscribed, then the payloads (with --print), and at the end `received N`. Ends after COUNT
messages, or after QUIET seconds without a message.
"""
import argparse
import sys
import threading
import time

import zenoh.ext

from zenoh_session import open_session, session_arguments

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("key", help="key expression to subscribe to")
parser.add_argument("--count", type=int, help="end after this many messages; exit status 1 if there were fewer")
parser.add_argument("--quiet", type=float, default=10, help="seconds without a message after which to end")
parser.add_argument("--print", action="store_true", help="print every payload on a line")
parser.add_argument("--times", action="store_true", help="print the time of arrival before each payload")
parser.add_argument("--advanced", action="store_true", help="be an advanced subscriber, with recovery")
session_arguments(parser)
arguments = parser.parse_args()

received = 0
last = time.monotonic()
done = threading.Event()


def on_sample(sample):
    global received, last
    received += 1
    last = time.monotonic()
    if arguments.print:
        print(f"{time.time():.6f} " * arguments.times + sample.payload.to_string(), flush=True)
    if received == arguments.count:
        done.set()


with open_session(arguments) as session:
    if arguments.advanced:
        recovery = zenoh.ext.RecoveryConfig(heartbeat=True)
        subscriber = zenoh.ext.declare_advanced_subscriber(session, arguments.key, on_sample, recovery=recovery)
    else:
        subscriber = session.declare_subscriber(arguments.key, on_sample)
    print("ready", flush=True)
    last = time.monotonic()
    while not done.wait(0.05) and time.monotonic() - last < arguments.quiet:
        pass
    print(f"received {received}", flush=True)
sys.exit(arguments.count is not None and received != arguments.count)
