//! A first specification and deployment from a survey: bounds that a longer run keeps if it is like what was seen. Single
//! silences and values that are unlike all the rest are reported, and the bounds are those of the rest.

use std::collections::BTreeMap;

use rondel_event::terminal::escaped;

use super::declare::{self, Drafted, Listed, key, written};
use super::fields::Field;
use super::lengths::{bound, duration, rounded};
use super::names::{Names, name_like};
use super::pace::RecordedTime;
use super::rules::{Context, Found, Rule, rules};
use super::{PayloadKind, Survey};
use crate::text::counted;

/// Topics that a draft contains; further ones are counted.
pub const TOPICS: usize = 100;
/// Properties about fields of one topic.
const PROPERTIES: usize = 8;
/// The shortest bound on a silence, in nanoseconds.
const PAUSE: u64 = 100_000_000;
/// The longest bound on a silence, 100 years in nanoseconds: a specification has durations up to 292 years, and windows are
/// twice as long.
const LONGEST: u64 = 100 * 31_557_600 * 1_000_000_000;

/// Options of a draft.
#[derive(Clone, Debug, Default)]
pub struct DraftOptions {
    /// Source of the survey, such as `drive.jsonl`.
    pub origin: String,
    /// The name of the file of the specification.
    pub specification: String,
    /// The settings of networks, in YAML.
    pub networks: String,
    /// Sentences at the head of the specification.
    pub notes: Vec<String>,
    /// Properties of an earlier draft that a check refuted, by name, each with the reason as a sentence: they become comments.
    /// `None` if nothing was checked.
    pub refuted: Option<BTreeMap<String, String>>,
}

/// A first specification, and a deployment of it.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The specification.
    pub specification: String,
    /// The deployment, in YAML.
    pub deployment: String,
    /// Omissions, in words.
    pub omitted: Vec<String>,
    /// Topics without an address in the deployment, each with the reason as a sentence.
    pub unaddressed: Vec<String>,
    /// Silences and values that are unlike all the rest, in words: properties of the draft say that they violate them.
    pub outliers: Vec<String>,
    /// Whether only the deployment says how messages are read: plain values, or numbers that come as texts.
    pub needs_deployment: bool,
    /// The number of properties that are only suggested.
    pub suggested: usize,
    /// The number of topics.
    pub topics: usize,
    /// The number of properties.
    pub properties: usize,
}

/// A property about a field, with a value that satisfies it and one that does not.
struct About {
    property: String,
    topic: usize,
    path: Vec<String>,
    good: String,
    bad: String,
}

/// Writes a specification that a run like those in the survey satisfies, and a deployment. `knows` returns whether the
/// definition of a message type is known. `None` if there is nothing to write about.
pub fn draft(survey: &Survey, options: &DraftOptions, knows: impl Fn(&str) -> bool) -> Option<Draft> {
    let (drafted, mut omitted) = declare::topics(survey, TOPICS, knows);
    if drafted.is_empty() {
        return None;
    }
    omitted.extend(drafted.iter().filter_map(declare::several_types));
    let written = |promotes: bool| {
        let mut writer = Writer { promotes, refuted: options.refuted.clone(), ..Writer::default() };
        writer.head(survey, options, &omitted);
        for (index, topic) in drafted.iter().enumerate() {
            writer.topic(index, topic, survey);
        }
        writer.test(&drafted);
        writer
    };
    let mut writer = written(false);
    // A specification has a property at least: of a short recording, what was seen.
    if writer.properties == 0 {
        writer = written(true);
    }
    if writer.properties == 0 {
        writer.came(&drafted);
    }
    let deployment = deployment(&drafted, options, &omitted);
    let specification = rondel_spec::format(&writer.text).unwrap_or(writer.text);
    Some(Draft {
        specification,
        deployment,
        omitted,
        unaddressed: drafted.iter().filter_map(|drafted| drafted.lacks_address.clone()).collect(),
        outliers: writer.outliers,
        needs_deployment: drafted.iter().any(|drafted| {
            drafted.has_number_texts() || drafted.topic.kind().is_some_and(PayloadKind::is_stated)
        }),
        topics: drafted.len(),
        properties: writer.properties,
        suggested: writer.suggested,
    })
}

