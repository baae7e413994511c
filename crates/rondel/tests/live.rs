//! Rondel on real networks, all on loopback: Rondel's own publisher and subscriber at both ends.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use rondel_testkit::Process;
use support::network::{arguments, dds, dds_domain, free_endpoint, router, zenoh, zenoh_listening};
use support::{Emitted, Finished, Folder, letter, letters, rondel, rondel_with_input, start_rondel};

/// Enough that queues fill and batches are formed, few enough for an unoptimised build.
const MESSAGES: usize = 3000;

/// Messages whose `v` is false at every seventh, and the letters of the verdicts on `v`.
fn messages() -> (String, String) {
    let holds = |i: usize| !i.is_multiple_of(7);
    let text = (0..MESSAGES).map(|i| format!("{{\"n\":{i},\"v\":{}}}\n", holds(i))).collect();
    (text, (0..MESSAGES).map(|i| if holds(i) { 'T' } else { 'F' }).collect())
}

/// Publishes `input` and waits for the end; everything must have been published.
#[track_caller]
fn publish(to: &str, network: &[String], input: impl AsRef<[u8]>) {
    let input = input.as_ref();
    let own = ["publish", "--to", to, "--wait", "60", "--slow-consumer", "10 s"];
    let finished = rondel_with_input(arguments(&own, network), input);
    let lines = input.split_inclusive(|&byte| byte == b'\n').count();
    let noun = if lines == 1 { "message" } else { "messages" };
    finished.expect_status(0).expect_stderr(&[&format!("published {} {noun}", grouped(lines))]);
}

/// A number as people read it: `3,000`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let groups = digits.as_bytes()[first..].chunks(3).map(|g| std::str::from_utf8(g).unwrap());
    Some(&digits[..first]).into_iter().filter(|d| !d.is_empty()).chain(groups).collect::<Vec<_>>().join(",")
}

/// A monitor of `v` from `topic` to `verdicts` that begins when somebody has subscribed there.
fn monitor(topic: &str, verdicts: &str, network: &[String]) -> Process {
    support::network::monitor("v", topic, verdicts, network)
}

fn tap(address: &str, count: usize, network: &[String]) -> Process {
    let mut tap = start_rondel(arguments(&["tap", address, "--count", &count.to_string()], network));
    tap.wait_stderr("ready");
    tap
}

/// Ends a monitor as the end of a container does, and looks at its summary.
#[track_caller]
fn end(run: Process, received: usize, verdicts: usize) -> Finished {
    run.terminate();
    let finished = run.finish();
    let (received, verdicts) = (grouped(received), grouped(verdicts));
    let summary =
        format!("received {received}, checked {received}, undecodable 0, dropped 0, verdicts {verdicts}");
    finished.expect_status(0).expect_stderr(&[&summary]);
    finished
}

/// Everything that is published comes out as a verdict, in order, and is counted alike everywhere.
#[track_caller]
fn all_arrive(mut run: Process, mut tap: Process, publisher: &[String], topic: &str) {
    let (input, expected) = messages();
    run.wait_stderr("ready");
    publish(topic, publisher, input);
    let lines = tap.take_stdout(MESSAGES);
    let verdicts: Vec<Emitted> = lines.iter().map(|line| Emitted::parse(line)).collect();
    let wrong = verdicts.iter().enumerate().find(|(i, v)| v.step != *i as u64);
    let at = wrong.map_or(0, |(i, _)| i);
    let around: Vec<u64> =
        verdicts.iter().skip(at.saturating_sub(3)).take(10).map(|verdict| verdict.step).collect();
    assert!(wrong.is_none(), "steps are out of order: line {at} of {around:?}");
    assert_eq!(verdicts.iter().map(|v| v.letter).collect::<String>(), expected);
    tap.finish().expect_status(0).expect_stderr(&[&format!("received {} messages", grouped(MESSAGES))]);
    end(run, MESSAGES, MESSAGES);
}

#[test]
fn zenoh_peer_to_peer() {
    let endpoint = free_endpoint();
    let run = monitor("zenoh:demo/state", "zenoh:demo/verdict", &zenoh_listening("peer", &endpoint));
    let peer = zenoh("peer", &endpoint);
    let tap = tap("zenoh:demo/verdict", MESSAGES, &peer);
    all_arrive(run, tap, &peer, "zenoh:demo/state");
}

