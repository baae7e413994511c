//! Tests of the document: its size, what it loads, hostile texts, equal input.

use serde_json::Value;

use super::*;
use crate::results::{Change, Claim, EvidencePoint, Judged, Loss, Outcome, Recording, Signal, Violation};

const SECOND: i64 = 1_000_000_000;
/// A time of the calendar.
const BEGIN: i64 = 1_795_939_200 * SECOND;
/// A text that would end elements, attributes and comments, and run.
const HOSTILE: &str =
    "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>\" onload='alert(3)' ]]>&lt;";

fn violation(at: i64, values: i64) -> Violation {
    let time = |i: i64| BEGIN + at * SECOND - i * SECOND / 10;
    let signal = Signal {
        name: "pose.position.x".to_owned(),
        thresholds: vec![5.0],
        values: (0..values)
            .rev()
            .map(|i| (time(i), Value::from(i as f64 * 0.123_456_789 + at as f64)))
            .collect(),
        ..Signal::default()
    };
    let evidence = EvidencePoint {
        time_ns: time(0),
        topic: Some("pose".to_owned()),
        values: vec![("pose.position.x".to_owned(), Some("7.25".to_owned())), ("speed".to_owned(), None)],
        ..EvidencePoint::default()
    };
    Violation {
        time_ns: time(0),
        certain_ns: time(0) + SECOND,
        evidence: vec![evidence; 3],
        signals: vec![signal],
        ..Violation::default()
    }
}

/// A property that was violated this often.
fn violated(count: i64) -> Judged {
    let change = |i: i64| {
        let verdict = if i % 2 == 0 { Outcome::Satisfied } else { Outcome::Violated };
        Change { time_ns: BEGIN + i * SECOND, verdict }
    };
    Judged {
        outcome: Outcome::Violated,
        count: count as u64,
        violations: (0..count.min(20)).map(|i| violation(100 + 60 * i, 256)).collect(),
        changes: (0..2 * count).map(change).collect(),
        ..Judged::default()
    }
}

fn claim(name: &str) -> Claim {
    Claim { name: name.to_owned(), text: format!("property {name} = true"), ..Claim::default() }
}

fn recording(name: &str, properties: Vec<Judged>) -> Recording {
    let (begin, end) = (Some(BEGIN), Some(BEGIN + 2_000 * SECOND));
    Recording { name: name.to_owned(), events: 10, begin, end, properties, ..Recording::default() }
}

fn results(properties: &[&str], recordings: Vec<Recording>) -> Results {
    let mut results = Results::new("drive.rondel", properties.iter().map(|name| claim(name)).collect());
    results.recordings = recordings;
    results
}

fn about() -> About {
    About {
        command: Some("rondel check drive.rondel a.mcap".to_owned()),
        files: vec![("drive.rondel".to_owned(), "property a = true\n".to_owned())],
    }
}

/// The data of a document.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"report\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn the_document_loads_nothing() {
    let page = write(&results(&["a"], vec![recording("a.mcap", vec![violated(3)])]), &about());
    let without_names = page.replace("http://www.w3.org/2000/svg", "");
    for forbidden in
        ["http://", "https://", "<link", " src=", "@import", "url(", "import ", "fetch(", "eval("]
    {
        assert!(!without_names.contains(forbidden), "{forbidden}");
    }
    assert_eq!(page.matches("<script").count(), 3);
    assert!(page.contains("content=\"default-src 'none'; script-src 'sha256-"));
    assert!(page.contains("MIT License"), "the license of the charts is missing");
    // The policy comes before everything that it governs.
    assert!(page.find("Content-Security-Policy") < page.find("<style"));
}

#[test]
fn the_policy_names_the_scripts_of_the_document() {
    let page = write(&results(&["a"], Vec::new()), &About::default());
    let script = |beginning: &str| page.split_once(beginning).unwrap().1.split_once("</script>").unwrap().0;
    for text in [script("<script>"), script("<script type=\"module\">")] {
        assert!(page.contains(&source(text)));
    }
    let style = page.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    assert!(page.contains(&format!("style-src {}", source(style))));
    assert_eq!(source(""), "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
}

#[test]
fn hostile_texts_stay_texts() {
    let mut judged = violated(1);
    judged.remark = HOSTILE.to_owned();
    let violation = &mut judged.violations[0];
    violation.parameters = HOSTILE.to_owned();
    violation.signals[0].name = HOSTILE.to_owned();
    violation.evidence[0].values[0] = (HOSTILE.to_owned(), Some(HOSTILE.to_owned()));
    let mut own = recording(HOSTILE, vec![judged]);
    own.problem = Some(HOSTILE.to_owned());
    own.remarks = vec![HOSTILE.to_owned()];
    let mut results = results(&[HOSTILE], vec![own]);
    results.specification = HOSTILE.to_owned();
    results.properties[0].requirements = vec![HOSTILE.to_owned()];
    let about =
        About { command: Some(HOSTILE.to_owned()), files: vec![(HOSTILE.to_owned(), HOSTILE.to_owned())] };
    let page = write(&results, &about);
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (3, 3));
    assert!(!page.contains("<img") && !page.contains("<!--"));
    let data = data(&page);
    for text in [&data["command"], &data["files"][0]["text"], &data["recordings"][0]["problem"]] {
        assert_eq!(text, HOSTILE);
    }
    assert_eq!(data["recordings"][0]["properties"][0]["signals"][0]["name"], HOSTILE);
}

