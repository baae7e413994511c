//! Conditions on the elements of an array: `any r in scan.ranges: r < 0.2`.

#![allow(clippy::unwrap_used)] // a test

use rondel_event::{Condition, Test, Value};
use rondel_spec::{Code, Expr, parse, parse_formula};
use rondel_testkit::Random;

const TOPICS: &str = "topic scan { ranges: [float], on: bool, fixed: [int] }
topic d { parts: [{ level: int, name: string, on: bool, at: time, more: [int] }], any: int }
topic open
const LIMIT = 2\n";

/// The formula of a property without diagnostics.
fn formula(text: &str) -> String {
    let text = format!("{TOPICS}property p = {text} or scan.ranges[0] > LIMIT or d.any > 3");
    let outcome = parse(&text);
    // An element may have the name of a topic, which is only a warning.
    let is_sound =
        outcome.diagnostics.iter().all(|diagnostic| diagnostic.code == rondel_spec::Code::Shadowed);
    assert!(is_sound, "{}", outcome.render("x", &text, false));
    let formatted = rondel_spec::format(&text).unwrap();
    assert_eq!(rondel_spec::format(&formatted).unwrap(), formatted);
    assert!(parse(&formatted).spec.is_some(), "{formatted}");
    let spec = outcome.spec.unwrap();
    let whole = spec.print(spec.properties[0].formula).to_string();
    let end = whole.find(" (> scan.ranges[0]").unwrap();
    whole[..end].trim_start_matches("(or ").to_owned()
}

