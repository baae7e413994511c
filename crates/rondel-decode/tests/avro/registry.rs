//! Messages that name their schemas by an id.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rondel_decode::avro::{AvroSchema, AvroType, SchemaFault, SchemaSource};
use rondel_decode::json::JsonForm;
use rondel_decode::{DecodeError, Decoder, Encoding, MessageErrorKind, MessageType, MessageWriter};
use rondel_event::{Block, Layout, Projection, Read, Slot, TimeUnit, Timestamp, TopicId, ValueType};

use super::common::{Found, found, path, projection};
use super::naive::{bytes, long};

/// Schemas of versions of a type; 9 is of another type.
#[derive(Debug, Default)]
struct Source {
    requests: AtomicU32,
    /// Whether it answers.
    is_up: AtomicBool,
}

impl SchemaSource for Source {
    fn place(&self) -> &str {
        "http://registry"
    }

    fn schema(&self, id: u32) -> Result<AvroType, SchemaFault> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        if !self.is_up.load(Ordering::SeqCst) {
            return Err(SchemaFault::Unanswered);
        }
        let fields = match id {
            1 => r#"{"name": "speed", "type": "double"}"#,
            2 => r#"{"name": "id", "type": "string"}, {"name": "speed", "type": "double"}"#,
            3 => r#"{"name": "id", "type": "string"}"#,
            4 | 5 => r#"{"name": "speed", "type": ["string", "double"]}"#,
            9 => r#"{"name": "id", "type": "long"}, {"name": "speed", "type": "double"}"#,
            _ => return Err(SchemaFault::Unknown),
        };
        let schema = format!(r#"{{"type": "record", "name": "Car", "fields": [{fields}]}}"#);
        Ok(AvroSchema::from_json(schema.as_bytes()).unwrap().root())
    }
}

struct Topic {
    source: Arc<Source>,
    decoder: Decoder,
    projection: Projection,
    layout: Layout,
}

fn topic() -> Topic {
    let source = Arc::new(Source::default());
    source.is_up.store(true, Ordering::SeqCst);
    let of = MessageType::Registered(Arc::clone(&source) as Arc<dyn SchemaSource>);
    let reads = [("speed", Read::Value(ValueType::Float)), ("id", Read::Value(ValueType::String))];
    let (projection, layout) = projection(reads.map(|(text, read)| (path(text), read)));
    let unit = TimeUnit::Seconds;
    let decoder = Decoder::new(Encoding::Avro, Some(&of), TopicId(0), &projection, None, unit).unwrap();
    Topic { source, decoder, projection, layout }
}

impl Topic {
    fn read(&mut self, payload: &[u8]) -> Result<Vec<Found>, MessageErrorKind> {
        let mut block = Block::new(self.layout);
        match self.decoder.decode(payload, Timestamp::ZERO, &mut block) {
            Ok(()) => Ok(found(&self.projection, &block, 0)),
            Err(DecodeError::Message(error)) => {
                assert_eq!(block.len(), 0);
                Err(error.kind)
            }
            Err(other) => panic!("{other}"),
        }
    }
}

fn framed(id: u32, datum: &[u8]) -> Vec<u8> {
    [&[0], &id.to_be_bytes()[..], datum].concat()
}

fn speed(value: f64) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

#[test]
fn each_message_is_read_by_its_schema() {
    let mut topic = topic();
    let text = |text: &str| Found::Text(text.to_owned());
    for _ in 0..3 {
        let old = topic.read(&framed(1, &speed(1.0)));
        assert_eq!(old, Ok(vec![Found::Float(1.0), Found::Invalid]));
        let new = topic.read(&framed(2, &[bytes(b"a"), speed(2.0)].concat()));
        assert_eq!(new, Ok(vec![Found::Float(2.0), text("a")]));
        assert_eq!(topic.read(&framed(3, &bytes(b"b"))), Ok(vec![Found::Invalid, text("b")]));
    }
    assert_eq!(topic.source.requests.load(Ordering::SeqCst), 3);
}

#[test]
fn faults_of_schemas_are_named() {
    let mut topic = topic();
    let no_schema = |id, why| Err(MessageErrorKind::NoSchema(id, why));
    assert_eq!(topic.read(&framed(7, &speed(1.0))), no_schema(7, SchemaFault::Unknown));
    let other = [long(5), speed(1.0)].concat();
    assert_eq!(topic.read(&framed(9, &other)), no_schema(9, SchemaFault::OtherFields));
    assert_eq!(topic.read(&framed(9, &other)), no_schema(9, SchemaFault::OtherFields));
    assert_eq!(topic.read(b"{}"), Err(MessageErrorKind::NotFramed));
    assert_eq!(topic.read(&[0, 0, 0, 0]), Err(MessageErrorKind::NotFramed));
    assert_eq!(topic.read(&framed(1, &[])), Err(MessageErrorKind::Truncated));
    assert_eq!(topic.read(&framed(1, &[0; 9])), Err(MessageErrorKind::TrailingBytes));
    topic.source.is_up.store(false, Ordering::SeqCst);
    assert_eq!(topic.read(&framed(2, &[])), no_schema(2, SchemaFault::Unanswered));
    assert!(topic.read(&framed(1, &speed(1.0))).is_ok(), "a known schema needs no registry");
    topic.source.is_up.store(true, Ordering::SeqCst);
    assert!(topic.read(&framed(2, &[bytes(b"a"), speed(1.0)].concat())).is_ok());
}

#[test]
fn first_value_of_another_type_is_the_earliest_of_all_schemas() {
    let mut topic = topic();
    let text = [long(0), bytes(b"x")].concat();
    assert_eq!(topic.decoder.first_mistyped(), None);
    for (id, time) in [(5, 1), (4, 2)] {
        let mut block = Block::new(topic.layout);
        topic.decoder.decode(&framed(id, &text), Timestamp::from_nanos(time), &mut block).unwrap();
    }
    let first = topic.decoder.first_mistyped().unwrap();
    assert_eq!((first.time, first.offset), (Timestamp::from_nanos(1), None));
    assert!(matches!(first.slot, Slot::Float(_)), "{first:?}");
}

#[test]
fn messages_are_written_as_json_by_their_schemas() {
    let of = Arc::new(MessageType::Registered(topic().source));
    let writer = MessageWriter::new(Encoding::Avro, Some(of), JsonForm::READABLE).unwrap();
    let mut json = Vec::new();
    writer.write(&framed(2, &[bytes(b"a"), speed(2.0)].concat()), 100, &mut json).unwrap();
    assert_eq!(json, br#"{"id":"a","speed":2.0}"#);
    assert!(writer.write(&framed(8, &[]), 100, &mut json).is_err());
}
