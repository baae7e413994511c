//! Rules for fields: common features of their values that a longer healthy run should keep.

use rondel_decode::NamedConstant;

use super::FieldKind;
use super::fields::{Array, Field};
use super::pace::RecordedTime;
use super::roles::{Role, role};
use super::series::{FAR, Series, Shape};

/// Minimum number of values of a field with a rule.
const FEW: u64 = 20;
/// Magnitude beyond which a float has no fractions for a margin.
const LARGEST: f64 = 1e15;

/// A rule for a field. In formulas `@` stands for the field and `%` for the topic.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub formula: String,
    /// Observation, as a sentence.
    pub seen: String,
    /// A value that satisfies the rule and one that does not.
    pub sample: Option<(String, String)>,
    /// Priority: the rules with the highest scores are written.
    pub score: u32,
    /// Reason why the rule is only suggested, as a sentence.
    pub caveat: Option<&'static str>,
}

/// Rules about a field.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub rule: Option<Rule>,
    /// The suggestion that it changes little from message to message, beside a rule about its values.
    pub step: Option<Rule>,
    /// The rule that a noisy number does not stand still, with its score.
    pub liveness: Option<Rule>,
    /// The number of values of a number, with the times of the least and the greatest.
    pub evidence: Option<(u64, RecordedTime, RecordedTime)>,
    /// When a time went back first.
    pub went_back: Option<RecordedTime>,
    /// Single values far from all others, and the usual range, in words.
    pub outliers: Vec<(String, RecordedTime)>,
    pub usual: String,
    /// Remark without a time.
    pub remark: Option<String>,
}

const BACK: &str = "It does not hold: messages came out of order, or a clock was set.";
const UNSETTLED: &str = "The ends of this range were not reached again and again: a longer run may leave it.";
const RESTING: &str = "Little but noise was seen: a run in which it moves leaves this range.";
const SELDOM: &str = "Not every value came several times: a longer run may bring others.";
const CONSTANT: &str = "It never changed: a longer run may bring other values.";
const UNLIMITED: &str = "What limits the change was not seen: a longer run may change faster.";
const TOO_FEW: &str = "Few messages were seen.";

/// Facts about the topic of a field.
#[derive(Clone, Copy)]
pub(super) struct Context<'t> {
    /// Median time between two messages, in nanoseconds.
    pub median: u64,
    /// The constants of its type, if formulas can name them.
    pub constants: &'t [NamedConstant],
}

/// Returns the rules for a field.
pub(super) fn rules(path: &[String], field: &Field, siblings: &[Field], context: Context<'_>) -> Found {
    let (role, median) = (role(path), context.median);
    if let Some(found) = constants(path, field, context.constants) {
        return found;
    }
    match role {
        Role::Ignored => Found::default(),
        // Formulas need one type.
        _ if field.kind == FieldKind::Mixed => Found::default(),
        _ if field.norm.is_some() => quaternion(field),
        _ if field.array.is_some() => array(field, siblings, role),
        _ if field.kind == FieldKind::Time => stamp(field),
        _ if field.kind == FieldKind::Bool => values(field, role),
        _ if is_enumeration(field, role) => values(field, role),
        _ if field.is_number() => number(field, role, median),
        _ => Found::default(),
    }
}

impl Found {
    fn of(rule: Rule) -> Found {
        Found { rule: Some(rule), ..Found::default() }
    }
}

/// A rule about pairs of consecutive messages.
fn paired(formula: &str, seen: String, score: u32) -> Rule {
    let formula = format!("on(%) and previously once on(%) -> {formula}");
    Rule { formula, seen, sample: None, score, caveat: None }
}

