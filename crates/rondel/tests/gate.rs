//! Gates on loopback: commands pass byte for byte until one violates a property, over every network.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rondel_decode::schema::{Library, Schema};
use rondel_event::TopicId;
use rondel_net::adapter::{Publisher, Sample, Subscription};
use rondel_net::address::Address;
use rondel_net::networks::{Mqtt, NetworkSettings, Networks};
use rondel_net::ros2::{self, MessageType, Middleware, TypeHash};
use rondel_net::{dds, mqtt, zenoh};
use rondel_testkit::{Broker, LIMIT, Process};
use serde_json::Value;
use support::network::{dds_domain, free_endpoint};
use support::{Folder, start_rondel};

/// Both the text of commands in JSON and the type `Twist` have these fields.
const SPECIFICATION: &str = "topic command\nproperty slow = command.linear.x < 10\n";

const TWIST: &str = "geometry_msgs/msg/Twist";

/// Interval of repeating the first message until the participants have found each other.
const AGAIN: Duration = Duration::from_millis(50);

/// A network on which a monitor and a client meet.
struct Network {
    /// The section of the deployment.
    section: String,
    settings: NetworkSettings,
    from: &'static str,
    to: &'static str,
    /// The type of the messages; without it they are JSON.
    schema: Option<Schema>,
    /// The broker, which lives as long.
    _broker: Option<Broker>,
}

impl Network {
    fn zenoh() -> Network {
        let endpoint = free_endpoint();
        let connect = vec![endpoint.clone()];
        let zenoh = zenoh::Settings { mode: Some(zenoh::Mode::Client), connect, ..Default::default() };
        Network {
            section: format!("zenoh: {{ mode: router, listen: \"{endpoint}\" }}\n"),
            settings: NetworkSettings { zenoh: Some(zenoh), ..Default::default() },
            from: "zenoh:cmd/raw",
            to: "zenoh:cmd/out",
            schema: None,
            _broker: None,
        }
    }

    fn mqtt(test: &str) -> Option<Network> {
        let broker = Broker::start(test)?;
        let settings = mqtt::Settings {
            broker: format!("127.0.0.1:{}", broker.port).parse().unwrap(),
            ..Default::default()
        };
        Some(Network {
            section: format!("mqtt: {{ broker: \"127.0.0.1:{}\" }}\n", broker.port),
            settings: NetworkSettings {
                mqtt: Some(Mqtt { settings, ..Mqtt::default() }),
                ..Default::default()
            },
            from: "mqtt:cmd/raw",
            to: "mqtt:cmd/out",
            schema: None,
            _broker: Some(broker),
        })
    }

    fn dds() -> Network {
        let domain = dds_domain();
        Network {
            section: format!("dds: {{ domain: {domain}, interface: lo }}\n"),
            settings: NetworkSettings { dds: Some(on_loopback(&domain)), ..Default::default() },
            from: "dds:cmd_raw",
            to: "dds:cmd_out",
            schema: None,
            _broker: None,
        }
    }

    /// ROS 2 with messages in their type.
    fn ros2(middleware: Middleware) -> Network {
        let schema = Library::ros().and_then(|library| library.schema(TWIST)).unwrap();
        let (from, to) = ("ros2:/cmd_vel_raw", "ros2:/cmd_vel");
        let (section, mut settings) = match middleware {
            Middleware::Zenoh => {
                let of = Network::zenoh();
                (format!("ros2: {{ middleware: zenoh, domain: 3 }}\n{}", of.section), of.settings)
            }
            Middleware::Dds => {
                let of = Network::dds();
                let domain = of.settings.dds.as_ref().unwrap().domain;
                (format!("ros2: {{ middleware: dds, domain: {domain} }}\n{}", of.section), of.settings)
            }
        };
        let domain = settings.dds.as_ref().map_or(3, |dds| dds.domain);
        settings.ros2 = Some(ros2::Settings::new(middleware, domain));
        Network { section, settings, from, to, schema: Some(schema), _broker: None }
    }

    /// An address with the type of the messages.
    fn address(&self, text: &str) -> Address {
        let address = Address::parse(text).unwrap();
        let (Some(schema), Address::Ros2(topic, encoding)) = (&self.schema, &address) else { return address };
        let hash = TypeHash::parse(&schema.rihs01().unwrap()).unwrap();
        let typed = (**topic).clone().typed(MessageType::parse(TWIST).unwrap(), Some(hash));
        let mut address = Address::Ros2(Box::new(typed), *encoding);
        address.join_ros2(self.settings.ros2.as_ref().unwrap().as_ref().unwrap());
        address
    }

