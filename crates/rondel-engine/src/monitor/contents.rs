//! Description of a program in its snapshots: the identities of all states, by which the program of an edited
//! specification finds them.

use std::collections::HashMap;

use rondel_event::{Field, FieldOrigin, Read, Slot, TableOrigin, TopicId};
use rondel_spec::{ChainId, Topic};
use serde::{Deserialize, Serialize};

use crate::exec::inventory::{Origins, Outline};
use crate::keyed::moved::SlicedOutline;
use crate::linear::LinearOutline;
use crate::lower::identity::{hash, of_topic};
use crate::monitor::program::Program;

/// Identities of everything that the monitor of a program keeps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Contents {
    /// Release that wrote it; identities are comparable within one release only.
    pub(super) release: String,
    pub(super) topics: Vec<String>,
    /// The number of topics of the specification; those of elements follow.
    pub(super) declared: u64,
    pub(super) properties: Vec<PropertyContent>,
    pub(super) sections: Vec<SectionContent>,
    pub(super) sliced: Vec<SlicedOutline>,
    /// For each topic, in the order of its projection: identities of the fields read.
    pub(super) fields: Vec<Vec<FieldContent>>,
    /// Identities of the chains.
    pub(super) chains: Vec<u64>,
}

/// Identity of a property.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PropertyContent {
    pub(super) name: String,
    pub(super) identity: u64,
    pub(super) generation: u32,
}

/// Identity of a field that is read of the messages of a topic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct FieldContent {
    /// Hash of its path and of the kind of read; for a table without its fields.
    read: u64,
    /// Hash of its path.
    place: u64,
    /// For a table: identities of the fields outside of the elements, and of those of an element.
    table: Option<[Vec<u64>; 2]>,
}

/// Identities of a section without instances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SectionContent {
    pub(super) outline: Outline,
    pub(super) linear: Option<LinearOutline>,
}

impl FieldContent {
    /// The place of the field among those of another program.
    pub(super) fn origin(&self, others: &[FieldContent]) -> Option<FieldOrigin> {
        let Some(at) = others.iter().position(|other| other.read == self.read) else {
            return others.iter().position(|other| other.place == self.place).map(FieldOrigin::Presence);
        };
        Some(match (&self.table, &others[at].table) {
            (Some(own), Some(other)) if own != other => {
                let places = |i: usize| {
                    let place = |field: &u64| other[i].iter().position(|other| other == field);
                    (other[i].len(), own[i].iter().map(place).collect())
                };
                FieldOrigin::Table(at, TableOrigin { of_message: places(0), of_element: places(1) })
            }
            _ => FieldOrigin::Same(at),
        })
    }
}

impl Contents {
    pub(super) fn new(program: &Program) -> Contents {
        let spec = &program.spec;
        let properties = spec.properties.iter().enumerate().map(|(at, property)| PropertyContent {
            name: property.name.clone(),
            identity: program.identity(at, property),
            generation: property.generation,
        });
        let of_field = |topic: &Topic, field: &Field| {
            let at = (&topic.name, &field.path);
            let place = hash(at);
            let Read::Table(table) = &field.read else {
                return FieldContent { read: hash((at, &field.read)), place, table: None };
            };
            let identity = |field: &Field| hash((&field.path, &field.read));
            let fields =
                [table.of_message().map(identity).collect(), table.of_element().map(identity).collect()];
            FieldContent { read: hash((at, &table.key)), place, table: Some(fields) }
        };
        let projections = program.projections().iter().zip(&spec.topics);
        let fields = projections.map(|(projection, topic)| {
            projection.fields.iter().map(|field| of_field(topic, field)).collect::<Vec<_>>()
        });
        let fields: Vec<_> = fields.collect();
        let slots: HashMap<Slot, [u64; 2]> = (program.projections().iter().zip(&fields))
            .flat_map(|(projection, own)| {
                let identities = own.iter().map(|own| [own.read, own.place]);
                projection.fields.iter().map(|field| field.slot).zip(identities)
            })
            .collect();
        let slot = |slot: Slot| slots.get(&slot).copied().unwrap_or_default();
        let sections = program.sections.iter().map(|section| SectionContent {
            outline: Outline::new(section),
            linear: section.linear.as_ref().map(|plan| LinearOutline {
                fields: plan.field_identities.clone(),
                lines: plan.line_identities.clone(),
                slots: plan.slots.iter().map(|of| slot(*of)).collect(),
                topics: plan.topics.iter().map(|topic| of_topic(spec, *topic)).collect(),
            }),
        });
        Contents {
            release: env!("CARGO_PKG_VERSION").to_owned(),
            topics: spec.topics.iter().map(|topic| topic.name.clone()).collect(),
            declared: spec.topics.len().saturating_sub(spec.elements.len()) as u64,
            properties: properties.collect(),
            fields,
            sections: sections.collect(),
            sliced: program.sliced.iter().map(SlicedOutline::new).collect(),
            chains: (0..spec.chains.len() as u32).map(|chain| spec.chain_identity(ChainId(chain))).collect(),
        }
    }

    /// For each property of another program: position of the property here that it continues, i.e. with the same name,
    /// meaning and generation. The parts of formulas that explanations watch, whose names contain `#`, may have other
    /// names.
    pub(super) fn origins(&self, other: &Contents) -> Origins {
        let find = |property: &PropertyContent| {
            let is_part = |name: &str| name.contains('#');
            let is_same = |own: &PropertyContent| {
                (own.identity, own.generation) == (property.identity, property.generation)
                    && (own.name == property.name || is_part(&own.name) && is_part(&property.name))
            };
            self.properties.iter().position(is_same).map(|at| at as u32)
        };
        Origins(other.properties.iter().map(find).collect())
    }

    /// For each topic: its position in another program, if it exists there.
    pub(super) fn topics_in(&self, other: &Contents) -> Vec<Option<TopicId>> {
        let of = |name: &String| other.topics.iter().position(|other| other == name);
        self.topics.iter().map(|name| of(name).map(|at| TopicId(at as u32))).collect()
    }
}
