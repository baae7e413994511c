//! Counts and examples of values that could not be written.

use rondel_event::{Slot, Timestamp};

/// Text of a message that is not a number although one is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoNumber {
    slot: Slot,
    /// Its first bytes.
    text: [u8; NoNumber::SHOWN],
    length: u8,
    is_cut: bool,
}

impl NoNumber {
    const SHOWN: usize = 24;

    pub(crate) fn new(slot: Slot, text: &[u8]) -> NoNumber {
        let length = text.len().min(NoNumber::SHOWN);
        let mut shown = [0; NoNumber::SHOWN];
        shown[..length].copy_from_slice(&text[..length]);
        NoNumber { slot, text: shown, length: length as u8, is_cut: length < text.len() }
    }

    /// Returns the slot of its field.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// Returns the same text for the field of another slot.
    pub(crate) fn at(self, slot: Slot) -> NoNumber {
        NoNumber { slot, ..self }
    }

    /// Returns the text, or its first characters, as a JSON string.
    pub fn quoted(&self) -> String {
        let text = String::from_utf8_lossy(&self.text[..usize::from(self.length)]);
        let mut quoted = Vec::new();
        crate::json::write::quoted(&text, &mut quoted);
        let mut quoted = String::from_utf8(quoted).unwrap_or_default();
        if self.is_cut {
            quoted.insert(quoted.len() - 1, '…');
        }
        quoted
    }
}

/// The first value of another type than the program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstMistyped {
    /// Slot of its field.
    pub slot: Slot,
    /// Time of its message.
    pub time: Timestamp,
    /// Offset of the value in the message, in bytes, if the decoder knows it.
    pub offset: Option<usize>,
}

/// Counts of the values of messages that could not be written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refused {
    pub(crate) mistyped: u64,
    /// The first of them, where it is known.
    pub(crate) first: Option<FirstMistyped>,
    pub(crate) not_numbers: u64,
    pub(crate) left_out: u64,
    pub(crate) large: Option<Slot>,
    pub(crate) no_number: Option<NoNumber>,
}

impl Refused {
    /// No value.
    pub(crate) const NONE: Refused =
        Refused { mistyped: 0, first: None, not_numbers: 0, left_out: 0, large: None, no_number: None };

    /// Returns the number of values of another type than the program reads, undefined in their type, or out of the range
    /// of their column.
    pub fn mistyped(&self) -> u64 {
        self.mistyped
    }

    /// Returns the first value of another type, where it is known.
    pub fn first_mistyped(&self) -> Option<FirstMistyped> {
        self.first
    }

    /// Returns the number of NaN values.
    pub fn not_numbers(&self) -> u64 {
        self.not_numbers
    }

    /// Returns the number of array elements omitted from conditions and measures because they were NaN or null.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the slot of an integer beyond the signed 64-bit range, or of one that a double rounds, if there was one.
    pub fn too_large(&self) -> Option<Slot> {
        self.large
    }

    /// Returns the first text that is not a number although one is read.
    pub fn no_number(&self) -> Option<NoNumber> {
        self.no_number
    }

    /// Adds the counts of another message.
    #[inline(always)]
    pub(crate) fn add(&mut self, other: Refused) {
        self.mistyped += other.mistyped;
        if other.mistyped > 0 {
            self.first = self.first.or(other.first);
        }
        // Arrays may come in parts; a later one may subtract counts of an earlier one.
        self.not_numbers = self.not_numbers.wrapping_add(other.not_numbers);
        self.left_out += other.left_out;
        if other.large.is_some() {
            self.large = other.large;
        }
    }

    /// Adds a text of another message that is not a number although one is read.
    #[inline(always)]
    pub(crate) fn add_text(&mut self, no_number: Option<NoNumber>) {
        if no_number.is_some() {
            self.no_number = self.no_number.or(no_number);
        }
    }
}
