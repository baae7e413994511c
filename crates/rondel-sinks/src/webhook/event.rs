//! Attributes of CloudEvents, as headers.

use std::collections::HashMap;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::date::utc;
use crate::entry::{Begin, VerdictEntry, id_text};

/// Bytes of an attribute that are sent. Servers refuse headers that are much longer.
const LONGEST: usize = 1024;

/// Origin of events: a run.
#[derive(Default)]
pub(super) struct Source {
    /// Series and host as a URI, encoded for a header.
    uri: String,
    /// Severity of each property that has one.
    severities: HashMap<String, String>,
}

impl Source {
    pub(super) fn of(begin: &Begin<'_>) -> Source {
        let parts = [begin.series, begin.host].into_iter().filter(|part| !part.is_empty()).map(segment);
        let severities = (begin.properties.iter())
            .filter(|property| !property.severity.is_empty())
            .map(|property| (property.name.to_owned(), header(property.severity)))
            .collect();
        // The percent signs of a URI are encoded as well: a receiver decodes headers.
        Source { uri: header(&parts.collect::<Vec<_>>().join("/")), severities }
    }
}

/// An event of one verdict.
pub(super) struct Event<'a> {
    id: &'a str,
    source: &'a str,
    time: String,
    subject: String,
    verdict: &'static str,
    severity: &'a str,
    violation: Option<&'a str>,
}

impl<'a> Event<'a> {
    pub(super) fn new(
        source: &'a Source,
        verdict: &VerdictEntry<'_>,
        id: &'a str,
        violation: Option<&'a str>,
    ) -> Event<'a> {
        Event {
            id,
            source: if source.uri.is_empty() { "rondel" } else { &source.uri },
            time: utc(verdict.at()),
            subject: header(verdict.property),
            verdict: verdict.verdict.as_str(),
            severity: source.severities.get(verdict.property).map_or("", String::as_str),
            violation,
        }
    }

    /// Headers of the binary mode.
    pub(super) fn headers(&self) -> Vec<(&'a str, &str)> {
        let mut headers = vec![
            ("ce-specversion", "1.0"),
            ("ce-id", self.id),
            ("ce-source", self.source),
            ("ce-type", "io.rondel.verdict"),
            ("ce-time", &self.time),
            ("ce-subject", &self.subject),
            ("ce-verdict", self.verdict),
        ];
        if !self.severity.is_empty() {
            headers.push(("ce-severity", self.severity));
        }
        headers.extend(self.violation.map(|violation| ("ce-violation", violation)));
        headers
    }
}

/// Returns the id of a verdict, or a hash of what identifies it where its run gives none.
pub(super) fn id(verdict: &VerdictEntry<'_>) -> String {
    if let Some(id) = verdict.id {
        return id_text(id);
    }
    let mut hash = Sha256::new();
    for text in [verdict.property, verdict.parameters, verdict.values, verdict.verdict.as_str()] {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hash.update(verdict.run.0.to_le_bytes());
    for number in [verdict.time, verdict.at(), i64::from(verdict.is_after), i64::from(verdict.lap)] {
        hash.update(number.to_le_bytes());
    }
    hash.update(verdict.step.map_or(0, |step| step.wrapping_add(1)).to_le_bytes());
    let mut text = String::new();
    for byte in &hash.finalize()[..16] {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Encodes a text for a header: all but printable ASCII, and the space, quote and percent sign, as CloudEvents define it.
fn header(text: &str) -> String {
    encode(text, |byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'%'))
}

/// Encodes a text as a segment of a path of a URI.
fn segment(text: &str) -> String {
    encode(text, |byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=@".contains(&byte))
}

fn encode(text: &str, is_plain: impl Fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let mut bytes = [0; 4];
        let bytes = character.encode_utf8(&mut bytes).as_bytes();
        if out.len() + 3 * bytes.len() > LONGEST {
            break;
        }
        for byte in bytes {
            if is_plain(*byte) {
                out.push(char::from(*byte));
            } else {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::RunKey;

    #[test]
    fn texts_are_encoded() {
        assert_eq!(header("speed \"100%\" \u{fc}"), "speed%20%22100%25%22%20%C3%BC");
        assert_eq!(segment("a/b car:7"), "a%2Fb%20car%3A7");
        assert!(header(&"\u{1f697}".repeat(5000)).len() <= LONGEST);
    }

    #[test]
    fn source_is_series_and_host() {
        let uri = |series, host| Source::of(&Begin { series, host, ..Begin::default() }).uri;
        assert_eq!(uri("car-7", "host a"), "car-7/host%2520a");
        assert_eq!(uri("", "host"), "host");
        assert_eq!(uri("", ""), "");
    }

    #[test]
    fn verdicts_without_id_have_a_hash_of_their_own() {
        let verdict = |step, parameters| VerdictEntry {
            step,
            parameters,
            run: RunKey(1),
            id: None,
            ..crate::entry::sample()
        };
        let ids = [id(&verdict(None, "")), id(&verdict(Some(0), "")), id(&verdict(Some(0), "{}"))];
        assert_eq!(ids[0], id(&verdict(None, "")));
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids.iter().all(|id| id.len() == 32));
        let known = VerdictEntry { id: Some(7), ..crate::entry::sample() };
        assert_eq!(id(&known), "00000000000000000000000000000007");
    }
}
