//! Discovery of topic types on DDS and ROS 2: types without a definition are taken from the publishers.
//!
//! A command resolves the types of present publishers before it begins, and ends if one does not fit. Other types are
//! resolved while it reads the topics whose types are known ([`TypeDiscovery`]).

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
use crate::live::networks::{self, NetworkSettings, Networks};
use crate::live::reader::{Reader, Subscribed};
use crate::live::signals::StopFlag;
use crate::live::subscriptions::Subscriptions;
use crate::{complain, exit, say, warn};

/// Time limit for a publisher to appear before the command begins without it, and for the description of a type.
const FIRST: Duration = Duration::from_secs(2);
/// Durations of the attempts within [`FIRST`]: short, so that a signal ends them soon. A description may take longer
/// than the first ones.
const ROUNDS: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_millis(1250)];
/// Duration of each later attempt. The end of a command waits for one.
const ROUND: Duration = Duration::from_secs(1);
/// Interval before the message about awaited publishers is repeated; it doubles each time.
const SAID_AGAIN: Duration = Duration::from_secs(10);
/// Maximum number of concurrent type queries.
const AT_ONCE: usize = 32;
/// Maximum number of awaited publishers named in a message.
const NAMED: usize = 5;

/// Whether the type of a topic is not resolved yet.
pub fn is_open(binding: &Binding) -> bool {
    binding.input.awaits_type()
}

/// Resolves the types of topics whose publishers are present or appear within [`FIRST`].
///
/// # Errors
/// The exit status for a type that cannot be used, after the reason was shown.
pub fn types(deployment: &mut Deployment, interrupted: &StopFlag) -> Result<(), u8> {
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
    let networks = networks::open(&settings, true, interrupted)?;
    let program = Arc::clone(&deployment.specification.program);
    let mut refused = BTreeMap::new();
    for round in ROUNDS {
        let queried = (0..).zip(&deployment.sources).filter(|(_, binding)| is_open(binding));
        let queried: Vec<(usize, &Binding)> = queried.collect();
        if queried.is_empty() || interrupted.is_set() {
            break;
        }
        for (topic, found) in query_types(&networks, &queried, &program, round) {
            let binding = &mut deployment.sources[topic];
            match typed(binding, found) {
                // Another publisher, which appears shortly, may have the fields.
                Ok(typed)
                    if round != ROUNDS[2] && !has_fields(&typed.address, &typed.input, topic, &program) => {}
                Ok(typed) => {
                    *binding = typed;
                    say(&type_text(binding));
                    refused.remove(&topic);
                }
                Err(why) => _ = refused.insert(topic, why),
            }
        }
    }
    networks.close_within(Duration::from_secs(1));
    if interrupted.is_set() {
        complain("stopped before the types of all topics were known: nothing was received or published");
        return Err(exit::NETWORK);
    }
    for (topic, why) in &refused {
        complain(&format!("{}: {why}", deployment.sources[*topic].address));
    }
    if refused.is_empty() { Ok(()) } else { Err(exit::USAGE) }
}

/// Returns the topics that can be read at once, after a colon; empty if there are none.
pub fn read_now(deployment: &Deployment) -> String {
    let known = deployment.sources.iter().filter(|binding| !is_open(binding));
    let known: Vec<String> = known.map(|binding| binding.address.to_string()).collect();
    if known.is_empty() { String::new() } else { format!(": {}", known.join(", ")) }
}

/// Queries the types of all these topics at once, so that no query waits for another. Returns the answers for topics
/// that have a publisher. If its publishers have several types, one with the fields that are read is preferred.
fn query_types(
    networks: &Networks,
    topics: &[(usize, &Binding)],
    program: &Program,
    limit: Duration,
) -> Vec<(usize, Result<DiscoveredType, String>)> {
    let mut all = Vec::new();
    for some in topics.chunks(AT_ONCE) {
        all.extend(thread::scope(|scope| {
            let mut queries = Vec::new();
            for (topic, binding) in some.iter().copied() {
                let fits = move |schema: &Schema| {
                    let message_type = Some(Arc::new(rondel_decode::MessageType::Cdr(schema.clone())));
                    let input = Input { message_type, ..binding.input.clone() };
                    has_fields(&binding.address, &input, topic, program)
                };
                queries.push(scope.spawn(move || {
                    let found = networks.discovered_type(&binding.address, limit, fits);
                    found.transpose().map(|found| (topic, found))
                }));
            }
            queries.into_iter().filter_map(|query| query.join().ok().flatten()).collect::<Vec<_>>()
        }));
    }
    all
}

