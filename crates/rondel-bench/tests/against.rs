//! Two programs by turns, with scripts in the place of `rondel`.

#![allow(clippy::unwrap_used)] // a test

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A script that prints a line for every line of the trace, appends its name to `turns`, and ends like `rondel check`.
fn script(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let text = format!(
        "#!/bin/sh\nfor trace; do :; done\necho {name} >>\"${{0%/*}}\"/turns\ncat \"$trace\"\n\
         echo \"$(grep -c '' \"$trace\") events checked\" >&2\n"
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn each_program_comes_first_as_often_as_the_other() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("against");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let (new, old) = (script(&folder, "new"), script(&folder, "old"));
    let output = Command::new(env!("CARGO_BIN_EXE_rondel-bench"))
        .args(["properties", "--networks", "none", "--length", "100", "--repeat", "2"])
        .args([&"--rondel".into(), &new, &"--against".into(), &old])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (printed, said) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(0), "{said}");
    let turns = fs::read_to_string(folder.join("turns")).unwrap();
    // Four specifications, twice.
    assert_eq!(turns, format!("{}{}", "new\nold\n".repeat(4), "old\nnew\n".repeat(4)));
    let table = printed.split("### ").find(|table| table.starts_with("By turns")).unwrap();
    for name in ["1 properties", "10 properties", "100 properties", "300 properties"] {
        assert!(table.contains(&format!("| {name} | 100 | ")), "{printed}");
    }
}

#[test]
fn a_program_that_checks_less_fails_the_measurement() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("less");
    fs::create_dir_all(&folder).unwrap();
    let program = script(&folder, "rondel");
    fs::write(&program, "#!/bin/sh\necho '99 events checked' >&2\n").unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_rondel-bench"))
        .args(["properties", "--networks", "none", "--length", "100", "--rondel"])
        .arg(&program)
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
}
