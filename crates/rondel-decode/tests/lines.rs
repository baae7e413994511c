//! Lines of a trace are decoded equally by the fast path (recorded shapes) and by the slow path.

use std::fmt::Write as _;

use proptest::prelude::*;
use rondel_decode::json::{JsonDecoder, JsonErrorKind};
use rondel_decode::lines::{
    Ahead, Decoded, LineError, LineErrorKind, LineTime, Lines, Source, TraceTopic, Unseen, UnseenCause,
};
use rondel_event::{
    Block, Comparison, Condition, Field, Layout, Path, Projection, Quantifier, Read, Segment, Slot, Test,
    TimeUnit, Timestamp, TopicId, Value, ValueType,
};

fn field(path: Path, read: Read, slot: Slot) -> Field {
    Field { path, read, slot, exact: false }
}

fn value(path: &str, value_type: ValueType, slot: Slot) -> Field {
    field(Path::keys(path.split('.')), Read::Value(value_type), slot)
}

fn projection() -> Projection {
    Projection {
        fields: vec![
            value("b", ValueType::Bool, Slot::Bool(0)),
            value("n.x", ValueType::Float, Slot::Float(0)),
            value("i", ValueType::Int, Slot::Int(0)),
            value("t", ValueType::Time, Slot::Int(1)),
            value("s", ValueType::String, Slot::String(0)),
            field(Path::keys(["s"]), Read::Presence, Slot::Bool(1)),
            field(
                Path(vec![Segment::Key("a".into()), Segment::Index(1)]),
                Read::Value(ValueType::Float),
                Slot::Float(1),
            ),
        ],
    }
}

const LAYOUT: Layout = Layout { topics: 2, bools: 3, ints: 2, floats: 2, strings: 1 };

fn topics() -> Vec<TraceTopic> {
    // The text of `two` comes from the name of the topic, if that matches.
    [&["one", "fleet/+/pose"][..], &["two", "arm/**", "robot/{s}/pose"]]
        .map(|names| TraceTopic::new(names.iter().map(|name| name.to_string()).collect(), projection()))
        .into()
}

/// Returns all values of a row in a block.
fn row(block: &Block, row: usize) -> String {
    let mut text = format!("{:?} {}", block.topic(row), block.time(row));
    let bit = |mask: u64| mask >> row & 1;
    for i in 0..3 {
        let c = block.bools(i);
        let _ = write!(text, " b{}{}{}", bit(c.present), bit(c.valid), bit(c.values));
    }
    for i in 0..2 {
        let c = block.ints(i);
        let _ = write!(text, " i{}{}", bit(c.present), bit(c.valid));
        if bit(c.valid) == 1 {
            let _ = write!(text, "={}", c.values[row]);
        }
        let c = block.floats(i);
        let _ = write!(text, " f{}{}", bit(c.present), bit(c.valid));
        if bit(c.valid) == 1 {
            let _ = write!(text, "={:?}", c.values[row]);
        }
    }
    let c = block.strings(0);
    let _ = write!(
        text,
        " s{}{}={:?}",
        bit(c.present),
        bit(c.valid),
        String::from_utf8_lossy(block.text(0, row))
    );
    text
}

fn decode(lines: &mut Lines, text: &[u8]) -> (Vec<String>, Option<LineError>) {
    let mut block = Block::new(LAYOUT);
    let mut padded = text.to_vec();
    padded.extend_from_slice(&[b'7'; 16]);
    let (mut rows, mut at) = (Vec::new(), 0);
    loop {
        block.clear();
        let result = lines.decode(&padded, at, text.len(), &mut block);
        rows.extend((0..block.len()).map(|r| row(&block, r)));
        match result {
            Ok(next) if next == at => return (rows, None),
            Ok(next) => at = next,
            Err(error) => return (rows, Some(error)),
        }
    }
}

/// Returns the number of lines on topics that are not read.
fn others(lines: &Lines) -> u64 {
    lines.other_topics().map(|(_, count)| count).sum()
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => any::<bool>().prop_map(|b| b.to_string()),
        4 => (-20i32..2000).prop_map(|i| i.to_string()),
        2 => (-1e6f64..1e6).prop_map(|f| f.to_string()),
        1 => any::<i64>().prop_map(|i| i.to_string()),
        1 => (any::<f64>().prop_filter("finite", |f| f.is_finite())).prop_map(|f| format!("{f:e}")),
        3 => "[a-z]{0,9}".prop_map(|s| format!("{s:?}")),
        1 => Just(r#""\u00e9\n""#.to_string()),
        1 => Just("\"\u{e9}\"".to_string()),
        1 => Just("null".to_string()),
        1 => Just("[1, 2.5, 3]".to_string()),
        1 => Just("{}".to_string()),
    ]
}

/// Generates times as written by other programs.
fn time_value() -> impl Strategy<Value = String> {
    let instant = (0i64..2_000_000_000, 0i64..1_000_000_000);
    prop_oneof![
        (instant.clone(), any::<bool>(), any::<bool>()).prop_map(|((sec, nanos), ros1, turned)| {
            let (s, n) = if ros1 { ("secs", "nsecs") } else { ("sec", "nanosec") };
            let (s, n) = (format!("\"{s}\": {sec}"), format!("\"{n}\": {nanos}"));
            if turned { format!("{{{n}, {s}}}") } else { format!("{{{s}, {n}}}") }
        }),
        (0i64..24, 0i64..60, 0i64..60, 0i64..1_000_000, 0usize..4).prop_map(|(h, m, s, us, zone)| {
            let zone = ["Z", "+0000", "+05:30", ""][zone];
            format!("\"2026-11-22T{h:02}:{m:02}:{s:02}.{us:06}{zone}\"")
        }),
        (0u32..100_000, 0usize..5)
            .prop_map(|(number, unit)| { format!("\"{number}{}\"", [" s", "ms", " us", ".5 ns", ""][unit]) }),
    ]
}

