//! Reports for CI systems and viewers, read back by independent readers.

use std::process::Command;

use serde_json::Value;

use super::Files;
use super::support::network::python;
use super::support::{Folder, finish, rondel};

#[test]
fn tap_is_alone_on_standard_output() {
    let finished = Files::new().check(&["a.jsonl"], &["--report", "tap"]);
    finished.expect_status(1);
    let lines: Vec<&str> = finished.stdout.lines().collect();
    assert_eq!(
        lines[..3].iter().map(|line| line.split(" (").next().unwrap()).collect::<Vec<_>>(),
        ["TAP version 14", "1..3", "not ok 1 - standstill"]
    );
    assert!(finished.stdout.contains("\nok 2 - slow"), "{}", finished.stdout);
    assert!(finished.stdout.contains("\nnot ok 3 - closed"), "{}", finished.stdout);
    finished.expect_stderr(&["6 events checked"]);
}

#[test]
fn annotations_mark_the_line_of_the_specification() {
    let files = Files::new();
    let finished = files.check(&["a.jsonl"], &["-q", "--emit", "violations", "--report", "github"]);
    let specification = files.0.path("drive.rondel");
    let line = finished.stdout.lines().find(|line| line.starts_with("::error")).expect(&finished.stdout);
    let begin =
        format!("::error file={specification},line=5,col=10,endColumn=20,title=standstill violated::");
    assert!(line.starts_with(&begin), "{line}");
    assert!(line.contains("%0Astandstill violated at 4 s, step 4"), "{line}");
    // Only the violation is printed besides, although the report needs every change.
    let printed: Vec<&str> = finished.stdout.lines().filter(|line| line.contains("satisfied")).collect();
    assert_eq!(printed, [""; 0]);
}

#[test]
fn a_recording_without_times_is_an_error_also_among_others() {
    let folder = Folder::new();
    let spec = folder.file("s.rondel", "topic odom { speed: float }\nproperty slow = odom.speed < 20\n");
    let without = folder.file("n.jsonl", "{\"topic\":\"odom\",\"time\":0,\"speed\":5}\n");
    let with = folder.file("s.jsonl", "{\"topic\":\"odom\",\"time\":0,\"speed\":5,\"stamp\":3}\n");
    for recordings in [vec![&without], vec![&without, &with], vec![&with, &without]] {
        let mut check = vec!["check", "-q", "--time-field", "stamp", "--report=junit", &spec];
        check.extend(recordings.iter().map(|name| name.as_str()));
        let checked = rondel(check);
        checked.expect_status(4).expect_stderr(&["came without a time"]);
        assert!(checked.stdout.contains("no message on odom carried its time"), "{}", checked.stdout);
        assert!(checked.stdout.contains("errors=\"1\""), "{}", checked.stdout);
        if recordings.len() > 1 {
            checked.expect_stderr(&[&format!("{without}: no message on odom carried its time")]);
        }
    }
}

#[test]
fn status_4_is_a_failure_in_sarif() {
    let folder = Folder::new();
    let text = "topic speed { value: float }\ntopic door\n@severity(warning) property closed = on(door) -> speed.value < 0.1\n\
                property calm = speed.value > 100.0 -> speed.value < 0.1\n";
    let spec = folder.file("s.rondel", text);
    let trace = folder.file("a.jsonl", "{\"topic\":\"speed\",\"time\":1,\"value\":1.0}\n");
    for (strict, calm) in [(false, ["none", "open"]), (true, ["error", "fail"])] {
        let mut check = vec!["check", "--report=sarif", &spec, &trace];
        check.extend(strict.then_some("--strict"));
        let checked = rondel(check);
        checked.expect_status(4);
        let sarif: Value = serde_json::from_str(&checked.stdout).unwrap();
        let found = |i: usize| ["level", "kind"].map(|m| sarif["runs"][0]["results"][i][m].clone());
        assert_eq!(found(0), ["warning", "fail"], "{}", checked.stdout);
        assert_eq!(found(1), calm, "{}", checked.stdout);
    }
}

