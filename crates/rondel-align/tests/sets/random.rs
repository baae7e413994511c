//! Random streams, compared with the naive policies.

use rondel_align::{SetNotice, SetPolicy, SetSettings, Sets};
use rondel_event::{Timestamp, TopicId};
use rondel_testkit::Random;

use crate::naive::{Approximate, Epsilon, Exact, Item, Latest, Naive, Outcome};
use crate::snapshots::again;

/// Returns `true` in `percent` of 100 calls on average.
fn chance(random: &mut Random, percent: u64) -> bool {
    random.below(100) < percent
}

/// Topic, stamp, clock.
pub(crate) type Event = (usize, i64, i64);

/// Generates topics with different periods and jitter. Some lose items, some pause, some step back; delays put
/// topics ahead of each other.
pub(crate) fn stream(random: &mut Random, topics: usize, len: usize) -> Vec<Event> {
    let scale = [1, 1, 10, 1_000_000][random.below(4) as usize];
    let wild = chance(random, 20);
    let mut events = Vec::new();
    let common = 1 + random.below(20) as i64;
    let same = chance(random, 50);
    for topic in 0..topics {
        let period = if same { common } else { 1 + random.below(30) as i64 };
        let jitter = random.below(period as u64 + 1);
        let loss = [0, 0, 10, 50][random.below(4) as usize];
        let delay = random.below(40) as i64;
        let mut time = random.below(20) as i64;
        for _ in 0..len / topics + 1 {
            let stamp = time + random.below(jitter + 1) as i64;
            time += period;
            if wild && chance(random, 2) {
                time -= random.below(60) as i64;
            }
            if chance(random, 1) {
                time += random.below(100) as i64;
            }
            if !chance(random, loss) {
                events.push((topic, stamp * scale, (time + delay) * scale));
            }
        }
    }
    // `wild` streams are sorted by arrival, the others by stamp on each topic.
    events.sort_by_key(|&(_, _, now)| now);
    if !wild {
        for topic in 0..topics {
            let places: Vec<usize> = (0..events.len()).filter(|&i| events[i].0 == topic).collect();
            let mut times: Vec<i64> = places.iter().map(|&i| events[i].1).collect();
            times.sort_unstable();
            places.into_iter().zip(times).for_each(|(i, time)| events[i].1 = time);
        }
    }
    events
}

fn drain(sets: &mut Sets<u32>, outcome: &mut Outcome) {
    let mut items = Vec::new();
    while let Some(set) = sets.pop(&mut items) {
        let items: Vec<Item> = items.iter().map(|&(time, item)| (time.as_nanos(), item)).collect();
        outcome.sets.push((set.time.as_nanos(), items));
    }
    for notice in sets.notices() {
        if let SetNotice::Unused { topic, time, why } = notice {
            outcome.unused.push((topic.index(), time.as_nanos(), why));
        }
    }
    outcome.unused.sort_by_key(|&(topic, time, why)| (topic, time, why.name()));
}

/// Feeds both with the same events and compares their output after each one.
fn compare(policy: SetPolicy, naive: &mut dyn Naive, topics: usize, events: &[Event]) -> usize {
    let what = format!("{policy:?} {events:?}");
    let settings = SetSettings { policy, topics, absent_after: Vec::new() };
    let mut sets = Sets::new(settings.clone());
    // The events at which the sets are replaced by their restored snapshot.
    let mut cuts = Random::new(events.iter().map(|event| event.1 as u64).fold(1, u64::wrapping_add));
    let often = [2, 10, 50][cuts.below(3) as usize];
    let mut count = 0;
    let mut check = |sets: &mut Sets<u32>, naive: &mut dyn Naive, event: usize| {
        let mut found = Outcome::default();
        drain(sets, &mut found);
        let expected = std::mem::take(naive.outcome());
        count += expected.sets.len();
        let mut expected = expected;
        expected.unused.sort_by_key(|&(topic, time, why)| (topic, time, why.name()));
        assert_eq!(found, expected, "event {event} of {what}");
    };
    for (i, &(topic, time, now)) in events.iter().enumerate() {
        let at = Timestamp::from_nanos;
        sets.push(TopicId(topic as u32), at(time), at(now), i as u32);
        naive.push(topic, time, now, i as u32);
        check(&mut sets, naive, i);
        if cuts.below(often) == 0 {
            sets = again(&sets, Sets::new(settings.clone()));
        }
    }
    sets.flush();
    naive.flush();
    check(&mut sets, naive, events.len());
    for topic in &sets.statistics().topics {
        assert_eq!(topic.waiting(), 0, "{what}");
        assert_eq!(topic.received, topic.used + topic.unused(), "{what}");
    }
    count
}

