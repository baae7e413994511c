//! A verdict about something that never came says so: in the summaries, and by the exit status.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use serde_json::{Value, json};
use support::network::{arguments, free_endpoint, zenoh};
use support::{Finished, Folder, rondel, rondel_with_input, start_rondel};

/// A specification and recordings.
struct Checked(Folder);

impl Checked {
    fn new(specification: &str) -> Checked {
        let folder = Folder::new();
        folder.file("a.rondel", specification);
        Checked(folder)
    }

    #[track_caller]
    fn check(&self, lines: &str, options: &[&str]) -> Finished {
        let trace = self.0.file("a.jsonl", lines);
        rondel([&["check", &self.0.path("a.rondel"), &trace], options].concat())
    }

    /// The reasons of each property in the summary as JSON, by kind, topic and field.
    #[track_caller]
    fn reasons(&self, lines: &str, options: &[&str]) -> Vec<Vec<(String, String, String)>> {
        let checked = self.check(lines, &[&["--summary", "json"], options].concat());
        let summary = json(&checked.stderr);
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let one = |reason: &Value| (text(&reason["kind"]), text(&reason["topic"]), text(&reason["field"]));
        let all = |property: &Value| property["vacuous"].as_array().unwrap().iter().map(one).collect();
        summary["properties"].as_array().unwrap().iter().map(all).collect()
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text.lines().find(|line| line.starts_with('{')).expect(text)).unwrap()
}

fn topic(name: &str) -> (String, String, String) {
    ("topic".to_owned(), name.to_owned(), "-".to_owned())
}

fn field(topic: &str, field: &str) -> (String, String, String) {
    ("field".to_owned(), topic.to_owned(), field.to_owned())
}

fn premise() -> (String, String, String) {
    ("premise".to_owned(), "-".to_owned(), "-".to_owned())
}

const HALT: &str = "topic estop \"fleet/estop\"\ntopic pose\n\
    property halt = on(estop) -> eventually[0, 1 s] on(pose)\n";
const POSES: &str = "{\"topic\":\"pose\",\"time\":1}\n{\"topic\":\"pose\",\"time\":3}\n";

#[test]
fn a_topic_with_an_empty_level_is_never_suggested() {
    let fleet = Checked::new("topic pose \"fleet/+/pose\"\nproperty p = pose.v\n");
    let checked = fleet.check("{\"topic\":\"fleet//poses\",\"v\":true}\n", &[]);
    assert!(checked.stdout.contains("vacuous: no message came on `pose`\n"), "{}", checked.stdout);
}

#[test]
fn a_topic_that_never_came() {
    let halt = Checked::new(HALT);
    let checked = halt.check(POSES, &[]);
    checked.expect_status(4);
    let line = "  satisfied     halt\n                vacuous: no message came on `estop`\n";
    assert!(checked.stdout.ends_with(line), "{}", checked.stdout);
    // Quiet, the reason is a warning.
    let quiet = halt.check(POSES, &["-q"]);
    quiet.expect_status(4).expect_stderr(&["warning: halt is vacuous: no message came on `estop`\n"]);
    assert_eq!(halt.reasons(POSES, &[]), [[topic("estop")]]);
    let came = "{\"topic\":\"estop\",\"time\":0}\n{\"topic\":\"pose\",\"time\":1}\n{\"topic\":\"pose\",\"time\":3}\n";
    let checked = halt.check(came, &[]);
    checked.expect_status(0);
    assert!(!checked.stdout.contains("vacuous"), "{}", checked.stdout);
    // The other topic counts as well, and a violation comes first.
    let lone = "{\"topic\":\"estop\",\"time\":0}\n{\"topic\":\"estop\",\"time\":9}\n";
    assert_eq!(halt.reasons(lone, &[]), [[topic("pose")]]);
    halt.check(lone, &[]).expect_status(1);
}

#[test]
fn a_misspelt_topic_is_named() {
    let halt = Checked::new(HALT);
    for (other, near) in [
        ("fleet/e_stop", "fleet/e_stop"),
        ("robots/estop", "robots/estop"),
        ("robots/e_stop", "robots/e_stop"),
        ("battery", ""),
    ] {
        let lines =
            format!("{POSES}{{\"topic\":\"{other}\",\"time\":4}}\n{{\"topic\":\"{other}\",\"time\":4}}\n");
        let checked = halt.check(&lines, &[]);
        checked.expect_status(4);
        let hint = if near.is_empty() { String::new() } else { format!("; did you mean `{near}`?") };
        let reason = format!("vacuous: no message came on `estop`{hint}\n");
        let unused = format!("  topics that came and are not used: {other} (2)\n");
        assert!(checked.stdout.contains(&reason) && checked.stdout.contains(&unused), "{}", checked.stdout);
        let summary = json(&halt.check(&lines, &["--summary", "json"]).stderr);
        assert_eq!(summary["unused_topics"], json!({ other: 2 }));
        assert_eq!(summary["missing_topics"], json!(["estop"]));
    }
}

