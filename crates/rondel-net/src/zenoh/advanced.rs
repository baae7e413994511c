//! Protocol of Zenoh's own advanced publishers and subscribers (zenoh-ext), as far as missed messages need it.
//!
//! An advanced publisher with a cache answers queries on `KEY/@adv/pub/SESSION/ENTITY/…` with the samples whose numbers
//! are in the parameter `_sn` (`first..last`, both inclusive and optional), or with the last `_max` ones, each as a
//! separate reply with its number. An advanced subscriber with recovery sends such a query after a gap.

use std::sync::{Mutex, PoisonError, mpsc};

use ::zenoh::query::Parameters;
use ::zenoh::sample::Sample;
use ::zenoh::session::ZenohId;
use rondel_event::Timestamp;

use super::envelope::PublisherId;
use super::resend;
use crate::ros2::Attachment;

/// Part between the key of a publisher and its ids.
const PUBLISHER: &str = "@adv/pub";
/// Parameter of a query with the range of numbers.
const NUMBERS: &str = "_sn";
const LAST: &str = "_max";
/// Limit of an answer, in bytes; the rest is requested again.
const ANSWER: usize = 4 << 20;

/// Returns the key below which a publisher answers.
pub(super) fn place(key: &str, PublisherId { session, entity }: PublisherId<'_>) -> String {
    format!("{key}/{PUBLISHER}/{session}/{entity}")
}

/// Returns the key expression of the tokens of publishers that keep messages and can be detected.
pub(super) fn detection(key: &str) -> String {
    format!("{key}/{PUBLISHER}/**")
}

/// Returns the key of the token by which a publisher is detected.
pub(super) fn token(key: &str, publisher: PublisherId<'_>) -> String {
    format!("{}/_", place(key, publisher))
}

/// Returns the key, the session and the entity of a publisher from the key of its token.
pub(super) fn detected(token: &str) -> Option<(&str, ZenohId, u32)> {
    let (key, rest) = token.split_once(&format!("/{PUBLISHER}/"))?;
    let mut parts = rest.split('/');
    // An entity without a number uses times as the numbers of its messages.
    Some((key, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Returns the selector that requests the messages from a number on.
pub(super) fn selector(place: &str, from: u32) -> String {
    format!("{place}/**?{NUMBERS}={from}..")
}

/// Returns the range of messages requested by a query, end exclusive; `next` is the number of the next message.
pub(super) fn requested(parameters: &Parameters<'_>, next: u64) -> Option<(u64, u64)> {
    // On the wire, numbers have 32 bits and wrap around.
    let whole = |number: u32| next.saturating_sub((next as u32).wrapping_sub(number).into());
    match parameters.get(NUMBERS) {
        Some(range) => {
            let (first, last) = range.split_once("..").unwrap_or((range, range));
            let first = first.parse().map_or(0, whole);
            // A number beyond the next one would look like an old one.
            let last =
                last.parse::<u32>().ok().filter(|last| (next as u32).wrapping_sub(*last) <= u32::MAX / 2);
            Some((first, last.map_or(next, |last| (whole(last) + 1).min(next))))
        }
        None => {
            let count = parameters.get(LAST)?.parse::<u64>().ok()?;
            Some((next.saturating_sub(count), next))
        }
    }
}

/// Collects several replies as one answer, which is sent when it is dropped.
pub(super) struct Replies {
    sender: mpsc::Sender<Vec<u8>>,
    all: Mutex<resend::Answer>,
}

impl Replies {
    pub(super) fn new(sender: mpsc::Sender<Vec<u8>>) -> Replies {
        Replies { sender, all: Mutex::default() }
    }

    /// Adds a reply.
    pub(super) fn add(&self, sample: &Sample) {
        let Some(info) = sample.source_info() else { return };
        // Publishers of ROS 2 attach the time of publication.
        let attached = sample.attachment().and_then(|bytes| Attachment::read(&bytes.to_bytes()));
        let time = attached
            .map(|attachment| attachment.source_time.as_nanos())
            .or_else(|| sample.timestamp().and_then(|time| i64::try_from(time.get_time().as_nanos()).ok()));
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < ANSWER {
            let time = Timestamp::from_nanos(time.unwrap_or(0));
            all.add(info.source_sn().into(), time, &sample.payload().to_bytes());
        }
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        let all = std::mem::take(&mut *self.all.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(answer) = all.finish() {
            // The receiver may have stopped waiting.
            _ = self.sender.send(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_numbers_with_32_bits() {
        let turn = 1 << 32;
        for (parameters, next, expected) in [
            ("_sn=3..", 10, Some((3, 10))),
            ("_sn=3..5", 10, Some((3, 6))),
            ("_sn=..5", 10, Some((0, 6))),
            ("_sn=..", 10, Some((0, 10))),
            ("_sn=7", 10, Some((7, 8))),
            ("_sn=3..99", 10, Some((3, 10))),
            ("_sn=4294967290..", turn + 5, Some((turn - 6, turn + 5))),
            ("_sn=4294967290..2", turn + 5, Some((turn - 6, turn + 3))),
            ("_max=4", 10, Some((6, 10))),
            ("_max=40", 10, Some((0, 10))),
            ("_max=x", 10, None),
            ("", 10, None),
        ] {
            assert_eq!(requested(&Parameters::from(parameters), next), expected, "{parameters} {next}");
        }
    }

    #[test]
    fn publishers_are_detected_by_their_tokens() {
        let session: ZenohId = "8b20917502ee955ac4476e0266340d5c".parse().unwrap();
        let token = token("0/a/b", PublisherId { session: &session, entity: 7 });
        assert_eq!(detected(&token), Some(("0/a/b", session, 7)));
        assert!(crate::zenoh::keys_meet(&token, &detection("0/*/b")));
        for other in
            ["0/a/b", "0/a/@adv/pub", "0/a/@adv/pub/x/7", "0/a/@adv/pub/8b/uhlc/_", "0/a/@adv/sub/8b/7/_"]
        {
            assert_eq!(detected(other), None, "{other}");
        }
    }

    #[test]
    fn replies_become_one_answer() {
        let mut answer = resend::Answer::default();
        for (number, payload) in [(4, "a"), (5, ""), (7, "bc")] {
            answer.add(number, Timestamp::from_nanos(9), payload.as_bytes());
        }
        let mut all = Vec::new();
        let next = resend::read(&answer.finish().unwrap(), |number, time, payload| {
            assert_eq!(time.as_nanos(), 9);
            all.push((number, payload.to_vec()));
        });
        assert_eq!((next, all.len(), &all[2]), (Some(8), 3, &(7, b"bc".to_vec())));
        assert_eq!(resend::Answer::default().finish(), None);
    }
}
