//! State machines: the transition taken at each time point.
//!
//! Places in time are doubled, as in [`timed`](crate::ops::timed). A machine is evaluated at an instant `2t`
//! and on the open interval after it, `2t + 1`; in discrete time, at positions. At most one transition is
//! taken at a time point. On the interval after it one more can be taken, if it was not enabled at the time
//! point itself: a bound has expired, or a guard has become true without an event. Whether the interval is
//! empty is known at the next time point; until then the machine keeps both results.

pub(crate) mod leap;

use rondel_event::{Block, Rows, Value};
use serde::{Deserialize, Serialize};

use crate::machine::leap::{LIMIT, Leap, Request, UNKNOWN};
use crate::ops::columns::Columns;
use crate::ops::scalar::{Scalar, ScalarReading};
use crate::ops::texts::{TextColumn, TextRef};
use crate::ops::timed::instant;
use crate::ops::varying::Varying;

/// A compiled machine.
#[derive(Clone, Debug)]
pub(crate) struct MachinePlan {
    /// Its name, which is also that of its property.
    pub(crate) name: String,
    /// Index of that property.
    pub(crate) property: Option<u32>,
    /// Whether the trace may end in each state; empty if all are final.
    pub(crate) finals: Vec<bool>,
    /// Source text of the transitions.
    pub(crate) texts: Vec<String>,
    /// Whether time is counted in steps.
    pub(crate) steps: bool,
    /// Whether there is truth between events.
    pub(crate) dense: bool,
    /// The transitions that leave each state, in order of declaration.
    pub(crate) leaving: Vec<Vec<TransitionPlan>>,
    /// Values of each event that transitions need whose bound expires before the next one. They are stored as
    /// additional variables.
    pub(crate) kept: Vec<Scalar>,
    /// Period of each state with a self-loop by time alone and without other effects.
    pub(crate) heartbeats: Vec<Option<i64>>,
    /// Whether it has a cycle by time alone, so that stepping must be limited: see [`leap`].
    pub(crate) repeats: bool,
}

/// A compiled transition.
#[derive(Clone, Debug)]
pub(crate) struct TransitionPlan {
    /// Index in the machine.
    pub(crate) number: u32,
    pub(crate) to: u32,
    pub(crate) guard: Option<Scalar>,
    /// In nanoseconds or steps.
    pub(crate) within: Option<u64>,
    pub(crate) after: Option<u64>,
    pub(crate) assignments: Vec<(u32, Scalar)>,
}

impl TransitionPlan {
    /// Whether it is taken by time alone when a bound expires.
    pub(crate) fn runs_out(&self) -> bool {
        self.guard.is_none() && self.is_timed()
    }

    /// Whether it is taken when a bound expires, if there is no guard or the guard is true.
    pub(crate) fn is_timed(&self) -> bool {
        // `within` must not expire before `after` does.
        let in_time = |after| self.within.is_none_or(|within| within > after);
        self.after.is_some_and(in_time)
    }
}

/// Configuration of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) state: u32,
    /// Time of entry to the state: nanoseconds, or a position.
    pub(crate) entered: i64,
    /// The two transitions that were enabled at once, if that happened.
    pub(crate) ambiguous: Option<(u32, u32)>,
    /// Values of the variables; none if unknown.
    #[serde(with = "crate::ops::saved::values")]
    pub(crate) variables: Vec<Option<Value>>,
}

/// State of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MachineState {
    /// The configuration after the last time point.
    pub(crate) place: Place,
    /// The configuration on the interval after it, if different.
    pub(crate) span: Option<Place>,
    /// Transitions from the state that were enabled on that interval: bit `i` for the `i`-th.
    possible: u64,
    /// Whether there was a time point.
    begun: bool,
    /// The leap in progress, if there is one.
    leap: Option<Box<Leap>>,
    /// Whether the state will stay unknown.
    is_lost: bool,
    /// Whether a leap has lost the value of a variable.
    forgot: bool,
    /// Number of leaps.
    pub(crate) leaps: u64,
    /// The request to leap after the next time point.
    #[serde(skip)]
    pub(crate) request: Option<Request>,
}

/// The machine in some rows, at them and on the intervals after them.
#[derive(Clone, Debug)]
pub(crate) struct MachineRows {
    pub(crate) states: [Box<[i64; Block::CAPACITY]>; 2],
    pub(crate) ambiguous: [Rows; 2],
    /// Values of each variable before the transition at the row, and on the interval after it.
    pub(crate) variables: Vec<[VariableRows; 2]>,
}

/// Values of a variable in some rows, as the column of its kind, and the rows in which they are known.
#[derive(Clone, Debug)]
pub(crate) struct VariableRows {
    pub(crate) ints: Box<[i64; Block::CAPACITY]>,
    pub(crate) floats: Box<[f64; Block::CAPACITY]>,
    /// Texts, if they are read.
    pub(crate) texts: Vec<Vec<u8>>,
    /// The rows in which a boolean is true.
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

    /// Marks a half of a row as unknown.
    fn write_unknown(&mut self, half: usize, row: usize) {
        self.states[half][row] = UNKNOWN;
        set(&mut self.ambiguous[half], row, false);
        self.variables.iter_mut().for_each(|rows| rows[half].write(row, None));
    }

    /// Reserves the texts of a variable that is read.
    pub(crate) fn write_text(&mut self, variable: u32, half: u8) {
        self.variables[variable as usize][half as usize].texts.resize(Block::CAPACITY, Vec::new());
    }
}

