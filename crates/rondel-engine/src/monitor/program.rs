//! Programs: specifications, compiled.

use std::borrow::Cow;
use std::sync::OnceLock;

use rondel_event::{Field, Layout, Path, Projection, Read, TopicId, ValueType};
use rondel_spec::{Chain, Finality, Property, Spec, Topic};

use crate::CompileError;
use crate::chain::ChainPlan;
use crate::exec::memory::Memory;
use crate::exec::section::Section;
use crate::ir::instruction::Instruction;
use crate::keyed::plan::Sliced;
use crate::lower::binding::Binding;
use crate::lower::divide::divide;
use crate::lower::elements::{ElementPlan, Elements, tables};
use crate::lower::quantifier::Quantifier;
use crate::lower::translate::FieldRead;
use crate::monitor::contents::Contents;
use crate::monitor::sections::SectionCompiler;
use crate::monitor::uncertainty::{ReachPlan, finality};
use crate::monitor::witness::Named;

/// Compiled specification: its properties as lists of instructions, in which equal subformulas are computed once.
/// Immutable; any number of [`Monitor`](crate::Monitor)s share it.
#[derive(Debug)]
pub struct Program {
    topics: Vec<Topic>,
    properties: Vec<String>,
    layout: Layout,
    projections: Vec<Projection>,
    pub(crate) sections: Vec<Section>,
    /// Whether any property measures time.
    pub(crate) reads_time: bool,
    fingerprint: u64,
    quantifiers: Vec<Quantifier>,
    /// Quantified formulas of each property whose values are named in violations.
    pub(crate) named: Vec<Vec<Named>>,
    /// Sections of properties with `for each`.
    pub(crate) sliced: Vec<Sliced>,
    /// Plans that turn the elements of messages into events of instances.
    pub(crate) elements: Vec<ElementPlan>,
    pub(crate) chains: Vec<ChainPlan>,
    /// Source specification, without tests and with topics of elements.
    pub(crate) spec: Spec,
    /// [Identities](Spec::identity) of the properties before they were made to read topics of elements.
    identities: Option<Vec<u64>>,
    /// Final verdicts of each property; empty if none are final.
    pub(crate) finality: Vec<Finality>,
    /// Reach of the properties, computed at the first request.
    pub(crate) reaches: OnceLock<Vec<ReachPlan>>,
    /// The same program with nodes identified by their values once there were events: see
    /// [`Program::compile_assuming`].
    simplified: OnceLock<Option<Box<Program>>>,
    /// Serialised [`Contents`], computed at the first request.
    contents: OnceLock<Vec<u8>>,
}

impl Program {
    /// Compiles a specification.
    ///
    /// # Errors
    /// [`CompileError`] when the nodes are no valid specification, e.g. refer forwards or have operands of wrong types,
    /// and when the engine cannot monitor a property.
    pub fn compile(spec: &Spec) -> Result<Program, CompileError> {
        Program::compiled(spec, None, None)
    }

    /// Compiles a specification whose properties may be terms. A monitor records the values of terms as
    /// [`Monitor::term_values`](crate::Monitor::term_values), and has no verdicts for them. Blocks have columns for
    /// `reads` too.
    ///
    /// # Errors
    /// As [`Program::compile`].
    pub fn compile_with_terms(spec: &Spec, reads: &[(TopicId, Path, Read)]) -> Result<Program, CompileError> {
        Program::compiled(spec, None, Some(reads))
    }

    /// Compiles properties in dense time that take over the state of others: those that are equal if the topics from
    /// `first` on have no messages.
    pub(crate) fn compile_assuming(spec: &Spec, first: TopicId) -> Result<Program, CompileError> {
        Program::compiled(spec, Some(first), None)
    }

    /// The same program with the identities of [`Program::compile_assuming`].
    pub(crate) fn simplified(&self) -> Option<&Program> {
        let compile = || {
            let first = TopicId(self.spec.topics.len() as u32);
            Program::compile_assuming(&self.spec, first).ok().map(Box::new)
        };
        self.simplified.get_or_init(compile).as_deref()
    }

