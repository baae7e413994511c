//! Verification of the chain of an audit file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use rondel_runtime::text::{counted, grouped};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::line::{Hash, Last, Line, hex, is_cut_off, may_begin};

/// The longest line in bytes; a longer one is not a line of an audit file.
pub const LONGEST: u64 = 64 << 20;

/// The result of a verification without a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The last line.
    pub last: Last,
    /// Runs that began.
    pub runs: u64,
    /// Runs without a line of their end.
    pub unended: u64,
    /// Incomplete lines of runs that were cut off, which later lines report.
    pub partial: u64,
    /// Records that could not be written, as later lines report.
    pub lost: u64,
    /// Bytes of an incomplete line at the end, which no line reports yet.
    pub half: u64,
    /// The number of the line with the expected hash.
    pub expected: Option<u64>,
}

/// The first fault of an audit file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line of the file at fault, from 1.
    pub line: u64,
    /// The reason, as the end of a sentence about the line.
    pub reason: String,
}

/// Reason why a file is not verified.
#[derive(Debug)]
pub enum Failure {
    /// It cannot be read.
    Unreadable(io::Error),
    /// Its lines are not those that were written.
    Fault(Fault),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Unreadable(error)
    }
}

/// Verifies a file. `expected` is a hash that one of its lines must have.
///
/// # Errors
/// The file cannot be read, or has a fault.
pub fn verify(path: &Path, expected: Option<&Hash>) -> Result<Verified, Failure> {
    // Opening a pipe would wait for its writer.
    if std::fs::metadata(path)?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder").into());
    }
    let mut reader = BufReader::with_capacity(1 << 18, File::open(path)?);
    let (mut chain, mut line) = (Chain::new(expected), Vec::new());
    while let Some(is_whole) = read_line(&mut reader, &mut line)? {
        if let Err(found) = chain.take(&line, is_whole) {
            let fault = match found.continues {
                Some(before) => locate(path, found.fault, &before)?,
                None => found.fault,
            };
            return Err(Failure::Fault(fault));
        }
    }
    chain.finish().map_err(Failure::Fault)
}

/// Reads a line into `line`, without its line break. Returns whether it has one; `None` at the end.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Option<bool>> {
    line.clear();
    reader.by_ref().take(LONGEST + 1).read_until(b'\n', line)?;
    let is_whole = line.last() == Some(&b'\n');
    if is_whole {
        line.pop();
    } else if line.is_empty() {
        return Ok(None);
    } else if line.len() as u64 > LONGEST {
        let reason = "a line has more than 64 MiB: it is not an audit file";
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(Some(is_whole))
}

/// Names a line before a break of the chain, if the line at the break continues another line of the file. `before` is the
/// hash of that line.
fn locate(path: &Path, fault: Fault, before: &Hash) -> io::Result<Fault> {
    let mut reader = BufReader::with_capacity(1 << 18, File::open(path)?);
    let (mut line, mut number) = (Vec::new(), 0);
    while read_line(&mut reader, &mut line)?.is_some() {
        number += 1;
        if number == fault.line || Line::parse(&line).is_none_or(|line| line.hash != *before) {
            continue;
        }
        let at = fault.line;
        return Ok(if number < at {
            let lines = match at - number {
                2 => "it was".to_owned(),
                _ => format!("it and the lines up to {} were", grouped(at - 1)),
            };
            let reason = format!(
                "does not belong there: {lines} inserted, as line {} continues line {}",
                grouped(at),
                grouped(number)
            );
            Fault { line: number + 1, reason }
        } else {
            let reason =
                format!("continues line {}, which comes after it: lines were reordered", grouped(number));
            Fault { line: at, reason }
        });
    }
    Ok(fault)
}

/// A fault, and the hash of the line that the line at fault continues instead of the one before it.
struct Found {
    fault: Fault,
    continues: Option<Hash>,
}

/// Lines that do not have the form of one, until a line reports them.
struct Damaged {
    /// The first of them.
    line: u64,
    count: u64,
    bytes: u64,
    hasher: Sha256,
    /// Whether the last one has a line break.
    is_whole: bool,
}

/// The state of a verification between two lines.
struct Chain<'e> {
    last: Last,
    expected: Option<&'e Hash>,
    damaged: Option<Damaged>,
    /// Lines of the file.
    lines: u64,
    is_running: bool,
    verified: Verified,
}

