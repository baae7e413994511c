//! State machines: which transition is taken at a moment.
//!
//! Places in time are doubled, as in [`timed`](crate::ops::timed): a machine looks at an instant `2t`, and on the open
//! span after it `2t + 1`; in the model of steps, at positions. At a moment at most one transition is taken. On
//! the span after it one more may be, but only one that was not possible at the moment itself: a time has run
//! out, or a guard has become true by itself. Whether there is such a span is known when the next moment comes;
//! until then the machine remembers both.

pub(crate) mod leap;

use rondel_event::{Block, Rows, Value};
use serde::{Deserialize, Serialize};

use crate::machine::leap::{LIMIT, Leap, Request, UNKNOWN};
use crate::ops::columns::Columns;
use crate::ops::scalar::{Scalar, ScalarReading};
use crate::ops::texts::{TextColumn, TextRef};
use crate::ops::timed::instant;
use crate::ops::varying::Varying;

/// A machine, compiled.
#[derive(Clone, Debug)]
pub(crate) struct MachinePlan {
    /// Its name, which is that of its property too.
    pub(crate) name: String,
    /// That property, by its position.
    pub(crate) property: Option<u32>,
    /// In which states the trace may end; empty where it may in any.
    pub(crate) finals: Vec<bool>,
    /// The transitions as they are written.
    pub(crate) texts: Vec<String>,
    /// Whether time is counted in steps.
    pub(crate) steps: bool,
    /// Whether there is truth between events.
    pub(crate) dense: bool,
    /// For every state the transitions that leave it, in order of declaration.
    pub(crate) leaving: Vec<Vec<TransitionPlan>>,
    /// What is kept of every event for the transitions whose time runs out before the next, as further
    /// variables.
    pub(crate) kept: Vec<Scalar>,
    /// For every state how often it is entered again by itself, where nothing else comes of that.
    pub(crate) heartbeats: Vec<Option<i64>>,
    /// Whether it may go round by itself, so that it is not followed for ever: see [`leap`].
    pub(crate) repeats: bool,
}

/// A transition, compiled.
#[derive(Clone, Debug)]
pub(crate) struct TransitionPlan {
    /// Its position in the machine.
    pub(crate) number: u32,
    pub(crate) to: u32,
    pub(crate) guard: Option<Scalar>,
    /// In nanoseconds or steps.
    pub(crate) within: Option<u64>,
    pub(crate) after: Option<u64>,
    pub(crate) assignments: Vec<(u32, Scalar)>,
}

impl TransitionPlan {
    /// Whether it is taken by itself once a time has run out.
    pub(crate) fn runs_out(&self) -> bool {
        self.guard.is_none() && self.is_timed()
    }

    /// Whether it is once a time has run out, if there is no guard, or if that is true.
    pub(crate) fn is_timed(&self) -> bool {
        // Just after the one time the other must not have run out.
        let in_time = |after| self.within.is_none_or(|within| within > after);
        self.after.is_some_and(in_time)
    }
}

/// Where a machine is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) state: u32,
    /// When it entered that state: a time in nanoseconds, or a position.
    pub(crate) entered: i64,
    /// The two transitions that were possible at once, if that happened.
    pub(crate) ambiguous: Option<(u32, u32)>,
    /// The values of its variables; none where the value is unknown.
    #[serde(with = "crate::ops::saved::values")]
    pub(crate) variables: Vec<Option<Value>>,
}

/// A machine on its way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MachineState {
    /// After the last moment.
    pub(crate) place: Place,
    /// On the span after it, if it is another there.
    pub(crate) span: Option<Place>,
    /// Which of the transitions that leave the state were possible on that span: bit `i` for the `i`-th.
    possible: u64,
    /// Whether there was a moment yet.
    begun: bool,
    /// The time in which it is not followed, if it is in such.
    leap: Option<Box<Leap>>,
    /// Whether nothing will be known of it any more.
    is_lost: bool,
    /// Whether it has a variable whose value such a time has taken.
    forgot: bool,
    /// How often it was not followed.
    pub(crate) leaps: u64,
    /// Whether it is to leap after its next moment.
    #[serde(skip)]
    pub(crate) request: Option<Request>,
}