#[test]
fn zenoh_with_a_router_in_between() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    let client = zenoh("client", &endpoint);
    let run = monitor("zenoh:demo/*/state", "zenoh:demo/verdict", &client);
    let tap = tap("zenoh:**/verdict", MESSAGES, &client);
    all_arrive(run, tap, &client, "zenoh:demo/a/state");
}

#[test]
fn zenoh_with_the_monitor_as_router() {
    let endpoint = free_endpoint();
    let run = monitor("zenoh:demo/state", "zenoh:demo/verdict", &zenoh_listening("router", &endpoint));
    let client = zenoh("client", &endpoint);
    let tap = tap("zenoh:demo/verdict", MESSAGES, &client);
    all_arrive(run, tap, &client, "zenoh:demo/state");
}

#[test]
fn dds_on_loopback() {
    let network = dds(&dds_domain());
    let run = monitor("dds:state", "dds:verdict", &network);
    let tap = tap("dds:verdict", MESSAGES, &network);
    all_arrive(run, tap, &network, "dds:state");
}

#[test]
fn from_dds_to_zenoh_in_one_process() {
    let (domain, endpoint) = (dds(&dds_domain()), free_endpoint());
    let both = [domain.clone(), zenoh_listening("peer", &endpoint)].concat();
    let run = monitor("dds:rt/state", "zenoh:demo/verdict", &both);
    let tap = tap("zenoh:demo/verdict", MESSAGES, &zenoh("peer", &endpoint));
    all_arrive(run, tap, &domain, "dds:rt/state");
}

#[test]
fn from_zenoh_to_dds_in_one_process() {
    let (domain, endpoint) = (dds(&dds_domain()), free_endpoint());
    let both = [domain.clone(), zenoh_listening("peer", &endpoint)].concat();
    let run = monitor("zenoh:demo/state", "dds:verdict", &both);
    let tap = tap("dds:verdict", MESSAGES, &domain);
    all_arrive(run, tap, &zenoh("peer", &endpoint), "zenoh:demo/state");
}

#[test]
fn two_domains_do_not_mix() {
    let (one, other) = (dds(&dds_domain()), dds(&dds_domain()));
    let mut run = start_rondel(arguments(&["run", "-f", "v", "--topic", "dds:state"], &one));
    run.wait_stderr("ready");
    let finished = rondel_with_input(
        arguments(&["publish", "--to", "dds:state", "--wait", "1"], &other),
        b"{\"v\":true}\n",
    );
    finished.expect_stderr(&["no subscriber on dds:state"]);
    end(run, 0, 0);
}

/// Bad payloads as lines, the good ones among them known by their letters. Between two good ones
/// stands every sort of bad one.
fn bad_payloads() -> Vec<u8> {
    let big = format!("{{\"x\":\"{}\",\"v\":true}}", "a".repeat(10_000_000));
    let deep = format!("{{\"x\":{}{},\"v\":true}}", "[".repeat(200), "]".repeat(200));
    let lines: [&[u8]; 14] = [
        b"{\"v\":true}",
        b"hello",
        b"{\"v\":tru",
        b"{\"v\":NaN}",
        b"{\"v\":\"\xff\xfe\"}",
        deep.as_bytes(),
        b"{\"v\":false}",
        b"{\"v\":5}",
        b"{\"w\":1}",
        big.as_bytes(),
        b"{\"v\":null}",
        b"{\"v\":false,\"v\":true}",
        b"{\"v\":true} x",
        b"{\"v\":false}",
    ];
    lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect()
}

/// Five are not JSON at all, one has text after it; eight are steps, two of which have no truth
/// value: a number, and null. `{"w":1}` after the number leaves it as it is. After a good message the first one that cannot be
/// decoded brings a verdict, too, which has no step.
#[track_caller]
fn bad_payloads_are_counted(topic: &str, verdicts: &str, monitor_network: &[String], others: &[String]) {
    let mut run = monitor(topic, verdicts, monitor_network);
    let mut tap = tap(verdicts, 10, others);
    run.wait_stderr("ready");
    publish(topic, others, bad_payloads());
    let shown = tap.take_stdout(10);
    assert_eq!(shown.iter().map(|line| letter(line)).collect::<String>(), "T?F??T?T?F");
    run.terminate();
    let finished = run.finish();
    finished.expect_status(0).expect_stderr(&[
        "received 14, checked 8, undecodable 6, dropped 0, verdicts 10",
        "values of another type 1",
    ]);
    let warnings: Vec<&str> = finished.stderr.lines().filter(|line| line.contains("warning")).collect();
    let undecodable = warnings.iter().filter(|line| line.contains("object") || line.contains("JSON")).count();
    assert_eq!(undecodable, 1, "said once, then counted:\n{}", finished.stderr);
    assert!(finished.stderr.len() < 10_000, "the payload itself is not shown");
}

