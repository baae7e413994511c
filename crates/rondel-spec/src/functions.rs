//! The functions of values: each is one row of [`FUNCTIONS`], from which the parser, the checker, the engine and the
//! operator table of the reference derive.

use regex::bytes::{Regex, RegexBuilder};
use rondel_event::{Value, ValueType};

/// A function of one or two values that depends on nothing else.
pub struct FunctionRow {
    /// The name in formulas.
    pub name: &'static str,
    /// The call, as the operator table of the reference shows it.
    pub call: &'static str,
    /// Description of the result, for the operator table.
    pub doc: &'static str,
    /// The types and the computation.
    pub kernel: Kernel,
}

/// The types of a function and how it is computed.
#[derive(Clone, Copy)]
pub enum Kernel {
    /// A `Float` of a `Float`. Unknown where the result is not a finite number.
    Number(fn(f64) -> f64),
    /// A `Float` of two. Unknown where the result is not a finite number.
    Numbers(fn(f64, f64) -> f64),
    /// A `Bool` of two texts, in UTF-8.
    Test(fn(&[u8], &[u8]) -> bool),
    /// A `Bool` of a text and a constant regular expression: true if it matches anywhere in the text.
    Matches,
    /// An `Int` of a text.
    Size(fn(&[u8]) -> i64),
    /// A text of a text, appended to the second argument.
    Text(fn(&[u8], &mut Vec<u8>)),
}

/// A function, by its row in [`FUNCTIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(u8);

const fn number(name: &'static str, call: &'static str, doc: &'static str, f: fn(f64) -> f64) -> FunctionRow {
    FunctionRow { name, call, doc, kernel: Kernel::Number(f) }
}

const fn numbers(
    name: &'static str,
    call: &'static str,
    doc: &'static str,
    f: fn(f64, f64) -> f64,
) -> FunctionRow {
    FunctionRow { name, call, doc, kernel: Kernel::Numbers(f) }
}

const fn row(name: &'static str, call: &'static str, doc: &'static str, kernel: Kernel) -> FunctionRow {
    FunctionRow { name, call, doc, kernel }
}

/// All functions of values.
pub static FUNCTIONS: &[FunctionRow] = &[
    number("sqrt", "sqrt(x)", "square root", f64::sqrt),
    numbers("pow", "pow(x, y)", "`x` to the power of `y`", f64::powf),
    number("exp", "exp(x)", "e to the power of `x`", f64::exp),
    number("log", "log(x)", "natural logarithm", f64::ln),
    number("log10", "log10(x)", "logarithm to base 10", f64::log10),
    number("sin", "sin(x)", "sine of an angle in radians", f64::sin),
    number("cos", "cos(x)", "cosine of an angle in radians", f64::cos),
    number("tan", "tan(x)", "tangent of an angle in radians", f64::tan),
    number("asin", "asin(x)", "arc sine, from -π/2 to π/2", f64::asin),
    number("acos", "acos(x)", "arc cosine, from 0 to π", f64::acos),
    number("atan", "atan(x)", "arc tangent, from -π/2 to π/2", f64::atan),
    numbers("atan2", "atan2(y, x)", "angle of the point (`x`, `y`), from -π to π", f64::atan2),
    numbers("hypot", "hypot(x, y)", "distance of the point (`x`, `y`) from the origin", f64::hypot),
    number("floor", "floor(x)", "greatest whole number that is not above `x`", f64::floor),
    number("ceil", "ceil(x)", "least whole number that is not below `x`", f64::ceil),
    number("round", "round(x)", "nearest whole number, halves away from zero", f64::round),
    number("trunc", "trunc(x)", "`x` without its fraction", f64::trunc),
    number("sign", "sign(x)", "-1, 0 or 1, as `x` is below, at or above zero", sign),
    numbers(
        "angle_difference",
        "angle_difference(a, b)",
        "the turn from angle `b` to angle `a` in radians, above -π and up to π",
        angle_difference,
    ),
    row("contains", "contains(s, t)", "text `s` contains text `t`", Kernel::Test(contains)),
    row("ends_with", "ends_with(s, t)", "text `s` ends with text `t`", Kernel::Test(ends_with)),
    row(
        "matches",
        "matches(s, \"re\")",
        "a part of text `s` matches the regular expression",
        Kernel::Matches,
    ),
    row("len", "len(s)", "number of characters of a text, of elements of an array", Kernel::Size(length)),
    row("lower", "lower(s)", "text `s` in lower case", Kernel::Text(lower)),
];

/// The most memory that one compiled regular expression, and its cache, may take.
const PATTERN_BYTES: usize = 1 << 20;

impl FunctionId {
    /// The length of a text.
    pub const LEN: FunctionId = FunctionId(22);

    /// Returns all functions, in the order of the table.
    pub fn all() -> impl Iterator<Item = FunctionId> {
        (0..FUNCTIONS.len()).map(|i| FunctionId(i as u8))
    }

