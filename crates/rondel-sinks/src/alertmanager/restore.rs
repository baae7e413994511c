//! Alerts that earlier runs left open, as Alertmanager returns them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::labels::Labels;
use crate::sink::Failure;

/// Largest answer with alerts, in bytes.
pub(super) const LARGEST: u64 = 32 << 20;

/// An alert of Alertmanager.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Found {
    pub(super) labels: Labels,
    #[serde(default)]
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) starts_at: String,
}

/// Returns the path with a query for the alerts of a series.
pub(super) fn path(path: &str, series: &str) -> String {
    let mut out = format!("{path}?filter=");
    let quoted = series.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    for byte in format!("series=\"{quoted}\"").bytes() {
        match byte {
            b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Reads alerts. Those without the annotation `run` are not of Rondel.
pub(super) fn alerts(body: &[u8]) -> Result<Vec<Found>, serde_json::Error> {
    let mut found: Vec<Found> = serde_json::from_slice(body)?;
    found.retain(|alert| alert.annotations.contains_key("run"));
    Ok(found)
}

pub(super) fn too_long(place: &str) -> Failure {
    Failure::rejected(format!(
        "{place} returns more than {} MiB of alerts of this series; alerts of earlier runs stay until they expire there",
        LARGEST >> 20
    ))
}

pub(super) fn unusable(place: &str, error: &serde_json::Error) -> Failure {
    Failure::rejected(format!(
        "cannot read the alerts that {place} returns: {error}; alerts of earlier runs stay until they expire there"
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn series_is_quoted() {
        assert_eq!(path("/api/v2/alerts", "a\"&b"), "/api/v2/alerts?filter=series%3D%22a%5C%22%26b%22");
    }

    #[test]
    fn only_alerts_of_rondel_are_taken() {
        let body = br#"[{"labels":{"a":"b"},"annotations":{"run":"1"},"startsAt":"x","status":{}},
                        {"labels":{},"annotations":{},"startsAt":"x"}]"#;
        assert_eq!(alerts(body).unwrap().len(), 1);
        assert!(alerts(b"[{}]").is_err() && alerts(b"").is_err());
    }
}
