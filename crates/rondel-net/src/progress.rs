//! Progress markers of a publisher, so that subscribers know which messages are still to come.

use std::fmt::Write as _;

use rondel_event::{TimeUnit, Timestamp};

use rondel_decode::json::quoted;

/// Generator of the progress markers (watermarks) for one topic of a publisher.
///
/// Report every sent message with [`Progress::sent`]. [`Progress::complete`] then returns a marker: the statement that all
/// messages up to a time were sent, with their number. The publisher decides where and how often to publish markers; a
/// monitor waits for a message no longer than until the next marker. A publisher whose clock agrees with the times of its
/// messages should publish markers even while it sends nothing.
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
    /// Times of the messages sent since the last marker or after its time.
    sent: Vec<Timestamp>,
}

impl Progress {
    /// Creates the generator for a topic, by its name in the specification, before the first message.
    pub fn new(topic: &str) -> Progress {
        Progress {
            topic: topic.to_owned(),
            publisher: None,
            unit: TimeUnit::Seconds,
            complete: None,
            sent: Vec::new(),
        }
    }

    /// Sets the name of this publisher, needed when the topic has several.
    pub fn of_publisher(self, name: &str) -> Progress {
        Progress { publisher: Some(name.to_owned()), ..self }
    }

    /// Sets the unit of times, which must be that of the messages; default: seconds.
    pub fn in_unit(self, unit: TimeUnit) -> Progress {
        Progress { unit, ..self }
    }

    /// Records a sent message by its time, which must be later than that of the last marker.
    pub fn sent(&mut self, time: Timestamp) {
        self.sent.push(time);
    }

    /// Returns the marker for the time up to which all messages were sent; an earlier time than that of the last marker
    /// is replaced by it. The first marker has no count, since subscribers may have joined late.
    pub fn complete(&mut self, time: Timestamp) -> String {
        let time = self.complete.map_or(time, |complete| complete.max(time));
        let before = self.sent.len();
        self.sent.retain(|sent| *sent > time);
        let count = before - self.sent.len();
        let mut marker = format!("{{\"topic\":{}", quoted(&self.topic));
        // Writing to a string cannot fail.
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

/// Displays a time in a unit, without rounding.
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
    fn markers_have_the_unit_and_the_publisher() {
        let at = Timestamp::from_nanos;
        let mut progress = Progress::new("a\"b").of_publisher("x").in_unit(TimeUnit::Milliseconds);
        assert_eq!(progress.complete(at(-1_500)), r#"{"topic":"a\"b","publisher":"x","complete":-0.0015}"#);
        progress.sent(at(2_000_000));
        let marker = progress.complete(at(2_000_000));
        assert!(marker.ends_with(r#""complete":2,"after":-0.0015,"count":1}"#), "{marker}");
        // The time of a marker never decreases.
        assert!(progress.complete(at(0)).ends_with(r#""complete":2,"after":2,"count":0}"#));
        let mut nanos = Progress::new("t").in_unit(TimeUnit::Nanoseconds);
        assert_eq!(
            nanos.complete(at(1_700_000_000_123_456_789)),
            r#"{"topic":"t","complete":1700000000123456789}"#
        );
    }
}
