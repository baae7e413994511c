use crate::{Code, SchemaType, parse, parse_formula};

fn printed(text: &str) -> String {
    let outcome = parse_formula(text);
    let spec = outcome.spec.unwrap_or_else(|| panic!("{text}: {:?}", outcome.diagnostics));
    spec.print(spec.properties[0].formula).to_string()
}

/// Each formula is equivalent to the second one, which has all its parentheses.
#[test]
fn precedence() {
    for (text, expected) in [
        ("a <-> b -> c", "a <-> (b -> c)"),
        ("a <-> b <-> c", "(a <-> b) <-> c"),
        ("a -> b -> c", "a -> (b -> c)"),
        ("a or b -> c or d", "(a or b) -> (c or d)"),
        ("a or b and c or d", "(a or (b and c)) or d"),
        ("a and b since c and d", "(a and (b since c)) and d"),
        ("not a since not b", "(not a) since (not b)"),
        ("once a since[1,2] historically b", "(once a) since[1,2] (historically b)"),
        ("not x == 1", "not (x == 1)"),
        ("previously x > y + 1", "previously (x > (y + 1))"),
        ("not not a and b", "(not (not a)) and b"),
        ("once[,3] not previously a", "once[,3] (not (previously a))"),
        ("x + y * z - w > 1", "((x + (y * z)) - w) > 1"),
        ("x - y - z > 1", "((x - y) - z) > 1"),
        ("x / y * z % w > 1", "(((x / y) * z) % w) > 1"),
        ("-x * y > -z.a[0]", "((-x) * y) > (-(z.a[0]))"),
        ("x - -y > 1", "x - (-y) > 1"),
        ("if a then b else c and d", "if a then b else (c and d)"),
        ("if a then if b then c else d else e", "if a then (if b then c else d) else e"),
        ("! a && b || c", "(not a and b) or c"),
        ("not a until[,2] next b", "(not a) until[,2] (next b)"),
        ("eventually[,2] a and always[,2] b > 1", "(eventually[,2] a) and (always[,2] (b > 1))"),
        (
            "count(a) over 3 > 2 + age(trace) / 1 s and b",
            "(((count(a) over 3)) > (2 + (age(trace) / (1 s)))) and b",
        ),
        ("a > 1 - 2 ms / 1 s", "a > (1 - ((2 ms) / (1 s)))"),
    ] {
        assert_eq!(printed(text), printed(expected), "{text}");
    }
}

#[test]
fn topics() {
    let text = r#"
        topic plain
        topic addressed "/a/b"
        topic typed : std_msgs/msg/String;
        topic scoped : demo::State
        topic full "c" : a.b.C { x: float32, "odd key": [ { y: uint8, } ], t: time }
        property p = plain.x and full."odd key"[3].y == 1
    "#;
    let outcome = parse(text);
    let spec = outcome.spec.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics));
    let topics: Vec<_> =
        spec.topics.iter().map(|t| (t.name.as_str(), t.address.as_str(), t.type_name.as_deref())).collect();
    assert_eq!(
        topics,
        [
            ("plain", "plain", None),
            ("addressed", "/a/b", None),
            ("typed", "typed", Some("std_msgs/msg/String")),
            ("scoped", "scoped", Some("demo/State")),
            ("full", "c", Some("a.b.C")),
        ]
    );
    let schema = spec.topics[4].schema.as_ref().unwrap();
    let names: Vec<_> = schema.fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x", "odd key", "t"]);
    assert!(matches!(schema.fields[1].1, SchemaType::Array(..)));
}

#[test]
fn long_chains_are_accepted_and_deep_nesting_is_rejected() {
    let sum = format!("{} > 1", vec!["x"; 50_000].join(" + "));
    assert!(parse_formula(&sum).spec.is_some());
    let all = vec!["a"; 50_000].join(" and b or ");
    assert!(parse_formula(&all).spec.is_some());
    let levels = |n: usize| format!("{}a{}", "(".repeat(n), ")".repeat(n));
    assert!(parse_formula(&levels(200)).spec.is_some());
    for text in [
        levels(300),
        "not ".repeat(100_000),
        "- ".repeat(100_000),
        "a -> ".repeat(100_000),
        "if ".repeat(100_000),
        "abs(".repeat(100_000),
        "if a then b else ".repeat(100_000),
        "once[1,2] ".repeat(100_000),
        "eventually[1,2] ".repeat(100_000),
        "exists x. ".repeat(100_000),
        "trace{a: ".repeat(100_000),
        "count(".repeat(100_000),
        "a until[0,1] (".repeat(100_000),
    ] {
        let mut codes: Vec<_> = parse_formula(&text).diagnostics.iter().map(|d| d.code).collect();
        codes.retain(|code| *code != Code::Shadowed);
        assert_eq!(codes, [Code::TooDeep]);
    }
    for text in ["topic a {x:".repeat(2_000), format!("topic a {{ x: {}", "[".repeat(100_000))] {
        assert!(parse(&text).spec.is_none());
    }
    let nested = format!("topic a {}", "{ x: ".repeat(100_000));
    assert_eq!(parse(&nested).diagnostics[0].code, Code::TooDeep);
}

#[test]
fn parsing_resumes_at_the_next_declaration() {
    let text =
        "topic a let x = ) const y = 3 4 property p = a.v == y @q property r = zz machine m { property";
    let codes: Vec<_> = parse(text).diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(
        codes,
        [Code::UnexpectedToken, Code::UnexpectedToken, Code::UnknownName, Code::UnexpectedToken]
    );
}

#[test]
fn long_circles_of_unused_definitions_are_found_in_one_pass() {
    let declared = |i: usize, used: usize| format!("let f{i}(p: bool) = f{used}(p) or f0(p)\n");
    let count = 2000;
    let text: String = (0..count).map(|i| declared(i, (i + 1) % count)).collect();
    let outcome = parse(&(text + "property p = true"));
    let errors = outcome.diagnostics.iter().filter(|d| d.code == Code::RecursiveDefinition);
    let errors: Vec<_> = errors.collect();
    assert_eq!(errors.len(), count + 1);
    assert!(errors.iter().all(|error| error.message.len() < 200));
}

/// The colours in editors know the words of the parser.
#[test]
fn the_grammar_of_editors_has_all_words() {
    use super::{assert, machine, parser};

    let grammar = include_str!("../../../../editors/vscode/syntaxes/rondel.tmLanguage.json");
    let colored: Vec<&str> = grammar.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let lists: [&[&str]; 7] = [
        &parser::DECLARATIONS,
        &parser::RESERVED,
        &parser::PREFIX,
        &parser::BEFORE_PARENTHESIS,
        &assert::SPACED,
        &machine::STATEMENTS,
        &machine::CLAUSES,
    ];
    // In the grammar a word stands behind a boundary, `\b`, or a bracket.
    let known = |word: &&str| colored.iter().any(|part| part == word || part.strip_prefix('b') == Some(word));
    let missing: Vec<&&str> = lists.iter().copied().flatten().filter(|word| !known(word)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(grammar.contains("(?:#|//).*$"), "comments begin with `#` or `//`");
    // Without this flag names have no letters, and nothing is completed.
    let words = include_str!("../../../../editors/vscode/language-configuration.json");
    assert!(words.contains("[\\\\p{L}_][\\\\p{L}\\\\p{N}_]*\", \"flags\": \"u\""), "{words}");
}
