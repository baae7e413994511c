//! Refused connections. All are counted, and few are reported.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Minimum time between two reports of refused connections.
pub(super) const REPORTS: Duration = Duration::from_secs(10);

/// Refused connections of a server. Those that were not reported yet are reported when it is dropped.
pub(super) struct Refusals {
    /// The noun for what is served.
    what: &'static str,
    /// Number of all.
    total: Arc<AtomicU64>,
    unreported: Mutex<Unreported>,
}

/// Refused connections since the last report.
#[derive(Debug, Default)]
struct Unreported {
    count: u64,
    /// The last one of them, with its reason.
    last: Option<(SocketAddr, String)>,
    /// Time of the last report.
    reported: Option<Instant>,
}

impl Unreported {
    /// Whether the last report is so recent that no further one is due.
    fn is_early(&self, now: Instant) -> bool {
        self.reported.is_some_and(|reported| now.saturating_duration_since(reported) < REPORTS)
    }
}

impl Refusals {
    pub(super) fn new(what: &'static str, total: Arc<AtomicU64>) -> Refusals {
        Refusals { what, total, unreported: Mutex::default() }
    }

    /// Counts a refused connection, and reports it if the last report was long enough ago.
    pub(super) fn note(&self, peer: SocketAddr, why: &str) {
        self.total.fetch_add(1, Ordering::Relaxed);
        if let Some(report) = self.report(peer, why, Instant::now()) {
            crate::warn(&report);
        }
    }

    /// Reports the connections that were not reported yet, if the last report was long enough ago.
    pub(super) fn flush(&self) {
        let now = Instant::now();
        let report = Some(self.unreported()).filter(|unreported| !unreported.is_early(now));
        if let Some(report) = report.and_then(|mut unreported| self.rest(&mut unreported, now)) {
            crate::warn(&report);
        }
    }

    fn report(&self, peer: SocketAddr, why: &str, now: Instant) -> Option<String> {
        let mut unreported = self.unreported();
        if unreported.is_early(now) {
            unreported.count += 1;
            unreported.last = Some((peer, why.to_owned()));
            return None;
        }
        let others = match unreported.count {
            0 => String::new(),
            1 => " (and 1 other since the last report)".to_owned(),
            count => format!(" (and {count} others since the last report)"),
        };
        *unreported = Unreported { reported: Some(now), ..Unreported::default() };
        Some(format!("{} refused a connection from {peer}: {why}{others}", self.what))
    }

    /// The report of those that were not reported yet; `None` if there are none.
    fn rest(&self, unreported: &mut Unreported, now: Instant) -> Option<String> {
        let (peer, why) = unreported.last.take()?;
        let connections = match unreported.count {
            1 => "1 other connection".to_owned(),
            count => format!("{count} other connections"),
        };
        *unreported = Unreported { reported: Some(now), ..Unreported::default() };
        Some(format!("{} refused {connections}, the last one from {peer}: {why}", self.what))
    }

    fn unreported(&self) -> MutexGuard<'_, Unreported> {
        self.unreported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Refusals {
    fn drop(&mut self) {
        let rest = self.rest(&mut self.unreported(), Instant::now());
        if let Some(report) = rest {
            crate::warn(&report);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn refused_connections_are_reported_at_a_limited_rate() {
        let refusals = Refusals::new("the page", Arc::default());
        let peer = "192.0.2.1:5000".parse().unwrap();
        let begin = Instant::now();
        let report = |seconds: u64| {
            refusals.report(peer, "it sent no certificate", begin + Duration::from_secs(seconds))
        };
        let first = report(0).unwrap();
        assert_eq!(first, "the page refused a connection from 192.0.2.1:5000: it sent no certificate");
        assert_eq!((1..10).filter_map(report).count(), 0);
        let second = report(10).unwrap();
        assert_eq!(second, format!("{first} (and 9 others since the last report)"));
        assert_eq!(report(12), None);
        assert!(report(30).unwrap().ends_with("(and 1 other since the last report)"));
        assert_eq!(refusals.rest(&mut refusals.unreported(), begin), None);
        assert_eq!((31..33).filter_map(report).count(), 0);
        assert_eq!(
            refusals.rest(&mut refusals.unreported(), begin).unwrap(),
            "the page refused 2 other connections, the last one from 192.0.2.1:5000: it sent no certificate"
        );
        assert_eq!(refusals.rest(&mut refusals.unreported(), begin), None, "each is reported once");
    }
}
