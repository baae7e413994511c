//! Comparisons of linearly interpolated numbers, as differences that are compared with zero.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rondel_event::{Comparison, Path, Read, TopicId, Value, ValueType};
use rondel_spec::{BinaryOp, Class, Expr, ExprId, Spec, TimeModel, UnaryOp, fold};

use super::{FieldId, Translator, Truth, TruthBounds};
use crate::CompileError;
use crate::ir::node::Node;
use crate::ir::wire::{Halves, Wire};
use crate::linear::Form;
use crate::lower::error;

/// Limits: linear forms per comparison, and fields per linear form.
const LINES: usize = 32;
const TERMS: usize = 256;

/// The linear forms that a section compares with zero.
#[derive(Default)]
pub(crate) struct Lines {
    /// Numbers of the interpolated fields.
    pub(crate) fields: Vec<FieldId>,
    pub(crate) lines: Vec<Form>,
    /// Indexes of the linear forms of each comparison.
    compared: HashMap<ExprId, BTreeSet<u32>>,
    /// The piecewise-linear value of each numeric node.
    expressions: HashMap<ExprId, PiecewiseLinear>,
    /// For every node whether it depends on an interpolated field.
    interpolated: Vec<bool>,
}

impl Lines {
    /// The fields and linear forms that comparisons use.
    pub(crate) fn used(mut self) -> (Vec<FieldId>, Vec<Form>) {
        let terms = self.lines.iter().flat_map(|line| &line.terms);
        let used: BTreeSet<u32> = terms.map(|(field, _)| *field).collect();
        let place: HashMap<u32, u32> = used.iter().copied().zip(0..).collect();
        for (field, _) in self.lines.iter_mut().flat_map(|line| &mut line.terms) {
            *field = place.get(field).copied().unwrap_or_default();
        }
        let fields = used.iter().filter_map(|field| self.fields.get(*field as usize).copied());
        (fields.collect(), self.lines)
    }
}

/// A continuous, piecewise-linear function of interpolated fields.
#[derive(Clone, Debug)]
enum PiecewiseLinear {
    Line(Form),
    Greater(Box<[PiecewiseLinear; 2]>),
    Less(Box<[PiecewiseLinear; 2]>),
}

impl PiecewiseLinear {
    fn constant(constant: f64) -> PiecewiseLinear {
        PiecewiseLinear::Line(Form { constant, terms: Vec::new() })
    }

    fn lines(&self) -> usize {
        match self {
            PiecewiseLinear::Line(_) => 1,
            PiecewiseLinear::Greater(both) | PiecewiseLinear::Less(both) => {
                both.iter().map(PiecewiseLinear::lines).sum()
            }
        }
    }

    /// Itself within the limit of linear forms; none beyond.
    fn small(self) -> Option<PiecewiseLinear> {
        (self.lines() <= LINES).then_some(self)
    }

    fn map(&self, f: &dyn Fn(&Form) -> PiecewiseLinear) -> PiecewiseLinear {
        let both = |both: &[PiecewiseLinear; 2]| Box::new(both.each_ref().map(|piecewise| piecewise.map(f)));
        match self {
            PiecewiseLinear::Line(form) => f(form),
            PiecewiseLinear::Greater(x) => PiecewiseLinear::Greater(both(x)),
            PiecewiseLinear::Less(x) => PiecewiseLinear::Less(both(x)),
        }
    }

    fn plus(&self, other: &PiecewiseLinear) -> Option<PiecewiseLinear> {
        if self.lines() * other.lines() > LINES {
            return None;
        }
        Some(self.map(&|x| other.map(&|y| PiecewiseLinear::Line(x.plus(y)))))
    }

    fn times(&self, factor: f64) -> PiecewiseLinear {
        let both =
            |both: &[PiecewiseLinear; 2]| Box::new(both.each_ref().map(|piecewise| piecewise.times(factor)));
        match self {
            PiecewiseLinear::Line(form) => PiecewiseLinear::Line(form.times(factor)),
            PiecewiseLinear::Greater(x) if factor < 0.0 => PiecewiseLinear::Less(both(x)),
            PiecewiseLinear::Less(x) if factor < 0.0 => PiecewiseLinear::Greater(both(x)),
            PiecewiseLinear::Greater(x) => PiecewiseLinear::Greater(both(x)),
            PiecewiseLinear::Less(x) => PiecewiseLinear::Less(both(x)),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            PiecewiseLinear::Line(Form { constant, terms }) if terms.is_empty() => Some(*constant),
            _ => None,
        }
    }

