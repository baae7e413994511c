//! Tests and measures of the elements of an array.

use rondel_event::{Condition, Quantifier, Slot, Test};

use super::find::{Holds, find};
use super::plan::Action;
use super::scan::{JsonError, Kind, Scanner, float, integer, unescape};
use crate::elements::{Measurand, Measured, Tested, Witness};
use crate::fields::Fields;
use crate::sink::is_of_number;

/// Maximum number of tests of an array in the first pass.
pub(super) const TESTS: usize = 4;

/// Conditions on an element: those of the first alternative, and those of the others.
#[derive(Clone, Copy)]
pub(super) struct Alternatives<'a>(&'a [Condition], &'a [Condition]);

impl<'a> Alternatives<'a> {
    fn of(conditions: &'a [Condition]) -> Alternatives<'a> {
        let is_first = |condition: &Condition| condition.alternative == conditions[0].alternative;
        let (first, others) = conditions.split_at(conditions.partition_point(is_first));
        Alternatives(first, others)
    }

    pub(super) fn conditions(self) -> impl Iterator<Item = &'a Condition> {
        self.0.iter().chain(self.1)
    }

    /// Whether all conditions of one alternative hold.
    #[inline(always)]
    pub(super) fn are_met(self, holds: impl Fn(&Condition) -> bool) -> bool {
        let Alternatives(mut conditions, mut others) = self;
        loop {
            if conditions.iter().all(&holds) {
                return true;
            }
            if others.is_empty() {
                return false;
            }
            Alternatives(conditions, others) = Alternatives::of(others);
        }
    }
}

/// Conditions on elements, their quantifier, and the slot of the result.
pub(super) type NumberTest<'a> = (Alternatives<'a>, Quantifier, Slot);

