//! Several networks behind one interface: joined together, subscribed to and published on by [`Address`].

mod publishing;
mod subscribing;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rondel_decode::schema::Schema;
use rondel_event::TopicId;

use crate::adapter::{Listener, Outage, Recovered};
use crate::address::Address;
use crate::offers::Offers;
use crate::ros2::keys::DataKey;
use crate::ros2::{self, Middleware, Ros2Error};
use crate::{dds, mqtt, zenoh};

/// Time limit for delivering published messages at the end.
const FLUSH: Duration = Duration::from_secs(3);

/// Settings of the networks to join.
#[derive(Clone, Debug, Default)]
pub struct NetworkSettings {
    /// Settings of Zenoh.
    pub zenoh: Option<zenoh::Settings>,
    /// Settings of DDS.
    pub dds: Option<dds::Settings>,
    /// Settings of MQTT.
    pub mqtt: Option<Mqtt>,
    /// Settings of ROS 2, which also needs the settings of its middleware; an error if the environment is invalid.
    pub ros2: Option<Result<ros2::Settings, Ros2Error>>,
}

impl NetworkSettings {
    /// Limits the time for which publishing waits for a consumer that accepts nothing, on every network with settings.
    /// After it, Zenoh closes the connection; DDS and MQTT drop messages.
    pub fn limit_slow_consumers(&mut self, wait: Duration) {
        if let Some(zenoh) = &mut self.zenoh {
            zenoh.slow_consumer = Some(wait);
        }
        if let Some(dds) = &mut self.dds {
            dds.slow_consumer = Some(wait);
        }
        if let Some(mqtt) = &mut self.mqtt {
            mqtt.settings.slow_consumer = Some(wait);
        }
    }

    /// Holds acknowledgements back until [`Networks::release`], on networks that have them. `marks` are those of the
    /// previous run, from [`Networks::freeze`].
    pub fn hold(&mut self, marks: &[u8]) {
        if let Some(mqtt) = &mut self.mqtt {
            mqtt.settings.hold = Some(marks.to_vec());
        }
    }

    /// Sets the number of bytes in which publishers keep messages for subscribers that missed them, on every network
    /// with settings that supports it.
    pub fn resend(&mut self, bytes: usize) {
        if let Some(zenoh) = &mut self.zenoh {
            zenoh.resend = Some(bytes);
        }
    }

    /// Adds default settings for the network of this address, unless it has settings; for ROS 2 those of the
    /// environment.
    pub fn need(&mut self, address: &Address) {
        match address {
            Address::Ros2(..) => self.need_ros2(),
            Address::Zenoh(..) => _ = self.zenoh.get_or_insert_default(),
            Address::Dds(..) if self.dds.is_none() => {
                match ros2::domain_of(|name| std::env::var(name).ok()) {
                    Ok(domain) => self.dds = Some(dds::Settings { domain, ..dds::Settings::default() }),
                    Err(error) => self.ros2 = Some(Err(error)),
                }
            }
            Address::Dds(..) => {}
            Address::Mqtt(..) => _ = self.mqtt.get_or_insert_default(),
            Address::Stdout => {}
        }
    }

    fn need_ros2(&mut self) {
        let of_environment = || ros2::Settings::from_environment(|name| std::env::var(name).ok());
        let Ok(settings) = self.ros2.get_or_insert_with(of_environment) else { return };
        match settings.middleware {
            Middleware::Zenoh => _ = self.zenoh.get_or_insert_with(|| settings.zenoh()),
            Middleware::Dds if self.dds.is_none() => match settings.dds() {
                Ok(dds) => self.dds = Some(dds),
                Err(error) => self.ros2 = Some(Err(error)),
            },
            Middleware::Dds => {}
        }
    }

