//! Notices about the types of messages: publishers with different ones, and strings that fit several encodings.

use rondel_decode::ChangeKind;
use rondel_decode::cdr::WideForm;
use rondel_event::TopicId;
use serde_json::json;

use super::Notice;
use crate::specification::input::{Input, PublisherType};
use crate::text::counted;

/// Differences that are named in a sentence.
const NAMED: usize = 4;

impl Notice {
    /// Messages whose wide strings fit several forms of CDR, or none, and the form in which they are read.
    pub(crate) fn guessed_wide(topic: TopicId, count: u64, form: WideForm) -> Notice {
        let sentence = format!(
            "{} wide strings that fit several encodings; they are read as {form}",
            counted(count, "message has", "messages have")
        );
        let members = vec![("count", json!(count)), ("form", json!(form.to_string()))];
        Notice::new("wide_strings", Some(topic), members, sentence)
    }

    /// A publisher of a topic with another type than the first one: how they differ. `None` if they do not.
    pub(crate) fn other_type(topic: TopicId, first: &Input, of: &PublisherType) -> Option<Notice> {
        let name = |encoding: &str, name: Option<&str>| match name {
            Some(name) => name.to_owned(),
            None => format!("without a type, in {encoding}"),
        };
        let (own, other) = (first.message_type.as_deref(), of.message_type.as_deref());
        let own_name = name(first.encoding.name(), own.map(|own| own.name()));
        let other_name = name(of.encoding.name(), other.map(|other| other.name()));
        let changes = own.zip(other).map(|(own, other)| own.changes(other)).unwrap_or_default();
        let is_renamed = own_name != other_name;
        if !is_renamed && changes.is_empty() {
            return None;
        }
        let whose = match &*of.publisher {
            "" => other_name.clone(),
            publisher => format!("{other_name} of {publisher}"),
        };
        let mut parts: Vec<String> = Vec::new();
        if is_renamed {
            parts.push(format!("messages of {} are {other_name}, others are {own_name}", of.publisher));
        }
        for change in changes.iter().take(NAMED) {
            let counts = match &change.kind {
                ChangeKind::New | ChangeKind::OtherType(..) => "",
                ChangeKind::Missing => ", and unknown there",
            };
            parts.push(format!("{change} in {whose}{counts}"));
        }
        if changes.len() > NAMED {
            parts.push(counted((changes.len() - NAMED) as u64, "further difference", "further differences"));
        }
        let shown: Vec<String> = changes.iter().map(ToString::to_string).collect();
        let members = vec![
            ("type", json!(other_name)),
            ("publisher", json!(of.publisher)),
            ("first_type", json!(own_name)),
            ("differences", json!(shown)),
        ];
        let sentence =
            format!("publishers have different types; each is read as its own: {}", parts.join("; "));
        Some(Notice::new("other_type", Some(topic), members, sentence))
    }
}
