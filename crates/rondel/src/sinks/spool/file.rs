//! A queue of payloads in a file, which outlives the process.
//!
//! The file begins with [`MAGIC`], the place of the first [record](super::record) that waits (8 bytes, little-endian as
//! everything), its number and the checksum of these two (4 bytes each). A payload that was sent waits until it is
//! confirmed. The file is deleted when nothing waits any more. Payloads that were confirmed are overwritten by those that
//! wait once they are half of the file, so that it stays within its limit.
//!
//! Files of the version before have no checksums: they begin with [`UNCHECKED`] and the place, and each payload follows
//! its length (4 bytes). Such a file is used on until nothing waits in it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::record::{self, HEAD, Head, PART};

/// The first bytes of a file, with the version of the format.
const MAGIC: &[u8; 8] = b"rondels2";
/// The first bytes of a file without checksums.
const UNCHECKED: &[u8; 8] = b"rondels1";
/// Bytes before the first payload.
const BEGIN: u64 = 24;
/// The same without checksums.
const UNCHECKED_BEGIN: u64 = 16;
/// Bytes of the length of a payload without checksums.
const LENGTH: u64 = 4;

/// Result of reading the next payload to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// There is none.
    Nothing,
    /// The one that was read.
    Payload,
    /// A payload that was damaged since the file was opened.
    Damaged,
}

/// Damage found when a file was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// The number of payloads, at least.
    pub payloads: u64,
    /// Whether it is unknown which payloads were confirmed: confirmed ones are sent again.
    pub begin: bool,
}

/// Payloads that wait in a file.
#[derive(Debug)]
pub struct SpoolFile {
    path: PathBuf,
    /// `None` while nothing waits.
    file: Option<File>,
    /// The largest size of the file in bytes.
    limit: u64,
    /// Whether it has checksums.
    is_checked: bool,
    /// The place of the first payload that waits, and the end of the last.
    begin: u64,
    end: u64,
    /// The number of the next payload that is added.
    number: u32,
    damage: Damage,
    count: u64,
    /// The place of the first payload that was not sent, and how many before it wait.
    next: u64,
    sent: u64,
}

