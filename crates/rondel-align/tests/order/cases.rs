//! Single cases as time lines. Times are small numbers; an event is named by its topic and its time: `b7` is the event
//! of topic b with time 7.

use rondel_align::{
    LatePolicy, Lateness, Marker, MaxWait, Notice, Order, OrderPolicy, OrderSettings, Origin, Refusal,
    Released, TopicOrder,
};
use rondel_event::{Timestamp, TopicId};

use crate::{notices, released};

const A: TopicId = TopicId(0);
const B: TopicId = TopicId(1);

fn at(ns: i64) -> Timestamp {
    Timestamp::from_nanos(ns)
}

fn settings(topics: &[TopicOrder]) -> OrderSettings {
    OrderSettings {
        policy: OrderPolicy::EventTime,
        topics: topics.to_vec(),
        queue: 0,
        ahead: None,
        behind: None,
        late: LatePolicy::Drop,
    }
}

fn known() -> TopicOrder {
    TopicOrder::default()
}

fn wait(max_wait: u64) -> TopicOrder {
    TopicOrder { max_wait: MaxWait::Fixed(max_wait), ..known() }
}

/// Plays a time line and returns the released events: each step is the clock and an input, `a5` an event, `a<=5` a
/// marker without a count, `a<=5:2` one with a count since the one before it, `.` nothing.
fn play(order: &mut Order<String>, line: &str) -> String {
    let mut out = Vec::new();
    let mut marked = [None, None];
    for step in line.split_whitespace() {
        let (now, what) = step.split_once('|').unwrap();
        let now = at(now.parse().unwrap());
        match what.split_at(1) {
            (".", _) => order.advance(now),
            (topic, rest) => {
                let topic = TopicId(u32::from(topic.as_bytes()[0] - b'a'));
                if let Some(marker) = rest.strip_prefix("<=") {
                    let (complete, count) =
                        marker.split_once(':').map_or((marker, None), |(c, n)| (c, n.parse().ok()));
                    let complete = at(complete.parse().unwrap());
                    let after = marked[topic.index()].replace(complete);
                    order.mark(topic, &Marker { complete, after, count }, now);
                } else {
                    order.push(topic, at(rest.parse().unwrap()), None, now, what.to_owned());
                }
            }
        }
        let left: Vec<String> = released(order).iter().map(name).collect();
        if !left.is_empty() {
            out.push(format!("{}|{}", now.as_nanos(), left.join(",")));
        }
    }
    out.join(" ")
}

/// Returns the name of a released event; a late one has the time at which it is processed.
fn name(event: &Released<String>) -> String {
    match event.lateness {
        None => event.item.clone(),
        Some(Lateness { inconclusive, .. }) => {
            format!("{}@{}{}", event.item, event.time.as_nanos(), if inconclusive { "?" } else { "" })
        }
    }
}

#[test]
fn arrival_order_releases_at_once() {
    let mut order =
        Order::new(OrderSettings { policy: OrderPolicy::Arrival, ..settings(&[known(), known()]) });
    assert_eq!(play(&mut order, "1|b9 2|a3 3|a1"), "1|b9 2|a3 3|a1");
    assert_eq!(notices(&mut order), []);
    let late: Vec<u64> = order.statistics().iter().map(|topic| topic.late).collect();
    assert_eq!(late, [2, 0]);
}

#[test]
fn a_later_event_of_the_other_topic_releases_an_event() {
    let mut order = Order::new(settings(&[known(), known()]));
    assert_eq!(play(&mut order, "5|a4 6|b2 7|b5 8|a6"), "6|b2 7|a4 8|b5");
    // At equal times the first topic is first; another event of it with that time may still arrive.
    let mut order = Order::new(settings(&[known(), known()]));
    assert_eq!(play(&mut order, "5|b4 6|a4 7|a4 8|b5 9|a5"), "6|a4 7|a4 9|b4,a5");
}

