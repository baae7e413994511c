//! Several recordings merged by the times of their messages.

use std::collections::VecDeque;

use rondel_event::Timestamp;

use crate::recording::{
    End, Progress, RecordedMessage, RecordedTopic, Recording, RecordingError, Selection, WantedField,
};

/// Recordings merged by time of recording. Their topics are concatenated.
pub struct Merged {
    parts: Vec<Part>,
    topics: Vec<RecordedTopic>,
    /// Faults to report first.
    faults: VecDeque<RecordingError>,
    /// Ends of parts that are cut off, reported once the others have been read.
    cuts: VecDeque<RecordingError>,
    /// Index of the part with the current message.
    current: Option<usize>,
}

struct Part {
    recording: Box<dyn Recording>,
    /// Position of its first topic among all.
    first_topic: usize,
    next: Next,
}

/// The next message of a part.
enum Next {
    /// Not determined yet.
    Unknown,
    /// Its time.
    At(Timestamp),
    /// The part has ended.
    None,
}

impl Merged {
    /// Merges recordings; `faults`, which concern them as a whole, are reported first.
    pub fn new(recordings: Vec<Box<dyn Recording>>, faults: Vec<RecordingError>) -> Merged {
        let mut topics = Vec::new();
        let mut parts = Vec::new();
        for recording in recordings {
            let first_topic = topics.len();
            topics.extend_from_slice(recording.topics());
            parts.push(Part { recording, first_topic, next: Next::Unknown });
        }
        Merged { parts, topics, faults: faults.into(), cuts: VecDeque::new(), current: None }
    }
}

impl Recording for Merged {
    fn topics(&self) -> &[RecordedTopic] {
        &self.topics
    }

    fn select(&mut self, selection: Selection) {
        for part in &mut self.parts {
            let topics = selection.topics.iter().skip(part.first_topic).take(part.recording.topics().len());
            part.recording.select(Selection { topics: topics.copied().collect(), ..selection });
        }
    }

    fn want(&mut self, topic: usize, fields: &[WantedField]) {
        let part = self.parts.iter_mut().rfind(|part| part.first_topic <= topic);
        if let Some(part) = part {
            part.recording.want(topic - part.first_topic, fields);
        }
    }

    fn advance(&mut self) -> Result<Option<Timestamp>, RecordingError> {
        if let Some(fault) = self.faults.pop_front() {
            return Err(fault);
        }
        if let Some(part) = self.current.take().and_then(|current| self.parts.get_mut(current)) {
            part.next = Next::Unknown;
        }
        let mut first: Option<(Timestamp, usize)> = None;
        for (i, part) in self.parts.iter_mut().enumerate() {
            if matches!(part.next, Next::Unknown) {
                let next = part.recording.advance();
                part.next = match next {
                    Ok(next) => next.map_or(Next::None, Next::At),
                    Err(RecordingError::Damage { path, offset, reason, topics }) => {
                        let topics = topics.into_iter().map(|topic| topic + part.first_topic).collect();
                        return Err(RecordingError::Damage { path, offset, reason, topics });
                    }
                    Err(RecordingError::Row { path, line, reason, topics }) => {
                        let topics = topics.into_iter().map(|topic| topic + part.first_topic).collect();
                        return Err(RecordingError::Row { path, line, reason, topics });
                    }
                    Err(cut @ RecordingError::Cut { .. }) => {
                        self.cuts.push_back(cut);
                        Next::None
                    }
                    // The other parts can still be read.
                    Err(other) => {
                        let topics = part.first_topic..part.first_topic + part.recording.topics().len();
                        part.next = Next::None;
                        return Err(other.into_damage(topics.collect()));
                    }
                };
            }
            if let Next::At(time) = part.next
                && first.is_none_or(|(earliest, _)| time < earliest)
            {
                first = Some((time, i));
            }
        }
        self.current = first.map(|(_, i)| i);
        match first {
            Some((time, _)) => Ok(Some(time)),
            None => self.cuts.pop_front().map_or(Ok(None), Err),
        }
    }

    fn message(&self) -> Option<RecordedMessage<'_>> {
        let part = self.parts.get(self.current?)?;
        let message = part.recording.message()?;
        Some(RecordedMessage { topic: message.topic + part.first_topic, ..message })
    }

    fn place(&self, offset: Option<usize>) -> Option<String> {
        self.parts.get(self.current?)?.recording.place(offset)
    }

    fn span(&self) -> Option<(Timestamp, Timestamp)> {
        let spans = || self.parts.iter().filter_map(|part| part.recording.span());
        Some((spans().map(|(first, _)| first).min()?, spans().map(|(_, last)| last).max()?))
    }

    fn end(&self) -> End {
        self.parts.iter().map(|part| part.recording.end()).fold(End::default(), End::and)
    }

    fn progress(&self) -> Progress {
        let all = self.parts.iter().map(|part| part.recording.progress());
        all.fold(Progress::default(), |sum, part| Progress {
            position: sum.position + part.position,
            size: sum.size + part.size,
            bytes_read: sum.bytes_read + part.bytes_read,
        })
    }
}
