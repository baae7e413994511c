//! A broker of the tests' own, mosquitto, on loopback and on a port that nobody else uses; and a way to it
//! that can be interrupted.

#![allow(dead_code, unreachable_pub)] // no test needs all of it, and several share it

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Queues without limit, so that the broker loses nothing by itself.
const ALWAYS: &str = "persistence false\nmax_queued_messages 0\nset_tcp_nodelay true\nuser root\n";

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Where Debian's package puts this program, if it is there.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/usr/bin"])
        .map(|folder| Path::new(folder).join(name))
        .find(|p| p.exists())
}

/// A folder that goes with the test.
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

/// A broker, ended with the test.
pub struct Broker {
    pub port: u16,
    pub folder: Folder,
    program: PathBuf,
    child: Option<Child>,
}

impl Broker {
    /// One that lets everybody in. Where mosquitto is not installed, `None`, said loudly; on CI (`CI` is
    /// set) the test fails.
    pub fn start(test: &str) -> Option<Broker> {
        Broker::with(test, |port, _| format!("listener {port} 127.0.0.1\nallow_anonymous true\n"))
    }

    /// One with this configuration, made for its port and a folder.
    pub fn with(test: &str, configuration: impl FnOnce(u16, &Folder) -> String) -> Option<Broker> {
        let Some(program) = program("mosquitto") else {
            let message = format!("{test}: SKIPPED, NOT TESTED: no mosquitto; `make setup` installs it");
            assert!(std::env::var_os("CI").is_none(), "{message}");
            // Past the capture of the test's output.
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

    /// Starts it (again) and waits until it listens.
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

    /// Ends it at once.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// An independent client, `mosquitto_pub` or `mosquitto_sub`.
    pub fn client(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program(name).expect("mosquitto comes with its clients"));
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]).args(arguments);
        command
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A way to a broker that can be interrupted.
pub struct Way {
    pub port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Way {
    pub fn to(target: u16) -> Way {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let streams = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&streams);
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let Ok(near) = near else { break };
                let Ok(far) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                for stream in [&near, &far] {
                    stream.set_nodelay(true).unwrap();
                    kept.lock().unwrap().push(stream.try_clone().unwrap());
                }
                pass(near.try_clone().unwrap(), far.try_clone().unwrap());
                pass(far, near);
            }
        });
        Way { port, streams }
    }

    /// Cuts all connections that there are; new ones are let through.
    pub fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    std::thread::spawn(move || {
        let mut piece = [0; 16384];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            if to.write_all(&piece[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
