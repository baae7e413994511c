//! From a message type and the fields that are read to a plan.

use rondel_event::{Condition, Quantifier, Slot, Test, Value, ValueType};

use super::descriptor::{Descriptors, Field, Kind};
use super::plan::{
    Action, ElementTest, Entry, FieldPlan, MapPlan, MessagePlan, Repeated, TimeForm, TimePlan, ValuePlan,
};
use crate::cdr::{PlanError, PlanErrorKind};
use crate::fields::{Fields, Want};
use crate::sink::{Scalar, Target};

pub(super) struct Compiler<'d> {
    descriptors: &'d Descriptors,
    path: String,
    pub(super) errors: Vec<PlanError>,
    /// How many words of state the plan needs so far.
    pub(super) words: usize,
}

impl<'d> Compiler<'d> {
    pub(super) fn new(descriptors: &'d Descriptors) -> Compiler<'d> {
        Compiler { descriptors, path: String::new(), errors: Vec::new(), words: 0 }
    }

    fn error(&mut self, kind: PlanErrorKind) {
        self.errors.push(PlanError { path: self.path.as_str().into(), kind });
    }

    fn other_type(&mut self, want: &Want<'_>, found: &str) {
        self.error(match want {
            Want::Value(wanted, _) => PlanErrorKind::OtherType(*wanted, found.into()),
            Want::EventTime => PlanErrorKind::OtherType(ValueType::Time, found.into()),
            Want::Elements(..) => PlanErrorKind::NoElements,
            Want::Length(_) => PlanErrorKind::NoLength(found.into()),
            Want::Presence(_) | Want::Test(..) => PlanErrorKind::OtherCondition(found.into()),
        });
    }

    /// Does something one step further down the path.
    fn below<T>(&mut self, segment: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if length > 0 && !segment.starts_with('[') {
            self.path.push('.');
        }
        self.path.push_str(segment);
        let result = work(self);
        self.path.truncate(length);
        result
    }

    fn no_field(&mut self, key: &str, known: Vec<Box<str>>) {
        self.below(key, |this| this.error(PlanErrorKind::NoField(known)));
    }

    fn no_parts(&mut self, fields: &Fields<'_>) {
        for (key, _) in &fields.keys {
            self.no_field(key, Vec::new());
        }
        self.no_indices(fields);
    }

    fn no_indices(&mut self, fields: &Fields<'_>) {
        for (index, _) in &fields.indices {
            self.below(&format!("[{index}]"), |this| this.error(PlanErrorKind::NoElements));
        }
    }

    pub(super) fn message(&mut self, at: usize, fields: &Fields<'_>) -> MessagePlan {
        let message = &self.descriptors.messages[at];
        self.no_indices(fields);
        let mut wanted = Vec::new();
        for (key, below) in &fields.keys {
            match message.fields.iter().position(|field| *field.name == **key) {
                Some(found) => wanted.push((found, below)),
                None => {
                    let known = message.fields.iter().map(|field| field.name.clone()).collect();
                    self.no_field(key, known);
                }
            }
        }
        // What else may come in place of a field that is read.
        let oneofs: Vec<usize> =
            wanted.iter().filter_map(|(found, _)| message.fields[*found].oneof).collect();
        let first_word = self.words;
        let words = message.fields.len() + message.oneofs + 2;
        self.words += words;
        let (mut plans, mut defaults) = (Vec::new(), Vec::new());
        for (found, field) in message.fields.iter().enumerate() {
            let below = wanted.iter().find(|(at, _)| *at == found).map(|(_, below)| *below);
            let action = match below {
                Some(below) => self.below(&field.name, |this| this.field(field, below, &mut defaults)),
                None if field.oneof.is_some_and(|oneof| oneofs.contains(&oneof)) => Action::Replace,
                None => continue,
            };
            plans.push(FieldPlan {
                number: field.number,
                name: field.name.clone(),
                kind: field.kind,
                oneof: field.oneof.map(|oneof| first_word + message.fields.len() + oneof),
                word: first_word + found,
                action,
            });
        }
        plans.sort_by_key(|plan| plan.number);
        plans.dedup_by_key(|plan| plan.number);
        let mut places = [0; 32];
        for (place, plan) in (1..=32).zip(&plans) {
            if let Some(at) = places.get_mut(plan.number as usize) {
                *at = place;
            }
        }
        let (present, time) = self.whole(at, fields, first_word + words - 2);
        let fields = plans.into();
        MessagePlan { present, time, fields, places, defaults: defaults.into(), first_word, words }
    }

    /// What is wanted of a message as a whole.
    fn whole(&mut self, at: usize, fields: &Fields<'_>, word: usize) -> (Box<[Target]>, Option<TimePlan>) {
        let (mut present, mut times) = (Vec::new(), Vec::new());
        let message = &self.descriptors.messages[at];
        let part = |names: &[&str]| {
            let is = |field: &&Field| names.contains(&&*field.name) && field.kind.is_integer();
            let field = message.fields.iter().find(is).filter(|field| !field.is_repeated);
            field.map(|field| (field.number, field.kind))
        };
        let seconds = part(&["sec", "secs", "seconds"]);
        let nanos = part(&["nanosec", "nanosecs", "nsec", "nsecs", "nanos", "nanoseconds"]);
        let form = match &*message.name {
            "google.protobuf.Timestamp" => TimeForm::Timestamp,
            "google.protobuf.Duration" => TimeForm::Duration,
            _ => TimeForm::Either,
        };
        for want in &fields.wants {
            match Target::new(want) {
                Some(target @ Target::Present(_) | target @ Target::Test(_, Test::Present)) => {
                    present.push(target);
                }
                Some(target @ (Target::Time(_) | Target::EventTime))
                    if form != TimeForm::Duration && seconds.is_some() && nanos.is_some() =>
                {
                    times.push(target);
                }
                Some(target @ Target::Duration(_))
                    if form != TimeForm::Timestamp && seconds.is_some() && nanos.is_some() =>
                {
                    times.push(target);
                }
                _ => self.other_type(want, &format!("a message of type {}", message.name)),
            }
        }
        let time = match (seconds, nanos) {
            (Some(seconds), Some(nanos)) if !times.is_empty() => {
                Some(TimePlan { seconds, nanos, form, targets: times.into(), word })
            }
            _ => None,
        };
        (present.into(), time)
    }

    fn field(
        &mut self,
        field: &Field,
        fields: &Fields<'_>,
        defaults: &mut Vec<(Target, Scalar<'static>)>,
    ) -> Action {
        if !field.is_repeated {
            let value = self.value(field.kind, fields);
            if let (ValuePlan::Scalar(targets), false) = (&value, field.is_optional) {
                let default = default(field.kind);
                // An empty text is no time: none is there then.
                let has_default = |target: &&Target| field.kind != Kind::String || !target.is_time();
                let targets = targets.iter().filter(has_default);
                defaults.extend(targets.map(|target| (target.clone(), default)));
            }
            return Action::One(value);
        }
        if let Kind::Message(at) = field.kind
            && let message = &self.descriptors.messages[at]
            && message.is_entry
        {
            let kind = |number| message.fields.iter().find(|field| field.number == number);
            if let (Some(key), Some(value)) = (kind(1), kind(2)) {
                return self.map(key.kind, value.kind, fields, defaults);
            }
        }
        self.repeated(field.kind, fields, defaults)
    }

    fn value(&mut self, kind: Kind, fields: &Fields<'_>) -> ValuePlan {
        match kind {
            Kind::Message(at) => ValuePlan::Message(Box::new(self.message(at, fields))),
            _ => {
                if kind == Kind::Group {
                    self.error(PlanErrorKind::Unsupported("a group"));
                }
                self.no_parts(fields);
                ValuePlan::Scalar(fields.wants.iter().filter_map(|want| self.target(kind, want)).collect())
            }
        }
    }

    /// The target of what is wanted, if the field has the type.
    fn target(&mut self, kind: Kind, want: &Want<'_>) -> Option<Target> {
        let target = Target::new(want);
        let is_number = kind.is_integer() || kind.is_float();
        match (kind, target) {
            (Kind::Group, _) => {}
            (_, Some(target @ Target::Present(_) | target @ Target::Test(_, Test::Present))) => {
                return Some(target);
            }
            (Kind::Bool, Some(target @ Target::Bool(_))) => return Some(target),
            (Kind::Bool, Some(target @ Target::Test(_, Test::Equals(Value::Bool(_))))) => {
                return Some(target);
            }
            (kind, Some(target @ Target::Int(_))) if kind.is_integer() => return Some(target),
            (Kind::Enum(_), Some(target @ (Target::Int(_) | Target::Float(_)))) => return Some(target),
            (_, Some(target @ Target::Float(_))) if is_number => return Some(target),
            (
                kind,
                Some(
                    target
                    @ Target::Test(_, Test::Number(..) | Test::Equals(Value::Int(_) | Value::Float(_))),
                ),
            ) if is_number || matches!(kind, Kind::Enum(_)) => {
                return Some(target);
            }
            (Kind::Enum(at), Some(Target::Text(column))) => {
                let labels = self.descriptors.enums[at].labels.clone();
                return Some(Target::Label(column, labels.into()));
            }
            (Kind::Enum(at), Some(Target::Test(bit, Test::Equals(Value::String(name))))) => {
                let values = &self.descriptors.enums[at].values;
                match values.iter().find(|(label, _)| *label == name) {
                    Some((_, value)) => return Some(Target::Test(bit, Test::Equals(Value::Int(*value)))),
                    None => self.error(PlanErrorKind::NoConstant(name)),
                }
            }
            (Kind::String, Some(target @ (Target::Text(_) | Target::Length(_)))) => return Some(target),
            (Kind::String, Some(target @ Target::Test(_, Test::Equals(Value::String(_))))) => {
                return Some(target);
            }
            (Kind::Bytes, Some(target @ Target::Length(_))) => return Some(target),
            (kind, Some(target)) if target.is_time() && (is_number || kind == Kind::String) => {
                return Some(target);
            }
            _ => self.other_type(want, name(kind)),
        }
        None
    }

    fn repeated(
        &mut self,
        kind: Kind,
        fields: &Fields<'_>,
        defaults: &mut Vec<(Target, Scalar<'static>)>,
    ) -> Action {
        for (key, _) in &fields.keys {
            self.no_field(key, Vec::new());
        }
        let pick = |this: &mut Self, index: u32, below| {
            this.below(&format!("[{index}]"), |this| (u64::from(index), this.value(kind, below)))
        };
        let mut picks: Vec<_> =
            fields.indices.iter().map(|(index, below)| pick(self, *index, below)).collect();
        picks.sort_by_key(|(index, _)| *index);
        let lengths = self.lengths(fields, defaults);
        let mut tests = Vec::new();
        for want in &fields.wants {
            match want {
                Want::Elements(quantifier, conditions, Slot::Bool(column)) => {
                    let test = self.element_test(kind, *quantifier, conditions, *column);
                    let is_all = test.quantifier == Quantifier::All;
                    defaults.push((test.result.clone(), Scalar::Bool(is_all)));
                    tests.push(test);
                }
                Want::Length(_) | Want::Presence(_) | Want::Test(_, Test::Present) => {}
                want => self.other_type(want, "a repeated field"),
            }
        }
        Action::Repeated(Box::new(Repeated { picks: picks.into(), tests: tests.into(), lengths }))
    }

    /// The targets for the number of elements. A repeated field is always there: without elements it is empty.
    fn lengths(
        &mut self,
        fields: &Fields<'_>,
        defaults: &mut Vec<(Target, Scalar<'static>)>,
    ) -> Box<[Target]> {
        let is_for_all = |want: &&Want<'_>| {
            matches!(want, Want::Length(_) | Want::Presence(_) | Want::Test(_, Test::Present))
        };
        let targets: Vec<Target> = fields.wants.iter().filter(is_for_all).filter_map(Target::new).collect();
        defaults.extend(targets.iter().map(|target| (target.clone(), Scalar::Bytes(0))));
        targets.into_iter().filter(|target| matches!(target, Target::Length(_))).collect()
    }

    fn element_test(
        &mut self,
        kind: Kind,
        quantifier: Quantifier,
        conditions: &[Condition],
        column: u32,
    ) -> ElementTest {
        if conditions.len() > 64 {
            self.error(PlanErrorKind::Unsupported("an element with more than 64 conditions"));
        }
        let fields = Fields::of_conditions(conditions);
        let element = self.below("[]", |this| this.value(kind, &fields));
        let all = (0..conditions.len().min(64)).fold(0, |all, bit| all | 1 << bit);
        ElementTest { quantifier, result: Target::Bool(column), all, element }
    }

    fn map(
        &mut self,
        key: Kind,
        value: Kind,
        fields: &Fields<'_>,
        defaults: &mut Vec<(Target, Scalar<'static>)>,
    ) -> Action {
        self.no_indices(fields);
        for want in &fields.wants {
            if !matches!(want, Want::Length(_) | Want::Presence(_) | Want::Test(_, Test::Present)) {
                self.other_type(want, "a map");
            }
        }
        let lengths = self.lengths(fields, defaults);
        let mut entries = Vec::new();
        for (name, below) in &fields.keys {
            let number = match key {
                Kind::Bool => ["false", "true"].iter().position(|known| known == name).map(|at| at as i64),
                // Numbers beyond the signed range are kept in it, as they are read.
                _ => name.parse().ok().or_else(|| name.parse().ok().map(|number: u64| number as i64)),
            };
            if number.is_none() && key != Kind::String {
                self.no_field(name, Vec::new());
            }
            let plan = self.below(name, |this| this.value(value, below));
            entries.push(Entry { name: (*name).into(), number, value: plan, default: default(value) });
        }
        Action::Map(Box::new(MapPlan { key, value, lengths, entries: entries.into() }))
    }
}

/// What a field without presence is if it does not come.
fn default(kind: Kind) -> Scalar<'static> {
    match kind {
        Kind::Double | Kind::Float => Scalar::Float(0.0),
        Kind::Bool => Scalar::Bool(false),
        Kind::String => Scalar::Text(b""),
        Kind::Bytes => Scalar::Bytes(0),
        _ => Scalar::Int(0),
    }
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "a boolean",
        Kind::String => "text",
        Kind::Bytes => "bytes",
        Kind::Enum(_) => "an enumeration",
        Kind::Message(_) | Kind::Group => "a message",
        kind if kind.is_float() => "a floating-point number",
        _ => "an integer",
    }
}
