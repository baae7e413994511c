//! The thread that writes segments of messages to MCAP files.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rondel_event::Timestamp;
use rondel_net::offers::Offers;
use rondel_recording::{Compression, McapWriter, MessageHead, SplitPart, WriterOptions};
use rondel_runtime::text::counted;

use super::channels::Channel;
use super::ring::{Kept, Segment};
use crate::warn;

/// Segments that may wait to be written, beside what the memory allows.
const WAITING: usize = 512;
/// Maximum time that messages stay in memory before their chunk is written.
const CHUNK_AGE: Duration = Duration::from_secs(1);
/// Maximum number of publishers of a topic with a channel each, so that their sequence numbers stay separate.
const PUBLISHERS: u32 = 64;

/// Jobs of the writer, in order.
pub enum Job {
    /// Begin a file, with the messages of these segments from a time on.
    Begin(Box<Place>, Vec<Arc<Segment>>, Timestamp),
    /// Write messages, up to a time.
    Write(Arc<Segment>, Timestamp),
    /// End the file, with these notes about it.
    End(Vec<(String, String)>),
    /// A topic that is new, or whose type was not known before.
    Channel(u32, Box<Channel>),
}

/// Place and form of written files.
#[derive(Clone, Debug)]
pub struct Place {
    /// The file; if it exists, another name like it.
    pub file: PathBuf,
    /// Compression of chunks.
    pub compression: Compression,
    /// Maximum number of files of a series in the folder, if there is a limit.
    pub keep: Option<usize>,
    /// The size, in bytes, and the time, in nanoseconds, after which the next file begins.
    pub split: (Option<u64>, Option<i64>),
}

impl Place {
    /// The name of the file with this number, from 0.
    pub fn name(&self, number: u32) -> PathBuf {
        if self.is_split() { numbered(&self.file, number) } else { self.file.clone() }
    }

    fn is_split(&self) -> bool {
        self.split != (None, None)
    }
}

/// Statistics of written files and messages.
#[derive(Debug, Default)]
pub struct Status {
    /// The number of messages in files.
    pub written: AtomicU64,
    /// Messages that could not be written, or not be passed on since the writer could not follow.
    pub lost: AtomicU64,
    /// The files that are kept, in order, each with the number of its messages.
    files: Mutex<VecDeque<(PathBuf, u64)>>,
    /// Files of the run that made room for newer ones, with their messages.
    pub removed: AtomicU64,
    /// The first reason why something could not be written.
    failure: Mutex<Option<String>>,
}

impl Status {
    /// The files, in order, each with the number of its messages.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The first reason why something could not be written.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records a write failure, and warns of the first one.
    fn failed(&self, reason: &str) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() {
            warn(&format!("{reason}; what is lost is counted"));
            *failure = Some(reason.to_owned());
        }
    }

    fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
    }
}

/// The writing thread, with the channel to it.
pub struct Disk {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    done: Receiver<()>,
    status: Arc<Status>,
}

impl Disk {
    /// Starts the thread. `channels` are the topics by their numbers; further ones may follow. `offers` are those of
    /// their publishers.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(channels: Vec<Channel>, offers: Offers) -> io::Result<Disk> {
        let (jobs, waiting) = mpsc::sync_channel(WAITING);
        let (finished, done) = mpsc::channel();
        let status = Arc::new(Status::default());
        let channels = (0..).zip(channels).collect();
        let (own, publishers) = (Arc::clone(&status), Publishers { offers, start: Instant::now() });
        let mut work = Work {
            channels,
            publishers,
            status: own,
            open: None,
            noted: 0,
            recording: rondel_net::adapter::now().as_nanos(),
            part: 0,
        };
        let run = move || {
            work.run(&waiting);
            // The receiver is gone if the end took too long.
            let _ = finished.send(());
        };
        let thread = thread::Builder::new().name("record".into()).spawn(run)?;
        Ok(Disk { jobs: Some(jobs), thread: Some(thread), done, status })
    }

    /// Statistics of written files and messages.
    pub fn status(&self) -> &Arc<Status> {
        &self.status
    }

    /// Passes a job on. If the thread cannot follow, it is dropped, and its messages are counted.
    pub fn send(&self, job: Job) -> bool {
        let Some(jobs) = &self.jobs else { return false };
        let Err(mpsc::TrySendError::Full(job) | mpsc::TrySendError::Disconnected(job)) = jobs.try_send(job)
        else {
            return true;
        };
        match job {
            Job::Begin(_, segments, _) => self.status.lose(segments.iter().map(|one| one.count).sum()),
            Job::Write(segment, _) => self.status.lose(segment.count),
            Job::End(_) | Job::Channel(..) => {}
        }
        self.status.failed("recording cannot follow: the disk is too slow");
        false
    }

    /// Ends the thread once everything is written. Returns whether that happened within `limit`.
    pub fn end(&mut self, limit: Duration) -> bool {
        drop(self.jobs.take());
        let Some(thread) = self.thread.take() else { return true };
        match self.done.recv_timeout(limit) {
            // A panic of the thread has been reported.
            Ok(()) => thread.join().is_ok(),
            Err(_) => false,
        }
    }
}