/// Whether the message type of a topic has the fields that the program reads, except for the parameters of the address.
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

/// Returns the source with the type that a publisher describes.
///
/// # Errors
/// The reason why there is none, and the way out.
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

/// Returns the sentence about a resolved type.
fn type_text(binding: &Binding) -> String {
    let name = binding.input.message_type.as_ref().map_or("an unknown type", |of| of.name());
    format!("{}: messages of {name}, as its publisher describes them", binding.address)
}

/// A topic that has a publisher but was not read, since its type cannot be used.
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

/// Resolves types while a command runs, on a thread of its own.
pub struct TypeDiscovery {
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

    /// Whether the command ends within `limit`.
    fn ends_within(&self, limit: Duration) -> bool {
        let goes_on = |state: &mut State| !state.ending;
        let waited = self.wake.wait_timeout_while(self.state(), limit, goes_on);
        waited.unwrap_or_else(PoisonError::into_inner).0.ending
    }
}

impl TypeDiscovery {
    /// Starts to resolve the open types of a deployment's sources; `None` if there are none. The reader subscribes to each
    /// topic once its type is known, and the subscription is added to `subscriptions`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        deployment: &Deployment,
        networks: Arc<Networks>,
        subscriptions: Subscriptions,
        reader: impl Reader,
    ) -> io::Result<Option<TypeDiscovery>> {
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
        let discoverer = Discoverer {
            shared: Arc::clone(&shared),
            networks,
            subscriptions,
            program,
            open,
            is_alone,
            said,
            reader,
        };
        let thread = thread::Builder::new().name("types".into()).spawn(move || discoverer.run())?;
        Ok(Some(TypeDiscovery { shared, thread }))
    }

    /// Ends the thread, which takes up to a second. Returns the topics that have publishers and were not read.
    pub fn end(self) -> Vec<Unread> {
        self.shared.state().ending = true;
        self.shared.wake.notify_all();
        // A panic of the thread has been reported.
        let _ = self.thread.join();
        std::mem::take(&mut self.shared.state().unread).into_values().collect()
    }
}

struct Discoverer<R> {
    shared: Arc<Shared>,
    networks: Arc<Networks>,
    /// The subscriptions of the command, to which those of resolved topics are added.
    subscriptions: Subscriptions,
    program: Arc<Program>,
    open: Vec<(usize, Binding)>,
    /// Whether no topic can be read meanwhile.
    is_alone: bool,
    said: Said,
    reader: R,
}

impl<R: Reader> Discoverer<R> {
    /// Subscribes to a topic whose type is resolved.
    fn subscribe(&self, topic: usize, binding: &Binding) -> Subscribed {
        let topic = TopicId(topic as u32);
        self.reader.resolve(topic, binding)?;
        self.reader.subscribe(&self.networks, topic, binding)
    }

    fn run(mut self) {
        let mut failing: BTreeMap<usize, Instant> = BTreeMap::new();
        loop {
            let unread: Vec<usize> = self.shared.state().unread.keys().copied().collect();
            let absent = self.open.iter().filter(|(topic, _)| !unread.contains(topic));
            self.said.waiting(absent, self.is_alone);
            let round = Instant::now();
            let topics: Vec<(usize, &Binding)> =
                self.open.iter().map(|(topic, binding)| (*topic, binding)).collect();
            let found = query_types(&self.networks, &topics, &self.program, ROUND);
            for (topic, found) in found {
                let Some(at) = self.open.iter().position(|(open, _)| *open == topic) else { continue };
                let binding = typed(&self.open[at].1, found);
                let begun = binding.and_then(|binding| Ok((self.subscribe(topic, &binding)?, binding)));
                let mut state = self.shared.state();
                match begun {
                    Ok((subscription, binding)) => {
                        say(&type_text(&binding));
                        let number = self.reader.number(TopicId(topic as u32));
                        self.subscriptions.add(Some(number), subscription);
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

/// Schedule of the messages about awaited publishers.
struct Said {
    began: Instant,
    /// Time of the next message, and the interval after it.
    next: Option<(Instant, Duration)>,
    count: usize,
}

impl Said {
    fn at(began: Instant) -> Said {
        Said { began, next: None, count: 0 }
    }

    /// Shows the message when it is due, or when fewer publishers are awaited than before.
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
        say(&format!(
            "waiting for {publisher} of {}, to resolve {types}{waited}; {meanwhile}",
            listed(&open)
        ));
    }
}

/// Returns the first addresses, and the number of further ones.
fn listed(addresses: &[String]) -> String {
    let named = addresses.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match addresses.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