/// Generates values that are nearly times.
fn no_time() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        r#"{"sec": 1, "nanosec": 1000000000}"#,
        r#"{"sec": 9223372036, "nanosec": 854775808}"#,
        r#"{"sec": 1, "nanosec": -1}"#,
        r#"{"sec": 1.5, "nanosec": 0}"#,
        r#"{"sec": 1}"#,
        r#"{"sec": 1, "nanosec": 2, "frame": 3}"#,
        r#"{"sec": 1, "nanosec": 2, "sec": 3}"#,
        r#""2026-02-30T00:00:00Z""#,
        r#""1600-01-01T00:00:00Z""#,
        r#""12 parsecs""#,
        r#""2026-11-22T00:00:00\u005a""#,
    ])
    .prop_map(str::to_owned)
}

fn line() -> impl Strategy<Value = String> {
    let members =
        (0usize..3, any::<bool>(), any::<bool>(), proptest::collection::vec(scalar(), 7), 0u32..100_000);
    let field = prop_oneof![2 => scalar(), 3 => time_value(), 1 => no_time()];
    (members, field).prop_map(|((form, spaced, second, v, time), t)| {
        let (sep, colon) = if spaced { (", ", ": ") } else { (",", ":") };
        let topic = if second { "two" } else { "one" };
        let body = [
            format!("\"b\"{colon}{}", v[0]),
            format!("\"n\"{colon}{{\"y\"{colon}1{sep}\"x\"{colon}{}}}", v[1]),
            format!("\"i\"{colon}{}", v[2]),
            format!("\"t\"{colon}{t}"),
            format!("\"s\"{colon}{}", v[4]),
            format!("\"a\"{colon}[{}{sep}{}]", v[5], v[6]),
        ]
        .join(sep);
        let head = format!("{{\"topic\"{colon}\"{topic}\"{sep}\"time\"{colon}{time}");
        match form {
            0 => format!("{head}{sep}{body}}}"),
            1 => format!("{head}{sep}\"data\"{colon}{{{body}}}}}"),
            _ => format!("{head}{sep}\"b\"{colon}{}}}", v[0]),
        }
    })
}

proptest! {
    #[test]
    fn a_line_is_decoded_independently_of_earlier_lines(
        kinds in proptest::collection::vec(line(), 1..20),
        order in proptest::collection::vec((any::<prop::sample::Index>(), 1usize..5, 0u32..2_000_000), 1..100),
    ) {
        // Lines are repeated at once or later, with the same time or another.
        let text: Vec<String> = order
            .iter()
            .flat_map(|(which, times, step)| {
                let line = which.get(&kinds);
                let (head, tail) = line.split_once("time\"").unwrap();
                let digits = tail.find(|c: char| c.is_ascii_digit()).unwrap();
                let end = digits + tail[digits..].find(|c: char| !c.is_ascii_digit()).unwrap();
                let (colon, rest) = (&tail[..digits], &tail[end..]);
                (0..*times).map(move |i| format!("{head}time\"{colon}{}{rest}", step + i as u32))
            })
            .collect();
        let all = text.join("\n") + "\n";
        let (together, error) = decode(&mut Lines::new(&topics(), false, TimeUnit::Seconds), all.as_bytes());
        prop_assert_eq!(error, None);
        let mut alone = Vec::new();
        for line in &text {
            let one = format!("{line}\n");
            alone.extend(decode(&mut Lines::new(&topics(), false, TimeUnit::Seconds), one.as_bytes()).0);
        }
        prop_assert_eq!(together, alone);
    }

    #[test]
    fn a_damaged_line_is_never_misread(text in proptest::collection::vec(line(), 3), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        // The shape is recorded from two good lines; the third one, with one byte changed, must be decoded as by a
        // decoder without recorded shapes.
        let mut damaged = text[0].clone().into_bytes();
        let at = at.index(damaged.len());
        damaged[at] = byte;
        damaged.push(b'\n');
        let mut taught = Lines::new(&topics(), false, TimeUnit::Seconds);
        let _ = decode(&mut taught, format!("{}\n{}\n", text[0], text[1]).as_bytes());
        taught.restart();
        let fresh = &mut Lines::new(&topics(), false, TimeUnit::Seconds);
        prop_assert_eq!(decode(&mut taught, &damaged), decode(fresh, &damaged));
    }

    #[test]
    fn payloads_decode_like_lines(text in proptest::collection::vec(line(), 1..80)) {
        let time = Path::keys(["time"]);
        let decoder = |p: &Projection| JsonDecoder::new(TopicId(1), p, Some(&time), TimeUnit::Seconds);
        let mut taught = decoder(&projection());
        for line in &text {
            let (mut a, mut b) = (Block::new(LAYOUT), Block::new(LAYOUT));
            let start = rondel_event::Timestamp::from_nanos(5);
            prop_assert_eq!(taught.decode(line.as_bytes(), start, &mut a), Ok(()));
            prop_assert_eq!(decoder(&projection()).decode(line.as_bytes(), start, &mut b), Ok(()));
            prop_assert_eq!(row(&a, 0), row(&b, 0));
        }
    }

    #[test]
    fn no_bytes_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&mut Lines::new(&topics(), false, TimeUnit::Seconds), &text);
        let mut block = Block::new(LAYOUT);
        let _ = JsonDecoder::new(TopicId(0), &projection(), None, TimeUnit::Seconds)
            .decode(&text, rondel_event::Timestamp::ZERO, &mut block);
    }
}

