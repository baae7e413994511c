//! Quantified formulas with future operators: verdicts and their times equal the definitions. For each event
//! a formula is evaluated with the knowledge at each later time point; open parts may become either truth.

use std::collections::HashMap;
use std::sync::Arc;

use rondel_event::{Block, Comparison, Timestamp, Value, Verdict};
use rondel_spec::{Bounds, Expr, ExprId, Property, Spec, TimeModel, VariableId};

use super::definition::{Definition, Message, Valuation};
use super::random::{ahead_spec, trace};
use super::runner;
use super::write;
use crate::monitor::witness::parts;
use crate::{CompileError, Monitor, Program, Report};

/// Lower and upper truth, each in the worst and in the best case.
type Range = [[bool; 2]; 2];

const TRUE: Range = [[true; 2]; 2];
const FALSE: Range = [[false; 2]; 2];
const OPEN: Range = [[false, true]; 2];

fn not(x: Range) -> Range {
    [[!x[1][1], !x[1][0]], [!x[0][1], !x[0][0]]]
}

fn zip(x: Range, y: Range, f: impl Fn(bool, bool) -> bool) -> Range {
    [0, 1].map(|truth_bound| [0, 1].map(|side| f(x[truth_bound][side], y[truth_bound][side])))
}

fn and(x: Range, y: Range) -> Range {
    zip(x, y, |x, y| x && y)
}

fn or(x: Range, y: Range) -> Range {
    zip(x, y, |x, y| x || y)
}

/// Knowledge: the number of known positions, and a place before which no further one comes.
#[derive(Clone, Copy)]
struct Known {
    positions: usize,
    passed: i64,
}

struct Ahead<'a> {
    definition: &'a Definition<'a>,
    ahead: Vec<bool>,
    known: Known,
}

impl Ahead<'_> {
    fn range(&self, id: ExprId, variables: &Valuation, i: usize) -> Range {
        let of = |x: ExprId| self.range(x, variables, i);
        if !self.ahead[id.index()] {
            return match self.definition.truth(id, variables, i) {
                Some(true) => TRUE,
                Some(false) => FALSE,
                None => [[false; 2], [true; 2]],
            };
        }
        match &self.definition.spec.nodes[id.index()] {
            Expr::Not(x) => not(of(*x)),
            Expr::And(x, y) => and(of(*x), of(*y)),
            Expr::Or(x, y) => or(of(*x), of(*y)),
            Expr::Definitely(x) => [of(*x)[0]; 2],
            Expr::Compare(Comparison::Equal, x, y) => {
                let (x, y) = (of(*x), of(*y));
                or(and(x, y), and(not(x), not(y)))
            }
            Expr::Next(_) if i + 1 >= self.known.positions => OPEN,
            Expr::Next(x) => self.range(*x, variables, i + 1),
            Expr::Eventually(bounds, x) => self.until(*bounds, None, *x, variables, i),
            Expr::Always(bounds, x) => {
                let not_x = |j: usize| not(self.range(*x, variables, j));
                not(self.until_of(*bounds, &|_| TRUE, &not_x, i))
            }
            Expr::Until(bounds, x, y) => self.until(*bounds, Some(*x), *y, variables, i),
            Expr::Exists(variable, x) => self.some(*variable, *x, variables, i, |x| x),
            Expr::ForAll(variable, x) => not(self.some(*variable, *x, variables, i, not)),
            other => panic!("no definition here of {other:?}"),
        }
    }

    fn some(
        &self,
        variable: rondel_spec::VariableId,
        x: ExprId,
        variables: &Valuation,
        i: usize,
        f: impl Fn(Range) -> Range,
    ) -> Range {
        let mut found = FALSE;
        for value in self.definition.values_of(variable) {
            let mut variables = variables.clone();
            variables.insert(variable, value.clone());
            found = or(found, f(self.range(x, &variables, i)));
        }
        found
    }

    fn until(
        &self,
        bounds: Bounds,
        left: Option<ExprId>,
        right: ExprId,
        variables: &Valuation,
        i: usize,
    ) -> Range {
        let left = |j: usize| left.map_or(TRUE, |left| self.range(left, variables, j));
        self.until_of(bounds, &left, &|j| self.range(right, variables, j), i)
    }

    fn until_of(
        &self,
        bounds: Bounds,
        left: &dyn Fn(usize) -> Range,
        right: &dyn Fn(usize) -> Range,
        i: usize,
    ) -> Range {
        let place = |j: usize| self.definition.positions[j].place;
        let unit = if self.definition.model == TimeModel::Dense { 2 } else { 1 };
        let (lower, upper) = (unit * bounds.lower as i64, unit * bounds.upper.unwrap() as i64);
        let (mut found, mut so_far) = (FALSE, TRUE);
        for j in i..self.known.positions {
            let within = place(j) >= place(i) + lower && place(j) <= place(i) + upper;
            if within {
                // A witness in an open interval has part of it before itself, unless the interval is the
                // present.
                let is_present = j == i && lower == 0;
                let before = if self.definition.is_span(j) && !is_present { left(j) } else { TRUE };
                found = or(found, and(and(so_far, before), right(j)));
            }
            so_far = and(so_far, left(j));
        }
        if lower <= upper && place(i) + upper >= self.known.passed {
            found = or(found, and(so_far, OPEN));
        }
        found
    }
}

