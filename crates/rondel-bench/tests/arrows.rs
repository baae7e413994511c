//! The dependencies between the crates of the workspace, and between the folders of the engine: only those of the
//! tables.

#![allow(clippy::unwrap_used)] // a test

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
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

/// The folders of the engine, the lowest first. Each may import from those before it.
const ENGINE: [&str; 11] =
    ["ir", "ops", "future", "chain", "machine", "linear", "relation", "exec", "keyed", "lower", "monitor"];

/// The source files below a folder, without tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("tests") {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn folders_of_the_engine_import_only_from_those_below_them() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../rondel-engine/src"));
    let (mut wrong, mut imports) = (Vec::new(), 0);
    for (rank, folder) in ENGINE.iter().enumerate() {
        for path in sources(&root.join(folder)) {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("mod tests {").next().unwrap();
            for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
                for part in line.split("crate::").skip(1) {
                    let name: String =
                        part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                    imports += 1;
                    // Names of items are those that the crate exports, from its upper folders.
                    let other = ENGINE.iter().position(|folder| *folder == name).unwrap_or(ENGINE.len() - 2);
                    if other > rank {
                        let file = path.strip_prefix(root).unwrap().display();
                        wrong.push(format!("{file} imports crate::{name}"));
                    }
                }
            }
        }
    }
    let folders: BTreeSet<String> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert_eq!(folders, ENGINE.iter().map(|&folder| folder.to_owned()).collect());
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(imports > 300, "{imports}");
}

#[test]
fn types_of_the_engine_have_names_of_their_own() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../rondel-engine/src"));
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in sources(root) {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("mod tests {").next().unwrap();
        for line in code.lines() {
            let words: Vec<&str> = line.split_whitespace().filter(|word| !word.starts_with("pub")).collect();
            // An associated type is indented.
            let is_type = match words[..] {
                ["struct" | "enum" | "trait" | "union", ..] => true,
                ["type", ..] => !line.starts_with(' '),
                _ => false,
            };
            if is_type {
                let end = |c: char| !c.is_alphanumeric() && c != '_';
                let name = words[1].split(end).next().unwrap().to_owned();
                let file = path.strip_prefix(root).unwrap().display();
                // Those that a macro makes have none yet.
                if !name.is_empty() {
                    places.entry(name).or_default().push(file.to_string());
                }
            }
        }
    }
    assert!(places.len() > 300, "{}", places.len());
    places.retain(|_, files| files.len() > 1);
    assert!(places.is_empty(), "{places:#?}");
}
