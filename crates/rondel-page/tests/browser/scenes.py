"""States for the fake server: a fleet of robots for pictures and behaviour, a large one for load, hostile names for safety."""

import dataclasses
import math
import random
from collections.abc import Callable

HISTORY = 1800  # seconds that are kept
VERDICTS = ["satisfied", "violated", "inconclusive", None]


@dataclasses.dataclass
class Signal:
    name: str
    at: Callable[[float], object]
    kind: str = "number"
    thresholds: tuple = ()


@dataclasses.dataclass
class Property:
    name: str
    text: str
    severity: str = ""
    requirement: str = ""
    networks: tuple = ("zenoh",)
    parameters: tuple = ()
    signals: list = dataclasses.field(default_factory=list)
    robustness: Callable[[float], float] | None = None
    times: list = dataclasses.field(default_factory=list)
    verdicts: list = dataclasses.field(default_factory=list)
    instances: list = dataclasses.field(default_factory=list)  # [parameters, verdict, since]
    because_of: str | None = None
    acknowledged_by: str | None = None
    silenced: float | None = None
    count: int = 0

    @property
    def verdict(self):
        return VERDICTS[self.verdicts[-1]]

    def add(self, time, verdict):
        number = VERDICTS.index(verdict)
        if self.verdicts and self.verdicts[-1] == number:
            return
        self.times.append(time)
        self.verdicts.append(number)
        self.count += verdict == "violated"


@dataclasses.dataclass
class Scene:
    name: str
    specification: str
    properties: dict
    topics: list
    losses: list
    messages: dict
    changes_per_second: int = 0
    incidents: list = dataclasses.field(default_factory=list)
    silences: list = dataclasses.field(default_factory=list)
    actions: list = dataclasses.field(default_factory=list)


def topic(name, address, type_, frequency, length, **more):
    row = {"name": name, "address": address, "network": "zenoh", "type": type_, "messages": int(frequency * 5000), "rate": frequency, "bytes_per_second": frequency * length, "size": length,
           "age": 0.4 / frequency if frequency else None, "late": 0, "lost": 0, "undecodable": 0, "publishers": None}
    return {**row, **more}


def follow(prop, now, is_violated, step=0.25, blind=()):
    """Verdicts of a property from a condition over the last half hour; inconclusive while the monitor was blind."""
    count = int(HISTORY / step)
    for i in range(count + 1):
        time = now - HISTORY + i * step
        hidden = any(begin <= time < end + 4 for begin, end in blind)
        prop.add(time, "inconclusive" if hidden else "violated" if is_violated(time) else "satisfied")


