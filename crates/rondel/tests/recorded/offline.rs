//! Checks of recordings with a deployment that needs no network.

use super::support::{Finished, Folder, rondel};

/// A deployment that no network is needed for.
struct Offline(Folder);

impl Offline {
    fn new(time: &str, rest: &str) -> Offline {
        let folder = Folder::new();
        folder.file(
            "spec.rondel",
            "topic gear { report: int } topic speed { v: float } topic brake { pressed: bool }
             property known = gear.report > 0
             property recent = brake.pressed -> once[0, 2 s] speed.v > 5",
        );
        let topic = |name: &str| format!("  {name}: {{ source: \"mqtt:fleet/+/{name}\", time: {time} }}\n");
        let topics: String = ["gear", "speed", "brake"].map(topic).concat();
        folder.file("rondel.yaml", format!("specification: spec.rondel\ntopics:\n{topics}{rest}"));
        Offline(folder)
    }

    #[track_caller]
    fn check(&self, lines: &str, options: &[&str]) -> Finished {
        let trace = self.0.file("trace.jsonl", lines);
        rondel([&["check", &self.0.path("rondel.yaml"), &trace], options].concat())
    }
}

/// A message of each topic at this time and one second later.
fn triple(time: u32) -> String {
    [("gear", time, "\"report\":1"), ("speed", time, "\"v\":6"), ("brake", time + 1, "\"pressed\":true")]
        .map(|(topic, time, data)| format!("{{\"topic\":\"{topic}\",\"data\":{{\"t\":{time},{data}}}}}\n"))
        .concat()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text.lines().find(|line| line.starts_with('{')).expect(text)).unwrap()
}

#[test]
fn topics_that_are_not_in_the_recording() {
    let deployment = Offline::new("t", "");
    let others: String =
        (0..23).map(|i| format!("{{\"topic\":\"x{}\",\"data\":{{\"t\":{i}}}}}\n", i % 13)).collect();
    let checked = deployment.check(&others, &[]);
    checked.expect_status(4);
    for part in [
        "                vacuous: no message came on `gear`\n",
        "\n  topics that came and are not used: x0 (2), x1 (2), x2 (2)",
        "x9 (2) and 3 more\n",
    ] {
        assert!(checked.stdout.contains(part), "{part}\n{}", checked.stdout);
    }
    let summary = json(&deployment.check(&others, &["--summary", "json"]).stderr);
    assert_eq!(summary["missing_topics"], serde_json::json!(["gear", "speed", "brake"]));
    assert_eq!(
        (&summary["events"], &summary["properties"][0]["verdict"]),
        (&0.into(), &"inconclusive".into())
    );

    // The name of the deployment, an address and a topic of a wildcard are found; another level is not.
    let some = "{\"topic\":\"gear\",\"data\":{\"t\":1,\"report\":1}}\n\
        {\"topic\":\"mqtt:fleet/r1/gear\",\"data\":{\"t\":2,\"report\":2}}\n\
        {\"tst\":\"2026-11-22T19:26:02.022524Z+0000\",\"topic\":\"fleet/r2/gear\",\"payload\":{\"t\":3,\"report\":3}}\n\
        {\"topic\":\"fleet/r2/arm/gear\",\"data\":{\"t\":4,\"report\":0}}\n";
    let checked = deployment.check(some, &["--emit", "every"]);
    checked.expect_status(4);
    for part in [
        "3 events checked",
        "                vacuous: no message came on `speed`\n",
        "\n  topics that came and are not used: fleet/r2/arm/gear (1)\n",
    ] {
        assert!(checked.stdout.contains(part), "{part}\n{}", checked.stdout);
    }
    // A file without any line is not satisfied either.
    let empty = deployment.check("", &[]);
    assert!(empty.expect_status(4).stdout.contains("0 events checked"), "{}", empty.stdout);
}

