use super::*;

const LEASE: Nanos = 90;

fn member(id: u64, prefer: i64) -> Election {
    Election::new(Member { id: MemberId(id), prefer, lease: LEASE }, 0)
}

fn sign(from: u64, number: u64, epoch: u64, role: Role) -> Sign {
    let (from, prefer, position) = (MemberId(from), 0, None);
    Sign { from, number, epoch, prefer, is_late: false, role, position, ends: false, successor: None }
}

/// Looks every tenth of a lease until the time, and returns the last change.
fn look_until(member: &mut Election, end: Nanos) -> Option<(Nanos, Change)> {
    let mut last = None;
    while member.looked + 9 <= end {
        let now = member.looked + 9;
        if let Some(change) = member.look(now) {
            last = Some((now, change));
        }
        member.sent(now);
    }
    last
}

/// Receives a sign, after looks until then.
fn at(member: &mut Election, now: Nanos, sign: &Sign) -> Option<Change> {
    look_until(member, now);
    member.receive(now, sign)
}

#[test]
fn lone_member_is_active_after_a_lease() {
    let mut a = member(1, 0);
    assert_eq!(look_until(&mut a, 500), Some((90, Change::Claimed(Claim::Vacant))));
    assert_eq!((a.role(), a.epoch(), a.active()), (Role::Active, 1, Some(MemberId(1))));
}

#[test]
fn silent_active_member_is_replaced_after_a_lease() {
    let mut b = member(2, 0);
    assert_eq!(at(&mut b, 10, &sign(1, 0, 7, Role::Active)), Some(Change::Follows(MemberId(1))));
    assert_eq!(at(&mut b, 40, &sign(1, 1, 7, Role::Active)), None);
    assert!(
        b.is_repeated(40, &sign(1, 0, 7, Role::Active)) && b.is_repeated(40, &sign(1, 1, 7, Role::Active))
    );
    assert!(
        !b.is_repeated(40, &sign(1, 2, 7, Role::Active)) && !b.is_repeated(40, &sign(3, 0, 7, Role::Active))
    );
    assert_eq!(at(&mut b, 80, &sign(1, 1, 7, Role::Active)), None, "a repeated sign extends nothing");
    let claimed = Change::Claimed(Claim::Silent(MemberId(1)));
    assert_eq!(look_until(&mut b, 500), Some((135, claimed)));
    assert_eq!(b.epoch(), 8);
    // The first one is back, and does not know it yet.
    assert_eq!(at(&mut b, 505, &sign(1, 2, 7, Role::Active)), None);
    assert_eq!(b.role(), Role::Active);
}

#[test]
fn longer_lease_decides_when_a_member_is_silent() {
    let mut b = member(2, 0);
    b.set_lease(0, MemberId(1), 900);
    assert_eq!(at(&mut b, 9, &sign(1, 0, 7, Role::Active)), Some(Change::Follows(MemberId(1))));
    assert_eq!(
        at(&mut b, 309, &sign(1, 1, 7, Role::Active)),
        None,
        "it sends a sign every third of its lease"
    );
    assert_eq!(b.others(1_200).count(), 1);
    let claimed = Change::Claimed(Claim::Silent(MemberId(1)));
    assert_eq!(look_until(&mut b, 1_300), Some((1_215, claimed)));
    // A shorter one does not.
    let mut a = member(1, 0);
    a.set_lease(0, MemberId(2), 900);
    a.set_lease(0, MemberId(2), 15);
    assert_eq!(a.lease_of(MemberId(2)), LEASE);
    a.set_lease(0, MemberId(2), i64::MAX);
    a.set_lease(LONGEST_LEASE, MemberId(2), i64::MAX);
    assert_eq!(a.lease_of(MemberId(2)), LONGEST_LEASE);
}

#[test]
fn member_with_one_sign_of_a_long_lease_is_soon_gone() {
    const SECOND: Nanos = 1_000_000_000;
    let mut a = member(1, 0);
    look_until(&mut a, 99);
    a.set_lease(100, MemberId(9), LONGEST_LEASE);
    assert_eq!(at(&mut a, 100, &sign(9, 1, 1, Role::Standby)), None);
    assert_eq!(a.others(100 + SECOND).count(), 1);
    assert_eq!(a.others(101 + SECOND).count(), 0);
    assert_eq!(a.hand_over(101 + SECOND, Some(MemberId(9)), 1), Err(Refusal::Unknown(MemberId(9))));
    // One that claims in an epoch is waited for no longer.
    let mut b = member(2, 0);
    b.set_lease(10, MemberId(9), LONGEST_LEASE);
    at(&mut b, 10, &sign(9, 1, 1, Role::Active));
    assert_eq!(b.next(10), 10 + SECOND);
}

