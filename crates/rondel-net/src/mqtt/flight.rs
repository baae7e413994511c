//! Published messages that the broker has not acknowledged yet.

use std::collections::VecDeque;

use super::{Version, packet};

/// Unacknowledged messages in the order of publishing. They are sent again after a reconnection.
#[derive(Debug)]
pub(super) struct InFlight {
    messages: VecDeque<InFlightMessage>,
    /// Number of messages kept so far.
    kept: u64,
    /// Number of messages at the end that were not sent over the current link yet.
    unsent: usize,
    /// Packet ids in use, as a bit set.
    used: Vec<u64>,
    last: u16,
    /// Buffers of acknowledged messages, for reuse.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct InFlightMessage {
    id: u16,
    /// [`InFlight::kept`] before it.
    number: u64,
    packet: Vec<u8>,
    /// Whether the broker has received the message at QoS 2 and waits for PUBREL.
    taken: bool,
}

impl Default for InFlight {
    fn default() -> InFlight {
        let (messages, spare) = (VecDeque::new(), Vec::new());
        InFlight { messages, kept: 0, unsent: 0, used: vec![0; 1024], last: 0, spare }
    }
}

impl InFlight {
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns the number of messages on a topic.
    pub(super) fn count(&self, topic: &str) -> u64 {
        let on_topic =
            |message: &&InFlightMessage| packet::published_topic(&message.packet) == topic.as_bytes();
        self.messages.iter().filter(on_topic).count() as u64
    }

    /// Visits the payload of each message on a topic.
    pub(super) fn payloads(&self, version: Version, topic: &str, visit: &mut dyn FnMut(&[u8])) {
        for message in &self.messages {
            if packet::published_topic(&message.packet) == topic.as_bytes() {
                visit(packet::published_payload(version, &message.packet));
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns the number of messages kept so far.
    pub(super) fn kept(&self) -> u64 {
        self.kept
    }

    /// Whether the first `count` messages are acknowledged.
    pub(super) fn is_through(&self, count: u64) -> bool {
        self.messages.front().is_none_or(|message| message.number >= count)
    }

    /// Returns an unused packet id. There always is one, since the window is far smaller than 65,535.
    pub(super) fn number(&mut self) -> u16 {
        loop {
            self.last = self.last.checked_add(1).unwrap_or(1);
            let (word, bit) = (usize::from(self.last / 64), 1 << (self.last % 64));
            if self.used[word] & bit == 0 {
                self.used[word] |= bit;
                return self.last;
            }
        }
    }

    /// Makes a packet id available again.
    pub(super) fn release(&mut self, id: u16) {
        self.used[usize::from(id / 64)] &= !(1 << (id % 64));
    }

    /// Stores a message until it is acknowledged and returns its packet for sending.
    pub(super) fn keep(&mut self, id: u16, write: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        let mut packet = self.spare.pop().unwrap_or_default();
        packet.clear();
        write(&mut packet);
        self.messages.push_back(InFlightMessage { id, number: self.kept, packet, taken: false });
        self.kept += 1;
        self.messages.back().map_or(&[], |message| &message.packet)
    }

    /// Removes an acknowledged message. Returns whether there was one with this packet id.
    pub(super) fn complete(&mut self, id: u16) -> bool {
        let sent = self.messages.len() - self.unsent;
        // Brokers usually acknowledge in order, so this is usually the first message.
        let Some(index) = self.messages.iter().take(sent).position(|m| m.id == id) else { return false };
        if let Some(message) = self.messages.remove(index) {
            self.spare.push(message.packet);
        }
        self.release(id);
        true
    }

    /// Records that the broker has received a message at QoS 2.
    pub(super) fn taken(&mut self, id: u16) {
        if let Some(message) = self.messages.iter_mut().find(|m| m.id == id) {
            message.taken = true;
        }
    }

    /// Prepares for sending again over a new link. `resumed`: the broker kept the session.
    pub(super) fn restart(&mut self, resumed: bool) {
        if !resumed {
            let mut done = Vec::new();
            self.messages.retain(|m| {
                if m.taken {
                    done.push(m.id);
                }
                !m.taken
            });
            done.into_iter().for_each(|id| self.release(id));
        }
        for message in &mut self.messages {
            if let Some(first) = message.packet.first_mut() {
                *first = if resumed { *first | packet::DUP } else { *first & !packet::DUP };
            }
        }
        self.unsent = self.messages.len();
    }

    /// Whether messages wait to be sent again.
    pub(super) fn is_behind(&self) -> bool {
        self.unsent > 0
    }

    /// Appends the packets to send again to `out`, until `window` messages are unacknowledged.
    pub(super) fn catch_up(&mut self, window: usize, out: &mut Vec<u8>) {
        while self.unsent > 0 && self.messages.len() - self.unsent < window {
            let message = &self.messages[self.messages.len() - self.unsent];
            if message.taken {
                packet::acknowledge(packet::PUBREL, message.id, out);
            } else {
                out.extend_from_slice(&message.packet);
            }
            self.unsent -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(flight: &mut InFlight) -> u16 {
        let id = flight.number();
        flight.keep(id, |packet| packet.extend_from_slice(&[packet::PUBLISH, id as u8]));
        id
    }

    #[test]
    fn unacknowledged_messages_are_sent_again_in_order() {
        let mut flight = InFlight::default();
        let ids: Vec<u16> = (0..5).map(|_| keep(&mut flight)).collect();
        assert_eq!(ids, [1, 2, 3, 4, 5]);
        assert!(flight.complete(2) && !flight.complete(2));
        flight.taken(3);
        flight.restart(true);
        assert!(flight.is_behind());
        let mut out = Vec::new();
        flight.catch_up(2, &mut out);
        assert_eq!(out, [packet::PUBLISH | packet::DUP, 1, packet::PUBREL, 2, 0, 3]);
        assert!(flight.complete(1) && !flight.complete(5), "5 was not sent yet");
        out.clear();
        flight.catch_up(9, &mut out);
        assert_eq!(out, [packet::PUBLISH | packet::DUP, 4, packet::PUBLISH | packet::DUP, 5]);
        flight.restart(false);
        out.clear();
        flight.catch_up(9, &mut out);
        assert_eq!(out, [packet::PUBLISH, 4, packet::PUBLISH, 5], "what was taken is done");
        assert!(flight.complete(4) && flight.complete(5) && flight.is_empty());
    }

    #[test]
    fn packet_ids_wrap_around_and_skip_ids_in_use() {
        let mut flight = InFlight::default();
        let first = flight.number();
        for _ in 0..200_000 {
            let id = flight.number();
            assert!(id != first && id != 0);
            flight.release(id);
        }
    }
}
