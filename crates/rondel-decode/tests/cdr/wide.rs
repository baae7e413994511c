//! Wide strings in the forms of several implementations, byte by byte.

use rondel_decode::cdr::{CdrDecoder, CdrErrorKind, Check, WideForm, write_json};
use rondel_decode::json::JsonForm;
use rondel_decode::schema::{Library, Schema};
use rondel_event::{
    Block, Field, Layout, Path, Projection, Quantifier, Read, Slot, TimeUnit, Timestamp, TopicId, Value,
    ValueType,
};

const FORMS: [WideForm; 3] = [WideForm::Bytes, WideForm::Units, WideForm::Words];

/// A message of CDR under construction.
struct Message {
    bytes: Vec<u8>,
    is_big: bool,
    form: WideForm,
}

impl Message {
    fn new(is_big: bool, form: WideForm) -> Message {
        Message { bytes: vec![0, u8::from(!is_big), 0, 0], is_big, form }
    }

    fn number<const N: usize>(mut self, big: [u8; N]) -> Message {
        while !(self.bytes.len() - 4).is_multiple_of(N) {
            self.bytes.push(0);
        }
        let mut bytes = big;
        if !self.is_big {
            bytes.reverse();
        }
        self.bytes.extend(bytes);
        self
    }

    fn int(self, value: i32) -> Message {
        self.number(value.to_be_bytes())
    }

    fn float(self, value: f64) -> Message {
        self.number(value.to_be_bytes())
    }

    fn wide(self, text: &str) -> Message {
        let units: Vec<u16> = text.encode_utf16().collect();
        match self.form {
            WideForm::Words => {
                let words = self.int(units.len() as i32);
                units.iter().fold(words, |message, unit| message.int((*unit).into()))
            }
            form => {
                let size = if form == WideForm::Bytes { 2 } else { 1 };
                let message = self.int((size * units.len()) as i32);
                units.iter().fold(message, |message, unit| message.number(unit.to_be_bytes()))
            }
        }
    }

    /// Returns the message padded to a multiple of four bytes, with the padding stated in the header or not.
    fn padded(mut self, is_stated: bool) -> Vec<u8> {
        let padding = self.bytes.len().wrapping_neg() % 4;
        self.bytes.resize(self.bytes.len() + padding, 0);
        if is_stated {
            self.bytes[3] = padding as u8;
        }
        self.bytes
    }
}

fn messages(form: WideForm) -> [Message; 2] {
    [Message::new(false, form), Message::new(true, form)]
}

fn schema(definition: &str) -> Schema {
    let mut library = Library::new();
    library.add_msg("t/msg/T", definition).unwrap();
    library.schema("t/msg/T").unwrap()
}

fn field(path: &[&str], read: Read, slot: Slot) -> Field {
    Field { path: Path::keys(path.iter().copied()), read, slot, exact: false }
}

fn decoder(schema: &Schema, fields: Vec<Field>) -> CdrDecoder {
    let projection = Projection { fields };
    CdrDecoder::new(TopicId(0), schema, &projection, None, TimeUnit::Seconds, Check::Trusted).unwrap()
}

/// Reads the values of these slots from a message.
fn read(
    decoder: &mut CdrDecoder,
    message: &[u8],
    slots: &[(Slot, ValueType)],
) -> Result<Vec<Value>, CdrErrorKind> {
    let mut block = Block::new(Layout { topics: 1, bools: 1, ints: 2, floats: 1, strings: 2 });
    decoder.decode(message, Timestamp::ZERO, &mut block).map_err(|error| error.kind)?;
    Ok(slots.iter().map(|(slot, of)| block.value(*slot, *of, 0).flatten().unwrap()).collect())
}

fn json(schema: &Schema, message: &[u8]) -> Result<String, CdrErrorKind> {
    let mut out = Vec::new();
    write_json(schema, message, JsonForm::READABLE, 1000, &mut out).map_err(|error| error.kind)?;
    Ok(String::from_utf8(out).unwrap())
}

const TEXT: (Slot, ValueType) = (Slot::String(0), ValueType::String);
const SPEED: (Slot, ValueType) = (Slot::Float(0), ValueType::Float);

fn state() -> (Schema, CdrDecoder) {
    let schema = schema("wstring name\nfloat64 speed");
    let fields = vec![
        field(&["name"], Read::Value(ValueType::String), TEXT.0),
        field(&["speed"], Read::Value(ValueType::Float), SPEED.0),
    ];
    let decoder = decoder(&schema, fields);
    (schema, decoder)
}