#[test]
fn better_members_claim_first() {
    let (mut a, mut b) = (member(1, 0), member(2, 5));
    at(&mut a, 20, &Sign { prefer: 5, ..sign(2, 0, 0, Role::Starting) });
    at(&mut b, 20, &sign(1, 0, 0, Role::Starting));
    at(&mut a, 70, &Sign { prefer: 5, ..sign(2, 1, 0, Role::Starting) });
    at(&mut b, 70, &sign(1, 1, 0, Role::Starting));
    assert_eq!(look_until(&mut b, 99), Some((90, Change::Claimed(Claim::Vacant))));
    assert_eq!(look_until(&mut a, 110), None, "it waits for the better one");
    let of_b = Sign { prefer: 5, ..sign(2, 2, 1, Role::Active) };
    assert_eq!(at(&mut a, 112, &of_b), Some(Change::Follows(MemberId(2))));
}

#[test]
fn late_member_claims_behind_one_that_is_not() {
    // The late one is preferred, and has the smaller id.
    let (mut late, mut complete) = (member(1, 9), member(2, 0));
    late.set_late(true);
    let of_late = Sign { prefer: 9, is_late: true, ..sign(1, 0, 1, Role::Standby) };
    for (other, of_other) in [(&mut late, sign(2, 0, 1, Role::Standby)), (&mut complete, of_late)] {
        at(other, 10, &sign(3, 0, 1, Role::Active));
        at(other, 60, &Sign { number: 1, ..of_other });
    }
    let claimed = Change::Claimed(Claim::Silent(MemberId(3)));
    assert_eq!(look_until(&mut complete, 110), Some((108, claimed)), "no better one is there");
    assert_eq!(look_until(&mut late, 120), None, "it waits for the other one");
    let of_complete = sign(2, 2, 2, Role::Active);
    assert_eq!(at(&mut late, 121, &of_complete), Some(Change::Follows(MemberId(2))));
    // Alone, it claims, and among late ones the preference decides.
    let mut other = member(4, 0);
    other.set_late(true);
    at(&mut other, 10, &sign(3, 0, 1, Role::Active));
    at(&mut other, 60, &of_late);
    assert_eq!(look_until(&mut other, 120), None);
    assert_eq!(look_until(&mut other, 140).map(|(_, change)| change), Some(claimed));
}

#[test]
fn late_member_leaves_one_that_is_not_a_whole_lease() {
    // The active member is gone after 10: the turn of another one is at 100.
    let mut late = member(1, 9);
    late.set_late(true);
    at(&mut late, 10, &sign(3, 0, 1, Role::Active));
    for (number, now) in [(1, 60), (2, 90), (3, 130)] {
        at(&mut late, now, &sign(2, number, 1, Role::Standby));
    }
    assert_eq!(look_until(&mut late, 189), None, "the other one is delayed");
    let claimed = Change::Claimed(Claim::Silent(MemberId(3)));
    assert_eq!(look_until(&mut late, 200), Some((198, claimed)));
}

#[test]
fn late_member_does_not_displace_one_with_the_same_epoch() {
    let (mut late, mut complete) = (member(1, 9), member(2, 0));
    late.set_late(true);
    look_until(&mut late, 99);
    look_until(&mut complete, 99);
    let of_late = Sign { prefer: 9, is_late: true, ..sign(1, 0, 1, Role::Active) };
    assert_eq!(at(&mut complete, 100, &of_late), None);
    let fenced = Some(Change::Fenced(Fence::Superseded(MemberId(2), 1)));
    assert_eq!(at(&mut late, 100, &sign(2, 0, 1, Role::Active)), fenced);
    // A third one follows the same of both.
    let mut third = member(3, 0);
    at(&mut third, 10, &sign(2, 0, 1, Role::Active));
    assert_eq!(at(&mut third, 20, &of_late), None);
    assert_eq!(third.active(), Some(MemberId(2)));
}

#[test]
fn member_hands_over_to_a_late_one_only_by_name() {
    let mut a = member(1, 0);
    look_until(&mut a, 99);
    at(&mut a, 100, &Sign { prefer: 9, is_late: true, ..sign(2, 0, 1, Role::Standby) });
    assert_eq!(a.hand_over(101, None, 1), Err(Refusal::Late(MemberId(2))));
    assert_eq!((a.role(), a.best_standby(101, |_| true)), (Role::Active, None));
    at(&mut a, 101, &sign(3, 0, 1, Role::Standby));
    assert_eq!(a.best_standby(102, |_| true), Some(MemberId(3)));
    assert_eq!(a.hand_over(102, None, 1), Ok(MemberId(3)), "whatever the preferences are");
    let mut a = member(1, 0);
    look_until(&mut a, 99);
    at(&mut a, 100, &Sign { is_late: true, ..sign(2, 0, 1, Role::Standby) });
    assert_eq!(a.hand_over(101, Some(MemberId(2)), 1), Ok(MemberId(2)));
}

