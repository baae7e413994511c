"""Write recordings of a fleet: one MCAP file of some seconds for each robot, some with a planted fault.

  python fleet.py FOLDER [COUNT]
"""

import json
import math
import pathlib
import random
import sys

from mcap.writer import Writer

SECONDS = 30
BEGIN_NS = 1_790_000_000_000_000_000


def messages(robot: int):
    """The messages of a robot: topic, time in ms, fields. Every tenth motor overheats, every eighth robot ignores a command."""
    noise = random.Random(robot)
    speed = 0.0
    for ms in range(0, SECONDS * 1000, 50):
        if ms % 3000 == 0:
            wanted = noise.randrange(1, 10) / 5
            yield "/command", ms, {"speed": wanted}
        ignores = robot % 8 == 3 and 12_000 <= ms < 15_000
        speed = speed if ignores else wanted + (speed - wanted) * 0.5
        yield "/speed", ms, {"value": round(speed + noise.gauss(0, 0.01), 3)}
        heat = 25 if robot % 10 == 7 and ms > 20_000 else 0
        temperature = 60 + 5 * math.sin(ms / 4000) + heat + noise.gauss(0, 0.3)
        yield "/motor", ms, {"temperature": round(temperature, 2), "current": round(5 + noise.gauss(0, 0.5) + heat / 5, 2)}


def write(path: pathlib.Path, robot: int) -> None:
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("object", "jsonschema", b'{"type": "object"}')
        channels = {topic: writer.register_channel(topic, "json", schema) for topic in ("/command", "/speed", "/motor")}
        for topic, ms, fields in messages(robot):
            time = BEGIN_NS + ms * 1_000_000
            writer.add_message(channels[topic], time, json.dumps(fields).encode(), time)
        writer.finish()


def main() -> None:
    folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200
    folder.mkdir(parents=True, exist_ok=True)
    for robot in range(count):
        write(folder / f"robot-{robot:03}.mcap", robot)


if __name__ == "__main__":
    main()
