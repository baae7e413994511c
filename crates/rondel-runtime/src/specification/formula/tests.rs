//! Tests that written formulas parse to the same nodes.

use super::*;

#[test]
fn written_formulas_parse_to_equal_formulas() {
    let topics = "topic s { a: bool, b: bool, x: int, y: float, t: string } topic r { c: bool } \
                  topic l { n: [float], o: [{ on: bool, t: string, x: int }] } \
                  topic w { \"odd key\": bool, o: { \"ä-1\": [int] }, l: [{ \"odd key\": int, on: bool }] }";
    let spec = |formula: &str| {
        rondel_spec::parse(&format!("{topics} property p = {formula}")).spec.unwrap_or_default()
    };
    for formula in [
        "s.a -> s.b -> r.c",
        "(s.a -> s.b) -> r.c",
        "s.a and (s.b or r.c)",
        "not (s.a and s.b) or not s.a",
        "once[1, 3] s.x > 3 and previously s.a",
        "s.a since[0, 1500 ms] not s.b",
        "(s.a since s.b) since r.c",
        "historically[2 s,] (once s.a)",
        "changed(s.x) -> rising(s.a) or falling(r.c)",
        "s.x * (s.x + 2) - -s.x >= s.x - (s.x - 1)",
        "abs(s.y) < 0.5 and min(s.y, 2) > prev(s.y)",
        "if s.a then s.b else s.x % 2 == 0",
        "s.t == \"a\\nb\" or starts_with(s.t, \"c\")",
        "len(s.t) + 1 > s.x",
        "on(r) -> count(s.a) over 3 s > 2",
        "age(s) <= 200 ms",
        "s.a -> eventually[0, 2 s] r.c",
        "s.a until[1 s, 2 s] r.c",
        "(any e in l.n: e < 0.5 or e in [2, 3)) -> s.a",
        "all e in l.o: not (e.on and e.t == \"a\\n\") and e.x != 2 or e.on -> e.t == \"b\"",
        "(count e in l.o: e.x in (1, 2) or not e.on) > 2",
        "s{x: 1, y > 2.5, a, not b} -> once[0, 2 s] r{c}",
        "s{t != \"a\"} and r.c and s{x: 2}",
        "not (s{x < 3} and s.a) or (r.c and (s{y: 2, x >= 1} or s.b))",
        "not (exists i. s{x: i, t: \"a\", y < 3} and r.c and s{x: i, a})",
        "not (exists i. s{x: i} and s{x == i, y: 3})",
        "mean(s.x) over full 2 s > 1",
        "s.t == \"\\u{1}\\t\\u{8}\\\\\"",
        "w.\"odd key\" and w{\"odd key\", o.\"ä-1\"[2]: 3} -> not (exists i. w{\"odd key\": i})",
        "(any e in w.l: e.\"odd key\" > 2 and not e.on)",
        "(count(r) over full 2 s > 1 or percentile(s.y, 95) over full 2 s > 3) -> count(s.a) over 3 s > 2",
    ] {
        let before = spec(formula);
        assert!(!before.properties.is_empty(), "{formula}");
        let property = &before.properties[0];
        let text = written(&before, property.formula, property);
        let after = spec(&text);
        assert!(!after.properties.is_empty(), "{formula} is written as {text}");
        assert_eq!(
            before.print(property.formula).to_string(),
            after.print(after.properties[0].formula).to_string(),
            "{formula} is written as {text}"
        );
    }
}

#[test]
fn depth_has_an_end() {
    let mut formula = "s.a".to_owned();
    for _ in 0..60 {
        formula = format!("previously not ({formula})");
    }
    let spec = rondel_spec::parse(&format!("topic s {{ a: bool }} property p = {formula}")).spec.unwrap();
    let text = written(&spec, spec.properties[0].formula, &spec.properties[0]);
    assert!(text.contains('…'), "{text}");
}

#[test]
fn parameters_have_their_names() {
    let text = "topic req { id: string } property p for each who in req.id = once req.id == who";
    let spec = rondel_spec::parse(text).spec.unwrap();
    let property = &spec.properties[0];
    assert_eq!(written(&spec, property.formula, property), "once req.id == who");
}
