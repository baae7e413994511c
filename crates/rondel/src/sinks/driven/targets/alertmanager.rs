//! Alertmanager of Prometheus.

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
            ..AlertmanagerOptions::default()
        })?;
        Ok(Box::new(sink))
    }

    #[cfg(not(feature = "webhook"))]
    pub(super) fn sink(&self) -> Result<Box<dyn Sink>, String> {
        Err(super::KINDS[4].unavailable())
    }
}
