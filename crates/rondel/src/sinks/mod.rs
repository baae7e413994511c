//! Sinks of verdicts: topics and standard output, with the queues and files that hold back for slow consumers, the audit
//! file, the destinations beside networks, such as the store of verdicts, and actions on verdicts.

pub mod actions;
pub mod audit;
pub mod console;
pub mod driven;
mod exchange;
pub mod origin;
pub mod own;
pub mod place;
pub mod present;
pub mod queue;
pub mod silenced;
pub mod spool;
pub mod withheld;
mod withholding;

use std::sync::Arc;

use rondel_net::adapter::{PublishError, Publisher, now};
use rondel_runtime::ros2::{self, Diagnostics, Part};
use rondel_runtime::{Notice, PropertyInfo, Report, Session};

use crate::output::VerdictWriter;
use crate::sinks::actions::ActionFeed;
use crate::sinks::audit::Audit;
use crate::sinks::console::Console;
use crate::sinks::driven::DestinationFeed;
use crate::sinks::own::Own;
use crate::sinks::place::Place;
use crate::sinks::present::Present;
use crate::sinks::withheld::{Withheld, WithheldReport};
use crate::warn;

/// A destination of verdicts.
#[derive(Clone)]
pub enum Sink {
    /// A topic on a network, of verdicts in JSON.
    Network(Arc<dyn Publisher>),
    /// A topic of ROS 2, of verdicts in their own type.
    Ros2(Arc<dyn Publisher>),
    /// A topic of ROS 2, of diagnostics.
    Diagnostics(Arc<dyn Publisher>),
    /// Standard output.
    Stdout,
}

/// A publisher that one or more sinks share.
struct SinkPublisher {
    publisher: Arc<dyn Publisher>,
    /// Present verdicts of its properties, if the network can query them.
    present: Option<Arc<Present>>,
}

/// The sinks of every property.
pub struct Sinks {
    writer: VerdictWriter,
    /// The sinks of each property.
    sinks: Vec<Vec<Sink>>,
    /// The state that each topic of diagnostics shows.
    diagnostics: Vec<(Arc<dyn Publisher>, Diagnostics)>,
    /// Published diagnostics that return on a topic that the run reads.
    own: Option<Arc<Own>>,
    /// The audit of the run.
    audit: Option<Arc<Audit>>,
    /// The store and other destinations beside networks.
    driven: Option<DestinationFeed>,
    /// Actions on verdicts.
    actions: Option<ActionFeed>,
    /// Withheld verdicts of a member of a group.
    withheld: Option<Box<Withheld<WithheldReport>>>,
    /// The publishers, by their numbers in `place`.
    publishers: Vec<SinkPublisher>,
    /// Place of the sending thread, for the watchdog.
    place: Arc<Place>,
    text: Vec<u8>,
    /// Parts of the run that diagnostics show, beside the store.
    pub parts: Vec<Part>,
    /// Standard output.
    pub stdout: Console,
    stdout_failed: bool,
    /// Verdicts published or printed, counted per sink.
    pub verdicts: u64,
    /// Verdicts that could not be published, without those that a slow consumer did not accept.
    pub unpublished: u64,
}

impl Sink {
    /// Returns the sink of verdicts with this publisher; `ros2_type` is the type of ROS 2 messages that are not text.
    pub fn of(publisher: Arc<dyn Publisher>, ros2_type: Option<&str>) -> Sink {
        match ros2_type {
            Some(ros2::DIAGNOSTICS) => Sink::Diagnostics(publisher),
            Some(_) => Sink::Ros2(publisher),
            None => Sink::Network(publisher),
        }
    }

    /// The publisher of a sink on a network.
    pub fn publisher(&self) -> Option<&Arc<dyn Publisher>> {
        match self {
            Sink::Network(publisher) | Sink::Ros2(publisher) | Sink::Diagnostics(publisher) => {
                Some(publisher)
            }
            Sink::Stdout => None,
        }
    }
}

impl Sinks {
    /// Creates the sinks of each property, with the format of verdicts on standard output.
    pub fn new(sinks: Vec<Vec<Sink>>, writer: VerdictWriter, stdout: Console) -> Sinks {
        let (diagnostics, text, place) = Default::default();
        let mut publishers: Vec<SinkPublisher> = Vec::new();
        for publisher in sinks.iter().flatten().filter_map(Sink::publisher) {
            if !publishers.iter().any(|known| Arc::ptr_eq(&known.publisher, publisher)) {
                publishers.push(SinkPublisher { publisher: Arc::clone(publisher), present: None });
            }
        }
        let (stdout_failed, verdicts, unpublished) = (false, 0, 0);
        Sinks {
            writer,
            sinks,
            diagnostics,
            own: None,
            audit: None,
            driven: None,
            actions: None,
            withheld: None,
            publishers,
            place,
            text,
            parts: Vec::new(),
            stdout,
            stdout_failed,
            verdicts,
            unpublished,
        }
    }

    /// Place of the sending thread, for the watchdog.
    pub fn place(&self) -> Arc<Place> {
        Arc::clone(&self.place)
    }

