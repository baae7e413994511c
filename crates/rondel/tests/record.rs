//! `rondel record`, and the flight recorder of `rondel run`: what they write gives the verdicts of the live run, and
//! other programs read it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

#[path = "../../rondel-net/tests/broker/mod.rs"]
mod broker;
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use broker::Broker;
use serde_json::Value;
use support::network::{arguments, dds, dds_domain, free_endpoint, independent, python, router, zenoh};
use support::process::Process;
use support::{Finished, Folder, rondel, rondel_with_input};

const SPECIFICATION: &str = "
topic gear \"t/gear\" { t: time, report: int }
topic speed \"t/speed\" { t: time, v: float }
@time(steps) property limited = speed.v < 9 or once gear.report == 3
property recent = gear.report == 2 -> once[0, 25 s] speed.v > 5
property soon = gear.report == 1 -> eventually[0, 33 s] speed.v < 2
";

/// Messages ten seconds apart, as JSON lines with their topics.
fn messages(count: usize) -> Vec<(&'static str, String)> {
    let one = |i: usize| match i % 2 {
        0 => ("gear", format!("{{\"t\":{},\"report\":{}}}", 10 * i, i / 2 % 4)),
        _ => ("speed", format!("{{\"t\":{},\"v\":{}}}", 10 * i, (i * 7 % 40) as f64 / 4.0)),
    };
    (0..count).map(one).collect()
}

/// Sends messages one after the other, each topic by its own publisher, as the networks number them.
fn send(network: &[String], scheme: &str, messages: &[(&str, String)]) {
    for topic in ["gear", "speed"] {
        let own = messages.iter().filter(|(of, _)| *of == topic);
        let text: String = own.map(|(_, payload)| format!("{payload}\n")).collect();
        let to = format!("{scheme}:t/{topic}");
        let publish = arguments(&["publish", "--to", &to, "--wait", "60"], network);
        rondel_with_input(publish, text.as_bytes()).expect_status(0);
    }
}

/// The lines without what is left open at the end: by then time has passed in a run.
fn decided(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.retain(|line| !line.contains("\"inconclusive\"") || line.contains("\"step\""));
    lines.sort_unstable();
    lines
}

/// The verdicts on a recording, by the deployment.
fn check(deployment: &str, file: &str) -> Finished {
    rondel(["check", deployment, file, "--format", "json", "--emit", "every"])
}

/// The topics of an MCAP file as PyPI's `mcap` reads them: name, encoding, schema, its encoding, and the number of messages.
fn topics(python: &Path, file: &Path) -> Vec<(String, String, String, String, u64)> {
    let script = "
import json, sys
from mcap.reader import make_reader
with open(sys.argv[1], 'rb') as file:
    summary = make_reader(file, validate_crcs=True).get_summary()
    for channel in summary.channels.values():
        schema = summary.schemas.get(channel.schema_id)
        count = summary.statistics.channel_message_counts.get(channel.id, 0)
        print(json.dumps([channel.topic, channel.message_encoding, schema.name if schema else '', schema.encoding if schema else '', count]))
";
    let run = Command::new(python).args(["-c", script]).arg(file).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let mut all: Vec<_> = String::from_utf8(run.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    all.sort();
    all
}

/// Records what a run checks, and expects the same verdicts on the recording.
fn recorded_is_live(
    folder: &Folder,
    section: &str,
    network: &[String],
    scheme: &str,
    extra: &[&str],
) -> String {
    folder.file("spec.rondel", SPECIFICATION);
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: spec.rondel\n{section}\ntopics:\n  gear: {{ source: \"{scheme}:t/gear\", time: t }}\n  \
             speed: {{ source: \"{scheme}:t/speed\", time: t }}\nalignment: {{ max_wait: none, absent_after: never }}\n"
        ),
    );
    let all = messages(200);
    let file = folder.path("drive.mcap");
    let mut run =
        Process::rondel(["run", &deployment, "--format", "json", "--emit", "every", "--count", "200"]);
    run.wait_stderr("ready");
    let own = ["record", &deployment, "-o", &file, "--count", "200"];
    let mut record = Process::rondel([&own[..], extra].concat());
    record.wait_stderr("ready");
    send(network, scheme, &all);
    let live = run.finish();
    live.expect_status(0);
    record
        .finish()
        .expect_status(0)
        .expect_stderr(&["received 200 messages, lost 0, refused 0; wrote 200 messages in"]);
    if extra.is_empty() {
        let checked = check(&deployment, &file);
        let (live, recorded) = (decided(&live.stdout), decided(&checked.stdout));
        assert!(live.len() > 300, "{}", live.len());
        assert_eq!(live, recorded, "{}", checked.stderr);
    }
    deployment
}

#[test]
fn zenoh_is_recorded_as_it_is_checked() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let (folder, network) = (Folder::new(), zenoh("client", &endpoint));
    let section = format!("zenoh: {{ mode: client, connect: {endpoint} }}");
    recorded_is_live(&folder, &section, &network, "zenoh", &[]);
    if let Some(python) = python("zenoh_is_recorded_as_it_is_checked") {
        let expected =
            ["t/gear", "t/speed"].map(|name| (name.into(), "json".into(), "".into(), "".into(), 100));
        assert_eq!(topics(&python, folder.as_path().join("drive.mcap").as_path()), expected);
    }
}

