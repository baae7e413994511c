//! Simulated transfers: on a network that loses, delays, repeats and alters messages, from a member that may be killed.

use rondel_testkit::{Random, is_replay, seeds};

use super::giving::{Act, Giving};
use super::taking::{Step, Taking};
use super::*;

/// Time between two looks of a member.
const LOOK: Nanos = 10_000_000;
/// The active member.
const ACTIVE: MemberId = MemberId(100);
const END: Nanos = LONGEST + 2 * ABANDONED;

/// Faults of a simulation.
#[derive(Clone, Copy, Default)]
struct Faults {
    /// Messages are lost, repeated and delayed.
    network: bool,
    /// A message is altered.
    alters: bool,
    /// The active member is killed.
    kills: bool,
    /// It is no longer active from some time on.
    hands_over: bool,
}

/// A message on its way.
#[derive(Clone, Debug)]
enum Packet {
    Request(Route, Request),
    Answer(Route, Answer),
}

/// A late member.
struct Late {
    taking: Taking,
    begins: Nanos,
    is_copying: bool,
    is_marked: bool,
    outcome: Option<Result<Vec<u8>, String>>,
}

/// A simulated group.
struct World {
    random: Random,
    faults: Faults,
    giving: Giving,
    late: Vec<Late>,
    network: Vec<(Nanos, Packet)>,
    /// The time at which a snapshot is there, and its transfer.
    saving: Option<(Nanos, u64)>,
    state: Vec<u8>,
    killed: Nanos,
    handed_over: Nanos,
}

impl World {
    fn new(seed: u64, count: u64, faults: Faults) -> World {
        let mut random = Random::new(seed);
        let size = 1 + random.index(12 * PART);
        let state = (0..size).map(|_| random.next() as u8).collect();
        let late = (0..count).map(|id| {
            let begins = random.int(2_000_000_000);
            // Numbers of transfers are those of each member.
            let taking = Taking::new(begins, 1 + id, MemberId(id), ACTIVE);
            Late { taking, begins, is_copying: false, is_marked: false, outcome: None }
        });
        let late = late.collect();
        let time = |random: &mut Random, is_on: bool| if is_on { random.int(4_000_000_000) } else { END };
        let killed = time(&mut random, faults.kills);
        let handed_over = time(&mut random, faults.hands_over);
        let (giving, network) = (Giving::default(), Vec::new());
        World { random, faults, giving, late, network, saving: None, state, killed, handed_over }
    }

    fn run(mut self) -> World {
        let mut now = 0;
        while now < END {
            self.deliver(now);
            if now < self.killed {
                self.give(now);
            }
            for at in 0..self.late.len() {
                let late = &mut self.late[at];
                let step = if now >= late.begins { late.taking.look(now) } else { None };
                self.take(now, at, step);
            }
            now += LOOK;
        }
        self
    }

    /// Does everything that is due for the active member.
    fn give(&mut self, now: Nanos) {
        if let Some((_, transfer)) = self.saving.take_if(|(due, _)| *due <= now) {
            let acts = self.giving.saved(transfer, Ok((self.state.clone(), 7)));
            self.act(now, acts);
        }
        let ended = self.giving.look(now);
        self.act(now, ended.into_iter().collect());
        while let Some((route, part)) = self.giving.part() {
            self.send(now, Packet::Answer(route, part));
        }
    }

