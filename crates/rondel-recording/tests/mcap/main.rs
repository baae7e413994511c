//! Reading MCAP files: valid ones of every form, damaged ones, and those of PyPI's `mcap`; and writing them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

mod write;
mod written;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rondel_event::Timestamp;
use rondel_recording::{McapRecording, Recording, RecordingError, Selection};
use write::{Chunk, Writer, channel, message, record, schema};

/// The topic, time and payload of a message.
type Message = (String, u64, Vec<u8>);

/// Expected error, and the change of a chunk that causes it.
type Case<'a> = (&'a str, &'a dyn Fn(&mut Chunk));

/// A file of a test, removed at its end.
struct File(PathBuf);

impl File {
    fn new(bytes: &[u8]) -> File {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("recording-{}-{number}.mcap", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, bytes).unwrap();
        File(path)
    }

    fn open(&self) -> Result<McapRecording, RecordingError> {
        McapRecording::open(&self.0)
    }

    /// Returns topic, time and payload of each readable message, and the errors.
    fn read(&self) -> (Vec<Message>, Vec<String>) {
        match self.open() {
            Ok(recording) => all(recording),
            Err(error) => (Vec::new(), vec![self.describe(&error)]),
        }
    }

    fn describe(&self, error: &RecordingError) -> String {
        error.to_string().replace(&format!("{}: ", self.0.display()), "")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn all(mut recording: McapRecording) -> (Vec<Message>, Vec<String>) {
    let names: Vec<String> = recording.topics().iter().map(|topic| topic.name.clone()).collect();
    let (mut messages, mut errors) = (Vec::new(), Vec::new());
    loop {
        match recording.next() {
            Ok(Some(m)) => {
                messages.push((names[m.topic].clone(), m.log_time.as_nanos() as u64, m.payload.to_vec()));
            }
            Ok(None) => return (messages, errors),
            Err(error) => errors.push(error.to_string().split(": ").skip(1).collect::<Vec<_>>().join(": ")),
        }
        assert!(errors.len() < 100, "{errors:?}");
    }
}

/// Returns the definitions of two channels.
fn definitions() -> Vec<u8> {
    [schema(1, "demo/msg/A", "ros2msg", b"int32 v"), channel(1, 1, "/a", "cdr"), channel(2, 0, "/b", "json")]
        .concat()
}

/// Returns ten messages on `/a` and on `/b`, from this time on.
fn messages(from: u64) -> Vec<u8> {
    let one = |i: u64| {
        [message(1, i as u32, from + 2 * i, b"1234"), message(2, 0, from + 2 * i + 1, b"{}")].concat()
    };
    (0..10).flat_map(one).collect()
}

/// Returns three chunks with their messages in order.
fn chunked(compression: &'static str) -> Writer {
    let mut writer = Writer::new();
    writer.add(&record(9, &[0; 40])); // an attachment
    for i in 0..3_u64 {
        let records = if i == 0 { [definitions(), messages(100)].concat() } else { messages(100 * (i + 1)) };
        let start = 100 * (i + 1);
        writer.chunk(&Chunk::new(compression, &records, start, start + 19), &[(1, 10), (2, 10)]);
    }
    writer
}

fn times(messages: &[Message]) -> Vec<u64> {
    messages.iter().map(|(_, time, _)| *time).collect()
}

fn expected() -> Vec<u64> {
    [100..120, 200..220, 300..320].into_iter().flatten().collect()
}

/// Returns a statistics record with the number of messages of each channel.
fn statistics(counts: &[(u16, u64)]) -> Vec<u8> {
    let mut body = vec![0; 8 + 2 + 4 * 4 + 16];
    body.extend((counts.len() as u32 * 10).to_le_bytes());
    counts.iter().for_each(|(channel, count)| {
        body.extend(channel.to_le_bytes());
        body.extend(count.to_le_bytes());
    });
    record(11, &body)
}

#[test]
fn messages_omitted_by_the_index_are_reported() {
    let of = |indexed: &[(u16, usize)], counts: &[(u16, u64)], compression| {
        let mut writer = Writer::new();
        for i in 0..3_u64 {
            let records =
                if i == 0 { [definitions(), messages(100)].concat() } else { messages(100 * (i + 1)) };
            let chunk = Chunk::new(compression, &records, 100 * (i + 1), 100 * (i + 1) + 19);
            writer.chunk(&chunk, if i == 1 { indexed } else { &[(1, 10), (2, 10)] });
        }
        File::new(&writer.finish(Some(&[definitions(), statistics(counts)].concat())))
    };
    let only_b = |file: &File| {
        let mut recording = file.open().unwrap();
        recording.select(Selection::of_topics(vec![false, true]));
        let (messages, errors) = all(recording);
        (messages.len(), errors)
    };
    for compression in ["", "zstd"] {
        let whole = of(&[(1, 10), (2, 10)], &[(1, 30), (2, 30)], compression);
        assert_eq!((whole.read().0.len(), whole.read().1), (60, Vec::new()));
        assert_eq!(only_b(&whole), (30, Vec::new()));
        // The second chunk has ten messages of `/b` that its index omits.
        let hidden = of(&[(1, 10)], &[(1, 30), (2, 30)], compression);
        let (count, errors) = only_b(&hidden);
        assert_eq!((count, errors.len()), (20, 1), "{errors:?}");
        assert!(errors[0].contains("10 more messages"), "{errors:?}");
        // With the other topic the chunk is read anyway.
        assert_eq!((hidden.read().0.len(), hidden.read().1), (60, Vec::new()));
        // The number of messages of a time span is unknown.
        let mut part = hidden.open().unwrap();
        let until = Timestamp::from_nanos(250);
        part.select(Selection { until, ..Selection::of_topics(vec![false, true]) });
        assert_eq!(all(part).1, Vec::<String>::new());
    }
}

#[test]
fn every_form_gives_the_same_messages() {
    let mut loose = Writer::new();
    loose
        .add(&definitions())
        .add(&messages(100))
        .add(&record(12, b"metadata"))
        .add(&messages(200))
        .add(&messages(300));
    let files = [
        ("index", chunked("").finish(Some(&definitions()))),
        ("zstd", chunked("zstd").finish(Some(&definitions()))),
        ("lz4", chunked("lz4").finish(Some(&definitions()))),
        ("definitions only in chunks", chunked("zstd").finish(Some(&[]))),
        ("no index", chunked("zstd").finish(None)),
        ("no chunks", loose.clone().finish(None)),
        ("no chunks, index", loose.finish(Some(&definitions()))),
    ];
    for (name, bytes) in files {
        let file = File::new(&bytes);
        let recording = file.open().unwrap();
        let first = &recording.topics()[0];
        assert_eq!((first.name.as_str(), first.encoding.as_str()), ("/a", "cdr"), "{name}");
        assert_eq!(first.schema.as_ref().unwrap().data, b"int32 v", "{name}");
        assert_eq!(recording.topics()[1].schema, None, "{name}");
        let (messages, errors) = all(recording);
        assert_eq!((times(&messages), errors), (expected(), vec![]), "{name}");
        assert!(messages.iter().all(|(topic, time, payload)| {
            let (name, expected): (&str, &[u8]) = if time % 2 == 0 { ("/a", b"1234") } else { ("/b", b"{}") };
            topic == name && payload == expected
        }));
    }
}

#[test]
fn only_selected_topics_and_times_are_read() {
    let mut writer = Writer::new();
    let noise = |from: u64| (0..50).flat_map(|i| message(2, 0, from + i, &[7; 4000])).collect::<Vec<u8>>();
    let mut rare = 0;
    for i in 0..40_u64 {
        let mut records = noise(100 * i);
        let mut channels = vec![(2, 50)];
        if i % 10 == 3 {
            records.extend(message(1, 0, 100 * i + 60, b"1234"));
            channels.push((1, 1));
        }
        let chunk = Chunk::new("", &records, 100 * i, 100 * i + 60);
        if i % 10 == 3 {
            rare += chunk.records.len() as u64;
        }
        writer.chunk(&chunk, &channels);
    }
    let file = File::new(&writer.finish(Some(&definitions())));
    let mut recording = file.open().unwrap();
    recording.select(Selection::of_topics(vec![true]));
    let mut found = Vec::new();
    while let Some(message) = recording.next().unwrap() {
        found.push(message.log_time.as_nanos());
    }
    assert_eq!(found, [360, 1360, 2360, 3360]);
    let read = recording.progress().bytes_read;
    assert!(read <= 2 * rare, "{read} of {rare}");
    let mut recording = file.open().unwrap();
    let (from, until) = (Timestamp::from_nanos(1010), Timestamp::from_nanos(1360));
    recording.select(Selection { from, until, ..Selection::of_topics(vec![true, true]) });
    let mut found = Vec::new();
    while let Some(message) = recording.next().unwrap() {
        found.push(message.log_time.as_nanos());
    }
    assert_eq!((found.len(), found[0], found[found.len() - 1]), (40 + 50 + 50 + 50 + 1, 1010, 1360));
}

#[test]
fn messages_of_overlapping_chunks_come_in_order() {
    let mut writer = Writer::new();
    writer.add(&definitions());
    let part =
        |times: &[u64]| times.iter().flat_map(|time| message(1, 0, *time, b"1234")).collect::<Vec<u8>>();
    for times in [&[5, 1, 9][..], &[2, 3, 30], &[20, 10], &[40]] {
        let (first, last) = (*times.iter().min().unwrap(), *times.iter().max().unwrap());
        writer.chunk(&Chunk::new("zstd", &part(times), first, last), &[(1, times.len())]);
    }
    for index in [None, Some(&*definitions())] {
        let (messages, errors) = File::new(&writer.clone().finish(index)).read();
        assert_eq!((times(&messages), errors), (vec![1, 2, 3, 5, 9, 10, 20, 30, 40], vec![]));
    }
}

#[test]
fn a_file_cut_at_every_byte_is_read_up_to_there() {
    let mut compared = 0;
    for compression in ["", "zstd", "lz4"] {
        let whole = chunked(compression).finish(Some(&definitions()));
        let (complete, errors) = File::new(&whole).read();
        assert_eq!(errors, [""; 0]);
        let mut most = 0;
        for length in 0..whole.len() {
            let (messages, errors) = File::new(&whole[..length]).read();
            assert!(!errors.is_empty(), "{length} of {} without a word", whole.len());
            assert!(complete.starts_with(&messages), "{compression} {length}: {:?}", times(&messages));
            assert!(messages.len() >= most, "{compression} {length}: a longer file has fewer messages");
            most = messages.len();
            compared += 1;
        }
        assert_eq!(most, complete.len());
    }
    assert!(compared > 4000, "{compared}");
}

#[test]
fn a_changed_byte_does_not_panic() {
    let mut seed = 1_u64;
    for compression in ["zstd", "lz4", ""] {
        let whole = chunked(compression).finish(Some(&definitions()));
        for at in 0..whole.len() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut bytes = whole.clone();
            bytes[at] ^= (seed >> 40) as u8 | 1;
            let file = File::new(&bytes);
            let (messages, _) = file.read();
            assert!(messages.len() <= 60, "byte {at}");
        }
    }
}

#[test]
fn damage_is_named_with_its_place() {
    let whole = |change: &dyn Fn(&mut Chunk)| {
        let mut writer = Writer::new();
        writer.add(&definitions());
        writer.chunk(&Chunk::new("", &messages(100), 100, 119), &[(1, 10), (2, 10)]);
        let mut second = Chunk::new("zstd", &messages(200), 200, 219);
        change(&mut second);
        writer.chunk(&second, &[(1, 10), (2, 10)]);
        writer.chunk(&Chunk::new("lz4", &messages(300), 300, 319), &[(1, 10), (2, 10)]);
        writer.finish(Some(&definitions()))
    };
    let cases: [Case<'_>; 5] = [
        ("the checksum of a chunk is wrong", &|chunk| chunk.crc ^= 1),
        ("the compression 'brotli' is not known", &|chunk| chunk.compression = "brotli"),
        ("a chunk claims 4294967296 bytes, and the limit is 1 GiB", &|chunk| chunk.size = 1 << 32),
        ("a chunk of 1000000000 bytes ends after", &|chunk| chunk.size = 1_000_000_000),
        ("a chunk claims 4294967296 compressed bytes, and has", &|chunk| chunk.compressed_size = 1 << 32),
    ];
    for (expected, change) in cases {
        let (messages, errors) = File::new(&whole(change)).read();
        assert!(
            errors.len() == 1 && errors[0].starts_with("at byte ") && errors[0].contains(expected),
            "{errors:?}"
        );
        let without: Vec<u64> = [100..120, 300..320].into_iter().flatten().collect();
        // A chunk with a larger claimed size keeps its messages.
        let found = times(&messages);
        assert!(found == without || expected.contains("ends after"), "{expected}: {found:?}");
    }
    // Messages without a channel, and a channel without its type.
    let mut writer = Writer::new();
    writer.add(&channel(2, 77, "/b", "cdr"));
    writer.chunk(&Chunk::new("", &messages(100), 100, 119), &[(1, 10), (2, 10)]);
    let file = File::new(&writer.finish(None));
    assert_eq!(file.open().unwrap().topics()[0].schema, None);
    let (messages, errors) = file.read();
    assert_eq!(messages.len(), 10);
    assert!(errors[0].contains("10 messages are on channels that are not defined, such as 1"), "{errors:?}");
    // An invalid index is not used.
    let mut bytes = chunked("zstd").finish(Some(&definitions()));
    let at = bytes.len() - 60;
    bytes[at] ^= 1;
    let (messages, errors) = File::new(&bytes).read();
    assert_eq!(times(&messages), expected());
    assert!(errors[0].contains("the summary cannot be used: its checksum is wrong"), "{errors:?}");
    for (bytes, expected) in [
        (&b"PK\x03\x04 and so on"[..], "this is no MCAP file, but a ZIP archive"),
        (b"", "this is no MCAP file: it is empty"),
        (b"\x89MC", "this MCAP file is cut off after 3 bytes"),
        (b"hello", "this is no MCAP file: it begins differently"),
    ] {
        let (_, errors) = File::new(bytes).read();
        assert_eq!(errors, [expected]);
    }
}

#[test]
fn files_written_by_another_library_are_read() {
    let Some(python) = rondel_testkit::python("files_written_by_another_library_are_read", "mcap") else {
        return;
    };
    let mut compared = 0;
    for compression in ["NONE", "LZ4", "ZSTD"] {
        for (chunking, index) in [(true, true), (true, false), (false, true), (false, false)] {
            let file = File::new(b"");
            let script = format!(
                "
from mcap.writer import Writer, CompressionType, IndexType
import sys
writer = Writer({:?}, chunk_size=2000, compression=CompressionType.{compression}, use_chunking={},
                index_types=IndexType.{})
writer.start('ros2', 'test')
schema = writer.register_schema('demo/msg/A', 'ros2msg', b'int32 v')
channels = [writer.register_channel('/t%d' % i, 'cdr' if i else 'json', schema if i else 0) for i in range(3)]
for i in range(500):
    writer.add_message(channels[i % 3], log_time=1000 + i, data=b'%d' % i * 9, publish_time=i, sequence=i)
writer.add_attachment(5, 5, 'a', 'text/plain', b'x' * 100)
writer.finish()
",
                file.0,
                if chunking { "True" } else { "False" },
                if index { "ALL" } else { "NONE" },
            );
            let run = Command::new(&python).args(["-c", &script]).output().unwrap();
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
            let (messages, errors) = file.read();
            assert_eq!(errors, [""; 0], "{compression} {chunking} {index}");
            assert_eq!(
                times(&messages),
                (1000..1500).collect::<Vec<u64>>(),
                "{compression} {chunking} {index}"
            );
            let is_right = |(i, (topic, _, payload)): (usize, &Message)| {
                *topic == format!("/t{}", i % 3) && *payload == i.to_string().repeat(9).as_bytes()
            };
            assert!(messages.iter().enumerate().all(is_right));
            compared += messages.len();
        }
    }
    assert_eq!(compared, 6000);
}

/// Many chunks that overlap in time, one of them damaged.
#[test]
fn large_chunks_come_in_order_and_with_their_faults() {
    const CHUNKS: u64 = 40;
    const DAMAGED: u64 = 17;
    let mut writer = Writer::new();
    writer.add(&definitions());
    let (mut expected, mut seed) = (Vec::new(), 1_u64);
    for i in 0..CHUNKS {
        // Each chunk reaches into the times of the next.
        let times: Vec<u64> = (0..15).map(|k| 100 * i + 10 * k).collect();
        let mut payload = || {
            let mut next = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (seed >> 56) as u8
            };
            (0..4096).map(|_| next()).collect::<Vec<u8>>()
        };
        let records: Vec<u8> = times.iter().flat_map(|time| message(1, 0, *time, &payload())).collect();
        let mut chunk = Chunk::new("zstd", &records, times[0], times[14]);
        if i == DAMAGED {
            chunk.crc ^= 1;
        } else {
            expected.extend(times);
        }
        writer.chunk(&chunk, &[(1, 15)]);
    }
    expected.sort_unstable();
    let bytes = writer.finish(Some(&definitions()));
    let file = File::new(&bytes);
    let (messages, errors) = file.read();
    assert_eq!(times(&messages), expected);
    assert!(errors.len() == 1 && errors[0].contains("the checksum of a chunk is wrong"), "{errors:?}");
}
