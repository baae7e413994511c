//! Plan for the parts of a message: a projection converted once to a tree.

use rondel_event::{
    Block, Condition, Countable, Named, Path, Projection, Quantifier, Read, Segment, Slot, Test, TimeUnit,
};
use rondel_event::{Timestamp, ValueType};

use super::find::{Holds, Last, find, position};
use super::scan::{JsonError, JsonErrorKind, Key, Kind, Scanner, float, integer, is_rounded, unescape};
use super::table::TableNode;
use super::time::{self, Meaning};
use crate::elements::{Measurand, Measured, Tested, Witness};
use crate::fields::{Fields, Want};
use crate::plain::PlainPlan;
use crate::sink::{NoNumber, Scalar, Sink, Target, is_integer, is_of_number};

/// A value of a message and the values in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    keys: Vec<(Box<str>, Node)>,
    indices: Vec<(u32, Node)>,
    /// Elements by their positions from the end, from 1.
    ends: Vec<(u32, Node)>,
    /// Elements identified by a name that they contain.
    named: Vec<(Named, Node)>,
    /// Elements of a member array, identified by the names in another member array.
    parallel: Vec<((Box<str>, Named), Node)>,
    pub(crate) actions: Vec<Action>,
}

/// Read of a value.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Writes it to the slot.
    Value(ValueType, Slot),
    /// Writes it to the slot of floats, unless it is an integer that would be rounded.
    Exact(Slot),
    /// Writes the number that it is, or that its text contains.
    Decimal(Target),
    /// Writes its presence.
    Presence(Slot),
    /// Writes whether it is NaN, in rows of tables.
    IsNan(Slot),
    /// Tests the elements of the array.
    Elements(Quantifier, Vec<Condition>, Slot),
    /// Writes the element that decides such conditions.
    Witness(Quantifier, Vec<Condition>, Slot),
    /// Writes the length of the array or text, if it has this kind.
    Length(Slot, Option<Countable>),
    /// The message: writes the elements of an array in it as a table.
    Table(Box<TableNode>),
    /// A plain value, or a text that contains one.
    Plain(PlainPlan),
    /// The event time, in this unit if it is a plain number.
    Time(TimeUnit),
    /// The recorded time, or null; in this unit if it is a plain number.
    Recorded(TimeUnit),
    /// The time of arrival, in this unit if it is a plain number.
    Arrival(TimeUnit),
    /// The id of the publisher.
    Publisher,
    /// The sequence number of the message.
    Number,
    /// The name of the topic.
    Topic,
}

impl Node {
    pub(crate) fn new(projection: &Projection) -> Node {
        Node::of(projection, false)
    }

    /// Like [`Node::new`], for rows of tables.
    pub(super) fn of_rows(projection: &Projection) -> Node {
        Node::of(projection, true)
    }

    fn of(projection: &Projection, takes_nan: bool) -> Node {
        let mut root = Node::default();
        for field in &projection.fields {
            let action = match &field.read {
                Read::Value(ValueType::Float) if field.exact => Action::Exact(field.slot),
                Read::Value(value_type) => Action::Value(*value_type, field.slot),
                Read::Number(value_type) => {
                    let want = Want::Number(*value_type, field.slot, field.exact);
                    let Some(target) = Target::new(&want) else { continue };
                    Action::Decimal(target)
                }
                Read::Presence => Action::Presence(field.slot),
                Read::Elements(quantifier, conditions) => {
                    Action::Elements(*quantifier, conditions.clone(), field.slot)
                }
                Read::Witness(quantifier, conditions) => {
                    Action::Witness(*quantifier, conditions.clone(), field.slot)
                }
                Read::Length => Action::Length(field.slot, None),
                Read::LengthOf(of) => Action::Length(field.slot, Some(*of)),
                Read::IsNan if takes_nan => Action::IsNan(field.slot),
                // JSON has no NaN.
                Read::IsNan => continue,
                Read::Table(table) => {
                    root.actions.extend(TableNode::new(table, field.slot).map(Box::new).map(Action::Table));
                    continue;
                }
            };
            root.at(&field.path).actions.push(action);
        }
        root
    }