fn stamp(field: &Field) -> Found {
    // A time that often goes back is that of something else.
    let Some(series) =
        field.series.as_ref().filter(|series| series.count >= FEW && series.falls * 10 <= series.steps)
    else {
        return Found::default();
    };
    // A stamp that is never set is no time.
    if series.rises * 2 < series.steps {
        return Found::default();
    }
    let seen = match series.falls {
        0 => "A time that never goes back.".to_owned(),
        falls => format!("A time that went back {}.", crate::text::counted(falls, "time", "times")),
    };
    let rule = paired("@ >= prev(@)", seen, 45);
    let found = Found::of(Rule { caveat: (series.falls > 0).then_some(BACK), ..rule });
    Found { went_back: series.first_fall, ..found }
}

fn quaternion(field: &Field) -> Found {
    let Some((least, most)) = field.norm else { return Found::default() };
    let deviation = (least - 1.0).abs().max((most - 1.0).abs());
    if deviation > 0.02 || field.messages < FEW {
        return Found::default();
    }
    let tolerance = if deviation < 0.001 { 0.01 } else { 0.2 };
    let sum = ["x", "y", "z", "w"].map(|part| format!("@.{part} * @.{part}")).join(" + ");
    Found::of(Rule {
        formula: format!("on(%) -> abs({sum} - 1.0) <= {tolerance}"),
        seen: "A quaternion of length 1.".to_owned(),
        sample: None,
        score: 52,
        caveat: None,
    })
}

/// Whether the values of a field are names of states, not quantities.
fn is_enumeration(field: &Field, role: Role) -> bool {
    let Some(values) = field.few_values() else { return false };
    if field.kind == FieldKind::Text {
        return true;
    }
    let mut numbers: Vec<i64> = values.iter().filter_map(|(value, _)| value.as_i64()).collect();
    numbers.sort_unstable();
    let is_neighbour = |pair: &[i64]| pair[1].checked_sub(pair[0]) == Some(1);
    let has_gap = numbers.len() > 1 && !numbers.windows(2).all(is_neighbour);
    match role {
        Role::State | Role::Identity | Role::Fault => true,
        Role::Other => has_gap,
        _ => false,
    }
}

/// The rule that a field has the value of one of its constants: those that begin with its name, as in
/// `POWER_SUPPLY_STATUS_FULL` of `power_supply_status`.
fn constants(path: &[String], field: &Field, constants: &[NamedConstant]) -> Option<Found> {
    let prefix = format!("{}_", path.last()?.to_ascii_uppercase());
    let own: Vec<_> = constants.iter().filter(|constant| constant.name.starts_with(&prefix)).collect();
    let seen = field.few_values().filter(|_| field.kind == FieldKind::Int && path.len() == 1)?;
    let mut names = Vec::new();
    for (value, _) in seen {
        let is_value = |constant: &&&NamedConstant| {
            value.as_i64().map(rondel_event::Value::Int) == Some(constant.value.clone())
        };
        names.push(own.iter().find(is_value)?.name.to_string());
    }
    let all: Vec<String> =
        own.iter().map(|constant| format!("{}.{}", constant.owner, constant.name)).collect();
    Some(Found::of(Rule {
        formula: format!("on(%) -> @ in ({})", all.join(", ")),
        seen: format!("Values: {}.", names.join(", ")),
        sample: None,
        score: 55,
        caveat: None,
    }))
}

