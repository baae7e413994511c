//! Records of the start, the reloads and the end of a run in its audit file.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::deployment::Deployment;
use crate::live::reload::outcome::Outcome;
use crate::live::reload::requests::Cause;
use crate::live::running::RunSummary;
use crate::sinks::audit::line::{hex, text};
use crate::sinks::origin::{host, sha256_text};

/// Version of the form of lines.
const FORMAT: u32 = 1;

/// Returns the members of the record of a start: versions, and the hashes of program, specification and configuration.
/// `resumed` is the snapshot that the run continues from.
pub fn start(deployment: &Deployment, resumed: Option<&Path>) -> Value {
    json!({
        "format": FORMAT,
        "version": env!("CARGO_PKG_VERSION"),
        "commit": env!("RONDEL_COMMIT"),
        // The program that runs, also if the file was replaced.
        "program": file_hash(Path::new("/proc/self/exe")).ok(),
        "specification": specification(deployment),
        "deployment": configuration(deployment),
        "arguments": sha256_text(&arguments()),
        "resumed": resumed.map(|file| json!({
            "name": file.display().to_string(),
            "sha256": file_hash(file).ok(),
        })),
        "host": host(),
        "process": std::process::id(),
    })
}

/// The names and the hashes of a specification.
fn specification(deployment: &Deployment) -> Value {
    let specification = &deployment.specification;
    let sources = &specification.sources;
    let main = sources.text().get(sources.main_start()..).unwrap_or_default();
    let others: Vec<&str> = sources.names().filter(|name| *name != sources.name()).collect();
    let with_imports = (!others.is_empty()).then(|| sha256_text(sources.text().as_bytes()));
    json!({
        "name": specification.source,
        "sha256": sha256_text(main.as_bytes()),
        "imports": others,
        "with_imports": with_imports,
    })
}

/// The name and the hash of a deployment that was read from a file.
fn configuration(deployment: &Deployment) -> Option<Value> {
    let (name, content) = deployment.text.as_ref()?;
    Some(json!({"name": name, "sha256": sha256_text(content.as_bytes())}))
}

/// Returns the members of the record of a reload; `deployment` is the one that runs from there on.
pub fn reload(deployment: &Deployment, outcome: &Outcome, cause: Cause) -> Value {
    let members = outcome.members(cause).into_iter();
    let mut record: Map<String, Value> = members.map(|(name, value)| (name.to_owned(), value)).collect();
    record.insert("specification".to_owned(), specification(deployment));
    record.insert("deployment".to_owned(), json!(configuration(deployment)));
    Value::Object(record)
}

/// Returns the members of the record of an end.
pub fn stop(reason: &str, summary: Option<&RunSummary>) -> Value {
    let Some(RunSummary { summary, traffic, flushed, acted, .. }) = summary else {
        return json!({"reason": reason});
    };
    let mut members = json!({
        "reason": reason,
        "received": traffic.received,
        "checked": summary.counts.checked,
        "published": traffic.published,
        "unpublished": traffic.unpublished,
        "lost": summary.lost(),
        "delivered": flushed,
    });
    if let Some(acted) = acted {
        members["actions"] = acted.json();
    }
    members
}

/// The arguments of the process, each followed by a zero. They may contain secrets: only their hash is recorded.
fn arguments() -> Vec<u8> {
    let mut all = Vec::new();
    for argument in std::env::args_os().skip(1) {
        all.extend(argument.into_vec());
        all.push(0);
    }
    all
}

/// Returns the hash of the content of a file.
///
/// # Errors
/// It cannot be read.
fn file_hash(path: &Path) -> io::Result<String> {
    let (mut file, mut hasher, mut part) = (File::open(path)?, Sha256::new(), vec![0; 1 << 18]);
    loop {
        match file.read(&mut part) {
            Ok(0) => return Ok(text(&hex(&hasher.finalize())).to_owned()),
            Ok(length) => hasher.update(&part[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
