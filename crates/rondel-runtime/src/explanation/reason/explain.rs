//! The search for the parts and time points that explain why a formula is false.
//!
//! | operator | explained by |
//! |---|---|
//! | false conjunction | its false operands |
//! | true disjunction | its true operands |
//! | temporal operator | the time point that decides it |
//! | temporal operator that no single time point decides | the nearest time points within its bounds |

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rondel_event::Value;
use rondel_spec::{Bounds, TimeModel};

use super::truth::{Past, Span};
use super::{Kind, Node};
use crate::explanation::history::Place;
use crate::explanation::{Row, SHOWN};

/// An explanation: rows, and for each place their values.
#[derive(Clone, Debug, Default)]
pub(in crate::explanation) struct Explained {
    pub(in crate::explanation) rows: Vec<usize>,
    pub(in crate::explanation) places: Vec<(Place, Vec<Option<Value>>)>,
}

/// Explains why the formula is false at a place.
pub(in crate::explanation) fn explain(past: Past<'_>, own: Place) -> Explained {
    let formula = past.reason.formula;
    if formula >= past.reason.nodes.len() {
        return Explained::default();
    }
    let mut search = Search {
        past,
        facts: HashMap::new(),
        open: Vec::new(),
        rows: BTreeSet::new(),
        places: BTreeSet::from([own]),
        many: Vec::new(),
    };
    search.add(formula, own, Some(false));
    search.run();
    search.fill(own);
    search.table()
}

struct Search<'a> {
    past: Past<'a>,
    /// The parts that matter at a place, with their truth where it follows from that of other parts.
    facts: HashMap<(usize, Place), Option<bool>>,
    open: Vec<(usize, Place)>,
    rows: BTreeSet<usize>,
    places: BTreeSet<Place>,
    /// Parts with many equally important places, the nearest first.
    many: Vec<(usize, Vec<Place>)>,
}