    fn compiled(
        spec: &Spec,
        first: Option<TopicId>,
        reads: Option<&[(TopicId, Path, Read)]>,
    ) -> Result<Program, CompileError> {
        let terms = reads.is_some();
        let elements = Elements::new(spec);
        let identities =
            elements.as_ref().map(|_| spec.properties.iter().map(|own| spec.identity(own)).collect());
        let spec = elements.as_ref().map_or(spec, |elements| &elements.spec);
        let mut compiler = SectionCompiler::new(spec, first, terms);
        compiler.compile()?;
        let SectionCompiler { sections, mut binding, mut quantifiers, .. } = compiler;
        let sliced: Vec<Sliced> = divide(spec)?
            .into_iter()
            .map(|division| division.compile(spec, terms, &mut binding, &mut quantifiers))
            .collect::<Result<_, _>>()?;
        let chains = chains(spec, &mut binding)?;
        let is_known = |read: &&(TopicId, Path, Read)| read.0.index() < spec.topics.len();
        for (topic, path, read) in reads.unwrap_or_default().iter().filter(is_known) {
            binding.slot(&FieldRead { topic: *topic, path: path.clone(), read: read.clone() });
        }
        for (topic, path) in spec.exact_fields() {
            let Some(projection) = binding.projections.get_mut(topic.index()) else { continue };
            let is_float =
                |read: &Read| matches!(read, Read::Value(ValueType::Float) | Read::Number(ValueType::Float));
            let is_number = |field: &&mut Field| field.path == path && is_float(&field.read);
            projection.fields.iter_mut().filter(is_number).for_each(|field| field.exact = true);
        }
        let keys = elements.as_ref().map_or(&[][..], |elements| &elements.keys);
        let elements = tables(spec, keys, &mut binding);
        let mut program = Program {
            topics: spec.topics.clone(),
            properties: spec.properties.iter().map(|p| p.name.clone()).collect(),
            layout: binding.layout,
            projections: binding.projections,
            reads_time: !sliced.is_empty()
                || !chains.is_empty()
                || sections.iter().any(|section| section.reads_time),
            sections,
            fingerprint: fingerprint(spec),
            quantifiers,
            named: Vec::new(),
            sliced,
            elements,
            chains,
            spec: Spec { tests: Vec::new(), ..spec.clone() },
            identities,
            finality: finality(spec),
            reaches: OnceLock::new(),
            simplified: OnceLock::new(),
            contents: OnceLock::new(),
        };
        program.find_named(spec);
        Ok(program)
    }

    /// Errors of [`Program::compile`] for each property alone, without repetitions. Empty if the specification is
    /// accepted.
    ///
    /// ```
    /// use rondel_engine::Program;
    /// let text = "topic a { id: int } property p = exists x. not a{id: x} property q = on(a)
    ///             property r = forall x. a{id: x}";
    /// let spec = rondel_spec::parse(text).spec.unwrap();
    /// assert_eq!(Program::refusals(&spec).len(), 2);
    /// ```
    pub fn refusals(spec: &Spec) -> Vec<CompileError> {
        let Err(first) = Program::compile(spec) else { return Vec::new() };
        let mut alone = spec.clone();
        let mut refusals: Vec<CompileError> = Vec::new();
        for property in &spec.properties {
            alone.properties.clear();
            alone.properties.push(property.clone());
            let refusal = Program::compile(&alone).err().filter(|refusal| !refusals.contains(refusal));
            refusals.extend(refusal);
        }
        // The error concerns the properties together, or a part outside of any property.
        if refusals.is_empty() {
            refusals.push(first);
        }
        refusals
    }

    /// Fingerprint of the specification and the release.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Serialised description of the states of its monitors.
    pub(super) fn contents(&self) -> &[u8] {
        // Plain data always serialises.
        self.contents.get_or_init(|| postcard::to_stdvec(&Contents::new(self)).unwrap_or_default())
    }

    /// Returns the [identity](Spec::identity) of a property of the specification as it is written.
    pub(super) fn identity(&self, at: usize, property: &Property) -> u64 {
        let known = self.identities.as_ref().and_then(|all| all.get(at).copied());
        known.unwrap_or_else(|| self.spec.identity(property))
    }

