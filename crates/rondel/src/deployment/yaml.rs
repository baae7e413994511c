//! Reads YAML documents. All mistakes are collected, each with its line and column.

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};
use serde_json::{Map, Value};

/// A mistake at a place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The message: what is wrong, and what to write instead.
    pub message: String,
}

/// A value in a document, with its place.
#[derive(Clone, Copy, Debug)]
pub struct Item<'y> {
    node: &'y MarkedYaml<'y>,
}

/// The members of a mapping with fixed names.
#[derive(Debug)]
pub struct Members<'y> {
    members: Vec<(String, Item<'y>, Item<'y>)>,
    known: Vec<&'static str>,
    former: Option<&'static str>,
    what: &'static str,
}

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form<'y> {
    /// A mapping.
    Mapping,
    /// A list.
    List,
    /// Nothing.
    Null,
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Number(f64),
    /// A text.
    Text(&'y str),
}

/// All mistakes found so far.
#[derive(Debug, Default)]
pub struct Mistakes {
    /// The reasons to refuse the file.
    pub errors: Vec<Mistake>,
    /// Warnings, such as about settings that the next version refuses.
    pub warnings: Vec<Mistake>,
    /// Settings that Rondel cannot check; `rondel validate` shows them.
    pub uncertainties: Vec<Mistake>,
}

/// Names that people write for a setting, and what to write instead.
pub type Synonyms = &'static [(&'static [&'static str], &'static str)];

impl Mistakes {
    /// Adds an error at an item.
    pub fn at(&mut self, item: Item<'_>, message: impl Into<String>) {
        self.errors.push(Mistake::at(item, message.into()));
    }

    /// Adds a warning at an item.
    pub fn warn(&mut self, item: Item<'_>, message: impl Into<String>) {
        self.warnings.push(Mistake::at(item, message.into()));
    }

    /// Adds an uncertainty at an item.
    pub fn uncertain(&mut self, item: Item<'_>, message: impl Into<String>) {
        self.uncertainties.push(Mistake::at(item, message.into()));
    }

    /// Refuses environment variables in values: they would otherwise be taken literally. Other errors in
    /// these values only follow from that, and are removed.
    fn refuse_variables(&mut self, root: Item<'_>) {
        let mut found = Vec::new();
        root.variables(&mut found);
        self.errors
            .retain(|error| found.iter().all(|one| (one.line, one.column) != (error.line, error.column)));
        self.errors.append(&mut found);
    }
}

impl Mistake {
    fn at(item: Item<'_>, message: String) -> Mistake {
        let (line, column) = item.position();
        Mistake { line, column, message }
    }
}

