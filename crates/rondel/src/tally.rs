//! What became of each property, for the closing summary and the exit status.

use indicatif::HumanCount;
use rondel_engine::{Monitor, Report};
use rondel_event::{Block, Path, Rows, Slot, Timestamp, TopicId, Value, Verdict};
use rondel_spec::{Property, Spec, TimeModel};
use serde::{Deserialize, Serialize};

use crate::exit;
use crate::output::key_text;
use crate::specification::{Specification, looks_ahead, may_look_ahead};

/// The verdicts of one property, counted.
///
/// Where a verdict is that of every step until the next, steps are counted. A property for each key, one
/// that looks ahead, and one that changes between events too has no such steps: its verdicts are counted.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// At how many steps it was inconclusive, or how often it became so.
    pub inconclusive: u64,
    /// How often it became violated.
    pub violations: u64,
    /// The first violation.
    pub first: Option<First>,
    /// The last verdict.
    pub last: Option<Verdict>,
    /// Whether a trace has ended with it inconclusive.
    pub open: bool,
    /// Whether steps are counted.
    pub by_steps: bool,
    /// Whether there is an instance for each key.
    pub by_key: bool,
    /// Whether it was satisfied or violated at any time.
    decided: bool,
    /// The time that the last verdict is about, and whether it came later: verdicts may come in another
    /// order.
    about: Option<(Timestamp, bool)>,
    /// Whether the trace is over, so that what is still inconclusive stays so.
    over: bool,
    /// The step since which the last verdict stands: the steps from there on are not counted yet.
    since: u64,
}

/// Where a property was violated for the first time.
#[derive(Clone, Debug, PartialEq)]
pub struct First {
    /// The key of the instance, if it has one.
    pub key: String,
    /// The step, if there was one.
    pub step: Option<u64>,
    /// The time that the violation is about.
    pub time: Timestamp,
}

impl std::fmt::Display for First {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.key.is_empty() {
            write!(f, "of {} ", self.key)?;
        }
        match self.step {
            Some(step) => write!(f, "at step {step} (time {} s)", self.time),
            None => write!(f, "at time {} s", self.time),
        }
    }
}

impl Tally {
    /// One for each property of a specification.
    pub fn all(specification: &Specification) -> Vec<Tally> {
        let spec = &specification.spec;
        let ahead = may_look_ahead(spec);
        let by_steps = |p: &Property| {
            p.time != TimeModel::Dense && p.slice.is_none() && !(ahead && looks_ahead(spec, p.formula))
        };
        let tally =
            |p: &Property| Tally { by_steps: by_steps(p), by_key: p.slice.is_some(), ..Tally::default() };
        spec.properties.iter().map(tally).collect()
    }

    /// Adds a verdict. Only changes count. `keys` are asked for only where they are needed.
    #[inline]
    pub fn add(&mut self, report: &Report, keys: impl FnOnce() -> Vec<Value>) {
        if !report.changed {
            return;
        }
        if self.by_steps {
            self.count(report.step);
        } else {
            self.inconclusive += u64::from(report.verdict == Verdict::Inconclusive);
        }
        let about = report.about.unwrap_or(report.time);
        let is_late = report.about.is_some();
        let is_last = |(last, was_late)| about > last || about == last && (was_late || !is_late);
        if self.by_steps || self.about.is_none_or(is_last) {
            (self.last, self.about) = (Some(report.verdict), Some((about, is_late)));
        }
        self.open |= self.over && report.verdict == Verdict::Inconclusive;
        self.decided |= report.verdict != Verdict::Inconclusive;
        if report.verdict == Verdict::Violated {
            self.violations += 1;
            self.first.get_or_insert_with(|| First {
                key: key_text(&keys()),
                step: (report.at_event && report.about.is_none()).then_some(report.step),
                time: report.about.unwrap_or(report.time),
            });
        }
    }

    /// Says that the trace is over: only what it leaves open is still to come.
    pub fn over(&mut self) {
        self.over = true;
    }

