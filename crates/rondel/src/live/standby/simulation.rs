//! Simulated groups: members that stand still and are killed, on a network that loses, delays and repeats signs.

mod missed;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rondel_event::Timestamp;
use rondel_testkit::{Random, seeds};

use super::election::{Election, Member, MemberId, Nanos, Role, Sign};
use super::member::{Event, Shared, Worker};
use super::message::{About, Message};
use super::state::{GroupHandle, GroupState};
use super::surroundings::{Outcome, Surroundings};
use super::transfer::{Answer, Request, Route};
use crate::live::gate::{Permission, Scope};
use crate::live::pipeline::Unresponsive;
use crate::sinks::withheld::{Permit, Withheld};

const LEASE: Nanos = 90;
/// The time between two verdicts.
const VERDICT: Nanos = 7;
/// Time from which the network and the members have no faults.
const QUIET: Nanos = 3_000;
/// Time from which one member is active.
const STABLE: Nanos = QUIET + 5 * LEASE;
const END: Nanos = QUIET + 12 * LEASE;
/// The longest delay of a sign, without faults, and the time within which one of two active members has stopped.
const DELAY: Nanos = 10;
/// Number of withheld verdicts that are published at a time.
const PORTION: usize = 5;
/// Facts about all members.
const ABOUT: About = About {
    process: 0,
    sent: None,
    since: 0,
    first: None,
    stood_still: None,
    active_for: None,
    taken: None,
    specification: 0,
    lease: LEASE,
    gates: None,
};

/// Faults of a simulation.
#[derive(Clone, Copy, Default)]
struct Faults {
    /// Signs are lost, come late, and links are cut.
    network: bool,
    /// Members are killed.
    kills: bool,
    /// The broker stands still: it accepts everything, and delivers it later, in the order of each sender.
    freezes: bool,
}

/// A published verdict, or a message that a gate has passed on: each message is evaluated, with one verdict.
struct Published {
    at: Nanos,
    verdict: u64,
    by: u64,
    /// Epoch, whether the member is not late, preference and id, which decide between equal epochs.
    order: (u64, bool, i64, Reverse<u64>),
}

/// Time of event of a verdict.
fn time_of(verdict: u64) -> Timestamp {
    Timestamp::from_nanos(verdict as Nanos * VERDICT)
}

/// The evaluating thread of a member, and its end of the network.
struct Simulated {
    permit: Arc<Permit>,
    withheld: Withheld<u64>,
    /// The permission of its gate.
    gate: Permission,
    /// Number of the next verdict, and its delay.
    verdict: u64,
    delay: Nanos,
    id: u64,
    prefer: i64,
    is_late: bool,
    /// Begin and end of the last standstill of the broker, in which no message arrives.
    frozen: (Nanos, Nanos),
    /// Signs, verdicts and messages of the gate on their way out.
    signs: Vec<(Nanos, Sign)>,
    published: Vec<Published>,
    passed: Vec<Published>,
}

impl Simulated {
    /// Evaluates the messages that are due: publishes or withholds their verdicts, and lets the gate pass them on.
    fn evaluate(&mut self) {
        if (self.frozen.0..self.frozen.1).contains(&self.permit.now()) {
            return;
        }
        while self.verdict as Nanos * VERDICT + self.delay <= self.permit.now() {
            let verdict = self.verdict;
            self.verdict += 1;
            if self.withheld.is_withholding() {
                self.withheld.push(verdict, time_of(verdict));
            } else {
                self.publish(&[verdict]);
            }
            if self.gate.scope() == Scope::Everything {
                self.passed.push(self.published_now(verdict));
            }
        }
    }

    fn published_now(&self, verdict: u64) -> Published {
        let order = (self.withheld.epoch(), !self.is_late, self.prefer, Reverse(self.id));
        Published { at: self.permit.now(), verdict, by: self.id, order }
    }

    fn publish(&mut self, verdicts: &[u64]) {
        for &verdict in verdicts {
            self.withheld.note(time_of(verdict));
            self.published.push(self.published_now(verdict));
        }
        self.withheld.show_position();
    }
}

impl Surroundings for Simulated {
    fn send(&mut self, sign: &Sign, _: &About) -> Result<(), String> {
        self.signs.push((self.permit.now(), *sign));
        Ok(())
    }

    fn flush(&mut self) {}

    fn begin_publishing(&mut self, epoch: u64, _: Duration) -> Option<usize> {
        self.gate.begin();
        Some(self.withheld.begin(epoch))
    }

