//! Messages of industrial devices, Sparkplug B and SenML, that independent writers have written, checked as what they mean.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::path::PathBuf;
use std::process::Command;

use rondel_runtime::Emit;
use rondel_testkit::Broker;
use support::{Folder, library, rondel, start_rondel};

const PRESS: &str = "
topic press \"spBv1.0/plant/+/press/#\"
property cool = press.metrics[name == \"Press/Temp\"].value < 90
property good = press.metrics[name == \"Press/Temp\"].properties.Quality == 192
property counting = press.metrics[name == \"Count\"].value > -100
let whole(value: int) = value
property total = whole(press.metrics[name == \"Total\"].value) >= -4_611_686_018_427_387_904
property grows = whole(press.metrics[name == \"Total\"].value) > prev(press.metrics[name == \"Total\"].value)
property size = press.metrics[name == \"Size\"].value < 4_000_000_000
property running = once[0, 20 s] press.metrics[name == \"Running\"].value
property mode = press.metrics[name == \"Mode\"].value != \"fault\"
property reach = press.metrics[name == \"Arm/Pos\"].value in [-1.5, 1.5]
property step = abs(press.metrics[name == \"Arm/Step\"].value - prev(press.metrics[name == \"Arm/Step\"].value)) < 500
";

const ROOM: &str = "
topic room
property warm = room.records[n == \"urn:dev:mac:0024be:temp\"].v in [-10, 40]
property dry = room.records[n == \"urn:dev:mac:0024be:hum\"].v < 70 or room.records[n == \"urn:dev:ow:10e2/hum\"].v > 30
property closed = once[0, 20 s] not room.records[n == \"urn:dev:mac:0024be:window\"].vb
property mode = room.records[n == \"urn:dev:ow:10e2/mode\"].vs != \"ä\\\"\\\\\"
property unit = room.records[n == \"urn:dev:mac:0024be:temp\"].u == \"Cel\"
property fresh = room.time - prev(room.time) < 60
property order = room.records[n == \"urn:dev:ow:10e2/temp\"].t <= room.time
";

/// Returns the Python with independent writers, if there is one.
fn python(test: &str) -> Option<PathBuf> {
    rondel_testkit::python(test, "pysparkplug, kpn_senml, mcap")
}

/// A folder with the recordings that a script writes from a seed, and a specification.
fn written(python: &PathBuf, script: &str, seed: u64, specification: &str) -> Folder {
    let folder = Folder::new();
    folder.file("spec.rondel", specification);
    let script = format!("{}/tests/industrial/{script}", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(python);
    command.arg("-B").arg(script).arg(folder.as_path()).arg(seed.to_string());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

/// That messages have the verdicts of what their writer wrote, with random messages.
fn agree(python: &PathBuf, script: &str, specification: &str, verdicts: usize) {
    let seed = std::env::var("RONDEL_SEED").ok().and_then(|seed| seed.parse().ok());
    let plan = library::plan(specification, Emit::Every, false).unwrap();
    for seed in seed.map_or(1..=6, |seed: u64| seed..=seed) {
        let folder = written(python, script, seed, specification);
        let lines = std::fs::read_to_string(folder.path("lines.jsonl")).unwrap();
        let expected = library::check(&plan, &lines);
        let (spec, whole) = (folder.path("spec.rondel"), folder.path("whole.mcap"));
        let found = rondel(["check", "--format", "json", "-e", "every", "-q", &spec, &whole]);
        let place = expected.lines().zip(found.stdout.lines()).find(|(one, other)| one != other);
        assert_eq!(place, None, "{script} RONDEL_SEED={seed}: {}", found.stderr);
        assert_eq!(found.stdout.len(), expected.len(), "{script} RONDEL_SEED={seed}: {}", found.stderr);
        assert!(found.stdout.lines().count() >= verdicts, "{script} RONDEL_SEED={seed}: {}", found.stderr);
    }
}

#[test]
fn sparkplug_has_the_verdicts_of_its_values() {
    let Some(python) = python("sparkplug_has_the_verdicts_of_its_values") else { return };
    agree(&python, "sparkplug.py", PRESS, 5_000);
}

#[test]
fn senml_has_the_verdicts_of_its_values() {
    let Some(python) = python("senml_has_the_verdicts_of_its_values") else { return };
    agree(&python, "senml.py", ROOM, 2_500);
}

#[test]
fn packs_of_a_broker_have_the_verdicts_of_their_values() {
    let Some(python) = python("packs_of_a_broker_have_the_verdicts_of_their_values") else { return };
    for seed in 1..=3 {
        let folder = written(&python, "senml.py", seed, ROOM);
        let deployment = "specification: spec.rondel\nmqtt: { broker: 127.0.0.1 }\n\
                          topics: { room: { source: mqtt:room, encoding: senml } }\n";
        let deployment = folder.file("room.yaml", deployment);
        let check = |file: &str| {
            rondel(["check", "--format", "json", "-e", "every", "-q", &deployment, &folder.path(file)])
        };
        let (expected, found) = (check("broker_lines.jsonl"), check("broker.jsonl"));
        assert_eq!(found.stdout, expected.stdout, "{seed}: {}{}", expected.stderr, found.stderr);
        assert!(found.stdout.lines().count() > 500, "{seed}: {}", found.stderr);
    }
}

/// The output of `tap` has the verdicts of the messages, though most metrics come with an alias only.
#[test]
fn tapped_metrics_have_the_verdicts_of_their_messages() {
    let name = "tapped_metrics_have_the_verdicts_of_their_messages";
    let (Some(python), Some(broker)) = (python(name), Broker::start(name)) else { return };
    // Without times, which are those of today.
    let specification: String =
        PRESS.lines().filter(|line| !line.contains(" s]")).map(|line| format!("{line}\n")).collect();
    let folder = written(&python, "sparkplug.py", 1, &specification);
    let at = format!("127.0.0.1:{}", broker.port);
    let tap = |recording: &str, address: &str, count: &str| {
        let shown = ["tap", "--format", "json", "--count", count, "--mqtt-broker", &at, address];
        let mut tap = start_rondel(shown);
        tap.wait_stderr("ready");
        let sent = ["replay", "--to", "mqtt", "--as-fast-as-possible", "--mqtt-broker", &at, recording];
        rondel(sent).expect_status(0);
        let tapped = tap.finish();
        folder.file("tapped.jsonl", &tapped.stdout);
        tapped
    };
    let spec = folder.path("spec.rondel");
    let check = |file: &str| {
        let checked = rondel(["check", "--format", "json", "-e", "every", "-q", &spec, &folder.path(file)]);
        let decided = |line: &str| {
            let verdict: serde_json::Value = serde_json::from_str(line).unwrap();
            format!("{} {} {}", verdict["property"], verdict["step"], verdict["verdict"])
        };
        checked.stdout.lines().map(decided).collect::<Vec<_>>()
    };
    let address = "mqtt+sparkplug_b:spBv1.0/plant/+/press/#";
    tap(&folder.path("whole.mcap"), address, "600");
    assert_eq!(check("tapped.jsonl"), check("lines.jsonl"));
    // Without births nothing is known of these metrics, and nothing is satisfied.
    let tapped = tap(&folder.path("headless.mcap"), address, "100");
    tapped.expect_stderr(&["no birth has named"]);
    let checked = rondel(["check", "-q", &spec, &folder.path("tapped.jsonl")]);
    assert!(checked.stderr.contains("messages on press cannot be decoded"), "{}", checked.stderr);
    let checked = rondel(["check", &spec, &folder.path("tapped.jsonl")]);
    assert!(!checked.stdout.contains("\n  satisfied"), "{}", checked.stdout);
}

#[test]
fn lost_messages_and_births_are_named() {
    let Some(python) = python("lost_messages_and_births_are_named") else { return };
    let folder = written(&python, "sparkplug.py", 1, PRESS);
    let spec = folder.path("spec.rondel");
    let check = |file: &str, more: &[&str]| {
        let checked = rondel(["check", &spec, &folder.path(file)].iter().chain(more));
        format!("{}{}", checked.stdout, checked.stderr)
    };
    let undecided = |text: &str| text.matches("inconclusive").count();
    let whole = check("whole.mcap", &["-e", "every"]);
    assert!(!whole.contains("lost") && !whole.contains("missing"), "{whole}");
    let lossy = check("lossy.mcap", &["-e", "every"]);
    assert!(lossy.contains("3 messages"), "{lossy}");
    assert!(undecided(&lossy) > undecided(&whole));
    let headless = check("headless.mcap", &[]);
    assert!(headless.contains("no birth has named the metric with the alias"), "{headless}");
    assert!(headless.contains("spBv1.0/GROUP/+/NODE/#"), "{headless}");
}

#[test]
fn wrong_records_are_named() {
    let Some(python) = python("wrong_records_are_named") else { return };
    let folder = written(&python, "senml.py", 1, ROOM);
    let checked = rondel(["check", &folder.path("spec.rondel"), &folder.path("wrong.mcap")]);
    checked.expect_stderr(&["field `[1]`, byte 29: the record has no value"]);
}

#[test]
fn recordings_are_surveyed_and_drafted() {
    let Some(python) = python("recordings_are_surveyed_and_drafted") else { return };
    let press = written(&python, "sparkplug.py", 1, PRESS);
    let room = written(&python, "senml.py", 1, ROOM);
    for (folder, topic, source, encoding) in [
        (&press, "spBv1.0/plant/+/press/#", "mqtt:spBv1.0/plant/+/press/#", "sparkplug_b"),
        (&room, "room", "zenoh:room", "senml"),
    ] {
        let recording = folder.path("whole.mcap");
        let listed = rondel(["topics", &recording]);
        listed.expect_status(0);
        assert!(listed.stdout.contains(topic) && listed.stdout.contains(encoding), "{}", listed.stdout);
        assert!(!listed.stdout.contains("NDATA"), "{}", listed.stdout);
        let drafted = folder.path("drafted");
        rondel(["init", &recording, "--folder", &drafted]).expect_status(0);
        let deployment = std::fs::read_to_string(format!("{drafted}/rondel.yaml")).unwrap();
        assert!(deployment.contains(source), "{deployment}");
        assert!(deployment.contains(&format!("encoding: {encoding}")), "{deployment}");
        let checked = rondel(["check", "-q", &format!("{drafted}/rondel.yaml"), &recording]);
        checked.expect_status(0);
    }
}

#[test]
fn addresses_that_match_too_little_are_warned_of() {
    let folder = Folder::new();
    for (address, lacking, wider) in [
        ("spBv1.0/plant/NDATA/press", "the births", "write spBv1.0/plant/+/press/#"),
        ("spBv1.0/plant/+/press/arm", "the deaths of their nodes", "write spBv1.0/plant/+/press/#"),
        ("spBv1.0/+/DDATA/#", "sequence numbers", "write spBv1.0/+/#"),
        ("spBv1.0/plant/{message}/{node}", "sequence numbers", "no address with parameters does"),
    ] {
        let text = format!("topic press \"{address}\"\nproperty p = press.seq < 256\n");
        folder.file("press.rondel", text);
        let deployment = format!(
            "specification: press.rondel\nmqtt: {{ broker: 127.0.0.1 }}\ntopics:\n  \
             press: {{ source: \"mqtt:{address}\", encoding: sparkplug_b }}\n"
        );
        let deployment = folder.file("press.yaml", deployment);
        rondel(["validate", &deployment]).expect_stderr(&[lacking, wider]);
    }
}
