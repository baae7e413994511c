//! Published messages kept for subscribers that missed them.
//!
//! Every numbered publisher copies its messages into blocks. A subscriber that detects a gap queries the key
//! `KEY/@rondel/SESSION/ENTITY` with the parameter `from`, and gets the blocks from that number on, up to [`REPLY`]
//! bytes; then it sends the next query. The publisher never waits for a subscriber here: a separate thread answers. The
//! parameters `by` and `at` are the name of the subscription and the number that it expects next: without `from` they
//! [confirm](super::consumers) the messages before it.
//!
//! Queries of advanced subscribers of zenoh-ext are answered [by their protocol](super::advanced).
//!
//! An answer is the next number of the publisher (8 bytes, little-endian like all numbers), then blocks: first number
//! (8), time of the first message in nanoseconds (8), number of messages (4), bytes of messages (4), messages. A
//! message is its length (4), the milliseconds since the time of its block (4), and its payload.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};

use ::zenoh::Wait;
use ::zenoh::key_expr::KeyExpr;
use ::zenoh::qos::Priority;
use ::zenoh::query::{Query, Queryable};
use ::zenoh::sample::SourceInfo;
use ::zenoh::session::EntityGlobalId;
use rondel_event::Timestamp;

use super::advanced;
use super::consumers::{Consumers, Positions};
use super::envelope::PublisherId;
use super::publisher::{PublishGate, Ros2Metadata};
use super::watch::{Sent, Watch};
use crate::adapter::now;

/// Size of a block: below the 64 KiB that a transport sends without fragmentation.
const BLOCK: usize = 60_000;
/// Size of an answer, unless its first block is larger.
const REPLY: usize = 1 << 20;
/// Size of a message beside its payload, in bytes.
const HEAD: usize = 8;
/// Parameter with the first requested number.
const FROM: &str = "from";
/// Parameter with the name of the subscription.
const BY: &str = "by";
/// Parameter with the number that it expects next.
const AT: &str = "at";

/// Messages kept by the publishers of a session.
#[derive(Debug)]
pub(super) struct ResendCache {
    limit: usize,
    used: AtomicUsize,
    /// Time of the last tick: reading the clock for every message would cost more than copying it.
    time: AtomicI64,
    all: Mutex<Vec<Weak<PublisherCache>>>,
    queries: mpsc::Sender<(Query, Weak<PublisherCache>)>,
}

/// Messages kept by a publisher.
#[derive(Debug)]
pub(super) struct PublisherCache {
    cache: Arc<ResendCache>,
    sent: Arc<Sent>,
    /// Key and id of the published messages.
    source: Option<(KeyExpr<'static>, EntityGlobalId)>,
    ros2: Option<Ros2Metadata>,
    /// Positions of the subscriptions.
    positions: Arc<Positions>,
    blocks: Mutex<VecDeque<Block>>,
    /// Number of bytes in the blocks.
    bytes: AtomicUsize,
}

/// Keeps the messages of a publisher for its subscriptions until it is dropped.
#[derive(Debug)]
pub(super) struct CachedPublisher {
    pub(super) kept: Arc<PublisherCache>,
    pub(super) consumers: Consumers,
    _queryables: Vec<Queryable<()>>,
}

#[derive(Debug)]
struct Block {
    first: u64,
    count: u32,
    since: i64,
    bytes: Vec<u8>,
}

impl ResendCache {
    /// Starts to answer for the publishers of a session, which keep up to `limit` bytes together.
    pub(super) fn start(
        limit: usize,
        gate: Arc<PublishGate>,
        watch: Weak<Watch>,
    ) -> std::io::Result<Arc<ResendCache>> {
        let (queries, requests) = mpsc::channel::<(Query, Weak<PublisherCache>)>();
        let answer = move || {
            // Until the session and its queryables are gone.
            for (query, kept) in requests {
                let (Some(kept), Some(watch)) = (kept.upgrade(), watch.upgrade()) else { continue };
                // Messages lost so far are counted before they are subtracted.
                watch.look();
                kept.answer(&query, &gate, &watch);
            }
        };
        std::thread::Builder::new().name("zenoh resend".to_owned()).spawn(answer)?;
        let (used, all) = (AtomicUsize::new(0), Mutex::default());
        Ok(Arc::new(ResendCache { limit, used, time: AtomicI64::new(now().as_nanos()), all, queries }))
    }

