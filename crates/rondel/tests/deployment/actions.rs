//! The section `actions`.

use super::support::{Folder, rondel};
use super::{accepted, refused};

/// The start of a deployment of `vehicle.rondel`, of two lines.
const START: &str = "specification: vehicle.rondel\nzenoh: {}\n";

fn actions(text: &str) -> String {
    format!("{START}actions:\n{text}")
}

#[test]
fn actions_are_shown() {
    let text = actions(
        "  - publish: { to: zenoh:alarm, message: { property: \"{property}\", speed: \"{speed.value}\" } }\n\
         \x20 - { on: change, properties: [slow], publish: { to: \"mqtt:a\", message: \"{verdict}\", encoding: plain } }\n\
         \x20 - { publish: { to: dds:alarm, type: std_msgs/msg/Float64, message: { data: \"{speed.value}\" } }, properties: slow }\n\
         \x20 - { publish: { to: \"ros2+json:/alarm\", message: [1, 2.5, null] }, limit: { per_minute: 60, total: 1000 } }\n\
         \x20 - { call: { service: ros2:/stop, type: std_srvs/Trigger }, timeout: 200 ms }\n\
         \x20 - { run: [sh, -c, \"echo $RONDEL_PROPERTY {{}}\"], limit: { total: 1 } }\n\
         \x20 - { severity: warning, publish: { to: zenoh:severe, message: \"{property}\" } }\n",
    );
    let warnings = accepted(
        &text,
        &[
            "action",
            "publish zenoh:alarm",
            "publish mqtt+plain:a",
            "change",
            "call ros2:/stop",
            "60 a minute, 1,000 in all",
            "60 a minute, 1 in all",
        ],
    );
    assert!(warnings.contains("`rondel run --allow-run`"), "{warnings}");
}

#[test]
fn mistakes_of_actions_name_the_place() {
    for (action, place, words) in [
        ("  - { on: violated }", "4:5", &["one of `publish`, `run` and `call`"][..]),
        ("  - { run: [a], call: {} }", "4:5", &["one of"]),
        ("  - { on: violation, run: [a] }", "4:11", &["violated, satisfied, inconclusive or change"]),
        ("  - { properties: slwo, run: [a] }", "4:19", &["'slwo'", "did you mean 'slow'"]),
        ("  - { severity: critical, run: [a] }", "4:17", &["no property has at least the severity critical"]),
        ("  - { severity: urgent, run: [a] }", "4:17", &["info, warning, error or critical"]),
        ("  - { when: violated, run: [a] }", "4:7", &["`on: violated`"]),
        ("  - { run: [a], limit: { per_minute: 0 } }", "4:38", &["per_minute", "1 to 60000"]),
        ("  - { run: [a], timeout: 10 }", "4:26", &["no unit"]),
        ("  - { run: [a], timeout: 2 h }", "4:26", &["10 ms to 1 h"]),
        ("  - { run: [] }", "4:12", &["`run` needs a program"]),
        ("  - { run: [\"{property}\"] }", "4:13", &["the program is fixed"]),
        ("  - { run: notify me }", "4:12", &["no shell"]),
        ("  - { run: [a, \"{zone}\"] }", "4:16", &["no selected property has `{zone}`", "property, verdict"]),
        ("  - { run: [a, \"{speed.valeu}\"] }", "4:16", &["did you mean `{speed.value}`"]),
        ("  - { run: [a, \"{severity}\"] }", "4:16", &["no selected property has a severity"]),
        ("  - { run: [a, \"{robustness}\"] }", "4:16", &["add `@robust`"]),
        ("  - { run: [a, \"{id}\"] }", "4:16", &["add `ids: true`"]),
        ("  - { run: [a, \"{\"] }", "4:16", &["not closed"]),
        ("  - { on: satisfied, run: [a, \"{speed.value}\"] }", "4:31", &["of violations only"]),
    ] {
        refused(&actions(&format!("{action}\n")), &[(place, words)]);
    }
    refused(
        &format!("{START}verdicts: {{ emit: violations }}\nactions: [{{ on: change, run: [a] }}]\n"),
        &[("4:10", &["`emit: violations`", "`emit: change`"])],
    );
}

