//! A member that may have missed messages since it began.

use super::*;

const SECOND: Nanos = 1_000_000_000;
/// The least pause between two transfers.
const PAUSE: Nanos = 10 * SECOND;

/// Lets a member join the state that is there.
fn join(late: &mut Worker<Recorded>, active: &mut Giving, transfer: u64) {
    late.outside.outcomes.push_back(Outcome::Joined(transfer, Ok(Joined::default())));
    run(late, active, LEASE);
}

/// A standby that has the state of the active member.
fn following(active: &mut Giving) -> Worker<Recorded> {
    let mut standby = member(false, None);
    let transfer = joins(&mut standby, active);
    join(&mut standby, active, transfer);
    assert!(!standby.lacks_earlier());
    standby.outside.done.clear();
    standby
}

/// Lets a standby run without signs of others until it claims, or for a while. Returns the time that passes.
fn run_alone(standby: &mut Worker<Recorded>) -> Nanos {
    let begins = standby.now();
    while standby.election.role() == Role::Standby && standby.now() - begins < PAUSE {
        standby.shared.permit.set_now(standby.now() + LOOK);
        assert!(standby.step(std::iter::empty()).is_continue());
    }
    standby.now() - begins
}

/// A sign of the active member with this number.
fn numbered(number: u64) -> Sign {
    Sign { number, ..sign(0) }
}

#[test]
fn standby_that_stood_still_takes_the_state() {
    let mut active = Giving::default();
    let mut standby = following(&mut active);
    standby.note_standstill();
    run(&mut standby, &mut active, LEASE);
    assert!(standby.shared.handle.state().is_late && standby.about.stood_still.is_some());
    assert!(standby.outside.sent.is_some_and(|sign| sign.is_late), "others rank it behind");
    assert_eq!(standby.outside.has_said("this process stood still until "), 1);
    assert_eq!(standby.outside.has_said("it is late until it has the state of member 0000000000000002"), 1);
    assert_eq!(standby.outside.has_said("as this one may have missed messages"), 1);
    let transfer = joins(&mut standby, &mut active);
    join(&mut standby, &mut active, transfer);
    assert_eq!(
        standby.outside.done,
        ["keep", "copy", "mark", "join"],
        "nothing is marked as before its start"
    );
    let state = standby.shared.handle.state();
    assert_eq!((state.is_late, state.missed, standby.about.stood_still), (false, 1, None));
    assert!(state.sentence().contains(", late again 1 time"), "{}", state.sentence());
    run(&mut standby, &mut active, 2 * PAUSE);
    assert_eq!(standby.outside.joins, None, "once for each standstill");
}

#[test]
fn standby_that_was_cut_off_takes_the_state() {
    let mut active = Giving::default();
    let mut standby = following(&mut active);
    standby.outside.outages = 1;
    let transfer = joins(&mut standby, &mut active);
    assert_eq!(standby.outside.has_said("a connection was lost until "), 1);
    join(&mut standby, &mut active, transfer);
    assert!(!standby.lacks_earlier());
}

#[test]
fn standby_that_comes_back_waits_for_signs() {
    for is_outage in [false, true] {
        let mut standby = following(&mut Giving::default());
        match is_outage {
            true => standby.outside.outages = 1,
            false => standby.note_standstill(),
        }
        let waited = run_alone(&mut standby);
        assert!((2 * SECOND..3 * SECOND).contains(&waited), "{waited}");
    }
}

#[test]
fn pauses_between_transfers_grow() {
    let mut active = Giving::default();
    let mut standby = following(&mut active);
    let (begins, mut taken) = (standby.now(), 0);
    while standby.now() - begins < 20 * PAUSE {
        standby.note_standstill();
        run(&mut standby, &mut active, SECOND);
        if let Some(transfer) = standby.outside.joins.take() {
            taken += 1;
            join(&mut standby, &mut active, transfer);
            assert!(standby.lacks_earlier(), "it has stood still since");
        }
    }
    assert_eq!(taken, 5, "after 0, 10, 30, 70 and 150 s");
    assert!(standby.outside.has_said(", which it requests in ") > 0);
    // The one that is due comes, and none for a while: the pause is the least one again.
    run(&mut standby, &mut active, 20 * PAUSE);
    let transfer = standby.outside.joins.take().expect("the state is there");
    join(&mut standby, &mut active, transfer);
    run(&mut standby, &mut active, 80 * PAUSE);
    for _ in 0..2 {
        standby.note_standstill();
        let transfer = joins(&mut standby, &mut active);
        join(&mut standby, &mut active, transfer);
        run(&mut standby, &mut active, PAUSE);
    }
}

