//! A client of HTTP/1.1 for the API of a page: requests on one connection, and the stream of events.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write as _};
use std::net::{Ipv6Addr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use serde_json::Value;

/// Time limit for a connection, and for each piece of an answer.
pub const ANSWER: Duration = Duration::from_secs(3);
/// The same for events: a server sends a comment every 5 seconds.
const EVENTS: Duration = Duration::from_secs(12);
/// Maximum size of the head of an answer in bytes.
const LONGEST_HEAD: u64 = 16 << 10;
/// Maximum number of headers.
const HEADERS: usize = 64;
/// Maximum size of the body of an answer in bytes.
const LONGEST: u64 = 64 << 20;
/// Longest line of events that matters; data are loaded by requests.
const LINE: u64 = 256;

/// Host and port of a page, as in `127.0.0.1:8080`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(String);

/// Reason why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server does not answer, or not as a page does.
    Silent(String),
    /// The server refuses: the status of HTTP, and its sentence.
    Refused(u16, String),
}

/// A client with a connection, which it opens again if the server has closed it.
#[derive(Debug)]
pub struct Client {
    address: Address,
    token: Option<String>,
    open: Option<BufReader<TcpStream>>,
}

/// The events of a page, as long as the connection lasts.
#[derive(Debug)]
pub struct Events {
    lines: BufReader<Body<BufReader<TcpStream>>>,
}

impl Address {
    /// The text in messages, and in the header `Host`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reads an address, also one of a browser such as `http://127.0.0.1:8080/`.
///
/// # Errors
/// The requirement on the value.
pub fn page_place(text: &str) -> Result<Address, String> {
    let wrong = || "must be a host and a port, such as 127.0.0.1:8080".to_owned();
    if text.starts_with("https://") {
        return Err("a page is served without TLS: give the address of a tunnel, such as `ssh -L 8080:127.0.0.1:8080 HOST` \
                    opens"
            .to_owned());
    }
    let text = text.strip_prefix("http://").unwrap_or(text);
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
        true => Ok(Address(text.to_owned())),
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
fn silent(error: &io::Error) -> Failure {
    Failure::Silent(match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("no answer within {} s", ANSWER.as_secs()),
        ErrorKind::ConnectionRefused => "nothing listens there".to_owned(),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            "the connection was closed".to_owned()
        }
        _ => error.to_string(),
    })
}

impl Client {
    /// Creates a client. It connects with the first request.
    pub fn new(address: Address, token: Option<String>) -> Client {
        Client { address, token, open: None }
    }

    /// Requests a path below `/api/v1`, with its parameters.
    ///
    /// # Errors
    /// The server does not answer in time, or refuses.
    pub fn get(&mut self, target: &str) -> Result<Value, Failure> {
        // The server closes a connection that is not used: then a new one is opened.
        let kept = self.open.take().and_then(|stream| self.exchange(stream, target).ok());
        let (head, body) = match kept {
            Some(answer) => answer,
            None => self
                .connect(ANSWER)
                .and_then(|stream| self.exchange(stream, target))
                .map_err(|error| silent(&error))?,
        };
        let value = serde_json::from_slice::<Value>(&body).ok();
        match (head.status, value) {
            (200, Some(value)) => Ok(value),
            (200, None) => Err(Failure::Silent("the server is not that of a page".to_owned())),
            (status, value) => Err(refused(status, value)),
        }
    }

    /// Opens the stream of events.
    ///
    /// # Errors
    /// The server does not answer in time, or refuses.
    pub fn events(&self) -> Result<Events, Failure> {
        let mut stream = self.connect(EVENTS).map_err(|error| silent(&error))?;
        let head = self
            .send(&mut stream, "/api/v1/events")
            .and_then(|()| read_head(&mut stream))
            .map_err(|error| silent(&error))?;
        let mut body = Body { stream, framing: head.framing };
        if head.status == 200 {
            return Ok(Events { lines: BufReader::new(body) });
        }
        let mut text = Vec::new();
        let read = body.by_ref().take(LONGEST_HEAD).read_to_end(&mut text);
        Err(refused(head.status, read.ok().and_then(|_| serde_json::from_slice(&text).ok())))
    }

    fn connect(&self, limit: Duration) -> io::Result<BufReader<TcpStream>> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the host is unknown");
        for address in self.address.0.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, ANSWER) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(limit))?;
                    stream.set_write_timeout(Some(ANSWER))?;
                    // A request is one piece: nothing is to be collected.
                    let _ = stream.set_nodelay(true);
                    return Ok(BufReader::new(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn send(&self, stream: &mut BufReader<TcpStream>, target: &str) -> io::Result<()> {
        let mut text = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n", self.address.0);
        if let Some(token) = &self.token {
            text += &format!("Authorization: Bearer {token}\r\n");
        }
        text += "\r\n";
        stream.get_mut().write_all(text.as_bytes())
    }

    /// Sends a request and reads the answer. Keeps the connection if the server does.
    fn exchange(&mut self, mut stream: BufReader<TcpStream>, target: &str) -> io::Result<(Head, Vec<u8>)> {
        self.send(&mut stream, target)?;
        let head = read_head(&mut stream)?;
        let mut content = Vec::new();
        let body = Body { stream: &mut stream, framing: head.framing };
        body.take(LONGEST + 1).read_to_end(&mut content)?;
        if content.len() as u64 > LONGEST {
            return Err(io::Error::new(ErrorKind::InvalidData, "the answer is too long"));
        }
        if head.is_kept && head.framing != Framing::Close {
            self.open = Some(stream);
        }
        Ok((head, content))
    }
}

/// A refusal of the server, with its sentence if there is one.
fn refused(status: u16, value: Option<Value>) -> Failure {
    let sentence = value.as_ref().and_then(|value| value["error"].as_str()).map(str::to_owned);
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

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    framing: Framing,
    /// Whether the connection stays open.
    is_kept: bool,
}

/// End of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// Bytes that are left.
    Length(u64),
    /// Bytes that are left of a chunk.
    Chunked(u64),
    /// The end of the connection.
    Close,
    /// The end is reached.
    Over,
}

