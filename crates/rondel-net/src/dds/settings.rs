//! Settings of participants and publishers, and the type of topics.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Protection, Security};
use crate::adapter::Listener;
use crate::ros2::NodeName;

/// Settings of a participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Domain id, 0 to 230.
    pub domain: u32,
    /// Network interface, by name (`lo`) or address; default: the choice of CycloneDDS.
    pub interface: Option<String>,
    /// Hosts of other participants, as an address or a name, with `:PORT` unless it is the standard
    /// one. If there are any, multicast is off.
    pub peers: Vec<String>,
    /// Number of samples that a reader's cache can hold. When it is full, publishers are blocked. CycloneDDS retries a
    /// full cache after 10 ms, so a queue that empties faster costs throughput.
    pub reader_queue: u32,
    /// Maximum time for which publishing waits for a subscriber that does not acknowledge samples, before samples are
    /// dropped. Default: without limit, until the subscriber's lease of 10 s has expired.
    pub slow_consumer: Option<Duration>,
    /// Maximum silence of the participant before others take it for gone, and drop the samples that it has not
    /// acknowledged. Default: CycloneDDS's 10 s.
    pub lease: Option<Duration>,
    /// Number of samples that each publisher keeps for subscribers taken for gone. Default: 0.
    pub history: u32,
    /// Node of the subscriptions on topics of ROS 2 in its graph; publishers have another one, whose name ends with
    /// `_sinks`. Default: none.
    pub node: Option<NodeName>,
    /// DDS Security: authentication of participants, and encryption. A process has one such participant in a domain.
    /// Default: none, without encryption and authentication.
    pub security: Option<Box<Security>>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            domain: 0,
            interface: None,
            peers: Vec::new(),
            reader_queue: 65_536,
            slow_consumer: None,
            lease: None,
            history: 0,
            node: None,
            security: None,
        }
    }
}

/// Type of a topic: a structure with one member, an unbounded string.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StringType {
    /// Name with its modules: `std_msgs::msg::dds_::String_`.
    pub name: String,
    /// Name of the member.
    pub member: String,
    /// Extensibility of the structure. A publisher and a subscription match only if theirs is equal.
    pub extensibility: Extensibility,
}

/// Extensibility of a type in DDS-XTypes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Extensibility {
    /// No members can be added: the default of CycloneDDS and ROS 2.
    #[default]
    Final,
    /// Members can be added at the end: the default of several other DDS products.
    Appendable,
}

/// The type `std_msgs/String` of ROS 2.
impl Default for StringType {
    fn default() -> Self {
        StringType {
            name: "std_msgs::msg::dds_::String_".to_owned(),
            member: "data".to_owned(),
            extensibility: Extensibility::default(),
        }
    }
}

/// Settings of a publisher. Publishers are always reliable, keep every sample until it is acknowledged,
/// and block, for a limited time if [`Settings::slow_consumer`] is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublisherSettings {
    /// Whether samples are buffered until they fill a packet or are
    /// [released](crate::adapter::Publisher::release), which multiplies the throughput of small samples.
    pub batching: bool,
}

impl Settings {
    /// Returns the endpoints on which a participant listens. CycloneDDS receives on all interfaces, whichever interface
    /// it announces and joins multicast groups on.
    pub(super) fn listeners(&self, protection: Protection) -> Vec<Listener> {
        let multicast = if self.peers.is_empty() { " and multicast" } else { "" };
        let announced = match &self.interface {
            Some(interface) => format!(", announced on {interface} only"),
            None => String::new(),
        };
        let place =
            format!("dds domain {} on UDP ports of all interfaces{multicast}{announced}", self.domain);
        let Protection { encrypted, authenticated, .. } = protection;
        vec![Listener { place, encrypted, authenticated }]
    }

