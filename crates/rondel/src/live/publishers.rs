//! The publishers of a run: one for each address, behind a queue of its own.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rondel_net::adapter::Publisher;

use crate::deployment::{Address, Deployment};
use crate::live::losses::Undelivered;
use crate::live::networks::Networks;
use crate::live::signals::StopFlag;
use crate::sinks::actions::{Act, Form, PublishAct};
use crate::sinks::queue::{NETWORK, Queue, Queued};
use crate::sinks::spool::{Spool, Spools};
use crate::sinks::{Sink, publishers};
use crate::warn;

/// The sinks of a run, by the kind of their content.
pub struct Publishers {
    /// Sinks of the verdicts of each property.
    pub verdicts: Vec<Vec<Sink>>,
    /// Sinks of messages that are put in order.
    pub released: Vec<Sink>,
    /// Sinks of reports.
    pub notices: Vec<Sink>,
    /// Publishers of the state of the run.
    pub beats: Vec<Arc<dyn Publisher>>,
    /// The publisher of each action that publishes a message.
    pub actions: Vec<Option<Arc<dyn Publisher>>>,
    /// Messages that consumers did not accept.
    pub undelivered: Undelivered,
    /// The queues of verdicts and ordered messages.
    pub queues: Vec<Arc<Queue>>,
    /// Every publisher with its address.
    pub publishers: Vec<(String, Weak<dyn Publisher>)>,
}

impl Publishers {
    /// Creates the publishers of a deployment.
    ///
    /// # Errors
    /// The address on which nothing can be published, and the reason.
    pub fn open(deployment: &Deployment, networks: &Networks, spools: &Spools) -> Result<Publishers, String> {
        let mut opening = Opening {
            networks,
            spools,
            wait: deployment.slow_consumer,
            known: &[],
            shared: HashMap::new(),
            acting: Vec::new(),
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
        let actions = deployment.actions.iter().map(|action| match &action.act {
            Act::Publish(act) => opening.acting(act).map(Some),
            Act::Run(_) | Act::Call(_) => Ok(None),
        });
        let actions = actions.collect::<Result<_, _>>()?;
        let Opening { undelivered, publishers, .. } = opening;
        Ok(Publishers { verdicts, released, notices, beats, actions, undelivered, queues, publishers })
    }

    /// Creates the sinks of verdicts of another deployment; addresses in `known` keep their sinks. The result has only
    /// what was added.
    ///
    /// # Errors
    /// The address on which nothing can be published, and the reason.
    pub fn add(
        deployment: &Deployment,
        networks: &Networks,
        spools: &Spools,
        undelivered: &Undelivered,
        known: &[(Address, Sink)],
    ) -> Result<Publishers, String> {
        let mut opening = Opening {
            networks,
            spools,
            wait: deployment.slow_consumer,
            known,
            shared: HashMap::new(),
            acting: Vec::new(),
            undelivered: undelivered.clone(),
            queues: Vec::new(),
            publishers: Vec::new(),
        };
        let verdicts = deployment.sinks.iter().map(|places| opening.all(places)).collect::<Result<_, _>>()?;
        let Opening { undelivered, queues, publishers, .. } = opening;
        let (released, notices, beats, actions) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Ok(Publishers { verdicts, released, notices, beats, actions, undelivered, queues, publishers })
    }

    /// Waits until every topic of verdicts and ordered messages has a subscriber, up to `limit` or until a signal.
    pub fn wait_for_subscribers(&self, deployment: &Deployment, limit: Duration, interrupted: &StopFlag) {
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
            while !matched && !interrupted.is_set() && Instant::now() < deadline {
                matched = publisher.wait_matched(Duration::from_millis(100));
            }
            if !matched {
                warn(&format!("no subscriber on {address}; publishing anyway"));
            }
        }
    }
}

/// Creates the sinks of addresses.
struct Opening<'d> {
    networks: &'d Networks,
    spools: &'d Spools,
    wait: Duration,
    /// Sinks that exist already.
    known: &'d [(Address, Sink)],
    /// Properties share sinks: a queue and a file belong to an address.
    shared: HashMap<&'d Address, Sink>,
    /// The publishers of actions.
    acting: Vec<(&'d Address, Arc<dyn Publisher>)>,
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
        let sink = match self.known.iter().find(|(known, _)| known == address) {
            Some((_, sink)) => sink.clone(),
            None => Sink::of(self.publisher(address)?, address.ros2_type().as_deref()),
        };
        self.shared.insert(address, sink.clone());
        Ok(sink)
    }

    /// The publisher of an action. It has no file: a message that is delivered much later would act on a verdict of the
    /// past.
    fn acting(&mut self, act: &'d PublishAct) -> Result<Arc<dyn Publisher>, String> {
        if let Some((_, publisher)) = self.acting.iter().find(|(address, _)| **address == act.to) {
            return Ok(Arc::clone(publisher));
        }
        let schema = match &act.form {
            Form::Cdr(schema) => Some(schema),
            Form::Json | Form::Plain => None,
        };
        let publisher = self.networks.publisher_of(&act.to, schema, false)?;
        let publisher = self.queued(&act.to, publisher, None);
        self.acting.push((&act.to, Arc::clone(&publisher)));
        Ok(publisher)
    }

    fn publisher(&mut self, address: &Address) -> Result<Arc<dyn Publisher>, String> {
        let (publisher, spool) =
            (self.networks.publisher(address, true)?, self.spools.of(&address.to_string()));
        Ok(self.queued(address, publisher, spool))
    }

    /// Puts a queue before a publisher, and counts the messages that it drops.
    fn queued(
        &mut self,
        address: &Address,
        publisher: Box<dyn Publisher>,
        spool: Option<Arc<Spool>>,
    ) -> Arc<dyn Publisher> {
        let name = address.to_string();
        let queue = Queue::new(name.clone(), NETWORK, self.wait, spool);
        self.undelivered.add(name.clone(), publisher.drops());
        self.undelivered.add(name.clone(), Some(queue.drops()));
        self.queues.push(Arc::clone(&queue));
        let publisher: Arc<dyn Publisher> = Arc::new(Queued::new(publisher.into(), queue));
        self.publishers.push((name, Arc::downgrade(&publisher)));
        publisher
    }
}
