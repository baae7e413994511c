//! A late member, with an active one that answers its requests.

mod missed;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::live::pipeline::Unresponsive;
use crate::live::standby::election::{Election, Member};
use crate::live::standby::member::{Event, Shared};
use crate::live::standby::message::Message;
use crate::live::standby::state::{GroupHandle, GroupState, Reason};
use crate::sinks::withheld::Permit;

const LEASE: Nanos = 100_000_000;
const OWN: MemberId = MemberId(1);
const ACTIVE: MemberId = MemberId(2);
/// Time in which a state is taken.
const TAKEN: Nanos = 2_000_000_000;
/// Time after which it is given up, and more.
const MINUTE: Nanos = 61_000_000_000;
/// Facts about the late member.
const ABOUT: About = About {
    process: 1,
    sent: None,
    since: 10,
    first: None,
    stood_still: None,
    active_for: None,
    taken: None,
    specification: 3,
    lease: LEASE,
    gates: None,
};
/// Facts about the active member, which received a message before the late one began.
const OF_ACTIVE: About = About { process: 2, first: Some(5), since: 0, ..ABOUT };

/// Surroundings that record what a member does.
#[derive(Default)]
struct Recorded {
    requests: Vec<(Route, Request)>,
    answers: Vec<(Route, Answer)>,
    done: Vec<&'static str>,
    /// The times between which messages are marked as missing.
    marked: Option<(i64, i64)>,
    said: RefCell<Vec<String>>,
    outcomes: VecDeque<Outcome>,
    /// The transfer whose state is to be joined.
    joins: Option<u64>,
    is_busy: bool,
    /// Number of outages that have ended.
    outages: u64,
    /// The last sign.
    sent: Option<Sign>,
}

impl Recorded {
    fn note(&mut self, done: &'static str) -> bool {
        self.done.push(done);
        !self.is_busy
    }

    fn has_said(&self, part: &str) -> usize {
        self.said.borrow().iter().filter(|said| said.contains(part)).count()
    }
}

impl Surroundings for Recorded {
    fn send(&mut self, sign: &Sign, _: &About) -> Result<(), String> {
        self.sent = Some(*sign);
        Ok(())
    }

    fn flush(&mut self) {}

    fn begin_publishing(&mut self, _: u64, _: Duration) -> Option<usize> {
        self.note("publish");
        Some(0)
    }

    fn publish_withheld(&mut self, _: usize, _: Duration) -> Option<bool> {
        Some(false)
    }

    fn stop_publishing(&mut self, _: Duration) {}

    fn first_received(&mut self, _: Duration) -> Option<Result<Option<Timestamp>, Unresponsive>> {
        Some(Ok(Some(Timestamp::from_nanos(20))))
    }

    fn outages(&self) -> u64 {
        self.outages
    }

    fn began_late(&mut self, from: Timestamp, until: Timestamp, _: Duration) -> bool {
        self.marked = Some((from.as_nanos(), until.as_nanos()));
        self.note("late")
    }

    fn request(&mut self, route: Route, request: &Request) {
        self.requests.push((route, request.clone()));
    }

    fn answer(&mut self, route: Route, answer: &Answer) {
        self.answers.push((route, answer.clone()));
    }

    fn note_identities(&mut self, _: Duration) -> bool {
        self.note("identities")
    }

    fn end_noting(&mut self, _: Duration) {
        self.note("end noting");
    }

    fn save(&mut self, _: u64) {
        self.note("save");
    }

    fn begin_keeping(&mut self, _: Duration) -> bool {
        self.note("keep")
    }

    fn copy_messages(&mut self, _: Duration) -> bool {
        self.note("copy")
    }

    fn mark_copies(&mut self, _: Duration) -> bool {
        self.note("mark")
    }

    fn end_keeping(&mut self, _: Duration) {
        self.note("end keeping");
    }

    fn join(&mut self, transfer: u64, _: Vec<u8>) {
        self.joins = Some(transfer);
        self.note("join");
    }

