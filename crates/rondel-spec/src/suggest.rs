//! What a misspelt word was probably meant to be.

/// The candidate that is most like `word`, if one is like it enough to be named.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    // Comparing very long words costs much and helps nobody.
    if length > 64 {
        return None;
    }
    // A third of the word may be wrong; of one or two letters nothing can be told but their case.
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

/// `; did you mean 'x'?`, or nothing.
pub(crate) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map(|c| format!("; did you mean '{c}'?")).unwrap_or_default()
}

/// What is written in Rondel for an operator of other languages.
pub(crate) fn translation(word: &str) -> Option<&'static str> {
    let translation = match plain(word) {
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
        "avg" | "average" => "mean",
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
        "xor" => "!=",
        _ => return None,
    };
    Some(translation)
}

/// A word without the mark of an index, as in `G_[0,5]`.
fn plain(word: &str) -> &str {
    word.strip_suffix('_').unwrap_or(word)
}

/// What to write in Rondel for a word of other languages that is no single word here.
pub(crate) fn hint(word: &str) -> Option<&'static str> {
    let hint = match plain(word) {
        "G" | "globally" | "Globally" | "GLOBALLY" | "[]" | "□" => {
            "a property is checked at every moment: leave it out. For some time ahead write `always[0, 2 s] p`, and \
             for all that was `historically p`"
        }
        "F" | "finally" | "Finally" | "FINALLY" | "<>" | "◇" | "◊" => {
            "write `eventually[0, 2 s] p` for what must come in that time, or `once p` for what has been"
        }
        "U" => "write `p until[0, 2 s] q`; an operator of the future says by when",
        "W" | "unless" | "weak_until" => {
            "where `q` need not come, write `p until[0, 2 s] q or always[0, 2 s] p`"
        }
        "R" | "V" | "release" | "releases" => "`p` releases `q` is `not (not p until[0, 2 s] not q)`",
        "leads_to" | "leadsto" | "~>" | "followed_by" => {
            "write `p -> eventually[0, 2 s] q` for what must come within 2 s"
        }
        "|->" => "write `p -> q`",
        "|=>" => "write `p -> next q`, or `p -> eventually[0, 2 s] q`",
        "never" | "Never" | "NEVER" => "a property is checked at every moment: write `not p`",
        "foreach" | "each" => {
            "keys stand behind the name of the property: `property p for each id in topic.id = …`"
        }
        "for" | "throughout" => "write `historically[0, 2 s] p` for what has been so for 2 s",
        "within" => {
            "write `p -> eventually[0, 2 s] q` for what must come within 2 s, or `once[0, 2 s] q` for what was \
             within the last 2 s"
        }
        "after" | "before" => {
            "write `once p` for what was before, `eventually[0, 2 s] p` for what comes after"
        }
        "whenever" | "then" => "write `p -> q`",
        "delta" | "derivative" | "diff" | "der" | "ddt" => {
            "write `x - prev(x)` for the difference of the last two messages"
        }
        "between" | "in" => "write `1 <= x and x <= 3`, or `x == 1 or x == 2`",
        "since" | "until" => "it stands between what it is about: `p since q`, `p until[0, 2 s] q`",
        "offset" => "write `prev(x)` for the value before",
        "sqrt" | "norm" | "hypot" | "dist" | "distance" => {
            "there are no roots: compare squares, as in `x * x + y * y < 9`"
        }
        "pow" | "square" => "there are no powers: write `x * x`",
        "hold" => "a field holds its value until the next message that carries it: leave it out",
        "aggregate" => "write `mean(x) over 1 s`, and likewise `count`, `sum`, `min`, `max`, `rate`",
        "duration" => "write `historically[0, 2 s] p` for what has been so for 2 s",
        "^" => "there are no powers: write `x * x`",
        "|" => "write `abs(x)`",
        _ => return None,
    };
    Some(hint)
}

/// What to write in Rondel for a word of other languages that begins a declaration there.
pub(crate) fn declaration(word: &str) -> Option<&'static str> {
    let hint = match word {
        "input" | "in" | "stream" | "signal" => {
            "what comes in is declared as a topic with its fields: `topic name \"/address\" { field: float }`"
        }
        "output" | "define" | "def" | "var" => "a part of a formula is named with `let name = …`",
        "trigger" => "a trigger says what must not be: `property name = not (…)`",
        "assert" | "assume" | "require" | "requirement" | "spec" | "specification" | "formula" | "rule"
        | "monitor" | "check" | "invariant" | "FTSPEC" | "PTSPEC" => "what must hold is `property name = …`",
        "import" | "include" | "use" => "a specification is one file: nothing is imported",
        "float" | "double" | "int" | "bool" | "string" | "float32" | "float64" | "Float64" | "Bool"
        | "Int64" => "types are those of fields: `topic name { field: float }`",
        "function" | "fn" | "macro" => {
            "there are no functions of one's own; a part is named with `let name = …`"
        }
        _ => return None,
    };
    Some(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_named_and_far_ones_are_not() {
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
