//! Deployments that are accepted, and what is printed of them.

use std::net::TcpListener;
use std::process::Command;

use super::support::{Folder, RONDEL, finish, rondel};
use super::{SPECIFICATION, accepted, refused, validate};

#[test]
fn valid_deployments_are_accepted() {
    for deployment in [
        "specification: vehicle.rondel\nzenoh: {}\n",
        "specification: vehicle.rondel\ndds: { domain: 7, interface: lo, peers: [127.0.0.1], reader_queue: 64 }\n",
        "specification: vehicle.rondel\n\
         zenoh:\n  mode: client\n  connect: [tcp/192.0.2.1:7447, tcp/192.0.2.2:7447]\n  multicast: false\n\
         dds: { domain: 230 }\n\
         topics:\n  gear: dds:gear\n  speed: { source: \"zenoh:a/**\", encoding: json, time: header.stamp, time_unit: ns }\n\
         verdicts:\n  emit: every\n  to: [stdout, zenoh:verdict]\n  properties: { slow: dds:slow }\n\
         exit_on_unreachable: true\n",
        "specification: vehicle.rondel\nmqtt: { broker: \"mqtts://[::1]:1\", version: 3.1.1, qos: 0, verdict_qos: 2 }\n",
        "formula: v\nmqtt: { broker: a, version: 5, user: me, password_env: NOT_SET_HERE, client_id: me, clean_start: false,\n  \
         session_expiry: 9, keep_alive: 5, retain_verdicts: true }\n\
         topics: { trace: { source: \"mqtt:$share/g/a/+\", qos: 2, retained: false } }\nverdicts: { to: mqtt:b }\n",
        "formula: \"{v > 3}\"\nsyntax: rye\ntopics: { trace: zenoh:a }\n",
        "formula: v > 3\ntopics: { trace: { source: dds:rt/state, type: demo::Text } }\nverdicts: { to: dds:rt/verdict }\n",
        "formula: v\ntopics: { trace: { source: \"mqtt:a/+\", encoding: cdr_string, qos: 2 } }\nverdicts: { to: [zenoh+cdr_string:b, mqtt+json:c] }\n",
    ] {
        let finished = validate(deployment);
        assert_eq!(finished.status, Some(0), "{deployment}\n{}", finished.stderr);
        assert!(!finished.stderr.contains("error"), "{}", finished.stderr);
    }
}

#[test]
fn valid_alignments_are_accepted() {
    let start = "specification: vehicle.rondel\nzenoh: {}\n";
    for good in [
        "alignment: {}",
        "alignment: { policy: arrival }",
        "alignment: { policy: event_time, max_wait: estimate 0.99, absent_after: never, wait_for: specification }",
        "alignment: { policy: approximate, age_penalty: 0.5, max_interval: 20 ms, lower_bound: 1 ms, queue: 50 }",
        "alignment: { policy: epsilon, epsilon: 5 ms }\ntopics: { gear: { source: zenoh:g, max_wait: none } }",
        "alignment: { in_order: false, max_wait: none, progress: zenoh:p, reports: [stdout, zenoh:r], late: drop }",
        "alignment: { clock: system, ahead: never, behind: 3 min }",
    ] {
        validate(&format!("{start}{good}\n")).expect_status(0);
    }
    for (wrong, place, words) in [
        ("alignment: { policy: fifo }", "3:22", &["`policy` must be", "approximate"][..]),
        ("alignment: { max_wait: 5 }", "3:24", &["50 ms"]),
        ("alignment: { max_wait: estimate 2 }", "3:24", &["above 0 and at most 1"]),
        ("alignment: { absent_after: soon }", "3:28", &["2 s", "never"]),
        ("alignment: { epsilon: 5 ms }", "3:23", &["`policy: epsilon`"]),
        ("alignment: { policy: epsilon }", "3:12", &["needs `epsilon:`"]),
        ("alignment: { late: ignore }", "3:20", &["late, drop, inconclusive"]),
        ("alignment: { queue: 0 }", "3:21", &["queue"]),
        ("alignment: { maxwait: 5 ms }", "3:14", &["did you mean 'max_wait'"]),
        ("alignment: { reports: zenoh:demo/gear }", "3:23", &["come back"]),
        (
            "alignment: { in_order: false, max_wait: none }\ntopics: { gear: { source: zenoh:g, time: t } }",
            "3:12",
            &["'gear'", "progress"],
        ),
        ("topics: { gear: zenoh:g }\nsynchronize: { to: stdout }", "4:14", &["not both"]),
    ] {
        refused(&format!("{start}{wrong}\n"), &[(place, words)]);
    }
    validate("synchronize: { to: zenoh:s }\ntopics: { a: zenoh:a, b: dds:b }\n").expect_status(0);
    refused("synchronize: { to: zenoh:s }\n", &[("1:14", &["nothing to synchronize"])]);
    refused("synchronize: {}\ntopics: { a: zenoh:a }\n", &[("1:14", &["`to:`"])]);
}

