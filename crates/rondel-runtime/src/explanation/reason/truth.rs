//! The truth of parts at a place, from their histories.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use rondel_engine::{Known, Lookahead, Report};
use rondel_event::Value;
use rondel_spec::{Bounds, TimeModel};

use super::{Kind, Reason};
use crate::explanation::history::{Message, Place, last_until};
use crate::explanation::terms::Course;
use crate::explanation::{Histories, Row};

/// The depth to which a formula is evaluated.
const DEEPEST: u32 = 200;

/// The truth of a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Truth {
    False,
    True,
    /// Unknown, because fields are unknown.
    Unknown,
    /// Not kept, or not yet certain.
    Open,
}

impl Truth {
    fn of(value: bool) -> Truth {
        if value { Truth::True } else { Truth::False }
    }

    /// The truth, if it is known.
    pub(super) fn known(self) -> Option<bool> {
        match self {
            Truth::False => Some(false),
            Truth::True => Some(true),
            Truth::Unknown | Truth::Open => None,
        }
    }

    /// Lower and upper truth.
    fn bounds(self) -> Known {
        match self {
            Truth::False => [Some(false); 2],
            Truth::True => [Some(true); 2],
            Truth::Unknown => [Some(false), Some(true)],
            Truth::Open => [None; 2],
        }
    }

    fn from_bounds(bounds: Known) -> Truth {
        match bounds {
            [Some(true), _] => Truth::True,
            [_, Some(false)] => Truth::False,
            [Some(false), Some(true)] => Truth::Unknown,
            _ => Truth::Open,
        }
    }

    fn not(self) -> Truth {
        match self {
            Truth::False => Truth::True,
            Truth::True => Truth::False,
            other => other,
        }
    }

    fn and(self, other: Truth) -> Truth {
        match (self, other) {
            (Truth::False, _) | (_, Truth::False) => Truth::False,
            (Truth::Open, _) | (_, Truth::Open) => Truth::Open,
            (Truth::Unknown, _) | (_, Truth::Unknown) => Truth::Unknown,
            (Truth::True, Truth::True) => Truth::True,
        }
    }

    fn or(self, other: Truth) -> Truth {
        self.not().and(other.not()).not()
    }
}

/// A span of the axis on which bounds are measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) from: i128,
    pub(super) to: i128,
}

/// The past of a property, with the truths computed so far.
pub(in crate::explanation) struct Past<'a> {
    pub(super) reason: &'a Reason,
    pub(super) rows: &'a [Row],
    pub(super) histories: Histories<'a>,
    /// The messages that the property has seen.
    pub(super) messages: &'a [Message],
    /// Where the verdict became certain.
    given: Place,
    /// No future operator was evaluated at an earlier place.
    from: i128,
    /// The histories are known up to here.
    known: i128,
    /// No further message can arrive up to here.
    complete: i128,
    truths: HashMap<(usize, Place), Truth>,
    changes: HashMap<usize, Rc<[Place]>>,
}

