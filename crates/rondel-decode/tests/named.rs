//! Array elements identified by their names, in every encoding: random messages, compared with a search by the
//! definition.

#![allow(clippy::unwrap_used, clippy::panic)] // a test

mod common;

use common::{Found, found, path, projection};
use protox::file::{File, FileResolver};
use rondel_decode::protobuf::Descriptors;
use rondel_decode::schema::Library;
use rondel_decode::{Decoder, DecoderError, Encoding, MessageType};
use rondel_event::{
    Block, Comparison, Condition, Field, Layout, Named, PackedTable, Path, Projection, Quantifier, Read,
    Segment, Slot, Table, TableCell, Test, TimeUnit, Timestamp, TopicId, ValueType,
};
use rondel_testkit::Random;
use serde_json::{Value, json};

const FLOAT: Read = Read::Value(ValueType::Float);
const NAMES: [&str; 4] = ["elbow", "wrist", "a \"quote\"", ""];

/// Two parallel arrays, and an array of objects with inner arrays.
#[derive(Debug)]
struct Message {
    names: Vec<&'static str>,
    positions: Vec<f64>,
    items: Vec<Item>,
}

#[derive(Debug)]
struct Item {
    id: &'static str,
    number: i64,
    value: f64,
    parts: Vec<(&'static str, f64)>,
}

fn random(random: &mut Random) -> Message {
    let value = |random: &mut Random| random.index(1000) as f64 / 8.0;
    let name = |random: &mut Random| random.pick(&NAMES);
    let count = random.index(5);
    let names = (0..count).map(|_| name(random)).collect();
    // Like in JointState: of equal length, or empty.
    let positions = if random.one_in(2) { random.index(3) } else { count };
    let positions = (0..positions).map(|_| value(random)).collect();
    let items = (0..random.index(5))
        .map(|_| Item {
            id: name(random),
            number: random.index(3) as i64,
            value: value(random),
            parts: (0..random.index(3)).map(|_| (name(random), value(random))).collect(),
        })
        .collect();
    Message { names, positions, items }
}

/// Returns the fields that are read, with the search for each.
fn reads(has_parallel: bool) -> Vec<(String, Search)> {
    let mut reads: Vec<(String, Search)> = Vec::new();
    for name in NAMES {
        let item = move |message: &Message| message.items.iter().rev().position(|item| item.id == name);
        let item = move |message: &Message| item(message).map(|back| message.items.len() - 1 - back);
        if has_parallel {
            let search = move |message: &Message| match message.names.iter().rposition(|known| *known == name)
            {
                None => Found::Absent,
                Some(at) => message.positions.get(at).map_or(Found::Invalid, |value| Found::Float(*value)),
            };
            reads.push((format!("position.name~{name}"), Box::new(search)));
        }
        let search = move |message: &Message| match item(message) {
            None => Found::Absent,
            Some(at) => Found::Float(message.items[at].value),
        };
        reads.push((format!("items.id={name}.value"), Box::new(search)));
    }
    for number in 0..3 {
        let search = move |message: &Message| match message.items.iter().rfind(|item| item.number == number) {
            None => Found::Absent,
            Some(item) => Found::Float(item.value),
        };
        reads.push((format!("items.number={number}.value"), Box::new(search)));
    }
    reads
}

type Search = Box<dyn Fn(&Message) -> Found>;

/// Returns the message in an encoding.
fn payload(encoding: Encoding, message: &Message, is_name_last: bool) -> Vec<u8> {
    match encoding {
        Encoding::Json => text(message, is_name_last).into_bytes(),
        Encoding::Cbor => {
            let mut bytes = Vec::new();
            ciborium::into_writer(&tree(message, is_name_last), &mut bytes).unwrap();
            bytes
        }
        Encoding::Msgpack => rmp_serde::to_vec(&tree(message, is_name_last)).unwrap(),
        Encoding::Cdr => cdr(message),
        _ => protobuf(message),
    }
}

fn tree(message: &Message, is_name_last: bool) -> Value {
    let part = |(id, value): &(&str, f64)| json!({ "id": id, "value": value });
    let item = |item: &Item| {
        let parts: Vec<Value> = item.parts.iter().map(part).collect();
        json!({ "id": item.id, "number": item.number, "value": item.value, "parts": parts })
    };
    let items: Vec<Value> = message.items.iter().map(item).collect();
    let mut object = serde_json::Map::new();
    let mut members = vec![
        ("name", json!(message.names)),
        ("more", json!({ "name": ["elbow"], "position": [-1] })),
        ("position", json!(message.positions)),
        ("items", Value::Array(items)),
    ];
    if is_name_last {
        members.reverse();
    }
    object.extend(members.into_iter().map(|(name, value)| (name.to_owned(), value)));
    Value::Object(object)
}

/// Returns the members in this order, which the map of `serde_json` does not keep.
fn text(message: &Message, is_name_last: bool) -> String {
    let tree = tree(message, is_name_last);
    let mut names = ["name", "more", "position", "items"];
    if is_name_last {
        names.reverse();
    }
    let members: Vec<String> = names.iter().map(|name| format!("{}: {}", json!(name), tree[name])).collect();
    format!("{{{}}}", members.join(", "))
}

fn cdr(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    let align = |bytes: &mut Vec<u8>, size: usize| bytes.resize(bytes.len().next_multiple_of(size), 0);
    let length = |bytes: &mut Vec<u8>, length: usize| {
        align(bytes, 4);
        bytes.extend((length as u32).to_le_bytes());
    };
    let text = |bytes: &mut Vec<u8>, text: &str| {
        length(bytes, text.len() + 1);
        bytes.extend(text.as_bytes());
        bytes.push(0);
    };
    let float = |bytes: &mut Vec<u8>, value: f64| {
        align(bytes, 8);
        bytes.extend(value.to_le_bytes());
    };
    length(&mut bytes, message.names.len());
    message.names.iter().for_each(|name| text(&mut bytes, name));
    length(&mut bytes, message.positions.len());
    message.positions.iter().for_each(|value| float(&mut bytes, *value));
    length(&mut bytes, message.items.len());
    for item in &message.items {
        text(&mut bytes, item.id);
        align(&mut bytes, 8);
        bytes.extend(item.number.to_le_bytes());
        float(&mut bytes, item.value);
        length(&mut bytes, item.parts.len());
        for (id, value) in &item.parts {
            text(&mut bytes, id);
            float(&mut bytes, *value);
        }
    }
    [&[0, 1, 0, 0], &bytes[..]].concat()
}

const MSG: &str = "string[] name\nfloat64[] position\nItem[] items\n";
const ITEM: &str = "string id\nint64 number\nfloat64 value\nPart[] parts\n";

fn cdr_type(root: &str) -> Result<MessageType, rondel_decode::schema::SchemaError> {
    let mut library = Library::new();
    library.add_msg("demo/msg/Part", "string id\nfloat64 value\n")?;
    library.add_msg("demo/msg/Item", ITEM)?;
    library.add_msg("demo/msg/Root", root)?;
    library.schema("demo/msg/Root").map(MessageType::Cdr)
}

const PROTO: &str = r#"syntax = "proto3";
message Part { string id = 1; double value = 2; }
message Item { string id = 1; int64 number = 2; double value = 3; repeated Part parts = 4; }
message Root { repeated string name = 1; repeated double position = 2; repeated Item items = 3; }"#;

/// A file without a disk.
struct Root;

impl FileResolver for Root {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        File::from_source(name, PROTO)
    }
}

