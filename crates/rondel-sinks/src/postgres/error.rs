//! Errors of a server or a connection, with what to do about them.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use tokio_postgres::Error;
use tokio_postgres::error::DbError;

use super::Target;
use crate::sink::{Failure, FailureKind};

/// Names an error that occurred while doing something with a database, and the way out.
pub(super) fn failure(error: &Error, doing: &str, target: &Target) -> Failure {
    let (kind, advice) = match error.as_db_error() {
        Some(error) => of_server(error),
        None => of_connection(error),
    };
    let reason = reason(error);
    let advice = match advice {
        Advice::None => String::new(),
        Advice::Do(way_out) => format!("; {way_out}"),
        Advice::Wait("") => format!("; {}", target.again),
        Advice::Wait(cause) => format!("; {cause}; {}", target.again),
    };
    Failure { kind, message: format!("cannot {doing} the database {target}: {reason}{advice}") }
}

/// The server has not answered in time.
pub(super) fn too_slow(target: &Target, limit: Duration) -> Failure {
    Failure::unavailable(format!(
        "cannot write the database {target}: no answer within {:.1} s; check the server and the network before it; {}",
        limit.as_secs_f64(),
        target.again
    ))
}

/// The server has not answered whether it has stored an action of an operator.
pub(super) fn unconfirmed(target: &Target, reason: &str) -> Failure {
    Failure::unavailable(format!(
        "cannot confirm the action in the database {target}: {reason}; the action may be stored: look it up before you \
         repeat it"
    ))
}

/// A call was ended from another thread.
pub(super) fn interrupted(target: &Target) -> Failure {
    Failure::unavailable(format!("writing the database {target} was interrupted"))
}

pub(super) fn newer(target: &Target, version: i32, known: u32) -> Failure {
    Failure::broken(format!(
        "the schema `{}` of the database {target} has version {version}, and this release knows versions up to {known}; \
         use the release that wrote it, or another schema by `?schema=NAME` in the URL",
        target.schema
    ))
}

pub(super) fn missing(target: &Target) -> Failure {
    Failure::broken(format!(
        "the database {target} has no store in the schema `{}`: name the schema by `?schema=NAME` in the URL",
        target.schema
    ))
}

pub(super) fn not_a_store(target: &Target) -> Failure {
    Failure::broken(format!(
        "the schema `{}` of the database {target} has tables of another program; choose another schema by \
         `?schema=NAME` in the URL",
        target.schema
    ))
}

pub(super) fn no_right(target: &Target) -> Failure {
    Failure::unavailable(format!(
        "cannot use the schema `{}` of the database {target}: this user has no right to it; let its owner run GRANT \
         USAGE and the other grants of docs/reference/store-postgres.md",
        target.schema
    ))
}

pub(super) fn too_old(target: &Target, found: i32, needed: i32) -> Failure {
    Failure::broken(format!(
        "the database {target} is of PostgreSQL {found}, and a store needs PostgreSQL {needed} or later"
    ))
}

/// The way out of a fault.
#[derive(Clone, Copy)]
enum Advice {
    None,
    /// Something is to be changed.
    Do(&'static str),
    /// The fault may pass by itself. Its cause, or empty.
    Wait(&'static str),
}

/// Returns the kind of an error of the server by its SQLSTATE, and the way out.
fn of_server(error: &DbError) -> (FailureKind, Advice) {
    let code = error.code().code();
    let advice = match code {
        "28P01" => Advice::Do("set the password that the server expects of this user"),
        "28000" => Advice::Do(
            "check the user, and pg_hba.conf of the server; set `tls` if the server demands encryption",
        ),
        "3D000" => Advice::Do("create the database, or name another one in the URL"),
        "42501" => Advice::Do(
            "let the owner grant the rights that docs/reference/store-postgres.md lists, or make the schema once",
        ),
        "53100" => Advice::Do("free space on the disk of the server"),
        "53300" => Advice::Do("end other connections, or raise max_connections of the server"),
        "25006" => Advice::Do("the server only reads: name the primary server in the URL"),
        "55P03" => Advice::Wait("another session holds a lock"),
        "40001" | "40P01" => Advice::Wait("another session writes the same rows"),
        "57014" => Advice::Wait("the server was too slow, or somebody cancelled the statement"),
        "57P01" | "57P02" => Advice::Wait("the server was stopped, or an administrator ended the connection"),
        "57P03" => Advice::Wait("the server starts or stops"),
        "3F000" | "42P01" | "42703" | "42883" => Advice::Do(
            "the schema was changed by others: bring its tables back, or drop the schema to begin a new one",
        ),
        "XX001" | "XX002" => Advice::Do("the data of the server are damaged: restore them from a backup"),
        _ => Advice::None,
    };
    let kind = match &code[..2] {
        // Data exceptions, constraints, sizes: the entries are at fault.
        "21" | "22" | "23" | "54" => FailureKind::Rejected,
        _ => FailureKind::Unavailable,
    };
    (kind, advice)
}

/// Returns the kind of an error that the server has not sent, and the way out.
fn of_connection(error: &Error) -> (FailureKind, Advice) {
    let text = reason(error);
    if text.starts_with("error serializing parameter") {
        return (FailureKind::Rejected, Advice::None);
    }
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            if error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
                let advice = "check that the host in the URL is a name of the server's certificate, and that `ca` of `tls` \
                              is the file of its authority";
                return (FailureKind::Unavailable, Advice::Do(advice));
            }
            if error.kind() == io::ErrorKind::ConnectionRefused || error.kind() == io::ErrorKind::NotFound {
                return (
                    FailureKind::Unavailable,
                    Advice::Do("check that the server runs, and the host and port in the URL"),
                );
            }
        }
        cause = error.source();
    }
    let advice = match text {
        _ if text.contains("password missing") => Advice::Do("set a password"),
        _ if text.contains("does not support TLS") => {
            Advice::Do("leave `tls` out, or set `ssl` of the server")
        }
        _ if text.contains("lookup address") => Advice::Do("check the host in the URL"),
        _ => Advice::Wait(""),
    };
    (FailureKind::Unavailable, advice)
}

/// Returns the texts of an error and its causes. None contains a password.
pub(super) fn reason(error: &Error) -> String {
    if let Some(error) = error.as_db_error() {
        return format!("{} (SQLSTATE {})", error.message(), error.code().code());
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += ": ";
        text += &error.to_string();
        cause = error.source();
    }
    text
}
