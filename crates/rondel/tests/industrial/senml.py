"""Writes packs of SenML in JSON and CBOR with `kpn-senml` as MCAP, and the measurements that they hold as JSON lines.

    senml.py FOLDER SEED

`whole.mcap` and `lines.jsonl` are the same messages; in `wrong.mcap` one record has no value. `broker.jsonl` and
`broker_lines.jsonl` are those in JSON, the former as `mosquitto_sub -F %j` writes them.
"""

import json
import random
import sys

from kpn_senml import SenmlPack, SenmlRecord, senml_record
from mcap.writer import Writer

# The package asks for the texts of Python 2.
senml_record.basestring = str
folder, seed = sys.argv[1], int(sys.argv[2])
chance = random.Random(seed)
DEVICES = ["urn:dev:mac:0024be:", "urn:dev:ow:10e2/"]
VALUES = {
    "temp": lambda: chance.randrange(-160, 400) / 8,
    "hum": lambda: chance.randrange(1, 100),
    "window": lambda: chance.random() < 0.5,
    "mode": lambda: chance.choice(["auto", "hand", "\u00e4\"\\"]),
}



def events(records):
    """The events that records are: one for each time, if a name comes with several."""
    times = {}
    for record in records:
        times.setdefault(record["n"], set()).add(record["t"])
    if all(len(of_name) == 1 for of_name in times.values()):
        return [{"records": records, "time": max(record["t"] for record in records)}]
    every = sorted({record["t"] for record in records})
    return [{"records": [record for record in records if record["t"] == at], "time": at} for at in every]


messages = []
time = 1_700_000_000_000
for _ in range(400):
    time += chance.randrange(1, 5_000)
    now = time / 1000
    device = chance.choice(DEVICES)
    pack = SenmlPack(device)
    if chance.random() < 0.5:
        pack.base_time = chance.choice([1_699_999_000, 1_699_999_000.125])
    if chance.random() < 0.3:
        pack.base_value = chance.choice([20, -7.5])
    records = []
    names = chance.sample(list(VALUES), chance.randrange(1, len(VALUES) + 1))
    if chance.random() < 0.3:
        # A series, not in order.
        names += chance.choices(names, k=chance.randrange(1, 8))
    for name in names:
        value = VALUES[name]()
        # A time that is absolute, after the base time, or relative to now.
        if pack.base_time:
            at = written = pack.base_time + chance.randrange(1, 800) / 8
        elif chance.random() < 0.5:
            at = written = 1_699_999_000 + chance.randrange(1, 800) / 8
        else:
            written = -chance.randrange(1, 800) / 8
            at = round(now + written, 3)
        unit = chance.choice([None, "Cel"])
        record = SenmlRecord(name, value=value, time=written)
        record.unit = unit
        pack.add(record)
        label = {bool: "vb", str: "vs"}.get(type(value), "v")
        line = {"n": device + name, "t": at, label: value}
        if unit:
            line["u"] = unit
        records.append(line)
    payload = pack.to_json().encode() if chance.random() < 0.5 else pack.to_cbor()
    messages.append((time, payload, [{"topic": "room", "time": now, "data": of} for of in events(records)]))


def write(name, messages):
    with open(f"{folder}/{name}", "wb") as file:
        writer = Writer(file)
        writer.start()
        channel = writer.register_channel(topic="room", message_encoding="senml", schema_id=0)
        for time, payload in messages:
            nanos = time * 1_000_000
            writer.add_message(channel, log_time=nanos, publish_time=nanos, data=payload)
        writer.finish()


payloads = [(time, payload) for time, payload, _ in messages]
write("whole.mcap", payloads)
write("wrong.mcap", payloads[:50] + [(payloads[50][0], b'[{"bn":"urn:","n":"x","v":1},{"n":"y"}]')] + payloads[51:])



def write_lines(name, lines):
    with open(f"{folder}/{name}", "w") as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")


write_lines("lines.jsonl", [line for _, _, lines in messages for line in lines])
texts = [(time, payload, lines) for time, payload, lines in messages if payload[:1] == b"["]
frames = [{"tst": time / 1000, "topic": "room", "payload": payload.decode()} for time, payload, _ in texts]
write_lines("broker.jsonl", frames)
write_lines("broker_lines.jsonl", [line for _, _, lines in texts for line in lines])
