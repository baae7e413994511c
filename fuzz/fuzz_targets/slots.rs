//! A projection that reads into every kind of slot, and what a block then says of a row.

use std::fmt::Write as _;

use rondel_event::{
    Block, Comparison, Condition, Field, Layout, Path, Projection, Quantifier, Read, Segment, Slot, Test,
    Value, ValueType,
};

pub const LAYOUT: Layout = Layout { topics: 4, bools: 4, ints: 3, floats: 3, strings: 1 };

/// Short names, so that the fuzzer finds them.
pub fn projection() -> Projection {
    let value = |path: &str, value_type, slot| Field {
        path: Path::keys(path.split('.')),
        read: Read::Value(value_type),
        slot,
        exact: false,
    };
    let elements = |quantifier, slot| {
        let condition =
            |alternative, key: &str, test| Condition { alternative, path: Path::keys([key]), test };
        let conditions = vec![
            condition(0, "k", Test::Equals(Value::String("c".into()))),
            condition(0, "v", Test::Number(Comparison::Greater, 3.0)),
            condition(1, "k", Test::OtherText("c".into())),
            condition(1, "v", Test::Number(Comparison::NotEqual, 3.0)),
            condition(2, "k", Test::Equals(Value::Bool(false))),
        ];
        Field { path: Path::keys(["e"]), read: Read::Elements(quantifier, conditions), slot, exact: false }
    };
    Projection {
        fields: vec![
            value("b", ValueType::Bool, Slot::Bool(0)),
            value("i", ValueType::Int, Slot::Int(0)),
            value("f", ValueType::Float, Slot::Float(0)),
            value("t", ValueType::Time, Slot::Int(1)),
            value("d", ValueType::Duration, Slot::Int(2)),
            value("s", ValueType::String, Slot::String(0)),
            value("n.x", ValueType::Float, Slot::Float(1)),
            Field { path: Path::keys(["s"]), read: Read::Presence, slot: Slot::Bool(1), exact: false },
            Field {
                path: Path(vec![Segment::Key("a".into()), Segment::Index(1)]),
                read: Read::Value(ValueType::Float),
                slot: Slot::Float(2),
                exact: false,
            },
            elements(Quantifier::Any, Slot::Bool(2)),
            elements(Quantifier::All, Slot::Bool(3)),
        ],
    }
}

/// Everything that a block says of a row.
pub fn row(block: &Block, row: usize) -> String {
    let bit = |mask: u64| mask >> row & 1;
    let mut text = format!("{:?} {}", block.topic(row), block.time(row).as_nanos());
    let _ = write!(text, " {:?}", block.arrival(row));
    // Writing to a String does not fail.
    for i in 0..LAYOUT.bools as u32 {
        let c = block.bools(i);
        let _ = write!(text, " b{}{}{}", bit(c.present), bit(c.valid), bit(c.values));
    }
    for i in 0..LAYOUT.ints as u32 {
        let c = block.ints(i);
        let value = (bit(c.valid) == 1).then_some(c.values[row]);
        let _ = write!(text, " i{}{value:?}", bit(c.present));
    }
    for i in 0..LAYOUT.floats as u32 {
        let c = block.floats(i);
        let value = (bit(c.valid) == 1).then_some(c.values[row].to_bits());
        let _ = write!(text, " f{}{value:?}", bit(c.present));
    }
    let c = block.strings(0);
    let value = (bit(c.valid) == 1).then_some(String::from_utf8_lossy(block.text(0, row)));
    let _ = write!(text, " s{}{value:?}", bit(c.present));
    text
}
