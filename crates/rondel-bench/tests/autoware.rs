//! The case study of an Autoware vehicle: the monitor finds every planted fault, and nothing else.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // the helper is a test as well

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The generator and the monitor; `None` if `rondel` is not built.
fn programs() -> Option<(&'static Path, PathBuf)> {
    let program = Path::new(env!("CARGO_BIN_EXE_rondel-bench"));
    let rondel = program.with_file_name("rondel");
    // Tests of the whole workspace build it; those of this crate alone do not.
    if !rondel.is_file() {
        eprintln!("skipped: `rondel` is not built");
        return None;
    }
    Some((program, rondel))
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/autoware")
}

/// Runs a study of the examples, and returns what it says; `None` if `rondel` is not built.
fn study(arguments: &[&str]) -> Option<String> {
    let (program, _) = programs()?;
    let examples = examples();
    let output = Command::new(program)
        .args(["autoware", "study", "--examples"])
        .arg(&examples)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    Some(said)
}

#[test]
fn a_recording_of_every_seed_shows_the_planted_faults_and_nothing_else() {
    for seed in ["1", "2", "3"] {
        let Some(said) = study(&["--recorded", "--seed", seed]) else { return };
        assert!(said.contains("recorded: 19 of 19 planted faults found, 0 violations"), "{said}");
    }
}

#[test]
fn a_live_drive_over_each_middleware_shows_the_planted_faults_and_nothing_else() {
    // The first two faults.
    let Some(said) = study(&["--seconds", "5.5"]) else { return };
    for middleware in ["rmw_zenoh", "DDS"] {
        let expected = format!("live over {middleware}: 2 of 2 planted faults found, 0 violations");
        assert!(said.contains(&expected), "{said}");
    }
}

#[test]
fn the_synchronizer_makes_sets_of_nine_topics() {
    let Some((program, rondel)) = programs() else { return };
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let endpoint = format!("tcp/127.0.0.1:{port}");
    let text = std::fs::read_to_string(examples().join("synchronizer.yaml")).unwrap();
    let text = text.replace("tcp/localhost:7447", &endpoint).replace("ros2:/rondel/synchronized", "stdout");
    let file = std::env::temp_dir().join(format!("rondel-synchronizer-{}.yaml", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let synchronizer = Command::new(&rondel)
        .arg("run")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let drive = ["autoware", "publish", "--no-faults", "--seconds", "6", "--listen", &endpoint];
    let published = Command::new(program).args(drive).stdin(Stdio::null()).status().unwrap();
    kill(Pid::from_raw(synchronizer.id().cast_signed()), Signal::SIGTERM).unwrap();
    let output = synchronizer.wait_with_output().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(published.success() && output.status.success(), "{published}, {}", output.status);
    let sets: Vec<serde_json::Value> =
        output.stdout.split(|c| *c == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    // The slowest topic has 30 messages.
    assert!((20..=30).contains(&sets.len()), "{} sets", sets.len());
    let topics =
        ["steering", "gear", "control_mode", "turn", "hazard", "engage", "fail_safe", "emergency", "vehicle"];
    for set in &sets {
        let time = |topic: &&str| {
            let stamp = &set[*topic]["stamp"];
            stamp["sec"].as_i64().unwrap() * 1_000_000_000 + stamp["nanosec"].as_i64().unwrap()
        };
        let times = topics.iter().map(time);
        let spread = times.clone().max().unwrap() - times.min().unwrap();
        assert!(spread <= 200_000_000, "{set}");
        assert!(set["gear"]["report"].is_u64() && set["fail_safe"]["state"]["state"].is_u64(), "{set}");
        assert!(set["vehicle"]["status"]["twist"]["linear"]["x"].is_f64(), "{set}");
    }
}

/// A child that is killed when the test fails.
struct Killed(Option<Child>);

impl Killed {
    fn start(program: &Path, arguments: &[&str]) -> Killed {
        let mut command = Command::new(program);
        Killed(Some(command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()))
    }

    /// Ends it by a signal, and returns its standard output.
    fn end(mut self) -> String {
        let child = self.0.take().unwrap();
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn the_router_between_two_networks_passes_on_the_topics_and_nothing_else() {
    let Some((program, rondel)) = programs() else { return };
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let endpoint = format!("tcp/127.0.0.1:{port}");
    let folder = std::env::temp_dir().join(format!("rondel-networks-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("two-networks")).unwrap();
    let copy = |name: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(examples().join(name)).unwrap().replace(from, to);
        std::fs::write(folder.join(name), text).unwrap();
        folder.join(name).to_str().unwrap().to_owned()
    };
    copy("autoware.rondel", "", "");
    let router = copy("two-networks/router.json5", "tcp/0.0.0.0:7447", &endpoint);
    let deployment = copy("two-networks/rondel.yaml", "tcp/router:7447", &endpoint);
    // Any participant is a router with this configuration.
    let router = Killed::start(&rondel, &["tap", "zenoh:nothing", "--zenoh-config", &router]);
    let monitor = Killed::start(&rondel, &["run", &deployment, "--emit=violations"]);
    let join = ["--zenoh-mode=client", "--zenoh-connect", &endpoint];
    let everything = Killed::start(&rondel, &[&["tap", "zenoh:**"], &join[..]].concat());
    let drive = ["autoware", "publish", "--seconds", "5", "--connect", &endpoint];
    let published = Command::new(program).args(drive).stdin(Stdio::null()).status().unwrap();
    let (found, others) = (monitor.end(), everything.end());
    router.end();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(published.success(), "{published}");
    assert!(found.contains("engage_in_autonomous_mode"), "{found}");
    assert_eq!(others, "", "a subscription to all keys receives nothing");
}
