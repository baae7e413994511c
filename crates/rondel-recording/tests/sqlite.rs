//! Recordings in SQLite: valid ones of every version, damaged ones, and those of killed recorders.

#![cfg(feature = "sqlite")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use std::path::Path;

use rondel_event::Timestamp;
use rondel_recording::{Recording, RecordingError, Selection, merge, open_messages};
use rondel_testkit::{Folder, Random};
use rusqlite::Connection;

/// The topic, time and payload of a message.
type Message = (String, i64, Vec<u8>);

const MESSAGES: i64 = 60;

/// Writes the tables of a version, with messages on two topics, some of them with overflow pages.
fn write(path: &Path, version: u32, before: &str) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(&format!("PRAGMA page_size = 512; {before}")).unwrap();
    let quality = if version > 1 { ", offered_qos_profiles TEXT NOT NULL" } else { "" };
    let hash = if version > 3 { ", type_description_hash TEXT NOT NULL" } else { "" };
    let mut schema = format!(
        "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, \
         serialization_format TEXT NOT NULL{quality}{hash});
         CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, timestamp INTEGER NOT NULL, \
         data BLOB NOT NULL);
         CREATE INDEX timestamp_idx ON messages (timestamp ASC);"
    );
    if version > 2 {
        schema += "CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT NOT NULL);
                   CREATE TABLE metadata(id INTEGER PRIMARY KEY, metadata_version INTEGER NOT NULL, metadata TEXT NOT NULL);";
    }
    if version > 3 {
        schema += "CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT NOT NULL, encoding TEXT \
                   NOT NULL, encoded_message_definition TEXT NOT NULL, type_description_hash TEXT NOT NULL);
                   INSERT INTO message_definitions VALUES (1, 'demo/msg/A', 'ros2msg', 'int32 v', '');";
    }
    connection.execute_batch(&schema).unwrap();
    let (quality, hash) =
        (if version > 1 { ",'- depth: 1'" } else { "" }, if version > 3 { ",''" } else { "" });
    for (id, name, kind) in [(7, "/a", "demo/msg/A"), (9, "/b", "demo/msg/B")] {
        let values = format!("INSERT INTO topics VALUES ({id},'{name}','{kind}','cdr'{quality}{hash})");
        connection.execute_batch(&values).unwrap();
    }
    for (topic, time, data) in expected() {
        let number = if topic == "/a" { 7 } else { 9 };
        let insert = "INSERT INTO messages(topic_id, timestamp, data) VALUES (?1, ?2, ?3)";
        connection.execute(insert, (number, time, data)).unwrap();
    }
    connection
}

fn expected() -> Vec<Message> {
    let message = |i: i64| {
        let length = if i % 10 == 3 { 2000 } else { 20 };
        (if i % 3 == 0 { "/b" } else { "/a" }.to_owned(), 1000 + 10 * i, vec![i as u8; length])
    };
    (0..MESSAGES).map(message).collect()
}

/// Returns the readable messages and the errors.
fn read(path: &Path) -> Result<(Vec<Message>, Vec<String>), RecordingError> {
    let recording = open_messages(path)?.expect("a recording of messages");
    Ok(all(recording))
}

fn all(mut recording: Box<dyn Recording>) -> (Vec<Message>, Vec<String>) {
    let names: Vec<String> = recording.topics().iter().map(|topic| topic.name.clone()).collect();
    let (mut messages, mut errors) = (Vec::new(), Vec::new());
    loop {
        match recording.next() {
            Ok(Some(message)) => {
                messages.push((
                    names[message.topic].clone(),
                    message.log_time.as_nanos(),
                    message.payload.to_vec(),
                ));
            }
            Ok(None) => return (messages, errors),
            Err(error) => errors.push(error.to_string()),
        }
        assert!(errors.len() < 200 && messages.len() < 10_000, "{errors:?}");
    }
}

#[test]
fn every_version_gives_the_same_messages() {
    let folder = Folder::new();
    for version in 1..=4 {
        let path = folder.as_path().join(format!("v{version}.db3"));
        drop(write(&path, version, ""));
        let recording = open_messages(&path).unwrap().unwrap();
        let first = &recording.topics()[0];
        let schema = first.schema.as_ref().unwrap();
        assert_eq!((first.name.as_str(), first.encoding.as_str()), ("/a", "cdr"));
        assert_eq!(schema.name, "demo/msg/A");
        let definition: &[u8] = if version > 3 { b"int32 v" } else { b"" };
        assert_eq!(schema.data, definition);
        assert_eq!(first.metadata.len(), usize::from(version > 1));
        let last = 1000 + 10 * (MESSAGES - 1);
        assert_eq!(recording.span(), Some((Timestamp::from_nanos(1000), Timestamp::from_nanos(last))));
        assert_eq!(all(recording), (expected(), vec![]), "version {version}");
    }
    // Nothing was written beside them.
    assert_eq!(folder.names(), ["v1.db3", "v2.db3", "v3.db3", "v4.db3"]);
}

