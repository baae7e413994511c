//! The text of a specification, with the places of its properties and the fields that they read.

use std::collections::BTreeSet;

use rondel_event::{Path, Segment, TopicId, Value};
use rondel_spec::{Expr, ExprId, Outline, Property, Sources, Spec, Symbol, SymbolKind};
use serde_json::{Value as Json, json};

/// The text of a specification.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Described {
    /// The text, of all files.
    pub text: String,
    /// The properties, in the order of the specification.
    pub properties: Vec<PropertyText>,
    /// The topics.
    pub topics: Vec<Place>,
}

/// A declaration in the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The name.
    pub name: String,
    /// Where it begins and ends, in characters.
    pub start: usize,
    /// See `start`.
    pub end: usize,
    /// The line where it begins, from 1.
    pub line: usize,
}

/// A property in the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PropertyText {
    /// Its place, if it is in the text.
    pub place: Place,
    /// The declaration.
    pub text: String,
    /// The line of its file where it begins; `None` if the text is not that of a file.
    pub line: Option<usize>,
    /// The value of `@severity`, or empty.
    pub severity: String,
    /// The values of `@requirement`, separated by commas, or empty.
    pub requirement: String,
    /// All attributes: name and value.
    pub attributes: Vec<(String, String)>,
    /// The names of its parameters.
    pub parameters: Vec<String>,
    /// The topics that it reads.
    pub topics: Vec<String>,
    /// The networks of these topics.
    pub networks: Vec<String>,
    /// The definitions that it uses: name and text.
    pub definitions: Vec<(String, String)>,
    /// The fields that it reads.
    pub fields: Vec<Field>,
}

/// A field that a property reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name as it is written: `gear.report`.
    pub name: String,
    /// The topic.
    pub topic: String,
    /// The path in the message.
    pub path: Path,
    /// The constants that it is compared with.
    pub thresholds: Vec<f64>,
}

impl PropertyText {
    /// The name.
    pub fn name(&self) -> &str {
        &self.place.name
    }
}

impl Described {
    /// Describes a specification. `network` is the network of a topic, by its number.
    pub fn of(sources: &Sources, spec: &Spec, network: &dyn Fn(usize) -> Option<String>) -> Described {
        let outline = Outline::of(sources, None);
        let text = sources.text();
        let reader = Reader { sources, spec, outline: &outline, text };
        let property = |(at, property): (usize, &Property)| reader.property(at, property, network);
        let topics = outline.symbols().iter().filter(|symbol| symbol.kind == SymbolKind::Topic);
        Described {
            text: text.to_owned(),
            properties: spec.properties.iter().enumerate().map(property).collect(),
            topics: topics.map(|symbol| reader.place(&symbol.full_name(), symbol)).collect(),
        }
    }

    /// Describes the properties of a store, which keeps the text of each: name, severity, requirement and text.
    pub(crate) fn stored<'a>(properties: impl Iterator<Item = [&'a str; 4]>) -> Described {
        let mut described = Described::default();
        for [name, severity, requirement, text] in properties {
            let (start, line) = (described.text.chars().count(), described.text.matches('\n').count() + 1);
            let place = Place { name: name.to_owned(), start, end: start + text.chars().count(), line };
            described.text += text;
            described.text += "\n";
            described.properties.push(PropertyText {
                place,
                text: text.to_owned(),
                severity: severity.to_owned(),
                requirement: requirement.to_owned(),
                ..PropertyText::default()
            });
        }
        described
    }

    /// The property of a name.
    pub(crate) fn property(&self, name: &str) -> Option<&PropertyText> {
        self.properties.iter().find(|property| property.name() == name)
    }

    /// The answer to a request for the specification.
    pub(crate) fn json(&self) -> Json {
        let place = |place: &Place| {
            let Place { name, start, end, line } = place;
            json!({"name": name, "start": start, "end": end, "line": line})
        };
        let properties: Vec<Json> = self.properties.iter().map(|property| place(&property.place)).collect();
        let topics: Vec<Json> = self.topics.iter().map(place).collect();
        json!({"text": self.text, "properties": properties, "topics": topics})
    }
}

/// Reader of a checked specification and its text.
struct Reader<'a> {
    sources: &'a Sources,
    spec: &'a Spec,
    outline: &'a Outline,
    text: &'a str,
}

