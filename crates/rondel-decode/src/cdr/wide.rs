//! Wide strings, of which CDR has several forms, and the choice of a message's form.
//!
//! No header states the form. It is found by reading the message in each form: see [`Wide::choose`].

use std::fmt;

use super::plan::Version;

/// Form of the wide strings in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WideForm {
    /// The length in bytes, then UTF-16: DDS-XTypes since 1.2, CycloneDDS.
    Bytes,
    /// The number of UTF-16 units, then UTF-16: Fast-CDR 2.
    Units,
    /// The number of characters or UTF-16 units, then four bytes for each: Fast-CDR 1, and all versions of ROS 2.
    Words,
}

/// Maximum value of a UTF-16 unit.
const UNIT: u32 = 0xffff;

impl WideForm {
    /// Returns the forms in order of preference if several fit equally well.
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

    /// Replaces `text` with the characters in `bytes`. Returns whether they are text, which has no zero character.
    pub(super) fn read(self, is_big: bool, bytes: &[u8], text: &mut String) -> bool {
        text.clear();
        if self == WideForm::Words {
            let (words, rest) = bytes.as_chunks::<4>();
            let word = |word: &[u8; 4]| match is_big {
                true => u32::from_be_bytes(*word),
                false => u32::from_le_bytes(*word),
            };
            // A word is a character, or half of one with two UTF-16 units.
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
        // IDL and ROS 2 exclude it, and most texts read in a wrong form contain it.
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
    /// Whether there was a non-empty wide string: empty ones are equal in all forms.
    pub(super) has_text: bool,
    /// Whether a part ended before its last member, as if its writer knew fewer.
    pub(super) has_ended: bool,
    /// Number of bytes left at the ends of parts of known length.
    pub(super) unread: usize,
}

impl Seen {
    /// Whether all members are present, and every byte belongs to one or to the padding stated in the header.
    pub(super) fn is_exact(&self, padding: usize) -> bool {
        !self.has_ended && self.unread == padding
    }
}

/// Forms of the wide strings of a topic so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wide {
    /// Form of the messages that fit only one form.
    known: Option<WideForm>,
    /// Whether there were such messages of several forms.
    is_mixed: bool,
    /// Form of the last message, if it has non-empty wide strings.
    pub(super) last: Option<WideForm>,
    /// Whether another form fits the last message as well, or none does.
    is_guess: bool,
    /// Number of messages with a guessed form, and the last such form.
    pub(super) guessed: Option<(u64, WideForm)>,
}

impl Wide {
    /// Chooses the form of a message. `read` reads the whole message in a form, and fails if it does not fit.
    ///
    /// A form that uses every byte is preferred. Of several, it is the one proved by an earlier message, otherwise the
    /// first of [`WideForm::order`].
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
        // A truncated message may fit another form, but not exactly.
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

    /// Records that the last message was read in the chosen form.
    pub(super) fn accept(&mut self) {
        if let Some(form) = self.last.filter(|_| self.is_guess) {
            let count = self.guessed.map_or(0, |(count, _)| count);
            self.guessed = Some((count + 1, form));
        }
    }
}
