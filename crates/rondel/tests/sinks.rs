//! A sink that accepts nothing holds up neither checking nor the other sinks, and its account adds up.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rondel_testkit::{Broker, Process};
use serde_json::Value;
use support::network::{arguments, free_endpoint, zenoh, zenoh_listening};
use support::{Folder, start_rondel};

/// A verdict is late if it comes so long after its message. A busy machine may take seconds; a sink that is waited for
/// would take ten.
const LATE: Duration = Duration::from_secs(5);
/// Messages of each part of a test, at 200 a second.
const COUNT: usize = 300;

/// A monitor with three sinks, its source, and a consumer on two of them.
struct Net {
    run: Process,
    feed: Process,
    on_zenoh: Process,
    on_mqtt: (Child, std::io::Lines<BufReader<ChildStdout>>),
    next: usize,
    /// The time from a message to its verdict on standard output.
    latencies: Vec<Duration>,
}

impl Net {
    fn start(broker: &Broker, folder: &Folder, settings: &str) -> Net {
        let endpoint = free_endpoint();
        folder.file("p.rondel", "topic state\nproperty alive = once[0, 1 min] on(state)\n");
        let deployment = folder.file(
            "rondel.yaml",
            format!(
                "specification: p.rondel\nzenoh: {{ mode: router, listen: \"{endpoint}\" }}\n\
                 mqtt: {{ broker: \"127.0.0.1:{}\" }}\ntopics: {{ state: zenoh:state }}\n\
                 verdicts: {{ emit: every, to: [stdout, mqtt:verdict, zenoh:verdict] }}\n{settings}",
                broker.port
            ),
        );
        let mut run = start_rondel(["run", &deployment, "--format", "json", "--summary", "json"]);
        run.wait_stderr("ready");
        let peer = zenoh("client", &endpoint);
        let mut on_zenoh = start_rondel(arguments(&["tap", "zenoh:verdict", "--format", "json"], &peer));
        on_zenoh.wait_stderr("ready");
        let mut on_mqtt = broker
            .client("mosquitto_sub", &["-q", "1", "-t", "verdict", "-t", "ready"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(on_mqtt.stdout.take().unwrap()).lines();
        // It has subscribed when its own retained message comes.
        let published = broker.client("mosquitto_pub", &["-t", "ready", "-r", "-m", "{}"]).status().unwrap();
        assert!(published.success() && lines.next().unwrap().unwrap() == "{}");
        let feed = ["publish", "--to", "zenoh:state", "--wait", "60", "--rate", "200"];
        let feed = start_rondel(arguments(&feed, &peer));
        let (next, latencies) = (0, Vec::new());
        Net { run, feed, on_zenoh, on_mqtt: (on_mqtt, lines), next, latencies }
    }

    /// Publishes messages, and takes their verdicts from standard output.
    fn check(&mut self) {
        for n in self.next..self.next + COUNT {
            self.feed.write(format!("{{\"n\":{n}}}\n").as_bytes());
        }
        for _ in 0..COUNT {
            let verdict: Value = serde_json::from_str(&self.run.take_stdout(1)[0]).unwrap();
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
            let latency = now - verdict["time"].as_f64().unwrap();
            self.latencies.push(Duration::from_secs_f64(latency.max(0.0)));
            assert_eq!(verdict["verdict"], "satisfied", "{verdict} {}", self.run.all_stderr_so_far());
        }
        self.next += COUNT;
    }

    /// Ends the run, and returns its status and its summary. Every verdict came in time, on standard output and Zenoh.
    fn end(&mut self) -> (Option<i32>, Value) {
        let longest = self.latencies.iter().max();
        assert!(longest < Some(&LATE), "{longest:?}");
        let steps = self.on_zenoh.take_stdout(self.next);
        let step = |line: &String| serde_json::from_str::<Value>(line).unwrap()["data"]["step"].as_u64();
        let step = |line: &String| step(line).unwrap_or_else(|| panic!("{line}"));
        assert!(steps.iter().map(step).eq(0..self.next as u64));
        self.feed.close_input();
        self.run.terminate();
        let line = self.run.wait_stderr("{\"");
        let summary: Value = serde_json::from_str(&line).unwrap();
        let lasted = |pause: &Value| pause["until"].as_f64().unwrap() - pause["from"].as_f64().unwrap();
        let pauses = summary["pauses"].as_array().unwrap();
        assert!(pauses.iter().all(|pause| lasted(pause) < LATE.as_secs_f64()), "{summary}");
        assert_eq!(summary["received"], self.next, "{summary}");
        assert!(summary["properties"][0]["withheld"].is_null(), "{summary}");
        let status = std::mem::replace(&mut self.run, start_rondel(["--version"])).finish().status;
        (status, summary)
    }

    /// The steps of verdicts that come from the broker.
    fn take_mqtt(&mut self, count: usize) -> Vec<u64> {
        let step = |line: String| serde_json::from_str::<Value>(&line).unwrap()["step"].as_u64().unwrap();
        // An earlier part of the test has left a retained message.
        let lines = self.on_mqtt.1.by_ref().map(Result::unwrap).filter(|line| line != "{}");
        lines.take(count).map(step).collect()
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        _ = self.on_mqtt.0.kill();
        _ = self.on_mqtt.0.wait();
    }
}

/// The number of messages that wait in files, and that were dropped.
fn left(summary: &Value) -> (u64, u64) {
    let waiting = summary["spooled"].as_array().unwrap().iter().map(|one| one["waiting"].as_u64().unwrap());
    (waiting.sum(), summary["dropped"].as_u64().unwrap())
}

#[test]
fn a_frozen_broker_does_not_hold_up_others_and_gets_every_verdict() {
    let test = "a_frozen_broker_does_not_hold_up_others_and_gets_every_verdict";
    let (Some(broker), folder) = (Broker::start(test), Folder::new()) else { return };
    // For less and for more than a message waits in memory.
    for wait in ["10 s", "300 ms"] {
        let mut net = Net::start(&broker, &folder, &format!("slow_consumer: {{ wait: {wait} }}\n"));
        net.check();
        broker.freeze();
        net.check();
        net.check();
        broker.unfreeze();
        net.check();
        assert!(net.take_mqtt(4 * COUNT).into_iter().eq(0..4 * COUNT as u64));
        let (status, summary) = net.end();
        assert_eq!((status, left(&summary)), (Some(0), (0, 0)), "{summary}");
        assert_eq!(summary["verdicts"], 3 * net.next, "{summary}");
        let kept = summary["spooled"].as_array().unwrap().len();
        assert_eq!(kept, usize::from(wait == "300 ms"), "{summary}");
    }
}

#[test]
fn a_killed_broker_does_not_hold_up_others_and_its_account_adds_up() {
    let test = "a_killed_broker_does_not_hold_up_others_and_its_account_adds_up";
    let (Some(mut broker), folder) = (Broker::start(test), Folder::new()) else { return };
    // Waiting messages are published when the broker is back, from memory or from a file, or are dropped.
    for (wait, then) in [("10 s", "drop"), ("500 ms", "spool"), ("500 ms", "drop")] {
        let settings = format!("slow_consumer: {{ wait: {wait}, then: {then} }}\n");
        let mut net = Net::start(&broker, &folder, &settings);
        net.check();
        broker.kill();
        net.check();
        net.check();
        broker.resume();
        // Long enough to connect again.
        (0..3).for_each(|_| net.check());
        let (status, summary) = net.end();
        let (waiting, dropped) = left(&summary);
        let published = summary["verdicts"].as_u64().unwrap();
        assert_eq!((waiting, published + dropped), (0, 3 * net.next as u64), "{summary}");
        let loses = (wait, then) == ("500 ms", "drop");
        let expected = if loses { Some(5) } else { Some(0) };
        assert_eq!((status, dropped > 0), (expected, loses), "{summary}");
    }
}

#[test]
fn next_run_publishes_verdicts_that_waited_for_a_killed_broker() {
    let test = "next_run_publishes_verdicts_that_waited_for_a_killed_broker";
    let (Some(mut broker), folder) = (Broker::start(test), Folder::new()) else { return };
    let mut net = Net::start(&broker, &folder, "");
    net.check();
    assert!(net.take_mqtt(COUNT).into_iter().eq(0..COUNT as u64));
    broker.kill();
    net.check();
    let (status, summary) = net.end();
    let (waiting, dropped) = left(&summary);
    assert_eq!((status, dropped), (Some(5), 0), "{summary}");
    // A few that the broker had taken it may not have acknowledged.
    assert!((COUNT as u64..COUNT as u64 + 30).contains(&waiting), "{summary}");
    broker.resume();
    let mut net = Net::start(&broker, &folder, "");
    net.run.wait_stderr("the consumer accepts");
    let (status, summary) = net.end();
    assert_eq!((status, left(&summary)), (Some(0), (0, 0)), "{summary}");
    assert_eq!(summary["spooled"][0]["published"], waiting, "{summary}");
}

/// The connection of a Zenoh subscriber that takes nothing is closed in the end, and no other subscriber waits for that.
#[test]
fn a_stopped_zenoh_subscriber_does_not_hold_up_others() {
    const COUNT: usize = 5000;
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let file = folder.file(
        "p.rondel",
        "topic state { id: string }\nproperty p for each id in (state.id) = historically[0, 1 s] on(state)\n",
    );
    let own = ["run", &file, "--emit", "every", "--topic", "zenoh:state", "--format", "json"];
    let further = ["--publish", "stdout", "--publish", "zenoh:verdict", "--summary", "json", "--resend", "0"];
    let wait = ["--slow-consumer", "10 s"];
    let listening = zenoh_listening("router", &endpoint);
    let mut run = start_rondel(arguments(&[&own[..], &further, &wait].concat(), &listening));
    run.wait_stderr("ready");
    let client = zenoh("client", &endpoint);
    let mut stopped = start_rondel(arguments(&["tap", "zenoh:verdict"], &client));
    stopped.wait_stderr("ready");
    let own = ["publish", "--to", "zenoh:state", "--rate", "300", "--wait", "60"];
    let mut feed = start_rondel(arguments(&own, &client));
    let mut input = feed.take_input();
    let writer = std::thread::spawn(move || {
        // Long enough to fill the buffers of a connection soon.
        let line = format!("{{\"id\":\"{}\"}}\n", "x".repeat(4000));
        (0..COUNT).for_each(|_| std::io::Write::write_all(&mut input, line.as_bytes()).unwrap());
        input
    });
    stopped.take_stdout(10);
    stopped.signal("STOP");
    let mut longest = Duration::ZERO;
    for _ in 0..COUNT {
        let verdict: Value = serde_json::from_str(&run.take_stdout(1)[0]).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let latency = now - verdict["time"].as_f64().unwrap();
        longest = longest.max(Duration::from_secs_f64(latency.max(0.0)));
    }
    let input = writer.join().unwrap();
    stopped.signal("CONT");
    run.terminate();
    let summary: Value = serde_json::from_str(&run.wait_stderr("{\"")).unwrap();
    drop(input);
    assert!(longest < LATE, "{longest:?} {summary}");
    assert_eq!((&summary["received"], &summary["lost"]), (&COUNT.into(), &0.into()), "{summary}");
    // A busy machine lets nothing run for a while.
    let lasted = |pause: &Value| pause["until"].as_f64().unwrap() - pause["from"].as_f64().unwrap();
    let pauses = summary["pauses"].as_array().unwrap();
    assert!(pauses.iter().all(|pause| lasted(pause) < LATE.as_secs_f64()), "{summary}");
    // The connection is closed, and that is counted.
    assert_eq!(summary["undelivered"][0]["sink"], "zenoh:verdict", "{summary}");
}
