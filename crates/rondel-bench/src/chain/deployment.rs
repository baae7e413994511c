//! The monitor of the chains: its specification and its deployment.

use super::{STAGES, WITHIN_NS, message};
use crate::place::Place;

/// Returns the specification of a number of chains.
pub fn specification(chains: usize) -> String {
    let mut text = String::new();
    for chain in 1..=chains {
        for (_, topic) in STAGES {
            let of = message::TYPE;
            text += &format!("topic {topic}{chain} \"/chain{chain}/{topic}\" : {of}\n");
        }
        let topics = STAGES.map(|(_, topic)| format!("{topic}{chain}")).join(" -> ");
        let (within, longer) = (WITHIN_NS / 1_000_000, 2 * WITHIN_NS / 1_000_000);
        text += &format!(
            "chain drive{chain} = {topics} by header.stamp within {within} ms age <= {longer} ms reaction <= {longer} ms\n"
        );
    }
    text
}

/// Returns the deployment of the monitor.
pub fn deployment(place: &Place, chains: usize) -> String {
    let mut text = match place {
        Place::Dds(domain, interface) => format!(
            "specification: chain.rondel\nros2: {{ middleware: dds, domain: {domain} }}\n\
             dds: {{ domain: {domain}, interface: {interface} }}\ntopics:\n"
        ),
        Place::Zenoh(endpoint) | Place::ZenohRouter(endpoint) => format!(
            "specification: chain.rondel\nros2: {{ middleware: zenoh, domain: 0 }}\nzenoh: {{ connect: {endpoint} }}\n\
             topics:\n"
        ),
    };
    for chain in 1..=chains {
        for (_, topic) in STAGES {
            text += &format!("  {topic}{chain}: ros2:/chain{chain}/{topic}\n");
        }
    }
    text + "verdicts: { to: stdout }\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specification_has_every_chain() {
        let text = specification(2);
        assert!(
            text.contains("topic control2 \"/chain2/control\" : geometry_msgs/msg/PointStamped\n"),
            "{text}"
        );
        let chain =
            "chain drive1 = scan1 -> filtered1 -> objects1 -> trajectory1 -> control1 by header.stamp";
        assert!(text.contains(chain), "{text}");
        let text = deployment(&Place::Dds(7, "lo".to_owned()), 2);
        assert!(
            text.contains("domain: 7, interface: lo") && text.contains("  scan2: ros2:/chain2/scan\n"),
            "{text}"
        );
    }
}
