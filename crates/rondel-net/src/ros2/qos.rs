//! Quality of service: the profiles of ROS 2 by name, and their text in tokens of rmw_zenoh.

use std::time::Duration;

use super::{Ros2Error, named};

/// Policy for lost messages: whether they are sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names of ROS 2
pub enum Reliability {
    SystemDefault,
    Reliable,
    BestEffort,
    BestAvailable,
}

/// Policy for messages published before a subscription: whether a publisher keeps them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names of ROS 2
pub enum Durability {
    SystemDefault,
    TransientLocal,
    Volatile,
    BestAvailable,
}

/// Policy for the number of kept messages: `depth`, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names of ROS 2
pub enum History {
    SystemDefault,
    KeepLast,
    KeepAll,
}

/// Source of the signs of life of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names of ROS 2
pub enum Liveliness {
    SystemDefault,
    Automatic,
    ManualByTopic,
    BestAvailable,
}

/// Implements parsing and writing of a policy: its names, and its numbers in tokens.
macro_rules! policy {
    ($policy:ty, $expected:literal, $(($variant:ident, $name:literal, $number:literal)),+) => {
        impl $policy {
            /// Parses its name in ROS 2.
            ///
            /// # Errors
            /// [`Ros2Error`] with the valid names.
            pub fn parse(text: &str) -> Result<$policy, Ros2Error> {
                named(text, $expected, &[$(($name, <$policy>::$variant)),+])
            }

            /// Parses its number in ROS 2, as in recordings; `None` for other texts.
            pub fn of_number(text: &str) -> Option<$policy> {
                match text {
                    $($number => Some(<$policy>::$variant),)+
                    _ => None,
                }
            }

            /// Returns its number in ROS 2, as in recordings.
            pub fn number(self) -> &'static str {
                match self { $(<$policy>::$variant => $number),+ }
            }
        }

        impl std::fmt::Display for $policy {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(<$policy>::$variant => $name),+ })
            }
        }
    };
}

policy!(
    Reliability,
    "a reliability of ROS 2",
    (SystemDefault, "system_default", "0"),
    (Reliable, "reliable", "1"),
    (BestEffort, "best_effort", "2"),
    (BestAvailable, "best_available", "4")
);
policy!(
    Durability,
    "a durability of ROS 2",
    (SystemDefault, "system_default", "0"),
    (TransientLocal, "transient_local", "1"),
    (Volatile, "volatile", "2"),
    (BestAvailable, "best_available", "4")
);
policy!(
    History,
    "a history of ROS 2",
    (SystemDefault, "system_default", "0"),
    (KeepLast, "keep_last", "1"),
    (KeepAll, "keep_all", "2")
);
policy!(
    Liveliness,
    "a liveliness of ROS 2",
    (SystemDefault, "system_default", "0"),
    (Automatic, "automatic", "1"),
    (ManualByTopic, "manual_by_topic", "3"),
    (BestAvailable, "best_available", "5")
);

/// A profile of quality of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Qos {
    /// Policy for lost messages.
    pub reliability: Reliability,
    /// Policy for messages published before a subscription.
    pub durability: Durability,
    /// Policy for the number of kept messages.
    pub history: History,
    /// Number of kept messages; 0 for the default of the middleware.
    pub depth: u64,
    /// Maximum time between two messages; `None` without a limit.
    pub deadline: Option<Duration>,
    /// Time after which a message is no longer delivered; `None` for never.
    pub lifespan: Option<Duration>,
    /// Source of the signs of life of a publisher.
    pub liveliness: Liveliness,
    /// Maximum time between two signs of life; `None` without a limit.
    pub lease: Option<Duration>,
}

