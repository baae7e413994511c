//! Plan of a decoder: the reads of each value of a type.

use rondel_event::{Named, ValueType};

use super::schema::{Field, Kind, Logical, Node, Types};
use crate::cdr::PlanError;
use crate::fields::{Fields, Want};
use crate::sink::{Target, elements_target};
use crate::typed::{Class, Report, is_for_all};

/// Reads of a value.
#[derive(Debug)]
pub(super) enum Read {
    Skip,
    Scalar(Box<[Target]>),
    /// A record: the targets of its presence, and the reads of its fields by position.
    Record(Box<[Target]>, Box<[Read]>),
    /// A union: the reads of its branches by position.
    Union(Box<[Branch]>),
    /// Converts the value to CBOR, as a member with this name: arrays, maps and records with elements in them.
    Convert(Box<str>, Convert),
}

/// Reads of a branch of a union.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) read: Read,
    /// Targets in other branches, which have no value with this one.
    pub(super) lacking: Box<[Target]>,
    pub(super) is_null: bool,
}

/// Parts of a value that are converted.
#[derive(Clone, Debug)]
pub(super) enum Convert {
    /// Null in its place.
    Skip,
    /// A value without parts; `true` for a time or a duration where its type states one.
    Value(bool),
    /// The fields of a record by position; those without a plan are left out.
    Record(Box<[Option<Convert>]>),
    /// The elements of an array.
    Array(Box<Convert>),
    /// Entries of a map.
    Map(Vec<(Box<str>, Convert)>),
    /// The branches of a union by position.
    Union(Box<[Convert]>),
    /// The value with all its parts.
    All,
}

impl Convert {
    /// Returns the parts that either of two plans for the same type converts.
    fn merge(self, other: Convert) -> Convert {
        let both = |some: Box<[Convert]>, others: Box<[Convert]>| {
            some.into_iter().zip(others).map(|(one, other)| one.merge(other)).collect()
        };
        match (self, other) {
            (Convert::Skip, some) | (some, Convert::Skip) => some,
            (Convert::Value(one), Convert::Value(other)) => Convert::Value(one || other),
            (Convert::Record(some), Convert::Record(others)) => {
                let fields = some.into_iter().zip(others).map(|fields| match fields {
                    (Some(one), Some(other)) => Some(one.merge(other)),
                    (one, other) => one.or(other),
                });
                Convert::Record(fields.collect())
            }
            (Convert::Array(one), Convert::Array(other)) => Convert::Array(Box::new(one.merge(*other))),
            (Convert::Map(mut some), Convert::Map(others)) => {
                for (key, other) in others {
                    match some.iter_mut().find(|(known, _)| *known == key) {
                        Some((_, one)) => *one = std::mem::replace(one, Convert::Skip).merge(other),
                        None => some.push((key, other)),
                    }
                }
                Convert::Map(some)
            }
            (Convert::Union(some), Convert::Union(others)) => Convert::Union(both(some, others)),
            _ => Convert::All,
        }
    }
}

/// Compiles a type and the fields that are read to a plan.
pub(super) struct Compiler<'t, 'p> {
    types: &'t Types,
    pub(super) report: Report,
    /// Values that are converted: the paths that name them, and what is read in them.
    pub(super) converted: Vec<(Box<str>, Fields<'p>)>,
}

impl<'t, 'p> Compiler<'t, 'p> {
    pub(super) fn new(types: &'t Types) -> Compiler<'t, 'p> {
        Compiler { types, report: Report::default(), converted: Vec::new() }
    }

    /// Calls `work` with the path extended by a segment.
    fn below<T>(&mut self, segment: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.report.enter(segment);
        let result = work(self);
        self.report.leave(outer);
        result
    }

