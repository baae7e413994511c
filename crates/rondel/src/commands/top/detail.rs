//! An open property or topic as lines.

use rondel_event::{Timestamp, Verdict};
use rondel_runtime::text::grouped;
use serde_json::Value;

use super::answers::{PropertyRow, TopicRow, list, optional, text, verdict};
use super::text::{duration, figure, since};
use crate::output::time_text::TimeText;

/// Most lines of a message, and of an explanation.
const MOST: usize = 1000;

/// Emphasis of a text. Verdicts have a shape as well as a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// None.
    #[default]
    Plain,
    /// A heading.
    Head,
    /// Less than plain.
    Dim,
    /// A loss, or a run that is not ready.
    Warning,
    /// A verdict.
    Verdict(Option<Verdict>),
}

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DetailLine {
    /// The emphasis.
    pub tone: Tone,
    /// The text, as the server sends it.
    pub text: String,
}

/// Lines in the making.
#[derive(Default)]
struct Lines(Vec<DetailLine>);

impl Lines {
    fn add(&mut self, tone: Tone, text: impl Into<String>) {
        self.0.push(DetailLine { tone, text: text.into() });
    }

    fn head(&mut self, title: &str) {
        self.add(Tone::Plain, "");
        self.add(Tone::Head, title);
    }

    /// Adds a text with its line breaks, indented.
    fn block(&mut self, text: &str) {
        for line in text.lines().take(MOST) {
            self.add(Tone::Plain, format!("  {}", line.replace('\t', "    ")));
        }
    }

    /// Adds a name and its value, unless that is empty.
    fn member(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.add(Tone::Plain, format!("{name:<14}{value}"));
        }
    }
}

/// The name of a verdict.
pub fn verdict_name(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Violated) => "violated",
        Some(Verdict::Inconclusive) => "inconclusive",
        Some(Verdict::Satisfied) => "satisfied",
        None => "no verdict",
    }
}

/// A time in seconds as text, to the millisecond.
pub fn time_text(times: &mut TimeText, seconds: f64) -> String {
    let millis = (seconds * 1e3).round() as i64;
    times.text(Timestamp::from_nanos(millis.saturating_mul(1_000_000)))
}

/// Members of an object as `name = value, name = value`.
fn members(value: &Value) -> String {
    let member = |(name, value): (&String, &Value)| match value {
        Value::Null => format!("{name} unknown"),
        value => format!("{name} = {value}"),
    };
    value.as_object().into_iter().flatten().map(member).collect::<Vec<_>>().join(", ")
}

