//! Messages of one type with everything in it, in every encoding. What is wholly well formed is read from
//! its prefix with the same result, and a refused message leaves the block unchanged.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use rondel_decode::cdr::{CdrDecoder, Check};
use rondel_decode::schema::Library;
use rondel_event::{
    Block, Comparison, Condition, Field, Layout, Path, Projection, Quantifier, Read, Segment, Slot, Test,
    TimeUnit, Timestamp, TopicId, ValueType,
};

const TYPES: [&str; 3] = ["@final", "@appendable", "@mutable"];
const LAYOUT: Layout = Layout { topics: 1, bools: 4, ints: 3, floats: 3, strings: 3 };

fn types(extensibility: &str) -> String {
    let shape = if extensibility == "@mutable" { extensibility } else { "" };
    format!(
        "@bit_bound(8) enum Color {{ RED, @value(5) GREEN }};
        struct Time {{ long sec; unsigned long nanosec; }};
        @appendable struct Inner {{ octet a; double b; @optional string c; }};
        @mutable struct Other {{ short a; string b; }};
        {shape} union Shape switch (long) {{ case 1: float r; case 2: sequence<Inner> s; default: string t; }};
        {extensibility} struct Root {{
            Time t; boolean b; Color c; string s; wstring w; sequence<Inner> e; double n[2][3]; Inner i[2];
            sequence<sequence<octet>> o; Shape u; Other m; @optional double x; sequence<double, 4> l; uint64 z;
        }};"
    )
}

fn projection() -> Projection {
    let path = |text: &str| {
        let segment = |part: &str| match part.parse() {
            Ok(index) => Segment::Index(index),
            Err(_) => Segment::Key(part.into()),
        };
        Path(text.split('.').map(segment).collect())
    };
    let value = |text: &str, value_type, slot| Field {
        path: path(text),
        read: Read::Value(value_type),
        slot,
        exact: false,
    };
    let condition = |alternative, comparison| Condition {
        alternative,
        path: path("b"),
        test: Test::Number(comparison, 3.0),
    };
    let conditions = vec![condition(0, Comparison::Greater), condition(1, Comparison::LessOrEqual)];
    Projection {
        fields: vec![
            value("b", ValueType::Bool, Slot::Bool(0)),
            value("c", ValueType::String, Slot::String(0)),
            value("s", ValueType::String, Slot::String(1)),
            value("w", ValueType::String, Slot::String(2)),
            value("e.1.b", ValueType::Float, Slot::Float(0)),
            value("n.1.2", ValueType::Float, Slot::Float(1)),
            value("u.s.0.a", ValueType::Int, Slot::Int(0)),
            value("m.a", ValueType::Int, Slot::Int(1)),
            value("z", ValueType::Int, Slot::Int(2)),
            Field {
                path: path("e"),
                read: Read::Elements(Quantifier::Any, conditions),
                slot: Slot::Bool(1),
                exact: false,
            },
            Field {
                path: path("s"),
                read: Read::Number(ValueType::Float),
                slot: Slot::Float(2),
                exact: true,
            },
            Field { path: path("x"), read: Read::Presence, slot: Slot::Bool(2), exact: false },
            Field { path: path("o"), read: Read::Presence, slot: Slot::Bool(3), exact: false },
        ],
    }
}

/// What the rows say of a message in `row`.
fn row(block: &Block, row: usize) -> String {
    let all = projection();
    let values = all.fields.iter().map(|field| {
        let value_type = match field.slot {
            Slot::Bool(_) => ValueType::Bool,
            Slot::Int(_) => ValueType::Int,
            Slot::Float(_) => ValueType::Float,
            Slot::String(_) => ValueType::String,
        };
        format!("{:?} ", block.value(field.slot, value_type, row))
    });
    format!("{:?} {}", block.time(row), values.collect::<String>())
}

fn decoders() -> Vec<[CdrDecoder; 2]> {
    let decoder = |extensibility: &str| {
        let mut library = Library::new();
        library.add_idl(&types(extensibility), &|_| None).unwrap();
        let schema = library.schema("Root").unwrap();
        let (time, topic) = (Path::keys(["t"]), TopicId(0));
        [Check::Prefix, Check::Whole].map(|check| {
            CdrDecoder::new(topic, &schema, &projection(), Some(&time), TimeUnit::Seconds, check).unwrap()
        })
    };
    TYPES.map(decoder).into()
}

fuzz_target!(|payload: &[u8]| {
    static DECODERS: OnceLock<Vec<[CdrDecoder; 2]>> = OnceLock::new();
    for pair in DECODERS.get_or_init(decoders) {
        let mut forms = Vec::new();
        let results = pair.clone().map(|mut decoder| {
            let mut block = Block::new(LAYOUT);
            block.push(TopicId(0), Timestamp::ZERO);
            let result = decoder.decode(payload, Timestamp::ZERO, &mut block);
            assert_eq!(block.len(), 1 + usize::from(result.is_ok()));
            if let Err(error) = &result {
                assert!(error.offset <= payload.len());
                assert_eq!(block.text_len(), 0);
                assert!(projection().fields.iter().all(|field| block.present(field.slot) == 0));
            }
            forms.push(decoder.wide_form());
            result.map(|()| row(&block, 1))
        });
        // Where wide strings have several forms, the whole message may rule out more of them than its lengths.
        if let [prefix, Ok(whole)] = &results
            && forms[0] == forms[1]
        {
            assert_eq!(prefix.as_ref(), Ok(whole));
        }
    }
});
