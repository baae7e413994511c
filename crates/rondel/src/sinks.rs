//! Sinks of verdicts: topics and standard output.

use std::sync::Arc;

use rondel_net::adapter::{PublishError, Publisher, now};
use rondel_runtime::ros2::{self, Diagnostics};
use rondel_runtime::{PropertyInfo, Report, Session};

use crate::console::Console;
use crate::output::VerdictWriter;
use crate::own::Own;
use crate::present::Present;
use crate::warn;
use crate::watchdog::Place;

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

/// A publisher among the sinks.
struct Outlet {
    publisher: Arc<dyn Publisher>,
    /// Its present verdicts, if they can be asked for.
    present: Option<Arc<Present>>,
}

/// The sinks of every property.
pub struct Sinks {
    writer: VerdictWriter,
    /// For each property its sinks.
    sinks: Vec<Vec<Sink>>,
    /// The state that each topic of diagnostics shows.
    diagnostics: Vec<(Arc<dyn Publisher>, Diagnostics)>,
    /// Remembers diagnostics that come back.
    own: Option<Arc<Own>>,
    /// The publishers, by their numbers in `place`.
    outlets: Vec<Outlet>,
    /// Where the thread that sends is.
    place: Arc<Place>,
    text: Vec<u8>,
    /// Standard output.
    pub stdout: Console,
    stdout_failed: bool,
    /// Verdicts published or printed, counted per sink.
    pub verdicts: u64,
    /// Verdicts that could not be published, without those that a slow consumer did not accept.
    pub unpublished: u64,
}

impl Sink {
    /// The sink of verdicts with this publisher; `ros2_type` is the type of messages of ROS 2 that are not text.
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
    /// The sinks of each property, and the form of verdicts on standard output.
    pub fn new(sinks: Vec<Vec<Sink>>, writer: VerdictWriter, stdout: Console) -> Sinks {
        let (diagnostics, text, place) = Default::default();
        let mut outlets: Vec<Outlet> = Vec::new();
        for publisher in sinks.iter().flatten().filter_map(Sink::publisher) {
            if !outlets.iter().any(|known| Arc::ptr_eq(&known.publisher, publisher)) {
                outlets.push(Outlet { publisher: Arc::clone(publisher), present: None });
            }
        }
        let (stdout_failed, verdicts, unpublished) = (false, 0, 0);
        Sinks {
            writer,
            sinks,
            diagnostics,
            own: None,
            outlets,
            place,
            text,
            stdout,
            stdout_failed,
            verdicts,
            unpublished,
        }
    }

    /// Where the thread that sends is.
    pub fn place(&self) -> Arc<Place> {
        Arc::clone(&self.place)
    }

    /// Keeps the present verdicts of a publisher, and returns them.
    pub fn keep_present(&mut self, publisher: &Arc<dyn Publisher>) -> Option<Arc<Present>> {
        let outlet = self.outlets.iter_mut().find(|outlet| Arc::ptr_eq(&outlet.publisher, publisher))?;
        let present = outlet.present.get_or_insert_with(|| Arc::new(Present::of(publisher)));
        Some(Arc::clone(present))
    }

    /// Remembers diagnostics, which come back on a topic that is read.
    pub fn remember(&mut self, own: Arc<Own>) {
        self.own = Some(own);
    }

    /// Prepares diagnostics of these properties, each on the topics that are among its sinks.
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

    /// Publishes diagnostics of a session that are due, and the last ones when the run `ends`. Returns whether there
    /// were any.
    pub fn tick(&mut self, session: &Session, ends: bool) -> bool {
        let mut due = false;
        for (publisher, diagnostics) in &mut self.diagnostics {
            if diagnostics.tick(now(), ends, || session.omitted(), &mut self.text) {
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
            printed |= self.send(&report);
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

    /// Sends a report to the sinks of its property. Returns whether standard output is one of them.
    fn send(&mut self, report: &Report<'_>) -> bool {
        let Sinks {
            writer,
            sinks,
            diagnostics,
            own: noted,
            outlets,
            place,
            text,
            stdout,
            verdicts,
            unpublished,
            ..
        } = self;
        let mut printed = false;
        for sink in &sinks[report.property().position as usize] {
            text.clear();
            let number = sink.publisher().and_then(|own| number(outlets, own));
            match number {
                Some(number) => place.publishing(number as u16),
                None => place.printing(),
            }
            let done = match sink {
                Sink::Network(publisher) => {
                    report.json(text);
                    let sent = publisher.publish(text).map_err(Some);
                    // Afterwards: whoever asks may have had it already, and must not have it before.
                    if let Some(present) = number.and_then(|number| outlets[number].present.as_ref()) {
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
                    let is_news = state.is_some_and(|(_, state)| state.take(report, now(), text));
                    if let Some(noted) = noted.as_ref().filter(|_| is_news) {
                        noted.note(text);
                    }
                    if is_news { publisher.publish(text).map_err(Some) } else { Ok(()) }
                }
                Sink::Stdout => {
                    printed = true;
                    writer.write(report, text);
                    stdout.write(text);
                    // A failure is reported once, in the end.
                    match stdout.failure() {
                        None => Ok(()),
                        Some(_) => Err(None),
                    }
                }
            };
            match done {
                Ok(()) => *verdicts += 1,
                // Its publisher counts it, and says so.
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
        self.diagnostics.clear();
        self.outlets.clear();
        // The vector keeps its length, as a receiver may be called once more.
        let mut all = publishers(self.sinks.iter_mut().flat_map(std::mem::take));
        all.push(self.stdout.end());
        all
    }
}

/// The number of a publisher.
fn number(outlets: &[Outlet], publisher: &Arc<dyn Publisher>) -> Option<usize> {
    outlets.iter().position(|outlet| Arc::ptr_eq(&outlet.publisher, publisher))
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
