//! Standard output of live commands, which never waits for its reader.
//!
//! Messages arrive on the threads of the networks, and the same threads print. A reader that does not read (a stopped
//! pager, a full pipe) must not hold them up: messages that it does not accept at once go into a
//! [queue](crate::sinks::queue), whose thread waits for it. Printed messages stay whole: the rest of a begun message is
//! written first. A file on a full disk is treated alike, since other processes may make room.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rondel_net::adapter::{Drops, PublishError, Publisher, now};

use crate::sinks::queue::{FIRST, PATIENCE, Queue, Queued, Words};
use crate::sinks::spool::Spool;

/// Bytes that a pipe takes without blocking once it is ready: POSIX guarantees 512, Linux one page.
const PIPE: usize = 4096;
/// The same for a terminal, which is ready when fewer bytes than this wait.
const TERMINAL: usize = 256;
/// Bytes from which messages are written without waiting for [`Console::flush`].
const FULL: usize = 1 << 16;
/// The name of standard output among sinks.
const NAME: &str = "stdout";

/// Whether the disk was full when something was last refused. There is one standard output.
static IS_DISK_FULL: AtomicBool = AtomicBool::new(false);

/// The sentences about standard output.
const WORDS: Words = Words {
    refuses: || match IS_DISK_FULL.load(Ordering::Relaxed) {
        true => "the disk of standard output is full: messages are dropped until there is room".to_owned(),
        false => "standard output is not read: messages are dropped until it is".to_owned(),
    },
    accepts: || match IS_DISK_FULL.load(Ordering::Relaxed) {
        true => "standard output has room again".to_owned(),
        false => "standard output is read again".to_owned(),
    },
};

/// Standard output that drops or keeps messages instead of waiting for ever.
pub struct Console {
    out: Arc<Output>,
    pending: Vec<u8>,
    /// Ends of the messages in `pending`.
    ends: Vec<usize>,
    queue: Arc<Queue>,
    /// The output as a publisher behind its queue.
    publisher: Arc<dyn Publisher>,
}

/// The file behind standard output. The thread of the queue uses it as well as that which prints.
struct Output {
    state: Mutex<Writing>,
    /// Reason why nothing more can be written.
    failure: OnceLock<io::Error>,
    drops: Arc<Drops>,
}

struct Writing {
    /// `None` once writing has failed.
    file: Option<File>,
    /// Bytes to write at a time, after `poll` has reported room for them; `None` where writing never waits.
    portion: Option<usize>,
    /// The rest of a message that was begun.
    rest: Vec<u8>,
}

impl Console {
    /// Opens standard output. Messages wait up to `wait` for its reader; later they go to the spool, or are dropped.
    pub fn new(wait: Duration, spool: Option<Arc<Spool>>) -> Console {
        let stdout = io::stdout();
        let out = stdout.as_fd().try_clone_to_owned().map(File::from);
        Console::of(out, if stdout.is_terminal() { TERMINAL } else { PIPE }, wait, spool)
    }

    fn of(out: io::Result<File>, portion: usize, wait: Duration, spool: Option<Arc<Spool>>) -> Console {
        let queue = Queue::new(NAME.to_owned(), WORDS, wait, spool);
        let failure = OnceLock::new();
        let file = out.map_err(|error| failure.set(error)).ok();
        let is_file =
            file.as_ref().is_some_and(|out| out.metadata().is_ok_and(|metadata| metadata.is_file()));
        let writing = Writing { file, portion: (!is_file).then_some(portion), rest: Vec::new() };
        let out = Arc::new(Output { state: Mutex::new(writing), failure, drops: queue.drops() });
        let publisher = Arc::new(Queued::new(Arc::clone(&out) as Arc<dyn Publisher>, Arc::clone(&queue)));
        Console { out, pending: Vec::new(), ends: Vec::new(), queue, publisher }
    }

    /// The counter of dropped messages.
    pub fn drops(&self) -> Arc<Drops> {
        self.queue.drops()
    }

    /// The number of messages that were accepted and dropped later.
    pub fn withdrawn(&self) -> u64 {
        self.queue.withdrawn()
    }

    /// Adds a message with its line break. It is written at [`Console::flush`], or when enough wait.
    pub fn write(&mut self, message: &[u8]) {
        if message.is_empty() || self.failure().is_some() {
            return;
        }
        self.pending.extend_from_slice(message);
        self.ends.push(self.pending.len());
        if self.pending.len() >= FULL {
            self.flush();
        }
    }

