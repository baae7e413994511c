//! The audit file of `rondel run`, and its verification.

use std::process::Command;

use rondel_testkit::Process;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::network::{arguments, free_endpoint, zenoh};
use crate::support::{self, Finished, Folder, rondel, rondel_with_input, start_rondel};

const SPECIFICATION: &str =
    "topic speed \"t/speed\" { v: float }\n@time(steps) property limited = speed.v < 9\n";

/// A deployment on Zenoh with an audit file, and the network of its publishers.
fn deployment(folder: &Folder, audit: &str) -> (String, Vec<String>) {
    let endpoint = free_endpoint();
    folder.file("spec.rondel", SPECIFICATION);
    let text = format!(
        "specification: spec.rondel\nzenoh: {{ mode: router, listen: {endpoint} }}\n\
         topics: {{ speed: \"zenoh:t/speed\" }}\nverdicts: {{ emit: every, to: stdout }}\naudit: {audit}\n"
    );
    (folder.file("rondel.yaml", text), zenoh("client", &endpoint))
}

fn start(deployment: &str) -> Process {
    let mut run = start_rondel(["run", deployment, "--format", "json"]);
    run.wait_stderr("ready");
    run
}

/// Publishes so many messages. The run may end meanwhile.
fn publish(network: &[String], count: usize) {
    let text: String = (0..count).map(|n| format!("{{\"v\":{}}}\n", n % 12)).collect();
    let publish = arguments(&["publish", "--to", "zenoh:t/speed", "--wait", "60"], network);
    rondel_with_input(publish, text.as_bytes());
}

