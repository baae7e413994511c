//! The table of requirements and verdicts.

use super::support::{Finished, Folder, rondel};
use super::{DOOR, Files};

#[test]
fn requirements_are_traced_to_verdicts() {
    let files = Files::new();
    files.0.file("b.jsonl", DOOR);
    let (_, first) = files.report(&["a.jsonl"], "json", &[]);
    let first = files.0.file("first.json", first);
    let (_, second) = files.report(&["b.jsonl"], "json", &[]);
    let second = files.0.file("second.json", second);
    let required =
        files.0.file("required.txt", "SYS-1 Change gears at standstill\n\n# later\nSYS-9, missing\n");
    let specification = files.0.path("drive.rondel");
    let trace = |options: &[&str]| rondel([&["trace", &specification, &first, &second], options].concat());
    let table = trace(&["--requirements", &required]);
    table.expect_status(1);
    let lines: Vec<Vec<&str>> = table
        .stdout
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    assert_eq!(lines[0], ["requirement", "property", "verdict"]);
    assert_eq!(lines[1][..2], ["SYS-1", "standstill"]);
    assert!(lines[1][2].starts_with("violated in 1 of 2 (1 time)"), "{}", table.stdout);
    assert_eq!(lines[2][..2], ["SYS-2", "standstill"]);
    assert_eq!(lines[4][..2], ["-", "closed"]);
    assert_eq!(lines[5], ["SYS-9", "no property checks it"]);
    let csv = trace(&["--format", "csv"]);
    let head = csv.stdout.lines().next().unwrap();
    assert!(head.starts_with("requirement,property,worst,") && head.ends_with("b.jsonl"), "{head}");
    assert!(csv.stdout.contains("\nSYS-3,slow,inconclusive,satisfied,inconclusive\n"), "{}", csv.stdout);
    // Without reports: which property checks what.
    rondel(["trace", specification.as_str()]).expect_status(0);
    rondel(["trace", specification.as_str(), "--requirements", &required]).expect_status(4);
    let wrong = files.0.file("wrong.json", "{\"rondel_report\": 7}");
    rondel(["trace", specification.as_str(), &wrong])
        .expect_status(2)
        .expect_stderr(&["its format is 7, this version of Rondel reads 1"]);
}

/// The status of `check` of recordings and that of `trace` of its report, with their outputs.
fn checked_and_traced(specification: &str, recordings: &[(&str, &str)], options: &[&str]) -> [Finished; 2] {
    let folder = Folder::new();
    let specification = folder.file("s.rondel", specification);
    let recordings: Vec<String> = recordings.iter().map(|(name, text)| folder.file(name, text)).collect();
    let report = folder.path("r.json");
    let json = format!("json={report}");
    let mut check = vec!["check", &specification, "--report", &json];
    check.extend(recordings.iter().map(String::as_str));
    check.extend(options);
    let checked = rondel(check);
    [checked, rondel(["trace", &specification, &report])]
}

#[test]
fn traces_agree_with_checks() {
    let speed = "topic odom { speed: float }\n";
    let drive = "{\"topic\":\"odom\",\"time\":0,\"speed\":5}\n{\"topic\":\"odom\",\"time\":1,\"speed\":5}\n\
                 {\"topic\":\"odom\",\"time\":2,\"speed\":15}\n{\"topic\":\"odom\",\"time\":10,\"speed\":15}\n";
    let statuses = |specification: &str, recordings: &[(&str, &str)], options: &[&str]| {
        let [check, trace] = checked_and_traced(&format!("{speed}{specification}"), recordings, options);
        (check.status, trace.status, trace.stdout)
    };
    // The same text in two models of time.
    let (check, trace, table) = statuses(
        "@requirement(\"A\") assert share(odom.speed < 10) >= 0.5\n\
         @requirement(\"B\") @time(dense) assert share(odom.speed < 10) >= 0.5\n",
        &[("a.jsonl", drive)],
        &[],
    );
    assert_eq!((check, trace), (Some(1), Some(1)), "{table}");
    assert!(table.contains("\nB            share(odom.speed < 10) >= 0.5 (2)  violated"), "{table}");
    // A property that only an assert judges; its requirement is that of the assert.
    let asserted = "@requirement(\"A\") property slow = odom.speed < 10\nassert share(slow) >= ";
    for (share, status) in [("0.5", 0), ("0.6", 1)] {
        let (check, trace, table) = statuses(&format!("{asserted}{share}\n"), &[("a.jsonl", drive)], &[]);
        assert_eq!((check, trace), (Some(status), Some(status)), "{table}");
        assert!(table.contains("violated (1 time); an assert decides"), "{table}");
        assert!(table.lines().nth(2).unwrap().starts_with("A            share(slow)"), "{table}");
    }
    let property = "@requirement(\"A\") property slow = odom.speed < 20\n";
    // Not read to the end, or not at all.
    let cut = format!("{drive}{{\"topic\":");
    for recordings in
        [[("a.jsonl", drive), ("b.jsonl", cut.as_str())], [("a.jsonl", drive), ("b.jsonl", "{")]]
    {
        let (check, trace, table) = statuses(property, &recordings, &[]);
        assert_eq!((check, trace), (Some(3), Some(4)), "{table}");
    }
    // Without the times that the messages should carry, alone or beside one with times.
    let stamped = "{\"topic\":\"odom\",\"time\":0,\"speed\":5,\"stamp\":3}\n";
    for recordings in [&[("a.jsonl", drive)][..], &[("a.jsonl", drive), ("b.jsonl", stamped)]] {
        let (check, trace, table) = statuses(property, recordings, &["--time-field", "stamp"]);
        assert_eq!((check, trace), (Some(4), Some(4)), "{table}");
    }
    // Not checked in the recordings of one report.
    let folder = Folder::new();
    let first = folder.file("1.rondel", format!("{speed}{property}"));
    let both = folder
        .file("2.rondel", format!("{speed}{property}@requirement(\"B\") property ok = odom.speed < 30\n"));
    let trace = folder.file("a.jsonl", drive);
    let mut reports = Vec::new();
    for specification in [&first, &both] {
        let report = format!("{specification}.json");
        rondel(["check", specification.as_str(), &trace, &format!("--report=json={report}")])
            .expect_status(0);
        reports.push(report);
    }
    let table = rondel(["trace", both.as_str(), &reports[0], &reports[1]]);
    table.expect_status(4);
    assert!(table.stdout.contains("satisfied in 1 of 2, not checked in 1"), "{}", table.stdout);
}