fn proto() -> Vec<u8> {
    let mut compiler = protox::Compiler::with_file_resolver(Root);
    compiler.open_file("root.proto").unwrap();
    compiler.encode_file_descriptor_set()
}

fn protobuf(message: &Message) -> Vec<u8> {
    // No length is above 127.
    let part = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
    let double = |number: u8, value: f64| [&[number << 3 | 1][..], &value.to_le_bytes()].concat();
    let mut bytes: Vec<u8> = message.names.iter().flat_map(|name| part(1, name.as_bytes())).collect();
    bytes.extend(part(
        2,
        &message.positions.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>(),
    ));
    for item in &message.items {
        let parts = item
            .parts
            .iter()
            .flat_map(|(id, value)| part(4, &[part(1, id.as_bytes()), double(2, *value)].concat()));
        let mut own =
            [part(1, item.id.as_bytes()), vec![2 << 3, item.number as u8], double(3, item.value)].concat();
        own.extend(parts);
        bytes.extend(part(3, &own));
    }
    bytes
}

fn decode(decoder: &mut Decoder, all: &[(String, Search)], payload: &[u8]) -> Vec<Found> {
    let (projection, layout) = projection(all.iter().map(|(text, _)| (path(text), FLOAT)));
    let mut block = Block::new(layout);
    decoder.decode(payload, Timestamp::ZERO, &mut block).unwrap();
    found(&projection, &block, 0)
}

