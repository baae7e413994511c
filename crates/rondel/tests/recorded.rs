//! Recorded is live: the messages that `rondel run` checks on a network give the same verdicts, byte for byte, when
//! `rondel check` reads them from a recording with the same deployment.
//!
//! The messages of each test go over a network on loopback to two runs, one for each `--emit`, and to a tap. The
//! recordings are what the tap wrote, what `mosquitto_sub` wrote, and the messages as JSON lines. Event times are ten
//! seconds apart and waits are some seconds off every event time, so that a busy machine changes nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

#[path = "../../rondel-net/tests/broker/mod.rs"]
mod broker;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use broker::Broker;
use rondel_net::address::Address;
use rondel_net::networks::{Mqtt, NetworkSettings, Networks};
use rondel_net::{dds, mqtt, zenoh};
use support::network::{dds_domain, free_endpoint, router};
use support::process::Process;
use support::{Finished, Folder, rondel};

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
    /// What stands below the topics.
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

/// What a live run and those beside it left.
struct Live {
    folder: Folder,
    explain: bool,
    /// What the runs printed, by `--emit`.
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
        let mut run = Process::rondel([&own[..], explain].concat());
        run.wait_stderr("ready");
        run
    };
    let runs = EMIT.map(run);
    let mut tap = Process::rondel(["tap", &file, "--format", "json", "--count", &count]);
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
    // One is there; so that the others are found too.
    std::thread::sleep(Duration::from_millis(400));
    let mut before = "";
    for Message { topic, payload, .. } in messages {
        // What is held back of another topic goes first, so that the order is that of the messages.
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

/// Ten thousand messages on three networks at once.
#[test]
fn in_the_order_of_times_on_three_networks() {
    let Some(mqtt) = Network::mqtt("in_the_order_of_times_on_three_networks") else { return };
    let (zenoh, dds) = (Network::zenoh(), Network::dds());
    let messages = messages(3400);
    let mut deployment = Deployment::new([&zenoh, &dds, &mqtt], CERTAIN);
    deployment.specification += CHAIN;
    let live = live(&deployment, &messages);
    let again = lines(&by_topic(&messages), |_| String::new());
    live.and_written(&messages).and("one topic after the other", again).expect_same_verdicts();
}

/// On each network by itself, every property waiting for all topics, with explanations.
#[test]
fn waiting_for_the_specification_with_explanations() {
    let Some(mqtt) = Network::mqtt("waiting_for_the_specification_with_explanations") else { return };
    let messages = messages(150);
    for network in [Network::zenoh(), Network::dds(), mqtt] {
        let alignment = format!("{CERTAIN}, wait_for: specification");
        let mut deployment = Deployment::new([&network; 3], &alignment).explained();
        deployment.specification += CHAIN;
        let live = live(&deployment, &messages);
        assert!(live.runs[0].1.stdout.contains("\"evidence\""));
        let again = lines(&by_topic(&messages), |_| String::new());
        live.and_written(&messages).and("one topic after the other", again).expect_same_text();
    }
}

/// Sets are made of the times alone, whatever the order of arrival.
#[test]
fn in_sets_of_every_policy() {
    let Some(mqtt) = Network::mqtt("in_sets_of_every_policy") else { return };
    let (messages, zenoh) = (messages(200), Network::zenoh());
    for (policy, networks) in [
        ("exact", [&zenoh, &mqtt, &mqtt]),
        ("approximate, max_interval: 1500 ms", [&mqtt; 3]),
        ("epsilon, epsilon: 1200 ms", [&zenoh; 3]),
    ] {
        let alignment = format!("policy: {policy}, absent_after: never, ahead: never, behind: never");
        let live = live(&Deployment::new(networks, &alignment).explained(), &messages);
        assert!(live.runs[0].1.stdout.matches("limited").count() > 3, "{policy}: there are sets");
        let again = lines(&by_topic(&messages), |_| String::new());
        live.and_written(&messages).and("one topic after the other", again).expect_same_verdicts();
    }
}

/// As they arrive, with times of their own, over one connection.
#[test]
fn as_they_arrive_with_times_in_the_messages() {
    let Some(mqtt) = Network::mqtt("as_they_arrive_with_times_in_the_messages") else { return };
    let messages = messages_apart(200, 3000);
    for network in [Network::zenoh(), mqtt] {
        let mut deployment = Deployment::new([&network; 3], "policy: arrival").explained();
        deployment.specification += CHAIN;
        live(&deployment, &messages).and_written(&messages).expect_same(before_the_end, first_difference);
    }
}

/// With the time of arrival, which is another one for each who listens: all but the times is the same.
#[test]
fn as_they_arrive_with_the_times_of_arrival() {
    let Some(mqtt) = Network::mqtt("as_they_arrive_with_the_times_of_arrival") else { return };
    let messages = messages(200);
    for network in [Network::zenoh(), mqtt] {
        let mut deployment = Deployment::new([&network; 3], "policy: arrival");
        deployment.specification = "topic gear { report: int, robot: string } topic speed { v: float, robot: string }
            topic brake { pressed: bool }
            property limited = speed.v < 9 or once brake.pressed
            property braked = changed(gear.report) -> (not brake.pressed since[0, 7] speed.v > 3)
            property soon = gear.report == 2 -> eventually[0, 9] brake.pressed
            property of_robot for each r in (gear.robot, speed.robot) = gear.report == 3 -> once[0, 4] speed.v < 5
            machine driving { initial standing; standing -> moving when speed.v > 6
                moving -> standing when brake.pressed; error moving while gear.report == 0 for 3 }
            ".to_owned();
        for (_, _, settings) in &mut deployment.topics {
            *settings = "time: arrival".to_owned();
        }
        let written = lines(&messages, |message| format!("\"time\":{},", seconds(message.time)));
        live(&deployment, &messages).and("written", written).expect_same(without_times, first_difference);
    }
}

/// The pace of a topic, which decides when there is a set, is measured by the clock as messages arrive: the sets of two
/// listeners differ, and so do those of a run and a recording. What holds of all is compared: the times of the sets are
/// those of messages, in order, and there are about as many.
#[test]
fn the_latest_of_every_topic() {
    let network = Network::zenoh();
    let messages = messages(200);
    let alignment = "policy: latest, absent_after: never, ahead: never, behind: never";
    let live = live(&Deployment::new([&network; 3], alignment), &messages).and_written(&messages);
    let times: Vec<f64> = messages.iter().map(|message| message.time as f64 / 1000.0).collect();
    let sets = |text: &str| -> usize {
        let limited = text.lines().filter(|line| line.contains("\"limited\""));
        let of_sets: Vec<f64> = limited
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["time"].as_f64().unwrap())
            .collect();
        assert!(of_sets.is_sorted() && of_sets.iter().all(|time| times.contains(time)));
        of_sets.len()
    };
    let expected = sets(&live.runs[0].1.stdout);
    assert!(expected > 100, "{expected} sets");
    for (name, text) in &live.recordings {
        let found = sets(&live.check(name, text, EMIT[0]).stdout);
        assert!(found.abs_diff(expected) < expected / 5, "{name}: {found} sets, live {expected}");
    }
}

