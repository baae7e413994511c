//! The way out of a running monitor: verdicts to the topics and to standard output where they belong.

use std::io;

use rondel_engine::Monitor;
use rondel_event::{Block, Value};
use rondel_net::adapter::Publisher;
use rondel_spec::Spec;

use crate::evidence::Witness;
use crate::output::{Emit, Format, Given, Output, VerdictWriter};
use crate::specification::Specification;
use crate::tally::Tally;
use crate::warn;

/// Where the verdicts of a property go.
pub enum Sink {
    /// To a topic.
    Network(Box<dyn Publisher>),
    /// To standard output.
    Stdout,
}

/// The properties that one monitor evaluates, and why they are violated.
pub struct Part {
    /// For each of them its position in the specification.
    pub properties: Vec<u32>,
    /// What watches why they are violated, where that is asked for.
    pub witness: Option<Witness>,
}

impl Part {
    /// All properties of a specification.
    pub fn whole(spec: &Spec, witness: Option<Witness>) -> Part {
        Part { properties: (0..spec.properties.len() as u32).collect(), witness }
    }
}

/// Counts verdicts, and sends each where it belongs.
pub struct Outlet {
    emit: Emit,
    format: Format,
    colour: bool,
    writers: Vec<VerdictWriter>,
    sinks: Vec<Vec<Sink>>,
    text: Vec<u8>,
    /// The keys of the verdict that is being given.
    keys: Vec<Value>,
    stdout: Output<io::Stdout>,
    stdout_failed: bool,
    /// What became of each property.
    pub tallies: Vec<Tally>,
    /// Verdicts published or printed, counted per sink.
    pub verdicts: u64,
    /// Verdicts that could not be published.
    pub unpublished: u64,
}

impl Outlet {
    /// For the properties of a specification.
    pub fn new(
        specification: &Specification,
        sinks: Vec<Vec<Sink>>,
        emit: Emit,
        (format, colour): (Format, bool),
    ) -> Outlet {
        Outlet {
            emit,
            format,
            colour,
            writers: VerdictWriter::all(&specification.spec, None),
            sinks,
            text: Vec::new(),
            keys: Vec::new(),
            stdout: Output::new(io::stdout()),
            stdout_failed: false,
            tallies: Tally::all(specification),
            verdicts: 0,
            unpublished: 0,
        }
    }

    /// Takes what a monitor of this part has just reported: on a block, whose first event is the step with this
    /// number, or on time passing.
    pub fn take(&mut self, block: Option<(&Block, u64)>, monitor: &Monitor, part: &mut Part) {
        let mut printed = false;
        let Part { properties, witness } = part;
        match witness {
            None => {
                // Of a verdict that is only counted, nobody asks for the key.
                let mut keys = std::mem::take(&mut self.keys);
                for report in monitor.reports() {
                    let property = properties[report.property as usize];
                    self.tallies[property as usize].add(report, || monitor.key(report));
                    if self.emit.wants(report) {
                        printed |= self.give(property, &Given::new(report, monitor, None, &mut keys));
                    }
                }
                self.keys = keys;
            }
            Some(witness) => witness.take(block, monitor, |given| {
                let property = properties[given.report.property as usize];
                self.tallies[property as usize].add(given.report, || given.keys.to_vec());
                if self.emit.wants(given.report) {
                    printed |= self.give(property, given);
                }
            }),
        }
        if printed {
            self.stdout.flush();
            if !self.stdout_failed
                && let Some(error) = self.stdout.failure()
            {
                self.stdout_failed = true;
                warn(&format!("verdicts can no longer be printed: {error}; checking goes on"));
            }
        }
    }

    /// Sends a verdict on the property at this position where it belongs. Whether some of that was printed.
    fn give(&mut self, property: u32, given: &Given<'_>) -> bool {
        let property = property as usize;
        let mut printed = false;
        let writer = &self.writers[property];
        for sink in &self.sinks[property] {
            self.text.clear();
            let done = match sink {
                Sink::Network(publisher) => {
                    writer.json(given, &mut self.text);
                    publisher.publish(&self.text).map_err(Some)
                }
                Sink::Stdout => {
                    printed = true;
                    writer.write(self.format, given, self.colour, &mut self.text);
                    self.stdout.write(&self.text);
                    // What is said of it is said once, in the end.
                    match self.stdout.failure() {
                        None => Ok(()),
                        Some(_) => Err(None),
                    }
                }
            };
            match done {
                Ok(()) => self.verdicts += 1,
                Err(error) => {
                    self.unpublished += 1;
                    if self.unpublished == 1
                        && let Some(error) = error
                    {
                        warn(&format!(
                            "a verdict could not be published: {error}; further ones are only counted"
                        ));
                    }
                }
            }
        }
        printed
    }

    /// Lets go what publishers hold back to fill a packet.
    pub fn release(&self) {
        for sink in self.sinks.iter().flatten() {
            if let Sink::Network(publisher) = sink {
                publisher.release();
            }
        }
    }

    /// Writes out what is buffered, and hands the publishers back to be flushed. What comes from here on
    /// goes nowhere.
    pub fn close(&mut self) -> Vec<Box<dyn Publisher>> {
        self.stdout.flush();
        // The properties keep their places: a receiver that is called once more finds no sinks there.
        publishers(self.sinks.iter_mut().flat_map(std::mem::take))
    }
}

/// The publishers among sinks.
pub fn publishers(sinks: impl IntoIterator<Item = Sink>) -> Vec<Box<dyn Publisher>> {
    let publisher = |sink| if let Sink::Network(publisher) = sink { Some(publisher) } else { None };
    sinks.into_iter().filter_map(publisher).collect()
}
