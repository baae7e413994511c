#!/usr/bin/env python3
"""Prints the maximum blocking time, in nanoseconds, in the QoS of the first DDS reader discovered on a topic."""
import argparse
import sys
import time

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsSubscription
from cyclonedds.core import Policy

from dds_participant import open_topic, participant_arguments

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("name", help="the topic")
parser.add_argument("--timeout", type=float, default=30, help="seconds to wait for a reader")
participant_arguments(parser)
arguments = parser.parse_args()

participant, *_ = open_topic(arguments)
readers = BuiltinDataReader(participant, BuiltinTopicDcpsSubscription)
deadline = time.monotonic() + arguments.timeout
while time.monotonic() < deadline:
    for reader in readers.take(N=100):
        if reader.topic_name == arguments.name:
            print(reader.qos[Policy.Reliability].max_blocking_time, flush=True)
            sys.exit()
    time.sleep(0.01)
sys.exit(f"no reader of {arguments.name} within {arguments.timeout} s")
