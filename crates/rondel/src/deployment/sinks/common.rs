//! Settings that several sinks beside networks have, the store among them.

use std::env::{self, VarError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::alignment::nanoseconds;
use super::super::limits::bytes;
use super::super::yaml::{Item, Members, Mistakes, Synonyms};
use super::Context;
use crate::sinks::driven::targets::{Pair, Secret, TlsFiles};
use crate::sinks::spool::SpoolSettings;

/// The limits of the time for which a sink is waited for.
const WAITS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(60));
/// The most days that rows are kept.
const MOST_DAYS: i64 = 36_500;
/// The largest size of a file with entries, unless it is set.
const SPOOL_LIMIT: u64 = 256 << 20;
/// The folder of these files, unless it is set; beside the deployment.
const SPOOL_DIRECTORY: &str = "spool";

/// Names that people write for settings of spools.
const SPOOL: Synonyms = &[
    (&["size", "max_size", "bytes"], "write `limit`, such as `limit: 64 MiB`"),
    (&["folder", "path", "file", "dir", "to"], "write `directory`"),
];
/// The same of TLS.
const TLS: Synonyms = &[
    (&["ca_file", "cafile", "ca_cert", "ca_certs"], "write `ca`"),
    (&["cert", "certfile", "cert_file", "client_cert"], "write `certificate`"),
    (&["keyfile", "key_file", "client_key", "private_key"], "write `key`"),
];
/// Ends of names whose values are secrets.
const SECRETS: [&str; 7] = ["authorization", "password", "secret", "token", "api-key", "cookie", "key.pem"];

/// Reads the time for which a full queue waits; `None` to drop at once. `what` has the setting.
pub(in super::super) fn wait(what: &str, item: Item<'_>, mistakes: &mut Mistakes) -> Option<Duration> {
    let text = item.text("slow_consumer", mistakes)?;
    if text == "drop" {
        return None;
    }
    let wait = nanoseconds(&text).and_then(|nanos| u64::try_from(nanos).ok()).map(Duration::from_nanos);
    let wait = wait.filter(|wait| (WAITS.0..=WAITS.1).contains(wait));
    if wait.is_none() {
        mistakes.at(
            item,
            format!("`slow_consumer` of {what} must be drop, or a duration from 10 ms to 60 s, such as 1 s"),
        );
    }
    wait
}

/// Reads a number of days.
pub(in super::super) fn days(item: Item<'_>, mistakes: &mut Mistakes) -> Option<Duration> {
    let days = item.integer("days", 1..=MOST_DAYS, mistakes)?;
    Some(Duration::from_secs(days.unsigned_abs() * 86_400))
}

/// Reads the file for entries that wait: `true`, a folder, or further settings.
pub(in super::super) fn spool(
    item: Item<'_>,
    folder: &Path,
    mistakes: &mut Mistakes,
) -> Option<SpoolSettings> {
    let mut settings =
        SpoolSettings { directory: folder.join(SPOOL_DIRECTORY), limit: SPOOL_LIMIT, is_default: false };
    if !item.is_mapping() {
        match item.text("spool", mistakes)?.as_str() {
            "true" => {}
            "false" => return None,
            directory => settings.directory = folder.join(directory),
        }
        return Some(settings);
    }
    let mut members = item.members("spool", mistakes);
    if let Some(directory) = members.get("directory").and_then(|item| item.text("directory", mistakes)) {
        settings.directory = folder.join(directory);
    }
    if let Some(item) = members.get("limit")
        && let Some(text) = item.text("limit", mistakes)
    {
        match bytes(&text).filter(|bytes| *bytes >= 1 << 10) {
            Some(bytes) => settings.limit = bytes as u64,
            None => mistakes.at(
                item,
                "`limit` of `spool` must be a whole number with a unit, from 1 KiB to 4 GiB, such as 64 MiB",
            ),
        }
    }
    members.finish(SPOOL, mistakes);
    Some(settings)
}

