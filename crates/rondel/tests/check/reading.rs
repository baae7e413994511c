//! Traces as they are read: files, compression, several traces, and lines that cannot be read.

use std::io::Write as _;

use super::support::{Folder, letters, rondel, rondel_with_input};
use super::{BAD, GOOD, check_v, json};

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
fn damaged_compression_is_reported_and_earlier_lines_are_checked() {
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
fn a_changed_byte_in_a_short_compressed_table_is_found() {
    let folder = Folder::new();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    gz.write_all(b"time,v\n1,1\n2,90\n").unwrap();
    let mut gz = gz.finish().unwrap();
    let at = gz.windows(2).position(|two| two == b"90").unwrap();
    gz[at] = b'1';
    let table = folder.file("changed.csv.gz", gz);
    rondel(["check", "-f", "v < 50", &table]).expect_status(3).expect_stderr(&["damaged"]);
}

#[test]
fn damage_of_compressed_data_is_named_beside_the_line_that_it_makes_wrong() {
    let folder = Folder::new();
    for (name, text, place) in [
        ("changed.jsonl.gz", "{\"v\":1}\n{\"v\":90}\n{\"v\":2}\n", ":2:"),
        ("changed.csv.gz", "time,v\n1,1\n2,90\n3,1\n", ":3: "),
        ("changed.xml.gz", "<a>\n<m><v>1</v></m>\n<m><v>90</v></m>\n<m><v>2</v></m>\n</a>\n", "from byte "),
    ] {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        gz.write_all(text.as_bytes()).unwrap();
        let whole = gz.finish().unwrap();
        let mut changed = whole.clone();
        let at = whole.windows(2).position(|two| two == b"90").unwrap();
        // An unexpected character, a further cell, or the begin of a tag.
        changed[at] = if name.contains("xml") { b'<' } else { b',' };
        let file = folder.file(name, &changed);
        let checked = rondel(["check", "-f", "v < 50", &file]);
        checked.expect_status(3).expect_stderr(&[&file, place, "the compressed data is damaged"]);
        assert_eq!(checked.stderr.matches("damaged").count(), 1, "{}", checked.stderr);
        // A wrong line in sound data is only that.
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        gz.write_all(text.replace("90", if name.contains("xml") { "<0" } else { ",0" }).as_bytes()).unwrap();
        let sound = folder.file(name, gz.finish().unwrap());
        let checked = rondel(["check", "-f", "v < 50", &sound]);
        assert!(checked.status == Some(3) && !checked.stderr.contains("damaged"), "{}", checked.stderr);
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
    // Only `v` is read, but the rest must be JSON, too, also in lines of a known shape.
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
fn values_of_another_type_are_reported_once_and_counted() {
    let finished = check_v("{\"v\":1}\n{\"v\":\"true\"}\n{\"v\":true}\n{\"v\":null}\n{\"w\":5}\n");
    finished.expect_status(4);
    finished.expect_stderr(&["not evaluated: 2 values have another type"]);
    assert_eq!(letters(&finished.stdout), "??T??");
    assert!(!check_v(GOOD).stderr.contains("another type"));
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
