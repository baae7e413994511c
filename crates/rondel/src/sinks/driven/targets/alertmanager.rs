//! Alertmanager of Prometheus.

use std::time::Duration;

use rondel_sinks::Sink;

use super::{Pair, TlsFiles};

/// Alertmanager of Prometheus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertmanagerTarget {
    /// URL of Alertmanager.
    pub url: String,
    /// Labels of every alert.
    pub labels: Vec<Pair>,
    /// Headers of requests.
    pub headers: Vec<Pair>,
    /// Files of TLS.
    pub tls: Option<TlsFiles>,
    /// Time after the last sending at which Alertmanager ends an alert.
    pub hold: Duration,
    /// Interval at which open alerts are sent again.
    pub resend: Duration,
}

impl AlertmanagerTarget {
    #[cfg(feature = "webhook")]
    pub(super) fn sink(&self) -> Result<Box<dyn Sink>, String> {
        use rondel_sinks::alertmanager::{AlertmanagerOptions, AlertmanagerSink};
        let sink = AlertmanagerSink::new(AlertmanagerOptions {
            url: self.url.clone(),
            labels: super::pairs(&self.labels),
            headers: super::pairs(&self.headers),
            tls: super::tls(self.tls.as_ref()),
            resend: self.resend,
            hold: self.hold,
        })?;
        Ok(Box::new(sink))
    }

    #[cfg(not(feature = "webhook"))]
    pub(super) fn sink(&self) -> Result<Box<dyn Sink>, String> {
        Err(super::KINDS[4].unavailable())
    }
}
