"""Writes a bag of a healthy robot with `rosbags`: robot_bag.py FOLDER SEED STORAGE SECONDS SILENCE.

SILENCE is the second at which /odom is silent for 600 ms, or 0.
"""

import math
import random
import sys

import numpy
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

folder, seed, storage, seconds, silence = sys.argv[1:]
seconds, silence = float(seconds), float(silence)
chance = random.Random(int(seed))
store = get_typestore(Stores.ROS2_JAZZY)
START = 1_700_000_000


def message(name, **members):
    """A message with these members; all others are zero or empty."""
    for member, (kind, of) in store.fielddefs[name][1]:
        if member not in members:
            members[member] = empty(int(kind), of)
    return store.types[name](**members)


def empty(kind, of):
    """The value of a member that is not set: 1 is a base type, 2 another message, 3 an array, 4 a sequence."""
    if kind == 1:
        return {"string": "", "bool": False}.get(of[0], 0.0 if "float" in of[0] else 0)
    if kind == 2:
        return message(of)
    (element, inner), size = of
    count = size if kind == 3 else 0
    if int(element) == 1 and inner[0] != "string":
        return numpy.zeros(count, dtype=inner[0])
    return [empty(int(element), inner) for _ in range(count)]


def noise(size):
    return chance.gauss(0, size)


def header(time, frame):
    stamp = message("builtin_interfaces/msg/Time", sec=START + int(time), nanosec=int(time % 1 * 1e9))
    return message("std_msgs/msg/Header", stamp=stamp, frame_id=frame)


def vector(x, y, z):
    return message("geometry_msgs/msg/Vector3", x=x, y=y, z=z)


def odometry(time):
    yaw = math.remainder(time * 0.1, math.tau)
    orientation = message("geometry_msgs/msg/Quaternion", z=math.sin(yaw / 2), w=math.cos(yaw / 2))
    position = message("geometry_msgs/msg/Point", x=5 * math.sin(yaw), y=5 - 5 * math.cos(yaw))
    pose = message("geometry_msgs/msg/Pose", position=position, orientation=orientation)
    speed = 0.5 + 0.1 * math.sin(time) + noise(0.005)
    twist = message("geometry_msgs/msg/Twist", linear=vector(speed, 0.0, 0.0), angular=vector(0.0, 0.0, 0.1 + noise(0.002)))
    return message(
        "nav_msgs/msg/Odometry",
        header=header(time, "odom"),
        child_frame_id="base_link",
        pose=message("geometry_msgs/msg/PoseWithCovariance", pose=pose),
        twist=message("geometry_msgs/msg/TwistWithCovariance", twist=twist),
    )


def battery(time):
    return message(
        "sensor_msgs/msg/BatteryState",
        header=header(time, ""),
        voltage=24.0 - time * 1e-4 + noise(0.01),
        percentage=0.8 - time * 1e-5,
        current=-2.0 + noise(0.1),
        charge=math.nan,
        temperature=30.0 + time * 0.002 + noise(0.05),
        power_supply_status=2,
        present=True,
    )


def scan(time):
    ranges = [2 + math.sin(beam / 20 + time * 0.1) + noise(0.01) for beam in range(90)]
    ranges[chance.randrange(90)] = math.inf
    return message(
        "sensor_msgs/msg/LaserScan",
        header=header(time, "laser"),
        range_min=0.12,
        range_max=12.0,
        ranges=numpy.array(ranges, dtype=numpy.float32),
    )


def imu(time):
    return message(
        "sensor_msgs/msg/Imu",
        header=header(time, "imu"),
        orientation=message("geometry_msgs/msg/Quaternion", w=1.0),
        angular_velocity=vector(noise(0.01), noise(0.01), 0.1 + noise(0.01)),
        linear_acceleration=vector(noise(0.1), noise(0.1), 9.81 + noise(0.1)),
    )


TOPICS = [
    ("/odom", "nav_msgs/msg/Odometry", 0.02, odometry),
    ("/battery_state", "sensor_msgs/msg/BatteryState", 1.0, battery),
    ("/scan", "sensor_msgs/msg/LaserScan", 0.1, scan),
    ("/imu/data", "sensor_msgs/msg/Imu", 0.02, imu),
]

rows = []
for name, kind, period, made in TOPICS:
    for number in range(int(seconds / period)):
        time = number * period + chance.random() * period * 0.2
        if name != "/odom" or not silence or not silence <= time < silence + 0.6:
            rows.append((time, name, kind, made(time)))
rows.sort(key=lambda row: row[0])
with Writer(folder, version=9, storage_plugin=StoragePlugin[storage]) as writer:
    connections = {name: writer.add_connection(name, kind, typestore=store) for name, kind, *_ in TOPICS}
    for time, name, kind, data in rows:
        writer.write(connections[name], int((START + time) * 1e9), store.serialize_cdr(data, kind))
