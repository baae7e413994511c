//! Mistakes in deployments: each is explained with its place.

use super::support::{Folder, rondel};
use super::{accepted, refused, validate};

#[test]
fn every_mistake_is_reported_at_once() {
    refused(
        "specification: vehicle.rondel\n\
         colour: blue\n\
         zenoh:\n\
         \x20 mode: pear\n\
         \x20 lisen: tcp/127.0.0.1:7447\n\
         \x20 connect: [\"nonsense\"]\n\
         dds:\n\
         \x20 domain: 231\n\
         topics:\n\
         \x20 gaer: zenoh:gear\n\
         \x20 gear: mqt:gear\n\
         \x20 speed: { source: zenoh:speed, encoding: xdr, time_unit: h }\n\
         verdicts:\n\
         \x20 emit: sometimes\n\
         \x20 to: zenoh:verdict/*\n\
         \x20 properties:\n\
         \x20   slwo: zenoh:slow\n\
         exit_on_unreachable: perhaps\n",
        &[
            ("2:1", &["colour"]),
            ("4:9", &["peer", "client", "router"]),
            ("5:3", &["lisen", "did you mean 'listen'"]),
            ("6:13", &["nonsense"]),
            ("8:11", &["0", "230"]),
            ("10:3", &["gaer", "did you mean 'gear'"]),
            ("11:9", &["did you mean 'mqtt'"]),
            ("12:43", &["xdr", "json"]),
            ("12:59", &["s, ms, us"]),
            ("14:9", &["change, every or violations"]),
            ("15:7", &["wildcards"]),
            ("17:5", &["slwo", "did you mean 'slow'"]),
            ("18:22", &["true or false"]),
        ],
    );
}

#[test]
fn wrong_types_of_settings() {
    refused("formula: v\ntopics: [zenoh:a]\n", &[("2:9", &["topics", "mapping"]), ("2:9", &["trace"])]);
    refused("formula: [v]\ntopics: { trace: zenoh:a }\n", &[("1:10", &["text", "list"])]);
    refused("formula: v\ntopics: { trace: 7 }\n", &[("2:18", &["7", "address"])]);
    refused("formula: v\ntopics: { trace: zenoh:a }\nzenoh: peer\n", &[("3:8", &["mapping"])]);
    refused("formula: v\ntopics: { trace: zenoh:a }\ndds: { domain: one }\n", &[("3:16", &["whole number"])]);
    refused("formula: v\ntopics: { trace: zenoh:a }\ndds: { domain: -1 }\n", &[("3:16", &["0", "230"])]);
    refused("formula: v\ntopics: { trace: zenoh:a }\nverdicts: { to: { a: b } }\n", &[("3:17", &["text"])]);
    refused("- formula\n- v\n", &[("1:1", &["mapping"]), ("1:1", &["nothing to check"])]);
}

#[test]
fn files_that_are_no_deployments() {
    for (deployment, words) in [
        ("", &["empty"][..]),
        ("# nothing but a remark\n", &["empty"]),
        ("formula: v\n---\nformula: v\n", &["second document"]),
        ("formula: [v\n", &["rondel.yaml:"]),
        ("formula: \"v\n", &["rondel.yaml:"]),
        ("\tformula: v\n", &["rondel.yaml:"]),
        ("formula: v\nformula: w\ntopics: { trace: zenoh:a }\n", &["rondel.yaml:2:1", "duplicate"]),
    ] {
        let finished = validate(deployment);
        assert_eq!(finished.status, Some(2), "{deployment:?}\n{}", finished.stderr);
        finished.expect_stderr(&["error: "]).expect_stderr(words);
    }
    let folder = Folder::new();
    let missing = folder.path("none.yaml");
    rondel(["validate", &missing]).expect_status(2).expect_stderr(&["none.yaml", "No such file"]);
    let binary = folder.file("binary.yaml", b"formula: \xff\n");
    rondel(["validate", &binary]).expect_status(2).expect_stderr(&["binary.yaml"]);
    rondel(["validate", &folder.path("")]).expect_status(2);
}

