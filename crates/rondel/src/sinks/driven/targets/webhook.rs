//! HTTP servers that receive CloudEvents.

use rondel_sinks::Sink;

use super::{Pair, Secret, TlsFiles};

/// The verdicts that a web hook receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebhookEmit {
    /// All that are emitted.
    #[default]
    All,
    /// Violations, and the verdict that ends each of them.
    Violations,
}

/// An HTTP server that receives CloudEvents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookTarget {
    /// URL to which events are posted.
    pub url: String,
    /// Key of the signatures.
    pub secret: Option<Secret>,
    /// Headers of requests.
    pub headers: Vec<Pair>,
    /// Files of TLS.
    pub tls: Option<TlsFiles>,
    /// The verdicts that it receives.
    pub emit: WebhookEmit,
}

impl WebhookTarget {
    #[cfg(feature = "webhook")]
    pub(super) fn sink(&self) -> Result<Box<dyn Sink>, String> {
        use rondel_sinks::webhook::{Emit, WebhookOptions, WebhookSink};
        let sink = WebhookSink::new(WebhookOptions {
            url: self.url.clone(),
            secret: self.secret.as_ref().map(|secret| secret.0.clone()),
            headers: super::pairs(&self.headers),
            tls: super::tls(self.tls.as_ref()),
            emit: match self.emit {
                WebhookEmit::All => Emit::All,
                WebhookEmit::Violations => Emit::Violations,
            },
        })?;
        Ok(Box::new(sink))
    }

    #[cfg(not(feature = "webhook"))]
    pub(super) fn sink(&self) -> Result<Box<dyn Sink>, String> {
        Err(super::KINDS[3].unavailable())
    }
}
