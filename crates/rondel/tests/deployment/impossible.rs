//! Settings that are well-formed and cannot be used.

use super::support::{Folder, rondel};
use super::{accepted, refused};

#[test]
fn sources_and_places_that_cannot_be() {
    refused("formula: v\nzenoh: {}\ndds: {}\n", &[("", &["trace", "no source"])]);
    refused("formula: v\ntopics: { trace: stdout }\n", &[("2:18", &["stdout"])]);
    refused(
        "formula: v\ntopics: { trace: \"zenoh:a/*\" }\nverdicts: { to: zenoh:a/b }\n",
        &[("3:17", &["come back"])],
    );
    refused("formula: v\ntopics: { trace: a/b }\n", &[("2:18", &["zenoh"])]);
    refused("formula: v\ntopics: { trace: \"zenoh:\" }\n", &[("2:18", &[])]);
    refused("formula: v\ntopics: { trace: \"zenoh:a//b\" }\n", &[("2:18", &["a//b"])]);
    refused("formula: v\ntopics: { trace: \"dds:1 x\" }\n", &[("2:18", &[])]);
    refused("formula: v\ntopics: { trace: { encoding: json } }\n", &[("2:18", &["source"])]);
    refused("formula: v\ntopics: { trace: { source: zenoh:a, type: t } }\n", &[("2:43", &["DDS"])]);
    let plain = |rest: &str| format!("formula: value\ntopics: {{ trace: {{ source: mqtt:a, {rest} }} }}\n");
    refused(&plain("encoding: plain, true_words: [ON, on]"), &[("2:70", &["on", "twice"])]);
    refused(&plain("encoding: plain, true_words: a, false_words: A"), &[("2:81", &["a", "twice"])]);
    refused(&plain("true_words: a"), &[("2:18", &["encoding: plain"])]);
    refused(&plain("texts: yes"), &[("2:43", &["`texts` must be numbers"])]);
    refused(&plain("strings: numbers"), &[("", &["texts: numbers"])]);
    refused("formula: v\ntopics: { trace: \"zenoh+xdr:a\" }\n", &[("2:18", &["xdr", "json, cdr, "])]);
    refused("formula: v\ntopics: { trace: \"zenoh+cdr:a\" }\n", &[("2:18", &["cdr", "`type:`"])]);
    refused(
        "formula: v\ntopics: { trace: { source: dds:a, encoding: cdr_string } }\n",
        &[("2:45", &["DDS"])],
    );
    refused(
        "formula: v\ntopics: { trace: { source: zenoh:a, encoding: cdr_string } }\nverdicts: { to: zenoh:a }\n",
        &[("3:17", &["zenoh+cdr_string:a", "come back"])],
    );
    refused(
        "formula: v\ntopics: { trace: { source: dds:a, type: \"a b\" } }\n",
        &[("2:41", &["a b", "type"])],
    );
    refused(
        "formula: v\ntopics: { trace: zenoh:a }\nzenoh: { config: missing.json5 }\n",
        &[("3:18", &["missing.json5"])],
    );
    for endpoint in
        ["tcp/", "tcp/127.0.0.1", "127.0.0.1:7447", "carrier-pigeon/x:1", "tcp/127.0.0.1:99999999"]
    {
        refused(
            &format!("formula: v\ntopics: {{ trace: zenoh:a }}\nzenoh: {{ connect: \"{endpoint}\" }}\n"),
            &[("3:19", &[endpoint])],
        );
    }
}

#[test]
fn numbers_of_workers_that_cannot_be() {
    let with = |value: &str| format!("formula: v\ntopics: {{ trace: zenoh:a }}\nworkers: {value}\n");
    for wrong in ["0", "-1", "65", "1000", "1.5", "many", "AUTO", "true", "\"\""] {
        refused(&with(wrong), &[("3:10", &["`workers` must be a number from 1 to 64, or auto"])]);
    }
    refused(&with("[2]"), &[("3:10", &["`workers` must be text"])]);
    refused(&with(""), &[("", &["`workers` has no value"])]);
    refused("formula: v\ntopics: { trace: zenoh:a }\nthreads: 2\n", &[("3:1", &["write `workers`"])]);
    for right in ["1", "64", "auto", "\"4\""] {
        assert_eq!(accepted(&with(right), &[]), "", "{right}");
    }
    accepted(&with("3"), &["workers", "3, which evaluate bursts"]);
}

