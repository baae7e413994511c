//! Verdicts, summaries and the exit status.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use super::support::{Emitted, Folder, RONDEL, finish, letters, rondel, rondel_with_input, start_rondel};
use super::{BAD, GOOD, check_v};

#[test]
fn exit_status_shows_the_verdicts() {
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
fn emit_selects_the_printed_verdicts() {
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
        assert_eq!(
            Emitted::all(&finished.stdout).iter().map(|v| v.step).collect::<Vec<_>>(),
            steps,
            "{emit}"
        );
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
    assert_eq!(Emitted::all(&finished.stdout).iter().map(|v| v.step).collect::<Vec<_>>(), [0, 1000, 2501]);
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
    assert_eq!(Emitted::all(&json_format.stdout).len(), 2, "nothing but verdicts on standard output");
    json_format.expect_stderr(&["2 events checked"]);

    let quiet = rondel_with_input(["check", "-q", "-f", "v", "--format", "json", "-"], BAD.as_bytes());
    assert_eq!(quiet.stderr, "");
    assert_eq!(quiet.stdout, json_format.stdout);
}

/// In texts of messages and of the specification.
#[test]
fn characters_that_a_terminal_obeys_are_escaped() {
    let folder = Folder::new();
    let text =
        "topic s { id: string, v: bool }\n@requirement(\"R\u{202e}\") property p for each i in s.id = s.v\n";
    let spec = folder.file("p.rondel", text);
    let input = "{\"id\":\"a\u{202e}\\u001b\u{7f}ä\",\"v\":false}\n";
    let check = |options: &[&str]| {
        let arguments = ["check"].iter().chain(options).copied().chain([spec.as_str(), "-"]);
        let finished = rondel_with_input(arguments, input.as_bytes());
        finished.expect_status(1);
        let shown = finished.stdout + &finished.stderr;
        assert!(!shown.contains(|c: char| "\u{202e}\x1b\u{7f}".contains(c)), "{shown:?}");
        shown
    };
    let shown = check(&[]);
    let parameters = r#"["a\u{202e}\u{1b}\u{7f}ä"]"#;
    for part in [format!("p{parameters}"), r"requirement R\u{202e}".into(), format!("first of {parameters}")]
    {
        assert!(shown.contains(&part), "{shown}");
    }
    let shown = check(&["-q", "--format", "json"]);
    for part in [r#""a\u202e\u001b\u007fä""#, r#""R\u202e""#] {
        assert!(shown.contains(part), "{shown}");
    }
}

#[test]
fn a_full_disk_is_reported() {
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
fn version_that_cannot_be_written_is_an_error() {
    for arguments in [&["--version"][..], &["--help"], &["check", "--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = Command::new(RONDEL).args(arguments).stdout(full).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        assert!(stderr.contains("No space left"), "{stderr}");
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
    let mut check = start_rondel(["check", "-f", "v", "--format", "json", "-"]);
    check.write(b"{\"v\":true}\n");
    assert!(check.wait_stdout("verdict").contains("\"satisfied\""));
    check.write(b"{\"v\":true}\n{\"v\":false}\n");
    assert!(check.wait_stdout("verdict").contains("\"step\":2,\"verdict\":\"violated\""));
    check.finish().expect_status(1);
}

#[test]
fn the_order_of_properties_is_that_of_their_declarations() {
    let folder = Folder::new();
    let spec = folder.file("three.rondel", "topic s property z = s.v property a = not s.v property m = s.v");
    let finished =
        rondel_with_input(["check", "--emit", "every", "--format", "json", &spec, "-"], BAD.as_bytes());
    let names: Vec<String> = Emitted::all(&finished.stdout).into_iter().map(|v| v.property).collect();
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
fn unread_recordings_are_in_the_summary() {
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
fn quiet_names_recordings_and_reasons_of_the_status() {
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
