//! Verdicts arrive once, with ids, and in order by instance.

use std::collections::BTreeMap;
use std::sync::Arc;

use rondel_runtime::SystemClock;
use rondel_sinks::{Driver, End, Entry, FailureKind, Options, Reason, RunKey, Sink, Written};

use crate::messages::{LIMIT, Sample, begin, entries};
use crate::server::Server;

#[test]
fn verdicts_arrive() {
    let Some(server) = Server::start("verdicts_arrive", "") else { return };
    once_with_ids(&server);
    for compression in ["snappy", "zstd"] {
        server.create(compression, &[]);
        let mut sink = server.sink(compression, &[("compression.type", compression)]);
        assert_eq!(sink.write(&entries(&Sample::all(0..1000)), LIMIT).unwrap().stored, 1000);
    }
    missing_topic_is_named_until_it_exists(&server);
    verdict_that_is_too_large_is_dropped_alone(&server);
    full_queue_of_the_client_is_waited_for(&server);
}

fn once_with_ids(server: &Server) {
    server.create("verdicts", &[]);
    let samples = Sample::all(0..10_000);
    let mut batch = vec![begin()];
    batch.extend(entries(&samples));
    batch.push(samples[0].entry());
    batch.push(Entry::End(End { run: RunKey(1), end: 0, status: "finished" }));
    let mut sink = server.sink("verdicts", &[("compression.type", "lz4")]);
    assert_eq!(sink.write(&batch, LIMIT).unwrap(), Written { stored: 10_000, repeated: 1 });
    let records = server.records("verdicts");
    assert_eq!(records.len(), samples.len());
    // Of each instance, all verdicts are in one partition, in their order.
    let mut read: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut partitions: BTreeMap<&str, i64> = BTreeMap::new();
    for record in &records {
        read.entry(&record.key).or_default().push(&record.data);
        assert_eq!(*partitions.entry(&record.key).or_insert(record.partition), record.partition);
        assert_eq!(record.headers["rondel-series"], "car-7");
        assert!(record.data.contains(&record.id()), "{record:?}");
    }
    let mut expected: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for sample in &samples {
        let key = format!("car-7/{}{}", sample.property, sample.parameters);
        expected.entry(key).or_default().push(&sample.json);
    }
    assert!(
        read.iter()
            .map(|(key, list)| (*key, list))
            .eq(expected.iter().map(|(key, list)| (key.as_str(), list)))
    );
}

fn missing_topic_is_named_until_it_exists(server: &Server) {
    let mut sink = server.sink("later", &[]);
    let samples = Sample::all(0..100);
    let failure = sink.write(&entries(&samples), LIMIT).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unavailable);
    assert!(failure.message.contains("has no topic `later`; create it"), "{failure}");
    server.create("later", &[]);
    assert_eq!(sink.write(&entries(&samples), LIMIT).unwrap().stored, 100);
    assert_eq!(server.records("later").len(), 100);
}

fn verdict_that_is_too_large_is_dropped_alone(server: &Server) {
    for (topic, size, setting) in
        [("client", 2_000_000, None), ("broker", 100_000, Some("max.message.bytes=50000"))]
    {
        server.create(topic, setting.as_slice());
        let options = Options::default();
        let driver =
            Driver::start("kafka", Box::new(server.sink(topic, &[])), options, Arc::new(SystemClock))
                .unwrap();
        let (mut feed, handle) = (driver.feed(), driver.handle());
        for (i, sample) in Sample::all(0..1000).into_iter().enumerate() {
            let sample = if i == 42 { sample.with_size(size) } else { sample };
            feed.entry(&sample.entry());
        }
        feed.send();
        assert_eq!(driver.close(LIMIT).unwritten, 0);
        let status = handle.status();
        assert_eq!((status.stored, status.dropped(Reason::Rejected).count), (999, 1), "{status:?}");
        let error = status.last_error.unwrap();
        assert!(error.contains("raise `max.message.bytes`") && error.contains("bytes: "), "{error}");
        assert_eq!(server.records(topic).len(), 999);
    }
}

fn full_queue_of_the_client_is_waited_for(server: &Server) {
    server.create("queue", &[]);
    let mut sink = server.sink("queue", &[("queue.buffering.max.messages", "100")]);
    assert_eq!(sink.write(&entries(&Sample::all(0..5000)), LIMIT).unwrap().stored, 5000);
    assert_eq!(server.records("queue").len(), 5000);
}
