//! A small network: a publisher, a router or broker, a monitor, and two consumers of its verdicts.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::case::{Case, Fault, Load, Network, Part};
use crate::feed::Feed;
use crate::participant::Participant;
use crate::relay::Relay;
use crate::support::network::{dds_domain, python};
use crate::support::{Folder, RONDEL};
use crate::wire::Switch;

/// A property with a verdict for every message. The parameter makes the verdicts long.
const SPECIFICATION: &str = "topic state { id: string, n: int, v: bool }\n\
                             property p for each id in (state.id) = state.v\n";

/// The participants, in the order in which they are attached to a [`Switch`].
const PUBLISHER: usize = 0;
const MONITOR: usize = 1;
const CONSUMER: usize = 2;
const HEALTHY: usize = 3;

/// The processes of a case, and what connects them.
pub struct Rig {
    pub publisher: Participant,
    pub hub: Option<Participant>,
    pub monitor: Participant,
    /// The consumer that may have the fault: `rondel tap`.
    pub consumer: Participant,
    /// The other consumer: with the light load a program that is not ours.
    pub healthy: Participant,
    links: Links,
    /// Removed when the processes have ended.
    folder: Folder,
}

/// Connections of the participants.
enum Links {
    /// Connections that nothing can cut.
    Direct,
    /// A relay for each participant; none for the one to which all others connect.
    Relays([Option<Relay>; 4]),
    Switch(Switch),
}

impl Rig {
    /// The network of a case; nothing, with a message, if it cannot be built on this machine.
    pub fn new(case: &Case) -> Option<Rig> {
        let python = if case.load == Load::Light && !case.network.is_mqtt() {
            Some(python(&case.title())?)
        } else {
            None
        };
        let python = python.as_deref();
        let folder = Folder::new();
        match case.network {
            Network::Dds => dds(case, folder, python),
            _ => Some(tcp(case, folder, python)),
        }
    }

    /// Starts all participants.
    pub fn start(&mut self, feed: &Feed) {
        if let Some(hub) = &mut self.hub {
            hub.start_until(if hub.is("broker") { "running" } else { "ready" });
        }
        self.monitor.start_until("ready");
        self.consumer.start_until("ready");
        self.healthy.start();
        self.publisher.start();
        feed.connect(self.publisher.take_input());
    }

