//! Types of topics on DDS and ROS 2 that nobody has defined: they are learnt from the publishers.
//!
//! A command learns the types of publishers that are there before it begins, and ends if one does not fit. Other types it
//! learns while it reads the topics whose types are known ([`Learning`]).

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rondel_decode::schema::Schema;
use rondel_engine::Program;
use rondel_event::{Field, Segment, TopicId};
use rondel_net::dds::{DiscoveredType, RawType, TopicType};
use rondel_net::ros2::{MessageType, TypeHash};
use rondel_runtime::Input;
use serde_json::json;

use crate::deployment::{Address, Binding, Deployment};
use crate::networks::{self, NetworkSettings, Networks};
use crate::{complain, exit, say, warn};

/// How long to wait for a publisher before the command begins without it, and for the description of a type.
const FIRST: Duration = Duration::from_secs(2);
/// The attempts until then, so that a signal ends them soon. A description may take longer than the first ones.
const ROUNDS: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_millis(1250)];
/// How long each attempt takes after that. The end of a command waits for one.
const ROUND: Duration = Duration::from_secs(1);
/// When it is said again that a publisher is waited for; after that twice as long each time.
const SAID_AGAIN: Duration = Duration::from_secs(10);
/// How many topics are asked for at once.
const AT_ONCE: usize = 32;
/// How many are named that are waited for.
const NAMED: usize = 5;

/// Whether the type of a topic is still to be learnt.
pub fn is_open(binding: &Binding) -> bool {
    binding.input.awaits_type()
}

/// Takes over the types of the topics whose publishers are there, or come within [`FIRST`].
///
/// # Errors
/// The exit status for a type that cannot be used, after the reason was shown.
pub fn types(deployment: &mut Deployment, stopped: impl Fn() -> bool + Sync) -> Result<(), u8> {
    if !deployment.sources.iter().any(is_open) {
        return Ok(());
    }
    // A participant of its own: the one of the command begins with the session, which needs the types.
    let open =
        || deployment.sources.iter().filter(|binding| is_open(binding)).map(|binding| &binding.address);
    let on_ros2 = open().any(|address| matches!(address, Address::Ros2(..) | Address::Zenoh(..)));
    let NetworkSettings { zenoh, dds, ros2, .. } = &deployment.networks;
    let (zenoh, ros2) = if on_ros2 { (zenoh.clone(), ros2.clone()) } else { (None, None) };
    let settings = NetworkSettings { zenoh, dds: dds.clone(), ros2, ..NetworkSettings::default() };
    let networks = networks::open(&settings, true, &stopped)?;
    let program = Arc::clone(&deployment.specification.program);
    let mut refused = BTreeMap::new();
    for round in ROUNDS {
        let asked = (0..).zip(&deployment.sources).filter(|(_, binding)| is_open(binding));
        let asked: Vec<(usize, &Binding)> = asked.collect();
        if asked.is_empty() || stopped() {
            break;
        }
        for (topic, found) in ask(&networks, &asked, &program, round) {
            let binding = &mut deployment.sources[topic];
            match typed(binding, found) {
                // Another publisher, which comes in a moment, may have the fields.
                Ok(typed)
                    if round != ROUNDS[2] && !has_fields(&typed.address, &typed.input, topic, &program) => {}
                Ok(typed) => {
                    *binding = typed;
                    say(&learnt(binding));
                    refused.remove(&topic);
                }
                Err(why) => _ = refused.insert(topic, why),
            }
        }
    }
    networks.close_within(Duration::from_secs(1));
    if stopped() {
        complain("stopped before the types of all topics were known: nothing was received or published");
        return Err(exit::NETWORK);
    }
    for (topic, why) in &refused {
        complain(&format!("{}: {why}", deployment.sources[*topic].address));
    }
    if refused.is_empty() { Ok(()) } else { Err(exit::USAGE) }
}

/// The topics that are read at once, after a colon; nothing if there are none.
pub fn read_now(deployment: &Deployment) -> String {
    let known = deployment.sources.iter().filter(|binding| !is_open(binding));
    let known: Vec<String> = known.map(|binding| binding.address.to_string()).collect();
    if known.is_empty() { String::new() } else { format!(": {}", known.join(", ")) }
}