/// Returns the tests of an array, if it is only read by comparisons of its elements with numbers.
pub(super) fn number_tests(actions: &[Action]) -> Option<([NumberTest<'_>; TESTS], usize)> {
    let nothing = (Alternatives(&[], &[]), Quantifier::Any, Slot::Bool(0));
    let mut tests: [NumberTest<'_>; TESTS] = [nothing; TESTS];
    for (i, action) in actions.iter().enumerate() {
        let Action::Elements(quantifier, conditions, slot) = action else { return None };
        if quantifier.is_measure() {
            return None;
        }
        let is_plain =
            |c: &Condition| c.path.0.is_empty() && matches!(c.test, Test::Number(..) | Test::Integer(..));
        // Without a condition every element counts, also one that is no number.
        if conditions.is_empty() || !conditions.iter().all(is_plain) {
            return None;
        }
        *tests.get_mut(i)? = (Alternatives::of(conditions), *quantifier, *slot);
    }
    (!actions.is_empty()).then_some((tests, actions.len()))
}

/// Skips an array and measures its elements.
pub(super) fn measured(scanner: &mut Scanner<'_>, depth: u32) -> Result<Measured, JsonError> {
    let mut measured = Measured::NOTHING;
    scanner.elements(depth, |scanner, _| {
        let element = match scanner.kind()? {
            Kind::Number => Measurand::Number(scanner.number_value()?),
            Kind::Nan => {
                scanner.skip(depth + 1)?;
                Measurand::Number(f64::NAN)
            }
            kind => {
                scanner.skip(depth + 1)?;
                if kind == Kind::Null { Measurand::Null } else { Measurand::Other }
            }
        };
        measured.add(element);
        Ok(())
    })?;
    Ok(measured)
}

/// Returns the element of a well-formed array that decides a quantifier, or is the minimum or maximum.
pub(super) fn witness(quantifier: Quantifier, conditions: &[Condition], array: &[u8]) -> Option<String> {
    let (alternatives, slot) = (Alternatives::of(conditions), Slot::String(0));
    let names = Fields::names(conditions, slot);
    let (mut witness, mut found) = (Witness::new(quantifier), None);
    let scanned = Scanner::with_nan(array).elements(0, |scanner, _| {
        let (start, kind) = (scanner.at, scanner.kind()?);
        let number = if kind == Kind::Number { Some(scanner.number_value()?) } else { None };
        if number.is_none() {
            scanner.skip(1)?;
        }
        let element = &array[start..scanner.at];
        let text = if quantifier.is_measure() {
            witness.measure(number.map_or(Measurand::Other, Measurand::Number))
        } else {
            let find = |c: &Condition| find(element, &c.path.0);
            let holds = |c: &Condition| find(c).is_some_and(|found| c.test.holds(found));
            let is_met = alternatives.are_met(holds);
            let is_null = |c: &Condition| is_of_number(&c.test) && find(c).is_some_and(is_left_out);
            let may_meet = !is_met && alternatives.are_met(|c| holds(c) || is_null(c));
            let value = |name: &str| {
                let condition = conditions.iter().find(|c| c.path.to_string() == name)?;
                Some(shown(find(condition)?))
            };
            let seen = names.iter().enumerate().filter_map(|(bit, name)| Some((bit as u8, value(name)?)));
            witness.test((!may_meet).then_some(is_met), &names, &seen.collect::<Vec<_>>())
        };
        found = text.or_else(|| found.take());
        Ok(())
    });
    debug_assert!(scanned.is_ok(), "the array was scanned before");
    found
}

/// Returns a value of an element as text for users.
fn shown(json: &[u8]) -> String {
    match json {
        [b'"', inner @ .., b'"'] => Witness::quoted(&unescape(inner).unwrap_or_default()),
        // As in other encodings.
        [b'-' | b'0'..=b'9', ..] => integer(json).map_or_else(|| float(json).to_string(), |x| x.to_string()),
        other => {
            let text = String::from_utf8_lossy(other);
            let most = 40;
            match text.char_indices().nth(most) {
                Some((at, _)) => format!("{}…", &text[..at]),
                None => text.into_owned(),
            }
        }
    }
}

/// Whether a condition concerns a field declared as an integer.
pub(super) fn is_of_integer(condition: &Condition) -> bool {
    matches!(condition.test, Test::Integer(..))
}

/// Whether a value is null or NaN, so that a condition on a number omits its element.
fn is_left_out(text: &[u8]) -> bool {
    matches!(text, b"null" | NAN)
}

/// Not a number, in rows of tables.
const NAN: &[u8] = b"NaN";

/// Results of testing the elements of an array.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) tested: Tested,
    /// Whether a compared number of an element has another type.
    pub(super) has_other: bool,
    /// Whether a compared number of an element is NaN.
    pub(super) has_nan: bool,
}

/// Tests the elements of a well-formed array.
pub(super) fn count_elements(conditions: &[Condition], array: &[u8]) -> Counted {
    let alternatives = Alternatives::of(conditions);
    let (mut tested, mut has_other, mut has_nan) = (Tested::default(), false, false);
    let is_other = |condition: &Condition, text: &[u8]| match Scanner::with_nan(text).kind() {
        Ok(Kind::Number) => is_of_integer(condition) && integer(text).is_none(),
        kind => !matches!(kind, Ok(Kind::Null | Kind::Nan)),
    };
    let scanned = Scanner::with_nan(array).elements(0, |scanner, _| {
        let start = scanner.at;
        scanner.skip(1)?;
        let element = &array[start..scanner.at];
        let holds = |c: &Condition| find(element, &c.path.0).is_some_and(|found| c.test.holds(found));
        tested.total += 1;
        if alternatives.are_met(holds) {
            tested.met += 1;
            return Ok(());
        }
        // Null or NaN is only looked for in elements that do not meet the conditions, which are usually few.
        let mut has_null = false;
        for condition in conditions.iter().filter(|condition| is_of_number(&condition.test)) {
            let found = find(element, &condition.path.0);
            has_null |= found.is_some_and(is_left_out);
            has_nan |= found == Some(NAN);
            has_other |= found.is_some_and(|found| is_other(condition, found));
        }
        if has_null {
            let is_null =
                |c: &Condition| is_of_number(&c.test) && find(element, &c.path.0).is_some_and(is_left_out);
            tested.left_out += u64::from(alternatives.are_met(|c| holds(c) || is_null(c)));
        }
        Ok(())
    });
    debug_assert!(scanned.is_ok(), "the array was scanned before");
    Counted { tested, has_other, has_nan }
}