#[test]
fn nothing_is_connected_to() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("tcp/{}", listener.local_addr().unwrap());
    // Both what it would connect to and what it would listen on: the port is taken.
    for setting in ["connect", "listen"] {
        let deployment =
            format!("formula: v\nzenoh: {{ {setting}: {endpoint} }}\ntopics: {{ trace: zenoh:a }}\n");
        rondel(["validate", &folder.file("rondel.yaml", deployment)]).expect_status(0);
    }
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "somebody connected");
}

#[test]
fn qos_of_a_topic() {
    let on = |source: &str, qos: &str| {
        format!(
            "formula: data > 1\ntopics: {{ trace: {{ source: {source}, type: std_msgs/msg/Float64, qos: {qos} }} }}\n"
        )
    };
    let all = "{ reliability: best_effort, durability: transient_local, ownership: exclusive, depth: 5, deadline: 100 ms, \
               lease: 1 s, latency_budget: 5 ms, partitions: [a, b*], min_separation: 10 ms, poll: 20 ms }";
    accepted(&on("dds:a", all), &["dds:a"]);
    accepted(&on("ros2:/a", "sensor_data"), &["ros2:/a"]);
    accepted(&on("ros2:/a", "{ reliability: best_effort, depth: 3 }"), &["ros2:/a"]);
    for (source, qos, said) in [
        ("dds:a", "{ reliability: best }", "`reliability` must be one of: reliable, best_effort"),
        ("dds:a", "{ depth: 0 }", "`depth` must be a whole number from 1"),
        ("dds:a", "{ deadline: 5 ms, min_separation: 10 ms }", "deadline is shorter"),
        ("dds:a", "{ history: keep_last }", "write `depth: N`"),
        ("dds:a", "{ latency_budget: 5 }", "`latency_budget` must be a duration"),
        ("dds:a", "{ poll: 5 }", "`poll` must be a duration"),
        ("dds:a", "2", "`qos` of a topic on DDS"),
        ("ros2:/a", "sensor", "sensor_data"),
        ("ros2:/a", "{ reliability: best }", "reliability of ROS 2"),
    ] {
        refused(&on(source, qos), &[("", &[said])]);
    }
}

#[test]
fn types_on_dds() {
    let on = |name: &str| format!("formula: v\ntopics: {{ trace: {{ source: dds:a, type: \"{name}\" }} }}\n");
    for name in ["std_msgs/msg/Float64", "std_msgs::msg::dds_::Float64_"] {
        refused(&on(name), &[("", &["topic 'trace': field `v`", "there are `data`"])]);
        accepted(&on(name).replace("formula: v", "formula: data > 1"), &["cdr of std_msgs/msg/Float64"]);
    }
    let pose = "formula: pose.position.x > 1\ntopics: { trace: { source: zenoh:a, encoding: cdr, type: geometry_msgs/msg/PoseStamped } }\n";
    accepted(pose, &["cdr of geometry_msgs/msg/PoseStamped"]);
    let warning = "rondel.yaml:2:41: no definition of demo::Text is known";
    let said = accepted(&on("demo::Text"), &["json in demo::Text"]);
    assert!(said.contains("warning: ") && said.contains(warning), "{said}");
    // The name in ROS 2 is another on DDS.
    for name in ["std_msgs/msg/String", "std_msgs::msg::dds_::String_"] {
        assert_eq!(accepted(&on(name), &["json in std_msgs::msg::dds_::String_"]), "", "{name}");
    }
}