#[test]
fn workers_without_effect_are_explained() {
    let vehicle = "specification: vehicle.rondel\nzenoh: {}\nworkers: 4\n";
    assert!(!accepted(vehicle, &[]).contains("one thread"));
    let alignment = "alignment: { policy: event_time, max_wait: estimate 0.99 }\n";
    let aligned = accepted(&format!("{vehicle}{alignment}"), &[]);
    assert!(
        aligned.contains("`workers: 4`: one thread evaluates all messages, as messages wait"),
        "{aligned}"
    );
}

#[test]
fn settings_of_mqtt_that_cannot_be() {
    let beside = "formula: v\ntopics: { trace: mqtt:a }\n";
    for (section, words) in [
        ("{ broker: \"http://a\" }", "is not an MQTT broker"),
        ("{ broker: \"mqtt://me:secret@a\" }", "not in the broker's address"),
        ("{ version: 4 }", "`version` must be 5 or 3.1.1"),
        ("{ qos: 3 }", "from 0 to 2"),
        ("{ user: me, password: secret }", "does not belong in this file"),
        ("{ password_env: X }", "needs a user"),
        ("{ user: me, password_env: X, password_file: x }", "not both"),
        ("{ user: me, password_file: none }", "No such file"),
        ("{ clean_start: false }", "needs a client id"),
        ("{ keep_alive: 0 }", "from 1 to 65535"),
        ("{ tls: { ca: none.pem } }", "none.pem"),
        ("{ tls: { ca: /dev/zero } }", "/dev/zero: it has more than 16 MiB"),
        ("{ user: me, password_file: /dev/zero }", "/dev/zero: it has more than 16 MiB"),
        ("{ tls: { certificate: rondel.yaml } }", "needs its key"),
        ("{ broker: \"mqtt://a\", tls: {} }", "mqtts://"),
        ("{ tsl: {} }", "mqtt has no setting 'tsl'"),
    ] {
        refused(&format!("{beside}mqtt: {section}\n"), &[("", &[words])]);
    }
    refused(
        "formula: v\ntopics: { trace: { source: zenoh:a, qos: 1 } }\n",
        &[("", &["`qos` belongs to topics on MQTT, DDS and ROS 2"])],
    );
    refused(
        "formula: v\ntopics: { trace: \"mqtt:a/#\" }\nverdicts: { to: mqtt:a/b }\n",
        &[("", &["would come back as messages of mqtt:a/#"])],
    );
    refused("formula: v\ntopics: { trace: \"mqtt:a#\" }\n", &[("", &["# must be the whole last level"])]);
}

#[test]
fn ports_that_do_not_exist() {
    let start = "formula: v\ntopics: { trace: zenoh:a }\n";
    for (section, place, port) in [
        ("mqtt: { broker: \"localhost:99999\" }", "3:17", "99999"),
        ("mqtt: { broker: \"mqtts://[::1]:65536\" }", "3:17", "65536"),
        ("mqtt: { broker: \"localhost:0\" }", "3:17", "0"),
        ("zenoh: { connect: tcp/127.0.0.1:99999 }", "3:19", "99999"),
        ("zenoh: { connect: tcp/127.0.0.1:0 }", "3:19", "0"),
        ("zenoh: { listen: [\"tls/[::]:70000\"] }", "3:19", "70000"),
    ] {
        let words = format!("port {port} is not between 1 and 65535");
        refused(&format!("{start}{section}\n"), &[(place, &[&words])]);
    }
    // Port 0 listens on a free port.
    accepted(&format!("{start}zenoh: {{ listen: tcp/127.0.0.1:0 }}\n"), &["tcp/127.0.0.1:0"]);
    let run = ["run", "-f", "v", "--topic", "mqtt:a", "--mqtt-broker", "localhost:99999"];
    rondel(run).expect_status(2).expect_stderr(&["port 99999 is not between 1 and 65535"]);
    let run = ["run", "-f", "v", "--topic", "zenoh:a", "--zenoh-connect", "tcp/a:99999"];
    rondel(run).expect_status(2).expect_stderr(&["port 99999 is not between 1 and 65535"]);
}

