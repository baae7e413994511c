//! Times of lines, and recordings without times or with missing messages.

use super::support::{Emitted, Folder, rondel, rondel_with_input};
use super::{check_v, json};

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
fn a_clock_stepping_back_is_reported_once_and_counted() {
    let times = [3, 2, 2, 1, 5, 4];
    let input: String = times.iter().map(|t| format!("{{\"time\":{t},\"v\":true}}\n")).collect();
    let finished = check_v(&input);
    finished.expect_status(0);
    assert_eq!(finished.stderr.matches("backwards at").count(), 1, "{}", finished.stderr);
    // 3 to 2, 2 to 1, 5 to 4; equal times are none.
    finished.expect_stderr(&["step 1", "backwards 3 times"]);
    // The order of the lines stays the order of the steps.
    let steps: Vec<u64> = Emitted::all(&finished.stdout).iter().map(|v| v.step).collect();
    assert_eq!(steps, [0, 1, 2, 3, 4, 5]);
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
fn a_recording_without_times_satisfies_no_property_that_measures_time() {
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
