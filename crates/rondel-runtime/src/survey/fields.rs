//! The fields of messages that describe themselves: their types, and the values that were seen.

use serde_json::Value;

/// Fields of a topic that are listed; further ones are counted.
pub const FIELDS: usize = 64;
/// Levels of nested objects.
const DEPTH: usize = 8;
/// Different values that are remembered.
pub(super) const VALUES: usize = 5;
/// Elements of an array that are looked at, its first ones.
const ELEMENTS: usize = 16;
/// Characters of a name or of a remembered text.
const LONGEST: usize = 40;

/// The type of a field, as far as it can be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldKind {
    /// Only null was seen.
    #[default]
    Unknown,
    /// `bool`.
    Bool,
    /// `int`.
    Int,
    /// `float`.
    Float,
    /// `string`.
    Text,
    /// `time`: an object of seconds and nanoseconds.
    Time,
    /// An object with fields.
    Object,
    /// An array.
    Array,
    /// Several types that do not go together.
    Mixed,
}

impl FieldKind {
    fn of(value: &Value) -> FieldKind {
        match value {
            Value::Null => FieldKind::Unknown,
            Value::Bool(_) => FieldKind::Bool,
            Value::Number(number) if number.is_i64() => FieldKind::Int,
            Value::Number(_) => FieldKind::Float,
            Value::String(_) => FieldKind::Text,
            Value::Array(_) => FieldKind::Array,
            Value::Object(members) => {
                let is_time =
                    members.len() == 2 && members.contains_key("sec") && members.contains_key("nanosec");
                if is_time { FieldKind::Time } else { FieldKind::Object }
            }
        }
    }

    fn with(self, other: FieldKind) -> FieldKind {
        match (self, other) {
            (kind, FieldKind::Unknown) | (FieldKind::Unknown, kind) => kind,
            (FieldKind::Int, FieldKind::Float) | (FieldKind::Float, FieldKind::Int) => FieldKind::Float,
            (a, b) if a == b => a,
            _ => FieldKind::Mixed,
        }
    }

    /// Returns the type in a specification; `None` if the field cannot stand there.
    pub fn name(self) -> Option<&'static str> {
        match self {
            FieldKind::Bool => Some("bool"),
            FieldKind::Int => Some("int"),
            FieldKind::Float => Some("float"),
            FieldKind::Text => Some("string"),
            FieldKind::Time => Some("time"),
            _ => None,
        }
    }
}

/// A field of the messages of a topic.
#[derive(Clone, Debug, Default)]
pub struct Field {
    /// Its name, below the object that holds it.
    pub name: String,
    /// Its type.
    pub kind: FieldKind,
    /// The messages that carried it.
    pub messages: u64,
    /// The least and the greatest number.
    pub range: Option<(f64, f64)>,
    /// The last value, if it is no object, no array and no long text.
    pub last: Option<Value>,
    /// The fields of an object, in the order in which they were seen.
    pub fields: Vec<Field>,
    /// The type of the elements of an array.
    pub element: FieldKind,
    /// The values, unless there were too many.
    values: Option<Vec<Value>>,
}

/// The fields of the messages of a topic.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    root: Field,
    listed: usize,
    omitted: bool,
}

impl Fields {
    /// Adds a message.
    pub(super) fn add(&mut self, message: &Value) {
        let Fields { root, listed, omitted } = self;
        root.add(message, DEPTH, (listed, omitted));
    }

    /// Adds the members of a message one by one.
    pub(super) fn root(&self) -> &Field {
        &self.root
    }

    /// Returns the fields of the messages.
    pub fn fields(&self) -> &[Field] {
        &self.root.fields
    }

    /// Whether there were more fields, or deeper ones, than are listed.
    pub fn is_cut(&self) -> bool {
        self.omitted
    }
}

