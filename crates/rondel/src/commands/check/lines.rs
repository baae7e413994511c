//! Recordings as JSON lines.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use indicatif::ProgressBar;
use rondel_decode::lines::Lines;
use rondel_recording::{Piece, ReadError, TraceReader};
use rondel_runtime::{PackLines, Reason, Session};

use super::OnError;
use super::ahead::{Pieces, Shared};
use super::checking::{Checking, Notices, Read, Stopped};
use crate::output::VerdictWriter;
use crate::warn;

/// Size in bytes below which a recording is decoded by one thread: starting others would take longer.
const WORTHWHILE: u64 = 1 << 20;

/// The most threads that decode one recording: more than evaluation can follow.
const MOST: usize = 7;

/// The check of a recording.
struct Run<'r> {
    name: &'r str,
    session: Session,
    lines: Lines,
    /// Splitter of SenML packs into lines, and its output buffer.
    packs: Option<(PackLines, Vec<u8>)>,
    writer: VerdictWriter,
    reported: Notices,
    /// Buffer of the text to print.
    text: Vec<u8>,
    bar: Option<ProgressBar>,
    consumed: Arc<AtomicU64>,
}

impl Checking<'_> {
    /// Checks a recording of JSON lines.
    pub(super) fn lines(
        &mut self,
        name: &str,
        reader: TraceReader,
        restored: Option<Session>,
    ) -> Result<(), Stopped> {
        let started = Instant::now();
        let session = match restored {
            Some(session) => session,
            None => self.plan.start().map_err(|error| Stopped::because(&error.to_string()))?,
        };
        if let Some(reports) = &mut self.reports {
            reports.begin();
        }
        let skips = self.options.on_error == OnError::Skip;
        let mut run = Run {
            name,
            lines: session.lines(self.options.unit()).skip_errors(skips),
            packs: PackLines::new(&self.plan, self.options.unit()).map(|packs| (packs, Vec::new())),
            session,
            writer: VerdictWriter::new(self.plan.properties(), self.options.format, self.colour),
            reported: Notices::new(),
            text: Vec::new(),
            bar: reader.size().and_then(|size| self.progress_bar(size)),
            consumed: reader.consumed(),
        };
        let is_long = reader.size().is_some_and(|size| size >= WORTHWHILE);
        let mut stopped = match self.helpers() {
            helpers @ 1.. if is_long && run.packs.is_none() && !run.session.explains() => {
                self.beside(&mut run, reader, helpers.min(MOST))
            }
            _ => self.alone(&mut run, reader),
        };
        let Run { mut session, lines, mut writer, mut reported, bar, .. } = run;
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        self.end(&mut session, &mut writer, &mut reported, &mut stopped);
        self.found.skipped += lines.skipped().0;
        self.found.empty += lines.empty();
        let others = lines.other_topics().map(|(topic, count)| (topic.to_owned(), count)).collect();
        let read = Read { remarks: Vec::new(), others, is_whole: stopped.is_ok() };
        self.account(name, &session, started, "line", read);
        stopped
    }

    /// Reads, decodes and evaluates.
    fn alone(&mut self, run: &mut Run<'_>, mut reader: TraceReader) -> Result<(), Stopped> {
        loop {
            let piece = match reader.lines() {
                Ok(Some(piece)) => piece,
                Ok(None) => return Ok(()),
                Err(error) => return self.unreadable(run, &error),
            };
            let Piece { text, start, end } = piece;
            self.evaluate(run, text, start..end)?;
            reader.used(end);
            self.show(run);
            if reader.is_live() {
                // The process that writes into the pipe may wait for a verdict.
                run.session.flush();
                self.emit(&mut run.session, &mut run.writer, &mut run.reported, &mut run.text);
                self.out.flush();
            }
            if self.has_ended() {
                return Ok(());
            }
        }
    }

    /// Evaluates all lines, with `helpers` further threads that decode.
    fn beside(&mut self, run: &mut Run<'_>, reader: TraceReader, helpers: usize) -> Result<(), Stopped> {
        let shared = Shared::new(reader, helpers + 1);
        thread::scope(|scope| {
            // Dropping it ends the threads.
            let mut pieces = Pieces::new(&shared, run.session.ahead(&run.lines));
            for _ in 0..helpers {
                let (decoder, shared) = (run.session.ahead(&run.lines), &shared);
                // If no thread can be started, this one decodes everything.
                let _ = thread::Builder::new().spawn_scoped(scope, move || shared.work(decoder));
            }
            loop {
                let mut piece = match pieces.next() {
                    Ok(Some(piece)) => piece,
                    Ok(None) => return Ok(()),
                    Err(error) => return self.unreadable(run, &error),
                };
                let mut at = piece.lines.start;
                if piece.is_decoded && run.lines.admit(&mut piece.decoded) {
                    for part in piece.decoded.parts() {
                        if part.is_decoded() {
                            let begin = at;
                            at = run.session.push_part(&mut run.lines, part);
                            run.session.look_at(piece.text.get(begin..at).unwrap_or_default());
                            self.emit(&mut run.session, &mut run.writer, &mut run.reported, &mut run.text);
                        } else {
                            let end = part.end();
                            self.evaluate(run, &piece.text, at..end)?;
                            at = end;
                        }
                    }
                }
                self.evaluate(run, &piece.text, at..piece.lines.end)?;
                pieces.used(piece);
                self.show(run);
                if self.has_ended() {
                    return Ok(());
                }
            }
        })
    }

    /// Number of further threads that may decode.
    fn helpers(&self) -> usize {
        if self.is_part { 0 } else { self.options.helpers() }
    }

    /// Decodes and evaluates lines, and prints.
    #[inline]
    fn evaluate(&mut self, run: &mut Run<'_>, text: &[u8], lines: Range<usize>) -> Result<(), Stopped> {
        let Some((mut packs, mut rewritten)) = run.packs.take() else {
            return self.evaluate_lines(run, text, lines);
        };
        rewritten.clear();
        packs.rewrite(text.get(lines).unwrap_or_default(), &mut rewritten);
        let evaluated = self.evaluate_lines(run, &rewritten, 0..rewritten.len());
        run.packs = Some((packs, rewritten));
        evaluated
    }

    #[inline]
    fn evaluate_lines(&mut self, run: &mut Run<'_>, text: &[u8], lines: Range<usize>) -> Result<(), Stopped> {
        let Range { start: mut at, end } = lines;
        while at < end {
            let taken = run.session.push_lines(&mut run.lines, text, at, end);
            self.emit(&mut run.session, &mut run.writer, &mut run.reported, &mut run.text);
            at = taken.map_err(|error| {
                let name = run.name;
                Stopped::because(&format!("{name}:{}:{}: {}", error.line, error.column, error.kind))
            })?;
        }
        Ok(())
    }

    /// Handles an error that ends reading.
    fn unreadable(&mut self, run: &mut Run<'_>, error: &ReadError) -> Result<(), Stopped> {
        if self.options.on_error == OnError::Skip && error.is_cut() {
            warn(&format!("{error}; it is checked up to there"));
            run.session.missing(Reason::Skipped, 1, &error.to_string());
            self.found.cut.push(run.name.to_owned());
            return Ok(());
        }
        Err(Stopped::because(&error.to_string()))
    }

    fn show(&self, run: &Run<'_>) {
        if let Some(bar) = &run.bar {
            bar.set_position(run.consumed.load(Ordering::Relaxed));
        }
    }
}