#[test]
fn transfer_that_fails_is_tried_again_after_the_pause() {
    let mut active = Giving::default();
    let mut standby = following(&mut active);
    standby.note_standstill();
    for _ in 0..3 {
        let transfer = joins(&mut standby, &mut active);
        standby.outside.outcomes.push_back(Outcome::Joined(transfer, Err("no".to_owned())));
    }
    run(&mut standby, &mut active, TAKEN);
    assert_eq!(standby.outside.joins, None);
    assert_eq!(standby.outside.has_said("cannot be taken: no; this member may lack messages until "), 1);
    assert!(standby.lacks_earlier() && standby.outside.sent.is_some_and(|sign| sign.is_late));
    run(&mut standby, &mut active, PAUSE);
    let transfer = standby.outside.joins.take().expect("the state is there");
    join(&mut standby, &mut active, transfer);
    assert_eq!((standby.lacks_earlier(), standby.shared.handle.state().missed), (false, 1));
}

#[test]
fn standstill_during_a_transfer_causes_another_one() {
    let (mut standby, mut active) = (member(false, None), Giving::default());
    run(&mut standby, &mut active, 700_000_000);
    standby.note_standstill();
    let transfer = joins(&mut standby, &mut active);
    join(&mut standby, &mut active, transfer);
    assert!(standby.shared.handle.state().taken.is_some() && standby.lacks_earlier());
    let transfer = joins(&mut standby, &mut active);
    join(&mut standby, &mut active, transfer);
    assert!(!standby.lacks_earlier());
}

#[test]
fn active_member_that_stood_still_takes_a_state_once_it_stands_by() {
    let mut active = Giving::default();
    let mut member = following(&mut active);
    promote(&mut member);
    member.note_standstill();
    assert!(member.step(std::iter::empty()).is_continue());
    assert_eq!(member.election.role(), Role::Active);
    assert!(!member.transfers.is_taking() && !member.lacks_earlier(), "it keeps its state");
    let claimed = Sign { from: MemberId(3), number: 1, epoch: 3, ..sign(0) };
    receive(&mut member, claimed, OF_ACTIVE);
    assert_eq!(member.election.role(), Role::Standby);
    assert!(member.transfers.is_taking() && member.lacks_earlier());
}

#[test]
fn standby_that_takes_over_without_the_state_says_so() {
    let mut active = Giving::default();
    let mut standby = following(&mut active);
    standby.note_standstill();
    run(&mut standby, &mut active, LEASE);
    run_alone(&mut standby);
    assert_eq!(standby.election.role(), Role::Active);
    let said =
        "takes over before it has the state of member 0000000000000002; this member may lack messages until ";
    assert_eq!(standby.outside.has_said(said), 1);
    assert!(standby.lacks_earlier());
    // It takes the state once another member replaces it.
    let claimed = Sign { from: MemberId(3), number: 1, epoch: 3, ..sign(0) };
    receive(&mut standby, claimed, OF_ACTIVE);
    assert!(standby.transfers.is_taking());
}

#[test]
fn nothing_is_missing_if_the_active_member_has_received_nothing_meanwhile() {
    for first in [None, Some(i64::MAX)] {
        let mut standby = member(false, None);
        standby.shared.permit.set_now(1);
        let about = About { first, ..OF_ACTIVE };
        receive(&mut standby, numbered(1), about);
        standby.note_standstill();
        receive(&mut standby, numbered(2), about);
        assert!(!standby.lacks_earlier() && !standby.transfers.is_taking(), "{first:?}");
        receive(&mut standby, numbered(3), OF_ACTIVE);
        // Without a message of the active member it is not known yet.
        assert_eq!(standby.transfers.is_taking(), first.is_none());
    }
}

#[test]
fn standby_that_has_more_than_the_active_member_keeps_its_state() {
    let mut standby = member(false, None);
    standby.shared.permit.set_now(1);
    // The active member began two seconds after this one received its first message, and has no state of another one.
    let about = About { first: Some(20 + 2 * SECOND), ..OF_ACTIVE };
    receive(&mut standby, Sign { is_late: true, ..numbered(1) }, about);
    standby.note_standstill();
    receive(&mut standby, Sign { is_late: true, ..numbered(2) }, about);
    assert!(!standby.lacks_earlier() && !standby.transfers.is_taking());
    receive(&mut standby, numbered(3), about);
    assert!(standby.lacks_earlier() && standby.transfers.is_taking(), "it has taken a state meanwhile");
}

#[test]
fn standby_that_takes_no_state_goes_on_after_a_standstill() {
    let about = About { first: Some(10), ..OF_ACTIVE };
    for (takes_none, about) in [(Some("for a reason"), about), (None, About { specification: 4, ..about })] {
        let mut standby = member(false, takes_none);
        standby.shared.permit.set_now(1);
        receive(&mut standby, numbered(1), about);
        standby.note_standstill();
        standby.outside.outages = 1;
        receive(&mut standby, numbered(2), about);
        assert!(!standby.lacks_earlier() && !standby.transfers.is_taking());
    }
}
