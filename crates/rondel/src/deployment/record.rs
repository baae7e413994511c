//! The section `record:` of a deployment.

use std::path::{Path, PathBuf};

use super::alignment::duration;
use super::limits::bytes;
use super::yaml::{Item, Mistakes, Synonyms};
use crate::output::folder::check_writable;

/// Default recorded times: ten seconds before, five after, in nanoseconds.
const BEFORE: i64 = 10_000_000_000;
const AFTER: i64 = 5_000_000_000;
/// The longest of both: an hour.
const LONGEST: i64 = 3_600_000_000_000;
const KEEP: usize = 20;
const MOST_FILES: usize = 100_000;
const FOLDER: &str = "evidence";
const MEMORY: usize = 64 << 20;
/// The least memory: smaller rings would hold less than a segment for the writer.
const LEAST_MEMORY: usize = 1 << 20;

/// Names that people write for the settings.
const SYNONYMS: Synonyms = &[
    (&["when", "trigger"], "write `on: violation`"),
    (&["directory", "path", "dir", "to"], "write `folder`"),
    (&["limit", "size", "buffer", "max_memory"], "write `memory`, such as `memory: 64 MiB`"),
    (&["files", "max_files"], "write `keep`, such as `keep: 20`"),
];

/// Settings of recording around violations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlightSettings {
    /// Recorded time before a violation and after it, in nanoseconds.
    pub before: i64,
    pub after: i64,
    /// The number of files that are kept.
    pub keep: usize,
    /// The folder of the files.
    pub folder: PathBuf,
    /// Memory limit of kept messages, in bytes.
    pub memory: usize,
}

impl FlightSettings {
    /// Checks whether files can be written in the folder, or the folder be made. Makes nothing.
    ///
    /// # Errors
    /// The reason why not.
    pub fn check(&self) -> Result<(), String> {
        check_writable(&self.folder)
            .map_err(|why| format!("cannot record in the folder {}: {why}", self.folder.display()))
    }
}

/// Reads the section.
pub(super) fn record(item: Item<'_>, folder: &Path, mistakes: &mut Mistakes) -> Option<FlightSettings> {
    let mut members = item.members("record", mistakes);
    let on = members.get("on");
    let (before_item, after_item) = (members.get("before"), members.get("after"));
    let (keep_item, folder_item) = (members.get("keep"), members.get("folder"));
    let memory_item = members.get("memory");
    members.finish(SYNONYMS, mistakes);
    match on.map(|item| (item, item.text("on", mistakes))) {
        Some((_, Some(text))) if text == "violation" => {}
        Some((item, Some(_))) => mistakes.at(item, "`on` of `record` must be violation"),
        Some((_, None)) => {}
        None => mistakes.at(item, "`record` needs `on: violation`"),
    }
    let mut time = |item: Option<Item<'_>>, name: &'static str, default: i64, example| {
        let Some(item) = item else { return default };
        let nanos = duration(item, name, example, "", mistakes).unwrap_or(default);
        if nanos > LONGEST {
            mistakes.at(item, format!("`{name}` of `record` must be at most 1 h"));
        }
        nanos
    };
    let before = time(before_item, "before", BEFORE, "10 s");
    let after = time(after_item, "after", AFTER, "5 s");
    let mut keep = KEEP;
    if let Some(item) = keep_item
        && let Some(text) = item.text("keep", mistakes)
    {
        match text.parse::<usize>().ok().filter(|keep| (1..=MOST_FILES).contains(keep)) {
            Some(number) => keep = number,
            None => mistakes.at(item, format!("`keep` must be a number of files from 1 to {MOST_FILES}")),
        }
    }
    let mut memory = MEMORY;
    if let Some(item) = memory_item
        && let Some(text) = item.text("memory", mistakes)
    {
        match bytes(&text).filter(|bytes| *bytes >= LEAST_MEMORY) {
            Some(bytes) => memory = bytes,
            None => mistakes
                .at(item, "`memory` must be a whole number with a unit, from 1 MiB to 4 GiB, such as 64 MiB"),
        }
    }
    let own = folder_item.and_then(|item| item.text("folder", mistakes));
    let path = folder.join(own.as_deref().unwrap_or(FOLDER));
    Some(FlightSettings { before, after, keep, folder: path, memory })
}
