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
        ("alignment: { policy: fifo }", "3:22", &["policy must be", "approximate"][..]),
        ("alignment: { max_wait: 5 }", "3:24", &["50 ms"]),
        ("alignment: { max_wait: estimate 2 }", "3:24", &["0 to 1"]),
        ("alignment: { absent_after: soon }", "3:28", &["2 s", "never"]),
        ("alignment: { epsilon: 5 ms }", "3:23", &["policy epsilon"]),
        ("alignment: { policy: epsilon }", "3:12", &["needs `epsilon:`"]),
        ("alignment: { late: ignore }", "3:20", &["late, drop, inconclusive"]),
        ("alignment: { queue: 0 }", "3:21", &["queue"]),
        ("alignment: { maxwait: 5 ms }", "3:14", &["did you mean 'max_wait'"]),
        ("alignment: { reports: zenoh:demo/gear }", "3:12", &["come back"]),
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
         \x20 speed: { source: zenoh:speed, encoding: cdr, time_unit: h }\n\
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
            ("12:43", &["cdr", "json"]),
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
        ("formula: v\n---\nformula: v\n", &["documents"]),
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
        &[("1:16", &["either a specification or a formula"])],
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
        &[("3:11", &["come back"])],
    );
    refused("formula: v\ntopics: { trace: a/b }\n", &[("2:18", &["zenoh"])]);
    refused("formula: v\ntopics: { trace: \"zenoh:\" }\n", &[("2:18", &[])]);
    refused("formula: v\ntopics: { trace: \"zenoh:a//b\" }\n", &[("2:18", &["a//b"])]);
    refused("formula: v\ntopics: { trace: \"dds:1 x\" }\n", &[("2:18", &[])]);
    refused("formula: v\ntopics: { trace: { encoding: json } }\n", &[("2:18", &["source"])]);
    refused("formula: v\ntopics: { trace: { source: zenoh:a, type: t } }\n", &[("2:43", &["DDS"])]);
    refused("formula: v\ntopics: { trace: \"zenoh+cdr:a\" }\n", &[("2:18", &["cdr", "json, cdr_string"])]);
    refused(
        "formula: v\ntopics: { trace: { source: dds:a, encoding: cdr_string } }\n",
        &[("2:45", &["DDS"])],
    );
    refused(
        "formula: v\ntopics: { trace: { source: zenoh:a, encoding: cdr_string } }\nverdicts: { to: zenoh:a }\n",
        &[("3:11", &["zenoh+cdr_string:a", "come back"])],
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
        ("{ broker: \"http://a\" }", "is not the address of an MQTT broker"),
        ("{ broker: \"mqtt://me:secret@a\" }", "must not contain a user or password"),
        ("{ version: 4 }", "version must be 5 or 3.1.1"),
        ("{ qos: 3 }", "from 0 to 2"),
        ("{ user: me, password: secret }", "does not belong in a deployment"),
        ("{ password_env: X }", "needs a user"),
        ("{ user: me, password_env: X, password_file: x }", "not both"),
        ("{ user: me, password_file: none }", "No such file"),
        ("{ clean_start: false }", "needs a client id"),
        ("{ keep_alive: 0 }", "from 1 to 65535"),
        ("{ tls: { ca: none.pem } }", "none.pem"),
        ("{ tls: { certificate: rondel.yaml } }", "needs its key"),
        ("{ broker: \"mqtt://a\", tls: {} }", "mqtts://"),
        ("{ tsl: {} }", "mqtt has no setting 'tsl'"),
    ] {
        refused(&format!("{beside}mqtt: {section}\n"), &[("", &[words])]);
    }
    refused(
        "formula: v\ntopics: { trace: { source: zenoh:a, qos: 1 } }\n",
        &[("", &["only a topic on MQTT has qos"])],
    );
    refused(
        "formula: v\ntopics: { trace: \"mqtt:a/#\" }\nverdicts: { to: mqtt:a/b }\n",
        &[("", &["would come back as messages of mqtt:a/#"])],
    );
    refused("formula: v\ntopics: { trace: \"mqtt:a#\" }\n", &[("", &["# must be the whole last level"])]);
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
