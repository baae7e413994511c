//! The dashboard and the alert rules, on a Prometheus that scrapes a run, and in `promtool`.

#![cfg(all(feature = "metrics", feature = "sqlite"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rondel_testkit::{LIMIT, Process, notice};
use serde_json::Value;
use support::network::{arguments, free_endpoint, free_port, zenoh};
use support::{Folder, start_rondel};

/// The folder with the dashboard and the rules.
fn deployed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus")
}

/// Returns the path of a program of Prometheus. Without it, prints that a test is skipped.
fn program(test: &str, name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(["/usr/bin"]);
    let found = folders.map(|folder| Path::new(folder).join(name)).find(|path| path.is_file());
    if found.is_none() {
        let message = format!("{test}: SKIPPED, {name} is not installed: run `scripts/setup features`");
        assert!(std::env::var_os("RONDEL_TEST_REQUIRE_PROMETHEUS").is_none(), "{message}");
        notice(&message);
    }
    found
}

#[test]
fn alert_rules_pass_their_tests() {
    let Some(promtool) = program("alert_rules", "promtool") else { return };
    for arguments in [
        ["check", "config", "prometheus.yaml"],
        ["check", "rules", "rules.yaml"],
        ["test", "rules", "rules_test.yaml"],
    ] {
        let output = Command::new(&promtool).args(arguments).current_dir(deployed()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    }
}

/// A Prometheus that scrapes an address every second, and evaluates the rules.
struct Prometheus {
    port: u16,
    _process: Process,
}

impl Prometheus {
    fn start(program: &Path, folder: &Folder, target: &str) -> Prometheus {
        let rules = deployed().join("rules.yaml").canonicalize().unwrap();
        let configuration = folder.file(
            "prometheus.yml",
            format!(
                "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [\"{}\"]\n\
                 scrape_configs:\n  - job_name: rondel\n    static_configs: [{{ targets: [\"{target}\"] }}]\n",
                rules.display()
            ),
        );
        let port = free_port();
        let mut command = Command::new(program);
        command
            .arg(format!("--config.file={configuration}"))
            .arg(format!("--storage.tsdb.path={}", folder.path("data")))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--log.level=error");
        Prometheus { port, _process: Process::start(command) }
    }

    /// Returns the member `data` of an answer; `None` while the server does not answer.
    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(LIMIT)).ok()?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        if head.contains(" 503 ") {
            return None;
        }
        let body: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{path}: {answer}"));
        assert_eq!(body["status"], "success", "{path}: {body}");
        Some(body["data"].clone())
    }

    /// Returns the number of time series of a query.
    fn series(&self, query: &str) -> Option<usize> {
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let data = self.get(&format!("/api/v1/query?query={escaped}"))?;
        data["result"].as_array().map(Vec::len)
    }
}

/// The queries of all panels, with values of the variables of Grafana.
fn queries() -> Vec<String> {
    let text = std::fs::read_to_string(deployed().join("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let variables = [("$instance", ".*"), ("$__rate_interval", "10s"), ("$__range", "1m")];
    targets
        .map(|target| {
            let query = target["expr"].as_str().unwrap().to_owned();
            variables.iter().fold(query, |query, (name, value)| query.replace(name, value))
        })
        .collect()
}

#[test]
fn every_query_of_the_dashboard_returns_data() {
    let Some(program) = program("dashboard", "prometheus") else { return };
    let (folder, endpoint, metrics) = (Folder::new(), free_endpoint(), format!("127.0.0.1:{}", free_port()));
    folder.file(
        "p.rondel",
        "topic door { id: string, open: bool }\nproperty shut for each id in (door.id) = not door.open\n\
         @severity(critical)\nproperty mine = door.id == \"a\"\n",
    );
    let text = format!(
        "specification: p.rondel\nzenoh: {{ mode: router, listen: \"{endpoint}\" }}\n\
         topics: {{ door: {{ source: zenoh:door, time: t }} }}\nverdicts: {{ to: [stdout, zenoh:verdict] }}\n\
         slow_consumer: {{ then: spool }}\nstore: verdicts.db\naudit: audit.jsonl\nmetrics: {metrics}\n"
    );
    let deployment = folder.file("rondel.yaml", text);
    let mut run = start_rondel(["run", &deployment, "--format", "json"]);
    run.wait_stderr("ready");
    let prometheus = Prometheus::start(&program, &folder, &metrics);
    let publish = ["publish", "--to", "zenoh:door", "--wait", "60"];
    let mut feed = start_rondel(arguments(&publish, &zenoh("client", &endpoint)));
    // Queries of messages that were not evaluated, or wait, show nothing while there are none.
    let (quiet, mut open): (Vec<String>, Vec<String>) =
        queries().into_iter().partition(|query| query.ends_with("> 0"));
    assert!(open.len() >= 30 && open.iter().any(|query| query.contains("rondel_sink_behind_seconds")));
    let deadline = Instant::now() + LIMIT;
    for i in 0_u32.. {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let (id, is_open) = (["a", "b"][i as usize % 2], i % 3 == 0);
        feed.write(format!("{{\"t\":{time:.6},\"id\":\"{id}\",\"open\":{is_open}}}\n").as_bytes());
        std::thread::sleep(Duration::from_millis(50));
        if i % 20 == 0 {
            open.retain(|query| prometheus.series(query).unwrap_or(0) == 0);
        }
        if open.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "no data for {open:#?}");
    }
    for query in quiet {
        assert!(prometheus.series(&query).is_some(), "{query}");
    }
    let rules = prometheus.get("/api/v1/rules").unwrap();
    let rules = rules["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.len() >= 17, "{rules:#?}");
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
    run.terminate();
    run.finish().expect_status(0);
}