/// Generates lines of many topics, of which only two are read, in layouts some of which have no shape.
fn mixed_line() -> impl Strategy<Value = String> {
    let topics = prop_oneof![
        4 => Just("one".to_string()),
        4 => Just("two".to_string()),
        2 => "[a-c]{1,2}|a_topic_with_a_name_that_is_longer_than_most_[a-c]{1,30}",
        1 => Just("t\\u0077o".to_string()),
        3 => prop::sample::select(vec!["robot/r1/pose", "robot/r22/pose", "mqtt:robot/a_long_name_of_a_robot/pose", "/robot/\\u0072/pose"])
            .prop_map(str::to_owned),
        3 => prop::sample::select(vec![
            "fleet/r1/pose", "mqtt:fleet/r2/pose", "/two", "zenoh+cdr_string:arm/left/x", "arm", "fleet/pose",
        ])
        .prop_map(str::to_owned),
    ];
    let time = prop_oneof![
        6 => (0i64..5_000_000).prop_map(|us| format!("{}.{:06}", us / 1_000_000, us % 1_000_000)),
        2 => (0u32..100).prop_map(|t| t.to_string()),
        1 => Just("-2.5".to_string()),
        1 => Just("0.1234567891234".to_string()),
        6 => time_value(),
    ];
    let string = prop_oneof![6 => "[a-z]{0,5}", 1 => Just("x\\n".to_string())];
    (topics, time, 0usize..16, any::<bool>(), any::<u16>(), string).prop_map(|(topic, time, form, b, i, s)| {
        let (b, topic) = (if b { "true" } else { "false" }, format!("\"topic\": \"{topic}\""));
        let body = format!("{{\"b\": {b}, \"i\": {i}, \"t\": {time}, \"s\": \"{s}\"}}");
        let quoted = serde_json::Value::from(&*body).to_string();
        match form {
            8 if i % 8 == 0 => format!("{{\"tst\":{time},{topic},\"payloadlen\":0,\"payload\":null}}"),
            8 => format!("{{{topic},\"time\":{time},\"arrival\":{i}.5,\"data\":{body}}}"),
            9 => format!("{{{topic},\"time\":null,\"arrival\":{i}.5,\"origin\":{{\"publisher\":7}},\"message\":{body}}}"),
            10 => format!("{{{topic},\"time\":{time},\"arrival\":{i}.5,\"data\":[{i}]}}"),
            11 => format!("{{{topic},\"time\":{time},\"arrival\":{i}.5,\"payload\":\"{s}{b}\"}}"),
            12 | 13 => format!("{{\"tst\":{time},{topic},\"qos\":0,\"retain\":0,\"payloadlen\":{i},\"payload\":{body}}}"),
            14 => format!("{{\"tst\":{time},{topic},\"qos\":0,\"payloadlen\":{i},\"payload\":{quoted}}}"),
            15 => format!("{{\"tst\":{time},{topic},\"qos\":0,\"payload\":\"{s}\"}}"),
            0..=2 => format!("{{{topic}, \"time\": {time}, \"i\": {i}, \"b\": {b}}}"),
            3 => format!("{{{topic}, \"i\": {i}, \"s\": \"{s}\"}}"),
            4 => format!("{{\"time\": {time}, \"s\": \"{s}\", {topic}, \"b\": {b}}}"),
            5 => format!("{{{topic}, \"time\": {time}, \"data\": {{\"b\": {i}, \"s\": \"{s}\"}}}}"),
            6 => format!("{{{topic}, \"time\": {time}, \"i\": {i}, \"t\": {time}}}"),
            _ => [String::new(), format!("{{{topic}}}"), format!("{{ {topic}, \"b\": {b}}}\r")]
                [usize::from(i % 3)]
            .clone(),
        }
    })
}

proptest! {
    #[test]
    fn topics_that_alternate_decode_like_lines_alone(
        kinds in proptest::collection::vec(mixed_line(), 1..40),
        order in proptest::collection::vec((any::<prop::sample::Index>(), 1usize..4), 1..300),
    ) {
        let text: Vec<&String> =
            order.iter().flat_map(|(which, times)| std::iter::repeat_n(which.get(&kinds), *times)).collect();
        let new = || Lines::new(&topics(), false, TimeUnit::Seconds);
        let (mut together, mut alone) = (new(), (Vec::new(), 0, 0, None));
        let (mut undecodable, mut empty) = (0, 0);
        for line in &text {
            let mut lines = new();
            // A line without a time has that of the previous event.
            let before = alone.3.clone().unwrap_or_else(|| "{\"topic\":\"one\"}".to_string());
            let (rows, error) = decode(&mut lines, format!("{before}\n{line}\n").as_bytes());
            prop_assert_eq!(error, None);
            let time = rows.last().and_then(|row| row.split(' ').nth(1)).unwrap_or("0");
            alone.3 = Some(format!("{{\"topic\":\"one\",\"time\":{time}}}"));
            alone.0.extend(rows.into_iter().skip(1));
            alone.1 += others(&lines);
            alone.2 += lines.mistyped().iter().sum::<u64>();
            undecodable += lines.undecodable();
            empty += lines.empty();
        }
        let all: String = text.iter().map(|line| format!("{line}\n")).collect();
        let (rows, error) = decode(&mut together, all.as_bytes());
        prop_assert_eq!(error, None);
        prop_assert_eq!(rows, alone.0);
        prop_assert_eq!(
            (together.lines(), others(&together), together.mistyped().iter().sum::<u64>()),
            (text.len() as u64, alone.1, alone.2)
        );
        prop_assert_eq!((together.undecodable(), together.empty()), (undecodable, empty));
    }

    #[test]
    fn a_damaged_line_among_many_is_never_misread(
        text in proptest::collection::vec(mixed_line(), 20..150),
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut damaged: Vec<Vec<u8>> = text.iter().map(|line| line.clone().into_bytes()).collect();
        let line = which.index(damaged.len());
        if !damaged[line].is_empty() {
            let at = at.index(damaged[line].len());
            damaged[line][at] = byte;
        }
        let good = text.join("\n") + "\n";
        let damaged = [damaged.join(&b'\n'), b"\n".to_vec()].concat();
        let new = || Lines::new(&topics(), false, TimeUnit::Seconds);
        let mut taught = new();
        let _ = decode(&mut taught, good.as_bytes());
        taught.restart();
        // A decoder for each line has no recorded shapes; it continues with the time of the previous line.
        let (mut rows, mut expected_error, mut time) = (Vec::new(), None, "0".to_string());
        for (i, line) in damaged.split_inclusive(|b| *b == b'\n').enumerate() {
            let before = format!("{{\"topic\":\"one\",\"time\":{time}}}\n");
            let (found, error) = decode(&mut new(), &[before.as_bytes(), line].concat());
            time = found[found.len() - 1].split(' ').nth(1).unwrap().to_string();
            rows.extend(found.into_iter().skip(1));
            if let Some(error) = error {
                expected_error = Some(LineError { line: i as u64 + 1, ..error });
                break;
            }
        }
        prop_assert_eq!(decode(&mut taught, &damaged), (rows, expected_error));
    }
}

