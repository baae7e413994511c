use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use rondel_event::{Path, Timestamp, TopicId};
use rondel_net::adapter::{PublishError, Publisher};
use rondel_net::calling::{CallError, ServiceClient};
use rondel_net::ros2::{ServiceType, TopicName};
use rondel_runtime::{
    Emit, Input, ManualClock, Options, Session, SessionPlan, Specification, Stamp, TimeSource,
};
use serde_json::{Value, json};

use super::*;

const SPECIFICATION: &str = "topic scan { t: float, robot: string, distance: float }\n\
                             @severity(critical) property gap for each robot in scan.robot = scan.distance > 1.0\n\
                             property far = scan.distance < 100.0\n";
const LONG: Duration = Duration::from_secs(60);

/// A session whose verdicts cause actions.
struct Run {
    session: Session,
    feed: ActionFeed,
    actions: Actions,
    clock: Arc<ManualClock>,
}

impl Run {
    fn start(settings: &[ActionSettings], targets: Vec<Target>) -> Run {
        Run::of(SPECIFICATION, settings, targets)
    }

    fn of(specification: &str, settings: &[ActionSettings], targets: Vec<Target>) -> Run {
        let spec = rondel_spec::parse(specification).spec.unwrap();
        let input = Input { time: TimeSource::Field(Path::keys(["t"])), ..Input::default() };
        let options = Options { explain: true, inputs: vec![input], ..Options::default() };
        let plan = SessionPlan::of(Specification::new(spec).unwrap(), options);
        let clock = Arc::new(ManualClock::default());
        let start = Start {
            silenced: Default::default(),
            settings,
            targets,
            properties: plan.properties(),
            emit: Emit::Change,
            clock: Arc::clone(&clock) as Arc<dyn rondel_runtime::Clock>,
            audit: None,
            programs: PROGRAMS,
        };
        let (actions, feed) = Actions::start(start).unwrap();
        Run { session: plan.start().unwrap(), feed, actions, clock }
    }

    fn scan(&mut self, time: usize, robot: &str, distance: f64) {
        let message = json!({"t": time, "robot": robot, "distance": distance}).to_string();
        self.session.push(TopicId(0), Stamp::default(), message.as_bytes()).unwrap();
        self.session.flush();
        self.session.reports().for_each(|report| self.feed.verdict(&report));
        self.session.unmuted().for_each(|report| self.feed.verdict(&report));
    }

    /// Ends the actions, and returns the account of the first one.
    fn end(self) -> Value {
        drop(self.feed);
        self.actions.end(LONG).json()[0].clone()
    }
}

/// A publisher whose payloads a test reads; it waits for the test if there is a gate.
struct Published {
    payloads: mpsc::Sender<Vec<u8>>,
    gate: Option<Mutex<mpsc::Receiver<()>>>,
}

impl Publisher for Published {
    fn publish(&self, payload: &[u8]) -> Result<(), PublishError> {
        self.payloads.send(payload.to_vec()).map_err(|_| PublishError::Closed)?;
        if let Some(gate) = &self.gate {
            // Open once the test has dropped its end.
            _ = gate.lock().unwrap().recv();
        }
        Ok(())
    }
}

fn publisher(gate: Option<mpsc::Receiver<()>>) -> (Target, mpsc::Receiver<Vec<u8>>) {
    let (payloads, published) = mpsc::channel();
    let publisher = Published { payloads, gate: gate.map(Mutex::new) };
    (Target::Publisher(Arc::new(publisher)), published)
}

fn text(text: &str) -> Template {
    Template::Text(TextTemplate::parse(text).unwrap())
}

fn settings(act: Act, limit: Limit) -> ActionSettings {
    ActionSettings { on: On::Violated, properties: vec![true, false], act, limit, explains: true }
}

fn publish(form: Form, message: Template) -> Act {
    let to = Address::parse_sink("zenoh:alarm").unwrap();
    Act::Publish(Box::new(PublishAct { to, form, message }))
}