/// The rule that a field has one of the values that were seen.
fn values(field: &Field, role: Role) -> Found {
    let Some(values) = field.few_values() else { return Found::default() };
    let count = values.len() as u64;
    let visits: u64 = values.iter().map(|(_, visits)| visits).sum();
    let least = values.iter().map(|(_, visits)| *visits).min().unwrap_or(0);
    let mut texts: Vec<String> = values.iter().map(|(value, _)| value.to_string()).collect();
    texts.sort_by_key(|text| (text.len(), text.clone()));
    let is_well = ["0", "false", "\"\"", "\"ok\"", "\"OK\"", "\"none\""].contains(&&*texts[0]);
    let caveat = match (count, role) {
        (1, Role::Fault) if !is_well => return Found::default(),
        (2.., _) if field.kind == FieldKind::Bool => return Found::default(),
        _ if field.messages < FEW => Some(TOO_FEW),
        (1, Role::Fault | Role::Identity) => None,
        (1, _) if field.kind == FieldKind::Bool || field.kind == FieldKind::Int && role != Role::State => {
            return Found::default();
        }
        (1, _) => Some(CONSTANT),
        // If each value came repeatedly, a further one is unlikely.
        _ if least >= 2 && visits >= 2 * count + 2 => None,
        _ => Some(SELDOM),
    };
    let formula = texts.iter().map(|value| format!("@ == {value}")).collect::<Vec<_>>().join(" or ");
    let formula = if texts.len() > 1 { format!("({formula})") } else { formula };
    let bad = match (field.kind, field.range) {
        (FieldKind::Bool, _) => (texts[0] != "true").to_string(),
        (FieldKind::Int, Some((_, most))) if most.abs() <= LARGEST => format!("{}", most + 1.0),
        (FieldKind::Int, _) => {
            (0..=count).map(|n| n.to_string()).find(|n| !texts.contains(n)).unwrap_or_default()
        }
        _ => "\"something else\"".to_owned(),
    };
    let score = match (count, role) {
        (_, Role::Fault) => 75,
        (2.., _) => 72,
        (_, Role::Identity) => 15,
        _ => 20,
    };
    Found::of(Rule {
        formula: format!("on(%) -> {formula}"),
        seen: format!(
            "Values: {}. {}, {}.",
            texts.join(", "),
            crate::text::counted(field.messages, "message", "messages"),
            crate::text::counted(visits.saturating_sub(1), "change", "changes")
        ),
        sample: Some((texts[0].clone(), bad)),
        score,
        caveat,
    })
}

fn number(field: &Field, role: Role, median: u64) -> Found {
    let Some(series) = field.series.as_deref() else { return Found::default() };
    if series.clock().is_some() {
        return Found::of(paired("@ >= prev(@)", "A time that never goes back.".to_owned(), 45));
    }
    if let Some(found) = counter(field, series, role) {
        return found;
    }
    let Some(shape) = series.shape().filter(|shape| largest(shape) <= LARGEST) else {
        return Found::default();
    };
    let of = Of { shape: &shape, is_whole: field.is_whole(), zeros: series.zeros };
    if matches!(role, Role::Stamp | Role::Identity | Role::Count) {
        return Found::default();
    }
    let rule = match role {
        Role::Percentage => of.percentage(),
        _ if series.count < FEW => of.range(Some(TOO_FEW), 10),
        Role::Motion => of.motion(),
        Role::Position => of.jump(56),
        Role::Slow => of.jump(62).or_else(|| of.range(Some(UNSETTLED), 30)),
        Role::Angle => of.range(Some(UNSETTLED), 30),
        _ if shape.is_settled => of.range(None, 60),
        _ => of.range(Some(UNSETTLED), 30),
    };
    let step = matches!(role, Role::Motion | Role::Other).then(|| of.step()).flatten();
    let step = step.filter(|_| rule.is_some() && series.count >= FEW);
    let outliers = shape.outliers.iter().map(|(value, at)| (shown(*value), *at)).collect();
    let usual = format!("{} to {}", shown(shape.range.0), shown(shape.range.1));
    let liveness = liveness(series, &shape, role, median)
        .map(|rule| Rule { score: rule.score + u32::from(role == Role::Motion), ..rule });
    let evidence = Some((series.count, shape.ends.0, shape.ends.1));
    Found { rule, step, liveness, evidence, outliers, usual, ..Found::default() }
}

fn largest(shape: &Shape) -> f64 {
    shape.range.0.abs().max(shape.range.1.abs())
}

