//! Random streams with all features: events and notices equal those of the definition.

use rondel_align::{
    LatePolicy, Marker, MaxWait, Notice, Order, OrderPolicy, OrderSettings, OrderStatistics, Origin,
    Released, TopicOrder,
};
use rondel_event::{Timestamp, TopicId};

use crate::naive::Naive;
use crate::{again, notices, released};
use rondel_testkit::Random;

fn at(ns: i64) -> Timestamp {
    Timestamp::from_nanos(ns)
}

/// Call of the order's interface.
#[derive(Clone, Debug)]
enum Call {
    Push { topic: u32, time: i64, origin: Option<Origin>, now: i64, item: u64 },
    Mark { topic: u32, marker: Marker, now: i64 },
    Close,
}

impl Call {
    fn now(&self) -> Option<i64> {
        match self {
            Call::Push { now, .. } | Call::Mark { now, .. } => Some(*now),
            Call::Close => None,
        }
    }
}

fn settings(numbers: &mut Random) -> OrderSettings {
    let waits = numbers.one_in(4);
    let all_fifo = numbers.one_in(2);
    let topic = |numbers: &mut Random| TopicOrder {
        max_wait: match numbers.below(if waits { 2 } else { 6 }) {
            0 | 1 => MaxWait::Fixed(numbers.pick(&[0, 1, 5, 20, 20, 60])),
            2 => MaxWait::Estimated {
                quantile: numbers.pick(&[0.5, 0.9, 1.0]),
                at_most: numbers.pick(&[10, 100]),
            },
            _ => MaxWait::None,
        },
        absent_after: Some(numbers.pick(&[0, 10, 30, 100])).filter(|_| numbers.one_in(3)),
        fifo: all_fifo || numbers.one_in(2),
        in_play: !numbers.one_in(8),
    };
    OrderSettings {
        policy: if numbers.one_in(12) { OrderPolicy::Arrival } else { OrderPolicy::EventTime },
        topics: (0..1 + numbers.below(6)).map(|_| topic(numbers)).collect(),
        queue: numbers.pick(&[0, 0, 3, 10, 40]),
        ahead: Some(numbers.pick(&[5, 40])).filter(|_| numbers.one_in(4)),
        behind: Some(numbers.pick(&[20, 60])).filter(|_| numbers.one_in(4)),
        late: numbers.pick(&[LatePolicy::Drop, LatePolicy::Late, LatePolicy::Inconclusive]),
    }
}

fn calls(numbers: &mut Random, topics: u64) -> Vec<Call> {
    let markers = numbers.one_in(2);
    let origins = numbers.one_in(2);
    let (pace, spread) = (numbers.pick(&[1, 4, 12]), numbers.pick(&[0, 3, 10, 50]));
    let silent = numbers.below(2 * topics);
    // For each topic the time of the last marker and the events since.
    let mut announced = vec![None; topics as usize];
    let mut next_number = [[0_u64; 2]; 8];
    let mut now = numbers.pick(&[0_i64, -50, 1_000]);
    let mut calls = Vec::new();
    let mut latest = now;
    for item in 0..numbers.pick(&[20, 60, 200]) {
        now += numbers.below(pace) as i64;
        if numbers.one_in(15) {
            now += numbers.below(80) as i64;
        }
        let shown = if numbers.one_in(20) { now - numbers.below(5) as i64 } else { now };
        let topic = numbers.below(topics);
        if topic == silent && !numbers.one_in(40) {
            continue;
        }
        let index = topic as usize;
        if markers && numbers.one_in(4) {
            let complete = now - numbers.below(12) as i64;
            let last = announced[index];
            let after = match numbers.below(8) {
                0 => None,
                1 => Some(complete - numbers.below(20) as i64),
                _ => last.or(Some(complete - 10)),
            };
            // Mostly the actual count, or a somewhat larger one.
            let inside = |call: &&Call| {
                matches!(call, Call::Push { topic, time, .. } if u64::from(*topic) == index as u64
                    && *time <= complete && after.is_none_or(|after| *time > after))
            };
            let received = calls.iter().filter(inside).count() as u64;
            let count = (!numbers.one_in(6)).then(|| received + numbers.pick(&[0, 0, 0, 1, 2]));
            announced[index] = Some(last.map_or(complete, |last: i64| last.max(complete)));
            let marker = Marker { complete: at(complete), after: after.map(at), count };
            calls.push(Call::Mark { topic: topic as u32, marker, now: shown });
            continue;
        }
        let time = match numbers.below(30) {
            0 => latest,
            1 => now + numbers.below(60) as i64,
            2 => now - numbers.below(90) as i64,
            _ => now - numbers.below(spread + 1) as i64,
        };
        latest = time;
        let origin = (origins && !numbers.one_in(9)).then(|| {
            let publisher = numbers.below(2);
            let next = &mut next_number[index][publisher as usize];
            let number = match numbers.below(12) {
                0 => next.saturating_sub(numbers.below(3)),
                1 => *next + numbers.below(3),
                _ => *next,
            };
            *next = (*next).max(number + 1);
            Origin { publisher, number }
        });
        calls.push(Call::Push { topic: topic as u32, time, origin, now: shown, item });
        if numbers.one_in(25) {
            calls.push(Call::Close);
        }
    }
    calls
}

