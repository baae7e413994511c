//! The library of specification patterns, `use std.patterns`.

#![allow(clippy::unwrap_used)]

use rondel_spec::{Code, Outcome, ParseOptions, Sources, parse_sources};

const TOPICS: &str = "topic m { p: bool, s: bool, t: bool, q: bool, r: bool }\n";

fn parse(text: &str) -> (Outcome, Sources) {
    let sources = Sources::alone("main", &format!("use std.patterns\n{TOPICS}{text}"));
    (parse_sources(&sources, &ParseOptions::default(), None), sources)
}

/// The formulas of a specification without diagnostics.
fn formulas(text: &str) -> Vec<String> {
    let (outcome, sources) = parse(text);
    assert!(outcome.diagnostics.is_empty(), "{}", outcome.render_in(&sources, false));
    let spec = outcome.spec.unwrap();
    spec.properties.iter().map(|p| spec.print(p.formula).to_string()).collect()
}

/// The codes and the text of the diagnostics.
fn shown(text: &str) -> (Vec<Code>, String) {
    let (outcome, sources) = parse(text);
    (outcome.diagnostics.iter().map(|d| d.code).collect(), outcome.render_in(&sources, false))
}

#[test]
fn arguments_have_names() {
    let written = formulas("property p = m.p -> eventually[0, 2 s] m.s");
    for text in [
        "property p = response(m.p, m.s, 2 s)",
        "property p = response(m.p, m.s, within: 2 s)",
        "property p = response(m.p, within: 2 s, reaction: m.s)",
        "property p = response(trigger: m.p, reaction: m.s, within: 2000 ms,)",
        "property p = response(m.p, m.s, within: limit) const limit = 2 s",
        "property p = soon(m.p, 2 s) let soon(p: bool, d: bound) = response(p, m.s, within: d)",
        "property p = soon(m.p, 2 s) let soon(p: bool, d: duration) = response(p, m.s, within: d)",
    ] {
        assert_eq!(formulas(text), written, "{text}");
    }
    let steps = formulas("property p = response(m.p, m.s, within: 7)");
    assert_eq!(steps, formulas("property p = m.p -> eventually[0,7] m.s"));
}

#[test]
fn wrong_arguments_are_named() {
    let cases = [
        ("response(m.p, m.s)", Code::ArgumentCount, "'response' takes 3 arguments but got 2"),
        (
            "response(m.p, m.s, whithin: 2 s)",
            Code::ArgumentCount,
            "no parameter 'whithin'; did you mean 'within'?",
        ),
        (
            "response(m.p, m.s, 2 s, within: 2 s)",
            Code::ArgumentCount,
            "parameter 'within' of 'response' has two",
        ),
        ("response(m.p, within: 2 s, m.s)", Code::ArgumentCount, "an argument without a name stands before"),
        (
            "response(m.p, m.s, within: m.p)",
            Code::ArgumentType,
            "parameter 'within' of 'response' is a bound, found `m.p`",
        ),
        ("response(m.p, m.s, within: -1)", Code::ArgumentType, "is a bound, found `-1`"),
        ("response(m.p, m.s, within: 1 + 1)", Code::ArgumentType, "is a bound, found `1 + 1`"),
        ("response(m.p, 3, within: 2 s)", Code::ArgumentType, "parameter 'reaction'"),
        ("response(m.p, m.s, m.q, within: 2 s)", Code::ArgumentType, "is a bound, found `m.q`"),
        ("response(m.p, m.s, 2 s, 3 s)", Code::ArgumentCount, "'response' takes 3 arguments but got 4"),
    ];
    for (formula, code, message) in cases {
        let (codes, text) = shown(&format!("property p = {formula}"));
        assert!(codes.contains(&code) && text.contains(message), "{formula}: {text}");
    }
}

#[test]
fn a_bound_is_no_value() {
    let (codes, text) = shown("let f(p: bool, d: bound) = p and d > 3 property p = f(m.p, 3)");
    assert_eq!(codes, [Code::ArgumentType], "{text}");
    assert!(text.contains("parameter 'd' is a bound, and stands only where bounds do"), "{text}");
}

#[test]
fn a_library_counts_once_and_has_names_of_its_own() {
    assert_eq!(formulas("property p = absence(m.p)").len(), 1);
    let (codes, text) = shown("let absence(p: bool) = p property p = absence(m.p)");
    assert_eq!(codes, [Code::DuplicateName]);
    assert!(text.contains("std/patterns.rondel:"), "{text}");
    let (codes, text) = shown("use std.patterns property p = m.p");
    assert_eq!(codes, [Code::InvalidImport], "{text}");
    for (import, message) in [
        ("use std.pattern", "there is no library 'std.pattern'; did you mean 'patterns'?"),
        ("use std.x", "write `use std.patterns`"),
        ("use \"a\"", "`use` works only in a file"),
        ("use \"std.patterns\"", "write `use std.patterns`"),
        (
            "use std.patterns as p\nproperty q = absence(m.p)",
            "write `p.absence(…)`: its file is imported with `as`",
        ),
        ("use std", "write `use std.patterns`"),
        ("use std.", "write `use std.patterns`"),
        ("property first = response(m.p, m.s, within: 2 s)", "write `use std.patterns` at the top"),
    ] {
        let sources = Sources::alone("main", &format!("{import}\n{TOPICS}property p = m.p"));
        let outcome = parse_sources(&sources, &ParseOptions::default(), None);
        let text = outcome.render_in(&sources, false);
        assert!(outcome.spec.is_none() && text.contains(message), "{import}: {text}");
    }
    let twice =
        Sources::alone("main", &format!("use std.patterns;use std.patterns\n{TOPICS}property p = m.p"));
    let outcome = parse_sources(&twice, &ParseOptions::default(), None);
    assert!(outcome.diagnostics.is_empty(), "{}", outcome.render_in(&twice, false));
}

#[test]
fn the_library_is_formatted() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/std/patterns.rondel");
    let text = std::fs::read_to_string(path).unwrap();
    let formatted = rondel_spec::format(&text).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &formatted).unwrap();
    } else {
        assert_eq!(formatted, text);
    }
    let own = "use std.patterns\n\ntopic m { p: bool }\n\nproperty p = existence(m.p, within: 2 s)\n";
    assert_eq!(rondel_spec::format(own).unwrap(), own);
}

#[test]
fn the_reference_shows_the_library() {
    let page = include_str!("../../../docs/reference/patterns.md");
    let library = include_str!("../std/patterns.rondel");
    assert!(page.contains(&format!("```text\n{library}```\n")), "copy the library into the page");
}
