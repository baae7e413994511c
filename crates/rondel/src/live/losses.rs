//! Losses that no session sees: messages that consumers did not accept, and connections that were lost.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::{DeadLetterCounts, Drops, Outage, Publisher, Recovered};
use rondel_runtime::Notice;
use rondel_runtime::text::grouped;
use serde_json::{Value, json};

use crate::deployment::Address;
use crate::live::networks::Networks;
use crate::live::pipeline::{Pipeline, sentence};
use crate::output::time_text::TimeText;
use crate::warn;

/// Interval of marking the process as running, and of looking for lost connections.
const EVERY: Duration = Duration::from_millis(100);
/// Number of intervals between reports of losses: one second.
const LOSSES: u32 = 10;

/// The counters of dropped messages, each with the address of its sink. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Undelivered(Arc<Mutex<Vec<Counter>>>);

/// The address of a sink, and a counter of its dropped messages.
type Counter = (String, Arc<Drops>);

impl Undelivered {
    fn all(&self) -> MutexGuard<'_, Vec<Counter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the counter of a sink, if it has one.
    pub fn add(&self, sink: String, drops: Option<Arc<Drops>>) {
        self.all().extend(drops.map(|drops| (sink, drops)));
    }

    /// The number of counters.
    pub fn len(&self) -> usize {
        self.all().len()
    }

    /// Removes the counters behind the first `len`: those of sinks that were never used.
    pub fn truncate(&self, len: usize) {
        self.all().truncate(len);
    }

    /// The number of messages of all sinks.
    pub fn count(&self) -> u64 {
        self.all().iter().map(|(_, drops)| drops.count()).sum()
    }

    /// The number of messages of each sink; several counters of a sink are one.
    pub fn counts(&self) -> Vec<(String, u64)> {
        let mut counts: Vec<(String, u64)> = Vec::new();
        for (sink, drops) in self.all().iter() {
            match counts.iter_mut().find(|(known, _)| known == sink) {
                Some((_, count)) => *count += drops.count(),
                None => counts.push((sink.clone(), drops.count())),
            }
        }
        counts
    }

    /// The sinks with dropped messages: address, count, first and last.
    fn sinks(&self) -> Vec<(String, u64, (Timestamp, Timestamp))> {
        let all = self.all();
        all.iter().filter_map(|(sink, drops)| Some((sink.clone(), drops.count(), drops.span()?))).collect()
    }

    /// Returns a JSON array of the sinks with dropped messages.
    pub fn json(&self) -> Value {
        let one = |(sink, count, (first, last)): (String, u64, (Timestamp, Timestamp))| json!({"sink": sink, "count": count, "first": seconds(first), "last": seconds(last)});
        self.sinks().into_iter().map(one).collect()
    }

    /// Returns a sentence for each sink with dropped messages.
    pub fn sentences(&self) -> Vec<String> {
        let mut times = TimeText::default();
        let one = |(sink, count, (first, last)): (String, u64, (Timestamp, Timestamp))| {
            format!(
                "{sink}: {} dropped, as a consumer did not accept them in time (from {} to {})",
                grouped(count),
                times.text(first),
                times.text(last)
            )
        };
        self.sinks().into_iter().map(one).collect()
    }
}

/// Published messages that no consumer has confirmed, each count with the address of its sink.
#[derive(Clone, Debug, Default)]
pub struct Unconfirmed(Vec<(String, u64)>);

impl Unconfirmed {
    /// Adds the messages of a publisher. Publishers of one sink have one count.
    pub fn add(&mut self, sink: &str, publisher: &dyn Publisher) {
        if self.0.iter().all(|(known, _)| known != sink) {
            let count = publisher.unconfirmed().unwrap_or(0);
            if count > 0 {
                self.0.push((sink.to_owned(), count));
            }
        }
    }

    /// Adds records that cannot be decoded, and are not written to their topic of Kafka.
    pub fn add_dead_letters(&mut self, counts: &DeadLetterCounts) {
        if counts.waiting > 0 {
            self.0.push((format!("kafka:{} (dead letters)", counts.topic), counts.waiting));
        }
    }

    /// The number of messages of all sinks.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// Returns a JSON array of the sinks with such messages.
    pub fn json(&self) -> Value {
        self.0.iter().map(|(sink, count)| json!({"sink": sink, "count": count})).collect()
    }

    /// Returns a sentence for each sink with such messages.
    pub fn sentences(&self) -> Vec<String> {
        let one = |(sink, count): &(String, u64)| {
            let is_of_broker = sink.starts_with("mqtt") || sink.starts_with("kafka");
            let by = if is_of_broker { "the broker" } else { "every subscriber" };
            format!("{sink}: {} published, but not confirmed by {by}: they may be lost", grouped(*count))
        };
        self.0.iter().map(one).collect()
    }
}

/// A lost connection as JSON.
pub fn outage_json(outage: &Outage) -> Value {
    let Outage { network, neighbour, from, until, .. } = outage;
    json!({"network": network, "neighbour": neighbour, "from": seconds(*from), "until": until.map(seconds)})
}

/// A lost connection as a sentence.
pub fn outage_text(outage: &Outage, times: &mut TimeText) -> String {
    let Outage { network, neighbour, from, until, .. } = outage;
    let to = neighbour.as_ref().map(|neighbour| format!(" with {neighbour}")).unwrap_or_default();
    let until = until.map_or_else(|| "not restored".to_owned(), |until| format!("to {}", times.text(until)));
    format!("{network}: the connection{to} was lost from {} {until}", times.text(*from))
}