fn decoder(
    encoding: Encoding,
    message_type: Option<&MessageType>,
    all: &[(String, Search)],
) -> Result<Decoder, DecoderError> {
    let (projection, _) = projection(all.iter().map(|(text, _)| (path(text), FLOAT)));
    Decoder::new(encoding, message_type, TopicId(0), &projection, None, TimeUnit::Seconds)
}

#[test]
fn random_messages_are_searched_in_every_encoding() {
    let (all, records) = (reads(true), reads(false));
    let cdr_type = cdr_type(MSG).unwrap();
    let descriptors = proto();
    let proto_type = Descriptors::from_bytes(&descriptors).unwrap().message("Root").unwrap();
    let proto_type = MessageType::Protobuf(proto_type);
    let mut decoders = [
        (Encoding::Json, None, &all),
        (Encoding::Cbor, None, &all),
        (Encoding::Msgpack, None, &all),
        (Encoding::Cdr, Some(&cdr_type), &all),
        (Encoding::Protobuf, Some(&proto_type), &records),
    ]
    .map(|(encoding, of, reads)| (encoding, decoder(encoding, of, reads).unwrap(), reads));
    let mut compared = [0; 3];
    for seed in rondel_testkit::seeds("random_messages_are_searched_in_every_encoding", 500) {
        let mut source = Random::new(seed);
        let message = random(&mut source);
        let is_name_last = source.one_in(2);
        for (encoding, decoder, reads) in &mut decoders {
            let payload = payload(*encoding, &message, is_name_last);
            let expected: Vec<Found> = reads.iter().map(|(_, search)| search(&message)).collect();
            let found = decode(decoder, reads, &payload);
            assert_eq!(found, expected, "seed {seed}, {encoding}: {message:?}");
            for value in expected {
                compared[match value {
                    Found::Absent => 0,
                    Found::Invalid => 1,
                    _ => 2,
                }] += 1;
            }
        }
    }
    assert!(rondel_testkit::is_replay() || compared.iter().all(|count| *count > 1000), "{compared:?}");
}