def fleet(now):
    """A fleet of robots in a warehouse."""
    blind = [(now - 312, now - 289), (now - 1210, now - 1188)]

    def speed(t):
        burst = 1.15 * math.exp(-(((t - now + 214) % 443 - 30) / 9) ** 2)
        return 1.25 + 0.45 * math.sin(t / 17) + 0.22 * math.sin(t / 5.3) + burst + 0.03 * math.sin(t * 7.1)

    def distance(t):
        return 1.1 + 0.55 * math.sin(t / 23 + 1) + 0.3 * math.sin(t / 7) - 0.32 * math.exp(-(((t - now + 61) / 14) ** 2))

    def load(t):
        return ["empty", "pallet", "pallet", "crate"][int(t / 41) % 4]

    battery = lambda t: 61 - (t - now) / 130 + 0.2 * math.sin(t / 3)
    brake = lambda t: speed(t) > 2.0 and math.sin(t / 3) > -0.6
    speed_signal = Signal("velocity.speed", speed, thresholds=(2.4,))
    brake_signal = Signal("brake.pressed", brake, "boolean")
    distance_signal = Signal("scan.distance", distance, thresholds=(0.3,))
    declared = [
        (Property("keep_distance", "@severity(critical)\n@requirement(\"SAF-012\")\n@robust\nproperty keep_distance for each robot in scan.robot =\n    velocity.speed > 0.2 -> scan.distance >= 0.3", "critical", "SAF-012",
                  parameters=("robot",), signals=[distance_signal, speed_signal], robustness=lambda t: distance(t) - 0.3), lambda t: distance(t) < 0.3),
        (Property("speed_limit", "// Robots never drive faster than 2.4 m/s between the racks.\n@severity(critical)\n@requirement(\"SAF-003\")\n@robust\nproperty speed_limit =\n    velocity.speed <= 2.4 or brake.pressed and load.kind == \"empty\"", "critical", "SAF-003",
                  signals=[speed_signal, brake_signal, Signal("load.kind", load, "text")], robustness=lambda t: 2.4 - speed(t)), lambda t: speed(t) > 2.4),
        (Property("brake_before_reverse", "@severity(critical)\n@requirement(\"SAF-007\")\nproperty brake_before_reverse =\n    rising(gear.report == REVERSE) -> once[0, 2 s] brake.pressed", "critical", "SAF-007", signals=[brake_signal]), lambda t: False),
        (Property("lidar_alive", "@severity(error)\n@requirement(\"SYS-031\")\nproperty lidar_alive = age(scan) < 250 ms", "error", "SYS-031", ("zenoh", "dds"), signals=[Signal("age(scan)", lambda t: 0.08 + 0.03 * math.sin(t), thresholds=(0.25,))]), lambda t: now - 760 < t < now - 748),
        (Property("docking_finishes", "@severity(error)\n@requirement(\"OPS-104\")\nproperty docking_finishes for each robot in dock.robot =\n    on(dock.request) -> eventually[0, 30 s] dock.done", "error", "OPS-104", parameters=("robot",)), lambda t: now - 95 < t < now - 12),
        (Property("task_granted_once", "@severity(error)\nproperty task_granted_once for each id in (request.id, grant.id) =\n    on(grant) -> once[0, 10 s] on(request)", "error", "OPS-101", ("mqtt",), ("id",)), lambda t: False),
        (Property("battery_sufficient", "@severity(warning)\n@requirement(\"OPS-020\")\n@robust\nproperty battery_sufficient for each robot in battery.robot =\n    battery.charge >= 15.0 or dock.connected", "warning", "OPS-020", ("mqtt",), ("robot",), [Signal("battery.charge", battery, thresholds=(15.0,))], lambda t: battery(t) - 15), lambda t: False),
        (Property("motor_temperature", "@severity(warning)\nproperty motor_temperature for each joint in joints.name =\n    joints.temperature < 80.0", "warning", "", ("dds",), ("joint",), [Signal("joints.temperature", lambda t: 58 + 6 * math.sin(t / 60), thresholds=(80.0,))]), lambda t: False),
        (Property("localisation_confident", "@severity(warning)\n@requirement(\"SYS-044\")\nproperty localisation_confident = stable(pose.covariance < 0.05) for 2 s", "warning", "SYS-044", ("dds",), signals=[Signal("pose.covariance", lambda t: 0.02 + 0.012 * math.sin(t / 11) + 0.04 * math.exp(-(((t - now + 520) / 12) ** 2)), thresholds=(0.05,))]), lambda t: now - 534 < t < now - 506),
        (Property("command_latency", "@severity(warning)\nchain command_latency = plan -> control -> motor within 80 ms", "warning", "SYS-050", ("dds",), signals=[Signal("latency", lambda t: 0.031 + 0.012 * abs(math.sin(t / 2)), thresholds=(0.08,))]), lambda t: False),
        (Property("door_closed_while_moving", "@severity(info)\nproperty door_closed_while_moving = velocity.speed > 0.1 -> not door.open", "info", "", ("mqtt",), signals=[speed_signal, Signal("door.open", lambda t: math.sin(t / 31) > 0.97, "boolean")]), lambda t: False),
        (Property("lights_follow_hazard", "@severity(info)\nproperty lights_follow_hazard = hazard.on -> eventually[0, 1 s] lights.blinking", "info", "OPS-201", ("mqtt",)), lambda t: False),
        (Property("clock_monotonic", "property clock_monotonic = clock.stamp >= previously clock.stamp", "", "SYS-002", ("dds",)), lambda t: False),
        (Property("emergency_stop_obeyed", "@severity(critical)\n@requirement(\"SAF-001\")\nproperty emergency_stop_obeyed =\n    emergency.pressed -> eventually[0, 500 ms] velocity.speed == 0.0", "critical", "SAF-001", signals=[Signal("emergency.pressed", lambda t: False, "boolean"), speed_signal]), lambda t: False),
    ]
    properties = {}
    shaded = {"keep_distance", "speed_limit", "door_closed_while_moving", "emergency_stop_obeyed"}
    for prop, condition in declared:
        follow(prop, now, condition, blind=blind if prop.name in shaded else ())
        properties[prop.name] = prop
    properties["keep_distance"].add(now - 42, "violated")
    properties["docking_finishes"].add(now - 96, "violated")
    properties["docking_finishes"].verdicts[-1:] = [1]
    properties["docking_finishes"].acknowledged_by = "night shift"
    properties["motor_temperature"].add(now - 21, "inconclusive")
    properties["emergency_stop_obeyed"].times, properties["emergency_stop_obeyed"].verdicts = [now - HISTORY], [3]
    for name, key, size in [("keep_distance", "robot", 48), ("docking_finishes", "robot", 48), ("battery_sufficient", "robot", 48), ("task_granted_once", "id", 3120), ("motor_temperature", "joint", 6)]:
        prop = properties[name]
        names = ["shoulder", "elbow", "wrist", "hip", "knee", "ankle"]
        prop.instances = [[{key: names[i] if key == "joint" else i + 1}, "satisfied", now - 400 - 7 * i] for i in range(size)]
    properties["keep_distance"].instances[6][1:] = ["violated", now - 42]
    properties["keep_distance"].instances[30][1:] = ["violated", now - 17]
    properties["docking_finishes"].instances[11][1:] = ["violated", now - 96]
    properties["motor_temperature"].instances[4][1:] = ["inconclusive", now - 21]
    lines = ["// Requirements of the fleet, release 4.2.", "", 'topic velocity "fleet/{robot}/velocity" { speed: float }     // m/s', 'topic scan     "fleet/{robot}/scan"     { distance: float }  // m', 'topic brake    "fleet/{robot}/brake"    { pressed: bool }',
             'topic gear     "fleet/{robot}/gear"     { report: int }', 'topic load     "fleet/{robot}/load"     { kind: string }', 'topic battery  "fleet/{robot}/battery"  { charge: float }    // percent', 'topic dock     "fleet/{robot}/dock"     { request: bool, done: bool, connected: bool }', "", "const REVERSE = 20", ""]
    text = "\n".join(lines) + "\n" + "\n\n".join(prop.text for prop in properties.values()) + "\n"
    topics = [topic("velocity", "fleet/*/velocity", "JSON", 480.2, 182), topic("scan", "fleet/*/scan", "sensor_msgs/msg/LaserScan", 719.4, 5902, lost=211, late=3), topic("brake", "fleet/*/brake", "JSON", 96.1, 44),
              topic("gear", "fleet/*/gear", "JSON", 4.8, 41), topic("load", "fleet/*/load", "JSON", 1.2, 66, undecodable=2), topic("battery", "plant/battery", "CBOR", 48.0, 58, network="mqtt"), topic("dock", "plant/dock", "JSON", 3.1, 95, network="mqtt"),
              topic("joints", "/joint_states", "sensor_msgs/msg/JointState", 100.0, 512, network="dds", age=21.4, rate=0.0), topic("pose", "/localisation/pose", "geometry_msgs/msg/PoseWithCovarianceStamped", 50.1, 392, network="dds"), topic("emergency", "fleet/*/emergency", "JSON", 0, 0, rate=None, size=None, bytes_per_second=None, age=None, messages=0)]
    losses = [{"reason": "lost", "subject": "scan", "count": 138, "from": blind[0][0], "until": blind[0][1], "is_blind": True}, {"reason": "network outage", "subject": "scan", "count": 73, "from": blind[1][0], "until": blind[1][1], "is_blind": True},
              {"reason": "late", "subject": "scan", "count": 3, "from": now - 300.2, "until": now - 299.7, "is_blind": True}, {"reason": "queue full", "subject": "kafka", "count": 41, "from": now - 640, "until": now - 628, "is_blind": False}]
    messages = {"velocity": {"robot": 7, "speed": 1.482, "header": {"stamp": {"sec": int(now), "nanosec": 250_000_000}, "frame_id": "base_link"}}, "scan": {"robot": 31, "header": {"frame_id": "lidar_front"}, "distance": 0.274, "ranges": [round(1 + 0.4 * math.sin(i / 9), 3) for i in range(256)], "is_valid": True, "intensities": []}}
    silences = [{"id": 3, "property": "lights_follow_hazard", "parameters": {}, "from": now - 900, "until": now + 5400, "set_by": "day shift", "comment": "lights are being replaced"}]
    actions = [{"id": 8, "at": now - 61, "operator": "night shift", "kind": "ack", "members": {"violation": 41, "property": "docking_finishes"}}, {"id": 7, "at": now - 900, "operator": "day shift", "kind": "silence", "members": {"property": "lights_follow_hazard"}}]
    return Scene("warehouse", text, properties, topics, losses, messages, 3, silences=silences, actions=actions)


