//! The Rondel language as it is written: the tree and the parser that makes it.

pub(crate) mod ast;
mod bounds;
mod chain;
mod data;
mod each;
mod expression;
mod machine;
mod operand;
mod parser;
mod test;
mod topic;

pub(crate) use parser::{Mark, marks, parse_file, parse_single};

#[cfg(test)]
mod tests;
