//! What became of each property, for the closing summary and the exit status.

use indicatif::HumanCount;
use rondel_engine::Report;
use rondel_event::{Block, Path, Rows, Slot, Timestamp, Verdict};

use crate::exit;
use crate::specification::Specification;

/// The verdicts of one property, counted.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// At how many steps it was violated.
    pub violated: u64,
    /// At how many steps it was satisfied.
    pub satisfied: u64,
    /// At how many steps it was inconclusive.
    pub inconclusive: u64,
    /// How often it became violated.
    pub violations: u64,
    /// The step and the time of the first violation.
    pub first: Option<(u64, Timestamp)>,
    /// The last verdict.
    pub last: Option<Verdict>,
    /// Whether a trace has ended with it inconclusive.
    pub open: bool,
    /// The step since which the last verdict stands: the steps from there on are not counted yet.
    since: u64,
}

impl Tally {
    /// Adds a verdict. Only changes count.
    #[inline]
    pub fn add(&mut self, report: &Report) {
        if !report.changed {
            return;
        }
        self.count(report.step);
        self.last = Some(report.verdict);
        if report.verdict == Verdict::Violated {
            self.violations += 1;
            self.first.get_or_insert((report.step, report.time));
        }
    }

    /// Says that the trace has so many steps and ends here; the next one begins with step 0.
    pub fn end(&mut self, steps: u64) {
        self.count(steps);
        self.open |= self.last == Some(Verdict::Inconclusive);
        self.since = 0;
    }

    /// Counts the steps before this one.
    fn count(&mut self, step: u64) {
        let steps = step.saturating_sub(self.since);
        match self.last {
            Some(Verdict::Satisfied) => self.satisfied += steps,
            Some(Verdict::Violated) => self.violated += steps,
            Some(Verdict::Inconclusive) => self.inconclusive += steps,
            None => {}
        }
        self.since = step;
    }

    /// Whether it was neither satisfied nor violated at any step.
    pub fn undecided(&self) -> bool {
        self.violations == 0 && self.satisfied == 0
    }
}

/// The exit status that these tallies call for, where these fields never came.
pub fn status(tallies: &[Tally], unseen: &Unseen) -> u8 {
    let open = |t: &Tally| t.undecided() || t.open;
    let doubtful = |t: &Tally| t.inconclusive > 0 && !unseen.fields.is_empty();
    if tallies.iter().any(|t| t.violations > 0) {
        exit::VIOLATED
    } else if tallies.iter().any(|t| open(t) || doubtful(t)) {
        exit::INCONCLUSIVE
    } else {
        exit::SATISFIED
    }
}

/// The fields that a program reads and no message has carried so far: most often a misspelt name.
#[derive(Clone, Debug)]
pub struct Unseen {
    fields: Vec<(Slot, String)>,
}

impl Unseen {
    /// Of this specification: all its fields.
    pub fn new(specification: &Specification) -> Unseen {
        let topics = specification.spec.topics.iter().zip(specification.program.projections());
        let name = |topic: &str, path: &Path| {
            if specification.is_formula { path.to_string() } else { format!("{topic}.{path}") }
        };
        let fields = topics.flat_map(|(topic, projection)| {
            projection.fields.iter().map(|field| (field.slot, name(&topic.name, &field.path)))
        });
        Unseen { fields: fields.collect() }
    }

    /// Looks what the events of a block carry. Costs nothing once everything was seen.
    #[inline]
    pub fn look(&mut self, block: &Block) {
        if !self.fields.is_empty() {
            self.fields.retain(|(slot, _)| block.present(*slot) == 0);
        }
    }

    /// The names of the fields, if there are any, for a report.
    pub fn names(&self) -> Option<String> {
        let mut names: Vec<&str> = self.fields.iter().map(|(_, name)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

/// A number and what is counted, in the plural where it is not one.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", HumanCount(count), if count == 1 { one } else { many })
}

/// Events whose time is before that of the event before them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backwards {
    last: Option<Timestamp>,
    /// How many there were.
    pub count: u64,
}

impl Backwards {
    /// Adds the events of a block; returns the row of the first one ever that goes back.
    #[inline]
    pub fn add(&mut self, block: &Block) -> Option<usize> {
        let mut back: Rows = 0;
        let mut last = self.last.unwrap_or(Timestamp::from_nanos(i64::MIN));
        for row in 0..block.len() {
            let time = block.time(row);
            back |= Rows::from(time < last) << row;
            last = time;
        }
        self.last = Some(last);
        let first_ever = (back != 0 && self.count == 0).then(|| back.trailing_zeros() as usize);
        self.count += u64::from(back.count_ones());
        first_ever
    }
}
