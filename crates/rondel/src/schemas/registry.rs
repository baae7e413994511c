//! Schema registries: schemas of Avro by the ids in the framing of messages, by the API of the Schema Registry of Confluent,
//! which others have too: `GET /schemas/ids/ID`.
//!
//! A schema is requested once, and kept: an id means one schema forever. Whoever needs an unknown one waits, at most
//! [`LIMIT`]; on Kafka this is the thread that reads, so that records stay with the broker in their order. In a run,
//! schemas are requested ahead of decoding: nothing is requested under the lock of the pipeline. After a request without an
//! answer, there is none for [`PAUSE`], nor after requests without a schema that have taken this time limit together: an
//! outage or corrupt ids delay messages by one time limit in each pause, and messages whose schema is unknown are
//! undecodable meanwhile.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rondel_decode::avro::{AvroSchema, AvroType, SchemaFault, SchemaSource};
use serde_json::Value;
use ureq::{Agent, Error};

use crate::warn;

/// Time limit for an answer.
const LIMIT: Duration = Duration::from_secs(3);
/// Time for which the same request is not repeated after a failure.
const PAUSE: Duration = Duration::from_secs(5);
/// Maximum number of schemas, and of ids without one.
const SCHEMAS: usize = 1024;
/// Number of ids without a schema that are reported; further ones are only counted as undecodable messages.
const REPORTED: usize = 8;
/// Maximum size of an answer in bytes.
const LARGEST: u64 = 4 << 20;

/// The registries of the process: several topics share one.
static REGISTRIES: Mutex<Vec<Arc<Registry>>> = Mutex::new(Vec::new());

/// A user of a registry, and the environment variable with the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The variable.
    pub password_env: String,
}

/// A schema registry.
#[derive(Debug)]
pub struct Registry {
    url: String,
    user: Option<User>,
    agent: Agent,
    state: Mutex<State>,
    /// Held during a request.
    requesting: Mutex<()>,
    /// Whether schemas are requested ahead of their messages, and by nothing else.
    is_ahead: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    schemas: BTreeMap<u32, AvroType>,
    /// Ids without a schema, and when they are requested again.
    failed: BTreeMap<u32, (SchemaFault, Instant)>,
    /// Number of reports of ids without a schema.
    reported: usize,
    /// Begin of the first of the last requests without a schema, and the time that they have taken.
    futile: Option<(Instant, Duration)>,
    /// Time until which there is no request, and the reason.
    paused: Option<(SchemaFault, Instant)>,
    /// Whether a pause because of requests without a schema was reported.
    is_pause_reported: bool,
    /// End of the last request, and its duration.
    last: Option<(Instant, Duration)>,
}

impl State {
    /// Adds a request without a schema. Returns whether those of a [`PAUSE`] have taken the time limit.
    fn add_futile(&mut self, began: Instant, end: Instant) -> bool {
        let of_pause = self.futile.filter(|(since, _)| end.saturating_duration_since(*since) < PAUSE);
        let (since, taken) = of_pause.unwrap_or((began, Duration::ZERO));
        let taken = taken + end.saturating_duration_since(began);
        self.futile = Some((since, taken));
        taken >= LIMIT
    }
}

/// Whether messages wait for a schema, or may still wait behind one that did: silence proves nothing then.
pub fn is_schema_awaited() -> bool {
    let all = REGISTRIES.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().any(|registry| registry.is_awaited())
}

/// Checks the address of a registry.
///
/// # Errors
/// The requirement that it does not meet.
pub fn check_url(url: &str) -> Result<(), String> {
    if url.starts_with("https://") {
        return Err(
            "schema registries are queried without TLS: use an address that only this machine or its network \
                    reaches, or a local proxy that adds TLS"
                .to_owned(),
        );
    }
    let rest = url.strip_prefix("http://").unwrap_or_default();
    let host = rest.split('/').next().unwrap_or_default();
    if host.contains('@') {
        return Err("the address has a user: write `user` and `password_env` beside it".to_owned());
    }
    let is_clear = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#');
    match !host.is_empty() && rest.chars().all(is_clear) {
        true => Ok(()),
        false => Err("must be an address such as http://127.0.0.1:8081".to_owned()),
    }
}

impl Registry {
    /// Returns the registry at an address, which is the same for all topics.
    pub fn at(url: &str, user: Option<User>) -> Arc<Registry> {
        let url = url.trim_end_matches('/');
        let mut all = REGISTRIES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|known| known.url == url && known.user == user) {
            return Arc::clone(known);
        }
        // Neither a proxy of the environment nor another server: the password is for this one.
        let agent = Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .timeout_global(Some(LIMIT))
            .build();
        let (state, requesting, is_ahead) = Default::default();
        let (url, agent) = (url.to_owned(), agent.into());
        let registry = Arc::new(Registry { url, user, agent, state, requesting, is_ahead });
        all.push(Arc::clone(&registry));
        registry
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a request, or was one at most its own duration ago: messages behind it are received meanwhile.
    fn is_awaited(&self) -> bool {
        let is_requesting = matches!(self.requesting.try_lock(), Err(TryLockError::WouldBlock));
        is_requesting || self.state().last.is_some_and(|(end, duration)| end.elapsed() < duration)
    }

