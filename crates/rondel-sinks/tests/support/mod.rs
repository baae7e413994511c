//! A server for faults, and entries, for the tests of sinks over HTTP.

#![allow(dead_code)] // each test uses a part

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rondel_sinks::{Begin, Entry, PropertyEntry, RunKey, Truth, VerdictEntry};

pub(crate) const LIMIT: Duration = Duration::from_secs(30);
/// 2026-11-29 08:00:00 UTC.
pub(crate) const MORNING: i64 = 1_795_939_200_000_000_000;
pub(crate) const SECOND: i64 = 1_000_000_000;

/// A request that a server received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Number of the connection, from 0.
    pub(crate) connection: usize,
}

impl Received {
    /// Returns a header; the empty text without it.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }
}

/// Answer of a server.
#[derive(Clone, Copy)]
pub(crate) enum Reply {
    /// Status line and headers, such as `429 Slow\r\nretry-after: 1`, and a body.
    Text(&'static str, &'static str),
    /// Nothing, until the client gives up.
    Silence,
    /// Half an answer, and the end of the connection.
    Half,
    /// A body of 1 GB.
    Huge,
}

pub(crate) const OK: Reply = Reply::Text("204 No Content", "");

type Answer = Box<dyn FnMut(&Received) -> Reply + Send>;

struct Shared {
    answer: Mutex<Answer>,
    received: Mutex<Vec<Received>>,
    has_ended: AtomicBool,
}

/// A server of HTTP on loopback, ended on drop.
pub(crate) struct Server {
    pub(crate) port: u16,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server that gives these replies, the last of them for all further requests.
    pub(crate) fn scripted(replies: &[Reply]) -> Server {
        let (replies, mut next) = (replies.to_vec(), 0);
        Server::start(move |_| {
            next += 1;
            replies[(next - 1).min(replies.len() - 1)]
        })
    }

    pub(crate) fn start(answer: impl FnMut(&Received) -> Reply + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (answer, received) = (Mutex::new(Box::new(answer) as Answer), Mutex::default());
        let shared = Arc::new(Shared { answer, received, has_ended: AtomicBool::new(false) });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                if of_thread.has_ended.load(Ordering::SeqCst) {
                    return;
                }
                let (stream, shared) = (stream.unwrap(), Arc::clone(&of_thread));
                std::thread::spawn(move || serve(&stream, number, &shared));
            }
        });
        Server { port, shared, thread: Some(thread) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap().clone()
    }

    /// Waits until this number of requests was received.
    pub(crate) fn wait(&self, count: usize) -> Vec<Received> {
        wait(&format!("{count} requests"), || {
            Some(self.received()).filter(|received| received.len() >= count)
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits until a condition has a value.
pub(crate) fn wait<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < deadline, "no {what} within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Answers the requests of one connection.
fn serve(stream: &TcpStream, connection: usize, shared: &Shared) {
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    while let Some(request) = read(&mut reader, connection) {
        let reply = (shared.answer.lock().unwrap())(&request);
        shared.received.lock().unwrap().push(request);
        let done = match reply {
            Reply::Text(head, body) => {
                let length = body.len();
                writer.write_all(
                    format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{body}").as_bytes(),
                )
            }
            Reply::Silence => {
                let _ = reader.read(&mut [0]);
                return;
            }
            Reply::Half => {
                let _ = writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-le");
                return;
            }
            Reply::Huge => {
                let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n";
                let piece = vec![b'x'; 1_000_000];
                writer.write_all(head).and_then(|()| (0..1000).try_for_each(|_| writer.write_all(&piece)))
            }
        };
        if done.is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<&TcpStream>, connection: usize) -> Option<Received> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let line = lines.remove(0);
    let split =
        |line: String| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let headers: Vec<(String, String)> = lines.into_iter().filter_map(split).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(Received { line, headers, body, connection })
}

/// A run of a series with two properties.
pub(crate) fn begin(run: u128, series: &'static str) -> Entry<'static> {
    let brakes = PropertyEntry {
        name: "brakes",
        severity: "critical",
        requirement: "SYS-7",
        text: "pedal.pressed -> within 100 ms brake.on",
    };
    let gap = PropertyEntry { name: "gap", severity: "warning", ..PropertyEntry::default() };
    Entry::Begin(Box::new(Begin {
        run: RunKey(run),
        series,
        host: "car",
        version: "0.1.0",
        begin: MORNING,
        properties: vec![brakes, gap],
        ..Begin::default()
    }))
}

/// A verdict with this number on an instance; the empty text is the property without parameters.
pub(crate) fn verdict(number: u32, parameters: &'static str, verdict: Truth) -> VerdictEntry<'static> {
    let json = format!(r#"{{"property":"brakes","number":{number}}}"#);
    let time = MORNING + i64::from(number) * SECOND;
    VerdictEntry {
        run: RunKey(1),
        id: Some(u128::from(number)),
        property: if parameters.is_empty() { "brakes" } else { "gap" },
        parameters,
        verdict,
        time,
        about: None,
        is_after: false,
        reported: time + SECOND / 2,
        step: Some(u64::from(number)),
        lap: 1,
        robustness: None,
        values: "",
        explanation: "",
        latency: None,
        missing: "",
        because_of: "",
        // A test has few verdicts.
        json: Box::leak(json.into_boxed_str()),
    }
}

/// Entries of violated verdicts with these numbers.
pub(crate) fn violated(numbers: std::ops::Range<u32>) -> Vec<Entry<'static>> {
    numbers.map(|number| Entry::Verdict(verdict(number, "", Truth::Violated))).collect()
}
