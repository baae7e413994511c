//! `rondel check` on the command line: what it reads, what it prints, how it ends.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use support::process::Process;
use support::{Finished, Folder, RONDEL, finish, letters, rondel, rondel_with_input};

const GOOD: &str = "{\"time\":1,\"v\":true}\n{\"time\":2,\"v\":true}\n";
const BAD: &str = "{\"time\":1,\"v\":true}\n{\"time\":2,\"v\":false}\n";

/// Checks the formula `v` on what comes from standard input.
fn check_v(input: impl AsRef<[u8]>) -> Finished {
    rondel_with_input(["check", "-f", "v", "--emit", "every", "--format", "json", "-"], input.as_ref())
}

/// The lines of JSON of a property `formula`, in seconds.
fn json(rows: &[(&str, u64, &str)]) -> String {
    let line = |(time, step, verdict): &(&str, u64, &str)| {
        format!("{{\"property\":\"formula\",\"time\":{time},\"step\":{step},\"verdict\":\"{verdict}\"}}\n")
    };
    rows.iter().map(line).collect()
}

#[test]
fn exit_statuses() {
    check_v(GOOD).expect_status(0);
    check_v(BAD).expect_status(1);
    check_v("{\"v\":true}\n{\"v\":false}\n{\"v\":true}\n").expect_status(1);
    check_v("{\"w\":true}\n").expect_status(4);
    check_v("").expect_status(4);
    check_v("{\"w\":1}\n{\"v\":true}\n").expect_status(0);
    check_v("{\"v\":true}\n{\n").expect_status(3);
    // "A trace that cannot be read ends with 3, even if a property was violated before."
    check_v("{\"v\":false}\n{\n").expect_status(3);
    rondel(["check", "-f", "v >", "-"]).expect_status(2);

    // One property violated and one never decided: the violation counts. None violated: the other.
    let folder = Folder::new();
    let spec = folder.file("two.rondel", "topic s property p = s.v property q = s.w");
    let check = |input: &str| rondel_with_input(["check", &spec, "-"], input.as_bytes());
    check("{\"v\":false}\n").expect_status(1);
    check("{\"v\":true}\n").expect_status(4);
    check("{\"v\":true,\"w\":true}\n").expect_status(0);
}

#[test]
fn files_standard_input_and_compression() {
    let folder = Folder::new();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all(BAD.as_bytes()).unwrap();
    let members: Vec<u8> = {
        // A gzip file may consist of several members, as `cat a.gz b.gz` makes them.
        let mut one = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        one.write_all(b"{\"time\":1,\"v\":true}\n").unwrap();
        let mut two = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        two.write_all(b"{\"time\":2,\"v\":false}\n").unwrap();
        [one.finish().unwrap(), two.finish().unwrap()].concat()
    };
    let files = [
        folder.file("plain.jsonl", BAD),
        folder.file("no-last-break.jsonl", BAD.trim_end()),
        folder.file("returns.jsonl", BAD.replace('\n', "\r\n")),
        folder.file("blank-lines.jsonl", format!("\n{}\n \n", BAD.replace('\n', "\n\n"))),
        folder.file("packed.jsonl.gz", gz.finish().unwrap()),
        folder.file("members.jsonl.gz", members),
        folder.file("packed.jsonl.zst", zstd::encode_all(BAD.as_bytes(), 3).unwrap()),
    ];
    let expected = json(&[("1", 0, "satisfied"), ("2", 1, "violated")]);
    for file in &files {
        let finished = rondel(["check", "-f", "v", "--emit", "every", "--format", "json", file]);
        finished.expect_status(1).expect_stdout(&expected);
    }
    check_v(BAD).expect_status(1).expect_stdout(&expected);
}

#[test]
fn damaged_compression_is_said_and_keeps_what_came_before() {
    let folder = Folder::new();
    let text = GOOD.repeat(20_000);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    gz.write_all(text.as_bytes()).unwrap();
    let gz = gz.finish().unwrap();
    let cut = folder.file("cut.jsonl.gz", &gz[..gz.len() / 2]);
    let finished = rondel(["check", "-f", "v", "--format", "json", &cut]);
    finished.expect_status(3).expect_stderr(&["cut.jsonl.gz"]);
    finished.expect_stdout(&json(&[("1", 0, "satisfied")]));
    for name in ["no.jsonl.gz", "no.jsonl.zst"] {
        let plain = folder.file(name, GOOD);
        rondel(["check", "-f", "v", &plain]).expect_status(3).expect_stderr(&[name]);
    }
}

