//! Zenoh: sessions, subscriptions and publishers.
//!
//! Path of a sample: Zenoh's receiving thread calls the [`Receiver`](crate::adapter::Receiver) with one
//! sample at a time; when Zenoh's reader finds nothing more, a task on the same thread reports idle. The
//! receiver publishes within these calls. Zenoh's asynchronous interface is used in this module only.

mod advanced;
mod backlog;
mod consumers;
mod envelope;
mod exposure;
mod present;
mod publisher;
mod recovery;
mod resend;
mod ros2;
mod session;
mod settings;
mod subscription;
mod unsure;
mod watch;

pub use present::{Answering, State};
pub use publisher::Publisher;
pub use ros2::{DescribedType, Ros2Node, Ros2Publisher, Ros2Publishers, Ros2ServiceClient, Ros2Subscription};
pub use session::{Connections, OpenError, Session};
pub use settings::{Mode, Priority, PublisherSettings, RESEND, Settings};
pub use subscription::Subscription;

/// Error of declaring a subscription or a publisher.
#[derive(Debug, thiserror::Error)]
pub enum DeclareError {
    /// The key is no valid key expression: empty, with empty parts, or with `*` or `$` in the wrong place.
    #[error("'{key}' is not a Zenoh key expression: {reason}")]
    Key {
        /// The key.
        key: String,
        /// Zenoh's reason.
        reason: String,
    },
    /// Zenoh refused, for instance because the session is closed.
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

/// Whether some key matches both key expressions; `false` if either is invalid.
pub fn keys_meet(one: &str, other: &str) -> bool {
    matches!((parse_key(one), parse_key(other)), (Ok(one), Ok(other)) if one.intersects(&other))
}

/// Checks an endpoint such as `tcp/192.0.2.1:7447` without using it. An endpoint to listen on may have port 0, for a
/// free port.
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

/// Returns Zenoh's error message in plain words: without its source code locations and structures.
fn reason(error: impl std::fmt::Display) -> String {
    let text = without_locations(&error.to_string());
    if text.starts_with("Unable to connect to any of") {
        return "no answer".to_owned();
    }
    // An error of reading a configuration file, as a structure.
    let message =
        text.split_once("Message { msg: \"").and_then(|(_, rest)| rest.rsplit_once("\", location:"));
    if let Some((message, place)) = message {
        let number = |name: &str| {
            let (_, rest) = place.split_once(name)?;
            rest.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty())
        };
        let at = number("line:").zip(number("column:"));
        let at = at.map(|(line, column)| format!("line {line}, column {column}: ")).unwrap_or_default();
        return format!("{at}{}", message.replace("\\\"", "\""));
    }
    text.replace(
        "empty chunks are forbidden, as well as leading and trailing slashes",
        "it has an empty part: two slashes follow each other, or one is at its begin or end",
    )
}

/// Returns a text of Zenoh, an error or a log line, without source code locations, which do not help users.
pub fn without_locations(text: &str) -> String {
    if !text.contains(".rs:") {
        return text.to_owned();
    }
    let mut words: Vec<String> = Vec::new();
    let mut rest = text.split(' ').peekable();
    while let Some(word) = rest.next() {
        let is_place = |next: &&str| next.contains(".rs:");
        if word == "at" && rest.peek().is_some_and(is_place) {
            let place = rest.next().unwrap_or_default();
            // Closing brackets after the location belong to the word before it.
            if let (Some(last), Some(tail)) = (words.last_mut(), place.split_once(".rs:")) {
                last.push_str(tail.1.trim_matches(|c: char| c.is_ascii_digit() || matches!(c, ':' | '.')));
            }
        } else {
            words.push(word.to_owned());
        }
    }
    // Locations without "at".
    words.retain(|word| !(word.contains(".rs:") && word.contains('/')));
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
    fn error_messages_have_no_source_code_locations() {
        let text = "Can not bind to tcp/127.0.0.1:7447: [in use (os error 98) at /x/src/tcp.rs:61.] at /y/unicast.rs:338.";
        assert_eq!(reason(text), "Can not bind to tcp/127.0.0.1:7447: [in use (os error 98)]");
        assert_eq!(reason("look at this"), "look at this");
        let text = "JSON error: Message { msg: \"unknown field `lisen`, expected \\\"a\\\"\", location: Some(Location { line: 1, column: 17 }) }";
        assert_eq!(reason(text), "line 1, column 17: unknown field `lisen`, expected \"a\"");
        assert_eq!(
            reason("Unable to connect to any of [Single(tls/127.0.0.1:1)]!  at /a/b.rs:7."),
            "no answer"
        );
        let text = "error (/root/.cargo/zenoh/src/x.rs:12) in /y/z.rs:1:2: broken";
        assert_eq!(without_locations(text), "error in broken");
    }
}
