//! Evaluation by value agrees with relations and with the definition.

use super::random::by_value_spec;
use super::*;
use crate::Evaluation;

/// Returns all reports of changes, including the times of those caused by time alone.
fn reported(program: &Arc<Program>, trace: &[Message], cuts: &[usize]) -> Vec<String> {
    let mut monitor = Monitor::new(Arc::clone(program));
    let mut block = Block::new(program.layout());
    let (mut found, mut rest) = (Vec::new(), trace);
    let reported = |report: &crate::Report, at: usize| {
        let (row, about) = (report.row.map(|row| at + usize::from(row)), report.about);
        format!("{:?} {:?} {row:?} {about:?} {}", report.verdict, report.time, report.step)
    };
    let mut at = 0;
    for &cut in cuts.iter().cycle() {
        let (now, later) = rest.split_at(cut.min(rest.len()));
        block.clear();
        now.iter().for_each(|message| write(program, &mut block, message));
        found.extend(monitor.step(&block).iter().map(|report| reported(report, at)));
        at += now.len();
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    let last = trace.last().map_or(0, |message| message.time);
    found.extend(monitor.advance(Timestamp::from_nanos(last + 1)).iter().map(|report| reported(report, at)));
    found.extend(
        monitor.advance(Timestamp::from_nanos(last + 1000)).iter().map(|report| reported(report, at)),
    );
    found.extend(monitor.end().iter().map(|report| reported(report, at)));
    found
}

/// Returns whether the formula is evaluated by value, if it can be monitored.
fn assert_agreement(spec: &Spec, trace: &[Message], model: TimeModel, cuts: &[usize]) -> Option<bool> {
    let [planned, relations] = ["", "relations"].map(|plan| program_of(spec, model, plan));
    let (planned, relations) = (planned?, relations?);
    let is_by_value = |program: &Program| {
        program.quantifiers().iter().any(|q| matches!(q.evaluation, Evaluation::ByValue(_)))
    };
    assert!(!is_by_value(&relations));
    let definition = Definition::new(spec, trace, model);
    let root = ExprId(spec.nodes.len() as u32 - 1);
    let at_messages = (0..definition.positions.len()).filter(|i| definition.positions[*i].message.is_some());
    let expected: Vec<_> = at_messages.map(|i| definition.truth(root, &HashMap::new(), i)).collect();
    assert_eq!(run_program(&relations, trace, cuts), expected, "by relations");
    assert_eq!(run_program(&planned, trace, cuts), expected, "by value: {:?}", planned.quantifiers());
    assert_eq!(reported(&planned, trace, cuts), reported(&relations, trace, cuts), "in reports");
    Some(is_by_value(&planned))
}

#[test]
fn by_value_agrees_with_relations_and_definition() {
    let mut runner = runner(3000);
    let cuts = proptest::collection::vec(1..5_usize, 1..4);
    let (tried, by_value) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let strategy = (prop_oneof![4 => by_value_spec(), 1 => spec()], trace(), 0..3_usize, cuts);
    let result = runner.run(&strategy, |(spec, trace, model, cuts)| {
        let model = [TimeModel::Steps, TimeModel::Points, TimeModel::Dense][model];
        let found = assert_agreement(&spec, &trace, model, &cuts);
        tried.set(tried.get() + 1);
        by_value.set(by_value.get() + u32::from(found == Some(true)));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(3 * by_value.get() > tried.get(), "only {} of {}", by_value.get(), tried.get());
}

/// Returns the programs of a property over three topics, as planned and by relations.
fn both(formula: &str, model: &str) -> [Arc<Program>; 2] {
    let formula = formula.replace('#', if model == "steps" { "" } else { " ns" });
    ["", "@plan(relations)"].map(|plan| {
        let text = format!(
            "topic t0 {{ a: int, b: int, s: string }} topic t1 {{ a: int, b: int, s: string }} \
             topic t2 {{ a: int }} @time({model}) @unbounded {plan} property p = {formula}"
        );
        let spec = rondel_spec::parse(&text).spec.unwrap();
        Arc::new(Program::compile(&spec).unwrap())
    })
}

/// Messages about many values, most of which recur soon or never.
fn many(count: u64) -> Vec<Message> {
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = |n: u64| {
        random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (random >> 33) % n
    };
    let mut time = 0;
    let message = |i: u64| {
        time += [0, 0, 1, 2][next(4) as usize];
        let about = i / 2 + next(40);
        let fields = vec![
            ("a", Value::Int(about as i64)),
            ("b", Value::Int(next(2) as i64)),
            ("s", Value::String(format!("the name of {about}").into())),
        ];
        Message { topic: [0, 0, 1, 1, 2][next(5) as usize], time, fields }
    };
    (0..count).map(message).collect()
}

#[test]
fn evicted_values_change_no_report() {
    let trace = many(3000);
    for formula in [
        "forall x. t1{a: x} -> once[0#, 25#] t0{a: x}",
        "forall x. t1{a: x} -> once[3#, 40#] t0{a: x, b > 0}",
        "forall s. t1{s: s} -> historically[0#, 30#] not t0{s: s}",
        "not exists x, y. t0{a: x, b: y} and t1.b > 0 and ((not t1{a: x, b: y}) since[0#, 60#] t0{a: x, b: y})",
        "forall x. t1{a: x} -> not previously once t1{a: x}",
        "historically[0#, 2#] forall x. t1{a: x} -> ((not t2{a: x}) since t0{a: x})",
        "t2.a > 500 or exists s. t1{s: s} and once[1#, 9#] t0{s: s}",
    ] {
        for model in ["steps", "points", "dense"] {
            let [planned, relations] = both(formula, model);
            assert!(matches!(planned.quantifiers()[0].evaluation, Evaluation::ByValue(_)), "{formula}");
            for cuts in [&[1, 64][..], &[64], &[7, 30, 2]] {
                let same = reported(&planned, &trace, cuts) == reported(&relations, &trace, cuts);
                assert!(same, "{formula} in {model}");
                let [a, b] = [&planned, &relations].map(|program| run_program(program, &trace, cuts));
                assert!(a == b, "{formula} in {model}, with snapshots");
            }
        }
    }
}

#[test]
fn memory_follows_live_values() {
    let [planned, _] = both("forall x. t1{a: x} -> once[0#, 25#] t0{a: x}", "points");
    let mut monitor = Monitor::new(Arc::clone(&planned));
    let mut block = Block::new(planned.layout());
    for (i, message) in many(100_000).iter().enumerate() {
        write(&planned, &mut block, message);
        if block.len() == Block::CAPACITY {
            monitor.step(&block);
            block.clear();
        }
        assert!(i < 2000 || monitor.longest_queue() < 1000, "{}", monitor.longest_queue());
    }
}

#[test]
fn formulas_decided_by_other_values_use_relations() {
    let always = "values that the current message";
    for (formula, reason) in [
        ("exists x. once[0, 5#] t0{a: x}", always),
        ("forall x. t1{a: x} -> exists y. t0{a: x, b: y}", "does not bind each variable"),
        ("forall x, y. t1{a: x, b: y} -> once t0{a: x}", "does not bind each variable"),
        ("forall x. t1{a: x} -> once t0{a: x, b: x}", "does not bind each variable"),
        ("forall x. t1{a: x} -> once t1{b: x}", "binds a different field"),
        ("forall x. t1{a: x} -> t0.b > x", "it is compared with a variable"),
        ("forall x. t1{a: x} -> previously t0{a: x}", "refers to the previous event"),
        ("forall x. t1{a: x} -> not previously historically not t0{a: x}", "refers to the previous event"),
        ("forall x. t1{a: x} -> previously (once t0{a: x} and not t1{a: x})", "refers to the previous event"),
        ("forall x. t1{a: x} -> once[0, 5#] once[0, 5#] t0{a: x}", ELSEWHERE),
        ("forall x. t1{a: x} -> (once t0{a: x}) since[0, 5#] t1{a: x}", ELSEWHERE),
        ("forall x. t1{a: x} -> t0.b > 0 since[0, 5#] t0{a: x}", ELSEWHERE),
        ("forall x. t1{a: x} -> historically[0, 5#] t0{a: x}", ELSEWHERE),
    ] {
        for model in ["steps", "points", "dense"] {
            let [planned, _] = both(formula, model);
            let found: Vec<_> = planned.quantifiers().iter().map(|q| &q.evaluation).collect();
            let is_so =
                |e: &&Evaluation| matches!(e, Evaluation::Relations { why, .. } if why.contains(reason));
            assert!(found.iter().any(is_so), "{formula} in {model}: {found:?}");
        }
    }
}

const ELSEWHERE: &str = "its value can change at events";