/// Messages that come too late, in an order that is known: one topic seldom and always forty seconds behind, another one
/// at times. All times are whole seconds, and the wait is not, so that the pauses of a busy machine change nothing.
#[test]
fn late_messages() {
    let messages = late();
    let network = Network::zenoh();
    for (late, wait_for) in [("late", "property"), ("drop", "specification"), ("inconclusive", "property")] {
        let alignment = format!(
            "late: {late}, wait_for: {wait_for}, max_wait: 15500 ms, absent_after: never, ahead: never, behind: never"
        );
        let live = live(&Deployment::new([&network; 3], &alignment).explained(), &messages);
        let of_run = |text: &str| -> Vec<String> {
            text.lines()
                .filter(|line| line.contains(" late, by "))
                .map(|line| line.trim().to_owned())
                .collect()
        };
        let expected = of_run(&live.runs[0].1.stderr);
        assert_eq!(expected.len(), 2, "{}", live.runs[0].1.stderr);
        // What the tap recorded has times of arrival, like the run.
        let checked = live.check("tap", &live.recordings[0].1, "every");
        assert_eq!(counts(&of_run(&checked.stderr)), counts(&expected));
        // A late message counts some nanoseconds after the verdict before it; how many depends on the evaluation.
        let microseconds = |text: &str| by_property(&without_nanoseconds(text));
        live.and_written(&messages).expect_same(microseconds, first_difference);
    }
}

