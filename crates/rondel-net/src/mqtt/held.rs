//! Acknowledgements held back until their messages are durable.
//!
//! A broker repeats a message until it is acknowledged, also to the next run of its client. So a message acknowledged
//! only after a snapshot with it is on disk is never lost; and the snapshot contains marks of the messages that the
//! broker may repeat, so that none is processed twice:
//!
//! - QoS 1: packet id and hash of the last messages, as many as the broker may send without an answer. A message with
//!   the DUP flag and the same id and hash is a repeat.
//! - QoS 2: the packet ids received and not released. The broker reuses an id only after PUBCOMP, which waits for the
//!   next snapshot.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::packet::{self, Publish};
use super::{Qos, Settings, Version};

/// Default number of messages at QoS 1 and 2 that the broker may send without an answer.
const WINDOW: u16 = 4096;
/// The same for version 3.1.1, in which a client cannot state it: the usual value of brokers.
const WINDOW_V3: u16 = 20;

/// Returns the number of messages at QoS 1 and 2 that the broker may send without an answer, if acknowledgements are
/// held back.
pub(super) fn window(settings: &Settings) -> Option<u16> {
    let usual = if settings.version == Version::V5 { WINDOW } else { WINDOW_V3 };
    settings.receive_maximum.or(settings.hold.as_ref().map(|_| usual))
}

/// State shared by all connections of a session.
#[derive(Debug, Default)]
pub(super) struct Holding {
    /// Whether so many acknowledgements wait that the broker may soon stop sending.
    nearly_full: Mutex<bool>,
    changed: Condvar,
    /// Marks of an earlier run, by client id.
    marks: HashMap<String, Marks>,
}

/// Marks of a connection: messages that the broker may repeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Marks {
    /// Packet ids and hashes of the last messages at QoS 1.
    recent: VecDeque<(u16, u64)>,
    /// Packet ids of messages at QoS 2 that were received and not released.
    taken: Vec<u16>,
}

impl Holding {
    /// Parses the marks from [`Holding::freeze`].
    pub(super) fn new(marks: &[u8]) -> Holding {
        Holding { marks: read(marks).unwrap_or_default(), ..Holding::default() }
    }

    /// Waits up to `limit`, or until the broker may soon stop sending.
    pub(super) fn wait(&self, limit: Duration) {
        let full = self.nearly_full.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(full, limit, |full| !*full));
    }

    /// Ends the wait of another thread, now or when it begins to wait.
    pub(super) fn wake(&self) {
        self.set(true);
    }

    /// Sets whether the broker may soon stop sending.
    fn set(&self, is_nearly_full: bool) {
        *self.nearly_full.lock().unwrap_or_else(PoisonError::into_inner) = is_nearly_full;
        if is_nearly_full {
            self.changed.notify_all();
        }
    }

    /// Calls `capture` with the marks of all received messages, while none is received. Returns its result and the
    /// acknowledgements of these messages.
    pub(super) fn freeze<T>(
        &self,
        connections: &[Arc<Connection>],
        capture: impl FnOnce(Vec<u8>) -> T,
    ) -> (T, Vec<(Arc<Connection>, u64)>) {
        // A continuously busy reader yields here, before it takes its next lock.
        let gates: Vec<_> =
            connections.iter().map(|c| c.gate.lock().unwrap_or_else(PoisonError::into_inner)).collect();
        let routes: Vec<_> = connections.iter().map(|connection| connection.routes()).collect();
        self.set(false);
        let mut marks = Vec::new();
        let mut cut = Vec::new();
        for (connection, routes) in connections.iter().zip(&routes) {
            let Some(held) = &routes.held else { continue };
            write(&connection.client, &held.recent, &routes.taken, &mut marks);
            cut.push((Arc::clone(connection), held.released + held.answers.len() as u64));
        }
        let captured = capture(marks);
        drop(routes);
        drop(gates);
        (captured, cut)
    }
}

/// Acknowledgements of a connection that are held back.
#[derive(Debug)]
pub(super) struct Held {
    shared: Arc<Holding>,
    /// Kind and packet id, in the order of the messages.
    answers: VecDeque<(u8, u16)>,
    /// Packet ids in `answers`, as bit sets: of PUBACK and PUBREC, and of PUBCOMP. The broker may reuse an id once it
    /// is answered, so a second answer could be taken for that of a later message.
    waiting: [Vec<u64>; 2],
    /// Number of answers removed from `answers`.
    released: u64,
    recent: VecDeque<(u16, u64)>,
    window: usize,
    /// Whether a message was repeated.
    repeated: bool,
}

