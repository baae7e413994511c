//! Built-in functions by name, as defined in the language reference.

use std::f64::consts::PI;

use rondel_event::Value;

/// A float; none if it is not finite.
fn number(x: f64) -> Option<Value> {
    if x.is_nan() || x.is_infinite() { None } else { Some(Value::Float(x)) }
}

pub fn one(name: &str, x: Value) -> Option<Value> {
    let x = match x {
        Value::Float(x) => x,
        Value::String(x) => {
            return Some(match name {
                "len" => Value::Int(x.chars().count() as i64),
                "lower" => Value::String(x.chars().flat_map(char::to_lowercase).collect::<String>().into()),
                other => panic!("no text has {other}"),
            });
        }
        other => panic!("{name} of {other:?}"),
    };
    number(match name {
        "sqrt" => x.sqrt(),
        "exp" => x.exp(),
        "log" => x.ln(),
        "log10" => x.log10(),
        "sin" => x.sin(),
        "cos" => x.cos(),
        "tan" => x.tan(),
        "asin" => x.asin(),
        "acos" => x.acos(),
        "atan" => x.atan(),
        "floor" => x.floor(),
        "ceil" => x.ceil(),
        "round" => x.round(),
        "trunc" => x.trunc(),
        "sign" if x > 0.0 => 1.0,
        "sign" if x < 0.0 => -1.0,
        "sign" => x,
        other => panic!("no number has {other}"),
    })
}

pub fn two(name: &str, x: Value, y: Value) -> Option<Value> {
    match (x, y) {
        (Value::Float(x), Value::Float(y)) => number(match name {
            "pow" => x.powf(y),
            "atan2" => x.atan2(y),
            "hypot" => x.hypot(y),
            "angle_difference" => {
                let turn = (x - y).rem_euclid(2.0 * PI);
                if turn > PI { turn - 2.0 * PI } else { turn }
            }
            other => panic!("no two numbers have {other}"),
        }),
        (Value::String(x), Value::String(y)) => Some(Value::Bool(match name {
            "contains" => (0..=x.len()).any(|i| x.as_bytes()[i..].starts_with(y.as_bytes())),
            "ends_with" => x.chars().rev().take(y.chars().count()).eq(y.chars().rev()),
            "matches" => pattern(&x, &y),
            other => panic!("no two texts have {other}"),
        })),
        other => panic!("{name} of {other:?}"),
    }
}

/// Regular expressions of the random tests: a literal, anchored at the start or the end, or any one
/// character.
fn pattern(text: &str, pattern: &str) -> bool {
    match (pattern.strip_prefix('^'), pattern.strip_suffix('$')) {
        _ if pattern == "." => text.chars().any(|c| c != '\n'),
        (Some(start), _) => text.starts_with(start),
        (_, Some(end)) => text.ends_with(end),
        _ => text.contains(pattern),
    }
}
