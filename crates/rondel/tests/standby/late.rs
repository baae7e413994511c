//! Standbys that start after the first message, and take the state of the active member.

use super::*;

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