    /// Returns a node with one action and nothing below.
    pub(crate) fn leaf(action: Action) -> Node {
        Node { actions: vec![action], ..Node::default() }
    }

    /// Returns the node at a path, adding it if it is missing.
    pub(crate) fn at(&mut self, path: &Path) -> &mut Node {
        let mut node = self;
        let mut segments = path.0.iter().peekable();
        while let Some(segment) = segments.next() {
            node = match (segment, segments.peek()) {
                (Segment::Key(key), Some(Segment::Named(named))) if named.is_parallel => {
                    segments.next();
                    child(&mut node.parallel, (key.clone(), (**named).clone()))
                }
                (Segment::Key(key), _) => child(&mut node.keys, key.clone()),
                (Segment::Index(index), _) => child(&mut node.indices, *index),
                (Segment::FromEnd(index), _) => child(&mut node.ends, *index),
                (Segment::Named(named), _) => child(&mut node.named, (**named).clone()),
            };
        }
        node
    }

    /// Replaces the member `key` by `node`.
    pub(crate) fn replace(&mut self, key: &str, node: Node) {
        *child(&mut self.keys, key.into()) = node;
    }

    fn key(&self, key: &Key<'_>) -> Option<&Node> {
        self.keys.iter().find(|(name, _)| key.is(name)).map(|(_, node)| node)
    }

    fn index(&self, index: usize) -> Option<&Node> {
        self.indices.iter().find(|(i, _)| *i as usize == index).map(|(_, node)| node)
    }

    /// Calls `each` with every action on an element beyond an array of this length, or below one, except that of the
    /// event time.
    fn short<E>(&self, length: usize, each: &mut impl FnMut(&Action) -> Result<(), E>) -> Result<(), E> {
        let indices = self.indices.iter().filter(|(index, _)| *index as usize >= length);
        let ends = self.ends.iter().filter(|(from_end, _)| *from_end as usize > length);
        let mut each = |action: &Action| match action {
            Action::Time(_) => Ok(()),
            action => each(action),
        };
        for (_, node) in indices.chain(ends) {
            node.actions.iter().try_for_each(&mut each)?;
            node.unreachable(Kind::Null, &mut each)?;
        }
        Ok(())
    }

    /// Whether elements are read here or below by their positions from the end, or by their names.
    pub(crate) fn searches_elements(&self) -> bool {
        let keys = self.keys.iter().map(|(_, node)| node);
        !self.ends.is_empty()
            || !self.named.is_empty()
            || !self.parallel.is_empty()
            || self.actions.iter().any(|action| matches!(action, Action::Table(_)))
            || keys.chain(self.indices.iter().map(|(_, node)| node)).any(Node::searches_elements)
    }

    /// Whether single elements are read.
    fn reads_elements(&self) -> bool {
        !self.indices.is_empty() || !self.ends.is_empty() || !self.named.is_empty()
    }

    /// Calls `each` with every action below that a value of this kind cannot have: members of a value that is no
    /// object, elements of one that is no array.
    fn unreachable<E>(&self, kind: Kind, each: &mut impl FnMut(&Action) -> Result<(), E>) -> Result<(), E> {
        let keys = if kind == Kind::Object { &[][..] } else { &self.keys };
        let (indices, ends) =
            if kind == Kind::Array { (&[][..], &[][..]) } else { (&self.indices[..], &self.ends[..]) };
        let elements = indices.iter().chain(ends).map(|(_, node)| node);
        let named = if kind == Kind::Array { &[][..] } else { &self.named };
        let parallel = if kind == Kind::Object { &[][..] } else { &self.parallel };
        let named = named.iter().map(|(_, node)| node).chain(parallel.iter().map(|(_, node)| node));
        let below = keys.iter().map(|(_, node)| node).chain(elements).chain(named);
        for node in below {
            node.actions.iter().try_for_each(&mut *each)?;
            // Values further below cannot exist either: null is neither object nor array.
            node.unreachable(Kind::Null, each)?;
        }
        Ok(())
    }
}

