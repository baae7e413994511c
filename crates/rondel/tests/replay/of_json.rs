//! Replays of JSON on each network.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use super::support::network::{arguments, dds_domain, free_endpoint, independent, python, router, zenoh};
use super::support::{self, Folder, rondel, start_rondel};
use super::{SPECIFICATION, by_topic, hex, messages, run_python};
use rondel_testkit::{Broker, Process};

/// Writes lines `TOPIC PAYLOAD` as an MCAP file, 5 ms apart.
const WRITE_JSON: &str = "
import sys
from mcap.writer import Writer
with open(sys.argv[1], 'wb') as file:
    writer, channels = Writer(file), {}
    writer.start('', 'test')
    for i, line in enumerate(sys.stdin):
        topic, payload = line.rstrip('\\n').split(' ', 1)
        if topic not in channels:
            channels[topic] = writer.register_channel(topic, 'json', 0)
        at = 1_700_000_000_000_000_000 + i * 5_000_000
        writer.add_message(channels[topic], at, payload.encode(), at)
    writer.finish()
";

/// The lines without what is left open at the end: by then time has passed in a run.
pub(super) fn decided(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.retain(|line| !line.contains("\"inconclusive\"") || line.contains("\"step\""));
    lines.sort_unstable();
    lines
}

/// A text as DDS carries it.
fn in_cdr(text: &str) -> Vec<u8> {
    let length = text.len() as u32 + 1;
    [&[0, 1, 0, 0], &length.to_le_bytes()[..], text.as_bytes(), &[0]].concat()
}

/// A network of JSON for one test.
struct Network<'n> {
    scheme: &'n str,
    /// The section of the deployment.
    section: String,
    /// The options of a command without one.
    options: Vec<String>,
    /// Returns the form in which a subscriber prints a payload.
    printed: fn(&str) -> Vec<u8>,
}

/// Replays JSON, written by others, recorded by Rondel and as lines, and compares verdicts and payloads.
fn json_is_replayed(python: &Path, network: &Network<'_>, subscriber: impl Fn(usize) -> Process) {
    let Network { scheme, section, options, printed } = network;
    let folder = Folder::new();
    folder.file("spec.rondel", SPECIFICATION);
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: spec.rondel\n{section}\ntopics:\n  gear: {{ source: \"{scheme}:t/gear\", time: t }}\n  \
             speed: {{ source: \"{scheme}:t/speed\", time: t }}\nalignment: {{ max_wait: none, absent_after: never }}\n"
        ),
    );
    let all = messages(200);
    let text: String = all.iter().map(|(topic, payload)| format!("{topic} {payload}\n")).collect();
    let file = folder.path("foreign.mcap");
    run_python(python, WRITE_JSON, &[&file], &text);
    let line = |(i, (topic, payload)): (usize, &(&str, String))| {
        format!("{{\"topic\":\"{topic}\",\"time\":{},\"data\":{payload}}}\n", i as f64 / 200.0)
    };
    let lines = folder.file("lines.jsonl", all.iter().enumerate().map(line).collect::<String>());
    let (own, to) = (folder.path("own.mcap"), [scheme.to_string(), "--wait".into(), "60".into()]);
    let pace = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let with_options = |own: &[&str]| arguments(own, &[&options[..], &pace("--wait 60")].concat());
    let to_network = [&["--to".to_owned()][..], &to, options].concat();
    // Each of those who listen has a replay of its own, which waits for it.
    let mut record = start_rondel(["record", &deployment, "-o", &own, "--count", "200"]);
    record.wait_stderr("ready");
    let fast = arguments(&["replay", &deployment, &file], &pace("--as-fast-as-possible --wait 60"));
    rondel(&fast).expect_status(0).expect_stderr(&["replayed 200 messages of 0.995 s in"]);
    let recorded = record.finish();
    // A busy machine may not let the recorder run for a while; its recording is not complete then.
    let is_complete = !recorded.stderr.contains("the recorder did not run for");
    recorded.expect_status(if is_complete { 0 } else { 5 });
    for (name, replay) in [
        ("foreign", fast),
        // To the addresses that were recorded, faster than it was.
        ("own", with_options(&["replay", &own, "--rate", "2"])),
        ("lines", arguments(&["replay", &lines, "--as-fast-as-possible"], &to_network)),
    ] {
        let run = ["run", &deployment, "--format", "json", "--emit", "every", "--count", "200"];
        let mut run = start_rondel(run);
        run.wait_stderr("ready");
        let replayed = rondel(&replay);
        replayed.expect_status(0).expect_stderr(&["replayed 200 messages"]);
        let live = run.finish();
        live.expect_status(0);
        let recording = folder.path(if name == "lines" { "lines.jsonl" } else { "foreign.mcap" });
        let checked = rondel(["check", &deployment, &recording, "--format", "json", "--emit", "every"]);
        let (live, recorded) = (decided(&live.stdout), decided(&checked.stdout));
        assert!(live.len() > 300, "{name}: {}", live.len());
        assert_eq!(live, recorded, "{name}: {}\n{}", checked.stderr, replayed.stderr);

        let subscriber = subscriber(200);
        rondel(&replay).expect_status(0);
        let received = subscriber.finish();
        received.expect_status(0);
        let of_topic = |topic: &str| -> Vec<String> {
            all.iter().filter(|(own, _)| *own == topic).map(|(_, payload)| hex(&printed(payload))).collect()
        };
        let expected = ["t/gear", "t/speed"].map(|topic| (topic.to_owned(), of_topic(topic)));
        let (received, expected) = (by_topic(&received.stdout), BTreeMap::from(expected));
        assert!(received == expected, "{name}: {received:.300?}");
    }
}