    /// Returns what is known of an id.
    fn known(&self, id: u32) -> Option<Result<AvroType, SchemaFault>> {
        let (state, now) = (self.state(), Instant::now());
        if let Some(of) = state.schemas.get(&id) {
            return Some(Ok(of.clone()));
        }
        if state.schemas.len() >= SCHEMAS {
            return Some(Err(SchemaFault::TooMany));
        }
        let failed = state.failed.get(&id).filter(|(_, until)| now < *until).map(|(why, _)| *why);
        let paused = state.paused.filter(|(_, until)| now < *until).map(|(why, _)| why);
        failed.or(paused).map(Err)
    }

    /// Returns the schema with an id, or why the last request has given none. Requests nothing.
    fn found(&self, id: u32) -> Result<AvroType, SchemaFault> {
        self.known(id).unwrap_or_else(|| {
            let state = self.state();
            let failed = state.failed.get(&id).map(|(why, _)| *why);
            // Ids that have failed are forgotten when there are too many.
            Err(failed.or(state.paused.map(|(why, _)| why)).unwrap_or(SchemaFault::Paused))
        })
    }

    /// Returns the schema with an id, which is requested unless it is known.
    fn find(&self, id: u32) -> Result<AvroType, SchemaFault> {
        if let Some(known) = self.known(id) {
            return known;
        }
        let _requesting = self.requesting.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have received it meanwhile.
        if let Some(known) = self.known(id) {
            return known;
        }
        let began = Instant::now();
        let answer = self.get(id);
        self.state().last = Some((Instant::now(), began.elapsed()));
        match answer {
            Ok(of) => {
                tracing::info!(registry = %self.url, id, name = of.name(), "the registry has the schema");
                let mut state = self.state();
                state.failed.remove(&id);
                state.schemas.insert(id, of.clone());
                Ok(of)
            }
            Err((fault, why)) => {
                self.fail(id, fault, &why, began);
                Err(fault)
            }
        }
    }

    /// Queries the registry for a schema.
    fn get(&self, id: u32) -> Result<AvroType, (SchemaFault, String)> {
        let mut request = self.agent.get(format!("{}/schemas/ids/{id}", self.url));
        if let Some(User { name, password_env }) = &self.user {
            let password = std::env::var(password_env).map_err(|_| {
                (SchemaFault::Refused, format!("the environment variable {password_env} is not set"))
            })?;
            let credentials = base64(format!("{name}:{password}").as_bytes());
            request = request.header("Authorization", format!("Basic {credentials}"));
        }
        let unanswered = |error: &Error| (SchemaFault::Unanswered, error.to_string());
        let mut answer = request
            .header("Accept", "application/vnd.schemaregistry.v1+json, application/json")
            .call()
            .map_err(|error| unanswered(&error))?;
        let status = answer.status().as_u16();
        let fault = match status {
            200 => None,
            404 => Some(SchemaFault::Unknown),
            408 | 429 | 500.. => Some(SchemaFault::Unanswered),
            _ => Some(SchemaFault::Refused),
        };
        if let Some(fault) = fault {
            return Err((fault, format!("it answers with status {status}")));
        }
        let body = answer.body_mut().with_config().limit(LARGEST).read_to_vec();
        let body = body.map_err(|error| match error {
            Error::BodyExceedsLimit(_) => (SchemaFault::Invalid, "the answer has more than 4 MiB".to_owned()),
            error => unanswered(&error),
        })?;
        read_answer(&body).map_err(|why| (SchemaFault::Invalid, why))
    }

