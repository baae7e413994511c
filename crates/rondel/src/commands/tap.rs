//! `rondel tap`: what is published on a topic.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use clap::Args;
use rondel_event::TopicId;
use rondel_net::adapter::{Receiver, Sample};

use crate::deployment::Address;
use crate::networks::NetworkArguments;
use crate::output::Output;
use crate::tally::counted;
use crate::{complain, exit, say, signals};

/// Print what is published on a topic, a line for each message
#[derive(Debug, Args)]
pub struct Tap {
    /// The topic: zenoh:KEY or mqtt:TOPIC (wildcards allowed) or dds:TOPIC
    #[arg(value_name = "ADDRESS")]
    topic: String,
    /// End after so many messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    network: NetworkArguments,
}

/// Prints samples.
struct Printer {
    state: Mutex<(Output<io::Stdout>, Vec<u8>, u64)>,
    count: u64,
    done: mpsc::Sender<()>,
}

impl Receiver for Printer {
    fn receive(&self, _: TopicId, samples: &[Sample<'_>]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (out, text, received) = &mut *state;
        text.clear();
        let before = *received;
        for sample in samples {
            if *received < self.count {
                *received += 1;
                text.extend_from_slice(sample.payload);
                text.push(b'\n');
            }
        }
        out.write(text);
        out.flush();
        if *received >= self.count && before < self.count || out.is_closed() {
            // Nobody waits any more when the command is ending already.
            let _ = self.done.send(());
        }
    }
}

impl Tap {
    /// Prints until it is to end, and returns the exit status.
    pub fn run(self) -> u8 {
        let address = match Address::parse(&self.topic) {
            Ok(Address::Stdout) => {
                complain("stdout is no topic; write zenoh:KEY, dds:TOPIC or mqtt:TOPIC");
                return exit::USAGE;
            }
            Ok(address) => address,
            Err(error) => {
                complain(&error);
                return exit::USAGE;
            }
        };
        match self.tap(&address) {
            Ok(status) | Err(status) => status,
        }
    }

    fn tap(&self, address: &Address) -> Result<u8, u8> {
        let network = |error: String| {
            complain(&error);
            exit::NETWORK
        };
        let (done, ended) = mpsc::channel();
        let asking = done.clone();
        let asked = signals::listen(move || _ = asking.send(()))
            .map_err(|e| network(format!("cannot listen for signals: {e}")))?;
        let networks = self.network.open(std::iter::once(address), || asked.yet())?;
        let count = self.count.unwrap_or(u64::MAX);
        let state = Mutex::new((Output::new(io::stdout()), Vec::new(), 0));
        let printer = Arc::new(Printer { state, count, done });
        let subscription = networks.subscribe(address, TopicId(0), Arc::clone(&printer)).map_err(network)?;
        say(&format!("ready: {address}"));
        // Whoever holds the other end is this process itself.
        let _ = ended.recv();
        if asked.yet() {
            subscription.drain(Duration::from_millis(20), Duration::from_secs(2));
        }
        subscription.close(Duration::from_secs(5));
        let received = printer.state.lock().unwrap_or_else(PoisonError::into_inner).2;
        drop(subscription);
        networks.close();
        say(&format!("received {}", counted(received, "message", "messages")));
        Ok(exit::SATISFIED)
    }
}
