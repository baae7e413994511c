//! `rondel publish`, and the report of unconfirmed messages at the end of publishing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::time::{Duration, Instant};

use rondel_testkit::Broker;
use support::network::{arguments, dds, dds_domain, free_endpoint, zenoh, zenoh_listening};
use support::{rondel_with_input, start_rondel};

/// The options of a participant at a broker.
fn at(broker: &Broker) -> Vec<String> {
    vec!["--mqtt-broker".to_owned(), format!("127.0.0.1:{}", broker.port)]
}

/// Each line that comes through a pipe is published while the pipe stays open, and a signal ends the wait for more.
fn lines_are_published_as_they_arrive(topic: &str, to: &[String], from: &[String]) {
    let mut tap = start_rondel(arguments(&["tap", topic], from));
    tap.wait_stderr("ready");
    let mut publisher = start_rondel(arguments(&["publish", "--to", topic, "--wait", "60"], to));
    for line in ["{\"n\":1}\n", "{\"n\":2}\n{\"n\":3}\n{\"n\":", "4}\n"] {
        publisher.write(line.as_bytes());
        let came = tap.take_stdout(line.matches('\n').count());
        assert!(came.iter().all(|message| message.starts_with("{\"n\":")), "{came:?}");
    }
    publisher.terminate();
    let mut stderr = publisher.wait_stderr("published 4 messages");
    stderr += &publisher.all_stderr_so_far();
    assert!(!stderr.contains("failed"), "{stderr}");
    publisher.finish().expect_status(0);
}

#[test]
fn lines_leave_a_slow_pipe_at_once_on_mqtt() {
    let Some(broker) = Broker::start("lines_leave_a_slow_pipe_at_once_on_mqtt") else { return };
    lines_are_published_as_they_arrive("mqtt:state", &at(&broker), &at(&broker));
}

#[test]
fn lines_leave_a_slow_pipe_at_once_on_dds() {
    let domain = dds_domain();
    lines_are_published_as_they_arrive("dds:state", &dds(&domain), &dds(&domain));
}

#[test]
fn lines_leave_a_slow_pipe_at_once_on_zenoh() {
    let endpoint = free_endpoint();
    lines_are_published_as_they_arrive(
        "zenoh:state",
        &zenoh("peer", &endpoint),
        &zenoh_listening("peer", &endpoint),
    );
}

/// A monitor that ends while its broker is stopped reports the number of unconfirmed verdicts.
#[test]
fn verdicts_that_a_stopped_broker_has_not_confirmed_are_counted() {
    let test = "verdicts_that_a_stopped_broker_has_not_confirmed_are_counted";
    let Some(broker) = Broker::start(test) else { return };
    let domain = dds_domain();
    let network = [at(&broker), dds(&domain)].concat();
    for format in ["json", "text"] {
        let own = ["run", "-f", "v", "--emit", "every", "--topic", "dds:state", "--summary", format];
        let to = ["--publish", "mqtt:verdict", "--publish", "stdout"];
        let mut run = start_rondel(arguments(&[&own[..], &to].concat(), &network));
        run.wait_stderr("ready");
        broker.freeze();
        let input = "{\"v\":true}\n".repeat(20);
        rondel_with_input(
            arguments(&["publish", "--to", "dds:state", "--wait", "60"], &dds(&domain)),
            input.as_bytes(),
        )
        .expect_status(0);
        run.take_stdout(20);
        run.terminate();
        let ended = run.finish();
        let expected = match format {
            "json" => "\"unconfirmed\":[{\"count\":20,\"sink\":\"mqtt:verdict\"}]",
            _ => "mqtt:verdict: 20 published, but not confirmed by the broker: they may be lost",
        };
        ended.expect_status(5).expect_stderr(&[expected]);
        broker.unfreeze();
    }
    // The same for `rondel publish`.
    let mut publisher = start_rondel(arguments(&["publish", "--to", "mqtt:state"], &at(&broker)));
    publisher.write(b"{}\n");
    let mut tap = start_rondel(arguments(&["tap", "mqtt:state", "--count", "1"], &at(&broker)));
    tap.wait_stderr("ready");
    publisher.write(b"{}\n");
    tap.finish();
    broker.freeze();
    publisher.write(b"{}\n{}\n{}\n");
    publisher.close_input();
    publisher
        .finish()
        .expect_status(5)
        .expect_stderr(&["mqtt:state: 3 published, but not confirmed by the broker"]);
}

#[test]
fn publisher_without_its_broker_ends_soon_after_a_signal() {
    let Some(mut broker) = Broker::start("publisher_without_its_broker_ends_soon_after_a_signal") else {
        return;
    };
    let mut publisher = start_rondel(arguments(&["publish", "--to", "mqtt:state"], &at(&broker)));
    let mut tap = start_rondel(arguments(&["tap", "mqtt:state", "--count", "1"], &at(&broker)));
    tap.wait_stderr("ready");
    publisher.write(b"{}\n");
    tap.finish();
    broker.freeze();
    publisher.write(b"{}\n");
    publisher.close_input();
    // It waits for the broker by now.
    std::thread::sleep(Duration::from_secs(1));
    broker.kill();
    let begun = Instant::now();
    publisher.terminate();
    let ended = publisher.finish();
    assert!(begun.elapsed() < Duration::from_secs(7), "{:?}: {}", begun.elapsed(), ended.stderr);
    ended.expect_status(5);
}
