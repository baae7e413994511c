//! Watched parts of a specification: for each property the rows of its tables, the fields that provide their values,
//! and the parts and terms that a monitor evaluates for them.

use std::collections::HashMap;

use rondel_event::{Path, Quantifier, Read, TopicId, Value, ValueType};
use rondel_spec::{Expr, ExprId, Machine, MachineId, Property, SliceId, Spec, TimeModel};

use super::keys::KeyPlaces;
use super::parts::{Parts, ReadField, parts_of, seeing};
use super::reason::{Reason, Row};
use super::terms::{self, Course};
use super::{Part, Watched, WatchedField, machines};
use crate::specification::formula;
use crate::specification::looks_ahead;

/// The number of parts of a formula that are shown besides the fields.
const PARTS: usize = 24;
/// The number of terms of a formula that are shown.
const TERMS: usize = 24;

/// Identity of a watched part, shared by the properties for which it has the same values.
type PartKey = (ExprId, TimeModel, bool, Option<SliceId>, Vec<TopicId>, u32);

/// Watched parts of the properties so far.
pub(super) struct Watching<'s> {
    spec: &'s Spec,
    /// The specification with a property for each part and term.
    pub(super) augmented: Spec,
    /// The nodes that are true in the states of each machine.
    states: Vec<Vec<ExprId>>,
    pub(super) properties: Vec<Watched>,
    pub(super) fields: Vec<WatchedField>,
    pub(super) parts: Vec<Part>,
    at: HashMap<PartKey, usize>,
    /// Whether fields are drawn over the whole recording.
    is_drawn: bool,
}

/// Property being analysed.
struct Own<'s> {
    /// Its position.
    number: usize,
    property: &'s Property,
    keys: KeyPlaces,
    /// The constants that nodes are compared with.
    compared: HashMap<ExprId, Vec<f64>>,
    rows: Vec<OwnRow>,
    /// The rows that show a node.
    shown: HashMap<ExprId, Vec<usize>>,
}

/// A row of its tables.
struct OwnRow {
    name: String,
    row: Row,
    thresholds: Vec<f64>,
    /// Whether its values are the same for all instances.
    is_shared: bool,
}

impl Own<'_> {
    /// Adds a row that shows a node, and returns its number.
    fn add(&mut self, id: ExprId, name: String, row: Row, is_shared: bool) -> usize {
        let mut thresholds = Vec::new();
        add_all(&mut thresholds, &self.compared, id);
        self.rows.push(OwnRow { name, row, thresholds, is_shared });
        let number = self.rows.len() - 1;
        self.shown.entry(id).or_default().push(number);
        number
    }
}