/// The rule for a number that counts messages, or only rises.
fn counter(field: &Field, series: &Series, role: Role) -> Option<Found> {
    if !field.is_whole() || series.count < FEW || series.rises == 0 {
        return None;
    }
    let counted = series.by_one + series.resets;
    // Messages that were lost leave a gap, and a message that comes twice repeats a number.
    if counted == series.steps {
        let seen = "Counts by one; begins again at 0.".to_owned();
        return Some(Found::of(paired("(@ == prev(@) + 1 or @ == 0)", seen, 70)));
    }
    let new_beginnings = series.falls == series.far_falls && series.falls * 10 <= series.steps;
    if new_beginnings && counted * 10 >= series.steps * 9 && series.rises + series.falls == series.steps {
        let gaps = series.steps - counted - (series.falls - series.resets).min(series.steps - counted);
        let gaps = crate::text::counted(gaps, "gap in its numbers", "gaps in its numbers");
        let formula = format!("(@ > prev(@) or prev(@) - @ >= {FAR})");
        let seen = format!("A number that rises; a fall by {FAR} and more is a new beginning.");
        let mut found = Found::of(paired(&formula, seen, 68));
        found.remark = Some(format!("{gaps}: messages are missing"));
        return Some(found);
    }
    let never_falls = || paired("(@ >= prev(@) or @ == 0)", "A number that never falls.".to_owned(), 50);
    (role == Role::Count && series.falls == series.resets).then(|| Found::of(never_falls()))
}

/// The rule that a noisy number changes: a constant value indicates a hanging sensor.
fn liveness(series: &Series, shape: &Shape, role: Role, median: u64) -> Option<Rule> {
    const SECOND: u64 = 1_000_000_000;
    const MESSAGES: u64 = 10;
    let changes = series.rises + series.falls;
    if !shape.is_noisy_throughout || changes * 2 < series.steps || median == 0 {
        return None;
    }
    let least = series.longest_unchanged.max(median).saturating_mul(2 * MESSAGES).max(2 * SECOND);
    let seconds = least.div_ceil(SECOND);
    if seconds > 60 {
        return None;
    }
    // At rest a velocity is exactly 0.
    let moves = if role == Role::Motion { " and @ != 0" } else { "" };
    Some(Rule {
        formula: format!(
            "on(%){moves} and count(%) over {seconds} s >= {MESSAGES} -> distinct(@) over {seconds} s >= 2"
        ),
        seen: "It changes all the time: a value that stays the same is a sensor that hangs.".to_owned(),
        sample: None,
        score: match role {
            Role::Other => 3,
            Role::Slow => 2,
            _ => 1,
        },
        caveat: None,
    })
}

/// The rules for a number of a shape.
struct Of<'s> {
    shape: &'s Shape,
    is_whole: bool,
    zeros: u64,
}

