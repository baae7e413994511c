//! Compiles a schema and the fields that are read to a plan.

mod arrays;
mod block;
mod by_name;
mod fixed;
mod structures;
mod targets;

use std::collections::BTreeMap;

use super::error::{PlanError, PlanErrorKind};
use super::plan::{Number, Place, Step, Steps, Tables, Target, Text, Version, trim};
use crate::fields::Fields;
use crate::schema::{Definition, Extensibility, Primitive, Schema, Type};
use crate::typed::Report;
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
    report: Report,
    block: Block,
    /// Number of parts around the current one that have separate steps.
    depth: u32,
    /// Number of values still to be read.
    left: usize,
    steps: usize,
    /// Searches for names in the next member, and its elements at positions found earlier.
    by_name: ByName,
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
            report: Report::default(),
            block: Block::new(START),
            depth: 0,
            left: 0,
            steps: 0,
            by_name: ByName::default(),
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
        if !self.report.errors.is_empty() {
            return Err(std::mem::take(&mut self.report.errors));
        }
        if self.extent == Extent::Fields {
            trim(&mut steps);
        }
        Ok(steps.into())
    }

    pub(super) fn extensibility(&self, stated: Option<Extensibility>) -> Extensibility {
        stated.unwrap_or(self.unstated)
    }

    fn place(&mut self) -> Place {
        if let Some(place) = self.places.get(&self.report.path) {
            return *place;
        }
        let place = self.tables.paths.len() as Place;
        self.tables.paths.push(self.report.path.as_str().into());
        self.places.insert(self.report.path.clone(), place);
        place
    }

    /// Calls `work` with the path extended by a segment.
    fn below<T>(&mut self, segment: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.report.enter(segment);
        let result = work(self);
        self.report.leave(outer);
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
            self.report
                .error(PlanErrorKind::Unsupported("a message of more than 65,536 texts and sequences"));
        }
        self.block.push(step, phases);
    }

    /// Whether all fields are read and the extent requires no more.
    fn is_done(&self) -> bool {
        !self.report.errors.is_empty() && self.steps > MAX_STEPS
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
                Definition::Alias(_) => self.report.error(PlanErrorKind::Unsupported("an alias")),
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
            self.report.no_field(key, Vec::new());
        }
        self.report.no_indices(fields);
        self.left = self.left.saturating_sub(fields.count());
        fields.reads.clone()
    }

    /// Returns the targets for the presence of a part, and its other reads.
    fn presence<'p>(&mut self, fields: Option<&Fields<'p>>) -> (Vec<Target>, Wanted<'p>) {
        let (mut present, mut others) = (Vec::new(), Vec::new());
        for want in fields.map_or(&[][..], |fields| &fields.reads) {
            match targets::presence(want) {
                Some(target) => present.push(target),
                None => others.push(*want),
            }
        }
        (present, others)
    }

    /// Marks the reads of a part as a whole as done.
    fn settle(&mut self, fields: Option<&Fields<'_>>) {
        self.left = self.left.saturating_sub(fields.map_or(0, |fields| fields.reads.len()));
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
}