fn play(order: &mut Order<u64>, call: &Call) {
    match call {
        Call::Push { topic, time, origin, now, item } => {
            order.push(TopicId(*topic), at(*time), *origin, at(*now), *item)
        }
        Call::Mark { topic, marker, now } => order.mark(TopicId(*topic), marker, at(*now)),
        Call::Close => {
            if let Some(complete) = order.complete_up_to() {
                order.close(complete);
            }
        }
    }
}

fn play_naive(naive: &mut Naive, call: &Call) {
    match call {
        Call::Push { topic, time, origin, now, item } => {
            naive.push(TopicId(*topic), at(*time), *origin, at(*now), *item)
        }
        Call::Mark { topic, marker, now } => naive.mark(TopicId(*topic), marker, at(*now)),
        Call::Close => {
            if let Some(complete) = naive.complete_up_to() {
                naive.close(complete);
            }
        }
    }
}

/// Checks that the predicted deadlines are correct.
fn foresees(order: &Order<u64>, numbers: &mut Random, now: i64) {
    let quiet = |until: i64| {
        let mut order = order.clone();
        order.advance(at(until));
        order.pop().is_none() && order.notices().next().is_none()
    };
    match order.deadline().map(Timestamp::as_nanos) {
        Some(due) => {
            assert!(due > now && quiet(due - 1) && !quiet(due), "{due} is not the deadline at {now}");
        }
        None => assert!(quiet(now + 1_000_000), "no deadline"),
    }
    let complete = |until: i64| {
        let mut order = order.clone();
        order.advance(at(until));
        released(&mut order);
        order.complete_up_to().map_or(i64::MIN, Timestamp::as_nanos)
    };
    let wanted = now - 60 + numbers.below(90) as i64;
    match order.complete_at(at(wanted)).map(Timestamp::as_nanos) {
        Some(then) => {
            assert!(then >= now && complete(then) >= wanted, "not complete up to {wanted} at {then}");
            // Waiting events may be released before, with a later time.
            let earliest = order.waiting() == 0 && then > now;
            assert!(!earliest || complete(then - 1) < wanted, "complete up to {wanted} before {then}");
        }
        None => assert!(complete(now + 1_000_000) < wanted, "complete up to {wanted} some time"),
    }
}

