//! Tests of the forms of times and durations in JSON. Dates themselves are tested in `rondel_event::calendar`.

use super::*;
use proptest::prelude::*;

fn parse(json: &str, meaning: Meaning) -> Result<i64, &'static str> {
    let kind = Scanner::new(json.as_bytes()).kind().unwrap();
    read(kind, json.as_bytes(), TimeUnit::Milliseconds, meaning).map(Timestamp::as_nanos)
}

fn time(json: &str) -> Result<i64, &'static str> {
    parse(json, Meaning::Time)
}

#[test]
fn every_form_of_a_time_is_read_exactly() {
    for (json, ns) in [
        ("12.5", 12_500_000),
        (r#""12.5""#, 12_500_000),
        (r#"" 12.5 ""#, 12_500_000),
        (r#""12.5 s""#, 12_500_000_000),
        (r#""125ms""#, 125_000_000),
        (r#""-7 us""#, -7_000),
        ("\"7 \u{b5}s\"", 7_000),
        ("\"7 \u{3bc}s\"", 7_000),
        (r#""7 \u00b5s""#, 7_000),
        (r#""9 ns""#, 9),
        (r#""1e3 ns""#, 1_000),
        (r#""1.5 min""#, 90_000_000_000),
        (r#""0.0000000001 min""#, 6),
        (r#""2 h""#, 7_200_000_000_000),
        (r#""9223372036.854775807 s""#, i64::MAX),
        (r#""-9223372036.854775808 s""#, i64::MIN),
        (r#""-9223372036.8547758080000000000000000000000000000 s""#, i64::MIN),
        (r#""0.00000000000000000000000000000000000000000000001e56 ns""#, 1_000_000_000),
        (r#""0e99999999999 s""#, 0),
        (r#""1e-99999999999 s""#, 0),
        (r#"{"sec": 12, "nanosec": 500000000}"#, 12_500_000_000),
        (r#"{ "nanosec" : 1, "sec" : -1 }"#, -999_999_999),
        (r#"{"secs":12,"nsecs":5}"#, 12_000_000_005),
        (r#"{"secs":"x","secs":12,"nsecs":5}"#, 12_000_000_005),
        (r#"{"sec":12,"nsec":5}"#, 12_000_000_005),
        (r#"{"seconds":12,"nanos":5}"#, 12_000_000_005),
        (r#"{"s\u0065c":12,"nanosec":5}"#, 12_000_000_005),
        (r#"{"sec":9223372036,"nanosec":854775807}"#, i64::MAX),
        (r#"{"sec":-9223372037,"nanosec":145224192}"#, i64::MIN),
        (r#""2026-11-22T18:04:13.123456789Z""#, 1_795_370_653_123_456_789),
        (r#""2026-11-22T19:04:13,123456+01:00""#, 1_795_370_653_123_456_000),
        (r#""2026-11-22T23:34:13.123456Z+0530""#, 1_795_370_653_123_456_000),
        (r#""2026-11-22 19:04:13+01:00[Europe/Berlin]""#, 1_795_370_653_000_000_000),
        (r#""1678-01-01T00:00:00+23:59""#, -9_214_646_340_000_000_000),
    ] {
        assert_eq!(time(json), Ok(ns), "{json}");
    }
}

#[test]
fn other_values_are_refused() {
    for json in [
        "true",
        "null",
        "[1]",
        "{}",
        r#"{"sec":1}"#,
        r#"{"nanosec":1}"#,
        r#"{"sec":1,"nanosec":2,"frame":3}"#,
        r#"{"sec":1,"nsecs":2}"#,
        r#"{"secs":1,"sec":1,"nanosec":2}"#,
        r#"{"sec":1,"nsec":2,"nanosec":2}"#,
        r#"{"secs":1,"nanosec":2}"#,
        r#"{"sec":1.0,"nanosec":2}"#,
        r#"{"sec":1e3,"nanosec":2}"#,
        r#"{"sec":"1","nanosec":2}"#,
        r#"{"sec":1,"nanosec":null}"#,
        r#"{"sec":1,"nanosec":-1}"#,
        r#"{"sec":1,"nanosec":1000000000}"#,
        r#""""#,
        r#"" ""#,
        r#""s""#,
        r#""5 parsecs""#,
        r#""5 s s""#,
        r#""5 S""#,
        r#""+5 s""#,
        r#""1.2.3 s""#,
        r#""1. s""#,
        r#"".5 s""#,
        r#""1e s""#,
        r#""1e+-3 s""#,
        r#""--1 s""#,
        r#""1-2 s""#,
        r#""NaN""#,
        r#""2026-11-22""#,
        r#""2026-11-22T""#,
        r#""2026-11-22T18:04Z""#,
        r#""2026-11-22T18:04:13Zulu""#,
        r#""12026-11-22T18:04:13Z""#,
    ] {
        assert_eq!(time(json), Err(TIME), "{json}");
    }
    for json in ["1e30", r#""9223372036.854775809 s""#, r#""1e99999999999 ns""#, r#""99999999999999 h""#] {
        assert_eq!(time(json), Err(LATE_NUMBER), "{json}");
        let negative = if json.starts_with('"') { json.replacen('"', "\"-", 1) } else { format!("-{json}") };
        assert_eq!(time(&negative), Err(EARLY_NUMBER), "{negative}");
    }
    for seconds in ["9223372037", "99999999999999999999"] {
        assert_eq!(time(&format!("{{\"sec\":{seconds},\"nanosec\":0}}")), Err(LATE_NUMBER));
        assert_eq!(time(&format!("{{\"sec\":-{seconds},\"nanosec\":0}}")), Err(EARLY_NUMBER));
    }
    assert_eq!(time(r#""2262-01-01T00:00:00Z""#), Err(LATE));
    for json in [r#""1677-12-31T23:59:59Z""#, r#""0000-01-01T00:00:00Z""#] {
        assert_eq!(time(json), Err(EARLY), "{json}");
    }
}

#[test]
fn a_duration_is_no_date() {
    for (json, ns) in
        [("2", 2_000_000), (r#""2 s""#, 2_000_000_000), (r#"{"sec":2,"nanosec":1}"#, 2_000_000_001)]
    {
        assert_eq!(parse(json, Meaning::Duration), Ok(ns), "{json}");
    }
    assert_eq!(parse(r#""2026-11-22T18:04:13Z""#, Meaning::Duration), Err(DURATION));
    // Both parts of Protobuf have the same sign.
    let signed = r#"{"seconds":-1,"nanos":-5}"#;
    assert_eq!(parse(signed, Meaning::Duration), Ok(-1_000_000_005));
    assert_eq!(parse(r#"{"seconds":0,"nanos":-5}"#, Meaning::Duration), Ok(-5));
    assert_eq!(parse(r#"{"seconds":-1,"nanos":5}"#, Meaning::Duration), Err(DURATION));
    assert_eq!(parse(signed, Meaning::Time), Err(TIME));
}

proptest! {
    #[test]
    fn seconds_and_nanoseconds_add_up(sec in any::<i32>(), nanosec in 0i64..1_000_000_000, ros1 in any::<bool>(), swapped in any::<bool>()) {
        let (a, b) = if ros1 { ("secs", "nsecs") } else { ("sec", "nanosec") };
        let (a, b) = (format!("\"{a}\":{sec}"), format!("\"{b}\":{nanosec}"));
        let json = if swapped { format!("{{{b},{a}}}") } else { format!("{{{a},{b}}}") };
        prop_assert_eq!(time(&json), Ok(i64::from(sec) * 1_000_000_000 + nanosec));
    }

    #[test]
    fn numbers_in_strings_agree_with_plain_ones(
        number in r"-?(0|[1-9][0-9]{0,11})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?",
        (name, unit) in prop::sample::select(vec![
            ("ns", TimeUnit::Nanoseconds), ("us", TimeUnit::Microseconds),
            ("ms", TimeUnit::Milliseconds), ("s", TimeUnit::Seconds), ("", TimeUnit::Milliseconds),
        ]),
        space in " {0,2}",
    ) {
        let plain = Timestamp::parse(number.as_bytes(), unit).map(Timestamp::as_nanos);
        let json = format!("\"{number}{space}{name}\"");
        let far = if number.starts_with('-') { EARLY_NUMBER } else { LATE_NUMBER };
        prop_assert_eq!(time(&json), plain.map_err(|_| far), "{}", json);
    }

    #[test]
    fn minutes_and_hours_are_multiples_of_nanoseconds(whole in -2_000_000i64..2_000_000, thousandths in 0i64..1000) {
        let sign = if whole < 0 { -1 } else { 1 };
        let number = format!("{whole}.{thousandths:03}");
        for (unit, ns) in [("min", 60_000_000_000), ("h", 3_600_000_000_000_i64)] {
            let expected = whole * ns + sign * thousandths * (ns / 1000);
            prop_assert_eq!(time(&format!("\"{number} {unit}\"")), Ok(expected));
        }
    }

    #[test]
    fn no_string_panics(text in r#"[0-9TZ:.+\- smhn]{0,30}"#) {
        let _ = time(&format!("\"{text}\""));
    }
}
