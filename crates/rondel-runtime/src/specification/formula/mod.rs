//! Formulas as text, from the nodes of a specification.

mod array_elements;
mod atom;
mod text;
mod words;
mod writer;

use rondel_spec::{ExprId, Property, Spec};

pub use array_elements::{element, elements};
pub use atom::{Atom, Conjunct, Pair, atom, conjuncts};
pub use text::{bound, field, value_text};
pub(crate) use text::{is_word, quoted};
pub use words::{Word, word};
use writer::Writer;

/// The depth to which a formula is written: deeper ones are unreadable and could exhaust the stack.
const DEEPEST: u32 = 40;

/// The text of a node of a property.
pub fn written(spec: &Spec, id: ExprId, property: &Property) -> String {
    let mut writer = Writer::new(spec, property);
    writer.node(id, 0, 0);
    writer.into_text()
}

/// The text of a node of a property in which definitions have their names; a definition itself with its name before it:
/// `speed = mean(odom.v) over 1 s`.
pub fn named(spec: &Spec, id: ExprId, property: &Property) -> String {
    let mut writer = Writer::new(spec, property).with_names();
    if let Some(name) = spec.places.definition(id) {
        writer.text(&format!("{name} = "));
    }
    writer.node(id, 0, 0);
    writer.into_text()
}

/// The first characters of the text of a node, at most so many. A long text ends with `…`.
pub fn written_briefly(spec: &Spec, id: ExprId, property: &Property, most: usize) -> String {
    // A formula may be far longer than its nodes are many.
    let mut writer = Writer::new(spec, property).with_most(4 * most);
    writer.node(id, 0, 0);
    let text = writer.into_text();
    if text.chars().nth(most).is_none() {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