/// The machine at some rows, and on the spans after them.
#[derive(Clone, Debug)]
pub(crate) struct MachineRows {
    pub(crate) states: [Box<[i64; Block::CAPACITY]>; 2],
    pub(crate) ambiguous: [Rows; 2],
    /// For every variable its values before the transition at the row, and on the span after it.
    pub(crate) variables: Vec<[VariableRows; 2]>,
}

/// The values of a variable at some rows, as the column of its kind, and where they are known.
#[derive(Clone, Debug)]
pub(crate) struct VariableRows {
    pub(crate) ints: Box<[i64; Block::CAPACITY]>,
    pub(crate) floats: Box<[f64; Block::CAPACITY]>,
    /// Texts, if they are asked for.
    pub(crate) texts: Vec<Vec<u8>>,
    /// Of a boolean, where it is true.
    pub(crate) truths: Rows,
    pub(crate) known: Rows,
}

impl Default for VariableRows {
    fn default() -> VariableRows {
        VariableRows {
            ints: Box::new([0; Block::CAPACITY]),
            floats: Box::new([0.0; Block::CAPACITY]),
            texts: Vec::new(),
            truths: 0,
            known: 0,
        }
    }
}

impl VariableRows {
    fn write(&mut self, row: usize, value: Option<&Value>) {
        let bit = 1 << row;
        self.known &= !bit;
        self.truths &= !bit;
        match value {
            Some(Value::Int(x) | Value::Time(x) | Value::Duration(x)) => self.ints[row] = *x,
            Some(Value::Float(x)) => self.floats[row] = *x,
            Some(Value::Bool(x)) => self.truths |= Rows::from(*x) << row,
            Some(Value::String(x)) => {
                if let Some(text) = self.texts.get_mut(row) {
                    text.clear();
                    text.extend_from_slice(x.as_bytes());
                }
            }
            None => return,
        }
        self.known |= bit;
    }
}

impl MachineRows {
    pub(crate) fn new(variables: usize) -> MachineRows {
        MachineRows {
            states: [Box::new([0; Block::CAPACITY]), Box::new([0; Block::CAPACITY])],
            ambiguous: [0; 2],
            variables: vec![Default::default(); variables],
        }
    }

    /// Writes that nothing is known on a side of a row.
    fn write_unknown(&mut self, half: usize, row: usize) {
        self.states[half][row] = UNKNOWN;
        set(&mut self.ambiguous[half], row, false);
        self.variables.iter_mut().for_each(|rows| rows[half].write(row, None));
    }

    /// Says that somebody asks for the text of a variable.
    pub(crate) fn write_text(&mut self, variable: u32, half: u8) {
        self.variables[variable as usize][half as usize].texts.resize(Block::CAPACITY, Vec::new());
    }
}

/// What instructions read: each writes the column `out` if it has one, and gives the word.
impl MachineRows {
    /// The states on the spans, and where they are ambiguous.
    pub(crate) fn after(&self, columns: &mut Columns, out: u32) -> Rows {
        columns.ints[out as usize] = *self.states[1];
        self.ambiguous[1]
    }

    /// A variable that is a number or a time, and where it is known.
    pub(crate) fn int(&self, variable: u32, half: u8, columns: &mut Columns, out: u32) -> Rows {
        let rows = &self.variables[variable as usize][half as usize];
        columns.ints[out as usize] = *rows.ints;
        rows.known
    }

    /// The same of a floating-point number.
    pub(crate) fn float(&self, variable: u32, half: u8, columns: &mut Columns, out: u32) -> Rows {
        let rows = &self.variables[variable as usize][half as usize];
        columns.floats[out as usize] = *rows.floats;
        rows.known
    }

    /// The same of a text. Those of the rows have the buffers from this one on.
    pub(crate) fn text(
        &self,
        variable: u32,
        half: u8,
        first: u32,
        buffers: &mut [Vec<u8>],
        out: &mut TextColumn,
    ) -> Rows {
        let rows = &self.variables[variable as usize][half as usize];
        for (((i, text), buffer), out) in
            (first..).zip(&rows.texts).zip(&mut buffers[first as usize..]).zip(out)
        {
            buffer.clone_from(text);
            *out = TextRef::Kept { buffer: i };
        }
        rows.known
    }