impl Search<'_> {
    fn node(&self, node: usize) -> &Node {
        &self.past.reason.nodes[node]
    }

    fn truth(&mut self, node: usize, at: Place) -> Option<bool> {
        self.past.truth(node, at, 0).known()
    }

    /// Adds a part that matters at a place; `follows` is its truth, where that follows from other parts.
    fn add(&mut self, node: usize, at: Place, follows: Option<bool>) {
        let known = self.facts.get(&(node, at));
        if known.is_none_or(|known| known.is_none() && follows.is_some()) {
            self.facts.insert((node, at), follows);
            self.open.push((node, at));
        }
    }

    fn run(&mut self) {
        while let Some((node, at)) = self.open.pop() {
            self.step(node, at);
        }
    }

    /// Adds the operands and places that decide a part at a place.
    fn step(&mut self, node: usize, at: Place) {
        let follows = self.facts.get(&(node, at)).copied().flatten();
        let truth = follows.or_else(|| self.truth(node, at));
        let of = self.node(node);
        let (kind, topics, operands) = (of.kind, of.topics.clone(), of.operands.clone());
        // The state of a machine says more than whether it is in some state.
        let has_state = kind == Kind::State && !of.fields.is_empty();
        let row = of.row.filter(|_| !has_state);
        let rows: Vec<usize> = row.into_iter().chain(of.term).chain(of.fields.iter().copied()).collect();
        self.rows.extend(rows);
        self.places.insert(at);
        match (kind, &operands[..]) {
            (Kind::All | Kind::Any, _) => self.logic(&operands, at, kind == Kind::Any, truth),
            (Kind::Not, &[operand]) => self.add(operand, at, truth.map(|truth| !truth)),
            (Kind::Definitely, &[operand]) => self.add(operand, at, truth.filter(|truth| *truth)),
            (Kind::Back(wanted, bounds), &[operand]) => {
                self.witness(operand, at, bounds, wanted, truth, false)
            }
            (Kind::Ahead(wanted, bounds), &[operand]) => {
                self.witness(operand, at, bounds, wanted, truth, true)
            }
            (Kind::Since(bounds), &[left, right]) => self.since(left, right, at, bounds, truth),
            (Kind::Until(bounds), &[left, right]) => self.until(left, right, at, bounds, truth),
            (Kind::If, &[condition, yes, no]) => match self.truth(condition, at) {
                Some(chosen) => {
                    self.add(condition, at, None);
                    self.add(if chosen { yes } else { no }, at, None);
                }
                None => [condition, yes, no].into_iter().for_each(|operand| self.add(operand, at, None)),
            },
            (Kind::Next, &[operand]) => {
                let next = self.past.after(at);
                next.into_iter().for_each(|next| self.add(operand, next, truth));
            }
            (Kind::Previously, &[operand]) => self.just_before(operand, at),
            (Kind::Edge, &[operand]) => {
                self.add(operand, at, None);
                self.just_before(operand, at);
            }
            (Kind::Changed, &[operand]) => {
                self.add(operand, at, None);
                if truth == Some(true) {
                    self.before_message(operand, at);
                }
            }
            (Kind::Prev, &[operand]) => self.before_message(operand, at),
            (Kind::Window(over), _) => {
                let bounds = Bounds { lower: 0, upper: Some(over.saturating_sub(1)) };
                let span = self.past.span(at, bounds, false);
                let on_its = |topic| topics.contains(&topic);
                let samples =
                    self.past.messages_in(span).iter().rev().filter(|m| m.topic.is_some_and(on_its));
                let samples: Vec<Place> =
                    samples.map(|message| self.past.place_of(message)).take(SHOWN).collect();
                match operands.first() {
                    Some(&operand) => self.many.push((operand, samples)),
                    None => self.many.push((node, samples)),
                }
            }
            (Kind::Last, _) => {
                let span = self.past.span(at, Bounds::ALL, false);
                let mut messages = self.past.messages_in(span).iter().rev();
                let last =
                    messages.find(|message| message.topic.is_some_and(|topic| topics.contains(&topic)));
                let place = last.map(|message| self.past.place_of(message)).filter(|place| *place <= at);
                self.places.extend(place);
            }
            (Kind::State, _) if has_state => self.state(node, at),
            (Kind::Ambiguous, _) => self.choices(node, at),
            (Kind::State, _) if truth == Some(true) => {
                let since =
                    self.node(node).history.and_then(|row| self.past.histories.at(row, at)?.since(at));
                self.places.extend(since);
            }
            _ => operands.iter().for_each(|operand| self.add(*operand, at, None)),
        }
    }

    /// The state of the machine of a node at a place, and where it was entered.
    fn state_at(&self, node: usize, at: Place) -> Option<(Value, Place)> {
        let row = *self.node(node).fields.first()?;
        let history = self.past.histories.at(row, at)?;
        Some((history.at(at)?.clone()?, history.since(at)?))
    }

    /// Adds the transition by which a machine came into its state, and those before it.
    fn state(&mut self, node: usize, at: Place) {
        let Some((state, entered)) = self.state_at(node, at) else { return };
        let row = self.node(node).fields[0];
        let earlier: Vec<Place> = self.past.histories.changes(row).filter(|place| *place < entered).collect();
        let before = earlier.last().and_then(|place| self.state_at(node, *place));
        self.places.insert(entered);
        if let Some((before, _)) = before {
            let moves = self.node(node).moves.iter();
            let taken: Vec<Option<usize>> =
                moves.filter(|m| m.from == before && m.to == state).map(|m| m.guard).collect();
            // One of several may have been the one.
            let follows = Some(true).filter(|_| taken.len() == 1);
            taken.into_iter().flatten().for_each(|guard| self.add(guard, entered, follows));
        }
        self.many.push((node, earlier.into_iter().rev().take(SHOWN - 1).collect()));
    }

    /// Adds the transitions of which several were possible.
    fn choices(&mut self, node: usize, at: Place) {
        let Some((state, entered)) = self.state_at(node, at) else { return };
        self.places.insert(entered);
        let moves = self.node(node).moves.iter().filter(|m| m.from == state);
        let guards: Vec<usize> = moves.filter_map(|m| m.guard).collect();
        for guard in guards {
            if self.truth(guard, at) != Some(false) {
                self.add(guard, at, None);
            }
        }
    }

    /// Adds the operands that decide a conjunction or disjunction.
    fn logic(&mut self, operands: &[usize], at: Place, is_any: bool, truth: Option<bool>) {
        if truth != Some(is_any) {
            // All operands decide together.
            return operands.iter().for_each(|operand| self.add(*operand, at, truth));
        }
        let truths: Vec<Option<bool>> = operands.iter().map(|operand| self.truth(*operand, at)).collect();
        if truths.contains(&truth) {
            let deciding = operands.iter().zip(&truths).filter(|(_, of)| **of == truth);
            return deciding.for_each(|(operand, _)| self.add(*operand, at, truth));
        }
        // The operand that decides is unknown. If only one is open, it must be that one.
        let open: Vec<usize> = operands
            .iter()
            .zip(&truths)
            .filter(|(_, of)| of.is_none())
            .map(|(operand, _)| *operand)
            .collect();
        let follows = truth.filter(|_| open.len() == 1);
        open.iter().for_each(|operand| self.add(*operand, at, follows));
    }

    /// Adds the place at which the operand decides the operator.
    fn witness(
        &mut self,
        operand: usize,
        at: Place,
        bounds: Bounds,
        wanted: bool,
        truth: Option<bool>,
        ahead: bool,
    ) {
        let span = self.past.span(at, bounds, ahead);
        if truth == Some(wanted)
            && let Some(found) = self.find(&[operand], operand, span, at, ahead, wanted)
        {
            return self.add(operand, found, truth);
        }
        self.everywhere(operand, span, at, ahead);
    }

    /// The place nearest to `at` within a span at which a node has this truth, among the places at which one of
    /// `nodes` changes.
    fn find(
        &mut self,
        nodes: &[usize],
        node: usize,
        span: Span,
        at: Place,
        ahead: bool,
        wanted: bool,
    ) -> Option<Place> {
        let span = self.past.known_part(span);
        let mut places = self.past.places(nodes, span, at, ahead);
        if !ahead {
            places.reverse();
        }
        places.into_iter().find(|place| self.truth(node, *place) == Some(wanted))
    }

    fn since(&mut self, left: usize, right: usize, at: Place, bounds: Bounds, truth: Option<bool>) {
        let span = self.past.span(at, bounds, false);
        let begun = self.find(&[left, right], right, span, at, false, true);
        let Some(begun) = begun.filter(|_| truth.is_some()) else {
            return self.everywhere(right, span, at, false);
        };
        if truth == Some(true) {
            return self.add(right, begun, truth);
        }
        let since = Span { from: self.past.axis(begun), to: self.past.axis(at) };
        let places = self.past.places(&[left], since, begun, true);
        let mut later = places.into_iter().filter(|place| *place > begun);
        let failed = later.find(|place| self.truth(left, *place) == Some(false));
        self.add(right, begun, Some(true));
        match failed {
            Some(failed) => self.add(left, failed, Some(false)),
            None => self.everywhere(left, since, at, false),
        }
    }

    fn until(&mut self, left: usize, right: usize, at: Place, bounds: Bounds, truth: Option<bool>) {
        let span = self.past.span(at, bounds, true);
        if truth == Some(true) {
            if let Some(ended) = self.find(&[left, right], right, span, at, true, true) {
                return self.add(right, ended, truth);
            }
            return self.everywhere(right, span, at, true);
        }
        let whole = Span { from: self.past.axis(at), ..span };
        let failed = truth.and_then(|_| self.find(&[left], left, whole, at, true, false));
        match failed {
            Some(failed) => {
                self.add(left, failed, Some(false));
                if self.past.axis(failed) >= span.from {
                    self.add(right, failed, None);
                }
            }
            None => self.everywhere(right, span, at, true),
        }
    }

    /// Adds the places of a span at which a node changes or a message that it reads arrives: all matter equally.
    fn everywhere(&mut self, node: usize, span: Span, at: Place, ahead: bool) {
        let span = self.past.known_part(span);
        let topics = self.node(node).topics.clone();
        let on_its_side = |place: &Place| if ahead { *place >= at } else { *place <= at };
        // A node that reads only the arrival of messages has no other places.
        let is_by_message = !self.node(node).reads && !topics.is_empty();
        let changes = if is_by_message { Vec::new() } else { self.past.changes_in(node, span) };
        let mut places: BTreeSet<Place> = changes.into_iter().filter(on_its_side).collect();
        let messages = self.past.messages_in(span).iter();
        let its = messages.filter(|message| message.topic.is_some_and(|topic| topics.contains(&topic)));
        let its = its.map(|message| self.past.place_of(message)).filter(on_its_side);
        if ahead {
            places.extend(its.take(SHOWN));
        } else {
            places.extend(its.rev().take(SHOWN));
        }
        if self.node(node).reads || !self.node(node).lags.is_empty() {
            // The nearest place is shown even without a message there.
            let own = (span.from..=span.to).contains(&self.past.axis(at)).then_some(at);
            if own.is_some() || places.is_empty() {
                let nearest = if ahead { self.past.first_of(span) } else { self.past.last_of(span) };
                let nearest = own.or(nearest);
                nearest.into_iter().for_each(|place| self.add(node, place, None));
            }
        }
        let nearest: Vec<Place> = if ahead {
            places.into_iter().take(SHOWN).collect()
        } else {
            places.into_iter().rev().take(SHOWN).collect()
        };
        self.many.push((node, nearest));
    }

    /// Adds an operand at the previous place.
    fn just_before(&mut self, operand: usize, at: Place) {
        let before = if self.past.reason.time == TimeModel::Dense {
            self.past.changes(operand, 0).iter().copied().rfind(|place| *place < at)
        } else {
            self.past.before(at)
        };
        before.into_iter().for_each(|before| self.add(operand, before, None));
    }

    /// Adds an operand before the last message on its topics.
    fn before_message(&mut self, operand: usize, at: Place) {
        let topics = self.node(operand).topics.clone();
        let span = self.past.span(at, Bounds::ALL, false);
        let messages =
            self.past.messages_in(span).iter().rev().map(|message| (message, self.past.place_of(message)));
        let mut its = messages.filter(|(message, place)| {
            *place <= at && message.topic.is_some_and(|topic| topics.contains(&topic))
        });
        let before = its.nth(1).map(|(_, place)| place);
        before.into_iter().for_each(|before| self.add(operand, before, None));
    }

    /// Adds equally important places up to the limit, the nearest first.
    fn fill(&mut self, own: Place) {
        let axis = self.past.axis(own);
        let mut many: BTreeMap<(u128, Place), Vec<usize>> = BTreeMap::new();
        for (node, places) in std::mem::take(&mut self.many) {
            for place in places {
                let far = self.past.axis(place).abs_diff(axis);
                many.entry((far, place)).or_default().push(node);
            }
        }
        for ((_, place), nodes) in many {
            if self.places.len() >= SHOWN && !self.places.contains(&place) {
                continue;
            }
            self.places.insert(place);
            nodes.into_iter().for_each(|node| self.add(node, place, None));
            self.run();
        }
        // If the required places exceed the limit, the farthest are left out.
        while self.places.len() > SHOWN {
            let far = |place: &Place| self.past.axis(*place).abs_diff(axis);
            let Some(farthest) = self.places.iter().copied().filter(|p| *p != own).max_by_key(far) else {
                break;
            };
            self.places.remove(&farthest);
        }
    }

    fn table(mut self) -> Explained {
        let shown: Vec<usize> = self.rows.iter().copied().collect();
        let places = std::mem::take(&mut self.places);
        let mut parts: HashMap<usize, usize> = HashMap::new();
        for (node, of) in self.past.reason.nodes.iter().enumerate() {
            parts.extend(of.row.map(|row| (row, node)));
        }
        let mut column = |at: Place| -> Vec<Option<Value>> {
            let value = |row: &usize| match self.past.rows[*row] {
                Row::Field | Row::Line | Row::State | Row::Element | Row::Term(_) => {
                    self.past.field(*row, at)
                }
                Row::Watched | Row::Made => {
                    let node = *parts.get(row)?;
                    let follows = self.facts.get(&(node, at)).copied().flatten();
                    follows.or_else(|| self.past.truth(node, at, 0).known()).map(Value::Bool)
                }
            };
            shown.iter().map(value).collect()
        };
        let places = places.into_iter().map(|at| (at, column(at))).collect();
        Explained { rows: shown, places }
    }
}
