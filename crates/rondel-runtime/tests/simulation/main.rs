//! A simulated network between publishers and monitors, generated from a seed: whatever routes the messages take, the
//! verdicts are those of the sorted recording.
//!
//! `RONDEL_SEED=17 cargo test -p rondel-runtime --test simulation NAME` runs one seed of a test alone, `RONDEL_CASES`
//! multiplies their number.

#![allow(clippy::unwrap_used, clippy::panic)]

mod network;
mod ordered;
mod recording;
mod sets;
mod specs;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Pseudorandom numbers, the same for the same seed (splitmix64).
pub(crate) struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// From 0, less than `end`.
    pub(crate) fn below(&mut self, end: i64) -> i64 {
        (self.next() % end.max(1) as u64) as i64
    }

    /// True once in `times` calls on average.
    pub(crate) fn one_in(&mut self, times: i64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as i64) as usize]
    }
}

/// Runs a test for all its seeds, or for the requested one. The test returns whether the result equals that of the
/// sorted recording, which must not be rare.
fn for_seeds(count: u64, test: impl Fn(&mut Numbers) -> Result<bool, String>) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("RONDEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..count.saturating_mul(number("RONDEL_CASES").unwrap_or(1)),
    };
    let (mut sorted, total) = (0, seeds.end - seeds.start);
    for seed in seeds {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        let again = format!("RONDEL_SEED={seed} cargo test -p rondel-engine --test simulation {name}");
        match catch_unwind(AssertUnwindSafe(|| test(&mut Numbers(seed)))) {
            Ok(Ok(as_sorted)) => sorted += u64::from(as_sorted),
            Ok(Err(why)) => panic!("{why}\nagain: {again}"),
            Err(_) => panic!(
                "it panics
again: {again}"
            ),
        }
    }
    assert!(total < 100 || sorted > total / 4, "only {sorted} of {total} say anything");
}

#[test]
fn verdicts_are_those_of_the_sorted_recording() {
    for_seeds(2000, ordered::anything);
}

#[test]
fn with_counted_markers_no_event_is_late_or_waits_forever() {
    for_seeds(1000, ordered::counted);
}

#[test]
fn sets_are_those_of_a_direct_call() {
    for_seeds(800, sets::agree);
}
