//! Parts of the closing summaries that live runs and checks of recordings share.

use std::collections::BTreeMap;

use rondel_event::{Timestamp, TopicId, Verdict};
use rondel_runtime::text::{counted, grouped};
use rondel_runtime::{
    Extent, FirstViolation, LongestViolation, Omission, PropertyStatistics, Summary, Vacuous, VacuousKind,
};
use rondel_spec::Spec;
use serde_json::{Value, json};

use crate::exit;
use crate::output::time_text::TimeText;

/// The place of a first violation: `of [7] at step 168 (time 7.5 s), x = 3`.
pub fn first_violation(first: &FirstViolation) -> String {
    let of = if first.parameters.is_empty() { String::new() } else { format!("of {} ", first.parameters) };
    let time = TimeText::default().text(first.time);
    let values: String = first.values.iter().map(|(name, value)| format!(", {name} = {value}")).collect();
    match first.step {
        Some(step) => format!("{of}at step {} (time {time}){values}", step),
        None => format!("{of}at time {time}{values}"),
    }
}

/// Returns the number, first place and duration of violations: `violated 3 times, first at step 2 (time 2 s);
/// 1.2 s in total, longest 0.8 s from time 7.5 s`. `None` without a violation.
pub fn violations(statistics: &PropertyStatistics) -> Option<String> {
    let first = statistics.first.as_ref()?;
    let times = counted(statistics.violations, "time", "times");
    let lasting = lasting(statistics).unwrap_or_default();
    Some(format!("violated {times}, first {}{lasting}", first_violation(first)))
}

fn lasting(statistics: &PropertyStatistics) -> Option<String> {
    let violated = statistics.in_violation()?;
    let longest = violated.longest.as_ref()?;
    let is_timed = violated.total.nanos > 0;
    // Steps are for recordings without times: all of them are then zero.
    let first = statistics.first.as_ref()?;
    if !is_timed && [first.time, longest.begin] != [Timestamp::ZERO; 2] {
        return None;
    }
    let least = if violated.is_at_least { "at least " } else { "" };
    let text = |extent: Extent| match is_timed {
        true => lasted(extent.nanos),
        false => counted(extent.steps, "step", "steps"),
    };
    match (statistics.violations, is_timed) {
        // The duration is that until the next message, and says nothing.
        (1, false) => None,
        (_, false) if violated.total.steps == 0 => None,
        (1, true) => Some(format!(", for {least}{}", text(violated.total))),
        _ => {
            let LongestViolation { parameters, begin, step, extent } = longest;
            let of = if parameters.is_empty() { String::new() } else { format!("of {parameters} ") };
            let from = match step {
                Some(step) if !is_timed => format!("step {step}"),
                _ => format!("time {}", TimeText::default().text(*begin)),
            };
            let (total, longest) = (text(violated.total), text(*extent));
            Some(format!("; {least}{total} in total, longest {longest} {of}from {from}"))
        }
    }
}

/// Returns a duration in seconds with its significant digits: `1.238 s`, `0.05 s`.
fn lasted(nanos: u64) -> String {
    let unit = match nanos {
        0..1_000_000 => 1,
        1_000_000..1_000_000_000 => 1_000,
        _ => 1_000_000,
    };
    let nanos = nanos.saturating_add(unit / 2) / unit * unit;
    format!("{} s", Timestamp::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX)))
}

/// The least robustness of a property, if it has one that says more than its verdicts.
pub fn least_robustness(statistics: &PropertyStatistics) -> Option<String> {
    let least = statistics.least_robustness.filter(|least| least.is_finite())?;
    Some(format!("least robustness {least}"))
}

/// The number of properties, and of asserts if there are any.
pub fn claims(all: &[PropertyStatistics]) -> String {
    claims_in_words(all.len(), all.iter().filter(|statistics| statistics.is_assert()).count())
}