#[test]
fn equal_results_are_equal_documents() {
    let make = |seconds: f64| {
        let mut own = recording("a.mcap", vec![violated(20)]);
        own.seconds = seconds;
        write(&results(&["a"], vec![own]), &about())
    };
    // The duration of the check is no part of it.
    assert!(make(0.25) == make(7.5));
}

#[test]
fn a_thousand_violations_stay_below_a_megabyte() {
    let names: Vec<String> = (0..50).map(|i| format!("property_{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (count, kept) in [(20, 20), (1_000, 20)] {
        let judged = vec![violated(count); 50];
        let page = write(&results(&names, vec![recording("a.mcap", judged)]), &about());
        assert!(page.len() < SIZE, "{}", page.len());
        let data = data(&page);
        assert!(data["shortened"].as_str().unwrap().contains("below 1 MB"), "{}", data["shortened"]);
        let first = &data["recordings"][0]["properties"][0];
        assert_eq!(
            (first["count"].as_i64(), first["violations"].as_array().unwrap().len()),
            (Some(count), kept)
        );
        // The worst verdicts survive.
        assert!(first["verdicts"].as_array().unwrap().contains(&1.into()));
        assert!(!first["signals"][0]["times"].as_array().unwrap().is_empty());
    }
    // One property alone has room for everything.
    let page = write(&results(&["a"], vec![recording("a.mcap", vec![violated(20)])]), &about());
    assert_eq!(data(&page)["shortened"], Value::Null);
}

#[test]
fn everything_has_its_recording() {
    let changes = vec![Change { time_ns: BEGIN, verdict: Outcome::Satisfied }];
    let two = Judged { outcome: Outcome::Vacuous, changes, ..Judged::default() };
    let unread = Recording { name: "c".to_owned(), problem: Some("cut".to_owned()), ..Recording::default() };
    let mut first = recording("a", vec![violated(1)]);
    first.losses = vec![Loss {
        from_ns: BEGIN + SECOND,
        until_ns: BEGIN + 3 * SECOND,
        properties: vec!["p".to_owned()],
    }];
    let page = write(&results(&["p"], vec![first, recording("b", vec![two]), unread]), &about());
    let data = data(&page);
    let recordings = data["recordings"].as_array().unwrap();
    let outcomes: Vec<&Value> = recordings.iter().map(|own| &own["properties"][0]["outcome"]).collect();
    assert_eq!(serde_json::json!(outcomes), serde_json::json!(["violated", "vacuous", null]));
    // No verdict is drawn where the property says nothing.
    assert_eq!(recordings[1]["properties"][0]["verdicts"], serde_json::json!([3]));
    assert_eq!(recordings[0]["losses"][0]["until"], 3.0);
    assert_eq!((&recordings[2]["problem"], &recordings[2]["begin"]), (&"cut".into(), &Value::Null));
    for text in ["<noscript>", "Not read to its end: cut", "<h2 id=\"r1\">b</h2>"] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn signals_are_unknown_between_violations() {
    let mut judged = violated(0);
    judged.violations = vec![violation(200, 3), violation(100, 3), violation(100, 2)];
    judged.count = 3;
    let page = write(&results(&["a"], vec![recording("a", vec![judged])]), &about());
    let data = data(&page);
    let signals = data["recordings"][0]["properties"][0]["signals"].as_array().unwrap();
    assert_eq!(signals.len(), 1);
    let numbers = |member: &str| -> Vec<Option<f64>> {
        signals[0][member].as_array().unwrap().iter().map(Value::as_f64).collect()
    };
    let times: Vec<f64> =
        numbers("times").into_iter().flatten().map(|time| (time * 10.0).round() / 10.0).collect();
    assert_eq!(times, [99.8, 99.9, 100.0, 100.0, 199.8, 199.9, 200.0, 200.0]);
    let known: Vec<bool> = numbers("least").iter().map(Option::is_some).collect();
    assert_eq!(known, [true, true, true, false, true, true, true, false]);
    assert!(signals[0].get("greatest").is_none());
}
