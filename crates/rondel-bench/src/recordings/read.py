"""Reads one field of the messages on three topics of a bag with rosbags, and counts them.

read.py FOLDER
"""

import sys

from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore

store = get_typestore(Stores.ROS2_HUMBLE)
count = wrong = 0
with Reader(sys.argv[1]) as bag:
    wanted = [channel for channel in bag.connections if channel.topic in ("/t0", "/t1", "/t2")]
    for channel, _, data in bag.messages(connections=wanted):
        count += 1
        wrong += store.deserialize_cdr(data, channel.msgtype).twist.linear.x >= 1000
sys.stderr.write(f"{count} messages, {wrong} too fast\n")
