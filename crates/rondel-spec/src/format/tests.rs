use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use super::{format, once, same};
use crate::lexer;
use crate::{Spec, parse};

const TEXTS: [&str; 5] = [
    include_str!("../../tests/diagnostics/asserts_correct.rondel"),
    include_str!("../../tests/diagnostics/declarations.rondel"),
    include_str!("../../tests/diagnostics/correct.rondel"),
    include_str!("../../tests/diagnostics/relations_warnings.rondel"),
    include_str!("../../tests/diagnostics/machines_warnings.rondel"),
];

/// Returns the comments of a text, sorted, as formatting may reorder them.
fn comments(text: &str) -> Vec<String> {
    let tokens = lexer::tokens(text, &mut Vec::new());
    let ends = std::iter::once(0).chain(tokens.iter().map(|token| token.span.end));
    let gaps = ends.zip(&tokens).map(|(end, token)| &text[end..token.span.start]);
    let mut comments: Vec<_> = gaps
        .flat_map(|gap| gap.lines().map(str::trim).filter(|l| !l.is_empty()))
        .map(str::to_owned)
        .collect();
    comments.sort();
    comments
}

/// Returns the specification of a text without locations.
fn spec(text: &str) -> Option<Spec> {
    let mut spec = parse(text).spec?;
    for test in &mut spec.tests {
        test.offset = 0;
        test.expectations.iter_mut().for_each(|expectation| expectation.offset = 0);
    }
    for transition in spec.machines.iter_mut().flat_map(|machine| &mut machine.transitions) {
        transition.text.retain(|c| !c.is_whitespace());
    }
    Some(spec)
}

fn examine(text: &str) -> String {
    let first = once(text).unwrap_or_else(|d| panic!("{d:?}\n{text}"));
    assert!(same(text, &first), "{text}\nis now\n{first}");
    let formatted = format(text).unwrap();
    assert_eq!(format(&formatted).unwrap(), formatted, "{text}");
    assert_eq!(spec(&formatted), spec(text), "{text}\nis now\n{formatted}");
    assert_eq!(comments(&formatted), comments(text), "{text}\nis now\n{formatted}");
    formatted
}

#[test]
fn formatting_keeps_the_meaning() {
    for text in TEXTS {
        let formatted = examine(text);
        for line in formatted.lines() {
            assert!(line.trim_end() == line, "{line:?}");
        }
        assert!(!formatted.contains("\n\n\n"));
    }
}

#[test]
fn formatting_keeps_the_examples_of_the_reference() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/language");
    let mut seen = 0;
    for page in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let page = std::fs::read_to_string(page).unwrap();
        let blocks = page.split("\n```rondel").skip(1).filter_map(|block| block.split_once('\n'));
        for (info, rest) in blocks {
            if !info.contains("formula") && !info.contains("wrong") {
                examine(rest.split("\n```").next().unwrap());
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "only {seen} blocks");
}

