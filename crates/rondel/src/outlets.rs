//! The publishers of a run: one for each address, behind a queue of its own.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rondel_net::adapter::Publisher;

use crate::deployment::{Address, Deployment};
use crate::losses::Undelivered;
use crate::networks::Networks;
use crate::queue::{NETWORK, Queue, Queued};
use crate::sinks::{Sink, publishers};
use crate::spool::Spools;
use crate::warn;

/// The sinks of a run, by what is sent to them.
pub struct Outlets {
    /// Of the verdicts of each property.
    pub verdicts: Vec<Vec<Sink>>,
    /// Of messages that are put in order.
    pub released: Vec<Sink>,
    /// Of reports.
    pub notices: Vec<Sink>,
    /// Of the state of the run.
    pub beats: Vec<Arc<dyn Publisher>>,
    /// What consumers do not accept.
    pub undelivered: Undelivered,
    /// The queues of verdicts and ordered messages.
    pub queues: Vec<Arc<Queue>>,
    /// Every publisher with its address.
    pub publishers: Vec<(String, Weak<dyn Publisher>)>,
}

impl Outlets {
    /// Makes the publishers of a deployment.
    ///
    /// # Errors
    /// The address on which nothing can be published, and the reason.
    pub fn open(deployment: &Deployment, networks: &Networks, spools: &Spools) -> Result<Outlets, String> {
        let mut opening = Opening {
            networks,
            spools,
            wait: deployment.slow_consumer,
            shared: HashMap::new(),
            undelivered: Undelivered::default(),
            queues: Vec::new(),
            publishers: Vec::new(),
        };
        let verdicts = deployment.sinks.iter().map(|places| opening.all(places)).collect::<Result<_, _>>()?;
        let released = opening.all(deployment.synchronized.as_deref().unwrap_or_default())?;
        // Reports and the state of the run are not counted as published.
        let queues = opening.queues.clone();
        let beats = deployment.heartbeat.as_ref().map_or(&[][..], |heartbeat| &heartbeat.to);
        let beats = publishers(opening.all(beats)?);
        let notices = opening.all(&deployment.alignment.reports)?;
        let Opening { undelivered, publishers, .. } = opening;
        Ok(Outlets { verdicts, released, notices, beats, undelivered, queues, publishers })
    }

    /// Waits until every topic of verdicts and ordered messages has a subscriber, for a limited time or until the command
    /// is `asked` to end.
    pub fn wait_for_subscribers(&self, deployment: &Deployment, limit: Duration, asked: impl Fn() -> bool) {
        if limit.is_zero() {
            return;
        }
        let deadline = Instant::now() + limit;
        let verdicts = self.verdicts.iter().flatten().zip(deployment.sinks.iter().flatten());
        let sets = self.released.iter().zip(deployment.synchronized.iter().flatten());
        for (sink, address) in verdicts.chain(sets) {
            let Some(publisher) = sink.publisher() else { continue };
            // In short steps, so that a signal ends the wait.
            let mut matched = false;
            while !matched && !asked() && Instant::now() < deadline {
                matched = publisher.wait_matched(Duration::from_millis(100));
            }
            if !matched {
                warn(&format!("nobody has subscribed to {address}; publishing anyway"));
            }
        }
    }
}

/// Makes the sinks of addresses.
struct Opening<'d> {
    networks: &'d Networks,
    spools: &'d Spools,
    wait: Duration,
    /// Properties share sinks: a queue and a file belong to an address.
    shared: HashMap<&'d Address, Sink>,
    undelivered: Undelivered,
    queues: Vec<Arc<Queue>>,
    publishers: Vec<(String, Weak<dyn Publisher>)>,
}

impl<'d> Opening<'d> {
    fn all(&mut self, places: &'d [Address]) -> Result<Vec<Sink>, String> {
        places.iter().map(|address| self.sink(address)).collect()
    }

    fn sink(&mut self, address: &'d Address) -> Result<Sink, String> {
        if *address == Address::Stdout {
            return Ok(Sink::Stdout);
        }
        if let Some(sink) = self.shared.get(address) {
            return Ok(sink.clone());
        }
        let sink = Sink::of(self.publisher(address)?, address.ros2_type().as_deref());
        self.shared.insert(address, sink.clone());
        Ok(sink)
    }

    fn publisher(&mut self, address: &Address) -> Result<Arc<dyn Publisher>, String> {
        let (publisher, name) = (self.networks.publisher(address, true)?, address.to_string());
        let queue = Queue::new(name.clone(), NETWORK, self.wait, self.spools.of(&name));
        self.undelivered.add(name.clone(), publisher.drops());
        self.undelivered.add(name.clone(), Some(queue.drops()));
        self.queues.push(Arc::clone(&queue));
        let publisher: Arc<dyn Publisher> = Arc::new(Queued::new(publisher.into(), queue));
        self.publishers.push((name, Arc::downgrade(&publisher)));
        Ok(publisher)
    }
}