#[test]
fn the_end_of_the_wait_releases_an_event() {
    let mut order = Order::new(settings(&[wait(0), wait(10)]));
    assert_eq!(play(&mut order, "5|a4 13|. 14|."), "14|a4");
    assert_eq!(order.statistics()[0].guessed, 1);
    // An event waits for the other topics only, each for its own max_wait.
    let mut order = Order::new(settings(&[wait(0), wait(10)]));
    assert_eq!(play(&mut order, "5|b4 6|a3 7|."), "5|b4");
    let TopicOrder { max_wait, .. } = wait(3);
    let mut order = Order::new(settings(&[TopicOrder { max_wait, fifo: false, ..known() }]));
    assert_eq!(play(&mut order, "5|a4 6|a3 7|. 8|a9"), "6|a3 7|a4");
}

#[test]
fn late_events_are_handled_by_policy() {
    let line = "5|a4 14|. 15|b3 15|b5 30|.";
    let mut out = Vec::new();
    for late in [LatePolicy::Drop, LatePolicy::Late, LatePolicy::Inconclusive] {
        let mut order = Order::new(OrderSettings { late, ..settings(&[wait(0), wait(10)]) });
        out.push(play(&mut order, line));
        let expected = [
            Notice::Late { topic: B, time: at(3), excess: 1, delay: 12, policy: late },
            Notice::WaitTooShort { topic: B, late: 1, received: 1, max_wait: Some(10), sufficient: 13 },
        ];
        assert_eq!(notices(&mut order), expected);
    }
    assert_eq!(out, ["14|a4 15|b5", "14|a4 15|b3@4 15|b5", "14|a4 15|b3@4? 15|b5"]);
}

#[test]
fn a_wait_that_is_too_short_is_reported_with_a_sufficient_one() {
    let mut order = Order::new(settings(&[wait(0), wait(10)]));
    for i in 1..=100 {
        order.push(A, at(i * 100), None, at(i * 100), ());
        let late = i * 100 + 20 + i;
        order.push(B, at(i * 100 - 1), None, at(late), ());
    }
    let reported: Vec<_> =
        order.notices().filter(|notice| matches!(notice, Notice::WaitTooShort { .. })).collect();
    let expected = |late: u64| Notice::WaitTooShort {
        topic: B,
        late,
        received: late,
        max_wait: Some(10),
        sufficient: 22 + late,
    };
    assert_eq!(reported, [expected(1), expected(10), expected(100)]);
    assert_eq!(order.statistics()[1].sufficient_wait, Some(122));
    // With the sufficient wait, no event is late.
    let mut order = Order::new(settings(&[wait(0), wait(122)]));
    for i in 1..=100 {
        order.push(A, at(i * 100), None, at(i * 100), ());
        order.push(B, at(i * 100 - 1), None, at(i * 100 + 20 + i), ());
    }
    assert_eq!(order.statistics()[1].late, 0);
}

#[test]
fn an_estimated_wait_is_the_quantile_plus_a_quarter() {
    let estimated = TopicOrder { max_wait: MaxWait::Estimated { quantile: 0.9, at_most: 1_000 }, ..known() };
    let mut order = Order::new(settings(&[wait(0), estimated]));
    assert_eq!(order.statistics()[1].max_wait, Some(1_000));
    for i in 0..64 {
        let delay = if i % 16 == 0 { 900 } else { 100 };
        order.push(B, at(i * 1_000), None, at(i * 1_000 + delay), ());
    }
    // 100, with the bucket width of 1/16.
    assert_eq!(order.statistics()[1].max_wait, Some(103 + 25 + 1));
    // The wait grows with the delays.
    for i in 0..40_000 {
        order.push(B, at(100_000 + i), None, at(100_400 + i), ());
    }
    assert_eq!(order.statistics()[1].max_wait, Some(415 + 103 + 1));
}

