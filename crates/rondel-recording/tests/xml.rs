//! Archives of XML messages, compressed and not, and damage in them.

#![allow(clippy::unwrap_used, clippy::panic)] // the helpers are tests as well

use std::io::Write as _;
use std::path::Path;

use rondel_event::Timestamp;
use rondel_recording::{
    Recording as _, RecordingError, Selection, TableOptions, XmlRecording, has_lines, is_xml, open_messages,
};
use rondel_testkit::Folder;

const ARCHIVE: &str = "<?xml version='1.0'?>\n<feed xmlns:x='u'>\n  <x:state time='1.5' v='1'/>\n<!-- <m/> -->\
    <x:state time='2'><v>2</v></x:state><state><v>3</v></state>\n</feed>\n<feed/><feed><m timestamp=\"1970-01-01T00:00:04Z\"/></feed>\n";

fn compressed(name: &str, text: &[u8]) -> Vec<u8> {
    if name.ends_with(".gz") {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    } else if name.ends_with(".zst") {
        zstd::encode_all(text, 1).unwrap()
    } else {
        text.to_vec()
    }
}

/// Returns all messages with their times in milliseconds, and the errors.
fn read(path: &Path) -> (Vec<(i64, String)>, Vec<RecordingError>) {
    let mut recording = XmlRecording::open(path, &TableOptions::default()).unwrap();
    let (mut messages, mut wrong) = (Vec::new(), Vec::new());
    for _ in 0..100_000 {
        match recording.next() {
            Ok(Some(message)) => {
                let text = std::str::from_utf8(message.payload).unwrap();
                messages.push((message.log_time.as_nanos() / 1_000_000, text.to_owned()));
            }
            Ok(None) => return (messages, wrong),
            Err(error) => wrong.push(error),
        }
    }
    panic!("no end");
}

#[test]
fn elements_of_outermost_elements_are_messages() {
    let folder = Folder::new();
    for name in ["flights.xml", "flights.XML.gz", "flights.xml.zst"] {
        let path = folder.file(name, compressed(&name.to_lowercase(), ARCHIVE.as_bytes()));
        let path = Path::new(&path);
        let (messages, wrong) = read(path);
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
        let expected = [
            (1500, "<x:state time='1.5' v='1'/>"),
            (2000, "<x:state time='2'><v>2</v></x:state>"),
            (2000, "<state><v>3</v></state>"),
            (4000, "<m timestamp=\"1970-01-01T00:00:04Z\"/>"),
        ];
        let messages: Vec<(i64, &str)> = messages.iter().map(|(time, text)| (*time, &**text)).collect();
        assert_eq!(messages, expected, "{name}");
        assert!(is_xml(path) && !has_lines(path));
        let recording = open_messages(path).unwrap().unwrap();
        let topic = &recording.topics()[0];
        assert_eq!((topic.name.as_str(), topic.encoding.as_str()), ("flights", "xml"));
    }
}

#[test]
fn messages_longer_than_a_step_are_read() {
    let folder = Folder::new();
    let long = format!("<m a='{}'/>", "x".repeat(3 << 20));
    let many = format!("\u{feff}<feed>{long}{}</feed>", "<m>1</m>".repeat(60_000));
    let (messages, wrong) = read(Path::new(&folder.file("long.xml", &many)));
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!((messages.len(), messages[0].1.len()), (60_001, long.len()));
}

#[test]
fn the_selection_limits_messages() {
    let folder = Folder::new();
    let path = folder.file("flights.xml", ARCHIVE);
    let path = Path::new(&path);
    let options = TableOptions { topic: Some("state"), ..TableOptions::default() };
    let mut recording = XmlRecording::open(path, &options).unwrap();
    assert_eq!(recording.topics()[0].name, "state");
    let until = Timestamp::from_nanos(1_600_000_000);
    recording.select(Selection { until, ..Selection::of_topics(vec![true]) });
    assert!(recording.next().unwrap().is_some());
    assert!(recording.next().unwrap().is_none());
    let mut recording = XmlRecording::open(path, &options).unwrap();
    recording.select(Selection::of_topics(Vec::new()));
    assert!(recording.next().unwrap().is_none());
}

