//! Simulated members that miss messages, as they stand still or are cut off, and take the state of the active one.

use std::collections::{BTreeSet, VecDeque};

use rondel_testkit::is_replay;

use super::*;
use crate::live::pipeline::Joined;
use crate::live::standby::transfer::{pack, unpack};

/// Time between two looks, and between two messages.
const TICK: Nanos = 20_000_000;
const LEASE: Nanos = 200_000_000;
/// The shortest fault.
const FAULT: Nanos = 500_000_000;
/// Time from which there are no faults.
const QUIET: Nanos = 6_000_000_000;
/// Time by which every pause between transfers has passed.
const END: Nanos = 24_000_000_000;
/// Facts about all members: their first message came after they began.
const ABOUT: About = About { lease: LEASE, ..super::ABOUT };
const FIRST: Timestamp = Timestamp::from_nanos(1_000);

/// The evaluating thread of a member, whose state are the numbers of its messages, and its end of the network.
struct Holder {
    messages: BTreeSet<u64>,
    /// Messages since a transfer began, and whether some were missed since.
    kept: Option<BTreeSet<u64>>,
    is_broken: bool,
    /// Whether its session notices that.
    notices: bool,
    publishes: bool,
    is_cut: bool,
    outages: u64,
    /// Number of states that were taken.
    taken: u64,
    sent: Vec<Message>,
    outcomes: VecDeque<Outcome>,
}

impl Holder {
    fn offer(&mut self, message: Message) {
        if !self.is_cut {
            self.sent.push(message);
        }
    }
}

impl Surroundings for Holder {
    fn send(&mut self, sign: &Sign, about: &About) -> Result<(), String> {
        self.offer(Message::Sign(*sign, *about));
        if self.is_cut { Err("the connection is lost".to_owned()) } else { Ok(()) }
    }

    fn flush(&mut self) {}

    fn begin_publishing(&mut self, _: u64, _: Duration) -> Option<usize> {
        self.publishes = true;
        Some(0)
    }

    fn publish_withheld(&mut self, _: usize, _: Duration) -> Option<bool> {
        Some(false)
    }

    fn stop_publishing(&mut self, _: Duration) {
        self.publishes = false;
    }

    fn first_received(&mut self, _: Duration) -> Option<Result<Option<Timestamp>, Unresponsive>> {
        Some(Ok((!self.messages.is_empty()).then_some(FIRST)))
    }

    fn outages(&self) -> u64 {
        self.outages
    }

    fn began_late(&mut self, _: Timestamp, _: Timestamp, _: Duration) -> bool {
        panic!("no member starts late");
    }

    fn request(&mut self, route: Route, request: &Request) {
        self.offer(Message::Request(route, request.clone()));
    }

    fn answer(&mut self, route: Route, answer: &Answer) {
        self.offer(Message::Answer(route, answer.clone()));
    }

    fn note_identities(&mut self, _: Duration) -> bool {
        true
    }

    fn end_noting(&mut self, _: Duration) {}

    fn save(&mut self, transfer: u64) {
        let identities: Vec<u64> = self.messages.iter().copied().collect();
        let state = (pack(&identities, b"state"), self.messages.len() as u64);
        self.outcomes.push_back(Outcome::Saved(transfer, Ok(state)));
    }

    fn begin_keeping(&mut self, _: Duration) -> bool {
        (self.kept, self.is_broken) = (Some(BTreeSet::new()), false);
        true
    }

    fn copy_messages(&mut self, _: Duration) -> bool {
        true
    }

    fn mark_copies(&mut self, _: Duration) -> bool {
        true
    }

    fn end_keeping(&mut self, _: Duration) {
        self.kept = None;
    }

    fn join(&mut self, transfer: u64, state: Vec<u8>) {
        assert!(!self.publishes, "an active member keeps its state");
        let kept = self.kept.take().expect("messages were kept");
        let joined = if self.is_broken && self.notices {
            Err("this process stood still meanwhile".to_owned())
        } else {
            let (identities, _) = unpack(state).expect("a state");
            self.messages = identities.into_iter().chain(kept).collect();
            self.taken += 1;
            Ok(Joined::default())
        };
        self.outcomes.push_back(Outcome::Joined(transfer, joined));
    }

    fn outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    fn is_behind(&self) -> bool {
        false
    }

    fn say(&self, _: &str) {}

    fn warn(&self, _: &str) {}
}