fn verdict(range: Range) -> Option<Verdict> {
    let [[worst, best], [possible_worst, possible_best]] = range;
    (worst == best && possible_worst == possible_best).then_some(match (worst, possible_worst) {
        (true, _) => Verdict::Satisfied,
        (_, false) => Verdict::Violated,
        _ => Verdict::Inconclusive,
    })
}

/// Verdict about an event: the time of the event, the time at which it is certain, and the verdict.
type Said = (i64, i64, Verdict);

/// Returns the verdicts about every event up to a time, by the position of the event. In dense time nothing
/// comes within an open interval once it has begun: with `knows_spans` its truths are known at its beginning,
/// and otherwise at its end.
fn defined(definition: &Definition<'_>, ahead: &[bool], end: i64, knows_spans: bool) -> Vec<(usize, Said)> {
    let root = ExprId(definition.spec.nodes.len() as u32 - 1);
    let mut out = Vec::new();
    for (i, position) in definition.positions.iter().enumerate() {
        let Some(message) = position.message else { continue };
        let about = definition.trace[message].time;
        let all = definition.positions.len();
        let mut at = i;
        loop {
            let (known, when) = if at < all {
                let place = definition.positions[at].place;
                let (passed, when) = match definition.model {
                    TimeModel::Steps => (place + 1, definition.trace[at].time),
                    TimeModel::Points => (place, place),
                    TimeModel::Dense => {
                        let is_known = knows_spans && definition.is_span(at);
                        (place + i64::from(is_known), place.div_euclid(2))
                    }
                };
                (Known { positions: at + 1, passed }, when)
            } else {
                let passed = match definition.model {
                    TimeModel::Points => end,
                    _ => break,
                };
                (Known { positions: all, passed }, end)
            };
            let range = Ahead { definition, ahead: ahead.to_vec(), known }.range(root, &HashMap::new(), i);
            if let Some(verdict) = verdict(range) {
                out.push((i, (about, when, verdict)));
                break;
            }
            if at >= all {
                break;
            }
            at += 1;
        }
    }
    out
}

/// Returns the verdicts of a monitor, up to a time.
fn found(program: &Arc<Program>, trace: &[Message], cuts: &[usize], end: i64) -> Vec<Said> {
    let mut monitor = Monitor::new(Arc::clone(program));
    monitor.report_every(true);
    let mut block = Block::new(program.layout());
    let (mut said, mut rest) = (Vec::new(), trace);
    let collect = |said: &mut Vec<Said>, reports: &[crate::Report]| {
        for report in reports {
            let about = report.about.unwrap_or(report.time).as_nanos();
            said.push((about, report.time.as_nanos(), report.verdict));
        }
    };
    for &cut in cuts.iter().cycle() {
        let (now, later) = rest.split_at(cut.min(rest.len()));
        block.clear();
        for message in now {
            write(program, &mut block, message);
        }
        collect(&mut said, monitor.step(&block));
        rest = later;
        let Some(next) = rest.first() else { break };
        if cut % 2 == 0 {
            let snapshot = monitor.snapshot();
            monitor = Monitor::restore(Arc::clone(program), &snapshot).unwrap();
            monitor.report_every(true);
        }
        if cut == 3 && program_is_dense(program) {
            // Explicit advances change nothing.
            collect(&mut said, monitor.advance(Timestamp::from_nanos(next.time)));
        }
    }
    let mut calls = 0;
    while let Some(due) = monitor.next_deadline() {
        if due.as_nanos() >= end {
            break;
        }
        calls += 1;
        assert!(calls < 10_000, "time does not go on");
        collect(&mut said, monitor.advance(due));
    }
    collect(&mut said, monitor.advance(Timestamp::from_nanos(end)));
    said.sort_by_key(|(about, when, verdict)| (*about, *when, format!("{verdict:?}")));
    said
}

