//! The client of `rondel top`: requests to the API of a page, and the stream of its events.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _};
use std::net::Ipv6Addr;
use std::time::Duration;

use rondel_sinks::connector::TlsConnector;
use serde_json::Value;
use ureq::http::Response;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector as _, TcpConnector};
use ureq::{Agent, Body, BodyReader, Error, Timeout};

/// Time limit for a connection, and for each piece of an answer.
pub const ANSWER: Duration = Duration::from_secs(3);
/// The same for events: a server sends a comment every 5 seconds.
const EVENTS: Duration = Duration::from_secs(12);
/// Maximum size of the body of an answer in bytes.
const LONGEST: u64 = 64 << 20;
/// Longest line of events that matters; data are loaded by requests.
const LINE: u64 = 256;

/// An answer that is not one of HTTP, as that of a server with TLS to a client without.
const STRANGE: &str = "the server is not that of a page";

/// Host and port of a page, as in `127.0.0.1:8080`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    place: String,
    /// Whether it is one with https.
    is_encrypted: bool,
}

/// Reason why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server does not answer, or not as a page does.
    Silent(String),
    /// The server refuses: the status of HTTP, and its sentence.
    Refused(u16, String),
}

/// A client, which keeps its connection between requests.
#[derive(Debug)]
pub struct Client {
    address: Address,
    token: Option<String>,
    agent: Agent,
}

/// The events of a page, as long as the connection lasts.
pub struct Events {
    lines: BufReader<BodyReader<'static>>,
}

impl Address {
    /// The text in messages, and in the header `Host`.
    pub fn as_str(&self) -> &str {
        &self.place
    }

    /// Whether the page is served with TLS.
    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }
}

/// Reads an address, also one of a browser such as `http://127.0.0.1:8080/`.
///
/// # Errors
/// The requirement on the value.
pub fn page_place(text: &str) -> Result<Address, String> {
    let wrong = || "must be a host and a port, such as 127.0.0.1:8080".to_owned();
    let (text, is_encrypted) = match text.strip_prefix("https://") {
        Some(text) => (text, true),
        None => (text.strip_prefix("http://").unwrap_or(text), false),
    };
    let (text, rest) = text.find(['/', '#', '?']).map_or((text, ""), |at| text.split_at(at));
    if rest.contains("token=") {
        return Err("a token on the command line is seen by others: use --token-file".to_owned());
    }
    if !matches!(rest, "" | "/" | "/#" | "#") && !rest.starts_with("/#/") {
        return Err(wrong());
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
        }
    };
    match is_host && port.parse::<u16>().is_ok_and(|port| port > 0) {
        true => Ok(Address { place: text.to_owned(), is_encrypted }),
        false => Err(wrong()),
    }
}

/// Encodes a text for a path or a parameter.
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            other => out += &format!("%{other:02X}"),
        }
    }
    out
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Silent(why) => f.write_str(why),
            Failure::Refused(_, why) => f.write_str(why),
        }
    }
}

/// An error of the connection as a sentence.
fn silent(error: &Error) -> Failure {
    Failure::Silent(match error {
        Error::Timeout(Timeout::Resolve) | Error::HostNotFound => "the host is unknown".to_owned(),
        Error::Timeout(_) => format!("no answer within {} s", ANSWER.as_secs()),
        Error::Io(error) => match error.kind() {
            ErrorKind::ConnectionRefused => "nothing listens there".to_owned(),
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                "the connection was closed".to_owned()
            }
            _ => error.to_string(),
        },
        Error::Tls(why) => (*why).to_owned(),
        Error::BodyExceedsLimit(_) => "the answer is too long".to_owned(),
        _ => STRANGE.to_owned(),
    })
}

impl Client {
    /// Creates a client. It connects with the first request.
    pub fn new(address: Address, token: Option<String>, tls: TlsConnector) -> Client {
        // Neither a proxy of the environment nor another server: the token is for this one.
        let config = Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .timeout_resolve(Some(ANSWER))
            .timeout_connect(Some(ANSWER))
            .timeout_per_write(Some(ANSWER))
            .timeout_per_read(Some(ANSWER))
            .build();
        let connector = ().chain(TcpConnector::default()).chain(tls);
        Client { address, token, agent: Agent::with_parts(config, connector, DefaultResolver::default()) }
    }

    /// Requests a path below `/api/v1`, with its parameters.
    ///
    /// # Errors
    /// The server does not answer in time, or refuses.
    pub fn get(&mut self, target: &str) -> Result<Value, Failure> {
        let mut answer = self.ask(target, ANSWER)?;
        let text = answer.body_mut().with_config().limit(LONGEST).read_to_vec();
        let value = serde_json::from_slice::<Value>(&text.map_err(|error| silent(&error))?).ok();
        match (answer.status().as_u16(), value) {
            (200, Some(value)) => Ok(value),
            (200, None) => Err(Failure::Silent("the server is not that of a page".to_owned())),
            (status, value) => Err(refused(status, value.as_ref())),
        }
    }

    /// Opens the stream of events.
    ///
    /// # Errors
    /// The server does not answer in time, or refuses.
    pub fn events(&self) -> Result<Events, Failure> {
        let mut answer = self.ask("/api/v1/events", EVENTS)?;
        let status = answer.status().as_u16();
        if status == 200 {
            return Ok(Events { lines: BufReader::new(answer.into_body().into_reader()) });
        }
        let text = answer.body_mut().with_config().limit(LONGEST).read_to_vec().unwrap_or_default();
        Err(refused(status, serde_json::from_slice(&text).ok().as_ref()))
    }

