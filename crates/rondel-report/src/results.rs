//! The results of a check, and their JSON form.

use rondel_event::Timestamp;
use serde::{Deserialize, Serialize};

use crate::time_text::TimeText;

/// The format of the JSON form; another number is another format.
const FORMAT: u32 = 1;

/// The results of all recordings against one specification. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The number of the format.
    rondel_report: u32,
    /// The version of Rondel.
    pub version: String,
    /// The specification: a file, mostly.
    pub specification: String,
    /// Its properties, in order.
    pub properties: Vec<Claim>,
    /// The recordings, in the order in which they were named.
    pub recordings: Vec<Recording>,
}

/// A property, as it was claimed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Its name.
    pub name: String,
    /// The file in which it is declared, if the specification imports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Where its name stands in this file.
    pub place: Option<Place>,
    /// The line on which it is declared, without blanks around it.
    pub text: String,
    /// The value of `@severity`.
    pub severity: Option<String>,
    /// The values of `@requirement`.
    pub requirements: Vec<String>,
}

/// A place in the text of a specification, counted from 1; columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column of the first character.
    pub column: usize,
    /// The column behind the last character.
    pub end_column: usize,
}

/// The results of one recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// Its name: a file, mostly.
    pub name: String,
    /// Reason why it was not read to its end.
    pub problem: Option<String>,
    /// Further remarks: skipped parts, unusable values.
    pub remarks: Vec<String>,
    /// The number of messages that were checked.
    pub events: u64,
    /// The time of the first message, if there is one.
    pub begin: Option<i64>,
    /// The time of the last message.
    pub end: Option<i64>,
    /// Duration of the check, in seconds.
    pub seconds: f64,
    /// The results of the properties, in their order.
    pub properties: Vec<Judged>,
    /// The fields that the properties read, over the whole recording, if they are to be drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<Signal>,
    /// Where messages were missed on which verdicts depend.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
}

/// Messages that were missed, so that verdicts became inconclusive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The time of the last message before them.
    pub from_ns: i64,
    /// The time until which verdicts over time stay inconclusive; `from_ns` if none does.
    pub until_ns: i64,
    /// The properties that depend on them.
    pub properties: Vec<String>,
}

/// Outcome of a property in one recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was never violated, and all inputs that it needs were present.
    Satisfied,
    /// It holds, but about nothing: a topic or field that it needs never came, or its premise was never true.
    Vacuous,
    /// It could not be decided.
    #[default]
    Inconclusive,
    /// It was violated.
    Violated,
}

impl Outcome {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Satisfied => "satisfied",
            Outcome::Vacuous => "vacuous",
            Outcome::Inconclusive => "inconclusive",
            Outcome::Violated => "violated",
        }
    }
}

/// The result of a property in one recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Its outcome.
    pub outcome: Outcome,
    /// A remark on that.
    pub remark: String,
    /// Reasons why it is vacuous, as sentences.
    pub vacuous: Vec<String>,
    /// Whether it is vacuous only as a premise was never true.
    pub only_premise: bool,
    /// Whether an assert judges it, which decides instead of it.
    #[serde(default)]
    pub is_asserted: bool,
    /// Whether it is an assert: its verdict is about the whole recording, and holds for no time.
    #[serde(default)]
    pub is_assert: bool,
    /// Number of times that it became violated.
    pub count: u64,
    /// Total time that it was violated; with parameters, the sum over all instances. `None` where that is not measured,
    /// as with future operators.
    pub violated_ns: Option<i64>,
    /// The longest time for which it was violated without a break.
    pub longest_ns: Option<i64>,
    /// When that began.
    #[serde(default)]
    pub longest_from_ns: Option<i64>,
    /// Whether these times may have been longer, because messages were missed meanwhile.
    #[serde(default)]
    pub is_at_least: bool,
    /// The least robustness that was evaluated, where the property has a finite one.
    #[serde(default)]
    pub least_robustness: Option<f64>,
    /// The first violations, at most [`Judged::MOST_VIOLATIONS`].
    pub violations: Vec<Violation>,
    /// Verdict over time, the worst of all instances; at most [`Judged::MOST_CHANGES`] changes. If there are more,
    /// those within a short interval are combined into the worst of their verdicts and the last.
    pub changes: Vec<Change>,
}

