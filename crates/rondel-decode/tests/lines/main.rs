//! Lines of a trace are decoded equally by the fast path (recorded shapes) and by the slow path.

mod arrays;
mod forms;
mod random;

use std::fmt::Write as _;

use rondel_decode::lines::{LineError, Lines, TraceTopic};
use rondel_event::{Block, Field, Layout, Path, Projection, Read, Segment, Slot, ValueType};

fn field(path: Path, read: Read, slot: Slot) -> Field {
    Field { path, read, slot, exact: false }
}

fn value(path: &str, value_type: ValueType, slot: Slot) -> Field {
    field(Path::keys(path.split('.')), Read::Value(value_type), slot)
}

fn projection() -> Projection {
    Projection {
        fields: vec![
            value("b", ValueType::Bool, Slot::Bool(0)),
            value("n.x", ValueType::Float, Slot::Float(0)),
            value("i", ValueType::Int, Slot::Int(0)),
            value("t", ValueType::Time, Slot::Int(1)),
            value("s", ValueType::String, Slot::String(0)),
            field(Path::keys(["s"]), Read::Presence, Slot::Bool(1)),
            field(
                Path(vec![Segment::Key("a".into()), Segment::Index(1)]),
                Read::Value(ValueType::Float),
                Slot::Float(1),
            ),
        ],
    }
}

const LAYOUT: Layout = Layout { topics: 2, bools: 3, ints: 2, floats: 2, strings: 1 };

fn topics() -> Vec<TraceTopic> {
    // The text of `two` comes from the name of the topic, if that matches.
    [&["one", "fleet/+/pose"][..], &["two", "arm/**", "robot/{s}/pose"]]
        .map(|names| TraceTopic::new(names.iter().map(|name| name.to_string()).collect(), projection()))
        .into()
}

/// Returns all values of a row in a block.
fn row(block: &Block, row: usize) -> String {
    let mut text = format!("{:?} {}", block.topic(row), block.time(row));
    let bit = |mask: u64| mask >> row & 1;
    for i in 0..3 {
        let c = block.bools(i);
        let _ = write!(text, " b{}{}{}", bit(c.present), bit(c.valid), bit(c.values));
    }
    for i in 0..2 {
        let c = block.ints(i);
        let _ = write!(text, " i{}{}", bit(c.present), bit(c.valid));
        if bit(c.valid) == 1 {
            let _ = write!(text, "={}", c.values[row]);
        }
        let c = block.floats(i);
        let _ = write!(text, " f{}{}", bit(c.present), bit(c.valid));
        if bit(c.valid) == 1 {
            let _ = write!(text, "={:?}", c.values[row]);
        }
    }
    let c = block.strings(0);
    let _ = write!(
        text,
        " s{}{}={:?}",
        bit(c.present),
        bit(c.valid),
        String::from_utf8_lossy(block.text(0, row))
    );
    text
}

fn decode(lines: &mut Lines, text: &[u8]) -> (Vec<String>, Option<LineError>) {
    let mut block = Block::new(LAYOUT);
    let mut padded = text.to_vec();
    padded.extend_from_slice(&[b'7'; 16]);
    let (mut rows, mut at) = (Vec::new(), 0);
    loop {
        block.clear();
        let result = lines.decode(&padded, at, text.len(), &mut block);
        rows.extend((0..block.len()).map(|r| row(&block, r)));
        match result {
            Ok(next) if next == at => return (rows, None),
            Ok(next) => at = next,
            Err(error) => return (rows, Some(error)),
        }
    }
}

/// Returns the number of lines on topics that are not read.
fn others(lines: &Lines) -> u64 {
    lines.other_topics().map(|(_, count)| count).sum()
}

/// Returns the rows of a trace without errors, and the number and the first of its undecodable payloads.
fn read(lines: &mut Lines, text: &str) -> (Vec<String>, u64, Option<(u64, String)>) {
    let (rows, error) = decode(lines, text.as_bytes());
    assert_eq!(error, None, "{text}");
    let first = lines.first_undecodable().map(|(line, reason)| (line, reason.to_owned()));
    (rows, lines.undecodable(), first)
}
