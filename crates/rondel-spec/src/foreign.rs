//! Functions of other languages: what to write for each in Rondel.

/// Functions of other languages and what to write instead. `{x}`, `{y}` and `{z}` are the arguments; an aggregate ends
/// with its window.
const FUNCTIONS: &[(&[&str], &str)] = &[
    (&["ln", "loge"], "log({x})"),
    (&["lg", "log_10"], "log10({x})"),
    (&["log2", "lb"], "log({x}) / log(2)"),
    (&["log1p"], "log(1 + {x})"),
    (&["exp2"], "pow(2, {x})"),
    (&["expm1"], "exp({x}) - 1"),
    (&["power", "powf", "powi", "expt"], "pow({x}, {y})"),
    (&["square", "sqr"], "{x} * {x}"),
    (&["cube"], "pow({x}, 3)"),
    (&["cbrt"], "pow({x}, 1.0 / 3.0)"),
    (&["squareroot", "square_root", "root"], "sqrt({x})"),
    (&["fabs", "absolute", "absolute_value", "magnitude"], "abs({x})"),
    (&["sgn", "signum"], "sign({x})"),
    (&["mod", "fmod", "modulo", "rem", "remainder"], "{x} % {y}"),
    (&["arcsin", "arsin", "arc_sin"], "asin({x})"),
    (&["arccos", "arcos", "arc_cos"], "acos({x})"),
    (&["arctan", "arc_tan"], "atan({x})"),
    (&["arctan2", "atan_2"], "atan2({x}, {y})"),
    (&["deg2rad", "radians", "to_radians"], "{x} * 3.141592653589793 / 180"),
    (&["rad2deg", "degrees", "to_degrees"], "{x} * 180 / 3.141592653589793"),
    (&["angle_diff", "angdiff", "anglediff"], "angle_difference({x}, {y})"),
    (&["wrap_angle", "normalize_angle", "wrap_to_pi", "wraptopi"], "angle_difference({x}, 0)"),
    (&["ceiling"], "ceil({x})"),
    (&["truncate", "int", "integer", "to_int"], "trunc({x})"),
    (&["float", "double", "to_float"], "1.0 * {x}"),
    (&["minimum", "fmin"], "min({x}, {y})"),
    (&["maximum", "fmax"], "max({x}, {y})"),
    (&["clip", "saturate", "constrain", "bound"], "clamp({x}, {y}, {z})"),
    (&["isfinite", "is_finite"], "finite({x})"),
    (&["isinf", "is_inf", "isinfinite"], "abs({x}) > 1.7976931348623157e308"),
    (&["isnan"], "is_nan({x})"),
    (&["is_known", "has_value", "is_some", "is_valid"], "known({x})"),
    (&["isnull", "is_null", "is_none", "is_unknown", "unknown"], "not known({x})"),
    (&["ite", "iif", "ternary"], "if {x} then {y} else {z}"),
    (&["length", "size", "strlen", "str_len", "count_elements"], "len({s})"),
    (&["startswith", "begins_with", "beginswith", "has_prefix", "hasprefix"], "starts_with({s}, {t})"),
    (&["endswith", "has_suffix", "hassuffix"], "ends_with({s}, {t})"),
    (&["includes", "has_substring", "strstr", "str_contains"], "contains({s}, {t})"),
    (&["match", "regex", "regexp", "regex_match", "re_match", "fullmatch", "is_match"], "matches({s}, {t})"),
    (&["tolower", "to_lower", "lowercase", "to_lowercase", "lcase", "downcase"], "lower({s})"),
    (&["avg", "average"], "mean({x}) over 10 s"),
    (&["std", "stdev", "stddev_samp", "stddev_pop", "standard_deviation", "sigma"], "stddev({x}) over 10 s"),
    (&["variance", "var"], "pow(stddev({x}) over 10 s, 2)"),
    (&["rms"], "sqrt(mean({x} * {x}) over 10 s)"),
    (&["integrate", "integrated"], "integral({x}) over 10 s"),
    (&["derivate", "differentiate", "derive", "slope"], "derivative({x}) over 10 s"),
    (&["count_distinct", "distinct_count", "nunique", "unique"], "distinct({x}) over 10 s"),
    (&["quantile", "pctl", "perc"], "percentile({x}, 95) over 10 s"),
    (&["summation", "total"], "sum({x}) over 10 s"),
    (&["frequency", "freq", "hz"], "rate({topic}) over 10 s"),
    (&["previous", "lag", "prior"], "prev({x})"),
    (&["change", "changes", "has_changed", "did_change"], "changed({x})"),
    (&["debounced"], "debounce({p}) for 2 s"),
    (&["received", "arrived", "arrives"], "on({topic})"),
    (&["staleness", "time_since", "since_last"], "age({topic})"),
];

/// Functions of other languages that have no counterpart, and advice.
const OTHERS: &[(&[&str], &str)] = &[
    (
        &["upper", "toupper", "to_upper", "uppercase", "to_uppercase", "ucase", "upcase"],
        "write `lower(s)`, and compare it with a text in lower case",
    ),
    (
        &["substring", "substr", "slice", "left", "right", "split", "find", "index_of", "indexof"],
        "write `starts_with(s, \"…\")`, `ends_with(s, \"…\")`, `contains(s, \"…\")` or `matches(s, \"…\")` for a part of a text",
    ),
    (
        &["now", "time", "current_time", "timestamp", "clock"],
        "write `age(topic)` for the time since a message, `once[0, 2 s] p` or `eventually[0, 2 s] p` for times relative to now",
    ),
];

