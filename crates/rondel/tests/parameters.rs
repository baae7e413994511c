//! Parameters in addresses, `fleet/{robot}/pose`: in recordings of all forms and on all networks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::io::Write as _;
use std::process::Stdio;

use rondel_testkit::Broker;
use support::network::{arguments, dds_domain, free_endpoint, independent, python, zenoh, zenoh_listening};
use support::{Folder, rondel, rondel_with_input, start_rondel};

const SPEC: &str = "\
topic pose \"fleet/{robot}/pose\" { x: float }
topic speed \"fleet/{robot}/speed\" { value: float }
property slow for each robot in (pose.robot, speed.robot) = pose.x < 2 -> speed.value <= 0.5
property ours = on(pose) -> pose.robot in (\"r1\", \"r2\") and len(pose.robot) == 2
";

/// The topic, the time, the field and the value of messages: `r2` is violated at 3, and `r17` is not ours at 4.
const MESSAGES: [(&str, u32, &str, f64); 7] = [
    ("fleet/r1/pose", 0, "x", 1.0),
    ("fleet/r2/pose", 0, "x", 9.0),
    ("fleet/r1/speed", 1, "value", 0.25),
    ("fleet/r2/speed", 1, "value", 4.0),
    ("fleet/r1/battery", 2, "value", 100.0),
    ("fleet/r2/pose", 3, "x", 1.0),
    ("fleet/r17/pose", 4, "x", 9.0),
];

/// Expects the two violations in the output, and no others.
#[track_caller]
fn expect_violations(shown: &str) {
    let violated: Vec<&str> = shown.lines().filter(|line| line.contains("violated")).collect();
    assert_eq!(violated.len(), 2, "{shown}");
    assert!(violated.iter().any(|line| line.contains("slow") && line.contains("r2")), "{shown}");
    assert!(violated.iter().any(|line| line.contains("ours")), "{shown}");
}

#[test]
fn names_in_recordings_are_matched() {
    let folder = Folder::new();
    let spec = folder.file("a.rondel", SPEC);
    let ordered =
        "specification: a.rondel\nzenoh: {}\nalignment: { policy: event_time }\nverdicts: { to: stdout }\n";
    let ordered = folder.file("d.yaml", ordered);
    let line = |(topic, time, field, value): &(&str, u32, &str, f64)| {
        format!("{{\"topic\":\"{topic}\",\"time\":{time},\"{field}\":{value},\"robot\":\"other\"}}\n")
    };
    let lines: String = MESSAGES.iter().map(line).collect();
    let cells = |(topic, time, field, value): &(&str, u32, &str, f64)| match *field {
        "x" => format!("{time},{topic},{value},\n"),
        _ => format!("{time},{topic},,{value}\n"),
    };
    let rows: String = MESSAGES.iter().map(cells).collect();
    let tap = |(topic, time, field, value): &(&str, u32, &str, f64)| {
        format!(
            "{{\"topic\":\"zenoh:{topic}\",\"time\":{time},\"arrival\":{time},\"data\":{{\"{field}\":{value}}}}}\n"
        )
    };
    for (name, text) in [
        ("flat.jsonl", lines.clone()),
        ("tap.jsonl", MESSAGES.iter().map(tap).collect()),
        ("slash.jsonl", lines.replace("\"fleet", "\"/fleet")),
        ("table.csv", format!("time,topic,x,value\n{rows}")),
    ] {
        let trace = folder.file(name, text);
        for more in [&[][..], &["--jobs", "2"]] {
            let said =
                rondel([&["check", &spec, &trace, "--emit", "violations", "--quiet"][..], more].concat());
            said.expect_status(1);
            expect_violations(&said.stdout);
        }
        // The same where messages are put in order.
        let said = rondel(["check", &ordered, &trace, "--emit", "violations", "--quiet"]);
        said.expect_status(1);
        expect_violations(&said.stdout);
    }
    // By the name of the topic, a parameter is a field of the message.
    let own = "{\"topic\":\"pose\",\"time\":0,\"robot\":\"r1\",\"x\":1}\n{\"topic\":\"speed\",\"time\":1,\"robot\":\"r1\",\"value\":3}\n";
    let trace = folder.file("own.jsonl", own);
    let said = rondel(["check", &spec, &trace, "--emit", "violations", "--quiet"]);
    said.expect_status(1);
    assert!(said.stdout.contains("r1") && said.stdout.lines().count() == 1, "{}", said.stdout);
}

#[test]
fn topics_of_recorded_messages_are_matched() {
    let folder = Folder::new();
    let spec = folder.file("a.rondel", SPEC);
    for addresses in [
        &["zenoh:fleet/**"][..],
        &["zenoh:fleet/{robot}/pose", "zenoh:fleet/{robot}/speed", "zenoh:fleet/r1/battery"],
    ] {
        let endpoint = free_endpoint();
        let bag = folder.path(&format!("{}.mcap", addresses.len()));
        let own = [&["record", "--output", &bag, "--count", "7"], addresses].concat();
        let mut recording = start_rondel(arguments(&own, &zenoh_listening("peer", &endpoint)));
        recording.wait_stderr("ready");
        publish_all("zenoh", &zenoh("peer", &endpoint), &MESSAGES);
        recording.finish().expect_status(0);
        let said = rondel(["check", &spec, &bag, "--emit", "violations", "--quiet"]);
        said.expect_status(1);
        expect_violations(&said.stdout);
    }
}

/// Publishes the messages one after the other.
fn publish_all(name: &str, network: &[String], messages: &[(&str, u32, &str, f64)]) {
    for (topic, _, field, value) in messages {
        let to = format!("{name}:{topic}");
        let message = format!("{{\"{field}\":{value}}}\n");
        let said = rondel_with_input(
            arguments(&["publish", "--to", &to, "--wait", "30"], network),
            message.as_bytes(),
        );
        said.expect_status(0);
    }
}

#[test]
fn zenoh_subscribes_to_all_names() {
    let folder = Folder::new();
    let endpoint = free_endpoint();
    let spec = folder.file("a.rondel", SPEC);
    let more = ["--topic", "pose=zenoh:fleet/{robot}/pose", "--topic", "speed=zenoh:fleet/{robot}/speed"];
    let own =
        [&["run", &spec, "--publish", "stdout", "--emit", "violations", "--count", "6"], &more[..]].concat();
    let mut run = start_rondel(arguments(&own, &zenoh_listening("peer", &endpoint)));
    run.wait_stderr("ready");
    publish_all("zenoh", &zenoh("peer", &endpoint), &meant());
    let finished = run.finish();
    finished.expect_status(0);
    expect_violations(&finished.stdout);
}

/// The messages except those of the battery: it has no subscriber, and its publisher would wait for one.
fn meant() -> Vec<(&'static str, u32, &'static str, f64)> {
    MESSAGES.into_iter().filter(|(topic, ..)| !topic.ends_with("battery")).collect()
}

#[test]
fn topics_of_dds_are_found_as_their_publishers_come() {
    let domain = dds_domain().to_string();
    let folder = Folder::new();
    let spec = folder.file("a.rondel", SPEC);
    let deployment = format!(
        "specification: a.rondel\ndds: {{ interface: lo, domain: {domain} }}\ntopics:\n  \
         pose: \"dds:fleet/{{robot}}/pose\"\n  speed: \"dds:fleet/{{robot}}/speed\"\n\
         record: {{ on: violation, folder: out, before: 60 s, after: 60 s }}\nverdicts: {{ emit: violations, to: stdout }}\n"
    );
    let deployment = folder.file("rondel.yaml", deployment);
    let network = ["--dds-domain".to_owned(), domain, "--dds-interface".to_owned(), "lo".to_owned()];
    let mut run = start_rondel(["run", &deployment, "--count", "6"]);
    run.wait_stderr("ready");
    // This does not match, as a parameter is one segment. Without a subscriber the publisher must not wait.
    let other = ["publish", "--to", "dds:fleet/r1/arm/pose", "--wait", "0"];
    let other = rondel_with_input(arguments(&other, &network), b"{\"x\":0}\n");
    assert!(!other.stderr.contains("panicked"), "{}", other.stderr);
    publish_all("dds", &network, &meant());
    let finished = run.finish();
    finished.expect_status(0).expect_stderr(&["received 6, checked 6"]);
    expect_violations(&finished.stdout);
    // Under the names of the topics, which give the parameters again.
    let files = std::fs::read_dir(folder.path("out")).unwrap();
    let files: Vec<_> = files.map(|file| file.unwrap().path().display().to_string()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let first = folder.path("first");
    rondel(["init", "--folder", &first, &files[0]]).expect_status(0);
    let written = std::fs::read_to_string(format!("{first}/rondel.yaml")).unwrap();
    assert!(written.contains("dds:fleet/r1/pose"), "{written}");
    let said = rondel(["check", &spec, &files[0], "--emit", "violations", "--quiet"]);
    said.expect_status(1);
    expect_violations(&said.stdout);
}

/// Messages of robots by name: that of `r2` violates the property.
const SAID: &str = "topic chatter \"/fleet/{robot}/chatter\" : std_msgs/msg/String\n\
    property short for each r in chatter.robot = chatter.data != \"n 4\"\n";

#[test]
fn topics_of_ros_2_over_zenoh_are_matched() {
    let Some(python) = python("parameters: topics_of_ros_2_over_zenoh_are_matched") else { return };
    let endpoint = free_endpoint();
    let folder = Folder::new();
    folder.file("a.rondel", SAID);
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: a.rondel\nros2: {{ middleware: zenoh, domain: 9 }}\nzenoh: {{ mode: router, listen: {endpoint} \
             }}\ntopics:\n  chatter: \"ros2:/fleet/{{robot}}/chatter\"\nverdicts: {{ emit: violations, to: stdout }}\n"
        ),
    );
    let mut run = start_rondel(["run", &deployment, "--count", "10"]);
    run.wait_stderr("ready");
    for (topic, count) in [("/fleet/r1/chatter", "4"), ("/fleet/r2/chatter", "6")] {
        let options = [topic, "--count", count, "--domain", "9", "--connect", &endpoint];
        independent(&python, "ros2_zenoh_publish.py", &options).finish().expect_status(0);
    }
    let finished = run.finish();
    finished.expect_status(0).expect_stderr(&["received 10, checked 10"]);
    let violated: Vec<&str> = finished.stdout.lines().filter(|line| line.contains("violated")).collect();
    assert!(violated.len() == 1 && violated[0].contains("r2"), "{}", finished.stdout);
}

