//! `rondel init` on recordings of all kinds: every property that it writes holds in them, by `rondel check` itself.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)] // the helpers are tests as well

use crate::support;

use std::fmt::Write as _;

use support::{Finished, Folder, rondel};

/// Random numbers from a seed.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below a limit.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    /// A number between 0 and 1.
    fn unit(&mut self) -> f64 {
        self.below(1 << 40) as f64 / (1_u64 << 40) as f64
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Names of topics and fields, also those that need quotes or are words of the language.
const TOPICS: [&str; 10] =
    ["/odom", "imu/data", "on", "a b/c-d", "größe", "/fleet/1/state", "topic", "x\\\"y", "0/1", "a//b"];
const FIELDS: [&str; 12] = [
    "x",
    "speed",
    "position",
    "state",
    "error",
    "count",
    "stamp",
    "temperature",
    "percentage",
    "id",
    "a b",
    "on",
];

/// The value of a field of a kind in message `i` at a time, as JSON.
fn value(kind: u64, i: u64, time: f64, random: &mut Random) -> String {
    match kind {
        0 => format!("{:?}", random.unit() + random.unit() - 1.0),
        1 => format!("{:?}", time * 0.3),
        // A counter with a gap.
        2 => (i + 5 * u64::from(i > 50)).to_string(),
        3 => random.one_of(&["\"stopped\"", "\"driving\"", "\"a \\\"b\\\"\"", "\"ü\""]).to_owned(),
        4 => (random.below(2) == 0).to_string(),
        // No number for NaN, as writers of JSON do it.
        5 => random.one_of(&["null", "1.5", "2.5"]).to_owned(),
        // The type changes.
        6 if i > 20 => format!("\"x{i}\""),
        6 => i.to_string(),
        // A stamp that goes back now and then.
        7 => {
            let seconds = time as u64 + 100 - 5 * u64::from(i % 17 == 3);
            format!("{{\"sec\": {seconds}, \"nanosec\": {}}}", (time.fract() * 1e9) as u64)
        }
        8 if random.below(9) == 0 => "[]".to_owned(),
        8 => format!("[{:?}, {:?}]", random.unit(), random.unit()),
        9 => format!("{{\"x\": {:?}, \"odd name\": {}, \"in\": {{\"y\": 1}}}}", random.unit(), i % 3),
        10 => random.one_of(&["1e300", "-1e300", "9223372036854775808"]).to_owned(),
        11 => format!("\"{:.1}\"", random.unit()),
        // A value far from all others.
        12 if i == 37 => "1000000.0".to_owned(),
        12 => format!("{:?}", 5.0 + random.unit()),
        _ => format!("{:?}", time * 1e9),
    }
}

/// JSON lines of some topics: regular or not, with silences, and with messages that cannot be decoded.
fn recording(random: &mut Random) -> String {
    let mut lines: Vec<(f64, String)> = Vec::new();
    for _ in 0..1 + random.below(4) {
        let topic = random.one_of(&TOPICS);
        let fields: Vec<(&str, u64)> =
            (0..random.below(6)).map(|_| (random.one_of(&FIELDS), random.below(14))).collect();
        let count = random.one_of(&[1, 2, 3, 10, 30, 100, 400]);
        let period = random.one_of(&[0.01, 0.1, 1.0, 5.0]);
        let (is_irregular, is_silent) = (random.below(5) == 0, random.below(3) == 0);
        let (lacks_fields, is_damaged) = (random.below(10) == 0, random.below(10) == 0);
        let mut time = random.unit();
        for i in 0..count {
            time +=
                period * if is_irregular { 4.0 * random.unit().powi(4) } else { 1.0 + 0.1 * random.unit() };
            time += if is_silent && i == count / 2 { 40.0 * period } else { 0.0 };
            let mut data = String::new();
            for (index, (name, kind)) in fields.iter().enumerate() {
                let is_twice = fields[..index].iter().any(|(other, _)| other == name);
                let value = value(*kind, i, time, random);
                if !(is_twice || lacks_fields && random.below(5) == 0) {
                    let comma = if data.is_empty() { "" } else { ", " };
                    let _ = write!(data, "{comma}\"{name}\": {value}");
                }
            }
            let data = match is_damaged && i > 0 && random.below(20) == 0 {
                true => "\"\\\\x00\"".to_owned(),
                false => format!("{{{data}}}"),
            };
            let line = format!("{{\"topic\": \"{topic}\", \"time\": {time:.6}, \"data\": {data}}}\n");
            lines.push((time, line));
        }
    }
    lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The file that `init` says to check with: the specification, or the deployment if only that says how messages are read.
fn named(written: &Finished, own: &str) -> String {
    let next = written.stderr.lines().find(|line| line.starts_with("next: ")).expect("a command to go on");
    let deployment = format!("{own}/rondel.yaml");
    if next.contains(&deployment) { deployment } else { format!("{own}/first.rondel") }
}

/// Writes a draft, and expects that it is valid, formatted, and holds in its recordings; if a part of them cannot be read, that
/// nothing is violated in the rest. Returns the specification.
#[track_caller]
fn holds(recordings: &[String], own: &str, case: &str) -> String {
    let files = recordings.iter().map(String::as_str);
    let written = rondel(["init"].into_iter().chain(files.clone()).chain(["--folder", own]));
    assert!(matches!(written.status, Some(0 | 3)), "{case}: {}", written.stderr);
    let is_damaged = written.status == Some(3);
    let text = std::fs::read_to_string(format!("{own}/first.rondel")).unwrap();
    for command in [
        &["validate", &format!("{own}/rondel.yaml")][..],
        &["fmt", "--check", &format!("{own}/first.rondel")],
    ] {
        let done = rondel(command);
        assert_eq!(done.status, Some(0), "{case}: {command:?}: {}\n{text}", done.stderr);
    }
    let file = named(&written, own);
    let checked = rondel(["check", "--on-error", "skip", file.as_str()].into_iter().chain(files));
    let shown = format!("{case}\n{}{}\n{text}", checked.stdout, checked.stderr);
    assert!(!checked.stdout.lines().any(|line| line.starts_with("violated")), "{shown}");
    assert!(checked.status == Some(0) || is_damaged && checked.status == Some(4), "{shown}");
    assert!(is_damaged || !checked.stdout.contains("vacuous:"), "{shown}");
    text
}

#[test]
fn every_property_holds_in_the_recordings_that_it_comes_from() {
    let first = std::env::var("RONDEL_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1_u64);
    for seed in first..first + 40 {
        let (mut random, folder) = (Random::new(seed), Folder::new());
        let count = random.one_of(&[1, 1, 3]);
        let recordings: Vec<String> = (0..count)
            .map(|number| folder.file(&format!("{number}.jsonl"), recording(&mut random)))
            .collect();
        holds(&recordings, &folder.path("own"), &format!("RONDEL_SEED={seed}"));
    }
}

/// Lines of one topic, ten messages per second; `data` gives the members of a message.
fn lines(topic: &str, count: u32, data: impl Fn(u32) -> String) -> String {
    let line = |i| {
        let time = f64::from(i) / 10.0;
        format!("{{\"topic\": \"{topic}\", \"time\": {time}, \"data\": {{{}}}}}\n", data(i))
    };
    (0..count).map(line).collect()
}

/// A rule must hold in each of several recordings, not on the whole or on average.
#[test]
fn rules_hold_in_each_of_several_recordings() {
    let folder = Folder::new();
    let slow =
        lines("/s", 200, |i| format!("\"state\": \"{}\", \"v\": {}", ["a", "b"][i as usize / 5 % 2], i % 7));
    let other =
        lines("/s", 200, |i| format!("\"state\": \"{}\", \"v\": {}", ["b", "c"][i as usize / 5 % 2], i % 9));
    let recordings = [folder.file("a.jsonl", slow), folder.file("b.jsonl", other)];
    let text = holds(&recordings, &folder.path("own"), "two runs");
    assert!(text.contains("Values: \"a\", \"b\", \"c\". 400 messages"), "{text}");
    assert!(text.contains("of 2 recordings"), "{text}");
}

/// A rule that one of the recordings breaks is a comment with the numbers, the recording and the time.
#[test]
fn refuted_rules_are_comments_with_evidence() {
    let folder = Folder::new();
    let healthy = lines("/s", 300, |i| format!("\"n\": {i}"));
    let silent: String = healthy.lines().enumerate().filter(|(i, _)| !(100..140).contains(i)).fold(
        String::new(),
        |mut text, (_, line)| {
            let _ = writeln!(text, "{line}");
            text
        },
    );
    let recordings = [folder.file("a.jsonl", &healthy), folder.file("b.jsonl", silent)];
    let text = holds(&recordings, &folder.path("own"), "a silence in one of two");
    let refuted = format!("// Only suggested. Violated 1 time in {}, first at +", recordings[1]);
    assert!(text.contains(&refuted) && text.contains("\n// property s_fresh = "), "{text}");
    // The bound is that of the rest, so that a healthy recording keeps it.
    let fresh = text.replace("\n// property s_fresh", "\nproperty s_fresh");
    let specification = folder.file("fresh.rondel", fresh);
    rondel(["check", &specification, &recordings[0]]).expect_status(0);
    rondel(["check", &specification, &recordings[1]]).expect_status(1);
}

#[test]
fn stamps_that_go_back_are_named_with_the_first_time() {
    let folder = Folder::new();
    let stamp = |i: u32| {
        let back = if i == 120 || i == 170 { 3 } else { 0 };
        format!("\"stamp\": {{\"sec\": {}, \"nanosec\": {}}}", 1_000 + i / 10 - back, i % 10 * 100_000_000)
    };
    let file = folder.file("a.jsonl", lines("/s", 300, stamp));
    let text = holds(&[file], &folder.path("own"), "stamps");
    assert!(text.contains("A time that went back 2 times. First at +12 s."), "{text}");
    assert!(text.contains("\n// property s_stamp = "), "{text}");
}

/// A whole number in all messages but one, where it is beyond doubles: a check reads that one as infinite.
#[test]
fn whole_numbers_beside_an_infinite_one_are_floats() {
    let folder = Folder::new();
    let value = |i: u32| match i {
        30 => "\"n\": 1e400, \"k\": [1e400, 2]".to_owned(),
        _ => format!("\"n\": {}, \"k\": [{}, 2]", i % 5, i % 3),
    };
    let file = folder.file("a.jsonl", lines("/s", 100, value));
    let text = holds(&[file], &folder.path("own"), "an infinite number");
    assert!(text.contains("k: [float], n: float"), "{text}");
}

/// Evidence: how many values there were, and when the ends of the range came.
#[test]
fn ranges_have_evidence() {
    let folder = Folder::new();
    let file =
        folder.file("a.jsonl", lines("/s", 300, |i| format!("\"level\": {:?}", f64::from(i % 50) / 4.0)));
    let text = holds(&[file], &folder.path("own"), "a range");
    assert!(text.contains("300 values, the least at +0 s, the greatest at +4.9 s."), "{text}");
    assert!(text.contains("A message every 100 ms, at most 100 ms apart (from +"), "{text}");
}

/// Every line that `check` reads is in the draft, and a name that is no address is named as such.
#[test]
fn infinite_numbers_and_odd_names_are_read() {
    let folder = Folder::new();
    let value = |i: u32| match i {
        30 => "\"v\": 1e999, \"--\": {\"x\": 1}".to_owned(),
        _ => format!("\"v\": {}, \"--\": [{}, 2]", i % 7, i % 2),
    };
    for (i, topic) in ["null", "a//b", " a", "\\u202ea"].into_iter().enumerate() {
        let file = folder.file("a.jsonl", lines(topic, 100, value));
        let own = folder.path(&format!("own{i}"));
        rondel(["init", &file, "--folder", &own])
            .expect_status(0)
            .expect_stderr(&["values of several types in `\"--\"` (arrays, objects)"]);
        std::fs::remove_dir_all(&own).unwrap();
        let text = holds(&[file], &own, topic);
        assert!(text.contains(": 100 messages of "), "{text}");
        let deployment = std::fs::read_to_string(format!("{own}/rondel.yaml")).unwrap();
        let is_address = topic == "null" || topic.contains("202e");
        assert_eq!(deployment.contains("is no address of a network"), !is_address, "{deployment}");
    }
    let file = folder.file("a.jsonl", lines("a/${x}", 100, value));
    rondel(["init", &file, "--folder", &folder.path("braces")])
        .expect_status(2)
        .expect_stderr(&["nothing to write about"]);
}

/// Names that differ in slashes alone are topics of their own, and one of them has the address on Zenoh.
#[test]
fn topics_that_differ_in_slashes_have_names_of_their_own() {
    let folder = Folder::new();
    let all = ["/a", "a", "a/"].map(|topic| lines(topic, 100, |i| format!("\"v\": {}", i % 4)));
    let rows: Vec<Vec<&str>> = all.iter().map(|text| text.split_inclusive('\n').collect()).collect();
    let merged: String = (0..100).flat_map(|i| rows.iter().map(move |rows| rows[i])).collect();
    let file = folder.file("a.jsonl", merged);
    let own = folder.path("own");
    let written = rondel(["init", &file, "--folder", &own]);
    written
        .expect_status(0)
        .expect_stderr(&["\"a\" would have the address of \"/a\", zenoh:a: the deployment needs"]);
    std::fs::remove_dir_all(&own).unwrap();
    let text = holds(&[file], &own, "slashes");
    for topic in ["topic a_2 \"/a\"", "topic a {", "topic a_3 \"a/\""] {
        assert!(text.contains(topic), "{topic} in {text}");
    }
    assert_eq!(text.matches("100 messages of ").count(), 3, "{text}");
    let deployment = std::fs::read_to_string(format!("{own}/rondel.yaml")).unwrap();
    assert_eq!(deployment.matches("source: \"zenoh:a\"").count(), 1, "{deployment}");
    assert_eq!(deployment.matches("would have the address of").count(), 2, "{deployment}");
}

#[test]
fn little_and_damaged_input() {
    let folder = Folder::new();
    let empty = folder.file("empty.jsonl", "");
    rondel(["init", &empty, "--folder", &folder.path("empty")])
        .expect_status(2)
        .expect_stderr(&["nothing to write about"]);
    // One message has no rule that a longer run keeps: an assert that it came.
    let one = folder.file("one.jsonl", lines("/s", 1, |_| "\"v\": 1.5".to_owned()));
    let text = holds(&[one], &folder.path("one"), "one message");
    assert!(text.contains("assert s_came = ever on(s)"), "{text}");
    // No topic came in both recordings.
    let all = ["/s", "/t"].map(|topic| {
        let name = format!("{}.jsonl", &topic[1..]);
        folder.file(&name, lines(topic, 1, |_| "\"v\": 1.5".to_owned()))
    });
    let own = folder.path("apart");
    rondel(["init", &all[0], &all[1], "--folder", &own])
        .expect_status(0)
        .expect_stderr(&["left out: s_came: Violated"]);
    let text = std::fs::read_to_string(format!("{own}/first.rondel")).unwrap();
    assert!(text.contains("assert messages_came = ever") && !text.contains("assert s_came"), "{text}");
    rondel(["check", &format!("{own}/first.rondel"), &all[0], &all[1]]).expect_status(0);
    // A recording without messages beside another one refutes nothing.
    let many = folder.file("many.jsonl", lines("/s", 100, |i| format!("\"v\": {}", i % 4)));
    let own = folder.path("beside");
    rondel(["init", &many, &empty, "--folder", &own]).expect_status(0);
    let text = std::fs::read_to_string(format!("{own}/first.rondel")).unwrap();
    assert!(text.contains("\nproperty s_fresh = "), "{text}");
    // A line that is cut off is reported; the rest is checked.
    let whole = std::fs::read_to_string(&many).unwrap();
    let cut = folder.file("cut.jsonl", &whole[..whole.len() - 20]);
    let own = folder.path("cut");
    rondel(["init", &cut, "--folder", &own]).expect_status(3).expect_stderr(&[
        "1 line could not be read",
        "the first is line 100",
        "check --on-error skip ",
    ]);
    let text = std::fs::read_to_string(format!("{own}/first.rondel")).unwrap();
    assert!(text.contains("\nproperty s_fresh = "), "{text}");
    assert!(text.contains("cut.jsonl:100 is no message") && text.contains("`--on-error skip`"), "{text}");
    rondel(["check", &format!("{own}/first.rondel"), &cut])
        .expect_status(3)
        .expect_stderr(&["cut.jsonl:100:"]);
    // Standard input cannot be read twice.
    let own = folder.path("piped");
    support::rondel_with_input(["init", "-", "--folder", &own], whole.as_bytes())
        .expect_status(0)
        .expect_stderr(&["- is not read again, so the properties are not checked with it", "wrote "]);
}

/// The rules of a part of a recording are kept, though messages before it may decide them too.
#[test]
fn a_part_of_a_recording_keeps_its_rules() {
    let folder = Folder::new();
    let rows: String = (0..300).map(|i| format!("{:?},{}\n", f64::from(i) / 10.0, i % 4)).collect();
    let table = folder.file("s.csv", format!("time,v\n{rows}"));
    let own = folder.path("own");
    let written = rondel(["init", &table, "--folder", &own, "--from", "+5", "--to", "+25"]);
    written.expect_status(0);
    assert!(!written.stderr.contains("only suggested"), "{}", written.stderr);
    let text = std::fs::read_to_string(format!("{own}/first.rondel")).unwrap();
    assert!(text.contains("\nproperty s_fresh = ") && text.contains("\nproperty s_v = "), "{text}");
    rondel(["check", &format!("{own}/first.rondel"), &table]).expect_status(0);
    // A part of JSON lines cannot be checked by itself, and the whole says nothing about the part.
    let trace = folder.file("s.jsonl", lines("/s", 300, |i| format!("\"v\": {}", i % 4)));
    rondel(["init", &trace, "--folder", &folder.path("lines"), "--to", "+20"])
        .expect_status(0)
        .expect_stderr(&["s.jsonl: a part of JSON lines is not checked by itself"]);
}

/// A hundred of thousands of topics are written, and the others counted.
#[test]
fn thousands_of_topics_are_limited() {
    let folder = Folder::new();
    let line = |i: u32| {
        format!("{{\"topic\": \"t/{}\", \"time\": {}, \"data\": {{\"v\": {}}}}}\n", i % 3_000, i / 100, i % 5)
    };
    let file = folder.file("many.jsonl", (0..12_000).map(line).collect::<String>());
    let text = holds(&[file], &folder.path("own"), "many topics");
    assert_eq!(text.lines().filter(|line| line.starts_with("topic ")).count(), 100, "{text}");
    assert!(text.contains("900 further topics, as a draft has at most 100"), "{text}");
    assert!(text.contains("8,000 messages on further topics"), "{text}");
}

#[test]
fn silences_of_centuries_have_no_bound() {
    let folder = Folder::new();
    let lines = "{\"time\":0,\"v\":1}\n{\"time\":1,\"v\":2}\n{\"time\":9000000000,\"v\":1}\n";
    let (trace, draft) = (folder.file("t.jsonl", lines), folder.path("draft"));
    rondel(["init", "--folder", &draft, &trace]).expect_status(0);
    let specification = format!("{draft}/first.rondel");
    let text = std::fs::read_to_string(&specification).unwrap();
    assert!(text.contains("No bound on silences"), "{text}");
    assert_ne!(rondel(["check", &specification, &trace]).status, Some(2), "{text}");
}