impl Reader<'_> {
    /// The number of characters before an offset.
    fn characters(&self, offset: usize) -> usize {
        self.text.get(..offset).map_or(0, |before| before.chars().count())
    }

    fn place(&self, name: &str, symbol: &Symbol) -> Place {
        let (start, end) = self.whole(symbol);
        Place {
            name: name.to_owned(),
            start: self.characters(start),
            end: self.characters(end),
            line: self.text.get(..start).map_or(1, |before| before.matches('\n').count() + 1),
        }
    }

    /// The span of a declaration with its attributes, which stand on the lines before it.
    fn whole(&self, symbol: &Symbol) -> (usize, usize) {
        let (mut start, end) = (symbol.whole.start, symbol.whole.end);
        while let Some(before) = self.text.get(..start) {
            let line_start = before.trim_end().rfind('\n').map_or(0, |at| at + 1);
            let line = before.get(line_start..).unwrap_or_default();
            if line_start >= start || !line.trim_start().starts_with('@') {
                break;
            }
            start = line_start;
        }
        (start, end)
    }

    fn property(
        &self,
        at: usize,
        property: &Property,
        network: &dyn Fn(usize) -> Option<String>,
    ) -> PropertyText {
        let span = self.spec.places.property(at);
        let symbol =
            span.and_then(|span| self.outline.symbols().iter().find(|symbol| symbol.span == Some(span)));
        // One formula, and an assert without a name, have no symbol: their line.
        let (place, text) = match (symbol, span) {
            (Some(symbol), _) => {
                let (start, end) = self.whole(symbol);
                (self.place(&property.name, symbol), self.text.get(start..end).unwrap_or_default())
            }
            (None, Some(span)) => {
                let text = self.sources.place(span.start).text;
                let (start, line) = (self.characters(span.start), self.sources.place(span.start).line);
                let end = self.characters(span.end);
                (Place { name: property.name.clone(), start, end, line }, text)
            }
            (None, None) => (Place { name: property.name.clone(), ..Place::default() }, ""),
        };
        let values = |name: &str| {
            let own = property.attributes.iter().filter(|(own, value)| own == name && !value.is_empty());
            own.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ")
        };
        let slice = property.slice.and_then(|slice| self.spec.slices.get(slice.0 as usize));
        let topics = self.spec.topics_of_property(property);
        let networks: BTreeSet<String> = topics.iter().filter_map(|topic| network(topic.index())).collect();
        PropertyText {
            place,
            text: text.trim().to_owned(),
            line: span.map(|span| self.sources.place(span.start).line),
            severity: values("severity"),
            requirement: values("requirement"),
            attributes: property.attributes.clone(),
            parameters: slice.into_iter().flat_map(|slice| &slice.keys).map(|key| key.name.clone()).collect(),
            topics: topics.iter().filter_map(|topic| self.topic(*topic)).collect(),
            networks: networks.into_iter().collect(),
            definitions: self.definitions(symbol),
            fields: self.fields(property),
        }
    }

    fn topic(&self, topic: TopicId) -> Option<String> {
        self.spec.topics.get(topic.index()).map(|topic| topic.name.clone())
    }

    /// The definitions that a declaration names, and those that these name.
    fn definitions(&self, symbol: Option<&Symbol>) -> Vec<(String, String)> {
        let symbols = self.outline.symbols();
        let meanings = self.outline.meanings();
        let named: BTreeSet<usize> = meanings.into_iter().collect();
        let (mut found, mut waiting): (Vec<usize>, Vec<&Symbol>) = (Vec::new(), symbol.into_iter().collect());
        while let Some(declaration) = waiting.pop() {
            for at in &named {
                let Some(used) = symbols.get(*at).filter(|used| used.kind == SymbolKind::Definition) else {
                    continue;
                };
                let whole = declaration.whole;
                let is_used =
                    self.outline.uses(*at).any(|span| whole.start <= span.start && span.end <= whole.end);
                if is_used && used.whole != whole && !found.contains(at) {
                    found.push(*at);
                    waiting.push(used);
                }
            }
        }
        found.sort_unstable();
        let text = |symbol: &Symbol| {
            let text = self.text.get(symbol.whole.start..symbol.whole.end).unwrap_or_default();
            (symbol.full_name(), text.trim().to_owned())
        };
        found.into_iter().filter_map(|at| symbols.get(at)).map(text).collect()
    }

    /// The fields that a property reads, with the constants that they are compared with.
    fn fields(&self, property: &Property) -> Vec<Field> {
        let mut fields: Vec<Field> = Vec::new();
        for (_, node) in self.spec.below_with_machines([property.formula]) {
            if let Some((topic, path)) = field(node)
                && let Some(topic) = self.topic(topic)
            {
                let name = format!("{topic}.{path}");
                if fields.iter().all(|known| known.name != name) {
                    fields.push(Field { name, topic, path: path.clone(), thresholds: Vec::new() });
                }
            }
        }
        for (_, node) in self.spec.below_with_machines([property.formula]) {
            let Expr::Compare(_, left, right) = node else { continue };
            for (own, other) in [(left, right), (right, left)] {
                if let Some((own, threshold)) = self.field_of(*own).zip(self.number(*other))
                    && let Some(field) = fields.iter_mut().find(|field| field.name == own)
                    && !field.thresholds.contains(&threshold)
                {
                    field.thresholds.push(threshold);
                }
            }
        }
        fields
    }

    /// The name of the field that an operand is.
    fn field_of(&self, id: ExprId) -> Option<String> {
        let node = match self.spec.nodes.get(id.index())? {
            Expr::ToFloat(inner) => self.spec.nodes.get(inner.index())?,
            node => node,
        };
        let (topic, path) = field(node)?;
        Some(format!("{}.{path}", self.topic(topic)?))
    }

    /// The number that an operand is.
    fn number(&self, id: ExprId) -> Option<f64> {
        match self.spec.nodes.get(id.index())? {
            Expr::Literal(Value::Int(i)) => Some(*i as f64),
            Expr::Literal(Value::Float(x)) => Some(*x),
            _ => None,
        }
    }
}