#[test]
fn one_of_two_active_members_stops() {
    let (mut a, mut b) = (member(1, 0), member(2, 0));
    look_until(&mut a, 99);
    look_until(&mut b, 99);
    assert_eq!(at(&mut a, 100, &sign(2, 0, 1, Role::Active)), None, "the smaller id stays");
    let fenced = Some(Change::Fenced(Fence::Superseded(MemberId(1), 1)));
    assert_eq!(at(&mut b, 100, &sign(1, 0, 1, Role::Active)), fenced);
    assert_eq!((b.role(), b.active()), (Role::Standby, Some(MemberId(1))));
    // A later epoch wins, whatever the ids.
    let fenced = Some(Change::Fenced(Fence::Superseded(MemberId(2), 2)));
    assert_eq!(at(&mut a, 101, &sign(2, 1, 2, Role::Active)), fenced);
}

#[test]
fn pause_of_an_active_member_fences_it() {
    let mut a = member(1, 0);
    look_until(&mut a, 99);
    let stopped = a.looked;
    assert_eq!(
        a.look(stopped + 1000),
        Some(Change::Fenced(Fence::StoodStill(1000))),
        "before any message of the other one"
    );
    assert!(a.until() < stopped);
    assert_eq!(a.receive(1100, &sign(2, 0, 2, Role::Active)), Some(Change::Follows(MemberId(2))));
}

#[test]
fn pause_of_a_standby_postpones_its_claim() {
    let mut b = member(2, 0);
    at(&mut b, 10, &sign(1, 0, 1, Role::Active));
    assert_eq!(b.look(2000), None, "signs of that time are still in the queue");
    assert_eq!(b.receive(2001, &sign(1, 1, 1, Role::Active)), None);
    assert_eq!(look_until(&mut b, 2080), None);
}

#[test]
fn lapse_of_a_standby_hides_no_pause() {
    let mut b = member(2, 0);
    at(&mut b, 10, &sign(1, 0, 1, Role::Active));
    assert_eq!(b.lapse(2000), None);
    assert_eq!(b.look(2000), None, "signs of that time are still in the queue");
}

#[test]
fn active_member_without_signs_stops() {
    let mut a = member(1, 0);
    look_until(&mut a, 99);
    let sent = a.looked;
    for now in (sent + 9..sent + 81).step_by(9) {
        assert_eq!(a.look(now), None);
    }
    assert_eq!(a.look(sent + 81), Some(Change::Fenced(Fence::Unsent)), "before others may claim");
}

#[test]
fn member_hands_over_to_a_standby() {
    let (mut a, mut b) = (member(1, 0), member(2, 0));
    look_until(&mut a, 99);
    assert_eq!(a.hand_over(100, None, 1), Err(Refusal::NoStandby));
    assert_eq!(b.hand_over(100, None, 0), Err(Refusal::NotActive));
    at(&mut b, 50, &sign(1, 0, 1, Role::Active));
    at(&mut a, 100, &sign(2, 0, 1, Role::Standby));
    assert_eq!(a.hand_over(101, Some(MemberId(3)), 1), Err(Refusal::Unknown(MemberId(3))));
    assert_eq!(a.hand_over(101, None, 1), Ok(MemberId(2)));
    assert_eq!(a.role(), Role::Standby);
    let over = Sign { successor: Some(MemberId(2)), position: Some(5), ..sign(1, 1, 1, Role::Standby) };
    assert_eq!(at(&mut b, 102, &over), Some(Change::Claimed(Claim::HandedOver(MemberId(1)))));
    assert_eq!((b.epoch(), b.position()), (2, Some(5)));
    assert_eq!(at(&mut b, 103, &over), None, "it comes twice");
    at(&mut b, 103, &sign(1, 2, 1, Role::Standby));
    assert_eq!(b.hand_over(104, None, 1), Err(Refusal::Outdated), "a second request for the same handover");
    assert_eq!(b.role(), Role::Active);
    assert_eq!(at(&mut a, 103, &sign(2, 1, 2, Role::Active)), Some(Change::Follows(MemberId(2))));
}

