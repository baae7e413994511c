//! Answers of servers, and what they mean.

use std::io::Read as _;
use std::time::{Duration, Instant};

use rondel_event::terminal::escaped;
use ureq::http::{HeaderMap, Response};

use super::date::parse_http_date;
use crate::sink::Failure;

/// Characters of an answer that a message repeats.
const SHOWN: usize = 200;

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    status: u16,
    retry_after: Option<String>,
    location: Option<String>,
    body: Vec<u8>,
    /// Whether the body is longer than what was read.
    is_cut: bool,
    /// Pause that the client makes after it.
    pause: Option<Pause>,
}

/// Pause that a server requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pause {
    requested: Duration,
    kept: Duration,
}

impl Answer {
    /// Reads at most `largest` bytes of the body. The connection is kept if that was all of it.
    pub(super) fn read(response: Response<ureq::Body>, largest: u64, limit: Duration) -> Answer {
        let text = |headers: &HeaderMap, name| {
            headers.get(name).and_then(|value| value.to_str().ok()).map(|text: &str| cut(text).to_owned())
        };
        let status = response.status().as_u16();
        let retry_after = text(response.headers(), "retry-after");
        let location = text(response.headers(), "location");
        let mut body = Vec::new();
        let mut reader = response.into_body().into_reader();
        let (deadline, mut piece) = (Instant::now() + limit, [0; 4096]);
        let is_cut = loop {
            // A body that ends early does not change what the status says.
            let Ok(count) = reader.read(&mut piece) else { break true };
            let room = usize::try_from(largest).unwrap_or(usize::MAX) - body.len();
            body.extend_from_slice(&piece[..count.min(room)]);
            if count > room || Instant::now() > deadline {
                break true;
            }
            if count == 0 {
                break false;
            }
        };
        Answer { status, retry_after, location, body, is_cut, pause: None }
    }

    /// Returns the status.
    #[cfg(any(feature = "otlp", test))]
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// Returns the body if all of it was read.
    pub(crate) fn body(&self) -> Option<&[u8]> {
        (!self.is_cut).then_some(&self.body)
    }

    /// Whether the server accepted the request.
    pub(crate) fn is_accepted(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether the status says nothing about what was sent: the address, the token or a proxy is to be corrected.
    #[cfg(any(feature = "webhook", test))]
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self.status, 401 | 403 | 404 | 405 | 407)
    }

    /// Notes the pause that the client makes at this time of day, at most `longest`, and returns it.
    pub(super) fn set_pause(&mut self, now: i64, longest: Duration) -> Option<Duration> {
        let pause = |requested: Duration| Pause { requested, kept: requested.min(longest) };
        self.pause = self.retry_after(now).map(pause);
        self.pause.map(|pause| pause.kept)
    }

    /// Pause that the server requests with 429 or an error of its own, at this time of day.
    fn retry_after(&self, now: i64) -> Option<Duration> {
        let text = self.retry_after.as_deref()?.trim();
        if self.status != 429 && self.status < 500 {
            return None;
        }
        if let Ok(seconds) = text.parse::<u64>() {
            return Some(Duration::from_secs(seconds));
        }
        let seconds = parse_http_date(text)? - now.div_euclid(1_000_000_000);
        u64::try_from(seconds).ok().map(Duration::from_secs)
    }

    /// Returns how the answer is reported: place, status, the begin of its text, and the pause after it.
    pub(crate) fn described(&self, place: &str) -> String {
        let name = ureq::http::StatusCode::from_u16(self.status).ok();
        let name = name.and_then(|status| status.canonical_reason()).unwrap_or("an unknown status");
        let text = String::from_utf8_lossy(&self.body);
        let text = match &*escaped(cut(&text).trim()) {
            "" => format!("{place} answers {} {name}", self.status),
            text => format!("{place} answers {} {name}: {text}", self.status),
        };
        match self.pause {
            None => text,
            Some(Pause { requested, kept }) if requested == kept => {
                format!("{text}; nothing is sent for {} s", kept.as_secs())
            }
            Some(Pause { requested, kept }) => {
                let (requested, kept) = (requested.as_secs(), kept.as_secs());
                format!("{text}; nothing is sent for {kept} s, the longest pause (it requests {requested} s)")
            }
        }
    }

    /// Returns the failure of an answer that is not an acceptance, for a server that follows HTTP in general.
    #[cfg(any(feature = "webhook", test))]
    pub(crate) fn failure(&self, place: &str) -> Failure {
        let described = self.described(place);
        match self.status {
            300..400 => self.redirect(place),
            408 | 425 | 429 | 500.. => Failure::unavailable(described),
            _ if self.is_denied() => Failure::unavailable(described),
            // Neither an acceptance nor an error: no server that understands the request answers so.
            ..200 => Failure::unavailable(described),
            _ => Failure::rejected(described),
        }
    }

    /// Returns the failure of a redirect, which is not followed: a request with verdicts goes only to the configured host.
    pub(crate) fn redirect(&self, place: &str) -> Failure {
        // Queries of addresses may be secrets.
        let location = self.location.as_deref().unwrap_or_default();
        let target = location.split(['?', '#']).next().unwrap_or_default();
        let target = if target.is_empty() { "nowhere" } else { target };
        Failure::unavailable(format!(
            "{place} redirects to {target} with status {}; redirects are not followed, so set the address to the target",
            self.status
        ))
    }
}

/// Returns the begin of a text.
fn cut(text: &str) -> &str {
    text.char_indices().nth(SHOWN).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sink::FailureKind::{Rejected, Unavailable};

    fn answer(status: u16, retry_after: Option<&str>) -> Answer {
        let retry_after = retry_after.map(str::to_owned);
        let body = b"why\nnot".to_vec();
        Answer { status, retry_after, location: None, body, is_cut: false, pause: None }
    }

    #[test]
    fn status_decides_whether_to_try_again() {
        let kinds = [
            (100, Unavailable),
            (302, Unavailable),
            (308, Unavailable),
            (400, Rejected),
            (401, Unavailable),
            (403, Unavailable),
            (404, Unavailable),
            (405, Unavailable),
            (407, Unavailable),
            (408, Unavailable),
            (410, Rejected),
            (413, Rejected),
            (425, Unavailable),
            (429, Unavailable),
            (500, Unavailable),
            (503, Unavailable),
            (599, Unavailable),
            (999, Unavailable),
        ];
        for (status, kind) in kinds {
            assert_eq!(answer(status, None).failure("http://a").kind, kind, "{status}");
        }
        assert_eq!(
            answer(404, None).failure("http://a").message,
            "http://a answers 404 Not Found: why\\nnot"
        );
        for status in [200, 202, 204, 299] {
            assert!(answer(status, None).is_accepted());
        }
    }

    #[test]
    fn pause_is_read_in_both_forms() {
        let now = 784_111_777 * 1_000_000_000;
        for (status, text, seconds) in [
            (429, "7", Some(7)),
            (503, " 120 ", Some(120)),
            (503, "Sun, 06 Nov 1994 08:49:47 GMT", Some(10)),
            (503, "Sun, 06 Nov 1994 08:49:07 GMT", None),
            (503, "soon", None),
            (503, "-5", None),
            (200, "7", None),
            (400, "7", None),
        ] {
            assert_eq!(
                answer(status, Some(text)).retry_after(now),
                seconds.map(Duration::from_secs),
                "{text}"
            );
        }
    }
}
