//! Groups: two runs of one specification, of which one publishes its verdicts and the other one takes over.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod gates;

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rondel_testkit::{Broker, Process};
use serde_json::Value;
use support::network::{arguments, dds, dds_domain, free_endpoint, router, zenoh};
use support::{Folder, rondel, start_rondel};

/// Time for a publisher to discover all subscribers.
const DISCOVERY: Duration = Duration::from_secs(1);
/// Time limit for a verdict.
const LIMIT: Duration = Duration::from_secs(60);

/// A network with its prefix of addresses, its section of deployments, and its options.
struct Net {
    prefix: &'static str,
    section: String,
    options: Vec<String>,
}

impl Net {
    fn zenoh(endpoint: &str) -> Net {
        let section = format!("zenoh: {{ mode: client, connect: \"{endpoint}\" }}\n");
        Net { prefix: "zenoh", section, options: zenoh("client", endpoint) }
    }

    fn mqtt(broker: &Broker) -> Net {
        let at = format!("127.0.0.1:{}", broker.port);
        let section = format!("mqtt: {{ broker: \"{at}\" }}\n");
        Net { prefix: "mqtt", section, options: vec!["--mqtt-broker".to_owned(), at] }
    }

    fn dds() -> Net {
        let domain = dds_domain();
        let section = format!("dds: {{ domain: {domain}, interface: lo }}\n");
        Net { prefix: "dds", section, options: dds(&domain) }
    }

    fn start(&self, own: &[&str]) -> Process {
        start_rondel(arguments(own, &self.options))
    }

    /// A deployment of a member in a folder of its own.
    fn deployment(&self, folder: &Folder, group: &str, formula: &str) -> String {
        let Net { prefix, section, .. } = self;
        let text = format!(
            "formula: {formula}\n{section}topics: {{ trace: {{ source: \"{prefix}:s\", time: t }} }}\n\
             alignment: {{ policy: arrival, behind: never }}\nverdicts: {{ emit: every, to: \"{prefix}:v\" }}\ngroup: {group}\n"
        );
        folder.file("rondel.yaml", text)
    }

    fn tap(&self) -> Process {
        self.tap_of("v")
    }

    fn tap_of(&self, topic: &str) -> Process {
        let mut tap = self.start(&["tap", &format!("{}:{topic}", self.prefix), "--format", "json"]);
        tap.wait_stderr("ready");
        tap
    }

    /// A publisher of messages, which has discovered the subscribers.
    fn feed(&self) -> Process {
        let feed = self.start(&["publish", "--to", &format!("{}:s", self.prefix), "--wait", "60"]);
        sleep(DISCOVERY);
        feed
    }
}

const GROUP: &str = "{ name: g, lease: 500 ms }";
const FORMULA: &str = "v < 1000";

/// Two members, of which the first is active, and their folders and deployments.
struct Pair {
    active: Process,
    standby: Process,
    deployment: String,
    folders: [Folder; 2],
}

fn pair(net: &Net, formula: &str) -> Pair {
    pair_in(net, GROUP, formula)
}

fn pair_in(net: &Net, group: &str, formula: &str) -> Pair {
    let folders = [Folder::new(), Folder::new()];
    let [first, second] = [0, 1].map(|at| net.deployment(&folders[at], group, formula));
    let mut active = start_rondel(["run", &first, "--summary", "json"]);
    active.wait_stderr("active in epoch 1: no other member is");
    let mut standby = start_rondel(["run", &second, "--summary", "json"]);
    standby.wait_stderr("standby: member");
    active.wait_stderr("stands by");
    Pair { active, standby, deployment: second, folders }
}

fn send(feed: &mut Process, times: std::ops::Range<u64>) {
    for time in times {
        feed.write(format!("{{\"t\":{time},\"v\":{time}}}\n").as_bytes());
    }
}

