//! Compiles a schema and the fields that are read to a plan.

mod block;
mod by_name;
mod fixed;
mod targets;

use std::collections::BTreeMap;

use rondel_event::{Countable, Quantifier, Slot};

use super::error::{PlanError, PlanErrorKind};
use super::plan::{
    CasePlan, Element, ElementTest, Mutable, Number, Place, Sequence, Step, Steps, Tables, Target, Text,
    UnionPlan, Version, trim,
};
use crate::fields::{Fields, Want};
use crate::schema::{DISCRIMINATOR, Definition, Extensibility, Primitive, Schema, Struct, Type, Union};
use block::{Block, EVERYWHERE, START};
use by_name::ByName;
use fixed::Reaches;
pub(super) use fixed::advance;
use targets::{Wanted, number};

/// Maximum number of steps of a plan: a type that needs more consists of thousands of texts.
const MAX_STEPS: usize = 1 << 16;

/// Positions modulo 8 that are multiples of 4.
const FOURS: u8 = 0b0001_0001;

/// Extent of a plan: the parts that its steps visit, and the values that they check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The parts up to the last field that is read.
    Fields,
    /// The parts up to the end of the message, but parts of known length only up to the last field in them.
    End,
    /// All parts, for their lengths; only wide texts are checked.
    Lengths,
    /// All parts and all values.
    Whole,
}

