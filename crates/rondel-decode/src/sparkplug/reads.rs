//! The metrics and members that are read.

use rondel_event::{Path, Projection, Read, Segment, Slot, Test, Value};

use super::cbor::{Attributes, NAMED};
use super::nodes::Names;

/// Metrics and members that are read.
#[derive(Clone, Debug)]
pub(super) struct Reads {
    /// Whether any metric is.
    pub(super) metrics: bool,
    pub(super) attributes: Attributes,
    pub(super) names: Names,
    /// The slots of the values by the numbers of the names, unless all metrics are read.
    pub(super) slots: Vec<Box<[Slot]>>,
    /// The slots of everything that is read of metrics.
    pub(super) all: Box<[Slot]>,
}

impl Reads {
    pub(super) fn new(projection: &Projection, time: Option<&Path>) -> Reads {
        let is_metrics =
            |path: &&Path| matches!(path.0.first(), Some(Segment::Key(key)) if **key == *"metrics");
        let fields = projection.fields.iter().map(|field| &field.path);
        let paths: Vec<&Path> = fields.chain(time).filter(is_metrics).collect();
        let wanted: Option<Vec<&str>> = paths.iter().map(|path| name_of(path)).collect();
        let names = Names::new(wanted);
        let holds = projection.fields.iter().filter(|field| field.read != Read::Presence);
        let holds: Vec<_> = holds.filter(|field| is_metrics(&&field.path)).collect();
        let slots_of = |number: u32| {
            let own = holds.iter().filter(|field| {
                name_of(&field.path).and_then(|name| names.number(name.as_bytes())) == Some(number)
            });
            own.map(|field| field.slot).collect()
        };
        let count = if names.takes_all() { 0 } else { paths.len() as u32 };
        Reads {
            metrics: !paths.is_empty(),
            attributes: attributes(projection, &paths),
            slots: (0..count).map(slots_of).collect(),
            all: holds.iter().map(|field| field.slot).collect(),
            names,
        }
    }

    /// All metrics with all members.
    pub(super) fn everything() -> Reads {
        let (slots, all) = (Vec::new(), Box::default());
        Reads { metrics: true, attributes: Attributes::MAX, names: Names::new(None), slots, all }
    }
}

/// The name of the one metric that a path leads to.
pub(super) fn name_of(path: &Path) -> Option<&str> {
    let Some(Segment::Named(named)) = path.0.get(1) else { return None };
    match (&named.condition.path.0[..], &named.condition.test) {
        ([Segment::Key(key)], Test::Equals(Value::String(name)))
            if **key == *"name" && !named.is_parallel =>
        {
            Some(name)
        }
        _ => None,
    }
}

/// The members of metrics that are read: those whose names stand in some path.
fn attributes(projection: &Projection, paths: &[&Path]) -> Attributes {
    let mut found = 0;
    let mut see = |path: &Path| {
        for segment in &path.0 {
            let keys = match segment {
                Segment::Key(key) => std::slice::from_ref(key),
                _ => &[],
            };
            let is_read = |name: &str| keys.iter().any(|key| **key == *name);
            NAMED.iter().filter(|(name, _)| is_read(name)).for_each(|(_, bit)| found |= bit);
        }
    };
    for path in paths {
        see(path);
        for segment in &path.0 {
            if let Segment::Named(named) = segment {
                see(&named.condition.path);
            }
        }
    }
    for field in &projection.fields {
        if let Read::Elements(_, conditions) | Read::Witness(_, conditions) = &field.read {
            conditions.iter().for_each(|condition| see(&condition.path));
        }
    }
    found
}
