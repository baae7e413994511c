//! OMG IDL 4.2, as far as it defines data types: modules, structures, unions, enumerations, bit masks,
//! aliases and constants, with the annotations of DDS-XTypes that change the encoding.
//!
//! | annotation | effect |
//! |---|---|
//! | `@final`, `@appendable`, `@mutable`, `@extensibility(...)` | how the type may change |
//! | `@key`, `@optional`, `@id(N)`, `@hashid` | of a member |
//! | `@autoid(HASH)`, `@autoid(SEQUENTIAL)` | the ids of the members of a structure, or of all in a module |
//! | `@value(N)`, `@bit_bound(N)`, `@position(N)` | of enumerations and bit masks |
//!
//! All others are ignored; `long double`, `map`, `any`, `fixed`, `bitset`, interfaces and value types are refused.
//! Directives of the preprocessor are ignored, except `#include` and conditions other than include guards.

mod annotation;
mod constant;
mod lexer;
mod parser;

use std::collections::BTreeSet;

use super::{Library, SchemaError};

/// Maximum nesting of includes.
const MAX_INCLUDES: usize = 32;

pub(super) fn parse(
    library: &mut Library,
    text: &str,
    include: &dyn Fn(&str) -> Option<String>,
) -> Result<(), SchemaError> {
    let mut seen = BTreeSet::new();
    file(library, text, include, &mut seen, 0)
}

/// Reads a text after its includes, each of them once.
fn file(
    library: &mut Library,
    text: &str,
    include: &dyn Fn(&str) -> Option<String>,
    seen: &mut BTreeSet<String>,
    depth: usize,
) -> Result<(), SchemaError> {
    let tokens = lexer::tokens(text)?;
    for (place, name) in &tokens.includes {
        if depth >= MAX_INCLUDES {
            return Err(SchemaError::at(*place, "files include each other too deeply"));
        }
        if seen.insert(name.clone())
            && let Some(text) = include(name)
        {
            file(library, &text, include, seen, depth + 1).map_err(|error| error.in_text(name))?;
        }
    }
    parser::Parser::new(library, &tokens.tokens, tokens.end).file()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
