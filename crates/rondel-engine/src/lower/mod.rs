//! From a specification to sections: translation into a graph, and assembly of its nodes into instructions.

pub(crate) mod assemble;
pub(crate) mod assume;
pub(crate) mod binding;
pub(crate) mod divide;
pub(crate) mod elements;
pub(crate) mod error;
pub(crate) mod identity;
pub(crate) mod quantifier;
pub(crate) mod translate;