    fn outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    fn is_behind(&self) -> bool {
        false
    }

    fn say(&self, text: &str) {
        self.said.borrow_mut().push(text.to_owned());
    }

    fn warn(&self, text: &str) {
        self.said.borrow_mut().push(text.to_owned());
    }
}

/// A member that has just begun.
fn member(resumes: bool, takes_none: Option<&'static str>) -> Worker<Recorded> {
    let permit = Arc::new(Permit::simulated(0));
    let election = Election::new(Member { id: OWN, prefer: 0, lease: LEASE }, 0);
    let handle = GroupHandle::new(GroupState::new("g".to_owned(), OWN, 0));
    let shared = Shared { permit, handle, resumes, takes_none, awaits_returns: false };
    Worker::new(0, ABOUT, election, shared, Recorded::default())
}

/// The number of a sign of the active member at a time: the next ones are not far from it.
fn number(now: Nanos) -> u64 {
    (now / LOOK) as u64 + 1
}

/// A sign of the active member.
fn sign(now: Nanos) -> Sign {
    Sign {
        from: ACTIVE,
        number: number(now),
        epoch: 1,
        prefer: 0,
        is_late: false,
        role: Role::Active,
        position: None,
        ends: false,
        successor: None,
    }
}

fn receive(late: &mut Worker<Recorded>, sign: Sign, about: About) {
    let event = Event::Received(Box::new(Message::Sign(sign, about)));
    assert!(late.step(std::iter::once(event)).is_continue());
}

/// Lets a late member and an active one run for a while.
fn run(late: &mut Worker<Recorded>, active: &mut Giving, lasts: Nanos) {
    let until = late.now() + lasts;
    while late.now() < until {
        let now = late.now() + LOOK;
        late.shared.permit.set_now(now);
        let mut messages = vec![Message::Sign(sign(now), OF_ACTIVE)];
        for (route, request) in std::mem::take(&mut late.outside.requests) {
            let mut acts = active.receive(now, route, request, true);
            if acts.iter().any(|act| matches!(act, Act::Save(_))) {
                acts.extend(active.saved(route.transfer, Ok((vec![7; 40_000], 12))));
            }
            while let Some((route, part)) = active.part() {
                messages.push(Message::Answer(route, part));
            }
            messages.extend(acts.into_iter().filter_map(|act| match act {
                Act::Send(route, answer) => Some(Message::Answer(route, answer)),
                _ => None,
            }));
        }
        assert!(
            late.step(messages.into_iter().map(|message| Event::Received(Box::new(message)))).is_continue()
        );
    }
}

/// Lets a late member run until it joins the state, and returns the transfer.
fn joins(late: &mut Worker<Recorded>, active: &mut Giving) -> u64 {
    run(late, active, TAKEN);
    late.outside.joins.take().expect("the state is there")
}

#[test]
fn late_member_takes_the_state() {
    let (mut late, mut active) = (member(false, None), Giving::default());
    let transfer = joins(&mut late, &mut active);
    assert_eq!(late.outside.done, ["keep", "late", "copy", "mark", "join"]);
    assert_eq!(late.outside.marked, Some((5, 10)));
    assert!(late.shared.handle.state().is_late, "until the state is joined");
    assert!(late.outside.sent.is_some_and(|sign| sign.is_late), "others rank it behind");
    let other = Outcome::Joined(transfer + 1, Err("another transfer".to_owned()));
    let joined = Joined { kept: 3, dropped: 1, uncertain: Vec::new() };
    late.outside.outcomes.extend([other, Outcome::Joined(transfer, Ok(joined))]);
    run(&mut late, &mut active, LEASE);
    let state = late.shared.handle.state();
    let taken = state.taken.clone().expect("the state was taken");
    assert_eq!((taken.from, taken.step, taken.kept, taken.dropped), (ACTIVE, 12, 3, 1));
    assert!(!state.is_late && !active.is_busy());
    assert!(late.outside.sent.is_some_and(|sign| !sign.is_late));
    assert_eq!(late.about.taken, Some((ACTIVE, 12)), "signs say it");
    let said = "at step 12 (3 messages held, 1 dropped as contained)";
    assert!(late.outside.has_said(said) == 1 && state.sentence().contains(said));
    run(&mut late, &mut active, TAKEN);
    assert!(!late.outside.done[5..].contains(&"late"), "nothing is missing");
    assert_eq!(
        late.about.first, OF_ACTIVE.first,
        "a further member that is late takes the state of this one"
    );
}

