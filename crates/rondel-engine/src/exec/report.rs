use rondel_event::{Block, Rows, Timestamp, Value, Verdict};

/// A verdict that a monitor has given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// The property, by its position.
    pub property: u32,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the verdict is another than the one before it of the same property (and the same key). The
    /// first one always counts as changed.
    pub changed: bool,
    /// Whether the property is divided by key, and inconclusive here in an instance that was decided before.
    pub lapsed: bool,
    /// The row of the event that it was given at. Otherwise time itself brought it, or it was as good as given at an event
    /// before.
    pub row: Option<u8>,
    /// The number of the event that it was given at, among all that the monitor took; of a verdict that time
    /// brought, the number of the event before it.
    pub step: u64,
    /// Whether it was given at an event.
    pub at_event: bool,
    /// When it became certain.
    pub time: Timestamp,
    /// The time that it is about, where that is another: of properties with operators of the future.
    pub about: Option<Timestamp>,
    /// In dense time, whether it is about what follows right after that time, and not about the time itself.
    pub after: bool,
    /// Where steps are counted, how many of them before the one that it was given at the one is that it is about.
    pub back: u64,
    /// How far from being violated the property is, where that is asked for and known.
    pub robustness: Option<f64>,
    /// Whether it is inconclusive because messages were not seen; it may have been so without that, too.
    pub withheld: Withheld,
    /// The key of its instance, where the property is divided by key: see [`Monitor::key`](crate::Monitor::key).
    pub key: Option<ReportKey>,
    /// Its place among the reports of one call.
    pub(crate) order: u32,
}

/// Whether a verdict was withheld, as messages were not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// It was not.
    No,
    /// It was.
    Yes,
    /// It was, from right after the last event or the time that had passed: the time of the report is the nanosecond
    /// behind that.
    FromNow,
}

/// Where the key of an instance is, among those of the reports of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportKey {
    pub(crate) start: u32,
    pub(crate) len: u32,
    pub(crate) slice: u32,
}

impl ReportKey {
    /// Where a key has not been written yet.
    pub(crate) const NONE: ReportKey = ReportKey { start: 0, len: 0, slice: 0 };
}

/// The keys of the reports of one call as the words that they are compared by. Values are made of those that
/// somebody asks for: most reports are only counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportKeys {
    /// The slice that is telling.
    pub(crate) slice: u32,
    pub(crate) words: Vec<u64>,
}

impl ReportKeys {
    /// Adds a key, which `write` appends.
    pub(crate) fn add(&mut self, write: impl FnOnce(&mut Vec<u64>)) -> ReportKey {
        let start = self.words.len() as u32;
        write(&mut self.words);
        ReportKey { start, len: self.words.len() as u32 - start, slice: self.slice }
    }

    /// The words of a key.
    pub(crate) fn of(&self, key: ReportKey) -> &[u64] {
        self.words.get(key.start as usize..(key.start + key.len) as usize).unwrap_or(&[])
    }
}

/// A division by key: how it is at the moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceStatus<'a> {
    /// The properties that are divided so, by their positions.
    pub properties: &'a [u32],
    /// How many instances there are.
    pub instances: u64,
    /// How many bytes they take.
    pub bytes: usize,
    /// How many events have been left out because they had no key, or one of another type.
    pub unkeyed: u64,
    /// How many of them in this run were events of instances of a topic, such as a missed deadline.
    pub unnamed: u64,
    /// How many events have been left out because there were as many instances as allowed.
    pub refused: u64,
    /// The key of the first of those.
    pub first_refused: Option<&'a [Value]>,
    /// The limit in bytes, if the first of those was left out because of it.
    pub full: Option<usize>,
    /// How many events have been left out in this run because their key was longer than 64 KiB.
    pub too_long: u64,
    /// Whether elements of messages are events of instances.
    pub of_elements: bool,
    /// How many elements of messages have been left out in this run because a later element had their name.
    pub repeated: u64,
    /// How many messages in this run had parallel arrays of other lengths than that of the names.
    pub unequal: u64,
    /// The number of names, and of the elements of the other array, in the first of them.
    pub first_unequal: Option<[u64; 2]>,
}

/// The verdicts of one property at some rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The rows where it is satisfied.
    pub(crate) satisfied: Rows,
    /// The rows where it is violated. Rows in neither set are inconclusive.
    pub(crate) violated: Rows,
    /// The rows where the verdict is another than at the moment before. At the very first it always
    /// counts as changed.
    pub(crate) changed: Rows,
    /// The rows where an instance is inconclusive that was decided at the moment before.
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

/// Adds a report for every property and row in `rows` where its verdict has changed, and for all that `every` has for
/// the number of the property: in the order of the rows and, in one row, of the properties. Costs what there are properties and reports; the
/// properties are not asked for every row again.
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
    // Where there are few, or most have something to say, each is asked in every row: that writes in order, which
    // memory likes better.
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
    // From counts to the places where each row begins.
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
            order: 0,
        }
    }
}
