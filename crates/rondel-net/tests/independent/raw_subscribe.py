#!/usr/bin/env python3
"""Prints the messages of topics as they are on the network: a line `TOPIC HEX` for each.

`zenoh KEY…` prints payloads, with --attachment also what is attached, in hexadecimal digits behind them. `dds TOPIC…` knows
no type: it builds each from the description that the publisher announces, reads samples by it, and prints them serialised
again; first it prints `type TOPIC NAME`. Prints `ready` when subscribed. Ends after COUNT messages, with exit status 1 if
there were fewer when nothing came for QUIET seconds.
"""
import argparse
import sys
import threading
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("network", choices=["zenoh", "dds"])
parser.add_argument("topics", nargs="+")
parser.add_argument("--count", type=int, required=True)
parser.add_argument("--quiet", type=float, default=30)
parser.add_argument("--attachment", action="store_true")
parser.add_argument("--connect", action="append", default=[])
parser.add_argument("--domain", type=int, default=0)
parser.add_argument("--interface", default="lo")
arguments = parser.parse_args()

received = 0
last = time.monotonic()
lock = threading.Lock()


def show(topic, payload, more=""):
    global received, last
    # Several threads of Zenoh call it.
    with lock:
        received += 1
        last = time.monotonic()
        sys.stdout.write(f"{topic} {bytes(payload).hex()} {more}\n")
        sys.stdout.flush()


def over():
    return received >= arguments.count or time.monotonic() - last > arguments.quiet


def zenoh_messages():
    import json
    import zenoh

    config = zenoh.Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("connect/endpoints", json.dumps(arguments.connect))
    config.insert_json5("scouting/multicast/enabled", "false")
    with zenoh.open(config) as session:

        def on_sample(sample):
            attached = sample.attachment.to_bytes().hex() if arguments.attachment and sample.attachment else ""
            show(sample.key_expr, sample.payload.to_bytes(), attached)

        subscribers = [session.declare_subscriber(key, on_sample) for key in arguments.topics]
        print("ready", flush=True)
        while not over():
            time.sleep(0.05)
        del subscribers


def dds_messages():
    from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
    from cyclonedds.core import Policy, Qos
    from cyclonedds.dynamic import get_types_for_typeid
    from cyclonedds.sub import DataReader
    from cyclonedds.topic import Topic
    from cyclonedds.util import duration

    from dds_participant import open_participant

    arguments.peer, arguments.silence = [], None
    participant = open_participant(arguments)
    publications = BuiltinDataReader(participant, BuiltinTopicDcpsPublication)
    waiting, readers = set(arguments.topics), []
    print("ready", flush=True)
    while not over():
        for publication in publications.take(N=100) if waiting else []:
            topic = getattr(publication, "topic_name", None)
            if topic not in waiting or publication.type_id is None:
                continue
            waiting.remove(topic)
            kind, _ = get_types_for_typeid(participant, publication.type_id, duration(seconds=10))
            print("type", topic, publication.type_name, flush=True)
            qos = Qos(Policy.Reliability.Reliable(duration(infinite=True)), Policy.History.KeepAll)
            readers.append((topic, DataReader(participant, Topic(participant, topic, kind), qos=qos)))
        for topic, reader in readers:
            for sample in reader.take(N=256):
                if hasattr(sample, "serialize"):
                    show(topic, sample.serialize(use_version_2=False))
        time.sleep(0.005)


{"zenoh": zenoh_messages, "dds": dds_messages}[arguments.network]()
print(f"received {received}", flush=True)
sys.exit(received < arguments.count)