/// One of the independent subscribers, once it is subscribed.
fn raw_subscriber(python: &Path, own: &[&str]) -> Process {
    let mut subscriber = independent(python, "raw_subscribe.py", own);
    subscriber.wait_stdout("ready");
    subscriber
}

#[test]
fn json_over_zenoh() {
    let Some(python) = python("replay: json_over_zenoh") else { return };
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let network = Network {
        scheme: "zenoh",
        section: format!("zenoh: {{ mode: client, connect: {endpoint} }}"),
        options: zenoh("client", &endpoint),
        printed: |text| text.as_bytes().to_vec(),
    };
    json_is_replayed(&python, &network, |count| {
        let count = count.to_string();
        let own = ["zenoh", "t/gear", "t/speed", "--connect", &endpoint, "--count", &count];
        raw_subscriber(&python, &own)
    });
}

#[test]
fn json_over_dds() {
    let Some(python) = python("replay: json_over_dds") else { return };
    let domain = dds_domain();
    let network = Network {
        scheme: "dds",
        section: format!("dds: {{ domain: {domain}, interface: lo }}"),
        options: support::network::dds(&domain),
        printed: in_cdr,
    };
    json_is_replayed(&python, &network, |count| {
        let count = count.to_string();
        let own = ["dds", "t/gear", "t/speed", "--domain", &domain, "--count", &count];
        raw_subscriber(&python, &own)
    });
}

#[test]
fn json_over_mqtt() {
    let Some(python) = python("replay: json_over_mqtt") else { return };
    let Some(broker) = Broker::start("replay: json_over_mqtt") else { return };
    let network = Network {
        scheme: "mqtt",
        section: format!("mqtt: {{ broker: \"127.0.0.1:{}\" }}", broker.port),
        options: vec!["--mqtt-broker".to_owned(), format!("127.0.0.1:{}", broker.port)],
        printed: |text| text.as_bytes().to_vec(),
    };
    let sessions = AtomicU32::new(0);
    json_is_replayed(&python, &network, |count| {
        // The broker keeps the messages for a reader that has been there.
        let name = format!("subscriber{}", sessions.fetch_add(1, Ordering::Relaxed));
        let session = ["-i", &name, "-c", "-q", "1", "-t", "t/#"];
        let first = [&session[..], &["-E"]].concat();
        assert!(broker.client("mosquitto_sub", &first).status().unwrap().success());
        let count = count.to_string();
        let own = [&session[..], &["-F", "%t %x", "-C", &count, "-W", "60"]].concat();
        Process::start(broker.client("mosquitto_sub", &own))
    });
}

/// Lines without a frame have their time beside the fields: a deployment that takes it from there finds it.
#[test]
fn the_time_of_flat_lines_is_published_where_it_is_read() {
    let folder = Folder::new();
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    folder.file("spec.rondel", "topic a { x: int } property p = a.x < 3");
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: spec.rondel\nzenoh: {{ mode: client, connect: {endpoint} }}\n\
             topics: {{ a: {{ source: zenoh:a, time: time }} }}\n\
             alignment: {{ max_wait: none, absent_after: never }}\n"
        ),
    );
    let lines: String =
        (0..5).map(|at| format!("{{\"time\":{at}.5,\"topic\":\"a\",\"x\":{at}}}\n")).collect();
    let lines = folder.file("lines.jsonl", lines);
    let mut run = start_rondel(["run", &deployment, "--format", "json", "--emit", "every", "--count", "5"]);
    run.wait_stderr("ready");
    rondel(["replay", &deployment, &lines, "--as-fast-as-possible", "--wait", "60"]).expect_status(0);
    let live = run.finish();
    live.expect_status(0);
    let checked = rondel(["check", &deployment, &lines, "--format", "json", "--emit", "every"]);
    assert_eq!(decided(&live.stdout), decided(&checked.stdout), "{}", live.stderr);
    assert_eq!(decided(&live.stdout).len(), 5, "{}", live.stderr);
}