#[test]
fn a_field_that_never_had_a_value() {
    let rare = Checked::new("topic estop\nproperty rare = count(rising(estop.active)) over 5 min < 3\n");
    let lines = |data: &str| format!("{{\"topic\":\"estop\",\"time\":1,\"data\":{data}}}\n").repeat(3);
    let none = "vacuous: no message on `estop` had a value for `active`";
    let unread = "vacuous: no message on `estop` had a value for `active` that can be read: null";
    for (data, reason) in
        [("{}", none), ("{\"activ\":true}", none), ("{\"active\":null}", unread), ("{\"active\":1}", unread)]
    {
        let checked = rare.check(&lines(data), &[]);
        checked.expect_status(4);
        assert!(checked.stdout.contains(reason), "{data}\n{}", checked.stdout);
        assert_eq!(rare.reasons(&lines(data), &[]), [[field("estop", "active")]]);
    }
    let summary = json(&rare.check(&lines("{}"), &["--summary", "json"]).stderr);
    assert_eq!(summary["missing_fields"], json!(["estop.active"]));
    rare.check(&lines("{\"active\":true}"), &[]).expect_status(0);
    // In a bare formula the topic has no name.
    let formula =
        rondel(["check", "-q", "-f", "sped < 10 or true or w", &rare.0.file("b.jsonl", "{\"v\":1}\n")]);
    formula.expect_status(0);
    let formula =
        rondel(["check", "-q", "-f", "not (sped > 10 and v)", &rare.0.file("b.jsonl", "{\"v\":false}\n")]);
    formula.expect_status(4).expect_stderr(&["formula is vacuous: no message had a value for `sped`\n"]);
}

#[test]
fn inputs_that_a_property_needs_are_named() {
    let text = "
topic a { v: float, id: int, tag: string }
topic b { w: bool, id: int }
topic c { n: int, id: int }
let deep = a.v > 1
property by_let = not deep
property by_age = age(b) <= 1 s or true and not on(c)
property by_rate = count(c) over 10 < 5
property keyed for each id in (a.id, c.id) = on(a) or on(c)
property bound = forall x. a{id: x} -> not c{id: x}
property alone = not b.w
machine m { initial s  error e  s -> e when c.n > 3 }
chain path = a -> b by id within 1 s
";
    let checked = Checked::new(text);
    let b = "{\"topic\":\"b\",\"time\":1,\"data\":{\"w\":false,\"id\":1}}\n";
    let reasons = checked.reasons(b, &[]);
    let expected: Vec<Vec<_>> = vec![
        vec![topic("a")],
        vec![topic("c")],
        vec![topic("c")],
        vec![topic("a"), topic("c")],
        vec![topic("a"), topic("c")],
        vec![],
        vec![topic("c")],
        vec![topic("a")],
    ];
    assert_eq!(reasons, expected);
    let all = "{\"topic\":\"a\",\"time\":1,\"data\":{\"v\":0}}\n{\"topic\":\"b\",\"time\":2}\n\
        {\"topic\":\"c\",\"time\":3,\"data\":{\"id\":1}}\n";
    let expected: Vec<Vec<_>> = vec![
        vec![],
        vec![],
        vec![],
        vec![field("a", "id")],
        vec![field("a", "id")],
        vec![field("b", "w")],
        vec![field("c", "n")],
        vec![field("a", "id"), field("b", "id")],
    ];
    assert_eq!(checked.reasons(all, &[]), expected);
}

#[test]
fn messages_of_any_recording_or_part_count() {
    let halt = Checked::new(HALT);
    let first = halt.0.file("first.jsonl", POSES);
    let second =
        halt.0.file("second.jsonl", "{\"topic\":\"estop\",\"time\":0}\n{\"topic\":\"pose\",\"time\":1}\n");
    let (spec, snapshot) = (halt.0.path("a.rondel"), halt.0.path("snapshot"));
    rondel(["check", &spec, &first, &second]).expect_status(0);
    rondel(["check", &spec, &first, &first]).expect_status(4);
    rondel(["check", &spec, &second, "--snapshot-to", &snapshot]).expect_status(0);
    let rest = halt.0.file("rest.jsonl", "{\"topic\":\"pose\",\"time\":5}\n");
    rondel(["check", &spec, &rest, "--resume", &snapshot]).expect_status(0);
    rondel(["check", &spec, &first, "--snapshot-to", &snapshot]).expect_status(4);
    rondel(["check", &spec, &rest, "--resume", &snapshot]).expect_status(4);
}

