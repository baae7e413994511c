//! Any bytes as a log of PX4 (ULog): no panic, an end, and the same messages read again, and of one topic alone; and every
//! message is one of its definition, or is refused.

#![no_main]

use std::io::Write as _;
use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use rondel_decode::cdr::write_packed_json;
use rondel_decode::json::JsonForm;
use rondel_decode::schema::{Library, Schema};
use rondel_recording::{McapRecording, RecordedTopic, Recording, RecordingError, Selection};

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

/// The type of a topic, if its definition can be used.
fn schema(topic: &RecordedTopic) -> Option<Schema> {
    let recorded = topic.schema.as_ref()?;
    let mut library = Library::new();
    library.add_ros1_msg(&recorded.name, std::str::from_utf8(&recorded.data).ok()?).ok()?;
    library.schema(&recorded.name).ok()
}

fuzz_target!(|bytes: &[u8]| {
    let path = PathBuf::from(format!("/dev/shm/rondel-fuzz-{}.ulg", std::process::id()));
    std::fs::File::create(&path).and_then(|mut file| file.write_all(bytes)).unwrap();
    if let Ok(mut recording) = McapRecording::open_ulog(&path) {
        let topics = recording.topics().len();
        let schemas: Vec<Option<Schema>> = recording.topics().iter().take(16).map(schema).collect();
        let (messages, is_wrong) = read(&mut recording);
        let mut json = Vec::new();
        for (topic, _, payload) in &messages {
            assert!(*topic < topics);
            if let Some(Some(schema)) = schemas.get(*topic) {
                json.clear();
                let _ = write_packed_json(schema, payload, JsonForm::EXACT, 1 << 16, &mut json);
            }
        }
        let again = read(&mut McapRecording::open_ulog(&path).unwrap());
        assert_eq!((&messages, is_wrong), (&again.0, again.1));
        if topics > 0 {
            let mut one = McapRecording::open_ulog(&path).unwrap();
            one.select(Selection::of_topics((0..topics).map(|topic| topic == 0).collect()));
            let all: Vec<&Message> = messages.iter().filter(|(topic, ..)| *topic == 0).collect();
            let (found, _) = read(&mut one);
            assert_eq!(found.iter().collect::<Vec<_>>(), all);
        }
    }
    let _ = std::fs::remove_file(&path);
});
