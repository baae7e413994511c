//! The server for Foxglove on its port.

use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rondel_net::adapter::{Listener as Endpoint, now};
use rondel_page::Access;
use rondel_page::foxglove::{Hub, MOST_CLIENTS, router};

use super::channels::Channels;
use super::copies::Copies;
use super::feed::{Feed, Shown, lock};
use super::signals::SignalTopic;
use crate::deployment::{Deployment, FoxgloveSettings};
use crate::live::http::{Bound, HttpServer, Limits};
use crate::live::running::{Running, defined};
use crate::{say, warn};

/// Limits of the server. Further connections than clients are answered that there are too many; one that reads nothing is
/// closed.
const LIMITS: Limits = Limits {
    connections: 2 * MOST_CLIENTS,
    accepts: "/",
    longest: Duration::from_secs(10),
    counts_idle: true,
    grace: Duration::from_millis(150),
};

/// A server that runs until it is dropped.
pub struct FoxgloveServer {
    hub: Arc<Hub>,
    copies: Arc<Copies>,
    shown: Arc<Mutex<Option<Shown>>>,
    server: Option<HttpServer>,
    feed: Option<JoinHandle<()>>,
}

impl FoxgloveServer {
    /// Starts the server, and shows where.
    ///
    /// # Errors
    /// The address on which it cannot listen, or the token that cannot be read, and the reason.
    pub fn start(settings: &FoxgloveSettings) -> Result<FoxgloveServer, String> {
        let token = settings.token.as_ref().map(|token| token.read("Foxglove")).transpose()?;
        let bound = Bound::listen("Foxglove", settings.listen)?;
        let authenticated = token.is_some();
        let access = Access { listen: bound.address, token, hosts: settings.hosts.clone(), actions: false };
        let (name, session) = (format!("Rondel {}", env!("CARGO_PKG_VERSION")), now().as_nanos().to_string());
        let hub = Arc::new(Hub::new(&name, &session, Box::new(warn)));
        let place = format!("foxglove ws://{}/", bound.address);
        let routes = router(Arc::clone(&hub), access, settings.origins.clone());
        let server = bound.serve(routes, LIMITS, std::future::pending())?;
        let (copies, shown) = (Arc::<Copies>::default(), Arc::<Mutex<Option<Shown>>>::default());
        let feed = Feed { hub: Arc::clone(&hub), copies: Arc::clone(&copies), shown: Arc::clone(&shown) };
        let thread = thread::Builder::new().name("foxglove-feed".into()).spawn(move || feed.run());
        let thread = thread.map_err(|error| format!("cannot serve Foxglove: {error}"))?;
        say(&format!("listening on {}", Endpoint { place, encrypted: false, authenticated }));
        Ok(FoxgloveServer { hub, copies, shown, server: Some(server), feed: Some(thread) })
    }

    /// Returns the copies for clients.
    pub fn copies(&self) -> Arc<Copies> {
        Arc::clone(&self.copies)
    }

    /// Shows a run, also after a reload.
    pub fn watch(&self, running: &Running, deployment: &Deployment) {
        let (pipeline, slots) = running.observed();
        let signals = SignalTopic::all(deployment, &slots);
        let mut shown = lock(&self.shown);
        let epoch = self.copies.describe(defined(deployment));
        let channels = Channels::show(&self.hub, deployment, &signals);
        *shown = Some(Shown::new(epoch, pipeline, channels, signals));
    }
}

impl Drop for FoxgloveServer {
    fn drop(&mut self) {
        self.hub.end();
        drop(self.server.take());
        if let Some(feed) = self.feed.take() {
            // A panic of the thread has been reported.
            let _ = feed.join();
        }
    }
}