#[test]
fn several_traces_are_checked_each_from_its_beginning() {
    let folder = Folder::new();
    let (a, b) = (folder.file("a.jsonl", "{\"v\":true}\n{}\n"), folder.file("b.jsonl", "{\"w\":1}\n"));
    let run = |files: &[&str]| {
        let mut arguments = vec!["check", "-f", "once v", "--emit", "every", "--format", "json"];
        arguments.extend(files);
        rondel(arguments)
    };
    // Nothing is kept from one trace to the next: neither values, nor steps, nor what held once.
    let finished = run(&[&a, &b, &a]);
    let line = |file: &str, step: u64, verdict: &str| {
        let file = serde_json::to_string(file).unwrap();
        format!(
            "{{\"trace\":{file},\"property\":\"formula\",\"time\":0,\"step\":{step},\"verdict\":\"{verdict}\"}}\n"
        )
    };
    let twice = line(&a, 0, "satisfied") + &line(&a, 1, "satisfied");
    // That one of them ended inconclusive is not forgotten over the others.
    finished.expect_status(4).expect_stdout(&(twice.clone() + &line(&b, 0, "inconclusive") + &twice));

    // One that cannot be read does not keep the others from being checked.
    let missing = folder.path("missing.jsonl");
    let broken = folder.file("broken.jsonl", "{\"v\":true}\nx\n");
    let finished = run(&[&missing, &broken, &b]);
    finished.expect_status(3).expect_stderr(&["missing.jsonl", "broken.jsonl:2:1: "]);
    finished.expect_stdout(&(line(&broken, 0, "satisfied") + &line(&b, 0, "inconclusive")));
}

#[test]
fn emit_says_which_verdicts_are_printed() {
    let input: String = ["true", "true", "false", "false", "null", "false", "true"]
        .iter()
        .map(|v| format!("{{\"v\":{v}}}\n"))
        .collect();
    for (emit, expected, steps) in [
        ("every", "TTFF?FT", vec![0, 1, 2, 3, 4, 5, 6]),
        ("change", "TF?FT", vec![0, 2, 4, 5, 6]),
        ("violations", "FF", vec![2, 5]),
    ] {
        let finished = rondel_with_input(
            ["check", "-f", "v", "--emit", emit, "--format", "json", "-"],
            input.as_bytes(),
        );
        finished.expect_status(1);
        assert_eq!(letters(&finished.stdout), expected, "{emit}");
        assert_eq!(finished.verdicts().iter().map(|v| v.step).collect::<Vec<_>>(), steps, "{emit}");
    }
    let by_default = rondel_with_input(["check", "-f", "v", "--format", "json", "-"], input.as_bytes());
    assert_eq!(letters(&by_default.stdout), "TF?FT");
}

#[test]
fn emit_over_long_traces() {
    // Longer than any block that events may be worked on in; the only changes are far apart.
    let value = |step: u64| !(1000..=2500).contains(&step);
    let input: String = (0..4000).map(|step| format!("{{\"v\":{}}}\n", value(step))).collect();
    let finished = rondel_with_input(["check", "-f", "v", "--format", "json", "-"], input.as_bytes());
    assert_eq!(finished.verdicts().iter().map(|v| v.step).collect::<Vec<_>>(), [0, 1000, 2501]);
    let finished = check_v(&input);
    let all: String = (0..4000).map(|step| if value(step) { 'T' } else { 'F' }).collect();
    assert_eq!(letters(&finished.stdout), all);
}

#[test]
fn text_is_for_people_and_json_for_programs() {
    let text = rondel_with_input(["check", "-f", "v", "-"], BAD.as_bytes());
    text.expect_status(1);
    let lines: Vec<&str> = text.stdout.lines().collect();
    for (line, verdict, step, time) in
        [(lines[0], "satisfied", "0", "1 s"), (lines[1], "violated", "1", "2 s")]
    {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[..2], [verdict, "formula"], "{line}");
        assert!(line.contains(&format!(" {step} ")) && line.ends_with(time), "{line}");
    }
    assert!(!text.stdout.contains('\x1b'), "colours belong on a terminal only: {:?}", text.stdout);
    assert!((text.stdout.clone() + &text.stderr).contains("2 events checked"), "a closing summary");

    let json_format = rondel_with_input(["check", "-f", "v", "--format", "json", "-"], BAD.as_bytes());
    assert_eq!(json_format.verdicts().len(), 2, "nothing but verdicts on standard output");
    json_format.expect_stderr(&["2 events checked"]);

    let quiet = rondel_with_input(["check", "-q", "-f", "v", "--format", "json", "-"], BAD.as_bytes());
    assert_eq!(quiet.stderr, "");
    assert_eq!(quiet.stdout, json_format.stdout);
}