def large(now, properties=1000, instances=100, changes_per_second=10):
    """Many properties with many instances; verdicts change all the time."""
    random_ = random.Random(7)
    table = {}
    for i in range(properties):
        prop = Property(f"property_{i:04}", f"property property_{i:04} for each robot in t{i % 40}.robot = t{i % 40}.value < {i}.0", ["critical", "error", "warning", "info", ""][i % 5], f"REQ-{i % 200:03}", (["zenoh", "dds", "mqtt"][i % 3],), ("robot",),
                        [Signal(f"t{i % 40}.value", lambda t, i=i: i + math.sin(t + i), thresholds=(float(i),))])
        time = now - HISTORY
        verdict = "satisfied"
        while time < now:
            prop.add(time, verdict)
            verdict = random_.choice(["satisfied", "satisfied", "violated", "inconclusive"])
            time += random_.expovariate(1 / 120)
        if random_.random() < 0.9:
            prop.add(now - 1, "satisfied")
        prop.instances = [[{"robot": j}, "satisfied", now - 100 - j] for j in range(instances)]
        if prop.verdict != "satisfied":
            prop.instances[i % instances][1] = prop.verdict
        table[prop.name] = prop
    text = "\n".join(p.text for p in table.values())
    topics = [topic(f"t{i}", f"fleet/*/t{i}", "JSON", 250.0, 90) for i in range(40)]
    return Scene("load", text, table, topics, [], {}, changes_per_second)


