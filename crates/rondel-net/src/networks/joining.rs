//! Joins the networks: retries unreachable ones, and reports them.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{JoinError, Mqtt, NetworkSettings, Networks, Ros2};
use crate::ros2::{self, Middleware};
use crate::{dds, kafka, mqtt, zenoh};

/// Interval at which an unreachable network is reported.
const REMIND: Duration = Duration::from_secs(10);

/// Event while joining networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joining {
    /// A network cannot be reached yet, for this reason.
    Retrying(String),
    /// All networks that could not be reached before are joined.
    Connected,
}

/// A session with a broker, and the settings of publishers there.
type MqttSession = (mqtt::Session, mqtt::PublisherSettings);

/// Sessions that are opened in parallel.
struct Brokered {
    zenoh: Option<zenoh::Session>,
    mqtt: Option<MqttSession>,
    kafka: Option<kafka::Session>,
}

impl Networks {
    /// Joins the networks with settings, in parallel. Retries for `patience` (without it, for ever) and until
    /// `stopped`, and reports each unreachable network at once and then every 10 s.
    ///
    /// Without `patience`, an unreachable network does not delay the others: it is joined as soon as possible, and
    /// messages sent there until then count as missed. Two are waited for nevertheless: a Zenoh router as a client, and
    /// an MQTT broker whose acknowledgements are held back. Records of Kafka are not missed behind a mark.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn open(
        settings: &NetworkSettings,
        patience: Option<Duration>,
        stopped: impl Fn() -> bool + Sync,
        report: impl FnMut(Joining) + Send,
    ) -> Result<Networks, JoinError> {
        settings.check_ros2()?;
        let NetworkSettings { zenoh, dds, mqtt, kafka, ros2 } = settings;
        let all = [zenoh.is_some(), dds.is_some(), mqtt.is_some(), kafka.is_some()];
        let attempt = Attempt {
            started: Instant::now(),
            patience,
            has_others: all.iter().filter(|is_needed| **is_needed).count() > 1,
            stopped,
            report: Mutex::new(report),
            was_reported: AtomicBool::new(false),
            is_failing: AtomicBool::new(false),
        };
        // First the network that does not wait for any other.
        let ros2_settings = ros2.as_ref().and_then(|ros2| ros2.as_ref().ok());
        let dds = dds.as_ref().map(|dds| attempt.open_dds(dds, ros2_settings)).transpose()?;
        let Brokered { zenoh, mqtt, kafka } =
            attempt.open_brokered(zenoh.as_ref(), mqtt.as_ref(), kafka.as_ref())?;
        if attempt.was_reported.load(Ordering::Relaxed) {
            attempt.report(Joining::Connected);
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
        Ok(Networks { zenoh, dds, mqtt, kafka, ros2, listeners })
    }
}

/// An attempt to join networks, shared by the threads that open them.
struct Attempt<S, R> {
    started: Instant,
    /// Time for which unreachable networks are tried again; without limit if none.
    patience: Option<Duration>,
    /// Whether more than one network is joined.
    has_others: bool,
    stopped: S,
    report: Mutex<R>,
    /// Whether a wait for a network was reported.
    was_reported: AtomicBool,
    /// Whether a network has failed, so that the others need not wait any more.
    is_failing: AtomicBool,
}

