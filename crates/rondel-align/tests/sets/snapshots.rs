//! Restored sets continue like the original ones.

use rondel_align::{SetNotice, SetPolicy, SetSettings, SetTime, Sets};
use rondel_event::{Timestamp, TopicId};

use crate::random::stream;
use rondel_testkit::Random;

/// Returns the sets restored from their snapshot.
pub(crate) fn again(sets: &Sets<u32>, new: Sets<u32>) -> Sets<u32> {
    let bytes = sets.snapshot(|item, to| to.extend_from_slice(&item.to_le_bytes()));
    let again = new.restored(&bytes, |bytes| bytes.try_into().ok().map(u32::from_le_bytes)).unwrap();
    assert_eq!(sets.statistics(), again.statistics());
    assert_eq!(sets.deadline(), again.deadline());
    again
}

pub(crate) fn policy(random: &mut Random, topics: usize) -> SetPolicy {
    let queue = random.below(6) as usize;
    match random.below(4) {
        0 => SetPolicy::Exact { queue },
        1 => SetPolicy::Approximate {
            queue,
            age_penalty: 0.1,
            max_interval: Some(random.below(100)).filter(|interval| interval % 2 == 0),
            lower_bounds: vec![random.below(10); topics],
        },
        2 => SetPolicy::Epsilon { epsilon: random.below(40), queue },
        _ => SetPolicy::latest(),
    }
}

type Output = (Vec<(SetTime, Vec<(Timestamp, u32)>)>, Vec<SetNotice>);

/// Takes sets sometimes, and notices always, since they are not in a snapshot.
fn take(sets: &mut Sets<u32>, random: &mut Random, output: &mut Output) {
    let mut items = Vec::new();
    while random.below(3) > 0 {
        let Some(set) = sets.pop(&mut items) else { break };
        output.0.push((set, items.clone()));
    }
    output.1.extend(sets.notices());
}

#[test]
fn restored_sets_continue_like_the_original() {
    let mut count = 0;
    for seed in rondel_testkit::seeds("sets-restored_sets_continue_like_the_original", 2_000) {
        let random = &mut Random::new(seed);
        let topics = [1, 2, 3, 5, 9][random.below(5) as usize];
        let absent_after =
            (0..topics).map(|_| Some(random.below(100)).filter(|after| after % 3 > 0)).collect();
        let settings = SetSettings { policy: policy(random, topics), topics, absent_after };
        let limit = |random: &mut Random| Some(30 + random.below(60)).filter(|limit| limit % 3 == 0);
        let limits = (limit(random), limit(random));
        let events = stream(random, topics, 80);
        let new = || Sets::new(settings.clone()).with_limits(limits.0, limits.1);
        let often = [1, 4, 20][random.below(3) as usize];
        let run = |cuts: bool| {
            let (mut sets, mut output) = (new(), Output::default());
            let (random, at) = (&mut Random::new(seed), Timestamp::from_nanos);
            for (i, &(topic, time, now)) in events.iter().enumerate() {
                if random.below(4) == 0 {
                    sets.advance(at(now - random.below(20) as i64));
                }
                sets.push(TopicId(topic as u32), at(time), at(now), i as u32);
                take(&mut sets, random, &mut output);
                if random.below(often) == 0 && cuts {
                    sets = again(&sets, new());
                }
            }
            sets.flush();
            while let (before, ()) = (output.0.len(), take(&mut sets, random, &mut output))
                && before < output.0.len()
            {}
            (output, sets.statistics().clone())
        };
        let uncut = run(false);
        count += uncut.0.0.len();
        assert_eq!(uncut, run(true), "seed {seed}, {settings:?}, {limits:?}, {events:?}");
    }
    assert!(rondel_testkit::is_replay() || count > 10_000, "only {count} sets");
}

#[test]
fn other_settings_are_refused() {
    let settings =
        |queue| SetSettings { policy: SetPolicy::Exact { queue }, topics: 2, absent_after: Vec::new() };
    let sets: Sets<u32> = Sets::new(settings(3));
    let bytes = sets.snapshot(|item, to| to.extend_from_slice(&item.to_le_bytes()));
    let read = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_le_bytes);
    assert!(Sets::restore(settings(3), &bytes, read).is_ok());
    let why = Sets::restore(settings(4), &bytes, read).unwrap_err().to_string();
    assert!(why.contains("other alignment settings"), "{why}");
    let limited = Sets::new(settings(3)).with_limits(Some(1), None);
    assert!(limited.restored(&bytes, read).is_err());
}

#[test]
fn a_pause_does_not_count_as_absence() {
    let at = Timestamp::from_nanos;
    let policy = SetPolicy::Exact { queue: 3 };
    let mut sets: Sets<u32> = Sets::new(SetSettings { policy, topics: 2, absent_after: vec![Some(10); 2] });
    sets.push(TopicId(0), at(0), at(0), 0);
    sets.advance_after_gap(at(1_000));
    assert_eq!(sets.notices().count(), 0);
    assert_eq!(sets.deadline(), Some(at(1_010)));
    sets.advance(at(1_010));
    assert_eq!(sets.notices().count(), 2);
}
