//! Tables with separated values, checked as JSON lines are.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod support;

use std::io::Write as _;

use rondel_recording::TableOptions;
use rondel_runtime::Emit;
use support::{Finished, Folder, letters, library, rondel};

const SPECIFICATION: &str = "
topic gear { report: int, manual: bool, note: string }
topic odom \"/odom\" { twist: { linear: { x: float } } }
property standstill = changed(gear.report) -> odom.twist.linear.x < 0.1
property slow = odom.twist.linear.x < 8
property noted = gear.note == \"17\" -> once gear.manual
property steady = gear.manual -> once[0, 250 ms] odom.twist.linear.x < 5
";

/// A message of the recording: its time in milliseconds, and the gear and speed that it has.
type Message = (i64, Option<(i64, bool, i64)>, Option<f64>);

fn messages() -> Vec<Message> {
    let message = |i: i64| match i % 4 {
        0 => (i * 100, Some((i / 8 % 3, i % 3 == 0, i % 20)), None),
        _ => (i * 100, None, Some((i * 7 % 90) as f64 / 10.0)),
    };
    (0..200).map(message).collect()
}

fn lines() -> String {
    let line = |(time, gear, speed): Message| {
        let data = match (gear, speed) {
            (Some((report, manual, note)), _) => {
                format!(r#""gear","data":{{"report":{report},"manual":{manual},"note":"{note}"}}"#)
            }
            (None, speed) => format!(r#""/odom","data":{{"twist":{{"linear":{{"x":{}}}}}}}"#, speed.unwrap()),
        };
        format!("{{\"time\":{}.{:03},\"topic\":{data}}}\n", time / 1000, time % 1000)
    };
    messages().into_iter().map(line).collect()
}

/// The messages as a table with a column for the topic.
fn table(separator: char, line_end: &str, time: impl Fn(i64) -> String, name: &str) -> String {
    let mut text = [name, "topic", "report", "manual", "note", "twist.linear.x"].join(&separator.to_string());
    text += line_end;
    for (millis, gear, speed) in messages() {
        let (report, manual, note) = gear.map_or_else(Default::default, |(report, manual, note)| {
            (report.to_string(), manual.to_string(), format!("\"{note}\""))
        });
        let topic = if gear.is_some() { "gear" } else { "\"/odom\"" };
        let mut speed = speed.map_or(String::new(), |speed| speed.to_string());
        if separator == ';' {
            speed = speed.replace('.', ",");
        }
        let cells = [&time(millis), topic, &report, &manual, &note, &speed];
        text += &cells.join(&separator.to_string());
        text += line_end;
    }
    text
}

fn check(spec: &str, more: &[&str]) -> Finished {
    rondel(["check", "--format", "json", "-e", "every", "-q", spec].iter().chain(more))
}

fn seconds(millis: i64) -> String {
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

#[test]
fn tables_of_every_form_give_the_verdicts_of_lines() {
    let folder = Folder::new();
    let spec = folder.file("drive.rondel", SPECIFICATION);
    let expected = check(&spec, &[&folder.file("lines.jsonl", lines())]);
    expected.expect_status(1);
    assert!(expected.stdout.lines().count() >= 4 * 200, "{}", expected.stderr);
    let nanos = |millis: i64| (millis * 1_000_000).to_string();
    let forms = [
        ("comma.csv", table(',', "\n", seconds, "time")),
        ("semicolon.csv", table(';', "\r\n", seconds, "Time")),
        ("tab.tsv", table('\t', "\n", seconds, "timestamp")),
        ("nanoseconds.csv", table(',', "\n", nanos, "time_ns")),
        (
            "mark.csv",
            "\u{feff}".to_owned() + &table(',', "\r\n", |millis| format!(" {} ", seconds(millis)), "time"),
        ),
        ("end.csv", table(',', "\n", seconds, "time").trim_end().to_owned()),
    ];
    for (name, text) in forms {
        let checked = check(&spec, &[&folder.file(name, &text)]);
        checked.expect_status(1);
        assert_eq!(checked.stdout, expected.stdout, "{name}: {}", checked.stderr);
    }
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(table(',', "\n", seconds, "time").as_bytes()).unwrap();
    let packed = folder.file("packed.csv.gz", packed.finish().unwrap());
    assert_eq!(check(&spec, &[&packed]).stdout, expected.stdout);
    let zstd = zstd::encode_all(table(',', "\n", seconds, "time").as_bytes(), 3).unwrap();
    assert_eq!(check(&spec, &[&folder.file("packed.csv.zst", zstd)]).stdout, expected.stdout);
    // Absolute times, found by their size; dates.
    let late = |millis: i64| 1_700_000_000_000 + millis;
    let lines: String = lines()
        .lines()
        .zip(messages())
        .map(|(line, (millis, ..))| {
            let rest = line.split_once(",\"topic\"").unwrap().1;
            format!("{{\"time\":{},\"topic\"{rest}\n", seconds(late(millis)))
        })
        .collect();
    let expected = check(&spec, &[&folder.file("late.jsonl", lines)]);
    let date = |millis: i64| {
        let seconds = 1_700_000_000 - 1_699_999_200 + millis / 1000;
        format!("2023-11-14T{:02}:{:02}:{:02}.{:03}Z", 22, seconds / 60, seconds % 60, millis % 1000)
    };
    let forms = [
        ("late.csv", table(',', "\n", |millis| seconds(late(millis)), "time")),
        ("milliseconds.csv", table(',', "\n", |millis| late(millis).to_string(), "time")),
        ("late-nanoseconds.csv", table(',', "\n", |millis| format!("{}000000", late(millis)), "timestamp")),
        ("dates.csv", table(',', "\n", date, "time")),
    ];
    for (name, text) in forms {
        let checked = check(&spec, &[&folder.file(name, &text)]);
        assert_eq!(checked.stdout, expected.stdout, "{name}: {}", checked.stderr);
    }
}

#[test]
fn one_topic_and_exports_of_plotjuggler() {
    let folder = Folder::new();
    let spec = folder.file("speed.rondel", "topic odom \"/odom\" { x: float }\nproperty slow = odom.x < 8\n");
    let rows = "__time,x\n0.0,1\n0.1,9.5\n0.2,3\n";
    let expected = check(
        &spec,
        &[&folder.file("a.jsonl", "{\"x\":1}\n{\"x\":9.5,\"time\":0.1}\n{\"x\":3,\"time\":0.2}\n")],
    );
    expected.expect_status(1);
    // The specification has one topic; the name of the file; an option; a formula.
    assert_eq!(check(&spec, &[&folder.file("drive.csv", rows)]).stdout, expected.stdout);
    let two = folder.file(
        "two.rondel",
        "topic odom \"/odom\" { x: float }\ntopic gear\nproperty slow = odom.x < 8\nproperty g = on(gear)\n",
    );
    let named = check(&two, &[&folder.file("odom.csv", rows)]);
    assert!(named.stdout.contains("\"slow\"") && named.stdout.contains("violated"), "{}", named.stderr);
    let drive = folder.file("drive.csv", rows);
    check(&two, &[&drive]).expect_status(4).expect_stderr(&["drive"]);
    assert_eq!(check(&two, &["--topic", "odom", &drive]).stdout, named.stdout);
    let formula = rondel(["check", "--format", "json", "-e", "violations", "-q", "-f", "x < 8", &drive]);
    assert_eq!(formula.expect_status(1).stdout.lines().count(), 1);
    // PlotJuggler writes doubles, each only where it changed.
    let spec = folder.file(
        "rover.rondel",
        "topic odom \"/rover/odom\"\ntopic brake \"/brake\" { data: bool }\ntopic gear \"/gear\" { report: int }\n\
         property slow = odom.twist.linear.x < 8 or once[0, 100 ms] brake.data\n\
         property reverse = gear.report == 20 -> brake.data\n",
    );
    let export = "__time,/brake/data,/rover/odom/pose/x,/rover/odom/twist/linear/x,/gear/report\n\
                  1.0,0.000000000,,,\n1.1,,1.5,9,\n1.2,1.000000000,2.5,9,20.000000\n1.25,,2,8.5,\n2.0,,2,8.5,22.000000\n";
    let lines = r#"{"topic":"/brake","time":1,"data":{"data":false}}
{"topic":"/rover/odom","time":1.1,"data":{"twist":{"linear":{"x":9}}}}
{"topic":"/brake","time":1.2,"data":{"data":true}}
{"topic":"/gear","time":1.2,"data":{"report":20}}
{"topic":"/rover/odom","time":1.2,"data":{"twist":{"linear":{"x":9}}}}
{"topic":"/rover/odom","time":1.25,"data":{"twist":{"linear":{"x":8.5}}}}
{"topic":"/gear","time":2,"data":{"report":22}}
{"topic":"/rover/odom","time":2,"data":{"twist":{"linear":{"x":8.5}}}}
"#;
    let export = folder.file("export.csv", export);
    let expected = check(&spec, &[&folder.file("export.jsonl", lines)]);
    let checked = check(&spec, &[&export]);
    assert_eq!(checked.expect_status(1).stdout, expected.stdout, "{}", checked.stderr);
    let listed = rondel(["topics", &export]);
    for topic in ["/brake", "/rover/odom", "/gear"] {
        assert!(listed.stdout.contains(topic), "{}", listed.stdout);
    }
    let drafted = folder.path("drafted");
    rondel(["init", &export, "--folder", &drafted]).expect_status(0);
    rondel(["check", "-q", &format!("{drafted}/first.rondel"), &export]).expect_status(0);
}

#[test]
fn wrong_rows_are_named_and_skipped() {
    const SPEED: &str = "topic odom { x: float }\nproperty slow = odom.x < 8\n";
    let folder = Folder::new();
    let spec = folder.file("speed.rondel", SPEED);
    let text = "time,x,note\n0,1,a\n0.1,2\n0.2,3,\"two\nlines\"\nsoon,4,b\n0.4,5,c\n";
    let table = folder.file("rows.csv", text);
    let stopped = check(&spec, &[&table]);
    stopped.expect_status(3).expect_stderr(&["rows.csv:3: the row has 2 cells, and the header 3"]);
    let skipped = rondel(["check", "--on-error", "skip", "--summary", "json", &spec, &table]);
    skipped.expect_stderr(&[
        "2 parts of the recording on odom were skipped; the first: line 3: the row has 2 cells",
        "\"skipped\":2",
        "\"events\":3",
    ]);
    let time = folder.file("time.csv", "time,x\n1,1\nsoon,2\n");
    check(&spec, &[&time])
        .expect_status(3)
        .expect_stderr(&["time.csv:3: \"soon\" in column `time` is no time"]);
    for (name, text, reason) in [
        ("empty.csv", "", "this table is empty"),
        ("numbers.csv", "1,2\n3,4\n", "the first line of this table does not name the columns"),
        ("twice.csv", "time,x,x\n", "two columns have the name `x`"),
    ] {
        check(&spec, &[&folder.file(name, text)]).expect_status(3).expect_stderr(&[name, reason]);
    }
    let none = check(&spec, &[&folder.file("header.csv", "time,x\n")]);
    none.expect_stderr(&["the recording has no message"]);
    // Cut anywhere it is no reason to break down; the library reads every cut, the command some of them.
    let plan = library::plan(SPEED, Emit::Every, false).unwrap();
    let options = TableOptions { only_topic: Some("odom"), ..TableOptions::default() };
    let whole = table_with_quotes().as_bytes();
    for cut in 0..whole.len() {
        let file = folder.file("cut.csv", &whole[..cut]);
        let (verdicts, errors) = library::read(&plan, &file, &options);
        assert!(!verdicts.contains("violated"), "{verdicts} {errors:?}");
        if cut % 16 == 0 {
            let cut = check(&spec, &["--on-error", "skip", &file]);
            assert!(matches!(cut.status, Some(0 | 3 | 4)), "{}", cut.stderr);
        }
    }
}

#[test]
fn a_quotation_mark_that_is_not_closed_is_named() {
    let folder = Folder::new();
    let spec = folder.file("speed.rondel", "topic odom { x: float }\nproperty slow = odom.x < 8\n");
    let begin = "time,x,note\n0,1,\"a\nb\"\n\n1,2,";
    let reason = "the quotation mark before \"open";
    for (name, end, line) in [
        ("open.csv", "\"open\n2,20,x\n3,30,y\n", 5),
        ("last.csv", "\"open", 5),
        ("second.csv", "\"c\nd\"\n2,3,\"open\n3,30,y", 7),
        ("doubled.csv", "\"open \"\"\n2,20,x\n", 5),
    ] {
        for ends in ["\n", "\r\n"] {
            let table = folder.file(name, format!("{begin}{end}").replace('\n', ends));
            let checked = check(&spec, &[&table]);
            checked.expect_status(3).expect_stderr(&[&format!("{name}:{line}: {reason}")]);
            let skipped = rondel(["check", "--on-error", "skip", "--summary", "json", &spec, &table]);
            skipped.expect_stderr(&[
                "1 part of the recording on odom was skipped; the first: line",
                reason,
                "\"skipped\":1",
            ]);
        }
    }
    let packed = zstd::encode_all(format!("{begin}\"open\n2,20,x\n").as_bytes(), 3).unwrap();
    check(&spec, &[&folder.file("packed.csv.zst", packed)]).expect_status(3).expect_stderr(&[reason]);
    // A quoted cell that is closed at the very end is complete.
    for end in ["\"c\nd\"", "\"c\nd\"\n", "\"\"", "c\""] {
        let table = folder.file("whole.csv", format!("{begin}{end}"));
        rondel(["check", "--summary", "json", &spec, &table])
            .expect_status(0)
            .expect_stderr(&["\"events\":2"]);
    }
    let table = folder.file("ends.csv", format!("{begin}\"open\n2,20,x\n"));
    check(&spec, &[&table]).expect_stderr(&["ends.csv:5: ", "the file ends in line 6"]);
    let header = folder.file("header.csv", "time,\"x\n0,1\n");
    check(&spec, &[&header]).expect_status(3).expect_stderr(&["the file ends in a quoted cell"]);
}

#[test]
fn tables_without_times_are_refused() {
    let folder = Folder::new();
    let spec = folder.file("speed.rondel", "topic odom { x: float }\nproperty slow = odom.x < 8\n");
    let table = folder.file("when.csv", "when,x\n0.5,1\n1.5,9\n");
    for more in [&[][..], &["--on-error", "skip"]] {
        let checked = check(&spec, &[more, &[&table]].concat());
        assert!(matches!(checked.status, Some(3 | 4)), "{more:?} {}", checked.stderr);
        checked.expect_stderr(&[
            "when.csv",
            "no column has the times",
            "`timestamp`",
            "\"when\", \"x\"",
            "--time-field",
        ]);
    }
    let other = check(&spec, &["--time-field", "nope", &table]);
    other.expect_status(2).expect_stderr(&["no column has the name \"nope\"", "\"when\", \"x\""]);
    let expected = check(&spec, &[&folder.file("time.csv", "time,x\n0.5,1\n1.5,9\n")]);
    expected.expect_status(1);
    assert_eq!(check(&spec, &["--time-field", "when", &table]).stdout, expected.stdout);
    for header in ["time [s],x", "time_s,x", "stamp,x", "Time (s),x"] {
        let named = folder.file("named.csv", format!("{header}\n0.5,1\n1.5,9\n"));
        assert_eq!(check(&spec, &[&named]).stdout, expected.stdout, "{header}");
    }
    let nanoseconds = folder.file("ns.csv", "timestamp [ns],x\n500000000,1\n1500000000,9\n");
    assert_eq!(check(&spec, &[&nanoseconds]).stdout, expected.stdout);
    // A decimal comma, as in other cells.
    let comma = folder.file("comma.csv", "time;x\n0,5;1,0\n1,5;9,0\n");
    assert_eq!(check(&spec, &[&comma]).stdout, expected.stdout);
    let comma = folder.file("when.csv", "when;x\n0,5;1,0\n1,5;9,0\n");
    assert_eq!(check(&spec, &["--time-field", "when", &comma]).stdout, expected.stdout);
}

/// A small table with all that a cell can have.
fn table_with_quotes() -> &'static str {
    "time,x,note\n0,1,\"a \"\"b\"\",\nc\"\n2026-11-22T18:16:04Z,-1.5e3,é\n"
}

#[test]
fn folders_have_tables_with_times() {
    let folder = Folder::new();
    let spec = folder.file("speed.rondel", "topic odom { x: float }\nproperty slow = odom.x < 8\n");
    folder.file("drives/a.csv", "time,x\n0,1\n");
    folder.file("drives/b.csv", "time,x\n0,9\n");
    folder.file("drives/results.csv", "property,verdict\nslow,violated\n");
    let checked = check(&spec, &[&folder.path("drives")]);
    checked.expect_status(1).expect_stderr(&["1 file is no recording", "results.csv"]);
    // The chosen tables show which columns have times; one that cannot be read is named as it is alone.
    folder.file("more/a.csv", "at,x\n0,1\n");
    let chosen = check(&spec, &["--time-field", "at", &folder.path("more")]);
    chosen.expect_status(0);
    for (name, bytes) in [("empty.csv", &b""[..]), ("lines.tsv", b"\n\n"), ("cut.csv.gz", b"\x1f\x8b\x08")] {
        let alone = check(&spec, &[&folder.file(&format!("lost/{name}"), bytes)]);
        alone.expect_status(3);
        folder.file("lost/a.csv", "time,x\n0,1\n");
        let among = check(&spec, &[&folder.path("lost")]);
        let said = alone.stderr.lines().find(|line| line.starts_with("error: ")).unwrap();
        among.expect_status(3).expect_stderr(&[said]);
        std::fs::remove_file(folder.path(&format!("lost/{name}"))).unwrap();
    }
}

/// A cell that is NaN is a number that is none: it has no value, and a verdict that needs one is inconclusive, as in a bag.
#[test]
fn nan_is_not_a_number() {
    let folder = Folder::new();
    let table = folder.file(
        "t.csv",
        "time,x,n,note,r[0],r[1],r[2]\n0,1,1,NaN,2,3,4\n1,nan,2,NaN,nan,3,inf\n2,2,NaN,a,1,3,4\n3,NaN,3,a,nan,NaN,nan\n",
    );
    let topic = "topic t { x: float, n: int, note: text, r: [float] }\n";
    for (property, verdicts, status) in [
        ("t.x < 5", "T?T?", 4),
        ("t.n < 5", "TT?T", 4),
        ("is_nan(t.x)", "FTFT", 1),
        // It has a value, as in a bag; an earlier one that is unknown makes it uncertain.
        ("known(t.x)", "TTTT", 4),
        ("t.note == \"NaN\" or t.note == \"a\"", "TTTT", 0),
        ("min(t.r) > 0", "TTT?", 4),
        ("max(t.r) > 3.5", "TTT?", 4),
        ("sum(t.r) > 0", "T?T?", 4),
        ("not any r in t.r: r < 0.5", "TTT?", 4),
        ("all r in t.r: r >= 1", "TTT?", 4),
        ("not is_nan(t.r[1])", "TTTF", 1),
    ] {
        let spec = folder.file("t.rondel", format!("{topic}property p = {property}\n"));
        let checked = rondel(["check", "-q", "--format", "json", "-e", "every", &spec, &table]);
        checked.expect_status(status);
        assert_eq!(letters(&checked.stdout), verdicts, "{property}: {}", checked.stderr);
        if status == 4 {
            checked.expect_stderr(&["on t ", " NaN"]);
        }
    }
    // Where no number is wanted, it is JSON: a survey and a replay.
    let listed = rondel(["topics", "--format", "json", &table]);
    assert!(listed.expect_status(0).stdout.contains("\"encoding\":\"json\""), "{}", listed.stdout);
}

/// The Parquet tables that `pyarrow` wrote, with the messages of lines beside them.
#[test]
fn parquet_tables_give_the_verdicts_of_lines() {
    let folder = Folder::new();
    let spec = folder.file("drive.rondel", format!("{SPECIFICATION}property empty = gear.note != \"\"\n"));
    let written =
        |name: &str| format!("{}/../rondel-recording/tests/parquet/{name}", env!("CARGO_MANIFEST_DIR"));
    if cfg!(not(feature = "parquet")) {
        let refused = check(&spec, &[&written("zstd.parquet")]);
        refused.expect_status(3).expect_stderr(&["zstd.parquet", "build it with its feature `parquet`"]);
        return;
    }
    let expected = check(&spec, &[&written("messages.jsonl")]);
    expected.expect_status(1);
    assert!(expected.stdout.lines().count() >= 4 * 120, "{}", expected.stderr);
    for name in ["plain", "snappy", "zstd", "gzip", "lz4", "delta", "columns"] {
        let checked = check(&spec, &[&written(&format!("{name}.parquet"))]);
        assert_eq!(checked.stdout, expected.stdout, "{name}: {}", checked.stderr);
    }
    // By its beginning, under another name.
    let renamed = folder.file("drive.bin", std::fs::read(written("zstd.parquet")).unwrap());
    assert_eq!(check(&spec, &[&renamed]).stdout, expected.stdout);
    let lists = folder.file(
        "lists.rondel",
        "topic odom \"/odom\" { ranges: [float] }\nproperty near = odom.ranges[0] < 5\n",
    );
    let expected = check(&lists, &[&written("messages.jsonl")]);
    assert_eq!(check(&lists, &[&written("plain.parquet")]).stdout, expected.stdout);
    let damaged = check(&spec, &[&written("brotli.parquet")]);
    damaged.expect_status(3).expect_stderr(&["brotli.parquet: at byte", "row group 1 of 3"]);
}

#[test]
fn tables_with_a_value_in_each_row_give_the_verdicts_of_lines() {
    let folder = Folder::new();
    let spec = folder.file("drive.rondel", SPECIFICATION);
    let expected = check(&spec, &[&folder.file("lines.jsonl", lines())]);
    for (header, is_first) in [("time,topic,field,value", true), ("value,Signal,topic,timestamp", false)] {
        let mut text = format!("{header}\n");
        let mut row = |millis, topic: &str, field: &str, value: String| {
            let mut cells = [seconds(millis), topic.to_owned(), field.to_owned(), value];
            if !is_first {
                cells.reverse();
            }
            text += &(cells.join(",") + "\n");
        };
        for (millis, gear, speed) in messages() {
            if let Some((report, manual, note)) = gear {
                row(millis, "gear", "report", report.to_string());
                row(millis, "gear", "manual", manual.to_string());
                row(millis, "gear", "note", note.to_string());
            } else {
                row(millis, "/odom", "twist.linear.x", speed.unwrap().to_string());
            }
        }
        let checked = check(&spec, &[&folder.file("long.csv", text)]);
        assert_eq!(checked.stdout, expected.stdout, "{header}: {}", checked.stderr);
    }
    // Without a topic; one time twice is two messages where a field comes again.
    let spec = folder.file("speed.rondel", "topic odom { x: float, y: float }\nproperty slow = odom.x < 8\n");
    let text = "time,signal,value\n0,x,1\n0,y,2\n0,x,9\n1,y,2\n";
    let lines = "{\"x\":1,\"y\":2}\n{\"x\":9}\n{\"time\":1,\"y\":2}\n";
    let expected = check(&spec, &[&folder.file("a.jsonl", lines)]);
    let checked = check(&spec, &[&folder.file("long.csv", text)]);
    assert_eq!(checked.stdout, expected.stdout, "{}", checked.stderr);
    // Damage costs no message before it.
    for (end, line, reason) in [
        ("2,x\n3,x,1\n", 6, "the row has 2 cells, and the header 3"),
        ("2,,5\n", 6, "the row names no field"),
        ("2,x,\"open\n", 6, "the quotation mark before \"open\" is not closed"),
    ] {
        let table = folder.file("wrong.csv", format!("{text}{end}"));
        check(&spec, &[&table]).expect_status(3).expect_stderr(&[&format!("wrong.csv:{line}: {reason}")]);
        let skipped = rondel(["check", "--on-error", "skip", "--summary", "json", &spec, &table]);
        let events = if end.contains("3,x") { 4 } else { 3 };
        skipped.expect_stderr(&["\"skipped\":1", &format!("\"events\":{events}")]);
    }
}

#[test]
fn blanks_around_the_name_of_a_topic_do_not_count() {
    let folder = Folder::new();
    let spec =
        folder.file("a.rondel", "topic a { x: int }\ntopic b { x: int }\nproperty p = a.x + b.x < 5\n");
    let table = folder.file("a.csv", "time,topic,x\n0, a,1\n1,b ,2\n2,a,9\n3,  b,-9\n");
    let said = rondel(["check", &spec, &table, "--emit", "every", "--format", "json", "--quiet"]);
    assert_eq!(letters(&said.stdout), "?TFT", "{}", said.stdout);
    assert!(!said.stderr.contains(" a,"), "{}", said.stderr);
}
