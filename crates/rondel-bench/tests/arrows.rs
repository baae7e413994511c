//! The dependencies between the crates of the workspace, between the folders of the engine, the runtime and the command,
//! and between the modules of the language: only those of the tables.

#![allow(clippy::unwrap_used)] // a test

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each crate, and the crates of the workspace that it may depend on. Nothing may depend on `rondel`,
/// `rondel-python`, `rondel-ffi` or `rondel-bench`.
const ALLOWED: [(&str, &[&str]); 17] = [
    ("rondel-event", &[]),
    ("rondel-spec", &["rondel-event", "rondel-testkit"]),
    ("rondel-align", &["rondel-event", "rondel-testkit"]),
    ("rondel-decode", &["rondel-event", "rondel-testkit"]),
    ("rondel-recording", &["rondel-event", "rondel-testkit"]),
    ("rondel-net", &["rondel-event", "rondel-decode", "rondel-testkit"]),
    ("rondel-engine", &["rondel-event", "rondel-spec", "rondel-testkit"]),
    (
        "rondel-runtime",
        &["rondel-event", "rondel-spec", "rondel-engine", "rondel-align", "rondel-decode", "rondel-testkit"],
    ),
    ("rondel-report", &["rondel-event", "rondel-runtime"]),
    // Its tests parse specifications.
    ("rondel-sinks", &["rondel-event", "rondel-runtime", "rondel-spec", "rondel-testkit"]),
    ("rondel-page", &["rondel-event", "rondel-runtime", "rondel-sinks", "rondel-spec"]),
    // Columns of Arrow, for both interfaces to other languages.
    ("rondel-columns", &["rondel-event", "rondel-spec"]),
    ("rondel-python", &["rondel-event", "rondel-spec", "rondel-columns", "rondel-runtime"]),
    (
        "rondel-ffi",
        &[
            "rondel-event",
            "rondel-spec",
            "rondel-columns",
            "rondel-decode",
            "rondel-runtime",
            "rondel-testkit",
        ],
    ),
    ("rondel", LIBRARIES),
    ("rondel-bench", LIBRARIES),
    // For tests only.
    ("rondel-testkit", &[]),
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
    "rondel-sinks",
    "rondel-page",
    "rondel-testkit",
];

#[test]
fn crates_have_only_allowed_dependencies() {
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
        let dependencies = package["dependencies"].as_array().unwrap();
        // Those of tests and build scripts as well.
        let to = dependencies.iter().map(name);
        let forbidden = to.filter(|to| members.contains(to) && !allowed.contains(&to.as_str()));
        wrong.extend(forbidden.map(|to| format!("{from} depends on {to}")));
        let of_product = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
        if of_product.map(name).any(|to| to == "rondel-testkit") {
            wrong.push(format!("{from} depends on rondel-testkit outside its tests"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The folders of the engine, the lowest first. Each may import from those before it.
const ENGINE: [&str; 11] =
    ["ir", "ops", "future", "chain", "machine", "linear", "relation", "exec", "keyed", "lower", "monitor"];

/// The modules of the language, the lowest first.
const LANGUAGE: [&str; 32] = [
    "attributes",
    "criterion",
    "duration",
    "foreign",
    "functions",
    "diagnostic",
    "suggest",
    "lexer",
    "modules",
    "sources",
    "render",
    "spec",
    "event",
    "exact",
    "finality",
    "identity",
    "needs",
    "part",
    "print",
    "reach",
    "options",
    "definition",
    "type_names",
    "fields",
    "graph",
    "operators",
    "syntax",
    "rye",
    "check",
    "format",
    "outline",
    "lib",
];

/// The folders of the runtime and its file of texts, the lowest first. Those of one line may import each other.
const RUNTIME: [&str; 6] =
    ["specification", "text", "time", "explanation, ordering, survey", "report, statistics", "session"];

/// The folders of the command, the lowest first.
const COMMAND: [&str; 8] =
    ["output", "schemas", "specification", "sinks", "deployment", "recorder", "live", "commands"];

/// The source files below a folder, without tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.ends_with("tests") || path.to_string_lossy().ends_with("tests.rs");
        if path.is_dir() && !is_test {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
            found.push(path);
        }
    }
    found
}

/// The names behind `crate::` in the code of a file, without tests and comments.
fn imported(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let code = text.split("mod tests {").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let parts = lines.flat_map(|line| line.split("crate::").skip(1));
    parts.map(|part| part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()).collect()
}

/// Checks that each module of a crate imports only from those before it, or in its own line; the crate's exported
/// items count as those of the module with number `exported`. Returns the number of imports.
fn check_modules(krate: &str, order: &[&str], exported: usize) -> usize {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(krate).join("src");
    let rank = |name: &str| order.iter().position(|line| line.split(", ").any(|module| module == name));
    let (mut wrong, mut imports) = (Vec::new(), 0);
    for path in sources(&root) {
        let file = path.strip_prefix(&root).unwrap();
        let module = file.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        if ["lib", "main"].contains(&module) {
            continue;
        }
        let Some(own) = rank(module) else {
            wrong.push(format!("{module} is not in the table"));
            continue;
        };
        for name in imported(&path) {
            imports += 1;
            if rank(&name).unwrap_or(exported) > own {
                wrong.push(format!("{} imports crate::{name}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    imports
}

#[test]
fn folders_of_the_engine_import_only_from_those_below_them() {
    // The exported items are of the upper folders.
    let imports = check_modules("rondel-engine", &ENGINE, ENGINE.len() - 2);
    assert!(imports > 300, "{imports}");
}

#[test]
fn modules_of_the_language_import_only_from_those_below_them() {
    let imports = check_modules("rondel-spec", &LANGUAGE, LANGUAGE.len());
    assert!(imports > 200, "{imports}");
}

#[test]
fn folders_of_the_runtime_import_only_from_those_below_or_beside_them() {
    // Only the sessions may use the exported items.
    let imports = check_modules("rondel-runtime", &RUNTIME, RUNTIME.len() - 1);
    assert!(imports > 300, "{imports}");
}

#[test]
fn folders_of_the_command_import_only_from_those_below_them() {
    // The items of its root are messages and exit statuses, of the lowest folder.
    let imports = check_modules("rondel", &COMMAND, 0);
    assert!(imports > 200, "{imports}");
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

/// Cargo finds no test by itself where a crate lists its programs of tests.
#[test]
fn every_file_of_tests_is_in_a_program() {
    for name in ["rondel", "rondel-engine", "rondel-runtime"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let is_program = |file: &str| manifest.contains(&format!("[[test]]\nname = \"{file}\"\n"));
        let (mut files, mut modules) = (BTreeSet::new(), BTreeSet::new());
        for entry in std::fs::read_dir(folder.join("tests")).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if path.join("main.rs").is_file() {
                assert!(is_program(&file), "{name}: tests/{file} is no program of tests");
            }
            if path.extension().is_some_and(|extension| extension == "rs") {
                if is_program(&file) {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let names = text.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
                    modules.extend(names.map(str::to_owned));
                }
                files.insert(file);
            }
        }
        files.retain(|file| !is_program(file) && !modules.contains(file));
        assert!(files.is_empty(), "{name}: add these to tests/suite.rs: {files:?}");
    }
}
