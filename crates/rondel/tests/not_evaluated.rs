//! Every reason for which a message is not evaluated makes the verdicts that depend on it inconclusive, and is shown by
//! every front end and in every form of output. Costs about 15 s.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::support;

use std::process::Command;

use rondel_recording::{McapWriter, MessageHead, WriterOptions};
use rondel_runtime::Reason;
use rondel_testkit::Process;
use support::network::{arguments, free_endpoint, zenoh, zenoh_listening};
use support::{Finished, Folder, RONDEL, rondel, rondel_with_input, start_rondel};

/// The specification of most rows: no message that is evaluated violates it.
const BELOW: &str = "topic v \"v\"\nproperty ok = v.v < 5\n";

/// A check in which messages are not evaluated for one reason.
struct Row {
    specification: &'static str,
    recording: Recorded,
    /// Further options of `check`.
    options: &'static [&'static str],
    /// A deployment around the specification `spec.rondel`, if one is needed.
    deployment: Option<&'static str>,
    /// Sentence of the summary.
    sentence: &'static str,
}

enum Recorded {
    Lines(&'static str),
    /// Messages as encoding, time in seconds and payload, and what the recorder noted at the end.
    Mcap(&'static [(&'static str, u64, &'static [u8])], &'static [(&'static str, &'static str)]),
}

const ONE: (&str, u64, &[u8]) = ("json", 1, br#"{"v":1}"#);
const TWO: (&str, u64, &[u8]) = ("json", 2, br#"{"v":2}"#);

/// Case that produces a reason. A new reason needs a row here to compile.
#[expect(clippy::too_many_lines, reason = "a row for each reason")]
fn row(reason: Reason) -> Row {
    let row = |recording, sentence| Row {
        specification: BELOW,
        recording,
        options: &[],
        deployment: None,
        sentence,
    };
    match reason {
        Reason::Lost => row(
            Recorded::Lines(
                "{\"topic\":\"v\",\"time\":1,\"origin\":{\"publisher\":1,\"number\":1},\"data\":{\"v\":1}}\n\
                 {\"topic\":\"v\",\"time\":2,\"origin\":{\"publisher\":1,\"number\":5},\"data\":{\"v\":1}}\n",
            ),
            "3 messages on v were lost, by the numbers of publishers",
        ),
        Reason::Undecodable => row(
            Recorded::Mcap(&[ONE, ("json", 2, b"{\"v\":"), ("json", 3, b"{"), TWO], &[]),
            "2 messages on v cannot be decoded; the first at 2 s: of 5 bytes",
        ),
        Reason::OtherType => row(
            Recorded::Mcap(&[ONE, ("unheard-of", 2, b"x")], &[]),
            "1 message on v has another type than the topic is read with",
        ),
        Reason::OtherFieldType => row(
            Recorded::Lines(
                "{\"topic\":\"v\",\"v\":1}\n{\"topic\":\"v\",\"v\":\"nine\"}\n{\"topic\":\"v\",\"v\":2}\n",
            ),
            "1 value on v has another type than the specification reads",
        ),
        Reason::NotANumber => row(
            Recorded::Mcap(
                &[
                    ("cbor", 1, &[0xa1, 0x61, 0x76, 0xf9, 0x3c, 0x00]),
                    ("cbor", 2, &[0xa1, 0x61, 0x76, 0xf9, 0x7e, 0x00]),
                    ("cbor", 3, &[0xa1, 0x61, 0x76, 0xf9, 0x3c, 0x00]),
                ],
                &[],
            ),
            "1 value on v is NaN",
        ),
        Reason::RefusedTime => Row {
            deployment: Some("alignment: { policy: arrival, ahead: 10 s }\n"),
            options: &["--time-field", "t"],
            ..row(
                Recorded::Mcap(
                    &[
                        ("json", 1, br#"{"v":1,"t":1}"#),
                        ("json", 2, br#"{"v":9,"t":"2100-01-01T00:00:00Z"}"#),
                    ],
                    &[],
                ),
                "1 message on v was refused: the times are too far from the clock; the first at",
            )
        },
        Reason::TooLarge => Row {
            deployment: Some("limits: { message: 20 B }\n"),
            ..row(
                Recorded::Mcap(&[ONE, ("json", 2, br#"{"more":"xxxxxxxxxxxxxxxx","v":9}"#)], &[]),
                "1 message on v was refused: too large; the first at 2 s: 33 bytes, the limit is 20 B",
            )
        },
        Reason::Skipped => Row {
            options: &["--on-error", "skip"],
            ..row(
                Recorded::Lines(
                    "{\"topic\":\"v\",\"v\":1}\n{\"topic\":\"v\",\"v\":9\n{\"topic\":\"v\",\"v\":2}\n",
                ),
                "1 part of the recording was skipped; the first: line 2, column",
            )
        },
        Reason::OutsideSpan => Row {
            specification: "topic v \"v\"\nproperty ok = historically[0, 10 s] v.v < 5\n",
            options: &["--from", "+1"],
            ..row(Recorded::Mcap(&[ONE, TWO], &[]), "1 message is outside the time span to read")
        },
        Reason::OverLimit => Row {
            specification: "topic v \"v\" { k: int, v: int }\n@limit(1) property ok for each k in v.k = v.v < 5\n",
            ..row(
                Recorded::Lines("{\"topic\":\"v\",\"k\":1,\"v\":1}\n{\"topic\":\"v\",\"k\":2,\"v\":9}\n"),
                "1 message or value is over a limit",
            )
        },
        Reason::Dropped => row(
            Recorded::Mcap(&[ONE, TWO], &[("refused", "4")]),
            "4 messages were dropped by a full queue; the first: by the recorder",
        ),
        Reason::Late => Row {
            deployment: Some("alignment: { policy: event_time, late: drop, max_wait: 0 s }\n"),
            options: &["--time-field", "t"],
            ..row(
                Recorded::Mcap(
                    &[
                        ("json", 1, br#"{"v":1,"t":10}"#),
                        ("json", 2, br#"{"v":1,"t":20}"#),
                        ("json", 3, br#"{"v":9,"t":5}"#),
                        ("json", 4, br#"{"v":1,"t":30}"#),
                    ],
                    &[],
                ),
                "1 message on v came too late",
            )
        },
        Reason::NotReceived => row(
            Recorded::Mcap(&[ONE, ("json", 5, br#"{"v":1}"#)], &[("cut_offs", "2000000000\t4000000000")]),
            "1 time span on v without reception; the first at 2 s: cut off from the network",
        ),
    }
}

/// The files of a row: specification or deployment, and recording.
fn files(folder: &Folder, row: &Row) -> (String, String) {
    let mut specification = folder.file("spec.rondel", row.specification);
    if let Some(further) = row.deployment {
        let time = if row.options.contains(&"--time-field") { ", time: t" } else { "" };
        let text = format!(
            "specification: spec.rondel\ntopics: {{ v: {{ source: \"zenoh:v\"{time} }} }}\n{further}"
        );
        specification = folder.file("rondel.yaml", &text);
    }
    let recording = match &row.recording {
        Recorded::Lines(text) => folder.file("lines.jsonl", text),
        Recorded::Mcap(messages, notes) => {
            let path = folder.path("recording.mcap");
            let library = "rondel 0.1.0".to_owned();
            let options = WriterOptions { library, ..WriterOptions::default() };
            let mut writer = McapWriter::create(path.as_ref(), &options).unwrap();
            let mut channels: Vec<(&str, u16)> = Vec::new();
            for (encoding, seconds, payload) in *messages {
                let known = channels.iter().find(|(known, _)| known == encoding).map(|(_, id)| *id);
                let channel = known.unwrap_or_else(|| {
                    let id = writer.channel("v", encoding, 0, &[]).unwrap();
                    channels.push((encoding, id));
                    id
                });
                let (log_time, publish_time) = (seconds * 1_000_000_000, seconds * 1_000_000_000);
                writer
                    .message(&MessageHead { channel, sequence: 0, log_time, publish_time }, payload)
                    .unwrap();
            }
            if !notes.is_empty() {
                let notes = notes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
                writer.metadata("rondel", &notes.collect::<Vec<_>>()).unwrap();
            }
            writer.finish().unwrap();
            path
        }
    };
    (specification, recording)
}

/// The options of a row; the deployment names the field of the time already.
fn options(row: &Row) -> Vec<&'static str> {
    if row.deployment.is_some() { Vec::new() } else { row.options.to_vec() }
}

fn check(row: &Row, specification: &str, recording: &str, further: &[&str]) -> Finished {
    let arguments = [&["check"], &options(row)[..], further, &[specification, recording]].concat();
    rondel(arguments)
}

#[test]
fn check_shows_every_reason_in_every_form() {
    for reason in Reason::ALL {
        let (folder, row) = (Folder::new(), row(reason));
        let (specification, recording) = files(&folder, &row);
        let forms = ["junit", "sarif", "tap", "github", "html", "json"];
        let paths = forms.map(|form| folder.path(form));
        let reports: Vec<String> =
            forms.iter().zip(&paths).map(|(form, path)| format!("--report={form}={path}")).collect();
        let reports: Vec<&str> = reports.iter().map(String::as_str).collect();
        let checked = check(&row, &specification, &recording, &reports);
        checked.expect_status(4);
        let found = format!("{reason:?}\n{}\n{}", checked.stdout, checked.stderr);
        assert!(checked.stdout.contains("inconclusive  ok"), "{found}");
        assert!(checked.stdout.contains(&format!("not evaluated: {}", row.sentence)), "{found}");
        let text = |form: &str| {
            let at = forms.iter().position(|own| *own == form).unwrap();
            std::fs::read_to_string(&paths[at]).unwrap()
        };
        for (form, marks) in [
            ("junit", &["<error", "errors=\"1\"", "not evaluated: "][..]),
            (
                "sarif",
                &["\"toolExecutionNotifications\"", "not evaluated: ", "\"outcome\": \"inconclusive\""],
            ),
            ("tap", &["not ok 1 - ok", "# not evaluated: "]),
            ("github", &["::error", "title=ok inconclusive", "::warning", "not evaluated: "]),
            ("html", &["inconclusive", "not evaluated: "]),
            ("json", &["\"outcome\": \"inconclusive\"", "not evaluated: "]),
        ] {
            for mark in marks {
                assert!(text(form).contains(mark), "{form} lacks {mark}: {found}\n{}", text(form));
            }
        }
        let summary = check(&row, &specification, &recording, &["--summary", "json", "-e", "violations"]);
        let summary =
            summary.stderr.lines().find(|line| line.starts_with('{')).unwrap_or_default().to_owned();
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
        assert_eq!(summary["not_evaluated"][0]["reason"], reason.as_str(), "{summary}");
        assert!(summary["not_evaluated"][0]["count"].as_u64() > Some(0), "{summary}");
        assert_eq!(summary["properties"][0]["verdict"], "inconclusive", "{summary}");
        // Without the summary it is a warning.
        let quiet = check(&row, &specification, &recording, &["-q"]);
        quiet.expect_status(4).expect_stderr(&["not evaluated: "]);
    }
}

#[test]
fn place_of_a_value_of_another_type_is_named() {
    let folder = Folder::new();
    let specification = folder.file("spec.rondel", BELOW);
    let table = folder.file("v.csv", "time,v\n1,1\n2,x\n3,y\n");
    let quoted = folder.file("quoted.csv", "time,v,note\n1,1,\"two\nlines\"\n2,x,\n3,1,\n");
    let archive = folder.file(
        "v.xml",
        "<all>\n<m time='1'><v>1</v></m>\n<m time='2'>\n  <v>x</v></m>\n<m time='3'><v>y</v></m>\n</all>\n",
    );
    let messages: &[(&str, u64, &[u8])] =
        &[("cbor", 1, b"\xa1\x61v\x01"), ("cbor", 2, b"\xa1\x61v\x61x"), ("cbor", 3, b"\xa1\x61v\x61y")];
    let row = Row {
        specification: BELOW,
        recording: Recorded::Mcap(messages, &[]),
        options: &[],
        deployment: None,
        sentence: "",
    };
    let (_, cbor) = files(&folder, &row);
    for (recording, count, place) in [
        (&table, "2 values", format!("{table}:3")),
        (&quoted, "1 value", format!("{quoted}:4")),
        (&archive, "2 values", format!("{archive}:4:3")),
        (&cbor, "2 values", "byte 3 of the message".to_owned()),
    ] {
        let checked = rondel(["check", &specification, recording]);
        let start = format!("not evaluated: {count} on v ");
        let end = format!("; the first at 2 s: `v` has another type than `float` ({place})");
        let is_it = |line: &str| line.contains(&start) && line.ends_with(&end);
        assert!(checked.expect_status(4).stdout.lines().any(is_it), "{place}: {}", checked.stdout);
    }
    // In several recordings, the place is in that of the value.
    let good = folder.file("good.csv", "time,v\n1,1\n2,2\n");
    let merged = rondel(["check", "--merge", &specification, &good, &table]);
    assert!(merged.stdout.contains(&format!("({table}:3)")), "{}", merged.stdout);
}

#[test]
fn plots_show_every_reason() {
    for reason in Reason::ALL {
        let (folder, row) = (Folder::new(), row(reason));
        let (specification, recording) = files(&folder, &row);
        let picture = folder.path("picture.html");
        let plotted = rondel(
            [&["plot", "--out", &picture], &options(&row)[..], &[&specification, &recording]].concat(),
        );
        plotted.expect_status(0);
        let text = std::fs::read_to_string(&picture).unwrap();
        assert!(text.contains("not evaluated: "), "{reason:?} {}", plotted.stderr);
    }
}

#[test]
fn formulas_in_the_playground_are_not_satisfied_over_messages_that_were_not_evaluated() {
    for reason in Reason::ALL {
        let (folder, row) = (Folder::new(), row(reason));
        // Options of `check` and deployments are not those of `repl`.
        if row.deployment.is_some() || !row.options.is_empty() {
            continue;
        }
        let (specification, recording) = files(&folder, &row);
        let printed = rondel_with_input(["repl", &specification, &recording], b"ok\n");
        assert!(!printed.stdout.contains("satisfied"), "{reason:?} {} {}", printed.stdout, printed.stderr);
        assert!(
            printed.stdout.contains("not evaluated: "),
            "{reason:?} {} {}",
            printed.stdout,
            printed.stderr
        );
    }
}

/// The payloads that a publisher of JSON sends for a reason, the last of them evaluated; none where it takes more than a
/// publisher. A new reason needs a row here to compile.
fn payloads(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::Undecodable => "{\"v\":1}\n{\"v\":\n{\"v\":2}\n",
        Reason::OtherFieldType => "{\"v\":1}\n{\"v\":\"nine\"}\n{\"v\":2}\n",
        Reason::RefusedTime => "{\"v\":9,\"t\":\"2100-01-01T00:00:00Z\"}\n{\"v\":2}\n",
        Reason::TooLarge => "{\"v\":1}\n{\"more\":\"xxxxxxxxxxxxxxxx\",\"v\":9}\n{\"v\":2}\n",
        Reason::OverLimit => "{\"k\":1,\"v\":1}\n{\"k\":2,\"v\":9}\n{\"k\":1,\"v\":2}\n",
        // By numbers, bytes of other encodings, a recording, or time.
        Reason::Lost | Reason::OtherType | Reason::NotANumber | Reason::Skipped | Reason::OutsideSpan => {
            return None;
        }
        Reason::Dropped | Reason::Late | Reason::NotReceived => return None,
    })
}

/// Number of messages that `replay` publishes, its exit status, and a part of its summary. Payloads are published as they
/// were recorded: whether they can be evaluated is decided by the monitor that receives them. A new reason needs a row
/// here to compile.
fn replayed(reason: Reason) -> (u64, i32, &'static str) {
    match reason {
        Reason::Lost | Reason::RefusedTime | Reason::TooLarge | Reason::OverLimit => (2, 0, ""),
        Reason::OtherFieldType | Reason::NotANumber => (3, 0, ""),
        Reason::Undecodable | Reason::Late => (4, 0, ""),
        Reason::OtherType => (1, 5, "left out v: the encoding 'unheard-of' is not known"),
        Reason::Skipped => (2, 3, "1 part of the recording could not be read"),
        Reason::OutsideSpan => (1, 0, ""),
        Reason::Dropped => {
            (2, 0, "the recording is not complete: its recorder missed 4 messages (4 refused)")
        }
        Reason::NotReceived => (2, 0, "its recorder was cut off from a network 1 time, first at 2 s"),
    }
}

#[test]
fn replay_publishes_recorded_messages_and_reports_missing_ones() {
    for reason in Reason::ALL {
        let (folder, row) = (Folder::new(), row(reason));
        let (_, recording) = files(&folder, &row);
        let (published, status, said) = replayed(reason);
        let own = ["replay", &recording, "--to", "zenoh", "--wait", "0", "--as-fast-as-possible"];
        let span = if reason == Reason::OutsideSpan { row.options } else { &[] };
        let network = zenoh_listening("peer", &free_endpoint());
        let replayed = rondel(arguments(&[&own, span].concat(), &network));
        let found = format!("{reason:?} {:?} {}", replayed.status, replayed.stderr);
        assert_eq!(replayed.status, Some(status), "{found}");
        let messages = if published == 1 { "message" } else { "messages" };
        assert!(replayed.stderr.contains(&format!("replayed {published} {messages} of")), "{found}");
        assert!(replayed.stderr.contains(said), "{found}");
    }
}

#[test]
fn live_runs_show_reasons_in_their_summary() {
    for reason in Reason::ALL {
        let Some(payloads) = payloads(reason) else { continue };
        let (folder, row, endpoint) = (Folder::new(), row(reason), free_endpoint());
        folder.file("spec.rondel", row.specification);
        let time = if reason == Reason::RefusedTime { ", time: t" } else { "" };
        let deployment = format!(
            "specification: spec.rondel\ntopics: {{ v: {{ source: \"zenoh:v\"{time} }} }}\n\
             zenoh: {{ mode: router, listen: [\"{endpoint}\"] }}\nros2: {{ middleware: zenoh }}\n\
             verdicts: {{ emit: every, to: [stdout, \"ros2:/diagnostics\"] }}\n{}",
            row.deployment.unwrap_or_default()
        );
        let deployment = folder.file("rondel.yaml", deployment);
        let mut run = start_rondel(["run", &deployment, "--strict", "--summary", "json"]);
        run.wait_stderr("ready");
        let mut tap = Command::new(RONDEL);
        let own =
            ["tap", "ros2:/diagnostics", "--type", "diagnostic_msgs/msg/DiagnosticArray", "--format", "json"];
        tap.args(arguments(&own, &zenoh("client", &endpoint))).env("RMW_IMPLEMENTATION", "rmw_zenoh_cpp");
        let mut diagnostics = Process::start(tap);
        let before = diagnostics.wait_stdout("rondel");
        assert!(before.contains("checking 1 property"), "{before}");
        let own = ["publish", "--to", "zenoh:v", "--wait", "60"];
        rondel_with_input(arguments(&own, &zenoh("client", &endpoint)), payloads.as_bytes()).expect_status(0);
        // Verdicts of the messages that are evaluated.
        let evaluated = match reason {
            Reason::RefusedTime => 1,
            Reason::OtherFieldType => 3,
            _ => 2,
        };
        run.take_stdout(evaluated);
        let shown = diagnostics.wait_stdout("not evaluated: ");
        let key = format!("\"key\":\"not evaluated: {}", reason.as_str());
        assert!(shown.contains(&key) && shown.contains("not everything was evaluated"), "{shown}");
        diagnostics.terminate();
        diagnostics.finish();
        run.terminate();
        let ended = run.finish();
        ended.expect_status(4);
        let summary = ended.stderr.lines().find(|line| line.starts_with('{')).unwrap_or_default();
        let summary: serde_json::Value = serde_json::from_str(summary).unwrap();
        let reasons = summary["not_evaluated"].as_array().unwrap();
        assert!(reasons.iter().any(|own| own["reason"] == reason.as_str()), "{reason:?} {}", ended.stderr);
    }
}

#[test]
fn tests_expect_nothing_of_messages_that_were_not_evaluated() {
    let folder = Folder::new();
    let limit = row(Reason::OverLimit).specification.to_owned();
    let test =
        "test \"t\" {\n at 0 s v { k: 1, v: 1 }\n at 1 s v { k: 2, v: 9 }\n expect ok never violated\n}\n";
    let tested = rondel(["test", &folder.file("limit.rondel", limit + test)]);
    tested.expect_status(1);
    assert!(tested.stdout.contains("not evaluated: 1 message or value is over a limit"), "{}", tested.stdout);
}