#[test]
fn topics_of_ros_2_over_dds_are_found() {
    let Some(python) = python("parameters: topics_of_ros_2_over_dds_are_found") else { return };
    let domain = dds_domain().to_string();
    let folder = Folder::new();
    let spec = folder.file(
        "a.rondel",
        "topic chatter \"/fleet/{robot}/chatter\" { n: int }\n\
         property short for each r in chatter.robot = chatter.n != 4\n",
    );
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: a.rondel\nros2: {{ middleware: dds, domain: {domain} }}\ndds: {{ interface: lo, domain: {domain} }}\n\
             topics:\n  chatter: {{ source: \"ros2:/fleet/{{robot}}/chatter\", encoding: json }}\n\
             verdicts: {{ emit: violations, to: stdout }}\n"
        ),
    );
    let bag = folder.path("all.mcap");
    let publish = || {
        for (topic, count) in [("rt/fleet/r1/chatter", "4"), ("rt/fleet/r2/chatter", "6")] {
            let options = [topic, "--domain", &domain, "--count", count];
            independent(&python, "dds_publish.py", &options).finish().expect_status(0);
        }
    };
    let live_command = ["run", &deployment, "--count", "10"];
    let recorded = ["record", &deployment, "--output", &bag, "--count", "10"];
    // One after the other: publishers wait for one subscription only.
    let [live, _] = [&live_command[..], &recorded].map(|command| {
        let mut receiving = start_rondel(command);
        receiving.wait_stderr("ready");
        publish();
        let finished = receiving.finish();
        finished.expect_status(0).expect_stderr(&["received 10"]);
        finished
    });
    let said = rondel(["check", &spec, &bag, "--emit", "violations", "--quiet"]);
    said.expect_status(1);
    // Replayed under the names of its topics.
    let mut again = start_rondel(live_command);
    again.wait_stderr("ready");
    rondel(["replay", &deployment, &bag, "--as-fast-as-possible", "--wait", "60"]).expect_status(0);
    let again = again.finish();
    again.expect_status(0).expect_stderr(&["received 10"]);
    for shown in [live.stdout, said.stdout, again.stdout] {
        let violated: Vec<&str> = shown.lines().filter(|line| line.contains("violated")).collect();
        assert!(violated.len() == 1 && violated[0].contains("r2"), "{shown}");
    }
}

