//! Recordings in MCAP files: with chunks or without, with an index or without, complete or cut off; also bags of ROS 1
//! and logs of PX4, whose messages are in sections, too.
//!
//! Chunks are found by the index, or by a walk over the heads of the records. Those with a wanted topic and time are
//! read in the order of their first messages, and merged where their times overlap.

mod chunk;
mod index;
mod load;
mod records;
mod ros1;
mod ulog;
mod write;

use std::collections::VecDeque;
use std::path::Path;

use rondel_event::Timestamp;

use crate::pieces::Pieces;
use crate::recording::{End, Progress, RecordedMessage, RecordedTopic, Recording, RecordingError, Selection};
use index::{Index, Section};
use load::{Buffers, Entry, Format, Loaded, Loader, UNKNOWN, UNREAD, Wanted};
pub(crate) use records::MAGIC;
use records::MESSAGE_HEAD;
pub(crate) use ros1::ROS1_MAGIC;
pub(crate) use ulog::ULOG_MAGIC;
pub use write::{Compression, McapWriter, MessageHead, WriterOptions};

/// Limit of the bytes of chunks with overlapping times that are held; above it, messages may be out of order.
const OVERLAP: usize = 512 << 20;

/// An MCAP file, a bag of ROS 1 or a log of PX4 that is being read.
pub struct McapRecording {
    loader: Loader,
    topics: Vec<RecordedTopic>,
    /// Position of the topic of each channel id, or [`UNKNOWN`].
    channels: Vec<u32>,
    selection: Selection,
    /// Sections still to read, in the order of their first times.
    waiting: VecDeque<Section>,
    sections: Vec<Section>,
    is_own: bool,
    end: End,
    open: Vec<OpenSection>,
    /// Faults to report, in order; a cut at the end.
    faults: VecDeque<RecordingError>,
    cut: Option<RecordingError>,
    /// The section whose messages are returned.
    current: Option<usize>,
    position: u64,
    bytes_read: u64,
    /// Number of messages listed in the sections read so far.
    listed: u64,
    /// Number of messages to read in total, if known.
    expected: Option<u64>,
    /// Whether no fault of the file is known, and its recorder counted the messages of each channel.
    is_sound: bool,
}

/// A section that is being read.
struct OpenSection {
    records: Vec<u8>,
    entries: Vec<Entry>,
    next: usize,
    /// Offsets of its beginning and end in the file.
    offset: u64,
    end: u64,
    /// Reason why the rest of it cannot be read.
    fault: Option<RecordingError>,
}

impl McapRecording {
    /// Opens a file and finds its topics.
    ///
    /// # Errors
    /// [`RecordingError`] if it cannot be read at all.
    pub fn open(path: &Path) -> Result<McapRecording, RecordingError> {
        McapRecording::of_pieces(Pieces::open(path, None)?)
    }

    /// Finds the topics of an open file.
    pub(crate) fn of_pieces(mut file: Pieces) -> Result<McapRecording, RecordingError> {
        let index = Index::read(&mut file)?;
        Ok(McapRecording::of_index(file, Format::Mcap, index))
    }

    /// Opens a bag of ROS 1 and finds its topics, one for each connection.
    ///
    /// # Errors
    /// [`RecordingError`] if it cannot be read at all.
    pub fn open_ros1(path: &Path) -> Result<McapRecording, RecordingError> {
        let mut file = Pieces::open(path, None)?;
        let (index, connections) = ros1::index(&mut file)?;
        Ok(McapRecording::of_index(file, Format::Ros1(connections), index))
    }

    /// Opens a log of PX4 (ULog) and finds its topics.
    ///
    /// # Errors
    /// [`RecordingError`] if it cannot be read at all.
    pub fn open_ulog(path: &Path) -> Result<McapRecording, RecordingError> {
        let mut file = Pieces::open(path, None)?;
        let (index, subscriptions) = ulog::index(&mut file)?;
        Ok(McapRecording::of_index(file, Format::Ulog(subscriptions), index))
    }

