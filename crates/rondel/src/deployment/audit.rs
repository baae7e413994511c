//! The section `audit:` of a deployment.

use std::path::Path;
use std::time::Duration;

use super::alignment::nanoseconds;
use super::yaml::{Item, Mistakes, Synonyms};
use crate::sinks::audit::{AuditSettings, OnError};

/// The limits of `sync`.
const LIMITS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(3600));

/// Names that people write for the settings.
const SYNONYMS: Synonyms = &[
    (&["path", "to", "name", "log"], "write `file`, such as `file: audit.jsonl`"),
    (&["on_failure", "on_full", "error"], "write `on_error: stop` or `on_error: continue`"),
    (&["fsync", "flush", "durability"], "write `sync: batch`, or a duration such as `sync: 1 s`"),
];

/// Reads the section: the name of the file alone, or with further settings.
pub(super) fn audit(item: Item<'_>, folder: &Path, mistakes: &mut Mistakes) -> Option<AuditSettings> {
    if !item.is_mapping() {
        return Some(AuditSettings::of(folder.join(item.text("audit", mistakes)?)));
    }
    let mut members = item.members("audit", mistakes);
    let (file, on_error, sync) = (members.get("file"), members.get("on_error"), members.get("sync"));
    members.finish(SYNONYMS, mistakes);
    let on_error = on_error.and_then(|item| Some((item, item.text("on_error", mistakes)?)));
    let on_error = match on_error.as_ref().map(|(item, text)| (*item, text.as_str())) {
        None | Some((_, "stop")) => OnError::Stop,
        Some((_, "continue")) => OnError::Continue,
        Some((item, _)) => {
            mistakes.at(item, "`on_error` of `audit` must be stop or continue");
            OnError::Stop
        }
    };
    let sync = sync.and_then(|item| Some((item, item.text("sync", mistakes)?)));
    let sync = sync.map_or(AuditSettings::SYNC, |(item, text)| {
        sync_interval(&text).unwrap_or_else(|| {
            mistakes
                .at(item, "`sync` of `audit` must be batch, or a duration from 10 ms to 1 h, such as 1 s");
            AuditSettings::SYNC
        })
    });
    let Some(file) = file else {
        mistakes.at(item, "`audit` needs a file, such as `file: audit.jsonl`");
        return None;
    };
    let file = folder.join(file.text("file", mistakes)?);
    Some(AuditSettings { file, on_error, sync })
}

/// Reads the time between two times that lines are made durable; zero for `batch`.
fn sync_interval(text: &str) -> Option<Duration> {
    if text == "batch" {
        return Some(Duration::ZERO);
    }
    let interval = Duration::from_nanos(u64::try_from(nanoseconds(text)?).ok()?);
    (LIMITS.0..=LIMITS.1).contains(&interval).then_some(interval)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sync_intervals_have_limits() {
        assert_eq!(sync_interval("batch").unwrap(), Duration::ZERO);
        assert_eq!(sync_interval("1 s").unwrap(), AuditSettings::SYNC);
        assert_eq!(sync_interval("10ms").unwrap(), LIMITS.0);
        for wrong in ["", "1", "9 ms", "2 h", "-1 s", "never"] {
            assert_eq!(sync_interval(wrong), None, "{wrong}");
        }
    }
}