/// Settings that replace those of a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QosOverrides {
    /// See [`Qos::reliability`].
    pub reliability: Option<Reliability>,
    /// See [`Qos::durability`].
    pub durability: Option<Durability>,
    /// See [`Qos::history`].
    pub history: Option<History>,
    /// See [`Qos::depth`].
    pub depth: Option<u64>,
    /// See [`Qos::deadline`].
    pub deadline: Option<Duration>,
    /// See [`Qos::lifespan`].
    pub lifespan: Option<Duration>,
    /// See [`Qos::liveliness`].
    pub liveliness: Option<Liveliness>,
    /// See [`Qos::lease`].
    pub lease: Option<Duration>,
}

impl QosOverrides {
    /// Returns the quality of service on DDS, as far as it is set.
    #[cfg(feature = "dds")]
    pub fn on_dds(&self) -> crate::dds::TopicQos {
        let QosOverrides { reliability, durability, history, depth, deadline, lease, .. } = *self;
        let depth = depth.filter(|depth| *depth > 0 && history != Some(History::KeepAll));
        crate::dds::TopicQos {
            reliability: match reliability {
                Some(Reliability::Reliable) => Some(crate::dds::Reliability::Reliable),
                Some(Reliability::BestEffort) => Some(crate::dds::Reliability::BestEffort),
                _ => None,
            },
            durability: match durability {
                Some(Durability::TransientLocal) => Some(crate::dds::Durability::TransientLocal),
                Some(Durability::Volatile) => Some(crate::dds::Durability::Volatile),
                _ => None,
            },
            depth: depth.map(|depth| u32::try_from(depth).unwrap_or(u32::MAX)),
            deadline,
            lease,
            ..crate::dds::TopicQos::default()
        }
    }
}

/// Overrides every setting of a profile.
impl From<Qos> for QosOverrides {
    fn from(qos: Qos) -> QosOverrides {
        QosOverrides {
            reliability: Some(qos.reliability),
            durability: Some(qos.durability),
            history: Some(qos.history),
            depth: Some(qos.depth),
            deadline: qos.deadline,
            lifespan: qos.lifespan,
            liveliness: Some(qos.liveliness),
            lease: qos.lease,
        }
    }
}

/// The infinite duration of ROS 2, in seconds and nanoseconds.
pub const INFINITE: (u64, u64) = (9_223_372_036, 854_775_807);
/// Default depth of rmw_zenoh.
const ZENOH_DEPTH: u64 = 42;

impl Qos {
    /// The profile `default`: reliable, the last 10 messages.
    pub const DEFAULT: Qos = Qos {
        reliability: Reliability::Reliable,
        durability: Durability::Volatile,
        history: History::KeepLast,
        depth: 10,
        deadline: None,
        lifespan: None,
        liveliness: Liveliness::Automatic,
        lease: None,
    };

    /// The profile `sensor_data`: best effort, the last 5 messages.
    pub const SENSOR_DATA: Qos = Qos { reliability: Reliability::BestEffort, depth: 5, ..Qos::DEFAULT };

    /// The profile `parameters`: reliable, the last 1,000 messages.
    pub const PARAMETERS: Qos = Qos { depth: 1000, ..Qos::DEFAULT };

    /// The profile `clock`: best effort, the last message.
    pub const CLOCK: Qos = Qos { depth: 1, ..Qos::SENSOR_DATA };

    /// The profile `rosout`: the last 1,000 messages, kept for subscriptions that join within 10 s.
    pub const ROSOUT: Qos = Qos {
        durability: Durability::TransientLocal,
        depth: 1000,
        lifespan: Some(Duration::from_secs(10)),
        ..Qos::DEFAULT
    };

    /// The profile `system_default`: the defaults of the middleware.
    pub const SYSTEM_DEFAULT: Qos = Qos {
        reliability: Reliability::SystemDefault,
        durability: Durability::SystemDefault,
        history: History::SystemDefault,
        depth: 0,
        liveliness: Liveliness::SystemDefault,
        ..Qos::DEFAULT
    };

    /// The profile `best_available`: the offers of the publishers of the topic.
    pub const BEST_AVAILABLE: Qos = Qos {
        reliability: Reliability::BestAvailable,
        durability: Durability::BestAvailable,
        liveliness: Liveliness::BestAvailable,
        ..Qos::DEFAULT
    };

