//! The MQTT broker mosquitto on a free port of loopback.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Folder, free_port, notice};

/// Configuration of every broker. Unlimited queues, so that the broker drops no messages.
const ALWAYS: &str = "persistence false\nmax_queued_messages 0\nset_tcp_nodelay true\nuser root\n";

/// Returns the path of an installed program; Debian installs mosquitto in `/usr/sbin`.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/usr/bin"])
        .map(|folder| Path::new(folder).join(name))
        .find(|p| p.exists())
}

/// A running broker, killed on drop.
pub struct Broker {
    /// TCP port of loopback.
    pub port: u16,
    /// Folder of its configuration, for files that this names.
    pub folder: Folder,
    program: PathBuf,
    child: Option<Child>,
}

impl Broker {
    /// Starts a broker that accepts every client.
    ///
    /// Without mosquitto, prints that the test is skipped and returns `None`; fails the test if
    /// `RONDEL_TEST_REQUIRE_BROKER` or `CI` is set.
    pub fn start(test: &str) -> Option<Broker> {
        Broker::with(test, |port, _| format!("listener {port} 127.0.0.1\nallow_anonymous true\n"))
    }

    /// Starts a broker with a configuration for its port and folder, as [`Broker::start`] does.
    pub fn with(test: &str, configuration: impl FnOnce(u16, &Folder) -> String) -> Option<Broker> {
        let Some(program) = program("mosquitto") else {
            for variable in ["RONDEL_TEST_REQUIRE_BROKER", "CI"] {
                assert!(
                    std::env::var_os(variable).is_none(),
                    "{test} needs the MQTT broker mosquitto, which is not installed: run `make setup`, or unset \
                     {variable} to skip the test"
                );
            }
            notice(&format!("{test}: SKIPPED, mosquitto is not installed: run `make setup`"));
            return None;
        };
        let (port, folder) = (free_port(), Folder::new());
        let text = format!("{ALWAYS}{}", configuration(port, &folder));
        folder.file("mosquitto.conf", text);
        let mut broker = Broker { port, folder, program, child: None };
        broker.resume();
        Some(broker)
    }

    fn signal(&self, name: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// Starts the broker, again after [`Broker::kill`], and waits until it listens.
    pub fn resume(&mut self) {
        let log = std::fs::File::create(self.folder.as_path().join("log")).unwrap();
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(self.folder.as_path().join("mosquitto.conf"));
        self.child = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = || std::fs::read_to_string(self.folder.as_path().join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "mosquitto does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stops the broker without closing its connections, until it [goes on](Broker::unfreeze) or is
    /// [killed](Broker::kill).
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Resumes a frozen broker.
    pub fn unfreeze(&self) {
        self.signal("CONT");
    }

    /// Kills the broker.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Returns the command of a client program, `mosquitto_pub` or `mosquitto_sub`.
    pub fn client(&self, name: &str, arguments: &[&str]) -> Command {
        let program = program(name).unwrap_or_else(|| panic!("{name} is not installed: run `make setup`"));
        let mut command = Command::new(program);
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]).args(arguments);
        command
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}
