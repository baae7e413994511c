//! The Rondel language as it is written: the tree and the parser that makes it.

pub(crate) mod ast;
mod bounds;
mod data;
mod each;
mod expression;
mod operand;
mod parser;

pub(crate) use parser::{parse_file, parse_single};

#[cfg(test)]
mod tests;
