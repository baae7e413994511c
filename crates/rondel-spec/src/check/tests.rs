use crate::{Code, Expr, parse, parse_formula};

/// The formulas of the properties, each printed.
fn printed(text: &str) -> Vec<String> {
    let outcome = parse(text);
    let spec = outcome.spec.unwrap_or_else(|| panic!("{text}: {:?}", outcome.diagnostics));
    spec.properties.iter().map(|p| spec.print(p.formula).to_string()).collect()
}

fn codes(text: &str) -> Vec<Code> {
    parse(text).diagnostics.iter().map(|d| d.code).collect()
}

fn formula(text: &str) -> String {
    let outcome = parse_formula(text);
    let spec = outcome.spec.unwrap_or_else(|| panic!("{text}: {:?}", outcome.diagnostics));
    spec.print(spec.properties[0].formula).to_string().replace("trace.", "")
}

#[test]
fn types_follow_from_use() {
    for (text, expected) in [
        ("a > 1", "(> a 1.0)"),
        ("a", "a"),
        ("a == 'x'", "(== a \"x\")"),
        ("a == true", "(== a true)"),
        ("a == b and starts_with(b, 'x')", "(and (== a b) (starts_with b \"x\"))"),
        ("a < b", "(< a b)"),
        ("prev(a) and a", "(and (prev a) a)"),
        ("(if a then b else c) == 'x'", "(== (if a b c) \"x\")"),
        ("changed(a) and a", "(and (and (on trace) (!= a (prev a))) a)"),
        ("min(a, b) > abs(-c)", "(> (min a b) (abs (- c)))"),
    ] {
        assert_eq!(formula(text), expected, "{text}");
    }
}

#[test]
fn ints_and_floats_mix() {
    let with = |formula: &str| {
        printed(&format!("topic t {{ i: int, x: float, b: uint8, d: float64 }} property p = {formula}"))[0]
            .replace("t.", "")
    };
    assert_eq!(with("t.i == 1"), "(== i 1)");
    assert_eq!(with("t.x == 1"), "(== x 1.0)");
    assert_eq!(with("t.i < t.x"), "(< (float i) x)");
    assert_eq!(with("t.i + t.b > t.d"), "(> (float (+ i b)) d)");
    assert_eq!(with("t.i + t.d > t.b"), "(> (+ (float i) d) (float b))");
    assert_eq!(with("t.i / 2 > 1.5"), "(> (float (/ i 2)) 1.5)");
    assert_eq!(with("t.i > 3 / 2"), "(> (float i) 1.5)");
    assert_eq!(with("t.x > 6 / 2"), "(> x 3.0)");
    assert_eq!(with("(if t.i > 0 then t.i else t.x) > 0"), "(> (if (> i 0) (float i) x) 0.0)");
    assert_eq!(with("t.i > -9223372036854775808"), "(> i -9223372036854775808)");
    assert_eq!(with("t.i - -1 > - - 2"), "(> (- i -1) 2)");
}

#[test]
fn definitions_may_come_in_any_order_and_are_shared() {
    let text = "
        property p = twice > 4 and small
        let twice = once_ + once_
        let once_ = a.v + N
        const N = M * 2
        const M = 1
        let small = rising(a.v < N)
        topic a { v: int }";
    assert_eq!(
        printed(text),
        ["(and (> (+ (+ a.v 2) (+ a.v 2)) 4) (and (< a.v 2) (not (previously (< a.v 2)))))"]
    );
    // Two to the power of 200 additions, if they were not shared.
    let mut text = "topic a let x0 = a.v ".to_owned();
    for i in 0..200 {
        text += &format!("let x{} = x{i} + x{i} ", i + 1);
    }
    text += "property p = x200 > 0 <-> changed(x200)";
    let spec = parse(&text).spec.unwrap();
    assert!(spec.nodes.len() < 300);
    assert!(spec.print(spec.properties[0].formula).to_string().len() <= (1 << 16) + 3);
}

#[test]
fn operands_come_first_and_nothing_is_left_over() {
    let spec = parse(
        "topic a topic b let unused = a.z + 3 > 4 let x = a.v > 1
         property p = x since[1,2] b.w property q = not x",
    )
    .spec
    .unwrap();
    let mut used = vec![false; spec.nodes.len()];
    for (i, node) in spec.nodes.iter().enumerate() {
        for operand in node.operands() {
            assert!(operand.index() < i);
            used[operand.index()] = true;
        }
    }
    spec.properties.iter().for_each(|p| used[p.formula.index()] = true);
    assert!(used.iter().all(|u| *u), "{:?}", spec.nodes);
    assert_eq!(spec.nodes.iter().filter(|n| matches!(n, Expr::Field { .. })).count(), 2);
}

#[test]
fn changed_asks_for_every_topic_that_is_mentioned() {
    let text = "topic a topic b topic c let sum = a.x + b.x property p = changed(sum - 1) or on(c)";
    assert_eq!(
        printed(text),
        ["(or (and (or (on a) (on b)) (!= (- (+ a.x b.x) 1.0) (prev (- (+ a.x b.x) 1.0)))) (on c))"]
    );
}

#[test]
fn bounds_may_be_constants() {
    let text = "topic a const N = 2 + 1 property p = once[N,] a.x or a.x since[,N] historically[0,N] a.x";
    assert_eq!(printed(text), ["(or (once [3,] a.x) (since [0,3] a.x (historically [0,3] a.x)))"]);
}

#[test]
fn an_error_is_reported_once() {
    assert_eq!(
        codes("topic a { m: string } property p = a.m > 3 and a.m"),
        [Code::TypeMismatch, Code::TypeMismatch]
    );
    assert_eq!(codes("topic a let x = a.v + property p = x and x"), [Code::UnexpectedToken]);
    assert_eq!(codes("topic a let x = b.v property p = x > 3 and x == 'y'"), [Code::UnknownTopic]);
    assert_eq!(codes("topic a let x = y let y = x property p = x and y > 3"), [Code::CyclicDefinition]);
    assert_eq!(codes("topic a { property p = a.v > 3"), [Code::UnexpectedToken]);
}

#[test]
fn words_of_declarations_are_names_of_fields_too() {
    assert_eq!(formula("topic > 1 and test and machine"), "(and (and (> topic 1.0) test) machine)");
    assert_eq!(
        printed("topic a property p = a.topic property q = a.test let x = 1 > a.let and p2 let p2 = a.if"),
        ["a.topic", "a.test"]
    );
}

#[test]
fn attributes_are_kept() {
    let spec =
        parse("topic a @x @y(z) @w(\"a b\") @n(-1.5) property p = a.v @x property q = a.v").spec.unwrap();
    let attributes: Vec<_> =
        spec.properties[0].attributes.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(attributes, [("x", ""), ("y", "z"), ("w", "a b"), ("n", "-1.5")]);
    assert_eq!(spec.properties[1].attributes, [("x".to_owned(), String::new())]);
}
