//! Properties that are divided by key, on the command line.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use rondel_runtime::Emit;
use support::network::{arguments, free_endpoint, zenoh, zenoh_listening};
use support::{Folder, library, rondel, rondel_with_input, start_rondel};

const GRANTED: &str = r#"topic request { id: int }
topic grant { id: int }
topic mode { on: bool }
property granted for each id in (request.id, grant.id) =
    on(grant) -> once[0, 10 s] on(request) and mode.on

test "a grant needs a request" {
    at 0 s  mode { on: true }
    at 1 s  request { id: 7 }
    at 2 s  grant { id: 7 }
    at 3 s  grant { id: 8 }
    expect granted[7] never violated
    expect granted[8] violated at 3 s
    expect granted violated
}

test "wrong" {
    at 0 s  mode { on: true }
    at 1 s  grant { id: 8 }
    expect granted[8] never violated
    expect granted[9] violated
}
"#;

const TRACE: &str = r#"{"topic":"mode","time":0,"on":true}
{"topic":"request","time":1,"id":7}
{"topic":"grant","time":2,"id":7}
{"topic":"grant","time":3,"id":8}
{"topic":"mode","time":4,"on":false}
{"topic":"grant","time":5,"id":7}
{"topic":"grant","time":5}
"#;

#[test]
fn verdicts_have_their_key() {
    let folder = Folder::new();
    let spec = folder.file("granted.rondel", GRANTED);
    let json = rondel_with_input(
        ["check", "-q", "-e", "violations", "--format", "json", &spec, "-"],
        TRACE.as_bytes(),
    );
    json.expect_status(1).expect_stdout(
        "{\"property\":\"granted\",\"key\":{\"id\":8},\"time\":3,\"step\":3,\"verdict\":\"violated\"}\n\
         {\"property\":\"granted\",\"key\":{\"id\":7},\"time\":5,\"step\":5,\"verdict\":\"violated\"}\n",
    );
    // Nothing is dropped in silence.
    json.expect_stderr(&["granted: 1 message has no parameter, or one of another type, and did not count"]);
    let text = rondel_with_input(["check", "-e", "violations", &spec, "-"], TRACE.as_bytes());
    assert!(
        text.stdout.starts_with("violated      granted[8]                       step         3   time 3 s\n")
    );
    let summary =
        "violated      granted                          violated 2 times, first of [8] at step 3 (time 3 s)";
    assert!(text.stdout.contains(summary), "{}", text.stdout);
}

#[test]
fn an_instance_that_waits_is_not_forgotten_over_another() {
    let folder = Folder::new();
    let spec =
        folder.file("open.rondel", "topic s { id: int, v: bool } property p for each id in s.id = s.v");
    let check = |lines: &str| rondel_with_input(["check", "-q", &spec, "-"], lines.as_bytes());
    check("{\"id\":1}\n{\"id\":2,\"v\":true}\n").expect_status(4);
    check("{\"id\":1}\n{\"id\":2,\"v\":true}\n{\"id\":1,\"v\":true}\n").expect_status(0);
    check("{\"id\":1,\"v\":true}\n{\"id\":2,\"v\":true}\n").expect_status(0);
}

#[test]
fn a_violation_is_explained_for_its_own_instance() {
    let folder = Folder::new();
    let spec = folder.file("granted.rondel", GRANTED);
    let explained =
        rondel_with_input(["check", "-q", "-e", "violations", "--explain", &spec, "-"], TRACE.as_bytes());
    explained.expect_stdout(
        "violated      granted[8]                       step         3   time 3 s\n\
        \x20   time                         3 s\n\
        \x20   step                           3\n\
        \x20   message                    grant\n\
        \x20   on(grant)                   true\n\
        \x20   once[0, 10 s] on(request)  false\n\
        violated      granted[7]                       step         5   time 5 s\n\
        \x20   time         5 s\n\
        \x20   step           5\n\
        \x20   message    grant\n\
        \x20   mode.on    false\n\
        \x20   on(grant)   true\n",
    );
    assert_eq!(explained.stderr.matches("did not count").count(), 1, "{}", explained.stderr);
}

