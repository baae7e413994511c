//! Several recordings at once: each thread checks one after the other, and their results are put together in the order
//! of the recordings.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use rondel_event::Verdict;
use rondel_recording::SplitPart;
use rondel_runtime::{PropertyStatistics, Summary};

use super::checking::{Checking, Stopped};
use crate::commands::reports::Reports;
use crate::output::summary::{Unused, standing, status};
use crate::output::terminal;
use crate::{exit, say};

/// Maximum number of pieces of one recording that are buffered until the recordings before it are complete; its thread
/// then waits. A piece has at most 64 KiB or one write.
const WAITING: usize = 64;

/// Results of checking some recordings.
#[derive(Default)]
pub(super) struct Found {
    pub(super) summary: Summary,
    /// The number of events, with those before a snapshot.
    pub(super) events: u64,
    /// The recordings that were not read to their end.
    pub(super) unread: Vec<String>,
    /// Number of recordings that the options do not fit.
    pub(super) misused: usize,
    /// The lines that were skipped.
    pub(super) skipped: u64,
    /// Messages without a payload, which were ignored.
    pub(super) empty: u64,
    /// The parts of recordings that could not be read and were skipped.
    pub(super) damaged: u64,
    /// The recordings that were cut or damaged, and checked up to there.
    pub(super) cut: Vec<String>,
    /// Whether one of several recordings has no message, one has messages on other topics only, a topic of one never
    /// carried its time, or a part of a recording that was split is missing.
    pub(super) unusable: bool,
    /// The parts of recordings that were split.
    pub(super) parts: Vec<SplitPart>,
    /// The topics that the specification does not read.
    pub(super) unused: Unused,
    /// For the reports.
    pub(super) recordings: Vec<rondel_report::Recording>,
    /// Result of each recording.
    pub(super) rows: Vec<Row>,
}

/// Result of one recording.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) events: u64,
    /// Exit status of a check of this recording alone.
    pub(super) status: u8,
    /// The properties and asserts that are violated in it and decide.
    pub(super) violated: usize,
    /// For each property what an assert has measured in it; empty for others.
    pub(super) judgements: Vec<(Verdict, String)>,
}

impl Row {
    /// Row of a recording that could not be opened.
    pub(super) fn unread(name: &str) -> Row {
        Row { name: name.to_owned(), events: 0, status: exit::TRACE, violated: 0, judgements: Vec::new() }
    }

    /// The status as a word.
    pub(super) fn word(&self) -> &'static str {
        match self.status {
            exit::SATISFIED => "satisfied",
            exit::VIOLATED => "violated",
            exit::INCONCLUSIVE => "inconclusive",
            _ => "unread",
        }
    }
}

impl Found {
    /// Adds the results of the next recordings.
    fn add(&mut self, further: Found) {
        let Found {
            summary,
            events,
            unread,
            misused,
            skipped,
            empty,
            damaged,
            cut,
            unusable,
            parts,
            unused,
            recordings,
            rows,
        } = further;
        self.summary.merge(summary);
        self.events += events;
        self.unread.extend(unread);
        self.misused += misused;
        self.skipped += skipped;
        self.empty += empty;
        self.damaged += damaged;
        self.cut.extend(cut);
        self.unusable |= unusable;
        self.parts.extend(parts);
        for (topic, count) in unused {
            *self.unused.entry(topic).or_default() += count;
        }
        self.recordings.extend(recordings);
        self.rows.extend(rows);
    }
}

/// Output of a thread about the recording that it checks.
enum Piece {
    /// For standard output.
    Text(Vec<u8>),
    /// The end: lines for standard error, and results.
    End(Vec<String>, Box<Found>),
}

/// A writer to the thread that puts the results together.
struct Sending(SyncSender<Piece>);