    /// Where a boolean has this value.
    pub(crate) fn truth(&self, variable: u32, half: u8, value: bool) -> Rows {
        let rows = &self.variables[variable as usize][half as usize];
        rows.known & if value { rows.truths } else { !rows.truths }
    }
}

/// The moment at which a machine is asked.
#[derive(Clone, Copy)]
pub(crate) struct MachineStep {
    pub(crate) row: usize,
    /// Whether it is an event, and not brought by time alone.
    pub(crate) is_event: bool,
    /// Its time in nanoseconds, and that of the moment before.
    pub(crate) time: i64,
    pub(crate) before: i64,
    /// Its number.
    pub(crate) position: u64,
}

impl MachinePlan {
    /// Whether it may be unknown where it is. In points no moment stands between events: it is known there.
    pub(crate) fn may_leap(&self) -> bool {
        self.dense && self.repeats
    }

    /// Whether a trace must not end with the machine there: it is in no final state.
    pub(crate) fn is_open(&self, state: &MachineState) -> bool {
        let place = state.span.as_ref().unwrap_or(&state.place);
        self.finals.get(place.state as usize) == Some(&false)
    }

    /// The two transitions that were possible at once, if that happened.
    pub(crate) fn ambiguous<'a>(&'a self, state: &MachineState) -> Option<[&'a str; 2]> {
        let (first, second) = state.place.ambiguous?;
        let text = |number: u32| self.texts.get(number as usize).map_or("?", String::as_str);
        Some([text(first), text(second)])
    }
}

impl MachineState {
    pub(crate) fn new(initial: u32, variables: Vec<Option<Value>>) -> MachineState {
        let place = Place { state: initial, entered: 0, ambiguous: None, variables };
        let (begun, leap, is_lost, forgot, leaps, request) = (false, None, false, false, 0, None);
        MachineState { place, span: None, possible: 0, begun, leap, is_lost, forgot, leaps, request }
    }

    /// Lets the machine see a moment, and writes where it is then.
    pub(crate) fn step(
        &mut self,
        plan: &MachinePlan,
        reading: &ScalarReading<'_>,
        step: MachineStep,
        rows: &mut MachineRows,
    ) {
        let MachineStep { row, is_event, time, before, position } = step;
        let now = if plan.steps { i64::try_from(position).unwrap_or(i64::MAX) } else { time };
        if !self.begun {
            self.begun = true;
            self.place.entered = now;
        }
        if let Some(span) = self.span.take()
            && time > before
        {
            self.place = span;
        }
        if self.is_unknown()
            && let Some(known) = self.fly(plan, reading, (row, now))
        {
            return self.write_flight(plan, reading, rows, (row, now), known);
        }
        if plan.dense {
            self.place.beat(plan, now);
        } else if !plan.steps {
            let forgets = self.place.run_out(plan, reading, now);
            self.forgot |= forgets;
            self.leaps = self.leaps.saturating_add(forgets.into());
        }
        if self.forgot && self.misses(plan, reading, (row, now)) {
            return self.write_flight(plan, reading, rows, (row, now), [false; 2]);
        }
        for (variable, rows) in self.place.variables.iter().zip(&mut rows.variables) {
            rows[0].write(row, variable.as_ref());
        }
        let place = instant(now);
        // Where time alone brings a moment, what was possible before is no reason to move again.
        let was_possible = self.possible;
        let moves = |i: usize| is_event || i >= 64 || was_possible >> i & 1 == 0;
        match self.place.possible(plan, reading, row, 0, place, moves) {
            Possible::None => {}
            found => self.place.take(plan, found, reading, row, 0, now),
        }
        let first = self.place.variables.len().saturating_sub(plan.kept.len());
        for (variable, kept) in self.place.variables.iter_mut().skip(first).zip(&plan.kept) {
            *variable = kept.value(reading, row, 0, &[]);
        }
        rows.states[0][row] = i64::from(self.place.state);
        set(&mut rows.ambiguous[0], row, self.place.ambiguous.is_some());
        if !plan.dense {
            return;
        }
        let leaving = &plan.leaving[self.place.state as usize];
        let is_new = |i: usize| !self.place.is_possible(&leaving[i], reading, row, 0, place);
        match self.place.possible(plan, reading, row, 1, place + 1, is_new) {
            Possible::None => {}
            found => {
                let mut span = self.place.clone();
                span.take(plan, found, reading, row, 1, now);
                self.span = Some(span);
            }
        }
        self.leap(plan, reading, row);
        self.write_span(plan, reading, rows, (row, now));
    }

