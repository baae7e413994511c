//! Networks of the tests' own: loopback only, addresses that nobody else uses, nothing scouted.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::process::Process;

/// A TCP port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// An endpoint of Zenoh on a port that was free a moment ago.
pub fn free_endpoint() -> String {
    format!("tcp/127.0.0.1:{}", free_port())
}

/// A DDS domain from 20 to 100, another one for each call within a process. Its ports are below those that the system
/// gives to sockets without a port of their own.
pub fn dds_domain() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let call = NEXT.fetch_add(1, Ordering::Relaxed);
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos();
    static START: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    let start = START.get_or_init(|| std::process::id().wrapping_add(clock / 1000));
    (20 + start.wrapping_add(call) % 81).to_string()
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
    Process::rondel(arguments(&[&own[..], &wait].concat(), network))
}

/// A router on `endpoint`: a monitor of something that nobody publishes, in router mode.
pub fn router(endpoint: &str) -> Process {
    let own = ["run", "-f", "v", "--topic", "zenoh:nobody/publishes/this"];
    let mut router = Process::rondel(arguments(&own, &zenoh_listening("router", endpoint)));
    router.wait_stderr("ready");
    router
}

/// The Python that has the independent clients: that of RONDEL_TEST_PYTHON, or else of `.venv`. Where
/// there is none the test is skipped, loudly; on CI (`CI` is set) it fails.
pub fn python(test: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let candidate = std::env::var_os("RONDEL_TEST_PYTHON").map(PathBuf::from);
    let candidate = candidate.or_else(|| Some(root.join(".venv/bin/python3")).filter(|path| path.exists()));
    let works = |path: &PathBuf| {
        let imported = Command::new(path).args(["-c", "import zenoh, cyclonedds"]).output();
        imported.is_ok_and(|output| output.status.success())
    };
    if let Some(python) = candidate.filter(works) {
        return Some(python);
    }
    let message = format!(
        "{test}: SKIPPED, NOT TESTED: no Python with eclipse-zenoh and cyclonedds; `make .venv/ready` installs them, \
         or set RONDEL_TEST_PYTHON"
    );
    // Whoever names a Python, or runs this on CI, means these tests to run.
    assert!(["CI", "RONDEL_TEST_PYTHON"].iter().all(|name| std::env::var_os(name).is_none()), "{message}");
    // Past the capture of the test's output.
    let _ = Command::new("sh").args(["-c", "echo \"$0\" >&2", &message]).status();
    None
}

/// Starts one of the independent clients.
pub fn independent(python: &Path, script: &str, arguments: &[&str]) -> Process {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rondel-net/tests/independent");
    let mut command = Command::new(python);
    command.arg("-B").arg(folder.join(script)).args(arguments);
    Process::start(command)
}
