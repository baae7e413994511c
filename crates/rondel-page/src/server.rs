//! Requests and responses of axum, and the headers that every response has.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Response, StatusCode};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval};

use crate::answer::{Problem, Reply};
use crate::events::INTERVAL;
use crate::page::Page;
use crate::request::Request;

/// Largest body of a request, in bytes.
const BODY: usize = 2 << 20;
/// Requests that read the store or check at once.
const AT_ONCE: usize = 2;

/// Nothing but the files of this server is loaded or connected to, and no other page shows this one in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page with its limit of work.
#[derive(Clone)]
struct Serving {
    page: Arc<Page>,
    work: Arc<Semaphore>,
}

/// Returns the routes of a page.
pub fn router(page: Arc<Page>) -> Router {
    let work = Arc::new(Semaphore::new(AT_ONCE));
    Router::new().fallback(respond).with_state(Serving { page, work })
}

/// Reads new verdicts while a viewer watches, until it is dropped.
pub async fn keep(page: Arc<Page>) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if !page.is_watched(now()) {
            continue;
        }
        let page = Arc::clone(&page);
        // A panic is reported by its thread.
        let _ = tokio::task::spawn_blocking(move || page.look(now())).await;
    }
}

/// The time of day, in nanoseconds.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

async fn respond(State(serving): State<Serving>, http: HttpRequest) -> Response<Body> {
    let Serving { page, work } = serving;
    let (parts, body) = http.into_parts();
    let mut request = read(&parts.headers, parts.method.as_str(), &parts.uri);
    if let Err(problem) = page.guard.admit(&request, now()) {
        return response(problem.into());
    }
    if request.method == "POST" {
        match to_bytes(body, BODY).await {
            Ok(bytes) => request.body = bytes.to_vec(),
            Err(_) => {
                return response(Problem::new(413, format!("a request has at most {BODY} bytes")).into());
            }
        }
    }
    if request.method == "GET" && request.path == "/api/v1/events" {
        return events(page, request).await;
    }
    // Files are in memory: they wait neither for answers that read the store nor for another thread.
    if !request.is_api() {
        return response(page.route(&request, now()).unwrap_or_else(Reply::from));
    }
    // The semaphore is never closed.
    let permit = work.acquire_owned().await;
    let answered = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        page.route(&request, now()).unwrap_or_else(Reply::from)
    });
    let failed =
        |_| Problem::new(500, "the request could not be answered; this is a defect of Rondel").into();
    response(answered.await.unwrap_or_else(failed))
}

async fn events(page: Arc<Page>, request: Request) -> Response<Body> {
    // The first look reads the store.
    let begun = tokio::task::spawn_blocking(move || page.events(&request, now)).await;
    match begun {
        Ok(Ok(events)) => {
            let mut response = Response::new(Body::from_stream(events));
            set(response.headers_mut(), header::CONTENT_TYPE, "text/event-stream");
            protect(response.headers_mut());
            response
        }
        Ok(Err(problem)) => response(problem.into()),
        Err(_) => response(
            Problem::new(500, "the request could not be answered; this is a defect of Rondel").into(),
        ),
    }
}

/// Takes what answers need from a request.
pub(crate) fn read(headers: &HeaderMap, method: &str, uri: &axum::http::Uri) -> Request {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let accepts_gzip = text(header::ACCEPT_ENCODING).is_some_and(|accepted| {
        accepted.split(',').any(|coding| {
            let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
            let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse().ok());
            name.trim().eq_ignore_ascii_case("gzip") && weight != Some(0.0_f32)
        })
    });
    Request {
        method: method.to_owned(),
        path: uri.path().to_owned(),
        query: uri.query().unwrap_or_default().to_owned(),
        host: uri.authority().map(|authority| authority.as_str().to_owned()).or_else(|| text(header::HOST)),
        origin: text(header::ORIGIN),
        authorization: text(header::AUTHORIZATION),
        content_type: text(header::CONTENT_TYPE),
        last_event: text(HeaderName::from_static("last-event-id")),
        known_tag: text(header::IF_NONE_MATCH),
        accepts_gzip,
        body: Vec::new(),
    }
}

/// The response of an answer.
fn response(reply: Reply) -> Response<Body> {
    let Reply { status, content_type, body, is_gzip, tag } = reply;
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    set(headers, header::CONTENT_TYPE, content_type);
    if is_gzip {
        set(headers, header::CONTENT_ENCODING, "gzip");
    }
    match tag.and_then(|tag| HeaderValue::from_str(&tag).ok()) {
        Some(tag) => {
            headers.insert(header::ETAG, tag);
            set(headers, header::CACHE_CONTROL, "no-cache");
            set(headers, header::VARY, "Accept-Encoding");
        }
        None => set(headers, header::CACHE_CONTROL, "no-store"),
    }
    if status == 401 {
        set(headers, header::WWW_AUTHENTICATE, "Bearer");
    }
    if status == 429 || status == 503 {
        set(headers, header::RETRY_AFTER, "1");
    }
    protect(headers);
    response
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &'static str) {
    headers.insert(name, HeaderValue::from_static(value));
}

/// Adds the headers that limit what browsers do with a response.
fn protect(headers: &mut HeaderMap) {
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-frame-options", "DENY"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            (header::HOST, "localhost:1"),
            (header::ACCEPT_ENCODING, "br, gzip;q=0.5"),
            (header::AUTHORIZATION, "Bearer x"),
        ] {
            set(&mut headers, name, value);
        }
        let uri = "/api/v1/events?after=a-1".parse().unwrap();
        let request = read(&headers, "GET", &uri);
        assert_eq!((request.path.as_str(), request.query.as_str()), ("/api/v1/events", "after=a-1"));
        assert_eq!(request.host.as_deref(), Some("localhost:1"));
        assert!(request.accepts_gzip && request.authorization.is_some());
        set(&mut headers, header::ACCEPT_ENCODING, "gzip; q=0, br");
        let absolute = "http://attacker.example/".parse().unwrap();
        let request = read(&headers, "GET", &absolute);
        assert!(!request.accepts_gzip);
        assert_eq!(request.host.as_deref(), Some("attacker.example"), "the target names the host");
    }

    #[test]
    fn every_response_is_protected() {
        for reply in [Reply::from(Problem::new(401, "x")), Reply::of(200, "text/html", &b"x"[..])] {
            let is_refused = reply.status == 401;
            let response = response(reply);
            let headers = response.headers();
            assert!(headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
            assert_eq!(headers["x-content-type-options"], "nosniff");
            assert_eq!(headers.contains_key(header::WWW_AUTHENTICATE), is_refused);
            assert!(!headers.contains_key(header::SET_COOKIE));
            assert!(!headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
        }
    }
}
