//! Databases of PostgreSQL.

use std::time::Duration;

use rondel_sinks::Sink;

use super::{Secret, TlsFiles};

/// A database of PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresTarget {
    /// URL of the database, without a password.
    pub url: String,
    /// Password of its user.
    pub password: Option<Secret>,
    /// Files of TLS.
    pub tls: Option<TlsFiles>,
    /// Age from which rows are removed.
    pub keep: Option<Duration>,
}

impl PostgresTarget {
    #[cfg(feature = "postgres")]
    pub(super) fn sink(&self) -> Result<Box<dyn Sink>, String> {
        use rondel_sinks::postgres::{PostgresOptions, PostgresSink};
        let sink = PostgresSink::new(PostgresOptions {
            url: self.url.clone(),
            password: self.password.as_ref().map(|password| password.0.clone()),
            tls: super::tls(self.tls.as_ref()),
            keep: self.keep,
        })?;
        Ok(Box::new(sink))
    }

    #[cfg(not(feature = "postgres"))]
    pub(super) fn sink(&self) -> Result<Box<dyn Sink>, String> {
        Err(super::KINDS[0].unavailable())
    }
}
