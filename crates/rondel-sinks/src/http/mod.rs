//! Requests over HTTP/1.1 to one server, on one connection that is kept.

mod answer;
mod date;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rondel_runtime::{Clock, SystemClock};
use ureq::Agent;
use ureq::http::{HeaderName, HeaderValue, Method, Request, Uri};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector as _, TcpConnector};

pub(crate) use answer::Answer;

use crate::connector::TlsConnector;
use crate::shared::ticks;
use crate::sink::Failure;
use crate::tls::TlsOptions;

/// Largest body of an answer that is read.
const BODY: u64 = 64 << 10;
/// Longest pause that a server can request.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Age of an idle connection that is not used again: many servers close them after a minute or two.
const IDLE: Duration = Duration::from_secs(50);

/// Client of one server.
pub(crate) struct Client {
    url: Uri,
    /// Scheme, host and port: paths, queries and users may be secrets.
    place: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    agents: Arc<Agents>,
    clock: Arc<dyn Clock>,
    /// Ticks before which the server wants no request, and the sentence that says so.
    pause: Option<(i64, String)>,
}

/// The agent, which another thread may shut down and replace.
struct Agents {
    present: Mutex<Agent>,
    is_interrupted: AtomicBool,
    tls: Option<Arc<rustls::ClientConfig>>,
}

/// A request without what all requests have.
pub(crate) struct Call<'a> {
    pub(crate) content_type: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a [u8],
}

impl Client {
    /// Creates a client. Does not connect. `path` is added to the address.
    pub(crate) fn new(
        url: &str,
        path: &str,
        headers: &[(String, String)],
        tls: Option<&TlsOptions>,
    ) -> Result<Client, String> {
        let (url, place) = address(url, path)?;
        let tls = if url.scheme_str() == Some("https") {
            Some(Arc::new(tls.unwrap_or(&TlsOptions::default()).client_config()?))
        } else if tls.is_some() {
            return Err(format!("{place} is an address without TLS; begin it with https:// or remove `tls`"));
        } else {
            None
        };
        let headers =
            headers.iter().map(|(name, value)| header(name, value)).collect::<Result<_, String>>()?;
        let present = Mutex::new(agent(tls.clone()));
        let agents = Arc::new(Agents { present, is_interrupted: AtomicBool::new(false), tls });
        Ok(Client { url, place, headers, agents, clock: Arc::new(SystemClock), pause: None })
    }

    /// Scheme, host and port.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Time of day in nanoseconds since the Unix epoch.
    pub(crate) fn now(&self) -> i64 {
        self.clock.time_of_day().as_nanos()
    }

    /// Path of the address.
    #[cfg(feature = "webhook")]
    pub(crate) fn path(&self) -> &str {
        self.url.path()
    }

    /// Ticks of the clock.
    #[cfg(feature = "webhook")]
    pub(crate) fn ticks(&self) -> i64 {
        self.clock.ticks()
    }

