//! Bags of ROS 1: valid ones of every compression, without an index, cut off anywhere, and damaged.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rondel_event::Timestamp;
use rondel_recording::{McapRecording, Recording, RecordingError, Selection, open_messages};

/// The topic, time and payload of a message.
type Message = (String, i64, Vec<u8>);

/// A file of a test, removed at its end.
struct File(PathBuf);

impl File {
    fn new(bytes: &[u8]) -> File {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("ros1-{}-{}.bag", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, bytes).unwrap();
        File(path)
    }

    /// Returns the readable messages and the errors.
    fn read(&self, selection: Option<Selection>) -> (Vec<Message>, Vec<String>) {
        let text = |error: RecordingError| error.to_string().replace(&format!("{}: ", self.0.display()), "");
        let mut recording = match McapRecording::open_ros1(&self.0) {
            Ok(recording) => recording,
            Err(error) => return (Vec::new(), vec![text(error)]),
        };
        if let Some(selection) = selection {
            recording.select(selection);
        }
        let names: Vec<String> = recording.topics().iter().map(|topic| topic.name.clone()).collect();
        let (mut messages, mut errors) = (Vec::new(), Vec::new());
        for _ in 0..100_000 {
            match recording.next() {
                Ok(Some(message)) => {
                    let time = message.log_time.as_nanos();
                    messages.push((names[message.topic].clone(), time, message.payload.to_vec()));
                }
                Ok(None) => return (messages, errors),
                Err(error) => errors.push(text(error)),
            }
        }
        panic!("no end");
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn block(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat()
}

fn header(fields: &[(&str, &[u8])]) -> Vec<u8> {
    fields.iter().flat_map(|(name, value)| block(&[name.as_bytes(), b"=", value].concat())).collect()
}

fn record(fields: &[(&str, &[u8])], data: &[u8]) -> Vec<u8> {
    [block(&header(fields)), block(data)].concat()
}

fn time(nanos: i64) -> Vec<u8> {
    let (seconds, nanos) = ((nanos / 1_000_000_000) as u32, (nanos % 1_000_000_000) as u32);
    [seconds.to_le_bytes(), nanos.to_le_bytes()].concat()
}

fn connection(id: u32, topic: &str, more: &[(&str, &[u8])]) -> Vec<u8> {
    let mut own: Vec<(&str, &[u8])> = vec![
        ("topic", topic.as_bytes()),
        ("type", b"std_msgs/UInt8"),
        ("md5sum", b"x"),
        ("message_definition", b"uint8 data\n"),
    ];
    own.extend(more);
    record(&[("op", &[7]), ("conn", &id.to_le_bytes()), ("topic", topic.as_bytes())], &header(&own))
}

/// A bag that is being written.
struct Bag {
    compression: &'static str,
    bytes: Vec<u8>,
    infos: Vec<Vec<u8>>,
    connections: Vec<Vec<u8>>,
}

impl Bag {
    fn new(compression: &'static str) -> Bag {
        Bag { compression, bytes: b"#ROSBAG V2.0\n".to_vec(), infos: Vec::new(), connections: Vec::new() }
    }

    /// Adds a chunk with messages: connection, time and payload; new connections are defined before their first
    /// message.
    fn chunk(&mut self, messages: &[(u32, i64, u8)]) {
        if self.infos.is_empty() && self.bytes.len() == 13 {
            self.bytes.extend(vec![0; bag_header(0, 0, 0).len()]);
        }
        let place = self.bytes.len() as u64;
        let mut records = Vec::new();
        let mut counts: Vec<(u32, u32)> = Vec::new();
        for (id, at, payload) in messages {
            while self.connections.len() <= *id as usize {
                let own =
                    connection(self.connections.len() as u32, &format!("/t{}", self.connections.len()), &[]);
                records.extend(&own);
                self.connections.push(own);
            }
            let fields: [(&str, &[u8]); 3] =
                [("op", &[2]), ("conn", &id.to_le_bytes()), ("time", &time(*at))];
            records.extend(record(&fields, &[*payload]));
            match counts.iter_mut().find(|(own, _)| own == id) {
                Some((_, count)) => *count += 1,
                None => counts.push((*id, 1)),
            }
        }
        self.bytes.extend(chunk_record(self.compression, &records));
        for (id, count) in &counts {
            let fields: [(&str, &[u8]); 4] = [
                ("op", &[4]),
                ("ver", &1_u32.to_le_bytes()),
                ("conn", &id.to_le_bytes()),
                ("count", &count.to_le_bytes()),
            ];
            self.bytes.extend(record(&fields, &vec![0; *count as usize * 12]));
        }
        let times = messages.iter().map(|(_, at, _)| *at);
        let fields: [(&str, &[u8]); 6] = [
            ("op", &[6]),
            ("ver", &1_u32.to_le_bytes()),
            ("chunk_pos", &place.to_le_bytes()),
            ("start_time", &time(times.clone().min().unwrap())),
            ("end_time", &time(times.max().unwrap())),
            ("count", &(counts.len() as u32).to_le_bytes()),
        ];
        let data: Vec<u8> =
            counts.iter().flat_map(|(id, count)| [id.to_le_bytes(), count.to_le_bytes()].concat()).collect();
        self.infos.push(record(&fields, &data));
    }

    fn finish(mut self, has_index: bool) -> Vec<u8> {
        let place = if has_index { self.bytes.len() as u64 } else { 0 };
        let head = bag_header(place, self.connections.len() as u32, self.infos.len() as u32);
        self.bytes[13..13 + head.len()].copy_from_slice(&head);
        if has_index {
            self.bytes.extend([self.connections, self.infos].concat().concat());
        }
        self.bytes
    }
}

fn chunk_record(compression: &str, records: &[u8]) -> Vec<u8> {
    let data = match compression {
        "bz2" => {
            let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
            out.write_all(records).unwrap();
            out.finish().unwrap()
        }
        "lz4" => {
            let mut out = lz4::EncoderBuilder::new().build(Vec::new()).unwrap();
            out.write_all(records).unwrap();
            out.finish().0
        }
        _ => records.to_vec(),
    };
    let size = (records.len() as u32).to_le_bytes();
    record(&[("op", &[5]), ("compression", compression.as_bytes()), ("size", &size)], &data)
}

fn bag_header(place: u64, connections: u32, chunks: u32) -> Vec<u8> {
    let fields = header(&[
        ("op", &[3]),
        ("index_pos", &place.to_le_bytes()),
        ("conn_count", &connections.to_le_bytes()),
        ("chunk_count", &chunks.to_le_bytes()),
    ]);
    let padding = vec![b' '; 4096 - 8 - fields.len()];
    [block(&fields), block(&padding)].concat()
}

/// Returns three chunks whose times overlap, with three connections.
fn written(compression: &'static str, has_index: bool) -> Vec<u8> {
    let mut bag = Bag::new(compression);
    bag.chunk(&[(0, 1_000_000_001, 1), (1, 2_000_000_000, 2), (0, 4_000_000_000, 4)]);
    bag.chunk(&[(1, 3_000_000_000, 3), (2, 5_000_000_000, 5)]);
    bag.chunk(&[(2, 7_000_000_000, 7), (0, 6_000_000_000, 6), (0, 4_294_967_295_999_999_999, 8)]);
    bag.finish(has_index)
}

fn payloads(messages: &[Message]) -> Vec<u8> {
    messages.iter().map(|(.., payload)| payload[0]).collect()
}

#[test]
fn bags_of_every_compression_are_read_in_order() {
    for compression in ["none", "bz2", "lz4"] {
        for has_index in [true, false] {
            let file = File::new(&written(compression, has_index));
            let (messages, errors) = file.read(None);
            assert_eq!(payloads(&messages), [1, 2, 3, 4, 5, 6, 7, 8], "{compression}");
            assert_eq!(messages[0], ("/t0".to_owned(), 1_000_000_001, vec![1]));
            assert_eq!(messages[7].1, 4_294_967_295_999_999_999);
            match has_index {
                true => assert!(errors.is_empty(), "{errors:?}"),
                false => assert!(errors[0].contains("no index") && errors.len() == 1, "{errors:?}"),
            }
            let recording = open_messages(&file.0).unwrap().unwrap();
            let topics = recording.topics();
            assert_eq!(topics.iter().map(|topic| topic.messages.unwrap()).collect::<Vec<_>>(), [4, 2, 2]);
            let schema = topics[1].schema.as_ref().unwrap();
            assert_eq!((&*topics[1].name, &*topics[1].encoding), ("/t1", "ros1"));
            assert_eq!((&*schema.name, &*schema.encoding), ("std_msgs/UInt8", "ros1msg"));
            assert_eq!(schema.data, b"uint8 data\n");
            let span = recording.span().map(|(first, last)| (first.as_nanos(), last.as_nanos()));
            assert_eq!(span, Some((1_000_000_001, 4_294_967_295_999_999_999)));
            // One topic, and a time span.
            let of_topic = Selection::of_topics(vec![false, true, false]);
            assert_eq!(payloads(&file.read(Some(of_topic)).0), [2, 3]);
            let mut in_time = Selection::of_topics(vec![true; 3]);
            in_time.from = Timestamp::from_nanos(3_000_000_000);
            in_time.until = Timestamp::from_nanos(6_000_000_000);
            assert_eq!(payloads(&file.read(Some(in_time)).0), [3, 4, 5, 6]);
        }
    }
}

#[test]
fn messages_before_the_cut_are_read() {
    for compression in ["none", "bz2", "lz4"] {
        let whole = written(compression, true);
        let mut counts = Vec::new();
        for cut in 0..whole.len() {
            // The header of the bag has 4 kB of spaces.
            if (200..4000).contains(&cut) && cut % 97 != 0 {
                continue;
            }
            let (messages, errors) = File::new(&whole[..cut]).read(None);
            assert!(!errors.is_empty(), "{compression} {cut}");
            counts.push(messages.len());
        }
        // Chunks with overlapping times are merged, whatever follows them.
        assert_eq!(counts.iter().max(), Some(&8), "{compression}");
        assert!(counts.contains(&3) && counts.contains(&5), "{compression} {counts:?}");
    }
}

#[test]
fn damage_is_reported_and_the_rest_is_read() {
    let whole = written("none", true);
    let find = |bytes: &[u8], wanted: &[u8], from: usize| {
        from + bytes[from..].windows(wanted.len()).position(|own| own == wanted).unwrap()
    };
    // The second chunk has an unknown compression.
    let mut damaged = whole.clone();
    let first = find(&damaged, b"compression=none", 0);
    let second = find(&damaged, b"compression=none", first + 1);
    damaged[second + 12] = b'x';
    let (messages, errors) = File::new(&damaged).read(None);
    assert_eq!(payloads(&messages), [1, 2, 4, 6, 7, 8]);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("the compression 'xone' of a chunk is not known"), "{errors:?}");
    // An unusable index.
    let mut damaged = whole.clone();
    let place = find(&damaged, b"chunk_pos=", 0);
    damaged[place + 10] ^= 1;
    let (messages, errors) = File::new(&damaged).read(None);
    assert_eq!(payloads(&messages), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(
        errors.iter().any(|error| error.contains("the index cannot be used: no chunk is at byte")),
        "{errors:?}"
    );
    // A chunk that claims more than the maximum.
    let mut damaged = whole.clone();
    let size = find(&damaged, b"size=", first);
    damaged[size + 5..size + 9].fill(0xff);
    let (messages, errors) = File::new(&damaged).read(None);
    assert_eq!(payloads(&messages), [3, 5, 6, 7, 8]);
    assert!(errors[0].contains("the limit is 1 GiB"), "{errors:?}");
    for (bytes, reason) in [
        (&b"#ROSBAG V1.2\n"[..], "has the format V1.2, and 2.0 is read: `rosbag fix`"),
        (b"#ROSB", "is cut off after 5 bytes"),
        (b"", "is cut off after 0 bytes"),
        (b"rosbag", "this is no bag of ROS 1"),
    ] {
        let (_, errors) = File::new(bytes).read(None);
        assert!(errors[0].contains(reason), "{errors:?}");
    }
    let encrypted = header(&[("op", &[3]), ("index_pos", &[0; 8]), ("encryptor", b"rosbag/AesCbcEncryptor")]);
    let (_, errors) =
        File::new(&[&b"#ROSBAG V2.0\n"[..], &block(&encrypted), &block(b"")].concat()).read(None);
    assert!(errors[0].contains("encrypted by rosbag/AesCbcEncryptor"), "{errors:?}");
}

#[test]
fn a_flipped_bit_loses_no_message_unreported() {
    for compression in ["none", "bz2", "lz4"] {
        let whole = written(compression, true);
        for at in (0..whole.len()).filter(|at| !(200..4100).contains(at)) {
            for bit in [0, 3, 7] {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << bit;
                let (messages, errors) = File::new(&flipped).read(None);
                // No message is missing without an error; times, payloads and names in an uncompressed chunk have no
                // checksum.
                assert!(
                    messages.len() == 8 || !errors.is_empty(),
                    "{compression} byte {at} bit {bit} {messages:?}"
                );
            }
        }
    }
}

#[test]
fn latched_topics_have_their_quality_of_service() {
    let mut bag = Bag::new("none");
    bag.connections.push(connection(0, "/t0", &[("latching", b"1"), ("callerid", b"/node")]));
    bag.chunk(&[(0, 1_000_000_000, 1)]);
    let file = File::new(&bag.finish(true));
    let recording = open_messages(&file.0).unwrap().unwrap();
    let noted = |name: &str| {
        let found = recording.topics()[0].metadata.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    assert!(noted("offered_qos_profiles").contains("durability: transient_local"));
    assert_eq!(noted("callerid"), "/node");
}
