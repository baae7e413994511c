//! The messages of a drive: rates, jitter, delays and faults, all from a seed.

use super::drive::State;
use super::faults::{Effect, FAULTS};
use super::messages::{Message, TOPICS};

/// Part of the period by which the time between two messages varies.
const JITTER: f64 = 0.1;
/// Part of the messages that take longer.
const LATE: f64 = 0.01;

/// Parameters of the generated drive.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The seed of jitter and delays.
    pub seed: u64,
    /// Whether to plant the faults.
    pub faults: bool,
    /// The end, in seconds.
    pub seconds: f64,
}

/// Returns the messages of a drive in the order of their arrival.
pub fn messages(plan: &Plan) -> Vec<Message> {
    let mut all = Vec::new();
    for topic in TOPICS {
        // A generator for each topic: a topic more would change no other one.
        let mut random = Random((plan.seed << 8) + topic as u64);
        let period = 1.0 / topic.rate();
        let (mut arrived, mut number) = (0.0_f64, 0_u64);
        let phase = random.below(period);
        loop {
            let tick = phase + number as f64 * period;
            if tick >= plan.seconds {
                break;
            }
            number += 1;
            let stamp = tick + random.below(period * JITTER);
            let mut delay = 0.001 + random.below(0.004);
            if random.below(1.0) < LATE {
                delay += 0.05 + random.below(0.25);
            }
            let mut state = State::at(stamp);
            let mut lost = false;
            for fault in FAULTS.iter().filter(|f| plan.faults && stamp >= f.from && stamp < f.until) {
                match fault.effect {
                    Effect::Says(alter) => alter(&mut state),
                    Effect::Loses(of, each) => lost |= of == topic && number.is_multiple_of(each),
                    Effect::Delays(of, seconds) if of == topic => delay += seconds,
                    Effect::Delays(..) => {}
                }
            }
            if lost {
                continue;
            }
            // The messages of one topic do not overtake each other.
            arrived = arrived.max(stamp + delay);
            let body = state.body(topic);
            all.push(Message { topic, stamp_ns: ns(stamp), arrival_ns: ns(arrived), body });
        }
    }
    all.sort_by_key(|message| message.arrival_ns);
    all
}

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// Splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 up to a limit.
    fn below(&mut self, limit: f64) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64 * limit
    }
}