struct Work {
    channels: HashMap<u32, Channel>,
    publishers: Publishers,
    status: Arc<Status>,
    open: Option<Open>,
    /// The messages that are lost and noted in a file.
    noted: u64,
    /// The recording, by the time at which it began, and the number of its next part.
    recording: i64,
    part: u32,
}

/// The publishers of topics.
struct Publishers {
    offers: Offers,
    /// Time since when they are watched.
    start: Instant,
}

/// The file that is open.
struct Open {
    place: Place,
    /// The number of the file, from 0.
    number: u32,
    writer: McapWriter,
    /// The channels in the file by topic and publisher.
    ids: HashMap<(u32, Option<u64>), u16>,
    /// Number of publishers of each topic.
    publishers: HashMap<u32, u32>,
    /// Arrival of the first message.
    first: Option<Timestamp>,
    /// The number of messages that are counted in the status.
    counted: u64,
    lost: u64,
    /// Messages that the file has no channel for.
    refused: u64,
    flushed: Instant,
    /// Whether it has nothing but topics of ROS 2.
    is_ros2: bool,
}

impl Work {
    fn run(&mut self, jobs: &Receiver<Job>) {
        loop {
            let job = jobs.recv_timeout(CHUNK_AGE);
            // Before it is written: publishers are announced before their messages.
            self.publishers.offers.look();
            let job = match job {
                Ok(job) => job,
                Err(RecvTimeoutError::Timeout) => {
                    self.flush();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.finish(&[], false);
                    return;
                }
            };
            match job {
                Job::Channel(topic, channel) => drop(self.channels.insert(topic, *channel)),
                Job::Begin(place, segments, from) => {
                    self.finish(&[], false);
                    self.begin(*place);
                    for segment in segments {
                        self.write(&segment, from, Timestamp::from_nanos(i64::MAX));
                    }
                }
                Job::Write(segment, until) => {
                    self.write(&segment, Timestamp::from_nanos(i64::MIN), until);
                    if self.open.as_ref().is_some_and(|open| open.flushed.elapsed() >= CHUNK_AGE) {
                        self.flush();
                    }
                }
                Job::End(notes) => self.finish(&notes, false),
            }
        }
    }

    fn begin(&mut self, place: Place) {
        match Open::create(&place, 0, self.channels.values()) {
            Ok(open) => self.open = Some(open),
            Err(error) => self.status.failed(&error),
        }
    }

    /// Writes the messages of a segment that arrived within these times.
    fn write(&mut self, segment: &Segment, from: Timestamp, until: Timestamp) {
        let within = |kept: &Kept<'_>| kept.arrival >= from && kept.arrival <= until;
        for kept in segment.messages().filter(within) {
            let Some(open) = &mut self.open else {
                self.status.lose(1);
                continue;
            };
            if open.is_over(kept.arrival) {
                let (place, number) = (open.place.clone(), open.number + 1);
                self.finish(&[], true);
                match Open::create(&place, number, self.channels.values()) {
                    Ok(next) => self.open = Some(next),
                    Err(error) => self.status.failed(&error),
                }
            }
            let Some(open) = &mut self.open else {
                self.status.lose(1);
                continue;
            };
            if let Err(error) = open.message(&kept, &self.channels, &mut self.publishers) {
                let file = open.writer.path().display().to_string();
                self.status.failed(&format!("cannot write {file}: {error}"));
            }
        }
        self.count();
    }

    /// Writes the chunk that is open, and looks whether the file is still there.
    fn flush(&mut self) {
        let Some(open) = &mut self.open else { return };
        open.flushed = Instant::now();
        let file = open.writer.path().display().to_string();
        if let Err(error) = open.writer.flush() {
            self.status.failed(&format!("cannot write {file}: {error}"));
        }
        self.count();
        if let Some(open) = &self.open
            && !open.writer.is_there()
        {
            self.status.failed(&format!("{file} was removed or moved while it was written"));
            // Its content counts as lost.
            self.status.written.fetch_sub(open.counted, Ordering::Relaxed);
            self.status.lose(open.counted);
            let (place, number) = (open.place.clone(), open.number + 1);
            self.open = None;
            if let Ok(next) = Open::create(&place, number, self.channels.values()) {
                self.open = Some(next);
            }
        }
    }

