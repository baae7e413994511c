//! Numbers of a subscription's publishers, and the messages held behind a gap.

mod heartbeats;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use ::zenoh::sample::SourceInfo;
use ::zenoh::session::ZenohId;
use rondel_event::{NameId, Origin, Timestamp, TopicId, TypeIndex};

use super::{AGAIN, PendingRequest, QueryKeys, RecoveredSubscription, Recoverer};
use crate::adapter::{Outage, Receiver, Sample, now};
use crate::zenoh::envelope::publisher_of;
use crate::zenoh::ros2::types::FurtherTypes;
use crate::zenoh::{advanced, resend};
use heartbeats::LastHeartbeat;

/// Number of publishers whose numbers are compared without a lock.
const SLOTS: usize = 64;
/// Limit of publishers of a subscription; for further ones nothing is fetched.
const PUBLISHERS: usize = 4096;
/// Limit of the bytes of held messages of a publisher.
const HELD: usize = 4 << 20;
/// Timeout for a publisher that has never answered; other numbering publishers than Rondel's never do.
const UNKNOWN: Duration = Duration::from_secs(1);
/// Timeout for a publisher that has answered before, and for fetching without progress.
const PATIENCE: Duration = Duration::from_secs(5);
/// Silence of a publisher before it is queried, initially and at most.
const SILENCE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// The numbers of the publishers of one subscription.
pub(in crate::zenoh) struct Numbers<R: ?Sized> {
    topic: TopicId,
    name: String,
    /// Name of the subscription in its queries.
    by: String,
    receiver: Arc<R>,
    wants_idle: bool,
    /// Name of the topic of each publisher, if the receiver numbers names.
    names: Option<Mutex<HashMap<u64, NameId>>>,
    /// Types of publishers with another type than the subscription, if their messages are read.
    types: Option<Arc<FurtherTypes>>,
    /// A part of the publisher's hash and the number of its next message; 0 for a free slot.
    slots: [AtomicU64; SLOTS],
    table: Mutex<Table>,
    /// Held while messages are delivered, except those in order.
    delivering: Mutex<()>,
    closed: AtomicBool,
    /// Whether messages may arrive. Before that nothing is fetched: messages published meanwhile would be missed.
    begun: AtomicBool,
    recoverer: Arc<Recoverer>,
}

impl<R: ?Sized> std::fmt::Debug for Numbers<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Numbers").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Table {
    publishers: HashMap<u64, Numbered>,
    /// Publisher of each slot.
    occupants: HashMap<usize, u64>,
    /// Publishers with a gap.
    gaps: Vec<u64>,
    /// Last heartbeat of each publisher that was not compared yet.
    heartbeats: HashMap<u64, LastHeartbeat>,
    /// Number of messages missing after the last one received.
    missing: u64,
}

/// A publisher.
#[derive(Debug)]
struct Numbered {
    keys: QueryKeys,
    /// Next number, unless a slot has it.
    next: u32,
    /// Last fetched range of numbers, end exclusive. Its messages may be received again.
    fetched: Option<(u32, u32)>,
    answers: Responsiveness,
    gap: Option<Gap>,
    silence: Silence,
    /// Whether messages carry the time of their publication.
    timed: bool,
    /// Whether it keeps messages, as far as known. A publisher that does not still answers with its next number.
    keeps: bool,
    /// Its next number when it answered that it does not have the messages before it.
    until: Option<u32>,
}

/// Result of earlier queries to a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Responsiveness {
    Unknown,
    Yes,
    No,
}

/// Messages that are missing, or may be.
#[derive(Debug)]
struct Gap {
    since: Instant,
    from: Timestamp,
    /// The first fetched number.
    first: u32,
    held: VecDeque<Held>,
    bytes: usize,
    request: Option<PendingRequest>,
    /// Time of the next request.
    due: Instant,
    fetched: u64,
    /// Next number of the publisher, as far as known.
    until: Option<u32>,
    /// Smallest distance to the publisher so far, and the time since which it has not shrunk.
    distance: (u32, Instant),
    /// Whether the messages were published before the publisher was discovered: all that it keeps are fetched, and none
    /// is missing.
    history: bool,
}

/// A message received after a gap.
#[derive(Debug)]
struct Held {
    number: u32,
    time: Option<Timestamp>,
    payload: Box<[u8]>,
}

