//! Habits of the ecosystem: completions, manual, version, colours, log levels, hang-ups.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::process::Command;

use support::network::{arguments, free_endpoint, zenoh_listening};
use support::{Folder, RONDEL, finish, rondel, rondel_with_input, start_rondel};

#[test]
fn completions_and_manual() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let printed = rondel(["completions", shell]);
        assert!(printed.expect_status(0).stdout.contains("validate"), "{shell}");
    }
    rondel(["completions", "ksh"]).expect_status(2).expect_stderr(&["ksh"]);
    assert!(rondel(["man"]).expect_status(0).stdout.starts_with(".ie"), "a page for man");
    let folder = Folder::new();
    rondel(["man", "--to", &folder.path("pages")]).expect_status(0).expect_stdout("");
    let page = std::fs::read_to_string(folder.path("pages/rondel-check.1")).unwrap();
    assert!(page.contains("Exit status") || page.contains("EXTRA"), "{page}");
    let taken = folder.file("taken", "");
    rondel(["man", "--to", &taken]).expect_status(3).expect_stderr(&["cannot write the manual pages"]);
}

#[test]
fn the_version_names_commit_and_features() {
    let version = rondel(["--version"]).stdout;
    assert!(
        version.starts_with("rondel 0.1.0 (commit ") && version.contains("zenoh, dds, mqtt"),
        "{version}"
    );
}

#[test]
fn colours_are_chosen() {
    let check = |options: &[&str], variable: Option<(&str, &str)>| {
        let mut command = Command::new(RONDEL);
        command.args(["check", "-q", "-f", "v", "-"]).args(options).env_remove("NO_COLOR");
        command.envs(variable);
        finish(&mut command, b"{\"v\":false}\n").stdout
    };
    assert!(!check(&[], None).contains('\x1b'), "standard output is no terminal here");
    assert!(check(&["--color", "always"], None).contains("\x1b[1;31mviolated"));
    assert!(!check(&["--color", "never"], None).contains('\x1b'));
    assert!(!check(&[], Some(("NO_COLOR", "1"))).contains('\x1b'));
}

#[test]
fn severity_and_requirement_are_in_every_verdict() {
    let folder = Folder::new();
    let text = "topic t { v: bool } @severity(critical) @requirement(\"SYS-7\") property p = t.v";
    let specification = folder.file("p.rondel", text);
    let check = |format: &str| {
        let arguments = ["check", "-q", "--format", format, &specification, "-"];
        rondel_with_input(arguments, b"{\"v\":false}\n")
    };
    check("json").expect_stdout(
        "{\"property\":\"p\",\"time\":0,\"step\":0,\"verdict\":\"violated\",\"severity\":\"critical\",\
         \"requirement\":\"SYS-7\"}\n",
    );
    assert!(check("text").stdout.ends_with("time 0 s, severity critical, requirement SYS-7\n"));
}

#[test]
fn calendar_times_are_local_dates_in_text_and_seconds_in_json() {
    let check = |format: &str| {
        let mut command = Command::new(RONDEL);
        command.args(["check", "-q", "--format", format, "-f", "v", "-"]).env("TZ", "UTC");
        finish(&mut command, b"{\"time\":1795360408.5,\"v\":false}\n").stdout
    };
    assert!(check("text").ends_with("time +0 s (2026-11-22 15:13:28.5)\n"), "{}", check("text"));
    assert!(check("json").contains("\"time\":1795360408.5,"));
}

#[test]
fn a_hang_up_does_not_end_a_run() {
    let endpoint = free_endpoint();
    let network = zenoh_listening("peer", &endpoint);
    let mut run = start_rondel(arguments(&["run", "-f", "v", "-t", "zenoh:demo/state"], &network));
    run.wait_stderr("ready");
    run.signal("HUP");
    run.wait_stderr("reloaded within");
    run.terminate();
    run.finish().expect_status(0).expect_stderr(&["received 0"]);
}

