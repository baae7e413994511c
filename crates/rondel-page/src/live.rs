//! Figures of a run, beside its store.

use serde_json::Value;

/// Figures and messages that a run adds to its store. Its functions copy figures; they may wait for the evaluating thread, for a limited time.
pub trait Live: Send + Sync {
    /// Returns the present figures; `None` if the evaluating thread does not answer in time.
    fn figures(&self) -> Option<Figures>;

    /// Returns the last message of a topic, as far as it was copied since a viewer watches.
    fn message(&self, topic: &str) -> Option<Message>;

    /// Starts or stops to copy messages.
    fn watch(&self, is_watched: bool);
}

/// Figures of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The topics, in the order of the specification.
    pub topics: Vec<TopicFigures>,
    /// The networks.
    pub networks: Vec<NetworkFigures>,
    /// The sinks.
    pub sinks: Vec<SinkFigures>,
    /// Reasons why the run is not ready; none if it is.
    pub reasons: Vec<String>,
    /// Time of day in nanoseconds since which verdicts are missing in the store; `None` while it has all.
    pub behind_since: Option<i64>,
    /// Messages received.
    pub messages: u64,
    /// Event time that is reached, in nanoseconds.
    pub reached: Option<i64>,
}

/// Figures of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopicFigures {
    /// Its name in the specification.
    pub name: String,
    /// Its address, with the network before a colon.
    pub address: String,
    /// The type or the encoding of its messages.
    pub message_type: Option<String>,
    /// Messages received.
    pub messages: u64,
    /// Bytes received since a viewer watches.
    pub bytes: u64,
    /// Messages among these bytes.
    pub measured: u64,
    /// Time of day of the last message, in nanoseconds, as far as it was noted.
    pub latest: Option<i64>,
    /// Messages that were too late.
    pub late: u64,
    /// Messages that were lost.
    pub lost: u64,
    /// Messages that could not be decoded.
    pub undecodable: u64,
    /// Publishers, where they are known.
    pub publishers: Option<u64>,
}

/// Figures of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkFigures {
    /// Its name.
    pub name: String,
    /// Whether it is connected.
    pub is_connected: bool,
    /// Connections lost so far.
    pub outages: u64,
}

/// Figures of a sink.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinkFigures {
    /// Its name.
    pub name: String,
    /// Whether it accepts verdicts, where that is known.
    pub is_connected: Option<bool>,
    /// Messages that wait.
    pub waiting: u64,
    /// Messages lost.
    pub lost: u64,
}

/// A message of a topic.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Time of day of its reception, in nanoseconds.
    pub received: i64,
    /// Its size.
    pub bytes: u64,
    /// The message as a tree.
    ///
    /// # Errors
    /// The reason why it cannot be shown.
    pub value: Result<Value, String>,
}

impl TopicFigures {
    /// The network of the topic.
    pub(crate) fn network(&self) -> &str {
        self.address.split(':').next().unwrap_or_default()
    }
}

/// Maximum number of characters of a text in a tree.
const TEXT: usize = 1024;
/// Maximum number of elements of an array and of members of an object.
const ELEMENTS: usize = 256;
/// Maximum number of values of a tree.
const VALUES: usize = 5000;

/// Shortens long texts, arrays and objects of a tree. Returns whether something was left out.
pub(crate) fn shorten(value: &mut Value) -> bool {
    let mut left = VALUES;
    shorten_within(value, &mut left)
}

fn shorten_within(value: &mut Value, left: &mut usize) -> bool {
    *left = left.saturating_sub(1);
    let most = ELEMENTS.min(*left);
    match value {
        Value::String(text) => match text.char_indices().nth(TEXT) {
            Some((end, _)) => {
                text.truncate(end);
                text.push('…');
                true
            }
            None => false,
        },
        Value::Array(elements) => {
            let is_cut = elements.len() > most;
            elements.truncate(most);
            elements.iter_mut().fold(is_cut, |is_cut, element| shorten_within(element, left) | is_cut)
        }
        Value::Object(members) => {
            let further: Vec<String> = members.keys().skip(most).cloned().collect();
            for name in &further {
                members.remove(name);
            }
            let is_cut = !further.is_empty();
            members.values_mut().fold(is_cut, |is_cut, member| shorten_within(member, left) | is_cut)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn large_messages_are_cut() {
        let mut small = json!({"a": [1, 2], "b": "text"});
        assert!(!shorten(&mut small));
        let mut value = json!({"a": vec![0; 1000], "b": "ä".repeat(10_000_000), "c": [["x".repeat(2000)]]});
        assert!(shorten(&mut value));
        assert_eq!(value["a"].as_array().map(Vec::len), Some(ELEMENTS));
        assert_eq!(value["b"].as_str().map(|text| text.chars().count()), Some(TEXT + 1));
        let row = json!(vec![1; 200]);
        let mut wide = json!(vec![row; 200]);
        assert!(shorten(&mut wide));
        assert!(wide.to_string().len() < 20_000, "{}", wide.to_string().len());
    }
}
