//! A session with a clock that tests set.

use std::sync::Arc;

use rondel_event::{Timestamp, TopicId, Verdict};
use rondel_runtime::alignment::{Policy, TopicAlignment};
use rondel_runtime::{Alignment, AlignmentClock, ManualClock, Options, Session, SessionPlan, Stamp};

pub(crate) const TEXT: &str = "topic a { x: int } topic b { y: int }
    @time(dense) property alive = once[0, 1 s] on(a)
    property fresh = on(b) -> once[0, 1 s] on(a)
    property young = age(a) <= 1 s
    property untimed = on(b) -> once a.x > 0
    machine m { initial p p -> p when on(a) p -> q after 1 s error q q -> p when on(a) }";

pub(crate) const MS: i64 = 1_000_000;

pub(crate) fn ms(ms: i64) -> Timestamp {
    Timestamp::from_nanos(ms * MS)
}

/// A session, and the time of its clock in milliseconds.
pub(crate) struct Run {
    pub(crate) plan: SessionPlan,
    pub(crate) session: Session,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) now: i64,
    /// Difference between the time of day and the clock.
    pub(crate) ahead: i64,
    /// Whether messages carry their times.
    pub(crate) stamped: bool,
    /// Transport delay, in nanoseconds.
    pub(crate) transport: i64,
    pub(crate) emitted: Vec<(String, Verdict, i64)>,
    /// The properties, the times in nanoseconds and the steps of these verdicts.
    pub(crate) places: Vec<(String, i64, Option<u64>)>,
}

impl Run {
    pub(crate) fn new(text: &str, stamped: bool, options: Options) -> Run {
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
    pub(crate) fn restart_at(&mut self, now: i64, kept: &[u32]) {
        let snapshot = self.session.snapshot("");
        self.sleep_until(now);
        self.session = self.plan.restore(&snapshot, "").unwrap();
        self.session.resumed(&kept.iter().map(|topic| TopicId(*topic)).collect::<Vec<_>>());
    }

    /// Sets the clock, as whoever drives the session is asleep.
    pub(crate) fn sleep_until(&mut self, now: i64) {
        self.clock.set(ms(now));
        self.now = now;
    }

    /// Sets the time of day forward, or back.
    pub(crate) fn step(&mut self, by: i64) {
        self.clock.step(by * MS);
        self.ahead += by;
    }

    /// Lets time pass while the session runs.
    pub(crate) fn run_until(&mut self, now: i64) {
        while self.now < now {
            self.sleep_until((self.now + 100).min(now));
            self.session.alive();
            self.session.poll();
            self.take();
        }
    }

    pub(crate) fn push(&mut self, topic: u32, sent: i64) {
        let source = self.stamped.then(|| Timestamp::from_nanos(sent * MS - self.transport));
        let stamp = Stamp { source, arrival: Some(ms(self.now + self.ahead)), ..Stamp::default() };
        let field = if topic == 0 { "x" } else { "y" };
        self.session.push(TopicId(topic), stamp, format!("{{\"{field}\": 1}}").as_bytes()).unwrap();
    }

    pub(crate) fn flush(&mut self) {
        self.session.flush();
        self.take();
    }

    pub(crate) fn take(&mut self) {
        for report in self.session.reports() {
            let name = report.property().name.clone();
            self.places.push((name.clone(), report.time().as_nanos(), report.step()));
            self.emitted.push((name, report.verdict(), report.time().as_nanos() / MS));
        }
    }

    /// Both topics, ten times a second, from now until then.
    pub(crate) fn both_until(&mut self, until: i64) {
        while self.now < until {
            self.run_until(self.now + 100);
            (0..2).for_each(|topic| self.push(topic, self.now + self.ahead));
            self.flush();
        }
    }

    /// Only the second topic, ten times a second.
    pub(crate) fn second_until(&mut self, until: i64) {
        while self.now < until {
            self.run_until(self.now + 100);
            self.push(1, self.now + self.ahead);
            self.flush();
        }
    }

    /// The verdicts on a property from a time on.
    pub(crate) fn emitted(&self, property: &str, from: i64) -> Vec<(Verdict, i64)> {
        let its = self.emitted.iter().filter(|(name, _, time)| name == property && *time >= from);
        its.map(|(_, verdict, time)| (*verdict, *time)).collect()
    }

    pub(crate) fn accuses(&self) -> Vec<&(String, Verdict, i64)> {
        self.emitted.iter().filter(|(_, verdict, _)| *verdict == Verdict::Violated).collect()
    }

    pub(crate) fn kinds(&mut self) -> Vec<&'static str> {
        self.session.notices().map(|notice| notice.kind).collect()
    }
}

/// Alignments to test.
pub(crate) fn routes() -> Vec<Alignment> {
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
pub(crate) fn sleep(run: &mut Run, poll_first: bool) {
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
