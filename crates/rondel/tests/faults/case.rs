//! The cases, and what the documents promise in each.

/// A kind of network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// The monitor is a peer, to which the others connect.
    ZenohPeer,
    /// All are clients of a router.
    ZenohClient,
    /// The monitor is the router of the others.
    ZenohRouter,
    /// One domain of DDS.
    Dds,
    /// A broker, quality of service 1.
    Mqtt1,
    /// A broker, quality of service 2.
    Mqtt2,
}

/// The participant that has the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Publisher,
    /// The router or broker.
    Hub,
    Monitor,
    /// One of two consumers of verdicts.
    Consumer,
}

/// Fault of the participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is stopped (SIGSTOP), later continued.
    Pause,
    /// It is killed (SIGKILL), later started again.
    Kill,
    /// None of its messages passes the network, later all do again.
    Partition,
}

/// The messages of the publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// 1,000 messages a second, with verdicts of 2 kB.
    Light,
    /// 20,000 messages a second, on MQTT 3,000, with verdicts of 80 bytes.
    Heavy,
}

impl Load {
    /// Messages per second. A broker takes fewer of them than the other networks.
    pub fn rate(self, network: Network) -> u64 {
        match self {
            Load::Light => 1_000,
            Load::Heavy if network.is_mqtt() => 3_000,
            Load::Heavy => 20_000,
        }
    }

    /// Bytes that make a message and its verdict longer.
    pub fn padding(self) -> usize {
        match self {
            Load::Light => 2_000,
            Load::Heavy => 1,
        }
    }
}

/// One case. Without seconds the fault lasts until the monitor has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub network: Network,
    pub part: Part,
    pub fault: Fault,
    pub seconds: Option<u64>,
    pub load: Load,
}

pub const NETWORKS: [(Network, &str); 6] = [
    (Network::ZenohPeer, "zenoh-peer"),
    (Network::ZenohClient, "zenoh-client"),
    (Network::ZenohRouter, "zenoh-router"),
    (Network::Dds, "dds"),
    (Network::Mqtt1, "mqtt-1"),
    (Network::Mqtt2, "mqtt-2"),
];
pub const PARTS: [(Part, &str); 4] = [
    (Part::Publisher, "publisher"),
    (Part::Hub, "hub"),
    (Part::Monitor, "monitor"),
    (Part::Consumer, "consumer"),
];
pub const FAULTS: [(Fault, &str); 3] =
    [(Fault::Pause, "pause"), (Fault::Kill, "kill"), (Fault::Partition, "partition")];
pub const SECONDS: [(Option<u64>, &str); 5] =
    [(Some(1), "1"), (Some(7), "7"), (Some(15), "15"), (Some(40), "40"), (None, "end")];
pub const LOADS: [(Load, &str); 2] = [(Load::Light, "light"), (Load::Heavy, "heavy")];

/// The name of a value in one of the tables above.
pub fn name<T: PartialEq>(table: &[(T, &'static str)], value: &T) -> &'static str {
    table.iter().find(|(other, _)| other == value).unwrap().1
}

impl Network {
    /// Whether all are connected with a process of its own, a router or a broker.
    pub fn has_hub(self) -> bool {
        matches!(self, Network::ZenohClient) || self.is_mqtt()
    }

    pub fn is_mqtt(self) -> bool {
        matches!(self, Network::Mqtt1 | Network::Mqtt2)
    }

    /// Time for which a sink waits for a consumer that accepts nothing, in seconds.
    pub fn wait(self) -> f64 {
        match self {
            // The limit of the router.
            Network::ZenohClient => 5.0,
            _ => 3.0,
        }
    }
}

/// Guarantee about messages that the monitor did not check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// There are none.
    All,
    /// Each is counted.
    Counted,
    /// They are counted, or a lost connection is reported.
    Noticed,
    /// The broker still keeps the last ones, for the next run.
    Kept,
    /// They may be missing without a report, for this reason.
    Unnoticed(&'static str),
}

impl Case {
    /// Whether there is such a case.
    fn exists(&self) -> bool {
        (self.part != Part::Hub || self.network.has_hub())
            // A process that is stopped or dead does not react to SIGTERM.
            && !(self.seconds.is_none() && self.part == Part::Monitor && self.fault != Fault::Partition)
    }

    /// Returns the guarantee about messages that the monitor did not check.
    pub fn promise(&self) -> Promise {
        use Fault::Kill;
        use Part::{Consumer, Hub, Monitor, Publisher};
        match (self.network, self.part, self.fault) {
            (_, Consumer, _) => Promise::All,
            // A publisher that ends takes with it what it has not published.
            (_, Publisher, Kill) => Promise::All,
            (network, Hub, Kill) if network.is_mqtt() => {
                Promise::Unnoticed("the broker keeps its queues in memory")
            }
            // The publisher gives up what the broker has not accepted for its wait of 10 s.
            (network, Publisher | Hub, _) if network.is_mqtt() => Promise::Counted,
            // With a long queue mosquitto delivers less and less at quality of service 2: tens of messages a second.
            (Network::Mqtt2, Monitor, _) => Promise::Kept,
            (network, ..) if network.is_mqtt() => Promise::All,
            (_, Monitor, Kill) => Promise::Unnoticed("no monitor was there"),
            (Network::Dds, ..) => Promise::Noticed,
            _ => Promise::Counted,
        }
    }

    /// Messages per second.
    pub fn rate(&self) -> u64 {
        self.load.rate(self.network)
    }

    /// Time limit from the end of the fault until monitoring goes on, in seconds.
    pub fn goes_on_within(&self) -> f64 {
        match (self.network, self.part, self.fault, self.seconds) {
            // The publisher waits for a reader that is dead until its lease of 10 s expires.
            (Network::Dds, Part::Monitor, Fault::Kill, Some(seconds @ ..10)) => 12.0 - seconds as f64,
            _ => 2.0,
        }
    }

    /// The case in words.
    pub fn title(&self) -> String {
        format!(
            "{} {} {} {} {}",
            name(&NETWORKS, &self.network),
            name(&PARTS, &self.part),
            name(&FAULTS, &self.fault),
            name(&SECONDS, &self.seconds),
            name(&LOADS, &self.load)
        )
    }
}

/// The cases that the environment selects, the longest first.
pub fn selected() -> Vec<Case> {
    let mut cases = Vec::new();
    for seconds in chosen(&SECONDS, "SECONDS").into_iter().rev() {
        for load in chosen(&LOADS, "LOAD") {
            for network in chosen(&NETWORKS, "NETWORK") {
                for part in chosen(&PARTS, "PARTICIPANT") {
                    for fault in chosen(&FAULTS, "FAULT") {
                        cases.push(Case { network, part, fault, seconds, load });
                    }
                }
            }
        }
    }
    cases.retain(Case::exists);
    cases
}

/// The values of a table that a variable names, all without it.
fn chosen<T: Copy>(table: &[(T, &'static str)], variable: &str) -> Vec<T> {
    let variable = format!("RONDEL_FAULTS_{variable}");
    let Ok(text) = std::env::var(&variable) else { return table.iter().map(|(value, _)| *value).collect() };
    let find = |name: &str| {
        table.iter().find(|(_, known)| *known == name).unwrap_or_else(|| {
            let known: Vec<_> = table.iter().map(|(_, name)| *name).collect();
            panic!("{variable}={text}: {name:?} is none of {}", known.join(", "))
        })
    };
    text.split(',').map(|name| find(name.trim()).0).collect()
}
