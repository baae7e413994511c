//! Gates in a group: the active member passes messages on, and each message passes at most once.

use super::*;

/// The number in substitutes.
const STOP: i64 = -1;

/// The group with a gate from `s` to `out`, which the formula closes.
fn group_with_gate(net: &Net) -> String {
    let prefix = net.prefix;
    format!(
        "{GROUP}\nheartbeat: 200 ms\n\
         gates:\n  - {{ from: trace, to: \"{prefix}:out\", unless: formula, substitute: {{ v: {STOP} }} }}"
    )
}

/// Two members with a gate that is open while numbers are below 1000.
fn gated(net: &Net) -> Pair {
    pair_in(net, &group_with_gate(net), FORMULA)
}

/// A gate, as its consumer sees it.
struct Gate {
    feed: Process,
    out: Process,
    /// Time of the next message.
    next: u64,
    passed: Vec<Value>,
}

impl Gate {
    fn of(net: &Net, out: Process) -> Gate {
        Gate { feed: net.feed(), out, next: 0, passed: Vec::new() }
    }

    /// Sends messages. Returns their times.
    fn send(&mut self, count: u64) -> std::ops::Range<u64> {
        let times = self.next..self.next + count;
        self.next = times.end;
        send(&mut self.feed, times.clone());
        times
    }

    /// Sends a message that closes the gate.
    fn violate(&mut self) {
        self.feed.write(format!("{{\"t\":{},\"v\":2000}}\n", self.next).as_bytes());
        self.next += 1;
    }

    /// Receives the messages that come within a time.
    fn receive(&mut self, within: Duration) {
        while let Some(line) = self.out.stdout_within(within) {
            let line: Value = serde_json::from_str(&line).unwrap();
            self.passed.push(line["data"].clone());
        }
    }

    /// Sends messages until one passes, and waits for those that follow at once.
    #[track_caller]
    fn send_until_one_passes(&mut self) {
        let (first, deadline) = (self.next, Instant::now() + LIMIT);
        while !self.times().any(|time| time >= first) {
            assert!(Instant::now() < deadline, "nothing passes from {first} on: {:?}", self.passed);
            self.send(1);
            self.receive(Duration::from_millis(50));
        }
    }

    /// Waits until the message at a time has passed.
    #[track_caller]
    fn expect(&mut self, time: u64) {
        let deadline = Instant::now() + LIMIT;
        while !self.times().any(|own| own == time) {
            assert!(Instant::now() < deadline, "{time} does not pass: {:?}", self.passed);
            self.receive(Duration::from_millis(50));
        }
    }

    /// Waits until a number of substitutes was published.
    #[track_caller]
    fn expect_stops(&mut self, count: usize) {
        let deadline = Instant::now() + LIMIT;
        while self.stops() < count {
            assert!(Instant::now() < deadline, "{:?}", self.passed);
            self.receive(Duration::from_millis(50));
        }
    }

    /// The times of the messages that have passed.
    fn times(&self) -> impl Iterator<Item = u64> {
        self.passed.iter().filter_map(|message| message["t"].as_u64())
    }

    /// The number of substitutes.
    fn stops(&self) -> usize {
        self.passed.iter().filter(|message| message["v"] == STOP).count()
    }

    /// Checks that no message has passed twice or in another order, and none of these.
    #[track_caller]
    fn check(&mut self, not: impl IntoIterator<Item = u64>) {
        self.receive(Duration::from_millis(300));
        let times: Vec<u64> = self.times().collect();
        assert!(times.is_sorted_by(|before, after| before < after), "{times:?}");
        for time in not {
            assert!(!times.contains(&time), "{time} has passed: {times:?}");
        }
        let is_closing = |message: &Value| message["v"].as_i64() >= Some(1000);
        assert!(!self.passed.iter().any(is_closing), "a message passed a closed gate: {:?}", self.passed);
    }
}

