//! Answers of NATS as sentences with the way out.

use std::fmt::Display;
use std::time::Duration;

use async_nats::{ConnectError, ConnectErrorKind, Message, StatusCode};
use serde::Deserialize;

use crate::sink::Failure;

use super::Target;

/// Answer of JetStream to a message.
pub(super) enum Answer {
    /// A stream has it.
    Stored {
        /// Whether the stream had it before.
        is_repeated: bool,
    },
    /// No stream took it.
    Refused(Failure),
}

#[derive(Deserialize)]
struct Acknowledgement<'a> {
    #[serde(borrow, default)]
    stream: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    duplicate: bool,
    #[serde(borrow, default)]
    error: Option<ApiError<'a>>,
}

#[derive(Deserialize)]
struct ApiError<'a> {
    #[serde(default)]
    err_code: u64,
    #[serde(borrow, default)]
    description: std::borrow::Cow<'a, str>,
}

/// A message is larger than its stream allows.
const STREAM_MESSAGE_TOO_LARGE: u64 = 10_054;
/// The headers of a message are larger than allowed.
const HEADERS_TOO_LARGE: u64 = 10_097;
/// A stream has reached one of its limits, and keeps old messages rather than new ones.
const STREAM_FULL: u64 = 10_077;
/// The storage of the server, of the account or of the memory is used up.
const NO_STORAGE: [u64; 3] = [10_023, 10_028, 10_047];

/// Reads an answer.
pub(super) fn answer(target: &Target, message: &Message) -> Answer {
    let place = &target.place;
    if message.status == Some(StatusCode::NO_RESPONDERS) {
        return Answer::Refused(no_stream(target));
    }
    match serde_json::from_slice::<Acknowledgement<'_>>(&message.payload) {
        Ok(Acknowledgement { error: Some(error), .. }) => Answer::Refused(refused(place, &error)),
        Ok(Acknowledgement { stream: Some(_), duplicate, .. }) => Answer::Stored { is_repeated: duplicate },
        _ => Answer::Refused(Failure::unavailable(format!(
            "a program that is no stream of JetStream answers to verdicts at {place}; choose a subject that only Rondel \
             and the stream use"
        ))),
    }
}

fn no_stream(target: &Target) -> Failure {
    let (place, pattern) = (&target.place, target.subject.pattern());
    Failure::unavailable(format!(
        "NATS at {place} has no stream for the subject `{pattern}`; create one, such as by `nats stream add VERDICTS \
         --subjects '{pattern}'`, and check that JetStream is enabled in the server"
    ))
}

fn refused(place: &str, error: &ApiError<'_>) -> Failure {
    let ApiError { err_code, description } = error;
    match *err_code {
        STREAM_MESSAGE_TOO_LARGE | HEADERS_TOO_LARGE => Failure::rejected(format!(
            "NATS at {place} rejects a verdict: {description}; raise the limit of its stream (`nats stream edit \
             --max-msg-size`), or shorten explanations"
        )),
        STREAM_FULL => Failure::unavailable(format!(
            "the stream of NATS at {place} is full: {description}; raise its limits, limit the age of its messages, or \
             let it discard old ones (`nats stream edit --discard old`)"
        )),
        code if NO_STORAGE.contains(&code) => Failure::unavailable(format!(
            "NATS at {place} has no storage left: {description}; free space on its disk, or raise the limits of \
             JetStream"
        )),
        code => Failure::unavailable(format!(
            "NATS at {place} does not store verdicts: {description} (error {code}); `nats stream report` shows the \
             state of its streams"
        )),
    }
}

/// A verdict is larger than the server accepts.
pub(super) fn too_large(place: &str, property: &str, size: usize, largest: usize) -> Failure {
    Failure::rejected(format!(
        "a verdict on `{property}` has {size} bytes, and NATS at {place} accepts {largest} with headers; raise `max_payload` of the \
         server, or shorten explanations"
    ))
}

/// The acknowledgements did not come in time.
pub(super) fn late(target: &Target, count: usize, limit: Duration) -> Failure {
    let (place, limit) = (&target.place, limit.as_secs_f64());
    Failure::unavailable(format!(
        "NATS at {place} did not acknowledge {count} verdicts within {limit:.1} s; if this lasts, check its load and \
         its disk, and that the subject belongs to a stream"
    ))
}

/// The connection is lost.
pub(super) fn lost(place: &str, reason: &dyn Display) -> Failure {
    Failure::unavailable(format!(
        "lost the connection to NATS at {place}: {reason}; check that the server runs"
    ))
}

/// Whether a message of the server says that something is not permitted. It answers in no other way then.
pub(super) fn is_denied(error: &str) -> bool {
    error.to_ascii_lowercase().contains("permissions violation")
}

