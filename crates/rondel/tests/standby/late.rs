//! Standbys that start after the first message, or miss messages, and take the state of the active member.

use super::*;

/// A formula that depends on all earlier messages.
pub(super) const PAST: &str = "historically(v < 1000)";

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

/// A formula with violations by single messages, whose other verdicts depend on all earlier messages.
const PLANTED: &str = "v < 1000 and historically(v >= 0)";
/// Number of messages from one planted fault to the next.
const EVERY: u64 = 7;

/// Sends messages, of which every seventh is a planted fault.
fn plant(feed: &mut Process, times: std::ops::Range<u64>) {
    for time in times {
        let value = if time % EVERY == 3 { 1000 + time } else { time % 1000 };
        feed.write(format!("{{\"t\":{time},\"v\":{value}}}\n").as_bytes());
    }
}

/// Waits until the status shows that a process is a standby with the state of the active member.
fn wait_for_state(deployment: &str, process: u32) {
    let deadline = Instant::now() + LIMIT;
    loop {
        let status = rondel(["standby", "status", deployment, "--format", "json"]);
        let mut members = status.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let has_state = |member: &Value| {
            let is_it = member["process"] == process && member["state"] == "standby";
            is_it && member["late"] == false && member["taken"].is_object() && member["stood_still"].is_null()
        };
        if members.any(|member| has_state(&member)) {
            return;
        }
        assert!(Instant::now() < deadline, "{}\n{}", status.stdout, status.stderr);
    }
}

/// Stops the standby, or the active member, for two seconds, and kills the other one once this one has its state.
fn member_that_stood_still_takes_the_state(net: &Net, is_active: bool) {
    let mut tap = net.tap();
    let Pair { active, standby, deployment, folders: _folders } = pair(net, PLANTED);
    let (mut stopped, mut other) = if is_active { (active, standby) } else { (standby, active) };
    let (mut feed, mut seen) = (net.feed(), Vec::new());
    plant(&mut feed, 0..20);
    verdicts(&mut tap, 19, &mut seen);
    stopped.signal("STOP");
    let (mut time, until) = (20, Instant::now() + Duration::from_secs(2));
    while Instant::now() < until {
        plant(&mut feed, time..time + 1);
        time += 1;
        sleep(Duration::from_millis(20));
    }
    if is_active {
        other.wait_stderr("active in epoch 2");
    }
    stopped.signal("CONT");
    stopped.wait_stderr("this process stood still until ");
    stopped.wait_stderr("as this one may have missed messages");
    plant(&mut feed, time..time + 20);
    time += 20;
    stopped.wait_stderr("state taken from member");
    wait_for_state(&deployment, stopped.id());
    plant(&mut feed, time..time + 20);
    time += 20;
    verdicts(&mut tap, time - 1, &mut seen);
    other.kill();
    stopped.wait_stderr(if is_active { "active in epoch 3" } else { "active in epoch 2" });
    plant(&mut feed, time..time + 20);
    time += 20;
    verdicts(&mut tap, time - 1, &mut seen);
    check_complete(&seen, 0..time);
    let planted: BTreeSet<u64> = (0..time).filter(|time| time % EVERY == 3).collect();
    let violations: Vec<&Value> = seen.iter().filter(|verdict| verdict["verdict"] == "violated").collect();
    let found: BTreeSet<u64> = violations.iter().filter_map(|verdict| verdict["time"].as_u64()).collect();
    let distinct: BTreeSet<&str> = violations.iter().filter_map(|verdict| verdict["id"].as_str()).collect();
    assert_eq!((&found, distinct.len()), (&planted, planted.len()), "{seen:?}");
    assert!(seen.iter().all(|verdict| verdict["verdict"] != "inconclusive"), "{seen:?}");
    stopped.terminate();
    let ended = stopped.finish();
    ended.expect_status(0);
    let summary: Value = serde_json::from_str(ended.stderr.lines().last().unwrap()).unwrap();
    let state = &summary["standby"];
    let take_overs: u64 = if is_active { 2 } else { 1 };
    assert_eq!((&state["late"], &state["take_overs"]), (&false.into(), &take_overs.into()), "{state}");
    assert!(state["missed"].as_u64() >= Some(1) && state["taken"].is_object(), "{state}");
}

#[test]
fn standby_that_stood_still_takes_the_state_on_zenoh() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    member_that_stood_still_takes_the_state(&Net::zenoh(&endpoint), false);
}

#[test]
fn standby_that_stood_still_takes_the_state_on_mqtt() {
    // The broker may drop messages of that time, so that without the state verdicts would be inconclusive.
    let Some(broker) = Broker::start("standby_that_stood_still_takes_the_state_on_mqtt") else { return };
    member_that_stood_still_takes_the_state(&Net::mqtt(&broker), false);
}

#[test]
fn former_active_member_that_stood_still_takes_the_state() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    member_that_stood_still_takes_the_state(&Net::zenoh(&endpoint), true);
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
