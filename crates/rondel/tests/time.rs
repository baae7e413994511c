//! Time on the command line, what verdicts are about, and why they are so.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use rondel_runtime::Emit;
use support::{Folder, library, rondel_with_input};

/// The lines of JSON of a property `formula`, in seconds.
fn json(rows: &[(&str, u64, &str)]) -> String {
    let line = |(time, step, verdict): &(&str, u64, &str)| {
        format!("{{\"property\":\"formula\",\"time\":{time},\"step\":{step},\"verdict\":\"{verdict}\"}}\n")
    };
    rows.iter().map(line).collect()
}

#[test]
fn the_model_of_time_is_chosen() {
    // True at 1 s; the window of two seconds, or two steps, ends in between, at an event, or not yet.
    let input = "{\"time\":1,\"v\":true}\n{\"time\":2,\"v\":false}\n{\"time\":5,\"v\":false}\n";
    let dense = "{\"property\":\"formula\",\"time\":1,\"step\":0,\"verdict\":\"satisfied\"}\n\
                 {\"property\":\"formula\",\"time\":4,\"verdict\":\"violated\"}\n";
    let points = dense.replace("\"time\":4,", "\"time\":5,\"step\":2,");
    let steps = points.replace("\"time\":5,\"step\":2,", "\"time\":2,\"step\":1,");
    let check = |formula: &str, time: &[&str]| {
        let arguments = [&["check", "-f", formula, "--format", "json", "-"][..], time].concat();
        rondel_with_input(arguments, input.as_bytes())
    };
    check("once[0, 2 s] v", &[]).expect_status(1).expect_stdout(dense);
    check("once[0, 2] v", &["--time", "dense"]).expect_stdout(dense);
    check("once[0, 2 s] v", &["--time", "points"]).expect_stdout(&points);
    check("once[0, 0] v", &[]).expect_stdout(&steps);
    check("once[0, 0] v", &["--time", "steps"]).expect_stdout(&steps);
    check("once[0, 2 s] v", &["--time", "steps"]).expect_status(2);
    let finished = rondel_with_input(["check", "-f", "once[0, 2 s] v", "-"], input.as_bytes());
    assert!(finished.stdout.contains("violated 1 time, first at time 4 s"), "{}", finished.stdout);
}

#[test]
fn the_time_may_be_in_a_field() {
    let lines = [
        r#"{"time":7,"header":{"stamp":1.5},"v":true}"#,
        r#"{"time":8,"data":{"header":{"stamp":2.5},"v":false}}"#,
        r#"{"time":9,"v":true}"#,
    ];
    // A line without it has the time of the line before, however often such lines have come.
    let input: String = (0..3).flat_map(|_| lines).map(|line| format!("{line}\n")).collect();
    let arguments = ["check", "-f", "v", "-e", "every", "--format", "json", "--time-field", "header.stamp"];
    let finished = rondel_with_input([&arguments[..], &["-"]].concat(), input.as_bytes());
    let rows: Vec<(&str, u64, &str)> = (0..9)
        .map(|step| {
            [("1.5", step, "satisfied"), ("2.5", step, "violated"), ("2.5", step, "satisfied")]
                [step as usize % 3]
        })
        .collect();
    finished.expect_stdout(&json(&rows));
}

#[test]
fn a_violation_is_explained() {
    let input = concat!(
        r#"{"time":1,"a":false,"x":1.5}"#,
        "\n",
        r#"{"time":2,"x":2.5}"#,
        "\n",
        r#"{"time":3,"x":3.5,"note":"q"}"#,
        "\n",
        r#"{"time":4,"x":4.5}"#,
        "\n",
        r#"{"time":5,"a":true,"x":"?"}"#,
        "\n",
        r#"{"time":6,"a":true,"x":9}"#,
        "\n",
    );
    let check = |arguments: &[&str]| {
        let formula = ["check", "-q", "-e", "violations", "-f", "a -> x <= 5 or falling(x > 4)"];
        rondel_with_input([&formula[..], arguments, &["-"]].concat(), input.as_bytes())
    };
    check(&["--explain"]).expect_status(1).expect_stdout(
        "violated      formula                          step         5   time 6 s\n\
        \x20   time                    5 s    6 s\n\
        \x20   step                      4      5\n\
        \x20   message               trace  trace\n\
        \x20   trace.a                true   true\n\
        \x20   trace.x                   ?      9\n\
        \x20   trace.x <= 5              ?  false\n\
        \x20   falling(trace.x > 4)      ?  false\n\
        \x20   trace.x > 4               ?   true\n",
    );
    let json = check(&["--explain", "--format", "json"]);
    let verdict: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let last = verdict["evidence"].as_array().unwrap().last().unwrap();
    assert_eq!(
        *last,
        serde_json::json!({"time": 6, "step": 5, "topic": "trace", "values": {
            "trace.a": true, "trace.x": 9.0, "trace.x <= 5": false, "falling(trace.x > 4)": false, "trace.x > 4": true,
        }})
    );
    let before = &verdict["evidence"].as_array().unwrap().iter().rev().nth(1).unwrap()["values"];
    assert_eq!(before["trace.x"], serde_json::Value::Null, "of another type is unknown");
    // Nothing else is otherwise.
    let bare = check(&["--format", "json"]);
    assert!(json.stdout.starts_with(bare.stdout.trim_end().trim_end_matches('}')));
}

