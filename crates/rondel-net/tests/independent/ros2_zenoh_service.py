#!/usr/bin/env python3
"""A server of a service of std_srvs on rmw_zenoh: eclipse-zenoh for the network, rosbags for CDR.

Prints `ready`, and for each request `request DATA NUMBER`, DATA being that of SetBool. Ends with standard input.
"""
import argparse
import os
import struct
import sys
import time

import zenoh
from rosbags.typesys import get_types_from_msg

from ros2_session import dds_type, store
from zenoh_session import open_session, session_arguments

# Of the interface of rmw_zenoh any hash is answered.
HASH = "RIHS01_" + "0" * 64
# Services are not among the types of rosbags.
MESSAGES = {
    "std_srvs/msg/SetBoolRequest": "bool data\n",
    "std_srvs/msg/Request": "uint8 structure_needs_at_least_one_member\n",
    "std_srvs/msg/Response": "bool success\nstring message\n",
}

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("service", help="fully qualified name of the service")
parser.add_argument("--type", default="std_srvs/srv/SetBool", help="package/srv/Type")
parser.add_argument("--domain", type=int, default=0)
parser.add_argument("--answer", choices=["yes", "no", "none"], default="yes")
session_arguments(parser)
arguments = parser.parse_args()
for name, text in MESSAGES.items():
    store.register(get_types_from_msg(text, name))
gid = os.urandom(16)
kept = []


def answer(query):
    name = "std_srvs/msg/SetBoolRequest" if arguments.type.endswith("SetBool") else "std_srvs/msg/Request"
    request = store.deserialize_cdr(bytes(query.payload), name)
    number, _, size = struct.unpack("<qqB", bytes(query.attachment)[:17])
    print(f"request {getattr(request, 'data', '-')} {number} {size}", flush=True)
    if arguments.answer == "none":
        # It stays open, as with a server that hangs.
        kept.append(query)
        return
    is_done = arguments.answer == "yes"
    response = store.types["std_srvs/msg/Response"](success=is_done, message="stopped" if is_done else "no brake")
    attachment = struct.pack("<qqB", number, time.time_ns(), 16) + gid
    query.reply(key, bytes(store.serialize_cdr(response, "std_srvs/msg/Response")), attachment=attachment)


with open_session(arguments) as session:
    key = f"{arguments.domain}/{arguments.service.strip('/')}/{dds_type(arguments.type)}/{HASH}"
    queryable = session.declare_queryable(key, answer, complete=True)
    print("ready", flush=True)
    sys.stdin.read()
