//! Log records and metrics, read by the messages of opentelemetry-proto; and receivers that refuse or break.

#![allow(clippy::unwrap_used, clippy::panic)] // tests

#[path = "../support/mod.rs"]
mod support;

use std::process::Command;

use rondel_sinks::Truth::{Inconclusive, Satisfied, Violated};
use rondel_sinks::otlp::{Metric, MetricsClient, Origin, OtlpOptions, OtlpSink, Reading};
use rondel_sinks::{Entry, FailureKind, Sink, VerdictEntry};
use serde_json::Value;
use support::{LIMIT, MORNING, OK, Reply, SECOND, Server, begin, verdict, violated};

const ACCEPTED: Reply = Reply::Text("200 OK", "{}");

fn options(server: &Server) -> OtlpOptions {
    let resource = vec![("deployment.environment".to_owned(), "test".to_owned())];
    let headers = vec![("x-key".to_owned(), "secret".to_owned())];
    OtlpOptions { url: server.url(), headers, resource, tls: None }
}

fn sink(server: &Server) -> OtlpSink {
    OtlpSink::new(options(server)).unwrap()
}

/// Reads a body as a message of a service, strictly, and returns what opentelemetry-proto prints of it.
fn decode(service: &str, message: &str, body: &[u8]) -> Option<Value> {
    let python = rondel_testkit::python("otlp", "opentelemetry.proto.collector.logs.v1.logs_service_pb2")?;
    let program = format!(
        "
import sys
from google.protobuf import json_format
from opentelemetry.proto.collector.{service}.v1.{service}_service_pb2 import {message}
print(json_format.MessageToJson(json_format.Parse(sys.stdin.read(), {message}())))
"
    );
    let finished = rondel_testkit::finish(Command::new(python).args(["-c", &program]), body);
    finished.expect_status(0);
    Some(serde_json::from_str(&finished.stdout).unwrap())
}

/// Attributes by name, as texts of their values.
fn attributes(of: &Value) -> Vec<(String, String)> {
    let value =
        |attribute: &Value| attribute["value"].as_object().unwrap().values().next().unwrap().to_string();
    let all = of["attributes"].as_array().unwrap();
    all.iter().map(|attribute| (attribute["key"].as_str().unwrap().to_owned(), value(attribute))).collect()
}

fn has(attributes: &[(String, String)], name: &str, value: &str) -> bool {
    attributes.iter().any(|(found, text)| found == name && text == value)
}

