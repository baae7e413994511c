//! Texts that C reads.

use std::ffi::c_char;

/// A text in UTF-8. In results a NUL follows it, which does not count.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// Its first byte.
    pub data: *const c_char,
    /// Its length in bytes.
    pub length: usize,
}

impl Text {
    /// The text without bytes.
    pub const EMPTY: Text = Text { data: c"".as_ptr(), length: 0 };

    /// Returns the text before the NUL at the end of these bytes.
    pub(crate) fn before_nul(bytes: &[u8]) -> Text {
        match bytes.split_last() {
            Some((_, text)) => Text { data: bytes.as_ptr().cast(), length: text.len() },
            None => Text::EMPTY,
        }
    }
}

/// Returns a text with a NUL at its end.
pub(crate) fn terminated(text: &str) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(text.len() + 1);
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
    bytes.into()
}
