//! Zenoh: sessions, subscriptions and publishers.
//!
//! The path of a sample is: Zenoh's receiving thread, the [`Receiver`](crate::adapter::Receiver),
//! and whatever that publishes, all in one call. Zenoh's asynchronous interface stays in here.

mod publisher;
mod session;
mod settings;
mod subscription;

pub use publisher::Publisher;
pub use session::{Connections, OpenError, Session};
pub use settings::{Mode, Priority, PublisherSettings, Settings};
pub use subscription::Subscription;

/// Why a subscription or a publisher could not be declared.
#[derive(Debug, thiserror::Error)]
pub enum DeclareError {
    /// The key is no key expression (empty, with empty parts, with `*` or `$` in the wrong place).
    #[error("`{key}` is not a Zenoh key expression: {reason}")]
    Key {
        /// The key as it was given.
        key: String,
        /// What Zenoh says about it.
        reason: String,
    },
    /// The session refused, as when it is closed.
    #[error("{0}")]
    Network(String),
}

/// Checks a key expression without a session.
///
/// # Errors
/// [`DeclareError::Key`] with the reason.
pub fn check_key(key: &str) -> Result<(), DeclareError> {
    parse_key(key).map(drop)
}

/// Checks an endpoint such as `tcp/192.0.2.1:7447` without using it.
///
/// # Errors
/// [`OpenError`] with the endpoint and the reason.
pub fn check_endpoint(endpoint: &str) -> Result<(), OpenError> {
    Settings { connect: vec![endpoint.to_owned()], ..Settings::default() }.check()
}

fn parse_key(key: &str) -> Result<::zenoh::key_expr::KeyExpr<'static>, DeclareError> {
    ::zenoh::key_expr::KeyExpr::new(key.to_owned())
        .map_err(|e| DeclareError::Key { key: key.to_owned(), reason: e.to_string() })
}
