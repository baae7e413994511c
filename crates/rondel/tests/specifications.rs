//! Commands on a specification alone (tests, plan, format), and the help.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use support::{Folder, rondel, rondel_with_input};

const HAZARD: &str = r#"topic emergency { emergency: bool }
topic hazard { report: int }
property standing = once[0, 2 s] on(emergency)
property quiet = hazard.report != 3

test "it stands for two seconds" {
    at 0 s   emergency { emergency: true }
    expect   standing satisfied at 1 s
    expect   standing violated at 3 s
}

test "hazard lights come too late" {
    at 0 s   emergency { emergency: true }
    at 3 s   hazard    { report: 2 }
    expect   standing never violated
    expect   quiet satisfied
    expect   quiet violated at 1 s
    end at   4 s
}
"#;

#[test]
fn tests_of_a_specification() {
    let folder = Folder::new();
    let spec = folder.file("hazard.rondel", HAZARD);
    let all = rondel(["test", &spec]);
    all.expect_status(1).expect_stdout(&format!(
        "ok      it stands for two seconds\n\
         FAILED  hazard lights come too late\n\
         \x20 {spec}:15:5: expected standing never violated\n\
         \x20     0 s   emergency {{\"emergency\":true}}   satisfied\n\
         \x20     2 s                                  violated\n\
         \x20     3 s   hazard {{\"report\":2}}\n\
         \x20 {spec}:17:5: expected quiet violated at 1 s\n\
         \x20     0 s   emergency {{\"emergency\":true}}   inconclusive\n\
         \x20     3 s   hazard {{\"report\":2}}            satisfied\n\
         \x20     hazard.report is unknown before 3 s\n\
         \n1 test passed, 1 failed\n"
    ));
    rondel(["test", "--filter", "stands", &spec])
        .expect_status(0)
        .expect_stdout("ok      it stands for two seconds\n\n1 test passed, 0 failed\n");
    let json = rondel(["test", "--format", "json", &spec]);
    json.expect_status(1).expect_stderr(&["1 test passed, 1 failed"]);
    let lines: Vec<serde_json::Value> =
        json.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines[0]["ok"].as_bool(), lines[1]["ok"].as_bool()), (Some(true), Some(false)));
    assert_eq!(lines[1]["line"], 12);
    let failed = &lines[1]["failed"][0];
    assert_eq!(failed["expected"], "standing never violated");
    assert_eq!(failed["came"][1], serde_json::json!({"time": 2, "verdict": "violated"}));
}

#[test]
fn impossible_tests_are_refused() {
    let folder = Folder::new();
    let spec = folder.file("hazard.rondel", HAZARD);
    let without = folder.file("without.rondel", "topic s { v: bool } property p = s.v");
    let wrong = folder.file("wrong.rondel", "topic s { v: bool } property p = s.w");
    rondel(["test", "--filter", "no such", &spec]).expect_status(2).expect_stderr(&["no such"]);
    rondel(["test", &without]).expect_status(2).expect_stderr(&["no test"]);
    rondel(["test"]).expect_status(2);
    // Errors in one file do not keep the tests of another from being run.
    let both = rondel(["test", "--filter", "stands", &wrong, &spec]);
    both.expect_status(2).expect_stderr(&["E0301"]);
    assert!(both.stdout.starts_with("ok      it stands"), "{}", both.stdout);
}

/// All that keeps a specification from being monitored is said at once, in the order of the places.
#[test]
fn every_refusal_is_reported() {
    let folder = Folder::new();
    let spec = folder.file(
        "refused.rondel",
        "topic a { id: int, v: float }
         property p = exists x. not a{id: x}
         property q = changed(a.v)
         property r = forall x. a{id: x}
         @plant(relations) property s = forall x. a{id: x} -> once a{id: x}",
    );
    let trace = folder.file("empty.jsonl", "");
    let said = rondel(["check", &spec, &trace]);
    said.expect_status(2);
    let lines: Vec<&str> =
        said.stderr.lines().filter(|line| line.contains("[E") || line.contains("[W")).collect();
    let codes: Vec<&str> = lines.iter().filter_map(|line| line.split(['[', ']']).nth(1)).collect();
    assert_eq!(codes, ["E0701", "E0701", "W0607", "E0701"], "{}", said.stderr);
}