    /// Says that the trace has so many steps and ends here, with so many instances that are inconclusive; the
    /// next one begins with step 0.
    pub fn end(&mut self, steps: u64, waiting: u64) {
        if self.by_steps {
            self.count(steps);
        }
        self.open |= match self.by_key {
            true => waiting > 0,
            false => self.last == Some(Verdict::Inconclusive),
        };
        (self.since, self.about, self.over) = (0, None, false);
    }

    /// Counts the steps before this one.
    fn count(&mut self, step: u64) {
        if self.last == Some(Verdict::Inconclusive) {
            self.inconclusive += step.saturating_sub(self.since);
        }
        self.since = step;
    }

    /// What it comes to: the last verdict; of a property with keys the worst of any instance.
    pub fn verdict(&self) -> Option<Verdict> {
        match self.last {
            Some(_) if self.by_key && self.violations > 0 => Some(Verdict::Violated),
            Some(_) if self.by_key && self.open => Some(Verdict::Inconclusive),
            last => last,
        }
    }

    /// Whether it was neither satisfied nor violated at any step.
    pub fn undecided(&self) -> bool {
        !self.decided
    }
}

/// A [`Tally`] as it goes into a file: times in nanoseconds, verdicts by their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SavedTally {
    inconclusive: u64,
    violations: u64,
    first: Option<(String, Option<u64>, i64)>,
    last: Option<String>,
    open: bool,
    decided: bool,
    about: Option<(i64, bool)>,
    since: u64,
}

impl Tally {
    /// For a file.
    pub fn saved(&self) -> SavedTally {
        SavedTally {
            inconclusive: self.inconclusive,
            violations: self.violations,
            first: self.first.as_ref().map(|first| (first.key.clone(), first.step, first.time.as_nanos())),
            last: self.last.map(|verdict| verdict.as_str().to_owned()),
            open: self.open,
            decided: self.decided,
            about: self.about.map(|(time, is_late)| (time.as_nanos(), is_late)),
            since: self.since,
        }
    }

