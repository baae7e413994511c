//! Mutable unions, byte by byte: values that are read, and messages that are refused.

use rondel_decode::cdr::{CdrDecoder, CdrErrorKind, Check, write_json};
use rondel_decode::json::JsonForm;
use rondel_decode::schema::Library;
use rondel_event::{
    Block, Field, Layout, Path, Projection, Read, Slot, TimeUnit, Timestamp, TopicId, ValueType,
};

const TYPE: &str = "enum Mode { OFF, SLOW, FAST };
    @mutable union Choice switch (Mode) { case SLOW: short a; case FAST: @id(9) string b; };
    @final struct Root { octet before; Choice choice; octet after; };";

/// Returns the case `a`, and the member after the union; or the reason why the message is refused, by the plan and as
/// JSON.
fn read(message: &[u8]) -> Result<(Option<i64>, i64), CdrErrorKind> {
    let mut library = Library::new();
    library.add_idl(TYPE, &|_| None).unwrap();
    let schema = library.schema("Root").unwrap();
    let field = |path: &[&str], at| Field {
        path: Path::keys(path.iter().copied()),
        read: Read::Value(ValueType::Int),
        slot: Slot::Int(at),
        exact: false,
    };
    let projection = Projection { fields: vec![field(&["choice", "a"], 0), field(&["after"], 1)] };
    let mut results = Vec::new();
    for check in [Check::Prefix, Check::Trusted, Check::Whole] {
        let mut decoder =
            CdrDecoder::new(TopicId(0), &schema, &projection, None, TimeUnit::Seconds, check).unwrap();
        let mut block = Block::new(Layout { topics: 1, ints: 2, ..Layout::default() });
        let decoded = decoder.decode(message, Timestamp::ZERO, &mut block).map_err(|error| error.kind);
        let value = |at| block.value(Slot::Int(at), ValueType::Int, 0).flatten();
        let int = |at| match value(at) {
            Some(rondel_event::Value::Int(value)) => Some(value),
            _ => None,
        };
        results.push(decoded.map(|()| (int(0), int(1).unwrap())));
    }
    let mut json = Vec::new();
    let written = write_json(&schema, message, JsonForm::EXACT, 200, &mut json).map_err(|error| error.kind);
    assert_eq!(written.err(), results[2].err(), "{message:02x?}");
    assert_eq!((results[0], results[1]), (results[2], results[2]), "{message:02x?}");
    results[0]
}

/// Returns a message of the second version, with these members in the union.
fn second(members: &[&[u8]]) -> Vec<u8> {
    let members = members.concat();
    let mut message = vec![0, 7, 0, 0, 1, 0, 0, 0, members.len() as u8, 0, 0, 0];
    message.extend(members);
    message.push(5);
    message
}

/// Returns a message of the first version.
fn first(members: &[&[u8]]) -> Vec<u8> {
    let mut message = vec![0, 1, 0, 0, 1, 0, 0, 0];
    message.extend(members.concat());
    message.push(5);
    message
}

const SLOW_2: &[u8] = &[0, 0, 0, 0x20, 1, 0, 0, 0];
const FAST_2: &[u8] = &[0, 0, 0, 0x20, 2, 0, 0, 0];
const OFF_2: &[u8] = &[0, 0, 0, 0xa0, 0, 0, 0, 0];
const A_2: &[u8] = &[1, 0, 0, 0x10, 44, 1];
const SLOW_1: &[u8] = &[0, 0x40, 4, 0, 1, 0, 0, 0];
const OFF_1: &[u8] = &[0, 0, 4, 0, 0, 0, 0, 0];
const A_1: &[u8] = &[1, 0, 2, 0, 44, 1, 0, 0];
const END_1: &[u8] = &[2, 0x3f, 0, 0];

#[test]
fn the_second_version_has_a_length_and_headers() {
    assert_eq!(read(&second(&[SLOW_2, A_2])), Ok((Some(300), 5)));
    // No case has this value.
    assert_eq!(read(&second(&[OFF_2])), Ok((None, 5)));
    // A text, whose length is also that of the member.
    assert_eq!(read(&second(&[FAST_2, &[9, 0, 0, 0x50, 2, 0, 0, 0, b'x', 0]])), Ok((None, 5)));
    // A case unknown to this reader.
    assert_eq!(read(&second(&[OFF_2, &[50, 0, 0, 0, 1]])), Ok((None, 5)));
    assert_eq!(read(&second(&[SLOW_2, A_2, &[0, 0], &[50, 0, 0, 0, 1]])), Ok((Some(300), 5)));
}

#[test]
fn the_first_version_has_parameters_and_an_end() {
    assert_eq!(read(&first(&[SLOW_1, A_1, END_1])), Ok((Some(300), 5)));
    assert_eq!(read(&first(&[OFF_1, END_1])), Ok((None, 5)));
    let long = [1, 0x7f, 8, 0, 1, 0, 0, 0x40, 2, 0, 0, 0, 44, 1, 0, 0];
    assert_eq!(read(&first(&[SLOW_1, &long, END_1])), Ok((Some(300), 5)));
    assert_eq!(read(&first(&[OFF_1, &[50, 0, 4, 0, 1, 0, 0, 0], END_1])), Ok((None, 5)));
}

