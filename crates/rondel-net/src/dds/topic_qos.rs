//! Quality of service of a topic, as far as it is set.

use std::time::Duration;

/// Longest interval of [`TopicQos::poll`].
const LONGEST_POLL: Duration = Duration::from_secs(60);
/// Maximum number of partitions of a subscription or publisher.
const MOST_PARTITIONS: usize = 64;

/// Quality of service of a subscription or a publisher. A subscription takes unset policies over from the discovered
/// publisher.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TopicQos {
    /// Policy for lost samples. Default: the publisher's.
    pub reliability: Option<Reliability>,
    /// Policy for samples published before a subscription. Default: the publisher's, for raw topics; volatile for text.
    pub durability: Option<Durability>,
    /// Policy for several publishers of an instance. Default: the publisher's.
    pub ownership: Option<Ownership>,
    /// Strength of a publisher among those of an instance with [exclusive](Ownership::Exclusive) ownership; the strongest
    /// one is received until it leaves or the lease of its participant expires. For publishers. Default: 0.
    pub strength: Option<i32>,
    /// Number of samples that a subscription keeps of each instance; older ones are dropped. Default: all of them, up
    /// to [`Settings::reader_queue`](super::Settings::reader_queue).
    pub depth: Option<u32>,
    /// Maximum time between two samples of an instance. Default: none.
    pub deadline: Option<Duration>,
    /// Maximum time without a sign of life of a publisher. In CycloneDDS a publisher that exceeds it stays the owner of
    /// its instances. Default: none.
    pub lease: Option<Duration>,
    /// Source of the signs of life that a publisher offers; a subscription accepts any. Default: automatic.
    pub liveliness: Option<Liveliness>,
    /// Time that a publisher may take to send a sample; a subscription receives from publishers with at most this
    /// budget. Default: the publisher's, for raw topics; 0 for text and for publishers.
    pub latency_budget: Option<Duration>,
    /// Partitions; a subscription may use the wildcards `*` and `?`. Default: the partition without a name.
    pub partitions: Vec<String>,
    /// Minimum time between two samples of an instance; those in between are dropped. Default: none.
    pub min_separation: Option<Duration>,
    /// Interval at which a subscription takes samples, instead of at their arrival.
    pub poll: Option<Duration>,
}

/// Policy for lost samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reliability {
    /// They are not sent again.
    BestEffort,
    /// They are sent again.
    Reliable,
}

/// Policy for samples published before a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Durability {
    /// They are not kept.
    Volatile,
    /// Their publisher keeps them while it exists.
    TransientLocal,
    /// A service keeps them while it runs.
    Transient,
    /// A service stores them.
    Persistent,
}

/// Source of the signs of life of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Liveliness {
    /// Its participant.
    Automatic,
    /// The program, for all publishers of the participant.
    ManualByParticipant,
    /// The program, for this publisher.
    ManualByTopic,
}

/// Policy for several publishers of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ownership {
    /// Samples of every publisher are delivered.
    Shared,
    /// Only samples of the strongest live publisher are delivered.
    Exclusive,
}

impl TopicQos {
    /// Checks the settings against each other.
    ///
    /// # Errors
    /// A description of the contradiction.
    pub fn check(&self) -> Result<(), String> {
        if self.depth == Some(0) {
            return Err("depth is at least 1".to_owned());
        }
        if self.strength.is_some() && self.ownership != Some(Ownership::Exclusive) {
            return Err("a strength needs exclusive ownership".to_owned());
        }
        for (name, time) in [("deadline", self.deadline), ("lease", self.lease), ("poll", self.poll)] {
            if time == Some(Duration::ZERO) {
                return Err(format!("{name} is longer than 0"));
            }
        }
        if let (Some(deadline), Some(separation)) = (self.deadline, self.min_separation)
            && deadline < separation
        {
            return Err(
                "the deadline is shorter than the time between samples that are not left out".to_owned()
            );
        }
        if self.poll.is_some_and(|poll| poll > LONGEST_POLL) {
            return Err(format!("poll is at most {} s", LONGEST_POLL.as_secs()));
        }
        if self.partitions.len() > MOST_PARTITIONS {
            return Err(format!("there are at most {MOST_PARTITIONS} partitions"));
        }
        match self.partitions.iter().find(|name| name.contains('\0')) {
            Some(name) => Err(format!("'{}' is not the name of a partition", name.escape_default())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contradictory_settings_are_refused() {
        assert_eq!(TopicQos::default().check(), Ok(()));
        let ms = |n| Some(Duration::from_millis(n));
        let bad = [
            TopicQos { depth: Some(0), ..TopicQos::default() },
            TopicQos { strength: Some(1), ..TopicQos::default() },
            TopicQos { strength: Some(1), ownership: Some(Ownership::Shared), ..TopicQos::default() },
            TopicQos { deadline: ms(0), ..TopicQos::default() },
            TopicQos { lease: ms(0), ..TopicQos::default() },
            TopicQos { poll: ms(0), ..TopicQos::default() },
            TopicQos { poll: ms(60_001), ..TopicQos::default() },
            TopicQos { deadline: ms(10), min_separation: ms(11), ..TopicQos::default() },
            TopicQos { partitions: vec!["a\0".into()], ..TopicQos::default() },
            TopicQos { partitions: vec![String::new(); 65], ..TopicQos::default() },
        ];
        for qos in bad {
            assert!(qos.check().is_err(), "{qos:?}");
        }
    }
}