#[derive(Default)]
struct Writer {
    /// Whether rules with a caveat become properties too.
    promotes: bool,
    /// Properties that a check refuted, by name, with the reasons; `None` without a check.
    refuted: Option<BTreeMap<String, String>>,
    text: String,
    names: Names,
    properties: usize,
    suggested: usize,
    outliers: Vec<String>,
    about: Vec<About>,
}

impl Writer {
    fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    /// A comment on one line, whatever it holds.
    fn comment(&mut self, text: &str) {
        self.line(format!("// {}", escaped(text)));
    }

    fn head(&mut self, survey: &Survey, options: &DraftOptions, omitted: &[String]) {
        self.comment(&format!(
            "A first specification, from {} of {}.",
            seconds(survey.span()),
            options.origin
        ));
        self.comment(
            "The bounds are what was seen, with a margin. Replace them by what your system must keep.",
        );
        self.comment(
            "A rule in a comment is only suggested: remove the slashes before `property` if it must hold.",
        );
        for text in omitted {
            self.comment(&format!("Left out: {text}."));
        }
        options.notes.iter().for_each(|note| self.comment(note));
    }

    fn topic(&mut self, index: usize, drafted: &Drafted<'_>, survey: &Survey) {
        let topic = drafted.topic;
        self.line("");
        let (least, most) = topic.sizes.unwrap_or_default();
        let size = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let kind = topic.kind().map_or("", PayloadKind::name);
        let rate = topic.pace.rate().map(|rate| format!(", {rate:.1} per second")).unwrap_or_default();
        let bytes = if most == 1 { "byte" } else { "bytes" };
        self.comment(&format!(
            "{}: {} of {size} {bytes} in {kind}{rate}.",
            drafted.seen,
            counted(topic.messages, "message", "messages")
        ));
        if topic.fields.is_cut() && !drafted.is_typed {
            self.comment(&format!(
                "Not all fields are listed: at most {}, not too deep, with short names.",
                super::FIELDS
            ));
        }
        self.line(declare::declaration(drafted, Listed::Values));
        if topic.unreadable() > 0 {
            let messages = counted(topic.unreadable(), "message was", "messages were");
            self.comment(&format!("{messages} not of this type, and left out."));
        }
        self.pace(drafted, survey);
        self.fields(index, drafted, survey);
    }

    /// The reason why a check refuted a property, as a sentence.
    fn reason(&self, name: &str) -> Option<&String> {
        self.refuted.as_ref()?.get(name)
    }

    /// Adds a property, or suggests it in a comment if it has a caveat. `broken` names what was reported and violates it, if
    /// it is not known whether it holds.
    fn property(
        &mut self,
        name: &str,
        (seen, broken): (&str, &str),
        formula: &str,
        caveat: Option<&str>,
    ) -> String {
        let name = self.names.take(name_like(name));
        self.line("");
        let is_broken = self.refuted.is_none() || self.reason(&name).is_some();
        self.comment(&format!("{seen}{}", if is_broken { broken } else { "" }));
        if let Some(caveat) = caveat.filter(|_| self.promotes) {
            self.comment(caveat);
        }
        let refuted = self.reason(&name).cloned();
        let reason = refuted.or(caveat.filter(|_| !self.promotes).map(str::to_owned));
        match reason {
            None => {
                self.line(format!("property {name} = {formula}"));
                self.properties += 1;
            }
            Some(reason) => {
                self.comment(&format!("Only suggested. {reason}"));
                self.comment(&format!("property {name} = {formula}"));
                self.suggested += 1;
            }
        }
        name
    }