/// Reads a text that is not empty.
pub(super) fn name_of(setting: &str, item: Item<'_>, mistakes: &mut Mistakes) -> Option<String> {
    let name = item.text(setting, mistakes)?;
    if name.trim().is_empty() {
        mistakes.at(item, format!("`{setting}` must not be empty"));
        return None;
    }
    Some(name)
}

/// Reads the name of an environment variable, and its value.
pub(super) fn secret(
    setting: &str,
    item: Item<'_>,
    context: Context<'_>,
    mistakes: &mut Mistakes,
) -> Option<Secret> {
    let variable = item.text(setting, mistakes)?;
    if !context.joins {
        return Some(Secret(String::new()));
    }
    let value = match variable.is_empty() || variable.contains(['=', '\0']) {
        true => Err(VarError::NotPresent),
        false => env::var(&variable),
    };
    match value {
        Ok(value) if !value.is_empty() => return Some(Secret(value)),
        Err(VarError::NotUnicode(_)) => {
            mistakes.at(item, format!("the environment variable {variable} of `{setting}` is not UTF-8"));
        }
        _ => mistakes.at(
            item,
            format!(
                "the environment variable {variable} of `{setting}` is not set: set it where Rondel runs"
            ),
        ),
    }
    None
}

/// Reads the name of a file, which must exist.
pub(in super::super) fn file(
    setting: &str,
    item: Item<'_>,
    folder: &Path,
    mistakes: &mut Mistakes,
) -> Option<PathBuf> {
    let path = folder.join(item.text(setting, mistakes)?);
    if !path.is_file() {
        mistakes.at(item, format!("`{setting}` names the file {}, which does not exist", path.display()));
        return None;
    }
    Some(path)
}

/// Reads the files of TLS.
pub(super) fn tls(item: Item<'_>, folder: &Path, mistakes: &mut Mistakes) -> TlsFiles {
    let mut members = item.members("tls", mistakes);
    let mut read = |name: &'static str, mistakes: &mut Mistakes| {
        let item = members.get(name)?;
        file(name, item, folder, mistakes)
    };
    let ca = read("ca", mistakes);
    let (certificate, key) = (read("certificate", mistakes), read("key", mistakes));
    let one_of_two = match (members.get("certificate"), members.get("key")) {
        (Some(item), None) => Some((item, "`certificate` of `tls` needs its `key`")),
        (None, Some(item)) => Some((item, "`key` of `tls` needs its `certificate`")),
        _ => None,
    };
    if let Some((item, why)) = one_of_two {
        mistakes.at(item, why);
    }
    members.finish(TLS, mistakes);
    TlsFiles { ca, certificate, key }
}

/// Reads names with values, none of which is a secret: those are read from environment variables, which `of_variables`
/// names.
pub(super) fn pairs(
    members: &mut Members<'_>,
    setting: &'static str,
    of_variables: Option<&'static str>,
    context: Context<'_>,
    mistakes: &mut Mistakes,
) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    let plain = members.get(setting);
    for (name, _, item) in plain.map_or_else(Vec::new, |item| item.entries(setting, mistakes)) {
        let lower = name.to_ascii_lowercase();
        if let Some(other) = of_variables
            && SECRETS.iter().any(|end| lower.ends_with(end))
        {
            mistakes.at(
                item,
                format!(
                    "the value of '{name}' does not belong in this file: name an environment variable with \
                     `{other}: {{ {name}: VARIABLE }}`"
                ),
            );
            continue;
        }
        let Some(value) = item.text(setting, mistakes) else { continue };
        pairs.push(Pair { name, value: Secret(value) });
    }
    let Some(other) = of_variables else { return pairs };
    let secrets = members.get(other);
    for (name, key, item) in secrets.map_or_else(Vec::new, |item| item.entries(other, mistakes)) {
        if pairs.iter().any(|pair| pair.name.eq_ignore_ascii_case(&name)) {
            mistakes.at(key, format!("'{name}' is in `{setting}`, too: remove one of them"));
        }
        if let Some(value) = secret(other, item, context, mistakes) {
            pairs.push(Pair { name, value });
        }
    }
    pairs
}
