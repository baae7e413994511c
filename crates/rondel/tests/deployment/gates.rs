//! Gates: what they need, what they refuse, and what is printed about them.

use super::support::{Folder, rondel};
use super::{accepted, refused};

const START: &str =
    "specification: vehicle.rondel\nzenoh: {}\ntopics:\n  gear: zenoh:gear\n  speed: zenoh:speed\n";

/// A deployment with one gate of these settings, which begin in line 7.
fn gate(settings: &str) -> String {
    format!("{START}gates:\n  - {{ {settings} }}\n")
}

const USUAL: &str = "from: speed, to: zenoh:out, unless: slow";

#[test]
fn gates_are_accepted() {
    accepted(
        &gate(
            "from: zenoh:speed, to: zenoh:out, unless: [slow, no_reverse], substitute: { value: 0.0 }, return_after: 2 s",
        ),
        &["speed  zenoh:out  slow, no_reverse or inconclusive  the substitute  2 s after they hold"],
    );
    accepted(
        &gate(&format!("{USUAL}, substitute: hold, blind: open, return_when: no_reverse, at_end: nothing")),
        &["the last message  0 s after they hold with no_reverse"],
    );
    // A list of one may be left out, and text is text on every network.
    accepted(
        &format!(
            "{START}gates: {{ from: speed, to: \"mqtt:out\", unless: slow, substitute: drop, return_when: clear }}\n"
        ),
        &["mqtt:out", "nothing"],
    );
}

#[test]
fn gates_need_their_settings() {
    refused(
        &gate("blind: half"),
        &[
            ("7:5", &["a gate needs `from`"]),
            ("7:5", &["a gate needs `to`"]),
            ("7:5", &["a gate needs `unless`"]),
            ("7:5", &["a gate needs `substitute`", "hold or drop"]),
            ("7:14", &["`blind` of a gate must be closed or open"]),
        ],
    );
    refused(
        &gate(&format!("{USUAL}, substitute: drop, fallback: hold")),
        &[("7:67", &["a gate has no setting 'fallback'", "substitute"])],
    );
    refused(
        &gate(&format!("{USUAL}, substitute: drop, return_after: 2")),
        &[("7:81", &["`return_after` must be a duration such as 2 s", "2 has no unit"])],
    );
    refused(
        &gate(&format!("{USUAL}, substitute: hold, at_end: substitute")),
        &[("7:75", &["`at_end: substitute` needs a message", "at_end: nothing"])],
    );
}

#[test]
fn addresses_of_gates_are_checked() {
    for (from, to, place, words) in [
        ("sped", "zenoh:out", "7:13", &["'sped' is neither a topic", "did you mean 'speed'?"][..]),
        ("zenoh:other", "zenoh:out", "7:13", &["neither a topic of the specification nor the source of one"]),
        ("speed", "zenoh:speed", "7:24", &["would come back as messages of zenoh:speed"]),
        ("speed", "zenoh:gear", "7:24", &["would come back as messages of zenoh:gear"]),
        ("speed", "zenoh:out/*", "7:24", &["has no wildcards"]),
        ("speed", "stdout", "7:24", &["stdout is no network"]),
        ("speed", "zenoh+cdr:out", "7:24", &["passed on as they are", "json", "cdr"]),
    ] {
        let settings = format!("from: {from}, to: \"{to}\", unless: slow, substitute: drop");
        refused(&gate(&settings), &[(place, words)]);
    }
    refused(
        &format!(
            "{START}gates:\n  - {{ {USUAL}, substitute: drop }}\n  - {{ from: gear, to: zenoh:out, unless: slow, substitute: drop }}\n"
        ),
        &[("8:23", &["`to` of a gate", "use different topics"])],
    );
    let several = START.replace("zenoh:speed", "zenoh:speed/*");
    refused(
        &format!("{several}gates:\n  - {{ {USUAL}, substitute: drop }}\n"),
        &[("7:13", &["zenoh:speed/* reads several topics"])],
    );
    let aligned = format!("{START}alignment: {{ policy: event_time }}\n");
    refused(
        &format!("{aligned}gates:\n  - {{ {USUAL}, substitute: drop }}\n"),
        &[("8:13", &["a gate decides when a message arrives", "policy: arrival"])],
    );
}

