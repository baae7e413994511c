//! Connections on which nothing moves.
//!
//! A call that publishes blocks once a neighbour has taken nothing for so long that the buffers of its connection are
//! full, and nothing ends it before the session's wait. So before they are full it is looked how many bytes wait in the
//! socket: the kernel says so (on Linux). If that has not changed for a moment, the neighbour takes nothing, and whoever
//! must not wait does not publish. Zenoh's own queue has room for two batches of 64 KiB behind the socket, which is
//! looked at every 16 KiB.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::zenoh::Wait;
use ::zenoh::sample::SampleKind;

/// Bytes after which the sockets are looked at.
const EVERY: usize = 16 << 10;
/// How long the bytes that wait in a socket must not have changed.
const STANDS: Duration = Duration::from_millis(1);
/// Limit of connections that are looked at.
const CONNECTIONS: usize = 1024;

/// The connections of a session.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// Bytes published since the last look.
    published: AtomicUsize,
    /// Whether nothing moved at the last look on a connection.
    is_congested: AtomicBool,
    connections: Mutex<Vec<Connection>>,
}

#[derive(Debug)]
struct Connection {
    own: SocketAddr,
    other: SocketAddr,
    socket: socket::Number,
    /// The bytes that waited at the last look, and since when it is so.
    waiting: (usize, Instant),
}

impl Backlog {
    /// Follows the connections of a session.
    pub(super) fn start(session: &::zenoh::Session) -> Result<Arc<Backlog>, ::zenoh::Error> {
        let backlog = Arc::<Backlog>::default();
        let followed = Arc::clone(&backlog);
        session
            .info()
            .link_events_listener()
            .history(true)
            .callback(move |event| {
                let address =
                    |locator: &str| locator.split_once('/')?.1.split(['?', '#']).next()?.parse().ok();
                let (own, other) = (event.link().src().to_string(), event.link().dst().to_string());
                if let Some((own, other)) = address(&own).zip(address(&other)) {
                    followed.changed(own, other, event.kind() == SampleKind::Put);
                }
            })
            .background()
            .wait()?;
        Ok(backlog)
    }

    fn connections(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a connection was opened or closed.
    fn changed(&self, own: SocketAddr, other: SocketAddr, is_open: bool) {
        let mut connections = self.connections();
        connections.retain(|connection| (connection.own, connection.other) != (own, other));
        if is_open
            && connections.len() < CONNECTIONS
            && let Some(socket) = socket::find(own, other)
        {
            connections.push(Connection { own, other, socket, waiting: (0, Instant::now()) });
        }
    }

    /// Whether so many bytes can be published without waiting for a neighbour that takes nothing.
    #[inline]
    pub(super) fn admits(&self, bytes: usize) -> bool {
        let published = self.published.fetch_add(bytes, Ordering::Relaxed) + bytes;
        (published < EVERY && !self.is_congested.load(Ordering::Relaxed)) || self.look()
    }

    #[cold]
    fn look(&self) -> bool {
        self.published.store(0, Ordering::Relaxed);
        let now = Instant::now();
        let mut is_congested = false;
        for Connection { own, other, socket, waiting } in &mut *self.connections() {
            let count = socket::waiting(*socket, *own, *other).unwrap_or(0);
            if count == 0 || count != waiting.0 {
                *waiting = (count, now);
            }
            is_congested |= count > 0 && now.duration_since(waiting.1) >= STANDS;
        }
        if is_congested && !self.is_congested.load(Ordering::Relaxed) {
            tracing::debug!("a Zenoh neighbour takes nothing");
        }
        self.is_congested.store(is_congested, Ordering::Relaxed);
        !is_congested
    }
}

#[cfg(target_os = "linux")]
mod socket {
    use std::net::SocketAddr;
    use std::os::fd::BorrowedFd;

    use socket2::SockRef;

    /// The number of a socket of this process, which may be closed or another one meanwhile.
    pub(super) type Number = i32;

    /// Runs a function on the socket with this number, if it is one between these addresses.
    fn with<T>(
        number: Number,
        own: SocketAddr,
        other: SocketAddr,
        run: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        // SAFETY: the number is used for questions only, which have no effect on whatever it stands for; if it stands for
        // nothing, they fail.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        let socket = SockRef::from(&borrowed);
        let address = |address: std::io::Result<socket2::SockAddr>| address.ok()?.as_socket().map(plain);
        (address(socket.peer_addr()) == Some(plain(other))
            && address(socket.local_addr()) == Some(plain(own)))
        .then(run)
        .flatten()
    }

    /// An address of version 4 within version 6 as one of version 4.
    fn plain(address: SocketAddr) -> SocketAddr {
        SocketAddr::new(address.ip().to_canonical(), address.port())
    }

    /// Finds the socket of a connection.
    pub(super) fn find(own: SocketAddr, other: SocketAddr) -> Option<Number> {
        let names = std::fs::read_dir("/proc/self/fd").ok()?.flatten();
        let mut numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.find(|number| with(*number, own, other, || Some(())).is_some())
    }

    /// Returns the bytes that wait in a socket to be sent and acknowledged, if it is still that of the connection.
    pub(super) fn waiting(number: Number, own: SocketAddr, other: SocketAddr) -> Option<usize> {
        with(number, own, other, || {
            let mut count: nix::libc::c_int = 0;
            // SAFETY: the request writes one integer to the place.
            let code = unsafe { nix::libc::ioctl(number, nix::libc::TIOCOUTQ, &raw mut count) };
            usize::try_from(count).ok().filter(|_| code == 0)
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod socket {
    use std::net::SocketAddr;

    pub(super) type Number = ();

    pub(super) fn find(_: SocketAddr, _: SocketAddr) -> Option<Number> {
        None
    }

    pub(super) fn waiting((): Number, _: SocketAddr, _: SocketAddr) -> Option<usize> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_neighbour_that_reads_nothing_is_noticed_before_a_write_blocks() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut own = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        let backlog = Backlog::default();
        backlog.changed(own.local_addr().unwrap(), own.peer_addr().unwrap(), true);
        assert_eq!(backlog.connections().len(), 1);
        // It reads: everything is admitted.
        let mut bytes = vec![0; EVERY];
        for _ in 0..10 {
            assert!(backlog.admits(EVERY));
            own.write_all(&bytes).unwrap();
            other.read_exact(&mut bytes).unwrap();
        }
        own.set_nonblocking(true).unwrap();
        while own.write(&bytes).is_ok() {}
        backlog.look();
        std::thread::sleep(STANDS * 2);
        assert!(!backlog.admits(EVERY));
        let waits = backlog.connections()[0].waiting.0;
        other.set_nonblocking(true).unwrap();
        while other.read(&mut bytes).is_ok() {
            std::thread::yield_now();
        }
        assert!(waits > 0 && backlog.admits(1), "it reads again");
        backlog.changed(own.local_addr().unwrap(), own.peer_addr().unwrap(), false);
        assert!(backlog.connections().is_empty());
    }
}
