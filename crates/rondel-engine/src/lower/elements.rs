//! Lowers `for each` over the elements of an array to `for each` over messages.
//!
//! A message with several elements belongs to the instances of all of them. Each topic with such a parameter
//! gets a further topic that carries one event per element, with the name of the element as a field. The
//! properties read the further topic, so that each event has one value of the parameter, as with every other
//! `for each`. Decoders pack the elements of a message into a [`Table`], which the monitor
//! [unpacks](crate::monitor).

use std::collections::HashMap;
use std::sync::Arc;

use rondel_event::{Field, Path, Read, Slot, Table, TopicId};
use rondel_spec::{ExprId, Machine, Slice, SliceId, Spec, Topic};

use crate::lower::binding::Binding;
use crate::lower::translate::FieldRead;

/// A specification in which the elements of arrays are messages.
pub(crate) struct Elements {
    pub(crate) spec: Spec,
    /// Path of the name of an element, per topic of elements.
    pub(crate) keys: Vec<Path>,
}

/// Columns of a message and of its elements, from which the monitor makes one event per element.
#[derive(Clone, Debug)]
pub(crate) struct ElementPlan {
    /// The topic of the messages.
    pub(crate) parent: TopicId,
    /// The topic of the elements.
    pub(crate) topic: TopicId,
    /// Column of texts that holds the table of elements.
    pub(crate) packed: u32,
    /// Columns of the fields outside of the elements, in the order of the table.
    pub(crate) of_message: Vec<Slot>,
    /// Columns of the fields of an element.
    pub(crate) of_element: Vec<Slot>,
}

impl Elements {
    /// The specification with topics of elements; none if no parameter is one.
    pub(crate) fn new(spec: &Spec) -> Option<Elements> {
        let is_of_elements = |slice: &Slice| {
            slice.keys.iter().flat_map(|key| &key.fields).any(|(_, path)| path.of_each().is_some())
        };
        if !spec.elements.is_empty() || !spec.slices.iter().any(is_of_elements) {
            return None;
        }
        let mut own = Elements { spec: spec.clone(), keys: Vec::new() };
        // Nodes that refer to what does not stand before them are reported when they are translated.
        if !(0..).zip(&spec.nodes).all(|(at, node)| node.operands().all(|operand| operand.0 < at)) {
            return Some(own);
        }
        for at in 0..spec.slices.len() {
            let mut topics = HashMap::new();
            for (topic, path) in spec.slices[at].keys.iter().flat_map(|key| &key.fields) {
                if path.of_each().is_some() && !topics.contains_key(topic) {
                    topics.insert(*topic, own.topic(*topic, path));
                }
            }
            if !topics.is_empty() {
                own.redirect(SliceId(at as u32), &topics);
            }
        }
        Some(own)
    }

    /// The topic with the elements that have their names at this path.
    fn topic(&mut self, parent: TopicId, key: &Path) -> TopicId {
        let Spec { topics, elements, .. } = &mut self.spec;
        let first = topics.len() - elements.len();
        let known = (elements.iter().zip(&self.keys)).position(|(of, known)| *of == parent && known == key);
        let at = known.unwrap_or_else(|| {
            let of = &topics[parent.index()];
            let name = format!("{}[{key}]", of.name);
            topics.push(Topic { name, type_name: None, schema: None, ..of.clone() });
            elements.push(parent);
            self.keys.push(key.clone());
            elements.len() - 1
        });
        TopicId((first + at) as u32)
    }

    /// Lets everything that is divided by a slice read these topics instead of those.
    fn redirect(&mut self, slice: SliceId, topics: &HashMap<TopicId, TopicId>) {
        let spec = &mut self.spec;
        let mut nodes = Nodes { topics, known: HashMap::new() };
        let own = &mut spec.slices[slice.0 as usize];
        for (topic, _) in own.keys.iter_mut().flat_map(|key| &mut key.fields) {
            nodes.topic(topic);
        }
        let until = own.until.map(|until| nodes.node(spec, until));
        spec.slices[slice.0 as usize].until = until;
        for at in 0..spec.properties.len() {
            if spec.properties[at].slice != Some(slice) {
                continue;
            }
            let formula = nodes.node(spec, spec.properties[at].formula);
            spec.properties[at].formula = formula;
            for i in 0..spec.properties[at].premises.len() {
                let premise = nodes.node(spec, spec.properties[at].premises[i]);
                spec.properties[at].premises[i] = premise;
            }
            spec.properties[at].mentions.iter_mut().for_each(|topic| nodes.topic(topic));
        }
        for at in 0..spec.machines.len() {
            if spec.machines[at].slice != Some(slice) {
                continue;
            }
            let mut transitions = std::mem::take(&mut spec.machines[at].transitions);
            for transition in &mut transitions {
                transition.guard = transition.guard.map(|guard| nodes.node(spec, guard));
                for (_, value) in &mut transition.assignments {
                    *value = nodes.node(spec, *value);
                }
            }
            spec.machines[at] = Machine { transitions, ..spec.machines[at].clone() };
        }
    }
}

/// Nodes that read topics of elements instead of others.
struct Nodes<'t> {
    topics: &'t HashMap<TopicId, TopicId>,
    known: HashMap<ExprId, ExprId>,
}

impl Nodes<'_> {
    fn topic(&self, topic: &mut TopicId) {
        *topic = self.topics.get(topic).copied().unwrap_or(*topic);
    }

    /// The node that stands for this one.
    fn node(&mut self, spec: &mut Spec, root: ExprId) -> ExprId {
        let (mut open, mut needed) = (vec![root], std::collections::BTreeSet::from([root]));
        while let Some(id) = open.pop() {
            let Some(node) = spec.nodes.get(id.index()) else { return root };
            open.extend(node.operands().filter(|operand| needed.insert(*operand)));
        }
        for id in needed {
            if self.known.contains_key(&id) {
                continue;
            }
            let mut node = spec.nodes[id.index()].clone();
            node.topics_mut().iter_mut().for_each(|topic| self.topic(topic));
            node.operands_mut()
                .for_each(|operand| *operand = self.known.get(operand).copied().unwrap_or(*operand));
            let same = node == spec.nodes[id.index()];
            let new = if same { id } else { ExprId(spec.nodes.len() as u32) };
            if !same {
                spec.nodes.push(node);
            }
            self.known.insert(id, new);
        }
        self.known.get(&root).copied().unwrap_or(root)
    }
}

/// Moves what is read of topics of elements into tables that are read of their messages.
pub(crate) fn tables(spec: &Spec, keys: &[Path], binding: &mut Binding) -> Vec<ElementPlan> {
    let first = spec.topics.len() - spec.elements.len();
    let mut plans = Vec::new();
    for ((at, parent), key) in (first..).zip(&spec.elements).zip(keys) {
        let fields = binding.projections[at].fields.clone();
        let slots = |is_of_element: bool| {
            let is_meant = move |field: &&Field| field.path.of_each().is_some() == is_of_element;
            fields.iter().filter(is_meant).map(|field| field.slot).collect::<Vec<Slot>>()
        };
        let (of_message, of_element) = (slots(false), slots(true));
        let read = Read::Table(Arc::new(Table { key: key.clone(), fields: fields.clone() }));
        let slot = binding.slot(&FieldRead { topic: *parent, path: Table::array(key), read });
        if let Slot::String(packed) = slot {
            let topic = TopicId(at as u32);
            plans.push(ElementPlan { parent: *parent, topic, packed, of_message, of_element });
        }
    }
    plans
}