/// The topic and the path of a field.
fn field(node: &Expr) -> Option<(TopicId, &Path)> {
    match node {
        Expr::Field { topic, path, .. } => Some((*topic, path)),
        _ => None,
    }
}

/// The value at a path of a message as a tree; `None` if there is none. Elements with a name are not found.
pub(crate) fn value_at<'m>(message: &'m Json, path: &Path) -> Option<&'m Json> {
    path.0.iter().try_fold(message, |value, segment| match segment {
        Segment::Key(key) => value.get(&**key),
        Segment::Index(index) => value.get(*index as usize),
        Segment::FromEnd(index) => {
            let elements = value.as_array()?;
            elements.get(elements.len().checked_sub(*index as usize)?)
        }
        Segment::Named(_) => None,
    })
}

/// Where a name stands in a text, as spans in characters.
pub(crate) fn spans(text: &str, name: &str) -> Vec<Json> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut spans = Vec::new();
    for (at, _) in text.match_indices(name) {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + name.len()..).and_then(|after| after.chars().next());
        if before.is_none_or(|c| !is_part(c) && c != '.') && after.is_none_or(|c| !is_part(c)) {
            let start = text.get(..at).map_or(0, |before| before.chars().count());
            spans.push(json!({"start": start, "end": start + name.chars().count()}));
        }
    }
    spans
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TEXT: &str = "# ä\ntopic gear { report: int }\ntopic velocity { x: float }\n\
        let standing = abs(velocity.x) < 0.1\nlet other = gear.report > 7\n\n@severity(\"high\")\n\
        property p =\n    changed(gear.report) -> standing and velocity.x > -3\nproperty q = gear.report > 1\n";

    #[test]
    fn properties_have_texts_fields_and_definitions() {
        let spec = rondel_spec::parse(TEXT).spec.unwrap();
        let sources = Sources::alone("a.rondel", TEXT);
        let described = Described::of(&sources, &spec, &|topic| (topic == 0).then(|| "zenoh".to_owned()));
        let [p, q] = &described.properties[..] else { unreachable!() };
        assert!(p.text.starts_with("@severity") && p.text.ends_with("> -3"), "{}", p.text);
        assert_eq!(q.text, "property q = gear.report > 1");
        assert_eq!(
            (p.topics.as_slice(), p.networks.as_slice()),
            (["gear".to_owned(), "velocity".to_owned()].as_slice(), ["zenoh".to_owned()].as_slice())
        );
        assert_eq!(
            p.definitions,
            [("standing".to_owned(), "let standing = abs(velocity.x) < 0.1".to_owned())]
        );
        let fields: Vec<&str> = p.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(fields.len(), 2);
        assert!(fields.contains(&"gear.report") && fields.contains(&"velocity.x"));
        assert_eq!(q.fields[0].thresholds, [1.0]);
        for property in &described.properties {
            let Place { start, end, .. } = property.place;
            let text: String = described.text.chars().skip(start).take(end - start).collect();
            assert_eq!(text.trim(), property.text);
        }
        assert_eq!(described.topics.iter().map(|topic| topic.line).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn names_are_found_as_whole_words() {
        let spans = spans("ä a.b + a.bc + x.a.b + a.b", "a.b");
        assert_eq!(spans, [json!({"start": 2, "end": 5}), json!({"start": 23, "end": 26})]);
    }

    #[test]
    fn values_are_read_by_their_paths() {
        let message = json!({"a": {"b": [1, 2, 3]}});
        let path = |last: Segment| Path(Path::keys(["a", "b"]).0.into_iter().chain([last]).collect());
        assert_eq!(value_at(&message, &Path::keys(["a", "b"])), Some(&json!([1, 2, 3])));
        assert_eq!(value_at(&message, &Path::keys(["a", "c"])), None);
        assert_eq!(value_at(&message, &path(Segment::FromEnd(1))), Some(&json!(3)));
        assert_eq!(value_at(&message, &path(Segment::FromEnd(4))), None);
    }
}