#[test]
fn formula_has_the_types_of_schemas() {
    let folder = Folder::new();
    let fields = r#"[{"name": "speed", "type": "double"}]"#;
    let schema = format!(r#"{{"type": "record", "name": "Car", "namespace": "fleet", "fields": {fields}}}"#);
    folder.file("fleet.avsc", schema);
    let deployment = folder.file(
        "rondel.yaml",
        "formula: speed < 50\nschemas: fleet.avsc\n\
         topics: { trace: { source: mqtt:a, encoding: avro, type: fleet.Car } }\n",
    );
    rondel(["validate", &deployment]).expect_status(0);
    folder.file("fleet.avsc", "{broken");
    let finished = rondel(["validate", &deployment]);
    finished.expect_status(2);
    let errors: Vec<&str> = finished.stderr.lines().filter(|line| line.starts_with("error")).collect();
    assert!(errors[0].contains("fleet.avsc: key must be"), "{}", finished.stderr);
    assert!(!finished.stderr.contains("is not defined"), "{}", finished.stderr);
}

#[test]
fn validate_prints_the_plan_of_a_deployment() {
    let folder = Folder::new();
    folder.file("vehicle.rondel", SPECIFICATION);
    let file = folder.file(
        "rondel.yaml",
        "specification: vehicle.rondel\n\
         zenoh: { mode: router, listen: tcp/0.0.0.0:7447 }\n\
         dds: { domain: 7, interface: lo }\n\
         mqtt: { broker: \"mqtts://b.example\", user: me, password_env: X }\n\
         topics:\n\
         \x20 gear: { source: dds:rt/gear, time: stamp, max_wait: 20 ms }\n\
         \x20 speed: { source: mqtt:speed, encoding: cdr_string, time: header.stamp, time_unit: ns }\n\
         alignment: { max_wait: 1500 ms, late: inconclusive, reports: zenoh:r }\n\
         verdicts: { emit: every, to: zenoh:v, properties: { slow: [stdout, dds:slow] } }\n\
         slow_consumer: { wait: 1 s, then: spool, directory: kept }\nlimits: { message: 2 MiB }\n\
         blind: report\nids: true\ndurability: snapshot\n",
    );
    let finished = rondel(["validate", &file]);
    finished.expect_status(0);
    let printed = finished.stdout.replace(&folder.path(""), "");
    for words in [
        "rondel.yaml is fine: 2 properties over 2 topics",
        "topic source time encoding max_wait",
        "gear dds:rt/gear field stamp in s json in std_msgs::msg::dds_::String_ 20 ms",
        "speed mqtt:speed field header.stamp in ns cdr_string 1500 ms",
        "alignment event_time: messages are checked in the order of their times",
        "late messages make their fields unknown",
        "reports zenoh:r",
        "slow consumers messages wait for 1 s, then they are kept in kept, up to 256 MiB for each sink",
        "limits message 2 MiB, resend 64 MB, instances 128 MiB, waiting 64 MiB",
        "verdicts unchanged where messages were not seen; losses are reported",
        "missing after 10 s without a topic or field",
        "durability snapshot",
        "ids every verdict has an id",
        "property sinks of every verdict",
        "slow stdout, dds:slow",
        "no_reverse zenoh:v/no_reverse",
        "network connects to listens on",
        "zenoh router nothing tcp/0.0.0.0:7447",
        "dds domain 7 participants, found by multicast interface lo",
        "mqtt 5 broker b.example:8883 with TLS as user me nothing",
    ] {
        let mut lines = printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        assert!(lines.any(|line| line.trim_start_matches('/') == words), "{words:?} is not in\n{printed}");
    }
    let said = accepted(
        "formula: v\nzenoh: {}\ntopics: { trace: zenoh:a }\n",
        &[
            "arrival: messages are checked as they arrive",
            "zenoh peer  others, found by multicast  a free TCP port",
        ],
    );
    assert_eq!(said, "");
    let synchronizer = "topics: { a: zenoh:a, b: zenoh:b }\nsynchronize: { to: zenoh:s }\n\
                        zenoh: { mode: client, connect: tcp/a:1 }\n";
    for words in
        ["synchronizes 2 topics", "synchronized messages  zenoh:s", "zenoh client  tcp/a:1      nothing"]
    {
        accepted(synchronizer, &[words]);
    }
}

#[test]
fn spool_for_zenoh_is_warned_of() {
    let said = accepted(
        "formula: v\nzenoh: {}\ndds: {}\ntopics: { trace: zenoh:a }\nverdicts: { to: [zenoh:v, dds:v] }\n\
         slow_consumer: { then: spool }\n",
        &["kept in"],
    );
    assert!(
        said.contains("rondel.yaml:6:16: `then: spool` keeps nothing for zenoh:v: Zenoh never refuses"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn diagnostics_show_no_violations_alone() {
    let folder = Folder::new();
    let deployment = folder.file(
        "rondel.yaml",
        "formula: v\nros2: {}\ntopics: { trace: zenoh:a }\nverdicts: { to: \"ros2:/diagnostics\" }\n",
    );
    let why = "--emit violations: diagnostics would never show that a violation is over: with them, use --emit change";
    rondel(["run", &deployment, "--emit", "violations"]).expect_status(2).expect_stderr(&[why]);
}

#[test]
fn a_deployment_names_its_files() {
    let folder = Folder::new();
    folder.file("spec/vehicle.rondel", SPECIFICATION);
    folder.file("net/zenoh.json5", "{ mode: \"client\" }");
    let text = "specification: ../spec/vehicle.rondel\nzenoh: { config: ../net/zenoh.json5 }\n";
    let file = folder.file("deploy/rondel.yaml", text);
    // From the folder of the deployment, wherever the command is started.
    rondel(["validate", &file]).expect_status(0);
    for (directory, arguments) in [
        (folder.path("deploy"), vec!["validate"]),
        (folder.path("deploy"), vec!["validate", "rondel.yaml"]),
        (folder.path("net"), vec!["validate", "../deploy/rondel.yaml"]),
        (folder.path(""), vec!["validate", "deploy/rondel.yaml"]),
    ] {
        let finished = finish(Command::new(RONDEL).args(&arguments).current_dir(&directory), b"");
        assert_eq!(finished.status, Some(0), "{arguments:?} in {directory}\n{}", finished.stderr);
    }
    let finished = finish(Command::new(RONDEL).arg("validate").current_dir(folder.path("net")), b"");
    finished.expect_status(2).expect_stderr(&["rondel.yaml"]);
}

/// Those that `make test-containers` and `make test-bridge` run.
#[test]
fn deployments_in_containers_are_good() {
    for folder in ["synchronizer", "across", "bridge"] {
        let file = format!("{}/../../deploy/{folder}/synchronizer.yaml", env!("CARGO_MANIFEST_DIR"));
        rondel(["validate", &file]).expect_status(0);
    }
}

#[test]
fn asserts_have_addresses_on_every_network() {
    let folder = Folder::new();
    folder.file(
        "a.rondel",
        "topic odom { x: float }\nproperty slow = odom.x * 2.0 < 10.0\nassert always slow\n\
         assert share(odom.x * 2.0 < 10.0 / 3.0) >= 0.9\n",
    );
    for (network, more) in [("zenoh", ""), ("dds", ""), ("mqtt", "mqtt: { broker: localhost }\n")] {
        for own in ["", ", properties: { assert_2: stdout, always slow: stdout }"] {
            let text = format!(
                "specification: a.rondel\n{more}topics: {{ odom: {network}:odom }}\n\
                 verdicts: {{ to: [{network}:verdict]{own} }}\n"
            );
            let file = folder.file("rondel.yaml", text);
            let shown = rondel(["validate", &file]);
            shown.expect_status(0);
            let expected = if own.is_empty() { "verdict/assert_2" } else { "verdict/slow" };
            assert!(shown.stdout.contains(expected), "{}", shown.stdout);
        }
    }
}
