//! Messages in CDR, read by the definition of their type.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod support;

use rondel_testkit::Process;
use support::network::{dds_domain, free_endpoint, independent, python};
use support::{Folder, rondel, start_rondel};

const SPECIFICATION: &str = "topic gear \"/vehicle/gear\" : autoware_vehicle_msgs/msg/GearReport\n\
     topic battery : rover_msgs/msg/Battery\n\
     property no_reverse = gear.report != GearReport.REVERSE\n\
     property charged = battery.charge > Battery.LOW\n";

/// A folder with the specification and the definition of its own type.
fn folder() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("msgs/rover_msgs/msg")).unwrap();
    folder.file("msgs/rover_msgs/msg/Battery.msg", "float32 LOW=0.25\nfloat32 charge\n");
    folder.file("rover.rondel", SPECIFICATION);
    folder
}

/// A message in CDR, little-endian, in hexadecimal.
fn cdr(parts: &[&[u8]]) -> String {
    [&[0, 1, 0, 0], parts.concat().as_slice()].concat().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn gear(seconds: i32, report: u8) -> String {
    cdr(&[&seconds.to_le_bytes(), &[0; 4], &[report]])
}

#[test]
fn cdr_on_zenoh() {
    let Some(python) = python("cdr_on_zenoh") else { return };
    let (folder, endpoint) = (folder(), free_endpoint());
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: rover.rondel\nschemas: msgs\nzenoh: {{ listen: {endpoint} }}\n\
             topics:\n  gear: {{ source: zenoh:gear, encoding: cdr, time: stamp }}\n  battery: zenoh+cdr:battery\n"
        ),
    );
    let mut run = start_rondel(["run", &deployment, "--count", "4", "--format", "json"]);
    run.wait_stderr("ready");
    let publish = |key: &str, messages: &[String]| {
        let options: Vec<&str> = [key, "--connect", &endpoint, "--hex"].into();
        let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
        independent(&python, "zenoh_publish.py", &[options, messages].concat()).finish().expect_status(0);
    };
    publish("gear", &[gear(1, 2), gear(2, 20), "00010000ffff".to_owned()]);
    publish("battery", &[cdr(&[&0.5f32.to_le_bytes()])]);
    let output = run.finish();
    output.expect_status(0);
    let reverse = "{\"property\":\"no_reverse\",\"time\":2,\"step\":1,\"verdict\":\"violated\"";
    assert!(output.stdout.contains(reverse), "{}", output.stdout);
    assert!(output.stdout.contains("\"property\":\"charged\""), "{}", output.stdout);
    output.expect_stderr(&[
        "cannot decode a message of 6 bytes on 'gear' (zenoh+cdr:gear): it is not a message of its type (field `stamp.sec`, byte 4: the \
         message ends here); further ones are only counted",
        "received 4, checked 3, undecodable 1",
    ]);
}