#[test]
fn a_premise_that_was_never_true() {
    let text = "topic gear { report: int }\ntopic v { x: float }\n\
        property still = gear.report == 2 -> v.x < 0.1\n";
    let checked = Checked::new(text);
    let lines = |gears: &[i32]| {
        gears.iter().fold("{\"topic\":\"v\",\"data\":{\"x\":0}}\n".to_owned(), |all, gear| {
            all + &format!("{{\"topic\":\"gear\",\"data\":{{\"report\":{gear}}}}}\n")
        })
    };
    // At the first message the gear is unknown, which is not true.
    let reason = "vacuous: the premise `gear.report == 2` was never true\n";
    let never = checked.check(&lines(&[1, 3]), &[]);
    never.expect_status(0);
    assert!(never.stdout.contains(reason), "{}", never.stdout);
    assert_eq!(checked.reasons(&lines(&[1, 3]), &[]), [[premise()]]);
    checked.check(&lines(&[1, 3]), &["--strict"]).expect_status(4);
    let quiet = checked.check(&lines(&[1, 3]), &["--strict", "-q"]);
    quiet.expect_status(4).expect_stderr(&["warning: still is vacuous: the premise"]);
    let quiet = checked.check(&lines(&[1, 3]), &["-q"]);
    assert_eq!((quiet.status, quiet.stderr.as_str()), (Some(0), ""));
    let once = checked.check(&lines(&[1, 2, 3]), &["--strict"]);
    once.expect_status(0);
    assert!(!once.stdout.contains("vacuous"), "{}", once.stdout);
    // It was true in an earlier part of the recording.
    let (spec, snapshot) = (checked.0.path("a.rondel"), checked.0.path("snapshot"));
    let (first, rest) =
        (checked.0.file("1.jsonl", lines(&[2, 1])), checked.0.file("2.jsonl", lines(&[1, 3])));
    rondel(["check", "--strict", &spec, &first, "--snapshot-to", &snapshot]).expect_status(0);
    rondel(["check", "--strict", &spec, &rest, "--resume", &snapshot]).expect_status(0);
    let never = checked.0.file("3.jsonl", lines(&[1]));
    rondel(["check", "--strict", &spec, &never, "--snapshot-to", &snapshot]).expect_status(4);
    rondel(["check", "--strict", &spec, &rest, "--resume", &snapshot]).expect_status(4);
    rondel(["check", "--strict", &spec, &first, "--resume", &snapshot]).expect_status(0);
}

/// Every message with a value and an id, one second apart.
fn messages(values: &[(i32, &str)]) -> String {
    let line = |(time, (value, id)): (usize, &(i32, &str))| {
        format!("{{\"topic\":\"a\",\"time\":{time},\"data\":{{\"v\":{value},\"id\":\"{id}\"}}}}\n")
    };
    values.iter().enumerate().map(line).collect()
}

#[test]
fn premises_of_every_kind() {
    // Whether the premise of the property is never true: while v is small, and when it was 5 once.
    for (property, in_small, in_five) in [
        ("@time(steps) property p = a.v == 5 -> on(a)", true, false),
        ("@time(points) property p = a.v == 5 -> on(a)", true, false),
        ("@time(dense) property p = a.v == 5 -> a.v > 0", true, false),
        ("property p = historically[0, 3 s] (a.v == 5 -> a.v > 0)", true, false),
        ("property p = a.v == 5 -> eventually[0, 3 s] on(a)", true, false),
        ("property p = always[0, 3 s] (a.v == 5 -> a.v > 0)", true, false),
        ("@time(points) property p = a.v == 5 -> eventually[0, 3 s] on(a)", true, false),
        ("@robust property p = a.v == 5 -> a.v > 0", true, false),
        ("@robust property p = a.v == 5 -> eventually[0, 3 s] a.v > 0", true, false),
        ("property p for each id in a.id = a.v == 5 -> once on(a)", true, false),
        ("property p for each id in a.id = a.v == 5 -> eventually[0, 1 s] on(a)", true, false),
        (
            "@time(dense) property p for each id in a.id = a.v == 5 -> on(a) or not on(a) or a.v > 0",
            true,
            false,
        ),
        ("property p = (a.v == 5 -> a.v > 0) and (a.v < 9 -> a.v >= 0)", true, false),
        ("property p = not (a.v == 5) or a.v > 0", false, false),
        ("let f = a.v == 5 -> a.v > 0 property p = f", true, false),
        ("property p = (exists x. a{v: x} and x == 5) -> a.v > 0", true, false),
        // True for one second in between.
        ("property p = age(a) > 500 ms -> a.v >= 0", false, false),
        ("property p = age(a) > 2 s -> a.v >= 0", true, true),
        ("property p = on(a) -> a.v >= 0", false, false),
        ("@interpolate(linear) property p = a.v > 4.0 -> a.v >= 0.0", true, false),
    ] {
        let checked = Checked::new(
            &format!("topic a {{ v: float, id: string }}\n{property}\n")
                .replace("{ v: float", if property.contains("exists") { "{ v: int" } else { "{ v: float" }),
        );
        let small = messages(&[(1, "x"), (2, "y"), (1, "y"), (3, "x")]);
        let five = messages(&[(1, "x"), (2, "y"), (5, "y"), (3, "x")]);
        for (lines, never) in [(small, in_small), (five, in_five)] {
            let reasons = checked.reasons(&lines, &[]);
            let expected = if never { vec![premise()] } else { Vec::new() };
            assert_eq!(reasons, [expected], "{property}\n{lines}");
            let status = if never { 4 } else { 0 };
            let strict = checked.check(&lines, &["--strict"]);
            assert!(
                strict.status == Some(status) || strict.stdout.contains("  inconclusive  p "),
                "{property}\n{strict:?}"
            );
        }
    }
}

