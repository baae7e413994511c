//! Recorded is live: the messages that `rondel run` checks on a network give the same verdicts, byte for byte, when
//! `rondel check` reads them from a recording with the same deployment.
//!
//! The messages of each test go over a network on loopback to two runs, one for each `--emit`, and to a tap. The
//! recordings are what the tap wrote, what `mosquitto_sub` wrote, and the messages as JSON lines. Event times are ten
//! seconds apart and waits are some seconds off every event time, so that a busy machine changes nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod networks;
mod offline;
#[path = "../support/mod.rs"]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use rondel_net::address::Address;
use rondel_net::networks::{Mqtt, NetworkSettings, Networks};
use rondel_net::{dds, mqtt, zenoh};

use rondel_testkit::{Broker, Process};
use support::network::{dds_domain, free_endpoint, router};
use support::{Finished, Folder, rondel, start_rondel};

/// Three topics, and properties of every kind: steps, points and dense time, past and future, parameters, a machine
/// and a chain.
const SPECIFICATION: &str = "
topic gear { t: time, n: int, report: int, robot: string }
topic speed { t: time, n: int, v: float, robot: string }
topic brake { t: time, n: int, pressed: bool }
@time(steps) property limited = speed.v < 9 or once brake.pressed
@time(steps) property braked = changed(gear.report) -> (not brake.pressed since speed.v > 3)
@time(points) property at_points = historically[0, 30 s] (speed.v < 9.5 or gear.report > 1)
property recent = brake.pressed -> once[0, 25 s] speed.v > 5
property soon = gear.report == 2 -> eventually[0, 33 s] brake.pressed
property alone = speed.v < 9.5
property of_robot for each r in (gear.robot, speed.robot) = gear.report == 3 -> once[0, 45 s] speed.v < 5
machine driving {
    initial standing
    standing -> moving when speed.v > 6
    moving -> stopping when brake.pressed
    stopping -> standing after 21 s
    error moving while gear.report == 0 for 12 s
}
";

/// A chain, which sets cannot have: it looks for one message in several topics.
const CHAIN: &str = "chain path = gear -> speed -> brake by n within 8 s age <= 40 s\n";

/// A message, as a network carries it.
#[derive(Clone, Debug)]
struct Message {
    topic: &'static str,
    time: i64,
    payload: String,
}

