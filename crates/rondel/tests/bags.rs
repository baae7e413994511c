//! Bags of rosbag2 in SQLite and compressed, written by other libraries, checked as the same messages in MCAP are.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use rondel_recording::TableOptions;
use rondel_runtime::Emit;
use support::network::python;
use support::{Finished, Folder, library, rondel};

/// Without a type that only newer bags define.
const SPECIFICATION: &str = "
topic odom \"/odom\"
topic brake \"ros2:/brake\"
@time(steps) property limited = odom.twist.twist.linear.x < 12 or once brake.data
property braked = odom.twist.twist.linear.x > 11 -> once[0, 90 ms] brake.data
property soon = brake.data -> eventually[0, 100 ms] odom.twist.twist.linear.x > 9
";

/// Writes a bag from the messages of an MCAP file with Python's SQLite: SOURCE FOLDER VERSION COMPRESSION.
const BY_HAND: &str = "
import os, sqlite3, sys, zstandard
from mcap.reader import make_reader
source, folder, version, compression = sys.argv[1:]
version = int(version)
os.makedirs(folder)
topics, definitions, files = {}, {}, []
def begin():
    name = f'{os.path.basename(folder)}_{len(files)}.db3'
    db = sqlite3.connect(f'{folder}/{name}')
    quality = ', offered_qos_profiles TEXT NOT NULL' if version > 1 else ''
    hash = ', type_description_hash TEXT NOT NULL' if version > 3 else ''
    db.execute(f'CREATE TABLE topics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,type TEXT NOT NULL,serialization_format TEXT NOT NULL{quality}{hash})')
    db.execute('CREATE TABLE messages(id INTEGER PRIMARY KEY,topic_id INTEGER NOT NULL,timestamp INTEGER NOT NULL, data BLOB NOT NULL)')
    db.execute('CREATE INDEX timestamp_idx ON messages (timestamp ASC)')
    if version > 2:
        db.execute('CREATE TABLE schema(schema_version INTEGER PRIMARY KEY,ros_distro TEXT NOT NULL)')
        db.execute('CREATE TABLE metadata(id INTEGER PRIMARY KEY,metadata_version INTEGER NOT NULL,metadata TEXT NOT NULL)')
        db.execute('INSERT INTO schema VALUES (?, ?)', (version, 'jazzy' if version > 3 else 'humble'))
    if version > 3:
        db.execute('CREATE TABLE message_definitions(id INTEGER PRIMARY KEY,topic_type TEXT NOT NULL,encoding TEXT NOT NULL,encoded_message_definition TEXT NOT NULL,type_description_hash TEXT NOT NULL)')
    files.append(name)
    topics.clear()
    definitions.clear()
    return db
def end(db):
    db.commit()
    db.close()
    if compression == 'file':
        path = f'{folder}/{files[-1]}'
        open(path + '.zstd', 'wb').write(zstandard.ZstdCompressor().compress(open(path, 'rb').read()))
        os.remove(path)
        files[-1] += '.zstd'
db, count = begin(), 0
for schema, channel, message in make_reader(open(source, 'rb')).iter_messages():
    if count == 400:
        end(db)
        db = begin()
    count += 1
    if channel.topic not in topics:
        topics[channel.topic] = len(topics) + 1
        more = (['- depth: 1'] if version > 1 else []) + ([''] if version > 3 else [])
        values = (topics[channel.topic], channel.topic, schema.name, 'cdr', *more)
        db.execute(f'INSERT INTO topics VALUES ({\",\".join(\"?\" * len(values))})', values)
        if version > 3 and schema.name not in definitions:
            definitions[schema.name] = True
            db.execute('INSERT INTO message_definitions VALUES (NULL, ?, ?, ?, ?)', (schema.name, schema.encoding, schema.data.decode(), ''))
    data = zstandard.ZstdCompressor().compress(message.data) if compression == 'message' else message.data
    db.execute('INSERT INTO messages(topic_id, timestamp, data) VALUES (?, ?, ?)', (topics[channel.topic], message.log_time, data))