impl Held {
    /// Creates the state of a connection, with the marks of an earlier run unless the broker did not keep its session.
    /// Returns also the packet ids of messages at QoS 2 that were received before.
    pub(super) fn new(
        shared: &Arc<Holding>,
        client: &str,
        window: u16,
        session_present: bool,
    ) -> (Held, Vec<u16>) {
        let Marks { recent, taken } = match shared.marks.get(client) {
            Some(marks) if session_present => marks.clone(),
            Some(_) => {
                tracing::warn!(
                    %client,
                    "the broker did not keep the session: messages since the snapshot may be lost"
                );
                Marks::default()
            }
            None => Marks::default(),
        };
        let waiting = [vec![0; 1024], vec![0; 1024]];
        let (shared, window) = (Arc::clone(shared), usize::from(window));
        let held =
            Held { shared, answers: VecDeque::new(), waiting, released: 0, recent, window, repeated: false };
        (held, taken)
    }

    /// Whether a message at QoS 1 was received before.
    pub(super) fn is_repeat(&mut self, message: &Publish<'_>) -> bool {
        if !message.duplicate || message.qos != Qos::AtLeastOnce {
            return false;
        }
        let mark = (message.id, hash(message));
        let is_repeat = self.recent.iter().rev().any(|seen| *seen == mark);
        if is_repeat && !std::mem::replace(&mut self.repeated, true) {
            tracing::info!("the broker repeats messages that were received before; they are ignored");
        }
        is_repeat
    }

    /// Records a message at QoS 1 that the broker may repeat.
    pub(super) fn note(&mut self, message: &Publish<'_>) {
        if message.qos == Qos::AtLeastOnce {
            // In version 3.1.1 the window is a guess.
            if self.recent.len() >= self.window.max(usize::from(WINDOW)) {
                self.recent.pop_front();
            }
            self.recent.push_back((message.id, hash(message)));
        }
    }

    /// Holds an answer back, unless it is already held back.
    pub(super) fn push(&mut self, kind: u8, id: u16) {
        let (word, bit) = (usize::from(id / 64), 1 << (id % 64));
        let waiting = &mut self.waiting[usize::from(kind == packet::PUBCOMP)][word];
        if *waiting & bit == 0 {
            *waiting |= bit;
            self.answers.push_back((kind, id));
        }
    }

    /// Signals whether the broker may soon stop sending, after some answers were held back.
    pub(super) fn signal(&self) {
        if self.answers.len() * 2 >= self.window {
            self.shared.set(true);
        }
    }

