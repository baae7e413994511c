//! Brokers that are gone or slow.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rondel_sinks::kafka::{KafkaOptions, KafkaSink};
use rondel_sinks::{FailureKind, Sink, Written};
use rondel_testkit::free_port;

use crate::messages::{LIMIT, Sample, entries, expect_quick_end, write_over_outage};
use crate::server::{Server, Stored};

#[test]
fn faults_of_the_broker_lose_and_repeat_nothing() {
    let Some(mut server) = Server::start("faults_of_the_broker_lose_and_repeat_nothing", "") else { return };
    server.create("killed", &[]);
    killed_under_load(&mut server);
    server.create("stopped", &[]);
    stopped(&server);
}

/// Checks that each verdict is in a topic once, those of each instance in their order.
#[track_caller]
fn expect_once(records: &[Stored], samples: &[Sample]) {
    let mut read: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for record in records {
        read.entry(record.key.split_once('/').unwrap().1).or_default().push(record.id());
    }
    let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for sample in samples {
        expected.entry(format!("{}{}", sample.property, sample.parameters)).or_default().push(sample.id());
    }
    assert_eq!(records.len(), samples.len());
    assert!(read.values().eq(expected.values()));
}

fn killed_under_load(server: &mut Server) {
    let samples = Sample::all(0..30_000);
    let sink = Box::new(server.sink("killed", &[]));
    let status = write_over_outage(server, sink, &samples);
    assert_eq!((status.stored, status.repeated, status.lost()), (30_000, 0, 0));
    expect_once(&server.records("killed"), &samples);
}

fn stopped(server: &Server) {
    let mut sink = server.sink("stopped", &[]);
    let samples = Sample::all(0..20_000);
    assert_eq!(sink.write(&entries(&samples[..10]), LIMIT).unwrap().stored, 10);
    server.signal("STOP");
    for end in [5000, 20_000] {
        let began = Instant::now();
        let failure = sink.write(&entries(&samples[10..end]), Duration::from_millis(500)).unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(failure.kind, FailureKind::Unavailable);
        assert!(failure.message.contains("did not acknowledge"), "{failure}");
    }
    // The end of a run waits no longer either.
    expect_quick_end(Box::new(server.sink("unanswered", &[])));
    server.signal("CONT");
    let written = sink.write(&entries(&samples[10..]), LIMIT).unwrap();
    assert_eq!(written, Written { stored: 19_990, repeated: 0 });
    expect_once(&server.records("stopped"), &samples);
}

#[test]
fn broker_that_never_answers_is_named() {
    let brokers = vec![format!("127.0.0.1:{}", free_port())];
    let options = KafkaOptions { brokers, topic: "verdicts".to_owned(), settings: Vec::new() };
    let mut sink = KafkaSink::new(options).unwrap();
    for _ in 0..2 {
        let began = Instant::now();
        let failure = sink.write(&entries(&Sample::all(0..10)), Duration::from_secs(5)).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Unavailable);
        assert!(failure.message.contains("Connection refused"), "{failure}");
        assert!(failure.message.contains("check the address, that the broker runs"), "{failure}");
        assert!(began.elapsed() < Duration::from_secs(8));
    }
    let began = Instant::now();
    sink.close(LIMIT).unwrap();
    assert!(began.elapsed() < Duration::from_secs(3));
}
