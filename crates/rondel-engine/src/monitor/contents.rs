//! Description of a program in its snapshots: the identities of all states, by which the program of an edited
//! specification finds them.

use std::collections::HashMap;

use rondel_event::{Field, Slot, TopicId};
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
    pub(super) properties: Vec<PropertyContent>,
    pub(super) sections: Vec<SectionContent>,
    pub(super) sliced: Vec<SlicedOutline>,
    /// For each topic, in the order of its projection: hashes of the fields read, with and without the kind of read.
    pub(super) fields: Vec<Vec<[u64; 2]>>,
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

/// Identities of a section without instances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SectionContent {
    pub(super) outline: Outline,
    pub(super) linear: Option<LinearOutline>,
}

impl Contents {
    pub(super) fn new(program: &Program) -> Contents {
        let spec = &program.spec;
        let properties = spec.properties.iter().map(|property| PropertyContent {
            name: property.name.clone(),
            identity: spec.identity(property),
            generation: property.generation,
        });
        let of_field = |topic: &Topic, field: &Field| {
            let at = (&topic.name, &field.path);
            [hash((at, format!("{:?}", field.read))), hash(at)]
        };
        let projections = program.projections().iter().zip(&spec.topics);
        let fields = projections.map(|(projection, topic)| {
            projection.fields.iter().map(|field| of_field(topic, field)).collect::<Vec<_>>()
        });
        let fields: Vec<_> = fields.collect();
        let slots: HashMap<Slot, [u64; 2]> = (program.projections().iter().zip(&fields))
            .flat_map(|(projection, own)| {
                projection.fields.iter().map(|field| field.slot).zip(own.iter().copied())
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
