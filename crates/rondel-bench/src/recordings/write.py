"""Writes bags with MCAP storage: uncompressed, lz4 and zstd, with the same messages on ten topics.

write.py FOLDER MESSAGES
"""

import sys
from pathlib import Path

from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as BagWriter
from rosbags.typesys import Stores, get_typestore

TOPICS = 10
TYPE = "geometry_msgs/msg/TwistStamped"

folder, count = Path(sys.argv[1]), int(sys.argv[2])
store = get_typestore(Stores.ROS2_HUMBLE)
types = store.types
Time, Header = types["builtin_interfaces/msg/Time"], types["std_msgs/msg/Header"]
Vector3, Twist = types["geometry_msgs/msg/Vector3"], types["geometry_msgs/msg/Twist"]

with BagWriter(folder / "source", version=9, storage_plugin=StoragePlugin.MCAP) as bag:
    channels = [bag.add_connection(f"/t{i}", TYPE, typestore=store) for i in range(TOPICS)]
    for number in range(count):
        nanos = number * 1_000_000
        header = Header(Time(nanos // 1_000_000_000, nanos % 1_000_000_000), "base")
        twist = Twist(Vector3(float(number % 50), 0.0, 0.0), Vector3(0.0, 0.0, number / count))
        message = store.serialize_cdr(types[TYPE](header, twist), TYPE)
        bag.write(channels[number % TOPICS], nanos, message)

source = folder / "source" / "source.mcap"
metadata = (folder / "source" / "metadata.yaml").read_text()
for compression in CompressionType:
    name = compression.name.lower()
    (folder / name).mkdir()
    (folder / name / "metadata.yaml").write_text(metadata.replace("source.mcap", f"{name}.mcap"))
    with open(source, "rb") as bag, open(folder / name / f"{name}.mcap", "wb") as out:
        writer = Writer(out, compression=compression, chunk_size=1 << 20)
        writer.start("ros2", "rondel-bench")
        copies = {}
        for schema, channel, message in make_reader(bag).iter_messages():
            if channel.id not in copies:
                copied = writer.register_schema(schema.name, schema.encoding, schema.data)
                copies[channel.id] = writer.register_channel(
                    channel.topic, channel.message_encoding, copied, channel.metadata
                )
            times = message.log_time, message.data, message.publish_time, message.sequence
            writer.add_message(copies[channel.id], *times)
        writer.finish()
