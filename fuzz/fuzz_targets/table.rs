//! Any bytes as a table: no panic, an end, the same messages read again, and every message is JSON.

#![no_main]

use std::io::Write as _;
use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use rondel_recording::{Recording, RecordingError, TableOptions, TableRecording};

/// The most steps of one reading: a row has at most one message for each of its columns.
const STEPS: usize = 1 << 22;

/// Reads a table to its end; returns the messages, and how many rows were wrong.
fn read(recording: &mut TableRecording) -> (Vec<(usize, i64, Vec<u8>)>, usize) {
    let (mut messages, mut wrong) = (Vec::new(), 0);
    for _ in 0..STEPS {
        match recording.next() {
            Ok(Some(message)) => {
                messages.push((message.topic, message.log_time.as_nanos(), message.payload.to_vec()));
            }
            Ok(None) => return (messages, wrong),
            Err(RecordingError::Row { .. } | RecordingError::Cut { .. }) => wrong += 1,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no end after {STEPS} steps");
}

fuzz_target!(|bytes: &[u8]| {
    let path = PathBuf::from(format!("/dev/shm/rondel-fuzz-{}.csv", std::process::id()));
    std::fs::File::create(&path).and_then(|mut file| file.write_all(bytes)).unwrap();
    let options = TableOptions::default();
    if let Ok(mut recording) = TableRecording::open(&path, &options) {
        let topics = recording.topics().len();
        let (messages, wrong) = read(&mut recording);
        for (topic, _, payload) in &messages {
            assert!(*topic < topics);
            // Numbers beyond those of JSON are infinite, as our own reader takes them.
            let is_infinite = payload.windows(5).any(|part| part == b"1e999");
            let parsed = serde_json::from_slice::<serde_json::Value>(payload);
            let is_large = parsed.as_ref().is_err_and(|error| error.to_string().contains("out of range"));
            assert!(parsed.is_ok() || is_infinite || is_large, "{}", String::from_utf8_lossy(payload));
        }
        assert_eq!(read(&mut TableRecording::open(&path, &options).unwrap()), (messages, wrong));
    }
    let _ = std::fs::remove_file(&path);
});