#[test]
fn elements_are_lowered_to_conditions() {
    let cases = [
        ("(any r in scan.ranges: r < 0.2)", "(any scan.ranges (<  0.2))"),
        ("(any r in scan.ranges: 0.2 > r)", "(any scan.ranges (<  0.2))"),
        ("(all r in scan.fixed: r != -1)", "(all scan.fixed (!=  -1.0))"),
        ("(all s in d.parts: s.level < LIMIT + 1 && s.on)", "(all d.parts (< level 3.0) (== on true))"),
        ("(any s in d.parts: not s.on and s.name == \"a\")", "(any d.parts (== on false) (== name \"a\"))"),
        ("(any s in d.parts: s.on != false)", "(any d.parts (== on true))"),
        ("(any s in d.parts: s.level in [LIMIT, 5))", "(any d.parts (>= level 2.0) (< level 5.0))"),
        ("(any s in d.parts: s.more[1] > 3)", "(any d.parts (> more[1] 3.0))"),
        ("(any r in scan.ranges: r < 0.2 or r > 30)", "(any scan.ranges (or (<  0.2) (>  30.0)))"),
        ("(any r in scan.ranges: not r < 0.2)", "(any scan.ranges (>=  0.2))"),
        ("(any r in scan.ranges: not not r < 0.2)", "(any scan.ranges (<  0.2))"),
        ("(any r in scan.ranges: (((r < 0.2))))", "(any scan.ranges (<  0.2))"),
        ("(any r in scan.ranges: (LIMIT + 1) < r)", "(any scan.ranges (>  3.0))"),
        ("(any r in scan.ranges: not (r in [1, 5)))", "(any scan.ranges (or (<  1.0) (>=  5.0)))"),
        ("(any r in scan.ranges: r not in [1, 5))", "(any scan.ranges (or (<  1.0) (>=  5.0)))"),
        ("(all r in scan.fixed: r in (1, LIMIT))", "(all scan.fixed (or (==  1.0) (==  2.0)))"),
        ("(all r in scan.fixed: r not in (1, LIMIT))", "(all scan.fixed (!=  1.0) (!=  2.0))"),
        ("(any s in d.parts: s.name != \"a\")", "(any d.parts (!= name \"a\"))"),
        (
            "(any s in d.parts: not (s.on and s.name == \"a\"))",
            "(any d.parts (or (== on false) (!= name \"a\")))",
        ),
        (
            "(all s in d.parts: s.level >= 2 -> s.on -> s.name == \"a\")",
            "(all d.parts (or (< level 2.0) (== on false) (== name \"a\")))",
        ),
        (
            "(all s in d.parts: s.on and s.level < 1 or not s.on && s.level > 3 || s.level == 2)",
            "(all d.parts (or (and (== on true) (< level 1.0)) (and (== on false) (> level 3.0)) (== level 2.0)))",
        ),
        (
            "(count s in d.parts: s.on and (s.level < 1 or s.level > 3)) > 3",
            "(> (count d.parts (or (and (== on true) (< level 1.0)) (and (== on true) (> level 3.0)))) 3)",
        ),
        ("(any open in open.x.y[2]: open.z == 3)", "(any open.x.y[2] (== z 3.0))"),
        ("(count r in scan.ranges: r < 0.2) > 3", "(> (count scan.ranges (< 0.2)) 3)"),
        ("max(scan.ranges) - min(scan.fixed) > 3", "(> (- (max scan.ranges) (min scan.fixed)) 3.0)"),
        ("mean(scan.ranges) < sum(d.parts[1].more)", "(< (mean scan.ranges) (sum d.parts[1].more))"),
        ("max(open.x, LIMIT) > 3", "(> (max open.x 2.0) 3.0)"),
        ("(max(max(scan.ranges)) over 3) > 1", "(> (max over 3 of scan (max scan.ranges)) 1.0)"),
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
fn invalid_conditions_are_refused() {
    let cases = [
        (
            "any r in scan.ranges: r < 0.2 or scan.on",
            Code::NeedsParentheses,
            "write `(any r in scan.ranges: r < 0.2) or …`",
        ),
        ("any r in scan.ranges: r < 0.2 -> scan.on", Code::NeedsParentheses, "`any` before `->`"),
        ("any r in scan.ranges: r < 0.2 or (scan.on)", Code::NeedsParentheses, "`any` before `or`"),
        ("any r in scan.ranges: (r < 0.2 or scan.on)", Code::NotInThisVersion, "outside of parentheses"),
        ("any r in scan.ranges: not scan.on", Code::NotInThisVersion, "outside of parentheses"),
        ("any r in scan.ranges: (r < 0.2", Code::UnexpectedToken, "expected `and`, `or`, `->` or `)`"),
        ("any r in scan.ranges: (r < 0.2 r)", Code::UnexpectedToken, "expected `and`, `or`, `->` or `)`"),
        ("any r in scan.ranges: (r) < 0.2", Code::NotInThisVersion, "compares 'r'"),
        ("any r in scan.ranges: r < 0.2 <-> r > 3", Code::NeedsParentheses, "cannot be joined by `<->`"),
        ("any r in scan.ranges: r < 0.2 and scan.on", Code::NotInThisVersion, "outside of parentheses"),
        ("count r in scan.ranges: r < 0.2 > 3", Code::NeedsParentheses, "`count` before `>`"),
        ("count r in scan.ranges: r < 0.2", Code::TypeMismatch, "number"),
        ("any r in scan.ranges: r < scan.fixed[0]", Code::NotConstant, "constants only"),
        ("any r in scan.ranges: 2 * r < 3", Code::NotInThisVersion, "compares 'r'"),
        ("any r in scan.ranges: r < r", Code::NotInThisVersion, "compares 'r'"),
        ("any r in scan.ranges: r in ()", Code::UnexpectedToken, "expected an expression"),
        ("any r in scan.ranges: r in [1, 2, 3]", Code::WrongArguments, "an interval has two ends"),
        ("any r in scan.ranges: r == \"a\"", Code::TypeMismatch, "cannot compare a float with a string"),
        ("any r in scan.ranges: r", Code::TypeMismatch, "cannot compare a float with a bool"),
        ("any r in scan.ranges: r < 2 s", Code::TypeMismatch, "a float"),
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

/// At most 64 comparisons, counted when `or` is multiplied out; and no text is too deep or too long.
#[test]
fn number_of_conditions_is_limited() {
    let joined = |count: usize, by: &str, one: &str| vec![one; count].join(by);
    let either = "(r < 1 or r > 2)";
    let nested = |count: usize| format!("{}r < 1{}", "not (".repeat(count), ")".repeat(count));
    let cases = [
        (joined(64, " and ", "r < 1"), None),
        (joined(64, " or ", "r < 1"), None),
        (joined(65, " and ", "r < 1"), Some(Code::NotInThisVersion)),
        (joined(100_000, " or ", "r < 1"), Some(Code::NotInThisVersion)),
        // 16 alternatives of 4, 32 of 5.
        (joined(4, " and ", either), None),
        (joined(5, " and ", either), Some(Code::NotInThisVersion)),
        (joined(30, " and ", either), Some(Code::NotInThisVersion)),
        (format!("not ({})", joined(30, " and ", either)), None),
        (joined(100, " -> ", "r < 1"), Some(Code::NotInThisVersion)),
        (nested(100), None),
        (nested(10_000), Some(Code::TooDeep)),
        (format!("{}r < 1", "not ".repeat(10_001)), None),
        (format!("r in ({})", joined(64, ", ", "1")), None),
        (format!("r in ({})", joined(65, ", ", "1")), Some(Code::NotInThisVersion)),
    ];
    for (conditions, code) in cases {
        let text = format!("{TOPICS}property p = all r in scan.ranges: {conditions}");
        let outcome = parse(&text);
        let found = outcome.diagnostics.iter().find(|d| d.is_error()).map(|d| d.code);
        assert_eq!(found, code, "{}", &conditions[..conditions.len().min(200)]);
    }
}

/// The fields of an element; none that is missing, or of a type that no comparison here has.
#[derive(Debug)]
struct Element {
    level: Option<f64>,
    name: Option<&'static str>,
    on: Option<bool>,
}

/// Truth of a formula for an element; none where the field is unknown.
type Meaning = Box<dyn Fn(&Element) -> Option<bool>>;

/// A formula as text, with its truth for an element.
struct Formula {
    text: String,
    meaning: Meaning,
}

fn test(random: &mut Random) -> Formula {
    let bound = random.index(3);
    let number = bound as f64;
    let is_level = |compare: fn(f64, f64) -> bool| -> Meaning {
        Box::new(move |element| element.level.filter(|x| !x.is_nan()).map(|x| compare(x, number)))
    };
    let (text, meaning): (String, Meaning) = match random.index(11) {
        0 => (format!("s.level < {bound}"), is_level(|x, y| x < y)),
        1 => (format!("{bound} <= s.level"), is_level(|x, y| x >= y)),
        2 => (format!("s.level == {bound}"), is_level(|x, y| x == y)),
        3 => (format!("s.level != {bound}"), is_level(|x, y| x != y)),
        4 => (format!("s.level in [{bound}, 2)"), is_level(|x, y| x >= y && x < 2.0)),
        5 => (format!("s.level not in ({bound}, 2]"), is_level(|x, y| x <= y || x > 2.0)),
        6 => (format!("s.level in ({bound}, 2)"), is_level(|x, y| x == y || x == 2.0)),
        7 => ("s.name == \"a\"".into(), Box::new(|element| element.name.map(|name| name == "a"))),
        8 => ("s.name != \"a\"".into(), Box::new(|element| element.name.map(|name| name != "a"))),
        9 => ("s.on".into(), Box::new(|element| element.on)),
        _ => ("s.on != true".into(), Box::new(|element| element.on.map(|on| !on))),
    };
    Formula { text, meaning }
}

/// A formula that binds at least as tightly as `level`: 0 is `->`, 1 `or`, 2 `and`, 3 `not`.
fn random_formula(random: &mut Random, level: usize, depth: usize) -> Formula {
    let is_leaf = depth == 0 || random.index(4) == 0;
    match if is_leaf { 4 } else { level + random.index(5 - level) } {
        operator @ 0..3 => {
            // `->` groups to the right, the others to the left.
            let left = random_formula(random, operator + usize::from(operator == 0), depth - 1);
            let right = random_formula(random, operator + usize::from(operator > 0), depth - 1);
            let word = [["->", "->"], ["or", "||"], ["and", "&&"]][operator][random.index(2)];
            let (of_left, of_right) = (left.meaning, right.meaning);
            let and = |x: Option<bool>, y: Option<bool>| match (x, y) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            let not = |x: Option<bool>| x.map(|x| !x);
            Formula {
                text: format!("{} {word} {}", left.text, right.text),
                meaning: match operator {
                    0 => Box::new(move |e| not(and(of_left(e), not(of_right(e))))),
                    1 => Box::new(move |e| not(and(not(of_left(e)), not(of_right(e))))),
                    _ => Box::new(move |e| and(of_left(e), of_right(e))),
                },
            }
        }
        3 => {
            let inner = random_formula(random, 3, depth - 1);
            let (word, meaning) = (["not ", "!"][random.index(2)], inner.meaning);
            Formula {
                text: format!("{word}{}", inner.text),
                meaning: Box::new(move |e| meaning(e).map(|x| !x)),
            }
        }
        _ if depth > 0 && random.index(2) == 0 => {
            let inner = random_formula(random, 0, depth - 1);
            Formula { text: format!("({})", inner.text), meaning: inner.meaning }
        }
        _ => test(random),
    }
}

/// Whether the element meets one condition of a decoder, by its definition.
fn is_met(condition: &Condition, element: &Element) -> bool {
    match (&*condition.path.to_string(), &condition.test) {
        ("level", Test::Number(comparison, bound) | Test::Integer(comparison, bound)) => {
            element.level.is_some_and(|x| !x.is_nan() && comparison.holds(x, *bound))
        }
        ("name", Test::Equals(Value::String(text))) => element.name == Some(&**text),
        ("name", Test::OtherText(text)) => element.name.is_some_and(|name| *name != **text),
        ("on", Test::Equals(Value::Bool(on))) => element.on == Some(*on),
        other => unreachable!("{other:?}"),
    }
}

/// Formulas are converted to alternatives of conditions. An element meets one of them exactly if the formula is true.
#[test]
fn alternatives_are_equivalent_to_the_formula() {
    let seeds = rondel_testkit::seeds("alternatives_are_equivalent_to_the_formula", 1000);
    let least = seeds.left() as usize;
    let (mut compared, mut met, mut divided) = (0, 0, 0);
    for seed in seeds {
        let mut random = Random::new(seed);
        let Formula { text, meaning } = random_formula(&mut random, 0, 4);
        let source = format!("{TOPICS}property p = any s in d.parts: {text}");
        let outcome = parse(&source);
        let Some(spec) = outcome.spec else {
            let codes: Vec<Code> = outcome.diagnostics.iter().map(|d| d.code).collect();
            assert_eq!(codes, [Code::NotInThisVersion], "seed {seed}, {text}");
            continue;
        };
        let formatted = rondel_spec::format(&source).unwrap();
        assert_eq!(parse(&formatted).spec.unwrap().nodes, spec.nodes, "seed {seed}, {formatted}");
        let Expr::Elements { conditions, .. } = &spec.nodes[spec.properties[0].formula.index()] else {
            unreachable!("{text}")
        };
        let last = conditions.last().unwrap().alternative;
        divided += usize::from(last > 0);
        for _ in 0..20 {
            let element = Element {
                level: [None, Some(f64::NAN), Some(0.0), Some(1.0), Some(1.5), Some(3.0)][random.index(6)],
                name: [None, Some("a"), Some("b")][random.index(3)],
                on: [None, Some(true), Some(false)][random.index(3)],
            };
            let meets = |alternative| {
                let mut of = conditions.iter().filter(|c| c.alternative == alternative);
                of.all(|condition| is_met(condition, &element))
            };
            let found = (0..=last).any(meets);
            assert_eq!(
                found,
                meaning(&element) == Some(true),
                "seed {seed}, {text}, {element:?}\n{conditions:?}"
            );
            (compared, met) = (compared + 1, met + usize::from(found));
        }
    }
    let is_enough = compared > 10 * least && met > 2 * least && divided > least / 3;
    assert!(
        rondel_testkit::is_replay() || is_enough,
        "only {compared} elements were compared, {met} met their formula, {divided} formulas had alternatives"
    );
}