/// An open property: its state, text, present values, violations with their explanations, and instances.
pub fn property(property: &Value, instances: &Value, violations: &Value) -> Vec<DetailLine> {
    let (row, now) = (PropertyRow::of(&property["summary"]), property["now"].as_f64().unwrap_or(0.0));
    let (mut lines, mut times) = (Lines::default(), TimeText::default());
    let age = row.since.map_or(String::new(), |time| {
        format!(", {} (since {})", since(time, now), time_text(&mut times, time))
    });
    lines.add(Tone::Verdict(row.verdict), format!("{}{age}", verdict_name(row.verdict)));
    lines.member("severity", &row.severity);
    lines.member("requirement", &row.requirement);
    lines.member("networks", &list(&property["summary"], "networks", shown).join(", "));
    lines.member("topics", &list(property, "topics", shown).join(", "));
    lines.member("violations", &grouped(row.violations));
    lines.member("handled", &row.note());
    lines.head("Text");
    lines.block(&text(property, "text"));
    for definition in list(property, "definitions", |definition| text(definition, "text")) {
        lines.block(&definition);
    }
    let atoms = list(property, "atoms", |atom| {
        let age = atom["time"].as_f64().map_or(String::new(), |time| format!("  ({})", since(time, now)));
        let value = if atom["value"].is_null() { "unknown".to_owned() } else { atom["value"].to_string() };
        format!("  {} = {value}{age}", text(atom, "name"))
    });
    if !atoms.is_empty() && property["is_live"] == true {
        lines.head("Present values");
        atoms.into_iter().for_each(|line| lines.add(Tone::Plain, line));
    }
    add_violations(&mut lines, &mut times, violations);
    if row.instances > 1 {
        lines.head(&format!("Instances: {} violated of {}", grouped(row.violated), grouped(row.instances)));
        for (own, line) in list(instances, "instances", |instance| {
            let own = verdict(&instance["verdict"]);
            let age = instance["since"].as_f64().map_or(String::new(), |time| since(time, now));
            (own, format!("{:<13} {}  {age}", verdict_name(own), members(&instance["parameters"])))
        }) {
            lines.add(Tone::Verdict(own), line);
        }
    }
    lines.0
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn add_violations(lines: &mut Lines, times: &mut TimeText, violations: &Value) {
    let total = violations["total"].as_u64().unwrap_or(0);
    let Some(all) = violations["violations"].as_array().filter(|all| !all.is_empty()) else { return };
    lines.head(&format!("Latest violations of {}", grouped(total)));
    for violation in all {
        let begin = time_text(times, violation["begin"].as_f64().unwrap_or(0.0));
        let mut line = format!("  {} {}, began {begin}", violation["id"], text(violation, "status"));
        if let Some(seconds) = violation["seconds"].as_f64() {
            line += &format!(", lasted {}", duration(seconds));
        }
        for members in [&violation["parameters"], &violation["values"]].map(members) {
            if !members.is_empty() {
                line += &format!(", {members}");
            }
        }
        if let Some(operator) = optional(violation, "acknowledged_by") {
            line += &format!(", acknowledged by {operator}");
        }
        lines.add(Tone::Plain, line);
        let points = violation["explanation"].as_array().map_or(&[][..], Vec::as_slice);
        for point in points.iter().take(MOST) {
            let at = time_text(times, point["time"].as_f64().unwrap_or(0.0));
            let after = if point["after"] == true { "after " } else { "" };
            let topic = optional(point, "topic").map_or(String::new(), |topic| format!(" on {topic}"));
            lines.add(Tone::Plain, format!("    {after}{at}{topic}: {}", members(&point["values"])));
        }
        if points.is_empty() {
            lines.add(Tone::Dim, "    without an explanation: the run has no --explain");
        }
    }
}

/// An open topic: its figures and its last message as a tree.
pub fn topic(answer: &Value) -> Vec<DetailLine> {
    let (row, now) = (TopicRow::of(&answer["topic"]), answer["now"].as_f64().unwrap_or(0.0));
    let mut lines = Lines::default();
    lines.member("address", &format!("{}:{}", row.network, row.address));
    lines.member("type", row.kind.as_deref().unwrap_or_default());
    lines.member("publishers", &row.publishers.map_or(String::new(), grouped));
    lines.member("messages", &grouped(row.messages));
    lines.member("rate", &row.rate.map_or(String::new(), |rate| format!("{}/s", figure(rate))));
    lines.member("size", &row.size.map_or(String::new(), |size| format!("{} bytes", figure(size))));
    lines.member("age", &row.age.map_or("no message yet".to_owned(), duration));
    if row.missed() > 0 {
        let [late, lost, undecodable] = [row.late, row.lost, row.undecodable].map(grouped);
        lines.add(Tone::Warning, format!("late {late}, lost {lost}, undecodable {undecodable}"));
    }
    let message = &answer["message"];
    if message.is_null() {
        return lines.0;
    }
    let age = message["received"].as_f64().map_or(String::new(), |time| since(time, now));
    lines.head(&format!("Last message: {} bytes, {age} ago", message["bytes"]));
    if let Some(error) = optional(message, "error") {
        lines.add(Tone::Warning, format!("  {error}"));
    }
    if !message["value"].is_null() {
        lines.block(&serde_json::to_string_pretty(&message["value"]).unwrap_or_default());
    }
    if message["is_cut"] == true {
        lines.add(Tone::Dim, "  long texts and arrays are shortened");
    }
    lines.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(lines: &[DetailLine]) -> String {
        lines.iter().map(|line| format!("{}\n", line.text)).collect()
    }

    #[test]
    fn property_has_values_and_explanations() {
        let answer = json!({
            "now": 20.0,
            "summary": {"name": "shut", "verdict": "violated", "since": 12.5, "severity": "high",
                        "requirement": "", "networks": ["zenoh"], "violations": 1200,
                        "instances": {"total": 2, "violated": 1}},
            "text": "property shut for each id in (door.id) =\n\tnot door.open", "topics": ["door"],
            "definitions": [], "is_live": true,
            "atoms": [{"name": "door.open", "value": true, "time": 12.5}, {"name": "door.id", "value": null}],
        });
        let instances = json!({"instances": [
            {"parameters": {"id": "b"}, "verdict": "violated", "since": 12.5},
            {"parameters": {"id": "a"}, "verdict": "satisfied", "since": 1},
        ]});
        let violations = json!({"total": 1, "violations": [{
            "id": 7, "status": "open", "begin": 12.5, "seconds": 3.0, "parameters": {"id": "b"}, "values": {},
            "acknowledged_by": "ada",
            "explanation": [{"time": 12.5, "topic": "door", "values": {"door.open": true, "door.id": null}}],
        }]});
        let lines = property(&answer, &instances, &violations);
        assert_eq!(lines[0].tone, Tone::Verdict(Some(Verdict::Violated)));
        let text = texts(&lines);
        for part in [
            "violated, at 12.5 s (since 12.5 s)\n",
            "severity      high\n",
            "violations    1,200\n",
            "      not door.open\n",
            "  door.open = true  (at 12.5 s)\n  door.id = unknown\n",
            "  7 open, began 12.5 s, lasted 3.0 s, id = \"b\", acknowledged by ada\n",
            "    12.5 s on door: door.id unknown, door.open = true\n",
            "Instances: 1 violated of 2\nviolated      id = \"b\"  at 12.5 s\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains("requirement"), "{text}");
    }

    #[test]
    fn answers_without_members_are_survived() {
        let nothing = json!({});
        assert_eq!(property(&nothing, &nothing, &nothing)[0].text, "no verdict");
        assert!(texts(&topic(&nothing)).contains("no message yet"));
        assert_eq!(property(&json!(3), &json!([]), &json!("x"))[0].text, "no verdict");
    }

    #[test]
    fn topic_has_figures_and_a_tree() {
        let text = texts(&topic(&json!({
            "now": 1_800_000_000.0,
            "topic": {"name": "door", "address": "a/door", "network": "zenoh", "type": "JSON", "messages": 1234,
                      "rate": 12.34, "age": 0.5, "late": 0, "lost": 3, "undecodable": 0,
                      "publishers": 2},
            "message": {"received": 1_799_999_997.0, "bytes": 12, "is_cut": true, "error": null,
                        "value": {"id": "a"}},
        })));
        for part in [
            "zenoh:a/door\n",
            "publishers    2\n",
            "1,234\n",
            "12/s\n",
            "late 0, lost 3, undecodable 0\n",
            "Last message: 12 bytes, 3.0 s ago\n  {\n    \"id\": \"a\"\n  }\n",
            "shortened",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
