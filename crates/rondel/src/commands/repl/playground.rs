//! Declarations in scope, and the meaning of a line there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rondel_event::Comparison;
use rondel_runtime::formula;
use rondel_runtime::survey::Declaration;
use rondel_spec::{
    Code, Diagnostic, Expr, Outcome, Outline, ParseOptions, Sources, Span, SymbolKind, declaration_words,
    is_name,
};

use super::vocabulary::Vocabulary;
use crate::output::terminal::colours_stderr;
use crate::schemas::Schemas;
use crate::specification::{Found, Mistakes, Specification, files};

/// Name of the typed line in diagnostics.
const LINE: &str = "input";

/// Source of the topics.
pub enum Base {
    /// Recordings.
    Recordings(Vec<Declaration>),
    /// A specification, with its definitions and types.
    File(PathBuf),
}

/// Meaning of a line.
pub enum Meaning {
    /// Properties, each a specification of its own, and the name of the definition that was kept, if any: later lines can
    /// use a machine or a chain.
    Properties(Vec<Specification>, Option<String>),
    /// A number over time: the robustness of the property is the number, in this unit.
    Number(Box<Specification>, &'static str),
    /// A value that no message changes, as text.
    Constant(String),
    /// A definition, which is kept under this name.
    Kept(String),
}

/// Reason why a line is no condition.
struct Refused {
    /// The mistakes as they are shown.
    reason: String,
    /// Whether it, or a definition, names a field that is not listed.
    is_unlisted: bool,
}

/// Topics and definitions.
pub struct Playground {
    base: Base,
    schemas: Arc<Schemas>,
    /// The imports, as they were typed.
    imports: Vec<String>,
    /// Names and texts.
    definitions: Vec<(String, String)>,
    /// A name that is not used elsewhere.
    free: String,
}

impl Playground {
    /// With nothing defined yet.
    ///
    /// # Errors
    /// The mistakes in the base, in words.
    pub fn new(base: Base, schemas: Schemas) -> Result<Playground, String> {
        let mut playground = Playground {
            base,
            schemas: Arc::new(schemas),
            imports: Vec::new(),
            definitions: Vec::new(),
            free: String::new(),
        };
        let (sources, start) = playground.sources("", None);
        playground.free = "formula".to_owned();
        while sources.text().contains(&playground.free) {
            playground.free.push('_');
        }
        let Outcome { diagnostics, .. } =
            rondel_spec::parse_sources(&sources, &ParseOptions::default(), Some(&*playground.schemas));
        let part = Span::new(start, start);
        playground.checked(&sources, part, diagnostics)?;
        Ok(playground)
    }

    /// The topics, fields and definitions.
    pub fn vocabulary(&self) -> Vocabulary {
        let (sources, _) = self.text(true, "", None);
        Vocabulary::new(Outline::of(&sources, Some(&*self.schemas)))
    }

    /// The topics: names, addresses and, if they are declared, types of messages.
    pub fn topics(&self) -> Vec<(String, String, Option<String>)> {
        let (sources, _) = self.sources("", None);
        let Outcome { spec, .. } =
            rondel_spec::parse_sources(&sources, &ParseOptions::default(), Some(&*self.schemas));
        let topic =
            |topic: &rondel_spec::Topic| (topic.name.clone(), topic.address.clone(), topic.type_name.clone());
        spec.iter().flat_map(|spec| spec.declared()).map(topic).collect()
    }

    /// The definitions that were typed.
    pub fn definitions(&self) -> impl Iterator<Item = &str> {
        self.imports.iter().map(String::as_str).chain(self.definitions.iter().map(|(_, text)| text.as_str()))
    }

    /// Removes a definition.
    ///
    /// # Errors
    /// Why not: there is none, or another one uses it.
    pub fn forget(&mut self, name: &str) -> Result<(), String> {
        let before = (self.imports.clone(), self.definitions.clone());
        self.definitions.retain(|(other, _)| other != name);
        self.imports.retain(|import| imported(import) != name);
        if (self.imports.len(), self.definitions.len()) == (before.0.len(), before.1.len()) {
            return Err(format!("nothing called `{name}` was defined here; :lets lists what was"));
        }
        let Some(user) = self.broken() else { return Ok(()) };
        (self.imports, self.definitions) = before;
        Err(format!("`{user}` uses it: remove that first, or redefine `{name}`"))
    }