/// The deciding element is that of the definition, in every encoding.
#[test]
fn the_deciding_element_is_found() {
    let condition = |alternative, path: &str, test| Condition { alternative, path: common::path(path), test };
    let above = |alternative| condition(alternative, "value", Test::Number(Comparison::Greater, 60.0));
    let elbow = condition(0, "id", Test::Equals(rondel_event::Value::String("elbow".into())));
    let tests = vec![above(0), elbow, condition(1, "number", Test::Number(Comparison::Less, 1.0))];
    let meets = |item: &Item| item.value > 60.0 && item.id == "elbow" || item.number < 1;
    let reads = [
        ("items", Read::Witness(Quantifier::Any, tests.clone())),
        ("items", Read::Witness(Quantifier::All, tests)),
        ("items", Read::Witness(Quantifier::Any, Vec::new())),
        ("position", Read::Witness(Quantifier::Min, Vec::new())),
        ("position", Read::Witness(Quantifier::Max, Vec::new())),
    ];
    let (projection, layout) = projection(reads.map(|(text, read)| (path(text), read)));
    let cdr_type = cdr_type(MSG).unwrap();
    let descriptors = Descriptors::from_bytes(&proto()).unwrap().message("Root").unwrap();
    let proto_type = MessageType::Protobuf(descriptors);
    let mut decoders = [
        (Encoding::Json, None),
        (Encoding::Cbor, None),
        (Encoding::Msgpack, None),
        (Encoding::Cdr, Some(&cdr_type)),
        (Encoding::Protobuf, Some(&proto_type)),
    ]
    .map(|(encoding, of)| {
        let decoder = Decoder::new(encoding, of, TopicId(0), &projection, None, TimeUnit::Seconds);
        (encoding, decoder.unwrap())
    });
    let mut count = 0;
    for seed in rondel_testkit::seeds("the_deciding_element_is_found", 500) {
        let mut source = Random::new(seed);
        let message = random(&mut source);
        let element = |at: Option<usize>| match at.map(|at| (at, &message.items[at])) {
            Some((at, Item { id, number, value, .. })) => {
                let id = json!(id);
                Found::Text(format!("[{at}] value {value}, id {id}, number {number}"))
            }
            None => Found::Invalid,
        };
        let best = |is_better: fn(f64, f64) -> bool| {
            let all = message.positions.iter().copied().enumerate();
            let best = all.reduce(|best, next| if is_better(next.1, best.1) { next } else { best });
            best.map_or(Found::Invalid, |(at, _)| Found::Text(format!("[{at}]")))
        };
        let expected = [
            element(message.items.iter().position(meets)),
            element(message.items.iter().position(|item| !meets(item))),
            if message.items.is_empty() { Found::Invalid } else { Found::Text("[0]".to_owned()) },
            best(|a, b| a < b),
            best(|a, b| a > b),
        ];
        for (encoding, decoder) in &mut decoders {
            let payload = payload(*encoding, &message, false);
            let mut block = Block::new(layout);
            decoder.decode(&payload, Timestamp::ZERO, &mut block).unwrap();
            let sorted = |found: &Found| match found {
                // The values are in the order of the message.
                Found::Text(text) if text.contains(' ') => {
                    let (at, values) = text.split_once(' ').unwrap();
                    let mut values: Vec<&str> = values.split(", ").collect();
                    values.sort_unstable();
                    format!("{at} {}", values.join(", "))
                }
                other => format!("{other:?}"),
            };
            let found: Vec<String> = found(&projection, &block, 0).iter().map(sorted).collect();
            let expected: Vec<String> = expected.iter().map(sorted).collect();
            assert_eq!(found, expected, "seed {seed}, {encoding}: {message:?}");
            count += expected.iter().filter(|found| found.starts_with('[')).count();
        }
    }
    assert!(rondel_testkit::is_replay() || count > 1000, "{count}");
}

#[test]
fn elements_of_elements_are_found() {
    let nested =
        |text: &str| -> Vec<(String, Search)> { vec![(text.to_owned(), Box::new(|_| Found::Absent))] };
    let message = Message {
        names: vec![],
        positions: vec![],
        items: vec![
            Item { id: "elbow", number: 1, value: 1.0, parts: vec![("wrist", 2.0), ("elbow", 3.0)] },
            Item { id: "wrist", number: 2, value: 4.0, parts: vec![("elbow", 5.0)] },
        ],
    };
    let cdr_type = cdr_type(MSG).unwrap();
    for (text, expected) in [
        ("items.id=elbow.parts.id=elbow.value", Found::Float(3.0)),
        ("items.id=wrist.parts.id=elbow.value", Found::Float(5.0)),
        ("items.id=wrist.parts.id=wrist.value", Found::Absent),
        ("items.0.parts.id=wrist.value", Found::Float(2.0)),
        ("items.id=elbow.parts.1.value", Found::Float(3.0)),
        ("items.id=wrist.parts.1.value", Found::Invalid),
        ("items.id=none.parts.1.value", Found::Absent),
    ] {
        let read = nested(text);
        let tree = tree(&message, false);
        let mut json = decoder(Encoding::Json, None, &read).unwrap();
        assert_eq!(
            decode(&mut json, &read, tree.to_string().as_bytes()),
            std::slice::from_ref(&expected),
            "json {text}"
        );
        let mut bytes = Vec::new();
        ciborium::into_writer(&tree, &mut bytes).unwrap();
        let mut cbor = decoder(Encoding::Cbor, None, &read).unwrap();
        assert_eq!(decode(&mut cbor, &read, &bytes), std::slice::from_ref(&expected), "cbor {text}");
        let mut of_cdr = decoder(Encoding::Cdr, Some(&cdr_type), &read).unwrap();
        assert_eq!(decode(&mut of_cdr, &read, &cdr(&message)), [expected], "cdr {text}");
    }
}

