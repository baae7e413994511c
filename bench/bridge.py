#!/usr/bin/env python3
"""Measure the time from a message on DDS to its verdict on DDS, with the monitor on DDS or on Zenoh behind Eclipse's
bridge. An independent client sends a message, waits for its verdict, and sends the next one when it is due. The two
routes take turns, because the load of the machine changes. Everything is on loopback. Prints a Markdown row for each
rate and route.

    bench/bridge.py target/release/rondel deploy/bridge/program/target/release/dds-bridge
"""
import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass

from cyclonedds.core import InstanceState, Policy, Qos, ReadCondition, SampleState, ViewState, WaitSet
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("rondel", help="the command")
parser.add_argument("bridge", help="the bridge, which takes `-c FILE`")
parser.add_argument("--count", type=int, default=1000, help="messages per turn")
parser.add_argument("--turns", type=int, default=5)
parser.add_argument("--rates", type=int, nargs="+", default=[100, 1000], help="messages per second")
parser.add_argument("--domain", type=int, default=93)
arguments = parser.parse_args()

LOOPBACK = '<CycloneDDS><Domain><General><Interfaces><NetworkInterface name="lo"/></Interfaces></General></Domain></CycloneDDS>'
RELIABLE = Qos(Policy.Reliability.Reliable(duration(infinite=True)), Policy.History.KeepAll)
WAYS = {"direct": "DDS", "bridged": "DDS, bridge, Zenoh"}


@dataclass
class Text(IdlStruct, typename="std_msgs::msg::dds_::String_"):
    data: str


class Way:
    """A writer of messages and a reader of verdicts."""

    def __init__(self, participant, name):
        self.writer = DataWriter(participant, Topic(participant, f"{name}/state", Text), qos=RELIABLE)
        self.reader = DataReader(participant, Topic(participant, f"{name}/verdict", Text), qos=RELIABLE)
        self.coming = WaitSet(participant)
        self.coming.attach(ReadCondition(self.reader, SampleState.Any | ViewState.Any | InstanceState.Any))

    def ask(self, limit=10):
        """Return the seconds until the verdict of a message arrives, or None after the limit."""
        start = time.perf_counter()
        self.writer.write(Text(f'{{"n": {start}}}'))
        while time.perf_counter() < start + limit:
            self.coming.wait(duration(milliseconds=100))
            if any(isinstance(sample, Text) for sample in self.reader.take(N=1)):
                return time.perf_counter() - start
        return None


def free_endpoint():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return f"tcp/127.0.0.1:{s.getsockname()[1]}"


def monitor(way, network, *options):
    own = [arguments.rondel, "run", "--formula", "n > 0", "--emit", "every", "--wait-subscribers", "60"]
    return [*own, "--topic", f"{network}:{way}/state", "--publish", f"{network}:{way}/verdict", *options]


# On SIGTERM, leave the exit stack, which ends all started processes.
signal.signal(signal.SIGTERM, lambda *_: exit(1))
with contextlib.ExitStack() as stack:
    folder = stack.enter_context(tempfile.TemporaryDirectory())

    def start(command, **environment):
        log = stack.enter_context(open(os.path.join(folder, f"log{time.monotonic_ns()}"), "w+", encoding="utf-8"))
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **environment})
        stack.callback(process.wait)
        stack.callback(process.terminate)

    domain = Domain(arguments.domain, LOOPBACK)
    participant = DomainParticipant(arguments.domain)
    ways = {name: Way(participant, name) for name in WAYS}
    endpoint = free_endpoint()
    config = os.path.join(folder, "bridge.json5")
    with open(config, "w", encoding="utf-8") as file:
        json.dump(
            {
                "mode": "client",
                "connect": {"endpoints": [endpoint], "timeout_ms": -1, "exit_on_failure": False},
                "scouting": {"multicast": {"enabled": False}},
                "plugins": {"dds": {"domain": arguments.domain, "allow": ["^bridged/"]}},
            },
            file,
        )
    start(monitor("direct", "dds", "--dds-domain", str(arguments.domain), "--dds-interface", "lo"))
    start(monitor("bridged", "zenoh+cdr_string", "--zenoh-mode", "router", "--zenoh-listen", endpoint))
    start([arguments.bridge, "-c", config], CYCLONEDDS_URI=LOOPBACK)
    for name, way in ways.items():
        # The first messages may be sent before the monitor has subscribed.
        while way.ask(limit=2) is None:
            pass
        time.sleep(2)
        way.reader.take(N=1000)

    print("| a second | way | p50 us | p90 us | p99 us | max us |\n|---|---|---|---|---|---|")
    for rate in arguments.rates:
        seen = {name: [] for name in WAYS}
        for _ in range(arguments.turns):
            for name, way in ways.items():
                due = time.perf_counter()
                for _ in range(arguments.count):
                    due = max(due + 1 / rate, time.perf_counter())
                    time.sleep(max(0, due - time.perf_counter()))
                    took = way.ask()
                    if took is None:
                        raise SystemExit(f"a message got no verdict: {WAYS[name]}")
                    seen[name].append(took * 1e6)
        for name, took in seen.items():
            took.sort()
            at = [took[min(len(took) - 1, int(len(took) * part))] for part in (0.5, 0.9, 0.99, 1)]
            print(f"| {rate} | {WAYS[name]} | {' | '.join(f'{value:.0f}' for value in at)} |", flush=True)
