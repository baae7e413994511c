//! Names of topics in Sparkplug: `spBv1.0/GROUP/TYPE/NODE/DEVICE`.

use crate::lines::is_matched;

/// Characters of wildcards and parameters, which no name contains.
const WILDCARDS: [char; 4] = ['+', '#', '*', '{'];

/// The first level of names.
const NAMESPACE: &str = "spBv1.0";

/// The type of a message, by the third level of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// NBIRTH or DBIRTH: all metrics of a node or a device, with their names, aliases and data types.
    Birth,
    /// NDATA or DDATA: the metrics that have changed.
    Data,
    /// NDEATH or DDEATH: the metrics have no values any more.
    Death,
    /// NCMD or DCMD: values that somebody wants a node or a device to take over.
    Command,
}

/// The parts of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'n> {
    /// The type of its messages.
    pub kind: Kind,
    /// The group of the node.
    pub group: &'n str,
    /// The node.
    pub node: &'n str,
    /// The device, if the messages are about one.
    pub device: Option<&'n str>,
}

impl<'n> Address<'n> {
    /// Reads a name, which may have further levels before it; `None` if its messages hold no metrics, as those of
    /// `spBv1.0/STATE/HOST` do.
    pub fn parse(name: &'n str) -> Option<Address<'n>> {
        let mut levels = levels(name).skip(1);
        let (group, kind, node) = (levels.next()?, levels.next()?, levels.next()?);
        let (device, end) = (levels.next(), levels.next());
        let (of, kind) = kind.split_at_checked(1)?;
        let kind = match kind {
            "BIRTH" => Kind::Birth,
            "DATA" => Kind::Data,
            "DEATH" => Kind::Death,
            "CMD" => Kind::Command,
            _ => return None,
        };
        let fits = match of {
            "N" => device.is_none(),
            "D" => device.is_some() && end.is_none(),
            _ => false,
        };
        fits.then_some(Address { kind, group, node, device })
    }

    /// Whether an address in a specification or a deployment is one of commands.
    pub fn names_commands(address: &str) -> bool {
        matches!(levels(address).nth(2), Some("NCMD" | "DCMD"))
    }

    /// Whether an address matches messages of one node only, with or without its devices.
    pub fn names_node(address: &str) -> bool {
        let mut levels = levels(address).skip(1);
        let mut is_literal = |at| levels.nth(at).is_some_and(|level| !level.contains(WILDCARDS));
        is_literal(0) && is_literal(1)
    }

    /// The address of all messages of the node that a name is of, and of its devices.
    pub fn of_node(name: &str) -> Option<String> {
        let Address { group, node, .. } = Address::parse(name)?;
        let before = name.split_once(NAMESPACE)?.0;
        Some(format!("{before}{NAMESPACE}/{group}/+/{node}/#"))
    }

    /// Returns the messages of nodes that an address does not match although it matches metrics of these nodes.
    pub fn unmatched(address: &str) -> Unmatched {
        let sample = |at: usize| {
            let level = levels(address).nth(at).filter(|level| !level.contains(WILDCARDS));
            // No node and no device can have this name.
            level.unwrap_or("\u{1}")
        };
        let before = address.split_once(NAMESPACE).map_or("", |(before, _)| before);
        let matches = |kind: &str| {
            let of_node = format!("{before}{NAMESPACE}/{}/{kind}/{}", sample(1), sample(3));
            match kind.starts_with('N') {
                true => is_matched(address, &of_node) || address == of_node,
                false => {
                    let name = format!("{of_node}/{}", sample(4));
                    is_matched(address, &name) || address == name
                }
            }
        };
        let (of_node, of_device) = (matches("NDATA"), matches("DDATA"));
        let reads = of_node || of_device;
        Unmatched {
            births: of_node && !matches("NBIRTH") || of_device && !matches("DBIRTH"),
            deaths: reads && !matches("NDEATH") || of_device && !matches("DDEATH"),
            losses: reads && !["NBIRTH", "NDATA", "DBIRTH", "DDATA", "DDEATH"].into_iter().all(matches),
        }
    }

    /// The address of all messages of the nodes that an address matches some of, where `any` stands for one level and
    /// `rest` for all that follow; `None` if it has parameters.
    pub fn of_nodes(address: &str, any: &str, rest: &str) -> Option<String> {
        if address.contains('{') {
            return None;
        }
        let (before, _) = address.split_once(NAMESPACE)?;
        let level = |at| levels(address).nth(at).filter(|level| !["#", "**"].contains(level));
        let group = level(1).unwrap_or(any);
        Some(match level(3).filter(|node| !node.contains(WILDCARDS)) {
            Some(node) => format!("{before}{NAMESPACE}/{group}/{any}/{node}/{rest}"),
            None => format!("{before}{NAMESPACE}/{group}/{rest}"),
        })
    }
}

/// Messages of nodes that an address does not match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// Births, which name metrics.
    pub births: bool,
    /// Deaths, which make metrics unknown.
    pub deaths: bool,
    /// Some of those that share sequence numbers, so that losses do not show.
    pub losses: bool,
}

