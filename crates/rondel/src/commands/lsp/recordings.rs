//! Statistics of topics and fields in recordings: number of messages, range of values, and the last value.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use rondel_event::AddressPattern;
use rondel_runtime::survey::{ELEMENTS, Field, Survey, TOPICS, Topic};
use rondel_runtime::text::counted;
use serde_json::Value;

use super::super::topics::recorded::{self, Surveyed};
use crate::complain;
use crate::schemas::Schemas;

/// Maximum number of texts of a parameter that are listed.
const SHOWN: usize = 5;
/// Maximum size of the messages that are examined, in bytes.
const SURVEYED: u64 = 64 << 20;

/// Recordings that explain topics and fields.
pub(super) struct Recordings {
    all: Vec<Seen>,
    schemas: Arc<Mutex<Schemas>>,
}

struct Seen {
    file: PathBuf,
    /// Modification time of the file when it was surveyed.
    changed: Option<SystemTime>,
    survey: Survey,
    is_whole: bool,
    /// Whether it could be read.
    is_read: bool,
}

impl Recordings {
    /// Surveys recordings; an unreadable one is reported on standard error and has no statistics.
    pub(super) fn open(files: &[PathBuf], schemas: Schemas) -> Recordings {
        let schemas = Arc::new(Mutex::new(schemas.with_recordings(files)));
        let seen = |file: &PathBuf| {
            let mut seen = Seen {
                file: file.clone(),
                changed: None,
                survey: Survey::new(TOPICS),
                is_whole: true,
                is_read: false,
            };
            seen.look(&schemas);
            seen
        };
        Recordings { all: files.iter().map(seen).collect(), schemas }
    }

    /// Surveys the changed recordings again.
    pub(super) fn look(&mut self) {
        for seen in &mut self.all {
            if changed(&seen.file) != seen.changed {
                seen.look(&self.schemas);
            }
        }
    }

    /// Statistics of a topic with one of these names, or of one of its fields, in Markdown: one line for each recording.
    pub(super) fn described(&self, names: &[&str], field: Option<&str>) -> String {
        let mut text = String::new();
        for Seen { file, survey, is_whole, is_read, .. } in &self.all {
            let what = match (found(survey, names).next(), field) {
                _ if !is_read => "cannot be read".to_owned(),
                (None, _) => "the topic never came".to_owned(),
                (Some(_), None) => topic_text(found(survey, names)),
                (Some(_), Some(path)) => match parameter_text(survey, names, path) {
                    Some(text) => text,
                    None => field_text(found(survey, names), path),
                },
            };
            let file = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
            let part = if *is_whole { "" } else { " (its first 64 MiB)" };
            text += &format!("\n\n`{file}`{part}: {what}");
        }
        text
    }
}

impl Seen {
    fn look(&mut self, schemas: &Arc<Mutex<Schemas>>) {
        self.changed = changed(&self.file);
        (self.survey, self.is_read) = (Survey::new(TOPICS), false);
        let is_stream = std::fs::metadata(&self.file).is_ok_and(|file| !file.is_file() && !file.is_dir());
        if is_stream || self.file.as_os_str() == "-" {
            complain(&format!(
                "{}: a recording is read again when it changes, so it must be a file",
                self.file.display()
            ));
            return;
        }
        // Unreadable parts have been reported.
        if let Ok(Surveyed { survey, is_whole, .. }) = recorded::survey(
            &self.file,
            std::mem::replace(&mut self.survey, Survey::new(TOPICS)),
            Some(schemas),
            recorded::Part::first(SURVEYED),
        ) {
            (self.survey, self.is_whole, self.is_read) = (survey, is_whole, true);
        }
    }
}

fn changed(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).and_then(|file| file.modified()).ok()
}

/// The topics of a survey with one of these names, which may be addresses with parameters.
fn found<'s>(survey: &'s Survey, names: &'s [&str]) -> impl Iterator<Item = &'s Topic> + Clone {
    survey
        .topics()
        .filter(move |(address, topic)| {
            let recorded = topic.name.as_deref().unwrap_or(address);
            names.iter().any(|name| is_named(recorded, name) || is_named(address, name))
        })
        .map(|(_, topic)| topic)
        .collect::<Vec<_>>()
        .into_iter()
}