impl SpoolFile {
    /// The payloads that wait at this path: none, or those of an earlier run. Unless it `is_lazy`, the folder is made, and
    /// it is tried whether the file can be written.
    ///
    /// # Errors
    /// The folder cannot be created; the file cannot be read, is no spool, or is used by another process.
    pub fn open(path: PathBuf, limit: u64, is_lazy: bool) -> io::Result<SpoolFile> {
        let (damage, file) = (Damage::default(), None);
        let (begin, end, next) = (BEGIN, BEGIN, BEGIN);
        let (number, count, sent) = (0, 0, 0);
        let mut spool =
            SpoolFile { path, file, limit, is_checked: true, begin, end, number, damage, count, next, sent };
        match OpenOptions::new().read(true).write(true).open(&spool.path) {
            Ok(file) => spool.resume(file)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_lazy => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // It must be possible to write there, before a consumer is slow.
                spool.create()?;
                spool.remove();
            }
            Err(error) => return Err(error),
        }
        Ok(spool)
    }

    /// Finds the payloads of an earlier run. One that was not written to its end is left out.
    fn resume(&mut self, file: File) -> io::Result<()> {
        lock(&file)?;
        let size = file.metadata()?.len();
        let mut head = vec![0; BEGIN.min(size) as usize];
        file.read_exact_at(&mut head, 0)?;
        let no_spool = || io::Error::new(io::ErrorKind::InvalidData, "it is not a spool of verdicts");
        let place = head
            .get(MAGIC.len()..)
            .and_then(|rest| rest.first_chunk())
            .map(|place| u64::from_le_bytes(*place));
        match place {
            _ if size == 0 => {}
            Some(_) if head.starts_with(MAGIC) && size >= BEGIN => {
                let begin = begin_of(&head).filter(|(begin, _)| (BEGIN..=size).contains(begin));
                self.damage.begin = begin.is_none();
                self.find_checked(&file, begin, size)?;
            }
            Some(begin) if head.starts_with(UNCHECKED) && (UNCHECKED_BEGIN..=size).contains(&begin) => {
                self.is_checked = false;
                (self.begin, self.end) = (begin, begin);
                while let Some(length) = length_at(&file, self.end, size)? {
                    self.end += LENGTH + length;
                    self.count += 1;
                }
                self.damage.payloads = u64::from(!is_end(&file, self.end, size)?);
            }
            _ => return Err(no_spool()),
        }
        self.next = self.begin;
        if self.count > 0 && self.end < size {
            // Nothing of it may be taken for a payload behind those that are added.
            file.set_len(self.end)?;
        }
        self.file = Some(file);
        if self.count == 0 {
            self.remove();
        }
        Ok(())
    }

    /// Finds payloads with checksums from where the first one waits, which has a number. Those that are damaged become
    /// gaps.
    fn find_checked(&mut self, file: &File, begin: Option<(u64, u32)>, size: u64) -> io::Result<()> {
        let (mut at, mut expected) = begin.map_or((BEGIN, None), |(begin, number)| (begin, Some(number)));
        let mut part = Vec::new();
        self.begin = at;
        while at < size {
            if let Some(head) = Head::read(file, at, size)? {
                if !head.is_gap && !head.has_payload(file, at, &mut part)? {
                    let gap = Head { is_gap: true, number: head.number.wrapping_add(1), ..head };
                    file.write_all_at(&gap.to_bytes(), at)?;
                    self.damage.payloads += 1;
                } else if !head.is_gap {
                    self.count += 1;
                }
                expected = Some(head.number.wrapping_add(u32::from(!head.is_gap)));
                at += head.size();
                continue;
            }
            // Behind at least as many bytes as a gap needs.
            let (mut from, mut found) = (at + 1, None);
            while let Some((place, head)) = record::find(file, from, size, &mut part)? {
                found = Head::gap(place - at, head.number).map(|gap| (place, head, gap));
                if found.is_some() {
                    break;
                }
                from = place + 1;
            }
            let Some((place, head, gap)) = found else {
                self.damage.payloads += u64::from(!record::is_unwritten(file, at, size)?);
                break;
            };
            let missing = expected.map_or(1, |expected| u64::from(head.number.wrapping_sub(expected)));
            // More than there was room for was not there.
            let is_possible = (1..=(place - at) / HEAD).contains(&missing);
            self.damage.payloads += if is_possible { missing } else { 1 };
            file.write_all_at(&gap.to_bytes(), at)?;
            at = place;
        }
        (self.end, self.number) = (at, expected.unwrap_or(0));
        Ok(())
    }

    fn create(&mut self) -> io::Result<&File> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&self.path)?;
        lock(&file)?;
        file.set_len(0)?;
        self.forget();
        file.write_all_at(&head_of(BEGIN, self.number), 0)?;
        Ok(self.file.insert(file))
    }

    /// Returns the damage found when the file was opened.
    pub fn damage(&self) -> Damage {
        self.damage
    }

    /// The record at a place: the bytes of its head, and the head, of which a file without checksums knows the length.
    fn record(&self, file: &File, place: u64) -> io::Result<(u64, Head)> {
        if self.is_checked {
            let head = Head::read(file, place, self.end)?.ok_or(io::ErrorKind::InvalidData)?;
            return Ok((HEAD, head));
        }
        let length = length_at(file, place, self.end)?.and_then(|length| u32::try_from(length).ok());
        let length = length.ok_or(io::ErrorKind::InvalidData)?;
        Ok((LENGTH, Head { length, number: 0, checksum: 0, is_gap: false }))
    }

    fn remove(&mut self) {
        if self.file.take().is_some() {
            // One that stays has nothing that waits.
            let _ = fs::remove_file(&self.path);
        }
        self.forget();
    }

    /// Resets to a state without waiting payloads.
    fn forget(&mut self) {
        (self.begin, self.end, self.count, self.next, self.sent) = (BEGIN, BEGIN, 0, BEGIN, 0);
        self.is_checked = true;
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of payloads that wait.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// The number of those that were sent, and are not confirmed.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether everything that waits was sent.
    pub fn is_sent(&self) -> bool {
        self.sent == self.count
    }

    /// Adds a payload. Returns whether there was room for it; for an empty one there is none.
    ///
    /// # Errors
    /// The file cannot be written; the payload is not in it.
    pub fn push(&mut self, payload: &[u8]) -> io::Result<bool> {
        self.push_within(payload, self.limit)
    }

    /// Adds a payload, even if the file becomes larger than its limit. Returns whether it is in the file.
    ///
    /// # Errors
    /// As [`SpoolFile::push`].
    pub fn push_beyond_limit(&mut self, payload: &[u8]) -> io::Result<bool> {
        self.push_within(payload, u64::MAX)
    }

    fn push_within(&mut self, payload: &[u8], limit: u64) -> io::Result<bool> {
        let Some(length) = u32::try_from(payload.len()).ok().filter(|length| *length > 0) else {
            return Ok(false);
        };
        let size = self.head_size() + u64::from(length);
        if self.end + size > limit {
            let (first, waiting) = (self.first(), self.end - self.begin);
            if self.begin - first < waiting || first + waiting + size > limit {
                return Ok(false);
            }
            self.move_to_begin()?;
        }
        if self.file.is_none() {
            self.create()?;
        }
        let Some(file) = &self.file else { return Ok(false) };
        // The head last: a payload without one is not there.
        file.write_all_at(payload, self.end + self.head_size())?;
        if self.is_checked {
            file.write_all_at(&Head::of(payload, length, self.number).to_bytes(), self.end)?;
        } else {
            file.write_all_at(&length.to_le_bytes(), self.end)?;
        }
        self.number = self.number.wrapping_add(1);
        self.end += size;
        self.count += 1;
        Ok(true)
    }

    /// Bytes before a payload.
    fn head_size(&self) -> u64 {
        if self.is_checked { HEAD } else { LENGTH }
    }

    /// The place of the first payload of the file.
    fn first(&self) -> u64 {
        if self.is_checked { BEGIN } else { UNCHECKED_BEGIN }
    }

    /// Writes the place and number of the first waiting payload to the file.
    fn write_begin(&self, file: &File, begin: u64, number: u32) -> io::Result<()> {
        if self.is_checked {
            file.write_all_at(&head_of(begin, number), 0)
        } else {
            file.write_all_at(&begin.to_le_bytes(), UNCHECKED.len() as u64)
        }
    }

    /// Moves waiting payloads to the start of the file. Source and destination do not overlap.
    fn move_to_begin(&mut self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut part = vec![0; PART];
        let (from, first, waiting) = (self.begin, self.first(), self.end - self.begin);
        let (_, head) = self.record(file, from)?;
        let mut moved = 0;
        while moved < waiting {
            let part = &mut part[..PART.min(usize::try_from(waiting - moved).unwrap_or(PART))];
            file.read_exact_at(part, from + moved)?;
            file.write_all_at(part, first + moved)?;
            moved += part.len() as u64;
        }
        self.write_begin(file, first, head.number)?;
        (self.next, self.begin, self.end) = (first + self.next - from, first, first + waiting);
        file.set_len(self.end)
    }

    /// Reads the first payload that was not sent into `payload`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next(&mut self, payload: &mut Vec<u8>) -> io::Result<Next> {
        let Some(file) = self.file.as_ref().filter(|_| !self.is_sent()) else { return Ok(Next::Nothing) };
        let (size, head) = loop {
            let (size, head) = self.record(file, self.next)?;
            if !head.is_gap {
                break (size, head);
            }
            self.next += head.size();
        };
        payload.resize(usize::try_from(head.length).map_err(io::Error::other)?, 0);
        file.read_exact_at(payload, self.next + size)?;
        let is_whole = !self.is_checked || crc32fast::hash(payload) == head.checksum;
        Ok(if is_whole { Next::Payload } else { Next::Damaged })
    }

    /// Marks the first unsent payload, of this length, as sent.
    pub fn send(&mut self, length: usize) {
        self.next += self.head_size() + length as u64;
        self.sent += 1;
    }

    /// Marks all waiting payloads as unsent.
    pub fn rewind(&mut self) {
        (self.next, self.sent) = (self.begin, 0);
    }

    /// Removes the first `count` sent payloads, which are confirmed.
    ///
    /// # Errors
    /// The file cannot be read or written: after a crash the payloads wait again.
    pub fn confirm(&mut self, count: u64) -> io::Result<()> {
        let count = count.min(self.sent);
        if count == self.count {
            self.remove();
            return Ok(());
        }
        let Some(file) = self.file.as_ref().filter(|_| count > 0) else { return Ok(()) };
        let (mut begin, mut left) = (self.begin, count);
        let mut number = 0;
        while left > 0 {
            let (size, head) = self.record(file, begin)?;
            left -= u64::from(!head.is_gap);
            number = head.number.wrapping_add(u32::from(!head.is_gap));
            begin += size + u64::from(head.length);
        }
        self.write_begin(file, begin, number)?;
        self.begin = begin;
        self.count -= count;
        self.sent -= count;
        Ok(())
    }

    /// Gives up all waiting payloads. Returns their number.
    pub fn clear(&mut self) -> u64 {
        let count = self.count;
        self.remove();
        count
    }
}