/// Asks for the types of all these topics at once, so that none is asked later because of another. Returns what the networks
/// say about those that have a publisher; of publishers of several types, about one whose type has the fields that are read.
fn ask(
    networks: &Networks,
    topics: &[(usize, &Binding)],
    program: &Program,
    limit: Duration,
) -> Vec<(usize, Result<DiscoveredType, String>)> {
    let mut all = Vec::new();
    for some in topics.chunks(AT_ONCE) {
        all.extend(thread::scope(|scope| {
            let mut asking = Vec::new();
            for (topic, binding) in some.iter().copied() {
                let fits = move |schema: &Schema| {
                    let message_type = Some(Arc::new(rondel_decode::MessageType::Cdr(schema.clone())));
                    let input = Input { message_type, ..binding.input.clone() };
                    has_fields(&binding.address, &input, topic, program)
                };
                asking.push(scope.spawn(move || {
                    let found = networks.discovered_type(&binding.address, limit, fits);
                    found.transpose().map(|found| (topic, found))
                }));
            }
            asking.into_iter().filter_map(|asking| asking.join().ok().flatten()).collect::<Vec<_>>()
        }));
    }
    all
}

/// Whether the type of the messages of a topic has the fields that the program reads, but for the parameters of the
/// address.
fn has_fields(address: &Address, input: &Input, topic: usize, program: &Program) -> bool {
    let mut fields = program.projections().get(topic).cloned().unwrap_or_default();
    if let Some(pattern) = address.pattern() {
        let is_parameter = |field: &Field| match &field.path.0[..] {
            [Segment::Key(key)] => pattern.parameters().any(|parameter| *parameter == **key),
            _ => false,
        };
        fields.fields.retain(|field| !is_parameter(field));
    }
    input.decoder(TopicId(topic as u32), &fields).is_ok()
}

/// The source with the type that a publisher describes.
///
/// # Errors
/// Why there is none, and what to do.
fn typed(binding: &Binding, found: Result<DiscoveredType, String>) -> Result<Binding, String> {
    let found = found.and_then(|found| Ok((found.schema?, found.name, found.keyed)));
    let (schema, name, keyed) =
        found.map_err(|why| format!("{why}; name its definition with `schemas:` and `type:`"))?;
    let mut binding = binding.clone();
    match &mut binding.address {
        Address::Dds(_, topic_type, _) => {
            *topic_type = TopicType::Raw(RawType { name: Some(name), keyed: Some(keyed) });
        }
        Address::Ros2(topic, _) => {
            let hash = schema.rihs01().and_then(|hash| TypeHash::parse(&hash).ok());
            topic.message_type = MessageType::from_dds(&name);
            topic.hash = hash;
        }
        _ => {}
    }
    binding.input.message_type = Some(Arc::new(rondel_decode::MessageType::Cdr(schema)));
    Ok(binding)
}

/// The sentence about a type that was learnt.
fn learnt(binding: &Binding) -> String {
    let name = binding.input.message_type.as_ref().map_or("an unknown type", |of| of.name());
    format!("{}: messages of {name}, as its publisher describes them", binding.address)
}

/// A topic that has a publisher, but was not read, since its type cannot be used.
#[derive(Clone, Debug)]
pub struct Unread {
    address: Address,
    why: String,
}

impl Unread {
    /// A sentence for the summary.
    pub fn sentence(&self) -> String {
        format!("not read: {}: {}", self.address, self.why)
    }

    /// The same as JSON.
    pub fn json(&self) -> serde_json::Value {
        json!({ "address": self.address.to_string(), "reason": self.why })
    }
}

/// Learns types while a command is at work, on a thread of its own.
pub struct Learning {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    ending: bool,
    /// The topics whose types cannot be used.
    unread: BTreeMap<usize, Unread>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the command ends, after waiting up to `limit` for that.
    fn ends_within(&self, limit: Duration) -> bool {
        let goes_on = |state: &mut State| !state.ending;
        let waited = self.wake.wait_timeout_while(self.state(), limit, goes_on);
        waited.unwrap_or_else(PoisonError::into_inner).0.ending
    }
}