    /// Starts to keep the present verdicts of a publisher, and returns them.
    pub fn keep_present(&mut self, publisher: &Arc<dyn Publisher>) -> Option<Arc<Present>> {
        let entry = self.publishers.iter_mut().find(|entry| Arc::ptr_eq(&entry.publisher, publisher))?;
        let present = entry.present.get_or_insert_with(|| Arc::new(Present::of(publisher)));
        Some(Arc::clone(present))
    }

    /// Records published diagnostics in `own`, as they return on a topic that is read.
    pub fn remember(&mut self, own: Arc<Own>) {
        self.own = Some(own);
    }

    /// Records verdicts in an audit file before they are published.
    pub fn record_in(&mut self, audit: Option<Arc<Audit>>) {
        self.audit = audit;
    }

    /// Records an event of the run in the audit file, if there is one.
    pub fn record(&self, kind: &str, members: &serde_json::Value) {
        if let Some(audit) = &self.audit {
            audit.record(kind, members);
        }
    }

    /// Sends all verdicts to destinations beside networks, also of properties without sinks.
    pub fn send_to(&mut self, driven: Option<DestinationFeed>) {
        self.driven = driven;
    }

    /// Begins to cause actions, also on verdicts of properties without sinks.
    pub fn act(&mut self, actions: Option<ActionFeed>) {
        self.actions = actions;
    }

    /// Returns a notice about actions that is due, or the last one when the run `ends`.
    pub fn look_at_actions(&mut self, ends: bool) -> Option<Notice> {
        self.actions.as_mut()?.look(now(), ends)
    }

    /// Reports the losses of a session to the destinations beside networks, and returns notices about them that are due.
    pub fn look_at_driven(&mut self, session: &Session, notices: &[Notice]) -> Vec<Notice> {
        let Some(driven) = &mut self.driven else { return Vec::new() };
        notices.iter().for_each(|notice| driven.note(notice));
        driven.account(|| session.summary(), false);
        driven.look()
    }

    /// Prepares diagnostics of these properties, each on the diagnostics topics among its sinks.
    pub fn diagnose(&mut self, properties: &[PropertyInfo]) {
        for sink in self.sinks.iter().flatten() {
            let Sink::Diagnostics(publisher) = sink else { continue };
            if self.diagnostics.iter().any(|(known, _)| Arc::ptr_eq(known, publisher)) {
                continue;
            }
            let is_shown = |sink: &Sink| sink.publisher().is_some_and(|own| Arc::ptr_eq(own, publisher));
            let shown = self.sinks.iter().map(|sinks| sinks.iter().any(is_shown)).collect();
            self.diagnostics.push((Arc::clone(publisher), Diagnostics::new(properties, shown)));
        }
    }

    /// Publishes the diagnostics of a session that are due, and the last ones when the run `ends`. Returns whether any
    /// were published.
    pub fn tick(&mut self, session: &Session, ends: bool) -> bool {
        let mut due = false;
        if self.withholds() {
            return false;
        }
        for (publisher, diagnostics) in &mut self.diagnostics {
            if self.driven.is_some() || self.actions.is_some() || !self.parts.is_empty() {
                let mut parts = self.driven.as_ref().map(DestinationFeed::parts).unwrap_or_default();
                parts.extend(self.actions.as_ref().map(ActionFeed::part));
                parts.extend_from_slice(&self.parts);
                diagnostics.set_parts(parts);
            }
            if diagnostics.tick(now(), ends, || session.summary().omitted(), &mut self.text) {
                due = true;
                if let Some(own) = &self.own {
                    own.note(&self.text);
                }
                match publisher.publish(&self.text) {
                    Ok(()) | Err(PublishError::Slow) => {}
                    Err(_) => self.unpublished += 1,
                }
            }
        }
        due
    }

