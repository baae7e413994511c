//! Fail-over on DDS, seen by a monitor: two publishers with exclusive ownership, of which the stronger one is killed,
//! stopped, and ends in order.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use std::io::Read as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rondel_net::adapter::Publisher as _;
use rondel_net::dds::{
    DeclaredTopic, Ownership, Participant, PublisherSettings, Settings, TopicQos, TopicType,
};
use rondel_testkit::{LIMIT, Process};
use serde_json::Value;

use crate::support::network::dds_domain;
use crate::support::{Folder, start_rondel};

const DOMAIN: &str = "RONDEL_TEST_DOMAIN";
const STRENGTH: &str = "RONDEL_TEST_STRENGTH";

const NAME: &str = "control/command";
/// The lease of a publisher's participant.
const LEASE: Duration = Duration::from_millis(200);
/// The time between two messages of a publisher.
const PERIOD: Duration = Duration::from_millis(10);
/// The greatest time without an owner, in seconds: the test may share its processors with others.
const GAP: f64 = 2.0;

/// Publishes until its standard input ends: a child of the test below.
#[test]
#[ignore = "a child process of another test"]
fn child_publishes() {
    let (Ok(domain), Ok(strength)) = (std::env::var(DOMAIN), std::env::var(STRENGTH)) else { return };
    let settings = Settings {
        domain: domain.parse().unwrap(),
        interface: Some("lo".into()),
        lease: Some(LEASE),
        ..Settings::default()
    };
    let participant = Participant::open(&settings).unwrap();
    let qos = TopicQos {
        ownership: Some(Ownership::Exclusive),
        strength: Some(strength.parse().unwrap()),
        ..TopicQos::default()
    };
    let of = DeclaredTopic { topic_type: &TopicType::default(), qos: &qos, schema: None };
    let publisher = participant.publisher_as(NAME, of, PublisherSettings::default()).unwrap();
    assert!(publisher.wait_matched(LIMIT));
    println!("matched");
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        over.store(true, Ordering::Relaxed);
    });
    let payload = format!("{{\"steering\":0.{strength}}}");
    while !is_over.load(Ordering::Relaxed) {
        publisher.publish(payload.as_bytes()).unwrap();
        std::thread::sleep(PERIOD);
    }
}

/// Starts a publisher, and waits until it has found a subscriber.
fn publisher(domain: &str, strength: i32) -> Process {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "ownership::child_publishes", "--ignored", "--nocapture"])
        .env(DOMAIN, domain)
        .env(STRENGTH, strength.to_string());
    let mut publisher = Process::start(command);
    publisher.wait_stdout("matched");
    publisher
}

/// Seconds since the Unix epoch.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// The owners of the topic that `rondel tap` reports.
struct Owners {
    tap: Process,
    /// Number of times at which the topic had no owner between two owners.
    gaps: usize,
}

impl Owners {
    /// Waits for the next event of the owner. Returns the owner, empty for none, and the time.
    fn next(&mut self) -> (String, f64) {
        let line = self.tap.wait_stdout("\"event\":\"owner\"");
        let event: Value = serde_json::from_str(&line).unwrap();
        (event["publisher"].as_str().unwrap().to_owned(), event["time"].as_f64().unwrap())
    }

    /// Waits until another publisher owns the topic than `known`, from a time on. Returns it.
    fn other(&mut self, known: &str, from: f64) -> String {
        let mut lost = None;
        loop {
            let (owner, time) = self.next();
            if owner.is_empty() {
                lost = Some(time);
            } else if owner != known && time >= from {
                if let Some(lost) = lost.filter(|lost| *lost >= from) {
                    self.gaps += 1;
                    assert!(
                        (0.0..GAP).contains(&(time - lost)),
                        "the topic had no owner for {} s",
                        time - lost
                    );
                }
                return owner;
            }
        }
    }
}

#[test]
fn a_monitor_sees_which_publisher_owns_a_topic() {
    let (domain, folder) = (dds_domain(), Folder::new());
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ownership.rondel");
    let example = std::fs::read_to_string(example).unwrap();
    let specification = example.replace("const GAP = 100 ms", &format!("const GAP = {GAP} s"));
    assert_ne!(specification, example);
    folder.file("ownership.rondel", specification);
    let deployment = format!(
        "specification: ownership.rondel\ndds: {{ domain: {domain}, interface: lo }}\n\
         topics: {{ command: {{ source: 'dds:{NAME}', qos: {{ ownership: exclusive }} }} }}\n"
    );
    let file = folder.file("rondel.yaml", deployment);
    let mut run = start_rondel(["run", &file]);
    run.wait_stderr("ready");
    let tap = start_rondel(["tap", "--format", "json", "--events", &file]);
    let mut owners = Owners { tap, gaps: 0 };

    let mut killed = publisher(&domain, 2);
    let first = owners.other("", 0.0);
    let mut weak = publisher(&domain, 1);
    let since = now();
    killed.kill();
    let weaker = owners.other(&first, since);
    run.wait_stdout("violated      owned");

    let mut strong = publisher(&domain, 2);
    let second = owners.other(&weaker, 0.0);
    assert_ne!(second, first, "a new publisher has an id of its own");
    let since = now();
    strong.signal("STOP");
    assert_eq!(owners.other(&second, since), weaker);
    strong.signal("CONT");
    assert_eq!(owners.other(&weaker, since), second, "it is the same publisher as before");

    let since = now();
    strong.close_input();
    assert_eq!(owners.other(&second, since), weaker);
    strong.finish().expect_status(0);
    assert!(owners.gaps > 0, "the end of an owner was never reported");

    // The other one is gone, too: none takes over.
    let since = now();
    weak.kill();
    loop {
        let (owner, time) = owners.next();
        if owner.is_empty() && time >= since {
            assert!(time - since < LIMIT.as_secs_f64());
            break;
        }
    }
    run.wait_stdout("violated      taken_over");
    run.terminate();
    let run = run.finish();
    // A publisher that stood still may have sent messages that were not seen.
    run.expect_status(5);
    let count = |property: &str| {
        let line = format!("violated      {property} ");
        run.stdout.lines().filter(|of| of.contains(&line)).count()
    };
    assert_eq!(count("taken_over"), 1, "{}", run.stdout);
    assert!(count("owned") >= 2 && count("settled") >= 1 && count("fresh") >= 1, "{}", run.stdout);
    owners.tap.terminate();
    owners.tap.finish();
}