    /// Sends a request and reads the answer, at most [`BODY`] bytes of it.
    ///
    /// # Errors
    /// No answer came. What an answer means is up to the caller.
    pub(crate) fn post(&mut self, call: &Call<'_>, limit: Duration) -> Result<Answer, Failure> {
        let mut request = Request::builder().method(Method::POST).uri(self.url.clone());
        request = request.header("content-type", call.content_type);
        for (name, value) in call.headers {
            request = request.header(*name, *value);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(call.body).map_err(|error| self.unsendable(&error))?;
        self.answer(limit, BODY, |agent, limit| {
            let configured = agent.configure_request(request).timeout_global(Some(limit)).build();
            agent.run(configured)
        })
    }

    /// Requests a path with a query instead of the address of the client, and reads at most `largest` bytes of the answer.
    #[cfg(feature = "webhook")]
    pub(crate) fn get(&mut self, path: &str, limit: Duration, largest: u64) -> Result<Answer, Failure> {
        let (scheme, authority) = (self.url.scheme_str().unwrap_or_default(), self.url.authority());
        let authority = authority.map_or("", |authority| authority.as_str());
        let mut request = Request::builder().method(Method::GET).uri(format!("{scheme}://{authority}{path}"));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(()).map_err(|error| self.unsendable(&error))?;
        self.answer(limit, largest, |agent, limit| {
            let configured = agent.configure_request(request).timeout_global(Some(limit)).build();
            agent.run(configured)
        })
    }

    /// Sends a request unless the server wants none now, or the sink was interrupted.
    fn answer(
        &mut self,
        limit: Duration,
        largest: u64,
        send: impl FnOnce(Agent, Duration) -> Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Answer, Failure> {
        if let Some((until, reason)) = &self.pause {
            if self.clock.ticks() < *until {
                return Err(Failure::unavailable(reason.clone()));
            }
            self.pause = None;
        }
        if limit.is_zero() {
            return Err(Failure::unavailable(format!("{} is too slow for the time limit", self.place)));
        }
        if self.agents.is_interrupted.swap(false, Ordering::SeqCst) {
            return Err(Failure::unavailable(format!("the request to {} was interrupted", self.place)));
        }
        let began = Instant::now();
        let sent = send(self.agents.present(), limit)
            .map(|response| Answer::read(response, largest, limit.saturating_sub(began.elapsed())));
        let mut answer = sent.map_err(|error| {
            self.agents.is_interrupted.store(false, Ordering::SeqCst);
            self.unanswered(&error)
        })?;
        if let Some(pause) = answer.set_pause(self.now(), LONGEST_PAUSE) {
            let until = self.clock.ticks().saturating_add(ticks(pause));
            self.pause = Some((until, answer.described(&self.place)));
        }
        Ok(answer)
    }

    fn unsendable(&self, error: &ureq::http::Error) -> Failure {
        Failure::rejected(format!("cannot send a request to {}: {error}", self.place))
    }

    fn unanswered(&self, error: &ureq::Error) -> Failure {
        let place = &self.place;
        Failure::unavailable(match error {
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                format!("cannot connect to {place} within the time limit; check the address and the network")
            }
            ureq::Error::Timeout(_) => format!("{place} does not answer within the time limit"),
            ureq::Error::HostNotFound => format!("cannot find {place}; check the name of the host"),
            ureq::Error::Io(error) => format!("cannot reach {place}: {error}"),
            error => format!("cannot use the answer of {place}: {error}"),
        })
    }

    /// Returns a function that ends a running request from another thread.
    pub(crate) fn interrupter(&self) -> Box<dyn Fn() + Send + Sync> {
        let agents = Arc::clone(&self.agents);
        Box::new(move || agents.interrupt())
    }
}

impl Agents {
    fn present(&self) -> Agent {
        self.present.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn interrupt(&self) {
        self.is_interrupted.store(true, Ordering::SeqCst);
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *present, agent(self.tls.clone())).shutdown();
    }
}

/// Creates an agent, which keeps one connection.
fn agent(tls: Option<Arc<rustls::ClientConfig>>) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .user_agent(concat!("rondel/", env!("CARGO_PKG_VERSION")))
        .max_idle_connections(1)
        .max_idle_connections_per_host(1)
        .max_idle_age(IDLE)
        .max_response_header_size(16 << 10)
        .input_buffer_size(16 << 10)
        .output_buffer_size(32 << 10)
        .build();
    let connector = ().chain(TcpConnector::default()).chain(TlsConnector::new(tls));
    Agent::with_parts(config, connector, DefaultResolver::default())
}

/// Parses an address. Returns it with `path` added, and its scheme, host and port.
fn address(url: &str, path: &str) -> Result<(Uri, String), String> {
    let example = "https://host.example/hook";
    let whole = if path.is_empty() { url.to_owned() } else { format!("{}{path}", url.trim_end_matches('/')) };
    // An address is not repeated in messages: it may contain a password.
    let parsed: Uri = whole
        .parse()
        .map_err(|error| format!("cannot parse the address of a server: {error}; write it like {example}"))?;
    let scheme = parsed.scheme_str().unwrap_or_default();
    let host = parsed.host().unwrap_or_default();
    if !matches!(scheme, "http" | "https") || host.is_empty() {
        return Err(format!("the address of a server begins with http:// or https://, such as {example}"));
    }
    if parsed.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(format!(
            "the address of {host} contains a user; pass it in a header instead, such as Authorization"
        ));
    }
    if !path.is_empty() && parsed.query().is_some() {
        return Err(format!(
            "the address of {host} contains a query; {path} is added to it, so remove the query"
        ));
    }
    if !path.is_empty() && url.trim_end_matches('/').ends_with(path) {
        return Err(format!("the address of {host} ends with {path}, which is added to it; leave it out"));
    }
    let port = parsed.port().map(|port| format!(":{port}")).unwrap_or_default();
    let place = format!("{scheme}://{host}{port}");
    Ok((parsed, place))
}