    fn of_index(file: Pieces, format: Format, index: Index) -> McapRecording {
        let Index { sections, topics, of_channel, faults, cut, is_own, end, .. } = index;
        let mut channels = vec![UNKNOWN; of_channel.keys().next_back().map_or(0, |last| *last as usize + 1)];
        for (channel, topic) in &of_channel {
            channels[*channel as usize] = *topic as u32;
        }
        let is_sound = matches!(format, Format::Mcap) && faults.is_empty() && cut.is_none();
        let bytes_read = file.bytes_read();
        let name = file.path().to_owned();
        let path = || name.clone();
        let faults = faults.into_iter().map(|(offset, reason)| RecordingError::Damage {
            path: path(),
            offset,
            reason,
            topics: Vec::new(),
        });
        let mut recording = McapRecording {
            faults: faults.collect(),
            cut: cut.map(|(offset, reason)| RecordingError::Cut {
                path: path(),
                offset,
                reason,
                is_damaged: false,
            }),
            channels,
            selection: Selection::of_topics(vec![true; topics.len()]),
            waiting: VecDeque::new(),
            sections,
            topics,
            is_own,
            end,
            loader: Loader::new(file, format),
            open: Vec::new(),
            current: None,
            position: 0,
            bytes_read,
            listed: 0,
            expected: None,
            is_sound,
        };
        recording.choose();
        recording
    }

    /// Whether Rondel wrote the file.
    pub(crate) fn is_own(&self) -> bool {
        self.is_own
    }

    /// Applies the selection.
    fn choose(&mut self) {
        let selection = &self.selection;
        let chosen = |topic: &u32| match *topic {
            UNKNOWN => UNKNOWN,
            topic if selection.has_topic(topic as usize) => topic,
            _ => UNREAD,
        };
        let channels: Vec<u32> = self.channels.iter().map(chosen).collect();
        let is_read = |id: &u16| channels.get(*id as usize).is_none_or(|topic| *topic != UNREAD);
        let is_wanted = |section: &&Section| {
            let (start, end) = (timestamp(section.start), timestamp(section.end));
            // Times that contradict each other are ignored.
            let in_time = start > end || start <= selection.until && end >= selection.from;
            in_time && section.channels.as_ref().is_none_or(|ids| ids.iter().any(is_read))
        };
        let mut chosen: Vec<Section> = self.sections.iter().filter(is_wanted).cloned().collect();
        chosen.sort_by_key(|section| section.start);
        self.waiting = chosen.into();
        let time = |time: Timestamp| u64::try_from(time.as_nanos()).unwrap_or(0);
        let is_all = selection.from.as_nanos() <= 0 && selection.until.as_nanos() == i64::MAX;
        let read = self.topics.iter().enumerate().filter(|(topic, _)| selection.has_topic(*topic));
        self.expected = match self.is_sound && is_all {
            true => read.map(|(_, topic)| topic.messages).sum(),
            false => None,
        };
        self.loader.wanted = Wanted { channels, from: time(selection.from), until: time(selection.until) };
    }

    /// Reads the next section.
    fn load(&mut self, section: &Section) -> Result<(), RecordingError> {
        let Loaded { buffers: Buffers { records, entries }, fault, bytes_read } =
            self.loader.load(section)?;
        self.bytes_read += bytes_read;
        self.listed += entries.len() as u64;
        if fault.is_some() {
            self.expected = None;
        }
        let Section { offset, length, .. } = *section;
        let fault = fault.map(|reason| {
            let all = 0..self.topics.len();
            let is_in = |topic: &usize| {
                let channel = |id: &u16| self.channels.get(*id as usize) == Some(&(*topic as u32));
                self.selection.has_topic(*topic)
                    && section.channels.as_ref().is_none_or(|ids| ids.iter().any(channel))
            };
            let topics = all.filter(is_in).collect();
            RecordingError::Damage { path: self.loader.path().to_owned(), offset, reason, topics }
        });
        self.open.push(OpenSection { records, entries, next: 0, offset, end: offset + length, fault });
        Ok(())
    }

    /// Opens every section that may have the next message; returns the position of the section that has it.
    fn find(&mut self) -> Result<Option<usize>, RecordingError> {
        loop {
            let time = |section: &OpenSection| section.entries.get(section.next).map(|entry| entry.log_time);
            let first = self
                .open
                .iter()
                .enumerate()
                .filter_map(|(i, section)| Some((time(section)?, section.offset, i)))
                .min();
            let held: usize = self.open.iter().map(|section| section.records.len()).sum();
            let is_next = |section: &Section| match first {
                Some((time, ..)) => section.start <= time && held < OVERLAP,
                None => true,
            };
            if self.waiting.front().is_some_and(is_next)
                && let Some(section) = self.waiting.pop_front()
            {
                self.load(&section)?;
                self.close()?;
                continue;
            }
            return Ok(first.map(|(_, _, i)| i));
        }
    }