/// The verdicts by their times, until there is one for `last`.
fn verdicts(tap: &mut Process, last: u64, seen: &mut Vec<Value>) {
    let deadline = Instant::now() + LIMIT;
    while !seen.iter().any(|verdict| verdict["time"] == last) {
        assert!(Instant::now() < deadline, "no verdict at {last}: {seen:?}");
        let Some(line) = tap.stdout_within(Duration::from_secs(1)) else { continue };
        let line: Value = serde_json::from_str(&line).unwrap();
        seen.push(line["data"].clone());
    }
}

/// Checks that no verdict is missing, and that repeated ones have equal ids.
fn check_complete(seen: &[Value], times: std::ops::Range<u64>) {
    let all: BTreeSet<u64> = seen.iter().map(|verdict| verdict["time"].as_u64().unwrap()).collect();
    assert_eq!(all, times.collect(), "{seen:?}");
    let mut ids: BTreeMap<u64, &Value> = BTreeMap::new();
    for verdict in seen {
        let id = ids.entry(verdict["time"].as_u64().unwrap()).or_insert(&verdict["id"]);
        assert_eq!(*id, &verdict["id"], "{seen:?}");
        assert!(verdict["id"].is_string(), "{verdict}");
    }
}

fn standby_takes_over_from_a_killed_member(net: &Net) {
    let mut tap = net.tap();
    let Pair { mut active, mut standby, folders: _folders, .. } = pair(net, FORMULA);
    let (mut feed, mut seen) = (net.feed(), Vec::new());
    send(&mut feed, 0..10);
    verdicts(&mut tap, 9, &mut seen);
    assert!(seen.iter().all(|verdict| verdict["epoch"] == 1), "{seen:?}");
    active.kill();
    // No member is active for a lease.
    send(&mut feed, 10..20);
    standby.wait_stderr("active in epoch 2: no sign of life of member");
    send(&mut feed, 20..30);
    verdicts(&mut tap, 29, &mut seen);
    check_complete(&seen, 0..30);
    let late = seen.iter().filter(|verdict| verdict["time"].as_u64() >= Some(10));
    assert!(late.map(|verdict| &verdict["epoch"]).all(|epoch| epoch == 2), "{seen:?}");
    standby.terminate();
    let ended = standby.finish();
    ended.expect_status(0);
    let summary: Value = serde_json::from_str(ended.stderr.lines().last().unwrap()).unwrap();
    let state = &summary["standby"];
    assert_eq!(
        (&state["state"], &state["epoch"], &state["take_overs"]),
        (&"active".into(), &2.into(), &1.into())
    );
}

#[test]
fn standby_takes_over_from_a_killed_member_on_zenoh() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    standby_takes_over_from_a_killed_member(&Net::zenoh(&endpoint));
}

#[test]
fn standby_takes_over_from_a_killed_member_on_mqtt() {
    let Some(broker) = Broker::start("standby_takes_over_from_a_killed_member_on_mqtt") else { return };
    standby_takes_over_from_a_killed_member(&Net::mqtt(&broker));
}

#[test]
fn standby_takes_over_from_a_killed_member_on_dds() {
    standby_takes_over_from_a_killed_member(&Net::dds());
}

#[test]
fn survivor_on_dds_stays_active_without_a_standby() {
    let net = Net::dds();
    let mut tap = net.tap();
    let Pair { mut active, mut standby, folders: _folders, .. } = pair(&net, FORMULA);
    let (mut feed, mut seen) = (net.feed(), Vec::new());
    active.kill();
    standby.wait_stderr("active in epoch 2: no sign of life of member");
    // Its signs are not acknowledged by the killed one, which is there for the network until its lease of 10 s ends.
    for time in 0..25 {
        send(&mut feed, time..time + 1);
        verdicts(&mut tap, time, &mut seen);
        assert_eq!(tap.stdout_within(Duration::from_millis(200)), None);
    }
    standby.terminate();
    let ended = standby.finish();
    ended.expect_status(0);
    assert!(!ended.stderr.contains("sign of life: a consumer does not accept"), "{}", ended.stderr);
    let summary: Value = serde_json::from_str(ended.stderr.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["standby"]["epoch"], &summary["standby"]["take_overs"]), (&2.into(), &1.into()));
}

