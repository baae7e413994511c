"""Shared by the Zenoh scripts: opens a session."""
import json

import zenoh


def session_arguments(parser):
    parser.add_argument("--mode", choices=["peer", "client", "router"], default="peer")
    parser.add_argument("--connect", action="append", default=[], metavar="ENDPOINT")
    parser.add_argument("--listen", action="append", default=[], metavar="ENDPOINT")
    parser.add_argument("--wait", type=float, help="seconds after which to close a connection that accepts nothing")


def open_session(arguments):
    config = zenoh.Config()
    config.insert_json5("mode", json.dumps(arguments.mode))
    config.insert_json5("scouting/multicast/enabled", "false")
    if arguments.connect:
        config.insert_json5("connect/endpoints", json.dumps(arguments.connect))
    if arguments.listen:
        config.insert_json5("listen/endpoints", json.dumps(arguments.listen))
    if arguments.wait is not None:
        block = "transport/link/tx/queue/congestion_control/block/wait_before_close"
        config.insert_json5(block, str(int(arguments.wait * 1e6)))
    return zenoh.open(config)