    /// Writes where it is on the span after the moment.
    fn write_span(
        &mut self,
        plan: &MachinePlan,
        reading: &ScalarReading<'_>,
        rows: &mut MachineRows,
        (row, now): (usize, i64),
    ) {
        if self.is_unknown() {
            return rows.write_unknown(1, row);
        }
        let (span, place) = (self.span.as_ref().unwrap_or(&self.place), instant(now));
        self.possible = 0;
        for (i, transition) in plan.leaving[span.state as usize].iter().enumerate().take(64) {
            self.possible |= u64::from(span.is_possible(transition, reading, row, 1, place + 1)) << i;
        }
        for (variable, rows) in span.variables.iter().zip(&mut rows.variables) {
            rows[1].write(row, variable.as_ref());
        }
        rows.states[1][row] = i64::from(span.state);
        set(&mut rows.ambiguous[1], row, span.ambiguous.is_some());
    }

    /// Writes a moment that it is not followed at; after it, it may be again.
    fn write_flight(
        &mut self,
        plan: &MachinePlan,
        reading: &ScalarReading<'_>,
        rows: &mut MachineRows,
        at: (usize, i64),
        [_, after]: [bool; 2],
    ) {
        rows.write_unknown(0, at.0);
        if after {
            self.write_span(plan, reading, rows, at);
        } else {
            rows.write_unknown(1, at.0);
        }
    }

    /// Whether it goes on as another one of the same plan does. When a state was entered matters only where
    /// times run from it.
    pub(crate) fn goes_on_as(&self, other: &MachineState, plan: &MachinePlan) -> bool {
        let alike = |a: &Place, b: &Place| {
            let times = || plan.leaving[a.state as usize].iter().any(|t| t.within.or(t.after).is_some());
            (a.state, a.ambiguous, &a.variables) == (b.state, b.ambiguous, &b.variables)
                && (a.entered == b.entered || !times())
        };
        alike(&self.place, &other.place)
            && self.possible == other.possible
            && (&self.leap, self.is_lost, self.forgot) == (&other.leap, other.is_lost, other.forgot)
            && match (&self.span, &other.span) {
                (None, None) => true,
                (Some(a), Some(b)) => alike(a, b),
                _ => false,
            }
    }

    /// When a time runs out, if one does, after the moment at `now`.
    pub(crate) fn next_change(&self, plan: &MachinePlan, now: i64) -> Option<i64> {
        let place = self.span.as_ref().unwrap_or(&self.place);
        if !plan.dense || place.ambiguous.is_some() || !self.begun || self.is_lost {
            return None;
        }
        if let Some(leap) = &self.leap {
            return Some(leap.place.entered).filter(|&time| time > now);
        }
        if let Some(Some(_)) = plan.heartbeats.get(place.state as usize) {
            return None;
        }
        let times = plan.leaving[place.state as usize].iter().filter_map(|transition| transition.after);
        times.map(|after| place.entered.saturating_add(span_of(after))).filter(|&time| time > now).min()
    }
}

impl Varying for MachineState {
    fn bytes(&self) -> usize {
        self.place.variables.capacity() * size_of::<Option<Value>>()
    }

    fn renew(&mut self, _: &MachineState) {
        // What comes next in its place brings its own values.
    }
}

/// A span as a number of nanoseconds or steps; at least one, so that a circle of transitions takes time.
fn span_of(after: u64) -> i64 {
    i64::try_from(after).unwrap_or(i64::MAX).max(1)
}

fn set(rows: &mut Rows, row: usize, value: bool) {
    *rows = *rows & !(1 << row) | Rows::from(value) << row;
}

/// What transitions are possible.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Possible {
    None,
    /// One, by its position among those that leave the state.
    One(usize),
    /// Two, by their numbers.
    Two(u32, u32),
}

