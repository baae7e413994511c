//! Quantifiers over data: `exists x. request{id: x} and not once[0, 10 s] grant{id: x}`.
//!
//! A subformula with variables is a relation: the set of values of its variables for which it holds. An atom
//! yields one tuple, and only at its message; `once` stores tuples; `and` joins, `or` unites, `exists` drops
//! a column. [`safe`] compiles a formula to a [`plan`] in which every relation is finite; [`state`] runs it,
//! and [`table`] stores relations that last. A quantified formula without free variables is a truth like any
//! other, one word per block.
//!
//! A formula in which a message matters to its own values only is evaluated by value instead, with the same
//! result: see `translate/by_value.rs`.
//!
//! # Monitorable formulas
//!
//! A variable ranges over all values of its type, so some finite relation must bind it: `not p(x)` alone is
//! refused, while `q(x) and not p(x)` tests the tuples of `q`. Binding formulas are atoms; `once`, `since`
//! (by its second operand), `previously` and `exists` of a binding formula; `and` with one binding operand,
//! `or` with two; and equations with a constant or a bound variable. Other formulas that are finite once
//! their variables are bound test the tuples of a conjunction: `q(x) and not exists y. p` is `q(x) and not
//! exists y. q(x) and p`. `forall x. p` is `not exists x. not p`, and `historically p` is `not once not p`;
//! so `forall x. grant(x) -> once[0, 10 s] request(x)` tests the values of `grant`. The first operand of
//! `since` may use only variables that the second binds.
//!
//! # Future operators
//!
//! A future operator binds no variable: it is an obligation of the tuples present at the time point. `forall
//! x. request(x) -> eventually[0, 2 s] grant(x)` is `not exists x. request(x) and not eventually …`. Future
//! operators that the quantifier can be pushed through are moved out of it (`translate/quantified_future.rs`); for the rest
//! every tuple has an [obligation](obligations) until all of it is decided, and a property with [future
//! operators](crate::future) receives the decision about each time point.
//!
//! # Memory
//!
//! Memory follows the values that can still matter. `once` without an upper bound stores every value ever
//! received: it is refused unless the property has `@unbounded` or `@limit`. `since` without one is accepted,
//! as its first operand ends what is stored. `exists x. once p` stores no values: it is `once exists x. p`.
//!
//! With a limit the oldest values are evicted. The upper truth of such a relation then contains all tuples,
//! and relations computed from it are *vague*: all tuples on the upper bound, none on the lower.

mod apart;
mod batch;
mod chain;
mod future;
mod join;
pub(crate) mod literal;
pub(crate) mod obligations;
mod parts;
pub(crate) mod plan;
pub(crate) mod resolve;
mod rollback;
pub(crate) mod safe;
mod since;
pub(crate) mod source;
pub(crate) mod state;
mod table;
mod temporal;
mod term;
mod text;
mod value;
pub(crate) mod witness;

#[cfg(test)]
mod tests;
