//! XML: documents are read as another library reads them, and fields as a search by the definition finds them.

#![allow(clippy::unwrap_used, clippy::panic)] // a test

#[path = "../common/mod.rs"]
mod common;

use common::{Found, found, path, projection};
use rondel_decode::json::JsonForm;
use rondel_decode::xml::XmlDecoder;
use rondel_decode::{Encoding, MessageWriter};
use rondel_event::{
    Block, Comparison, Condition, Layout, Path, Projection, Quantifier, Read, Test, TimeUnit, Timestamp,
    TopicId, Value, ValueType,
};
use rondel_testkit::{Random, seeds};
use serde_json::Value as Json;

/// Written by `write.py` with xml.etree of Python.
const DOCUMENTS: &str = include_str!("documents.jsonl");

#[test]
fn documents_are_read_as_by_another_library() {
    let writer = MessageWriter::new(Encoding::Xml, None, JsonForm::EXACT).unwrap();
    let (mut read, mut refused) = (0, 0);
    for line in DOCUMENTS.lines() {
        let line: Json = serde_json::from_str(line).unwrap();
        let document = line["xml"].as_str().unwrap();
        let mut out = Vec::new();
        let written = writer.write(document.as_bytes(), 1 << 20, &mut out);
        assert_eq!(written.is_ok(), line["is_read"] == true, "{document}: {written:?}");
        if written.is_ok() {
            assert_eq!(serde_json::from_slice::<Json>(&out).unwrap(), line["json"], "{document}");
            read += 1;
        } else {
            refused += 1;
        }
    }
    assert!(read > 300 && refused > 30);
}

/// An element of a random message.
#[derive(Debug)]
struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, &'static str)>,
    text: &'static str,
    elements: Vec<Element>,
}

const NAMES: [&str; 4] = ["a", "b", "x:a", "text"];
const TEXTS: [&str; 12] = ["1", "-2.5", " 7 ", "+3", "1e2", "NaN", "true", "0", "", "ab", "INF", "1.5.2"];

fn element(random: &mut Random, depth: usize) -> Element {
    let mut names = NAMES.to_vec();
    let attributes = (0..random.index(3))
        .map(|_| (names.remove(random.index(names.len())), random.pick(&TEXTS)))
        .collect();
    let count = if depth == 0 || random.one_in(3) { 0 } else { random.index(4) };
    let elements = (0..count).map(|_| element(random, depth - 1)).collect();
    Element { name: random.pick(&NAMES), attributes, text: random.pick(&TEXTS), elements }
}

impl Element {
    fn write(&self, random: &mut Random, out: &mut String) {
        *out += &format!("<{}", self.name);
        for (name, value) in &self.attributes {
            *out += &format!(" {name}=\"{value}\"");
        }
        out.push('>');
        // A part of the text may follow the elements.
        let split = random.index(self.text.len() + 1);
        *out += &self.text[..split];
        for element in &self.elements {
            *out += random.pick(&["", "<!-- <a>9</a> -->", "<?a 9?>"]);
            element.write(random, out);
        }
        *out += random.pick(&["", "<![CDATA[]]>"]);
        *out += &self.text[split..];
        *out += &format!("</{}>", self.name);
    }

    /// Returns the values of a local name in it: those of attributes, then those of elements.
    fn members(&self, name: &str) -> Vec<Member<'_>> {
        let is = |own: &str| own.rsplit(':').next() == Some(name);
        let attributes = self.attributes.iter().filter(|&&(own, _)| is(own));
        let elements = self.elements.iter().filter(|element| is(element.name));
        let mut members: Vec<Member<'_>> = attributes.map(|&(_, value)| Member::Attribute(value)).collect();
        members.extend(elements.map(Member::Element));
        if members.is_empty() && name == "text" && !self.text.trim().is_empty() {
            members.push(Member::Attribute(self.text));
        }
        members
    }
}