    fn act(&mut self, now: Nanos, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Record | Act::Forget => {}
                Act::Save(route) => {
                    let late = self.late.iter().find(|late| late.taking.route().from == route.to);
                    let is_ready = late.is_some_and(|late| late.is_copying && late.is_marked);
                    assert!(is_ready, "a snapshot is taken only once copies are made");
                    self.saving = Some((now + self.random.int(500_000_000), route.transfer));
                }
                Act::Send(route, answer) => self.send(now, Packet::Answer(route, answer)),
            }
        }
    }

    fn take(&mut self, now: Nanos, at: usize, step: Option<Step>) {
        let late = &mut self.late[at];
        let route = late.taking.route();
        match step {
            None => {}
            Some(Step::Send(request)) => self.send(now, Packet::Request(route, request)),
            Some(Step::Keep | Step::Copy | Step::Mark) if self.random.one_in(3) => late.taking.wait("busy"),
            Some(step @ (Step::Keep | Step::Copy | Step::Mark)) => {
                late.is_copying |= step == Step::Copy;
                late.is_marked |= step == Step::Mark;
                late.taking.go_on(now);
            }
            Some(Step::Join(state, head)) => {
                assert_eq!((head.step, late.outcome.is_none()), (7, true));
                late.outcome = Some(Ok(state));
                self.send(now, Packet::Request(route, Request::End));
            }
            Some(Step::Fail(why, _)) => {
                assert!(late.outcome.is_none(), "it ends once");
                late.outcome = Some(Err(why));
                self.send(now, Packet::Request(route, Request::End));
            }
        }
    }

    fn send(&mut self, now: Nanos, mut packet: Packet) {
        let (random, faults) = (&mut self.random, self.faults);
        if faults.network && random.one_in(5) {
            return;
        }
        if faults.alters
            && let Packet::Answer(_, Answer::Part(_, content)) = &mut packet
            && random.one_in(10)
        {
            let at = random.index(content.len());
            content[at] ^= 1;
        }
        let delay = |random: &mut Random| if faults.network { random.int(300_000_000) } else { 1_000_000 };
        let due = now + delay(random);
        if faults.network && random.one_in(10) {
            let later = now + delay(random);
            self.network.push((later, packet.clone()));
        }
        self.network.push((due, packet));
    }

    fn deliver(&mut self, now: Nanos) {
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.network).into_iter().partition(|(due, _)| *due <= now);
        self.network = later;
        for (_, packet) in due {
            match packet {
                Packet::Request(route, request) if now < self.killed => {
                    let acts = self.giving.receive(now, route, request, now < self.handed_over);
                    self.act(now, acts);
                }
                Packet::Request(..) => {}
                Packet::Answer(route, answer) => {
                    let at = route.to.0 as usize;
                    let step = self.late[at].taking.receive(now, route, answer);
                    self.take(now, at, step);
                }
            }
        }
    }

    /// Checks the outcomes, and returns the number of states that were taken.
    fn check(&self) -> usize {
        let mut joined = 0;
        for late in &self.late {
            match &late.outcome {
                Some(Ok(state)) => {
                    assert!(*state == self.state, "another state was taken");
                    joined += 1;
                }
                Some(Err(_)) => {
                    let Faults { alters, kills, hands_over, .. } = self.faults;
                    assert!(alters || kills || hands_over, "{:?}", late.outcome);
                }
                None => panic!("a transfer has not ended"),
            }
        }
        assert!(self.killed < END || !self.giving.is_busy(), "no transfer lasts");
        joined
    }
}

#[test]
fn state_is_taken_whatever_the_network_loses() {
    for seed in seeds("state_is_taken_whatever_the_network_loses", 200) {
        let faults = Faults { network: true, ..Faults::default() };
        let count = 1 + seed % 2;
        assert_eq!(World::new(seed, count, faults).run().check(), count as usize, "seed {seed}");
    }
}

#[test]
fn transfer_ends_whatever_happens_to_the_active_member() {
    let mut joined = 0;
    for seed in seeds("transfer_ends_whatever_happens_to_the_active_member", 200) {
        let (network, kills, hands_over) = (seed % 2 == 0, seed % 3 == 0, seed % 3 == 1);
        let faults = Faults { network, kills, hands_over, alters: seed % 3 == 2 };
        joined += World::new(seed, 1 + seed % 2, faults).run().check();
    }
    assert!(is_replay() || joined > 20, "{joined}");
}

/// A late member, the time, and the answers of an active one.
fn taking() -> (Taking, Route) {
    let mut taking = Taking::new(0, 5, MemberId(1), ACTIVE);
    assert_eq!(taking.look(0), Some(Step::Keep));
    taking.go_on(0);
    assert_eq!(taking.look(0), Some(Step::Send(Request::Record)));
    let back = taking.route().back();
    (taking, back)
}

/// Passes the pauses. Returns the time.
fn request_state(taking: &mut Taking, back: Route) -> Nanos {
    assert_eq!(taking.receive(1, back, Answer::Recording), None);
    let mut steps = Vec::new();
    let mut now = 1;
    while steps.len() < 3 {
        let step = taking.look(now);
        if matches!(step, Some(Step::Copy | Step::Mark)) {
            taking.go_on(now);
        }
        steps.extend(step);
        now += LOOK;
    }
    assert_eq!(steps, [Step::Copy, Step::Mark, Step::Send(Request::State)]);
    now
}

#[test]
fn silent_member_is_given_up() {
    let (mut taking, back) = taking();
    let now = request_state(&mut taking, back);
    assert_eq!(taking.look(now), None, "the request is repeated later");
    assert_eq!(taking.look(now + REPEAT), Some(Step::Send(Request::State)));
    let end = taking.look(now + SILENT);
    assert!(matches!(end, Some(Step::Fail(_, true))), "{end:?}");
    assert_eq!(taking.look(now + LONGEST), None);
    assert_eq!(taking.receive(now, back, Answer::State(Head::of(b"1", 1))), None);
}

#[test]
fn busy_late_member_waits() {
    let mut taking = Taking::new(0, 5, MemberId(1), ACTIVE);
    for now in [0, LOOK, SILENT, LONGEST - 1] {
        assert_eq!(taking.look(now), Some(Step::Keep));
        taking.wait("busy");
    }
    assert_eq!(taking.look(LONGEST), Some(Step::Fail("busy".to_owned(), false)));
}