#[test]
fn mqtt_is_recorded_as_it_is_checked() {
    let Some(broker) = Broker::start("mqtt_is_recorded_as_it_is_checked") else { return };
    let (folder, section) = (Folder::new(), format!("mqtt: {{ broker: \"127.0.0.1:{}\" }}", broker.port));
    let network = vec!["--mqtt-broker".to_owned(), format!("127.0.0.1:{}", broker.port)];
    let deployment = recorded_is_live(&folder, &section, &network, "mqtt", &[]);
    // By a pattern, each topic under its own name.
    let file = folder.path("all.mcap");
    let own = ["record", "mqtt:t/#", "-o", &file, "--compression", "lz4"];
    let mut record = Process::rondel(arguments(&own, &network));
    record.wait_stderr("ready");
    send(&network, "mqtt", &messages(200));
    wait(|| std::fs::metadata(&file).is_ok_and(|metadata| metadata.len() > 1500));
    record.terminate();
    record
        .finish()
        .expect_status(0)
        .expect_stderr(&["received 200 messages on 2 topics of patterns, lost 0"]);
    let (one, other) = (check(&deployment, &folder.path("drive.mcap")), check(&deployment, &file));
    assert_eq!(decided(&one.stdout), decided(&other.stdout), "{}", other.stderr);
}

/// Waits for a condition.
fn wait(is: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !is() {
        assert!(Instant::now() < end, "it takes too long");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn ros2_is_recorded_with_its_types() {
    let Some(python) = python("ros2_is_recorded_with_its_types") else { return };
    let (domain, folder) = (dds_domain(), Folder::new());
    folder.file(
        "chatter.rondel",
        "topic chatter \"/fleet/chatter\" : std_msgs/msg/String\n\
         @time(steps) property short = chatter.data != \"n 4\"\n",
    );
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: chatter.rondel\nros2: {{ middleware: dds, domain: {domain} }}\n\
             dds: {{ interface: lo, domain: {domain} }}\ntopics:\n  chatter: ros2:/fleet/chatter\n"
        ),
    );
    folder.file("texts", (0..10).map(|i| format!("n {i}\n")).collect::<String>());
    let file = folder.path("drive.mcap");
    let own = ["run", &deployment, "--format", "json", "--emit", "every", "--count", "10"];
    let mut run = Process::rondel(own);
    let mut record = Process::rondel(["record", &deployment, "-o", &file, "--count", "10"]);
    run.wait_stderr("ready");
    record.wait_stderr("ready");
    let texts = folder.path("texts");
    let options = ["rt/fleet/chatter", "--domain", &domain, "--file", &texts];
    independent(&python, "dds_publish.py", &options).finish().expect_status(0);
    let live = run.finish();
    live.expect_status(0);
    record.finish().expect_status(0);
    let verdicts = |text: &str| -> Vec<(Value, Value)> {
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| (line["step"].clone(), line["verdict"].clone())).collect()
    };
    let checked =
        rondel(["check", &folder.path("chatter.rondel"), &file, "--format", "json", "--emit", "every"]);
    checked.expect_status(1);
    assert_eq!(verdicts(&checked.stdout), verdicts(&live.stdout));
    assert_eq!(verdicts(&live.stdout).len(), 10);
    let path = PathBuf::from(&file);
    let (name, encoding) = ("std_msgs/msg/String".to_owned(), "ros2msg".to_owned());
    assert_eq!(topics(&python, &path), [("/fleet/chatter".into(), "cdr".into(), name, encoding, 10)]);
    let script = "