#[test]
fn member_with_the_state_of_a_late_one_remains_late_behind_others() {
    for (is_late_at_first, has_third) in [(false, true), (true, true), (true, false)] {
        let (mut late, mut active) = (member(false, None), Giving::default());
        let transfer = joins(&mut late, &mut active);
        let now = late.now();
        if is_late_at_first {
            late.transfers.is_of_late = true;
        } else {
            receive(&mut late, Sign { number: number(now) + 1, is_late: true, ..sign(now) }, OF_ACTIVE);
        }
        let complete = Sign { from: MemberId(3), number: 1, role: Role::Standby, ..sign(now) };
        if has_third {
            receive(&mut late, complete, OF_ACTIVE);
        }
        late.outside.outcomes.push_back(Outcome::Joined(transfer, Ok(Joined::default())));
        assert!(late.step(std::iter::empty()).is_continue());
        let state = late.shared.handle.state();
        assert_eq!(
            (late.election.is_late(), state.is_late, state.is_ranked_late),
            (has_third, has_third, has_third)
        );
        assert!(state.taken.is_some());
        assert_eq!(late.outside.has_said("is late itself, and another one is not"), usize::from(has_third));
        if has_third {
            receive(&mut late, Sign { number: 2, epoch: 2, role: Role::Active, ..complete }, OF_ACTIVE);
            assert!(late.transfers.is_taking() && !late.transfers.is_of_late);
        }
    }
}

/// Lets a late member take over from the active one.
fn promote(late: &mut Worker<Recorded>) {
    let now = late.now();
    let handed_over = Sign { successor: Some(OWN), number: number(now) + 1, ..sign(now) };
    receive(late, handed_over, OF_ACTIVE);
    assert_eq!(late.election.role(), Role::Active);
}

#[test]
fn member_that_is_promoted_before_it_has_the_state_goes_on_without() {
    let (mut late, mut active) = (member(false, None), Giving::default());
    run(&mut late, &mut active, 700_000_000);
    assert_eq!(late.outside.done, ["keep", "late", "copy"]);
    promote(&mut late);
    assert_eq!(late.outside.done[..4], ["keep", "late", "copy", "end keeping"]);
    assert_eq!(late.outside.requests.last().map(|(_, request)| request), Some(&Request::End));
    assert_eq!(late.outside.has_said("this member takes over before it has the state"), 1);
    assert!(late.shared.handle.state().is_late);
    assert!(late.step(std::iter::empty()).is_continue());
    let advice = "hand over to it with `rondel standby promote --member 0000000000000002`";
    assert_eq!(late.outside.has_said(advice), 1, "the other one has the state");
    // One that has taken the state of this member lacks the same.
    late.has_named_better = false;
    let about = About { taken: Some((OWN, 3)), ..OF_ACTIVE };
    let standby = Sign { number: number(late.now()) + 2, role: Role::Standby, ..sign(0) };
    receive(&mut late, standby, about);
    assert_eq!(late.outside.has_said(advice), 1);
}

#[test]
fn nothing_is_published_before_earlier_messages_are_marked() {
    let (mut late, mut active) = (member(false, None), Giving::default());
    late.outside.is_busy = true;
    run(&mut late, &mut active, 700_000_000);
    promote(&mut late);
    assert!(late.outside.done.contains(&"late") && !late.outside.done.contains(&"publish"));
    late.outside.is_busy = false;
    assert!(late.step(std::iter::empty()).is_continue());
    assert!(late.outside.done.ends_with(&["late", "publish"]), "{:?}", late.outside.done);
}

