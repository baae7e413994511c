//! JSON reports, and their reference.

use std::collections::BTreeSet;

use serde_json::Value;

use super::support::{Folder, rondel};
use super::{DOOR, Files};

#[test]
fn json_has_formulas_and_results() {
    let report = Files::new().json(&["a.jsonl"]);
    let claim = &report["properties"][0];
    assert_eq!(claim["name"], "standstill");
    assert_eq!(claim["requirements"], serde_json::json!(["SYS-1", "SYS-2"]));
    assert_eq!(claim["place"], serde_json::json!({"line": 5, "column": 10, "end_column": 20}));
    assert_eq!(claim["text"], "property standstill = changed(gear.report) -> abs(speed.value) < 0.1");
    let recording = &report["recordings"][0];
    assert_eq!((&recording["events"], &recording["begin"]), (&6.into(), &0.into()));
    assert_eq!(recording["end"], 6_500_000_000_i64);
    let [standstill, slow, closed] = [0, 1, 2].map(|i| &recording["properties"][i]);
    assert_eq!((&standstill["outcome"], &standstill["count"]), (&"violated".into(), &1.into()));
    // From the change of gear at 4 s to the next message at 6.5 s.
    assert_eq!(standstill["violated_ns"], 2_500_000_000_i64);
    assert_eq!(standstill["longest_ns"], 2_500_000_000_i64);
    assert_eq!(slow["outcome"], "satisfied");
    assert_eq!(closed["outcome"], "vacuous");
    let violation = &standstill["violations"][0];
    assert_eq!((&violation["time_ns"], &violation["step"]), (&4_000_000_000_i64.into(), &4.into()));
    let speed =
        violation["signals"].as_array().unwrap().iter().find(|signal| signal["name"] == "speed.value");
    assert_eq!(
        speed.unwrap()["values"],
        serde_json::json!([[1_000_000_000_i64, 0.0], [3_000_000_000_i64, 9.0]])
    );
    assert!(!violation["evidence"].as_array().unwrap().is_empty());
}

#[test]
fn a_topic_that_came_in_another_recording_is_not_missing() {
    let files = Files::new();
    files.0.file("b.jsonl", DOOR);
    let report = files.json(&["a.jsonl", "b.jsonl"]);
    let closed = |i: usize| report["recordings"][i]["properties"][2].clone();
    assert_eq!(closed(0)["outcome"], "satisfied");
    assert!(closed(0)["remark"].as_str().unwrap().starts_with("in this recording vacuous"));
}

/// The members that the reference describes below a heading: the first column of its tables.
fn described(page: &str, heading: &str) -> BTreeSet<String> {
    let part = page.split(heading).nth(1).unwrap_or_else(|| panic!("no {heading}"));
    let part = part.split("\n## ").next().unwrap().split("\n### ").next().unwrap();
    let rows = part.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| Some(row.split_once('`')?.0.to_owned())).collect()
}

/// Adds the paths of all members of a value: `recordings[].properties[].outcome`.
fn members(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                members(value, &path, found);
                found.insert(path);
            }
        }
        Value::Array(elements) => {
            // Pairs have no members.
            elements.iter().for_each(|element| members(element, &format!("{path}[]"), found));
        }
        _ => {}
    }
}

#[test]
fn the_reference_describes_every_member_of_a_json_report() {
    let folder = Folder::new();
    folder.file("part.rondel", "topic o { x: float }\n@severity(minor) property low = o.x < 3\n");
    let spec = folder.file(
        "whole.rondel",
        "use \"part.rondel\"\n\
         topic s { r: [float], at: time, id: int }\n\
         @requirement(\"SYS-1\") property each for each i in s.id = all e in s.r: e > 0.5\n\
         @robust property near = mean(o.x) over 2 < 2.5\n\
         property pairs = forall k. s{id: k} -> k < 3\n\
         property later = s.at > prev(s.at)\n",
    );
    let line = |time: u32, text: &str| format!("{{\"time\":{time},{text}}}\n");
    let lines: String = (0..6)
        .map(|i| match i % 2 {
            0 => line(i, &format!("\"topic\":\"o\",\"x\":{i}")),
            _ => line(i, &format!("\"topic\":\"s\",\"id\":{i},\"at\":{i},\"r\":[1,0.{i},2]")),
        })
        .collect();
    let trace = folder.file("a.jsonl", lines);
    let missing = folder.path("missing.jsonl");
    let report = folder.path("report.json");
    let picture = format!("--report=json={report}");
    rondel(["check", "-q", &spec, &trace, &missing, &picture]).expect_status(3);
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    let mut found = BTreeSet::new();
    members(&written, "", &mut found);
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/command/check.md");
    let page = std::fs::read_to_string(page).unwrap();
    let described = described(&page, "\n## JSON reports\n");
    let missing: Vec<&String> = found.difference(&described).collect();
    assert!(missing.is_empty(), "not in the reference: {missing:#?}");
    // Those that this report does not have are written only where there is something to say.
    let optional = [
        "properties[].file",
        "recordings[].signals",
        "recordings[].signals[].kind",
        "recordings[].signals[].name",
        "recordings[].signals[].thresholds",
        "recordings[].signals[].upper",
        "recordings[].signals[].values",
        "recordings[].losses",
        "recordings[].losses[].from_ns",
        "recordings[].losses[].properties",
        "recordings[].losses[].until_ns",
        "recordings[].properties[].violations[].signals[].kind",
        "recordings[].properties[].violations[].signals[].upper",
    ];
    let unknown: Vec<&String> =
        described.difference(&found).filter(|member| !optional.contains(&member.as_str())).collect();
    assert!(unknown.is_empty(), "described, but not written: {unknown:#?}");
}