#[test]
fn bad_payloads_on_zenoh() {
    let endpoint = free_endpoint();
    let (own, others) = (zenoh_listening("peer", &endpoint), zenoh("peer", &endpoint));
    bad_payloads_are_counted("zenoh:state", "zenoh:verdict", &own, &others);
}

#[test]
fn bad_payloads_on_dds() {
    let network = dds(&dds_domain());
    bad_payloads_are_counted("dds:state", "dds:verdict", &network, &network);
}

#[test]
fn a_router_that_is_killed_and_started_again() {
    let endpoint = free_endpoint();
    let mut first = router(&endpoint);
    let client = zenoh("client", &endpoint);
    let mut run = monitor("zenoh:state", "zenoh:verdict", &client);
    let mut tap = start_rondel(arguments(&["tap", "zenoh:verdict"], &client));
    tap.wait_stderr("ready");
    run.wait_stderr("ready");
    publish("zenoh:state", &client, "{\"v\":true}\n");
    assert_eq!(Emitted::parse(&tap.wait_stdout("verdict")).step, 0);

    first.kill();
    let _second = router(&endpoint);
    // The monitor and the subscriber come back in their own time; a verdict without a subscriber is lost.
    let mut step = 0;
    for _ in 0..100 {
        publish("zenoh:state", &client, "{\"v\":true}\n");
        step += 1;
        if let Some(line) = tap.stdout_within(std::time::Duration::from_millis(500)) {
            let verdict = Emitted::parse(&line);
            assert!(verdict.step <= step, "{line}");
            break;
        }
    }
    // From now on nothing is lost, and the monitor has kept what it knew.
    publish("zenoh:state", &client, "{\"v\":false}\n".repeat(100));
    tap.wait_stdout(&format!("\"step\":{},\"verdict\":\"violated\"", step + 100));
    run.terminate();
    let received = step as usize + 101;
    run.finish().expect_status(0).expect_stderr(&[&format!("received {received}, checked {received}")]);
}

#[test]
fn several_properties_have_a_topic_each() {
    let folder = Folder::new();
    let spec =
        folder.file("two.rondel", "topic a topic b property both = a.v and b.v property ever = once a.v");
    let endpoint = free_endpoint();
    let own = [
        "run",
        &spec,
        "--emit",
        "every",
        "--topic",
        "a=zenoh:in/a",
        "--topic",
        "b=zenoh:in/b",
        "--publish",
        "zenoh:verdict",
        "--wait-subscribers",
        "60",
    ];
    let mut run = start_rondel(arguments(&own, &zenoh_listening("peer", &endpoint)));
    let peer = zenoh("peer", &endpoint);
    let mut both = tap("zenoh:verdict/both", 3, &peer);
    let mut ever = tap("zenoh:verdict/ever", 3, &peer);
    run.wait_stderr("ready");
    for (topic, value) in [("a", true), ("b", true), ("a", false)] {
        publish(&format!("zenoh:in/{topic}"), &peer, format!("{{\"v\":{value}}}\n"));
    }
    for (tap, name, expected) in [(&mut both, "both", "?TF"), (&mut ever, "ever", "TTT")] {
        let lines = tap.take_stdout(3);
        assert!(lines.iter().all(|line| Emitted::parse(line).property == name), "{lines:?}");
        assert_eq!(letters(&lines.join("\n")), expected);
    }
    end(run, 3, 6);
}

