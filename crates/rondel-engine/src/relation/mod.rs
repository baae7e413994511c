//! Quantifiers over data: `exists x. request{id: x} and not once[0, 10 s] grant{id: x}`.
//!
//! A subformula with variables is a relation: the set of the values of its variables for which it
//! holds. What an atom binds holds for one tuple, and only at its message; `once` keeps tuples; `and`
//! joins, `or` unites, `exists` drops a column. [`safe`] finds for a formula a [`plan`] in which every
//! relation is finite; [`state`] runs it, and [`table`] is where what lasts is kept. A quantified
//! formula without free variables is a truth like any other, a word for each block.
//!
//! Where a message matters to its own values only, none of this is needed: such a formula is evaluated by
//! value, see `translate/by_value.rs`. The two say the same.
//!
//! # What can be monitored
//!
//! A variable ranges over all values of its type, so that somewhere a finite relation must bind it:
//! `not p(x)` alone is refused, and `q(x) and not p(x)` tests the tuples of `q`. What binds are atoms,
//! `once`, `since` (by its second operand), `previously` and `exists` of what binds, `and` of which one
//! side binds, `or` of which both do, and equations with a constant or with a variable that is bound.
//! What else is finite once its variables are bound is asked about the tuples of a conjunction: `q(x) and
//! not exists y. p` is `q(x) and not exists y. q(x) and p`. `forall x. p` is `not exists x. not p`, and
//! `historically p` is `not once not p`; so `forall x. grant(x) -> once[0, 10 s] request(x)` is asked of the
//! values of `grant`. The first operand of `since` may speak only of what the second binds.
//!
//! # Looking ahead
//!
//! What looks ahead binds nothing: it is asked of the tuples that are there at the moment. `forall x.
//! request(x) -> eventually[0, 2 s] grant(x)` is `not exists x. request(x) and not eventually …`. What of such a
//! formula the quantifier can be pushed through is taken out of it (`translate/ask.rs`); the rest is [asked](asking)
//! of each tuple, until all that is certain, and a property with operators of the
//! [future](crate::future) takes from there what has become certain about which moment.
//!
//! # Memory
//!
//! Memory follows the values that can still matter. `once` without an upper bound keeps every value
//! ever seen: it is refused, unless the property has `@unbounded`, or `@limit`. `since` without one is not:
//! what its first operand says ends what is kept. `exists x. once p` keeps nothing: it is `once exists x. p`.
//!
//! With a limit the oldest values are forgotten. On the rail of what is possible such a relation then has all
//! tuples, and what rests on it is *vague*: taken for all tuples on that rail, and for none on the other.

mod apart;
mod ask;
pub(crate) mod asking;
mod batch;
mod chain;
mod join;
pub(crate) mod literal;
mod parts;
pub(crate) mod plan;
mod reel;
pub(crate) mod safe;
mod since;
pub(crate) mod source;
pub(crate) mod state;
mod table;
mod temporal;
mod term;
mod text;
pub(crate) mod told;
mod value;
pub(crate) mod witness;

#[cfg(test)]
mod tests;
