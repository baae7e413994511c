//! Conditions on array elements, and measures of them. Elements that are NaN are omitted, and so are null ones, which
//! represent NaN in JSON.

use std::fmt::Write as _;

use rondel_event::terminal::is_obeyed;
use rondel_event::{Block, Quantifier, Slot};

use crate::fields::Alternatives;

/// Number of words for a [`Measured`] or a [`Tested`] between two elements.
pub(crate) const WORDS: usize = 5;

/// A measured element.
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
    /// Number of elements, without NaN.
    count: u64,
    sum: f64,
    least: f64,
    greatest: f64,
    /// Number of elements that are NaN or null.
    left_out: u64,
    has_null: bool,
    is_other: bool,
}

/// Numbers of values that an array lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Lacking {
    /// Values of another type: the array counts as one.
    pub(crate) mistyped: u64,
    /// Values that are unknown because elements are NaN.
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

    /// Restores it from words, which are 0 before the first element.
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

    /// Returns the words of measured numbers.
    pub(crate) fn words(&self) -> [u64; WORDS] {
        let count = self.count << 2 | u64::from(self.has_null) << 1 | 1;
        [count, self.sum.to_bits(), self.least.to_bits(), self.greatest.to_bits(), self.left_out]
    }

    /// Returns the number of elements omitted from a measure. A sum without one would be another sum: it is unknown.
    pub(crate) fn left_out(&self, measure: Quantifier) -> u64 {
        if measure == Quantifier::Sum { 0 } else { self.left_out }
    }

    /// Whether a measure is unknown because elements are omitted.
    fn lacks(&self, measure: Quantifier) -> bool {
        self.left_out > 0 && (self.count == 0 || measure == Quantifier::Sum)
    }

    /// Returns the values that the array lacks.
    pub(crate) fn lacking(&self, measure: Quantifier) -> Lacking {
        // A null may have any type.
        let lacks = self.lacks(measure) && !self.has_null && !self.is_other;
        Lacking { mistyped: u64::from(self.is_other), not_numbers: u64::from(lacks) }
    }

    /// Writes a measure. Returns the values that the array lacks.
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
            // Infinities may cancel each other.
            Slot::Float(column) if is_known && !value.is_nan() => block.set_float(column, row, value),
            slot => block.set_invalid(slot, row),
        }
        lacking
    }
}

/// Number of array elements that meet conditions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tested {
    pub(crate) met: u64,
    pub(crate) total: u64,
    /// Number of elements that do not meet the conditions, but might if a compared number were not NaN or null.
    pub(crate) left_out: u64,
}

impl Tested {
    /// Adds an element that meets these conditions; for the `unknown` ones a number is NaN. `single` is all conditions
    /// if there is only one alternative. Returns whether the element meets them.
    #[inline(always)]
    pub(crate) fn add(
        &mut self,
        alternatives: &Alternatives,
        single: Option<u64>,
        met: u64,
        unknown: u64,
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

    /// Whether every element is omitted, so that nothing is known of the array.
    pub(crate) fn lacks(&self) -> bool {
        self.left_out > 0 && self.left_out == self.total
    }

    /// Restores it from words, which are 0 before the first element.
    pub(crate) fn from_words([met, total, left_out, ..]: [u64; WORDS]) -> Tested {
        Tested { met, total, left_out }
    }

    /// Returns the words of it.
    pub(crate) fn words(&self) -> [u64; WORDS] {
        [self.met, self.total, self.left_out, 0, 0]
    }

    /// Writes the value of a quantifier. Returns the number of values that the array lacks.
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

/// Tested values of an element, by the bits of the conditions.
pub(crate) type Seen = Vec<(u8, String)>;

/// Search for the element that decides a quantifier, or for the minimum or maximum, over successive elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Witness {
    quantifier: Quantifier,
    /// Number of elements so far.
    passed: u64,
    /// The minimum or maximum of them.
    best: f64,
    is_found: bool,
}

impl Witness {
    /// Maximum number of characters shown of a value.
    const SHOWN: usize = 40;

    pub(crate) fn new(quantifier: Quantifier) -> Witness {
        Witness { quantifier, passed: 0, best: 0.0, is_found: false }
    }

    /// Restores it from words, which are 0 before the first element.
    pub(crate) fn from_words(quantifier: Quantifier, [passed, best, is_found, ..]: [u64; WORDS]) -> Witness {
        Witness { quantifier, passed, best: f64::from_bits(best), is_found: is_found == 1 }
    }

    /// Returns the words of it.
    pub(crate) fn words(&self) -> [u64; WORDS] {
        [self.passed, self.best.to_bits(), u64::from(self.is_found), 0, 0]
    }

    /// Adds an element that meets the conditions or not; `None` if that is unknown. Returns its text if it decides.
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
            // If a value has a default and a value in the message, the latter comes last.
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

    /// Adds a measured element. Returns its position if it is the minimum or maximum so far.
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

    /// Returns the text of an element in quotes, truncated if it is long.
    pub(crate) fn quoted(text: &str) -> String {
        let mut quoted = String::from('"');
        for c in text.chars().take(Witness::SHOWN) {
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                c if is_obeyed(c) => _ = write!(quoted, "\\u{{{:x}}}", u32::from(c)),
                c => quoted.push(c),
            }
        }
        quoted.push_str(if text.chars().nth(Witness::SHOWN).is_some() { "…\"" } else { "\"" });
        quoted
    }
}