/// Ends a member. Returns its account of the gate.
fn account(member: Process) -> Value {
    member.terminate();
    let ended = member.finish();
    ended.expect_status(0);
    assert!(!ended.stderr.contains("has the gate to"), "{}", ended.stderr);
    let summary: Value = serde_json::from_str(ended.stderr.lines().last().unwrap()).unwrap();
    assert_eq!(summary["gates"][0]["most_others"], 0, "its standby is no other monitor: {summary}");
    summary["gates"][0].clone()
}

fn gate_is_taken_over_from_a_killed_member(net: &Net) {
    let out = net.tap_of("out");
    let Pair { mut active, mut standby, folders: _folders, .. } = gated(net);
    let mut gate = Gate::of(net, out);
    gate.send_until_one_passes();
    let last = gate.send(10).end - 1;
    gate.expect(last);
    active.kill();
    // No member is active for a lease, and none passes these on later.
    let lost = gate.send(10);
    standby.wait_stderr("active in epoch 2: no sign of life of member");
    standby.wait_stderr("the gate to");
    gate.send_until_one_passes();
    let last = gate.send(10).end - 1;
    gate.expect(last);
    assert_eq!(gate.stops(), 0, "the gate was open: {:?}", gate.passed);
    gate.violate();
    gate.expect_stops(1);
    gate.send_until_one_passes();
    let taken_over = lost.end;
    gate.check(lost);
    let account = account(standby);
    // All of those that have passed since, and none of those before.
    let passed = gate.times().filter(|time| *time >= taken_over).count() as u64;
    let sent = gate.next - taken_over;
    let forwarded = account["forwarded"].as_u64().unwrap();
    assert!(
        (passed..sent).contains(&forwarded) && account["active"] == true,
        "{passed} of {sent}: {account}"
    );
    let [skipped, withheld] = ["skipped", "withheld"].map(|name| account[name].as_u64().unwrap());
    // Also those that the active member passed on before it was killed.
    assert!(skipped >= 10 && withheld >= skipped.max(20), "{account}");
}

#[test]
fn gate_is_taken_over_from_a_killed_member_on_zenoh() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    gate_is_taken_over_from_a_killed_member(&Net::zenoh(&endpoint));
}

#[test]
fn gate_is_taken_over_from_a_killed_member_on_mqtt() {
    let Some(broker) = Broker::start("gate_is_taken_over_from_a_killed_member_on_mqtt") else { return };
    gate_is_taken_over_from_a_killed_member(&Net::mqtt(&broker));
}

#[test]
fn gate_is_taken_over_from_a_killed_member_on_dds() {
    gate_is_taken_over_from_a_killed_member(&Net::dds());
}

fn member_that_stood_still_passes_nothing_on(net: &Net) {
    let out = net.tap_of("out");
    let Pair { mut active, mut standby, folders: _folders, .. } = gated(net);
    let mut gate = Gate::of(net, out);
    gate.send_until_one_passes();
    active.signal("STOP");
    // These wait for it.
    let waiting = gate.send(10);
    standby.wait_stderr("active in epoch 2");
    gate.send_until_one_passes();
    active.signal("CONT");
    active.wait_stderr("fenced: ");
    active.wait_stderr("standby: member");
    let last = gate.send(10).end - 1;
    gate.expect(last);
    gate.check(waiting.clone());
    // Its gate begins again with the state of the other one, and opens with the next message.
    active.wait_stderr("state taken from member");
    gate.send_until_one_passes();
    // And back: its gate was closed meanwhile, as that of the other one was.
    gate.violate();
    gate.expect_stops(1);
    standby.kill();
    active.wait_stderr("active in epoch 3");
    active.wait_stderr("is closed at the take-over in epoch 3, as 'formula' was violated");
    gate.expect_stops(2);
    gate.send_until_one_passes();
    gate.check(waiting);
    let account = account(active);
    assert!(account["withheld"].as_u64() >= Some(20), "{account}");
}

#[test]
fn member_that_stood_still_passes_nothing_on_on_zenoh() {
    let endpoint = free_endpoint();
    let _router = router(&endpoint);
    member_that_stood_still_passes_nothing_on(&Net::zenoh(&endpoint));
}

#[test]
fn member_that_stood_still_passes_nothing_on_on_mqtt() {
    let Some(broker) = Broker::start("member_that_stood_still_passes_nothing_on_on_mqtt") else { return };
    member_that_stood_still_passes_nothing_on(&Net::mqtt(&broker));
}

