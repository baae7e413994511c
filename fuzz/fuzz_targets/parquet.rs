//! Any bytes as a Parquet table: an end, the same messages read again, and no panic of our own (those of the library become
//! damage).

#![no_main]

use std::io::Write as _;
use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use rondel_recording::{Recording, RecordingError, TableOptions, TableRecording};

/// The most steps of one reading.
const STEPS: usize = 1 << 22;

/// Reads a table to its end; returns how many messages it has, their bytes, and how much was wrong.
fn read(recording: &mut TableRecording) -> (usize, usize, usize) {
    let (mut messages, mut bytes, mut wrong) = (0, 0, 0);
    for _ in 0..STEPS {
        match recording.next() {
            Ok(Some(message)) => {
                messages += 1;
                bytes += message.payload.len();
            }
            Ok(None) => return (messages, bytes, wrong),
            Err(RecordingError::Damage { .. } | RecordingError::Row { .. }) => wrong += 1,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no end after {STEPS} steps");
}

// What the library does not expect is caught, wherever in its own dependencies it panics; the usual hook would end the
// fuzzer there. A panic that is not caught still does.
fuzz_target!(init: std::panic::set_hook(Box::new(|_| {})), |bytes: &[u8]| {
    let path = PathBuf::from(format!("/dev/shm/rondel-fuzz-{}.parquet", std::process::id()));
    std::fs::File::create(&path).and_then(|mut file| file.write_all(bytes)).unwrap();
    let options = TableOptions::default();
    if let Ok(mut recording) = TableRecording::open(&path, &options) {
        let first = read(&mut recording);
        assert_eq!(read(&mut TableRecording::open(&path, &options).unwrap()), first);
    }
    let _ = std::fs::remove_file(&path);
});