#[test]
fn wrong_messages_are_refused() {
    use CdrErrorKind::*;
    for (members, kind) in [
        (&[] as &[&[u8]], MissingMember(0)),
        (&[SLOW_2], MissingMember(1)),
        (&[FAST_2, A_2], UnexpectedMember(1)),
        (&[A_2, &[0, 0], SLOW_2], UnexpectedMember(1)),
        (&[SLOW_2, SLOW_2], UnexpectedMember(0)),
        (&[SLOW_2, A_2, &[0, 0], A_2], RepeatedMember(1)),
        // Neither a case nor optional.
        (&[OFF_2, &[50, 0, 0, 0x80, 1]], MustUnderstand(50)),
        (&[OFF_2, A_2], UnexpectedMember(1)),
        // Lengths: beyond the end, up to more than all memory; too short; too long.
        (&[SLOW_2, &[1, 0, 0, 0x40, 9, 0, 0, 0, 44, 1]], LengthBeyondEnd(9)),
        (&[SLOW_2, &[1, 0, 0, 0x70, 0xff, 0xff, 0xff, 0xff, 44, 1]], LengthBeyondEnd(u32::MAX)),
        (&[SLOW_2, &[1, 0, 0, 0x00, 44]], Truncated),
        (&[&[0, 0, 0, 0x10, 1, 0]], Truncated),
        (&[&[0, 0, 0, 0x30, 1, 0, 0, 0, 0, 0, 0, 0]], LengthAboveBound(8)),
        (&[SLOW_2, &[1, 0]], Truncated),
    ] {
        assert_eq!(read(&second(members)), Err(kind), "{members:02x?}");
    }
    for (members, kind) in [
        (&[END_1] as &[&[u8]], MissingMember(0)),
        (&[SLOW_1, END_1], MissingMember(1)),
        (&[SLOW_1, A_1, A_1, END_1], RepeatedMember(1)),
        (&[OFF_1, &[50, 0x40, 4, 0, 1, 0, 0, 0], END_1], MustUnderstand(50)),
        (&[OFF_1, &[1, 0x7f, 8, 0, 50, 0, 0, 0x40, 0, 0, 0, 0], END_1], MustUnderstand(50)),
        (&[OFF_1, A_1, END_1], UnexpectedMember(1)),
        (&[SLOW_1, A_1], Truncated),
        (&[SLOW_1, &[1, 0x7f, 8, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 44, 1]], LengthBeyondEnd(u32::MAX)),
        (&[SLOW_1, &[1, 0, 1, 0, 44, 0, 0, 0], END_1], Truncated),
    ] {
        assert_eq!(read(&first(members)), Err(kind), "{members:02x?}");
    }
    // A value that the enumeration does not have.
    let unknown = second(&[&[0, 0, 0, 0x20, 7, 0, 0, 0]]);
    let mut library = Library::new();
    library.add_idl(TYPE, &|_| None).unwrap();
    let schema = library.schema("Root").unwrap();
    let error = write_json(&schema, &unknown, JsonForm::EXACT, 200, &mut Vec::new()).unwrap_err();
    assert_eq!((&*error.path, error.kind), ("choice.discriminator", NotInEnumeration(7)));
}

#[test]
fn cases_have_ids() {
    let ids = |text: &str| -> Vec<u32> {
        let mut library = Library::new();
        library.add_idl(&format!("{text} struct Root {{ U u; }};"), &|_| None).unwrap();
        let schema = library.schema("Root").unwrap();
        let rondel_decode::schema::Type::Named(id) = schema.root().members[0].member_type else { panic!() };
        match schema.definition(id) {
            rondel_decode::schema::Definition::Union(union) => {
                union.cases.iter().map(|case| case.id).collect()
            }
            other => panic!("{other:?}"),
        }
    };
    let (color, x) = (0x0fa5_dd70, 0x01e4_d49d);
    // The discriminator has the id 0.
    assert_eq!(
        ids("union U switch (long) { case 1: long x; case 2: @id(7) long y; default: long z; };"),
        [1, 7, 8]
    );
    assert_eq!(
        ids(
            "@autoid(HASH) union U switch (long) { case 1: long x; case 2: long color; case 3: @id(4) long y; };"
        ),
        [x, color, 4]
    );
    assert_eq!(
        ids(
            "union U switch (long) { case 1: @hashid long x; case 2: @hashid(\"color\") long y; case 3: long z; };"
        ),
        [x, color, color + 1]
    );
    for (text, reason) in [
        ("@mutable union U switch (long) { case 1: @id(0) long x; };", "discriminator's"),
        (
            "@mutable union U switch (long) { case 1: @id(2) long x; case 2: @id(2) long y; };",
            "have the id 2",
        ),
    ] {
        let error = Library::new().add_idl(text, &|_| None).unwrap_err();
        assert!(error.message.contains(reason), "{error}");
    }
}
