//! Conditions on the elements of an array, by their definition.

use std::cell::Cell;
use std::collections::BTreeSet;

use rondel_event::{Comparison, Condition, Path, Test};

const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

/// Returns a test of a number.
pub(crate) fn number_test(mut below: impl FnMut(usize) -> usize) -> Test {
    Test::Number(COMPARISONS[below(6)], [0.5, 0.0, 1.0, 3.0, -1.25][below(5)])
}

/// Returns some alternatives of some of these tests; several alternatives may share a test.
pub(crate) fn alternatives(mut below: impl FnMut(usize) -> usize, tests: &[(Path, Test)]) -> Vec<Condition> {
    let mut conditions = Vec::new();
    for alternative in 0..1 + below(3) as u32 {
        for _ in 0..1 + below(2) {
            let (path, test) = tests[below(tests.len())].clone();
            conditions.push(Condition { alternative, path, test });
        }
    }
    conditions
}

/// Whether a number meets a test; `None` if it is NaN.
pub(crate) fn meets_number(test: &Test, number: f64) -> Option<bool> {
    let Test::Number(comparison, bound) = test else { panic!("{test:?}") };
    (!number.is_nan()).then(|| comparison.holds(number, *bound))
}

/// Number of elements of an array that meet conditions, and total number.
#[derive(Debug, Default)]
pub(crate) struct Met {
    pub(crate) met: usize,
    /// Number of elements for which that is unknown, since they have NaN.
    pub(crate) unknown: usize,
    pub(crate) total: usize,
}

impl Met {
    /// Returns the number of elements whose conditions are decided, or `None` if none of several are.
    pub(crate) fn decided(&self) -> Option<usize> {
        let decided = self.total - self.unknown;
        (self.total == 0 || decided > 0).then_some(decided)
    }
}

/// Returns the conjunction of truth values, some of them unknown.
fn all(truths: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let truths: Vec<_> = truths.collect();
    match truths.contains(&Some(false)) {
        true => Some(false),
        false => truths.iter().all(Option::is_some).then_some(true),
    }
}

/// Counts of compared cases.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// Lists with elements, under conditions of several alternatives.
    pub(crate) lists: Cell<u64>,
    /// Elements that meet another alternative and not the first.
    pub(crate) others: Cell<u64>,
}

impl Coverage {
    /// Counts the elements that meet the conditions, by their definition.
    pub(crate) fn met<T>(
        &self,
        conditions: &[Condition],
        elements: &[T],
        is_met: impl Fn(&Condition, &T) -> Option<bool>,
    ) -> Met {
        let numbers: BTreeSet<u32> = conditions.iter().map(|condition| condition.alternative).collect();
        if numbers.len() > 1 && !elements.is_empty() {
            self.lists.set(self.lists.get() + 1);
        }
        let mut result = Met { total: elements.len(), ..Met::default() };
        for element in elements {
            let meets = |number: &u32| {
                all(conditions.iter().filter(|c| c.alternative == *number).map(|c| is_met(c, element)))
            };
            let first = conditions.first().map_or(Some(true), |first| meets(&first.alternative));
            let any = all(numbers.iter().map(|number| meets(number).map(|met| !met))).map(|none| !none);
            match if conditions.is_empty() { Some(true) } else { any } {
                Some(true) => {
                    result.met += 1;
                    self.others.set(self.others.get() + u64::from(first != Some(true)));
                }
                Some(false) => {}
                None => result.unknown += 1,
            }
        }
        result
    }

    /// Adds the counts of another one.
    pub(crate) fn add(&self, other: &Coverage) {
        self.lists.set(self.lists.get() + other.lists.get());
        self.others.set(self.others.get() + other.others.get());
    }

    /// Fails if too few lists were compared.
    pub(crate) fn assert(&self, least: u64) {
        let (lists, others) = (self.lists.get(), self.others.get());
        assert!(
            rondel_testkit::is_replay() || lists >= least && others >= least,
            "only {lists} lists, {others} elements were compared"
        );
    }
}