impl Learning {
    /// Starts to learn the types of the sources of a deployment whose types are open; `None` if there are none. `begin` is called with each
    /// topic and its source, once its type is known, and begins to read it.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        deployment: &Deployment,
        networks: Arc<Networks>,
        begin: impl FnMut(usize, &Binding) -> Result<(), String> + Send + 'static,
    ) -> io::Result<Option<Learning>> {
        let (sources, program) = (&deployment.sources, Arc::clone(&deployment.specification.program));
        let open: Vec<(usize, Binding)> =
            (0..).zip(sources).filter(|(_, binding)| is_open(binding)).map(|(i, b)| (i, b.clone())).collect();
        if open.is_empty() {
            return Ok(None);
        }
        let shared = Arc::new(Shared::default());
        let is_alone = open.len() == sources.len();
        let mut said = Said::at(Instant::now());
        // Before the command is ready.
        said.waiting(open.iter(), is_alone);
        let learner = Learner { shared: Arc::clone(&shared), networks, program, open, is_alone, said, begin };
        let thread = thread::Builder::new().name("types".into()).spawn(move || learner.run())?;
        Ok(Some(Learning { shared, thread }))
    }

    /// Asks for the end, which takes up to a second.
    pub fn stop(&self) {
        self.shared.state().ending = true;
        self.shared.wake.notify_all();
    }

    /// Ends, and returns the topics that have publishers and were not read.
    pub fn end(self) -> Vec<Unread> {
        self.stop();
        // A panic of the thread has been reported.
        let _ = self.thread.join();
        std::mem::take(&mut self.shared.state().unread).into_values().collect()
    }
}

struct Learner<F> {
    shared: Arc<Shared>,
    networks: Arc<Networks>,
    program: Arc<Program>,
    open: Vec<(usize, Binding)>,
    /// Whether no topic can be read meanwhile.
    is_alone: bool,
    said: Said,
    begin: F,
}

impl<F: FnMut(usize, &Binding) -> Result<(), String>> Learner<F> {
    fn run(mut self) {
        let mut failing: BTreeMap<usize, Instant> = BTreeMap::new();
        loop {
            let unread: Vec<usize> = self.shared.state().unread.keys().copied().collect();
            let absent = self.open.iter().filter(|(topic, _)| !unread.contains(topic));
            self.said.waiting(absent, self.is_alone);
            let round = Instant::now();
            let topics: Vec<(usize, &Binding)> =
                self.open.iter().map(|(topic, binding)| (*topic, binding)).collect();
            let found = ask(&self.networks, &topics, &self.program, ROUND);
            for (topic, found) in found {
                let Some(at) = self.open.iter().position(|(open, _)| *open == topic) else { continue };
                let binding = typed(&self.open[at].1, found);
                let begun = binding.and_then(|binding| (self.begin)(topic, &binding).map(|()| binding));
                let mut state = self.shared.state();
                match begun {
                    Ok(binding) => {
                        say(&learnt(&binding));
                        state.unread.remove(&topic);
                        self.open.remove(at);
                        self.is_alone = false;
                    }
                    // A description may take longer than one attempt.
                    Err(why) if failing.entry(topic).or_insert(round).elapsed() >= FIRST => {
                        let address = &self.open[at].1.address;
                        if state.unread.get(&topic).is_none_or(|unread| unread.why != why) {
                            warn(&format!("{address}: {why}"));
                            state.unread.insert(topic, Unread { address: address.clone(), why });
                        }
                    }
                    Err(_) => {}
                }
            }
            if self.open.is_empty() || self.shared.ends_within(ROUND.saturating_sub(round.elapsed())) {
                return;
            }
        }
    }
}

/// When it was said which publishers are waited for.
struct Said {
    began: Instant,
    /// When it is said again, and how long after that.
    next: Option<(Instant, Duration)>,
    count: usize,
}

impl Said {
    fn at(began: Instant) -> Said {
        Said { began, next: None, count: 0 }
    }

    /// Says it if it is time to, or if fewer are waited for than before.
    fn waiting<'b>(&mut self, open: impl Iterator<Item = &'b (usize, Binding)>, is_alone: bool) {
        let open: Vec<String> = open.map(|(_, binding)| binding.address.to_string()).collect();
        let (now, fewer) = (Instant::now(), open.len() < self.count);
        let after = match self.next {
            None => SAID_AGAIN,
            Some((at, after)) if now >= at => after * 2,
            Some((_, after)) if fewer => after,
            Some(_) => return,
        };
        let waited =
            self.next.map_or(String::new(), |_| format!(" for {} s", self.began.elapsed().as_secs()));
        self.next = Some((now + after, after));
        self.count = open.len();
        let (publisher, types) = match open.len() {
            0 => return,
            1 => ("a publisher", "its type"),
            _ => ("publishers", "their types"),
        };
        let meanwhile =
            if is_alone { "no topic is read before" } else { "the other topics are read meanwhile" };
        say(&format!("waiting for {publisher} of {}, to learn {types}{waited}; {meanwhile}", listed(&open)));
    }
}

/// The addresses, and how many there are beyond those that are named.
fn listed(addresses: &[String]) -> String {
    let named = addresses.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match addresses.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