/// The output of `tap` for messages in CDR has the verdicts of the messages themselves.
#[test]
fn messages_that_are_tapped_are_checked_as_live() {
    let Some(python) = python("messages_that_are_tapped_are_checked_as_live") else { return };
    let (folder, endpoint) = (folder(), free_endpoint());
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: rover.rondel\nschemas: msgs\nzenoh: {{ listen: {endpoint} }}\n\
             topics:\n  gear: {{ source: zenoh:gear, encoding: cdr, time: stamp }}\n  battery: zenoh+cdr:battery\n"
        ),
    );
    let publish = |key: &str, messages: &[String]| {
        let options: Vec<&str> = [key, "--connect", &endpoint, "--hex"].into();
        let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
        independent(&python, "zenoh_publish.py", &[options, messages].concat()).finish().expect_status(0);
    };
    let mut tap = start_rondel(["tap", &deployment, "--count", "4", "--format", "json"]);
    tap.wait_stderr("ready");
    publish("gear", &[gear(1, 2), gear(2, 20), "00010000ffff".to_owned()]);
    publish("battery", &[cdr(&[&f32::INFINITY.to_le_bytes()])]);
    let tapped = tap.finish();
    tapped.expect_status(0).expect_stderr(&[
        "a message of gear cannot be decoded (field `stamp.sec`, byte 4: the message ends here), and is shown escaped",
        "received 4 messages, 1 undecodable",
    ]);
    let data = "\"data\":{\"stamp\":{\"sec\":2,\"nanosec\":0},\"report\":20}}";
    assert!(tapped.stdout.contains(data), "{}", tapped.stdout);
    let (trace, msgs) = (folder.file("tapped.jsonl", &tapped.stdout), folder.path("msgs"));
    let specification = folder.path("rover.rondel");
    let checked = rondel([
        "check",
        &specification,
        &trace,
        "--schemas",
        &msgs,
        "--format",
        "json",
        "--on-error",
        "skip",
    ]);
    checked.expect_status(1);
    let reverse = "{\"property\":\"no_reverse\",\"time\":2,";
    let line = checked.stdout.lines().find(|line| line.starts_with(reverse)).unwrap_or_default();
    assert!(line.contains("\"verdict\":\"violated\""), "{}", checked.stdout);
    // Infinite as on the message itself.
    let charged = checked.stdout.lines().rfind(|line| line.contains("\"charged\"")).unwrap_or_default();
    assert!(charged.contains("\"verdict\":\"satisfied\""), "{}", checked.stdout);
    // One address by its type.
    let listen = ["--zenoh-listen", &endpoint];
    let of_type = ["--type", "autoware_vehicle_msgs/msg/GearReport", "--count", "1"];
    let mut tap = start_rondel([&["tap", "zenoh+cdr:gear"], &of_type[..], &listen].concat());
    tap.wait_stderr("ready");
    publish("gear", &[gear(1, 2)]);
    let tapped = tap.finish();
    tapped.expect_status(0);
    assert!(
        tapped.stdout.ends_with("{\"stamp\":{\"sec\":1,\"nanosec\":0},\"report\":2}\n"),
        "{}",
        tapped.stdout
    );
    rondel(["tap", "zenoh+cdr:gear"]).expect_status(2).expect_stderr(&["zenoh+cdr:gear", "--type"]);
}

/// A topic on DDS without a configured type.
#[test]
fn a_topic_on_dds_is_tapped_by_the_type_of_its_publisher() {
    let Some(python) = python("a_topic_on_dds_is_tapped_by_the_type_of_its_publisher") else { return };
    let domain = dds_domain();
    let network = ["--dds-domain", &domain, "--dds-interface", "lo"];
    let own = ["tap", "dds+cdr:pose", "--count", "2", "--format", "json"];
    let mut tap = start_rondel([&own[..], &network].concat());
    tap.wait_stderr("waiting for a publisher of dds:pose");
    let mut publisher =
        independent(&python, "dds_typed.py", &["pose", "--kind", "pose", "--domain", &domain]);
    publisher.write(b"wait\n");
    tap.wait_stderr("dds:pose: messages of demo::Pose, as its publisher describes them");
    publisher.wait_stdout("matched");
    publisher.write(b"write 1 2\n");
    let output = tap.finish();
    output.expect_status(0);
    let line: serde_json::Value = serde_json::from_str(output.stdout.lines().next().unwrap()).unwrap();
    assert!(line["data"]["header"]["stamp"]["sec"].is_i64() && line["data"]["mode"].is_i64(), "{line}");
    publisher.close_input();
    publisher.finish();
}