#[test]
fn a_deployment_file_over_both_networks() {
    let folder = Folder::new();
    folder.file(
        "spec/two.rondel",
        "topic gear { report: int } topic speed { value: float }\n\
         property slow = speed.value < 10.0 property standing = changed(gear.report) -> speed.value == 0.0\n",
    );
    let (domain, endpoint) = (dds_domain(), free_endpoint());
    let deployment = folder.file(
        "deploy/rondel.yaml",
        format!(
            "specification: ../spec/two.rondel\n\
             zenoh: {{ listen: {endpoint} }}\n\
             dds: {{ domain: {domain}, interface: lo }}\n\
             topics:\n  gear: zenoh:demo/gear\n  speed: {{ source: dds:speed, time: stamp, time_unit: ms }}\n\
             verdicts:\n  emit: violations\n  to: [stdout]\n  properties: {{ standing: [stdout, zenoh:demo/standing] }}\n"
        ),
    );
    let mut run = start_rondel(["run", &deployment, "--format", "json"]);
    run.wait_stderr("ready");
    let peer = zenoh("peer", &endpoint);
    publish("dds:speed", &dds(&domain), "{\"stamp\":1500.5,\"value\":12}\n");
    let line = run.wait_stdout("verdict");
    assert_eq!(line, "{\"property\":\"slow\",\"time\":1.5005,\"step\":0,\"verdict\":\"violated\"}");
    publish("zenoh:demo/gear", &peer, "{\"report\":1}\n{\"report\":2}\n");
    let verdict = Emitted::parse(&run.wait_stdout("verdict"));
    assert_eq!((verdict.property.as_str(), verdict.step, verdict.letter), ("standing", 2, 'F'));
    run.terminate();
    run.finish().expect_status(0).expect_stderr(&["received 3, checked 3, undecodable 0, dropped 0"]);
}

#[test]
fn a_deployment_prints_verdicts_beside_its_sinks() {
    let folder = Folder::new();
    let endpoint = free_endpoint();
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "formula: v\nzenoh: {{ listen: \"{endpoint}\" }}\ntopics: {{ trace: zenoh:in }}\n\
             verdicts: {{ to: zenoh:verdict }}\n"
        ),
    );
    let own = ["run", &deployment, "--publish", "stdout", "--format", "json", "--wait-subscribers", "60"];
    let mut run = start_rondel(own);
    let peer = zenoh("peer", &endpoint);
    let mut sink = tap("zenoh:verdict", 1, &peer);
    run.wait_stderr("ready");
    publish("zenoh:in", &peer, "{\"v\":false}\n");
    assert_eq!(run.take_stdout(1), sink.take_stdout(1));
    end(run, 1, 2);
}

#[test]
fn signals_end_a_run_gracefully() {
    for signal in ["TERM", "INT"] {
        let endpoint = free_endpoint();
        let own = [
            "run",
            "-f",
            "v",
            "--topic",
            "zenoh:state",
            "--publish",
            "stdout",
            "--format",
            "json",
            "-e",
            "every",
        ];
        let mut run = start_rondel(arguments(&own, &zenoh_listening("peer", &endpoint)));
        run.wait_stderr("ready");
        let (input, expected) = messages();
        publish("zenoh:state", &zenoh("peer", &endpoint), input);
        // On a machine with much to do many are still on their way when the publisher has ended.
        run.take_stdout(MESSAGES);
        run.signal(signal);
        let finished = run.finish();
        finished.expect_status(0);
        assert_eq!(letters(&finished.stdout), expected, "{signal}");
        finished.expect_stderr(&["received 3,000, checked 3,000, undecodable 0, dropped 0, verdicts 3,000"]);
    }
}

#[test]
fn tap_ends_gracefully_too() {
    let endpoint = free_endpoint();
    let mut tap = start_rondel(arguments(&["tap", "zenoh:state"], &zenoh_listening("peer", &endpoint)));
    tap.wait_stderr("ready");
    publish("zenoh:state", &zenoh("peer", &endpoint), "one\ntwo\n");
    assert_eq!(tap.take_stdout(2), ["one", "two"]);
    tap.terminate();
    tap.finish().expect_status(0).expect_stderr(&["received 2 messages"]);
}

