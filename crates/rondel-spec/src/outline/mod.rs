//! Symbols of a specification and their uses, for editors; also of a text with errors.

mod collect;
mod words;

use rondel_event::{Value, ValueType};

pub use self::words::{WORDS, WordRow};
use crate::attributes::attribute_forms;
use crate::definition::Definitions;
use crate::diagnostic::Span;
use crate::functions::FUNCTIONS;
use crate::lexer::{begins_word, continues_word};
use crate::sources::Sources;
use crate::spec::{Schema, SchemaType};
use crate::syntax::RESERVED;

/// The declared names of a specification and their uses.
///
/// ```
/// use rondel_spec::{Outline, Sources};
/// let text = "topic gear { report: int }\nlet moves = gear.report > 1\nproperty p = moves and gear.";
/// let outline = Outline::of(&Sources::alone("a.rondel", text), None);
/// let (moves, _) = outline.at(text.find("moves and").unwrap()).unwrap();
/// assert_eq!(outline.symbols()[moves].span.unwrap().start, 31);
/// assert_eq!(outline.uses(moves).count(), 2);
/// assert_eq!(outline.members("gear"), [("report".to_owned(), "int".to_owned())]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Outline {
    symbols: Vec<Symbol>,
    /// Where each name is written, with the index of its symbol, in order.
    uses: Vec<(Span, usize)>,
    /// The topics with the fields that are known of them.
    topics: Vec<(String, Option<Schema>)>,
    /// The constants of message types: owner, name, and value.
    constants: Vec<(String, String, String)>,
    /// Declarations of imports with an alias: the alias, the name, and the full name of the declaration.
    imports: Vec<(String, String, String)>,
}

/// The kind of a [`Symbol`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// A topic.
    Topic,
    /// A field of a topic.
    Field,
    /// A `let`, with or without parameters.
    Definition,
    /// A `const`.
    Constant,
    /// A property.
    Property,
    /// A machine.
    Machine,
    /// A state of a machine.
    State,
    /// A variable of a machine.
    Variable,
    /// A parameter of a `for each`, or a variable of a quantifier.
    Parameter,
    /// A chain, or a further bound of one.
    Chain,
    /// A named `assert`.
    Assert,
    /// A test.
    Test,
    /// The name of an import, behind `as`.
    Import,
}

/// A name that a specification declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The kind.
    pub kind: SymbolKind,
    /// The name; of a field with those of the objects that contain it: `pose.x`.
    pub name: String,
    /// Where the name is declared; none of a field that a message type has.
    pub span: Option<Span>,
    /// Span of the declaration; for a field or another part of a declaration, of the declaration that contains it.
    pub whole: Span,
    /// The index of the symbol that contains this one.
    pub owner: Option<usize>,
    /// Signature on one line: `gear.report: int`; empty if the declaration shows it.
    pub detail: String,
    /// The comment above its declaration.
    pub doc: String,
    /// Prefix of its name in the file that imports the others: empty, or `limits` for `limits.near`.
    pub module: String,
    /// Whether the network or a recording defines the name, so that it cannot be renamed.
    pub is_external: bool,
}

impl Symbol {
    /// The name with that of the import by which it is reached: `limits.near`.
    pub fn full_name(&self) -> String {
        if self.module.is_empty() { self.name.clone() } else { format!("{}.{}", self.module, self.name) }
    }
}

impl Outline {
    /// Finds the names of a specification. With `types`, topics have the fields of their types.
    pub fn of(sources: &Sources, types: Option<&dyn Definitions>) -> Outline {
        collect::outline(sources, types)
    }

    /// The symbols, in the order of their declarations; those that are part of another one after it.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The symbol whose name is at an offset of the text, and the span of this name.
    pub fn at(&self, offset: usize) -> Option<(usize, Span)> {
        let index = self.uses.partition_point(|(span, _)| span.end < offset);
        // A name ends before the offset behind its last letter; the next one may begin there.
        let around = self.uses.get(index..)?.iter().take_while(|(span, _)| span.start <= offset);
        around.last().map(|(span, symbol)| (*symbol, *span))
    }

    /// Where a symbol is named, its declaration included, in order.
    pub fn uses(&self, symbol: usize) -> impl Iterator<Item = Span> {
        self.uses.iter().filter(move |(_, other)| *other == symbol).map(|(span, _)| *span)
    }