/// The text with its times cut to microseconds: `386.000000002` is `386`.
fn without_nanoseconds(text: &str) -> String {
    let mut pieces = text.split(".00000000");
    let mut cut = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        cut += piece.strip_prefix(|c: char| c.is_ascii_digit()).unwrap_or(piece);
    }
    cut
}

/// The numbers of late messages in sentences; the delays differ by the time between sending and arrival.
fn counts(sentences: &[String]) -> Vec<String> {
    sentences.iter().map(|sentence| sentence.split(", by").next().unwrap().to_owned()).collect()
}

fn late() -> Vec<Message> {
    let mut arriving: Vec<(i64, Message)> = Vec::new();
    for (i, mut message) in messages_apart(150, 3000).into_iter().enumerate() {
        let period = message.time / 10_000;
        let place =
            ["gear", "speed", "brake"].iter().position(|topic| *topic == message.topic).unwrap() as i64;
        if message.topic == "brake" && period % 6 != 0 {
            continue;
        }
        let before = format!("\"t\":{},", seconds(message.time));
        message.time = 10_000 * period + 3_000 * place;
        message.payload = message.payload.replace(&before, &format!("\"t\":{},", seconds(message.time)));
        let delay = match message.topic {
            "brake" => 40_000,
            "speed" if period % 7 == 3 => 30_000,
            _ => 0,
        };
        arriving.push((10 * (message.time + delay) + i as i64 % 10, message));
    }
    arriving.sort_by_key(|(arrival, _)| *arrival);
    arriving.into_iter().map(|(_, message)| message).collect()
}

/// An address with a wildcard: the topics that it stands for are recorded under their own names.
#[test]
fn a_wildcard_on_mqtt() {
    let test = "a_wildcard_on_mqtt";
    let Some(network) = Network::mqtt(test) else { return };
    let mut deployment = Deployment::new([&network; 3], "policy: arrival");
    deployment.specification = "topic pose { robot: string, x: float }
        property inside for each r in pose.robot = pose.x < 9 or once[0, 2] pose.x < 1
        property moves for each r in pose.robot = changed(pose.x)
        "
    .to_owned();
    deployment.topics = vec![("+/pose", &network, "time: arrival".to_owned())];
    let messages: Vec<Message> = messages(200)
        .into_iter()
        .zip(["r1/pose", "r2/pose", "r3/pose"].into_iter().cycle())
        .map(|(message, topic)| {
            let robot = &topic[..2];
            let x = message.time % 10;
            Message { topic, payload: format!("{{\"robot\":\"{robot}\",\"x\":{x}}}"), ..message }
        })
        .collect();
    let written = lines(&messages, |message| format!("\"time\":{},", seconds(message.time)));
    let written = written.replace("\"topic\":\"", "\"topic\":\"mqtt:t/");
    live(&deployment, &messages).and("written", written).expect_same(without_times, first_difference);
}

/// A deployment that no network is needed for.
struct Offline(Folder);