/// A publisher of another type, which lacks the field, comes first: the type is that of the next one.
#[test]
fn a_type_without_the_fields_is_not_taken() {
    let Some(python) = python("parameters: a_type_without_the_fields_is_not_taken") else { return };
    let (folder, domain) = (Folder::new(), dds_domain().to_string());
    folder.file(
        "a.rondel",
        "topic pose \"fleet/{robot}/pose\" { mode: int }\nproperty low for each r in pose.robot = pose.mode < 3\n",
    );
    let file = folder.file(
        "rondel.yaml",
        format!(
            "specification: a.rondel\ndds: {{ domain: {domain}, interface: lo }}\n\
             topics: {{ pose: {{ source: \"dds:fleet/{{robot}}/pose\", encoding: cdr }} }}\nverdicts: {{ to: stdout }}\n"
        ),
    );
    let publisher = |name: &str, kind: &str| {
        let topic = format!("fleet/{name}/pose");
        independent(&python, "dds_typed.py", &[&topic, "--kind", kind, "--domain", &domain])
    };
    let mut run = start_rondel(["run", &file, "--count", "2"]);
    run.wait_stderr("waiting for a publisher of dds:fleet/{robot}/pose, to resolve its type");
    let mut wrong = publisher("r1", "track");
    run.wait_stderr("has no such field");
    let mut right = publisher("r2", "pose");
    right.write(b"wait\n");
    run.wait_stderr("messages of demo::Pose, as its publisher describes them");
    right.wait_stdout("matched");
    right.write(b"write 1 2\n");
    let finished = run.finish();
    finished.expect_status(5).expect_stderr(&["received 2, checked 2"]);
    for publisher in [&mut wrong, &mut right] {
        publisher.close_input();
    }
    wrong.finish();
    right.finish();
}