import sys
from pathlib import Path
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
expected = ['n %d' % i for i in range(10)]
with open(sys.argv[1], 'rb') as file:
    reader = make_reader(file, decoder_factories=[DecoderFactory()])
    assert reader.get_header().profile == 'ros2'
    assert [m[3].data for m in reader.iter_decoded_messages()] == expected
with AnyReader([Path(sys.argv[1])]) as reader:
    assert [reader.deserialize(raw, c.msgtype).data for c, _, raw in reader.messages()] == expected
";
    let read = Command::new(&python).args(["-c", script, &file]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
}

#[test]
fn files_are_split_and_survive_a_crash() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let (folder, network) = (Folder::new(), zenoh("client", &endpoint));
    let section = format!("zenoh: {{ mode: client, connect: {endpoint} }}");
    let extra = ["--split-size", "4 KiB", "--compression", "none"];
    let deployment = recorded_is_live(&folder, &section, &network, "zenoh", &extra);
    let parts: Vec<String> = (0..9)
        .map(|i| folder.path(&format!("drive_{i}.mcap")))
        .filter(|part| Path::new(part).exists())
        .collect();
    assert!(parts.len() > 2, "{parts:?}");
    let merged = rondel(
        [
            &["check", &deployment, "--merge", "--format", "json", "--emit", "every"][..],
            &parts.iter().map(String::as_str).collect::<Vec<_>>(),
        ]
        .concat(),
    );
    assert!(decided(&merged.stdout).len() > 300, "{}", merged.stderr);
    // It does not replace a file.
    rondel(["record", &deployment, "-o", &folder.path("drive.mcap"), "--split-size", "4 KiB"])
        .expect_status(2)
        .expect_stderr(&["exists already, and is not replaced"]);
    rondel(["record", &deployment, "-o", &folder.path("no/where.mcap")])
        .expect_status(3)
        .expect_stderr(&["there is no folder"]);
    // A file that is in the way is skipped, and nothing is lost.
    folder.file("way_1.mcap", "mine");
    let way = folder.path("way.mcap");
    let own = [
        "record",
        &deployment,
        "-o",
        &way,
        "--count",
        "200",
        "--split-size",
        "4 KiB",
        "--compression",
        "none",
    ];
    let mut record = Process::rondel(own);
    record.wait_stderr("ready");
    send(&network, "zenoh", &messages(200));
    record.finish().expect_status(0).expect_stderr(&["wrote 200 messages in", "way_0.mcap", "way_2.mcap"]);
    assert_eq!(std::fs::read_to_string(folder.path("way_1.mcap")).unwrap(), "mine");
    // Killed in between: what was written a second ago is there.
    let file = folder.path("killed.mcap");
    let mut record = Process::rondel(["record", &deployment, "-o", &file]);
    record.wait_stderr("ready");
    send(&network, "zenoh", &messages(200));
    let size = || std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
    wait(|| size() > 1000);
    wait(|| rondel(["topics", &file]).stdout.contains("t/speed"));
    record.kill();
    let checked = rondel(["check", "-q", "--on-error", "skip", &deployment, &file]);
    checked.expect_stderr(&["cut off"]);
}