    /// Returns the reads of a value.
    pub(super) fn read(&mut self, of: usize, fields: &Fields<'p>) -> Read {
        if fields.is_empty() {
            return Read::Skip;
        }
        let types = self.types;
        if !self.is_direct(of, fields) {
            let name: Box<str> = self.report.path.as_str().into();
            // The branches of a union have equal paths, and equal reads.
            if self.converted.iter().all(|(known, _)| *known != name) {
                self.converted.push((name.clone(), fields.clone()));
            }
            return Read::Convert(name, self.convert(of, fields));
        }
        match &types.node(of).kind {
            Kind::Record(members) => {
                let present = fields.reads.iter().filter_map(Target::new).collect();
                self.check_keys(members, fields);
                let reads = members.iter().map(|member| match fields.key(&member.name) {
                    Some(below) => self.below(&member.name, |this| this.read(member.of, below)),
                    None => Read::Skip,
                });
                Read::Record(present, reads.collect())
            }
            Kind::Union(branches) => {
                let reads = self.branches(branches, |this, of| this.branch(of, fields));
                Read::Union(reads.into())
            }
            _ => Read::Scalar(self.targets(of, fields)),
        }
    }

    /// Whether values of the type are read without being converted.
    fn is_direct(&self, of: usize, fields: &Fields<'_>) -> bool {
        match &self.types.node(of).kind {
            Kind::Array(_) | Kind::Map(_) => false,
            Kind::Record(_) => {
                let has_elements = fields.elements().next().is_some() || !fields.parallel.is_empty();
                !has_elements && fields.reads.iter().all(|want| matches!(want, Want::Presence(_)))
            }
            Kind::Union(branches) => branches.iter().all(|of| self.is_direct(*of, fields)),
            _ => true,
        }
    }

    /// Compiles the branches of a union. A part that some branch has is no error.
    fn branches<T>(&mut self, branches: &[usize], mut work: impl FnMut(&mut Self, usize) -> T) -> Vec<T> {
        let outer = std::mem::take(&mut self.report.errors);
        let mut errors: Vec<Vec<PlanError>> = Vec::new();
        let mut all = Vec::with_capacity(branches.len());
        for of in branches {
            all.push(work(self, *of));
            let found = std::mem::take(&mut self.report.errors);
            if !self.types.is_null(*of) {
                errors.push(found);
            }
        }
        self.report.errors = outer;
        if let Some((first, others)) = errors.split_first() {
            let is_in = |errors: &Vec<PlanError>, path: &str| errors.iter().any(|error| *error.path == *path);
            for error in first.iter().filter(|error| others.iter().all(|other| is_in(other, &error.path))) {
                if !self.report.errors.contains(error) {
                    self.report.errors.push(error.clone());
                }
            }
        }
        all
    }

    /// Returns the reads of a branch of a union.
    fn branch(&mut self, of: usize, fields: &Fields<'p>) -> Branch {
        let is_null = self.types.is_null(of);
        if let Kind::Record(_) = self.types.node(of).kind {
            return Branch { read: self.read(of, fields), lacking: Box::default(), is_null };
        }
        let mut lacking = Vec::new();
        fields.keys.iter().for_each(|(_, below)| collect_targets(below, &mut lacking));
        let targets = self.targets(of, fields);
        // Values of a branch with another type are refused when they come.
        let targets = match self.report.errors.is_empty() {
            true => targets,
            false => fields.reads.iter().filter_map(Target::new).collect(),
        };
        Branch { read: Read::Scalar(targets), lacking: lacking.into(), is_null }
    }

    /// Returns the targets of a value without parts.
    fn targets(&mut self, of: usize, fields: &Fields<'_>) -> Box<[Target]> {
        match class(self.types.node(of)) {
            Some(class) => self.report.targets(class, fields),
            None => fields.reads.iter().filter_map(Target::new).collect(),
        }
    }

    /// Reports fields that a record does not have.
    fn check_keys(&mut self, members: &[Field], fields: &Fields<'_>) {
        let known = || members.iter().map(|member| member.name.clone()).collect();
        for (key, _) in &fields.keys {
            if members.iter().all(|member| *member.name != **key) {
                self.report.no_field(key, known());
            }
        }
    }

    /// Returns the parts of a value that are converted.
    fn convert(&mut self, of: usize, fields: &Fields<'_>) -> Convert {
        if fields.is_empty() {
            return Convert::Skip;
        }
        let types = self.types;
        match &types.node(of).kind {
            Kind::Record(members) => self.convert_record(members, fields),
            Kind::Array(of) => self.convert_array(*of, fields),
            Kind::Map(of) => self.convert_map(*of, fields),
            Kind::Union(branches) => {
                Convert::Union(self.branches(branches, |this, of| this.convert(of, fields)).into())
            }
            _ => {
                self.targets(of, fields);
                Convert::Value(fields.reads.iter().any(is_time))
            }
        }
    }

