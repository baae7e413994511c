//! Steps of arrays and sequences.

use rondel_event::{Condition, Countable, Quantifier, Slot};

use super::super::error::PlanErrorKind;
use super::super::plan::{Element, ElementTest, Sequence, Step, Version};
use super::block::EVERYWHERE;
use super::by_name::ByName;
use super::targets::number;
use super::{Compiler, Extent, FOURS};
use crate::fields::{Fields, Want};
use crate::schema::Type;

/// Number of the elements of an array or sequence.
#[derive(Clone, Copy)]
struct Size {
    /// The number, if it is fixed.
    fixed: Option<u32>,
    /// The size of the first dimension of an array.
    outer: Option<u32>,
    /// The maximum number.
    bound: u32,
}

impl Compiler<'_> {
    pub(super) fn array(&mut self, element: &Type, dimensions: &[u32], fields: Option<&Fields<'_>>) {
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
        let is_plain = fields.is_none_or(|fields| fields.reads.is_empty())
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
            _ => {
                let tested = fields.filter(|_| dimensions.len() == 1);
                let size = Size { fixed: Some(count), outer: dimensions.first().copied(), bound: u32::MAX };
                self.elements(element, size, picks, tested, by_name, fields);
            }
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
            self.report.no_field(key, Vec::new());
        }
        let Some((size, inner)) = dimensions.split_first() else { return };
        let indices = fields.indices.iter().map(|(index, below)| (Some(*index), format!("[{index}]"), below));
        let ends =
            fields.ends.iter().map(|(index, below)| (size.checked_sub(*index), format!("[-{index}]"), below));
        for (index, written, below) in indices.chain(ends) {
            let Some(index) = index.filter(|index| index < size) else {
                self.below(&written, |this| this.report.error(PlanErrorKind::NoElement(*size)));
                continue;
            };
            let at = before.saturating_mul(*size).saturating_add(index);
            if inner.is_empty() {
                picks.push((at, below));
            } else {
                if !below.reads.is_empty() {
                    self.below(&written, |this| this.report.error(PlanErrorKind::NoElements));
                }
                self.flatten(below, inner, at, picks);
            }
        }
    }

    pub(super) fn sequence(&mut self, element: &Type, bound: Option<u32>, fields: Option<&Fields<'_>>) {
        let mut picks: Vec<(u32, &Fields<'_>)> = Vec::new();
        if let Some(fields) = fields {
            for (key, _) in &fields.keys {
                self.report.no_field(key, Vec::new());
            }
            picks.extend(fields.indices.iter().map(|(index, below)| (*index, below)));
        }
        picks.sort_by_key(|(index, _)| *index);
        let by_name = std::mem::take(&mut self.by_name);
        let size = Size { fixed: None, outer: None, bound: bound.unwrap_or(u32::MAX) };
        self.elements(element, size, picks, fields, by_name, fields);
    }

    /// Compiles the steps for the elements of an array or sequence: `picks` are the single elements that are read,
    /// `tested` the fields with conditions on all of them and with names, `fields` those of the array as a whole.
    fn elements(
        &mut self,
        element: &Type,
        size: Size,
        picks: Vec<(u32, &Fields<'_>)>,
        tested: Option<&Fields<'_>>,
        by_name: ByName,
        fields: Option<&Fields<'_>>,
    ) {
        let ByName { finds, found } = by_name;
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
            let ends = fields.filter(|_| size.fixed.is_none()).map_or(&[][..], |fields| &fields.ends);
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
                    Want::Elements(..) => this.report.error(PlanErrorKind::NoElements),
                    want => this.report.other_type(want, "an array"),
                }
            }
            if this.extent == Extent::Whole {
                // Tests visit every element; this one only visits, without a condition and a result.
                tests.push(this.element_test(element, Quantifier::All, &[], None));
            }
            let plan = Sequence {
                fixed: size.fixed,
                outer: size.outer,
                bound: size.bound,
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
        conditions: &[Condition],
        slot: Option<Slot>,
    ) -> ElementTest {
        let (fields, alternatives) = self.report.element(quantifier, conditions);
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
