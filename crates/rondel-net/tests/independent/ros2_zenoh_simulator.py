#!/usr/bin/env python3
"""A simulation on rmw_zenoh, with eclipse-zenoh and rosbags: does what standard input says, line by line.

`clock TIME` publishes the time in seconds on /clock, `say TEXT` a std_msgs/msg/String on the topic. Prints `ready` once
there are subscriptions to both, and what it did after each line.
"""
import argparse
import os
import struct
import sys
import time

import zenoh

from ros2_session import data_key, ros2_arguments, store, token_key
from zenoh_session import open_session, session_arguments

parser = argparse.ArgumentParser(description=__doc__)
ros2_arguments(parser)
session_arguments(parser)
arguments = parser.parse_args()
clock = argparse.Namespace(**{**vars(arguments), "topic": "/clock", "type": "rosgraph_msgs/msg/Clock"})
types, gid = store.types, os.urandom(16)


class Publisher:
    def __init__(self, session, of, number, reliability):
        self.type, self.sequence = of.type, 0
        self.inner = session.declare_publisher(data_key(of), reliability=reliability)
        self.token = session.liveliness().declare_token(token_key(session, "MP", of, number))

    def publish(self, message):
        self.sequence += 1
        attachment = struct.pack("<qqB", self.sequence, time.time_ns(), 16) + gid
        self.inner.put(bytes(store.serialize_cdr(message, self.type)), attachment=attachment)


with open_session(arguments) as session:
    node = session.liveliness().declare_token(token_key(session, "NN", arguments))
    clocks = Publisher(session, clock, 1, zenoh.Reliability.BEST_EFFORT)
    texts = Publisher(session, arguments, 2, zenoh.Reliability.RELIABLE)
    deadline = time.monotonic() + 30
    while not (clocks.inner.matching_status.matching and texts.inner.matching_status.matching):
        if time.monotonic() > deadline:
            sys.exit("no subscriptions")
        time.sleep(0.01)
    print("ready", flush=True)
    for line in sys.stdin:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "clock":
            nanos = round(float(rest) * 1e9)
            stamp = types["builtin_interfaces/msg/Time"](sec=nanos // 10**9, nanosec=nanos % 10**9)
            clocks.publish(types["rosgraph_msgs/msg/Clock"](clock=stamp))
        else:
            texts.publish(types["std_msgs/msg/String"](data=rest))
        print(line, end="", flush=True)