#[test]
fn damage_is_reported_with_its_place() {
    let folder = Folder::new();
    for (text, count, expected) in [
        ("", 0, "it has no element"),
        ("<feed><m/>text<m/></feed>", 2, "at byte 10: there is text between messages"),
        ("<feed><m/><m>", 1, "cut off at byte 10: an element is not closed"),
        ("<feed><m/><m", 1, "cut off at byte 10: an element is not closed"),
        ("<feed><m/>", 1, "cut off at byte 10: an element is not closed"),
        ("<!DOCTYPE feed><feed><m/></feed>", 0, "a document type definition is not read"),
        ("<feed><m/></feed></feed>", 1, "at byte 17: the markup is not well formed"),
        ("<feed><m><!x></m></feed>", 0, "the markup is not well formed"),
        ("text", 0, "text between messages"),
        ("<c><m/></d><m/>", 1, "at byte 7: the end tag `d` does not end the outermost element `c`"),
        (
            "<c><m time='1'/><m time='soon'/><m time='2'/></c>",
            2,
            "at byte 16: the time 'soon' of a message is no time",
        ),
        ("<?xml version='1.0' encoding='ISO-8859-1'?><c><m/></c>", 0, "the encoding iso-8859-1 is not read"),
        ("<?xml version='1.0' encoding='UTF-8'?><c><m/>x</c>", 1, "text between messages"),
    ] {
        let (messages, wrong) = read(Path::new(&folder.file("damaged.xml", text)));
        assert_eq!(messages.len(), count, "{text}");
        assert!(wrong.iter().any(|error| error.to_string().contains(expected)), "{text}: {wrong:?}");
    }
}

#[test]
fn a_compressed_archive_is_read_up_to_its_cut() {
    let folder = Folder::new();
    let many: String = (0..200_000).map(|i| format!("<m n='{i}'/>")).collect();
    for name in ["cut.xml.gz", "cut.xml.zst"] {
        let mut bytes = compressed(name, format!("<feed>{many}</feed>").as_bytes());
        bytes.truncate(bytes.len() / 2);
        let path = folder.file(name, bytes);
        let mut recording = XmlRecording::open(Path::new(&path), &TableOptions::default()).unwrap();
        let mut count = 0;
        let error = loop {
            match recording.advance() {
                Ok(Some(_)) => count += 1,
                Ok(None) => panic!("{name}: the cut is not reported"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, RecordingError::Cut { .. }), "{name}: {error}");
        assert!(count > 1000, "{name}: {count}");
        assert!(recording.advance().unwrap().is_none());
    }
}

#[test]
fn damaged_compression_and_a_cut_differ() {
    let folder = Folder::new();
    let mut bytes = compressed("a.xml.gz", b"<feed><m/><m/></feed>");
    let checksum = bytes.len() - 8;
    bytes[checksum] ^= 1;
    let (messages, wrong) = read(Path::new(&folder.file("damaged.xml.gz", &bytes)));
    assert_eq!((messages.len(), wrong.len()), (2, 1), "{wrong:?}");
    let sentence = wrong[0].to_string();
    assert!(matches!(wrong[0], RecordingError::Cut { is_damaged: true, .. }), "{sentence}");
    assert!(
        sentence.contains("unreadable from byte ") && sentence.contains("data is damaged ("),
        "{sentence}"
    );
    let (_, wrong) = read(Path::new(&folder.file("cut.xml.gz", &bytes[..checksum])));
    let sentence = wrong[0].to_string();
    assert!(sentence.contains("cut off at byte ") && sentence.ends_with("data ends too early"), "{sentence}");
}

#[test]
fn utf_16_is_refused() {
    let folder = Folder::new();
    let bytes: Vec<u8> = "\u{feff}<c><m/></c>".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let (messages, wrong) = read(Path::new(&folder.file("wide.xml", bytes)));
    assert!(messages.is_empty() && wrong[0].to_string().contains("UTF-16"), "{wrong:?}");
}

#[test]
fn a_field_that_the_user_names_replaces_the_attributes() {
    let folder = Folder::new();
    let path = folder.file("feed.xml", "<c><m time='soon'/></c>");
    let options = TableOptions { time: Some("v"), ..TableOptions::default() };
    let mut recording = XmlRecording::open(Path::new(&path), &options).unwrap();
    assert!(!recording.next().unwrap().unwrap().is_timed);
}
