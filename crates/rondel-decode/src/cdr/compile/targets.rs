//! Targets for a value of each type.

use rondel_event::{Comparison, Countable, Slot, Test, Value, ValueType};

use super::super::error::PlanErrorKind;
use super::super::plan::{Enumeration, Number, Target, TextTarget, TimeTarget};
use super::{Compiler, Extent};
use crate::fields::Want;
use crate::schema::{Enum, Extensibility, Primitive, Struct};

/// Reads of one value.
pub(super) type Wanted<'p> = Vec<Want<'p>>;

pub(super) fn number(primitive: Primitive) -> Number {
    match primitive {
        Primitive::Bool => Number::Bool,
        Primitive::Octet | Primitive::Char | Primitive::Uint8 => Number::U8,
        Primitive::Int8 => Number::I8,
        Primitive::WChar | Primitive::Uint16 => Number::U16,
        Primitive::Int16 => Number::I16,
        Primitive::Uint32 => Number::U32,
        Primitive::Int32 => Number::I32,
        Primitive::Uint64 => Number::U64,
        Primitive::Int64 => Number::I64,
        Primitive::Float32 => Number::F32,
        Primitive::Float64 => Number::F64,
    }
}

fn name(primitive: Primitive) -> &'static str {
    match primitive {
        Primitive::Bool => "a boolean",
        Primitive::Octet => "a byte",
        Primitive::Char | Primitive::WChar => "a character",
        Primitive::Float32 | Primitive::Float64 => "a floating-point number",
        _ => "an integer",
    }
}

/// Returns the target for the presence of a value, if that is read.
pub(super) fn presence(want: &Want<'_>) -> Option<Target> {
    match want {
        Want::Presence(Slot::Bool(column)) => Some(Target::Present(*column)),
        Want::Test(bit, Test::Present) => Some(Target::Met(*bit)),
        _ => None,
    }
}

/// Returns the column of a time or duration, or the target of the event time.
fn time_target(want: &Want<'_>) -> Option<TimeTarget> {
    match want {
        Want::EventTime => Some(TimeTarget::Event),
        Want::Value(ValueType::Time | ValueType::Duration, Slot::Int(column)) => {
            Some(TimeTarget::Column(*column))
        }
        _ => None,
    }
}