#[test]
fn flatbuffers_on_zenoh() {
    let Some(python) = python("flatbuffers_on_zenoh") else { return };
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../rondel-decode/tests/flatbuffers");
    let message = std::fs::read(format!("{fixtures}/message.bin")).unwrap();
    let message: String = message.iter().map(|byte| format!("{byte:02x}")).collect();
    folder.file(
        "demo.rondel",
        "topic root : demo.Root\n\
         property right = root.m.name == \"point\" and root.e == Gear.Back and root.t == root.t and root.rs[2] == \"c\"\n\
         property wrong = root.v.x > 1.5 or root.m.inner.x != 7\n",
    );
    let deployment = |encoding: &str, more: &str| {
        folder.file(
            "rondel.yaml",
            format!(
                "specification: demo.rondel\nschemas: \"{fixtures}\"\nzenoh: {{ listen: {endpoint} }}\n\
                 topics: {{ root: {{ source: zenoh:root, encoding: {encoding}{more} }} }}\n"
            ),
        )
    };
    rondel(["validate", &deployment("protobuf", "")])
        .expect_status(2)
        .expect_stderr(&["demo.Root", "descriptor set"]);
    rondel(["validate", &deployment("flatbuffers", ", type: demo.Rot")])
        .expect_status(2)
        .expect_stderr(&["demo.Rot"]);
    let file = deployment("flatbuffers", "");
    let validated = rondel(["validate", &file]);
    validated.expect_status(0);
    assert!(validated.stdout.contains("flatbuffers of demo.Root"), "{}", validated.stdout);
    let mut run = start_rondel(["run", &file, "--count", "1", "--format", "json"]);
    run.wait_stderr("ready");
    let options = ["root", "--connect", &endpoint, "--hex", &message];
    independent(&python, "zenoh_publish.py", &options).finish().expect_status(0);
    let output = run.finish();
    output.expect_status(0);
    for (property, verdict) in [("right", "satisfied"), ("wrong", "violated")] {
        let line = output.stdout.lines().find(|line| line.contains(property)).unwrap_or("");
        assert!(line.contains(verdict), "{}", output.stdout);
    }
}

/// No type is configured: the publisher describes it, whenever it comes.
#[test]
fn a_type_that_its_publisher_describes() {
    let Some(python) = python("a_type_that_its_publisher_describes") else { return };
    let (folder, domain) = (Folder::new(), dds_domain());
    let file = folder.file(
        "rondel.yaml",
        format!(
            "formula: header.stamp.sec >= 0 and number < 3\ndds: {{ domain: {domain}, interface: lo }}\n\
             topics: {{ trace: {{ source: dds:pose, encoding: cdr }} }}\nverdicts: {{ emit: every }}\n"
        ),
    );
    let validated = rondel(["validate", &file]);
    validated.expect_status(0);
    assert!(validated.stdout.contains("cdr of the discovered type"), "{}", validated.stdout);
    let mut run = start_rondel(["run", &file, "--count", "5", "--format", "json"]);
    run.wait_stderr("waiting for a publisher of dds:pose, to resolve its type");
    let options = ["pose", "--kind", "pose", "--domain", &domain];
    let mut publisher = independent(&python, "dds_typed.py", &options);
    publisher.write(b"wait\n");
    run.wait_stderr("dds:pose: messages of demo::Pose, as its publisher describes them");
    publisher.wait_stdout("matched");
    publisher.write(b"write 1 5\n");
    let output = run.finish();
    output.expect_status(0).expect_stderr(&["received 5, checked 5"]);
    assert_eq!(support::letters(&output.stdout), "TTTFF", "{}", output.stdout);
    publisher.close_input();
    publisher.finish();
}

