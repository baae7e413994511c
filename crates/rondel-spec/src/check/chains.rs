//! Checks and translation of chains.

use rondel_event::{Comparison, Value, ValueType};

use super::names::Names;
use super::time::Units;
use super::{Checker, Meaning};
use crate::diagnostic::{Code, Diagnostic};
use crate::spec::{self, Below, Bounds, ChainId, Expr, ExprId, SliceId, TimeModel};
use crate::suggest::unknown;
use crate::syntax::ast::{Attribute, Chain, ChainBound, Measure, Name};

/// A stamp is kept for at least this multiple of the latency bound.
const WAIT: u64 = 10;

impl<'a> Checker<'a> {
    pub(super) fn resolve_chain(&mut self, chain: &Chain, names: &Names<'a>) {
        let mut wrong = false;
        for (i, topic) in chain.topics.iter().enumerate() {
            match self.topic(topic, names) {
                Ok(_) => {
                    if let Some(first) = chain.topics[..i].iter().find(|other| other.text == topic.text) {
                        let message = format!("topic '{}' appears twice in the chain", topic.text);
                        let diagnostic = Diagnostic::new(Code::ChainTopics, topic.span, message)
                            .label(first.span, "first appears here");
                        self.diagnostics.push(diagnostic);
                        wrong = true;
                    }
                }
                Err(diagnostic) => {
                    self.diagnostics.push(*diagnostic);
                    wrong = true;
                }
            }
        }
        for bound in chain.bounds.iter().map(|further| &further.bound).chain([&chain.within]) {
            if let Err(diagnostic) = self.resolve_bound(bound, None, names) {
                self.diagnostics.push(*diagnostic);
            }
        }
        let stamp = &self.ast.for_eaches[chain.each].parameters[0];
        if wrong {
            // An error in a topic also affects its field, but is reported only once.
            stamp.fields.iter().for_each(|node| self.meanings[*node] = Meaning::Invalid);
        } else {
            self.resolve_parameter(stamp, None, names);
        }
    }

    /// Returns whether the operand of a measurement is a chain; a topic of the same name takes precedence.
    pub(super) fn measures_chain(&self, measure: Measure, name: &Name, names: &Names<'_>) -> bool {
        let is_chain = || self.ast.chains.iter().any(|chain| chain.name.text == name.text);
        measure == Measure::Reaction || names.get(&name.text, name.span).is_none() && is_chain()
    }

    pub(super) fn resolve_chain_measure(&mut self, measure: Measure, name: &Name) -> Meaning {
        let chains = &self.ast.chains;
        let diagnostic = match (chains.iter().position(|c| c.name.text == name.text), measure.of_chain()) {
            (Some(chain), Some(measure)) => return Meaning::Chain(ChainId(chain as u32), measure),
            (Some(_), None) => {
                let message = format!("'{}' is a chain, and chains have no jitter", name.text);
                Diagnostic::new(Code::UnknownTopic, name.span, message)
                    .help("a chain has `latency`, `age` and `reaction`")
            }
            (None, _) => {
                let names: Vec<_> = chains.iter().map(|c| c.name.text.as_str()).collect();
                let message = format!("unknown chain '{}'", name.text);
                let diagnostic = Diagnostic::new(Code::UnknownName, name.span, message);
                self.with_import(unknown(diagnostic, &name.text, &names, "declared chains"), name)
            }
        };
        self.diagnostics.push(diagnostic);
        Meaning::Invalid
    }

    /// Translates the declarations of chains, before any formula.
    pub(super) fn lower_chains(&mut self) {
        for chain in &self.ast.chains {
            let stamp = &self.ast.for_eaches[chain.each].parameters[0];
            let mut links = Vec::new();
            let mut value_type = ValueType::Time;
            for node in &stamp.fields {
                if let Some((topic, path, found)) = self.field_of(*node) {
                    links.push((topic, path));
                    value_type = found;
                }
            }
            let broken = links.len() != chain.topics.len();
            self.begin(&chain.name, &chain.attributes);
            let mut units = Units::default();
            for bound in chain.bounds.iter().map(|further| &further.bound).chain([&chain.within]) {
                self.add_bound(bound, &mut units);
            }
            let model = self.model(&chain.attributes, units);
            let upper = self.lower_reach(&chain.within, model);
            self.chain_reaches.push(upper.map(|upper| (model, upper)).filter(|_| !broken));
            let within = upper.filter(|_| model != TimeModel::Steps);
            let wait = within.map(|within| within.saturating_mul(WAIT));
            let name = chain.name.text.clone();
            self.graph.spec_mut().chains.push(spec::Chain { name, links, value_type, within, wait });
        }
    }

