//! Comparisons of numbers that run straight between messages: differences that are compared with zero.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rondel_event::{Comparison, Path, Read, TopicId, Value, ValueType};
use rondel_spec::{BinaryOp, Expr, ExprId, Spec, TimeModel, UnaryOp};

use super::{FieldId, Rails, Translator, Truth};
use crate::CompileError;
use crate::ir::node::Node;
use crate::ir::wire::{Sides, Wire};
use crate::linear::Form;
use crate::lower::error;

/// So many lines a comparison may be made of, and so many fields each of them.
const LINES: usize = 32;
const TERMS: usize = 256;

/// What a section compares with zero.
#[derive(Default)]
pub(crate) struct Lines {
    /// The fields that run straight, by their numbers.
    pub(crate) fields: Vec<FieldId>,
    pub(crate) lines: Vec<Form>,
    /// The lines that each comparison is made of, by their numbers.
    compared: HashMap<ExprId, BTreeSet<u32>>,
    /// What the numbers are.
    bends: HashMap<ExprId, Bend>,
    /// For every node whether a field that runs straight is in it.
    straight: Vec<bool>,
}

impl Lines {
    /// The fields that the lines are of, and the lines: not all that is read is compared so.
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

/// A number that runs straight, with bends.
#[derive(Clone, Debug)]
enum Bend {
    Line(Form),
    Greater(Box<[Bend; 2]>),
    Less(Box<[Bend; 2]>),
}

impl Bend {
    fn constant(constant: f64) -> Bend {
        Bend::Line(Form { constant, terms: Vec::new() })
    }

    fn lines(&self) -> usize {
        match self {
            Bend::Line(_) => 1,
            Bend::Greater(both) | Bend::Less(both) => both.iter().map(Bend::lines).sum(),
        }
    }

    /// Itself, if it is small enough.
    fn small(self) -> Option<Bend> {
        (self.lines() <= LINES).then_some(self)
    }

    fn map(&self, f: &dyn Fn(&Form) -> Bend) -> Bend {
        let both = |both: &[Bend; 2]| Box::new(both.each_ref().map(|bend| bend.map(f)));
        match self {
            Bend::Line(form) => f(form),
            Bend::Greater(x) => Bend::Greater(both(x)),
            Bend::Less(x) => Bend::Less(both(x)),
        }
    }

    fn plus(&self, other: &Bend) -> Option<Bend> {
        if self.lines() * other.lines() > LINES {
            return None;
        }
        Some(self.map(&|x| other.map(&|y| Bend::Line(x.plus(y)))))
    }

    fn times(&self, factor: f64) -> Bend {
        let both = |both: &[Bend; 2]| Box::new(both.each_ref().map(|bend| bend.times(factor)));
        match self {
            Bend::Line(form) => Bend::Line(form.times(factor)),
            Bend::Greater(x) if factor < 0.0 => Bend::Less(both(x)),
            Bend::Less(x) if factor < 0.0 => Bend::Greater(both(x)),
            Bend::Greater(x) => Bend::Greater(both(x)),
            Bend::Less(x) => Bend::Less(both(x)),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Bend::Line(Form { constant, terms }) if terms.is_empty() => Some(*constant),
            _ => None,
        }
    }

    /// The numbers of its lines.
    fn numbers(&self, lines: &[Form], out: &mut BTreeSet<u32>) {
        match self {
            Bend::Line(form) => {
                out.extend(lines.iter().position(|line| line == form).map(|number| number as u32));
            }
            Bend::Greater(both) | Bend::Less(both) => both.iter().for_each(|bend| bend.numbers(lines, out)),
        }
    }

    fn fields(&self, out: &mut BTreeSet<u32>) {
        match self {
            Bend::Line(form) => out.extend(form.terms.iter().map(|(field, _)| *field)),
            Bend::Greater(both) | Bend::Less(both) => both.iter().for_each(|bend| bend.fields(out)),
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

/// What a number is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Below,
    AtMost,
}

impl Translator<'_> {
    /// For properties whose numbers run straight.
    pub(crate) fn linear(spec: &rondel_spec::Spec) -> Translator<'_> {
        let straight = straight(spec);
        Translator { linear: Some(Lines { straight, ..Lines::default() }), ..Translator::new(spec) }
    }

