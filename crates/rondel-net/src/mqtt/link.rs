//! Byte stream between client and broker: TCP, optionally with TLS.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream, ToSocketAddrs as _};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use socket2::SockRef;

use super::packet::{self, ConnAck, Connect, Packet};
use super::{OpenError, Settings, Version};

/// Time limit of each step of connecting.
const CONNECT: Duration = Duration::from_secs(5);
/// Number of bytes read at once.
const PIECE: usize = 64 << 10;

/// Size in bytes above which an empty buffer is released: few messages are so large.
const KEPT: usize = 4 << 20;

/// An open connection. One thread reads; any thread may write.
#[derive(Debug)]
pub(super) struct Link {
    socket: TcpStream,
    tls: Option<Mutex<ClientConnection>>,
    /// Held from encrypting until sending, because TLS records must leave in the order of encryption.
    unsent: Mutex<Unsent>,
    /// Time after which a broker that makes no room counts as gone.
    patience: Duration,
}

/// Bytes that the broker had no room for.
#[derive(Debug, Default)]
struct Unsent {
    bytes: Vec<u8>,
    /// Number of bytes sent meanwhile.
    sent: usize,
    /// Time at which the broker last made room, while there are any.
    since: Option<Instant>,
}

impl Unsent {
    /// Sends waiting bytes without blocking. Returns whether none are left.
    fn send(&mut self, socket: &TcpStream) -> io::Result<bool> {
        while self.sent < self.bytes.len() {
            match send(socket, &self.bytes[self.sent..])? {
                0 => return Ok(false),
                count => {
                    self.sent += count;
                    self.since = Some(Instant::now());
                }
            }
        }
        (self.sent, self.since) = (0, None);
        if self.bytes.capacity() > KEPT {
            self.bytes = Vec::new()
        } else {
            self.bytes.clear()
        }
        Ok(true)
    }

    /// Appends bytes to the waiting ones.
    fn keep(&mut self, bytes: &[u8]) {
        if self.since.is_none() {
            self.since = Some(Instant::now());
        }
        self.bytes.extend_from_slice(bytes);
    }
}

/// Sends bytes without blocking and returns their number; 0 if there is no room.
fn send(socket: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match SockRef::from(socket).send_with_flags(bytes, nix::libc::MSG_DONTWAIT | nix::libc::MSG_NOSIGNAL)
        {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Ok(0) if !bytes.is_empty() => return Err(io::ErrorKind::WriteZero.into()),
            sent => return sent,
        }
    }
}

/// Bytes received and not processed yet.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// MQTT packets, after decryption.
    plain: Buffer,
    encrypted: Buffer,
}

impl Inbox {
    /// Returns the bytes that were not processed yet.
    pub(super) fn bytes(&self) -> &[u8] {
        self.plain.bytes()
    }

    /// Removes `count` processed bytes.
    pub(super) fn used(&mut self, count: usize) {
        self.plain.start += count;
    }
}

/// Byte buffer with reusable space behind its content, which is not zeroed for each read.
#[derive(Debug, Default)]
struct Buffer {
    data: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    fn bytes(&self) -> &[u8] {
        &self.data[self.start..self.end]
    }

    /// Returns at least `length` bytes of free space behind the content.
    fn room(&mut self, length: usize) -> &mut [u8] {
        if self.start == self.end && self.data.len() > KEPT {
            *self = Buffer::default();
        }
        if self.start > 0 {
            self.data.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.data.len() < self.end + length {
            self.data.resize((self.end + length).max(2 * self.end), 0);
        }
        &mut self.data[self.end..]
    }

    /// Reads the available bytes from a socket and returns their number.
    fn fill(&mut self, mut socket: &TcpStream) -> io::Result<usize> {
        let room = self.room(PIECE);
        loop {
            match socket.read(room) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
                Ok(count) => {
                    self.end += count;
                    return Ok(count);
                }
            }
        }
    }
}

