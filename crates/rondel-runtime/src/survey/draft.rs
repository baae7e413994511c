//! A first specification and deployment from a survey: everything that was seen satisfies them.

use super::declare::{self, Drafted, Listed, key, written};
use super::fields::Field;
use super::names::{Names, name_like};
use super::{PayloadKind, Survey};
use crate::text::counted;

/// Topics that a draft contains; further ones are counted.
pub const TOPICS: usize = 100;
/// Properties about fields of one topic.
const PROPERTIES: usize = 8;

/// What a draft says beside what was seen.
#[derive(Clone, Debug, Default)]
pub struct DraftOptions {
    /// What was looked at, such as `drive.jsonl`.
    pub origin: String,
    /// The name of the file of the specification.
    pub specification: String,
    /// The settings of networks, in YAML.
    pub networks: String,
}

/// A first specification, and a deployment of it.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The specification.
    pub specification: String,
    /// The deployment, in YAML.
    pub deployment: String,
    /// What was left out, in words.
    pub omitted: Vec<String>,
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

/// Writes a specification that everything in the survey satisfies, and a deployment. `knows` returns whether the
/// definition of a message type is known. `None` if there is nothing to write about.
pub fn draft(survey: &Survey, options: &DraftOptions, knows: impl Fn(&str) -> bool) -> Option<Draft> {
    let (drafted, omitted) = declare::topics(survey, TOPICS, knows);
    if drafted.is_empty() {
        return None;
    }
    let mut writer =
        Writer { text: String::new(), names: Names::default(), properties: 0, about: Vec::new() };
    writer.head(survey, options, &omitted);
    for (index, topic) in drafted.iter().enumerate() {
        writer.topic(index, topic);
    }
    writer.test(&drafted);
    let deployment = deployment(&drafted, options, &omitted);
    let specification = rondel_spec::format(&writer.text).unwrap_or(writer.text);
    let (topics, properties) = (drafted.len(), writer.properties);
    Some(Draft { specification, deployment, omitted, topics, properties })
}

struct Writer {
    text: String,
    names: Names,
    properties: usize,
    about: Vec<About>,
}

impl Writer {
    fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    /// A comment on one line, whatever it holds.
    fn comment(&mut self, text: &str) {
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.line(format!("// {text}"));
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
        for text in omitted {
            self.comment(&format!("Left out: {text}."));
        }
    }

    fn topic(&mut self, index: usize, drafted: &Drafted<'_>) {
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
        self.pace(drafted);
        let (mut left, messages) = (PROPERTIES, topic.fields.root().messages);
        self.fields(index, drafted, topic.fields.fields(), &mut Vec::new(), messages, &mut left);
        if left == 0 {
            self.comment("Further fields may have bounds as well.");
        }
    }

    fn property(&mut self, name: &str, formula: &str) -> String {
        let name = self.names.take(name_like(name));
        self.line(format!("property {name} = {formula}"));
        self.properties += 1;
        name
    }

    fn pace(&mut self, Drafted { name, topic, .. }: &Drafted<'_>) {
        if topic.messages > 2
            && let Some(gap) = topic.pace.longest_gap().filter(|gap| *gap > 0)
        {
            self.line("");
            self.comment(&format!("Never silent: the longest time without a message was {}.", seconds(gap)));
            let bound = bound(gap.saturating_add(gap / 2));
            self.property(&format!("{name}_fresh"), &format!("once on({name}) -> age({name}) <= {bound}"));
        }
        if let Some((length, least)) = topic.pace.least() {
            let rate = (least as f64 * 0.8).floor() / length as f64;
            let rate = (rate * 100.0).floor() / 100.0;
            self.line("");
            self.comment(&format!("Not too slow: every {length} s brought at least {least} messages."));
            self.property(
                &format!("{name}_rate"),
                &format!("once[{length} s,] on({name}) -> rate({name}) over {length} s >= {rate:?}"),
            );
        }
    }

