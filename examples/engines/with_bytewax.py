"""Check a stream of messages with Bytewax, a monitor for each robot.

  python -m bytewax.run "with_bytewax:flow('fleet.rondel', 'recordings')"

For each further process, on this or on another machine: -i NUMBER -a HOST:PORT;HOST:PORT
"""

import json
import pathlib
from collections.abc import Iterator

import bytewax.operators as op
from bytewax.connectors.stdio import StdOutSink
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition, batch
from bytewax.operators import StatefulLogic
from mcap.reader import make_reader

import rondel


class Messages(StatelessSourcePartition):
    """The messages of recordings in the place of a stream: robot, topic, time, payload."""

    def __init__(self, paths: list[pathlib.Path]) -> None:
        self.batches = batch((row for path in paths for row in self.rows(path)), 100)

    def rows(self, path: pathlib.Path) -> Iterator[tuple]:
        with path.open("rb") as file:
            for _, channel, message in make_reader(file).iter_messages():
                yield path.stem, (channel.topic, message.log_time, message.data)

    def next_batch(self) -> list[tuple]:
        return next(self.batches)


class Recordings(DynamicSource):
    """A share of the recordings for each worker."""

    def __init__(self, folder: str) -> None:
        self.paths = sorted(pathlib.Path(folder).glob("*.mcap"))

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Messages:
        return Messages(self.paths[worker_index::worker_count])


class Watch(StatefulLogic):
    """The monitor of a robot. Its snapshots are those of the dataflow."""

    def __init__(self, text: str, state: bytes | None) -> None:
        options = {"emit": "violations"}
        self.monitor = rondel.Monitor.restore(text, state, **options) if state else rondel.Monitor(text, **options)

    def on_item(self, value: tuple[str, int, bytes]) -> tuple[list, bool]:
        topic, stamp, payload = value
        return self.monitor.push(topic, payload, time_ns=stamp), StatefulLogic.RETAIN

    def on_eof(self) -> tuple[list, bool]:
        # A monitor that is finished has no snapshot.
        return self.monitor.finish(), StatefulLogic.DISCARD

    def snapshot(self) -> bytes:
        return self.monitor.snapshot()


def flow(specification: str, folder: str) -> Dataflow:
    text = pathlib.Path(specification).read_text()
    fleet = Dataflow("fleet")
    messages = op.input("messages", fleet, Recordings(folder))
    violations = op.stateful("monitors", messages, lambda state: Watch(text, state))
    rows = op.map("rows", violations, lambda row: json.dumps({"recording": row[0], **json.loads(row[1].json())}))
    op.output("output", rows, StdOutSink())
    return fleet