/// The topics from these sources whose messages may have been missed while a connection was lost.
pub fn missed<'a>(outage: &Outage, sources: impl IntoIterator<Item = &'a Address>) -> Vec<TopicId> {
    let missed = (0..).zip(sources).filter(|(_, source)| source.is_missed(outage));
    missed.map(|(topic, _)| TopicId(topic)).collect()
}

fn seconds(time: Timestamp) -> f64 {
    time.as_nanos() as f64 / 1e9
}

/// The topics of all subscriptions of a run so far, by the numbers of the subscriptions: name and address. Clones share
/// them.
#[derive(Clone, Debug, Default)]
pub struct Sources(Arc<Mutex<Vec<(String, Address)>>>);

impl Sources {
    fn all(&self) -> MutexGuard<'_, Vec<(String, Address)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the next subscription.
    pub fn add(&self, name: String, address: Address) {
        self.all().push((name, address));
    }

    /// Removes the subscriptions from this number on, which were never used.
    pub fn truncate(&self, first: TopicId) {
        self.all().truncate(first.index());
    }

    /// Returns the name of the topic of a subscription.
    pub fn name(&self, number: TopicId) -> Option<String> {
        self.all().get(number.index()).map(|(name, _)| name.clone())
    }

    /// Returns the names of the topics.
    fn names(&self) -> Vec<String> {
        self.all().iter().map(|(name, _)| name.clone()).collect()
    }
}

/// Makes notices of losses while a pipeline runs, on a thread of its own.
pub struct Watcher {
    /// Ends the thread, by being dropped.
    end: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Watcher {
    /// Starts to look for losses once a second.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        pipeline: Arc<Pipeline>,
        networks: Arc<Networks>,
        undelivered: Undelivered,
        sources: Sources,
    ) -> io::Result<Watcher> {
        let (end, ended) = mpsc::channel::<()>();
        let watch = move || {
            let mut seen = Seen::new(undelivered, sources.names());
            let (mut looks, mut known) = (0, Vec::new());
            while ended.recv_timeout(EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                pipeline.alive();
                let outages = networks.outages();
                let is_new = |outage: &&Outage| outages != known && !known.contains(outage);
                for outage in outages.iter().filter(is_new) {
                    let topics = missed(outage, sources.all().iter().map(|(_, source)| source));
                    pipeline.cut_off(&topics, outage.from, outage.until);
                    let is_concerned = |(_, source): &(String, Address)| source.is_concerned(outage);
                    if outage.until.is_some() && sources.all().iter().any(is_concerned) {
                        pipeline.note_outage();
                    }
                }
                known = outages;
                looks = (looks + 1) % LOSSES;
                if looks == 0 {
                    seen.know(sources.names());
                    pipeline.report_losses(seen.notices(&networks));
                }
            }
        };
        let thread = thread::Builder::new().name("losses".into()).spawn(watch)?;
        Ok(Watcher { end, thread })
    }

    /// Ends the thread.
    pub fn end(self) {
        drop(self.end);
        // A panic of the thread has been reported.
        let _ = self.thread.join();
    }
}

/// Losses that notices have already reported.
pub struct Seen {
    undelivered: Undelivered,
    topics: Vec<String>,
    counts: Vec<u64>,
    outages: Vec<Outage>,
    recovered: Vec<u64>,
}

impl Seen {
    /// Creates an empty record of messages that these sinks drop, and of losses on topics with these names.
    pub fn new(undelivered: Undelivered, topics: Vec<String>) -> Seen {
        let (counts, recovered) = (vec![0; undelivered.all().len()], vec![0; topics.len()]);
        Seen { undelivered, topics, counts, outages: Vec::new(), recovered }
    }

    /// Sets the names of all topics so far.
    fn know(&mut self, topics: Vec<String>) {
        self.recovered.resize(topics.len(), 0);
        self.topics = topics;
    }

    /// Warns of losses since the last call: of those by the numbers of messages, and of all others.
    pub fn warn(&mut self, by_number: Vec<Notice>, networks: &Networks) {
        for mut notice in by_number {
            notice.topic_name = notice.topic.and_then(|topic| self.topics.get(topic.index()).cloned());
            warn(&sentence(&notice));
        }
        self.notices(networks).iter().for_each(|notice| warn(&sentence(notice)));
    }

    fn recovered(&mut self, now: Vec<(TopicId, Recovered)>) -> Vec<Notice> {
        let notice = |(topic, recovered): (TopicId, Recovered)| {
            let (name, seen) = (self.topics.get(topic.index())?, self.recovered.get_mut(topic.index())?);
            let count = recovered.count.checked_sub(std::mem::replace(seen, recovered.count));
            let count = count.filter(|count| *count > 0)?;
            let between = recovered.first.zip(recovered.last)?;
            Some(Notice::recovered(topic, name, (count, recovered.count), between))
        };
        now.into_iter().filter_map(notice).collect()
    }

    /// Returns notices of losses, and of messages that were received after all, since the last call.
    pub fn notices(&mut self, networks: &Networks) -> Vec<Notice> {
        let mut notices = self.recovered(networks.recovered());
        let undelivered = self.undelivered.all();
        self.counts.resize(undelivered.len(), 0);
        for ((sink, drops), seen) in undelivered.iter().zip(&mut self.counts) {
            let count = drops.count();
            if let Some(span) = drops.span().filter(|_| count > *seen) {
                notices.push(Notice::undelivered(sink, (count - *seen, count), span));
                *seen = count;
            }
        }
        drop(undelivered);
        let outages = networks.outages();
        for outage in &outages {
            if !self.outages.contains(outage) {
                let Outage { network, neighbour, from, until, .. } = outage;
                notices.push(Notice::outage(network, neighbour.as_deref(), *from, *until));
            }
        }
        self.outages = outages;
        notices
    }
}
