//! `rondel validate`, and `rondel run` as far as a deployment that does not get to its network.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod support;

use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use support::process::Process;
use support::{Finished, Folder, RONDEL, finish, rondel};

const SPECIFICATION: &str = "topic gear \"/demo/gear\" { report: int }\n\
                             topic speed \"/demo/speed\" { value: float }\n\
                             property slow = speed.value < 10.0\n\
                             property no_reverse = gear.report != 20\n";

/// Validates this deployment beside the specification `vehicle.rondel`.
fn validate(deployment: &str) -> Finished {
    let folder = Folder::new();
    folder.file("vehicle.rondel", SPECIFICATION);
    rondel(["validate", &folder.file("rondel.yaml", deployment)])
}

/// Validates a deployment that must be refused, and looks for each `(place, words)` on one line of
/// what is said; there must be as many mistakes as expected, no more.
#[track_caller]
fn refused(deployment: &str, expected: &[(&str, &[&str])]) {
    let finished = validate(deployment);
    finished.expect_status(2);
    let errors: Vec<&str> = finished.stderr.lines().filter(|line| line.starts_with("error")).collect();
    for (place, words) in expected {
        let place = if place.is_empty() { String::new() } else { format!("rondel.yaml:{place}: ") };
        assert!(
            errors.iter().any(|line| line.contains(&place) && words.iter().all(|word| line.contains(word))),
            "{place}… {words:?} is not among\n{}\nof\n{deployment}",
            finished.stderr
        );
    }
    assert_eq!(errors.len(), expected.len(), "{}\nof\n{deployment}", finished.stderr);
}

