//! Compilation of a specification: translation into a graph, and assembly of its nodes into sections.

pub(crate) mod assemble;
pub(crate) mod assume;
pub(crate) mod binding;
pub(crate) mod divide;
pub(crate) mod elements;
pub(crate) mod error;
pub(crate) mod identity;
pub(crate) mod quantifier;
pub(crate) mod spread;
pub(crate) mod translate;
