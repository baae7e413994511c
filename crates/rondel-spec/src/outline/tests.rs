use super::*;

/// The names that are written in `text`, each with the declaration that it stands for, as its text and line.
fn uses(text: &str) -> Vec<String> {
    let sources = Sources::alone("a.rondel", text);
    let outline = Outline::of(&sources, None);
    let shown = |(span, symbol): &(Span, usize)| {
        let symbol = &outline.symbols[*symbol];
        let place =
            |span: Span| format!("{}:{}", sources.place(span.start).line, sources.place(span.start).column);
        let declared = symbol.span.map_or("nowhere".to_owned(), place);
        format!("{} {} {declared} {:?}", place(*span), span.of(text), symbol.kind)
    };
    outline.uses.iter().map(shown).collect()
}

#[test]
fn names_lead_to_their_declarations() {
    let text = "\
topic gear \"/gear\" { report: int, pose: { x: float }, scans: [{ r: float }] }
const limit = 2 s
let near(x: float) = x < gear.pose.x
let moves = near(1.0) and gear.report > 1
property p for each report in gear.report = once[0, limit] (moves and report > 2)
machine m { initial off var n: int = 0 off -> on when gear.report > n do n := gear.report error on for limit }
property q = in(m, on) -> exists x. gear{report: x, pose.x > 1}
property r = any s in gear.scans: s.r < 2
assert share(p) >= 0.5
@because_of(p) property o = in(m, off)
test \"t\" { at 0 s gear { report: 1, pose: { x: 2 } } expect q violated }
";
    let expected = "\
1:7 gear 1:7 Topic|1:22 report 1:22 Field|1:35 pose 1:35 Field|1:43 x 1:43 Field|1:55 scans 1:55 Field|\
1:65 r 1:65 Field|2:7 limit 2:7 Constant|3:5 near 3:5 Definition|3:10 x 3:10 Parameter|3:22 x 3:10 Parameter|3:26 gear 1:7 Topic|3:31 pose 1:35 Field|\
3:36 x 1:43 Field|4:5 moves 4:5 Definition|4:13 near 3:5 Definition|4:27 gear 1:7 Topic|\
4:32 report 1:22 Field|5:10 p 5:10 Property|5:21 report 5:21 Parameter|5:31 gear 1:7 Topic|\
5:36 report 1:22 Field|5:53 limit 2:7 Constant|5:61 moves 4:5 Definition|5:71 report 5:21 Parameter|\
6:9 m 6:9 Machine|6:21 off 6:21 State|6:29 n 6:29 Variable|6:40 off 6:21 State|6:47 on 6:47 State|\
6:55 gear 1:7 Topic|6:60 report 1:22 Field|6:69 n 6:29 Variable|6:74 n 6:29 Variable|6:79 gear 1:7 Topic|\
6:84 report 1:22 Field|6:97 on 6:47 State|6:104 limit 2:7 Constant|7:10 q 7:10 Property|7:17 m 6:9 Machine|\
7:20 on 6:47 State|7:34 x 7:34 Parameter|7:37 gear 1:7 Topic|7:42 report 1:22 Field|7:50 x 7:34 Parameter|\
7:53 pose 1:35 Field|7:58 x 1:43 Field|8:10 r 8:10 Property|8:18 s 8:18 Parameter|8:23 gear 1:7 Topic|8:28 scans 1:55 Field|\
8:35 s 8:18 Parameter|8:37 r 1:65 Field|\
9:14 p 5:10 Property|10:13 p 5:10 Property|10:25 o 10:25 Property|10:32 m 6:9 Machine|10:35 off 6:21 State|\
11:19 gear 1:7 Topic|11:26 report 1:22 Field|11:37 pose 1:35 Field|\
11:45 x 1:43 Field|11:61 q 7:10 Property";
    let found = uses(text);
    let expected: Vec<&str> = expected.split('|').collect();
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected, "{found:#?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn declarations_have_their_text_and_the_comment_above() {
    let text = "# Not this one.\n\ntopic a { x: int }\n# At rest.\n// Always.\n@severity(high)\nproperty p =\n  a.x < 3\n# Behind.\n";
    let sources = Sources::alone("a.rondel", text);
    let outline = Outline::of(&sources, None);
    let p = outline.symbols().iter().find(|symbol| symbol.name == "p").unwrap();
    assert_eq!(p.whole.of(text), "@severity(high)\nproperty p =\n  a.x < 3");
    assert_eq!(p.doc, "At rest.\nAlways.");
    assert_eq!(outline.symbols()[0].doc, "");
}

