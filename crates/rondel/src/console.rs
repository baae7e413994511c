//! Standard output of live commands: its reader is waited for only so long.
//!
//! Messages arrive on the threads of the networks, and the same threads print. A reader that does not read (a
//! stopped pager, a full pipe) would hold up the publishers. After the wait, messages are dropped and counted
//! until the reader reads again. What is printed stays whole: the rest of a message that was begun comes first. A file
//! on a full disk is treated alike: others may make room.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rondel_net::adapter::{Drops, now};
use rondel_runtime::text::counted;

use crate::spool::Spool;
use crate::warn;

/// Bytes that a pipe takes without blocking once it is ready: POSIX guarantees 512, Linux one page.
const PIPE: usize = 4096;
/// The same for a terminal, which is ready when fewer than so many bytes wait.
const TERMINAL: usize = 256;
/// Bytes from which messages are written without waiting for [`Console::flush`].
const FULL: usize = 1 << 16;

/// Interval of attempts to write to a full disk.
const FULL_PROBE: Duration = Duration::from_millis(50);
/// How long messages that were kept are written at a time.
const CATCH_UP: Duration = Duration::from_millis(20);

/// Standard output that drops messages instead of waiting for ever.
pub struct Console {
    out: Result<File, io::Error>,
    /// Bytes to write at a time, after asking whether they can be; `None` where writing never waits.
    portion: Option<usize>,
    wait: Duration,
    pending: Vec<u8>,
    /// Where the messages in `pending` end.
    ends: Vec<usize>,
    /// Whether `pending` begins with the rest of a message.
    begun: bool,
    /// Whether the reader was waited for in vain, and has read nothing since.
    stalled: bool,
    /// Whether that was because of a full disk.
    is_full: bool,
    drops: Arc<Drops>,
    /// Where messages are kept instead of being dropped.
    spool: Option<Arc<Spool>>,
    /// The length of the message in `pending` that is the first in the spool.
    kept: Option<usize>,
}

impl Console {
    /// Standard output, whose reader is waited for so long.
    pub fn new(wait: Duration) -> Console {
        let stdout = io::stdout();
        let out = stdout.as_fd().try_clone_to_owned().map(File::from);
        Console::of(out, if stdout.is_terminal() { TERMINAL } else { PIPE }, wait)
    }

    fn of(out: io::Result<File>, portion: usize, wait: Duration) -> Console {
        let is_file = out.as_ref().is_ok_and(|out| out.metadata().is_ok_and(|metadata| metadata.is_file()));
        Console {
            out,
            portion: (!is_file).then_some(portion),
            wait,
            pending: Vec::new(),
            ends: Vec::new(),
            begun: false,
            stalled: false,
            is_full: false,
            drops: Arc::default(),
            spool: None,
            kept: None,
        }
    }

    /// Keeps messages that the reader does not read in time, and those after them, instead of dropping them.
    pub fn keep_in(&mut self, spool: Arc<Spool>) {
        // What an earlier run has left is not waited for.
        self.stalled = spool.is_used();
        self.spool = Some(spool);
    }

    /// The spool, if messages wait in it.
    fn used_spool(&self) -> Option<&Arc<Spool>> {
        self.spool.as_ref().filter(|spool| spool.is_used())
    }

    /// The counter of dropped messages.
    pub fn drops(&self) -> Arc<Drops> {
        Arc::clone(&self.drops)
    }

    /// Adds a message with its line break. It is written at [`Console::flush`], or when enough wait.
    pub fn write(&mut self, message: &[u8]) {
        if self.out.is_err() || message.is_empty() {
            return;
        }
        if let Some(spool) = self.used_spool() {
            // It counts and reports what it cannot keep.
            _ = spool.keep(message);
            return;
        }
        self.pending.extend_from_slice(message);
        self.ends.push(self.pending.len());
        if self.pending.len() >= FULL {
            self.flush();
        }
    }

