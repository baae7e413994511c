//! Atoms of Reelay's format: pairs of keys and values.

use rondel_event::{Comparison, Condition, Path, Quantifier, Segment, Test, Value, ValueType};

use super::token::RyeKind;
use super::{Parsed, Parser, Reported, Steps};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::spec::{Bounds, Expr, ExprId, SchemaType, TimeModel};
use crate::type_names::article;

/// The object that pairs apply to.
enum PairScope {
    /// The message, below the prefix of the paths.
    Message,
    /// An element of an array; pairs become conditions on it.
    Elements(Vec<Condition>),
}

/// The value that a pair expects of its field.
enum PairValue {
    Carried,
    /// The value of this variable.
    Variable(usize),
    Equals(Value),
    Number(Comparison, f64),
}

impl Parser<'_> {
    /// Parses an atom: `{ pair, pair … }`.
    pub(super) fn atom(&mut self) -> Parsed<ExprId> {
        let mut result = self.literal(Value::Bool(true));
        self.pairs(&mut Vec::new(), &mut PairScope::Message, &mut result)?;
        Ok(result)
    }

    /// Parses pairs in braces, below the steps of `prefix`.
    fn pairs(&mut self, prefix: &mut Steps, place: &mut PairScope, result: &mut ExprId) -> Parsed<()> {
        self.deeper(|p| {
            p.expect("{")?;
            if p.eat("}") {
                return Ok(());
            }
            loop {
                p.pair(prefix, place, result)?;
                if p.eat("}") {
                    return Ok(());
                }
                if !p.eat(",") {
                    return Err(p.expected("`,` or `}`"));
                }
            }
        })
    }

    fn pair(&mut self, prefix: &mut Steps, place: &mut PairScope, result: &mut ExprId) -> Parsed<()> {
        let depth = prefix.len();
        let start = self.span();
        let key = self.key()?;
        prefix.push(key);
        let outcome = self.rest_of_pair(start, prefix, place, result);
        prefix.truncate(depth);
        outcome
    }

    fn rest_of_pair(
        &mut self,
        start: Span,
        prefix: &mut Steps,
        place: &mut PairScope,
        result: &mut ExprId,
    ) -> Parsed<()> {
        while self.eat("::") {
            if self.symbol() == "{" {
                return self.pairs(prefix, place, result);
            }
            let (word, span) = (self.word(), self.span());
            let key = self.key()?;
            let quantifier = match word {
                "any" => Some(Quantifier::Any),
                "all" => Some(Quantifier::All),
                _ => None,
            };
            match quantifier {
                // A field can be named `any`; a quantifier is followed by a brace.
                Some(quantifier) if self.symbol() == "{" => {
                    return self.elements(start.to(span), quantifier, prefix, place, result);
                }
                _ => prefix.push(key),
            }
        }
        let comparison = match self.symbol() {
            "==" => Some(Comparison::Equal),
            "!=" => Some(Comparison::NotEqual),
            "<" => Some(Comparison::Less),
            "<=" => Some(Comparison::LessOrEqual),
            ">" => Some(Comparison::Greater),
            ">=" => Some(Comparison::GreaterOrEqual),
            _ => None,
        };
        let wanted = if let Some(comparison) = comparison {
            self.advance();
            if *self.kind() != RyeKind::Number {
                return Err(self.not_a_number());
            }
            PairValue::Number(comparison, self.number()?)
        } else if self.eat(":") {
            self.value()?
        } else {
            PairValue::Equals(Value::Bool(true))
        };
        self.finish(start, prefix, wanted, place, result)
    }

    fn not_a_number(&mut self) -> Reported {
        let reported = self.expected("a number");
        if let Some(last) = self.target.diagnostics.last_mut() {
            last.help = Some("compare strings and booleans with `key: value`".to_owned());
        }
        reported
    }

    fn key(&mut self) -> Parsed<(Segment, Span)> {
        let span = self.span();
        let segment = match self.kind() {
            RyeKind::Word => Segment::Key(span.of(self.text).into()),
            RyeKind::Quoted(text) => Segment::Key(text.as_str().into()),
            RyeKind::Symbol("$") => {
                self.advance();
                let index = match self.kind() {
                    RyeKind::Number => self.span().of(self.text).parse().ok(),
                    _ => None,
                };
                match index {
                    Some(index) => Segment::Index(index),
                    None => return Err(self.expected("an array index")),
                }
            }
            _ => return Err(self.expected("a key")),
        };
        let span = span.to(self.span());
        self.advance();
        Ok((segment, span))
    }

    /// Parses the value after `key:`.
    fn value(&mut self) -> Parsed<PairValue> {
        let value = match self.kind() {
            RyeKind::Number => return Ok(PairValue::Equals(Value::Float(self.number()?))),
            RyeKind::Quoted(text) => Value::String(text.as_str().into()),
            RyeKind::Word => match self.word() {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                word => Value::String(word.into()),
            },
            RyeKind::Symbol("*") => {
                let star = self.span();
                self.advance();
                if *self.kind() == RyeKind::Word {
                    let span = star.to(self.span());
                    let variable = self.reference(self.word(), span)?;
                    self.advance();
                    return Ok(PairValue::Variable(variable));
                }
                return Ok(PairValue::Carried);
            }
            _ => return Err(self.expected("`true`, `false`, a number, a string or `*`")),
        };
        self.advance();
        Ok(PairValue::Equals(value))
    }

    fn finish(
        &mut self,
        start: Span,
        steps: &Steps,
        wanted: PairValue,
        place: &mut PairScope,
        result: &mut ExprId,
    ) -> Parsed<()> {
        let path = Path(steps.iter().map(|(segment, _)| segment.clone()).collect());
        if let PairScope::Elements(conditions) = place {
            let test = match wanted {
                PairValue::Carried => Test::Present,
                PairValue::Variable(_) => {
                    return Err(self.not_in_this_version(start, "a reference inside `any` or `all`"));
                }
                PairValue::Equals(value) => Test::Equals(value),
                PairValue::Number(comparison, number) => Test::Number(comparison, number),
            };
            conditions.push(Condition { alternative: 0, path, test });
            return Ok(());
        }
        let whole = start.to(steps.last().map_or(start, |(_, span)| *span));
        let topic = self.target.topic;
        let declared = match &wanted {
            PairValue::Carried => {
                self.declared(steps, whole)?;
                None
            }
            PairValue::Equals(value) => self.value_type(steps, whole, value.value_type())?,
            PairValue::Number(..) => self.value_type(steps, whole, ValueType::Float)?,
            PairValue::Variable(variable) => return self.bind(*variable, steps, path, whole, result),
        };
        let dense = self.target.model == Some(TimeModel::Dense);
        let graph = &mut *self.target.graph;
        graph.at(whole);
        let mut field = |value_type: ValueType| {
            // A field declared as `Int` is read as one, so that other formulas can share the node.
            let declared = declared.unwrap_or(value_type);
            let field = graph.add(Expr::Field { topic, path: path.clone(), value_type: declared });
            if value_type == ValueType::Float { graph.widen(field) } else { field }
        };
        let pair = match wanted {
            PairValue::Carried | PairValue::Variable(_) => {
                let carried = graph.add(Expr::Carried { topic, path });
                if dense {
                    // A row lasts until the next one.
                    let on = graph.add(Expr::On(topic));
                    let same_row = graph.not(on);
                    graph.since(Bounds::ALL, same_row, carried)
                } else {
                    carried
                }
            }
            PairValue::Equals(Value::Bool(true)) => field(ValueType::Bool),
            PairValue::Equals(Value::Bool(false)) => {
                let field = field(ValueType::Bool);
                graph.not(field)
            }
            PairValue::Equals(value) => {
                let field = field(value.value_type());
                let value = graph.literal(value);
                graph.compare(Comparison::Equal, field, value)
            }
            PairValue::Number(comparison, number) => {
                let field = field(ValueType::Float);
                let number = graph.float(number);
                graph.compare(comparison, field, number)
            }
        };
        let pair = graph.definitely(pair);
        *result = graph.and(*result, pair);
        Ok(())
    }

    /// Binds a variable to a field: of the current message, in dense time of the last one that carried it.
    fn bind(
        &mut self,
        variable: usize,
        steps: &Steps,
        path: Path,
        whole: Span,
        result: &mut ExprId,
    ) -> Parsed<()> {
        let declared = match self.target.fields.map(|fields| fields.find_value(steps, whole)) {
            None => None,
            Some(Ok(found)) => found.map(|(found, _)| found),
            Some(Err(diagnostic)) => return Err(self.report(*diagnostic)),
        };
        let known = &mut self.scope[variable];
        let value_type = *known.value_type.get_or_insert(declared.unwrap_or(ValueType::String));
        if declared.is_some_and(|declared| declared != value_type) {
            let message = format!(
                "'{}' is {} here and {} elsewhere",
                known.name,
                article(declared.unwrap_or(value_type)),
                article(value_type)
            );
            return Err(self.report(Diagnostic::new(Code::ConflictingUse, whole, message)));
        }
        let fields = vec![(path.clone(), known.id, value_type)];
        let (topic, graph) = (self.target.topic, &mut *self.target.graph);
        graph.at(whole);
        let mut bound = graph.add(Expr::Bind { topic, fields });
        if self.target.model == Some(TimeModel::Dense) {
            // A value lasts until the next row that carries the key.
            let carried = graph.add(Expr::Carried { topic, path });
            let same_value = graph.not(carried);
            bound = graph.since(Bounds::ALL, same_value, bound);
        }
        *result = graph.and(*result, bound);
        Ok(())
    }

    fn elements(
        &mut self,
        start: Span,
        quantifier: Quantifier,
        prefix: &Steps,
        place: &mut PairScope,
        result: &mut ExprId,
    ) -> Parsed<()> {
        if matches!(place, PairScope::Elements(_)) {
            return Err(self.not_in_this_version(start, "`any` or `all` inside another `any` or `all`"));
        }
        if let Some(found) = self.declared(prefix, start)?
            && !matches!(found, SchemaType::Array(..) | SchemaType::Open)
        {
            let message = "`any` and `all` apply to arrays, and this field is not an array";
            self.report(Diagnostic::new(Code::TypeMismatch, start, message));
        }
        let mut inner = PairScope::Elements(Vec::new());
        self.pairs(&mut Vec::new(), &mut inner, result)?;
        let conditions = match inner {
            PairScope::Elements(conditions) => conditions,
            PairScope::Message => Vec::new(),
        };
        let path = Path(prefix.iter().map(|(segment, _)| segment.clone()).collect());
        let topic = self.target.topic;
        let graph = &mut *self.target.graph;
        let elements = graph.add(Expr::Elements { topic, path, quantifier, conditions });
        let elements = graph.definitely(elements);
        *result = graph.and(*result, elements);
        Ok(())
    }

    /// Returns the declared type of a path, if there is a schema.
    fn declared(&mut self, steps: &Steps, whole: Span) -> Parsed<Option<&SchemaType>> {
        match self.target.fields.map(|fields| fields.find(steps, whole)) {
            None => Ok(None),
            Some(Ok((found, _))) => Ok(Some(found)),
            Some(Err(diagnostic)) => Err(self.report(*diagnostic)),
        }
    }

    /// Returns the declared type of a field, which must be compatible with `wanted`.
    fn value_type(&mut self, steps: &Steps, whole: Span, wanted: ValueType) -> Parsed<Option<ValueType>> {
        let Some(fields) = self.target.fields else { return Ok(None) };
        match fields.find_value(steps, whole) {
            Err(diagnostic) => Err(self.report(*diagnostic)),
            Ok(None) => Ok(None),
            Ok(Some((found, _)))
                if found == wanted || wanted == ValueType::Float && found == ValueType::Int =>
            {
                Ok(Some(found))
            }
            Ok(Some((found, declared))) => {
                let wanted = if wanted == ValueType::Float { "a number" } else { article(wanted) };
                let message = format!("expected {wanted}, but the field is {}", article(found));
                let mut diagnostic = Diagnostic::new(Code::TypeMismatch, whole, message);
                if let Some(declared) = declared {
                    diagnostic = diagnostic.label(declared, "declared here");
                }
                Err(self.report(diagnostic))
            }
        }
    }
}
