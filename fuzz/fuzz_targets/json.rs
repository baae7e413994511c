//! Payloads, one a line. A decoder that has learnt from the payloads before says of each what one that
//! has learnt nothing says; and both say what another JSON library says.

#![no_main]

mod slots;

use libfuzzer_sys::fuzz_target;
use rondel_decode::json::{JsonDecoder, JsonErrorKind};
use rondel_event::{Block, Path, TimeUnit, Timestamp, TopicId};
use serde::de::IgnoredAny;
use serde_json::Value;

fuzz_target!(|text: &[u8]| {
    let time = Path::keys(["z"]);
    let decoder = || JsonDecoder::new(TopicId(1), &slots::projection(), Some(&time), TimeUnit::Milliseconds);
    let mut taught = decoder();
    let start = Timestamp::from_nanos(5);
    for payload in text.split(|b| *b == b'\n').take(100) {
        let mut fresh = decoder();
        let (mut block, mut alone) = (Block::new(slots::LAYOUT), Block::new(slots::LAYOUT));
        let before = taught.refused().mistyped();
        let result = taught.decode(payload, start, &mut block);
        assert_eq!(result, fresh.decode(payload, start, &mut alone));
        assert_eq!(block.len(), usize::from(result.is_ok()));
        assert_eq!(block.len(), alone.len());
        assert_eq!(taught.refused().mistyped() - before, fresh.refused().mistyped());
        if result.is_ok() {
            assert_eq!(slots::row(&block, 0), slots::row(&alone, 0));
            // It checks that a text is well formed, not what stands in it.
            assert!(serde_json::from_slice::<IgnoredAny>(payload).is_ok());
        }
        // Deep nesting is refused by both, but not at the same level.
        if payload.iter().filter(|b| matches!(b, b'[' | b'{')).count() > 100 {
            continue;
        }
        let Ok(message) = serde_json::from_slice::<Value>(payload) else { continue };
        // The other library keeps one of repeated members.
        let is_plain =
            !payload.contains(&b'\\') && payload.windows(3).filter(|key| key == b"\"z\"").count() == 1;
        let known = message.get("z").filter(|_| is_plain).and_then(|time| moment(time, true));
        if let Some(known) = known {
            assert_eq!(result.is_ok().then(|| block.time(0).as_nanos()), known);
        }
        match result {
            Ok(()) => agree(&block, &message),
            // A time that is none is refused with its message.
            Err(error) => {
                assert!(matches!(error.kind, JsonErrorKind::NotATime(_) | JsonErrorKind::TimeOutOfRange(_)))
            }
        }
    }
});

/// What was read is what stands there.
fn agree(block: &Block, message: &Value) {
    let (bools, ints, floats, strings) = (block.bools(0), block.ints(0), block.floats(0), block.strings(0));
    for (key, present) in
        [("b", bools.present), ("i", ints.present), ("f", floats.present), ("s", strings.present)]
    {
        assert_eq!(present == 1, message.get(key).is_some());
    }
    let bool = (bools.valid == 1).then_some(bools.values == 1);
    assert_eq!(bool, message.get("b").and_then(|v| v.as_bool()));
    if let Some(value) = message.get("i").and_then(|v| v.as_i64()) {
        assert_eq!((ints.valid, ints.values[0]), (1, value));
    }
    for (key, column, is_time) in [("t", 1, true), ("d", 2, false)] {
        let Some(value) = message.get(key) else { continue };
        let column = block.ints(column);
        if let Some(known) = moment(value, is_time) {
            assert_eq!((column.valid == 1).then_some(column.values[0]), known, "{value}");
        }
    }
    let float = (floats.valid == 1).then_some(floats.values[0]);
    assert_eq!(float, message.get("f").and_then(|v| v.as_f64()));
    let string = (strings.valid == 1).then(|| block.text(0, 0));
    assert_eq!(string, message.get("s").and_then(|v| v.as_str()).map(str::as_bytes));
}