fn program_is_dense(program: &Program) -> bool {
    program.sections.iter().any(|section| section.time_points == crate::exec::section::TimePoints::Dense)
}

/// Returns the program of a formula, if it can be monitored, and whether each node contains future operators.
fn program_of(spec: &Spec, model: TimeModel) -> Option<(Arc<Program>, Vec<bool>)> {
    let root = ExprId(spec.nodes.len() as u32 - 1);
    if model == TimeModel::Dense && spec.nodes.iter().any(|node| matches!(node, Expr::Next(_))) {
        // `next` is not defined in dense time.
        return None;
    }
    let property = Property { time: model, ..Property::new("p", root) };
    let property = Property { attributes: vec![("unbounded".into(), String::new())], ..property };
    let whole = Spec { properties: vec![property], ..spec.clone() };
    let program = match Program::compile(&whole) {
        Ok(program) => Arc::new(program),
        Err(CompileError::NotMonitorable { .. }) => return None,
        Err(error) => panic!("{error}"),
    };
    let mut ahead: Vec<bool> = Vec::new();
    for expr in &spec.nodes {
        let own = matches!(expr, Expr::Next(_) | Expr::Eventually(..) | Expr::Always(..) | Expr::Until(..));
        ahead.push(own || expr.operands().any(|operand| ahead[operand.index()]));
    }
    Some((program, ahead))
}

/// Returns whether the formula could be monitored.
fn assert_agreement(spec: &Spec, trace: &[Message], model: TimeModel, cuts: &[usize]) -> bool {
    let root = ExprId(spec.nodes.len() as u32 - 1);
    let Some((program, ahead)) = program_of(spec, model) else { return false };
    let definition = Definition::new(spec, trace, model);
    let end = trace[trace.len() - 1].time + 7;
    let defined = |knows_spans| defined(&definition, &ahead, end, knows_spans);
    let expected_at = defined(false);
    let mut expected: Vec<Said> = expected_at.iter().map(|(_, said)| *said).collect();
    expected.sort_by_key(|(about, when, verdict)| (*about, *when, format!("{verdict:?}")));
    let mut found = found(&program, trace, cuts, end);
    if model == TimeModel::Points {
        // Between the last event and the end there is no advance.
        let last = trace[trace.len() - 1].time;
        for said in expected.iter_mut().chain(&mut found).filter(|said| said.1 > last) {
            said.1 = end;
        }
        let key = |(about, when, verdict): &Said| (*about, *when, format!("{verdict:?}"));
        expected.sort_by_key(key);
        found.sort_by_key(key);
    }
    if model == TimeModel::Dense {
        let earliest: HashMap<usize, Said> = defined(true).into_iter().collect();
        for (i, said) in &expected_at {
            // A verdict may come as soon as it is certain, and no later than at the end of the open interval.
            let from = earliest[i].1;
            let is_said =
                |other: &Said| (other.0, other.2) == (said.0, said.2) && (from..=said.1).contains(&other.1);
            let at = found.iter().position(is_said);
            let at = at.unwrap_or_else(|| {
                let own: Vec<&Said> = found.iter().filter(|other| other.0 == said.0).collect();
                panic!("no {said:?}, but {own:?} of {} {trace:?}", spec.print(root))
            });
            found.remove(at);
        }
        // Other verdicts are about times without an event, or about the open interval after a time.
        let known = Known { positions: definition.positions.len(), passed: 2 * end };
        let after = Ahead { definition: &definition, ahead, known };
        for (about, when, said) in found {
            let is_about = |i: &usize| {
                let position = &after.definition.positions[*i];
                position.place.div_euclid(2) == about && position.message.is_none()
            };
            let mut there = (0..known.positions).filter(is_about);
            let is_so =
                there.any(|i| verdict(after.range(root, &HashMap::new(), i)) == Some(said)) && when >= about;
            assert!(is_so, "{said:?} at {when} about {about} of {} {trace:?}", spec.print(root));
        }
        return true;
    }
    assert_eq!(found, expected, "{model:?} {}\n{:?}", spec.print(root), definition.trace);
    true
}

