use rondel_event::{Block, Rows, Timestamp, Value, Verdict};

/// A verdict of a property at a time point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// Index of the property.
    pub property: u32,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the verdict differs from the one before of the same property (and instance). True for the
    /// first one.
    pub changed: bool,
    /// Whether an instance is inconclusive here that was decided before.
    pub lapsed: bool,
    /// Row of the event at which the verdict was emitted; none if time alone decided it, or if it was due
    /// before the event.
    pub row: Option<u8>,
    /// Number of the event, among all that the monitor received, at or after which the verdict was emitted.
    pub step: u64,
    /// Whether the verdict was emitted at an event.
    pub at_event: bool,
    /// Time at which the verdict became certain.
    pub time: Timestamp,
    /// Time that the verdict refers to, if different: of properties with future operators.
    pub about: Option<Timestamp>,
    /// In dense time, whether the verdict refers to the open interval after that time instead of the time
    /// itself.
    pub after: bool,
    /// In discrete time, number of steps from the one that the verdict refers to up to the one that decided
    /// it.
    pub back: u64,
    /// Robustness, if requested and known.
    pub robustness: Option<f64>,
    /// Missed messages that make the verdict inconclusive; it may be inconclusive without them as well.
    pub withheld: Withheld,
    /// The parameters of the instance: see [`Monitor::key`](crate::Monitor::key).
    pub key: Option<ReportKey>,
    /// If the event is an element of a message, its position in the array.
    pub element: Option<u32>,
    /// Sort key among the reports of one call.
    pub(crate) order: u32,
}

/// State of withholding: missed messages make a verdict inconclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// Not withheld.
    No,
    /// Withheld.
    Yes,
    /// Withheld from right after the last event or time on: the time of the report is one nanosecond later.
    FromNow,
}

/// Position of an instance's parameters in the [`ReportKeys`] of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportKey {
    pub(crate) start: u32,
    pub(crate) len: u32,
    pub(crate) slice: u32,
}

impl ReportKey {
    /// Placeholder before the parameters are written.
    pub(crate) const NONE: ReportKey = ReportKey { start: 0, len: 0, slice: 0 };
}

/// Parameters of the reports of one call, as words. Values are built on request only, since most reports are
/// merely counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportKeys {
    /// Index of the slice that is emitting.
    pub(crate) slice: u32,
    pub(crate) words: Vec<u64>,
}

impl ReportKeys {
    /// Appends the parameters that `write` adds.
    pub(crate) fn add(&mut self, write: impl FnOnce(&mut Vec<u64>)) -> ReportKey {
        let start = self.words.len() as u32;
        write(&mut self.words);
        ReportKey { start, len: self.words.len() as u32 - start, slice: self.slice }
    }

    /// The words of an instance's parameters.
    pub(crate) fn of(&self, key: ReportKey) -> &[u64] {
        self.words.get(key.start as usize..(key.start + key.len) as usize).unwrap_or(&[])
    }
}

/// Statistics of a `for each`.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceStatus<'a> {
    /// Indexes of its properties.
    pub properties: &'a [u32],
    /// Number of instances.
    pub instances: u64,
    /// Memory of the instances, in bytes.
    pub bytes: usize,
    /// Number of events dropped because a parameter was missing or had another type.
    pub unkeyed: u64,
    /// Number of these, in this run, that were topic events such as a missed deadline.
    pub unnamed: u64,
    /// Number of events dropped because of the limit of instances.
    pub refused: u64,
    /// The parameters of the first event dropped because of the limit.
    pub first_refused: Option<&'a [Value]>,
    /// The limit in bytes, if that event was dropped because of it.
    pub full: Option<usize>,
    /// Number of events dropped in this run because their parameters exceed 64 KiB.
    pub too_long: u64,
    /// Whether a parameter ranges over elements of messages.
    pub of_elements: bool,
    /// Number of messages in this run whose arrays differ in length from that of the names.
    pub unequal: u64,
    /// Number of names and of elements of the other array, in the first of these messages.
    pub first_unequal: Option<[u64; 2]>,
}

/// The verdicts of a property in some rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Rows in which the property is satisfied.
    pub(crate) satisfied: Rows,
    /// Rows in which it is violated; it is inconclusive in all others.
    pub(crate) violated: Rows,
    /// Rows in which the verdict differs from that of the time point before. True at the first one.
    pub(crate) changed: Rows,
    /// Rows in which an instance is inconclusive that was decided at the time point before.
    pub(crate) lapsed: Rows,
}

impl Outcome {
    /// The verdict in `row`.
    #[inline(always)]
    pub(crate) fn verdict(&self, row: usize) -> Verdict {
        if self.satisfied >> row & 1 == 1 {
            Verdict::Satisfied
        } else if self.violated >> row & 1 == 1 {
            Verdict::Violated
        } else {
            Verdict::Inconclusive
        }
    }
}

/// Appends a report for each property and row whose verdict has changed or that `every` returns for the
/// property, sorted by row, then property. Takes time proportional to the number of properties and reports,
/// not to properties times rows.
pub(crate) fn in_order<'a>(
    outcomes: impl Iterator<Item = (u32, &'a Outcome)> + Clone,
    every: impl Fn(u32) -> Rows,
    rows: Rows,
    reports: &mut Vec<Report>,
    mut make: impl FnMut(usize, u32, &Outcome) -> Report,
) {
    let wanted = |i: u32, outcome: &Outcome| (outcome.changed | every(i)) & rows;
    let (mut any, mut total, mut count) = (0, 0, 0);
    for (i, outcome) in outcomes.clone() {
        any |= wanted(i, outcome);
        total += wanted(i, outcome).count_ones() as usize;
        count += 1;
    }
    if any == 0 {
        return;
    }
    // With few properties, or many reports, checking each property in each row is faster: it writes in memory
    // order.
    if count <= 8 || total * 8 > count * any.count_ones() as usize {
        while any != 0 {
            let row = any.trailing_zeros() as usize;
            any &= any - 1;
            let here = outcomes.clone().filter(|(i, outcome)| wanted(*i, outcome) >> row & 1 == 1);
            reports.extend(here.map(|(i, outcome)| make(row, i, outcome)));
        }
        return;
    }
    let mut next = [0_usize; Block::CAPACITY];
    for (i, outcome) in outcomes.clone() {
        let mut wanted = wanted(i, outcome);
        while wanted != 0 {
            next[wanted.trailing_zeros() as usize] += 1;
            wanted &= wanted - 1;
        }
    }
    // Turns counts into the start of each row.
    let mut end = reports.len();
    for next in &mut next {
        (*next, end) = (end, end + *next);
    }
    reports.resize(end, Report::at_event(Verdict::Inconclusive, 0, Timestamp::ZERO));
    for (i, outcome) in outcomes {
        let mut wanted = wanted(i, outcome);
        while wanted != 0 {
            let row = wanted.trailing_zeros() as usize;
            wanted &= wanted - 1;
            reports[next[row]] = make(row, i, outcome);
            next[row] += 1;
        }
    }
}

impl Report {
    /// A changed verdict of the first property at an event in row 0.
    pub fn at_event(verdict: Verdict, step: u64, time: Timestamp) -> Report {
        Report {
            property: 0,
            verdict,
            changed: true,
            lapsed: false,
            row: Some(0),
            step,
            at_event: true,
            time,
            about: None,
            after: false,
            back: 0,
            robustness: None,
            withheld: Withheld::No,
            key: None,
            element: None,
            order: 0,
        }
    }
}
