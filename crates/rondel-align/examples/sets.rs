//! Measures the cost of building sets: `cargo run --release -p rondel-align --example sets`.
//!
//! Prints nanoseconds per message, messages and sets per second, without the generation of the stream. With
//! an argument (`approximate`), only policies whose names begin with it.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use rondel_align::{SetPolicy, SetSettings, Sets};
use rondel_event::{Timestamp, TopicId};

const MS: u64 = 1_000_000;

/// Topic, stamp and clock of each message, in the order of arrival.
type Stream = Vec<(TopicId, Timestamp, Timestamp)>;

/// Generates topics with the given periods in ms and jitter; messages are delayed by 1 to 20 ms. The first
/// `dead` topics have no messages.
fn stream(topics: usize, periods: &[u64], jitter: u64, dead: usize, len: usize) -> Stream {
    let mut random = 1u64;
    let mut below = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n.max(1)
    };
    let mut events = Vec::new();
    let each = periods.iter().cycle().take(topics).map(|period| 1.0 / *period as f64).sum::<f64>();
    let span = (len as f64 / each) as u64 * MS;
    for (topic, period) in periods.iter().cycle().take(topics).enumerate().skip(dead) {
        let delay = below(20 * MS);
        let mut time = if jitter > 0 { below(period * MS) } else { 0 };
        while time < span {
            let stamp = (time + below(jitter * MS)) as i64;
            let at = Timestamp::from_nanos;
            events.push((TopicId(topic as u32), at(stamp), at(stamp + (MS + delay) as i64)));
            time += period * MS;
        }
    }
    events.sort_by_key(|&(topic, stamp, now)| (now, stamp, topic));
    events
}

fn main() {
    let only = std::env::args().nth(1).unwrap_or_default();
    let equal: &[u64] = &[40];
    // The rates of the case study: five topics at 25 Hz, three at 10, one at 5.
    let mixed: &[u64] = &[40, 40, 40, 40, 40, 100, 100, 100, 200];
    let approximate = |queue| SetPolicy::approximate(queue);
    let bounded = |lower_bounds| SetPolicy::Approximate {
        queue: 10,
        age_penalty: 0.1,
        max_interval: None,
        lower_bounds,
    };
    let epsilon = SetPolicy::Epsilon { epsilon: 30 * MS, queue: 10 };
    let lower = |periods: &[u64], topics: usize| {
        periods.iter().cycle().take(topics).map(|period| (period - 10) * MS).collect()
    };
    println!("{:50} {:>6} {:>8} {:>12} {:>10}", "", "topics", "ns/msg", "messages/s", "sets/s");
    for topics in [2, 9, 50, 1000] {
        for (name, policy, periods, jitter, dead) in [
            ("exact", SetPolicy::Exact { queue: 10 }, equal, 0, 0),
            ("approximate, equal rates", approximate(10), equal, 10, 0),
            ("approximate, equal rates, lower bounds", bounded(lower(equal, topics)), equal, 10, 0),
            ("approximate, rates of the case study", approximate(10), mixed, 10, 0),
            ("approximate, of the case study, lower bounds", bounded(lower(mixed, topics)), mixed, 10, 0),
            ("approximate, one topic dead", approximate(10), equal, 10, 1),
            ("epsilon, equal rates", epsilon.clone(), equal, 10, 0),
            ("epsilon, rates of the case study", epsilon.clone(), mixed, 10, 0),
            ("latest, rates of the case study", SetPolicy::latest(), mixed, 10, 0),
        ] {
            if !name.starts_with(&only) {
                continue;
            }
            let events = stream(topics, periods, jitter, dead, 500_000);
            let (mut best, mut count) = (f64::MAX, 0);
            for _ in 0..3 {
                let absent_after = vec![Some(1_000 * MS); topics];
                let settings = SetSettings { policy: policy.clone(), topics, absent_after };
                let mut sets = Sets::new(settings);
                let mut set = Vec::new();
                count = 0;
                let begin = Instant::now();
                for (i, &(topic, time, now)) in events.iter().enumerate() {
                    sets.push(topic, time, now, i);
                    while sets.pop(&mut set).is_some() {
                        black_box(&set);
                        count += 1;
                    }
                    black_box(sets.notices().count());
                }
                best = best.min(begin.elapsed().as_secs_f64());
            }
            let per_second = events.len() as f64 / best;
            let sets = f64::from(count) / best;
            println!("{name:50} {topics:6} {:8.1} {per_second:12.0} {sets:10.0}", 1e9 / per_second);
        }
    }
}
