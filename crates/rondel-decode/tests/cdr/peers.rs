//! Messages of independent writers: Eclipse's cyclonedds and rosbags, both in Python.

use std::path::{Path as FilePath, PathBuf};
use std::process::Command;

use rondel_decode::cdr::{CdrDecoder, Check, write_packed_json};
use rondel_decode::json::JsonForm;
use rondel_decode::schema::{Library, Schema};
use rondel_event::{
    Block, Field, Layout, Path, Projection, Read, Segment, Slot, TimeUnit, Timestamp, TopicId, ValueType,
};
use serde_json::Value;

/// Returns the Python with independent writers, if there is one.
fn python(test: &str) -> Option<PathBuf> {
    rondel_testkit::python(test, "cyclonedds, rosbags")
}

/// Returns the lines that a script prints.
fn lines(python: &FilePath, script: &str, arguments: &[&str]) -> Vec<Value> {
    let path = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("tests/independent").join(script);
    let output = Command::new(python).arg("-B").arg(path).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digit).collect()
}

/// Reads all leaves of a line, and compares them with the values from its writer.
fn compare(schema: &Schema, line: &Value, is_packed: bool) {
    let mut layout = Layout { topics: 1, ..Layout::default() };
    let mut fields = Vec::new();
    let leaves = line["leaves"].as_array().unwrap();
    for leaf in leaves {
        let segment = |part: &Value| match part.as_str() {
            Some(key) => Segment::Key(key.into()),
            None => Segment::Index(part.as_u64().unwrap() as u32),
        };
        let path = Path(leaf[0].as_array().unwrap().iter().map(segment).collect());
        let next = |count: &mut usize| {
            *count += 1;
            *count as u32 - 1
        };
        let (value_type, slot) = match leaf[1].as_str().unwrap() {
            "bool" => (ValueType::Bool, Slot::Bool(next(&mut layout.bools))),
            "int" => (ValueType::Int, Slot::Int(next(&mut layout.ints))),
            "float" => (ValueType::Float, Slot::Float(next(&mut layout.floats))),
            _ => (ValueType::String, Slot::String(next(&mut layout.strings))),
        };
        fields.push(Field { path, read: Read::Value(value_type), slot, exact: false });
    }
    let projection = Projection { fields };
    let message = bytes(line["message"].as_str().unwrap());
    for check in [Check::Prefix, Check::Whole] {
        let new = if is_packed { CdrDecoder::packed } else { CdrDecoder::new };
        let mut decoder = new(TopicId(0), schema, &projection, None, TimeUnit::Seconds, check).unwrap();
        let mut block = Block::new(layout);
        let result = match is_packed {
            true => decoder.decode_packed(&message, Timestamp::ZERO, &mut block),
            false => decoder.decode(&message, Timestamp::ZERO, &mut block),
        };
        assert_eq!(result, Ok(()), "{line}");
        for (field, leaf) in projection.fields.iter().zip(leaves) {
            let value_type = match &field.read {
                Read::Value(value_type) => *value_type,
                other => panic!("{other:?}"),
            };
            use rondel_event::Value as Leaf;
            let expected = match value_type {
                ValueType::Bool => Leaf::Bool(leaf[2].as_bool().unwrap()),
                ValueType::Int => Leaf::Int(leaf[2].as_i64().unwrap()),
                ValueType::Float => Leaf::Float(leaf[2].as_f64().unwrap()),
                _ => Leaf::String(leaf[2].as_str().unwrap().into()),
            };
            assert_eq!(
                block.value(field.slot, value_type, 0),
                Some(Some(expected)),
                "{}: {line}",
                field.path
            );
        }
    }
}

#[test]
fn messages_of_cyclonedds() {
    let Some(python) = python("messages_of_cyclonedds") else { return };
    let count = (super::cases() / 8).to_string();
    for line in lines(&python, "dds.py", &["1", &count]) {
        let mut library = Library::new();
        library.add_idl(line["idl"].as_str().unwrap(), &|_| None).unwrap();
        compare(&library.schema("Root").unwrap(), &line, false);
    }
}

#[test]
fn messages_of_rosbags() {
    let Some(python) = python("messages_of_rosbags") else { return };
    let known = Library::ros().unwrap();
    let mut compared = 0;
    for line in lines(&python, "ros.py", &["1"]) {
        let name = line["name"].as_str().unwrap();
        let mut library = Library::new();
        library.add_msg(name, line["definition"].as_str().unwrap()).unwrap();
        let schema = library.schema(name).unwrap();
        // In ROS 2 a `char` is an unsigned byte; rosbags hashes it as a character.
        if !line["definition"].as_str().unwrap().contains("char") {
            assert_eq!(schema.rihs01().as_deref(), line["hash"].as_str(), "{name}");
        }
        compare(&schema, &line, false);
        // Built-in types are equal to the recorded definitions.
        if let Ok(known) = known.schema(name) {
            assert_eq!(known.rihs01(), schema.rihs01(), "{name}");
            assert_eq!(known.root(), schema.root(), "{name}");
            compared += 1;
        }
    }
    assert!(compared > 180, "{compared}");
}

#[test]
fn messages_of_ros1() {
    let Some(python) = python("messages_of_ros1") else { return };
    let mut compared = 0;
    for line in (1..4).flat_map(|seed: u32| lines(&python, "ros.py", &[&seed.to_string(), "ros1"])) {
        let name = line["name"].as_str().unwrap();
        let mut library = Library::new();
        library.add_ros1_msg(name, line["definition"].as_str().unwrap()).unwrap();
        let schema = library.schema(name).unwrap();
        compare(&schema, &line, true);
        compared += 1;
        // Every message ends where its type ends, wherever it is truncated.
        let message = bytes(line["message"].as_str().unwrap());
        let mut json = Vec::new();
        write_packed_json(&schema, &message, JsonForm::EXACT, 1 << 20, &mut json).unwrap();
        for leaf in line["leaves"].as_array().unwrap() {
            let mut value = &serde_json::from_slice::<Value>(&json).unwrap();
            for part in leaf[0].as_array().unwrap() {
                value = match part.as_str() {
                    Some(key) => &value[key],
                    None => &value[part.as_u64().unwrap() as usize],
                };
            }
            let is_same = value == &leaf[2] || value.as_f64() == leaf[2].as_f64() && value.is_number();
            assert!(is_same, "{name} {leaf}: {value}");
        }
        for cut in 0..message.len() {
            json.clear();
            let cut = write_packed_json(&schema, &message[..cut], JsonForm::EXACT, 1 << 20, &mut json);
            assert!(cut.is_err() && json.is_empty(), "{name}");
        }
    }
    assert!(compared > 300, "{compared}");
}