#[test]
fn times_are_kept_exactly() {
    for (unit, time, expected) in [
        ("s", "1234567890.123456789", "1234567890.123456789"),
        ("s", "0.1", "0.1"),
        ("s", "0.100000000", "0.1"),
        ("s", "1e-9", "0.000000001"),
        ("s", "2.50e1", "25"),
        ("s", "9007199254.740993", "9007199254.740993"),
        ("s", "-1.5", "-1.5"),
        ("s", "-0.000000001", "-0.000000001"),
        ("s", "-0", "0"),
        ("s", "9223372036", "9223372036"),
        ("s", "0.1234567899", "0.123456789"),
        ("ms", "1500.25", "1.50025"),
        ("ms", "1e3", "1"),
        ("us", "1", "0.000001"),
        ("us", "1700000000123456.789", "1700000000.123456789"),
        ("ns", "1", "0.000000001"),
        ("ns", "1700000000123456789", "1700000000.123456789"),
        ("ns", "9223372036854775807", "9223372036.854775807"),
    ] {
        // The second line has the form of the first, and may be read in another way.
        let input = format!("{{\"time\":{time},\"v\":true}}\n").repeat(2);
        let finished = rondel_with_input(
            ["check", "-f", "v", "--emit", "every", "--format", "json", "--time-unit", unit, "-"],
            input.as_bytes(),
        );
        finished
            .expect_status(0)
            .expect_stdout(&json(&[(expected, 0, "satisfied"), (expected, 1, "satisfied")]));
    }
}

#[test]
fn a_line_without_time_has_that_of_the_line_before() {
    let finished =
        check_v("{\"v\":true}\n{\"v\":true,\"time\":2.5}\n{\"v\":true}\n{\"time\":3,\"v\":true}\n");
    let rows = [("0", 0), ("2.5", 1), ("2.5", 2), ("3", 3)];
    finished.expect_stdout(&json(&rows.map(|(time, step)| (time, step, "satisfied"))));
}

