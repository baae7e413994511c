//! Servers that refuse, break or return what is no list of alerts.

use std::time::Duration;

use rondel_sinks::Truth::{Satisfied, Violated};
use rondel_sinks::alertmanager::AlertmanagerOptions;
use rondel_sinks::{Begin, Entry, FailureKind, RunKey, Sink, Truth, VerdictEntry};
use serde_json::Value;

use super::support::{LIMIT, MORNING, OK, Received, Reply, SECOND, Server, begin, verdict};
use super::{ROBOT, sink, with};

const NONE: Reply = Reply::Text("200 OK", "[]");

fn entry(number: u32, parameters: &'static str, truth: Truth) -> Entry<'static> {
    Entry::Verdict(verdict(number, parameters, truth))
}

fn is_post(request: &Received) -> bool {
    request.line.starts_with("POST /api/v2/alerts ")
}

/// Alerts of each request.
fn posted(server: &Server) -> Vec<Vec<Value>> {
    let posts = server.received().into_iter().filter(is_post);
    posts.map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

fn instance(i: usize) -> &'static str {
    Box::leak(format!(r#"{{"robot":{i}}}"#).into_boxed_str())
}

#[test]
fn requests_are_few_and_bounded() {
    let server = Server::start(|request| if is_post(request) { OK } else { NONE });
    let mut sink = sink(server.url());
    let mut entries = vec![begin(1, "car-7")];
    entries.extend((0..1200).map(|i| entry(1, instance(i), Violated)));
    assert_eq!(sink.write(&entries, LIMIT).unwrap().stored, 1200);
    let sizes: Vec<usize> = posted(&server).iter().map(Vec::len).collect();
    assert_eq!(sizes, [500, 500, 200]);
    let received = server.received();
    assert_eq!(received[0].line, "GET /api/v2/alerts?filter=series%3D%22car-7%22 HTTP/1.1");
    assert!(received.iter().all(|request| request.connection == 0));
}

#[test]
fn batch_that_is_repeated_has_the_same_outcome() {
    let (mut failures, failed) = (0, Reply::Text("503 Service Unavailable", ""));
    let server = Server::start(move |request| {
        failures += u32::from(is_post(request));
        if !is_post(request) {
            NONE
        } else if failures <= 2 {
            failed
        } else {
            OK
        }
    });
    let mut sink = sink(server.url());
    let lap = |number, parameters, truth| {
        Entry::Verdict(VerdictEntry { lap: 2, ..verdict(number, parameters, truth) })
    };
    let entries = [
        begin(1, "car-7"),
        entry(1, "", Violated),
        entry(2, "", Satisfied),
        entry(3, ROBOT, Violated),
        // Ends both.
        lap(4, "", Violated),
    ];
    for _ in 0..2 {
        let progress = sink.write_some(&entries, LIMIT);
        assert_eq!((progress.done, progress.failure.unwrap().kind), (0, FailureKind::Unavailable));
    }
    assert_eq!(sink.write_some(&entries, LIMIT).done, 5);
    let posted = posted(&server);
    assert_eq!(posted.len(), 3);
    // The end of an alert that is open is a day ahead.
    let summary = |alerts: &[Value]| {
        let ends = alerts.iter().map(|alert| alert["endsAt"].as_str().unwrap() < "2026-11-29T09");
        ends.zip(alerts).map(|(is_past, alert)| (alert["labels"].clone(), is_past)).collect::<Vec<_>>()
    };
    assert_eq!(summary(&posted[0]), summary(&posted[2]));
    let mut past: Vec<bool> = summary(&posted[2]).iter().map(|(_, is_past)| *is_past).collect();
    past.sort_unstable();
    assert_eq!(past, [false, true]);
}

#[test]
fn open_alert_ends_after_the_time_that_it_is_held() {
    let server = Server::start(|request| if is_post(request) { OK } else { NONE });
    let ends = |minutes: u64| {
        let hold = Duration::from_secs(minutes * 60);
        let options = AlertmanagerOptions { url: server.url(), hold, ..AlertmanagerOptions::default() };
        with(options).write(&[begin(1, "car-7"), entry(1, "", Violated)], LIMIT).unwrap();
        let alerts = posted(&server).pop().unwrap();
        // Seconds of the day, of a text such as 2026-11-29T08:00:01.000000000Z.
        let time = alerts[0]["endsAt"].as_str().unwrap()[11..19].to_owned();
        time.split(':').fold(0, |seconds, part| seconds * 60 + part.parse::<i64>().unwrap())
    };
    let (short, long) = (ends(4), ends(64));
    let difference = (long - short).rem_euclid(86_400);
    assert!((3600..3630).contains(&difference), "{short}, {long}");
}

#[test]
fn refused_alert_is_counted_and_the_others_stay() {
    let server = Server::start(|request| match String::from_utf8_lossy(&request.body) {
        _ if !is_post(request) => NONE,
        body if body.contains(r#""robot":"13""#) => Reply::Text("400 Bad Request", "invalid label"),
        _ => OK,
    });
    let mut sink = sink(server.url());
    let mut entries = vec![begin(1, "car-7")];
    entries.extend((0..40).map(|i| entry(1, instance(i), Violated)));
    let progress = sink.write_some(&entries, LIMIT);
    let failure = progress.failure.unwrap();
    assert_eq!((progress.done, progress.rejected, failure.kind), (41, 1, FailureKind::Rejected));
    assert!(failure.message.contains("invalid label"));
    assert!(posted(&server).len() < 20);
}

#[test]
fn alerts_are_bounded_and_those_left_out_are_counted() {
    let server = Server::start(|request| if is_post(request) { OK } else { NONE });
    let mut sink = sink(server.url());
    let all = |truth| (0..10_007).map(move |i| entry(1, instance(i), truth)).collect::<Vec<_>>();
    // Ten thousand alerts take seconds in an unoptimised build.
    let progress = sink.write_some(&all(Violated), 4 * LIMIT);
    assert_eq!((progress.done, progress.rejected), (10_007, 7));
    assert!(progress.failure.unwrap().message.contains("left out"));
    let alerts: usize = posted(&server).iter().map(Vec::len).sum();
    assert_eq!(alerts, 10_000);
    // There is room again once some have ended.
    assert_eq!(sink.write_some(&all(Satisfied)[..10], LIMIT).rejected, 0);
    assert_eq!(sink.write_some(&all(Violated)[10_000..], LIMIT).rejected, 0);
}

#[test]
fn stamp_of_a_chain_fires_for_five_minutes() {
    let server = Server::start(|request| if is_post(request) { OK } else { NONE });
    let mut sink = sink(server.url());
    let missing = VerdictEntry { missing: "fusion", ..verdict(1, "", Violated) };
    sink.write(&[begin(1, "car-7"), Entry::Verdict(missing), entry(2, "", Satisfied)], LIMIT).unwrap();
    let alert = posted(&server)[0][0].clone();
    assert_eq!(alert["annotations"]["missing"], "fusion");
    let begun = (MORNING + SECOND) % (60 * SECOND) / SECOND;
    assert_eq!((begun, alert["startsAt"].as_str().unwrap()), (1, "2026-11-29T08:00:01.500000000Z"));
    assert_eq!(alert["endsAt"], "2026-11-29T08:05:01.500000000Z");
}

#[test]
fn alerts_wait_while_the_address_or_the_token_is_wrong() {
    for status in ["401 Unauthorized", "403 Forbidden", "404 Not Found", "405 Method Not Allowed"] {
        let server =
            Server::start(move |request| if is_post(request) { Reply::Text(status, "") } else { NONE });
        let mut sink = sink(server.url());
        let progress = sink.write_some(&[begin(1, "car-7"), entry(1, "", Violated)], LIMIT);
        let failure = progress.failure.unwrap();
        assert_eq!(
            (failure.kind, progress.rejected, progress.written.stored),
            (FailureKind::Unavailable, 0, 0)
        );
        assert!(failure.message.contains(status), "{failure}");
    }
}

#[test]
fn answers_that_are_no_alerts_are_reported_once() {
    let cases = [
        (Reply::Text("200 OK", "<html>"), "cannot read the alerts"),
        (Reply::Huge, "more than 32 MiB"),
        (Reply::Text("404 Not Found", "no such page"), "404 Not Found: no such page"),
    ];
    for (reply, reason) in cases {
        let server = Server::start(move |request| if is_post(request) { OK } else { reply });
        let mut sink = sink(server.url());
        let progress = sink.write_some(&[begin(1, "car-7"), entry(1, "", Violated)], LIMIT);
        assert_eq!((progress.done, progress.rejected, progress.written.stored), (2, 1, 1));
        let message = progress.failure.unwrap().message;
        assert!(message.contains(reason), "{message}");
        assert_eq!(posted(&server).len(), 1, "violations are sent all the same");
    }
}

#[test]
fn verdicts_of_an_earlier_run_may_come_late() {
    let server = Server::start(|request| if is_post(request) { OK } else { NONE });
    let mut sink = sink(server.url());
    let waited = VerdictEntry { run: RunKey(7), lap: 9, ..verdict(1, "", Violated) };
    let entries =
        [begin(1, "car-7"), Entry::Verdict(waited), entry(2, ROBOT, Violated), entry(3, "", Satisfied)];
    sink.write(&entries, LIMIT).unwrap();
    let alerts = posted(&server).remove(0);
    let ended: Vec<bool> =
        alerts.iter().map(|alert| alert["endsAt"].as_str().unwrap() < "2026-11-29T09").collect();
    assert_eq!(ended, [true, false]);
    assert!(alerts.iter().all(|alert| alert["labels"]["series"] == "car-7"));
}

#[test]
fn verdicts_before_a_run_begins_get_its_labels() {
    // Alerts by series, with whether they have ended; once in one batch, once with the run in a later one.
    let of = |alerts: &[Value]| {
        let series = |alert: &Value| alert["labels"]["series"].as_str().unwrap_or_default().to_owned();
        let ended = |alert: &Value| alert["endsAt"].as_str().unwrap() < "2026-11-29T09";
        alerts.iter().map(|alert| (series(alert), ended(alert))).collect::<Vec<_>>()
    };
    let waited =
        |parameters| Entry::Verdict(VerdictEntry { run: RunKey(7), ..verdict(1, parameters, Violated) });
    for together in [true, false] {
        let server = Server::start(|request| if is_post(request) { OK } else { NONE });
        let mut sink = sink(server.url());
        let entries = [waited(ROBOT), begin(1, "car-7")];
        let named = (String::from("car-7"), false);
        if together {
            sink.write(&entries, LIMIT).unwrap();
            assert_eq!(of(&posted(&server)[0]), [named]);
        } else {
            sink.write(&entries[..1], LIMIT).unwrap();
            sink.write(&entries[1..], LIMIT).unwrap();
            let posted = posted(&server);
            assert_eq!(of(&posted[0]), [(String::new(), false)]);
            let mut last = of(&posted[1]);
            last.sort();
            assert_eq!(last, [(String::new(), true), named]);
        }
        sink.write(&[entry(3, ROBOT, Satisfied)], LIMIT).unwrap();
        assert_eq!(of(posted(&server).last().unwrap()), [(String::from("car-7"), true)]);
    }
}

#[test]
fn muted_violation_is_left_out_until_it_is_muted_no_longer() {
    let server = Server::start(|request| if is_post(request) { OK } else { NONE });
    let mut sink = sink(server.url());
    assert!(sink.notifies());
    let muted =
        |number| Entry::Verdict(VerdictEntry { because_of: "power", ..verdict(number, "", Violated) });
    sink.write(&[begin(1, "car-7"), muted(1)], LIMIT).unwrap();
    assert_eq!(posted(&server).len(), 0);
    // The same verdict again, as its cause has ended; what is muted later stays one alert.
    sink.write(&[entry(1, "", Violated), muted(2)], LIMIT).unwrap();
    sink.write(&[muted(3)], LIMIT).unwrap();
    assert_eq!(posted(&server).len(), 1);
    sink.write(&[entry(4, "", Satisfied), muted(5)], LIMIT).unwrap();
    let posted = posted(&server);
    assert_eq!((posted.len(), posted[1].len()), (2, 1));
    assert!(posted[1][0]["endsAt"].as_str().unwrap() < "2026-11-29T09");
}

#[test]
fn checks_request_no_alerts() {
    let server = Server::scripted(&[OK]);
    let mut sink = sink(server.url());
    sink.write(&[Entry::Begin(Box::new(Begin::default()))], LIMIT).unwrap();
    assert_eq!(server.received().len(), 0);
    let failing = Server::scripted(&[Reply::Text("502 Bad Gateway", "")]);
    let mut sink = super::sink(failing.url());
    let progress = sink.write_some(&[begin(1, "car-7"), entry(1, "", Violated)], LIMIT);
    assert_eq!((progress.done, progress.failure.unwrap().kind), (0, FailureKind::Unavailable));
}
