//! The dependencies between the crates of the workspace: only those of the table.

#![allow(clippy::unwrap_used)] // a test

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Each crate, and the crates of the workspace that it may depend on. Nothing may depend on `rondel` or `rondel-bench`.
const ALLOWED: [(&str, &[&str]); 11] = [
    ("rondel-event", &[]),
    ("rondel-spec", &["rondel-event"]),
    ("rondel-align", &["rondel-event"]),
    ("rondel-decode", &["rondel-event"]),
    ("rondel-recording", &["rondel-event"]),
    ("rondel-net", &["rondel-event", "rondel-decode"]),
    ("rondel-engine", &["rondel-event", "rondel-spec"]),
    ("rondel-runtime", &["rondel-event", "rondel-spec", "rondel-engine", "rondel-align", "rondel-decode"]),
    ("rondel-report", &["rondel-event", "rondel-runtime"]),
    ("rondel", LIBRARIES),
    ("rondel-bench", LIBRARIES),
];

const LIBRARIES: &[&str] = &[
    "rondel-event",
    "rondel-spec",
    "rondel-align",
    "rondel-decode",
    "rondel-recording",
    "rondel-net",
    "rondel-engine",
    "rondel-runtime",
    "rondel-report",
];

#[test]
fn crates_depend_only_on_what_is_allowed() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let name = |value: &serde_json::Value| value["name"].as_str().unwrap().to_owned();
    let packages = metadata["packages"].as_array().unwrap();
    let members: BTreeSet<String> = packages.iter().map(name).collect();
    let allowed = BTreeMap::from(ALLOWED);
    let mut wrong = Vec::new();
    for package in packages {
        let from = name(package);
        let Some(allowed) = allowed.get(from.as_str()) else {
            wrong.push(format!("{from} is not in the table"));
            continue;
        };
        // Those of tests and build scripts as well.
        let to = package["dependencies"].as_array().unwrap().iter().map(name);
        let forbidden = to.filter(|to| members.contains(to) && !allowed.contains(&to.as_str()));
        wrong.extend(forbidden.map(|to| format!("{from} depends on {to}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
