use crate::{Code, Expr, parse, parse_formula};

/// Returns the formulas of the properties as text.
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
    assert_eq!(with("t.i > 3 / 2"), "(> i 1)");
    assert_eq!(with("t.i > 3.0 / 2"), "(> (float i) 1.5)");
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
    // 2^200 additions, if they were not shared.
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
fn operands_come_first_and_unused_nodes_are_removed() {
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
fn changed_covers_every_topic_of_its_operand() {
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
fn keywords_can_be_names_of_fields() {
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

/// Returns the formula of `property p = …` over the fields of one topic, and its time model.
fn timed(formula: &str) -> (String, crate::TimeModel) {
    let text = format!(
        "topic t {{ ok: bool, n: int, x: float, at: time, gap: duration }} topic u {{ n: int, s: string }}
         const REACH = 2 s const N = 3 let lately = once[0, REACH] t.ok let ago = once[0, N] t.ok {formula}"
    );
    let outcome = parse(&text);
    let spec = outcome.spec.unwrap_or_else(|| panic!("{formula}: {:?}", outcome.diagnostics));
    let property = &spec.properties[0];
    (spec.print(property.formula).to_string().replace("t.", ""), property.time)
}

#[test]
fn units_determine_the_time_model() {
    use crate::TimeModel::{Dense, Points, Steps};
    for (formula, expected, model) in [
        ("property p = lately", "(once [0,2000000000] ok)", Dense),
        ("property p = ago", "(once [0,3] ok)", Steps),
        ("@time(points) property p = ago", "(once [0,3000000000] ok)", Points),
        (
            "@time(dense) property p = ago and lately",
            "(and (once [0,3000000000] ok) (once [0,2000000000] ok))",
            Dense,
        ),
        ("@time(dense) property p = once[0.5, 1.5 min] t.ok", "(once [500000000,90000000000] ok)", Dense),
        ("property p = t.gap > REACH", "(> gap (duration 2000000000))", Steps),
        ("property p = age(t) > 1 ms", "(> (age t) (duration 1000000))", Dense),
        ("property p = age(t) > 1 ms and ago", "(and (> (age t) (duration 1000000)) (once [0,3] ok))", Steps),
        ("property p = rate(t) over 1 s > 3", "(> (rate over 1000000000 of t) 3.0)", Dense),
        ("property p = once[0,] t.ok", "(once ok)", Steps),
        (
            "property p = count(t.ok) over N > min(t.n) over 5 and mean(t.n) over 2 > sum(t.x) over 2",
            "(and (> (count over 3 of t ok) (min over 5 of t n)) \
             (> (mean over 2 of t (float n)) (sum over 2 of t x)))",
            Steps,
        ),
        ("property p = count(u) over 5 min == 0", "(== (count over 300000000000 of u) 0)", Dense),
    ] {
        assert_eq!(timed(formula), (expected.to_owned(), model), "{formula}");
    }
}

#[test]
fn definitions_are_lowered_for_each_time_model() {
    let spec = parse(
        "topic t { ok: bool } let l = once[0, 2] t.ok property p = l @time(dense) property q = l
         @time(points) property r = l",
    )
    .spec
    .unwrap();
    let printed: Vec<_> = spec.properties.iter().map(|p| spec.print(p.formula).to_string()).collect();
    assert_eq!(printed, ["(once [0,2] t.ok)", "(once [0,2000000000] t.ok)", "(once [0,2000000000] t.ok)"]);
    // Each problem is reported once.
    let text = "topic t { ok: bool } let l = once[3, 2] t.ok property p = l or t.ok @time(dense) property q = l or t.ok";
    assert_eq!(codes(text), [Code::EmptyInterval]);
}

#[test]
fn options_choose_the_default_time_model() {
    let text = "topic t { ok: bool } property p = once[0, 2] t.ok @time(steps) property q = once[0, 2] t.ok";
    let options = crate::ParseOptions { time: Some(crate::TimeModel::Points), ..Default::default() };
    let spec = crate::parse_with(text, &options).spec.unwrap();
    let models: Vec<_> = spec.properties.iter().map(|p| p.time).collect();
    assert_eq!(models, [crate::TimeModel::Points, crate::TimeModel::Steps]);
    let options = crate::ParseOptions { time: Some(crate::TimeModel::Steps), ..Default::default() };
    let outcome = crate::parse_formula_with("once[0, 2 s] ok", &options);
    assert_eq!(outcome.diagnostics[0].code, Code::WrongTimeModel);
}

#[test]
fn arithmetic_of_times_and_durations() {
    for (formula, expected) in [
        ("t.at - t.at < 2 s * 1.5", "(< (- at at) (duration 3000000000))"),
        ("t.at + 2 s > t.at - t.gap * 2", "(> (+ at (duration 2000000000)) (- at (* gap 2)))"),
        ("t.gap / 100 ms > t.x", "(> (/ gap (duration 100000000)) x)"),
        ("t.gap / 2 == 3 * t.gap % 1 h", "(== (/ gap 2) (% (* 3 gap) (duration 3600000000000)))"),
        ("-t.gap < abs(t.gap)", "(< (- (duration 0) gap) (max gap (- (duration 0) gap)))"),
        ("min(t.gap, 3 d) > -1 ns", "(> (min gap (duration 259200000000000)) (duration -1))"),
        ("6 s / 4 s > t.x and 3 s / 2 > t.gap", "(and (> 1.5 x) (> (duration 1500000000) gap))"),
        ("latency(t) - jitter(u) > t.gap", "(> (- (latency t) (jitter u)) gap)"),
        ("prev(t.at) < t.at", "(< (prev at) at)"),
        (
            "(if t.ok then 1 s else t.gap) == 2 s",
            "(== (if ok (duration 1000000000) gap) (duration 2000000000))",
        ),
    ] {
        assert_eq!(timed(&format!("property p = {formula}")).0, expected, "{formula}");
    }
}

#[test]
fn future_operators_are_parsed_and_folded() {
    for (formula, expected) in [
        ("eventually[,2] t.ok", "(eventually [0,2] ok)"),
        ("t.ok -> always[1,N] not t.ok", "(or (not ok) (always [1,3] (not ok)))"),
        ("t.ok until[,2] t.ok and next t.ok", "(and (until [0,2] ok ok) (next ok))"),
        ("true until[1,2] t.ok", "(eventually [1,2] ok)"),
        ("eventually[0,2] always[0,1] once t.ok", "(eventually [0,2] (always [0,1] (once ok)))"),
        ("if t.ok then next t.ok else t.ok", "(if ok (next ok) ok)"),
    ] {
        assert_eq!(timed(&format!("property p = {formula}")).0, expected, "{formula}");
    }
}

#[test]
fn any_name_is_that_of_a_field_of_a_single_formula() {
    let words = formula("a.b < 5 and until_now");
    assert_eq!(formula(".\"a\".b < 5 and .'until_now'"), words);
    let outcome = parse_formula(".\"speed (m/s)\" < 5 -> once .\"until\"[0].\"x y\" > 1");
    let spec = outcome.spec.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics));
    let printed = spec.print(spec.properties[0].formula).to_string();
    assert!(printed.contains("trace.speed (m/s)") && printed.contains("trace.until[0].x y"), "{printed}");
    let help = |text: &str| parse_formula(text).diagnostics[0].help.clone().unwrap_or_default();
    assert!(help("\"speed (m/s)\" < 5").contains("`.\"speed (m/s)\"`"));
    // In a specification, fields have topics.
    assert!(parse("topic a\nproperty p = .\"x\" < 5").spec.is_none());
}

#[test]
fn atoms_bind_and_compare() {
    for (formula, expected) in [
        ("t{}", "(on t)"),
        ("exists x. t{n: x}", "(exists ?0 (bind t n: ?0))"),
        (
            "forall x. t{n: x, ok, x > 2, not ok} -> once[0,2] u{n: x, s: \"a\"}",
            "(forall ?0 (or (not (and (and (and (and (and (and (bind t n: ?0) (carried ok)) ok) (carried x)) \
             (> x 2.0)) (carried ok)) (not ok))) \
             (once [0,2] (and (and (bind u n: ?0) (carried u.s)) (== u.s \"a\")))))",
        ),
        (
            "exists x, y. t{n: x} and u{n: y} and x < y + 1",
            "(exists ?0 (exists ?1 (and (and (bind t n: ?0) (bind u n: ?1)) (< ?0 (+ ?1 1)))))",
        ),
        (
            "t{n: N, gap <= REACH}",
            "(and (and (and (carried n) (== n 3)) (carried gap)) (<= gap (duration 2000000000)))",
        ),
    ] {
        assert_eq!(timed(&format!("property p = {formula}")).0, expected, "{formula}");
    }
    let spec = crate::parse_formula("exists x. trace{a.b: x, c == 3}").spec.unwrap();
    let printed = spec.print(spec.properties[0].formula).to_string();
    assert_eq!(printed, "(exists ?0 (and (and (bind trace a.b: ?0) (carried trace.c)) (== trace.c 3.0)))");
}
