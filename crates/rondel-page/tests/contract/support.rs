//! A store with verdicts, a run that is injected, and a page over both.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use rondel_page::{
    Access, Checker, Described, Figures, Kind, Live, Message, NetworkFigures, Page, Reply, Request, Settings,
    SinkFigures, TopicFigures, Trace,
};
use rondel_sinks::sqlite::{SqliteSink, StoreOptions};
use rondel_sinks::{Begin, Entry, Loss, PropertyEntry, Reached, RunKey, RunKind, Sink, Truth, VerdictEntry};
use rondel_spec::Sources;
use serde_json::{Value, json};

pub(crate) const SECOND: i64 = 1_000_000_000;
/// 2026-11-29 00:00:00 UTC.
pub(crate) const MIDNIGHT: i64 = 1_795_910_400 * SECOND;
/// The time of day of requests.
pub(crate) const NOW: i64 = MIDNIGHT + 100 * SECOND;
const LIMIT: Duration = Duration::from_secs(10);

pub(crate) const TEXT: &str = "topic speed \"/speed\" { value: float, label: string }
topic pose \"/pose\" { robot: int, x: float }
let fast = speed.value > 10
@severity(\"high\")
@requirement(\"SYS-1\")
property braking = not fast or speed.value < 3
property inside for each robot in pose.robot = abs(pose.x) < 5
property quiet = speed.label == \"x\"
";

/// A folder that is removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.0.join("verdicts.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn begin(run: u128, names: &'static [&'static str]) -> Entry<'static> {
    let property = |name: &&'static str| PropertyEntry {
        name,
        severity: "high",
        requirement: "SYS-1, SYS-2",
        text: "property text",
    };
    Entry::Begin(Box::new(Begin {
        run: RunKey(run << 96 | run),
        series: "car",
        kind: RunKind::Live,
        begin: MIDNIGHT,
        specification: "a.rondel",
        configuration: "rondel.yaml",
        version: "0.1.0",
        host: "car",
        properties: names.iter().map(property).collect(),
        ..Begin::default()
    }))
}

pub(crate) fn verdict(
    property: &'static str,
    parameters: &'static str,
    truth: Truth,
    at: i64,
) -> Entry<'static> {
    let time = MIDNIGHT + at * SECOND;
    Entry::Verdict(VerdictEntry {
        run: RunKey(1 << 96 | 1),
        id: None,
        property,
        parameters,
        verdict: truth,
        time,
        about: None,
        is_after: false,
        reported: time,
        step: Some(at.unsigned_abs()),
        lap: 1,
        robustness: (property == "braking").then_some(3.0 - at as f64),
        values: "",
        explanation: if truth == Truth::Violated {
            r#"[{"time":5,"step":3,"topic":"speed","values":{"speed.value":12,"fast":true,"y":null}},{"time":6,"after":true,"values":{}}]"#
        } else {
            ""
        },
        latency: None,
        missing: "",
        because_of: "",
        json: "",
    })
}

pub(crate) fn open(path: &Path) -> SqliteSink {
    SqliteSink::open(path, StoreOptions::default()).unwrap()
}