#[test]
fn a_missing_or_invalid_specification_is_refused() {
    refused("topics: { trace: zenoh:a }\n", &[("1:1", &["specification", "formula"])]);
    refused(
        "specification: vehicle.rondel\nformula: v\nzenoh: {}\n",
        &[("1:16", &["either `specification:` or `formula:`"])],
    );
    refused(
        "specification: vehicel.rondel\nzenoh: {}\n",
        &[("", &["No such file"]), ("1:16", &["vehicel.rondel"])],
    );
    refused("formula: v\nsyntax: reelay\ntopics: { trace: zenoh:a }\n", &[("2:9", &["rondel or rye"])]);

    // Mistakes in the specification and in the deployment are shown together.
    let folder = Folder::new();
    folder.file("wrong.rondel", "topic gear { report: int }\nproperty p = gear.reprot == 2\n");
    let file = folder.file("rondel.yaml", "specification: wrong.rondel\nzenoh: { mod: peer }\n");
    rondel(["validate", &file]).expect_status(2).expect_stderr(&[
        "E0301",
        "wrong.rondel:2:19",
        "rondel.yaml:1:16",
        "rondel.yaml:2:10",
        "did you mean 'mode'",
    ]);
}

#[test]
fn a_missing_source_offers_the_forms_of_addresses() {
    let all = ["`zenoh:KEY`, `dds:TOPIC`, `mqtt:TOPIC` or `ros2:/TOPIC`"];
    refused("formula: v\n", &[("1:1", &["topic 'trace' has no source", "`trace: ADDRESS`", all[0]])]);
    refused("formula: v\nzenoh: {}\nmqtt: {}\n", &[("1:1", &all)]);
    refused("formula: v\ntopics: { trace: { time: t } }\n", &[("2:18", &["needs `source:`", all[0]])]);
    for (section, form) in [("zenoh", "`zenoh:KEY`"), ("dds", "`dds:TOPIC`"), ("mqtt", "`mqtt:TOPIC`")] {
        let deployment = format!("formula: v\n{section}: {{}}\ntopics: {{ trace: {{ time: t }} }}\n");
        refused(&deployment, &[("3:18", &[&format!("which is {form}")])]);
    }
    // An address of the specification that the only network does not have.
    let folder = Folder::new();
    folder.file("wild.rondel", "topic gear \"demo/#/x\"\nproperty p = gear.report == 2\n");
    for (section, form) in [("zenoh", "zenoh:KEY"), ("dds", "dds:TOPIC"), ("mqtt", "mqtt:TOPIC")] {
        let file = folder.file("rondel.yaml", format!("specification: wild.rondel\n{section}: {{}}\n"));
        let form = format!("`gear: ADDRESS` under `topics:`, where ADDRESS is `{form}`");
        rondel(["validate", &file]).expect_status(2).expect_stderr(&["rondel.yaml:1:1", "demo/#/x", &form]);
    }
    rondel(["run", "-f", "v"]).expect_status(2).expect_stderr(&[
        "--topic ADDRESS, where ADDRESS is zenoh:KEY, dds:TOPIC, ros2:/TOPIC or mqtt:TOPIC",
    ]);
}