end(db)
with open(f'{folder}/metadata.yaml', 'w') as file:
    file.write(f'''rosbag2_bagfile_information:
  version: {version + 3}
  storage_identifier: sqlite3
  relative_file_paths: [{', '.join(files)}]
  compression_format: '{'zstd' if compression != 'none' else ''}'
  compression_mode: '{compression if compression != 'none' else ''}'
''')
";

fn run(python: &Path, arguments: &[&str]) {
    let run = Command::new(python).arg("-B").args(arguments).output().unwrap();
    assert!(run.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&run.stderr));
}

/// Writes the messages with `rosbags`; returns the folder of the bag.
fn record(folder: &Folder, python: &Path, store: &str, storage: &str, compression: &[&str]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../rondel-recording/tests/independent/bag.py");
    let own = folder.path(&format!("{store}-{storage}-{}", compression.concat()));
    std::fs::create_dir_all(&own).unwrap();
    run(python, &[&[script, &own, store, storage], compression].concat());
    format!("{own}/bag")
}

fn check(spec: &str, more: &[&str]) -> Finished {
    rondel(["check", "--format", "json", "-e", "every", "-q", spec].iter().chain(more))
}

fn names(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn bags_of_every_form_give_the_verdicts_of_mcap() {
    let Some(python) = python("bags_of_every_form_give_the_verdicts_of_mcap") else { return };
    let folder = Folder::new();
    let spec = folder.file("rover.rondel", SPECIFICATION);
    let mcap = record(&folder, &python, "ROS2_HUMBLE", "MCAP", &[]);
    let expected = check(&spec, &[&mcap]);
    expected.expect_status(1);
    assert!(expected.stdout.lines().count() > 1000, "{}", expected.stderr);
    let same = |recording: &str| {
        let before = names(recording);
        let checked = check(&spec, &[recording]);
        checked.expect_status(1);
        assert_eq!(checked.stdout, expected.stdout, "{recording}: {}", checked.stderr);
        assert_eq!(names(recording), before, "something was written");
    };
    for store in ["ROS2_FOXY", "ROS2_HUMBLE", "ROS2_JAZZY"] {
        same(&record(&folder, &python, store, "SQLITE3", &[]));
    }
    for storage in ["SQLITE3", "MCAP"] {
        for mode in ["FILE", "MESSAGE"] {
            same(&record(&folder, &python, "ROS2_JAZZY", storage, &[mode]));
        }
    }
    let source = format!("{mcap}/bag.mcap");
    for (version, compression) in
        [("1", "none"), ("2", "none"), ("3", "none"), ("4", "none"), ("3", "file"), ("2", "message")]
    {
        let bag = folder.path(&format!("by-hand-{version}-{compression}"));
        run(&python, &["-c", BY_HAND, &source, &bag, version, compression]);
        same(&bag);
        if compression == "file" {
            // Unpacked files, which readers of ROS 2 leave beside the bag, are not further recordings.
            let packed = std::fs::read(format!("{bag}/by-hand-3-file_0.db3.zstd")).unwrap();
            let plain = zstd::decode_all(&packed[..]).unwrap();
            std::fs::write(format!("{bag}/by-hand-3-file_0.db3"), plain).unwrap();
            same(&bag);
        }
        std::fs::remove_file(format!("{bag}/metadata.yaml")).unwrap();
        let without = check(&spec, &["--on-error", "skip", &bag]);
        without.expect_status(1).expect_stderr(&["metadata.yaml: it is missing"]);
        assert_eq!(without.stdout, expected.stdout);
    }
    // The file alone, and what looks at recordings.
    let file = format!("{}/bag.db3", folder.path("ROS2_JAZZY-SQLITE3-/bag"));
    assert_eq!(check(&spec, &[&file]).expect_status(1).stdout, expected.stdout);
    let other = folder.file("other.rondel", "topic other \"/other\"\nproperty p = on(other)\n");
    check(&other, &[&file]).expect_status(4).expect_stderr(&["/noise (300)", "/rover/battery (30)"]);
    let later = check(&spec, &["--from", "+1", "--to", "+2", &file]);
    assert_eq!(later.stdout, check(&spec, &["--from", "+1", "--to", "+2", &source]).stdout);
    let listed = rondel(["topics", &file]);
    assert!(listed.expect_status(0).stdout.contains("rover_msgs/msg/Battery"), "{}", listed.stdout);
    let drafted = folder.path("drafted");
    rondel(["init", &file, "--folder", &drafted]).expect_status(0);
    rondel(["check", "-q", &format!("{drafted}/first.rondel"), &file]).expect_status(0);
    // A type that only the bag defines.
    let typed = folder.file(
        "typed.rondel",
        "topic battery \"/rover/battery\" : rover_msgs/msg/Battery\nproperty charged = battery.charge > Battery.LOW\n",
    );
    check(&typed, &[&file]).expect_status(1);
    // In older bags it is not there.
    let old = format!("{}/by-hand-2-message_0.db3", folder.path("by-hand-2-message"));
    check(&typed, &[&old]).expect_status(2);
}

#[test]
fn recordings_of_different_forms_are_merged() {
    let Some(python) = python("recordings_of_different_forms_are_merged") else { return };
    let folder = Folder::new();
    let spec = folder.file("rover.rondel", SPECIFICATION);
    let bag = record(&folder, &python, "ROS2_JAZZY", "SQLITE3", &[]);
    let expected = check(&spec, &[&bag]);
    // The brake as a table of its own, and the database without it.
    let split = "
import sqlite3, sys
source, table = sys.argv[1:]
db = sqlite3.connect(source)
brake, = db.execute(\"SELECT id FROM topics WHERE name = '/brake'\").fetchone()
with open(table, 'w') as file:
    print('timestamp,data', file=file)
    for time, data in db.execute('SELECT timestamp, data FROM messages WHERE topic_id = ? ORDER BY id', (brake,)):
        print(f'{time},{[\"False\", \"True\"][data[4]]}', file=file)
db.execute('DELETE FROM messages WHERE topic_id = ?', (brake,))
db.execute('DELETE FROM topics WHERE id = ?', (brake,))
db.commit()
";
    let (database, table) = (format!("{bag}/bag.db3"), folder.path("brake.csv"));
    run(&python, &["-c", split, &database, &table]);
    // The folder still counts the messages that are gone.
    check(&spec, &["--merge", &bag, &table])
        .expect_status(3)
        .expect_stderr(&["it counts 60 messages on /brake, and its files have 0"]);
    let merged = check(&spec, &["--merge", &database, &table]);
    assert_eq!(merged.expect_status(1).stdout, expected.stdout, "{}", merged.stderr);
    // One that cannot be read is named, and the others are checked.
    for (name, content) in [("empty.mcap", ""), ("short.mcap", "abc"), ("broken.db3", "no database at all")] {
        let broken = folder.file(name, content);
        let with = check(&spec, &["--merge", &database, &broken, &table]);
        with.expect_status(3).expect_stderr(&[name]);
        assert_eq!(with.stdout, expected.stdout, "{name}: {}", with.stderr);
        let skipped = check(&spec, &["--merge", "--on-error", "skip", &bag, &broken, &table]);
        skipped.expect_status(1).expect_stderr(&[name]);
        assert_eq!(skipped.stdout, expected.stdout);
    }
}

#[test]
fn a_database_that_is_written_is_read_and_named() {
    let Some(python) = python("a_database_that_is_written_is_read_and_named") else { return };
    let folder = Folder::new();
    let spec = folder.file("rover.rondel", SPECIFICATION);
    let bag = record(&folder, &python, "ROS2_JAZZY", "SQLITE3", &[]);
    let expected = check(&spec, &[&bag]);
    let file = format!("{bag}/bag.db3");
    let lock = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute('BEGIN EXCLUSIVE')
print('locked', flush=True)
sys.stdin.read()
";
    let mut writer = Command::new(&python)
        .args(["-c", lock, &file])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(writer.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "locked\n");
    let checked = check(&spec, &[&file]);
    drop(writer.stdin.take());
    assert!(writer.wait().unwrap().success());
    checked.expect_status(3).expect_stderr(&["bag.db3: another program is writing it (it is locked)"]);
    assert_eq!(checked.stdout, expected.stdout);
}

/// Bags of ROS 1, and MCAP files with messages of ROS 1, have the verdicts of the same messages in ROS 2.
#[test]
fn bags_of_ros1_give_the_verdicts_of_ros2() {
    let Some(python) = python("bags_of_ros1_give_the_verdicts_of_ros2") else { return };
    let folder = Folder::new();
    let spec = folder.file("rover.rondel", SPECIFICATION);
    let expected = check(&spec, &[&record(&folder, &python, "ROS2_HUMBLE", "MCAP", &[])]);
    expected.expect_status(1);
    for compression in [&[][..], &["BZ2"], &["LZ4"]] {
        let bag = record(&folder, &python, "ROS1_NOETIC", "ROS1", compression);
        let own = Path::new(&bag).with_file_name("ros1.bag").display().to_string();
        let mcap = Path::new(&bag).with_file_name("ros1.mcap").display().to_string();
        for recording in [&own, &mcap] {
            let checked = check(&spec, &[recording]);
            assert_eq!(checked.stdout, expected.stdout, "{recording}: {}", checked.stderr);
        }
        // Under any name, and among others.
        let renamed = folder.file("drive.bin", std::fs::read(&own).unwrap());
        assert_eq!(check(&spec, &[&renamed]).stdout, expected.stdout);
        let merged = check(&spec, &["--merge", &own, &mcap]);
        assert!(merged.stdout.lines().count() > expected.stdout.lines().count(), "{}", merged.stderr);
        let within = Path::new(&own).parent().unwrap().display().to_string();
        check(&spec, &[&within]).expect_status(1);
    }
    let bag = Path::new(&folder.path("ROS1_NOETIC-ROS1-LZ4")).join("ros1.bag").display().to_string();
    let listed = rondel(["topics", &bag]);
    listed.expect_status(0);
    for part in
        ["/odom           nav_msgs/Odometry   ros1      300", "reliable, transient_local, keep_last 1"]
    {
        assert!(listed.stdout.contains(part), "{}", listed.stdout);
    }
    // A type of the specification, with the fields of ROS 1; the time in the messages.
    let typed = folder.file(
        "typed.rondel",
        "topic odom \"/odom\" : nav_msgs/msg/Odometry\nproperty seq = odom.header.seq >= 0\n\
         property same = odom.child_frame_id == \"base\" and is_nan(odom.pose.covariance[0]) == false\n",
    );
    rondel(["check", "--time-field", "header.stamp", &typed, &bag]).expect_status(0);
    let drafted = folder.path("drafted");
    rondel(["init", &bag, "--folder", &drafted]).expect_status(0);
    rondel(["check", "-q", &format!("{drafted}/first.rondel"), &bag]).expect_status(0);
    // The last message of a latched topic is there from the beginning.
    let latched =
        rondel(["check", "-q", "-f", "data or not data", "--topics", "/brake", "--from", "+0.05", &bag]);
    latched.expect_status(0);
    let replayed = ["--as-fast-as-possible", "--wait", "0"];
    let refused = rondel(["replay", &bag, "--to", "ros2"].iter().chain(&replayed));
    refused.expect_status(2).expect_stderr(&["rosbags-convert", "--to zenoh or mqtt"]);
    // Cut off anywhere it is read up to there by the library, and checked up to some of these places by the command.
    let whole = std::fs::read(&bag).unwrap();
    let plan = library::plan(SPECIFICATION, Emit::Every, false).unwrap();
    for (i, cut) in (0..whole.len()).step_by(whole.len() / 50).enumerate() {
        let cut = folder.file("cut.bag", &whole[..cut]);
        let (_, errors) = library::read(&plan, &cut, &TableOptions::default());
        assert!(!errors.is_empty(), "the cut is not reported");
        if i % 10 > 0 {
            continue;
        }
        let said = rondel(["check", "-q", "-f", "data or not data", "--topics", "/brake", &cut]);
        said.expect_status(3);
        let typed = rondel(["check", "-q", "--time-field", "header.stamp", &typed, &cut]);
        typed.expect_status(3);
    }
}
