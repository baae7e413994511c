//! Test fixtures for MQTT: a mosquitto broker on a free port of loopback, and a proxy that can cut its
//! connections.

#![allow(dead_code, unreachable_pub)] // shared by several test programs, each of which uses a part

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Configuration of every broker. Unlimited queues, so that the broker drops no messages.
const ALWAYS: &str = "persistence false\nmax_queued_messages 0\nset_tcp_nodelay true\nuser root\n";

/// Returns a TCP port that is currently free.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns the path of an installed program; Debian installs mosquitto in `/usr/sbin`.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/usr/bin"])
        .map(|folder| Path::new(folder).join(name))
        .find(|p| p.exists())
}

/// A temporary folder, removed on drop.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rondel-mqtt-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running broker, killed on drop.
pub struct Broker {
    pub port: u16,
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
            let message = format!("{test}: SKIPPED, mosquitto is not installed: run `make setup`");
            // A child process, because the test harness captures the output of this one.
            let _ = Command::new("sh").args(["-c", "echo \"$0\" >&2", &message]).status();
            return None;
        };
        let (port, folder) = (free_port(), Folder::new());
        let text = format!("{ALWAYS}{}", configuration(port, &folder));
        folder.write("mosquitto.conf", &text);
        let mut broker = Broker { port, folder, program, child: None };
        broker.resume();
        Some(broker)
    }

    /// Starts the broker, again after [`Broker::kill`], and waits until it listens.
    pub fn resume(&mut self) {
        let log = std::fs::File::create(self.folder.0.join("log")).unwrap();
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(self.folder.0.join("mosquitto.conf"));
        self.child = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = || std::fs::read_to_string(self.folder.0.join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "mosquitto does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stops the broker without closing its connections, until it [goes on](Broker::unfreeze) or is
    /// [killed](Broker::kill).
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Resumes a frozen broker.
    pub fn unfreeze(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
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

/// A TCP proxy to a broker that counts bytes and can cut its connections.
pub struct Proxy {
    pub port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    sent: Arc<AtomicU64>,
    received: Arc<AtomicU64>,
}

impl Proxy {
    /// Starts a proxy to a port of loopback.
    pub fn to(target: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let proxy = Proxy { port, streams: Arc::default(), sent: Arc::default(), received: Arc::default() };
        let (streams, sent) = (Arc::clone(&proxy.streams), Arc::clone(&proxy.sent));
        let received = Arc::clone(&proxy.received);
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let Ok(near) = near else { break };
                let Ok(far) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                for stream in [&near, &far] {
                    stream.set_nodelay(true).unwrap();
                    streams.lock().unwrap().push(stream.try_clone().unwrap());
                }
                forward(near.try_clone().unwrap(), far.try_clone().unwrap(), Arc::clone(&sent));
                forward(far, near, Arc::clone(&received));
            }
        });
        proxy
    }

    /// Returns the number of bytes forwarded from clients to the broker.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes forwarded from the broker to clients.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Cuts all current connections; new ones are accepted.
    pub fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, bytes: Arc<AtomicU64>) {
    std::thread::spawn(move || {
        let mut buffer = [0; 16384];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
            bytes.fetch_add(count as u64, Ordering::Relaxed);
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