    fn convert_record(&mut self, members: &[Field], fields: &Fields<'_>) -> Convert {
        self.report.no_indices(fields);
        self.check_keys(members, fields);
        // A time consists of two fields.
        let mut is_time_read = false;
        for want in &fields.reads {
            is_time_read |= is_time(want);
            if !is_presence(want) && !is_time(want) {
                self.report.other_type(want, "a record");
            }
        }
        let of_parallel = |name: &str| {
            let has_name = |named: &Named| named.key().to_string() == name;
            fields.parallel.iter().any(|((array, named), _)| *array == name || has_name(named))
        };
        let parts = members.iter().map(|member| match fields.key(&member.name) {
            _ if is_time_read || of_parallel(&member.name) => Some(Convert::All),
            Some(below) => Some(self.below(&member.name, |this| this.convert(member.of, below))),
            None => None,
        });
        Convert::Record(parts.collect())
    }

    fn convert_array(&mut self, of: usize, fields: &Fields<'_>) -> Convert {
        self.report.no_keys(fields);
        let mut element = Convert::Skip;
        for (segment, below) in fields.elements() {
            element = element.merge(self.below(&segment, |this| this.convert(of, below)));
        }
        for (named, _) in &fields.named {
            let (tested, _) = Fields::of_name(named).unwrap_or_default();
            element = element.merge(self.below("[]", |this| this.convert(of, &tested)));
        }
        for want in &fields.reads {
            match want {
                Want::Elements(quantifier, conditions, _) => {
                    let (tested, _) = self.report.element(*quantifier, conditions);
                    element = element.merge(self.below("[]", |this| this.convert(of, &tested)));
                }
                want if is_for_all(want) => {}
                want => self.report.other_type(want, "an array"),
            }
        }
        Convert::Array(Box::new(element))
    }

    fn convert_map(&mut self, of: usize, fields: &Fields<'_>) -> Convert {
        self.report.no_indices(fields);
        self.report.no_parallel(fields);
        for want in fields.reads.iter().filter(|want| !is_presence(want)) {
            self.report.other_type(want, "a map");
        }
        let entries = fields.keys.iter();
        let entries =
            entries.map(|(key, below)| (Box::from(*key), self.below(key, |this| this.convert(of, below))));
        Convert::Map(entries.collect())
    }
}

/// Returns the type of a value without parts; `None` for null.
fn class(node: &Node) -> Option<Class<'static>> {
    Some(match (&node.kind, node.logical) {
        (_, Logical::Decimal(0)) => Class::Integer,
        (_, Logical::Decimal(_)) | (Kind::Float | Kind::Double, _) => Class::Float,
        (Kind::Boolean, _) => Class::Bool,
        (Kind::Int | Kind::Long, _) => Class::Integer,
        (Kind::String | Kind::Enum(_), _) => Class::Text,
        (Kind::Bytes | Kind::Fixed(_), _) => Class::Bytes,
        _ => return None,
    })
}

fn is_presence(want: &Want<'_>) -> bool {
    is_for_all(want) && !matches!(want, Want::Length(..))
}

/// Whether a time or a duration is read.
fn is_time(want: &Want<'_>) -> bool {
    let is = |value_type: &ValueType| matches!(value_type, ValueType::Time | ValueType::Duration);
    match want {
        Want::Value(value_type, _) | Want::Number(value_type, ..) => is(value_type),
        Want::EventTime => true,
        _ => false,
    }
}

/// Appends the targets of a value and the values in it.
fn collect_targets(fields: &Fields<'_>, into: &mut Vec<Target>) {
    for want in &fields.reads {
        into.extend(match want {
            Want::Elements(_, _, slot) => elements_target(*slot),
            want => Target::new(want),
        });
    }
    let keys = fields.keys.iter().map(|(_, below)| below);
    let parallel = fields.parallel.iter().map(|(_, below)| below);
    keys.chain(parallel).for_each(|below| collect_targets(below, into));
    fields.elements().for_each(|(_, below)| collect_targets(below, into));
}