#[test]
fn tap_prints_the_names_of_topics_that_match() {
    let folder = Folder::new();
    let spec = folder.file("a.rondel", SPEC);
    let (endpoint, domain) = (free_endpoint(), dds_domain().to_string());
    let on_dds = ["--dds-domain", &domain, "--dds-interface", "lo"].map(str::to_owned).to_vec();
    let on_zenoh = (zenoh_listening("peer", &endpoint), zenoh("peer", &endpoint));
    for (network, listening, publishing) in
        [("zenoh", on_zenoh.0.to_vec(), on_zenoh.1.to_vec()), ("dds", on_dds.clone(), on_dds)]
    {
        let addresses =
            [format!("{network}:fleet/{{robot}}/pose"), format!("{network}:fleet/{{robot}}/speed")];
        let own = ["tap", &addresses[0], &addresses[1], "--format", "json", "--count", "6"];
        let mut tap = start_rondel(arguments(&own, &listening));
        tap.wait_stderr("ready");
        publish_all(network, &publishing, &meant());
        let finished = tap.finish();
        finished.expect_status(0);
        assert!(finished.stdout.contains(&format!("\"{network}:fleet/r2/pose\"")), "{}", finished.stdout);
        let trace = folder.file("tap.jsonl", &finished.stdout);
        let said = rondel(["check", &spec, &trace, "--emit", "violations", "--quiet"]);
        said.expect_status(1);
        expect_violations(&said.stdout);
    }
}

