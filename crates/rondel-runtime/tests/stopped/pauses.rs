//! Pauses of the session.

use rondel_event::{TopicId, Verdict};
use rondel_runtime::alignment::Policy;
use rondel_runtime::{Blind, Options, Stamp};

use crate::run::{MS, Run, TEXT, ms, routes, sleep};

/// The messages that waited are read one neighbour after the other.
#[test]
fn messages_of_one_neighbour_do_not_delay_the_other() {
    for alignment in routes() {
        for stamped in [false, true] {
            if stamped && alignment.policy == Policy::Arrival {
                // Then nothing is put in order.
                continue;
            }
            let mut run =
                Run::new(TEXT, stamped, Options { alignment: alignment.clone(), ..Options::default() });
            run.both_until(3_000);
            run.sleep_until(7_000);
            for topic in [1, 0] {
                for sent in 1..40 {
                    run.push(topic, 3_000 + 100 * sent);
                    run.sleep_until(run.now + 1);
                }
                run.flush();
            }
            run.both_until(12_000);
            let case = format!("{:?} {:?}, {stamped}", alignment.policy, alignment.clock);
            assert_eq!(run.accuses(), Vec::<&(String, Verdict, i64)>::new(), "{case}");
            let kinds = run.kinds();
            assert!(!kinds.contains(&"absent") && !kinds.contains(&"late"), "{case}: {kinds:?}");
            assert!(!kinds.contains(&"clock_back"), "{case}: {kinds:?}");
        }
    }
}

#[test]
fn pause_of_the_session_violates_no_property() {
    for alignment in routes() {
        for (stamped, poll_first) in [(false, false), (false, true), (true, false), (true, true)] {
            let options = Options { alignment: alignment.clone(), ..Options::default() };
            let mut run = Run::new(TEXT, stamped, options);
            sleep(&mut run, poll_first);
            let case = format!("{:?} {:?}, {stamped}, {poll_first}", alignment.policy, alignment.clock);
            assert_eq!(run.accuses(), Vec::<&(String, Verdict, i64)>::new(), "{case}");
            let withheld: u64 =
                run.session.summary().properties.iter().map(|property| property.blind.verdicts).sum();
            assert_eq!(withheld > 0, !stamped, "{case}: times of their own show everything");
            assert!(
                !run.emitted("untimed", 0).iter().any(|(verdict, _)| *verdict == Verdict::Inconclusive),
                "{case}"
            );
            let kinds = run.kinds();
            assert_eq!(kinds.iter().filter(|kind| **kind == "paused").count(), 1, "{case}: {kinds:?}");
            assert!(!kinds.contains(&"absent") && !kinds.contains(&"late"), "{case}: {kinds:?}");
            let pauses = run.session.summary().pauses;
            assert_eq!(pauses.len(), 1, "{case}");
            let lasted = (pauses[0].until.as_nanos() - pauses[0].from.as_nanos()) / MS;
            assert!((10_000..=10_200).contains(&lasted), "{case}: {lasted}");
        }
    }
}

#[test]
fn a_continuing_silence_is_noticed() {
    for alignment in routes() {
        for stamped in [false, true] {
            let options = Options { alignment: alignment.clone(), ..Options::default() };
            let mut run = Run::new(TEXT, stamped, options);
            sleep(&mut run, true);
            // From here on only one of them is silent, and the session runs.
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
fn a_silence_is_no_pause() {
    let mut run = Run::new(TEXT, false, Options::default());
    run.both_until(3_000);
    run.run_until(10_000);
    assert_eq!(run.emitted("alive", 3_000).first().map(|(verdict, _)| *verdict), Some(Verdict::Violated));
    assert!(run.session.summary().pauses.is_empty());
}

#[test]
fn pauses_are_only_reported_if_that_is_chosen() {
    let mut run = Run::new(TEXT, false, Options { blind: Blind::Report, ..Options::default() });
    sleep(&mut run, false);
    assert!(!run.accuses().is_empty());
    assert!(run.kinds().contains(&"paused"));
    assert_eq!(run.session.summary().properties[0].blind.verdicts, 0);
}

#[test]
fn messages_that_waited_for_the_session_were_not_slow() {
    let text = "topic a { x: int } topic b { y: int } property quick = latency(a) <= 1 s";
    for alignment in routes() {
        let mut run = Run::new(text, true, Options { alignment: alignment.clone(), ..Options::default() });
        run.transport = 1;
        sleep(&mut run, false);
        assert!(run.accuses().is_empty(), "{:?}: {:?}", alignment.policy, run.emitted);
        let last = run.emitted("quick", 13_000).last().map(|(verdict, _)| *verdict);
        assert_eq!(last, Some(Verdict::Satisfied), "{:?}: {:?}", alignment.policy, run.emitted);
    }
}

#[test]
fn messages_after_a_pause_at_the_start_are_not_missing() {
    let options = Options { missing_after: Some(10_000 * MS), ..Options::default() };
    let mut run = Run::new(TEXT, true, options);
    run.run_until(1_000);
    run.sleep_until(30_000);
    run.session.poll();
    (0..2).for_each(|topic| run.push(topic, 5_000));
    run.flush();
    run.run_until(60_000);
    assert!(!run.kinds().contains(&"missing"));
}

#[test]
fn a_network_that_drops_messages_is_reported_whatever_is_measured() {
    // The pause is noticed by the heartbeat, or where the run ends first.
    for (may_miss, polls) in [(true, false), (true, true), (false, false), (false, true)] {
        let text =
            "topic a { x: int } property untimed = once a.x > 0 property positive = historically a.x > 0";
        let options = Options { drops_when_stopped: may_miss, ..Options::default() };
        let mut run = Run::new(text, false, options);
        run.session.alive();
        run.sleep_until(3_000);
        if polls {
            run.session.poll();
        }
        run.session.alive();
        let notices: Vec<String> = run.session.notices().map(|notice| notice.json().to_string()).collect();
        let paused = r#"{"cause":"stopped","from":0.0,"may_miss":true,"report":"paused","until":3.0}"#;
        assert_eq!(notices, if may_miss { vec![paused] } else { vec![] });
        let stamp = Stamp { arrival: Some(ms(3_000)), ..Stamp::default() };
        run.session.push(TopicId(0), stamp, br#"{"x":1}"#).unwrap();
        run.session.finish();
        let summary = run.session.summary();
        assert_eq!(summary.pauses.len(), usize::from(may_miss));
        assert!(!summary.is_inconclusive(false), "a possible loss changes no verdict");
    }
}
