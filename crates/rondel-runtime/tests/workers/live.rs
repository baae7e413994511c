//! Live sessions: bursts and single messages, deadlines, pauses, outages, snapshots and summaries in between.

use std::sync::Arc;

use rondel_event::{Path, TimeUnit, Timestamp, TopicId};
use rondel_runtime::{
    Emit, INSTANCE_BYTES, Input, ManualClock, Options, Reset, ResetPolicy, Session, SessionPlan,
    Specification, Stamp, TimeSource,
};
use rondel_testkit::Random;

use super::{Message, Said, TEXT, messages, summary};

const MILLISECOND: i64 = 1_000_000;

/// A step of a live session.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// Messages come, and then none waits.
    Burst(usize),
    /// Nanoseconds pass, and what time alone decides is evaluated.
    Pass(i64),
    /// The process does not run for a second.
    Pause,
    /// Messages of the first topic are missed.
    CutOff,
    /// Another session continues from a snapshot; messages may have been missed in between.
    Resume { is_late: bool },
    /// A caller reads the statistics.
    Read,
}

/// Actions, in the first half of which no message is missed.
fn actions(random: &mut Random, count: usize) -> Vec<Action> {
    let action = |at| match random.below(60) {
        0 if at > count / 2 => Action::Pause,
        1 if at > count / 2 => Action::CutOff,
        2 => Action::Resume { is_late: at > count / 2 },
        3..=8 => Action::Read,
        9..=20 => Action::Pass(random.below(400) as i64 * MILLISECOND / 10),
        _ => Action::Burst([1, 1, 3, 70, 300, 1500][random.below(6) as usize]),
    };
    (0..count).map(action).collect()
}

/// Properties in milliseconds, and the options of their sessions.
struct Case {
    text: String,
    options: Options,
    time: TimeSource,
    watched: Vec<u32>,
}

/// A live session, its clock, and what it has reported.
struct Live<'c> {
    case: &'c Case,
    clock: Arc<ManualClock>,
    now: i64,
    workers: [usize; 2],
    session: Session,
    said: Said,
    /// Messages that workers have evaluated.
    handed_over: u64,
}

