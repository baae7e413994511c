//! Folders of rosbag2: `metadata.yaml` and the files with messages that it names, in MCAP or SQLite, compressed as a
//! whole, by message, or not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use saphyr::{LoadableYamlNode as _, Yaml};

use crate::library::is_recording;
use crate::merge::Merged;
use crate::packed;
use crate::recording::{Recording, RecordingError};

const METADATA: &str = "metadata.yaml";
/// Maximum size of `metadata.yaml`, in bytes.
const LARGEST: u64 = 16 << 20;

/// Maximum number of topics with missing messages that are named.
const MISSING: usize = 5;

/// Contents of `metadata.yaml`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Metadata {
    storage: String,
    compression: String,
    format: String,
    files: Vec<String>,
    /// Number of messages of each topic.
    counts: BTreeMap<String, u64>,
}

/// Whether a folder is one of rosbag2: it has `metadata.yaml`, or only the files of one recorder, numbered from 0.
pub(crate) fn is_bag(folder: &Path) -> bool {
    if folder.join(METADATA).exists() {
        return true;
    }
    let files = bag_files(folder).unwrap_or_default();
    let Some(numbered) = numbered(&files) else { return false };
    let is_next = |(i, (_, number)): (usize, &(&str, usize))| *number == i;
    numbered.iter().enumerate().all(is_next) && beside(folder, &files).is_empty()
}

/// Returns the first missing part in a folder with only the numbered files of one recorder, if it has the first and a
/// later one: they are no bag, and may be one without this part.
pub(crate) fn missing_part(folder: &Path) -> Option<String> {
    let files = bag_files(folder).ok()?;
    let numbered = numbered(&files)?;
    let at = (0..numbered.len()).find(|at| numbered[*at].1 != *at).filter(|at| *at > 0)?;
    Some(format!("{}_{at}", numbered[0].0))
}

/// Returns the numbers in the names of files, in order; `None` if there are none, or those of several recorders.
fn numbered(files: &[PathBuf]) -> Option<Vec<(&str, usize)>> {
    fn number(path: &Path) -> Option<(&str, usize)> {
        let name = path.file_name()?.to_str()?;
        let name = name.split_once('.').map_or(name, |(name, _)| name);
        let (recorder, number) = name.rsplit_once('_')?;
        Some((recorder, number.parse().ok()?))
    }
    let mut numbered = files.iter().map(|path| number(path)).collect::<Option<Vec<_>>>()?;
    numbered.sort_by_key(|(_, number)| *number);
    let (recorder, _) = *numbered.first()?;
    numbered.iter().all(|(other, _)| *other == recorder).then_some(numbered)
}

/// Returns the recordings, and without `metadata.yaml` the folders, beside the files of a bag.
fn beside(folder: &Path, files: &[PathBuf]) -> Vec<PathBuf> {
    let is_bare = !folder.join(METADATA).exists();
    let is_hidden =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    // Readers of ROS 2 keep the files that they decompress: only one of both is read.
    let is_twin = |path: &PathBuf| {
        let is_packed_form = |ending: &&str| {
            let mut packed = path.as_os_str().to_owned();
            packed.push(format!(".{ending}"));
            files.contains(&PathBuf::from(packed))
        };
        let is_packed = packed::form(path).is_some_and(|(_, is_packed)| is_packed);
        ["zstd", "zst"].iter().any(is_packed_form) || is_packed && files.contains(&path.with_extension(""))
    };
    let is_other = |path: &PathBuf| {
        !is_hidden(path)
            && !files.contains(path)
            && !is_twin(path)
            && if path.is_dir() { is_bare } else { is_recording(path) && path.is_file() }
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut others: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_other).collect();
    others.sort();
    others
}

/// Returns the MCAP files and databases of a folder, compressed or not, in the order of their names.
fn bag_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?;
    let paths = entries.flatten().map(|entry| entry.path());
    let is_bag_file = |path: &PathBuf| packed::form(path).is_some();
    let mut files: Vec<PathBuf> = paths.filter(is_bag_file).filter(|path| path.is_file()).collect();
    // Only one of a compressed file and its decompressed copy is read.
    let plain: BTreeSet<PathBuf> = files.iter().cloned().collect();
    files.retain(|path| {
        !packed::form(path)
            .is_some_and(|(_, is_packed)| is_packed && plain.contains(&path.with_extension("")))
    });
    files.sort();
    Ok(files)
}

/// Files of a bag.
#[derive(Default)]
struct Listed {
    files: Vec<PathBuf>,
    /// Whether each message is compressed by itself.
    is_by_message: bool,
    /// Number of messages of each topic, by `metadata.yaml`.
    counts: BTreeMap<String, u64>,
    faults: Vec<RecordingError>,
}