#[test]
fn settings_under_other_names_are_recognised() {
    let start = "formula: v\n";
    let trace = "topics: { trace: zenoh:a }\n";
    for (section, place, words) in [
        ("mqtt: { host: a }", "3:9", "mqtt has no setting 'host'; write `broker`"),
        ("mqtt: { url: a }", "3:9", "write `broker`"),
        ("mqtt: { server: a }", "3:9", "write `broker`"),
        ("mqtt: { address: a }", "3:9", "write `broker`"),
        ("mqtt: { port: 1883 }", "3:9", "write `broker`"),
        ("mqtt: { username: a }", "3:9", "write `user`"),
        (
            "mqtt: { user: me, password: secret }",
            "3:19",
            "'password'; use password_file or password_env: a password does not belong in this file",
        ),
        ("mqtt: { ca_file: a }", "3:9", "write `tls: { ca: FILE }`"),
        ("mqtt: { cafile: a }", "3:9", "write `tls: { ca: FILE }`"),
        ("mqtt: { tls: { cafile: a } }", "3:16", "write `ca`"),
        ("zenoh: { endpoint: a }", "3:10", "write `connect`"),
        ("zenoh: { router: a }", "3:10", "write `connect`"),
        ("dds: { domain_id: 7 }", "3:8", "write `domain`"),
        (
            "alignment: { tolerance: 1 s }",
            "3:14",
            "write `epsilon` with `policy: epsilon`, or `max_interval`",
        ),
        ("alignment: { slop: 1 s }", "3:14", "write `epsilon` with `policy: epsilon`, or `max_interval`"),
        ("sinks: zenoh:b", "3:8", "belong in the section `verdicts`"),
        ("output: zenoh:b", "3:1", "write `verdicts`"),
        ("publish: zenoh:b", "3:1", "write `verdicts`"),
    ] {
        refused(&format!("{start}{trace}{section}\n"), &[(place, &[words])]);
    }
    for (setting, words) in [("timestamp: t", "write `time`"), ("time_stamp: t", "did you mean 'time'?")] {
        refused(
            &format!("{start}topics: {{ trace: {{ source: zenoh:a, {setting} }} }}\n"),
            &[("2:37", &[words])],
        );
    }
    for setting in ["address", "topic"] {
        refused(
            &format!("{start}topics: {{ trace: {{ {setting}: zenoh:a }} }}\n"),
            &[("2:20", &["write `source`"]), ("2:18", &["needs `source:`"])],
        );
    }
    // The names that are offered are accepted.
    for (section, no) in [("mqtt: { xyzzy: 1 }", "password,"), ("alignment: { xyzzy: 1 }", "tardy")] {
        let finished = validate(&format!("{start}{trace}{section}\n"));
        finished.expect_status(2).expect_stderr(&["its settings are: "]);
        assert!(!finished.stderr.contains(no), "{}", finished.stderr);
    }
    validate(&format!("{start}{trace}alignment: {{ tardy: drop }}\n"))
        .expect_status(0)
        .expect_stderr(&["rondel.yaml:3:21: `tardy` of `alignment` is now called `late`"]);
    refused(
        &format!("{start}{trace}alignment: {{ tardy: drop, late: inconclusive }}\n"),
        &[("3:21", &["`tardy` is the former name of `late`: write only `late`"])],
    );
}

#[test]
fn environment_variables_are_refused() {
    let topics = "topics: { trace: zenoh:a }\n";
    for (section, place, variable) in [
        ("mqtt:\n  broker: ${BROKER}\n", "4:11", "${BROKER}"),
        ("mqtt:\n  broker: $BROKER\n", "4:11", "$BROKER"),
        ("mqtt:\n  broker: ${BROKER:-localhost}:1883\n", "4:11", "${BROKER:-localhost}"),
        ("mqtt: { broker: ${BROKER} }\n", "3:18", "${BROKER}"),
        ("dds:\n  domain: ${DOMAIN}\n", "4:11", "${DOMAIN}"),
        ("zenoh:\n  connect: [\"tcp/${HOST}:7447\"]\n", "4:13", "${HOST}"),
        ("verdicts:\n  to: zenoh:${ROBOT}/verdict\n", "4:7", "${ROBOT}"),
    ] {
        let words = ["environment variables are not expanded", "write the value", variable, "`password_env:"];
        refused(&format!("formula: v\n{topics}{section}"), &[(place, &words)]);
    }
    let shared = accepted("formula: v\ntopics: { trace: \"mqtt:$share/g/a\" }\n", &["mqtt:$share/g/a"]);
    assert!(shared.contains("the broker chooses which of the runs that share topic"), "{shared}");
    accepted("formula: v\ntopics: { trace: \"mqtt:$SYS/broker\" }\n", &["mqtt:$SYS/broker"]);
    accepted("formula: 's == \"${X}\"'\ntopics: { trace: \"zenoh:a/b$*\" }\n", &["zenoh:a/b$*"]);
}

