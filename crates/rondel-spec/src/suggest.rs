//! Suggestions for misspelt words and for words of other languages.

use crate::diagnostic::Diagnostic;

/// Returns the candidate most similar to `word`, if one is similar enough to be suggested.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    // Comparing very long words is slow, and a suggestion would not help.
    if length > 64 {
        return None;
    }
    // Up to a third of the letters may differ; words of one or two letters may differ only in case.
    let allowed = length.div_ceil(3).min(3);
    let lower = word.to_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate == word || candidate.len() > 256 {
            continue;
        }
        let distance = if candidate.to_lowercase() == lower {
            0
        } else if length < 3 {
            continue;
        } else {
            strsim::damerau_levenshtein(word, candidate)
        };
        if distance <= allowed && best.is_none_or(|(d, _)| distance < d) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns the candidate that a word is the end of, as `CHARGING` is of `POWER_SUPPLY_STATUS_CHARGING`: one that begins with the
/// name of the field before the others, and the shortest.
pub(crate) fn ending<'a>(
    word: &str,
    field: Option<&str>,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let end = format!("_{}", word.to_ascii_uppercase());
    let begin = field.map(|field| format!("{}_", field.to_ascii_uppercase()));
    let is_end = |name: &&str| name.to_ascii_uppercase().ends_with(&end);
    let is_of_field = |name: &str| begin.as_ref().is_some_and(|begin| name.starts_with(begin));
    candidates.into_iter().filter(is_end).min_by_key(|name| (!is_of_field(name), name.len()))
}

/// Returns `; did you mean 'x'?`, or an empty string.
pub(crate) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map(|c| format!("; did you mean '{c}'?")).unwrap_or_default()
}

/// The maximum number of candidates that a diagnostic lists.
const LISTED: usize = 10;

/// Returns the first candidates in quotes and the number of the others; none for no candidates.
pub(crate) fn list<'a>(candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let names: Vec<_> = candidates.into_iter().map(|name| format!("'{name}'")).collect();
    let shown = names.get(..LISTED).unwrap_or(&names).join(", ");
    match names.len() {
        0 => None,
        count if count > LISTED => Some(format!("{shown} and {} more", count - LISTED)),
        _ => Some(shown),
    }
}

/// Adds the nearest candidate to the message of an error about an unknown word, or else lists all candidates.
pub(crate) fn unknown(
    mut diagnostic: Diagnostic,
    word: &str,
    candidates: &[&str],
    described: &str,
) -> Diagnostic {
    let suggestion = did_you_mean(word, candidates.iter().copied());
    if suggestion.is_empty() && diagnostic.help.is_none() {
        diagnostic.help = list(candidates.iter().copied()).map(|names| format!("{described}: {names}"));
    }
    diagnostic.message.push_str(&suggestion);
    diagnostic
}

/// Returns the Rondel spelling of an operator of another language.
pub(crate) fn translation(word: &str) -> Option<&'static str> {
    let translation = match without_index_mark(word) {
        "&" | "∧" | "AND" => "and",
        "|" | "∨" | "OR" => "or",
        "~" | "¬" | "NOT" => "not",
        "=>" | "==>" | "implies" | "→" | "⇒" => "->",
        "<=>" | "iff" | "↔" | "⇔" => "<->",
        "<>" | "≠" => "!=",
        "≤" => "<=",
        "≥" => ">=",
        "=" | "===" => "==",
        "?" => "if … then … else",
        "S" => "since",
        "H" => "historically",
        "P" => "once",
        "Y" | "pre" => "previously",
        "O" => "once",
        "X" => "next",
        "rose" | "rise" | "posedge" | "rising_edge" => "rising",
        "fell" | "fall" | "negedge" | "falling_edge" => "falling",
        "last" | "past" => "prev",
        "yesterday" => "previously",
        "equals" | "eq" => "==",
        "ne" | "neq" => "!=",
        "le" | "leq" => "<=",
        "ge" | "geq" => ">=",
        "mod" => "%",
        "∀" => "forall",
        "∃" => "exists",
        "⊤" => "true",
        "⊥" => "false",
        "−" | "–" => "-",
        "×" | "·" => "*",
        "÷" => "/",
        "xor" => "!=",
        _ => return None,
    };
    Some(translation)
}

/// Removes the index mark of an operator, as in `G_[0,5]`.
fn without_index_mark(word: &str) -> &str {
    word.strip_suffix('_').unwrap_or(word)
}