impl Judged {
    /// The number of violations that are kept.
    pub const MOST_VIOLATIONS: usize = 20;
    /// The number of changes of the verdict that are kept.
    pub const MOST_CHANGES: usize = 2_000;
}

/// Change of the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The time.
    pub time_ns: i64,
    /// The verdict: satisfied, inconclusive or violated.
    pub verdict: Outcome,
}

/// A violation with its evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Violation {
    /// The time that it is about.
    pub time_ns: i64,
    /// The time at which it was certain.
    pub certain_ns: i64,
    /// The number of the message that decided it, from 0.
    pub step: Option<u64>,
    /// The parameters of the instance in brackets, or empty.
    pub parameters: String,
    /// The values of the quantified variables, by name.
    pub values: Vec<(String, String)>,
    /// The time points that caused it.
    pub evidence: Vec<EvidencePoint>,
    /// The fields that the property reads, before it and at it.
    pub signals: Vec<Signal>,
}

/// A time point of the evidence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EvidencePoint {
    /// Its time.
    pub time_ns: i64,
    /// Whether it stands for the open interval after that time.
    pub after: bool,
    /// The topic of the message, if there is one.
    pub topic: Option<String>,
    /// Names and values; an unknown value is `None`.
    pub values: Vec<(String, Option<String>)>,
}

/// A field or a term over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    /// The field or term.
    pub name: String,
    /// The meaning of its numbers.
    #[serde(default, skip_serializing_if = "SignalKind::is_number")]
    pub kind: SignalKind,
    /// The constants that it is compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<f64>,
    /// Value from each time on: a number, a boolean or a text; for an array its least element.
    pub values: Vec<(i64, serde_json::Value)>,
    /// For an array: its greatest element from each time on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upper: Vec<(i64, serde_json::Value)>,
}

/// The meaning of the numbers of a signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignalKind {
    /// A number; other values are booleans and texts.
    #[default]
    Number,
    /// A time in seconds.
    Time,
    /// A duration in seconds.
    Duration,
}

impl SignalKind {
    /// Whether it is a number, which is not written.
    fn is_number(&self) -> bool {
        *self == SignalKind::Number
    }
}

/// A report is not of the format that this version reads.
#[derive(Debug)]
pub struct UnknownFormat(String);

impl std::fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not a report of `rondel check --report json=FILE`: {}", self.0)
    }
}

impl std::error::Error for UnknownFormat {}

impl Results {
    /// The results of a specification without any recording yet.
    pub fn new(specification: &str, properties: Vec<Claim>) -> Results {
        Results {
            rondel_report: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            specification: specification.to_owned(),
            properties,
            recordings: Vec::new(),
        }
    }

    /// The JSON form.
    pub fn json(&self) -> String {
        // A structure of texts and numbers always has a JSON form.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Parses the JSON form.
    ///
    /// # Errors
    /// [`UnknownFormat`] if the text is not a report, or of another format.
    pub fn from_json(text: &str) -> Result<Results, UnknownFormat> {
        #[derive(Deserialize)]
        struct Head {
            rondel_report: u32,
        }
        let head: Head = serde_json::from_str(text).map_err(|error| UnknownFormat(error.to_string()))?;
        if head.rondel_report != FORMAT {
            return Err(UnknownFormat(format!(
                "its format is {}, this version of Rondel reads {FORMAT}",
                head.rondel_report
            )));
        }
        let results: Results =
            serde_json::from_str(text).map_err(|error| UnknownFormat(error.to_string()))?;
        match results.recordings.iter().find(|recording| !results.is_complete(recording)) {
            Some(recording) => Err(UnknownFormat(format!("properties are missing in {}", recording.name))),
            None => Ok(results),
        }
    }

    /// Each property with its result in a recording. A recording that could not be read has none.
    pub fn judged<'a>(&'a self, recording: &'a Recording) -> impl Iterator<Item = (&'a Claim, &'a Judged)> {
        self.properties.iter().zip(&recording.properties)
    }

