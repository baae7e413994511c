"""Writes a recording with `rosbags`, and the same messages as JSON lines: bag.py FOLDER STORE STORAGE [COMPRESSION].

With the storage ROS1 it is a bag of ROS 1, and an MCAP file with the same messages, which `mcap` writes.
"""

import json
import sys

import numpy
from mcap.writer import Writer as McapWriter
from rosbags import rosbag1
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

folder, store_name, storage = sys.argv[1:4]
store = get_typestore(Stores[store_name])
store.register(get_types_from_msg("float32 LOW=0.25\nfloat32 charge\nstring name", "rover_msgs/msg/Battery"))
types = store.types
Time = types["builtin_interfaces/msg/Time"]
Vector3 = types["geometry_msgs/msg/Vector3"]


def odometry(time, x):
    """A message of 700 bytes, of which one number counts."""
    header = {"stamp": Time(sec=time // 10**9, nanosec=time % 10**9), "frame_id": "odom"}
    if "seq" in {field[0] for field in store.fielddefs["std_msgs/msg/Header"][1]}:
        header["seq"] = 0
    pose = types["geometry_msgs/msg/Pose"](
        position=types["geometry_msgs/msg/Point"](x=x, y=0.0, z=0.0),
        orientation=types["geometry_msgs/msg/Quaternion"](x=0.0, y=0.0, z=0.0, w=1.0),
    )
    twist = types["geometry_msgs/msg/Twist"](linear=Vector3(x=x, y=0.0, z=0.0), angular=Vector3(x=0.0, y=0.0, z=0.0))
    covariance = numpy.zeros(36)
    return types["nav_msgs/msg/Odometry"](
        header=types["std_msgs/msg/Header"](**header),
        child_frame_id="base",
        pose=types["geometry_msgs/msg/PoseWithCovariance"](pose=pose, covariance=covariance),
        twist=types["geometry_msgs/msg/TwistWithCovariance"](twist=twist, covariance=covariance),
    )




class Ros1Writer:
    """Writes a bag of ROS 1, and an MCAP file with the same messages."""

    def __init__(self, compression):
        self.bag = rosbag1.Writer(f"{folder}/ros1.bag")
        if compression:
            self.bag.set_compression(rosbag1.Writer.CompressionFormat[compression])
        self.file = open(f"{folder}/ros1.mcap", "wb")
        self.mcap = McapWriter(self.file)
        self.mcap.start("ros1")

    def __enter__(self):
        self.bag.open()
        return self

    def __exit__(self, *error):
        self.bag.close()
        self.mcap.finish()
        self.file.close()

    def add_connection(self, topic, name, typestore):
        connection = self.bag.add_connection(topic, name, typestore=typestore, latching=int(topic == "/brake"))
        short = name.replace("/msg/", "/")
        schema = self.mcap.register_schema(short, "ros1msg", typestore.generate_msgdef(name)[0].encode())
        return connection, self.mcap.register_channel(topic, "ros1", schema)

    def write(self, connections, time, data):
        self.bag.write(connections[0], time, data)
        self.mcap.add_message(connections[1], time, bytes(data), time)


if storage == "ROS1":
    writer = Ros1Writer(*sys.argv[4:5] or [None])
else:
    writer = Writer(f"{folder}/bag", version=9, storage_plugin=StoragePlugin[storage])
if len(sys.argv) > 4 and storage != "ROS1":
    writer.set_compression(CompressionMode[sys.argv[4]], CompressionFormat.ZSTD)
names = {
    "/odom": "nav_msgs/msg/Odometry",
    "/brake": "std_msgs/msg/Bool",
    "/rover/battery": "rover_msgs/msg/Battery",
    "/noise": "std_msgs/msg/String",
}
with writer, open(f"{folder}/lines.jsonl", "w") as lines:
    connections = {topic: writer.add_connection(topic, name, typestore=store) for topic, name in names.items()}

    def write(topic, time, message, data):
        serialize = store.serialize_ros1 if storage == "ROS1" else store.serialize_cdr
        writer.write(connections[topic], time, serialize(message, names[topic]))
        seconds = f"{time // 10**9}.{time % 10**9:09}"
        lines.write(f'{{"topic":"{topic}","time":{seconds},"data":{json.dumps(data)}}}\n')

    for i in range(300):
        time = 1_700_000_000_000_000_000 + i * 20_000_000
        x = (i * 7 % 50) / 4.0
        write("/odom", time, odometry(time, x), {"twist": {"twist": {"linear": {"x": x}}}})
        if i % 5 == 0:
            pressed = i % 3 == 0
            write("/brake", time + 1, types["std_msgs/msg/Bool"](data=pressed), {"data": pressed})
        if i % 10 == 0:
            charge = 1.0 - i / 256
            battery = types["rover_msgs/msg/Battery"](charge=charge, name="main")
            write("/rover/battery", time + 2, battery, {"charge": charge, "name": "main"})
        write("/noise", time + 3, types["std_msgs/msg/String"](data="x" * 50), {"data": "x" * 50})