fn child<K: PartialEq>(children: &mut Vec<(K, Node)>, key: K) -> &mut Node {
    let found = children.iter().position(|(k, _)| *k == key).unwrap_or_else(|| {
        children.push((key, Node::default()));
        children.len() - 1
    });
    &mut children[found].1
}

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
            below.actions.iter().try_for_each(&mut unknown)?;
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
                below.actions.iter().try_for_each(&mut unknown)?;
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

/// Writer of the values of a message to a row of a block.
pub(crate) struct Writer<'b> {
    pub(crate) block: &'b mut Block,
    pub(crate) row: usize,
    pub(crate) time_unit: TimeUnit,
    /// Time in the message, if there is one.
    pub(crate) time: Option<Timestamp>,
    /// Publisher and sequence number, as far as they were read.
    pub(crate) origin: (Option<u64>, Option<u64>),
    /// Number of values of another type than the program reads.
    pub(crate) mistyped: u64,
    /// Number of NaN values that are read.
    pub(crate) not_numbers: u64,
    /// Number of array elements omitted because they are null or NaN.
    pub(crate) left_out: u64,
    /// Field of the first mistyped value.
    pub(crate) first_mistyped: Option<Slot>,
    /// If that is a table, position of its field.
    pub(crate) first_member: Option<u16>,
    /// A text that is not a number although one is read.
    pub(crate) no_number: Option<NoNumber>,
    /// The column of an integer beyond the signed 64-bit range, or of one that a double rounds.
    pub(crate) large: Option<Slot>,
}