#[test]
fn errors_have_line_and_column_and_keep_earlier_lines() {
    let good = "{\"topic\":\"one\",\"time\":1,\"b\":true}\n".repeat(3);
    for (bad, column, kind) in [
        (
            "{\"topic\":\"one\",\"b\":tru}",
            20,
            LineErrorKind::Json(JsonErrorKind::Expected("true, false or null")),
        ),
        ("{\"b\":true}", 1, LineErrorKind::NoTopic),
        ("5", 1, LineErrorKind::Json(JsonErrorKind::Expected("an object"))),
        (
            "[1,2]",
            1,
            LineErrorKind::Json(JsonErrorKind::Expected(
                "an object, found an array; with several topics a line is an object with a member such as \
                 \"topic\": \"NAME\"",
            )),
        ),
        ("{\"topic\":5}", 10, LineErrorKind::Json(JsonErrorKind::Expected("a string as the topic"))),
        ("{\"topic\":\"one\"} x", 17, LineErrorKind::Json(JsonErrorKind::TrailingText)),
    ] {
        let mut lines = Lines::new(&topics(), false, TimeUnit::Seconds);
        let (rows, error) = decode(&mut lines, format!("{good}{bad}\n{good}").as_bytes());
        assert_eq!(rows.len(), 3, "{bad}");
        assert_eq!(error, Some(LineError { line: 4, column, kind }), "{bad}");
    }
}

#[test]
fn values_of_every_length_are_read_as_by_the_slow_path() {
    let digits = "1234567890123456789012";
    let mut values: Vec<(String, String, String)> = Vec::new();
    for len in 1..digits.len() {
        let number = &digits[..len];
        for number in [number.to_owned(), format!("0{number}"), format!("-{number}"), format!("{number}e1")] {
            values.push((number.clone(), "\"s\"".into(), number));
        }
        for after in 1..digits.len() {
            let decimal = format!("{number}.{}", &digits[..after]);
            values.push(("7".into(), "\"s\"".into(), decimal));
        }
    }
    for len in 0..20 {
        let text = &"abcdefghijklmnopqrstu"[..len];
        for odd in ["", "\u{e9}", "\\n", "\\\"", "\u{1}", " ", "\u{7f}"] {
            for at in [0, len / 2, len] {
                let text = format!("\"{}{odd}{}\"", &text[..at], &text[at..]);
                values.push(("7".into(), text, "0.5".into()));
            }
        }
    }
    let mut taught = Lines::new(&topics(), false, TimeUnit::Seconds);
    let line = |(i, s, x): &(String, String, String)| {
        format!("{{\"topic\":\"one\",\"time\":{x},\"i\":{i},\"s\":{s},\"n\":{{\"x\":{x}}}}}\n")
    };
    let plain = line(&("1".into(), "\"x\"".into(), "2".into()));
    for values in &values {
        taught.restart();
        let text = line(values);
        let taught = decode(&mut taught, (plain.clone() + &text).as_bytes());
        let fresh = decode(&mut Lines::new(&topics(), false, TimeUnit::Seconds), text.as_bytes());
        // The plain one precedes it.
        assert_eq!(taught.0[1..], fresh.0, "{text}");
        let kind = |error: Option<LineError>| error.map(|error| (error.column, error.kind));
        assert_eq!(kind(taught.1), kind(fresh.1), "{text}");
    }
}

#[test]
fn blank_lines_and_other_topics_are_skipped() {
    let mut lines = Lines::new(&topics(), false, TimeUnit::Milliseconds);
    let text = "\n{\"topic\":\"x\",\"b\":true}\r\n  \n{\"topic\":\"two\",\"time\":1500,\"b\":true}\n{\"topic\":\"one\"}\n";
    let (rows, error) = decode(&mut lines, text.as_bytes());
    assert_eq!(error, None);
    assert_eq!(rows.len(), 2);
    assert!(rows[0].starts_with("Some(TopicId(1)) 1.5 b111"), "{}", rows[0]);
    // A line without a time has that of the previous line.
    assert!(rows[1].starts_with("Some(TopicId(0)) 1.5 b000"), "{}", rows[1]);
    assert_eq!((lines.lines(), others(&lines)), (5, 1));
}

