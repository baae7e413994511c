use crate::{Code, Outcome, parse, parse_rye};

fn printed(formula: &str) -> String {
    let outcome = parse_rye(formula, Some("t"), "p");
    let spec = outcome.spec.unwrap_or_else(|| panic!("{formula}: {:?}", outcome.diagnostics));
    spec.print(spec.properties[0].formula).to_string()
}

fn codes(outcome: &Outcome) -> Vec<Code> {
    outcome.diagnostics.iter().map(|d| d.code).collect()
}

fn refused(formula: &str) -> Vec<Code> {
    let outcome = parse_rye(formula, None, "p");
    assert!(outcome.spec.is_none(), "{formula}");
    codes(&outcome)
}

#[test]
fn pairs_become_comparisons() {
    for (formula, expected) in [
        ("{}", "true"),
        ("{a}", "(definitely t.a)"),
        ("{a: true}", "(definitely t.a)"),
        ("{a: false}", "(definitely (not t.a))"),
        ("{a: -1.5}", "(definitely (== t.a -1.5))"),
        ("{a: b}", "(definitely (== t.a \"b\"))"),
        ("{'a x': \"b y\"}", "(definitely (== t.a x \"b y\"))"),
        ("{a: *}", "(carried t.a)"),
        ("{a == 1}", "(definitely (== t.a 1.0))"),
        ("{a != 1}", "(definitely (!= t.a 1.0))"),
        ("{a < 1}", "(definitely (< t.a 1.0))"),
        ("{a <= 1}", "(definitely (<= t.a 1.0))"),
        ("{a > 1}", "(definitely (> t.a 1.0))"),
        ("{a >= 1}", "(definitely (>= t.a 1.0))"),
        ("{$2: 1}", "(definitely (== t[2] 1.0))"),
        ("{$0 < 1}", "(definitely (< t[0] 1.0))"),
        ("{a,\n\tb}", "(and (definitely t.a) (definitely t.b))"),
        ("{a::{b, c: 1}}", "(and (definitely t.a.b) (definitely (== t.a.c 1.0)))"),
        ("{a::b::{c: *}}", "(carried t.a.b.c)"),
        ("{a::{b::{c}}, d}", "(and (definitely t.a.b.c) (definitely t.d))"),
        ("{a::any{b: 1, c::{d: *}}}", "(definitely (any t.a (== b 1.0) (present c.d)))"),
        ("{a::b::all{$1 > 2}}", "(definitely (all t.a.b (> [1] 2.0)))"),
        ("{any: 1, all}", "(and (definitely (== t.any 1.0)) (definitely t.all))"),
        ("{a::any::{b}}", "(definitely t.a.any.b)"),
    ] {
        assert_eq!(printed(formula), expected, "{formula}");
    }
}

#[test]
fn operators_and_their_spellings() {
    let (a, b) = ("(definitely t.a)", "(definitely t.b)");
    for (formula, expected) in [
        ("{a} -> {b}", format!("(or (not {a}) {b})")),
        ("{a} implies {b}", format!("(or (not {a}) {b})")),
        ("{a} || {b}", format!("(or {a} {b})")),
        ("{a} or {b}", format!("(or {a} {b})")),
        ("{a} && {b}", format!("(and {a} {b})")),
        ("{a}and{b}", format!("(and {a} {b})")),
        ("{a} since {b}", format!("(since {a} {b})")),
        ("{a} S[2:5] {b}", format!("(since [2,5] {a} {b})")),
        ("!{a}", format!("(not {a})")),
        ("not {a}", format!("(not {a})")),
        ("pre{a}", format!("(previously {a})")),
        ("Y {a}", format!("(previously {a})")),
        ("once{a}", format!("(once {a})")),
        ("P[2:]{a}", format!("(once [2,] {a})")),
        ("historically[:3]{a}", format!("(historically [0,3] {a})")),
        ("H[0:inf]({a})", format!("(historically {a})")),
        ("once[0:0]{a}", format!("(once [0,0] {a})")),
    ] {
        assert_eq!(printed(formula), expected, "{formula}");
    }
}

#[test]
fn precedence() {
    for (formula, expected) in [
        ("{a} and {b} or {c} and {d}", "({a} and {b}) or ({c} and {d})"),
        ("{a} or {b} -> {c} or {d}", "({a} or {b}) -> ({c} or {d})"),
        ("{a} since {b} and {c} since {d}", "({a} since {b}) and ({c} since {d})"),
        ("not {a} since once {b}", "(not {a}) since (once {b})"),
        ("!{a} || !{b} && {c}", "(!{a}) || ((!{b}) && {c})"),
        ("({a} -> {b}) -> {c}", "({a} -> ({b})) -> ({c})"),
    ] {
        assert_eq!(printed(formula), printed(expected), "{formula}");
    }
}