impl Offline {
    fn new(time: &str, rest: &str) -> Offline {
        let folder = Folder::new();
        folder.file(
            "spec.rondel",
            "topic gear { report: int } topic speed { v: float } topic brake { pressed: bool }
             property known = gear.report > 0
             property recent = brake.pressed -> once[0, 2 s] speed.v > 5",
        );
        let topic = |name: &str| format!("  {name}: {{ source: \"mqtt:fleet/+/{name}\", time: {time} }}\n");
        let topics: String = ["gear", "speed", "brake"].map(topic).concat();
        folder.file("rondel.yaml", format!("specification: spec.rondel\ntopics:\n{topics}{rest}"));
        Offline(folder)
    }

    #[track_caller]
    fn check(&self, lines: &str, options: &[&str]) -> Finished {
        let trace = self.0.file("trace.jsonl", lines);
        rondel([&["check", &self.0.path("rondel.yaml"), &trace], options].concat())
    }
}

/// A message of each topic at this time and one second later.
fn triple(time: u32) -> String {
    [("gear", time, "\"report\":1"), ("speed", time, "\"v\":6"), ("brake", time + 1, "\"pressed\":true")]
        .map(|(topic, time, data)| format!("{{\"topic\":\"{topic}\",\"data\":{{\"t\":{time},{data}}}}}\n"))
        .concat()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text.lines().find(|line| line.starts_with('{')).expect(text)).unwrap()
}

#[test]
fn topics_that_are_not_in_the_recording() {
    let deployment = Offline::new("t", "");
    let others: String =
        (0..23).map(|i| format!("{{\"topic\":\"x{}\",\"data\":{{\"t\":{i}}}}}\n", i % 13)).collect();
    let checked = deployment.check(&others, &[]);
    checked.expect_status(4);
    for part in [
        "                vacuous: no message came on `gear`\n",
        "\n  topics that came and are not used: x0 (2), x1 (2), x2 (2)",
        "x9 (2) and 3 more\n",
    ] {
        assert!(checked.stdout.contains(part), "{part}\n{}", checked.stdout);
    }
    let summary = json(&deployment.check(&others, &["--summary", "json"]).stderr);
    assert_eq!(summary["missing_topics"], serde_json::json!(["gear", "speed", "brake"]));
    assert_eq!(
        (&summary["events"], &summary["properties"][0]["verdict"]),
        (&0.into(), &"inconclusive".into())
    );

    // The name of the deployment, an address and a topic of a wildcard are found; another level is not.
    let some = "{\"topic\":\"gear\",\"data\":{\"t\":1,\"report\":1}}\n\
        {\"topic\":\"mqtt:fleet/r1/gear\",\"data\":{\"t\":2,\"report\":2}}\n\
        {\"tst\":\"2026-11-22T19:26:02.022524Z+0000\",\"topic\":\"fleet/r2/gear\",\"payload\":{\"t\":3,\"report\":3}}\n\
        {\"topic\":\"fleet/r2/arm/gear\",\"data\":{\"t\":4,\"report\":0}}\n";
    let checked = deployment.check(some, &["--emit", "every"]);
    checked.expect_status(4);
    for part in [
        "3 events checked",
        "                vacuous: no message came on `speed`\n",
        "\n  topics that came and are not used: fleet/r2/arm/gear (1)\n",
    ] {
        assert!(checked.stdout.contains(part), "{part}\n{}", checked.stdout);
    }
    // A file without any line is not satisfied either.
    let empty = deployment.check("", &[]);
    assert!(empty.expect_status(4).stdout.contains("0 events checked"), "{}", empty.stdout);
}

#[test]
fn a_time_field_that_never_comes() {
    for rest in ["", "alignment: { policy: arrival }\n", "alignment: { policy: approximate }\n"] {
        let deployment = Offline::new("stamp", rest);
        let messages: String = (1..7).map(triple).collect();
        let checked = deployment.check(&messages, &[]);
        checked.expect_status(4).expect_stderr(
            &["gear", "speed", "brake"]
                .map(|topic| format!("every message on {topic} (6) came without a time"))
                .each_ref()
                .map(String::as_str),
        );
        let summary = json(&deployment.check(&messages, &["--summary", "json"]).stderr);
        assert_eq!(summary["unstamped"], 18, "{rest}");
    }
}

