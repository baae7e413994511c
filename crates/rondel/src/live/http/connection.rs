//! Connections, and their places on a server.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, Sleep, sleep};

use super::Limits;

/// Minimum rate at which a request is received, in bytes per second, beyond the time without progress.
const RATE: u64 = 16 << 10;

/// The places of connections.
pub(super) struct Places {
    free: Arc<Semaphore>,
    /// The connections, the oldest first. Those that have ended are removed with the next one.
    taken: Mutex<VecDeque<Weak<Seat>>>,
}

/// A place that is taken by a connection.
pub(super) struct Place {
    seat: Arc<Seat>,
    /// Ready once the connection has to make room.
    leave: oneshot::Receiver<()>,
    _permit: Option<OwnedSemaphorePermit>,
}

/// State of a connection that has a place.
#[derive(Debug)]
struct Seat {
    /// Whether the client was accepted.
    is_accepted: AtomicBool,
    /// Closes the connection.
    leave: Mutex<Option<oneshot::Sender<()>>>,
}

/// The client of a connection.
#[derive(Clone, Debug)]
pub(super) struct Client(Option<Arc<Seat>>);

impl Client {
    /// Notes that the client was accepted: its connection does not make room for others.
    pub(super) fn accept(&self) {
        if let Some(seat) = &self.0 {
            seat.is_accepted.store(true, Ordering::Relaxed);
        }
    }
}

impl Places {
    /// Returns free places.
    pub(super) fn new(most: usize) -> Places {
        Places { free: Arc::new(Semaphore::new(most)), taken: Mutex::default() }
    }

    /// Takes a place once one is free. If none is, the oldest connection whose client was not accepted is closed.
    pub(super) async fn take(&self) -> Place {
        let permit = match Arc::clone(&self.free).try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => {
                self.make_room();
                // The semaphore is never closed.
                Arc::clone(&self.free).acquire_owned().await.ok()
            }
        };
        let (sender, leave) = oneshot::channel();
        let seat = Arc::new(Seat { is_accepted: AtomicBool::new(false), leave: Mutex::new(Some(sender)) });
        let mut taken = self.taken();
        taken.retain(|seat| seat.strong_count() > 0);
        taken.push_back(Arc::downgrade(&seat));
        drop(taken);
        Place { seat, leave, _permit: permit }
    }

    /// Closes the oldest connection whose client was not accepted, if there is one.
    fn make_room(&self) {
        for seat in self.taken().iter().filter_map(Weak::upgrade) {
            if !seat.is_accepted.load(Ordering::Relaxed) && seat.close() {
                return;
            }
        }
    }

    /// Closes all connections.
    #[cfg_attr(not(feature = "page"), allow(dead_code))]
    pub(super) fn close(&self) {
        for seat in self.taken().iter().filter_map(Weak::upgrade) {
            seat.close();
        }
    }

    fn taken(&self) -> MutexGuard<'_, VecDeque<Weak<Seat>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Closes the connection. Returns whether it was open.
    fn close(&self) -> bool {
        let leave = self.leave.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The connection may have ended meanwhile, which frees its place as well.
        leave.is_some_and(|leave| leave.send(()).is_ok())
    }
}