fn counts(done: u64, failed: u64, limited: u64, dropped: u64) -> Value {
    json!({
        "action": "publish zenoh:alarm", "caused": done + failed + limited + dropped, "done": done, "failed": failed,
        "limited": limited, "dropped": dropped, "pending": 0,
    })
}

#[test]
fn message_has_the_values_of_the_violation() {
    let members = [
        ("stop", Template::Fixed(json!(true))),
        ("robot", text("{robot}")),
        ("reason", text("{property} ({severity}) at {time}")),
        ("value", text("{scan.distance}")),
        ("id", text("{id}")),
    ];
    let message = Template::Mapping(members.map(|(name, value)| (name.to_owned(), value)).into());
    let (target, published) = publisher(None);
    let mut run = Run::start(&[settings(publish(Form::Json, message), Limit::default())], vec![target]);
    // Only changes to violated, and only of the selected property.
    for (time, robot, distance) in
        [(1, "a", 5.0), (2, "a", 0.5), (3, "a", 0.4), (4, "a", 2.0), (5, "b", 0.25), (6, "b", 1000.0)]
    {
        run.scan(time, robot, distance);
    }
    assert_eq!(run.end(), counts(2, 0, 0, 0));
    let messages: Vec<Value> =
        published.iter().map(|payload| serde_json::from_slice(&payload).unwrap()).collect();
    let expected = |robot: &str, time: u32, value: f64| {
        let reason = format!("gap (critical) at 1970-01-01T00:00:0{time}Z");
        json!({"stop": true, "robot": robot, "reason": reason, "value": value, "id": null})
    };
    assert_eq!(messages, [expected("a", 2, 0.5), expected("b", 5, 0.25)]);
}

#[test]
fn parameter_hides_the_fact_of_its_name() {
    let specification = "topic scan { t: float, robot: string, distance: float }\n\
        property gap for each id in scan.robot = scan.distance > 1.0\n";
    let (target, published) = publisher(None);
    let act = publish(Form::Plain, text("{id} {verdict}"));
    let all = ActionSettings { properties: vec![true], ..settings(act, Limit::default()) };
    let mut run = Run::of(specification, &[all], vec![target]);
    run.scan(1, "a", 0.5);
    assert_eq!(run.end(), counts(1, 0, 0, 0));
    assert_eq!(published.iter().collect::<Vec<_>>(), [b"a violated".to_vec()]);
}

#[test]
fn violation_that_is_inconclusive_meanwhile_acts_once() {
    let (target, published) = publisher(None);
    let act = publish(Form::Plain, text("{robot} {time}"));
    let mut run = Run::start(&[settings(act, Limit::default())], vec![target]);
    run.scan(1, "a", 0.5);
    // A message that cannot be decoded is refused, and nothing is known until the next one.
    _ = run.session.push(TopicId(0), Stamp::default(), b"{");
    run.scan(2, "a", 0.5);
    run.scan(3, "a", 5.0);
    run.scan(4, "a", 0.5);
    assert_eq!(run.end(), counts(2, 0, 0, 0));
    let messages: Vec<String> = published.iter().map(|payload| String::from_utf8(payload).unwrap()).collect();
    assert_eq!(messages, ["a 1970-01-01T00:00:01Z", "a 1970-01-01T00:00:04Z"]);
}

#[test]
fn muted_violation_acts_when_its_cause_has_ended() {
    let specification = "topic scan { t: float, robot: string, distance: float }\n\
        @because_of(touches) property gap for each robot in scan.robot = scan.distance > 1.0\n\
        property touches = scan.distance > 0.1\n";
    let (target, published) = publisher(None);
    let act = publish(Form::Plain, text("{robot} {scan.distance}"));
    let mut run = Run::of(specification, &[settings(act, Limit::default())], vec![target]);
    run.scan(1, "a", 0.05);
    // Its end is that of another one's cause, too.
    run.scan(2, "b", 0.06);
    run.scan(3, "b", 5.0);
    run.scan(4, "c", 0.5);
    assert_eq!(run.end(), counts(2, 0, 0, 0));
    let messages: Vec<Vec<u8>> = published.iter().collect();
    assert_eq!(messages, [b"a 0.05".to_vec(), b"c 0.5".to_vec()]);
}

