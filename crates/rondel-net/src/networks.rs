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

/// The time limit for delivering published messages at the end.
const FLUSH: Duration = Duration::from_secs(3);

/// The settings of the networks to join.
#[derive(Clone, Debug, Default)]
pub struct NetworkSettings {
    /// How to join Zenoh.
    pub zenoh: Option<zenoh::Settings>,
    /// How to join DDS.
    pub dds: Option<dds::Settings>,
    /// How to join MQTT.
    pub mqtt: Option<Mqtt>,
    /// How to join ROS 2, which also needs the settings of its middleware. They may be wrong in the environment.
    pub ros2: Option<Result<ros2::Settings, Ros2Error>>,
}

impl NetworkSettings {
    /// Sets how long publishing waits for a consumer that accepts nothing, on every network that has settings.
    /// On Zenoh the connection with it is then closed, on DDS and MQTT messages are dropped.
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

    /// Holds acknowledgements back until [`Networks::release`], where a network has some. `marks` are those of the
    /// run before, from [`Networks::freeze`].
    pub fn hold(&mut self, marks: &[u8]) {
        if let Some(mqtt) = &mut self.mqtt {
            mqtt.settings.hold = Some(marks.to_vec());
        }
    }

    /// Sets the bytes in which publishers keep messages for subscribers that missed them, on every network that has
    /// settings and can.
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

/// The settings of MQTT.
#[derive(Clone, Debug, Default)]
pub struct Mqtt {
    /// How to join the broker.
    pub settings: mqtt::Settings,
    /// How to publish there.
    pub verdicts: mqtt::PublisherSettings,
}

/// The networks that were joined.
pub struct Networks {
    pub(crate) zenoh: Option<zenoh::Session>,
    pub(crate) dds: Option<dds::Participant>,
    pub(crate) mqtt: Option<(mqtt::Session, mqtt::PublisherSettings)>,
    ros2: Option<Ros2>,
    listeners: Vec<Listener>,
}

/// ROS 2, joined through its middleware.
enum Ros2 {
    Zenoh(zenoh::Ros2Node),
    Dds,
}

/// How often a network that cannot be reached yet is reported.
const REMIND: Duration = Duration::from_secs(10);

/// Why the networks were not joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// A setting is wrong: trying again does not help.
    #[error("{0}")]
    Setting(String),
    /// A network cannot be reached, or refuses.
    #[error("{0}")]
    Unreachable(String),
    /// The caller stopped waiting.
    #[error("stopped before the networks were joined")]
    Stopped,
}

/// News from joining networks, for whoever waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joining {
    /// A network cannot be reached yet, for this reason.
    Retrying(String),
    /// Every network is joined that could not be reached before.
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
    /// Joins the networks for which there are settings, at the same time. Keeps trying to reach them for `patience`
    /// (without it, for ever) and until `stopped`, and reports at once and then every 10 s each that cannot be reached.
    ///
    /// Without `patience` one that cannot be reached does not hold up the others: it is joined as soon as it can be, and
    /// what was sent there until then counts as missed. Two are waited for all the same: a Zenoh router as a client, and
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
        let report = |news: Joining| report.lock().unwrap_or_else(PoisonError::into_inner)(news);
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
        // First the one that waits for nobody.
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
            // The other has only stopped waiting.
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

    /// Returns everything that others can connect or send to.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Whether a network could not be reached so far.
    pub fn is_any_awaited(&self) -> bool {
        self.zenoh.as_ref().is_some_and(zenoh::Session::is_awaited)
            || self.mqtt.as_ref().is_some_and(|(session, _)| session.is_awaited())
    }

    /// Whether a connection was lost a moment ago, so that it is not known yet what was missed: nothing should be concluded
    /// from silence meanwhile. It lasts two and a half seconds at most.
    pub fn is_unsure(&self) -> bool {
        self.zenoh.as_ref().is_some_and(zenoh::Session::is_unsure)
    }

    /// Whether the network kept what was published at an address since the process that was here before left.
    pub fn kept(&self, address: &Address) -> bool {
        match (address, &self.mqtt) {
            (Address::Mqtt(_, settings, _), Some((session, _))) => session.kept(*settings),
            _ => false,
        }
    }

    /// Waits up to `limit` for a publisher of a topic on DDS or ROS 2, and returns the type that it announces; `None` if
    /// there is none in time, and on other networks. On ROS 2 over Zenoh it is the type that its node describes. Of
    /// publishers of several types, it is one that `fits`, if there is one.
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

    /// Returns the publishers on the networks of addresses, which are then watched, and what they offer. On other
    /// networks than DDS and ROS 2 there are none.
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

    /// Says that all subscriptions are made. Where acknowledgements are held back, messages wait until then.
    pub fn begin(&self) {
        if let Some((session, _)) = &self.mqtt {
            session.begin();
        }
    }

    /// Waits up to `limit`, less if a network may soon stop sending since too many acknowledgements are held back.
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

    /// Calls `capture` with marks by which the next run recognises messages received so far, while none is received
    /// from a network that holds acknowledgements back. Returns its result and these acknowledgements.
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

    /// Returns how many published messages were refused so far, where the network tells only afterwards: MQTT does.
    pub fn refused(&self) -> u64 {
        self.mqtt.as_ref().map_or(0, |(session, _)| session.refused())
    }

    /// Returns how many participants DDS Security refused so far.
    pub fn refused_participants(&self) -> u64 {
        self.dds.as_ref().map_or(0, dds::Participant::refused)
    }

    /// Returns why a network was given up, if one was: nothing more is received from it.
    pub fn failure(&self) -> Option<String> {
        self.mqtt.as_ref().and_then(|(session, _)| session.failure())
    }

    /// Returns the messages that were missed and fetched again so far, for each topic of subscriptions.
    pub fn recovered(&self) -> Vec<(TopicId, Recovered)> {
        let mut recovered = self.zenoh.as_ref().map(zenoh::Session::recovered).unwrap_or_default();
        recovered.extend(self.dds.iter().flat_map(dds::Participant::recovered));
        recovered
    }

    /// Returns the connections that were lost and restored so far.
    pub fn outages(&self) -> Vec<Outage> {
        let mut outages = self.zenoh.as_ref().map(zenoh::Session::outages).unwrap_or_default();
        outages.extend(self.dds.iter().flat_map(dds::Participant::outages));
        outages.extend(self.mqtt.iter().flat_map(|(session, _)| session.outages()));
        outages
    }

    /// Leaves the networks once published messages are delivered. Returns whether all were.
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
            // Dropping it would wait once more, and the process is about to end.
            std::mem::forget(self);
        }
        dds && zenoh && mqtt
    }

    /// Wakes publishers that wait for a slow subscriber, where the network allows it: DDS and MQTT do.
    pub fn wake(&self) {
        if let Some(participant) = &self.dds {
            participant.close(Duration::ZERO);
        }
        if let Some((session, _)) = &self.mqtt {
            session.wake();
        }
    }
}

