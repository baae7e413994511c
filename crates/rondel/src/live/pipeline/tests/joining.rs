//! A member of a group that takes the state of another one.

use rondel_event::{Origin, Verdict};
use rondel_testkit::{Random, seeds};

use super::*;
use crate::sinks::withheld::Permit;

const LIMIT: Duration = Duration::from_secs(60);
/// Number of messages by which one member may be behind the other.
const SKEW: usize = 6;

/// Marks of a message by which two members know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marks {
    Number,
    SourceTime,
    Payload,
}

/// A member that stands by, and the messages that it has received.
struct Member {
    pipeline: Pipeline,
    plan: SessionPlan,
    received: usize,
}

impl Member {
    fn new(text: &str) -> Member {
        let spec = rondel_spec::parse(text).spec.unwrap();
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let (pipeline, _) = pipeline_of(spec.clone(), Arc::clone(&clock));
        pipeline.state().sinks.join_group(Arc::new(Permit::default()), 1_000_000);
        let options = Options { inputs: vec![input()], clock, ..Options::default() };
        let plan = SessionPlan::of(Specification::new(spec).unwrap(), options);
        Member { pipeline, plan, received: 0 }
    }

    fn send(&self, number: usize, marks: Marks, payload: &str) {
        let arrival = Some(Timestamp::from_nanos(1));
        let source = Timestamp::from_nanos(1_000 + number as i64);
        let source = (marks == Marks::SourceTime).then_some(source);
        let origin = Origin { publisher: 7, number: number as u64 };
        let sample = Sample::new(payload.as_bytes(), source, arrival);
        let origin = (marks == Marks::Number).then_some(origin);
        self.pipeline.receive(TopicId(0), &[sample.with_origin(origin)]);
    }

    /// Receives the next message of a stream, in which one value is large.
    fn next(&mut self, marks: Marks) {
        let value = if self.received == 3 { 9 } else { 1 };
        self.send(self.received, marks, &format!("{{\"t\":{},\"v\":{value}}}", self.received));
        self.received += 1;
    }

    fn last(&self) -> Option<Verdict> {
        self.pipeline.idle();
        self.pipeline.summary().0.properties[0].last
    }

    fn events(&self) -> u64 {
        self.pipeline.idle();
        self.pipeline.state().session.events()
    }

    fn join(&self, of: &MemberState) -> Result<Joined, String> {
        self.pipeline.join_state(&self.plan, &of.identities, &of.snapshot)
    }
}

const NEVER: &str = "topic beat { v: float } property small = historically beat.v < 5";

/// Lets both members receive messages, in different orders, until the condition holds.
fn run(random: &mut Random, both: &mut [Member; 2], marks: Marks, is_done: impl Fn(&[Member; 2]) -> bool) {
    while !is_done(both) {
        let [active, late] = &*both;
        let next = match active.received.cmp(&late.received) {
            std::cmp::Ordering::Less if late.received - active.received >= SKEW => 0,
            std::cmp::Ordering::Greater if active.received - late.received >= SKEW => 1,
            _ => random.index(2),
        };
        both[next].next(marks);
    }
}

fn late(seed: u64) {
    let mut random = Random::new(seed);
    let marks = random.pick(&[Marks::Number, Marks::SourceTime, Marks::Payload]);
    let mut both = [Member::new(NEVER), Member::new(NEVER)];
    let first = 5 + random.index(20);
    (0..first).for_each(|_| both[0].next(marks));
    // The first ones of the late member are among them.
    both[1].received = first - random.index(SKEW).min(first - 4);
    assert!(both[1].pipeline.begin_keeping(&both[1].plan, LIMIT));
    let pause = random.index(30);
    run(&mut random, &mut both, marks, |both| both[0].received >= first + pause);
    assert!(both[0].pipeline.note_identities(&both[0].plan, LIMIT));
    let noted = both[0].received;
    run(&mut random, &mut both, marks, |both| both[1].received >= noted);
    assert!(both[1].pipeline.copy_messages(LIMIT));
    let pause = both[1].received + random.index(10);
    run(&mut random, &mut both, marks, |both| both[1].received >= pause);
    assert!(both[1].pipeline.mark_copies(LIMIT));
    let marked = both[1].received;
    run(&mut random, &mut both, marks, |both| both[0].received >= marked);
    let state = both[0].pipeline.state_for_member().unwrap();
    assert_eq!(state.step, both[0].received as u64);
    let saved = both[0].received;
    let pause = both[1].received + random.index(30);
    run(&mut random, &mut both, marks, |both| both[1].received >= pause);
    let is_behind = both[1].received < saved;
    let joined = both[1].join(&state).unwrap();
    assert_eq!(joined.uncertain, Vec::<String>::new(), "seed {seed}, {marks:?}");
    let expected = saved.max(both[1].received);
    assert_eq!(both[1].events(), expected as u64, "seed {seed}, {marks:?}");
    run(&mut random, &mut both, marks, |both| both.iter().all(|member| member.received >= expected + 10));
    for member in &mut both {
        (member.received..expected + 30).for_each(|_| member.next(marks));
    }
    assert_eq!(both[1].events(), both[0].events(), "seed {seed}, {marks:?}");
    assert_eq!(both[0].last(), Some(Verdict::Violated));
    // The violation is that of a message before the late member began.
    let last = both[1].last();
    let is_uncertain = is_behind && marks == Marks::Payload && last == Some(Verdict::Inconclusive);
    assert!(last == Some(Verdict::Violated) || is_uncertain, "seed {seed}, {marks:?}: {last:?}");
}