#[test]
fn message_in_cdr_that_does_not_fit_fails() {
    let library = rondel_decode::schema::Library::ros().unwrap();
    let schema = library.schema("std_msgs/msg/Float64").unwrap();
    let message = Template::Mapping(vec![("data".to_owned(), text("{robot}"))]);
    let (target, published) = publisher(None);
    let act = publish(Form::Cdr(schema.clone()), message);
    let mut run = Run::start(&[settings(act, Limit::default())], vec![target]);
    run.scan(1, "a", 0.5);
    assert_eq!((run.end(), published.iter().count()), (counts(0, 1, 0, 0), 0));

    let message = Template::Mapping(vec![("data".to_owned(), text("{scan.distance}"))]);
    let (target, published) = publisher(None);
    let act = publish(Form::Cdr(schema), message);
    let mut run = Run::start(&[settings(act, Limit::default())], vec![target]);
    run.scan(1, "a", 0.5);
    assert_eq!(run.end(), counts(1, 0, 0, 0));
    let expected = [&[0, 1, 0, 0][..], &0.5f64.to_le_bytes()].concat();
    assert_eq!(published.iter().collect::<Vec<_>>(), [expected]);
}

#[test]
fn limits_hold_for_a_thousand_violations_at_once() {
    let (target, published) = publisher(None);
    let limit = Limit { per_minute: Some(60), total: Some(70) };
    let mut run = Run::start(&[settings(publish(Form::Plain, text("{robot}")), limit)], vec![target]);
    for number in 0..1000 {
        run.scan(number, &number.to_string(), 0.0);
    }
    run.clock.set(Timestamp::from_nanos(3_600_000_000_000));
    for number in 1000..1100 {
        run.scan(number, &number.to_string(), 0.0);
    }
    assert_eq!(run.end(), counts(70, 0, 1030, 0));
    let robots: Vec<String> = published.iter().map(|payload| String::from_utf8(payload).unwrap()).collect();
    assert!((0..60).chain(1000..1010).map(|number| number.to_string()).eq(robots));
}

#[test]
fn figures_of_equal_actions_are_sums() {
    let (targets, published): (Vec<_>, Vec<_>) = (0..3).map(|_| publisher(None)).unzip();
    let limits = [Some(1), Some(2), None].map(|total| Limit { total, ..Limit::default() });
    let mut all = limits.map(|limit| settings(publish(Form::Plain, text("{robot}")), limit));
    let Act::Publish(last) = &mut all[2].act else { panic!() };
    last.to = Address::parse_sink("zenoh:other").unwrap();
    let mut run = Run::start(&all, targets);
    for number in 0..5 {
        run.scan(number, &number.to_string(), 0.0);
    }
    let handle = run.actions.handle();
    run.end();
    let results =
        |done: u64, limited: u64| [("done", done), ("failed", 0), ("limited", limited), ("dropped", 0)];
    let figures = |name: &str, results| ActionFigures { name: name.to_owned(), results, pending: 0 };
    let expected =
        [figures("publish zenoh:alarm", results(3, 7)), figures("publish zenoh:other", results(5, 0))];
    assert_eq!(handle.figures(), expected);
    assert_eq!(published.iter().map(|payloads| payloads.try_iter().count()).sum::<usize>(), 8);
}

#[test]
fn full_queue_drops_and_counts() {
    let (open, gate) = mpsc::channel();
    let (target, published) = publisher(Some(gate));
    let act = publish(Form::Plain, text("{robot}"));
    let mut run = Run::start(&[settings(act, Limit::default())], vec![target]);
    run.scan(0, "first", 0.0);
    // Until then it may wait itself.
    published.recv_timeout(LONG).unwrap();
    for number in 1..=queue::WAITING + 76 {
        run.scan(number, &number.to_string(), 0.0);
    }
    let notice = run.feed.look(Timestamp::from_nanos(1), false).unwrap();
    assert_eq!(notice.text(&mut |_| String::new()), "not done: 76 actions dropped, as too many waited");
    assert!(run.feed.look(Timestamp::from_nanos(2), true).is_none());
    run.scan(2000, "one more", 0.0);
    // Not within ten seconds, except at the end.
    assert!(run.feed.look(Timestamp::from_nanos(3), false).is_none());
    let notice = run.feed.look(Timestamp::from_nanos(4), true).unwrap();
    assert_eq!(notice.text(&mut |_| String::new()), "not done: 1 action dropped, as too many waited");
    drop(open);
    assert_eq!(run.end(), counts(1 + queue::WAITING as u64, 0, 0, 77));
}

