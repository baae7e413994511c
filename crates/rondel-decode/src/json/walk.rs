//! Visit of the values of a message, with the part of the plan for each.

use rondel_event::Segment;

use super::find::{Holds, Last, find, position};
use super::plan::{Action, Node};
use super::scan::{JsonError, Kind, Scanner};

/// Visitor of the values of a message in order, containers after their contents.
pub(crate) trait Visitor {
    /// Whether values without a node are visited too.
    const EVERYTHING: bool;

    fn value(
        &mut self,
        node: Option<&Node>,
        kind: Kind,
        start: usize,
        scanner: &Scanner<'_>,
    ) -> Result<(), JsonError>;

    /// Skips the array that begins here, if all its reads are possible on the way; then [`Visitor::value`] is not
    /// called for it. Returns whether it was skipped.
    fn array(&mut self, _: &Node, _: &mut Scanner<'_>, _: u32) -> Result<bool, JsonError> {
        Ok(false)
    }

    /// Visits an action on a part that the value of this kind at `start` cannot have, since it is null or of another
    /// type than the object or array that contains the part.
    fn unreachable(&mut self, action: &Action, kind: Kind, start: usize) -> Result<(), JsonError>;
}

/// Skips the value that begins at the scanner, and shows it to the visitor.
pub(crate) fn walk<V: Visitor>(
    scanner: &mut Scanner<'_>,
    node: Option<&Node>,
    depth: u32,
    visitor: &mut V,
) -> Result<(), JsonError> {
    if node.is_none() && !V::EVERYTHING {
        return scanner.skip(depth);
    }
    let (start, kind) = (scanner.at, scanner.kind()?);
    if let Some(node) = node.filter(|node| kind == Kind::Array && !node.reads_elements())
        && visitor.array(node, scanner, depth)?
    {
        return node.unreachable(kind, &mut |action| visitor.unreachable(action, kind, start));
    }
    match kind {
        Kind::Object => scanner.members(depth, |scanner, key| {
            walk(scanner, node.and_then(|n| n.key(&key)), depth + 1, visitor)
        })?,
        Kind::Array => walk_array(scanner, node, depth, visitor)?,
        _ => scanner.scalar(kind)?,
    }
    if let Some(node) = node {
        node.unreachable(kind, &mut |action| visitor.unreachable(action, kind, start))?;
        if kind == Kind::Object && !node.parallel.is_empty() {
            walk_parallel(scanner, node, start, depth, visitor)?;
        }
    }
    visitor.value(node, kind, start, scanner)
}

/// Reads elements of arrays in the object between `start` and the scanner, identified by the names in other arrays.
fn walk_parallel<V: Visitor>(
    scanner: &Scanner<'_>,
    node: &Node,
    start: usize,
    depth: u32,
    visitor: &mut V,
) -> Result<(), JsonError> {
    let object = &scanner.text[start..scanner.at];
    for ((array, named), below) in &node.parallel {
        let names = find(object, &named.key().0).map(|names| Scanner::new(names).kind());
        if let Some(kind) = names.transpose()?.filter(|kind| *kind != Kind::Array) {
            let mut unknown = |action: &Action| visitor.unreachable(action, kind, start);
            below.reads.iter().try_for_each(&mut unknown)?;
            below.unreachable(Kind::Null, &mut unknown)?;
            continue;
        }
        let (Some(index), Some(elements)) =
            (position(object, named), find(object, &[Segment::Key(array.clone())]))
        else {
            continue;
        };
        match find(elements, &[Segment::Index(index)]) {
            Some(element) => {
                let at = element.as_ptr() as usize - scanner.text.as_ptr() as usize;
                walk(&mut Scanner { at, ..*scanner }, Some(below), depth + 2, visitor)?;
            }
            // The array is shorter, or null.
            None => {
                let mut unknown = |action: &Action| visitor.unreachable(action, Kind::Null, start);
                below.reads.iter().try_for_each(&mut unknown)?;
                below.unreachable(Kind::Null, &mut unknown)?;
            }
        }
    }
    Ok(())
}

fn walk_array<V: Visitor>(
    scanner: &mut Scanner<'_>,
    node: Option<&Node>,
    depth: u32,
    visitor: &mut V,
) -> Result<(), JsonError> {
    let Some(node) = node.filter(|node| node.reads_elements()) else {
        return scanner.elements(depth, |scanner, _| walk(scanner, None, depth + 1, visitor));
    };
    let (start, mut last) = (scanner.at, Last::default());
    scanner.elements(depth, |scanner, index| {
        let start = scanner.at;
        last.push(start);
        walk(scanner, node.index(index), depth + 1, visitor)?;
        for (named, below) in &node.named {
            let name = find(&scanner.text[start..scanner.at], &named.key().0);
            if name.is_some_and(|name| named.condition.test.holds(name)) {
                walk(&mut Scanner { at: start, ..*scanner }, Some(below), depth + 1, visitor)?;
            }
        }
        Ok(())
    })?;
    // A message that is itself an array omits fields, like one that is an object.
    if depth > 0 {
        node.short(last.count, &mut |action| visitor.unreachable(action, Kind::Null, start))?;
    }
    for (index, below) in &node.ends {
        if let Some(at) = last.get(*index) {
            walk(&mut Scanner { at, ..*scanner }, Some(below), depth + 1, visitor)?;
        }
    }
    Ok(())
}