    /// A definition in which something is wrong.
    fn broken(&self) -> Option<String> {
        let (sources, _) = self.text(true, "", None);
        let Outcome { diagnostics, .. } =
            rondel_spec::parse_sources(&sources, &ParseOptions::default(), Some(&*self.schemas));
        let error = diagnostics.iter().find(|one| one.is_error())?;
        let line = sources.text().get(..error.span.start)?.rsplit('\n').next()?.len();
        let line = sources.text()[error.span.start - line..].lines().next()?;
        let definition = self.definitions.iter().find(|(_, text)| text == line);
        definition.map(|(name, _)| name.clone())
    }

    /// Determines the meaning of a line, and keeps it if it is a definition. Also returns the rendered warnings.
    ///
    /// # Errors
    /// The mistakes as they are shown.
    pub fn understand(&mut self, line: &str) -> Result<(Meaning, String), String> {
        if first_word(line) == "use" {
            return self.import(line);
        }
        if is_declaration(line) {
            return self.declaration(line);
        }
        if let Some(known) = self.known(line) {
            return Ok((known, String::new()));
        }
        let Refused { reason, is_unlisted } = match self.condition(line, true) {
            Ok(found) => return Ok(found),
            Err(refused) => refused,
        };
        // A line that is no condition may be a number. An unlisted field of an open topic is more likely a number.
        let is_open = is_unlisted && self.open_topics().next().is_some();
        let open = || self.number(line, false).filter(|_| is_open);
        let found = self.constant(line).or_else(|| self.number(line, true)).or_else(open);
        if let Some(found) = found {
            return Ok((found, String::new()));
        }
        // Definitions may name unlisted fields: these are no errors.
        if !is_open {
            return Err(reason);
        }
        self.condition(line, false).map_err(|refused| refused.reason)
    }

    /// Topics with further fields than the listed ones.
    pub fn open_topics(&self) -> impl Iterator<Item = &str> {
        let topics = if let Base::Recordings(topics) = &self.base { &topics[..] } else { &[] };
        topics.iter().filter(|topic| topic.open.is_some()).map(|topic| topic.name.as_str())
    }

    /// A line as a condition.
    fn condition(&self, line: &str, listed: bool) -> Result<(Meaning, String), Refused> {
        let free = &self.free;
        let (sources, start) = self.text(listed, &format!("property {free} =\n{line}\n"), None);
        let line_at = start + "property  =\n".len() + free.len();
        let typed = Span::new(line_at, line_at + line.len());
        match self.properties(&sources, Span::new(start, typed.end)) {
            Ok((own, warnings)) if !own.is_empty() => {
                Ok((Meaning::Properties(own, None), self.shown(&sources, typed, &warnings)))
            }
            Ok(_) => {
                let reason = "there is nothing to evaluate in this line".to_owned();
                Err(Refused { reason, is_unlisted: false })
            }
            Err(mistakes) => {
                let is_unlisted = mistakes.diagnostics.iter().any(|one| one.code == Code::UnknownField);
                Err(Refused { reason: self.mistakes(&sources, typed, &mistakes), is_unlisted })
            }
        }
    }

    /// The properties that are declared in a part of a text, and the warnings about it.
    fn properties(&self, sources: &Sources, part: Span) -> Result<Found, Mistakes> {
        let is_inside = |span: Span| part.start <= span.start && span.end <= part.end;
        let (own, mut warnings) =
            Specification::of_properties(sources, &self.schemas, |_, place| is_inside(place))?;
        warnings.retain(|warning| is_inside(warning.span));
        Ok((own, warnings))
    }

    /// The property of the specification that is called so.
    fn known(&self, name: &str) -> Option<Meaning> {
        if !is_name(name) || matches!(self.base, Base::Recordings(_)) {
            return None;
        }
        let (sources, _) = self.sources("", None);
        let is_wanted = |other: &str, _| other == name;
        let (own, _) = Specification::of_properties(&sources, &self.schemas, is_wanted).ok()?;
        (!own.is_empty()).then_some(Meaning::Properties(own, None))
    }

