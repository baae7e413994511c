//! Writing MCAP files: read back by the reader of this crate, and by PyPI's `mcap`, `mcap-ros2-support` and `rosbags`.

use std::process::Command;

use rondel_recording::{Compression, McapWriter, MessageHead, RecordedSchema, Recording, WriterOptions};

use super::{File, Message};

const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd];

/// Returns an unused file name, and a writer of that file.
fn create(compression: Compression, chunk_size: usize) -> (File, McapWriter) {
    let file = File::new(b"");
    std::fs::remove_file(&file.0).unwrap();
    let options =
        WriterOptions { compression, chunk_size, profile: "ros2".into(), ..WriterOptions::default() };
    let writer = McapWriter::create(&file.0, &options).unwrap();
    (file, writer)
}

fn schema(name: &str, encoding: &str, data: &str) -> RecordedSchema {
    RecordedSchema { name: name.into(), encoding: encoding.into(), data: data.into() }
}

/// Returns a message of `std_msgs/msg/String`.
fn cdr(text: &str) -> Vec<u8> {
    let length = (text.len() as u32 + 1).to_le_bytes();
    [&[0, 1, 0, 0], &length[..], text.as_bytes(), &[0]].concat()
}

/// Writes `count` messages on two channels; returns them.
fn fill(writer: &mut McapWriter, count: u64) -> Vec<Message> {
    fill_with(writer, count, false)
}

/// Like `fill`; the second channel is one of ROS 2 too, or has JSON.
fn fill_with(writer: &mut McapWriter, count: u64, of_ros: bool) -> Vec<Message> {
    let text = writer.schema(&schema("std_msgs/msg/String", "ros2msg", "string data")).unwrap();
    let metadata = [("offered_qos_profiles".to_owned(), String::new())];
    let said = writer.channel("/said", "cdr", text, &metadata).unwrap();
    let state = match of_ros {
        true => text,
        false => writer.schema(&schema("state", "jsonschema", r#"{"type":"object"}"#)).unwrap(),
    };
    let state = writer.channel("robot/state", if of_ros { "cdr" } else { "json" }, state, &[]).unwrap();
    let mut all = Vec::new();
    for i in 0..count {
        let (channel, topic, payload) = match i % 3 {
            0 => (state, "robot/state", format!("{{\"n\":{i}}}").into_bytes()),
            _ => (said, "/said", cdr(&format!("message {i}"))),
        };
        let log_time = 1_700_000_000_000_000_000 + i * 1_000_000;
        let head = MessageHead { channel, sequence: i as u32, log_time, publish_time: log_time - 5 };
        writer.message(&head, &payload).unwrap();
        all.push((topic.to_owned(), log_time, payload));
    }
    all
}

#[test]
fn written_messages_are_read_back() {
    for compression in COMPRESSIONS {
        for (chunk_size, count) in [(1, 20), (500, 100), (1 << 20, 3000), (1 << 20, 0)] {
            let (file, mut writer) = create(compression, chunk_size);
            let written = fill(&mut writer, count);
            assert_eq!(writer.messages(), count);
            writer.metadata("summary", &[("lost".to_owned(), "0".to_owned())]).unwrap();
            writer.finish().unwrap();
            assert!(writer.is_there());
            assert_eq!(writer.size(), std::fs::metadata(&file.0).unwrap().len());
            let (read, errors) = file.read();
            assert_eq!(errors, [""; 0], "{compression:?}");
            assert_eq!(read, written, "{compression:?}");
            let mut recording = file.open().unwrap();
            let topics = recording.topics();
            let messages: u64 = topics.iter().filter_map(|topic| topic.messages).sum();
            assert_eq!((topics.len(), messages), (2, count), "{compression:?}");
            assert_eq!(topics[0].schema.as_ref().unwrap().encoding, "ros2msg");
            assert_eq!(topics[0].metadata[0].0, "offered_qos_profiles");
            if let Some(first) = recording.next().unwrap() {
                assert_eq!(first.publish_time.as_nanos() as u64, written[0].1 - 5);
            }
        }
    }
}

#[test]
fn an_unfinished_file_has_all_its_chunks() {
    for compression in COMPRESSIONS {
        let (file, mut writer) = create(compression, 400);
        let written = fill(&mut writer, 100);
        let (read, errors) = file.read();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].contains("cut off"), "{errors:?}");
        assert!(read.len() > 80 && written.starts_with(&read), "{compression:?} {}", read.len());
        // At every byte, the messages written before are read.
        writer.finish().unwrap();
        let whole = std::fs::read(&file.0).unwrap();
        let mut most = 0;
        for end in (8..whole.len()).step_by(7) {
            let cut = File::new(&whole[..end]);
            let (read, errors) = cut.read();
            assert!(written.starts_with(&read) && !errors.is_empty(), "{compression:?} at {end}");
            assert!(read.len() >= most, "{compression:?} at {end}");
            most = read.len();
        }
        assert_eq!(most, 100);
    }
}