/// The topics whose types are known are read meanwhile, and the first signal ends the command as any other.
#[test]
fn stopped_while_a_type_is_waited_for() {
    let (folder, domain) = (Folder::new(), dds_domain());
    let file = folder.file(
        "rondel.yaml",
        format!(
            "formula: number < 3\ndds: {{ domain: {domain}, interface: lo }}\n\
             topics: {{ trace: {{ source: dds:never, encoding: cdr }} }}\n"
        ),
    );
    let output = folder.path("all.mcap");
    let options = ["--dds-domain", &domain, "--dds-interface", "lo"];
    let addresses = ["dds:state", "dds+cdr:never"];
    let record = [&["record", "--output", &output], &addresses[..], &options].concat();
    let tap = [&["tap"], &addresses[..], &options].concat();
    let none = ["no topic is read before", "ready after", "no message came"];
    let others = ["the other topics are read meanwhile", "ready: dds:state", "received 0 messages"];
    for (arguments, [meanwhile, ready, end]) in
        [(vec!["run", &file, "--strict"], none), (record, others), (tap, others)]
    {
        let strict = arguments.contains(&"--strict");
        let mut waiting = start_rondel(arguments);
        let said = waiting.wait_stderr("waiting for a publisher of dds");
        assert!(said.ends_with(meanwhile), "{said}");
        waiting.wait_stderr(ready);
        waiting.wait_stderr("never, to resolve its type for ");
        waiting.signal("INT");
        let ended = waiting.finish();
        // A busy machine may not let a recorder run for a while; its recording is not complete then.
        let is_complete = !ended.stderr.contains("the recorder did not run for");
        let status = if strict {
            4
        } else if is_complete {
            0
        } else {
            5
        };
        ended.expect_status(status).expect_stderr(&[end]);
    }
}

/// A deployment of two topics on DDS: strings of JSON, and a type to resolve. Violations are recorded.
fn one_of_two_types(folder: &Folder, domain: &str, field: &str) -> String {
    folder.file(
        "two.rondel",
        format!(
            "topic state {{ v: int }}\ntopic pose {{ {field}: int }}\n\
             property low = state.v < 3\nproperty few = pose.{field} < 3\n"
        ),
    );
    folder.file(
        "rondel.yaml",
        format!(
            "specification: two.rondel\ndds: {{ domain: {domain}, interface: lo }}\n\
             record: {{ on: violation, before: 1 min, after: 10 ms, folder: {} }}\nverdicts: {{ emit: every }}\n\
             topics: {{ state: dds:state, pose: {{ source: dds:pose, encoding: cdr }} }}\n",
            folder.path("flights")
        ),
    )
}

/// Publishes a message on the topic of strings, and waits for its verdict.
fn is_read(run: &mut Process, folder: &Folder, domain: &str, v: u32, verdict: &str) {
    let file = folder.file("state.jsonl", format!("{{\"v\": {v}}}\n"));
    let network = ["--dds-domain", domain, "--dds-interface", "lo", "--wait", "10"];
    let publish = ["publish", &file, "--to", "dds:state"];
    rondel([&publish[..], &network].concat()).expect_status(0);
    run.wait_stdout(&format!("{verdict:<12}  low"));
}

#[test]
fn other_topics_are_read_while_a_type_is_waited_for() {
    let Some(python) = python("other_topics_are_read_while_a_type_is_waited_for") else { return };
    let (folder, domain) = (Folder::new(), dds_domain());
    let file = one_of_two_types(&folder, &domain, "number");
    let mut run = start_rondel(["run", &file, "--count", "7"]);
    let said = run.wait_stderr("waiting for a publisher of dds:pose, to resolve its type");
    assert!(said.ends_with("; the other topics are read meanwhile"), "{said}");
    run.wait_stderr("ready");
    is_read(&mut run, &folder, &domain, 2, "satisfied");
    is_read(&mut run, &folder, &domain, 4, "violated");
    let options = ["pose", "--kind", "pose", "--domain", &domain];
    let mut publisher = independent(&python, "dds_typed.py", &options);
    publisher.write(b"wait\n");
    run.wait_stderr("dds:pose: messages of demo::Pose, as its publisher describes them");
    publisher.wait_stdout("matched");
    publisher.write(b"write 1 5\n");
    let output = run.finish();
    output.expect_status(0).expect_stderr(&["received 7, checked 7", "few: violated 1 time"]);
    publisher.close_input();
    publisher.finish();
    // The recording of the topic has the resolved type.
    let recorded = std::fs::read_dir(folder.path("flights")).unwrap().filter_map(|file| {
        let topics = rondel(["topics", file.unwrap().path().to_str().unwrap()]);
        topics.stdout.contains("demo::Pose").then_some(())
    });
    assert_eq!(recorded.count(), 1);
}

