//! A pause of a session violates no property: its own silence is not that of the topics.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rondel_event::{Timestamp, TopicId, Verdict};
use rondel_runtime::alignment::{Policy, TopicAlignment};
use rondel_runtime::{
    Alignment, AlignmentClock, Blind, Cause, Clock, Emit, ManualClock, Options, Session, SessionPlan, Stamp,
};

const TEXT: &str = "topic a { x: int } topic b { y: int }
    @time(dense) property alive = once[0, 1 s] on(a)
    property fresh = on(b) -> once[0, 1 s] on(a)
    property young = age(a) <= 1 s
    property untimed = on(b) -> once a.x > 0
    machine m { initial p p -> p when on(a) p -> q after 1 s error q q -> p when on(a) }";

const MS: i64 = 1_000_000;

fn ms(ms: i64) -> Timestamp {
    Timestamp::from_nanos(ms * MS)
}

/// A session, and the time of its clock in milliseconds.
struct Run {
    plan: SessionPlan,
    session: Session,
    clock: Arc<ManualClock>,
    now: i64,
    /// Difference between the time of day and the clock.
    ahead: i64,
    /// Whether messages carry their times.
    stamped: bool,
    /// Transport delay, in nanoseconds.
    transport: i64,
    emitted: Vec<(String, Verdict, i64)>,
    /// The properties, the times in nanoseconds and the steps of these verdicts.
    places: Vec<(String, i64, Option<u64>)>,
}

impl Run {
    fn new(text: &str, stamped: bool, options: Options) -> Run {
        let clock = Arc::new(ManualClock::default());
        let spec = rondel_spec::parse(text).spec.unwrap();
        let options = Options { clock: clock.clone(), paused_after: Some(500 * MS), ..options };
        let plan = SessionPlan::new(&spec, options).unwrap();
        Run {
            session: plan.start().unwrap(),
            plan,
            clock,
            now: 0,
            ahead: 0,
            stamped,
            transport: 0,
            emitted: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Ends the session, and resumes from its last snapshot; the messages of these topics were kept meanwhile.
    fn restart_at(&mut self, now: i64, kept: &[u32]) {
        let snapshot = self.session.snapshot("");
        self.sleep_until(now);
        self.session = self.plan.restore(&snapshot, "").unwrap();
        self.session.resumed(&kept.iter().map(|topic| TopicId(*topic)).collect::<Vec<_>>());
    }

    /// Sets the clock, as whoever drives the session is asleep.
    fn sleep_until(&mut self, now: i64) {
        self.clock.set(ms(now));
        self.now = now;
    }

    /// Sets the time of day forward, or back.
    fn step(&mut self, by: i64) {
        self.clock.step(by * MS);
        self.ahead += by;
    }

    /// Lets time pass while the session runs.
    fn run_until(&mut self, now: i64) {
        while self.now < now {
            self.sleep_until((self.now + 100).min(now));
            self.session.alive();
            self.session.poll();
            self.take();
        }
    }

    fn push(&mut self, topic: u32, sent: i64) {
        let source = self.stamped.then(|| Timestamp::from_nanos(sent * MS - self.transport));
        let stamp = Stamp { source, arrival: Some(ms(self.now + self.ahead)), ..Stamp::default() };
        let field = if topic == 0 { "x" } else { "y" };
        self.session.push(TopicId(topic), stamp, format!("{{\"{field}\": 1}}").as_bytes()).unwrap();
    }

    fn flush(&mut self) {
        self.session.flush();
        self.take();
    }

    fn take(&mut self) {
        for report in self.session.reports() {
            let name = report.property().name.clone();
            self.places.push((name.clone(), report.time().as_nanos(), report.step()));
            self.emitted.push((name, report.verdict(), report.time().as_nanos() / MS));
        }
    }

    /// Both topics, ten times a second, from now until then.
    fn both_until(&mut self, until: i64) {
        while self.now < until {
            self.run_until(self.now + 100);
            (0..2).for_each(|topic| self.push(topic, self.now + self.ahead));
            self.flush();
        }
    }

    /// Only the second topic, ten times a second.
    fn second_until(&mut self, until: i64) {
        while self.now < until {
            self.run_until(self.now + 100);
            self.push(1, self.now + self.ahead);
            self.flush();
        }
    }

    /// The verdicts on a property from a time on.
    fn emitted(&self, property: &str, from: i64) -> Vec<(Verdict, i64)> {
        let its = self.emitted.iter().filter(|(name, _, time)| name == property && *time >= from);
        its.map(|(_, verdict, time)| (*verdict, *time)).collect()
    }

    fn accuses(&self) -> Vec<&(String, Verdict, i64)> {
        self.emitted.iter().filter(|(_, verdict, _)| *verdict == Verdict::Violated).collect()
    }

    fn kinds(&mut self) -> Vec<&'static str> {
        self.session.notices().map(|notice| notice.kind).collect()
    }
}

/// Alignments to test.
fn routes() -> Vec<Alignment> {
    let ordered = |clock| Alignment {
        clock,
        topics: vec![
            TopicAlignment {
                absent_after: Some(5_000 * MS),
                ..TopicAlignment::new(&Default::default())
            };
            2
        ],
        ..Alignment::new(Policy::EventTime)
    };
    vec![Alignment::new(Policy::Arrival), ordered(AlignmentClock::Messages), ordered(AlignmentClock::System)]
}

/// The messages of ten seconds come after the session has slept, `first` whoever drives it.
fn sleep(run: &mut Run, poll_first: bool) {
    run.both_until(3_000);
    run.sleep_until(13_000);
    if poll_first {
        run.session.poll();
        run.take();
    }
    for sent in 1..100 {
        (0..2).rev().for_each(|topic| run.push(topic, 3_000 + 100 * sent));
        run.sleep_until(run.now + 1);
    }
    run.flush();
    run.both_until(18_000);
}

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
fn a_silence_that_goes_on_is_noticed() {
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
fn nothing_is_said_about_time_until_a_clock_that_was_set_back_has_caught_up() {
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
fn a_restart_is_only_reported_if_that_is_chosen_and_nothing_is_said_of_an_empty_snapshot() {
    let mut run = Run::new(TEXT, false, Options { blind: Blind::Report, ..Options::default() });
    restart(&mut run, &[]);
    assert!(!run.accuses().is_empty());
    assert!(run.kinds().contains(&"paused"));
    let mut run = Run::new(TEXT, false, Options::default());
    run.restart_at(13_000, &[]);
    run.both_until(16_000);
    assert!(run.kinds().is_empty() && run.session.summary().pauses.is_empty());
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
