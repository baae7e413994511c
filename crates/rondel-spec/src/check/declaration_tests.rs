//! Tests of parameters, machines, chains and tests.

use rondel_event::{Value, ValueType, Verdict};

use crate::{Expr, MachineId, SliceId, Spec, TimeModel, parse};

fn spec(text: &str) -> Spec {
    let outcome = parse(text);
    let shown = outcome.render("spec", text, false);
    assert!(outcome.diagnostics.is_empty(), "{shown}");
    outcome.spec.unwrap()
}

#[test]
fn equal_parameters_share_a_slice() {
    let spec = spec(
        "topic request { id: string } topic grant { id: string } topic done
         property a for each id in (request.id, grant.id) until on(done) = on(grant) -> once on(request)
         property b for each id in (request.id, grant.id) until on(done) = on(grant) -> id != \"\"
         property c for each id in (request.id, grant.id) = on(grant) -> once on(request)
         @limit(1_000) property d for each id in (request.id, grant.id) = on(grant) -> once on(request)
         property e = on(grant) -> once on(request)",
    );
    let slices: Vec<_> = spec.properties.iter().map(|p| p.slice).collect();
    assert_eq!(slices, [Some(SliceId(0)), Some(SliceId(0)), Some(SliceId(1)), Some(SliceId(2)), None]);
    assert_eq!(spec.slices.len(), 3);
    assert_eq!(spec.print(spec.slices[0].until.unwrap()).to_string(), "(on done)");
    assert_eq!((spec.slices[1].until, spec.slices[1].limit), (None, None));
    assert_eq!(spec.slices[2].limit, Some(1000));
    let key = &spec.slices[0].keys[0];
    assert_eq!((key.name.as_str(), key.value_type), ("id", ValueType::String));
    let fields: Vec<_> = key.fields.iter().map(|(t, p)| (t.index(), p.to_string())).collect();
    assert_eq!(fields, [(0, "id".to_owned()), (1, "id".to_owned())]);
    let formula = spec.print(spec.properties[1].formula).to_string();
    assert_eq!(formula, "(or (not (on grant)) (!= key0 \"\"))");
}

#[test]
fn parameter_types_are_inferred_from_all_uses() {
    let parameter_type = |text: &str| {
        let spec = parse(text).spec.unwrap();
        spec.slices[0].keys[0].value_type
    };
    let t = |formula: &str| parameter_type(&format!("topic a property p for each k in a.k = {formula}"));
    assert_eq!(t("on(a)"), ValueType::String);
    assert_eq!(t("k > 3 and on(a)"), ValueType::Int);
    assert_eq!(t("a.k != 4"), ValueType::Int);
    assert_eq!(t("not a.k"), ValueType::Bool);
    assert_eq!(t("k == a.v and a.v > 3"), ValueType::Int);
    let both = "topic a topic b { k: time } property p for each k in (a.k, b.k) = on(a)";
    assert_eq!(parameter_type(both), ValueType::Time);
}

#[test]
fn machines_have_states_transitions_and_a_property() {
    let spec = spec(
        "topic m { failure: bool, push: bool, distance: float, v: float }
         @severity(critical)
         machine takeover {
             initial nominal
             var n: int = 0
             var far: float = 2
             nominal  -> failover when m.failure do n := n + 1, far := n
             failover -> driver   when m.push // in time
                 within 5 s
             failover -> stop     after 5 s
             driver   -> stop     when m.distance < far -> n > 3
             error    stop while m.v > 0.1 for 3 s
             error    driver
             final    nominal, stop
         }
         property stopped = in(takeover, stop, driver) -> m.v < 30",
    );
    let machine = &spec.machines[0];
    let states: Vec<_> = machine.states.iter().map(|s| (s.name.as_str(), s.is_final)).collect();
    assert_eq!(states, [("nominal", true), ("failover", false), ("driver", false), ("stop", true)]);
    assert_eq!((machine.initial, machine.time, machine.slice), (0, TimeModel::Dense, None));
    let variables: Vec<_> = machine.variables.iter().map(|v| (v.name.as_str(), v.initial.clone())).collect();
    assert_eq!(variables, [("n", Value::Int(0)), ("far", Value::Float(2.0))]);
    let printed = |id| spec.print(id).to_string();
    let [fail, push, late, _] = &machine.transitions[..] else { panic!() };
    assert_eq!((fail.from, fail.to, fail.within, fail.after), (0, 1, None, None));
    let assigned: Vec<_> = fail.assignments.iter().map(|(v, value)| (*v, printed(*value))).collect();
    assert_eq!(assigned, [(0, "(+ (variable 0 0) 1)".to_owned()), (1, "(float (variable 0 0))".to_owned())]);
    assert_eq!((push.within, push.guard.map(printed).as_deref()), (Some(5_000_000_000), Some("m.push")));
    assert_eq!(push.text, "failover -> driver when m.push within 5 s");
    assert_eq!((late.from, late.to, late.guard, late.after), (1, 3, None, Some(5_000_000_000)));
    let near = "(or (not (< m.distance (variable 0 1))) (> (variable 0 0) 3))";
    assert_eq!(machine.transitions[3].guard.map(printed).as_deref(), Some(near));
    let property = &spec.properties[0];
    assert_eq!((property.name.as_str(), property.time), ("takeover", TimeModel::Dense));
    assert_eq!(property.attributes, [("severity".to_owned(), "critical".to_owned())]);
    let stopping = "(and (in takeover stop) (> m.v 0.1))";
    assert_eq!(
        printed(property.formula),
        format!(
            "(not (or (or (ambiguous 0) (since [3000000000,] {stopping} {stopping})) (in takeover driver)))"
        )
    );
    assert_eq!(printed(spec.properties[1].formula), "(or (not (in takeover driver stop)) (< m.v 30.0))");
}