/// No type is configured: the first publisher of a topic that matches describes it. A topic of another type is counted.
#[test]
fn the_type_of_matching_topics_is_resolved() {
    let Some(python) = python("parameters: the_type_of_matching_topics_is_resolved") else { return };
    let (folder, domain) = (Folder::new(), dds_domain().to_string());
    folder.file(
        "a.rondel",
        "topic pose \"fleet/{robot}/pose\" { number: int }\nproperty low for each r in pose.robot = pose.number < 3\n",
    );
    let file = folder.file(
        "rondel.yaml",
        format!(
            "specification: a.rondel\ndds: {{ domain: {domain}, interface: lo }}\n\
             topics: {{ pose: {{ source: \"dds:fleet/{{robot}}/pose\", encoding: cdr }} }}\nverdicts: {{ emit: violations, to: stdout }}\n"
        ),
    );
    let mut run = start_rondel(["run", &file]);
    run.wait_stderr("waiting for a publisher of dds:fleet/{robot}/pose, to resolve its type");
    let publisher = |name: &str, kind: &str| {
        let topic = format!("fleet/{name}/pose");
        independent(&python, "dds_typed.py", &[&topic, "--kind", kind, "--domain", &domain])
    };
    let mut first = publisher("r1", "pose");
    first.write(b"wait\n");
    run.wait_stderr("dds:fleet/{robot}/pose: messages of demo::Pose, as its publisher describes them");
    let mut second = publisher("r2", "pose");
    second.write(b"wait\n");
    for (publisher, command) in [(&mut first, b"write 1 2\n"), (&mut second, b"write 1 5\n")] {
        publisher.wait_stdout("matched");
        publisher.write(command);
        publisher.wait_stdout("wrote");
    }
    let other = publisher("r3", "track");
    run.wait_stderr("the topic is ignored: its type is demo::Track");
    run.wait_stdout("violated");
    run.terminate();
    let finished = run.finish();
    finished.expect_status(5).expect_stderr(&["received 7, checked 7"]);
    let violated: Vec<&str> = finished.stdout.lines().filter(|line| line.contains("violated")).collect();
    assert!(violated.len() == 1 && violated[0].contains("r2"), "{}", finished.stdout);
    for mut publisher in [first, second, other] {
        publisher.close_input();
        publisher.finish();
    }
}

#[test]
fn recordings_are_replayed_under_their_names() {
    expect_replayed("fleet/{robot}", "");
}

#[test]
fn recordings_are_replayed_under_the_names_of_a_deployment() {
    let topics = ["pose", "speed"].map(|topic| format!("{topic}: \"zenoh:line/of_{{robot}}/{topic}\""));
    expect_replayed("line/of_{robot}", &format!("topics: {{ {} }}\n", topics.join(", ")));
}

/// Replays a recording with a deployment with these topics, and expects its violations of a run that reads topics below
/// `place`.
#[track_caller]
fn expect_replayed(place: &str, topics: &str) {
    let folder = Folder::new();
    folder.file("a.rondel", SPEC);
    let endpoint = free_endpoint();
    let sources = ["pose", "speed"].map(|topic| format!("{topic}=zenoh:{place}/{topic}"));
    let more = ["--topic", &sources[0], "--topic", &sources[1]];
    let spec = folder.path("a.rondel");
    let own =
        [&["run", &spec, "--publish", "stdout", "--emit", "violations", "--count", "6"], &more[..]].concat();
    let mut run = start_rondel(arguments(&own, &zenoh_listening("peer", &endpoint)));
    run.wait_stderr("ready");
    let line = |(topic, time, field, value): &(&str, u32, &str, f64)| {
        format!("{{\"topic\":\"{topic}\",\"time\":{time},\"data\":{{\"{field}\":{value}}}}}\n")
    };
    let trace = folder.file("a.jsonl", MESSAGES.iter().map(line).collect::<String>());
    let deployment = format!(
        "specification: a.rondel\nzenoh: {{ mode: peer, connect: {endpoint} }}\n{topics}verdicts: {{ to: stdout }}\n"
    );
    let deployment = folder.file("d.yaml", deployment);
    rondel(["replay", &deployment, &trace, "--as-fast-as-possible", "--wait", "60"]).expect_status(0);
    let finished = run.finish();
    finished.expect_status(0);
    expect_violations(&finished.stdout);
}