#[test]
fn topics_and_times_are_selected_without_an_index() {
    let folder = Folder::new();
    let path = folder.as_path().join("a.db3");
    for without in ["", "DROP INDEX timestamp_idx; UPDATE messages SET timestamp = timestamp"] {
        let _ = std::fs::remove_file(&path);
        write(&path, 4, "").execute_batch(without).unwrap();
        let mut recording = open_messages(&path).unwrap().unwrap();
        let (from, until) = (Timestamp::from_nanos(1100), Timestamp::from_nanos(1300));
        recording.select(Selection { topics: vec![false, true], from, until });
        let mut wanted = expected();
        wanted.retain(|(topic, time, _)| topic == "/b" && (1100..=1300).contains(time));
        assert_eq!(all(recording), (wanted, vec![]), "{without}");
    }
    // Without an index, the times are sorted.
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("UPDATE messages SET timestamp = -timestamp").unwrap();
    drop(connection);
    let (messages, errors) = read(&path).unwrap();
    let mut wanted: Vec<Message> =
        expected().into_iter().map(|(topic, time, data)| (topic, -time, data)).collect();
    wanted.reverse();
    assert_eq!((messages, errors), (wanted, vec![]));
}

#[test]
fn rows_that_are_no_messages_are_counted() {
    let folder = Folder::new();
    // The columns of a table written by another program may hold any values.
    let free = "DROP INDEX timestamp_idx; ALTER TABLE messages RENAME TO before;
                CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB);
                INSERT INTO messages SELECT * FROM before; DROP TABLE before;
                INSERT INTO messages(topic_id, timestamp, data) VALUES
                (7, NULL, x'00'), (7, 'soon', x'00'), (99, NULL, x'00'), (7, 1005, NULL), (99, 1015, x'00'),
                (NULL, 1025, x'00'), (9, NULL, x'00');";
    for index in ["", "CREATE INDEX timestamp_idx ON messages (timestamp ASC);"] {
        let path = folder.as_path().join("a.db3");
        let _ = std::fs::remove_file(&path);
        write(&path, 4, "").execute_batch(&format!("{free}{index}")).unwrap();
        let (messages, errors) = read(&path).unwrap();
        assert_eq!(messages, expected(), "{index}");
        assert!(
            matches!(&errors[..], [error] if error.ends_with(
                "7 rows of the table `messages` cannot be read: 4 without a time, 1 without data, 2 of a topic that is \
                 not in the table `topics`"
            )),
            "{index} {errors:?}"
        );
        // The span is that of the messages; rows of unread topics are ignored.
        let mut recording = open_messages(&path).unwrap().unwrap();
        let last = Timestamp::from_nanos(1000 + 10 * (MESSAGES - 1));
        assert_eq!(recording.span(), Some((Timestamp::from_nanos(1000), last)));
        let from = Timestamp::from_nanos(1030);
        recording.select(Selection { topics: vec![false, true], from, until: last });
        let (_, errors) = all(recording);
        assert!(
            matches!(&errors[..], [error] if error.ends_with("2 rows of the table `messages` cannot be read: 2 without a time")),
            "{errors:?}"
        );
    }
}

#[test]
fn a_file_cut_anywhere_is_read_up_to_there() {
    let folder = Folder::new();
    let (whole, cut) = (folder.as_path().join("whole.db3"), folder.as_path().join("cut.db3"));
    // Every byte is tried, so the file is small.
    write(&whole, 1, "").execute_batch("DELETE FROM messages WHERE id > 8; VACUUM").unwrap();
    let bytes = std::fs::read(&whole).unwrap();
    let all = &expected()[..8];
    assert_eq!(read(&whole).unwrap().0, all);
    let (mut with_messages, mut most) = (0, 0);
    for length in 0..bytes.len() {
        std::fs::write(&cut, &bytes[..length]).unwrap();
        let Ok((messages, errors)) = read(&cut) else { continue };
        assert!(!errors.is_empty(), "cut at {length} of {} is not noticed", bytes.len());
        assert!(messages.iter().all(|message| all.contains(message)), "cut at {length}");
        with_messages += usize::from(!messages.is_empty());
        most = most.max(messages.len());
    }
    assert!(with_messages > bytes.len() / 10, "{with_messages} of {}", bytes.len());
    assert!(most >= all.len() / 2, "{most}");
    assert_eq!(folder.names(), ["cut.db3", "whole.db3"]);
}

