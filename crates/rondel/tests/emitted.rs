//! The verdicts that are printed, and their order, do not depend on options that are about other things.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use rondel_runtime::Emit;
use support::{Finished, Folder, library, rondel_with_input};

fn check(arguments: &[&str], input: &str) -> Finished {
    rondel_with_input(
        [&["check", "--quiet", "--format", "json"], arguments, &["-"]].concat(),
        input.as_bytes(),
    )
}

/// The lines without their explanations.
fn verdicts(text: &str) -> Vec<String> {
    let cut =
        |line: &str| line.split(",\"evidence\"").next().unwrap_or(line).trim_end_matches('}').to_owned();
    text.lines().map(cut).collect()
}

/// Checks that explanations, and a snapshot after any line, change no verdict. Returns the verdicts.
#[track_caller]
fn same_verdicts(specification: &str, lines: &[impl AsRef<str>]) -> Vec<String> {
    let text = |lines: &[_]| lines.iter().map(AsRef::as_ref).collect::<String>();
    let [plain, explaining] =
        [false, true].map(|explain| library::plan(specification, Emit::Change, explain).unwrap());
    let all = verdicts(&library::check(&plain, &text(lines)));
    assert_eq!(verdicts(&library::check(&explaining, &text(lines))), all);
    for cut in 0..lines.len() {
        let (before, after) = lines.split_at(cut);
        assert_eq!(verdicts(&library::check_cut(&plain, &text(before), &text(after))), all, "{cut}");
    }
    all
}

const SHARED: &str = r#"
topic m { id: string, v: int }
topic flag { on: bool }

property p for each id in m.id = not flag.on
property q for each id in m.id = m.v > 0 -> not flag.on
property r = not flag.on
"#;

#[test]
fn verdicts_of_one_time_come_in_the_order_of_properties_and_keys() {
    let mut lines = vec!["{\"topic\": \"flag\", \"data\": {\"on\": false}}\n".to_owned()];
    for id in ["delta", "a longer name", "b", "c"] {
        lines.push(format!("{{\"topic\": \"m\", \"data\": {{\"id\": \"{id}\", \"v\": 1}}}}\n"));
    }
    lines.push("{\"topic\": \"flag\", \"data\": {\"on\": true}}\n".to_owned());
    let all = same_verdicts(SHARED, &lines);
    let last: Vec<&str> = all[all.len() - 9..].iter().map(String::as_str).collect();
    let expected = |property: &str, id: &str| {
        format!(
            "{{\"property\":\"{property}\",\"key\":{{\"id\":\"{id}\"}},\"time\":0,\"step\":5,\"verdict\":\"violated\""
        )
    };
    let keys = ["a longer name", "b", "c", "delta"];
    let mut order: Vec<String> = keys.iter().map(|id| expected("p", id)).collect();
    order.extend(keys.iter().map(|id| expected("q", id)));
    order.push("{\"property\":\"r\",\"time\":0,\"step\":5,\"verdict\":\"violated\"".to_owned());
    assert_eq!(last, order);
}

#[test]
fn the_order_does_not_depend_on_where_a_trace_is_cut() {
    let text = "topic m { id: string }  topic flag { on: bool }\n\
        property ahead for each id in m.id = always[0, 1 s] not flag.on\n\
        property back = once[0.5 s, 1 s] on(flag)\n";
    let lines = [
        "{\"topic\": \"m\", \"time\": 0, \"id\": \"a\"}\n",
        "{\"topic\": \"flag\", \"time\": 1, \"on\": false}\n",
        "{\"topic\": \"m\", \"time\": 2, \"id\": \"a\"}\n",
        "{\"topic\": \"m\", \"time\": 4, \"id\": \"a\"}\n",
    ];
    let all = same_verdicts(text, &lines);
    assert!(all.iter().filter(|line| line.contains("\"time\":2")).count() > 1, "{all:?}");
}

#[test]
fn a_continuing_violation_is_explained_where_it_begins() {
    let lines = "{\"v\": 1}\n{\"v\": 5}\n{\"v\": 6}\n{\"v\": 7}\n";
    let every = check(&["--explain", "--emit", "every", "-f", "v < 3"], lines);
    let explained: Vec<bool> = every.stdout.lines().map(|line| line.contains("\"evidence\"")).collect();
    assert_eq!(explained, [false, true, false, false], "{}", every.stdout);
    let change = check(&["--explain", "-f", "v < 3"], lines);
    assert_eq!(change.stdout.lines().count(), 2, "{}", change.stdout);
}

#[test]
fn an_inconclusive_machine_is_not_reported_again_at_the_end() {
    let folder = Folder::new();
    for (name, each, id) in [("one", "", ""), ("each", "for each id in m.id ", "\"id\": \"a\", ")] {
        let text = format!(
            "topic m {{ id: string, v: bool, w: bool }}\n\
             machine a {each}{{ initial x  x -> y when m.w  final y  error x while m.v }}\n"
        );
        let spec = folder.file(&format!("{name}.rondel"), &text);
        let line = format!("{{{id}\"w\": false}}\n");
        let came = check(&[&spec], &line);
        came.expect_status(4);
        assert_eq!(came.stdout.matches("inconclusive").count(), 1, "{}", came.stdout);
        // After a satisfied verdict the end is a change.
        let came = check(&[&spec], &format!("{{{id}\"w\": false, \"v\": false}}\n"));
        came.expect_status(4);
        let verdicts: Vec<bool> = came.stdout.lines().map(|line| line.contains("inconclusive")).collect();
        assert_eq!(verdicts, [false, true], "{}", came.stdout);
    }
}

#[test]
fn a_single_formula_may_keep_every_value() {
    let formula = ["--syntax", "rye", "-f", "forall[x]. {grant: *x} -> once{request: *x}"];
    let lines = "{\"request\": \"a\"}\n{\"grant\": \"a\"}\n{\"grant\": \"b\"}\n";
    check(&formula, lines).expect_status(2).expect_stderr(&["E0701", "--unbounded"]);
    let came = check(&[&["--unbounded"], &formula[..]].concat(), lines);
    came.expect_status(1);
    assert_eq!(came.stdout.matches("violated").count(), 1, "{}", came.stdout);
}