    /// Checks that ROS 2 has a middleware on its domain.
    ///
    /// # Errors
    /// [`JoinError::Setting`].
    pub fn check_ros2(&self) -> Result<(), JoinError> {
        let setting = |error: String| Err(JoinError::Setting(error));
        match (&self.ros2, &self.zenoh, &self.dds) {
            (Some(Err(error)), ..) => setting(format!("cannot join ROS 2 or DDS: {error}")),
            (Some(Ok(ros2)), _, Some(dds))
                if ros2.middleware == Middleware::Dds && ros2.domain != dds.domain =>
            {
                setting(format!(
                    "ROS 2 is on the domain {}, and DDS on the domain {}; a run joins one domain of DDS: set the \
                     other, for ROS 2 with `domain` in `ros2` or ROS_DOMAIN_ID",
                    ros2.domain, dds.domain
                ))
            }
            (Some(Ok(ros2)), zenoh, dds) => {
                let is_there = match ros2.middleware {
                    Middleware::Zenoh => zenoh.is_some(),
                    Middleware::Dds => dds.is_some(),
                };
                if is_there {
                    Ok(())
                } else {
                    setting(format!("ROS 2 needs settings of {}", ros2.middleware))
                }
            }
            (None, ..) => Ok(()),
        }
    }
}

/// Settings of MQTT.
#[derive(Clone, Debug, Default)]
pub struct Mqtt {
    /// Settings of the connection to the broker.
    pub settings: mqtt::Settings,
    /// Settings of publishers there.
    pub verdicts: mqtt::PublisherSettings,
}

/// The joined networks.
pub struct Networks {
    pub(crate) zenoh: Option<zenoh::Session>,
    pub(crate) dds: Option<dds::Participant>,
    pub(crate) mqtt: Option<(mqtt::Session, mqtt::PublisherSettings)>,
    ros2: Option<Ros2>,
    listeners: Vec<Listener>,
}

/// ROS 2 over its middleware.
enum Ros2 {
    Zenoh(zenoh::Ros2Node),
    Dds,
}

/// Interval at which an unreachable network is reported.
const REMIND: Duration = Duration::from_secs(10);

/// Reason why the networks were not joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// A setting is invalid: another attempt does not help.
    #[error("{0}")]
    Setting(String),
    /// A network cannot be reached, or refuses the connection.
    #[error("{0}")]
    Unreachable(String),
    /// The caller stopped waiting.
    #[error("stopped before the networks were joined")]
    Stopped,
}

/// Event while joining networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joining {
    /// A network cannot be reached yet, for this reason.
    Retrying(String),
    /// All networks that could not be reached before are joined.
    Connected,
}

impl NetworkSettings {
    /// Checks the settings without connecting.
    ///
    /// # Errors
    /// [`JoinError::Setting`].
    pub fn check(&self) -> Result<(), JoinError> {
        let setting = |error: String| JoinError::Setting(error);
        self.check_ros2()?;
        self.zenoh.as_ref().map_or(Ok(()), |s| s.check().map_err(|e| setting(e.to_string())))?;
        self.mqtt.as_ref().map_or(Ok(()), |m| m.settings.check().map_err(|e| setting(e.to_string())))
    }
}