#[test]
fn texts_are_read_in_every_form() {
    let (schema, decoder) = state();
    for form in FORMS {
        for text in ["", "a", "ab", "ready", "Größe 5 €", "𝔘𝔫𝔦 😀", "\u{10061}"] {
            for message in messages(form) {
                let is_big = message.is_big;
                let message = message.wide(text).float(2.5).bytes;
                let mut decoder = decoder.clone();
                let found = read(&mut decoder, &message, &[TEXT, SPEED]).unwrap();
                let expected = [Value::String(text.into()), Value::Float(2.5)];
                let at = format!("{form:?} {text:?} {is_big}\n{message:02x?}");
                // "a" in two bytes and two bytes of padding is also "a" in four. "ab" in four bytes is also "a" in two.
                let is_same = text == "a" && !is_big && form != WideForm::Bytes;
                let is_other = text == "ab" && form == WideForm::Units;
                assert_eq!(found == expected, !is_other, "{at}");
                assert_eq!(decoder.guessed_wide().is_some(), is_same || is_other, "{at}");
                let text = if is_other { "a" } else { text };
                assert_eq!(json(&schema, &message), Ok(format!("{{\"name\":\"{text}\",\"speed\":2.5}}")));
            }
        }
    }
}

/// Fast-CDR 1 writes characters beyond the basic plane as one of four bytes each.
#[test]
fn a_word_can_be_a_character() {
    let (_, mut decoder) = state();
    let message = Message::new(false, WideForm::Words).int(2).int(0x1_f600).int(0x21).float(1.0).bytes;
    let found = read(&mut decoder, &message, &[TEXT]);
    assert_eq!(found, Ok(vec![Value::String("😀!".into())]));
}

/// A text at the end of a message is not confused with padding.
#[test]
fn the_last_text_is_read_in_every_form() {
    let schema = schema("wstring name");
    let decoder = decoder(&schema, vec![field(&["name"], Read::Value(ValueType::String), TEXT.0)]);
    for form in FORMS {
        for text in ["", "a", "ab", "abc", "abcd", "abcde", "€", "😀"] {
            for (message, is_stated) in messages(form).into_iter().flat_map(|m| {
                let again = Message { bytes: m.bytes.clone(), ..m };
                [(m, true), (again, false)]
            }) {
                let is_big = message.is_big;
                let message = message.wide(text).padded(is_stated);
                let mut decoder = decoder.clone();
                let found = read(&mut decoder, &message, &[TEXT]);
                assert_eq!(
                    found,
                    Ok(vec![Value::String(text.into())]),
                    "{form:?} {text:?} {is_big} {is_stated}\n{message:02x?}"
                );
                assert_eq!(json(&schema, &message), Ok(format!("{{\"name\":\"{text}\"}}")));
            }
        }
    }
}

#[test]
fn fields_after_wide_strings_and_elements_are_found() {
    let schema = schema("wstring[] names\nwstring[2] pair\nint32 count\nwstring last\nint32 more");
    let fields = vec![
        field(&["count"], Read::Value(ValueType::Int), Slot::Int(0)),
        field(&["names"], Read::Length, Slot::Int(1)),
        Field {
            path: Path(vec![rondel_event::Segment::Key("names".into()), rondel_event::Segment::Index(1)]),
            ..field(&[], Read::Value(ValueType::String), Slot::String(0))
        },
        field(
            &["pair"],
            Read::Elements(
                Quantifier::Any,
                vec![rondel_event::Condition {
                    alternative: 0,
                    path: Path::default(),
                    test: rondel_event::Test::Equals(Value::String("right".into())),
                }],
            ),
            Slot::Bool(0),
        ),
    ];
    let decoder = decoder(&schema, fields);
    let slots = [
        (Slot::Int(0), ValueType::Int),
        (Slot::Int(1), ValueType::Int),
        (Slot::String(0), ValueType::String),
        (Slot::Bool(0), ValueType::Bool),
    ];
    for form in FORMS {
        for message in messages(form) {
            let message = message.int(3).wide("a").wide("one").wide("").wide("left").wide("right");
            let message = message.int(-7).wide("end").int(9).bytes;
            let found = read(&mut decoder.clone(), &message, &slots);
            let expected =
                vec![Value::Int(-7), Value::Int(3), Value::String("one".into()), Value::Bool(true)];
            assert_eq!(found, Ok(expected), "{form:?}");
            let json = json(&schema, &message).unwrap();
            assert_eq!(
                json,
                r#"{"names":["a","one",""],"pair":["left","right"],"count":-7,"last":"end","more":9}"#
            );
        }
    }
}

