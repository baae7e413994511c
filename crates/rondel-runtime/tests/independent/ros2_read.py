#!/usr/bin/env python3
"""Reads messages of ROS 2 with rosbags. Arguments: TYPE, and the file of its definition or `-`.

Standard input has a message in hexadecimal digits on each line; prints the hash of the type, then each message as JSON.
"""
import dataclasses
import json
import sys

from rosbags.typesys import Stores, get_types_from_msg, get_typestore

store = get_typestore(Stores.ROS2_JAZZY)
name, definition = sys.argv[1:]
if definition != "-":
    with open(definition, encoding="utf-8") as file:
        store.register(get_types_from_msg(file.read(), name))
print(json.dumps(store.hash_rihs01(name)))
for line in sys.stdin.readlines():
    data = bytes.fromhex(line)
    message = store.deserialize_cdr(data, name)
    # Written again, it has the same bytes: there is nothing after its end.
    assert bytes(store.serialize_cdr(message, name)) == data, line
    print(json.dumps(dataclasses.asdict(message)))