impl Networks {
    /// Joins the networks with settings, in parallel. Retries for `patience` (without it, for ever) and until
    /// `stopped`, and reports each unreachable network at once and then every 10 s.
    ///
    /// Without `patience`, an unreachable network does not delay the others: it is joined as soon as possible, and
    /// messages sent there until then count as missed. Two are waited for nevertheless: a Zenoh router as a client, and
    /// an MQTT broker whose acknowledgements are held back.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn open(
        settings: &NetworkSettings,
        patience: Option<Duration>,
        stopped: impl Fn() -> bool + Sync,
        report: impl FnMut(Joining) + Send,
    ) -> Result<Networks, JoinError> {
        let started = Instant::now();
        let report = Mutex::new(report);
        let report = |event: Joining| report.lock().unwrap_or_else(PoisonError::into_inner)(event);
        let (reported, failing) = (AtomicBool::new(false), AtomicBool::new(false));
        let all = [settings.zenoh.is_some(), settings.dds.is_some(), settings.mqtt.is_some()];
        let others = all.iter().filter(|is_needed| **is_needed).count() > 1;
        let goes_on = others && patience.is_none();
        let later = |reason: String| {
            report(Joining::Retrying(format!(
                "{reason}; the other networks are used meanwhile, and what is sent here until then is not received"
            )));
        };
        let waiting = |last: &mut Option<Instant>, reason: String| {
            let is_over = patience.is_some_and(|patience| started.elapsed() >= patience);
            if stopped() || is_over || failing.load(Ordering::Relaxed) {
                return ControlFlow::Break(());
            }
            if last.is_none_or(|at| at.elapsed() >= REMIND) {
                *last = Some(Instant::now());
                reported.store(true, Ordering::Relaxed);
                let until =
                    if others { ", and until then nothing is received on the other networks" } else { "" };
                report(Joining::Retrying(format!("{reason}{until}")));
            }
            ControlFlow::Continue(())
        };
        let failed = |error: String, unreachable: bool| match unreachable {
            _ if stopped() => JoinError::Stopped,
            true => JoinError::Unreachable(error),
            false => JoinError::Setting(error),
        };
        settings.check_ros2()?;
        let NetworkSettings { zenoh, dds, mqtt, ros2 } = settings;
        let open_zenoh = |settings: &zenoh::Settings| {
            let mut last = None;
            let opened = if goes_on && !settings.is_client() {
                zenoh::Session::open_later(settings, |e| later(e.to_string()))
            } else {
                zenoh::Session::open_connected(settings, |e| waiting(&mut last, e.to_string()))
            };
            opened.map_err(|error| {
                // The others need not wait any more.
                failing.store(true, Ordering::Relaxed);
                let unreachable =
                    matches!(error, zenoh::OpenError::Unreachable { .. } | zenoh::OpenError::Network(_));
                failed(error.to_string(), unreachable)
            })
        };
        let open_mqtt = |Mqtt { settings, verdicts }: &Mqtt| {
            let mut last = None;
            let opened = if goes_on && settings.hold.is_none() {
                match mqtt::Session::open(settings) {
                    Err(e @ mqtt::OpenError::Unreachable { .. }) => {
                        later(e.to_string());
                        mqtt::Session::open_later(settings)
                    }
                    opened => opened,
                }
            } else {
                mqtt::Session::open_connected(settings, |e| waiting(&mut last, e.to_string()))
            };
            opened.map(|session| (session, *verdicts)).map_err(|error| {
                failing.store(true, Ordering::Relaxed);
                let setting = matches!(error, mqtt::OpenError::Setting(_) | mqtt::OpenError::Secret { .. });
                failed(error.to_string(), !setting)
            })
        };
        // First the network that does not wait for any other.
        let node = ros2.as_ref().and_then(|ros2| ros2.as_ref().ok());
        let node = node.filter(|ros2| ros2.middleware == Middleware::Dds).map(|ros2| ros2.node.clone());
        let dds = dds.as_ref().map(|dds| dds::Settings { node, ..dds.clone() });
        let dds = dds.as_ref().map(dds::Participant::open).transpose();
        let dds = dds.map_err(|error| {
            let is_setting = matches!(error, dds::OpenError::Domain(_) | dds::OpenError::Security(_));
            failed(error.to_string(), !is_setting)
        })?;
        let (zenoh, mqtt) = std::thread::scope(|scope| {
            let zenoh = zenoh.as_ref().map(|settings| scope.spawn(|| open_zenoh(settings)));
            let mqtt = mqtt.as_ref().map(open_mqtt).transpose();
            let panicked = |_| JoinError::Unreachable("the thread that joins Zenoh has panicked".to_owned());
            (zenoh.map(|thread| thread.join().map_err(panicked).flatten()).transpose(), mqtt)
        });
        let (zenoh, mqtt) = match (zenoh, mqtt) {
            // The other one has only stopped waiting.
            (Err(_), Err(setting @ JoinError::Setting(_))) => return Err(setting),
            (zenoh, mqtt) => (zenoh?, mqtt?),
        };
        if reported.load(Ordering::Relaxed) {
            report(Joining::Connected);
        }
        let of_zenoh = zenoh.iter().flat_map(|session| session.listeners().to_vec());
        let listeners = of_zenoh.chain(dds.iter().flat_map(dds::Participant::listeners)).collect();
        let ros2 = match (ros2, &zenoh) {
            (Some(Ok(ros2)), Some(session)) if ros2.middleware == Middleware::Zenoh => {
                let node = session.join_ros2(ros2).map_err(|e| JoinError::Unreachable(e.to_string()))?;
                Some(Ros2::Zenoh(node))
            }
            (Some(_), _) => Some(Ros2::Dds),
            (None, _) => None,
        };
        Ok(Networks { zenoh, dds, mqtt, ros2, listeners })
    }

    /// Returns all endpoints on which the networks listen.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Whether some network has not been reached so far.
    pub fn is_any_awaited(&self) -> bool {
        self.zenoh.as_ref().is_some_and(zenoh::Session::is_awaited)
            || self.mqtt.as_ref().is_some_and(|(session, _)| session.is_awaited())
    }

    /// Whether a connection was lost so recently that the missed messages are unknown yet: silence proves nothing
    /// meanwhile. Lasts at most two and a half seconds.
    pub fn is_unsure(&self) -> bool {
        self.zenoh.as_ref().is_some_and(zenoh::Session::is_unsure)
    }

    /// Whether the network kept the messages published at an address since the previous process left.
    pub fn kept(&self, address: &Address) -> bool {
        match (address, &self.mqtt) {
            (Address::Mqtt(_, settings, _), Some((session, _))) => session.kept(*settings),
            _ => false,
        }
    }

    /// Waits up to `limit` for a publisher of a topic on DDS or ROS 2, and returns the type that it announces; `None`
    /// if there is none in time, and on other networks. On ROS 2 over Zenoh it is the type described by its node. If
    /// publishers have several types, one that `fits` is preferred.
    ///
    /// # Errors
    /// The reason, with the address.
    pub fn discovered_type(
        &self,
        address: &Address,
        limit: Duration,
        fits: impl Fn(&Schema) -> bool,
    ) -> Result<Option<dds::DiscoveredType>, String> {
        let failed =
            |error: &dyn std::fmt::Display| format!("cannot discover the type of {address}: {error}");
        match (address, &self.dds, &self.ros2) {
            (Address::Dds(topic, topic_type, _), Some(participant), _) => {
                let pattern = address.pattern();
                let is_meant = |name: &str| match &pattern {
                    None => name == topic,
                    Some(pattern) => pattern.captures(name).is_some(),
                };
                participant
                    .discovered_type(is_meant, topic_type.name(), limit, fits)
                    .map_err(|error| failed(&error))
            }
            (Address::Ros2(of, _), Some(participant), Some(Ros2::Dds)) => {
                let name = of.message_type.as_ref().map(ros2::MessageType::dds);
                let is_meant =
                    |name: &str| ros2::TopicName::from_dds(name).is_some_and(|name| of.name.is_met_by(&name));
                participant
                    .discovered_type(is_meant, name.as_deref(), limit, fits)
                    .map_err(|error| failed(&error))
            }
            (Address::Ros2(of, _), _, Some(Ros2::Zenoh(node))) => {
                let found = node.discovered_type(&of.name, of.message_type.as_ref(), limit, fits);
                Ok(found.map_err(|error| failed(&error))?.map(described))
            }
            (Address::Zenoh(key, _), ..) => {
                let Some((key, session)) = DataKey::parse(key).zip(self.zenoh.as_ref()) else {
                    return Ok(None);
                };
                let found = session.ros2_type(key.domain, &key.topic, Some(&key.message_type), limit, fits);
                Ok(found.map_err(|error| failed(&error))?.map(described))
            }
            _ => Ok(None),
        }
    }

    /// Returns the publishers and subscriptions on DDS, once no others have been discovered for `quiet`, or after
    /// `limit`.
    ///
    /// # Errors
    /// The reason.
    pub fn dds_endpoints(
        &self,
        quiet: Duration,
        limit: Duration,
    ) -> Result<Vec<dds::DiscoveredEndpoint>, String> {
        let listed = self.dds.as_ref().map(|participant| participant.endpoints(quiet, limit));
        listed.transpose().map(Option::unwrap_or_default).map_err(|error| error.to_string())
    }

    /// Returns the publishers on the networks of addresses with their offers, and keeps watching them. On networks
    /// other than DDS and ROS 2 there are none.
    ///
    /// # Errors
    /// The reason.
    pub fn offers<'a>(&self, addresses: impl Iterator<Item = &'a Address>) -> Result<Offers, String> {
        let is_ros2_on_dds = matches!(self.ros2, Some(Ros2::Dds));
        let mut offers = Offers::default();
        offers.is_ros2_on_dds = is_ros2_on_dds;
        let failed = |error: &dyn std::fmt::Display| format!("cannot watch publishers: {error}");
        for address in addresses {
            let is_on_dds = matches!(address, Address::Dds(..))
                || (is_ros2_on_dds && matches!(address, Address::Ros2(..)));
            if let Some(participant) = self.dds.as_ref().filter(|_| is_on_dds && offers.dds.is_none()) {
                offers.dds = Some(participant.publishers().map_err(|error| failed(&error))?);
            }
            if let (Address::Ros2(..), Some(Ros2::Zenoh(node)), None) = (address, &self.ros2, &offers.zenoh) {
                offers.zenoh = Some(node.publishers().map_err(|error| failed(&error))?);
            }
        }
        Ok(offers)
    }

    /// Whether the network itself reads and writes the string around JSON.
    fn has_text(&self, address: &Address) -> bool {
        matches!((address, &self.ros2), (Address::Ros2(..), Some(Ros2::Dds)))
    }

    /// Declares that all subscriptions exist. If acknowledgements are held back, messages wait until then.
    pub fn begin(&self) {
        if let Some((session, _)) = &self.mqtt {
            session.begin();
        }
    }

    /// Waits up to `limit`, or until a network may stop sending because too many acknowledgements are held back.
    /// Returns whether any is.
    pub fn wait_held(&self, limit: Duration) -> bool {
        match &self.mqtt {
            Some((session, _)) if session.holds() => session.wait_held(limit),
            _ => {
                std::thread::sleep(limit);
                false
            }
        }
    }

    /// Ends a [wait](Networks::wait_held) of another thread, now or when it begins to wait.
    pub fn wake_held(&self) {
        if let Some((session, _)) = &self.mqtt {
            session.wake_held();
        }
    }

    /// Calls `capture` with marks by which the next run recognises the messages received so far, while no message is
    /// received from a network that holds acknowledgements back. Returns its result and these acknowledgements.
    pub fn freeze<T>(&self, capture: impl FnOnce(Vec<u8>) -> T) -> (T, mqtt::Acknowledgements) {
        match &self.mqtt {
            Some((session, _)) => session.freeze(capture),
            None => (capture(Vec::new()), mqtt::Acknowledgements::default()),
        }
    }

    /// Sends acknowledgements that were held back, and waits up to `limit` until they are read.
    pub fn release(&self, acknowledgements: &mqtt::Acknowledgements, limit: Duration) {
        if let Some((session, _)) = &self.mqtt {
            session.release(acknowledgements, limit);
        }
    }

    /// Returns the number of published messages refused so far, on networks that report it afterwards: on MQTT.
    pub fn refused(&self) -> u64 {
        self.mqtt.as_ref().map_or(0, |(session, _)| session.refused())
    }

    /// Returns the number of participants that DDS Security refused so far.
    pub fn refused_participants(&self) -> u64 {
        self.dds.as_ref().map_or(0, dds::Participant::refused)
    }

    /// Returns the reason why a network was given up, if one was: no more messages are received from it.
    pub fn failure(&self) -> Option<String> {
        self.mqtt.as_ref().and_then(|(session, _)| session.failure())
    }

    /// Returns the messages missed and fetched again so far, for each topic of subscriptions.
    pub fn recovered(&self) -> Vec<(TopicId, Recovered)> {
        let mut recovered = self.zenoh.as_ref().map(zenoh::Session::recovered).unwrap_or_default();
        recovered.extend(self.dds.iter().flat_map(dds::Participant::recovered));
        recovered
    }

    /// Returns the connections lost and restored so far.
    pub fn outages(&self) -> Vec<Outage> {
        let mut outages = self.zenoh.as_ref().map(zenoh::Session::outages).unwrap_or_default();
        outages.extend(self.dds.iter().flat_map(dds::Participant::outages));
        outages.extend(self.mqtt.iter().flat_map(|(session, _)| session.outages()));
        outages
    }

    /// Leaves the networks after the published messages are delivered. Returns whether all were.
    pub fn close(self) -> bool {
        self.close_within(FLUSH)
    }

    /// Leaves the networks like [`Networks::close`], within a time limit for all of them.
    pub fn close_within(self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let left = || deadline.saturating_duration_since(Instant::now());
        let dds = self.dds.as_ref().is_none_or(|participant| participant.close(left()));
        let zenoh = self.zenoh.as_ref().is_none_or(|session| session.close_within(left()).is_ok());
        let mqtt = self.mqtt.as_ref().is_none_or(|(session, _)| session.close_within(left()));
        if !(dds && zenoh && mqtt) {
            // Dropping it would wait again, and the process is about to end.
            std::mem::forget(self);
        }
        dds && zenoh && mqtt
    }

    /// Wakes publishers that wait for a slow subscriber, on networks that support it: DDS and MQTT.
    pub fn wake(&self) {
        if let Some(participant) = &self.dds {
            participant.close(Duration::ZERO);
        }
        if let Some((session, _)) = &self.mqtt {
            session.wake();
        }
    }
}