#[test]
fn run_stops_after_n_messages() {
    let endpoint = free_endpoint();
    let own =
        ["run", "-f", "v", "--topic", "zenoh:state", "--count", "3", "--summary", "json", "-e", "violations"];
    let mut run = start_rondel(arguments(&own, &zenoh_listening("peer", &endpoint)));
    run.wait_stderr("ready");
    publish("zenoh:state", &zenoh("peer", &endpoint), "{\"v\":true}\n{\"v\":false}\n{\"v\":true}\n");
    let finished = run.finish();
    // The status is 0 whatever the verdicts: they were published.
    finished.expect_status(0);
    assert_eq!(finished.stdout.lines().count(), 1, "{}", finished.stdout);
    let summary = finished.stderr.lines().find(|line| line.starts_with('{')).expect("a summary in JSON");
    let summary: serde_json::Value = serde_json::from_str(summary).unwrap();
    assert_eq!(summary["received"], 3, "{summary}");
}

#[test]
fn on_change_only_changes_leave() {
    let endpoint = free_endpoint();
    let own = ["run", "-f", "v", "--topic", "zenoh:state", "--publish", "stdout", "--format", "json"];
    let mut run = start_rondel(arguments(&own, &zenoh_listening("peer", &endpoint)));
    run.wait_stderr("ready");
    let input: String = "TTTFFT".chars().map(|c| format!("{{\"v\":{}}}\n", c == 'T')).collect();
    publish("zenoh:state", &zenoh("peer", &endpoint), input);
    // The last message brings the last of them.
    run.take_stdout(3);
    let finished = end(run, 6, 3);
    assert_eq!(letters(&finished.stdout), "TFT");
    assert_eq!(Emitted::all(&finished.stdout).iter().map(|v| v.step).collect::<Vec<_>>(), [0, 3, 5]);
}

#[test]
fn the_live_demo_shows_a_violation_and_ends() {
    let finished = rondel(["demo", "--live", "--fast"]);
    finished.expect_status(0);
    let shown = finished.stdout.clone() + &finished.stderr;
    let violated: Vec<&str> = finished.stdout.lines().filter(|line| line.starts_with("violated")).collect();
    assert!(violated.iter().any(|line| line.contains("gear_change_at_standstill")), "{shown}");
    for property in ["speed_limit", "brake_before_reverse"] {
        assert!(shown.contains(property), "{shown}");
        assert!(!violated.iter().any(|line| line.contains(property)), "one of three is violated:\n{shown}");
    }
    assert!(shown.contains("undecodable 0, dropped 0"), "{shown}");
}

/// `alive` holds for so long after each message.
const ALIVE: &str = "topic s { n: int } property alive = once[0, 300 ms] on(s)";

/// The verdicts of one message that is 5 s old by its own clock: one that it brings, one that time does.
#[track_caller]
fn time_passes(lines: &[String]) {
    let expected = [
        r#"{"property":"alive","time":5,"step":0,"verdict":"satisfied"}"#,
        r#"{"property":"alive","time":5.3,"verdict":"violated"}"#,
    ];
    assert_eq!(lines, expected);
}

#[test]
fn time_passes_where_no_message_comes() {
    let folder = Folder::new();
    let spec = folder.file("alive.rondel", ALIVE);
    let endpoint = free_endpoint();
    let own = ["run", &spec, "--topic", "zenoh:demo/state", "--time-from", "t", "--format", "json"];
    let mut run = start_rondel(arguments(&own, &zenoh_listening("peer", &endpoint)));
    run.wait_stderr("ready");
    publish("zenoh:demo/state", &zenoh("peer", &endpoint), "{\"t\":5}\n");
    time_passes(&run.take_stdout(2));
    let finished = end(run, 1, 2);
    finished.expect_stderr(&["alive: violated 1 time, first at time 5.3 s"]);
}

/// Verdicts due to time alone do not wait for a packet to fill.
#[test]
fn time_passes_on_dds() {
    let folder = Folder::new();
    let spec = folder.file("alive.rondel", ALIVE);
    let network = dds(&dds_domain());
    let tap = tap("dds:verdict", 2, &network);
    let own = ["run", &spec, "--topic", "dds:state", "--publish", "dds:verdict", "--time-from", "t"];
    let wait = ["--wait-subscribers", "60"];
    let mut run = start_rondel(arguments(&[&own[..], &wait].concat(), &network));
    run.wait_stderr("ready");
    publish("dds:state", &network, "{\"t\":5}\n");
    let finished = tap.finish();
    time_passes(&finished.expect_status(0).stdout.lines().map(str::to_owned).collect::<Vec<_>>());
    end(run, 1, 2);
}
