//! Compiles a message type and the fields that are read to a plan.

use rondel_event::{Named, Test};

use super::plan::{
    Action, FieldPlan, NamedElement, Parallel, StructPlan, TablePlan, TimePlan, Value, VectorPlan,
};
use super::schema::{Field, Kind, Number, Object, Types};
use crate::cdr::PlanErrorKind;
use crate::fields::{Fields, Want};
use crate::schema::{is_nanos, is_seconds};
use crate::sink::{ElementTest, Scalar, Target};
use crate::typed::{Class, Report, is_for_all};

pub(super) struct Compiler<'s> {
    pub(super) types: &'s Types,
    pub(super) report: Report,
}

impl<'s> Compiler<'s> {
    /// Calls `work` with the path extended by a segment.
    fn below<T>(&mut self, segment: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.report.enter(segment);
        let result = work(self);
        self.report.leave(outer);
        result
    }

    /// Returns the members that are read, with the reads of each.
    fn members<'f, 'p>(
        &mut self,
        object: &'s Object,
        fields: &'f Fields<'p>,
    ) -> Vec<(&'s Field, &'f Fields<'p>)> {
        self.report.no_indices(fields);
        let mut members = Vec::new();
        for (key, below) in &fields.keys {
            match object.fields.iter().find(|field| *field.name == **key) {
                Some(field) => members.push((field, below)),
                None => {
                    let known = object.fields.iter().map(|field| field.name.clone()).collect();
                    self.report.no_field(key, known);
                }
            }
        }
        members
    }

    pub(super) fn table(&mut self, at: usize, fields: &Fields<'_>) -> TablePlan {
        let object = &self.types.objects[at];
        let mut plans = Vec::new();
        for (field, below) in self.members(object, fields) {
            let action = self.below(&field.name, |this| this.action(object, field, below));
            plans.extend(action.map(|action| FieldPlan {
                entry: field.offset,
                name: field.name.clone(),
                action,
            }));
        }
        let (present, time) = self.whole(object, fields);
        let parallel = self.parallel(object, fields);
        TablePlan { present, time, fields: plans.into(), parallel }
    }

    fn structure(&mut self, at: usize, fields: &Fields<'_>) -> Box<StructPlan> {
        let object = &self.types.objects[at];
        let mut members = Vec::new();
        for (field, below) in self.members(object, fields) {
            let value = self.below(&field.name, |this| this.value(&field.kind, below));
            members.extend(value.map(|value| (usize::from(field.offset), field.name.clone(), value)));
        }
        self.report.no_parallel(fields);
        let (present, time) = self.whole(object, fields);
        Box::new(StructPlan { size: object.size, present, time, members: members.into() })
    }

    /// Returns the targets for a table or structure as a whole.
    fn whole(&mut self, object: &Object, fields: &Fields<'_>) -> (Box<[Target]>, Option<TimePlan>) {
        let (mut present, mut times) = (Vec::new(), Vec::new());
        let part = |is_part: fn(&str) -> bool| {
            object.fields.iter().find_map(|field| match field.kind {
                Kind::Number(number, None) if number.is_integer() && is_part(&field.name) => {
                    Some((field.offset, number, field.default_int))
                }
                _ => None,
            })
        };
        let parts = part(is_seconds).zip(part(is_nanos));
        for want in &fields.reads {
            match Target::new(want) {
                Some(target @ (Target::Present(_) | Target::Test(_, Test::Present))) => present.push(target),
                Some(target) if target.is_time() && parts.is_some() => times.push(target),
                _ => self.report.other_type(want, &format!("a value of type {}", object.name)),
            }
        }
        let time = parts.filter(|_| !times.is_empty());
        let time = time.map(|(seconds, nanos)| TimePlan { seconds, nanos, targets: times.into() });
        (present.into(), time)
    }

