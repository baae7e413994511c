//! Invalid input: silent topics, clocks and stamps that step back, no topics at all, extreme times.

use rondel_align::{SetNotice, SetPolicy, SetSettings, Sets, Unused};
use rondel_event::{Timestamp, TopicId};

use rondel_testkit::Random;

fn at(ns: i64) -> Timestamp {
    Timestamp::from_nanos(ns)
}

fn policies() -> [SetPolicy; 5] {
    [
        SetPolicy::Exact { queue: 4 },
        SetPolicy::approximate(4),
        SetPolicy::Approximate {
            queue: 0,
            age_penalty: f64::NAN,
            max_interval: Some(u64::MAX),
            lower_bounds: vec![u64::MAX, 0, 1],
        },
        SetPolicy::Epsilon { epsilon: u64::MAX, queue: 4 },
        SetPolicy::Latest { rate: f64::INFINITY, error: -1.0, margin: f64::NAN },
    ]
}

fn notices(sets: &mut Sets<u32>) -> Vec<SetNotice> {
    sets.notices().collect()
}

#[test]
fn a_silent_topic_is_reported() {
    for policy in policies() {
        let absent_after = vec![Some(100), Some(250), None];
        let mut sets = Sets::new(SetSettings { policy, topics: 3, absent_after });
        sets.advance(at(5));
        assert_eq!(sets.deadline(), None, "no item has arrived yet");
        sets.push(TopicId(1), at(0), at(1000), 0);
        assert_eq!(sets.deadline(), Some(at(1100)));
        sets.advance(at(1099));
        assert_eq!(notices(&mut sets), []);
        sets.advance(at(1100));
        let absent = |topic, since, ever| SetNotice::Absent { topic: TopicId(topic), since: at(since), ever };
        assert_eq!(notices(&mut sets), [absent(0, 1000, false)]);
        sets.push(TopicId(1), at(1), at(1200), 1);
        // The deadline may be too early, but the notice has the right time.
        assert_eq!(sets.deadline(), Some(at(1250)));
        sets.advance(at(1250));
        assert_eq!(notices(&mut sets).len(), usize::from(sets.statistics().topics[1].unused() > 0));
        assert_eq!(sets.deadline(), Some(at(1450)));
        // The absence is reported even if the clock did not advance before the topic returned.
        sets.push(TopicId(1), at(2), at(1500), 2);
        let expected = [absent(1, 1200, true), SetNotice::Returned { topic: TopicId(1), after: 300 }];
        assert_eq!(notices(&mut sets)[..2], expected);
        sets.push(TopicId(0), at(2), at(1600), 3);
        assert!(notices(&mut sets).contains(&SetNotice::Returned { topic: TopicId(0), after: 600 }));
        let topics = &sets.statistics().topics;
        assert_eq!((topics[0].absences, topics[1].absences, topics[2].absences), (1, 1, 0));
        assert!(!topics[0].absent && !topics[1].absent);
    }
}

/// Compares with a check of each topic at each time.
#[test]
fn absence_at_random() {
    for seed in rondel_testkit::seeds("sets-absence_at_random", 500) {
        let random = &mut Random::new(seed);
        let topics = 1 + random.below(9) as usize;
        let after: Vec<Option<u64>> =
            (0..topics).map(|_| Some(random.below(50)).filter(|&after| after > 9)).collect();
        let policy = SetPolicy::Exact { queue: 1 };
        let mut sets = Sets::new(SetSettings { policy, topics, absent_after: after.clone() });
        let mut since: Option<Vec<i64>> = None;
        let mut absent = vec![false; topics];
        let mut now = 0;
        for _ in 0..200 {
            now += random.below(12) as i64;
            if let Some(since) = &since {
                let due = (0..topics).filter(|&i| !absent[i]);
                let due = due.filter_map(|i| Some(since[i] + after[i]? as i64)).min();
                let deadline = sets.deadline().map(Timestamp::as_nanos);
                assert_eq!(deadline.is_some(), due.is_some());
                assert!(deadline <= due);
                for i in 0..topics {
                    absent[i] |= after[i].is_some_and(|after| since[i] + after as i64 <= now);
                }
            }
            sets.advance(at(now));
            let found: Vec<bool> = sets.statistics().topics.iter().map(|topic| topic.absent).collect();
            assert_eq!(found, absent);
            if random.below(2) == 0 {
                let topic = random.below(topics as u64) as usize;
                sets.push(TopicId(topic as u32), at(now), at(now), 0);
                since.get_or_insert_with(|| vec![now; topics])[topic] = now;
                absent[topic] = false;
            }
        }
    }
}

