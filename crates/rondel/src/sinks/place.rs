//! Place of the evaluating thread, which the watchdog reads.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of places in [`Place`].
const PLACES: u64 = 1 << 16;
const EVALUATING: u64 = 0;
const PRINTING: u64 = 1;
const SAVING: u64 = 2;
const STORING: u64 = 3;
/// The first sink.
const SINKS: u64 = 4;

/// Place of the evaluating thread: the number of messages, and the place in the lowest bits. Each update is one
/// relaxed store.
#[derive(Debug, Default)]
pub struct Place(AtomicU64);

impl Place {
    fn set(&self, place: u64) {
        let messages = self.0.load(Ordering::Relaxed) & !(PLACES - 1);
        self.0.store(messages | place, Ordering::Relaxed);
    }

    /// Sets the place to evaluation, after this number of messages.
    #[inline]
    pub fn evaluating(&self, messages: u64) {
        self.0.store((messages * PLACES) | EVALUATING, Ordering::Relaxed);
    }

    /// Sets the place to standard output.
    #[inline]
    pub fn printing(&self) {
        self.set(PRINTING);
    }

    /// Sets the place to taking a snapshot.
    pub fn saving(&self) {
        self.set(SAVING);
    }

    /// Sets the place to the queues of the store and other sinks beside networks.
    #[inline]
    pub fn storing(&self) {
        self.set(STORING);
    }

    /// Sets the place to publishing on the sink with this number.
    #[inline]
    pub fn publishing(&self, sink: u16) {
        self.set((SINKS + u64::from(sink)).min(PLACES - 1));
    }

    /// The number of messages and the place, in one number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Returns the description of a place; `names` are the names of the sinks by number.
pub fn words(place: u64, names: &[String]) -> String {
    match place % PLACES {
        EVALUATING => "evaluating messages".to_owned(),
        PRINTING => "writing to standard output".to_owned(),
        SAVING => "taking a snapshot".to_owned(),
        STORING => "waiting for the store or another sink beside networks".to_owned(),
        sink => {
            let name = usize::try_from(sink - SINKS).ok().and_then(|sink| names.get(sink));
            format!("publishing on {}", name.map_or("a sink", String::as_str))
        }
    }
}