    /// Adds an assert for each topic that it came, or else that any did: a specification has a claim at least.
    fn came(&mut self, drafted: &[Drafted<'_>]) {
        self.line("");
        self.comment("No rule about values or times held: these asserts only say that messages came.");
        for topic in drafted {
            let name = self.names.take(name_like(&format!("{}_came", topic.name)));
            if self.reason(&name).is_none() {
                self.line(format!("assert {name} = ever on({})", topic.name));
                self.properties += 1;
            }
        }
        // No topic came in all recordings.
        if self.properties == 0 {
            let name = self.names.take("messages_came".to_owned());
            let topics: Vec<String> = drafted.iter().map(|topic| format!("on({})", topic.name)).collect();
            self.line(format!("assert {name} = ever({})", topics.join(" or ")));
            self.properties += 1;
        }
    }

    /// Records an outlier, in a comment and in the draft.
    fn note(&mut self, place: &str, text: &str) {
        self.line("");
        self.comment(&format!("Unlike the rest: {text}."));
        self.outliers.push(format!("{place}: {text}"));
    }

    fn pace(&mut self, Drafted { name, topic, seen: source, .. }: &Drafted<'_>, survey: &Survey) {
        let Some(rhythm) = topic.pace.rhythm() else { return };
        let usual = duration(rhythm.median);
        for (index, silence) in rhythm.silences.iter().enumerate() {
            let until = if silence.is_last { " to the end" } else { "" };
            let otherwise = match index + 1 == rhythm.silences.len() {
                true => format!(", otherwise {usual}"),
                false => String::new(),
            };
            let length = duration(silence.length);
            let at = offset(survey, silence.from);
            self.note(source, &format!("one silence of {length} at {at}{until}{otherwise}"));
        }
        if rhythm.longest == 0 {
            return;
        }
        // Systems without real-time scheduling pause for some tens of milliseconds now and then.
        let longest = match rhythm.is_regular {
            true => rhythm.longest.saturating_mul(2).max(5 * rhythm.median).max(PAUSE),
            false => rhythm.longest.saturating_add(rhythm.longest / 2),
        };
        if longest > LONGEST {
            let silence = duration(rhythm.longest);
            self.line("");
            self.comment(&format!("No bound on silences: the times of messages are up to {silence} apart."));
            return;
        }
        let (count, unit) = rounded(longest);
        let breaking = rhythm.silences.iter().filter(|silence| silence.length > count.saturating_mul(unit));
        let violated = broken_by(breaking.count(), "silence", "silences");
        let caveat = (!rhythm.is_regular).then_some("Messages do not come regularly.");
        let at = rhythm.longest_from.map(|from| format!(" (from {} on)", offset(survey, from)));
        let at = at.unwrap_or_default();
        self.property(
            &format!("{name}_fresh"),
            (&format!("A message every {usual}, at most {} apart{at}.", duration(rhythm.longest)), &violated),
            &format!("once on({name}) -> age({name}) <= {}", bound(longest)),
            caveat,
        );
        let Some(least) = topic.pace.least_rate(&rhythm, longest).filter(|_| rhythm.is_regular) else {
            return;
        };
        let silences = if least.is_kept { 0 } else { rhythm.silences.len() };
        let violated = broken_by(silences, "silence", "silences");
        let (length, rate) = (least.window, least.rate);
        self.property(
            &format!("{name}_rate"),
            (
                &format!("Not too slow: {:.1} messages per second are usual.", 1e9 / rhythm.median as f64),
                &violated,
            ),
            &format!("once[{length} s,] on({name}) -> rate({name}) over {length} s >= {rate:?}"),
            None,
        );
    }

    /// Adds the rules about the fields that matter most, in the order of the fields.
    fn fields(&mut self, index: usize, drafted: &Drafted<'_>, survey: &Survey) {
        let root = drafted.topic.fields.root();
        let mut all = Vec::new();
        let context = Context {
            median: drafted.topic.pace.rhythm().map_or(0, |rhythm| rhythm.median),
            constants: if drafted.is_typed { &drafted.topic.constants } else { &[] },
        };
        collect(&root.fields, &mut Vec::new(), root.messages, context, &mut all);
        for (path, found) in &all {
            for (value, at) in &found.outliers {
                let at = offset(survey, *at);
                let text = format!("one value of {value} at {at}, otherwise {}", found.usual);
                self.note(drafted.seen, &format!("{}: {text}", written(path)));
            }
            if let Some(remark) = &found.remark {
                self.note(drafted.seen, &format!("{}: {remark}", written(path)));
            }
        }
        // The liveliest of all noisy numbers stands for its sensor.
        let lively = (0..all.len()).filter(|at| all[*at].1.liveness.is_some());
        let liveliest = lively.rev().max_by_key(|at| all[*at].1.liveness.as_ref().map(|rule| rule.score));
        let mut chosen: Vec<usize> = (0..all.len()).filter(|at| all[*at].1.rule.is_some()).collect();
        chosen.sort_by_key(|at| std::cmp::Reverse(all[*at].1.rule.as_ref().map(|rule| rule.score)));
        let is_cut = chosen.len() > PROPERTIES;
        chosen.truncate(PROPERTIES);
        for (at, (path, found)) in all.into_iter().enumerate() {
            let violated = match (found.outliers.len(), &found.remark) {
                (0, Some(_)) => " What is unlike the rest violates it.".to_owned(),
                (values, _) => broken_by(values, "value", "values"),
            };
            let evidence = found.evidence.filter(|(_, least, most)| least != most);
            let evidence = evidence.map_or_else(String::new, |(count, least, most)| {
                let values = counted(count, "value", "values");
                let [least, most] = [least, most].map(|at| offset(survey, at));
                format!(" {values}, the least at {least}, the greatest at {most}.")
            });
            let back = found.went_back.map(|at| format!(" First at {}.", offset(survey, at)));
            let evidence = back.unwrap_or(evidence);
            let rule = found.rule.map(|rule| Rule { seen: rule.seen + &evidence, ..rule });
            let rule = rule.filter(|_| chosen.contains(&at));
            let step = found.step.filter(|_| rule.is_some());
            let live = found.liveness.filter(|_| liveliest == Some(at));
            for (rule, ending) in [(rule, ""), (step, "_step"), (live, "_alive")] {
                let Some(rule) = rule else { continue };
                let broken = if ending.is_empty() { violated.as_str() } else { "" };
                self.rule(index, drafted, &path, (rule, broken), ending);
            }
        }
        if is_cut {
            self.line("");
            self.comment("Further fields may have bounds as well.");
        }
    }

    fn rule(
        &mut self,
        index: usize,
        drafted: &Drafted<'_>,
        path: &[String],
        (rule, broken): (Rule, &str),
        ending: &str,
    ) {
        let place = format!("{}.{}", drafted.name, written(path));
        let formula = rule.formula.replace('%', &drafted.name).replace('@', &place);
        let name = format!("{}_{}{ending}", drafted.name, path.join("_"));
        let property = self.property(&name, (&rule.seen, broken), &formula, rule.caveat);
        let is_comment = self.reason(&property).is_some() || rule.caveat.is_some() && !self.promotes;
        if let Some((good, bad)) = rule.sample.filter(|_| !is_comment) {
            self.about.push(About { property, topic: index, path: path.to_vec(), good, bad });
        }
    }

    /// Adds a test as an example.
    fn test(&mut self, drafted: &[Drafted<'_>]) {
        let Some(About { property, topic, path, good, bad }) = self.about.first() else { return };
        let topic = &drafted[*topic].name;
        let message = |value: &str| {
            let mut text = value.to_owned();
            for name in path.iter().rev() {
                text = format!("{{ {}: {text} }}", key(name));
            }
            text
        };
        let test = format!(
            "\n// Tests belong to a specification: run them with `rondel test`.\n\
             test \"a value that is allowed\" {{\n    at 0 s {topic} {}\n    expect {property} never violated\n}}\n\n\
             test \"a value that is not\" {{\n    at 0 s {topic} {}\n    expect {property} violated at 0 s\n}}\n",
            message(good),
            message(bad)
        );
        self.text.push_str(&test);
    }
}

/// The rules for fields that all messages carry. A field that some messages lack keeps its value: nothing is said about it.
fn collect(
    fields: &[Field],
    path: &mut Vec<String>,
    messages: u64,
    context: Context<'_>,
    all: &mut Vec<(Vec<String>, Found)>,
) {
    for field in fields {
        path.push(field.name.clone());
        if field.messages == messages {
            let found = rules(path, field, fields, context);
            if found.rule.is_some() || found.liveness.is_some() || !found.outliers.is_empty() {
                all.push((path.clone(), found));
            }
        }
        // The parts of a quaternion have no limits of their own.
        if field.norm.is_none() {
            collect(&field.fields, path, messages, context, all);
        }
        path.pop();
    }
}

/// The place of a time in its recording.
fn offset(survey: &Survey, at: RecordedTime) -> String {
    let seconds = survey.offset(at) as f64 / 1e9;
    let seconds = format!("{seconds:.2}");
    let seconds = seconds.trim_end_matches('0').trim_end_matches('.');
    match survey.recordings() {
        0 | 1 => format!("+{seconds} s"),
        _ => format!("+{seconds} s of recording {}", at.part + 1),
    }
}

/// A text of YAML.
fn quoted(text: &str) -> String {
    rondel_decode::json::quoted(text)
}

/// A time in a comment.
fn seconds(nanos: u64) -> String {
    crate::text::duration(nanos)
}

/// A sentence after others that names so many silences or values, reported before, which violate a property.
fn broken_by(count: usize, one: &str, many: &str) -> String {
    match count {
        0 => String::new(),
        1 => format!(" The {one} above violates it."),
        _ => format!(" The {many} above violate it."),
    }
}

fn deployment(drafted: &[Drafted<'_>], options: &DraftOptions, omitted: &[String]) -> String {
    let mut text = format!("# A first deployment, from {}.\n", escaped(&options.origin));
    for omission in omitted {
        text.push_str(&format!("# Left out: {}.\n", escaped(omission)));
    }
    text.push_str(&format!("specification: {}\n", quoted(&options.specification)));
    text.push_str(&options.networks);
    let has_mqtt = drafted.iter().any(|drafted| drafted.source.starts_with("mqtt:"));
    if has_mqtt && !options.networks.contains("mqtt:") {
        text.push_str(
            "# No recording names its broker: write the name of yours.\nmqtt: { broker: localhost:1883 }\n",
        );
    }
    text.push_str("\n# Times are those of arrival. If messages carry their own, add `time: PATH.TO.THE.FIELD` to a topic.\ntopics:\n");
    for drafted in drafted {
        let Drafted { name, source, topic, .. } = drafted;
        if let Some(reason) = &drafted.lacks_address {
            text.push_str(&format!("  # {}: write the one of these messages.\n", escaped(reason)));
        }
        // A word of YAML for nothing.
        let name = if name.eq_ignore_ascii_case("null") { quoted(name) } else { name.clone() };
        let texts = if drafted.has_number_texts() { ", texts: numbers" } else { "" };
        let encoding = match topic.kind() {
            Some(kind) if kind.is_stated() || matches!(kind, PayloadKind::Cbor | PayloadKind::Msgpack) => {
                format!(", encoding: {}", kind.name())
            }
            Some(PayloadKind::Cdr) if !source.starts_with("ros2:") => ", encoding: cdr".to_owned(),
            Some(PayloadKind::CdrString) if !source.starts_with("dds:") => {
                ", encoding: cdr_string".to_owned()
            }
            Some(PayloadKind::CdrString) => match topic.message_type.as_deref() {
                None | Some("std_msgs/msg/String") => String::new(),
                Some(name) => format!(", type: {}", quoted(name)),
            },
            _ => String::new(),
        };
        text.push_str(&format!("  {name}: {{ source: {}{encoding}{texts} }}\n", quoted(source)));
    }
    text.push_str("\n# To publish verdicts, add addresses, such as zenoh:verdicts.\nverdicts: { emit: change, to: [stdout] }\n");
    text
}

#[cfg(test)]
mod tests;
