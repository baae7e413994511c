//! The server for Foxglove of a run, over loopback, with an independent client.

#![cfg(feature = "foxglove")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod support;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rondel_testkit::{LIMIT, Process, finish};
use serde_json::{Value, json};
use support::network::{arguments, free_endpoint, zenoh};
use support::{Folder, RONDEL, start_rondel};

const SPECIFICATION: &str = "topic door { id: string, open: bool, at: float, pose: { x: float } }\n\
                             property shut for each id in (door.id) = not door.open\n\
                             @severity(critical)\nproperty mine = door.id == \"a\"\n\
                             @severity(warning)\nproperty near = door.pose.x < 10\n";
/// The channels of this specification.
const CHANNELS: [&str; 6] = [
    "rondel/verdicts",
    "rondel/events",
    "rondel/properties/shut",
    "rondel/properties/mine",
    "rondel/properties/near",
    "rondel/signals/door",
];
/// The start of a connection, without the empty line.
const HANDSHAKE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                         Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";

/// The Python of the independent client, if there is one.
fn python(test: &str) -> Option<PathBuf> {
    rondel_testkit::python(test, "websockets, jsonschema")
}

/// A command with sockets of its own.
fn command(folder: &Folder) -> Command {
    let mut command = Command::new(RONDEL);
    command.env("XDG_RUNTIME_DIR", folder.as_path());
    command
}

/// A run of doors with a server for Foxglove, and where it is served.
fn run(folder: &Folder, endpoint: &str, foxglove: &str) -> (Process, String) {
    folder.file("p.rondel", SPECIFICATION);
    let deployment = folder.file(
        "rondel.yaml",
        format!(
            "specification: p.rondel\nzenoh: {{ mode: router, listen: \"{endpoint}\" }}\n\
             topics: {{ door: {{ source: \"zenoh:door\", time: at }} }}\n\
             verdicts: {{ to: stdout }}\nfoxglove: {foxglove}\n"
        ),
    );
    let mut own = command(folder);
    own.args(["run", &deployment, "--format", "json", "--explain"]);
    let mut run = Process::start(own);
    let line = run.wait_stderr("listening on foxglove ws://");
    let (_, rest) = line.split_once("ws://").unwrap();
    let address = rest.split_once('/').unwrap().0.to_owned();
    run.wait_stderr("ready");
    (run, address)
}

fn feed(endpoint: &str) -> Process {
    start_rondel(arguments(&["publish", "--to", "zenoh:door", "--wait", "60"], &zenoh("client", endpoint)))
}

fn door(id: &str, open: bool, at: f64, x: f64) -> Vec<u8> {
    let mut line = json!({"id": id, "open": open, "at": at, "pose": {"x": x}}).to_string().into_bytes();
    line.push(b'\n');
    line
}

/// The independent client.
struct Client(Process);

impl Client {
    fn start(python: &Path, address: &str, arguments: &[&str]) -> Client {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foxglove/client.py");
        let mut command = Command::new(python);
        command.arg("-B").arg(script).arg(format!("ws://{address}")).args(arguments);
        Client(Process::start(command))
    }

    /// Subscribes to a channel. The first message of one with the state of a property is the present state; for another one,
    /// it waits for that of a property, with which the subscription begins.
    #[track_caller]
    fn subscribe(python: &Path, address: &str, topic: &str) -> Client {
        let mut client = Client::start(python, address, &[]);
        client.wait("\"open\":\"foxglove.sdk.v1\"");
        let is_state = topic.starts_with("rondel/properties/");
        let all = if is_state { json!([topic]) } else { json!([topic, "rondel/properties/near"]) };
        client.send(&json!({"subscribe": all}));
        client.wait("\"subscribed\"");
        if !is_state {
            client.next("rondel/properties/near");
        }
        client
    }

    fn send(&mut self, command: &Value) {
        self.0.write(format!("{command}\n").as_bytes());
    }

    /// Waits for a line that contains a text.
    #[track_caller]
    fn wait(&mut self, part: &str) -> Value {
        serde_json::from_str(&self.0.wait_stdout(part)).unwrap()
    }

    /// Waits for the next message of a channel.
    #[track_caller]
    fn next(&mut self, topic: &str) -> Value {
        self.wait(&format!("{{\"topic\":\"{topic}\""))
    }

    /// Waits for a message of a channel that contains a text.
    #[track_caller]
    fn find(&mut self, topic: &str, part: &str) -> Value {
        let deadline = Instant::now() + LIMIT;
        loop {
            let message = self.next(topic);
            if message.to_string().contains(part) {
                return message;
            }
            assert!(Instant::now() < deadline, "no {part} on {topic}");
        }
    }
}

