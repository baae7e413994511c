//! The section `slow_consumer:` of a deployment.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::alignment::nanoseconds;
use super::limits::bytes;
use super::yaml::{Item, Mistakes, Synonyms};
use super::{Address, Deployment};
use crate::sinks::spool::{SpoolSettings, can_refuse};

/// Default time limit for a consumer that accepts nothing.
pub const SLOW_CONSUMER_WAIT: Duration = Duration::from_secs(3);
/// The limits of the wait. Beyond ten seconds a participant of Zenoh or DDS counts as gone.
const LIMITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// The largest size of the file with the verdicts of a sink, unless it is set.
const SPOOL_LIMIT: usize = 256 << 20;
/// The folder of these files, unless it is set; beside the deployment.
const SPOOL_DIRECTORY: &str = "spool";

/// Names that people write for settings of slow consumers.
const SYNONYMS: Synonyms = &[
    (&["timeout", "after", "max_wait"], "write `wait`, such as `wait: 3 s`"),
    (&["size", "max_size", "bytes"], "write `limit`, such as `limit: 256 MiB`"),
    (&["folder", "path", "file", "dir"], "write `directory`"),
];

/// Reads the section `slow_consumer:`: the wait, and where verdicts are kept afterwards, unless they are dropped. Without
/// `then` they are kept, if the folder can be written.
pub(super) fn slow_consumer(
    item: Option<Item<'_>>,
    folder: &Path,
    mistakes: &mut Mistakes,
) -> (Duration, Option<SpoolSettings>) {
    let default = |limit, directory| {
        let settings = SpoolSettings { directory, limit, is_default: true };
        settings.check().is_ok().then_some(settings)
    };
    let Some(item) = item else {
        return (SLOW_CONSUMER_WAIT, default(SPOOL_LIMIT as u64, folder.join(SPOOL_DIRECTORY)));
    };
    let mut members = item.members("slow_consumer", mistakes);
    let mut wait = SLOW_CONSUMER_WAIT;
    if let Some(item) = members.get("wait")
        && let Some(text) = item.text("wait", mistakes)
    {
        match slow_consumer_wait(&text) {
            Ok(duration) => wait = duration,
            Err(error) => mistakes.at(item, format!("`wait` of `slow_consumer` {error}")),
        }
    }
    let then = members.get("then").and_then(|item| Some((item, item.text("then", mistakes)?)));
    let is_default = then.is_none();
    let spools = match then.as_ref().map(|(item, text)| (*item, text.as_str())) {
        None | Some((_, "spool")) => true,
        Some((_, "drop")) => false,
        Some((item, _)) => {
            mistakes.at(item, "`then` of `slow_consumer` must be drop or spool");
            true
        }
    };
    // A file that is set is meant to be used.
    let (limit_item, directory_item) = (members.get("limit"), members.get("directory"));
    let names_file = limit_item.is_some() || directory_item.is_some();
    let (mut limit, mut directory) = (SPOOL_LIMIT as u64, folder.join(SPOOL_DIRECTORY));
    if let Some(item) = limit_item
        && let Some(text) = item.text("limit", mistakes)
    {
        match bytes(&text).filter(|bytes| *bytes >= 1 << 10) {
            Some(bytes) => limit = bytes as u64,
            None => mistakes
                .at(item, "`limit` must be a whole number with a unit, from 1 KiB to 4 GiB, such as 256 MiB"),
        }
        if !spools {
            mistakes.at(item, "`limit` belongs to `then: spool`");
        }
    }
    if let Some(item) = directory_item
        && let Some(text) = item.text("directory", mistakes)
    {
        directory = folder.join(text);
        if !spools {
            mistakes.at(item, "`directory` belongs to `then: spool`");
        }
    }
    members.finish(SYNONYMS, mistakes);
    let spool = match (spools, is_default && !names_file) {
        (false, _) => None,
        (true, true) => default(limit, directory),
        (true, false) => Some(SpoolSettings { directory, limit, is_default: false }),
    };
    (wait, spool)
}

/// Warns of sinks for which nothing can be kept.
pub(super) fn check_spool(item: Item<'_>, deployment: &Deployment, mistakes: &mut Mistakes) {
    let idle: BTreeSet<String> = match deployment.spool {
        Some(SpoolSettings { is_default: false, .. }) => {
            deployment.sink_addresses().filter(|sink| !can_refuse(sink)).map(Address::to_string).collect()
        }
        _ => return,
    };
    if let Some(first) = idle.first() {
        let more = if idle.len() > 1 { format!(" and {} more", idle.len() - 1) } else { String::new() };
        mistakes.warn(
            item,
            format!(
                "`then: spool` keeps nothing for {first}{more}: Zenoh never refuses a message, but closes the \
                 connection of a slow subscriber; only sinks on DDS and MQTT and standard output have files"
            ),
        );
    }
}

/// Reads the time that a slow consumer is waited for.
///
/// # Errors
/// The requirement on the value.
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
        assert_eq!(slow_consumer_wait("3 s").unwrap(), SLOW_CONSUMER_WAIT);
        assert_eq!(slow_consumer_wait("250ms").unwrap(), Duration::from_millis(250));
        for wrong in ["", "3", "99 ms", "11 s", "-1 s", "never"] {
            assert!(slow_consumer_wait(wrong).is_err(), "{wrong}");
        }
    }
}
