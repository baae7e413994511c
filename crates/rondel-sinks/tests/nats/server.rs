//! A server of NATS on a free port of loopback, with JetStream in a folder of the test, and an independent client.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rondel_sinks::nats::{NatsOptions, NatsSink};
use rondel_testkit::{Folder, finish, free_port, notice, python};
use serde_json::Value;

use crate::messages::{Broker, wait_until};

/// A stream of all verdicts.
pub(crate) const STREAM: &str = r#"{"name":"VERDICTS","subjects":["rondel.>"]}"#;

/// A running server, killed on drop.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) folder: Folder,
    program: PathBuf,
    python: PathBuf,
    child: Option<std::process::Child>,
}

/// A message of a stream.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) subject: String,
    pub(crate) headers: Value,
    pub(crate) data: String,
}

impl Stored {
    pub(crate) fn id(&self) -> String {
        self.headers["Nats-Msg-Id"].as_str().unwrap_or_default().to_owned()
    }
}

impl Server {
    /// Starts a server that lets everybody in.
    pub(crate) fn start(test: &str) -> Option<Server> {
        Server::with(test, |_| String::new())
    }

    /// Starts a server with further lines of configuration, which may name files of its folder.
    ///
    /// Without the server, prints that the test is skipped and returns `None`; fails the test if
    /// `RONDEL_TEST_REQUIRE_BROKER` or `CI` is set.
    pub(crate) fn with(test: &str, configuration: impl FnOnce(&Folder) -> String) -> Option<Server> {
        let Some(program) = program() else {
            let message =
                format!("{test}: SKIPPED, NOT TESTED: no nats-server; `make .venv/ready` installs it");
            let is_required =
                ["RONDEL_TEST_REQUIRE_BROKER", "CI"].iter().any(|name| std::env::var_os(name).is_some());
            assert!(!is_required, "{message}");
            notice(&message);
            return None;
        };
        let python = python(test, "nats")?;
        let (port, folder) = (free_port(), Folder::new());
        let text = format!(
            "listen: 127.0.0.1:{port}\njetstream {{ store_dir: {:?} }}\n{}",
            folder.path("store"),
            configuration(&folder)
        );
        folder.file("server.conf", text);
        let mut server = Server { port, folder, program, python, child: None };
        server.resume();
        Some(server)
    }

    /// Sends the server a signal, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path("log")).unwrap_or_default()
    }

    /// Returns the address, with a user and a password such as `me:secret@` before it.
    pub(crate) fn url(&self, login: &str) -> String {
        format!("nats://{login}127.0.0.1:{}", self.port)
    }

    /// Calls the independent client.
    #[track_caller]
    pub(crate) fn client(&self, login: &str, action: &str, argument: &str) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nats/client.py");
        let mut command = Command::new(&self.python);
        command.arg(script).args([&self.url(login), action, argument]);
        let finished = finish(&mut command, b"");
        finished.expect_status(0);
        finished.stdout
    }

    /// Returns the messages of the stream, the oldest first.
    #[track_caller]
    pub(crate) fn messages(&self, login: &str) -> Vec<Stored> {
        let lines = self.client(login, "read", "VERDICTS");
        let message = |line: &str| {
            let value: Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| value[name].as_str().unwrap().to_owned();
            Stored { subject: text("subject"), headers: value["headers"].clone(), data: text("data") }
        };
        lines.lines().map(message).collect()
    }

    pub(crate) fn options(&self) -> NatsOptions {
        NatsOptions {
            servers: vec![self.url("")],
            subject: "rondel.{property}".to_owned(),
            ..NatsOptions::default()
        }
    }

    pub(crate) fn sink(&self) -> NatsSink {
        NatsSink::new(self.options()).unwrap()
    }
}

impl Broker for Server {
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn resume(&mut self) {
        let path = self.folder.path("log");
        let log = std::fs::File::options().create(true).append(true).open(&path).unwrap();
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(self.folder.as_path().join("server.conf"));
        self.child = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let port = self.port;
        wait_until("the server listens", Duration::from_secs(30), || {
            let child = self.child.as_mut().unwrap();
            let is_running = child.try_wait().unwrap().is_none();
            assert!(is_running, "{}", std::fs::read_to_string(&path).unwrap_or_default());
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
    }

    fn place(&self) -> String {
        self.url("")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the server of `PATH`, or else of `.venv`.
fn program() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([own]);
    folders.map(|folder| folder.join("nats-server")).find(|path| path.is_file())
}
