//! The HTTP server of metrics and probes, on a thread of its own.
//!
//! The thread answers one request at a time, so that scrapes do not add up. Connections are bounded in number and in
//! time: a client that sends or reads nothing is closed, and holds up neither others for longer than that nor the run.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rondel_net::adapter::Listener as Shown;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Sleep, sleep};

use super::exposition;
use super::state::RunState;
use crate::say;

/// Maximum number of connections; further ones wait until one is closed.
const CONNECTIONS: usize = 16;
/// Maximum duration of a connection.
const LONGEST: Duration = Duration::from_secs(5);
/// Pause after a connection could not be accepted, as when no file descriptor is left.
const PAUSE: Duration = Duration::from_millis(200);

/// The server; it ends when it is dropped.
pub struct Server {
    /// Ends the thread, by being dropped.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to listen, and shows where.
    ///
    /// # Errors
    /// The address on which it cannot listen, and the reason.
    pub fn start(listen: SocketAddr, state: Arc<RunState>) -> Result<Server, String> {
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("cannot serve metrics on {listen}: another program uses this port")
            }
            _ => format!("cannot serve metrics on {listen}: {error}"),
        };
        let listener = std::net::TcpListener::bind(listen).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(refused)?;
        let (end, ended) = oneshot::channel::<()>();
        let serve = move || {
            runtime.block_on(async move {
                match TcpListener::from_std(listener) {
                    Ok(listener) => {
                        let permits = Arc::new(Semaphore::new(CONNECTIONS));
                        let serving = axum::serve(Bounded { listener, permits }, routes(state));
                        let task = tokio::spawn(serving.into_future());
                        // An error is the end as well.
                        _ = ended.await;
                        task.abort();
                    }
                    Err(error) => crate::warn(&format!("cannot serve metrics: {error}")),
                }
            });
        };
        let thread = thread::Builder::new().name("metrics".into()).spawn(serve).map_err(refused)?;
        let place = format!("metrics http://{address}/metrics");
        let shown = Shown { place, encrypted: false, authenticated: false };
        say(&format!("listening on {shown}"));
        Ok(Server { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported.
            let _ = thread.join();
        }
    }
}

fn routes(state: Arc<RunState>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .fallback(missing)
        .with_state(state)
}

/// Answers with all metrics: as OpenMetrics if the client accepts that, otherwise in the text format of Prometheus.
async fn metrics(State(state): State<Arc<RunState>>, headers: HeaderMap) -> Response {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let is_open_metrics = prefers_open_metrics(accepted);
    match exposition::write(state.snapshot(), is_open_metrics) {
        Ok((text, content_type)) => answer(StatusCode::OK, content_type, text),
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written\n".to_owned()),
    }
}

/// Whether a client accepts OpenMetrics, and prefers no other text, by its headers `Accept` (RFC 9110, section 12.5.1).
fn prefers_open_metrics<'h>(accepted: impl Iterator<Item = &'h str>) -> bool {
    let (mut open_metrics, mut text) = (0.0_f32, 0.0_f32);
    for range in accepted.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let weight = weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0));
        if media.eq_ignore_ascii_case("application/openmetrics-text") {
            open_metrics = open_metrics.max(weight);
        } else if media.eq_ignore_ascii_case("text/plain") {
            text = text.max(weight);
        }
    }
    open_metrics > 0.0 && open_metrics >= text
}

/// Answers 200 while the evaluating thread moves.
async fn healthz(State(state): State<Arc<RunState>>) -> Response {
    match state.alive() {
        Ok(()) => plain(StatusCode::OK, "alive\n".to_owned()),
        Err(why) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

/// Answers 200 if the run is connected, subscribed and caught up; otherwise 503 with a line for each reason.
async fn readyz(State(state): State<Arc<RunState>>) -> Response {
    let reasons = state.unready();
    if reasons.is_empty() {
        return plain(StatusCode::OK, "ready\n".to_owned());
    }
    let text = reasons.iter().map(|reason| format!("{reason}\n")).collect();
    plain(StatusCode::SERVICE_UNAVAILABLE, text)
}

async fn missing() -> Response {
    plain(StatusCode::NOT_FOUND, "there are /metrics, /healthz and /readyz\n".to_owned())
}

fn plain(status: StatusCode, text: String) -> Response {
    answer(status, "text/plain; charset=utf-8", text)
}

/// The response, after which the connection is closed: idle connections would use up their number.
fn answer(status: StatusCode, content_type: &'static str, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, content_type), (header::CONNECTION, "close")], text).into_response()
}

/// A listener with a limited number of connections.
struct Bounded {
    listener: TcpListener,
    permits: Arc<Semaphore>,
}

impl axum::serve::Listener for Bounded {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            // The semaphore is never closed.
            let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    let limit = Box::pin(sleep(LONGEST));
                    return (Connection { stream, limit, _permit: permit }, peer);
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails once its time is over.
struct Connection {
    stream: TcpStream,
    limit: Pin<Box<Sleep>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// Returns an error if the time is over; otherwise the task is woken when it is.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.limit.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
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
mod tests {
    use super::*;

    #[test]
    fn weights_of_media_types_decide_the_format() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        for (accepted, expected) in [
            (&[prometheus][..], true),
            (&["APPLICATION/OPENMETRICS-TEXT"], true),
            (&["text/html", "application/openmetrics-text"], true),
            (&["application/openmetrics-text;q=0, text/plain"], false),
            (&["application/openmetrics-text;q=0.1, text/plain;q=0.9"], false),
            (&["application/openmetrics-text; q=x"], false),
            (&["*/*"], false),
            (&[], false),
        ] {
            assert_eq!(prefers_open_metrics(accepted.iter().copied()), expected, "{accepted:?}");
        }
    }
}
