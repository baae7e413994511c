//! What a machine does, moment by moment.

use rondel_spec::{MachineId, TimeModel, Transition};

use super::evaluate::Evaluator;
use super::timeline::{Clock, Sample};
use super::truth::{Datum, Truth};

/// A machine at every sample.
#[derive(Default)]
pub struct Run {
    pub state_after: Vec<u32>,
    pub data_before: Vec<Vec<Datum>>,
    pub ambiguous: Vec<bool>,
}

/// Its moments are the events, and (dense) the spans that begin where an `after` without a guard has
/// run out.
pub fn run(evaluator: &Evaluator<'_>, id: MachineId) -> Run {
    let spec = evaluator.spec;
    let machine = &spec.machines[id.0 as usize];
    let samples = &evaluator.timeline.samples;
    let mut run = Run::default();
    let mut data: Vec<Datum> = machine.variables.iter().map(|v| Datum::of(Some(v.initial.clone()))).collect();
    let mut state = machine.initial;
    let mut entered = samples.first().map_or(0, |first| first.from);
    let mut ambiguous = false;
    for (k, sample) in samples.iter().enumerate() {
        run.data_before.push(data.clone());
        let by_itself = |t: &Transition| t.from == state && t.guard.is_none() && t.after.is_some();
        let deadline = machine.time == TimeModel::Dense
            && sample.is_span()
            && machine.transitions.iter().any(|t| by_itself(t) && in_time(t, sample, entered));
        if !ambiguous && (sample.event.is_some() || deadline) {
            // Guards and assignments see nothing after this moment, and the data before it.
            let until_now = evaluator.timeline.until(k);
            let mut now = Evaluator::new(spec, &until_now, evaluator.keys);
            now.open = Some((id, &run.data_before));
            let met: Vec<&Transition> = machine
                .transitions
                .iter()
                .filter(|t| t.from == state && in_time(t, sample, entered))
                .filter(|t| t.guard.is_none_or(|guard| now.column(guard)[k].truth() == Truth::TRUE))
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
        run.state_after.push(state);
        run.ambiguous.push(ambiguous);
    }
    run
}

/// Whether the transition may be taken now, by its times. In a span it is just after its beginning.
fn in_time(transition: &Transition, sample: &Sample, entered: Clock) -> bool {
    let since = sample.from - entered;
    let span = sample.is_span();
    let wide = |ns: u64| 2 * Clock::from(ns);
    let within = transition.within.is_none_or(|w| if span { since < wide(w) } else { since <= wide(w) });
    let after = transition.after.is_none_or(|a| if span { since >= wide(a) } else { since > wide(a) });
    within && after
}