impl Visitor for Writer<'_> {
    const EVERYTHING: bool = false;

    /// Tests numbers in the first pass over the array.
    fn array(&mut self, node: &Node, scanner: &mut Scanner<'_>, depth: u32) -> Result<bool, JsonError> {
        if let Some(Action::Elements(quantifier, ..)) = node.actions.first()
            && quantifier.is_measure()
        {
            return self.measured(node, scanner, depth);
        }
        let Some((tests, count)) = number_tests(&node.actions) else { return Ok(false) };
        let tests = &tests[..count];
        let has_types = tests.iter().any(|(alternatives, ..)| alternatives.conditions().any(is_of_integer));
        let (mut met, mut total, mut left_out, mut has_nan) = ([0; TESTS], 0, 0, false);
        // Whether there is another value than numbers, or than integers.
        let (mut has_other, mut has_fraction) = (false, false);
        scanner.elements(depth, |scanner, _| {
            total += 1;
            let (start, kind) = (scanner.at, scanner.kind()?);
            if kind != Kind::Number {
                let is_left_out = matches!(kind, Kind::Null | Kind::Nan);
                has_other |= !is_left_out;
                has_nan |= kind == Kind::Nan;
                left_out += u64::from(is_left_out);
                return scanner.skip(depth + 1);
            }
            let value = scanner.number_value()?;
            let is_integer =
                has_types && (is_integer(value) || integer(&scanner.text[start..scanner.at]).is_some());
            has_fraction |= !is_integer;
            for ((alternatives, _, _), met) in tests.iter().zip(&mut met) {
                let holds = |c: &Condition| match c.test {
                    Test::Number(by, bound) => by.is_met(value, bound),
                    Test::Integer(by, bound) => is_integer && by.is_met(value, bound),
                    _ => false,
                };
                *met += u64::from(alternatives.are_met(holds));
            }
            Ok(())
        })?;
        for ((alternatives, quantifier, slot), met) in tests.iter().zip(met) {
            let lacking = Tested { met, total, left_out }.write(self.block, self.row, *slot, *quantifier);
            self.not_numbers += if has_nan { lacking } else { 0 };
            let is_other = has_other || has_fraction && alternatives.conditions().any(is_of_integer);
            self.count_mistyped(*slot, u64::from(is_other));
        }
        self.left_out += left_out;
        Ok(true)
    }

    fn value(
        &mut self,
        node: Option<&Node>,
        kind: Kind,
        start: usize,
        scanner: &Scanner<'_>,
    ) -> Result<(), JsonError> {
        let text = &scanner.text[start..scanner.at];
        let mut left_out = 0;
        for action in node.map_or(&[][..], |n| &n.actions) {
            match action {
                Action::Value(value_type, slot) => {
                    if !self.write(*value_type, *slot, kind, text) {
                        self.refuse(*slot, kind);
                    }
                }
                Action::Exact(slot) if kind == Kind::Number && is_rounded(text) => {
                    self.large = Some(*slot);
                    self.block.set_invalid(*slot, self.row);
                    self.count_mistyped(*slot, 1);
                }
                Action::Exact(slot) => {
                    if !self.write(ValueType::Float, *slot, kind, text) {
                        self.refuse(*slot, kind);
                    }
                }
                Action::Decimal(target) => self.write_decimal(target, kind, text),
                Action::Presence(slot) => self.write_bool(*slot, true),
                Action::IsNan(slot) => match kind {
                    Kind::Number | Kind::Nan => self.write_bool(*slot, kind == Kind::Nan),
                    // The value itself is read too, and counted.
                    _ => self.block.set_invalid(*slot, self.row),
                },
                Action::Table(table) => table.write(text, self),
                Action::Elements(quantifier, conditions, slot) => {
                    if kind == Kind::Array && quantifier.is_measure() {
                        let measured = measured(&mut Scanner::with_nan(text), 0).unwrap_or(Measured::NOTHING);
                        let lacking = measured.write(self.block, self.row, *slot, *quantifier);
                        self.count_mistyped(*slot, lacking.mistyped);
                        self.not_numbers += lacking.not_numbers;
                        left_out = left_out.max(measured.left_out(*quantifier));
                    } else if kind == Kind::Array {
                        let Counted { tested, has_other, has_nan } = count_elements(conditions, text);
                        self.count_mistyped(*slot, u64::from(has_other));
                        left_out = left_out.max(tested.left_out);
                        let lacking = tested.write(self.block, self.row, *slot, *quantifier);
                        self.not_numbers += if has_nan { lacking } else { 0 };
                    } else {
                        self.refuse(*slot, kind);
                    }
                }
                Action::Witness(quantifier, conditions, slot) => {
                    let found = Some(text).filter(|_| kind == Kind::Array);
                    match (found.and_then(|array| witness(*quantifier, conditions, array)), slot) {
                        (Some(text), Slot::String(column)) => self.block.set_string(*column, self.row, &text),
                        _ => self.block.set_invalid(*slot, self.row),
                    }
                }
                Action::Length(slot, of) => match (slot, length(*of, kind, text)) {
                    (Slot::Int(column), Some(length)) => self.block.set_int(*column, self.row, length),
                    _ => self.refuse(*slot, kind),
                },
                Action::Plain(plan) => self.write_plain(plan, kind, text, start)?,
                Action::Recorded(_) | Action::Arrival(_) if kind == Kind::Null => {}
                Action::Time(unit) | Action::Recorded(unit) => {
                    self.time = Some(time(kind, text, start, *unit)?);
                }
                Action::Arrival(unit) => {
                    let arrival = time(kind, text, start, *unit)?;
                    self.block.set_arrival(self.row, arrival);
                }
                Action::Publisher => self.origin.0 = unsigned(kind, text),
                Action::Number => self.origin.1 = unsigned(kind, text),
                Action::Topic => {}
            }
        }
        self.left_out += left_out;
        Ok(())
    }

    fn unreachable(&mut self, action: &Action, kind: Kind, start: usize) -> Result<(), JsonError> {
        match action {
            Action::Value(_, slot)
            | Action::Exact(slot)
            | Action::Elements(_, _, slot)
            | Action::Length(slot, _) => self.refuse(*slot, kind),
            Action::Witness(_, _, slot) | Action::IsNan(slot) => self.block.set_invalid(*slot, self.row),
            Action::Decimal(target) => {
                let kind = if kind == Kind::Null { Kind::Null } else { Kind::Object };
                self.write_decimal(target, kind, b"");
            }
            // As if the time itself were null.
            Action::Time(unit) => self.time = Some(time(Kind::Null, b"null", start, *unit)?),
            Action::Presence(_) | Action::Topic | Action::Publisher | Action::Number => {}
            Action::Recorded(_) | Action::Arrival(_) | Action::Plain(_) | Action::Table(_) => {}
        }
        Ok(())
    }
}

