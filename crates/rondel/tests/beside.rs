//! Recordings of JSON lines that several threads decode or evaluate: every output is that of one thread.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support;

use std::fmt::Write as _;
use std::io::Write as _;

use rondel_testkit::Random;
use support::{Finished, Folder, rondel};

const SPEC: &str = r#"
topic pose "pose" { x: float, v: int, mode: text }
topic odom "odom" { x: float, ok: bool }
property bounded = historically[0, 1 s] (pose.v <= 100)
property answered = on(odom) -> eventually[0, 5 s] on(pose)
property modes = (pose.mode == "auto" since[0, 2 s] pose.v > 3) or odom.x >= 1
property average = mean(pose.x) over 1 s < 99.5
property near = abs(pose.x - odom.x) <= 98
property lately = once[0, 10 ms] (odom.ok and pose.v > 97)
property apart for each m in pose.mode = not (pose.v > 98 and once[0, 20 ms] pose.v < 2)
property known = exists m. once[0, 1 s] pose{mode: m}
assert some = share(odom.ok) >= 0.1
"#;

/// More than a megabyte, so that it is worth another thread.
const LONG: usize = 1_100_000;

/// Peculiarities of the lines of a recording.
#[derive(Clone, Copy, Default)]
struct Kind {
    /// Keys in random order, and further ones.
    changes: bool,
    /// Whole stretches without a time, longer than a piece.
    timeless: bool,
    /// Times that go back now and then.
    back: bool,
    /// Further topics, so many.
    others: u64,
    /// Of so many lines one is odd: no JSON, a payload that cannot be decoded, values of other types, empty, of no topic.
    odd: Option<u64>,
    /// As `rondel tap` writes them, with numbers, of which some are missing.
    tapped: bool,
    /// Some lines are longer than what is read at a time.
    large: bool,
}

/// A recording of this kind.
fn recording(random: &mut Random, kind: Kind) -> String {
    let mut text = String::new();
    let mut time = 1_000_000_u64;
    let mut numbers = [0_u64; 2];
    for i in 0_u64.. {
        if text.len() > LONG {
            break;
        }
        time += 1_000_000 + random.below(3) * 100;
        let shown = if kind.back && random.below(500) == 0 { time - random.below(900_000) } else { time };
        let name = random.below(2) as usize;
        let topic = match kind.others {
            others @ 1.. if random.below(3) == 0 => format!("other{}", random.below(others)),
            _ => ["pose", "odom"][name].to_owned(),
        };
        let seconds = format!("{}.{:09}", shown / 1_000_000_000, shown % 1_000_000_000);
        let mode = ["auto", "manual", "h\u{f6}lle", "a\\n"][random.below(4) as usize];
        let mut fields = vec![
            format!("\"x\":{}.{}", random.below(100), random.below(1000)),
            format!("\"v\":{}", random.below(100)),
            format!("\"mode\":\"{mode}\""),
            format!("\"ok\":{}", random.below(2) == 0),
        ];
        if kind.changes {
            let (a, b) = (random.below(4) as usize, random.below(4) as usize);
            fields.swap(a, b);
            fields.push(format!("\"k{}\":[{}, null]", random.below(300), random.below(9)));
        }
        if kind.large && i % 4000 == 1999 {
            fields.push(format!("\"text\":\"{}\"", "y".repeat(700_000)));
        }
        let is_odd = kind.odd.is_some_and(|odd| random.below(odd) == 0);
        let odd = if is_odd { random.below(5) } else { 9 };
        match odd {
            0 => text.push_str("{\"topic\":\"pose\",\"time\":1,\n"),
            1 => text.push_str("  \n"),
            2 => text.push_str("{\"time\":3}\n"),
            3 => fields[0] = "\"x\":\"text\"".to_owned(),
            _ => {}
        }

        let data = format!("{{{}}}", fields.join(","));
        if kind.tapped {
            numbers[name] += 1 + u64::from(random.below(3000) == 0);
            let origin = format!("{{\"publisher\":{name},\"number\":{}}}", numbers[name]);
            let start = format!("{{\"topic\":\"{topic}\",\"time\":{seconds},\"arrival\":{seconds}");
            let _ = match odd {
                4 => writeln!(text, "{start},\"origin\":{origin},\"payload\":\"no\"}}"),
                _ => writeln!(text, "{start},\"origin\":{origin},\"data\":{data}}}"),
            };
        } else if kind.timeless && (text.len() / 400_000) % 2 == 1 || odd == 4 {
            let _ = writeln!(text, "{{\"topic\":\"{topic}\",\"data\":{data}}}");
        } else {
            let _ = writeln!(text, "{{\"topic\":\"{topic}\",\"time\":{seconds},\"data\":{data}}}");
        }
    }
    text
}