impl Listed {
    /// Returns the files that the `metadata.yaml` at this path names.
    fn by_metadata(folder: &Path, path: &Path) -> Result<Listed, RecordingError> {
        let metadata = metadata(path)?;
        if !matches!(metadata.storage.as_str(), "mcap" | "sqlite3" | "") {
            let storage = &metadata.storage;
            let reason = format!("this bag stores its messages in '{storage}', which is not read");
            return Err(refused(folder, reason));
        }
        let is_compressed = !matches!(metadata.compression.to_lowercase().as_str(), "" | "none");
        if is_compressed && !matches!(metadata.format.as_str(), "zstd" | "") {
            let format = &metadata.format;
            let reason = format!("this bag is compressed with '{format}', which is not read; only zstd is");
            return Err(refused(folder, reason));
        }
        // Older versions include the folder in the names of files.
        let place = |name: &String| {
            let within = folder.join(name);
            let by_name = Path::new(name).file_name().map(|name| folder.join(name));
            if within.exists() { within } else { by_name.unwrap_or(within) }
        };
        let files: Vec<PathBuf> = metadata.files.iter().map(place).collect();
        let reason = "it is in the folder of a bag whose metadata.yaml does not name it, and not read";
        let faults = beside(folder, &files).iter().map(|other| damage(other, reason)).collect();
        let is_by_message = metadata.compression.eq_ignore_ascii_case("message");
        Ok(Listed { files, is_by_message, counts: metadata.counts, faults })
    }

    /// Returns all files of a folder without `metadata.yaml`.
    fn in_folder(folder: &Path) -> Result<Listed, RecordingError> {
        let files = bag_files(folder);
        let files = files.map_err(|source| RecordingError::Open { path: folder.to_owned(), source })?;
        if files.is_empty() {
            let reason = "this folder is no recording: it has neither metadata.yaml nor MCAP files or databases (.db3)";
            return Err(refused(folder, reason.to_owned()));
        }
        Ok(Listed { files, ..Listed::default() })
    }
}

fn refused(folder: &Path, reason: String) -> RecordingError {
    RecordingError::Form { path: folder.to_owned(), reason }
}

fn damage(path: &Path, reason: &str) -> RecordingError {
    let (path, reason) = (path.to_owned(), reason.to_owned());
    RecordingError::Damage { path, offset: 0, reason, topics: Vec::new() }
}

/// Opens a folder of rosbag2. Without `metadata.yaml`, as after a crash, all MCAP files and databases in it are read.
///
/// # Errors
/// [`RecordingError`] if it is no such folder, or its messages are stored in an unsupported way.
pub(crate) fn open(folder: &Path) -> Result<Merged, RecordingError> {
    let path = folder.join(METADATA);
    let listed = if path.exists() { Listed::by_metadata(folder, &path)? } else { Listed::in_folder(folder)? };
    let Listed { files, is_by_message, counts, mut faults } = listed;
    let mut recordings: Vec<Box<dyn Recording>> = Vec::new();
    // Files split by `rondel record` have no `metadata.yaml`.
    let mut is_own = true;
    let (mut seen, mut unread) = (BTreeSet::new(), Vec::new());
    for file in &files {
        if !seen.insert(fs::canonicalize(file).unwrap_or_else(|_| file.clone())) {
            faults.push(damage(file, "it is named twice, and read once"));
            continue;
        }
        let (form, is_packed) = packed::form(file).unwrap_or((packed::Form::Mcap, false));
        match packed::open(file, form, is_packed, is_by_message) {
            Ok(opened) => {
                is_own &= opened.is_own;
                recordings.push(opened.recording);
                faults.extend(opened.fault);
            }
            Err(error) => unread.push(error),
        }
    }
    if recordings.is_empty() {
        return Err(unread
            .into_iter()
            .next()
            .unwrap_or_else(|| refused(folder, "metadata.yaml names no file".to_owned())));
    }
    if !is_own && !path.exists() {
        faults.insert(0, damage(&path, "it is missing; all MCAP files and databases of the folder are read as one recording, by their numbers; name the files to check each"));
    }
    if unread.is_empty() {
        let missing = missing(&counts, &recordings);
        faults.extend(missing.into_iter().map(|reason| damage(&path, &reason)));
    }
    faults.extend(unread.into_iter().map(|error| damage(folder, &error.to_string())));
    Ok(Merged::new(recordings, faults))
}