impl<'b> Writer<'b> {
    /// Creates a writer of the fields of a message, none of which is read yet.
    pub(crate) fn new(block: &'b mut Block, row: usize, time_unit: TimeUnit) -> Writer<'b> {
        Writer {
            block,
            row,
            time_unit,
            time: None,
            origin: (None, None),
            mistyped: 0,
            not_numbers: 0,
            left_out: 0,
            first_mistyped: None,
            first_member: None,
            no_number: None,
            large: None,
        }
    }

    /// Measures the elements in the first pass over the array, if nothing else is read of it.
    fn measured(&mut self, node: &Node, scanner: &mut Scanner<'_>, depth: u32) -> Result<bool, JsonError> {
        let is_measure =
            |action: &Action| matches!(action, Action::Elements(quantifier, ..) if quantifier.is_measure());
        if !node.actions.iter().all(is_measure) {
            return Ok(false);
        }
        let measured = measured(scanner, depth)?;
        let mut left_out = 0;
        for action in &node.actions {
            if let Action::Elements(quantifier, _, slot) = action {
                let lacking = measured.write(self.block, self.row, *slot, *quantifier);
                self.count_mistyped(*slot, lacking.mistyped);
                self.not_numbers += lacking.not_numbers;
                left_out = left_out.max(measured.left_out(*quantifier));
            }
        }
        self.left_out += left_out;
        Ok(true)
    }

    /// Writes a plain value, which is JSON or a text with JSON.
    fn write_plain(
        &mut self,
        plan: &PlainPlan,
        kind: Kind,
        text: &[u8],
        offset: usize,
    ) -> Result<(), JsonError> {
        let unescaped =
            (kind == Kind::String).then(|| unescape(&text[1..text.len() - 1]).unwrap_or_default());
        let mut sink = Sink::at(self.block, self.row, self.time_unit);
        let written = plan.write(unescaped.as_deref().map_or(text, str::as_bytes), &mut sink);
        let (mistyped, large, time) = (sink.mistyped + sink.not_numbers, sink.large, sink.time);
        written.map_err(|_| JsonError { offset, kind: JsonErrorKind::Expected("a time") })?;
        self.mistyped += mistyped;
        self.large = large.or(self.large);
        self.time = time.or(self.time);
        if mistyped > 0 {
            self.first_mistyped = self.first_mistyped.or(plan.slot());
        }
        Ok(())
    }

    /// Writes a number, which may be a text.
    fn write_decimal(&mut self, target: &Target, kind: Kind, text: &[u8]) {
        let raw = text.get(1..text.len().saturating_sub(1)).filter(|_| kind == Kind::String);
        let unescaped = raw.filter(|raw| raw.contains(&b'\\')).and_then(unescape);
        let value = match (kind, &unescaped, raw) {
            (Kind::Null, ..) => Scalar::Null,
            (Kind::Nan, ..) => Scalar::Float(f64::NAN),
            (Kind::Number, ..) => number(target, text),
            (_, Some(unescaped), _) => Scalar::Text(unescaped.as_bytes()),
            (_, None, Some(raw)) if is_number(raw.trim_ascii()) => number(target, raw.trim_ascii()),
            (_, None, Some(raw)) => Scalar::Text(raw),
            _ => Scalar::Other,
        };
        let mut sink = Sink::at(self.block, self.row, self.time_unit);
        // Only texts and times can be refused.
        _ = sink.write(target, value);
        // A text cannot be NaN as a number.
        let of_nan = if kind == Kind::Nan { sink.not_numbers } else { 0 };
        let (mistyped, large) = (sink.mistyped + sink.not_numbers - of_nan, sink.large);
        self.not_numbers += of_nan;
        self.no_number = self.no_number.or(sink.no_number);
        self.large = large.or(self.large);
        if let Some(slot) = target.slot() {
            self.count_mistyped(slot, mistyped);
        }
    }

    /// Marks a field as invalid, and counts its value unless it is null.
    fn refuse(&mut self, slot: Slot, kind: Kind) {
        self.block.set_invalid(slot, self.row);
        match kind {
            Kind::Null => {}
            Kind::Nan => self.not_numbers += 1,
            _ => self.count_mistyped(slot, 1),
        }
    }

    /// Counts values of a field with another type than the program reads.
    pub(super) fn count_mistyped(&mut self, slot: Slot, count: u64) {
        self.mistyped += count;
        if count > 0 {
            self.first_mistyped.get_or_insert(slot);
        }
    }

    fn write_bool(&mut self, slot: Slot, value: bool) {
        if let Slot::Bool(column) = slot {
            self.block.set_bool(column, self.row, value);
        }
    }

    /// Writes a time or a duration if the value is one; returns whether it is.
    fn write_time(&mut self, column: u32, kind: Kind, text: &[u8], meaning: Meaning) -> bool {
        let value = time::read(kind, text, self.time_unit, meaning);
        if let Ok(value) = value {
            self.block.set_int(column, self.row, value.as_nanos());
        }
        value.is_ok()
    }

    /// Writes the value if it has the type; returns whether it has.
    fn write(&mut self, value_type: ValueType, slot: Slot, kind: Kind, text: &[u8]) -> bool {
        match (value_type, slot, kind) {
            (ValueType::Bool, Slot::Bool(column), Kind::True | Kind::False) => {
                self.block.set_bool(column, self.row, kind == Kind::True);
            }
            (ValueType::Float, Slot::Float(column), Kind::Number) => {
                self.block.set_float(column, self.row, float(text));
            }
            (ValueType::Int, Slot::Int(column), Kind::Number) => match integer(text) {
                Some(value) => self.block.set_int(column, self.row, value),
                None => {
                    // Only digits: an integer, and a large one.
                    if text.iter().all(|byte| matches!(byte, b'-' | b'0'..=b'9')) {
                        self.large = Some(slot);
                    }
                    return false;
                }
            },
            (ValueType::Time, Slot::Int(column), _) => {
                return self.write_time(column, kind, text, Meaning::Time);
            }
            (ValueType::Duration, Slot::Int(column), _) => {
                return self.write_time(column, kind, text, Meaning::Duration);
            }
            (ValueType::String, Slot::String(column), Kind::String) => {
                let raw = &text[1..text.len() - 1];
                match std::str::from_utf8(raw) {
                    Ok(plain) if !raw.contains(&b'\\') => self.block.set_string(column, self.row, plain),
                    _ => match unescape(raw) {
                        Some(value) => self.block.set_string(column, self.row, &value),
                        None => return false,
                    },
                }
            }
            _ => return false,
        }
        true
    }
}

/// Whether a text is exactly a number of JSON.
pub(super) fn is_number(text: &[u8]) -> bool {
    let mut scanner = Scanner::new(text);
    scanner.kind() == Ok(Kind::Number) && scanner.number_value().is_ok() && scanner.at == text.len()
}

/// Returns a number of JSON as read for a target that accepts no text.
fn number(target: &Target, text: &[u8]) -> Scalar<'static> {
    let Target::Decimal(of) = target else { return Scalar::Float(float(text)) };
    let is_whole = || text.iter().all(|byte| matches!(byte, b'-' | b'0'..=b'9'));
    match (&**of, integer(text)) {
        (Target::Int(_), Some(value)) => Scalar::Int(value),
        (Target::Int(_), None) if is_whole() => Scalar::Large(float(text)),
        (Target::Int(_), None) => Scalar::Other,
        (Target::Exact(_), _) if is_rounded(text) => Scalar::Large(float(text)),
        _ => Scalar::Float(float(text)),
    }
}