#[test]
fn steps_back_are_reported() {
    let policy =
        SetPolicy::Approximate { queue: 0, age_penalty: 0.1, max_interval: None, lower_bounds: vec![5] };
    let mut sets = Sets::new(SetSettings { policy, topics: 2, absent_after: Vec::new() });
    let topic = TopicId(0);
    sets.push(topic, at(10), at(100), 0);
    sets.push(topic, at(10), at(90), 0);
    sets.push(topic, at(8), at(95), 0);
    sets.push(topic, at(12), at(85), 0);
    sets.push(TopicId(2), at(8), at(105), 0);
    let expected = [
        SetNotice::ClockBack { now: at(90), highest: at(100) },
        SetNotice::TooClose { topic, time: at(10), last: at(10) },
        SetNotice::SteppedBack { topic, time: at(8), last: at(10) },
        SetNotice::ClockBack { now: at(85), highest: at(100) },
        SetNotice::TooClose { topic, time: at(12), last: at(8) },
        SetNotice::UnknownTopic { topic: TopicId(2) },
    ];
    assert_eq!(notices(&mut sets), expected);
    let statistics = sets.statistics();
    assert_eq!((statistics.clock_back, statistics.unknown), (15, 1));
    let topic = &statistics.topics[0];
    assert_eq!((topic.stepped_back, topic.too_close, topic.closest), (1, 2, Some(0)));
    assert_eq!((topic.received, topic.waiting()), (4, 4));
}

#[test]
fn stamps_far_from_the_clock_are_refused() {
    let settings = SetSettings { policy: SetPolicy::approximate(4), topics: 2, absent_after: Vec::new() };
    let mut sets = Sets::new(settings).with_limits(Some(10), Some(20));
    let topic = TopicId(0);
    for time in [110, 111, i64::MAX, 80, 79, i64::MIN, 85] {
        sets.push(topic, at(time), at(100), 0);
    }
    let unused = |time, why| SetNotice::Unused { topic, time: at(time), why };
    let expected = [
        unused(111, Unused::Ahead),
        unused(i64::MAX, Unused::Ahead),
        SetNotice::SteppedBack { topic, time: at(80), last: at(110) },
        unused(79, Unused::Behind),
        unused(i64::MIN, Unused::Behind),
    ];
    assert_eq!(notices(&mut sets), expected);
    assert_eq!(sets.statistics().topics[0].waiting(), 3);
}

#[test]
fn a_set_before_an_emitted_one_is_late() {
    let policy = SetPolicy::Exact { queue: 0 };
    let mut sets = Sets::new(SetSettings { policy, topics: 2, absent_after: Vec::new() });
    for time in [7, 3] {
        sets.push(TopicId(0), at(time), at(0), 0);
        sets.push(TopicId(1), at(time), at(0), 0);
    }
    let mut set = Vec::new();
    assert_eq!(sets.pop(&mut set).map(|set| set.lateness), Some(None));
    assert_eq!(sets.pop(&mut set).map(|set| set.lateness), Some(Some(4)));
    assert_eq!(sets.pop(&mut set), None);
    assert_eq!(set, []);
}

#[test]
fn notices_beyond_the_limit_are_counted() {
    let policy = SetPolicy::Exact { queue: 1 };
    let mut sets = Sets::new(SetSettings { policy, topics: 2, absent_after: Vec::new() });
    for time in 0..20_001 {
        sets.push(TopicId(0), at(time), at(time), 0);
    }
    let notices = notices(&mut sets);
    let why = Unused::QueueFull;
    assert_eq!(notices[0], SetNotice::Unused { topic: TopicId(0), time: at(0), why });
    assert_eq!(notices.last(), Some(&SetNotice::Omitted { count: 20_001 - notices.len() as u64 }));
    assert_eq!(sets.statistics().topics[0].unused(), 20_000);
}

#[test]
fn arbitrary_input_is_handled() {
    let times = [i64::MIN, i64::MIN + 1, -1, 0, 1, 2, i64::MAX - 1, i64::MAX];
    for seed in rondel_testkit::seeds("sets-arbitrary_input_is_handled", 2000) {
        let random = &mut Random::new(seed);
        for policy in policies() {
            let topics = random.below(5) as usize;
            let absent_after = vec![Some(0), Some(u64::MAX), Some(1)];
            let mut sets = Sets::new(SetSettings { policy, topics, absent_after });
            let mut set = Vec::new();
            for _ in 0..40 {
                let mut time = || at(times[random.below(times.len() as u64) as usize]);
                let (time, now) = (time(), time());
                match random.below(20) {
                    0 => sets.flush(),
                    1 => sets.advance(now),
                    _ => sets.push(TopicId(random.below(6) as u32), time, now, 0),
                }
                if sets.pop(&mut set).is_some() {
                    assert_eq!(set.len(), topics);
                }
            }
            sets.flush();
            for topic in &sets.statistics().topics {
                assert_eq!(topic.received, topic.used + topic.unused());
            }
        }
    }
}