/// Returns the TLS configuration and the expected server name, `None` without TLS.
pub(super) fn tls(
    settings: &Settings,
) -> Result<Option<(Arc<ClientConfig>, ServerName<'static>)>, OpenError> {
    let Some(tls) = settings.encrypted() else { return Ok(None) };
    let wrong = |what: String, reason: String| OpenError::Secret { what, reason };
    let mut roots = RootCertStore::empty();
    match &tls.ca {
        Some(path) => {
            let name = path.display().to_string();
            let failed = |e: &dyn std::fmt::Display| wrong(name.clone(), e.to_string());
            for certificate in CertificateDer::pem_slice_iter(&super::settings::read(path)?) {
                roots.add(certificate.map_err(|e| failed(&e))?).map_err(|e| failed(&e))?;
            }
            if roots.is_empty() {
                return Err(failed(&"the file contains no certificate"));
            }
        }
        None => {
            for certificate in rustls_native_certs::load_native_certs().certs {
                // A trust store may contain certificates that rustls does not accept; the others suffice.
                let _ = roots.add(certificate);
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| OpenError::Setting(e.to_string()))?
        .with_root_certificates(roots);
    let config = match (&tls.certificate, &tls.key) {
        (None, None) => config.with_no_client_auth(),
        (Some(certificate), Some(key)) => {
            let failed = |path: &std::path::Path, e: &dyn std::fmt::Display| {
                wrong(path.display().to_string(), e.to_string())
            };
            let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
            let chain: Vec<_> = chain.map_err(|e| failed(certificate, &e))?;
            let private = PrivateKeyDer::from_pem_file(key).map_err(|e| failed(key, &e))?;
            config.with_client_auth_cert(chain, private).map_err(|e| failed(certificate, &e))?
        }
        _ => {
            let text =
                "an MQTT client certificate needs its key, and a key its certificate: set both or neither";
            return Err(OpenError::Setting(text.to_owned()));
        }
    };
    let host = &settings.broker.host;
    let name = ServerName::try_from(host.clone()).map_err(|_| {
        OpenError::Setting(format!(
            "MQTT broker '{host}' cannot be verified by TLS: write a host name or an IP address"
        ))
    })?;
    Ok(Some((Arc::new(config), name)))
}

impl Link {
    /// Connects, performs the TLS and MQTT handshakes and returns the broker's answer.
    pub(super) fn open(
        settings: &Settings,
        client: &str,
        clean: bool,
    ) -> Result<(Link, Inbox, ConnAck), OpenError> {
        let password = settings.password.as_ref().map(super::Password::read).transpose()?;
        let tls = tls(settings)?;
        let broker = settings.broker.to_string();
        let unreachable = |reason: String| OpenError::Unreachable { broker: broker.clone(), reason };
        let refused = |reason: String| OpenError::Refused { broker: broker.clone(), reason };
        let encrypted = tls.is_some();
        // TLS reports its failures as `InvalidData`; retrying does not help there.
        let failed = |e: io::Error| match e.kind() {
            io::ErrorKind::InvalidData => refused(e.to_string()),
            _ => unreachable(describe(&e)),
        };
        tracing::debug!(%broker, %client, version = ?settings.version, tls = encrypted, "connecting to the MQTT broker");
        let mut socket = connect(settings).map_err(failed)?;
        let tls = match tls {
            None => None,
            Some((config, name)) => {
                let mut tls = ClientConnection::new(config, name).map_err(|e| refused(e.to_string()))?;
                while tls.is_handshaking() {
                    tls.complete_io(&mut socket).map_err(failed)?;
                }
                tracing::debug!(%broker, version = ?tls.protocol_version(), "TLS handshake completed");
                Some(Mutex::new(tls))
            }
        };
        // The broker answers pings, so a longer silence means that the connection is lost.
        let silence = Duration::from_millis(u64::from(settings.keep_alive) * 1500);
        let patience = settings.slow_consumer.map_or(silence, |wait| wait.min(silence));
        let link = Link { socket, tls, unsent: Mutex::default(), patience };
        let mut out = Vec::new();
        let request = Connect {
            version: settings.version,
            client,
            clean,
            session_expiry: settings.session_expiry,
            receive_maximum: super::held::window(settings),
            keep_alive: settings.keep_alive,
            user: settings.user.as_deref(),
            password: password.as_deref(),
        };
        packet::connect(&request, &mut out);
        link.write(&out).map_err(failed)?;
        let mut inbox = Inbox::default();
        let (first, start, end) = loop {
            match packet::frame(inbox.bytes()) {
                Ok(Some(frame)) => break frame,
                Ok(None) => {}
                Err(_) => return Err(refused("it does not speak MQTT; check the port".to_owned())),
            }
            match link.read(&mut inbox) {
                // With TLS 1.3 a broker that rejects the client's certificate closes only now.
                Ok(0) if encrypted => {
                    let reason = "it closed the connection without an answer; check the client certificate";
                    return Err(refused(reason.to_owned()));
                }
                Ok(0) => return Err(unreachable("it closed the connection without an answer".to_owned())),
                Ok(_) => {}
                Err(e) => return Err(failed(e)),
            }
        };
        let answer = match packet::decode(settings.version, first, &inbox.bytes()[start..end]) {
            Ok(Packet::ConnAck(answer)) => answer,
            _ => return Err(refused("it does not support this MQTT version; try the other one".to_owned())),
        };
        if answer.code != 0 {
            let reason = packet::reason(settings.version, answer.code, &answer.reason);
            let is_temporary = match settings.version {
                Version::V3 => answer.code == 3,
                Version::V5 => [0x88, 0x89].contains(&answer.code),
            };
            return Err(if is_temporary { unreachable(reason) } else { refused(reason) });
        }
        inbox.used(end);
        link.socket.set_read_timeout(Some(silence)).map_err(failed)?;
        Ok((link, inbox, answer))
    }

    /// Waits for more bytes and returns their number, 0 at the end of the stream.
    pub(super) fn read(&self, inbox: &mut Inbox) -> io::Result<usize> {
        let Inbox { plain, encrypted } = inbox;
        let Some(tls) = &self.tls else { return plain.fill(&self.socket) };
        let mut received = 0;
        loop {
            if encrypted.fill(&self.socket)? == 0 {
                return Ok(0);
            }
            let mut ended = false;
            let answers = {
                let mut tls = lock(tls);
                while !encrypted.bytes().is_empty() && !ended {
                    let used = tls.read_tls(&mut encrypted.bytes())?;
                    encrypted.start += used;
                    let state = tls.process_new_packets().map_err(invalid)?;
                    ended = used == 0 || state.peer_has_closed();
                    let count = state.plaintext_bytes_to_read();
                    tls.reader().read_exact(&mut plain.room(count)[..count])?;
                    plain.end += count;
                    received += count;
                }
                tls.wants_write()
            };
            if answers {
                self.write(&[])?;
            }
            if received > 0 || ended {
                return Ok(received);
            }
        }
    }

    /// Writes bytes without blocking, and keeps those that the broker has no room for. Returns whether all were
    /// written.
    ///
    /// # Errors
    /// The connection is broken, or the broker has made no room for too long.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<bool> {
        let mut unsent = lock(&self.unsent);
        let Some(tls) = &self.tls else {
            let mut rest = bytes;
            while unsent.send(&self.socket)? && !rest.is_empty() {
                match send(&self.socket, rest)? {
                    0 => break,
                    count => rest = &rest[count..],
                }
            }
            if !rest.is_empty() {
                unsent.keep(rest);
            }
            return self.has_sent(&unsent);
        };
        let mut rest = bytes;
        loop {
            let mut encrypted = Vec::new();
            {
                let mut tls = lock(tls);
                // TLS limits how much it accepts at once.
                let taken = tls.writer().write(rest)?;
                rest = &rest[taken..];
                while tls.wants_write() {
                    tls.write_tls(&mut encrypted)?;
                }
            }
            if !encrypted.is_empty() {
                unsent.keep(&encrypted);
            }
            unsent.send(&self.socket)?;
            if rest.is_empty() {
                return self.has_sent(&unsent);
            }
        }
    }

    /// Whether no bytes wait.
    fn has_sent(&self, unsent: &Unsent) -> io::Result<bool> {
        match unsent.since {
            Some(since) if since.elapsed() >= self.patience => Err(io::ErrorKind::TimedOut.into()),
            since => Ok(since.is_none()),
        }
    }

    /// Writes bytes, and waits for room until a deadline. Returns whether all were written.
    pub(super) fn write_until(&self, bytes: &[u8], deadline: Instant) -> io::Result<bool> {
        let mut is_written = self.write(bytes)?;
        while !is_written && Instant::now() < deadline {
            self.wait_for_room(deadline.saturating_duration_since(Instant::now()));
            is_written = self.write(&[])?;
        }
        Ok(is_written)
    }

    /// Waits until the broker makes room, at most for `limit`. Returns whether it has, or the connection is broken.
    pub(super) fn wait_for_room(&self, limit: Duration) -> bool {
        let millis = u16::try_from(limit.as_millis()).unwrap_or(u16::MAX);
        let mut sockets = [PollFd::new(self.socket.as_fd(), PollFlags::POLLOUT)];
        poll(&mut sockets, PollTimeout::from(millis)).is_ok_and(|ready| ready > 0)
    }

    /// Whether the broker has made no room for too long.
    pub(super) fn is_stuck(&self) -> bool {
        self.has_sent(&lock(&self.unsent)).is_err()
    }

    /// Closes the sending direction.
    pub(super) fn finish(&self) {
        if let Some(tls) = &self.tls {
            lock(tls).send_close_notify();
            // If this fails, the connection is broken, and the broker notices that anyway.
            let _ = self.write(&[]);
        }
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Closes the connection at once; threads that read or write return with an error.
    pub(super) fn cut(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

fn connect(settings: &Settings) -> io::Result<TcpStream> {
    let broker = &settings.broker;
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    for address in (broker.host.as_str(), broker.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(socket) => {
                // Otherwise an acknowledgement may be delayed by 40 ms (Nagle's algorithm).
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(CONNECT))?;
                socket.set_write_timeout(Some(CONNECT))?;
                return Ok(socket);
            }
            Err(error) => {
                tracing::debug!(%broker, %address, %error, "cannot connect to this address of the MQTT broker");
                failure = error;
            }
        }
    }
    Err(failure)
}

/// Returns the description of an I/O error for messages.
pub(super) fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer".to_owned(),
        io::ErrorKind::ConnectionRefused => {
            "connection refused; check that the broker is running and listens on this port".to_owned()
        }
        io::ErrorKind::UnexpectedEof => "the broker closed the connection".to_owned(),
        _ => error.to_string(),
    }
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