#[derive(Clone, Copy)]
enum Member<'e> {
    Attribute(&'e str),
    Element(&'e Element),
}

impl Member<'_> {
    /// Returns the text, if it has no elements.
    fn text(&self) -> Option<&str> {
        match *self {
            Member::Attribute(text) => Some(text),
            Member::Element(element) => element.elements.is_empty().then_some(element.text),
        }
    }

    fn read(&self, value_type: ValueType) -> Found {
        let Some(text) = self.text() else { return Found::Invalid };
        match (value_type, text.trim()) {
            (ValueType::String, _) => Found::Text(text.to_owned()),
            (ValueType::Bool, "true" | "1") => Found::Bool(true),
            (ValueType::Bool, "false" | "0") => Found::Bool(false),
            (ValueType::Float, "INF") => Found::Float(f64::INFINITY),
            (ValueType::Float, "NaN") => Found::Invalid,
            (ValueType::Float, number) => number.parse().map_or(Found::Invalid, Found::Float),
            (ValueType::Int, "1e2") => Found::Int(100),
            (ValueType::Int, number) => number.parse().map_or(Found::Invalid, Found::Int),
            _ => Found::Invalid,
        }
    }
}

/// Returns the value of the path `first.second` in a message, or of `first` alone.
fn search(message: &Element, first: &str, second: Option<&str>, value_type: ValueType) -> Found {
    let outer = message.members(first);
    let [outer] = outer[..] else {
        return if outer.is_empty() { Found::Absent } else { Found::Invalid };
    };
    let Some(second) = second else { return outer.read(value_type) };
    let element = match outer {
        Member::Element(element) => element,
        Member::Attribute(text) if second == "text" && !text.trim().is_empty() => {
            return outer.read(value_type);
        }
        Member::Attribute(_) => return Found::Absent,
    };
    match element.members(second)[..] {
        [] => Found::Absent,
        [inner] => inner.read(value_type),
        _ => Found::Invalid,
    }
}

fn decoded(projection: &Projection, layout: Layout, message: &str) -> Vec<Found> {
    let mut decoder = XmlDecoder::new(TopicId(0), projection, None, TimeUnit::Seconds).unwrap();
    let mut block = Block::new(layout);
    decoder.decode(message.as_bytes(), Timestamp::ZERO, &mut block).unwrap();
    found(projection, &block, 0)
}

#[test]
fn random_messages_are_read_by_the_definition() {
    for seed in seeds("xml", 500) {
        let random = &mut Random::new(seed);
        let message = element(random, 3);
        let mut text = String::new();
        message.write(random, &mut text);
        let types = [ValueType::Float, ValueType::Bool, ValueType::Int, ValueType::String];
        let mut reads = Vec::new();
        let mut expected = Vec::new();
        for first in ["a", "b", "text"] {
            // A value and the values in it are read together.
            for second in [None, Some("a"), Some("b"), Some("text")] {
                let value_type = random.pick(&types);
                let keys = std::iter::once(first).chain(second);
                reads.push((Path::keys(keys), Read::Value(value_type)));
                expected.push(search(&message, first, second, value_type));
            }
        }
        let all = projection(reads.clone());
        let found = decoded(&all.0, all.1, &text);
        for ((read, expected), found) in reads.into_iter().zip(expected).zip(found) {
            assert_eq!(found, expected, "{text}\n{read:?}");
            let (projection, layout) = projection([read.clone()]);
            let alone = decoded(&projection, layout, &text);
            assert_eq!(alone, [found], "{text}\n{read:?} alone");
        }
    }
}

#[test]
fn elements_of_one_name_are_an_array() {
    let message = "<m><p id='a' v='1'>5</p><q/><p id='b'><v>2</v></p><p id='c' v='x'/></m>";
    let number =
        |path, comparison, value| Condition { alternative: 0, path, test: Test::Number(comparison, value) };
    let any = |conditions| Read::Elements(Quantifier::Any, conditions);
    let is_b =
        Condition { alternative: 0, path: Path::keys(["id"]), test: Test::Equals(Value::String("b".into())) };
    let float = || Read::Value(ValueType::Float);
    let reads = [
        (path("p.1.v"), float(), Found::Float(2.0)),
        (path("p.-1.v"), float(), Found::Invalid),
        (path("p.3.v"), float(), Found::Invalid),
        (path("p.id=a.v"), float(), Found::Float(1.0)),
        (path("p.id=d.v"), float(), Found::Absent),
        (path("p.0"), float(), Found::Float(5.0)),
        (path("q.0"), Read::Value(ValueType::String), Found::Text(String::new())),
        (path("q.1"), Read::Value(ValueType::String), Found::Invalid),
        (path("p"), Read::Length, Found::Int(3)),
        (path("q"), Read::Length, Found::Int(1)),
        (path("r"), Read::Length, Found::Absent),
        (path("q"), Read::Presence, Found::Bool(true)),
        (path("p"), any(vec![is_b.clone(), number(path("v"), Comparison::Greater, 1.5)]), Found::Bool(true)),
        (path("p"), any(vec![is_b, number(path("v"), Comparison::Greater, 2.5)]), Found::Bool(false)),
        (path("p"), any(vec![number(Path::default(), Comparison::Greater, 4.0)]), Found::Bool(true)),
    ];
    let of = reads.iter().map(|(path, read, _)| (path.clone(), read.clone()));
    let (all, layout) = projection(of);
    let found = decoded(&all, layout, message);
    for ((path, read, expected), found) in reads.iter().zip(found) {
        assert_eq!(found, *expected, "{path} {read:?}");
    }
}