#[test]
fn run_that_ends_before_earlier_messages_are_marked_has_their_times() {
    let times = Some((Timestamp::from_nanos(5), Timestamp::from_nanos(10)));
    for (is_busy, unmarked) in [(true, times), (false, None)] {
        let (mut late, mut active) = (member(false, None), Giving::default());
        late.outside.is_busy = is_busy;
        run(&mut late, &mut active, 700_000_000);
        let handle = late.shared.handle.clone();
        assert!(late.step(std::iter::once(Event::End)).is_break());
        late.finish();
        assert_eq!(handle.state().unmarked, unmarked);
    }
}

#[test]
fn state_that_cannot_be_joined_is_requested_three_times() {
    let (mut late, mut active) = (member(false, None), Giving::default());
    for attempt in 1..=3 {
        let transfer = joins(&mut late, &mut active);
        assert_eq!(late.outside.has_said("another attempt follows"), attempt - 1);
        late.outside.outcomes.push_back(Outcome::Joined(transfer, Err("no".to_owned())));
    }
    run(&mut late, &mut active, TAKEN);
    assert_eq!(late.outside.joins, None);
    assert_eq!(late.outside.has_said("cannot be taken: no; this member receives messages since"), 1);
    assert!(late.outside.done.contains(&"late"));
    assert!(late.shared.handle.state().is_late);
}

#[test]
fn state_is_not_requested_in_vain() {
    let first = |late: &mut Worker<Recorded>, about: About| {
        late.shared.permit.set_now(1);
        receive(late, sign(1), about);
        assert_eq!(late.election.role(), Role::Standby);
        assert!(late.outside.requests.is_empty(), "{:?}", late.outside.requests);
    };
    let mut late = member(false, None);
    first(&mut late, About { first: Some(10), ..OF_ACTIVE });
    assert!(!late.shared.handle.state().is_late, "both began before the first message");
    let mut late = member(false, None);
    first(&mut late, About { specification: 4, ..OF_ACTIVE });
    assert_eq!(late.outside.has_said("another specification; this member receives"), 1);
    let mut late = member(false, Some("for a reason"));
    first(&mut late, OF_ACTIVE);
    assert_eq!(late.outside.has_said("is not taken: for a reason; this member receives"), 1);
}

#[test]
fn clock_of_the_active_member_may_differ() {
    const SECOND: i64 = 1_000_000_000;
    // Whether a member is late if the active one received its first message some time before it began, by clocks that
    // differ by another time.
    let is_late = |before: i64, ahead: i64| {
        let mut late = member(false, None);
        let now = rondel_net::adapter::now().as_nanos();
        late.about.since = now;
        let about = About { sent: Some(now + ahead), first: Some(now - before + ahead), ..OF_ACTIVE };
        late.shared.permit.set_now(1);
        receive(&mut late, sign(1), about);
        late.shared.handle.state().is_late
    };
    for ahead in [0, 5 * SECOND, 3_600 * SECOND] {
        assert!(is_late(SECOND, ahead), "{ahead}");
        assert!(!is_late(-3_600 * SECOND, ahead), "{ahead}");
    }
    assert!(is_late(SECOND, -5 * SECOND));
    assert!(is_late(-SECOND, -5 * SECOND), "the sign may have waited");
}

#[test]
fn member_that_resumes_takes_the_state_and_is_not_late() {
    let (mut late, mut active) = (member(true, None), Giving::default());
    let transfer = joins(&mut late, &mut active);
    late.outside.outcomes.push_back(Outcome::Joined(transfer, Ok(Joined::default())));
    run(&mut late, &mut active, LEASE);
    let state = late.shared.handle.state();
    assert!(!state.is_late && state.taken.is_some());
    assert!(!late.outside.done.contains(&"late"), "the snapshot has marked what is missing");
}