    /// Keeps and reports the fault of a request.
    fn fail(&self, id: u32, fault: SchemaFault, why: &str, began: Instant) {
        let now = Instant::now();
        let (until, mut state) = (now + PAUSE, self.state());
        // Requests without an answer are limited by the pause.
        let is_limited = fault != SchemaFault::Unanswered;
        let is_paused = is_limited && state.add_futile(began, now);
        if is_paused || !is_limited {
            state.paused = Some((if is_paused { SchemaFault::Paused } else { fault }, until));
        }
        if state.failed.len() >= SCHEMAS {
            state.failed.clear();
        }
        let before = state.failed.insert(id, (fault, until));
        let is_new = before.is_none_or(|(before, _)| before != fault);
        let is_reported = is_new && !(is_limited && state.reported >= REPORTED);
        state.reported += usize::from(is_reported && is_limited);
        let is_last = is_limited && state.reported == REPORTED;
        let is_pause_new = is_paused && !std::mem::replace(&mut state.is_pause_reported, true);
        drop(state);
        if is_reported {
            let further = if is_last { "; further ids are not reported" } else { "" };
            warn(&format!(
                "the schema registry at {} gives no schema with the id {id} ({why}); messages with it are counted as \
                 undecodable, and it is requested again after {} s{further}",
                self.url,
                PAUSE.as_secs()
            ));
        }
        if is_pause_new {
            warn(&format!(
                "requests to the schema registry at {} have given no schema for {} s; there is none for {} s, and messages \
                 with unknown schemas are counted as undecodable; further pauses are not reported",
                self.url,
                LIMIT.as_secs(),
                PAUSE.as_secs()
            ));
        }
    }
}

/// Returns the schema in an answer.
fn read_answer(body: &[u8]) -> Result<AvroType, String> {
    let answer: Value = serde_json::from_slice(body).map_err(|_| "the answer is not JSON".to_owned())?;
    match answer.get("schemaType").and_then(Value::as_str) {
        None | Some("AVRO") => {}
        Some(other) => return Err(format!("the schema has the type {other}, not AVRO")),
    }
    let Some(schema) = answer.get("schema").and_then(Value::as_str) else {
        return Err("the answer has no `schema`".to_owned());
    };
    let has_references =
        answer.get("references").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    let parsed = AvroSchema::from_json(schema.as_bytes()).map(|schema| schema.root());
    parsed.map_err(|error| match has_references {
        true => format!("{error}; references to other schemas are not followed"),
        false => error.to_string(),
    })
}

impl SchemaSource for Registry {
    fn place(&self) -> &str {
        &self.url
    }

    fn schema(&self, id: u32) -> Result<AvroType, SchemaFault> {
        if self.is_ahead.load(Ordering::Relaxed) { self.found(id) } else { self.find(id) }
    }

    fn request(&self, id: u32) -> Result<AvroType, SchemaFault> {
        self.is_ahead.store(true, Ordering::Relaxed);
        self.find(id)
    }
}