impl Place {
    /// Whether a transition from this state is possible on a side of a row.
    fn is_possible(
        &self,
        transition: &TransitionPlan,
        reading: &ScalarReading<'_>,
        row: usize,
        half: usize,
        place: i64,
    ) -> bool {
        self.is_in_time(transition, place)
            && match &transition.guard {
                Some(guard) => guard.truth(reading, row, half, &self.variables) == Some(true),
                None => true,
            }
    }

    /// Whether the times of a transition allow it.
    fn is_in_time(&self, transition: &TransitionPlan, place: i64) -> bool {
        let elapsed = place.saturating_sub(instant(self.entered));
        let doubled = |span: u64| i64::try_from(span).unwrap_or(i64::MAX).saturating_mul(2);
        transition.within.is_none_or(|within| elapsed <= doubled(within))
            && transition.after.is_none_or(|after| elapsed > doubled(after.max(1)))
    }

    /// Which of the transitions that are meant are possible.
    fn possible(
        &self,
        plan: &MachinePlan,
        reading: &ScalarReading<'_>,
        row: usize,
        half: usize,
        place: i64,
        is_meant: impl Fn(usize) -> bool,
    ) -> Possible {
        if self.ambiguous.is_some() {
            return Possible::None;
        }
        let leaving = plan.leaving[self.state as usize].iter().enumerate();
        let mut possible =
            leaving.filter(|(i, t)| self.is_possible(t, reading, row, half, place) && is_meant(*i));
        match (possible.next(), possible.next()) {
            (None, _) => Possible::None,
            (Some((i, _)), None) => Possible::One(i),
            (Some((_, first)), Some((_, second))) => Possible::Two(first.number, second.number),
        }
    }

    /// Takes the one transition that is possible. Two are noted as a mistake of the machine.
    fn take(
        &mut self,
        plan: &MachinePlan,
        found: Possible,
        reading: &ScalarReading<'_>,
        row: usize,
        half: usize,
        now: i64,
    ) {
        match found {
            Possible::None => {}
            Possible::One(i) => {
                self.enter(&plan.leaving[self.state as usize][i], reading, row, half, now);
            }
            Possible::Two(first, second) => self.ambiguous = Some((first, second)),
        }
    }

    fn enter(
        &mut self,
        transition: &TransitionPlan,
        reading: &ScalarReading<'_>,
        row: usize,
        half: usize,
        now: i64,
    ) {
        if !transition.assignments.is_empty() {
            let before = self.variables.clone();
            for (variable, value) in &transition.assignments {
                self.variables[*variable as usize] = value.value(reading, row, half, &before);
            }
        }
        (self.state, self.entered) = (transition.to, now);
    }

    /// When time alone takes a transition first of those that are open, and which; two if their times run out at
    /// once.
    fn next_by_time(
        &self,
        plan: &MachinePlan,
        is_open: impl Fn(&TransitionPlan) -> bool,
    ) -> Option<(i64, Possible)> {
        let leaving = plan.leaving[self.state as usize].iter().enumerate();
        let leaving = leaving.filter(|(_, t)| t.is_timed() && is_open(t));
        let mut due =
            leaving.filter_map(|(i, t)| Some((self.entered.saturating_add(span_of(t.after?)), i, t)));
        let mut first = due.next()?;
        let mut second = None;
        for other in due {
            if other.0 < first.0 {
                (first, second) = (other, None);
            } else if other.0 == first.0 {
                second = second.or(Some(other.2.number));
            }
        }
        let (time, i, transition) = first;
        let found = second.map_or(Possible::One(i), |second| Possible::Two(transition.number, second));
        Some((time, found))
    }

    /// Takes the transitions whose time ran out before `now`, where no moment stands for that. What they
    /// assign asks for variables only. Of very many, whole circles are skipped: whether that lost a variable.
    fn run_out(&mut self, plan: &MachinePlan, reading: &ScalarReading<'_>, now: i64) -> bool {
        let (mut taken, mut lost) = (0, false);
        while self.ambiguous.is_none() {
            match self.next_by_time(plan, |t| t.guard.is_none()) {
                Some((due, found)) if due < now && due != i64::MAX => {
                    self.take(plan, found, reading, 0, 0, due);
                }
                _ => break,
            }
            taken += 1;
            if taken == LIMIT {
                lost = self.skip(plan, now);
            }
        }
        lost
    }
}
