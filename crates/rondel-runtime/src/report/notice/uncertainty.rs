//! Notices about properties whose verdicts are uncertain, have no input, or mix up publishers.

use rondel_event::{Timestamp, TopicId};
use serde_json::{Value, json};

use super::{At, Notice, seconds, span};
use crate::statistics::missing::{Vacuous, VacuousKind};
use crate::text::duration as shown;

impl Notice {
    /// Properties that have become inconclusive, as messages were missed on which their verdicts depend. `stay` are
    /// those among them that look back without bound.
    pub(crate) fn blind(properties: &[&str], stay: &[&str], from: Option<Timestamp>) -> Notice {
        let list = |names: &[&str]| {
            let shown = names.iter().take(3).copied().collect::<Vec<_>>().join(", ");
            let more = names.len().saturating_sub(3);
            if more > 0 { format!("{shown} and {more} more") } else { shown }
        };
        let mut sentence = format!(
            "messages were not seen; {}verdicts that depend on them are inconclusive: {}",
            from.map(|time| format!("from {} on, ", At(time))).unwrap_or_default(),
            list(properties)
        );
        if !stay.is_empty() {
            sentence += &format!("; {} may stay so: nothing bounds how far back", list(stay));
        }
        let members = vec![
            ("properties", json!(properties)),
            ("unbounded", json!(stay)),
            ("from", from.map_or(Value::Null, seconds)),
        ];
        Notice::new("blind", None, members, sentence)
    }

    /// A topic that has not come, or not with a value for some fields, so long after the start.
    /// `unread` messages came that could not be read.
    pub(crate) fn missing(
        topic: TopicId,
        reasons: &[Vacuous],
        unread: u64,
        properties: &[&str],
        after: i64,
    ) -> Notice {
        let after = after.unsigned_abs();
        let fields: Vec<&String> = reasons.iter().filter_map(|reason| reason.field.as_ref()).collect();
        let mut members = vec![("after", span(after)), ("properties", json!(properties))];
        if unread > 0 {
            members.push(("unread", json!(unread)));
        }
        let is_event = reasons.iter().any(|reason| reason.kind == VacuousKind::Event);
        let what = if is_event {
            members.push(("event", json!(true)));
            "no event of the topic has come".to_owned()
        } else if fields.is_empty() && unread > 0 {
            format!("no message could be read, of {} that came", crate::text::grouped(unread))
        } else if fields.is_empty() {
            "no message has come".to_owned()
        } else {
            let quoted: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
            members.push(("fields", json!(fields)));
            format!("no message has had a value for {}", quoted.join(", "))
        };
        let names: Vec<&str> = properties.iter().take(3).copied().collect();
        let more = properties.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let verb = if properties.len() == 1 { "needs" } else { "need" };
        let sentence = format!("{what} within {}; {}{more} {verb} it", shown(after), names.join(", "));
        Notice::new("missing", Some(topic), members, sentence)
    }

    /// A topic whose messages are about several things in turn, which properties mix up: the field that looks like their
    /// name, with how many values it had, and the clause that keeps them apart.
    pub(crate) fn shared(
        topic: TopicId,
        field: &str,
        values: usize,
        properties: &[String],
        each: &str,
    ) -> Notice {
        let others = match properties.len() {
            0 | 1 => String::new(),
            2 => " and 1 other property compare".to_owned(),
            more => format!(" and {} other properties compare", more - 1),
        };
        let compare = if others.is_empty() { " compares" } else { &others };
        let first = properties.first().map_or("", String::as_str);
        let sentence = format!(
            "messages alternate between {values} values of `{field}`, and {first}{compare} each message with earlier ones \
             of any value; `{each}` keeps them apart"
        );
        let members = vec![
            ("field", json!(field)),
            ("values", json!(values)),
            ("properties", json!(properties)),
            ("clause", json!(each)),
        ];
        Notice::new("shared", Some(topic), members, sentence)
    }
}