    /// Returns the profile of a name in ROS 2: `default`, `sensor_data`, `services`, `parameters`, `parameter_events`,
    /// `clock`, `rosout`, `system_default` or `best_available`.
    ///
    /// # Errors
    /// [`Ros2Error`] with the valid names.
    pub fn profile(name: &str) -> Result<Qos, Ros2Error> {
        let profiles = [
            ("default", Qos::DEFAULT),
            ("sensor_data", Qos::SENSOR_DATA),
            ("services", Qos::DEFAULT),
            ("parameters", Qos::PARAMETERS),
            ("parameter_events", Qos::PARAMETERS),
            ("clock", Qos::CLOCK),
            ("rosout", Qos::ROSOUT),
            ("system_default", Qos::SYSTEM_DEFAULT),
            ("best_available", Qos::BEST_AVAILABLE),
        ];
        named(name, "a QoS profile of ROS 2", &profiles)
    }

    /// Returns the profile with the given overrides.
    pub fn with(self, overrides: &QosOverrides) -> Qos {
        Qos {
            reliability: overrides.reliability.unwrap_or(self.reliability),
            durability: overrides.durability.unwrap_or(self.durability),
            history: overrides.history.unwrap_or(self.history),
            depth: overrides.depth.unwrap_or(self.depth),
            deadline: overrides.deadline.or(self.deadline),
            lifespan: overrides.lifespan.or(self.lifespan),
            liveliness: overrides.liveliness.unwrap_or(self.liveliness),
            lease: overrides.lease.or(self.lease),
        }
    }

    /// Returns the profile with the defaults of rmw_zenoh instead of system defaults and best-available policies: it
    /// connects every publisher with every subscription.
    pub fn on_zenoh(self) -> Qos {
        Qos {
            reliability: match self.reliability {
                Reliability::SystemDefault | Reliability::BestAvailable => Reliability::Reliable,
                other => other,
            },
            durability: match self.durability {
                Durability::SystemDefault => Durability::Volatile,
                Durability::BestAvailable => Durability::TransientLocal,
                other => other,
            },
            history: match self.history {
                History::SystemDefault => History::KeepLast,
                other => other,
            },
            depth: if self.depth == 0 { ZENOH_DEPTH } else { self.depth },
            liveliness: match self.liveliness {
                Liveliness::SystemDefault | Liveliness::BestAvailable => Liveliness::Automatic,
                other => other,
            },
            ..self
        }
    }

    /// Returns the text in a token of rmw_zenoh, without its default values.
    pub(super) fn token(&self) -> String {
        let Qos { reliability, durability, history, depth, deadline, lifespan, liveliness, lease } = self;
        let unless = |default: bool, text: &str| if default { String::new() } else { text.to_owned() };
        let depth = unless(*depth == ZENOH_DEPTH, &depth.to_string());
        let duration = |duration: &Option<Duration>| {
            let (seconds, nanos) = duration
                .map_or(INFINITE, |duration| (duration.as_secs(), u64::from(duration.subsec_nanos())));
            let seconds = unless(seconds == INFINITE.0, &seconds.to_string());
            format!("{seconds},{}", unless(nanos == INFINITE.1, &nanos.to_string()))
        };
        format!(
            "{}:{}:{},{depth}:{}:{}:{},{}",
            unless(*reliability == Reliability::Reliable, reliability.number()),
            unless(*durability == Durability::Volatile, durability.number()),
            unless(*history == History::KeepLast, history.number()),
            duration(deadline),
            duration(lifespan),
            unless(*liveliness == Liveliness::Automatic, liveliness.number()),
            duration(lease),
        )
    }

