//! Messages before `--from` that a subscriber which joins at that time still receives: the last ones of publishers that
//! keep them (`transient_local`, "latched" in ROS 1).

use std::collections::VecDeque;

use rondel_event::Timestamp;
use rondel_net::ros2::qos::{Durability, History};
use rondel_recording::{RecordedTopic, Recording, RecordingError, Selection};

use crate::schemas::offered::{PROFILES, offered};

/// The most messages that are kept of one topic, also where its publisher keeps all.
const MOST: usize = 1000;
/// The most bytes of messages that are kept.
const MOST_BYTES: usize = 256 << 20;

/// A message that was kept.
#[derive(Debug)]
pub(super) struct Kept {
    /// The position of its topic in the recording.
    pub(super) topic: usize,
    pub(super) payload: Vec<u8>,
}

/// Number of messages that the publishers of a topic keep for later subscribers; 0 if none or unknown.
fn depth(topic: &RecordedTopic) -> usize {
    let profiles = topic.metadata.iter().find(|(name, _)| name == PROFILES);
    let Some(Ok(Some(quality))) = profiles.map(|(_, text)| offered(text)) else { return 0 };
    match (quality.durability, quality.history) {
        (Some(Durability::TransientLocal), Some(History::KeepAll)) => MOST,
        (Some(Durability::TransientLocal), _) => {
            quality.depth.map_or(1, |depth| usize::try_from(depth).unwrap_or(MOST).clamp(1, MOST))
        }
        _ => 0,
    }
}

/// Returns the messages before `from` that publishers kept, on the topics that are read, in their order. The recording
/// must be at its beginning.
///
/// # Errors
/// An unreadable part: messages may be missing.
pub(super) fn kept_before(
    recording: &mut dyn Recording,
    is_read: &[bool],
    from: Timestamp,
) -> Result<Vec<Kept>, RecordingError> {
    let depths: Vec<usize> = recording
        .topics()
        .iter()
        .zip(is_read)
        .map(|(topic, is_read)| if *is_read { depth(topic) } else { 0 })
        .collect();
    if depths.iter().all(|depth| *depth == 0) {
        return Ok(Vec::new());
    }
    let mut selection = Selection::of_topics(depths.iter().map(|depth| *depth > 0).collect());
    selection.until = Timestamp::from_nanos(from.as_nanos().saturating_sub(1));
    recording.select(selection);
    // By position of the topic, with the number of the message.
    let mut kept: Vec<VecDeque<(u64, Vec<u8>)>> = depths.iter().map(|_| VecDeque::new()).collect();
    let (mut number, mut bytes) = (0, 0);
    while let Some(message) = recording.next()? {
        let (queue, depth) = (&mut kept[message.topic], depths[message.topic]);
        if queue.len() >= depth {
            bytes -= queue.pop_front().map_or(0, |(_, payload)| payload.len());
        }
        if bytes + message.payload.len() > MOST_BYTES {
            continue;
        }
        bytes += message.payload.len();
        queue.push_back((number, message.payload.to_vec()));
        number += 1;
    }
    let messages = kept.into_iter().enumerate().flat_map(|(topic, queue)| {
        queue.into_iter().map(move |(number, payload)| (number, Kept { topic, payload }))
    });
    let mut messages: Vec<(u64, Kept)> = messages.collect();
    messages.sort_by_key(|(number, _)| *number);
    Ok(messages.into_iter().map(|(_, message)| message).collect())
}