#[test]
fn brokers_deliver_all_names() {
    let Some(broker) = Broker::start("brokers_deliver_all_names") else { return };
    let folder = Folder::new();
    // Part of a segment: the filter delivers more than the address means.
    let spec = folder.file(
        "a.rondel",
        SPEC.replace("fleet/{robot}/pose", "fleet/r{robot}/pose")
            .replace("\"r1\", \"r2\"", "\"1\", \"2\"")
            .replace("== 2", "== 1")
            .replace("fleet/{robot}/speed", "fleet/r{robot}/speed"),
    );
    let deployment = format!(
        "specification: {spec}\nmqtt:\n  broker: 127.0.0.1:{}\nverdicts: {{ emit: violations, to: stdout }}\n",
        broker.port
    );
    let deployment = folder.file("rondel.yaml", deployment);
    let mut run = start_rondel(["run", &deployment, "--count", "6"]);
    run.wait_stderr("ready");
    let others = [("fleet/s1/pose", 0, "x", 0.0), ("fleet/r/pose", 0, "x", 0.0)];
    for (topic, _, field, value) in others.into_iter().chain(MESSAGES) {
        let mut publishing = broker
            .client("mosquitto_pub", &["-q", "1", "-t", topic, "-l"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(publishing.stdin.take().unwrap(), "{{\"{field}\":{value}}}").unwrap();
        assert!(publishing.wait().unwrap().success());
    }
    let finished = run.finish();
    finished.expect_status(0).expect_stderr(&["received 6, checked 6"]);
    let violated = finished.stdout.lines().filter(|line| line.contains("violated")).count();
    assert_eq!(violated, 2, "{}", finished.stdout);
}

#[test]
fn tests_write_parameters_as_fields() {
    let folder = Folder::new();
    let spec = folder.file(
        "a.rondel",
        format!(
            "{SPEC}test \"dock\" {{\n  at 0 s pose {{ robot: \"r1\", x: 1 }}\n  at 1 s speed {{ robot: \"r2\", value: 3 }}\n  \
             expect slow never violated\n}}\ntest \"fast\" {{\n  at 0 s pose {{ robot: \"r1\", x: 1 }}\n  at 1 s speed {{ \
             robot: \"r1\", value: 3 }}\n  expect slow[\"r1\"] violated at 1 s\n}}\n"
        ),
    );
    rondel(["test", &spec]).expect_status(0);
}

#[test]
fn addresses_that_do_not_fit_are_refused() {
    let folder = Folder::new();
    let spec =
        folder.file("a.rondel", "topic pose \"fleet/{robot}/pose\" { x: float }\nproperty p = pose.x < 2\n");
    let plain =
        folder.file("b.rondel", "topic pose \"fleet/r1/pose\" { x: float }\nproperty p = pose.x < 2\n");
    for (spec, source, reason) in [
        (&spec, "zenoh:fleet/r1/pose", "has to have the parameters"),
        (&spec, "zenoh:fleet/{other}/pose", "has to have the parameters"),
        (&spec, "dds:fleet/pose", "has to have the parameters"),
        (&spec, "dds:fleet/{other}/pose", "has to have the parameters"),
        (&spec, "dds:fleet/{robot/pose", "this parameter is not closed"),
        (&spec, "ros2:/fleet/{robot}{arm}/pose", "nothing separates these parameters"),
        (&plain, "mqtt:fleet/{robot}/pose", "write them in the specification too"),
    ] {
        let said = rondel(["run", spec, "--topic", source, "--publish", "stdout"]);
        said.expect_status(2);
        assert!(said.stderr.contains(reason), "{source}: {}", said.stderr);
    }
    let said = rondel(["run", &plain, "--topic", "zenoh:fleet/r1/pose", "--publish", "zenoh:a/{b}"]);
    said.expect_status(2);
    assert!(said.stderr.contains("has no parameters"), "{}", said.stderr);
    let alive = "topic pose \"fleet/{robot}/pose\" { x: float }\nproperty p = alive(pose)\n";
    folder.file("c.rondel", alive);
    let deployment = "specification: c.rondel\ndds: {}\ntopics: { pose: \"dds:fleet/{robot}/pose\" }\nverdicts: { to: stdout }\n";
    let said = rondel(["validate", &folder.file("d.yaml", deployment)]);
    said.expect_status(2);
    assert!(said.stderr.contains("name one topic"), "{}", said.stderr);
}
