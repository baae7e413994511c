//! Metrics of a run over HTTP, and the probes of its health.

#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)] // the helpers are tests as well

mod documented;
mod groups;

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rondel_testkit::{LIMIT, Process};
use support::network::{arguments, free_endpoint, free_port, zenoh, zenoh_listening};
use support::{Folder, rondel, start_rondel};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0";

/// The answer to a request.
struct Answer {
    status: u16,
    headers: String,
    body: String,
}

/// Sends a request, and reads until the server closes the connection.
fn get(address: &str, path: &str, accept: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (headers, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, headers: headers.to_ascii_lowercase(), body: body.to_owned() }
}

/// Waits until a request is answered with this status.
fn wait_status(address: &str, path: &str, status: u16) -> Answer {
    let deadline = Instant::now() + LIMIT;
    loop {
        let answer = get(address, path, "*/*");
        if answer.status == status {
            return answer;
        }
        assert!(Instant::now() < deadline, "{path}: {} {}", answer.status, answer.body);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Where a run serves its metrics, as it says on standard error.
fn metrics_address(run: &mut Process) -> String {
    let line = run.wait_stderr("listening on metrics http://");
    let (_, rest) = line.split_once("http://").unwrap();
    rest.split_once('/').unwrap().0.to_owned()
}

/// A sample: its name, its labels and its value.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// The families by name, each with its type; and all samples.
#[derive(Debug, Default)]
struct Exposition {
    families: BTreeMap<String, String>,
    samples: Vec<Sample>,
}

fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
}

/// Reads `name{label="value",…} number`.
fn sample(line: &str) -> Sample {
    let (head, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
    let value = value.replace("+Inf", "inf").parse().unwrap_or_else(|_| panic!("no number: {line}"));
    let Some((name, rest)) = head.split_once('{') else {
        assert!(is_name(head), "{line}");
        return Sample { name: head.to_owned(), labels: BTreeMap::new(), value };
    };
    assert!(is_name(name), "{line}");
    let mut rest = rest.strip_suffix('}').unwrap_or_else(|| panic!("labels do not end: {line}"));
    let mut labels = BTreeMap::new();
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("no label: {line}"));
        assert!(is_name(label), "{line}");
        let (mut text, mut is_escaped, mut end) = (String::new(), false, None);
        for (at, c) in after.char_indices() {
            match (is_escaped, c) {
                (true, 'n') => text.push('\n'),
                (true, '"' | '\\') => text.push(c),
                (true, _) => panic!("unknown escape: {line}"),
                (false, '\\') => {
                    is_escaped = true;
                    continue;
                }
                (false, '"') => {
                    end = Some(at);
                    break;
                }
                (false, _) => text.push(c),
            }
            is_escaped = false;
        }
        let end = end.unwrap_or_else(|| panic!("a label does not end: {line}"));
        assert!(labels.insert(label.to_owned(), text).is_none(), "a label comes twice: {line}");
        rest = &after[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    Sample { name: name.to_owned(), labels, value }
}

/// Parses an exposition strictly: every family has a help text and a type before its samples, no family and no sample
/// comes twice, and histograms are cumulative.
fn parse(text: &str, is_open_metrics: bool) -> Exposition {
    let mut all = Exposition::default();
    let (mut helped, mut current) = (BTreeSet::new(), (String::new(), String::new()));
    assert!(text.ends_with('\n'), "the last line does not end");
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').unwrap();
            assert!(words.ends_with('.'), "{line}");
            assert!(helped.insert(name.to_owned()), "{name} has two help texts");
        } else if let Some(of) = line.strip_prefix("# TYPE ") {
            let (name, kind) = of.split_once(' ').unwrap();
            assert!(is_name(name) && helped.contains(name), "{line}");
            assert!(all.families.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} comes twice");
            current = (name.to_owned(), kind.to_owned());
        } else if let Some(unit) = line.strip_prefix("# UNIT ") {
            let (name, unit) = unit.split_once(' ').unwrap();
            assert!(is_open_metrics && name == current.0 && name.ends_with(&format!("_{unit}")), "{line}");
        } else if line == "# EOF" {
            assert!(is_open_metrics && lines.peek().is_none(), "something follows the end");
            return all;
        } else {
            let sample = sample(line);
            let (family, kind) = &current;
            let suffix = sample.name.strip_prefix(family.as_str()).unwrap_or_else(|| panic!("{line}"));
            let expected: &[&str] = match (kind.as_str(), is_open_metrics) {
                ("counter", true) => &["_total"],
                ("info", true) => &["_info"],
                ("histogram", _) => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            assert!(expected.contains(&suffix), "{line} in {family}, a {kind}");
            assert!(kind != "counter" || sample.value >= 0.0, "{line}");
            let is_known = |known: &Sample| known.name == sample.name && known.labels == sample.labels;
            assert!(!all.samples.iter().any(is_known), "{line} comes twice");
            all.samples.push(sample);
        }
    }
    assert!(!is_open_metrics, "there is no end");
    all
}

impl Exposition {
    /// The value of the sample with exactly these labels.
    #[track_caller]
    fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels: BTreeMap<String, String> =
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let found = self.samples.iter().find(|sample| sample.name == name && sample.labels == labels);
        found.unwrap_or_else(|| panic!("no {name} {labels:?} in {:#?}", self.samples)).value
    }

    /// Checks that the buckets of a histogram are cumulative, and that the last one has all. Returns the count.
    #[track_caller]
    fn histogram(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let is_own = |sample: &&Sample| {
            sample.name == format!("{name}_bucket")
                && labels.iter().all(|(label, value)| sample.labels.get(*label).is_some_and(|of| of == value))
        };
        let buckets: Vec<&Sample> = self.samples.iter().filter(is_own).collect();
        assert!(buckets.len() > 10 && buckets.is_sorted_by_key(|bucket| bucket.value), "{buckets:?}");
        let last = buckets.last().unwrap();
        assert_eq!(last.labels["le"], "+Inf");
        let count = self.value(&format!("{name}_count"), labels);
        assert_eq!(last.value, count);
        let sum = self.value(&format!("{name}_sum"), labels);
        assert!(sum >= 0.0 && (sum > 0.0) == (count > 0.0), "{name}: {sum} of {count}");
        count
    }
}