#[test]
fn busy_evaluating_thread_is_waited_for() {
    let (mut late, mut active) = (member(false, None), Giving::default());
    late.outside.is_busy = true;
    run(&mut late, &mut active, TAKEN);
    assert!(late.outside.requests.is_empty() && !active.is_busy());
    late.outside.is_busy = false;
    joins(&mut late, &mut active);
    let (mut late, mut active) = (member(false, None), Giving::default());
    late.outside.is_busy = true;
    run(&mut late, &mut active, MINUTE);
    assert_eq!(late.outside.has_said("does not answer; this member receives messages since"), 1);
    assert!(!active.is_busy(), "every transfer was ended");
}

#[test]
fn signs_with_impossible_epochs_are_counted_and_warned_of_once() {
    let mut late = member(false, None);
    receive(&mut late, sign(0), ABOUT);
    for _ in 0..3 {
        receive(&mut late, Sign { from: MemberId(9), epoch: u64::MAX, ..sign(0) }, OF_ACTIVE);
    }
    let ignored = late.shared.handle.ignored();
    assert_eq!((ignored.of(Reason::Epoch), ignored.total()), (3, 3));
    assert_eq!(late.outside.has_said("ignores a sign of life of member 0000000000000009"), 1);
    assert_eq!((late.election.epoch(), late.election.active()), (1, Some(ACTIVE)));
}

#[test]
fn position_that_no_member_can_have_published_is_ignored() {
    let mut late = member(false, None);
    receive(&mut late, Sign { position: Some(7), ..sign(0) }, ABOUT);
    assert_eq!(late.election.position(), Some(7));
    receive(&mut late, Sign { position: Some(i64::MAX), ..sign(LOOK) }, ABOUT);
    assert_eq!(late.election.position(), Some(7), "the one before counts");
    let soon = rondel_net::adapter::now().as_nanos() + 1_000_000_000;
    receive(&mut late, Sign { position: Some(soon), ..sign(2 * LOOK) }, ABOUT);
    assert_eq!(late.election.position(), Some(soon), "times of event may be ahead of the clock");
}

#[test]
fn messages_that_cannot_be_read_are_warned_of_at_a_limited_rate() {
    let mut member = member(false, None);
    let ignore = |member: &mut Worker<Recorded>, reason: Reason| {
        member.shared.handle.change(|state| state.ignored.count(reason));
        assert!(member.step(std::iter::empty()).is_continue());
    };
    ignore(&mut member, Reason::Unreadable);
    assert_eq!(member.outside.has_said("ignores 1 message on the topic of the group that cannot be read"), 1);
    for _ in 0..2 {
        ignore(&mut member, Reason::Lease);
        ignore(&mut member, Reason::Unreadable);
    }
    assert_eq!(member.outside.has_said("ignores"), 1);
    member.shared.permit.set_now(member.now() + MINUTE);
    assert!(member.step(std::iter::empty()).is_continue());
    assert_eq!(member.outside.has_said("ignores 2 signs of life with a lease below 15 ms or above 60 s"), 1);
    assert_eq!(member.outside.has_said("ignores 2 messages on the topic"), 1);
}