/// The output of `tap` is JSON, which a deployment with types from publishers checks without them.
#[test]
fn lines_need_no_type_that_publishers_describe() {
    let folder = Folder::new();
    folder.file("v.rondel", "topic pose { v: int }\nproperty few = pose.v < 3\n");
    let deployment = folder.file(
        "rondel.yaml",
        "specification: v.rondel\ntopics: { pose: { source: dds:pose, encoding: cdr } }\n",
    );
    let line =
        |v: u32| format!("{{\"topic\":\"dds:pose\",\"time\":{v},\"arrival\":{v},\"data\":{{\"v\":{v}}}}}\n");
    let trace = folder.file("tapped.jsonl", line(2) + &line(4));
    let checked = rondel(["check", &deployment, &trace, "--format", "json"]);
    checked.expect_status(1);
    assert_eq!(support::letters(&checked.stdout), "TF", "{}", checked.stdout);
}

/// Among publishers of several types, the type with the fields is chosen, in any order of joining.
#[test]
fn fitting_type_of_two_is_resolved() {
    let Some(python) = python("fitting_type_of_two_is_resolved") else { return };
    let (folder, domain) = (Folder::new(), dds_domain());
    let file = one_of_two_types(&folder, &domain, "number");
    let mut publishers = ["same", "pose", "same"].map(|kind| {
        let mut publisher =
            independent(&python, "dds_typed.py", &["pose", "--kind", kind, "--domain", &domain]);
        publisher.wait_stdout("ready");
        publisher
    });
    let mut run = start_rondel(["run", &file]);
    run.wait_stderr("dds:pose: messages of demo::Pose, as its publisher describes them");
    run.wait_stderr("ready");
    run.terminate();
    run.finish();
    for publisher in &mut publishers {
        publisher.close_input();
    }
    publishers.into_iter().for_each(|publisher| _ = publisher.finish());
}

/// A publisher whose type lacks a field stops nothing: it is said, and the run ends with 5, since the topic was not read.
#[test]
fn a_type_that_comes_later_and_does_not_fit() {
    let Some(python) = python("a_type_that_comes_later_and_does_not_fit") else { return };
    let (folder, domain) = (Folder::new(), dds_domain());
    let file = one_of_two_types(&folder, &domain, "nubmer");
    let mut run = start_rondel(["run", &file, "--summary", "json"]);
    run.wait_stderr("ready");
    let options = ["pose", "--kind", "pose", "--domain", &domain];
    let mut publisher = independent(&python, "dds_typed.py", &options);
    run.wait_stderr("warning: dds:pose: field `nubmer`: the message type has no such field");
    is_read(&mut run, &folder, &domain, 2, "satisfied");
    run.terminate();
    let output = run.finish();
    output.expect_status(5).expect_stderr(&["\"unread\":[{\"address\":\"dds:pose\",\"reason\":"]);
    publisher.close_input();
    publisher.finish();
}

/// The types of a descriptor set: fields and times are checked as those of other definitions.
#[test]
fn types_of_protobuf() {
    let folder = Folder::new();
    let set = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/protobuf/types");
    std::fs::copy(set, folder.path("types.desc")).unwrap();
    let explain = |text: &str| {
        rondel(["explain", &folder.file("p.rondel", text), "--schemas", &folder.path("types.desc")])
    };
    let explained = explain("topic root : Root property p = root.time > 5");
    explained.expect_status(0);
    assert!(explained.stdout.contains("types.desc)"), "{}", explained.stdout);
    explain("topic root : Root property p = root.tim > 5")
        .expect_status(2)
        .expect_stderr(&["did you mean 'time'?"]);
}