fn invalid() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the answer is not one of HTTP")
}

/// Reads a line with its line break.
fn read_line(stream: &mut impl BufRead, limit: u64, line: &mut Vec<u8>) -> io::Result<()> {
    match Read::take(&mut *stream, limit).read_until(b'\n', line)? {
        0 if limit > 0 => Err(ErrorKind::UnexpectedEof.into()),
        1.. if line.last() == Some(&b'\n') => Ok(()),
        _ => Err(invalid()),
    }
}

fn read_head(stream: &mut impl BufRead) -> io::Result<Head> {
    let mut text = Vec::new();
    loop {
        let before = text.len();
        read_line(stream, LONGEST_HEAD.saturating_sub(before as u64), &mut text)?;
        if matches!(text.get(before..), Some(b"\r\n" | b"\n")) {
            break;
        }
    }
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    if !response.parse(&text).is_ok_and(|parsed| parsed.is_complete()) {
        return Err(invalid());
    }
    let status = response.code.ok_or_else(invalid)?;
    let (mut framing, mut is_kept) = (Framing::Close, response.version == Some(1));
    for header in response.headers.iter() {
        let value = String::from_utf8_lossy(header.value).trim().to_ascii_lowercase();
        match header.name.to_ascii_lowercase().as_str() {
            "transfer-encoding" if value == "chunked" => framing = Framing::Chunked(0),
            "transfer-encoding" => return Err(invalid()),
            "content-length" if framing == Framing::Close => {
                framing = Framing::Length(value.parse().map_err(|_| invalid())?);
            }
            "connection" if value == "close" => is_kept = false,
            _ => {}
        }
    }
    Ok(Head { status, framing, is_kept })
}

/// The body of an answer.
#[derive(Debug)]
struct Body<R> {
    stream: R,
    framing: Framing,
}

impl<R: BufRead> Body<R> {
    /// Reads the size of the next chunk.
    fn next_chunk(&mut self) -> io::Result<u64> {
        let mut line = Vec::new();
        read_line(&mut self.stream, LINE, &mut line)?;
        match httparse::parse_chunk_size(&line) {
            Ok(httparse::Status::Complete((_, size))) => Ok(size),
            _ => Err(invalid()),
        }
    }

    /// Reads the lines behind the last chunk.
    fn finish(&mut self) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            read_line(&mut self.stream, LONGEST_HEAD, &mut line)?;
            if matches!(line.as_slice(), b"\r\n" | b"\n") {
                return Ok(());
            }
        }
    }
}

impl<R: BufRead> Read for Body<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let left = match self.framing {
            Framing::Over | Framing::Length(0) => return Ok(0),
            Framing::Close => return self.stream.read(buffer),
            Framing::Length(left) => left,
            Framing::Chunked(0) => match self.next_chunk()? {
                0 => {
                    self.finish()?;
                    self.framing = Framing::Over;
                    return Ok(0);
                }
                size => size,
            },
            Framing::Chunked(left) => left,
        };
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let count = self.stream.read(buffer.get_mut(..most).unwrap_or_default())?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let left = left - count as u64;
        self.framing = match self.framing {
            Framing::Length(_) => Framing::Length(left),
            _ => Framing::Chunked(left),
        };
        if self.framing == Framing::Chunked(0) {
            read_line(&mut self.stream, 2, &mut Vec::new())?;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> io::Result<(Head, String)> {
        let mut stream = text.as_bytes();
        let head = read_head(&mut stream)?;
        let mut content = String::new();
        Body { stream: &mut stream, framing: head.framing }.read_to_string(&mut content)?;
        Ok((head, content))
    }

    #[test]
    fn bodies_end_as_their_heads_state() {
        for (text, expected, is_kept) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}x", "{}", true),
            ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "", true),
            ("HTTP/1.1 200 OK\r\nConnection: Close\r\n\r\n{}", "{}", false),
            ("HTTP/1.0 200 OK\r\n\r\nabc", "abc", false),
            (
                "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nab\r\n1\r\nc\r\n0\r\n\r\nx",
                "abc",
                true,
            ),
            ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n0\r\nTrailer: a\r\n\r\n", "", true),
        ] {
            let (head, content) = answer(text).unwrap();
            assert_eq!((head.status, content.as_str(), head.is_kept), (200, expected, is_kept), "{text}");
        }
    }

    #[test]
    fn broken_answers_are_errors() {
        let long = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(20_000));
        for text in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
            &long,
        ] {
            assert!(answer(text).is_err(), "{text:.60}");
        }
    }

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for (text, expected) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://monitor.example:80/", "monitor.example:80"),
            ("http://localhost:8080/#/property/p", "localhost:8080"),
            ("[::1]:8080", "[::1]:8080"),
        ] {
            assert_eq!(page_place(text).map(|address| address.0), Ok(expected.to_owned()), "{text}");
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
        assert!(page_place("https://a:443").unwrap_err().contains("tunnel"));
        assert!(page_place("http://a:80/#token=secret").unwrap_err().contains("--token-file"));
    }

    #[test]
    fn names_are_encoded() {
        assert_eq!(encoded("a/b c?ä%"), "a%2Fb%20c%3F%C3%A4%25");
    }
}
