//! TLS of the server.
//!
//! Handshakes run beside each other, before a connection is counted: a client that connects and sends nothing takes no
//! place of another one. They are bounded in time; those that run or wait for a place are bounded in number, and the oldest
//! one makes room for a new one.

mod files;
mod refusals;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use rondel_sinks::tls::ServerTlsOptions;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{Error, ServerConfig};
use tokio_rustls::server::TlsStream;

use self::files::{Files, renew};
use self::refusals::{REPORTS, Refusals};
use super::Bounded;
use super::connection::{Client, Connection, Places};

/// Time limit of a handshake.
const LIMIT: Duration = Duration::from_secs(5);
/// Maximum number of connections whose handshakes run, or that wait for a place.
const AT_ONCE: usize = 256;
/// Time after which the files are read again.
const AGAIN: Duration = Duration::from_secs(60);

/// The certificate of a server, and the certificates that it wants from clients.
pub struct Encryption {
    options: ServerTlsOptions,
    files: Files,
    /// Number of refused connections.
    refused: Arc<AtomicU64>,
}

impl Encryption {
    /// Reads the files. Connections that are refused will be added to a number.
    ///
    /// # Errors
    /// The file that cannot be used, and the reason.
    pub fn new(options: ServerTlsOptions, refused: Arc<AtomicU64>) -> Result<Encryption, String> {
        let files = Files::read(&options)?;
        Ok(Encryption { options, files, refused })
    }

    /// Starts to accept connections.
    pub(super) fn listen(self, listener: Bounded, address: SocketAddr, what: &'static str) -> Encrypted {
        let (sender, arrived) = mpsc::channel(1);
        let (renewed, config) = watch::channel(Arc::clone(&self.files.config));
        let places = Arc::clone(&listener.places);
        let refusals = Refusals::new(what, Arc::clone(&self.refused));
        tokio::spawn(renew(self, renewed, Arc::clone(&places), what, AGAIN));
        let common = Arc::new(Common { places, sender, refusals });
        tokio::spawn(flush(Arc::clone(&common)));
        tokio::spawn(accept(listener, config, common));
        Encrypted { arrived, address }
    }
}

/// A connection that has no place yet.
struct Waiting {
    handshake: AbortHandle,
    peer: SocketAddr,
    /// Whether the handshake is complete.
    is_shaken: Arc<AtomicBool>,
}

/// Accepts connections, and starts their handshakes.
async fn accept(listener: Bounded, config: watch::Receiver<Arc<ServerConfig>>, common: Arc<Common>) {
    let mut waiting: VecDeque<Waiting> = VecDeque::new();
    loop {
        let (connection, peer) = listener.uncounted().await;
        waiting.retain(|waiting| !waiting.handshake.is_finished());
        if waiting.len() >= AT_ONCE
            && let Some(oldest) = waiting.pop_front()
        {
            oldest.handshake.abort();
            let why = match oldest.is_shaken.load(Ordering::Relaxed) {
                true => format!("all {} connections are in use", listener.limits.connections),
                false => "too many others began a TLS handshake after it".to_owned(),
            };
            common.refusals.note(oldest.peer, &why);
        }
        let is_shaken = Arc::<AtomicBool>::default();
        let running = Arc::clone(&common).handshake(config.clone(), connection, peer, Arc::clone(&is_shaken));
        let handshake = tokio::spawn(running).abort_handle();
        waiting.push_back(Waiting { handshake, peer, is_shaken });
    }
}

/// Reports refused connections that no later one reports.
async fn flush(common: Arc<Common>) {
    let mut ticks = interval(REPORTS / 5);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        common.refusals.flush();
    }
}

/// Shared state of the handshakes.
struct Common {
    /// Places of connections.
    places: Arc<Places>,
    /// Connections that can be served.
    sender: mpsc::Sender<(TlsStream<Connection>, SocketAddr)>,
    refusals: Refusals,
}

impl Common {
    /// Passes a connection on once its handshake has ended and a place is free.
    async fn handshake(
        self: Arc<Common>,
        config: watch::Receiver<Arc<ServerConfig>>,
        connection: Connection,
        peer: SocketAddr,
        is_shaken: Arc<AtomicBool>,
    ) {
        let used = config.borrow().clone();
        let acceptor = TlsAcceptor::from(Arc::clone(&used));
        match timeout(LIMIT, acceptor.accept(connection)).await {
            Ok(Ok(mut stream)) => {
                is_shaken.store(true, Ordering::Relaxed);
                let place = self.places.take().await;
                stream.get_mut().0.count(place);
                // Files that were replaced meanwhile may not accept the client any more: it may connect again.
                let is_present = Arc::ptr_eq(&used, &config.borrow());
                if is_present {
                    // The server may have ended.
                    let _ = self.sender.send((stream, peer)).await;
                }
            }
            Ok(Err(error)) => self.refusals.note(peer, &reason(&error)),
            Err(_) => {
                let seconds = LIMIT.as_secs();
                self.refusals.note(peer, &format!("it had no TLS connection within {seconds} s"));
            }
        }
    }
}

/// The reason why a handshake has failed.
fn reason(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::NoCertificatesPresented) => "it sent no certificate".to_owned(),
        Some(Error::InvalidMessage(_)) => {
            "it does not use TLS: addresses of this server begin with https://".to_owned()
        }
        Some(other) => other.to_string(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "it closed the connection during the TLS handshake".to_owned()
        }
        None => error.to_string(),
    }
}

/// Connections with TLS.
pub(super) struct Encrypted {
    arrived: mpsc::Receiver<(TlsStream<Connection>, SocketAddr)>,
    address: SocketAddr,
}

impl Listener for Encrypted {
    type Io = TlsStream<Connection>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TlsStream<Connection>, SocketAddr) {
        match self.arrived.recv().await {
            Some(arrived) => arrived,
            // The task that accepts connections has panicked, which is reported by its thread.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

impl<'a> Connected<IncomingStream<'a, Encrypted>> for Client {
    fn connect_info(stream: IncomingStream<'a, Encrypted>) -> Client {
        stream.io().get_ref().0.client()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_handshakes_are_sentences() {
        let failed = |error: Error| reason(&io::Error::new(io::ErrorKind::InvalidData, error));
        assert_eq!(failed(Error::NoCertificatesPresented), "it sent no certificate");
        assert_eq!(failed(Error::HandshakeNotComplete), "handshake not complete");
        assert!(reason(&io::ErrorKind::UnexpectedEof.into()).contains("closed the connection"));
        assert_eq!(reason(&io::Error::other("x")), "x");
    }
}