#[test]
fn signs_are_printed_on_dds() {
    let (net, folder) = (Net::dds(), Folder::new());
    let mut tap = net.tap_of("rondel/group/g");
    let _run = start_rondel(["run", &net.deployment(&folder, GROUP, FORMULA)]);
    let deadline = Instant::now() + LIMIT;
    loop {
        assert!(Instant::now() < deadline, "no sign");
        let line = tap.stdout_within(Duration::from_secs(1));
        if line.is_some_and(|line| line.contains("\"group\":\"g\"")) {
            break;
        }
    }
}

#[test]
fn member_that_stood_still_publishes_nothing() {
    let endpoint = free_endpoint();
    let (_router, net) = (router(&endpoint), Net::zenoh(&endpoint));
    let mut tap = net.tap();
    let Pair { mut active, mut standby, folders: _folders, .. } = pair(&net, FORMULA);
    let (mut feed, mut seen) = (net.feed(), Vec::new());
    send(&mut feed, 0..10);
    verdicts(&mut tap, 9, &mut seen);
    active.signal("STOP");
    // These wait for it.
    send(&mut feed, 10..20);
    standby.wait_stderr("active in epoch 2");
    verdicts(&mut tap, 19, &mut seen);
    active.signal("CONT");
    // Also if it stood still while it sent a sign.
    active.wait_stderr("fenced: ");
    active.wait_stderr("standby: member");
    send(&mut feed, 20..30);
    verdicts(&mut tap, 29, &mut seen);
    check_complete(&seen, 0..30);
    let late = seen.iter().filter(|verdict| verdict["time"].as_u64() >= Some(10));
    assert!(late.map(|verdict| &verdict["epoch"]).all(|epoch| epoch == 2), "{seen:?}");
    // And back: the first one follows now.
    standby.kill();
    active.wait_stderr("active in epoch 3");
    send(&mut feed, 30..40);
    verdicts(&mut tap, 39, &mut seen);
    check_complete(&seen, 0..40);
}

#[test]
fn promotion_hands_over_without_a_gap() {
    let endpoint = free_endpoint();
    let (_router, net) = (router(&endpoint), Net::zenoh(&endpoint));
    let mut tap = net.tap();
    let Pair { mut active, mut standby, deployment, folders: _folders } = pair(&net, FORMULA);
    let (mut feed, mut seen) = (net.feed(), Vec::new());
    let status = rondel(["standby", "status", &deployment]);
    status.expect_status(0);
    assert!(
        status.stdout.starts_with("active    member") && status.stdout.contains("\nstandby   member"),
        "{}",
        status.stdout
    );
    send(&mut feed, 0..10);
    rondel(["standby", "promote", &deployment]).expect_status(0).expect_stderr(&["is active in epoch 2"]);
    send(&mut feed, 10..20);
    active.wait_stderr("handed over to member");
    active.wait_stderr("standby: member");
    standby.wait_stderr("has handed over");
    verdicts(&mut tap, 19, &mut seen);
    check_complete(&seen, 0..20);
    // The end of the active member is a handover, too.
    standby.terminate();
    active.wait_stderr("has ended");
    standby.finish().expect_status(0);
    send(&mut feed, 20..30);
    verdicts(&mut tap, 29, &mut seen);
    check_complete(&seen, 0..30);
    rondel(["standby", "promote", &deployment]).expect_status(4).expect_stderr(&["there is no standby"]);
}

#[test]
fn commands_at_the_same_time_hand_over_once() {
    let endpoint = free_endpoint();
    let (_router, net) = (router(&endpoint), Net::zenoh(&endpoint));
    let pair = pair(&net, FORMULA);
    let epoch = || {
        let status = rondel(["standby", "status", &pair.deployment, "--format", "json"]);
        status.expect_status(0);
        let mut members = status.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        members.find(|member| member["state"] == "active").map(|member| member["epoch"].clone())
    };
    // The later one sees the take-over that the other one requests while it still looks at the members.
    for (pause_ms, expected) in [(0_u64, 2), (250, 3)] {
        let commands = [0_u64, 1].map(|at| {
            sleep(Duration::from_millis(at * pause_ms));
            start_rondel(["standby", "promote", &pair.deployment])
        });
        for command in commands {
            command.finish().expect_status(0).expect_stderr(&["epoch"]);
        }
        assert_eq!(epoch(), Some(Value::from(expected)), "{pause_ms} ms");
    }
}