/// Parses a document and passes its root to `read`; returns `None` when the text is not valid YAML.
pub fn with_document<T>(
    text: &str,
    mistakes: &mut Mistakes,
    read: impl FnOnce(Item<'_>, &mut Mistakes) -> T,
) -> Option<T> {
    let mut wrong = |line, column, message: &str| {
        mistakes.errors.push(Mistake { line, column, message: message.to_owned() });
        None
    };
    match MarkedYaml::load_from_str(text) {
        Ok(documents) => match documents.as_slice() {
            [root] => {
                let root = Item { node: root };
                let result = read(root, mistakes);
                mistakes.refuse_variables(root);
                Some(result)
            }
            [] => {
                wrong(1, 1, "the file is empty; a deployment needs at least `specification:` or `formula:`")
            }
            [_, second, ..] => wrong(
                second.span.start.line(),
                second.span.start.col() + 1,
                "a second document begins here; a deployment is one document, without `---` between its settings",
            ),
        },
        Err(error) => {
            let at = error.marker();
            mistakes.errors.push(syntax_mistake(text, at.line(), at.col() + 1, error.info()));
            None
        }
    }
}

/// Returns a mistake in the syntax of a document in plain words. The parser speaks of its own states.
fn syntax_mistake(text: &str, line: usize, column: usize, info: &str) -> Mistake {
    let lines: Vec<&str> = text.lines().collect();
    let current = line.checked_sub(1).and_then(|index| lines.get(index)).copied().unwrap_or_default();
    let mistake = |message: String| Mistake { line, column, message };
    if info.contains("flow mapping")
        && let Some(variable) = variable(current)
    {
        return mistake(no_variables(variable));
    }
    if info.contains("tab") {
        let indentation = |line: &str| line.find(|c: char| !c.is_whitespace()).unwrap_or(line.len());
        let tab = |line: &str| line[..indentation(line)].find('\t');
        let place = lines.iter().enumerate().find_map(|(index, line)| Some((index + 1, tab(line)? + 1)));
        let (line, column) = place.unwrap_or((line, column));
        let message = "a tab indents this line; YAML allows only spaces".to_owned();
        return Mistake { line, column, message };
    }
    if info.contains("duplicated key") {
        let from = current.char_indices().nth(column.saturating_sub(1)).map_or(0, |(at, _)| at);
        let key = current[from..].split(':').next().unwrap_or_default().trim();
        let indent = |line: &str| line.len() - line.trim_start().len();
        // In a block mapping, the first of them stands above at the same indentation.
        let above = lines.iter().take(line.saturating_sub(1)).enumerate().rev();
        let mut first = None;
        if current[..from].trim().is_empty() {
            for (index, line) in above.filter(|(_, line)| !line.trim().is_empty()) {
                if indent(line) < from {
                    break;
                }
                let rest = line.trim_start().strip_prefix(key);
                if indent(line) == from && rest.is_some_and(|rest| rest.trim_start().starts_with(':')) {
                    first = Some(index + 1);
                }
            }
        }
        let first = first.map_or_else(String::new, |line| format!("; the first is in line {line}"));
        return mistake(format!("duplicate setting '{key}'{first}; keep only one"));
    }
    let known = [
        (
            "flow sequence",
            "a list that begins with `[` lacks its `]`, or a `,` is missing between two of its items",
        ),
        (
            "flow mapping",
            "a mapping that begins with `{` lacks its `}`, or a `,` is missing between two of its settings",
        ),
        ("quoted scalar", "a text that begins with a quotation mark lacks its closing quotation mark"),
        (
            "mapping values are not allowed",
            "`:` cannot stand here; put a value that contains `: ` in quotation marks, and indent all settings of a section equally",
        ),
        ("misplaced bracket", "this bracket closes nothing; remove it"),
        (
            "unknown anchor",
            "`*` begins a reference to an anchor, and there is none of this name; put a value that begins with `*` in \
             quotation marks",
        ),
        (
            "did not find expected key",
            "a setting such as `name: value` is expected here; indent all settings of a section equally",
        ),
        (
            "unexpected character",
            "a value cannot begin with this character; put the value in quotation marks",
        ),
    ];
    let message = known.iter().find(|(part, _)| info.contains(part));
    mistake(message.map_or_else(|| format!("this is not valid YAML: {info}"), |(_, m)| (*m).to_owned()))
}

/// Finds `${NAME}` or `$NAME`, the latter in capitals. MQTT and Zenoh have their own uses of `$`:
/// `$share/…`, `$SYS/…`, `$*`.
fn variable(text: &str) -> Option<&str> {
    text.match_indices('$').find_map(|(at, _)| {
        let rest = &text[at + 1..];
        if let Some(braced) = rest.strip_prefix('{') {
            let starts = braced.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            return starts.then(|| braced.find('}').map(|end| &text[at..at + end + 3])).flatten();
        }
        let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let begins = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        let ends = !after.starts_with(|c: char| c.is_ascii_alphanumeric());
        let is_variable = begins && ends && name.len() > 1 && name != "SYS";
        (is_variable && !name.starts_with(|c: char| c.is_ascii_digit())).then(|| &text[at..=at + end])
    })
}

/// The message about an environment variable in a value.
fn no_variables(variable: &str) -> String {
    format!(
        "environment variables are not expanded: write the value itself instead of {variable}; for a password, \
         use `password_env: NAME`"
    )
}

impl<'y> Item<'y> {
    /// The text of a string, number or boolean.
    pub fn text(self, what: &str, mistakes: &mut Mistakes) -> Option<String> {
        match &self.node.data {
            YamlData::Value(Scalar::String(text)) => Some(text.to_string()),
            YamlData::Value(Scalar::Integer(number)) => Some(number.to_string()),
            YamlData::Value(Scalar::FloatingPoint(number)) => Some(number.to_string()),
            YamlData::Value(Scalar::Boolean(value)) => Some(value.to_string()),
            YamlData::Value(Scalar::Null) => {
                mistakes.at(self, format!("`{what}` has no value; write one after the `:`, or remove it"));
                None
            }
            _ => {
                mistakes.at(self, format!("`{what}` must be text, not {}", self.kind()));
                None
            }
        }
    }

    /// The whole value as JSON.
    pub fn json(self, what: &'static str, mistakes: &mut Mistakes) -> Option<Value> {
        Some(match &self.node.data {
            YamlData::Value(Scalar::Integer(number)) => Value::from(*number),
            YamlData::Value(Scalar::FloatingPoint(number)) if number.0.is_finite() => Value::from(number.0),
            YamlData::Value(Scalar::FloatingPoint(_)) => {
                mistakes.at(self, format!("a number in `{what}` must be finite"));
                return None;
            }
            YamlData::Value(Scalar::Boolean(value)) => Value::from(*value),
            YamlData::Sequence(_) => {
                let items = self.items().into_iter().map(|item| item.json(what, mistakes));
                Value::Array(items.collect::<Option<_>>()?)
            }
            YamlData::Mapping(_) => {
                let mut members = Map::new();
                for (name, _, item) in self.entries(what, mistakes) {
                    members.insert(name, item.json(what, mistakes)?);
                }
                Value::Object(members)
            }
            _ => Value::from(self.text(what, mistakes)?),
        })
    }

    /// The line and the column, from 1.
    pub fn position(self) -> (usize, usize) {
        let start = self.node.span.start;
        (start.line(), start.col() + 1)
    }

    /// A boolean.
    pub fn boolean(self, what: &str, mistakes: &mut Mistakes) -> Option<bool> {
        if let YamlData::Value(Scalar::Boolean(value)) = self.node.data {
            return Some(value);
        }
        mistakes.at(self, format!("`{what}` must be true or false, not {}", self.kind()));
        None
    }

    /// A whole number of this range.
    pub fn integer(
        self,
        what: &str,
        range: std::ops::RangeInclusive<i64>,
        mistakes: &mut Mistakes,
    ) -> Option<i64> {
        if let YamlData::Value(Scalar::Integer(value)) = self.node.data
            && range.contains(&value)
        {
            return Some(value);
        }
        let (least, most) = (range.start(), range.end());
        mistakes.at(self, format!("`{what}` must be a whole number from {least} to {most}"));
        None
    }

    /// The items of a sequence; a single value stands for a sequence of one.
    pub fn items(self) -> Vec<Item<'y>> {
        match &self.node.data {
            YamlData::Sequence(items) => items.iter().map(|node| Item { node }).collect(),
            YamlData::Value(Scalar::Null) => Vec::new(),
            _ => vec![self],
        }
    }

    /// The texts of a sequence, or a single text.
    pub fn texts(self, what: &str, mistakes: &mut Mistakes) -> Vec<String> {
        self.items().into_iter().filter_map(|item| item.text(what, mistakes)).collect()
    }

    /// Its form; `None` for references and other values that deployments do not have.
    pub fn form(self) -> Option<Form<'y>> {
        Some(match &self.node.data {
            YamlData::Mapping(_) => Form::Mapping,
            YamlData::Sequence(_) => Form::List,
            YamlData::Value(Scalar::Null) => Form::Null,
            YamlData::Value(Scalar::Boolean(value)) => Form::Boolean(*value),
            YamlData::Value(Scalar::Integer(value)) => Form::Integer(*value),
            YamlData::Value(Scalar::FloatingPoint(value)) => Form::Number(value.0),
            YamlData::Value(Scalar::String(text)) => Form::Text(text),
            _ => return None,
        })
    }

    /// Whether it is a mapping or a list without members, or nothing.
    pub fn is_empty(self) -> bool {
        match &self.node.data {
            YamlData::Mapping(members) => members.is_empty(),
            YamlData::Sequence(items) => items.is_empty(),
            YamlData::Value(Scalar::Null) => true,
            _ => false,
        }
    }

    /// Whether two items have the same values, wherever they are and however they are quoted.
    pub fn is_equal(self, other: Item<'_>) -> bool {
        match (&self.node.data, &other.node.data) {
            (YamlData::Mapping(own), YamlData::Mapping(others)) => {
                own.len() == others.len()
                    && own.iter().all(|(key, value)| {
                        others.iter().any(|(other_key, other)| {
                            Item { node: key }.is_equal(Item { node: other_key })
                                && Item { node: value }.is_equal(Item { node: other })
                        })
                    })
            }
            (YamlData::Sequence(own), YamlData::Sequence(others)) => {
                let mut pairs = own.iter().zip(others);
                own.len() == others.len()
                    && pairs.all(|(own, other)| Item { node: own }.is_equal(Item { node: other }))
            }
            (YamlData::Value(own), YamlData::Value(other)) => own == other,
            _ => false,
        }
    }

    /// Whether it is a mapping.
    pub fn is_mapping(self) -> bool {
        matches!(self.node.data, YamlData::Mapping(_))
    }

    /// The members of a mapping whose names the user chooses.
    pub fn entries(self, what: &str, mistakes: &mut Mistakes) -> Vec<(String, Item<'y>, Item<'y>)> {
        match &self.node.data {
            YamlData::Mapping(members) => members
                .iter()
                .filter_map(|(key, value)| {
                    let key = Item { node: key };
                    if !matches!(key.node.data, YamlData::Value(_)) {
                        mistakes.at(key, format!("the name of a setting must be text, not {}", key.kind()));
                        return None;
                    }
                    Some((key.text("name", mistakes)?, key, Item { node: value }))
                })
                .collect(),
            YamlData::Value(Scalar::Null) => Vec::new(),
            _ => {
                let way_out = match self.node.data {
                    YamlData::Sequence(_) => "; write `name: value` without `-` or brackets",
                    _ => "",
                };
                mistakes.at(
                    self,
                    format!("{what} must be a mapping (name: value), not {}{way_out}", self.kind()),
                );
                Vec::new()
            }
        }
    }

    /// Adds an error for each value that contains an environment variable. Formulas may contain a `$`, and so may the
    /// arguments of programs.
    fn variables(self, found: &mut Vec<Mistake>) {
        match &self.node.data {
            YamlData::Value(Scalar::String(text)) => {
                found.extend(variable(text).map(|name| Mistake::at(self, no_variables(name))));
            }
            YamlData::Sequence(items) => items.iter().for_each(|node| Item { node }.variables(found)),
            YamlData::Mapping(members) => {
                for (key, node) in members {
                    let is_literal = matches!(&key.data, YamlData::Value(Scalar::String(key)) if key == "formula" || key == "run");
                    if !is_literal {
                        Item { node }.variables(found);
                    }
                }
            }
            _ => {}
        }
    }

    /// The members of a mapping whose names are fixed; see [`Members::finish`].
    pub fn members(self, what: &'static str, mistakes: &mut Mistakes) -> Members<'y> {
        Members { members: self.entries(what, mistakes), known: Vec::new(), former: None, what }
    }

    /// Its form, for messages.
    pub fn kind(self) -> &'static str {
        match &self.node.data {
            YamlData::Mapping(_) => "a mapping",
            YamlData::Sequence(_) => "a list",
            YamlData::Value(Scalar::Null) => "nothing",
            YamlData::Value(Scalar::Boolean(_)) => "a boolean",
            YamlData::Value(Scalar::Integer(_) | Scalar::FloatingPoint(_)) => "a number",
            YamlData::Value(Scalar::String(_)) => "text",
            _ => "something else",
        }
    }
}