    fn publish_withheld(&mut self, most: usize, _: Duration) -> Option<bool> {
        let verdicts = self.withheld.take(most.min(PORTION));
        if let Some(verdicts) = &verdicts {
            self.publish(verdicts);
        }
        Some(verdicts.is_some())
    }

    fn stop_publishing(&mut self, _: Duration) {
        self.evaluate();
        self.withheld.stop();
        self.gate.stop();
    }

    fn first_received(&mut self, _: Duration) -> Option<Result<Option<Timestamp>, Unresponsive>> {
        Some(Ok(None))
    }

    fn outages(&self) -> u64 {
        0
    }

    fn began_late(&mut self, _: Timestamp, _: Timestamp, _: Duration) -> bool {
        true
    }

    fn request(&mut self, _: Route, _: &Request) {}

    fn answer(&mut self, _: Route, _: &Answer) {}

    fn note_identities(&mut self, _: Duration) -> bool {
        true
    }

    fn end_noting(&mut self, _: Duration) {}

    fn save(&mut self, _: u64) {}

    fn begin_keeping(&mut self, _: Duration) -> bool {
        true
    }

    fn copy_messages(&mut self, _: Duration) -> bool {
        true
    }

    fn mark_copies(&mut self, _: Duration) -> bool {
        true
    }

    fn end_keeping(&mut self, _: Duration) {}

    fn join(&mut self, _: u64, _: Vec<u8>) {}

    fn outcome(&mut self) -> Option<Outcome> {
        None
    }

    fn is_behind(&self) -> bool {
        false
    }

    fn say(&self, _: &str) {}

    fn warn(&self, _: &str) {}
}

/// A member: its thread, with simulated surroundings.
struct Node {
    worker: Worker<Simulated>,
    permit: Arc<Permit>,
    inbox: Vec<Event>,
    begins: Nanos,
    is_alive: bool,
    paused: Nanos,
}

impl Node {
    fn new(id: u64, random: &mut Random) -> Node {
        let prefer = random.int(2);
        let begins = if random.one_in(3) { 0 } else { random.int(50) };
        let member = MemberId(id);
        let mut election = Election::new(Member { id: member, prefer, lease: LEASE }, begins);
        let is_late = random.one_in(4);
        election.set_late(is_late);
        let permit = Arc::new(Permit::simulated(begins));
        let outside = Simulated {
            permit: Arc::clone(&permit),
            withheld: Withheld::new(Arc::clone(&permit), LEASE),
            gate: Permission::of_member(Arc::clone(&permit), LEASE),
            verdict: 0,
            delay: random.int(6),
            id,
            prefer,
            is_late,
            frozen: (0, 0),
            signs: Vec::new(),
            published: Vec::new(),
            passed: Vec::new(),
        };
        let handle = GroupHandle::new(GroupState::new("g".to_owned(), member, 0));
        let shared = Shared {
            permit: Arc::clone(&permit),
            handle,
            resumes: false,
            takes_none: None,
            awaits_returns: true,
        };
        let worker = Worker::new(prefer, ABOUT, election, shared, outside);
        Node { worker, permit, inbox: Vec::new(), begins, is_alive: true, paused: 0 }
    }

    /// Whether it runs at a time.
    fn runs(&self, now: Nanos) -> bool {
        self.is_alive && now >= self.paused && now >= self.begins
    }

    /// Runs both threads.
    fn run(&mut self, now: Nanos, evaluates_first: bool) {
        self.permit.set_now(now);
        if evaluates_first {
            self.worker.outside.evaluate();
        }
        // Otherwise the thread of the group waits.
        if !self.inbox.is_empty() || self.worker.pause().is_zero() {
            let events = std::mem::take(&mut self.inbox);
            assert!(self.worker.step(events.into_iter()).is_continue(), "no run ends");
        }
        self.worker.outside.evaluate();
    }
}

/// A simulated group.
struct World {
    random: Random,
    faults: Faults,
    nodes: Vec<Node>,
    /// Signs on their way: time, receiver, sign.
    network: Vec<(Nanos, usize, Sign)>,
    /// Ends of the interruptions of links, by sender and receiver.
    cut: Vec<Vec<Nanos>>,
    /// End of the last standstill of the broker, and the times after it at which it takes the signs of each member.
    frozen: Nanos,
    lags: Vec<Nanos>,
    published: Vec<Published>,
    /// Messages that gates have passed on.
    passed: Vec<Published>,
}