#[test]
fn one_of_two_that_start_together_is_active() {
    let endpoint = free_endpoint();
    let (_router, net) = (router(&endpoint), Net::zenoh(&endpoint));
    let folders = [Folder::new(), Folder::new()];
    let deployments = [0, 1].map(|at| net.deployment(&folders[at], GROUP, FORMULA));
    let members = [0, 1].map(|at| start_rondel(["run", &deployments[at], "--prefer", &at.to_string()]));
    let deadline = Instant::now() + LIMIT;
    loop {
        let status = rondel(["standby", "status", &deployments[0], "--format", "json"]);
        let members: Vec<Value> =
            status.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let count = |state: &str| members.iter().filter(|member| member["state"] == state).count();
        if status.status == Some(0) && (count("active"), count("standby")) == (1, 1) {
            break;
        }
        assert!(Instant::now() < deadline, "{}", status.stdout);
    }
    members[0].signal("STOP");
    std::thread::sleep(Duration::from_millis(800));
    members[0].signal("CONT");
    let process = format!("process {} ", members[0].id());
    loop {
        let status = rondel(["standby", "status", &deployments[0]]).stdout;
        let line = status.lines().find(|line| line.contains(&process));
        if line.is_some_and(|line| line.contains("  stood still until ")) {
            break;
        }
        assert!(Instant::now() < deadline, "{status}");
    }
}

#[test]
fn member_whose_partner_never_comes_is_active() {
    let endpoint = free_endpoint();
    let (_router, net) = (router(&endpoint), Net::zenoh(&endpoint));
    let (folder, mut tap) = (Folder::new(), net.tap());
    let deployment = net.deployment(&folder, GROUP, FORMULA);
    rondel(["standby", "status", &deployment]).expect_status(5).expect_stderr(&["no member of group 'g'"]);
    let mut run = start_rondel(["run", &deployment]);
    run.wait_stderr("active in epoch 1");
    let (mut feed, mut seen) = (net.feed(), Vec::new());
    send(&mut feed, 0..3);
    verdicts(&mut tap, 2, &mut seen);
    check_complete(&seen, 0..3);
    rondel(["standby", "status", &deployment]).expect_status(4);
    run.wait_stderr("no member stands by");
    run.terminate();
    run.finish().expect_status(0).expect_stderr(&["group 'g': active at the end, in epoch 1; active 1 time"]);
}

/// A formula that depends on all earlier messages.
const PAST: &str = "historically(v < 1000)";

/// An active member that has received a violation of [`PAST`] and two further messages, the deployment of another member,
/// their folders, the publisher, and the verdicts so far.
struct Earlier {
    active: Process,
    deployment: String,
    feed: Process,
    seen: Vec<Value>,
    _folders: [Folder; 2],
}

fn earlier(net: &Net, tap: &mut Process, late_formula: &str) -> Earlier {
    let folders = [Folder::new(), Folder::new()];
    let first = net.deployment(&folders[0], GROUP, PAST);
    let deployment = net.deployment(&folders[1], GROUP, late_formula);
    let mut active = start_rondel(["run", &first]);
    active.wait_stderr("active in epoch 1");
    let (mut feed, mut seen) = (net.feed(), Vec::new());
    feed.write(b"{\"t\":0,\"v\":5000}\n");
    send(&mut feed, 1..3);
    verdicts(tap, 2, &mut seen);
    assert!(seen.iter().all(|verdict| verdict["verdict"] == "violated"), "{seen:?}");
    Earlier { active, deployment, feed, seen, _folders: folders }
}

