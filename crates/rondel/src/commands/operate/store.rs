//! The store of an action: a file of SQLite or, with the feature `postgres`, a database of PostgreSQL.

use std::path::Path;
use std::time::Duration;

use rondel_sinks::sqlite::{self, Acknowledgement, Action, NewSilence};

use super::acting::Refusal;

/// Time limit for locks, and for a server.
const LIMIT: Duration = Duration::from_secs(5);

/// A store that is open for actions.
pub(in crate::commands) enum OpenStore {
    /// A file.
    File(sqlite::Operations),
    /// A database.
    #[cfg(feature = "postgres")]
    Database(Box<rondel_sinks::postgres::Operations>),
}

/// Calls a method of either store.
macro_rules! of_store {
    ($store:expr, $operations:ident => $call:expr) => {
        match $store {
            OpenStore::File($operations) => $call.map_err(Refusal::from),
            #[cfg(feature = "postgres")]
            OpenStore::Database($operations) => $call.map_err(Refusal::from),
        }
    };
}

impl OpenStore {
    /// Opens a store, which must exist. `ca` is the file with the authorities of a server's certificate.
    pub(super) fn open(store: &Path, ca: Option<&Path>) -> Result<OpenStore, Refusal> {
        match url(store) {
            Some(url) => OpenStore::open_database(url, ca),
            None if ca.is_some() => {
                Err(Refusal::usage("--tls-ca is for databases: leave it out for a file".to_owned()))
            }
            None => Ok(OpenStore::File(sqlite::Operations::open(store, LIMIT)?)),
        }
    }

    #[cfg(feature = "postgres")]
    fn open_database(url: &str, ca: Option<&Path>) -> Result<OpenStore, Refusal> {
        use rondel_sinks::postgres::{Operations, PostgresOptions};
        use rondel_sinks::tls::TlsOptions;

        let password = std::env::var("PGPASSWORD").ok().filter(|password| !password.is_empty());
        let is_encrypted = ca.is_some() || url.contains("sslmode=require");
        let tls = is_encrypted.then(|| TlsOptions { ca: ca.map(Path::to_owned), ..TlsOptions::default() });
        let options = PostgresOptions {
            url: url.to_owned(),
            // As for psql, the URL comes first.
            password: password.filter(|_| !has_password(url)),
            tls,
            keep: None,
        };
        Ok(OpenStore::Database(Box::new(Operations::open(options, LIMIT)?)))
    }

    #[cfg(not(feature = "postgres"))]
    fn open_database(_: &str, _: Option<&Path>) -> Result<OpenStore, Refusal> {
        Err(Refusal::usage(
            "this Rondel is built without stores in PostgreSQL: build it with the feature `postgres`"
                .to_owned(),
        ))
    }

    /// Whether it is a database: runs read no decisions of operators there.
    pub(in crate::commands) fn is_database(&self) -> bool {
        match self {
            OpenStore::File(_) => false,
            #[cfg(feature = "postgres")]
            OpenStore::Database(_) => true,
        }
    }

    /// Acknowledges a violation.
    pub(in crate::commands) fn acknowledge(
        &mut self,
        violation: i64,
        by: &Acknowledgement<'_>,
    ) -> Result<Action, Refusal> {
        of_store!(self, operations => operations.acknowledge(violation, by))
    }

    /// Silences a property.
    pub(in crate::commands) fn silence(&mut self, silence: &NewSilence<'_>) -> Result<Action, Refusal> {
        of_store!(self, operations => operations.silence(silence))
    }

    /// Ends a silence.
    pub(in crate::commands) fn remove_silence(
        &mut self,
        silence: i64,
        by: &str,
        at: i64,
    ) -> Result<Action, Refusal> {
        of_store!(self, operations => operations.remove_silence(silence, by, at))
    }

    /// Returns the first open violations that began while a silence covered them.
    pub(in crate::commands) fn begun_in_silence(
        &mut self,
        silence: i64,
        limit: u32,
    ) -> Result<Vec<i64>, Refusal> {
        of_store!(self, operations => operations.begun_in_silence(silence, limit))
    }

    /// Returns the names of all properties.
    pub(in crate::commands) fn properties(&mut self) -> Result<Vec<String>, Refusal> {
        of_store!(self, operations => operations.properties())
    }

    /// Returns the parameters of the present instances of a property.
    pub(in crate::commands) fn instances(&mut self, property: &str) -> Result<Vec<String>, Refusal> {
        of_store!(self, operations => operations.instances(property))
    }

    /// Returns the silences of a property that last at a time of day, with their parameters.
    pub(in crate::commands) fn lasting_silences(
        &mut self,
        property: &str,
        at: i64,
    ) -> Result<Vec<(i64, String)>, Refusal> {
        of_store!(self, operations => operations.lasting_silences(property, at))
    }

    /// Notes that an action is in an audit file.
    pub(super) fn note_audited(&mut self, action: i64) -> Result<(), Refusal> {
        of_store!(self, operations => operations.note_audited(action))
    }
}

#[cfg(feature = "postgres")]
impl From<rondel_sinks::postgres::Unacted> for Refusal {
    fn from(unacted: rondel_sinks::postgres::Unacted) -> Refusal {
        use rondel_sinks::postgres::Unacted;
        match unacted {
            Unacted::Refused(why) => Refusal::usage(why),
            Unacted::Failed(failure) => Refusal::file(failure.message),
        }
    }
}

/// Returns the URL of a database; `None` for the path of a file.
fn url(store: &Path) -> Option<&str> {
    let text = store.to_str()?;
    ["postgresql://", "postgres://"].iter().any(|scheme| text.starts_with(scheme)).then_some(text)
}

/// Whether a URL has a password.
#[cfg_attr(not(feature = "postgres"), allow(dead_code))]
fn has_password(url: &str) -> bool {
    let after = url.split_once("://").map_or(url, |(_, after)| after);
    let authority = after.split(['/', '?']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) || url.contains("password=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_distinguished_from_files() {
        assert!(url(Path::new("postgresql://a@b/c")).is_some() && url(Path::new("postgres://b/c")).is_some());
        for file in ["verdicts.db", "postgresql", "./postgresql://a", "http://a/b"] {
            assert_eq!(url(Path::new(file)), None, "{file}");
        }
        for (url, expected) in [
            ("postgresql://a:b@c/d", true),
            ("postgresql://a@c/d?password=x", true),
            ("postgresql://a@c:5432/d", false),
            ("postgresql://c:5432/d?x=a:b@c", false),
        ] {
            assert_eq!(has_password(url), expected, "{url}");
        }
    }
}