impl<'y> Members<'y> {
    /// The member with this name, if there is one.
    pub fn get(&mut self, name: &'static str) -> Option<Item<'y>> {
        self.known.push(name);
        self.members.iter().find(|(key, ..)| key == name).map(|(.., value)| *value)
    }

    /// The member of a former name, which is accepted but not offered.
    pub fn get_former(&mut self, name: &'static str) -> Option<Item<'y>> {
        self.former = Some(name);
        self.members.iter().find(|(key, ..)| key == name).map(|(.., value)| *value)
    }

    /// Adds an error for each unknown member, with the setting that is probably meant.
    pub fn finish(self, synonyms: Synonyms, mistakes: &mut Mistakes) {
        for (name, key, _) in &self.members {
            if self.known.contains(&name.as_str()) || self.former == Some(name.as_str()) {
                continue;
            }
            let written = name.to_ascii_lowercase().replace('-', "_");
            let synonym = synonyms.iter().find(|(names, _)| names.contains(&written.as_str()));
            let hint = match synonym {
                Some((_, advice)) => (*advice).to_owned(),
                None => hint(name, "its settings are", || self.known.iter().copied()),
            };
            mistakes.at(*key, format!("{} has no setting '{name}'; {hint}", self.what));
        }
    }
}

/// Returns the way out for a name that does not exist: the most similar one, or all of them after `intro`.
pub(super) fn hint<'c, I: Iterator<Item = &'c str>>(
    name: &str,
    intro: &str,
    candidates: impl Fn() -> I,
) -> String {
    match suggest(name, candidates()) {
        Some(nearest) => format!("did you mean '{nearest}'?"),
        None => format!("{intro}: {}", candidates().collect::<Vec<_>>().join(", ")),
    }
}

/// The most similar of the candidates, if any is similar.
pub(super) fn suggest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    candidates
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(similarity, _)| *similarity > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::variable;

    #[test]
    fn environment_variables_are_found() {
        for (text, name) in [
            ("${BROKER}", "${BROKER}"),
            ("tcp/${host}:7447", "${host}"),
            ("${A:-b}/c", "${A:-b}"),
            ("$BROKER:1883", "$BROKER"),
            ("$HOME/x", "$HOME"),
        ] {
            assert_eq!(variable(text), Some(name));
        }
        for text in
            ["mqtt:$share/g/a", "mqtt:$SYS/broker", "zenoh:a/$*", "a$B", "$", "$1", "${", "$aws/x", "${}"]
        {
            assert_eq!(variable(text), None, "{text}");
        }
    }
}