#[test]
fn no_message_is_missing_or_counted_twice() {
    seeds("no_message_is_missing_or_counted_twice", 200).for_each(late);
}

/// Two members, of which one keeps messages and the other one notes them.
fn noting() -> [Member; 2] {
    let both = [Member::new(NEVER), Member::new(NEVER)];
    assert!(both[1].pipeline.begin_keeping(&both[1].plan, LIMIT));
    assert!(both[0].pipeline.note_identities(&both[0].plan, LIMIT));
    assert!(both[1].pipeline.copy_messages(LIMIT));
    both
}

/// Lets both members receive the next message.
fn next(both: &mut [Member; 2], marks: Marks) {
    both.iter_mut().for_each(|member| member.next(marks));
}

/// Lets the late member take the state of the active one while both receive messages.
fn take(both: &mut [Member; 2], marks: Marks) -> Joined {
    assert!(both[1].pipeline.begin_keeping(&both[1].plan, LIMIT));
    next(both, marks);
    assert!(both[0].pipeline.note_identities(&both[0].plan, LIMIT));
    next(both, marks);
    assert!(both[1].pipeline.copy_messages(LIMIT));
    next(both, marks);
    assert!(both[1].pipeline.mark_copies(LIMIT));
    next(both, marks);
    let state = both[0].pipeline.state_for_member().unwrap();
    next(both, marks);
    both[1].join(&state).unwrap()
}

/// Lets a member that may have been active take the state twice, each time after it has missed messages.
fn missed(marks: Marks, was_active: bool) {
    let mut both = [Member::new(NEVER), Member::new(NEVER)];
    (0..2).for_each(|_| next(&mut both, marks));
    if was_active {
        assert!(both[1].pipeline.begin_publishing(1, LIMIT).is_some());
        next(&mut both, marks);
        assert!(both[1].pipeline.stop_publishing(LIMIT));
    }
    for missed in [3, 20] {
        (0..missed).for_each(|_| both[0].next(marks));
        both[1].received += missed;
        next(&mut both, marks);
        let joined = take(&mut both, marks);
        assert_eq!(joined.uncertain, Vec::<String>::new(), "{marks:?}, {was_active}");
        next(&mut both, marks);
        assert_eq!(both[1].events(), both[0].events(), "{marks:?}, {was_active}");
    }
    // The violation is among the messages that it missed.
    assert_eq!([both[0].last(), both[1].last()], [Some(Verdict::Violated); 2], "{marks:?}, {was_active}");
}

#[test]
fn member_that_missed_messages_takes_the_state_again() {
    for marks in [Marks::Number, Marks::SourceTime, Marks::Payload] {
        [false, true].into_iter().for_each(|was_active| missed(marks, was_active));
    }
}

#[test]
fn equal_messages_are_uncertain() {
    let both = noting();
    for _ in 0..2 {
        both.iter().for_each(|member| member.send(0, Marks::Payload, "{\"t\":1,\"v\":1}"));
    }
    let state = both[0].pipeline.state_for_member().unwrap();
    both[1].send(0, Marks::Payload, "{\"t\":1,\"v\":1}");
    let joined = both[1].join(&state).unwrap();
    assert_eq!((joined.kept, joined.uncertain), (3, vec!["beat".to_owned()]));
    both[1].send(0, Marks::Payload, "{\"t\":2,\"v\":1}");
    assert_eq!(both[1].last(), Some(Verdict::Inconclusive), "one of them may be another message");
}

#[test]
fn member_that_lags_behind_is_uncertain() {
    let mut both = noting();
    both[1].next(Marks::Payload);
    both[1].next(Marks::Payload);
    assert!(both[1].pipeline.mark_copies(LIMIT));
    let state = both[0].pipeline.state_for_member().unwrap();
    let joined = both[1].join(&state).unwrap();
    assert_eq!((joined.dropped, joined.uncertain), (0, vec!["beat".to_owned()]));
}