#[test]
fn a_test_of_an_instance_that_never_existed() {
    let folder = Folder::new();
    let spec = folder.file(
        "a.rondel",
        "topic task { id: string }\n\
         property p for each id in task.id = on(task)\n\
         test \"another key\" {\n    at 0 s task { id: \"ab\" }\n    at 1 s task { id: \"ac\" }\n\
         \x20   expect p[\"aa\"] never violated\n    expect p[\"ab\"] never violated\n}\n\
         test \"no key\" {\n    at 0 s task { }\n    expect p[\"aa\"] never violated\n}\n",
    );
    let finished = rondel(["test", &spec]);
    finished.expect_status(1);
    for part in [
        ":6:5: expected p[\"aa\"] never violated\n",
        "\n      no message had the key [\"aa\"]; the keys that came are [\"ab\"], [\"ac\"]\n",
        "\n      no message had the key [\"aa\"]\n",
        "0 tests passed, 2 failed",
    ] {
        assert!(finished.stdout.contains(part), "{part}\n{}", finished.stdout);
    }
    assert!(!finished.stdout.contains(":7:5:"), "{}", finished.stdout);
    let json = json(&rondel(["test", "--format", "json", &spec]).stdout);
    let reason = "no message had the key [\"aa\"]; the keys that came are [\"ab\"], [\"ac\"]";
    assert_eq!(json["failed"][0]["reason"], reason);
    let none = folder.file(
        "b.rondel",
        "topic task { id: string }\nproperty p for each id in task.id = on(task)\n\
         test \"nothing\" {\n    end at 3 s\n    expect p never violated\n}\n",
    );
    let finished = rondel(["test", &none]);
    assert!(finished.expect_status(1).stdout.contains("the property has no verdict"), "{}", finished.stdout);
}

#[test]
fn a_live_topic_without_a_publisher() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    folder.file("a.rondel", HALT);
    let deployment = format!(
        "specification: a.rondel\nmissing_after: 50 ms\nzenoh: {{ mode: router, listen: {endpoint} }}\n\
         topics: {{ estop: zenoh:t/estpo, pose: zenoh:t/pose }}\n\
         alignment: {{ policy: arrival, reports: stdout }}\n"
    );
    let file = folder.file("rondel.yaml", deployment);
    for (strict, status) in [(None, 0), (Some("--strict"), 4)] {
        let mut run = start_rondel(["run", &file].into_iter().chain(strict));
        run.wait_stderr("ready");
        let report: Value = serde_json::from_str(&run.wait_stdout("\"topic\":\"estop\"")).unwrap();
        let expected = json!({"report": "missing", "topic": "estop", "after": 0.05, "properties": ["halt"]});
        assert_eq!(report, expected);
        let own = ["publish", "--to", "zenoh:t/pose", "--wait", "60"];
        let publish = arguments(&own, &zenoh("client", &endpoint));
        rondel_with_input(publish, b"{}\n{}\n").expect_status(0);
        run.wait_stdout("satisfied");
        run.terminate();
        run.finish().expect_status(status).expect_stderr(&[
            "estop: no message has come within 50.0 ms; halt needs it\n",
            "\n  satisfied     halt\n                vacuous: no message came on `estop`\n",
        ]);
    }
}

#[test]
fn the_time_after_which_missing_topics_are_reported() {
    let folder = Folder::new();
    for (text, status) in [("10 s", 0), ("never", 0), ("soon", 2), ("10", 2)] {
        let deployment = format!("formula: v\nmissing_after: {text}\ntopics: {{ trace: zenoh:a }}\n");
        let file = folder.file("rondel.yaml", deployment);
        let finished = rondel(["validate", &file]);
        finished.expect_status(status);
        if status == 2 {
            finished.expect_stderr(&["`missing_after` must be a duration such as 10 s or `never`"]);
        }
    }
}
