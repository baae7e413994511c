//! Simulated network with publishers of events and markers, which are delayed and overtake each other.

use rondel_align::{
    LatePolicy, Marker, MaxWait, Notice, Order, OrderPolicy, OrderSettings, OrderStatistics, Origin,
    TopicOrder,
};
use rondel_event::{Timestamp, TopicId};

use crate::{notices, released};
use rondel_testkit::Random;

fn at(ns: i64) -> Timestamp {
    Timestamp::from_nanos(ns)
}

/// Input and output of a simulated network.
#[derive(Clone, Debug)]
enum Delivery {
    Event { time: i64, number: u64, item: u64 },
    Marker(Marker),
}

struct Network {
    /// Deliveries with their time and topic.
    deliveries: Vec<(i64, u32, Delivery)>,
    /// The events in the order expected after alignment.
    sent: Vec<(i64, u32, u64)>,
    /// Maximum delay of an event.
    slowest: i64,
}

/// Each publisher sends events with times that never step back, and markers. The events of `fifo` topics are delivered in
/// order; markers are delivered independently.
fn network(numbers: &mut Random, fifo: &[bool], repeat: bool) -> Network {
    let mut net = Network { deliveries: Vec::new(), sent: Vec::new(), slowest: 0 };
    let lag = numbers.pick(&[1, 10, 60]);
    let mut item = 0;
    for (topic, &fifo) in (0..).zip(fifo) {
        let mut time = numbers.below(20) as i64;
        let (mut after, mut count, mut arrived) = (None, 0, 0);
        for number in 0..20 + numbers.below(60) {
            if !numbers.one_in(5) {
                time += numbers.below(12) as i64;
            }
            let delay = numbers.below(lag) as i64;
            arrived = if fifo { arrived.max(time + delay) } else { time + delay };
            net.slowest = net.slowest.max(arrived - time);
            net.sent.push((time, topic, item));
            let event = Delivery::Event { time, number, item };
            if repeat && numbers.one_in(10) {
                let again = arrived + numbers.below(lag) as i64;
                net.deliveries.push((again, topic, event.clone()));
            }
            net.deliveries.push((arrived, topic, event));
            (item, count) = (item + 1, count + 1);
            if numbers.one_in(4) {
                // All events of this time were sent: the next one is later.
                let marker = Marker { complete: at(time), after: after.map(at), count: Some(count) };
                (after, count) = (Some(time), 0);
                net.deliveries.push((time + numbers.below(lag) as i64, topic, Delivery::Marker(marker)));
                time += 1;
            }
        }
        let last = Marker { complete: at(1_000_000), after: after.map(at), count: Some(count) };
        net.deliveries.push((time + lag as i64, topic, Delivery::Marker(last)));
    }
    // Markers overtake events, but not each other.
    let mut latest = vec![0; fifo.len()];
    net.deliveries.sort_by_key(|delivery| match &delivery.2 {
        Delivery::Marker(marker) => marker.complete.as_nanos(),
        Delivery::Event { .. } => 0,
    });
    for (when, topic, delivery) in &mut net.deliveries {
        if matches!(delivery, Delivery::Marker(_)) {
            let latest = &mut latest[*topic as usize];
            *latest = (*when).max(*latest);
            *when = *latest;
        }
    }
    net.deliveries.sort_by_key(|delivery| delivery.0);
    net.sent.sort_unstable();
    net
}

fn play(net: &Network, topics: Vec<TopicOrder>, late: LatePolicy) -> Order<u64> {
    let policy = OrderPolicy::EventTime;
    let mut order = Order::new(OrderSettings { policy, topics, queue: 0, ahead: None, behind: None, late });
    for (now, topic, delivery) in &net.deliveries {
        let topic = TopicId(*topic);
        match delivery {
            Delivery::Event { time, number, item } => {
                let origin = Some(Origin { publisher: 1, number: *number });
                order.push(topic, at(*time), origin, at(*now), *item);
            }
            Delivery::Marker(marker) => order.mark(topic, marker, at(*now)),
        }
    }
    order
}

fn left(order: &mut Order<u64>) -> Vec<(i64, u32, u64)> {
    released(order).iter().map(|event| (event.time.as_nanos(), event.topic.0, event.item)).collect()
}

fn total(order: &Order<u64>, count: fn(&OrderStatistics) -> u64) -> u64 {
    order.statistics().iter().map(count).sum()
}

