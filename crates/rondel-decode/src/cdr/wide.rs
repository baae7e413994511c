//! Wide strings, of which CDR has several forms, and the choice of the form that a message has.
//!
//! No header states the form. It is found by reading the message in each one: see [`Wide::choose`].

use std::fmt;

use super::plan::Version;

/// Form of the wide strings in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WideForm {
    /// The length in bytes, then UTF-16: DDS-XTypes since 1.2, CycloneDDS.
    Bytes,
    /// The number of UTF-16 units, then UTF-16: Fast-CDR 2.
    Units,
    /// The number of characters or UTF-16 units, then four bytes for each: Fast-CDR 1, and ROS 2 in all of its versions.
    Words,
}

/// Greatest value of a UTF-16 unit.
const UNIT: u32 = 0xffff;

impl WideForm {
    /// The forms, in the order in which they are preferred where several fit equally well.
    pub(super) fn order(version: Version) -> [WideForm; 3] {
        match version {
            Version::One => [WideForm::Words, WideForm::Bytes, WideForm::Units],
            Version::Two | Version::Packed => [WideForm::Bytes, WideForm::Units, WideForm::Words],
        }
    }

    /// Returns the size of a string in bytes, without the length before it.
    pub(super) fn size(self, length: u32) -> usize {
        let length = length as usize;
        match self {
            WideForm::Bytes => length,
            WideForm::Units => length.saturating_mul(2),
            WideForm::Words => length.saturating_mul(4),
        }
    }

    /// Returns the number of characters or UTF-16 units, which the bound of a type limits.
    pub(super) fn count(self, length: u32) -> u32 {
        if self == WideForm::Bytes { length / 2 } else { length }
    }

    /// Replaces `text` by the characters in `bytes`. Returns whether they are text, which has no character zero.
    pub(super) fn read(self, is_big: bool, bytes: &[u8], text: &mut String) -> bool {
        text.clear();
        if self == WideForm::Words {
            let (words, rest) = bytes.as_chunks::<4>();
            let word = |word: &[u8; 4]| match is_big {
                true => u32::from_be_bytes(*word),
                false => u32::from_le_bytes(*word),
            };
            // A word is a character, or half of one that has two UTF-16 units.
            let units = words.iter().map(word).flat_map(|word| {
                let high = (word > UNIT).then(|| (0xd7c0_u32.wrapping_add(word >> 10)) as u16);
                let low = if word > UNIT { 0xdc00 | word & 0x3ff } else { word };
                high.into_iter().chain([low as u16])
            });
            let is_text = rest.is_empty() && words.iter().all(|bytes| word(bytes) <= char::MAX as u32);
            return is_text && decode(units, text);
        }
        let (units, rest) = bytes.as_chunks::<2>();
        let units = units
            .iter()
            .map(|unit| if is_big { u16::from_be_bytes(*unit) } else { u16::from_le_bytes(*unit) });
        rest.is_empty() && decode(units, text)
    }
}

impl fmt::Display for WideForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WideForm::Bytes => "UTF-16 with the length in bytes",
            WideForm::Units => "UTF-16 with the number of its units",
            WideForm::Words => "four bytes for each character",
        })
    }
}

fn decode(units: impl Iterator<Item = u16>, text: &mut String) -> bool {
    char::decode_utf16(units).all(|c| match c {
        // IDL and ROS 2 exclude it, and it is in most texts that are read in another form than their own.
        Ok('\0') | Err(_) => false,
        Ok(c) => {
            text.push(c);
            true
        }
    })
}

/// The result of reading a message in one form.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Whether there was a wide string that is not empty: others are the same in all forms.
    pub(super) has_text: bool,
    /// Whether a part ended before its last member, as if its writer did not know more.
    pub(super) has_ended: bool,
    /// The number of bytes that were left at the ends of parts whose length is known.
    pub(super) unread: usize,
}

impl Seen {
    /// Whether every member is there, and every byte belongs to one or to the padding that the header states.
    pub(super) fn is_exact(&self, padding: usize) -> bool {
        !self.has_ended && self.unread == padding
    }
}

/// The forms that the wide strings of a topic had so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wide {
    /// The form of a message that fits no other.
    known: Option<WideForm>,
    /// Whether there were such messages of several forms.
    is_mixed: bool,
    /// The form of the last message, if it has wide strings that are not empty.
    pub(super) last: Option<WideForm>,
    /// Whether another form fits the last message as well, or none does.
    is_guess: bool,
    /// Messages that were read in such a form, and the last one.
    pub(super) guessed: Option<(u64, WideForm)>,
}

impl Wide {
    /// Chooses the form of a message. `read` reads the whole message in a form, and fails if it does not fit.
    ///
    /// A form that uses every byte is taken before others. Of several, it is the one that an earlier message has proved, or
    /// else the first of [`WideForm::order`].
    pub(super) fn choose(
        &mut self,
        version: Version,
        padding: usize,
        mut read: impl FnMut(WideForm) -> Option<Seen>,
    ) -> WideForm {
        self.is_guess = false;
        let trusted = self.known.filter(|_| !self.is_mixed);
        let order = WideForm::order(version);
        let is_exact = |seen: &Seen| seen.is_exact(padding);
        if let Some(form) = trusted
            && read(form).as_ref().is_some_and(is_exact)
        {
            self.last = Some(form);
            return form;
        }
        let seen = order.map(&mut read);
        if seen.iter().flatten().any(|seen| !seen.has_text) {
            self.last = None;
            return trusted.unwrap_or(order[0]);
        }
        // A message that is cut off may fit another form, but not to the byte.
        let must_be_exact = trusted.is_some() || seen.iter().flatten().any(is_exact);
        let is_fit = |seen: &Seen| !must_be_exact || is_exact(seen);
        let fitting = || order.into_iter().zip(seen).filter(|(_, seen)| seen.as_ref().is_some_and(is_fit));
        let form = match (fitting().next(), fitting().count()) {
            (Some((form, _)), 1) => {
                self.is_mixed |= self.known.is_some_and(|known| known != form);
                self.known = Some(form);
                form
            }
            (Some((form, _)), _) => {
                self.is_guess = true;
                form
            }
            (None, _) => {
                self.is_guess = trusted.is_none();
                trusted.unwrap_or(order[0])
            }
        };
        self.last = Some(form);
        form
    }

    /// Notes that the last message was read in the form that was chosen.
    pub(super) fn accept(&mut self) {
        if let Some(form) = self.last.filter(|_| self.is_guess) {
            let count = self.guessed.map_or(0, |(count, _)| count);
            self.guessed = Some((count + 1, form));
        }
    }
}
