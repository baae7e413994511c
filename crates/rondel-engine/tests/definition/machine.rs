//! Runs of machines, step by step.

use rondel_spec::{Expr, ExprId, MachineId, TimeModel, Transition};

use super::evaluate::Evaluator;
use super::timeline::{Clock, Sample};
use super::truth::{Datum, Truth};

/// State and data of a machine at every sample.
#[derive(Default)]
pub struct Run {
    pub state_after: Vec<u32>,
    pub data_before: Vec<Vec<Datum>>,
    pub ambiguous: Vec<bool>,
}

/// Steps a machine at events, and in dense time where a transition becomes enabled by time alone: a bound has
/// expired or a guard has become true that was not so just before.
pub fn run(evaluator: &mut Evaluator<'_>, id: MachineId) -> Run {
    let spec = evaluator.spec;
    let machine = &spec.machines[id.0 as usize];
    let samples = &evaluator.timeline.samples;
    prepare(evaluator, id);
    let mut run = Run::default();
    let mut data: Vec<Datum> = machine.variables.iter().map(|v| Datum::of(Some(v.initial.clone()))).collect();
    let mut state = machine.initial;
    let mut entered = samples.first().map_or(0, |first| first.from);
    let mut ambiguous = false;
    for (k, sample) in samples.iter().enumerate() {
        // In the model of points a bound expires between events, where guards have no truth.
        while machine.time == TimeModel::Points && !ambiguous && k > 0 {
            let alone = |t: &&Transition| t.from == state && t.guard.is_none();
            let due = |t: &Transition| t.after.map(|after| entered + 2 * Clock::from(after));
            let just_after = |at: Clock| Sample { from: at, to: at + 1, event: None, latest: 0 };
            let mut due: Vec<(Clock, &Transition)> = machine
                .transitions
                .iter()
                .filter(alone)
                .filter_map(|t| Some((due(t)?, t)))
                .filter(|(at, t)| *at < sample.from && in_time(t, &just_after(*at), entered))
                .collect();
            let Some(first) = due.iter().map(|(at, _)| *at).min() else { break };
            due.retain(|(at, _)| *at == first);
            match due[..] {
                [(_, transition)] => {
                    let until_then = evaluator.timeline.until(k - 1);
                    let mut as_data_is = run.data_before.clone();
                    as_data_is[k - 1].clone_from(&data);
                    let mut then = evaluator.inside(&until_then, id, &as_data_is);
                    for (variable, value) in &transition.assignments {
                        data[*variable as usize] = then.column(*value)[k - 1].clone();
                    }
                    (state, entered) = (transition.to, first);
                }
                _ => ambiguous = true,
            }
        }
        run.data_before.push(data.clone());
        if !ambiguous {
            // Guards and assignments depend on the trace up to this time point, and on the data before it.
            let until_now = evaluator.timeline.until(k);
            let mut as_data_is = run.data_before.clone();
            if let Some(before) = k.checked_sub(1) {
                as_data_is[before].clone_from(&data);
            }
            let mut now = evaluator.inside(&until_now, id, &as_data_is);
            let mut possible = |t: &Transition, k: usize| {
                in_time(t, &samples[k], entered)
                    && t.guard.is_none_or(|g| now.column(g)[k].truth() == Truth::TRUE)
            };
            let leaving = machine.transitions.iter().filter(|t| t.from == state);
            let met: Vec<&Transition> = leaving
                .filter(|t| possible(t, k) && (sample.event.is_some() || !possible(t, k - 1)))
                .collect();
            match met[..] {
                [] => {}
                [transition] => {
                    for (variable, value) in &transition.assignments {
                        data[*variable as usize] = now.column(*value)[k].clone();
                    }
                    state = transition.to;
                    entered = sample.from;
                }
                _ => ambiguous = true,
            }
        }
        // The transition was taken at the beginning of the interval.
        if sample.is_span() {
            run.data_before[k].clone_from(&data);
        }
        run.state_after.push(state);
        run.ambiguous.push(ambiguous);
    }
    run
}

/// Evaluates the nodes that do not read the machine's data, once for all samples.
fn prepare(evaluator: &mut Evaluator<'_>, id: MachineId) {
    let spec = evaluator.spec;
    let mut reads_data: Vec<bool> = Vec::new();
    for expr in &spec.nodes {
        let data = matches!(expr, Expr::MachineVariable(m, ..) if *m == id);
        reads_data.push(data || expr.operands().any(|operand| reads_data[operand.index()]));
    }
    let transitions = &spec.machines[id.0 as usize].transitions;
    let parts =
        |t: &Transition| t.guard.into_iter().chain(t.assignments.iter().map(|(_, x)| *x)).collect::<Vec<_>>();
    let mut open: Vec<ExprId> = transitions.iter().flat_map(parts).collect();
    while let Some(part) = open.pop() {
        if reads_data[part.index()] {
            open.extend(spec.nodes[part.index()].operands());
        } else {
            evaluator.column(part);
        }
    }
}

/// Whether the bounds of the transition are met; on an interval, just after its beginning.
fn in_time(transition: &Transition, sample: &Sample, entered: Clock) -> bool {
    let since = sample.from - entered;
    let span = sample.is_span();
    let wide = |ns: u64| 2 * Clock::from(ns);
    let within = transition.within.is_none_or(|w| if span { since < wide(w) } else { since <= wide(w) });
    let after = transition.after.is_none_or(|a| if span { since >= wide(a) } else { since > wide(a) });
    within && after
}