/// Keeps other processes from using the file.
fn lock(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another process uses it; give each a directory of its own",
        ),
        TryLockError::Error(error) => error,
    })
}

/// The first bytes of a file: where the first payload that waits is, and its number.
fn head_of(begin: u64, number: u32) -> [u8; BEGIN as usize] {
    let mut head = [0; BEGIN as usize];
    head[..8].copy_from_slice(MAGIC);
    head[8..16].copy_from_slice(&begin.to_le_bytes());
    head[16..20].copy_from_slice(&number.to_le_bytes());
    let checksum = crc32fast::hash(&head[..20]);
    head[20..].copy_from_slice(&checksum.to_le_bytes());
    head
}

/// The reverse of [`head_of`], unless the bytes are damaged.
fn begin_of(head: &[u8]) -> Option<(u64, u32)> {
    let begin = u64::from_le_bytes(head.get(8..16)?.try_into().ok()?);
    let number = u32::from_le_bytes(head.get(16..20)?.try_into().ok()?);
    (head == head_of(begin, number)).then_some((begin, number))
}

/// Whether nothing was written from a place on in a file without checksums: the length is written last.
fn is_end(file: &File, place: u64, size: u64) -> io::Result<bool> {
    let mut length = [0; LENGTH as usize];
    let count = LENGTH.min(size.saturating_sub(place)) as usize;
    file.read_exact_at(&mut length[..count], place)?;
    Ok(length == [0; LENGTH as usize])
}

/// The length of the payload at a place, if all of it is before `end`.
fn length_at(file: &File, place: u64, end: u64) -> io::Result<Option<u64>> {
    if place + LENGTH > end {
        return Ok(None);
    }
    let mut length = [0; LENGTH as usize];
    file.read_exact_at(&mut length, place)?;
    let length = u64::from(u32::from_le_bytes(length));
    // A length of zero was not written: no payload is empty.
    Ok(Some(length).filter(|length| *length > 0 && place + LENGTH + length <= end))
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
