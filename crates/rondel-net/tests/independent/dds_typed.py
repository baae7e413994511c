#!/usr/bin/env python3
"""Publishes samples of a structure on DDS with the cyclonedds package, as told on standard input.

Commands, one on each line: `wait [COUNT]` (for so many readers; prints `matched`), `write ID COUNT` (numbers go on from command to
command; prints `wrote NUMBER`, the next one), `turns IDS COUNT` (the same for several instances in turn), `hex` (prints
one more sample as it is serialised, and writes it), `dispose ID`, `unregister ID`, and `close` (deletes the writer; prints
`closed`). Ends with standard input.
"""
import argparse
import sys
import time
from dataclasses import dataclass
from enum import auto
from typing import Optional

from cyclonedds.core import Policy, Qos
from cyclonedds.idl import IdlBitmask, IdlEnum, IdlStruct, IdlUnion
from cyclonedds.idl.annotations import appendable, bit_bound, key, member_id, mutable, position
from cyclonedds.idl.types import (
    array, bounded_str, case, char, default, float32, float64, int8, int16, int32, sequence, typedef, uint8, uint16, uint32,
    uint64,
)
from cyclonedds.pub import DataWriter, Publisher
from cyclonedds.topic import Topic
from cyclonedds.util import duration

from dds_participant import open_participant, participant_arguments, reader_count


class Mode(IdlEnum, typename="demo.Mode"):
    PARKED = auto()
    DRIVING = auto()


@dataclass
class Stamp(IdlStruct, typename="demo.Stamp"):
    sec: int32
    nanosec: uint32


@dataclass
class Header(IdlStruct, typename="demo.Header"):
    stamp: Stamp
    frame_id: str


@dataclass
class Pose(IdlStruct, typename="demo.Pose"):
    header: Header
    number: uint64
    mode: Mode
    position: array[float64, 3]
    covariance: sequence[float64]


@dataclass
class Battery(IdlStruct, typename="rover_msgs.msg.dds_.Battery_"):
    charge: float64


@dataclass
@appendable
class Track(IdlStruct, typename="demo.Track"):
    id: int32
    key("id")
    number: uint64
    label: str


@dataclass
class Unit(IdlStruct, typename="demo.Unit"):
    speed: float64
    name: str
    key("name")
    charge: float32
    id: uint8
    key("id")


@bit_bound(12)
@dataclass
class Lamps(IdlBitmask, typename="demo.Lamps"):
    left: bool
    right: bool
    brake: bool
    position("brake", 7)


class Detail(IdlUnion, discriminator=Mode, typename="demo.Detail"):
    gear: case[[Mode.PARKED], int32]
    speed: default[float64]


Row = typedef["demo.Row", array[int16, 3]]


@dataclass
@mutable
class Part(IdlStruct, typename="demo.Part"):
    weight: float32
    member_id("weight", 7)
    label: bounded_str[20]
    member_id("label", 9)


@dataclass
@appendable
class Base(IdlStruct, typename="demo.Base"):
    id: uint8
    key("id")


@dataclass
@appendable
class All(Base, typename="demo.All"):
    flag: bool
    letter: char
    small: int8
    huge: uint64
    mode: Mode
    lamps: Lamps
    detail: Detail
    rows: array[Row, 2]
    parts: sequence[Part, 300]
    names: sequence[str]
    matrix: array[array[uint16, 300], 2]
    note: Optional[str]


@dataclass
@appendable
class Derived(Base, typename="demo.Derived"):
    flag: bool


@dataclass
class Other(IdlStruct, typename="demo.Other"):
    number: uint64


@dataclass
class Wide(IdlStruct, typename="demo.Pose"):
    number: uint64
    other: float64


# The name and size of another type, with a field of another name and type.
@dataclass
class Same(IdlStruct, typename="demo.Other"):
    speed: float64


def make(kind, number, instance):
    if kind == "pose":
        header = Header(Stamp(number, 500), "map")
        return Pose(header, number, Mode.DRIVING, [1.5, float(number), -2.5], [0.25] * (number % 3))
    if kind == "battery":
        return Battery(number / 10)
    if kind == "track":
        return Track(instance, number, f"track {instance}")
    if kind == "unit":
        return Unit(float(number), f"u{instance}", 0.5, instance)
    if kind == "derived":
        return Derived(instance, number % 2 == 0)
    if kind == "wide":
        return Wide(number, 0.5)
    if kind == "same":
        return Same(number + 0.5)
    if kind == "all":
        rows = [[1, 2, 3], [4, 5, 6]]
        parts = [Part(0.5, "left"), Part(1.5, "right")]
        matrix = [[i for i in range(300)], [7] * 300]
        detail = Detail(speed=2.5)
        return All(instance, True, "x", -3, 2**40, Mode.DRIVING, Lamps(False, True, False), detail, rows, parts, ["a"], matrix, None)
    return Other(number)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("name", help="topic to publish on")
