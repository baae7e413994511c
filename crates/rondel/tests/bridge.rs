//! CDR samples that a bridge forwards between DDS and another network.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use rondel_testkit::Process;
use support::network::{arguments, dds, dds_domain, free_endpoint, independent, python, zenoh};
use support::{Folder, rondel_with_input, start_rondel};

/// Publishes these lines on a topic and waits until they are on their way.
#[track_caller]
fn publish(endpoint: &str, topic: &str, lines: &str) {
    let own = ["publish", "--to", topic, "--wait", "60"];
    rondel_with_input(arguments(&own, &zenoh("client", endpoint)), lines.as_bytes()).expect_status(0);
}

/// A run of this deployment, which listens as a router.
fn run(folder: &Folder, endpoint: &str, deployment: &str) -> Process {
    let file =
        folder.file("rondel.yaml", format!("zenoh: {{ mode: router, listen: {endpoint} }}\n{deployment}"));
    let mut run = start_rondel(["run", &file, "--format", "json"]);
    run.wait_stderr("ready");
    run
}

#[test]
fn there_and_back() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let deployment = "formula: v < 3\nverdicts: { emit: every, to: zenoh+cdr_string:t/verdict }\n\
                      topics:\n  trace: { source: zenoh:t/state, encoding: cdr_string }\n";
    // The run is the router: the tap ends with the second verdict, maybe before the publisher has its receipts.
    let run = run(&folder, &endpoint, deployment);
    let own = ["tap", "zenoh+cdr_string:t/verdict", "--count", "2"];
    let mut tap = start_rondel(arguments(&own, &zenoh("client", &endpoint)));
    tap.wait_stderr("ready");
    publish(&endpoint, "zenoh+cdr_string:t/state", "{\"v\":1}\n{\"v\":7}\n");
    let verdicts = tap.take_stdout(2);
    assert!(verdicts[0].contains("satisfied") && verdicts[1].contains("violated"), "{verdicts:?}");
    tap.finish().expect_status(0);
    run.terminate();
    run.finish().expect_status(0).expect_stderr(&["received 2, checked 2, undecodable 0"]);
}

#[test]
fn undecodable_cdr_strings_are_counted_with_the_reason() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let wrong = "formula: v < 3\nverdicts: { emit: every }\n\
                 topics:\n  trace: { source: zenoh:t/state, encoding: cdr_string }\n";
    let mut run = run(&folder, &endpoint, wrong);
    publish(&endpoint, "zenoh:t/state", "{\"v\":1}\n{\"v\":2}\n");
    publish(&endpoint, "zenoh+cdr_string:t/state", "{\"v\":7}\nnone\n");
    run.wait_stdout("violated");
    run.terminate();
    run.finish().expect_status(0).expect_stderr(&[
        "is not a CDR-encoded DDS string: it begins as JSON does",
        "is not JSON",
        "received 2, checked 1, undecodable 3",
    ]);
}

#[test]
fn cdr_string_read_as_json_is_named() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let mut run = run(&folder, &endpoint, "formula: v < 3\ntopics: { trace: zenoh:t/state }\n");
    publish(&endpoint, "zenoh+cdr_string:t/state", "{\"v\":1}\n");
    publish(&endpoint, "zenoh:t/state", "{\"v\":1}\n");
    run.wait_stdout("satisfied");
    run.terminate();
    run.finish()
        .expect_status(0)
        .expect_stderr(&["`encoding: cdr_string` JSON that a bridge passes on", "undecodable 1"]);
}

#[test]
fn both_byte_orders_of_another_client_are_read() {
    let Some(python) = python("both_byte_orders_of_another_client_are_read") else { return };
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let deployment = "formula: v < 3\nverdicts: { emit: every }\n\
                      topics:\n  trace: { source: zenoh:t/state, encoding: cdr_string }\n";
    let mut run = run(&folder, &endpoint, deployment);
    // {"v":1} in CDR of the little end first, {"v":7} of the big one.
    let samples = ["00010000080000007b2276223a317d00", "00000000000000087b2276223a377d00"];
    let own = ["t/state", "--mode", "client", "--connect", &endpoint, "--hex", samples[0], samples[1]];
    independent(&python, "zenoh_publish.py", &own).finish().expect_status(0);
    run.wait_stdout("violated");
    run.terminate();
    run.finish().expect_status(0).expect_stderr(&["received 2, checked 2, undecodable 0"]);
}

/// A bridge makes its writer after the reader that it finds, and does not look whether a message was taken: what cannot be
/// within the time that the reader allows is lost.
#[test]
fn a_reader_on_dds_lets_a_bridge_wait() {
    let Some(python) = python("a_reader_on_dds_lets_a_bridge_wait") else { return };
    let domain = dds_domain();
    let mut tap = start_rondel(arguments(&["tap", "dds:t/verdict"], &dds(&domain)));
    tap.wait_stderr("ready");
    let found = independent(&python, "dds_readers.py", &["t/verdict", "--domain", &domain]).finish();
    found.expect_status(0).expect_stdout("9223372036854775807\n");
    tap.terminate();
    tap.finish().expect_status(0);
}