#[test]
fn elements_of_arrays_are_tested() {
    let condition = |path: &str, test| Condition { alternative: 0, path: Path::keys([path]), test };
    let both = vec![
        condition("kind", Test::Equals(Value::String("car".into()))),
        condition("speed", Test::Number(Comparison::Greater, 3.0)),
    ];
    let elements = |quantifier| Read::Elements(quantifier, both.clone());
    let projection = Projection {
        fields: vec![
            field(Path::keys(["seen"]), elements(Quantifier::Any), Slot::Bool(0)),
            field(Path::keys(["seen"]), elements(Quantifier::All), Slot::Bool(1)),
            field(Path::keys(["seen"]), elements(Quantifier::Count), Slot::Int(0)),
        ],
    };
    let mut decoder = JsonDecoder::new(TopicId(0), &projection, None, TimeUnit::Seconds);
    let mut check = |text: &str, any: (u64, u64), all: (u64, u64)| {
        let mut block = Block::new(LAYOUT);
        decoder.decode(text.as_bytes(), rondel_event::Timestamp::ZERO, &mut block).unwrap();
        for (i, expected) in [(0, any), (1, all)] {
            assert_eq!((block.bools(i).valid, block.bools(i).values), expected, "{text}");
        }
        let ints = block.ints(0);
        (ints.valid == 1).then(|| ints.values[0])
    };
    assert_eq!(
        check(r#"{"seen":[{"kind":"car","speed":4},{"kind":"dog","speed":9}]}"#, (1, 1), (1, 0)),
        Some(1)
    );
    assert_eq!(
        check(r#"{"seen":[{"kind":"car","speed":4},{"speed":3.5,"kind":"c\u0061r"}]}"#, (1, 1), (1, 1)),
        Some(2)
    );
    assert_eq!(check(r#"{"seen":[]}"#, (1, 0), (1, 1)), Some(0));
    assert_eq!(check(r#"{"seen":[3,{"kind":"car"}]}"#, (1, 0), (1, 0)), Some(0));
    assert_eq!(check(r#"{"seen":{}}"#, (0, 0), (0, 0)), None);
    assert_eq!(check("{}", (0, 0), (0, 0)), None);
}

/// Numbers are tested in the first pass over the array, everything else in a second one, with equal results.
#[test]
fn numbers_in_arrays_are_tested() {
    let condition = |test| Condition { alternative: 0, path: Path::default(), test };
    let below = condition(Test::Number(Comparison::Less, 3.0));
    let above = condition(Test::Number(Comparison::Greater, -1.5));
    let integer = condition(Test::Integer(Comparison::Less, 3.0));
    let of = |conditions: &[&Condition]| {
        Read::Elements(Quantifier::Count, conditions.iter().map(|c| (*c).clone()).collect())
    };
    let count = |reads: &[Read], text: &str| {
        let field = |(i, read): (usize, &Read)| field(Path::keys(["a"]), read.clone(), Slot::Int(i as u32));
        let projection = Projection { fields: reads.iter().enumerate().map(field).collect() };
        let layout = rondel_event::Layout { ints: reads.len(), ..LAYOUT };
        let mut decoder = JsonDecoder::new(TopicId(0), &projection, None, TimeUnit::Seconds);
        let mut block = Block::new(layout);
        let result = decoder.decode(text.as_bytes(), rondel_event::Timestamp::ZERO, &mut block);
        result.map(|()| {
            let value = |i: usize| {
                let ints = block.ints(i as u32);
                (ints.valid == 1).then(|| ints.values[0])
            };
            (0..reads.len()).map(value).collect::<Vec<_>>()
        })
    };
    for (text, expected) in [
        (r#"{"a":[1,2.5,3,-2,1e2]}"#, [Some(3), Some(4), Some(2), Some(2)]),
        (r#"{"a":[ 1 , "1", null, [1], {"b":1}, -0.5e0 ]}"#, [Some(2), Some(2), Some(2), Some(1)]),
        (r#"{"a":[1.0, 9223372036854775807, 9223372036854775808, -1e19, -2e0]}"#, [3, 3, 1, 2].map(Some)),
        (r#"{"a":[]}"#, [Some(0); 4]),
        (r#"{"a":null}"#, [None; 4]),
        (r#"{"a":2}"#, [None; 4]),
        (r#"{"b":[1]}"#, [None; 4]),
        (r#"{"a":[1],"a":[1,2]}"#, [Some(2); 4]),
    ] {
        let reads = [of(&[&below]), of(&[&above]), of(&[&below, &above]), of(&[&integer])];
        assert_eq!(count(&reads, text).unwrap(), expected, "{text}");
        // A length with the tests, and more tests than the first pass supports.
        let five = [&reads[..], &reads[..2]].concat();
        assert_eq!(count(&five, text).unwrap()[..4], expected, "{text}");
        let beside = [&reads[..], &[Read::Length]].concat();
        assert_eq!(count(&beside, text).unwrap()[..4], expected, "{text}");
    }
    for text in
        [r#"{"a":[1,]}"#, r#"{"a":[01]}"#, r#"{"a":[1."#, r#"{"a":[-]}"#, r#"{"a":[1 2]}"#, r#"{"a":[1.e3]}"#]
    {
        let (fused, apart) = ([of(&[&below])], [of(&[&below]), Read::Length]);
        assert_eq!(
            count(&fused, text).unwrap_err().to_string(),
            count(&apart, text).unwrap_err().to_string()
        );
    }
    let deep = format!("{{\"a\":[{}1{}]}}", "[".repeat(200), "]".repeat(200));
    assert!(count(&[of(&[&below])], &deep).is_err());
}

/// Measures are computed in the first pass over the array, or in a second one with other reads, with equal results.
#[test]
fn elements_of_arrays_are_measured() {
    use Quantifier::{Max, Mean, Min, Sum};
    let measures = [Min, Max, Sum, Mean];
    let measured = |text: &str, beside: bool| {
        let read = |quantifier| Read::Elements(quantifier, Vec::new());
        let mut fields: Vec<Field> = (0..)
            .zip(measures)
            .map(|(i, measure)| field(Path::keys(["a"]), read(measure), Slot::Float(i)))
            .collect();
        if beside {
            fields.push(field(Path::keys(["a"]), Read::Length, Slot::Int(0)));
        }
        let layout = rondel_event::Layout { floats: 4, ints: 1, ..LAYOUT };
        let projection = Projection { fields };
        let mut decoder = JsonDecoder::new(TopicId(0), &projection, None, TimeUnit::Seconds);
        let mut block = Block::new(layout);
        decoder.decode(text.as_bytes(), rondel_event::Timestamp::ZERO, &mut block).unwrap();
        let value = |i: u32| (block.floats(i).valid == 1).then(|| block.floats(i).values[0]);
        ([0, 1, 2, 3].map(value), decoder.mistyped() - u64::from(beside && text.contains(":2")))
    };
    for (text, expected, mistyped) in [
        (r#"{"a":[3,-1.5,1e1, 2 ]}"#, [Some(-1.5), Some(10.0), Some(13.5), Some(3.375)], 0),
        (r#"{"a":[7]}"#, [Some(7.0); 4], 0),
        (r#"{"a":[]}"#, [None; 4], 0),
        (r#"{"a":[1,null,2]}"#, [Some(1.0), Some(2.0), None, Some(1.5)], 0),
        (r#"{"a":[null,null]}"#, [None; 4], 0),
        (r#"{"a":[1,"2"]}"#, [None; 4], 4),
        (r#"{"a":[[1],{"b":1},true]}"#, [None; 4], 4),
        (r#"{"a":[1e999,-1e999]}"#, [Some(f64::NEG_INFINITY), Some(f64::INFINITY), None, None], 0),
        (r#"{"a":null}"#, [None; 4], 0),
        (r#"{"a":2}"#, [None; 4], 4),
        (r#"{"b":[1]}"#, [None; 4], 0),
        (r#"{"a":["x"],"a":[1]}"#, [Some(1.0); 4], 4),
    ] {
        for beside in [false, true] {
            assert_eq!(measured(text, beside), (expected, mistyped), "{text} {beside}");
        }
    }
}

#[test]
fn refused_lines_leave_no_text_behind() {
    let projection = Projection { fields: vec![value("s", ValueType::String, Slot::String(0))] };
    let mut decoder = JsonDecoder::new(TopicId(0), &projection, None, TimeUnit::Seconds);
    let mut block = Block::new(LAYOUT);
    let good = format!("{{\"s\":\"{}\",\"t\":1}}", "x".repeat(100));
    let cut = &good[..good.len() - 2];
    decoder.decode(good.as_bytes(), rondel_event::Timestamp::ZERO, &mut block).unwrap();
    let before = block.text_len();
    for _ in 0..100 {
        assert!(decoder.decode(cut.as_bytes(), rondel_event::Timestamp::ZERO, &mut block).is_err());
    }
    assert_eq!((block.text_len(), block.len()), (before, 1));
}

/// Returns the rows of a trace without errors, and the number and the first of its undecodable payloads.
fn read(lines: &mut Lines, text: &str) -> (Vec<String>, u64, Option<(u64, String)>) {
    let (rows, error) = decode(lines, text.as_bytes());
    assert_eq!(error, None, "{text}");
    let first = lines.first_undecodable().map(|(line, reason)| (line, reason.to_owned()));
    (rows, lines.undecodable(), first)
}

#[test]
fn a_message_is_the_same_in_every_form() {
    let body = r#"{"b":true,"i":5,"s":"x","t":{"sec":7,"nanosec":5}}"#;
    let fields = &body[1..];
    let quoted = serde_json::Value::from(body).to_string();
    let mut rows = Vec::new();
    for line in [
        format!(r#"{{"topic":"two","time":12.5,{fields}"#),
        format!(r#"{{"topic":"two","time":12.5,"data":{body}}}"#),
        format!(
            r#"{{"data":{body},"time":{{"sec":12,"nanosec":500000000}},"topic":"two","tst":1,"payload":2}}"#
        ),
        format!(r#"{{"topic":"mqtt:two","time":12.5,"arrival":13,"data":{body}}}"#),
        format!(
            r#"{{"topic":"dds:/two","time":12.5,"arrival":13,"origin":{{"publisher":1,"number":2}},"message":{body}}}"#
        ),
        format!(r#"{{"topic":"two","time":12.5,"arrival":13,"data":5,"message":{body}}}"#),
        format!(r#"{{"topic":"zenoh:two","time":12.5,"arrival":13,"payload":{quoted}}}"#),
        format!(
            r#"{{"tst":"1970-01-01T00:00:12.500000Z+0000","topic":"two","qos":0,"retain":0,"payloadlen":17,"payload":{body}}}"#
        ),
        format!(
            r#"{{"tst":"1970-01-01T01:00:12.500000Z+0100","topic":"arm/left","qos":1,"payload":{quoted}}}"#
        ),
        format!(r#"{{"payload":{quoted},"topic":"two","tst":"12500 ms"}}"#),
    ] {
        // Twice: the second time by the shape, if one is recorded.
        let (mut found, undecodable, _) =
            read(&mut Lines::new(&topics(), false, TimeUnit::Seconds), &format!("{line}\n{line}\n"));
        assert_eq!((found.len(), undecodable), (2, 0), "{line}");
        rows.append(&mut found);
    }
    assert!(rows[0].starts_with("Some(TopicId(1)) 12.5 b111 b111 b000 i11=5 "), "{}", rows[0]);
    assert!(rows[0].contains("i11=7000000005"), "{}", rows[0]);
    assert!(rows.iter().all(|row| *row == rows[0]), "{rows:#?}");
}

#[test]
fn members_of_a_flat_line_are_fields_with_any_name() {
    let names = ["arrival", "payload", "data", "message", "tst"];
    let fields = names.iter().enumerate().map(|(i, name)| value(name, ValueType::Int, Slot::Int(i as u32)));
    let projection = Projection { fields: fields.collect() };
    let layout = Layout { topics: 1, ints: 5, ..Layout::default() };
    for (line, present) in [
        (r#"{"arrival":1,"data":2,"x":3}"#, 0b101),
        (r#"{"arrival":1,"payload":2}"#, 0b11),
        (r#"{"arrival":"1","payload":"2"}"#, 0b11),
        (r#"{"arrival":1,"payload":"2","x":3}"#, 0b11),
        (r#"{"payload":"2","data":3}"#, 0b110),
        (r#"{"message":"2","data":3}"#, 0b1100),
        (r#"{"tst":1,"data":3}"#, 0b10100),
        // Another form, in which the payload is a number and has no fields.
        (r#"{"arrival":1,"data":2}"#, 0b11111),
        (r#"{"arrival":1,"message":2,"x":3}"#, 0b11111),
        (r#"{"tst":1,"payload":2,"data":3}"#, 0b11111),
    ] {
        let topic = TraceTopic::new(vec!["a".into()], projection.clone());
        let mut block = Block::new(layout);
        let text = format!("{line}\n{line}\n");
        let mut lines = Lines::new(&[topic], false, TimeUnit::Seconds);
        lines.decode(text.as_bytes(), 0, text.len(), &mut block).unwrap();
        let is_number = present == 0b11111;
        for i in 0..5 {
            let is_in = |mask: u32| if mask >> i & 1 == 1 { 0b11 } else { 0 };
            let name = names[i as usize];
            assert_eq!(block.ints(i).present, is_in(present), "{line}: {name}");
            assert!(!is_number || block.ints(i).valid == 0, "{line}: {name}");
        }
    }
}

#[test]
fn payloads_that_cannot_be_decoded_are_counted() {
    let mut lines = Lines::new(&topics(), false, TimeUnit::Seconds);
    let text = [
        r#"{"topic":"one","time":1,"b":true}"#,
        r#"{"topic":"one","time":2,"arrival":3,"payload":"\\u{1b}[31mred"}"#,
        r#"{"topic":"one","time":2,"arrival":3,"payload":"{\"s\":\"a\\\\n\"}"}"#,
        r#"{"tst":4,"topic":"fleet/a/pose","payload":"on"}"#,
        r#"{"tst":5,"topic":"fleet/a/pose","payload":"[1]"}"#,
        r#"{"tst":6,"topic":"fleet/a/pose","payload":"{\"b\":tru}"}"#,
        r#"{"tst":7,"topic":"fleet/a/pose","payload":"{} {}"}"#,
        r#"{"tst":7,"topic":"fleet/a/pose","payload":null}"#,
        r#"{"tst":7,"topic":"fleet/a/pose","payload":""}"#,
        r#"{"tst":8,"topic":"other","payload":"on"}"#,
        r#"{"tst":9,"topic":"one","payload":"{\"b\":false}"}"#,
        r#"{"tst":10,"topic":"one","payload":7}"#,
        "",
    ]
    .join("\n");
    let (rows, undecodable, first) = read(&mut lines, &text);
    let times: Vec<&str> = rows.iter().map(|row| row.split(' ').nth(1).unwrap()).collect();
    assert_eq!(times, ["1", "9", "10"]);
    assert_eq!((undecodable, others(&lines), lines.empty()), (6, 1, 2));
    assert_eq!(first, Some((2, "the payload is no JSON object".into())));
    // Only the first one is kept.
    lines.restart();
    let (_, undecodable, first) = read(&mut lines, "{\"tst\":4,\"topic\":\"one\",\"payload\":\"on\"}\n");
    assert_eq!((undecodable, first), (7, Some((2, "the payload is no JSON object".into()))));

    let mut lines = Lines::new(&topics(), false, TimeUnit::Seconds);
    let (_, _, first) = read(&mut lines, "\n{\"tst\":6,\"topic\":\"one\",\"payload\":\"{\\\"b\\\":tru}\"}\n");
    assert_eq!(first, Some((2, "byte 5: expected true, false or null".into())));
}

#[test]
fn a_wrong_event_time_in_a_recorded_payload_is_undecodable() {
    let field = |path: &str| TraceTopic {
        time: LineTime::Field(Path::keys(path.split('.'))),
        time_unit: TimeUnit::Milliseconds,
        ..TraceTopic::new(vec!["one".into()], projection())
    };
    let new = |path: &str| Lines::new(&[field(path)], false, TimeUnit::Seconds);
    let expected = "expected a time: a number, {sec, nanosec}, a number with unit, or an ISO 8601 date";
    for (line, wrong) in [
        (
            r#"{"time":1,"arrival":2,"data":{"h":{"stamp":500}}}"#,
            r#"{"time":1,"arrival":2,"data":{"h":{"stamp":{"sec":1}}}}"#,
        ),
        (
            r#"{"time":1,"arrival":2,"message":{"h":{"stamp":"500"}}}"#,
            r#"{"time":1,"arrival":2,"message":{"h":{"stamp":null }}}"#,
        ),
        (r#"{"tst":1,"payload":{"h":{"stamp":"0.5 s"}}}"#, r#"{"tst":1,"payload":{"h":{"stamp":true}}}"#),
        (
            r#"{"tst":1,"payload":"{\"h\":{\"stamp\":500}}"}"#,
            r#"{"tst":1,"payload":"{\"h\":{\"stamp\":[]}}"}"#,
        ),
    ] {
        let (rows, undecodable, first) =
            read(&mut new("h.stamp"), &format!("{line}\n{line}\n{wrong}\n{line}\n"));
        assert_eq!((rows.len(), undecodable), (3, 1), "{wrong}");
        assert!(rows.iter().all(|row| row.starts_with("Some(TopicId(0)) 0.5 ")), "{line}: {rows:?}");
        assert_eq!(first, Some((3, format!("byte 14: {expected}"))), "{wrong}");
    }
    // In a line not written by another program, it is an error.
    for (wrong, column) in [(r#"{"data":{"h":{"stamp":true}}}"#, 23), (r#"{"h":{"stamp":true}}"#, 15)] {
        let (_, error) = decode(&mut new("h.stamp"), format!("{wrong}\n").as_bytes());
        let error = error.map(|error| (error.column, error.kind.to_string()));
        assert_eq!(error, Some((column, expected.into())));
    }
}

#[test]
fn invalid_times_of_other_programs_are_errors_of_the_line() {
    let expected = "expected a time: a number, {sec, nanosec}, a number with unit, or an ISO 8601 date";
    let early = "the time lies before the year 1678";
    let late = "the time lies beyond the year 2262";
    for (line, column, message) in [
        (r#"{"topic":"one","time":true}"#, 23, expected),
        (r#"{"topic":"one","time":{"sec":1}}"#, 23, expected),
        (r#"{"topic":"one","time":"1066-10-14T09:00:00Z","arrival":1,"data":{}}"#, 23, early),
        (r#"{"topic":"one","time":"2300-10-14T09:00:00Z","arrival":1,"data":{}}"#, 23, late),
        (r#"{"topic":"one","tst":"today","payload":{}}"#, 22, expected),
        (r#"{"topic":"one","tst":"today","payload":"{}"}"#, 22, expected),
    ] {
        let (rows, error) =
            decode(&mut Lines::new(&topics(), false, TimeUnit::Seconds), format!("{line}\n").as_bytes());
        assert!(rows.is_empty(), "{line}");
        let error = error.map(|error| (error.column, error.kind.to_string()));
        assert_eq!(error, Some((column, message.into())), "{line}");
    }
}

#[test]
fn times_of_arrival_are_read_in_every_form_that_has_them() {
    let topic = |time| TraceTopic { time, ..TraceTopic::new(vec!["one".into()], projection()) };
    for (line, recorded, arrived, arrival) in [
        (r#"{"time":1,"arrival":2,"data":{}}"#, "1", "2", Some(2)),
        (r#"{"time":null,"arrival":2,"data":{}}"#, "0", "2", Some(2)),
        (r#"{"time":1,"arrival":2,"message":{}}"#, "1", "2", Some(2)),
        (r#"{"time":1,"arrival":2,"data":5}"#, "1", "2", Some(2)),
        (r#"{"time":1,"arrival":null,"data":{}}"#, "1", "1", None),
        (r#"{"tst":3,"payload":{}}"#, "3", "3", Some(3)),
        (r#"{"tst":"1970-01-01T00:00:03Z","payload":"{}"}"#, "3", "3", Some(3)),
        (r#"{"time":1,"data":{}}"#, "1", "1", None),
        (r#"{"time":null}"#, "0", "0", None),
    ] {
        for (time, expected) in [(LineTime::Recorded, recorded), (LineTime::Arrival, arrived)] {
            let mut lines = Lines::new(&[topic(time)], false, TimeUnit::Seconds).with_arrivals(true);
            let mut block = Block::new(LAYOUT);
            let text = format!("{line}\n{line}\n");
            lines.decode(text.as_bytes(), 0, text.len(), &mut block).unwrap();
            assert_eq!(block.len(), 2, "{line}");
            for row in 0..2 {
                assert_eq!(block.time(row).to_string(), expected, "{line}");
                assert_eq!(block.arrival(row).map(Timestamp::as_nanos), arrival.map(|s| s * 1_000_000_000));
            }
            let untimed = if line.contains("null") && expected == "0" { 0b11 } else { 0 };
            assert_eq!(lines.take_untimed(), untimed, "{line}");
        }
    }
}

#[test]
fn large_payloads_are_refused_in_every_form_and_shape() {
    let body = |pad: usize| format!(r#"{{"b":true,"i":5,"pad":"{}"}}"#, "x".repeat(pad));
    let line = |form: usize, pad: usize| match form {
        0 => format!("{{\"topic\":\"two\",{}\n", &body(pad)[1..]),
        1 => format!("{{\"topic\":\"two\",\"data\":{}}}\n", body(pad)),
        2 => format!("{{\"topic\":\"two\",\"arrival\":1,\"message\":{}}}\n", body(pad)),
        _ => format!("{{\"topic\":\"two\",\"tst\":1,\"payload\":{}}}\n", body(pad)),
    };
    for form in 0..4 {
        // Long ones among short ones of a recorded shape, at every position.
        for place in 0..70 {
            let text: String = (0..70).map(|i| line(form, if i == place { 200 } else { 20 })).collect();
            let mut lines = Lines::new(&topics(), false, TimeUnit::Seconds).with_largest(150);
            let (rows, undecodable, _) = read(&mut lines, &text);
            assert_eq!((rows.len(), undecodable), (69, 0), "form {form}, place {place}");
            assert_eq!(lines.lines(), 70);
        }
        let text = line(form, 10) + &line(form, 300);
        let mut lines = Lines::new(&topics(), false, TimeUnit::Seconds).with_largest(150);
        let mut block = Block::new(LAYOUT);
        assert_eq!(lines.decode(text.as_bytes(), 0, text.len(), &mut block), Ok(text.len()));
        let [Unseen { cause: UnseenCause::TooLarge(size), topic, line: 2, row: 1, .. }] = *lines.unseen()
        else {
            panic!("one is too large")
        };
        assert!(topic == Some(TopicId(1)) && size > 300, "{size}");
        assert_eq!(block.len(), 1);
    }
}

/// Returns the rows of complete lines, decoded ahead in pieces of these numbers of lines, each by one of two decoders.
fn decode_ahead(lines: &mut Lines, text: &[String], pieces: &[usize]) -> Result<Vec<String>, LineError> {
    let mut ahead = [(); 2].map(|()| Ahead::new(lines.clone(), LAYOUT));
    let (mut decoded, mut block, mut rows) = (Decoded::default(), Block::new(LAYOUT), Vec::new());
    let mut at = 0;
    for (size, turn) in pieces.iter().cycle().zip([0, 1, 1, 0].into_iter().cycle()) {
        if at >= text.len() {
            break;
        }
        let piece = text[at..(at + size).min(text.len())].concat();
        at += size;
        ahead[turn].decode(piece.as_bytes(), 0, piece.len(), &mut decoded);
        let mut from = 0;
        let mut take = |lines: &mut Lines, source: Source<'_>| {
            block.clear();
            let taken = lines.take(source, &mut block);
            let untimed = lines.take_untimed();
            let describe = |r| format!("{} {:?} {}", row(&block, r), lines.origin(r), untimed >> r & 1);
            rows.extend((0..block.len()).map(describe));
            taken
        };
        if lines.admit(&mut decoded) {
            for part in decoded.parts() {
                let end = part.end();
                if part.is_decoded() {
                    from = take(lines, Source::Part(part))?;
                }
                while from < end {
                    from = take(lines, Source::Text { text: piece.as_bytes(), at: from, end })?;
                }
            }
        }
        while from < piece.len() {
            from = take(lines, Source::Text { text: piece.as_bytes(), at: from, end: piece.len() })?;
        }
    }
    Ok(rows)
}

proptest! {
    #[test]
    fn lines_decoded_ahead_are_equal(
        kinds in proptest::collection::vec(prop_oneof![8 => mixed_line(), 1 => Just("{\"topic\":7}".to_owned())], 1..20),
        order in proptest::collection::vec((any::<prop::sample::Index>(), 1usize..30), 1..30),
        pieces in proptest::collection::vec(1usize..150, 1..5),
        skips in any::<bool>(),
        names in prop::sample::select(vec![0, 250, 300]),
    ) {
        let more = (0..names).map(|i| format!("{{\"topic\":\"further{i}\",\"time\":1}}\n"));
        let lines = order.iter().flat_map(|(which, times)| (0..*times).map(|_| which.get(&kinds).clone() + "\n"));
        let text: Vec<String> = lines.chain(more).collect();
        let new = || Lines::new(&topics(), false, TimeUnit::Seconds).with_origins().skip_errors(skips);
        let (mut alone, mut beside) = (new(), new());
        let whole = decode_ahead(&mut alone, &text, &[usize::MAX >> 1]);
        let several = decode_ahead(&mut beside, &text, &pieces);
        let (mut one, all) = (new(), text.concat());
        let (rows, error) = decode(&mut one, all.as_bytes());
        prop_assert_eq!(several.clone().err(), error);
        prop_assert_eq!(several.is_ok(), whole.is_ok());
        if let (Ok(several), Ok(whole)) = (several, whole) {
            prop_assert_eq!(rows.len(), several.len());
            for (a, b) in rows.iter().zip(&several) {
                prop_assert!(b.starts_with(a), "{a} {b}");
            }
            prop_assert_eq!(several, whole);
        }
        for lines in [&mut alone, &mut beside] {
            prop_assert_eq!(lines.skipped(), one.skipped());
            prop_assert_eq!((lines.lines(), lines.time()), (one.lines(), one.time()));
            prop_assert_eq!((lines.mistyped(), lines.undecodable()), (one.mistyped(), one.undecodable()));
            prop_assert_eq!(lines.first_undecodable(), one.first_undecodable());
            let others = |lines: &Lines| -> std::collections::BTreeMap<String, u64> {
                lines.other_topics().map(|(name, count)| (name.to_owned(), count)).collect()
            };
            prop_assert_eq!(others(lines), others(&one));
        }
    }
}