/// A connection that fails once its time is over.
pub(super) struct Connection {
    stream: TcpStream,
    limit: Pin<Box<Sleep>>,
    longest: Duration,
    /// Whether it has that time again after each progress.
    counts_idle: bool,
    /// The time of the first byte since the last one that was sent, and the number of bytes since: of a request.
    request: Option<(Instant, u64)>,
    is_over: bool,
    /// Its place, once it is counted.
    place: Option<Place>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, limits: &Limits) -> Connection {
        let Limits { longest, counts_idle, .. } = *limits;
        let limit = Box::pin(sleep(longest));
        Connection { stream, limit, longest, counts_idle, request: None, is_over: false, place: None }
    }

    /// Counts the connection until it is dropped. It has waited for its place, without being read.
    pub(super) fn count(&mut self, place: Place) {
        self.place = Some(place);
        self.renew();
    }

    /// The client.
    pub(super) fn client(&self) -> Client {
        Client(self.place.as_ref().map(|place| Arc::clone(&place.seat)))
    }

    /// Returns an error if the time is over; otherwise the task is woken when it is.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        // A receiver is not polled again after it was ready.
        if !self.is_over {
            let leaves = (self.place.as_mut())
                .is_some_and(|place| Pin::new(&mut place.leave).poll(context).is_ready());
            self.is_over = leaves || self.limit.as_mut().poll(context).is_ready();
        }
        match self.is_over {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(()),
        }
    }

    /// Begins the time again.
    fn renew(&mut self) {
        self.request = None;
        self.limit.as_mut().reset(Instant::now() + self.longest);
    }

    /// Notes received bytes. A byte now and then does not keep a request open.
    fn received(&mut self, bytes: usize) {
        if bytes == 0 || !self.counts_idle {
            return;
        }
        let (begun, received) = self.request.get_or_insert_with(|| (Instant::now(), 0));
        *received += bytes as u64;
        let end = *begun + self.longest + Duration::from_millis(received.saturating_mul(1000) / RATE);
        self.limit.as_mut().reset(end);
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.received(buffer.filled().len().saturating_sub(before));
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if self.counts_idle && matches!(written, Poll::Ready(Ok(_))) {
            self.renew();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::pending;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::thread;
    use std::time::Instant;

    use axum::Router;
    use axum::routing::get;

    use super::*;
    use crate::live::http::{Bound, HttpServer};

    fn serve(connections: usize, longest: Duration) -> (HttpServer, SocketAddr) {
        let bound = Bound::listen("the page", "127.0.0.1:0".parse().unwrap()).unwrap();
        let address = bound.address;
        let routes =
            Router::new().route("/", get(|| async { "file" })).route("/api/x", get(|| async { "answer" }));
        let limits =
            Limits { connections, accepts: "/api/", longest, counts_idle: true, grace: Duration::ZERO };
        (bound.serve(routes, limits, pending()).unwrap(), address)
    }

    fn connect(address: SocketAddr, first: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(first.as_bytes()).unwrap();
        stream
    }

    /// Requests a path. Returns whether it is answered.
    fn is_answered(stream: &mut TcpStream, path: &str, body: &str) -> bool {
        let sent = write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let (mut answer, mut part) = (Vec::new(), [0; 1024]);
        while sent.is_ok() && !answer.ends_with(body.as_bytes()) {
            match stream.read(&mut part) {
                Ok(0) | Err(_) => return false,
                Ok(length) => answer.extend_from_slice(&part[..length]),
            }
        }
        answer.starts_with(b"HTTP/1.1 200")
    }

    #[test]
    fn clients_that_were_not_accepted_make_room() {
        let (_server, address) = serve(4, Duration::from_secs(60));
        let mut accepted = connect(address, "");
        assert!(is_answered(&mut accepted, "/api/x", "answer"));
        let mut reader = connect(address, "");
        assert!(is_answered(&mut reader, "/", "file"));
        let dripping: Vec<TcpStream> = (0..40).map(|_| connect(address, "GET")).collect();
        assert!(is_answered(&mut connect(address, ""), "/api/x", "answer"));
        assert!(is_answered(&mut accepted, "/api/x", "answer"), "an accepted client stays");
        assert!(!is_answered(&mut reader, "/", "file"), "files are served to everybody");
        drop(dripping);
    }

    #[test]
    fn dripping_request_ends_in_time() {
        let (_server, address) = serve(4, Duration::from_secs(1));
        let begin = Instant::now();
        let mut dripping = connect(address, "GET");
        dripping.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let mut byte = [0];
        while begin.elapsed() < Duration::from_secs(30) {
            let sent = dripping.write_all(b"x");
            let waits = |error: io::Error| {
                matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
            };
            if sent.is_err() || !dripping.read(&mut byte).is_err_and(waits) {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        assert!(begin.elapsed() < Duration::from_secs(20), "each byte has counted as progress");
        let mut slow = connect(address, "GET /api/x HTTP/1.1\r\n");
        thread::sleep(Duration::from_millis(100));
        assert!(is_answered_after(&mut slow));
    }

    /// Completes a request. Returns whether it is answered.
    fn is_answered_after(stream: &mut TcpStream) -> bool {
        stream.write_all(b"Host: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).is_ok() && answer.starts_with("HTTP/1.1 200")
    }
}