#[test]
fn closed_network_fails() {
    let (target, published) = publisher(None);
    drop(published);
    let act = publish(Form::Plain, text("{robot}"));
    let mut run = Run::start(&[settings(act, Limit::default())], vec![target]);
    run.scan(0, "a", 0.0);
    assert_eq!(run.end(), counts(0, 1, 0, 0));
}

/// A server that answers by the request.
struct Server;

impl ServiceClient for Server {
    fn call(&self, request: &[u8], _limit: Duration) -> Result<Vec<u8>, CallError> {
        match request.last() {
            Some(1) => Ok(vec![0, 1, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, b'o', b'k', 0]),
            Some(0) => Ok(vec![0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]),
            _ => Err(CallError::NoServer),
        }
    }
}

#[test]
fn calls_count_the_answer_of_the_server() {
    for (data, done) in [(json!(true), 1), (json!(false), 0), (json!("yes"), 0)] {
        let service = Service { name: TopicName::parse("/stop").unwrap(), of: ServiceType::SetBool };
        let to = Address::parse("ros2:/stop").unwrap();
        let data = Some(Template::Fixed(data));
        let act = Act::Call(Box::new(CallAct { to, service, data, timeout: LONG }));
        let mut run = Run::start(&[settings(act, Limit::default())], vec![Target::Service(Box::new(Server))]);
        run.scan(0, "a", 0.0);
        let counts = run.end();
        assert_eq!(counts["action"], "call ros2:/stop");
        assert_eq!((&counts["done"], &counts["failed"]), (&json!(done), &json!(1 - done)), "{counts}");
    }
}

#[test]
fn programs_get_arguments_and_variables_without_a_shell() {
    let folder = std::env::temp_dir().join(format!("rondel-actions-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("out");
    let script = format!("echo \"$1 $RONDEL_PROPERTY $RONDEL_PARAMETER_ROBOT\" > {}", file.display());
    let arguments = ["-c", script.as_str(), "sh", "{robot} {property}"];
    let arguments = arguments.map(|argument| TextTemplate::parse(argument).unwrap()).into();
    let act = Act::Run(RunAct { program: "sh".to_owned(), arguments, timeout: LONG });
    let mut run = Run::start(&[settings(act, Limit::default())], vec![Target::Program]);
    run.scan(0, "$(id); a", 0.0);
    let counts = run.end();
    let written = std::fs::read_to_string(&file);
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(counts["done"], 1, "{counts}");
    assert_eq!(written.unwrap(), "$(id); a gap gap $(id); a\n");
}

#[test]
fn programs_that_last_are_ended_with_the_run() {
    let arguments = vec![TextTemplate::parse("600").unwrap()];
    let act = Act::Run(RunAct { program: "sleep".to_owned(), arguments, timeout: LONG });
    let mut run = Run::start(&[settings(act, Limit::default())], vec![Target::Program]);
    for number in 0..10 {
        run.scan(number, &number.to_string(), 0.0);
    }
    drop(run.feed);
    let counts = run.actions.end(Duration::from_secs(2)).json()[0].clone();
    // Those that were running failed, and the others never began.
    assert_eq!((&counts["caused"], &counts["done"], &counts["pending"]), (&json!(10), &json!(0), &json!(0)));
    assert_eq!(
        (&counts["failed"], &counts["dropped"]),
        (&json!(PROGRAMS), &json!(10 - PROGRAMS)),
        "{counts}"
    );
}