    /// A line as a value that no message changes.
    fn constant(&self, line: &str) -> Option<Meaning> {
        let free = &self.free;
        ["float", "duration", "string"].into_iter().find_map(|value_type| {
            // The comparison gives the line a type; a constant is then folded to a literal.
            let property =
                format!("topic {free} {{ v: {value_type} }} property {free} = {free}.v ==\n{line}\n");
            let (sources, _) = self.text(true, &property, None);
            let options = ParseOptions::default();
            let spec = rondel_spec::parse_sources(&sources, &options, Some(&*self.schemas)).spec?;
            let formula = spec.properties.iter().find(|property| property.name == *free)?.formula;
            let Expr::Compare(Comparison::Equal, _, value) = spec.nodes[formula.index()] else { return None };
            let Expr::Literal(value) = &spec.nodes[value.index()] else { return None };
            Some(Meaning::Constant(formula::value_text(value)))
        })
    }

    /// A line as a number over time.
    fn number(&self, line: &str, listed: bool) -> Option<Meaning> {
        let free = &self.free;
        [("0", ""), ("0 s", " s")].into_iter().find_map(|(zero, unit)| {
            // The distance of a number to zero is the number: no other evaluator is needed.
            let property =
                format!("let {free}value =\n{line}\n@robust property {free} = {free}value >= {zero}\n");
            let (sources, start) = self.text(listed, &property, None);
            let (own, _) = self.properties(&sources, Span::new(start, sources.text().len())).ok()?;
            Some(Meaning::Number(Box::new(own.into_iter().next()?), unit))
        })
    }

    /// A declaration: of something that has verdicts, or to be kept.
    fn declaration(&mut self, line: &str) -> Result<(Meaning, String), String> {
        let outline = Outline::of(&Sources::alone(LINE, line), None);
        let declared = outline.symbols().iter().find(|symbol| symbol.owner.is_none());
        let name = declared.map_or("", |symbol| symbol.name.as_str());
        let (sources, start) = self.sources(&format!("{line}\n"), Some(name));
        let part = Span::new(start, start + line.len());
        let found = self.properties(&sources, part);
        let (own, mut warnings) = found.map_err(|mistakes| self.mistakes(&sources, part, &mistakes))?;
        // A definition may be used by later lines.
        warnings.retain(|warning| !matches!(warning.code, Code::Unused | Code::NoProperty));
        let warnings = self.shown(&sources, part, &warnings);
        let is_kept = own.is_empty()
            || declared.is_some_and(|symbol| matches!(symbol.kind, SymbolKind::Machine | SymbolKind::Chain));
        if !is_kept {
            return Ok((Meaning::Properties(own, None), warnings));
        }
        if name.is_empty() || matches!(first_word(line), "assert" | "test") {
            return Err("asserts and tests are for `rondel check` and `rondel test`: type the formula alone"
                .to_owned());
        }
        let kept = (name.to_owned(), line.trim().to_owned());
        match self.definitions.iter_mut().find(|(other, _)| other == name) {
            Some(same) => *same = kept,
            None => self.definitions.push(kept),
        }
        let name = name.to_owned();
        let meaning = if own.is_empty() { Meaning::Kept(name) } else { Meaning::Properties(own, Some(name)) };
        Ok((meaning, warnings))
    }

    /// An import of a library, or of a file where there is a specification.
    fn import(&mut self, line: &str) -> Result<(Meaning, String), String> {
        let name = imported(line).to_owned();
        self.imports.retain(|import| imported(import) != name);
        self.imports.push(line.trim().to_owned());
        let (sources, start) = self.sources("", None);
        let Outcome { diagnostics, .. } =
            rondel_spec::parse_sources(&sources, &ParseOptions::default(), Some(&*self.schemas));
        match self.checked(&sources, Span::new(start, start), diagnostics) {
            Ok(()) => Ok((Meaning::Kept(name), String::new())),
            Err(mistakes) => {
                self.imports.pop();
                Err(mistakes)
            }
        }
    }