/// Silence of a publisher.
#[derive(Debug)]
struct Silence {
    number: u32,
    since: Instant,
    /// `since` by the wall clock.
    at: Timestamp,
    wait: Duration,
    /// Whether it was queried, and nothing was missing.
    known: bool,
    request: Option<PendingRequest>,
}

impl Numbered {
    /// Creates a publisher whose next message has this number.
    fn new(key: &str, id: (&ZenohId, u32), next: u32, timed: bool) -> Numbered {
        let (own, of_advanced) = (resend::place(key, id), advanced::place(key, id));
        let keys = QueryKeys { own, of_advanced, advanced: false };
        let (answers, fetched, gap, silence) = (Responsiveness::Unknown, None, None, Silence::new(next));
        Numbered { keys, next, fetched, answers, gap, silence, timed, keeps: true, until: None }
    }
}

impl Gap {
    fn new(first: u32) -> Gap {
        let now_at = Instant::now();
        Gap {
            since: now_at,
            from: now(),
            first,
            held: VecDeque::new(),
            bytes: 0,
            until: None,
            request: None,
            due: now_at,
            fetched: 0,
            distance: (u32::MAX, now_at),
            history: false,
        }
    }

    fn hold(&mut self, held: Held) {
        self.bytes += held.payload.len() + size_of::<Held>();
        self.held.push_back(held);
    }