    /// Sends reports to the sinks of their properties.
    pub fn take<'r>(&mut self, reports: impl Iterator<Item = Report<'r>>) {
        let mut printed = false;
        for report in reports {
            if let Some(audit) = &self.audit
                && !self.sinks[report.property().position as usize].is_empty()
            {
                audit.verdict(&report);
            }
            if let Some(driven) = &mut self.driven {
                driven.verdict(&report);
            }
            // Before publishing, which may wait for a consumer.
            if let Some(actions) = &mut self.actions {
                actions.verdict(&report);
            }
            if let Some(withheld) = &mut self.withheld {
                withheld.note(report.time());
            }
            printed |= self.send(&report);
        }
        if let Some(withheld) = &self.withheld {
            withheld.show_position();
        }
        if let Some(driven) = &mut self.driven {
            self.place.storing();
            driven.send();
        }
        if printed {
            self.place.printing();
            self.stdout.flush();
            if !self.stdout_failed
                && let Some(error) = self.stdout.failure()
            {
                self.stdout_failed = true;
                warn(&format!("cannot print verdicts any more: {error}; checking continues"));
            }
        }
    }

    /// Notifies of violations that were muted until now, and acts on them: they were stored and published when they were
    /// reported.
    pub fn take_unmuted<'r>(&mut self, reports: impl Iterator<Item = Report<'r>>) {
        for report in reports {
            if let Some(driven) = &mut self.driven {
                driven.unmuted(&report);
            }
            if let Some(actions) = &mut self.actions {
                actions.verdict(&report);
            }
        }
    }

    /// Sends a report to the sinks of its property. Returns whether standard output is one of them.
    fn send(&mut self, report: &Report<'_>) -> bool {
        let Sinks {
            writer,
            sinks,
            diagnostics,
            own: noted,
            withheld,
            publishers,
            place,
            text,
            stdout,
            verdicts,
            unpublished,
            ..
        } = self;
        let epoch = withheld.as_ref().map(|withheld| withheld.epoch());
        let mut printed = false;
        for sink in &sinks[report.property().position as usize] {
            text.clear();
            let number = sink.publisher().and_then(|own| number(publishers, own));
            match number {
                Some(number) => place.publishing(number as u16),
                None => place.printing(),
            }
            let done = match sink {
                Sink::Network(publisher) => {
                    report.json(text);
                    withholding::write_epoch(epoch, text);
                    let sent = publisher.publish(text).map_err(Some);
                    // After publishing: a query must not return a verdict before it was published.
                    if let Some(present) = number.and_then(|number| publishers[number].present.as_ref()) {
                        present.note(report, text);
                    }
                    sent
                }
                Sink::Ros2(publisher) => {
                    ros2::write_verdict(report, text);
                    publisher.publish(text).map_err(Some)
                }
                Sink::Diagnostics(publisher) => {
                    let state = diagnostics.iter_mut().find(|(own, _)| Arc::ptr_eq(own, publisher));
                    let has_changed = state.is_some_and(|(_, state)| state.take(report, now(), text));
                    if let Some(noted) = noted.as_ref().filter(|_| has_changed) {
                        noted.note(text);
                    }
                    if has_changed { publisher.publish(text).map_err(Some) } else { Ok(()) }
                }
                Sink::Stdout => {
                    printed = true;
                    writer.write(report, text);
                    withholding::write_epoch(epoch, text);
                    stdout.write(text);
                    // A failure is reported once, by `take`.
                    match stdout.failure() {
                        None => Ok(()),
                        Some(_) => Err(None),
                    }
                }
            };
            match done {
                Ok(()) => *verdicts += 1,
                // Its publisher counts it and warns.
                Err(Some(PublishError::Slow)) => {}
                Err(error) => {
                    *unpublished += 1;
                    if *unpublished == 1
                        && let Some(error) = error
                    {
                        warn(&format!(
                            "cannot publish a verdict on '{}': {error}; further ones are only counted",
                            report.property().name
                        ));
                    }
                }
            }
        }
        printed
    }

    /// Releases payloads that publishers hold back to fill a packet.
    pub fn release(&self) {
        self.sinks.iter().flatten().for_each(release);
    }

    /// Writes the buffers and returns the publishers, to be flushed. Later reports have no sink.
    pub fn close(&mut self, session: &Session) -> Vec<Arc<dyn Publisher>> {
        self.tick(session, true);
        if let Some(mut driven) = self.driven.take() {
            driven.account(|| session.summary(), true);
            driven.end("finished");
        }
        self.actions = None;
        self.diagnostics.clear();
        self.publishers.clear();
        // The vector keeps its length, since a receiver may be called once more.
        let mut all = publishers(self.sinks.iter_mut().flat_map(std::mem::take));
        all.push(self.stdout.end());
        all
    }
}

/// Index of a publisher.
fn number(publishers: &[SinkPublisher], publisher: &Arc<dyn Publisher>) -> Option<usize> {
    publishers.iter().position(|entry| Arc::ptr_eq(&entry.publisher, publisher))
}

/// Releases payloads that a sink holds back to fill a packet.
pub fn release(sink: &Sink) {
    if let Some(publisher) = sink.publisher() {
        publisher.release();
    }
}

/// The publishers among sinks.
pub fn publishers(sinks: impl IntoIterator<Item = Sink>) -> Vec<Arc<dyn Publisher>> {
    sinks.into_iter().filter_map(|sink| sink.publisher().cloned()).collect()
}

/// Publishes a line, a set or a notice, on these sinks. Returns the number of successes and the first error,
/// without lines that a slow consumer did not accept, which its publisher counts.
pub fn publish(sinks: &[Sink], line: &[u8], stdout: &mut Console) -> (u64, Option<String>) {
    let (mut taken, mut failure) = (0, None);
    for sink in sinks {
        let sent = match sink {
            Sink::Network(publisher) | Sink::Ros2(publisher) | Sink::Diagnostics(publisher) => {
                match publisher.publish(line) {
                    Err(PublishError::Slow) => continue,
                    sent => sent.map_err(|e| e.to_string()),
                }
            }
            Sink::Stdout => {
                stdout.write(&[line, b"\n"].concat());
                stdout.flush();
                stdout.failure().map_or(Ok(()), |e| Err(e.to_string()))
            }
        };
        match sent {
            Ok(()) => taken += 1,
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    (taken, failure)
}
