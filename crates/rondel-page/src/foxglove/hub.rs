//! Channels, the subscriptions of clients, and the queue of each client.
//!
//! The queues are bounded: the oldest messages of a client that reads too slowly are dropped and counted, and the client
//! receives the count. One that causes more answers than it reads is closed.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rondel_runtime::text::counted;
use tokio::sync::Notify;

use super::protocol::{self, Channel, Level, Request, Schema};

/// Maximum number of clients at once.
pub const MOST_CLIENTS: usize = 16;
/// Maximum number and size in bytes of the messages that wait for a client.
const MESSAGES: usize = 8_192;
const BYTES: usize = 4 << 20;
/// Maximum number of answers that wait for a client.
const ANSWERS: usize = 1_024;
/// Channels of one announcement.
const BATCH: usize = 100;
/// Minimum time between two reports to a client of what it has lost.
const REPORTED: Duration = Duration::from_secs(2);

/// Receives sentences for the operator of the run.
type Report = dyn Fn(&str) + Send + Sync;

/// Channels and clients.
pub struct Hub {
    name: String,
    session: String,
    state: Mutex<State>,
    /// Wakes [`Hub::wait`].
    woken: Condvar,
    report: Box<Report>,
}

#[derive(Default)]
struct State {
    channels: Vec<Channel>,
    /// The id of the last channel.
    last_channel: u32,
    clients: Vec<Client>,
    last_client: u64,
    is_woken: bool,
    has_ended: bool,
}

/// A connected client.
struct Client {
    id: u64,
    /// By channel.
    subscriptions: HashMap<u32, Subscription>,
    /// Answers and announcements, which are sent before messages.
    answers: VecDeque<String>,
    messages: VecDeque<Message>,
    bytes: usize,
    /// Messages that it lost, the number that was reported to it, and when.
    lost: u64,
    reported: u64,
    reported_at: Option<Instant>,
    /// Whether its connection is to be closed.
    is_over: bool,
    wake: Arc<Notify>,
}

#[derive(Clone, Copy)]
struct Subscription {
    id: u32,
    /// Whether it receives messages: it has received the present state of its channel.
    is_active: bool,
}

struct Message {
    subscription: u32,
    time: i64,
    payload: Arc<[u8]>,
}

/// A subscription that waits for the present state of its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pending {
    client: u64,
    subscription: u32,
    /// The channel.
    pub channel: u32,
}

/// A client of the hub until it is dropped.
pub(super) struct Joined {
    hub: Arc<Hub>,
    id: u64,
    wake: Arc<Notify>,
}

/// The next thing to send to a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outgoing {
    Text(String),
    Frame(Vec<u8>),
    /// The connection is to be closed.
    Close,
}

