//! Definitions with parameters: a specification that uses them is the one that is written out by hand.

#![allow(clippy::unwrap_used)]

use rondel_spec::{Code, parse};

const TOPICS: &str = "topic a { x: float, n: int, s: string, ok: bool, at: time, late: duration }
    topic b { x: float, n: int }\n";

/// The formulas of a specification without diagnostics, and the number of its nodes.
fn plan(text: &str) -> (Vec<String>, usize) {
    let text = format!("{TOPICS}{text}");
    let outcome = parse(&text);
    assert!(outcome.diagnostics.is_empty(), "{}", outcome.render("x", &text, false));
    let spec = outcome.spec.unwrap();
    let formulas = spec.properties.iter().map(|p| spec.print(p.formula).to_string()).collect();
    assert_eq!(rondel_spec::format(&rondel_spec::format(&text).unwrap()), rondel_spec::format(&text));
    (formulas, spec.nodes.len())
}

#[test]
fn an_expansion_costs_nothing() {
    let cases = [
        (
            "let near(a: float, b: float, d: float) = abs(a - b) < d property p = near(a.x, b.x, 0.5)",
            "property p = abs(a.x - b.x) < 0.5",
        ),
        (
            "property p = lively(a, 20.0) and lively(b, 5)
             let lively(t: topic, r: float) = rate(t) over 1 s >= r and age(t) <= 3 s / r",
            "property p = (rate(a) over 1 s >= 20.0 and age(a) <= 3 s / 20.0)
                and (rate(b) over 1 s >= 5 and age(b) <= 3 s / 5)",
        ),
        (
            "let within(p: bool, d: duration) = eventually[0, d] p
             property p = on(a) -> within(on(b) and b.n > 3, 2 s)",
            "property p = on(a) -> eventually[0, 2 s] (on(b) and b.n > 3)",
        ),
        (
            "const D = 2 s let held(p: bool, d: duration) = p since[d,] p
             property p = held(a.ok, D) or a.x in [0, 1]",
            "const D = 2 s property p = (a.ok since[D,] a.ok) or (a.x >= 0 and a.x <= 1)",
        ),
        (
            "let same(t: topic, u: topic) = t.n == u.n and t.x < 3 property p = same(a, b) or same(b, a)",
            "property p = (a.n == b.n and a.x < 3) or (b.n == a.n and b.x < 3)",
        ),
        (
            "let twice(x: float) = x + x let fourfold(x: float) = twice(twice(x)) property p = fourfold(a.x) > 1",
            "property p = (a.x + a.x) + (a.x + a.x) > 1",
        ),
        (
            "let steps(p: bool, n: int) = once[0,n] p property p = steps(a.ok, 5)",
            "property p = once[0,5] a.ok",
        ),
        (
            "let is(s: string, t: topic, n: float) = t{s: s, x < n} property p = is(\"u\", a, 3)",
            "property p = a{s: \"u\", x < 3}",
        ),
        ("let seen(t: topic) = exists i. t{n: i} property p = seen(a)", "property p = exists i. a{n: i}"),
        (
            "let of(t: topic, k: int) = t{n: k} let was(t: topic, k: int) = once[0, 3 s] of(t, k)
             property p = forall i. b{n: i} -> was(a, i) property q = of(a, 3) property r = exists i. of(b, i)",
            "property p = forall i. b{n: i} -> once[0, 3 s] a{n: i} property q = a{n: 3} property r = exists i. b{n: i}",
        ),
        (
            "let low(x: float) = x < 3
             machine m { initial off var v: float = 0.0 off -> on when low(a.x + v) do v := a.x error on }",
            "machine m { initial off var v: float = 0.0 off -> on when a.x + v < 3 do v := a.x error on }",
        ),
        (
            "let low(x: float) = x < 3 property p for each i in a.n = low(a.x) or i in (1, 2)",
            "property p for each i in a.n = a.x < 3 or (i == 1 or i == 2)",
        ),
    ];
    for (with, without) in cases {
        assert_eq!(plan(with), plan(without), "{with}");
    }
}

#[test]
fn many_expansions_end() {
    let mut text = format!("{TOPICS}let f0(x: float) = x + 1\n");
    for i in 1..60 {
        text += &format!("let f{i}(x: float) = f{}(x) + f{}(x)\n", i - 1, i - 1);
    }
    text += "property p = f59(a.x) > 0";
    let codes: Vec<Code> = parse(&text).diagnostics.iter().map(|d| d.code).collect();
    assert!(codes.contains(&Code::TooDeep), "{codes:?}");
}

#[test]
fn a_definition_sees_only_its_parameters_and_declarations() {
    let text = format!("{TOPICS}let f(x: float) = x < k property p for each k in a.n = f(a.x)");
    let outcome = parse(&text);
    assert!(outcome.diagnostics.iter().any(|d| d.code == Code::UnknownName), "{:?}", outcome.diagnostics);
}

#[test]
fn an_argument_has_the_type_of_its_parameter() {
    let (widened, _) = plan("let half(a: float) = a / 2 property p = half(a.n) < 3.5");
    assert_eq!(widened, ["(< (/ (float a.n) 2.0) 3.5)"]);
    for text in [
        "let half(n: int) = n / 2 property p = half(a.x) == 3",
        "let half(n: int) = n / 2 property p = half(7.0) == 3",
    ] {
        let text = format!("{TOPICS}{text}");
        let codes: Vec<Code> = parse(&text).diagnostics.iter().map(|found| found.code).collect();
        assert_eq!(codes, [Code::ArgumentType], "{text}");
    }
    for name in ["stable", "hysteresis", "sqrt", "count"] {
        let text = format!("{TOPICS}let {name}(p: bool) = p property q = a.ok");
        let found = parse(&text).diagnostics.iter().any(|found| found.code == Code::DuplicateName);
        assert!(found, "{name}");
    }
}
