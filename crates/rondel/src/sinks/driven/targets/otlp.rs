//! Collectors of OpenTelemetry.

use rondel_sinks::Sink;

use super::{Pair, TlsFiles};

/// A collector of OpenTelemetry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpTarget {
    /// URL of the collector.
    pub url: String,
    /// Headers of requests.
    pub headers: Vec<Pair>,
    /// Attributes of the resource.
    pub resource: Vec<Pair>,
    /// Files of TLS.
    pub tls: Option<TlsFiles>,
}

impl OtlpTarget {
    #[cfg(feature = "otlp")]
    fn options(&self) -> rondel_sinks::otlp::OtlpOptions {
        rondel_sinks::otlp::OtlpOptions {
            url: self.url.clone(),
            headers: super::pairs(&self.headers),
            resource: super::pairs(&self.resource),
            tls: super::tls(self.tls.as_ref()),
        }
    }

    #[cfg(feature = "otlp")]
    pub(super) fn sink(&self) -> Result<Box<dyn Sink>, String> {
        Ok(Box::new(rondel_sinks::otlp::OtlpSink::new(self.options())?))
    }

    /// Creates a sender of metrics, without connecting.
    ///
    /// # Errors
    /// A setting is wrong.
    #[cfg(all(feature = "metrics", feature = "otlp"))]
    pub fn metrics_client(
        &self,
        origin: rondel_sinks::otlp::Origin,
    ) -> Result<rondel_sinks::otlp::MetricsClient, String> {
        rondel_sinks::otlp::MetricsClient::new(self.options(), origin)
    }

    /// Checks the settings of a sender of metrics.
    ///
    /// # Errors
    /// A setting is wrong.
    #[cfg(all(feature = "metrics", feature = "otlp"))]
    pub fn check_metrics(&self) -> Result<(), String> {
        self.metrics_client(rondel_sinks::otlp::Origin::default()).map(drop)
    }

    /// Checks nothing: this build sends no metrics.
    ///
    /// # Errors
    /// None.
    #[cfg(not(all(feature = "metrics", feature = "otlp")))]
    pub fn check_metrics(&self) -> Result<(), String> {
        Ok(())
    }

    #[cfg(not(feature = "otlp"))]
    pub(super) fn sink(&self) -> Result<Box<dyn Sink>, String> {
        Err(super::KINDS[5].unavailable())
    }
}