parser.add_argument("--kind", choices=["pose", "track", "unit", "other", "wide", "same", "all", "battery", "derived"], default="pose")
parser.add_argument("--transient-local", type=int, metavar="DEPTH", help="keep so many samples of each instance")
parser.add_argument("--best-effort", action="store_true")
parser.add_argument("--exclusive", type=int, metavar="STRENGTH", help="own instances with this strength")
parser.add_argument("--partition", action="append", default=[])
parser.add_argument("--lease", type=float, help="seconds")
parser.add_argument("--deadline", type=float, help="seconds")
parser.add_argument("--latency-budget", type=float, help="seconds")
parser.add_argument("--hash", help="of the type, as ROS 2 announces it")
parser.add_argument("--timeout", type=float, default=30, help="seconds to wait for a reader")
participant_arguments(parser)
arguments = parser.parse_args()

participant = open_participant(arguments)
kind = {"pose": Pose, "track": Track, "unit": Unit, "other": Other, "wide": Wide, "same": Same, "all": All, "battery": Battery, "derived": Derived}[arguments.kind]
# An appendable type needs the second version of the encoding.
second = kind in (Track, All)
version = Policy.DataRepresentation(use_cdrv0_representation=not second, use_xcdrv2_representation=second)
topic = Topic(participant, arguments.name, kind, qos=Qos(version))
policies = [version, Policy.History.KeepAll, Policy.WriterDataLifecycle(autodispose=False)]
if arguments.hash:
    policies.append(Policy.Userdata(f"typehash={arguments.hash};".encode()))
if arguments.best_effort:
    policies.append(Policy.Reliability.BestEffort)
else:
    policies.append(Policy.Reliability.Reliable(duration(infinite=True)))
if arguments.transient_local:
    policies.append(Policy.Durability.TransientLocal)
    kept = Policy.History.KeepLast(arguments.transient_local)
    policies.append(Policy.DurabilityService(duration(seconds=0), kept, -1, -1, -1))
if arguments.exclusive is not None:
    policies += [Policy.Ownership.Exclusive, Policy.OwnershipStrength(arguments.exclusive)]
if arguments.lease:
    policies.append(Policy.Liveliness.Automatic(duration(seconds=arguments.lease)))
if arguments.deadline:
    policies.append(Policy.Deadline(duration(seconds=arguments.deadline)))
if arguments.latency_budget:
    policies.append(Policy.LatencyBudget(duration(seconds=arguments.latency_budget)))
publisher = Publisher(participant, Qos(Policy.Partition(partitions=arguments.partition)) if arguments.partition else Qos())
writer = DataWriter(publisher, topic, qos=Qos(*policies))
print("ready", flush=True)
number = 0
for line in sys.stdin:
    command, *rest = line.split()
    if command == "wait":
        deadline = time.monotonic() + arguments.timeout
        readers = int(rest[0]) if rest else 1
        while reader_count(writer) < readers:
            if time.monotonic() > deadline:
                sys.exit(f"no reader of {arguments.name} within {arguments.timeout} s")
            time.sleep(0.005)
        print("matched", flush=True)
    elif command in ("write", "turns"):
        instances = [int(each) for each in rest[0].split(",")]
        for _ in range(int(rest[1])):
            for instance in instances:
                writer.write(make(arguments.kind, number, instance))
                number += 1
        print(f"wrote {number}", flush=True)
    elif command == "hex":
        sample = make(arguments.kind, number, 1)
        print(sample.serialize(use_version_2=False).hex(), flush=True)
        writer.write(sample)
        number += 1
    elif command == "dispose":
        writer.dispose(make(arguments.kind, 0, int(rest[0])))
    elif command == "unregister":
        writer.unregister_instance(make(arguments.kind, 0, int(rest[0])))
    elif command == "close":
        del writer, publisher
        print("closed", flush=True)
