mod grouped;

use std::sync::Mutex;
use std::time::Duration;

use rondel_net::adapter::PublishError;
use rondel_net::address::Address;
use rondel_runtime::{Input, ManualClock, Options, SessionPlan, Specification, Stamp, TimeSource};

use super::*;
use crate::live::standby::election::MemberId;
use crate::live::standby::state::{GroupHandle, GroupState};
use crate::sinks::withheld::Permit;

/// A publisher whose payloads a test reads, and which refuses them on request.
#[derive(Default)]
struct Published {
    payloads: Mutex<Vec<String>>,
    refuses: Mutex<bool>,
    is_alone: Mutex<bool>,
}

impl Publisher for Published {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        self.offer(payload, Duration::MAX)
    }

    fn offer(&self, payload: &[u8], _: Duration) -> Result<(), PublishError> {
        if *self.refuses.lock().unwrap() {
            return Err(PublishError::Slow);
        }
        self.payloads.lock().unwrap().push(String::from_utf8_lossy(payload).into_owned());
        Ok(())
    }

    fn is_matched(&self) -> bool {
        !*self.is_alone.lock().unwrap()
    }
}

/// A session with one gate for the messages of `command`, and what it has published.
struct Robot {
    session: Session,
    gates: Box<Gates>,
    clock: Arc<ManualClock>,
    published: Arc<Published>,
    group: Option<GateGroup>,
}

const SPEC: &str = "topic command { speed: float } topic scan { distance: float, id: int }
    property slow = command.speed < 10
    property far = scan.distance > 1
    property each_far for each id in scan.id = scan.distance > 1
    property safe = scan.distance > 5";
const COMMAND: TopicId = TopicId(0);
const SCAN: TopicId = TopicId(1);

impl Robot {
    fn with(settings: impl FnOnce(&mut GateSettings)) -> Robot {
        Robot::of(settings, None)
    }

