//! Conditions on the elements of an array: `any r in scan.ranges: r < 0.2`.

#![allow(clippy::unwrap_used)]

use rondel_spec::{Code, parse, parse_formula};

const TOPICS: &str = "topic scan { ranges: [float], on: bool, fixed: [int] }
topic d { parts: [{ level: int, name: string, on: bool, at: time, more: [int] }], any: int }
topic open
const LIMIT = 2\n";

/// The formula of a property without diagnostics.
fn formula(text: &str) -> String {
    let text = format!("{TOPICS}property p = {text} or scan.ranges[0] > LIMIT or d.any > 3");
    let outcome = parse(&text);
    assert!(outcome.diagnostics.is_empty(), "{}", outcome.render("x", &text, false));
    let formatted = rondel_spec::format(&text).unwrap();
    assert_eq!(rondel_spec::format(&formatted).unwrap(), formatted);
    assert!(parse(&formatted).spec.is_some(), "{formatted}");
    let spec = outcome.spec.unwrap();
    let whole = spec.print(spec.properties[0].formula).to_string();
    let end = whole.find(" (> scan.ranges[0]").unwrap();
    whole[..end].trim_start_matches("(or ").to_owned()
}

#[test]
fn what_they_mean() {
    let cases = [
        ("(any r in scan.ranges: r < 0.2)", "(any scan.ranges (<  0.2))"),
        ("(any r in scan.ranges: 0.2 > r)", "(any scan.ranges (<  0.2))"),
        ("(all r in scan.fixed: r != -1)", "(all scan.fixed (!=  -1.0))"),
        ("(all s in d.parts: s.level < LIMIT + 1 && s.on)", "(all d.parts (< level 3.0) (== on true))"),
        ("(any s in d.parts: not s.on and s.name == \"a\")", "(any d.parts (== on false) (== name \"a\"))"),
        ("(any s in d.parts: s.on != false)", "(any d.parts (== on true))"),
        ("(any s in d.parts: s.level in [LIMIT, 5))", "(any d.parts (>= level 2.0) (< level 5.0))"),
        ("(any s in d.parts: s.more[1] > 3)", "(any d.parts (> more[1] 3.0))"),
        ("(any open in open.x.y[2]: open.z == 3)", "(any open.x.y[2] (== z 3.0))"),
        ("(count r in scan.ranges: r < 0.2) > 3", "(> (count scan.ranges (< 0.2)) 3)"),
        ("not (any d in d.parts: d.on)", "(not (any d.parts (== on true)))"),
    ];
    for (text, expected) in cases {
        let found = formula(text);
        assert_eq!(found.replace("  ", " "), expected.replace("  ", " "), "{text}");
    }
    let outcome =
        parse("topic t { a: [int] } let low(t: topic, n: int) = any x in t.a: x < n property p = low(t, 3)");
    let spec = outcome.spec.unwrap();
    assert_eq!(spec.print(spec.properties[0].formula).to_string().replace("  ", " "), "(any t.a (< 3.0))");
    let spec = parse_formula("any r in ranges: r < 0.2").spec.unwrap();
    assert_eq!(
        spec.print(spec.properties[0].formula).to_string().replace("  ", " "),
        "(any trace.ranges (< 0.2))"
    );
}

#[test]
fn what_is_refused() {
    let cases = [
        (
            "any r in scan.ranges: r < 0.2 or scan.on",
            Code::NeedsParentheses,
            "write `(any r in scan.ranges: r < 0.2) or …`",
        ),
        ("any r in scan.ranges: r < 0.2 -> scan.on", Code::NeedsParentheses, "`any` before `->`"),
        ("any r in scan.ranges: r < 0.2 and scan.on", Code::NotInThisVersion, "outside of parentheses"),
        ("count r in scan.ranges: r < 0.2 > 3", Code::NeedsParentheses, "`count` before `>`"),
        ("count r in scan.ranges: r < 0.2", Code::TypeMismatch, "number"),
        ("any r in scan.ranges: r < scan.fixed[0]", Code::NotConstant, "constants only"),
        ("any r in scan.ranges: 2 * r < 3", Code::NotInThisVersion, "compares 'r'"),
        ("any r in scan.ranges: r < r", Code::NotInThisVersion, "compares 'r'"),
        ("any r in scan.ranges: not r < 3", Code::NotInThisVersion, "write the opposite comparison"),
        ("any r in scan.ranges: (r < 3)", Code::NotInThisVersion, "compares 'r'"),
        ("any r in scan.ranges: r in (1, 2)", Code::NotInThisVersion, "a list of values"),
        ("any r in scan.ranges: r == \"a\"", Code::TypeMismatch, "cannot compare a float with a string"),
        ("any r in scan.ranges: r", Code::TypeMismatch, "cannot compare a float with a bool"),
        ("any r in scan.ranges: r < 2 s", Code::TypeMismatch, "a float"),
        ("any s in d.parts: s.name != \"a\"", Code::NotInThisVersion, "between an element and a text"),
        ("any s in d.parts: s.name < \"a\"", Code::TypeMismatch, "expected a number"),
        ("any s in d.parts: s.lvel > 2", Code::UnknownField, "'level'"),
        ("any s in d.parts: s > 2", Code::NotASingleValue, "found an object"),
        ("any r in scan.on: r > 2", Code::TypeMismatch, "expected an array, found a bool"),
        ("any r in scan.rangs: r > 2", Code::UnknownField, "'ranges'"),
        ("any r in scan: r > 2", Code::TopicIsNotAValue, "scan"),
        ("any r in nothing.x: r > 2", Code::UnknownTopic, "nothing"),
        ("any r in scan.ranges r > 2", Code::UnexpectedToken, "write `any r in scan.ranges: r < 0.2`"),
        ("any r in : r > 2", Code::UnexpectedToken, "expected an array"),
        ("any r in scan.ranges:", Code::UnexpectedToken, "found end of input"),
        ("any r in scan.ranges: r <", Code::UnexpectedToken, "found end of input"),
        ("any not in scan.ranges: r < 3", Code::UnexpectedToken, "keyword"),
    ];
    let mut wrong = String::new();
    for (formula, code, message) in cases {
        let text = format!("{TOPICS}property p = {formula}");
        let outcome = parse(&text);
        let shown = outcome.render("x", &text, false);
        let codes: Vec<Code> = outcome.diagnostics.iter().filter(|d| d.is_error()).map(|d| d.code).collect();
        if codes != [code] || !shown.contains(message) {
            wrong += &format!("{formula}: {codes:?}\n{shown}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
