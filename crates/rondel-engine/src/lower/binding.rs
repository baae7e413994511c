//! Slots of blocks for the fields that a program reads.

use std::collections::HashMap;

use rondel_event::{Field, Layout, Path, Projection, Quantifier, Read, Slot, TopicId, ValueType};

use crate::ir::node::Node;
use crate::lower::translate::FieldRead;

/// The columns of a block that hold the fields of all sections.
pub(crate) struct Binding {
    pub(crate) layout: Layout,
    pub(crate) projections: Vec<Projection>,
    /// Per topic and path: indexes of its reads in the projection of the topic.
    places: HashMap<(TopicId, Path), Vec<usize>>,
}

impl Binding {
    /// A binding without columns for this number of topics.
    pub(crate) fn new(topics: usize) -> Binding {
        Binding {
            layout: Layout { topics, ..Layout::default() },
            projections: vec![Projection::default(); topics],
            places: HashMap::new(),
        }
    }

    /// Assigns a column to every field that a node reads. Returns the columns by the number of the field.
    pub(crate) fn bind<'a>(
        &mut self,
        fields: &[FieldRead],
        nodes: impl Iterator<Item = &'a Node> + Clone,
    ) -> Vec<Option<Slot>> {
        let mut slots = vec![None; fields.len()];
        for node in nodes.clone() {
            if let Node::Held(_, field) | Node::HeldBool(field, _) = *node {
                slots[field as usize] = Some(self.slot(&fields[field as usize]));
            }
        }
        for node in nodes.clone() {
            if let Node::Quantified { fields: read, .. } | Node::ByValue { fields: read, .. } = node {
                for &field in read {
                    slots[field as usize] = Some(self.slot(&fields[field as usize]));
                }
            }
        }
        // The presence of a field is a mask beside its values, so it needs no column of its own.
        for node in nodes {
            if let Node::Carried(field) = *node {
                let read = &fields[field as usize];
                let here = self.places.get(&(read.topic, read.path.clone())).and_then(|here| here.first());
                slots[field as usize] = Some(match here {
                    Some(&at) => self.projections[read.topic.index()].fields[at].slot,
                    None => self.slot(read),
                });
            }
        }
        slots
    }

    pub(crate) fn slot(&mut self, FieldRead { topic, path, read }: &FieldRead) -> Slot {
        let fields = &mut self.projections[topic.index()].fields;
        let here = self.places.entry((*topic, path.clone())).or_default();
        if let Some(&at) = here.iter().find(|&&at| fields[at].read == *read) {
            return fields[at].slot;
        }
        let layout = &mut self.layout;
        let slot = match read {
            Read::Elements(Quantifier::Count, _) => Slot::Int(next(&mut layout.ints)),
            Read::Elements(quantifier, _) if quantifier.is_measure() => Slot::Float(next(&mut layout.floats)),
            Read::Value(ValueType::Bool) | Read::Presence | Read::IsNan | Read::Elements(..) => {
                Slot::Bool(next(&mut layout.bools))
            }
            Read::Value(ValueType::Int | ValueType::Time | ValueType::Duration)
            | Read::Number(ValueType::Int)
            | Read::Length
            | Read::LengthOf(_) => Slot::Int(next(&mut layout.ints)),
            Read::Value(ValueType::Float) | Read::Number(_) => Slot::Float(next(&mut layout.floats)),
            Read::Value(ValueType::String) | Read::Witness(..) | Read::Table(_) => {
                Slot::String(next(&mut layout.strings))
            }
        };
        here.push(fields.len());
        fields.push(Field { path: path.clone(), read: read.clone(), slot, exact: false });
        slot
    }
}

fn next(count: &mut usize) -> u32 {
    *count += 1;
    *count as u32 - 1
}
