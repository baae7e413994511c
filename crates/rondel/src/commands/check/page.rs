//! The page of a check: its verdicts are kept in a store, which is served after the check.

#![cfg_attr(not(feature = "page"), allow(dead_code))]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rondel_runtime::Signal;
use rondel_spec::{Sources, Spec};

use super::Check;
use crate::specification::Specification;
use crate::{complain, exit};

/// Results that the page shows beside the store.
#[derive(Debug, Default)]
pub(super) struct Paged {
    specification: OnceLock<(Arc<Sources>, Arc<Spec>)>,
    signals: Mutex<Vec<Signal>>,
}

impl Paged {
    /// Keeps the specification.
    pub(super) fn describe(&self, specification: &Specification) {
        let (sources, spec) = (Arc::clone(&specification.sources), Arc::clone(&specification.spec));
        // A check has one.
        let _ = self.specification.set((sources, spec));
    }

    /// Keeps the fields of the recording over time.
    pub(super) fn keep(&self, signals: Vec<Signal>) {
        *self.signals.lock().unwrap_or_else(PoisonError::into_inner) = signals;
    }
}

impl Check {
    /// Refuses a page, which this build does not have.
    #[cfg(not(feature = "page"))]
    pub(super) fn with_page(self, _: SocketAddr) -> u8 {
        complain(crate::live::page::UNAVAILABLE);
        exit::USAGE
    }

    /// Checks with a store, serves its page until a signal, and returns the exit status of the check.
    #[cfg(feature = "page")]
    pub(super) fn with_page(mut self, listen: SocketAddr) -> u8 {
        use rondel_page::{Described, Kind, StoredSignal};

        use crate::deployment::PageSettings;
        use crate::live::page::temporary::TemporaryStore;
        use crate::live::page::{PageServer, Subject};
        use crate::live::signals::End;

        let refuse = |why: &str, status: u8| {
            complain(why);
            status
        };
        let settings = PageSettings::of(listen);
        if !listen.ip().is_loopback() {
            let why = "--page: the results of a check are shown on this machine alone; keep them with --store, and serve the \
                       store by `rondel page` with a token";
            return refuse(why, exit::USAGE);
        }
        let temporary = match self.store {
            Some(_) => None,
            None => match TemporaryStore::of_check() {
                Ok(store) => Some(store),
                Err(why) => return refuse(&why, exit::TRACE),
            },
        };
        let own = temporary.as_ref().map(TemporaryStore::path);
        let Some(store) = self.store.clone().or(own) else { return exit::TRACE };
        self.store = Some(store.clone());
        let paged = Arc::clone(&self.paged);
        let playground = self.playground();
        if self.save_to.is_some() && playground.is_none() {
            let why = "--save-to: this check has no playground, which needs a specification and a recording in files, without \
                       --resume";
            return refuse(why, exit::USAGE);
        }
        let status = self.checked();
        if matches!(status, exit::USAGE | exit::TRACE) {
            return status;
        }
        let described =
            paged.specification.get().map(|(sources, spec)| Described::of(sources, spec, &|_| None));
        let signals = std::mem::take(&mut *paged.signals.lock().unwrap_or_else(PoisonError::into_inner));
        let signals = signals.into_iter().map(StoredSignal::from).collect();
        let subject =
            Subject { kind: Kind::Check, store, series: None, described, signals, state: None, playground };
        let served = End::on_signal().and_then(|end| Ok((PageServer::start(&settings, subject)?, end)));
        match served {
            Ok((server, End { stopped, stop: _stop, .. })) => {
                // The sender lives as long as this block.
                let _ = stopped.recv();
                drop(server);
                status
            }
            Err(why) => refuse(&why, exit::USAGE),
        }
    }
}