    /// Writes all messages. Messages that the reader does not accept at once wait in the queue.
    pub fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let mut begin = 0;
        if !self.queue.is_used() {
            begin = self.out.write_whole(&self.pending, &self.ends, FIRST);
        }
        let written = begin;
        for end in self.ends.iter().copied().filter(|end| *end > written) {
            let message = &self.pending[begin..end];
            // The queue counts and reports messages without room.
            if self.queue.push_behind(message).is_none() && self.out.failure.get().is_none() {
                _ = self.queue.push_refused(&self.out_publisher(), message);
            }
            begin = end;
        }
        self.pending.clear();
        self.ends.clear();
        // No further message may come that would take it along.
        if !self.queue.is_used() && self.out.is_behind() {
            self.queue.finish_partial(&self.out_publisher());
        }
    }

    fn out_publisher(&self) -> Arc<dyn Publisher> {
        Arc::clone(&self.out) as Arc<dyn Publisher>
    }

    /// Writes all messages, and returns the publisher of the waiting messages, to be flushed at the end.
    pub fn end(&mut self) -> Arc<dyn Publisher> {
        self.flush();
        Arc::clone(&self.publisher)
    }

    /// The first failure, if there was one.
    pub fn failure(&self) -> Option<&io::Error> {
        self.out.failure.get()
    }

    /// Whether the reader has closed its end, so that there is no use in continuing.
    pub fn is_closed(&self) -> bool {
        self.failure().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl Output {
    fn state(&self) -> MutexGuard<'_, Writing> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes messages that end at these places, and keeps the rest of one that was begun. Returns where the messages
    /// begin that were not. Waits up to `limit`.
    fn write_whole(&self, messages: &[u8], ends: &[usize], limit: Duration) -> usize {
        let state = &mut *self.state();
        if !self.write_rest(state, limit) {
            return 0;
        }
        let written = self.write(state, messages, limit);
        if written == 0 || ends.contains(&written) {
            return written;
        }
        let end = ends.iter().copied().find(|end| *end > written).unwrap_or(messages.len());
        state.rest.extend_from_slice(&messages[written..end]);
        end
    }

    /// Writes the rest of a message that was begun. Returns whether there is none any more.
    fn write_rest(&self, state: &mut Writing, limit: Duration) -> bool {
        if !state.rest.is_empty() {
            let rest = std::mem::take(&mut state.rest);
            let written = self.write(state, &rest, limit);
            state.rest.extend_from_slice(&rest[written..]);
        }
        state.rest.is_empty()
    }

    /// Writes bytes for which there is room, or comes within `limit`. Returns how many.
    fn write(&self, state: &mut Writing, bytes: &[u8], limit: Duration) -> usize {
        let (mut written, began) = (0, Instant::now());
        while written < bytes.len() {
            let Some(file) = &mut state.file else { break };
            let length = match state.portion {
                None => bytes.len() - written,
                Some(portion) => match is_ready(file, limit.saturating_sub(began.elapsed())) {
                    Ok(true) => portion.min(bytes.len() - written),
                    Ok(false) => {
                        IS_DISK_FULL.store(false, Ordering::Relaxed);
                        break;
                    }
                    Err(error) => {
                        self.fail(state, error);
                        break;
                    }
                },
            };
            match file.write(&bytes[written..written + length]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_full(&error) => {
                    IS_DISK_FULL.store(true, Ordering::Relaxed);
                    break;
                }
                Err(error) => self.fail(state, error),
            }
        }
        written
    }

    fn fail(&self, state: &mut Writing, error: io::Error) {
        state.file = None;
        state.rest.clear();
        // The first one counts.
        _ = self.failure.set(error);
    }
}

impl Publisher for Output {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        self.offer(payload, Duration::ZERO)
    }

    fn offer(&self, payload: &[u8], limit: Duration) -> Result<(), PublishError> {
        if self.write_whole(payload, &[payload.len()], limit) > 0 {
            return Ok(());
        }
        if self.failure.get().is_some() { Err(PublishError::Closed) } else { Err(PublishError::Slow) }
    }

    /// Writes the rest of a message that was begun, and waits for a reader a little.
    fn release(&self) {
        self.write_rest(&mut self.state(), PATIENCE);
    }

    fn is_behind(&self) -> bool {
        !self.state().rest.is_empty()
    }

    /// A message of which the rest cannot be written counts as dropped.
    fn flush(&self, limit: Duration) -> bool {
        let state = &mut *self.state();
        let is_written = self.write_rest(state, limit);
        if !is_written {
            state.rest.clear();
            self.drops.add(1, now());
        }
        is_written
    }
}