#[test]
fn a_clock_that_goes_backwards_is_said_once_and_counted() {
    let times = [3, 2, 2, 1, 5, 4];
    let input: String = times.iter().map(|t| format!("{{\"time\":{t},\"v\":true}}\n")).collect();
    let finished = check_v(&input);
    finished.expect_status(0);
    assert_eq!(finished.stderr.matches("backwards at").count(), 1, "{}", finished.stderr);
    // 3 to 2, 2 to 1, 5 to 4; equal times are none.
    finished.expect_stderr(&["step 1", "backwards 3 times"]);
    // The order of the lines stays the order of the steps.
    let steps: Vec<u64> = finished.verdicts().iter().map(|v| v.step).collect();
    assert_eq!(steps, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn malformed_lines_are_shown_with_their_place() {
    let deep = format!("{{\"x\":{}{},\"v\":true}}", "[".repeat(200), "]".repeat(200));
    for (line, column, what) in [
        (&b"hello"[..], 1, "object"),
        (b"5", 1, "object"),
        (b"\"v\"", 1, "object"),
        (b"{\"v\":true", 10, "ends inside"),
        (b"{\"v\":tru}", 6, "true"),
        (b"{\"v\":\"tr", 9, "ends inside"),
        (b"{\"v\":NaN}", 6, "NaN"),
        (b"{\"v\":-Infinity}", 6, "infinity"),
        (b"{\"v\":01}", 6, "number"),
        (b"{\"v\":1.}", 6, "number"),
        (b"{\"v\":true,}", 11, "key"),
        (b"{v:true}", 2, "key"),
        (b"{'v':true}", 2, "key"),
        (b"{\"v\":\"\xff\"}", 7, "UTF-8"),
        (b"{\"\xc3\x28\":1}", 3, "UTF-8"),
        (b"{\"v\":true} {\"v\":true}", 12, "after the value"),
        (b"{\"v\":true}]", 11, "after the value"),
        (b"{\"v\":\"a\tb\"}", 8, "control character"),
        (b"{\"v\":\"\\x\"}", 7, "escape"),
        (b"{\"v\":\"\\ud800\"}", 7, "escape"),
        (b"{\"time\":\"soon\",\"v\":true}", 9, "time"),
        (b"{\"time\":[1],\"v\":true}", 9, "time"),
        (b"{\"time\":1e300,\"v\":true}", 9, "time"),
        (b"{\"topic\":3,\"v\":true}", 10, "topic"),
        (b"{\"w\":1 \"v\":true}", 8, ""),
        (b"{\"v\" true}", 6, ""),
        (deep.as_bytes(), 0, "deep"),
    ] {
        let shown = String::from_utf8_lossy(line).into_owned();
        let input = [b"{\"v\":true}\n{\"v\":false}\n", line, b"\n{\"v\":true}\n"].concat();
        let finished = check_v(&input);
        assert_eq!(finished.status, Some(3), "{shown}\n{}", finished.stderr);
        // The verdicts before it are kept.
        assert_eq!(letters(&finished.stdout), "TF", "{shown}");
        let errors: Vec<&str> = finished.stderr.lines().filter(|l| l.starts_with("error")).collect();
        assert_eq!(errors.len(), 1, "{shown}\n{}", finished.stderr);
        let place = if column == 0 { "-:3:".to_owned() } else { format!("-:3:{column}: ") };
        assert!(
            errors[0].contains(&place) && errors[0].contains(what),
            "{shown}\n{place}… {what}…\n{}",
            errors[0]
        );
    }
}

#[test]
fn malformed_parts_that_nothing_reads_are_errors_too() {
    // What is read is v alone; the rest must be JSON all the same, also where lines look alike.
    for bad in [
        "{\"w\":nul,\"v\":true}",
        "{\"w\":1x,\"v\":true}",
        "{\"w\":\"\\q\",\"v\":true}",
        "{\"w\":-,\"v\":true}",
    ] {
        for good in ["{\"w\":null,\"v\":true}", "{\"w\":1,\"v\":true}", "{\"w\":\"q\",\"v\":true}"] {
            let finished = check_v(format!("{good}\n{good}\n{good}\n{bad}\n"));
            finished.expect_status(3).expect_stderr(&["error: -:4:"]);
            assert_eq!(letters(&finished.stdout), "TTT");
        }
    }
}

#[test]
fn a_line_without_topic_where_there_are_several() {
    let folder = Folder::new();
    let spec = folder.file("two.rondel", "topic a topic b property p = a.v or b.v");
    let input = b"{\"topic\":\"a\",\"v\":true}\n{\"v\":true}\n";
    let finished = rondel_with_input(["check", "--format", "json", &spec, "-"], input);
    finished.expect_status(3).expect_stderr(&["-:2:", "topic"]);
    assert_eq!(letters(&finished.stdout), "T");
}

#[test]
fn to_a_single_formula_all_lines_belong() {
    let finished = check_v("{\"topic\":\"a\",\"v\":true}\n{\"topic\":\"b\",\"v\":false}\n{\"v\":true}\n");
    assert_eq!(letters(&finished.stdout), "TFT");
}

#[test]
fn very_long_lines() {
    let filler = "a".repeat(10_000_000);
    let finished = check_v(format!(
        "{{\"x\":\"{filler}\",\"v\":true}}\n{{\"v\":false,\"x\":\"{filler}\"}}\n{{\"v\":true}}\n"
    ));
    finished.expect_status(1);
    assert_eq!(letters(&finished.stdout), "TFT");
    let finished = check_v(format!("{{\"v\":true}}\n{{\"v\":true,\"x\":\"{filler}"));
    finished.expect_status(3).expect_stderr(&["-:2:"]);
    assert!(finished.stderr.len() < 2000, "the line itself is not shown");
}

#[test]
fn nesting_up_to_the_limit_is_read() {
    let nested =
        |levels: usize| format!("{{\"x\":{}{},\"v\":true}}\n", "[".repeat(levels), "]".repeat(levels));
    // "at most 128 levels", of which the message itself is one.
    check_v(nested(127)).expect_status(0);
    check_v(nested(128)).expect_status(3);
    check_v(nested(100_000)).expect_status(3);
}

#[test]
fn traces_that_cannot_be_opened() {
    let folder = Folder::new();
    let missing = folder.path("missing.jsonl");
    let finished = rondel(["check", "-f", "v", &missing]);
    finished.expect_status(3).expect_stderr(&["missing.jsonl", "No such file"]);
    let directory = folder.path("");
    rondel(["check", "-f", "v", &directory])
        .expect_status(3)
        .expect_stderr(&["this folder has no recording"]);
    let empty = folder.file("empty.jsonl", "");
    let finished = rondel(["check", "-f", "v", &empty]);
    finished.expect_status(4);
    assert!(finished.stdout.contains("0 events checked"), "{}", finished.stdout);
}

#[test]
fn values_of_another_type_are_said_once_and_counted() {
    let finished = check_v("{\"v\":1}\n{\"v\":\"true\"}\n{\"v\":true}\n{\"v\":null}\n{\"w\":5}\n");
    finished.expect_status(4);
    finished.expect_stderr(&["not evaluated: 2 values have another type"]);
    assert_eq!(letters(&finished.stdout), "??T??");
    assert!(!check_v(GOOD).stderr.contains("another type"));
}

#[test]
fn a_full_disk_is_said() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for format in ["text", "json"] {
        let mut child = Command::new(RONDEL)
            .args(["check", "-f", "v", "--emit", "every", "--format", format, "-"])
            .stdin(Stdio::piped())
            .stdout(full())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(BAD.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        assert_eq!(stderr.matches("No space left").count(), 1, "{stderr}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new();
    let trace = folder.file("long.jsonl", GOOD.repeat(200_000));
    let mut child = Command::new(RONDEL)
        .args(["check", "-f", "v", "--emit", "every", &trace])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.starts_with("satisfied"), "{line}");
    drop(stdout);
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    child.wait().unwrap();
    for word in ["error", "panic", "ipe"] {
        assert!(!stderr.contains(word), "{stderr}");
    }
}

#[test]
fn verdicts_come_while_the_pipe_is_open() {
    let mut check = Process::rondel(["check", "-f", "v", "--format", "json", "-"]);
    check.write(b"{\"v\":true}\n");
    assert!(check.wait_stdout("verdict").contains("\"satisfied\""));
    check.write(b"{\"v\":true}\n{\"v\":false}\n");
    assert!(check.wait_stdout("verdict").contains("\"step\":2,\"verdict\":\"violated\""));
    check.finish().expect_status(1);
}

#[test]
fn formulas_that_cannot_be_used_are_explained() {
    let folder = Folder::new();
    let spec = folder.file(
        "wrong.rondel",
        "topic gear { report: int }\n\
         property a = gear.reprot == 2\n\
         property b = geer.report == 2\n\
         property c = gear.report == \"drive\"\n\
         property d = gear.report ==\n",
    );
    let finished = rondel(["check", &spec, "-"]);
    // Every mistake at once, each with its code, its place and a caret under the words.
    finished.expect_status(2).expect_stdout("").expect_stderr(&[
        "error[E0301]: unknown field 'reprot' in topic 'gear'; did you mean 'report'?",
        "wrong.rondel:2:19",
        "  |                   ^^^^^^\n",
        "error[E0202]",
        "did you mean 'gear'?",
        "wrong.rondel:3:14",
        "error[E0303]",
        "wrong.rondel:4:",
        "error[E0102]",
        "found end of input",
    ]);
    for (formula, syntax, code) in [
        ("v >", "rondel", "E0102"),
        ("v > 3 and \"x\"", "rondel", "E0303"),
        ("eventually v", "rondel", "E0111"),
        ("{v > }", "rye", "E0102"),
        ("{a} -> {b} -> {c}", "rye", "E0107"),
        ("once[1,2]{a}", "rye", "E0108"),
        ("{a: *x}", "rye", "E0210"),
    ] {
        let finished = rondel(["check", "--syntax", syntax, "--formula", formula, "-"]);
        finished.expect_status(2).expect_stdout("").expect_stderr(&[code, "formula:1:", "^"]);
    }
}

#[test]
fn warnings_do_not_keep_from_checking() {
    let finished = rondel_with_input(["check", "-f", "once[5,3] v", "--format", "json", "-"], BAD.as_bytes());
    finished.expect_status(1).expect_stderr(&["warning[W0401]"]);
    assert_eq!(letters(&finished.stdout), "F");
}

#[test]
fn wrong_usage() {
    let folder = Folder::new();
    let spec = folder.file("good.rondel", "topic s property p = s.v");
    let missing = folder.path("missing.rondel");
    for (arguments, parts) in [
        (vec!["check"], &["rondel check --help"][..1]),
        (vec!["check", "-f", "v"], &["no recording"]),
        (vec!["check", &spec], &["no recording"]),
        (vec!["check", &missing, "-"], &["missing.rondel", "No such file"]),
        (vec!["check", "-f", "v", "--emti", "every", "-"], &["--emti", "--emit"]),
        (vec!["check", "-f", "v", "--emit", "evry", "-"], &["evry", "every"]),
        (vec!["check", "-f", "v", "--format", "xml", "-"], &["xml", "json"]),
        (vec!["check", "-f", "v", "--syntax", "reelay", "-"], &["reelay", "rye"]),
        (vec!["check", "-f", "v", "--time", "sparse", "-"], &["sparse", "dense"]),
        (vec!["check", "-f", "v", "--time-unit", "h", "-"], &["ms"]),
        (vec!["chek"], &["chek", "check"]),
        (vec![], &["Usage"]),
    ] {
        let finished = rondel(&arguments);
        assert_eq!(finished.status, Some(2), "{arguments:?}\n{}", finished.stderr);
        assert_eq!(finished.stdout, "", "{arguments:?}");
        if arguments != ["check"] {
            finished.expect_stderr(parts);
        }
        assert!(!finished.stderr.is_empty());
    }
    rondel(["--help"]).expect_status(0);
    rondel(["check", "--help"]).expect_status(0);
    rondel(["--version"]).expect_status(0);
}

#[test]
fn a_specification_and_a_formula_mean_the_same() {
    let folder = Folder::new();
    let spec = folder.file("one.rondel", "topic trace property formula = once[0,1] trace.v");
    let rye = folder.file("one.rye", "once[0:1]{v: true}\n");
    let trace = folder.file("t.jsonl", "{\"v\":true}\n{\"v\":false}\n{\"v\":false}\n");
    let options = ["--emit", "every", "--format", "json"];
    let by_file = rondel([&["check", &spec, &trace][..], &options].concat());
    let by_formula = rondel([&["check", "--formula", "once[0,1] v", &trace][..], &options].concat());
    let by_rye =
        rondel([&["check", "--syntax", "rye", "-f", "once[0:1]{v: true}", &trace][..], &options].concat());
    let by_rye_file = rondel([&["check", &rye, &trace][..], &options].concat());
    assert_eq!(letters(&by_file.stdout), "TTF");
    for other in [&by_formula, &by_rye] {
        assert_eq!(other.stdout, by_file.stdout);
        assert_eq!(other.status, Some(1));
    }
    assert_eq!(letters(&by_rye_file.stdout), "TTF");
}

#[test]
fn a_specification_that_is_not_text() {
    let folder = Folder::new();
    let binary = folder.file("binary.rondel", b"topic \xff\xfe\x00");
    rondel(["check", &binary, "-"]).expect_status(2).expect_stderr(&["binary.rondel"]);
    let directory = folder.path("");
    rondel(["check", &directory, "-"]).expect_status(2);
    let empty = folder.file("empty.rondel", "");
    rondel_with_input(["check", &empty, "-"], b"").expect_stderr(&["W0407"]);
}

#[test]
fn the_order_of_properties_is_that_of_their_declarations() {
    let folder = Folder::new();
    let spec = folder.file("three.rondel", "topic s property z = s.v property a = not s.v property m = s.v");
    let finished =
        rondel_with_input(["check", "--emit", "every", "--format", "json", &spec, "-"], BAD.as_bytes());
    let names: Vec<String> = finished.verdicts().into_iter().map(|v| v.property).collect();
    assert_eq!(names, ["z", "a", "m", "z", "a", "m"]);
}

#[test]
fn the_same_trace_gives_the_same_bytes() {
    let folder = Folder::new();
    let input: String = (0..5000_u64)
        .map(|i| {
            format!(
                "{{\"time\":{}.{:03},\"v\":{}}}\n",
                i / 10,
                i % 1000,
                i.wrapping_mul(2_654_435_761) % 3 == 0
            )
        })
        .collect();
    let file = folder.file("long.jsonl", &input);
    let arguments = ["check", "-f", "once[3,7] v", "--emit", "every", "--format", "json"];
    let from_file = rondel([&arguments[..], &[&file]].concat());
    let from_pipe = rondel_with_input([&arguments[..], &["-"]].concat(), input.as_bytes());
    let packed = folder.file("long.jsonl.zst", zstd::encode_all(input.as_bytes(), 1).unwrap());
    let from_packed = rondel([&arguments[..], &[&packed]].concat());
    assert_eq!(from_file.stdout.lines().count(), 5000);
    assert_eq!(from_file.stdout, from_pipe.stdout);
    assert_eq!(from_file.stdout, from_packed.stdout);
    // And a file read in pieces of another process's choosing.
    let mut cat = Command::new("sh");
    cat.args(["-c", "dd bs=7 2>/dev/null | \"$0\" \"$@\"", RONDEL]).args(arguments).arg("-");
    assert_eq!(finish(&mut cat, input.as_bytes()).stdout, from_file.stdout);
}

#[test]
fn a_topic_that_falls_silent_is_noticed_in_every_order() {
    let folder = Folder::new();
    let text = "topic a { v: int } topic b { v: int } property fresh = age(a) <= 500 ms";
    let specification = folder.file("fresh.rondel", text);
    let line = |topic: &str, time: i32| {
        format!("{{\"topic\":\"{topic}\",\"time\":{time},\"data\":{{\"t\":{time},\"v\":1}}}}\n")
    };
    let recording = [line("a", 4), line("a", 5), line("b", 6), line("b", 8)].concat();
    for order in [&["check", "-q"][..], &["check", "-q", "--time-field", "t"]] {
        let finished = rondel_with_input([order, &[&specification, "-"]].concat(), recording.as_bytes());
        finished.expect_status(1);
        assert!(finished.stdout.contains("violated      fresh") && finished.stdout.contains("time 4.5 s"));
    }
}

#[test]
fn a_recording_without_times_does_not_satisfy_what_measures_time() {
    let folder = Folder::new();
    let text = "topic a { v: int } property fresh = age(a) <= 500 ms";
    let specification = folder.file("fresh.rondel", text);
    let check = |input: &str| rondel_with_input(["check", &specification, "-"], input.as_bytes());
    check("{\"v\":1}\n{\"v\":2}\n")
        .expect_status(4)
        .expect_stderr(&["every message on a (2) came without a time"]);
    check("{\"time\":1,\"v\":1}\n{\"v\":2}\n").expect_status(0).expect_stderr(&["some messages on a (1)"]);
    // Steps need no times.
    rondel_with_input(["check", "-f", "v > 0", "-"], b"{\"v\":1}\n").expect_status(0).expect_stderr(&[]);
}

#[test]
fn what_was_not_read_is_in_the_summary() {
    let folder = Folder::new();
    let good = folder.file("good.jsonl", "{\"v\":true}\n");
    let missing = folder.path("missing.jsonl");
    let both = rondel(["check", "--summary", "json", "-f", "v", &good, &missing]);
    let summary: serde_json::Value = serde_json::from_str(both.stderr.lines().last().unwrap()).unwrap();
    assert_eq!(summary["unread"], serde_json::json!([missing]));
    both.expect_status(3);
    let text = rondel(["check", "-f", "v", &good, &missing]);
    assert!(text.expect_status(3).stdout.contains("NOT read to the end: "), "{}", text.stdout);
    rondel_with_input(["check", "-f", "v", "-"], b"\n").expect_status(4).expect_stderr(&["has no message"]);
    let deployment = folder.file("d.yaml", "formula: v\ntopics: { trace: zenoh:a }\n");
    rondel(["check", "--time-unit", "ms", &deployment, &good])
        .expect_status(2)
        .expect_stderr(&["--time-unit"]);
    rondel(["check", "-f", "v", &deployment, &good]).expect_status(2).expect_stderr(&["--formula"]);
}

#[test]
fn a_snapshot_replaces_files_only() {
    let folder = Folder::new();
    let file = folder.file("real", "");
    let link = folder.path("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let check =
        |to: &str| rondel_with_input(["check", "-q", "-f", "v", "--snapshot-to", to, "-"], b"{\"v\":true}\n");
    check(&link).expect_status(0);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(std::fs::metadata(&file).unwrap().len() > 0);
    check(&folder.path("")).expect_status(3).expect_stderr(&["it is not a regular file"]);
}

#[test]
fn broken_lines_and_a_cut_end_can_be_skipped_and_are_counted() {
    let folder = Folder::new();
    let broken =
        "{\"time\":1,\"v\":true}\n{\"time\":2,\"v\":NaN}\n[\n{\"time\":3,\"v\":true}\n{\"time\":4,\"v";
    let arguments = ["check", "-f", "v", "--on-error", "skip", "-"];
    let finished = rondel_with_input(arguments, broken.as_bytes());
    let text = format!("{}{}", finished.stdout, finished.stderr);
    assert!(text.contains("3 parts of the recording were skipped; the first: line 2, column 15:"), "{text}");
    assert!(
        text.contains("2 events checked against 1 property") && text.contains("; 3 lines skipped"),
        "{text}"
    );
    finished.expect_status(4);
    // A violation behind a broken line is found.
    let arguments = ["check", "-f", "v", "--on-error", "skip", "--summary", "json", "-"];
    let finished = rondel_with_input(arguments, b"{\n{\"v\":false}\n");
    assert!(finished.stderr.contains("\"skipped\":1"), "{}", finished.stderr);
    finished.expect_status(1);
    // The lines up to the cut of a compressed recording count; without the option the status is 3.
    let mut lines = String::new();
    let mut state = 1_u64;
    for time in 0..5000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        lines += &format!("{{\"time\":{time},\"v\":true,\"x\":{state}}}\n");
    }
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(lines.as_bytes()).unwrap();
    let zst = zstd::encode_all(lines.as_bytes(), 1).unwrap();
    for (name, bytes) in [("cut.gz", gz.finish().unwrap()), ("cut.zst", zst)] {
        let cut = folder.file(name, &bytes[..bytes.len() * 2 / 3]);
        rondel(["check", "-f", "v", cut.as_str()]).expect_status(3);
        let finished = rondel(["check", "-f", "v", "--on-error", "skip", cut.as_str()]);
        assert!(finished.stdout.contains(&format!("cut: {cut}")), "{}{}", finished.stdout, finished.stderr);
        finished.expect_status(4);
    }
}

#[test]
fn quiet_names_recordings_and_what_makes_the_status() {
    let folder = Folder::new();
    let specification = folder.file("p.rondel", "topic m { v: int }\nproperty p = m.v > 0\n");
    let line = |topic: &str, v: &str| format!("{{\"topic\":\"{topic}\",\"v\":{v}}}\n");
    let (good, bad) = (folder.file("good.jsonl", line("m", "1")), folder.file("bad.jsonl", line("m", "0")));
    let other = folder.file("other.jsonl", line("n", "1"));
    let quiet = ["check", "-q", "-e", "violations", &specification];
    let found = rondel([&quiet[..], &[&good, &bad]].concat());
    found.expect_status(1);
    assert!(found.stdout.starts_with(&format!("{bad}\nviolated ")), "{}", found.stdout);
    let found = rondel([&quiet[..], &[&good, &other]].concat());
    found.expect_status(4).expect_stderr(&["other.jsonl: no line is on a topic of the specification"]);
    assert_eq!(found.stdout, "");
    let empty = folder.file("empty.jsonl", "");
    rondel([&quiet[..], &[&good, &empty]].concat())
        .expect_status(4)
        .expect_stderr(&["empty.jsonl: the recording has no message"]);
    let unknown = folder.file("unknown.jsonl", line("m", "1") + &line("m", "null"));
    rondel([&quiet[..], &[&unknown]].concat())
        .expect_status(4)
        .expect_stderr(&["warning: p: inconclusive at the end"]);
}

/// The only violation may be among the messages that are missing.
#[test]
fn a_recording_with_missing_messages_is_not_green() {
    let folder = Folder::new();
    let specification = folder.file("a.rondel", "topic a { x: int } property low = a.x < 5");
    let line = |number: u32| {
        format!(
            "{{\"topic\":\"a\",\"time\":{number},\"arrival\":{number},\
             \"origin\":{{\"publisher\":1,\"number\":{number}}},\"data\":{{\"x\":1}}}}\n"
        )
    };
    for (missing, status) in [(99, 0), (5, 4)] {
        let lines: String = (0..10).filter(|number| *number != missing).map(line).collect();
        let trace = folder.file("a.jsonl", lines);
        let checked = rondel(["check", &specification, &trace, "--report", "tap"]);
        assert_eq!(
            checked.expect_status(status).stdout.contains("not ok"),
            status != 0,
            "{}",
            checked.stdout
        );
        let text = rondel(["check", &specification, &trace]).stdout;
        assert_eq!(text.contains("; 1 message lost"), status != 0, "{text}");
        let json = rondel(["check", &specification, &trace, "--summary", "json"]);
        let lost = if status == 0 { "\"lost\":0" } else { "\"lost\":1" };
        json.expect_stderr(&[lost]);
        // Also in the second of two recordings.
        let whole = folder.file("whole.jsonl", (0..10).map(line).collect::<String>());
        let both = rondel(["check", &specification, &whole, &trace, "--summary", "json"]);
        both.expect_status(status).expect_stderr(&[lost]);
    }
}

#[test]
fn strict_also_counts_instances_that_were_inconclusive_in_between() {
    let folder = Folder::new();
    let line = |time: u32, id: u32, x: &str| format!("{{\"time\":{time},\"id\":{id},\"x\":{x}}}\n");
    let undecided_first: String =
        [line(1, 1, "null"), line(2, 1, "3"), line(3, 2, "3"), line(4, 1, "4")].concat();
    let in_between = format!("{undecided_first}{}{}", line(5, 2, "null"), line(6, 2, "5"));
    let first = folder.file("first.jsonl", &undecided_first);
    let between = folder.file("between.jsonl", &in_between);
    for time in ["steps", "points", "dense"] {
        let text = format!(
            "topic t {{ id: int, x: int }}\n@time({time}) property p for each id in t.id = t.x > 1\n"
        );
        let spec = folder.file(&format!("{time}.rondel"), text);
        rondel(["check", &spec, &between]).expect_status(0);
        rondel(["check", "--strict", &spec, &first]).expect_status(0);
        rondel(["check", "--strict", &spec, &between]).expect_status(4);
    }
}