#[test]
fn unsuitable_states_are_refused() {
    for bytes in [0, LARGEST as u64 + 1, u64::MAX] {
        let (mut taking, back) = taking();
        let now = request_state(&mut taking, back);
        let end = taking.receive(now, back, Answer::State(Head { bytes, sum: 0, step: 0 }));
        assert!(matches!(end, Some(Step::Fail(_, false))), "{bytes}: {end:?}");
    }
    let (mut taking, back) = taking();
    let now = request_state(&mut taking, back);
    let head = Head::of(b"state", 1);
    let request = taking.receive(now, back, Answer::State(head));
    assert_eq!(request, Some(Step::Send(Request::Parts(vec![0]))));
    for (part, content) in [(0, &b"stat"[..]), (1, b"state"), (u32::MAX, b"state")] {
        assert_eq!(taking.receive(now, back, Answer::Part(part, content.to_vec())), None);
    }
    let other = Route { transfer: 6, ..back };
    assert_eq!(taking.receive(now, other, Answer::Part(0, b"state".to_vec())), None);
    let end = taking.receive(now, back, Answer::Part(0, b"stata".to_vec()));
    assert!(matches!(end, Some(Step::Fail(_, true))), "{end:?}");
}

#[test]
fn refusal_of_a_busy_member_is_not_final() {
    let (mut taking, back) = taking();
    let busy = || Answer::Refused("busy".to_owned(), true);
    assert_eq!(taking.receive(1, back, busy()), None);
    assert_eq!(taking.look(REPEAT + 1), Some(Step::Send(Request::Record)));
    let end = taking.look(LONGEST);
    assert_eq!(end, Some(Step::Fail("busy".to_owned(), false)));
    let mut giving = Giving::default();
    let route = |id: u64| Route { transfer: 1, from: MemberId(id), to: ACTIVE };
    assert_eq!(giving.receive(0, route(1), Request::Record, true)[0], Act::Record);
    let refused = giving.receive(0, route(2), Request::Record, true);
    assert!(matches!(refused[..], [Act::Send(_, Answer::Refused(_, true))]), "{refused:?}");
    // It has restarted, or begins again.
    let again = Route { transfer: 2, ..route(1) };
    assert_eq!(giving.receive(0, again, Request::Record, true)[0], Act::Record);
    assert_eq!(giving.receive(0, again, Request::End, true), [Act::Forget]);
    assert!(!giving.is_busy());
}

#[test]
fn one_snapshot_is_taken_at_a_time() {
    let mut giving = Giving::default();
    let route = |transfer: u64| Route { transfer, from: MemberId(1), to: ACTIVE };
    let is_refused = |acts: &[Act]| matches!(acts, [Act::Send(_, Answer::Refused(_, true))]);
    giving.receive(0, route(1), Request::Record, true);
    assert_eq!(giving.receive(0, route(1), Request::State, true)[0], Act::Save(route(1).back()));
    giving.receive(0, route(1), Request::End, true);
    assert!(is_refused(&giving.receive(0, route(2), Request::Record, true)));
    assert!(giving.saved(1, Ok((vec![1], 1))).is_empty(), "no member waits for it");
    assert_eq!(giving.receive(0, route(2), Request::Record, true)[0], Act::Record);
}

#[test]
fn transfer_that_the_active_member_has_ended_may_succeed_again() {
    let (mut taking, back) = taking();
    let now = request_state(&mut taking, back);
    let end = taking.receive(now, back, Answer::Ended);
    assert!(matches!(end, Some(Step::Fail(_, true))), "{end:?}");
}

#[test]
fn active_member_refuses_what_it_cannot_give() {
    let mut giving = Giving::default();
    let route = Route { transfer: 1, from: MemberId(1), to: ACTIVE };
    let is_refused = |acts: &[Act]| matches!(acts, [Act::Send(_, Answer::Refused(_, false))]);
    assert!(is_refused(&giving.receive(0, route, Request::Record, false)), "it is not active");
    let ended = [Act::Send(route.back(), Answer::Ended)];
    assert_eq!(giving.receive(0, route, Request::State, true), ended, "nothing was recorded");
    assert!(giving.receive(0, route, Request::End, true).is_empty());
    for saved in [Ok((vec![0; LARGEST + 1], 1)), Err("no".to_owned())] {
        giving.receive(0, route, Request::Record, true);
        giving.receive(0, route, Request::State, true);
        assert!(is_refused(&giving.saved(1, saved)));
        assert!(is_refused(&giving.receive(0, route, Request::State, true)), "also when repeated");
        giving.receive(0, route, Request::End, true);
    }
    giving.receive(0, route, Request::Record, true);
    giving.receive(0, route, Request::State, true);
    assert!(giving.saved(2, Ok((vec![1], 1))).is_empty(), "of another transfer");
    assert_eq!(giving.saved(1, Ok((vec![1], 1))).len(), 1);
    giving.receive(0, route, Request::Parts(vec![u32::MAX, 7, 0]), true);
    assert!(giving.has_parts());
    let back = route.back();
    assert_eq!(giving.part(), Some((back, Answer::Part(0, vec![1]))), "others do not exist");
    assert!(giving.part().is_none() && giving.is_busy());
    assert_eq!(giving.look(ABANDONED), Some(Act::Forget));
    assert!(!giving.is_busy());
}
