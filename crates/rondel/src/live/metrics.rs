//! Metrics of a run for Prometheus, and probes of its health, over HTTP.
//!
//! | module | contents |
//! |---|---|
//! | [`histogram`], [`meter`] | measurements that the evaluating thread makes, as plain integers |
//! | [`state`] | a copy of all counts for a scrape; liveness and readiness |
//! | `exposition`, `server` | metric families as text; the routes of the HTTP server |

// Without the server nothing reads what is measured.
#![cfg_attr(not(feature = "metrics"), allow(dead_code))]

#[cfg(feature = "metrics")]
mod exposition;
mod histogram;
mod meter;
#[cfg(feature = "metrics")]
mod server;
mod state;

use std::net::SocketAddr;
use std::sync::Arc;

pub use meter::Meter;
pub use state::{Observed, PropertyLabels, RunState, Shown};

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