#[test]
fn fields_without_searchable_elements_are_refused() {
    let read = |text: &str| -> Vec<(String, Search)> { vec![(text.to_owned(), Box::new(|_| Found::Absent))] };
    let is_refused = |root: &str, text: &str| {
        let cdr_type = cdr_type(root).unwrap();
        decoder(Encoding::Cdr, Some(&cdr_type), &read(text)).err().map(|error| error.to_string())
    };
    let behind = "float64[] position\nstring[] name\n";
    for (root, text, expected) in [
        (behind, "position.name~elbow", "an element by names that stand behind it"),
        (MSG, "position.names~elbow", "the message type has no such field"),
        (MSG, "places.name~elbow", "the message type has no such field"),
        (
            "string name\nfloat64[] position\n",
            "position.name~elbow",
            "field `name`: the field is no array of one dimension",
        ),
        (MSG, "items.key=elbow.value", "the message type has no such field"),
        (MSG, "name.id=elbow.value", "the message type has no such field"),
    ] {
        let error = is_refused(root, text).unwrap_or_default();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let descriptors = Descriptors::from_bytes(&proto()).unwrap().message("Root").unwrap();
    let error =
        decoder(Encoding::Protobuf, Some(&MessageType::Protobuf(descriptors)), &read("position.name~elbow"));
    assert!(error.err().unwrap().to_string().contains("by the names in another one"));
}

/// A truncated message is refused or read as before, without other effects.
#[test]
fn damaged_messages_do_not_panic() {
    let all = reads(true);
    let cdr_type = cdr_type(MSG).unwrap();
    for seed in 0..50 {
        let message = random(&mut Random::new(seed));
        let mut cbor = Vec::new();
        ciborium::into_writer(&tree(&message, false), &mut cbor).unwrap();
        let json = text(&message, false).into_bytes();
        for (encoding, of, payload) in [
            (Encoding::Json, None, json),
            (Encoding::Cbor, None, cbor),
            (Encoding::Cdr, Some(&cdr_type), cdr(&message)),
        ] {
            let mut decoder = decoder(encoding, of, &all).unwrap();
            let (_, layout) = projection(all.iter().map(|(text, _)| (path(text), FLOAT)));
            let mut block = Block::new(layout);
            for end in 0..payload.len() {
                block.clear();
                let _ = decoder.decode(&payload[..end], Timestamp::ZERO, &mut block);
                let mut changed = payload.clone();
                changed[end] ^= 1 << (seed % 8);
                let _ = decoder.decode(&changed, Timestamp::ZERO, &mut block);
            }
        }
    }
}

/// Returns a field of the element named by a parameter.
fn of_each(array: &str, key: &str, is_parallel: bool, rest: &[&str], read: Read, slot: Slot) -> Field {
    let named = Named::of_parameter(Path::keys([key]), "n", is_parallel);
    let rest = rest.iter().map(|key| Segment::Key((*key).into()));
    let array = [Segment::Key(array.into()), Segment::Named(Box::new(named))];
    Field { path: Path(array.into_iter().chain(rest).collect()), read, slot, exact: false }
}

/// Returns the rows of a table, and the length of an array that differs.
fn unpacked(table: &Table, text: &[u8]) -> (Option<u64>, Vec<Vec<Found>>) {
    let mut packed = PackedTable::new(text).unwrap();
    let found = |cell: TableCell<'_>| match cell {
        TableCell::Absent => Found::Absent,
        TableCell::Invalid => Found::Invalid,
        TableCell::Bool(value) => Found::Bool(value),
        TableCell::Int(value) => Found::Int(value),
        TableCell::Float(value) => Found::Float(value),
        TableCell::Text(text) => Found::Text(String::from_utf8(text.to_vec()).unwrap()),
    };
    assert_eq!(table.of_message().count(), 0);
    let rows = (0..packed.rows).map(|_| table.of_element().map(|_| found(packed.cell())).collect()).collect();
    (packed.other, rows)
}

