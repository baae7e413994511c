//! Mutable structures, byte by byte: members that a newer writer knows.

use rondel_decode::cdr::{CdrDecoder, CdrErrorKind, Check, write_json};
use rondel_decode::json::JsonForm;
use rondel_event::{
    Block, Field, Layout, Path, Projection, Read, Slot, TimeUnit, Timestamp, TopicId, Value, ValueType,
};

/// Returns the member `a`, or the reason why the message is refused: by the plans, which must agree, and as JSON.
fn read(message: &[u8]) -> [Result<i64, CdrErrorKind>; 2] {
    let schema = super::schema("@mutable struct Root { @id(1) short a; @id(2) short b; };");
    let field = Field {
        path: Path::keys(["a"]),
        read: Read::Value(ValueType::Int),
        slot: Slot::Int(0),
        exact: false,
    };
    let projection = Projection { fields: vec![field] };
    let results = [Check::Prefix, Check::Trusted].map(|check| {
        let mut decoder =
            CdrDecoder::new(TopicId(0), &schema, &projection, None, TimeUnit::Seconds, check).unwrap();
        let mut block = Block::new(Layout { topics: 1, ints: 1, ..Layout::default() });
        decoder.decode(message, Timestamp::ZERO, &mut block).map_err(|error| error.kind)?;
        match block.value(Slot::Int(0), ValueType::Int, 0).flatten() {
            Some(Value::Int(value)) => Ok(value),
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(results[0], results[1], "{message:02x?}");
    let json = write_json(&schema, message, JsonForm::EXACT, 200, &mut Vec::new());
    [results[0], json.map(|_| 0).map_err(|error| error.kind)]
}

fn second(members: &[&[u8]]) -> Vec<u8> {
    let members = members.concat();
    [&[0, 0x0b, 0, 0, members.len() as u8, 0, 0, 0], &members[..]].concat()
}

fn first(members: &[&[u8]]) -> Vec<u8> {
    [&[0, 3, 0, 0], &members.concat()[..], &[2, 0x3f, 0, 0]].concat()
}

#[test]
fn an_unknown_member_that_must_be_understood_is_an_error() {
    const MUST: CdrErrorKind = CdrErrorKind::MustUnderstand(50);
    let (a, b) = (&[1, 0, 0, 0x10, 44, 1, 0, 0], &[2, 0, 0, 0x90, 5, 0, 0, 0]);
    let (may, must) = (&[50, 0, 0, 0x10, 7, 0, 0, 0], &[50, 0, 0, 0x90, 7, 0, 0, 0]);
    assert_eq!(read(&second(&[may, b, a])), [Ok(300), Ok(0)]);
    assert_eq!(read(&second(&[must, b, a])), [Err(MUST); 2]);
    // Bytes after the last member that is read are not accessed.
    assert_eq!(read(&second(&[b, a, must])), [Ok(300), Err(MUST)]);

    let (a, b) = (&[1, 0, 4, 0, 44, 1, 0, 0], &[2, 0x40, 4, 0, 5, 0, 0, 0]);
    let (may, must) = (&[50, 0, 4, 0, 7, 0, 0, 0], &[50, 0x40, 4, 0, 7, 0, 0, 0]);
    assert_eq!(read(&first(&[may, b, a])), [Ok(300), Ok(0)]);
    assert_eq!(read(&first(&[must, b, a])), [Err(MUST); 2]);
    assert_eq!(read(&first(&[b, a, must])), [Err(MUST); 2]);
}
