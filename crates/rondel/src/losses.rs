//! Losses that no session sees: messages that consumers did not accept, and connections that were lost.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::{Drops, Outage, Publisher, Recovered};
use rondel_runtime::Notice;
use rondel_runtime::text::grouped;
use serde_json::{Value, json};

use crate::deployment::Address;
use crate::networks::Networks;
use crate::pipeline::Pipeline;
use crate::time_text::TimeText;

/// Interval of noting that the process runs, and of looking for lost connections.
const EVERY: Duration = Duration::from_millis(100);
/// After so many intervals losses are reported: once a second.
const LOSSES: u32 = 10;

/// The counters of dropped messages, each with the address of its sink.
#[derive(Clone, Debug, Default)]
pub struct Undelivered(Vec<(String, Arc<Drops>)>);

impl Undelivered {
    /// Adds the counter of a sink, if it has one.
    pub fn add(&mut self, sink: String, drops: Option<Arc<Drops>>) {
        self.0.extend(drops.map(|drops| (sink, drops)));
    }

    /// The number of messages of all sinks.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(_, drops)| drops.count()).sum()
    }

    /// The sinks with dropped messages: address, count, first and last.
    fn sinks(&self) -> impl Iterator<Item = (&str, u64, (Timestamp, Timestamp))> {
        self.0.iter().filter_map(|(sink, drops)| Some((sink.as_str(), drops.count(), drops.span()?)))
    }

    /// As JSON: an array of the sinks with dropped messages.
    pub fn json(&self) -> Value {
        let one = |(sink, count, (first, last)): (&str, u64, (Timestamp, Timestamp))| json!({"sink": sink, "count": count, "first": seconds(first), "last": seconds(last)});
        self.sinks().map(one).collect()
    }

    /// A sentence for each sink with dropped messages.
    pub fn sentences(&self) -> Vec<String> {
        let mut times = TimeText::default();
        let one = |(sink, count, (first, last)): (&str, u64, (Timestamp, Timestamp))| {
            format!(
                "{sink}: {} dropped, as a consumer did not accept them in time (from {} to {})",
                grouped(count),
                times.text(first),
                times.text(last)
            )
        };
        self.sinks().map(one).collect()
    }
}

/// Published messages that nobody has confirmed, each count with the address of its sink.
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

    /// The number of messages of all sinks.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// As JSON: an array of the sinks with such messages.
    pub fn json(&self) -> Value {
        self.0.iter().map(|(sink, count)| json!({"sink": sink, "count": count})).collect()
    }

    /// A sentence for each sink with such messages.
    pub fn sentences(&self) -> Vec<String> {
        let one = |(sink, count): &(String, u64)| {
            let by = if sink.starts_with("mqtt:") { "the broker" } else { "every subscriber" };
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

fn seconds(time: Timestamp) -> f64 {
    time.as_nanos() as f64 / 1e9
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
    /// When the thread cannot be started.
    pub fn start(
        pipeline: Arc<Pipeline>,
        networks: Arc<Networks>,
        undelivered: Undelivered,
        sources: Vec<(String, Address)>,
    ) -> io::Result<Watcher> {
        let (end, ended) = mpsc::channel::<()>();
        let watch = move || {
            let names = sources.iter().map(|(name, _)| name.clone()).collect();
            let mut seen = Seen::new(&undelivered, names);
            let (mut looks, mut known) = (0, Vec::new());
            while ended.recv_timeout(EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                pipeline.alive();
                let outages = networks.outages();
                let is_new = |outage: &&Outage| outages != known && !known.contains(outage);
                for outage in outages.iter().filter(is_new) {
                    let missed = (0..).zip(&sources).filter(|(_, (_, source))| source.is_missed(outage));
                    let topics: Vec<TopicId> = missed.map(|(topic, _)| TopicId(topic)).collect();
                    pipeline.cut_off(&topics, outage.from, outage.until);
                }
                known.clone_from(&outages);
                looks = (looks + 1) % LOSSES;
                if looks == 0 {
                    pipeline.report_losses(seen.notices(&undelivered, networks.recovered(), outages));
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

/// The losses of which notices were made.
pub struct Seen {
    topics: Vec<String>,
    counts: Vec<u64>,
    outages: Vec<Outage>,
    recovered: Vec<u64>,
}

impl Seen {
    /// None yet.
    pub fn new(undelivered: &Undelivered, topics: Vec<String>) -> Seen {
        let (counts, recovered) = (vec![0; undelivered.0.len()], vec![0; topics.len()]);
        Seen { topics, counts, outages: Vec::new(), recovered }
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

    /// Notices of what was lost, and of what was received after all, since the last call.
    pub fn notices(
        &mut self,
        undelivered: &Undelivered,
        recovered: Vec<(TopicId, Recovered)>,
        outages: Vec<Outage>,
    ) -> Vec<Notice> {
        let mut notices = self.recovered(recovered);
        for ((sink, drops), seen) in undelivered.0.iter().zip(&mut self.counts) {
            let count = drops.count();
            if let Some(span) = drops.span().filter(|_| count > *seen) {
                notices.push(Notice::undelivered(sink, (count - *seen, count), span));
                *seen = count;
            }
        }
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
