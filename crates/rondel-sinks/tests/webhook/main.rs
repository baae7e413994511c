//! CloudEvents to servers that accept, refuse, delay or break.

#![allow(clippy::unwrap_used, clippy::panic)] // tests

mod faults;
#[path = "../support/mod.rs"]
mod support;
mod tls;

use rondel_sinks::Truth::{Inconclusive, Satisfied, Violated};
use rondel_sinks::webhook::{Emit, WebhookOptions, WebhookSink};
use rondel_sinks::{Begin, End, Entry, Loss, Reached, RunKey, Sink, VerdictEntry, Written};
use support::{LIMIT, OK, Received, Server, begin, verdict, violated};

pub(crate) fn sink(server: &Server) -> WebhookSink {
    with(server, WebhookOptions::default())
}

pub(crate) fn with(server: &Server, options: WebhookOptions) -> WebhookSink {
    WebhookSink::new(WebhookOptions { url: format!("{}/hook?a=b", server.url()), ..options }).unwrap()
}

/// The ids of the events that a server received.
pub(crate) fn ids(received: &[Received]) -> Vec<u32> {
    received.iter().map(|request| u32::from_str_radix(request.header("ce-id"), 16).unwrap()).collect()
}

#[test]
fn verdict_is_an_event_in_binary_mode() {
    let server = Server::scripted(&[OK]);
    let headers = vec![("Authorization".to_owned(), "Bearer x".to_owned())];
    let mut sink = with(&server, WebhookOptions { headers, ..WebhookOptions::default() });
    assert!(sink.wants_json());
    let written = sink.write(&[begin(1, "car 7"), violated(12..13).remove(0)], LIMIT).unwrap();
    assert_eq!(written, Written { stored: 1, repeated: 0 });
    let received = server.received();
    let request = &received[0];
    assert_eq!(request.line, "POST /hook?a=b HTTP/1.1");
    let expected = [
        ("content-type", "application/json"),
        ("authorization", "Bearer x"),
        ("ce-specversion", "1.0"),
        ("ce-id", "0000000000000000000000000000000c"),
        ("ce-source", "car%25207/car"),
        ("ce-type", "io.rondel.verdict"),
        ("ce-time", "2026-11-29T08:00:12.000000000Z"),
        ("ce-subject", "brakes"),
        ("ce-verdict", "violated"),
        ("ce-severity", "critical"),
        ("ce-violation", "0000000000000000000000000000000c"),
        ("webhook-signature", ""),
    ];
    for (name, value) in expected {
        assert_eq!(request.header(name), value, "{name}");
    }
    assert!(request.header("user-agent").starts_with("rondel/"));
    assert_eq!(request.body, br#"{"property":"brakes","number":12}"#);
}

#[test]
fn other_entries_are_acknowledged_and_one_connection_is_kept() {
    let server = Server::scripted(&[OK]);
    let mut sink = sink(&server);
    let mut entries = vec![
        begin(1, "car-7"),
        Entry::Loss(Loss { run: RunKey(1), reason: "late", subject: "t", count: 1, ..Loss::default() }),
        Entry::Reached(Reached::default()),
        Entry::End(End::default()),
    ];
    let progress = sink.write_some(&entries, LIMIT);
    assert_eq!((progress.done, progress.written.stored, server.received().len()), (4, 0, 0));
    entries.extend(violated(0..50));
    assert_eq!(sink.write_some(&entries, LIMIT).done, 54);
    let received = server.received();
    assert_eq!(ids(&received), (0..50).collect::<Vec<_>>());
    assert!(received.iter().all(|request| request.connection == 0));
}

#[test]
fn violations_are_paired() {
    let server = Server::scripted(&[OK]);
    let mut sink = with(&server, WebhookOptions { emit: Emit::Violations, ..WebhookOptions::default() });
    let (one, two) = (r#"{"robot":1}"#, r#"{"robot":2}"#);
    let steps = [
        (1, one, Satisfied),
        (2, one, Violated),
        (3, two, Violated),
        (4, one, Inconclusive),
        (5, two, Satisfied),
        (6, one, Violated),
        (7, two, Satisfied),
        (8, one, Satisfied),
        (9, one, Satisfied),
    ];
    let mut entries = vec![begin(1, "car-7")];
    entries
        .extend(steps.map(|(number, parameters, truth)| Entry::Verdict(verdict(number, parameters, truth))));
    assert_eq!(sink.write(&entries, LIMIT).unwrap().stored, 5);
    let received = server.received();
    assert_eq!(ids(&received), [2, 3, 5, 6, 8]);
    let begins: Vec<&str> = received.iter().map(|request| &request.header("ce-violation")[31..]).collect();
    assert_eq!(begins, ["2", "3", "3", "2", "2"]);
    let names: Vec<&str> = received.iter().map(|request| request.header("ce-verdict")).collect();
    assert_eq!(names, ["violated", "violated", "satisfied", "violated", "satisfied"]);
}

#[test]
fn muted_violation_is_left_out_until_it_is_muted_no_longer() {
    let muted =
        |number, truth| Entry::Verdict(VerdictEntry { because_of: "power", ..verdict(number, "", truth) });
    let server = Server::scripted(&[OK]);
    let mut sink = with(&server, WebhookOptions { emit: Emit::Violations, ..WebhookOptions::default() });
    assert!(sink.notifies());
    let entries = [
        begin(1, "car-7"),
        muted(1, Violated),
        Entry::Verdict(verdict(2, "", Satisfied)),
        muted(3, Violated),
        // The same verdict again, as its cause has ended.
        Entry::Verdict(verdict(3, "", Violated)),
        muted(4, Violated),
        Entry::Verdict(verdict(5, "", Satisfied)),
    ];
    sink.write(&entries, LIMIT).unwrap();
    assert_eq!(ids(&server.received()), [3, 5]);
    assert!(server.received()[1].header("ce-violation").ends_with('3'));
    // All verdicts are those of networks.
    let server = Server::scripted(&[OK]);
    let mut all = self::sink(&server);
    all.write(&entries[..4], LIMIT).unwrap();
    assert!(!all.notifies() && ids(&server.received()) == [1, 2, 3]);
}

#[test]
fn resumed_run_ends_violations_of_the_run_before() {
    let server = Server::scripted(&[OK]);
    let mut sink = with(&server, WebhookOptions { emit: Emit::Violations, ..WebhookOptions::default() });
    let entries = [
        Entry::Begin(Box::new(Begin { resumes: true, ..Begin::default() })),
        Entry::Verdict(verdict(1, "", Satisfied)),
        Entry::Verdict(verdict(2, "", Satisfied)),
    ];
    sink.write(&entries, LIMIT).unwrap();
    assert_eq!(ids(&server.received()), [1]);
}

#[test]
fn verdict_without_id_or_run_is_an_event() {
    let server = Server::scripted(&[OK]);
    let mut sink = sink(&server);
    let entry = Entry::Verdict(VerdictEntry { id: None, property: "a b", ..verdict(1, "", Violated) });
    sink.write(&[entry.clone(), entry], LIMIT).unwrap();
    let received = server.received();
    let id = received[0].header("ce-id");
    assert!(id.len() == 32 && id == received[1].header("ce-id"), "{id}");
    assert_eq!((received[0].header("ce-source"), received[0].header("ce-subject")), ("rondel", "a%20b"));
}

/// Runs a program of Python with a request on its standard input. Fails unless it prints this.
fn receive(python: &std::path::Path, program: &str, request: Received, expected: &str) {
    let headers: std::collections::BTreeMap<_, _> = request.headers.into_iter().collect();
    let body = String::from_utf8(request.body).unwrap();
    let input = serde_json::json!({ "headers": headers, "body": body }).to_string();
    let mut command = std::process::Command::new(python);
    rondel_testkit::finish(command.args(["-c", program]), input.as_bytes())
        .expect_status(0)
        .expect_stdout(expected);
}

#[test]
fn cloudevents_reads_an_event() {
    let Some(python) = rondel_testkit::python("event", "cloudevents.core.bindings.http") else { return };
    let server = Server::scripted(&[OK]);
    let mut sink = sink(&server);
    let entry = VerdictEntry { property: "l\u{fc}cke \"100%\" \u{1f697}", ..verdict(7, "", Violated) };
    sink.write(&[begin(1, "car 7/\u{e9}"), Entry::Verdict(entry)], LIMIT).unwrap();
    let program = "
import json, sys
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
request = json.load(sys.stdin)
event = from_http_event(HTTPMessage(request['headers'], request['body'].encode()))
print(event.get_id()[-2:], event.get_source(), event.get_type(), event.get_time().isoformat())
print(ascii(event.get_subject()), event.get_extension('verdict'), event.get_extension('violation')[-2:])
print(event.get_datacontenttype(), event.get_data()['number'])
";
    // The source is a URI, in which characters stay encoded.
    let expected = "07 car%207%2F%C3%A9/car io.rondel.verdict 2026-11-29T08:00:07+00:00\n\
                    'l\\xfccke \"100%\" \\U0001f697' violated 07\n\
                    application/json 7\n";
    receive(&python, program, server.received().remove(0), expected);
}

#[test]
fn standard_webhooks_verifies_the_signature() {
    let Some(python) = rondel_testkit::python("signature", "standardwebhooks") else { return };
    let server = Server::scripted(&[OK]);
    // As the receiver has it, and the same as plain text.
    for secret in ["whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", "0123456789abcdef01234567"] {
        let mut sink =
            with(&server, WebhookOptions { secret: Some(secret.to_owned()), ..WebhookOptions::default() });
        sink.write(&violated(7..8), LIMIT).unwrap();
    }
    let program = "
import json, sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
request = json.load(sys.stdin)
hook = Webhook('whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3')
print(hook.verify(request['body'], request['headers'])['number'])
try:
    hook.verify(request['body'] + ' ', request['headers'])
except WebhookVerificationError:
    print('refused')
";
    for request in server.received() {
        assert_eq!(request.header("webhook-id"), request.header("ce-id"));
        receive(&python, program, request, "7\nrefused\n");
    }
}

#[test]
fn receiver_of_the_documents_verifies_the_signature() {
    let Some(python) = rondel_testkit::python("receiver", "hmac") else { return };
    let page = include_str!("../../../../docs/reference/webhooks.md");
    let (_, code) = page.split_once("```python\n").unwrap();
    let (code, _) = code.split_once("```").unwrap();
    let secret = "0123456789abcdef01234567";
    let server = Server::scripted(&[OK]);
    let mut sink =
        with(&server, WebhookOptions { secret: Some(secret.to_owned()), ..WebhookOptions::default() });
    sink.write(&violated(7..8), LIMIT).unwrap();
    let request = server.received().remove(0);
    let sent: u64 = request.header("webhook-timestamp").parse().unwrap();
    let program = format!(
        "{code}
import json, sys
request = json.load(sys.stdin)
headers, body = request['headers'], request['body'].encode()
print(verify(headers, body, {secret:?}, now={sent}), verify(headers, body + b' ', {secret:?}, now={sent}),
      verify(headers, body, 'other', now={sent}), verify(headers, body, {secret:?}, now={sent} + 301))
"
    );
    receive(&python, &program, request, "True False False False\n");
}

#[test]
fn options_are_checked() {
    let of = |url: &str, secret: Option<&str>| {
        let secret = secret.map(str::to_owned);
        WebhookSink::new(WebhookOptions { url: url.to_owned(), secret, ..WebhookOptions::default() }).err()
    };
    assert!(of("host", None).unwrap().contains("https://"));
    assert!(of("http://127.0.0.1:1", Some("whsec_!")).unwrap().contains("base64"));
    let options = WebhookOptions { secret: Some("hidden".to_owned()), ..WebhookOptions::default() };
    assert!(!format!("{options:?}").contains("hidden"));
}