#[test]
fn layout() {
    for (text, expected) in [
        ("", ""),
        ("\n\n// only\n\n\n# comments\n", "// only\n\n# comments\n"),
        ("topic a;topic bc\"x\":t/u{v:int,};", "topic a\ntopic bc \"x\" : t/u { v: int }\n"),
        (
            "topic a:std_msgs/msg/String\n// of b\ntopic longer \"/b\" : x.Y // why\n\n\ntopic c{x:[{y:int}]}",
            "topic a           : std_msgs/msg/String\n// of b\ntopic longer \"/b\" : x.Y  // why\n\n\
             topic c { x: [{ y: int }] }\n",
        ),
        (
            "let x=not( a.b )and -a . c[ 0 ]>- 3 or!once [ 0 ,5 ]( a.d since[1 s,]a.e )",
            "let x = not (a.b) and -a.c[0] > -3 or !once[0,5] (a.d since[1 s,] a.e)\n",
        ),
        (
            "property p=a.l[ -1 ].x[ 0 ]>-1 and len( a.l[-2] )==1 and any r in a.l[- 3]:r<-1",
            "property p = a.l[-1].x[0] > -1 and len(a.l[-2]) == 1 and any r in a.l[-3]: r < -1\n",
        ),
        ("const A=1 // one\n// two\nconst B=2", "const A = 1  // one\n// two\nconst B = 2\n"),
        ("@a @b(3)property p=\n x.y", "@a @b(3)\nproperty p =\n    x.y\n"),
        ("property p=x.y // a\n and x.z", "property p =\n    x.y  // a\n    and x.z\n"),
        ("property p=abs(x.y)>if x.a then 1 else 2", "property p = abs(x.y) > if x.a then 1 else 2\n"),
        ("property p=exists x,y.t{a:x,b:y,c>3}", "property p = exists x, y. t{a: x, b: y, c > 3}\n"),
        ("machine m{initial a a->b after 3}", "machine m {\n    initial a\n    a -> b after 3\n}\n"),
        (
            "machine m{initial a\n\n\n//c\nerror a //d\n//e\n}",
            "machine m {\n    initial a\n\n    //c\n    error a  //d\n    //e\n}\n",
        ),
        ("chain a->b by x.y within 3", "chain a -> b by x.y within 3\n"),
        ("test 't'{}", "test 't' {\n}\n"),
        (
            "test 't'{at 0 s a{x:[1,-2,],y:{}}at -1 s abc end at 3 s expect p[1,'x']never violated at 2 s}",
            "test 't' {\n    at 0 s  a   { x: [1, -2], y: {} }\n    at -1 s abc\n    end at 3 s\n    \
             expect p[1, 'x'] never violated at 2 s\n}\n",
        ),
    ] {
        assert_eq!(format(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn long_formulas_are_broken_at_the_loosest_operator() {
    let a = "velocity.longitudinal_velocity";
    let text =
        format!("property p = {a} > 0.5 and changed({a}) -> {a} < 3 or ({a} > 4 and {a} > 5 and {a} > 6)");
    let expected = format!(
        "property p =\n    {a} > 0.5 and changed({a})\n    -> {a} < 3\n        or (\n            {a} > 4\n            \
         and {a} > 5\n            and {a} > 6\n        )\n"
    );
    assert_eq!(examine(&text), expected);
    let text = format!("property p = {} > 3", ["x.yyyyyyyyyyyyyyyy"; 12].join(" + "));
    assert!(examine(&text).lines().all(|line| line.len() <= 100));
    let deep = format!("property p = {}x.y{}", "(".repeat(240), ")".repeat(240));
    examine(&deep);
    examine(&format!("property p = {}", ["x.y"; 5000].join(" and x.z or ")));
}

#[test]
fn syntax_errors_are_returned() {
    let message = format("topic a property p = a.v and").unwrap_err();
    assert_eq!(message.len(), 1);
    assert!(format("topic a { x: int } property p = b.y + 'names and types are not looked at'").is_ok());
}

/// Returns a text with the same tokens, and other spaces and comments between them.
fn spaced(text: &str, gaps: &[u8]) -> String {
    let tokens = lexer::tokens(text, &mut Vec::new());
    let mut out = String::new();
    let mut end = 0;
    for (i, token) in tokens.iter().enumerate() {
        let original = &text[end..token.span.start];
        let gap = gaps[i % gaps.len()].wrapping_add((i / gaps.len()) as u8);
        let needed =
            out.ends_with(lexer::continues_word) && token.span.of(text).starts_with(lexer::continues_word);
        let between = match gap % 32 {
            0 => "\n".to_owned(),
            1 => "\n\n\n".to_owned(),
            2 => " \t ".to_owned(),
            3 => format!(" // behind {i}\n"),
            4 => format!("\n# before {i}\n  "),
            5 => format!(" # one {i}\n\n// two {i}\n\n"),
            6..12 if original.trim().is_empty() && !needed => String::new(),
            _ if original.trim().is_empty() && !original.is_empty() => " ".to_owned(),
            _ => original.to_owned(),
        };
        // Keep tokens together whose separation would change their meaning.
        let glued = original.is_empty();
        out.push_str(if glued { "" } else { &between });
        out.push_str(token.span.of(text));
        end = token.span.end;
    }
    out
}

fn config() -> ProptestConfig {
    let kept = FileFailurePersistence::Direct("proptest-regressions/format.txt");
    ProptestConfig { cases: 150, failure_persistence: Some(Box::new(kept)), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn layout_does_not_change_the_specification(
        text in prop::sample::select(TEXTS.as_slice()),
        gaps in prop::collection::vec(any::<u8>(), 1..60),
    ) {
        let text = spaced(text, &gaps);
        // Skip texts in which two words became one.
        prop_assume!(once(&text).is_ok());
        examine(&text);
    }
}