#[test]
fn a_disk_that_fails_is_said_and_counted() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let (folder, network) = (Folder::new(), zenoh("client", &endpoint));
    // A limit of the size of files stands for a full disk.
    let file = folder.path("full.mcap");
    let limited = format!("trap '' XFSZ; ulimit -f 8; exec '{}' \"$@\"", support::RONDEL);
    let mut command = Command::new("sh");
    let own = ["record", "zenoh:t/*", "-o", &file, "--compression", "none"];
    command.args(["-c", &limited, "sh"]).args(arguments(&own, &network));
    let mut record = Process::start(command);
    record.wait_stderr("ready");
    send(&network, "zenoh", &messages(200));
    record.wait_stderr("cannot write");
    record.terminate();
    record.finish().expect_status(3).expect_stderr(&["received 200 messages", "lost"]);
    // What is left of it does not pass for the whole.
    let checked = rondel(["check", "-f", "true or v > 0", "--topics", "t/speed", &file]);
    assert!(matches!(checked.status, Some(3 | 4)), "{:?} {}", checked.status, checked.stderr);
    assert!(
        checked.stderr.contains("not written") || checked.stderr.contains("cut off"),
        "{}",
        checked.stderr
    );
    // The folder goes away.
    let gone = folder.path("gone");
    std::fs::create_dir(&gone).unwrap();
    let file = format!("{gone}/drive.mcap");
    let mut record = Process::rondel(arguments(&["record", "zenoh:t/*", "-o", &file], &network));
    record.wait_stderr("ready");
    wait(|| Path::new(&file).exists());
    std::fs::remove_dir_all(&gone).unwrap();
    send(&network, "zenoh", &messages(20));
    record.wait_stderr("was removed or moved");
    record.terminate();
    record.finish().expect_status(3).expect_stderr(&["received 20 messages", "lost"]);
}

/// A deployment on Zenoh with a flight recorder.
fn flight(folder: &Folder, endpoint: &str, record: &str) -> String {
    folder.file(
        "spec.rondel",
        "topic speed \"t/speed\" { v: float }\n\n@severity(critical) @time(steps) property limited = speed.v < 9\n",
    );
    folder.file(
        "rondel.yaml",
        format!(
            "specification: spec.rondel\nzenoh: {{ mode: client, connect: {endpoint} }}\n\
             topics: {{ speed: \"zenoh:t/speed\" }}\nrecord: {{ {record} }}\n"
        ),
    )
}

/// The files in a folder, by name.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Whether a file of violations has its end.
fn is_finished(file: &Path) -> bool {
    let listed = rondel(["topics", file.to_str().unwrap()]);
    file.to_string_lossy().ends_with("-limited.mcap")
        && listed.status == Some(0)
        && !listed.stderr.contains("cut off")
}

fn speeds(network: &[String], values: &[u32]) {
    let text: String = values.iter().map(|v| format!("{{\"v\":{v}}}\n")).collect();
    let publish = arguments(&["publish", "--to", "zenoh:t/speed", "--wait", "60"], network);
    rondel_with_input(publish, text.as_bytes()).expect_status(0);
}