    /// A command with this speed.
    fn command(&self, speed: f64) -> Vec<u8> {
        match self.schema {
            // The first of six numbers.
            Some(_) => [&[0, 1, 0, 0][..], &speed.to_le_bytes(), &[0; 40]].concat(),
            // The blanks show that it is passed on as it is.
            None => format!("{{ \"linear\" : {{\"x\": {speed:?}}} }}").into_bytes(),
        }
    }
}

fn on_loopback(domain: &str) -> dds::Settings {
    let (domain, interface) = (domain.parse().unwrap(), Some("lo".to_owned()));
    dds::Settings { domain, interface, ..dds::Settings::default() }
}

/// A monitor with a gate, and a client that sends commands and receives what passes.
struct Gated {
    network: Network,
    run: Process,
    folder: Folder,
    publisher: Box<dyn Publisher>,
    received: mpsc::Receiver<Vec<u8>>,
    /// Number of the commands sent until the first one passed.
    before: usize,
    subscription: Box<dyn Subscription>,
    joined: Networks,
}

impl Gated {
    /// Starts both, and waits until a command with the speed 1 passes.
    fn start(network: Network, gate: &str, options: &[&str]) -> Gated {
        let mut gated = Gated::join(network, gate, options);
        let deadline = Instant::now() + LIMIT;
        let first = loop {
            assert!(Instant::now() < deadline, "nothing passes");
            gated.send(1.0);
            gated.before += 1;
            if let Ok(payload) = gated.received.recv_timeout(AGAIN) {
                break payload;
            }
        };
        assert_eq!(first, gated.network.command(1.0));
        gated
    }

    fn join(network: Network, gate: &str, options: &[&str]) -> Gated {
        let folder = Folder::new();
        let declared = format!("topic command \"/cmd_vel_raw\" : {TWIST}\n");
        let typed = SPECIFICATION.replace("topic command\n", &declared);
        folder.file("cmd.rondel", if network.schema.is_some() { typed.as_str() } else { SPECIFICATION });
        let (from, to) = (network.from, network.to);
        let text = format!(
            "specification: cmd.rondel\n{}topics: {{ command: \"{from}\" }}\n\
             gates:\n  - from: command\n    to: \"{to}\"\n    unless: slow\n{gate}",
            network.section
        );
        let deployment = folder.file("rondel.yaml", text);
        let mut run = start_rondel([&["run", &deployment][..], options].concat());
        run.wait_stderr("ready");
        let joined = Networks::open(&network.settings, Some(LIMIT), || false, |_| ()).unwrap();
        let (sender, received) = mpsc::channel();
        let receive = move |_: TopicId, samples: &[Sample<'_>]| {
            samples.iter().for_each(|sample| drop(sender.send(sample.payload.to_vec())));
        };
        let schema = network.schema.as_ref();
        let subscription =
            joined.subscribe_of(&network.address(to), schema, TopicId(0), Arc::new(receive)).unwrap();
        joined.begin();
        let publisher = joined.publisher_of(&network.address(from), schema, false).unwrap();
        assert!(publisher.wait_matched(LIMIT));
        Gated { network, run, folder, publisher, received, before: 0, subscription, joined }
    }

    fn send(&self, speed: f64) {
        self.publisher.publish(&self.network.command(speed)).unwrap();
        self.publisher.release();
    }

    /// Receives the next payload after those of the start, which may come late.
    #[track_caller]
    fn next(&self) -> Vec<u8> {
        let first = self.network.command(1.0);
        loop {
            let payload = self.received.recv_timeout(LIMIT).expect("a message is missing");
            if payload != first {
                return payload;
            }
        }
    }

    #[track_caller]
    fn expect(&self, speed: f64) {
        let payload = self.next();
        assert_eq!(payload, self.network.command(speed), "{}", String::from_utf8_lossy(&payload));
    }

    /// Waits for the end of the run, which a signal has requested. Returns its account of the gate.
    fn end(self) -> Value {
        let Gated { run, publisher, subscription, joined, .. } = self;
        let finished = run.finish();
        drop(publisher);
        subscription.close(LIMIT);
        drop(subscription);
        joined.close();
        let summary = finished.stderr.lines().rev().find(|line| line.starts_with('{'));
        let summary: Value = serde_json::from_str(summary.expect("a summary")).unwrap();
        summary["gates"][0].clone()
    }
}

