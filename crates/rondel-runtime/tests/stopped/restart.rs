//! Restarts from a snapshot.

use rondel_event::Verdict;
use rondel_runtime::{Blind, Cause, Emit, Options};

use crate::run::{Run, TEXT, ms, routes};

/// Both topics continue while no session runs, from 3 s to 13 s; kept messages come afterwards.
fn restart(run: &mut Run, kept: &[u32]) {
    run.both_until(3_000);
    run.restart_at(13_000, kept);
    for sent in 1..100 {
        kept.iter().for_each(|topic| run.push(*topic, 3_000 + 100 * sent));
        run.sleep_until(run.now + 1);
    }
    run.flush();
    run.both_until(18_000);
}

#[test]
fn messages_between_snapshot_and_restart_are_missed() {
    for alignment in routes() {
        for (stamped, kept) in [(false, &[][..]), (true, &[]), (false, &[0]), (true, &[0])] {
            let options = Options { alignment: alignment.clone(), ..Options::default() };
            let mut run = Run::new(TEXT, stamped, options);
            restart(&mut run, kept);
            let case = format!("{:?} {:?}, {stamped}, {kept:?}", alignment.policy, alignment.clock);
            assert_eq!(run.accuses(), Vec::<&(String, Verdict, i64)>::new(), "{case}");
            let last = |property: &str| run.emitted(property, 0).last().map(|(verdict, _)| *verdict);
            // The machine is known again too: a message on `a` leads from each of its states into the same one.
            for property in ["alive", "fresh", "young", "m"] {
                let emitted = run.emitted(property, 0);
                assert_eq!(last(property), Some(Verdict::Satisfied), "{case}: {property} {emitted:?}");
            }
            let pauses = run.session.summary().pauses;
            assert_eq!(pauses.len(), 1, "{case}");
            let (from, until, cause) = (pauses[0].from, pauses[0].until, pauses[0].cause);
            assert_eq!((from, until, cause), (ms(3_000), ms(13_000), Cause::Restart), "{case}");
            let kinds = run.kinds();
            assert_eq!(kinds.iter().filter(|kind| **kind == "paused").count(), 1, "{case}: {kinds:?}");
            assert!(kinds.contains(&"blind"), "{case}: {kinds:?}");
        }
    }
}

#[test]
fn messages_kept_until_a_restart_count_at_their_times() {
    for alignment in routes() {
        let options = Options { alignment: alignment.clone(), ..Options::default() };
        let mut run = Run::new(TEXT, true, options);
        restart(&mut run, &[0, 1]);
        let case = format!("{:?} {:?}", alignment.policy, alignment.clock);
        let mut whole = Run::new(TEXT, true, Options { alignment, ..Options::default() });
        whole.both_until(18_000);
        assert_eq!(run.emitted, whole.emitted, "{case}");
        assert!(!run.kinds().contains(&"blind"), "{case}");
    }
}

#[test]
fn messages_kept_until_a_restart_are_late_by_arrival_times() {
    for alignment in routes() {
        let mut run = Run::new(TEXT, false, Options { alignment: alignment.clone(), ..Options::default() });
        restart(&mut run, &[0, 1]);
        assert_eq!(run.accuses(), Vec::<&(String, Verdict, i64)>::new(), "{:?}", alignment.policy);
        let untimed = run.emitted("untimed", 0);
        assert!(!untimed.iter().any(|(verdict, _)| *verdict == Verdict::Inconclusive), "{untimed:?}");
    }
}

/// Verdicts emitted before the snapshot stay.
#[test]
fn no_verdict_from_before_a_snapshot_is_given_again() {
    let text = "topic a { x: int } topic b { y: int }
        @time(dense) property alive = once[0, 1 s] on(a)
        property fresh = on(b) -> once[0, 1 s] on(a)
        property answered = on(a) -> eventually[0, 2 s] on(b)
        property seen = historically a.x > 0";
    for (alignment, emit) in routes().into_iter().flat_map(|a| [(a.clone(), Emit::Change), (a, Emit::Every)])
    {
        for (stamped, kept) in [(false, &[][..]), (true, &[]), (false, &[0]), (true, &[0])] {
            let options = Options { alignment: alignment.clone(), emit, ..Options::default() };
            let mut run = Run::new(text, stamped, options);
            run.both_until(3_000);
            let before = std::mem::take(&mut run.places);
            restart(&mut run, kept);
            let is_again = |(name, time, step): &&(String, i64, Option<u64>)| {
                before.iter().any(|(own, at, of)| (own, at) == (name, time) && (step.is_none() || of == step))
            };
            let again: Vec<_> = run.places.iter().filter(is_again).collect();
            let case = format!("{:?} {:?} {emit:?}, {stamped}, {kept:?}", alignment.policy, alignment.clock);
            assert!(again.is_empty() && !run.places.is_empty(), "{case}: {again:?}");
        }
    }
}

#[test]
fn a_silence_after_a_restart_is_noticed() {
    for alignment in routes() {
        for stamped in [false, true] {
            let options = Options { alignment: alignment.clone(), ..Options::default() };
            let mut run = Run::new(TEXT, stamped, options);
            restart(&mut run, &[]);
            let end = run.now;
            run.second_until(end + 20_000);
            for property in ["alive", "fresh", "young"] {
                let emitted = run.emitted(property, end);
                let case = format!("{property} {:?} {stamped}: {emitted:?}", alignment.policy);
                assert!(emitted.iter().any(|(verdict, _)| *verdict == Verdict::Violated), "{case}");
            }
        }
    }
}

#[test]
fn messages_that_waited_for_a_restart_were_not_slow() {
    let text = "topic a { x: int } topic b { y: int } property quick = latency(a) <= 1 s";
    for alignment in routes() {
        let mut run = Run::new(text, true, Options { alignment: alignment.clone(), ..Options::default() });
        run.transport = 1;
        restart(&mut run, &[0, 1]);
        assert!(run.accuses().is_empty(), "{:?}: {:?}", alignment.policy, run.emitted);
        let last = run.emitted("quick", 13_000).last().map(|(verdict, _)| *verdict);
        assert_eq!(last, Some(Verdict::Satisfied), "{:?}: {:?}", alignment.policy, run.emitted);
    }
}

#[test]
fn a_restart_is_reported_on_request_and_not_for_an_empty_snapshot() {
    let mut run = Run::new(TEXT, false, Options { blind: Blind::Report, ..Options::default() });
    restart(&mut run, &[]);
    assert!(!run.accuses().is_empty());
    assert!(run.kinds().contains(&"paused"));
    let mut run = Run::new(TEXT, false, Options::default());
    run.restart_at(13_000, &[]);
    run.both_until(16_000);
    assert!(run.kinds().is_empty() && run.session.summary().pauses.is_empty());
}