/// The same of a specification.
pub fn declared_claims(spec: &Spec) -> String {
    let asserts = spec.properties.iter().filter(|property| property.criterion.is_some()).count();
    claims_in_words(spec.properties.len(), asserts)
}

fn claims_in_words(all: usize, asserts: usize) -> String {
    let properties =
        (asserts < all || asserts == 0).then(|| counted((all - asserts) as u64, "property", "properties"));
    let asserts = (asserts > 0).then(|| counted(asserts as u64, "assert", "asserts"));
    properties.into_iter().chain(asserts).collect::<Vec<_>>().join(" and ")
}

/// The verdict of a property over all recordings, and a remark.
pub fn standing(statistics: &PropertyStatistics) -> (Verdict, String) {
    let remark = remark(statistics);
    let parts =
        Some(remark).filter(|remark| !remark.is_empty()).into_iter().chain(least_robustness(statistics));
    (statistics.outcome(), parts.collect::<Vec<_>>().join("; "))
}

/// The remark on the verdict of a property; empty without any.
fn remark(statistics: &PropertyStatistics) -> String {
    if let Some(judgement) = statistics.judgement() {
        judgement.text.clone()
    } else if statistics.is_assert() {
        "judged at the end of the last part".to_owned()
    } else if let Some(violated) = violations(statistics) {
        let withheld = statistics.open && statistics.blind.verdicts > 0;
        let why = if withheld { "; inconclusive at the end, messages were not seen" } else { "" };
        format!("{violated}{why}")
    } else if statistics.undecided() {
        "never decided".to_owned()
    } else if statistics.open {
        format!("inconclusive at the end{}", why_incomplete(statistics))
    } else if statistics.is_incomplete {
        format!("no violation in the messages that were evaluated{}", why_incomplete(statistics))
    } else if statistics.unchecked > 0 {
        let messages = counted(statistics.unchecked, "message", "messages");
        format!("{messages} did not count")
    } else if statistics.inconclusive > 0 {
        let (at, one, many) =
            if statistics.by_steps { ("at ", "step", "steps") } else { ("", "time", "times") };
        let times = counted(statistics.inconclusive, one, many);
        format!("but inconclusive {at}{times}")
    } else {
        String::new()
    }
}

/// Returns the reason why messages that a property depends on were not evaluated, as a further part of a sentence.
fn why_incomplete(statistics: &PropertyStatistics) -> String {
    match &statistics.omitted {
        _ if !statistics.is_incomplete => String::new(),
        Some(omitted) => format!("; {omitted}"),
        None => "; messages were not evaluated".to_owned(),
    }
}

/// The messages that were not evaluated, as sentences.
pub fn not_evaluated(summary: &Summary) -> Vec<String> {
    let mut times = TimeText::default();
    let sentence =
        |omission: &Omission| format!("not evaluated: {}", omission.sentence(&mut |time| times.text(time)));
    summary.omitted().iter().map(sentence).collect()
}