    /// Adds the indexes of its linear forms.
    fn numbers(&self, lines: &[Form], out: &mut BTreeSet<u32>) {
        match self {
            PiecewiseLinear::Line(form) => {
                out.extend(lines.iter().position(|line| line == form).map(|number| number as u32));
            }
            PiecewiseLinear::Greater(both) | PiecewiseLinear::Less(both) => {
                both.iter().for_each(|piecewise| piecewise.numbers(lines, out))
            }
        }
    }

    fn fields(&self, out: &mut BTreeSet<u32>) {
        match self {
            PiecewiseLinear::Line(form) => out.extend(form.terms.iter().map(|(field, _)| *field)),
            PiecewiseLinear::Greater(both) | PiecewiseLinear::Less(both) => {
                both.iter().for_each(|piecewise| piecewise.fields(out))
            }
        }
    }
}

impl Form {
    fn plus(&self, other: &Form) -> Form {
        let mut terms = BTreeMap::new();
        for &(field, factor) in self.terms.iter().chain(&other.terms) {
            *terms.entry(field).or_insert(0.0) += factor;
        }
        Form { constant: self.constant + other.constant, terms: terms.into_iter().collect() }
    }

    fn times(&self, factor: f64) -> Form {
        let terms = self.terms.iter().map(|(field, x)| (*field, x * factor)).collect();
        Form { constant: self.constant * factor, terms }
    }
}

/// The relation to zero that a comparison needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ZeroRelation {
    Below,
    AtMost,
}

