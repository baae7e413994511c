//! Lines from a file or a pipe.

use std::io::BufRead;

/// The longest line, in bytes: no formula has more.
pub const LONGEST: usize = 1 << 20;

/// Lines of an input. An invalid line is an error with the reason.
pub struct Lines<R> {
    input: R,
    is_over: bool,
}

impl<R: BufRead> Lines<R> {
    /// Creates the lines of an input.
    pub fn new(input: R) -> Lines<R> {
        Lines { input, is_over: false }
    }

    /// Reads past a line break; returns whether there is one.
    fn skip(&mut self) -> std::io::Result<bool> {
        loop {
            let buffer = self.input.fill_buf()?;
            let (end, length) = (buffer.iter().position(|byte| *byte == b'\n'), buffer.len());
            self.input.consume(end.map_or(length, |end| end + 1));
            if end.is_some() || length == 0 {
                return Ok(end.is_some());
            }
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<String, String>;

    fn next(&mut self) -> Option<Self::Item> {
        use std::io::Read as _;
        if self.is_over {
            return None;
        }
        let mut bytes = Vec::new();
        let read = self.input.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut bytes);
        let skipped = match (read, bytes.last()) {
            (Ok(0), _) => return None,
            (Ok(_), Some(b'\n')) => Ok(true),
            (Ok(_), _) if bytes.len() > LONGEST => self.skip(),
            // The last line has no break.
            (Ok(_), _) => Ok(false),
            (Err(error), _) => Err(error),
        };
        self.is_over = !matches!(skipped, Ok(true));
        if let Err(error) = skipped {
            return Some(Err(format!("cannot be read: {error}")));
        }
        if bytes.len() > LONGEST {
            return Some(Err(format!("has more than {} KiB", LONGEST >> 10)));
        }
        Some(String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_cannot_be_used_are_errors_of_their_own() {
        let mut input = b"a\n\xff\n".to_vec();
        input.extend(std::iter::repeat_n(b'(', LONGEST + 7));
        input.extend(b"\nb\r\nc");
        let lines: Vec<Result<String, String>> = Lines::new(&input[..]).collect();
        let expected = [
            Ok("a\n".to_owned()),
            Err("is not UTF-8 text".to_owned()),
            Err("has more than 1024 KiB".to_owned()),
            Ok("b\r\n".to_owned()),
            Ok("c".to_owned()),
        ];
        assert_eq!(lines, expected);
        assert_eq!(Lines::new(&b""[..]).count(), 0);
    }
}