#[test]
fn run_is_shown_to_clients() {
    let Some(python) = python("run_is_shown_to_clients") else { return };
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (run, address) = run(&folder, &endpoint, "127.0.0.1:0");
    let mut early = Client::start(&python, &address, &[]);
    early.wait("\"open\":\"foxglove.sdk.v1\"");
    assert!(early.wait("\"op\":\"serverInfo\"")["name"].as_str().unwrap().starts_with("Rondel "));
    for channel in CHANNELS {
        early.wait(&format!("\"advertised\":\"{channel}\""));
    }
    let [mut states, mut verdicts, mut events, mut signals] =
        ["rondel/properties/shut", "rondel/verdicts", "rondel/events", "rondel/signals/door"]
            .map(|topic| Client::subscribe(&python, &address, topic));
    assert_eq!(states.next("rondel/properties/shut")["data"]["state"], "none", "before the first message");
    let mut feed = feed(&endpoint);
    feed.write(&door("a", false, 100.5, 1.5));
    let signal = signals.next("rondel/signals/door");
    // Only fields that properties read, with the time of the message.
    assert_eq!(signal["time"], 100_500_000_000_i64);
    assert_eq!(signal["data"]["pose"], json!({"x": 1.5}));
    assert_eq!((&signal["data"]["open"], signal["data"].get("at")), (&json!(false), None));
    let state = states.find("rondel/properties/shut", "satisfied");
    assert_eq!(state["time"], 100_500_000_000_i64);
    feed.write(&door("b", true, 101.25, 20.0));
    let state = states.find("rondel/properties/shut", "\"state\":\"violated\"");
    assert_eq!((&state["data"]["violated"], &state["data"]["parameters"]), (&json!(1), &json!("id=\"b\"")));
    let log = verdicts.find("rondel/verdicts", "]: violated");
    assert_eq!((&log["time"], &log["data"]["level"]), (&json!(101_250_000_000_i64), &json!(4)));
    assert!(log["data"]["message"].as_str().unwrap().contains("door.open"), "explained: {log}");
    assert_eq!((&log["data"]["line"], &log["data"]["verdict"]["verdict"]), (&json!(2), &json!("violated")));
    let begun = events.find("rondel/events", "\"value\":\"shut\"");
    assert_eq!(begun["data"]["start_time"], begun["data"]["end_time"]);
    feed.write(&door("b", false, 102.0, 20.0));
    states.find("rondel/properties/shut", "\"state\":\"satisfied\"");
    let ended = events.find("rondel/events", "\"value\":\"true\"");
    assert_eq!(ended["data"]["end_time"], json!({"sec": 102, "nsec": 0}));
    // The present states of a run that goes on.
    let mut late = Client::subscribe(&python, &address, "rondel/properties/mine");
    let state = late.next("rondel/properties/mine");
    assert_eq!((&state["data"]["state"], &state["time"]), (&json!("violated"), &json!(102_000_000_000_i64)));
    // A client that reconnects begins again.
    late.send(&json!({"close": true}));
    late.wait("\"closed\"");
    let mut again = Client::subscribe(&python, &address, "rondel/properties/near");
    assert_eq!(again.next("rondel/properties/near")["data"]["state"], "violated");
    run.terminate();
    again.wait("\"closed\":1001");
    let ended = run.finish();
    ended.expect_status(0);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    feed.terminate();
}

#[test]
fn levels_are_those_of_severities() {
    let Some(python) = python("levels_are_those_of_severities") else { return };
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (run, address) = run(&folder, &endpoint, "127.0.0.1:0");
    let mut client = Client::subscribe(&python, &address, "rondel/verdicts");
    let mut feed = feed(&endpoint);
    feed.write(&door("b", false, 1.0, 50.0));
    let mut levels: Vec<(String, i64)> = (0..3)
        .map(|_| {
            let log = client.next("rondel/verdicts");
            let (name, level) = (log["data"]["name"].as_str(), log["data"]["level"].as_i64());
            (name.unwrap().to_owned(), level.unwrap())
        })
        .collect();
    levels.sort();
    let expected = [("mine", 5), ("near", 3), ("shut", 2)];
    assert_eq!(levels, expected.map(|(name, level)| (name.to_owned(), level)));
    run.terminate();
    run.finish().expect_status(0);
    feed.terminate();
}