/// Returns advice for a word of another language that has no single counterpart in Rondel.
pub(crate) fn hint(word: &str) -> Option<&'static str> {
    let hint = match without_index_mark(word) {
        "G" | "globally" | "Globally" | "GLOBALLY" | "[]" | "□" => {
            "remove it, as a property is checked at every time point; write `always[0, 2 s] p` for the next 2 s, \
             `historically p` for the whole past"
        }
        "F" | "finally" | "Finally" | "FINALLY" | "<>" | "◇" | "◊" => {
            "write `eventually[0, 2 s] p` for the next 2 s, `once p` for the past"
        }
        "U" => "write `p until[0, 2 s] q`; future operators need an upper bound",
        "W" | "unless" | "weak_until" => "write `p until[0, 2 s] q or always[0, 2 s] p`",
        "R" | "V" | "release" | "releases" => "write `not (not p until[0, 2 s] not q)` for `p release q`",
        "leads_to" | "leadsto" | "~>" | "followed_by" => {
            "write `p -> eventually[0, 2 s] q` for `q` within the next 2 s"
        }
        "“" | "”" | "„" | "‘" | "’" | "«" | "»" => "write `\"`, the straight quotation mark",
        "|->" => "write `p -> q`",
        "|=>" => "write `p -> next q`, or `p -> eventually[0, 2 s] q`",
        "never" | "Never" | "NEVER" => "write `not p`, as a property is checked at every time point",
        "foreach" | "each" => {
            "write `for each` after the name of the property: `property p for each id in topic.id = …`"
        }
        "for" | "throughout" => "write `historically[0, 2 s] p` for `p` throughout the last 2 s",
        "within" => {
            "write `p -> eventually[0, 2 s] q` for `q` within the next 2 s, `once[0, 2 s] q` for `q` within the \
             last 2 s"
        }
        "after" | "before" => "write `once p` for the past, `eventually[0, 2 s] p` for the next 2 s",
        "whenever" | "then" => "write `p -> q`",
        "like" | "LIKE" => "write `matches(s, \"…\")`, `contains(s, \"…\")` or `starts_with(s, \"…\")`",
        "delta" | "diff" => "write `x - prev(x)` for the difference between the last two messages",
        "derivative" | "der" | "ddt" => {
            "write `derivative(x) over 1 s` for the change per second, `x - prev(x)` for the difference between the last \
             two messages"
        }
        "between" | "in" => "write `x in [1, 3]` for a range, `x in (1, 2)` for values",
        "since" | "until" => "write it between its operands: `p since q`, `p until[0, 2 s] q`",
        "any" | "all" => {
            "write `any r in scan.ranges: r < 0.2` for the elements of an array, `exists x. …` for the values of a field"
        }
        "is" => "write `==` to compare; an expression with a field that has no value is unknown by itself",
        "offset" => "write `prev(x)` for the previous value",
        "norm" | "dist" | "distance" => "write `hypot(x, y)` for the length of a vector",
        "square" => "write a power as a product: `x * x`",
        "hold" => "remove it, as a field holds its value until the next message",
        "aggregate" => {
            "write `mean(x) over 1 s`; there are also `count`, `sum`, `min`, `max`, `rate`, `distinct`, `percentile`, `median`, `stddev`, `first`, `last`, `derivative` and `integral`"
        }
        "duration" => "write `historically[0, 2 s] p` for `p` throughout the last 2 s",
        "^" => "write a power as `pow(x, 2)`",
        "|" => "write `abs(x)`",
        _ => return None,
    };
    Some(hint)
}

/// Returns advice for a word that starts a declaration in another language.
pub(crate) fn declaration(word: &str) -> Option<&'static str> {
    let hint = match word {
        "input" | "in" | "stream" | "signal" => {
            "declare inputs as topics with fields: `topic name \"/address\" { field: float }`"
        }
        "output" | "define" | "def" | "var" => "name a subformula with `let name = …`",
        "trigger" => "write a trigger as a property that must hold: `property name = not (…)`",
        "assert" | "assume" | "require" | "requirement" | "spec" | "specification" | "formula" | "rule"
        | "monitor" | "check" | "invariant" | "FTSPEC" | "PTSPEC" => {
            "declare a property with `property name = …`"
        }
        "import" | "include" | "use" => {
            "import another file with `use \"topics.rondel\"`, before all other declarations"
        }
        "float" | "double" | "int" | "bool" | "string" | "float32" | "float64" | "Float64" | "Bool"
        | "Int64" => "declare types for the fields of a topic: `topic name { field: float }`",
        "function" | "fn" | "macro" => "write `let name = …`, or with parameters `let name(x: float) = …`",
        _ => return None,
    };
    Some(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_words_are_suggested() {
        assert_eq!(nearest("reprot", ["stamp", "report"]), Some("report"));
        assert_eq!(nearest("Gear", ["hazard", "gear"]), Some("gear"));
        assert_eq!(nearest("x", ["y", "X"]), Some("X"));
        assert_eq!(nearest("speed", ["velocity", "acceleration"]), None);
        assert_eq!(nearest("propery", ["property"]), Some("property"));
        assert_eq!(nearest(&"a".repeat(1000), ["aaa"]), None);
        assert_eq!(did_you_mean("adn", ["and"]), "; did you mean 'and'?");
        assert_eq!(did_you_mean("adn", []), "");
    }
}