    /// Updates the time.
    pub(super) fn tick(&self) {
        self.time.store(now().as_nanos(), Ordering::Relaxed);
    }

    /// Keeps the messages of a publisher, and answers for it until the result is dropped.
    pub(super) fn keep(
        self: &Arc<ResendCache>,
        session: &::zenoh::Session,
        key: &KeyExpr<'static>,
        publisher: EntityGlobalId,
        sent: &Arc<Sent>,
        priority: Priority,
        ros2: Option<Ros2Metadata>,
    ) -> Result<CachedPublisher, ::zenoh::Error> {
        let session_id = publisher.zid();
        let id = PublisherId { session: &session_id, entity: publisher.eid() };
        let counted = Arc::clone(sent);
        let published = move || counted.count.load(Ordering::Relaxed);
        let consumers = Consumers::observe(session, key, id, priority, published)?;
        let kept = PublisherCache {
            cache: Arc::clone(self),
            sent: Arc::clone(sent),
            source: Some((key.clone(), publisher)),
            ros2,
            positions: Arc::clone(&consumers.positions),
            blocks: Mutex::default(),
            bytes: AtomicUsize::new(0),
        };
        let kept = Arc::new(kept);
        let declare = |place: String| {
            let (queries, own) = (self.queries.clone(), Arc::downgrade(&kept));
            let callback = move |query| _ = queries.send((query, Weak::clone(&own)));
            session.declare_queryable(place).complete(true).callback(callback).wait()
        };
        let mut queryables = vec![declare(place(key.as_str(), id))?];
        if kept.keeps() {
            queryables.push(declare(advanced::token(key.as_str(), id))?);
        }
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|kept| kept.strong_count() > 0);
        all.push(Arc::downgrade(&kept));
        Ok(CachedPublisher { kept, consumers, _queryables: queryables })
    }

    /// Drops the oldest messages of the publisher that keeps the most bytes. `own_blocks` are the locked blocks of the
    /// caller.
    fn make_room(&self, own: &PublisherCache, own_blocks: &mut VecDeque<Block>) -> Option<Vec<u8>> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let most = all.iter().filter_map(Weak::upgrade).max_by_key(|kept| kept.bytes.load(Ordering::Relaxed));
        drop(all);
        if let Some(most) = most
            && !std::ptr::eq(Arc::as_ptr(&most), own)
            // The other publisher may be making room itself.
            && let Ok(mut blocks) = most.blocks.try_lock()
        {
            return most.give_up(&mut blocks);
        }
        own.give_up(own_blocks)
    }
}

/// Returns the key of the queries to a publisher. No wildcard matches a part that begins with @.
pub(super) fn place(key: &str, PublisherId { session, entity }: PublisherId<'_>) -> String {
    format!("{key}/@rondel/{session}/{entity}")
}

impl PublisherCache {
    fn blocks(&self) -> MutexGuard<'_, VecDeque<Block>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether messages are kept. A subscriber gets the next number anyway: it shows that the last messages before a
    /// silence are missing.
    pub(super) fn keeps(&self) -> bool {
        self.cache.limit > 0
    }

    /// Assigns a number to the next message, and keeps it.
    #[inline]
    pub(super) fn push(&self, payload: &[u8]) -> u64 {
        if !self.keeps() {
            return self.sent.count.fetch_add(1, Ordering::Relaxed);
        }
        let size = HEAD + payload.len();
        let time = self.cache.time.load(Ordering::Relaxed);
        let mut blocks = self.blocks();
        // Under the lock, so that messages are kept in the order of their numbers.
        let number = self.sent.count.fetch_add(1, Ordering::Relaxed);
        let fits = blocks.back().is_some_and(|block| {
            block.bytes.len() + size <= BLOCK && block.first + u64::from(block.count) == number
        });
        if !fits && !self.begin(&mut blocks, number, time, size) {
            return number;
        }
        if let Some(block) = blocks.back_mut() {
            let millis = time.saturating_sub(block.since) / 1_000_000;
            block.bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            block.bytes.extend_from_slice(&u32::try_from(millis).unwrap_or(0).to_le_bytes());
            block.bytes.extend_from_slice(payload);
            block.count += 1;
        }
        number
    }