impl<S: Fn() -> bool + Sync, R: FnMut(Joining) + Send> Attempt<S, R> {
    fn report(&self, event: Joining) {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)(event);
    }

    /// Whether an unreachable network does not delay the others.
    fn goes_on(&self) -> bool {
        self.has_others && self.patience.is_none()
    }

    /// Reports a network that is joined as soon as possible.
    fn report_later(&self, reason: &str) {
        self.report(Joining::Retrying(format!(
            "{reason}; the other networks are used meanwhile, and what is sent here until then is not received"
        )));
    }

    /// Decides whether to try an unreachable network again, and reports it regularly. `last` is the time of its last
    /// report.
    fn wait(&self, last: &mut Option<Instant>, reason: &str) -> ControlFlow<()> {
        let is_over = self.patience.is_some_and(|patience| self.started.elapsed() >= patience);
        if (self.stopped)() || is_over || self.is_failing.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        if last.is_none_or(|at| at.elapsed() >= REMIND) {
            *last = Some(Instant::now());
            self.was_reported.store(true, Ordering::Relaxed);
            let until = if self.has_others {
                ", and until then nothing is received on the other networks"
            } else {
                ""
            };
            self.report(Joining::Retrying(format!("{reason}{until}")));
        }
        ControlFlow::Continue(())
    }

    fn failed(&self, error: String, unreachable: bool) -> JoinError {
        match unreachable {
            _ if (self.stopped)() => JoinError::Stopped,
            true => JoinError::Unreachable(error),
            false => JoinError::Setting(error),
        }
    }

    fn open_dds(
        &self,
        dds: &dds::Settings,
        ros2: Option<&ros2::Settings>,
    ) -> Result<dds::Participant, JoinError> {
        let node = ros2.filter(|ros2| ros2.middleware == Middleware::Dds).map(|ros2| ros2.node.clone());
        let settings = dds::Settings { node, ..dds.clone() };
        dds::Participant::open(&settings).map_err(|error| {
            let is_setting = matches!(error, dds::OpenError::Domain(_) | dds::OpenError::Security(_));
            self.failed(error.to_string(), !is_setting)
        })
    }

    /// Opens Zenoh, MQTT and Kafka in parallel.
    fn open_brokered(
        &self,
        zenoh: Option<&zenoh::Settings>,
        mqtt: Option<&Mqtt>,
        kafka: Option<&kafka::Settings>,
    ) -> Result<Brokered, JoinError> {
        let (zenoh, mqtt, kafka) = std::thread::scope(|scope| {
            let zenoh = zenoh.map(|settings| scope.spawn(move || self.open_zenoh(settings)));
            let kafka = kafka.map(|settings| scope.spawn(move || self.open_kafka(settings)));
            let mqtt = mqtt.map(|settings| self.open_mqtt(settings)).transpose();
            let panicked =
                |_| JoinError::Unreachable("a thread that joins a network has panicked".to_owned());
            let zenoh = zenoh.map(|thread| thread.join().map_err(panicked).flatten()).transpose();
            let kafka = kafka.map(|thread| thread.join().map_err(panicked).flatten()).transpose();
            (zenoh, mqtt, kafka)
        });
        // After an invalid setting, the other networks have only stopped waiting.
        let errors = [zenoh.as_ref().err(), mqtt.as_ref().err(), kafka.as_ref().err()];
        let setting = errors.into_iter().flatten().find(|error| matches!(error, JoinError::Setting(_)));
        match setting.cloned() {
            Some(setting) => Err(setting),
            None => Ok(Brokered { zenoh: zenoh?, mqtt: mqtt?, kafka: kafka? }),
        }
    }

    fn open_kafka(&self, settings: &kafka::Settings) -> Result<kafka::Session, JoinError> {
        let mut last = None;
        let opened = if self.goes_on() && !settings.waits {
            match kafka::Session::open(settings) {
                Err(error @ kafka::OpenError::Unreachable { .. }) => {
                    self.report_later(&error.to_string());
                    kafka::Session::open_later(settings)
                }
                opened => opened,
            }
        } else {
            kafka::Session::open_connected(settings, |error| self.wait(&mut last, &error.to_string()))
        };
        opened.map_err(|error| {
            self.is_failing.store(true, Ordering::Relaxed);
            self.failed(error.to_string(), matches!(error, kafka::OpenError::Unreachable { .. }))
        })
    }

    fn open_zenoh(&self, settings: &zenoh::Settings) -> Result<zenoh::Session, JoinError> {
        let mut last = None;
        let opened = if self.goes_on() && !settings.is_client() {
            zenoh::Session::open_later(settings, |e| self.report_later(&e.to_string()))
        } else {
            zenoh::Session::open_connected(settings, |e| self.wait(&mut last, &e.to_string()))
        };
        opened.map_err(|error| {
            self.is_failing.store(true, Ordering::Relaxed);
            let unreachable =
                matches!(error, zenoh::OpenError::Unreachable { .. } | zenoh::OpenError::Network(_));
            self.failed(error.to_string(), unreachable)
        })
    }

    fn open_mqtt(&self, Mqtt { settings, verdicts }: &Mqtt) -> Result<MqttSession, JoinError> {
        let mut last = None;
        let opened = if self.goes_on() && settings.hold.is_none() {
            match mqtt::Session::open(settings) {
                Err(e @ mqtt::OpenError::Unreachable { .. }) => {
                    self.report_later(&e.to_string());
                    mqtt::Session::open_later(settings)
                }
                opened => opened,
            }
        } else {
            mqtt::Session::open_connected(settings, |e| self.wait(&mut last, &e.to_string()))
        };
        opened.map(|session| (session, *verdicts)).map_err(|error| {
            self.is_failing.store(true, Ordering::Relaxed);
            let setting = matches!(error, mqtt::OpenError::Setting(_) | mqtt::OpenError::Secret { .. });
            self.failed(error.to_string(), !setting)
        })
    }
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