/// `signal` stops the router or broker, and lets it go on.
fn no_message_passes_twice_after_a_standstill(net: &Net, signal: impl Fn(&str)) {
    let out = net.tap_of("out");
    let Pair { active: _active, mut standby, folders: _folders, .. } = gated(net);
    let mut gate = Gate::of(net, out);
    gate.send_until_one_passes();
    for epoch in 2..4 {
        signal("STOP");
        // For three leases: the standby claims, and the signs of both wait, as these messages do.
        for _ in 0..75 {
            gate.send(1);
            sleep(Duration::from_millis(20));
        }
        signal("CONT");
        if epoch == 2 {
            standby.wait_stderr("active in epoch 2: no sign of life of member");
        }
        gate.send_until_one_passes();
        let last = gate.send(10).end - 1;
        gate.expect(last);
        gate.check([]);
    }
}

#[test]
fn no_message_passes_twice_after_a_standstill_of_the_router() {
    let endpoint = free_endpoint();
    let router = router(&endpoint);
    no_message_passes_twice_after_a_standstill(&Net::zenoh(&endpoint), |name| router.signal(name));
}

#[test]
fn no_message_passes_twice_after_a_standstill_of_the_broker() {
    let Some(broker) = Broker::start("no_message_passes_twice_after_a_standstill_of_the_broker") else {
        return;
    };
    no_message_passes_twice_after_a_standstill(&Net::mqtt(&broker), |name| {
        if name == "STOP" { broker.freeze() } else { broker.unfreeze() }
    });
}

#[test]
fn no_message_passes_twice_at_a_promotion() {
    let endpoint = free_endpoint();
    let (_router, net) = (router(&endpoint), Net::zenoh(&endpoint));
    let out = net.tap_of("out");
    let Pair { mut active, mut standby, deployment, folders: _folders } = gated(&net);
    let mut gate = Gate::of(&net, out);
    gate.send_until_one_passes();
    let first = gate.next;
    let promotion = std::thread::spawn(move || rondel(["standby", "promote", &deployment]));
    // Messages come all the time.
    while !promotion.is_finished() {
        gate.send(1);
        sleep(Duration::from_millis(5));
    }
    promotion.join().unwrap().expect_status(0).expect_stderr(&["is active in epoch 2"]);
    active.wait_stderr("handed over to member");
    standby.wait_stderr("is open at the take-over in epoch 2");
    gate.send_until_one_passes();
    gate.check([]);
    let passed: BTreeSet<u64> = gate.times().collect();
    let missing = (first..gate.next).filter(|time| !passed.contains(time)).count() as u64;
    assert_eq!(gate.stops(), 0);
    let second = account(standby);
    // The end of the active member is a take-over, too, and the other one goes on.
    active.wait_stderr("has ended");
    gate.send_until_one_passes();
    gate.check([]);
    assert_eq!(gate.stops(), 0, "a successor goes on in place of the substitute");
    let first = account(active);
    assert_eq!(first["state"], "open");
    gate.expect_stops(1);
    let count = |account: &Value, name: &str| account[name].as_u64().unwrap();
    let unpublished = count(&first, "unpublished") + count(&second, "unpublished");
    let counted = count(&first, "skipped") + count(&second, "skipped") + unpublished;
    assert!(missing > 0 && missing <= counted, "{missing} did not pass: {first}, {second}");
}

