//! The ordering experiment, small: its figures must add up.

#![allow(clippy::unwrap_used)] // a test

use std::process::{Command, Stdio};

#[test]
fn settings_by_time_release_in_order() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (out, json) = (folder.join("order.md"), folder.join("order.json"));
    let status = Command::new(env!("CARGO_BIN_EXE_rondel-bench"))
        .args(["order", "--networks", "zenoh", "--periods", "1ms", "--delays", "5ms", "--events", "40"])
        .args(["--instants", "1ms"])
        .args([&"--out".into(), &out, &"--json".into(), &json])
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    let results: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let cell = &results["order"][0];
    assert_eq!((&cell["events"], &cell["arrived"]), (&40.into(), &40.into()));
    let settings = cell["settings"].as_array().unwrap();
    let count = |setting: &serde_json::Value, of: &str| setting[of].as_u64().unwrap();
    assert!(count(&settings[0], "misordered") > 0, "the second topic is late");
    assert!(settings[1..].iter().all(|setting| count(setting, "misordered") == 0), "{cell}");
    let markers = settings.last().unwrap();
    assert_eq!((count(markers, "late"), count(markers, "never")), (0, 0), "{cell}");
    let instants = &results["instants"][0];
    assert_eq!((&instants["instants"], &instants["arrived"]), (&20.into(), &40.into()));
    let of_nodes = instants["settings"].as_array().unwrap();
    let markers = of_nodes.last().unwrap();
    assert_eq!((count(markers, "mixed"), count(markers, "late")), (0, 0), "{instants}");
}

#[test]
fn instants_are_times_or_none() {
    let status = |value: &str| {
        let arguments =
            ["order", "--networks", "zenoh", "--periods", "1ms", "--delays", "0ms", "--events", "4"];
        let output = Command::new(env!("CARGO_BIN_EXE_rondel-bench"))
            .args(arguments)
            .args(["--instants", value])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        output.status.code()
    };
    assert_eq!([status("none"), status("1"), status("")], [Some(0), Some(2), Some(2)]);
}