fn late_standby_takes_the_state(net: &Net) {
    let mut tap = net.tap();
    let Earlier { mut active, deployment, mut feed, mut seen, _folders } = earlier(net, &mut tap, PAST);
    let mut standby = start_rondel(["run", &deployment, "--summary", "json"]);
    let (mut time, deadline) = (3, Instant::now() + LIMIT);
    // Messages come all the while.
    while !standby.all_stderr_so_far().contains("state taken from member") {
        assert!(Instant::now() < deadline, "{}", standby.all_stderr_so_far());
        send(&mut feed, time..time + 1);
        time += 1;
        sleep(Duration::from_millis(20));
    }
    send(&mut feed, time..time + 5);
    verdicts(&mut tap, time + 4, &mut seen);
    active.kill();
    standby.wait_stderr("active in epoch 2");
    send(&mut feed, time + 5..time + 10);
    verdicts(&mut tap, time + 9, &mut seen);
    check_complete(&seen, 0..time + 10);
    // Each message is counted once, and the violation is one from before the start of this member.
    for verdict in seen.iter().filter(|verdict| verdict["epoch"] == 2) {
        assert_eq!(
            (&verdict["verdict"], &verdict["step"]),
            (&"violated".into(), &verdict["time"]),
            "{verdict}"
        );
    }
    standby.terminate();
    let ended = standby.finish();
    ended.expect_status(0);
    let summary: Value = serde_json::from_str(ended.stderr.lines().last().unwrap()).unwrap();
    let state = &summary["standby"];
    assert_eq!((&state["late"], &state["taken"]["uncertain"]), (&false.into(), &serde_json::json!([])));
    assert!(state["taken"]["step"].as_u64() >= Some(3), "{state}");
    assert!(state["taken"]["held"].as_u64() > Some(0), "{state}");
}

#[test]
fn late_standby_takes_the_state_on_zenoh() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    late_standby_takes_the_state(&Net::zenoh(&endpoint));
}

#[test]
fn late_standby_takes_the_state_on_mqtt() {
    let Some(broker) = Broker::start("late_standby_takes_the_state_on_mqtt") else { return };
    late_standby_takes_the_state(&Net::mqtt(&broker));
}

#[test]
fn late_standby_takes_the_state_on_dds() {
    late_standby_takes_the_state(&Net::dds());
}

#[test]
fn late_standby_without_the_state_is_inconclusive_about_earlier_messages() {
    let endpoint = free_endpoint();
    let (_router, net) = (router(&endpoint), Net::zenoh(&endpoint));
    let mut tap = net.tap();
    let Earlier { mut active, deployment, mut feed, mut seen, _folders } = earlier(&net, &mut tap, PAST);
    let mut standby = start_rondel(["run", &deployment]);
    // The state is requested a second later: a lease is shorter.
    standby.wait_stderr("takes the state of member");
    active.kill();
    standby.wait_stderr("this member takes over before it has the state of member");
    send(&mut feed, 3..4);
    verdicts(&mut tap, 3, &mut seen);
    let last = seen.iter().rfind(|verdict| verdict["time"] == 3).unwrap();
    assert_eq!(last["verdict"], "inconclusive", "an earlier message may have violated it: {last}");
    standby.terminate();
    standby.finish().expect_status(0).expect_stderr(&["earlier messages were not received"]);
}

#[test]
fn late_standby_that_ends_without_the_state_is_inconclusive() {
    let endpoint = free_endpoint();
    let (_router, net) = (router(&endpoint), Net::zenoh(&endpoint));
    let mut tap = net.tap();
    let Earlier { active: _active, deployment, mut feed, mut seen, _folders } = earlier(&net, &mut tap, PAST);
    let mut standby = start_rondel(["run", &deployment, "--summary", "json"]);
    // The state is requested a second later.
    standby.wait_stderr("takes the state of member");
    send(&mut feed, 3..4);
    verdicts(&mut tap, 3, &mut seen);
    standby.terminate();
    let ended = standby.finish();
    ended.expect_status(0);
    let summary: Value = serde_json::from_str(ended.stderr.lines().last().unwrap()).unwrap();
    let is_late = summary["standby"]["late"].as_bool().unwrap();
    let expected = if is_late { "inconclusive" } else { "violated" };
    if summary["received"].as_u64() > Some(0) {
        assert_eq!(summary["properties"][0]["verdict"], expected, "{summary}");
    }
}