/// Seconds with milliseconds.
fn seconds(ms: i64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// Three topics of `count` messages each, ten seconds apart, some of them at the same time, most a little later; in
/// the order of their times.
fn messages(count: i64) -> Vec<Message> {
    messages_apart(count, 0)
}

/// The same, where a message of the second topic comes at least so many milliseconds after one of the first, and so
/// on.
fn messages_apart(count: i64, apart: i64) -> Vec<Message> {
    let mut state = 7_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut all = Vec::new();
    for n in 0..count {
        let start = 10_000 * n;
        let mut later = |most: u64| if random(3) == 0 { 0 } else { random(most) as i64 };
        let (gear, speed, brake) =
            (start + later(40), start + apart + later(900), start + 2 * apart + later(1900));
        let robot = ["a", "b", "c"][random(3) as usize];
        let with = |time: i64, rest: &str| format!("{{\"t\":{},\"n\":{n},{rest}}}", seconds(time));
        let report = random(4);
        let (v, pressed) = (random(100) as f64 / 10.0, random(5) == 0);
        all.push(Message {
            topic: "gear",
            time: gear,
            payload: with(gear, &format!("\"report\":{report},\"robot\":\"{robot}\"")),
        });
        all.push(Message {
            topic: "speed",
            time: speed,
            payload: with(speed, &format!("\"v\":{v},\"robot\":\"{robot}\"")),
        });
        all.push(Message {
            topic: "brake",
            time: brake,
            payload: with(brake, &format!("\"pressed\":{pressed}")),
        });
    }
    all.sort_by_key(|message| message.time);
    all
}

/// The messages of one topic after the other.
fn by_topic(messages: &[Message]) -> Vec<Message> {
    let mut sorted = messages.to_vec();
    sorted.sort_by_key(|message| message.topic);
    sorted
}

/// A recording as JSON lines; `line` is what stands beside topic and payload.
fn lines(messages: &[Message], beside: impl Fn(&Message) -> String) -> String {
    messages.iter().fold(String::new(), |mut text, message| {
        let Message { topic, payload, .. } = message;
        writeln!(text, "{{\"topic\":\"{topic}\",{}\"data\":{payload}}}", beside(message)).unwrap();
        text
    })
}

/// A network of the test's own.
enum Network {
    /// A router, to which all others connect: it is there before them and after them.
    Zenoh(String, #[allow(dead_code)] Box<Process>),
    Dds(String),
    Mqtt(Broker),
}

impl Network {
    fn zenoh() -> Network {
        let endpoint = free_endpoint();
        let router = Box::new(router(&endpoint));
        Network::Zenoh(endpoint, router)
    }

    fn dds() -> Network {
        Network::Dds(dds_domain())
    }

    fn mqtt(test: &str) -> Option<Network> {
        Broker::start(test).map(Network::Mqtt)
    }

    fn name(&self) -> &'static str {
        match self {
            Network::Zenoh(..) => "zenoh",
            Network::Dds(_) => "dds",
            Network::Mqtt(_) => "mqtt",
        }
    }

    /// The section of a deployment.
    fn section(&self) -> String {
        match self {
            Network::Zenoh(endpoint, _) => format!("zenoh: {{ mode: client, connect: {endpoint} }}\n"),
            Network::Dds(domain) => format!("dds: {{ domain: {domain}, interface: lo }}\n"),
            Network::Mqtt(broker) => format!("mqtt: {{ broker: \"127.0.0.1:{}\" }}\n", broker.port),
        }
    }

    fn settings(&self, settings: &mut NetworkSettings) {
        match self {
            Network::Zenoh(endpoint, _) => {
                let connect = vec![endpoint.clone()];
                let mode = Some(zenoh::Mode::Client);
                settings.zenoh = Some(zenoh::Settings { mode, connect, ..zenoh::Settings::default() });
            }
            Network::Dds(domain) => {
                let (domain, interface) = (domain.parse().unwrap(), Some("lo".to_owned()));
                settings.dds = Some(dds::Settings { domain, interface, ..dds::Settings::default() });
            }
            Network::Mqtt(broker) => {
                let broker = format!("127.0.0.1:{}", broker.port).parse().unwrap();
                let settings_of = mqtt::Settings { broker, ..mqtt::Settings::default() };
                settings.mqtt = Some(Mqtt { settings: settings_of, ..Mqtt::default() });
            }
        }
    }
}

/// A deployment without its networks.
struct Deployment<'a> {
    specification: String,
    /// The address of each topic below `t/`, with its network, and its settings.
    topics: Vec<(&'static str, &'a Network, String)>,
    /// Text below the topics.
    rest: String,
    explain: bool,
}

impl<'a> Deployment<'a> {
    /// The three topics, with their times in `t`, on these networks.
    fn new(networks: [&'a Network; 3], alignment: &str) -> Deployment<'a> {
        let topics = ["gear", "speed", "brake"].into_iter().zip(networks);
        let topics = topics.map(|(topic, network)| (topic, network, "time: t".to_owned()));
        Deployment {
            specification: SPECIFICATION.to_owned(),
            topics: topics.collect(),
            rest: format!("alignment: {{ {alignment} }}\n"),
            explain: false,
        }
    }

    fn explained(self) -> Deployment<'a> {
        Deployment { explain: true, ..self }
    }

    /// The networks, each once.
    fn networks(&self) -> Vec<&'a Network> {
        let mut networks: Vec<&Network> = Vec::new();
        for (_, network, _) in &self.topics {
            if networks.iter().all(|other| other.name() != network.name()) {
                networks.push(network);
            }
        }
        networks
    }

    fn text(&self) -> String {
        let mut text = "specification: spec.rondel\n".to_owned();
        self.networks().iter().for_each(|network| text += &network.section());
        text += "topics:\n";
        for (topic, network, settings) in &self.topics {
            let name = topic.rsplit('/').next().unwrap();
            writeln!(text, "  {name}: {{ source: \"{}:t/{topic}\", {settings} }}", network.name()).unwrap();
        }
        text + &self.rest
    }
}