/// The user may not publish, or not receive answers.
pub(super) fn denied(target: &Target, error: &str) -> Failure {
    let (place, pattern) = (&target.place, target.subject.pattern());
    Failure::unavailable(format!(
        "NATS at {place} does not permit it: {error}; allow the user to publish to `{pattern}` and to subscribe to \
         `_INBOX.>`"
    ))
}

/// There is no connection, for a reason that is no answer of a server.
pub(super) fn no_connection(place: &str, reason: &dyn Display) -> Failure {
    Failure::unavailable(format!(
        "cannot connect to NATS at {place}: {reason}; check the address, and that the server runs"
    ))
}

/// A connection could not be made.
pub(super) fn cannot_connect(place: &str, error: &ConnectError) -> Failure {
    let reason =
        std::error::Error::source(error).map_or_else(|| error.kind().to_string(), ToString::to_string);
    let advice = match error.kind() {
        ConnectErrorKind::AuthorizationViolation => {
            return Failure::unavailable(format!(
                "NATS at {place} refuses to let Rondel in; check the user and its password, the token or the credentials"
            ));
        }
        ConnectErrorKind::Authentication => "check the file of credentials",
        ConnectErrorKind::Dns => "check the name of the server",
        _ if is_about_tls(error.kind(), &reason) => {
            "check that the server offers TLS, that `ca` names the certificate of its issuer, and that the certificate is \
             for this name"
        }
        _ => "check the address, and that the server runs",
    };
    Failure::unavailable(format!("cannot connect to NATS at {place}: {reason}; {advice}"))
}

/// Errors of handshakes are errors of I/O for the client.
fn is_about_tls(kind: ConnectErrorKind, reason: &str) -> bool {
    let signs = ["certificate", "tls", "handshake", "corrupt message", "alert"];
    kind == ConnectErrorKind::Tls || signs.iter().any(|sign| reason.to_ascii_lowercase().contains(sign))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::nats::NatsOptions;
    use crate::sink::FailureKind;

    fn read(status: Option<u16>, payload: &str) -> Answer {
        let options = NatsOptions {
            servers: vec!["nats://127.0.0.1:4222".to_owned()],
            subject: "rondel.{property}".to_owned(),
            ..NatsOptions::default()
        };
        let message = Message {
            subject: "a.1".into(),
            reply: None,
            payload: payload.to_owned().into(),
            headers: None,
            status: status.map(|status| StatusCode::from_u16(status).unwrap()),
            description: None,
            length: 0,
        };
        answer(&Target::new(options).unwrap(), &message)
    }

    #[test]
    fn answers_are_read() {
        let stored = |text| matches!(read(None, text), Answer::Stored { is_repeated: false });
        assert!(stored(r#"{"stream":"VERDICTS","seq":7}"#));
        assert!(stored(r#"{"stream":"VERDICTS","seq":7,"domain":"h\u0075b","unknown":[1]}"#));
        let repeated = read(None, r#"{"stream":"VERDICTS","seq":7,"duplicate":true}"#);
        assert!(matches!(repeated, Answer::Stored { is_repeated: true }));
        use FailureKind::{Rejected, Unavailable};
        let cases = [
            (Some(503), "", Unavailable, "nats stream add VERDICTS --subjects 'rondel.*'"),
            (
                None,
                r#"{"error":{"code":400,"err_code":10054,"description":"message size exceeds"}}"#,
                Rejected,
                "--max-msg-size",
            ),
            (
                None,
                r#"{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"}}"#,
                Unavailable,
                "is full: maximum messages exceeded",
            ),
            (
                None,
                r#"{"error":{"code":500,"err_code":10047,"description":"insufficient"}}"#,
                Unavailable,
                "no storage left",
            ),
            (
                None,
                r#"{"error":{"code":503,"err_code":10008,"description":"system\u0020busy"}}"#,
                Unavailable,
                "system busy (error 10008)",
            ),
            (None, "pong", Unavailable, "a program that is no stream"),
            (None, "{}", Unavailable, "a program that is no stream"),
        ];
        for (status, payload, kind, reason) in cases {
            let Answer::Refused(failure) = read(status, payload) else { panic!("{payload} is stored") };
            assert_eq!(failure.kind, kind, "{failure}");
            assert!(failure.message.contains(reason), "{failure}");
        }
    }

    #[test]
    fn errors_of_the_server_are_classified() {
        assert!(
            is_denied(r#"Permissions Violation for Publish to "rondel.p""#) && !is_denied("Stale Connection")
        );
        assert!(is_about_tls(ConnectErrorKind::Io, "invalid peer certificate: UnknownIssuer"));
        assert!(!is_about_tls(ConnectErrorKind::Io, "Connection refused (os error 111)"));
    }
}