#[test]
fn errors_are_reported() {
    use Code::{InvalidBounds, NeedsParentheses, NotInThisVersion, UnclosedText, UnexpectedToken};
    for (formula, expected) in [
        ("", UnexpectedToken),
        ("{a", UnexpectedToken),
        ("{a} {b}", UnexpectedToken),
        ("{a,}", UnexpectedToken),
        ("{a > x}", UnexpectedToken),
        ("once[2]{a}", UnexpectedToken),
        ("once[:]{a}", InvalidBounds),
        ("once[0,1]{a}", InvalidBounds),
        ("once[-1:]{a}", InvalidBounds),
        ("{a} -> {b} -> {c}", NeedsParentheses),
        ("{a} since {b} since {c}", NeedsParentheses),
        ("not not {a}", NeedsParentheses),
        ("{a: 'x}", UnclosedText),
        ("${p}", NotInThisVersion),
        ("{a::any{b::any{c}}}", NotInThisVersion),
        ("exists[x]. {a::any{b: *x}}", NotInThisVersion),
        ("{a: *x}", Code::UnboundVariable),
        ("(exists[x]. {a: *x}) and {b: *x}", Code::UnboundVariable),
        ("exists[x, x]. {a: *x}", Code::Unused),
        ("exists x. {a: *x}", UnexpectedToken),
        ("exists[x] {a: *x}", UnexpectedToken),
        ("once exists[x]. {a: *x}", NeedsParentheses),
        ("once[0:1.5]{a}", InvalidBounds),
    ] {
        assert_eq!(refused(formula)[0], expected, "{formula}");
    }
    assert_eq!(refused(&"(".repeat(100_000)), [Code::TooDeep]);
    assert_eq!(refused(&"{a::".repeat(100_000)), [Code::TooDeep]);
    assert_eq!(refused(&format!("{{a: {}}}", "9".repeat(400))), [Code::InvalidNumber]);
}

#[test]
fn schemas_are_checked() {
    let with = |formula: &str| {
        parse(&format!(
            "topic t {{ n: int, s: string, list: [{{ x: int }}] }}\nproperty p = rye\"{formula}\""
        ))
    };
    let spec = with("{n > 2, s: ok, list::any{x: 1}}").spec.unwrap();
    assert_eq!(
        spec.print(spec.properties[0].formula).to_string(),
        "(and (and (definitely (> (float t.n) 2.0)) (definitely (== t.s \"ok\"))) \
         (definitely (any t.list (== x 1.0))))"
    );
    assert_eq!(codes(&with("{m > 2}")), [Code::UnknownField]);
    assert_eq!(codes(&with("{n: ok}")), [Code::TypeMismatch]);
    assert_eq!(codes(&with("{n::any{x}}")), [Code::TypeMismatch]);
    assert_eq!(codes(&with("{list}")), [Code::NotASingleValue]);
}

#[test]
fn quantifiers_bind_references() {
    for (formula, expected) in [
        ("exists[x]. {a: *x}", "(exists ?0 (bind trace a: ?0))"),
        (
            "A[x, y]. {a: *x, b::c: *y, d} -> once[0:3](E[x]. {a: *x})",
            "(forall ?0 (forall ?1 (or (not (and (and (bind trace a: ?0) (bind trace b.c: ?1)) \
             (definitely d))) (once [0,3] (exists ?2 (bind trace a: ?2))))))",
        ),
    ] {
        let outcome = crate::parse_rye(formula, None, "p");
        let spec = outcome.spec.unwrap_or_else(|| panic!("{formula}: {:?}", outcome.diagnostics));
        let printed = spec.print(spec.properties[0].formula).to_string();
        assert_eq!(printed.replace("trace.", ""), expected, "{formula}");
    }
    let hidden = crate::parse_rye("exists[x]. {a: *x} and (exists[x, y]. {b: *x})", None, "p");
    assert_eq!(codes(&hidden), [Code::Shadowed, Code::Unused]);
}

#[test]
fn bounds_count_seconds_in_dense_time() {
    let options = crate::ParseOptions { time: Some(crate::TimeModel::Dense), ..Default::default() };
    let spec = crate::parse_rye_with("once[0.5:2]{a} since[:3]{b}", None, "p", &options).spec.unwrap();
    assert_eq!(spec.properties[0].time, crate::TimeModel::Dense);
    assert_eq!(
        spec.print(spec.properties[0].formula).to_string(),
        "(since [0,3000000000] (once [500000000,2000000000] (definitely trace.a)) (definitely trace.b))"
    );
    let spec = parse("topic a property p = rye\"once[0:10000000000]{x}\"").spec.unwrap();
    assert_eq!(spec.print(spec.properties[0].formula).to_string(), "(once [0,10000000000] (definitely a.x))");
    let text = "topic a let r = rye\"once[0:2]{x}\" @time(dense) property p = r property q = r";
    let spec = parse(text).spec.unwrap();
    let printed = |i: usize| spec.print(spec.properties[i].formula).to_string();
    assert_eq!(printed(0), "(once [0,2000000000] (definitely a.x))");
    assert_eq!(printed(1), "(once [0,2] (definitely a.x))");
}
