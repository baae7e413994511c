//! Compiles a message type and the fields that are read to a plan.

use rondel_event::{Condition, Quantifier, Slot, Test};

use super::descriptor::{Descriptors, Field, Kind};
use super::plan::{
    Action, Entry, FieldPlan, MapPlan, MessagePlan, NamedElement, Repeated, RepeatedTest, TimeForm, TimePlan,
    ValuePlan,
};
use crate::cdr::PlanErrorKind;
use crate::elements::WORDS;
use crate::fields::{Fields, Want};
use crate::schema::{is_nanos, is_seconds};
use crate::sink::{ElementTest, Scalar, Target, elements_target};
use crate::typed::{Class, Report, is_for_all};

pub(super) struct Compiler<'d> {
    descriptors: &'d Descriptors,
    pub(super) report: Report,
    /// Number of words of state that the plan needs so far.
    pub(super) words: usize,
}

impl<'d> Compiler<'d> {
    pub(super) fn new(descriptors: &'d Descriptors) -> Compiler<'d> {
        Compiler { descriptors, report: Report::default(), words: 0 }
    }

    /// Calls `work` with the path extended by a segment.
    fn below<T>(&mut self, segment: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.report.enter(segment);
        let result = work(self);
        self.report.leave(outer);
        result
    }

    pub(super) fn message(&mut self, at: usize, fields: &Fields<'_>) -> MessagePlan {
        let message = &self.descriptors.messages[at];
        self.report.no_indices(fields);
        for ((array, named), _) in &fields.parallel {
            self.below(&format!("{array}{named}"), |this| {
                this.report.error(PlanErrorKind::Unsupported(
                    "an element of a repeated field by the names in another one",
                ));
            });
        }
        let mut wanted = Vec::new();
        for (key, below) in &fields.keys {
            match message.fields.iter().position(|field| *field.name == **key) {
                Some(found) => wanted.push((found, below)),
                None => {
                    let known = message.fields.iter().map(|field| field.name.clone()).collect();
                    self.report.no_field(key, known);
                }
            }
        }
        // Other fields that may replace a field that is read.
        let oneofs: Vec<usize> =
            wanted.iter().filter_map(|(found, _)| message.fields[*found].oneof).collect();
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
                wire: field.kind.wire(),
                oneof: field.oneof,
                word: 0,
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
        // Only state that must be remembered has a word: all words are cleared with every message.
        let first_word = self.words;
        let mut next = first_word..;
        let mut of_oneofs: Vec<(usize, usize)> = Vec::new();
        for plan in &mut plans {
            if !matches!(plan.action, Action::One(ValuePlan::Scalar(_)) | Action::Replace) {
                plan.word = next.next().unwrap_or_default();
            }
            if let Action::Repeated(repeated) = &mut plan.action {
                for test in &mut repeated.tests {
                    test.word = next.start;
                    next.start += WORDS;
                }
            }
            if let Some(oneof) = plan.oneof {
                let known = of_oneofs.iter().find(|(known, _)| *known == oneof).map(|(_, word)| *word);
                let word = known.unwrap_or_else(|| next.next().unwrap_or_default());
                of_oneofs.push((oneof, word));
                plan.oneof = oneofs.contains(&oneof).then_some(word);
            }
        }
        let (present, time) = self.whole(at, fields, next.start);
        self.words = next.start + if time.is_some() { 2 } else { 0 };
        let words = self.words - first_word;
        let fields = plans.into();
        MessagePlan { present, time, fields, places, defaults: defaults.into(), first_word, words }
    }

    /// Returns the targets for a message as a whole.
    fn whole(&mut self, at: usize, fields: &Fields<'_>, word: usize) -> (Box<[Target]>, Option<TimePlan>) {
        let (mut present, mut times) = (Vec::new(), Vec::new());
        let message = &self.descriptors.messages[at];
        let part = |is_part: fn(&str) -> bool| {
            let is = |field: &&Field| is_part(&field.name) && field.kind.is_integer();
            let field = message.fields.iter().find(is).filter(|field| !field.is_repeated);
            field.map(|field| (field.number, field.kind))
        };
        let seconds = part(is_seconds);
        let nanos = part(is_nanos);
        let form = match &*message.name {
            "google.protobuf.Timestamp" => TimeForm::Timestamp,
            "google.protobuf.Duration" => TimeForm::Duration,
            _ => TimeForm::Either,
        };
        for want in &fields.reads {
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
                _ => self.report.other_type(want, &format!("a message of type {}", message.name)),
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
            if let (ValuePlan::Scalar(targets), false, Ok(class)) =
                (&value, field.is_optional, self.class(field.kind))
            {
                let default = class.default();
                // An empty text is no time: the default is then missing.
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
        match self.class(kind) {
            Ok(class) => ValuePlan::Scalar(self.report.targets(class, fields)),
            Err(Some(at)) => ValuePlan::Message(Box::new(self.message(at, fields))),
            Err(None) => {
                self.report.error(PlanErrorKind::Unsupported("a group"));
                ValuePlan::Scalar(Box::default())
            }
        }
    }

    /// Returns the type of a value without parts; otherwise the index of its message, if that can be read.
    fn class(&self, kind: Kind) -> Result<Class<'d>, Option<usize>> {
        Ok(match kind {
            Kind::Message(at) => return Err(Some(at)),
            Kind::Group => return Err(None),
            Kind::Bool => Class::Bool,
            Kind::String => Class::Text,
            Kind::Bytes => Class::Bytes,
            Kind::Enum(at) => {
                let enumeration = &self.descriptors.enums[at];
                Class::Enum(&enumeration.labels, &enumeration.values)
            }
            kind if kind.is_float() => Class::Float,
            _ => Class::Integer,
        })
    }

    fn repeated(
        &mut self,
        kind: Kind,
        fields: &Fields<'_>,
        defaults: &mut Vec<(Target, Scalar<'static>)>,
    ) -> Action {
        self.report.no_keys(fields);
        let pick = |this: &mut Self, index: u32, below| {
            this.below(&format!("[{index}]"), |this| (u64::from(index), this.value(kind, below)))
        };
        let mut picks: Vec<_> =
            fields.indices.iter().map(|(index, below)| pick(self, *index, below)).collect();
        picks.sort_by_key(|(index, _)| *index);
        let mut last = None;
        for (index, below) in &fields.ends {
            self.below(&format!("[-{index}]"), |this| match index {
                1 => last = Some(this.value(kind, below)),
                _ => this.report.error(PlanErrorKind::Unsupported(
                    "an element before the last one, counted from the end of a repeated field",
                )),
            });
        }
        let mut named = Vec::new();
        for (by, below) in &fields.named {
            let (tested, alternatives) = Fields::of_name(by).unwrap_or_default();
            let name = self.below("[]", |this| this.value(kind, &tested));
            let value = self.below(&by.to_string(), |this| this.value(kind, below));
            named.push(NamedElement { alternatives, name, value });
        }
        let named = named.into();
        let lengths = self.lengths(fields, defaults);
        let mut tests = Vec::new();
        for want in &fields.reads {
            match want {
                Want::Elements(quantifier, conditions, slot) => {
                    let without = match quantifier {
                        _ if matches!(slot, Slot::String(_)) => Scalar::Null,
                        Quantifier::Any => Scalar::Bool(false),
                        Quantifier::All => Scalar::Bool(true),
                        Quantifier::Count => Scalar::Int(0),
                        Quantifier::Min | Quantifier::Max | Quantifier::Sum | Quantifier::Mean => {
                            Scalar::Null
                        }
                    };
                    defaults.extend(elements_target(*slot).map(|target| (target, without)));
                    tests.push(self.element_test(kind, *quantifier, conditions, *slot));
                }
                want if is_for_all(want) => {}
                want => self.report.other_type(want, "a repeated field"),
            }
        }
        Action::Repeated(Box::new(Repeated {
            picks: picks.into(),
            last,
            tests: tests.into(),
            named,
            lengths,
        }))
    }

    /// Returns the targets for the number of elements. A repeated field is always present: without elements it is
    /// empty.
    fn lengths(
        &mut self,
        fields: &Fields<'_>,
        defaults: &mut Vec<(Target, Scalar<'static>)>,
    ) -> Box<[Target]> {
        let targets: Vec<Target> =
            fields.reads.iter().filter(|want| is_for_all(want)).filter_map(Target::new).collect();
        defaults.extend(targets.iter().map(|target| (target.clone(), Scalar::Bytes(0))));
        targets.into_iter().filter(|target| matches!(target, Target::Length(..))).collect()
    }

    fn element_test(
        &mut self,
        kind: Kind,
        quantifier: Quantifier,
        conditions: &[Condition],
        slot: Slot,
    ) -> RepeatedTest {
        let (fields, alternatives) = self.report.element(quantifier, conditions);
        let element = self.below("[]", |this| this.value(kind, &fields));
        RepeatedTest { of: ElementTest::new(quantifier, conditions, alternatives, slot, element), word: 0 }
    }

    fn map(
        &mut self,
        key: Kind,
        value: Kind,
        fields: &Fields<'_>,
        defaults: &mut Vec<(Target, Scalar<'static>)>,
    ) -> Action {
        self.report.no_indices(fields);
        for want in &fields.reads {
            if !is_for_all(want) {
                self.report.other_type(want, "a map");
            }
        }
        let lengths = self.lengths(fields, defaults);
        let mut entries = Vec::new();
        for (name, below) in &fields.keys {
            let number = match key {
                Kind::Bool => ["false", "true"].iter().position(|known| known == name).map(|at| at as i64),
                // Numbers beyond the signed range wrap around, as when they are read.
                _ => name.parse().ok().or_else(|| name.parse().ok().map(|number: u64| number as i64)),
            };
            if number.is_none() && key != Kind::String {
                self.report.no_field(name, Vec::new());
            }
            let plan = self.below(name, |this| this.value(value, below));
            let default = self.class(value).map_or(Scalar::Other, Class::default);
            entries.push(Entry { name: (*name).into(), number, value: plan, default });
        }
        Action::Map(Box::new(MapPlan { key, value, lengths, entries: entries.into() }))
    }
}
