//! Messages that were published and not acknowledged yet.

use std::collections::VecDeque;

use super::packet;

/// Messages on their way, in the order in which they were published. What a break of the connection
/// leaves unacknowledged is sent again.
#[derive(Debug)]
pub(super) struct Flight {
    messages: VecDeque<Message>,
    /// How many of them, at the end, are not sent on this connection yet.
    unsent: usize,
    /// A bit for each number that is in use.
    used: Vec<u64>,
    last: u16,
    /// Packets to write into.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Message {
    id: u16,
    packet: Vec<u8>,
    /// At quality of service 2: the broker has it, and has to be told that this is known.
    taken: bool,
}

impl Default for Flight {
    fn default() -> Flight {
        let (messages, spare) = (VecDeque::new(), Vec::new());
        Flight { messages, unsent: 0, used: vec![0; 1024], last: 0, spare }
    }
}

impl Flight {
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// A number that no packet on its way has. There always is one: far fewer are allowed at once.
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

    /// The packet with this number has arrived.
    pub(super) fn release(&mut self, id: u16) {
        self.used[usize::from(id / 64)] &= !(1 << (id % 64));
    }

    /// Keeps a message, which the caller sends, until it is acknowledged.
    pub(super) fn keep(&mut self, id: u16, write: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        let mut packet = self.spare.pop().unwrap_or_default();
        packet.clear();
        write(&mut packet);
        self.messages.push_back(Message { id, packet, taken: false });
        self.messages.back().map_or(&[], |message| &message.packet)
    }

    /// A message has arrived. Whether there was one with this number.
    pub(super) fn arrived(&mut self, id: u16) -> bool {
        let sent = self.messages.len() - self.unsent;
        // Mostly the first.
        let Some(index) = self.messages.iter().take(sent).position(|m| m.id == id) else { return false };
        if let Some(message) = self.messages.remove(index) {
            self.spare.push(message.packet);
        }
        self.release(id);
        true
    }

    /// The broker has taken a message at quality of service 2.
    pub(super) fn taken(&mut self, id: u16) {
        if let Some(message) = self.messages.iter_mut().find(|m| m.id == id) {
            message.taken = true;
        }
    }

    /// Begins again on a new connection. `resumed`: the broker knows what it has taken.
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

    /// Whether something waits to be sent again.
    pub(super) fn is_behind(&self) -> bool {
        self.unsent > 0
    }

    /// Sends again, at most so many at once.
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

    fn keep(flight: &mut Flight) -> u16 {
        let id = flight.number();
        flight.keep(id, |packet| packet.extend_from_slice(&[packet::PUBLISH, id as u8]));
        id
    }

    #[test]
    fn what_is_not_acknowledged_is_sent_again_in_order() {
        let mut flight = Flight::default();
        let ids: Vec<u16> = (0..5).map(|_| keep(&mut flight)).collect();
        assert_eq!(ids, [1, 2, 3, 4, 5]);
        assert!(flight.arrived(2) && !flight.arrived(2));
        flight.taken(3);
        flight.restart(true);
        assert!(flight.is_behind());
        let mut out = Vec::new();
        flight.catch_up(2, &mut out);
        assert_eq!(out, [packet::PUBLISH | packet::DUP, 1, packet::PUBREL, 2, 0, 3]);
        assert!(flight.arrived(1) && !flight.arrived(5), "5 was not sent yet");
        out.clear();
        flight.catch_up(9, &mut out);
        assert_eq!(out, [packet::PUBLISH | packet::DUP, 4, packet::PUBLISH | packet::DUP, 5]);
        flight.restart(false);
        out.clear();
        flight.catch_up(9, &mut out);
        assert_eq!(out, [packet::PUBLISH, 4, packet::PUBLISH, 5], "what was taken is done");
        assert!(flight.arrived(4) && flight.arrived(5) && flight.is_empty());
    }

    #[test]
    fn numbers_come_round_and_leave_out_what_is_in_use() {
        let mut flight = Flight::default();
        let first = flight.number();
        for _ in 0..200_000 {
            let id = flight.number();
            assert!(id != first && id != 0);
            flight.release(id);
        }
    }
}