/// One message without its time, before all others: it does not set the clock, so that nothing is refused.
#[test]
fn a_first_message_without_its_time() {
    let deployment = Offline::new("t", "");
    let first = "{\"topic\":\"gear\",\"data\":{\"report\":1}}\n";
    let messages: String = (0..4).map(|i| triple(1_790_000_000 + 10 * i)).collect();
    let checked = deployment.check(&format!("{first}{messages}"), &[]);
    checked.expect_status(0).expect_stderr(&["some messages on gear (1) came without a time"]);
    assert!(
        !checked.stdout.contains("refused") && checked.stdout.contains("13 events"),
        "{}",
        checked.stdout
    );
}

/// Times of arrival in a part of the recording only, as when two recordings are put together: from where they begin
/// they tell how time passes.
#[test]
fn times_of_arrival_in_a_part_of_the_recording() {
    let deployment = Offline::new("t", "");
    let without: String = (0..4).map(|i| triple(10 * i + 1)).collect();
    let with: String = (4..8)
        .map(|i| {
            triple(10 * i + 1)
                .replace("\"data\"", &format!("\"arrival\":{},\"data\"", 1_790_000_000 + 10 * i))
        })
        .collect();
    for text in [format!("{without}{with}"), format!("{with}{}", without.replace("\"t\":", "\"t\":10"))] {
        let checked = deployment.check(&text, &[]);
        checked.expect_status(0);
        assert!(!checked.stdout.contains("refused"), "{}", checked.stdout);
        assert!(checked.stdout.contains("24 events"), "{}", checked.stdout);
    }
}

#[test]
fn verdicts_of_properties_that_wait_for_different_topics_come_by_time() {
    let deployment = Offline::new("t", "alignment: { max_wait: 1 s, absent_after: never }\n");
    // Within one block of lines both properties change at every third message.
    let messages: String = (0..20)
        .map(|i| triple(10 * i + 10).replace("\"report\":1", &format!("\"report\":{}", i % 2)))
        .collect();
    let checked = deployment.check(&messages, &["--format", "json", "--emit", "every"]);
    let verdicts =
        checked.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let times: Vec<(f64, String)> =
        verdicts.map(|v| (v["time"].as_f64().unwrap(), v["property"].as_str().unwrap().to_owned())).collect();
    assert!(times.is_sorted_by_key(|(time, _)| *time), "{times:?}");
    for property in ["known", "recent"] {
        assert!(times.iter().filter(|(_, of)| of == property).count() > 30, "{times:?}");
    }
}

#[test]
fn messages_beyond_the_wait() {
    let messages: String = (0..10)
        .map(|i| {
            let lines = triple(10 * i + 10);
            // The speed comes nine seconds late.
            lines.replace(&format!("\"t\":{},\"v\"", 10 * i + 10), &format!("\"t\":{},\"v\"", 10 * i + 1))
        })
        .collect();
    for (late, dropped) in [("late", 0), ("drop", 9), ("inconclusive", 0)] {
        let alignment = format!("alignment: {{ max_wait: 1 s, absent_after: never, late: {late} }}\n");
        let deployment = Offline::new("t", &alignment);
        let checked = deployment.check(&messages, &[]);
        checked.expect_stderr(&["speed: a message was late by"]);
        assert!(checked.stdout.contains("speed: 9 late"), "{}", checked.stdout);
        let summary = json(&deployment.check(&messages, &["--summary", "json", "--format", "json"]).stderr);
        let speed = &summary["alignment"]["topics"]["speed"];
        assert_eq!((&speed["late"], &speed["dropped"]), (&9.into(), &dropped.into()), "{summary}");
        assert_eq!(summary["alignment"]["late"], 9);
    }
}