    /// Takes the messages into account that were written and lost since.
    fn count(&mut self) {
        let Some(open) = &mut self.open else { return };
        let (written, lost) = (open.writer.messages(), open.writer.lost() + open.refused);
        self.status.written.fetch_add(written.wrapping_sub(open.counted), Ordering::Relaxed);
        self.status.lose(lost - open.lost);
        (open.counted, open.lost) = (written, lost);
    }

    /// Ends the file, if one is open; `goes_on` if the recording does in another.
    fn finish(&mut self, notes: &[(String, String)], goes_on: bool) {
        let Some(open) = &mut self.open else { return };
        let file = open.writer.path().to_owned();
        if let Err(error) = open.writer.flush() {
            self.status.failed(&format!("cannot write {}: {error}", file.display()));
        }
        self.flush_counts();
        let Some(mut open) = self.open.take() else { return };
        let (mut notes, lost) = (notes.to_vec(), self.status.lost.load(Ordering::Relaxed));
        if lost > self.noted {
            notes.push(("unwritten".to_owned(), (lost - self.noted).to_string()));
            if open.writer.is_there() {
                self.noted = lost;
            }
        }
        if open.place.is_split() {
            let part = SplitPart { recording: self.recording, number: self.part, is_last: !goes_on };
            notes.push(("part".to_owned(), part.text()));
            self.part += 1;
        }
        let noted = if notes.is_empty() { Ok(()) } else { open.writer.metadata("rondel", &notes) };
        // By this rosbag2 knows that qualities of service are numbers.
        let form = [("serialized_metadata".to_owned(), String::new())];
        let noted =
            noted.and_then(|()| if open.is_ros2 { open.writer.metadata("rosbag2", &form) } else { Ok(()) });
        // Without its notes it must not look complete: then it has no end either.
        if let Err(error) = noted.and_then(|()| open.writer.finish()) {
            self.status.failed(&format!("cannot finish {}: {error}", file.display()));
        }
        let mut files = self.status.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.push_back((file.clone(), open.writer.messages()));
        let Some(keep) = open.place.keep else { return };
        if let Err(error) = remove_oldest(&file, keep) {
            drop(files);
            self.status.failed(&format!("cannot remove old files beside {}: {error}", file.display()));
            return;
        }
        let before = files.len();
        files.retain(|(file, _)| file.exists());
        self.status.removed.fetch_add((before - files.len()) as u64, Ordering::Relaxed);
    }

    /// Takes the last messages into account, and a file that is gone.
    fn flush_counts(&mut self) {
        self.count();
        let Some(open) = &self.open else { return };
        if !open.writer.is_there() {
            let file = open.writer.path().display();
            self.status.failed(&format!("{file} was removed or moved while it was written"));
            self.status.written.fetch_sub(open.counted, Ordering::Relaxed);
            self.status.lose(open.counted);
        }
    }
}

