//! Simulated groups: members that stand still and are killed, on a network that loses, delays and repeats signs.

use std::collections::BTreeSet;

use rondel_testkit::{Random, seeds};

use super::election::{Change, Election, Member, MemberId, Nanos, Role, Sign};
use crate::sinks::withheld::{Known, Ring};

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
const NONE: Nanos = Nanos::MIN;

/// Faults of a simulation.
#[derive(Clone, Copy, Default)]
struct Faults {
    /// Signs are lost, come late, and links are cut.
    network: bool,
    /// Members are killed.
    kills: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Withholding,
    Releasing,
    Publishing,
}

/// A member with its evaluating thread: verdict number `k` has the time of event `k * VERDICT`.
struct Node {
    id: u64,
    prefer: i64,
    election: Election,
    ring: Ring<u64>,
    mode: Mode,
    until: Nanos,
    has_lapsed: bool,
    position: Nanos,
    known: Known,
    reached: Option<i64>,
    number: u64,
    next_sign: Nanos,
    inbox: Vec<Sign>,
    /// Number of the next verdict, and its delay.
    verdict: u64,
    delay: Nanos,
    begins: Nanos,
    is_alive: bool,
    paused: Nanos,
}

/// A published verdict.
struct Published {
    at: Nanos,
    verdict: u64,
    by: u64,
    /// Epoch, preference and id, the last two of which decide between equal epochs.
    order: (u64, i64, std::cmp::Reverse<u64>),
}

#[derive(Default)]
struct Out {
    signs: Vec<(Nanos, Sign)>,
    published: Vec<Published>,
}

impl Node {
    fn new(id: u64, random: &mut Random) -> Node {
        let prefer = random.int(2);
        let begins = if random.one_in(3) { 0 } else { random.int(50) };
        let election = Election::new(Member { id: MemberId(id), prefer, lease: LEASE }, begins);
        Node {
            id,
            prefer,
            election,
            ring: Ring::new(LEASE, usize::MAX),
            mode: Mode::Withholding,
            until: NONE,
            has_lapsed: false,
            position: NONE,
            known: Known { position: NONE, received: NONE },
            reached: None,
            number: 0,
            next_sign: begins,
            inbox: Vec::new(),
            verdict: 0,
            delay: random.int(6),
            begins,
            is_alive: true,
            paused: 0,
        }
    }

    /// The evaluating thread: publishes or withholds the verdicts that are due.
    fn evaluate(&mut self, now: Nanos, out: &mut Out) {
        while self.verdict as Nanos * VERDICT + self.delay <= now {
            let verdict = self.verdict;
            self.verdict += 1;
            if self.mode == Mode::Publishing && now >= self.until {
                (self.mode, self.has_lapsed) = (Mode::Withholding, true);
            }
            if self.mode == Mode::Publishing {
                self.publish(verdict, now, out);
            } else {
                self.ring.push(verdict, verdict as Nanos * VERDICT, now, self.known);
            }
        }
    }

    fn publish(&mut self, verdict: u64, at: Nanos, out: &mut Out) {
        self.position = self.position.max(verdict as Nanos * VERDICT);
        let order = (self.election.epoch(), self.prefer, std::cmp::Reverse(self.id));
        out.published.push(Published { at, verdict, by: self.id, order });
    }

    /// The thread of the group.
    fn step(&mut self, now: Nanos, out: &mut Out) {
        if self.election.role() == Role::Active {
            self.look(now, out);
        }
        for sign in std::mem::take(&mut self.inbox) {
            if self.election.is_repeated(&sign) {
                continue;
            }
            let was_active = self.election.active() == Some(sign.from);
            let change = self.election.receive(now, &sign);
            if was_active || sign.successor.is_some() || self.election.active() == Some(sign.from) {
                self.know(now);
            }
            self.apply(change, now, out);
            if self.election.role() == Role::Active && sign.role == Role::Active {
                self.sign(now, out);
            }
        }
        self.look(now, out);
        self.release(now, out);
        if now >= self.next_sign {
            self.sign(now, out);
        }
    }

    fn know(&mut self, now: Nanos) {
        self.known = Known { position: self.election.position().unwrap_or(NONE), received: now };
    }

    fn look(&mut self, now: Nanos, out: &mut Out) {
        if std::mem::take(&mut self.has_lapsed) {
            let change = self.election.lapse(now);
            self.apply(change, now, out);
        }
        let change = self.election.look(now);
        self.apply(change, now, out);
    }

    fn apply(&mut self, change: Option<Change>, now: Nanos, out: &mut Out) {
        match change {
            None => return,
            Some(Change::Claimed(_)) => {
                self.reached = self.election.position();
                self.sign(now, out);
                (self.mode, self.has_lapsed) = (Mode::Releasing, false);
                self.ring.prune(self.known);
                self.position = self.position.max(self.known.position);
                self.release(now, out);
            }
            Some(Change::Follows(_)) => {}
            Some(Change::Fenced(_)) => {
                (self.mode, self.until) = (Mode::Withholding, NONE);
                self.know(now);
            }
        }
        self.next_sign = NONE;
    }

