//! Any bytes as a bag of ROS 1: no panic, an end, and the same messages read again, and of one topic alone.

#![no_main]

use std::io::Write as _;
use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use rondel_recording::{McapRecording, Recording, RecordingError, Selection};

/// The most steps of one reading: a file of a few kilobytes has no more messages and faults.
const STEPS: usize = 1 << 20;

/// A message: its topic, its time and its payload.
type Message = (usize, i64, Vec<u8>);

/// Reads a recording to its end; returns the messages, and whether something was wrong with it.
fn read(recording: &mut McapRecording) -> (Vec<Message>, bool) {
    let (mut messages, mut is_wrong) = (Vec::new(), false);
    for _ in 0..STEPS {
        match recording.next() {
            Ok(Some(message)) => {
                messages.push((message.topic, message.log_time.as_nanos(), message.payload.to_vec()));
            }
            Ok(None) => return (messages, is_wrong),
            Err(RecordingError::Damage { .. } | RecordingError::Cut { .. }) => is_wrong = true,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no end after {STEPS} steps");
}

fuzz_target!(|bytes: &[u8]| {
    let path = PathBuf::from(format!("/dev/shm/rondel-fuzz-{}.bag", std::process::id()));
    std::fs::File::create(&path).and_then(|mut file| file.write_all(bytes)).unwrap();
    if let Ok(mut recording) = McapRecording::open_ros1(&path) {
        let topics = recording.topics().len();
        let (messages, is_wrong) = read(&mut recording);
        assert!(messages.iter().all(|(topic, ..)| *topic < topics));
        let again = read(&mut McapRecording::open_ros1(&path).unwrap());
        assert_eq!((&messages, is_wrong), (&again.0, again.1));
        // A topic alone is a part of the whole; an index that is wrong may hide more of it.
        if topics > 0 {
            let mut one = McapRecording::open_ros1(&path).unwrap();
            one.select(Selection::of_topics((0..topics).map(|topic| topic == 0).collect()));
            let all = messages.iter().filter(|(topic, ..)| *topic == 0).count();
            let (found, _) = read(&mut one);
            assert!(found.iter().all(|(topic, ..)| *topic == 0) && found.len() <= all);
        }
    }
    let _ = std::fs::remove_file(&path);
});
