//! Reads sections on a thread of its own: while the messages of one are judged, the next is decompressed.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use super::index::Section;
use super::load::{Buffers, Loaded, Loader};
use crate::recording::RecordingError;

/// Less than so many bytes are not worth a thread.
const WORTH: u64 = 1 << 20;

/// A thread that loads sections, one ahead of those that were taken.
pub(super) struct Ahead {
    /// `None` only while it is dropped.
    loaded: Option<Receiver<Result<Loaded, RecordingError>>>,
    spare: Sender<Buffers>,
    thread: Option<JoinHandle<()>>,
    path: std::path::PathBuf,
}

impl Ahead {
    /// Starts to load these sections in this order; `None` if a thread gains nothing or cannot be had. Until it is
    /// dropped, `loader` must not be used.
    pub(super) fn start<'s>(loader: &Loader, sections: impl Iterator<Item = &'s Section>) -> Option<Ahead> {
        let sections: VecDeque<Section> = sections.cloned().collect();
        let bytes: u64 = sections.iter().map(|section| section.length).sum();
        let is_worth = sections.len() > 1 && bytes >= WORTH;
        if !is_worth || thread::available_parallelism().map_or(1, usize::from) < 2 {
            return None;
        }
        let (path, mut loader) = (loader.path().to_owned(), loader.again()?);
        // Handed over directly, so that at most one section is in memory beside those that are open.
        let (send, loaded) = sync_channel(0);
        let (spare, done) = channel();
        let load = move || {
            for section in sections {
                loader.spare.extend(done.try_iter());
                if send.send(loader.load(&section)).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("recording".to_owned()).spawn(load).ok()?;
        Some(Ahead { loaded: Some(loaded), spare, thread: Some(thread), path })
    }

    /// Takes the next section.
    pub(super) fn next(&mut self) -> Result<Loaded, RecordingError> {
        let loaded = self.loaded.as_ref().and_then(|loaded| loaded.recv().ok());
        loaded.unwrap_or_else(|| {
            let source = io::Error::other("the thread that reads it has ended");
            Err(RecordingError::Read { path: self.path.clone(), offset: 0, source })
        })
    }

    /// Gives back the buffers of a section that is done.
    pub(super) fn give_back(&self, buffers: Buffers) {
        // Without the thread they are of no use.
        _ = self.spare.send(buffers);
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        drop(self.loaded.take());
        if let Some(thread) = self.thread.take() {
            // A panic was reported by the thread itself.
            _ = thread.join();
        }
    }
}
