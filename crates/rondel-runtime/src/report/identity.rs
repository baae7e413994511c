//! Ids of verdicts, by which a consumer recognises a verdict that is published again after a crash.

use rondel_event::{Timestamp, Value, Verdict};

use crate::text::{write_count, write_value};

/// Constant input of the ids of all verdicts on one property.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    /// The hash of the property: its meaning and its name.
    seed: u128,
    /// Whether the time of an event is a field of its message, so that it is the same when the message is repeated.
    has_own_times: bool,
    /// Whether the number of the event is part of the id: it differs between sessions that began with different messages.
    counts_steps: bool,
}

/// Input of one id besides the property.
pub(crate) struct Facts<'a> {
    pub(crate) parameters: &'a [Value],
    pub(crate) time: Timestamp,
    pub(crate) about: Option<Timestamp>,
    pub(crate) step: Option<u64>,
    pub(crate) verdict: Verdict,
    /// From 1.
    pub(crate) lap: u32,
}

impl Identity {
    /// The identity of a property with this [meaning](rondel_spec::Spec::identity).
    pub(crate) fn new(meaning: u64, property: &str, has_own_times: bool, counts_steps: bool) -> Identity {
        let seed = add(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, &meaning.to_le_bytes());
        Identity { seed: add(add(seed, property.as_bytes()), &[0]), has_own_times, counts_steps }
    }

    /// The id of a verdict. `out` is used as working memory and left as it was.
    pub(crate) fn of(&self, facts: &Facts<'_>, out: &mut Vec<u8>) -> u128 {
        let begin = out.len();
        for value in facts.parameters {
            write_value(value, out);
            out.push(b',');
        }
        // A time of arrival differs when the message is repeated; the number of the event does not.
        if self.has_own_times || facts.step.is_none() {
            out.extend_from_slice(&facts.time.as_nanos().to_le_bytes());
        }
        out.push(b'a');
        out.extend(facts.about.iter().flat_map(|about| about.as_nanos().to_le_bytes()));
        out.push(b's');
        if let Some(step) = facts.step.filter(|_| self.counts_steps) {
            write_count(step, out);
        }
        out.extend_from_slice(facts.verdict.as_str().as_bytes());
        if facts.lap > 1 {
            out.push(b'l');
            write_count(facts.lap.into(), out);
        }
        let id = add(self.seed, &out[begin..]);
        out.truncate(begin);
        // Spreads the last bytes over all others.
        add(id, &[0; 8])
    }
}

/// Adds bytes to an FNV-1a hash (Fowler, Noll, Vo) of 128 bits.
fn add(hash: u128, bytes: &[u8]) -> u128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(hash, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}