    fn release(&mut self, now: Nanos, out: &mut Out) {
        if self.mode != Mode::Releasing {
            return;
        }
        if now >= self.until {
            (self.mode, self.has_lapsed) = (Mode::Withholding, true);
            return;
        }
        if self.ring.len() == 0 {
            self.mode = Mode::Publishing;
        }
        for _ in 0..5 {
            let Some(verdict) = self.ring.pop() else { return };
            self.publish(verdict, now, out);
        }
    }

    fn sign(&mut self, now: Nanos, out: &mut Out) {
        self.next_sign = now + LEASE / 3;
        if let Some(change) = self.election.look(now) {
            return self.apply(Some(change), now, out);
        }
        let is_active = self.election.role() == Role::Active;
        let position = if is_active { self.reached } else { None };
        if is_active {
            self.reached = Some(self.position).filter(|position| *position != NONE);
        }
        self.send(position, None, now, out);
        self.election.sent(now);
        if is_active {
            self.until = self.election.until();
        }
    }

    fn send(&mut self, position: Option<i64>, successor: Option<MemberId>, now: Nanos, out: &mut Out) {
        self.number += 1;
        let sign = Sign {
            from: MemberId(self.id),
            number: self.number,
            epoch: self.election.epoch(),
            prefer: self.prefer,
            role: self.election.role(),
            position,
            ends: false,
            successor,
        };
        out.signs.push((now, sign));
    }

    fn hand_over(&mut self, now: Nanos, out: &mut Out) {
        let epoch = self.election.epoch();
        if let Ok(to) = self.election.hand_over(now, None, epoch) {
            (self.mode, self.until) = (Mode::Withholding, NONE);
            self.know(now);
            let position = Some(self.position).filter(|position| *position != NONE);
            self.send(position, Some(to), now, out);
        }
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
    out: Out,
}

impl World {
    fn new(seed: u64, count: u64, faults: Faults) -> World {
        let mut random = Random::new(seed);
        let nodes: Vec<Node> = (0..count).map(|id| Node::new(id, &mut random)).collect();
        let cut = vec![vec![0; nodes.len()]; nodes.len()];
        World { random, faults, nodes, network: Vec::new(), cut, out: Out::default() }
    }

    fn run(mut self) -> World {
        for now in 0..END {
            if now < QUIET {
                self.disturb(now);
            }
            self.deliver(now);
            for at in 0..self.nodes.len() {
                let evaluates_first = self.random.one_in(2);
                let (node, out) = (&mut self.nodes[at], &mut self.out);
                if !node.is_alive || now < node.paused || now < node.begins {
                    continue;
                }
                if evaluates_first {
                    node.evaluate(now, out);
                }
                node.step(now, out);
                node.evaluate(now, out);
            }
            self.send();
        }
        self
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
        if random.one_in(500) {
            let runs = |node: &&mut Node| node.is_alive && now >= node.paused && now >= node.begins;
            for node in nodes.iter_mut().filter(runs) {
                node.hand_over(now, &mut self.out);
            }
        }
    }

    fn deliver(&mut self, now: Nanos) {
        let mut later = Vec::new();
        for (at, to, sign) in self.network.drain(..) {
            if at <= now { self.nodes[to].inbox.push(sign) } else { later.push((at, to, sign)) }
        }
        self.network = later;
    }

    fn send(&mut self) {
        let random = &mut self.random;
        for (now, sign) in self.out.signs.drain(..) {
            let from = sign.from.0 as usize;
            let is_faulty = self.faults.network && now < QUIET;
            for to in (0..self.nodes.len()).filter(|to| *to != from) {
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
        for published in &self.out.published {
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

    fn check(&self) {
        let is_active = |node: &&Node| node.is_alive && node.election.role() == Role::Active;
        assert_eq!(self.nodes.iter().filter(is_active).count(), 1, "one is active at the end");
        let late = self.out.published.iter().filter(|published| published.at >= STABLE);
        assert_eq!(late.map(|published| published.by).collect::<BTreeSet<_>>().len(), 1, "one publishes");
        let published: BTreeSet<u64> = self.out.published.iter().map(|published| published.verdict).collect();
        let last = ((END - 2 * LEASE) / VERDICT) as u64;
        let missing: Vec<u64> = (0..last).filter(|verdict| !published.contains(verdict)).collect();
        assert!(missing.is_empty(), "missing: {missing:?}");
    }
}

#[test]
fn one_member_publishes_whatever_stands_still_or_is_killed() {
    for seed in seeds("one_member_publishes_whatever_stands_still_or_is_killed", 300) {
        let faults = Faults { network: false, kills: seed % 2 == 0 };
        let world = World::new(seed, 2 + seed % 3, faults).run();
        world.check();
        // One of two that claim at once stops as soon as it has received the sign of the other.
        let overlap = world.overlap();
        assert!(overlap <= 2 * DELAY, "two members published for {overlap} of a lease of {LEASE}");
    }
}

#[test]
fn no_verdict_is_missing_whatever_the_network_loses() {
    for seed in seeds("no_verdict_is_missing_whatever_the_network_loses", 300) {
        let faults = Faults { network: true, kills: seed % 2 == 0 };
        World::new(seed, 2 + seed % 3, faults).run().check();
    }
}