/// Every element of a message is a row of a table, in every encoding.
#[test]
fn tables_have_every_element_in_every_encoding() {
    let (text, int) = (Read::Value(ValueType::String), Read::Value(ValueType::Int));
    let joints = vec![
        of_each("name", "name", true, &[], text.clone(), Slot::String(0)),
        of_each("position", "name", true, &[], FLOAT, Slot::Float(0)),
    ];
    let items = vec![
        of_each("items", "id", false, &["id"], text, Slot::String(1)),
        of_each("items", "id", false, &["value"], FLOAT, Slot::Float(1)),
        of_each("items", "id", false, &["number"], int, Slot::Int(0)),
        of_each("items", "id", false, &["parts"], Read::Length, Slot::Int(1)),
    ];
    let table = |fields: Vec<Field>| std::sync::Arc::new(Table { key: fields[0].path.clone(), fields });
    let tables = [table(joints), table(items)];
    let field = |(column, table): (u32, &std::sync::Arc<Table>)| Field {
        path: Table::array(&table.key),
        read: Read::Table(table.clone()),
        slot: Slot::String(column),
        exact: false,
    };
    let projection = Projection { fields: (0..).zip(&tables).map(field).collect() };
    let layout = Layout { topics: 1, strings: 2, ..Layout::default() };
    let cdr_type = cdr_type(MSG).unwrap();
    let descriptors = Descriptors::from_bytes(&proto()).unwrap().message("Root").unwrap();
    let proto_type = MessageType::Protobuf(descriptors);
    let mut decoders = [
        (Encoding::Json, None),
        (Encoding::Cbor, None),
        (Encoding::Msgpack, None),
        (Encoding::Cdr, Some(&cdr_type)),
        (Encoding::Protobuf, Some(&proto_type)),
    ]
    .map(|(encoding, of)| {
        let decoder = Decoder::new(encoding, of, TopicId(0), &projection, None, TimeUnit::Seconds);
        (encoding, decoder.unwrap())
    });
    for seed in rondel_testkit::seeds("tables_have_every_element_in_every_encoding", 500) {
        let mut source = Random::new(seed);
        let mut message = random(&mut source);
        if seed % 16 == 0 {
            // More than the initial space. No length of Protobuf is above 127.
            message.names = ["", "wrist"].repeat(10);
        }
        let is_name_last = source.one_in(2);
        let (names, positions) = (message.names.len(), message.positions.len());
        let joint = |(at, name): (usize, &&str)| {
            let position = message.positions.get(at).map_or(Found::Invalid, |value| Found::Float(*value));
            vec![Found::Text((*name).to_owned()), position]
        };
        let item = |item: &Item| {
            let id = Found::Text(item.id.to_owned());
            vec![id, Found::Float(item.value), Found::Int(item.number), Found::Int(item.parts.len() as i64)]
        };
        let other = (names != positions).then_some(positions as u64);
        let expected = [
            (other, message.names.iter().enumerate().map(joint).collect::<Vec<_>>()),
            (None, message.items.iter().map(item).collect()),
        ];
        for (encoding, decoder) in &mut decoders {
            let mut block = Block::new(layout);
            decoder.decode(&payload(*encoding, &message, is_name_last), Timestamp::ZERO, &mut block).unwrap();
            for (column, (table, expected)) in (0..).zip(tables.iter().zip(&expected)) {
                let found = unpacked(table, block.text(column, 0));
                assert_eq!(found, *expected, "seed {seed}, {encoding}: {message:?}");
            }
            assert_eq!(decoder.mistyped(), 0, "seed {seed}, {encoding}: {message:?}");
        }
    }
}