/// Returns the number, if it has no sign, fraction and exponent and fits in 64 bits.
fn unsigned(kind: Kind, text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok().filter(|_| kind == Kind::Number)?.parse().ok()
}

/// Returns the number of elements of the well-formed array, or of characters of the string, if it has this kind.
fn length(of: Option<Countable>, kind: Kind, text: &[u8]) -> Option<i64> {
    let count = match kind {
        Kind::Array if of != Some(Countable::Text) => {
            let mut count = 0;
            let counted = Scanner::with_nan(text).elements(0, |scanner, _| {
                count += 1;
                scanner.skip(1)
            });
            debug_assert!(counted.is_ok(), "the array was scanned before");
            count
        }
        Kind::String if of != Some(Countable::Array) => {
            let raw = text.get(1..text.len() - 1)?;
            if raw.contains(&b'\\') { unescape(raw)?.chars().count() } else { characters(raw) }
        }
        _ => return None,
    };
    i64::try_from(count).ok()
}

/// Returns the number of characters of a text in UTF-8.
pub(crate) fn characters(text: &[u8]) -> usize {
    // Every byte begins a character except continuation bytes.
    text.iter().filter(|byte| (**byte as i8) >= -0x40).count()
}

/// Returns the time in a value that begins at this offset.
pub(crate) fn time(kind: Kind, text: &[u8], offset: usize, unit: TimeUnit) -> Result<Timestamp, JsonError> {
    time::read(kind, text, unit, Meaning::Time).map_err(|what| {
        let is_range = time::is_range(what);
        let kind = if is_range { JsonErrorKind::TimeOutOfRange } else { JsonErrorKind::NotATime };
        JsonError { offset, kind: kind(what) }
    })
}

