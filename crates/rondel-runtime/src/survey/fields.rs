//! The fields of messages that describe themselves: their types, and the values that were seen.

use serde_json::Value;

/// Fields of a topic that are listed, and as many of the elements of arrays; that there are more is noted.
pub const FIELDS: usize = 64;
/// Levels of nested objects.
const DEPTH: usize = 8;
/// Different values that are remembered.
pub(super) const VALUES: usize = 5;
/// Elements of an array that are looked at, its first ones.
pub const ELEMENTS: usize = 16;
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
    /// What the first elements of an array are, all of them as one field; `messages` are so many elements.
    pub elements: Option<Box<Field>>,
    /// The values, unless there were too many.
    values: Option<Vec<Value>>,
}

/// The fields of the messages of a topic.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    root: Field,
    room: Room,
}

/// How many fields are listed.
#[derive(Clone, Debug, Default)]
struct Room {
    listed: usize,
    of_elements: usize,
    /// Whether there were more, besides those of elements.
    omitted: bool,
}

impl Fields {
    /// Adds a message.
    pub(super) fn add(&mut self, message: &Value) {
        self.root.add(message, DEPTH, false, &mut self.room);
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
        self.room.omitted
    }
}

impl Field {
    fn add(&mut self, value: &Value, depth: usize, is_element: bool, room: &mut Room) {
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
            let all = self.elements.get_or_insert_default();
            elements.iter().take(ELEMENTS).for_each(|one| all.add(one, depth.saturating_sub(1), true, room));
        }
        let (FieldKind::Object, Value::Object(members)) = (kind, value) else { return };
        for (name, member) in members {
            let position = self.fields.iter().position(|field| field.name == *name);
            let listed = if is_element { &mut room.of_elements } else { &mut room.listed };
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
                    room.omitted |= !is_element;
                    continue;
                }
            };
            self.fields[position].add(member, depth - 1, is_element, room);
        }
    }

    /// The type of the elements of an array.
    pub fn element(&self) -> FieldKind {
        self.elements.as_ref().map_or(FieldKind::Unknown, |elements| elements.kind)
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
    fn elements_are_one_field() {
        let mut fields = Fields::default();
        fields.add(&json!({"a": [{"x": 1}, {"x": 3, "y": [[0.5]]}], "b": []}));
        fields.add(&json!({"a": [{"x": -2}], "b": [null]}));
        let [a, b] = fields.fields() else { panic!() };
        let elements = a.elements.as_ref().unwrap();
        let [x, y] = &elements.fields[..] else { panic!() };
        assert_eq!((a.element(), elements.messages, b.element()), (FieldKind::Object, 3, FieldKind::Unknown));
        assert_eq!((x.range, x.messages, &x.last), (Some((-2.0, 3.0)), 3, &Some(json!(-2))));
        assert_eq!(y.elements.as_ref().unwrap().element(), FieldKind::Float);
        // They do not count among the fields.
        let mut wide = Fields::default();
        let element: Value = (0..100).map(|i| (format!("f{i}"), json!(i))).collect();
        wide.add(&json!({"a": [element], "b": 1}));
        let [a, _] = wide.fields() else { panic!() };
        assert_eq!((a.elements.as_ref().unwrap().fields.len(), wide.is_cut()), (FIELDS, false));
        let deep: Value = (0..100).fold(json!(1), |inner, _| json!([inner]));
        wide.add(&json!({"a": deep}));
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