#[test]
fn markers_prevent_late_events() {
    for seed in rondel_testkit::seeds("markers_prevent_late_events", 2_000) {
        let mut numbers = Random::new(seed);
        let fifo: Vec<bool> = (0..2 + numbers.below(4)).map(|_| numbers.one_in(3)).collect();
        let repeat = numbers.one_in(2);
        let net = network(&mut numbers, &fifo, repeat);
        let topic = |fifo: &bool| TopicOrder { fifo: *fifo, ..TopicOrder::default() };
        let mut order = play(&net, fifo.iter().map(topic).collect(), LatePolicy::Drop);
        assert!(left(&mut order) == net.sent, "seed {seed}");
        assert_eq!(total(&order, |topic| topic.late + topic.guessed), 0, "seed {seed}");
        let mut notices = notices(&mut order);
        notices.retain(|notice| !matches!(notice, Notice::Duplicate { .. } | Notice::Gap { .. }));
        assert_eq!(notices, [], "seed {seed}");
        assert_eq!(total(&order, |topic| topic.missing), 0, "seed {seed}");
    }
}

#[test]
fn a_wait_of_the_maximum_delay_is_sufficient() {
    let mut shorter = 0;
    for seed in rondel_testkit::seeds("a_wait_of_the_maximum_delay_is_sufficient", 2_000) {
        let mut numbers = Random::new(seed);
        let fifo: Vec<bool> = (0..2 + numbers.below(4)).map(|_| numbers.one_in(3)).collect();
        let mut net = network(&mut numbers, &fifo, false);
        net.deliveries.retain(|delivery| matches!(delivery.2, Delivery::Event { .. }));
        let with = |wait: i64, believe: bool| {
            let topic = |fifo: &bool| TopicOrder {
                max_wait: MaxWait::Fixed(wait as u64),
                fifo: *fifo && believe,
                ..TopicOrder::default()
            };
            let mut order = play(&net, fifo.iter().map(topic).collect(), LatePolicy::Late);
            order.flush();
            order
        };
        for believe in [true, false] {
            let mut order = with(net.slowest + 1, believe);
            assert!(left(&mut order) == net.sent, "seed {seed}");
            assert_eq!(total(&order, |topic| topic.late), 0, "seed {seed}");
        }
        // With a shorter wait events may be late. None is lost, and the reported wait is sufficient.
        let order = with(net.slowest / 3, true);
        let enough = order.statistics().iter().filter_map(|topic| topic.sufficient_wait).max();
        assert_eq!(total(&order, |topic| topic.released), net.sent.len() as u64, "seed {seed}");
        if let Some(enough) = enough {
            shorter += 1;
            assert!(enough as i64 <= net.slowest + 1);
        }
    }
    assert!(rondel_testkit::is_replay() || shorter > 1_000, "{shorter}");
}

#[test]
fn lost_messages_delay_others_no_longer_than_the_wait() {
    for seed in rondel_testkit::seeds("lost_messages_delay_others_no_longer_than_the_wait", 1_000) {
        let mut numbers = Random::new(seed);
        let fifo: Vec<bool> = (0..2 + numbers.below(4)).map(|_| numbers.one_in(3)).collect();
        let mut net = network(&mut numbers, &fifo, false);
        // Events and markers are lost, except the first marker, without which a loss before it cannot be detected.
        let mut lost = Vec::new();
        net.deliveries.retain(|delivery| {
            let first = matches!(delivery.2, Delivery::Marker(Marker { after: None, .. }));
            let keep = first || !numbers.one_in(20);
            if let (false, Delivery::Event { item, .. }) = (keep, &delivery.2) {
                lost.push(*item);
            }
            keep
        });
        net.sent.retain(|sent| !lost.contains(&sent.2));
        let topic = |fifo: &bool| TopicOrder {
            max_wait: MaxWait::Fixed(net.slowest as u64 + 1),
            fifo: *fifo,
            ..TopicOrder::default()
        };
        let mut order = play(&net, fifo.iter().map(topic).collect(), LatePolicy::Late);
        let last = net.deliveries.last().map_or(0, |delivery| delivery.0);
        order.advance(at(last + net.slowest + 1));
        assert!(left(&mut order) == net.sent, "seed {seed}");
        assert_eq!((order.waiting(), total(&order, |topic| topic.late)), (0, 0), "seed {seed}");
    }
}