    /// Begins a block for a message of this size. Returns whether there is room.
    #[cold]
    fn begin(&self, blocks: &mut VecDeque<Block>, first: u64, since: i64, size: usize) -> bool {
        let wanted = size.max(BLOCK);
        if wanted > self.cache.limit || u32::try_from(size).is_err() {
            return false;
        }
        let mut spare = None;
        while self.cache.used.load(Ordering::Relaxed) + wanted > self.cache.limit {
            match self.cache.make_room(self, blocks) {
                Some(bytes) => spare = Some(bytes),
                None => return false,
            }
        }
        let mut bytes = spare.filter(|bytes| bytes.capacity() >= wanted).unwrap_or_default();
        bytes.clear();
        bytes.reserve_exact(wanted);
        self.cache.used.fetch_add(wanted, Ordering::Relaxed);
        self.bytes.fetch_add(wanted, Ordering::Relaxed);
        blocks.push_back(Block { first, count: 0, since, bytes });
        true
    }

    /// Drops the oldest block, and returns its memory.
    fn give_up(&self, blocks: &mut VecDeque<Block>) -> Option<Vec<u8>> {
        let block = blocks.pop_front()?;
        let size = block.bytes.len().max(BLOCK);
        self.cache.used.fetch_sub(size, Ordering::Relaxed);
        self.bytes.fetch_sub(size, Ordering::Relaxed);
        Some(block.bytes)
    }

    /// Returns the kept messages from a number on, up to the size of an answer, and their number.
    fn from(&self, from: u64) -> (Vec<u8>, u64) {
        let blocks = self.blocks();
        let next = self.sent.count.load(Ordering::Relaxed);
        let mut reply = next.to_le_bytes().to_vec();
        let mut count = 0;
        let begin = blocks.partition_point(|block| block.first + u64::from(block.count) <= from);
        for block in blocks.range(begin..) {
            let skipped = from.saturating_sub(block.first);
            let mut rest = block.bytes.as_slice();
            for _ in 0..skipped {
                let Some(((length, _), after)) = head(rest) else { break };
                rest = after.get(length..).unwrap_or_default();
            }
            if reply.len() > 8 && reply.len() + rest.len() > REPLY {
                break;
            }
            let messages = block.count - skipped as u32;
            reply.extend_from_slice(&(block.first + skipped).to_le_bytes());
            reply.extend_from_slice(&block.since.to_le_bytes());
            reply.extend_from_slice(&messages.to_le_bytes());
            reply.extend_from_slice(&(rest.len() as u32).to_le_bytes());
            reply.extend_from_slice(rest);
            count += u64::from(messages);
        }
        (reply, count)
    }

    fn answer(&self, query: &Query, gate: &PublishGate, watch: &Watch) {
        let parameters = query.parameters();
        let number = |name| parameters.get(name).and_then(|text| text.parse::<u32>().ok());
        // On the wire, numbers have 32 bits and wrap around.
        let next = self.sent.count.load(Ordering::Relaxed);
        let whole = |number: u32| next.saturating_sub((next as u32).wrapping_sub(number).into());
        let (by, at, from) = (parameters.get(BY), number(AT), number(FROM));
        if let Some((by, at)) = by.zip(at) {
            self.positions.expects(by, whole(at));
        }
        let Some(from) = from else {
            if at.is_none() {
                self.answer_one_by_one(query, gate);
                watch.answered();
            }
            return;
        };
        let (reply, count) = self.from(whole(from));
        let sent = gate.answer(|| {
            // Blocks on congestion, as the query requests.
            query.reply(query.key_expr().clone(), reply).wait()
        });
        if let Some(Ok(())) = sent {
            self.sent.drops.take_back(count);
            tracing::debug!(key = %query.key_expr(), from, count, "sent messages again");
        }
    }
}