    /// Moves to the next message of any section.
    fn advance_to_section(&mut self) -> Result<Option<Timestamp>, RecordingError> {
        self.current = None;
        if let Some(fault) = self.faults.pop_front() {
            return Err(fault);
        }
        self.close()?;
        let Some(current) = self.find()? else {
            let cut = self.cut.take().or_else(|| self.hidden());
            return cut.map_or(Ok(None), Err);
        };
        self.current = Some(current);
        let section = &mut self.open[current];
        section.next += 1;
        Ok(Some(timestamp(section.entries[section.next - 1].log_time)))
    }

    /// Returns an error if the chunks contain fewer messages than the statistics count: their index omits channels.
    fn hidden(&mut self) -> Option<RecordingError> {
        let missing = self.expected.take()?.checked_sub(self.listed).filter(|missing| *missing > 0)?;
        let reason = format!(
            "its statistics count {missing} more messages than the chunks have that its index names for these topics: a \
             recovery tool such as `mcap recover` rebuilds the index"
        );
        let topics = (0..self.topics.len()).filter(|topic| self.selection.has_topic(*topic)).collect();
        Some(RecordingError::Damage { path: self.loader.path().to_owned(), offset: 0, reason, topics })
    }

    /// Closes the finished sections and reports their faults.
    fn close(&mut self) -> Result<(), RecordingError> {
        let is_done = |section: &OpenSection| section.next >= section.entries.len();
        while let Some(i) = self.open.iter().position(is_done) {
            let OpenSection { records, entries, fault, end, .. } = self.open.swap_remove(i);
            self.position = self.position.max(end);
            self.loader.spare.push(Buffers { records, entries });
            if let Some(fault) = fault {
                return Err(fault);
            }
        }
        Ok(())
    }
}

impl Recording for McapRecording {
    fn topics(&self) -> &[RecordedTopic] {
        &self.topics
    }

    fn select(&mut self, selection: Selection) {
        self.selection = selection;
        self.choose();
    }

    #[inline]
    fn advance(&mut self) -> Result<Option<Timestamp>, RecordingError> {
        // Usually the next message is in the same section, before the first of any other.
        if self.faults.is_empty()
            && self.current.is_some()
            && let [section] = &mut self.open[..]
            && let Some(entry) = section.entries.get(section.next)
            && self.waiting.front().is_none_or(|waiting| waiting.start > entry.log_time)
        {
            section.next += 1;
            return Ok(Some(timestamp(entry.log_time)));
        }
        self.advance_to_section()
    }

    #[inline]
    fn message(&self) -> Option<RecordedMessage<'_>> {
        let section = self.open.get(self.current?)?;
        let entry = section.entries.get(section.next.checked_sub(1)?)?;
        if !self.loader.has_heads() {
            let time = timestamp(entry.log_time);
            return Some(RecordedMessage {
                topic: entry.topic as usize,
                log_time: time,
                publish_time: time,
                is_timed: true,
                sequence: 0,
                payload: section.records.get(entry.start..entry.end)?,
            });
        }
        let head = section.records.get(entry.start - MESSAGE_HEAD..entry.start)?;
        let sequence = head[2..].first_chunk().copied().map_or(0, u32::from_le_bytes);
        let published = head[14..].first_chunk().copied().map_or(0, u64::from_le_bytes);
        Some(RecordedMessage {
            topic: entry.topic as usize,
            log_time: timestamp(entry.log_time),
            publish_time: timestamp(if published == 0 { entry.log_time } else { published }),
            is_timed: true,
            sequence,
            payload: section.records.get(entry.start..entry.end)?,
        })
    }

    fn span(&self) -> Option<(Timestamp, Timestamp)> {
        // The times in the header of an unfinished chunk are not valid yet.
        let whole = || self.sections.iter().filter(|section| !section.is_cut);
        let first = whole().map(|section| section.start).min()?;
        Some((timestamp(first), timestamp(whole().map(|section| section.end).max()?)))
    }

    fn end(&self) -> End {
        self.end.clone()
    }

    fn progress(&self) -> Progress {
        Progress { position: self.position, size: self.loader.size(), bytes_read: self.bytes_read }
    }
}

/// Returns a time of an MCAP file, which is in nanoseconds.
fn timestamp(time: u64) -> Timestamp {
    Timestamp::from_nanos(i64::try_from(time).unwrap_or(i64::MAX))
}
