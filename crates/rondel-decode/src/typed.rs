//! Common parts of plans: compatibility of values and types, and errors.

use rondel_event::{Condition, Countable, Quantifier, Test, Value, ValueType};

use crate::cdr::{PlanError, PlanErrorKind};
use crate::fields::{Alternatives, Fields, Want};
use crate::sink::{Scalar, Target};

/// Type of a value without parts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Class<'d> {
    Bool,
    Integer,
    Float,
    Text,
    Bytes,
    /// Names of the constants: one for each value in ascending order, and all of them.
    Enum(&'d [(i64, Box<str>)], &'d [(Box<str>, i64)]),
}

impl Class<'_> {
    fn name(self) -> &'static str {
        match self {
            Class::Bool => "a boolean",
            Class::Integer => "an integer",
            Class::Float => "a floating-point number",
            Class::Text => "text",
            Class::Bytes => "bytes",
            Class::Enum(..) => "an enumeration",
        }
    }

    /// Returns the default value of the type.
    pub(crate) fn default(self) -> Scalar<'static> {
        match self {
            Class::Bool => Scalar::Bool(false),
            Class::Integer | Class::Enum(..) => Scalar::Int(0),
            Class::Float => Scalar::Float(0.0),
            Class::Text => Scalar::Text(b""),
            Class::Bytes => Scalar::Bytes(0),
        }
    }

    /// Returns the target of a read, if the type fits.
    fn target(self, want: &Want<'_>) -> Result<Target, PlanErrorKind> {
        use Class::{Bool, Bytes, Enum, Float, Integer, Text};
        let is_number = matches!(self, Integer | Float | Enum(..));
        let target = Target::new(want).ok_or_else(|| other_type(want, self.name()))?;
        let fits = match (&target, self) {
            (Target::Present(_) | Target::Test(_, Test::Present), _) => true,
            (Target::Bool(_) | Target::Test(_, Test::Equals(Value::Bool(_))), Bool) => true,
            (Target::Int(_), Integer | Enum(..)) => true,
            (Target::Decimal(_), Text) => true,
            (Target::Decimal(number), Integer | Enum(..)) => return Ok((**number).clone()),
            (Target::Decimal(number), Float) if !matches!(**number, Target::Int(_)) => {
                return Ok((**number).clone());
            }
            (Target::Float(_) | Target::Exact(_) | Target::IsNan(_) | Target::Element, _) => is_number,
            (Target::Test(_, Test::Number(..) | Test::Equals(Value::Int(_) | Value::Float(_))), _) => {
                is_number
            }
            (Target::Test(_, Test::Integer(..)), Integer | Enum(..)) => true,
            (Target::Text(column), Enum(labels, _)) => return Ok(Target::Label(*column, labels.into())),
            (Target::Test(bit, Test::Equals(Value::String(name))), Enum(_, values)) => {
                return match values.iter().find(|(label, _)| label == name) {
                    Some((_, value)) => Ok(Target::Test(*bit, Test::Equals(Value::Int(*value)))),
                    None => Err(PlanErrorKind::NoConstant(name.clone())),
                };
            }
            (Target::Test(bit, Test::OtherText(name)), Enum(labels, values)) => {
                let Some((_, value)) = values.iter().find(|(label, _)| label == name) else {
                    return Err(PlanErrorKind::NoConstant(name.clone()));
                };
                let others = labels.iter().map(|(other, _)| *other).filter(|other| other != value);
                return Ok(Target::OneOf(*bit, others.collect()));
            }
            (
                Target::Text(_) | Target::Test(_, Test::Equals(Value::String(_)) | Test::OtherText(_)),
                Text,
            ) => true,
            (Target::Length(_, of), Text) => *of != Some(Countable::Array),
            (Target::Length(..), Bytes) => true,
            (target, Integer | Float | Text) if target.is_time() => true,
            _ => false,
        };
        if fits { Ok(target) } else { Err(other_type(want, self.name())) }
    }
}