/// A member.
struct Node {
    worker: Worker<Holder>,
    permit: Arc<Permit>,
    inbox: Vec<Event>,
    /// Ends of a standstill, and of an outage.
    paused: Option<Nanos>,
    cut: Option<Nanos>,
}

impl Node {
    fn new(id: u64, random: &mut Random) -> Node {
        let (member, prefer) = (MemberId(id), random.int(2));
        let permit = Arc::new(Permit::simulated(0));
        let handle = GroupHandle::new(GroupState::new("g".to_owned(), member, 0));
        let shared = Shared {
            permit: Arc::clone(&permit),
            handle,
            resumes: false,
            takes_none: None,
            awaits_returns: false,
        };
        let holder = Holder {
            messages: BTreeSet::new(),
            kept: None,
            is_broken: false,
            notices: random.one_in(2),
            publishes: false,
            is_cut: false,
            outages: 0,
            taken: 0,
            sent: Vec::new(),
            outcomes: VecDeque::new(),
        };
        let election = Election::new(Member { id: member, prefer, lease: LEASE }, 0);
        let worker = Worker::new(prefer, ABOUT, election, shared, holder);
        Node { worker, permit, inbox: Vec::new(), paused: None, cut: None }
    }

    /// Ends faults that are over, receives a message unless there is a fault, and runs.
    fn run(&mut self, now: Nanos, message: u64) {
        let wakes = self.paused.take_if(|until| *until <= now).is_some();
        if self.cut.take_if(|until| *until <= now).is_some() {
            self.worker.outside.outages += 1;
        }
        let holder = &mut self.worker.outside;
        holder.is_cut = self.cut.is_some();
        if self.paused.is_some() || self.cut.is_some() {
            holder.is_broken = true;
        } else {
            holder.messages.insert(message);
            holder.kept.iter_mut().for_each(|kept| _ = kept.insert(message));
        }
        if self.paused.is_some() {
            return;
        }
        self.permit.set_now(now);
        if wakes {
            self.worker.note_standstill();
        }
        let events = std::mem::take(&mut self.inbox);
        assert!(self.worker.step(events.into_iter()).is_continue(), "no run ends");
    }

    /// Begins a fault of a random kind, unless one lasts.
    fn disturb(&mut self, now: Nanos, random: &mut Random) {
        let until = Some(now + FAULT + random.int(2_000_000_000));
        let is_disturbed = self.paused.is_some() || self.cut.is_some();
        match random.index(3) {
            _ if is_disturbed => {}
            0 => self.cut = until,
            1 => self.paused = until,
            _ => {
                let epoch = self.worker.election.epoch();
                self.inbox.push(Event::Received(Box::new(Message::Promote { to: None, epoch })));
            }
        }
    }
}

/// Lets two members run, and checks the state of the one that stands by. Returns the number of states that were taken.
fn run(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let mut nodes = [0, 1].map(|id| Node::new(id, &mut random));
    for now in (0..END).step_by(TICK as usize) {
        if now < QUIET && random.one_in(50) {
            let at = random.index(2);
            nodes[at].disturb(now, &mut random);
        }
        for node in &mut nodes {
            node.run(now, (now / TICK) as u64);
        }
        for at in 0..2 {
            let sent = std::mem::take(&mut nodes[at].worker.outside.sent);
            let other = &mut nodes[1 - at];
            let is_lost = |random: &mut Random| now < QUIET && random.one_in(20);
            let arrive = sent.into_iter().filter(|_| other.cut.is_none() && !is_lost(&mut random));
            other.inbox.extend(arrive.map(|message| Event::Received(Box::new(message))));
        }
    }
    let is_active = |node: &&Node| node.worker.election.role() == Role::Active;
    let (active, standbys): (Vec<&Node>, Vec<&Node>) = nodes.iter().partition(is_active);
    assert_eq!((active.len(), standbys.len()), (1, 1), "seed {seed}");
    let [active, standby] = [&active[0].worker, &standbys[0].worker];
    assert!(!standby.election.is_late(), "seed {seed}");
    let missing = active.outside.messages.difference(&standby.outside.messages);
    assert_eq!(missing.count(), 0, "seed {seed}: messages of the active member are missing");
    nodes.iter().map(|node| node.worker.outside.taken).sum()
}

#[test]
fn standby_has_every_message_of_the_active_member_after_faults() {
    let seeds = seeds("standby_has_every_message_of_the_active_member_after_faults", 100);
    let taken: u64 = seeds.map(run).sum();
    assert!(is_replay() || taken > 50, "{taken}");
}
