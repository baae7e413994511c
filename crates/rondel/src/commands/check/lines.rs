//! Recordings as JSON lines.

use std::sync::atomic::Ordering;
use std::time::Instant;

use rondel_recording::{Piece, ReadError, TraceReader};
use rondel_runtime::Session;
use rondel_runtime::text::counted;

use super::OnError;
use super::checking::{Checking, Notices, Read, Stopped};
use crate::output::VerdictWriter;
use crate::warn;

impl Checking<'_> {
    /// Checks a recording of JSON lines.
    pub(super) fn lines(
        &mut self,
        name: &str,
        mut reader: TraceReader,
        restored: Option<Session>,
    ) -> Result<(), Stopped> {
        let started = Instant::now();
        let unreadable = |error: ReadError| Stopped::because(&error.to_string());
        let mut session = match restored {
            Some(session) => session,
            None => self.plan.start().map_err(|error| Stopped::because(&error.to_string()))?,
        };
        if let Some(reports) = &mut self.reports {
            reports.begin();
        }
        let skips = self.options.on_error == OnError::Skip;
        let mut lines = session.lines(self.options.unit()).skip_errors(skips);
        let mut writer = VerdictWriter::new(self.plan.properties(), self.options.format, self.colour);
        let progress = reader.size().and_then(|size| self.progress_bar(size));
        let consumed = reader.consumed();
        let mut stopped = Ok(());
        let mut reported = Notices::new();
        let mut text = Vec::new();
        'pieces: loop {
            let piece = match reader.lines() {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(error) if skips && error.is_cut() => {
                    warn(&format!("{error}; it is checked up to there"));
                    self.found.cut.push(name.to_owned());
                    break;
                }
                Err(error) => {
                    stopped = Err(unreadable(error));
                    break;
                }
            };
            let Piece { text: bytes, start: mut at, end } = piece;
            while at < end {
                let taken = session.push_lines(&mut lines, bytes, at, end);
                self.emit(&mut session, &mut writer, &mut reported, &mut text);
                match taken {
                    Ok(next) => at = next,
                    Err(error) => {
                        let reason = format!("{name}:{}:{}: {}", error.line, error.column, error.kind);
                        stopped = Err(Stopped::because(&reason));
                        break 'pieces;
                    }
                }
            }
            reader.used(end);
            if let Some(bar) = &progress {
                bar.set_position(consumed.load(Ordering::Relaxed));
            }
            if reader.is_live() {
                // The process that writes into the pipe may wait for a verdict.
                session.flush();
                self.emit(&mut session, &mut writer, &mut reported, &mut text);
                self.out.flush();
            }
            if self.has_ended() {
                break;
            }
        }
        if let Some(bar) = progress {
            bar.finish_and_clear();
        }
        self.end(&mut session, &mut writer, &mut reported, &mut stopped);
        self.found.skipped += lines.skipped().0;
        let mut remarks = Vec::new();
        if let Some((line, why)) = lines.take_first_undecodable() {
            let messages = counted(lines.undecodable(), "message", "messages");
            remarks.push(format!("cannot decode {messages}; the first in line {line}: {why}"));
        }
        if let (skipped, Some(first)) = lines.skipped() {
            let (line, column) = (first.line, first.column);
            let lines = counted(skipped, "line", "lines");
            remarks.push(format!("skipped {lines}; the first is {line}:{column}: {}", first.kind));
        }
        let others = lines.other_topics().map(|(topic, count)| (topic.to_owned(), count)).collect();
        let read = Read { remarks, others, is_whole: stopped.is_ok(), is_incomplete: false };
        self.account(name, (&session, started), "line", read);
        stopped
    }
}
