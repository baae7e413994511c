//! The routes of metrics and probes.
//!
//! The server answers one request at a time, so that scrapes do not add up.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rondel_net::adapter::Listener as Shown;

use super::exposition;
use super::state::RunState;
use crate::live::http::{Bound, HttpServer, Limits};
use crate::say;

/// Limits of the server.
const LIMITS: Limits = Limits {
    connections: 16,
    accepts: "/",
    longest: Duration::from_secs(5),
    counts_idle: false,
    grace: Duration::ZERO,
};

/// Starts to listen, and shows where.
///
/// # Errors
/// The address on which it cannot listen, and the reason.
pub fn start(listen: SocketAddr, state: Arc<RunState>) -> Result<HttpServer, String> {
    let bound = Bound::listen("metrics", listen)?;
    let place = format!("metrics http://{}/metrics", bound.address);
    let server = bound.serve(routes(state), LIMITS, pending())?;
    let shown = Shown { place, encrypted: false, authenticated: false };
    say(&format!("listening on {shown}"));
    Ok(server)
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
