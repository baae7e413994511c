//! Reports of instances.

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
use crate::keyed::{PointBatch, PointOrigin};
use crate::monitor::noted::{Ended, Noted, has_levels};
use crate::monitor::term_values::TermValue;
use crate::monitor::{at, before, step_before};

/// Input that reports refer to: the events of a block, or the passing of time.
#[derive(Clone, Copy)]
pub(crate) struct Occasion<'a> {
    pub(crate) block: Option<&'a Block>,
    /// Times of its events.
    pub(crate) times: &'a [i64],
    /// Step of the first event, or of the next event.
    pub(crate) position: u64,
    /// Rows of the time points, where they are not those of the block.
    pub(crate) elements: Option<&'a ElementRows>,
}

/// Rows of events that are elements of messages, or stand between such.
#[derive(Clone, Debug)]
pub(crate) struct ElementRows {
    /// Row of the message of each.
    pub(crate) messages: [u8; Block::CAPACITY],
    /// Position of each element in its array; none for other events.
    pub(crate) positions: [Option<u32>; Block::CAPACITY],
}

impl Default for ElementRows {
    fn default() -> ElementRows {
        ElementRows { messages: [0; _], positions: [None; _] }
    }
}

impl Occasion<'_> {
    /// Row in the block of the event that a row of the time points belongs to.
    #[inline(always)]
    fn row(&self, row: usize) -> usize {
        self.elements.map_or(row, |rows| usize::from(rows.messages[row]))
    }

    /// Position of the element at a row of the time points.
    #[inline(always)]
    fn element(&self, points: &PointBatch<'_>, row: usize) -> Option<u32> {
        let rows = self.elements.filter(|_| points.origin == PointOrigin::Rows)?;
        rows.positions[row]
    }
}

/// Output of the emitting functions.
pub(crate) struct Out<'a> {
    pub(crate) reports: &'a mut Vec<Report>,
    /// Parameters of the reports.
    pub(crate) keys: &'a mut ReportKeys,
    pub(crate) noted: &'a mut Noted,
}

/// Emits the reports about time points of instances, with their parameters.
pub(crate) fn emit(
    points: &PointBatch<'_>,
    sliced: &Sliced,
    occasion: Occasion<'_>,
    every: bool,
    Out { reports, keys, noted }: &mut Out<'_>,
) {
    emit_awaited(points, sliced, occasion, every, reports, keys, noted);
    if sliced.section.has_levels {
        note_levels(points, &sliced.section, noted);
    }
    if !points.terms.is_empty() {
        note_terms(points, occasion, keys, noted);
    }
    let at_event = matches!(points.origin, PointOrigin::Rows | PointOrigin::Shared(_));
    let wants_every = every;
    let every = if every && at_event { points.rows } else { 0 };
    let moved = |i: u32| if wants_every { points.moved(i as usize) } else { 0 };
    let is_quiet = |(i, outcome): (u32, &Outcome)| (outcome.changed | every | moved(i)) & points.rows == 0;
    if (0..).zip(points.outcomes).all(is_quiet) && points.unfinished.is_empty() && points.ended == 0 {
        return;
    }
    // Parameters of a row are written once.
    let (mut written, mut keys_of_rows): (Rows, _) = (0, [ReportKey::NONE; Block::CAPACITY]);
    let mut key_of = |row: usize| {
        if written >> row & 1 == 0 {
            written |= 1 << row;
            keys_of_rows[row] = keys.add(|words| points.write_key(row, words));
        }
        keys_of_rows[row]
    };
    // Ended instances come first, since reports are far more numerous.
    if points.ended != 0 {
        for (&property, outcome) in sliced.section.properties.iter().zip(points.outcomes) {
            for_each(outcome.violated & points.ended, |row| {
                let (key, (_, order, time)) = (key_of(row), place(points, occasion, row));
                noted.ended.push(Ended { property, key, time, order });
            });
        }
    }
    let (past, ahead) = points.outcomes.split_at(sliced.section.properties.len().min(points.outcomes.len()));
    let properties = &sliced.section.properties;
    in_order(
        (0..).zip(past),
        |i| every | moved(i),
        points.rows,
        reports,
        |row, i, outcome| {
            let i = i as usize;
            let robustness = points.robustness(&sliced.section, i, row, outcome.verdict(row));
            report(points, occasion, row, properties[i], outcome, key_of(row), robustness)
        },
    );
    for ((outcome, future), driven) in ahead.iter().zip(&sliced.section.futures).zip(points.driven) {
        // Driven outcomes are reported by their pending queues instead.
        let every = every & !driven;
        let outcomes = std::iter::once((future.property, outcome));
        in_order(
            outcomes,
            |_| every,
            points.rows,
            reports,
            |row, property, outcome| report(points, occasion, row, property, outcome, key_of(row), None),
        );
    }
    for &Unfinished { row, property, was_open } in points.unfinished {
        let open = Outcome { changed: if was_open { 0 } else { Rows::MAX }, ..Outcome::default() };
        reports.push(report(points, occasion, row, property, &open, key_of(row), None));
    }
}