    /// Writes all messages, or drops or keeps them when the reader does not read in time; then those that were kept.
    pub fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.write_out();
        }
        let mut began = None;
        while let Some(spool) = self.used_spool().cloned()
            && self.pending.is_empty()
            && self.out.is_ok()
            && began.get_or_insert_with(Instant::now).elapsed() < CATCH_UP
            && spool.next(&mut self.pending)
        {
            self.kept = Some(self.pending.len());
            self.ends.push(self.pending.len());
            self.write_out();
        }
    }

    fn write_out(&mut self) {
        let mut written = 0;
        let mut deadline = None;
        while written < self.pending.len() {
            let Ok(out) = &mut self.out else { break };
            let portion = match self.portion {
                None => self.pending.len() - written,
                Some(portion) => {
                    let left = match deadline {
                        _ if self.stalled => Duration::ZERO,
                        None => Duration::ZERO,
                        Some(deadline) => Instant::saturating_duration_since(&deadline, Instant::now()),
                    };
                    match is_ready(out, left) {
                        Ok(true) => portion.min(self.pending.len() - written),
                        Ok(false) if !self.stalled && deadline.is_none() => {
                            deadline = Some(Instant::now() + self.wait);
                            continue;
                        }
                        Ok(false) if !self.stalled && !left.is_zero() => continue,
                        Ok(false) => return self.give_up(written, false),
                        Err(error) => {
                            self.out = Err(error);
                            break;
                        }
                    }
                }
            };
            match out.write(&self.pending[written..written + portion]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_full(&error) => {
                    let deadline = *deadline.get_or_insert_with(|| Instant::now() + self.wait);
                    let left = deadline.saturating_duration_since(Instant::now());
                    if self.stalled || left.is_zero() {
                        return self.give_up(written, true);
                    }
                    std::thread::sleep(FULL_PROBE.min(left));
                }
                Err(error) => self.out = Err(error),
            }
        }
        if let (Some(length), Some(spool), Ok(_)) = (self.kept.take(), &self.spool, &self.out) {
            spool.published(length);
        }
        if self.stalled && self.out.is_ok() && self.used_spool().is_none() {
            self.stalled = false;
            // The spool says so itself.
            if self.spool.is_none() {
                let again = if self.is_full { "has room again" } else { "is read again" };
                warn(&format!(
                    "standard output {again}; {} dropped so far",
                    counted(self.drops.count(), "message was", "messages were")
                ));
            }
        }
        self.begun = false;
        self.pending.clear();
        self.ends.clear();
    }

    /// Drops what was not begun.
    #[cold]
    fn give_up(&mut self, written: usize, is_full: bool) {
        let is_whole = if written == 0 { !self.begun } else { self.ends.contains(&written) };
        let kept = if is_whole {
            written
        } else {
            self.ends.iter().copied().find(|end| *end > written).unwrap_or(self.pending.len())
        };
        let left: Vec<usize> = self.ends.iter().copied().filter(|end| *end > kept).collect();
        if let Some(spool) = self.spool.as_ref().filter(|_| self.kept.is_none()) {
            let mut begin = kept;
            for end in &left {
                _ = spool.keep(&self.pending[begin..*end]);
                begin = *end;
            }
        }
        self.pending.truncate(kept);
        self.pending.drain(..written);
        self.ends.clear();
        if !self.pending.is_empty() {
            self.ends.push(self.pending.len());
        }
        self.begun = !self.pending.is_empty();
        if !self.begun {
            // It is still in the spool.
            self.kept = None;
        }
        let is_news = !std::mem::replace(&mut self.stalled, true);
        self.is_full = is_full;
        if self.spool.is_none() {
            if is_news && is_full {
                warn("the disk of standard output is full: messages are dropped until there is room");
            } else if is_news {
                warn("nobody reads standard output: messages are dropped until somebody does");
            }
            self.drops.add(left.len() as u64, now());
        }
    }

    /// As [`Console::flush`], at the end: a message of which the rest cannot be written counts as dropped.
    pub fn end(&mut self) {
        self.flush();
        if self.begun && self.kept.is_none() && self.out.is_ok() {
            self.drops.add(1, now());
        }
    }

    /// The first failure, if there was one.
    pub fn failure(&self) -> Option<&io::Error> {
        self.out.as_ref().err()
    }

    /// Whether the reader has closed its end, so that there is no use in continuing.
    pub fn is_closed(&self) -> bool {
        self.failure().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Whether there is no room for what is written.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Waits until something can be written, up to `limit`. Returns whether it can.
fn is_ready(out: &File, limit: Duration) -> io::Result<bool> {
    // Rounded up: a rest below a millisecond must not spin.
    let millis = limit.as_micros().div_ceil(1000).min(u128::from(u16::MAX)) as u16;
    match poll(&mut [PollFd::new(out.as_fd(), PollFlags::POLLOUT)], PollTimeout::from(millis)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn pipe() -> (io::PipeReader, Console) {
        let (reader, writer) = io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        (reader, Console::of(Ok(file), PIPE, Duration::from_millis(50)))
    }

    #[test]
    fn messages_are_dropped_whole_while_nobody_reads() {
        let (mut reader, mut console) = pipe();
        let message = |i: usize| format!("{i} {}\n", "x".repeat(999));
        for i in 0..200 {
            console.write(message(i).as_bytes());
            console.flush();
        }
        let dropped = console.drops().count();
        assert!(dropped > 100 && dropped < 200, "{dropped}");
        assert!(console.drops().span().is_some());
        // Once it has waited, it does not wait again.
        let began = Instant::now();
        (200..300).for_each(|i| {
            console.write(message(i).as_bytes());
            console.flush();
        });
        assert!(began.elapsed() < Duration::from_millis(2500), "{:?}", began.elapsed());
        let read = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text
        });
        // The reader empties the pipe.
        while console.stalled {
            console.write(message(300).as_bytes());
            console.flush();
        }
        console.write(b"last\n");
        console.flush();
        let dropped = console.drops().count();
        drop(console);
        let text = read.join().unwrap();
        assert!(text.ends_with("last\n"));
        let mut lines = 0;
        for line in text.lines() {
            assert!(line == "last" || line.len() > 1000 && line.ends_with('x'), "{line}");
            lines += 1;
        }
        assert!(lines + dropped > 300);
    }

    #[test]
    fn a_reader_that_reads_gets_everything() {
        let (mut reader, mut console) = pipe();
        let read = std::thread::spawn(move || {
            let mut text = Vec::new();
            reader.read_to_end(&mut text).unwrap();
            text
        });
        let mut sent = Vec::new();
        for i in 0..20_000 {
            let message = format!("{i} {}\n", "y".repeat(i % 300));
            console.write(message.as_bytes());
            sent.extend_from_slice(message.as_bytes());
            if i % 7 == 0 {
                console.flush();
            }
        }
        console.flush();
        assert_eq!(console.drops().count(), 0);
        drop(console);
        assert!(read.join().unwrap() == sent);
    }

    #[test]
    fn a_full_disk_is_waited_for_and_is_no_failure() {
        // It is always full.
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let wait = Duration::from_millis(120);
        let mut console = Console::of(Ok(full), PIPE, wait);
        let write = |console: &mut Console, text: &[u8]| {
            console.write(text);
            console.flush();
        };
        let began = Instant::now();
        write(&mut console, b"a\n");
        assert!(began.elapsed() >= wait && console.stalled);
        (0..3).for_each(|_| write(&mut console, b"b\n"));
        assert!(console.failure().is_none());
        assert_eq!(console.drops().count(), 4);
        // There is room again.
        let (mut reader, writer) = io::pipe().unwrap();
        console.out = Ok(File::from(std::os::fd::OwnedFd::from(writer)));
        write(&mut console, b"c\n");
        assert!(!console.stalled);
        console.end();
        drop(console);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "c\n");
    }

    #[test]
    fn the_rest_of_a_message_that_nobody_reads_counts_at_the_end() {
        let (reader, mut console) = pipe();
        // More than a pipe holds.
        console.write(&vec![b'z'; 1 << 20]);
        console.flush();
        assert!(console.begun && console.drops().count() == 0);
        console.end();
        assert_eq!(console.drops().count(), 1);
        drop(reader);
    }

    #[test]
    fn a_reader_that_is_gone_is_a_failure() {
        let (reader, mut console) = pipe();
        drop(reader);
        console.write(b"a\n");
        console.flush();
        assert!(console.is_closed());
        console.write(b"b\n");
        console.flush();
    }
}
