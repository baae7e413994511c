//! Any bytes as a trace: read as a whole, by shapes learnt on the way, it comes to what its lines come
//! to one by one, each read by a decoder that has learnt nothing; undecodable payloads are counted alike.

#![no_main]

mod slots;

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use rondel_decode::lines::{LineError, LineTime, Lines, TraceTopic, published};
use rondel_event::{Block, Field, Path, Projection, Read, Slot, TimeUnit, ValueType};

/// More bytes than a decoder looks ahead, none of which may matter.
const AFTER: &[u8] = b"77777777,\"}]\ntrue";

/// A decoder of four topics, one of them with plain payloads, each with its time from elsewhere, by names and patterns.
fn lines(arrivals: bool) -> Lines {
    let topics = [
        (["o", "m/+"], LineTime::Recorded),
        (["p", "z/**"], LineTime::Field(Path::keys(["z"]))),
        (["q", "n/#"], LineTime::Arrival),
    ]
    .map(|(names, time)| TraceTopic {
        time,
        time_unit: TimeUnit::Nanoseconds,
        ..TraceTopic::new(names.map(String::from).into(), slots::projection())
    });
    let value = Field {
        path: Path::keys(["value"]),
        read: Read::Value(ValueType::Float),
        slot: Slot::Float(0),
        exact: false,
    };
    let plain = TraceTopic {
        plain: Some(Arc::default()),
        ..TraceTopic::new(vec!["v".into()], Projection { fields: vec![value] })
    };
    let topics = topics.into_iter().chain([plain]).collect::<Vec<_>>();
    Lines::new(&topics, false, TimeUnit::Nanoseconds).with_arrivals(arrivals)
}

/// The events of a text, the last time, and what stopped it.
fn decode(lines: &mut Lines, text: &[u8], rows: &mut Vec<String>) -> (Option<i64>, Option<LineError>) {
    let mut block = Block::new(slots::LAYOUT);
    let mut padded = text.to_vec();
    padded.extend_from_slice(AFTER);
    let (mut at, mut last) = (0, None);
    loop {
        block.clear();
        let result = lines.decode(&padded, at, text.len(), &mut block);
        rows.extend((0..block.len()).map(|row| slots::row(&block, row)));
        if let Some(row) = block.len().checked_sub(1) {
            last = Some(block.time(row).as_nanos());
        }
        match result {
            Ok(next) if next == at => return (last, None),
            Ok(next) => at = next,
            Err(error) => return (last, Some(error)),
        }
    }
}

fuzz_target!(|text: &[u8]| {
    let mut together = Vec::new();
    // Lines with times of arrival that are read are not learnt.
    let arrivals = text.len() % 2 == 1;
    let mut whole = lines(arrivals);
    let (_, error) = decode(&mut whole, text, &mut together);

    let (mut alone, mut time, mut mistyped, mut undecodable) = (Vec::new(), 0, 0, 0);
    let mut first_undecodable = None;
    let mut first = None;
    for (number, line) in (1..).zip(text.split_inclusive(|b| *b == b'\n')) {
        if !line.ends_with(b"\n") {
            break; // What has no line break is not read.
        }
        // Lines are also taken apart to be sent once more.
        _ = published(line, TimeUnit::Nanoseconds, line.len() % 2 == 0);
        let mut fresh = lines(arrivals);
        // The one thing that a line takes from those before it.
        decode(&mut fresh, format!("{{\"topic\":\"o\",\"time\":{time}}}\n").as_bytes(), &mut Vec::new());
        let (last, error) = decode(&mut fresh, line, &mut alone);
        time = last.unwrap_or(time);
        mistyped += fresh.mistyped().iter().sum::<u64>();
        undecodable += fresh.undecodable();
        let reason = fresh.first_undecodable().map(|(_, reason)| (number, reason.to_owned()));
        first_undecodable = first_undecodable.or(reason);
        if let Some(error) = error {
            first = Some(LineError { line: number, ..error });
            break;
        }
    }
    assert_eq!(together, alone);
    assert_eq!(error, first);
    assert_eq!(whole.mistyped().iter().sum::<u64>(), mistyped);
    assert_eq!(whole.undecodable(), undecodable);
    let first = whole.first_undecodable().map(|(line, reason)| (line, reason.to_owned()));
    assert_eq!(first, first_undecodable);
});
