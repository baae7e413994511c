//! Looking at networks for a time, and naming where.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rondel_net::adapter::now;
use rondel_net::{dds, kafka, ros2};
use rondel_runtime::survey::Survey;
use rondel_runtime::text::counted;

use super::looking::Looking;
use super::ros2_patterns::{OfRos2, is_of_ros2};
use super::{Look, Seen};
use crate::deployment::{Address, Encoding};
use crate::live::networks::{self, NetworkArguments};
use crate::live::signals::End;
use crate::schemas::Schemas;
use crate::{complain, exit, say};

impl Look {
    /// The patterns on each network.
    fn patterns(&self) -> Vec<String> {
        let NetworkArguments { zenoh_connect, zenoh_listen, zenoh_mode, zenoh_config, .. } = &self.network;
        let NetworkArguments { dds_domain, dds_interface, dds_peer, mqtt_broker, .. } = &self.network;
        let kafka = !self.network.kafka_broker.is_empty();
        if !self.what.is_empty() {
            return self.what.clone();
        }
        let zenoh = !zenoh_connect.is_empty()
            || !zenoh_listen.is_empty()
            || zenoh_mode.is_some()
            || zenoh_config.is_some();
        let dds = dds_domain.is_some() || dds_interface.is_some() || !dds_peer.is_empty();
        let mqtt = mqtt_broker.is_some();
        let none = !zenoh && !dds && !mqtt && !kafka;
        let all = [(zenoh || none, "zenoh:**"), (dds || none, "dds:*"), (mqtt, "mqtt:#"), (kafka, "kafka:*")];
        all.iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, pattern)| (*pattern).to_owned()).collect()
    }

    /// Looks at the networks until the time is over, or a signal ends it.
    ///
    /// # Errors
    /// The exit status, after the reason was shown.
    pub(super) fn live(&self, schemas: Option<&Arc<Mutex<Schemas>>>) -> Result<Seen, u8> {
        let patterns = self.patterns();
        let ros2 = OfRos2::new(&patterns).map_err(usage)?;
        let addresses = addresses(&patterns, ros2.as_ref()).map_err(usage)?;
        let joined = patterns.iter().zip(&addresses).map(|(text, address)| match is_of_ros2(text) {
            true => Address::parse("ros2:/rondel"),
            false => Ok(address.clone()),
        });
        let joined = joined.collect::<Result<Vec<_>, _>>().map_err(usage)?;
        let end = End::on_signal().map_err(networks::failed)?;
        let networks = self.network.open(joined.iter(), &end.interrupted)?;
        let until = Instant::now() + Duration::from_secs(self.seconds.into());
        let survey = Arc::new(Mutex::new(Survey::new(self.limit as usize)));
        let mut looking = Looking::new(&networks, Arc::clone(&survey), schemas.map(Arc::clone), &addresses);
        for address in &addresses {
            looking.observe(address).map_err(networks::failed)?;
        }
        say(&format!(
            "looking at {} for {}",
            patterns.join(", "),
            counted(self.seconds.into(), "second", "seconds")
        ));
        looking.look_until(until, &end.stopped);
        let is_alone =
            addresses.iter().any(|a| matches!(a, Address::Zenoh(..))) && !networks.wait_zenoh(Duration::ZERO);
        looking.describe();
        drop(looking);
        networks.close_within(Duration::from_secs(1));
        let mut survey =
            std::mem::replace(&mut *survey.lock().unwrap_or_else(PoisonError::into_inner), Survey::new(0));
        survey.pass(now());
        survey.end();
        if let Some(ros2) = &ros2 {
            ros2.name(&mut survey, &patterns);
        }
        let origin = self.origin(&patterns, &addresses, ros2.as_ref(), is_alone);
        Ok(Seen { survey, origin, recordings: Vec::new(), is_damaged: false, unreadable: Vec::new() })
    }

    /// Describes the networks that were looked at, with domain, broker and middleware.
    fn origin(
        &self,
        patterns: &[String],
        addresses: &[Address],
        ros2: Option<&OfRos2>,
        is_alone: bool,
    ) -> String {
        let alone = if is_alone { " (no other participant of Zenoh was found)" } else { "" };
        let domain = if addresses.iter().any(|a| matches!(a, Address::Dds(..))) {
            format!(" (domain {})", self.network.domain().unwrap_or_default())
        } else {
            String::new()
        };
        let broker = match &self.network.mqtt_broker {
            Some(broker) if patterns.iter().any(|text| text.starts_with("mqtt:")) => {
                format!(" (broker {broker})")
            }
            _ => String::new(),
        };
        let brokers = match &self.network.kafka_broker[..] {
            [] => String::new(),
            brokers => format!(" (brokers {})", brokers.join(", ")),
        };
        let of_ros2 = ros2.map_or_else(String::new, |ros2| {
            let ros2::Settings { domain, middleware, .. } = ros2.settings;
            format!(" (domain {domain} over {middleware}){alone}")
        });
        let said = |text: &String| {
            let more = match text.split(':').next() {
                Some("zenoh") => alone,
                Some("dds") => &domain,
                Some("ros2") => &of_ros2,
                Some("kafka") => &brokers,
                _ => &broker,
            };
            format!("{text}{more}")
        };
        let places: Vec<String> = patterns.iter().map(said).collect();
        let time = counted(self.seconds.into(), "second", "seconds");
        format!("{time} at {}", places.join(", "))
    }
}

/// Shows an error in the arguments, and returns the exit status.
fn usage(error: String) -> u8 {
    complain(&error);
    exit::USAGE
}

/// Returns the address of each pattern. Patterns of ROS 2 are those of its middleware, which is joined as ROS 2 joins it.
fn addresses(patterns: &[String], ros2: Option<&OfRos2>) -> Result<Vec<Address>, String> {
    let carried = |text: &String| ros2.and_then(|ros2| ros2.carried(text)).unwrap_or_else(|| text.clone());
    patterns.iter().map(|text| address(&carried(text))).collect()
}

fn address(text: &str) -> Result<Address, String> {
    if let Some(pattern) = text.strip_prefix("kafka:").filter(|pattern| pattern.contains(['*', '?'])) {
        kafka::check_topic(&pattern.replace(['*', '?'], "_")).map_err(|error| error.to_string())?;
        return Ok(Address::Kafka(pattern.to_owned(), Encoding::JSON));
    }
    match text.strip_prefix("dds:") {
        Some(pattern) if !pattern.contains(['{', '}']) => dds::check_pattern(pattern)
            .map(|()| Address::Dds(pattern.to_owned(), dds::TopicType::default(), dds::TopicQos::default()))
            .map_err(|error| error.to_string()),
        _ => Address::parse(text).map(|address| address.subscribed().into_owned()),
    }
}
