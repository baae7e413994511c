//! The crates can be published: descriptions, licences, READMEs, versions of the dependencies between them, and no file
//! of another folder that a crate compiles in.

#![allow(clippy::unwrap_used)] // a test

use std::path::{Component, Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Crates that are never published: benchmarks, the interfaces to Python and C, and fixtures of tests.
const PRIVATE: [&str; 5] =
    ["rondel-bench", "rondel-columns", "rondel-ffi", "rondel-python", "rondel-testkit"];

/// The packages of the workspace, as cargo describes them.
fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn folder(package: &Value) -> PathBuf {
    Path::new(text(package, "manifest_path")).parent().unwrap().to_owned()
}

#[test]
fn crates_describe_themselves() {
    let mut wrong = Vec::new();
    for package in packages() {
        let name = text(&package, "name");
        let folder = folder(&package);
        if text(&package, "description").is_empty() || text(&package, "license") != "Apache-2.0" {
            wrong.push(format!("{name} has no description or another licence"));
        }
        if text(&package, "readme") != "README.md" || !folder.join("README.md").is_file() {
            wrong.push(format!("{name} has no README.md"));
        }
        let is_private = PRIVATE.contains(&name);
        if !is_private && !folder.join("LICENSE").is_file() {
            wrong.push(format!("{name} has no link LICENSE to the licence"));
        }
        // An empty list of registries is `publish = false`.
        if is_private && package["publish"].as_array().is_none_or(|registries| !registries.is_empty()) {
            wrong.push(format!("{name} is not private"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn dependencies_between_crates_have_their_version() {
    let packages = packages();
    let mut wrong = Vec::new();
    for package in &packages {
        let from = text(package, "name");
        if PRIVATE.contains(&from) {
            continue;
        }
        for dependency in package["dependencies"].as_array().unwrap() {
            let to = text(dependency, "name");
            let Some(other) = packages.iter().find(|other| text(other, "name") == to) else { continue };
            let requirement = text(dependency, "req");
            if PRIVATE.contains(&to) {
                // cargo leaves dependencies of tests out of a published crate if they have no version.
                if dependency["kind"] != "dev" || requirement != "*" {
                    wrong.push(format!("{from} depends on {to} {requirement}, which is private"));
                }
            } else if requirement != format!("^{}", text(other, "version")) {
                wrong
                    .push(format!("{from} depends on {to} {requirement}, not on {}", text(other, "version")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn crates_compile_in_only_their_own_files() {
    let mut wrong = Vec::new();
    for package in packages() {
        if PRIVATE.contains(&text(&package, "name")) {
            continue;
        }
        let folder = folder(&package);
        let built = ["build.rs", "bundle.rs"].map(|name| folder.join(name));
        let built = built.into_iter().filter(|file| file.is_file());
        for file in sources(&folder.join("src")).into_iter().chain(built) {
            let source = std::fs::read_to_string(&file).unwrap();
            for included in included(&source) {
                let path = normal(&file.parent().unwrap().join(included));
                if !path.starts_with(normal(&folder)) {
                    wrong.push(format!("{} includes {}", file.display(), path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "add links to these files in the folders of the crates: {wrong:#?}");
}

/// The source files below a folder, without those of tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("tests") || path.to_string_lossy().ends_with("tests.rs") {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The paths of the files that a source file includes, outside of its tests, which end the file.
fn included(source: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut previous = "";
    for line in source.lines() {
        if line.trim() == "#[cfg(test)]" {
            break;
        }
        for macro_name in ["include_str!(\"", "include_bytes!(\""] {
            if let Some((_, after)) = line.split_once(macro_name)
                && previous.trim() != "#[cfg(doctest)]"
            {
                found.extend(after.split('"').next());
            }
        }
        if let Some((_, after)) = line.split_once("#[path = \"") {
            found.extend(after.split('"').next());
        }
        previous = line;
    }
    found
}

/// A path without `..`; links stay as they are.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}