#[test]
fn gates_exclude_reloads() {
    let usual = gate(&format!("{USUAL}, substitute: drop"));
    refused(
        &format!("{usual}reload: watch\n"),
        &[("8:9", &["a run with `gates` cannot be reloaded", "restart the run"])],
    );
    accepted(&format!("{usual}reload: request\n"), &[]);
}

#[test]
fn substitutes_fit_their_type() {
    for (substitute, place, words) in [
        ("{ value: fast }", "7:61", &["cannot be read as a message of its topic", "another type"][..]),
        ("[1, 2]", "7:61", &["must be a message", "hold or drop"]),
        ("{ value: .inf }", "7:70", &["a number in `substitute` must be finite"]),
    ] {
        refused(&gate(&format!("{USUAL}, substitute: {substitute}")), &[(place, words)]);
    }
    let warned = accepted(&gate(&format!("{USUAL}, substitute: {{ valeu: 0.0 }}")), &[]);
    assert!(
        warned.contains("7:63: the topic declares no field 'valeu' of the substitute; did you mean 'value'?"),
        "{warned}"
    );
    let further = accepted(&gate(&format!("{USUAL}, substitute: {{ value: 0.0, values: 1 }}")), &[]);
    assert!(!further.contains("did you mean"), "{further}");
    let folder = Folder::new();
    folder.file(
        "cmd.rondel",
        "topic cmd \"/raw\" : geometry_msgs/msg/Twist\nproperty slow = cmd.linear.x < 1\n",
    );
    let refused = |substitute: &str, words: &[&str]| {
        let text = format!(
            "specification: cmd.rondel\nros2: {{ middleware: dds }}\ntopics: {{ cmd: ros2:/raw }}\n\
             gates:\n  - from: cmd\n    to: ros2:/cmd_vel\n    unless: slow\n    substitute: {substitute}\n"
        );
        let finished = rondel(["validate", &folder.file("rondel.yaml", text)]);
        if words.is_empty() {
            finished.expect_status(0);
        } else {
            finished.expect_status(2).expect_stderr(words);
        }
    };
    refused("{ linear: { x: 0.0 }, angular: { z: 0 } }", &[]);
    refused(
        "{ linear: { w: 0.0 } }",
        &["8:27: ", "does not fit its type geometry_msgs/msg/Twist: `linear`: there is no field `w`"],
    );
    refused("{ linear: { x: fast } }", &["8:32: ", "`linear.x`: \"fast\" is no number"]);
    refused("5", &["8:17: ", "5 is no mapping of fields"]);
}

#[test]
fn gates_need_properties_that_are_decided_at_arrival() {
    let folder = Folder::new();
    folder.file(
        "cmd.rondel",
        "topic cmd { v: float }\nproperty soon = cmd.v > 1 -> eventually[0, 1 s] cmd.v < 1\n\
         property slow = cmd.v < 1\nassert always slow\n",
    );
    for (unless, words) in [
        ("soon", &["7:13: ", "`unless` cannot use 'soon'", "future operators", "once"][..]),
        ("always slow", &["7:13: ", "an assert is decided at the end"]),
        ("slwo", &["7:13: ", "did you mean 'slow'?"]),
        ("[]", &["7:13: ", "`unless` names no property"]),
    ] {
        let text = format!(
            "specification: cmd.rondel\nzenoh: {{}}\ntopics: {{ cmd: zenoh:raw }}\ngates:\n  - from: cmd\n    to: zenoh:out\n    \
             unless: {unless}\n    substitute: drop\n"
        );
        rondel(["validate", &folder.file("rondel.yaml", text)]).expect_status(2).expect_stderr(words);
    }
}