fn other_type(want: &Want<'_>, found: &str) -> PlanErrorKind {
    match want {
        Want::Value(wanted, _) | Want::Number(wanted, ..) => PlanErrorKind::OtherType(*wanted, found.into()),
        Want::EventTime => PlanErrorKind::OtherType(ValueType::Time, found.into()),
        Want::Element | Want::IsNan(_) | Want::Exact(_) => {
            PlanErrorKind::OtherType(ValueType::Float, found.into())
        }
        Want::Elements(..) => PlanErrorKind::NoElements,
        Want::Length(_, of) => PlanErrorKind::NoLength(*of, found.into()),
        Want::Presence(_) | Want::Test(..) => PlanErrorKind::OtherCondition(found.into()),
    }
}

/// Whether a read concerns an array or map as a whole.
pub(crate) fn is_for_all(want: &Want<'_>) -> bool {
    matches!(
        want,
        Want::Length(_, None | Some(Countable::Array)) | Want::Presence(_) | Want::Test(_, Test::Present)
    )
}

/// Errors of a plan, and the path that is being compiled.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) path: String,
    pub(crate) errors: Vec<PlanError>,
}

impl Report {
    /// Adds an error at the current path, unless it is known: the plans of CDR visit a part several times.
    pub(crate) fn error(&mut self, kind: PlanErrorKind) {
        let error = PlanError { path: self.path.as_str().into(), kind };
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    pub(crate) fn other_type(&mut self, want: &Want<'_>, found: &str) {
        self.error(other_type(want, found));
    }

    /// Extends the path by a segment. Returns the argument for [`Report::leave`].
    pub(crate) fn enter(&mut self, segment: &str) -> usize {
        let length = self.path.len();
        if length > 0 && !segment.starts_with('[') {
            self.path.push('.');
        }
        self.path.push_str(segment);
        length
    }

    pub(crate) fn leave(&mut self, length: usize) {
        self.path.truncate(length);
    }

    /// Reports a missing field, with the existing members.
    pub(crate) fn no_field(&mut self, key: &str, known: Vec<Box<str>>) {
        let outer = self.enter(key);
        self.error(PlanErrorKind::NoField(known));
        self.leave(outer);
    }

    pub(crate) fn no_keys(&mut self, fields: &Fields<'_>) {
        for (key, _) in &fields.keys {
            self.no_field(key, Vec::new());
        }
        self.no_parallel(fields);
    }

    /// Reports elements identified by names in another member, if no member has elements.
    pub(crate) fn no_parallel(&mut self, fields: &Fields<'_>) {
        for ((array, named), _) in &fields.parallel {
            let outer = self.enter(&format!("{array}{named}"));
            self.error(PlanErrorKind::NoElements);
            self.leave(outer);
        }
    }

    pub(crate) fn no_indices(&mut self, fields: &Fields<'_>) {
        for (index, _) in fields.elements() {
            let outer = self.enter(&index);
            self.error(PlanErrorKind::NoElements);
            self.leave(outer);
        }
    }

    /// Returns the reads of an element, and the conditions that it must meet.
    pub(crate) fn element<'p>(
        &mut self,
        quantifier: Quantifier,
        conditions: &'p [Condition],
    ) -> (Fields<'p>, Alternatives) {
        Fields::of_element(quantifier, conditions).unwrap_or_else(|kind| {
            self.error(kind);
            Default::default()
        })
    }

    /// Returns the targets of a value without parts.
    pub(crate) fn targets(&mut self, class: Class<'_>, fields: &Fields<'_>) -> Box<[Target]> {
        self.no_keys(fields);
        self.no_indices(fields);
        let mut targets = Vec::new();
        for want in &fields.reads {
            match class.target(want) {
                Ok(target) => targets.push(target),
                Err(kind) => self.error(kind),
            }
        }
        targets.into()
    }
}
