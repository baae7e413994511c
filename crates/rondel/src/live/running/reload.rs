//! The reload of a run: new sinks and subscriptions first, then the exchange under the lock of the pipeline, and removed
//! ones last.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rondel_event::TopicId;
use rondel_net::adapter::Publisher;
use rondel_runtime::SessionPlan;

use super::Running;
use super::start::{defined, described, keep_time, property_labels, topic_names, topic_texts};
use super::subscriber::{SubscribedTopic, Subscriber, comes_back};
use crate::deployment::{Address, Binding, Deployment};
use crate::live::discover;
use crate::live::networks::Networks;
use crate::live::pipeline::{Exchange, Exchanged};
use crate::live::publishers::Publishers;
use crate::live::reader::Reader as _;
use crate::live::reload::outcome::Changes;
use crate::output::VerdictWriter;
use crate::recorder::Channel;
use crate::sinks::Sink;
use crate::sinks::driven::{DestinationFeed, Destinations};
use crate::warn;

/// Time limit for a removed sink to deliver its messages, and for a removed subscription to close.
const CLOSE: Duration = Duration::from_secs(2);

/// A checked specification and deployment for a run.
pub struct Renewal<'r> {
    /// The present deployment.
    pub before: &'r Deployment,
    /// The next deployment.
    pub after: &'r Deployment,
    /// Its sources as it names them, before the types of publishers are known.
    pub read: Vec<Binding>,
    /// The plan of its session.
    pub plan: &'r SessionPlan,
    /// The writer of its verdicts on standard output.
    pub writer: VerdictWriter,
}

impl Running {
    /// Whether a deployment was read from the same texts as the present one, and its sources have the same types.
    pub fn has_same_files(&self, before: &Deployment, after: &Deployment) -> bool {
        let text = |deployment: &Deployment| deployment.specification.sources.text().to_owned();
        let sources = self.read.iter().zip(&after.sources);
        before.text == after.text
            && text(before) == text(after)
            && self.read.len() == after.sources.len()
            && sources.into_iter().all(|(own, other)| is_same(own, other))
    }

    /// Gives sources that stay the types that their publishers have, and stops to search for others. Call
    /// [`Running::find_types`] afterwards, whatever the outcome of the reload.
    pub fn adopt_types(&mut self, before: &mut Deployment, after: &mut Deployment) {
        self.listener.pause_discovery();
        for (topic, binding) in self.subscriber.topics.iter().zip(&mut before.sources) {
            if discover::is_open(binding) {
                binding.input.message_type = self.pipeline.resolved_type(topic.slot);
            }
        }
        for (topic, binding) in after.specification.spec.topics.iter().zip(&mut after.sources) {
            let Some(known) = position(before, &topic.name) else { continue };
            let Some(current) = before.sources.get(known) else { continue };
            if !self.read.get(known).is_some_and(|read| is_same(read, binding)) {
                continue;
            }
            binding.address = current.address.clone();
            binding.input.message_type = current.input.message_type.clone();
        }
    }

    /// Searches for the types of sources that have none yet.
    pub fn find_types(&mut self, deployment: &Deployment) {
        if let Err(error) = self.listener.resume_discovery(deployment, self.subscriber.clone()) {
            warn(&error);
        }
        let wanted = self.listener.wanted();
        if let Some(metrics) = &self.metrics {
            metrics.change(|observed| observed.into_iter().for_each(|observed| observed.subscribed = wanted));
        }
    }

    /// Exchanges specification and deployment. `begin` begins a run of the destinations
    /// beside networks.
    ///
    /// # Errors
    /// The sink or subscription that cannot be made, or why the session cannot be exchanged; the run then goes on as
    /// before.
    pub fn renew(
        &mut self,
        renewal: Renewal<'_>,
        begin: impl FnOnce(&Destinations) -> Option<DestinationFeed>,
    ) -> Result<Changes, String> {
        let (spools, counters) = (self.spools.len(), self.undelivered.len());
        let renewed = self.try_renew(renewal, begin);
        if renewed.is_err() {
            // The new publishers are closed.
            self.spools.truncate(spools);
            self.undelivered.truncate(counters);
        }
        renewed
    }

