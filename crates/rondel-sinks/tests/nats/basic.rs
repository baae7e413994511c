//! Verdicts arrive once, with ids and subjects.

use std::time::{Duration, Instant};

use rondel_sinks::nats::{NatsOptions, NatsSink};
use rondel_sinks::{End, Entry, FailureKind, RunKey, Sink, VerdictEntry, Written};

use crate::messages::{LIMIT, Sample, begin, entries};
use crate::server::{STREAM, Server};

#[test]
fn verdicts_arrive_once_with_ids() {
    let Some(server) = Server::start("verdicts_arrive_once_with_ids") else { return };
    server.client("", "create", STREAM);
    let samples = Sample::all(0..10_000);
    let mut batch = vec![begin()];
    batch.extend(entries(&samples));
    batch.push(Entry::End(End { run: RunKey(1), end: 0, status: "finished" }));
    let mut sink = server.sink();
    assert_eq!(sink.write(&batch, LIMIT).unwrap(), Written { stored: 10_000, repeated: 0 });
    // Another process repeats some, and a write contains one twice.
    let mut other = server.sink();
    let repeated = Written { stored: 0, repeated: 10_001 };
    batch.push(samples[0].entry());
    assert_eq!(other.write(&batch, LIMIT).unwrap(), repeated);
    let messages = server.messages("");
    assert_eq!(messages.len(), samples.len());
    for (message, sample) in messages.iter().zip(&samples) {
        assert_eq!((message.id(), &message.data), (sample.id(), &sample.json));
        assert_eq!(message.subject, format!("rondel.{}", sample.property.replace('.', "_")));
        assert_eq!(message.headers["Rondel-Series"], "car-7");
    }
    sink.close(LIMIT).unwrap();
}

#[test]
fn subjects_name_series_and_verdict() {
    let Some(server) = Server::start("subjects_name_series_and_verdict") else { return };
    server.client("", "create", STREAM);
    let subject = "rondel.{series}.{property}.{verdict}".to_owned();
    let mut sink = NatsSink::new(NatsOptions { subject, ..server.options() }).unwrap();
    let samples = Sample::all(0..1);
    let Entry::Verdict(known) = samples[0].entry() else { panic!("no verdict") };
    // A verdict without an id, of a run whose begin was never seen.
    let unknown = Entry::Verdict(VerdictEntry { run: RunKey(9), id: None, ..known.clone() });
    let written = sink.write(&[begin(), Entry::Verdict(known), unknown], LIMIT).unwrap();
    assert_eq!(written, Written { stored: 2, repeated: 0 });
    let messages = server.messages("");
    let subjects: Vec<&str> = messages.iter().map(|message| message.subject.as_str()).collect();
    let expected =
        ["rondel.car-7.brakes.violated", "rondel.00000000000000000000000000000009.brakes.violated"];
    assert_eq!(subjects, expected);
    assert_eq!(messages[1].id(), "");
}

#[test]
fn missing_stream_is_named_until_it_exists() {
    let Some(server) = Server::start("missing_stream_is_named_until_it_exists") else { return };
    let mut sink = server.sink();
    let samples = Sample::all(0..100);
    let failure = sink.write(&entries(&samples), LIMIT).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unavailable);
    assert!(failure.message.contains("nats stream add VERDICTS --subjects 'rondel.*'"), "{failure}");
    server.client("", "create", STREAM);
    assert_eq!(sink.write(&entries(&samples), LIMIT).unwrap().stored, 100);
}

#[test]
fn connection_without_verdicts_stays() {
    let ping = |_: &_| "ping_interval: \"1s\"\nping_max: 2\n".to_owned();
    let Some(server) = Server::with("connection_without_verdicts_stays", ping) else { return };
    server.client("", "create", STREAM);
    let mut sink = server.sink();
    let samples = Sample::all(0..2);
    assert_eq!(sink.write(&entries(&samples[..1]), LIMIT).unwrap().stored, 1);
    // Each call serves the connection for some milliseconds. The server closes it after three seconds without an answer.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(4) {
        assert!(!sink.maintain(0, Duration::from_millis(100)).unwrap());
    }
    assert_eq!(sink.write(&entries(&samples[1..]), LIMIT).unwrap().stored, 1);
    assert!(!server.log().contains("Stale Connection"), "{}", server.log());
}
