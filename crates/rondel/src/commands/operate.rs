//! Options and results that the actions of operators on a store share.

use std::path::PathBuf;

use clap::Args;

/// Options of an action of an operator.
#[cfg_attr(not(feature = "sqlite"), allow(dead_code))]
#[derive(Debug, Args)]
pub struct OperatorArguments {
    /// The store: a file or, with the feature `postgres`, the URL of a database, such as
    /// postgresql://rondel@db.example/verdicts, with its password in the environment variable PGPASSWORD
    #[arg(long, value_name = "FILE|URL")]
    store: PathBuf,
    /// Encrypt the connection to a database, and verify its certificate by the authorities of this file (PEM);
    /// with `sslmode=require` in the URL, by those that the system trusts
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// The name of the operator (default: that of the user in the environment, else its number)
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// A comment, which is kept with the action
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// Record the action in this audit file. If a run writes the file, the run records the action once it sees it in the
    /// store
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
}

pub(super) const EXIT_STATUS: &str = "\
Exit status:
  0  the action is stored
  2  wrong usage, or there is no such violation, property or silence, or it does not permit the action
  3  the store or the audit file cannot be read or written";

/// Refuses, and returns the exit status.
#[cfg(not(feature = "sqlite"))]
pub(super) fn unavailable() -> u8 {
    crate::complain(crate::sinks::driven::UNAVAILABLE);
    crate::exit::USAGE
}

#[cfg(feature = "sqlite")]
mod store;

#[cfg(feature = "sqlite")]
pub(super) use acting::{Refusal, finish, member};
#[cfg(feature = "sqlite")]
pub(super) use store::OpenStore;

#[cfg(feature = "sqlite")]
mod acting {
    use std::io::Write as _;

    use rondel_event::terminal::is_obeyed;
    use rondel_sinks::sqlite::{Action, StoreError, StoreErrorKind};

    use super::{OpenStore, OperatorArguments};
    use crate::sinks::audit::{AuditSettings, Opened};
    use crate::sinks::driven::{action_members, is_same_file};
    use crate::{complain, exit, warn};

    /// Longest name of an operator, in characters.
    const LONGEST: usize = 200;

    /// Reason why an action is not carried out, and the exit status.
    #[derive(Debug)]
    pub(in crate::commands) struct Refusal {
        pub(in crate::commands) why: String,
        status: u8,
    }

    impl Refusal {
        /// Wrong usage.
        pub(in crate::commands) fn usage(why: String) -> Refusal {
            Refusal { why, status: exit::USAGE }
        }

        /// A file or a database that cannot be read or written.
        pub(super) fn file(why: String) -> Refusal {
            Refusal { why, status: exit::TRACE }
        }
    }

    impl From<StoreError> for Refusal {
        fn from(error: StoreError) -> Refusal {
            let status = if error.kind == StoreErrorKind::Query { exit::USAGE } else { exit::TRACE };
            Refusal { why: error.message, status }
        }
    }

    impl OperatorArguments {
        /// The comment; empty without one.
        pub(in crate::commands) fn comment(&self) -> &str {
            self.comment.as_deref().unwrap_or_default()
        }

        /// The name of the operator.
        fn name(&self) -> Result<String, Refusal> {
            let set = |name: &&str| std::env::var(name).ok().filter(|user| !user.trim().is_empty());
            let of_user = || ["USER", "LOGNAME"].iter().find_map(set);
            let name = self.by.clone().or_else(of_user).or_else(of_number).unwrap_or_default();
            let name = name.trim().to_owned();
            if name.is_empty() {
                return Err(Refusal::usage("the name of the operator is unknown: add --by NAME".to_owned()));
            }
            if name.chars().count() > LONGEST || name.contains(is_obeyed) {
                let why = format!("--by: a name has at most {LONGEST} characters, and no control characters");
                return Err(Refusal::usage(why));
            }
            Ok(name)
        }

        /// Carries out an action on the store, and records it in the audit file. Nothing is stored if that file cannot be
        /// used.
        pub(in crate::commands) fn carry_out(
            &self,
            act: impl FnOnce(&mut OpenStore, &str) -> Result<Action, Refusal>,
        ) -> Result<Action, Refusal> {
            let name = self.name()?;
            let mut store = OpenStore::open(&self.store, self.tls_ca.as_deref())?;
            let audit = self.audit()?;
            if let (true, Some(AuditFile::Locked), Some(file)) = (store.is_database(), &audit, &self.audit) {
                return Err(Refusal::file(format!(
                    "the audit file {} is written by a run, which records no actions of a database: name another file",
                    file.display()
                )));
            }
            let action = act(&mut store, &name)?;
            let Some((audit, file)) = audit.zip(self.audit.as_ref()) else { return Ok(action) };
            let by_run = match store.is_database() {
                true => "",
                false => ", and a run that writes the store and an audit file records it",
            };
            let unrecorded = |error: String| Refusal::file(format!("{error}; the action is stored{by_run}"));
            match audit.opened().map_err(unrecorded)? {
                None => warn(&format!(
                    "the audit file {} is written by a run: the run records the action if it writes this store, too",
                    file.display()
                )),
                Some(opened) => {
                    opened.append("operator", &action_members(&action)).map_err(unrecorded)?;
                    store.note_audited(action.id)?;
                }
            }
            Ok(action)
        }

        /// Opens the audit file, if there is one.
        fn audit(&self) -> Result<Option<AuditFile>, Refusal> {
            let Some(file) = &self.audit else { return Ok(None) };
            if is_same_file(file, &self.store) {
                let why = format!("--audit: {} is the store: choose another file", file.display());
                return Err(Refusal::usage(why));
            }
            let settings = AuditSettings::of(file.clone());
            settings.check().map_err(Refusal::file)?;
            if !file.exists() {
                return Ok(Some(AuditFile::New(settings)));
            }
            Ok(Some(match Opened::open_unless_locked(settings).map_err(Refusal::file)? {
                Some(opened) => AuditFile::Opened(Box::new(opened)),
                None => AuditFile::Locked,
            }))
        }
    }

    /// The number of the user as a name: containers often set no variable.
    fn of_number() -> Option<String> {
        use std::os::unix::fs::MetadataExt;
        let own = std::fs::metadata("/proc/self").ok()?;
        Some(format!("uid {}", own.uid()))
    }

    /// The audit file of an action.
    enum AuditFile {
        /// Created once the action is carried out: an action that is refused leaves no file.
        New(AuditSettings),
        Opened(Box<Opened>),
        /// A run writes it.
        Locked,
    }

    impl AuditFile {
        /// The open file; `None` if a run writes it.
        fn opened(self) -> Result<Option<Box<Opened>>, String> {
            match self {
                AuditFile::New(settings) => Ok(Opened::open_unless_locked(settings)?.map(Box::new)),
                AuditFile::Opened(opened) => Ok(Some(opened)),
                AuditFile::Locked => Ok(None),
            }
        }
    }

    /// A member of an action as text.
    pub(in crate::commands) fn member<'a>(action: &'a Action, name: &str) -> &'a str {
        action.members.get(name).and_then(serde_json::Value::as_str).unwrap_or_default()
    }

    /// Prints the outcome, and returns the exit status.
    pub(in crate::commands) fn finish(outcome: Result<String, Refusal>) -> u8 {
        match outcome {
            Ok(sentence) => {
                // With standard output closed, the exit status still carries the result.
                let _ = std::io::stdout().lock().write_all(format!("{sentence}\n").as_bytes());
                exit::SATISFIED
            }
            Err(Refusal { why, status }) => {
                complain(&why);
                status
            }
        }
    }
}
