//! Metrics of a run for Prometheus and OpenTelemetry, and probes of its health, over HTTP.
//!
//! | module | contents |
//! |---|---|
//! | [`histogram`], [`meter`] | measurements that the evaluating thread makes, as plain integers |
//! | [`state`], [`figures`] | a copy of all counts for a scrape; liveness and readiness |
//! | `families`, `exposition` | metric families, as text or as readings |
//! | `server` | the routes of the HTTP server |
//! | `push`, `pushes` | the thread that pushes readings to a collector of OpenTelemetry, and its account |

// Without the server nothing reads what is measured.
#![cfg_attr(not(feature = "metrics"), allow(dead_code))]

#[cfg(feature = "metrics")]
mod exposition;
#[cfg(feature = "metrics")]
mod families;
mod figures;
mod histogram;
mod meter;
#[cfg(all(feature = "metrics", feature = "otlp"))]
mod push;
mod pushes;
#[cfg(feature = "metrics")]
mod server;
mod state;

use std::net::SocketAddr;
use std::sync::Arc;

pub use meter::Meter;
#[cfg(all(feature = "metrics", feature = "otlp"))]
pub use push::Pusher;
pub use pushes::PushFigures;
pub use state::{Observed, PropertyLabels, RunState, Shown};

use crate::deployment::PushSettings;
#[cfg(feature = "metrics")]
pub use crate::live::http::HttpServer as Server;

/// The server of a build without metrics: it cannot be started.
#[cfg(not(feature = "metrics"))]
pub struct Server(std::convert::Infallible);

/// Starts the server of metrics, and shows where it listens.
///
/// # Errors
/// The address on which it cannot listen, and the reason.
#[cfg(feature = "metrics")]
pub fn serve(listen: SocketAddr, state: Arc<RunState>) -> Result<Server, String> {
    server::start(listen, state)
}

/// Refuses to start a server.
///
/// # Errors
/// Always: this build has none.
#[cfg(not(feature = "metrics"))]
pub fn serve(_: SocketAddr, _: Arc<RunState>) -> Result<Server, String> {
    Err("this program was built without the feature `metrics`: leave `metrics` out".to_owned())
}

/// The pusher of a build without OpenTelemetry: it cannot be started.
#[cfg(not(all(feature = "metrics", feature = "otlp")))]
pub struct Pusher(std::convert::Infallible);

#[cfg(not(all(feature = "metrics", feature = "otlp")))]
impl Pusher {
    /// Ends to push: there is nothing to end.
    pub fn end(self) -> Option<PushFigures> {
        match self.0 {}
    }
}

/// Starts to push metrics. `series` is the name of the series of runs.
///
/// # Errors
/// A setting is wrong, or the system starts no further thread.
#[cfg(all(feature = "metrics", feature = "otlp"))]
pub fn push(settings: &PushSettings, series: String, state: Arc<RunState>) -> Result<Pusher, String> {
    Pusher::start(settings, series, state)
}

/// Refuses to push metrics.
///
/// # Errors
/// Always: this build cannot.
#[cfg(not(all(feature = "metrics", feature = "otlp")))]
pub fn push(_: &PushSettings, _: String, _: Arc<RunState>) -> Result<Pusher, String> {
    Err(PushSettings::UNAVAILABLE.to_owned())
}