/// Encodes credentials.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let at = |index: usize| u32::from(group.get(index).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit) & 63) as usize;
            out.push(if digit <= group.len() { char::from(DIGITS[value]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// A registry that speaks the documented API for a few requests: schema 1, nonsense as 2, Protobuf as 3, and 404.
    /// Returns its address and the number of its requests.
    fn registry(wanted: &'static str) -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/api/", listener.local_addr().unwrap());
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        std::thread::spawn(move || {
            for stream in listener.incoming().take(16) {
                let mut stream = stream.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let head: Vec<String> =
                    lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
                let is_allowed = wanted.is_empty() || head.iter().any(|line| line.ends_with(wanted));
                let (status, body) = match head[0].split(' ').nth(1).unwrap() {
                    _ if !is_allowed => ("401 Unauthorized", "{}"),
                    "/api/schemas/ids/1" => {
                        ("200 OK", r#"{"schema": "{\"type\": \"record\", \"name\": \"A\", \"fields\": []}"}"#)
                    }
                    "/api/schemas/ids/2" => ("200 OK", r#"{"schema": "{\"type\": \"what\"}"}"#),
                    "/api/schemas/ids/3" => ("200 OK", r#"{"schema": "x", "schemaType": "PROTOBUF"}"#),
                    "/api/schemas/ids/4" => ("200 OK", "<html>"),
                    _ => ("404 Not Found", r#"{"error_code": 40403, "message": "Schema not found"}"#),
                };
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        (address, count)
    }

    #[test]
    fn each_schema_is_requested_once() {
        let (address, count) = registry("");
        let registry = Registry::at(&address, None);
        assert_eq!(registry.schema(1).unwrap().name(), "A");
        assert_eq!(registry.schema(1).unwrap().name(), "A");
        assert!(Arc::ptr_eq(&registry, &Registry::at(address.trim_end_matches('/'), None)));
        assert_eq!(count.load(Ordering::SeqCst), 1);
        for (id, fault) in [
            (2, SchemaFault::Invalid),
            (3, SchemaFault::Invalid),
            (4, SchemaFault::Invalid),
            (5, SchemaFault::Unknown),
        ] {
            assert_eq!(registry.schema(id).unwrap_err(), fault, "{id}");
            assert_eq!(registry.schema(id).unwrap_err(), fault, "{id}");
        }
        assert_eq!(count.load(Ordering::SeqCst), 5);
        assert_eq!(registry.state().reported, 4);
        (6..=12).for_each(|id| assert_eq!(registry.schema(id).unwrap_err(), SchemaFault::Unknown, "{id}"));
        assert_eq!(registry.state().reported, REPORTED);
        registry.state().paused = Some((SchemaFault::Paused, Instant::now() + PAUSE));
        assert_eq!(registry.schema(13).unwrap_err(), SchemaFault::Paused);
        assert_eq!(registry.schema(1).unwrap().name(), "A");
        assert_eq!(count.load(Ordering::SeqCst), 12);
    }

    #[test]
    fn requests_without_a_schema_are_limited() {
        let (mut state, begin) = (State::default(), Instant::now());
        let half = LIMIT / 2;
        assert!(!state.add_futile(begin, begin + half));
        assert!(state.add_futile(begin + half, begin + half * 2));
        assert!(!state.add_futile(begin + PAUSE, begin + PAUSE + half), "another pause");
    }

    #[test]
    fn credentials_are_sent_or_missed() {
        let name = |password_env: &str| User { name: "u".to_owned(), password_env: password_env.to_owned() };
        let (address, count) = registry("Basic dTo=");
        // No variable of a usual environment has an empty value; its name is that of no variable here.
        let unset = Registry::at(&address, Some(name("RONDEL_TEST_REGISTRY_UNSET")));
        assert_eq!(unset.schema(1).unwrap_err(), SchemaFault::Refused);
        assert_eq!(count.load(Ordering::SeqCst), 0);
        let denied = Registry::at(&address, None);
        assert_eq!(denied.schema(1).unwrap_err(), SchemaFault::Refused);
        assert_eq!(base64(b"user:pass"), "dXNlcjpwYXNz");
        assert_eq!((base64(b"u:"), base64(b"u")), ("dTo=".to_owned(), "dQ==".to_owned()));
    }

    #[test]
    fn silent_registry_gets_no_request_for_each_message() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let registry = Registry::at(&format!("http://{}", listener.local_addr().unwrap()), None);
        let begin = Instant::now();
        assert!(!registry.is_awaited());
        assert_eq!(registry.schema(1).unwrap_err(), SchemaFault::Unanswered);
        assert!(registry.is_awaited(), "messages behind it are received");
        let first = begin.elapsed();
        assert!(first >= LIMIT / 2 && first < LIMIT * 3, "{first:?}");
        assert_eq!(registry.schema(2).unwrap_err(), SchemaFault::Unanswered);
        assert!(begin.elapsed() < first + LIMIT / 2);
    }

    #[test]
    fn decoding_requests_nothing_once_schemas_are_requested_ahead() {
        let (address, count) = registry("");
        let registry = Registry::at(&address, None);
        assert_eq!(registry.request(5).unwrap_err(), SchemaFault::Unknown);
        assert_eq!(registry.schema(5).unwrap_err(), SchemaFault::Unknown);
        // The pause after the failure is over while the message waits for the lock.
        registry.state().failed.values_mut().for_each(|(_, until)| *until = Instant::now());
        assert_eq!(registry.schema(5).unwrap_err(), SchemaFault::Unknown);
        registry.state().failed.clear();
        assert_eq!(registry.schema(5).unwrap_err(), SchemaFault::Paused);
        assert_eq!(registry.schema(1).unwrap_err(), SchemaFault::Paused);
        assert_eq!(count.load(Ordering::SeqCst), 1);
        assert_eq!(registry.request(1).unwrap().name(), "A");
        assert_eq!(registry.schema(1).unwrap().name(), "A");
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn decoding_does_not_wait_for_a_slow_registry() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let registry = Registry::at(&format!("http://{}", listener.local_addr().unwrap()), None);
        let schema = |fault: SchemaFault| {
            let begin = Instant::now();
            assert_eq!(registry.schema(1).unwrap_err(), fault);
            assert!(begin.elapsed() < LIMIT / 3, "{:?}", begin.elapsed());
        };
        std::thread::scope(|scope| {
            let requesting = scope.spawn(|| registry.request(1));
            let begin = Instant::now();
            while !registry.is_awaited() {
                assert!(begin.elapsed() < LIMIT / 3, "no request begins");
                std::thread::sleep(Duration::from_millis(1));
            }
            schema(SchemaFault::Paused);
            assert_eq!(requesting.join().unwrap().unwrap_err(), SchemaFault::Unanswered);
        });
        registry.state().failed.values_mut().for_each(|(_, until)| *until = Instant::now());
        registry.state().paused = None;
        schema(SchemaFault::Unanswered);
    }

    #[test]
    fn addresses_are_checked() {
        assert!(
            check_url("http://127.0.0.1:8081").is_ok()
                && check_url("http://registry/apis/ccompat/v7").is_ok()
        );
        for url in ["", "registry:8081", "http://", "http://a b", "http://a?b", "https://a", "http://u:p@a"] {
            assert!(check_url(url).is_err(), "{url}");
        }
    }
}
