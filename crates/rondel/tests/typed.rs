//! Messages in CDR, read by the definition of their type.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod support;

use support::network::{free_endpoint, independent, python};
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
    refused("bad.proto", "", &["*.msg"]);
    rondel(["explain", &file, "--schemas", "/not/there"]).expect_status(2).expect_stderr(&["/not/there"]);
}