impl Open {
    fn create<'c>(
        place: &Place,
        mut number: u32,
        mut channels: impl Iterator<Item = &'c Channel>,
    ) -> Result<Open, String> {
        let is_ros2 = channels.all(|channel| channel.is_ros2() || channel.name.starts_with("rondel/"));
        let options = WriterOptions {
            compression: place.compression,
            profile: if is_ros2 { "ros2" } else { "" }.to_owned(),
            library: concat!("rondel ", env!("CARGO_PKG_VERSION")).to_owned(),
            ..WriterOptions::default()
        };
        let mut file = place.name(number);
        if let (Some(folder), Some(_)) = (file.parent(), place.keep) {
            fs::create_dir_all(folder)
                .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        }
        let mut again = 1;
        let writer = loop {
            match McapWriter::create(&file, &options) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && place.keep.is_some() => {
                    again += 1;
                    file = numbered(&place.file, again);
                }
                // A part of a split recording gets the next free number.
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && place.is_split() && number > 0 =>
                {
                    number += 1;
                    file = place.name(number);
                }
                other => break other.map_err(|error| format!("cannot write {}: {error}", file.display()))?,
            }
        };
        Ok(Open {
            place: place.clone(),
            number,
            writer,
            ids: HashMap::new(),
            publishers: HashMap::new(),
            first: None,
            counted: 0,
            lost: 0,
            refused: 0,
            flushed: Instant::now(),
            is_ros2,
        })
    }

    /// Whether the next file begins with a message that arrived at this time.
    fn is_over(&self, arrival: Timestamp) -> bool {
        let (size, time) = self.place.split;
        let Some(first) = self.first else { return false };
        let lasts = arrival.as_nanos().saturating_sub(first.as_nanos());
        size.is_some_and(|size| self.writer.size() >= size) || time.is_some_and(|time| lasts >= time)
    }

    fn message(
        &mut self,
        kept: &Kept<'_>,
        channels: &HashMap<u32, Channel>,
        publishers: &mut Publishers,
    ) -> io::Result<()> {
        let Kept { topic, arrival, source, origin, payload } = *kept;
        self.first.get_or_insert(arrival);
        // Publishers number their messages each for itself: they have channels of their own, so that a gap shows.
        let count = self.publishers.get(&topic).copied().unwrap_or(0);
        let mut publisher = origin.map(|origin| origin.publisher);
        if !self.ids.contains_key(&(topic, publisher)) && count >= PUBLISHERS {
            publisher = None;
        }
        let id = match self.ids.get(&(topic, publisher)) {
            Some(id) => *id,
            None => {
                let Some(id) = channels.get(&topic).and_then(|channel| self.define(channel, publishers))
                else {
                    self.refused += 1;
                    return Err(io::Error::other("a file has no room for more topics"));
                };
                self.ids.insert((topic, publisher), id);
                *self.publishers.entry(topic).or_default() += 1;
                id
            }
        };
        let sequence = match (publisher, origin) {
            (Some(_), Some(origin)) => origin.number as u32,
            _ => 0,
        };
        let nanos = |time: Timestamp| u64::try_from(time.as_nanos()).unwrap_or(0);
        let head = MessageHead {
            channel: id,
            sequence,
            log_time: nanos(arrival),
            publish_time: nanos(source.unwrap_or(arrival)),
        };
        self.writer.message(&head, payload)
    }

    fn define(&mut self, channel: &Channel, publishers: &mut Publishers) -> Option<u16> {
        let schema = match &channel.schema {
            None => 0,
            Some(schema) => self.writer.schema(schema)?,
        };
        let metadata = channel.noted(&mut publishers.offers, publishers.start);
        self.writer.channel(&channel.name, channel.encoding, schema, &metadata)
    }
}

/// The name of the file with this number: `drive_1.mcap` for `drive.mcap`.
fn numbered(file: &Path, number: u32) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    file.with_file_name(format!("{stem}_{number}.mcap"))
}

/// Removes the oldest files of a series, by their names, so that `keep` files stay. Files with other names stay.
fn remove_oldest(file: &Path, keep: usize) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut own: Vec<PathBuf> = fs::read_dir(folder)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_own))
        .collect();
    own.sort();
    let surplus = own.len().saturating_sub(keep);
    own.iter().take(surplus).filter(|path| *path != file).try_for_each(fs::remove_file)
}

/// Whether a file is one of a series: its name begins with a time as [`file_name`] writes it.
fn is_own(name: &str) -> bool {
    let form = b"dddd-dd-ddTdd-dd-dd.dddZ-";
    let fits = |(byte, form): (u8, &u8)| if *form == b'd' { byte.is_ascii_digit() } else { byte == *form };
    name.len() > form.len() && name.ends_with(".mcap") && name.bytes().zip(form).all(fits)
}

/// The name of a file of a series, by time and property: `2026-11-23T14-05-09.250Z-limited.mcap`.
pub(super) fn file_name(time: Timestamp, property: &str) -> String {
    let millis = time.as_nanos().div_euclid(1_000_000);
    let date = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
    let date = date.strftime("%Y-%m-%dT%H-%M-%S");
    let safe = |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' };
    let property: String = property.chars().map(safe).take(80).collect();
    format!("{date}.{:03}Z-{property}.mcap", millis.rem_euclid(1000))
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (written, lost) = (self.written.load(Ordering::Relaxed), self.lost.load(Ordering::Relaxed));
        let files = self.files();
        let removed = self.removed.load(Ordering::Relaxed);
        write!(
            f,
            "{} in {}",
            counted(written, "message", "messages"),
            counted(files.len() as u64 + removed, "file", "files")
        )?;
        if removed > 0 {
            write!(f, ", of which the newest {} are kept", files.len())?;
        }
        if lost > 0 {
            write!(f, ", {} lost", counted(lost, "message", "messages"))?;
        }
        Ok(())
    }
}