/// JUnit as `junitparser` reads it, SARIF as the models of `sarif-pydantic` accept it.
#[test]
fn independent_readers_agree() {
    let Some(python) = python("independent_readers_agree") else { return };
    let files = Files::new();
    let (_, junit) = files.report(&["a.jsonl"], "junit", &[]);
    let junit = files.0.file("drive.xml", junit);
    let (_, sarif) = files.report(&["a.jsonl"], "sarif", &[]);
    let sarif = files.0.file("drive.sarif", sarif);
    let script = "import sys, json, junitparser\n\
        from sarif_pydantic import Sarif\n\
        suites = junitparser.JUnitXml.fromfile(sys.argv[1])\n\
        cases = [(c.classname, c.name, [type(r).__name__ for r in c.result]) for s in suites for c in s]\n\
        sarif = Sarif.model_validate(json.load(open(sys.argv[2])))\n\
        found = [(r.rule_id, r.level.value if hasattr(r.level, 'value') else r.level, \
        r.locations[0].physical_location.region.start_line) for r in sarif.runs[0].results]\n\
        print(json.dumps([suites.tests, suites.failures, suites.errors, cases, found]))";
    let read = finish(Command::new(&python).args(["-c", script, &junit, &sarif]), b"");
    read.expect_status(0);
    let read: Value = serde_json::from_str(&read.stdout).expect(&read.stdout);
    let expected = serde_json::json!([
        3,
        1,
        1,
        [["drive", "standstill", ["Failure"]], ["drive", "slow", []], ["drive", "closed", ["Error"]]],
        [["standstill", "error", 5], ["closed", "error", 8]]
    ]);
    assert_eq!(read, expected);
}

/// The file of verdicts, events and explanations as the reader of the `mcap` package reads it; every message has the
/// members of its type.
#[test]
fn an_mcap_report_is_read_beside_the_recording() {
    let files = Files::new();
    let report = files.0.path("drive.mcap");
    let wanted = format!("--report=mcap={report}");
    files.check(&["a.jsonl"], &["-q", &wanted]).expect_status(1);
    // A second one takes its place.
    files.check(&["a.jsonl"], &["-q", &wanted]).expect_status(1);
    let Some(python) = python("an_mcap_report_is_read_beside_the_recording") else { return };
    let script = "import sys, json\n\
        from mcap.reader import make_reader\n\
        reader = make_reader(open(sys.argv[1], 'rb'), validate_crcs=True)\n\
        def fits(value, schema):\n\
        \tif schema.get('type') == 'object' and 'properties' in schema:\n\
        \t\tassert set(schema.get('required', [])) <= set(value), (value, schema)\n\
        \t\tassert set(value) <= set(schema['properties']), (value, schema)\n\
        \t\tfor name, part in value.items(): fits(part, schema['properties'][name])\n\
        \tif schema.get('type') == 'array':\n\
        \t\tfor part in value: fits(part, schema['items'])\n\
        found = []\n\
        for schema, channel, message in reader.iter_messages():\n\
        \tassert schema.encoding == 'jsonschema' and channel.message_encoding == 'json'\n\
        \tvalue = json.loads(message.data)\n\
        \tfits(value, json.loads(schema.data))\n\
        \tfound.append([channel.topic, schema.name, message.log_time, value])\n\
        notes = [m.metadata['name'].rsplit('/', 1)[-1] for m in reader.iter_metadata()]\n\
        print(json.dumps([found, notes]))";
    let read = finish(Command::new(&python).args(["-c", script, &report]), b"");
    read.expect_status(0);
    let read: Value = serde_json::from_str(&read.stdout).expect(&read.stdout);
    assert_eq!(read[1], serde_json::json!(["a.jsonl"]));
    let of = |topic: &str| -> Vec<&Value> {
        let all = read[0].as_array().unwrap().iter();
        all.filter(|message| message[0] == topic).collect()
    };
    let [events, explanations] = ["rondel/events", "rondel/explanations"].map(of);
    assert_eq!((events.len(), explanations.len()), (1, 1), "{read}");
    assert_eq!(events[0][2], 4_000_000_000_u64);
    assert_eq!(events[0][3]["end_time"], serde_json::json!({"sec": 6, "nsec": 500_000_000}));
    let explanation = &explanations[0][3];
    assert_eq!(
        (&explanations[0][1], &explanation["property"]),
        (&"rondel.Explanation".into(), &"standstill".into())
    );
    let points = explanation["points"].as_array().unwrap();
    let last = points.last().unwrap()["values"].as_array().unwrap();
    let speed = last.iter().find(|value| value["name"] == "abs(speed.value)").unwrap();
    assert_eq!(speed["value"], "9");
    let verdicts: Vec<String> = of("rondel/verdicts")
        .iter()
        .map(|message| message[3]["message"].as_str().unwrap().to_owned())
        .collect();
    for expected in ["standstill: violated", "standstill: satisfied", "slow: satisfied"] {
        assert!(verdicts.iter().any(|verdict| verdict == expected), "{expected}: {verdicts:?}");
    }
}
