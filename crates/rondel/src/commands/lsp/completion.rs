//! Completions at a position of a document.

use rondel_spec::{Symbol, SymbolKind, attributes, declaration_words, meaning};
use serde_json::{Value, json};

use super::view::View;
use crate::commands::completing::{belongs, in_text_or_comment, path_before, words};

const FUNCTION: u32 = 3;
const FIELD: u32 = 5;
const KEYWORD: u32 = 14;
const ATTRIBUTE: u32 = 10;

impl View<'_> {
    /// Completions for the text before a position.
    pub(super) fn completions(&self, params: &Value) -> Value {
        let offset = self.offset(params);
        let before = self.text.get(..offset).unwrap_or("");
        let line = before.rsplit(['\n', '\r']).next().unwrap_or("");
        if in_text_or_comment(line) {
            return json!([]);
        }
        let head = line.trim_end_matches(belongs);
        let item =
            |label: &str, kind: u32, detail: &str| json!({ "label": label, "kind": kind, "detail": detail });
        if head.ends_with('@') {
            let described = |(name, form): (&str, String)| item(name, ATTRIBUTE, &form.replace('`', ""));
            return attributes().map(described).collect();
        }
        if head.trim_end().ends_with("@because_of(") {
            return self.causes();
        }
        if let Some(path) = path_before(head) {
            if head.trim_start() == "use std." {
                return json!([item("patterns", 9, "specification patterns by name")]);
            }
            let members = self.outline.members(path);
            return members.iter().map(|(name, detail)| item(name, FIELD, detail)).collect();
        }
        if let Some(machine) = machine_of(head) {
            return self.states(machine);
        }
        let mut items = self.names(self.start + offset);
        items
            .extend(self.outline.owners().iter().map(|owner| item(owner, 13, "constants of a message type")));
        if head.trim().is_empty() {
            items.extend(declaration_words().map(|word| worded(word, KEYWORD)));
        }
        items.extend(words().map(|(word, is_call)| worded(word, if is_call { FUNCTION } else { KEYWORD })));
        // `min` is a function of two values, and one over a window.
        items.dedup_by(|a, b| a["label"] == b["label"]);
        Value::Array(items)
    }

    /// The names that are visible at an offset of all texts.
    fn names(&self, offset: usize) -> Vec<Value> {
        let mut items = Vec::new();
        // The word at the cursor may not belong to the declaration yet.
        let starts = self.outline.symbols().iter().map(|symbol| symbol.whole.start);
        let declaration = starts.filter(|start| *start <= offset).max();
        for symbol in self.outline.symbols() {
            let local = Some(symbol.whole.start) == declaration;
            // Declarations of an import with a name are qualified by that name.
            if !symbol.module.is_empty() {
                continue;
            }
            let is_own = symbol.whole.start >= self.start;
            let kind = match symbol.kind {
                SymbolKind::Import if is_own => 9,
                SymbolKind::Topic => 22,
                SymbolKind::Definition if symbol.detail.is_empty() => 6,
                SymbolKind::Definition => FUNCTION,
                SymbolKind::Constant => 21,
                SymbolKind::Chain | SymbolKind::Machine => 7,
                SymbolKind::Property => 10,
                SymbolKind::State if local => 20,
                SymbolKind::Variable | SymbolKind::Parameter if local => 6,
                _ => continue,
            };
            let declared = self.described(symbol);
            items.push(json!({
                "label": symbol.name,
                "kind": kind,
                "detail": symbol.detail,
                "documentation": { "kind": "markdown", "value": declared },
            }));
        }
        items
    }

    /// The properties that an attribute `@because_of` can name.
    fn causes(&self) -> Value {
        let can_be_named = |symbol: &&Symbol| match symbol.kind {
            SymbolKind::Property | SymbolKind::Machine => true,
            // A further bound.
            SymbolKind::Chain => symbol.owner.is_some(),
            _ => false,
        };
        let properties = self.outline.symbols().iter().filter(can_be_named);
        let item =
            |symbol: &Symbol| json!({ "label": symbol.full_name(), "kind": 10, "detail": symbol.detail });
        properties.map(item).collect()
    }

    /// The states of a machine.
    fn states(&self, machine: &str) -> Value {
        let symbols = self.outline.symbols();
        let of_machine = |owner: Option<usize>| owner.and_then(|owner| symbols.get(owner));
        let states = symbols.iter().filter(|symbol| {
            symbol.kind == SymbolKind::State
                && of_machine(symbol.owner).is_some_and(|owner| owner.full_name() == machine)
        });
        states.map(|state| json!({ "label": state.name, "kind": 20, "detail": state.detail })).collect()
    }
}

/// A word of the language.
fn worded(word: &str, kind: u32) -> Value {
    let (call, doc) = meaning(word).unwrap_or((word, ""));
    json!({ "label": word, "kind": kind, "detail": call.replace('`', ""), "documentation": doc })
}

/// The machine whose states may follow this part of a line: `in(m, off, `.
fn machine_of(head: &str) -> Option<&str> {
    let open = head.rfind('(')?;
    let function = head[..open].trim_end();
    let is_in = function
        .strip_suffix("in")
        .is_some_and(|rest| !rest.ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    let (machine, rest) = head[open + 1..].split_once(',')?;
    (is_in && !rest.contains(')')).then_some(machine.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_follow_the_machine() {
        for (head, expected) in [
            ("property p = in(m, ", Some("m")),
            ("property p = in( m ,off, ", Some("m")),
            ("property p = in(", None),
            ("property p = min(m, ", None),
            ("property p = in(m, off) and ", None),
            ("", None),
        ] {
            assert_eq!(machine_of(head), expected, "{head}");
        }
    }
}
