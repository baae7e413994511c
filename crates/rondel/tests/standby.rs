//! Groups: two runs of one specification, of which one publishes its verdicts and the other one takes over.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod gates;
mod late;
mod operating;

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rondel_testkit::{Broker, Process, Proxy};
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
        Net::mqtt_at(broker.port)
    }

    fn mqtt_at(port: u16) -> Net {
        let at = format!("127.0.0.1:{port}");
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
    pair_on([net, net], group, formula)
}

/// The same with a network for each member.
fn pair_on(nets: [&Net; 2], group: &str, formula: &str) -> Pair {
    let folders = [Folder::new(), Folder::new()];
    let [first, second] = [0, 1].map(|at| nets[at].deployment(&folders[at], group, formula));
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
fn member_without_its_broker_is_replaced_and_stands_by_afterwards() {
    let test = "member_without_its_broker_is_replaced_and_stands_by_afterwards";
    let Some(broker) = Broker::start(test) else { return };
    let proxy = Proxy::to(broker.port);
    let net = Net::mqtt(&broker);
    let mut tap = net.tap();
    let nets = [&Net::mqtt_at(proxy.port), &net];
    let Pair { mut active, mut standby, folders: _folders, .. } = pair_on(nets, GROUP, FORMULA);
    let (mut feed, mut seen) = (net.feed(), Vec::new());
    send(&mut feed, 0..10);
    verdicts(&mut tap, 9, &mut seen);
    proxy.interrupt();
    active.wait_stderr("fenced: no sign of life could be sent in time; verdicts are withheld");
    standby.wait_stderr("active in epoch 2: no sign of life of member");
    send(&mut feed, 10..20);
    verdicts(&mut tap, 19, &mut seen);
    // Both say what happened once they reach each other again.
    proxy.resume();
    active.wait_stderr("standby: member");
    standby.wait_stderr("stands by");
    // It takes the state for the messages that it missed.
    active.wait_stderr("a connection was lost until ");
    active.wait_stderr("state taken from member");
    send(&mut feed, 20..30);
    verdicts(&mut tap, 29, &mut seen);
    check_complete(&seen, 0..30);
    let late = seen.iter().filter(|verdict| verdict["time"].as_u64() >= Some(10));
    assert!(late.map(|verdict| &verdict["epoch"]).all(|epoch| epoch == 2), "{seen:?}");
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
