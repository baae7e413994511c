//! Zenoh: sessions, subscriptions and publishers.
//!
//! The path of a sample is: Zenoh's receiving thread, which calls the
//! [`Receiver`](crate::adapter::Receiver) with one sample at a time; and, when Zenoh's reader finds
//! nothing more, a task on the same thread, which tells the receiver so. What the receiver publishes
//! leaves in one of these calls. Zenoh's asynchronous interface stays in here.

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
    #[error("'{key}' is not a Zenoh key expression: {reason}")]
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

/// Whether something can be published that both key expressions stand for. False where one is none.
pub fn keys_meet(one: &str, other: &str) -> bool {
    matches!((parse_key(one), parse_key(other)), (Ok(one), Ok(other)) if one.intersects(&other))
}

/// Checks an endpoint such as `tcp/192.0.2.1:7447` without using it. To listen on, it may have port 0,
/// which stands for a free port.
///
/// # Errors
/// [`OpenError`] with the endpoint and the reason.
pub fn check_endpoint(endpoint: &str, listen: bool) -> Result<(), OpenError> {
    let endpoints = vec![endpoint.to_owned()];
    let settings = match listen {
        true => Settings { listen: endpoints, ..Settings::default() },
        false => Settings { connect: endpoints, ..Settings::default() },
    };
    settings.check()
}

/// What Zenoh says of a failure, without the places in its own source code, which tell its makers
/// something and nobody else.
fn reason(error: impl std::fmt::Display) -> String {
    let text = error.to_string();
    let mut words: Vec<String> = Vec::new();
    let mut rest = text.split(' ').peekable();
    while let Some(word) = rest.next() {
        let is_place = |next: &&str| next.contains(".rs:");
        if word == "at" && rest.peek().is_some_and(is_place) {
            let place = rest.next().unwrap_or_default();
            // What closes behind the place belongs to what is before it.
            if let (Some(last), Some(tail)) = (words.last_mut(), place.split_once(".rs:")) {
                last.push_str(tail.1.trim_matches(|c: char| c.is_ascii_digit() || matches!(c, ':' | '.')));
            }
        } else {
            words.push(word.to_owned());
        }
    }
    words.join(" ")
}

fn parse_key(key: &str) -> Result<::zenoh::key_expr::KeyExpr<'static>, DeclareError> {
    ::zenoh::key_expr::KeyExpr::new(key.to_owned()).map_err(|e| {
        let reason = reason(e);
        // Zenoh repeats the key before the reason.
        let reason = reason.rsplit_once("`: ").map_or(reason.as_str(), |(_, reason)| reason);
        DeclareError::Key { key: key.to_owned(), reason: reason.to_owned() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_no_places_in_source_code() {
        let said = "Can not bind to tcp/127.0.0.1:7447: [in use (os error 98) at /x/src/tcp.rs:61.] at /y/unicast.rs:338.";
        assert_eq!(reason(said), "Can not bind to tcp/127.0.0.1:7447: [in use (os error 98)]");
        assert_eq!(reason("look at this"), "look at this");
    }
}
