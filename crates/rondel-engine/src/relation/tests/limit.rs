//! With a limit on stored values, verdicts are those of the definition, or inconclusive.

use super::random::by_value_spec;
use super::*;

fn limited(spec: &Spec, model: TimeModel, limit: u64) -> Option<Arc<Program>> {
    let mut property = Property::new("p", ExprId(spec.nodes.len() as u32 - 1));
    property.time = model;
    property.attributes.push(("limit".into(), limit.to_string()));
    let spec = Spec { properties: vec![property], ..spec.clone() };
    match Program::compile(&spec) {
        Ok(program) => Some(Arc::new(program)),
        Err(CompileError::NotMonitorable { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn limit_makes_no_verdict_wrong() {
    let mut runner = runner(3000);
    let cuts = proptest::collection::vec(1..5_usize, 1..4);
    let counts = [const { std::cell::Cell::new(0_usize) }; 4];
    let add = |i: usize, n: usize| counts[i].set(counts[i].get() + n);
    let strategy = (
        prop_oneof![spec(), by_value_spec()],
        trace(),
        0..3_usize,
        prop_oneof![4 => Just(1), 1 => Just(2)],
        cuts,
    );
    let result = runner.run(&strategy, |(spec, trace, model, limit, cuts)| {
        let model = [TimeModel::Steps, TimeModel::Points, TimeModel::Dense][model];
        let Some(program) = limited(&spec, model, limit) else { return Ok(()) };
        if !program.quantifiers().is_empty() && program_of_bounds(&spec, model) {
            return Ok(());
        }
        let definition = Definition::new(&spec, &trace, model);
        let root = ExprId(spec.nodes.len() as u32 - 1);
        let at = (0..definition.positions.len()).filter(|i| definition.positions[*i].message.is_some());
        let expected: Vec<_> = at.map(|i| definition.truth(root, &HashMap::new(), i)).collect();
        let found = run_program(&program, &trace, &cuts);
        assert_eq!(found.len(), expected.len());
        let right = found.iter().zip(&expected).all(|(found, expected)| found.is_none() || found == expected);
        assert!(
            right,
            "{model:?} limit {limit}: {found:?}, not {expected:?}: {}\n{trace:?}",
            spec.print(root)
        );
        let withheld = found.iter().zip(&expected).filter(|(found, expected)| found != expected).count();
        // A sufficient limit changes no verdict.
        let enough = limited(&spec, model, 1000).unwrap();
        assert_eq!(run_program(&enough, &trace, &cuts), expected);
        [1, usize::from(withheld > 0), withheld, found.len()]
            .into_iter()
            .enumerate()
            .for_each(|(i, n)| add(i, n));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let [tried, with, withheld, all] = counts.map(|count| count.get());
    println!("{tried} formulas need a limit, {with} lack a verdict: {withheld} of {all}");
    // About 24 lack a verdict; 7 were observed.
    assert!(tried > 100 && with > 0 && 3 * withheld < all, "{tried} {with} {withheld} {all}");
}

/// Whether the formula can be monitored without a limit.
fn program_of_bounds(spec: &Spec, model: TimeModel) -> bool {
    let property = Property { time: model, ..Property::new("p", ExprId(spec.nodes.len() as u32 - 1)) };
    Program::compile(&Spec { properties: vec![property], ..spec.clone() }).is_ok()
}

#[test]
fn stored_values_stay_within_limit() {
    let text = "topic a { id: int } topic b { id: int }
        @limit(10) property p = forall x. b{id: x} -> once a{id: x}";
    let spec = rondel_spec::parse(text).spec.unwrap();
    let program = Arc::new(Program::compile(&spec).unwrap());
    let mut monitor = Monitor::new(Arc::clone(&program));
    monitor.report_every(true);
    let mut block = Block::new(program.layout());
    let mut say = |topic: u32, id: i64, time: i64| {
        block.clear();
        let row = block.push(TopicId(topic), Timestamp::from_nanos(time));
        for field in &program.projections()[topic as usize].fields {
            let Slot::Int(column) = field.slot else { panic!("a number") };
            block.set_int(column, row, id);
        }
        let verdicts: Vec<Verdict> = monitor.step(&block).iter().map(|report| report.verdict).collect();
        (
            verdicts,
            monitor.sections[0].state.relations.iter().map(RelationState::kept).sum::<usize>(),
            monitor.forgotten(),
        )
    };
    for id in 0..1000 {
        let (verdicts, kept, _) = say(0, id, id);
        assert_eq!(verdicts, [Verdict::Satisfied]);
        assert!(kept < 40, "{kept} values are kept");
    }
    // The presence of a stored value is known, that of an evicted one is unknown.
    let (verdicts, _, forgotten) = say(1, 995, 1000);
    assert_eq!((verdicts, forgotten), (vec![Verdict::Satisfied], 990));
    assert_eq!(say(1, 3, 1001).0, [Verdict::Inconclusive]);
    assert_eq!(say(1, 2000, 1002).0, [Verdict::Inconclusive]);
    // Evicted values do not affect this verdict.
    assert_eq!(say(0, 1, 1003).0, [Verdict::Satisfied]);
    assert_eq!(say(1, 1, 1004).0, [Verdict::Satisfied]);
}