#[test]
fn opentelemetry_reads_log_records() {
    let server = Server::scripted(&[ACCEPTED]);
    let mut sink = sink(&server);
    let full = VerdictEntry {
        about: Some(MORNING + 1),
        is_after: true,
        robustness: Some(f64::NEG_INFINITY),
        explanation: r#"[{"x":"\n"}]"#,
        latency: Some(5),
        missing: "fusion",
        because_of: "power",
        ..verdict(1, r#"{"robot":1}"#, Violated)
    };
    let early = VerdictEntry { time: -5, id: None, step: None, ..verdict(3, "", Inconclusive) };
    let entries = [
        begin(1, "car-7"),
        Entry::Verdict(verdict(0, "", Violated)),
        Entry::Verdict(full),
        Entry::Verdict(verdict(2, "", Satisfied)),
        Entry::Verdict(early),
    ];
    let written = sink.write(&entries, LIMIT).unwrap();
    assert_eq!(written.stored, 4);
    let received = server.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].line, "POST /v1/logs HTTP/1.1");
    assert_eq!(
        (received[0].header("content-type"), received[0].header("x-key")),
        ("application/json", "secret")
    );
    let Some(request) = decode("logs", "ExportLogsServiceRequest", &received[0].body) else { return };
    let of_run = &request["resourceLogs"][0];
    let resource = attributes(&of_run["resource"]);
    for (name, value) in [
        ("service.name", "\"rondel\""),
        ("service.version", "\"0.1.0\""),
        ("service.instance.id", "\"00000000000000000000000000000001\""),
        ("host.name", "\"car\""),
        ("rondel.series", "\"car-7\""),
        ("deployment.environment", "\"test\""),
    ] {
        assert!(has(&resource, name, value), "{name} in {resource:?}");
    }
    let records = of_run["scopeLogs"][0]["logRecords"].as_array().unwrap();
    let severities: Vec<&str> =
        records.iter().map(|record| record["severityText"].as_str().unwrap()).collect();
    assert_eq!(severities, ["FATAL", "WARN", "INFO", "WARN"]);
    let numbers: Vec<&str> =
        records.iter().map(|record| record["severityNumber"].as_str().unwrap()).collect();
    let expected = ["FATAL", "WARN", "INFO", "WARN"].map(|name| format!("SEVERITY_NUMBER_{name}"));
    assert_eq!(numbers, expected);
    let record = &records[1];
    assert_eq!(record["timeUnixNano"], (MORNING + 1).to_string());
    assert_eq!(record["observedTimeUnixNano"], (MORNING + SECOND + SECOND / 2).to_string());
    assert_eq!(record["body"]["stringValue"], r#"gap{"robot":1} is violated"#);
    assert_eq!(record["eventName"], "rondel.verdict");
    let found = attributes(record);
    for (name, value) in [
        ("rondel.property", r#""gap""#),
        ("rondel.verdict", r#""violated""#),
        ("rondel.severity", r#""warning""#),
        ("rondel.id", r#""00000000000000000000000000000001""#),
        ("rondel.parameters", r#""{\"robot\":1}""#),
        ("rondel.explanation", r#""[{\"x\":\"\\n\"}]""#),
        ("rondel.robustness", r#""-Infinity""#),
        ("rondel.latency", r#""5""#),
        ("rondel.step", r#""1""#),
        ("rondel.lap", r#""1""#),
        ("rondel.is_after", "true"),
        ("rondel.missing", r#""fusion""#),
        ("rondel.because_of", r#""power""#),
    ] {
        assert!(has(&found, name, value), "{name} in {found:?}");
    }
    // Before 1970 the protocol has no times.
    assert!(
        records[3].get("timeUnixNano").is_none() && has(&attributes(&records[3]), "rondel.time", r#""-5""#)
    );
}

#[test]
fn requests_are_bounded_and_runs_are_apart() {
    let server = Server::scripted(&[OK]);
    let mut sink = sink(&server);
    let mut entries = vec![begin(1, "car-7")];
    entries.extend(violated(0..1100));
    entries.push(begin(2, "car-8"));
    entries.extend(violated(0..3));
    assert_eq!(sink.write(&entries, LIMIT).unwrap().stored, 1103);
    let received = server.received();
    let requests: Vec<Value> =
        received.iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
    let of =
        |request: &Value| request["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap().len();
    assert_eq!(requests.iter().map(of).collect::<Vec<_>>(), [512, 512, 76, 3]);
    let series = |request: &Value, name: &str| {
        has(&attributes(&request["resourceLogs"][0]["resource"]), "rondel.series", &format!("{name:?}"))
    };
    assert!(series(&requests[2], "car-7") && series(&requests[3], "car-8"));
    assert!(received.iter().all(|request| request.connection == 0));
}

#[test]
fn only_some_statuses_are_tried_again() {
    let cases = [
        (Reply::Text("429 Too Many Requests", ""), FailureKind::Unavailable),
        (Reply::Text("502 Bad Gateway", ""), FailureKind::Unavailable),
        (Reply::Text("503 Service Unavailable", ""), FailureKind::Unavailable),
        (Reply::Text("504 Gateway Timeout", ""), FailureKind::Unavailable),
        (
            Reply::Text("307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/", ""),
            FailureKind::Unavailable,
        ),
        (Reply::Half, FailureKind::Unavailable),
        (Reply::Text("400 Bad Request", ""), FailureKind::Rejected),
        (Reply::Text("401 Unauthorized", ""), FailureKind::Rejected),
        (Reply::Text("408 Request Timeout", ""), FailureKind::Rejected),
        (Reply::Text("500 Internal Server Error", ""), FailureKind::Rejected),
    ];
    for (reply, kind) in cases {
        let server = Server::scripted(&[reply]);
        let progress = sink(&server).write_some(&violated(0..3), LIMIT);
        let failure = progress.failure.unwrap();
        assert_eq!(failure.kind, kind, "{failure}");
        let expected = if kind == FailureKind::Rejected { (3, 3) } else { (0, 0) };
        assert_eq!((progress.done, progress.rejected), expected);
    }
}

#[test]
fn partial_success_is_counted() {
    let partly =
        Reply::Text("200 OK", r#"{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"too old"}}"#);
    let server = Server::scripted(&[
        partly,
        Reply::Text("200 OK", r#"{"partialSuccess":{"errorMessage":"hint"}}"#),
        Reply::Huge,
    ]);
    let mut sink = sink(&server);
    let progress = sink.write_some(&violated(0..5), LIMIT);
    assert_eq!((progress.done, progress.rejected, progress.written.stored), (5, 2, 3));
    let message = progress.failure.unwrap().message;
    assert!(message.ends_with("rejects 2 of 5 log records: too old"), "{message}");
    for _ in 0..2 {
        assert_eq!(sink.write(&violated(0..5), LIMIT).unwrap().stored, 5);
    }
}

#[test]
fn failure_repeats_only_the_request_that_failed() {
    let server = Server::scripted(&[ACCEPTED, Reply::Text("503 Service Unavailable", ""), ACCEPTED]);
    let mut sink = sink(&server);
    let entries = violated(0..600);
    let progress = sink.write_some(&entries, LIMIT);
    assert_eq!((progress.done, progress.written.stored), (512, 512));
    assert_eq!(sink.write_some(&entries[512..], LIMIT).done, 88);
    assert_eq!(server.received().len(), 3);
}

#[test]
fn opentelemetry_reads_metrics() {
    let server = Server::scripted(&[ACCEPTED, Reply::Text("503 Service Unavailable", "")]);
    let origin = Origin { version: "9".to_owned(), host: "car".to_owned(), ..Origin::default() };
    let mut client = MetricsClient::new(options(&server), origin).unwrap();
    let of = |topic| [("topic", topic)];
    let (gear, pedal) = (of("gear"), of("pedal"));
    let sum = |attributes, value| Metric {
        name: "rondel.messages",
        description: "Messages received.",
        unit: "{message}",
        attributes,
        reading: Reading::Sum(value),
    };
    let metrics = [
        sum(&gear, 5.0),
        sum(&pedal, 7.0),
        Metric {
            name: "rondel.queue",
            description: "",
            unit: "",
            attributes: &[],
            reading: Reading::Gauge(f64::NAN),
        },
        Metric {
            name: "rondel.latency",
            description: "Latency.",
            unit: "s",
            attributes: &gear,
            reading: Reading::Histogram { bounds: &[0.001, 0.01], counts: &[3, 2, 1], sum: 0.5 },
        },
    ];
    client.push(&metrics, MORNING, MORNING + SECOND, LIMIT).unwrap();
    let failure = client.push(&metrics, MORNING, MORNING + SECOND, LIMIT).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unavailable);
    let received = server.received();
    assert_eq!(received[0].line, "POST /v1/metrics HTTP/1.1");
    let Some(request) = decode("metrics", "ExportMetricsServiceRequest", &received[0].body) else { return };
    let of_program = &request["resourceMetrics"][0];
    let resource = attributes(&of_program["resource"]);
    for (name, value) in [
        ("service.name", "\"rondel\""),
        ("service.version", "\"9\""),
        ("host.name", "\"car\""),
        ("deployment.environment", "\"test\""),
    ] {
        assert!(has(&resource, name, value), "{name} in {resource:?}");
    }
    assert_eq!(resource.len(), 4, "{resource:?}");
    let found = of_program["scopeMetrics"][0]["metrics"].as_array().unwrap();
    assert_eq!(found.len(), 3);
    assert_eq!(found[0]["description"], "Messages received.");
    assert!(found[1].get("description").is_none() && found[1].get("unit").is_none());
    let (sum, gauge, histogram) = (&found[0]["sum"], &found[1]["gauge"], &found[2]["histogram"]);
    assert_eq!(
        (&found[0]["name"], &found[0]["unit"]),
        (&Value::from("rondel.messages"), &Value::from("{message}"))
    );
    assert_eq!(sum["isMonotonic"], true);
    for totals in [sum, histogram] {
        assert_eq!(totals["aggregationTemporality"], "AGGREGATION_TEMPORALITY_CUMULATIVE");
        assert_eq!(totals["dataPoints"][0]["startTimeUnixNano"], MORNING.to_string());
        assert_eq!(totals["dataPoints"][0]["timeUnixNano"], (MORNING + SECOND).to_string());
    }
    assert_eq!(
        (&sum["dataPoints"][0]["asDouble"], &sum["dataPoints"][1]["asDouble"]),
        (&Value::from(5.0), &Value::from(7.0))
    );
    assert!(has(&attributes(&sum["dataPoints"][1]), "topic", "\"pedal\""));
    assert_eq!(gauge["dataPoints"][0]["asDouble"], "NaN");
    let point = &histogram["dataPoints"][0];
    assert_eq!((&point["count"], &point["sum"]), (&Value::from("6"), &Value::from(0.5)));
    assert_eq!(
        (&point["bucketCounts"], &point["explicitBounds"]),
        (&serde_json::json!(["3", "2", "1"]), &serde_json::json!([0.001, 0.01]))
    );
}