#[test]
fn times_that_a_schema_does_not_have() {
    let folder = Folder::new();
    let specification = |schema: &str| format!("topic gear {schema}\nproperty p = gear.report == 2\n");
    let trace = folder.file("trace.jsonl", "{\"topic\":\"gear\",\"time\":1,\"report\":2,\"stamp\":1}\n");
    for (schema, time, nearest) in [
        ("{ report: int, stamp: time }", "timestamp", Some("`stamp: time`")),
        ("{ report: int, header: { stamp: time } }", "time", Some("`header.stamp: time`")),
        ("{ report: int, header: { stamp: float } }", "header.stmap", Some("`header.stamp: float`")),
        ("{ report: int, stamp: float }", "timestamp", Some("`stamp: float`")),
        ("{ report: int, stamp: time }", "stamp", None),
        ("{ report: int, header: { stamp: { sec: int, nanosec: int } } }", "header.stamp", None),
        // A message may carry more fields than its schema.
        ("{ report: int, timeout: float }", "time", None),
        ("{ report: int }", "stamp", None),
        ("", "stamp", None),
        ("{ report: int, stamp: time }", "source", None),
    ] {
        let spec = folder.file("gear.rondel", specification(schema));
        let topics = format!("topics: {{ gear: {{ source: zenoh:a, time: {time} }} }}\n");
        let file = folder.file("rondel.yaml", format!("specification: gear.rondel\n{topics}"));
        let validated = rondel(["validate", &file]);
        let checked = rondel(["check", &spec, &trace, "--time-field", time]);
        let Some(nearest) = nearest else {
            assert_eq!(validated.status, Some(0), "{schema} {time}\n{}", validated.stderr);
            assert_ne!(checked.status, Some(2), "{schema} {time}\n{}", checked.stderr);
            continue;
        };
        let words = format!("topic 'gear' has no field '{time}'; its schema has {nearest}");
        validated.expect_status(2).expect_stderr(&["rondel.yaml:2:42: ", &words]);
        checked.expect_status(2).expect_stderr(&["--time-field", &words]);
        let run = ["run", &spec, "--topic", "gear=zenoh:a", "--time-from", time];
        rondel(run).expect_status(2).expect_stderr(&["--time-from", &words]);
    }
}

