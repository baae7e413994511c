use std::fmt::Write as _;

/// How to join a DDS domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The domain's number, 0 to 230.
    pub domain: u32,
    /// The network interface to use, by name (`lo`) or address; CycloneDDS's choice when `None`.
    pub interface: Option<String>,
    /// Addresses of other participants' hosts, as `192.0.2.1` or a name, with `:PORT` where it is not
    /// the usual one. When there are any, nothing is sent by multicast.
    pub peers: Vec<String>,
    /// How many samples a reader keeps that have not been handed over yet. When it is full, senders
    /// are held back. Under back-pressure a cache that is emptied in less than 10 ms costs throughput:
    /// that is how long CycloneDDS waits before it looks again.
    pub reader_queue: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { domain: 0, interface: None, peers: Vec::new(), reader_queue: 65_536 }
    }
}

/// The type of a topic: a structure with one member, an unbounded string.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StringType {
    /// The name, with its modules: `std_msgs::msg::dds_::String_`.
    pub name: String,
    /// The member's name.
    pub member: String,
    /// Whether it may get further members some day. Two sides match only when they agree.
    pub extensibility: Extensibility,
}

/// Whether a type may be extended; see DDS-XTypes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Extensibility {
    /// It may not: what CycloneDDS and ROS 2 make of a type without annotation.
    #[default]
    Final,
    /// Members may be added at the end: what several other products make of one.
    Appendable,
}

/// `std_msgs/String` of ROS 2.
impl Default for StringType {
    fn default() -> Self {
        StringType {
            name: "std_msgs::msg::dds_::String_".to_owned(),
            member: "data".to_owned(),
            extensibility: Extensibility::default(),
        }
    }
}

/// How a publisher sends. It is always reliable, keeps everything until it is acknowledged, and
/// blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublisherSettings {
    /// Holds samples back until they fill a packet or are released
    /// ([`release`](crate::adapter::Publisher::release)): several times the throughput for small
    /// samples. Whoever sets it must release.
    pub batching: bool,
}

impl Settings {
    /// As CycloneDDS's own configuration.
    pub(super) fn xml(&self) -> String {
        let mut general = String::new();
        if let Some(interface) = &self.interface {
            // A name starts with a letter, an address never does unless it is IPv6, with its colons.
            let by_name =
                interface.starts_with(|c: char| c.is_ascii_alphabetic()) && !interface.contains(':');
            let attribute = if by_name { "name" } else { "address" };
            _ = write!(
                general,
                "<Interfaces><NetworkInterface {attribute}=\"{}\"/></Interfaces>",
                escape(interface)
            );
        }
        // The domain's number in the library is our own; this is the one on the network.
        let mut discovery = format!("<ExternalDomainId>{}</ExternalDomainId>", self.domain);
        if !self.peers.is_empty() {
            general.push_str("<AllowMulticast>false</AllowMulticast>");
            // Without multicast a participant can only be found on one of the well-known ports.
            discovery.push_str("<ParticipantIndex>auto</ParticipantIndex><Peers>");
            for peer in &self.peers {
                _ = write!(discovery, "<Peer Address=\"{}\"/>", escape(peer));
            }
            discovery.push_str("</Peers>");
        }
        format!(
            "<CycloneDDS><Domain Id=\"any\"><General>{general}</General><Discovery>{discovery}</Discovery>\
             </Domain></CycloneDDS>"
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
        assert_eq!(
            settings.xml(),
            "<CycloneDDS><Domain Id=\"any\"><General><Interfaces><NetworkInterface name=\"eth&quot;0\"/>\
             </Interfaces><AllowMulticast>false</AllowMulticast></General><Discovery><ExternalDomainId>7\
             </ExternalDomainId><ParticipantIndex>auto</ParticipantIndex><Peers><Peer Address=\"192.0.2.1\"/>\
             <Peer Address=\"a&amp;b\"/></Peers></Discovery></Domain></CycloneDDS>"
        );
        let by_address = Settings { interface: Some("127.0.0.1".into()), ..Settings::default() };
        assert!(by_address.xml().contains("NetworkInterface address=\"127.0.0.1\""));
        assert!(!by_address.xml().contains("AllowMulticast"));
    }
}
