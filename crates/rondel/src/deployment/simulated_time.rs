//! What a deployment in the time of a simulation may not have.

use rondel_runtime::{Alignment, Input, TimeSource};

use super::yaml::{Item, Mistakes};

/// How far the times of messages may be after `/clock` unless it is set, in nanoseconds: messages of before the
/// simulation was restarted are.
const AHEAD: i64 = 10_000_000_000;

/// Notes what needs the time of day, or a time that never goes back.
pub(super) fn check(
    inputs: &[Input],
    topics: &[Item<'_>],
    (durability, ids): (Option<Item<'_>>, Option<Item<'_>>),
    mistakes: &mut Mistakes,
) {
    for (_, item) in inputs.iter().zip(topics).filter(|(input, _)| input.time == TimeSource::Source) {
        let text = "`time: source` is a time of day, and with `use_sim_time` the time is that of /clock: name the field \
                    with the time of a message, such as `header.stamp`, or leave `time` out";
        mistakes.at(*item, text);
    }
    for (name, item) in [("durability", durability), ("ids", ids)] {
        if let Some(item) = item {
            let text = format!("with `use_sim_time` there is no `{name}`: a simulation may begin anew");
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