impl Translator<'_> {
    /// A translator for properties with linear interpolation.
    pub(crate) fn linear(spec: &rondel_spec::Spec) -> Translator<'_> {
        let interpolated = interpolated(spec);
        Translator { linear: Some(Lines { interpolated, ..Lines::default() }), ..Translator::new(spec) }
    }

    /// Records the piecewise-linear value of a node. Its operands have been visited.
    pub(super) fn interpolate(&mut self, id: ExprId, expr: &Expr) -> Result<(), CompileError> {
        let Some(Lines { interpolated, .. }) = &self.linear else { return Ok(()) };
        let is_interpolated =
            |x: &ExprId| interpolated.get(x.index()).is_some_and(|interpolated| *interpolated);
        let refused = match expr {
            Expr::Key(..) => true,
            Expr::Prev(x) => is_interpolated(x) && !matches!(self.spec.nodes[x.index()], Expr::Field { .. }),
            _ => matches!(expr.class(), Class::Measure | Class::Quantifier | Class::Machine),
        };
        if refused {
            return Err(CompileError::Unsupported { node: id, what: error::NOT_PIECEWISE_LINEAR });
        }
        let piecewise = self.piecewise(expr);
        if let (Some(lines), Some(piecewise)) = (&mut self.linear, piecewise.and_then(PiecewiseLinear::small))
        {
            lines.expressions.insert(id, piecewise);
        }
        Ok(())
    }

    fn piecewise(&mut self, expr: &Expr) -> Option<PiecewiseLinear> {
        if let Expr::Field { topic, path, value_type: value_type @ (ValueType::Int | ValueType::Float) } =
            expr
        {
            let field = self.field(*topic, path, Read::Value(*value_type));
            let fields = &mut self.linear.as_mut()?.fields;
            let known = fields.iter().position(|known| *known == field);
            let number = known.unwrap_or_else(|| {
                fields.push(field);
                fields.len() - 1
            });
            return Some(PiecewiseLinear::Line(Form { constant: 0.0, terms: vec![(number as u32, 1.0)] }));
        }
        let expressions = &self.linear.as_ref()?.expressions;
        let of = |x: &ExprId| expressions.get(x);
        match expr {
            Expr::Literal(Value::Int(x)) => Some(PiecewiseLinear::constant(*x as f64)),
            Expr::Literal(Value::Float(x)) => Some(PiecewiseLinear::constant(*x)),
            Expr::ToFloat(x) => of(x).cloned(),
            Expr::Unary(UnaryOp::Negate, x) => Some(of(x)?.times(-1.0)),
            Expr::Unary(UnaryOp::Abs, x) => {
                let x = of(x)?;
                Some(PiecewiseLinear::Greater(Box::new([x.clone(), x.times(-1.0)])))
            }
            Expr::Binary(op, x, y) => {
                let (x, y) = (of(x)?, of(y)?);
                match op {
                    BinaryOp::Add => x.plus(y),
                    BinaryOp::Subtract => x.plus(&y.times(-1.0)),
                    BinaryOp::Multiply => match (x.number(), y.number()) {
                        (Some(factor), _) => Some(y.times(factor)),
                        (_, factor) => Some(x.times(factor?)),
                    },
                    BinaryOp::Divide => Some(x.times(1.0 / y.number()?)),
                    BinaryOp::Max => Some(PiecewiseLinear::Greater(Box::new([x.clone(), y.clone()]))),
                    BinaryOp::Min => Some(PiecewiseLinear::Less(Box::new([x.clone(), y.clone()]))),
                    BinaryOp::Remainder => None,
                }
            }
            _ => None,
        }
    }

    /// The comparison of interpolated numbers; none for other operands.
    pub(super) fn compare_interpolated(
        &mut self,
        id: ExprId,
        comparison: Comparison,
        x: ExprId,
        y: ExprId,
    ) -> Result<Option<Truth>, CompileError> {
        let Some(Lines { interpolated, expressions, .. }) = &self.linear else { return Ok(None) };
        let is_number = |x: ExprId| {
            matches!(
                self.spec.value_type(x),
                ValueType::Int | ValueType::Float | ValueType::Duration | ValueType::Time
            )
        };
        if !is_interpolated(interpolated, x) && !is_interpolated(interpolated, y) || !is_number(x) {
            return Ok(None);
        }
        // Whether a message changed a value does not depend on interpolation between messages.
        if is_change(self.spec, &self.spec.nodes[id.index()]) {
            return Ok(None);
        }
        let difference =
            expressions.get(&x).zip(expressions.get(&y)).and_then(|(x, y)| x.plus(&y.times(-1.0)));
        let mut fields = BTreeSet::new();
        let mut difference = difference.and_then(PiecewiseLinear::small).filter(|difference| {
            difference.fields(&mut fields);
            fields.len() <= TERMS
        });
        if let Some(difference) = &mut difference {
            // A linear form with all fields and factors of zero is unknown wherever one of the operands is.
            let terms: Vec<(u32, f64)> = fields.iter().map(|field| (*field, 0.0)).collect();
            let all = Form { constant: 0.0, terms };
            *difference = difference.map(&|line| PiecewiseLinear::Line(line.plus(&all)));
        }
        let Some(difference) = difference else {
            return Err(CompileError::Unsupported { node: id, what: error::NOT_PIECEWISE_LINEAR });
        };
        let truth = match comparison {
            Comparison::Less => self.bounded(&difference, ZeroRelation::Below),
            Comparison::LessOrEqual => self.bounded(&difference, ZeroRelation::AtMost),
            Comparison::Greater => self.bounded(&difference, ZeroRelation::AtMost).not(),
            Comparison::GreaterOrEqual => self.bounded(&difference, ZeroRelation::Below).not(),
            Comparison::Equal => self.is_zero(&difference),
            Comparison::NotEqual => self.is_zero(&difference).not(),
        };
        let mut compared = BTreeSet::new();
        if let Some(Lines { lines, .. }) = &self.linear {
            difference.numbers(lines, &mut compared);
        }
        if let Some(Lines { compared: all, .. }) = &mut self.linear {
            all.insert(id, compared);
        }
        Ok(Some(truth))
    }

    /// Where a formula is certainly true. Truths that are unknown because the next message is missing stay
    /// unknown, unlike those of fields that never had a value.
    pub(super) fn definitely(&mut self, id: ExprId, x: Truth) -> Truth {
        let compared = self.linear.as_ref().and_then(|lines| lines.compared.get(&id)).cloned();
        let mut half = |half: u8, bounds: TruthBounds| {
            let mut open = Wire::FALSE;
            for &line in compared.iter().flatten() {
                let is = self.graph.wire(Node::Line { line, sign: 3, half });
                open = self.graph.or(open, is);
            }
            let open = self.graph.and(bounds.possible, open);
            TruthBounds { certain: bounds.certain, possible: self.graph.or(bounds.certain, open) }
        };
        Truth { at: half(0, x.at), after: half(1, x.after) }
    }

    fn is_zero(&mut self, piecewise: &PiecewiseLinear) -> Truth {
        if let PiecewiseLinear::Line(form) = piecewise {
            return self.signs(form, [1]);
        }
        let (at_most, below) =
            (self.bounded(piecewise, ZeroRelation::AtMost), self.bounded(piecewise, ZeroRelation::Below));
        self.both(at_most, below.not())
    }

    fn bounded(&mut self, piecewise: &PiecewiseLinear, wanted: ZeroRelation) -> Truth {
        match piecewise {
            PiecewiseLinear::Line(form) if wanted == ZeroRelation::Below => self.signs(form, [0]),
            PiecewiseLinear::Line(form) => self.signs(form, [0, 1]),
            PiecewiseLinear::Greater(both) | PiecewiseLinear::Less(both) => {
                let [x, y] = both.each_ref().map(|piecewise| self.bounded(piecewise, wanted));
                if matches!(piecewise, PiecewiseLinear::Greater(_)) {
                    self.both(x, y)
                } else {
                    self.both(x.not(), y.not()).not()
                }
            }
        }
    }

    fn both(&mut self, x: Truth, y: Truth) -> Truth {
        self.by_bound([x, y], |graph, [a, b]| Halves {
            at: graph.and(a.at, b.at),
            after: graph.and(a.after, b.after),
        })
    }

    /// The truth that a linear form has one of these signs.
    fn signs<const N: usize>(&mut self, form: &Form, signs: [u8; N]) -> Truth {
        let Some(Lines { lines, .. }) = &mut self.linear else {
            return Truth::lasting(TruthBounds::both(Wire::FALSE));
        };
        let line = lines.iter().position(|known| known == form).unwrap_or_else(|| {
            lines.push(form.clone());
            lines.len() - 1
        });
        let mut half = |half: u8| {
            let mut bounds = TruthBounds { certain: Wire::FALSE, possible: Wire::TRUE };
            for sign in 0..3 {
                let is = self.graph.wire(Node::Line { line: line as u32, sign, half });
                if signs.contains(&sign) {
                    bounds.certain = self.graph.or(bounds.certain, is);
                } else {
                    bounds.possible = self.graph.and(bounds.possible, !is);
                }
            }
            bounds
        };
        Truth { at: half(0), after: half(1) }
    }
}