/// The time or duration that a value is, in milliseconds where it has no unit, if that can be told easily:
/// its nanoseconds, or that it is none.
fn moment(value: &Value, is_time: bool) -> Option<Option<i64>> {
    let fits = |ns: i128| Some(i64::try_from(ns).ok());
    match value {
        Value::Number(number) => fits(i128::from(number.as_i64()?) * 1_000_000),
        Value::Object(members) => {
            let numbers = [("sec", "nanosec"), ("sec", "nsec"), ("secs", "nsecs")]
                .into_iter()
                .find_map(|(sec, nanosec)| Some((members.get(sec)?, members.get(nanosec)?)));
            let Some((sec, nanosec)) = numbers.filter(|_| members.len() == 2) else { return Some(None) };
            // The other library takes -0 for a double.
            if sec.as_f64() == Some(0.0) || nanosec.as_f64() == Some(0.0) {
                return None;
            }
            let (Some(sec), Some(nanosec)) = (sec.as_i64(), nanosec.as_i64()) else { return Some(None) };
            if !(0..1_000_000_000).contains(&nanosec) {
                return Some(None);
            }
            fits(i128::from(sec) * 1_000_000_000 + i128::from(nanosec))
        }
        Value::String(text) => {
            let text = text.trim_ascii();
            if !text.bytes().any(|byte| byte.is_ascii_digit()) {
                return Some(None);
            }
            let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let units = [
                ("", 1_000_000),
                ("ns", 1),
                ("us", 1_000),
                ("ms", 1_000_000),
                ("s", 1_000_000_000),
                ("min", 60_000_000_000),
                ("h", 3_600_000_000_000),
            ];
            if let Some((_, ns)) = units.iter().find(|(name, _)| *name == rest[end..].trim_ascii_start())
                && (1..=15).contains(&end)
            {
                return fits(sign * i128::from(rest[..end].parse::<i64>().ok()?) * ns);
            }
            let is_date =
                text.len() >= 19 && text.is_ascii() && &text[4..5] == "-" && rest == text && end == 4;
            is_date.then(|| if is_time { date(text.as_bytes()) } else { None })
        }
        _ => Some(None),
    }
}

/// A date, its days counted one by one.
fn date(text: &[u8]) -> Option<i64> {
    let number = |digits: &[u8]| -> Option<i64> {
        digits.iter().all(u8::is_ascii_digit).then(|| std::str::from_utf8(digits).ok()?.parse().ok())?
    };
    let marks = [text[4], text[7], text[10], text[13], text[16]];
    if !matches!(marks, [b'-', b'-', b'T' | b't' | b' ', b':', b':']) {
        return None;
    }
    let [month, day, hour, minute, second] =
        [5, 8, 11, 14, 17].map(|at| number(&text[at..at + 2]).unwrap_or(99));
    let year = number(&text[..4])?;
    let leap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0;
    let months = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *months.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
    if !(1..=length).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut rest = &text[19..];
    let mut nanos = 0;
    if let [b'.' | b',', fraction @ ..] = rest {
        let count = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return None;
        }
        let padded = format!("{}000000000", std::str::from_utf8(&fraction[..count]).ok()?);
        nanos = number(&padded.as_bytes()[..9])?;
        rest = &fraction[count..];
    }
    if let [b'Z' | b'z', zone @ ..] = rest {
        rest = zone;
    }
    let (sign, hours, minutes) = match rest {
        b"" => (1, 0, 0),
        [b'+', zone @ ..] | [b'-', zone @ ..] => {
            let (hours, minutes) = match zone {
                [_, _] => (zone, &b"00"[..]),
                [_, _, _, _] => zone.split_at(2),
                [_, _, b':', _, _] => (&zone[..2], &zone[3..]),
                _ => return None,
            };
            (if rest[0] == b'-' { -1 } else { 1 }, number(hours)?, number(minutes)?)
        }
        _ => return None,
    };
    if hours > 23 || minutes > 59 || !(1678..=2261).contains(&year) {
        return None;
    }
    let days_of = |y: i64| if y % 4 == 0 && y % 100 != 0 || y % 400 == 0 { 366 } else { 365 };
    let years: i64 = (1970..year).map(days_of).sum::<i64>() - (year..1970).map(days_of).sum::<i64>();
    let days = years + months[..month as usize - 1].iter().sum::<i64>() + day - 1;
    let (second, nanos) = if second == 60 { (59, 999_999_999) } else { (second, nanos) };
    let minutes = days * 1440 + hour * 60 + minute - sign * (hours * 60 + minutes);
    Some((minutes * 60 + second) * 1_000_000_000 + nanos)
}