    fn try_renew(
        &mut self,
        renewal: Renewal<'_>,
        begin: impl FnOnce(&Destinations) -> Option<DestinationFeed>,
    ) -> Result<Changes, String> {
        let began = Instant::now();
        let Renewal { before, after, read, plan, writer } = renewal;
        let networks = Arc::clone(self.listener.networks());
        self.spools.add(after.spool.as_ref(), after.sink_addresses())?;
        let opened = Publishers::add(after, &networks, &self.spools, &self.undelivered, &self.publishing)?;
        let (next, added) = self.next_topics(before, Renewed { after, read: &read, plan });
        // Records of new topics wait at their brokers: a dead letter is the whole record, of which the pipeline keeps a part.
        let paused = (!added.is_empty()).then(|| networks.pause());
        if let Err(why) = self.subscribe(&networks, after, &next, &added) {
            self.give_up(&next, &added);
            return Err(why);
        }
        let slots: Vec<TopicId> = next.topics.iter().map(|topic| topic.slot).collect();
        let publishing = super::start::publishing(after, &opened.verdicts);
        let queried = publishing.iter().filter(|(address, sink)| is_queried(address, sink));
        let exchange = Exchange {
            plan,
            slots,
            topics: topic_texts(after),
            named_topics: names_before(&topic_names(before), topic_names(after)),
            named_properties: names_before(&property_names(before), property_names(after)),
            sinks: opened.verdicts.clone(),
            queried: queried.filter_map(|(_, sink)| sink.publisher().cloned()).collect(),
            writer,
            actions: &after.actions,
            emit: after.emit,
            own: next.topics.iter().any(|topic| topic.returns).then(|| Arc::clone(&next.own)),
            origin: defined(after),
            batching: after.addresses().any(Address::holds_back),
        };
        let exchanged = self.exchange(exchange, after, plan, &opened, begin);
        drop(paused);
        let exchanged = match exchanged {
            Ok(exchanged) => exchanged,
            Err(why) => {
                self.give_up(&next, &added);
                return Err(why);
            }
        };
        let mut changes = changes(before, after, &exchanged);
        for last in &exchanged.violated {
            if let Some(property) = before.specification.spec.properties.get(last.property as usize) {
                self.past.add(&property.name, last);
            }
        }
        changes.topics_added = added.iter().filter_map(|at| topic_names(after).get(*at).cloned()).collect();
        let removed = self.replace(next, read);
        let name = |slot: &TopicId| self.sources.name(*slot);
        changes.topics_removed = removed.iter().filter_map(name).collect();
        self.unsubscribe(&removed);
        self.close_sinks(exchanged.closed);
        self.publishing = publishing;
        self.queues.extend(opened.queues);
        self.addressed.extend(opened.publishers);
        self.spec = Arc::clone(&plan.specification().spec);
        self.attend(&networks);
        if self.keeper.is_none() {
            self.keeper = keep_time(&self.pipeline, &networks).unwrap_or_else(|error| {
                warn(&error);
                None
            });
        }
        changes.lasted = began.elapsed();
        Ok(changes)
    }