    /// Parses the text of a token.
    pub(super) fn of_token(text: &str) -> Option<Qos> {
        let mut parts = text.split(':');
        let mut part = || parts.next();
        let (reliability, durability, history) = (part()?, part()?, part()?);
        let (deadline, lifespan, liveliness) = (part()?, part()?, part()?);
        let (history, depth) = history.split_once(',')?;
        let (liveliness, lease) = liveliness.split_once(',')?;
        Some(Qos {
            reliability: or_default(reliability, Reliability::Reliable, Reliability::of_number)?,
            durability: or_default(durability, Durability::Volatile, Durability::of_number)?,
            history: or_default(history, History::KeepLast, History::of_number)?,
            depth: whole(depth, ZENOH_DEPTH)?,
            deadline: duration(deadline)?,
            lifespan: duration(lifespan)?,
            liveliness: or_default(liveliness, Liveliness::Automatic, Liveliness::of_number)?,
            lease: duration(lease)?,
        })
    }
}

impl std::fmt::Display for Qos {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {}, ", self.reliability, self.durability)?;
        match self.history {
            History::KeepAll => write!(f, "{}", self.history),
            _ => write!(f, "{} {}", self.history, self.depth),
        }?;
        let durations = [("deadline", self.deadline), ("lifespan", self.lifespan), ("lease", self.lease)];
        for (name, duration) in durations {
            if let Some(duration) = duration {
                write!(f, ", {name} {duration:?}")?;
            }
        }
        if self.liveliness != Liveliness::Automatic {
            write!(f, ", {}", self.liveliness)?;
        }
        Ok(())
    }
}

fn or_default<T>(text: &str, default: T, read: impl Fn(&str) -> Option<T>) -> Option<T> {
    if text.is_empty() { Some(default) } else { read(text) }
}

fn whole(text: &str, default: u64) -> Option<u64> {
    or_default(text, default, |text| text.parse().ok())
}

/// Parses `SECONDS,NANOSECONDS`; the outer `None` is a mistake, the inner one an infinite duration.
fn duration(text: &str) -> Option<Option<Duration>> {
    let (seconds, nanos) = text.split_once(',')?;
    let (seconds, nanos) = (whole(seconds, INFINITE.0)?, whole(nanos, INFINITE.1)?);
    let duration = Duration::from_secs(seconds).checked_add(Duration::from_nanos(nanos))?;
    // The nanoseconds may exceed a second.
    let is_infinite = (duration.as_secs(), u64::from(duration.subsec_nanos())) == INFINITE;
    Some((!is_infinite).then_some(duration))
}