#[test]
fn no_cut_message_panics_or_is_read() {
    let (schema, decoder) = state();
    for form in FORMS {
        for message in messages(form) {
            let whole = message.wide("grün 😀").float(1.5).bytes;
            // A new decoder, and one that knows the form.
            let mut known = decoder.clone();
            read(&mut known, &whole, &[TEXT, SPEED]).unwrap();
            for length in 0..whole.len() {
                for decoder in [&decoder, &known] {
                    let found = read(&mut decoder.clone(), &whole[..length], &[TEXT, SPEED]);
                    assert!(found.is_err(), "{form:?} {length} {found:?}");
                }
                assert!(json(&schema, &whole[..length]).is_err(), "{form:?} {length}");
            }
            for at in 4..whole.len() {
                for byte in [0, 1, 0x7f, 0xd8, 0xff] {
                    let mut damaged = whole.clone();
                    damaged[at] = byte;
                    let _ = read(&mut decoder.clone(), &damaged, &[]);
                    let _ = json(&schema, &damaged);
                }
            }
        }
    }
    for length in [0x7fff_ffff_u32, 0x8000_0000, u32::MAX] {
        let message = [&[0, 1, 0, 0], &length.to_le_bytes()[..], &[0; 16]].concat();
        let found = read(&mut decoder.clone(), &message, &[]);
        assert_eq!(found, Err(CdrErrorKind::LengthBeyondEnd(length)));
    }
}

#[test]
fn a_guess_is_counted_and_ends_with_the_first_proof() {
    let schema = schema("wstring name\nuint8[] data");
    let mut decoder = decoder(&schema, vec![field(&["name"], Read::Value(ValueType::String), TEXT.0)]);
    let mut name = |message: &[u8]| {
        let Value::String(name) = read(&mut decoder, message, &[TEXT]).unwrap().remove(0) else { panic!() };
        let count = decoder.guessed_wide().map_or(0, |(count, _)| count);
        (name.to_string(), count, decoder.wide_form().unwrap())
    };
    // With the length in bytes it is "a", two bytes of padding and no data; with the number of units "ab" and no data.
    let ambiguous = [0, 1, 0, 0, 2, 0, 0, 0, b'a', 0, b'b', 0, 0, 0, 0, 0];
    assert_eq!(name(&ambiguous), ("a".to_owned(), 1, WideForm::Bytes));
    let units = Message::new(false, WideForm::Units).wide("abc").int(0).bytes;
    assert_eq!(name(&units), ("abc".to_owned(), 1, WideForm::Units));
    assert_eq!(name(&ambiguous), ("ab".to_owned(), 1, WideForm::Units));
    // After messages of two forms, none is assumed.
    let words = Message::new(false, WideForm::Words).wide("abc").int(0).bytes;
    assert_eq!(name(&words), ("abc".to_owned(), 1, WideForm::Words));
    assert_eq!(name(&ambiguous), ("a".to_owned(), 2, WideForm::Bytes));
    assert_eq!(name(&units), ("abc".to_owned(), 2, WideForm::Units));
}

#[test]
fn bounds_count_units() {
    let schema = schema("wstring<=3 name");
    let decoder = decoder(&schema, vec![field(&["name"], Read::Value(ValueType::String), TEXT.0)]);
    for form in FORMS {
        for message in messages(form) {
            let again = Message { bytes: message.bytes.clone(), ..message };
            let (fits, is_longer) = (message.wide("abc").bytes, again.wide("abcd").bytes);
            assert_eq!(read(&mut decoder.clone(), &fits, &[TEXT]), Ok(vec![Value::String("abc".into())]));
            let mut known = decoder.clone();
            read(&mut known, &fits, &[TEXT]).unwrap();
            let length = if form == WideForm::Bytes { 8 } else { 4 };
            let refused = read(&mut known, &is_longer, &[TEXT]);
            assert_eq!(refused, Err(CdrErrorKind::LengthAboveBound(length)), "{form:?}");
        }
    }
}