impl World {
    fn new(seed: u64, count: u64, faults: Faults) -> World {
        let mut random = Random::new(seed);
        let nodes: Vec<Node> = (0..count).map(|id| Node::new(id, &mut random)).collect();
        let cut = vec![vec![0; nodes.len()]; nodes.len()];
        let (lags, frozen) = (vec![0; nodes.len()], 0);
        let (network, published, passed) = (Vec::new(), Vec::new(), Vec::new());
        World { random, faults, nodes, network, cut, frozen, lags, published, passed }
    }

    fn run(mut self) -> World {
        for now in 0..END {
            if now < QUIET {
                self.disturb(now);
            }
            self.step(now);
        }
        self
    }

    /// Lets the network and all members run at a time.
    fn step(&mut self, now: Nanos) {
        self.deliver(now);
        for at in 0..self.nodes.len() {
            let evaluates_first = self.random.one_in(2);
            let node = &mut self.nodes[at];
            if node.runs(now) {
                node.run(now, evaluates_first);
                self.published.append(&mut node.worker.outside.published);
                self.passed.append(&mut node.worker.outside.passed);
            }
        }
        self.send();
    }

    /// The place of the active member.
    fn active(&self) -> Option<usize> {
        let is_active = |node: &Node| node.is_alive && node.worker.election.role() == Role::Active;
        self.nodes.iter().position(is_active)
    }

    /// Makes faults.
    fn disturb(&mut self, now: Nanos) {
        let (random, nodes) = (&mut self.random, &mut self.nodes);
        if random.one_in(250) {
            let (at, until) = (random.index(nodes.len()), now + random.int(4 * LEASE));
            nodes[at].paused = nodes[at].paused.max(until).min(QUIET);
        }
        if self.faults.kills && random.one_in(1_250) && nodes.iter().filter(|node| node.is_alive).count() > 1
        {
            let at = random.index(nodes.len());
            nodes[at].is_alive = false;
        }
        if self.faults.network && random.one_in(300) {
            let (a, b) = (random.index(nodes.len()), random.index(nodes.len()));
            let until = now + random.int(8 * LEASE);
            self.cut[a][b] = until;
            if !random.one_in(3) {
                self.cut[b][a] = until;
            }
        }
        if self.faults.freezes && now > self.frozen + LEASE && random.one_in(400) {
            self.frozen = (now + random.int(10 * LEASE)).min(QUIET);
            self.lags = nodes.iter().map(|_| random.int(DELAY)).collect();
            // Messages of other publishers are delivered before, after or between them.
            let until = self.frozen + random.int(DELAY);
            nodes.iter_mut().for_each(|node| node.worker.outside.frozen = (now, until));
        }
        if random.one_in(500) {
            for node in nodes.iter_mut().filter(|node| node.runs(now)) {
                let request = Message::Promote { to: None, epoch: node.worker.election.epoch() };
                node.inbox.push(Event::Received(Box::new(request)));
            }
        }
    }

    fn deliver(&mut self, now: Nanos) {
        let mut later = Vec::new();
        for (at, to, sign) in self.network.drain(..) {
            if at <= now {
                self.nodes[to].inbox.push(Event::Received(Box::new(Message::Sign(sign, ABOUT))));
            } else {
                later.push((at, to, sign));
            }
        }
        self.network = later;
    }

    fn send(&mut self) {
        let random = &mut self.random;
        let signs = self.nodes.iter_mut().flat_map(|node| node.worker.outside.signs.drain(..));
        for (now, sign) in signs.collect::<Vec<_>>() {
            let from = sign.from.0 as usize;
            let is_faulty = self.faults.network && now < QUIET;
            // A member receives its own signs, too.
            for to in 0..self.nodes.len() {
                if self.faults.freezes {
                    self.network.push((now.max(self.frozen + self.lags[from]) + 1, to, sign));
                    continue;
                }
                if is_faulty && (now < self.cut[from][to] || random.one_in(10)) {
                    continue;
                }
                let mut at = now + 1 + random.int(DELAY - 1);
                if is_faulty && random.one_in(20) {
                    at += random.int(3 * LEASE);
                }
                self.network.push((at, to, sign));
                if random.one_in(10) {
                    self.network.push((at + random.int(50), to, sign));
                }
            }
        }
    }

    /// The longest time for which a verdict was published by a member that another one had replaced.
    fn overlap(&self) -> Nanos {
        let (mut longest, mut first) = (0, None);
        for published in &self.published {
            match first {
                Some((order, since)) if published.order < order => {
                    longest = longest.max(published.at - since)
                }
                Some((order, _)) if published.order == order => {}
                _ => first = Some((published.order, published.at)),
            }
        }
        longest
    }

