//! Messages of ROS 1 as JSON, for networks without readers of their encoding.

use std::path::PathBuf;
use std::sync::Arc;

use rondel_decode::json::JsonForm;
use rondel_decode::{Encoding, MessageWriter};
use rondel_event::Timestamp;
use rondel_recording::{
    End, Progress, RecordedMessage, RecordedTopic, Recording, RecordingError, Selection, WantedField,
};

use crate::schemas::recorded_types::{encoding, message_type};

/// The largest message in JSON, in bytes.
const LARGEST: usize = 256 << 20;

/// A recording whose messages in the encoding of ROS 1 become JSON.
pub(super) struct AsJson {
    path: PathBuf,
    inner: Box<dyn Recording>,
    topics: Vec<RecordedTopic>,
    /// Writer of the messages of each topic, or the reason why they cannot be written; `None` for other encodings.
    writers: Vec<Option<Result<MessageWriter, String>>>,
    payload: Vec<u8>,
    is_written: bool,
}

impl AsJson {
    /// Wraps a recording that has messages of ROS 1; returns any other unchanged.
    pub(super) fn of(path: PathBuf, inner: Box<dyn Recording>) -> Box<dyn Recording> {
        let is_ros1 = |topic: &RecordedTopic| encoding(topic) == Some(Encoding::Ros1);
        if !inner.topics().iter().any(is_ros1) {
            return inner;
        }
        let writer = |topic: &RecordedTopic| {
            let schema = topic.schema.as_ref().ok_or("the recording has no definition of their type")?;
            let found = message_type(schema, Encoding::Ros1)?;
            MessageWriter::new(Encoding::Ros1, Some(Arc::new(found)), JsonForm::EXACT)
                .map_err(|error| error.to_string())
        };
        let mut topics = inner.topics().to_vec();
        let writers = topics.iter().map(|topic| is_ros1(topic).then(|| writer(topic))).collect();
        for topic in topics.iter_mut().filter(|topic| is_ros1(topic)) {
            topic.encoding = "json".to_owned();
        }
        Box::new(AsJson { path, inner, topics, writers, payload: Vec::new(), is_written: false })
    }

    /// Writes the current message as JSON if it is one of ROS 1.
    fn write(&mut self) -> Result<(), RecordingError> {
        self.is_written = false;
        let Some(message) = self.inner.message() else { return Ok(()) };
        let topic = message.topic;
        let Some(Some(writer)) = self.writers.get(topic) else { return Ok(()) };
        self.payload.clear();
        let written = match writer {
            Ok(writer) => {
                writer.write(message.payload, LARGEST, &mut self.payload).map_err(|error| error.to_string())
            }
            Err(reason) => Err(reason.clone()),
        };
        self.is_written = true;
        written.map_err(|reason| RecordingError::Damage {
            path: self.path.clone(),
            offset: 0,
            reason: format!("a message on {} cannot be written as JSON: {reason}", self.topics[topic].name),
            topics: vec![topic],
        })
    }
}

impl Recording for AsJson {
    fn topics(&self) -> &[RecordedTopic] {
        &self.topics
    }

    fn select(&mut self, selection: Selection) {
        self.inner.select(selection);
    }

    fn want(&mut self, topic: usize, fields: &[WantedField]) {
        self.inner.want(topic, fields);
    }

    fn advance(&mut self) -> Result<Option<Timestamp>, RecordingError> {
        let time = self.inner.advance()?;
        if time.is_some() {
            self.write()?;
        }
        Ok(time)
    }

    fn message(&self) -> Option<RecordedMessage<'_>> {
        let message = self.inner.message()?;
        Some(if self.is_written { RecordedMessage { payload: &self.payload, ..message } } else { message })
    }

    fn span(&self) -> Option<(Timestamp, Timestamp)> {
        self.inner.span()
    }

    fn end(&self) -> End {
        self.inner.end()
    }

    fn progress(&self) -> Progress {
        self.inner.progress()
    }
}
