//! The syntax tree of the Rondel language and its parser.

mod assert;
pub(crate) mod ast;
mod attribute;
mod bounds;
mod call;
mod chain;
mod circle;
mod data;
mod definition;
mod each;
mod element_advice;
pub(crate) mod elements;
mod expansion;
mod expression;
mod expression_advice;
mod forms;
mod import;
mod machine;
mod object;
mod operand;
mod parameter;
mod parser;
mod steady;
mod steps;
mod test;
mod topic;

pub(crate) use steady::STEADY;

pub(crate) use parser::{BEFORE_PARENTHESIS, Mark, PREFIX, RESERVED, marks, parse_files, parse_single};

#[cfg(test)]
pub(crate) use parser::DECLARATIONS;
#[cfg(test)]
mod tests;