#[test]
fn damage_does_not_panic() {
    let folder = Folder::new();
    let (whole, damaged) = (folder.as_path().join("whole.db3"), folder.as_path().join("damaged.db3"));
    drop(write(&whole, 4, ""));
    let bytes = std::fs::read(&whole).unwrap();
    let (mut opened, mut noticed) = (0, 0);
    for seed in rondel_testkit::seeds("sqlite-damage_does_not_panic", 600) {
        let mut random = Random::new(seed);
        let mut own = bytes.clone();
        for _ in 0..1 + random.index(8) {
            let at = random.index(own.len());
            own[at] = [0, 0xff, random.index(256) as u8][random.index(3)];
        }
        if random.index(3) == 0 {
            // A page is replaced by another.
            let (from, to) = (random.index(own.len() / 512) * 512, random.index(own.len() / 512) * 512);
            own.copy_within(from..from + 512, to);
        }
        std::fs::write(&damaged, &own).unwrap();
        if let Ok((_, errors)) = read(&damaged) {
            opened += 1;
            noticed += usize::from(!errors.is_empty());
        }
    }
    assert!(rondel_testkit::is_replay() || opened > 100 && noticed > 20, "{opened} {noticed}");
}

#[test]
fn a_write_ahead_log_is_read_and_kept() {
    let folder = Folder::new();
    let live = folder.as_path().join("live.db3");
    let connection = write(&live, 4, "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;");
    // The files of a killed recorder.
    let crashed = Folder::new();
    for ending in ["", "-wal"] {
        let name = format!("live.db3{ending}");
        std::fs::copy(folder.as_path().join(&name), crashed.as_path().join(&name)).unwrap();
    }
    let before = std::fs::read(crashed.as_path().join("live.db3-wal")).unwrap();
    assert_eq!(read(&crashed.as_path().join("live.db3")).unwrap(), (expected(), vec![]));
    assert_eq!(crashed.names(), ["live.db3", "live.db3-wal"]);
    assert_eq!(std::fs::read(crashed.as_path().join("live.db3-wal")).unwrap(), before);
    drop(connection);
    // Closed by its recorder, the database has no log, but is still in the mode that has one.
    assert_eq!(folder.names(), ["live.db3"]);
    assert_eq!(read(&live).unwrap(), (expected(), vec![]));
    assert_eq!(folder.names(), ["live.db3"]);
}

#[test]
fn other_databases_are_refused_by_name() {
    let folder = Folder::new();
    let refused = |path: &Path| read(path).unwrap_err().to_string();
    let text = folder.as_path().join("text.db3");
    std::fs::write(&text, "no database".repeat(20)).unwrap();
    assert!(refused(&text).ends_with("text.db3: it is no SQLite database: it does not begin as one"));
    let other = folder.as_path().join("other.db3");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE a(b)").unwrap();
    assert!(refused(&other).contains("it has not the tables `topics` and `messages`"));
    // A view may compute without end.
    let view = folder.as_path().join("view.db3");
    let endless = "CREATE TABLE topics(id, name, type, serialization_format); CREATE VIEW messages AS WITH RECURSIVE \
                   r(timestamp) AS (SELECT 1 UNION ALL SELECT timestamp + 1 FROM r) SELECT timestamp, 1 AS topic_id, \
                   x'00' AS data FROM r";
    Connection::open(&view).unwrap().execute_batch(endless).unwrap();
    assert!(refused(&view).contains("it has not the tables"));
    // Merged with others, it is reported, and the others are read.
    let good = folder.as_path().join("good.db3");
    drop(write(&good, 4, ""));
    let short = folder.as_path().join("short.mcap");
    std::fs::write(&short, "ab").unwrap();
    let merged = merge(&[text, good, short]).unwrap();
    let rondel_recording::Opened::Messages(merged) = merged else { panic!("lines") };
    let (messages, errors) = all(merged);
    assert_eq!(messages, expected());
    assert!(
        errors.len() == 2 && errors[0].contains("text.db3: it is not read: it is no SQLite"),
        "{errors:?}"
    );
    assert!(errors[1].contains("short.mcap"), "{errors:?}");
}

#[test]
fn compressed_files_and_messages_are_read() {
    let folder = Folder::new();
    let plain = folder.as_path().join("plain.db3");
    drop(write(&plain, 4, ""));
    let packed = folder.as_path().join("packed.db3.zstd");
    let bytes = zstd::encode_all(&std::fs::read(&plain).unwrap()[..], 3).unwrap();
    std::fs::write(&packed, &bytes).unwrap();
    assert_eq!(read(&packed).unwrap(), (expected(), vec![]));
    for cut in (0..bytes.len()).step_by(7) {
        std::fs::write(&packed, &bytes[..cut]).unwrap();
        if let Ok((_, errors)) = read(&packed) {
            assert!(!errors.is_empty(), "{cut}");
        }
    }
    let connection = Connection::open(&plain).unwrap();
    for (i, (_, _, data)) in expected().into_iter().enumerate() {
        let data = zstd::encode_all(&data[..], 3).unwrap();
        connection.execute("UPDATE messages SET data = ?1 WHERE id = ?2", (data, i as i64 + 1)).unwrap();
    }
    drop(connection);
    assert_eq!(read(&plain).unwrap(), (expected(), vec![]));
    let names = folder.names();
    assert_eq!(names, ["packed.db3.zstd", "plain.db3"]);
}
