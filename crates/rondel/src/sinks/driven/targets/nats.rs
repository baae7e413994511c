//! Streams of NATS.

use std::path::PathBuf;

use rondel_sinks::Sink;

use super::{Secret, TlsFiles};

/// A stream of NATS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsTarget {
    /// URLs of the servers, without passwords.
    pub servers: Vec<String>,
    /// Subject of verdicts, with placeholders.
    pub subject: String,
    /// User.
    pub user: Option<String>,
    /// Password of the user.
    pub password: Option<Secret>,
    /// Token instead of a user.
    pub token: Option<Secret>,
    /// File of credentials instead of a user.
    pub credentials: Option<PathBuf>,
    /// Files of TLS.
    pub tls: Option<TlsFiles>,
}

impl NatsTarget {
    #[cfg(feature = "nats")]
    pub(super) fn sink(&self) -> Result<Box<dyn Sink>, String> {
        use rondel_sinks::nats::{NatsOptions, NatsSink};
        let secret = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.0.clone());
        let sink = NatsSink::new(NatsOptions {
            servers: self.servers.clone(),
            subject: self.subject.clone(),
            user: self.user.clone(),
            password: secret(&self.password),
            token: secret(&self.token),
            credentials: self.credentials.clone(),
            tls: super::tls(self.tls.as_ref()),
        })?;
        Ok(Box::new(sink))
    }

    #[cfg(not(feature = "nats"))]
    pub(super) fn sink(&self) -> Result<Box<dyn Sink>, String> {
        Err(super::KINDS[1].unavailable())
    }
}
