//! Arbitrary input, including extreme values: no panic, and no event is lost.

use rondel_align::{LatePolicy, Marker, MaxWait, Order, OrderPolicy, OrderSettings, Origin, TopicOrder};
use rondel_event::{Timestamp, TopicId};

use crate::{again, released};
use rondel_testkit::Random;

const TIMES: [i64; 9] = [i64::MIN, i64::MIN + 1, -1, 0, 1, 1_000, i64::MAX - 1_000, i64::MAX - 1, i64::MAX];
const DURATIONS: [u64; 7] =
    [0, 1, 1_000, i64::MAX as u64 - 1, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX];

fn time(numbers: &mut Random) -> Timestamp {
    Timestamp::from_nanos(match numbers.below(3) {
        0 => numbers.next() as i64,
        _ => numbers.pick(&TIMES),
    })
}

fn settings(numbers: &mut Random) -> OrderSettings {
    let maybe = |numbers: &mut Random| Some(numbers.pick(&DURATIONS)).filter(|_| numbers.one_in(2));
    let topic = |numbers: &mut Random| TopicOrder {
        max_wait: match numbers.below(3) {
            0 => MaxWait::None,
            1 => MaxWait::Fixed(numbers.pick(&DURATIONS)),
            _ => MaxWait::Estimated {
                quantile: numbers.pick(&[f64::NAN, -1.0, 0.0, 0.5, 2.0, f64::INFINITY]),
                at_most: numbers.pick(&DURATIONS),
            },
        },
        absent_after: maybe(numbers),
        fifo: numbers.one_in(2),
        in_play: !numbers.one_in(4),
    };
    OrderSettings {
        policy: if numbers.one_in(6) { OrderPolicy::Arrival } else { OrderPolicy::EventTime },
        topics: (0..numbers.below(5)).map(|_| topic(numbers)).collect(),
        queue: numbers.pick(&[0, 1, 7]),
        ahead: maybe(numbers),
        behind: maybe(numbers),
        late: numbers.pick(&[LatePolicy::Drop, LatePolicy::Late, LatePolicy::Inconclusive]),
    }
}

fn arbitrary(seed: u64) {
    let mut numbers = Random::new(seed);
    let settings = settings(&mut numbers);
    let (policy, topics) = (settings.policy, settings.topics.len() as u64);
    let mut order = Order::new(settings.clone());
    let (mut pushed, mut out, mut highest) = (0, Vec::new(), i64::MIN);
    for item in 0..200_u64 {
        let topic = TopicId(if numbers.one_in(30) { u32::MAX } else { numbers.below(topics + 1) as u32 });
        // The clock mostly advances slowly.
        let now = if numbers.one_in(20) {
            time(&mut numbers)
        } else {
            Timestamp::from_nanos(highest.saturating_add(10))
        };
        match numbers.below(8) {
            0 => {
                let after = Some(time(&mut numbers)).filter(|_| numbers.one_in(2));
                let count = Some(numbers.pick(&[0, 1, 2, u64::MAX])).filter(|_| numbers.one_in(2));
                order.mark(topic, &Marker { complete: time(&mut numbers), after, count }, now);
            }
            1 => order.advance(now),
            2 if numbers.one_in(3) => order.close(time(&mut numbers)),
            3 if numbers.one_in(10) => order.flush(),
            _ => {
                let number = numbers.pick(&[0, 1, 2, item, u64::MAX - 1, u64::MAX]);
                let origin =
                    Some(Origin { publisher: numbers.below(2), number }).filter(|_| numbers.one_in(2));
                pushed += u64::from(u64::from(topic.0) < topics);
                order.push(topic, time(&mut numbers), origin, now, item);
            }
        }
        highest = highest.max(now.as_nanos());
        order.advance(Timestamp::from_nanos(highest));
        let due = order.deadline().map(Timestamp::as_nanos);
        assert!(due.is_none_or(|due| due > highest || highest == i64::MAX), "{due:?} at {highest}");
        let wanted = time(&mut numbers);
        let _ = (order.complete_up_to(), order.complete_at(wanted));
        if numbers.one_in(50) {
            let _ = order.statistics();
        }
        if numbers.one_in(2) {
            out.extend(released(&mut order));
        }
        if numbers.one_in(20) {
            order = again(&order, &settings);
        }
    }
    order.flush();
    out.extend(released(&mut order));
    assert_eq!(order.waiting(), 0);
    let statistics = order.statistics();
    let lost: u64 = statistics.iter().map(|topic| topic.refused + topic.duplicates + topic.dropped).sum();
    assert_eq!(pushed, out.len() as u64 + lost);
    assert!(policy == OrderPolicy::Arrival || out.iter().map(|event| event.time).is_sorted());
}

#[test]
fn arbitrary_input_is_handled() {
    rondel_testkit::seeds("arbitrary_input_is_handled", 2_000).for_each(arbitrary);
}
