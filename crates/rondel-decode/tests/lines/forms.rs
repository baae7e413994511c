//! Lines of every form, and their errors.

use rondel_decode::json::{JsonDecoder, JsonErrorKind};
use rondel_decode::lines::{LineError, LineErrorKind, LineTime, Lines, TraceTopic, Unseen, UnseenCause};
use rondel_event::{Block, Layout, Path, Projection, Slot, TimeUnit, Timestamp, TopicId, ValueType};

use crate::{LAYOUT, decode, others, projection, read, topics, value};

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
fn wrong_events_are_undecodable_where_events_are_read() {
    let new = |has_event: bool, events: Option<TopicId>| {
        let names = || vec!["one".to_owned()];
        let topic = TraceTopic { events, has_event, ..TraceTopic::new(names(), projection()) };
        let of_events = events.map(|_| TraceTopic::new(names(), Projection::default()));
        let topics: Vec<TraceTopic> = std::iter::once(topic).chain(of_events).collect();
        Lines::new(&topics, false, TimeUnit::Seconds)
    };
    let events = Some(TopicId(1));
    for (members, reason) in [
        (r#""event":"owner_lost","publisher":"""#, "'owner_lost' is no event of a topic"),
        (r#""event":3"#, "`event` is no text"),
        (r#""event":"owner""#, "the event 'owner' needs a text `publisher`"),
        (r#""event":"owner","publiser":"""#, "the event 'owner' needs a text `publisher`"),
        (r#""event":"owner","publisher":null"#, "the event 'owner' needs a text `publisher`"),
        (r#""arrival":1,"event":"owner","publisher":7"#, "the event 'owner' needs a text `publisher`"),
        (r#""event":"alive","publisher":"a""#, "the event 'alive' has no `publisher`"),
    ] {
        // The first line may not leave a shape by which the others are messages.
        let line = format!("{{\"topic\":\"one\",\"time\":1,{members}}}\n");
        let (rows, undecodable, first) = read(&mut new(false, events), &line.repeat(2));
        assert_eq!((rows.len(), undecodable), (0, 2), "{line}");
        let (at, found) = first.unwrap();
        assert!(at == 1 && found.starts_with(reason), "{line}: {found}");
        for (has_event, events) in [(true, events), (false, None)] {
            let (rows, undecodable, _) = read(&mut new(has_event, events), &line.repeat(2));
            assert_eq!((rows.len(), undecodable), (2, 0), "{line}");
        }
    }
    for members in [
        r#""event":"owner","publisher":"""#,
        r#""event":"not_alive""#,
        r#""event":"pressed","b":true"#,
        r#""event":"owner","data":{}"#,
    ] {
        let line = format!("{{\"topic\":\"one\",\"time\":1,{members}}}\n");
        let (rows, undecodable, _) = read(&mut new(false, events), &line.repeat(2));
        assert_eq!((rows.len(), undecodable), (2, 0), "{line}");
    }
    let lines =
        ["pressed", "owner"].map(|name| format!("{{\"topic\":\"one\",\"event\":\"{name}\",\"b\":true}}\n"));
    let (rows, undecodable, _) = read(&mut new(false, events), &lines.concat());
    assert_eq!((rows.len(), undecodable), (1, 1), "the second line has the shape of the first one");
}

#[test]
fn a_wrong_event_time_in_a_recorded_payload_is_undecodable() {
    let field = |path: &str| TraceTopic {
        time: LineTime::Field(Path::keys(path.split('.'))),
        time_unit: TimeUnit::Milliseconds,
        ..TraceTopic::new(vec!["one".into()], projection())
    };
    let new = |path: &str| Lines::new(&[field(path)], false, TimeUnit::Seconds);
    let expected = "expected a time: a number, {sec, nanosec}, a number with unit, or an ISO 8601 date with a time of day";
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
    let expected = "expected a time: a number, {sec, nanosec}, a number with unit, or an ISO 8601 date with a time of day";
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