impl PublisherCache {
    /// Answers an advanced subscriber: each message is a reply.
    fn answer_one_by_one(&self, query: &Query, gate: &PublishGate) {
        let Some((key, id)) = &self.source else { return };
        let next = self.sent.count.load(Ordering::Relaxed);
        let Some((mut from, until)) = advanced::requested(query.parameters(), next) else { return };
        if let Some(ros2) = &self.ros2 {
            from = from.max(next.saturating_sub(ros2.depth));
        }
        while from < until {
            let (reply, _) = self.from(from);
            let (mut last, mut sent) = (None, 0);
            _ = read(&reply, |number, time, payload| {
                if number < until {
                    let reply =
                        query.reply(key.clone(), payload).source_info(SourceInfo::new(*id, number as u32));
                    let attachment = self.ros2.as_ref().map(|ros2| ros2.attachment(number, time));
                    let reply = reply.attachment(attachment.map(Vec::from));
                    sent += u64::from(matches!(gate.answer(|| reply.wait()), Some(Ok(()))));
                    last = Some(number);
                }
            });
            self.sent.drops.take_back(sent);
            match last {
                Some(last) => from = last + 1,
                None => break,
            }
        }
        tracing::debug!(key = %query.key_expr(), "sent messages again, to an advanced subscriber");
    }
}

/// An answer composed of single messages.
#[derive(Debug, Default)]
pub(super) struct Answer {
    next: u64,
    blocks: Vec<u8>,
}

impl Answer {
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Adds a message, as a block.
    pub(super) fn add(&mut self, number: u64, time: Timestamp, payload: &[u8]) {
        let Ok(length) = u32::try_from(payload.len() + HEAD) else { return };
        self.next = number + 1;
        for part in [&number.to_le_bytes()[..], &time.as_nanos().to_le_bytes(), &1u32.to_le_bytes()] {
            self.blocks.extend_from_slice(part);
        }
        for part in [length, length - HEAD as u32, 0] {
            self.blocks.extend_from_slice(&part.to_le_bytes());
        }
        self.blocks.extend_from_slice(payload);
    }

    /// Returns the answer, if it has a message.
    pub(super) fn finish(self) -> Option<Vec<u8>> {
        let whole = || [&self.next.to_le_bytes()[..], &self.blocks].concat();
        (!self.blocks.is_empty()).then(whole)
    }
}