/// Parses with the client library of Prometheus in Python as well, if it is installed.
fn parse_independently(text: &str) {
    let named = std::env::var_os("RONDEL_TEST_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or_else(|| PathBuf::from("python3"));
    let imported = Command::new(&python).args(["-c", "import prometheus_client"]).output();
    if !imported.is_ok_and(|output| output.status.success()) {
        eprintln!("NOT TESTED: no Python with prometheus_client");
        return;
    }
    let script = "import sys\nfrom prometheus_client.openmetrics.parser import text_string_to_metric_families as read\n\
                  print(sum(len(family.samples) for family in read(sys.stdin.read())))\n";
    let mut child = Command::new(&python)
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let count: usize = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
    assert_eq!(count, parse(text, true).samples.len());
}

const SPECIFICATION: &str = "topic door { id: string, open: bool }\n\
                             property shut for each id in (door.id) = not door.open\n\
                             @severity(critical)\nproperty mine = door.id == \"a\"\n";

/// A monitor of doors on this endpoint that serves metrics, and where.
fn monitor(folder: &Folder, endpoint: &str, more: &str) -> (Process, String) {
    folder.file("p.rondel", SPECIFICATION);
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: p.rondel\nzenoh: {{ mode: router, listen: \"{endpoint}\" }}\n\
             topics: {{ door: {{ source: zenoh:door, time: t }} }}\n\
             verdicts: {{ to: [stdout, zenoh:verdict] }}\n{more}"
        ),
    );
    let mut run = start_rondel(["run", &deployment, "--format", "json", "--summary", "json"]);
    let address = metrics_address(&mut run);
    run.wait_stderr("ready");
    (run, address)
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn a_scrape_has_the_exact_counts() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let more =
        "blind: report\nlimits: { message: 100 B }\nmetrics: { listen: \"127.0.0.1:0\", parameters: 1 }\n";
    let (mut run, address) = monitor(&folder, &endpoint, more);
    let ready = wait_status(&address, "/readyz", 200);
    assert_eq!(ready.body, "ready\n");
    assert_eq!(get(&address, "/healthz", "*/*").body, "alive\n");
    assert_eq!(get(&address, "/", "*/*").status, 404);

    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let message = |tenths: u64, id: &str, open: bool| {
        format!("{{\"t\":{}.{},\"id\":\"{id}\",\"open\":{open}}}", now + tenths / 10, tenths % 10)
    };
    let lines = [
        message(10, "a", true),
        message(20, "b", false),
        "nonsense".to_owned(),
        message(45, "a", false),
        format!("{{\"id\":\"{}\"}}", "x".repeat(100)),
        message(50, "b", true),
    ];
    let mut feed = start_rondel(arguments(
        &["publish", "--to", "zenoh:door", "--wait", "60"],
        &zenoh("client", &endpoint),
    ));
    for line in &lines {
        feed.write(format!("{line}\n").as_bytes());
    }
    run.take_stdout(8);
    let deadline = Instant::now() + LIMIT;
    let (text, scrape) = loop {
        let text = get(&address, "/metrics", OPEN_METRICS).body;
        let scrape = parse(&text, true);
        let is_all = scrape.value("rondel_messages_total", &[("topic", "door")]) == 6.0
            && scrape.histogram("rondel_service_seconds", &[]) == 6.0;
        if is_all || Instant::now() > deadline {
            break (text, scrape);
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    parse_independently(&text);
    let door = [("topic", "door")];
    let bytes: usize = lines.iter().map(String::len).sum();
    for (name, value) in [
        ("rondel_messages_total", 6.0),
        ("rondel_message_bytes_total", bytes as f64),
        ("rondel_decode_errors_total", 1.0),
        ("rondel_late_messages_total", 0.0),
        ("rondel_lost_messages_total", 0.0),
        ("rondel_repeated_messages_total", 0.0),
        ("rondel_recovered_messages_total", 0.0),
        ("rondel_unstamped_messages_total", 0.0),
        ("rondel_waiting_messages", 0.0),
        ("rondel_publishers", 1.0),
    ] {
        assert_eq!(scrape.value(name, &door), value, "{name}");
    }
    for (name, value) in [
        ("rondel_checked_messages_total", 4.0),
        ("rondel_backwards_messages_total", 0.0),
        ("rondel_mistyped_values_total", 0.0),
        // Eight verdicts, printed and published.
        ("rondel_published_messages_total", 16.0),
        ("rondel_unpublished_messages_total", 0.0),
        ("rondel_instances", 2.0),
        ("rondel_ready", 1.0),
        ("rondel_stalled_seconds", 0.0),
        ("rondel_network_lost_samples_total", 0.0),
    ] {
        assert_eq!(scrape.value(name, &[]), value, "{name}");
    }
    let refused =
        |reason| scrape.value("rondel_refused_messages_total", &[("topic", "door"), ("reason", reason)]);
    assert_eq!((refused("size"), refused("time")), (1.0, 0.0));
    for (property, severity, in_violation) in [("shut", "", 3.5), ("mine", "critical", 2.5)] {
        let labels = [("property", property), ("severity", severity)];
        assert_eq!(scrape.value("rondel_violations_total", &labels), 2.0, "{property}");
        assert_eq!(scrape.value("rondel_violated_instances", &labels), 1.0, "{property}");
        assert_eq!(scrape.value("rondel_in_violation_seconds_total", &labels), in_violation, "{property}");
        for (verdict, count) in [("satisfied", 2.0), ("violated", 2.0), ("inconclusive", 0.0)] {
            let labels = [labels[0], labels[1], ("verdict", verdict)];
            assert_eq!(scrape.value("rondel_verdicts_total", &labels), count, "{property} {verdict}");
        }
    }
    // One instance is counted by its parameters, further ones together.
    for (parameters, count) in [("[\"a\"]", 1.0), ("further", 1.0)] {
        let labels = [("property", "shut"), ("severity", ""), ("parameters", parameters)];
        assert_eq!(scrape.value("rondel_instance_violations_total", &labels), count, "{parameters}");
    }
    assert!(scrape.histogram("rondel_latency_seconds", &[("since", "arrival")]) >= 1.0);
    assert!(scrape.value("rondel_instance_memory_bytes", &[]) > 0.0);
    assert!(scrape.value("process_resident_memory_bytes", &[]) > 1e6);
    assert!((scrape.value("process_start_time_seconds", &[]) - now as f64).abs() < 300.0);
    let zenoh = [("network", "zenoh")];
    assert_eq!(scrape.value("rondel_network_connected", &zenoh), 1.0);
    let sinks = scrape.samples.iter().filter(|sample| sample.name == "rondel_sink_queue_messages");
    assert!(sinks.clone().count() >= 1 && sinks.clone().all(|sample| sample.value == 0.0));

    let plain = get(&address, "/metrics", "*/*");
    assert!(plain.headers.contains("content-type: text/plain; version=0.0.4"), "{}", plain.headers);
    let plain = parse(&plain.body, false);
    assert_eq!(plain.value("rondel_messages_total", &door), 6.0);
    assert_eq!(plain.families["rondel_messages_total"], "counter");
    run.terminate();
    run.finish().expect_status(0);
}

#[test]
fn store_and_audit_are_counted() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let more = "store: verdicts.db\naudit: audit.jsonl\nmetrics: 127.0.0.1:0\n";
    let (mut run, address) = monitor(&folder, &endpoint, more);
    let publish = ["publish", "--to", "zenoh:door", "--wait", "60"];
    let mut feed = start_rondel(arguments(&publish, &zenoh("client", &endpoint)));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    feed.write(format!("{{\"t\":{now},\"id\":\"a\",\"open\":true}}\n").as_bytes());
    run.take_stdout(2);
    let path = folder.path("verdicts.db");
    let store = [("sink", path.as_str())];
    let deadline = Instant::now() + LIMIT;
    loop {
        let scrape = parse(&get(&address, "/metrics", OPEN_METRICS).body, true);
        let stored = scrape.value("rondel_sink_stored_verdicts_total", &store);
        let lines = scrape.value("rondel_audit_lines_total", &[]);
        if (stored, lines) == (2.0, 3.0) {
            assert_eq!(scrape.value("rondel_sink_up", &store), 1.0);
            for name in ["waiting_entries", "file_entries", "lost_entries_total", "failures_total"] {
                assert_eq!(scrape.value(&format!("rondel_sink_{name}"), &store), 0.0, "{name}");
            }
            assert_eq!(scrape.value("rondel_sink_repeated_verdicts_total", &store), 0.0);
            assert_eq!(scrape.value("rondel_audit_lost_lines_total", &[]), 0.0);
            assert_eq!(scrape.value("rondel_audit_failures_total", &[]), 0.0);
            break;
        }
        assert!(Instant::now() < deadline, "{stored} verdicts, {lines} lines");
        std::thread::sleep(Duration::from_millis(20));
    }
    run.terminate();
    run.finish().expect_status(0);
}

#[test]
fn a_port_in_use_is_an_error_at_the_start() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let endpoint = free_endpoint();
    let own = ["run", "-f", "v", "--topic", "zenoh:never/published", "--metrics", &address];
    let finished = rondel(arguments(&own, &zenoh_listening("peer", &endpoint)));
    let said = format!("cannot serve metrics on {address}: another program uses this port");
    finished.expect_status(2).expect_stderr(&[&said]);
}

#[test]
fn a_run_is_alive_but_not_ready_before_its_network_is_joined() {
    let broker = format!("127.0.0.1:{}", free_port());
    let mut run = start_rondel([
        "run",
        "-f",
        "v",
        "--topic",
        "mqtt:a",
        "--mqtt-broker",
        &broker,
        "--metrics",
        "127.0.0.1:0",
    ]);
    let address = metrics_address(&mut run);
    assert_eq!(get(&address, "/healthz", "*/*").status, 200);
    let answer = get(&address, "/readyz", "*/*");
    assert_eq!(answer.status, 503);
    let reasons = ["not joined yet", "mqtt is not connected"];
    assert!(reasons.iter().any(|reason| answer.body.contains(reason)), "{}", answer.body);
    let scrape = parse(&get(&address, "/metrics", "*/*").body, false);
    assert_eq!(scrape.value("rondel_ready", &[]), 0.0);
    let version = scrape.samples.iter().find(|sample| sample.name == "rondel_build_info").unwrap();
    assert_eq!(version.labels["version"], env!("CARGO_PKG_VERSION"));
    run.terminate();
    run.finish();
}

#[test]
fn silent_clients_hold_up_neither_others_nor_the_run() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (mut run, address) = monitor(&folder, &endpoint, "metrics: 127.0.0.1:0\n");
    // More than there may be at a time: some say nothing, some send half a request.
    let mut silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(&address).unwrap()).collect();
    for stream in silent.iter_mut().step_by(2) {
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost:").unwrap();
    }
    let mut feed = start_rondel(arguments(
        &["publish", "--to", "zenoh:door", "--wait", "60"],
        &zenoh("client", &endpoint),
    ));
    feed.write(b"{\"t\":1,\"id\":\"a\",\"open\":true}\n");
    run.take_stdout(2);
    assert_eq!(get(&address, "/healthz", "*/*").status, 200);
    for stream in &mut silent[..8] {
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        // Closed by the server, with or without an answer.
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
        }
    }
    // Garbage, a method that is none, and a request without an end.
    for garbage in [&b"\0\xff\r\n\r\n"[..], b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"]
    {
        TcpStream::connect(&address).unwrap().write_all(garbage).unwrap();
    }
    assert_eq!(get(&address, "/metrics", "*/*").status, 200);
    run.terminate();
    run.finish().expect_status(0);
}

