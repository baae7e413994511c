//! Parallel decoding: pieces of JSON lines are decoded on several threads and evaluated in their order.
//!
//! Each idle thread takes the next piece: the decoding threads, and the evaluating thread while its next piece is not
//! ready. This keeps all threads busy for any ratio of decoding to evaluation.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rondel_decode::lines::{Ahead, Decoded};
use rondel_recording::{ReadError, TraceReader};

/// Maximum number of pieces taken and not used yet, per thread.
const WAITING: u64 = 3;

/// Maximum total size of these pieces in bytes; a single piece may be larger.
const WAITING_BYTES: usize = 16 << 20;

/// A piece with more bytes was a long line, and its memory is given back.
const KEPT_BYTES: usize = 1 << 20;

/// A piece of a trace: some whole lines.
#[derive(Default)]
pub(super) struct Piece {
    /// Buffer that contains the lines.
    pub(super) text: Vec<u8>,
    /// Range of the lines in `text`, in bytes.
    pub(super) lines: Range<usize>,
    /// Messages decoded ahead of evaluation.
    pub(super) decoded: Decoded,
    /// Whether any message was.
    pub(super) is_decoded: bool,
}

/// A trace that several threads read and decode.
pub(super) struct Shared {
    /// The trace, and the number of the next piece.
    reading: Mutex<(TraceReader, u64)>,
    state: Mutex<State>,
    changed: Condvar,
    /// Maximum number of pieces taken and not used yet.
    waiting: u64,
}

#[derive(Default)]
struct State {
    /// The pieces that are ready, by their numbers.
    ready: BTreeMap<u64, Piece>,
    /// Used pieces, whose memory is reused.
    used: Vec<Piece>,
    /// Number of pieces taken and not used yet, and their size in bytes.
    taken: (u64, usize),
    /// Total number of pieces, and the error that ended reading, once the trace was read.
    end: Option<(u64, Option<ReadError>)>,
    /// Whether the remaining pieces are no longer needed.
    is_over: bool,
}

/// A piece that a thread decodes. Dropping this marks the piece as ready: even if decoding panics, no thread waits for
/// it forever.
struct Taken<'s> {
    shared: &'s Shared,
    number: u64,
    piece: Option<Piece>,
}

impl Taken<'_> {
    fn decode(mut self, decoder: &mut Ahead) {
        if let Some(Piece { text, lines, decoded, is_decoded }) = &mut self.piece {
            decoder.decode(text, lines.start, lines.end, decoded);
            *is_decoded = true;
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(piece) = self.piece.take() {
            self.shared.state().ready.insert(self.number, piece);
            self.shared.changed.notify_all();
        }
    }
}

impl Shared {
    /// Prepares a trace for `threads` threads, one of which evaluates.
    pub(super) fn new(reader: TraceReader, threads: usize) -> Shared {
        Shared {
            reading: Mutex::new((reader, 0)),
            state: Mutex::default(),
            changed: Condvar::new(),
            waiting: WAITING * threads as u64,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another piece may be taken.
    fn has_room(&self, state: &State) -> bool {
        let (pieces, bytes) = state.taken;
        state.end.is_none() && pieces < self.waiting && (pieces == 0 || bytes < WAITING_BYTES)
    }

    /// Takes the next piece, unless there is none.
    fn take(&self) -> Option<Taken<'_>> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let (reader, number) = &mut *reading;
        let mut piece = {
            let mut state = self.state();
            if !self.has_room(&state) || state.is_over {
                return None;
            }
            state.taken.0 += 1;
            state.used.pop().unwrap_or_default()
        };
        match reader.take_lines(&mut piece.text) {
            Ok(Some(lines)) => {
                (piece.lines, piece.is_decoded) = (lines, false);
                self.state().taken.1 += piece.text.len();
                *number += 1;
                Some(Taken { shared: self, number: *number - 1, piece: Some(piece) })
            }
            end => {
                self.state().end = Some((*number, end.err()));
                self.changed.notify_all();
                None
            }
        }
    }

    /// Decodes pieces until there are no more, or they are no longer needed.
    pub(super) fn work(&self, mut decoder: Ahead) {
        loop {
            let mut state = self.state();
            while !self.has_room(&state) {
                if state.is_over || state.end.is_some() {
                    return;
                }
                state = self.wait(state);
            }
            if state.is_over {
                return;
            }
            drop(state);
            if let Some(taken) = self.take() {
                taken.decode(&mut decoder);
            }
        }
    }
}

/// Pieces of a trace in their order, for the evaluating thread. Dropping this ends the other threads.
pub(super) struct Pieces<'s> {
    shared: &'s Shared,
    decoder: Ahead,
    /// The number of the piece that is needed.
    number: u64,
}

impl<'s> Pieces<'s> {
    /// The pieces; `decoder` decodes further ones while the next is not ready.
    pub(super) fn new(shared: &'s Shared, decoder: Ahead) -> Pieces<'s> {
        Pieces { shared, decoder, number: 0 }
    }

    /// The next piece; `None` at the end of the trace.
    ///
    /// # Errors
    /// The errors of [`TraceReader::lines`].
    pub(super) fn next(&mut self) -> Result<Option<Piece>, ReadError> {
        loop {
            let mut state = self.shared.state();
            if let Some(piece) = state.ready.remove(&self.number) {
                self.number += 1;
                return Ok(Some(piece));
            }
            if let Some((_, error)) = state.end.as_mut().filter(|(number, _)| *number <= self.number) {
                return error.take().map_or(Ok(None), Err);
            }
            if !self.shared.has_room(&state) {
                drop(self.shared.wait(state));
                continue;
            }
            drop(state);
            let Some(mut taken) = self.shared.take() else { continue };
            if taken.number == self.number
                && let Some(piece) = taken.piece.take()
            {
                // No thread decodes ahead: the piece is decoded while it is evaluated.
                self.number += 1;
                return Ok(Some(piece));
            }
            taken.decode(&mut self.decoder);
        }
    }

    /// Gives back a piece that was used.
    pub(super) fn used(&mut self, mut piece: Piece) {
        let mut state = self.shared.state();
        state.taken.0 -= 1;
        state.taken.1 -= piece.text.len();
        if piece.text.len() > KEPT_BYTES {
            piece.text = Vec::new();
        }
        state.used.push(piece);
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl Drop for Pieces<'_> {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.shared.changed.notify_all();
    }
}