/// Results of a live run and of the recorders beside it.
struct Live {
    folder: Folder,
    explain: bool,
    /// Output of the runs, by `--emit`.
    runs: Vec<(&'static str, Finished)>,
    /// The recordings of those who listened too, by their names.
    recordings: Vec<(String, String)>,
}

const EMIT: [&str; 2] = ["every", "change"];

/// Sends messages to runs of the deployment, and keeps what they print and what others record.
#[track_caller]
fn live(deployment: &Deployment<'_>, messages: &[Message]) -> Live {
    let folder = Folder::new();
    folder.file("spec.rondel", &deployment.specification);
    let file = folder.file("rondel.yaml", deployment.text());
    let count = messages.len().to_string();
    let explain: &[&str] = if deployment.explain { &["--explain"] } else { &[] };
    let run = |emit: &str| {
        let own = ["run", &file, "--format", "json", "--emit", emit, "--count", &count];
        let mut run = start_rondel([&own[..], explain].concat());
        run.wait_stderr("ready");
        run
    };
    let runs = EMIT.map(run);
    let mut tap = start_rondel(["tap", &file, "--format", "json", "--count", &count]);
    tap.wait_stderr("ready");
    let of_mqtt = deployment.topics.iter().filter(|(_, network, _)| network.name() == "mqtt");
    let of_mqtt: Vec<_> = of_mqtt.map(|(topic, network, _)| (*topic, *network)).collect();
    let mut recorder = None;
    if let [(_, Network::Mqtt(broker)), ..] = of_mqtt[..]
        && of_mqtt.len() == deployment.topics.len()
    {
        // The broker keeps the messages for a reader that has been there.
        let reader = ["-i", "recorder", "-c", "-q", "1", "-t", "t/#"];
        assert!(broker.client("mosquitto_sub", &[&reader[..], &["-E"]].concat()).status().unwrap().success());
        recorder = Some(
            broker.client("mosquitto_sub", &[&reader[..], &["-F", "%J", "-C", &count, "-W", "60"]].concat()),
        );
    }

    let mut settings = NetworkSettings::default();
    deployment.networks().iter().for_each(|network| network.settings(&mut settings));
    let joined = Networks::open(&settings, Some(Duration::from_secs(30)), || false, |_| ()).unwrap();
    let topics: BTreeSet<&'static str> = messages.iter().map(|message| message.topic).collect();
    let publisher = |topic: &'static str| {
        let of_topic = |(address, ..): &&(&str, &Network, String)| *address == topic;
        let (_, network, _) = deployment.topics.iter().find(of_topic).unwrap_or(&deployment.topics[0]);
        let address = Address::parse_sink(&format!("{}:t/{topic}", network.name())).unwrap();
        (topic, joined.publisher(&address, true).unwrap())
    };
    let publishers: BTreeMap<&str, _> = topics.into_iter().map(publisher).collect();
    assert!(publishers.values().all(|publisher| publisher.wait_matched(Duration::from_secs(30))));
    // One is there; so that the others are found too. On DDS each of them answers to the new participant by itself.
    let is_dds = deployment.networks().iter().any(|network| network.name() == "dds");
    std::thread::sleep(Duration::from_millis(if is_dds { 2000 } else { 400 }));
    let mut before = "";
    for Message { topic, payload, .. } in messages {
        // Messages of another topic that are held back go first, to keep the order of the messages.
        if *topic != before
            && let Some(publisher) = publishers.get(before)
        {
            publisher.release();
        }
        publishers[topic].publish(payload.as_bytes()).unwrap();
        before = topic;
    }
    publishers.values().for_each(|publisher| publisher.release());
    assert!(publishers.values().all(|publisher| publisher.flush(Duration::from_secs(30))));
    let taps = tap.finish();
    taps.expect_status(0);
    let runs = runs.map(Process::finish);
    drop(publishers);
    joined.close();
    for run in &runs {
        run.expect_status(0).expect_stderr(&["undecodable 0, dropped 0"]);
    }
    let mut recordings = vec![("tap".to_owned(), taps.stdout)];
    if let Some(recorder) = recorder {
        let recorded = Process::start(recorder).finish();
        recorded.expect_status(0);
        recordings.push(("mosquitto_sub".to_owned(), recorded.stdout));
    }
    Live { folder, explain: deployment.explain, runs: EMIT.into_iter().zip(runs).collect(), recordings }
}

impl Live {
    /// A further recording of the same messages.
    fn and(mut self, name: &str, text: String) -> Live {
        self.recordings.push((name.to_owned(), text));
        self
    }