/// Whether there is no room for what is written.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Waits until something can be written, up to `limit`. Returns whether it can.
fn is_ready(out: &File, limit: Duration) -> io::Result<bool> {
    // A limit below a millisecond becomes zero: the caller cannot wait longer.
    let millis = limit.as_millis().min(u128::from(u16::MAX)) as u16;
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

    const LIMIT: Duration = Duration::from_secs(20);

    fn pipe(wait: Duration) -> (io::PipeReader, Console) {
        let (reader, writer) = io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        (reader, Console::of(Ok(file), PIPE, wait, None))
    }

    fn write(console: &mut Console, text: &[u8]) {
        console.write(text);
        console.flush();
    }

    fn wait_until(condition: impl Fn() -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !condition() {
            assert!(Instant::now() < deadline, "it does not happen");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn whole_messages_are_dropped_without_a_reader() {
        let (mut reader, mut console) = pipe(Duration::from_millis(50));
        let message = |i: usize| format!("{i} {}\n", "x".repeat(999));
        let began = Instant::now();
        (0..200).for_each(|i| write(&mut console, message(i).as_bytes()));
        assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
        wait_until(|| console.drops().count() > 100);
        assert!(console.drops().count() < 200 && console.drops().span().is_some());
        let read = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text
        });
        wait_until(|| !console.queue.is_used());
        // On a busy machine the reader may pause for longer than messages wait.
        let mut tries = 0;
        loop {
            let before = console.drops().count();
            write(&mut console, b"last\n");
            wait_until(|| !console.queue.is_used());
            tries += 1;
            if console.drops().count() == before {
                break;
            }
        }
        let dropped = console.drops().count();
        assert_eq!(dropped, console.withdrawn());
        drop(console);
        let text = read.join().unwrap();
        assert!(text.ends_with("last\n"));
        let mut lines = 0;
        for line in text.lines() {
            assert!(line == "last" || line.len() > 1000 && line.ends_with('x'), "{line}");
            lines += 1;
        }
        assert_eq!(lines + dropped, 200 + tries);
    }

    #[test]
    fn late_reader_gets_all_messages() {
        let (mut reader, mut console) = pipe(LIMIT);
        let mut sent = Vec::new();
        for i in 0..20_000 {
            let message = format!("{i} {}\n", "y".repeat(i % 300));
            console.write(message.as_bytes());
            sent.extend_from_slice(message.as_bytes());
            if i % 7 == 0 {
                console.flush();
            }
        }
        assert!(console.queue.is_used());
        let read = std::thread::spawn(move || {
            let mut text = Vec::new();
            reader.read_to_end(&mut text).unwrap();
            text
        });
        assert!(console.end().flush(LIMIT));
        assert_eq!(console.drops().count(), 0);
        drop(console);
        assert!(read.join().unwrap() == sent);
    }

    #[test]
    fn rest_of_the_last_message_is_written_without_a_further_message() {
        let (mut reader, mut console) = pipe(LIMIT);
        // More than a pipe holds, twice: directly, and by the thread that finished the first one.
        for byte in [b'a', b'b'] {
            let message = vec![byte; 1 << 18];
            write(&mut console, &message);
            let mut read = vec![0; message.len()];
            reader.read_exact(&mut read).unwrap();
            assert!(read == message);
            wait_until(|| !console.queue.is_used());
        }
        assert_eq!(console.drops().count(), 0);
    }

    #[test]
    fn full_disk_is_not_a_failure() {
        // It is always full.
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut console = Console::of(Ok(full), PIPE, Duration::from_millis(20), None);
        (0..4).for_each(|_| write(&mut console, b"a\n"));
        wait_until(|| console.drops().count() == 4);
        assert!(console.failure().is_none());
        // There is room again.
        let (mut reader, writer) = io::pipe().unwrap();
        console.out.state().file = Some(File::from(std::os::fd::OwnedFd::from(writer)));
        wait_until(|| !console.queue.is_used());
        write(&mut console, b"c\n");
        assert!(console.end().flush(LIMIT));
        drop(console);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "c\n");
    }

    #[test]
    fn unread_messages_are_counted_as_dropped_at_the_end() {
        let (reader, mut console) = pipe(LIMIT);
        // More than a pipe holds.
        write(&mut console, &vec![b'z'; 1 << 20]);
        write(&mut console, b"a\n");
        assert_eq!(console.drops().count(), 0);
        assert!(!console.end().flush(Duration::ZERO));
        assert_eq!(console.drops().count(), 2);
        drop(reader);
    }

    #[test]
    fn closed_reader_is_a_failure() {
        let (reader, mut console) = pipe(LIMIT);
        drop(reader);
        write(&mut console, b"a\n");
        assert!(console.is_closed());
        write(&mut console, b"b\n");
    }
}
