//! Networks of the tests' own: loopback only, addresses without other users, no scouting.

use std::path::{Path, PathBuf};
use std::process::Command;

#[allow(unused_imports)] // each test program uses a part
pub use rondel_testkit::{free_endpoint, free_port};

use rondel_testkit::Process;

use super::start_rondel;

/// Reserves a DDS domain for the rest of the process.
pub fn dds_domain() -> String {
    rondel_testkit::dds_domain().to_string()
}

/// The options of a DDS participant on loopback.
pub fn dds(domain: &str) -> Vec<String> {
    ["--dds-domain", domain, "--dds-interface", "lo"].map(str::to_owned).into()
}

/// The options of a Zenoh participant that connects to `endpoint`.
pub fn zenoh(mode: &str, endpoint: &str) -> Vec<String> {
    ["--zenoh-mode", mode, "--zenoh-connect", endpoint].map(str::to_owned).into()
}

/// The options of a Zenoh participant that listens on `endpoint`.
pub fn zenoh_listening(mode: &str, endpoint: &str) -> Vec<String> {
    ["--zenoh-mode", mode, "--zenoh-listen", endpoint].map(str::to_owned).into()
}

/// Puts an argument list together.
pub fn arguments(own: &[&str], network: &[String]) -> Vec<String> {
    own.iter().map(|&a| a.to_owned()).chain(network.iter().cloned()).collect()
}

/// A monitor of `formula` from `topic` to `verdicts`, with a verdict for every message, that begins
/// when somebody has subscribed there.
pub fn monitor(formula: &str, topic: &str, verdicts: &str, network: &[String]) -> Process {
    let own = ["run", "-f", formula, "--emit", "every", "--topic", topic, "--publish", verdicts];
    let wait = ["--wait-subscribers", "60"];
    start_rondel(arguments(&[&own[..], &wait].concat(), network))
}

/// A router on `endpoint`: a monitor of a topic without a publisher, in router mode.
pub fn router(endpoint: &str) -> Process {
    let own = ["run", "-f", "v", "--topic", "zenoh:never/published"];
    let mut router = start_rondel(arguments(&own, &zenoh_listening("router", endpoint)));
    router.wait_stderr("ready");
    router
}

/// Returns the Python with the independent clients, if there is one.
pub fn python(test: &str) -> Option<PathBuf> {
    rondel_testkit::python(test, "zenoh, cyclonedds")
}

/// Starts one of the independent clients.
pub fn independent(python: &Path, script: &str, arguments: &[&str]) -> Process {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rondel-net/tests/independent");
    let mut command = Command::new(python);
    command.arg("-B").arg(folder.join(script)).args(arguments);
    Process::start(command)
}