/// A type that a node of ROS 2 over Zenoh describes, in the form of DDS.
fn described(found: zenoh::DescribedType) -> dds::DiscoveredType {
    dds::DiscoveredType { name: found.message_type.dds(), keyed: false, schema: found.schema }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings of a broker that is not there.
    fn nobody() -> NetworkSettings {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let broker = format!("127.0.0.1:{}", listener.local_addr().unwrap().port()).parse().unwrap();
        let settings = mqtt::Settings { broker, ..mqtt::Settings::default() };
        NetworkSettings { mqtt: Some(Mqtt { settings, ..Mqtt::default() }), ..NetworkSettings::default() }
    }

    fn open(settings: &NetworkSettings, stopped: bool) -> (Option<JoinError>, Vec<Joining>) {
        let mut news = Vec::new();
        let patience = Duration::from_millis(300);
        let joined = Networks::open(settings, Some(patience), || stopped, |one| news.push(one));
        (joined.err(), news)
    }

    #[test]
    fn an_unreachable_network_is_reported_and_given_up() {
        let (error, news) = open(&nobody(), false);
        assert!(
            matches!(&error, Some(JoinError::Unreachable(reason)) if reason.contains("127.0.0.1")),
            "{error:?}"
        );
        assert!(matches!(&news[..], [Joining::Retrying(reason)] if reason.contains("127.0.0.1")), "{news:?}");
    }

    #[test]
    fn every_unreachable_network_is_reported() {
        let mut settings = nobody();
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let connect = vec![format!("tcp/{nobody}")];
        settings.zenoh = Some(zenoh::Settings { connect, ..zenoh::Settings::default() });
        let mut news = Vec::new();
        let joined = Networks::open(&settings, Some(Duration::from_secs(2)), || false, |one| news.push(one));
        assert!(matches!(joined.err(), Some(JoinError::Unreachable(_))));
        let said = |part: &str| {
            news.iter().any(|one| matches!(one, Joining::Retrying(reason) if reason.contains(part)))
        };
        assert!(said("at Zenoh") || said("to Zenoh"), "{news:?}");
        assert!(said("MQTT"), "{news:?}");
        assert!(said("MQTT"), "{news:?}");
    }

    #[test]
    fn whoever_stops_waiting_gets_no_reason() {
        assert_eq!(open(&nobody(), true), (Some(JoinError::Stopped), Vec::new()));
    }

    #[test]
    fn wrong_settings_are_told_from_unreachable_networks() {
        let mut settings = nobody();
        if let Some(mqtt) = &mut settings.mqtt {
            mqtt.settings.user = Some("u".to_owned());
            mqtt.settings.password = Some(mqtt::Password::File("/nonexistent/password".into()));
        }
        let (error, news) = open(&settings, false);
        assert!(matches!(error, Some(JoinError::Setting(_))), "{error:?}");
        assert!(news.is_empty(), "{news:?}");
        // No network, nothing to join.
        assert_eq!(open(&NetworkSettings::default(), false), (None, Vec::new()));
    }
}