#[test]
fn mistakes_of_messages_name_the_place() {
    for (publish, place, words) in [
        ("{ to: zenoh:alarm }", "4:16", &["needs `to` and `message`"][..]),
        ("{ to: stdout, message: 1 }", "4:22", &["publishes on a network"]),
        ("{ to: zenoh:alarm/*, message: 1 }", "4:22", &["wildcards"]),
        ("{ to: zenoh:alarm, encoding: cbor, message: 1 }", "4:45", &["json, plain, cdr or cdr_string"]),
        ("{ to: ros2:/a, message: { data: 1 } }", "4:22", &["add `type:`"]),
        (
            "{ to: ros2:/a, type: std_msgs/msg/Nothing, message: { data: 1 } }",
            "4:37",
            &["std_msgs/msg/Nothing"],
        ),
        ("{ to: zenoh:alarm, encoding: plain, message: [1] }", "4:61", &["one value"]),
        ("{ to: mqtt:alarm, qos: 1, message: 1 }", "4:39", &["`verdict_qos`"]),
        ("{ to: zenoh:demo/gear, message: 1 }", "4:22", &["come back", "`loop: true`"]),
        ("{ to: zenoh:demo/gear, message: 1, loop: true }", "4:57", &["needs a limit"]),
    ] {
        refused(&actions(&format!("  - {{ publish: {publish} }}\n")), &[(place, words)]);
    }
    let of_type = |of: &str, message: &str| {
        actions(&format!("  - publish:\n      to: ros2:/a\n      type: {of}\n      message: {message}\n"))
    };
    for (of, message, place, words) in [
        ("std_msgs/msg/Bool", "{ data: 1 }", "7:24", &["1 is no boolean"][..]),
        ("std_msgs/msg/Bool", "{ data: \"{speed.value}\" }", "7:24", &["is a boolean", "a number"]),
        ("std_msgs/msg/Bool", "{}", "7:16", &["the field 'data' of std_msgs/msg/Bool is missing"]),
        ("std_msgs/msg/Bool", "true", "7:16", &["a mapping of fields"]),
        ("std_msgs/msg/Int8", "{ data: 200 }", "7:24", &["-128 to 127"]),
        ("std_msgs/msg/String", "{ data: \"{speed.value}\" }", "7:24", &["is a text"]),
        ("std_msgs/msg/Header", "{ stamp: now, frame_id: a }", "7:25", &["`{time}`"]),
        ("geometry_msgs/msg/Point", "{ x: 1, y: 2, z: [3] }", "7:33", &["one value"]),
    ] {
        refused(&of_type(of, message), &[(place, words)]);
    }
    refused(
        &of_type("std_msgs/msg/Bool", "{ dat: true, data: true }"),
        &[("7:18", &["std_msgs/msg/Bool has no field 'dat'", "did you mean 'data'"])],
    );
    for (of, message) in [
        ("std_msgs/msg/Header", "{ stamp: \"{time}\", frame_id: \"{property}\" }"),
        ("std_msgs/msg/Empty", "{}"),
        (
            "geometry_msgs/msg/Twist",
            "{ linear: { x: 0, y: 0, z: 0 }, angular: { x: 0, y: 0, z: \"{speed.value}\" } }",
        ),
    ] {
        accepted(&of_type(of, message), &["publish ros2:/a"]);
    }
    accepted(
        &actions(
            "  - { publish: { to: zenoh:demo/gear, message: 1, loop: true }, limit: { per_minute: 6 } }\n",
        ),
        &["6 a minute"],
    );
}

#[test]
fn mistakes_of_calls_name_the_place() {
    for (call, place, words) in [
        ("{ service: ros2:/stop }", "4:13", &["needs `service` and `type`"][..]),
        ("{ service: zenoh:stop, type: std_srvs/srv/Trigger }", "4:24", &["services of ROS 2"]),
        ("{ service: ros2:/stop, type: demo/srv/Stop }", "4:42", &["std_srvs/srv/Trigger"]),
        ("{ service: ros2:/stop, type: std_srvs/srv/SetBool }", "4:13", &["`request: { data: true }`"]),
        (
            "{ service: ros2:/s, type: std_srvs/srv/SetBool, request: { data: 1 } }",
            "4:78",
            &["true or false"],
        ),
        ("{ service: ros2:/s, type: std_srvs/srv/Trigger, request: { data: true } }", "4:70", &["no fields"]),
    ] {
        refused(&actions(&format!("  - {{ call: {call} }}\n")), &[(place, words)]);
    }
}

#[test]
fn programs_need_an_option() {
    let folder = Folder::new();
    folder.file("v.rondel", "topic v { x: float }\nproperty p = v.x < 1.0\n");
    let file = folder.file(
        "rondel.yaml",
        "specification: v.rondel\ntopics: { v: zenoh:v }\nactions: [{ run: [/bin/true] }]\n",
    );
    rondel(["run", &file]).expect_status(2).expect_stderr(&["--allow-run"]);
}
