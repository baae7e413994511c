//! Answers to editors about the names in a document: meaning, declaration, uses, and renaming.

use std::path::Path;

use rondel_spec::{Diagnostic, Outline, ParseOptions, Sources, Span, Symbol, SymbolKind, is_name, meaning};
use serde_json::{Value, json};

use super::super::explain::planned;
use super::loaded;
use super::protocol::Lines;
use super::recordings::Recordings;
use crate::schemas::Schemas;

/// Maximum number of lines of a declaration that are shown.
const SHOWN: usize = 24;

/// An open document with its names.
pub(super) struct View<'d> {
    uri: &'d str,
    /// Its own text.
    pub(super) text: &'d str,
    /// Texts of its imports followed by its own, which begins at `start`.
    pub(super) sources: &'d Sources,
    pub(super) start: usize,
    pub(super) outline: Outline,
    pub(super) lines: Lines<'d>,
    pub(super) schemas: &'d Schemas,
}

impl<'d> View<'d> {
    pub(super) fn new(uri: &'d str, text: &'d str, sources: &'d Sources, schemas: &'d Schemas) -> View<'d> {
        let outline = Outline::of(sources, Some(schemas));
        View { uri, text, sources, start: sources.main_start(), outline, lines: Lines::new(text), schemas }
    }

    /// The offset in the document of the position that a request names.
    pub(super) fn offset(&self, params: &Value) -> usize {
        self.lines.offset(&params["position"])
    }

    /// The symbol that a request names, and where.
    fn symbol(&self, params: &Value) -> Option<(usize, &Symbol, Span)> {
        let (index, span) = self.outline.at(self.start + self.offset(params))?;
        Some((index, self.outline.symbols().get(index)?, span))
    }

    /// The range of a span of the document; none of one in an imported file.
    fn range(&self, span: Span) -> Option<Value> {
        let start = span.start.checked_sub(self.start)?;
        Some(self.lines.range(Span::new(start, span.end.saturating_sub(self.start))))
    }

    /// A place in the document, or in the file that it imports; none in a library.
    fn location(&self, span: Span) -> Option<Value> {
        if let Some(range) = self.range(span) {
            return Some(json!({ "uri": self.uri, "range": range }));
        }
        let (path, text, start) = self.sources.path_at(span.start)?;
        let span = Span::new(span.start - start, span.end.saturating_sub(start));
        Some(json!({ "uri": uri_of_path(path), "range": Lines::new(text).range(span) }))
    }

    pub(super) fn hover(&self, params: &Value, recordings: &Recordings) -> Value {
        let offset = self.offset(params);
        let (text, range) = match self.symbol(params) {
            Some((_, symbol, span)) => {
                let more = match symbol.kind {
                    SymbolKind::Topic => recordings.described(&self.called(symbol), None),
                    SymbolKind::Field => self.field(symbol, recordings),
                    SymbolKind::Property | SymbolKind::Machine | SymbolKind::Chain => self.plan(symbol),
                    _ => String::new(),
                };
                (self.described(symbol) + &more, self.range(span))
            }
            None => {
                let word = word_at(self.text, offset);
                let written = self.text.get(word.start..word.end).unwrap_or("");
                let Some((call, doc)) = meaning(written) else { return Value::Null };
                let call = if call.contains('`') { call.to_owned() } else { format!("`{call}`") };
                (format!("{call}: {doc}"), Some(self.lines.range(word)))
            }
        };
        json!({ "contents": { "kind": "markdown", "value": text }, "range": range })
    }

    /// The names by which recordings may know a topic.
    fn called<'s>(&'s self, topic: &'s Symbol) -> Vec<&'s str> {
        let declaration = self.sources.text().get(topic.whole.start..topic.whole.end).unwrap_or("");
        let mut parts = declaration.split('"');
        let is_address = parts.next().is_some_and(|before| !before.contains('{'));
        let address = parts.next().filter(|_| is_address);
        address.into_iter().chain([topic.name.as_str()]).collect()
    }

    /// Statistics of a field in recordings.
    fn field(&self, field: &Symbol, recordings: &Recordings) -> String {
        let topic = field.owner.and_then(|owner| self.outline.symbols().get(owner));
        let Some(topic) = topic.filter(|topic| topic.kind == SymbolKind::Topic) else { return String::new() };
        let path = field.name.strip_prefix(&format!("{}.", topic.name)).unwrap_or(&field.name);
        recordings.described(&self.called(topic), Some(path))
    }

    /// Evaluation of a property; empty if the specification has errors.
    fn plan(&self, symbol: &Symbol) -> String {
        let outcome = rondel_spec::parse_sources(self.sources, &ParseOptions::default(), Some(self.schemas));
        let planned = outcome.spec.and_then(|spec| planned(&spec, &symbol.full_name()));
        planned.map_or(String::new(), |plan| format!("\n\n```text\n{}```", plan))
    }

    /// A symbol in Markdown: its declaration or a description in one line, and the comment above it.
    pub(super) fn described(&self, symbol: &Symbol) -> String {
        let part = symbol.owner.is_some() || symbol.kind == SymbolKind::Parameter;
        let declaration = self.sources.text().get(symbol.whole.start..symbol.whole.end).unwrap_or("");
        let code = if part { symbol.detail.as_str() } else { declaration };
        let mut lines: Vec<&str> = code.lines().take(SHOWN).collect();
        if code.lines().count() > SHOWN {
            lines.push("…");
        }
        let mut text = format!("```rondel\n{}\n```", lines.join("\n"));
        if !symbol.doc.is_empty() {
            text += &format!("\n\n{}", symbol.doc);
        }
        if let Some(span) = symbol.span.filter(|span| span.start < self.start) {
            let place = self.sources.place(span.start);
            text += &format!("\n\n{}, line {}", place.file, place.line);
        }
        text
    }

    pub(super) fn definition(&self, params: &Value) -> Value {
        let declared = self.symbol(params).and_then(|(_, symbol, _)| symbol.span);
        declared.and_then(|span| self.location(span)).unwrap_or(Value::Null)
    }

    pub(super) fn references(&self, params: &Value) -> Value {
        let Some((index, symbol, _)) = self.symbol(params) else { return json!([]) };
        let declared = params["context"]["includeDeclaration"].as_bool().unwrap_or(true);
        let uses = self.outline.uses(index).filter(|span| declared || Some(*span) != symbol.span);
        uses.filter_map(|span| self.location(span)).collect()
    }

    pub(super) fn highlights(&self, params: &Value) -> Value {
        let Some((index, ..)) = self.symbol(params) else { return json!([]) };
        let ranges = self.outline.uses(index).filter_map(|span| self.range(span));
        ranges.map(|range| json!({ "range": range })).collect()
    }

    /// Declarations of the document, with their parts.
    pub(super) fn symbols(&self) -> Value {
        let symbols = self.outline.symbols();
        let mut nodes: Vec<Option<Value>> = symbols.iter().map(|symbol| self.node(symbol)).collect();
        // Parts of a symbol come after it.
        for index in (0..symbols.len()).rev() {
            let Some(owner) = symbols[index].owner.filter(|owner| *owner < index) else { continue };
            let Some(node) = nodes[index].take() else { continue };
            let children = nodes[owner].as_mut().and_then(|owner| owner["children"].as_array_mut());
            children.into_iter().for_each(|children| children.insert(0, node.clone()));
        }
        let mut tops: Vec<(usize, Value)> = Vec::new();
        for (symbol, node) in symbols.iter().zip(nodes) {
            // Variables of quantifiers are of no use in an outline.
            if let (Some(span), Some(node)) = (symbol.span, node)
                && symbol.kind != SymbolKind::Parameter
            {
                tops.push((span.start, node));
            }
        }
        tops.sort_by_key(|(start, _)| *start);
        tops.into_iter().map(|(_, node)| node).collect()
    }

    fn node(&self, symbol: &Symbol) -> Option<Value> {
        let span = symbol.span?;
        let selection = self.range(span)?;
        let own =
            if symbol.owner.is_some() || symbol.kind == SymbolKind::Parameter { span } else { symbol.whole };
        let name = symbol.name.trim_matches('"');
        Some(json!({
            "name": if name.is_empty() { "test" } else { name },
            "kind": match symbol.kind {
                SymbolKind::Topic => 23,
                SymbolKind::Field => 8,
                SymbolKind::Definition => 12,
                SymbolKind::Constant => 14,
                SymbolKind::Property | SymbolKind::Assert => 17,
                SymbolKind::Machine => 5,
                SymbolKind::State => 22,
                SymbolKind::Variable | SymbolKind::Parameter => 13,
                SymbolKind::Chain => 24,
                SymbolKind::Test => 6,
                SymbolKind::Import => 2,
            },
            "range": self.range(own)?,
            "selectionRange": selection,
            "children": [],
        }))
    }

    /// The name that can be renamed at a position.
    fn renamed(&self, params: &Value) -> Result<(usize, &Symbol, Span), String> {
        let (index, symbol, span) =
            self.symbol(params).ok_or("there is no name of this specification here")?;
        match symbol.kind {
            SymbolKind::Field => {
                return Err(
                    "messages name their fields: under another name this one would not be found".into()
                );
            }
            SymbolKind::Topic if symbol.is_external => {
                return Err(format!(
                    "'{0}' is also the address of the topic: write the address first, as in `topic {0} \"{0}\"`",
                    symbol.name
                ));
            }
            SymbolKind::Topic => {}
            _ if symbol.is_external => return Err("this has no name of its own".into()),
            _ => {}
        }
        match symbol.span {
            Some(declared) if declared.start < self.start => {
                let place = self.sources.place(declared.start);
                Err(format!(
                    "'{}' is declared in {}, line {}: rename it there",
                    symbol.name, place.file, place.line
                ))
            }
            Some(_) => Ok((index, symbol, span)),
            None => Err("there is no name of this specification here".into()),
        }
    }

    pub(super) fn prepare_rename(&self, params: &Value) -> Result<Value, String> {
        let (_, symbol, span) = self.renamed(params)?;
        Ok(json!({ "range": self.range(span), "placeholder": symbol.name }))
    }

    /// The edits that give a symbol another name, if every name keeps its meaning.
    pub(super) fn rename(&self, params: &Value) -> Result<Value, String> {
        let (index, symbol, _) = self.renamed(params)?;
        let name = params["newName"].as_str().unwrap_or("");
        if !is_name(name) {
            return Err(format!(
                "'{name}' cannot be a name: names consist of letters, digits and `_`, and are no reserved words"
            ));
        }
        let mut text = self.text.to_owned();
        let mut edits = Vec::new();
        let uses: Vec<Span> = self.outline.uses(index).collect();
        for span in uses.iter().rev() {
            let Some(range) = self.range(*span) else { continue };
            edits.push(json!({ "range": range, "newText": name }));
            text.replace_range(span.start - self.start..span.end - self.start, name);
        }
        edits.reverse();
        let sources = loaded(self.uri, &text);
        if Outline::of(&sources, Some(self.schemas)).meanings() != self.outline.meanings() {
            return Err(format!("'{name}' already means something here, where '{}' is used", symbol.name));
        }
        let errors = |sources: &Sources| -> Vec<Diagnostic> {
            let outcome = rondel_spec::parse_sources(sources, &ParseOptions::default(), Some(self.schemas));
            outcome.diagnostics.into_iter().filter(Diagnostic::is_error).collect()
        };
        let (before, after) = (errors(self.sources), errors(&sources));
        match after.first().filter(|_| after.len() > before.len()) {
            Some(first) => {
                Err(format!("with the name '{name}' the specification is wrong: {}", first.message))
            }
            None => Ok(json!({ "changes": { self.uri: edits } })),
        }
    }
}

/// The word around an offset; empty between words.
fn word_at(text: &str, offset: usize) -> Span {
    let belongs = |c: char| c.is_alphanumeric() || c == '_';
    let (before, behind) = text.split_at_checked(offset).unwrap_or((text, ""));
    let start = before.trim_end_matches(belongs).len();
    let end = offset + (behind.len() - behind.trim_start_matches(belongs).len());
    Span::new(start, end)
}

/// The URI of a file.
fn uri_of_path(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(*byte))
            }
            other => uri += &format!("%{other:02X}"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris_that_lead_back() {
        let path = Path::new("/a b/é%.rondel");
        assert_eq!(uri_of_path(path), "file:///a%20b/%C3%A9%25.rondel");
        assert_eq!(super::super::path_of(&uri_of_path(path)).as_deref(), Some(path));
    }

    #[test]
    fn words_are_found_at_both_ends() {
        for (offset, expected) in [(0, "once"), (4, "once"), (5, ""), (6, "é1")] {
            let word = word_at("once  é1", offset);
            assert_eq!(&"once  é1"[word.start..word.end], expected, "{offset}");
        }
    }
}