impl<'e> Chain<'e> {
    fn new(expected: Option<&'e Hash>) -> Chain<'e> {
        let last = Last::NONE;
        let verified = Verified { last, runs: 0, unended: 0, partial: 0, lost: 0, half: 0, expected: None };
        Chain { last, expected, damaged: None, lines: 0, is_running: false, verified }
    }

    /// Takes the next line.
    fn take(&mut self, bytes: &[u8], is_whole: bool) -> Result<(), Found> {
        self.lines += 1;
        let Some(line) = Line::parse(bytes) else {
            return self.damage(bytes, is_whole);
        };
        let is_report = line.record == "partial";
        let value = match line.record {
            "partial" | "lost" => serde_json::from_slice(bytes).unwrap_or_default(),
            _ => Value::Null,
        };
        match self.damaged.take() {
            Some(damaged) if !is_report || !damaged.is_reported(&value) => {
                return Err(damaged.fault().into());
            }
            Some(damaged) => self.verified.partial += damaged.count,
            None if is_report => {
                return Err(self.fault("reports an incomplete line before it, which is missing"));
            }
            None => {}
        }
        if !line.is_intact() {
            return Err(self.fault("was changed: its content does not have its hash"));
        }
        if line.before != self.last.hash {
            let found = self.fault(&self.gap(line.number));
            return Err(Found { continues: Some(line.before), ..found });
        }
        if line.number != self.last.number + 1 {
            return Err(self.fault(&format!(
                "has the number {}, and continues the line with the number {}",
                grouped(line.number),
                grouped(self.last.number)
            )));
        }
        self.last = line.as_last();
        if self.expected == Some(&line.hash) {
            self.verified.expected = Some(line.number);
        }
        match line.record {
            "start" => {
                self.verified.runs += 1;
                self.verified.unended += u64::from(self.is_running);
                self.is_running = true;
            }
            "stop" => self.is_running = false,
            "lost" => self.verified.lost += value["lines"].as_u64().unwrap_or(0),
            _ => {}
        }
        Ok(())
    }

    /// Takes a line that does not have the form of one.
    fn damage(&mut self, bytes: &[u8], is_whole: bool) -> Result<(), Found> {
        if self.last.number == 0 && !may_begin(bytes) && self.damaged.is_none() {
            return Err(self.fault("is not a line of an audit file"));
        }
        if self.damaged.is_none() && !is_whole && !is_cut_off(bytes, &self.last) {
            return Err(self.fault("is incomplete, and does not begin as the line after the one before it"));
        }
        let damaged = self.damaged.get_or_insert_with(|| Damaged {
            line: self.lines,
            count: 0,
            bytes: 0,
            hasher: Sha256::new(),
            is_whole,
        });
        damaged.count += 1;
        damaged.bytes += bytes.len() as u64 + 1;
        damaged.hasher.update(bytes);
        damaged.hasher.update(b"\n");
        damaged.is_whole = is_whole;
        Ok(())
    }

    /// Describes the break of the chain before the present line, which has this number.
    fn gap(&self, number: u64) -> String {
        let before = self.last.number;
        if number == before + 1 {
            return "does not continue the line before it: one of the two was replaced".to_owned();
        }
        let after = match before {
            0 => String::new(),
            _ => format!(" after the number {}", grouped(before)),
        };
        if number <= before {
            return format!("has the number {}{after}: it was inserted, repeated or moved", grouped(number));
        }
        let missing = counted(number - before - 1, "line is", "lines are");
        format!("has the number {}{after}: {missing} missing before it", grouped(number))
    }

    fn fault(&self, reason: &str) -> Found {
        Fault { line: self.lines, reason: reason.to_owned() }.into()
    }

    /// Ends the verification.
    fn finish(mut self) -> Result<Verified, Fault> {
        if let Some(damaged) = self.damaged.take() {
            if damaged.is_whole || damaged.count > 1 {
                return Err(damaged.fault());
            }
            // Without the line break that it does not have.
            self.verified.half = damaged.bytes - 1;
        } else if self.lines == 0 {
            return Err(Fault { line: 1, reason: "is missing: the file is empty".to_owned() });
        }
        if self.expected.is_some() && self.verified.expected.is_none() {
            let reason = "would have the expected hash, which no line has: lines at the end are missing, or the file was \
                          rewritten"
                .to_owned();
            return Err(Fault { line: self.last.number + 1, reason });
        }
        self.verified.last = self.last;
        self.verified.unended += u64::from(self.is_running);
        Ok(self.verified)
    }
}

impl From<Fault> for Found {
    fn from(fault: Fault) -> Found {
        Found { fault, continues: None }
    }
}

impl Damaged {
    /// Whether a line reports these bytes.
    fn is_reported(&self, report: &Value) -> bool {
        let hash = hex(&self.hasher.clone().finalize());
        report["bytes"].as_u64() == Some(self.bytes)
            && report["sha256"].as_str().map(str::as_bytes) == Some(&hash[..])
    }

    fn fault(&self) -> Fault {
        let reason = "was changed or inserted: it is not a complete line of an audit file, and the next line does not \
                      report it as incomplete";
        Fault { line: self.line, reason: reason.to_owned() }
    }
}
