//! Folders, entries and queries for tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rondel_sinks::sqlite::{Filter, Format, Reader, SqliteSink, StoreOptions};
use rondel_sinks::{Begin, Entry, PropertyEntry, RunKey, RunKind, Sink, Truth, VerdictEntry, Written};

pub(crate) const LIMIT: Duration = Duration::from_secs(30);
/// 2026-11-29 00:00:00 UTC.
pub(crate) const MIDNIGHT: i64 = 1_795_910_400_000_000_000;
pub(crate) const SECOND: i64 = 1_000_000_000;

/// A folder that is removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}", std::process::id()));
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

pub(crate) fn open(path: &Path) -> SqliteSink {
    SqliteSink::open(path, StoreOptions::default()).unwrap()
}

pub(crate) fn begin(run: u128, series: &'static str) -> Begin<'static> {
    let property = |name, severity| PropertyEntry { name, severity, requirement: "SYS-1", text: "t.x < 3" };
    Begin {
        run: RunKey(run),
        series,
        kind: RunKind::Live,
        begin: MIDNIGHT,
        specification: "brakes.rondel",
        specification_hash: "0f3a",
        configuration: "rondel.yaml",
        configuration_hash: "77b1",
        version: "0.1.0",
        host: "car",
        properties: vec![property("p", "critical"), property("q", "")],
        ..Begin::default()
    }
}

/// A verdict at a time in seconds since midnight.
pub(crate) fn verdict(run: u128, property: &'static str, truth: Truth, at: i64) -> VerdictEntry<'static> {
    let time = MIDNIGHT + at * SECOND;
    // Different for different verdicts.
    let id = (time as u128) << 32 | run << 16 | u128::from(property.as_bytes()[0]) << 8 | truth as u128;
    VerdictEntry {
        run: RunKey(run),
        id: Some(id),
        property,
        parameters: "",
        verdict: truth,
        time,
        about: None,
        is_after: false,
        reported: time + SECOND,
        step: Some(at.unsigned_abs()),
        lap: 1,
        robustness: None,
        values: "",
        explanation: "",
        latency: None,
        missing: "",
        because_of: "",
        json: "",
    }
}

pub(crate) fn write(sink: &mut SqliteSink, entries: &[Entry<'_>]) -> Written {
    sink.write(entries, LIMIT).unwrap()
}

/// The rows of a query, without the header, in CSV.
pub(crate) fn query(path: &Path, sql: &str) -> Vec<String> {
    let rows = Reader::open(path, LIMIT).unwrap().sql(sql, usize::MAX).unwrap().text(Format::Csv);
    rows.lines().skip(1).map(str::to_owned).collect()
}

/// The rows of a view in JSON.
pub(crate) fn view(path: &Path, name: &str, filter: &Filter<'_>) -> Vec<serde_json::Value> {
    let rows = Reader::open(path, LIMIT).unwrap().view(name, filter, usize::MAX).unwrap();
    rows.text(Format::Json).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
