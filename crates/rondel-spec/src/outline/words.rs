//! The words of the language that are no functions of values, each with what it means, for editors.

use crate::operators::{OPERATORS, Operator};

/// Words of formulas, or one that begins a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordRow {
    /// The words.
    pub names: &'static [&'static str],
    /// Their use, as the operator table of the reference shows it: code is in backticks.
    pub call: &'static str,
    /// Their description.
    pub doc: &'static str,
}

const fn row(names: &'static [&'static str], call: &'static str, doc: &'static str) -> WordRow {
    WordRow { names, call, doc }
}

/// The words that begin declarations.
pub(super) const DECLARATIONS: &[WordRow] = &[
    row(
        &["topic"],
        "`topic gear \"/vehicle/gear\" { report: int }`",
        "messages that the specification reads, and their fields",
    ),
    row(&["property"], "`property p = v.x < 3`", "a formula that must hold"),
    row(
        &["let"],
        "`let standing = abs(v.x) < 0.1`",
        "a name for an expression, or a definition with parameters",
    ),
    row(&["const"], "`const limit = 2 s`", "a name for a constant"),
    row(&["machine"], "`machine m { initial off  off -> on when p }`", "a state machine over the messages"),
    row(
        &["chain"],
        "`chain a -> b -> c by stamp within 100 ms`",
        "a chain of topics with a bound on its latency",
    ),
    row(&["assert"], "`assert share(p) >= 0.95`", "an acceptance criterion over a whole recording"),
    row(
        &["test"],
        "`test \"name\" { at 0 s t { x: 1 }  expect p violated }`",
        "messages, and the verdicts that they must give",
    ),
    row(
        &["use"],
        "`use \"topics.rondel\" as topics`",
        "the declarations of another file, or of a library: `use std.patterns`; with `as` behind that name",
    ),
];

/// The words of formulas, beside the functions of values in [`crate::FUNCTIONS`].
pub static WORDS: &[WordRow] = &with_operators();

/// Returns the words of the language itself and those of [`OPERATORS`].
const fn with_operators() -> [WordRow; OWN.len() + OPERATORS.len()] {
    let mut all = [OWN[0]; OWN.len() + OPERATORS.len()];
    let mut i = 0;
    while i < all.len() {
        all[i] = if i < OWN.len() { OWN[i] } else { of_operator(OPERATORS[i - OWN.len()]) };
        i += 1;
    }
    all
}

const fn of_operator(operator: &'static Operator) -> WordRow {
    row(std::slice::from_ref(&operator.name), operator.call, operator.doc)
}

