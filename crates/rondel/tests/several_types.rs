//! Recordings whose channels have one topic and different types.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // the helpers are tests as well

use crate::support;

use rondel_recording::{McapWriter, MessageHead, RecordedSchema, WriterOptions};
use support::{Folder, rondel};

/// An MCAP file with a channel on `/x` for each of these definitions of `p/msg/A`, and the messages: the position of the
/// channel and the fields, one a second from 1 s on.
fn recording(folder: &Folder, name: &str, definitions: &[&str], messages: &[(usize, &[&[u8]])]) -> String {
    let path = folder.path(name);
    let options = WriterOptions { library: "rondel test".to_owned(), ..WriterOptions::default() };
    let mut writer = McapWriter::create(path.as_ref(), &options).unwrap();
    let mut channels = Vec::new();
    for definition in definitions {
        let (name, encoding) = ("p/msg/A".to_owned(), "ros2msg".to_owned());
        let schema = RecordedSchema { name, encoding, data: definition.as_bytes().to_vec() };
        let schema = writer.schema(&schema).unwrap();
        channels.push(writer.channel("/x", "cdr", schema, &[]).unwrap());
    }
    for (i, (channel, fields)) in (1..).zip(messages) {
        let time = i * 1_000_000_000;
        let head =
            MessageHead { channel: channels[*channel], sequence: 0, log_time: time, publish_time: time };
        writer.message(&head, &[&[0, 1, 0, 0], fields.concat().as_slice()].concat()).unwrap();
    }
    writer.finish().unwrap();
    path
}

const ONE: &[u8] = &1.0_f64.to_le_bytes();
const NINE: &[u8] = &9.0_f64.to_le_bytes();
const SEVEN: &[u8] = &7_i32.to_le_bytes();

/// Each message is decoded by the definition of its channel, whichever comes first in the file.
#[test]
fn each_channel_is_decoded_by_its_own_type() {
    let folder = Folder::new();
    let own = recording(
        &folder,
        "own.mcap",
        &["float64 v", "int32 extra\nfloat64 v"],
        &[(0, &[ONE]), (1, &[SEVEN, &[0; 4], ONE]), (0, &[ONE]), (1, &[SEVEN, &[0; 4], NINE]), (0, &[ONE])],
    );
    for topic in ["topic x \"/x\"", "topic x \"/x\" : p/msg/A"] {
        let text = folder.file("own.rondel", format!("{topic}\nproperty p = x.v < 5\n"));
        let run = rondel(["check", &text, &own]);
        run.expect_status(1);
        assert!(run.stdout.contains("first at step 3"), "{}", run.stdout);
        let named = "warning: x: publishers have different types; each is read as its own: field `extra` is new in \
                     p/msg/A of channel 2";
        assert_eq!(run.stderr.matches(named).count(), 1, "{}", run.stderr);
    }
}

/// With a declared type, a specification may read the fields of every version.
#[test]
fn a_field_of_one_version_is_unknown_in_messages_of_the_other() {
    let folder = Folder::new();
    let messages: &[(usize, &[&[u8]])] = &[(1, &[ONE, SEVEN]), (0, &[ONE]), (1, &[ONE, SEVEN])];
    let file = recording(&folder, "two.mcap", &["float64 v", "float64 v\nint32 extra"], messages);
    let text = folder.file(
        "two.rondel",
        "topic x \"/x\" : p/msg/A\nproperty read = x.extra == 7\nproperty both = x.v < 5\n",
    );
    let run = rondel(["check", "--emit", "every", &text, &file]);
    let of = |property: &str| -> Vec<&str> {
        let lines = run.stdout.lines().filter(|line| line.contains(" step "));
        let own = lines.filter(|line| line.split_whitespace().nth(1) == Some(property));
        own.filter_map(|line| line.split_whitespace().next()).collect()
    };
    assert_eq!(of("read"), ["satisfied", "inconclusive", "satisfied"], "{}", run.stdout);
    assert_eq!(of("both"), ["satisfied"; 3], "{}", run.stdout);
    assert!(run.stderr.contains("field `extra` is missing in p/msg/A of channel 1"), "{}", run.stderr);
}

#[test]
fn a_field_of_another_type_is_counted() {
    let folder = Folder::new();
    let messages: &[(usize, &[&[u8]])] = &[(0, &[ONE]), (1, &[&[2, 0, 0, 0], b"9\0"]), (0, &[ONE])];
    let file = recording(&folder, "other.mcap", &["float64 v", "string v"], messages);
    let text = folder.file("other.rondel", "topic x \"/x\"\nproperty p = x.v < 5\n");
    let run = rondel(["check", "--strict", &text, &file]);
    run.expect_status(4);
    let all = format!("{}{}", run.stdout, run.stderr);
    assert!(all.contains("1 value on x has another type than the specification reads"), "{all}");
    assert!(all.contains("field `v` is string instead of float in p/msg/A of channel 2"), "{all}");
}

/// Recordings that are checked at the same time, each with types of its own.
#[test]
fn several_recordings_are_checked_at_a_time() {
    let folder = Folder::new();
    let text = folder.file("all.rondel", "topic x \"/x\"\nproperty p = x.v < 5\n");
    let (plain, shifted) = ("float64 v", "int32 extra\nfloat64 v");
    let first = recording(&folder, "a.mcap", &[plain, shifted], &[(1, &[SEVEN, &[0; 4], ONE]), (0, &[ONE])]);
    let second =
        recording(&folder, "b.mcap", &[shifted, plain], &[(1, &[NINE]), (0, &[SEVEN, &[0; 4], ONE])]);
    let of = |jobs: &str| {
        let run = rondel(["check", "--format", "json", "--jobs", jobs, &text, &first, &second]);
        run.expect_status(1);
        run.stdout
    };
    let found = of("1");
    assert_eq!(found.lines().filter(|line| line.contains("\"violated\"")).count(), 1, "{found}");
    assert_eq!(of("2"), found);
}
