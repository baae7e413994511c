//! Conditions on the elements of an array, and measures of them. Elements that are NaN are left out, and so are those that
//! are null, as which JSON has NaN.

use std::fmt::Write as _;

use rondel_event::{Block, Quantifier, Slot};

use crate::fields::Alternatives;

/// The number of words that hold a [`Measured`] or a [`Tested`] between two elements.
pub(crate) const WORDS: usize = 5;

/// An element that is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Measurand {
    Number(f64),
    Null,
    /// A value of another type.
    Other,
}

/// Measures of the elements of an array so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// The number of elements, without NaN.
    count: u64,
    sum: f64,
    least: f64,
    greatest: f64,
    /// The number of elements that are NaN or null.
    left_out: u64,
    has_null: bool,
    is_other: bool,
}

/// Values that an array does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Lacking {
    /// Values of another type: the array counts as one.
    pub(crate) mistyped: u64,
    /// Values that are unknown as elements are NaN.
    pub(crate) not_numbers: u64,
}

impl Measured {
    pub(crate) const NOTHING: Measured = Measured {
        count: 0,
        sum: 0.0,
        least: f64::INFINITY,
        greatest: f64::NEG_INFINITY,
        left_out: 0,
        has_null: false,
        is_other: false,
    };

    #[inline(always)]
    pub(crate) fn add(&mut self, element: Measurand) {
        match element {
            Measurand::Number(value) if value.is_nan() => self.left_out += 1,
            Measurand::Number(value) => {
                self.count += 1;
                self.sum += value;
                self.least = self.least.min(value);
                self.greatest = self.greatest.max(value);
            }
            Measurand::Null => {
                self.left_out += 1;
                self.has_null = true;
            }
            Measurand::Other => self.is_other = true,
        }
    }

    /// Reads the words that hold it; they were 0 before the first element.
    pub(crate) fn from_words([count, sum, least, greatest, left_out]: [u64; WORDS]) -> Measured {
        match count {
            0 => Measured::NOTHING,
            _ => Measured {
                count: count >> 2,
                sum: f64::from_bits(sum),
                least: f64::from_bits(least),
                greatest: f64::from_bits(greatest),
                left_out,
                has_null: count & 2 == 2,
                is_other: false,
            },
        }
    }

    /// The words for numbers that have been added.
    pub(crate) fn words(&self) -> [u64; WORDS] {
        let count = self.count << 2 | u64::from(self.has_null) << 1 | 1;
        [count, self.sum.to_bits(), self.least.to_bits(), self.greatest.to_bits(), self.left_out]
    }

    /// The number of elements that are left out of a measure. A sum without one would be another sum: it is unknown.
    pub(crate) fn left_out(&self, measure: Quantifier) -> u64 {
        if measure == Quantifier::Sum { 0 } else { self.left_out }
    }

    /// Whether a measure is unknown as elements are left out.
    fn lacks(&self, measure: Quantifier) -> bool {
        self.left_out > 0 && (self.count == 0 || measure == Quantifier::Sum)
    }

    /// Returns which values the array does not have.
    pub(crate) fn lacking(&self, measure: Quantifier) -> Lacking {
        // Of null nobody says that it is a number.
        let lacks = self.lacks(measure) && !self.has_null && !self.is_other;
        Lacking { mistyped: u64::from(self.is_other), not_numbers: u64::from(lacks) }
    }

    /// Writes a measure. Returns which values the array does not have.
    pub(crate) fn write(&self, block: &mut Block, row: usize, slot: Slot, measure: Quantifier) -> Lacking {
        let value = match measure {
            Quantifier::Min => self.least,
            Quantifier::Max => self.greatest,
            Quantifier::Sum => self.sum,
            _ => self.sum / self.count as f64,
        };
        let lacking = self.lacking(measure);
        let is_known = self.count > 0 && !self.lacks(measure) && !self.is_other;
        match slot {
            // Infinities may cancel each other out.
            Slot::Float(column) if is_known && !value.is_nan() => block.set_float(column, row, value),
            slot => block.set_invalid(slot, row),
        }
        lacking
    }
}

/// The number of elements of an array that meet conditions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tested {
    pub(crate) met: u64,
    pub(crate) total: u64,
    /// The number of elements that do not meet them, as a number that is compared is NaN or null, and otherwise might.
    pub(crate) left_out: u64,
}

impl Tested {
    /// Adds an element that meets these conditions; of the `unknown` ones a number is NaN. `single` are all conditions if
    /// there is only one alternative. Returns whether it meets them.
    #[inline(always)]
    pub(crate) fn add(
        &mut self,
        alternatives: &Alternatives,
        single: Option<u64>,
        (met, unknown): (u64, u64),
    ) -> bool {
        let meets = |conditions: u64| match single {
            Some(all) => conditions == all,
            None => alternatives.are_met(conditions),
        };
        let is_met = meets(met);
        self.total += 1;
        self.met += u64::from(is_met);
        if unknown != 0 && !is_met {
            self.left_out += u64::from(meets(met | unknown));
        }
        is_met
    }

