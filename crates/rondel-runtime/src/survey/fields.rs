//! The fields of messages that describe themselves: their types, and the values that were seen.

use rondel_event::terminal::is_obeyed;
use serde_json::{Map, Value};

use super::pace::RecordedTime;
use super::series::Series;

/// Fields of a topic that are listed, and as many of the elements of arrays; that there are more is noted.
pub const FIELDS: usize = 256;
/// Levels of nested objects.
const DEPTH: usize = 8;
/// Different values that are remembered.
pub(super) const VALUES: usize = 5;
/// Elements of an array that are looked at, its first ones.
pub const ELEMENTS: usize = 16;
/// Characters of a name or of a remembered text.
const LONGEST: usize = 40;

/// Stands in a survey for a number that is not finite or beyond the range of doubles, which JSON cannot have: its field has
/// numbers with fractions, and no value to measure. Messages use the greatest double in the same way.
pub(super) const NO_NUMBER: f64 = 1.7e308;

/// Returns a number that can be measured.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.abs() < 1.6e308)
}

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

    /// The values of the type, in words.
    fn plural(self) -> &'static str {
        match self {
            FieldKind::Bool => "booleans",
            FieldKind::Int | FieldKind::Float => "numbers",
            FieldKind::Text => "texts",
            FieldKind::Time => "times",
            FieldKind::Object => "objects",
            FieldKind::Array => "arrays",
            FieldKind::Unknown | FieldKind::Mixed => "others",
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
    /// The types of its values, each once.
    kinds: Vec<FieldKind>,
    /// The messages that carried it.
    pub messages: u64,
    /// The least and the greatest number.
    pub range: Option<(f64, f64)>,
    /// The last value, if it is no object, no array and no long text.
    pub last: Option<Value>,
    /// The fields of an object, in the order in which they were seen.
    pub fields: Vec<Field>,
    /// Type of the first elements of an array, all of them as one field; `messages` counts elements.
    pub elements: Option<Box<Field>>,
    /// The values with the number of times that each came after another one, unless there were too many.
    values: Option<Vec<(Value, u64)>>,
    /// The values of a number over time, of a text that is a number, and of the seconds of a time.
    pub(super) series: Option<Box<Series>>,
    /// Texts that are numbers.
    number_texts: u64,
    /// Texts that are empty.
    empty_texts: u64,
    /// The least and the greatest square of the length of a quaternion.
    pub(super) norm: Option<(f64, f64)>,
    /// Measures of an array of numbers.
    pub(super) array: Option<Box<Array>>,
    /// The first time, from which the seconds of a time count.
    first_second: Option<i64>,
}

/// Arrays of numbers over the messages of a topic.
#[derive(Clone, Debug)]
pub(super) struct Array {
    /// The least and the greatest number of elements.
    pub lengths: (usize, usize),
    /// The least element of each message, and the greatest.
    pub least: Series,
    pub most: Series,
    /// Elements that are null, or no finite number.
    pub nulls: u64,
}

impl Array {
    /// Adds the array of a message. Returns `None` if an element is no number.
    fn add(array: Option<Box<Array>>, elements: &[Value], at: RecordedTime) -> Option<Box<Array>> {
        let mut array = array.unwrap_or_else(|| {
            let lengths = (elements.len(), elements.len());
            Box::new(Array { lengths, least: Series::default(), most: Series::default(), nulls: 0 })
        });
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for element in elements {
            match element {
                Value::Null => array.nulls += 1,
                Value::Number(_) => match number(element) {
                    Some(number) => (least, most) = (least.min(number), most.max(number)),
                    None => array.nulls += 1,
                },
                _ => return None,
            }
        }
        array.lengths = (array.lengths.0.min(elements.len()), array.lengths.1.max(elements.len()));
        array.least.add(least, at);
        array.most.add(most, at);
        Some(array)
    }
}

/// The fields of the messages of a topic.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    root: Field,
    room: Room,
}