#[cfg(test)]
pub(super) use tests::any_qos;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn profiles_are_those_of_ros() {
        let names = ["default", "sensor_data", "services", "parameters", "clock", "rosout", "system_default"];
        let texts = [
            "reliable, volatile, keep_last 10",
            "best_effort, volatile, keep_last 5",
            "reliable, volatile, keep_last 10",
            "reliable, volatile, keep_last 1000",
            "best_effort, volatile, keep_last 1",
            "reliable, transient_local, keep_last 1000, lifespan 10s",
            "system_default, system_default, system_default 0, system_default",
        ];
        for (name, text) in names.into_iter().zip(texts) {
            assert_eq!(Qos::profile(name).unwrap().to_string(), text);
        }
        assert_eq!(
            Qos::profile("sensor-data").unwrap_err().to_string(),
            "'sensor-data' is not a QoS profile of ROS 2: the names are: default, sensor_data, services, parameters, \
             parameter_events, clock, rosout, system_default, best_available; did you mean 'sensor_data'?"
        );
        assert_eq!(
            Reliability::parse("besteffort").unwrap_err().to_string(),
            "'besteffort' is not a reliability of ROS 2: the names are: system_default, reliable, best_effort, \
             best_available; did you mean 'best_effort'?"
        );
    }

    #[test]
    fn overrides_take_the_place_of_settings() {
        let overrides = QosOverrides {
            durability: Some(Durability::parse("transient_local").unwrap()),
            depth: Some(1),
            deadline: Some(Duration::from_millis(100)),
            ..QosOverrides::default()
        };
        let qos = Qos::SENSOR_DATA.with(&overrides);
        assert_eq!(qos.to_string(), "best_effort, transient_local, keep_last 1, deadline 100ms");
        assert_eq!(Qos::SYSTEM_DEFAULT.on_zenoh(), Qos { depth: 42, ..Qos::DEFAULT });
        let best = Qos { durability: Durability::TransientLocal, ..Qos::DEFAULT };
        assert_eq!(Qos::BEST_AVAILABLE.on_zenoh(), best);
        assert_eq!(Qos::ROSOUT.with(&QosOverrides::default()).on_zenoh(), Qos::ROSOUT);
    }

    #[test]
    fn tokens_leave_out_defaults() {
        for (qos, text) in [
            (Qos::DEFAULT, "::,10:,:,:,,"),
            (Qos::SYSTEM_DEFAULT.on_zenoh(), "::,:,:,:,,"),
            (Qos::SENSOR_DATA, "2::,5:,:,:,,"),
            (Qos::ROSOUT, ":1:,1000:,:10,0:,,"),
            (Qos { history: History::KeepAll, depth: 0, ..Qos::DEFAULT }, "::2,0:,:,:,,"),
            (
                Qos {
                    deadline: Some(Duration::from_millis(1_250)),
                    liveliness: Liveliness::ManualByTopic,
                    lease: Some(Duration::from_nanos(1)),
                    ..Qos::DEFAULT
                },
                "::,10:1,250000000:,:3,0,1",
            ),
        ] {
            assert_eq!(qos.token(), text);
            assert_eq!(Qos::of_token(text), Some(qos), "{text}");
        }
        assert_eq!(Qos::of_token("::,10:9223372035,1854775807:,:,,"), Some(Qos::DEFAULT), "infinite too");
        for text in [
            "",
            "::",
            "::,:,:,:,",
            "9::,:,:,:,,",
            "::x,:,:,:,,",
            "::,-1:,:,:,,",
            "::,:,:18446744073709551615,18446744073709551615:,,",
        ] {
            assert_eq!(Qos::of_token(text), None, "{text}");
        }
    }

    fn any_duration() -> impl Strategy<Value = Option<Duration>> {
        let duration = (any::<u32>(), 0..1_000_000_000_u32).prop_map(|(s, n)| Duration::new(s.into(), n));
        proptest::option::of(duration)
    }

    pub(in crate::ros2) fn any_qos() -> impl Strategy<Value = Qos> {
        let reliabilities = [
            Reliability::SystemDefault,
            Reliability::Reliable,
            Reliability::BestEffort,
            Reliability::BestAvailable,
        ];
        let durabilities = [
            Durability::SystemDefault,
            Durability::TransientLocal,
            Durability::Volatile,
            Durability::BestAvailable,
        ];
        let histories = [History::SystemDefault, History::KeepLast, History::KeepAll];
        let livelinesses = [
            Liveliness::SystemDefault,
            Liveliness::Automatic,
            Liveliness::ManualByTopic,
            Liveliness::BestAvailable,
        ];
        let policies = (
            proptest::sample::select(reliabilities.to_vec()),
            proptest::sample::select(durabilities.to_vec()),
            proptest::sample::select(histories.to_vec()),
            proptest::sample::select(livelinesses.to_vec()),
        );
        (policies, any::<u64>(), any_duration(), any_duration(), any_duration()).prop_map(
            |((reliability, durability, history, liveliness), depth, deadline, lifespan, lease)| Qos {
                reliability,
                durability,
                history,
                depth,
                deadline,
                lifespan,
                liveliness,
                lease,
            },
        )
    }

    proptest! {
        #[test]
        fn written_tokens_are_parsed_back(qos in any_qos()) {
            prop_assert_eq!(Qos::of_token(&qos.token()), Some(qos));
        }

        #[test]
        fn no_text_panics(text in any::<String>(), likely in "[0-9:,]{0,40}") {
            _ = (Qos::of_token(&text), Qos::of_token(&likely), Qos::profile(&text));
        }
    }
}