/// A text without the times that checks took.
fn without_durations(text: &str) -> String {
    let line = |line: &str| match line.rsplit_once("\"seconds\":") {
        Some((before, rest)) => before.to_owned() + rest.split_once(',').map_or("", |(_, after)| after),
        None if line.contains(" checked against ") => {
            line.rsplit_once(" in ").map_or(line, |(before, _)| before).to_owned()
        }
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn outputs(checked: &Finished) -> (Option<i32>, String, String) {
    (checked.status, without_durations(&checked.stdout), without_durations(&checked.stderr))
}

/// Lines of standard error in the order of their text: warnings of what evaluation notices may come later. Not those of
/// workers without effect.
fn warnings(stderr: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = stderr.lines().filter(|line| !line.contains("--workers")).collect();
    lines.sort_unstable();
    lines
}

/// Checks with one thread, with several that decode, and with several that evaluate; all must print the same. Returns what
/// that is.
fn compare(case: &str, jobs: &str, options: &[&str]) -> (Option<i32>, String, String) {
    let run = |jobs: &str| outputs(&rondel([&["check", "--jobs", jobs], options].concat()));
    let (one, several) = (run("1"), run(jobs));
    // Every kind of recording is checked with both numbers of workers, each with other options.
    let workers = if jobs == "2" { "2" } else { "8" };
    let arguments = ["check", "--jobs", jobs, "--workers", workers];
    let spread = outputs(&rondel([&arguments[..], options].concat()));
    assert_eq!(spread.0, one.0, "{case}, {workers} workers: {}", spread.2);
    let differs = spread.1.lines().zip(one.1.lines()).find(|(spread, one)| spread != one);
    assert!(spread.1 == one.1, "{case}, {workers} workers, then 1: {differs:?}");
    assert_eq!(warnings(&spread.2), warnings(&one.2), "{case}, {workers} workers");
    assert_eq!(several.0, one.0, "{case}, {jobs} threads: {}", several.2);
    for (several, one) in [(&several.1, &one.1), (&several.2, &one.2)] {
        let differs = several.lines().zip(one.lines()).find(|(several, one)| several != one);
        assert!(several == one, "{case}, {jobs} threads, then 1: {differs:?}");
    }
    one
}

const PLAIN: Kind =
    Kind { changes: false, timeless: false, back: false, others: 0, odd: None, tapped: false, large: false };

const KINDS: [(&str, Kind); 12] = [
    ("constant", PLAIN),
    ("changing", Kind { changes: true, ..PLAIN }),
    ("timeless", Kind { timeless: true, ..PLAIN }),
    ("timeless and changing", Kind { timeless: true, changes: true, others: 3, ..PLAIN }),
    ("back", Kind { back: true, ..PLAIN }),
    ("others", Kind { others: 5, ..PLAIN }),
    ("many others", Kind { others: 600, odd: Some(400), ..PLAIN }),
    ("odd", Kind { odd: Some(2000), back: true, others: 2, ..PLAIN }),
    ("very odd", Kind { odd: Some(20), changes: true, timeless: true, ..PLAIN }),
    ("tapped", Kind { tapped: true, ..PLAIN }),
    ("tapped and odd", Kind { tapped: true, odd: Some(1500), others: 2, ..PLAIN }),
    ("large", Kind { large: true, odd: Some(1000), ..PLAIN }),
];

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    rondel_testkit::fresh_seeds("results_do_not_depend_on_the_number_of_threads", 1)
        .for_each(compare_threads);
}

/// Compares recordings of every kind.
fn compare_threads(seed: u64) {
    let mut random = Random::new(seed);
    let (folder, mut compared) = (Folder::new(), 0);
    let spec = folder.file("a.rondel", SPEC);
    let options = [
        &["--summary", "json", "--format", "json"][..],
        &["-e", "violations", "--time", "points", "--strict"],
        &["--time-field", "x", "--time-unit", "ms"],
    ];
    for (i, (name, kind)) in KINDS.into_iter().enumerate() {
        let trace = folder.file("a.jsonl", recording(&mut random, kind));
        let more = ["--on-error", if i % 4 == 3 { "stop" } else { "skip" }, &spec, &trace];
        let every = compare(name, "2", &[&["-e", "every"][..], &more].concat());
        // The recordings are no empty ones.
        assert!(every.0 == Some(3) || every.1.len() > 500_000, "{name}: {}", every.2);
        let further = options[i % 3];
        compare(&format!("{name} {further:?}"), ["3", "4"][i % 2], &[further, &more].concat());
        compared += 2;
    }
    assert!(compared >= 24, "{compared} compared");
}

#[test]
fn compressed_and_cut_recordings_are_the_same_too() {
    let (folder, mut random) = (Folder::new(), Random::new(0x5eed_cafe));
    let spec = folder.file("a.rondel", SPEC);
    let mut text = recording(&mut random, Kind { changes: true, others: 2, ..PLAIN });
    // The compressed file must be long enough, too.
    for _ in 0..3 {
        text += &recording(&mut random, Kind { changes: true, back: true, ..PLAIN });
    }
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zipped.write_all(text.as_bytes()).unwrap();
    let zipped = zipped.finish().unwrap();
    assert!(zipped.len() > 1 << 20, "{}", zipped.len());
    let cut = folder.file("cut.jsonl.gz", &zipped[..zipped.len() - 1000]);
    let unended = folder.file("unended.jsonl", format!("\u{feff}{}", text.trim_end()));
    for (trace, action) in [(&cut, "stop"), (&cut, "skip"), (&unended, "stop")] {
        let out = compare(trace, "2", &["--on-error", action, "-q", &spec, trace]);
        assert_eq!(out.2.contains("cannot read"), trace == &cut, "{}", out.2);
    }
}

#[test]
fn snapshots_continue_whatever_the_number_of_threads() {
    let (folder, mut random) = (Folder::new(), Random::new(0xface));
    let spec = folder.file("a.rondel", SPEC);
    let kind = Kind { timeless: true, others: 3, ..PLAIN };
    let first = folder.file("1.jsonl", recording(&mut random, kind));
    let second = folder.file("2.jsonl", recording(&mut random, Kind { back: true, ..kind }));
    let run = |jobs: &str| {
        let snapshot = folder.path("a.snapshot");
        let before = rondel(["check", "--jobs", jobs, "--snapshot-to", &snapshot, &spec, &first]);
        let after = rondel(["check", "--jobs", jobs, "--resume", &snapshot, "--explain", &spec, &second]);
        (outputs(&before), outputs(&after))
    };
    let one = run("1");
    let two = run("2");
    assert_eq!(two, one);
}

#[test]
fn snapshots_continue_with_any_number_of_workers() {
    for seed in rondel_testkit::seeds("resumed-checks", 2) {
        let (folder, mut random) = (Folder::new(), Random::new(0xfade + seed));
        let spec = folder.file("a.rondel", SPEC);
        let text = recording(&mut random, Kind { others: 3, back: true, ..PLAIN });
        // At the end of a line.
        let cut = random.below(text.len() as u64) as usize;
        let cut = cut + text.as_bytes()[cut..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
        let (first, second) = (folder.file("1.jsonl", &text[..cut]), folder.file("2.jsonl", &text[cut..]));
        let run = |before: &str, after: &str| {
            let snapshot = folder.path("a.snapshot");
            let part =
                ["check", "--workers", before, "--snapshot-to", &snapshot, "-e", "every", &spec, &first];
            let rest = ["check", "--workers", after, "--resume", &snapshot, "-e", "every", &spec, &second];
            let (part, rest) = (outputs(&rondel(part)), outputs(&rondel(rest)));
            (part.0, part.1, rest.0, rest.1)
        };
        let one = run("1", "1");
        assert!(one.1.len() + one.3.len() > 500_000, "seed {seed}: verdicts are compared");
        for (before, after) in [("4", "1"), ("1", "2")] {
            assert!(run(before, after) == one, "seed {seed}: {before} workers, then {after}");
        }
        let [before, after] = [0, 1].map(|_| (1 + random.below(8)).to_string());
        assert!(run(&before, &after) == one, "seed {seed}: {before} workers, then {after}");
    }
}

#[test]
fn explanations_need_one_thread() {
    let (folder, mut random) = (Folder::new(), Random::new(0xcafe));
    let spec = folder.file("a.rondel", SPEC);
    let trace = folder.file("a.jsonl", recording(&mut random, PLAIN));
    let one = outputs(&rondel(["check", "--explain", &spec, &trace]));
    let several = outputs(&rondel(["check", "--explain", "--workers", "3", &spec, &trace]));
    assert_eq!((several.0, &several.1), (one.0, &one.1));
    assert!(
        several.2.contains("--workers 3: one thread evaluates all messages, as explanations"),
        "{}",
        several.2
    );
    let refused = rondel(["check", "--workers", "0", &spec, &trace]);
    assert_eq!(refused.status, Some(2));
    assert!(refused.stderr.contains("must be a number from 1 to 64, or auto"), "{}", refused.stderr);
}

#[test]
fn reports_and_a_closed_output_are_the_same_too() {
    let (folder, mut random) = (Folder::new(), Random::new(0xbead));
    let spec = folder.file("a.rondel", SPEC);
    let trace = folder.file("a.jsonl", recording(&mut random, Kind { odd: Some(900), ..PLAIN }));
    let report = |jobs: &str| {
        let file = folder.path(&format!("{jobs}.tap"));
        let tap = format!("tap={file}");
        rondel(["check", "-q", "--jobs", jobs, "--on-error", "skip", "--report", &tap, &spec, &trace]);
        std::fs::read_to_string(file).unwrap()
    };
    assert_eq!(report("1"), report("2"));
    // Without a reader of its output the check ends early instead of waiting.
    for jobs in ["1", "2"] {
        let mut check = std::process::Command::new(env!("CARGO_BIN_EXE_rondel"));
        check.args(["check", "-e", "every", "--on-error", "skip", "--jobs", jobs, &spec, &trace]);
        let mut child = check.stdout(std::process::Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(3), "{jobs}");
    }
}