/// Row of the event of a time point, if it has one, sort key among the reports, and time.
#[inline(always)]
fn place(points: &PointBatch<'_>, occasion: Occasion<'_>, row: usize) -> (Option<usize>, u32, Timestamp) {
    let at_event =
        |row| (Some(row), at(row), occasion.block.map_or(Timestamp::ZERO, |block| block.time(row)));
    match points.origin {
        PointOrigin::Rows => at_event(occasion.row(row)),
        PointOrigin::Shared(row) => at_event(occasion.row(row)),
        PointOrigin::Time | PointOrigin::Span => {
            let time = points.times[row];
            let is_span = u32::from(points.origin == PointOrigin::Span);
            let order = before(occasion.times.partition_point(|&event| event <= time)) + is_span;
            (None, order, Timestamp::from_nanos(time))
        }
    }
}

/// Constructed in place: one event may cause thousands of reports.
#[inline(always)]
fn report(
    points: &PointBatch<'_>,
    occasion: Occasion<'_>,
    row: usize,
    property: u32,
    outcome: &Outcome,
    key: ReportKey,
    robustness: Option<f64>,
) -> Report {
    let (event, order, time) = place(points, occasion, row);
    Report {
        property,
        verdict: outcome.verdict(row),
        changed: outcome.changed >> row & 1 == 1,
        lapsed: outcome.lapsed >> row & 1 == 1,
        row: event.map(|row| row as u8),
        step: event.map_or(step_before(occasion.position, order), |row| occasion.position + row as u64),
        at_event: event.is_some(),
        time,
        about: None,
        after: points.origin == PointOrigin::Span,
        back: 0,
        robustness,
        withheld: crate::exec::report::Withheld::No,
        key: Some(key),
        element: occasion.element(points, row),
        order,
    }
}

/// Records the robustness of all properties that have one.
#[inline(never)]
fn note_levels(points: &PointBatch<'_>, section: &Section, noted: &mut Noted) {
    for (i, &property) in section.properties.iter().enumerate() {
        if has_levels(section.robust.get(i).copied().flatten()) {
            for_each(points.rows, |row| {
                noted.level(property, points.robustness(section, i, row, Verdict::Inconclusive));
            });
        }
    }
}

/// Records the values of terms.
#[cold]
fn note_terms(points: &PointBatch<'_>, occasion: Occasion<'_>, keys: &mut ReportKeys, noted: &mut Noted) {
    for RowValue { property, row, after, value } in points.terms {
        let row = usize::from(*row);
        if points.rows >> row & 1 == 0 {
            continue;
        }
        let (event, _, time) = place(points, occasion, row);
        let key = Some(keys.add(|words| points.write_key(row, words)));
        let step = event.filter(|_| !after).map(|row| occasion.position + row as u64);
        noted.terms.push(TermValue {
            property: *property,
            step,
            time,
            after: *after,
            value: value.clone(),
            element: if *after { None } else { occasion.element(points, row) },
            key,
        });
    }
}

/// Emits the delayed verdicts of future operators.
fn emit_awaited(
    points: &PointBatch<'_>,
    sliced: &Sliced,
    occasion: Occasion<'_>,
    every: bool,
    reports: &mut Vec<Report>,
    keys: &mut ReportKeys,
    noted: &mut Noted,
) {
    let Occasion { block, times, position, .. } = occasion;
    for &ahead::AwaitedVerdict { row, future, decision, is_end } in points.awaited {
        let point_row = row;
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
        if points.rows >> row & 1 == 0 || !(decision.changed || every && (is_event || decision.moved)) {
            continue;
        }
        let key = keys.add(|words| points.write_key(row, words));
        let at_row = match points.origin {
            PointOrigin::Rows => Some(occasion.row(row)),
            PointOrigin::Shared(row) => Some(occasion.row(row)),
            PointOrigin::Time | PointOrigin::Span => None,
        };
        let certain = decision.certain_time(model);
        let now = at_row.and_then(|row| times.get(row).copied());
        let is_now = is_end || model == TimeModel::Steps || now.is_some_and(|now| certain >= now);
        let event = at_row.filter(|_| is_now);
        let (order, time) = match (event, block) {
            (Some(row), Some(block)) => (at(row), block.time(row)),
            _ => {
                let time = if is_end { points.times[row] } else { certain };
                let order = match model {
                    // The event of that time decides it.
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
            element: event.and_then(|_| occasion.element(points, point_row)),
            order,
        });
    }
}