    fn class(&self, number: Number, enumeration: Option<usize>) -> Class<'s> {
        match (number, enumeration) {
            (Number::Bool, _) => Class::Bool,
            (_, Some(at)) => Class::Enum(&self.types.enums[at].labels, &self.types.enums[at].values),
            (number, None) if number.is_float() => Class::Float,
            _ => Class::Integer,
        }
    }

    fn action(&mut self, object: &'s Object, field: &'s Field, fields: &Fields<'_>) -> Option<Action> {
        match &field.kind {
            Kind::Number(number, enumeration) => {
                let targets = self.report.targets(self.class(*number, *enumeration), fields);
                let default = (!field.is_optional).then(|| default(*number, field));
                Some(Action::Number(*number, targets, default))
            }
            Kind::Union(at) => {
                let name = format!("{}_type", field.name);
                let case = object.fields.iter().find(|field| *field.name == *name)?.offset;
                self.union(*at, case, fields)
            }
            kind => self.value(kind, fields).map(Action::Value),
        }
    }

    fn union(&mut self, at: usize, case: u16, fields: &Fields<'_>) -> Option<Action> {
        self.report.no_indices(fields);
        let union = &self.types.enums[at];
        let mut cases = Vec::new();
        for (key, below) in &fields.keys {
            let found = union.cases.iter().find(|(name, number, _)| **name == **key && *number != 0);
            let Some((name, number, kind)) = found else {
                let known = union.cases.iter().filter(|(_, number, _)| *number != 0);
                self.report.no_field(key, known.map(|(name, ..)| name.clone()).collect());
                continue;
            };
            let value = self.below(key, |this| match kind {
                Kind::Object(at) if this.types.objects[*at].is_struct => {
                    Some(Value::FarStruct(this.structure(*at, below)))
                }
                kind => this.value(kind, below),
            });
            cases.extend(value.map(|value| (*number, name.clone(), value)));
        }
        let mut present = Vec::new();
        for want in &fields.reads {
            match Target::new(want) {
                Some(target @ (Target::Present(_) | Target::Test(_, Test::Present))) => present.push(target),
                _ => self.report.other_type(want, "a union"),
            }
        }
        Some(Action::Union { case, present: present.into(), cases: cases.into() })
    }

    fn value(&mut self, kind: &'s Kind, fields: &Fields<'_>) -> Option<Value> {
        Some(match kind {
            Kind::Number(number, enumeration) => {
                Value::Number(*number, self.report.targets(self.class(*number, *enumeration), fields))
            }
            Kind::Text => Value::Text(self.report.targets(Class::Text, fields)),
            Kind::Object(at) if self.types.objects[*at].is_struct => {
                Value::Struct(self.structure(*at, fields))
            }
            Kind::Object(at) => Value::Table(Box::new(self.table(*at, fields))),
            Kind::Vector(element) => Value::Vector(Box::new(self.elements(element, None, fields))),
            Kind::Array(element, length) => {
                let plan = Box::new(self.elements(element, Some(*length), fields));
                Value::Array(plan, *length as usize)
            }
            Kind::Union(_) => {
                self.report.error(PlanErrorKind::Unsupported("a vector of unions"));
                return None;
            }
            Kind::Other => {
                self.report.error(PlanErrorKind::Unsupported("a type that this version does not know"));
                return None;
            }
        })
    }

    fn elements(&mut self, element: &'s Kind, length: Option<u32>, fields: &Fields<'_>) -> VectorPlan {
        self.report.no_keys(fields);
        let mut picks = Vec::new();
        for (index, below) in &fields.indices {
            let outer = self.report.enter(&format!("[{index}]"));
            match length {
                Some(length) if *index >= length => self.report.error(PlanErrorKind::NoElement(length)),
                _ => picks.extend(self.value(element, below).map(|value| (*index, value))),
            }
            self.report.leave(outer);
        }
        let mut ends = Vec::new();
        for (index, below) in &fields.ends {
            let outer = self.report.enter(&format!("[-{index}]"));
            match length {
                Some(length) if *index > length => self.report.error(PlanErrorKind::NoElement(length)),
                _ => ends.extend(self.value(element, below).map(|value| (*index, value))),
            }
            self.report.leave(outer);
        }
        let mut named = Vec::new();
        for (by, below) in &fields.named {
            named.extend(self.named(element, by, element, below));
        }
        let (mut whole, mut tests) = (Vec::new(), Vec::new());
        for want in &fields.reads {
            match want {
                want if is_for_all(want) => whole.extend(Target::new(want)),
                Want::Elements(quantifier, conditions, slot) => {
                    let (tested, alternatives) = self.report.element(*quantifier, conditions);
                    let element = self.below("[]", |this| this.value(element, &tested));
                    tests.extend(element.map(|element| {
                        ElementTest::new(*quantifier, conditions, alternatives, *slot, element)
                    }));
                }
                want => self.report.other_type(want, "a vector"),
            }
        }
        VectorPlan {
            size: size(self.types, element),
            whole: whole.into(),
            picks: picks.into(),
            ends: ends.into(),
            tests: tests.into(),
            named: named.into(),
        }
    }

    /// Returns the plan for the element with a name, which elements of this kind contain.
    fn named(
        &mut self,
        holder: &'s Kind,
        by: &Named,
        element: &'s Kind,
        below: &Fields<'_>,
    ) -> Option<NamedElement> {
        let (tested, alternatives) = Fields::of_name(by).unwrap_or_default();
        let name = self.below("[]", |this| this.value(holder, &tested))?;
        let value = self.below(&by.to_string(), |this| this.value(element, below))?;
        let mut slots = Vec::new();
        below.slots(&mut slots);
        Some(NamedElement { alternatives, name, value, slots: slots.into() })
    }

    /// Returns the plans for elements of vectors in a table that are identified by the names in other vectors of it.
    fn parallel(&mut self, object: &'s Object, fields: &Fields<'_>) -> Box<[Parallel]> {
        let mut all = Vec::new();
        for ((array, by), below) in &fields.parallel {
            let vector = |name: &str| {
                let field = object.fields.iter().find(|field| *field.name == *name)?;
                match &field.kind {
                    Kind::Vector(element) => Some((field.offset, &**element)),
                    _ => None,
                }
            };
            let names = by.key().to_string();
            let (Some((names, holder)), Some((entry, element))) = (vector(&names), vector(array)) else {
                let missing = if vector(&names).is_none() { &names } else { *array };
                self.below(missing, |this| this.report.error(PlanErrorKind::NoElements));
                continue;
            };
            let own = by.of_names();
            let element_of_name = self.below(array, |this| this.named(holder, &own, element, below));
            all.extend(element_of_name.map(|found| Parallel {
                names: (names, size(self.types, holder)),
                array: (entry, size(self.types, element)),
                member: (*array).into(),
                element: found,
            }));
        }
        all.into()
    }
}

/// Returns the size of an element of a vector or an array; 0 if it cannot be read.
pub(super) fn size(types: &Types, kind: &Kind) -> usize {
    match kind {
        Kind::Number(number, _) => number.size(),
        Kind::Object(at) if types.objects[*at].is_struct => types.objects[*at].size,
        Kind::Union(_) | Kind::Other => 0,
        _ => 4,
    }
}

/// Returns the default of a missing number.
pub(super) fn default(number: Number, field: &Field) -> Scalar<'static> {
    match number {
        Number::Bool => Scalar::Bool(field.default_int != 0),
        Number::F32 | Number::F64 => Scalar::Float(field.default_float),
        // The bits are those of an unsigned number.
        Number::U64 if field.default_int < 0 => Scalar::Large(field.default_int as u64 as f64),
        _ => Scalar::Int(field.default_int),
    }
}