#[test]
fn a_violation_leaves_a_file() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let (folder, network) = (Folder::new(), zenoh("client", &endpoint));
    let deployment = flight(&folder, &endpoint, "on: violation, before: 60 s, after: 300 ms, keep: 2");
    let evidence = folder.path("evidence");
    std::fs::create_dir(&evidence).unwrap();
    folder.file("evidence/notes.mcap", "mine");
    let mut run = Process::rondel(["run", &deployment, "--explain", "--summary", "json"]);
    run.wait_stderr("ready");
    speeds(&network, &[1, 2, 3]);
    assert_eq!(files(&evidence).len(), 1, "nothing is written before a violation");
    speeds(&network, &[4, 11, 5, 12]);
    // The file ends, although nothing comes.
    let newest = || files(&evidence).into_iter().rfind(|file| is_finished(file));
    wait(|| newest().is_some());
    let first = newest().unwrap();
    let checked = rondel(["check", "-e", "every", "--format", "json", &deployment, first.to_str().unwrap()]);
    assert_eq!(checked.expect_status(1).stdout.lines().count(), 7, "{}", checked.stdout);
    if let Some(python) = python("a_violation_leaves_a_file") {
        let seen = topics(&python, &first);
        let of = |name: &str| seen.iter().filter(|topic| topic.0 == name).map(|topic| topic.4).sum::<u64>();
        assert_eq!((of("t/speed"), of("rondel/verdicts")), (7, 4), "{seen:?}");
        let script = "
import json, sys
from mcap.reader import make_reader
with open(sys.argv[1], 'rb') as file:
    reader = make_reader(file)
    logs = [(schema, json.loads(message.data), message.log_time) for schema, channel, message in reader.iter_messages(topics=['rondel/verdicts'])]
    schema = json.loads(logs[0][0].data)
    assert logs[0][0].name == 'foxglove.Log' and schema['type'] == 'object', schema
    for _, log, time in logs:
        assert set(schema['required']) <= set(log) <= set(schema['properties']), log
        assert log['timestamp']['sec'] * 10**9 + log['timestamp']['nsec'] == time
    violated = [log for _, log, _ in logs if log['level'] == 5]
    assert len(violated) == 2 and violated[0]['line'] == 3 and violated[0]['file'].endswith('spec.rondel'), violated
    assert violated[0]['verdict']['evidence'][-1]['values']['speed.v'] == 11, violated
    assert {'key': 'severity', 'value': 'critical'} in violated[0]['metadata']
    notes = [m.metadata for m in reader.iter_metadata()]
    assert notes[0]['property'] == 'limited' and notes[0]['violations'] == '2', notes
";
        let read = Command::new(&python).args(["-c", script]).arg(&first).output().unwrap();
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    }
    // Further violations: only so many files are kept, and others are left alone.
    for _ in 0..2 {
        let before = newest();
        speeds(&network, &[1, 13]);
        wait(|| newest() != before && files(&evidence).len() <= 3);
    }
    // SIGTERM within `after`.
    wait(|| !first.exists());
    speeds(&network, &[1, 14]);
    run.terminate();
    let finished = run.finish();
    finished.expect_status(0);
    let summary: Value = serde_json::from_str(finished.stderr.lines().last().unwrap()).unwrap();
    let recorded = &summary["recorded"];
    assert_eq!((&recorded["lost"], &recorded["failure"]), (&0.into(), &Value::Null), "{recorded}");
    assert!(recorded["violations"].as_u64().unwrap() >= 5, "{recorded}");
    let kept = files(&evidence);
    assert_eq!(kept.len(), 3, "{kept:?}");
    let last = rondel(["check", "-q", &deployment, kept[1].to_str().unwrap()]);
    assert!(matches!(last.status, Some(0 | 1)) && !last.stderr.contains("cut off"), "{}", last.stderr);
}

/// A violation that time brings is one on the recordings too: on the flight recorder's file, and on that of `record`.
#[test]
fn silence_is_recorded() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let (folder, network) = (Folder::new(), zenoh("client", &endpoint));
    let deployment =
        flight(&folder, &endpoint, "on: violation, before: 60 s, after: 0 s, keep: 2, folder: e");
    folder.file("spec.rondel", "topic speed \"t/speed\" { v: float }\nproperty alive = age(speed) < 1 s\n");
    let all = folder.path("all.mcap");
    let mut run = Process::rondel(["run", &deployment]);
    let mut record = Process::rondel(["record", &deployment, "-o", &all]);
    run.wait_stderr("ready");
    record.wait_stderr("ready");
    speeds(&network, &[1, 2]);
    run.wait_stdout("violated");
    record.terminate();
    record.finish().expect_status(0);
    run.terminate();
    run.finish().expect_status(0);
    let [file] = &files(&folder.path("e"))[..] else { panic!("{:?}", files(&folder.path("e"))) };
    for file in [all.as_str(), file.to_str().unwrap()] {
        rondel(["check", &deployment, file]).expect_status(1);
    }
}

/// Only the message that violates, and what the deployment of a formula writes is what it reads.
#[test]
fn the_message_that_violates_is_in_the_file() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let (folder, network) = (Folder::new(), zenoh("client", &endpoint));
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "formula: v < 9\nzenoh: {{ mode: client, connect: {endpoint} }}\n\
             topics: {{ trace: \"zenoh:t/speed\" }}\n\
             record: {{ on: violation, before: 0 s, after: 0 s, folder: e, keep: 2 }}\n"
        ),
    );
    let mut run = Process::rondel(["run", &deployment, "--summary", "json"]);
    run.wait_stderr("ready");
    let mut seen = Vec::new();
    for _ in 0..4 {
        speeds(&network, &[1, 11]);
        wait(|| files(&folder.path("e")).last().is_some_and(|file| !seen.contains(file)));
        let newest = files(&folder.path("e")).pop().unwrap();
        // The next violation ends it, or the end of the run.
        seen.push(newest);
    }
    run.terminate();
    let finished = run.finish();
    let summary: Value = serde_json::from_str(finished.stderr.lines().last().unwrap()).unwrap();
    let recorded = &summary["recorded"];
    let listed: Vec<&str> =
        recorded["files"].as_array().unwrap().iter().map(|file| file["file"].as_str().unwrap()).collect();
    let kept = files(&folder.path("e"));
    let named: Vec<&str> = kept.iter().map(|file| file.to_str().unwrap()).collect();
    assert_eq!((listed, &recorded["removed"]), (named, &2.into()), "{recorded}");
    for file in &kept {
        let checked = rondel(["check", &deployment, file.to_str().unwrap()]);
        checked.expect_status(1);
    }
}