    /// Returns the function with this name.
    ///
    /// ```
    /// use rondel_spec::FunctionId;
    /// assert_eq!(FunctionId::named("len"), Some(FunctionId::LEN));
    /// assert_eq!(FunctionId::named("sqrt").unwrap().name(), "sqrt");
    /// ```
    pub fn named(name: &str) -> Option<FunctionId> {
        FunctionId::all().find(|function| function.name() == name)
    }

    fn row(self) -> &'static FunctionRow {
        // Only this module makes ids.
        &FUNCTIONS[self.0 as usize]
    }

    /// Returns the name in formulas.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns how the function is computed.
    pub fn kernel(self) -> Kernel {
        self.row().kernel
    }

    /// Returns the types of the arguments.
    pub fn parameters(self) -> &'static [ValueType] {
        use ValueType::{Float, String};
        match self.kernel() {
            Kernel::Number(_) => &[Float],
            Kernel::Numbers(_) => &[Float, Float],
            Kernel::Test(_) | Kernel::Matches => &[String, String],
            Kernel::Size(_) | Kernel::Text(_) => &[String],
        }
    }

    /// Returns the type of the result.
    pub fn result(self) -> ValueType {
        match self.kernel() {
            Kernel::Number(_) | Kernel::Numbers(_) => ValueType::Float,
            Kernel::Test(_) | Kernel::Matches => ValueType::Bool,
            Kernel::Size(_) => ValueType::Int,
            Kernel::Text(_) => ValueType::String,
        }
    }

    /// Returns the result for arguments of the right types; none if it is unknown. A regular expression is compiled by
    /// each call.
    pub fn apply(self, x: &Value, y: Option<&Value>) -> Option<Value> {
        use Value::{Bool, Float, Int, String};
        Some(match (self.kernel(), x, y) {
            (Kernel::Number(f), Float(x), None) => Float(finite(f(*x))?),
            (Kernel::Numbers(f), Float(x), Some(Float(y))) => Float(finite(f(*x, *y))?),
            (Kernel::Test(f), String(x), Some(String(y))) => Bool(f(x.as_bytes(), y.as_bytes())),
            (Kernel::Matches, String(x), Some(String(y))) => Bool(pattern(y).ok()?.is_match(x.as_bytes())),
            (Kernel::Size(f), String(x), None) => Int(f(x.as_bytes())),
            (Kernel::Text(f), String(x), None) => {
                let mut out = Vec::new();
                f(x.as_bytes(), &mut out);
                String(std::string::String::from_utf8_lossy(&out).into())
            }
            _ => return None,
        })
    }
}

/// Returns a regular expression, compiled; limited in size, so that none takes much memory.
///
/// # Errors
/// The reason, on one line, if it is malformed or too large.
pub fn pattern(text: &str) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new(text);
    builder.size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES).nest_limit(100);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it is too large: repeat less".to_owned(),
        error => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or("it is malformed");
            last.trim().trim_start_matches("error: ").to_owned()
        }
    })
}

fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}

fn sign(x: f64) -> f64 {
    if x == 0.0 || x.is_nan() { x } else { x.signum() }
}

fn angle_difference(a: f64, b: f64) -> f64 {
    use std::f64::consts::{PI, TAU};
    let turn = (a - b).rem_euclid(TAU);
    if turn > PI { turn - TAU } else { turn }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

fn ends_with(text: &[u8], end: &[u8]) -> bool {
    text.ends_with(end)
}

/// The number of characters: of the bytes that do not continue one.
fn length(text: &[u8]) -> i64 {
    text.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as i64
}

fn lower(text: &[u8], out: &mut Vec<u8>) {
    if text.is_ascii() {
        out.extend(text.iter().map(u8::to_ascii_lowercase));
    } else {
        out.extend_from_slice(String::from_utf8_lossy(text).to_lowercase().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    #[test]
    fn every_row_has_its_own_name_and_starts_its_call_with_it() {
        for function in FunctionId::all() {
            let row = function.row();
            assert_eq!(FunctionId::named(row.name), Some(function));
            assert!(row.call.starts_with(&format!("{}(", row.name)), "{}", row.call);
        }
        assert_eq!(FunctionId::LEN.name(), "len");
    }

    /// The operator table of the reference has the calls and texts of this table, word by word.
    #[test]
    fn the_reference_lists_every_row() {
        let reference = include_str!("../../../docs/reference/language/operators.md");
        for row in FUNCTIONS {
            let line = format!("| `{}` | {} | ", row.call, row.doc);
            assert!(reference.contains(&line), "docs/reference/language/operators.md has no line `{line}`");
        }
    }

    #[test]
    fn angles_differ_by_at_most_half_a_turn() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        near(angle_difference(0.1, -0.1), 0.2);
        near(angle_difference(3.1, -3.1), 6.2 - 2.0 * PI);
        near(angle_difference(PI, 0.0), PI);
        near(angle_difference(-PI, 0.0), PI);
        near(angle_difference(0.0, 20.0 * PI + 1.0), -1.0);
    }

    #[test]
    fn patterns_that_explode_are_refused() {
        assert!(pattern("(a{1000}){1000}").is_err());
        assert!(pattern("a(").unwrap_err().contains("unclosed group"));
        assert!(pattern("^lidar_[0-9]+$").is_ok());
    }
}