impl Write for Sending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The receiver is gone once standard output is closed.
        let sent = self.0.send(Piece::Text(bytes.to_vec()));
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Checking<'_> {
    /// Checks one recording after the other, and keeps the results.
    pub(super) fn one_by_one(&mut self, recordings: &[PathBuf]) {
        let (mut found, plan) = (Found::default(), self.plan.clone());
        for recording in recordings {
            // The types of one recording are not those of the next.
            self.plan = plan.clone();
            found.add(self.one(recording));
            if self.has_ended() {
                break;
            }
        }
        self.keep(found);
    }

    /// Checks recordings with `threads` threads, and keeps the results.
    pub(super) fn all_at_once(&mut self, recordings: &[PathBuf], threads: usize) {
        let (senders, receivers): (Vec<_>, Vec<Receiver<Piece>>) = recordings
            .iter()
            .map(|_| sync_channel(WAITING))
            .map(|(send, receive)| (Mutex::new(Some(send)), receive))
            .unzip();
        let next = AtomicUsize::new(0);
        let mut found = Found::default();
        thread::scope(|scope| {
            for _ in 0..threads.min(recordings.len()) {
                let part = self.part();
                let (senders, next) = (&senders, &next);
                scope.spawn(move || {
                    terminal::keep_lines();
                    loop {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        let (Some(recording), Some(sender)) = (recordings.get(place), senders.get(place))
                        else {
                            return;
                        };
                        let Some(sender) = sender.lock().unwrap_or_else(PoisonError::into_inner).take()
                        else {
                            return;
                        };
                        let out = BufWriter::with_capacity(
                            1 << 16,
                            Box::new(Sending(sender.clone())) as Box<dyn Write>,
                        );
                        let mut checking = part.start(out);
                        let found = checking.one(recording);
                        checking.out.flush();
                        if sender.send(Piece::End(terminal::take_lines(), Box::new(found))).is_err() {
                            return;
                        }
                    }
                });
            }
            // Dropping the receivers that are left ends the threads.
            for receiver in receivers {
                for piece in receiver {
                    match piece {
                        Piece::Text(text) => self.out.write(&text),
                        Piece::End(lines, own) => {
                            lines.iter().for_each(|line| say(line));
                            found.add(*own);
                        }
                    }
                    if self.has_ended() {
                        return;
                    }
                }
            }
        });
        self.keep(found);
    }

    /// Checks one recording, and returns its results.
    fn one(&mut self, path: &Path) -> Found {
        let name = self.options.name(path);
        let restored = self.restored.take();
        let stopped = self.trace(path, restored);
        if let Err(Stopped { reason, is_misuse }) = &stopped {
            self.found.misused += usize::from(*is_misuse);
            if let Some(reports) = &mut self.reports {
                reports.unread(&name, reason);
            }
            // Merged recordings that are cut off are named already.
            if self.found.unread.is_empty() {
                self.found.unread.push(name.clone());
            }
        }
        let status = match stopped {
            Err(_) => exit::TRACE,
            Ok(()) => self.standing(&self.found.summary),
        };
        let violated =
            self.found.summary.properties.iter().filter(|own| own.violations > 0 && !own.is_asserted).count();
        let several = self.options.recordings().len() > 1;
        let judgements =
            match self.found.summary.properties.iter().any(PropertyStatistics::is_assert) && several {
                true => self.found.summary.properties.iter().map(standing).collect(),
                false => Vec::new(),
            };
        let mut found = std::mem::take(&mut self.found);
        found.rows.push(Row { name, events: found.events, status, violated, judgements });
        found.recordings = self.reports.as_mut().map(Reports::take_recordings).unwrap_or_default();
        found
    }

    /// Stores the results of all recordings as those of the whole check.
    fn keep(&mut self, mut found: Found) {
        if let Some(reports) = &mut self.reports {
            reports.set_recordings(std::mem::take(&mut found.recordings));
        }
        self.found = found;
    }

    /// The exit status of a summary, as far as its recordings could be read.
    pub(super) fn standing(&self, summary: &Summary) -> u8 {
        match status(summary, self.options.strict) {
            exit::SATISFIED if self.found.unusable => exit::INCONCLUSIVE,
            status => status,
        }
    }
}