#[test]
fn wrong_settings_are_refused() {
    let folder = Folder::new();
    for (metrics, said) in [
        ("9464", "`metrics` must be an IP address and a port, such as 127.0.0.1:9464"),
        ("{ listen: localhost }", "`listen` must be an IP address and a port"),
        ("{ parameters: 5 }", "`metrics` needs `listen`"),
        (
            "{ listen: \"127.0.0.1:1\", parameters: -1 }",
            "`parameters` must be a whole number from 0 to 10000",
        ),
        ("{ port: 9464 }", "metrics has no setting 'port'; write `listen`"),
    ] {
        let text = format!("formula: v\ntopics: {{ trace: zenoh:t }}\nmetrics: {metrics}\n");
        let deployment = folder.file("rondel.yaml", text);
        rondel(["validate", &deployment]).expect_status(2).expect_stderr(&[said]);
    }
    rondel(["run", "-f", "v", "--topic", "zenoh:t", "--metrics", "here"]).expect_status(2);
}

#[test]
fn workers_have_metrics_of_their_own() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (run, address) = monitor(&folder, &endpoint, "metrics: 127.0.0.1:0\nworkers: 2\n");
    let scrape = parse(&get(&address, "/metrics", "*/*").body, false);
    for name in
        ["rondel_worker_batches_total", "rondel_worker_messages_total", "rondel_worker_waiting_messages"]
    {
        assert_eq!(scrape.value(name, &[]), 0.0, "{name}");
    }
    let busy = scrape.samples.iter().filter(|sample| sample.name == "rondel_worker_busy_seconds_total");
    assert_eq!(busy.count(), 0, "no thread has started");
    run.terminate();
    run.finish().expect_status(0);
}
