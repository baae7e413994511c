"""Writes messages of Sparkplug B with the Protobuf definitions of `pysparkplug` as MCAP, and what they mean as JSON lines.

    sparkplug.py FOLDER SEED

`whole.mcap` and `lines.jsonl` are the same messages; in `lossy.mcap` some are missing, in `headless.mcap` the births.
"""

import json
import random
import sys

from mcap.writer import Writer
from pysparkplug._protobuf import sparkplug_b_pb2

folder, seed = sys.argv[1], int(sys.argv[2])
chance = random.Random(seed)
Payload = sparkplug_b_pb2.Payload
BITS = {1: 8, 2: 16, 3: 32, 4: 64}

# Of each source the metrics: name, data type, and how a value is drawn.
SOURCES = {
    "press": [
        ("Press/Temp", 9, lambda: chance.randrange(800) / 8),
        ("Count", 1, lambda: chance.randrange(-128, 128)),
        ("Total", 4, lambda: chance.randrange(-(2**63), 2**63)),
        ("Size", 7, lambda: chance.randrange(2**32)),
        ("Running", 11, lambda: chance.random() < 0.5),
        ("Mode", 12, lambda: chance.choice(["auto", "hand", "fault"])),
        ("Unread One", 3, lambda: chance.randrange(-5, 5)),
    ],
    "press/arm": [
        ("Arm/Pos", 10, lambda: chance.uniform(-2, 2)),
        ("Arm/Step", 2, lambda: chance.randrange(-300, 300)),
        ("Unread Two", 14, lambda: "text"),
    ],
}


def set_value(metric, kind, value):
    if kind in BITS:
        # Two's complement of 32 or 64 bits, or of as many as the type has.
        wide = 64 if kind == 4 else chance.choice([BITS[kind], 32])
        setattr(metric, "long_value" if kind == 4 else "int_value", value % 2**wide)
    else:
        fields = {7: "int_value", 9: "float_value", 10: "double_value", 11: "boolean_value", 12: "string_value", 14: "string_value"}
        setattr(metric, fields[kind], value)


class Edge:
    def __init__(self):
        self.seq = 0
        self.session = 0
        self.alive = set()
        self.aliases = {}
        self.messages = []
        self.time = 1_700_000_000_000

    def send(self, source, kind, metrics, numbered=True):
        """Sends metrics, each a name, a type and a value, where None is null."""
        self.time += chance.randrange(1, 2_000)
        payload, read = Payload(timestamp=self.time), []
        by_alias = chance.random() < 0.7
        for name, datatype, value in metrics:
            metric = payload.metrics.add()
            is_birth = kind == "BIRTH"
            # A will is written before the birth that gives aliases.
            alias = None if name == "bdSeq" and not is_birth else self.aliases.get((source, name))
            if is_birth or not by_alias or alias is None:
                metric.name = name
            if alias is not None and (is_birth or by_alias):
                metric.alias = alias
            if is_birth or kind == "DEATH" or chance.random() < 0.2:
                metric.datatype = datatype
            if value is None:
                metric.is_null = True
            else:
                set_value(metric, datatype, value)
            if kind == "DATA" and chance.random() < 0.05:
                # A value of the past, which is not read.
                metric.is_historical = True
                continue
            line = {"name": name, "value": value}
            if name == "Press/Temp":
                quality = chance.choice([0, 192, 500])
                metric.properties.keys.append("Quality")
                metric.properties.values.add(type=3, int_value=quality)
                line["properties"] = {"Quality": quality}
            read.append(line)
        if numbered:
            payload.seq = self.seq
            self.seq = (self.seq + 1) % 256
        if kind == "DEATH":
            ended = [name for name in SOURCES if name == source or name.startswith(source + "/")]
            ended = [name for name in ended if name in self.alive]
            self.alive.difference_update(ended)
            read = [{"name": name, "value": None, "properties": None} for of in ended for name, _, _ in SOURCES[of]]
        device = "/" in source
        topic = f"spBv1.0/plant/{'D' if device else 'N'}{kind}/{source}"
        line = {"topic": topic, "time": self.time / 1000, "data": {"metrics": read}}
        self.messages.append((topic, self.time, payload.SerializeToString(), line))

    def birth(self, source):
        metrics = [(name, kind, draw()) for name, kind, draw in SOURCES[source]]
        chance.shuffle(metrics)
        spread = chance.choice([1, 1_000_000])
        first = chance.randrange(1_000)
        ended = []
        if source == "press":
            # Its devices have to be born anew.
            ended = [{"name": name, "value": None} for name, _, _ in SOURCES["press/arm"] if "press/arm" in self.alive]
            self.seq = 0
            self.alive.clear()
            self.session += 1
            metrics.append(("bdSeq", 4, self.session))
        for place, (name, _, _) in enumerate(metrics):
            self.aliases[source, name] = first + place * spread
        self.send(source, "BIRTH", metrics)
        self.messages[-1][3]["data"]["metrics"] += ended
        self.alive.add(source)

    def step(self):
        what = chance.random()
        if "press" not in self.alive or what < 0.02:
            # An old will may come after the next birth, and changes nothing.
            late = chance.random() < 0.5 and self.session
            self.birth("press")
            if late:
                alive = set(self.alive)
                self.send("press", "DEATH", [("bdSeq", 4, self.session - 1)], numbered=False)
                self.alive = alive
                self.messages[-1][3]["data"]["metrics"] = []
            return
        if "press/arm" not in self.alive or what < 0.04:
            return self.birth("press/arm")
        if what < 0.05:
            return self.send("press", "DEATH", [("bdSeq", 4, self.session)], numbered=False)
        if what < 0.07:
            return self.send("press/arm", "DEATH", [])
        source = chance.choice(list(SOURCES))
        changed = chance.sample(SOURCES[source], chance.randrange(1, len(SOURCES[source]) + 1))
        values = [(name, kind, None if chance.random() < 0.05 else draw()) for name, kind, draw in changed]
        self.send(source, "DATA", values)


def write(name, messages):
    with open(f"{folder}/{name}", "wb") as file:
        writer = Writer(file)
        writer.start()
        channels = {}
        for topic, time, payload, _ in messages:
            if topic not in channels:
                channels[topic] = writer.register_channel(topic=topic, message_encoding="sparkplug_b", schema_id=0)
            nanos = time * 1_000_000
            writer.add_message(channels[topic], log_time=nanos, publish_time=nanos, data=payload)
        writer.finish()


edge = Edge()
while len(edge.messages) < 600:
    edge.step()
write("whole.mcap", edge.messages)
with open(f"{folder}/lines.jsonl", "w") as file:
    for _, _, _, line in edge.messages:
        file.write(json.dumps(line) + "\n")
# Messages that are numbered and not followed by a birth of the node.
births = ["NBIRTH" in topic or "NDEATH" in topic for topic, _, _, _ in edge.messages]
lost = next(i for i in range(50, 600) if not any(births[i - 3 : i + 5]))
write("lossy.mcap", edge.messages[:lost] + edge.messages[lost + 3 :])
write("headless.mcap", [message for message in edge.messages if "BIRTH" not in message[0]])