    /// Returns the settings as CycloneDDS's own configuration.
    pub(super) fn xml(&self) -> String {
        let mut general = String::new();
        if let Some(interface) = &self.interface {
            // A name begins with a letter; an address does not, except IPv6, which has colons.
            let by_name =
                interface.starts_with(|c: char| c.is_ascii_alphabetic()) && !interface.contains(':');
            let attribute = if by_name { "name" } else { "address" };
            _ = write!(
                general,
                "<Interfaces><NetworkInterface {attribute}=\"{}\"/></Interfaces>",
                escape(interface)
            );
        }
        // The id of the domain on the network; the one inside the library is unique (see `Domain::open`).
        let mut discovery = format!("<ExternalDomainId>{}</ExternalDomainId>", self.domain);
        // By default every 8 s: participants separated for longer than their lease would rediscover each other only
        // then.
        discovery.push_str("<SPDPInterval>1 s</SPDPInterval>");
        if !self.peers.is_empty() {
            general.push_str("<AllowMulticast>false</AllowMulticast>");
            // Without multicast, other participants find this one on a well-known port only.
            discovery.push_str("<ParticipantIndex>auto</ParticipantIndex><Peers>");
            for peer in &self.peers {
                _ = write!(discovery, "<Peer Address=\"{}\"/>", escape(peer));
            }
            discovery.push_str("</Peers>");
        }
        if let Some(lease) = self.lease {
            _ = write!(discovery, "<LeaseDuration>{} ms</LeaseDuration>", lease.as_millis());
        }
        // Read by `Refusals`; nothing is written to standard error, as the library has another place for it.
        let tracing = match self.security {
            Some(_) => "<Tracing><Category>discovery</Category><OutputFile>stderr</OutputFile></Tracing>",
            None => "",
        };
        // With security one domain receives and publishes (see `Domain::open`). Its publishers wait for
        // acknowledgements only above this number of unacknowledged bytes, as they may have to wait for a subscription
        // whose cache is full.
        let patient = match self.security {
            Some(_) => {
                "<Watermarks><WhcAdaptive>false</WhcAdaptive><WhcLow>1 MB</WhcLow><WhcHigh>16 MB</WhcHigh>\
                 <WhcHighInit>16 MB</WhcHighInit></Watermarks>"
            }
            None => "",
        };
        // By default a reader gets 200 samples every 100 ms when it requests samples again.
        let again = "<NackDelay>10 ms</NackDelay><MaxQueuedRexmitMessages>4000</MaxQueuedRexmitMessages>\
                     <MaxQueuedRexmitBytes>8 MB</MaxQueuedRexmitBytes>";
        // By default a publisher requests acknowledgements 100 ms after its last sample, which a publisher that leaves
        // waits for: so long the topic would be without an owner. At full speed packets ask for them as before.
        let acknowledged =
            "<HeartbeatInterval min=\"5 ms\" minsched=\"10 ms\" max=\"200 ms\">10 ms</HeartbeatInterval>";
        format!(
            "<CycloneDDS><Domain Id=\"any\"><General>{general}</General><Discovery>{discovery}</Discovery>\
             <Internal>{again}{acknowledged}{patient}</Internal>{tracing}</Domain></CycloneDDS>"
        )
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_xml() {
        let settings = Settings {
            domain: 7,
            interface: Some("eth\"0".into()),
            peers: vec!["192.0.2.1".into(), "a&b".into()],
            ..Settings::default()
        };
        let xml = settings.xml();
        let expected = "<CycloneDDS><Domain Id=\"any\"><General><Interfaces><NetworkInterface name=\"eth&quot;0\"/>\
             </Interfaces><AllowMulticast>false</AllowMulticast></General><Discovery><ExternalDomainId>7\
             </ExternalDomainId><SPDPInterval>1 s</SPDPInterval><ParticipantIndex>auto</ParticipantIndex><Peers><Peer Address=\"192.0.2.1\"/>\
             <Peer Address=\"a&amp;b\"/></Peers></Discovery><Internal>";
        assert!(xml.starts_with(expected) && xml.ends_with("</Internal></Domain></CycloneDDS>"), "{xml}");
        let patient = Settings { lease: Some(Duration::from_secs(30)), ..Settings::default() };
        assert!(patient.xml().contains("<LeaseDuration>30000 ms</LeaseDuration></Discovery>"));
        let by_address = Settings { interface: Some("127.0.0.1".into()), ..Settings::default() };
        assert!(by_address.xml().contains("NetworkInterface address=\"127.0.0.1\""));
        assert!(!by_address.xml().contains("AllowMulticast"));
    }
}
