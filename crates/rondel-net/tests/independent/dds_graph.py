#!/usr/bin/env python3
"""Prints the nodes of ROS 2 on DDS with the cyclonedds package, by a definition of its own, as lines of JSON.

A line has the node, and the topics of its readers and writers, found by their ids among the discovered endpoints of the
same participant. It is printed when it changes; an id that is not discovered within 30 s is an error. Ends with standard
input.
"""
import argparse
import json
import select
import sys
import time
from dataclasses import dataclass

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication, BuiltinTopicDcpsSubscription
from cyclonedds.core import Policy, Qos
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import array, sequence, uint8
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

from dds_participant import open_participant, participant_arguments


@dataclass
class Gid(IdlStruct, typename="rmw_dds_common::msg::dds_::Gid_"):
    data: array[uint8, 16]


@dataclass
class Node(IdlStruct, typename="rmw_dds_common::msg::dds_::NodeEntitiesInfo_"):
    node_namespace: str
    node_name: str
    reader_gid_seq: sequence[Gid]
    writer_gid_seq: sequence[Gid]


@dataclass
class Participant(IdlStruct, typename="rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_"):
    gid: Gid
    node_entities_info_seq: sequence[Node]


parser = argparse.ArgumentParser(description=__doc__)
participant_arguments(parser)
arguments = parser.parse_args()
participant = open_participant(arguments)
qos = Qos(Policy.Reliability.Reliable(duration(seconds=1)), Policy.Durability.TransientLocal, Policy.History.KeepAll)
reader = DataReader(participant, Topic(participant, "ros_discovery_info", Participant), qos=qos)
discovered = [
    BuiltinDataReader(participant, BuiltinTopicDcpsSubscription),
    BuiltinDataReader(participant, BuiltinTopicDcpsPublication),
]
endpoints, latest, printed = {}, {}, {}
print("ready", flush=True)
pending_since = time.monotonic()
while not select.select([sys.stdin], [], [], 0.05)[0]:
    for each in discovered:
        for sample in each.take(N=100):
            if sample.sample_info.valid_data:
                endpoints[sample.key.bytes] = (sample.topic_name, sample.participant_key.bytes)
    for sample in reader.take(N=100):
        if isinstance(sample, Participant):
            latest[bytes(sample.gid.data)] = sample
            pending_since = time.monotonic()
    for gid, sample in latest.items():
        for node in sample.node_entities_info_seq:
            ids = [[bytes(one.data) for one in all] for all in (node.reader_gid_seq, node.writer_gid_seq)]
            if any(one not in endpoints for all in ids for one in all):
                if time.monotonic() > pending_since + 30:
                    sys.exit(f"an id of {node.node_name} is none of an endpoint")
                continue
            if any(endpoints[one][1] != gid for all in ids for one in all):
                sys.exit(f"an endpoint of {node.node_name} belongs to another participant")
            name = node.node_namespace.rstrip("/") + "/" + node.node_name
            readers, writers = ([endpoints[one][0] for one in all] for all in ids)
            line = json.dumps({"node": name, "readers": sorted(readers), "writers": sorted(writers)})
            if printed.get(name) != line:
                printed[name] = line
                print(line, flush=True)