#[test]
fn wrong_clients_are_refused_and_others_served() {
    let Some(python) = python("wrong_clients_are_refused_and_others_served") else { return };
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (run, address) = run(&folder, &endpoint, "127.0.0.1:0");
    for (argument, status) in [
        ("protocol=", 400),
        ("protocol=wrong", 400),
        ("Origin=http://attacker.example", 403),
        ("Origin=null", 403),
    ] {
        let mut client = Client::start(&python, &address, &[argument]);
        assert_eq!(client.wait("\"refused\"")["refused"], status, "{argument}");
    }
    for argument in ["protocol=foxglove.websocket.v1", "Origin=https://app.foxglove.dev"] {
        Client::start(&python, &address, &[argument]).wait("\"open\"");
    }
    let mut good = Client::subscribe(&python, &address, "rondel/properties/mine");
    good.next("rondel/properties/mine");
    let mut signals = Client::subscribe(&python, &address, "rondel/signals/door");
    let mut bad = Client::start(&python, &address, &[]);
    bad.wait("\"open\"");
    for text in
        ["garbage", "{}", "[1]", "{\"op\":\"advertise\"}", "{\"op\":\"subscribe\",\"subscriptions\":7}"]
    {
        bad.send(&json!({"text": text}));
        if text.contains('7') {
            // Nothing is to be subscribed to.
            continue;
        }
        assert_eq!(bad.wait("\"op\":\"status\"")["level"], 2, "{text}");
    }
    bad.send(&json!({"bytes": "\u{0}\u{1}garbage"}));
    bad.wait("binary messages are not supported");
    bad.send(
        &json!({"text": "{\"op\":\"subscribe\",\"subscriptions\":[{\"id\":1,\"channelId\":4294967295}]}"}),
    );
    bad.wait("there is no channel 4294967295");
    bad.send(&json!({"large": 1 << 20}));
    bad.wait("\"closed\"");
    let mut feed = feed(&endpoint);
    let hostile = "\u{0}\u{202e}\"]}<script>{{7*7}}\r\n\\";
    feed.write(&door(hostile, true, 1.0, 1.0));
    assert_eq!(signals.next("rondel/signals/door")["data"]["id"], hostile);
    assert_eq!(good.next("rondel/properties/mine")["data"]["state"], "violated");
    signals.send(&json!({"unsubscribe": ["rondel/signals/door"]}));
    signals.wait("\"unsubscribed\"");
    feed.write(&door("a", false, 2.0, 1.0));
    assert_eq!(good.next("rondel/properties/mine")["data"]["state"], "satisfied");
    run.terminate();
    signals.wait("\"closed\"");
    assert!(
        !signals.0.finish().stdout.contains("\"id\":\"a\""),
        "nothing comes after the end of a subscription"
    );
    let ended = run.finish();
    ended.expect_status(0);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    feed.terminate();
}

/// A masked frame with a text of less than 126 bytes. The mask is zero.
fn frame(text: &str) -> Vec<u8> {
    let mut frame = vec![0x81, 0x80 | text.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    frame
}

/// Connects without a client's library. Returns the connection and the status of the answer.
fn connect(address: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let protocol = "Sec-WebSocket-Protocol: foxglove.sdk.v1\r\n";
    write!(stream, "GET / HTTP/1.1\r\nHost: {address}\r\n{HANDSHAKE}{protocol}\r\n").unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    (stream, String::from_utf8_lossy(&status).into_owned())
}

#[test]
fn client_that_never_reads_holds_up_nothing_and_is_cut_off() {
    let Some(python) = python("client_that_never_reads_holds_up_nothing_and_is_cut_off") else { return };
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (mut run, address) = run(&folder, &endpoint, "127.0.0.1:0");
    let mut good = Client::subscribe(&python, &address, "rondel/properties/mine");
    good.next("rondel/properties/mine");
    let (mut stalled, status) = connect(&address);
    assert_eq!(status, "HTTP/1.1 101");
    // Channels have the numbers 1 to 6.
    let all: Vec<String> = (1..=6)
        .map(|id| format!("{{\"op\":\"subscribe\",\"subscriptions\":[{{\"id\":{id},\"channelId\":{id}}}]}}"))
        .collect();
    all.iter().for_each(|text| stalled.write_all(&frame(text)).unwrap());
    let mut feed = feed(&endpoint);
    // Each message changes verdicts; their log messages do not fit in the queue of a client and the system's buffers.
    let name = "x".repeat(4000);
    for burst in 0..60 {
        let mut lines = Vec::new();
        for step in 0..50 {
            let at = f64::from(burst * 50 + step);
            lines.extend(door(&format!("{name}{}", step % 2), step % 3 == 0, at, at));
        }
        feed.write(&lines);
        std::thread::sleep(Duration::from_millis(60));
    }
    feed.write(&door("a", false, 5000.0, 1.0));
    assert_eq!(good.find("rondel/properties/mine", "\"state\":\"satisfied\"")["time"], 5_000_000_000_000_i64);
    run.wait_stderr("a client of Foxglove read too slowly");
    // The server has closed the connection.
    let (deadline, mut buffer) = (Instant::now() + LIMIT, vec![0; 1 << 16]);
    loop {
        match stalled.read(&mut buffer) {
            Ok(0) => break,
            Ok(_) => assert!(Instant::now() < deadline, "the connection stays open"),
            Err(error) => {
                assert!(
                    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe),
                    "{error}"
                );
                break;
            }
        }
    }
    run.terminate();
    run.finish().expect_status(0);
    feed.terminate();
}

