//! Notifications of a run to a service manager, whose part the tests play.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::Command;
use std::time::{Duration, Instant};

use rondel_testkit::{LIMIT, Process};

use super::support::network::{arguments, free_endpoint, router, zenoh, zenoh_listening};
use super::support::{Folder, RONDEL};

/// A service manager: the socket on which it receives notifications.
struct Manager {
    socket: UnixDatagram,
    /// The value of `NOTIFY_SOCKET`.
    address: String,
    /// Every line that was received.
    seen: Vec<String>,
}

impl Manager {
    fn on_path(folder: &Folder) -> Manager {
        let address = folder.path("notify");
        Manager { socket: UnixDatagram::bind(&address).unwrap(), address, seen: Vec::new() }
    }

    fn on_abstract_name() -> Manager {
        let name = format!("rondel-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        Manager { socket, address: format!("@{name}"), seen: Vec::new() }
    }

    /// Starts a run of `v` that informs this manager, and sends keep-alive notifications with this interval.
    fn start(&self, watchdog: Option<Duration>, network: &[String]) -> Process {
        let mut command = Command::new(RONDEL);
        command.args(arguments(&["run", "-f", "v", "--topic", "zenoh:demo/v"], network));
        command.env("NOTIFY_SOCKET", &self.address);
        command.env_remove("WATCHDOG_USEC").env_remove("WATCHDOG_PID");
        if let Some(interval) = watchdog {
            command.env("WATCHDOG_USEC", interval.as_micros().to_string());
        }
        Process::start(command)
    }

    /// Receives notifications for a time, or until one has a line that begins with `part`. Returns whether one has.
    fn receive(&mut self, part: &str, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.socket.set_read_timeout(Some(left)).unwrap();
            let mut bytes = [0; 4096];
            let Ok(length) = self.socket.recv(&mut bytes) else { continue };
            let text = std::str::from_utf8(&bytes[..length]).unwrap();
            let is_found = text.lines().any(|line| line.starts_with(part));
            self.seen.extend(text.lines().map(str::to_owned));
            if is_found {
                return true;
            }
        }
    }

    #[track_caller]
    fn wait(&mut self, part: &str) {
        assert!(self.receive(part, LIMIT), "no {part:?} in {:?}", self.seen);
    }

    fn count(&self, line: &str) -> usize {
        self.seen.iter().filter(|seen| *seen == line).count()
    }
}

#[test]
fn a_run_is_ready_once_it_is_connected_and_announces_its_end() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let mut manager = Manager::on_path(&folder);
    let run = manager.start(Some(Duration::from_millis(300)), &zenoh("client", &endpoint));
    assert!(!manager.receive("READY=1", Duration::from_secs(2)), "there is no router: {:?}", manager.seen);
    let _router = router(&endpoint);
    manager.wait("READY=1");
    // After a pause of this process several have come, and are received at once.
    let is_slow = (0..10).any(|_| {
        let began = Instant::now();
        (0..5).for_each(|_| manager.wait("WATCHDOG=1"));
        began.elapsed() > Duration::from_millis(300)
    });
    assert!(is_slow, "keep-alive notifications come too often");
    run.terminate();
    manager.wait("STOPPING=1");
    run.finish().expect_status(0);
    // Those that were sent before the end.
    manager.receive("nothing", Duration::from_millis(100));
    assert_eq!((manager.count("READY=1"), manager.count("STOPPING=1")), (1, 1), "{:?}", manager.seen);
    assert!(manager.seen.iter().any(|line| line.starts_with("STATUS=received 0 messages")));
}

#[test]
fn a_reload_is_announced_with_its_end() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let mut manager = Manager::on_path(&folder);
    let run = manager.start(None, &zenoh_listening("peer", &endpoint));
    manager.wait("READY=1");
    run.signal("HUP");
    manager.wait("RELOADING=1");
    manager.wait("READY=1");
    assert!(manager.seen.iter().any(|line| line.starts_with("MONOTONIC_USEC=")), "{:?}", manager.seen);
    run.terminate();
    run.finish().expect_status(0);
}

#[test]
fn an_abstract_socket_is_informed_and_without_a_watchdog_not_kept_alive() {
    let mut manager = Manager::on_abstract_name();
    let run = manager.start(None, &zenoh_listening("peer", &free_endpoint()));
    manager.wait("READY=1");
    assert!(!manager.receive("WATCHDOG=1", Duration::from_secs(1)), "{:?}", manager.seen);
    run.terminate();
    manager.wait("STOPPING=1");
    run.finish().expect_status(0);
}

#[test]
fn a_socket_that_is_gone_is_reported_once_and_stops_nothing() {
    let folder = Folder::new();
    let mut manager = Manager::on_path(&folder);
    let mut run = manager.start(Some(Duration::from_millis(100)), &zenoh_listening("peer", &free_endpoint()));
    manager.wait("READY=1");
    let address = manager.address.clone();
    drop(manager);
    std::fs::remove_file(&address).unwrap();
    let reported = format!("cannot inform the service manager on {address}");
    run.wait_stderr(&reported);
    std::thread::sleep(Duration::from_millis(500));
    run.terminate();
    let finished = run.finish();
    finished.expect_status(0);
    assert_eq!(finished.stderr.matches(&reported).count(), 1, "{}", finished.stderr);
}

#[test]
fn a_socket_of_another_kind_is_reported() {
    let mut command = Command::new(RONDEL);
    let own = ["run", "-f", "v", "--topic", "zenoh:demo/v"];
    command.args(arguments(&own, &zenoh_listening("peer", &free_endpoint())));
    command.env("NOTIFY_SOCKET", "vsock:2:1234");
    let mut run = Process::start(command);
    run.wait_stderr("NOTIFY_SOCKET=vsock:2:1234: neither an absolute path nor an abstract name");
    run.wait_stderr("ready");
    run.terminate();
    run.finish().expect_status(0);
}
