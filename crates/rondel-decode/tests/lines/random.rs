//! Random lines of all forms, some of them damaged, decoded in one piece, alone and ahead.

use proptest::prelude::*;
use rondel_decode::json::JsonDecoder;
use rondel_decode::lines::{Ahead, Decoded, LineError, Lines, Source};
use rondel_event::{Block, Path, Projection, TimeUnit, TopicId};

use crate::{LAYOUT, decode, others, projection, row, topics};

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
