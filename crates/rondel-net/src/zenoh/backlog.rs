//! Connections on which nothing moves.
//!
//! A call that publishes blocks once the buffers of a connection are full, and only the session's timeout ends it. There
//! are two: the socket's, and behind it Zenoh's queue of some batches. So the number of bytes that wait in the socket,
//! which the kernel reports (on Linux), is read every 16 KiB. While it does not change, what is published goes into the
//! queue; once that is nearly full and a good part of the socket's buffer too, a publisher that must not wait does not
//! publish. Time is no measure: on a busy machine neither the neighbour nor Zenoh's own thread may run for some
//! milliseconds, and each message that is refused costs a hand-over to another thread.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::zenoh::Wait;
use ::zenoh::sample::SampleKind;

/// Bytes after which the sockets are looked at.
const EVERY: usize = 16 << 10;
/// Size of Zenoh's batches, in bytes.
const BATCH: usize = 64 << 10;
/// Bytes in the queue that suffice for a neighbour that does not run for some milliseconds at full speed. The rest is for
/// what was in the queue before the socket stood.
const ENOUGH: usize = 128 << 10;
/// Part of a socket's buffer that must be full. The size of the buffer includes the kernel's own records, so that it is
/// never reached by the bytes alone.
const FULL: usize = 4;
/// Limit of connections that are looked at.
const CONNECTIONS: usize = 1024;

/// The connections of a session.
#[derive(Debug)]
pub(super) struct Backlog {
    /// Bytes that Zenoh's queue can take while a socket sends nothing.
    room: usize,
    /// Bytes published since the last look.
    published: AtomicUsize,
    /// Whether there was no room on a connection at the last look.
    is_congested: AtomicBool,
    connections: Mutex<Vec<Connection>>,
}

#[derive(Debug)]
struct Connection {
    own: SocketAddr,
    other: SocketAddr,
    socket: socket::Number,
    /// Bytes that waited in the socket at the last look.
    waiting: usize,
    /// Bytes published since that number changed.
    queued: usize,
}

impl Backlog {
    /// Follows the connections of a session whose queue has room for so many bytes.
    pub(super) fn start(session: &::zenoh::Session, queue: usize) -> Result<Arc<Backlog>, ::zenoh::Error> {
        let backlog = Arc::new(Backlog::new(queue));
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

    fn new(queue: usize) -> Backlog {
        // One batch is being written, messages of a little more than half a batch leave the rest of each empty, and what is
        // published between two looks comes on top, before and after.
        let room = (queue.saturating_sub(BATCH) / 2).saturating_sub(2 * EVERY).min(ENOUGH);
        let (published, is_congested, connections) = Default::default();
        Backlog { room, published, is_congested, connections }
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
            connections.push(Connection { own, other, socket, waiting: 0, queued: 0 });
        }
    }

    /// Whether so many bytes can be published without waiting for a neighbour that reads nothing.
    #[inline]
    pub(super) fn admits(&self, bytes: usize) -> bool {
        let published = self.published.fetch_add(bytes, Ordering::Relaxed) + bytes;
        (published < EVERY && !self.is_congested.load(Ordering::Relaxed)) || self.look(bytes)
    }

    #[cold]
    fn look(&self, bytes: usize) -> bool {
        let mut connections = self.connections();
        let published = self.published.swap(0, Ordering::Relaxed);
        let mut is_congested = false;
        for Connection { own, other, socket, waiting, queued } in &mut *connections {
            let count = socket::waiting(*socket, *own, *other).unwrap_or(0);
            if count == 0 || count != *waiting {
                (*waiting, *queued) = (count, 0);
            }
            *queued += published;
            is_congested |= count > 0
                && *queued > self.room
                && socket::capacity(*socket, *own, *other).is_none_or(|capacity| count >= capacity / FULL);
        }
        if is_congested {
            // The message is not published.
            connections.iter_mut().for_each(|connection| connection.queued -= bytes.min(connection.queued));
        }
        if self.is_congested.swap(is_congested, Ordering::Relaxed) != is_congested && is_congested {
            tracing::debug!("a Zenoh neighbour takes nothing");
        }
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

    /// Returns the size of the buffer of a socket in bytes, which the kernel may change.
    pub(super) fn capacity(number: Number, own: SocketAddr, other: SocketAddr) -> Option<usize> {
        with(number, own, other, || {
            // SAFETY: as above.
            SockRef::from(&unsafe { BorrowedFd::borrow_raw(number) }).send_buffer_size().ok()
        })
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

    pub(super) fn capacity((): Number, _: SocketAddr, _: SocketAddr) -> Option<usize> {
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
        let backlog = Backlog::new(BATCH + 12 * EVERY);
        backlog.changed(own.local_addr().unwrap(), own.peer_addr().unwrap(), true);
        assert_eq!(backlog.connections().len(), 1);
        // It reads: everything is admitted.
        let mut bytes = vec![0; EVERY];
        for _ in 0..10 {
            assert!(backlog.admits(EVERY));
            own.write_all(&bytes).unwrap();
            other.read_exact(&mut bytes).unwrap();
        }
        // It does not read for a while, and the socket has room.
        own.write_all(&bytes).unwrap();
        assert!((0..10).all(|_| backlog.admits(EVERY)));
        own.set_nonblocking(true).unwrap();
        while own.write(&bytes).is_ok() {}
        // It has not: what is published now stays in the queue.
        assert_eq!((0..10).filter(|_| backlog.admits(EVERY)).count(), 4);
        assert!(!backlog.admits(1));
        let waits = backlog.connections()[0].waiting;
        other.set_nonblocking(true).unwrap();
        while other.read(&mut bytes).is_ok() {
            std::thread::yield_now();
        }
        assert!(waits > 0 && backlog.admits(1), "it reads again");
        backlog.changed(own.local_addr().unwrap(), own.peer_addr().unwrap(), false);
        assert!(backlog.connections().is_empty());
    }
}
