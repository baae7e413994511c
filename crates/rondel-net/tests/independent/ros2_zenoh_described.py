#!/usr/bin/env python3
"""A node on rmw_zenoh that publishes a type of its own and describes it: eclipse-zenoh for the network, rosbags for CDR.

Publishes rover_msgs/msg/Battery with the charges 0.1, 0.2 … on the topic. Prints `queried TYPE` for each request of
~/get_type_description, `sent N` at the end.
"""
import argparse
import os
import struct
import sys
import time

import numpy
import zenoh
from rosbags.typesys import get_types_from_msg
from rosbags.typesys.store import Nodetype

from ros2_session import data_key, dds_type, ros2_arguments, store, token_key
from zenoh_session import open_session, session_arguments

SERVICE = "type_description_interfaces/srv/GetTypeDescription"
HASH = "RIHS01_69b9c19c1021405984cc60dbbb1edceb147a6538b411d812ba6afabeed962cd5"
MESSAGES = {
    "rover_msgs/msg/Cell": "float32 volts\n",
    "rover_msgs/msg/Battery": "std_msgs/Header header\nfloat64 charge\nstring<=8 name\nCell[] cells\nuint16[3] codes\n",
    # Services are not among the types of rosbags.
    "rover_msgs/msg/Request": "string type_name\nstring type_hash\nbool include_type_sources\n",
    "rover_msgs/msg/Response": "bool successful\nstring failure_reason\n"
    "type_description_interfaces/TypeDescription type_description\n"
    "type_description_interfaces/TypeSource[] type_sources\n"
    "type_description_interfaces/KeyValue[] extra_information\n",
}
NUMBERS = {"uint8": 3, "int16": 4, "uint16": 5, "int32": 6, "uint32": 7, "float32": 10, "float64": 11, "bool": 15}

parser = argparse.ArgumentParser(description=__doc__)
ros2_arguments(parser)
parser.add_argument("--count", type=int, default=10)
parser.add_argument("--pause", type=float, default=0, help="seconds between messages")
parser.add_argument("--wait-for-input", action="store_true", help="wait for a line on standard input before sending")
parser.add_argument("--answer", choices=["right", "failure", "other", "none"], default="right")
session_arguments(parser)
arguments = parser.parse_args()
arguments.type = "rover_msgs/msg/Battery"
for name, text in MESSAGES.items():
    store.register(get_types_from_msg(text, name))
types, gid = store.types, os.urandom(16)


def interface(name):
    return types[f"type_description_interfaces/msg/{name}"]


def field_type(description):
    kind, rest = description
    if kind == Nodetype.NAME:
        return interface("FieldType")(type_id=1, capacity=0, string_capacity=0, nested_type_name=rest)
    if kind == Nodetype.BASE:
        name, bound = rest
        number = (21 if bound else 17) if name == "string" else NUMBERS[name]
        return interface("FieldType")(type_id=number, capacity=0, string_capacity=bound, nested_type_name="")
    element, size = rest
    inner = field_type(element)
    inner.type_id += 48 if kind == Nodetype.ARRAY else 96 if size else 144
    inner.capacity = size
    return inner


def individual(name):
    fields = [interface("Field")(name=own, type=field_type(of), default_value="") for own, of in store.fielddefs[name][1]]
    return interface("IndividualTypeDescription")(type_name=name, fields=fields)


def answer(query):
    request = store.deserialize_cdr(bytes(query.payload), "rover_msgs/msg/Request")
    print(f"queried {request.type_name} {request.type_hash == store.hash_rihs01(request.type_name)}", flush=True)
    others = [] if arguments.answer == "other" else ["rover_msgs/msg/Cell"]
    others = ["builtin_interfaces/msg/Time", *others, "std_msgs/msg/Header"]
    battery = individual(request.type_name)
    if arguments.answer == "other":
        battery.fields = battery.fields[:2]
    description = interface("TypeDescription")(
        type_description=battery, referenced_type_descriptions=[individual(name) for name in others]
    )
    response = types["rover_msgs/msg/Response"](
        successful=arguments.answer != "failure",
        failure_reason="it is a secret" if arguments.answer == "failure" else "",
        type_description=description,
        type_sources=[],
        extra_information=[],
    )
    attachment = struct.pack("<qqB", 1, time.time_ns(), 16) + gid
    query.reply(service, bytes(store.serialize_cdr(response, "rover_msgs/msg/Response")), attachment=attachment)


with open_session(arguments) as session:
    service = f"{arguments.domain}/{arguments.node}/get_type_description/{dds_type(SERVICE)}/{HASH}"
    if arguments.answer != "none":
        queryable = session.declare_queryable(service, answer, complete=True)
    publisher = session.declare_publisher(data_key(arguments), reliability=zenoh.Reliability.RELIABLE)
    tokens = [session.liveliness().declare_token(token_key(session, kind, arguments)) for kind in ("NN", "MP")]
    print("ready", flush=True)
    deadline = time.monotonic() + 60
    while arguments.count and not publisher.matching_status.matching:
        if time.monotonic() > deadline:
            sys.exit("no subscription")
        time.sleep(0.01)
    if not arguments.count:
        sys.stdin.read()
    if arguments.wait_for_input:
        sys.stdin.readline()
    header = types["std_msgs/msg/Header"](
        stamp=types["builtin_interfaces/msg/Time"](sec=5, nanosec=0), frame_id="base"
    )
    for i in range(1, arguments.count + 1):
        cell = types["rover_msgs/msg/Cell"](volts=3.5)
        codes = numpy.array([i, 2, 3], dtype=numpy.uint16)
        battery = types["rover_msgs/msg/Battery"](header=header, charge=i / 10, name="main", cells=[cell], codes=codes)
        attachment = struct.pack("<qqB", i, time.time_ns(), 16) + gid
        publisher.put(bytes(store.serialize_cdr(battery, arguments.type)), attachment=attachment)
        time.sleep(arguments.pause)
    print(f"sent {arguments.count}", flush=True)
    sys.stdin.read()
