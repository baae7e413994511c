//! Reading YAML documents: reports every mistake, each with its line and column.

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};

/// A mistake at a place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line from 1; 0 for the file as a whole.
    pub line: usize,
    /// The column from 1.
    pub column: usize,
    /// The message, with the remedy.
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
    what: &'static str,
}

/// All mistakes found so far.
#[derive(Debug, Default)]
pub struct Mistakes(pub Vec<Mistake>);

impl Mistakes {
    /// Adds a mistake at an item.
    pub fn at(&mut self, item: Item<'_>, message: impl Into<String>) {
        let start = item.node.span.start;
        self.0.push(Mistake { line: start.line(), column: start.col() + 1, message: message.into() });
    }

    /// Adds a mistake about the file as a whole.
    pub fn anywhere(&mut self, message: impl Into<String>) {
        self.0.push(Mistake { line: 0, column: 0, message: message.into() });
    }
}

/// Parses a document and calls `read` with its root; `None` when it is not YAML.
pub fn with_document<T>(
    text: &str,
    mistakes: &mut Mistakes,
    read: impl FnOnce(Item<'_>, &mut Mistakes) -> T,
) -> Option<T> {
    match MarkedYaml::load_from_str(text) {
        Ok(documents) => match documents.as_slice() {
            [root] => Some(read(Item { node: root }, mistakes)),
            [] => {
                mistakes.anywhere("the file is empty");
                None
            }
            _ => {
                mistakes.anywhere("the file has several documents; one is expected");
                None
            }
        },
        Err(error) => {
            let at = error.marker();
            mistakes.0.push(Mistake {
                line: at.line(),
                column: at.col() + 1,
                message: error.info().to_owned(),
            });
            None
        }
    }
}

impl<'y> Item<'y> {
    /// The text of a string, number or boolean.
    pub fn text(self, what: &str, mistakes: &mut Mistakes) -> Option<String> {
        match &self.node.data {
            YamlData::Value(Scalar::String(text)) => Some(text.to_string()),
            YamlData::Value(Scalar::Integer(number)) => Some(number.to_string()),
            YamlData::Value(Scalar::FloatingPoint(number)) => Some(number.to_string()),
            YamlData::Value(Scalar::Boolean(value)) => Some(value.to_string()),
            _ => {
                mistakes.at(self, format!("{what} must be text, not {}", self.kind()));
                None
            }
        }
    }

    /// A boolean.
    pub fn boolean(self, what: &str, mistakes: &mut Mistakes) -> Option<bool> {
        if let YamlData::Value(Scalar::Boolean(value)) = self.node.data {
            return Some(value);
        }
        mistakes.at(self, format!("{what} must be true or false, not {}", self.kind()));
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
        mistakes.at(self, format!("{what} must be a whole number from {} to {}", range.start(), range.end()));
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
                    Some((key.text("a name", mistakes)?, key, Item { node: value }))
                })
                .collect(),
            YamlData::Value(Scalar::Null) => Vec::new(),
            _ => {
                mistakes.at(self, format!("{what} must be a mapping (name: value), not {}", self.kind()));
                Vec::new()
            }
        }
    }

    /// The members of a mapping whose names are fixed; see [`Members::finish`].
    pub fn members(self, what: &'static str, mistakes: &mut Mistakes) -> Members<'y> {
        Members { members: self.entries(what, mistakes), known: Vec::new(), what }
    }

    fn kind(self) -> &'static str {
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

    /// Reports every member that was not read with [`Members::get`].
    pub fn finish(self, mistakes: &mut Mistakes) {
        for (name, key, _) in &self.members {
            if !self.known.contains(&name.as_str()) {
                let hint = suggest(name, self.known.iter().copied()).map_or_else(
                    || format!("known here: {}", self.known.join(", ")),
                    |s| format!("did you mean '{s}'?"),
                );
                mistakes.at(*key, format!("{} has no setting '{name}'; {hint}", self.what));
            }
        }
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