impl Of<'_> {
    fn seen(&self) -> String {
        let (least, most) = self.shape.range;
        match least == most {
            true => format!("Always {}.", shown(least)),
            false => format!("Values from {} to {}.", shown(least), shown(most)),
        }
    }

    fn between(&self, low: f64, high: f64, caveat: Option<&'static str>, score: u32) -> Rule {
        let margin = (high - low).abs().max(1.0) / 5.0;
        let (low_text, high_text) = (text(low, self.is_whole), text(high, self.is_whole));
        Rule {
            formula: format!("on(%) -> @ >= {low_text} and @ <= {high_text}"),
            seen: self.seen(),
            sample: Some((
                text(self.shape.range.1, self.is_whole),
                text(rounded(high + margin, margin, true), self.is_whole),
            )),
            score,
            caveat,
        }
    }

    fn percentage(&self) -> Option<Rule> {
        let (least, most) = self.shape.range;
        let high = if most <= 1.0 { 1.0 } else { 100.0 };
        if least < 0.0 || most > high {
            return None;
        }
        Some(Rule { seen: format!("{} A percentage.", self.seen()), ..self.between(0.0, high, None, 90) })
    }

    /// The range with its margins.
    fn range(&self, caveat: Option<&'static str>, score: u32) -> Option<Rule> {
        let (least, most) = self.shape.range;
        if least == most {
            return None;
        }
        let (below, above) = self.shape.margins;
        let least_margin = if self.is_whole { 1.0 } else { (most - least) * 0.3 };
        // A suggestion is about what was seen; where a drift leads is not.
        let most_margin = if caveat.is_some() { most - least } else { f64::INFINITY };
        let [below, above] = [below, above].map(|margin| margin.min(most_margin).max(least_margin));
        let low = rounded(least - below, below, false);
        // A value that reaches 0 and is never negative usually cannot be negative.
        let low = if least >= 0.0 && (self.zeros > 0 || self.is_whole) { low.max(0.0) } else { low };
        Some(self.between(low, rounded(most + above, above, true), caveat, score))
    }

    /// The greatest magnitude, with a margin.
    fn motion(&self) -> Option<Rule> {
        let Shape { range: (least, most), margins, is_settled, share_of_half, is_noise, .. } = *self.shape;
        let magnitude = largest(self.shape);
        if least == most || magnitude == 0.0 {
            return None;
        }
        let caveat = match share_of_half {
            _ if is_noise && least < 0.0 && most > 0.0 => Some(RESTING),
            share if share < 0.25 => Some(UNSETTLED),
            _ => None,
        };
        let bound = match is_settled {
            true => (magnitude + margins.0.max(margins.1)).clamp(1.5 * magnitude, 3.0 * magnitude),
            false => 3.0 * magnitude,
        };
        let bound = rounded(bound, bound / 5.0, true);
        let bound_text = text(bound, self.is_whole);
        let bad = text(rounded(1.5 * bound, bound / 5.0, true), self.is_whole);
        Some(Rule {
            formula: format!("on(%) -> abs(@) <= {bound_text}"),
            seen: self.seen(),
            sample: Some((text(most, self.is_whole), bad)),
            score: if caveat.is_some() { 40 } else { 85 },
            caveat,
        })
    }

    /// The greatest difference of consecutive values, with a margin, as a suggestion.
    fn step(&self) -> Option<Rule> {
        const MARGIN: f64 = 3.0;
        let step = Some(self.shape.greatest_step).filter(|step| *step > 0.0 && !self.shape.is_noise)?;
        let bound =
            Some(rounded(MARGIN * step, MARGIN * step / 5.0, true)).filter(|bound| bound.is_finite())?;
        let seen = format!("It changes by at most {} from message to message.", shown(step));
        let rule = paired(&format!("abs(@ - prev(@)) <= {}", text(bound, self.is_whole)), seen, 0);
        Some(Rule { caveat: Some(UNLIMITED), ..rule })
    }

    /// The greatest difference of consecutive values, with a margin.
    fn jump(&self, score: u32) -> Option<Rule> {
        const MARGIN: f64 = 10.0;
        let step = self.shape.step.filter(|_| !self.shape.is_noise || score > 60)?;
        let bound = rounded(MARGIN * step, MARGIN * step / 5.0, true);
        let mut seen =
            format!("{} It changes by at most {} from message to message.", self.seen(), shown(step));
        if self.shape.greatest_step > bound {
            seen += &format!(
                " A change by {}, as after a silence, violates it.",
                shown(self.shape.greatest_step)
            );
        }
        Some(paired(&format!("abs(@ - prev(@)) <= {}", text(bound, self.is_whole)), seen, score))
    }
}

/// The rule for an array of numbers.
fn array(field: &Field, siblings: &[Field], role: Role) -> Found {
    let Some(array) = field.array.as_deref().filter(|array| array.lengths.1 > 0) else {
        return Found::default();
    };
    if field.messages < FEW {
        return Found::default();
    }
    let is_whole = field.element() == FieldKind::Int;
    let rule = match role {
        Role::Distance => distances(array, siblings),
        Role::Motion => elements(array, is_whole, true),
        Role::Position | Role::Angle | Role::Slow => None,
        _ => elements(array, is_whole, false),
    };
    let length = || {
        let (least, most) = array.lengths;
        (least == most && most > 1).then(|| Rule {
            formula: format!("on(%) -> len(@) == {most}"),
            seen: format!("Always {most} elements."),
            sample: None,
            score: 35,
            caveat: None,
        })
    };
    Found { rule: rule.or_else(length), ..Found::default() }
}