    /// Returns the mistakes, if there are errors.
    fn checked(&self, sources: &Sources, part: Span, mut all: Vec<Diagnostic>) -> Result<(), String> {
        all.retain(Diagnostic::is_error);
        if all.is_empty() { Ok(()) } else { Err(self.shown(sources, part, &all)) }
    }

    fn mistakes(
        &self,
        sources: &Sources,
        typed: Span,
        Mistakes { diagnostics, further }: &Mistakes,
    ) -> String {
        let errors: Vec<Diagnostic> = diagnostics.iter().filter(|one| one.is_error()).cloned().collect();
        if errors.is_empty() { further.join("; ") } else { self.shown(sources, typed, &errors) }
    }

    /// Diagnostics as they are shown, about the line that was typed and what else they refer to.
    fn shown(&self, sources: &Sources, typed: Span, all: &[Diagnostic]) -> String {
        let colour = colours_stderr();
        all.iter().map(|one| one.render_part(sources, (LINE, typed), colour)).collect()
    }

    /// The text to parse, with this at its end, and where that begins; without the definition that it replaces.
    fn sources(&self, last: &str, replaced: Option<&str>) -> (Sources, usize) {
        self.text(false, last, replaced)
    }

    /// The same; if `listed`, with all fields that were seen, also where there may be others.
    fn text(&self, listed: bool, last: &str, replaced: Option<&str>) -> (Sources, usize) {
        let mut text = String::new();
        let mut line = |part: &str| {
            text.push_str(part);
            text.push('\n');
        };
        if let Base::File(path) = &self.base {
            line(&format!(
                "use \"{}\"",
                path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"")
            ));
        }
        self.imports.iter().for_each(|import| line(import));
        let is_defined = |name: &str| self.definitions.iter().any(|(other, _)| other == name);
        if let Base::Recordings(topics) = &self.base {
            for topic in topics.iter().filter(|topic| Some(topic.name.as_str()) != replaced) {
                line(topic.open.as_ref().filter(|_| !listed).unwrap_or(&topic.listed));
            }
            // As in `rondel check --formula`: the fields of the only topic are names.
            if let [only] = &topics[..] {
                let is_free = |name: &&String| {
                    is_name(name)
                        && **name != only.name
                        && Some(name.as_str()) != replaced
                        && !is_defined(name)
                };
                for field in only.fields.iter().filter(is_free) {
                    line(&format!("let {field} = {}.{field}", only.name));
                }
            }
        }
        let definitions = self.definitions.iter().filter(|(name, _)| Some(name.as_str()) != replaced);
        definitions.for_each(|(_, definition)| line(definition));
        let begin = text.len();
        text.push_str(last);
        let sources = match &self.base {
            Base::Recordings(_) => Sources::alone("recording", &text),
            // Files that it imports are sought in the working directory.
            Base::File(_) => files::load(Path::new("definitions"), "definitions", text),
        };
        let start = sources.main_start() + begin;
        (sources, start)
    }
}

/// Argument of a `use`.
fn imported(line: &str) -> &str {
    line.trim().strip_prefix("use").unwrap_or(line).trim()
}

/// The word with which a line begins.
fn first_word(line: &str) -> &str {
    let line = line.trim_start();
    line.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")
}

/// Whether a line is a declaration and no formula.
fn is_declaration(line: &str) -> bool {
    let line = line.trim_start();
    let word = first_word(line);
    let rest = line[word.len()..].trim_start();
    // A topic may be called `test`, and its field is then no declaration.
    let names = rest.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '"');
    line.starts_with('@') || names && declaration_words().any(|known| known == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_distinguished_from_formulas() {
        for (line, expected) in [
            ("let a = 1", true),
            ("  @time(dense) property p = x > 1", true),
            ("test \"x\" { }", true),
            ("test.x > 1", false),
            ("letter > 1", false),
            ("use == 1", false),
            ("", false),
            ("größe > 1", false),
        ] {
            assert_eq!(is_declaration(line), expected, "{line}");
        }
    }
}
