//! Answers of the API: the present verdicts, topics, and the state of the run.

use std::cmp::Ordering;

use rondel_event::Verdict;
use serde_json::Value;

/// A property with its present verdict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PropertyRow {
    /// The name.
    pub name: String,
    /// The worst verdict of all instances; `None` without one.
    pub verdict: Option<Verdict>,
    /// Event time of the last change, in seconds.
    pub since: Option<f64>,
    /// The value of `@severity`, or empty.
    pub severity: String,
    /// The values of `@requirement`, or empty.
    pub requirement: String,
    /// Number of instances.
    pub instances: u64,
    /// Number of violated instances.
    pub violated: u64,
    /// Violations so far.
    pub violations: u64,
    /// Operator who has acknowledged the open violation.
    pub acknowledged_by: Option<String>,
    /// Time of day until which it is silenced.
    pub silenced_until: Option<f64>,
    /// Property because of which it is muted.
    pub because_of: Option<String>,
}

/// A part of the properties, with the counts of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overview {
    /// Time of day of the server in seconds.
    pub now: f64,
    /// Properties that are violated, inconclusive, without a verdict, satisfied.
    pub counts: [u64; 4],
    /// Number of properties that match.
    pub total: usize,
    /// Position of the first row.
    pub offset: usize,
    /// The rows.
    pub rows: Vec<PropertyRow>,
}

/// A topic with its figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopicRow {
    /// Name in the specification.
    pub name: String,
    /// The address on the network.
    pub address: String,
    /// The network.
    pub network: String,
    /// Type or encoding.
    pub kind: Option<String>,
    /// Messages so far.
    pub messages: u64,
    /// Messages per second.
    pub rate: Option<f64>,
    /// Mean size in bytes.
    pub size: Option<f64>,
    /// Seconds since the last message.
    pub age: Option<f64>,
    /// Late messages.
    pub late: u64,
    /// Lost messages.
    pub lost: u64,
    /// Undecodable messages.
    pub undecodable: u64,
    /// Publishers, where they are known.
    pub publishers: Option<u64>,
}

/// State of the run, or of the store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunState {
    /// `run`, `store` or `check`.
    pub kind: String,
    /// Name of the series, or of the recording.
    pub name: String,
    /// Whether the run is ready.
    pub is_ready: bool,
    /// Why it is not.
    pub reasons: Vec<String>,
    /// Time of day in seconds since which verdicts are missing in all answers; `None` while they have all.
    pub behind_since: Option<f64>,
}

/// Order of topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopicSort {
    /// By name.
    #[default]
    Name,
    /// The most frequent first.
    Rate,
    /// Those without a message first, then the oldest.
    Age,
    /// Those with the most lost, late and undecodable messages first.
    Lost,
}

/// A text of a member; empty without one.
pub fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

/// A text of a member that may be null.
pub fn optional(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().map(str::to_owned)
}

fn count(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or(0)
}

fn position(value: &Value, name: &str) -> usize {
    usize::try_from(count(value, name)).unwrap_or(usize::MAX)
}

/// A verdict by its name.
pub fn verdict(value: &Value) -> Option<Verdict> {
    match value.as_str()? {
        "satisfied" => Some(Verdict::Satisfied),
        "violated" => Some(Verdict::Violated),
        // A word of a later version is nothing to rely on.
        _ => Some(Verdict::Inconclusive),
    }
}

/// The elements of a member that can be read.
pub fn list<T>(value: &Value, name: &str, read: impl Fn(&Value) -> T) -> Vec<T> {
    value[name].as_array().into_iter().flatten().map(read).collect()
}

impl PropertyRow {
    /// Reads a summary of a property.
    pub fn of(value: &Value) -> PropertyRow {
        PropertyRow {
            name: text(value, "name"),
            verdict: verdict(&value["verdict"]),
            since: value["since"].as_f64(),
            severity: text(value, "severity"),
            requirement: text(value, "requirement"),
            instances: count(&value["instances"], "total"),
            violated: count(&value["instances"], "violated"),
            violations: count(value, "violations"),
            acknowledged_by: optional(value, "acknowledged_by"),
            silenced_until: value["silenced_until"].as_f64(),
            because_of: optional(value, "because_of"),
        }
    }

    /// Ownership of the open violation as a note; empty without one.
    pub fn note(&self) -> String {
        match (&self.acknowledged_by, &self.because_of) {
            (Some(operator), _) => format!("by {operator}"),
            (None, Some(other)) => format!("because of {other}"),
            (None, None) if self.silenced_until.is_some() => "silenced".to_owned(),
            (None, None) => String::new(),
        }
    }
}

impl Overview {
    /// Reads an overview.
    pub fn of(value: &Value) -> Overview {
        let counts = ["violated", "inconclusive", "none", "satisfied"];
        Overview {
            now: value["now"].as_f64().unwrap_or(0.0),
            counts: counts.map(|name| count(&value["counts"], name)),
            total: position(value, "total"),
            offset: position(value, "offset"),
            rows: list(value, "properties", PropertyRow::of),
        }
    }

    /// The row at a position of all that match, if it is loaded.
    pub fn row(&self, at: usize) -> Option<&PropertyRow> {
        self.rows.get(at.checked_sub(self.offset)?)
    }
}

impl TopicRow {
    /// Reads a topic.
    pub fn of(value: &Value) -> TopicRow {
        TopicRow {
            name: text(value, "name"),
            address: text(value, "address"),
            network: text(value, "network"),
            kind: optional(value, "type"),
            messages: count(value, "messages"),
            rate: value["rate"].as_f64(),
            size: value["size"].as_f64(),
            age: value["age"].as_f64(),
            late: count(value, "late"),
            lost: count(value, "lost"),
            undecodable: count(value, "undecodable"),
            publishers: value["publishers"].as_u64(),
        }
    }

    /// Messages that did not become verdicts.
    pub fn missed(&self) -> u64 {
        self.lost.saturating_add(self.late).saturating_add(self.undecodable)
    }
}

impl TopicSort {
    /// Orders topics.
    pub fn order(self, topics: &mut [TopicRow]) {
        let least_first = |a: Option<f64>, b: Option<f64>| {
            a.unwrap_or(f64::INFINITY).total_cmp(&b.unwrap_or(f64::INFINITY))
        };
        topics.sort_by(|a, b| {
            let by_key = match self {
                TopicSort::Name => Ordering::Equal,
                TopicSort::Rate => b.rate.unwrap_or(-1.0).total_cmp(&a.rate.unwrap_or(-1.0)),
                TopicSort::Age => least_first(b.age, a.age),
                TopicSort::Lost => b.missed().cmp(&a.missed()),
            };
            by_key.then_with(|| a.name.cmp(&b.name))
        });
    }
}

impl RunState {
    /// Reads a state.
    pub fn of(value: &Value) -> RunState {
        RunState {
            kind: text(value, "kind"),
            name: text(value, "name"),
            is_ready: value["is_ready"].as_bool().unwrap_or(false),
            reasons: list(value, "reasons", |reason| reason.as_str().unwrap_or_default().to_owned()),
            behind_since: value["behind_since"].as_f64(),
        }
    }
}
