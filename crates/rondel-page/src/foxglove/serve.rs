//! Connections of clients: the handshake with its checks, sending and receiving.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ws::{CloseFrame, DefaultOnFailedUpgrade, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{FromRequestParts as _, Request as HttpRequest, State};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse as _;
use tokio::time::{MissedTickBehavior, interval};

use super::hub::{Hub, Joined, MOST_CLIENTS, Outgoing};
use super::protocol::SUBPROTOCOLS;
use crate::answer::Problem;
use crate::guard::{Access, Bucket, without_port};
use crate::request::Request;
use crate::server::{now, read};

/// Largest message of a client, in bytes.
const LARGEST: usize = 256 << 10;
/// Size of the buffer of a connection for reading and for writing, in bytes.
const BUFFER: usize = 16 << 10;
/// Interval of pings. It is shorter than the time without progress after which the HTTP server closes a connection.
const PING: Duration = Duration::from_secs(3);
/// Number of pings after which a client that sends nothing is closed.
const UNANSWERED: u32 = 10;
/// Messages sent before the client is read again.
const AT_ONCE: usize = 64;
/// Origin of the application in a browser.
const APPLICATION: &str = "https://app.foxglove.dev";
/// Attempts with a wrong token per second, and at once after a pause.
const WRONG_RATE: f64 = 5.0;
const WRONG_BURST: f64 = 20.0;

/// The hub, with access to it.
struct Serving {
    hub: Arc<Hub>,
    access: Access,
    /// Origins of further pages that may connect.
    origins: Vec<String>,
    refused: Bucket,
}

/// Returns the routes of a server. Pages of these origins may connect without a token, beside the application, pages
/// of this machine and programs.
pub fn router(hub: Arc<Hub>, access: Access, origins: Vec<String>) -> Router {
    let refused = Bucket::new(WRONG_RATE, WRONG_BURST);
    Router::new().fallback(connect).with_state(Arc::new(Serving { hub, access, origins, refused }))
}

impl Serving {
    /// Checks a request for a connection, at this time of day in nanoseconds.
    fn admit(&self, request: &Request, now: i64) -> Result<(), Problem> {
        let host = request.host.as_deref().unwrap_or_default();
        if !self.access.permits_host(host) {
            return Err(Problem::new(
                403,
                "this name of the machine is not permitted: use its IP address or `localhost`, or add the name to `hosts` of \
                 `foxglove`",
            ));
        }
        if let Some(token) = &self.access.token {
            // An application in a browser cannot send the header.
            let parameters = request.query()?;
            let in_address = parameters.text("token").map(|token| format!("Bearer {token}"));
            let sent = request.authorization.clone().or(in_address);
            return Access::check_secret(token, sent.as_deref()).map_err(|problem| {
                match self.refused.take(now) {
                    true => problem,
                    false => Problem::new(429, "too many attempts without the token: wait a second"),
                }
            });
        }
        match request.origin.as_deref().is_none_or(|origin| self.permits_origin(origin)) {
            true => Ok(()),
            false => Err(Problem::new(
                403,
                "a page of another site must not read from this machine: add its origin to `origins` of `foxglove`",
            )),
        }
    }

    /// Whether a page of this origin may connect: the application, a page of this machine, and one that is no page of a
    /// site, as in the application on the desktop.
    fn permits_origin(&self, origin: &str) -> bool {
        if origin == APPLICATION || self.origins.iter().any(|own| own == origin) {
            return true;
        }
        match origin.split_once("://") {
            Some(("http" | "https", host)) => {
                let name = without_port(host);
                name == "localhost" || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
            }
            Some(_) => true,
            // Frames that hide their origin send `null`.
            None => false,
        }
    }
}

async fn connect(State(serving): State<Arc<Serving>>, http: HttpRequest) -> Response<Body> {
    let (mut parts, _) = http.into_parts();
    let request = read(&parts.headers, parts.method.as_str(), &parts.uri);
    if let Err(problem) = serving.admit(&request, now()) {
        return refused(&problem);
    }
    let upgrade = match WebSocketUpgrade::<DefaultOnFailedUpgrade>::from_request_parts(&mut parts, &()).await
    {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let upgrade = upgrade
        .protocols(SUBPROTOCOLS)
        .read_buffer_size(BUFFER)
        .write_buffer_size(BUFFER)
        .max_message_size(LARGEST)
        .max_frame_size(LARGEST);
    if upgrade.selected_protocol().is_none() {
        let why = format!("this is a server for Foxglove: offer the subprotocol {}", SUBPROTOCOLS[0]);
        return refused(&Problem::wrong(why));
    }
    let Some(client) = serving.hub.join() else {
        let why = format!("{MOST_CLIENTS} clients are connected, and no more are served: close another one");
        return refused(&Problem::unavailable(why));
    };
    upgrade.on_upgrade(move |socket| converse(socket, client))
}

fn refused(problem: &Problem) -> Response<Body> {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, problem.message.clone()).into_response()
}

