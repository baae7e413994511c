//! A session that did not run for a while accuses nobody of the silence that it caused.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rondel_event::{Timestamp, TopicId, Verdict};
use rondel_runtime::alignment::{Policy, TopicAlignment};
use rondel_runtime::{Alignment, AlignmentClock, Blind, ManualClock, Options, Session, Stamp};

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
    session: Session,
    clock: Arc<ManualClock>,
    now: i64,
    /// Whether messages carry their times.
    stamped: bool,
    told: Vec<(String, Verdict, i64)>,
}

impl Run {
    fn new(text: &str, stamped: bool, options: Options) -> Run {
        let clock = Arc::new(ManualClock::default());
        let spec = rondel_spec::parse(text).spec.unwrap();
        let options = Options { clock: clock.clone(), paused_after: Some(500 * MS), ..options };
        let session = Session::new(&spec, options).unwrap();
        Run { session, clock, now: 0, stamped, told: Vec::new() }
    }

    /// Sets the clock, as whoever drives the session is asleep.
    fn sleep_until(&mut self, now: i64) {
        self.clock.set(ms(now));
        self.now = now;
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
        let source = self.stamped.then(|| ms(sent));
        let stamp = Stamp { source, arrival: Some(ms(self.now)), origin: None };
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
            self.told.push((name, report.verdict(), report.time().as_nanos() / MS));
        }
    }

    /// Both topics, ten times a second, from now until then.
    fn both_until(&mut self, until: i64) {
        while self.now < until {
            self.run_until(self.now + 100);
            (0..2).for_each(|topic| self.push(topic, self.now));
            self.flush();
        }
    }

    /// The verdicts on a property from a time on.
    fn told(&self, property: &str, from: i64) -> Vec<(Verdict, i64)> {
        let its = self.told.iter().filter(|(name, _, time)| name == property && *time >= from);
        its.map(|(_, verdict, time)| (*verdict, *time)).collect()
    }

    fn accuses(&self) -> Vec<&(String, Verdict, i64)> {
        self.told.iter().filter(|(_, verdict, _)| *verdict == Verdict::Violated).collect()
    }

    fn kinds(&mut self) -> Vec<&'static str> {
        self.session.notices().map(|notice| notice.kind).collect()
    }
}

/// How messages are put in order.
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
fn what_one_neighbour_sent_does_not_make_the_other_late() {
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
fn nobody_is_accused_of_the_silence_of_a_session_that_slept() {
    for alignment in routes() {
        for (stamped, poll_first) in [(false, false), (false, true), (true, false), (true, true)] {
            let options = Options { alignment: alignment.clone(), ..Options::default() };
            let mut run = Run::new(TEXT, stamped, options);
            sleep(&mut run, poll_first);
            let case = format!("{:?} {:?}, {stamped}, {poll_first}", alignment.policy, alignment.clock);
            assert_eq!(run.accuses(), Vec::<&(String, Verdict, i64)>::new(), "{case}");
            let withheld: u64 =
                run.session.summary().properties.iter().map(|property| property.blind.verdicts).sum();
            assert_eq!(withheld > 0, !stamped, "{case}: times of their own tell everything");
            assert!(
                !run.told("untimed", 0).iter().any(|(verdict, _)| *verdict == Verdict::Inconclusive),
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
            while run.now < end + 20_000 {
                run.run_until(run.now + 100);
                run.push(1, run.now);
                run.flush();
            }
            for property in ["alive", "fresh", "young"] {
                let told = run.told(property, end);
                let case = format!("{property} {:?} {stamped}: {told:?}", alignment.policy);
                assert!(told.iter().any(|(verdict, _)| *verdict == Verdict::Violated), "{case}");
            }
        }
    }
}

#[test]
fn a_silence_is_no_pause() {
    let mut run = Run::new(TEXT, false, Options::default());
    run.both_until(3_000);
    run.run_until(10_000);
    assert_eq!(run.told("alive", 3_000).first().map(|(verdict, _)| *verdict), Some(Verdict::Violated));
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
        sleep(&mut run, false);
        assert!(run.accuses().is_empty(), "{:?}: {:?}", alignment.policy, run.told);
        let last = run.told("quick", 13_000).last().map(|(verdict, _)| *verdict);
        assert_eq!(last, Some(Verdict::Satisfied), "{:?}: {:?}", alignment.policy, run.told);
    }
}

#[test]
fn what_comes_to_a_session_that_slept_at_its_start_is_not_missing() {
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