    /// The topics after the reload, and the positions of those that are newly subscribed to.
    fn next_topics(&self, before: &Deployment, renewed: Renewed<'_>) -> (Subscriber, Vec<usize>) {
        let Renewed { after, read, plan } = renewed;
        let (mut topics, mut added) = (Vec::new(), Vec::new());
        let all = after.specification.spec.topics.iter().zip(&after.sources).zip(read);
        for (at, ((topic, binding), read)) in all.enumerate() {
            let returns = comes_back(after, &binding.address);
            let known = position(before, &topic.name).filter(|known| {
                let of_before = before.specification.spec.topics.get(*known);
                of_before.is_some_and(|of_before| of_before.address == topic.address)
                    && self.read.get(*known).is_some_and(|of_before| is_same(of_before, read))
            });
            let known = known.and_then(|known| self.subscriber.topics.get(known));
            if let Some(known) = known.filter(|known| known.returns == returns) {
                topics.push(known.clone());
                continue;
            }
            let names = plan.names(TopicId(at as u32)).cloned();
            let slot = self.pipeline.add_slot();
            self.sources.add(topic.name.clone(), binding.address.clone());
            self.pipeline.record_slot(slot, Channel::of(binding), names.clone());
            topics.push(SubscribedTopic { slot, names, returns });
            added.push(at);
        }
        let (pipeline, own) = (Arc::clone(&self.pipeline), Arc::clone(&self.subscriber.own));
        (Subscriber { pipeline, own, topics }, added)
    }

    /// Subscribes to new topics whose types are known. Their messages wait for the exchange.
    fn subscribe(
        &self,
        networks: &Networks,
        after: &Deployment,
        next: &Subscriber,
        added: &[usize],
    ) -> Result<(), String> {
        let subscriptions = self.listener.subscriptions();
        for at in added {
            let (topic, binding) = (TopicId(*at as u32), &after.sources[*at]);
            if !discover::is_open(binding) {
                let subscription = next.subscribe(networks, topic, binding)?;
                subscriptions.add(Some(next.number(topic)), subscription);
            }
        }
        if !added.is_empty() {
            networks.begin();
        }
        Ok(())
    }

    /// Removes the subscriptions to new topics again. Their numbers are free, unless one could not be closed in time.
    fn give_up(&self, next: &Subscriber, added: &[usize]) {
        let slots: Vec<TopicId> = added.iter().map(|at| next.number(TopicId(*at as u32))).collect();
        // First, as their threads may wait for the exchange.
        self.pipeline.abandon_slots();
        let is_closed = self.unsubscribe(&slots);
        if let Some(first) = slots.iter().min().filter(|_| is_closed) {
            self.pipeline.remove_slots(*first);
            self.sources.truncate(*first);
        }
    }

    /// Exchanges the session and the sinks, while nothing reads the state of the run.
    fn exchange(
        &self,
        exchange: Exchange<'_>,
        after: &Deployment,
        plan: &SessionPlan,
        opened: &Publishers,
        begin: impl FnOnce(&Destinations) -> Option<DestinationFeed>,
    ) -> Result<Exchanged, String> {
        let slots = exchange.slots.clone();
        let mut shown = self.attendants.health().described();
        let begin = || begin(&self.destinations);
        let exchanged = match &self.metrics {
            None => self.pipeline.exchange(exchange, begin)?,
            Some(metrics) => metrics.change(|observed| {
                let exchanged = self.pipeline.exchange(exchange, begin)?;
                if let Some(observed) = observed {
                    (observed.topics, observed.slots) = (topic_names(after), slots);
                    observed.properties = property_labels(plan);
                    observed.queues.extend(opened.queues.iter().cloned());
                    observed.publishers.extend(opened.publishers.iter().cloned());
                    observed.shown.forget_properties();
                }
                Ok::<_, String>(exchanged)
            })?,
        };
        *shown = described(after, plan);
        Ok(exchanged)
    }

    /// Takes the next topics. Returns the subscriptions that are not used any more.
    fn replace(&mut self, next: Subscriber, read: Vec<Binding>) -> Vec<TopicId> {
        let before = std::mem::replace(&mut self.subscriber, next);
        self.read = read;
        let is_used = |slot: &TopicId| self.subscriber.topics.iter().any(|topic| topic.slot == *slot);
        before.topics.iter().map(|topic| topic.slot).filter(|slot| !is_used(slot)).collect()
    }