    /// The same in a member of a group with a lease of two seconds, and the substitute 0.
    fn member(settings: impl FnOnce(&mut GateSettings)) -> Robot {
        let state = GroupState::new("g".to_owned(), MemberId(1), 0);
        let (permit, handle) = (Arc::new(Permit::simulated(0)), GroupHandle::new(state));
        let replaced = |gate: &mut GateSettings| {
            gate.unless = vec![0];
            gate.substitute = message(r#"{"speed":0}"#);
            settings(gate);
        };
        Robot::of(replaced, Some(GateGroup { permit, lease: 2_000_000_000, handle }))
    }

    fn of(settings: impl FnOnce(&mut GateSettings), group: Option<GateGroup>) -> Robot {
        let spec = rondel_spec::parse(SPEC).spec.unwrap();
        let clock = Arc::new(ManualClock::default());
        let injected = Arc::clone(&clock) as Arc<dyn Clock>;
        let options = Options {
            inputs: vec![Input { time: TimeSource::Arrival, ..Input::default() }; 2],
            clock: Arc::clone(&injected),
            ..Options::default()
        };
        let plan = SessionPlan::of(Specification::new(spec.clone()).unwrap(), options);
        let mut session = plan.start().unwrap();
        let mut gate = GateSettings {
            topic: COMMAND,
            to: Address::parse("zenoh:cmd").unwrap(),
            schema: None,
            unless: vec![0, 1],
            blind: WhenBlind::Closed,
            substitute: Substitute::Drop,
            return_after: 0,
            return_when: None,
            ends_with_substitute: false,
        };
        settings(&mut gate);
        let published = Arc::new(Published::default());
        let publishers = vec![Arc::clone(&published) as Arc<dyn Publisher>];
        let networks = NetworkSettings::default();
        let gates =
            Gates::with(&[gate], &spec, &networks, publishers, &mut session, &injected, group.clone());
        Robot { session, gates: gates.unwrap(), clock, published, group }
    }

    /// Sets the time in seconds.
    fn set(&self, seconds: i64) -> Timestamp {
        let at = Timestamp::from_nanos(seconds * 1_000_000_000);
        self.clock.set(at);
        if let Some(group) = &self.group {
            group.permit.set_now(at.as_nanos());
        }
        at
    }

    /// Permits the member to publish until a time in seconds.
    fn extend(&self, seconds: i64) {
        self.group.as_ref().unwrap().permit.extend(seconds * 1_000_000_000);
    }

    /// Receives a sign of the active member at a time in seconds.
    fn sign(&self, seconds: i64) {
        self.set(seconds);
        self.group.as_ref().unwrap().permit.set_published(None);
    }

    /// Lets the member take over at a time in seconds.
    fn take_over(&mut self, seconds: i64, epoch: u64) {
        self.set(seconds);
        self.extend(1_000);
        self.gates.take_over(epoch, true);
    }

    /// Receives a message at a time in seconds, as the pipeline does.
    fn receive(&mut self, topic: TopicId, seconds: i64, payload: &str) {
        let at = self.set(seconds);
        let before = self.session.events();
        let stamp = Stamp { arrival: Some(at), ..Stamp::default() };
        let _ = self.session.push(topic, stamp, payload.as_bytes());
        if self.gates.reads(topic) {
            self.session.flush();
            let is_evaluated = self.session.events() > before;
            self.gates.message(topic, payload.as_bytes(), is_evaluated, &self.session);
        } else {
            self.session.flush();
            self.gates.look(&self.session);
        }
    }

    fn command(&mut self, seconds: i64, speed: i64) {
        self.receive(COMMAND, seconds, &format!("{{\"speed\":{speed}}}"));
    }

    fn scan(&mut self, seconds: i64, distance: i64) {
        self.receive(SCAN, seconds, &scan(distance));
    }

    /// The speeds published since the last call.
    fn speeds(&self) -> Vec<i64> {
        let all = std::mem::take(&mut *self.published.payloads.lock().unwrap());
        let speed = |text: &String| {
            let message: serde_json::Value = serde_json::from_str(text).unwrap();
            message["speed"].as_i64().unwrap()
        };
        all.iter().map(speed).collect()
    }

    fn states(&mut self) -> Vec<String> {
        self.gates.changes().map(|change| change.json()["state"].as_str().unwrap().to_owned()).collect()
    }

    fn figures(&self) -> GateFigures {
        self.gates.figures().remove(0)
    }
}

/// A message of the object at this distance.
fn scan(distance: i64) -> String {
    format!("{{\"distance\":{distance},\"id\":{distance}}}")
}

/// A substitute with this text.
fn message(text: &str) -> Substitute {
    Substitute::Message(crate::deployment::Message::of(text.as_bytes().to_vec()))
}

#[test]
fn violating_message_is_not_passed_on() {
    let mut robot = Robot::with(|gate| gate.unless = vec![0]);
    robot.command(1, 3);
    robot.command(2, 12);
    robot.command(3, 4);
    assert_eq!(robot.speeds(), [3, 4]);
    assert_eq!(robot.states(), ["closed", "open"]);
    let figures = robot.figures();
    assert_eq!((figures.counts.forwarded, figures.counts.dropped, figures.counts.switches), (2, 1, 2));
    assert!(figures.is_open() && figures.cause.is_none());
}

#[test]
fn substitute_is_published_at_the_switch_and_for_each_message() {
    let mut robot = Robot::with(|gate| {
        gate.substitute = message(r#"{"speed":0}"#);
        gate.return_after = 2_000_000_000;
        gate.ends_with_substitute = true;
    });
    robot.scan(0, 9);
    robot.command(1, 3);
    assert_eq!(robot.speeds(), [0], "a run begins with a closed gate");
    robot.command(2, 4);
    assert!(robot.speeds() == [0] && robot.states().is_empty());
    robot.command(3, 5);
    assert_eq!(robot.speeds(), [5]);
    robot.scan(4, 0);
    assert_eq!(robot.speeds(), [0], "before any further command");
    robot.command(5, 6);
    robot.scan(6, 0);
    robot.scan(7, 9);
    robot.command(8, 7);
    assert_eq!(robot.speeds(), [0, 0]);
    robot.command(9, 12);
    assert_eq!(robot.speeds(), [0], "it closes the other property");
    robot.command(10, 8);
    robot.command(12, 9);
    assert_eq!(robot.speeds(), [0, 9]);
    assert_eq!(robot.states(), ["closed", "open"]);
    robot.gates.end();
    robot.command(13, 1);
    assert_eq!(robot.speeds(), [0], "at the end, and nothing afterwards");
}

#[test]
fn last_message_is_repeated() {
    let mut robot = Robot::with(|gate| (gate.substitute, gate.unless) = (Substitute::Hold, vec![0]));
    robot.command(0, 12);
    assert!(robot.speeds().is_empty(), "there is no last one");
    robot.command(1, 3);
    robot.command(2, 12);
    robot.command(3, 13);
    assert_eq!(robot.speeds(), [3, 3, 3]);
    let counts = robot.figures().counts;
    assert_eq!((counts.forwarded, counts.substituted, counts.dropped), (1, 2, 1));
}

#[test]
fn inconclusive_property_closes_unless_the_gate_is_to_fail_open() {
    for (blind, expected) in [(WhenBlind::Closed, vec![4]), (WhenBlind::Open, vec![3, 4])] {
        let mut robot = Robot::with(|gate| gate.blind = blind);
        robot.command(1, 3);
        robot.scan(2, 9);
        robot.command(3, 4);
        assert_eq!(robot.speeds(), expected, "{blind:?}");
        robot.receive(COMMAND, 4, "no JSON");
        let unread = robot.figures().counts;
        let is_passed = robot.published.payloads.lock().unwrap().pop().is_some();
        assert_eq!(is_passed, blind == WhenBlind::Open, "an unread message");
        assert!(unread.unread + unread.dropped > 0 || is_passed);
    }
}

#[test]
fn gate_that_never_opened_reports_why() {
    let mut robot = Robot::with(|_| ());
    for seconds in [0, 9, 10, 11] {
        robot.command(seconds, 1);
    }
    let changes: Vec<_> = robot.gates.changes().map(|change| change.json()).collect();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!((&changes[0]["state"], &changes[0]["property"]), (&"waiting".into(), &"far".into()));
    assert_eq!(robot.figures().counts.switches, 0);
}

#[test]
fn any_violated_instance_closes() {
    let mut robot = Robot::with(|gate| gate.unless = vec![2]);
    robot.command(0, 1);
    assert_eq!(robot.speeds(), [1], "no instance is violated");
    robot.scan(1, 0);
    robot.scan(2, 9);
    robot.command(3, 2);
    assert!(robot.speeds().is_empty() && robot.figures().cause.unwrap().0 == "each_far");
}

#[test]
fn gate_waits_for_a_safe_set() {
    let mut robot = Robot::with(|gate| gate.return_when = Some(3));
    for (seconds, distance, speeds) in
        [(0, 9, vec![0]), (1, 3, vec![1]), (2, 0, vec![]), (3, 3, vec![]), (4, 9, vec![4])]
    {
        robot.scan(seconds, distance);
        robot.command(seconds, seconds);
        assert_eq!(robot.speeds(), speeds, "{seconds}");
    }
}

#[test]
fn violation_between_messages_that_are_evaluated_together_closes() {
    let mut robot = Robot::with(|gate| gate.return_after = 5_000_000_000);
    robot.scan(0, 9);
    robot.command(0, 1);
    robot.command(5, 1);
    robot.speeds();
    let mut push = |seconds: i64, distance: i64| {
        let at = Timestamp::from_nanos(seconds * 1_000_000_000);
        let stamp = Stamp { arrival: Some(at), ..Stamp::default() };
        robot.session.push(SCAN, stamp, scan(distance).as_bytes()).unwrap();
    };
    push(6, 0);
    push(6, 9);
    robot.session.flush();
    robot.gates.look(&robot.session);
    assert_eq!(robot.states(), ["closed"]);
    robot.command(7, 1);
    assert!(robot.speeds().is_empty());
}

#[test]
fn refused_substitute_is_tried_again_until_it_is_accepted_or_the_gate_opens() {
    let mut robot = Robot::with(|gate| gate.substitute = message(r#"{"speed":0}"#));
    let refuse = |robot: &Robot, refuses: bool| *robot.published.refuses.lock().unwrap() = refuses;
    robot.scan(0, 9);
    robot.command(1, 3);
    assert_eq!(robot.speeds(), [3]);
    refuse(&robot, true);
    robot.scan(2, 0);
    let closed = robot.gates.changes().next().unwrap().text(&mut |_| String::new());
    assert!(
        closed.contains("the substitute could not be published yet: a consumer does not accept"),
        "{closed}"
    );
    robot.gates.look(&robot.session);
    assert!(robot.speeds().is_empty() && robot.figures().is_owing);
    assert!(
        robot.figures().sentence(&mut |_| String::new()).contains("no substitute has reached a consumer")
    );
    refuse(&robot, false);
    // Time alone: no message follows.
    robot.gates.look(&robot.session);
    robot.gates.look(&robot.session);
    assert_eq!(robot.speeds(), [0]);
    let Counts { substituted, late, unpublished, .. } = robot.figures().counts;
    assert_eq!((substituted, late, unpublished, robot.figures().is_owing), (1, 1, 1, false));
    robot.scan(3, 9);
    robot.command(4, 4);
    assert_eq!(robot.speeds(), [4]);
    refuse(&robot, true);
    robot.scan(5, 0);
    robot.scan(6, 9);
    refuse(&robot, false);
    robot.command(7, 5);
    robot.gates.look(&robot.session);
    assert_eq!(robot.speeds(), [5], "it is open again, and owes nothing");
    assert!(!robot.figures().is_owing);
    robot.scan(8, 0);
    let texts: Vec<String> =
        robot.gates.changes().map(|change| change.text(&mut |_| String::new())).collect();
    assert!(texts.last().unwrap().ends_with("; the substitute is published instead"), "{texts:?}");
}

#[test]
fn substitute_without_a_subscriber_is_published_again_once_there_is_one() {
    let mut robot = Robot::with(|gate| gate.substitute = message(r#"{"speed":0}"#));
    robot.scan(0, 9);
    robot.command(1, 3);
    *robot.published.is_alone.lock().unwrap() = true;
    robot.scan(2, 0);
    robot.gates.look(&robot.session);
    assert_eq!(robot.speeds(), [3, 0]);
    *robot.published.is_alone.lock().unwrap() = false;
    robot.gates.look(&robot.session);
    robot.gates.look(&robot.session);
    assert_eq!(robot.speeds(), [0]);
    let figures = robot.figures();
    assert_eq!((figures.counts.substituted, figures.counts.late, figures.is_owing), (2, 1, false));
}

#[test]
fn refused_messages_are_counted_and_do_not_close() {
    let mut robot = Robot::with(|gate| gate.unless = vec![0]);
    *robot.published.refuses.lock().unwrap() = true;
    robot.command(0, 1);
    robot.command(1, 2);
    *robot.published.refuses.lock().unwrap() = false;
    robot.command(2, 3);
    let figures = robot.figures();
    assert_eq!((figures.counts.unpublished, figures.counts.forwarded), (2, 1));
    assert!(!figures.is_complete() && robot.speeds() == [3]);
}
