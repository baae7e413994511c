//! What is reported of instances.

use rondel_event::{Block, Timestamp, Value};

use crate::monitor::{at, before};
use crate::report::{Report, ReportKey, in_order};
use crate::slice::{Moment, Place, Sliced};

/// What the reports of a row have in common.
#[derive(Clone, Copy)]
struct Common {
    event: Option<usize>,
    order: u32,
    time: Timestamp,
    key: ReportKey,
}

/// Writes the reports of moments of instances, and their keys.
pub(crate) fn tell(
    moment: &Moment<'_>,
    sliced: &Sliced,
    block: Option<&Block>,
    times: &[i64],
    every: bool,
    reports: &mut Vec<Report>,
    keys: &mut Vec<Value>,
) {
    let at_event = matches!(moment.place, Place::Rows | Place::Shared(_));
    let every = if every && at_event { moment.rows } else { 0 };
    // What the reports of a row have in common is found once for the row.
    let mut common: [Option<Common>; Block::CAPACITY] = [None; _];
    in_order(moment.outcomes, every, moment.rows, reports, |row, i, outcome| {
        let Common { event, order, time, key } = *common[row].get_or_insert_with(|| {
            let start = keys.len() as u32;
            moment.write_key(row, keys);
            let key = ReportKey { start, len: keys.len() as u32 - start };
            let (event, order, time) = match moment.place {
                Place::Rows => (Some(row), at(row), 0),
                Place::Shared(row) => (Some(row), at(row), 0),
                Place::Time | Place::Span => {
                    let time = moment.times[row];
                    let is_span = u32::from(moment.place == Place::Span);
                    (None, before(times.partition_point(|&event| event <= time)) + is_span, time)
                }
            };
            let time = match (event, block) {
                (Some(row), Some(block)) => block.time(row),
                _ => Timestamp::from_nanos(time),
            };
            Common { event, order, time, key }
        });
        Report {
            property: sliced.section.properties[i],
            verdict: outcome.verdict(row),
            changed: outcome.changed >> row & 1 == 1,
            row: event.map(|row| row as u8),
            step: moment.steps[row] - u64::from(event.is_none() && moment.steps[row] > 0),
            time,
            about: None,
            robustness: None,
            key: Some(key),
            order,
            instance: moment.number(row),
        }
    });
}
