//! The values of fields that messages leave out, where that means the default of their type: the JSON mapping of version 3
//! of Protobuf (ProtoJSON) does not write fields that have it.

use rondel_event::{Block, Path, Projection, Quantifier, Read, Slot, TopicId, ValueType};

use crate::specification::input::Input;

/// The default of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
enum DefaultValue {
    Bool(bool),
    Int,
    Float,
    Text,
}

/// The fields of a topic that have a default, by their slots.
#[derive(Clone, Debug)]
pub(in crate::session) struct Defaults(Box<[(Slot, DefaultValue)]>);

impl Defaults {
    /// Defaults of a topic; `None` where an omitted field keeps its value. `is_outside` is true for fields outside the
    /// payload.
    pub(in crate::session) fn of(
        input: &Input,
        projection: &Projection,
        is_outside: impl Fn(&Path) -> bool,
    ) -> Option<Defaults> {
        let has_default = |path: &Path| Some(path) != input.time.field() && !is_outside(path);
        let fields = projection.fields.iter().filter(|field| has_default(&field.path));
        let defaults = fields.filter_map(|field| Some((field.slot, default_of(&field.read)?)));
        input.absent_is_default.then(|| Defaults(defaults.collect()))
    }

    /// Writes the defaults of the fields that a message does not have, in its row.
    pub(in crate::session) fn fill(&self, block: &mut Block, row: usize) {
        for (slot, default) in &self.0 {
            if block.present(*slot) >> row & 1 == 1 {
                continue;
            }
            match (slot, default) {
                (Slot::Bool(column), DefaultValue::Bool(value)) => block.set_bool(*column, row, *value),
                (Slot::Int(column), DefaultValue::Int) => block.set_int(*column, row, 0),
                (Slot::Float(column), DefaultValue::Float) => block.set_float(*column, row, 0.0),
                (Slot::String(column), DefaultValue::Text) => block.set_string(*column, row, ""),
                _ => {}
            }
        }
    }
}

/// The default of what is read: zero, false, an empty text or array. Times, measures of elements and whether a field is there
/// have none.
fn default_of(read: &Read) -> Option<DefaultValue> {
    Some(match read {
        Read::Value(ValueType::Bool) | Read::IsNan | Read::Elements(Quantifier::Any, _) => {
            DefaultValue::Bool(false)
        }
        Read::Elements(Quantifier::All, _) => DefaultValue::Bool(true),
        Read::Value(ValueType::Int) | Read::Number(ValueType::Int) | Read::Length | Read::LengthOf(_) => {
            DefaultValue::Int
        }
        Read::Elements(Quantifier::Count, _) => DefaultValue::Int,
        Read::Value(ValueType::Float) | Read::Number(ValueType::Float) => DefaultValue::Float,
        Read::Value(ValueType::String) => DefaultValue::Text,
        _ => return None,
    })
}

/// The defaults of all topics that have some, for messages in lines.
#[derive(Clone, Debug, Default)]
pub(in crate::session) struct LineDefaults(Vec<(TopicId, Defaults)>);

impl LineDefaults {
    pub(in crate::session) fn new(all: impl Iterator<Item = (TopicId, Option<Defaults>)>) -> LineDefaults {
        LineDefaults(all.filter_map(|(topic, defaults)| Some((topic, defaults?))).collect())
    }

    /// Writes them into the rows from this one on.
    #[inline]
    pub(in crate::session) fn fill(&self, block: &mut Block, from: usize) {
        for (topic, defaults) in &self.0 {
            let mut rows = block.topic_rows(*topic) & u64::MAX.checked_shl(from as u32).unwrap_or(0);
            while rows != 0 {
                defaults.fill(block, rows.trailing_zeros() as usize);
                rows &= rows - 1;
            }
        }
    }
}
