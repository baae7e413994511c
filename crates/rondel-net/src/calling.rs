//! Calls of services, on networks that have them.

use std::time::Duration;

/// A client of one service.
pub trait ServiceClient: Send + Sync {
    /// Sends a request, and waits up to `limit` for the response. Both are in CDR, with the four bytes of their encoding.
    /// Calls of several threads at once are answered each by its own response.
    ///
    /// # Errors
    /// [`CallError`]
    fn call(&self, request: &[u8], limit: Duration) -> Result<Vec<u8>, CallError>;
}

/// A call without a response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// No server offers the service.
    #[error("no server offers the service")]
    NoServer,
    /// The server does not answer in time.
    #[error("the server has not answered within {} s", .0.as_secs_f64())]
    NoAnswer(Duration),
    /// The server answers with this error.
    #[error("the server answers with the error `{0}`")]
    Failed(String),
    /// The network refuses the request.
    #[error("{0}")]
    Network(String),
}
