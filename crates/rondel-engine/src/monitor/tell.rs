//! What is reported of instances.

use rondel_event::{Block, Rows, Timestamp, Verdict};
use rondel_spec::TimeModel;

use crate::exec::report::Outcome;
use crate::exec::report::{Report, ReportKey, ReportKeys, in_order};
use crate::exec::section::Section;
use crate::exec::terms::RowValue;
use crate::keyed::ahead::{self, EVENT};
use crate::keyed::ending::Unfinished;
use crate::keyed::keys::for_each;
use crate::keyed::plan::Sliced;
use crate::keyed::{Moment, MomentOwner};
use crate::monitor::noted::{Ended, Noted, has_levels};
use crate::monitor::term_values::TermValue;
use crate::monitor::{at, before, step_before};

/// What verdicts are told of: the events of a block, or time passing.
#[derive(Clone, Copy)]
pub(crate) struct Occasion<'a> {
    pub(crate) block: Option<&'a Block>,
    /// The times of its events.
    pub(crate) times: &'a [i64],
    /// The number of the first of them, or of the next event.
    pub(crate) position: u64,
    /// For each row of the moments the row of its event in the block, if they differ.
    pub(crate) rows: Option<&'a [u8; Block::CAPACITY]>,
}

impl Occasion<'_> {
    /// The row in the block of the event that a row of the moments belongs to.
    #[inline(always)]
    fn row(&self, row: usize) -> usize {
        self.rows.map_or(row, |rows| usize::from(rows[row]))
    }
}

/// What is told is written here.
pub(crate) struct Out<'a> {
    pub(crate) reports: &'a mut Vec<Report>,
    /// The keys of the reports.
    pub(crate) keys: &'a mut ReportKeys,
    pub(crate) noted: &'a mut Noted,
}

/// Writes the reports of moments of instances, and their keys.
pub(crate) fn tell(
    moment: &Moment<'_>,
    sliced: &Sliced,
    told: Occasion<'_>,
    every: bool,
    Out { reports, keys, noted }: &mut Out<'_>,
) {
    tell_awaited(moment, sliced, told, every, (reports, keys, noted));
    if sliced.section.has_levels {
        note_levels(moment, &sliced.section, noted);
    }
    if !moment.terms.is_empty() {
        note_terms(moment, told, (keys, noted));
    }
    let at_event = matches!(moment.place, MomentOwner::Rows | MomentOwner::Shared(_));
    let asks = every;
    let every = if every && at_event { moment.rows } else { 0 };
    let moved = |i: u32| if asks { moment.moved(i as usize) } else { 0 };
    let is_quiet = |(i, outcome): (u32, &Outcome)| (outcome.changed | every | moved(i)) & moment.rows == 0;
    if (0..).zip(moment.outcomes).all(is_quiet) && moment.unfinished.is_empty() && moment.ended == 0 {
        return;
    }
    // The key of a row is written once.
    let (mut written, mut keys_of_rows): (Rows, _) = (0, [ReportKey::NONE; Block::CAPACITY]);
    let mut key_of = |row: usize| {
        if written >> row & 1 == 0 {
            written |= 1 << row;
            keys_of_rows[row] = keys.add(|words| moment.write_key(row, words));
        }
        keys_of_rows[row]
    };
    // Apart from the many reports, which follow.
    if moment.ended != 0 {
        for (&property, outcome) in sliced.section.properties.iter().zip(moment.outcomes) {
            for_each(outcome.violated & moment.ended, |row| {
                let (key, (_, order, time)) = (key_of(row), place(moment, told, row));
                noted.ended.push(Ended { property, key, time, order });
            });
        }
    }
    let (past, ahead) = moment.outcomes.split_at(sliced.section.properties.len().min(moment.outcomes.len()));
    let properties = &sliced.section.properties;
    in_order(
        (0..).zip(past),
        |i| every | moved(i),
        moment.rows,
        reports,
        |row, i, outcome| {
            let i = i as usize;
            let robustness = moment.robustness(&sliced.section, i, row, outcome.verdict(row));
            report(moment, told, (row, properties[i], outcome), (key_of(row), robustness))
        },
    );
    for ((outcome, future), driven) in ahead.iter().zip(&sliced.section.futures).zip(moment.driven) {
        // What is said of the others comes from what is pending.
        let every = every & !driven;
        let outcomes = std::iter::once((future.property, outcome));
        in_order(
            outcomes,
            |_| every,
            moment.rows,
            reports,
            |row, property, outcome| report(moment, told, (row, property, outcome), (key_of(row), None)),
        );
    }
    for &Unfinished { row, property, was_open } in moment.unfinished {
        let open = Outcome { changed: if was_open { 0 } else { Rows::MAX }, ..Outcome::default() };
        reports.push(report(moment, told, (row, property, &open), (key_of(row), None)));
    }
}