/// Distances of a range finder, which may be infinite.
fn distances(array: &Array, siblings: &[Field]) -> Option<Rule> {
    let (least, most) = (array.least.shape()?.range.0, array.most.shape()?.range.1);
    if least < 0.0 {
        return None;
    }
    let limit = |name: &str| {
        let field = siblings.iter().find(|field| field.name == name)?;
        field.range.filter(|(low, high)| low == high).map(|(low, _)| low)
    };
    let seen = format!("Elements from {} to {}", shown(least), shown(most));
    let (formula, seen) = match limit("range_max").filter(|limit| *limit >= most && *limit > 0.0) {
        // An echo that did not come back is infinite.
        Some(most) => (
            format!("(all r in @: r >= 0.0 and (r <= {} or r > 1000000000.0))", text(most, false)),
            format!("{seen}; at most `range_max`, or infinite where nothing is in reach."),
        ),
        None => ("(all r in @: r >= 0.0)".to_owned(), format!("{seen}.")),
    };
    Some(Rule { formula: format!("on(%) -> {formula}"), seen, sample: None, score: 85, caveat: None })
}

/// A range for all elements.
fn elements(array: &Array, is_whole: bool, is_motion: bool) -> Option<Rule> {
    let (low, high) = (array.least.shape()?, array.most.shape()?);
    let (least, most) = (low.range.0, high.range.1);
    if least == most {
        return None;
    }
    let (low, high) = match is_motion {
        true => {
            let bound = 3.0 * least.abs().max(most.abs());
            let bound = rounded(bound, bound / 5.0, true);
            (-bound, bound)
        }
        false => {
            if !(low.is_settled || low.range.0 == low.range.1)
                || !(high.is_settled || high.range.0 == high.range.1)
            {
                return None;
            }
            let (below, above) =
                (low.margins.0.max(0.3 * (most - least)), high.margins.1.max(0.3 * (most - least)));
            (rounded(least - below, below, false), rounded(most + above, above, true))
        }
    };
    let low = if least == 0.0 { 0.0 } else { low };
    Some(Rule {
        formula: format!(
            "on(%) -> (all e in @: e >= {} and e <= {})",
            text(low, is_whole),
            text(high, is_whole)
        ),
        seen: format!("Elements from {} to {}.", shown(least), shown(most)),
        sample: None,
        score: 58,
        caveat: None,
    })
}

/// A number rounded up or down to two digits of a margin.
fn rounded(number: f64, margin: f64, up: bool) -> f64 {
    let digits = (1.0 - margin.abs().max(1e-9).log10().floor()).clamp(-12.0, 12.0);
    let scale = 10f64.powi(digits as i32);
    let scaled = number * scale;
    let whole = if up { scaled.ceil() } else { scaled.floor() };
    // Dividing by a power of ten gives the float that is nearest to the decimal number.
    if digits >= 0.0 { whole / scale } else { whole * 10f64.powi(-digits as i32) }
}

/// A number in a formula.
fn text(number: f64, is_whole: bool) -> String {
    if is_whole {
        return format!("{number:.0}");
    }
    format!("{number:?}")
}

/// A number in a comment, with five digits.
fn shown(number: f64) -> String {
    let digits = 4 - number.abs().max(1e-9).log10().floor() as i32;
    let rounded = format!("{number:.*}", digits.clamp(0, 12) as usize);
    match rounded.contains('.') {
        true => rounded.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => rounded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, text) in [(0.1 + 0.2, "0.3"), (-12.345678, "-12.346"), (0.0, "0"), (123456.7, "123457")]
        {
            assert_eq!(shown(number), text);
        }
        assert_eq!((rounded(1.2345, 0.1, true), rounded(-123.4, 30.0, false)), (1.24, -124.0));
    }
}
