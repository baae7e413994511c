//! Conditions on the elements of arrays.

use rondel_event::{Condition, Path, Quantifier, Test, TopicId, Value};
use rondel_spec::Spec;

use super::text::{behind, field, value_text};

/// Conditions on the elements of an array, with the name of an element; without one it is called `x`.
pub fn elements(
    spec: &Spec,
    topic: TopicId,
    path: &Path,
    quantifier: Quantifier,
    element: Option<&str>,
    conditions: &[Condition],
) -> String {
    let array = field(spec, topic, path);
    if quantifier.is_measure() {
        return format!("{}({array})", quantifier.as_str());
    }
    let element = element.unwrap_or("x");
    let all_of = |conditions: &[Condition]| {
        conditions
            .iter()
            .map(|condition| condition_text(condition, element))
            .collect::<Vec<_>>()
            .join(" and ")
    };
    let alternatives: Vec<String> =
        conditions.chunk_by(|one, next| one.alternative == next.alternative).map(all_of).collect();
    let conditions = if alternatives.is_empty() { "true".to_owned() } else { alternatives.join(" or ") };
    format!("({} {element} in {array}: {conditions})", quantifier.as_str())
}

/// The text of the element that decides conditions on an array, or that is the least or the greatest.
pub fn element(
    spec: &Spec,
    topic: TopicId,
    path: &Path,
    quantifier: Quantifier,
    element: Option<&str>,
) -> String {
    let array = field(spec, topic, path);
    match quantifier.is_measure() {
        true => format!("element of {}({array})", quantifier.as_str()),
        false => format!("{} in {array}", element.unwrap_or("x")),
    }
}

/// A condition on an element of an array, which has this name.
fn condition_text(condition: &Condition, element: &str) -> String {
    let path = behind(&condition.path);
    match &condition.test {
        Test::Present => format!("{element}{path} is there"),
        Test::Equals(Value::Bool(true)) => format!("{element}{path}"),
        Test::Equals(Value::Bool(false)) => format!("not {element}{path}"),
        Test::Equals(value) => format!("{element}{path} == {}", value_text(value)),
        Test::OtherText(text) => {
            format!("{element}{path} != {}", value_text(&Value::String(text.clone())))
        }
        Test::Number(comparison, number) | Test::Integer(comparison, number) => {
            format!("{element}{path} {} {}", comparison.as_str(), value_text(&Value::Float(*number)))
        }
    }
}