impl Drop for PublisherCache {
    fn drop(&mut self) {
        self.cache.used.fetch_sub(self.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Reads the length and the milliseconds of the first message; returns them and the rest.
fn head(bytes: &[u8]) -> Option<((usize, u32), &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (millis, rest) = rest.split_first_chunk::<4>()?;
    Some(((u32::from_le_bytes(*length) as usize, u32::from_le_bytes(*millis)), rest))
}

/// Returns the selector that requests messages from a number on, for the subscription `by`, which expects the number
/// `at` next.
pub(super) fn selector(place: &str, by: &str, at: u32, from: u32) -> String {
    format!("{place}?{FROM}={from};{AT}={at};{BY}={by}")
}

/// Returns the selector that confirms the messages before the number `at`.
pub(super) fn confirmation(place: &str, by: &str, at: u32) -> String {
    format!("{place}?{AT}={at};{BY}={by}")
}

/// Calls `message` with the number, the time and the payload of each message of an answer. Returns the next number of
/// the publisher; `None` if the answer is invalid.
pub(super) fn read(mut reply: &[u8], mut message: impl FnMut(u64, Timestamp, &[u8])) -> Option<u64> {
    fn number<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
        let (number, rest) = bytes.split_first_chunk::<N>()?;
        *bytes = rest;
        Some(*number)
    }
    let next = u64::from_le_bytes(number(&mut reply)?);
    while !reply.is_empty() {
        let first = u64::from_le_bytes(number(&mut reply)?);
        let since = i64::from_le_bytes(number(&mut reply)?);
        let count = u32::from_le_bytes(number(&mut reply)?);
        let length = u32::from_le_bytes(number(&mut reply)?) as usize;
        let (mut messages, rest) = reply.split_at_checked(length)?;
        reply = rest;
        for i in 0..u64::from(count) {
            let ((length, millis), after) = head(messages)?;
            let (payload, after) = after.split_at_checked(length)?;
            messages = after;
            let time = since.saturating_add(i64::from(millis) * 1_000_000);
            message(first.checked_add(i)?, Timestamp::from_nanos(time), payload);
        }
    }
    Some(next)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::adapter::Drops;
    use crate::zenoh::publisher::MatchedState;

    fn cache(limit: usize) -> Arc<ResendCache> {
        let (used, all) = (AtomicUsize::new(0), Mutex::default());
        Arc::new(ResendCache {
            limit,
            used,
            time: AtomicI64::new(7_000_000),
            all,
            queries: mpsc::channel().0,
        })
    }

    fn kept(cache: &Arc<ResendCache>) -> Arc<PublisherCache> {
        let (matched, drops) = (Arc::<MatchedState>::default(), Arc::<Drops>::default());
        let sent = Arc::new(Sent { count: AtomicU64::new(0), matched, drops });
        let kept = PublisherCache {
            cache: Arc::clone(cache),
            sent,
            source: None,
            ros2: None,
            positions: Arc::default(),
            blocks: Mutex::default(),
            bytes: AtomicUsize::new(0),
        };
        let kept = Arc::new(kept);
        kept.cache.all.lock().unwrap().push(Arc::downgrade(&kept));
        kept
    }

    /// Returns the numbers of an answer, whose messages are their numbers, and the next number.
    fn numbers_from(kept: &PublisherCache, from: u64) -> (Vec<u64>, u64) {
        let (reply, count) = kept.from(from);
        let mut numbers = Vec::new();
        let next = read(&reply, |number, time, payload| {
            assert_eq!(payload[..8], number.to_le_bytes());
            assert_eq!(time.as_nanos(), 7_000_000);
            numbers.push(number);
        });
        assert_eq!(numbers.len() as u64, count);
        (numbers, next.unwrap())
    }

    fn push(kept: &PublisherCache, count: usize, size: usize) {
        for _ in 0..count {
            let number = kept.sent.count.load(Ordering::Relaxed);
            let mut payload = number.to_le_bytes().to_vec();
            payload.resize(size, 0);
            assert_eq!(kept.push(&payload), number);
        }
    }

    #[test]
    fn messages_are_found_from_any_number_on() {
        let kept = kept(&cache(10_000_000));
        push(&kept, 5_000, 100);
        assert_eq!(numbers_from(&kept, 0), ((0..5_000).collect(), 5_000));
        assert_eq!(numbers_from(&kept, 4_321), ((4_321..5_000).collect(), 5_000));
        assert_eq!(numbers_from(&kept, 5_000), (Vec::new(), 5_000));
        // An answer has a limit, unless a single block exceeds it.
        push(&kept, 1, 3_000_000);
        push(&kept, 10, 100);
        assert_eq!(numbers_from(&kept, 4_999).0, [4_999]);
        assert_eq!(numbers_from(&kept, 5_000).0, [5_000]);
        assert_eq!(numbers_from(&kept, 5_001), ((5_001..5_011).collect(), 5_011));
    }

    #[test]
    fn the_oldest_are_given_up_of_the_publisher_that_keeps_most() {
        let cache = cache(10 * BLOCK);
        let (one, other) = (kept(&cache), kept(&cache));
        push(&one, 5_000, 1_000);
        let (numbers, next) = numbers_from(&one, 0);
        assert_eq!((next, numbers.last()), (5_000, Some(&4_999)));
        assert!((530..600).contains(&numbers.len()), "{}", numbers.len());
        push(&other, 5_000, 1_000);
        for kept in [&one, &other] {
            let count = numbers_from(kept, 0).0.len();
            assert!((220..300).contains(&count), "{count}");
        }
        // Too large to be kept, unlike the next one.
        push(&other, 1, 11 * BLOCK);
        push(&other, 1, 8);
        assert_eq!(numbers_from(&other, 5_000), (vec![5_001], 5_002));
        drop(other);
        push(&one, 5_000, 1_000);
        assert!((530..600).contains(&numbers_from(&one, 0).0.len()));
        assert!(cache.used.load(Ordering::Relaxed) <= cache.limit);
    }

    #[test]
    fn broken_answers_are_refused() {
        let kept = kept(&cache(1_000_000));
        push(&kept, 10, 20);
        let (reply, _) = kept.from(0);
        for length in (0..8).chain(9..reply.len()) {
            assert_eq!(read(&reply[..length], |_, _, _| ()), None, "{length}");
        }
    }
}