/// Commands pass until one violates the property; a substitute takes its place, and another one is published at the end.
#[track_caller]
fn violating_command_is_replaced(network: Network) {
    let gate = "    substitute: { linear: { x: 0.0 } }\n";
    // JSON is written without blanks.
    let is_json = network.schema.is_none();
    let gated = Gated::start(network, gate, &["--summary", "json"]);
    let stop = |gated: &Gated| {
        let payload = gated.next();
        let expected = if is_json { br#"{"linear":{"x":0.0}}"#.to_vec() } else { gated.network.command(0.0) };
        assert_eq!(payload, expected);
    };
    gated.send(2.5);
    gated.expect(2.5);
    gated.send(12.0);
    stop(&gated);
    gated.send(13.0);
    stop(&gated);
    gated.send(3.0);
    gated.expect(3.0);
    gated.run.terminate();
    stop(&gated);
    let before = gated.before as u64;
    let account = gated.end();
    let forwarded = account["forwarded"].as_u64().unwrap();
    assert!((3..=before + 2).contains(&forwarded), "{account}");
    assert_eq!((&account["substituted"], &account["switches"]), (&3.into(), &2.into()), "{account}");
    assert_eq!((&account["dropped"], &account["unpublished"]), (&0.into(), &0.into()), "{account}");
}

#[test]
fn violating_command_is_replaced_on_zenoh() {
    violating_command_is_replaced(Network::zenoh());
}

#[test]
fn violating_command_is_replaced_on_mqtt() {
    let Some(network) = Network::mqtt("violating_command_is_replaced_on_mqtt") else { return };
    violating_command_is_replaced(network);
}

#[test]
fn violating_command_is_replaced_on_dds() {
    violating_command_is_replaced(Network::dds());
}

#[test]
fn violating_command_is_replaced_on_ros2_over_dds() {
    violating_command_is_replaced(Network::ros2(Middleware::Dds));
}

#[test]
fn violating_command_is_replaced_on_ros2_over_zenoh() {
    violating_command_is_replaced(Network::ros2(Middleware::Zenoh));
}

#[test]
fn last_command_is_repeated_and_switches_are_reported() {
    let gate = "    substitute: hold\n    return_after: 1 s\n";
    let folder = Folder::new();
    let audit = folder.path("audit.jsonl");
    let mut gated = Gated::start(Network::zenoh(), gate, &["--summary", "json", "--audit", &audit]);
    gated.send(2.0);
    gated.expect(2.0);
    gated.send(12.0);
    gated.expect(2.0);
    gated.run.wait_stderr("the gate to zenoh:cmd/out is closed, as 'slow' is violated");
    // The property holds again, but not for long enough.
    let began = Instant::now();
    gated.send(3.0);
    gated.expect(2.0);
    let deadline = began + LIMIT;
    loop {
        assert!(Instant::now() < deadline, "it does not open again");
        gated.send(4.0);
        let payload = gated.next();
        if payload == gated.network.command(4.0) {
            break;
        }
        assert_eq!(payload, gated.network.command(2.0));
        std::thread::sleep(AGAIN);
    }
    assert!(began.elapsed() >= Duration::from_millis(900), "it opened after {:?}", began.elapsed());
    gated.run.terminate();
    let account = gated.end();
    assert_eq!((&account["state"], &account["switches"]), (&"open".into(), &2.into()), "{account}");
    let records = std::fs::read_to_string(audit).unwrap();
    let of_gate = |line: &&str| line.contains("\"record\":\"gate\"");
    assert_eq!(records.lines().filter(of_gate).count(), 2, "{records}");
}

#[test]
fn dropped_and_undecodable_commands_do_not_pass() {
    let gated = Gated::start(Network::zenoh(), "    substitute: drop\n", &["--summary", "json"]);
    gated.send(12.0);
    gated.publisher.publish(b"no command").unwrap();
    send_until_it_passes(&gated, 5.0);
    gated.run.terminate();
    let account = gated.end();
    assert!(account["dropped"].as_u64().unwrap() >= 2, "{account}");
}

#[test]
fn empty_command_is_counted_on_mqtt() {
    let Some(network) = Network::mqtt("empty_command_is_counted_on_mqtt") else { return };
    let gated = Gated::start(network, "    substitute: drop\n", &["--summary", "json"]);
    gated.publisher.publish(b"").unwrap();
    send_until_it_passes(&gated, 5.0);
    gated.run.terminate();
    let account = gated.end();
    assert!(account["dropped"].as_u64().unwrap() >= 1, "{account}");
}

/// A property about messages that never come is inconclusive: by default nothing passes.
#[test]
fn blind_gate_is_closed_unless_it_is_to_be_open() {
    let gate = "    unless: seen\n    substitute: drop\n";
    let specification =
        format!("topic scan {{ distance: float }}\n{SPECIFICATION}property seen = scan.distance > 1\n");
    for (blind, passes) in [("closed", false), ("open", true)] {
        let network = Network::zenoh();
        let folder = Folder::new();
        folder.file("cmd.rondel", &specification);
        let text = format!(
            "specification: cmd.rondel\n{}topics: {{ command: \"zenoh:cmd/raw\", scan: \"zenoh:scan\" }}\n\
             gates:\n  - from: zenoh:cmd/raw\n    to: zenoh:cmd/out\n    blind: {blind}\n{gate}",
            network.section
        );
        let deployment = folder.file("rondel.yaml", text);
        let mut run = start_rondel(["run", &deployment, "--count", "3", "--summary", "json"]);
        run.wait_stderr("ready");
        let joined = Networks::open(&network.settings, Some(LIMIT), || false, |_| ()).unwrap();
        let publisher = joined.publisher(&network.address(network.from), false).unwrap();
        assert!(publisher.wait_matched(LIMIT));
        for _ in 0..3 {
            publisher.publish(&network.command(1.0)).unwrap();
        }
        let finished = run.finish();
        drop(publisher);
        joined.close();
        let summary = finished.stderr.lines().rev().find(|line| line.starts_with('{')).unwrap();
        let summary: Value = serde_json::from_str(summary).unwrap();
        let (forwarded, dropped) = (&summary["gates"][0]["forwarded"], &summary["gates"][0]["dropped"]);
        let expected = if passes { (3, 0) } else { (0, 3) };
        assert_eq!((forwarded, dropped), (&expected.0.into(), &expected.1.into()), "{summary}");
    }
}

/// Sends a command until one passes.
#[track_caller]
fn send_until_it_passes(gated: &Gated, speed: f64) {
    let deadline = Instant::now() + LIMIT;
    loop {
        assert!(Instant::now() < deadline, "{speed} does not pass");
        gated.send(speed);
        match gated.received.recv_timeout(AGAIN) {
            Ok(payload) if payload == gated.network.command(speed) => return,
            _ => {}
        }
    }
}

#[test]
fn guard_passes_commands_on_while_the_monitor_is_gone() {
    let further = "    substitute: drop\nverdicts: { to: dds:verdict }\nheartbeat: 500 ms\n";
    let mut gated = Gated::start(Network::dds(), further, &[]);
    let deployment = gated.folder.path("rondel.yaml");
    let mut guard = start_rondel(["gate-guard", &deployment]);
    guard.wait_stderr("ready");
    gated.send(12.0);
    gated.send(2.0);
    gated.expect(2.0);
    gated.run.kill();
    send_until_it_passes(&gated, 12.0);
    guard.wait_stderr("the monitor is gone: messages are passed on unchecked");
    let mut run = start_rondel(["run", &deployment]);
    run.wait_stderr("ready");
    guard.wait_stderr("the monitor is there: its gates decide");
    send_until_it_passes(&gated, 3.0);
    gated.send(13.0);
    gated.send(4.0);
    // Earlier commands may come late.
    let earlier = [3.0, 12.0].map(|speed| gated.network.command(speed));
    let mut passed = std::iter::from_fn(|| gated.received.recv_timeout(LIMIT).ok());
    let next = passed.find(|payload| !earlier.contains(payload));
    assert_eq!(next, Some(gated.network.command(4.0)));
    guard.terminate();
    guard.finish().expect_status(0).expect_stderr(&["gate to dds:cmd_out: ", "while the monitor was gone"]);
    run.terminate();
    run.finish();
}

#[test]
fn second_monitor_with_a_gate_is_noticed() {
    let further = "    substitute: drop\nverdicts: { to: dds:verdict }\nheartbeat: 200 ms\n";
    let mut gated = Gated::start(Network::dds(), further, &[]);
    let mut second = start_rondel(["run", &gated.folder.path("rondel.yaml")]);
    second.wait_stderr("has the gate to dds:cmd_out, too");
    gated.run.wait_stderr("has the gate to dds:cmd_out, too");
    second.terminate();
    second.finish();
    gated.run.terminate();
}

#[test]
fn guard_needs_gates_and_a_heartbeat() {
    let folder = Folder::new();
    let trace = "formula: v\ntopics: { trace: zenoh:a }\n";
    let gate = "gates: { from: trace, to: zenoh:b, unless: formula, substitute: drop }\n";
    let beats = "verdicts: { to: zenoh:c }\nheartbeat: 1 s\n";
    for (text, after, words) in [
        (format!("{trace}{beats}"), "3 s", &["there are no gates to guard"][..]),
        (format!("{trace}{gate}"), "3 s", &["add `heartbeat: 200 ms`"]),
        (format!("{trace}{gate}{beats}"), "1 s", &["--after must be at least two intervals", "2000 ms"]),
        (format!("{trace}{gate}{beats}"), "soon", &["must be a duration"]),
    ] {
        let file = folder.file("rondel.yaml", text);
        support::rondel(["gate-guard", &file, "--after", after]).expect_status(2).expect_stderr(words);
    }
}
