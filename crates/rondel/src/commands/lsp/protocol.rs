//! Messages of the Language Server Protocol, and its positions: lines and UTF-16 units.

use std::io::{self, BufRead, Read, Write};

use rondel_spec::Span;
use serde_json::{Value, json};

/// The longest message, in bytes.
pub(super) const MAX_MESSAGE: usize = 16 << 20;
/// The longest line of a header, in bytes.
const MAX_HEADER: u64 = 4096;

/// Result of reading from the client.
pub(super) enum Received {
    /// A message.
    Message(Value),
    /// A message that is not JSON, with the reason.
    Malformed(String),
    /// The end of the input.
    End,
}

/// Reads one message.
///
/// # Errors
/// If the input cannot be read, or its headers do not say where the next message starts.
pub(super) fn read(input: &mut impl BufRead) -> io::Result<Received> {
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let mut length = None;
    loop {
        let mut line = Vec::new();
        let read = input.by_ref().take(MAX_HEADER).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(Received::End);
        }
        let header = String::from_utf8_lossy(&line);
        let header = header.trim_end();
        if header.is_empty() {
            break;
        }
        let (name, value) =
            header.split_once(':').ok_or_else(|| invalid(format!("'{header}' is not a header")))?;
        if name.eq_ignore_ascii_case("content-length") {
            let value = value.trim();
            let bytes = value.parse().map_err(|_| invalid(format!("'{value}' is not a Content-Length")))?;
            length = Some(bytes);
        }
    }
    let length: usize = length.ok_or_else(|| invalid("a message has no Content-Length".into()))?;
    if length > MAX_MESSAGE {
        return Err(invalid(format!("a message has {length} bytes, but at most {MAX_MESSAGE} are read")));
    }
    let mut body = Vec::new();
    if input.by_ref().take(length as u64).read_to_end(&mut body)? < length {
        return Ok(Received::End);
    }
    Ok(match serde_json::from_slice(&body) {
        Ok(message) => Received::Message(message),
        Err(error) => Received::Malformed(format!("cannot parse a message: {error}")),
    })
}

/// Writes one message.
///
/// # Errors
/// If the output cannot be written.
pub(super) fn write(output: &mut impl Write, message: &Value) -> io::Result<()> {
    let body = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    output.flush()
}

/// The lines of a text.
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// Finds the lines, which end with `\n`, `\r\n` or `\r`.
    pub(super) fn new(text: &'t str) -> Lines<'t> {
        let bytes = text.as_bytes();
        let ends = bytes
            .iter()
            .enumerate()
            .filter(|&(at, &byte)| byte == b'\n' || byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        Lines { text, starts: std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect() }
    }

    /// The range of a span.
    pub(super) fn range(&self, span: Span) -> Value {
        json!({ "start": self.position(span.start), "end": self.position(span.end) })
    }

    /// The offset in bytes of a position. One beyond a line is its end, one beyond the text the text's end.
    pub(super) fn offset(&self, position: &Value) -> usize {
        let number = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let line = number(&position["line"]);
        let Some(start) = self.starts.get(line).copied() else { return self.text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        let text = self.text.get(start..end).unwrap_or("").trim_end_matches(['\r', '\n']);
        let (mut offset, mut left) = (start, number(&position["character"]));
        for character in text.chars() {
            // A position within a character is its start.
            if left < character.len_utf16() {
                break;
            }
            left -= character.len_utf16();
            offset += character.len_utf8();
        }
        offset
    }

    /// The position of an offset in bytes. One beyond the text is its end, one within a character its start.
    fn position(&self, offset: usize) -> Value {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|&start| start <= offset) - 1;
        let before = self.text.get(self.starts[line]..offset).unwrap_or("");
        json!({ "line": line, "character": before.encode_utf16().count() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_utf_16_units() {
        let lines = Lines::new("a\r\n\u{1f980}é b\rc");
        assert_eq!(lines.position(0), json!({ "line": 0, "character": 0 }));
        assert_eq!(lines.position(7), json!({ "line": 1, "character": 2 }));
        assert_eq!(lines.position(9), json!({ "line": 1, "character": 3 }));
        assert_eq!(lines.position(5), json!({ "line": 1, "character": 0 }));
        assert_eq!(lines.position(99), json!({ "line": 2, "character": 1 }));
    }

    #[test]
    fn offsets_are_those_of_positions() {
        let lines = Lines::new("a\r\n\u{1f980}é b\rc");
        for offset in [0, 1, 3, 7, 9, 10, 11, 12, 13] {
            assert_eq!(lines.offset(&lines.position(offset)), offset);
        }
        let at = |line: u64, character: u64| lines.offset(&json!({ "line": line, "character": character }));
        assert_eq!((at(0, 99), at(1, 1), at(9, 0), at(2, 9)), (1, 3, 13, 13));
        assert_eq!(lines.offset(&json!({ "line": -1, "character": "x" })), 0);
    }
}