impl<'c> Live<'c> {
    fn start(case: &'c Case, workers: [usize; 2]) -> Live<'c> {
        let (clock, now) = (Arc::new(ManualClock::default()), 1000 * MILLISECOND);
        clock.set(Timestamp::from_nanos(now));
        let mut session = plan(case, &clock, workers[0]).start().unwrap();
        session.watch_properties(&case.watched);
        Live { case, clock, now, workers, session, said: Said::default(), handed_over: 0 }
    }

    fn pass(&mut self, nanos: i64) {
        self.now += nanos;
        self.clock.set(Timestamp::from_nanos(self.now));
    }

    /// Notes the present state.
    fn look(&mut self, action: Action) {
        self.said.take(&mut self.session);
        let standings: Vec<String> =
            self.case.watched.iter().map(|of| format!("{:?}", self.session.standing(*of))).collect();
        let (due, deadline) = (self.session.due(), self.session.deadline());
        self.said.reports.push(format!("{action:?}: {due:?} {deadline:?} {standings:?}"));
    }

    fn burst(&mut self, messages: &[Message]) {
        for (topic, _, payload) in messages {
            self.pass(MILLISECOND / 2);
            let stamp = Stamp { arrival: Some(Timestamp::from_nanos(self.now)), ..Stamp::default() };
            let _ = self.session.push(TopicId(*topic), stamp, payload.as_bytes());
            self.said.take(&mut self.session);
        }
        self.session.flush();
    }

    fn act(&mut self, action: Action, messages: &mut std::slice::Iter<'_, Message>) {
        match action {
            Action::Burst(count) => {
                let (now, rest) = messages.as_slice().split_at(count.min(messages.len()));
                *messages = rest.iter();
                self.burst(now);
            }
            Action::Pass(nanos) => {
                self.pass(nanos);
                while self.session.poll().is_some_and(|due| due <= self.now) {}
            }
            Action::Pause => {
                self.pass(1000 * MILLISECOND);
                self.session.alive();
            }
            Action::CutOff => {
                self.session.note_count();
                let from = Timestamp::from_nanos(self.now - MILLISECOND);
                self.session.cut_off(&[TopicId(0)], from, Some(Timestamp::from_nanos(self.now)));
            }
            Action::Resume { is_late } => self.resume(is_late),
            Action::Read => {
                self.session.collect();
                self.said.take(&mut self.session);
                let (all, present) = (summary(&self.session.summary()), self.session.present());
                self.said.reports.push(format!("{all} {:?} {}", present.violated, present.instances));
            }
        }
        self.look(action);
    }

    fn resume(&mut self, is_late: bool) {
        let bytes = self.session.snapshot("note");
        self.said.take(&mut self.session);
        self.handed_over += self.session.workers().map_or(0, |workers| workers.messages);
        self.workers.reverse();
        self.session = plan(self.case, &self.clock, self.workers[0]).restore(&bytes, "note").unwrap();
        assert!(self.session.edited().is_none());
        self.session.watch_properties(&self.case.watched);
        if is_late {
            self.session.resumed(&[]);
        }
    }

    fn end(mut self) -> (Said, u64) {
        self.handed_over += self.session.workers().map_or(0, |workers| workers.messages);
        (self.said.end(self.session), self.handed_over)
    }
}

fn plan(case: &Case, clock: &Arc<ManualClock>, workers: usize) -> SessionPlan {
    let input = Input { time: case.time.clone(), time_unit: TimeUnit::Milliseconds, ..Input::default() };
    let spec = rondel_spec::parse(&case.text).spec.unwrap();
    let inputs = vec![input; spec.topics.len()];
    let options = Options {
        inputs,
        clock: Arc::clone(clock) as _,
        live: true,
        paused_after: Some(500 * MILLISECOND),
        ..case.options.clone()
    };
    let mut plan = SessionPlan::of(Specification::new(spec).unwrap(), options);
    assert_eq!(plan.set_workers(workers), Ok(None));
    plan
}

fn in_milliseconds(text: &str) -> String {
    (1..=9)
        .fold(text.to_owned(), |text, number| text.replace(&format!("{number} s"), &format!("{number} ms")))
}

/// Notices without the number of instances at a limit: with workers it is counted when the limit is noticed.
fn without_counts(notices: &[String]) -> Vec<&str> {
    notices.iter().map(|notice| notice.split("the limit of").next().unwrap_or_default()).collect()
}

/// Compares sessions with several workers to one with one. Returns the least number of messages that workers evaluated.
fn compare(text: &str, seed: u64, options: Options, time: TimeSource) -> u64 {
    let mut random = Random::new(seed);
    let mut messages = super::messages(&mut random, 5000, false);
    messages.extend(super::messages(&mut random, 5000, seed.is_multiple_of(3)));
    let actions = actions(&mut random, 80);
    let case = Case { text: in_milliseconds(text), options, time, watched: vec![0, 3, 9] };
    let run = |workers: [usize; 2]| {
        let mut live = Live::start(&case, workers);
        let mut rest = messages.iter();
        actions.iter().for_each(|action| live.act(*action, &mut rest));
        live.end()
    };
    let (one, alone) = run([1, 1]);
    assert!(one.reports.len() > 500 && alone == 0, "{} reports", one.reports.len());
    let mut least = u64::MAX;
    for workers in [[2, 2], [4, 1], [3, 8]] {
        let (several, handed_over) = run(workers);
        least = least.min(handed_over);
        let place = format!("seed {seed}, {workers:?} workers");
        let mut pairs = several.reports.iter().zip(&one.reports);
        assert_eq!(pairs.find(|(several, one)| several != one), None, "{place}");
        assert_eq!(several.reports.len(), one.reports.len(), "{place}");
        assert_eq!(without_counts(&several.notices), without_counts(&one.notices), "{place}");
        assert_eq!(several.summary, one.summary, "{place}");
    }
    least
}

#[test]
fn live_reports_do_not_depend_on_the_number_of_workers() {
    for seed in rondel_testkit::seeds("live workers", 4) {
        let emit = [Emit::Change, Emit::Every][seed as usize % 2];
        let policy =
            [ResetPolicy::Restart, ResetPolicy::Inconclusive, ResetPolicy::Ignore][seed as usize % 3];
        let reset = Reset { policy, after: None };
        let instance_bytes = [usize::MAX, INSTANCE_BYTES][seed as usize / 2 % 2];
        let options = Options { emit, reset, ids: true, instance_bytes, ..Options::default() };
        let time = if seed % 4 < 2 { TimeSource::Field(Path::keys(["t"])) } else { TimeSource::Arrival };
        compare(TEXT, seed, options, time);
    }
}

#[test]
fn deadlines_of_divided_instances_pass_with_the_workers() {
    let text = "topic a { t: time, k: int, x: float, s: string } topic b { t: time, k: int, ok: bool }
        property each for each k in (a.k, b.k) = on(a) -> eventually[0, 3 s] b.ok
        property silent for each k in (a.k, b.k) = age(b) <= 2 s
        machine of_key for each k in (a.k, b.k) { initial p p -> q when on(a) q -> p when on(b) error q for 3 s }";
    let options = Options { reset: Reset { policy: ResetPolicy::Ignore, after: None }, ..Options::default() };
    let least = [
        compare(text, 7, options.clone(), TimeSource::Field(Path::keys(["t"]))),
        compare(text, 8, options, TimeSource::Arrival),
    ];
    assert!(least.iter().all(|messages| *messages > 500), "{least:?} messages");
}

#[test]
fn states_return_to_a_session_that_becomes_quiet() {
    let text = "topic a { t: time, k: int, x: float, s: string } topic b { t: time, k: int, ok: bool }
        property each for each k in (a.k, b.k) = on(a) -> once[0, 3 s] b.ok";
    let case = Case {
        text: in_milliseconds(text),
        options: Options::default(),
        time: TimeSource::Arrival,
        watched: Vec::new(),
    };
    let all = messages(&mut Random::new(9), 6000, false);
    let mut live = Live::start(&case, [2, 2]);
    for message in all.chunks(1).take(200) {
        live.burst(message);
    }
    let statistics = live.session.workers().unwrap();
    assert_eq!((statistics.batches, statistics.busy.len()), (0, 0), "no thread has started");
    live.burst(&all[200..3000]);
    let statistics = live.session.workers().unwrap();
    assert!(statistics.batches >= 5 && statistics.messages > 2000, "{statistics:?}");
    assert_eq!((statistics.busy.len(), statistics.waiting), (2, 0));
    assert_eq!(statistics.requested, 2);
    for message in all[3000..].chunks(1) {
        live.burst(message);
    }
    assert_eq!(live.session.workers().map(|after| after.messages), Some(statistics.messages));
}
