"""Shared by the scripts of ROS 2 over Zenoh: the formats of rmw_zenoh, written from their description."""
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

store = get_typestore(Stores.ROS2_JAZZY)


def ros2_arguments(parser):
    parser.add_argument("topic", help="fully qualified name of the topic")
    parser.add_argument("--type", default="std_msgs/msg/String", help="package/msg/Type")
    parser.add_argument("--definition", help="file with the definition of a type that ROS 2 does not have")
    parser.add_argument("--hash", help="hash of the type; default: the right one")
    parser.add_argument("--domain", type=int, default=0)
    parser.add_argument("--node", default="independent")
    parser.add_argument("--keep", type=int, default=0, help="transient_local, with this depth")


def define(arguments):
    if arguments.definition:
        with open(arguments.definition, encoding="utf-8") as file:
            store.register(get_types_from_msg(file.read(), arguments.type))


def dds_type(name):
    package, kind, own = name.split("/")
    return f"{package}::{kind}::dds_::{own}_"


def hash_of(arguments):
    return arguments.hash or store.hash_rihs01(arguments.type)


def data_key(arguments):
    return "/".join([str(arguments.domain), arguments.topic.strip("/"), dds_type(arguments.type), hash_of(arguments)])


def token_key(session, kind, arguments, number=1):
    """The token of the node (NN), a publisher (MP) or a subscription (MS)."""
    zid = str(session.info.zid())
    key = f"@ros2_lv/{arguments.domain}/{zid}/0/{0 if kind == 'NN' else number}/{kind}/%/%/{arguments.node}"
    if kind == "NN":
        return key
    qos = f":1:,{arguments.keep}:,:,:,," if arguments.keep else "::,10:,:,:,,"
    return "/".join([key, arguments.topic.replace("/", "%"), dds_type(arguments.type), hash_of(arguments), qos])