#[test]
fn future_operators_agree_with_definitions() {
    let mut runner = runner(3000);
    let cuts = proptest::collection::vec(1..5_usize, 1..4);
    let counts = [const { std::cell::Cell::new((0, 0)) }; 3];
    let result = runner.run(&(ahead_spec(), trace(), 0..3_usize, cuts), |(spec, trace, model, cuts)| {
        let is_monitored = {
            let model = [TimeModel::Steps, TimeModel::Points, TimeModel::Dense][model];
            assert_agreement(&spec, &trace, model, &cuts)
        };
        let (tried, monitored) = counts[model].get();
        counts[model].set((tried + 1, monitored + u32::from(is_monitored)));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    for (model, count) in counts.iter().enumerate() {
        let (tried, monitored) = count.get();
        assert!(3 * monitored > tried, "only {monitored} of {tried} in {model}");
    }
}

/// Checks the values of every violation. Returns the numbers of violations with and without values.
fn assert_witnesses(spec: &Spec, trace: &[Message], model: TimeModel, cuts: &[usize]) -> [u32; 2] {
    let Some((program, ahead)) = program_of(spec, model) else { return [0; 2] };
    let definition = Definition::new(spec, trace, model);
    let root = ExprId(spec.nodes.len() as u32 - 1);
    let end = trace[trace.len() - 1].time + 7;
    let unit = if model == TimeModel::Dense { 2 } else { 1 };
    let known = Known { positions: definition.positions.len(), passed: unit * end };
    let whole = Ahead { definition: &definition, ahead, known };
    let mut counts = [0; 2];
    let mut check = |monitor: &Monitor, block: Option<&Block>, reports: &[Report], at: usize| {
        for report in reports.iter().filter(|report| report.verdict == Verdict::Violated && report.changed) {
            let mut values = Vec::new();
            monitor.write_witness(report, block, &mut values);
            // Without values, no value alone makes a formula fail.
            if values.is_empty() {
                counts[1] += u32::from(!parts(spec, root).is_empty());
                continue;
            }
            counts[0] += 1;
            let own = report.row.filter(|_| report.about.is_none()).map(|row| at + usize::from(row));
            let place = match model {
                TimeModel::Steps => (report.step - report.back) as i64,
                TimeModel::Points => report.about.unwrap_or(report.time).as_nanos(),
                TimeModel::Dense => 2 * report.about.unwrap_or(report.time).as_nanos(),
            };
            let valuation: Valuation = values.iter().cloned().collect();
            let violates = parts(spec, root).into_iter().any(|(mut node, positive)| {
                // Body of the quantifiers whose values are reported.
                while let Expr::Exists(variable, body) | Expr::ForAll(variable, body) =
                    &spec.nodes[node.index()]
                    && valuation.contains_key(variable)
                {
                    node = *body;
                }
                let verdict_at = |i: usize| verdict(whole.range(node, &valuation, i));
                let wanted = if positive { Verdict::Violated } else { Verdict::Satisfied };
                let positions = definition.positions.iter().enumerate();
                let mut its = positions.filter(|(_, position)| match own {
                    Some(_) => position.message == own,
                    None => position.message.is_some() && position.place == place,
                });
                its.any(|(i, _)| verdict_at(i) == Some(wanted))
            });
            assert!(violates, "{values:?} at {report:?} of {} {trace:?}", spec.print(root));
        }
    };
    let mut monitor = Monitor::new(Arc::clone(&program));
    let mut block = Block::new(program.layout());
    let mut at = 0;
    for &cut in cuts.iter().cycle() {
        let now = &trace[at..(at + cut).min(trace.len())];
        block.clear();
        now.iter().for_each(|message| write(&program, &mut block, message));
        let reports = monitor.step(&block).to_vec();
        check(&monitor, Some(&block), &reports, at);
        at += now.len();
        if at == trace.len() {
            break;
        }
    }
    let reports = monitor.advance(Timestamp::from_nanos(end)).to_vec();
    check(&monitor, None, &reports, at);
    counts
}

#[test]
fn only_values_that_meet_whole_part_are_reported() {
    let named = |part: &str| {
        let text = format!("topic t {{ a: int }} topic u property p = on(u) and (forall x. {part})");
        let spec = rondel_spec::parse(&text).spec.unwrap();
        let program = Arc::new(Program::compile(&spec).unwrap());
        let (mut monitor, mut block) = (Monitor::new(Arc::clone(&program)), Block::new(program.layout()));
        let message = Message { topic: 0, time: 0, fields: vec![("a", Value::Int(3))] };
        write(&program, &mut block, &message);
        let report = monitor.step(&block)[0];
        assert_eq!(report.verdict, Verdict::Violated, "{part}");
        let mut values = Vec::new();
        monitor.write_witness(&report, Some(&block), &mut values);
        values
    };
    let three = [(VariableId(0), Value::Int(3))];
    assert_eq!(named("t{a: x} -> eventually[0, 0] (on(u) and t{a: x})"), three);
    // The known conjunct shows that the whole part is met.
    assert_eq!(named("t{a: x} and on(u) -> eventually[0, 0] (on(u) and t{a: x})"), []);
    assert_eq!(named("t{a: x} and on(t) -> eventually[0, 0] (on(u) and t{a: x})"), three);
    // The truth of a future operator alone is not known, so no value is reported.
    assert_eq!(named("t{a: x} and eventually[0, 0] on(t) -> eventually[0, 0] (on(u) and t{a: x})"), []);
}

#[test]
fn reported_values_violate_by_definitions() {
    let mut runner = runner(3000);
    let cuts = proptest::collection::vec(1..5_usize, 1..4);
    let counts = std::cell::Cell::new([0; 2]);
    let result = runner.run(&(ahead_spec(), trace(), 0..3_usize, cuts), |(spec, trace, model, cuts)| {
        let model = [TimeModel::Steps, TimeModel::Points, TimeModel::Dense][model];
        let [named, unnamed] = assert_witnesses(&spec, &trace, model, &cuts);
        let [all_named, all_unnamed] = counts.get();
        counts.set([all_named + named, all_unnamed + unnamed]);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let [named, unnamed] = counts.get();
    assert!(named > 100 && named > unnamed, "{named} violations named their values, {unnamed} did not");
}

/// Times of a verdict, the verdict, and its values.
type Named = ((i64, i64, bool), Verdict, Vec<(VariableId, Value)>);

/// Returns the reports of the first property in order: their own times, the times that they are about, and
/// their values.
fn reports_with_values(
    program: &Arc<Program>,
    trace: &[Message],
    cuts: &[usize],
    resumes: bool,
) -> Vec<Named> {
    let mut found = Vec::new();
    let mut take = |monitor: &Monitor, block: Option<&Block>, reports: &[Report]| {
        for report in reports.iter().filter(|report| report.property == 0 && report.changed) {
            let mut values = Vec::new();
            if report.verdict == Verdict::Violated {
                monitor.write_witness(report, block, &mut values);
            }
            let about = report.about.unwrap_or(report.time).as_nanos();
            found.push(((report.time.as_nanos(), about, report.after), report.verdict, values));
        }
    };
    let mut monitor = Monitor::new(Arc::clone(program));
    let mut block = Block::new(program.layout());
    let mut rest = trace;
    for &cut in cuts.iter().cycle() {
        let (now, later) = rest.split_at(cut.min(rest.len()));
        rest = later;
        block.clear();
        now.iter().for_each(|message| write(program, &mut block, message));
        let reports = monitor.step(&block).to_vec();
        take(&monitor, Some(&block), &reports);
        if resumes {
            monitor = Monitor::restore(Arc::clone(program), &monitor.snapshot()).unwrap();
        }
        if rest.is_empty() {
            break;
        }
    }
    let end = trace[trace.len() - 1].time + 7;
    let reports = monitor.advance(Timestamp::from_nanos(end)).to_vec();
    take(&monitor, None, &reports);
    found
}

/// Returns a program of two formulas, if the second one can be monitored; its first property is that of the
/// first formula.
fn program_beside(spec: &Spec, other: Option<&Spec>, model: TimeModel) -> Option<Arc<Program>> {
    let property = |name: &str, formula: u32, time: TimeModel| Property {
        time,
        attributes: vec![("unbounded".into(), String::new())],
        ..Property::new(name, ExprId(formula))
    };
    let offset = spec.nodes.len() as u32;
    let mut both = Spec { properties: vec![property("p", offset - 1, model)], ..spec.clone() };
    for mut node in other.into_iter().flat_map(|other| other.nodes.iter().cloned()) {
        node.operands_mut().for_each(|operand| operand.0 += offset);
        match &mut node {
            Expr::Exists(variable, _) | Expr::ForAll(variable, _) | Expr::Variable(variable, _) => {
                variable.0 += 1000;
            }
            Expr::Bind { fields, .. } => fields.iter_mut().for_each(|(_, variable, _)| variable.0 += 1000),
            _ => {}
        }
        both.nodes.push(node);
    }
    if other.is_some() {
        both.properties.push(property("q", both.nodes.len() as u32 - 1, TimeModel::Dense));
    }
    Program::compile(&both).ok().map(Arc::new)
}

#[test]
fn reports_depend_neither_on_cuts_nor_on_other_properties() {
    let mut runner = runner(3000);
    let cuts = proptest::collection::vec(1..5_usize, 1..4);
    let counts = std::cell::Cell::new([0; 2]);
    let input = (ahead_spec(), ahead_spec(), trace(), 0..3_usize, cuts);
    let result = runner.run(&input, |(spec, other, trace, model, cuts)| {
        let model = [TimeModel::Steps, TimeModel::Points, TimeModel::Dense][model];
        let is_next = |node: &Expr| matches!(node, Expr::Next(_));
        if model == TimeModel::Dense && spec.nodes.iter().any(is_next) {
            return Ok(());
        }
        let Some(program) = program_beside(&spec, None, model) else { return Ok(()) };
        let root = ExprId(spec.nodes.len() as u32 - 1);
        let whole = reports_with_values(&program, &trace, &[64], false);
        for resumes in [false, true] {
            let cut = reports_with_values(&program, &trace, &cuts, resumes);
            assert_eq!(cut, whole, "{resumes} {model:?} {cuts:?} {} {trace:?}", spec.print(root));
        }
        let [companions, reports] = counts.get();
        let other = Some(&other).filter(|other| !other.nodes.iter().any(is_next));
        let beside = other.and_then(|other| program_beside(&spec, Some(other), model));
        if let Some(program) = &beside {
            let beside = reports_with_values(program, &trace, &[64], false);
            let other = other.map(|other| other.print(ExprId(other.nodes.len() as u32 - 1)));
            assert_eq!(beside, whole, "{model:?} {} beside {other:?} {trace:?}", spec.print(root));
        }
        counts.set([companions + u32::from(beside.is_some()), reports + whole.len() as u32]);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let [companions, reports] = counts.get();
    assert!(companions > 500 && reports > 500, "{companions} beside others, {reports} reports");
}

#[test]
fn values_are_reported_after_deadlines() {
    let text = "topic a { id: string } @time(dense)
        property p = not exists x. a{id: x} and eventually[0 ms, 2 ms] (once[0 ms, 3 ms] a{id: x})";
    let program = Arc::new(Program::compile(&rondel_spec::parse(text).spec.unwrap()).unwrap());
    let message = |time: i64, id: &str| Message {
        topic: 0,
        time: time * 1_000_000,
        fields: vec![("id", Value::String(id.into()))],
    };
    let trace = [message(0, "k2"), message(7, "k1"), message(20, "k3")];
    for cut in [1, 2, 3] {
        let found = reports_with_values(&program, &trace, &[cut], true);
        let violated = found.into_iter().filter(|(_, verdict, _)| *verdict == Verdict::Violated);
        let values: Vec<Value> = violated.flat_map(|(.., values)| values).map(|(_, value)| value).collect();
        assert_eq!(values, ["k2", "k1", "k3"].map(|id| Value::String(id.into())), "{cut}");
    }
}
