//! Messages about flights and copies of the property about them, as JSON lines or in XML.

use std::fmt::Write as _;
use std::io::Write as _;

use clap::ValueEnum;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use crate::failure::{Result, io_error};
use crate::timescales::Random;

/// A message with an older date is planted once in this number of messages.
const PLANTED: u64 = 10_000;
/// The difference of its date: more than the constants of all copies.
const BACK: i64 = 1_000_000;

/// Form of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// JSON lines
    #[default]
    Lines,
    /// An archive in XML in the form of the flight data of SWIM, compressed with gzip
    Xml,
}

/// A trace, and the number of planted violations in it.
pub(super) struct Flights {
    pub(super) name: &'static str,
    pub(super) content: Vec<u8>,
    pub(super) violations: u64,
}

/// Generates messages about flights; one in a hundred completes its flight.
///
/// # Errors
/// When the archive cannot be compressed.
pub(super) fn flights(form: Form, messages: u64, keys: u64) -> Result<Flights> {
    let (mut text, mut violations, mut random) = (String::new(), 0, Random::new(11));
    // The last date of each flight, and whether it is a violation.
    let mut last: Vec<Option<(i64, bool)>> = vec![None; keys as usize];
    for i in 0..messages {
        let key = random.within(0, keys - 1);
        let sign = format!("{}{key:04}", ["DLH", "AAL", "UAE", "QFA"][(key % 4) as usize]);
        let last = &mut last[key as usize];
        let date = 10 * i.cast_signed();
        if random.within(0, 99) == 0 {
            *last = None;
            form.write(&mut text, i, &sign, date, true);
            continue;
        }
        let older = i % PLANTED == PLANTED / 2;
        let date = if older { date - BACK } else { date };
        let violated = last.is_some_and(|(last, _)| date <= last);
        violations += u64::from(violated && last.is_some_and(|(_, before)| !before));
        *last = Some((date, violated));
        form.write(&mut text, i, &sign, date, false);
    }
    let (name, content) = match form {
        Form::Lines => ("flights.jsonl", text.into_bytes()),
        Form::Xml => ("flights.xml.gz", archive(&text).map_err(io_error("flights.xml.gz"))?),
    };
    Ok(Flights { name, content, violations })
}

/// Returns the messages in an outermost element, compressed.
fn archive(messages: &str) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ns5:MessageCollection xmlns:ns5=\"http://www.faa.aero/nas/3.0\">\n")?;
    encoder.write_all(messages.as_bytes())?;
    encoder.write_all(b"</ns5:MessageCollection>\n")?;
    encoder.finish()
}

impl Form {
    /// Writes message `i`. Writing to memory does not fail.
    fn write(self, text: &mut String, i: u64, sign: &str, date: i64, is_completed: bool) {
        let _ = match (self, is_completed) {
            (Form::Lines, true) => {
                writeln!(text, "{{\"topic\": \"completed\", \"time\": {i}, \"call_sign\": \"{sign}\"}}")
            }
            (Form::Lines, false) => writeln!(
                text,
                "{{\"topic\": \"state\", \"time\": {i}, \"call_sign\": \"{sign}\", \"date\": {date}}}"
            ),
            (Form::Xml, _) => writeln!(
                text,
                "<message time=\"{i}\"><flight centre=\"ZOA\" source=\"TH\" timestamp=\"{date}\">\
                 <flightIdentification aircraftIdentification=\"{sign}\" computerId=\"{}\"/>\
                 <flightStatus fdpsFlightStatus=\"{}\"/></flight></message>",
                i % 1000,
                if is_completed { "COMPLETED" } else { "ACTIVE" }
            ),
        };
    }

    /// Returns copies of the property. Each has a constant of its own, so that it is evaluated by itself.
    pub(super) fn specification(self, copies: u64) -> String {
        let mut text = match self {
            Form::Lines => {
                "topic state { call_sign: string, date: int }\ntopic completed { call_sign: string }\n"
            }
            Form::Xml => {
                "topic flights {\n    flight: {\n        timestamp: int,\n        \
                 flightIdentification: { aircraftIdentification: string },\n        \
                 flightStatus: { fdpsFlightStatus: string }\n    }\n}\n"
            }
        }
        .to_owned();
        for copy in 0..copies {
            let _ = match self {
                Form::Lines => writeln!(
                    text,
                    "property order{copy} for each cs in (state.call_sign, completed.call_sign) until on(completed) =\n    \
                     on(state) and previously once on(state) -> state.date + {copy} > prev(state.date)"
                ),
                Form::Xml => writeln!(
                    text,
                    "property order{copy} for each cs in flights.flight.flightIdentification.aircraftIdentification\n    \
                     until flights.flight.flightStatus.fdpsFlightStatus == \"COMPLETED\" =\n    \
                     previously once on(flights) -> flights.flight.timestamp + {copy} > prev(flights.flight.timestamp)"
                ),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn planted_violations_are_in_the_trace() {
        let Flights { content, violations, .. } = flights(Form::Lines, 40_000, 125).unwrap();
        assert_eq!(content.iter().filter(|&&byte| byte == b'\n').count(), 40_000);
        // One in a hundred is a `completed` instead, or the first message of its flight.
        assert!((1..=4).contains(&violations), "{violations}");
        assert_eq!(flights(Form::Lines, 100, 125).unwrap().violations, 0);
    }

    #[test]
    fn the_archive_has_the_same_messages() {
        let Flights { name, content, violations } = flights(Form::Xml, 40_000, 125).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(content.as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!((name, text.matches("<message ").count()), ("flights.xml.gz", 40_000));
        assert_eq!(violations, flights(Form::Lines, 40_000, 125).unwrap().violations);
    }

    #[test]
    fn copies_differ_by_a_constant() {
        for form in [Form::Lines, Form::Xml] {
            let text = form.specification(20);
            assert_eq!(text.matches("property ").count(), 20);
            assert!(
                (0..20).all(|copy| text.contains(&format!("timestamp + {copy} > "))
                    || text.contains(&format!("date + {copy} > "))),
                "{text}"
            );
            assert!(rondel_spec::parse(&text).spec.is_some(), "{text}");
        }
    }
}
