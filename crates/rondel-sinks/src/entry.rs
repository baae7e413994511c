//! Entries: the unit that sinks receive, as a value and as bytes.
//!
//! An entry contains everything that a sink needs: the key of its run and the name of its property. It can wait in a file
//! while a sink is down, and be written by the process that comes after its own.

use std::fmt;

use rondel_event::{Timestamp, Verdict};
use rondel_runtime::PropertyInfo;
use serde::{Deserialize, Serialize};

/// First byte of every encoded entry. A new value marks an encoding that earlier releases cannot read.
const ENCODING: u8 = 2;

/// Key of a run: a random number, or a hash of what identifies it. Entries refer to their run by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunKey(pub u128);

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Input of a sink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Entry<'a> {
    /// A run begins.
    #[serde(borrow)]
    Begin(Box<Begin<'a>>),
    /// A verdict.
    #[serde(borrow)]
    Verdict(VerdictEntry<'a>),
    /// Messages or verdicts were lost.
    #[serde(borrow)]
    Loss(Loss<'a>),
    /// A run ends.
    #[serde(borrow)]
    End(End<'a>),
    /// A run reaches an event time, with or without a verdict.
    Reached(Reached),
}

/// Purpose of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunKind {
    /// Live messages, by `rondel run`.
    #[default]
    Live,
    /// Recordings, by `rondel check`.
    Check,
    /// Tests embedded in specifications, by `rondel test`.
    Test,
}

impl RunKind {
    /// Returns the name in every output: `run`, `check` or `test`.
    pub fn as_str(self) -> &'static str {
        match self {
            RunKind::Live => "run",
            RunKind::Check => "check",
            RunKind::Test => "test",
        }
    }
}

/// The begin of a run, with everything that identifies it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Begin<'a> {
    /// Key of the run.
    pub run: RunKey,
    /// Name of the series: the runs of one deployment, which continue each other. A violation that one run leaves open is
    /// ended by the next, and a verdict that a later run repeats is stored once. Empty: a series of its own, as for checks.
    pub series: &'a str,
    /// Purpose.
    pub kind: RunKind,
    /// Whether the run resumes from a snapshot, so that its verdicts on repeated messages have the ids of earlier ones.
    pub resumes: bool,
    /// Time of day in nanoseconds since the Unix epoch.
    pub begin: i64,
    /// Path of the specification.
    pub specification: &'a str,
    /// Hash of the specification in hexadecimal digits.
    pub specification_hash: &'a str,
    /// Path of the deployment, or of the recording.
    pub configuration: &'a str,
    /// Hash of the deployment in hexadecimal digits.
    pub configuration_hash: &'a str,
    /// Version of Rondel.
    pub version: &'a str,
    /// Name of the machine.
    pub host: &'a str,
    /// Properties of the specification.
    #[serde(borrow)]
    pub properties: Vec<PropertyEntry<'a>>,
}

/// Description of a property.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PropertyEntry<'a> {
    /// Name.
    pub name: &'a str,
    /// Value of its attribute `@severity`; empty without one.
    pub severity: &'a str,
    /// Values of its attributes `@requirement`, separated by commas; empty without one.
    pub requirement: &'a str,
    /// Text in the specification; empty if unknown.
    pub text: &'a str,
}

impl<'a> PropertyEntry<'a> {
    /// Describes a property, with its text in the specification.
    pub fn new(info: &'a PropertyInfo, text: &'a str) -> PropertyEntry<'a> {
        PropertyEntry {
            name: &info.name,
            severity: info.severity.as_deref().unwrap_or_default(),
            requirement: info.requirement.as_deref().unwrap_or_default(),
            text,
        }
    }
}

/// A verdict on a property.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerdictEntry<'a> {
    /// Key of the run.
    pub run: RunKey,
    /// Id, equal for equal verdicts on the same messages; `None` where the run gives none.
    pub id: Option<u128>,
    /// Name of the property.
    pub property: &'a str,
    /// Parameters as a JSON object; empty without parameters.
    pub parameters: &'a str,
    /// Verdict.
    pub verdict: Truth,
    /// Event time in nanoseconds at which it became certain.
    pub time: i64,
    /// Event time that it is about, where that differs.
    pub about: Option<i64>,
    /// Whether it is about the open interval after that time.
    pub is_after: bool,
    /// Time of the report, in nanoseconds since the Unix epoch.
    pub reported: i64,
    /// Number of the message at which it became certain; `None` if time alone decided it.
    pub step: Option<u64>,
    /// Lap of the run, from 1.
    pub lap: u32,
    /// Robustness, where it is known.
    pub robustness: Option<f64>,
    /// Values of quantified variables as a JSON object; empty without them.
    pub values: &'a str,
    /// Explanation as a JSON array; empty without one.
    pub explanation: &'a str,
    /// Latency of a chain in nanoseconds.
    pub latency: Option<i64>,
    /// First topic that the stamp of a chain did not reach; empty otherwise.
    pub missing: &'a str,
    /// Property because of whose violation this one is muted, so that it sends no notification; empty otherwise.
    pub because_of: &'a str,
    /// The verdict as networks publish it; empty unless the sink [requests it](crate::Sink::wants_json).
    pub json: &'a str,
}

impl VerdictEntry<'_> {
    /// Returns the event time of the state that the verdict reports.
    pub fn at(&self) -> i64 {
        self.about.unwrap_or(self.time)
    }
}

/// A [`Verdict`] that can be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Truth {
    /// The property holds.
    Satisfied,
    /// The property does not hold.
    Violated,
    /// Unknown: a value that the verdict depends on was not received.
    Inconclusive,
}