/// The row of the event of a moment, if there is one, the place among the reports, and the time.
#[inline(always)]
fn place(moment: &Moment<'_>, told: Occasion<'_>, row: usize) -> (Option<usize>, u32, Timestamp) {
    let at_event = |row| (Some(row), at(row), told.block.map_or(Timestamp::ZERO, |block| block.time(row)));
    match moment.place {
        MomentOwner::Rows => at_event(told.row(row)),
        MomentOwner::Shared(row) => at_event(told.row(row)),
        MomentOwner::Time | MomentOwner::Span => {
            let time = moment.times[row];
            let is_span = u32::from(moment.place == MomentOwner::Span);
            let order = before(told.times.partition_point(|&event| event <= time)) + is_span;
            (None, order, Timestamp::from_nanos(time))
        }
    }
}

/// Made in place: thousands of them may come of one event.
#[inline(always)]
fn report(
    moment: &Moment<'_>,
    told: Occasion<'_>,
    (row, property, outcome): (usize, u32, &Outcome),
    (key, robustness): (ReportKey, Option<f64>),
) -> Report {
    let (event, order, time) = place(moment, told, row);
    Report {
        property,
        verdict: outcome.verdict(row),
        changed: outcome.changed >> row & 1 == 1,
        lapsed: outcome.lapsed >> row & 1 == 1,
        row: event.map(|row| row as u8),
        step: event.map_or(step_before(told.position, order), |row| told.position + row as u64),
        at_event: event.is_some(),
        time,
        about: None,
        after: moment.place == MomentOwner::Span,
        back: 0,
        robustness,
        withheld: crate::exec::report::Withheld::No,
        key: Some(key),
        order,
    }
}

/// Notes the robustness of all properties that have one.
#[inline(never)]
fn note_levels(moment: &Moment<'_>, section: &Section, noted: &mut Noted) {
    for (i, &property) in section.properties.iter().enumerate() {
        if has_levels(section.robust.get(i).copied().flatten()) {
            for_each(moment.rows, |row| {
                noted.level(property, moment.robustness(section, i, row, Verdict::Inconclusive));
            });
        }
    }
}

/// Notes the values of terms.
#[cold]
fn note_terms(moment: &Moment<'_>, told: Occasion<'_>, (keys, noted): (&mut ReportKeys, &mut Noted)) {
    for RowValue { property, row, after, value } in moment.terms {
        let row = usize::from(*row);
        if moment.rows >> row & 1 == 0 {
            continue;
        }
        let (event, _, time) = place(moment, told, row);
        let key = Some(keys.add(|words| moment.write_key(row, words)));
        let step = event.filter(|_| !after).map(|row| told.position + row as u64);
        noted.terms.push(TermValue {
            property: *property,
            step,
            time,
            after: *after,
            value: value.clone(),
            key,
        });
    }
}

/// Writes the reports of verdicts that were waited for.
fn tell_awaited(
    moment: &Moment<'_>,
    sliced: &Sliced,
    told: Occasion<'_>,
    every: bool,
    (reports, keys, noted): (&mut Vec<Report>, &mut ReportKeys, &mut Noted),
) {
    let Occasion { block, times, position, .. } = told;
    for &ahead::Told { row, future, decision, is_end } in moment.told {
        let section = &sliced.section;
        let (property, model) = match section.futures.get(future) {
            Some(future) => (future.property, future.plan.time),
            None => match section.robust_futures.get(future - section.futures.len()) {
                Some(future) => (future.property, future.plan.time),
                None => continue,
            },
        };
        noted.level(property, decision.robustness);
        let is_event =
            model != TimeModel::Dense || decision.is_instant() && decision.is_fresh && decision.tag == EVENT;
        if moment.rows >> row & 1 == 0 || !(decision.changed || every && (is_event || decision.moved)) {
            continue;
        }
        let key = keys.add(|words| moment.write_key(row, words));
        let at_row = match moment.place {
            MomentOwner::Rows => Some(told.row(row)),
            MomentOwner::Shared(row) => Some(told.row(row)),
            MomentOwner::Time | MomentOwner::Span => None,
        };
        let certain = decision.certain_time(model);
        let now = at_row.and_then(|row| times.get(row).copied());
        let is_now = is_end || model == TimeModel::Steps || now.is_some_and(|now| certain >= now);
        let event = at_row.filter(|_| is_now);
        let (order, time) = match (event, block) {
            (Some(row), Some(block)) => (at(row), block.time(row)),
            _ => {
                let time = if is_end { moment.times[row] } else { certain };
                let order = match model {
                    // It is the event of that time that shows it.
                    TimeModel::Points => before(times.partition_point(|&event| event < time)),
                    _ => {
                        let is_after = u32::from(decision.is_certain_after());
                        before(times.partition_point(|&event| event <= time)) + is_after
                    }
                };
                (order, Timestamp::from_nanos(time))
            }
        };
        let about =
            (decision.from != decision.certain).then(|| Timestamp::from_nanos(decision.about_time(model)));
        reports.push(Report {
            property,
            verdict: decision.verdict,
            changed: decision.changed,
            lapsed: false,
            row: event.map(|row| row as u8),
            step: event.map_or(step_before(position, order), |row| position + row as u64),
            at_event: event.is_some(),
            time,
            about,
            after: decision.is_after(model),
            back: decision.steps_back(model),
            robustness: decision.robustness,
            withheld: crate::exec::report::Withheld::No,
            key: Some(key),
            order,
        });
    }
}