/// Maximum number of tests of an array in the first pass.
const TESTS: usize = 4;

/// Conditions on an element: those of the first alternative, and those of the others.
#[derive(Clone, Copy)]
struct Alternatives<'a>(&'a [Condition], &'a [Condition]);

impl<'a> Alternatives<'a> {
    fn of(conditions: &'a [Condition]) -> Alternatives<'a> {
        let is_first = |condition: &Condition| condition.alternative == conditions[0].alternative;
        let (first, others) = conditions.split_at(conditions.partition_point(is_first));
        Alternatives(first, others)
    }

    fn conditions(self) -> impl Iterator<Item = &'a Condition> {
        self.0.iter().chain(self.1)
    }

    /// Whether all conditions of one alternative hold.
    #[inline(always)]
    fn are_met(self, holds: impl Fn(&Condition) -> bool) -> bool {
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
type NumberTest<'a> = (Alternatives<'a>, Quantifier, Slot);

/// Returns the tests of an array, if it is only read by comparisons of its elements with numbers.
fn number_tests(actions: &[Action]) -> Option<([NumberTest<'_>; TESTS], usize)> {
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
fn measured(scanner: &mut Scanner<'_>, depth: u32) -> Result<Measured, JsonError> {
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
fn witness(quantifier: Quantifier, conditions: &[Condition], array: &[u8]) -> Option<String> {
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
fn is_of_integer(condition: &Condition) -> bool {
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
struct Counted {
    tested: Tested,
    /// Whether a compared number of an element has another type.
    has_other: bool,
    /// Whether a compared number of an element is NaN.
    has_nan: bool,
}

/// Tests the elements of a well-formed array.
fn count_elements(conditions: &[Condition], array: &[u8]) -> Counted {
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