impl Field {
    fn add(&mut self, value: &Value, depth: usize, (listed, omitted): (&mut usize, &mut bool)) {
        let kind = FieldKind::of(value);
        self.kind = self.kind.with(kind);
        self.messages += u64::from(kind != FieldKind::Unknown);
        if let Some(number) = value.as_f64() {
            let (least, most) = self.range.unwrap_or((number, number));
            self.range = Some((least.min(number), most.max(number)));
        }
        if matches!(kind, FieldKind::Int | FieldKind::Text) {
            self.note(value);
        }
        let is_short = value.as_str().is_none_or(|text| text.len() <= LONGEST);
        if matches!(kind, FieldKind::Bool | FieldKind::Int | FieldKind::Float | FieldKind::Text) {
            self.last = is_short.then(|| value.clone());
        }
        if let Value::Array(elements) = value {
            let kinds = elements.iter().take(ELEMENTS).map(FieldKind::of);
            self.element = kinds.fold(self.element, FieldKind::with);
        }
        let (FieldKind::Object, Value::Object(members)) = (kind, value) else { return };
        for (name, member) in members {
            let position = self.fields.iter().position(|field| field.name == *name);
            let position = match position {
                Some(position) => position,
                None if *listed < FIELDS && depth > 0 && is_shown(name) => {
                    *listed += 1;
                    self.fields.push(Field {
                        name: name.clone(),
                        values: Some(Vec::new()),
                        ..Field::default()
                    });
                    self.fields.len() - 1
                }
                None => {
                    *omitted = true;
                    continue;
                }
            };
            self.fields[position].add(member, depth - 1, (listed, omitted));
        }
    }

    fn note(&mut self, value: &Value) {
        let Some(values) = &mut self.values else { return };
        if values.contains(value) {
            return;
        }
        let is_long = value.as_str().is_some_and(|text| !is_shown(text));
        if values.len() == VALUES || is_long {
            self.values = None;
        } else {
            values.push(value.clone());
        }
    }

    /// Returns all values, if there were few, each seen about twice.
    pub fn few_values(&self) -> Option<&[Value]> {
        let values = self.values.as_deref()?;
        let is_few = !values.is_empty() && 2 * values.len() as u64 <= self.messages;
        (is_few && matches!(self.kind, FieldKind::Int | FieldKind::Text)).then_some(values)
    }
}

/// Whether a text can stand in a specification as it is.
fn is_shown(text: &str) -> bool {
    text.chars().count() <= LONGEST
        && !text.is_empty()
        && !text.contains(['"', '\\'])
        && !text.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn types_and_ranges_are_inferred() {
        let mut fields = Fields::default();
        fields.add(
            &json!({"a": 1, "b": {"c": true, "stamp": {"sec": 1, "nanosec": 2}}, "d": "x", "e": [1], "f": 1}),
        );
        fields.add(&json!({"a": -2.5, "b": {"c": null}, "d": "x", "f": "y", "g": u64::MAX}));
        let kinds: Vec<_> = fields.fields().iter().map(|field| (&*field.name, field.kind)).collect();
        use FieldKind::*;
        let expected = [("a", Float), ("b", Object), ("d", Text), ("e", Array), ("f", Mixed), ("g", Float)];
        assert_eq!(kinds, expected);
        let [a, b, d, ..] = fields.fields() else { panic!() };
        assert_eq!((a.range, a.messages, &a.last), (Some((-2.5, 1.0)), 2, &Some(json!(-2.5))));
        assert_eq!((b.fields[0].kind, b.fields[0].messages, b.fields[1].kind), (Bool, 1, Time));
        assert_eq!((d.few_values(), a.few_values()), (Some(&[json!("x")][..]), None));
        assert!(!fields.is_cut());
    }

    #[test]
    fn too_many_fields_are_cut() {
        let mut fields = Fields::default();
        let message = (0..100).map(|i| (format!("f{i}"), json!(i))).collect();
        fields.add(&Value::Object(message));
        assert_eq!((fields.fields().len(), fields.is_cut()), (FIELDS, true));
        let mut deep = Fields::default();
        deep.add(&(0..50).fold(json!(1), |inner, _| json!({"x": inner})));
        assert!(deep.is_cut());
    }
}