#[test]
fn a_time_field_that_never_comes() {
    for rest in ["", "alignment: { policy: arrival }\n", "alignment: { policy: approximate }\n"] {
        let deployment = Offline::new("stamp", rest);
        let messages: String = (1..7).map(triple).collect();
        let checked = deployment.check(&messages, &[]);
        checked.expect_status(4).expect_stderr(
            &["gear", "speed", "brake"]
                .map(|topic| format!("every message on {topic} (6) came without a time"))
                .each_ref()
                .map(String::as_str),
        );
        let summary = json(&deployment.check(&messages, &["--summary", "json"]).stderr);
        assert_eq!(summary["unstamped"], 18, "{rest}");
    }
}

/// One message without its time, before all others: it does not set the clock, so that nothing is refused.
#[test]
fn a_first_message_without_its_time() {
    let deployment = Offline::new("t", "");
    let first = "{\"topic\":\"gear\",\"data\":{\"report\":1}}\n";
    let messages: String = (0..4).map(|i| triple(1_790_000_000 + 10 * i)).collect();
    let checked = deployment.check(&format!("{first}{messages}"), &[]);
    checked.expect_status(0).expect_stderr(&["some messages on gear (1) came without a time"]);
    assert!(
        !checked.stdout.contains("refused") && checked.stdout.contains("13 events"),
        "{}",
        checked.stdout
    );
}

/// Times of arrival in a part of the recording only, as when two recordings are put together: from where they begin
/// they show how time passes.
#[test]
fn times_of_arrival_in_a_part_of_the_recording() {
    let deployment = Offline::new("t", "");
    let without: String = (0..4).map(|i| triple(10 * i + 1)).collect();
    let with: String = (4..8)
        .map(|i| {
            triple(10 * i + 1)
                .replace("\"data\"", &format!("\"arrival\":{},\"data\"", 1_790_000_000 + 10 * i))
        })
        .collect();
    for text in [format!("{without}{with}"), format!("{with}{}", without.replace("\"t\":", "\"t\":10"))] {
        let checked = deployment.check(&text, &[]);
        checked.expect_status(0);
        assert!(!checked.stdout.contains("refused"), "{}", checked.stdout);
        assert!(checked.stdout.contains("24 events"), "{}", checked.stdout);
    }
}

#[test]
fn verdicts_of_properties_that_wait_for_different_topics_come_by_time() {
    let deployment = Offline::new("t", "alignment: { max_wait: 1 s, absent_after: never }\n");
    // Within one block of lines both properties change at every third message.
    let messages: String = (0..20)
        .map(|i| triple(10 * i + 10).replace("\"report\":1", &format!("\"report\":{}", i % 2)))
        .collect();
    let checked = deployment.check(&messages, &["--format", "json", "--emit", "every"]);
    let verdicts =
        checked.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let times: Vec<(f64, String)> =
        verdicts.map(|v| (v["time"].as_f64().unwrap(), v["property"].as_str().unwrap().to_owned())).collect();
    assert!(times.is_sorted_by_key(|(time, _)| *time), "{times:?}");
    for property in ["known", "recent"] {
        assert!(times.iter().filter(|(_, of)| of == property).count() > 30, "{times:?}");
    }
}

#[test]
fn messages_beyond_the_wait() {
    let messages: String = (0..10)
        .map(|i| {
            let lines = triple(10 * i + 10);
            // The speed comes nine seconds late.
            lines.replace(&format!("\"t\":{},\"v\"", 10 * i + 10), &format!("\"t\":{},\"v\"", 10 * i + 1))
        })
        .collect();
    for (late, dropped) in [("late", 0), ("drop", 9), ("inconclusive", 0)] {
        let alignment = format!("alignment: {{ max_wait: 1 s, absent_after: never, late: {late} }}\n");
        let deployment = Offline::new("t", &alignment);
        let checked = deployment.check(&messages, &[]);
        checked.expect_stderr(&["speed: a message was late by"]);
        assert!(checked.stdout.contains("speed: 9 late"), "{}", checked.stdout);
        let summary = json(&deployment.check(&messages, &["--summary", "json", "--format", "json"]).stderr);
        let speed = &summary["alignment"]["topics"]["speed"];
        assert_eq!((&speed["late"], &speed["dropped"]), (&9.into(), &dropped.into()), "{summary}");
        assert_eq!(summary["alignment"]["late"], 9);
    }
}

