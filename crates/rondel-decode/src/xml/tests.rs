use super::*;
use crate::error::MessageErrorKind;
use crate::json::JsonForm;
use crate::{Encoding, MessageWriter};

fn json(payload: &[u8]) -> Result<String, String> {
    let mut out = Vec::new();
    let writer = MessageWriter::new(Encoding::Xml, None, JsonForm::READABLE).unwrap();
    writer.write(payload, 100_000, &mut out).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(out).unwrap())
}

fn fault(payload: &[u8]) -> (usize, String, MessageErrorKind) {
    let error = Document::default().read(payload, None).unwrap_err().into_error();
    (error.offset, error.path.to_string(), error.kind)
}

#[test]
fn elements_and_attributes_are_members() {
    for (message, expected) in [
        ("<m/>", "\"\""),
        ("<m>7</m>", "7"),
        ("<m a='1' x:b='true'>t</m>", r#"{"a":1,"b":true,"text":"t"}"#),
        ("<m xmlns='u' xmlns:x='v'><x:a>1</x:a><b/><a>2</a></m>", r#"{"a":[1,2],"b":""}"#),
        ("<m a='1'><a>2</a></m>", r#"{"a":[1,2]}"#),
        ("<m><![CDATA[<1>]]>&amp;&#x41;</m>", r#""<1>&A""#),
        ("<m>a<b>1</b>c</m>", r#"{"b":1,"text":"ac"}"#),
        ("<m text='1'>own</m>", r#"{"text":1}"#),
        ("<m><n xsi:nil='true' a='1'/></m>", r#"{"n":null}"#),
        ("\u{feff}<?xml version='1.0' encoding='utf-8'?>\n<!-- x --><m>007</m>\n", "\"007\""),
    ] {
        assert_eq!(json(message.as_bytes()).as_deref(), Ok(expected), "{message}");
    }
}

#[test]
fn faults_have_offsets_and_fields() {
    let xml = MessageErrorKind::Xml;
    for (message, expected) in [
        (&b"<m><p><v>1</w></p></m>"[..], (10, "p.v", xml(XmlFault::EndTag))),
        (b"<m><x:p><v a='1' a='2'/></x:p></m>", (8, "p.v", xml(XmlFault::TwoAttributes))),
        (b"<m><v>&nbsp;</v></m>", (6, "v", xml(XmlFault::Entity))),
        (b"<m><v>1</v>", (11, "", MessageErrorKind::Truncated)),
        (b"<m><v>1</v", (10, "v", MessageErrorKind::Truncated)),
        (b"<m/><m/>", (4, "", xml(XmlFault::Outside))),
        (b"<m>\xff</m>", (3, "", MessageErrorKind::NotText)),
        (b"<m>\xc3", (3, "", MessageErrorKind::NotText)),
        (b"<m>a\x02</m>", (4, "", xml(XmlFault::Character))),
        (b"<?xml version='1.0' encoding='latin1'?><m/>", (0, "", xml(XmlFault::OtherEncoding))),
        (b"", (0, "", xml(XmlFault::NoElement))),
    ] {
        let (offset, path, kind) = fault(message);
        assert_eq!((offset, path.as_str(), kind), expected, "{}", String::from_utf8_lossy(message));
    }
}

/// Entities that expand to others, as many as fit into a message.
fn laughs() -> String {
    let entities: String = (1..10)
        .map(|level| format!("<!ENTITY l{level} \"{}\">", format!("&l{};", level - 1).repeat(10)))
        .collect();
    format!("<!DOCTYPE m [<!ENTITY l0 \"ha\">{entities}]><m>&l9;</m>")
}

#[test]
fn definitions_of_entities_are_refused() {
    let external = "<?xml version='1.0'?><!DOCTYPE m SYSTEM 'file:///etc/passwd'><m/>";
    for message in [laughs().as_str(), external, "<!doctype m><m/>", "<!DOCTYPE", "<m><!DOCTYPE m></m>"] {
        let at = message.to_lowercase().find("<!doctype").unwrap();
        let (offset, _, kind) = fault(message.as_bytes());
        assert_eq!((offset, kind), (at, MessageErrorKind::Xml(XmlFault::Doctype)), "{message}");
    }
}

#[test]
fn depth_and_number_of_parts_have_limits() {
    let nested = |depth: usize| "<a>".repeat(depth) + &"</a>".repeat(depth);
    assert!(json(nested(MAX_DEPTH).as_bytes()).is_ok());
    let (offset, _, kind) = fault(nested(MAX_DEPTH + 1).as_bytes());
    assert_eq!((offset, kind), (3 * MAX_DEPTH, MessageErrorKind::Xml(XmlFault::TooDeep)));
    assert_eq!(fault("<a>".repeat(3_400_000).as_bytes()).2, MessageErrorKind::Xml(XmlFault::TooDeep));
    let many = format!("<a>{}</a>", "<b/>".repeat(MAX_PARTS));
    assert_eq!(fault(many.as_bytes()).2, MessageErrorKind::Xml(XmlFault::TooMany));
}

#[test]
fn large_buffers_are_not_kept() {
    let mut decoder = XmlDecoder::new(
        TopicId(0),
        &Projection {
            fields: vec![rondel_event::Field {
                path: Path::keys(["v"]),
                read: rondel_event::Read::Value(rondel_event::ValueType::String),
                slot: rondel_event::Slot::String(0),
                exact: false,
            }],
        },
        None,
        TimeUnit::Seconds,
    )
    .unwrap();
    let mut block = Block::new(rondel_event::Layout { topics: 1, strings: 1, ..Default::default() });
    for size in [10, 4 << 20] {
        let message = format!("<m><v>{}</v></m>", "x".repeat(size));
        decoder.decode(message.as_bytes(), Timestamp::ZERO, &mut block).unwrap();
        assert!(decoder.document.texts.capacity() <= binary::KEPT);
        assert!(decoder.converted.message.capacity() <= binary::KEPT);
    }
    assert_eq!(block.text(0, 1).len(), 4 << 20);
}

proptest::proptest! {
    #[test]
    fn no_payload_panics(text in "[<>/!?&;='\"\\[\\]CDATA a1:x#-]{0,60}", bytes: Vec<u8>) {
        for payload in [text.as_bytes(), &bytes, format!("<a>{text}</a>").as_bytes()] {
            if let Ok(text) = json(payload) {
                proptest::prop_assert!(crate::json::check(text.as_bytes()).is_ok(), "{}", text);
            }
        }
    }
}