    /// Closes subscriptions. Returns whether all were closed in time.
    fn unsubscribe(&self, slots: &[TopicId]) -> bool {
        let (subscriptions, mut is_closed) = (self.listener.subscriptions(), true);
        for slot in slots {
            // A topic whose type is not known yet has none.
            if let Some(subscription) = subscriptions.remove(*slot) {
                is_closed &= subscription.close(CLOSE);
                subscriptions.add_removed(subscription.problems());
            }
        }
        is_closed
    }

    /// Delivers the messages of sinks that are not used any more, and closes them.
    fn close_sinks(&mut self, closed: Vec<Arc<dyn Publisher>>) {
        for publisher in closed {
            self.flushed &= publisher.flush(CLOSE);
            let is_own = |sink: &Sink| sink.publisher().is_some_and(|own| Arc::ptr_eq(own, &publisher));
            if let Some((address, _)) = self.publishing.iter().find(|(_, sink)| is_own(sink)) {
                self.unconfirmed.add(&address.to_string(), &*publisher);
            }
        }
    }

    /// Answers queries for present verdicts on the sinks of verdicts.
    fn attend(&mut self, networks: &Networks) {
        let addresses: Vec<&Address> = self.publishing.iter().map(|(address, _)| address).collect();
        self.attendants.set_sinks(&addresses);
        for (address, sink) in &self.publishing {
            if self.attendants.answers(address) || !is_queried(address, sink) {
                continue;
            }
            let present = sink.publisher().and_then(|publisher| self.pipeline.keep_present(publisher));
            let answered =
                present.map_or(Ok(()), |present| self.attendants.answer(networks, address, present));
            if let Err(error) = answered {
                warn(&error);
            }
        }
    }
}

/// A deployment after a reload, with its plan.
#[derive(Clone, Copy)]
struct Renewed<'r> {
    after: &'r Deployment,
    read: &'r [Binding],
    plan: &'r SessionPlan,
}

/// Whether the present verdicts of a sink can be queried.
fn is_queried(address: &Address, sink: &Sink) -> bool {
    matches!((sink, address), (Sink::Network(_), Address::Zenoh(..)))
}

/// The position of a topic.
fn position(deployment: &Deployment, name: &str) -> Option<usize> {
    deployment.specification.spec.topics.iter().position(|topic| topic.name == name)
}

/// Whether a subscription to one source receives the messages of the other as well.
fn is_same(own: &Binding, other: &Binding) -> bool {
    let of_same_type = match (&own.input.message_type, &other.input.message_type) {
        (None, None) => true,
        (Some(own), Some(other)) => own.is_same(other),
        _ => false,
    };
    own.address == other.address && of_same_type
}

fn property_names(deployment: &Deployment) -> Vec<String> {
    deployment.specification.spec.properties.iter().map(|property| property.name.clone()).collect()
}

/// For each name its position before.
fn names_before(before: &[String], after: Vec<String>) -> Vec<Option<usize>> {
    after.iter().map(|name| before.iter().position(|known| known == name)).collect()
}

/// The changes of properties.
fn changes(before: &Deployment, after: &Deployment, exchanged: &Exchanged) -> Changes {
    let (known, names) = (property_names(before), property_names(after));
    let mut changes = Changes { held: exchanged.lasted, dropped: exchanged.dropped, ..Changes::default() };
    for (name, kept) in names.iter().zip(&exchanged.kept) {
        match kept {
            Some(_) => changes.kept.push(name.clone()),
            None if !known.contains(name) => changes.added.push(name.clone()),
            None => {
                let why = exchanged.restarted.iter().find(|(own, _)| own == name);
                let why = why.map(|(_, why)| why.to_string()).unwrap_or_default();
                changes.restarted.push((name.clone(), why));
            }
        }
    }
    let lasting = exchanged.violated.iter().filter(|last| last.lasts);
    changes.violated = lasting.filter_map(|last| known.get(last.property as usize).cloned()).collect();
    changes.removed = known.into_iter().filter(|name| !names.contains(name)).collect();
    changes
}