#[test]
fn no_more_clients_are_served_than_the_limit() {
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (run, address) = run(&folder, &endpoint, "127.0.0.1:0");
    let mut clients: Vec<TcpStream> = Vec::new();
    for _ in 0..16 {
        let (stream, status) = connect(&address);
        assert_eq!(status, "HTTP/1.1 101");
        clients.push(stream);
    }
    assert_eq!(connect(&address).1, "HTTP/1.1 503");
    clients.pop();
    let deadline = Instant::now() + LIMIT;
    while connect(&address).1 != "HTTP/1.1 101" {
        assert!(Instant::now() < deadline, "the place is not free");
        std::thread::sleep(Duration::from_millis(50));
    }
    run.terminate();
    run.finish().expect_status(0);
}

#[test]
fn reload_replaces_channels() {
    let Some(python) = python("reload_replaces_channels") else { return };
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    let (run, address) = run(&folder, &endpoint, "127.0.0.1:0");
    let mut client = Client::start(&python, &address, &[]);
    let all = ["shut", "added", "near"].map(|name| format!("rondel/properties/{name}"));
    client.send(&json!({"subscribe": all}));
    client.next("rondel/properties/near");
    let mut feed = feed(&endpoint);
    feed.write(&door("a", false, 1.0, 50.0));
    client.find("rondel/properties/near", "\"state\":\"violated\"");
    let without: String =
        SPECIFICATION.lines().filter(|line| !line.contains("shut")).map(|line| format!("{line}\n")).collect();
    folder.file("p.rondel", format!("{without}property added = door.open\n"));
    finish(command(&folder).arg("reload").arg(folder.path("rondel.yaml")), b"").expect_status(0);
    client.wait("\"unadvertised\":\"rondel/properties/shut\"");
    client.wait("\"advertised\":\"rondel/properties/added\"");
    // The state of a property that stays is sent again, and what follows is about the new specification.
    let (mut is_shown, mut is_added) = (false, false);
    while !is_shown || !is_added {
        let line = client.wait("\"topic\":\"rondel/properties/");
        is_shown |= line["topic"] == "rondel/properties/near" && line["data"]["state"] == "violated";
        is_added |= line["topic"] == "rondel/properties/added" && line["data"]["state"] == "none";
    }
    feed.write(&door("a", true, 2.0, 5.0));
    client.find("rondel/properties/near", "\"state\":\"satisfied\"");
    run.terminate();
    run.finish().expect_status(0);
    feed.terminate();
}

#[test]
fn settings_are_checked_and_a_token_is_needed_elsewhere() {
    let Some(python) = python("settings_are_checked_and_a_token_is_needed_elsewhere") else { return };
    let (folder, endpoint) = (Folder::new(), free_endpoint());
    folder.file("foxglove.token", "0123456789abcdef\n");
    let settings = "{ listen: \"127.0.0.1:0\", token_file: foxglove.token }";
    let (run, address) = run(&folder, &endpoint, settings);
    for (target, arguments, expected) in [
        ("", &[] as &[&str], "\"refused\":401"),
        ("/?token=wrong", &[], "\"refused\":401"),
        ("/?token=0123456789abcdef", &[], "\"open\""),
        ("/", &["Authorization=Bearer 0123456789abcdef"], "\"open\""),
    ] {
        Client::start(&python, &format!("{address}{target}"), arguments).wait(expected);
    }
    let deployment = folder.path("rondel.yaml");
    let text = std::fs::read_to_string(&deployment).unwrap();
    let used = format!("foxglove: {address}");
    for (section, reason) in [
        ("foxglove: 0.0.0.0:0", "add a token"),
        ("foxglove: here", "must be an IP address and a port"),
        ("foxglove: { port: 8765 }", "write `listen`"),
        ("foxglove: { listen: \"127.0.0.1:0\", origins: [\"*\"] }", "`origins` has a scheme and a host"),
        (used.as_str(), "another program uses this port"),
    ] {
        let changed = text.replace(&format!("foxglove: {settings}"), section);
        let other = folder.file("other.yaml", changed.replace(&endpoint, &free_endpoint()));
        finish(command(&folder).args(["run", &other]), b"").expect_status(2).expect_stderr(&[reason]);
    }
    let other = ["run", "-f", "a", "--topic", "zenoh:a", "--foxglove", "10.0.0.7:0"];
    finish(command(&folder).args(other), b"").expect_status(2).expect_stderr(&["add a token"]);
    run.terminate();
    run.finish().expect_status(0);
}
