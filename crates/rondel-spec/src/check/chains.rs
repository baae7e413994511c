//! Chains: from one topic to the next, message by message.

use super::names::Names;
use super::time::Units;
use super::{Checker, Meaning};
use crate::diagnostic::{Code, Diagnostic};
use crate::spec::{Bounds, Expr, ExprId, SliceId, TimeModel};
use crate::syntax::ast::Chain;

impl<'a> Checker<'a> {
    pub(super) fn resolve_chain(&mut self, chain: &Chain, names: &Names<'a>) {
        let mut wrong = false;
        for (i, topic) in chain.topics.iter().enumerate() {
            match self.topic(topic, names) {
                Ok(_) => {
                    if let Some(first) = chain.topics[..i].iter().find(|other| other.text == topic.text) {
                        let message = format!("the topic '{}' is in the chain twice", topic.text);
                        let diagnostic = Diagnostic::new(Code::ChainTopics, topic.span, message)
                            .label(first.span, "first here");
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
        if let Err(diagnostic) = self.resolve_bound(&chain.within, None, names) {
            self.diagnostics.push(*diagnostic);
        }
        let key = &self.ast.eaches[chain.each].keys[0];
        if wrong {
            // What is wrong with the topics is wrong with their fields too, and is said once.
            key.fields.iter().for_each(|node| self.meanings[*node] = Meaning::Broken);
        } else {
            self.resolve_key(key, names);
        }
    }

    /// Every message of the first topic is followed by one of the last that came through all between.
    pub(super) fn lower_chain(&mut self, chain: &Chain) -> Option<(ExprId, Option<SliceId>, TimeModel)> {
        let key = &self.ast.eaches[chain.each].keys[0];
        let topics: Option<Vec<_>> = key
            .fields
            .iter()
            .map(|node| match &self.meanings[*node] {
                Meaning::Field { topic, .. } => Some(*topic),
                _ => None,
            })
            .collect();
        let topics = topics?;
        let mut units = Units::default();
        self.add_bound(&chain.within, &mut units);
        let model = self.model(&chain.attributes, units);
        let upper = self.lower_reach(&chain.within, model)?;
        let on: Vec<_> = topics.iter().map(|topic| self.graph.add(Expr::On(*topic))).collect();
        let (first, between, last) = match on.as_slice() {
            [first, between @ .., last] => (*first, between, *last),
            _ => return None,
        };
        let mut came = last;
        if !between.is_empty() {
            // What is longer ago has come too late in any case. So an instance forgets it, and can be
            // forgotten itself where the last topic stays silent.
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
        // Not as soon as the last topic comes: what did not come through all of them is still owed.
        let slice = self.lower_keys(chain.each, Some(came), &chain.attributes)?;
        Some((formula, Some(slice), model))
    }
}
