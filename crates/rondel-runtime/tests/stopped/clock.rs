//! Steps of the clock, and stops between its readings.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rondel_event::{Timestamp, TopicId, Verdict};
use rondel_runtime::{AlignmentClock, Cause, Clock, ManualClock, Options, SessionPlan, Stamp};

use crate::run::{MS, Run, TEXT, ms, routes};

/// A clock that is set forward by ten seconds, noticed by the next message or before it.
#[test]
fn forward_step_of_the_clock_violates_no_property() {
    for alignment in routes() {
        for (stamped, is_reported) in [(false, false), (false, true), (true, false), (true, true)] {
            let options = Options { alignment: alignment.clone(), ..Options::default() };
            let mut run = Run::new(TEXT, stamped, options);
            run.both_until(3_000);
            run.step(10_000);
            if is_reported {
                run.run_until(run.now + 50);
            } else {
                run.sleep_until(run.now + 50);
            }
            (0..2).for_each(|topic| run.push(topic, run.now + if stamped { 0 } else { run.ahead }));
            run.flush();
            let case = format!("{:?} {:?}, {stamped}, {is_reported}", alignment.policy, alignment.clock);
            let times = if stamped { std::mem::take(&mut run.ahead) } else { 0 };
            run.both_until(8_000);
            run.ahead += times;
            if !(stamped && alignment.clock == AlignmentClock::System) {
                assert_eq!(run.accuses(), Vec::<&(String, Verdict, i64)>::new(), "{case}");
            }
            let kinds = run.kinds();
            assert_eq!(kinds.iter().filter(|kind| **kind == "paused").count(), 1, "{case}: {kinds:?}");
            assert!(!kinds.contains(&"absent"), "{case}: {kinds:?}");
            let pauses = run.session.summary().pauses;
            assert_eq!(pauses.iter().map(|pause| pause.cause).collect::<Vec<_>>(), [set(10_000)], "{case}");
            if stamped {
                continue;
            }
            let last = |property: &str| run.emitted(property, 0).last().map(|(verdict, _)| *verdict);
            for property in ["alive", "fresh", "young"] {
                assert_eq!(last(property), Some(Verdict::Satisfied), "{case}: {property}");
            }
            assert!(!run.emitted("untimed", 0).iter().any(|(v, _)| *v == Verdict::Inconclusive), "{case}");
            let end = run.now;
            run.second_until(end + 20_000);
            for property in ["alive", "fresh", "young"] {
                let emitted = run.emitted(property, end);
                assert!(
                    emitted.iter().any(|(verdict, _)| *verdict == Verdict::Violated),
                    "{case}: {emitted:?}"
                );
            }
        }
    }
}

fn set(by: i64) -> Cause {
    Cause::Clock { by: by * MS }
}

/// A clock that is set back by five seconds: until it has caught up, the length of a silence cannot be derived from
/// arrival times.
#[test]
fn no_verdict_depends_on_a_clock_set_back_until_it_has_caught_up() {
    for alignment in routes() {
        let mut run = Run::new(TEXT, false, Options { alignment: alignment.clone(), ..Options::default() });
        let case = format!("{:?} {:?}", alignment.policy, alignment.clock);
        run.both_until(13_000);
        run.step(-5_000);
        run.run_until(13_050);
        assert_eq!(run.kinds().first(), Some(&"paused"), "{case}: at once");
        run.second_until(17_500);
        assert_eq!(run.accuses(), Vec::<&(String, Verdict, i64)>::new(), "{case}");
        for property in ["alive", "fresh", "young"] {
            let emitted = run.emitted(property, 0);
            let last = emitted.last().map(|(verdict, _)| *verdict);
            assert_eq!(last, Some(Verdict::Inconclusive), "{case}: {property} {emitted:?}");
        }
        run.both_until(22_000);
        for property in ["alive", "fresh", "young"] {
            let emitted = run.emitted(property, 0);
            assert_eq!(
                emitted.last().map(|(v, _)| *v),
                Some(Verdict::Satisfied),
                "{case}: {property} {emitted:?}"
            );
        }
        let end = run.now;
        run.second_until(end + 20_000);
        for property in ["alive", "fresh", "young"] {
            let emitted = run.emitted(property, end - 5_000);
            assert!(emitted.iter().any(|(verdict, _)| *verdict == Verdict::Violated), "{case}: {emitted:?}");
        }
        assert_eq!(run.session.summary().pauses[0].cause, set(-5_000), "{case}");
    }
}

#[test]
fn a_clock_that_is_slewed_is_not_set() {
    let mut run = Run::new(TEXT, false, Options::default());
    for _ in 0..100 {
        run.both_until(run.now + 100);
        run.step(50);
    }
    assert!(run.session.summary().pauses.is_empty() && run.accuses().is_empty());
}

/// A clock whose process is stopped for some time, in nanoseconds, right after the ticks were read.
#[derive(Default)]
struct StoppedAfterReading {
    clock: ManualClock,
    stop: AtomicI64,
}

impl Clock for StoppedAfterReading {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn ticks(&self) -> i64 {
        let ticks = self.clock.ticks();
        let stop = self.stop.swap(0, Ordering::Relaxed);
        if stop > 0 {
            self.clock.set(Timestamp::from_nanos(ticks + stop));
        }
        ticks
    }
}

#[test]
fn a_stop_between_two_readings_of_the_clock_is_a_pause() {
    let clock = Arc::new(StoppedAfterReading::default());
    let spec = rondel_spec::parse("topic a { x: int } property p = age(a) < 1 s").spec.unwrap();
    for alignment in routes() {
        let options = Options {
            alignment,
            clock: clock.clone(),
            paused_after: Some(500 * MS),
            live: true,
            ..Options::default()
        };
        let mut session = SessionPlan::new(&spec, options).unwrap().start().unwrap();
        let start = clock.now().as_nanos() / MS;
        for i in 1..20 {
            let now = start + 100 * i;
            clock.clock.set(ms(now));
            let arrival = if i == 10 { now + 2000 } else { now };
            clock.stop.store(if i == 10 { 2000 * MS } else { 0 }, Ordering::Relaxed);
            if i > 10 {
                clock.clock.set(ms(now + 2000));
            }
            let arrival = if i > 10 { now + 2000 } else { arrival };
            let stamp = Stamp { arrival: Some(ms(arrival)), ..Stamp::default() };
            session.push(TopicId(0), stamp, b"{\"x\": 1}").unwrap();
            session.alive();
            session.poll();
        }
        let pauses = session.summary().pauses;
        assert_eq!(pauses.len(), 1, "{pauses:?}");
        assert!(matches!(pauses[0].cause, Cause::Stopped), "{pauses:?}");
        assert_eq!(pauses[0].until.as_nanos() - pauses[0].from.as_nanos(), 2100 * MS, "{pauses:?}");
    }
}
