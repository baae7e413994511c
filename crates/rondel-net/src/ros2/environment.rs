//! Settings of ROS 2 from environment variables.

use super::{NodeName, Ros2Error, named};

/// Names of the variables.
pub const VARIABLES: [&str; 5] = [
    "RMW_IMPLEMENTATION",
    "ROS_DOMAIN_ID",
    "ROS_LOCALHOST_ONLY",
    "ROS_AUTOMATIC_DISCOVERY_RANGE",
    "ROS_STATIC_PEERS",
];

/// The largest domain of ROS 2.
const LAST_DOMAIN: u32 = 232;
/// Length limit of a peer.
const LONGEST_PEER: usize = 255;
/// Address of the router of rmw_zenoh.
#[cfg(feature = "zenoh")]
const ROUTER: &str = "tcp/localhost:7447";

/// Transport of the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Middleware {
    /// DDS, the default of ROS 2.
    #[default]
    Dds,
    /// Zenoh, in the formats of rmw_zenoh.
    Zenoh,
}

impl Middleware {
    /// Parses `dds` or `zenoh`, or the name of an implementation as in `RMW_IMPLEMENTATION`.
    ///
    /// # Errors
    /// [`Ros2Error`] with the valid names.
    pub fn parse(text: &str) -> Result<Middleware, Ros2Error> {
        let short = [("dds", Middleware::Dds), ("zenoh", Middleware::Zenoh)];
        named(text, "a middleware", &[&short[..], &IMPLEMENTATIONS].concat())
    }
}

impl std::fmt::Display for Middleware {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Middleware::Dds => "dds",
            Middleware::Zenoh => "zenoh",
        })
    }
}

/// Scope of the discovery by participants of DDS. On Zenoh it depends on the configuration of the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DiscoveryRange {
    /// Participants reached by multicast, and the static peers.
    #[default]
    Subnet,
    /// Participants on this machine, and the static peers.
    Localhost,
    /// No participants.
    Off,
    /// The default of the middleware.
    SystemDefault,
}

/// Settings to join ROS 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Transport of the messages.
    pub middleware: Middleware,
    /// The domain: 0 to 232.
    pub domain: u32,
    /// Scope of the discovery.
    pub range: DiscoveryRange,
    /// Additional hosts to look for.
    pub static_peers: Vec<String>,
    /// Node of Rondel in the graph.
    pub node: NodeName,
}

impl Settings {
    /// Returns the settings of this middleware and domain, with the defaults of ROS 2 and the node `/rondel`.
    ///
    /// # Errors
    /// [`Ros2Error`] for a domain that does not exist.
    pub fn new(middleware: Middleware, domain: u32) -> Result<Settings, Ros2Error> {
        if domain > LAST_DOMAIN {
            return Err(wrong_domain(&domain.to_string()));
        }
        let (range, static_peers) = (DiscoveryRange::default(), Vec::new());
        Ok(Settings { middleware, domain, range, static_peers, node: NodeName::new("/", "rondel")? })
    }