impl Hub {
    /// Creates a hub without channels. Clients see `name`; `session` differs between runs; `report` receives sentences
    /// for the operator of the run.
    pub fn new(name: &str, session: &str, report: Box<Report>) -> Hub {
        let (name, session) = (name.to_owned(), session.to_owned());
        Hub { name, session, state: Mutex::default(), woken: Condvar::new(), report }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the channels, by their topics and types. Returns their ids. Channels that stay keep their subscribers, who
    /// are [pending](Hub::pending) again; the others are withdrawn.
    pub fn show(&self, channels: impl IntoIterator<Item = (String, Schema)>) -> Vec<u32> {
        let state = &mut *self.state();
        let mut before = std::mem::take(&mut state.channels);
        let (mut ids, mut added) = (Vec::new(), Vec::new());
        for (topic, schema) in channels {
            let is_same = |known: &Channel| known.topic == topic && known.schema == schema;
            let channel = match before.iter().position(is_same) {
                Some(at) => before.swap_remove(at),
                None => {
                    state.last_channel += 1;
                    added.push(state.last_channel);
                    Channel { id: state.last_channel, topic, schema }
                }
            };
            ids.push(channel.id);
            state.channels.push(channel);
        }
        let removed: Vec<u32> = before.iter().map(|channel| channel.id).collect();
        let is_added = |channel: &&Channel| added.binary_search(&channel.id).is_ok();
        let new: Vec<&Channel> = state.channels.iter().filter(is_added).collect();
        for client in &mut state.clients {
            client.subscriptions.retain(|channel, _| !removed.contains(channel));
            client.subscriptions.values_mut().for_each(|own| own.is_active = false);
            if !removed.is_empty() {
                client.answer(protocol::unadvertise(&removed));
            }
            new.chunks(BATCH).for_each(|batch| client.answer(protocol::advertise(batch.iter().copied())));
        }
        state.is_woken = true;
        self.woken.notify_all();
        ids
    }

    /// Waits until subscriptions change, or the limit is over; without subscriptions for as long as there are none.
    /// Returns `false` at the end.
    pub fn wait(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.state();
        loop {
            if state.has_ended {
                return false;
            }
            if std::mem::take(&mut state.is_woken) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let is_subscribed = state.clients.iter().any(|client| !client.subscriptions.is_empty());
            if is_subscribed && left.is_zero() {
                return true;
            }
            state = match is_subscribed {
                true => self.woken.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                false => self.woken.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// The channels with subscriptions, also pending ones.
    pub fn subscribed(&self) -> HashSet<u32> {
        let state = self.state();
        state.clients.iter().flat_map(|client| client.subscriptions.keys().copied()).collect()
    }

    /// The subscriptions that wait for the present state of their channels.
    pub fn pending(&self) -> Vec<Pending> {
        let state = self.state();
        let mut pending = Vec::new();
        for client in &state.clients {
            let waiting = client.subscriptions.iter().filter(|(_, own)| !own.is_active);
            pending.extend(waiting.map(|(channel, own)| Pending {
                client: client.id,
                subscription: own.id,
                channel: *channel,
            }));
        }
        pending
    }

    /// Sends pending subscriptions the state of their channels, if a channel has one: its time in nanoseconds and the
    /// message. Later messages follow.
    pub fn activate(&self, pending: &[Pending], mut initial: impl FnMut(u32) -> Option<(i64, Arc<[u8]>)>) {
        let state = &mut *self.state();
        for Pending { client, subscription, channel } in pending {
            let Some(client) = state.clients.iter_mut().find(|own| own.id == *client) else { continue };
            let Some(own) = client.subscriptions.get_mut(channel) else { continue };
            if own.id != *subscription || own.is_active {
                continue;
            }
            own.is_active = true;
            if let Some((time, payload)) = initial(*channel) {
                client.send(Message { subscription: *subscription, time, payload });
            }
        }
    }

    /// Makes all subscriptions pending, as after a loss.
    pub fn refresh(&self) {
        let state = &mut *self.state();
        for client in &mut state.clients {
            client.subscriptions.values_mut().for_each(|own| own.is_active = false);
        }
        state.is_woken = true;
    }

    /// Sends a message to the subscribers of a channel, with its time in nanoseconds.
    pub fn publish(&self, channel: u32, time: i64, payload: &Arc<[u8]>) {
        for client in &mut self.state().clients {
            if let Some(own) = client.subscriptions.get(&channel).copied().filter(|own| own.is_active) {
                client.send(Message { subscription: own.id, time, payload: Arc::clone(payload) });
            }
        }
    }

    /// Sends all clients a sentence, in place of the one before with this id.
    pub fn status(&self, level: Level, message: &str, id: &str) {
        let text = protocol::status(level, message, Some(id));
        self.state().clients.iter_mut().for_each(|client| client.answer(text.clone()));
    }

    /// Closes all connections, and accepts no further ones.
    pub fn end(&self) {
        let state = &mut *self.state();
        state.has_ended = true;
        state.clients.iter_mut().for_each(Client::close);
        self.woken.notify_all();
    }

    /// Adds a client; `None` if there are too many, or after the end.
    pub(super) fn join(self: &Arc<Hub>) -> Option<Joined> {
        let state = &mut *self.state();
        if state.has_ended || state.clients.len() >= MOST_CLIENTS {
            return None;
        }
        state.last_client += 1;
        let (id, wake) = (state.last_client, Arc::new(Notify::new()));
        let mut client = Client {
            id,
            subscriptions: HashMap::new(),
            answers: VecDeque::new(),
            messages: VecDeque::new(),
            bytes: 0,
            lost: 0,
            reported: 0,
            reported_at: None,
            is_over: false,
            wake: Arc::clone(&wake),
        };
        client.answer(protocol::server_info(&self.name, &self.session));
        state.channels.chunks(BATCH).for_each(|batch| client.answer(protocol::advertise(batch)));
        state.clients.push(client);
        Some(Joined { hub: Arc::clone(self), id, wake })
    }
}

impl State {
    fn client(&mut self, id: u64) -> Option<&mut Client> {
        self.clients.iter_mut().find(|client| client.id == id)
    }
}

impl Client {
    /// Adds an answer. A client with too many waiting ones is closed.
    fn answer(&mut self, text: String) {
        if self.answers.len() >= ANSWERS {
            return self.close();
        }
        self.answers.push_back(text);
        self.wake.notify_one();
    }

    /// Adds a message, in place of the oldest ones if there is no room.
    fn send(&mut self, message: Message) {
        self.bytes += message.payload.len();
        self.messages.push_back(message);
        while self.messages.len() > MESSAGES || self.bytes > BYTES {
            let Some(oldest) = self.messages.pop_front() else { break };
            self.bytes -= oldest.payload.len();
            self.lost += 1;
        }
        self.wake.notify_one();
    }

    fn close(&mut self) {
        self.is_over = true;
        self.wake.notify_one();
    }

    fn next(&mut self) -> Option<Outgoing> {
        if self.is_over {
            return Some(Outgoing::Close);
        }
        if let Some(text) = self.answers.pop_front() {
            return Some(Outgoing::Text(text));
        }
        let is_due = self.reported_at.is_none_or(|reported| reported.elapsed() >= REPORTED);
        if self.lost > self.reported && is_due {
            (self.reported, self.reported_at) = (self.lost, Some(Instant::now()));
            let messages = counted(self.lost, "message was", "messages were");
            let text = format!("{messages} dropped: this client reads too slowly");
            return Some(Outgoing::Text(protocol::status(Level::Warning, &text, Some("rondel.slow"))));
        }
        let Message { subscription, time, payload } = self.messages.pop_front()?;
        self.bytes -= payload.len();
        Some(Outgoing::Frame(protocol::frame(subscription, time, &payload)))
    }

    /// Carries out a request. Returns whether subscriptions have changed.
    fn receive(&mut self, request: Request, channels: &[Channel]) -> bool {
        match request {
            Request::Subscribe(all) => all.into_iter().fold(false, |changed, (id, channel)| {
                let refused = if channels.iter().all(|known| known.id != channel) {
                    Some(format!("there is no channel {channel}"))
                } else if self.subscriptions.contains_key(&channel) {
                    Some(format!("channel {channel} has a subscription already"))
                } else if self.subscriptions.values().any(|own| own.id == id) {
                    Some(format!("subscription {id} exists already"))
                } else {
                    None
                };
                match refused {
                    Some(why) => {
                        self.answer(protocol::status(Level::Error, &why, None));
                        changed
                    }
                    None => {
                        self.subscriptions.insert(channel, Subscription { id, is_active: false });
                        true
                    }
                }
            }),
            Request::Unsubscribe(ids) => {
                let before = self.subscriptions.len();
                self.subscriptions.retain(|_, own| !ids.contains(&own.id));
                // Messages of an ended subscription mean nothing to the client.
                self.messages.retain(|message| !ids.contains(&message.subscription));
                self.bytes = self.messages.iter().map(|message| message.payload.len()).sum();
                self.subscriptions.len() != before
            }
        }
    }
}

impl Joined {
    /// Waits until there is something to send.
    pub(super) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Lets [`Joined::woken`] return once more.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// The next thing to send; `None` if nothing waits.
    pub(super) fn next(&self) -> Option<Outgoing> {
        match self.hub.state().client(self.id) {
            Some(client) => client.next(),
            None => Some(Outgoing::Close),
        }
    }

    /// Takes a text of the client.
    pub(super) fn receive(&self, text: &str) {
        let request = protocol::request(text);
        let state = &mut *self.hub.state();
        let State { channels, clients, is_woken, .. } = state;
        let Some(client) = clients.iter_mut().find(|client| client.id == self.id) else { return };
        match request {
            Ok(request) => {
                if client.receive(request, channels) {
                    *is_woken = true;
                    self.hub.woken.notify_all();
                }
            }
            Err(why) => client.answer(protocol::status(Level::Error, &why, None)),
        }
    }

    /// Refuses bytes of the client: this server receives nothing.
    pub(super) fn refuse_bytes(&self) {
        let why = "this server only sends: binary messages are not supported";
        if let Some(client) = self.hub.state().client(self.id) {
            client.answer(protocol::status(Level::Error, why, None));
        }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let mut state = self.hub.state();
        let Some(at) = state.clients.iter().position(|client| client.id == self.id) else { return };
        let lost = state.clients.swap_remove(at).lost;
        state.is_woken = true;
        drop(state);
        self.hub.woken.notify_all();
        if lost > 0 {
            let messages = counted(lost, "message was", "messages were");
            (self.hub.report)(&format!("a client of Foxglove read too slowly: {messages} dropped"));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
