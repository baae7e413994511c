//! The MQTT broker of a measurement: mosquitto, on loopback.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Result, io_error};
use crate::link::{PATIENCE, free_port};

/// A running broker. Dropping it ends it.
#[derive(Debug)]
pub struct Broker {
    /// The port on 127.0.0.1.
    pub port: u16,
    process: Child,
    settings: PathBuf,
}

impl Broker {
    /// Starts mosquitto, and waits until it listens.
    ///
    /// # Errors
    /// When mosquitto is not installed, or does not listen.
    pub fn start() -> Result<Broker> {
        let port = free_port()?;
        let settings = std::env::temp_dir().join(format!("rondel-bench-{}-{port}.conf", std::process::id()));
        // Queues without limit: the broker loses nothing by itself.
        let text = format!(
            "listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nmax_queued_messages 0\n\
             set_tcp_nodelay true\n"
        );
        std::fs::write(&settings, text).map_err(io_error(settings.display().to_string()))?;
        let mut started = Err(std::io::Error::from(std::io::ErrorKind::NotFound));
        // Debian installs it in a folder that is not in the PATH of every user.
        for program in ["mosquitto", "/usr/sbin/mosquitto"] {
            started = Command::new(program)
                .arg("-c")
                .arg(&settings)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            if started.is_ok() {
                break;
            }
        }
        let process = match started {
            Ok(process) => process,
            Err(error) => {
                let _ = std::fs::remove_file(&settings);
                return Err(Failure::Usage(format!(
                    "mosquitto, the broker for MQTT, cannot be started ({error}); install it, or leave mqtt out of --networks"
                )));
            }
        };
        let broker = Broker { port, process, settings };
        let deadline = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() >= deadline {
                return Err(Failure::Late { what: "waiting for mosquitto".to_owned(), limit: PATIENCE });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(broker)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.settings);
    }
}
