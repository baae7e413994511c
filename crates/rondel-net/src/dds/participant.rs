use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rondel_event::TopicId;

use super::domain::Domain;
use super::publisher::{self, Publisher};
use super::{DeclareError, Matching, PublisherSettings, Settings, StringType, Subscription};
use crate::adapter::Receiver;

/// The largest number of a domain: above it, there are no ports left.
const LAST_DOMAIN: u32 = 230;

/// Why a domain could not be joined.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no such domain.
    #[error("there is no DDS domain {0}: they are numbered 0 to {LAST_DOMAIN}")]
    Domain(u32),
    /// CycloneDDS refuses, as when there is no such network interface.
    #[error("cannot join DDS domain {domain}{}: {reason}", on(interface))]
    Network {
        /// The domain.
        domain: u32,
        /// The interface asked for.
        interface: Option<String>,
        /// What the library says.
        reason: String,
    },
}

fn on(interface: &Option<String>) -> String {
    interface.as_ref().map(|i| format!(" on interface {i}")).unwrap_or_default()
}

/// A participant in a DDS domain.
///
/// It stands on the network as two: one for subscriptions and one for publishers, where there are
/// both. When a reader's cache is full, CycloneDDS's receive thread waits for room in it, and reads no
/// acknowledgements either; a publisher that waits for those, in the receiver that should make the
/// room, would wait forever if it shared that thread.
#[derive(Debug)]
pub struct Participant {
    settings: Settings,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    /// Opened first, to see that it works, and used for what is needed first.
    spare: Option<Arc<Domain>>,
    input: Option<Arc<Domain>>,
    output: Option<Arc<Domain>>,
    writers: Vec<std::sync::Weak<publisher::Writer>>,
}

impl Participant {
    /// Joins a domain. The environment (`CYCLONEDDS_URI`) has no influence.
    ///
    /// # Errors
    /// As [`OpenError`] says. That nobody else is there is no error.
    pub fn open(settings: &Settings) -> Result<Participant, OpenError> {
        if settings.domain > LAST_DOMAIN {
            return Err(OpenError::Domain(settings.domain));
        }
        let domain = Domain::open(settings).map_err(|e| OpenError::Network {
            domain: settings.domain,
            interface: settings.interface.clone(),
            reason: e.to_string(),
        })?;
        let state = State { spare: Some(Arc::new(domain)), ..State::default() };
        Ok(Participant { settings: settings.clone(), state: Mutex::new(state) })
    }

    fn state(&self) -> Result<MutexGuard<'_, State>, DeclareError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.closed { Err(DeclareError::Closed) } else { Ok(state) }
    }

    /// Subscribes to a topic. Samples go to `receiver`, under the name `topic`, until the
    /// subscription is closed or dropped.
    ///
    /// # Errors
    /// As [`DeclareError`] says.
    pub fn subscribe<R: Receiver + ?Sized>(
        &self,
        name: &str,
        string_type: &StringType,
        topic: TopicId,
        receiver: Arc<R>,
    ) -> Result<Subscription, DeclareError> {
        let domain = {
            let State { spare, input, .. } = &mut *self.state()?;
            Arc::clone(take_or_open(input, spare, &self.settings)?)
        };
        Subscription::create(domain, name, string_type, self.settings.reader_queue, topic, receiver)
    }

    /// Subscribes to every topic whose name is one of the [pattern](super::check_pattern), as publishers of them are
    /// discovered. Samples of each go to the receiver that is made for its name, all under the name `topic`. What is of
    /// another type is left out, and counted as [incompatible](crate::adapter::Problems::incompatible).
    ///
    /// # Errors
    /// As [`DeclareError`] says.
    pub fn subscribe_matching<R: Receiver + ?Sized>(
        &self,
        pattern: &str,
        string_type: &StringType,
        topic: TopicId,
        receiver: impl Fn(&str) -> Arc<R> + Send + 'static,
    ) -> Result<Matching, DeclareError> {
        let domain = {
            let State { spare, input, .. } = &mut *self.state()?;
            Arc::clone(take_or_open(input, spare, &self.settings)?)
        };
        Matching::create(domain, pattern, string_type, self.settings.reader_queue, topic, receiver)
    }

    /// Makes a publisher on a topic.
    ///
    /// # Errors
    /// As [`DeclareError`] says.
    pub fn publisher(
        &self,
        name: &str,
        string_type: &StringType,
        settings: PublisherSettings,
    ) -> Result<Publisher, DeclareError> {
        let mut state = self.state()?;
        let State { spare, output, .. } = &mut *state;
        let domain = Arc::clone(take_or_open(output, spare, &self.settings)?);
        let publisher = Publisher::create(domain, name, string_type, settings)?;
        state.writers.retain(|w| w.strong_count() > 0);
        state.writers.push(publisher.writer());
        Ok(publisher)
    }

    /// Sends what publishers hold back, waits, at most `limit`, until all reliable readers have
    /// acknowledged everything, and wakes every publisher that blocks. Whether all was acknowledged.
    /// Close subscriptions first. The domain is left when the last publisher and subscription is
    /// dropped. Repeating it is harmless.
    pub fn close(&self, limit: Duration) -> bool {
        let mut state = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let closed = State { closed: true, ..State::default() };
            std::mem::replace(&mut *state, closed)
        };
        // First, so that a publisher that blocks lets go of its writer.
        for domain in [state.input, state.output].into_iter().flatten() {
            domain.set_closing();
        }
        let deadline = Instant::now() + limit;
        let mut acknowledged = true;
        for writer in state.writers.drain(..).filter_map(|w| w.upgrade()) {
            acknowledged &= writer.flush(deadline.saturating_duration_since(Instant::now()));
        }
        acknowledged
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.close(Duration::ZERO);
    }
}

fn take_or_open<'a>(
    place: &'a mut Option<Arc<Domain>>,
    spare: &mut Option<Arc<Domain>>,
    settings: &Settings,
) -> Result<&'a Arc<Domain>, DeclareError> {
    match place {
        Some(domain) => Ok(domain),
        None => {
            let domain = match spare.take() {
                Some(domain) => domain,
                None => Arc::new(Domain::open(settings)?),
            };
            Ok(place.insert(domain))
        }
    }
}