    /// Goes on from what was saved.
    pub fn restore(&mut self, saved: SavedTally) {
        let SavedTally { inconclusive, violations, first, last, open, decided, about, since } = saved;
        let time = Timestamp::from_nanos;
        (self.inconclusive, self.violations, self.open) = (inconclusive, violations, open);
        (self.decided, self.since) = (decided, since);
        self.first = first.map(|(key, step, at)| First { key, step, time: time(at) });
        let all = [Verdict::Satisfied, Verdict::Violated, Verdict::Inconclusive];
        self.last = all.into_iter().find(|verdict| last.as_deref() == Some(verdict.as_str()));
        self.about = about.map(|(at, is_late)| (time(at), is_late));
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
#[derive(Clone, Debug, Default)]
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

    /// Of these topics of it only.
    pub fn of(specification: &Specification, topics: &[TopicId]) -> Unseen {
        let projections = specification.program.projections();
        let theirs = |slot: Slot| {
            let reads = |topic: &&TopicId| projections[topic.index()].fields.iter().any(|f| f.slot == slot);
            topics.iter().any(|topic| reads(&topic))
        };
        let mut unseen = Unseen::new(specification);
        unseen.fields.retain(|(slot, _)| theirs(*slot));
        unseen
    }

    /// Adds what others have not seen.
    pub fn extend(&mut self, other: &Unseen) {
        self.fields.extend(other.fields.iter().cloned());
    }

    /// Looks what the events of a block carry. Costs nothing once everything was seen.
    #[inline]
    pub fn look(&mut self, block: &Block) {
        if !self.fields.is_empty() {
            self.fields.retain(|(slot, _)| block.present(*slot) == 0);
        }
    }

    /// The names of the fields.
    pub fn all(&self) -> Vec<String> {
        self.fields.iter().map(|(_, name)| name.clone()).collect()
    }

    /// Says that all but these have been seen.
    pub fn keep(&mut self, names: &[String]) {
        self.fields.retain(|(_, name)| names.contains(name));
    }

    /// The names of the fields, if there are any, for a report.
    pub fn names(&self) -> Option<String> {
        let mut names: Vec<&str> = self.fields.iter().map(|(_, name)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

/// What a monitor could not take into account, in sentences; most often nothing.
pub fn left_out(monitor: &Monitor, spec: &Spec) -> Vec<String> {
    let mut said = Vec::new();
    for slice in monitor.slices() {
        let names: Vec<&str> = slice
            .properties
            .iter()
            .filter_map(|property| spec.properties.get(*property as usize))
            .map(|property| property.name.as_str())
            .collect();
        // Parts that are watched for evidence only are not spoken of: the property does the same.
        if names.is_empty() {
            continue;
        }
        let names = names.join(", ");
        if slice.unkeyed > 0 {
            let messages = counted(slice.unkeyed, "message has", "messages have");
            said.push(format!("{messages} no key, or one of another type, and did not count for {names}"));
        }
        if slice.refused > 0 {
            let messages = counted(slice.refused, "message", "messages");
            let instances = counted(slice.instances, "instance", "instances");
            let first = key_text(slice.first_refused.unwrap_or_default());
            said.push(format!(
                "{messages} with a new key did not count for {names}, as there were {instances} already, \
                 which is the limit; the first key was {first}"
            ));
        }
    }
    for rondel_engine::Ambiguity { machine, transitions: [first, second] } in monitor.ambiguities() {
        said.push(format!(
            "the machine {machine} could have taken two transitions at once, `{first}` and `{second}`, and has \
             taken none since"
        ));
    }
    if monitor.dropped_samples() > 0 {
        let samples = counted(monitor.dropped_samples(), "sample", "samples");
        said.push(format!("there was no room for {samples} of windows, which were unknown meanwhile"));
    }
    if monitor.given_up() > 0 {
        let verdicts = counted(monitor.given_up(), "verdict was", "verdicts were");
        said.push(format!("{verdicts} given up as inconclusive, as too many were waiting for what comes"));
    }
    if monitor.hurried() > 0 {
        let messages = counted(monitor.hurried(), "message was", "messages were");
        said.push(format!(
            "{messages} evaluated with numbers unknown that run straight, as too many waited for the next ones"
        ));
    }
    if monitor.beyond_range() > 0 {
        let events = counted(monitor.beyond_range(), "event was", "events were");
        said.push(format!("{events} more than 146 years from time zero, and counted as of there"));
    }
    said
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
    /// For a file: the time of the last event, in nanoseconds, and how many went back.
    pub fn saved(&self) -> (Option<i64>, u64) {
        (self.last.map(Timestamp::as_nanos), self.count)
    }

    /// Goes on from what was saved.
    pub fn restored((last, count): (Option<i64>, u64)) -> Backwards {
        Backwards { last: last.map(Timestamp::from_nanos), count }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_verdict_is_that_about_the_latest_time() {
        let at = Timestamp::from_nanos;
        let given = |time, about: Option<i64>, verdict| {
            let mut report = Report::at_event(verdict, 0, at(time));
            (report.about, report.at_event) = (about.map(at), false);
            report
        };
        let mut tally = Tally::default();
        tally.add(&given(0, None, Verdict::Satisfied), Vec::new);
        tally.add(&given(2, Some(0), Verdict::Inconclusive), Vec::new);
        assert_eq!((tally.last, tally.inconclusive), (Some(Verdict::Satisfied), 1));
        tally.add(&given(9, Some(5), Verdict::Violated), Vec::new);
        let first = tally.first.as_ref().map(ToString::to_string);
        assert_eq!((tally.last, first), (Some(Verdict::Violated), Some("at time 0.000000005 s".into())));
        let mut closed = tally.clone();
        closed.end(3, 0);
        assert!(!closed.open);
        // What is left open at the end stays so, whatever is known of later times.
        tally.over();
        tally.add(&given(9, Some(4), Verdict::Inconclusive), Vec::new);
        tally.end(3, 0);
        assert!(tally.open && tally.last == Some(Verdict::Violated));
    }
}