#[test]
fn handover_to_a_member_that_is_gone_is_taken_back() {
    let mut a = member(1, 0);
    look_until(&mut a, 99);
    at(&mut a, 100, &sign(2, 0, 1, Role::Standby));
    assert_eq!(a.hand_over(101, None, 1), Ok(MemberId(2)));
    let claimed = Change::Claimed(Claim::Untaken(MemberId(2)));
    assert_eq!(look_until(&mut a, 400).map(|(_, change)| change), Some(claimed));
}

#[test]
fn end_of_the_active_member_is_a_claim_at_once() {
    let mut b = member(2, 0);
    at(&mut b, 10, &sign(1, 0, 1, Role::Active));
    look_until(&mut b, 30);
    let end = Sign { ends: true, position: Some(8), ..sign(1, 1, 1, Role::Active) };
    assert_eq!(at(&mut b, 31, &end), Some(Change::Claimed(Claim::Ended(MemberId(1)))));
    assert_eq!(b.position(), Some(8));
}

#[test]
fn forged_number_silences_a_member_for_a_lease_only() {
    // Both send signs from time 0 on; a copy of the last one of the first has the largest number.
    let mut b = member(2, 0);
    let mut number = 0;
    for now in (10..1_000).step_by(30) {
        number += 1;
        at(&mut b, now, &sign(1, number, 1, Role::Active));
        assert!(b.is_repeated(now, &sign(1, u64::MAX, 1, Role::Active)), "it is not accepted meanwhile");
    }
    // The first one is cut off for a lease, and the copy arrives before its signs do again.
    assert_eq!(
        look_until(&mut b, 1_100).map(|(_, change)| change),
        Some(Change::Claimed(Claim::Silent(MemberId(1))))
    );
    assert_eq!(at(&mut b, 1_110, &sign(1, u64::MAX, 1, Role::Active)), None);
    let later = |number: u64| sign(1, number, 3, Role::Active);
    assert_eq!(at(&mut b, 1_140, &later(number + 1)), None);
    assert_eq!(b.role(), Role::Active);
    let fenced = Some(Change::Fenced(Fence::Superseded(MemberId(1), 3)));
    assert_eq!(at(&mut b, 1_201, &later(number + 2)), fenced, "the later epoch stays");
    assert!(b.is_repeated(2_000, &sign(1, u64::MAX, 3, Role::Active)), "the copy is no sign of life again");
    assert!(b.is_repeated(2_000, &later(number)), "nor is an old one");
}

#[test]
fn only_active_members_fence() {
    let mut a = member(1, 0);
    look_until(&mut a, 99);
    assert_eq!(at(&mut a, 100, &sign(2, 1, 7, Role::Standby)), None);
    assert_eq!(at(&mut a, 101, &sign(3, 1, 9, Role::Fenced)), None);
    assert_eq!((a.role(), a.epoch(), a.latest_epoch()), (Role::Active, 1, 9));
    let fenced = Some(Change::Fenced(Fence::Superseded(MemberId(2), 7)));
    assert_eq!(at(&mut a, 102, &sign(2, 2, 7, Role::Active)), fenced);
    // A claim is later than every epoch, and a standby follows an active member whatever others have received.
    look_until(&mut a, 300);
    assert_eq!((a.role(), a.epoch()), (Role::Active, 10));
    let mut b = member(4, 0);
    at(&mut b, 10, &sign(3, 1, 9, Role::Standby));
    assert_eq!(at(&mut b, 11, &sign(2, 1, 7, Role::Active)), Some(Change::Follows(MemberId(2))));
}

#[test]
fn sign_with_an_epoch_far_ahead_is_ignored() {
    let mut a = member(1, 0);
    look_until(&mut a, 99);
    for (number, epoch) in [(1, u64::MAX), (2, LARGEST_EPOCH + 1), (3, 2 + EPOCH_LEAP)] {
        for role in [Role::Standby, Role::Active] {
            let forged = sign(2, number, epoch, role);
            assert!(!a.is_plausible(&forged));
            assert_eq!(at(&mut a, 100, &forged), None);
        }
    }
    assert_eq!((a.role(), a.latest_epoch(), a.others(100).count()), (Role::Active, 1, 0));
    let far = sign(2, 4, 1 + EPOCH_LEAP, Role::Active);
    assert!(a.is_plausible(&far) && at(&mut a, 101, &far).is_some());
    // A member that has just begun knows no epoch.
    let mut b = member(2, 0);
    assert_eq!(at(&mut b, 10, &sign(1, 1, u64::MAX, Role::Active)), None);
    let largest = sign(1, 1, LARGEST_EPOCH, Role::Active);
    assert_eq!(at(&mut b, 11, &largest), Some(Change::Follows(MemberId(1))));
    look_until(&mut b, 200);
    assert_eq!((b.role(), b.epoch()), (Role::Active, LARGEST_EPOCH), "no later one exists");
}