#[test]
fn own_state_stays_if_the_other_cannot_be_joined() {
    let refused = |disturb: &dyn Fn(&mut [Member; 2], &mut MemberState), reason: &str| {
        let mut both = noting();
        both.iter_mut().for_each(|member| member.next(Marks::Payload));
        let mut state = both[0].pipeline.state_for_member().unwrap();
        disturb(&mut both, &mut state);
        let error = both[1].join(&state).unwrap_err();
        assert!(error.contains(reason), "{error}");
        both[1].next(Marks::Payload);
        assert_eq!(both[1].events(), 2, "it goes on");
        assert_eq!(both[1].join(&state).unwrap_err(), "no messages were kept");
    };
    refused(&|_, state| state.snapshot.truncate(10), "truncated");
    refused(&|_, state| *state = other_state(), "another specification");
    refused(&|both, _| both[1].pipeline.cut_off(&[TopicId(0)], Timestamp::ZERO, None), "disconnected");
    refused(
        &|both, _| {
            let taken = both[1].pipeline.begin_publishing(1, LIMIT);
            assert!(taken.is_some());
        },
        "took over",
    );
    refused(
        &|both, _| {
            assert!(both[1].pipeline.end_keeping(LIMIT));
        },
        "no messages were kept",
    );
}

#[test]
fn pause_that_no_message_has_shown_refuses_the_state() {
    let (active, mut late) = (Member::new(NEVER), Member::new(NEVER));
    let clock = Arc::new(ManualClock::default());
    let options = Options {
        inputs: vec![input()],
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        paused_after: Some(500_000_000),
        // Otherwise a pause concerns no property here.
        drops_when_stopped: true,
        ..Options::default()
    };
    let spec = rondel_spec::parse(NEVER).spec.unwrap();
    late.plan = SessionPlan::of(Specification::new(spec).unwrap(), options);
    late.pipeline.state().session = late.plan.start().unwrap();
    late.pipeline.alive();
    assert!(late.pipeline.begin_keeping(&late.plan, LIMIT));
    assert!(active.pipeline.note_identities(&active.plan, LIMIT));
    assert!(late.pipeline.copy_messages(LIMIT));
    let state = active.pipeline.state_for_member().unwrap();
    clock.set(Timestamp::from_nanos(1_000_000_000));
    assert_eq!(late.join(&state).unwrap_err(), "this process stood still meanwhile");
    // One before the transfer is no reason.
    clock.set(Timestamp::from_nanos(2_000_000_000));
    assert!(late.pipeline.begin_keeping(&late.plan, LIMIT));
    assert!(active.pipeline.note_identities(&active.plan, LIMIT));
    assert!(late.pipeline.copy_messages(LIMIT));
    let state = active.pipeline.state_for_member().unwrap();
    assert_ne!(late.join(&state).err().as_deref(), Some("this process stood still meanwhile"));
}

fn other_state() -> MemberState {
    let other = Member::new("topic beat { v: float } property small = historically beat.v < 6");
    assert!(other.pipeline.note_identities(&other.plan, LIMIT));
    other.pipeline.state_for_member().unwrap()
}

#[test]
fn state_is_given_once_after_messages_were_noted() {
    let both = noting();
    assert!(both[0].pipeline.state_for_member().is_ok());
    assert!(both[0].pipeline.state_for_member().is_err());
    assert!(both[1].pipeline.note_identities(&both[1].plan, LIMIT));
    assert!(both[1].pipeline.end_noting(LIMIT));
    assert!(both[1].pipeline.state_for_member().is_err());
    assert!(both[1].pipeline.note_identities(&both[1].plan, LIMIT));
    assert!(both[1].pipeline.end(None, LIMIT).is_some());
    assert_eq!(both[1].pipeline.state_for_member().err(), Some("its run is ending".to_owned()));
}

#[test]
fn member_that_ends_late_is_inconclusive() {
    let (from, until) = (Timestamp::from_nanos(5), Timestamp::from_nanos(10));
    // Messages before and after earlier ones are marked.
    for (before, after) in [(1, 0), (3, 0), (1, 1), (0, 1)] {
        for is_marked in [false, true] {
            let mut member = Member::new("topic beat { v: float } property small = historically beat.v < 50");
            (0..before).for_each(|_| member.next(Marks::Payload));
            if is_marked {
                assert!(member.pipeline.began_late(&[TopicId(0)], from, until, LIMIT));
            }
            (0..after).for_each(|_| member.next(Marks::Payload));
            let unmarked = (!is_marked).then_some((from, until));
            member.pipeline.end_late(&[TopicId(0)], unmarked, LIMIT);
            assert_eq!(member.last(), Some(Verdict::Inconclusive), "{before}, {after}, {is_marked}");
        }
    }
}

#[test]
fn member_that_has_the_state_does_not_end_late() {
    let mut both = noting();
    assert!(both[1].pipeline.mark_copies(LIMIT));
    both.iter_mut().for_each(|member| member.next(Marks::Payload));
    let state = both[0].pipeline.state_for_member().unwrap();
    both[1].join(&state).unwrap();
    let last = both[0].last();
    both[1].pipeline.end_late(&[TopicId(0)], None, LIMIT);
    assert_eq!(both[1].last(), last);
}