impl Truth {
    /// Returns the name in every output, as [`Verdict::as_str`] does.
    pub fn as_str(self) -> &'static str {
        match self {
            Truth::Satisfied => Verdict::Satisfied.as_str(),
            Truth::Violated => Verdict::Violated.as_str(),
            Truth::Inconclusive => Verdict::Inconclusive.as_str(),
        }
    }
}

impl From<Verdict> for Truth {
    fn from(verdict: Verdict) -> Truth {
        match verdict {
            Verdict::Satisfied => Truth::Satisfied,
            Verdict::Violated => Truth::Violated,
            Verdict::Inconclusive => Truth::Inconclusive,
        }
    }
}

/// Messages or verdicts that were lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss<'a> {
    /// Key of the run.
    pub run: RunKey,
    /// Reason in one word or few, such as `late` or `queue full`.
    pub reason: &'a str,
    /// Topic or sink that lost them.
    pub subject: &'a str,
    /// Number.
    pub count: u64,
    /// Time of day of the first, in nanoseconds since the Unix epoch.
    pub from: i64,
    /// Time of day of the last.
    pub until: i64,
}

/// An event time that a run has reached: until then, its present verdicts hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Key of the run.
    pub run: RunKey,
    /// Event time in nanoseconds.
    pub time: i64,
    /// Time of the report, in nanoseconds since the Unix epoch.
    pub reported: i64,
}

/// The end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End<'a> {
    /// Key of the run.
    pub run: RunKey,
    /// Time of day in nanoseconds since the Unix epoch.
    pub end: i64,
    /// Reason of the end, such as `finished`.
    pub status: &'a str,
}

impl<'a> Entry<'a> {
    /// Appends the encoded entry.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(ENCODING);
        // Writing to a vector does not fail, and every type here has an encoding.
        let _ = postcard::to_io(self, out);
    }

    /// Decodes an entry.
    ///
    /// # Errors
    /// [`DecodeEntryError`].
    pub fn decode(bytes: &'a [u8]) -> Result<Entry<'a>, DecodeEntryError> {
        match bytes.split_first() {
            Some((&ENCODING, rest)) => postcard::from_bytes(rest).map_err(|_| DecodeEntryError::Damaged),
            Some((&encoding, _)) => Err(DecodeEntryError::Encoding(encoding)),
            None => Err(DecodeEntryError::Damaged),
        }
    }

    /// Returns the key of the run.
    pub fn run(&self) -> RunKey {
        match self {
            Entry::Begin(begin) => begin.run,
            Entry::Verdict(verdict) => verdict.run,
            Entry::Loss(loss) => loss.run,
            Entry::End(end) => end.run,
            Entry::Reached(reached) => reached.run,
        }
    }
}

/// Error of decoding an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeEntryError {
    /// The encoding is unknown.
    #[error(
        "an entry has encoding {0}, and this release reads only {ENCODING}; use the release that wrote it"
    )]
    Encoding(u8),
    /// The bytes are no entry.
    #[error("an entry is damaged")]
    Damaged,
}

/// Returns the id of a verdict as messages have it: 32 hexadecimal digits.
#[cfg(any(feature = "nats", feature = "kafka", feature = "webhook", feature = "otlp"))]
pub(crate) fn id_text(id: u128) -> String {
    format!("{id:032x}")
}

/// Returns the time of day in nanoseconds of a timestamp.
pub(crate) fn nanos(time: Timestamp) -> i64 {
    time.as_nanos()
}

/// A verdict with unusual values.
#[cfg(test)]
pub(crate) fn sample() -> VerdictEntry<'static> {
    VerdictEntry {
        run: RunKey(7),
        id: Some(u128::MAX - 5),
        property: "p",
        parameters: r#"{"id":7}"#,
        verdict: Truth::Violated,
        time: -5,
        about: Some(i64::MIN),
        is_after: true,
        reported: i64::MAX,
        step: None,
        lap: 1,
        robustness: Some(f64::NEG_INFINITY),
        values: "",
        explanation: "[]",
        latency: None,
        missing: "",
        because_of: "power",
        json: "{}",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_encoding() {
        let properties = vec![PropertyEntry { name: "p", severity: "critical", ..PropertyEntry::default() }];
        let begin = Begin { run: RunKey(1), series: "a", properties, ..Begin::default() };
        let all = [
            Entry::Begin(Box::new(begin)),
            Entry::Verdict(sample()),
            Entry::Loss(Loss {
                run: RunKey(1),
                reason: "late",
                subject: "gear",
                count: 3,
                from: 1,
                until: 2,
            }),
            Entry::End(End { run: RunKey(1), end: 5, status: "finished" }),
            Entry::Reached(Reached { run: RunKey(1), time: -5, reported: 7 }),
        ];
        for entry in all {
            let mut bytes = Vec::new();
            entry.encode(&mut bytes);
            assert_eq!(Entry::decode(&bytes), Ok(entry.clone()));
            for end in 0..bytes.len() {
                assert_eq!(
                    Entry::decode(&bytes[..end]),
                    Err(DecodeEntryError::Damaged),
                    "{end} of {entry:?}"
                );
            }
        }
    }

    #[test]
    fn other_encodings_are_refused() {
        let mut bytes = Vec::new();
        Entry::Verdict(sample()).encode(&mut bytes);
        bytes[0] = 9;
        assert_eq!(Entry::decode(&bytes), Err(DecodeEntryError::Encoding(9)));
        for seed in 0..2000_u32 {
            let noise: Vec<u8> =
                (0..64_u32).map(|i| (seed.wrapping_mul(2_654_435_761).rotate_left(i) ^ i) as u8).collect();
            let _ = Entry::decode(&[&[ENCODING], noise.as_slice()].concat());
        }
    }
}