HOSTILE = [
    "<img src=x onerror=\"window.hacked='img'\">",
    "<script>window.hacked='script'</script>",
    "\"><svg onload=window.hacked='svg'>",
    "javascript:window.hacked='href'",
    "'+alert(1)+'",
    "{{constructor.constructor('window.hacked=1')()}}",
    "__proto__",
    "constructor",
    "a/b?c=d#e&f%20%2e%2e/",
    "‮gnirts desrever",
    "line\nbreak\ttab\u0000null",
    "long" * 500,
    "💥" * 20,
]


def hostile(now):
    """Names, texts and values that try to become markup, code or another address."""
    table = {}
    for i, name in enumerate(HOSTILE):
        prop = Property(name, f"property {name} = {name}", HOSTILE[i % 3], name, (name[:30],), (name,), [Signal(name, lambda t, name=name: name, "text"), Signal("__proto__", lambda t: t % 5)], acknowledged_by=name)
        prop.times, prop.verdicts, prop.count = [now - 900, now - 30], [0, 1], 1
        prop.instances = [[{name: name, "__proto__": name}, "violated", now - 30]]
        prop.because_of = name
        table[name] = prop
    topics = [topic(name, name, name, 10.0, 100) for name in HOSTILE]
    losses = [{"reason": name, "subject": name, "count": 1, "from": now - 50, "until": now - 40, "is_blind": True} for name in HOSTILE]
    messages = {name: {name: name, "nested": {"<b>": [name, {"__proto__": name}]}, "huge": name * 3} for name in HOSTILE}
    silences = [{"id": 1, "property": HOSTILE[0], "parameters": {HOSTILE[0]: HOSTILE[1]}, "from": now, "until": 9e15, "set_by": HOSTILE[0], "comment": HOSTILE[2]}]
    actions = [{"id": 1, "at": now, "operator": HOSTILE[0], "kind": "ack", "members": {HOSTILE[1]: HOSTILE[0]}}]
    return Scene(HOSTILE[0], "\n".join(HOSTILE), table, topics, losses, messages, silences=silences, actions=actions)
