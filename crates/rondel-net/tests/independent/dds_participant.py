"""Shared by the DDS scripts: the domain, the type, and a QoS that loses nothing."""
from dataclasses import dataclass

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.topic import Topic
from cyclonedds.util import duration

RELIABLE = Qos(Policy.Reliability.Reliable(duration(infinite=True)), Policy.History.KeepAll)


def participant_arguments(parser):
    parser.add_argument("--domain", type=int, default=0)
    parser.add_argument("--interface", default="lo")
    parser.add_argument("--peer", action="append", default=[], metavar="ADDRESS", help="instead of multicast")
    parser.add_argument("--silence", type=float, help="seconds after which others take it for gone")
    parser.add_argument("--type", default="std_msgs::msg::dds_::String_", help="name of the type")


def open_participant(arguments):
    """Returns a participant."""
    peers = "".join(f'<Peer Address="{peer}"/>' for peer in arguments.peer)
    multicast = "<AllowMulticast>false</AllowMulticast>" if peers else ""
    discovery = f"<ParticipantIndex>auto</ParticipantIndex><Peers>{peers}</Peers>" if peers else ""
    if arguments.silence:
        discovery += f"<LeaseDuration>{arguments.silence}s</LeaseDuration>"
    domain = Domain(
        arguments.domain,
        "<CycloneDDS><Domain><General><Interfaces>"
        f'<NetworkInterface name="{arguments.interface}"/></Interfaces>{multicast}</General><Discovery>{discovery}</Discovery></Domain></CycloneDDS>',
    )
    participant = DomainParticipant(arguments.domain)
    # The participant must not outlive its domain.
    participant.rondel_domain = domain
    return participant


def reader_count(writer):
    """Returns how many readers match a writer."""
    while True:
        try:
            return len(writer.get_matched_subscriptions())
        except IndexError:
            # One has come since the package made room for them.
            continue


def open_topic(arguments):
    """Returns a participant and a topic whose type is a structure with one string, `data`."""
    participant = open_participant(arguments)

    @dataclass
    class Text(IdlStruct, typename=arguments.type):
        data: str

    return participant, Topic(participant, arguments.name, Text), Text
