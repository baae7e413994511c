//! Servers that refuse, delay or break.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rondel_runtime::SystemClock;
use rondel_sinks::{Condition, Driver, FailureKind, Options, Reason, Sink};

use super::support::{LIMIT, OK, Reply, Server, begin, violated};
use super::{ids, sink};

#[test]
fn entries_before_a_failure_are_not_sent_again() {
    let failed = Reply::Text("500 Internal Server Error", "no room");
    let server = Server::scripted(&[OK, OK, failed, OK]);
    let mut sink = sink(&server);
    let entries = violated(0..5);
    let progress = sink.write_some(&entries, LIMIT);
    let failure = progress.failure.unwrap();
    assert_eq!((progress.done, progress.written.stored, failure.kind), (2, 2, FailureKind::Unavailable));
    assert!(failure.message.ends_with("answers 500 Internal Server Error: no room"), "{failure}");
    let progress = sink.write_some(&entries[2..], LIMIT);
    assert_eq!((progress.done, progress.failure), (3, None));
    assert_eq!(ids(&server.received()), [0, 1, 2, 2, 3, 4]);
}

#[test]
fn rejected_verdict_is_counted_and_the_others_go_on() {
    let server = Server::start(|request| match request.header("ce-id") {
        id if id.ends_with('3') => Reply::Text("400 Bad Request", "unknown property"),
        _ => OK,
    });
    let driver =
        Driver::start("hook", Box::new(sink(&server)), Options::default(), Arc::new(SystemClock)).unwrap();
    let (mut feed, handle) = (driver.feed(), driver.handle());
    for entry in violated(0..8) {
        feed.entry(&entry);
    }
    assert!(feed.send() && handle.flush(LIMIT));
    let status = handle.status();
    assert_eq!((status.dropped(Reason::Rejected).count, status.acknowledged, status.stored), (1, 7, 7));
    assert!(status.last_error.unwrap().ends_with("400 Bad Request: unknown property"));
    assert_eq!(ids(&server.received()), (0..8).collect::<Vec<_>>(), "each is sent once");
    assert!(driver.close(LIMIT).is_ended);
}

#[test]
fn driver_tries_again_until_the_server_accepts() {
    let failed = Reply::Text("503 Service Unavailable", "");
    let server = Server::scripted(&[failed, Reply::Half, failed, OK]);
    let driver =
        Driver::start("hook", Box::new(sink(&server)), Options::default(), Arc::new(SystemClock)).unwrap();
    let (mut feed, handle) = (driver.feed(), driver.handle());
    feed.entry(&begin(1, "car-7"));
    for entry in violated(0..3) {
        feed.entry(&entry);
    }
    assert!(feed.send() && handle.flush(LIMIT));
    assert_eq!(ids(&server.received()), [0, 0, 0, 0, 1, 2]);
    let status = handle.status();
    assert_eq!((status.failures, status.lost(), status.condition), (3, 0, Condition::Connected));
    driver.close(LIMIT);
}

#[test]
fn server_that_never_answers_holds_nothing_up() {
    let server = Server::scripted(&[Reply::Silence]);
    let mut sink = sink(&server);
    let began = Instant::now();
    let failure = sink.write(&violated(0..3), Duration::from_millis(200)).unwrap_err();
    assert!(failure.message.contains("does not answer within the time limit"), "{failure}");
    assert!(failure.kind == FailureKind::Unavailable && began.elapsed() < LIMIT / 2);
}

#[test]
fn request_is_interrupted_at_the_end() {
    let server = Server::scripted(&[Reply::Silence]);
    let driver =
        Driver::start("hook", Box::new(sink(&server)), Options::default(), Arc::new(SystemClock)).unwrap();
    let (mut feed, handle) = (driver.feed(), driver.handle());
    violated(0..2).iter().for_each(|entry| feed.entry(entry));
    feed.send();
    server.wait(1);
    let began = Instant::now();
    let closed = driver.close(Duration::ZERO);
    // A call has 5 seconds.
    assert!(closed.is_ended && began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!((closed.unwritten, handle.status().dropped(Reason::Ended).count), (2, 2));
}

#[test]
fn broken_and_endless_answers_are_bounded() {
    let server = Server::scripted(&[Reply::Half, Reply::Huge, OK]);
    let mut sink = sink(&server);
    let failure = sink.write(&violated(0..1), LIMIT).unwrap_err();
    assert!(
        failure.kind == FailureKind::Unavailable && failure.message.contains("cannot reach"),
        "{failure}"
    );
    // The status says that it accepts; its text is not read to the end.
    let began = Instant::now();
    assert_eq!(sink.write(&violated(1..3), LIMIT).unwrap().stored, 2);
    assert!(began.elapsed() < LIMIT / 2);
    let connections: Vec<usize> = server.received().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 1, 2], "what is left of an answer is not taken for the next one");
}

#[test]
fn redirects_are_named_and_not_followed() {
    let other = Server::scripted(&[OK]);
    for status in [
        "301 Moved Permanently",
        "302 Found",
        "303 See Other",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let head = format!("{status}\r\nlocation: {}/other?token=secret", other.url());
        let server = Server::scripted(&[Reply::Text(Box::leak(head.into_boxed_str()), "")]);
        let failure = sink(&server).write(&violated(0..1), LIMIT).unwrap_err();
        let target = format!("redirects to {}/other with status {}", other.url(), &status[..3]);
        assert!(failure.message.contains(&target) && !failure.message.contains("secret"), "{failure}");
        assert_eq!(failure.kind, FailureKind::Unavailable);
    }
    assert_eq!(other.received().len(), 0);
}

#[test]
fn slow_server_makes_progress_beyond_the_time_limit_of_a_batch() {
    let server = Server::start(|_| {
        std::thread::sleep(Duration::from_millis(60));
        OK
    });
    let mut sink = sink(&server);
    let (entries, mut done, mut calls) = (violated(0..30), 0, 0);
    while done < entries.len() {
        let progress = sink.write_some(&entries[done..], Duration::from_secs(1));
        assert_eq!(progress.failure, None);
        (done, calls) = (done + progress.done, calls + 1);
    }
    assert!((2..=30).contains(&calls), "{calls}");
    let mut ids = ids(&server.received());
    // A request whose answer came too late is repeated with the same id.
    ids.dedup();
    assert_eq!(ids, (0..30).collect::<Vec<_>>());
}

#[test]
fn server_that_is_not_there_is_named() {
    let server = Server::scripted(&[OK]);
    let mut sink = sink(&server);
    let place = server.url();
    drop(server);
    let failure = sink.write(&violated(0..1), LIMIT).unwrap_err();
    assert!(failure.message.contains(&format!("cannot reach {place}")), "{failure}");
    assert_eq!(failure.kind, FailureKind::Unavailable);
}