/// Adds statistics to a property in JSON: its first violation, the total and longest duration of violations, the least
/// robustness, and the number of withheld verdicts, if any; for an assert, its measured value. A property that an assert
/// judges is marked.
pub fn with_figures(mut property: Value, statistics: &PropertyStatistics) -> Value {
    if !statistics.is_assert() {
        let seconds = |time: Timestamp| time.as_nanos() as f64 / 1e9;
        let instance = |parameters: &str| Some(parameters.to_owned()).filter(|text| !text.is_empty());
        let lasted = |extent: Extent| {
            let mut lasted = json!({"seconds": extent.nanos as f64 / 1e9});
            if statistics.by_steps {
                lasted["steps"] = extent.steps.into();
            }
            lasted
        };
        property["first"] = statistics.first.as_ref().map_or(Value::Null, |first| {
            let mut json = json!({
                "time": seconds(first.time), "step": first.step, "instance": instance(&first.parameters),
            });
            if !first.values.is_empty() {
                let value = |(name, value): &(String, String)| (name.clone(), Value::from(value.as_str()));
                json["values"] = Value::Object(first.values.iter().map(value).collect());
            }
            json
        });
        let violated = statistics.in_violation();
        property["in_violation"] = violated.as_ref().map_or(Value::Null, |violated| {
            let mut total = lasted(violated.total);
            total["at_least"] = violated.is_at_least.into();
            total
        });
        let longest = violated.and_then(|violated| violated.longest);
        property["longest"] = longest.map_or(Value::Null, |longest| {
            let mut lasted = lasted(longest.extent);
            lasted["time"] = seconds(longest.begin).into();
            lasted["step"] = longest.step.into();
            lasted["instance"] = instance(&longest.parameters).into();
            lasted
        });
        property["least_robustness"] = statistics.least_robustness.into();
    }
    if statistics.blind.verdicts > 0 {
        property["withheld"] = statistics.blind.verdicts.into();
    }
    if let Some(judgement) = statistics.judgement() {
        property["measured"] = judgement.text.as_str().into();
    }
    if statistics.is_asserted {
        property["asserted"] = true.into();
    }
    property
}

/// Returns the number of withheld verdicts of a property as a sentence, if there are any.
pub fn withheld_verdicts(statistics: &PropertyStatistics) -> Option<String> {
    let count = Some(statistics.blind.verdicts).filter(|count| *count > 0)?;
    Some(format!("{} inconclusive, as messages were not seen", counted(count, "verdict", "verdicts")))
}

/// Returns the further topics of recordings, with their numbers of messages.
pub type Unused = BTreeMap<String, u64>;

/// The reasons why the properties of a summary are vacuous.
pub struct Reasons<'a> {
    /// The summary.
    pub summary: &'a Summary,
    /// The specification.
    pub spec: &'a Spec,
    /// Received topics that the specification does not read; `None` if they are not known.
    pub unused: Option<&'a Unused>,
}

impl Reasons<'_> {
    /// Returns the reason why a property, by its position, is vacuous, with the topic that may be meant instead.
    pub fn of(&self, property: usize) -> Vec<Vacuous> {
        let mut reasons = self.summary.vacuous(property);
        for reason in &mut reasons {
            reason.text += &self.hint(reason);
        }
        reasons
    }

    /// Returns a line for each reason, for the place below the property in a summary.
    pub fn lines(&self, property: usize) -> impl Iterator<Item = String> {
        self.of(property).into_iter().map(|reason| format!("                vacuous: {}", reason.text))
    }

    /// Returns the reasons as an array of objects.
    pub fn json(&self, property: usize) -> Vec<serde_json::Value> {
        self.of(property).iter().map(Vacuous::json).collect()
    }

    /// A sentence for each reason, with the properties that are vacuous for it; unless `strict`, without premises.
    pub fn sentences(&self, strict: bool) -> Vec<String> {
        let mut sentences: Vec<(String, Vec<&str>)> = Vec::new();
        for (i, property) in self.spec.properties.iter().enumerate() {
            // An assert that judges the property says it too, but has no premises.
            let is_asserted = self.summary.properties.get(i).is_some_and(|statistics| statistics.is_asserted);
            let counts = |reason: &Vacuous| match reason.kind {
                VacuousKind::Premise => strict,
                _ => !is_asserted,
            };
            for Vacuous { text, .. } in self.of(i).into_iter().filter(counts) {
                match sentences.iter_mut().find(|(known, _)| *known == text) {
                    Some((_, names)) => names.push(&property.name),
                    None => sentences.push((text, vec![&property.name])),
                }
            }
        }
        let sentence = |(text, names): (String, Vec<&str>)| {
            let shown = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
            let more = names.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{shown}{more} {} vacuous: {text}", if names.len() == 1 { "is" } else { "are" })
        };
        sentences.into_iter().map(sentence).collect()
    }

    /// The topics that came and are not used, if the specification lacks a topic.
    pub fn unused(&self) -> Option<String> {
        let missing = (0..self.spec.declared().len() as u32).any(|i| self.summary.missing.topic(TopicId(i)));
        let unused = self.unused.filter(|unused| missing && !unused.is_empty())?;
        let mut all: Vec<(&String, &u64)> = unused.iter().collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let shown = all.iter().take(LISTED).map(|(topic, count)| format!("{topic} ({})", grouped(**count)));
        let mut list = shown.collect::<Vec<_>>().join(", ");
        if all.len() > LISTED {
            list += &format!(" and {} more", all.len() - LISTED);
        }
        Some(format!("topics that came and are not used: {list}"))
    }

    fn hint(&self, reason: &Vacuous) -> String {
        let Some(unused) = self.unused else { return String::new() };
        let topic = self.spec.topics.iter().find(|topic| Some(&topic.name) == reason.topic.as_ref());
        let field = reason.field.as_deref().unwrap_or_default();
        match (reason.kind, topic) {
            // A topic that came under its own name was left out with `--topics`, which was said.
            (VacuousKind::Topic, Some(topic)) => near([&topic.address, &topic.name], unused)
                .filter(|near| **near != *topic.address && **near != *topic.name)
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?")),
            (VacuousKind::Field, _) if matches!(field.rsplit('.').next(), Some("time" | "topic")) => {
                " (`time` and `topic` are reserved in a line: put fields of these names inside `data`)"
                    .to_owned()
            }
            _ => String::new(),
        }
    }
}