#[test]
fn files_without_end_are_refused() {
    let endless = "specification: /dev/zero\nzenoh: {}\n";
    refused(endless, &[("", &["/dev/zero", "more than 16 MiB"]), ("1:16", &["/dev/zero"])]);
    rondel(["validate", "/dev/zero"]).expect_status(2).expect_stderr(&["/dev/zero", "more than 16 MiB"]);
    let folder = Folder::new();
    let large = |name| {
        let path = folder.path(name);
        std::fs::File::create(&path).unwrap().set_len((16 << 20) + 1).unwrap();
        path
    };
    let limit = "it has 16,777,217 bytes, and the limit is 16 MiB";
    let words = ["large.rondel", limit];
    rondel(["validate", &large("large.yaml")]).expect_status(2).expect_stderr(&["large.yaml", limit]);
    rondel(["check", &large("large.rondel"), "none.jsonl"]).expect_status(2).expect_stderr(&words);
    let file = folder.file("rondel.yaml", "specification: large.rondel\nzenoh: {}\n");
    rondel(["validate", &file]).expect_status(2).expect_stderr(&words);
}

#[test]
fn mistakes_of_yaml_are_explained() {
    for (deployment, place, words) in [
        ("", "1:1", &["the file is empty", "`specification:` or `formula:`"][..]),
        ("formula: v\n---\nformula: v\n", "3:1", &["a second document begins here"]),
        ("zenoh:\n  mode: peer\nmqtt: {}\nzenoh: {}\n", "4:1", &["duplicate setting 'zenoh'", "line 1"]),
        (
            "zenoh:\n  mode: peer\n  mode: peer\n",
            "3:3",
            &["duplicate setting 'mode'", "line 2", "keep only one"],
        ),
        ("zenoh: { mode: peer, mode: client }\n", "1:22", &["duplicate setting 'mode'; keep only one"]),
        ("zenoh:\n\tmode: peer\n", "2:1", &["a tab indents this line", "only spaces"]),
        ("zenoh:\n  mode: a\n\tlisten: b\n", "3:1", &["a tab indents this line"]),
        ("formula: [v\n", "2:1", &["`[` lacks its `]`"]),
        ("zenoh: { mode: peer\nformula: v\n", "2:8", &["`{` lacks its `}`"]),
        ("formula: \"v\n", "1:10", &["lacks its closing quotation mark"]),
        ("formula: a: b\n", "1:11", &["value that contains `: ` in quotation marks"]),
        ("formula: @x\n", "1:10", &["put the value in quotation marks"]),
        ("topics: { trace: *x }\n", "1:18", &["begins with `*`", "quotation marks"]),
        ("formula: v\nmqtt: {broker: a}}\n", "2:18", &["closes nothing"]),
    ] {
        refused(deployment, &[(place, words)]);
    }
    let trace = "formula: v\ntopics: { trace: zenoh:a }\n";
    for (section, place, words) in [
        ("mqtt: [broker]", "3:7", &["mqtt must be a mapping (name: value), not a list", "without `-`"][..]),
        ("mqtt:\n  - broker: a", "4:3", &["mqtt must be a mapping (name: value), not a list", "without `-`"]),
        ("verdicts: zenoh:b", "3:11", &["verdicts must be a mapping (name: value), not text"]),
        ("zenoh: { connect: { a: b } }", "3:19", &["`connect` must be text, not a mapping"]),
        (
            "alignment: { max_wait: 5 }",
            "3:24",
            &["`max_wait` must be a duration such as 50 ms", "5 has no unit"],
        ),
        ("zenoh: { mode: }", "3:14", &["`mode` has no value"]),
        ("? [a]\n: b", "3:3", &["name of a setting must be text, not a list"]),
    ] {
        refused(&format!("{trace}{section}\n"), &[(place, words)]);
    }
}

