#!/usr/bin/env python3
"""A simulation on DDS, with the cyclonedds package: does what standard input says, line by line.

`clock TIME` publishes the time in seconds on /clock, `say TEXT` a std_msgs/msg/String on the topic. Prints `ready` once
there are readers of both, and what it did after each line.
"""
import argparse
import sys
import time
from dataclasses import dataclass

from cyclonedds.core import Policy, Qos
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import int32, uint32
from cyclonedds.pub import DataWriter
from cyclonedds.topic import Topic

from dds_participant import RELIABLE, open_topic, participant_arguments, reader_count

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("name", help="topic of the texts, by its name in DDS")
participant_arguments(parser)
arguments = parser.parse_args()


@dataclass
class Time(IdlStruct, typename="builtin_interfaces::msg::dds_::Time_"):
    sec: int32
    nanosec: uint32


@dataclass
class Clock(IdlStruct, typename="rosgraph_msgs::msg::dds_::Clock_"):
    clock: Time


participant, topic, Text = open_topic(arguments)
texts = DataWriter(participant, topic, qos=RELIABLE)
# As Gazebo's bridge does.
best_effort = Qos(Policy.Reliability.BestEffort, Policy.History.KeepLast(1))
clocks = DataWriter(participant, Topic(participant, "rt/clock", Clock), qos=best_effort)
deadline = time.monotonic() + 30
while not (reader_count(texts) and reader_count(clocks)):
    if time.monotonic() > deadline:
        sys.exit("no readers")
    time.sleep(0.01)
print("ready", flush=True)
for line in sys.stdin:
    word, _, rest = line.rstrip("\n").partition(" ")
    if word == "clock":
        nanos = round(float(rest) * 1e9)
        clocks.write(Clock(Time(nanos // 10**9, nanos % 10**9)))
    else:
        texts.write(Text(data=rest))
    print(line, end="", flush=True)