    /// Takes in a node, whose operands have been.
    pub(super) fn run_straight(&mut self, id: ExprId, expr: &Expr) -> Result<(), CompileError> {
        let Some(Lines { straight, .. }) = &self.linear else { return Ok(()) };
        let is_straight = |x: &ExprId| straight.get(x.index()).is_some_and(|straight| *straight);
        let refused = match expr {
            Expr::Window { .. }
            | Expr::Age(_)
            | Expr::Latency(_)
            | Expr::Jitter(_)
            | Expr::Chain(..)
            | Expr::Key(..)
            | Expr::Exists(..)
            | Expr::ForAll(..)
            | Expr::InState(..)
            | Expr::Ambiguous(_)
            | Expr::MachineVariable(..) => true,
            Expr::Prev(x) => is_straight(x) && !matches!(self.spec.nodes[x.index()], Expr::Field { .. }),
            _ => false,
        };
        if refused {
            return Err(CompileError::Unsupported { node: id, what: error::NOT_STRAIGHT });
        }
        let bend = self.bend(expr);
        if let (Some(lines), Some(bend)) = (&mut self.linear, bend.and_then(Bend::small)) {
            lines.bends.insert(id, bend);
        }
        Ok(())
    }

    fn bend(&mut self, expr: &Expr) -> Option<Bend> {
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
            return Some(Bend::Line(Form { constant: 0.0, terms: vec![(number as u32, 1.0)] }));
        }
        let bends = &self.linear.as_ref()?.bends;
        let of = |x: &ExprId| bends.get(x);
        match expr {
            Expr::Literal(Value::Int(x)) => Some(Bend::constant(*x as f64)),
            Expr::Literal(Value::Float(x)) => Some(Bend::constant(*x)),
            Expr::ToFloat(x) => of(x).cloned(),
            Expr::Unary(UnaryOp::Negate, x) => Some(of(x)?.times(-1.0)),
            Expr::Unary(UnaryOp::Abs, x) => {
                let x = of(x)?;
                Some(Bend::Greater(Box::new([x.clone(), x.times(-1.0)])))
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
                    BinaryOp::Max => Some(Bend::Greater(Box::new([x.clone(), y.clone()]))),
                    BinaryOp::Min => Some(Bend::Less(Box::new([x.clone(), y.clone()]))),
                    BinaryOp::Remainder => None,
                }
            }
            _ => None,
        }
    }

    /// A comparison of numbers that run straight; none if it is of something else.
    pub(super) fn compare_straight(
        &mut self,
        id: ExprId,
        comparison: Comparison,
        x: ExprId,
        y: ExprId,
    ) -> Result<Option<Truth>, CompileError> {
        let Some(Lines { straight, bends, .. }) = &self.linear else { return Ok(None) };
        let is_number = |x: ExprId| {
            matches!(
                self.spec.value_type(x),
                ValueType::Int | ValueType::Float | ValueType::Duration | ValueType::Time
            )
        };
        if !is_straight(straight, x) && !is_straight(straight, y) || !is_number(x) {
            return Ok(None);
        }
        // That a message brought another value is no matter of what was in between.
        if is_change(self.spec, &self.spec.nodes[id.index()]) {
            return Ok(None);
        }
        let difference = bends.get(&x).zip(bends.get(&y)).and_then(|(x, y)| x.plus(&y.times(-1.0)));
        let mut fields = BTreeSet::new();
        let mut difference = difference.and_then(Bend::small).filter(|difference| {
            difference.fields(&mut fields);
            fields.len() <= TERMS
        });
        if let Some(difference) = &mut difference {
            // What makes the whole unknown does so to each line.
            let terms: Vec<(u32, f64)> = fields.iter().map(|field| (*field, 0.0)).collect();
            let all = Form { constant: 0.0, terms };
            *difference = difference.map(&|line| Bend::Line(line.plus(&all)));
        }
        let Some(difference) = difference else {
            return Err(CompileError::Unsupported { node: id, what: error::NOT_STRAIGHT });
        };
        let truth = match comparison {
            Comparison::Less => self.bounded(&difference, Wanted::Below),
            Comparison::LessOrEqual => self.bounded(&difference, Wanted::AtMost),
            Comparison::Greater => self.bounded(&difference, Wanted::AtMost).not(),
            Comparison::GreaterOrEqual => self.bounded(&difference, Wanted::Below).not(),
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

    /// Whether something is certainly true. What nobody knows because the next number is missing stays unknown: it is
    /// not what was never there.
    pub(super) fn definitely(&mut self, id: ExprId, x: Truth) -> Truth {
        let compared = self.linear.as_ref().and_then(|lines| lines.compared.get(&id)).cloned();
        let mut side = |side: u8, rails: Rails| {
            let mut open = Wire::FALSE;
            for &line in compared.iter().flatten() {
                let is = self.graph.wire(Node::Line { line, sign: 3, side });
                open = self.graph.or(open, is);
            }
            let open = self.graph.and(rails.possible, open);
            Rails { certain: rails.certain, possible: self.graph.or(rails.certain, open) }
        };
        Truth { at: side(0, x.at), after: side(1, x.after) }
    }

    fn is_zero(&mut self, bend: &Bend) -> Truth {
        if let Bend::Line(form) = bend {
            return self.signs(form, [1]);
        }
        let (at_most, below) = (self.bounded(bend, Wanted::AtMost), self.bounded(bend, Wanted::Below));
        self.both(at_most, below.not())
    }

    fn bounded(&mut self, bend: &Bend, asked: Wanted) -> Truth {
        match bend {
            Bend::Line(form) if asked == Wanted::Below => self.signs(form, [0]),
            Bend::Line(form) => self.signs(form, [0, 1]),
            Bend::Greater(both) | Bend::Less(both) => {
                let [x, y] = both.each_ref().map(|bend| self.bounded(bend, asked));
                if matches!(bend, Bend::Greater(_)) {
                    self.both(x, y)
                } else {
                    self.both(x.not(), y.not()).not()
                }
            }
        }
    }

    fn both(&mut self, x: Truth, y: Truth) -> Truth {
        self.by_rail([x, y], |graph, [a, b]| Sides {
            at: graph.and(a.at, b.at),
            after: graph.and(a.after, b.after),
        })
    }

    /// Whether a line has one of these signs.
    fn signs<const N: usize>(&mut self, form: &Form, signs: [u8; N]) -> Truth {
        let Some(Lines { lines, .. }) = &mut self.linear else {
            return Truth::lasting(Rails::both(Wire::FALSE));
        };
        let line = lines.iter().position(|known| known == form).unwrap_or_else(|| {
            lines.push(form.clone());
            lines.len() - 1
        });
        let mut side = |side: u8| {
            let mut rails = Rails { certain: Wire::FALSE, possible: Wire::TRUE };
            for sign in 0..3 {
                let is = self.graph.wire(Node::Line { line: line as u32, sign, side });
                if signs.contains(&sign) {
                    rails.certain = self.graph.or(rails.certain, is);
                } else {
                    rails.possible = self.graph.and(rails.possible, !is);
                }
            }
            rails
        };
        Truth { at: side(0), after: side(1) }
    }
}

fn is_straight(straight: &[bool], x: ExprId) -> bool {
    straight.get(x.index()).is_some_and(|straight| *straight)
}

/// For every node whether a number from a message is in it.
fn straight(spec: &Spec) -> Vec<bool> {
    let mut straight: Vec<bool> = Vec::with_capacity(spec.nodes.len());
    for expr in &spec.nodes {
        let own = matches!(expr, Expr::Field { value_type: ValueType::Int | ValueType::Float, .. });
        straight.push(own || expr.operands().any(|operand| is_straight(&straight, operand)));
    }
    straight
}

/// Whether it asks if a field is another than before the last message.
fn is_change(spec: &Spec, expr: &Expr) -> bool {
    let Expr::Compare(Comparison::NotEqual, x, before) = expr else { return false };
    let node = |id: &ExprId| spec.nodes.get(id.index());
    matches!(node(before), Some(Expr::Prev(y)) if x == y) && matches!(node(x), Some(Expr::Field { .. }))
}

/// Properties that wait for the same fields, by those fields.
pub(crate) type Groups = BTreeMap<(u32, Vec<(TopicId, Path)>), Vec<u32>>;

/// The undivided dense properties that compare numbers that run straight.
pub(crate) fn groups(spec: &Spec) -> Result<Groups, CompileError> {
    let mut groups = Groups::new();
    for (i, property) in (0..).zip(&spec.properties).filter(|(_, property)| property.linear) {
        let node = property.formula;
        if property.time != TimeModel::Dense || property.slice.is_some() || property.robust {
            return Err(CompileError::Unsupported { node, what: error::NOT_STRAIGHT });
        }
        let fields = fields_of(spec, node);
        if !fields.is_empty() {
            groups.entry((property.generation, fields)).or_default().push(i);
        }
    }
    Ok(groups)
}

/// The fields that a formula waits for: those that run straight, in comparisons.
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
