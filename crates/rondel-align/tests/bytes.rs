//! The limit of the bytes of waiting items.

#![allow(clippy::unwrap_used)]

use rondel_align::{
    LatePolicy, MaxWait, Notice, Order, OrderPolicy, OrderSettings, SetNotice, SetPolicy, SetSettings, Sets,
    TopicOrder, Unused,
};
use rondel_event::{Timestamp, TopicId};

fn at(time: i64) -> Timestamp {
    Timestamp::from_nanos(time)
}

fn settings() -> OrderSettings {
    let topic = TopicOrder { max_wait: MaxWait::None, ..TopicOrder::default() };
    OrderSettings {
        policy: OrderPolicy::EventTime,
        topics: vec![topic; 2],
        queue: 0,
        ahead: None,
        behind: None,
        late: LatePolicy::Late,
    }
}

fn order() -> Order<String> {
    Order::new(settings()).with_bytes(100, String::len)
}

/// As many of the oldest events as needed are released early, each is reported and counted.
#[test]
fn an_order_releases_the_oldest_beyond_its_bytes() {
    let mut order = order();
    for time in 0..10 {
        order.push(TopicId(0), at(time), None, at(time), "x".repeat(10));
    }
    assert_eq!(order.pop(), None);
    order.push(TopicId(0), at(10), None, at(10), "y".repeat(15));
    assert_eq!((order.waiting(), order.notices().count()), (9, 2));
    // Larger than the limit alone.
    order.push(TopicId(0), at(11), None, at(11), "z".repeat(101));
    assert!(order.notices().all(|notice| matches!(notice, Notice::Early { .. })));
    assert_eq!((order.waiting(), order.statistics()[0].early), (0, 12));
    assert_eq!(std::iter::from_fn(|| order.pop()).count(), 12);
    // Released events no longer count.
    for time in 20..30 {
        order.push(TopicId(0), at(time), None, at(time), "x".repeat(10));
    }
    assert_eq!((order.waiting(), order.notices().count()), (10, 0));
}

#[test]
fn a_restored_order_counts_the_bytes_that_wait() {
    let mut order = order();
    for time in 0..10 {
        order.push(TopicId(0), at(time), None, at(time), "x".repeat(10));
    }
    let bytes = order.snapshot(|item, to| to.extend_from_slice(item.as_bytes()));
    let read = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let new = Order::new(settings()).with_bytes(100, String::len);
    let mut again = new.restored(&bytes, read).unwrap();
    again.push(TopicId(0), at(10), None, at(10), "y".into());
    assert_eq!((again.waiting(), again.notices().count()), (10, 1));
}

#[test]
fn sets_drop_the_oldest_beyond_their_bytes() {
    for policy in [
        SetPolicy::Exact { queue: 0 },
        SetPolicy::approximate(0),
        SetPolicy::Epsilon { epsilon: 0, queue: 0 },
    ] {
        let settings = SetSettings { policy: policy.clone(), topics: 2, absent_after: Vec::new() };
        let sets = || Sets::new(settings.clone()).with_bytes(100, String::len);
        let mut own = sets();
        let full = |own: &mut Sets<String>| {
            let is_full = |n: &SetNotice| matches!(n, SetNotice::Unused { why: Unused::QueueFull, .. });
            own.notices().filter(is_full).count()
        };
        for time in 0..10 {
            own.push(TopicId(0), at(time), at(time), "x".repeat(10));
        }
        assert_eq!(full(&mut own), 0, "{policy:?}");
        let bytes = own.snapshot(|item, to| to.extend_from_slice(item.as_bytes()));
        let read = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        for mut own in [own, sets().restored(&bytes, read).unwrap()] {
            own.push(TopicId(0), at(10), at(10), "y".repeat(15));
            assert_eq!(full(&mut own), 2, "{policy:?}");
            // Items of emitted sets no longer count.
            for round in 1..20 {
                for topic in [0, 1] {
                    own.push(TopicId(topic), at(1000 * round), at(1000 * round), "x".repeat(40));
                }
            }
            let mut set = Vec::new();
            let made = std::iter::from_fn(|| own.pop(&mut set)).count();
            assert!(made >= 15, "{policy:?}: {made}");
        }
    }
}