#[test]
fn tests_name_instances() {
    let folder = Folder::new();
    let spec = folder.file("granted.rondel", GRANTED);
    rondel(["test", "--filter", "request", &spec]).expect_status(0);
    let finished = rondel(["test", "--filter", "wrong", &spec]);
    let expected = "expected granted[8] never violated\n      0 s   mode {\"on\":true}\n      1 s   grant {\"id\":8}     [8] violated";
    assert!(finished.expect_status(1).stdout.contains(expected), "{}", finished.stdout);
    assert!(finished.stdout.contains("expected granted[9] violated\n"), "{}", finished.stdout);
    let unknown = "      no message had the key [9]; the keys that came are [8]\n";
    assert!(finished.stdout.contains(unknown), "{}", finished.stdout);
}

#[test]
fn keys_on_a_network() {
    let folder = Folder::new();
    let spec =
        folder.file("p.rondel", "topic s { id: string, v: bool } property p for each id in s.id = s.v");
    let endpoint = free_endpoint();
    let own = ["run", &spec, "--topic", "zenoh:demo/s", "--format", "json", "-e", "violations"];
    let mut run = start_rondel(arguments(&own, &zenoh_listening("peer", &endpoint)));
    run.wait_stderr("ready");
    let lines = "{\"id\":\"a\",\"v\":true}\n{\"id\":\"b\",\"v\":false}\n{\"v\":false}\n";
    let publish = arguments(&["publish", "--to", "zenoh:demo/s", "--wait", "60"], &zenoh("peer", &endpoint));
    rondel_with_input(publish, lines.as_bytes()).expect_status(0);
    let verdict = run.take_stdout(1).remove(0);
    assert!(verdict.starts_with(r#"{"property":"p","key":{"id":"b"},"#), "{verdict}");
    run.terminate();
    let finished = run.finish();
    finished.expect_stderr(&["1 message has no parameter", "p: violated 1 time, first of [\"b\"] at step 1"]);
}

#[test]
fn a_violated_quantifier_names_its_values() {
    let folder = Folder::new();
    let quantified = "topic lock { robot: string, zone: int }
         @severity(high) property mutex = forall z. forall r. forall s.
             lock{robot: r, zone: z} and r != s -> not once[0, 5 s] lock{robot: s, zone: z}
         property known = not exists r. lock{robot: r, zone > 5} and not once[1 s, 10 s] lock{robot: r}";
    let specification = folder.file("q.rondel", quantified);
    let line = |time: i64, robot: &str, zone: i64| {
        format!("{{\"topic\":\"lock\",\"time\":{time},\"data\":{{\"robot\":\"{robot}\",\"zone\":{zone}}}}}\n")
    };
    let trace = [line(1, "a", 1), line(2, "b", 2), line(3, "b", 1), line(4, "c", 9)].concat();
    for explain in [false, true] {
        let plan = library::plan(quantified, Emit::Violations, explain).unwrap();
        let found = library::check(&plan, &trace);
        let values: Vec<_> = found
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["values"].to_string())
            .collect();
        assert_eq!(values, [r#"{"r":"b","s":"a","z":1}"#, r#"{"r":"c"}"#], "{found}");
    }
    let text = rondel_with_input(["check", "-q", "--explain", &specification, "-"], trace.as_bytes());
    assert!(
        text.stdout.contains("time 3 s, z = 1, r = \"b\", s = \"a\", severity high\n"),
        "{}",
        text.stdout
    );
    // Its own names, and nothing of the inside.
    assert!(text.stdout.contains("forall z. forall r."), "{}", text.stdout);
    assert!(!text.stdout.contains("carried("), "{}", text.stdout);
}

#[test]
fn a_property_that_ignored_parameters_is_not_satisfied() {
    let folder = Folder::new();
    let specification =
        folder.file("l.rondel", "topic a { id: int }\n@limit(2) property p for each i in a.id = a.id < 9");
    let trace = |ids: &[i64]| ids.iter().map(|id| format!("{{\"id\":{id}}}\n")).collect::<String>();
    let check = |ids: &[i64]| rondel_with_input(["check", &specification, "-"], trace(ids).as_bytes());
    check(&[1, 2, 1, 2]).expect_status(0);
    let found = check(&[1, 2, 3, 4]);
    found.expect_status(4);
    assert!(
        found.stdout.contains("inconclusive  p                                2 messages did not count"),
        "{}",
        found.stdout
    );
    // A violation that was seen stays one.
    check(&[1, 10, 3]).expect_status(1);
}