/// The words of the language itself.
const OWN: &[WordRow] = &[
    row(&["not"], "`not p`, `!p`", "`p` is false"),
    row(&["and"], "`p and q`, `p && q`", "both are true"),
    row(&["or"], "`p or q`, `p \\|\\| q`", "at least one is true"),
    row(&["if", "then", "else"], "`if p then x else y`", "`x` where `p` is true, `y` where it is false"),
    row(&["abs"], "`abs(x)`, `min(x, y)`, `max(x, y)`", "absolute value, lesser, greater"),
    row(&["starts_with"], "`starts_with(s, t)`", "text `s` begins with text `t`"),
    row(&["clamp"], "`clamp(x, low, high)`", "`x`, but at least `low` and at most `high`"),
    row(&["any"], "`any r in t.a: r < x`", "an element of an array meets the conditions"),
    row(&["all"], "`all r in t.a: r < x`", "every element does"),
    row(&["on"], "`on(t)`", "a message on `t` arrives now"),
    row(&["prev"], "`prev(x)`", "the value of `x` just before the last message that could change it"),
    row(&["changed"], "`changed(x)`", "the message now changes `x`"),
    row(&["rising", "falling"], "`rising(p)`, `falling(p)`", "`p` becomes true, becomes false"),
    row(&["previously"], "`previously p`", "`p` held at the time point before"),
    row(&["once"], "`once[a,b] p`", "`p` held at some time point within the bounds, looking back"),
    row(
        &["historically"],
        "`historically[a,b] p`",
        "`p` held at every time point within the bounds, looking back",
    ),
    row(&["since"], "`p since[a,b] q`", "`q` held within the bounds, and `p` ever since"),
    row(&["number"], "`number(t.v)`", "field `t.v` as a number, which may be written as a text"),
    row(&["next"], "`next p`", "`p` holds at the next message"),
    row(
        &["eventually"],
        "`eventually[a,b] p`",
        "`p` holds at some time point within the bounds, looking ahead",
    ),
    row(&["always"], "`always[a,b] p`", "`p` holds at every time point within the bounds, looking ahead"),
    row(&["until"], "`p until[a,b] q`", "`q` holds within the bounds, and `p` up to then"),
    row(
        &["count"],
        "`count(t) over d`, `count(p) over d`",
        "number of messages in the window, or of those with `p`",
    ),
    row(
        &["sum", "mean"],
        "`sum(x) over d`, `mean(x) over d`",
        "sum and mean of `x` over the messages in the window",
    ),
    row(&["min", "max"], "`min(x) over d`, `max(x) over d`", "least and greatest `x` in the window"),
    row(&["rate"], "`rate(t) over d`", "messages per second in the window"),
    row(
        &["percentile", "median"],
        "`percentile(x, 95) over d`, `median(x) over d`",
        "the value that 95 (50) percent of the samples do not exceed",
    ),
    row(&["stddev"], "`stddev(x) over d`", "standard deviation of `x` in the window"),
    row(&["distinct"], "`distinct(x) over d`", "number of different values in the window"),
    row(&["first", "last"], "`first(x) over d`, `last(x) over d`", "oldest and newest value in the window"),
    row(&["derivative"], "`derivative(x) over d`", "change of `x` per second over the window"),
    row(&["integral"], "`integral(x) over d`", "area below `x` in the window, in seconds"),
    row(&["over", "full"], "`m over full d`", "unknown until the window is full"),
    row(&["age"], "`age(t)`", "time since the last message on `t`"),
    row(&["latency"], "`latency(t)`", "arrival of the last message minus its own time"),
    row(&["jitter"], "`jitter(t)`", "difference of the last two periods of `t`"),
    row(
        &["missed_deadline", "disposed", "unregistered"],
        "`missed_deadline(t)`, `disposed(t)`, `unregistered(t)`",
        "the network reports this of `t` now",
    ),
    row(&["alive"], "`alive(t)`", "a publisher of `t` is alive, by the last report"),
    row(&["owner"], "`owner(t)`", "the publisher that owns `t`, by the last report; `\"\"` for none"),
    row(
        &["reaction"],
        "`age(chain)`, `latency(chain)`, `reaction(chain)`",
        "data age, latency, reaction time of a chain",
    ),
    row(&["in"], "`in(machine, a, b)`", "the machine is in state `a` or `b`"),
    row(
        &["exists", "forall"],
        "`exists x. p`, `forall x. p`",
        "`p` holds for some value, for every value of `x`",
    ),
];

/// Returns the row of a word: what it means in formulas, or the declaration that it begins.
pub(super) fn word(name: &str) -> Option<&'static WordRow> {
    WORDS.iter().chain(DECLARATIONS).find(|row| row.names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::FUNCTIONS;
    use crate::syntax::{BEFORE_PARENTHESIS, PREFIX};

    /// The reference says of each word what its row does.
    #[test]
    fn the_reference_lists_every_word() {
        let reference = include_str!("../../../../docs/reference/language/operators.md");
        for row in WORDS {
            let line = format!("| {} | {} | ", row.call, row.doc);
            assert!(reference.contains(&line), "docs/reference/language/operators.md has no line `{line}`");
        }
    }

    #[test]
    fn every_word_of_the_parser_is_listed() {
        let functions = || FUNCTIONS.iter().map(|row| row.name);
        for known in PREFIX.into_iter().chain(BEFORE_PARENTHESIS).chain(crate::syntax::DECLARATIONS) {
            assert!(word(known).is_some(), "{known}");
        }
        let twice = WORDS.iter().find(|row| functions().any(|name| row.names.contains(&name)));
        assert_eq!(twice, None);
    }
}