/// Text files of Protobuf, which import each other from the folders that are named.
#[cfg(feature = "proto")]
#[test]
fn types_of_proto_files() {
    let folder = Folder::new();
    let file = folder
        .file("p.rondel", "topic car : fleet.v1.Car property p = car.state.speed < 10 and car.wheels > 5");
    folder.file(
        "proto/fleet/car.proto",
        "syntax = \"proto3\"; package fleet.v1; import \"fleet/state.proto\";\n\
         import \"google/protobuf/timestamp.proto\";\n\
         message Car { State state = 1; google.protobuf.Timestamp at = 2; uint32 wheels = 3; }",
    );
    folder.file(
        "proto/fleet/state.proto",
        "syntax = \"proto3\"; package fleet.v1; message State { double speed = 1; }",
    );
    let explain = |paths: &[&str]| {
        let mut arguments = vec!["explain".to_owned(), file.clone()];
        arguments.extend(paths.iter().flat_map(|path| ["--schemas".to_owned(), folder.path(path)]));
        rondel(arguments)
    };
    let found = explain(&["proto"]);
    found.expect_status(0);
    assert!(found.stdout.contains("proto/fleet/car.proto)"), "{}", found.stdout);
    assert!(!found.stderr.contains("W06"), "{}", found.stderr);
    // The folder where names begin is another one, and may be named besides.
    explain(&["proto/fleet"]).expect_status(2).expect_stderr(&[
        "car.proto:",
        "import 'fleet/state.proto' not found",
        "name the one where they begin",
    ]);
    explain(&["proto/fleet/car.proto", "proto"]).expect_status(0);
    // Each file has one name, though two of the folders contain it.
    folder.file("proto/common/unit.proto", "syntax = \"proto3\"; message Unit { int32 n = 1; }");
    folder.file(
        "proto/common/other.proto",
        "syntax = \"proto3\"; import \"unit.proto\"; message Other { Unit u = 1; }",
    );
    explain(&["proto", "proto/common"]).expect_status(0);
    // No file outside of the folders.
    folder.file("secret.proto", "syntax = \"proto3\"; message Secret { int32 n = 1; }");
    folder.file("proto/common/bad.proto", "syntax = \"proto3\"; import \"../../secret.proto\";");
    explain(&["proto", "proto/common"]).expect_status(2).expect_stderr(&["bad.proto:1:"]);
    folder.file("proto/common/bad.proto", "syntax = \"proto3\"; message Bad { Missing x = 1; }");
    explain(&["proto", "proto/common"]).expect_status(2).expect_stderr(&["bad.proto:1:", "Missing"]);
    // A file that imports itself.
    folder.file("proto/common/bad.proto", "syntax = \"proto3\"; import \"bad.proto\";");
    explain(&["proto", "proto/common"]).expect_status(2).expect_stderr(&["cycle"]);
}

#[test]
fn explain_names_the_origin_of_a_definition() {
    let folder = folder();
    let (file, msgs) = (folder.path("rover.rondel"), folder.path("msgs"));
    let explained = rondel(["explain", &file, "--schemas", &msgs]);
    explained.expect_status(0);
    let origin = format!(": rover_msgs/msg/Battery  ({msgs}/rover_msgs/msg/Battery.msg)");
    assert!(explained.stdout.contains(&origin), "{}", explained.stdout);
    assert!(explained.stdout.contains(": autoware_vehicle_msgs/msg/GearReport  (known to Rondel)"));
    let unknown = rondel(["explain", &file]);
    unknown.expect_stderr(&["W0609", "rover_msgs/msg/Battery", "--schemas"]);
}