    /// Whether answers wait.
    pub(super) fn is_waiting(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Appends the answers up to this number to `out`.
    fn release(&mut self, up_to: u64, out: &mut Vec<u8>) {
        while self.released < up_to
            && let Some((kind, id)) = self.answers.pop_front()
        {
            self.released += 1;
            self.waiting[usize::from(kind == packet::PUBCOMP)][usize::from(id / 64)] &= !(1 << (id % 64));
            packet::acknowledge(kind, id, out);
        }
    }

    /// Forgets everything: the broker did not keep the session, and restarts its packet ids.
    pub(super) fn forget(&mut self) {
        self.released += self.answers.len() as u64;
        self.answers.clear();
        self.recent.clear();
        self.waiting.iter_mut().for_each(|waiting| waiting.fill(0));
    }
}

/// Sends the answers from a [`Holding::freeze`].
pub(super) fn release(cut: &[(Arc<Connection>, u64)]) {
    for (connection, up_to) in cut {
        let mut answers = Vec::new();
        let mut routes = connection.routes();
        if let Some(held) = &mut routes.held {
            held.release(*up_to, &mut answers);
        }
        drop(routes);
        if !answers.is_empty() {
            let mut out = connection.out();
            out.buffer.append(&mut answers);
            connection.send(&mut out);
        }
    }
}

/// Waits until the broker has read the sent answers.
pub(super) fn settle(cut: &[(Arc<Connection>, u64)], limit: Duration) {
    let deadline = Instant::now() + limit;
    for (connection, _) in cut {
        connection.wait_read(deadline.saturating_duration_since(Instant::now()));
    }
}

/// Returns a hash of topic and payload, computed eight bytes at a time.
fn hash(message: &Publish<'_>) -> u64 {
    let add = |sum: u64, word: u64| (sum.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let all = |sum: u64, bytes: &[u8]| {
        let (words, rest) = bytes.as_chunks::<8>();
        let sum = words.iter().fold(sum, |sum, word| add(sum, u64::from_le_bytes(*word)));
        rest.iter().fold(add(sum, bytes.len() as u64), |sum, byte| add(sum, u64::from(*byte)))
    };
    let sum = all(all(0, message.topic.as_bytes()), message.payload);
    sum ^ (sum >> 29)
}

/// Appends the marks of a connection.
fn write(client: &str, recent: &VecDeque<(u16, u64)>, taken: &[u64], out: &mut Vec<u8>) {
    let ids: Vec<u16> =
        (0..=u16::MAX).filter(|id| taken[usize::from(id / 64)] >> (id % 64) & 1 == 1).collect();
    let length = |length: usize| (length as u32).to_le_bytes();
    out.extend_from_slice(&length(client.len()));
    out.extend_from_slice(client.as_bytes());
    out.extend_from_slice(&length(recent.len()));
    for (id, hash) in recent {
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&hash.to_le_bytes());
    }
    out.extend_from_slice(&length(ids.len()));
    ids.iter().for_each(|id| out.extend_from_slice(&id.to_le_bytes()));
}

/// Parses the marks of all connections. The snapshot with them has a checksum.
fn read(mut bytes: &[u8]) -> Option<HashMap<String, Marks>> {
    fn number<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
        let (first, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(first)
    }
    let mut all = HashMap::new();
    while !bytes.is_empty() {
        let length = u32::from_le_bytes(*number(&mut bytes)?) as usize;
        let (client, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        let mut marks = Marks::default();
        for _ in 0..u32::from_le_bytes(*number(&mut bytes)?) {
            let id = u16::from_le_bytes(*number(&mut bytes)?);
            marks.recent.push_back((id, u64::from_le_bytes(*number(&mut bytes)?)));
        }
        for _ in 0..u32::from_le_bytes(*number(&mut bytes)?) {
            marks.taken.push(u16::from_le_bytes(*number(&mut bytes)?));
        }
        all.insert(String::from_utf8(client.to_vec()).ok()?, marks);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: u16, payload: &[u8]) -> Publish<'_> {
        Publish { duplicate: true, retained: false, qos: Qos::AtLeastOnce, topic: "t", id, payload }
    }

    #[test]
    fn marks_are_written_and_read() {
        let mut taken = vec![0; 1024];
        taken[0] |= 2;
        taken[1023] |= 1 << 63;
        let recent = VecDeque::from([(7, u64::MAX), (8, 0)]);
        let mut bytes = Vec::new();
        write("one", &recent, &taken, &mut bytes);
        write("two", &VecDeque::new(), &[0; 1024], &mut bytes);
        let all = read(&bytes).unwrap();
        assert_eq!(all["one"], Marks { recent, taken: vec![1, u16::MAX] });
        assert_eq!((all.len(), &all["two"]), (2, &Marks::default()));
        (1..bytes.len()).for_each(|end| drop(read(&bytes[..end])));
    }

    #[test]
    fn repeats_are_recognised_and_answered_once() {
        let shared = Arc::<Holding>::default();
        let (mut held, _) = Held::new(&shared, "c", 4, true);
        held.note(&message(1, b"a"));
        held.push(packet::PUBACK, 1);
        held.note(&message(2, b"b"));
        held.push(packet::PUBACK, 2);
        assert!(held.is_repeat(&message(1, b"a")) && !held.is_repeat(&message(1, b"b")));
        assert!(!held.is_repeat(&Publish { duplicate: false, ..message(1, b"a") }));
        held.push(packet::PUBACK, 1);
        let mut out = Vec::new();
        held.release(1, &mut out);
        assert_eq!(out, [packet::PUBACK, 2, 0, 1]);
        // Its answer may have been lost.
        held.push(packet::PUBACK, 1);
        held.release(9, &mut out);
        assert_eq!(out[4..], [packet::PUBACK, 2, 0, 2, packet::PUBACK, 2, 0, 1]);
    }

    #[test]
    fn a_wait_ends_when_it_is_woken() {
        let shared = Arc::<Holding>::default();
        let limit = Duration::from_secs(60);
        let waiting = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let began = Instant::now();
            waiting.wait(limit);
            began.elapsed()
        });
        shared.wake();
        assert!(thread.join().unwrap() < limit);
    }

    #[test]
    fn answers_of_a_session_that_the_broker_forgot_are_never_sent() {
        let (mut held, _) = Held::new(&Arc::default(), "c", 4, true);
        held.push(packet::PUBACK, 1);
        held.push(packet::PUBREC, 2);
        let cut = held.released + held.answers.len() as u64;
        held.forget();
        held.push(packet::PUBACK, 1);
        let mut out = Vec::new();
        held.release(cut, &mut out);
        assert!(out.is_empty() && held.is_waiting());
    }
}
