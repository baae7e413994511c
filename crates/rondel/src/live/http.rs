//! The HTTP server of metrics and of the page, on a thread of its own.
//!
//! Connections are bounded in number and in time: a client that sends or reads nothing is closed, and so is one that does
//! not complete a request in time. When all places are taken, the oldest client that was not accepted yet makes room.

mod connection;
#[cfg(feature = "page")]
mod tls;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::extract::connect_info::{Connected, IntoMakeServiceWithConnectInfo};
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::serve::{IncomingStream, Listener};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task;
use tokio::time::sleep;

use connection::{Client, Connection, Places};
#[cfg(feature = "page")]
pub use tls::Encryption;

/// Pause after a connection could not be accepted, as when no file descriptor is left.
const PAUSE: Duration = Duration::from_millis(200);
/// Bytes of a connection that the system keeps until the client reads them.
const UNREAD: usize = 256 << 10;
/// Threads beside that of the server, for answers that read files.
const HELPERS: usize = 4;
/// Time limit for these threads at the end.
const END: Duration = Duration::from_secs(1);

/// Limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of connections; further ones wait until one is closed.
    pub connections: usize,
    /// The beginning of paths: a client that was served one of them is accepted, and does not make room for others.
    pub accepts: &'static str,
    /// Time after which a connection is closed.
    pub longest: Duration,
    /// Whether that is the time without progress, and not the whole time. A request that is received makes progress by
    /// its bytes at a minimum rate.
    pub counts_idle: bool,
    /// Time for last responses when the server ends.
    pub grace: Duration,
}

/// A server that is to be started: its port is reserved.
pub struct Bound {
    listener: std::net::TcpListener,
    /// The address, with the port that the system has chosen if none was named.
    pub address: SocketAddr,
    /// The noun for what it serves, in messages.
    what: &'static str,
}

/// The server; it ends when it is dropped.
pub struct HttpServer {
    /// Ends the thread, by being dropped.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Bound {
    /// Starts to listen.
    ///
    /// # Errors
    /// The address on which it cannot listen, and the reason.
    pub fn listen(what: &'static str, listen: SocketAddr) -> Result<Bound, String> {
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("cannot serve {what} on {listen}: another program uses this port")
            }
            _ => format!("cannot serve {what} on {listen}: {error}"),
        };
        let listener = std::net::TcpListener::bind(listen).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        // Connections inherit it. A system that does not allow it keeps more.
        let _ = socket2::SockRef::from(&listener).set_send_buffer_size(UNREAD);
        let address = listener.local_addr().map_err(refused)?;
        Ok(Bound { listener, address, what })
    }

    /// Serves routes, and runs a task beside them.
    ///
    /// # Errors
    /// The address, and the reason why no thread can be started.
    pub fn serve(
        self,
        routes: Router,
        limits: Limits,
        beside: impl Future<Output = ()> + Send + 'static,
    ) -> Result<HttpServer, String> {
        let start = move |listener: Bounded| {
            tokio::spawn(axum::serve(listener, counted(routes, limits)).into_future())
        };
        self.start(limits, start, beside)
    }

    /// Serves routes with TLS, and runs a task beside them.
    ///
    /// # Errors
    /// The address, and the reason why no thread can be started.
    #[cfg(feature = "page")]
    pub fn serve_encrypted(
        self,
        encryption: Encryption,
        routes: Router,
        limits: Limits,
        beside: impl Future<Output = ()> + Send + 'static,
    ) -> Result<HttpServer, String> {
        let (what, address) = (self.what, self.address);
        let start = move |listener: Bounded| {
            let encrypted = encryption.listen(listener, address, what);
            tokio::spawn(axum::serve(encrypted, counted(routes, limits)).into_future())
        };
        self.start(limits, start, beside)
    }

    /// Starts the thread of a server.
    fn start(
        self,
        limits: Limits,
        start: impl FnOnce(Bounded) -> task::JoinHandle<io::Result<()>> + Send + 'static,
        beside: impl Future<Output = ()> + Send + 'static,
    ) -> Result<HttpServer, String> {
        let Bound { listener, address, what } = self;
        let refused = |error: io::Error| format!("cannot serve {what} on {address}: {error}");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(HELPERS)
            .build()
            .map_err(refused)?;
        let (end, ended) = oneshot::channel::<()>();
        let serve = move || {
            runtime.block_on(async move {
                match TcpListener::from_std(listener) {
                    Ok(listener) => {
                        let places = Arc::new(Places::new(limits.connections));
                        let serving = start(Bounded { listener, places, limits });
                        let beside = tokio::spawn(beside);
                        // An error is the end as well.
                        _ = ended.await;
                        sleep(limits.grace).await;
                        beside.abort();
                        serving.abort();
                    }
                    Err(error) => crate::warn(&format!("cannot serve {what}: {error}")),
                }
            });
            runtime.shutdown_timeout(END);
        };
        let thread = thread::Builder::new().name(what.replace("the ", "")).spawn(serve).map_err(refused)?;
        Ok(HttpServer { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported.
            let _ = thread.join();
        }
    }
}

/// A listener with a limited number of connections.
struct Bounded {
    listener: TcpListener,
    places: Arc<Places>,
    limits: Limits,
}

impl Bounded {
    /// Accepts a connection, which is not counted.
    async fn uncounted(&self) -> (Connection, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    // An event is not held back for the acknowledgement of the one before. If it cannot be set, it is.
                    let _ = stream.set_nodelay(true);
                    return (Connection::new(stream, &self.limits), peer);
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    }
}

impl Listener for Bounded {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (mut connection, peer) = self.uncounted().await;
        connection.count(self.places.take().await);
        (connection, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The routes for connections that make room for others until their clients are accepted.
fn counted(routes: Router, limits: Limits) -> IntoMakeServiceWithConnectInfo<Router, Client> {
    routes.layer(from_fn_with_state(limits.accepts, accept)).into_make_service_with_connect_info::<Client>()
}

/// Answers a request, and accepts its client if it is served below a path.
async fn accept(
    State(path): State<&'static str>,
    ConnectInfo(client): ConnectInfo<Client>,
    request: Request,
    next: Next,
) -> Response {
    let counts = request.uri().path().starts_with(path);
    let response = next.run(request).await;
    let status = response.status();
    if counts && !status.is_client_error() && !status.is_server_error() {
        client.accept();
    }
    response
}

impl<'a> Connected<IncomingStream<'a, Bounded>> for Client {
    fn connect_info(stream: IncomingStream<'a, Bounded>) -> Client {
        stream.io().client()
    }
}
