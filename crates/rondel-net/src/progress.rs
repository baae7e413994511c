//! For publishers: how to say how far one is, so that who listens need not guess.

use std::fmt::Write as _;

use rondel_event::{TimeUnit, Timestamp};

use rondel_decode::json::quoted;

/// Makes the markers of a publisher of one topic.
///
/// It is told of every message that is sent, and makes a marker when asked: that all messages up to some time were
/// sent, and how many those were. Whoever has a clock that goes with the times of the messages says so from time to time
/// even if there was nothing to send. Where the marker is published, and how often, is for the publisher to decide; a
/// monitor waits no longer for a message than until the marker after it.
///
/// ```
/// use rondel_event::Timestamp;
/// use rondel_net::progress::Progress;
///
/// let mut progress = Progress::new("gear");
/// let at = |ms: i64| Timestamp::from_nanos(ms * 1_000_000);
/// progress.sent(at(10_000));
/// progress.sent(at(10_250));
/// assert_eq!(progress.complete(at(10_200)), r#"{"topic":"gear","complete":10.2}"#);
/// progress.sent(at(10_500));
/// assert_eq!(progress.complete(at(10_500)), r#"{"topic":"gear","complete":10.5,"after":10.2,"count":2}"#);
/// ```
#[derive(Clone, Debug)]
pub struct Progress {
    topic: String,
    publisher: Option<String>,
    unit: TimeUnit,
    complete: Option<Timestamp>,
    /// The times of what was sent since, or is later.
    sent: Vec<Timestamp>,
}

impl Progress {
    /// Of a topic, by its name in the specification, from the first message on.
    pub fn new(topic: &str) -> Progress {
        Progress {
            topic: topic.to_owned(),
            publisher: None,
            unit: TimeUnit::Seconds,
            complete: None,
            sent: Vec::new(),
        }
    }

    /// As one of several publishers of the topic, with this name.
    pub fn of_publisher(self, name: &str) -> Progress {
        Progress { publisher: Some(name.to_owned()), ..self }
    }

    /// With times in the unit that the messages have them in. Otherwise seconds.
    pub fn in_unit(self, unit: TimeUnit) -> Progress {
        Progress { unit, ..self }
    }

    /// A message with this time was sent. Times may be equal, or go back as far as to what is complete.
    pub fn sent(&mut self, time: Timestamp) {
        self.sent.push(time);
    }

    /// All messages up to this time, which does not go back, were sent: the marker to publish. Of messages before the
    /// first marker it is not said how many they are, as nobody knows who has listened.
    pub fn complete(&mut self, time: Timestamp) -> String {
        let time = self.complete.map_or(time, |complete| complete.max(time));
        let before = self.sent.len();
        self.sent.retain(|sent| *sent > time);
        let count = before - self.sent.len();
        let mut marker = format!("{{\"topic\":{}", quoted(&self.topic));
        // Writing to a string does not fail.
        if let Some(publisher) = &self.publisher {
            let _ = write!(marker, ",\"publisher\":{}", quoted(publisher));
        }
        let _ = write!(marker, ",\"complete\":{}", InUnit(time, self.unit));
        if let Some(after) = self.complete.replace(time) {
            let _ = write!(marker, ",\"after\":{},\"count\":{count}", InUnit(after, self.unit));
        }
        marker.push('}');
        marker
    }
}

/// A time in a unit, exactly.
struct InUnit(Timestamp, TimeUnit);

impl std::fmt::Display for InUnit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let InUnit(time, unit) = self;
        let nanos = time.as_nanos();
        let per_unit = match unit {
            TimeUnit::Seconds => return write!(f, "{time}"),
            TimeUnit::Milliseconds => 1_000_000,
            TimeUnit::Microseconds => 1_000,
            TimeUnit::Nanoseconds => return write!(f, "{nanos}"),
        };
        let (whole, rest) = (nanos / per_unit, (nanos % per_unit).unsigned_abs());
        let sign = if nanos < 0 && whole == 0 { "-" } else { "" };
        write!(f, "{sign}{whole}")?;
        if rest != 0 {
            let digits = per_unit.ilog10() as usize;
            write!(f, ".{}", format!("{rest:0digits$}").trim_end_matches('0'))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_names() {
        let at = Timestamp::from_nanos;
        let mut progress = Progress::new("a\"b").of_publisher("x").in_unit(TimeUnit::Milliseconds);
        assert_eq!(progress.complete(at(-1_500)), r#"{"topic":"a\"b","publisher":"x","complete":-0.0015}"#);
        progress.sent(at(2_000_000));
        let marker = progress.complete(at(2_000_000));
        assert!(marker.ends_with(r#""complete":2,"after":-0.0015,"count":1}"#), "{marker}");
        // It does not go back.
        assert!(progress.complete(at(0)).ends_with(r#""complete":2,"after":2,"count":0}"#));
        let mut nanos = Progress::new("t").in_unit(TimeUnit::Nanoseconds);
        assert_eq!(
            nanos.complete(at(1_700_000_000_123_456_789)),
            r#"{"topic":"t","complete":1700000000123456789}"#
        );
    }
}
