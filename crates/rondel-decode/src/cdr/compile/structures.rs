//! Steps of structures and unions.

use super::super::error::PlanErrorKind;
use super::super::plan::{CasePlan, Load, Mutable, Number, Place, Step, Steps, Target, UnionPlan, Version};
use super::block::{EVERYWHERE, START};
use super::targets::number;
use super::{Compiler, Extent, FOURS};
use crate::fields::Fields;
use crate::schema::{DISCRIMINATOR, Definition, Extensibility, Struct, Type, Union};

impl Compiler<'_> {
    pub(super) fn structure(&mut self, structure: &Struct, fields: Option<&Fields<'_>>) {
        if let Some(fields) = fields {
            for (key, _) in &fields.keys {
                if structure.members.iter().all(|member| &*member.name != *key) {
                    let known = structure.members.iter().map(|member| member.name.clone()).collect();
                    self.report.no_field(key, known);
                }
            }
            if fields.elements().next().is_some() {
                self.report.error(PlanErrorKind::NoElements);
            }
            self.check_parallel(structure, fields);
        }
        let (present, others) = self.presence(fields);
        let extensibility = self.extensibility(structure.extensibility);
        let time = self.time_parts(structure, extensibility, &others);
        let place = self.place();
        for to in present {
            self.block.look(to, place);
        }
        match (extensibility, self.version) {
            (Extensibility::Mutable, _) => self.mutable(structure, fields, place),
            (Extensibility::Appendable, Version::Two) => {
                let steps = self.bounded_part(FOURS, |this| this.members(structure, fields, &time));
                self.push(Step::Delimited { steps, is_struct: true, place }, EVERYWHERE);
            }
            _ => self.members(structure, fields, &time),
        }
        self.settle(fields);
    }

    fn members(&mut self, structure: &Struct, fields: Option<&Fields<'_>>, time: &[(usize, Vec<Target>)]) {
        let first_position = self.tables.positions;
        self.tables.positions += fields.map_or(0, |fields| fields.parallel.len());
        for (index, member) in structure.members.iter().enumerate() {
            if self.is_done() {
                return;
            }
            if let Some(fields) = fields.filter(|fields| !fields.parallel.is_empty()) {
                self.parallel_of(member, fields, first_position);
            }
            let below = fields.and_then(|fields| fields.key(&member.name));
            let also = time.iter().find(|(at, _)| *at == index).map_or(&[][..], |(_, targets)| targets);
            self.below(&member.name, |this| {
                if member.optional {
                    let phases = if this.version == Version::One { START } else { EVERYWHERE };
                    let steps = this.bounded_or_not(phases, |this| this.value(&member.member_type, below));
                    let (version, place) = (this.version, this.place());
                    this.push(Step::Optional { steps, id: member.id, version, place }, EVERYWHERE);
                    return;
                }
                match &member.member_type {
                    Type::Primitive(primitive) if !also.is_empty() => this.number(*primitive, below, also),
                    other => this.value(other, below),
                }
            });
        }
    }

    /// Compiles the steps of an optional member, which has a length only in the first version.
    fn bounded_or_not(&mut self, phases: u8, work: impl FnOnce(&mut Self)) -> Steps {
        match self.version {
            Version::One => self.bounded_part(phases, work),
            Version::Two | Version::Packed => self.part(phases, work).into(),
        }
    }

    fn mutable(&mut self, structure: &Struct, fields: Option<&Fields<'_>>, place: Place) {
        let phases = if self.version == Version::One { START } else { FOURS };
        let mut members = Vec::new();
        for member in &structure.members {
            let below = fields.and_then(|fields| fields.key(&member.name));
            let is_passed = matches!(self.extent, Extent::Fields | Extent::End);
            if below.is_some_and(|fields| !fields.is_empty()) || !is_passed {
                let steps = self.below(&member.name, |this| {
                    this.bounded_part(phases, |this| this.value(&member.member_type, below))
                });
                members.push((member.id, steps));
            }
        }
        let known = structure.members.iter().map(|member| member.id).collect();
        let mutable = Mutable { version: self.version, members: members.into(), known, place };
        self.push(Step::Mutable(Box::new(mutable)), EVERYWHERE);
    }

    pub(super) fn union(&mut self, union: &Union, fields: Option<&Fields<'_>>) {
        if let Some(fields) = fields {
            for (key, _) in &fields.keys {
                if *key != DISCRIMINATOR && union.cases.iter().all(|case| &*case.name != *key) {
                    let known = union.cases.iter().map(|case| case.name.clone());
                    let known = known.chain([DISCRIMINATOR.into()]).collect();
                    self.report.no_field(key, known);
                }
            }
        }
        let (present, others) = self.presence(fields);
        for want in &others {
            self.report.other_type(want, "a union");
        }
        let place = self.place();
        for to in present {
            self.block.look(to, place);
        }
        match (self.extensibility(union.extensibility), self.version) {
            (Extensibility::Mutable, version) => self.cases(union, fields, Some(version), place),
            (Extensibility::Appendable, Version::Two) => {
                let steps = self.bounded_part(FOURS, |this| this.cases(union, fields, None, place));
                self.push(Step::Delimited { steps, is_struct: false, place }, EVERYWHERE);
            }
            _ => self.cases(union, fields, None, place),
        }
        self.settle(fields);
    }

    /// Compiles the discriminator and the cases, each with a header if the union is mutable.
    fn cases(&mut self, union: &Union, fields: Option<&Fields<'_>>, headers: Option<Version>, place: Place) {
        let below = fields.and_then(|fields| fields.key(DISCRIMINATOR));
        let (discriminator, targets) = self.below(DISCRIMINATOR, |this| {
            let wanted = this.wanted(below);
            match &union.discriminator {
                Type::Primitive(primitive) => (number(*primitive), this.number_loads(*primitive, &wanted)),
                Type::Named(id) => match this.schema.definition(*id) {
                    Definition::Enum(enumeration) => {
                        (number(enumeration.holder()), this.enumeration_loads(enumeration, &wanted))
                    }
                    _ => (Number::I32, Vec::new()),
                },
                _ => (Number::I32, Vec::new()),
            }
        });
        let loads = targets.into_iter().map(|to| Load { offset: 0, number: discriminator, to, place });
        let (mut cases, mut default) = (Vec::new(), None);
        for case in &union.cases {
            let below = fields.and_then(|fields| fields.key(&case.name));
            let steps = self.below(&case.name, |this| {
                let work = |this: &mut Self| this.value(&case.member_type, below);
                match headers {
                    Some(Version::One) => this.bounded_part(START, work),
                    Some(Version::Two | Version::Packed) => this.bounded_part(FOURS, work),
                    None => this.part(EVERYWHERE, work).into(),
                }
            });
            if case.is_default {
                default = Some(cases.len());
            }
            cases.push(CasePlan { labels: case.labels.clone().into(), id: case.id, steps });
        }
        let plan = UnionPlan {
            discriminator,
            align: self.align(discriminator.size()) as usize,
            loads: loads.collect(),
            cases: cases.into(),
            default,
            headers,
            place,
        };
        self.push(Step::Union(Box::new(plan)), EVERYWHERE);
    }
}