    fn is_complete(&self, recording: &Recording) -> bool {
        let judged = recording.properties.len();
        judged == self.properties.len() || judged == 0 && recording.problem.is_some()
    }
}

/// A duration in seconds with all its digits: `12.5 s`.
pub(crate) fn seconds(nanos: i64) -> String {
    format!("{} s", Timestamp::from_nanos(nanos))
}

impl Recording {
    /// A time of the recording: one of the calendar as offset from its beginning, and as local time.
    pub(crate) fn time(&self, nanos: i64) -> String {
        let begin = self.begin.map(Timestamp::from_nanos);
        TimeText::default().placed(Timestamp::from_nanos(nanos), begin)
    }
}

impl Violation {
    /// Returns a sentence about the violation without its full stop: `p[7] at 12.5 s, certain at 13 s, x = 3`.
    pub fn sentence(&self, property: &str, recording: &Recording) -> String {
        let mut text = format!("{property}{} violated at {}", self.parameters, recording.time(self.time_ns));
        if self.certain_ns != self.time_ns {
            text += &format!(", certain at {}", recording.time(self.certain_ns));
        }
        if let Some(step) = self.step {
            text += &format!(", step {step}");
        }
        for (name, value) in &self.values {
            text += &format!(", {name} = {value}");
        }
        text
    }

    /// The evidence as lines of text.
    pub(crate) fn evidence_lines(&self, recording: &Recording) -> Vec<String> {
        let line = |point: &EvidencePoint| {
            let after = if point.after { "after " } else { "" };
            let topic = point.topic.as_ref().map_or_else(String::new, |topic| format!(" {topic}"));
            let value = |(name, value): &(String, Option<String>)| {
                format!("{name} = {}", value.as_deref().unwrap_or("?"))
            };
            let values: Vec<String> = point.values.iter().map(value).collect();
            format!("{after}{}{topic}: {}", recording.time(point.time_ns), values.join(", "))
        };
        self.evidence.iter().map(line).collect()
    }
}

impl Results {
    /// The name of the specification without its folder and ending.
    pub(crate) fn stem(&self) -> String {
        let path = std::path::Path::new(&self.specification);
        path.file_stem()
            .map_or_else(|| self.specification.clone(), |stem| stem.to_string_lossy().into_owned())
    }

    /// The file in which a property is declared.
    pub(crate) fn file_of<'a>(&'a self, claim: &'a Claim) -> &'a str {
        claim.file.as_deref().unwrap_or(&self.specification)
    }
}

impl Judged {
    /// The end of the inconclusive verdict that holds at a time or begins next; `end` if it lasts.
    pub fn inconclusive_until(&self, time: i64, end: i64) -> Option<i64> {
        let next = self.changes.partition_point(|change| change.time_ns <= time);
        let is_inconclusive =
            |at: &usize| self.changes.get(*at).is_some_and(|change| change.verdict == Outcome::Inconclusive);
        let at = next.checked_sub(1).filter(is_inconclusive).or(Some(next).filter(is_inconclusive))?;
        Some(self.changes.get(at + 1).map_or(end, |change| change.time_ns))
    }

    /// Whether CI must not pass: an assert decides instead of the property that it judges, and unless `strict`, a premise that was never true alone does not count.
    pub fn fails(&self, strict: bool) -> bool {
        match self.outcome {
            _ if self.is_asserted => false,
            Outcome::Satisfied => false,
            Outcome::Vacuous => strict || !self.only_premise,
            Outcome::Inconclusive | Outcome::Violated => true,
        }
    }

    /// A sentence with the reason why it is not simply satisfied.
    pub(crate) fn sentence(&self, property: &str) -> String {
        let mut text = format!("{property}: {}", self.outcome.as_str());
        let remark = std::iter::once(self.remark.as_str()).filter(|remark| !remark.is_empty());
        for part in remark.chain(self.vacuous.iter().map(String::as_str)) {
            text += if text.ends_with(self.outcome.as_str()) { ": " } else { "; " };
            text += part;
        }
        text
    }
}
