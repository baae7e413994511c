//! The folder with the states of partitions, which all members of a group share.
//!
//! A state has a file with a number that grows with every member that takes it over. A member creates the next file, which
//! succeeds for one of several, and writes to its own only: a process that has lost the partition without noticing it
//! writes to a file that no one reads any more.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rondel_recording::durable;

/// Files of states of one group and topic.
#[derive(Debug)]
pub(super) struct StateFolder {
    folder: PathBuf,
    topic: String,
}

impl StateFolder {
    /// Creates the folder of a group below that of the settings, and checks that files can be written there.
    pub(super) fn open(folder: &Path, group: &str, topic: &str) -> io::Result<StateFolder> {
        // Two groups have two folders.
        let plain = |byte: u8| match byte.is_ascii_alphanumeric() || b"._-".contains(&byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        };
        let group: String = group.bytes().map(plain).collect();
        // A name of dots alone is another folder.
        let folder = folder.join(format!("group-{group}"));
        fs::create_dir_all(&folder)?;
        let opened = StateFolder { folder, topic: topic.to_owned() };
        let probe = opened.beside("probe", b"")?;
        fs::remove_file(probe)?;
        Ok(opened)
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.folder
    }

    /// The file of a state.
    pub(super) fn file(&self, partition: i32, number: u64) -> PathBuf {
        self.folder.join(format!("{}-{partition}.{number}.state", self.topic))
    }

    /// Returns the numbers of the states of a partition.
    fn numbers(&self, partition: i32) -> io::Result<Vec<u64>> {
        let begin = format!("{}-{partition}.", self.topic);
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(&begin)?.strip_suffix(".state"));
            numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
        }
        Ok(numbers)
    }

    /// Returns the newest state of a partition with its number.
    pub(super) fn newest(&self, partition: i32) -> io::Result<Option<(u64, Vec<u8>)>> {
        let Some(number) = self.numbers(partition)?.into_iter().max() else { return Ok(None) };
        Ok(Some((number, fs::read(self.file(partition, number))?)))
    }

    /// Creates a state with the next number. Returns false if another member has.
    pub(super) fn claim(&self, partition: i32, number: u64, state: &[u8]) -> io::Result<bool> {
        if !self.create(&self.file(partition, number), state)? {
            return Ok(false);
        }
        // The one before stays: its owner notices by the next number that it has lost the partition.
        for old in self.numbers(partition)?.into_iter().filter(|old| old.saturating_add(1) < number) {
            // A file that another member removes meanwhile is gone, too.
            let _ = fs::remove_file(self.file(partition, old));
        }
        Ok(true)
    }

    /// Replaces a state. Returns false if another member has taken it over.
    pub(super) fn save(&self, partition: i32, number: u64, state: &[u8]) -> io::Result<bool> {
        let own = self.file(partition, number);
        // After several of others, the own file and the next one are removed.
        let is_lost = self.file(partition, number.saturating_add(1)).try_exists()?
            || !own.try_exists()? && self.numbers(partition)?.into_iter().any(|other| other > number);
        if is_lost {
            return Ok(false);
        }
        durable::replace(&own, state).map(|()| true)
    }

    /// Returns the number of partitions that the topic had at the first call of any member, which is `count` for that one.
    pub(super) fn first_count(&self, count: i32) -> io::Result<i32> {
        let path = self.folder.join(format!("{}.partitions", self.topic));
        if self.create(&path, count.to_string().as_bytes())? {
            return Ok(count);
        }
        let text = fs::read_to_string(&path)?;
        let wrong =
            || io::Error::new(io::ErrorKind::InvalidData, format!("{} has no number", path.display()));
        text.trim().parse().map_err(|_| wrong())
    }

    /// Creates a file with its content at once. Returns false if there is one.
    fn create(&self, path: &Path, content: &[u8]) -> io::Result<bool> {
        let beside = self.beside("claim", content)?;
        let linked = fs::hard_link(&beside, path);
        fs::remove_file(&beside)?;
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            linked => linked?,
        }
        // The new name is durable once the folder is synchronised.
        File::open(&self.folder)?.sync_all()?;
        Ok(true)
    }

    /// Writes a file whose name no other process uses.
    fn beside(&self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        // Processes in containers may have the same id.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanos = now.map_or(0, |now| now.as_nanos());
        let path = self.folder.join(format!(".{name}.{}.{next}.{nanos}", std::process::id()));
        let mut file = File::options().write(true).create_new(true).open(&path)?;
        let written = file.write_all(content).and_then(|()| file.sync_all());
        if written.is_err() {
            // The caller gets the reason of the failed write.
            let _ = fs::remove_file(&path);
        }
        written.map(|()| path)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn folder(name: &str) -> (PathBuf, StateFolder) {
        let root = std::env::temp_dir().join(format!("rondel-states-{name}-{}", std::process::id()));
        let opened = StateFolder::open(&root, "a/b", "state").unwrap();
        (root, opened)
    }

    #[test]
    fn an_owner_that_lost_a_partition_does_not_overwrite_its_state() {
        let (root, states) = folder("fenced");
        assert_eq!(states.newest(3).unwrap(), None);
        assert!(states.claim(3, 1, b"first").unwrap());
        assert!(!states.claim(3, 1, b"other").unwrap(), "one of two members has it");
        assert!(states.save(3, 1, b"second").unwrap());
        assert_eq!(states.newest(3).unwrap(), Some((1, b"second".to_vec())));
        // Another member takes it over; what the first one writes is not read, even without its check.
        assert!(states.claim(3, 2, b"second").unwrap());
        assert!(!states.save(3, 1, b"late").unwrap());
        durable::replace(&states.file(3, 1), b"late").unwrap();
        assert_eq!(states.newest(3).unwrap(), Some((2, b"second".to_vec())));
        // Older ones are removed, except the one before.
        assert!(states.claim(3, 3, b"third").unwrap());
        let mut numbers = states.numbers(3).unwrap();
        numbers.sort_unstable();
        assert_eq!(numbers, [2, 3]);
        assert!(states.claim(3, 4, b"fourth").unwrap());
        assert!(!states.save(3, 1, b"late").unwrap(), "its file and the next one are gone");
        assert!(!states.file(3, 1).exists());
        assert_eq!(states.newest(30).unwrap(), None, "another partition");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn each_group_has_a_folder() {
        let (root, states) = folder("groups");
        assert!(states.path().ends_with("group-a%2Fb"));
        let other = StateFolder::open(&root, "a_b", "state").unwrap();
        assert!(states.claim(0, 1, b"state").unwrap());
        assert_eq!(other.newest(0).unwrap(), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_first_number_of_partitions_stays() {
        let (root, states) = folder("count");
        assert_eq!(states.first_count(4).unwrap(), 4);
        assert_eq!(states.first_count(6).unwrap(), 4);
        fs::write(states.path().join("state.partitions"), "x").unwrap();
        assert!(states.first_count(6).unwrap_err().to_string().contains("has no number"));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_refused() {
        let (root, states) = folder("refused");
        let file = states.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(StateFolder::open(&file, "a", "state").is_err());
        let left = fs::read_dir(states.path()).unwrap().count();
        assert_eq!(left, 1, "the probe leaves nothing behind");
        fs::remove_dir_all(root).unwrap();
    }
}