#[test]
fn state_of_another_specification_is_not_taken() {
    let endpoint = free_endpoint();
    let (_router, net) = (router(&endpoint), Net::zenoh(&endpoint));
    let mut tap = net.tap();
    let Earlier { active: _active, deployment, _folders, .. } =
        earlier(&net, &mut tap, "historically(v < 2000)");
    let mut standby = start_rondel(["run", &deployment]);
    standby.wait_stderr("is that of another specification; this member receives messages since");
    let status = rondel(["standby", "status", &deployment]);
    status.expect_status(0);
    assert!(status.stdout.contains("late, without earlier messages"), "{}", status.stdout);
    let refused = rondel(["standby", "promote", &deployment]);
    refused
        .expect_status(4)
        .expect_stderr(&["stands by without the state of earlier messages", "`--member "]);
    standby.terminate();
    standby.finish().expect_status(0).expect_stderr(&["earlier messages were not received"]);
}

#[test]
fn two_late_standbys_take_the_state() {
    let endpoint = free_endpoint();
    let (_router, net) = (router(&endpoint), Net::zenoh(&endpoint));
    let mut tap = net.tap();
    let Earlier { active: _active, deployment, _folders, .. } = earlier(&net, &mut tap, PAST);
    let standbys = [0, 1].map(|_| start_rondel(["run", &deployment]));
    for mut standby in standbys {
        standby.wait_stderr("state taken from member");
    }
}

#[test]
fn mistakes_of_groups_are_found() {
    let folder = Folder::new();
    for (group, said) in [
        ("{ lease: 1 s }", "`group` needs `name`"),
        ("{ name: a b }", "letters, digits, `_` and `-`"),
        ("true", "`group` must be text, such as braking, not a boolean"),
        ("12", "`group` must be text, such as braking, not a number"),
        ("{ name: 1.5 }", "`name` must be text, such as braking, not a number"),
        ("[a, b]", "`group` must be text, not a list"),
        ("", "`group` has no value"),
        ("{ name: g, lease: 5 }", "`lease` must be a duration such as 100 ms; 5 has no unit"),
        ("{ name: g, lease: 5 ms }", "`lease` must be from 15 ms to 60 s"),
        ("{ name: g, prefer: x }", "`prefer` must be a whole number"),
        ("{ name: g, network: kafka }", "too late for a lease"),
        ("{ name: g, network: can }", "`network` must be zenoh, mqtt or dds"),
        ("{ name: g, priority: 1 }", "group has no setting 'priority'; write `prefer: N`"),
        ("g\nreload: watch", "is not reloaded"),
        ("g\ndurability: exactly", "cannot be used together"),
    ] {
        let text = format!(
            "formula: v\ntopics: {{ trace: zenoh:t }}\nverdicts: {{ to: zenoh:v }}\ngroup: {group}\n"
        );
        let deployment = folder.file("rondel.yaml", text);
        rondel(["validate", &deployment]).expect_status(2).expect_stderr(&[said]);
    }
    let text = "formula: v\ntopics: { trace: zenoh:t }\nverdicts: { to: stdout }\ngroup: g\n";
    let deployment = folder.file("rondel.yaml", text);
    rondel(["validate", &deployment]).expect_stderr(&["`group` needs `network`"]);
    let text = "formula: v\ntopics: { trace: zenoh:t }\nverdicts: { to: zenoh:v }\n";
    let deployment = folder.file("rondel.yaml", text);
    rondel(["run", &deployment, "--prefer", "1"]).expect_status(2).expect_stderr(&["add `group`"]);
    rondel(["standby", "promote", &deployment]).expect_status(2).expect_stderr(&["there is no group"]);
    rondel(["standby", "promote", &deployment, "--member", "12"]).expect_status(2);
}
