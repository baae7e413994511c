#!/usr/bin/env python3
"""Subscribes to rondel_msgs/msg/Verdict and diagnostic_msgs/msg/DiagnosticArray on DDS with the cyclonedds package.

Prints `ready`, then a line for each message; ends when the monitor has ended, with exit status 1 if there were fewer than
COUNT verdicts, or no violation, within 30 s.
"""
import argparse
import sys
import time
from dataclasses import dataclass

from cyclonedds.core import Policy, Qos
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import float64, int32, int64, sequence, uint8, uint32
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

from dds_participant import open_participant, participant_arguments


@dataclass
class Time(IdlStruct, typename="builtin_interfaces::msg::dds_::Time_"):
    sec: int32
    nanosec: uint32


@dataclass
class KeyValue(IdlStruct, typename="diagnostic_msgs::msg::dds_::KeyValue_"):
    key: str
    value: str


@dataclass
class Verdict(IdlStruct, typename="rondel_msgs::msg::dds_::Verdict_"):
    stamp: Time
    about: Time
    property: str
    parameters: sequence[KeyValue]
    verdict: uint8
    step: int64
    severity: str
    requirement: str
    values: sequence[KeyValue]
    robustness: float64
    latency: float64
    missing: str
    evidence: str
    id: str


@dataclass
class Header(IdlStruct, typename="std_msgs::msg::dds_::Header_"):
    stamp: Time
    frame_id: str


@dataclass
class Status(IdlStruct, typename="diagnostic_msgs::msg::dds_::DiagnosticStatus_"):
    level: uint8
    name: str
    message: str
    hardware_id: str
    values: sequence[KeyValue]


@dataclass
class Array(IdlStruct, typename="diagnostic_msgs::msg::dds_::DiagnosticArray_"):
    header: Header
    status: sequence[Status]


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--count", type=int, default=1)
participant_arguments(parser)
arguments = parser.parse_args()

participant = open_participant(arguments)
reliable = Policy.Reliability.Reliable(duration(seconds=1))
kept = Qos(reliable, Policy.Durability.TransientLocal, Policy.History.KeepLast(100))
plain = Qos(reliable, Policy.History.KeepLast(100))
verdicts = DataReader(participant, Topic(participant, "rt/rondel/verdicts", Verdict), qos=kept)
arrays = DataReader(participant, Topic(participant, "rt/diagnostics", Array), qos=plain)
print("ready", flush=True)
seen, shown, ended, end = 0, False, False, time.monotonic() + 30
while not ended and time.monotonic() < end:
    for sample in verdicts.take(N=64):
        if isinstance(sample, Verdict):
            print(f"{sample.property} {sample.verdict} at step {sample.step}", flush=True)
            seen += 1
    for sample in arrays.take(N=64):
        for status in sample.status if isinstance(sample, Array) else []:
            print(f"level {status.level}: {status.name}: {status.message}", flush=True)
            shown = shown or status.level == 2
            ended = ended or (status.level == 3 and status.name == "rondel")
    time.sleep(0.01)
# A reader that is gone at once acknowledges nothing: it stays until standard input ends.
sys.stdin.read()
sys.exit(seen < arguments.count or not shown)
