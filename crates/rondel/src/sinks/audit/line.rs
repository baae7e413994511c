//! Lines of an audit file, each with the hash of the line before and its own.
//!
//! A line is one JSON object with its members in this order:
//! `{"before":"HASH","number":N,"time":"2026-11-29T10:50:27.5Z","record":"verdict",…,"hash":"HASH"}`. `hash` is the
//! SHA-256 of all bytes of the line up to `,"hash":`, and `before` the `hash` of the line before. Both are 64 lower-case
//! hexadecimal digits. The first line has the number 1, and zeros in `before`.

use std::io::Write as _;

use rondel_event::Timestamp;
use sha2::{Digest as _, Sha256};

/// A SHA-256 in hexadecimal digits.
pub type Hash = [u8; 64];

const BEFORE: &[u8] = b"{\"before\":\"";
const NUMBER: &[u8] = b"\",\"number\":";
const TIME: &[u8] = b",\"time\":\"";
const RECORD: &[u8] = b"\"record\":\"";
const HASH: &[u8] = b",\"hash\":\"";
const END: &[u8] = b"\"}";

/// Returns the hash of some bytes.
pub fn sha256(bytes: &[u8]) -> Hash {
    hex(&Sha256::digest(bytes))
}

/// Returns the hexadecimal digits of the 32 bytes of a hash.
pub fn hex(digest: &[u8]) -> Hash {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = Last::NONE.hash;
    for (digits, byte) in text.chunks_exact_mut(2).zip(digest) {
        digits[0] = DIGITS[usize::from(byte >> 4)];
        digits[1] = DIGITS[usize::from(byte & 15)];
    }
    text
}

/// Returns a hash as text.
pub fn text(hash: &Hash) -> &str {
    // Hashes have only hexadecimal digits.
    std::str::from_utf8(hash).unwrap_or_default()
}

/// Reads a hash of 64 hexadecimal digits, of either case.
pub fn parse_hash(text: &str) -> Option<Hash> {
    let hash: Hash = text.to_ascii_lowercase().as_bytes().try_into().ok()?;
    hash.iter().all(|byte| is_digit(*byte)).then_some(hash)
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// Returns a point in time as text, in UTC.
pub fn time_text(time: Timestamp) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(time.as_nanos())).unwrap_or_default().to_string()
}

/// The last line of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last {
    /// Its hash.
    pub hash: Hash,
    /// Its number, from 1; 0 before the first line.
    pub number: u64,
}

impl Last {
    /// The end of a chain without lines.
    pub const NONE: Last = Last { hash: [b'0'; 64], number: 0 };

    /// Appends the next line of the chain to `out`, with its line break. `members` begin with `"record":"KIND"`, without
    /// braces.
    pub fn append(&mut self, time: Timestamp, members: &[u8], out: &mut Vec<u8>) {
        let begin = out.len();
        self.number += 1;
        out.extend_from_slice(BEFORE);
        out.extend_from_slice(&self.hash);
        out.extend_from_slice(NUMBER);
        // Writing to memory does not fail.
        let _ = write!(out, "{}", self.number);
        out.extend_from_slice(TIME);
        out.extend_from_slice(time_text(time).as_bytes());
        out.extend_from_slice(b"\",");
        out.extend_from_slice(members);
        self.hash = sha256(&out[begin..]);
        out.extend_from_slice(HASH);
        out.extend_from_slice(&self.hash);
        out.extend_from_slice(END);
        out.push(b'\n');
    }
}

/// A line of an audit file, without its line break.
#[derive(Clone, Copy, Debug)]
pub struct Line<'l> {
    /// The hash that it has of the line before.
    pub before: Hash,
    /// Its number.
    pub number: u64,
    /// The kind of its record.
    pub record: &'l str,
    /// Its own hash, as it is written.
    pub hash: Hash,
    /// The bytes that the hash is of.
    content: &'l [u8],
}

impl Line<'_> {
    /// Reads a line; `None` if it does not have the form of one.
    pub fn parse(line: &[u8]) -> Option<Line<'_>> {
        let rest = line.strip_prefix(BEFORE)?;
        let (before, rest) = rest.split_first_chunk::<64>()?;
        let rest = rest.strip_prefix(NUMBER)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = rest.split_at(digits);
        let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
        let rest = rest.strip_prefix(TIME)?;
        let end = rest.iter().position(|byte| *byte == b'"')?;
        let rest = rest[end..].strip_prefix(b"\",")?;
        let (members, hash) = rest.strip_suffix(END)?.split_last_chunk::<64>()?;
        let members = members.strip_suffix(HASH)?;
        let record = members.strip_prefix(RECORD)?;
        let end = record.iter().position(|byte| *byte == b'"')?;
        let record = std::str::from_utf8(&record[..end]).ok()?;
        if !before.iter().chain(hash).all(|byte| is_digit(*byte)) {
            return None;
        }
        let content = &line[..line.len() - HASH.len() - hash.len() - END.len()];
        Some(Line { before: *before, number, record, hash: *hash, content })
    }

    /// Whether its hash is that of its content.
    pub fn is_intact(&self) -> bool {
        sha256(self.content) == self.hash
    }

    /// The line as the end of a chain.
    pub fn as_last(&self) -> Last {
        Last { hash: self.hash, number: self.number }
    }
}

/// Whether these bytes may be the beginning of the first line of an audit file.
pub fn may_begin(bytes: &[u8]) -> bool {
    may_follow(bytes, &Last::NONE)
}

/// Whether these bytes may be the beginning of the line after `last`.
fn may_follow(bytes: &[u8], last: &Last) -> bool {
    let number = (last.number + 1).to_string();
    let next = [BEFORE, &last.hash[..], NUMBER, number.as_bytes(), TIME].concat();
    let length = bytes.len().min(next.len());
    bytes[..length] == next[..length]
}

/// Whether a run that was cut off can have left these bytes after the line `last`: beginnings of the line after it, of
/// which all but the last one were ended by a later run, or the zeros that a file system leaves after a loss of power.
pub fn is_cut_off(bytes: &[u8], last: &Last) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    !bytes.ends_with(b"\n")
        && lines.all(|line| {
            let zeros = line.iter().rev().take_while(|byte| **byte == 0).count();
            may_follow(&line[..line.len() - zeros], last)
        })
}