    /// Copies what all processes have printed.
    pub fn keep(&self, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(self.folder.as_path()).unwrap().map(Result::unwrap) {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }

    /// The participant that has the fault.
    pub fn part(&mut self, part: Part) -> &mut Participant {
        match part {
            Part::Publisher => &mut self.publisher,
            Part::Hub => self.hub.as_mut().expect("cases with a hub have one"),
            Part::Monitor => &mut self.monitor,
            Part::Consumer => &mut self.consumer,
        }
    }

    /// Cuts a participant off, or connects it again.
    pub fn cut(&self, part: Part, cut: bool) {
        let index = match part {
            Part::Publisher => PUBLISHER,
            Part::Monitor => MONITOR,
            Part::Consumer => CONSUMER,
            Part::Hub => usize::MAX,
        };
        match &self.links {
            Links::Direct => unreachable!("only a partition cuts"),
            Links::Switch(switch) => switch.cut(index, cut),
            Links::Relays(relays) => match relays.get(index).and_then(Option::as_ref) {
                Some(relay) => relay.cut(cut),
                // All others are connected with this one.
                None => relays.iter().flatten().for_each(|relay| relay.cut(cut)),
            },
        }
    }
}

/// The program under test.
pub fn program() -> OsString {
    std::env::var_os("RONDEL_FAULTS_PROGRAM").unwrap_or_else(|| RONDEL.into())
}

/// A network over TCP: all connect to the monitor, the router or the broker.
fn tcp(case: &Case, folder: Folder, python: Option<&Path>) -> Rig {
    let port = crate::support::network::free_port();
    let hub_listens = case.network.has_hub();
    let relays = (case.fault == Fault::Partition).then(|| {
        [PUBLISHER, MONITOR, CONSUMER, HEALTHY]
            .map(|i| (i != MONITOR || hub_listens).then(|| Relay::to(port)))
    });
    let port_of = |index: usize| {
        relays.as_ref().and_then(|relays| relays[index].as_ref()).map_or(port, |relay| relay.port)
    };
    let (scheme, qos) = match case.network {
        Network::Mqtt1 => ("mqtt", "1"),
        Network::Mqtt2 => ("mqtt", "2"),
        _ => ("zenoh", ""),
    };
    let mode = if case.network == Network::ZenohPeer { "peer" } else { "client" };
    let options = |index: usize| -> Vec<String> {
        let address = format!("127.0.0.1:{}", port_of(index));
        let options = if case.network.is_mqtt() {
            ["--mqtt-broker", &address, "--mqtt-qos", qos].map(str::to_owned)
        } else {
            ["--zenoh-mode", mode, "--zenoh-connect", &format!("tcp/{address}")].map(str::to_owned)
        };
        options.into()
    };
    let monitor = match case.network {
        Network::ZenohPeer => format!("zenoh: {{ mode: peer, listen: tcp/127.0.0.1:{port} }}"),
        Network::ZenohRouter => format!("zenoh: {{ mode: router, listen: tcp/127.0.0.1:{port} }}"),
        Network::ZenohClient => {
            format!("zenoh: {{ mode: client, connect: tcp/127.0.0.1:{} }}", port_of(MONITOR))
        }
        _ => format!(
            "mqtt: {{ broker: 127.0.0.1:{}, qos: {qos}, client_id: monitor, clean_start: false }}",
            port_of(MONITOR)
        ),
    };
    let hub = match case.network {
        Network::ZenohClient => {
            let mut router = Command::new(program());
            let listen = format!("tcp/127.0.0.1:{port}");
            router.args(["run", "-f", "v", "--topic", "zenoh:never/published"]);
            router.args(["--zenoh-mode", "router", "--zenoh-listen", &listen]);
            Some(Participant::new("router", folder.as_path(), router))
        }
        network if network.is_mqtt() => {
            // The broker drops no messages.
            let settings = "persistence false\nmax_queued_messages 0\nuser root\nallow_anonymous true\n";
            let file = folder.file("broker.conf", format!("{settings}listener {port} 127.0.0.1\n"));
            let mut broker = Command::new("mosquitto");
            let path = std::env::var("PATH").unwrap_or_default();
            broker.env("PATH", format!("{path}:/usr/sbin")).args(["-c", &file]);
            Some(Participant::new("broker", folder.as_path(), broker))
        }
        _ => None,
    };
    let healthy = if case.network.is_mqtt() {
        let mut command = Command::new("mosquitto_sub");
        command.args(["-h", "127.0.0.1", "-p", &port_of(HEALTHY).to_string(), "-q", qos]);
        command.args(["-t", "verdict", "-F", "%U %p"]);
        command
    } else if let Some(python) = python {
        let endpoint = format!("tcp/127.0.0.1:{}", port_of(HEALTHY));
        let own = ["verdict", "--mode", mode, "--connect", &endpoint];
        independent(Command::new(python), "zenoh_subscribe.py", &own)
    } else {
        tap(Command::new(program()), scheme, &options(HEALTHY))
    };
    Rig {
        publisher: publisher(&folder, Command::new(program()), scheme, case, &options(PUBLISHER)),
        hub,
        monitor: monitor_of(&folder, Command::new(program()), scheme, &monitor),
        consumer: Participant::new(
            "consumer",
            folder.as_path(),
            tap(Command::new(program()), scheme, &options(CONSUMER)),
        ),
        healthy: Participant::new("healthy", folder.as_path(), healthy),
        links: relays.map_or(Links::Direct, Links::Relays),
        folder,
    }
}

/// A domain of DDS: on loopback, or for a partition on hosts of their own.
fn dds(case: &Case, folder: Folder, python: Option<&Path>) -> Option<Rig> {
    let switch = if case.fault == Fault::Partition {
        let Some(switch) = Switch::new(4) else {
            let title = case.title();
            rondel_testkit::notice(&format!("{title}: SKIPPED, NOT TESTED: network namespaces need root"));
            return None;
        };
        Some(switch)
    } else {
        None
    };
    let interface = if switch.is_some() { "eth0" } else { "lo" };
    let on = |host: usize, program: OsString| match &switch {
        Some(switch) => switch.on(host, program),
        None => Command::new(program),
    };
    let domain = dds_domain();
    let options = ["--dds-domain", &domain, "--dds-interface", interface].map(str::to_owned);
    let healthy = match python {
        Some(python) => {
            let own = ["verdict", "--domain", &domain, "--interface", interface];
            independent(on(HEALTHY, python.into()), "dds_subscribe.py", &own)
        }
        None => tap(on(HEALTHY, program()), "dds", &options),
    };
    let section = format!("dds: {{ domain: {domain}, interface: {interface} }}");
    Some(Rig {
        publisher: publisher(&folder, on(PUBLISHER, program()), "dds", case, &options),
        hub: None,
        monitor: monitor_of(&folder, on(MONITOR, program()), "dds", &section),
        consumer: Participant::new(
            "consumer",
            folder.as_path(),
            tap(on(CONSUMER, program()), "dds", &options),
        ),
        healthy: Participant::new("healthy", folder.as_path(), healthy),
        links: switch.map_or(Links::Direct, Links::Switch),
        folder,
    })
}

fn publisher(
    folder: &Folder,
    mut command: Command,
    scheme: &str,
    case: &Case,
    options: &[String],
) -> Participant {
    let (to, rate) = (format!("{scheme}:state"), case.rate().to_string());
    command.args(["publish", "--to", &to, "--rate", &rate, "--wait", "60"]).args(options);
    Participant::new("publisher", folder.as_path(), command)
}

/// The monitor, with the settings of its network. It takes the number of a message as its time, so that each verdict
/// says which message it belongs to.
fn monitor_of(folder: &Folder, mut command: Command, scheme: &str, network: &str) -> Participant {
    folder.file("p.rondel", SPECIFICATION);
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: p.rondel\n{network}\n\
             topics: {{ state: {{ source: \"{scheme}:state\", time: n }} }}\n\
             verdicts: {{ emit: every, to: [stdout, \"{scheme}:verdict\"] }}\n"
        ),
    );
    command.args(["run", &deployment, "--format", "json", "--summary", "json"]);
    Participant::new("monitor", folder.as_path(), command)
}

fn tap(mut command: Command, scheme: &str, options: &[String]) -> Command {
    command.args(["tap", &format!("{scheme}:verdict"), "--format", "json"]).args(options);
    command
}

/// A subscriber in Python, which prints the time of arrival before each verdict.
fn independent(mut command: Command, script: &str, own: &[&str]) -> Command {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rondel-net/tests/independent");
    command.arg("-B").arg(folder.join(script)).args(own).args(["--print", "--times", "--quiet", "600"]);
    command
}
