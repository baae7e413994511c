//! Restrictions on a deployment in simulation time.

use rondel_runtime::{Alignment, Input, TimeSource};

use super::yaml::{Item, Mistakes};

/// Default maximum time of messages after `/clock`, in nanoseconds. It refuses messages from before a restart of the
/// simulation.
const AHEAD: i64 = 10_000_000_000;

/// Refuses settings that need the time of day, or a time that never goes back.
pub(super) fn check(
    inputs: &[Input],
    topics: &[Item<'_>],
    durability: Option<Item<'_>>,
    ids: Option<Item<'_>>,
    mistakes: &mut Mistakes,
) {
    for (_, item) in inputs.iter().zip(topics).filter(|(input, _)| input.time == TimeSource::Source) {
        let text = "`time: source` is a time of day, and with `use_sim_time` the time is that of /clock: name the field \
                    with the time of a message, such as `header.stamp`, or leave `time` out";
        mistakes.at(*item, text);
    }
    for (name, item) in [("durability", durability), ("ids", ids)] {
        if let Some(item) = item {
            let text = format!("with `use_sim_time` there is no `{name}`: a simulation may restart");
            mistakes.at(item, text);
        }
    }
}

/// Limits how far the times of messages may be after the clock, unless the deployment does.
pub(super) fn limit(alignment: &mut Alignment) {
    if !alignment.limited {
        alignment.ahead = Some(AHEAD);
    }
}
