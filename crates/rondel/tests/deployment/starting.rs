//! The start of a run: wrong usage, and networks that cannot be reached.

use std::time::{Duration, Instant};

use super::SPECIFICATION;
use super::support::{Folder, rondel, start_rondel};

#[test]
fn run_refuses_deployments_that_validate_refuses() {
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
        (vec!["run", &good, "--publish", "stdout", "--publish", "zenoh:b"], &["--publish", "deployment"]),
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
fn an_unreachable_router_is_reported_and_retried() {
    // A free port, without a listener.
    let port = rondel_testkit::free_port();
    let endpoint = format!("tcp/127.0.0.1:{port}");
    let arguments =
        ["run", "-f", "v", "--topic", "zenoh:a", "--zenoh-mode", "client", "--zenoh-connect", &endpoint];
    let mut run = start_rondel(arguments);
    let message = run.wait_stderr(&endpoint);
    assert!(message.contains("warning") || message.contains("error"), "{message}");

    // The router comes up: the monitor joins without being started again.
    let mut router = start_rondel([
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
fn a_run_can_be_ended_while_connecting() {
    let port = rondel_testkit::free_port();
    let endpoint = format!("tcp/127.0.0.1:{port}");
    let mut run = start_rondel([
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
    let port = rondel_testkit::free_port();
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