#[test]
fn verdicts_about_earlier_times() {
    let input = "{\"time\":1,\"a\":true,\"b\":false}\n{\"time\":5,\"a\":false}\n{\"time\":6,\"b\":true}\n";
    let check = |input: &str, format: &[&str]| {
        let arguments = ["check", "-f", "a -> eventually[0, 2 s] b", "-"];
        rondel_with_input([&arguments[..], format].concat(), input.as_bytes())
    };
    check(input, &["-q", "--format", "json"]).expect_status(1).expect_stdout(
        "{\"property\":\"formula\",\"time\":3,\"about\":1,\"verdict\":\"violated\"}\n\
         {\"property\":\"formula\",\"time\":5,\"step\":1,\"verdict\":\"satisfied\"}\n\
         {\"property\":\"formula\",\"time\":6,\"about\":4,\"step\":2,\"verdict\":\"satisfied\"}\n",
    );
    let finished = check(input, &[]);
    assert!(finished.stdout.contains("violated 1 time, first at time 1 s"), "{}", finished.stdout);
    // An obligation that is pending at the end is inconclusive, though all before was satisfied.
    let pending = check("{\"time\":1,\"a\":false,\"b\":false}\n{\"time\":2,\"a\":true}\n", &["-q"]);
    pending.expect_status(4);
}

#[test]
fn explaining_changes_no_verdict() {
    let specification = "topic s { v: bool, x: int }\n\
         property steps = s.v -> once[1, 3] s.x > 2\n\
         property dense = s.v -> once[0, 3 s] s.x > 2\n\
         property updates = on(s) -> changed(s.x) or s.v since[0, 1 s] s.x == 1\n\
         property alive = age(s) <= 1500 ms\n";
    let line = |i: u64| {
        format!("{{\"time\":{},\"v\":{},\"x\":{}}}\n", i * i % 7 + i, i.is_multiple_of(3), i * 5 % 4)
    };
    let input: String = (0..200).map(line).collect();
    let [bare, explained] = [false, true].map(|explain| {
        let plan = library::plan(specification, Emit::Every, explain).unwrap();
        library::check(&plan, &input)
    });
    let stripped: String = explained
        .lines()
        .map(|line| {
            line.split_once(",\"evidence\"").map_or(line.to_owned(), |(l, _)| format!("{l}}}")) + "\n"
        })
        .collect();
    assert!(explained.contains("evidence"));
    assert_eq!(stripped, bare);
}

#[test]
fn only_causes_of_a_violation_are_shown() {
    let folder = Folder::new();
    let spec = folder.file(
        "p.rondel",
        "topic t { x: int, y: int, z: bool }\nproperty p = t.x < 5 and (t.z -> once[0, 2 s] t.y > 2)\n",
    );
    let trace = "{\"time\":1,\"x\":1,\"y\":3,\"z\":false}\n{\"time\":2,\"x\":7,\"y\":1}\n\
                 {\"time\":3,\"x\":2}\n{\"time\":5,\"z\":true}\n";
    // First the one side of the conjunction, later the other.
    rondel_with_input(["check", "-q", "-e", "violations", "--explain", &spec, "-"], trace.as_bytes())
        .expect_status(1)
        .expect_stdout(
            "violated      p                                step         1   time 2 s\n\
            \x20   time       2 s\n\
            \x20   step         1\n\
            \x20   message      t\n\
            \x20   t.x          7\n\
            \x20   t.x < 5  false\n\
            violated      p                                step         3   time 5 s\n\
            \x20   time                    3 s    5 s\n\
            \x20   step                      2      3\n\
            \x20   message                   t      t\n\
            \x20   t.z                   false   true\n\
            \x20   t.y                       1      1\n\
            \x20   once[0, 2 s] t.y > 2   true  false\n\
            \x20   t.y > 2               false  false\n",
        );
}
