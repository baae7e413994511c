//! The section `slow_consumer:` of a deployment.

use std::time::Duration;

use super::alignment::nanoseconds;
use super::yaml::{Item, Mistakes, Synonyms};

/// How long a consumer that accepts nothing is waited for, unless it is set.
pub const WAIT: Duration = Duration::from_secs(3);
/// The limits of the wait. Beyond ten seconds a participant of Zenoh or DDS counts as gone.
const LIMITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Names that people write for settings of slow consumers.
const SYNONYMS: Synonyms =
    &[(&["timeout", "limit", "after", "max_wait"], "write `wait`, such as `wait: 3 s`")];

/// Reads the section `slow_consumer:`.
pub(super) fn slow_consumer(item: Item<'_>, mistakes: &mut Mistakes) -> Duration {
    let mut members = item.members("slow_consumer", mistakes);
    let mut wait = WAIT;
    if let Some(item) = members.get("wait")
        && let Some(text) = item.text("wait", mistakes)
    {
        match slow_consumer_wait(&text) {
            Ok(duration) => wait = duration,
            Err(error) => mistakes.at(item, format!("`wait` of `slow_consumer` {error}")),
        }
    }
    if let Some(item) = members.get("then")
        && item.text("then", mistakes).is_some_and(|text| text != "drop")
    {
        mistakes.at(item, "`then` of `slow_consumer` must be drop: there is no other choice yet");
    }
    members.finish(SYNONYMS, mistakes);
    wait
}

/// Reads the time that a slow consumer is waited for.
///
/// # Errors
/// What it must be.
pub fn slow_consumer_wait(text: &str) -> Result<Duration, String> {
    let wait = nanoseconds(text).and_then(|nanos| u64::try_from(nanos).ok()).map(Duration::from_nanos);
    wait.filter(|wait| (LIMITS.0..=LIMITS.1).contains(wait))
        .ok_or_else(|| "must be a duration from 100 ms to 10 s, such as 3 s".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn waits_have_limits() {
        assert_eq!(slow_consumer_wait("3 s").unwrap(), WAIT);
        assert_eq!(slow_consumer_wait("250ms").unwrap(), Duration::from_millis(250));
        for wrong in ["", "3", "99 ms", "11 s", "-1 s", "never"] {
            assert!(slow_consumer_wait(wrong).is_err(), "{wrong}");
        }
    }
}
