//! Sinks of verdicts: topics and standard output.

use std::sync::Arc;

use rondel_net::adapter::{PublishError, Publisher};
use rondel_runtime::Report;

use crate::console::Console;
use crate::output::VerdictWriter;
use crate::warn;

/// A destination of verdicts.
#[derive(Clone)]
pub enum Sink {
    /// A topic on a network.
    Network(Arc<dyn Publisher>),
    /// Standard output.
    Stdout,
}

/// The sinks of every property.
pub struct Sinks {
    writer: VerdictWriter,
    /// For each property its sinks.
    sinks: Vec<Vec<Sink>>,
    text: Vec<u8>,
    /// Standard output.
    pub stdout: Console,
    stdout_failed: bool,
    /// Verdicts published or printed, counted per sink.
    pub verdicts: u64,
    /// Verdicts that could not be published, without those that a slow consumer did not accept.
    pub unpublished: u64,
}

impl Sinks {
    /// The sinks of each property, and the form of verdicts on standard output.
    pub fn new(sinks: Vec<Vec<Sink>>, writer: VerdictWriter, stdout: Console) -> Sinks {
        Sinks { writer, sinks, text: Vec::new(), stdout, stdout_failed: false, verdicts: 0, unpublished: 0 }
    }

    /// Sends reports to the sinks of their properties.
    pub fn take<'r>(&mut self, reports: impl Iterator<Item = Report<'r>>) {
        let mut printed = false;
        for report in reports {
            printed |= self.send(&report);
        }
        if printed {
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
        let Sinks { writer, sinks, text, stdout, verdicts, unpublished, .. } = self;
        let mut printed = false;
        for sink in &sinks[report.property().position as usize] {
            text.clear();
            let done = match sink {
                Sink::Network(publisher) => {
                    report.json(text);
                    publisher.publish(text).map_err(Some)
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
    pub fn close(&mut self) -> Vec<Arc<dyn Publisher>> {
        self.stdout.flush();
        // The vector keeps its length, as a receiver may be called once more.
        publishers(self.sinks.iter_mut().flat_map(std::mem::take))
    }
}

/// Releases payloads that a sink holds back to fill a packet.
pub fn release(sink: &Sink) {
    if let Sink::Network(publisher) = sink {
        publisher.release();
    }
}

/// The publishers among sinks.
pub fn publishers(sinks: impl IntoIterator<Item = Sink>) -> Vec<Arc<dyn Publisher>> {
    let publisher = |sink| if let Sink::Network(publisher) = sink { Some(publisher) } else { None };
    sinks.into_iter().filter_map(publisher).collect()
}

/// Publishes a line, a set or a notice, on these sinks. Returns the number of successes and the first error,
/// without lines that a slow consumer did not accept, which its publisher counts.
pub fn publish(sinks: &[Sink], line: &[u8], stdout: &mut Console) -> (u64, Option<String>) {
    let (mut taken, mut failure) = (0, None);
    for sink in sinks {
        let sent = match sink {
            Sink::Network(publisher) => match publisher.publish(line) {
                Err(PublishError::Slow) => continue,
                sent => sent.map_err(|e| e.to_string()),
            },
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
