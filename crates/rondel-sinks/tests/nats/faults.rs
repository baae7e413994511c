//! Servers that are gone, slow or full, and messages that are too large.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rondel_runtime::SystemClock;
use rondel_sinks::nats::{NatsOptions, NatsSink};
use rondel_sinks::{Driver, FailureKind, Options, Reason, Sink, Written};

use crate::messages::{Broker as _, LIMIT, Sample, entries, expect_quick_end, write_over_outage};
use crate::server::{STREAM, Server};

#[test]
fn server_gone_under_load_loses_and_repeats_nothing() {
    let Some(mut server) = Server::start("server_gone_under_load_loses_and_repeats_nothing") else { return };
    server.client("", "create", STREAM);
    let samples = Sample::all(0..30_000);
    let sink = Box::new(server.sink());
    let status = write_over_outage(&mut server, sink, &samples);
    assert_eq!((status.stored + status.repeated, status.lost()), (30_000, 0));
    let mut ids: Vec<String> = server.messages("").iter().map(|message| message.id()).collect();
    let mut expected: Vec<String> = samples.iter().map(Sample::id).collect();
    ids.sort();
    expected.sort();
    assert_eq!(ids.len(), expected.len());
    assert!(ids == expected, "each verdict is in the stream once");
}

#[test]
fn idle_connection_is_replaced_without_a_failure() {
    let Some(mut server) = Server::start("idle_connection_is_replaced_without_a_failure") else { return };
    server.client("", "create", STREAM);
    let mut sink = server.sink();
    let samples = Sample::all(0..30);
    for (i, part) in samples.chunks(10).enumerate() {
        let written = sink.write(&entries(part), LIMIT).unwrap();
        assert_eq!(written, Written { stored: 10, repeated: 0 });
        server.kill();
        server.resume();
        if i == 1 {
            // Maintenance notices it first.
            assert!(!sink.maintain(0, LIMIT).unwrap());
        }
    }
    assert_eq!(server.messages("").len(), 30);
    server.kill();
    let failure = sink.write(&entries(&samples), LIMIT).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unavailable);
    assert!(failure.message.contains("check the address, and that the server runs"), "{failure}");
}

#[test]
fn stopped_server_is_waited_for_no_longer_than_the_limit() {
    let Some(server) = Server::start("stopped_server_is_waited_for_no_longer_than_the_limit") else { return };
    server.client("", "create", STREAM);
    let mut sink = server.sink();
    let samples = Sample::all(0..20_000);
    assert_eq!(sink.write(&entries(&samples[..10]), LIMIT).unwrap().stored, 10);
    server.signal("STOP");
    for _ in 0..2 {
        let began = Instant::now();
        let failure = sink.write(&entries(&samples), Duration::from_millis(500)).unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(failure.kind, FailureKind::Unavailable);
        assert!(
            failure.message.contains("did not acknowledge") || failure.message.contains("time limit"),
            "{failure}"
        );
    }
    // The end of a run waits no longer either.
    expect_quick_end(Box::new(server.sink()));
    server.signal("CONT");
    let written = sink.write(&entries(&samples), LIMIT).unwrap();
    assert_eq!(written.stored + written.repeated, 20_000);
    assert_eq!(server.messages("").len(), 20_000);
}

/// Starts a line to a server over which some bytes pass every 10 ms, and returns its port.
fn slow_line(server: u16, bytes: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The threads end with the connection.
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut server = TcpStream::connect(("127.0.0.1", server)).unwrap();
        let (mut answers, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
        let mut buffer = vec![0; bytes];
        while let Ok(1..) = client.read(&mut buffer).and_then(|length| {
            std::thread::sleep(Duration::from_millis(10));
            server.write_all(&buffer[..length]).map(|()| length)
        }) {}
    });
    port
}

#[test]
fn slow_line_is_no_failure() {
    let Some(server) = Server::start("slow_line_is_no_failure") else { return };
    server.client("", "create", STREAM);
    let port = slow_line(server.port, 2000);
    let servers = vec![format!("nats://127.0.0.1:{port}")];
    let mut sink = NatsSink::new(NatsOptions { servers, ..server.options() }).unwrap();
    let samples = Sample::all(0..2000);
    let batch = entries(&samples);
    let (mut done, mut calls, mut written) = (0, 0, Written::default());
    while done < batch.len() {
        let progress = sink.write_some(&batch[done..], Duration::from_millis(500));
        assert!(progress.done > 0 && progress.failure.is_none(), "{progress:?}");
        done += progress.done;
        written.stored += progress.written.stored;
        written.repeated += progress.written.repeated;
        calls += 1;
    }
    assert!(calls > 2, "{calls}");
    assert_eq!(written, Written { stored: 2000, repeated: 0 });
    assert_eq!(server.messages("").len(), 2000);
}

#[test]
fn verdict_that_is_too_large_is_dropped_alone() {
    for (configuration, stream, reason) in [
        ("max_payload: 8192\nmax_pending: 65536\n", STREAM, "raise `max_payload` of the server"),
        ("", r#"{"name":"VERDICTS","subjects":["rondel.>"],"max_msg_size":8192}"#, "--max-msg-size"),
    ] {
        let started =
            Server::with("verdict_that_is_too_large_is_dropped_alone", |_| configuration.to_owned());
        let Some(server) = started else { return };
        server.client("", "create", stream);
        let driver =
            Driver::start("nats", Box::new(server.sink()), Options::default(), Arc::new(SystemClock))
                .unwrap();
        let (mut feed, handle) = (driver.feed(), driver.handle());
        for (i, sample) in Sample::all(0..100).into_iter().enumerate() {
            let sample = if i == 42 { sample.with_size(9000) } else { sample };
            feed.entry(&sample.entry());
        }
        feed.send();
        assert_eq!(driver.close(LIMIT).unwritten, 0);
        let status = handle.status();
        assert_eq!((status.stored, status.repeated, status.dropped(Reason::Rejected).count), (99, 0, 1));
        assert!(status.last_error.as_ref().unwrap().contains(reason), "{status:?}");
        assert_eq!(server.messages("").len(), 99);
    }
}

#[test]
fn full_stream_is_tried_again() {
    let Some(server) = Server::start("full_stream_is_tried_again") else { return };
    let config = |messages: u32, discard: &str| {
        format!(
            r#"{{"name":"VERDICTS","subjects":["rondel.>"],"max_msgs":{messages},"discard":"{discard}"}}"#
        )
    };
    server.client("", "create", &config(50, "new"));
    let mut sink = server.sink();
    let samples = Sample::all(0..100);
    let progress = sink.write_some(&entries(&samples), LIMIT);
    assert_eq!((progress.done, progress.written), (50, Written { stored: 50, repeated: 0 }));
    let failure = progress.failure.unwrap();
    assert_eq!(failure.kind, FailureKind::Unavailable);
    assert!(failure.message.contains("is full: maximum messages exceeded"), "{failure}");
    assert!(failure.message.contains("raise its limits"), "{failure}");
    server.client("", "update", &config(100, "new"));
    let written = sink.write(&entries(&samples[50..]), LIMIT).unwrap();
    assert_eq!(written, Written { stored: 50, repeated: 0 });
    assert_eq!(server.messages("").len(), 100);
    // A stream that discards old messages is never full.
    server.client("", "update", &config(100, "old"));
    let more = Sample::all(100..150);
    assert_eq!(sink.write(&entries(&more), LIMIT).unwrap().stored, 50);
    assert_eq!(server.messages("").len(), 100);
}
