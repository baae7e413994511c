//! Logs of PX4 (ULog): valid ones, cut off anywhere, and damaged. Those of `pyulog` are in the tests of the command.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

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
        let name = format!("ulog-{}-{}.ulg", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, bytes).unwrap();
        File(path)
    }

    /// Returns the readable messages and the errors.
    fn read(&self, selection: Option<Selection>) -> (Vec<Message>, Vec<String>) {
        let text = |error: RecordingError| error.to_string().replace(&format!("{}: ", self.0.display()), "");
        let mut recording = match McapRecording::open_ulog(&self.0) {
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

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&(body.len() as u16).to_le_bytes()[..], &[kind], body].concat()
}

const SYNC: [u8; 8] = [0x2f, 0x73, 0x13, 0x20, 0x25, 0x0c, 0xbb, 0x12];

fn begin(flags: &[u8]) -> Vec<u8> {
    let mut log = b"ULog\x01\x12\x35\x01".to_vec();
    log.extend(1_000_000_u64.to_le_bytes());
    log.extend(message(b'B', flags));
    log
}

fn data(id: u16, micros: u64, rest: &[u8]) -> Vec<u8> {
    message(b'D', &[&id.to_le_bytes()[..], &micros.to_le_bytes(), rest].concat())
}

fn subscribe(instance: u8, id: u16, name: &str) -> Vec<u8> {
    message(b'A', &[&[instance][..], &id.to_le_bytes(), name.as_bytes()].concat())
}

/// Returns a log with texts, nested types, padding, instances, a parameter, a dropout and a mark.
fn written() -> Vec<u8> {
    let mut log = begin(&[0; 40]);
    for format in [
        "plain:uint64_t timestamp;float x;uint8_t[4] _padding0;",
        "named:uint64_t timestamp;char[6] name;part[2] parts;uint8_t last;uint8_t[5] _padding0;",
        "part:int16_t a;uint8_t[2] _padding0;",
    ] {
        log.extend(message(b'F', format.as_bytes()));
    }
    log.extend(message(b'P', b"\x09int9_t XX\0\0\xc0\x3f"));
    log.extend(message(b'P', b"\x0afloat GAIN\0\0\xc0\x3f"));
    for (instance, id, name) in [(0, 0, "plain"), (1, 1, "plain"), (0, 2, "named")] {
        log.extend(subscribe(instance, id, name));
    }
    log.extend(data(0, 2_000_000, &1.5_f32.to_le_bytes()));
    log.extend(data(1, 1_500_000, &[&2.5_f32.to_le_bytes()[..], &[9; 4]].concat()));
    log.extend(message(b'S', &SYNC));
    log.extend(data(2, 2_500_000, b"abc\0zz\x01\0\xee\xee\x02\0\xee\xee\x07"));
    log.extend(message(b'L', &[b"4", &2_600_000_u64.to_le_bytes()[..], b"said"].concat()));
    log.extend(message(b'O', &[100, 0]));
    log.extend(data(0, 3_000_000, &3.5_f32.to_le_bytes()));
    log
}

#[test]
fn a_log_is_read_in_order() {
    let file = File::new(&written());
    let (messages, errors) = file.read(None);
    // The first parameter has an invalid type.
    assert_eq!(errors, ["at byte 244: a parameter cannot be read"]);
    let times: Vec<(&str, i64)> =
        messages.iter().map(|(name, time, _)| (&**name, time / 1_000_000)).collect();
    let expected = [
        ("parameters", 1000),
        ("plain/1", 1500),
        ("plain", 2000),
        ("named", 2500),
        ("logged_messages", 2600),
        ("plain", 3000),
    ];
    assert_eq!(times, expected);
    let payloads: Vec<&[u8]> = messages.iter().map(|(.., payload)| &payload[..]).collect();
    assert_eq!(payloads[0], [&4_u32.to_le_bytes()[..], b"GAIN", &1.5_f64.to_le_bytes()].concat());
    assert_eq!(payloads[1], [&1_500_000_u64.to_le_bytes()[..], &2.5_f32.to_le_bytes()].concat());
    assert_eq!(payloads[3][8..], *b"\x03\0\0\0abc\x01\0\x02\0\x07");
    assert_eq!(payloads[4][8..], *b"\x04\0\0\x04\0\0\0said");
    let recording = open_messages(&file.0).unwrap().unwrap();
    let topics = recording.topics();
    let named = topics.iter().find(|topic| topic.name == "named").unwrap();
    let schema = named.schema.as_ref().unwrap();
    assert_eq!((&*named.encoding, named.messages, &*schema.name), ("ulog", Some(1), "ulog/named"));
    let definition = String::from_utf8(schema.data.clone()).unwrap();
    assert!(definition.starts_with("uint64 timestamp\nstring name\nulog/part[2] parts\nuint8 last\n==="));
    assert!(definition.ends_with("===\nMSG: ulog/part\nint16 a\n"), "{definition}");
    let cut_offs = recording.end().cut_offs;
    let times = |at: Timestamp| at.as_nanos() / 1_000_000;
    let found: Vec<(i64, i64)> =
        cut_offs.all().iter().map(|own| (times(own.from), times(own.until.unwrap()))).collect();
    assert_eq!(found, [(2500, 2600)]);
    let mut of_topic = Selection::of_topics(topics.iter().map(|topic| topic.name == "plain").collect());
    assert_eq!(file.read(Some(of_topic.clone())).0.len(), 2);
    of_topic.from = Timestamp::from_nanos(2_500_000_000);
    assert_eq!(file.read(Some(of_topic)).0.len(), 1);
}