    /// The symbol of each written name, in order.
    pub fn meanings(&self) -> Vec<usize> {
        self.uses.iter().map(|(_, symbol)| *symbol).collect()
    }

    /// Completions after a path and a dot: the fields of a topic or of an object in it, the constants of a message
    /// type, or the declarations of an import with an alias; each with its type, its value, or nothing.
    pub fn members(&self, path: &str) -> Vec<(String, String)> {
        let mut parts = path.split('.');
        let mut first = parts.next().unwrap_or("");
        let imported = self.imports.iter().filter(|(alias, ..)| alias == first);
        if imported.clone().next().is_some() {
            let Some(word) = parts.next() else {
                return imported.map(|(_, name, _)| (name.clone(), String::new())).collect();
            };
            let found = imported.into_iter().find(|(_, name, _)| name == word);
            first = found.map_or("", |(.., full)| full);
        }
        let constants = self.constants.iter().filter(|(owner, ..)| owner == first && path == first);
        let constants = constants.map(|(_, name, value)| (name.clone(), value.clone()));
        let Some((_, Some(schema))) = self.topics.iter().find(|(name, _)| name == first) else {
            return constants.collect();
        };
        let mut schema = schema;
        for part in parts {
            let (name, indices) =
                part.split_once('[').map_or((part, 0), |(name, rest)| (name, 1 + rest.matches('[').count()));
            let Some((_, field)) = schema.fields.iter().find(|(field, _)| field == name) else {
                return Vec::new();
            };
            let mut found = field;
            for _ in 0..indices {
                let SchemaType::Array(element, _) = found else { return Vec::new() };
                found = element;
            }
            match found {
                SchemaType::Object(inner) | SchemaType::Stamp(_, inner) => schema = inner,
                _ => return Vec::new(),
            }
        }
        let fields = schema.fields.iter().map(|(name, field)| (name.clone(), type_text(field)));
        fields.chain(constants).collect()
    }

    /// The names of message types whose constants are known.
    pub fn owners(&self) -> Vec<&str> {
        let mut owners: Vec<&str> = self.constants.iter().map(|(owner, ..)| owner.as_str()).collect();
        owners.dedup();
        owners
    }
}

/// Returns the use of a word of the language, with code in backticks, and its description.
pub fn meaning(word: &str) -> Option<(&'static str, &'static str)> {
    let function = FUNCTIONS.iter().find(|row| row.name == word).map(|row| (row.call, row.doc));
    function.or_else(|| words::word(word).map(|row| (row.call, row.doc)))
}

/// The words that begin declarations.
pub fn declaration_words() -> impl Iterator<Item = &'static str> {
    words::DECLARATIONS.iter().flat_map(|row| row.names.iter().copied())
}

/// The attributes of the language, each with how it is written, with code in backticks.
pub fn attributes() -> impl Iterator<Item = (&'static str, String)> {
    attribute_forms()
}

/// Whether a text can be the name of a declaration.
pub fn is_name(text: &str) -> bool {
    text.starts_with(begins_word) && text.chars().all(continues_word) && !RESERVED.contains(&text)
}

/// A type as it is written in a specification.
fn type_text(found: &SchemaType) -> String {
    match found {
        SchemaType::Value(value_type) => value_text(*value_type).to_owned(),
        SchemaType::Stamp(value_type, _) => value_text(*value_type).to_owned(),
        SchemaType::Array(element, Some(size)) => format!("[{}], {size} elements", type_text(element)),
        SchemaType::Array(element, None) => format!("[{}]", type_text(element)),
        SchemaType::Object(schema) => {
            let mut names = schema.fields.iter().map(|(name, _)| name.as_str());
            let shown: Vec<&str> = names.by_ref().take(6).collect();
            let more = if names.next().is_some() { ", …" } else { "" };
            format!("{{ {}{more} }}", shown.join(", "))
        }
        SchemaType::Open => "any type".to_owned(),
    }
}

/// A constant, for people.
fn constant_text(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::String(value) => format!("{value:?}"),
        Value::Time(nanos) | Value::Duration(nanos) => format!("{nanos} ns"),
    }
}

fn value_text(value_type: ValueType) -> &'static str {
    match value_type {
        ValueType::Bool => "bool",
        ValueType::Int => "int",
        ValueType::Float => "float",
        ValueType::String => "string",
        ValueType::Time => "time",
        ValueType::Duration => "duration",
    }
}

#[cfg(test)]
mod tests;
