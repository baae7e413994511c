//! Counts of values and payloads in lines that could not be read.

use rondel_decode::lines::Lines;

/// Values of another type and undecodable payloads in lines. Lines count over all laps, a session by the lap.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct LineCounts {
    /// Values of another type, by topic.
    mistyped: Vec<u64>,
    /// Payloads that could not be decoded.
    undecodable: u64,
    /// Values of another type in the earlier laps, by topic.
    mistyped_before: Vec<u64>,
    /// Payloads of the earlier laps that could not be decoded.
    undecodable_before: u64,
}

impl LineCounts {
    /// Takes over the counts of lines.
    pub(in crate::session) fn update(&mut self, lines: &Lines) {
        if self.mistyped != lines.mistyped() {
            self.mistyped = lines.mistyped().to_vec();
        }
        self.undecodable = lines.undecodable();
    }

    /// Begins a lap after one with these counts.
    pub(in crate::session) fn continue_after(&mut self, before: &LineCounts) {
        (self.mistyped_before, self.undecodable_before) = (before.mistyped.clone(), before.undecodable);
        (self.mistyped, self.undecodable) = (before.mistyped.clone(), before.undecodable);
    }

    /// Values of another type in this lap, by topic.
    pub(in crate::session) fn mistyped(&self) -> impl Iterator<Item = u64> + '_ {
        let before = self.mistyped_before.iter().copied().chain(std::iter::repeat(0));
        self.mistyped.iter().zip(before).map(|(now, before)| now - before)
    }

    /// Payloads of this lap that could not be decoded.
    pub(in crate::session) fn undecodable(&self) -> u64 {
        self.undecodable - self.undecodable_before
    }
}