#[test]
fn log_lines_have_a_date_and_time_and_a_level() {
    let endpoint = free_endpoint();
    let network = zenoh_listening("peer", &endpoint);
    let own = ["--log", "debug", "run", "-f", "v", "-t", "zenoh:demo/state"];
    let mut run = start_rondel(arguments(&own, &network));
    run.wait_stderr("ready");
    run.terminate();
    let finished = run.finish();
    let logged = finished.stderr.lines().filter(|line| line.contains("debug:") || line.contains("info:"));
    let logged: Vec<&str> = logged.collect();
    assert!(!logged.is_empty(), "{}", finished.stderr);
    for line in logged {
        let (date, rest) = line.split_once(' ').unwrap();
        let time = rest.split(' ').next().unwrap();
        assert!(date.len() == 10 && date.starts_with("20") && date.as_bytes()[4] == b'-', "{line}");
        assert!(time.len() == 12 && time.as_bytes()[2] == b':' && time.as_bytes()[8] == b'.', "{line}");
    }
    let old = {
        let mut command = Command::new(RONDEL);
        command.args(["check", "-q", "-f", "v", "-"]).env("RONDEL_LOG", "debug");
        finish(&mut command, b"{\"v\":true}\n")
    };
    old.expect_status(0).expect_stderr(&["RONDEL_LOG is now called RUST_LOG"]);
}

#[test]
fn a_run_stopped_before_joining_reports_it() {
    // A port without a listener.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let broker = listener.local_addr().unwrap().to_string();
    drop(listener);
    let mut run = start_rondel(["run", "-f", "v", "-t", "mqtt:a", "--mqtt-broker", &broker, "--strict"]);
    run.wait_stderr("trying again");
    run.terminate();
    run.finish().expect_status(5).expect_stderr(&["stopped before the network was joined"]);
}

#[test]
fn a_deployment_instead_of_a_specification_is_named() {
    let folder = Folder::new();
    let deployment = folder.file("d.yaml", "specification: a.rondel\nzenoh: {}\nverdicts: { to: stdout }\n");
    for command in [&["explain"][..], &["test"], &["fmt"], &["fmt", "--check"]] {
        let said = rondel(command.iter().copied().chain([deployment.as_str()]));
        said.expect_status(2).expect_stderr(&["is a deployment", "`specification:`"]);
    }
    for command in ["topics", "init"] {
        rondel([command, &deployment]).expect_status(2).expect_stderr(&["is a deployment: name a recording"]);
    }
}

#[test]
fn files_in_the_wrong_place_are_named() {
    let folder = Folder::new();
    let spec = folder.file("a.rondel", "topic t { x: float }\nproperty p = t.x > 1\n");
    let recording = folder.file("a.jsonl", "");
    for (arguments, message) in [
        (&["check", &recording, &spec][..], format!("`rondel check {spec} {recording}`")),
        (&["check", &recording], format!("`rondel check SPECIFICATION {recording}`")),
        (&["check", "-f", "t.x > 1", &spec, &recording], "--formula stands for one".to_owned()),
        (&["check", &spec, &spec, &recording], "a check has one specification".to_owned()),
        (&["validate", &spec], "`validate` takes a deployment".to_owned()),
        (&["test", &recording], "a specification should stand here".to_owned()),
    ] {
        rondel(arguments.iter().copied()).expect_status(2).expect_stderr(&[&message]);
    }
}

#[test]
fn explanation_shows_no_expanded_operators() {
    let folder = Folder::new();
    let spec = folder.file(
        "a.rondel",
        "topic t { x: float }\nproperty p = hysteresis(t.x, 1, 2)\nproperty q = stable(t.x > 1) for 2 s\n",
    );
    let said = rondel(["explain", &spec]);
    assert!(!said.expect_status(0).stdout.contains("0 / 0"), "{}", said.stdout);
}
