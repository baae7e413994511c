//! The page on its HTTP server.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use rondel_net::adapter::Listener as Shown;
use rondel_page::{
    Access, Checker, Described, Kind, MOST_VIEWERS, Page, Settings, StoredSignal, keep, router,
};
use rondel_sinks::tls::ServerTlsOptions;

use super::playground::Playground;
use super::source::RunSource;
use crate::deployment::{Deployment, PageSettings, ServerTlsFiles};
use crate::live::http::{Bound, Encryption, HttpServer, Limits};
use crate::live::metrics::RunState;
use crate::live::running::Running;
use crate::live::tap::Tap;
use crate::say;

/// Limits of the server. A viewer has a connection for events and a few for requests; one that reads nothing is closed.
const LIMITS: Limits = Limits {
    connections: 3 * MOST_VIEWERS,
    // Its files are served to everybody.
    accepts: "/api/",
    longest: Duration::from_secs(10),
    counts_idle: true,
    grace: Duration::from_millis(150),
};

/// The features of this program that a page shows.
const FEATURES: [(&str, bool); 15] = [
    ("dds-security", cfg!(feature = "dds-security")),
    ("foxglove", cfg!(feature = "foxglove")),
    ("kafka", cfg!(feature = "kafka")),
    ("lsp", cfg!(feature = "lsp")),
    ("metrics", cfg!(feature = "metrics")),
    ("nats", cfg!(feature = "nats")),
    ("otlp", cfg!(feature = "otlp")),
    ("parquet", cfg!(feature = "parquet")),
    ("postgres", cfg!(feature = "postgres")),
    ("proto", cfg!(feature = "proto")),
    ("registry", cfg!(feature = "registry")),
    ("repl", cfg!(feature = "repl")),
    ("sqlite", cfg!(feature = "sqlite")),
    ("top", cfg!(feature = "top")),
    ("webhook", cfg!(feature = "webhook")),
];

/// The subject of a page.
pub struct Subject {
    /// A run, a store or a checked recording.
    pub kind: Kind,
    /// The store.
    pub store: PathBuf,
    /// The series of runs in it; `None` for that of the latest run.
    pub series: Option<String>,
    /// The specification; `None` for the texts in the store.
    pub described: Option<Described>,
    /// The fields of a checked recording.
    pub signals: Vec<StoredSignal>,
    /// The state of a run.
    pub state: Option<Arc<RunState>>,
    /// The playground, which a run does not have: it must not wait for the checks of viewers.
    pub playground: Option<Playground>,
}

/// A page that is served until it is dropped.
pub struct PageServer {
    page: Arc<Page>,
    tap: Arc<Tap>,
    state: Option<Arc<RunState>>,
    server: Option<HttpServer>,
}

impl PageServer {
    /// Serves a page, and shows where.
    ///
    /// # Errors
    /// The address on which it cannot listen, or the token or file of TLS that cannot be used, and the reason.
    pub fn start(settings: &PageSettings, subject: Subject) -> Result<PageServer, String> {
        let token = settings.token.as_ref().map(|token| token.read("the page")).transpose()?;
        let refused = subject.state.as_ref().map(|state| state.refused_connections()).unwrap_or_default();
        let encryption = settings.tls.as_ref().map(|files| encryption(files, refused)).transpose()?;
        let bound = Bound::listen("the page", settings.listen)?;
        let (encrypted, authenticated) =
            (encryption.is_some(), token.is_some() || settings.verifies_clients());
        let Subject { kind, store, series, described, signals, state, playground } = subject;
        let access =
            Access { listen: bound.address, token, hosts: settings.hosts.clone(), actions: settings.actions };
        let features =
            FEATURES.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| (*name).to_owned()).collect();
        let page = Arc::new(Page::new(Settings {
            kind,
            name: None,
            store,
            series,
            access,
            playground: playground.map(|own| Arc::new(own) as Arc<dyn Checker>),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            features,
            signals,
        }));
        if let Some(described) = described {
            page.show(described, None);
        }
        let place = format!("page {}://{}/", settings.scheme(), bound.address);
        let (routes, beside) = (router(Arc::clone(&page)), keep(Arc::clone(&page)));
        let server = match encryption {
            Some(encryption) => bound.serve_encrypted(encryption, routes, LIMITS, beside)?,
            None => bound.serve(routes, LIMITS, beside)?,
        };
        say(&format!("listening on {}", Shown { place, encrypted, authenticated }));
        Ok(PageServer { page, tap: Arc::default(), state, server: Some(server) })
    }

    /// Returns the copies of messages for viewers.
    pub fn tap(&self) -> Arc<Tap> {
        Arc::clone(&self.tap)
    }

    /// Shows a run, also after a reload.
    pub fn watch(&self, running: &Running, deployment: &Deployment) {
        let Some(state) = &self.state else { return };
        let specification = &deployment.specification;
        let network = |topic: usize| {
            let address = deployment.sources.get(topic)?.address.to_string();
            address.split(':').next().map(str::to_owned)
        };
        let described = Described::of(&specification.sources, &specification.spec, &network);
        let source = RunSource::new(running, deployment, Arc::clone(state), Arc::clone(&self.tap));
        self.page.show(described, Some(Arc::new(source)));
    }
}

/// Reads the files of TLS.
fn encryption(files: &ServerTlsFiles, refused: Arc<AtomicU64>) -> Result<Encryption, String> {
    let ServerTlsFiles { certificate, key, client_ca } = files.clone();
    Encryption::new(ServerTlsOptions { certificate, key, client_ca }, refused)
        .map_err(|why| format!("cannot serve the page: {why}"))
}

impl Drop for PageServer {
    fn drop(&mut self) {
        self.page.end();
        drop(self.server.take());
    }
}