#[test]
fn transfer_follows_the_active_member() {
    let (mut late, mut active) = (member(false, None), Giving::default());
    run(&mut late, &mut active, 700_000_000);
    assert!(active.is_busy());
    // The active member is killed, and another one takes over.
    let other = MemberId(3);
    let claimed = Sign { from: other, number: 1, epoch: 2, ..sign(0) };
    receive(&mut late, claimed, OF_ACTIVE);
    assert_eq!(late.outside.has_said("is not taken: it is no longer active"), 1);
    let requests = std::mem::take(&mut late.outside.requests);
    let ended = |(route, request): &(Route, Request)| route.to == ACTIVE && *request == Request::End;
    assert!(requests.iter().any(ended), "{requests:?}");
    let begins = |(route, request): &(Route, Request)| route.to == other && *request == Request::Record;
    for _ in 0..3 {
        let now = late.now() + LOOK;
        late.shared.permit.set_now(now);
        assert!(late.step(std::iter::empty()).is_continue());
    }
    let begun = requests.iter().chain(&late.outside.requests).any(begins);
    assert!(begun && late.shared.handle.state().is_late, "without a wait for the one that is gone");
    // The next one has no earlier messages either.
    let next = Sign { from: MemberId(4), number: 1, epoch: 3, ..sign(0) };
    receive(&mut late, next, About { first: Some(10), ..OF_ACTIVE });
    assert!(!late.transfers.is_taking());
    assert_eq!(late.outside.has_said("it is no longer active; this member receives messages since"), 1);
}

#[test]
fn late_member_ranks_behind_while_another_one_may_have_earlier_messages() {
    let mut late = member(false, Some("for a reason"));
    receive(&mut late, sign(1), OF_ACTIVE);
    assert!(late.election.is_late());
    let follow = |late: &mut Worker<Recorded>, id: u64, is_late: bool, about: About| {
        let claimed = Sign { from: MemberId(id), number: 1, epoch: id, is_late, ..sign(1) };
        receive(late, claimed, about);
        assert_eq!(late.election.active(), Some(MemberId(id)));
        late.election.is_late()
    };
    let later = About { first: Some(10), ..OF_ACTIVE };
    assert!(follow(&mut late, 3, true, later), "the active member is late itself");
    assert!(!follow(&mut late, 4, false, later), "no member has them");
    let state = late.shared.handle.state();
    assert!(state.is_late && !state.is_ranked_late, "its own verdicts lack them all the same");
    assert!(follow(&mut late, 5, false, OF_ACTIVE), "the active member has them");
    let marks = late.outside.done.iter().filter(|done| **done == "late");
    assert_eq!(marks.count(), 1, "verdicts are known to depend on them");
}

#[test]
fn late_member_that_is_replaced_takes_the_state() {
    let (mut late, mut active) = (member(false, None), Giving::default());
    run(&mut late, &mut active, 700_000_000);
    promote(&mut late);
    assert!(!late.transfers.is_taking());
    let claimed = Sign { from: MemberId(3), number: 1, epoch: 3, ..sign(0) };
    receive(&mut late, claimed, OF_ACTIVE);
    assert_eq!(late.outside.has_said("fenced: member 0000000000000003 is active in epoch 3"), 1);
    assert!(late.transfers.is_taking());
}

#[test]
fn transfer_to_a_member_that_is_gone_makes_room() {
    let mut active = member(false, None);
    promote(&mut active);
    let request = |active: &mut Worker<Recorded>, from: MemberId| {
        let route = Route { transfer: from.0, from, to: OWN };
        let event = Event::Received(Box::new(Message::Request(route, Request::Record)));
        assert!(active.step(std::iter::once(event)).is_continue());
        active.outside.answers.pop().map(|(route, answer)| (route.to, answer))
    };
    let (gone, again) = (MemberId(7), MemberId(8));
    let of_gone = Sign { from: gone, number: 1, role: Role::Standby, ..sign(0) };
    receive(&mut active, of_gone, ABOUT);
    assert_eq!(request(&mut active, gone), Some((gone, Answer::Recording)));
    let refused = request(&mut active, again);
    assert!(matches!(refused, Some((_, Answer::Refused(_, true)))), "{refused:?}");
    // No sign of the first one comes for a lease.
    for _ in 0..6 {
        let now = active.now() + LOOK;
        active.shared.permit.set_now(now);
        assert!(active.step(std::iter::empty()).is_continue());
    }
    assert_eq!(active.election.role(), Role::Active);
    assert_eq!(request(&mut active, again), Some((again, Answer::Recording)));
    assert!(active.outside.done.contains(&"end noting"));
}