fn agrees(seed: u64) {
    let mut numbers = Random::new(seed);
    let settings = settings(&mut numbers);
    let calls = calls(&mut numbers, settings.topics.len() as u64);
    let mut order = Order::new(settings.clone());
    let mut naive = Naive::new(settings.clone());
    // The calls at which the order is replaced by its restored snapshot.
    let mut cuts = Random::new(!seed);
    let often = cuts.pick(&[1, 5, 30]);
    let (mut out, mut notices, mut now) = (Vec::new(), Vec::new(), i64::MIN);
    for (i, call) in calls.iter().enumerate() {
        let context = || format!("call {i}: {call:?}\n{settings:#?}\n{:?}", &calls[..i]);
        play(&mut order, call);
        play_naive(&mut naive, call);
        now = now.max(call.now().unwrap_or(now));
        if numbers.one_in(3) {
            now += numbers.below(10) as i64;
            order.advance(at(now));
            naive.advance(at(now));
        }
        out.extend(released(&mut order));
        notices.extend(order.notices());
        assert_eq!(naive.released, out, "{}", context());
        assert_eq!(naive.notices, notices, "{}", context());
        assert_eq!(order.deadline(), naive.deadline(), "{}", context());
        assert_eq!(order.complete_up_to(), naive.complete_up_to(), "{}", context());
        if numbers.one_in(4) {
            foresees(&order, &mut numbers, now);
        }
        if cuts.one_in(often) {
            order = again(&order, &settings);
        }
    }
    order.flush();
    naive.flush();
    out.extend(released(&mut order));
    notices.extend(order.notices());
    assert_eq!(naive.released, out);
    assert_eq!(naive.notices, notices);
    sound(&settings, &calls, &out, &notices, &order);
    if !calls.iter().any(|call| matches!(call, Call::Close)) {
        independent_of_advance(&mut numbers, &settings, &calls);
    }
}

/// Checks that no event is lost and all but late ones are in order.
fn sound(
    settings: &OrderSettings,
    calls: &[Call],
    out: &[Released<u64>],
    notices: &[Notice],
    order: &Order<u64>,
) {
    let statistics = order.statistics();
    let total = |count: fn(&OrderStatistics) -> u64| statistics.iter().map(count).sum::<u64>();
    let pushed = calls.iter().filter(|call| matches!(call, Call::Push { .. })).count() as u64;
    assert_eq!(total(|t| t.received), pushed);
    assert_eq!(pushed, total(|t| t.released + t.refused + t.duplicates + t.dropped));
    assert_eq!(total(|t| t.released), out.len() as u64);
    assert_eq!(order.waiting(), 0);
    let count = |f: fn(&Notice) -> bool| notices.iter().filter(|notice| f(notice)).count() as u64;
    assert_eq!(total(|t| t.refused), count(|n| matches!(n, Notice::Refused { .. })));
    assert_eq!(total(|t| t.duplicates), count(|n| matches!(n, Notice::Duplicate { .. })));
    assert_eq!(total(|t| t.early), count(|n| matches!(n, Notice::Early { .. })));
    if settings.policy == OrderPolicy::EventTime {
        assert_eq!(total(|t| t.late), count(|n| matches!(n, Notice::Late { .. })));
        let in_time = out.iter().filter(|event| event.lateness.is_none());
        assert!(in_time.map(|event| (event.time, event.topic)).is_sorted());
        assert!(out.iter().map(|event| event.time).is_sorted());
        assert!(settings.late != LatePolicy::Drop || out.iter().all(|event| event.lateness.is_none()));
    }
    let mut items: Vec<u64> = out.iter().map(|event| event.item).collect();
    items.sort_unstable();
    assert!(items.windows(2).all(|pair| pair[0] < pair[1]));
}

/// Checks that additional calls of `advance` make no difference.
fn independent_of_advance(numbers: &mut Random, settings: &OrderSettings, calls: &[Call]) {
    let mut run = |often: u64| {
        let mut order = Order::new(settings.clone());
        let mut now = i64::MIN;
        for call in calls {
            let next = call.now().unwrap_or(now);
            while often > 0 && now > i64::MIN && now < next && !numbers.one_in(often) {
                now += 1 + numbers.below((next - now) as u64) as i64;
                order.advance(at(now));
            }
            now = now.max(next);
            play(&mut order, call);
        }
        order.flush();
        (released(&mut order), notices(&mut order), order.statistics())
    };
    let seldom = run(0);
    assert_eq!(seldom, run(2));
    assert_eq!(seldom, run(10));
}

#[test]
fn random_streams_agree_with_the_definition() {
    rondel_testkit::seeds("random_streams_agree_with_the_definition", 3_000).for_each(agrees);
}