    fn release(&mut self) -> Option<Held> {
        let held = self.held.pop_front()?;
        self.bytes -= held.payload.len() + size_of::<Held>();
        Some(held)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the distance from `next` to `number`; negative if `number` is before it.
fn beyond(number: u32, next: u32) -> i32 {
    number.wrapping_sub(next) as i32
}

/// Returns the slot of a publisher, and the word in it for a number.
#[inline]
fn word(publisher: u64, number: u32) -> (usize, u64) {
    ((publisher >> 58) as usize % SLOTS, ((publisher | 1) << 32) | u64::from(number))
}

impl<R: Receiver + ?Sized> Numbers<R> {
    /// Starts to compare numbers.
    pub(in crate::zenoh) fn new(
        recoverer: &Arc<Recoverer>,
        (name, topic): (String, TopicId),
        receiver: Arc<R>,
        types: Option<Arc<FurtherTypes>>,
    ) -> Arc<Numbers<R>> {
        let numbers = Arc::new(Numbers {
            topic,
            name,
            by: recoverer.name(),
            wants_idle: receiver.wants_idle(),
            names: receiver.wants_names(topic).then(Mutex::default),
            receiver,
            types,
            slots: [const { AtomicU64::new(0) }; SLOTS],
            table: Mutex::default(),
            delivering: Mutex::default(),
            closed: AtomicBool::new(false),
            begun: AtomicBool::new(false),
            recoverer: Arc::clone(recoverer),
        });
        let attended: Weak<dyn RecoveredSubscription> = {
            let weak: Weak<Numbers<R>> = Arc::downgrade(&numbers);
            weak
        };
        recoverer.all.lock().unwrap_or_else(PoisonError::into_inner).push(attended);
        numbers
    }

    /// Records a message without a number: see [`Watch::unnumbered`](super::super::watch::Watch::unnumbered).
    pub(in crate::zenoh) fn unnumbered(&self, reported: usize) -> Vec<Outage> {
        self.recoverer.watch.upgrade().map_or_else(Vec::new, |watch| watch.unnumbered(reported))
    }

    /// Returns the number of connections opened so far.
    pub(in crate::zenoh) fn connections(&self) -> Arc<AtomicU64> {
        self.recoverer.watch.upgrade().map(|watch| watch.connections()).unwrap_or_default()
    }

    /// Fetches the kept messages of a publisher discovered at this key, before its first message is delivered.
    pub(in crate::zenoh) fn announce(&self, key: &str, (session, entity): (&ZenohId, u32)) {
        let publisher = publisher_of(session, entity);
        let table = &mut *self.table();
        if self.closed() || table.publishers.contains_key(&publisher) || table.publishers.len() >= PUBLISHERS
        {
            return;
        }
        let mut numbered = Numbered::new(key, (session, entity), 0, true);
        numbered.keys.advanced = true;
        if self.names.is_some() {
            match self.receiver.number(self.topic, key) {
                None => return,
                name => self.note_name(publisher, name),
            }
        }
        numbered.gap = Some(Gap { history: true, ..Gap::new(0) });
        table.publishers.insert(publisher, numbered);
        table.gaps.push(publisher);
        self.recoverer.wake();
    }

    /// Starts to fetch: messages may arrive from now on.
    pub(in crate::zenoh) fn begin(&self) {
        self.begun.store(true, Ordering::Release);
        self.recoverer.wake();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether to deliver a message now. Otherwise it is held, or was fetched before.
    #[inline]
    pub(in crate::zenoh) fn pass(
        &self,
        origin: Origin,
        info: &SourceInfo,
        key: &str,
        sample: &Sample<'_>,
    ) -> bool {
        let number = origin.number as u32;
        let (slot, announced) = word(origin.publisher, number);
        let next = word(origin.publisher, number.wrapping_add(1)).1;
        let slot = &self.slots[slot];
        if slot.load(Ordering::Relaxed) == announced
            && slot.compare_exchange(announced, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            return true;
        }
        self.pass_slowly(origin, info, key, sample)
    }

    #[cold]
    fn pass_slowly(&self, origin: Origin, info: &SourceInfo, key: &str, sample: &Sample<'_>) -> bool {
        let number = origin.number as u32;
        let table = &mut *self.table();
        if !table.publishers.contains_key(&origin.publisher) {
            if table.publishers.len() >= PUBLISHERS {
                return true;
            }
            let id = info.source_id();
            let timed = sample.source_time.is_some();
            let publisher = Numbered::new(key, (&id.zid(), id.eid()), number, timed);
            self.note_name(origin.publisher, sample.name);
            table.publishers.insert(origin.publisher, publisher);
        }
        let next = self.next(table, origin.publisher);
        let Some(publisher) = table.publishers.get_mut(&origin.publisher) else { return true };
        let distance = beyond(number, next);
        let was_fetched = publisher
            .fetched
            .is_some_and(|(first, after)| beyond(number, first) >= 0 && beyond(number, after) < 0);
        if distance < 0 && (was_fetched || publisher.gap.as_ref().is_some_and(|gap| !gap.history)) {
            return false;
        }
        let held = || Held { number, time: sample.source_time, payload: sample.payload.into() };
        let last = match &mut publisher.gap {
            Some(gap) => {
                gap.hold(held());
                while gap.bytes > HELD && publisher.answers == Responsiveness::Yes {
                    _ = gap.release();
                }
                if gap.bytes > HELD {
                    // It is unknown whether the publisher has them.
                    self.give_up(table, origin.publisher);
                }
                return false;
            }
            None if distance > 0
                && publisher.keeps
                && publisher.answers != Responsiveness::No
                && !self.closed() =>
            {
                let mut gap = Gap::new(next);
                gap.hold(held());
                publisher.gap = Some(gap);
                table.gaps.push(origin.publisher);
                self.leave_slot(table, origin.publisher);
                self.recoverer.wake();
                return false;
            }
            // A message of another implementation was delayed, or its publisher has restarted its numbers.
            None if distance < 0 && distance > -1024 => return true,
            None => number,
        };
        publisher.next = last.wrapping_add(1);
        self.take_slot(table, origin.publisher);
        true
    }

    /// Returns the number of the next message of a publisher.
    fn next(&self, table: &Table, publisher: u64) -> u32 {
        let (slot, _) = word(publisher, 0);
        if table.occupants.get(&slot) == Some(&publisher) {
            self.slots[slot].load(Ordering::Relaxed) as u32
        } else {
            table.publishers.get(&publisher).map_or(0, |publisher| publisher.next)
        }
    }

    /// Assigns the slot to a publisher, instead of another.
    fn take_slot(&self, table: &mut Table, publisher: u64) {
        let Some(next) = table.publishers.get(&publisher).map(|publisher| publisher.next) else { return };
        let (slot, announced) = word(publisher, next);
        let last = self.slots[slot].swap(announced, Ordering::Relaxed);
        if let Some(other) = table.occupants.insert(slot, publisher)
            && other != publisher
            && let Some(other) = table.publishers.get_mut(&other)
        {
            other.next = last as u32;
        }
    }

    /// Sends the messages of a publisher through the slow path.
    fn leave_slot(&self, table: &mut Table, publisher: u64) {
        let (slot, _) = word(publisher, 0);
        if table.occupants.get(&slot) == Some(&publisher) {
            table.occupants.remove(&slot);
            let last = self.slots[slot].swap(0, Ordering::Relaxed);
            if let Some(numbered) = table.publishers.get_mut(&publisher) {
                numbered.next = last as u32;
            }
        }
    }

    /// Records the name of the topic of a publisher.
    fn note_name(&self, publisher: u64, name: Option<NameId>) {
        if let Some((names, name)) = self.names.as_ref().zip(name) {
            lock(names).insert(publisher, name);
        }
    }

    fn closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn deliver(&self, publisher: u64, number: u32, time: Option<Timestamp>, payload: &[u8]) {
        let origin = Origin { publisher, number: number.into() };
        let name = self.names.as_ref().and_then(|names| lock(names).get(&publisher).copied());
        let of_type = self.types.as_ref().map_or(TypeIndex::default(), |types| types.of_publisher(publisher));
        let sample = Sample::new(payload, time, None).with_origin(Some(origin)).with_name(name);
        let sample = sample.with_type(of_type);
        self.receiver.receive(self.topic, &[sample]);
    }

    /// Ends the gap of a publisher with the held messages.
    fn give_up(&self, table: &mut Table, publisher: u64) {
        let Some(numbered) = table.publishers.get_mut(&publisher) else { return };
        let Some(mut gap) = numbered.gap.take() else { return };
        if gap.history && gap.fetched == 0 {
            // It has kept nothing: its first message shows where its numbers begin.
            let Some(first) = gap.held.front() else {
                table.publishers.remove(&publisher);
                table.gaps.retain(|one| *one != publisher);
                return;
            };
            numbered.next = first.number;
        }
        // Otherwise the same messages would be requested for ever.
        let known = gap.held.is_empty();
        if let Some(until) = gap.until.filter(|_| known) {
            self.lose(numbered, until);
        }
        while let Some(held) = gap.release() {
            if beyond(held.number, numbered.next) >= 0 {
                self.deliver(publisher, held.number, held.time, &held.payload);
                numbered.next = held.number.wrapping_add(1);
            }
        }
        if gap.fetched > 0 {
            numbered.fetched = Some((gap.first, numbered.next));
        }
        numbered.silence = Silence { known, ..Silence::new(numbered.next) };
        table.gaps.retain(|one| *one != publisher);
    }

    /// Records that the last messages of a publisher before this number will not arrive, although no later one shows
    /// it.
    fn lose(&self, numbered: &mut Numbered, until: u32) {
        numbered.until = Some(until);
        if beyond(until, numbered.next) > 0 {
            self.receiver.missed(self.topic, numbered.silence.at, Some(now()));
        }
    }

    /// Continues with the gap of a publisher. Returns whether to call it again at once.
    fn carry_on(&self, recoverer: &Recoverer, publisher: u64) -> bool {
        let answer = {
            let table = &mut *self.table();
            let Some(numbered) = table.publishers.get_mut(&publisher) else { return false };
            let Some(gap) = &mut numbered.gap else { return false };
            let Some(request) = &gap.request else {
                if Instant::now() >= gap.due {
                    gap.request =
                        Some(recoverer.request(&numbered.keys, (&self.by, numbered.next), numbered.next));
                }
                return false;
            };
            let Some(answer) = request.answer() else { return false };
            gap.request = None;
            answer
        };
        match answer {
            Ok(answer) => self.take(publisher, &answer),
            Err(()) => {
                let table = &mut *self.table();
                let Some(numbered) = table.publishers.get_mut(&publisher) else { return false };
                let Some(gap) = &mut numbered.gap else { return false };
                if gap.history {
                    self.give_up(table, publisher);
                    return false;
                }
                // The first retry is immediate.
                let again = if numbered.keys.advanced { AGAIN } else { Duration::ZERO };
                gap.due = Instant::now() + again;
                numbered.keys.advanced ^= numbered.answers == Responsiveness::Unknown;
                let (patience, known) = match numbered.answers {
                    Responsiveness::Yes => (PATIENCE, true),
                    Responsiveness::Unknown | Responsiveness::No => (UNKNOWN, false),
                };
                if gap.since.elapsed().min(gap.distance.1.elapsed()) >= patience {
                    if !known {
                        numbered.answers = Responsiveness::No;
                    }
                    tracing::debug!(topic = %self.name, known, "the publisher does not send missed messages again");
                    self.give_up(table, publisher);
                }
            }
        }
        self.idle();
        true
    }

    fn idle(&self) {
        if self.wants_idle {
            self.receiver.idle();
        }
    }

    /// Delivers the messages of an answer, and ends the gap if they reach the held messages.
    fn take(&self, publisher: u64, answer: &[u8]) {
        let begun = self.table().publishers.get_mut(&publisher).and_then(|numbered| {
            numbered.answers = Responsiveness::Yes;
            numbered.gap.as_ref().map(|gap| (numbered.next, numbered.timed, gap.history && gap.fetched == 0))
        });
        let Some((mut position, timed, mut is_first)) = begun else { return };
        let start = position;
        let (mut count, mut keeps) = (0, false);
        let whole = resend::read(answer, |number, time, payload| {
            keeps = true;
            let number = number as u32;
            if std::mem::take(&mut is_first) {
                // Those before it are not kept, and not missing.
                position = number;
            }
            if beyond(number, position) > 0 {
                // The publisher has not kept those before. Some may have been received.
                position = self.deliver_held(publisher, position, number);
            }
            if number == position {
                self.deliver(publisher, number, timed.then_some(time), payload);
                position = number.wrapping_add(1);
                count += 1;
            }
        });
        let table = &mut *self.table();
        let Some(numbered) = table.publishers.get_mut(&publisher) else { return };
        // An empty answer proves little if nothing is missing.
        numbered.keeps = keeps || whole.is_none_or(|next| next as u32 == position);
        let Some(gap) = &mut numbered.gap else { return };
        numbered.next = position;
        gap.fetched += count;
        if count > 0 && !gap.history {
            self.recoverer.count(self.topic, count, gap.from);
        }
        let next = whole.map_or(position, |next| next as u32);
        gap.until = Some(next);
        let distance = u32::try_from(beyond(next, position)).unwrap_or(0);
        if distance < gap.distance.0 {
            gap.distance = (distance, Instant::now());
        }
        while gap.held.front().is_some_and(|held| beyond(held.number, position) < 0) {
            _ = gap.release();
        }
        let reached = match gap.held.front() {
            Some(held) => held.number == position,
            None => distance == 0,
        };
        let stuck = position == start || gap.distance.1.elapsed() >= PATIENCE;
        if !reached && !stuck {
            gap.due = Instant::now();
            return;
        }
        // The held messages may have a gap of their own, if the connection was lost again.
        let mut last = position;
        let gapless = gap.held.iter().take_while(|held| {
            let follows = held.number == last;
            last = held.number.wrapping_add(1);
            follows
        });
        if reached && gapless.count() < gap.held.len() && !self.closed() {
            while let Some(held) = gap.held.front().filter(|held| held.number == position) {
                position = held.number.wrapping_add(1);
                let Some(held) = gap.release() else { break };
                self.deliver(publisher, held.number, held.time, &held.payload);
            }
            numbered.next = position;
            gap.due = Instant::now();
            return;
        }
        if gap.history {
            tracing::debug!(topic = %self.name, count = gap.fetched, "received what a publisher has kept");
        } else {
            tracing::info!(topic = %self.name, count = gap.fetched, "received missed messages again");
        }
        // Under the lock, so that new messages of the publisher wait.
        self.give_up(table, publisher);
        self.take_slot(table, publisher);
    }

    /// Delivers held messages before a number. Returns the next number.
    fn deliver_held(&self, publisher: u64, mut position: u32, before: u32) -> u32 {
        loop {
            let held = {
                let table = &mut *self.table();
                let gap = table.publishers.get_mut(&publisher).and_then(|numbered| numbered.gap.as_mut());
                let Some(gap) = gap else { return before };
                if gap.held.front().is_none_or(|held| beyond(held.number, before) >= 0) {
                    return before;
                }
                gap.release()
            };
            if let Some(held) = held
                && beyond(held.number, position) >= 0
            {
                self.deliver(publisher, held.number, held.time, &held.payload);
                position = held.number.wrapping_add(1);
            }
        }
    }
}

impl Silence {
    fn new(number: u32) -> Silence {
        Silence { number, since: Instant::now(), at: now(), wait: SILENCE.0, known: false, request: None }
    }

    /// Whether to query the publisher now. `next` is the number of its next message.
    fn is_due(&mut self, next: u32, reconnected: bool) -> bool {
        if self.number != next {
            (self.number, self.known) = (next, false);
            (self.since, self.at) = (Instant::now(), now());
        }
        if reconnected {
            (self.known, self.wait) = (false, SILENCE.0);
        }
        !self.known && self.request.is_none() && self.since.elapsed() >= self.wait
    }
}

impl<R: Receiver + ?Sized> RecoveredSubscription for Numbers<R> {
    fn attend(&self, recoverer: &Recoverer) -> bool {
        if !self.begun.load(Ordering::Acquire) {
            return false;
        }
        let has_heartbeats = self.compare_heartbeats(recoverer);
        let gaps = self.table().gaps.clone();
        for publisher in &gaps {
            let _delivering = self.delivering.lock().unwrap_or_else(PoisonError::into_inner);
            while !self.closed() && self.carry_on(recoverer, *publisher) {}
        }
        has_heartbeats || !self.table().gaps.is_empty()
    }

    fn look(&self, recoverer: &Recoverer, reconnected: bool) {
        if self.closed() {
            return;
        }
        let table = &mut *self.table();
        let silent: Vec<(u64, u32)> = table
            .publishers
            .iter()
            .filter(|(_, numbered)| numbered.gap.is_none() && numbered.answers != Responsiveness::No)
            .map(|(publisher, _)| (*publisher, self.next(table, *publisher)))
            .collect();
        if reconnected {
            // Publishers without an answer may have been cut off.
            for numbered in
                table.publishers.values_mut().filter(|numbered| numbered.answers == Responsiveness::No)
            {
                numbered.answers = Responsiveness::Unknown;
                numbered.keys.advanced = false;
            }
        }
        for (publisher, next) in silent {
            let Some(numbered) = table.publishers.get_mut(&publisher) else { continue };
            let silence = &mut numbered.silence;
            if silence.is_due(next, reconnected) {
                // Includes the last message: the answer shows whether the publisher keeps any. An advanced publisher
                // sends no answer if nothing is missing.
                silence.request =
                    Some(recoverer.request(&numbered.keys, (&self.by, next), next.wrapping_sub(1)));
            }
            let Some(answer) = silence.request.as_ref().and_then(PendingRequest::answer) else { continue };
            silence.request = None;
            let is_unknown = numbered.answers == Responsiveness::Unknown;
            if is_unknown && answer.is_err() && !numbered.keys.advanced {
                // Retried at once by the other protocol.
                numbered.keys.advanced = true;
                continue;
            }
            // Queries become increasingly rare.
            silence.wait = (silence.wait * 2).min(SILENCE.1);
            match answer {
                // Its connection may return, so that even a publisher that has never answered may answer then.
                Err(()) => {
                    silence.since = Instant::now();
                    numbered.keys.advanced &= !is_unknown;
                }
                Ok(answer) => {
                    numbered.answers = Responsiveness::Yes;
                    let mut keeps = false;
                    let read = resend::read(&answer, |_, _, _| keeps = true);
                    let until = read.map_or(next, |until| until as u32);
                    numbered.keeps = keeps;
                    if beyond(until, next) <= 0 {
                        silence.known = true;
                        continue;
                    }
                    if !keeps {
                        // They are lost, even if no later message shows it by its number.
                        tracing::warn!(
                            topic = %self.name, count = beyond(until, next),
                            "messages of a silent publisher were missed, which does not keep them"
                        );
                        silence.known = true;
                        self.lose(numbered, until);
                        continue;
                    }
                    self.leave_slot(table, publisher);
                    let Some(numbered) = table.publishers.get_mut(&publisher) else { continue };
                    numbered.gap = Some(Gap::new(numbered.next));
                    table.gaps.push(publisher);
                }
            }
        }
    }

    fn wait(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while !self.table().gaps.is_empty() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    fn close(&self, limit: Duration) -> bool {
        self.closed.store(true, Ordering::Release);
        let deadline = Instant::now() + limit;
        let _delivering = loop {
            match self.delivering.try_lock() {
                Ok(guard) => break guard,
                Err(std::sync::TryLockError::Poisoned(guard)) => break guard.into_inner(),
                Err(std::sync::TryLockError::WouldBlock) if Instant::now() >= deadline => return false,
                Err(std::sync::TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        let table = &mut *self.table();
        for publisher in std::mem::take(&mut table.gaps) {
            let until = table.publishers.get(&publisher).and_then(|one| one.gap.as_ref()?.until);
            self.give_up(table, publisher);
            if let Some(numbered) = table.publishers.get_mut(&publisher) {
                numbered.until = until.or(numbered.until);
            }
        }
        let missing = |(publisher, numbered): (&u64, &Numbered)| {
            let until = numbered.until?;
            u64::try_from(beyond(until, self.next(table, *publisher))).ok()
        };
        table.missing = table.publishers.iter().filter_map(missing).sum();
        true
    }

    fn missing(&self) -> u64 {
        self.table().missing
    }
}
