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
    let translation = match word {
        "&" | "∧" | "AND" => "and",
        "|" | "∨" | "OR" => "or",
        "~" | "¬" | "NOT" => "not",
        "=>" | "implies" | "→" | "⇒" => "->",
        "<=>" | "iff" | "↔" | "⇔" => "<->",
        "<>" | "≠" => "!=",
        "≤" => "<=",
        "≥" => ">=",
        "=" => "==",
        "?" => "if … then … else",
        "S" => "since",
        "H" => "historically",
        "P" => "once",
        "Y" | "pre" => "previously",
        _ => return None,
    };
    Some(translation)
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