    /// Checks that each message was passed on at most once, and by no member that another one had replaced.
    fn check_gates(&self) {
        let mut messages = BTreeSet::new();
        let mut last = None;
        for Published { at, verdict: message, by, order } in &self.passed {
            assert!(messages.insert(message), "{message} was passed on a second time, by {by} at {at}");
            assert!(last <= Some(order), "{by} passed {message} on at {at}, though it was replaced");
            last = Some(order);
        }
    }

    fn check(&self) {
        let is_active = |node: &&Node| node.is_alive && node.worker.election.role() == Role::Active;
        assert_eq!(self.nodes.iter().filter(is_active).count(), 1, "one is active at the end");
        let late = self.published.iter().filter(|published| published.at >= STABLE);
        assert_eq!(late.map(|published| published.by).collect::<BTreeSet<_>>().len(), 1, "one publishes");
        let published: BTreeSet<u64> = self.published.iter().map(|published| published.verdict).collect();
        let last = ((END - 2 * LEASE) / VERDICT) as u64;
        let missing: Vec<u64> = (0..last).filter(|verdict| !published.contains(verdict)).collect();
        assert!(missing.is_empty(), "missing: {missing:?}");
        // A gate passes messages on one lease after the last take-over.
        let first = ((STABLE + 2 * LEASE) / VERDICT) as u64;
        let passed = self.passed.iter().map(|passed| passed.verdict);
        let mut passed: Vec<u64> = passed.filter(|message| (first..last).contains(message)).collect();
        passed.sort_unstable();
        assert_eq!(passed, (first..last).collect::<Vec<_>>(), "each message passes once");
    }
}

#[test]
fn one_member_publishes_whatever_stands_still_or_is_killed() {
    for seed in seeds("one_member_publishes_whatever_stands_still_or_is_killed", 300) {
        let faults = Faults { kills: seed % 2 == 0, ..Faults::default() };
        let world = World::new(seed, 2 + seed % 3, faults).run();
        world.check();
        // One of two that claim at once stops as soon as it has received the sign of the other.
        let overlap = world.overlap();
        assert!(overlap <= 2 * DELAY, "two members published for {overlap} of a lease of {LEASE}");
        world.check_gates();
    }
}

#[test]
fn no_verdict_is_missing_whatever_the_network_loses() {
    for seed in seeds("no_verdict_is_missing_whatever_the_network_loses", 300) {
        let faults = Faults { network: true, kills: seed % 2 == 0, ..Faults::default() };
        World::new(seed, 2 + seed % 3, faults).run().check();
    }
}

#[test]
fn no_message_passes_twice_though_the_network_stands_still() {
    for seed in seeds("no_message_passes_twice_though_the_network_stands_still", 300) {
        let faults = Faults { freezes: true, kills: seed % 2 == 0, ..Faults::default() };
        let world = World::new(seed, 2 + seed % 3, faults).run();
        world.check();
        world.check_gates();
    }
}

#[test]
fn late_member_takes_over_only_if_no_other_one_is_there() {
    for seed in seeds("late_member_takes_over_only_if_no_other_one_is_there", 100) {
        let mut world = World::new(seed, 3 + seed % 2, Faults::default());
        (0..4 * LEASE).for_each(|now| world.step(now));
        let first = world.active().expect("one is active");
        let others: Vec<usize> = (0..world.nodes.len()).filter(|at| *at != first).collect();
        // All but the last one of the others are late, whatever the preferences are.
        for (at, node) in world.nodes.iter_mut().enumerate() {
            let is_late = others.split_last().is_some_and(|(_, late)| late.contains(&at));
            node.worker.election.set_late(is_late);
            node.worker.outside.is_late = is_late;
        }
        (4 * LEASE..6 * LEASE).for_each(|now| world.step(now));
        assert_eq!(world.active(), Some(first), "a late member displaces none");
        world.nodes[first].is_alive = false;
        (6 * LEASE..9 * LEASE).for_each(|now| world.step(now));
        assert_eq!(world.active(), others.last().copied(), "the one that is not late takes over");
        world.nodes[others[others.len() - 1]].is_alive = false;
        (9 * LEASE..12 * LEASE).for_each(|now| world.step(now));
        assert!(world.active().is_some(), "a late one is better than none");
    }
}