#[test]
fn the_clock_of_the_machine_without_times_of_arrival() {
    let alignment = "alignment: { clock: system, max_wait: 1 s, absent_after: never }\n";
    let deployment = Offline::new("t", alignment);
    let messages: String = (0..4).map(|i| triple(10 * i + 1)).collect();
    let said =
        "12 messages have no time of arrival, which `clock: system` needs: waiting is measured by the times";
    deployment.check(&messages, &[]).expect_status(0).expect_stderr(&[said]);
    let with: String = (0..4)
        .map(|i| triple(10 * i + 1).replace("\"data\"", &format!("\"arrival\":{},\"data\"", 10 * i + 2)))
        .collect();
    let checked = deployment.check(&with, &[]);
    assert!(!checked.expect_status(0).stderr.contains("clock: system"), "{}", checked.stderr);
    // By the clock of the messages it makes no difference.
    let usual = Offline::new("t", "").check(&messages, &[]);
    assert!(!usual.expect_status(0).stderr.contains("time of arrival"), "{}", usual.stderr);
}

#[test]
fn a_line_that_is_cut() {
    let deployment = Offline::new("t", "");
    let whole: String = (1..4).map(triple).collect();
    let lines: Vec<&str> = whole.lines().collect();
    // At the end, as after a loss of power, and in the middle.
    for (before, after) in [(5, 0), (2, 3)] {
        let cut = &lines[before][..lines[before].len() - 8];
        let rest: String = lines[before + 1..][..after].iter().map(|line| format!("{line}\n")).collect();
        let line_break = if after > 0 { "\n" } else { "" };
        let text = format!("{}\n{cut}{line_break}{rest}", lines[..before].join("\n"));
        let checked = deployment.check(&text, &[]);
        let place = format!("trace.jsonl:{}:{}: ", before + 1, cut.len() + 1);
        checked.expect_status(3).expect_stderr(&[&place]);
        assert!(checked.stdout.contains(&format!("{before} events checked")), "{}", checked.stdout);
    }
}

/// Robots that share a pattern are one stream: said where a property cannot tell them apart.
#[test]
fn a_pattern_mixes_what_it_matches() {
    let folder = Folder::new();
    let schema = "{ x: float, robot: int }";
    let properties = "property fast = pose.x < 5\nproperty each for each r in (pose.robot) = pose.x < 5\n\
                      property known = forall r. pose{robot: r} -> once[0, 9 s] pose{robot: r}\nproperty seen = on(pose)\n\
                      property quick = forall r. pose{robot: r, x > 3} -> once[0, 9 s] pose{robot: r, x < 3} or pose.x < 9\n\
                      property late = forall r. pose{robot: r} -> pose.x < 9\n";
    let specification =
        folder.file("a.rondel", format!("topic pose \"fleet/+/pose\" {schema}\n{properties}"));
    let trace = folder.file(
        "a.jsonl",
        "{\"topic\":\"fleet/r1/pose\",\"time\":1,\"data\":{\"x\":6,\"robot\":1}}\n\
         {\"topic\":\"fleet/r2/pose\",\"time\":2,\"data\":{\"x\":1,\"robot\":2}}\n",
    );
    let warning = "warning: pose is the pattern fleet/+/pose: where several topics match, a message of one replaces \
                   the values of another in fast and 1 other property; `for each` over a field, or over a \
                   parameter of the address, as in \"fleet/{robot}/pose\", keeps them apart\n";
    let checked = rondel(["check", "-q", &specification, &trace]);
    assert!(checked.stderr.starts_with(warning), "{}", checked.stderr);
    let deployment = folder.file(
        "rondel.yaml",
        "specification: b.rondel\nmqtt: { broker: 127.0.0.1 }\ntopics: { pose: \"mqtt:fleet/+/pose\" }\n",
    );
    folder.file("b.rondel", format!("topic pose {schema}\n{properties}"));
    rondel(["validate", &deployment]).expect_status(0).expect_stderr(&[warning]);
    folder.file(
        "b.rondel",
        "topic pose { x: float, robot: int } property each for each r in (pose.robot) = pose.x < 5\n",
    );
    let quiet = rondel(["validate", &deployment]);
    assert_eq!(quiet.expect_status(0).stderr, "");
}