#[test]
fn damage_is_reported_and_the_rest_is_read() {
    let whole = written();
    let find = |wanted: &[u8]| whole.windows(wanted.len()).position(|own| own == wanted).unwrap();
    // Bytes that are no message, up to the next mark.
    let mut damaged = whole.clone();
    let place = find(&data(0, 2_000_000, &1.5_f32.to_le_bytes()));
    damaged[place + 2] = b'?';
    let (messages, errors) = File::new(&damaged).read(None);
    assert_eq!(messages.len(), 4);
    assert!(errors.iter().any(|error| error.contains("what follows is no message")), "{errors:?}");
    // Without a mark, nothing is read behind them.
    let mut damaged = whole.clone();
    let place = find(&data(2, 2_500_000, b""[..].into())[3..13]) - 3;
    damaged[place + 2] = b'?';
    let (messages, errors) = File::new(&damaged).read(None);
    assert_eq!(messages.len(), 3);
    assert!(errors.last().unwrap().starts_with(&format!("cut off at byte {place}")), "{errors:?}");
    // Messages without a subscription, a missing type, a type that contains itself.
    for (more, reason) in [
        (data(9, 1, b""), "1 messages have no subscription, such as those of the id 9"),
        (subscribe(0, 9, "other"), "other is not read: the format other is not defined"),
        (
            [message(b'F', b"own:uint64_t timestamp;own a;"), subscribe(0, 9, "own")].concat(),
            "own is not read: its types are nested too deeply",
        ),
        (
            [
                message(b'F', b"none:"),
                message(b'F', b"all:uint64_t timestamp;none[60000] a;none[60000] b;"),
                subscribe(0, 9, "all"),
            ]
            .concat(),
            "all is not read: it has no field `timestamp`",
        ),
        ([message(b'F', b"late:float x;"), subscribe(0, 9, "late")].concat(), "it has no field `timestamp`"),
        (subscribe(0, 0, "named"), "the id 0 is that of plain, and of named from here on"),
    ] {
        let (messages, errors) = File::new(&[whole.clone(), more].concat()).read(None);
        let is_known = reason.starts_with("all") || errors.iter().any(|error| error.contains(reason));
        assert!(messages.len() == 6 && is_known, "{reason}: {errors:?}");
    }
    let mut flags = [0; 40];
    flags[9] = 1;
    let (_, errors) = File::new(&begin(&flags)).read(None);
    assert!(errors[0].contains("features of a later version"), "{errors:?}");
    // Data appended after a crash follow an unfinished message.
    let mut flags = [0; 40];
    flags[8] = 1;
    let mut log = begin(&flags);
    log.extend(message(b'F', b"plain:uint64_t timestamp;float x;"));
    log.extend(subscribe(0, 0, "plain"));
    log.extend(data(0, 2_000_000, &[0; 4]));
    log.extend(&data(0, 3_000_000, &[0; 4])[..9]);
    let place = log.len() as u64;
    log[16 + 3 + 16..16 + 3 + 24].copy_from_slice(&place.to_le_bytes());
    log.extend(data(0, 4_000_000, &[0; 4]));
    assert_eq!(File::new(&log).read(None).0.len(), 2);
}

#[test]
fn logs_cut_or_changed_anywhere_are_read() {
    let whole = written();
    let mut most = 0;
    for cut in 0..whole.len() {
        let (messages, errors) = File::new(&whole[..cut]).read(None);
        assert!(messages.len() >= most && messages.len() <= 6, "{cut}");
        most = messages.len();
        assert!(cut > 7 || !errors.is_empty(), "{cut}");
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            let (messages, _) = File::new(&changed).read(None);
            // Another kind of message may become a logged text.
            assert!(messages.len() <= 7, "byte {at} bit {bit}");
        }
    }
}
