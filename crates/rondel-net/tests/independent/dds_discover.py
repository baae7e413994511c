#!/usr/bin/env python3
"""Subscribes to a topic of DDS with the cyclonedds package, with the type that its publisher describes.

Prints `ready`, the name of the type once a publisher is discovered, and then every sample. Ends with standard input.
"""
import argparse
import sys
import threading
import time

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
from cyclonedds.core import Policy, Qos
from cyclonedds.dynamic import get_types_for_typeid
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

from dds_participant import open_participant, participant_arguments

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("name", help="topic to subscribe to")
parser.add_argument("--timeout", type=float, default=30, help="seconds to wait for a publisher")
participant_arguments(parser)
arguments = parser.parse_args()

participant = open_participant(arguments)
publications = BuiltinDataReader(participant, BuiltinTopicDcpsPublication)
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
print("ready", flush=True)
deadline = time.monotonic() + arguments.timeout
found = None
while not found:
    if time.monotonic() > deadline:
        sys.exit(f"no publisher of {arguments.name} within {arguments.timeout} s")
    found = next((each for each in publications.take(N=100) if each.topic_name == arguments.name), None)
    time.sleep(0.005)
print(found.type_name, flush=True)
described, _ = get_types_for_typeid(participant, found.type_id, duration(seconds=10))
representation = found.qos[Policy.DataRepresentation]
reliable = Policy.Reliability.Reliable(duration(infinite=True))
topic = Topic(participant, arguments.name, described, qos=Qos(representation))
reader = DataReader(participant, topic, qos=Qos(representation, reliable, Policy.History.KeepAll))
while not ended.wait(0.01):
    for sample in reader.take(N=100):
        print(sample, flush=True)