/// The window in the table.
const WINDOW: &str = " over 10 s";

/// A call to write instead of one of another language.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    form: &'static str,
}

/// Returns what to write for a function of another language.
pub(crate) fn call(word: &str) -> Option<Call> {
    find(FUNCTIONS, word).map(|form| Call { form })
}

/// Returns advice for a function of another language that has no counterpart.
pub(crate) fn advice(word: &str) -> Option<&'static str> {
    find(OTHERS, word)
}

fn find(table: &[(&[&str], &'static str)], word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    table.iter().find(|(names, _)| names.contains(&word.as_str())).map(|(_, form)| *form)
}

impl Call {
    /// Returns the function that has another name here and the same arguments; none if more is different.
    pub(crate) fn renamed(self) -> Option<&'static str> {
        let (name, rest) = self.form.strip_suffix(WINDOW).unwrap_or(self.form).split_once('(')?;
        let arguments = rest.strip_suffix(')')?.split(", ");
        let is_same = arguments
            .clone()
            .all(|argument| placeholder(argument).is_some_and(|(_, len)| len == argument.len()));
        (is_same && !name.contains(' ')).then_some(name)
    }

    /// Whether it is measured over a window.
    pub(crate) fn has_window(self) -> bool {
        self.form.contains(WINDOW)
    }

    /// Returns the call with the window that is written, if there is one, and with the arguments: `argument` returns the
    /// text of one by its index, in parentheses unless it stands alone, or as a topic.
    pub(crate) fn with(
        self,
        window: Option<&str>,
        argument: impl Fn(usize, Place) -> Option<String>,
    ) -> String {
        let form = match window {
            Some(window) => self.form.replace(WINDOW, &format!(" over {window}")),
            None => self.form.to_owned(),
        };
        let (mut out, mut rest) = (String::new(), form.as_str());
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let Some((name, length)) = placeholder(from) else { break };
            rest = &from[length..];
            let is_alone = (out.ends_with('(') || out.ends_with(", ")) && rest.starts_with([')', ',']);
            let place = match name {
                "topic" => Place::Topic,
                _ if is_alone => Place::Alone,
                _ => Place::Operand,
            };
            let index = match name {
                "y" | "t" => 1,
                "z" => 2,
                _ => 0,
            };
            out += &argument(index, place).unwrap_or_else(|| name.to_owned());
        }
        out + rest
    }
}

/// Where an argument stands in a [`Call`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Between parentheses or commas.
    Alone,
    /// Beside an operator.
    Operand,
    /// Where a topic stands.
    Topic,
}

/// Returns the name in the braces that a text begins with, and the length of both.
fn placeholder(text: &str) -> Option<(&str, usize)> {
    let (name, _) = text.strip_prefix('{')?.split_once('}')?;
    Some((name, name.len() + 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FunctionId;

    /// A specification with what the placeholders of the table stand for.
    fn spec(value: &str) -> String {
        format!(
            "topic t {{ x: float, y: float, z: float, s: string, p: bool }}\n\
             let value = {value}\nproperty p = on(t) -> value == value"
        )
    }

    #[test]
    fn suggested_forms_compile() {
        for (names, form) in FUNCTIONS {
            assert!(
                names.iter().all(|name| *name == name.to_lowercase() && FunctionId::named(name).is_none())
            );
            let is_choice = names.contains(&"ite");
            let field = |index: usize, place: Place| {
                let name = match (place, index) {
                    (Place::Topic, _) => return Some("t".to_owned()),
                    _ if form.contains("matches") && index == 1 => return Some("\"x\"".to_owned()),
                    _ if form.contains("{s}") => "s",
                    _ if form.contains("{p}") || is_choice && index == 0 => "p",
                    (_, 1) => "y",
                    (_, 2) => "z",
                    _ => "x",
                };
                Some(format!("t.{name}"))
            };
            let written = Call { form }.with(None, field);
            let outcome = crate::parse(&spec(&written));
            assert!(outcome.spec.is_some(), "{written}: {:?}", outcome.diagnostics);
        }
    }

    #[test]
    fn arguments_are_filled_in() {
        let with = |word: &str, arguments: [&str; 2]| {
            call(word).unwrap().with(Some("5 s"), |index, place| match (place, arguments.get(index)?) {
                (Place::Operand, argument) if argument.contains(' ') => Some(format!("({argument})")),
                (_, argument) => Some((*argument).to_owned()),
            })
        };
        assert_eq!(with("ln", ["a.x + 1", ""]), "log(a.x + 1)");
        assert_eq!(with("MOD", ["a.x + 1", "3"]), "(a.x + 1) % 3");
        assert_eq!(with("avg", ["a.x + 1", ""]), "mean(a.x + 1) over 5 s");
        assert_eq!(with("rms", ["a.x + 1", ""]), "sqrt(mean((a.x + 1) * (a.x + 1)) over 5 s)");
        assert_eq!(call("clip").unwrap().with(None, |_, _| None), "clamp(x, y, z)");
        assert_eq!(call("clip").unwrap().renamed(), Some("clamp"));
        assert_eq!(call("average").unwrap().renamed(), Some("mean"));
        assert_eq!(call("log2").unwrap().renamed(), None);
        assert_eq!(call("quantile").unwrap().renamed(), None);
        assert!(call("abs").is_none() && advice("upper").is_some());
    }
}