#[test]
fn reload_is_watch_or_request() {
    let with = |setting: &str| {
        format!(
            "specification: vehicle.rondel\n{setting}\ntopics: {{ gear: zenoh:gear, speed: zenoh:speed }}\n"
        )
    };
    refused(&with("reload: always"), &[("2:9", &["`reload` must be watch, or request"])]);
    refused(&with("hot_reload: true"), &[("2:1", &["write `reload: watch`"])]);
    assert_eq!(validate(&with("reload: watch")).status, Some(0));
    assert_eq!(validate(&with("reload: request")).status, Some(0));
}

#[cfg(feature = "registry")]
#[test]
fn mistakes_of_schema_registries_are_found() {
    for (settings, words) in [
        ("encoding: avro", &["name a schema registry with `registry:`"][..]),
        ("encoding: avro, registry: \"https://r\"", &["without TLS"]),
        ("encoding: avro, registry: \"r:8081\"", &["`registry`: must be an address such as http://"]),
        ("encoding: avro, registry: { user: u, password_env: P }", &["`registry` needs `url`"]),
        ("encoding: avro, registry: { url: \"http://r\", user: u }", &["belong together"]),
        ("encoding: avro, registry: { url: \"http://r\", password: p }", &["write `password_env: VARIABLE`"]),
        ("encoding: avro, registry: { url: \"http://u:p@r\" }", &["the address has a user"]),
        ("encoding: avro, type: a.B, registry: \"http://r\"", &["`type` and `registry` exclude each other"]),
        ("registry: \"http://r\"", &["add `encoding: avro`"]),
    ] {
        let deployment =
            format!("formula: v\nmqtt: {{}}\ntopics: {{ trace: {{ source: mqtt:a, {settings} }} }}\n");
        refused(&deployment, &[("", words)]);
    }
    let good =
        "formula: v\ntopics: { trace: { source: mqtt:a, encoding: avro, registry: \"http://r:8081\" } }\n";
    validate(good).expect_status(0);
}

/// Every build finds mistakes in the section; one without Kafka also refuses to run it.
#[test]
fn mistakes_of_kafka_are_found_in_every_build() {
    let unavailable: (&str, &[&str]) = ("", &["built without Kafka", "feature `kafka`"]);
    for (section, words) in [
        ("{ group: monitors }", &["`group` needs `state: FOLDER`"][..]),
        ("{ state: folder }", &["write `group: NAME`"]),
        ("{ group_id: monitors }", &["no setting 'group_id'", "write `group: NAME`"]),
        ("{ broker: a }", &["write `brokers: [HOST:PORT]`"]),
        ("{ dlq: a }", &["no setting 'dlq'", "write `dead_letters: TOPIC`"]),
        ("{ start: middle }", &["`start` must be latest or earliest"]),
        ("{ brokers: [a] }", &["a broker of `kafka` must be HOST:PORT"]),
        ("{ settings: { sasl.password: x } }", &["settings_env"]),
    ] {
        let deployment = format!("formula: v\nkafka: {section}\ntopics: {{ trace: kafka:a }}\n");
        let mut expected = vec![("", words)];
        if cfg!(not(feature = "kafka")) {
            expected.push(unavailable);
        }
        refused(&deployment, &expected);
    }
    for (address, words) in [
        ("kafka:fleet.{robot}", "the key of a record"),
        ("kafka:a b", "is not a topic of Kafka"),
        ("kafka:a/", "leave the / out"),
        ("kafka+xdr:a", "unknown encoding 'xdr'"),
        ("kafka:a/{vehicle}", "has the parameters {vehicle}, and the topic has none"),
    ] {
        refused(&format!("formula: v\ntopics: {{ trace: \"{address}\" }}\n"), &[("2:18", &[words])]);
    }
    let plain = "formula: v\ntopics: { trace: \"kafka:a/key\" }\n";
    match cfg!(feature = "kafka") {
        true => _ = accepted(plain, &["kafka"]),
        false => refused(plain, &[unavailable]),
    }
}
