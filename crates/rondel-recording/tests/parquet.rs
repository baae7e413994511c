//! Parquet tables: values of every type, selected columns, and damage anywhere.

#![cfg(feature = "parquet")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use std::path::{Path, PathBuf};

use rondel_event::Timestamp;
use rondel_recording::{Recording, RecordingError, Selection, TableOptions, TableRecording, WantedField};
use rondel_testkit::Random;

/// Tables written by `pyarrow`.
const TABLES: [&str; 8] = ["plain", "snappy", "zstd", "gzip", "lz4", "delta", "columns", "kinds"];

fn written(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parquet").join(format!("{name}.parquet"))
}

fn open(path: &Path) -> Result<TableRecording, RecordingError> {
    TableRecording::open(path, &TableOptions::default())
}

/// Returns all messages and the errors.
fn read(recording: &mut TableRecording) -> (Vec<(i64, String)>, Vec<RecordingError>) {
    let (mut messages, mut wrong) = (Vec::new(), Vec::new());
    for _ in 0..10_000 {
        match recording.next() {
            Ok(Some(message)) => {
                let text = std::str::from_utf8(message.payload).unwrap();
                messages.push((message.log_time.as_nanos(), text.to_owned()));
            }
            Ok(None) => return (messages, wrong),
            Err(error) => wrong.push(error),
        }
    }
    panic!("no end");
}

#[test]
fn values_of_every_type_become_json() {
    let mut recording = open(&written("kinds")).unwrap();
    let (messages, wrong) = read(&mut recording);
    assert!(wrong.is_empty(), "{wrong:?}");
    let expected = [
        r#"{"decimal":1.50,"large":18446744073709551615,"negative":-9223372036854775808,"half":0.5,"single":0.10000000149011612,"day":"2026-11-22T00:00:00Z","stamp":"1970-01-01T00:00:01.5Z","words":["a\"b","",null],"text":"12"}"#,
        r#"{"decimal":-0.05,"large":0,"negative":-1,"half":-65504.0,"single":null,"words":[],"text":""}"#,
        r#"{"half":1e999,"single":-1e999,"day":"1969-12-31T00:00:00Z","stamp":"1969-12-31T23:59:59.999999Z"}"#,
    ];
    let begin = 1_795_371_360_000_000_000;
    for (i, (time, message)) in messages.iter().enumerate() {
        assert_eq!((*time, &**message), (begin + i as i64 * 1_000_000_000, expected[i]));
    }
    assert_eq!(messages.len(), 3);
    let end = Timestamp::from_nanos(begin + 2_000_000_000);
    assert_eq!(recording.span(), Some((Timestamp::from_nanos(begin), end)));
}

#[test]
fn only_needed_columns_are_read() {
    let mut all = open(&written("plain")).unwrap();
    let (messages, wrong) = read(&mut all);
    assert_eq!((messages.len(), wrong.len()), (120, 0));
    let mut some = open(&written("plain")).unwrap();
    let gear = some.topics().iter().position(|topic| topic.name == "gear").unwrap();
    let selected = (0..some.topics().len()).map(|topic| topic == gear).collect();
    some.select(Selection::of_topics(selected));
    some.want(
        gear,
        &[WantedField { path: rondel_event::Path::keys(["report"]), kind: None, of_elements: false }],
    );
    let (of_gear, wrong) = read(&mut some);
    assert_eq!((of_gear.len(), wrong.len()), (30, 0));
    assert_eq!(of_gear[2].1, r#"{"report":1}"#);
    assert!(some.progress().bytes_read < all.progress().bytes_read);
    // Unreadable lists of structures are reported.
    let mut other = open(&written("plain")).unwrap();
    other.want(
        gear,
        &[WantedField { path: rondel_event::Path::keys(["points"]), kind: None, of_elements: false }],
    );
    let (_, wrong) = read(&mut other);
    assert!(wrong[0].to_string().contains("column `points` is not read"), "{wrong:?}");
}

#[test]
fn damaged_parts_are_reported() {
    // This compression is not compiled in.
    let (messages, wrong) = read(&mut open(&written("brotli")).unwrap());
    assert!(messages.is_empty() && wrong.len() == 3, "{wrong:?}");
    assert!(wrong[0].to_string().contains("row group 1 of 3"), "{wrong:?}");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("damaged-{}.parquet", std::process::id()));
    let whole = std::fs::read(written("zstd")).unwrap();
    // The first row group only.
    let mut bytes = whole.clone();
    bytes[4..8].fill(0xff);
    std::fs::write(&path, &bytes).unwrap();
    let (messages, wrong) = read(&mut open(&path).unwrap());
    assert_eq!((messages.len(), wrong.len()), (70, 1), "{:?}", wrong.first());
    let text = wrong[0].to_string();
    for part in ["at byte 4: row group 1 of 3, column `time`: ", "the last 50 rows of it are not read"] {
        assert!(text.contains(part), "{text}");
    }
    // Without its end nothing can be found.
    std::fs::write(&path, &whole[..whole.len() - 20]).unwrap();
    let refused = open(&path).err().unwrap().to_string();
    assert!(refused.contains("its list of columns and row groups, at its end, cannot be read"), "{refused}");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn excessive_claims_are_rejected() {
    // A dictionary of some bytes that claims 100,000,000 entries, found by the fuzz target.
    let (_, wrong) = read(&mut open(&written("claims")).unwrap());
    assert!(wrong.iter().any(|wrong| wrong.to_string().contains(" claims ")), "{wrong:?}");
}

#[test]
fn damage_anywhere_does_not_panic() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("flipped-{}.parquet", std::process::id()));
    let seeds = rondel_testkit::seeds("parquet-damage_anywhere_does_not_panic", 1500);
    let (cases, mut opened) = (seeds.left(), 0);
    for seed in seeds {
        let mut random = Random::new(seed);
        let mut bytes = std::fs::read(written(TABLES[seed as usize % TABLES.len()])).unwrap();
        if seed % 10 == 9 {
            bytes.truncate(random.index(bytes.len()));
        } else {
            for _ in 0..=random.index(3) {
                let at = random.index(bytes.len());
                bytes[at] ^= 1 << random.index(8);
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(mut recording) = open(&path) {
            opened += 1;
            let (messages, wrong) = read(&mut recording);
            let (again, wrong_again) = read(&mut open(&path).unwrap());
            assert_eq!((messages, wrong.len()), (again, wrong_again.len()), "seed {seed}");
        }
    }
    assert!(rondel_testkit::is_replay() || opened * 4 > cases, "{opened} of {cases}");
    std::fs::remove_file(&path).unwrap();
}
