//! Topics that die during a pause, and messages that waited.

use rondel_event::{TopicId, Verdict};
use rondel_runtime::alignment::Policy;
use rondel_runtime::{Alignment, AlignmentClock, Options, Stamp};

use crate::run::{Run, ms, routes};

/// "a is alive" in five forms. All of them are violated 200 ms after the last message, or 1 s.
const ALIVE: &str = "topic a { x: int } topic b { y: int }
    property aged = age(a) <= 200 ms
    property begun = once on(a) -> age(a) <= 200 ms
    property paced = once[1 s,] on(a) -> rate(a) over 1 s >= 5 and age(a) <= 200 ms
    property recent = once[0, 1 min] on(a) -> age(a) <= 200 ms
    property rated = rate(a) over 1 s >= 5
    property each for each x in a.x = age(a) <= 200 ms
    property ahead = always[0, 100 ms] age(a) <= 200 ms";

/// A topic that dies during a pause is reported once its silence afterwards is long enough, by time alone: waiting
/// messages have a second to arrive.
#[test]
fn a_topic_that_dies_during_a_pause_is_reported_by_time_alone() {
    let routes = routes().into_iter().filter(|alignment| alignment.clock == AlignmentClock::System);
    for alignment in [Alignment::new(Policy::Arrival)].into_iter().chain(routes) {
        for goes_on in [false, true] {
            let mut run =
                Run::new(ALIVE, false, Options { alignment: alignment.clone(), ..Options::default() });
            run.both_until(3_000);
            run.sleep_until(4_600);
            // It runs again 100 ms later. Messages that are put in order have a second to come.
            let end = 4_700 + if alignment.policy == Policy::Arrival { 0 } else { 1_000 };
            if goes_on {
                run.second_until(9_000);
            } else {
                run.run_until(9_000);
            }
            let case = format!("{:?} {:?}, {goes_on}", alignment.policy, alignment.clock);
            for (property, after) in [
                ("aged", 200),
                ("begun", 200),
                ("paced", 200),
                ("recent", 200),
                ("rated", 1_000),
                ("each", 200),
                ("ahead", 200),
            ] {
                let emitted = run.emitted(property, 3_001);
                let violated = emitted.iter().find(|(verdict, _)| *verdict == Verdict::Violated);
                let last = emitted.last();
                assert!(
                    violated.is_some_and(|(_, time)| (end..=end + after + 100).contains(time)),
                    "{case}: {property} {emitted:?}"
                );
                assert_eq!(violated, last, "{case}: {property} {emitted:?}");
            }
        }
    }
}

/// The end of a missed span is decided some time after a pause: that reports nothing again.
#[test]
fn verdicts_of_a_pause_come_once() {
    for alignment in routes() {
        let mut run = Run::new(ALIVE, false, Options { alignment: alignment.clone(), ..Options::default() });
        run.both_until(3_000);
        run.sleep_until(4_600);
        run.session.alive();
        run.take();
        run.run_until(9_000);
        // Several verdicts of a future operator are decided at one time.
        let all = run.emitted.iter().zip(&run.places).filter(|((name, ..), _)| name != "ahead");
        let all: Vec<_> = all.collect();
        let inconclusive = all.iter().filter(|((_, verdict, _), _)| *verdict == Verdict::Inconclusive);
        assert!(inconclusive.count() > 0, "{:?}", alignment.policy);
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one), "{:?}: {one:?}", alignment.policy);
        }
    }
}

/// When "a is alive" is first violated after a pause from 3 s to 4.6 s, in milliseconds, if `come` happens right after it.
fn violated_after(come: impl FnOnce(&mut Run)) -> Option<i64> {
    let mut run = Run::new(ALIVE, false, Options::default());
    run.both_until(3_000);
    run.sleep_until(4_600);
    run.session.poll();
    come(&mut run);
    run.second_until(9_000);
    let emitted = run.emitted("aged", 3_001);
    emitted.iter().find(|(verdict, _)| *verdict == Verdict::Violated).map(|(_, time)| *time)
}

#[test]
fn the_age_of_a_message_that_waited_counts_from_its_arrival() {
    let waited = violated_after(|run| {
        run.sleep_until(4_605);
        run.push(0, 3_100);
        run.flush();
    });
    assert_eq!(waited, Some(4_805));
    assert_eq!(violated_after(|_| {}), Some(4_800));
}

/// Buffers may have been full, so that more is left at the senders.
#[test]
fn after_many_waiting_messages_the_rest_has_a_second_to_come() {
    let much = violated_after(|run| {
        let payload = format!("{{\"y\": 1{}}}", " ".repeat(100_000));
        let stamp = Stamp { arrival: Some(ms(run.now)), ..Stamp::default() };
        run.session.push(TopicId(1), stamp, payload.as_bytes()).unwrap();
        run.flush();
    });
    assert_eq!(much, Some(5_800));
}

#[test]
fn a_pause_that_a_snapshot_follows_ends_by_time_alone() {
    let restarted = violated_after(|run| {
        let snapshot = run.session.snapshot("");
        run.session = run.plan.restore(&snapshot, "").unwrap();
    });
    assert_eq!(restarted, Some(5_800));
}