    /// Translates a further bound of a chain into its own property.
    pub(super) fn lower_chain_bound(
        &mut self,
        index: usize,
        ChainBound { name, measure, bound }: &ChainBound,
    ) {
        let chain = &self.ast.chains[index];
        let Some((model, _)) = self.chain_reaches.get(index).copied().flatten() else { return };
        if model == TimeModel::Steps {
            let message = "`age` and `reaction` are durations, but this chain counts steps";
            self.begin(&chain.name, &chain.attributes);
            let diagnostic = Diagnostic::new(Code::WrongTimeModel, bound.span, message)
                .help("give every bound of the chain a unit, such as `150 ms`");
            let diagnostic = self.because_of_option(diagnostic);
            self.diagnostics.push(diagnostic);
            return;
        }
        let Some(upper) = self.lower_reach(bound, model) else { return };
        if let Some(wait) = self.graph.spec_mut().chains.get_mut(index).and_then(|c| c.wait.as_mut()) {
            *wait = upper.max(*wait);
        }
        let measured = self.graph.add(Expr::Chain(ChainId(index as u32), *measure));
        let upper = i64::try_from(upper).unwrap_or(i64::MAX);
        let upper = self.graph.add(Expr::Literal(Value::Duration(upper)));
        let formula = self.graph.compare(Comparison::LessOrEqual, measured, upper);
        // The property has no `for each`, so these attributes do not apply to it.
        let is_for_it = |a: &&Attribute| !matches!(a.name.text.as_str(), "limit" | "robust");
        let attributes: Vec<_> = chain.attributes.iter().filter(is_for_it).cloned().collect();
        self.push_property(name, &attributes, formula, None, model);
    }

    /// Reports a measurement of a chain in a property with `for each`.
    pub(super) fn check_undivided(&mut self, name: &Name, roots: Vec<ExprId>, slice: Option<SliceId>) {
        if slice.is_none() || self.ast.chains.is_empty() {
            return;
        }
        let spec = self.graph.spec();
        let until = slice.and_then(|id| spec.slices.get(id.0 as usize)?.until);
        for (_, node) in Below::new(&spec.nodes, roots.into_iter().chain(until)) {
            if let Expr::Chain(chain, _) = node {
                let chain = spec.chains.get(chain.0 as usize).map_or("?", |chain| &chain.name);
                let message = format!("'{}' has `for each` and cannot measure chain '{chain}'", name.text);
                self.diagnostics.push(
                    Diagnostic::new(Code::DividedChain, name.span, message)
                        .help("move the measurement to a property without `for each`"),
                );
                return;
            }
        }
    }

    /// Translates a chain into a formula: a message of the last topic must follow each message of the first.
    pub(super) fn lower_chain(&mut self, index: usize) -> Option<(ExprId, Option<SliceId>, TimeModel)> {
        let chain = &self.ast.chains[index];
        let (model, upper) = self.chain_reaches.get(index).copied().flatten()?;
        let links = self.graph.spec().chains.get(index)?.links.clone();
        let on: Vec<_> = links.iter().map(|(topic, _)| self.graph.add(Expr::On(*topic))).collect();
        let (first, between, last) = match on.as_slice() {
            [first, between @ .., last] => (*first, between, *last),
            _ => return None,
        };
        let mut came = last;
        if !between.is_empty() {
            // Older messages are late in any case; forgetting them lets an instance end if the last topic stays silent.
            let recent = Bounds { lower: 0, upper: Some(upper) };
            let mut through = self.graph.once(recent, first);
            for topic in between {
                let here = self.graph.and(*topic, through);
                through = self.graph.once(recent, here);
            }
            came = self.graph.and(last, through);
        }
        let followed = self.graph.add(Expr::Eventually(Bounds { lower: 0, upper: Some(upper) }, came));
        let formula = self.graph.implies(first, followed);
        // Not as soon as the last topic arrives: messages that skipped a topic are still missing.
        let slice = self.lower_parameters(chain.each, Some(came), &chain.attributes)?;
        Some((formula, Some(slice), model))
    }
}