#[test]
fn numbers_and_times_are_converted_strictly() {
    let field = |value_type| projection([(path("v"), Read::Value(value_type))]);
    for (text, value_type, expected) in [
        ("1.5", ValueType::Float, Found::Float(1.5)),
        ("-INF", ValueType::Float, Found::Float(f64::NEG_INFINITY)),
        ("inf", ValueType::Float, Found::Invalid),
        ("0x10", ValueType::Float, Found::Invalid),
        ("1,5", ValueType::Float, Found::Invalid),
        ("", ValueType::Float, Found::Invalid),
        ("7.0", ValueType::Int, Found::Int(7)),
        ("7.5", ValueType::Int, Found::Invalid),
        ("9223372036854775808", ValueType::Int, Found::Invalid),
        ("True", ValueType::Bool, Found::Invalid),
        ("\n true \n", ValueType::Bool, Found::Bool(true)),
        ("2", ValueType::Bool, Found::Invalid),
        ("12", ValueType::String, Found::Text("12".to_owned())),
        ("1.5", ValueType::Time, Found::Int(1_500_000_000)),
        ("1970-01-01T00:00:02Z", ValueType::Time, Found::Int(2_000_000_000)),
        ("250 ms", ValueType::Duration, Found::Int(250_000_000)),
        ("soon", ValueType::Time, Found::Invalid),
    ] {
        let (projection, layout) = field(value_type);
        for message in [format!("<m><v>{text}</v></m>"), format!("<m v='{}'/>", text.replace('\n', " "))] {
            assert_eq!(
                decoded(&projection, layout, &message),
                std::slice::from_ref(&expected),
                "{message} {value_type:?}"
            );
        }
    }
}

#[test]
fn a_message_without_a_field_does_not_carry_it() {
    let (projection, layout) = projection([(path("a.b"), Read::Value(ValueType::Float))]);
    for (message, expected) in [
        ("<m/>", Found::Absent),
        ("<m><a/></m>", Found::Absent),
        ("<m><a xsi:nil='true'/></m>", Found::Invalid),
        ("<m><a><b xsi:nil='1'>2</b></a></m>", Found::Invalid),
        ("<m><c><a><b>1</b></a></c></m>", Found::Absent),
        ("<m><a><b><c/></b></a></m>", Found::Invalid),
        ("<m><a><b>2</b></a></m>", Found::Float(2.0)),
    ] {
        assert_eq!(decoded(&projection, layout, message), [expected], "{message}");
    }
}

#[test]
fn a_refused_message_leaves_the_block_unchanged() {
    let (projection, layout) = projection([(path("v"), Read::Value(ValueType::String))]);
    let time = path("t");
    let mut decoder = XmlDecoder::new(TopicId(0), &projection, Some(&time), TimeUnit::Seconds).unwrap();
    for message in ["<m><v>text</v>", "<m><v>text</v><t>never</t></m>", "<m><v>&#0;</v></m>"] {
        let mut block = Block::new(layout);
        block.push(TopicId(0), Timestamp::ZERO);
        let refused = decoder.decode(message.as_bytes(), Timestamp::ZERO, &mut block);
        assert!(refused.is_err(), "{message}");
        assert_eq!((block.len(), block.text_len()), (1, 0), "{message}");
    }
}
