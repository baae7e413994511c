//! Settings of the networks to join.

use std::time::Duration;

use super::JoinError;
use crate::address::Address;
use crate::ros2::{self, Middleware, Ros2Error};
use crate::{dds, kafka, mqtt, zenoh};

/// Settings of the networks to join.
#[derive(Clone, Debug, Default)]
pub struct NetworkSettings {
    /// Settings of Zenoh.
    pub zenoh: Option<zenoh::Settings>,
    /// Settings of DDS.
    pub dds: Option<dds::Settings>,
    /// Settings of MQTT.
    pub mqtt: Option<Mqtt>,
    /// Settings of Kafka.
    pub kafka: Option<kafka::Settings>,
    /// Settings of ROS 2, which also needs the settings of its middleware; an error if the environment is invalid.
    pub ros2: Option<Result<ros2::Settings, Ros2Error>>,
}

impl NetworkSettings {
    /// Limits the time for which publishing waits for a consumer that accepts nothing, on every network with settings.
    /// After it, Zenoh closes the connection; DDS, MQTT and Kafka drop messages.
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
        if let Some(kafka) = &mut self.kafka {
            kafka.slow_consumer = Some(wait);
        }
    }

    /// Holds acknowledgements back until [`Networks::release`](super::Networks::release), on networks that have them. `marks` are those of the
    /// previous run, from [`Networks::freeze`](super::Networks::freeze).
    pub fn hold(&mut self, marks: &[u8]) {
        if let Some(mqtt) = &mut self.mqtt {
            mqtt.settings.hold = Some(kafka::split(marks).1.to_vec());
        }
        if let Some(kafka) = &mut self.kafka {
            kafka.waits = true;
        }
        self.go_on(marks);
    }

    /// Goes on at the marks of the previous run, from [`Networks::freeze`](super::Networks::freeze), on networks that keep
    /// messages without acknowledgements: on Kafka.
    pub fn go_on(&mut self, marks: &[u8]) {
        if let Some(kafka) = &mut self.kafka {
            kafka.marks = kafka::split(marks).0.to_vec();
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
            Address::Kafka(..) => _ = self.kafka.get_or_insert_default(),
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

    /// Checks the settings without connecting.
    ///
    /// # Errors
    /// [`JoinError::Setting`].
    pub fn check(&self) -> Result<(), JoinError> {
        let setting = |error: String| JoinError::Setting(error);
        self.check_ros2()?;
        self.zenoh.as_ref().map_or(Ok(()), |s| s.check().map_err(|e| setting(e.to_string())))?;
        self.mqtt.as_ref().map_or(Ok(()), |m| m.settings.check().map_err(|e| setting(e.to_string())))?;
        match &self.kafka {
            Some(_) if !kafka::IS_AVAILABLE => Err(setting(kafka::UNAVAILABLE.to_owned())),
            Some(kafka) => kafka.check().map_err(|e| setting(e.to_string())),
            None => Ok(()),
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
