"""Writes corpus.jsonl: random schemas of Avro, and data that fastavro has written by them.

Each line has a schema, a datum in hexadecimal digits, and the JSON that Rondel makes of it. Needs the package fastavro:

    python corpus.py > corpus.jsonl
"""

import io
import json
import random
import struct
from decimal import Decimal, localcontext

import fastavro

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
TIMES = {"timestamp-millis": 10**6, "timestamp-micros": 10**3, "local-timestamp-millis": 10**6}
TEXTS = ["", "x", "cä\N{GRINNING FACE}", 'a"b\\c', "12 ms"]
NS_PER_S = 10**9


class Maker:
    """Makes schemas and data."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.named = {}

    def name(self):
        return f"T{len(self.named)}"

    def schema(self, depth):
        kinds = ["primitive"] * 3 + ["logical", "enum", "fixed"]
        if depth < 4:
            kinds += ["record", "array", "map", "union", "known"]
        kind = self.random.choice(kinds)
        if kind == "known" and self.named:
            return self.random.choice(list(self.named))
        if kind == "primitive":
            return self.random.choice(PRIMITIVES)
        if kind == "logical":
            return self.logical()
        if kind == "enum":
            return self.define({"type": "enum", "name": self.name(), "symbols": ["RED", "GREEN", "BLUE"]})
        if kind == "fixed":
            return self.define({"type": "fixed", "name": self.name(), "size": self.random.randint(0, 9)})
        if kind == "array":
            return {"type": "array", "items": self.schema(depth + 1)}
        if kind == "map":
            return {"type": "map", "values": self.schema(depth + 1)}
        if kind == "union":
            return self.union(depth)
        return self.record(depth)

    def logical(self):
        kind = self.random.choice(["time", "date", "time-of-day", "decimal", "fixed decimal", "uuid"])
        if kind == "time":
            return {"type": "long", "logicalType": self.random.choice(list(TIMES))}
        if kind == "date":
            return {"type": "int", "logicalType": "date"}
        if kind == "time-of-day":
            return {"type": "int", "logicalType": "time-millis"}
        if kind == "decimal":
            return {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": self.random.choice([0, 2, 25])}
        if kind == "fixed decimal":
            name, size = self.name(), self.random.choice([4, 8])
            return self.define(
                {"type": "fixed", "name": name, "size": size, "logicalType": "decimal", "precision": 9, "scale": 3}
            )
        return {"type": "string", "logicalType": "uuid"}

    def define(self, schema):
        self.named[schema["name"]] = schema
        return schema

    def union(self, depth):
        branches, kinds = [], set()
        for _ in range(self.random.randint(1, 4)):
            branch = self.schema(depth + 1)
            kind = branch if isinstance(branch, str) else branch["type"] if isinstance(branch, dict) else "union"
            kind = self.named[kind]["type"] if kind in self.named else kind
            # fastavro finds the branch by the value: one of each kind.
            group = {"int": "number", "long": "number", "float": "number", "double": "number", "fixed": "bytes"}
            group = group.get(kind, {"enum": "string", "record": "map"}.get(kind, kind))
            if group not in kinds and kind != "union":
                kinds.add(group)
                branches.append(branch)
        return branches or ["null"]

    def record(self, depth):
        name = self.name()
        record = self.define({"type": "record", "name": name, "fields": []})
        fields = [{"name": f"f{at}", "type": self.schema(depth + 1)} for at in range(self.random.randint(0, 4))]
        if self.random.random() < 0.3:
            fields.append({"name": "next", "type": ["null", name]})
        record["fields"] = fields
        return record

    def datum(self, schema, depth=0):
        """Returns a datum for fastavro, and its JSON."""
        r = self.random
        if isinstance(schema, str) and schema in self.named:
            schema = self.named[schema]
        if isinstance(schema, list):
            if depth > 8 and "null" in schema:
                return None, None
            return self.datum(r.choice(schema), depth + 1)
        kind = schema if isinstance(schema, str) else schema["type"]
        logical = None if isinstance(schema, str) else schema.get("logicalType")
        if kind == "record":
            parts = {field["name"]: self.datum(field["type"], depth + 1) for field in schema["fields"]}
            return {k: v[0] for k, v in parts.items()}, {k: v[1] for k, v in parts.items()}
        if kind == "array":
            parts = [self.datum(schema["items"], depth + 1) for _ in range(r.randint(0, 3 if depth < 6 else 0))]
            return [part[0] for part in parts], [part[1] for part in parts]
        if kind == "map":
            keys = r.sample(["a", "b", "ä", ""], r.randint(0, 3 if depth < 6 else 0))
            parts = {key: self.datum(schema["values"], depth + 1) for key in keys}
            return {k: v[0] for k, v in parts.items()}, {k: v[1] for k, v in parts.items()}
        if kind == "enum":
            symbol = r.choice(schema["symbols"])
            return symbol, symbol
        if kind in ("bytes", "fixed"):
            size = schema["size"] if kind == "fixed" else r.randint(0, 12)
            data = bytes(r.randrange(256) for _ in range(size))
            if logical != "decimal":
                return data, list(data)
            value = int.from_bytes(data, "big", signed=True)
            scale = schema["scale"]
            if scale == 0:
                # Beyond 64 bits the nearest double.
                return data, value if -(2**63) <= value < 2**63 else float(value)
            with localcontext() as context:
                context.prec = 60
                return data, float(Decimal(value).scaleb(-scale))
        if kind in ("int", "long"):
            bits = 31 if kind == "int" else 63
            value = r.choice([0, -1, 2**bits - 1, -(2**bits), r.getrandbits(bits) >> r.randrange(bits)])
            if logical in TIMES or logical in ("date", "time-millis"):
                value = r.getrandbits(30)
                unit = {"date": 86400 * NS_PER_S // (1 << 12), "time-millis": 10**6}.get(logical)
                if logical == "date":
                    value, unit = value >> 12, 86400 * NS_PER_S
                nanos = value * (unit or TIMES[logical])
                if nanos >= 2**63:
                    return value, value
                return value, {"sec": nanos // NS_PER_S, "nanosec": nanos % NS_PER_S}
            return value, value
        if kind in ("float", "double"):
            value = r.choice([0.0, -1.5, 1e20, r.randrange(-1000, 1000) / 8])
            if r.random() < 0.1:
                return float("nan"), None
            return value, struct.unpack("<f", struct.pack("<f", value))[0] if kind == "float" else value
        if kind == "boolean":
            value = r.random() < 0.5
            return value, value
        if kind == "string":
            value = r.choice(TEXTS)
            if logical == "uuid":
                value = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
            return value, value
        return None, None


def main():
    lines, seed = 0, 0
    while lines < 300:
        seed += 1
        maker = Maker(seed)
        schema = maker.record(0)
        try:
            parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
            datum, expected = maker.datum(schema)
            out = io.BytesIO()
            fastavro.schemaless_writer(out, parsed, datum)
        except (fastavro.schema.SchemaParseException, RecursionError, ValueError, TypeError):
            # A decimal that fastavro wants as one, or a union of equal kinds.
            continue
        if len(out.getvalue()) > 2000:
            continue
        line = {"schema": schema, "datum": out.getvalue().hex(), "json": expected}
        print(json.dumps(line, ensure_ascii=False))
        lines += 1


if __name__ == "__main__":
    main()