fn lines(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn sha256(bytes: impl AsRef<[u8]>) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

fn verify(file: &str, more: &[&str]) -> Finished {
    rondel([&["audit", "verify", file][..], more].concat())
}

#[test]
fn every_verdict_and_action_is_recorded() {
    let folder = Folder::new();
    let (deployment, network) = deployment(&folder, "audit.jsonl");
    let file = folder.path("audit.jsonl");
    let mut run = start(&deployment);
    publish(&network, 12);
    let printed = run.take_stdout(12);
    run.terminate();
    let finished = run.finish();
    finished.expect_status(0).expect_stderr(&["audit: 15 lines were written to"]);
    let all = lines(&file);
    let records: Vec<&str> = all.iter().map(|line| line["record"].as_str().unwrap()).collect();
    assert_eq!((records[0], &records[13..]), ("start", &["operator", "stop"][..]), "{records:?}");
    for (line, printed) in all[1..13].iter().zip(&printed) {
        assert_eq!(line["record"], "verdict");
        assert_eq!(line["verdict"], serde_json::from_str::<Value>(printed).unwrap());
    }
    let start_line = &all[0];
    assert_eq!(start_line["specification"]["sha256"], sha256(SPECIFICATION));
    assert_eq!(start_line["deployment"]["sha256"], sha256(std::fs::read(&deployment).unwrap()));
    assert_eq!(start_line["program"], sha256(std::fs::read(support::RONDEL).unwrap()));
    assert_eq!(start_line["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!((&all[13]["action"], &all[13]["signal"]), (&json!("stop"), &json!("SIGTERM")));
    assert_eq!((&all[14]["reason"], &all[14]["received"]), (&json!("signal"), &json!(12)));
    let hash = all[14]["hash"].as_str().unwrap();
    finished.expect_stderr(&[hash]);
    // Any program can check a line.
    let text = std::fs::read_to_string(&file).unwrap();
    for (line, next) in text.lines().zip(all.iter().skip(1)) {
        assert_eq!(next["before"], sha256(line.rsplit_once(",\"hash\":").unwrap().0));
    }
    let verified = verify(&file, &[]);
    verified.expect_status(0);
    assert!(verified.stdout.contains("15 lines of 1 run"), "{}", verified.stdout);
    assert!(verified.stdout.contains(&format!("number 15, hash {hash}")), "{}", verified.stdout);
    assert!(verified.stdout.contains("--expect HASH"), "{}", verified.stdout);
    let account: Value =
        serde_json::from_str(&verify(&file, &["--format", "json", "--expect", hash]).stdout).unwrap();
    assert_eq!(
        (&account["intact"], &account["lines"], &account["expected"]),
        (&json!(true), &json!(15), &json!(15))
    );
    verify(&file, &["--expect", "abc"]).expect_status(2).expect_stderr(&["64 hexadecimal digits"]);

    let all: Vec<&str> = text.lines().collect();
    let tampered = |lines: &[&str]| {
        let file = folder.file("tampered.jsonl", lines.join("\n") + "\n");
        verify(&file, &["--expect", hash])
    };
    let mut changed = all.clone();
    let other = all[11].replace("\"violated\"", "\"satisfied\"");
    assert_ne!(other, all[11], "the eleventh message is a violation");
    changed[11] = &other;
    tampered(&changed).expect_status(1).expect_stderr(&["tampered.jsonl:12: line 12 was changed"]);
    let without = [&all[..11], &all[12..]].concat();
    tampered(&without).expect_status(1).expect_stderr(&["tampered.jsonl:12", "1 line is missing before it"]);
    let mut swapped = all.clone();
    swapped.swap(3, 4);
    tampered(&swapped).expect_status(1).expect_stderr(&["tampered.jsonl:4", "reordered"]);
    let inserted = [&all[..5], &["{\"record\":\"verdict\"}"], &all[5..]].concat();
    tampered(&inserted).expect_status(1).expect_stderr(&["tampered.jsonl:6", "inserted"]);
    tampered(&all[..14]).expect_status(1).expect_stderr(&["tampered.jsonl:15", "missing"]);
    // A run does not continue a file whose end was changed.
    let last = all[14].replace("\"signal\"", "\"count\"");
    let changed = [&all[..14], &[last.as_str()]].concat().join("\n") + "\n";
    std::fs::write(&file, &changed).unwrap();
    rondel(["run", &deployment]).expect_status(3).expect_stderr(&["one of its last lines was changed"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), changed);
}

#[test]
fn a_killed_run_leaves_a_chain_that_the_next_one_continues() {
    let folder = Folder::new();
    let (deployment, network) = deployment(&folder, "{ file: audit.jsonl, sync: batch }");
    let file = folder.path("audit.jsonl");
    let mut run = start(&deployment);
    publish(&network, 3);
    run.take_stdout(3);
    run.kill();
    let before = std::fs::read(&file).unwrap();
    // An incomplete line, as a loss of power leaves it.
    let last = before.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap();
    let last: Value = serde_json::from_slice(last).unwrap();
    let half = format!("{{\"before\":\"{}", &last["hash"].as_str().unwrap()[..2]);
    std::fs::write(&file, [&before[..], half.as_bytes()].concat()).unwrap();
    verify(&file, &[]).expect_status(4).expect_stderr(&["ends in an incomplete line of 13 bytes"]);
    let mut run = start_rondel(["run", &deployment, "--count", "2"]);
    run.wait_stderr("ends in an incomplete line of 13 bytes");
    run.wait_stderr("ready");
    publish(&network, 2);
    run.finish().expect_status(0);
    assert!(std::fs::read(&file).unwrap().starts_with(&before), "lines were changed");
    let verified = verify(&file, &[]);
    verified.expect_status(0);
    for part in ["of 2 runs", "1 run has no stop line", "1 incomplete line was left"] {
        assert!(verified.stdout.contains(part), "{}", verified.stdout);
    }
    let text = std::fs::read_to_string(&file).unwrap();
    let stop: Value = serde_json::from_str(text.lines().next_back().unwrap()).unwrap();
    assert_eq!((&stop["record"], &stop["reason"]), (&json!("stop"), &json!("count")));
}

#[test]
fn files_that_cannot_be_used_are_refused() {
    let folder = Folder::new();
    let refused = |audit: &str, said: &[&str]| {
        let (deployment, _) = deployment(&folder, audit);
        rondel(["run", &deployment]).expect_status(3).expect_stderr(said);
    };
    folder.file("notes.txt", "mine\n");
    refused("notes.txt", &["cannot use the audit file", "notes.txt: it is not an audit file"]);
    assert_eq!(std::fs::read_to_string(folder.path("notes.txt")).unwrap(), "mine\n");
    refused("nowhere/audit.jsonl", &["nowhere/audit.jsonl: No such file"]);
    refused("'.'", &["it is a folder"]);
    for (audit, said) in [("'.'", "it is a folder"), ("nowhere/a", "nowhere does not exist")] {
        let (deployment, _) = deployment(&folder, audit);
        rondel(["validate", &deployment])
            .expect_status(3)
            .expect_stderr(&["cannot use the audit file", said]);
    }
    refused("/dev/null", &["it is not a regular file"]);
    verify(&folder.path("notes.txt"), &[])
        .expect_status(1)
        .expect_stderr(&["notes.txt:1: line 1 is not a line"]);
    verify(&folder.path("nowhere"), &[]).expect_status(3).expect_stderr(&["cannot read the audit file"]);
    verify(&folder.path(""), &[]).expect_status(3).expect_stderr(&["it is a folder"]);
    verify(&folder.file("empty", ""), &[]).expect_status(1).expect_stderr(&["the file is empty"]);
    let (first, _) = deployment(&folder, "audit.jsonl");
    let _run = start(&first);
    // The option goes before the deployment.
    let other = rondel(["run", &first, "--audit", &folder.path("audit.jsonl")]);
    other.expect_status(3).expect_stderr(&["another process writes it"]);
    rondel(["run", "-f", "v", "--topic", "zenoh:v", "--audit-on-error", "stop"])
        .expect_status(2)
        .expect_stderr(&["--audit FILE"]);
    let mistake = |audit: &str, said: &str| {
        let (deployment, _) = deployment(&folder, audit);
        rondel(["validate", &deployment]).expect_status(2).expect_stderr(&[said]);
    };
    mistake("{ on_error: stop }", "`audit` needs a file");
    mistake("{ file: a, on_error: ignore }", "`on_error` of `audit` must be stop or continue");
    mistake("{ file: a, sync: 1 }", "`sync` of `audit` must be batch, or a duration");
    mistake("{ path: a, file: a }", "write `file`");
    let (fine, _) = deployment(&folder, "{ file: new.jsonl, on_error: continue, sync: 2 s }");
    let shown = rondel(["validate", &fine]);
    let expected = "new.jsonl, durable after at most 2 s; the run continues if it cannot be written";
    assert!(shown.expect_status(0).stdout.contains(expected), "{}", shown.stdout);
    assert!(!folder.as_path().join("new.jsonl").exists());
}

/// Starts a run whose files may have 4 KiB; without the signal, writing fails as it does on a full disk.
fn limited(deployment: &str) -> Process {
    let mut command = Command::new("sh");
    let limit = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    command.args(["-c", limit, support::RONDEL, "run", deployment, "--format", "json"]);
    let mut run = Process::start(command);
    run.wait_stderr("ready");
    run
}

#[test]
fn a_full_disk_stops_the_run() {
    let folder = Folder::new();
    let (deployment, network) = deployment(&folder, "audit.jsonl");
    let file = folder.path("audit.jsonl");
    let run = limited(&deployment);
    publish(&network, 60);
    let finished = run.finish();
    finished.expect_status(3).expect_stderr(&[
        "cannot write the audit file",
        "File too large",
        "; the run stops",
    ]);
    assert!(finished.stderr.contains("not written"), "{}", finished.stderr);
    verify(&file, &[]).expect_status(4);
    let run = start(&deployment);
    run.terminate();
    run.finish().expect_status(0);
    let verified = verify(&file, &[]);
    assert!(verified.expect_status(0).stdout.contains("1 incomplete line was left"), "{}", verified.stdout);
}

#[test]
fn a_full_disk_does_not_stop_a_run_that_continues() {
    let folder = Folder::new();
    let (deployment, network) = deployment(&folder, "{ file: audit.jsonl, on_error: continue }");
    let mut run = limited(&deployment);
    publish(&network, 60);
    run.wait_stderr("; the run continues");
    publish(&network, 5);
    run.take_stdout(65);
    run.terminate();
    run.finish().expect_status(3).expect_stderr(&["not written", "received 65, checked 65"]);
}