#[test]
fn guard_opens_only_without_an_active_member() {
    let endpoint = free_endpoint();
    let (_router, net) = (router(&endpoint), Net::zenoh(&endpoint));
    let out = net.tap_of("out");
    let Pair { mut active, mut standby, deployment, folders: _folders } = gated(&net);
    rondel(["gate-guard", &deployment, "--after", "1 s"])
        .expect_status(2)
        .expect_stderr(&["two intervals of the heartbeat and two leases of the group, 1400 ms"]);
    let mut guard = start_rondel(["gate-guard", &deployment, "--after", "5 s"]);
    guard.wait_stderr("ready: messages are passed on after 5000 ms");
    let mut gate = Gate::of(&net, out);
    gate.send_until_one_passes();
    active.kill();
    standby.wait_stderr("active in epoch 2");
    gate.send_until_one_passes();
    gate.violate();
    gate.expect_stops(1);
    gate.send_until_one_passes();
    gate.check([]);
    assert!(!guard.all_stderr_so_far().contains("is gone"), "{}", guard.all_stderr_so_far());
    standby.kill();
    guard.wait_stderr("the monitor is gone: messages are passed on unchecked");
    gate.send_until_one_passes();
    guard.terminate();
    guard.finish().expect_status(0);
}

#[test]
fn gate_of_a_late_standby_is_closed_by_a_violation_before_its_start() {
    let endpoint = free_endpoint();
    let (_router, net) = (router(&endpoint), Net::zenoh(&endpoint));
    let (out, folders) = (net.tap_of("out"), [Folder::new(), Folder::new()]);
    let [first, second] = [0, 1].map(|at| net.deployment(&folders[at], &group_with_gate(&net), late::PAST));
    let mut active = start_rondel(["run", &first]);
    active.wait_stderr("active in epoch 1");
    let mut gate = Gate::of(&net, out);
    gate.violate();
    gate.expect_stops(1);
    let mut standby = start_rondel(["run", &second]);
    let deadline = Instant::now() + LIMIT;
    while !standby.all_stderr_so_far().contains("state taken from member") {
        assert!(Instant::now() < deadline, "{}", standby.all_stderr_so_far());
        gate.send(1);
        sleep(Duration::from_millis(20));
    }
    active.kill();
    // Shorter than a lease.
    gate.receive(Duration::from_millis(100));
    let stops = gate.stops();
    standby.wait_stderr("is closed at the take-over in epoch 2, as 'formula' was violated");
    gate.expect_stops(stops + 1);
    gate.send(10);
    gate.expect_stops(stops + 11);
    gate.check([]);
    assert_eq!(gate.times().next(), None, "no message passes: {:?}", gate.passed);
}

#[test]
fn other_gates_are_found() {
    let endpoint = free_endpoint();
    let (_router, net) = (router(&endpoint), Net::zenoh(&endpoint));
    let (folders, gated) = ([Folder::new(), Folder::new(), Folder::new()], group_with_gate(&net));
    let groups = [gated.clone(), GROUP.to_owned(), gated.replace("v: -1", "v: -2")];
    let [first, ungated, other] = [0, 1, 2].map(|at| net.deployment(&folders[at], &groups[at], FORMULA));
    let mut active = start_rondel(["run", &first]);
    active.wait_stderr("active in epoch 1");
    for deployment in [ungated, other] {
        let mut standby = start_rondel(["run", &deployment]);
        standby.wait_stderr("has other `gates`");
        active.wait_stderr("has other `gates`");
        standby.terminate();
        standby.finish();
    }
    let mut standby = start_rondel(["run", &first]);
    standby.wait_stderr("standby: member");
    assert!(!standby.all_stderr_so_far().contains("has other `gates`"));
}

#[test]
fn gates_and_their_group_need_one_network() {
    let folder = Folder::new();
    for (to, network, said) in [
        ("mqtt:out", "zenoh", "the gate to mqtt:out and its `group` need one network"),
        ("mqtt:out", "zenoh", "write `network: mqtt` in `group`"),
        ("zenoh:out", "dds", "write `network: zenoh` in `group`"),
        ("mqtt:out", "mqtt", ""),
        ("zenoh:out", "zenoh", ""),
    ] {
        let text = format!(
            "formula: v\ntopics: {{ trace: zenoh:t }}\nverdicts: {{ to: zenoh:v }}\n\
             group: {{ name: g, network: {network} }}\n\
             gates: {{ from: trace, to: \"{to}\", unless: formula, substitute: drop }}\n"
        );
        let validated = rondel(["validate", &folder.file("rondel.yaml", text)]);
        if said.is_empty() {
            validated.expect_status(0);
        } else {
            validated.expect_status(2).expect_stderr(&[said]);
        }
    }
}
