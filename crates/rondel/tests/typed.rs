//! Messages in CDR, read by the definition of their type.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod support;

use support::network::{dds_domain, free_endpoint, independent, python};
use support::process::Process;
use support::{Folder, rondel};

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
    let mut run = Process::rondel(["run", &deployment, "--count", "4", "--format", "json"]);
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
    let mut run = Process::rondel(["run", &file, "--count", "1", "--format", "json"]);
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

/// Nobody names the type: the publisher describes it, whenever it comes.
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
    let mut run = Process::rondel(["run", &file, "--count", "5", "--format", "json"]);
    run.wait_stderr("waiting for a publisher of dds:pose, to learn its type");
    let options = ["pose", "--kind", "pose", "--domain", &domain];
    let mut publisher = independent(&python, "dds_typed.py", &options);
    publisher.write(b"wait\n");
    run.wait_stderr("ready");
    publisher.wait_stdout("matched");
    publisher.write(b"write 1 5\n");
    let output = run.finish();
    output.expect_status(0).expect_stderr(&["dds:pose: messages of demo::Pose", "received 5, checked 5"]);
    assert_eq!(support::letters(&output.stdout), "TTTFF", "{}", output.stdout);
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

#[test]
fn explain_says_where_a_definition_comes_from() {
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
    refused("bad.proto", "", &["descriptor set"]);
    refused("bad.txt", "", &["*.msg"]);
    rondel(["explain", &file, "--schemas", "/not/there"]).expect_status(2).expect_stderr(&["/not/there"]);
}