    fn fields(
        &mut self,
        index: usize,
        drafted: &Drafted<'_>,
        fields: &[Field],
        path: &mut Vec<String>,
        messages: u64,
        left: &mut usize,
    ) {
        for field in fields {
            path.push(field.name.clone());
            // A field that some messages lack keeps its value: nothing is said about it.
            let is_sure = field.messages == messages && field.kind.name().is_some();
            if let Some(rule) = is_sure.then(|| rule(field)).flatten().filter(|_| *left > 0) {
                *left -= 1;
                let place = format!("{}.{}", drafted.name, written(path));
                let formula = rule.formula.replace('@', &place);
                self.line("");
                self.comment(&rule.seen);
                let name = format!("{}_{}", drafted.name, path.join("_"));
                let property = self.property(&name, &format!("on({}) -> {formula}", drafted.name));
                self.about.push(About {
                    property,
                    topic: index,
                    path: path.clone(),
                    good: rule.good,
                    bad: rule.bad,
                });
            }
            self.fields(index, drafted, &field.fields, path, messages, left);
            path.pop();
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

/// A condition on a field, with `@` in its place.
struct Rule {
    formula: String,
    seen: String,
    good: String,
    bad: String,
}

/// Returns what the values of a field have in common, if anything.
fn rule(field: &Field) -> Option<Rule> {
    if let Some(values) = field.few_values() {
        let mut texts: Vec<String> = values.iter().map(ToString::to_string).collect();
        texts.sort_by_key(|text| (text.len(), text.clone()));
        let formula = texts.iter().map(|value| format!("@ == {value}")).collect::<Vec<_>>().join(" or ");
        let bad = match field.range {
            Some((_, most)) => format!("{}", most + 1.0),
            None => "\"something else\"".to_owned(),
        };
        let good = texts.first()?.clone();
        let formula = if texts.len() > 1 { format!("({formula})") } else { formula };
        return Some(Rule { formula, seen: format!("Values: {}.", texts.join(", ")), good, bad });
    }
    let (least, most) = field.range?;
    let is_whole = field.kind == super::FieldKind::Int;
    // Beyond this, a float has no fractions that could be a margin.
    const LARGEST: f64 = 1e15;
    if least.abs().max(most.abs()) > LARGEST || field.messages < 2 {
        return None;
    }
    let span = most - least;
    let margin = if span > 0.0 { span * 0.2 } else { (least.abs() * 0.1).max(1e-6) };
    let digits = if is_whole { 0 } else { (1.0 - margin.log10().floor()).clamp(0.0, 12.0) as usize };
    let scale = 10f64.powi(digits as i32);
    let low = ((least - margin) * scale).floor() / scale;
    // What is never negative mostly cannot be.
    let low = if least >= 0.0 { low.max(0.0) } else { low };
    let high = ((most + margin) * scale).ceil() / scale;
    let number = |x: f64| if is_whole { format!("{x:.0}") } else { format!("{x:?}") };
    let (low_text, high_text) = (number(low), number(high));
    Some(Rule {
        formula: format!("@ >= {low_text} and @ <= {high_text}"),
        seen: format!("Values from {} to {}.", number(least), number(most)),
        good: number(most),
        bad: number(high + if is_whole { 1.0 } else { margin }),
    })
}

/// A text of YAML.
fn quoted(text: &str) -> String {
    rondel_decode::json::quoted(text)
}

/// A time in a comment.
fn seconds(nanos: u64) -> String {
    crate::text::duration(nanos)
}

/// A bound of at least so many nanoseconds, with two digits.
fn bound(nanos: u64) -> String {
    let (unit, name) = match nanos {
        0..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..10_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let mut count = nanos.div_ceil(unit);
    let mut scale = 1;
    while count >= 100 {
        count = count.div_ceil(10);
        scale *= 10;
    }
    match (count * scale, name) {
        (ms, "ms") if ms >= 1_000 && ms.is_multiple_of(1_000) => format!("{} s", ms / 1_000),
        (count, name) => format!("{count} {name}"),
    }
}

fn deployment(drafted: &[Drafted<'_>], options: &DraftOptions, omitted: &[String]) -> String {
    let one_line = |text: &str| text.replace(char::is_control, " ");
    let mut text = format!("# A first deployment, from {}.\n", one_line(&options.origin));
    for omission in omitted {
        text.push_str(&format!("# Left out: {}.\n", one_line(omission)));
    }
    text.push_str(&format!("specification: {}\n", quoted(&options.specification)));
    text.push_str(&options.networks);
    text.push_str("\n# Times are those of arrival. If messages carry their own, add `time: PATH.TO.THE.FIELD` to a topic.\ntopics:\n");
    for Drafted { name, source, topic, .. } in drafted {
        let encoding = match topic.kind() {
            Some(kind @ (PayloadKind::Cbor | PayloadKind::Msgpack | PayloadKind::Plain)) => {
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
        text.push_str(&format!("  {name}: {{ source: {}{encoding} }}\n", quoted(source)));
    }
    text.push_str("\n# To publish verdicts, add addresses, such as zenoh:verdicts.\nverdicts: { emit: change, to: [stdout] }\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondel_event::Timestamp;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_nanos(ms * 1_000_000)
    }

    fn options() -> DraftOptions {
        DraftOptions {
            origin: "a\ntest".to_owned(),
            specification: "first.rondel".to_owned(),
            networks: String::new(),
        }
    }

    #[test]
    fn a_draft_has_no_mistakes_and_its_tests_pass() {
        let mut survey = Survey::new(TOPICS + 50);
        for i in 0..200 {
            let payload = format!(
                "{{\"state\": {}, \"pose\": {{\"x y\": {}, \"always\": \"{}\"}}, \"n\": {}, \"state\": 1, \"time\": 1, \"in\": 1, \"const\": 1, \"topic\": 1, \"big\": 1e300, \"t\": {{\"sec\": 1, \"nanosec\": 2}}}}",
                i % 3,
                f64::from(i) / 7.0,
                ["on", "off"][i as usize % 2],
                i
            );
            for source in [
                "x/state",
                "x/time",
                "x/error",
                "x/final",
                "x/at",
                "x/in",
                "x/int",
                "x/each",
                "x/end",
                "x/expect",
                "x/machine",
                "x/chain",
                "x/test",
                "x/over",
                "x/for",
                "x/var",
                "x/initial",
                "x/never",
                "zenoh:a/rate",
                "mqtt:b/rate",
                "topic",
                "odd \"name\"\\",
                "zenoh:0/1",
            ] {
                survey.message(source, at(i64::from(i) * 100), payload.as_bytes(), None);
            }
        }
        survey.message("zenoh:text", at(0), b"two\nlines", None);
        (0..TOPICS + 10).for_each(|i| survey.message(&format!("zz{i}"), at(0), b"{}", None));
        survey.end();
        let draft = draft(&survey, &options(), |_| false).unwrap();
        let parsed = rondel_spec::parse(&draft.specification);
        assert!(parsed.diagnostics.is_empty(), "{}\n{:?}", draft.specification, parsed.diagnostics);
        assert_eq!(rondel_spec::format(&draft.specification).as_ref(), Ok(&draft.specification));
        let spec = parsed.spec.unwrap();
        assert_eq!((spec.topics.len(), spec.properties.len()), (draft.topics, draft.properties));
        assert_eq!(draft.topics, TOPICS);
        assert_eq!(spec.tests.len(), 2);
        assert!(draft.specification.contains("Left out: zenoh:text: its payloads (text) cannot be decoded."));
        assert_eq!(draft.omitted.len(), 2, "{:?}", draft.omitted);
    }

    #[test]
    fn bounds_are_rounded_up() {
        for (nanos, text) in [
            (1, "1 ns"),
            (1_234, "2 us"),
            (75_100_000, "76 ms"),
            (1_510_000_000, "1600 ms"),
            (2_950_000_001, "3 s"),
            (15_000_000_000, "15 s"),
            (123_000_000_000, "130 s"),
            (u64::MAX, "19000000000 s"),
        ] {
            assert_eq!(bound(nanos), text);
        }
    }

    #[test]
    fn nothing_to_write_about() {
        let mut survey = Survey::new(10);
        survey.message("zenoh:a", at(0), b"two\nlines", None);
        assert!(draft(&survey, &options(), |_| false).is_none());
    }
}