/// Returns a type described by a node of ROS 2 over Zenoh, in the form of DDS.
fn described(found: zenoh::DescribedType) -> dds::DiscoveredType {
    dds::DiscoveredType { name: found.message_type.dds(), keyed: false, schema: found.schema }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the settings of a broker that does not exist.
    fn unreachable_broker() -> NetworkSettings {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let broker = format!("127.0.0.1:{}", listener.local_addr().unwrap().port()).parse().unwrap();
        let settings = mqtt::Settings { broker, ..mqtt::Settings::default() };
        NetworkSettings { mqtt: Some(Mqtt { settings, ..Mqtt::default() }), ..NetworkSettings::default() }
    }

    fn open(settings: &NetworkSettings, stopped: bool) -> (Option<JoinError>, Vec<Joining>) {
        let mut events = Vec::new();
        let patience = Duration::from_millis(300);
        let joined = Networks::open(settings, Some(patience), || stopped, |one| events.push(one));
        (joined.err(), events)
    }

    #[test]
    fn an_unreachable_network_is_reported_and_given_up() {
        let (error, events) = open(&unreachable_broker(), false);
        assert!(
            matches!(&error, Some(JoinError::Unreachable(reason)) if reason.contains("127.0.0.1")),
            "{error:?}"
        );
        assert!(
            matches!(&events[..], [Joining::Retrying(reason)] if reason.contains("127.0.0.1")),
            "{events:?}"
        );
    }

    #[test]
    fn every_unreachable_network_is_reported() {
        let mut settings = unreachable_broker();
        let closed_port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let connect = vec![format!("tcp/{closed_port}")];
        settings.zenoh = Some(zenoh::Settings { connect, ..zenoh::Settings::default() });
        let mut events = Vec::new();
        let joined =
            Networks::open(&settings, Some(Duration::from_secs(2)), || false, |one| events.push(one));
        assert!(matches!(joined.err(), Some(JoinError::Unreachable(_))));
        let contains = |part: &str| {
            events.iter().any(|one| matches!(one, Joining::Retrying(reason) if reason.contains(part)))
        };
        assert!(contains("at Zenoh") || contains("to Zenoh"), "{events:?}");
        assert!(contains("MQTT"), "{events:?}");
        assert!(contains("MQTT"), "{events:?}");
    }

    #[test]
    fn a_stopped_wait_has_no_reason() {
        assert_eq!(open(&unreachable_broker(), true), (Some(JoinError::Stopped), Vec::new()));
    }

    #[test]
    fn wrong_settings_are_distinguished_from_unreachable_networks() {
        let mut settings = unreachable_broker();
        if let Some(mqtt) = &mut settings.mqtt {
            mqtt.settings.user = Some("u".to_owned());
            mqtt.settings.password = Some(mqtt::Password::File("/nonexistent/password".into()));
        }
        let (error, events) = open(&settings, false);
        assert!(matches!(error, Some(JoinError::Setting(_))), "{error:?}");
        assert!(events.is_empty(), "{events:?}");
        // Without settings there is no network to join.
        assert_eq!(open(&NetworkSettings::default(), false), (None, Vec::new()));
    }
}
