//! A queue of payloads in a file, which outlives the process.
//!
//! The file begins with [`MAGIC`] and the place of the first payload that waits (8 bytes, little-endian as everything);
//! payloads follow, each after its length (4 bytes). A payload that was sent waits until it is confirmed. The file is
//! deleted when nothing waits any more. Payloads that were confirmed are overwritten by those that wait once they are
//! half of the file, so that it stays within its limit.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The first bytes of a file, with the version of the format.
const MAGIC: &[u8; 8] = b"rondels1";
/// Bytes before the first payload.
const BEGIN: u64 = 16;
/// Bytes of the length of a payload.
const LENGTH: u64 = 4;
/// Bytes that are moved at a time.
const PART: usize = 1 << 20;

/// Payloads that wait in a file.
#[derive(Debug)]
pub struct SpoolFile {
    path: PathBuf,
    /// `None` while nothing waits.
    file: Option<File>,
    /// The largest size of the file in bytes.
    limit: u64,
    /// The place of the first payload that waits, and the end of the last.
    begin: u64,
    end: u64,
    count: u64,
    /// The place of the first payload that was not sent, and how many before it wait.
    next: u64,
    sent: u64,
}

impl SpoolFile {
    /// The payloads that wait at this path: none, or those of an earlier run.
    ///
    /// # Errors
    /// The folder cannot be created; the file cannot be read, is no spool, or is used by another process.
    pub fn open(path: PathBuf, limit: u64) -> io::Result<SpoolFile> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut spool =
            SpoolFile { path, file: None, limit, begin: BEGIN, end: BEGIN, count: 0, next: BEGIN, sent: 0 };
        match OpenOptions::new().read(true).write(true).open(&spool.path) {
            Ok(file) => spool.resume(file)?,
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
        let (size, mut head) = (file.metadata()?.len(), [0; BEGIN as usize]);
        if size > 0 {
            let no_spool = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not a spool of verdicts");
            file.read_exact_at(&mut head, 0).map_err(no_spool)?;
        }
        let (magic, begin) = head.split_at(MAGIC.len());
        let begin = begin.try_into().map_or(0, u64::from_le_bytes);
        if size > 0 && (magic != MAGIC || !(BEGIN..=size).contains(&begin)) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a spool of verdicts"));
        }
        (self.begin, self.end, self.next) = (begin.max(BEGIN), begin.max(BEGIN), begin.max(BEGIN));
        while let Some(length) = length_at(&file, self.end, size)? {
            self.end += LENGTH + length;
            self.count += 1;
        }
        self.file = Some(file);
        if self.count == 0 {
            self.remove();
        }
        Ok(())
    }

    fn create(&mut self) -> io::Result<&File> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&self.path)?;
        lock(&file)?;
        file.set_len(0)?;
        self.forget();
        file.write_all_at(MAGIC, 0)?;
        file.write_all_at(&BEGIN.to_le_bytes(), MAGIC.len() as u64)?;
        Ok(self.file.insert(file))
    }

    fn remove(&mut self) {
        if self.file.take().is_some() {
            // One that stays has nothing that waits.
            let _ = fs::remove_file(&self.path);
        }
        self.forget();
    }

    /// Nothing waits.
    fn forget(&mut self) {
        (self.begin, self.end, self.count, self.next, self.sent) = (BEGIN, BEGIN, 0, BEGIN, 0);
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
        let size = LENGTH + payload.len() as u64;
        let Some(length) = u32::try_from(payload.len()).ok().filter(|length| *length > 0) else {
            return Ok(false);
        };
        if self.end + size > self.limit {
            let waiting = self.end - self.begin;
            if self.begin - BEGIN < waiting || BEGIN + waiting + size > self.limit {
                return Ok(false);
            }
            self.move_to_begin()?;
        }
        let end = self.end;
        let file = match &self.file {
            Some(file) => file,
            None => self.create()?,
        };
        // The length last: a payload without one is not there.
        file.write_all_at(payload, end + LENGTH)?;
        file.write_all_at(&length.to_le_bytes(), end)?;
        self.end += size;
        self.count += 1;
        Ok(true)
    }

    /// Moves what waits to the begin of the file: it does not overlap what it overwrites.
    fn move_to_begin(&mut self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut part = vec![0; PART];
        let (from, waiting) = (self.begin, self.end - self.begin);
        let mut moved = 0;
        while moved < waiting {
            let part = &mut part[..PART.min(usize::try_from(waiting - moved).unwrap_or(PART))];
            file.read_exact_at(part, from + moved)?;
            file.write_all_at(part, BEGIN + moved)?;
            moved += part.len() as u64;
        }
        file.write_all_at(&BEGIN.to_le_bytes(), MAGIC.len() as u64)?;
        (self.next, self.begin, self.end) = (BEGIN + self.next - from, BEGIN, BEGIN + waiting);
        file.set_len(self.end)
    }

    /// Reads the first payload that was not sent into `payload`. Returns whether there is one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next(&self, payload: &mut Vec<u8>) -> io::Result<bool> {
        let Some(file) = self.file.as_ref().filter(|_| !self.is_sent()) else { return Ok(false) };
        let length = length_at(file, self.next, self.end)?.ok_or(io::ErrorKind::InvalidData)?;
        payload.resize(usize::try_from(length).map_err(io::Error::other)?, 0);
        file.read_exact_at(payload, self.next + LENGTH)?;
        Ok(true)
    }

    /// Notes that the first payload that was not sent, of this length, is sent.
    pub fn send(&mut self, length: usize) {
        self.next += LENGTH + length as u64;
        self.sent += 1;
    }

    /// Notes that nothing that waits was sent.
    pub fn rewind(&mut self) {
        (self.next, self.sent) = (self.begin, 0);
    }

    /// Removes the first payloads, as so many of those that were sent are confirmed.
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
        let mut begin = self.begin;
        for _ in 0..count {
            begin += LENGTH + length_at(file, begin, self.end)?.ok_or(io::ErrorKind::InvalidData)?;
        }
        file.write_all_at(&begin.to_le_bytes(), MAGIC.len() as u64)?;
        self.begin = begin;
        self.count -= count;
        self.sent -= count;
        Ok(())
    }

    /// Gives up everything that waits. Returns how much.
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
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A folder of one test, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Folder {
            Folder(std::env::temp_dir().join(format!("rondel-spool-{test}-{}", std::process::id())))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn payloads_wait_in_order_within_the_limit() {
        let folder = Folder::new("order");
        let path = folder.0.join("a/b.spool");
        let mut spool = SpoolFile::open(path.clone(), 10_000).unwrap();
        assert!(!path.exists(), "nothing waits");
        let (mut waiting, mut payload, mut seed) = (VecDeque::new(), Vec::new(), 1u64);
        let (mut full, mut taken, mut sent) = (0, 0, 0);
        for i in 0..20_000u32 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Long stretches in which more is added, or more is taken.
            if (seed >> 33) % 100 < if (i / 500).is_multiple_of(2) { 70 } else { 30 } {
                let one = vec![i as u8; 1 + (seed >> 40) as usize % 300];
                if spool.push(&one).unwrap() {
                    waiting.push_back(one);
                } else {
                    full += 1;
                    let bytes: usize = waiting.iter().map(|one| one.len() + 4).sum();
                    assert!(bytes > 4_500, "at least half of the file is used: {bytes}");
                }
            } else if (seed >> 50) % 40 == 0 {
                // The consumer has left.
                spool.rewind();
                sent = 0;
            } else if spool.next(&mut payload).unwrap() {
                taken += 1;
                assert_eq!(payload, waiting[sent]);
                spool.send(payload.len());
                sent += 1;
                let confirmed = (seed >> 45) as usize % (sent + 1);
                spool.confirm(confirmed as u64).unwrap();
                waiting.drain(..confirmed);
                sent -= confirmed;
            } else {
                assert_eq!((sent, spool.is_sent()), (waiting.len(), true));
                spool.confirm(sent as u64).unwrap();
                waiting.clear();
                sent = 0;
                assert!(!path.exists());
            }
            assert_eq!((spool.len(), spool.sent()), (waiting.len() as u64, sent as u64));
            assert!(fs::metadata(&path).map_or(0, |metadata| metadata.len()) <= 10_000);
        }
        assert!(full > 100 && taken > 4_000, "{full} {taken}");
    }

    #[test]
    fn another_run_finds_what_waits() {
        let folder = Folder::new("again");
        let path = folder.0.join("c.spool");
        let mut spool = SpoolFile::open(path.clone(), 1_000_000).unwrap();
        for i in 1..=9u8 {
            assert!(spool.push(&vec![i; i.into()]).unwrap());
        }
        let mut payload = Vec::new();
        for i in 1..=3 {
            assert!(spool.next(&mut payload).unwrap());
            spool.send(i);
        }
        // What was sent waits for the other run, unless it is confirmed.
        spool.confirm(1).unwrap();
        let busy = SpoolFile::open(path.clone(), 1_000_000).unwrap_err();
        assert!(busy.to_string().contains("another process uses it"), "{busy}");
        drop(spool);
        // The last was not written to its end.
        let size = fs::metadata(&path).unwrap().len();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(size - 1).unwrap();
        let mut spool = SpoolFile::open(path.clone(), 1_000_000).unwrap();
        assert_eq!(spool.len(), 7);
        for i in 2..=8u8 {
            assert!(spool.next(&mut payload).unwrap());
            assert_eq!(payload, vec![i; i.into()]);
            spool.send(payload.len());
        }
        spool.confirm(7).unwrap();
        assert!(!spool.next(&mut payload).unwrap() && !path.exists());
        // Something else is left alone.
        for other in [&b"{\"property\":\"p\"}"[..], b"x"] {
            fs::write(&path, other).unwrap();
            assert!(SpoolFile::open(path.clone(), 1_000_000).is_err());
            assert_eq!(fs::read(&path).unwrap(), other);
        }
    }
}
