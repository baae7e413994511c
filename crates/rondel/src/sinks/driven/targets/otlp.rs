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
    pub(super) fn sink(&self) -> Result<Box<dyn Sink>, String> {
        use rondel_sinks::otlp::{OtlpOptions, OtlpSink};
        let sink = OtlpSink::new(OtlpOptions {
            url: self.url.clone(),
            headers: super::pairs(&self.headers),
            resource: super::pairs(&self.resource),
            tls: super::tls(self.tls.as_ref()),
        })?;
        Ok(Box::new(sink))
    }

    #[cfg(not(feature = "otlp"))]
    pub(super) fn sink(&self) -> Result<Box<dyn Sink>, String> {
        Err(super::KINDS[5].unavailable())
    }
}