#[test]
fn the_clock_of_the_machine_without_times_of_arrival() {
    let alignment = "alignment: { clock: system, max_wait: 1 s, absent_after: never }\n";
    let deployment = Offline::new("t", alignment);
    let messages: String = (0..4).map(|i| triple(10 * i + 1)).collect();
    let said =
        "12 messages have no time of arrival, which `clock: system` needs: waiting is measured by the times";
    deployment.check(&messages, &[]).expect_status(0).expect_stderr(&[said]);
    let with: String = (0..4)
        .map(|i| triple(10 * i + 1).replace("\"data\"", &format!("\"arrival\":{},\"data\"", 10 * i + 2)))
        .collect();
    let checked = deployment.check(&with, &[]);
    assert!(!checked.expect_status(0).stderr.contains("clock: system"), "{}", checked.stderr);
    // By the clock of the messages it makes no difference.
    let usual = Offline::new("t", "").check(&messages, &[]);
    assert!(!usual.expect_status(0).stderr.contains("time of arrival"), "{}", usual.stderr);
}

#[test]
fn a_line_that_is_cut() {
    let deployment = Offline::new("t", "");
    let whole: String = (1..4).map(triple).collect();
    let lines: Vec<&str> = whole.lines().collect();
    // At the end, as after a loss of power, and in the middle.
    for (before, after) in [(5, 0), (2, 3)] {
        let cut = &lines[before][..lines[before].len() - 8];
        let rest: String = lines[before + 1..][..after].iter().map(|line| format!("{line}\n")).collect();
        let line_break = if after > 0 { "\n" } else { "" };
        let text = format!("{}\n{cut}{line_break}{rest}", lines[..before].join("\n"));
        let checked = deployment.check(&text, &[]);
        let place = format!("trace.jsonl:{}:{}: ", before + 1, cut.len() + 1);
        checked.expect_status(3).expect_stderr(&[&place]);
        assert!(checked.stdout.contains(&format!("{before} events checked")), "{}", checked.stdout);
    }
}

/// Robots that share a pattern are one stream: a warning names properties that cannot distinguish them.
#[test]
fn a_pattern_mixes_all_matching_topics() {
    let folder = Folder::new();
    let schema = "{ x: float, robot: int }";
    let properties = "property fast = pose.x < 5\nproperty each for each r in (pose.robot) = pose.x < 5\n\
                      property known = forall r. pose{robot: r} -> once[0, 9 s] pose{robot: r}\nproperty seen = on(pose)\n\
                      property quick = forall r. pose{robot: r, x > 3} -> once[0, 9 s] pose{robot: r, x < 3} or pose.x < 9\n\
                      property late = forall r. pose{robot: r} -> pose.x < 9\n";
    let specification =
        folder.file("a.rondel", format!("topic pose \"fleet/+/pose\" {schema}\n{properties}"));
    let trace = folder.file(
        "a.jsonl",
        "{\"topic\":\"fleet/r1/pose\",\"time\":1,\"data\":{\"x\":6,\"robot\":1}}\n\
         {\"topic\":\"fleet/r2/pose\",\"time\":2,\"data\":{\"x\":1,\"robot\":2}}\n",
    );
    let warning = "warning: pose is the pattern fleet/+/pose: where several topics match, a message of one replaces \
                   the values of another in fast and 1 other property; `for each` over a field, or over a \
                   parameter of the address, as in \"fleet/{robot}/pose\", keeps them apart\n";
    let checked = rondel(["check", "-q", &specification, &trace]);
    assert!(checked.stderr.starts_with(warning), "{}", checked.stderr);
    let deployment = folder.file(
        "rondel.yaml",
        "specification: b.rondel\nmqtt: { broker: 127.0.0.1 }\ntopics: { pose: \"mqtt:fleet/+/pose\" }\n",
    );
    folder.file("b.rondel", format!("topic pose {schema}\n{properties}"));
    rondel(["validate", &deployment]).expect_status(0).expect_stderr(&[warning]);
    folder.file(
        "b.rondel",
        "topic pose { x: float, robot: int } property each for each r in (pose.robot) = pose.x < 5\n",
    );
    let quiet = rondel(["validate", &deployment]);
    assert_eq!(quiet.expect_status(0).stderr, "");
}
