"""Writes a log of PX4 (ULog), reads it with `pyulog`, lets that write it again, and prints what it read as JSON lines.

    ulog.py FOLDER
"""

import json
import struct
import sys

import numpy
from pyulog import ULog

folder = sys.argv[1]
FORMATS = [
    "vehicle_attitude:uint64_t timestamp;float[4] q;uint8_t reset_counter;uint8_t[7] _padding0;",
    "battery_status:uint64_t timestamp;double voltage;char[12] name;bool connected;int8_t[3] cells;",
    "esc_report:uint64_t timestamp;int32_t rpm;uint8_t state;uint8_t[3] _padding0;",
    "esc_status:uint64_t timestamp;uint16_t counter;esc_report[2] esc;uint8_t[6] _padding0;",
]
SYNC = bytes([0x2F, 0x73, 0x13, 0x20, 0x25, 0x0C, 0xBB, 0x12])


def message(kind, body):
    return struct.pack("<HB", len(body), ord(kind)) + body


def parameter(name, value):
    kind, packed = ("int32_t", struct.pack("<i", value)) if isinstance(value, int) else ("float", struct.pack("<f", value))
    key = f"{kind} {name}".encode()
    return message("P", bytes([len(key)]) + key + packed)


out = b"ULog\x01\x12\x35\x01" + struct.pack("<Q", 1_000_000)
out += message("B", bytes(40))
for text in FORMATS:
    out += message("F", text.encode())
key = b"char[3] sys_name"
out += message("I", bytes([len(key)]) + key + b"PX4")
out += parameter("MC_ROLL_P", 6.5) + parameter("SYS_AUTOSTART", 4001)
names = [("vehicle_attitude", 0), ("battery_status", 0), ("battery_status", 1), ("esc_status", 0)]
for number, (name, instance) in enumerate(names):
    out += message("A", struct.pack("<BH", instance, number) + name.encode())
for i in range(400):
    time = 1_000_000 + i * 10_000
    q = [1.0, (i % 40) / 40, 0.0, -0.5]
    out += message("D", struct.pack("<HQ4fB", 0, time, *q, i % 256))
    if i % 4 == 0:
        for instance in (0, 1):
            name = f"pack{i % 3}".encode().ljust(12, b"\0")
            voltage = 16.8 - i / 100 - instance
            out += message("D", struct.pack("<HQd12s?3b", 1 + instance, time + 1 + instance, voltage, name, i % 8 == 0, -1, i % 100, 3))
    if i % 10 == 0:
        esc = b"".join(struct.pack("<QiB3x", time - 5 - j, i * 7 * (j + 1), j) for j in (0, 1))
        out += message("D", struct.pack("<HQH", 3, time + 3, i) + esc)
    if i % 100 == 50:
        out += message("L", bytes([ord("4")]) + struct.pack("<Q", time + 4) + f"step {i}".encode())
        out += parameter("MC_ROLL_P", 6.5 + i)
    if i == 200:
        dropout_at = len(out)
    if i % 50 == 0:
        out += message("S", SYNC)
open(f"{folder}/own.ulg", "wb").write(out)
dropout = message("O", struct.pack("<H", 70))
open(f"{folder}/dropout.ulg", "wb").write(out[:dropout_at] + dropout + out[dropout_at:])

log = ULog(f"{folder}/own.ulg")
log.write_ulog(f"{folder}/pyulog.ulg")
log = ULog(f"{folder}/pyulog.ulg")
lines = [
    (1_000_000, "parameters", {"name": name, "value": float(value)}) for name, value in log.initial_parameters.items()
]


def nested(columns, at):
    """The value of a message: columns are named `q[0]` and `esc[1].rpm`."""
    value = {}
    for name, column in columns.items():
        target = value
        parts = name.replace("]", "").replace("[", ".#").split(".")
        for part, following in zip(parts, parts[1:] + [None]):
            own = int(part[1:]) if part.startswith("#") else part
            if isinstance(target, list):
                target.extend([None] * (own + 1 - len(target)))
            if following is None:
                item = column[at].item()
                target[own] = item
            else:
                held = target[own] if isinstance(target, list) else target.get(own)
                if held is None:
                    held = target[own] = [] if following.startswith("#") else {}
                target = held
    return value


for data in log.data_list:
    topic = data.name if data.multi_id == 0 else f"{data.name}/{data.multi_id}"
    columns = {name: column for name, column in data.data.items() if "_padding" not in name}
    for at, time in enumerate(data.data["timestamp"]):
        value = nested(columns, at)
        if "name" in value:
            value["name"] = bytes(byte % 256 for byte in value["name"]).split(b"\0")[0].decode()
        if "connected" in value:
            value["connected"] = bool(value["connected"])
        lines.append((int(time), topic, value))
for text in log.logged_messages:
    value = {"timestamp": int(text.timestamp), "level": text.log_level - ord("0"), "tag": 0, "text": text.message}
    lines.append((int(text.timestamp), "logged_messages", value))
for time, name, value in log.changed_parameters:
    lines.append((int(time), "parameters", {"name": name, "value": float(value)}))
lines.sort(key=lambda line: line[0])
with open(f"{folder}/lines.jsonl", "w") as file:
    for time, topic, value in lines:
        file.write(json.dumps({"topic": topic, "time": time / 1e6, "data": value}) + "\n")
