//! Gates in a group: a member follows the messages, and publishes while it is active.

use super::*;

#[test]
fn standby_follows_and_passes_on_one_lease_after_it_has_taken_over() {
    let mut robot = Robot::member(|_| ());
    robot.command(1, 3);
    robot.sign(2);
    robot.command(3, 12);
    robot.command(4, 4);
    assert!(robot.speeds().is_empty() && robot.states().is_empty());
    let figures = robot.figures();
    assert_eq!((figures.counts.withheld, figures.counts.skipped, figures.counts.switches), (3, 0, 2));
    assert!(figures.state == State::Open && !figures.is_open() && !figures.is_active);
    robot.take_over(5, 2);
    assert_eq!(robot.states(), ["open"]);
    assert!(robot.speeds().is_empty(), "nothing is passed on later");
    robot.command(5, 5);
    assert!(robot.speeds().is_empty(), "the member before may have passed it on");
    robot.command(7, 6);
    assert_eq!(robot.speeds(), [6]);
    let figures = robot.figures();
    assert_eq!((figures.counts.withheld, figures.counts.skipped, figures.counts.forwarded), (4, 3, 1));
    assert!(figures.is_open() && figures.counts.dropped == 0);
}

#[test]
fn closed_gate_that_is_taken_over_publishes_its_substitute_at_once() {
    let mut robot = Robot::member(|_| ());
    robot.command(1, 3);
    robot.command(2, 12);
    robot.take_over(3, 2);
    assert_eq!(robot.speeds(), [0]);
    let change = robot.gates.changes().next().unwrap().json();
    assert_eq!((&change["state"], &change["property"]), (&"closed".into(), &"slow".into()));
    assert_eq!(change["epoch"], 2);
    robot.command(3, 13);
    assert_eq!(robot.speeds(), [0], "substitutes wait for nothing");
    robot.command(4, 4);
    assert!(robot.speeds().is_empty() && robot.states() == ["open"]);
    robot.command(5, 14);
    assert!(robot.speeds() == [0] && robot.states() == ["closed"]);
    robot.command(6, 5);
    assert_eq!(robot.speeds(), [5]);
}

#[test]
fn refused_substitute_of_a_take_over_is_tried_again() {
    let mut robot = Robot::member(|_| ());
    robot.command(1, 3);
    robot.command(2, 12);
    *robot.published.refuses.lock().unwrap() = true;
    robot.take_over(3, 2);
    assert!(robot.figures().is_owing && robot.speeds().is_empty());
    *robot.published.refuses.lock().unwrap() = false;
    robot.gates.look(&robot.session);
    assert!(robot.speeds() == [0] && !robot.figures().is_owing);
}

#[test]
fn fenced_member_publishes_nothing() {
    let mut robot = Robot::member(|_| ());
    robot.take_over(0, 1);
    robot.extend(10);
    robot.command(9, 3);
    assert_eq!(robot.speeds(), [3]);
    robot.command(10, 4);
    let permit = Arc::clone(&robot.group.as_ref().unwrap().permit);
    assert!(robot.speeds().is_empty() && permit.take_lapsed() && !robot.figures().is_active);
    // A sign alone does not bring the permission back.
    robot.extend(1_000);
    robot.command(11, 5);
    robot.command(12, 12);
    robot.gates.look(&robot.session);
    assert!(robot.speeds().is_empty() && robot.states().is_empty() && !robot.figures().is_owing);
    assert_eq!(robot.figures().counts.withheld, 3);
    robot.take_over(13, 3);
    assert!(robot.speeds() == [0] && robot.states() == ["closed"]);
    assert_eq!(robot.figures().counts.skipped, 3, "no other member was active");
}

#[test]
fn member_that_stops_publishes_nothing_and_owes_nothing() {
    let mut robot = Robot::member(|_| ());
    robot.take_over(0, 1);
    robot.command(2, 3);
    *robot.published.refuses.lock().unwrap() = true;
    robot.command(3, 12);
    assert!(robot.figures().is_owing);
    *robot.published.refuses.lock().unwrap() = false;
    robot.gates.stop_publishing();
    robot.gates.look(&robot.session);
    robot.command(4, 4);
    assert!(robot.speeds() == [3] && !robot.figures().is_owing);
}

#[test]
fn message_of_an_earlier_turn_is_not_repeated() {
    let mut robot = Robot::member(|gate| gate.substitute = Substitute::Hold);
    robot.take_over(0, 1);
    robot.command(2, 3);
    robot.command(3, 12);
    assert_eq!(robot.speeds(), [3, 3]);
    robot.gates.stop_publishing();
    robot.command(4, 4);
    robot.take_over(5, 3);
    robot.command(6, 13);
    assert!(robot.speeds().is_empty());
    assert_eq!(robot.figures().counts.dropped, 1);
}

#[test]
fn gate_that_never_opened_publishes_its_substitute_at_a_later_take_over() {
    let cases: [(u64, &[i64], &[&str]); 2] = [(1, &[], &[]), (2, &[0], &["waiting"])];
    for (epoch, speeds, states) in cases {
        let mut robot = Robot::member(|gate| gate.unless = vec![0, 1]);
        robot.command(1, 3);
        robot.take_over(2, epoch);
        assert!(robot.speeds() == speeds && robot.states() == states, "epoch {epoch}");
        robot.command(4, 3);
        assert_eq!(robot.speeds(), [0], "it opens only once its properties hold");
    }
}

#[test]
fn end_of_a_member_publishes_its_substitute_only_without_a_successor() {
    for (standbys, speeds) in [(vec![], vec![0]), (vec![MemberId(2)], vec![])] {
        let mut robot = Robot::member(|gate| gate.ends_with_substitute = true);
        robot.take_over(0, 1);
        robot.group.as_ref().unwrap().handle.change(|state| state.standbys = standbys);
        robot.gates.end();
        assert_eq!(robot.speeds(), speeds);
    }
    let mut standby = Robot::member(|gate| gate.ends_with_substitute = true);
    standby.gates.end();
    assert!(standby.speeds().is_empty(), "another member is active");
}

#[test]
fn late_member_without_a_message_waits_for_one_lease_after_the_first() {
    for (is_late, speeds) in [(false, vec![3, 4]), (true, vec![4])] {
        let mut robot = Robot::member(|_| ());
        robot.extend(1_000);
        robot.group.as_ref().unwrap().handle.change(|state| state.is_late = is_late);
        robot.gates.take_over(1, false);
        robot.command(9, 3);
        robot.gates.note_first();
        robot.command(11, 4);
        assert_eq!(robot.speeds(), speeds);
    }
}

#[test]
fn gate_begins_again_with_the_state_of_another_member() {
    let mut robot = Robot::member(|gate| gate.return_after = 3_000_000_000);
    robot.command(1, 12);
    robot.command(2, 3);
    robot.command(5, 3);
    assert_eq!(robot.figures().state, State::Open);
    robot.set(6);
    robot.gates.join(&robot.session);
    robot.gates.look(&robot.session);
    let figures = robot.figures();
    assert_eq!((figures.state, figures.cause), (State::Waiting, None), "no violation is new");
    robot.command(8, 3);
    assert_eq!(robot.figures().state, State::Waiting, "that of the other member may have closed at 6");
    robot.command(9, 3);
    assert_eq!(robot.figures().state, State::Open);
    robot.take_over(10, 2);
    robot.command(13, 4);
    assert_eq!(robot.speeds(), [4]);
}
