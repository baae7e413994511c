//! Reload: a running deployment takes an edited specification and deployment.
//!
//! | module | contents |
//! |---|---|
//! | [`requests`] | requests by signal, command and file, and their outcome |
//! | [`outcome`] | the changes of a reload, or the reasons of its refusal: as text, JSON and a report |
//! | [`past`] | violations of properties that were changed or removed |
//! | [`control`], [`client`] | the socket of a run, and the request of the command there |
//! | [`watch`] | changes of the files |

pub mod client;
pub mod control;
pub mod outcome;
pub mod past;
mod place;
pub mod requests;
pub mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rondel_runtime::text::counted;
use serde_json::{Value, json};

/// The numbers of reloads of a run. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Reloads(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    done: AtomicU64,
    refused: AtomicU64,
}

impl Reloads {
    /// Counts a reload.
    pub fn add(&self, is_done: bool) {
        let count = if is_done { &self.0.done } else { &self.0.refused };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of reloads that were done.
    pub fn done(&self) -> u64 {
        self.0.done.load(Ordering::Relaxed)
    }

    /// The number of reloads that were refused.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Both numbers as JSON.
    pub fn json(&self) -> Value {
        json!({"done": self.done(), "refused": self.refused()})
    }

    /// A sentence for the summary, if there were any.
    pub fn sentence(&self) -> Option<String> {
        let (done, refused) = (self.done(), self.refused());
        (done + refused > 0)
            .then(|| format!("reloaded {}, refused {refused}", counted(done, "time", "times")))
    }
}
