#!/usr/bin/env python3
"""A server of std_srvs/srv/SetBool in the form of rmw_cyclonedds, with the cyclonedds package.

Requests and replies begin with the client and the number of the request. Prints `ready`, `matched` once a client has
discovered it, and for each request `request DATA NUMBER`. Ends with standard input.
"""
import argparse
import select
import sys
from dataclasses import dataclass

from cyclonedds.core import Policy, Qos
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import int64, uint64
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

from dds_participant import open_participant, participant_arguments, reader_count

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("service", help="fully qualified name of the service")
parser.add_argument("--answer", choices=["yes", "no", "none"], default="yes")
participant_arguments(parser)
arguments = parser.parse_args()


@dataclass
class Request(IdlStruct, typename="std_srvs.srv.dds_.SetBool_Request_"):
    client: uint64
    number: int64
    data: bool


@dataclass
class Response(IdlStruct, typename="std_srvs.srv.dds_.SetBool_Response_"):
    client: uint64
    number: int64
    success: bool
    message: str


qos = Qos(Policy.Reliability.Reliable(duration(seconds=1)), Policy.History.KeepLast(10))
participant = open_participant(arguments)
requests = DataReader(participant, Topic(participant, f"rq{arguments.service}Request", Request), qos=qos)
replies = DataWriter(participant, Topic(participant, f"rr{arguments.service}Reply", Response), qos=qos)
print("ready", flush=True)
is_matched = False
while not select.select([sys.stdin], [], [], 0.01)[0]:
    if not is_matched and reader_count(replies) > 0:
        is_matched = True
        print("matched", flush=True)
    for request in requests.take(N=10):
        print(f"request {request.data} {request.number}", flush=True)
        # One to another client comes first.
        replies.write(Response(client=request.client ^ 1, number=request.number, success=False, message="other"))
        is_done = arguments.answer == "yes"
        if arguments.answer != "none":
            message = "stopped" if is_done else "no brake"
            replies.write(Response(request.client, request.number, is_done, message))