    /// Columns that its blocks must have.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Fields that a decoder must read from the messages of each topic, in the order of the topics of the
    /// specification, followed by internal topics.
    pub fn projections(&self) -> &[Projection] {
        &self.projections
    }

    /// Evaluation of the quantified formulas without future operators. Those with future operators use obligations of
    /// relation tuples.
    pub fn quantifiers(&self) -> &[Quantifier] {
        &self.quantifiers
    }

    /// Names of the properties, in order of declaration.
    pub fn properties(&self) -> &[String] {
        &self.properties
    }

    /// Fields whose next values a property, by its position, waits for: those of interpolated numbers.
    pub fn waits_for(&self, property: u32) -> &[(TopicId, Path)] {
        let is_its = |section: &&Section| section.all_properties().any(|own| own == property);
        let plans = self.sections.iter().filter(is_its).filter_map(|section| section.linear.as_ref());
        plans.map(|plan| &plan.names[..]).next().unwrap_or(&[])
    }

    /// Topics, in order of declaration, followed by internal topics.
    pub fn topics(&self) -> &[Topic] {
        &self.topics
    }

    /// Topics together with those of the elements of their messages.
    pub(crate) fn with_elements<'t>(&self, topics: &'t [TopicId]) -> Cow<'t, [TopicId]> {
        let mut all = Cow::Borrowed(topics);
        for plan in self.elements.iter().filter(|plan| topics.contains(&plan.parent)) {
            all.to_mut().push(plan.topic);
        }
        all
    }

    /// Whether a property reads arrival times: whoever fills blocks then sets the arrival time of each event, if known
    /// (see [`Block::set_arrival`](rondel_event::Block::set_arrival)).
    pub fn reads_arrivals(&self) -> bool {
        let instructions = self.sections.iter().flat_map(|section| &section.instructions);
        instructions.into_iter().any(|i| matches!(i, Instruction::Latency { .. }))
    }

    /// Number of instructions run for every block: the size of the program after sharing.
    pub fn node_count(&self) -> usize {
        let sliced = self.sliced.iter().map(|sliced| &*sliced.section);
        self.sections.iter().chain(sliced).map(|section| section.instructions.len() - section.constant).sum()
    }

    /// Memory that a monitor of this program keeps.
    pub fn memory(&self) -> Vec<Memory> {
        let whole = self.sections.iter().map(Section::memory);
        whole.chain(self.sliced.iter().map(Sliced::memory)).collect()
    }
}

/// Plans of the chains, with a column for the stamp in each of their topics.
fn chains(spec: &Spec, binding: &mut Binding) -> Result<Vec<ChainPlan>, CompileError> {
    let plan = |chain: &Chain| {
        let is_known = |(topic, _): &(TopicId, Path)| topic.index() < spec.topics.len();
        if chain.links.len() < 2 || chain.value_type == ValueType::Float || !chain.links.iter().all(is_known)
        {
            return Err(CompileError::InvalidChain { chain: chain.name.clone() });
        }
        let links = chain.links.iter().map(|(topic, path)| {
            let read = Read::Value(chain.value_type);
            (*topic, binding.slot(&FieldRead { topic: *topic, path: path.clone(), read }))
        });
        let property = spec.properties.iter().position(|property| property.name == chain.name);
        Ok(ChainPlan {
            name: chain.name.clone(),
            property: property.map(|at| at as u32),
            links: links.collect(),
            value_type: chain.value_type,
            within: chain.within,
            wait: chain.wait,
            limit: crate::chain::LIMIT,
        })
    };
    spec.chains.iter().map(plan).collect()
}

fn fingerprint(spec: &Spec) -> u64 {
    let Spec { topics, properties, nodes, slices, machines, chains, .. } = spec;
    let text = format!(
        "{} {topics:?} {properties:?} {nodes:?} {slices:?} {machines:?} {chains:?}",
        env!("CARGO_PKG_VERSION")
    );
    rondel_event::snapshot::checksum(text.as_bytes())
}
