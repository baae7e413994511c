//! The page of a run, a store and a check, over loopback.

#![cfg(feature = "page")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

#[path = "page/encrypted.rs"]
mod encrypted;
#[path = "page/playground.rs"]
mod playground;
#[allow(dead_code)] // a part is used here
#[path = "../../rondel-page/tests/contract/schema.rs"]
mod schema;
mod support;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rondel_testkit::{LIMIT, Process, finish};
use serde_json::{Value, json};
use support::network::{arguments, free_endpoint, zenoh};
use support::{Folder, RONDEL, rondel, start_rondel};

const SPECIFICATION: &str = "topic door { id: string, open: bool }\n\
                             property shut for each id in (door.id) = not door.open\n\
                             @severity(critical)\nproperty mine = door.id == \"a\"\n";

/// The answer to a request.
struct Answer {
    status: u16,
    headers: String,
    body: String,
}

impl Answer {
    /// Reads an answer from all bytes of its connection.
    #[track_caller]
    fn of(bytes: &[u8]) -> Answer {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (headers, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, headers: headers.to_ascii_lowercase(), body: body.to_owned() }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }
}

/// Sends a request, and reads until the server closes the connection.
fn request(address: &str, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut text =
        format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    if !headers.iter().any(|header| header.starts_with("Host:")) {
        text += &format!("Host: {address}\r\n");
    }
    headers.iter().for_each(|header| text += &format!("{header}\r\n"));
    stream.write_all(format!("{text}\r\n{body}").as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    Answer::of(&bytes)
}

fn get(address: &str, path: &str) -> Answer {
    request(address, "GET", path, &[], "")
}

/// Waits until an answer is as expected.
#[track_caller]
fn wait_for(address: &str, path: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + LIMIT;
    loop {
        let answer = get(address, path);
        if answer.status == 200 && is_expected(&answer.json()) {
            return answer.json();
        }
        assert!(Instant::now() < deadline, "{path}: {} {}", answer.status, answer.body);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Where a page is served, as its process says on standard error.
fn page_address(process: &mut Process) -> String {
    let line = process.wait_stderr("listening on page http://");
    let (_, rest) = line.split_once("http://").unwrap();
    rest.split_once('/').unwrap().0.to_owned()
}

/// A command with sockets of its own.
fn command(folder: &Folder) -> Command {
    let mut command = Command::new(RONDEL);
    command.env("XDG_RUNTIME_DIR", folder.as_path());
    command
}

/// A run of doors with a page, and where it is served.
fn run(folder: &Folder, endpoint: &str, page: &str, more: &str) -> (Process, String) {
    folder.file("p.rondel", SPECIFICATION);
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: p.rondel\nzenoh: {{ mode: router, listen: \"{endpoint}\" }}\n\
             topics: {{ door: zenoh:door }}\nverdicts: {{ to: stdout }}\npage: {page}\n{more}"
        ),
    );
    let mut own = command(folder);
    own.args(["run", &deployment, "--format", "json", "--explain"]);
    let mut run = Process::start(own);
    let address = page_address(&mut run);
    run.wait_stderr("ready");
    (run, address)
}

fn feed(endpoint: &str) -> Process {
    start_rondel(arguments(&["publish", "--to", "zenoh:door", "--wait", "60"], &zenoh("client", endpoint)))
}

fn door(id: &str, open: bool) -> Vec<u8> {
    format!("{{\"id\":\"{id}\",\"open\":{open}}}\n").into_bytes()
}

/// A viewer of events.
struct Viewer {
    stream: TcpStream,
    text: String,
}

impl Viewer {
    fn connect(address: &str, more: &str) -> Viewer {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        write!(stream, "GET /api/v1/events HTTP/1.1\r\nHost: {address}\r\n{more}\r\n").unwrap();
        Viewer { stream, text: String::new() }
    }

    /// Reads until a text has come, or the server has closed the connection.
    #[track_caller]
    fn wait(&mut self, part: &str) {
        let (deadline, mut buffer) = (Instant::now() + LIMIT, [0; 4096]);
        while !self.text.contains(part) {
            assert!(Instant::now() < deadline, "no {part:?} in {}", self.text);
            match self.stream.read(&mut buffer) {
                Ok(0) => panic!("closed before {part:?}: {}", self.text),
                Ok(count) => self.text += &String::from_utf8_lossy(&buffer[..count]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Holds all events so far against the description of the API. Returns their names.
    fn check(&self) -> Vec<String> {
        let api = schema::Api::new();
        let (mut names, mut lines) = (Vec::new(), self.text.lines());
        while let Some(line) = lines.next() {
            let Some(name) = line.strip_prefix("event: ") else { continue };
            let data = lines.by_ref().find_map(|line| line.strip_prefix("data: "));
            // The last one may be incomplete.
            let Some(data) = data.and_then(|data| serde_json::from_str::<Value>(data).ok()) else { break };
            match name {
                "hello" => api.check_named("Hello", &data),
                "changes" => api.check_named("Changes", &data),
                "state" => api.check_named("State", &data),
                _ => assert_eq!(data, json!({}), "{name}"),
            }
            names.push(name.to_owned());
        }
        names
    }

    /// The id of the last event.
    fn last_id(&self) -> String {
        let id = self.text.lines().filter_map(|line| line.trim().strip_prefix("id: ")).next_back();
        id.unwrap().to_owned()
    }
}

#[test]
fn run_is_shown_while_it_checks() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (mut run, address) = run(&folder, &endpoint, "127.0.0.1:0", "");
    let before = wait_for(&address, "/api/v1/overview", |overview| overview["total"] == 2);
    assert_eq!(before["counts"]["none"], 2);
    let mut viewer = Viewer::connect(&address, "");
    viewer.wait("event: hello");
    let mut feed = feed(&endpoint);
    feed.write(&door("a", false));
    feed.write(&door("b", true));
    viewer.wait("event: changes");
    viewer.wait("\"verdict\":\"violated\"");
    viewer.wait("event: state");
    let overview =
        wait_for(&address, "/api/v1/overview?width=10", |overview| overview["counts"]["violated"] == 2);
    assert_eq!(overview["properties"][0]["name"], "mine", "the critical one first");
    let instances = get(&address, "/api/v1/properties/shut/instances").json();
    assert_eq!(instances["instances"][0]["parameters"], json!({"id": "b"}));
    let violation = wait_for(&address, "/api/v1/violations?property=shut", |found| found["total"] == 1);
    assert_eq!(violation["violations"][0]["explanation"][0]["values"]["door.open"], true);
    feed.write(&door("a", false));
    let topic = wait_for(&address, "/api/v1/topics/door", |topic| topic["message"]["value"]["id"] == "a");
    assert_eq!(topic["topic"]["network"], "zenoh");
    wait_for(&address, "/api/v1/topics/door", |topic| topic["topic"]["publishers"] == 1);
    let property = get(&address, "/api/v1/properties/mine").json();
    assert_eq!((&property["atoms"][0]["value"], &property["line"]), (&json!("a"), &json!(4)));
    let names = viewer.check();
    assert!(
        ["hello", "changes", "state"].iter().all(|name| names.contains(&(*name).to_owned())),
        "{names:?}"
    );
    // A reconnect receives what it missed.
    let id = viewer.last_id();
    drop(viewer);
    feed.write(&door("c", true));
    run.take_stdout(7);
    let mut viewer = Viewer::connect(&address, &format!("Last-Event-ID: {id}\r\n"));
    viewer.wait("\"parameters\":{\"id\":\"c\"}");
    assert!(!viewer.text.contains("event: reset"), "{}", viewer.text);
    let mut stranger = Viewer::connect(&address, "Last-Event-ID: ffffffff-7\r\n");
    stranger.wait("event: reset");
    run.terminate();
    viewer.wait("event: end");
    run.finish().expect_status(0);
    feed.terminate();
}

#[test]
fn token_host_and_paths_are_checked() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    folder.file("page.token", "0123456789abcdef\n");
    let page = "{ listen: \"127.0.0.1:0\", token_file: page.token, hosts: [monitor.example] }";
    let (run, address) = run(&folder, &endpoint, page, "");
    let path = "/api/v1/state";
    for (headers, expected) in [
        (&[] as &[&str], 401),
        (&["Authorization: Bearer 0123456789abcdeX"], 401),
        (&["Authorization: Bearer 0123456789abcdef"], 200),
        (&["Authorization: Bearer 0123456789abcdef", "Host: monitor.example:80"], 200),
        (&["Authorization: Bearer 0123456789abcdef", "Host: attacker.example"], 403),
        (&["Authorization: Bearer 0123456789abcdef", "Origin: http://attacker.example"], 403),
    ] {
        let answer = request(&address, "GET", path, headers, "");
        assert_eq!(answer.status, expected, "{headers:?}: {}", answer.body);
        assert!(answer.headers.contains("content-security-policy: default-src 'none'"), "{}", answer.headers);
        assert!(!answer.headers.contains("set-cookie"), "{}", answer.headers);
    }
    for path in [
        "/../Cargo.toml",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/assets/../../x",
        "/\\..\\x",
        "/%61pi/v1/state",
        "/%61pi/v1/events",
    ] {
        let answer = get(&address, path);
        assert!(matches!(answer.status, 400 | 404), "{path}: {}", answer.status);
    }
    let token = "Authorization: Bearer 0123456789abcdef";
    let ack = request(
        &address,
        "POST",
        "/api/v1/violations/1/acknowledgement",
        &[token, "Content-Type: application/json"],
        "{}",
    );
    assert_eq!(ack.status, 403, "without `actions: true` the page only shows");
    let large = "x".repeat(3 << 20);
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let head = format!(
        "POST /api/v1/silences HTTP/1.1\r\nHost: {address}\r\n{token}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        large.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The server may close before everything is sent.
    let _ = stream.write_all(large.as_bytes());
    let mut answer = [0; 12];
    if stream.read_exact(&mut answer).is_ok() {
        assert_eq!(&answer, b"HTTP/1.1 413");
    }
    run.terminate();
    run.finish().expect_status(0);
}

#[test]
fn operators_act_with_the_clock_of_the_server() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (run, address) =
        run(&folder, &endpoint, "{ listen: \"127.0.0.1:0\", actions: true }", "store: verdicts.db\n");
    let mut feed = feed(&endpoint);
    feed.write(&door("b", true));
    let incidents = wait_for(&address, "/api/v1/incidents", |found| found["total"] == 2);
    assert_eq!(incidents["may_act"], true);
    let id = &incidents["incidents"][0]["id"];
    let path = format!("/api/v1/violations/{id}/acknowledgement");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let act = |body: Value| {
        request(&address, "POST", &path, &["Content-Type: application/json"], &body.to_string())
    };
    // The clock of the browser is a day behind.
    let late = act(json!({"operator": "ada", "until": now - 86_400 + 3600}));
    assert_eq!((late.status, late.body.contains("by the clock of the server")), (400, true), "{}", late.body);
    assert_eq!(act(json!({"operator": "ada", "until": now + 3600})).status, 200);
    let found =
        wait_for(&address, "/api/v1/incidents", |found| found["incidents"][0]["acknowledged_by"] == "ada");
    assert_eq!(found["actions"][0]["kind"], "ack");
    run.terminate();
    run.finish().expect_status(0);
    feed.terminate();
    let shown = rondel(["query", &folder.path("verdicts.db"), "all_actions", "--format", "csv"]);
    assert!(shown.stdout.contains(",ada,ack,"), "`rondel query` shows it: {}", shown.stdout);
}

#[test]
fn huge_messages_and_removed_properties_are_survived() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (run, address) = run(&folder, &endpoint, "127.0.0.1:0", "limits: { message: 32 MiB }\n");
    let mut feed = feed(&endpoint);
    // The first request makes the run copy messages.
    wait_for(&address, "/api/v1/topics/door", |topic| topic["message"] == Value::Null);
    let note = "x".repeat(10 << 20);
    feed.write(format!("{{\"id\":\"a\",\"open\":true,\"note\":\"{note}\"}}\n").as_bytes());
    let topic = wait_for(&address, "/api/v1/topics/door", |topic| topic["message"] != Value::Null);
    assert!(topic["message"]["error"].as_str().unwrap().contains("messages up to 256 KiB"), "{topic}");
    assert!(topic.to_string().len() < 4096);
    feed.write(&door("a", false));
    wait_for(&address, "/api/v1/topics/door", |topic| topic["message"]["value"]["id"] == "a");
    let mut viewer = Viewer::connect(&address, "");
    viewer.wait("event: hello");
    let without = SPECIFICATION.lines().filter(|line| !line.contains("mine") && !line.contains("severity"));
    folder.file("p.rondel", without.collect::<Vec<_>>().join("\n"));
    finish(command(&folder).arg("reload").arg(folder.path("rondel.yaml")), b"").expect_status(0);
    viewer.wait("event: reset");
    assert_eq!(get(&address, "/api/v1/properties/mine").status, 404);
    assert_eq!(get(&address, "/api/v1/overview").json()["total"], 1);
    run.terminate();
    run.finish().expect_status(0);
    feed.terminate();
}

#[test]
fn viewer_that_stops_reading_is_cut_off() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (run, address) = run(&folder, &endpoint, "127.0.0.1:0", "");
    let mut stalled = TcpStream::connect(&address).unwrap();
    stalled.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let request = format!("GET /api/v1/openapi.yaml HTTP/1.1\r\nHost: {address}\r\n\r\n");
    // More answers than the system keeps for a client that does not read them.
    for _ in 0..2000 {
        if stalled.write_all(request.as_bytes()).is_err() {
            break;
        }
    }
    let mut silent = TcpStream::connect(&address).unwrap();
    silent.write_all(b"GET /api/v1/state HTTP/1.1\r\nHost:").unwrap();
    assert_eq!(get(&address, "/api/v1/state").status, 200, "others are served");
    std::thread::sleep(Duration::from_secs(12));
    stalled.set_read_timeout(Some(LIMIT)).unwrap();
    let mut rest = Vec::new();
    match stalled.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
    silent.set_read_timeout(Some(LIMIT)).unwrap();
    match silent.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
    assert_eq!(get(&address, "/api/v1/state").status, 200);
    run.terminate();
    run.finish().expect_status(0);
}

#[test]
fn no_more_viewers_are_served_than_the_limit() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (run, address) = run(&folder, &endpoint, "127.0.0.1:0", "");
    let mut viewers: Vec<Viewer> = (0..200).map(|_| Viewer::connect(&address, "")).collect();
    viewers.iter_mut().for_each(|viewer| viewer.wait("event: hello"));
    let refused = get(&address, "/api/v1/events");
    assert_eq!(refused.status, 503);
    assert!(refused.json()["error"].as_str().unwrap().contains("200 viewers"), "{}", refused.body);
    drop(viewers.pop());
    let deadline = Instant::now() + LIMIT;
    loop {
        let mut viewer = Viewer::connect(&address, "");
        viewer.wait("HTTP/1.1 ");
        viewer.wait("\r\n");
        if viewer.text.starts_with("HTTP/1.1 200") {
            break;
        }
        assert!(Instant::now() < deadline, "the place is not free");
        std::thread::sleep(Duration::from_millis(50));
    }
    run.terminate();
    run.finish().expect_status(0);
}

const TRACE: &str = "{\"topic\":\"door\",\"time\":0,\"data\":{\"id\":\"a\",\"open\":false}}\n\
                     {\"topic\":\"door\",\"time\":1,\"data\":{\"id\":\"b\",\"open\":true}}\n\
                     {\"topic\":\"door\",\"time\":3,\"data\":{\"id\":\"b\",\"open\":false}}\n";

#[test]
fn store_is_served_until_a_signal() {
    let folder = Folder::new();
    let (spec, trace) = (folder.file("p.rondel", SPECIFICATION), folder.file("t.jsonl", TRACE));
    let store = folder.path("verdicts.db");
    let store = store.as_str();
    rondel(["check", "-q", "--explain", "--store", store, &spec, &trace]).expect_status(1);
    let mut page = start_rondel(["page", store, "--listen", "127.0.0.1:0"]);
    let address = page_address(&mut page);
    let overview = get(&address, "/api/v1/overview").json();
    assert_eq!((&overview["total"], &overview["counts"]["violated"]), (&json!(2), &json!(1)));
    let state = get(&address, "/api/v1/state").json();
    assert_eq!((&state["kind"], &state["may_act"]), (&json!("store"), &json!(false)));
    assert_eq!(get(&address, "/api/v1/topics").json()["total"], 0);
    page.terminate();
    page.finish().expect_status(0);
    let other = folder.file("other.db", "nothing");
    let other = other.as_str();
    for (arguments, status, said) in [
        (vec!["page", "missing.db"], 3, "no such file"),
        (vec!["page", other], 3, "other.db"),
        (vec!["page", store, "--series", "none"], 3, "has no series `none`"),
        (vec!["page", store, "--listen", "0.0.0.0:0"], 2, "add a token"),
        (vec!["page", store, "--listen", "here"], 2, "must be an IP address and a port"),
    ] {
        rondel(&arguments).expect_status(status).expect_stderr(&[said]);
    }
}

#[test]
fn check_is_shown_until_a_signal() {
    let folder = Folder::new();
    let (spec, trace) = (folder.file("p.rondel", SPECIFICATION), folder.file("t.jsonl", TRACE));
    let mut check = start_rondel(["check", "-q", "--page=127.0.0.1:0", &spec, &trace]);
    let address = page_address(&mut check);
    let state = get(&address, "/api/v1/state").json();
    assert_eq!((&state["kind"], &state["name"]), (&json!("check"), &json!(trace)));
    let violations = get(&address, "/api/v1/violations").json();
    assert_eq!(violations["total"], 2);
    assert_ne!(violations["violations"][0]["explanation"], json!([]));
    let signals = get(&address, "/api/v1/properties/shut/signals?from=-1&until=4").json();
    assert_eq!(signals["sampled"], false);
    assert!(!signals["signals"].as_array().unwrap().is_empty(), "{signals}");
    check.terminate();
    check.finish().expect_status(1);
    // The page shows ends of violations also if only violations are printed.
    let mut check = start_rondel(["check", "-q", "-e", "violations", "--page=127.0.0.1:0", &spec, &trace]);
    let address = page_address(&mut check);
    assert_eq!(get(&address, "/api/v1/violations").json()["violations"], violations["violations"]);
    check.terminate();
    check.finish().expect_status(1);
    let finished = rondel(["check", "--page=127.0.0.1:0", &spec, &trace, &trace]);
    finished.expect_status(2).expect_stderr(&["one recording"]);
    let finished = rondel(["check", "--page=0.0.0.0:0", &spec, &trace]);
    finished.expect_status(2).expect_stderr(&["this machine alone"]);
}

#[test]
fn wrong_settings_are_refused() {
    let folder = Folder::new();
    for (page, said) in [
        ("8080", "`page` must be an IP address and a port, such as 127.0.0.1:8080"),
        ("0.0.0.0:8080", "others can connect to 0.0.0.0:8080: add a token"),
        ("{ listen: \"10.0.0.7:8080\", actions: true }", "others can connect to 10.0.0.7:8080"),
        ("{ actions: true }", "`page` needs `listen`"),
        ("{ listen: \"127.0.0.1:1\", token: secret }", "a token does not belong in this file"),
        ("{ listen: \"127.0.0.1:1\", token_file: a, token_env: B }", "either token_file or token_env"),
        ("{ listen: \"127.0.0.1:1\", hosts: [\"a:80\"] }", "names without a port"),
    ] {
        let text = format!("formula: v\ntopics: {{ trace: zenoh:t }}\npage: {page}\n");
        let deployment = folder.file("rondel.yaml", text);
        rondel(["validate", &deployment]).expect_status(2).expect_stderr(&[said]);
    }
    let text = "formula: v\ntopics: { trace: zenoh:t }\nverdicts: { emit: violations, to: stdout }\npage: 127.0.0.1:0\n";
    let deployment = folder.file("rondel.yaml", text);
    for command in ["validate", "run"] {
        rondel([command, &deployment]).expect_status(2).expect_stderr(&["never end", "`emit: change`"]);
    }
    rondel(["run", "-f", "v", "--topic", "zenoh:t", "--page", "127.0.0.1:0", "--emit", "violations"])
        .expect_status(2)
        .expect_stderr(&["never end", "--emit change"]);
    folder.file("short.token", "x");
    let text = "formula: v\ntopics: { trace: zenoh:t }\npage: { listen: \"127.0.0.1:0\", token_file: short.token }\n";
    let deployment = folder.file("rondel.yaml", text);
    rondel(["run", &deployment]).expect_status(2).expect_stderr(&["at least 16 letters"]);
    rondel(["run", "-f", "v", "--topic", "zenoh:t", "--page", "0.0.0.0:0"])
        .expect_status(2)
        .expect_stderr(&["add a token"]);
    rondel(["run", "-f", "v", "--topic", "zenoh:t", "--page", "here"]).expect_status(2);
}