#[test]
fn places_that_are_used_twice() {
    let topics = "specification: vehicle.rondel\ntopics: { gear: zenoh:g, speed: zenoh:s }\n";
    for (rest, place, words) in [
        (
            "alignment: { progress: zenoh:g }",
            "3:24",
            &[
                "`progress` of `alignment` reads progress markers on zenoh:g",
                "topic 'gear'",
                "use different topics",
            ][..],
        ),
        (
            "alignment: { reports: zenoh:s }",
            "3:23",
            &["reports on zenoh:s", "`reports` of `alignment`", "topic 'speed'"],
        ),
        (
            "alignment: { progress: \"zenoh:p/*\", reports: zenoh:p/r }",
            "3:46",
            &["reports on zenoh:p/r", "read as progress markers from zenoh:p/*", "`reports`", "`progress`"],
        ),
        (
            "alignment: { progress: zenoh:v/slow }\nverdicts: { to: [stdout, \"zenoh:v\"] }",
            "4:26",
            &["verdicts on zenoh:v/slow", "`to` of `verdicts`", "`progress` of `alignment`"],
        ),
        (
            "alignment: { reports: [stdout, zenoh:r] }\nverdicts: { to: stdout, properties: { slow: zenoh:r } }",
            "4:45",
            &["property 'slow' of `verdicts` publishes verdicts on zenoh:r", "`reports` of `alignment`"],
        ),
        (
            "verdicts: { properties: { slow: zenoh:g } }",
            "3:33",
            &[
                "verdicts on zenoh:g would come back as messages of zenoh:g",
                "property 'slow'",
                "topic 'gear'",
            ],
        ),
    ] {
        refused(&format!("{topics}{rest}\n"), &[(place, words)]);
    }
    for (rest, place, words) in [
        (
            "synchronize: { to: dds:b }",
            "2:20",
            &["come back as messages of dds:b", "`to` of `synchronize`", "topic 'b'"][..],
        ),
        (
            "alignment: { reports: zenoh:r }\nsynchronize: { to: zenoh:r }",
            "3:20",
            &["`to` of `synchronize` publishes synchronized messages on zenoh:r", "`reports` of `alignment`"],
        ),
        (
            "alignment: { progress: zenoh:r }\nsynchronize: { to: zenoh:r }",
            "3:20",
            &["synchronized messages on zenoh:r", "`progress` of `alignment`"],
        ),
    ] {
        refused(&format!("topics: {{ a: zenoh:a, b: dds:b }}\n{rest}\n"), &[(place, words)]);
    }
    accepted(&format!("{topics}alignment: {{ reports: stdout }}\nverdicts: {{ to: stdout }}\n"), &["stdout"]);
}

#[test]
fn sizes_are_whole_numbers_and_settings_of_files_need_files() {
    let start = "specification: vehicle.rondel\nzenoh: {}\n";
    for (section, place, words) in [
        ("limits: { message: 1.5 MiB }", "3:20", "`message` must be a whole number with a unit"),
        ("limits: { resend: 0.5 GB }", "3:19", "`resend` must be a whole number with a unit"),
        ("slow_consumer: { then: wait }", "3:24", "`then` of `slow_consumer` must be drop or spool"),
        ("slow_consumer: { then: drop, limit: 1 GB }", "3:37", "`limit` belongs to `then: spool`"),
        ("slow_consumer: { then: drop, directory: a }", "3:41", "`directory` belongs to `then: spool`"),
        (
            "slow_consumer: { then: spool, limit: 1.5 GB }",
            "3:38",
            "`limit` must be a whole number with a unit",
        ),
        ("slow_consumer: { then: spool, folder: a }", "3:31", "write `directory`"),
    ] {
        refused(&format!("{start}{section}\n"), &[(place, &[words])]);
    }
}

#[test]
fn a_folder_that_cannot_keep_verdicts_is_refused_before_anything_starts() {
    let folder = Folder::new();
    folder.file("file", "");
    let deployment = |directory: &str, to: &str| {
        let text = format!(
            "formula: v\nmqtt: {{ broker: 127.0.0.1:1 }}\ntopics: {{ trace: mqtt:a }}\nverdicts: {{ to: \"{to}\" }}\n\
             slow_consumer: {{ then: spool, directory: {directory} }}\n"
        );
        folder.file("rondel.yaml", text)
    };
    for (directory, why) in [("file", "/file is not a folder"), ("file/below", "/file is not a folder")] {
        let deployment = deployment(directory, "mqtt:v");
        for command in ["validate", "run"] {
            let finished = rondel([command, &deployment]);
            finished.expect_status(3).expect_stderr(&["cannot keep verdicts in the folder", why]);
            assert!(finished.stderr.lines().count() == 1, "{}", finished.stderr);
        }
    }
    // `run` refuses files with other content before it joins a network.
    folder.file("kept/stdout.spool", "something else");
    let finished = rondel(["run", &deployment("kept", "stdout")]);
    finished.expect_status(3).expect_stderr(&["stdout.spool", "it is not a spool of verdicts"]);
}
