//! Alertmanager on a free port of loopback.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rondel_testkit::{Folder, free_port, notice};
use serde_json::Value;

use crate::support::{LIMIT, wait};

/// Returns the path of Alertmanager, by its name in Debian or its own.
fn program() -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let names = ["prometheus-alertmanager", "alertmanager"];
    path.split(':')
        .chain(["/usr/bin"])
        .flat_map(|folder| names.map(|name| Path::new(folder).join(name)))
        .find(|path| path.exists())
}

/// A running Alertmanager, killed on drop.
pub(crate) struct Alertmanager {
    port: u16,
    program: PathBuf,
    /// Folder of its state, replaced when it loses that.
    folder: Folder,
    configuration: String,
    child: Option<Child>,
}

impl Alertmanager {
    /// Starts one that notifies this address. Without the program, prints that the test is skipped.
    pub(crate) fn start(test: &str, receiver: &str) -> Option<Alertmanager> {
        let Some(program) = program() else {
            let message =
                format!("{test}: SKIPPED, Alertmanager is not installed: run `scripts/setup features`");
            assert!(std::env::var_os("RONDEL_TEST_REQUIRE_ALERTMANAGER").is_none(), "{message}");
            notice(&message);
            return None;
        };
        let configuration = format!(
            "route:\n  receiver: test\n  group_by: ['...']\n  group_wait: 0s\n  group_interval: 1s\n  repeat_interval: 1h\n\
             receivers:\n  - name: test\n    webhook_configs:\n      - url: '{receiver}'\n        send_resolved: true\n"
        );
        let (port, folder) = (free_port(), Folder::new());
        let mut server = Alertmanager { port, program, folder, configuration, child: None };
        server.resume();
        Some(server)
    }

    /// Starts it, again after [`Alertmanager::kill`], and waits until it answers.
    pub(crate) fn resume(&mut self) {
        let file = self.folder.file("alertmanager.yml", &self.configuration);
        let log = std::fs::File::create(self.folder.path("log")).unwrap();
        let mut command = Command::new(&self.program);
        command
            .arg(format!("--config.file={file}"))
            .arg(format!("--storage.path={}", self.folder.path("data")))
            .arg(format!("--web.listen-address=127.0.0.1:{}", self.port))
            .arg("--cluster.listen-address=");
        self.child = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        wait("Alertmanager", || self.get("/-/ready").filter(|body| body.contains("OK")));
    }

    /// Kills it and removes its state.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.folder = Folder::new();
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the body of an answer.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(LIMIT)).ok()?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
    }

    /// Returns the alerts that are active, by their labels.
    pub(crate) fn alerts(&self) -> Vec<Value> {
        let body = self.get("/api/v2/alerts").unwrap();
        let mut alerts: Vec<Value> = serde_json::from_str(&body).unwrap();
        alerts.sort_by_key(|alert| alert["labels"].to_string());
        alerts
    }
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        self.kill();
    }
}