#[test]
fn a_small_memory_reaches_back_less() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let (folder, network) = (Folder::new(), zenoh("client", &endpoint));
    let deployment =
        flight(&folder, &endpoint, "on: violation, before: 60 s, after: 0 s, memory: 1 MiB, folder: e");
    let mut run = Process::rondel(["run", &deployment]);
    run.wait_stderr("ready");
    let many: String = (0..3000).map(|i| format!("{{\"v\":1,\"x\":\"{:500}\"}}\n", i)).collect();
    let publish = arguments(&["publish", "--to", "zenoh:t/speed", "--wait", "60"], &network);
    rondel_with_input(publish, (many + "{\"v\":20}\n").as_bytes()).expect_status(0);
    run.wait_stderr("the flight recorder reaches back");
    run.terminate();
    run.finish().expect_status(0).expect_stderr(&["1 file reaches back less than 60 s", "1 MiB of memory"]);
    let [file] = &files(&folder.path("e"))[..] else { panic!("{:?}", files(&folder.path("e"))) };
    let checked = rondel(["check", "-e", "violations", &deployment, file.to_str().unwrap()]);
    checked.expect_status(1);
}

/// What does not fit the publishers, and topics without messages, are named.
#[test]
fn what_never_came_is_said() {
    let Some(python) = python("what_never_came_is_said") else { return };
    let (domain, folder) = (dds_domain(), Folder::new());
    folder.file("texts", "one\n");
    let file = folder.path("wrong.mcap");
    let own = ["record", "dds:rt/fleet/chatter", "-o", &file, "--type", "std_msgs/msg/Bool"];
    let mut record = Process::rondel(arguments(&own, &dds(&domain)));
    record.wait_stderr("ready");
    let texts = folder.path("texts");
    let options = ["rt/fleet/chatter", "--domain", &domain, "--file", &texts];
    let publisher = independent(&python, "dds_publish.py", &options);
    record.wait_stderr("its type is");
    record.terminate();
    record.finish().expect_status(5).expect_stderr(&["publishers that do not match 1", ": NO MESSAGE"]);
    drop(publisher);
}

#[test]
fn wrong_settings_are_refused() {
    let folder = Folder::new();
    let refused = |record: &str, said: &str| {
        let deployment = flight(&folder, "tcp/127.0.0.1:1", record);
        rondel(["validate", &deployment]).expect_status(2).expect_stderr(&[said]);
    };
    refused("before: 1 s", "`record` needs `on: violation`");
    refused("on: error", "`on` of `record` must be violation");
    refused("on: violation, before: 10", "`before` must be a duration such as 10 s");
    refused("on: violation, after: 2 h", "must be at most 1 h");
    refused("on: violation, keep: 0", "`keep` must be a number of files");
    refused("on: violation, memory: 10 kB", "`memory` must be a whole number with a unit, from 1 MiB");
    refused("on: violation, directory: x", "write `folder`");
    folder.file("taken", "");
    let taken = flight(&folder, "tcp/127.0.0.1:1", "on: violation, folder: taken/x");
    for command in ["validate", "run"] {
        rondel([command, &taken])
            .expect_status(3)
            .expect_stderr(&["cannot record in the folder", "is not a folder"]);
    }
    let deployment = flight(&folder, "tcp/127.0.0.1:1", "on: violation, folder: new/e");
    let fine = rondel(["validate", &deployment]);
    assert!(
        fine.expect_status(0).stdout.contains("10 s before a violation and 5 s after it"),
        "{}",
        fine.stdout
    );
    assert!(!folder.as_path().join("new").exists());
}