pub(crate) fn write(sink: &mut SqliteSink, entries: &[Entry<'_>]) {
    sink.write(entries, LIMIT).unwrap();
}

/// A store with verdicts on three properties, and losses.
pub(crate) fn filled(path: &Path) -> SqliteSink {
    use Truth::{Inconclusive, Satisfied, Violated};
    let mut sink = open(path);
    let (run, from) = (RunKey(1 << 96 | 1), MIDNIGHT + 20 * SECOND);
    write(
        &mut sink,
        &[
            begin(1, &["braking", "inside", "quiet"]),
            verdict("braking", "", Satisfied, 1),
            verdict("inside", r#"{"robot":1}"#, Satisfied, 2),
            verdict("inside", r#"{"robot":2}"#, Violated, 3),
            verdict("inside", r#"{"robot":3}"#, Inconclusive, 4),
            verdict("braking", "", Violated, 10),
            verdict("braking", "", Satisfied, 20),
            verdict("braking", "", Inconclusive, 25),
            verdict("braking", "", Violated, 30),
            Entry::Loss(Loss { run, reason: "lost", subject: "speed", count: 7, from, until: from + SECOND }),
            Entry::Loss(Loss { run, reason: "file full", subject: "mqtt:a", count: 1, from, until: from }),
            Entry::Reached(Reached { run, time: MIDNIGHT + 60 * SECOND, reported: NOW }),
        ],
    );
    sink
}

/// A run with fixed figures.
#[derive(Default)]
pub(crate) struct FixedRun {
    pub(crate) is_watched: AtomicBool,
    pub(crate) is_stalled: AtomicBool,
    pub(crate) is_behind: AtomicBool,
}

impl Live for FixedRun {
    fn figures(&self) -> Option<Figures> {
        if self.is_stalled.load(Ordering::Relaxed) {
            return None;
        }
        let topic = |name: &str, latest: Option<i64>| TopicFigures {
            name: name.to_owned(),
            address: format!("zenoh:{name}"),
            message_type: Some("json".to_owned()),
            messages: 100,
            bytes: 1000,
            measured: 50,
            latest,
            late: 1,
            lost: 2,
            undecodable: 3,
            publishers: latest.filter(|latest| *latest < NOW).map(|_| 2),
        };
        let is_behind = self.is_behind.load(Ordering::Relaxed);
        Some(Figures {
            // The clock of the publisher is a day ahead.
            topics: vec![topic("speed", Some(NOW - SECOND)), topic("pose", Some(NOW + 86_400 * SECOND))],
            networks: vec![NetworkFigures { name: "zenoh".into(), is_connected: true, outages: 1 }],
            sinks: vec![SinkFigures {
                name: "mqtt:a".into(),
                is_connected: Some(false),
                waiting: 5,
                lost: 1,
            }],
            reasons: is_behind.then(|| "the store v.db is behind".to_owned()).into_iter().collect(),
            behind_since: is_behind.then_some(NOW - SECOND),
            messages: 200,
            reached: Some(MIDNIGHT + 70 * SECOND),
        })
    }

    fn message(&self, topic: &str) -> Option<Message> {
        let value = match topic {
            "speed" => Ok(json!({"value": 12.5, "label": "<script>".repeat(1 << 20)})),
            _ => Err("the message has 10000000 bytes; messages up to 256 KiB are shown".to_owned()),
        };
        Some(Message { received: NOW - SECOND, bytes: 100, value })
    }

    fn watch(&self, is_watched: bool) {
        self.is_watched.store(is_watched, Ordering::Relaxed);
    }
}

/// A checker whose result names what was checked.
#[derive(Debug)]
pub(crate) struct FixedChecker;

impl Checker for FixedChecker {
    fn recordings(&self) -> Vec<String> {
        vec!["one.jsonl".to_owned(), "two.mcap".to_owned()]
    }

    fn file(&self) -> Option<String> {
        Some("a.rondel".to_owned())
    }

    fn check(&self, specification: &str, trace: Trace<'_>) -> Result<Value, String> {
        match specification {
            "endless" => Err("the check was cut off".to_owned()),
            _ => Ok(json!({
                "diagnostics": [], "error": format!("{trace:?}"), "remarks": [], "events": 0, "begin": null, "end": null,
                "properties": [], "signals": [],
            })),
        }
    }

    fn save(&self, specification: &str) -> Result<(), String> {
        match specification {
            "full" => Err("cannot write a.rondel: no space left".to_owned()),
            _ => Ok(()),
        }
    }
}

/// A page of a store.
pub(crate) fn page(store: &Path, kind: Kind, actions: bool) -> Page {
    let access = Access { actions, ..Access::local("127.0.0.1:0".parse().unwrap()) };
    Page::new(Settings {
        kind,
        name: None,
        store: store.to_owned(),
        series: None,
        access,
        playground: (kind != Kind::Run).then(|| Arc::new(FixedChecker) as Arc<dyn Checker>),
        version: "0.1.0".to_owned(),
        features: vec!["sqlite".to_owned()],
        signals: Vec::new(),
    })
}

/// The page of a run.
pub(crate) fn run_page(store: &Path) -> (Page, Arc<FixedRun>) {
    let (page, run) = (page(store, Kind::Run, true), Arc::new(FixedRun::default()));
    page.show(described(TEXT), Some(Arc::clone(&run) as Arc<dyn Live>));
    (page, run)
}

pub(crate) fn described(text: &str) -> Described {
    let spec = rondel_spec::parse(text).spec.unwrap();
    Described::of(&Sources::alone("a.rondel", text), &spec, &|_| Some("zenoh".to_owned()))
}

pub(crate) fn ask(page: &Page, request: Request) -> (u16, Value) {
    let request = Request { host: Some("localhost:8080".to_owned()), ..request };
    // Later than the request before, so that nothing is answered from memory, and no limit of rates is reached.
    static REQUESTS: AtomicI64 = AtomicI64::new(0);
    let passed = REQUESTS.fetch_add(1, Ordering::Relaxed) * SECOND;
    let Reply { status, body, .. } = page.answer(&request, NOW + passed);
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

/// The answer to a request that succeeds.
pub(crate) fn get(page: &Page, target: &str) -> Value {
    let (status, answer) = ask(page, Request::get(target));
    assert_eq!(status, 200, "{target}: {answer}");
    answer
}