#[test]
fn the_plan_of_a_specification() {
    let folder = Folder::new();
    let spec = folder.file(
        "plan.rondel",
        "topic a \"demo/a\" { x: int, y: bool } topic b { z: string }\n\
         property p = once[0, 60] a.x > 3 and previously a.y\n\
         property q = a.x > 3 -> b.z == \"on\"\n",
    );
    let plan = rondel(["explain", &spec]);
    plan.expect_status(0);
    for part in [
        "topic a  \"demo/a\"\n  x  int\n  y  bool\n",
        "property p\n  formula       once[0, 60] a.x > 3 and previously a.y\n",
        "  looks back    60 steps\n",
        "  shares        a.x > 3  with q\n",
        "  workers       yes\n",
        "  reads         a, b\n",
        "2 properties, ",
    ] {
        assert!(plan.stdout.contains(part), "{part}\n---\n{}", plan.stdout);
    }
    let formula = rondel(["explain", "--formula", "once[1 s, 3 s] v"]);
    formula.expect_status(0);
    assert!(formula.stdout.contains("dense") && formula.stdout.contains("looks back    3 s"));
    let muting = "topic t { x: int } property p = t.x > 1 @because_of(p) property q = t.x > 2";
    let muting = rondel(["explain", &folder.file("muting.rondel", muting)]);
    assert!(
        muting.stdout.ends_with("no workers: one thread evaluates all messages, as `@because_of` compares the reports that are taken together\n"),
        "{}",
        muting.stdout
    );
    rondel(["explain"]).expect_status(2);
    rondel(["explain", "--formula", "v >"]).expect_status(2).expect_stderr(&["E0102"]);
}

#[test]
fn a_failed_test_names_unknown_values() {
    let folder = Folder::new();
    let spec = folder.file(
        "late.rondel",
        "topic emergency { active: bool } topic hazard { report: int, side: int }\n\
         property follows = emergency.active -> eventually[0, 2 s] hazard.report == 2\n\
         property sided = hazard.side == 1\n\
         test \"too late\" { at 0 s emergency { active: true } at 3 s hazard { report: 2 }\n\
         expect follows violated at 2 s expect sided satisfied expect sided never violated }\n",
    );
    let finished = rondel(["test", &spec]);
    finished.expect_status(1);
    assert!(finished.stdout.contains("\n      hazard.report is unknown before 3 s\n"), "{}", finished.stdout);
    let never = "\n      no message carries hazard.side: it is unknown\n";
    assert_eq!(finished.stdout.matches(never).count(), 1, "{}", finished.stdout);
}

#[test]
fn explain_shows_the_plan_of_a_property_with_parameters() {
    let folder = Folder::new();
    let spec = folder.file(
        "keys.rondel",
        "topic ask { id: int, x: int } topic answer { id: string } topic alarm\n\
         machine m for each id in ask.id { initial a final b a -> b when on(ask) within 5 s }\n\
         property p for each id in answer.id = on(answer) -> once[0, 5] on(alarm)\n\
         property q for each id in answer.id = on(alarm) -> once[0, 5] on(answer)\n\
         @limit(5) property few for each id in answer.id = on(answer)\n\
         property r = on(alarm) -> ask.x > prev(ask.x)\n",
    );
    let plan = rondel(["explain", &spec]);
    plan.expect_status(0);
    for part in [
        "property m\n  formula       not (m is ambiguous)\n  states        a (initial), b (final)\n",
        "  transition    a -> b when on(ask) within 5 s\n",
        "  evaluated     at every message with its parameters\n",
        "  evaluated     at every message with its parameters, and for all instances at messages on alarm\n",
        " + 1 text for each instance\n",
        "  clock         prev(ask.x) counts messages on ask\n",
        "  workers       yes, each for some of the instances\n",
        "  workers       yes, one for all instances: `@limit` counts them together\n",
        " + 1 text for each instance together for p, q\n",
    ] {
        assert!(plan.stdout.contains(part), "{part}\n---\n{}", plan.stdout);
    }
}