    /// Whether every element is left out, so that nothing is known of the array.
    pub(crate) fn lacks(&self) -> bool {
        self.left_out > 0 && self.left_out == self.total
    }

    /// Reads the words that hold it; they were 0 before the first element.
    pub(crate) fn from_words([met, total, left_out, ..]: [u64; WORDS]) -> Tested {
        Tested { met, total, left_out }
    }

    /// The words that hold it.
    pub(crate) fn words(&self) -> [u64; WORDS] {
        [self.met, self.total, self.left_out, 0, 0]
    }

    /// Writes the value of a quantifier. Returns how many values the array does not have.
    pub(crate) fn write(&self, block: &mut Block, row: usize, slot: Slot, quantifier: Quantifier) -> u64 {
        if self.lacks() {
            block.set_invalid(slot, row);
            return 1;
        }
        match (slot, quantifier) {
            (Slot::Bool(column), Quantifier::Any) => block.set_bool(column, row, self.met > 0),
            (Slot::Bool(column), Quantifier::All) => {
                block.set_bool(column, row, self.met + self.left_out == self.total);
            }
            // No message has more elements.
            (Slot::Int(column), Quantifier::Count) => block.set_int(column, row, self.met as i64),
            _ => {}
        }
        0
    }
}

/// The values of an element that conditions have tested, by the bits of these.
pub(crate) type Seen = Vec<(u8, String)>;

/// The element that decides a quantifier, or that is the least or the greatest, while elements pass by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Witness {
    quantifier: Quantifier,
    /// The number of elements so far.
    passed: u64,
    /// The least or the greatest of them.
    best: f64,
    is_found: bool,
}

impl Witness {
    /// The number of characters of a value that are shown.
    const SHOWN: usize = 40;

    pub(crate) fn new(quantifier: Quantifier) -> Witness {
        Witness { quantifier, passed: 0, best: 0.0, is_found: false }
    }

    /// Reads the words that hold it; they were 0 before the first element.
    pub(crate) fn from_words(quantifier: Quantifier, [passed, best, is_found, ..]: [u64; WORDS]) -> Witness {
        Witness { quantifier, passed, best: f64::from_bits(best), is_found: is_found == 1 }
    }

    /// The words that hold it.
    pub(crate) fn words(&self) -> [u64; WORDS] {
        [self.passed, self.best.to_bits(), u64::from(self.is_found), 0, 0]
    }

    /// Takes an element that meets the conditions or not; none if nobody knows. Its text if it decides.
    pub(crate) fn test(
        &mut self,
        is_met: Option<bool>,
        names: &[Box<str>],
        seen: &[(u8, String)],
    ) -> Option<String> {
        let index = self.passed;
        self.passed += 1;
        let decides = is_met == Some(self.quantifier != Quantifier::All);
        if self.is_found || !decides {
            return None;
        }
        self.is_found = true;
        let mut text = format!("[{index}]");
        let mut named: Vec<&str> = Vec::new();
        let name_of = |bit: u8| names.get(usize::from(bit)).map_or("", |name| &**name);
        for (bit, _) in seen {
            let name = name_of(*bit);
            // Of a default and a value in the message the value comes last.
            let last = seen.iter().rfind(|(bit, _)| name_of(*bit) == name).map(|(_, value)| value);
            let Some(value) = last.filter(|_| !named.contains(&name)) else { continue };
            text.push_str(if named.is_empty() { " " } else { ", " });
            named.push(name);
            if !name.is_empty() {
                text.push_str(name);
                text.push(' ');
            }
            text.push_str(value);
        }
        Some(text)
    }

    /// Takes an element that is measured. Its position if it is the least or the greatest so far.
    pub(crate) fn measure(&mut self, element: Measurand) -> Option<String> {
        let index = self.passed;
        self.passed += 1;
        let Measurand::Number(value) = element else { return None };
        let is_better = match self.quantifier {
            Quantifier::Min => value < self.best,
            Quantifier::Max => value > self.best,
            _ => return None,
        };
        if value.is_nan() || self.is_found && !is_better {
            return None;
        }
        (self.best, self.is_found) = (value, true);
        Some(format!("[{index}]"))
    }

    /// A text of an element as it is shown: in quotes, and not too long.
    pub(crate) fn quoted(text: &str) -> String {
        let mut quoted = String::from('"');
        for c in text.chars().take(Witness::SHOWN) {
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                c if c.is_control() => _ = write!(quoted, "\\u{{{:x}}}", u32::from(c)),
                c => quoted.push(c),
            }
        }
        quoted.push_str(if text.chars().nth(Witness::SHOWN).is_some() { "…\"" } else { "\"" });
        quoted
    }
}
