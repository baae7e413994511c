//! `rondel publish`: publishes a file on a network.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rondel_recording::{Piece, TraceReader};
use rondel_runtime::text::{counted, grouped};

use crate::deployment::Address;
use crate::live::networks::{self, NetworkArguments};
use crate::live::outgoing::{Outgoing, Schedule};
use crate::live::signals;
use crate::{complain, exit, say};

/// Publish the lines of a file on a topic, one message per line
#[derive(Debug, Args)]
pub struct Publish {
    /// The file; `-` is standard input, .gz and .zst are decompressed
    #[arg(value_name = "TRACE", default_value = "-")]
    trace: PathBuf,
    /// The topic: zenoh:KEY, dds:TOPIC or mqtt:TOPIC
    #[arg(long, value_name = "ADDRESS")]
    to: String,
    /// Messages per second (default: as fast as possible)
    #[arg(long, value_name = "N", value_parser = positive)]
    rate: Option<f64>,
    /// Wait up to SECONDS for a first subscriber
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    wait: u64,
    #[command(flatten)]
    network: NetworkArguments,
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|rate| (1e-3..=1e9).contains(rate))
        .ok_or_else(|| "a number from 0.001 to 1e9".to_owned())
}

impl Publish {
    /// Publishes, and returns the exit status.
    pub fn run(self) -> u8 {
        let address = match Address::parse_sink(&self.to) {
            Ok(Address::Stdout) => {
                complain("--to stdout: a topic on a network is needed");
                return exit::USAGE;
            }
            Ok(address) => address,
            Err(error) => {
                complain(&format!("--to {}: {error}", self.to));
                return exit::USAGE;
            }
        };
        let reader = match TraceReader::open(&self.trace) {
            Ok(reader) => reader,
            Err(error) => {
                complain(&error.to_string());
                return exit::TRACE;
            }
        };
        match self.publish(&address, reader) {
            Ok(status) | Err(status) => status,
        }
    }

    fn publish(&self, address: &Address, mut reader: TraceReader) -> Result<u8, u8> {
        let interrupted = signals::listen(|| ()).map_err(networks::failed)?;
        let networks = self.network.open(std::iter::once(address), &interrupted)?;
        let mut outgoing = Outgoing::new(networks, interrupted.clone(), self.network.slow_consumer.is_none());
        // With a rate, each message leaves at once; without one, throughput matters more.
        let sink = outgoing.add(address, None, self.rate.is_none()).map_err(networks::failed)?;
        outgoing.wait_for_subscribers(Duration::from_secs(self.wait), &interrupted);
        let schedule = Schedule::begin();
        let mut status = exit::SATISFIED;
        'all: while !interrupted.is_set() {
            // Published messages are flushed before waiting for the next line.
            let mut is_released = false;
            let idle = || {
                if !std::mem::replace(&mut is_released, true) {
                    outgoing.release();
                }
                if interrupted.is_set() { ControlFlow::Break(true) } else { ControlFlow::Continue(()) }
            };
            let Piece { text, start: mut at, end } = match reader.lines_unless(idle) {
                Ok(Some(lines)) => lines,
                Ok(None) => break,
                Err(error) => {
                    complain(&error.to_string());
                    status = exit::TRACE;
                    break;
                }
            };
            while let Some(length) = memchr::memchr(b'\n', &text[at..end]) {
                let line = text[at..at + length].trim_ascii();
                at += length + 1;
                if line.is_empty() {
                    continue;
                }
                if let Some(rate) = self.rate {
                    let due = Duration::from_secs_f64(outgoing.published() as f64 / rate);
                    if schedule.wait(due, &interrupted, || ControlFlow::Continue(())).is_none() {
                        break 'all;
                    }
                }
                let failed = outgoing.failed();
                outgoing.publish(sink, line);
                if outgoing.failed() > failed && interrupted.is_set() {
                    break 'all;
                }
            }
            reader.used(end);
        }
        let (seconds, published) = (schedule.elapsed().as_secs_f64(), outgoing.published());
        let failed = outgoing.failed();
        let ended = outgoing.end();
        let failures = if failed > 0 { format!(", {} failed", grouped(failed)) } else { String::new() };
        say(&format!("published {} in {seconds:.3} s{failures}", counted(published, "message", "messages")));
        ended.sentences().iter().for_each(|sentence| say(&format!("  {sentence}")));
        if failed > 0 || !ended.is_delivered {
            complain("the subscribers did not take every message");
            return Ok(exit::NETWORK);
        }
        Ok(status)
    }
}