#[test]
fn good_deployments() {
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
fn alignments() {
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
fn every_mistake_is_said_at_once() {
    refused(
        "specification: vehicle.rondel\n\
         colour: blue\n\
         zenoh:\n\
         \x20 mode: pear\n\
         \x20 lisen: tcp/127.0.0.1:7447\n\
         \x20 connect: [\"nonsense\"]\n\
         dds:\n\
         \x20 domain: 231\n\
         topics:\n\
         \x20 gaer: zenoh:gear\n\
         \x20 gear: mqt:gear\n\
         \x20 speed: { source: zenoh:speed, encoding: xdr, time_unit: h }\n\
         verdicts:\n\
         \x20 emit: sometimes\n\
         \x20 to: zenoh:verdict/*\n\
         \x20 properties:\n\
         \x20   slwo: zenoh:slow\n\
         exit_on_unreachable: perhaps\n",
        &[
            ("2:1", &["colour"]),
            ("4:9", &["peer", "client", "router"]),
            ("5:3", &["lisen", "did you mean 'listen'"]),
            ("6:13", &["nonsense"]),
            ("8:11", &["0", "230"]),
            ("10:3", &["gaer", "did you mean 'gear'"]),
            ("11:9", &["did you mean 'mqtt'"]),
            ("12:43", &["xdr", "json"]),
            ("12:59", &["s, ms, us"]),
            ("14:9", &["change, every or violations"]),
            ("15:7", &["wildcards"]),
            ("17:5", &["slwo", "did you mean 'slow'"]),
            ("18:22", &["true or false"]),
        ],
    );
}

#[test]
fn wrong_types_of_settings() {
    refused("formula: v\ntopics: [zenoh:a]\n", &[("2:9", &["topics", "mapping"]), ("2:9", &["trace"])]);
    refused("formula: [v]\ntopics: { trace: zenoh:a }\n", &[("1:10", &["text", "list"])]);
    refused("formula: v\ntopics: { trace: 7 }\n", &[("2:18", &["7", "address"])]);
    refused("formula: v\ntopics: { trace: zenoh:a }\nzenoh: peer\n", &[("3:8", &["mapping"])]);
    refused("formula: v\ntopics: { trace: zenoh:a }\ndds: { domain: one }\n", &[("3:16", &["whole number"])]);
    refused("formula: v\ntopics: { trace: zenoh:a }\ndds: { domain: -1 }\n", &[("3:16", &["0", "230"])]);
    refused("formula: v\ntopics: { trace: zenoh:a }\nverdicts: { to: { a: b } }\n", &[("3:17", &["text"])]);
    refused("- formula\n- v\n", &[("1:1", &["mapping"]), ("1:1", &["nothing to check"])]);
}

#[test]
fn files_that_are_no_deployments() {
    for (deployment, words) in [
        ("", &["empty"][..]),
        ("# nothing but a remark\n", &["empty"]),
        ("formula: v\n---\nformula: v\n", &["second document"]),
        ("formula: [v\n", &["rondel.yaml:"]),
        ("formula: \"v\n", &["rondel.yaml:"]),
        ("\tformula: v\n", &["rondel.yaml:"]),
        ("formula: v\nformula: w\ntopics: { trace: zenoh:a }\n", &["rondel.yaml:2:1", "duplicate"]),
    ] {
        let finished = validate(deployment);
        assert_eq!(finished.status, Some(2), "{deployment:?}\n{}", finished.stderr);
        finished.expect_stderr(&["error: "]).expect_stderr(words);
    }
    let folder = Folder::new();
    let missing = folder.path("none.yaml");
    rondel(["validate", &missing]).expect_status(2).expect_stderr(&["none.yaml", "No such file"]);
    let binary = folder.file("binary.yaml", b"formula: \xff\n");
    rondel(["validate", &binary]).expect_status(2).expect_stderr(&["binary.yaml"]);
    rondel(["validate", &folder.path("")]).expect_status(2);
}

#[test]
fn a_specification_there_must_be_and_it_must_be_right() {
    refused("topics: { trace: zenoh:a }\n", &[("1:1", &["specification", "formula"])]);
    refused(
        "specification: vehicle.rondel\nformula: v\nzenoh: {}\n",
        &[("1:16", &["either `specification:` or `formula:`"])],
    );
    refused(
        "specification: vehicel.rondel\nzenoh: {}\n",
        &[("", &["No such file"]), ("1:16", &["vehicel.rondel"])],
    );
    refused("formula: v\nsyntax: reelay\ntopics: { trace: zenoh:a }\n", &[("2:9", &["rondel or rye"])]);

    // Mistakes in the specification and in the deployment are shown together.
    let folder = Folder::new();
    folder.file("wrong.rondel", "topic gear { report: int }\nproperty p = gear.reprot == 2\n");
    let file = folder.file("rondel.yaml", "specification: wrong.rondel\nzenoh: { mod: peer }\n");
    rondel(["validate", &file]).expect_status(2).expect_stderr(&[
        "E0301",
        "wrong.rondel:2:19",
        "rondel.yaml:1:16",
        "rondel.yaml:2:10",
        "did you mean 'mode'",
    ]);
}

#[test]
fn sources_and_places_that_cannot_be() {
    refused("formula: v\nzenoh: {}\ndds: {}\n", &[("", &["trace", "no source"])]);
    refused("formula: v\ntopics: { trace: stdout }\n", &[("2:18", &["stdout"])]);
    refused(
        "formula: v\ntopics: { trace: \"zenoh:a/*\" }\nverdicts: { to: zenoh:a/b }\n",
        &[("3:17", &["come back"])],
    );
    refused("formula: v\ntopics: { trace: a/b }\n", &[("2:18", &["zenoh"])]);
    refused("formula: v\ntopics: { trace: \"zenoh:\" }\n", &[("2:18", &[])]);
    refused("formula: v\ntopics: { trace: \"zenoh:a//b\" }\n", &[("2:18", &["a//b"])]);
    refused("formula: v\ntopics: { trace: \"dds:1 x\" }\n", &[("2:18", &[])]);
    refused("formula: v\ntopics: { trace: { encoding: json } }\n", &[("2:18", &["source"])]);
    refused("formula: v\ntopics: { trace: { source: zenoh:a, type: t } }\n", &[("2:43", &["DDS"])]);
    let plain = |rest: &str| format!("formula: value\ntopics: {{ trace: {{ source: mqtt:a, {rest} }} }}\n");
    refused(&plain("encoding: plain, true_words: [ON, on]"), &[("2:70", &["on", "twice"])]);
    refused(&plain("encoding: plain, true_words: a, false_words: A"), &[("2:81", &["a", "twice"])]);
    refused(&plain("true_words: a"), &[("2:18", &["encoding: plain"])]);
    refused(&plain("texts: yes"), &[("2:43", &["`texts` must be numbers"])]);
    refused(&plain("strings: numbers"), &[("", &["texts: numbers"])]);
    refused("formula: v\ntopics: { trace: \"zenoh+xdr:a\" }\n", &[("2:18", &["xdr", "json, cdr, "])]);
    refused("formula: v\ntopics: { trace: \"zenoh+cdr:a\" }\n", &[("2:18", &["cdr", "`type:`"])]);
    refused(
        "formula: v\ntopics: { trace: { source: dds:a, encoding: cdr_string } }\n",
        &[("2:45", &["DDS"])],
    );
    refused(
        "formula: v\ntopics: { trace: { source: zenoh:a, encoding: cdr_string } }\nverdicts: { to: zenoh:a }\n",
        &[("3:17", &["zenoh+cdr_string:a", "come back"])],
    );
    refused(
        "formula: v\ntopics: { trace: { source: dds:a, type: \"a b\" } }\n",
        &[("2:41", &["a b", "type"])],
    );
    refused(
        "formula: v\ntopics: { trace: zenoh:a }\nzenoh: { config: missing.json5 }\n",
        &[("3:18", &["missing.json5"])],
    );
    for endpoint in
        ["tcp/", "tcp/127.0.0.1", "127.0.0.1:7447", "carrier-pigeon/x:1", "tcp/127.0.0.1:99999999"]
    {
        refused(
            &format!("formula: v\ntopics: {{ trace: zenoh:a }}\nzenoh: {{ connect: \"{endpoint}\" }}\n"),
            &[("3:19", &[endpoint])],
        );
    }
}

#[test]
fn settings_of_mqtt_that_cannot_be() {
    let beside = "formula: v\ntopics: { trace: mqtt:a }\n";
    for (section, words) in [
        ("{ broker: \"http://a\" }", "is not an MQTT broker"),
        ("{ broker: \"mqtt://me:secret@a\" }", "not in the broker's address"),
        ("{ version: 4 }", "`version` must be 5 or 3.1.1"),
        ("{ qos: 3 }", "from 0 to 2"),
        ("{ user: me, password: secret }", "does not belong in this file"),
        ("{ password_env: X }", "needs a user"),
        ("{ user: me, password_env: X, password_file: x }", "not both"),
        ("{ user: me, password_file: none }", "No such file"),
        ("{ clean_start: false }", "needs a client id"),
        ("{ keep_alive: 0 }", "from 1 to 65535"),
        ("{ tls: { ca: none.pem } }", "none.pem"),
        ("{ tls: { ca: /dev/zero } }", "/dev/zero: it has more than 16 MiB"),
        ("{ user: me, password_file: /dev/zero }", "/dev/zero: it has more than 16 MiB"),
        ("{ tls: { certificate: rondel.yaml } }", "needs its key"),
        ("{ broker: \"mqtt://a\", tls: {} }", "mqtts://"),
        ("{ tsl: {} }", "mqtt has no setting 'tsl'"),
    ] {
        refused(&format!("{beside}mqtt: {section}\n"), &[("", &[words])]);
    }
    refused(
        "formula: v\ntopics: { trace: { source: zenoh:a, qos: 1 } }\n",
        &[("", &["`qos` belongs to topics on MQTT, DDS and ROS 2"])],
    );
    refused(
        "formula: v\ntopics: { trace: \"mqtt:a/#\" }\nverdicts: { to: mqtt:a/b }\n",
        &[("", &["would come back as messages of mqtt:a/#"])],
    );
    refused("formula: v\ntopics: { trace: \"mqtt:a#\" }\n", &[("", &["# must be the whole last level"])]);
}

/// Validates a good deployment, and looks for these words in what is printed.
#[track_caller]
fn accepted(deployment: &str, words: &[&str]) -> String {
    let finished = validate(deployment);
    assert_eq!(finished.status, Some(0), "{deployment}\n{}", finished.stderr);
    for word in words {
        assert!(finished.stdout.contains(word), "{word} is not in\n{}", finished.stdout);
    }
    finished.stderr
}

#[test]
fn a_missing_source_offers_the_forms_of_addresses() {
    let all = ["`zenoh:KEY`, `dds:TOPIC`, `mqtt:TOPIC` or `ros2:/TOPIC`"];
    refused("formula: v\n", &[("1:1", &["topic 'trace' has no source", "`trace: ADDRESS`", all[0]])]);
    refused("formula: v\nzenoh: {}\nmqtt: {}\n", &[("1:1", &all)]);
    refused("formula: v\ntopics: { trace: { time: t } }\n", &[("2:18", &["needs `source:`", all[0]])]);
    for (section, form) in [("zenoh", "`zenoh:KEY`"), ("dds", "`dds:TOPIC`"), ("mqtt", "`mqtt:TOPIC`")] {
        let deployment = format!("formula: v\n{section}: {{}}\ntopics: {{ trace: {{ time: t }} }}\n");
        refused(&deployment, &[("3:18", &[&format!("which is {form}")])]);
    }
    // An address of the specification that the only network does not have.
    let folder = Folder::new();
    folder.file("wild.rondel", "topic gear \"demo/#/x\"\nproperty p = gear.report == 2\n");
    for (section, form) in [("zenoh", "zenoh:KEY"), ("dds", "dds:TOPIC"), ("mqtt", "mqtt:TOPIC")] {
        let file = folder.file("rondel.yaml", format!("specification: wild.rondel\n{section}: {{}}\n"));
        let form = format!("`gear: ADDRESS` under `topics:`, where ADDRESS is `{form}`");
        rondel(["validate", &file]).expect_status(2).expect_stderr(&["rondel.yaml:1:1", "demo/#/x", &form]);
    }
    rondel(["run", "-f", "v"]).expect_status(2).expect_stderr(&[
        "--topic ADDRESS, where ADDRESS is zenoh:KEY, dds:TOPIC, ros2:/TOPIC or mqtt:TOPIC",
    ]);
}

#[test]
fn settings_under_other_names_are_recognised() {
    let start = "formula: v\n";
    let trace = "topics: { trace: zenoh:a }\n";
    for (section, place, words) in [
        ("mqtt: { host: a }", "3:9", "mqtt has no setting 'host'; write `broker`"),
        ("mqtt: { url: a }", "3:9", "write `broker`"),
        ("mqtt: { server: a }", "3:9", "write `broker`"),
        ("mqtt: { address: a }", "3:9", "write `broker`"),
        ("mqtt: { port: 1883 }", "3:9", "write `broker`"),
        ("mqtt: { username: a }", "3:9", "write `user`"),
        (
            "mqtt: { user: me, password: secret }",
            "3:19",
            "'password'; use password_file or password_env: a password does not belong in this file",
        ),
        ("mqtt: { ca_file: a }", "3:9", "write `tls: { ca: FILE }`"),
        ("mqtt: { cafile: a }", "3:9", "write `tls: { ca: FILE }`"),
        ("mqtt: { tls: { cafile: a } }", "3:16", "write `ca`"),
        ("zenoh: { endpoint: a }", "3:10", "write `connect`"),
        ("zenoh: { router: a }", "3:10", "write `connect`"),
        ("dds: { domain_id: 7 }", "3:8", "write `domain`"),
        (
            "alignment: { tolerance: 1 s }",
            "3:14",
            "write `epsilon` with `policy: epsilon`, or `max_interval`",
        ),
        ("alignment: { slop: 1 s }", "3:14", "write `epsilon` with `policy: epsilon`, or `max_interval`"),
        ("sinks: zenoh:b", "3:1", "write `verdicts`"),
        ("output: zenoh:b", "3:1", "write `verdicts`"),
        ("publish: zenoh:b", "3:1", "write `verdicts`"),
    ] {
        refused(&format!("{start}{trace}{section}\n"), &[(place, &[words])]);
    }
    for (setting, words) in [("timestamp: t", "write `time`"), ("time_stamp: t", "did you mean 'time'?")] {
        refused(
            &format!("{start}topics: {{ trace: {{ source: zenoh:a, {setting} }} }}\n"),
            &[("2:37", &[words])],
        );
    }
    for setting in ["address", "topic"] {
        refused(
            &format!("{start}topics: {{ trace: {{ {setting}: zenoh:a }} }}\n"),
            &[("2:20", &["write `source`"]), ("2:18", &["needs `source:`"])],
        );
    }
    // The names that are offered are accepted.
    for (section, no) in [("mqtt: { xyzzy: 1 }", "password,"), ("alignment: { xyzzy: 1 }", "tardy")] {
        let finished = validate(&format!("{start}{trace}{section}\n"));
        finished.expect_status(2).expect_stderr(&["its settings are: "]);
        assert!(!finished.stderr.contains(no), "{}", finished.stderr);
    }
    validate(&format!("{start}{trace}alignment: {{ tardy: drop }}\n"))
        .expect_status(0)
        .expect_stderr(&["rondel.yaml:3:21: `tardy` of `alignment` is now called `late`"]);
    refused(
        &format!("{start}{trace}alignment: {{ tardy: drop, late: inconclusive }}\n"),
        &[("3:21", &["`tardy` is the former name of `late`: write only `late`"])],
    );
}

#[test]
fn ports_that_do_not_exist() {
    let start = "formula: v\ntopics: { trace: zenoh:a }\n";
    for (section, place, port) in [
        ("mqtt: { broker: \"localhost:99999\" }", "3:17", "99999"),
        ("mqtt: { broker: \"mqtts://[::1]:65536\" }", "3:17", "65536"),
        ("mqtt: { broker: \"localhost:0\" }", "3:17", "0"),
        ("zenoh: { connect: tcp/127.0.0.1:99999 }", "3:19", "99999"),
        ("zenoh: { connect: tcp/127.0.0.1:0 }", "3:19", "0"),
        ("zenoh: { listen: [\"tls/[::]:70000\"] }", "3:19", "70000"),
    ] {
        let words = format!("port {port} is not between 1 and 65535");
        refused(&format!("{start}{section}\n"), &[(place, &[&words])]);
    }
    // Port 0 listens on a free port.
    accepted(&format!("{start}zenoh: {{ listen: tcp/127.0.0.1:0 }}\n"), &["tcp/127.0.0.1:0"]);
    let run = ["run", "-f", "v", "--topic", "mqtt:a", "--mqtt-broker", "localhost:99999"];
    rondel(run).expect_status(2).expect_stderr(&["port 99999 is not between 1 and 65535"]);
    let run = ["run", "-f", "v", "--topic", "zenoh:a", "--zenoh-connect", "tcp/a:99999"];
    rondel(run).expect_status(2).expect_stderr(&["port 99999 is not between 1 and 65535"]);
}

#[test]
fn environment_variables_are_refused() {
    let topics = "topics: { trace: zenoh:a }\n";
    for (section, place, variable) in [
        ("mqtt:\n  broker: ${BROKER}\n", "4:11", "${BROKER}"),
        ("mqtt:\n  broker: $BROKER\n", "4:11", "$BROKER"),
        ("mqtt:\n  broker: ${BROKER:-localhost}:1883\n", "4:11", "${BROKER:-localhost}"),
        ("mqtt: { broker: ${BROKER} }\n", "3:18", "${BROKER}"),
        ("dds:\n  domain: ${DOMAIN}\n", "4:11", "${DOMAIN}"),
        ("zenoh:\n  connect: [\"tcp/${HOST}:7447\"]\n", "4:13", "${HOST}"),
        ("verdicts:\n  to: zenoh:${ROBOT}/verdict\n", "4:7", "${ROBOT}"),
    ] {
        let words = ["environment variables are not expanded", "write the value", variable, "`password_env:"];
        refused(&format!("formula: v\n{topics}{section}"), &[(place, &words)]);
    }
    accepted("formula: v\ntopics: { trace: \"mqtt:$share/g/a\" }\n", &["mqtt:$share/g/a"]);
    accepted("formula: v\ntopics: { trace: \"mqtt:$SYS/broker\" }\n", &["mqtt:$SYS/broker"]);
    accepted("formula: 's == \"${X}\"'\ntopics: { trace: \"zenoh:a/b$*\" }\n", &["zenoh:a/b$*"]);
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
    let doubt = "rondel.yaml:2:41: no definition of demo::Text is known";
    let said = accepted(&on("demo::Text"), &["json in demo::Text"]);
    assert!(said.contains("warning: ") && said.contains(doubt), "{said}");
    // The name in ROS 2 is another on DDS.
    for name in ["std_msgs/msg/String", "std_msgs::msg::dds_::String_"] {
        assert_eq!(accepted(&on(name), &["json in std_msgs::msg::dds_::String_"]), "", "{name}");
    }
}

#[test]
fn times_that_a_schema_does_not_have() {
    let folder = Folder::new();
    let specification = |schema: &str| format!("topic gear {schema}\nproperty p = gear.report == 2\n");
    let trace = folder.file("trace.jsonl", "{\"topic\":\"gear\",\"time\":1,\"report\":2,\"stamp\":1}\n");
    for (schema, time, nearest) in [
        ("{ report: int, stamp: time }", "timestamp", Some("`stamp: time`")),
        ("{ report: int, header: { stamp: time } }", "time", Some("`header.stamp: time`")),
        ("{ report: int, header: { stamp: float } }", "header.stmap", Some("`header.stamp: float`")),
        ("{ report: int, stamp: float }", "timestamp", Some("`stamp: float`")),
        ("{ report: int, stamp: time }", "stamp", None),
        ("{ report: int, header: { stamp: { sec: int, nanosec: int } } }", "header.stamp", None),
        // A message may carry more fields than its schema.
        ("{ report: int, timeout: float }", "time", None),
        ("{ report: int }", "stamp", None),
        ("", "stamp", None),
        ("{ report: int, stamp: time }", "source", None),
    ] {
        let spec = folder.file("gear.rondel", specification(schema));
        let topics = format!("topics: {{ gear: {{ source: zenoh:a, time: {time} }} }}\n");
        let file = folder.file("rondel.yaml", format!("specification: gear.rondel\n{topics}"));
        let validated = rondel(["validate", &file]);
        let checked = rondel(["check", &spec, &trace, "--time-field", time]);
        let Some(nearest) = nearest else {
            assert_eq!(validated.status, Some(0), "{schema} {time}\n{}", validated.stderr);
            assert_ne!(checked.status, Some(2), "{schema} {time}\n{}", checked.stderr);
            continue;
        };
        let words = format!("topic 'gear' has no field '{time}'; its schema has {nearest}");
        validated.expect_status(2).expect_stderr(&["rondel.yaml:2:42: ", &words]);
        checked.expect_status(2).expect_stderr(&["--time-field", &words]);
        let run = ["run", &spec, "--topic", "gear=zenoh:a", "--time-from", time];
        rondel(run).expect_status(2).expect_stderr(&["--time-from", &words]);
    }
}

#[test]
fn places_that_are_used_twice() {
    let topics = "specification: vehicle.rondel\ntopics: { gear: zenoh:g, speed: zenoh:s }\n";
    for (rest, place, words) in [
        (
            "alignment: { progress: zenoh:g }",
            "3:24",
            &[
                "`progress` of `alignment` reads progress markers on zenoh:g",
                "topic 'gear'",
                "use different topics",
            ][..],
        ),
        (
            "alignment: { reports: zenoh:s }",
            "3:23",
            &["reports on zenoh:s", "`reports` of `alignment`", "topic 'speed'"],
        ),
        (
            "alignment: { progress: \"zenoh:p/*\", reports: zenoh:p/r }",
            "3:46",
            &["reports on zenoh:p/r", "read as progress markers from zenoh:p/*", "`reports`", "`progress`"],
        ),
        (
            "alignment: { progress: zenoh:v/slow }\nverdicts: { to: [stdout, \"zenoh:v\"] }",
            "4:26",
            &["verdicts on zenoh:v/slow", "`to` of `verdicts`", "`progress` of `alignment`"],
        ),
        (
            "alignment: { reports: [stdout, zenoh:r] }\nverdicts: { to: stdout, properties: { slow: zenoh:r } }",
            "4:45",
            &["property 'slow' of `verdicts` publishes verdicts on zenoh:r", "`reports` of `alignment`"],
        ),
        (
            "verdicts: { properties: { slow: zenoh:g } }",
            "3:33",
            &[
                "verdicts on zenoh:g would come back as messages of zenoh:g",
                "property 'slow'",
                "topic 'gear'",
            ],
        ),
    ] {
        refused(&format!("{topics}{rest}\n"), &[(place, words)]);
    }
    for (rest, place, words) in [
        (
            "synchronize: { to: dds:b }",
            "2:20",
            &["come back as messages of dds:b", "`to` of `synchronize`", "topic 'b'"][..],
        ),
        (
            "alignment: { reports: zenoh:r }\nsynchronize: { to: zenoh:r }",
            "3:20",
            &["`to` of `synchronize` publishes synchronized messages on zenoh:r", "`reports` of `alignment`"],
        ),
        (
            "alignment: { progress: zenoh:r }\nsynchronize: { to: zenoh:r }",
            "3:20",
            &["synchronized messages on zenoh:r", "`progress` of `alignment`"],
        ),
    ] {
        refused(&format!("topics: {{ a: zenoh:a, b: dds:b }}\n{rest}\n"), &[(place, words)]);
    }
    accepted(&format!("{topics}alignment: {{ reports: stdout }}\nverdicts: {{ to: stdout }}\n"), &["stdout"]);
}

#[test]
fn files_without_end_are_refused() {
    let endless = "specification: /dev/zero\nzenoh: {}\n";
    refused(endless, &[("", &["/dev/zero", "more than 16 MiB"]), ("1:16", &["/dev/zero"])]);
    rondel(["validate", "/dev/zero"]).expect_status(2).expect_stderr(&["/dev/zero", "more than 16 MiB"]);
    let folder = Folder::new();
    let large = |name| {
        let path = folder.path(name);
        std::fs::File::create(&path).unwrap().set_len((16 << 20) + 1).unwrap();
        path
    };
    let limit = "it has 16,777,217 bytes, and the limit is 16 MiB";
    let words = ["large.rondel", limit];
    rondel(["validate", &large("large.yaml")]).expect_status(2).expect_stderr(&["large.yaml", limit]);
    rondel(["check", &large("large.rondel"), "none.jsonl"]).expect_status(2).expect_stderr(&words);
    let file = folder.file("rondel.yaml", "specification: large.rondel\nzenoh: {}\n");
    rondel(["validate", &file]).expect_status(2).expect_stderr(&words);
}

#[test]
fn mistakes_of_yaml_are_explained() {
    for (deployment, place, words) in [
        ("", "1:1", &["the file is empty", "`specification:` or `formula:`"][..]),
        ("formula: v\n---\nformula: v\n", "3:1", &["a second document begins here"]),
        ("zenoh:\n  mode: peer\nmqtt: {}\nzenoh: {}\n", "4:1", &["duplicate setting 'zenoh'", "line 1"]),
        (
            "zenoh:\n  mode: peer\n  mode: peer\n",
            "3:3",
            &["duplicate setting 'mode'", "line 2", "keep only one"],
        ),
        ("zenoh: { mode: peer, mode: client }\n", "1:22", &["duplicate setting 'mode'; keep only one"]),
        ("zenoh:\n\tmode: peer\n", "2:1", &["a tab indents this line", "only spaces"]),
        ("zenoh:\n  mode: a\n\tlisten: b\n", "3:1", &["a tab indents this line"]),
        ("formula: [v\n", "2:1", &["`[` lacks its `]`"]),
        ("zenoh: { mode: peer\nformula: v\n", "2:8", &["`{` lacks its `}`"]),
        ("formula: \"v\n", "1:10", &["lacks its closing quotation mark"]),
        ("formula: a: b\n", "1:11", &["value that contains `: ` in quotation marks"]),
        ("formula: @x\n", "1:10", &["put the value in quotation marks"]),
        ("topics: { trace: *x }\n", "1:18", &["begins with `*`", "quotation marks"]),
        ("formula: v\nmqtt: {broker: a}}\n", "2:18", &["closes nothing"]),
    ] {
        refused(deployment, &[(place, words)]);
    }
    let trace = "formula: v\ntopics: { trace: zenoh:a }\n";
    for (section, place, words) in [
        ("mqtt: [broker]", "3:7", &["mqtt must be a mapping (name: value), not a list", "without `-`"][..]),
        ("mqtt:\n  - broker: a", "4:3", &["mqtt must be a mapping (name: value), not a list", "without `-`"]),
        ("verdicts: zenoh:b", "3:11", &["verdicts must be a mapping (name: value), not text"]),
        ("zenoh: { connect: { a: b } }", "3:19", &["`connect` must be text, not a mapping"]),
        (
            "alignment: { max_wait: 5 }",
            "3:24",
            &["`max_wait` must be a duration such as 50 ms", "5 has no unit"],
        ),
        ("zenoh: { mode: }", "3:14", &["`mode` has no value"]),
        ("? [a]\n: b", "3:3", &["name of a setting must be text, not a list"]),
    ] {
        refused(&format!("{trace}{section}\n"), &[(place, words)]);
    }
}

#[test]
fn validate_prints_what_a_deployment_does() {
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
fn sizes_are_whole_numbers_and_settings_of_files_need_files() {
    let start = "specification: vehicle.rondel\nzenoh: {}\n";
    for (section, place, words) in [
        ("limits: { message: 1.5 MiB }", "3:20", "`message` must be a whole number with a unit"),
        ("limits: { resend: 0.5 GB }", "3:19", "`resend` must be a whole number with a unit"),
        ("slow_consumer: { then: wait }", "3:24", "`then` of `slow_consumer` must be drop or spool"),
        ("slow_consumer: { then: drop, limit: 1 GB }", "3:37", "`limit` belongs to `then: spool`"),
        ("slow_consumer: { then: drop, directory: a }", "3:41", "`directory` belongs to `then: spool`"),
        (
            "slow_consumer: { then: spool, limit: 1.5 GB }",
            "3:38",
            "`limit` must be a whole number with a unit",
        ),
        ("slow_consumer: { then: spool, folder: a }", "3:31", "write `directory`"),
    ] {
        refused(&format!("{start}{section}\n"), &[(place, &[words])]);
    }
}

#[test]
fn a_folder_that_cannot_keep_verdicts_is_refused_before_anything_starts() {
    let folder = Folder::new();
    folder.file("file", "");
    let deployment = |directory: &str, to: &str| {
        let text = format!(
            "formula: v\nmqtt: {{ broker: 127.0.0.1:1 }}\ntopics: {{ trace: mqtt:a }}\nverdicts: {{ to: \"{to}\" }}\n\
             slow_consumer: {{ then: spool, directory: {directory} }}\n"
        );
        folder.file("rondel.yaml", text)
    };
    for (directory, why) in [("file", "/file is not a folder"), ("file/below", "/file is not a folder")] {
        let deployment = deployment(directory, "mqtt:v");
        for command in ["validate", "run"] {
            let finished = rondel([command, &deployment]);
            finished.expect_status(3).expect_stderr(&["cannot keep verdicts in the folder", why]);
            assert!(finished.stderr.lines().count() == 1, "{}", finished.stderr);
        }
    }
    // What only the file shows, `run` refuses before it joins a network.
    folder.file("kept/stdout.spool", "something else");
    let finished = rondel(["run", &deployment("kept", "stdout")]);
    finished.expect_status(3).expect_stderr(&["stdout.spool", "it is not a spool of verdicts"]);
}

#[test]
fn what_zenoh_never_refuses_cannot_be_kept() {
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
fn a_deployment_says_where_its_files_are() {
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

#[test]
fn run_refuses_what_validate_refuses() {
    let folder = Folder::new();
    let file = folder.file("rondel.yaml", "formula: v\nzenho: {}\ntopics: { trace: zenoh:a }\n");
    rondel(["run", &file]).expect_status(2).expect_stderr(&["rondel.yaml:2:1", "did you mean 'zenoh'"]);
}

#[test]
fn wrong_usage_of_run_publish_and_tap() {
    let folder = Folder::new();
    let two = folder.file("two.rondel", SPECIFICATION);
    let good = folder.file("rondel.yaml", "formula: v\ntopics: { trace: zenoh:a }\n");
    for (arguments, words) in [
        (vec!["run", "-f", "v"], &["topic"][..]),
        (vec!["run", "-f", "v >", "--topic", "zenoh:a"], &["E0102"]),
        (vec!["run", "-f", "v", "--topic", "mqt:a"], &["mqtt"]),
        (vec!["run", "-f", "v", "--topic", "stdout"], &["stdout"]),
        (vec!["run", "-f", "v", "--topic", "zenoh:a", "--publish", "zenoh:b/*"], &["wildcards"]),
        (vec!["run", "-f", "v", "--topic", "zenoh:a", "--zenoh-connect", "nowhere"], &["nowhere"]),
        (vec!["run", "-f", "v", "--topic", "dds:a", "--dds-domain", "231"], &["231", "230"]),
        (vec!["run", "-f", "v", "--topic", "zenoh:a", "--zenoh-mode", "pear"], &["pear", "peer"]),
        (vec!["run", &two, "--topic", "zenoh:a"], &["NAME="]),
        (vec!["run", &two, "--topic", "gaer=zenoh:a"], &["gaer"]),
        (vec!["run", &two, "--topic", "gear=zenoh:a"], &["speed"]),
        (vec!["run", &good, "--topic", "zenoh:a"], &["--topic"]),
        (vec!["run", &good, "--zenoh-connect", "tcp/127.0.0.1:7447"], &["--zenoh-", "deployment"]),
        (vec!["run", &good, "--time", "dense"], &["--time", "deployment"]),
        (vec!["run", &good, "--time-from", "source"], &["--time-from", "deployment"]),
        (vec!["run", "-f", "v", "--topic", "zenoh:a/**", "--publish", "zenoh:a/b"], &["a/b", "come back"]),
        (vec!["run", "-f", "v", "--topic", "dds:a", "--publish", "dds:a"], &["come back"]),
        (vec!["publish"], &["--to"]),
        (vec!["publish", "--to", "stdout"], &["stdout"]),
        (vec!["publish", "--to", "zenoh:a/*"], &["wildcards"]),
        (vec!["publish", "--to", "zenoh:a", "--rate", "0"], &["--rate"]),
        (vec!["tap"], &["ADDRESS"]),
        (vec!["tap", "a"], &["'a'", "zenoh:"]),
        (vec!["tap", "stdout"], &["stdout"]),
        (vec!["run", "-f", "v", "--topic", "zenoh:a", "--topic", "zenoh:b"], &["source already"]),
        (vec!["tap", "zenoh:a//b"], &["a//b"]),
    ] {
        let finished = rondel(&arguments);
        assert_eq!(finished.status, Some(2), "{arguments:?}\n{}", finished.stderr);
        finished.expect_stderr(words);
    }
}

#[test]
fn an_unreachable_router_is_said_and_tried_again() {
    // A port that was free a moment ago, and that nobody listens on.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let endpoint = format!("tcp/127.0.0.1:{port}");
    let arguments =
        ["run", "-f", "v", "--topic", "zenoh:a", "--zenoh-mode", "client", "--zenoh-connect", &endpoint];
    let mut run = Process::rondel(arguments);
    let message = run.wait_stderr(&endpoint);
    assert!(message.contains("warning") || message.contains("error"), "{message}");

    // The router comes up: the monitor joins without being started again.
    let mut router = Process::rondel([
        "run",
        "-f",
        "v",
        "--topic",
        "zenoh:unused",
        "--zenoh-mode",
        "router",
        "--zenoh-listen",
        &endpoint,
    ]);
    router.wait_stderr("ready");
    run.wait_stderr("ready");
    run.terminate();
    run.finish().expect_status(0);
}

#[test]
fn while_trying_it_can_be_ended() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let endpoint = format!("tcp/127.0.0.1:{port}");
    let mut run = Process::rondel([
        "run",
        "-f",
        "v",
        "--topic",
        "zenoh:a",
        "--zenoh-mode",
        "client",
        "--zenoh-connect",
        &endpoint,
    ]);
    run.wait_stderr(&endpoint);
    run.terminate();
    let finished = run.finish();
    assert!(finished.status.is_some(), "it was ended by the signal instead of ending itself");
}

#[test]
fn exit_on_unreachable_gives_up_within_some_seconds() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let endpoint = format!("tcp/127.0.0.1:{port}");
    let network = ["--zenoh-mode", "client", "--zenoh-connect", &endpoint, "--exit-on-unreachable"];
    let folder = Folder::new();
    let deployment = format!(
        "formula: v\nzenoh: {{ mode: client, connect: {endpoint} }}\ntopics: {{ trace: zenoh:a }}\nexit_on_unreachable: true\n"
    );
    let file = folder.file("rondel.yaml", deployment);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for arguments in [
            [&["run", "-f", "v", "--topic", "zenoh:a"][..], &network].concat(),
            [&["publish", "--to", "zenoh:a"][..], &network].concat(),
            [&["tap", "zenoh:a"][..], &network].concat(),
            vec!["run", &file],
        ] {
            let endpoint = &endpoint;
            scope.spawn(move || {
                rondel(arguments).expect_status(5).expect_stderr(&[endpoint]);
            });
        }
    });
    let took = started.elapsed();
    assert!(took < Duration::from_secs(30), "it took {took:?}, not some seconds");
}

#[test]
fn a_network_interface_that_is_not_there() {
    let finished = rondel([
        "run",
        "-f",
        "v",
        "--topic",
        "dds:a",
        "--dds-domain",
        "150",
        "--dds-interface",
        "nosuch0",
        "--exit-on-unreachable",
    ]);
    finished.expect_status(5).expect_stderr(&["nosuch0"]);
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