#[test]
fn machines_can_have_parameters() {
    let spec = spec(
        "topic request { id: string } topic grant { id: string }
         property requested for each id in (request.id, grant.id) until in(one, idle) = on(grant) -> in(one, requested)
         machine one for each id in (request.id, grant.id) until in(one, idle) {
             initial new; new -> requested when on(request) and id != '' requested -> idle when on(grant)
         }",
    );
    assert_eq!(spec.slices.len(), 1);
    assert_eq!((spec.machines[0].slice, spec.properties[1].slice), (Some(SliceId(0)), Some(SliceId(0))));
    assert!(spec.nodes.contains(&Expr::InState(MachineId(0), vec![2])));
}

#[test]
fn chains_become_slices() {
    let spec = spec(
        "topic a { header: { stamp: time } } topic b topic c { stamp: time }
         @limit(10) chain a -> b -> c by (a.header.stamp, b.x[0], c.stamp) within 100 ms
         chain direct = a -> b by header.stamp within 5",
    );
    let printed = |i: usize| spec.print(spec.properties[i].formula).to_string();
    assert_eq!(
        printed(0),
        "(or (not (on a)) (eventually [0,9] (and (on c) (once [0,9] (and (on b) (once [0,9] (on a)))))))"
            .replace('9', "100000000")
    );
    assert_eq!(printed(1), "(or (not (on a)) (eventually [0,5] (on b)))");
    let names: Vec<_> = spec.properties.iter().map(|p| (p.name.as_str(), p.time)).collect();
    assert_eq!(names, [("a_b_c", TimeModel::Dense), ("direct", TimeModel::Steps)]);
    let slice = &spec.slices[0];
    assert_eq!((slice.limit, slice.keys[0].value_type), (Some(10), ValueType::Time));
    let fields: Vec<_> = slice.keys[0].fields.iter().map(|(t, p)| format!("{}:{p}", t.index())).collect();
    assert_eq!(fields, ["0:header.stamp", "1:x[0]", "2:stamp"]);
    let until = spec.print(slice.until.unwrap()).to_string();
    assert!(until.starts_with("(and (on c) (once ") && printed(0).contains(&until), "{until}");
    assert_eq!(spec.print(spec.slices[1].until.unwrap()).to_string(), "(on b)");
}

#[test]
fn tests_keep_their_messages_as_json() {
    let text =
        "topic m { a: float, s: string, t: time, list: [int], o: { p: bool, \"q r\": int } } topic tick
         const N = 2
         property p for each s in m.s = on(m) -> m.a > 2 property q = on(m) and on(tick)
         test 'first' {
             at 0 s m { a: -1.5, s: 'a\"\\\\\\u{1}ä', t: 1500 ms, list: [1, N], o: { p: true, 'q r': null } }
             at 200 ms tick
             at 1 s tick {}
             end at 5 s
             expect p['x'] violated at 1 s
             expect p never satisfied
             expect q inconclusive
             at -1 s m { s: '' }
         }";
    let outcome = parse(text);
    let spec = outcome.spec.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics));
    let test = &spec.tests[0];
    assert_eq!((test.name.as_str(), &text[test.offset..test.offset + 7]), ("first", "'first'"));
    let messages: Vec<_> =
        test.messages.iter().map(|m| (m.time.to_string(), m.topic.index(), m.json.as_str())).collect();
    let first = r#"{"a":-1.5,"s":"a\"\\\u0001ä","t":1.5,"list":[1,2],"o":{"p":true,"q r":null}}"#;
    assert_eq!(
        messages,
        [
            ("-1".to_owned(), 0, r#"{"s":""}"#),
            ("0".to_owned(), 0, first),
            ("0.2".to_owned(), 1, "{}"),
            ("1".to_owned(), 1, "{}"),
        ]
    );
    assert_eq!(test.end.unwrap().to_string(), "5");
    let [first, second, third] = &test.expectations[..] else { panic!() };
    assert_eq!((first.property, first.verdict, first.never), (0, Verdict::Violated, false));
    assert_eq!(
        (first.keys.clone(), first.at.unwrap().to_string()),
        (vec![Value::String("x".into())], "1".into())
    );
    assert_eq!((second.verdict, second.never, second.at), (Verdict::Satisfied, true, None));
    assert_eq!((third.property, third.verdict), (1, Verdict::Inconclusive));
    assert!(text[third.offset..].starts_with("expect q"));
}

#[test]
fn bounds_and_conditions_determine_the_time_model_of_a_machine() {
    let times = |text: &str| {
        let spec = spec(&format!("topic a {{ x: bool }} const D = 2 s {text}"));
        let machines: Vec<_> = spec.machines.iter().map(|m| m.time).collect();
        (machines, spec.properties.iter().map(|p| p.time).collect::<Vec<_>>())
    };
    use TimeModel::{Dense, Points, Steps};
    let one = |how: &str| {
        times(&format!("machine m {{ initial p p -> q {how} error q }} let _d = age(a) > D")).0[0]
    };
    assert_eq!(one("when a.x"), Steps);
    assert_eq!(one("when a.x within 5"), Steps);
    assert_eq!(one("after D"), Dense);
    assert_eq!(one("when once[0, 1 s] a.x"), Dense);
    assert_eq!(one("when a.x error p while a.x for 1 s"), Dense);
    let both = "property r = in(m, q) -> a.x @time(points) machine m { initial p p -> q when a.x after D }";
    assert_eq!(times(&format!("@time(points) {both}")), (vec![Points], vec![Points, Points]));
    let by_name = "let waiting = in(m, q) property r = waiting machine m { initial p p -> q after D }";
    assert_eq!(times(by_name), (vec![Dense], vec![Dense, Dense]));
}
