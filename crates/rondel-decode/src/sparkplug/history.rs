//! Historical metrics: values of the past, which a node sends once it is connected again.

use std::collections::BTreeSet;

/// Limit of the names that are kept.
const NAMES: usize = 16;

/// The historical metrics so far that would be read, were they present ones.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) count: u64,
    names: BTreeSet<Box<str>>,
}

impl History {
    #[cold]
    pub(super) fn add(&mut self, name: &[u8]) {
        self.count += 1;
        if self.names.len() < NAMES {
            self.names.insert(String::from_utf8_lossy(name).into());
        }
    }

    /// The names of the first ones, in alphabetical order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }
}