/// Sends and receives until one side ends the connection.
async fn converse(mut socket: WebSocket, client: Joined) {
    let mut pings = interval(PING);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut unanswered = 0;
    loop {
        tokio::select! {
            received = socket.recv() => match received {
                Some(Ok(message)) => {
                    unanswered = 0;
                    match message {
                        Message::Text(text) => client.receive(text.as_str()),
                        Message::Binary(_) => client.refuse_bytes(),
                        // Receiving again answers a ping or the end of the connection.
                        Message::Ping(_) | Message::Pong(_) | Message::Close(_) => {}
                    }
                }
                Some(Err(_)) | None => return,
            },
            () = client.woken() => {
                if !send(&mut socket, &client).await {
                    return;
                }
            }
            _ = pings.tick() => {
                unanswered += 1;
                if unanswered > UNANSWERED || socket.send(Message::Ping(Bytes::new())).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Sends the messages that wait for a client, a limited number of them. Returns whether the connection stays open.
async fn send(socket: &mut WebSocket, client: &Joined) -> bool {
    for _ in 0..AT_ONCE {
        let message = match client.next() {
            None => return true,
            Some(Outgoing::Text(text)) => Message::Text(text.into()),
            Some(Outgoing::Frame(frame)) => Message::Binary(frame.into()),
            Some(Outgoing::Close) => {
                // The other side may be gone.
                let away = CloseFrame { code: 1001, reason: "the server ends the connection".into() };
                let _ = socket.send(Message::Close(Some(away))).await;
                return false;
            }
        };
        if socket.send(message).await.is_err() {
            return false;
        }
    }
    client.wake();
    true
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn serving(token: Option<&str>) -> Serving {
        let listen = "127.0.0.1:8765".parse().unwrap();
        Serving {
            hub: Arc::new(Hub::new("test", "1", Box::new(|_| {}))),
            access: Access { token: token.map(str::to_owned), ..Access::local(listen) },
            origins: vec!["https://studio.example".to_owned()],
            refused: Bucket::new(WRONG_RATE, WRONG_BURST),
        }
    }

    fn admit(serving: &Serving, target: &str, host: &str, origin: Option<&str>) -> Result<(), u16> {
        let origin = origin.map(str::to_owned);
        let request = Request { host: Some(host.to_owned()), origin, ..Request::get(target) };
        serving.admit(&request, 0).map_err(|problem| problem.status)
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let serving = serving(None);
        for origin in [
            None,
            Some(APPLICATION),
            Some("https://studio.example"),
            Some("http://localhost:8080"),
            Some("http://127.0.0.1"),
            Some("http://[::1]:3000"),
            Some("file://"),
        ] {
            assert_eq!(admit(&serving, "/", "localhost:8765", origin), Ok(()), "{origin:?}");
        }
        for origin in [
            "https://attacker.example",
            "http://localhost.attacker.example",
            "https://app.foxglove.dev.attacker.example",
            "http://10.0.0.1",
            "null",
            "",
        ] {
            assert_eq!(admit(&serving, "/", "127.0.0.1:8765", Some(origin)), Err(403), "{origin}");
        }
        assert_eq!(admit(&serving, "/", "attacker.example", None), Err(403));
    }

    #[test]
    fn token_may_stand_in_the_address() {
        let serving = serving(Some("secret"));
        let other = Some("https://attacker.example");
        assert_eq!(admit(&serving, "/?token=secret", "10.0.0.7:8765", other), Ok(()));
        assert_eq!(admit(&serving, "/", "10.0.0.7:8765", None), Err(401));
        let guesses = (0..100).map(|_| admit(&serving, "/?token=x", "10.0.0.7:8765", None));
        assert_eq!(guesses.filter(|guess| *guess == Err(429)).count(), 81);
    }
}