impl<'a> Past<'a> {
    pub(in crate::explanation) fn new(
        reason: &'a Reason,
        rows: &'a [Row],
        histories: Histories<'a>,
        messages: &'a [Message],
    ) -> Past<'a> {
        let (truths, changes) = (HashMap::new(), HashMap::new());
        let given = Place::between(i64::MAX, true);
        let (from, known, complete) = (i128::MIN, i128::MAX, i128::MAX);
        Past { reason, rows, histories, messages, given, from, known, complete, truths, changes }
    }

    /// Sets the place at which the verdict became certain: histories are known up to there, or with linear
    /// interpolation up to the last value.
    pub(in crate::explanation) fn know(&mut self, at_event: bool, given: Place) {
        self.given = given;
        self.known = self.axis(given);
        // Another message may still arrive at the same time. In steps it is another step.
        self.complete = match self.reason.time {
            TimeModel::Steps => self.known,
            TimeModel::Dense if !at_event => self.known,
            TimeModel::Points | TimeModel::Dense => self.known - 1,
        };
        let lines = self.rows.iter().enumerate().filter(|(_, row)| **row == Row::Line);
        let ends = lines.filter_map(|(row, _)| self.histories.of(row).open_end(given));
        if let Some(end) = ends.min() {
            self.known = self.known.min(self.axis(end) - 1);
            self.complete = self.complete.min(self.known);
        }
    }

    /// The place that a verdict is about, which became certain at `given`.
    pub(in crate::explanation) fn own(&mut self, report: &Report, given: Place) -> Place {
        if report.element.is_some() && report.about.is_none() && report.back == 0 {
            self.from = self.axis(given);
            return given;
        }
        if self.reason.time == TimeModel::Steps {
            let index = self.messages.partition_point(|message| message.step < report.step);
            let index = index.checked_sub(usize::try_from(report.back).unwrap_or(usize::MAX));
            let found = index.and_then(|index| self.messages.get(index));
            let own = found
                .map_or(Place::message(0, report.step.saturating_sub(report.back)), |m| self.place_of(m));
            self.from = self.axis(own);
            return own;
        }
        let time = report.about.unwrap_or(report.time).as_nanos();
        self.from = self.axis(Place::between(time, false));
        if report.about.is_none() && report.at_event {
            return given;
        }
        let first = self.messages.partition_point(|message| message.time < time);
        let together =
            self.messages[first..].iter().take_while(|message| message.time == time && !report.after);
        let places: Vec<Place> = together.map(|message| self.place_of(message)).collect();
        // The verdict is about the first of several simultaneous messages at which the formula is false.
        let formula = self.reason.formula;
        let violated = places.iter().copied().find(|place| self.truth(formula, *place, 0) == Truth::False);
        violated.or(places.last().copied()).unwrap_or(Place::between(time, report.after))
    }

    fn is_dense(&self) -> bool {
        self.reason.time == TimeModel::Dense
    }

    /// The position of a place on the axis on which bounds are measured. In dense time a time is doubled, and the
    /// interval right after it is one more.
    pub(super) fn axis(&self, place: Place) -> i128 {
        match self.reason.time {
            TimeModel::Steps => self.index(place) as i128,
            TimeModel::Points => place.time.into(),
            TimeModel::Dense => 2 * i128::from(place.time) + i128::from(place.after),
        }
    }

    /// The position of the first message that is not before a place, in steps.
    fn index(&self, place: Place) -> usize {
        let (first, step) = (self.messages.first().map(|first| first.step), place.step());
        // Most properties see every message.
        let guess = first.zip(step).and_then(|(first, step)| usize::try_from(step.checked_sub(first)?).ok());
        let hit = guess.filter(|at| self.messages.get(*at).is_some_and(|found| Some(found.step) == step));
        hit.unwrap_or_else(|| self.messages.partition_point(|message| Some(message.step) < step))
    }

    /// The place of a message.
    pub(super) fn place_of(&self, message: &Message) -> Place {
        let time = if self.reason.time == TimeModel::Steps { 0 } else { message.time };
        Place::message(time, message.step)
    }

    /// The last place at a time, or right after it, in dense time.
    pub(super) fn place_at(&self, time: i64, after: bool) -> Place {
        let message = last_until(self.messages, time).filter(|message| message.time == time && !after);
        message.map_or(Place::between(time, after), |message| self.place_of(message))
    }

    /// The last place on the axis of dense time, if there is one.
    fn place_on(&self, axis: i128) -> Option<Place> {
        Some(self.place_at(i64::try_from(axis >> 1).ok()?, axis & 1 == 1))
    }

    /// The span within the bounds of an operator that looks back or ahead from a place.
    pub(super) fn span(&self, at: Place, bounds: Bounds, ahead: bool) -> Span {
        let scale = if self.is_dense() { 2 } else { 1 };
        let here = self.axis(at);
        let near = i128::from(bounds.lower) * scale;
        let far = bounds.upper.map(|upper| i128::from(upper) * scale);
        if ahead {
            Span { from: here + near, to: far.map_or(i128::MAX, |far| here + far) }
        } else {
            // No place is before the first message.
            let first = self.messages.first().map_or(here, |first| self.axis(self.place_of(first)));
            Span { from: far.map_or(first, |far| (here - far).max(first)), to: here - near }
        }
    }

    /// The messages in a span.
    pub(super) fn messages_in(&self, span: Span) -> &'a [Message] {
        let messages = self.messages;
        let before = |axis: i128| match self.reason.time {
            // A message has its own position on the axis.
            TimeModel::Steps => {
                usize::try_from(axis.max(0)).map_or(messages.len(), |at| at.min(messages.len()))
            }
            _ => messages.partition_point(|message| self.axis(self.place_of(message)) < axis),
        };
        let (first, end) = (before(span.from), before(span.to.saturating_add(1)));
        messages.get(first..end).unwrap_or_default()
    }

    /// The first place of a span, if it has one.
    pub(super) fn first_of(&self, span: Span) -> Option<Place> {
        if span.from > span.to {
            return None;
        }
        if !self.is_dense() {
            return self.messages_in(span).first().map(|message| self.place_of(message));
        }
        let (time, after) = (i64::try_from(span.from >> 1).ok()?, span.from & 1 == 1);
        let together = |message: &&Message| message.time == time && !after;
        let index = self.messages.partition_point(|message| message.time < time);
        let message = self.messages.get(index).filter(together);
        Some(message.map_or(Place::between(time, after), |message| self.place_of(message)))
    }

    /// The last place of a span, if it has one.
    pub(super) fn last_of(&self, span: Span) -> Option<Place> {
        if span.from > span.to {
            return None;
        }
        if !self.is_dense() {
            return self.messages_in(span).last().map(|message| self.place_of(message));
        }
        self.place_on(span.to)
    }

    /// The places of a span at which one of these nodes may change, in order, with the first place of the span, for
    /// an operator that looks ahead or back from `at`.
    pub(super) fn places(&mut self, nodes: &[usize], span: Span, at: Place, ahead: bool) -> Vec<Place> {
        let lags: BTreeSet<u64> =
            nodes.iter().flat_map(|node| self.reason.nodes[*node].lags.iter().copied()).collect();
        let on_its_side = |place: &Place| if ahead { *place >= at } else { *place <= at };
        let mut places: Vec<Place> = if !lags.is_empty() && !self.is_dense() {
            self.messages_in(span).iter().map(|message| self.place_of(message)).collect()
        } else {
            let mut places: Vec<Place> = self.first_of(span).into_iter().collect();
            // Future operators may be undecided from there on.
            for lag in lags {
                let ends = [self.complete, self.complete + 1, self.known + 1];
                places.extend(ends.into_iter().filter_map(|end| self.place_on(end - 2 * i128::from(lag))));
            }
            places.retain(|place| (span.from..=span.to).contains(&self.axis(*place)));
            for &node in nodes {
                places.extend(self.changes_in(node, span));
            }
            places
        };
        // The operator may see only some of several messages with one time.
        if (span.from..=span.to).contains(&self.axis(at)) {
            places.push(at);
        }
        places.retain(on_its_side);
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The places of a span at which a node may change, in order.
    pub(super) fn changes_in(&mut self, node: usize, span: Span) -> Vec<Place> {
        let changes = self.changes(node, 0);
        let first = changes.partition_point(|place| self.axis(*place) < span.from);
        let end = changes.partition_point(|place| self.axis(*place) <= span.to);
        changes.get(first..end).unwrap_or_default().to_vec()
    }

    /// The places at which a node may change.
    pub(super) fn changes(&mut self, node: usize, depth: u32) -> Rc<[Place]> {
        if let Some(known) = self.changes.get(&node) {
            return Rc::clone(known);
        }
        let reason = self.reason;
        let of = &reason.nodes[node];
        let mut places: Vec<Place> = Vec::new();
        if let Some(history) = of.history {
            places.extend(self.histories.changes(history));
        } else if depth < DEEPEST {
            for &operand in &of.operands {
                places.extend(self.changes(operand, depth + 1).iter());
            }
            if !of.lags.is_empty() {
                // A future operator is nowhere an operand of one that looks back.
                places.retain(|place| self.axis(*place) >= self.from);
            }
            if let (Kind::Ahead(_, bounds) | Kind::Until(bounds), true) = (of.kind, self.is_dense()) {
                let found: Vec<i128> = places.iter().map(|place| self.axis(*place)).collect();
                let lags = [Some(bounds.lower), bounds.upper];
                for lag in lags.into_iter().flatten().map(|lag| 2 * i128::from(lag)) {
                    let shifted = found.iter().flat_map(|axis| [axis - lag, axis - lag + 1]);
                    places.extend(shifted.filter_map(|axis| self.place_on(axis)));
                }
            }
        }
        let seen = self.given;
        places.retain(|place| *place <= seen);
        places.sort_unstable();
        places.dedup();
        let places: Rc<[Place]> = places.into();
        self.changes.insert(node, Rc::clone(&places));
        places
    }

    /// The value of a field's or term's row at a place.
    pub(super) fn field(&self, row: usize, at: Place) -> Option<Value> {
        let at = self.histories.place(row, at);
        let history = self.histories.at(row, at)?;
        match self.rows[row] {
            Row::Line => history.line_at(at).flatten(),
            Row::Term(Course::Moving) if history.since(at) != Some(at) => None,
            Row::Term(Course::Growing) if history.since(at) != Some(at) => {
                let (since, value) = (history.since(at)?, history.at(at)?.as_ref()?);
                match (self.reason.time, value) {
                    (TimeModel::Points | TimeModel::Dense, Value::Duration(then)) => {
                        Some(Value::Duration(then.checked_add(at.time.checked_sub(since.time)?)?))
                    }
                    _ => None,
                }
            }
            _ => history.at(at).cloned().flatten(),
        }
    }

    /// The truth of a node at a place.
    pub(super) fn truth(&mut self, node: usize, at: Place, depth: u32) -> Truth {
        let reason = self.reason;
        let of = &reason.nodes[node];
        if let Some(row) = of.history {
            let at = self.histories.place(row, at);
            return match self.histories.at(row, at).and_then(|history| history.at(at)) {
                Some(Some(Value::Bool(value))) => Truth::of(*value),
                Some(_) => Truth::Unknown,
                None => Truth::Open,
            };
        }
        if depth > DEEPEST {
            return Truth::Open;
        }
        if !of.lags.is_empty() && self.axis(at) < self.from {
            // A table shows its parts also where only others matter.
            self.from = self.axis(at);
            self.changes.retain(|node, _| reason.nodes[*node].lags.is_empty());
        }
        if let Some(known) = self.truths.get(&(node, at)) {
            return *known;
        }
        let below = depth + 1;
        let truth = match (of.kind, &of.operands[..]) {
            (Kind::Constant(value), _) => Truth::of(value),
            (Kind::All, operands) => {
                operands.iter().fold(Truth::True, |all, operand| all.and(self.truth(*operand, at, below)))
            }
            (Kind::Any, operands) => {
                operands.iter().fold(Truth::False, |any, operand| any.or(self.truth(*operand, at, below)))
            }
            (Kind::Not, &[operand]) => self.truth(operand, at, below).not(),
            (Kind::Definitely, &[operand]) => match self.truth(operand, at, below) {
                Truth::Unknown => Truth::False,
                other => other,
            },
            (Kind::Next, &[operand]) => {
                let next = self.after(at).filter(|next| self.axis(*next) <= self.known);
                next.map_or(Truth::Open, |next| self.truth(operand, next, below))
            }
            (Kind::Ahead(wanted, bounds), &[operand]) => {
                let found = self.ahead(at, bounds, None, operand, wanted, below);
                if wanted { found } else { found.not() }
            }
            (Kind::Until(bounds), &[left, right]) => self.ahead(at, bounds, Some(left), right, true, below),
            _ => Truth::Open,
        };
        self.truths.insert((node, at), truth);
        truth
    }

    /// Truth of a future operator at a place: whether the right operand has the wanted truth within the bounds, and the
    /// left one, if there is one, is true until then.
    fn ahead(
        &mut self,
        at: Place,
        bounds: Bounds,
        left: Option<usize>,
        right: usize,
        wanted: bool,
        depth: u32,
    ) -> Truth {
        let span = self.span(at, bounds, true);
        let within = self.known_part(span);
        if self.axis(at) > within.to {
            return Truth::Open;
        }
        let nodes: Vec<usize> = left.into_iter().chain([right]).collect();
        // The left operand matters before the bounds, too.
        let looked_at = if left.is_some() { Span { from: self.axis(at), ..within } } else { within };
        let mut places = self.places(&nodes, looked_at, at, true);
        places.extend(self.first_of(within).filter(|first| *first > at));
        places.push(at);
        places.sort_unstable();
        places.dedup();
        let mut ahead = Lookahead::new(self.reason.time, bounds, left.is_some());
        for place in places {
            let axis = self.axis(place);
            let stays = left.map_or(Truth::True, |left| self.truth(left, place, depth));
            let ends = if axis < span.from { Truth::False } else { self.truth(right, place, depth) };
            ahead.time_point(axis, stays.bounds(), if wanted { ends } else { ends.not() }.bounds());
            let found = Truth::from_bounds(ahead.known());
            if found != Truth::Open {
                return found;
            }
        }
        ahead.end(within.to, within.to <= self.complete);
        Truth::from_bounds(ahead.known())
    }

    /// The part of a span for which the histories are known.
    pub(super) fn known_part(&self, span: Span) -> Span {
        Span { to: span.to.min(self.known), ..span }
    }

    /// The place of the message after a place.
    pub(super) fn after(&self, at: Place) -> Option<Place> {
        let next = self.messages.partition_point(|message| self.place_of(message) <= at);
        self.messages.get(next).map(|message| self.place_of(message))
    }

    /// The place of the message before a place.
    pub(super) fn before(&self, at: Place) -> Option<Place> {
        let next = self.messages.partition_point(|message| self.place_of(message) < at);
        self.messages[..next].last().map(|message| self.place_of(message))
    }
}