/// Returns the topics of which the files have fewer messages than `metadata.yaml` counts, in words. Files that do not
/// state their number of messages are not compared.
fn missing(counts: &BTreeMap<String, u64>, recordings: &[Box<dyn Recording>]) -> Vec<String> {
    let mut found: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    for topic in recordings.iter().flat_map(|recording| recording.topics()) {
        let sum = found.entry(&topic.name).or_insert(Some(0));
        *sum = sum.zip(topic.messages).map(|(sum, own)| sum.saturating_add(own));
    }
    let fewer = counts.iter().filter_map(|(topic, expected)| {
        let found = found.get(topic.as_str()).copied().unwrap_or(Some(0))?;
        (found < *expected)
            .then(|| format!("it counts {expected} messages on {topic}, and its files have {found}"))
    });
    let mut fewer: Vec<String> = fewer.take(MISSING + 1).collect();
    if fewer.len() > MISSING {
        fewer.truncate(MISSING);
        fewer.push("its files have fewer messages than it counts on further topics, too".to_owned());
    }
    fewer
}

/// Reads `metadata.yaml`.
fn metadata(path: &Path) -> Result<Metadata, RecordingError> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST).read_to_string(&mut text));
    read.map_err(|source| RecordingError::Open { path: path.to_owned(), source })?;
    parse(&text).map_err(|reason| RecordingError::Form { path: path.to_owned(), reason })
}

fn parse(text: &str) -> Result<Metadata, String> {
    let documents = Yaml::load_from_str(text).map_err(|error| error.to_string())?;
    let information = documents.first().and_then(|root| root.as_mapping_get("rosbag2_bagfile_information"));
    let information = information.ok_or("it has no `rosbag2_bagfile_information`")?;
    let text_of = |name: &str| {
        information.as_mapping_get(name).and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    };
    let files = information.as_mapping_get("relative_file_paths").and_then(|value| value.as_sequence());
    let files = files.ok_or("it has no list `relative_file_paths`")?;
    let topics =
        information.as_mapping_get("topics_with_message_count").and_then(|value| value.as_sequence());
    let count = |topic: &Yaml<'_>| {
        let name = topic.as_mapping_get("topic_metadata")?.as_mapping_get("name")?.as_str()?.to_owned();
        let count = topic.as_mapping_get("message_count")?.as_integer()?;
        Some((name, u64::try_from(count).ok()?))
    };
    Ok(Metadata {
        counts: topics.into_iter().flatten().filter_map(count).collect(),
        storage: text_of("storage_identifier"),
        compression: text_of("compression_mode"),
        format: text_of("compression_format").to_lowercase(),
        files: files.iter().filter_map(|file| file.as_str()).map(str::to_owned).collect(),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn numbered_files_are_one_bag_unless_a_part_is_missing() {
        let root = std::env::temp_dir().join(format!("rondel-parts-{}", std::process::id()));
        let cases: [(&[&str], bool, Option<&str>); 6] = [
            (&["a_0.mcap"], true, None),
            (&["a_0.mcap", "a_1.mcap", "a_2.mcap.zstd"], true, None),
            (&["a_0.mcap", "a_2.mcap", "a_4.mcap"], false, Some("a_1")),
            (&["a_1.mcap", "a_2.mcap"], false, None),
            (&["a_0.mcap", "b_2.mcap"], false, None),
            (&["a.mcap"], false, None),
        ];
        for (at, (files, is_one, missing)) in cases.into_iter().enumerate() {
            let folder = root.join(at.to_string());
            std::fs::create_dir_all(&folder).unwrap();
            for file in files {
                std::fs::write(folder.join(file), "").unwrap();
            }
            assert_eq!(is_bag(&folder), is_one, "{files:?}");
            assert_eq!(missing_part(&folder).as_deref(), missing, "{files:?}");
        }
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn metadata_is_read_or_refused() {
        let text = "rosbag2_bagfile_information:\n  version: 5\n  storage_identifier: mcap\n  \
                    relative_file_paths:\n    - a_0.mcap\n    - a_1.mcap\n  compression_mode: \"\"\n  \
                    topics_with_message_count:\n    - topic_metadata: {name: /a}\n      message_count: 7\n    \
                    - message_count: 3\n";
        let files = vec!["a_0.mcap".to_owned(), "a_1.mcap".to_owned()];
        let expected = Metadata {
            storage: "mcap".to_owned(),
            files,
            counts: BTreeMap::from([("/a".to_owned(), 7)]),
            ..Metadata::default()
        };
        assert_eq!(parse(text).unwrap(), expected);
        for wrong in ["", "a: [", "rosbag2_bagfile_information: 3", "- a"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for cut in 0..text.len() {
            let _ = parse(&text[..cut]);
        }
    }
}