/// Parses a configured header.
fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let parsed: HeaderName =
        name.parse().map_err(|_| format!("`{name}` is not a name of a header; use letters, digits and -"))?;
    let own = ["content-type", "content-length", "host", "connection", "transfer-encoding", "expect"];
    let lower = parsed.as_str();
    if own.contains(&lower) || lower.starts_with("ce-") || lower.starts_with("webhook-") {
        return Err(format!("the header `{name}` is written by Rondel; remove it"));
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        format!("the value of the header `{name}` contains a line break or another control character")
    })?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read as _, Write as _};

    use rondel_event::Timestamp;
    use rondel_runtime::ManualClock;

    use super::*;

    #[test]
    fn addresses_are_checked_and_secrets_are_not_shown() {
        let (uri, place) = address("https://host.example:8443/hook/T0/secret?token=x", "").unwrap();
        assert_eq!((uri.path(), place.as_str()), ("/hook/T0/secret", "https://host.example:8443"));
        let (uri, place) = address("http://[::1]:4318/", "/v1/logs").unwrap();
        assert_eq!(
            (uri.to_string().as_str(), place.as_str()),
            ("http://[::1]:4318/v1/logs", "http://[::1]:4318")
        );
        let wrong = [
            ("host.example", "begins with http://"),
            ("ftp://host.example", "begins with http://"),
            ("http://", "cannot parse"),
            ("http://us er@host", "cannot parse"),
            ("https://user:secret@host.example/", "Authorization"),
            ("", "cannot parse"),
        ];
        for (url, reason) in wrong {
            let error = address(url, "").unwrap_err();
            assert!(error.contains(reason) && !error.contains("secret"), "{error}");
        }
        assert!(address("http://host.example/?a=b", "/v1/logs").unwrap_err().contains("remove the query"));
        assert!(address("http://host.example/v1/logs/", "/v1/logs").unwrap_err().contains("leave it out"));
    }

    #[test]
    fn pause_that_a_server_requests_is_kept() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let clock = Arc::new(ManualClock::default());
        let mut client =
            Client { clock: Arc::clone(&clock) as _, ..Client::new(&url, "", &[], None).unwrap() };
        let call = Call { content_type: "text/plain", headers: &[], body: b"" };
        let limit = Duration::from_secs(30);
        let server = std::thread::spawn(move || {
            for pause in ["7", "9999999", "soon"] {
                let (mut stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(limit)).unwrap();
                let _ = stream.read(&mut [0; 1000]).unwrap();
                let head = "HTTP/1.1 503 Full\r\nconnection: close\r\ncontent-length: 0\r\nretry-after: ";
                stream.write_all(format!("{head}{pause}\r\n\r\n").as_bytes()).unwrap();
            }
        });
        let second = 1_000_000_000;
        let cut = "; nothing is sent for 300 s, the longest pause (it requests 9999999 s)";
        for (time, pause, note) in [(0, 7, "; nothing is sent for 7 s"), (7, 300, cut), (307, 0, "")] {
            clock.set(Timestamp::from_nanos(time * second));
            let answer = client.post(&call, limit).unwrap();
            let expected = format!("{url} answers 503 Service Unavailable{note}");
            assert_eq!((answer.status(), answer.described(&url)), (503, expected.clone()));
            clock.set(Timestamp::from_nanos((time + pause) * second - 1));
            if pause > 0 {
                assert_eq!(client.post(&call, limit).unwrap_err().message, expected);
            }
        }
        server.join().unwrap();
    }

    #[test]
    fn headers_are_checked() {
        for (name, value, reason) in [
            ("a b", "x", "not a name"),
            ("ce-id", "x", "written by Rondel"),
            ("Content-Type", "x", "written by Rondel"),
            ("Webhook-Signature", "x", "written by Rondel"),
            ("x", "a\r\nb", "line break"),
        ] {
            let error = header(name, value).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        assert!(header("Authorization", "Bearer x").is_ok());
        let tls = TlsOptions::default();
        let error = Client::new("http://host.example", "", &[], Some(&tls)).err().unwrap();
        assert!(error.contains("https://"), "{error}");
    }
}