impl Compiler<'_> {
    fn test(&mut self, test: &Test) -> u32 {
        self.tables.tests.push(test.clone());
        self.tables.tests.len() as u32 - 1
    }

    pub(super) fn number_loads(&mut self, primitive: Primitive, wanted: &Wanted<'_>) -> Vec<Target> {
        let is_bool = primitive == Primitive::Bool;
        let is_letter = matches!(primitive, Primitive::Char | Primitive::WChar);
        let is_float = matches!(primitive, Primitive::Float32 | Primitive::Float64);
        let is_wide = matches!(primitive, Primitive::Int64 | Primitive::Uint64);
        let mut targets = Vec::new();
        for want in &wanted.iter().map(|want| want.of_number()).collect::<Wanted<'_>>() {
            let target = match want {
                Want::Value(ValueType::Bool, Slot::Bool(column)) if is_bool => Target::Bool(*column),
                Want::Value(ValueType::Int, Slot::Int(column)) if !is_bool && !is_float => {
                    Target::Int(*column)
                }
                Want::Value(ValueType::Float, Slot::Float(column)) if !is_bool => Target::Float(*column),
                Want::Exact(Slot::Float(column)) if is_wide => Target::Exact(*column),
                Want::Exact(Slot::Float(column)) if !is_bool => Target::Float(*column),
                Want::Value(ValueType::String, Slot::String(column)) if is_letter => Target::Letter(*column),
                Want::Element if !is_bool => Target::Element,
                Want::IsNan(Slot::Bool(column)) if !is_bool => Target::IsNan(*column),
                Want::Test(bit, test @ Test::Equals(Value::Bool(_))) if is_bool => {
                    Target::Test(*bit, self.test(test))
                }
                Want::Test(
                    bit,
                    test @ (Test::Number(..) | Test::Equals(Value::Int(_) | Value::Float(_))),
                ) if !is_bool => Target::Test(*bit, self.test(test)),
                Want::Test(bit, test @ Test::Integer(..)) if !is_bool && !is_float => {
                    Target::Test(*bit, self.test(test))
                }
                want => match (presence(want), time_target(want)) {
                    (Some(target), _) => target,
                    (_, Some(to)) if !is_bool && !is_letter => Target::Scaled(self.unit_ns, to),
                    _ => {
                        self.report.other_type(want, name(primitive));
                        continue;
                    }
                },
            };
            targets.push(target);
        }
        if self.extent == Extent::Whole && is_bool {
            targets.push(Target::CheckBool);
        }
        targets
    }

    pub(super) fn enumeration_loads(&mut self, enumeration: &Enum, wanted: &Wanted<'_>) -> Vec<Target> {
        let mut targets = Vec::new();
        if wanted.is_empty() && self.extent != Extent::Whole {
            return targets;
        }
        let mut constants: Vec<(i32, Box<str>)> =
            enumeration.constants.iter().map(|(name, value)| (*value, name.clone())).collect();
        constants.sort_by_key(|(value, _)| *value);
        let table = Enumeration(constants.into());
        let known = self.tables.enumerations.iter().position(|known| *known == table).unwrap_or_else(|| {
            self.tables.enumerations.push(table);
            self.tables.enumerations.len() - 1
        }) as u32;
        // The value is checked before it is used.
        targets.push(Target::CheckEnum(known));
        for want in &wanted.iter().map(|want| want.of_number()).collect::<Wanted<'_>>() {
            targets.push(match want {
                Want::Value(ValueType::Int, Slot::Int(column)) => Target::Int(*column),
                Want::Element => Target::Element,
                Want::IsNan(Slot::Bool(column)) => Target::IsNan(*column),
                Want::Value(ValueType::Float, Slot::Float(column)) | Want::Exact(Slot::Float(column)) => {
                    Target::Float(*column)
                }
                Want::Value(ValueType::String, Slot::String(column)) => Target::Label(*column, known),
                Want::Test(
                    bit,
                    test @ (Test::Number(..)
                    | Test::Integer(..)
                    | Test::Equals(Value::Int(_) | Value::Float(_))),
                ) => Target::Test(*bit, self.test(test)),
                Want::Test(bit, Test::Equals(Value::String(label))) => {
                    let Some((_, value)) = enumeration.constants.iter().find(|(name, _)| name == label)
                    else {
                        self.report.error(PlanErrorKind::NoConstant(label.clone()));
                        continue;
                    };
                    let test = self.test(&Test::Equals(Value::Int(i64::from(*value))));
                    Target::Test(*bit, test)
                }
                Want::Test(bit, Test::OtherText(label)) => {
                    let Some((_, value)) = enumeration.constants.iter().find(|(name, _)| name == label)
                    else {
                        self.report.error(PlanErrorKind::NoConstant(label.clone()));
                        continue;
                    };
                    // The value is one of the constants, since it is checked before.
                    let test = self.test(&Test::Number(Comparison::NotEqual, f64::from(*value)));
                    Target::Test(*bit, test)
                }
                want => match presence(want) {
                    Some(target) => target,
                    None => {
                        self.report.other_type(want, "an enumeration");
                        continue;
                    }
                },
            });
        }
        targets
    }

    pub(super) fn text_targets(&mut self, wanted: &Wanted<'_>) -> Vec<TextTarget> {
        let mut targets = Vec::new();
        for want in wanted {
            targets.push(match want {
                Want::Value(ValueType::String, Slot::String(column)) => TextTarget::Column(*column),
                Want::Number(_, Slot::Int(column), _) => TextTarget::Decimal(Target::Int(*column)),
                Want::Number(_, Slot::Float(column), true) => TextTarget::Decimal(Target::Exact(*column)),
                Want::Number(_, Slot::Float(column), _) => TextTarget::Decimal(Target::Float(*column)),
                Want::Length(Slot::Int(column), None | Some(Countable::Text)) => TextTarget::Length(*column),
                Want::Presence(Slot::Bool(column)) => TextTarget::Present(*column),
                Want::Test(bit, Test::Present) => TextTarget::Met(*bit),
                Want::Test(bit, test @ (Test::Equals(Value::String(_)) | Test::OtherText(_))) => {
                    TextTarget::Test(*bit, self.test(test))
                }
                want => {
                    self.report.other_type(want, "text");
                    continue;
                }
            });
        }
        targets
    }

    /// Returns the targets of the members of a time, by their positions: a structure of seconds and nanoseconds is one.
    pub(super) fn time_parts(
        &mut self,
        structure: &Struct,
        extensibility: Extensibility,
        wanted: &Wanted<'_>,
    ) -> Vec<(usize, Vec<Target>)> {
        if wanted.is_empty() {
            return Vec::new();
        }
        let stamp = structure.stamp().filter(|_| extensibility != Extensibility::Mutable);
        let Some((seconds, nanos)) = stamp else {
            wanted.iter().for_each(|want| self.report.other_type(want, "a structure"));
            return Vec::new();
        };
        let mut last = Vec::new();
        for want in wanted {
            match time_target(want) {
                Some(to) if seconds < nanos => last.push(Target::NanosLast(to)),
                Some(to) => last.push(Target::SecondsLast(to)),
                None => self.report.other_type(want, "a time"),
            }
        }
        if seconds < nanos {
            vec![(seconds, vec![Target::Seconds]), (nanos, last)]
        } else {
            vec![(nanos, vec![Target::Nanos]), (seconds, last)]
        }
    }
}