fn is_interpolated(interpolated: &[bool], x: ExprId) -> bool {
    interpolated.get(x.index()).is_some_and(|interpolated| *interpolated)
}

/// For every node whether it depends on a number of a message.
fn interpolated(spec: &Spec) -> Vec<bool> {
    fold(&spec.nodes, |_, expr, interpolated: &[bool]| {
        let own = matches!(expr, Expr::Field { value_type: ValueType::Int | ValueType::Float, .. });
        own || expr.operands().any(|operand| is_interpolated(interpolated, operand))
    })
}

/// Whether a node compares a field with its value before the last message.
fn is_change(spec: &Spec, expr: &Expr) -> bool {
    let Expr::Compare(Comparison::NotEqual, x, before) = expr else { return false };
    let node = |id: &ExprId| spec.nodes.get(id.index());
    matches!(node(before), Some(Expr::Prev(y)) if x == y) && matches!(node(x), Some(Expr::Field { .. }))
}

/// Properties with equal interpolated fields, by generation and those fields.
pub(crate) type Groups = BTreeMap<(u32, Vec<(TopicId, Path)>), Vec<u32>>;

/// The dense properties without parameters that compare interpolated numbers.
pub(crate) fn groups(spec: &Spec) -> Result<Groups, CompileError> {
    let mut groups = Groups::new();
    for (i, property) in (0..).zip(&spec.properties).filter(|(_, property)| property.linear) {
        let node = property.formula;
        if property.time != TimeModel::Dense || property.slice.is_some() || property.robust {
            return Err(CompileError::Unsupported { node, what: error::NOT_PIECEWISE_LINEAR });
        }
        let fields = fields_of(spec, node);
        if !fields.is_empty() {
            groups.entry((property.generation, fields)).or_default().push(i);
        }
    }
    Ok(groups)
}

/// The interpolated fields in comparisons of a formula: evaluation waits for their next messages.
fn fields_of(spec: &Spec, formula: ExprId) -> Vec<(TopicId, Path)> {
    let mut fields = BTreeSet::new();
    let mut seen = HashSet::from([formula]);
    let mut open = vec![formula];
    while let Some(id) = open.pop() {
        let Some(expr) = spec.nodes.get(id.index()) else { continue };
        if let Expr::Field { topic, path, value_type: ValueType::Int | ValueType::Float } = expr {
            fields.insert((*topic, path.clone()));
        }
        if !is_change(spec, expr) {
            open.extend(expr.operands().filter(|operand| operand.0 < id.0 && seen.insert(*operand)));
        }
    }
    fields.into_iter().collect()
}