/// The levels of a name from the namespace on.
fn levels(name: &str) -> impl Iterator<Item = &str> {
    name.split('/').skip_while(|level| level.rsplit(':').next() != Some(NAMESPACE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_four_or_five_levels() {
        let node = |kind, node| Some(Address { kind, group: "plant", node, device: None });
        for (name, expected) in [
            ("spBv1.0/plant/NBIRTH/press", node(Kind::Birth, "press")),
            ("/spBv1.0/plant/NDATA/press", node(Kind::Data, "press")),
            ("mqtt+sparkplug_b:spBv1.0/plant/NDEATH/press", node(Kind::Death, "press")),
            ("site/spBv1.0/plant/NCMD/press", node(Kind::Command, "press")),
            (
                "spBv1.0/plant/DDATA/press/arm",
                Some(Address { kind: Kind::Data, group: "plant", node: "press", device: Some("arm") }),
            ),
            ("spBv1.0/plant/DDATA/press", None),
            ("spBv1.0/plant/NDATA/press/arm", None),
            ("spBv1.0/plant/DDATA/press/arm/x", None),
            ("spBv1.0/STATE/host", None),
            ("spBv1.0/plant/\u{e9}BIRTH/press", None),
            ("plant/press", None),
        ] {
            assert_eq!(Address::parse(name), expected, "{name}");
        }
        assert!(Address::names_commands("spBv1.0/+/NCMD/#"));
        assert!(!Address::names_commands("spBv1.0/+/+/press"));
        let of_one = [
            "spBv1.0/plant/+/press/#",
            "spBv1.0/plant/NDATA/press",
            "spBv1.0/plant/{message}/press/{device}",
        ];
        assert!(of_one.iter().all(|address| Address::names_node(address)));
        let of_several = [
            "spBv1.0/plant/+/+",
            "spBv1.0/+/+/press",
            "spBv1.0/plant/#",
            "plant/press",
            "spBv1.0/p/+/{node}",
        ];
        assert!(!of_several.iter().any(|address| Address::names_node(address)));
        let whole = Address::of_node("mqtt:spBv1.0/plant/DDATA/press/arm");
        assert_eq!(whole.as_deref(), Some("mqtt:spBv1.0/plant/+/press/#"));
    }

    #[test]
    fn addresses_miss_births_deaths_or_losses() {
        let found = |address: &str| {
            let Unmatched { births, deaths, losses } = Address::unmatched(address);
            let parts = [(births, "births"), (deaths, "deaths"), (losses, "losses")];
            parts
                .iter()
                .filter(|(is_missed, _)| *is_missed)
                .map(|(_, part)| *part)
                .collect::<Vec<_>>()
                .join(" ")
        };
        for (address, missed, wider) in [
            ("spBv1.0/plant/+/press/#", "", "spBv1.0/plant/+/press/#"),
            ("spBv1.0/plant/#", "", "spBv1.0/plant/#"),
            ("spBv1.0/#", "", "spBv1.0/+/#"),
            ("site/spBv1.0/plant/+/+/#", "", "site/spBv1.0/plant/#"),
            ("spBv1.0/plant/NDATA/press", "births deaths losses", "spBv1.0/plant/+/press/#"),
            ("spBv1.0/plant/DDATA/press/arm", "births deaths losses", "spBv1.0/plant/+/press/#"),
            ("spBv1.0/+/DDATA/#", "births deaths losses", "spBv1.0/+/#"),
            ("spBv1.0/plant/+/press/arm", "deaths losses", "spBv1.0/plant/+/press/#"),
            ("spBv1.0/plant/+/press/+", "deaths losses", "spBv1.0/plant/+/press/#"),
            ("spBv1.0/plant/+/+/+", "deaths losses", "spBv1.0/plant/#"),
            ("spBv1.0/plant/+/press", "losses", "spBv1.0/plant/+/press/#"),
            ("spBv1.0/plant/+/+", "losses", "spBv1.0/plant/#"),
            ("spBv1.0/plant/NCMD/press", "", "spBv1.0/plant/+/press/#"),
        ] {
            assert_eq!(found(address), missed, "{address}");
            assert_eq!(Address::of_nodes(address, "+", "#").as_deref(), Some(wider), "{address}");
        }
        assert_eq!(found("spBv1.0/plant/{message}/{node}"), "losses");
        assert_eq!(found("spBv1.0/plant/{message}/{node}/{device}"), "deaths losses");
        assert_eq!(Address::of_nodes("spBv1.0/plant/{message}/{node}", "+", "#"), None);
        assert_eq!(found("spBv1.0/*/*/press/**"), "");
        assert_eq!(found("plant/press"), "");
    }
}
