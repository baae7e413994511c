"""Writes random messages of random types with Eclipse's cyclonedds, one JSON object a line:
the type as IDL, the message, and the values at some of its paths.

    dds.py SEED COUNT
"""

import json
import random
import sys
from typing import Optional

import cyclonedds.idl.annotations as annotations
import cyclonedds.idl.types as types
from cyclonedds.idl import make_idl_bitmask, make_idl_enum, make_idl_struct, make_idl_union
from cyclonedds.idl._support import Endianness

# Each number: its name in IDL, its type, its least and greatest value.
NUMBERS = [
    ("boolean", bool, 0, 1),
    ("char", types.char, 33, 126),
    ("wchar", types.wchar, 33, 300),
    ("octet", types.byte, 0, 255),
    ("int8", types.int8, -128, 127),
    ("uint8", types.uint8, 0, 255),
    ("short", types.int16, -(2**15), 2**15 - 1),
    ("unsigned short", types.uint16, 0, 2**16 - 1),
    ("long", types.int32, -(2**31), 2**31 - 1),
    ("unsigned long", types.uint32, 0, 2**32 - 1),
    ("long long", types.int64, -(2**63), 2**63 - 1),
    ("unsigned long long", types.uint64, 0, 2**63 - 1),
    ("float", types.float32, None, None),
    ("double", types.float64, None, None),
]


class Kind:
    """A type: its text in IDL, its annotation in Python, and a maker of values.

    `make(path, leaves)` returns a value, and adds [path, kind, value] of its leaves.
    """

    def __init__(self, idl, python, make, array=None):
        self.idl, self.python, self.make = idl, python, make
        # The element in IDL and the sizes, as an array of arrays is one array here.
        self.array = array


class Case:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.seed = seed
        self.text = []
        self.named = []

    def number(self):
        idl, python, least, greatest = self.random.choice(NUMBERS)

        def make(path, leaves):
            if least is None:
                value = self.random.choice([0.0, -1.5, 0.25, 1e9])
                leaves.append([path, "float", value])
                return value
            value = self.random.randint(least, greatest)
            if python is bool:
                leaves.append([path, "bool", bool(value)])
                return bool(value)
            if python is types.char:
                leaves.append([path, "string", chr(value)])
                return chr(value)
            leaves.append([path, "int", value])
            return value

        return Kind(idl, python, make)

    def string(self):
        bound = self.random.choice([None, None, 8])

        def make(path, leaves):
            value = "".join(self.random.choice("abc xyzß€") for _ in range(self.random.randint(0, 2)))
            leaves.append([path, "string", value])
            return value

        return Kind("string" if bound is None else f"string<{bound}>",
                    str if bound is None else types.bounded_str[bound], make)

    def elements(self, depth):
        inner = self.any(depth + 1)
        size = self.random.choice([None, None, 1, 2, 3])

        def make(path, leaves):
            count = self.random.randint(0, 3) if size is None else size
            return [inner.make(path + [at], leaves) for at in range(count)]

        if size is None:
            return Kind(f"sequence<{inner.idl}>", types.sequence[inner.python], make)
        # IDL writes the size of an array behind a name.
        name = f"A{len(self.text)}"
        element, sizes = inner.array or (inner.idl, "")
        sizes = f"[{size}]{sizes}"
        self.text.append(f"typedef {element} {name}{sizes};")
        return Kind(name, types.array[inner.python, size], make, (element, sizes))

    def any(self, depth=0):
        choice = self.random.randrange(10)
        if choice < 4 or depth > 2:
            return self.number()
        if choice < 5:
            return self.string()
        if choice < 7 and self.named:
            return self.random.choice(self.named)
        return self.elements(depth)

    def annotated(self, cls):
        name = self.random.choice(["final", "appendable", "mutable"])
        return f"@{name} ", getattr(annotations, name)(cls)

    def enumeration(self, name):
        fields = {f"{name}_A": 0, f"{name}_B": 5, f"{name}_C": 6}
        cls = make_idl_enum(name, name, fields, default=0)
        self.text.append(f"enum {name} {{ {name}_A, @value(5) {name}_B, {name}_C }};")

        def make(path, leaves):
            label, value = self.random.choice(list(fields.items()))
            leaves.append([path, "int", value])
            leaves.append([path, "string", label])
            return cls[label]

        return Kind(name, cls, make)

    def union(self, name):
        a, b = self.any(1), self.any(1)
        cls = make_idl_union(name, name, {"a": types.case[[1, 2], a.python], "b": types.default[b.python]},
                             discriminator=types.int32)
        extensibility = self.random.choice(["final", "appendable"])
        cls = getattr(annotations, extensibility)(cls)
        self.text.append(f"@{extensibility} union {name} switch (long) {{ case 1: case 2: {a.idl} a; default: {b.idl} b; }};")

        def make(path, leaves):
            label = self.random.choice([1, 2, 7])
            leaves.append([path + ["discriminator"], "int", label])
            case, field = (a, "a") if label != 7 else (b, "b")
            return cls(discriminator=label, value=case.make(path + [field], leaves))

        return Kind(name, cls, make)

    def structure(self, name):
        members, fields = [], {}
        for at in range(self.random.randint(1, 5)):
            member = self.any()
            optional = self.random.randrange(6) == 0
            members.append((f"m{at}", member, optional))
            fields[f"m{at}"] = Optional[member.python] if optional else member.python
        # Annotations count from the beginning: given before the class is populated.
        extensibility, cls = self.annotated(make_idl_struct(name, name, fields))
        lines = [f"  {'@optional ' if optional else ''}{member.idl} {field};" for field, member, optional in members]
        self.text.append(f"{extensibility}struct {name} {{\n" + "\n".join(lines) + "\n};")

        def make(path, leaves):
            values = {}
            for field, member, optional in members:
                is_there = not optional or self.random.randrange(2) == 0
                values[field] = member.make(path + [field], leaves) if is_there else None
            return cls(**values)

        return Kind(name, cls, make)

    def run(self):
        for at in range(self.random.randrange(5)):
            make = self.random.choice([self.enumeration, self.union, self.structure, self.structure])
            self.named.append(make(f"T{at}"))
        root = self.structure("Root")
        for version_2 in [False, True]:
            for endianness in [Endianness.Little, Endianness.Big]:
                leaves = []
                value = root.make([], leaves)
                message = value.serialize(endianness=endianness, use_version_2=version_2)
                yield {"seed": self.seed, "idl": "\n".join(self.text), "message": bytes(message).hex(), "leaves": leaves}


def main():
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for seed in range(first, first + count):
        for line in Case(seed).run():
            print(json.dumps(line))


main()
