#!/usr/bin/env python3
"""Subscribes to strings on DDS with the cyclonedds package and counts.

Prints `ready` when subscribed, then the strings (with --print), and at the end `received N`. Ends after COUNT
messages, or after QUIET seconds without a message.
"""
import argparse
import sys
import time

from cyclonedds.core import ReadCondition, WaitSet, SampleState, ViewState, InstanceState
from cyclonedds.sub import DataReader
from cyclonedds.util import duration

from dds_participant import RELIABLE, open_topic, participant_arguments

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("name", help="topic to subscribe to")
parser.add_argument("--count", type=int, help="end after this many messages; exit status 1 if there were fewer")
parser.add_argument("--quiet", type=float, default=10, help="seconds without a message after which to end")
parser.add_argument("--print", action="store_true", help="print every string on a line")
parser.add_argument("--times", action="store_true", help="print the time of arrival before each string")
participant_arguments(parser)
arguments = parser.parse_args()

participant, topic, Text = open_topic(arguments)
reader = DataReader(participant, topic, qos=RELIABLE)
waitset = WaitSet(participant)
condition = ReadCondition(reader, SampleState.Any | ViewState.Any | InstanceState.Any)
waitset.attach(condition)
print("ready", flush=True)

received = 0
last = time.monotonic()
while received != arguments.count and time.monotonic() - last < arguments.quiet:
    waitset.wait(duration(milliseconds=50))
    for sample in reader.take(N=256):
        # A disposed instance comes as a sample without the string.
        if not isinstance(sample, Text):
            continue
        received += 1
        last = time.monotonic()
        if arguments.print:
            print(f"{time.time():.6f} " * arguments.times + sample.data, flush=True)
print(f"received {received}", flush=True)
sys.exit(arguments.count is not None and received != arguments.count)