    /// Requests a path. Each piece of the answer may take so long.
    fn ask(&self, target: &str, limit: Duration) -> Result<Response<Body>, Failure> {
        let scheme = if self.address.is_encrypted { "https" } else { "http" };
        let mut request = self.agent.get(format!("{scheme}://{}{target}", self.address.place));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        request.config().timeout_per_read(Some(limit)).build().call().map_err(|error| match silent(&error) {
            Failure::Silent(why) if why == STRANGE && !self.address.is_encrypted => {
                Failure::Silent(format!("{STRANGE}; if it has TLS, its address begins with https://"))
            }
            failure => failure,
        })
    }
}

/// A refusal of the server, with its sentence if there is one.
fn refused(status: u16, value: Option<&Value>) -> Failure {
    let sentence = value.and_then(|value| value["error"].as_str()).map(str::to_owned);
    Failure::Refused(status, sentence.unwrap_or_else(|| format!("the server answers with status {status}")))
}

impl Events {
    /// The name of the next event; `None` at the end of the stream.
    ///
    /// # Errors
    /// The connection is broken, or nothing has arrived in time.
    pub fn next_name(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if self.lines.by_ref().take(LINE).read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            if line.last() != Some(&b'\n') {
                self.lines.skip_until(b'\n')?;
                continue;
            }
            if let Some(name) = line.strip_prefix(b"event:") {
                return Ok(Some(String::from_utf8_lossy(name).trim().to_owned()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::*;

    /// The address of a listener.
    fn address(listener: &TcpListener) -> Address {
        Address { place: listener.local_addr().unwrap().to_string(), is_encrypted: false }
    }

    /// Answers one request with a text, and closes the connection.
    fn server(answer: &str) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = address(&listener);
        let answer = answer.to_owned();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while request.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            // The client may refuse the answer before its end.
            let _ = stream.write_all(answer.as_bytes());
        });
        Client::new(address, Some("0123456789abcdef".to_owned()), TlsConnector::new(None))
    }

    #[test]
    fn answers_are_values_or_refusals() {
        let refused = |status, why: &str| Err(Failure::Refused(status, why.to_owned()));
        for (text, expected) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", Ok(serde_json::json!({}))),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
                Ok(serde_json::json!({})),
            ),
            (
                "HTTP/1.1 404 A\r\nContent-Length: 15\r\n\r\n{\"error\":\"none\"}",
                refused(404, "the server answers with status 404"),
            ),
            ("HTTP/1.1 404 A\r\nContent-Length: 16\r\n\r\n{\"error\":\"none\"}", refused(404, "none")),
            (
                "HTTP/1.1 302 A\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
                refused(302, "the server answers with status 302"),
            ),
        ] {
            assert_eq!(server(text).get("/api/v1/state"), expected, "{text}");
        }
    }

    #[test]
    fn broken_answers_are_errors() {
        let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(200_000));
        for text in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
            &long,
        ] {
            let answer = server(text).get("/api/v1/state");
            assert!(matches!(answer, Err(Failure::Silent(_))), "{text:.60}: {answer:?}");
        }
    }

    #[test]
    fn events_are_read_by_name() {
        let long = "x".repeat(1_000);
        let text = format!(
            "HTTP/1.1 200 OK\r\n\r\n: c\n\nevent: hello\ndata: {long}\n\nevent: {long}\nevent:end\n\n"
        );
        let mut events = server(&text).events().unwrap();
        assert_eq!(events.next_name().unwrap().as_deref(), Some("hello"));
        assert_eq!(events.next_name().unwrap().as_deref(), Some("end"));
        assert_eq!(events.next_name().unwrap(), None);
    }

    #[test]
    fn nothing_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = address(&listener);
        drop(listener);
        let answer = Client::new(address, None, TlsConnector::new(None)).get("/");
        assert_eq!(answer, Err(Failure::Silent("nothing listens there".to_owned())));
    }

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for (text, expected) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://monitor.example:80/", "monitor.example:80"),
            ("http://localhost:8080/#/property/p", "localhost:8080"),
            ("https://monitor.example:8443/", "monitor.example:8443"),
            ("[::1]:8080", "[::1]:8080"),
        ] {
            let address = page_place(text);
            assert_eq!(address.as_ref().map(Address::as_str), Ok(expected), "{text}");
            assert_eq!(address.map(|address| address.is_encrypted), Ok(text.starts_with("https")), "{text}");
        }
        for wrong in [
            "",
            "localhost",
            "localhost:",
            "localhost:0",
            "localhost:65536",
            ":80",
            "::1:80",
            "[::1:80",
            "a b:80",
            "a\r\nX: y:80",
            "localhost:80/other",
        ] {
            assert!(page_place(wrong).is_err(), "{wrong}");
        }
        assert!(page_place("https://a").is_err());
        assert!(page_place("http://a:80/#token=secret").unwrap_err().contains("--token-file"));
    }

    #[test]
    fn names_are_encoded() {
        assert_eq!(encoded("a/b c?ä%"), "a%2Fb%20c%3F%C3%A4%25");
    }
}