#[test]
fn definitions_that_cannot_be_used() {
    let folder = folder();
    let file = folder.path("rover.rondel");
    let refused = |name: &str, text: &str, said: &[&str]| {
        let path = folder.path(name);
        std::fs::create_dir_all(std::path::Path::new(&path).parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        rondel(["explain", &file, "--schemas", &path]).expect_status(2).expect_stderr(said);
        std::fs::remove_file(&path).unwrap();
    };
    refused("own/msg/Bad.msg", "float3 x\n[", &["Bad.msg", "line"]);
    refused("Bad.msg", "float32 x\n", &["PACKAGE/msg/TYPE.msg"]);
    refused("bad.idl", "struct {", &["bad.idl", "line 1"]);
    #[cfg(feature = "proto")]
    refused("bad.proto", "message X {", &["bad.proto: expected"]);
    #[cfg(feature = "proto")]
    refused("bad.proto", "syntax = \"proto3\";\nmessage X { int32 x; }", &["bad.proto:2:"]);
    #[cfg(not(feature = "proto"))]
    refused(
        "bad.proto",
        "",
        &[
            "descriptor set",
            "protoc --include_imports --descriptor_set_out=",
            "bad.proto`",
            "--features proto",
        ],
    );
    refused("bad.fbs", "table A {\n  b: inn;\n}", &["bad.fbs: line 2, column 6: type `inn` is not declared"]);
    refused(
        "bad.fbs",
        "include \"away.fbs\";",
        &["bad.fbs: line 1, column 1: ", "'away.fbs' cannot be read"],
    );
    refused("bad.txt", "", &["*.msg"]);
    #[cfg(not(feature = "proto"))]
    {
        // A folder has nothing but files that must be compiled first.
        std::fs::create_dir_all(folder.path("sources/fleet")).unwrap();
        folder.file("sources/fleet/a.proto", "");
        rondel(["explain", &file, "--schemas", &folder.path("sources")])
            .expect_status(2)
            .expect_stderr(&["protoc --include_imports", "a.proto`"]);
    }
    rondel(["explain", &file, "--schemas", "/not/there"]).expect_status(2).expect_stderr(&["/not/there"]);
}

/// Another type of the same name and size is refused, and said to differ in a field.
#[test]
fn a_publisher_of_another_type_than_the_declared_one() {
    let Some(python) = python("a_publisher_of_another_type_than_the_declared_one") else { return };
    let (folder, domain) = (Folder::new(), dds_domain());
    folder.file("other.idl", "module demo { struct Other { uint64 number; }; };\n");
    folder.file("demo.rondel", "topic other : demo.Other property p = other.number < 9\n");
    let file = folder.file(
        "rondel.yaml",
        format!(
            "specification: demo.rondel\nschemas: other.idl\ndds: {{ domain: {domain}, interface: lo }}\n\
             topics: {{ other: dds:other }}\n"
        ),
    );
    let mut run = start_rondel(["run", &file, "--count", "2"]);
    run.wait_stderr("ready");
    let mut wrong = independent(&python, "dds_typed.py", &["other", "--kind", "same", "--domain", &domain]);
    run.wait_stderr(
        "its type demo::Other is not the declared demo::Other: field `number` is declared as `number`: uint64, and \
         published as `speed`: float64",
    );
    wrong.close_input();
    wrong.finish();
    let mut right = independent(&python, "dds_typed.py", &["other", "--kind", "other", "--domain", &domain]);
    right.write(b"wait\nwrite 1 2\n");
    let output = run.finish();
    // The messages of the wrong one were not seen.
    output
        .expect_status(5)
        .expect_stderr(&["received 2, checked 2, undecodable 0", "publishers that do not match 1"]);
    right.close_input();
    right.finish();
}

#[test]
fn types_of_several_topics_are_resolved_together() {
    let folder = Folder::new();
    let spec = folder.file(
        "a.rondel",
        "topic a { v: int }\ntopic b { v: int }\ntopic c { v: int }\nproperty p = a.v + b.v + c.v > 0\n",
    );
    let sources: String =
        ["a", "b", "c"].map(|name| format!("  {name}: {{ source: dds:{name}, encoding: cdr }}\n")).concat();
    let domain = dds_domain();
    let deployment = folder.file(
        "rondel.yaml",
        format!("specification: {spec}\ndds: {{ domain: {domain}, interface: lo }}\ntopics:\n{sources}verdicts: {{ to: stdout }}\n"),
    );
    let mut run = start_rondel(["run", &deployment]);
    let said = run.wait_stderr("waiting for publishers of dds:a, dds:b, dds:c, to resolve their types");
    assert!(said.ends_with("; no topic is read before"), "{said}");
    run.terminate();
    run.finish().expect_status(0).expect_stderr(&["received 0, checked 0"]);
}