    /// Reads the [variables](VARIABLES) of an environment like ROS 2. `variable` returns the value of one, such as
    /// `|name| std::env::var(name).ok()`; an empty one counts as unset.
    ///
    /// # Errors
    /// [`Ros2Error`] with the variable.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Settings, Ros2Error> {
        let variable = |name: &str| {
            let value = variable(name).map(|value| value.trim().to_owned());
            value.filter(|value| !value.is_empty())
        };
        let middleware = variable("RMW_IMPLEMENTATION").map(|name| implementation(&name)).transpose()?;
        let domain = variable("ROS_DOMAIN_ID").map(|text| domain(&text)).transpose()?;
        let mut settings = Settings::new(middleware.unwrap_or_default(), domain.unwrap_or(0))?;
        let localhost_only = variable("ROS_LOCALHOST_ONLY")
            .map(|text| named(&text, "a value of ROS_LOCALHOST_ONLY", &[("0", false), ("1", true)]));
        // As in ROS 2, the older variable turns off the newer ones.
        if localhost_only.transpose()?.unwrap_or(false) {
            settings.range = DiscoveryRange::Localhost;
            return Ok(settings);
        }
        if let Some(text) = variable("ROS_AUTOMATIC_DISCOVERY_RANGE") {
            let ranges = [
                ("SUBNET", DiscoveryRange::Subnet),
                ("LOCALHOST", DiscoveryRange::Localhost),
                ("OFF", DiscoveryRange::Off),
                ("SYSTEM_DEFAULT", DiscoveryRange::SystemDefault),
            ];
            settings.range = named(&text, "a value of ROS_AUTOMATIC_DISCOVERY_RANGE", &ranges)?;
        }
        let peers = variable("ROS_STATIC_PEERS").unwrap_or_default();
        for peer in peers.split(';').map(str::trim).filter(|peer| !peer.is_empty()) {
            settings.static_peers.push(checked_peer(peer)?);
        }
        Ok(settings)
    }

    /// Returns the settings to join DDS.
    ///
    /// # Errors
    /// [`Ros2Error`] if the range is [`DiscoveryRange::Off`], since no publisher would be found.
    #[cfg(feature = "dds")]
    pub fn dds(&self) -> Result<crate::dds::Settings, Ros2Error> {
        let mut settings = crate::dds::Settings { domain: self.domain, ..crate::dds::Settings::default() };
        match self.range {
            DiscoveryRange::Off => {
                let reason = "no publisher would be found; use LOCALHOST or SUBNET";
                let expected = "a discovery range that a monitor can use";
                return Err(Ros2Error::new("OFF", expected, reason));
            }
            DiscoveryRange::Localhost => {
                settings.interface = self.static_peers.is_empty().then(|| "lo".to_owned());
                // Others do not send by multicast then, so they must be listed as peers.
                settings.peers.push("127.0.0.1".to_owned());
                settings.peers.extend_from_slice(&self.static_peers);
            }
            DiscoveryRange::Subnet => settings.peers.extend_from_slice(&self.static_peers),
            DiscoveryRange::SystemDefault => {}
        }
        Ok(settings)
    }

    /// Returns the settings to join Zenoh: like rmw_zenoh, as a peer connected to the router on this machine.
    #[cfg(feature = "zenoh")]
    pub fn zenoh(&self) -> crate::zenoh::Settings {
        crate::zenoh::Settings {
            mode: Some(crate::zenoh::Mode::Peer),
            connect: vec![ROUTER.to_owned()],
            listen: vec!["tcp/localhost:0".to_owned()],
            ..crate::zenoh::Settings::default()
        }
    }
}

/// The implementations of ROS 2's middleware.
const IMPLEMENTATIONS: [(&str, Middleware); 6] = [
    ("rmw_fastrtps_cpp", Middleware::Dds),
    ("rmw_fastrtps_dynamic_cpp", Middleware::Dds),
    ("rmw_cyclonedds_cpp", Middleware::Dds),
    ("rmw_connextdds", Middleware::Dds),
    ("rmw_gurumdds_cpp", Middleware::Dds),
    ("rmw_zenoh_cpp", Middleware::Zenoh),
];

fn implementation(name: &str) -> Result<Middleware, Ros2Error> {
    named(name, "a value of RMW_IMPLEMENTATION", &IMPLEMENTATIONS)
}

/// Returns the domain in the environment, `ROS_DOMAIN_ID`; 0 if it is not set. DDS joins it, too, unless its settings
/// name another one.
///
/// # Errors
/// [`Ros2Error`] if the value is no domain.
pub fn domain_of(variable: impl Fn(&str) -> Option<String>) -> Result<u32, Ros2Error> {
    let text = variable("ROS_DOMAIN_ID").unwrap_or_default();
    match text.trim() {
        "" => Ok(0),
        text => domain(text),
    }
}

fn domain(text: &str) -> Result<u32, Ros2Error> {
    text.parse().ok().filter(|domain| *domain <= LAST_DOMAIN).ok_or_else(|| wrong_domain(text))
}

fn wrong_domain(text: &str) -> Ros2Error {
    Ros2Error::new(text, "a domain of ROS 2", format!("a domain is a number from 0 to {LAST_DOMAIN}"))
}