impl<'s> Watching<'s> {
    /// Determines the watched parts of a specification. If `is_drawn`, the least and the greatest elements of arrays
    /// are included.
    pub(super) fn of(spec: &'s Spec, is_drawn: bool) -> Watching<'s> {
        let mut augmented = Spec::clone(spec);
        let states = machines::states(&mut augmented);
        let mut watching = Watching {
            spec,
            augmented,
            states,
            properties: Vec::new(),
            fields: Vec::new(),
            parts: Vec::new(),
            at: HashMap::new(),
            is_drawn,
        };
        for (number, property) in spec.properties.iter().enumerate() {
            let watched = watching.property(number, property);
            watching.properties.push(watched);
        }
        watching
    }

    fn property(&mut self, number: usize, property: &'s Property) -> Watched {
        let spec = self.spec;
        let Parts { read, made, arrays, terms, elements, stateful } = match property.criterion {
            None => parts_of(spec, property),
            Some(_) => Default::default(),
        };
        let mut own = Own {
            number,
            property,
            keys: KeyPlaces::new(spec, property),
            compared: terms::thresholds(spec, property.formula),
            rows: Vec::new(),
            shown: HashMap::new(),
        };
        if self.is_drawn {
            for (id, (topic, path)) in arrays {
                self.band(&own, id, topic, &path);
            }
        }
        for (id, field) in read {
            self.field(&mut own, id, field);
        }
        self.elements(&mut own, &elements);
        // With linear interpolation a term has no value at messages.
        let can_watch = |id: &ExprId| !property.linear && !looks_ahead(spec, *id);
        for id in terms.into_iter().filter(can_watch).take(TERMS) {
            let row = own.add(id, formula::named(spec, id, property), Row::Term(Course::of(spec, id)), false);
            let part = self.watch(&own, id);
            self.parts[part].shown.push((number, row));
        }
        for id in made.into_iter().take(PARTS) {
            let is_watched = !looks_ahead(spec, id);
            let row = if is_watched { Row::Watched } else { Row::Made };
            let row = own.add(id, formula::named(spec, id, property), row, false);
            if is_watched {
                let part = self.watch(&own, id);
                self.parts[part].shown.push((number, row));
            }
        }
        self.machines(&mut own, stateful);
        let until = property.slice.and_then(|slice| spec.slices.get(slice.0 as usize)?.until);
        if let Some(until) = until {
            let part = self.watch(&own, until);
            self.parts[part].ends.push(number);
        }
        let rows: Vec<Row> = own.rows.iter().map(|row| row.row).collect();
        let is_divided = property.slice.is_some();
        Watched {
            time: property.time,
            reason: Reason::new(spec, property, &own.shown, &rows),
            rows,
            shared: own.rows.iter().map(|row| row.is_shared && is_divided).collect(),
            thresholds: own.rows.iter().map(|row| row.thresholds.clone()).collect(),
            names: own.rows.into_iter().map(|row| row.name).collect(),
            keys: own.keys,
            ends: until.is_some(),
        }
    }

    /// Adds a field that a property reads at a node.
    fn field(&mut self, own: &mut Own<'_>, id: ExprId, (topic, path, read): ReadField) {
        let (name, value_type) = named(self.spec, id, topic, &path, &read);
        let row = match &read {
            Read::Witness(..) => Row::Element,
            Read::Value(ValueType::Int | ValueType::Float) if own.property.linear => Row::Line,
            _ => Row::Field,
        };
        let is_known = |field: &WatchedField| {
            field.drawn_for.is_none() && (field.topic, &field.path, &field.read) == (topic, &path, &read)
        };
        let known = self.fields.iter().position(is_known).unwrap_or_else(|| {
            self.fields.push(WatchedField {
                topic,
                path,
                read,
                value_type,
                slot: None,
                name: name.clone(),
                shown: Vec::new(),
                drawn_for: None,
                thresholds: Vec::new(),
            });
            self.fields.len() - 1
        });
        let field = &mut self.fields[known];
        add_all(&mut field.thresholds, &own.compared, id);
        // One node reads a field, and bindings of atoms may read it too.
        if let Some((_, row)) = field.shown.iter().find(|(property, _)| *property == own.number) {
            return own.shown.entry(id).or_default().push(*row);
        }
        let is_shared = !own.keys.is_keyed(topic);
        field.shown.push((own.number, own.add(id, name, row, is_shared)));
    }

    /// Adds the least and the greatest elements of an array, which are drawn for a property, one after the other.
    fn band(&mut self, own: &Own<'_>, id: ExprId, topic: TopicId, path: &Path) {
        let is_same = |field: &&mut WatchedField| {
            field.drawn_for.is_some() && (field.topic, &field.path) == (topic, path)
        };
        if let Some(lower) = self.fields.iter_mut().find(is_same) {
            return add_all(&mut lower.thresholds, &own.compared, id);
        }
        for quantifier in [Quantifier::Min, Quantifier::Max] {
            let mut thresholds = Vec::new();
            add_all(&mut thresholds, &own.compared, id);
            self.fields.push(WatchedField {
                topic,
                path: path.clone(),
                read: Read::Elements(quantifier, Vec::new()),
                value_type: ValueType::Float,
                slot: None,
                name: formula::field(self.spec, topic, path),
                shown: Vec::new(),
                drawn_for: Some(own.number),
                thresholds,
            });
        }
    }

    /// The part that watches a node for a property.
    fn watch(&mut self, own: &Own<'_>, id: ExprId) -> usize {
        let Own { property, keys, .. } = own;
        let Property { time, linear, slice, generation, .. } = **property;
        let key = (id, time, linear, slice, keys.shared.clone(), generation);
        if let Some(known) = self.at.get(&key) {
            return *known;
        }
        let formula = seeing(&mut self.augmented, id, &keys.shared);
        let name = format!("{}#{}", property.name, self.parts.len());
        self.augmented.properties.push(Property {
            time,
            linear,
            slice,
            generation,
            ..Property::new(name, formula)
        });
        self.parts.push(Part::default());
        self.at.insert(key, self.parts.len() - 1);
        self.parts.len() - 1
    }

    /// Adds the elements from which nodes read the values of an instance.
    fn elements(&mut self, own: &mut Own<'_>, nodes: &[(ExprId, Box<str>)]) {
        let spec = self.spec;
        let slice = own.property.slice.and_then(|slice| spec.slices.get(slice.0 as usize));
        for (number, key) in (0..).zip(slice.into_iter().flat_map(|slice| &slice.keys)) {
            let mut its = nodes.iter().filter(|(_, parameter)| **parameter == *key.name).map(|(id, _)| *id);
            let field = key.fields.iter().find(|(_, path)| path.of_each().is_some());
            let (Some(first), Some((topic, path))) = (its.next(), field) else { continue };
            let name = formula::field(spec, *topic, &path.as_listed());
            let row = own.add(first, name, Row::Element, false);
            its.for_each(|id| own.shown.entry(id).or_default().push(row));
            self.augmented.nodes.push(Expr::Key(number, key.value_type));
            let part = self.watch(own, ExprId(self.augmented.nodes.len() as u32 - 1));
            self.parts[part].named.push((own.number, row));
        }
    }

    /// Adds the states of machines that explain nodes.
    fn machines(&mut self, own: &mut Own<'_>, stateful: Vec<(ExprId, (MachineId, &Machine))>) {
        let mut rows: HashMap<MachineId, usize> = HashMap::new();
        for (id, (machine, found)) in stateful {
            if let Some(row) = rows.get(&machine) {
                own.shown.entry(id).or_default().push(*row);
                continue;
            }
            let row = own.add(id, machines::row_name(found), Row::State, false);
            rows.insert(machine, row);
            let states = self.states.get(machine.0 as usize).cloned().unwrap_or_default();
            for (state, node) in (0..).zip(states) {
                let part = self.watch(own, node);
                let state: Value = machines::state(found, state);
                self.parts[part].entered.push((own.number, row, state));
            }
        }
    }
}

/// The name of what is read of a field at a node, and its type.
fn named(spec: &Spec, id: ExprId, topic: TopicId, path: &Path, read: &Read) -> (String, ValueType) {
    let field = || formula::field(spec, topic, path);
    let element = spec.places.element(id);
    match read {
        Read::Value(value_type) => (field(), *value_type),
        Read::Elements(quantifier, conditions) => {
            let name = formula::elements(spec, topic, path, *quantifier, element, conditions);
            (name, quantifier.value_type())
        }
        Read::Witness(quantifier, _) => {
            (formula::element(spec, topic, path, *quantifier, element), ValueType::String)
        }
        Read::Number(value_type) => (format!("number({})", field()), *value_type),
        _ => (format!("len({})", field()), ValueType::Int),
    }
}

/// Adds the constants that a node is compared with.
fn add_all(to: &mut Vec<f64>, compared: &HashMap<ExprId, Vec<f64>>, id: ExprId) {
    for threshold in compared.get(&id).into_iter().flatten() {
        if !to.contains(threshold) {
            to.push(*threshold);
        }
    }
}
