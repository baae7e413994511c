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

use rondel_testkit::Random;

/// Runs a test for all its seeds, or for the requested one. The test returns whether the result equals that of the
/// sorted recording, which must not be rare.
fn for_seeds(name: &str, count: u64, test: impl Fn(&mut Random) -> Result<bool, String>) {
    let seeds = rondel_testkit::seeds(name, count);
    let (mut sorted, total) = (0, seeds.left());
    for seed in seeds {
        match test(&mut Random::new(seed)) {
            Ok(as_sorted) => sorted += u64::from(as_sorted),
            Err(why) => panic!("{why}"),
        }
    }
    assert!(total < 100 || sorted > total / 4, "only {sorted} of {total} say anything");
}

#[test]
fn verdicts_are_those_of_the_sorted_recording() {
    for_seeds("simulation-order", 2000, ordered::anything);
}

#[test]
fn with_counted_markers_no_event_is_late_or_waits_forever() {
    for_seeds("simulation-markers", 1000, ordered::counted);
}

#[test]
fn sets_are_those_of_a_direct_call() {
    for_seeds("simulation-sets", 800, sets::agree);
}