/// Compiler of the plans of a type for several encodings.
pub(super) struct Compiler<'a> {
    schema: &'a Schema,
    pub(super) extent: Extent,
    version: Version,
    /// Extensibility of types whose definition does not state it.
    unstated: Extensibility,
    pub(super) tables: Tables,
    places: BTreeMap<String, Place>,
    reaches: Reaches,
    /// Length of a plain number's unit, in nanoseconds.
    unit_ns: i64,
    path: String,
    block: Block,
    /// Number of parts around the current one that have separate steps.
    depth: u32,
    /// Number of values still to be read.
    left: usize,
    steps: usize,
    /// Searches for names in the next member, and its elements at positions found earlier.
    by_name: ByName,
    errors: Vec<PlanError>,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(schema: &'a Schema, unit_ns: i64, extent: Extent) -> Compiler<'a> {
        Compiler {
            schema,
            extent,
            version: Version::One,
            unstated: Extensibility::Final,
            tables: Tables::default(),
            places: BTreeMap::new(),
            reaches: Reaches::default(),
            unit_ns,
            path: String::new(),
            block: Block::new(START),
            depth: 0,
            left: 0,
            steps: 0,
            by_name: ByName::default(),
            errors: Vec::new(),
        }
    }

    /// Compiles the steps for one version; types without a stated extensibility are `unstated`.
    pub(super) fn program(
        &mut self,
        version: Version,
        unstated: Extensibility,
        fields: &Fields<'_>,
    ) -> Result<Steps, Vec<PlanError>> {
        (self.version, self.unstated) = (version, unstated);
        (self.depth, self.steps, self.left) = (0, 0, fields.count());
        self.reaches = Reaches::default();
        self.block = Block::new(START);
        let schema = self.schema;
        self.structure(schema.root(), Some(fields));
        let mut steps = std::mem::replace(&mut self.block, Block::new(START)).finish();
        if !self.errors.is_empty() {
            return Err(std::mem::take(&mut self.errors));
        }
        if self.extent == Extent::Fields {
            trim(&mut steps);
        }
        Ok(steps.into())
    }

    pub(super) fn extensibility(&self, stated: Option<Extensibility>) -> Extensibility {
        stated.unwrap_or(self.unstated)
    }

    fn error(&mut self, kind: PlanErrorKind) {
        let error = PlanError { path: self.path.as_str().into(), kind };
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    fn place(&mut self) -> Place {
        if let Some(place) = self.places.get(&self.path) {
            return *place;
        }
        let place = self.tables.paths.len() as Place;
        self.tables.paths.push(self.path.as_str().into());
        self.places.insert(self.path.clone(), place);
        place
    }

    /// Calls `work` with the path extended by a segment.
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

    /// Collects the steps of a part that may occur several times, or not at all. `phases` are the positions modulo 8 at
    /// which it may begin.
    fn part(&mut self, phases: u8, work: impl FnOnce(&mut Self)) -> Vec<Step> {
        let outer = std::mem::replace(&mut self.block, Block::new(phases));
        self.depth += 1;
        work(self);
        self.depth -= 1;
        std::mem::replace(&mut self.block, outer).finish()
    }

    /// Like [`Compiler::part`], for a part whose end is known.
    fn bounded_part(&mut self, phases: u8, work: impl FnOnce(&mut Self)) -> Steps {
        let mut steps = self.part(phases, work);
        if matches!(self.extent, Extent::Fields | Extent::End) {
            trim(&mut steps);
        }
        steps.into()
    }

    fn push(&mut self, step: Step, phases: u8) {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            self.error(PlanErrorKind::Unsupported("a message of more than 65,536 texts and sequences"));
        }
        self.block.push(step, phases);
    }

    /// Whether all fields are read and the extent requires no more.
    fn is_done(&self) -> bool {
        !self.errors.is_empty() && self.steps > MAX_STEPS
            || self.extent == Extent::Fields && self.depth == 0 && self.left == 0
    }

    fn value(&mut self, value_type: &Type, fields: Option<&Fields<'_>>) {
        let fields = fields.filter(|fields| !fields.is_empty());
        let is_searched = !self.by_name.finds.is_empty() || !self.by_name.found.is_empty();
        if fields.is_none() && self.extent != Extent::Whole && !is_searched && self.passed(value_type) {
            return;
        }
        match value_type {
            Type::Primitive(primitive) => self.number(*primitive, fields, &[]),
            Type::String { bound, wide } => self.text(*bound, *wide, fields),
            Type::Array { element, dimensions } => self.array(element, dimensions, fields),
            Type::Sequence { element, bound } => self.sequence(element, *bound, fields),
            Type::Named(id) => match self.schema.definition(*id) {
                Definition::Struct(structure) => self.structure(structure, fields),
                Definition::Union(union) => self.union(union, fields),
                Definition::Enum(enumeration) => {
                    let wanted = self.wanted(fields);
                    let loads = self.enumeration_loads(enumeration, &wanted);
                    self.run(number(enumeration.holder()), loads);
                }
                Definition::Bitmask(mask) => self.number(mask.holder(), fields, &[]),
                Definition::Alias(_) => self.error(PlanErrorKind::Unsupported("an alias")),
            },
        }
    }

    /// Skips a member without fields, if its size is fixed.
    fn passed(&mut self, value_type: &Type) -> bool {
        if let Some(size) = self.scalar(value_type) {
            let place = self.place();
            self.block.member(self.align(size), size, place);
            return true;
        }
        let Some(reach) = self.reaches.of(self.schema, self.version, self.unstated, value_type) else {
            return false;
        };
        let place = self.place();
        if !self.block.known(&reach, place) {
            let phases = fixed::after(&reach, self.block.phases);
            self.push(Step::Pass { reach: Box::new(reach), place }, phases);
        }
        true
    }

    fn align(&self, size: u32) -> u32 {
        self.version.align(size)
    }

    /// Returns the size of a number, boolean, character, enumeration or bit mask.
    fn scalar(&self, value_type: &Type) -> Option<u32> {
        fixed::scalar(self.schema, value_type)
    }

    fn run(&mut self, number: Number, loads: Vec<Target>) {
        let place = self.place();
        self.steps += loads.len();
        let size = number.size();
        let offset = self.block.member(self.align(size), size, place);
        for to in loads {
            self.block.load(offset, number, to, place);
        }
    }

    fn number(&mut self, primitive: Primitive, fields: Option<&Fields<'_>>, also: &[Target]) {
        let wanted = self.wanted(fields);
        let mut loads = self.number_loads(primitive, &wanted);
        loads.extend(also);
        self.run(number(primitive), loads);
    }

    /// Returns the reads of a value without parts.
    fn wanted<'p>(&mut self, fields: Option<&Fields<'p>>) -> Wanted<'p> {
        let Some(fields) = fields else { return Vec::new() };
        for (key, _) in &fields.keys {
            self.below(key, |this| this.error(PlanErrorKind::NoField(Vec::new())));
        }
        for (index, _) in fields.elements() {
            self.below(&index, |this| this.error(PlanErrorKind::NoElements));
        }
        self.left = self.left.saturating_sub(fields.count());
        fields.wants.clone()
    }

    /// Returns the targets for the presence of a part, and its other reads.
    fn presence<'p>(&mut self, fields: Option<&Fields<'p>>) -> (Vec<Target>, Wanted<'p>) {
        let (mut present, mut others) = (Vec::new(), Vec::new());
        for want in fields.map_or(&[][..], |fields| &fields.wants) {
            match targets::presence(want) {
                Some(target) => present.push(target),
                None => others.push(*want),
            }
        }
        (present, others)
    }

    /// Marks the reads of a part as a whole as done.
    fn settle(&mut self, fields: Option<&Fields<'_>>) {
        self.left = self.left.saturating_sub(fields.map_or(0, |fields| fields.wants.len()));
    }

    fn text(&mut self, bound: Option<u32>, is_wide: bool, fields: Option<&Fields<'_>>) {
        let wanted = self.wanted(fields);
        let targets = self.text_targets(&wanted).into();
        let place = self.place();
        let bound = bound.unwrap_or(u32::MAX);
        let is_checked = self.extent == Extent::Whole || is_wide && self.extent == Extent::Lengths;
        let text = Text { bound, is_checked, targets, place };
        self.push(if is_wide { Step::Wide(text) } else { Step::Text(text) }, EVERYWHERE);
    }

    fn structure(&mut self, structure: &Struct, fields: Option<&Fields<'_>>) {
        if let Some(fields) = fields {
            for (key, _) in &fields.keys {
                if structure.members.iter().all(|member| &*member.name != *key) {
                    let known = structure.members.iter().map(|member| member.name.clone()).collect();
                    self.below(key, |this| this.error(PlanErrorKind::NoField(known)));
                }
            }
            if fields.elements().next().is_some() {
                self.error(PlanErrorKind::NoElements);
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

    fn union(&mut self, union: &Union, fields: Option<&Fields<'_>>) {
        if let Some(fields) = fields {
            for (key, _) in &fields.keys {
                if *key != DISCRIMINATOR && union.cases.iter().all(|case| &*case.name != *key) {
                    let known = union.cases.iter().map(|case| case.name.clone());
                    let known = known.chain([DISCRIMINATOR.into()]).collect();
                    self.below(key, |this| this.error(PlanErrorKind::NoField(known)));
                }
            }
        }
        let (present, others) = self.presence(fields);
        for want in &others {
            self.other_type(want, "a union");
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
        let loads =
            targets.into_iter().map(|to| super::plan::Load { offset: 0, number: discriminator, to, place });
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

    fn array(&mut self, element: &Type, dimensions: &[u32], fields: Option<&Fields<'_>>) {
        let count = dimensions.iter().fold(1, |count: u32, size| count.saturating_mul(*size));
        let mut picks = Vec::new();
        if let Some(fields) = fields {
            self.flatten(fields, dimensions, 0, &mut picks);
        }
        picks.sort_by_key(|(index, _)| *index);
        let by_name = std::mem::take(&mut self.by_name);
        let is_searched = !by_name.finds.is_empty()
            || !by_name.found.is_empty()
            || fields.is_some_and(|fields| !fields.named.is_empty());
        let is_plain = fields.is_none_or(|fields| fields.wants.is_empty())
            && self.extent != Extent::Whole
            && !is_searched;
        match (self.scalar(element), element) {
            // Numbers have constant offsets.
            (Some(size), Type::Primitive(primitive)) if is_plain => {
                let place = self.place();
                let start = self.block.member(self.align(size), size.saturating_mul(count), place);
                for (index, below) in picks {
                    self.below(&format!("[{index}]"), |this| {
                        let wanted = this.wanted(Some(below));
                        let place = this.place();
                        for to in this.number_loads(*primitive, &wanted) {
                            this.block.load(start + index * size, number(*primitive), to, place);
                        }
                    });
                }
            }
            _ => self.elements(
                element,
                Some((count, dimensions.first().copied())),
                u32::MAX,
                picks,
                (fields.filter(|_| dimensions.len() == 1), by_name),
                fields,
            ),
        }
    }

    /// Collects the single elements that are read, by their positions in row-major order.
    fn flatten<'f, 'p>(
        &mut self,
        fields: &'f Fields<'p>,
        dimensions: &[u32],
        before: u32,
        picks: &mut Vec<(u32, &'f Fields<'p>)>,
    ) {
        for (key, _) in &fields.keys {
            self.below(key, |this| this.error(PlanErrorKind::NoField(Vec::new())));
        }
        let Some((size, inner)) = dimensions.split_first() else { return };
        let indices = fields.indices.iter().map(|(index, below)| (Some(*index), format!("[{index}]"), below));
        let ends =
            fields.ends.iter().map(|(index, below)| (size.checked_sub(*index), format!("[-{index}]"), below));
        for (index, written, below) in indices.chain(ends) {
            let Some(index) = index.filter(|index| index < size) else {
                self.below(&written, |this| this.error(PlanErrorKind::NoElement(*size)));
                continue;
            };
            let at = before.saturating_mul(*size).saturating_add(index);
            if inner.is_empty() {
                picks.push((at, below));
            } else {
                if !below.wants.is_empty() {
                    self.below(&written, |this| this.error(PlanErrorKind::NoElements));
                }
                self.flatten(below, inner, at, picks);
            }
        }
    }

    fn sequence(&mut self, element: &Type, bound: Option<u32>, fields: Option<&Fields<'_>>) {
        let mut picks: Vec<(u32, &Fields<'_>)> = Vec::new();
        if let Some(fields) = fields {
            for (key, _) in &fields.keys {
                self.below(key, |this| this.error(PlanErrorKind::NoField(Vec::new())));
            }
            picks.extend(fields.indices.iter().map(|(index, below)| (*index, below)));
        }
        picks.sort_by_key(|(index, _)| *index);
        let by_name = std::mem::take(&mut self.by_name);
        self.elements(element, None, bound.unwrap_or(u32::MAX), picks, (fields, by_name), fields);
    }

    fn elements(
        &mut self,
        element: &Type,
        fixed: Option<(u32, Option<u32>)>,
        bound: u32,
        picks: Vec<(u32, &Fields<'_>)>,
        (tested, ByName { finds, found }): (Option<&Fields<'_>>, ByName),
        fields: Option<&Fields<'_>>,
    ) {
        let (present, others) = self.presence(fields);
        let place = self.place();
        let is_delimited = self.version == Version::Two && !matches!(element, Type::Primitive(_));
        let work = |this: &mut Self| {
            let picks = picks.into_iter().map(|(index, below)| {
                let work = |this: &mut Self| this.value(element, Some(below));
                (index, this.below(&format!("[{index}]"), |this| this.part(EVERYWHERE, work).into()))
            });
            let picks = picks.collect();
            // Arrays use the index instead.
            let ends = fields.filter(|_| fixed.is_none()).map_or(&[][..], |fields| &fields.ends);
            let ends = ends.iter().map(|(index, below)| {
                let work = |this: &mut Self| this.value(element, Some(below));
                (*index, this.below(&format!("[-{index}]"), |this| this.part(EVERYWHERE, work).into()))
            });
            let ends = ends.collect();
            let named = tested.map_or(&[][..], |fields| &fields.named);
            let named = named.iter().map(|(named, below)| {
                let conditions = std::slice::from_ref(&named.condition);
                let test = this.element_test(element, Quantifier::Any, conditions, None);
                (test, this.found(element, &named.to_string(), below))
            });
            let named = named.collect();
            let (mut tests, mut lengths) = (Vec::new(), Vec::new());
            for want in &others {
                match want {
                    Want::Length(Slot::Int(column), None | Some(Countable::Array)) => lengths.push(*column),
                    Want::Elements(quantifier, conditions, slot) if tested.is_some() => {
                        tests.push(this.element_test(element, *quantifier, conditions, Some(*slot)));
                    }
                    Want::Elements(..) => this.error(PlanErrorKind::NoElements),
                    want => this.other_type(want, "an array"),
                }
            }
            if this.extent == Extent::Whole {
                // Tests visit every element; this one only visits, without a condition and a result.
                tests.push(this.element_test(element, Quantifier::All, &[], None));
            }
            let plan = Sequence {
                fixed: fixed.map(|(count, _)| count),
                outer: fixed.and_then(|(_, outer)| outer),
                bound,
                element: this.element(element),
                picks,
                ends,
                tests: tests.into(),
                named,
                finds: finds.into(),
                found: found.into(),
                lengths: lengths.into(),
                goes_on: true,
                present: present.into(),
                place,
            };
            this.push(Step::Sequence(Box::new(plan)), EVERYWHERE);
        };
        if is_delimited {
            let steps = self.bounded_part(FOURS, work);
            self.push(Step::Delimited { steps, is_struct: false, place }, EVERYWHERE);
        } else {
            work(self);
        }
        self.settle(fields);
    }

    pub(super) fn element_test(
        &mut self,
        element: &Type,
        quantifier: Quantifier,
        conditions: &[rondel_event::Condition],
        slot: Option<Slot>,
    ) -> ElementTest {
        let (fields, alternatives) = Fields::of_element(quantifier, conditions).unwrap_or_else(|kind| {
            self.error(kind);
            Default::default()
        });
        let left = self.left;
        let steps = self.below("[]", |this| this.part(EVERYWHERE, |this| this.value(element, Some(&fields))));
        self.left = left;
        let names = slot.map(|slot| Fields::names(conditions, slot)).unwrap_or_default();
        ElementTest { quantifier, slot, alternatives, names, steps: steps.into() }
    }

    /// Returns the way to skip an element.
    fn element(&mut self, element: &Type) -> Element {
        if let Some(size) = self.scalar(element) {
            return Element::Number(self.align(size) as usize, size as usize);
        }
        if let Some(reach) = self.reaches.of(self.schema, self.version, self.unstated, element) {
            return Element::Fixed(Box::new(reach));
        }
        let extent = self.extent;
        if extent == Extent::Whole {
            self.extent = Extent::Fields;
        }
        let steps = self.below("[]", |this| this.part(EVERYWHERE, |this| this.value(element, None)));
        self.extent = extent;
        Element::Variable(steps.into())
    }
}
