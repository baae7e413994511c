use super::*;
use crate::json::JsonForm;
use crate::{Encoding, MessageWriter};
use rondel_event::{Field, Layout, Named as NamedSegment, Read, Segment, Value, ValueType};

/// Writes fields of Protobuf.
#[derive(Clone, Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(mut self, field: u64, value: u64) -> Message {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    fn part(mut self, field: u64, part: impl AsRef<[u8]>) -> Message {
        self.varint(field << 3 | 2);
        self.varint(part.as_ref().len() as u64);
        self.0.extend_from_slice(part.as_ref());
        self
    }

    fn float(mut self, field: u64, value: f32) -> Message {
        self.varint(field << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn message() -> Message {
    Message::default()
}

/// A message of these metrics.
fn payload(metrics: &[Message]) -> Vec<u8> {
    let all = metrics.iter().fold(message().number(1, 1_700_000_000_123), |all, metric| all.part(2, metric));
    all.number(3, 7).0
}

fn born(name: &str, alias: u64, datatype: u64) -> Message {
    message().part(1, name).number(2, alias).number(4, datatype)
}

fn of(name: &str, rest: &str) -> Path {
    let named = NamedSegment::new(Path::keys(["name"]), Value::String(name.into()), false);
    let begin = [Segment::Key("metrics".into()), Segment::Named(Box::new(named))];
    Path(begin.into_iter().chain(Path::keys(rest.split('.')).0).collect())
}

/// Value of a field in the last row.
#[derive(Debug, PartialEq)]
enum Seen {
    Absent,
    Unknown,
    Int(i64),
    Float(f64),
}

/// A decoder of `Temp` (a float), `Count` (an integer) and `Far/Away` (a float).
struct Reader {
    decoder: SparkplugDecoder,
    block: Block,
    names: Vec<String>,
}

const FIELDS: [(&str, ValueType); 3] =
    [("Temp", ValueType::Float), ("Count", ValueType::Int), ("Far/Away", ValueType::Float)];

impl Reader {
    fn new() -> Reader {
        let slots = [Slot::Float(0), Slot::Int(0), Slot::Float(1)];
        let fields = FIELDS.iter().zip(slots).map(|((name, value_type), slot)| Field {
            path: of(name, "value"),
            read: Read::Value(*value_type),
            slot,
            exact: false,
        });
        let projection = Projection { fields: fields.collect() };
        let layout = Layout { topics: 1, ints: 1, floats: 2, ..Layout::default() };
        let decoder = SparkplugDecoder::new(TopicId(0), &projection, None).unwrap();
        Reader { decoder, block: Block::new(layout), names: Vec::new() }
    }

    fn read(&mut self, name: &str, payload: &[u8]) -> Result<[Seen; 3], String> {
        let id = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        self.block.clear();
        self.decoder.set_name(Some(NameId(id as u32)), |_| Some(name));
        let decoded = self.decoder.decode(payload, Timestamp::ZERO, &mut self.block);
        assert_eq!(self.block.len(), usize::from(decoded.is_ok()));
        decoded.map_err(|error| error.to_string())?;
        let seen = |slot: Slot| match slot {
            slot if self.block.present(slot) & 1 == 0 => Seen::Absent,
            slot if self.block.invalid(slot) & 1 == 1 => Seen::Unknown,
            Slot::Int(column) => Seen::Int(self.block.ints(column).values[0]),
            Slot::Float(column) => Seen::Float(self.block.floats(column).values[0]),
            _ => Seen::Unknown,
        };
        Ok([seen(Slot::Float(0)), seen(Slot::Int(0)), seen(Slot::Float(1))])
    }
}

const BIRTH: &str = "spBv1.0/plant/NBIRTH/press";
const DATA: &str = "spBv1.0/plant/NDATA/press";
const DEATH: &str = "spBv1.0/plant/NDEATH/press";

fn session(number: u64) -> Message {
    message().part(1, "bdSeq").number(4, 4).number(11, number)
}

fn birth(number: u64) -> Vec<u8> {
    payload(&[
        session(number),
        born("Temp", 1, 9).float(12, 20.5),
        born("Other", 2, 3).number(10, 5),
        born("Count", 3, 1).number(10, 0xff),
    ])
}

#[test]
fn aliases_and_signs_come_from_births() {
    use Seen::{Absent, Float, Int};
    let mut reader = Reader::new();
    let by_alias = payload(&[
        message().number(2, 2).number(10, 9),
        message().number(2, 3).number(10, 0xffff_fffe),
        message().number(2, 1).float(12, 21.5),
    ]);
    let refused = reader.read(DATA, &by_alias).unwrap_err();
    assert!(refused.contains("no birth has named the metric with the alias 2"), "{refused}");
    assert_eq!(reader.read(BIRTH, &birth(0)), Ok([Float(20.5), Int(-1), Absent]));
    assert_eq!(reader.read(DATA, &by_alias), Ok([Float(21.5), Int(-2), Absent]));
    // By name, without a data type.
    let by_name = payload(&[message().part(1, "Count").number(10, 0x80)]);
    assert_eq!(reader.read(DATA, &by_name), Ok([Absent, Int(-128), Absent]));
    // A metric that is not read needs no birth.
    let other = payload(&[message().part(1, "New").number(10, 0x80)]);
    assert_eq!(reader.read(DATA, &other), Ok([Absent, Absent, Absent]));
    // Another node has aliases of its own.
    let foreign = "spBv1.0/plant/NDATA/oven";
    assert!(reader.read(foreign, &by_alias).is_err());
    assert!(reader.read(foreign, &by_name).unwrap_err().contains("said the data type"));
}

#[test]
fn death_makes_metrics_unknown() {
    use Seen::{Absent, Float, Int, Unknown};
    let mut reader = Reader::new();
    reader.read(BIRTH, &birth(4)).unwrap();
    let arm = payload(&[born("Far/Away", 1, 9).float(12, 1.5)]);
    assert_eq!(reader.read("spBv1.0/plant/DBIRTH/press/arm", &arm), Ok([Absent, Absent, Float(1.5)]));
    // The will of an earlier connection.
    let dead = |number| message().part(2, session(number)).0;
    assert_eq!(reader.read(DEATH, &dead(3)), Ok([Absent, Absent, Absent]));
    let device = "spBv1.0/plant/DDEATH/press/arm";
    assert_eq!(reader.read(device, &payload(&[])), Ok([Absent, Absent, Unknown]));
    reader.read("spBv1.0/plant/DBIRTH/press/arm", &arm).unwrap();
    assert_eq!(reader.read(DEATH, &dead(4)), Ok([Unknown, Unknown, Unknown]));
    let data = payload(&[message().number(2, 1).float(12, 21.5)]);
    assert!(reader.read(DATA, &data).is_err());
    assert!(reader.read("spBv1.0/plant/DDATA/press/arm", &data).is_err());
    assert_eq!(reader.read(BIRTH, &birth(5)), Ok([Float(20.5), Int(-1), Absent]));
    // A birth that does not name a metric any more.
    let less = payload(&[session(6), born("Count", 1, 3).number(10, 6)]);
    assert_eq!(reader.read(BIRTH, &less), Ok([Unknown, Int(6), Absent]));
    // The death of a node without a birth makes all metrics unknown.
    assert_eq!(Reader::new().read(DEATH, &dead(4)), Ok([Unknown, Unknown, Unknown]));
}

/// The death of a connection whose birth was missed ends the metrics of an earlier birth as well.
#[test]
fn death_of_a_later_connection_makes_metrics_unknown() {
    use Seen::{Absent, Unknown};
    for (born, dead, is_over) in [(1, 2, true), (255, 0, true), (0, 255, false), (9, 8, false), (9, 9, true)]
    {
        let mut reader = Reader::new();
        reader.read(BIRTH, &birth(born)).unwrap();
        let read = reader.read(DEATH, &message().part(2, session(dead)).0);
        let expected = if is_over { [Unknown, Unknown, Absent] } else { [Absent, Absent, Absent] };
        assert_eq!(read, Ok(expected), "{born}, {dead}");
    }
}

#[test]
fn forgotten_aliases_are_refused_until_the_next_birth() {
    use Seen::{Absent, Float};
    let mut reader = Reader::new();
    let device = "spBv1.0/plant/DDATA/press/arm";
    let by_alias = payload(&[message().number(2, 1).float(12, 21.5)]);
    reader.read(BIRTH, &birth(4)).unwrap();
    let arm = payload(&[born("Far/Away", 1, 9).float(12, 1.5)]);
    reader.read("spBv1.0/plant/DBIRTH/press/arm", &arm).unwrap();
    assert_eq!(reader.read(device, &by_alias), Ok([Absent, Absent, Float(21.5)]));
    reader.decoder.forget_aliases();
    assert!(reader.read(device, &by_alias).is_err() && reader.read(DATA, &by_alias).is_err());
    let by_name = payload(&[message().part(1, "Temp").number(4, 9).float(12, 22.5)]);
    assert_eq!(reader.read(DATA, &by_name), Ok([Float(22.5), Absent, Absent]));
    reader.read(BIRTH, &birth(5)).unwrap();
    assert_eq!(reader.read(DATA, &by_alias), Ok([Float(21.5), Absent, Absent]));
}

#[test]
fn compressed_payloads_are_refused() {
    let mut reader = Reader::new();
    reader.read(BIRTH, &birth(4)).unwrap();
    let compressed = message().part(4, "SPBV1.0_COMPRESSED").part(5, [31, 139]).number(3, 1).0;
    for name in [DATA, BIRTH] {
        let error = reader.read(name, &compressed).unwrap_err();
        assert!(error.contains("compressed"), "{error}");
    }
}

#[test]
fn commands_and_states_hold_no_metrics() {
    use Seen::{Absent, Float};
    let mut reader = Reader::new();
    let command = payload(&[message().part(1, "Temp").number(4, 9).float(12, 1.0)]);
    assert_eq!(reader.read("spBv1.0/plant/NCMD/press", &command), Ok([Absent, Absent, Absent]));
    assert_eq!(reader.read("spBv1.0/STATE/host", b"{\"online\":true}"), Ok([Absent, Absent, Absent]));
    reader.decoder.read_commands();
    assert_eq!(reader.read("spBv1.0/plant/NCMD/press", &command), Ok([Float(1.0), Absent, Absent]));
}

#[test]
fn null_is_unknown() {
    use Seen::{Absent, Unknown};
    let mut reader = Reader::new();
    reader.read(BIRTH, &birth(0)).unwrap();
    let null = payload(&[message().number(2, 1).number(7, 1), message().number(2, 3).number(7, 1)]);
    assert_eq!(reader.read(DATA, &null), Ok([Unknown, Unknown, Absent]));
}

#[test]
fn sequence_numbers_are_found() {
    assert_eq!(sequence(&birth(0)), Some(7));
    assert_eq!(sequence(&message().part(2, session(1)).0), None);
    assert_eq!(sequence(&message().number(3, 256).0), None);
    assert_eq!(sequence(&[0x18]), None);
    // A metric that reaches beyond the end, and a long one.
    assert_eq!(sequence(&[0x18, 7, 0x12, 2, 0]), None);
    let long = payload(&[message().part(1, "x".repeat(200)), message().part(15, "y".repeat(127))]);
    assert_eq!(sequence(&long), Some(7));
}

#[test]
fn births_beyond_the_limit_are_refused() {
    let mut reader = Reader::new();
    let data = payload(&[message().number(2, 1).float(12, 21.5)]);
    for node in 0..4096 {
        reader.read(&format!("spBv1.0/plant/NBIRTH/{node}"), &birth(0)).unwrap();
    }
    let refused = reader.read("spBv1.0/plant/NBIRTH/more", &birth(0)).unwrap_err();
    assert!(refused.contains("more than 4,096 nodes"), "{refused}");
    assert!(reader.read("spBv1.0/plant/NDATA/more", &data).is_err());
    assert!(reader.read("spBv1.0/plant/NDATA/7", &data).is_ok());
    // Aliases far apart take no more room than their number.
    let mut reader = Reader::new();
    let far = payload(&[born("Temp", u64::MAX, 9).float(12, 1.0), born("Count", 0, 9).float(12, 1.0)]);
    reader.read(BIRTH, &far).unwrap();
    let data = payload(&[message().number(2, u64::MAX).float(12, 2.0)]);
    assert_eq!(reader.read(DATA, &data).unwrap()[0], Seen::Float(2.0));
}

#[test]
fn messages_are_written_as_json() {
    let property = message().number(1, 3).number(3, 192);
    let properties = message().part(1, "Quality").part(2, property);
    let nested = message().part(1, "x").number(4, 1).number(10, 0xff);
    let bits = [12, 0, 0, 0, 0x34, 0xd0];
    let column = |text| message().part(1, message().part(6, text));
    let table = message().number(1, 1).part(2, "c").number(3, 12).part(4, column("a")).part(4, column("b"));
    let metrics = [
        message()
            .part(1, "a")
            .number(2, 5)
            .number(3, 9)
            .number(4, 4)
            .number(11, u64::MAX)
            .part(9, properties),
        message().part(1, "b").number(4, 32).part(16, bits),
        message().part(1, "c").number(4, 33).part(16, "x\0y\0"),
        message().part(1, "d").number(4, 23).part(16, [1, 0, 0xff, 0xff]),
        message().part(1, "e").number(4, 19).part(18, message().part(2, nested).part(4, "t")),
        message().part(1, "f").number(4, 16).part(17, table),
        message().part(1, "g").number(4, 12).number(7, 1),
    ];
    let mut out = Vec::new();
    let writer = MessageWriter::new(Encoding::SparkplugB, None, JsonForm::READABLE).unwrap();
    writer.write(&payload(&metrics), 10_000, &mut out).unwrap();
    let flags = r#""is_historical":false,"is_transient":false,"is_null":false"#;
    let found = String::from_utf8(out).unwrap().replace(&format!(",{flags}"), "");
    let expected = concat!(
        r#"{"metrics":[{"name":"a","alias":5,"timestamp":9,"datatype":"Int64","properties":{"Quality":192},"value":-1},"#,
        r#"{"name":"b","datatype":"BooleanArray","value":[false,false,true,true,false,true,false,false,true,true,false,true]},"#,
        r#"{"name":"c","datatype":"StringArray","value":["x","y"]},"#,
        r#"{"name":"d","datatype":"Int16Array","value":[1,-1]},"#,
        r#"{"name":"e","datatype":"Template","value":{"metrics":[{"name":"x","datatype":"Int8","value":-1}],"#,
        r#""parameters":[],"template_ref":"t"}},"#,
        r#"{"name":"f","datatype":"DataSet","value":{"columns":["c"],"types":["String"],"rows":[["a"],["b"]]}},"#,
        r#"{"name":"g","datatype":"String","is_historical":false,"is_transient":false,"is_null":true,"value":null}],"#,
        r#""timestamp":1700000000123,"seq":7}"#
    );
    assert_eq!(found, expected);
}

/// Metrics by their names and values in a message that a writer makes JSON of, in order.
fn written(writer: &mut SparkplugWriter, name: &str, payload: &[u8]) -> Result<serde_json::Value, String> {
    let names = [BIRTH, DATA, DEATH, "spBv1.0/plant/NCMD/press", "spBv1.0/STATE/host"];
    let id = names.iter().position(|known| *known == name).unwrap() as u32;
    writer.set_name(Some(NameId(id)), |_| Some(name));
    let (mut out, arrival) = (b"before".to_vec(), Timestamp::from_nanos(7_000_000_000));
    let written = writer.write(payload, arrival, 100_000, &mut out);
    written.map_err(|error| {
        assert_eq!(out, b"before");
        error.to_string()
    })?;
    let message: serde_json::Value = serde_json::from_slice(&out[6..]).unwrap();
    let pairs = |member: &str| {
        let metrics = message[member].as_array()?;
        let pair = |metric: &serde_json::Value| serde_json::json!([metric["name"], metric["value"]]);
        Some(metrics.iter().map(pair).collect::<Vec<_>>())
    };
    let [metrics, history, commands] = ["metrics", "history", "commands"].map(pairs);
    Ok(serde_json::json!({
        "metrics": metrics, "history": history, "commands": commands, "timestamp": message["timestamp"],
    }))
}

#[test]
fn a_writer_gives_metrics_their_names_and_ends() {
    let mut writer = SparkplugWriter::new(JsonForm::EXACT);
    let by_alias = payload(&[
        message().number(2, 3).number(10, 0xffff_fffe),
        message().number(2, 1).number(5, 1).float(12, 21.5),
    ]);
    assert!(written(&mut writer, DATA, &by_alias).unwrap_err().contains("alias 3"));
    let dead = message().number(1, 5).part(2, session(4)).0;
    assert!(written(&mut writer, DEATH, &dead).unwrap_err().contains("no birth"));
    let sent = 1_700_000_000_123_u64;
    let expect = |found: Result<serde_json::Value, String>, metrics: &str, history: &str, timestamp: u64| {
        let parts =
            format!(r#"{{"metrics":{metrics},"history":{history},"commands":null,"timestamp":{timestamp}}}"#);
        let expected: serde_json::Value = serde_json::from_str(&parts).unwrap();
        assert_eq!(found, Ok(expected));
    };
    let all = r#"[["bdSeq",4],["Temp",20.5],["Other",5],["Count",-1]]"#;
    expect(written(&mut writer, BIRTH, &birth(4)), all, "null", sent);
    expect(written(&mut writer, DATA, &by_alias), r#"[["Count",-2]]"#, r#"[["Temp",21.5]]"#, sent);
    // A birth that names fewer.
    let less = payload(&[session(4), born("Count", 1, 3).number(10, 6)]);
    let ended = r#"[["bdSeq",4],["Count",6],["Temp",null],["Other",null]]"#;
    expect(written(&mut writer, BIRTH, &less), ended, "null", sent);
    // The will of an earlier connection ends nothing; a death counts when it comes.
    let old = message().number(1, 5).part(2, session(3)).0;
    expect(written(&mut writer, DEATH, &old), "null", "null", 7_000);
    expect(written(&mut writer, DEATH, &dead), r#"[["bdSeq",null],["Count",null]]"#, "null", 7_000);
    let command = payload(&[message().part(1, "Temp").number(4, 9).float(12, 1.0)]);
    let found = written(&mut writer, "spBv1.0/plant/NCMD/press", &command).unwrap();
    assert_eq!(
        (found["metrics"].is_null(), found["commands"].to_string()),
        (true, r#"[["Temp",1.0]]"#.to_owned())
    );
    assert!(written(&mut writer, "spBv1.0/STATE/host", b"{\"online\":true}").is_ok());
}

#[test]
fn other_fields_are_refused() {
    let field =
        |path| Field { path, read: Read::Value(ValueType::Float), slot: Slot::Float(0), exact: false };
    let projection = Projection { fields: vec![field(Path::keys(["Temp"]))] };
    let errors = SparkplugDecoder::new(TopicId(0), &projection, None).unwrap_err();
    assert!(errors[0].to_string().contains("`metrics`"), "{}", errors[0]);
}

proptest::proptest! {
    #[test]
    fn no_payload_panics(payload in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..100)) {
        let mut reader = Reader::new();
        for name in [BIRTH, DATA, DEATH, DATA] {
            _ = reader.read(name, &payload);
        }
        _ = sequence(&payload);
        let mut writer = SparkplugWriter::new(JsonForm::READABLE);
        for name in [BIRTH, DATA, DEATH, DATA] {
            _ = written(&mut writer, name, &payload);
        }
        let mut out = Vec::new();
        let writer = MessageWriter::new(Encoding::SparkplugB, None, JsonForm::READABLE).unwrap();
        if writer.write(&payload, 100_000, &mut out).is_ok() {
            proptest::prop_assert!(crate::json::check(&out).is_ok(), "{}", String::from_utf8_lossy(&out));
        }
    }
}

/// Random messages, mostly well formed.
fn messages() -> impl proptest::strategy::Strategy<Value = Vec<(usize, Vec<u8>)>> {
    use proptest::prelude::*;
    let value = (0..9_u8, any::<u64>()).prop_map(|(kind, value)| match kind {
        0 => message().number(10, value & 0xffff_ffff),
        1 | 2 => message().number(11, value),
        3 => message().float(12, f32::from_bits(value as u32)),
        4 => message().number(14, value & 1),
        5 => message().part(15, "21.5"),
        6 => message().part(16, [1, 2, 3, 4]),
        7 => message().number(7, 1),
        _ => message().part(18, [0x22, 1, b'x']),
    });
    let metric = (0..4_usize, 0..4_u64, 0..3_u8, 0..35_u64, value);
    let metric = metric.prop_map(|(name, alias, form, datatype, value)| {
        let name = ["Temp", "Count", "Far/Away", "Other"][name];
        let begin = match form {
            0 => message().part(1, name),
            1 => message().number(2, alias),
            _ => message().part(1, name).number(2, alias),
        };
        let begin = if datatype % 2 == 0 { begin.number(4, datatype) } else { begin };
        Message([begin.0, value.0].concat())
    });
    let payload = proptest::collection::vec(metric, 0..5).prop_map(|metrics| payload(&metrics));
    proptest::collection::vec((0..5_usize, payload), 1..8)
}

proptest::proptest! {
    #[test]
    fn values_are_read_alike_at_once_and_in_two_steps(messages in messages()) {
        let (mut at_once, mut in_steps) = (Reader::new(), Reader::new());
        assert!(at_once.decoder.direct.is_some());
        in_steps.decoder.direct = None;
        let device = "spBv1.0/plant/DDATA/press/arm";
        for (name, payload) in messages {
            let name = [BIRTH, DATA, DEATH, "spBv1.0/plant/DBIRTH/press/arm", device][name];
            let (one, other) = (at_once.read(name, &payload), in_steps.read(name, &payload));
            proptest::prop_assert_eq!(one.is_ok(), other.is_ok());
            if one.is_ok() {
                proptest::prop_assert_eq!(one, other);
            }
            let counts = |of: &Refused| (of.mistyped(), of.not_numbers(), of.too_large());
            proptest::prop_assert_eq!(counts(at_once.decoder.refused()), counts(in_steps.decoder.refused()));
        }
    }
}