/// Number of listed fields.
#[derive(Clone, Debug, Default)]
struct Room {
    /// Number of further fields allowed, including other topics.
    left: usize,
    listed: usize,
    of_elements: usize,
    /// Whether there were more, besides those of elements.
    omitted: bool,
}

impl Fields {
    /// Adds a message.
    ///
    /// `left` is how many more fields all topics together may have.
    pub(super) fn add(&mut self, message: &Value, at: RecordedTime, left: &mut usize) {
        self.room.left = *left;
        self.root.add(message, DEPTH, false, at, &mut self.room);
        *left = self.room.left;
    }

    /// Whether numbers come as texts: in all messages that carry the field, empty texts aside.
    pub fn has_number_texts(&self) -> bool {
        self.root.fields.iter().any(Field::has_number_texts)
    }

    /// The paths of the fields with values of several types that do not go together, each with these types in words.
    pub(super) fn mixed(&self) -> Vec<(Vec<String>, String)> {
        let mut mixed = Vec::new();
        self.root.fields.iter().for_each(|field| field.add_mixed(&mut Vec::new(), &mut mixed));
        mixed
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
    fn add(&mut self, value: &Value, depth: usize, is_element: bool, at: RecordedTime, room: &mut Room) {
        let kind = FieldKind::of(value);
        if kind != FieldKind::Unknown && !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
        self.kind = self.kind.with(kind);
        self.messages += u64::from(kind != FieldKind::Unknown);
        let written = value.as_str().and_then(decimal);
        self.number_texts += u64::from(written.is_some());
        self.empty_texts += u64::from(value.as_str().is_some_and(|text| text.trim().is_empty()));
        if let Some(number) = number(value).or(written) {
            let (least, most) = self.range.unwrap_or((number, number));
            self.range = Some((least.min(number), most.max(number)));
            if !is_element {
                self.series.get_or_insert_default().add(number, at);
            }
        }
        if matches!(kind, FieldKind::Int | FieldKind::Text | FieldKind::Bool) && !is_element {
            self.note(value);
        }
        let is_short = value.as_str().is_none_or(|text| text.len() <= LONGEST);
        if matches!(kind, FieldKind::Bool | FieldKind::Int | FieldKind::Float | FieldKind::Text) {
            let is_shown = is_short && (!value.is_number() || number(value).is_some());
            self.last = is_shown.then(|| value.clone());
        }
        match value {
            Value::Array(elements) => self.add_elements(elements, depth, is_element, at, room),
            Value::Object(members) if kind == FieldKind::Time && !is_element => self.add_time(members, at),
            Value::Object(members) if kind == FieldKind::Object => {
                if let Some(square) = square_norm(members).filter(|_| !is_element) {
                    let (least, most) = self.norm.unwrap_or((square, square));
                    self.norm = Some((least.min(square), most.max(square)));
                }
                self.add_members(members, depth, is_element, at, room);
            }
            _ => {}
        }
    }

    fn add_elements(
        &mut self,
        elements: &[Value],
        depth: usize,
        is_element: bool,
        at: RecordedTime,
        room: &mut Room,
    ) {
        // Once an array has held something else than numbers it is not measured any more.
        if !is_element && (self.messages == 1 || self.array.is_some()) {
            self.array = Array::add(self.array.take(), elements, at);
        }
        let all = self.elements.get_or_insert_default();
        elements.iter().take(ELEMENTS).for_each(|one| all.add(one, depth.saturating_sub(1), true, at, room));
    }

    fn add_time(&mut self, members: &Map<String, Value>, at: RecordedTime) {
        let part = |name| members.get(name).and_then(Value::as_i64);
        let (Some(second), Some(nanos)) = (part("sec"), part("nanosec")) else { return };
        let first = *self.first_second.get_or_insert(second);
        let seconds = second.saturating_sub(first) as f64 + nanos as f64 / 1e9;
        self.series.get_or_insert_default().add(seconds, at);
    }

    fn add_members(
        &mut self,
        members: &Map<String, Value>,
        depth: usize,
        is_element: bool,
        at: RecordedTime,
        room: &mut Room,
    ) {
        for (name, member) in members {
            let position = self.fields.iter().position(|field| field.name == *name);
            let listed = if is_element { &mut room.of_elements } else { &mut room.listed };
            let position = match position {
                Some(position) => position,
                None if *listed < FIELDS && room.left > 0 && depth > 0 && is_shown(name) => {
                    *listed += 1;
                    room.left -= 1;
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
            self.fields[position].add(member, depth - 1, is_element, at, room);
        }
    }

    fn add_mixed(&self, path: &mut Vec<String>, mixed: &mut Vec<(Vec<String>, String)>) {
        path.push(self.name.clone());
        if self.kind == FieldKind::Mixed {
            let mut kinds: Vec<&str> = Vec::new();
            for kind in self.kinds.iter().map(|kind| kind.plural()) {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            mixed.push((path.clone(), kinds.join(", ")));
        }
        self.fields.iter().for_each(|field| field.add_mixed(path, mixed));
        path.pop();
    }

    /// The type of the elements of an array.
    pub fn element(&self) -> FieldKind {
        self.elements.as_ref().map_or(FieldKind::Unknown, |elements| elements.kind)
    }

    fn note(&mut self, value: &Value) {
        let is_repeated = self.last.as_ref() == Some(value);
        let Some(values) = &mut self.values else { return };
        if let Some((_, visits)) = values.iter_mut().find(|(known, _)| known == value) {
            *visits += u64::from(!is_repeated);
            return;
        }
        let is_long = value.as_str().is_some_and(|text| !is_shown(text));
        if values.len() == VALUES || is_long {
            self.values = None;
        } else {
            values.push((value.clone(), 1));
        }
    }

    /// Returns all values, if there were few, each with the number of times that it came after another one.
    pub(super) fn few_values(&self) -> Option<&[(Value, u64)]> {
        let values = self.values.as_deref().filter(|values| !values.is_empty())?;
        let has_values = matches!(self.kind, FieldKind::Int | FieldKind::Text | FieldKind::Bool);
        (has_values && !self.has_number_texts()).then_some(values)
    }

    /// Whether it is a text that is a number in all messages, or an object with such a field.
    pub(super) fn has_number_texts(&self) -> bool {
        let is_number = self.kind == FieldKind::Text
            && self.number_texts > 0
            && self.number_texts + self.empty_texts == self.messages;
        is_number || self.fields.iter().any(Field::has_number_texts)
    }

    /// Whether all that came are numbers: as such or, if the topic is read so, as texts.
    pub(super) fn is_number(&self) -> bool {
        matches!(self.kind, FieldKind::Int | FieldKind::Float)
            || self.kind == FieldKind::Text && self.has_number_texts()
    }

    /// Whether all numbers so far are whole, as far as their type shows.
    pub(super) fn is_whole(&self) -> bool {
        let whole = self.series.as_ref().is_some_and(|series| series.whole == series.count);
        self.kind == FieldKind::Int || self.kind == FieldKind::Text && whole
    }
}

/// The decimal number that a text is, as `number` reads it.
fn decimal(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_decimal = !text.is_empty()
        && text.len() <= LONGEST
        && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    text.parse().ok().filter(|number: &f64| is_decimal && number.is_finite())
}

/// The square of the length of a quaternion; `None` if the members are no quaternion.
fn square_norm(members: &Map<String, Value>) -> Option<f64> {
    let part = |name| members.get(name).and_then(number);
    let parts = [part("x")?, part("y")?, part("z")?, part("w")?];
    (members.len() == parts.len()).then(|| parts.iter().map(|part| part * part).sum())
}

/// Whether a text can stand in a specification as it is.
fn is_shown(text: &str) -> bool {
    text.chars().count() <= LONGEST
        && !text.is_empty()
        && !text.contains(['"', '\\'])
        && !text.contains(is_obeyed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn types_and_ranges_are_inferred() {
        let mut fields = Fields::default();
        let mut add = |message| fields.add(&message, RecordedTime::default(), &mut 1_000);
        add(json!({"a": 1, "b": {"c": true, "stamp": {"sec": 1, "nanosec": 2}}, "d": "x", "e": [1], "f": 1}));
        add(json!({"a": -2.5, "b": {"c": null}, "d": "x", "f": "y", "g": u64::MAX}));
        let kinds: Vec<_> = fields.fields().iter().map(|field| (&*field.name, field.kind)).collect();
        use FieldKind::*;
        let expected = [("a", Float), ("b", Object), ("d", Text), ("e", Array), ("f", Mixed), ("g", Float)];
        assert_eq!(kinds, expected);
        let [a, b, d, ..] = fields.fields() else { panic!() };
        assert_eq!((a.range, a.messages, &a.last), (Some((-2.5, 1.0)), 2, &Some(json!(-2.5))));
        assert_eq!((b.fields[0].kind, b.fields[0].messages, b.fields[1].kind), (Bool, 1, Time));
        assert_eq!((d.few_values(), a.few_values()), (Some(&[(json!("x"), 1)][..]), None));
        assert!(!fields.is_cut());
        assert_eq!(fields.mixed(), [(vec!["f".to_owned()], "numbers, texts".to_owned())]);
    }

    #[test]
    fn numbers_that_cannot_be_measured_have_fractions() {
        let mut fields = Fields::default();
        for (a, b) in [(json!(1), json!([1, 2])), (json!(NO_NUMBER), json!([-NO_NUMBER, 3]))] {
            fields.add(&json!({"a": a, "b": b}), RecordedTime::default(), &mut 1_000);
        }
        let [a, b] = fields.fields() else { panic!() };
        assert_eq!((a.kind, a.range, a.messages, &a.last), (FieldKind::Float, Some((1.0, 1.0)), 2, &None));
        let array = b.array.as_ref().unwrap();
        assert_eq!((b.element(), array.nulls, array.lengths), (FieldKind::Float, 1, (2, 2)));
    }

    #[test]
    fn elements_are_one_field() {
        let mut fields = Fields::default();
        fields.add(
            &json!({"a": [{"x": 1}, {"x": 3, "y": [[0.5]]}], "b": []}),
            RecordedTime::default(),
            &mut 1_000,
        );
        fields.add(&json!({"a": [{"x": -2}], "b": [null]}), RecordedTime::default(), &mut 1_000);
        let [a, b] = fields.fields() else { panic!() };
        let elements = a.elements.as_ref().unwrap();
        let [x, y] = &elements.fields[..] else { panic!() };
        assert_eq!((a.element(), elements.messages, b.element()), (FieldKind::Object, 3, FieldKind::Unknown));
        assert_eq!((x.range, x.messages, &x.last), (Some((-2.0, 3.0)), 3, &Some(json!(-2))));
        assert_eq!(y.elements.as_ref().unwrap().element(), FieldKind::Float);
        // Fields of elements are not counted among the fields.
        let mut wide = Fields::default();
        let element: Value = (0..100).map(|i| (format!("f{i}"), json!(i))).collect();
        wide.add(&json!({"a": [element], "b": 1}), RecordedTime::default(), &mut 1_000);
        let [a, _] = wide.fields() else { panic!() };
        assert_eq!((a.elements.as_ref().unwrap().fields.len(), wide.is_cut()), (100, false));
        let deep: Value = (0..100).fold(json!(1), |inner, _| json!([inner]));
        wide.add(&json!({"a": deep}), RecordedTime::default(), &mut 1_000);
    }

    #[test]
    fn too_many_fields_are_cut() {
        let mut fields = Fields::default();
        let message = (0..300).map(|i| (format!("f{i}"), json!(i))).collect();
        fields.add(&Value::Object(message), RecordedTime::default(), &mut 1_000);
        assert_eq!((fields.fields().len(), fields.is_cut()), (FIELDS, true));
        let mut deep = Fields::default();
        deep.add(
            &(0..50).fold(json!(1), |inner, _| json!({"x": inner})),
            RecordedTime::default(),
            &mut 1_000,
        );
        assert!(deep.is_cut());
    }
}