fn checked_peer(peer: &str) -> Result<String, Ros2Error> {
    let wrong = |reason: &str| Err(Ros2Error::new(peer, "a host in ROS_STATIC_PEERS", reason));
    if peer.len() > LONGEST_PEER {
        return wrong("it is longer than 255 bytes");
    }
    match peer.contains(|c: char| c.is_whitespace() || matches!(c, ',' | '"' | '<' | '>')) {
        true => wrong("hosts are separated by ;"),
        false => Ok(peer.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<Settings, Ros2Error> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Settings::from_environment(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn an_empty_environment_means_the_defaults() {
        let expected = Settings::new(Middleware::Dds, 0).unwrap();
        assert_eq!(settings(&[]).unwrap(), expected);
        assert_eq!(settings(&VARIABLES.map(|name| (name, " "))).unwrap(), expected);
        assert_eq!(expected.node.to_string(), "/rondel");
    }

    #[test]
    fn variables_are_read_as_ros_does() {
        let all = settings(&[
            ("RMW_IMPLEMENTATION", "rmw_zenoh_cpp"),
            ("ROS_DOMAIN_ID", "42"),
            ("ROS_LOCALHOST_ONLY", "0"),
            ("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST"),
            ("ROS_STATIC_PEERS", "192.0.2.1; robot.local;"),
        ])
        .unwrap();
        assert_eq!((all.middleware, all.domain), (Middleware::Zenoh, 42));
        assert_eq!(
            (all.range, &all.static_peers[..]),
            (DiscoveryRange::Localhost, &["192.0.2.1".to_owned(), "robot.local".to_owned()][..])
        );
        for name in ["rmw_fastrtps_cpp", "rmw_cyclonedds_cpp", "rmw_connextdds"] {
            assert_eq!(settings(&[("RMW_IMPLEMENTATION", name)]).unwrap().middleware, Middleware::Dds);
        }
        // The older variable turns off the newer ones.
        let older = [
            ("ROS_LOCALHOST_ONLY", "1"),
            ("ROS_AUTOMATIC_DISCOVERY_RANGE", "OFF"),
            ("ROS_STATIC_PEERS", "a"),
        ];
        let older = settings(&older).unwrap();
        assert_eq!((older.range, older.static_peers.len()), (DiscoveryRange::Localhost, 0));
    }

    #[test]
    fn mistakes_name_the_variable() {
        for (name, value, expected) in [
            (
                "RMW_IMPLEMENTATION",
                "rmw_zenoh",
                "'rmw_zenoh' is not a value of RMW_IMPLEMENTATION: the names are: rmw_fastrtps_cpp, rmw_fastrtps_dynamic_cpp, rmw_cyclonedds_cpp, rmw_connextdds, rmw_gurumdds_cpp, rmw_zenoh_cpp; did you mean 'rmw_zenoh_cpp'?",
            ),
            ("ROS_DOMAIN_ID", "233", "'233' is not a domain of ROS 2: a domain is a number from 0 to 232"),
            ("ROS_DOMAIN_ID", "-1", "'-1' is not a domain of ROS 2: a domain is a number from 0 to 232"),
            ("ROS_LOCALHOST_ONLY", "yes", "'yes' is not a value of ROS_LOCALHOST_ONLY: the names are: 0, 1"),
            (
                "ROS_AUTOMATIC_DISCOVERY_RANGE",
                "local",
                "'local' is not a value of ROS_AUTOMATIC_DISCOVERY_RANGE: the names are: SUBNET, LOCALHOST, OFF, SYSTEM_DEFAULT; did you mean 'LOCALHOST'?",
            ),
            (
                "ROS_STATIC_PEERS",
                "a, b",
                "'a, b' is not a host in ROS_STATIC_PEERS: hosts are separated by ;",
            ),
        ] {
            assert_eq!(settings(&[(name, value)]).unwrap_err().to_string(), expected);
        }
        assert!(Settings::new(Middleware::Zenoh, 233).is_err());
        assert_eq!(Middleware::parse("DDS").unwrap_err().suggestion.as_deref(), Some("dds"));
    }

    #[cfg(feature = "dds")]
    #[test]
    fn ranges_become_settings_of_dds() {
        let of = |range: &str, peers: &str| {
            let variables = [
                ("ROS_DOMAIN_ID", "7"),
                ("ROS_AUTOMATIC_DISCOVERY_RANGE", range),
                ("ROS_STATIC_PEERS", peers),
            ];
            let settings = settings(&variables).unwrap().dds();
            settings.map(|settings| (settings.domain, settings.interface, settings.peers))
        };
        assert_eq!(of("SUBNET", "").unwrap(), (7, None, vec![]));
        assert_eq!(of("SUBNET", "a;b").unwrap(), (7, None, vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(of("LOCALHOST", "").unwrap(), (7, Some("lo".to_owned()), vec!["127.0.0.1".to_owned()]));
        assert_eq!(of("LOCALHOST", "a").unwrap(), (7, None, vec!["127.0.0.1".to_owned(), "a".to_owned()]));
        assert_eq!(of("SYSTEM_DEFAULT", "a").unwrap(), (7, None, vec![]));
        assert!(of("OFF", "").unwrap_err().to_string().contains("no publisher would be found"));
    }

    #[cfg(feature = "zenoh")]
    #[test]
    fn zenoh_is_joined_through_the_local_router() {
        let settings = Settings::new(Middleware::Zenoh, 0).unwrap().zenoh();
        assert_eq!(settings.connect, ["tcp/localhost:7447"]);
        settings.check().unwrap();
    }
}