#[test]
fn a_silent_topic_is_reported_as_absent() {
    let absent = TopicOrder { absent_after: Some(10), ..known() };
    let mut order = Order::new(settings(&[known(), absent]));
    assert_eq!(play(&mut order, "5|a4 9|a8 14|."), "");
    assert_eq!(order.deadline(), Some(at(15)));
    assert_eq!(play(&mut order, "15|. 16|a9"), "15|a4,a8 16|a9");
    assert_eq!(notices(&mut order), [Notice::Absent { topic: B, since: at(5), ever: false }]);
    // After its next event it is waited for again.
    assert_eq!(play(&mut order, "20|b19 21|a20 22|a21 23|b30"), "21|b19 23|a20,a21");
    assert_eq!(notices(&mut order), [Notice::Returned { topic: B, after: 15 }]);
    assert_eq!(play(&mut order, "33|a33"), "33|b30,a33");
    assert_eq!(notices(&mut order), [Notice::Absent { topic: B, since: at(23), ever: true }]);
}

#[test]
fn stamps_too_far_from_the_clock_are_refused() {
    let limits = OrderSettings { ahead: Some(10), behind: Some(100), ..settings(&[known(), known()]) };
    let mut order = Order::new(limits);
    // A time of zero, one in the future, and one at each limit.
    let line = "1000|a0 1000|b1011 1000|a1010 1000|b900";
    assert_eq!(play(&mut order, line), "1000|b900");
    let refused = |topic, time, reason, distance| Notice::Refused { topic, time: at(time), reason, distance };
    let expected = [refused(A, 0, Refusal::Behind, 1_000), refused(B, 1_011, Refusal::Ahead, 11)];
    assert_eq!(notices(&mut order), expected);
    assert_eq!(order.statistics().iter().map(|topic| topic.refused).collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn a_topic_whose_times_step_back_is_not_fifo_any_more() {
    let mut order = Order::new(settings(&[wait(10), wait(10)]));
    assert_eq!(play(&mut order, "5|a5 6|b6 7|a3 8|b8"), "6|a5");
    let stepped = |fifo| Notice::SteppedBack { topic: A, time: at(3), latest: at(5), fifo };
    let taken = notices(&mut order);
    assert_eq!(taken[0], stepped(false));
    assert_eq!(
        taken[1],
        Notice::Late { topic: A, time: at(3), excess: 2, delay: 4, policy: LatePolicy::Drop }
    );
    // From now on its own events wait for its max_wait too; further steps are not reported.
    assert_eq!(play(&mut order, "9|a9 10|a7 11|b20 16|. 17|. 18|. 19|."), "16|b6 17|a7 18|b8 19|a9");
    assert_eq!(notices(&mut order), []);
    assert_eq!(order.statistics()[0].stepped_back, 2);
    assert!(!order.statistics()[0].fifo);
    // Without max_wait and markers it is still treated as fifo.
    let mut order = Order::new(settings(&[known(), known()]));
    assert_eq!(play(&mut order, "5|a5 6|a3 7|b9 8|a8"), "7|a3,a5 8|a8");
    assert_eq!(notices(&mut order), [stepped(true)]);
}

#[test]
fn two_publishers_with_different_clocks_are_named() {
    let mut order = Order::new(settings(&[wait(10)]));
    let from = |publisher, number| Some(Origin { publisher, number });
    for (i, (publisher, time)) in [(7, 10), (9, 4), (7, 12), (9, 6)].into_iter().enumerate() {
        order.push(A, at(time), from(publisher, i as u64 / 2), at(13), i);
    }
    let disagree =
        Notice::StampsDisagree { topic: A, time: at(4), latest: at(10), publishers: [9, 7], fifo: false };
    assert_eq!(notices(&mut order)[0], disagree);
}

#[test]
fn sequence_numbers_order_events_of_equal_times() {
    let mut order = Order::new(settings(&[TopicOrder { fifo: false, ..wait(10) }]));
    for number in [2, 3, 1] {
        order.push(A, at(5), Some(Origin { publisher: 7, number }), at(6), number);
    }
    order.advance(at(15));
    assert_eq!(released(&mut order).iter().map(|event| event.item).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn sequence_numbers_reveal_duplicates_and_gaps() {
    let mut order = Order::new(settings(&[known()]));
    for number in [1, 2, 2, 5, 3, 6] {
        order.push(A, at(number), Some(Origin { publisher: 7, number: number as u64 }), at(10), number);
    }
    let notices = notices(&mut order);
    assert_eq!(notices[0], Notice::Duplicate { topic: A, publisher: 7, number: 2 });
    assert_eq!(notices[1], Notice::Gap { topic: A, publisher: 7, from: 3, missing: 2 });
    let statistics = order.statistics()[0];
    // One of the missing events arrives after all.
    assert_eq!((statistics.duplicates, statistics.missing), (1, 1));
}

#[test]
fn a_full_queue_releases_the_oldest_event() {
    let mut order = Order::new(OrderSettings { queue: 2, ..settings(&[known(), known()]) });
    assert_eq!(play(&mut order, "5|a5 6|a6 7|a7 8|b4"), "7|a5");
    let notices = notices(&mut order);
    assert_eq!(notices[0], Notice::Early { topic: A, time: at(5) });
    assert_eq!(
        notices[1],
        Notice::Late { topic: B, time: at(4), excess: 1, delay: 4, policy: LatePolicy::Drop }
    );
    assert_eq!((order.statistics()[0].early, order.waiting()), (1, 2));
}

#[test]
fn a_step_back_of_the_clock_is_reported_and_has_no_other_effect() {
    let mut order = Order::new(settings(&[wait(0), wait(10)]));
    assert_eq!(play(&mut order, "5|a4 14|. 9|b8 10|. 8|b9 24|a20 30|."), "14|a4 9|b8 8|b9 30|a20");
    let back = |now| Notice::ClockBack { now: at(now), highest: at(14) };
    assert_eq!(notices(&mut order), [back(9), back(8)]);
}

#[test]
fn an_unknown_topic_is_reported() {
    let mut order = Order::new(settings(&[known()]));
    order.push(B, at(1), None, at(1), "b1".to_owned());
    order.mark(B, &Marker { complete: at(1), after: None, count: None }, at(1));
    assert_eq!(notices(&mut order), [Notice::UnknownTopic { topic: B }; 2]);
    let mut order = Order::<String>::new(settings(&[]));
    order.push(A, at(1), None, at(1), String::new());
    order.advance(at(5));
    order.flush();
    assert_eq!((order.pop(), order.complete_up_to(), order.deadline()), (None, Some(at(5)), None));
}

#[test]
fn a_marker_releases_an_event() {
    let mut order = Order::new(settings(&[known(), known()]));
    assert_eq!(play(&mut order, "5|a4 6|b<=2 7|b<=4 8|a6 9|b<=5"), "7|a4 9|a6");
    assert_eq!(notices(&mut order), []);
}

#[test]
fn a_marker_with_a_count_waits_for_its_events() {
    let mut order = Order::new(settings(&[known(), TopicOrder { fifo: false, ..known() }]));
    // The marker overtakes both of its events, and the next one overtakes it.
    assert_eq!(play(&mut order, "5|a8 6|b<=9:2 7|b7 8|b<=12:0 9|b5 10|a12"), "9|b5,b7,a8 10|a12");
    assert_eq!(notices(&mut order), []);
}

#[test]
fn a_marker_that_goes_back_is_ignored() {
    let mut order = Order::new(settings(&[known(), known()]));
    assert_eq!(play(&mut order, "5|a4 6|b<=9 7|b<=3 8|a9 9|a11"), "6|a4 8|a9");
    let marker = Marker { complete: at(3), after: Some(at(9)), count: None };
    assert_eq!(notices(&mut order), [Notice::MarkerBack { topic: B, marker, complete: at(9) }]);
}

#[test]
fn an_event_that_contradicts_a_marker_is_reported() {
    let mut order = Order::new(settings(&[known(), known()]));
    assert_eq!(play(&mut order, "5|a4 6|b<=9 7|b3 8|b5 9|b6"), "6|a4");
    let notices = notices(&mut order);
    assert_eq!(notices[0], Notice::MarkerBroken { topic: B, time: at(3), complete: at(9) });
    assert_eq!(
        notices[1],
        Notice::Late { topic: B, time: at(3), excess: 1, delay: 4, policy: LatePolicy::Drop }
    );
    assert_eq!(order.statistics()[1].broken, 3);
}

#[test]
fn a_lost_event_delays_markers_until_the_wait_is_over() {
    let unordered = TopicOrder { fifo: false, ..wait(10) };
    let mut order = Order::new(settings(&[wait(0), unordered]));
    // One of two events is lost. Later markers take effect again.
    let line = "5|a4 6|b5 7|b<=6:2 8|b<=8:0 16|a16 18|. 19|b<=19:0 20|a19";
    assert_eq!(play(&mut order, line), "16|a4,b5 19|a16 20|a19");
    assert_eq!(notices(&mut order), [Notice::MarkerUnmet { topic: B, complete: at(6), missing: 1 }]);
}

#[test]
fn a_lost_marker_is_reported() {
    let unordered = TopicOrder { fifo: false, ..wait(10) };
    let mut order = Order::new(settings(&[wait(0), unordered]));
    order.push(A, at(4), None, at(5), "a4".to_owned());
    let marker = |after, complete| Marker { complete: at(complete), after: Some(at(after)), count: Some(0) };
    order.mark(B, &marker(0, 2), at(6));
    order.mark(B, &marker(3, 6), at(7));
    assert_eq!(play(&mut order, "13|. 14|."), "14|a4");
    assert_eq!(notices(&mut order), [Notice::MarkerMissed { topic: B, complete: at(2), after: at(3) }]);
}

#[test]
fn flush_releases_everything_in_order() {
    let mut order = Order::new(settings(&[known(), known()]));
    play(&mut order, "5|a4 5|a7 5|a5");
    order.flush();
    assert_eq!(released(&mut order).iter().map(name).collect::<Vec<_>>(), ["a4", "a5", "a7"]);
    assert_eq!(play(&mut order, "6|b6 7|b8 8|a9"), "8|b8");
}

#[test]
fn complete_up_to_limits_the_monitor() {
    let mut order = Order::new(settings(&[known(), wait(10)]));
    assert_eq!((order.complete_up_to(), order.complete_at(at(3))), (None, None));
    order.push(A, at(5), None, at(6), "a5".to_owned());
    // An event with time 5 may still arrive on a, and one with time 10 or later on b.
    assert_eq!(order.complete_up_to(), Some(at(-4)));
    assert_eq!((order.complete_at(at(4)), order.complete_at(at(5))), (Some(at(14)), None));
    order.advance(at(20));
    // The event was not popped yet.
    assert_eq!(order.complete_up_to(), Some(at(4)));
    order.pop();
    assert_eq!(order.complete_up_to(), Some(at(4)));
    // The monitor has advanced: an earlier event is late although no later one was released.
    order.push(A, at(30), None, at(31), "a30".to_owned());
    assert_eq!((order.complete_up_to(), order.complete_at(at(25))), (Some(at(21)), Some(at(35))));
    order.close(at(18));
    assert_eq!(play(&mut order, "32|b18 33|b19 34|b20"), "33|b19 34|b20");
    // Limited to the complete time.
    order.close(at(1_000));
    assert_eq!(play(&mut order, "34|b24 34|b25"), "34|b25");
}

#[test]
fn notices_beyond_the_limit_are_counted() {
    let mut order = Order::new(OrderSettings { ahead: Some(0), ..settings(&[known()]) });
    for i in 0..12_000 {
        order.push(A, at(i + 2), None, at(i), ());
    }
    let taken = notices(&mut order);
    assert_eq!((taken.len(), taken.last()), (10_001, Some(&Notice::Omitted { count: 2_000 })));
    assert_eq!(notices(&mut order), []);
}