fn topics(random: &mut Random) -> usize {
    [1, 2, 2, 3, 3, 4, 5, 6, 9, 17][random.below(10) as usize]
}

#[test]
fn exact_sets_equal_those_of_the_naive_policy() {
    let mut count = 0;
    for seed in rondel_testkit::seeds("sets-exact", 3000) {
        let random = &mut Random::new(seed);
        let topics = topics(random);
        let queue = random.below(8) as usize;
        let events = stream(random, topics, 60);
        let mut naive = Exact { topics, queue, ..Exact::default() };
        count += compare(SetPolicy::Exact { queue }, &mut naive, topics, &events);
    }
    assert!(rondel_testkit::is_replay() || count > 10_000, "only {count} sets");
}

#[test]
fn approximate_sets_equal_those_of_the_naive_policy() {
    let mut count = 0;
    for seed in rondel_testkit::seeds("sets-approximate", 6000) {
        let random = &mut Random::new(seed);
        let topics = if seed % 100 == 0 { 50 } else { topics(random) };
        let queue = [0, 0, 1, 2, 3, 5, 10][random.below(7) as usize];
        let age_penalty = [0.0, 0.1, 0.1, 0.5, 3.0][random.below(5) as usize];
        let events = stream(random, topics, if topics == 50 { 500 } else { 100 });
        let widest = events.iter().map(|e| e.1).max().unwrap_or(0) / 8 + 1;
        let max_interval = chance(random, 30).then(|| random.below(widest as u64));
        let bound = |_| if chance(random, 40) { random.below(widest as u64) / 4 } else { 0 };
        let bounds: Vec<u64> = (0..topics).map(bound).collect();
        let lower_bounds = bounds.iter().map(|&b| b as i64).collect();
        let limit = max_interval.map_or(i64::MAX, |d| d as i64);
        let mut naive = Approximate::new(queue, age_penalty, limit, lower_bounds);
        let policy = SetPolicy::Approximate { queue, age_penalty, max_interval, lower_bounds: bounds };
        count += compare(policy, &mut naive, topics, &events);
    }
    assert!(rondel_testkit::is_replay() || count > 50_000, "only {count} sets");
}

#[test]
fn epsilon_sets_equal_those_of_the_naive_policy() {
    let mut count = 0;
    for seed in rondel_testkit::seeds("sets-epsilon", 3000) {
        let random = &mut Random::new(seed);
        let topics = topics(random);
        let queue = random.below(8) as usize;
        let events = stream(random, topics, 80);
        let widest = events.iter().map(|e| e.1).max().unwrap_or(0) / 8 + 1;
        let epsilon = random.below(widest as u64);
        let queues = vec![Vec::new(); topics];
        let outcome = Outcome::default();
        let mut naive = Epsilon { epsilon: epsilon as i64, queue, queues, outcome };
        let policy = SetPolicy::Epsilon { epsilon, queue };
        count += compare(policy, &mut naive, topics, &events);
    }
    assert!(rondel_testkit::is_replay() || count > 10_000, "only {count} sets");
}

#[test]
fn latest_sets_equal_those_of_the_naive_policy() {
    let mut count = 0;
    for seed in rondel_testkit::seeds("sets-latest", 3000) {
        let random = &mut Random::new(seed);
        let topics = topics(random);
        let events = stream(random, topics, 100);
        count += compare(SetPolicy::latest(), &mut Latest::new(topics), topics, &events);
        // However fast it is replayed, and with whatever jitter, the sets are the same.
        let mut now = 0;
        let replayed = events.iter().map(|&(topic, stamp, _)| {
            now += random.below(3) as i64;
            (topic, stamp, now)
        });
        let replayed: Vec<Event> = replayed.collect();
        compare(SetPolicy::latest(), &mut Latest::new(topics), topics, &replayed);
    }
    assert!(rondel_testkit::is_replay() || count > 10_000, "only {count} sets");
}