#[test]
fn members_are_fields_of_objects_and_elements() {
    let text = "topic t { a: { b: [[{ c: int }]], d: string } } property p = t.a.";
    let outline = Outline::of(&Sources::alone("a.rondel", text), None);
    let names = |path: &str| -> String {
        outline.members(path).into_iter().map(|(name, field)| format!("{name}: {field} ")).collect()
    };
    assert_eq!(names("t"), "a: { b, d } ");
    assert_eq!(names("t.a"), "b: [[{ c }]] d: string ");
    assert_eq!(names("t.a.b[0][1]"), "c: int ");
    for none in ["t.a.b", "t.a.b[0]", "t.a.d", "t.z", "z", "", "t.a[0]"] {
        assert_eq!(names(none), "", "{none}");
    }
}

#[test]
fn fields_of_elements_are_used_in_their_conditions() {
    let text = "topic t { a: [{ on: bool, v: [int] }] }\n\
        let low(x: float) = any e in t.a: e.v[0] < 3 or not e.on\n\
        property p = low(1) and low(2) and all e in t.a: (e.on and e.v[0] in (1, 2))";
    let outline = Outline::of(&Sources::alone("a.rondel", text), None);
    let used = |of: &str, name: &str| -> usize {
        let (symbol, _) = outline.at(text.find(of).unwrap()).unwrap();
        assert_eq!(outline.symbols()[symbol].name, name);
        outline.uses(symbol).count()
    };
    // Their declaration, and in conditions; what is called twice is written once.
    assert_eq!([used("on:", "a[].on"), used("v:", "a[].v"), used("a: [", "a")], [3, 3, 3]);
    assert_eq!([used("e in t.a: e", "e"), used("e in t.a: (", "e")], [3, 3]);
}

#[test]
fn parameters_of_addresses_are_fields() {
    let text = "topic open \"{robot}/pose\" topic closed \"{robot}/speed\" { v: int } property p = open.robot == closed.robot";
    let outline = Outline::of(&Sources::alone("a.rondel", text), None);
    assert_eq!(outline.members("open"), [("robot".to_owned(), "string".to_owned())]);
    assert_eq!(outline.members("closed").len(), 2);
    for (name, declared) in [("open.robot", 13), ("closed.robot", 41)] {
        let at = text.find(name).unwrap() + name.len();
        let (symbol, _) = outline.at(at).unwrap();
        assert_eq!(outline.symbols()[symbol].span.unwrap().start, declared, "{name}");
    }
}

#[test]
fn half_written_texts_have_names() {
    let text = "topic gear \"é\" { report: int }\nlet f(x: int) = gear.report > x\nproperty p = once[0, 5 s] (f(1) and rising(gear.report > 2))\nmachine m { initial a a -> b when f(2) }";
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        let outline = Outline::of(&Sources::alone("a.rondel", &text[..end]), None);
        for offset in 0..=end {
            outline.at(offset);
        }
        assert!(end < 12 || !outline.symbols().is_empty(), "{end}");
    }
}

#[test]
fn names_are_words_that_are_not_reserved() {
    for (text, expected) in
        [("a1", true), ("_é", true), ("1a", false), ("", false), ("a b", false), ("once", false)]
    {
        assert_eq!(is_name(text), expected, "{text}");
    }
}
