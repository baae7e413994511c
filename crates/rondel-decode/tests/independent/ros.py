"""Writes a random message of every type of ROS 2, or of ROS 1, that rosbags knows, one JSON object a line: the
definition as recordings carry it, the hash of the type, the message, and the values at its paths.

    ros.py SEED [ros1]
"""

import json
import random
import sys

import numpy
from rosbags.typesys import Stores, get_typestore
from rosbags.interfaces import Nodetype

is_ros1 = sys.argv[2:] == ["ros1"]
store = get_typestore(Stores.ROS1_NOETIC if is_ros1 else Stores.ROS2_JAZZY)
choose = random.Random(int(sys.argv[1]))

RANGES = {
    "int8": (-128, 127), "uint8": (0, 255), "byte": (0, 127), "octet": (0, 127), "char": (0, 127),
    "int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1), "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1), "int64": (-(2**63), 2**63 - 1), "uint64": (0, 2**63 - 1),
}


def base(name, path, leaves):
    if name == "bool":
        value, kind = choose.random() < 0.5, "bool"
    elif name in ("float32", "float64"):
        value, kind = choose.choice([0.0, -1.5, 0.25, 1e9]), "float"
    elif name == "string":
        value, kind = "".join(choose.choice("abc xyzß€") for _ in range(choose.randrange(6))), "string"
    elif is_ros1 and path[-1] in ("sec", "nanosec"):
        # ROS 1 has seconds of a time without a sign, and nanoseconds of a duration with one.
        value, kind = choose.randint(0, 2**31 - 1), "int"
    else:
        value, kind = choose.randint(*RANGES[name]), "int"
    leaves.append([path, kind, value])
    return value


def value(node, path, leaves):
    kind, detail = node
    if kind == Nodetype.BASE:
        return base(detail[0], path, leaves)
    if kind == Nodetype.NAME:
        return message(detail, path, leaves)
    inner, size = detail
    count = size if kind == Nodetype.ARRAY else choose.randrange(min(size or 3, 3) + 1)
    values = [value(inner, path + [at], leaves) for at in range(count)]
    if inner[0] == Nodetype.BASE and inner[1][0] != "string":
        name = {"bool": "bool", "byte": "uint8", "octet": "uint8", "char": "uint8"}.get(inner[1][0], inner[1][0])
        return numpy.array(values, dtype=name)
    return values


def message(name, path, leaves):
    _, fields = store.fielddefs[name]
    if is_ros1 and fields and fields[0][0] == "structure_needs_at_least_one_member":
        # Only messages of ROS 2 have it.
        return store.types[name](**{field: 0 for field, _ in fields})
    return store.types[name](**{field: value(node, path + [field], leaves) for field, node in fields})


def main():
    for name in sorted(store.fielddefs):
        if "/msg/" not in name:
            continue
        if is_ros1:
            leaves = []
            made = message(name, [], leaves)
            print(json.dumps({
                "name": name.replace("/msg/", "/"),
                "definition": store.generate_msgdef(name, ros_version=1)[0],
                "message": bytes(store.serialize_ros1(made, name)).hex(),
                "leaves": leaves,
            }))
            continue
        for little in (True, False):
            leaves = []
            made = message(name, [], leaves)
            print(json.dumps({
                "name": name,
                "definition": store.generate_msgdef(name, ros_version=2)[0],
                "hash": store.hash_rihs01(name),
                "message": bytes(store.serialize_cdr(made, name, little_endian=little)).hex(),
                "leaves": leaves,
            }))


main()