#[test]
fn help_shows_every_page_of_the_reference() {
    let language = rondel(["help", "language"]);
    language.expect_status(0);
    assert!(language.stdout.starts_with("# Language reference"), "{}", &language.stdout[..200]);
    // Pages of the reference follow each other, and none is left out.
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/language");
    for page in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(language.stdout.contains(&text), "{} is not printed", page.display());
    }
    let check = rondel(["help", "check"]);
    assert_eq!(check.expect_status(0).stdout, rondel(["check", "--help"]).stdout);
    assert!(rondel(["help"]).expect_status(0).stdout.contains("Exit status"));
    rondel(["help", "chek"]).expect_status(2).expect_stderr(&["chek"]);
}

#[test]
fn fmt_gives_every_specification_one_layout() {
    let folder = Folder::new();
    let wild = "topic  s{v:bool}property p=s.v   // why\n";
    let spec = folder.file("wild.rondel", wild);
    let broken = folder.file("broken.rondel", "topic s {");
    let rye = folder.file("a.rye", "{a}");
    let shown = rondel(["fmt", "--stdout", &spec]);
    shown.expect_status(0);
    assert!(shown.stdout.contains("topic s { v: bool }\n") && shown.stdout.contains("// why"));
    rondel(["fmt", "--check", &spec]).expect_status(1).expect_stdout(&format!("{spec}\n"));
    assert_eq!(std::fs::read_to_string(&spec).unwrap(), wild, "looking changes nothing");
    // Errors in one file do not keep another from being formatted.
    rondel(["fmt", &broken, &spec]).expect_status(2).expect_stdout("").expect_stderr(&["broken.rondel:1:"]);
    assert_eq!(std::fs::read_to_string(&spec).unwrap(), shown.stdout);
    assert_eq!(std::fs::read_to_string(&broken).unwrap(), "topic s {");
    rondel(["fmt", "--check", &spec]).expect_status(0).expect_stdout("");
    rondel_with_input(["fmt", "-"], wild.as_bytes()).expect_status(0).expect_stdout(&shown.stdout);
    rondel(["fmt", &rye]).expect_status(2).expect_stderr(&["Reelay"]);
    rondel(["fmt", &folder.path("missing.rondel")]).expect_status(3).expect_stderr(&["missing.rondel"]);
    rondel(["fmt"]).expect_status(2);
}

#[test]
fn a_failed_test_shows_its_reason() {
    let folder = Folder::new();
    let spec = folder.file("hazard.rondel", HAZARD);
    let finished = rondel(["test", "--explain", "--filter", "too late", &spec]);
    let expected = "    violated at 2 s:\n\
                    \x20     time                        after 2 s\n\
                    \x20     step\n\
                    \x20     message\n\
                    \x20     once[0, 2 s] on(emergency)      false\n";
    assert!(finished.expect_status(1).stdout.contains(expected), "{}", finished.stdout);
}

#[test]
fn a_part_that_many_share_names_the_first_of_them() {
    let folder = Folder::new();
    let properties: String = (0..20).map(|i| format!("property p{i} = a.x > {i}\n")).collect();
    let file = folder.file("many.rondel", format!("topic a {{ x: int }}\n{properties}"));
    let finished = rondel(["explain", &file]);
    let shares = "shares        a.x  with p0, p1, p2, p3, p4, p5, p6, p7 and 11 others\n";
    assert!(finished.expect_status(0).stdout.contains(shares), "{}", finished.stdout);
    let at_most = finished.stdout.lines().map(str::len).max();
    assert!(at_most < Some(120), "{at_most:?}");
}

#[test]
fn no_more_than_a_limit_is_read_from_standard_input() {
    let text = vec![b' '; (16 << 20) + 1];
    for arguments in [&["fmt", "-"][..], &["explain", "-"]] {
        let finished = rondel_with_input(arguments, &text);
        assert_ne!(finished.status, Some(0));
        finished.expect_stderr(&["it has more than 16 MiB, which is the limit"]);
    }
}
