//! Losses that no session sees: messages that consumers did not accept, and connections that were lost.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::{Drops, Outage};
use rondel_runtime::text::{counted, grouped};
use rondel_runtime::{Account, Notice};
use serde_json::{Value, json};

use crate::deployment::Address;
use crate::networks::Networks;
use crate::pipeline::Pipeline;
use crate::time_text::TimeText;

/// Interval of looking for further losses.
const EVERY: Duration = Duration::from_secs(1);

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

/// The messages of a topic as JSON.
pub fn topic_json(name: &str, account: &Account) -> Value {
    let Account { received, undecodable, lost, duplicated, lost_between, forgotten } = account;
    let mut object = json!({
        "topic": name,
        "received": received,
        "undecodable": undecodable,
        "lost": lost,
        "duplicated": duplicated,
    });
    if let Some((from, until)) = lost_between {
        object["lost_from"] = json!(seconds(*from));
        object["lost_until"] = json!(seconds(*until));
    }
    if *forgotten > 0 {
        object["forgotten_publishers"] = json!(forgotten);
    }
    object
}

/// The losses of a topic as a sentence, if there are any.
pub fn lost_text(name: &str, account: &Account, times: &mut TimeText) -> Option<String> {
    let Account { lost, duplicated, lost_between, .. } = account;
    let mut parts = Vec::new();
    if *lost > 0 {
        let between = lost_between
            .map(|(from, until)| format!(" between {} and {}", times.text(from), times.text(until)));
        parts.push(format!("{} lost{}", counted(*lost, "message", "messages"), between.unwrap_or_default()));
    }
    if *duplicated > 0 {
        parts.push(format!("{} twice", counted(*duplicated, "message came", "messages came")));
    }
    (!parts.is_empty()).then(|| format!("{name}: {}, by the numbers of publishers", parts.join(", ")))
}

/// A lost connection as JSON.
pub fn outage_json(outage: &Outage) -> Value {
    let Outage { network, neighbour, from, until } = outage;
    json!({"network": network, "neighbour": neighbour, "from": seconds(*from), "until": until.map(seconds)})
}

/// A lost connection as a sentence.
pub fn outage_text(outage: &Outage, times: &mut TimeText) -> String {
    let Outage { network, neighbour, from, until } = outage;
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
        sources: Vec<Address>,
    ) -> io::Result<Watcher> {
        let (end, ended) = mpsc::channel::<()>();
        let watch = move || {
            let mut seen = Seen { counts: vec![0; undelivered.0.len()], outages: Vec::new() };
            while ended.recv_timeout(EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                let outages = networks.outages();
                for outage in outages.iter().filter(|outage| !seen.outages.contains(outage)) {
                    let missed = (0..).zip(&sources).filter(|(_, source)| source.is_missed(outage));
                    let topics: Vec<TopicId> = missed.map(|(topic, _)| TopicId(topic)).collect();
                    pipeline.cut_off(&topics, outage.from, outage.until);
                }
                pipeline.report_losses(seen.notices(&undelivered, outages));
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
struct Seen {
    counts: Vec<u64>,
    outages: Vec<Outage>,
}

impl Seen {
    fn notices(&mut self, undelivered: &Undelivered, outages: Vec<Outage>) -> Vec<Notice> {
        let mut notices = Vec::new();
        for ((sink, drops), seen) in undelivered.0.iter().zip(&mut self.counts) {
            let count = drops.count();
            if let Some(span) = drops.span().filter(|_| count > *seen) {
                notices.push(Notice::undelivered(sink, (count - *seen, count), span));
                *seen = count;
            }
        }
        for outage in &outages {
            if !self.outages.contains(outage) {
                let Outage { network, neighbour, from, until } = outage;
                notices.push(Notice::outage(network, neighbour.as_deref(), *from, *until));
            }
        }
        self.outages = outages;
        notices
    }
}
