#!/usr/bin/env python3
"""Publishes strings on DDS with the cyclonedds package: COUNT messages, or the lines of a file.

Waits for a reader first, and for all acknowledgements at the end. Prints `sent N`.
"""
import argparse
import sys
import time

from cyclonedds.pub import DataWriter
from cyclonedds.util import duration

from dds_participant import RELIABLE, open_topic, participant_arguments, reader_count

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("name", help="topic to publish on")
what = parser.add_mutually_exclusive_group(required=True)
what.add_argument("--count", type=int, help='publish {"n": 0}, {"n": 1} … this many times')
what.add_argument("--file", help="publish the lines of this file (- for standard input)")
parser.add_argument("--rate", type=float, default=0, help="messages per second; 0 for as fast as it goes")
parser.add_argument("--timeout", type=float, default=30, help="seconds to wait for a reader, and for acknowledgements")
participant_arguments(parser)
arguments = parser.parse_args()


def payloads():
    if arguments.count is not None:
        yield from (f'{{"n": {i}}}' for i in range(arguments.count))
    else:
        with sys.stdin if arguments.file == "-" else open(arguments.file, encoding="utf-8") as lines:
            yield from (line.rstrip("\n") for line in lines)


participant, topic, Text = open_topic(arguments)
writer = DataWriter(participant, topic, qos=RELIABLE)
deadline = time.monotonic() + arguments.timeout
while not reader_count(writer):
    if time.monotonic() > deadline:
        sys.exit(f"no reader of {arguments.name} within {arguments.timeout} s")
    time.sleep(0.01)
sent = 0
start = time.monotonic()
for payload in payloads():
    writer.write(Text(data=payload))
    sent += 1
    if arguments.rate:
        time.sleep(max(0, start + sent / arguments.rate - time.monotonic()))
acknowledged = writer.wait_for_acks(duration(seconds=arguments.timeout))
print(f"sent {sent}", flush=True)
sys.exit(not acknowledged)