#[test]
fn an_existing_file_is_kept_and_a_removed_one_is_noticed() {
    let (file, mut writer) = create(Compression::Zstd, 400);
    fill(&mut writer, 10);
    assert!(McapWriter::create(&file.0, &WriterOptions::default()).is_err());
    assert!(writer.is_there());
    std::fs::remove_file(&file.0).unwrap();
    assert!(!writer.is_there());
    std::fs::write(&file.0, b"another").unwrap();
    assert!(!writer.is_there());
    let unknown = MessageHead { channel: 9, ..MessageHead::default() };
    assert!(writer.message(&unknown, b"").is_err());
}

/// A full disk, simulated by a limit of the size of files in a child process.
#[test]
fn a_full_disk_loses_only_the_chunks_that_do_not_fit() {
    let name = "written::a_full_disk_loses_only_the_chunks_that_do_not_fit";
    if std::env::var_os("RONDEL_TEST_LIMITED").is_none() {
        let own = std::env::current_exe().unwrap();
        // In blocks of 512 bytes; the signal of the limit is ignored, as by the command.
        let script =
            format!("trap '' XFSZ; ulimit -f 8; exec '{}' --exact {name} --nocapture", own.display());
        let run = Command::new("sh").args(["-c", &script]).env("RONDEL_TEST_LIMITED", "1").output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        return;
    }
    let (file, mut writer) = create(Compression::None, 300);
    let state = writer.channel("robot/state", "json", 0, &[]).unwrap();
    let (mut failures, mut last) = (0, String::new());
    for i in 0..100_u64 {
        let head = MessageHead { channel: state, sequence: 0, log_time: i + 1, publish_time: i + 1 };
        if let Err(error) = writer.message(&head, &[b'x'; 80]) {
            (failures, last) = (failures + 1, error.to_string());
        }
    }
    assert!(failures > 3 && last.contains("large"), "{failures} {last}");
    let (kept, lost) = (writer.messages(), writer.lost());
    assert!(lost > 10 && kept + lost == 100, "{kept} {lost}");
    assert!(writer.finish().is_err());
    let (read, errors) = file.read();
    assert!(read.len() as u64 + 3 >= kept && read.len() > 10, "{}", read.len());
    assert!(errors[0].contains("cut off"), "{errors:?}");
}

#[test]
fn other_libraries_read_written_files() {
    let test = "other_libraries_read_written_files";
    let Some(python) = rondel_testkit::python(test, "mcap, mcap_ros2, rosbags") else { return };
    let script = r#"
import sys
from pathlib import Path
from mcap.reader import make_reader, NonSeekingReader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore
name, count, finished = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "finished"
with open(name, "rb") as file:
    if finished:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        statistics = reader.get_summary().statistics
        assert statistics.message_count == count, statistics
        assert sum(statistics.channel_message_counts.values()) == count, statistics
        assert [m.metadata for m in reader.iter_metadata()] == [{"lost": "0"}]
        seen = [m.ros_msg.data if hasattr(m, "ros_msg") else m[3].data for m in reader.iter_decoded_messages(topics=["/said"])]
        assert seen == ["message %d" % i for i in range(count) if i % 3], seen[:5]
    file.seek(0)
    times = []
    try:
        for schema, channel, message in NonSeekingReader(file, validate_crcs=True).iter_messages(log_time_order=False):
            times.append(message.log_time)
            assert message.publish_time == message.log_time - 5
    except Exception as error:
        assert not finished, error
    expected = [1_700_000_000_000_000_000 + i * 1_000_000 for i in range(count)]
    assert times == expected if finished else len(times) > count // 2 and times == expected[:len(times)], len(times)
if sys.argv[4] == "true":
    store = get_typestore(Stores.ROS2_HUMBLE)
    with AnyReader([Path(name)], default_typestore=store) as reader:
        said = [c for c in reader.connections if c.topic == "/said"]
        texts = [reader.deserialize(raw, c.msgtype).data for c, time, raw in reader.messages(connections=said)]
    assert texts == ["message %d" % i for i in range(count) if i % 3], texts[:5]
print("read", count)
"#;
    for compression in COMPRESSIONS {
        // For `rosbags`, files with types that are not those of ROS 2 are no bags.
        let cases = [(1, true, true), (2000, true, true), (1 << 20, true, false), (2000, false, false)];
        for (chunk_size, finished, of_ros) in cases {
            let (file, mut writer) = create(compression, chunk_size);
            fill_with(&mut writer, 200, of_ros);
            if finished {
                writer.metadata("summary", &[("lost".to_owned(), "0".to_owned())]).unwrap();
                writer.finish().unwrap();
            }
            let name = file.0.to_str().unwrap();
            let state = if finished { "finished" } else { "unfinished" };
            let of_ros = of_ros.to_string();
            let run =
                Command::new(&python).args(["-c", script, name, "200", state, &of_ros]).output().unwrap();
            let stderr = String::from_utf8_lossy(&run.stderr);
            assert!(run.status.success(), "{compression:?} {chunk_size} {state}: {stderr}");
        }
    }
}
