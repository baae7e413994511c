//! Fields whose integers must be exact: a double holds those beyond 2^53 rounded.

use std::collections::BTreeSet;

use rondel_event::{Path, Segment, TopicId, Value, ValueType};

use crate::spec::{Expr, ExprId, Schema, SchemaType, Spec};

/// The greatest integer up to which a double holds every integer.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Spec {
    /// Returns the numbers that are read as `Float` without being declared so whose rounding could change a verdict. That of
    /// a field that is only compared with smaller constants cannot: rounding keeps the order.
    pub fn exact_fields(&self) -> BTreeSet<(TopicId, Path)> {
        let mut found = BTreeSet::new();
        for node in &self.nodes {
            if let Expr::Bind { topic, fields } = node {
                let floats = fields.iter().filter(|(_, _, value_type)| *value_type == ValueType::Float);
                found.extend(floats.map(|(path, ..)| (*topic, path.clone())));
            }
            for operand in node.operands() {
                if let Some((topic, path)) = self.number(operand)
                    && !self.keeps_order(node, operand)
                {
                    found.insert((topic, path.clone()));
                }
            }
        }
        found.retain(|(topic, path)| !self.is_declared(*topic, path));
        found
    }

    /// Returns the field that a node is the value of, now or before, if it is a float.
    fn number(&self, mut id: ExprId) -> Option<(TopicId, &Path)> {
        loop {
            match self.nodes.get(id.index())? {
                // Operands stand before their nodes, except in a specification that is refused.
                Expr::Prev(inner) if inner.index() < id.index() => id = *inner,
                Expr::Field { topic, path, value_type: ValueType::Float } | Expr::Number { topic, path } => {
                    return Some((*topic, path));
                }
                _ => return None,
            }
        }
    }

    /// Whether a node with this operand has the same value if the operand is rounded.
    fn keeps_order(&self, node: &Expr, operand: ExprId) -> bool {
        match node {
            Expr::Prev(_) => true,
            Expr::Compare(_, a, b) => {
                let other = if *a == operand { *b } else { *a };
                self.constant(other).is_some_and(|constant| constant.abs() < EXACT)
            }
            _ => false,
        }
    }

    fn constant(&self, id: ExprId) -> Option<f64> {
        match self.nodes.get(id.index())? {
            Expr::Literal(Value::Float(value)) => Some(*value),
            Expr::Literal(Value::Int(value)) => Some(*value as f64),
            Expr::ToFloat(inner) => match self.nodes.get(inner.index())? {
                Expr::Literal(Value::Int(value)) => Some(*value as f64),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the specification, or the type of the messages, says that a field is a float.
    fn is_declared(&self, topic: TopicId, path: &Path) -> bool {
        let schema = self.topics.get(topic.index()).and_then(|topic| topic.schema.as_ref());
        schema.is_some_and(|schema| declares(schema, &path.0))
    }
}

fn declares(schema: &Schema, path: &[Segment]) -> bool {
    let Some((Segment::Key(key), mut rest)) = path.split_first() else { return false };
    let Some((_, found)) = schema.fields.iter().find(|(name, _)| **name == **key) else { return false };
    let mut found: &SchemaType = found;
    loop {
        match found {
            SchemaType::Value(value_type) => return *value_type == ValueType::Float,
            SchemaType::Open => return false,
            SchemaType::Object(schema) | SchemaType::Stamp(_, schema) => {
                return rest.is_empty() || declares(schema, rest);
            }
            SchemaType::Array(element, _) => {
                let Some((_, below)) = rest.split_first() else { return true };
                (found, rest) = (element, below);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {

    fn exact(text: &str) -> Vec<String> {
        let spec = crate::parse(text).spec.unwrap();
        spec.exact_fields().iter().map(|(_, path)| path.to_string()).collect()
    }

    #[test]
    fn only_rounding_that_could_change_a_verdict_counts() {
        for text in ["t.a > 0", "t.a == -5.5", "0 < t.a", "prev(t.a) >= 3", "once[0, 3] t.a in (1, 2)"] {
            assert!(exact(&format!("topic t\nproperty p = {text}")).is_empty(), "{text}");
        }
        for text in [
            "t.a > prev(t.a)",
            "t.a == 1724442618569203714",
            "t.a + 1 > 3",
            "changed(t.a)",
            "max(t.a) over 3 > 1",
            "number(t.a) > prev(number(t.a))",
        ] {
            assert_eq!(exact(&format!("topic t\nproperty p = {text}")), ["a"], "{text}");
        }
    }

    /// Elements of an array that is not declared have the types of their uses.
    #[test]
    fn a_field_that_an_int_parameter_takes_is_an_int() {
        let text = "topic t let whole(v: int) = v let low(v: int, w: float) = w < v
            property p = whole(t.a[n == \"x\"].v) > prev(t.a[n == \"x\"].v) and t.a[n == \"y\"].v > 0.5
            property q = low(3, t.b) and low(v: whole(t.c), w: t.d)";
        let spec = crate::parse(text).spec.unwrap();
        let types: Vec<String> = spec
            .nodes
            .iter()
            .filter_map(|node| match node {
                crate::Expr::Field { path, value_type, .. } => Some(format!("{path} {value_type:?}")),
                _ => None,
            })
            .collect();
        let expected = ["a[n == \"x\"].v Int", "a[n == \"y\"].v Float", "b Float", "d Float", "c Int"];
        assert!(expected.iter().all(|of| types.iter().any(|found| found == of)), "{types:?}");
        // It is compared with another field.
        assert_eq!(exact(text), ["d"]);
        let refused = crate::parse("topic t { a: float } let f(v: int) = v > 1 property p = f(t.a)");
        assert!(refused.diagnostics.iter().any(|diagnostic| diagnostic.message.contains("is an int")));
    }

    #[test]
    fn declared_floats_are_rounded() {
        let schema = "topic t { a: float, b: { c: [float] }, d: int }";
        let property = "property p = t.a > prev(t.a) and t.b.c[0] > prev(t.b.c[0]) and t.d > prev(t.d)";
        assert!(exact(&format!("{schema}\n{property}")).is_empty());
        let schema = "topic t { a: float, b: string, c: int }";
        let moves = |name: &str| format!("number(t.{name}) > prev(number(t.{name}))");
        let property = format!("property p = {} and {} and {}", moves("a"), moves("b"), moves("c"));
        assert_eq!(exact(&format!("{schema}\n{property}")), ["b", "c"]);
    }
}