    /// The messages as JSON lines: as they were sent, with times of arrival, and one topic after the other.
    fn and_written(self, messages: &[Message]) -> Live {
        let mut latest = 0;
        let mut with_arrivals = String::new();
        for message in messages {
            latest = latest.max(message.time);
            let arrival = format!("\"arrival\":{},", seconds(1_700_000_000_000 + latest));
            with_arrivals += &lines(std::slice::from_ref(message), |_| arrival.clone());
        }
        self.and("written", lines(messages, |_| String::new())).and("with arrivals", with_arrivals)
    }

    #[track_caller]
    fn check(&self, name: &str, text: &str, emit: &str) -> Finished {
        let trace = self.folder.file(&format!("{name}.jsonl"), text);
        let own = ["check", &self.folder.path("rondel.yaml"), &trace, "--format", "json", "--emit", emit];
        rondel([&own[..], if self.explain { &["--explain"] } else { &[] }].concat())
    }

    /// Every recording gives the verdicts of the runs, in the form that `of` makes of them.
    #[track_caller]
    fn expect_same<T: PartialEq + std::fmt::Debug>(
        &self,
        of: impl Fn(&str) -> T,
        differ: impl Fn(&T, &T) -> String,
    ) {
        for (emit, run) in &self.runs {
            let expected = of(&run.stdout);
            assert!(!run.stdout.is_empty());
            // Of the verdicts that change, one recording says enough.
            let recordings = if *emit == EMIT[0] { &self.recordings[..] } else { &self.recordings[..1] };
            for (name, text) in recordings {
                let checked = self.check(name, text, emit);
                let found = of(&checked.stdout);
                assert!(
                    found == expected,
                    "{name}, --emit {emit}: {}\n--- check\n{}\n--- run\n{}",
                    differ(&expected, &found),
                    checked.stderr,
                    run.stderr
                );
            }
        }
    }

    /// The same lines for each property, but for the numbers of messages, which arrived in another order. Properties that
    /// wait for different topics are evaluated as soon as each can be, so that there is no order between their verdicts.
    #[track_caller]
    fn expect_same_verdicts(&self) {
        self.expect_same(by_property, first_difference);
    }

    /// The same text.
    #[track_caller]
    fn expect_same_text(&self) {
        self.expect_same(
            |text| vec![("all".to_owned(), text.lines().map(str::to_owned).collect())],
            first_difference,
        );
    }
}

type ByProperty = Vec<(String, Vec<String>)>;

/// The lines of each property, in their order.
fn by_property(text: &str) -> ByProperty {
    let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let name = line.strip_prefix("{\"property\":\"").and_then(|rest| rest.split('"').next()).expect(line);
        let mut value = serde_json::from_str(line).unwrap();
        remove_steps(&mut value);
        lines.entry(name).or_default().push(value.to_string());
    }
    lines.into_iter().map(|(name, lines)| (name.to_owned(), lines)).collect()
}

/// Removes the numbers of messages from a verdict and its explanation.
fn remove_steps(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(members) => {
            members.remove("step");
            members.values_mut().for_each(remove_steps);
        }
        serde_json::Value::Array(elements) => elements.iter_mut().for_each(remove_steps),
        _ => {}
    }
}

/// The lines without the times that depend on the arrival.
fn without_times(text: &str) -> ByProperty {
    let strip = |line: &str| {
        let mut object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
        assert!(object.remove("time").is_some(), "{line}");
        object.remove("about");
        serde_json::to_string(&object).unwrap()
    };
    vec![("all".to_owned(), text.lines().map(strip).collect())]
}

/// The lines without what is left open at the end, which has no step: by then some time has passed in a run, and none in
/// a recording.
fn before_the_end(text: &str) -> ByProperty {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    while lines.pop_if(|line| line.contains("\"inconclusive\"") && !line.contains("\"step\"")).is_some() {}
    vec![("all".to_owned(), lines)]
}

/// The first lines that differ.
fn first_difference(live: &ByProperty, recorded: &ByProperty) -> String {
    for ((name, one), (_, other)) in live.iter().zip(recorded) {
        let at = (0..one.len().max(other.len())).find(|&i| one.get(i) != other.get(i));
        if let Some(at) = at {
            return format!(
                "{name}, verdict {at} of {} and {}:\n  live     {:?}\n  recorded {:?}",
                one.len(),
                other.len(),
                one.get(at),
                other.get(at)
            );
        }
    }
    format!("other properties: {} live, {} recorded", live.len(), recorded.len())
}

/// Nothing but messages lets anything go.
const CERTAIN: &str = "max_wait: none, absent_after: never, ahead: never, behind: never";