/// Whether a recorded topic has a name: a network before it or a leading slash does not count.
fn is_named(recorded: &str, name: &str) -> bool {
    match AddressPattern::parse(name) {
        Ok(Some(pattern)) => pattern.without_slash().captures(own_name(recorded)).is_some(),
        _ => own_name(recorded) == own_name(name),
    }
}

/// The name without its network and its first slash.
fn own_name(text: &str) -> &str {
    let network = text.split_once(':').filter(|(network, _)| !network.contains('/'));
    network.map_or(text, |(_, rest)| rest).trim_start_matches('/')
}

fn topic_text<'s>(topics: impl Iterator<Item = &'s Topic> + Clone) -> String {
    let messages = topics.clone().map(|topic| topic.messages).sum();
    let mut text = counted(messages, "message", "messages");
    let names = topics.count() as u64;
    if names > 1 {
        text += &format!(" on {}", counted(names, "topic", "topics"));
    }
    text
}

/// The texts that the names of topics give to a parameter; `None` if the field is none.
fn parameter_text(survey: &Survey, names: &[&str], field: &str) -> Option<String> {
    let pattern = names.iter().find_map(|name| AddressPattern::parse(name).ok().flatten())?.without_slash();
    let at = pattern.parameters().position(|parameter| parameter == field)?;
    let mut texts = BTreeSet::new();
    for (address, topic) in survey.topics() {
        let recorded = topic.name.as_deref().unwrap_or(address);
        if let Some(captured) = pattern.captures(own_name(recorded)) {
            texts.extend(captured.get(at).map(|text| format!("`{text}`")));
        }
    }
    let more = texts.len().saturating_sub(SHOWN) as u64;
    let shown: Vec<String> = texts.into_iter().take(SHOWN).collect();
    let more = if more > 0 { format!(" and {}", counted(more, "other", "others")) } else { String::new() };
    Some(format!("in the names of topics, {}{more}", shown.join(", ")))
}

fn field_text<'s>(topics: impl Iterator<Item = &'s Topic> + Clone, path: &str) -> String {
    let is_element = path.contains("[]");
    let fields: Vec<&Field> = topics.clone().filter_map(|topic| at(topic.fields.fields(), path)).collect();
    let latest = topics.clone().max_by_key(|topic| topic.pace.last());
    let last = latest.and_then(|topic| at(topic.fields.fields(), path));
    let messages = topics.map(|topic| topic.messages).sum();
    let carried = fields.iter().map(|field| field.messages).sum::<u64>();
    if carried == 0 {
        return format!("in none of {}", counted(messages, "message", "messages"));
    }
    let mut text = match carried == messages {
        _ if is_element => {
            format!("in {}, of the first {ELEMENTS} of each array", counted(carried, "element", "elements"))
        }
        true => format!("in {}", counted(messages, "message", "messages")),
        false => format!("in {carried} of {}", counted(messages, "message", "messages")),
    };
    let ranges = fields.iter().filter_map(|field| field.range);
    if let Some((least, most)) = ranges.reduce(|(a, b), (c, d)| (a.min(c), b.max(d))) {
        text += &format!(", from {least} to {most}");
    }
    if let Some(last) = last.and_then(|field| field.last.as_ref()) {
        text += &format!(", last {}", shown(last));
    }
    text
}

/// The field at a path of names: `stamp.sec`, `parts[].level`.
fn at<'f>(fields: &'f [Field], path: &str) -> Option<&'f Field> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let own = name.trim_end_matches("[]");
    let mut field = fields.iter().find(|field| field.name == own)?;
    for _ in 0..(name.len() - own.len()) / 2 {
        field = field.elements.as_deref()?;
    }
    rest.map_or(Some(field), |rest| at(&field.fields, rest))
}

fn shown(value: &Value) -> String {
    format!("`{value}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_slashes_do_not_count() {
        for (recorded, name, is) in [
            ("/odom", "odom", true),
            ("ros2:/odom", "/odom", true),
            ("zenoh:fleet/r1/pose", "fleet/{robot}/pose", true),
            ("/fleet/r1/pose", "/fleet/{robot}/pose", true),
            ("fleet/r1/arm/pose", "fleet/{robot}/pose", false),
            ("odometry", "odom", false),
        ] {
            assert_eq!(is_named(recorded, name), is, "{recorded} {name}");
        }
    }
}