/// Maximum number of properties and topics in one sentence.
const NAMED: usize = 3;
const LISTED: usize = 10;

/// The topic of a recording that is most like one of these names: as a whole, or in its last level. One with an empty
/// level is never meant.
fn near<'a>(names: [&String; 2], unused: &'a Unused) -> Option<&'a str> {
    let level = |name: &'a str| name.rsplit(['/', ':']).next().unwrap_or(name);
    let is_whole = |name: &&str| !name.split('/').skip(1).any(str::is_empty);
    let whole = || unused.keys().map(String::as_str).filter(is_whole);
    let nearest = |name: &String| rondel_spec::nearest(name, whole());
    let last = |name: &String| {
        let own = name.rsplit('/').next().unwrap_or(name).to_owned();
        let same = whole().find(|other| level(other) == own);
        let similar = || rondel_spec::nearest(&own, whole().map(level));
        same.or_else(|| {
            let similar = similar()?;
            whole().find(|other| level(other) == similar)
        })
    };
    names.into_iter().find_map(nearest).or_else(|| names.into_iter().find_map(last))
}

/// A sentence about the topics of one recording of which no message carried its time, if there are any.
pub fn never_stamped(summary: &Summary) -> Option<String> {
    let topics = summary.topics.iter().filter(|topic| topic.never_stamped());
    let names: Vec<&str> = topics.map(|topic| topic.name.as_str()).collect();
    let on = match names.as_slice() {
        [] => return None,
        [""] => String::new(),
        names => format!(" on {}", names.join(", ")),
    };
    Some(format!("no message{on} carried its time"))
}

/// Sentences about topics whose messages carried no time.
pub fn unstamped(summary: &Summary) -> Vec<String> {
    let mut sentences = Vec::new();
    for topic in summary.topics.iter().filter(|topic| topic.unstamped > 0) {
        let name = if topic.name.is_empty() { String::new() } else { format!(" on {}", topic.name) };
        let all = if topic.never_stamped() { "every message" } else { "some messages" };
        sentences.push(format!("{all}{name} ({}) came without a time", grouped(topic.unstamped)));
    }
    sentences
}

/// The exit status of a summary; if `strict`, a premise that was never true counts.
pub fn status(summary: &Summary, strict: bool) -> u8 {
    if summary.is_violated() {
        exit::VIOLATED
    } else if summary.is_inconclusive(strict) {
        exit::INCONCLUSIVE
    } else {
        exit::SATISFIED
    }
}
