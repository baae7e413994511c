//! The flight recorder: what it writes around a violation.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::network::{arguments, dds_domain, free_endpoint, independent, python, router, zenoh};
use crate::support::{Folder, rondel, rondel_with_input, start_rondel};
use crate::{topics, wait, written};

/// A deployment on Zenoh with a flight recorder.
pub(super) fn deployment(folder: &Folder, endpoint: &str, record: &str) -> String {
    folder.file(
        "spec.rondel",
        "topic speed \"t/speed\" { v: float }\n\n@severity(critical) @requirement(\"R-7\") @time(steps) property limited = speed.v < 9\n",
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
    let deployment = deployment(&folder, &endpoint, "on: violation, before: 60 s, after: 1 s, keep: 2");
    let evidence = folder.path("evidence");
    std::fs::create_dir(&evidence).unwrap();
    folder.file("evidence/notes.mcap", "mine");
    let mut run = start_rondel(["run", &deployment, "--explain", "--summary", "json"]);
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
    events = [(schema, json.loads(message.data), message.log_time) for schema, channel, message in reader.iter_messages(topics=['rondel/events'])]
    schema = json.loads(events[0][0].data)
    assert (events[0][0].name, events[0][0].encoding) == ('foxglove.Event', 'jsonschema')
    nanos = lambda time: time['sec'] * 10**9 + time['nsec']
    times = [nanos(log['timestamp']) for _, log, _ in logs]
    said = []
    for _, event, time in events:
        assert set(schema['required']) <= set(event) <= set(schema['properties']), event
        start, end = nanos(event['start_time']), nanos(event['end_time'])
        assert start in times and start <= end == time, (event, time, times)
        metadata = {entry['key']: entry['value'] for entry in event['metadata']}
        assert len(metadata) == len(event['metadata']), event
        said.append((metadata, end in times))
    own = {'property': 'limited', 'severity': 'critical', 'requirement': 'R-7', 'verdict': 'violated'}
    assert said == [({**own, 'ended': 'true'}, True), ({**own, 'ended': 'false'}, False)], said
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
    (0..5).for_each(|_| drop(run.wait_stdout("violated      limited")));
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
        deployment(&folder, &endpoint, "on: violation, before: 60 s, after: 0 s, keep: 2, folder: e");
    folder.file("spec.rondel", "topic speed \"t/speed\" { v: float }\nproperty alive = age(speed) < 1 s\n");
    let all = folder.path("all.mcap");
    let mut run = start_rondel(["run", &deployment]);
    let mut record = start_rondel(["record", &deployment, "-o", &all]);
    run.wait_stderr("ready");
    record.wait_stderr("ready");
    speeds(&network, &[1, 2]);
    run.wait_stdout("violated");
    // The recorder may have received the messages later than the run: for it, too, nothing comes for a second.
    wait(|| written(&all, "t/speed") == 2);
    std::thread::sleep(Duration::from_millis(1100));
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
    let mut run = start_rondel(["run", &deployment, "--summary", "json"]);
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
        deployment(&folder, &endpoint, "on: violation, before: 60 s, after: 0 s, memory: 1 MiB, folder: e");
    let mut run = start_rondel(["run", &deployment]);
    run.wait_stderr("ready");
    let many: String = (0..3000).map(|i| format!("{{\"v\":1,\"x\":\"{:500}\"}}\n", i)).collect();
    let publish = arguments(&["publish", "--to", "zenoh:t/speed", "--wait", "60"], &network);
    rondel_with_input(publish, (many + "{\"v\":20}\n").as_bytes()).expect_status(0);
    run.wait_stderr("the flight recorder reaches back");
    run.terminate();
    let finished = run.finish();
    // While a slow disk holds all of the memory, the verdict itself finds no room.
    let has_refused = finished.stderr.contains("1 message was not kept for recording");
    finished
        .expect_status(if has_refused { 5 } else { 0 })
        .expect_stderr(&["1 file reaches back less than 60 s", "1 MiB of memory"]);
    let [file] = &files(&folder.path("e"))[..] else { panic!("{:?}", files(&folder.path("e"))) };
    let checked = rondel(["check", "-e", "violations", &deployment, file.to_str().unwrap()]);
    checked.expect_status(1);
}

/// Offers of publishers in a file of the flight recorder: topic, type, quality of service and hash, as recorded.
fn offers(python: &Path, file: &Path) -> Vec<Value> {
    let script = "
import json, sys
from mcap.reader import make_reader
with open(sys.argv[1], 'rb') as file:
    summary = make_reader(file).get_summary()
    for c in sorted(summary.channels.values(), key=lambda c: c.topic):
        if c.message_encoding == 'cdr':
            schema = summary.schemas[c.schema_id].name
            print(json.dumps([c.topic, schema, c.metadata['offered_qos_profiles'], c.metadata['topic_type_hash']]))
";
    let read = Command::new(python).args(["-c", script]).arg(file).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    String::from_utf8(read.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A file has what publishers on DDS offer, as a recording has.
#[test]
fn a_file_has_the_offers_of_publishers() {
    let Some(python) = python("a_file_has_the_offers_of_publishers") else { return };
    let (domain, folder) = (dds_domain(), Folder::new());
    std::fs::create_dir_all(folder.path("rover_msgs/msg")).unwrap();
    folder.file("rover_msgs/msg/Battery.msg", "float64 charge\n");
    folder.file(
        "battery.rondel",
        "topic battery : rover_msgs/msg/Battery\n@time(steps) property limited = battery.charge < 0.05\n",
    );
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: battery.rondel\nschemas: [.]\ndds: {{ interface: lo, domain: {domain} }}\n\
             topics: {{ battery: \"ros2:/rover/battery\" }}\nros2: {{ middleware: dds, domain: {domain} }}\n\
             record: {{ on: violation, before: 10 s, after: 0 s, folder: e }}\n"
        ),
    );
    let options = ["rt/rover/battery", "--kind", "battery", "--domain", &domain, "--deadline", "0.5"];
    let mut publisher = independent(&python, "dds_typed.py", &options);
    publisher.wait_stdout("ready");
    let mut run = start_rondel(["run", &deployment]);
    run.wait_stderr("ready");
    publisher.write(b"wait\nwrite 1 2\n");
    run.wait_stdout("violated      limited");
    run.terminate();
    run.finish().expect_status(0);
    publisher.close_input();
    publisher.finish();
    let [file] = &files(&folder.path("e"))[..] else { panic!("{:?}", files(&folder.path("e"))) };
    let offers = offers(&python, file);
    let [offer] = &offers[..] else { panic!("{offers:?}") };
    assert_eq!((&offer[0], &offer[1]), (&json!("/rover/battery"), &json!("rover_msgs/msg/Battery")));
    let qos = offer[2].as_str().unwrap();
    for part in ["reliability: 1", "durability: 2", "deadline:\n    sec: 0\n    nsec: 500000000"] {
        assert!(qos.contains(part), "{part}: {qos}");
    }
    assert!(offer[3].as_str().unwrap().starts_with("RIHS01_"), "{offer}");
}
