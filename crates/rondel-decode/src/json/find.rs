//! Search for values in well-formed JSON by path, and comparison with constants.

use rondel_event::{FROM_END, Named, Segment, Test, Value};

use super::scan::{Kind, Scanner, float, integer, unescape};

/// Positions of the last elements of an array.
#[derive(Default)]
pub(super) struct Last {
    starts: [usize; FROM_END as usize],
    pub(super) count: usize,
}

impl Last {
    #[inline]
    pub(super) fn push(&mut self, start: usize) {
        self.starts[self.count % FROM_END as usize] = start;
        self.count += 1;
    }

    /// Returns the position of the element counted from the end, if there is one.
    pub(super) fn get(&self, from_end: u32) -> Option<usize> {
        let index = self.count.checked_sub(from_end as usize)?;
        (1..=FROM_END).contains(&from_end).then(|| self.starts[index % FROM_END as usize])
    }
}

/// Returns the position of a name in the array of names of a well-formed object; of the last one if it is repeated.
pub(super) fn position(object: &[u8], named: &Named) -> Option<u32> {
    let mut found = None;
    let mut names = Scanner::with_nan(find(object, &named.key().0)?);
    if names.kind().ok()? != Kind::Array {
        return None;
    }
    let scanned = names.elements(0, |scanner, index| {
        let start = scanner.at;
        scanner.skip(1)?;
        if named.condition.test.holds(&scanner.text[start..scanner.at]) {
            found = u32::try_from(index).ok();
        }
        Ok(())
    });
    scanned.ok().and(found)
}

/// Returns the text of the value at `path` in a well-formed value; the last one if a key is repeated.
pub(super) fn find<'t>(value: &'t [u8], path: &[Segment]) -> Option<&'t [u8]> {
    let Some((first, rest)) = path.split_first() else { return Some(value) };
    if let (Segment::Key(_), Some((Segment::Named(named), rest))) = (first, rest.split_first())
        && named.is_parallel
    {
        let index = Segment::Index(position(value, named)?);
        return find(find(find(value, std::slice::from_ref(first))?, &[index])?, rest);
    }
    let mut found = None;
    let mut scanner = Scanner::with_nan(value);
    match (first, scanner.kind().ok()?) {
        (Segment::Key(name), Kind::Object) => scanner.members(0, |scanner, key| {
            let start = scanner.at;
            scanner.skip(1)?;
            if key.is(name) {
                found = Some(&value[start..scanner.at]);
            }
            Ok(())
        }),
        (Segment::Index(wanted), Kind::Array) => scanner.elements(0, |scanner, index| {
            let start = scanner.at;
            scanner.skip(1)?;
            if index == *wanted as usize {
                found = Some(&value[start..scanner.at]);
            }
            Ok(())
        }),
        (Segment::FromEnd(wanted), Kind::Array) => {
            let mut last = Last::default();
            let scanned = scanner.elements(0, |scanner, _| {
                last.push(scanner.at);
                scanner.skip(1)
            });
            if let Some(at) = last.get(*wanted) {
                scanner.at = at;
                scanner.skip(1).ok()?;
                found = Some(&value[at..scanner.at]);
            }
            scanned
        }
        (Segment::Named(named), Kind::Array) => scanner.elements(0, |scanner, _| {
            let start = scanner.at;
            scanner.skip(1)?;
            let element = &value[start..scanner.at];
            if find(element, &named.key().0).is_some_and(|name| named.condition.test.holds(name)) {
                found = Some(element);
            }
            Ok(())
        }),
        _ => return None,
    }
    .ok()?;
    find(found?, rest)
}

/// Whether the text between quotation marks is the wanted one; `None` if it is no text.
fn is_text(raw: &[u8], wanted: &str) -> Option<bool> {
    if raw.contains(&b'\\') {
        return unescape(raw).map(|text| text == wanted);
    }
    if raw == wanted.as_bytes() {
        return Some(true);
    }
    std::str::from_utf8(raw).ok().map(|_| false)
}

pub(super) trait Holds {
    fn holds(&self, text: &[u8]) -> bool;
}

impl Holds for Test {
    /// Whether the well-formed value meets the test.
    fn holds(&self, text: &[u8]) -> bool {
        let Ok(kind) = Scanner::with_nan(text).kind() else { return false };
        let number = || (kind == Kind::Number).then(|| float(text));
        match self {
            Test::Present => true,
            Test::Number(comparison, bound) => number().is_some_and(|value| comparison.is_met(value, *bound)),
            Test::Integer(comparison, bound) => {
                kind == Kind::Number && integer(text).is_some() && comparison.is_met(float(text), *bound)
            }
            Test::Equals(Value::Bool(wanted)) => kind == if *wanted { Kind::True } else { Kind::False },
            Test::Equals(Value::Float(wanted)) => number() == Some(*wanted),
            Test::Equals(Value::Int(wanted)) => number() == Some(*wanted as f64),
            Test::Equals(Value::Time(_) | Value::Duration(_)) => false,
            Test::Equals(Value::String(wanted)) => {
                kind == Kind::String && is_text(&text[1..text.len() - 1], wanted) == Some(true)
            }
            Test::OtherText(other) => {
                kind == Kind::String && is_text(&text[1..text.len() - 1], other) == Some(false)
            }
        }
    }
}
