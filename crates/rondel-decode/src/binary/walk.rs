//! Walk over a message in any self-describing encoding.

use rondel_event::{Countable, Slot};

use super::plan::{Key, NamedElement, Node, Parallel, head};
use super::{Format, Reader, Token};
use crate::error::{Fault, MessageErrorKind, Parsed};
use crate::json::MAX_DEPTH;
use crate::sink::{ElementTest, Scalar, Sink, Target, float_nanos, instant, span, sum};

const NS_PER_S: i64 = 1_000_000_000;

/// State of a walk over a message.
pub(super) struct Walk<'m, 'w> {
    pub(super) reader: Reader<'m>,
    pub(super) sink: Sink<'w>,
    pub(super) scratch: Vec<u8>,
}

impl<'m> Walk<'m, '_> {
    /// Reads the message, and checks that nothing follows.
    pub(super) fn message<F: Format>(&mut self, root: &Node) -> Parsed<()> {
        self.value::<F>(root, 0)?;
        if self.reader.rest() > 0 {
            return Err(Fault::new(self.reader.at, MessageErrorKind::TrailingBytes));
        }
        Ok(())
    }

    fn value<F: Format>(&mut self, node: &Node, depth: u32) -> Parsed<()> {
        let start = self.reader.at;
        match F::token(&mut self.reader)? {
            Token::Scalar(scalar) => self.scalar(node, scalar, start),
            Token::Map(count) => self.map::<F>(node, count, start, depth),
            Token::Array(count) => self.array::<F>(node, count, start, depth),
            Token::OpenText => {
                let mut text = std::mem::take(&mut self.scratch);
                text.clear();
                let read = F::text_parts(&mut self.reader, &mut text);
                let written = read.and_then(|()| self.scalar(node, Scalar::Text(&text), start));
                self.scratch = text;
                written
            }
            Token::End => Err(Fault::new(start, MessageErrorKind::Misplaced)),
        }
    }

    /// Marks the values of parts as missing, since the value at `start` is null or of another type than the map or
    /// array that contains them.
    #[cold]
    fn lack(&mut self, parts: &[Target], is_null: bool, start: usize) -> Parsed<()> {
        for part in parts {
            self.sink.lack(part, is_null).map_err(|kind| Fault::new(start, kind))?;
        }
        Ok(())
    }

    #[inline(always)]
    fn scalar(&mut self, node: &Node, scalar: Scalar<'_>, start: usize) -> Parsed<()> {
        self.sink.at = start;
        for target in &node.targets {
            let is_epoch = self.reader.is_epoch && target.is_time();
            let scalar = if is_epoch { since_1970(scalar) } else { scalar };
            self.sink.write(target, scalar).map_err(|kind| Fault::new(start, kind))?;
        }
        if !node.not_in_scalar.is_empty() {
            self.lack(&node.not_in_scalar, matches!(scalar, Scalar::Null), start)?;
        }
        Ok(())
    }

    fn map<F: Format>(&mut self, node: &Node, count: Option<u64>, start: usize, depth: u32) -> Parsed<()> {
        if depth >= MAX_DEPTH {
            return Err(Fault::new(start, MessageErrorKind::TooDeep));
        }
        if node.keys.is_empty() {
            self.pass::<F>(count, 2, depth)?;
        } else {
            self.members::<F>(&node.keys, count, depth)?;
        }
        self.sink.at = start;
        for target in &node.targets {
            let value = if target.is_time() { self.seconds_and_nanos::<F>(start) } else { Scalar::Other };
            self.sink.write(target, value).map_err(|kind| Fault::new(start, kind))?;
        }
        if !node.not_in_map.is_empty() {
            self.lack(&node.not_in_map, false, start)?;
        }
        if !node.parallel.is_empty() {
            self.parallel::<F>(node, start, depth)?;
        }
        Ok(())
    }

    /// Reads elements of arrays in the map at `start`, identified by the names in other arrays.
    fn parallel<F: Format>(&mut self, node: &Node, start: usize, depth: u32) -> Parsed<()> {
        let end = self.reader.at;
        for Parallel { array, names, element } in &node.parallel {
            let Some(at) = self.member::<F>(start, names, depth)? else { continue };
            self.reader.at = at;
            let Token::Array(count) = F::token(&mut self.reader)? else { continue };
            let (mut found, mut passed) = (None, 0);
            while count != Some(passed) && !(count.is_none() && F::end(&mut self.reader)) {
                if self.has_name::<F>(element, passed, depth + 1)? {
                    found = Some(passed);
                }
                passed += 1;
            }
            let (Some(index), Some(at)) = (found, self.member::<F>(start, array, depth)?) else { continue };
            self.reader.at = at;
            let is_there = match F::token(&mut self.reader)? {
                Token::Array(count) => self.skip_to::<F>(index, count, depth)?,
                _ => false,
            };
            if is_there {
                self.value::<F>(&element.node, depth + 2).map_err(|fault| fault.in_element(index))?;
            } else {
                for target in element.node.targets.iter().chain(&element.node.not_in_scalar) {
                    self.sink.lack(target, true).map_err(|kind| Fault::new(at, kind))?;
                }
            }
        }
        self.reader.at = end;
        Ok(())
    }

    /// Skips `index` elements; returns whether there is one after them.
    fn skip_to<F: Format>(&mut self, index: u64, count: Option<u64>, depth: u32) -> Parsed<bool> {
        if let Some(count) = count {
            if index < count {
                F::skip(&mut self.reader, index, depth + 2)?;
            }
            return Ok(index < count);
        }
        for _ in 0..index {
            if F::end(&mut self.reader) {
                return Ok(false);
            }
            F::skip(&mut self.reader, 1, depth + 2)?;
        }
        Ok(!F::end(&mut self.reader))
    }

    /// Returns the offset of the value of a member in the map at `start`; of the last one if it is repeated.
    fn member<F: Format>(&mut self, start: usize, name: &str, depth: u32) -> Parsed<Option<usize>> {
        self.reader.at = start;
        let Token::Map(count) = F::token(&mut self.reader)? else { return Ok(None) };
        let (mut found, mut passed) = (None, 0);
        while count != Some(passed) && !(count.is_none() && F::end(&mut self.reader)) {
            passed += 1;
            let key = self.reader.at;
            let is_meant = match F::token(&mut self.reader)? {
                Token::Scalar(Scalar::Text(text)) => text == name.as_bytes(),
                Token::Scalar(_) => false,
                Token::OpenText => {
                    let mut text = Vec::new();
                    F::text_parts(&mut self.reader, &mut text)?;
                    text == name.as_bytes()
                }
                _ => {
                    self.reader.at = key;
                    F::skip(&mut self.reader, 1, depth + 1)?;
                    false
                }
            };
            if is_meant {
                found = Some(self.reader.at);
            }
            F::skip(&mut self.reader, 1, depth + 1)?;
        }
        Ok(found)
    }

    /// Skips an element, and returns whether it has the name.
    fn has_name<F: Format>(&mut self, named: &NamedElement, index: u64, depth: u32) -> Parsed<bool> {
        let outer = (std::mem::take(&mut self.sink.met), self.sink.unknown);
        self.value::<F>(&named.name, depth + 1).map_err(|fault| fault.in_element(index))?;
        let met = std::mem::replace(&mut self.sink.met, outer.0);
        self.sink.unknown = outer.1;
        Ok(named.alternatives.hold(met))
    }

    /// Reads the elements with a name. Returns the number of all elements.
    fn named<F: Format>(&mut self, named: &NamedElement, count: Option<u64>, depth: u32) -> Parsed<u64> {
        let mut passed = 0;
        while count != Some(passed) && !(count.is_none() && F::end(&mut self.reader)) {
            let start = self.reader.at;
            if self.has_name::<F>(named, passed, depth)? {
                self.reader.at = start;
                self.value::<F>(&named.node, depth + 1).map_err(|fault| fault.in_element(passed))?;
            }
            passed += 1;
        }
        Ok(passed)
    }

    fn members<F: Format>(&mut self, keys: &[Key], count: Option<u64>, depth: u32) -> Parsed<()> {
        let (mut passed, mut next) = (0, 0);
        loop {
            match count {
                Some(count) if passed == count => return Ok(()),
                None if F::end(&mut self.reader) => return Ok(()),
                _ => passed += 1,
            }
            // Writers keep the order of members: the next key is often the successor of the last one.
            match self.key::<F>(keys, next, depth)? {
                Some(found) => {
                    next = if found + 1 < keys.len() { found + 1 } else { 0 };
                    let key = &keys[found];
                    self.value::<F>(&key.node, depth + 1).map_err(|fault| fault.in_member(&key.name))?;
                }
                None if self.reader.skip_plain::<F>() => {}
                None => F::skip(&mut self.reader, 1, depth + 1)?,
            }
        }
    }

    /// Reads a key, and finds it among those that are read.
    #[inline(always)]
    fn key<F: Format>(&mut self, keys: &[Key], next: usize, depth: u32) -> Parsed<Option<usize>> {
        if let Some(text) = self.reader.short_text::<F>() {
            return Ok(named(keys, next, text));
        }
        let start = self.reader.at;
        Ok(match F::token(&mut self.reader)? {
            Token::Scalar(Scalar::Text(text)) => named(keys, next, text),
            Token::Scalar(Scalar::Int(number)) => keys.iter().position(|key| key.number == Some(number)),
            Token::Scalar(_) => None,
            Token::OpenText => {
                let mut text = std::mem::take(&mut self.scratch);
                text.clear();
                let read = F::text_parts(&mut self.reader, &mut text);
                let found = named(keys, next, &text);
                self.scratch = text;
                read?;
                found
            }
            Token::Map(_) | Token::Array(_) => {
                self.reader.at = start;
                F::skip(&mut self.reader, 1, depth + 1)?;
                None
            }
            Token::End => return Err(Fault::new(start, MessageErrorKind::Misplaced)),
        })
    }

    fn array<F: Format>(&mut self, node: &Node, count: Option<u64>, start: usize, depth: u32) -> Parsed<()> {
        if depth >= MAX_DEPTH {
            return Err(Fault::new(start, MessageErrorKind::TooDeep));
        }
        self.sink.at = start;
        if !node.not_in_array.is_empty() {
            self.lack(&node.not_in_array, false, start)?;
        }
        let body = self.reader.at;
        let mut passed = None;
        if !node.indices.is_empty() {
            passed = Some(self.elements::<F>(&node.indices, count, depth)?);
        }
        let mut left_out = 0;
        for test in &node.tests {
            self.reader.at = body;
            let (elements, without) = self.test::<F>(test, count, start, depth)?;
            passed = Some(elements);
            left_out = left_out.max(without);
        }
        for named in &node.named {
            self.reader.at = body;
            passed = Some(self.named::<F>(named, count, depth)?);
        }
        self.sink.left_out += left_out;
        let passed = match passed {
            Some(passed) => passed,
            None => self.pass::<F>(count, 1, depth)?,
        };
        let end = self.reader.at;
        // A message that is itself an array omits fields, like one that is a map.
        if depth > 0 {
            self.short(node, passed, start)?;
        }
        for (from_end, below) in &node.ends {
            let Some(index) = passed.checked_sub(*from_end) else { continue };
            self.reader.at = body;
            F::skip(&mut self.reader, index, depth + 1)?;
            self.value::<F>(below, depth + 1).map_err(|fault| fault.in_element(index))?;
        }
        self.reader.at = end;
        self.sink.at = start;
        for target in &node.targets {
            match target {
                Target::Length(column, Some(Countable::Text)) => self.sink.refuse(Slot::Int(*column), true),
                Target::Length(..) => self.sink.length(target, passed),
                _ => self.sink.write(target, Scalar::Other).map_err(|kind| Fault::new(start, kind))?,
            }
        }
        Ok(())
    }

    /// Marks elements beyond the length of the array as unknown.
    fn short(&mut self, node: &Node, length: u64, start: usize) -> Parsed<()> {
        let indices = node.indices.iter().filter(|(index, _)| *index >= length);
        let ends = node.ends.iter().filter(|(from_end, _)| *from_end > length);
        for (_, below) in indices.chain(ends) {
            for target in below.targets.iter().chain(&below.not_in_scalar) {
                if !matches!(target, Target::EventTime) {
                    self.sink.lack(target, true).map_err(|kind| Fault::new(start, kind))?;
                }
            }
        }
        Ok(())
    }

    /// Reads single elements and skips the others. Returns their number.
    fn elements<F: Format>(
        &mut self,
        indices: &[(u64, Node)],
        count: Option<u64>,
        depth: u32,
    ) -> Parsed<u64> {
        let mut passed = 0;
        for (index, node) in indices {
            if let Some(count) = count {
                if *index >= count {
                    break;
                }
                F::skip(&mut self.reader, index - passed, depth + 1)?;
            } else {
                while passed < *index && !F::end(&mut self.reader) {
                    F::skip(&mut self.reader, 1, depth + 1)?;
                    passed += 1;
                }
                if passed < *index || F::end(&mut self.reader) {
                    return Ok(passed);
                }
            }
            self.value::<F>(node, depth + 1).map_err(|fault| fault.in_element(*index))?;
            passed = index + 1;
        }
        match count {
            Some(count) => {
                F::skip(&mut self.reader, count - passed, depth + 1)?;
                Ok(count)
            }
            None => Ok(passed + self.pass::<F>(None, 1, depth)?),
        }
    }

    /// Tests every element of the array at `start`. Returns the number of elements, and of those omitted.
    fn test<F: Format>(
        &mut self,
        test: &ElementTest<Node>,
        count: Option<u64>,
        start: usize,
        depth: u32,
    ) -> Parsed<(u64, u64)> {
        let mut passed = 0;
        let mut all = self.sink.begin_elements(test);
        loop {
            match count {
                Some(count) if passed == count => break,
                None if F::end(&mut self.reader) => break,
                _ => {}
            }
            self.sink.begin_element();
            self.value::<F>(&test.element, depth + 1).map_err(|fault| fault.in_element(passed))?;
            self.sink.end_element(test, &mut all);
            passed += 1;
        }
        self.sink.at = start;
        self.sink.count_mistyped(test.slot, u64::from(all.has_other));
        Ok((passed, self.sink.end_elements(test, &all)))
    }

    /// Skips the parts of an array (one value each) or map (two values each). Returns their number.
    fn pass<F: Format>(&mut self, count: Option<u64>, values: u64, depth: u32) -> Parsed<u64> {
        if let Some(count) = count {
            F::skip(&mut self.reader, count.saturating_mul(values), depth + 1)?;
            return Ok(count);
        }
        let mut passed = 0;
        while !F::end(&mut self.reader) {
            F::skip(&mut self.reader, values, depth + 1)?;
            passed += 1;
        }
        Ok(passed)
    }

    /// Returns the time in the map at `start`, which must have exactly two members, named as in ROS 2 (`sec`,
    /// `nanosec`), ROS 1 (`secs`, `nsecs`), Foxglove (`sec`, `nsec`) or Protobuf (`seconds`, `nanos`).
    fn seconds_and_nanos<F: Format>(&self, start: usize) -> Scalar<'m> {
        let mut reader = Reader { at: start, ..self.reader };
        let Ok(Token::Map(count)) = F::token(&mut reader) else { return Scalar::Other };
        let (mut seconds, mut nanos) = (None, None);
        let mut passed = 0;
        while count != Some(passed) && !(count.is_none() && F::end(&mut reader)) {
            let Ok(Token::Scalar(Scalar::Text(name))) = F::token(&mut reader) else { return Scalar::Other };
            let Ok(Token::Scalar(value)) = F::token(&mut reader) else { return Scalar::Other };
            let part = match name {
                b"sec" | b"secs" | b"seconds" => &mut seconds,
                b"nanosec" | b"nsecs" | b"nsec" | b"nanos" => &mut nanos,
                _ => return Scalar::Other,
            };
            // If a name is repeated, the last value counts; two different names for one part are an error.
            if part.is_some_and(|(known, _)| known != name) {
                return Scalar::Other;
            }
            *part = Some((name, value));
            passed += 1;
        }
        match (seconds, nanos) {
            (Some((b"sec", seconds)), Some((b"nanosec" | b"nsec", Scalar::Int(nanos))))
            | (Some((b"secs", seconds)), Some((b"nsecs", Scalar::Int(nanos))))
            | (Some((b"seconds", seconds)), Some((b"nanos", Scalar::Int(nanos)))) => match seconds {
                Scalar::Int(seconds) => span(sum(seconds, nanos)),
                Scalar::Large(_) if (0..NS_PER_S).contains(&nanos) => Scalar::Beyond,
                _ => Scalar::Other,
            },
            _ => Scalar::Other,
        }
    }
}

/// Returns the index of a key among those that are read.
#[inline(always)]
fn named(keys: &[Key], next: usize, text: &[u8]) -> Option<usize> {
    let head = head(text);
    let is = |key: &Key| key.is(text, head);
    if keys.get(next).is_some_and(is) { Some(next) } else { keys.iter().position(is) }
}

/// Returns a number of seconds since 1970 as a time.
fn since_1970(value: Scalar<'_>) -> Scalar<'_> {
    let nanos = match value {
        Scalar::Int(seconds) => seconds.checked_mul(NS_PER_S).ok_or(MessageErrorKind::TimeOutOfRange),
        Scalar::Float(seconds) => float_nanos(seconds, NS_PER_S),
        other => return other,
    };
    instant(nanos)
}
