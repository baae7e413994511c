//! Alerts to Alertmanager, and to servers that break.

#![allow(clippy::unwrap_used, clippy::panic)] // tests

mod faults;
mod server;
#[path = "../support/mod.rs"]
mod support;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rondel_sinks::Truth::{self, Inconclusive, Satisfied, Violated};
use rondel_sinks::alertmanager::{AlertmanagerOptions, AlertmanagerSink};
use rondel_sinks::{End, Entry, RunKey, Sink, VerdictEntry};
use serde_json::Value;
use server::Alertmanager;
use support::{LIMIT, OK, SECOND, Server, begin, verdict, wait};

pub(crate) const ROBOT: &str = r#"{"robot":1}"#;

pub(crate) fn sink(url: String) -> AlertmanagerSink {
    with(AlertmanagerOptions { url, ..AlertmanagerOptions::default() })
}

pub(crate) fn with(options: AlertmanagerOptions) -> AlertmanagerSink {
    let labels = vec![("site".to_owned(), "north".to_owned())];
    AlertmanagerSink::new(AlertmanagerOptions { labels, ..options }).unwrap()
}

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap()
}

/// A verdict that was reported a minute ago and some seconds later.
pub(crate) fn entry(number: u32, parameters: &'static str, truth: Truth) -> Entry<'static> {
    let reported = now() - 60 * SECOND + i64::from(number) * SECOND;
    Entry::Verdict(VerdictEntry { reported, ..verdict(number, parameters, truth) })
}

/// The same of another run than the first.
fn of_run(run: u128, entry: Entry<'static>) -> Entry<'static> {
    match entry {
        Entry::Verdict(verdict) => Entry::Verdict(VerdictEntry { run: RunKey(run), ..verdict }),
        other => other,
    }
}

fn write(sink: &mut AlertmanagerSink, entries: &[Entry<'_>]) {
    let progress = sink.write_some(entries, LIMIT);
    assert_eq!((progress.done, progress.failure), (entries.len(), None));
}

fn stale(alert: &Value) -> &str {
    alert["annotations"]["stale"].as_str().unwrap_or_default()
}

#[test]
fn violation_fires_and_its_end_resolves() {
    let receiver = Server::scripted(&[OK]);
    let Some(server) = Alertmanager::start("alertmanager", &receiver.url()) else { return };
    let mut sink = sink(server.url());
    let Entry::Verdict(first) = entry(1, "", Violated) else { unreachable!() };
    let first = Entry::Verdict(VerdictEntry { explanation: r#"[{"brake.on":false}]"#, ..first });
    write(&mut sink, &[begin(1, "car-7"), first, entry(2, ROBOT, Violated), entry(3, ROBOT, Satisfied)]);
    let alerts = server.alerts();
    assert_eq!(alerts.len(), 1, "{alerts:#?}");
    let expected = serde_json::json!({
        "alertname": "brakes", "severity": "critical", "series": "car-7", "site": "north"
    });
    assert_eq!(alerts[0]["labels"], expected);
    let annotations = &alerts[0]["annotations"];
    for (name, value) in [
        ("summary", "brakes is violated"),
        ("text", "pedal.pressed -> within 100 ms brake.on"),
        ("requirement", "SYS-7"),
        ("explanation", r#"[{"brake.on":false}]"#),
        ("time", "2026-11-29T08:00:01.000000000Z"),
        ("host", "car"),
    ] {
        assert_eq!(annotations[name], value, "{name}");
    }
    let begun = alerts[0]["startsAt"].clone();
    // Repeated violations are the same alert.
    write(&mut sink, &[entry(4, "", Violated), entry(5, ROBOT, Violated)]);
    let alerts = server.alerts();
    assert_eq!(alerts.len(), 2);
    assert_eq!((&alerts[0]["startsAt"], &alerts[1]["labels"]["robot"]), (&begun, &Value::from("1")));
    write(&mut sink, &[entry(6, "", Satisfied), entry(7, ROBOT, Satisfied)]);
    assert_eq!(server.alerts(), Vec::<Value>::new());
    // People are notified of both.
    let statuses = wait("notifications", || {
        let bodies = receiver.received().into_iter().map(|request| request.body);
        let found: Vec<Value> = bodies.map(|body| serde_json::from_slice(&body).unwrap()).collect();
        let of_brakes = found.iter().filter(|body| body["groupLabels"]["alertname"] == "brakes");
        let statuses: Vec<String> =
            of_brakes.map(|body| body["status"].as_str().unwrap().to_owned()).collect();
        (statuses.len() >= 2).then_some(statuses)
    });
    assert_eq!(statuses, ["firing", "resolved"]);
}

#[test]
fn unknown_property_is_stale_and_not_resolved() {
    let receiver = Server::scripted(&[OK]);
    let Some(server) = Alertmanager::start("alertmanager", &receiver.url()) else { return };
    let mut sink = sink(server.url());
    write(&mut sink, &[begin(1, "car-7"), entry(1, "", Violated)]);
    assert_eq!(stale(&server.alerts()[0]), "");
    write(&mut sink, &[entry(2, "", Inconclusive)]);
    assert_eq!(stale(&server.alerts()[0]), "inconclusive since 2026-11-29T08:00:02.000000000Z");
    write(&mut sink, &[entry(3, "", Violated)]);
    assert_eq!(stale(&server.alerts()[0]), "");
    let end = Entry::End(End { run: RunKey(1), end: 0, status: "finished" });
    write(&mut sink, &[end]);
    let alerts = server.alerts();
    assert_eq!(stale(&alerts[0]), "the run ended at 1970-01-01T00:00:00.000000000Z (finished)");
    let ends = alerts[0]["endsAt"].as_str().unwrap().to_owned();
    // A day later, by the first letters of the date.
    assert!(ends.as_str() > alerts[0]["updatedAt"].as_str().unwrap(), "{ends}");
    assert_ne!(ends[..10], alerts[0]["updatedAt"].as_str().unwrap()[..10]);
    let sent = receiver.received().len();
    assert!(sent <= 1, "staleness notifies no person: {sent}");
}

#[test]
fn next_run_takes_over_alerts_of_a_killed_one() {
    let receiver = Server::scripted(&[OK]);
    let Some(server) = Alertmanager::start("alertmanager", &receiver.url()) else { return };
    let mut killed = sink(server.url());
    let mut other = with(AlertmanagerOptions { url: server.url(), ..AlertmanagerOptions::default() });
    write(&mut killed, &[begin(1, "car-7"), entry(1, "", Violated), entry(2, ROBOT, Violated)]);
    // Another car has alerts of its own.
    write(&mut other, &[begin(2, "car-8"), of_run(2, entry(1, "", Violated))]);
    drop(killed);
    let begun: Vec<Value> = server.alerts().iter().map(|alert| alert["startsAt"].clone()).collect();
    assert_eq!(begun.len(), 3);
    let mut sink = sink(server.url());
    write(&mut sink, &[begin(3, "car-7")]);
    let staled = |alerts: &[Value]| alerts.iter().map(|alert| stale(alert).to_owned()).collect::<Vec<_>>();
    let waits = "no verdict of the run that began at 2026-11-29T08:00:00.000000000Z yet";
    assert_eq!(staled(&server.alerts()), [waits, "", waits]);
    // One is still violated, the other is not.
    write(&mut sink, &[of_run(3, entry(3, "", Violated)), of_run(3, entry(4, ROBOT, Satisfied))]);
    let alerts = server.alerts();
    assert_eq!(staled(&alerts), ["", ""]);
    let left: Vec<Value> = alerts.iter().map(|alert| alert["startsAt"].clone()).collect();
    assert_eq!(left, begun[..2], "the alert keeps its begin");
    write(&mut sink, &[of_run(3, entry(5, "", Satisfied))]);
    assert_eq!(server.alerts().len(), 1);
}

#[test]
fn alerts_are_sent_again() {
    let receiver = Server::scripted(&[OK]);
    let Some(mut server) = Alertmanager::start("alertmanager", &receiver.url()) else { return };
    let options =
        AlertmanagerOptions { url: server.url(), resend: Duration::ZERO, ..AlertmanagerOptions::default() };
    let mut sink = with(options);
    write(&mut sink, &[begin(1, "car-7"), entry(1, "", Violated)]);
    let before = server.alerts();
    server.kill();
    assert!(sink.maintain(0, LIMIT).is_err());
    server.resume();
    assert_eq!(server.alerts().len(), 0);
    sink.maintain(0, LIMIT).unwrap();
    let after = server.alerts();
    assert_eq!((after.len(), &after[0]["startsAt"]), (1, &before[0]["startsAt"]));
}

#[test]
fn thousand_incidents_need_few_requests() {
    let receiver = Server::scripted(&[OK]);
    let Some(server) = Alertmanager::start("alertmanager", &receiver.url()) else { return };
    let mut sink = sink(server.url());
    let all = |truth| {
        (0..1000).map(move |i| entry(1, Box::leak(format!(r#"{{"robot":{i}}}"#).into_boxed_str()), truth))
    };
    let mut entries = vec![begin(1, "car-7")];
    entries.extend(all(Violated));
    write(&mut sink, &entries);
    assert_eq!(server.alerts().len(), 1000);
    let entries: Vec<_> = all(Satisfied).collect();
    write(&mut sink, &entries);
    assert_eq!(server.alerts().len(), 0);
}

#[test]
fn strange_texts_are_valid_labels() {
    let receiver = Server::scripted(&[OK]);
    let Some(server) = Alertmanager::start("alertmanager", &receiver.url()) else { return };
    let mut sink = sink(server.url());
    let parameters = r#"{"a.b":"\u0000\n\"{}","":[1,2],"9":"","severity":"x","__name__":"y","long":"LONG"}"#;
    let parameters: &'static str =
        Box::leak(parameters.replace("LONG", &"\u{1f697}".repeat(300)).into_boxed_str());
    write(
        &mut sink,
        &[begin(1, "car \"7\"\\"), entry(1, parameters, Violated), entry(2, "no object", Violated)],
    );
    assert_eq!(server.alerts().len(), 2);
    // They are found again.
    let mut next = self::sink(server.url());
    write(
        &mut next,
        &[begin(2, "car \"7\"\\"), entry(3, parameters, Satisfied), entry(4, "no object", Satisfied)],
    );
    assert_eq!(server.alerts().len(), 0);
}
