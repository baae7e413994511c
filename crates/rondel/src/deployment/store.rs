//! The section `store:` of a deployment.

use std::path::Path;
use std::time::Duration;

use super::limits::bytes;
use super::sinks::{days, spool, wait};
use super::yaml::{Item, Mistakes, Synonyms};
use crate::sinks::driven::{IS_AVAILABLE, StoreSettings, UNAVAILABLE, WAIT, is_same_file};

/// The least and the greatest size of the file.
const SIZES: (u64, u64) = (1 << 20, 16 << 40);

/// Names that people write for the settings.
const SYNONYMS: Synonyms = &[
    (&["file", "database", "db", "to", "name"], "write `path`, such as `path: verdicts.db`"),
    (&["retention", "days", "size", "limit"], "write `keep`, such as `keep: { days: 30, size: 2 GiB }`"),
    (&["wait", "timeout"], "write `slow_consumer`, such as `slow_consumer: 1 s`"),
    (&["fsync", "durability", "flush"], "write `sync: true`"),
    (&["buffer", "queue"], "write `spool`, such as `spool: { directory: spool, limit: 64 MiB }`"),
];
/// The same of the settings of `keep`.
const KEEP: Synonyms = &[
    (&["age", "day", "time"], "write `days`, such as `days: 30`"),
    (&["bytes", "limit", "max_size"], "write `size`, such as `size: 2 GiB`"),
];

/// Reads the section: the name of the file alone, or with further settings. `others` are files that the deployment uses
/// for something else, with their settings.
pub(super) fn store(
    item: Item<'_>,
    folder: &Path,
    others: &[(&str, &Path)],
    mistakes: &mut Mistakes,
) -> Option<StoreSettings> {
    if !IS_AVAILABLE {
        mistakes.at(item, UNAVAILABLE);
        return None;
    }
    if !item.is_mapping() {
        let settings = StoreSettings::of(folder.join(item.text("store", mistakes)?));
        check_others(item, &settings, others, mistakes);
        return Some(settings);
    }
    let mut members = item.members("store", mistakes);
    let (path, series, keep) = (members.get("path"), members.get("series"), members.get("keep"));
    let (slow_consumer, sync) = (members.get("slow_consumer"), members.get("sync"));
    let kept = members.get("spool");
    members.finish(SYNONYMS, mistakes);
    let (age, size) = keep.map_or((None, None), |item| read_keep(item, mistakes));
    let sync = sync.and_then(|item| item.boolean("sync", mistakes)).unwrap_or(false);
    let wait = slow_consumer.map_or(Some(WAIT), |item| wait("`store`", item, mistakes));
    let spool = kept.and_then(|item| spool(item, folder, mistakes));
    let name = series.and_then(|item| Some((item, item.text("series", mistakes)?)));
    if let Some((item, name)) = &name
        && name.trim().is_empty()
    {
        mistakes.at(*item, "`series` of `store` must be a name, such as `series: car-7`");
    }
    let Some(path) = path else {
        mistakes.at(item, "`store` needs a file, such as `path: verdicts.db`");
        return None;
    };
    let settings = StoreSettings {
        path: folder.join(path.text("path", mistakes)?),
        series: name.map(|(_, name)| name),
        age,
        bytes: size,
        sync,
        wait,
        spool,
    };
    check_others(path, &settings, others, mistakes);
    Some(settings)
}

/// Refuses a file that the deployment uses for something else.
fn check_others(item: Item<'_>, settings: &StoreSettings, others: &[(&str, &Path)], mistakes: &mut Mistakes) {
    if let Some((setting, path)) = others.iter().find(|(_, path)| is_same_file(path, &settings.path)) {
        mistakes.at(
            item,
            format!("{} is the file of `{setting}`, too: choose another for `store`", path.display()),
        );
    }
}

/// Reads the largest age and the largest size.
fn read_keep(item: Item<'_>, mistakes: &mut Mistakes) -> (Option<Duration>, Option<u64>) {
    let mut members = item.members("keep", mistakes);
    let (age, size) = (members.get("days"), members.get("size"));
    members.finish(KEEP, mistakes);
    if age.is_none() && size.is_none() {
        mistakes.at(item, "`keep` needs `days` or `size`, such as `keep: { days: 30 }`");
    }
    let age = age.and_then(|item| days(item, mistakes));
    let size = size.and_then(|item| Some((item, item.text("size", mistakes)?)));
    let size = size.and_then(|(item, text)| {
        let size = file_size(&text);
        if size.is_none() {
            mistakes.at(
                item,
                "`size` of `keep` must be a whole number with a unit, from 1 MiB to 16384 GiB, such as 2 GiB",
            );
        }
        size
    });
    (age, size)
}

/// Reads the size of a file in bytes.
fn file_size(text: &str) -> Option<u64> {
    // Other limits end at 4 GiB.
    let in_gib = || text.strip_suffix("GiB")?.trim_end().parse::<u64>().ok()?.checked_mul(1 << 30);
    let size = bytes(text).and_then(|size| u64::try_from(size).ok()).or_else(in_gib)?;
    (SIZES.0..=SIZES.1).contains(&size).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_limits() {
        assert_eq!(file_size("1 MiB"), Some(SIZES.0));
        assert_eq!(file_size("200 MB"), Some(200_000_000));
        assert_eq!(file_size("100 GiB"), Some(100 << 30));
        assert_eq!(file_size("16384 GiB"), Some(SIZES.1));
        for wrong in ["", "1", "1 kB", "16385 GiB", "99999999999999999999 GiB", "-1 GiB", "1 TiB"] {
            assert_eq!(file_size(wrong), None, "{wrong}");
        }
    }
}