/// The readers of instructions: each writes the column `out` if it has one, and returns the word.
impl MachineRows {
    /// The states on the intervals, and the rows in which they are ambiguous.
    pub(crate) fn after(&self, columns: &mut Columns, out: u32) -> Rows {
        columns.ints[out as usize] = *self.states[1];
        self.ambiguous[1]
    }

    /// A variable that is an integer or a time, and the rows in which it is known.
    pub(crate) fn int(&self, variable: u32, half: u8, columns: &mut Columns, out: u32) -> Rows {
        let rows = &self.variables[variable as usize][half as usize];
        columns.ints[out as usize] = *rows.ints;
        rows.known
    }

    /// The same for a float.
    pub(crate) fn float(&self, variable: u32, half: u8, columns: &mut Columns, out: u32) -> Rows {
        let rows = &self.variables[variable as usize][half as usize];
        columns.floats[out as usize] = *rows.floats;
        rows.known
    }

    /// The same for a text. The texts of the rows have the buffers from `buffer` on.
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

    /// The rows in which a boolean variable has this value.
    pub(crate) fn truth(&self, variable: u32, half: u8, value: bool) -> Rows {
        let rows = &self.variables[variable as usize][half as usize];
        rows.known & if value { rows.truths } else { !rows.truths }
    }
}

/// A time point of a machine.
#[derive(Clone, Copy)]
pub(crate) struct MachineStep {
    pub(crate) row: usize,
    /// Whether it is an event, instead of a time point by time alone.
    pub(crate) is_event: bool,
    /// Its time in nanoseconds, and that of the time point before.
    pub(crate) time: i64,
    pub(crate) before: i64,
    /// Its number.
    pub(crate) position: u64,
}

impl MachinePlan {
    /// Whether its state can become unknown. In the model of points there are no time points between events:
    /// it stays known.
    pub(crate) fn may_leap(&self) -> bool {
        self.dense && self.repeats
    }

    /// Whether the state is not final although the machine has final states.
    pub(crate) fn is_open(&self, state: &MachineState) -> bool {
        let place = state.span.as_ref().unwrap_or(&state.place);
        self.finals.get(place.state as usize) == Some(&false)
    }

    /// The two transitions that were enabled at once, if that happened.
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

    /// Steps the machine to a time point, and writes its state there.
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
            && let Some(known) = self.resume_leap(plan, reading, row, now)
        {
            return self.write_leap(plan, reading, rows, row, now, known);
        }
        if plan.dense {
            self.place.beat(plan, now);
        } else if !plan.steps {
            let forgets = self.place.run_out(plan, reading, now);
            self.forgot |= forgets;
            self.leaps = self.leaps.saturating_add(forgets.into());
        }
        if self.forgot && self.misses(plan, reading, row, now) {
            return self.write_leap(plan, reading, rows, row, now, [false; 2]);
        }
        for (variable, rows) in self.place.variables.iter().zip(&mut rows.variables) {
            rows[0].write(row, variable.as_ref());
        }
        let place = instant(now);
        // At a time point by time alone, a transition that was enabled before is not taken.
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
        self.write_span(plan, reading, rows, row, now);
    }

    /// Writes the state on the interval after the time point.
    fn write_span(
        &mut self,
        plan: &MachinePlan,
        reading: &ScalarReading<'_>,
        rows: &mut MachineRows,
        row: usize,
        now: i64,
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

    /// Writes a time point during a leap, which may end after it.
    fn write_leap(
        &mut self,
        plan: &MachinePlan,
        reading: &ScalarReading<'_>,
        rows: &mut MachineRows,
        row: usize,
        now: i64,
        [_, after]: [bool; 2],
    ) {
        rows.write_unknown(0, row);
        if after {
            self.write_span(plan, reading, rows, row, now);
        } else {
            rows.write_unknown(1, row);
        }
    }

    /// Whether it behaves like another one of the same plan from now on. The time of entry matters only in
    /// states with bounds.
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

    /// Time at which a bound expires after the time point at `now`, if one does.
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
        // The next owner writes its own values.
    }
}

/// A span of nanoseconds or steps; at least one, so that a cycle of transitions takes time.
fn span_of(after: u64) -> i64 {
    i64::try_from(after).unwrap_or(i64::MAX).max(1)
}

fn set(rows: &mut Rows, row: usize, value: bool) {
    *rows = *rows & !(1 << row) | Rows::from(value) << row;
}

/// Enabled transitions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Possible {
    None,
    /// One, by its index among those that leave the state.
    One(usize),
    /// Two, by their numbers.
    Two(u32, u32),
}

impl Place {
    /// Whether a transition from this state is enabled in a half of a row.
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

    /// Whether the bounds of a transition allow it.
    fn is_in_time(&self, transition: &TransitionPlan, place: i64) -> bool {
        let elapsed = place.saturating_sub(instant(self.entered));
        let doubled = |span: u64| i64::try_from(span).unwrap_or(i64::MAX).saturating_mul(2);
        transition.within.is_none_or(|within| elapsed <= doubled(within))
            && transition.after.is_none_or(|after| elapsed > doubled(after.max(1)))
    }

    /// The enabled ones of the transitions that `is_meant` accepts.
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

    /// Takes the only enabled transition. Two at once are recorded as an ambiguity.
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

    /// The first transition that time alone takes, and when; two if their bounds expire at once.
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

    /// Takes the transitions whose bound expired before `now`, in models without time points for them. Their
    /// assignments read variables only. Skips whole cycles of very many. Returns whether that lost a
    /// variable.
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
