//! Surveys as a table and as JSON.

use rondel_event::terminal::escaped;
use serde_json::{Value, json as object};

use super::{PayloadKind, Survey, Topic};
use crate::text::{counted, grouped};

/// Returns a survey as a table for people: a header, and a line for each topic.
pub fn text(survey: &Survey) -> String {
    const HEADER: [&str; 8] = ["topic", "type", "encoding", "messages", "rate", "bytes", "publishers", "qos"];
    let optional = |text: Option<&str>| text.unwrap_or("-").to_owned();
    let row = |(address, topic): (&str, &Topic)| {
        [
            escaped(topic.name.as_deref().unwrap_or(address)).into_owned(),
            optional(topic.message_type.as_deref().map(escaped).as_deref()),
            topic.kind().map_or("-".to_owned(), |kind| {
                let others = if topic.is_uniform() { "" } else { ", others" };
                let texts = if topic.fields.has_number_texts() { ", numbers as texts" } else { "" };
                let registry = topic.schemas().filter(|_| kind == PayloadKind::Registered);
                let registry = registry.map_or_else(String::new, |ids| format!(" of a registry, {ids}"));
                format!("{}{registry}{others}{texts}", kind.name())
            }),
            grouped(topic.messages),
            topic.pace.rate().map_or("-".to_owned(), |rate| format!("{rate:.1}/s")),
            topic.sizes.map_or("-".to_owned(), |(least, most)| {
                match (grouped(least as u64), grouped(most as u64)) {
                    (least, most) if least == most => least,
                    (least, most) => format!("{least} to {most}"),
                }
            }),
            topic.publishers.map_or("-".to_owned(), |count| count.to_string()),
            optional(topic.qos.as_deref()),
        ]
    };
    let header = HEADER.map(str::to_owned);
    let rows: Vec<[String; 8]> = std::iter::once(header).chain(survey.topics().map(row)).collect();
    let widths: Vec<usize> = (0..HEADER.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns a survey as one JSON object on a line.
pub fn json(survey: &Survey) -> String {
    let topics: Vec<Value> = survey
        .topics()
        .map(|(address, topic)| {
            object!({
                "address": address,
                "name": topic.name.as_deref().unwrap_or(address),
                "type": topic.message_type,
                "publishers": topic.publishers,
                "qos": topic.qos,
                "messages": topic.messages,
                "rate": topic.pace.rate(),
                "longest_gap": topic.pace.longest_gap().map(|nanos| nanos as f64 / 1e9),
                "size": topic.sizes.map(|(least, most)| object!({"min": least, "mean": topic.mean_size(), "max": most})),
                "encoding": topic.kind().map(|kind| kind.name()),
                "schema_ids": topic.schemas().map(|_| topic.schema_ids().collect::<Vec<u32>>()),
                "texts": topic.fields.has_number_texts().then_some("numbers"),
            })
        })
        .collect();
    let seconds = survey.span() as f64 / 1e9;
    format!("{}\n", object!({"seconds": seconds, "topics": topics, "unlisted": survey.unlisted()}))
}

/// Returns a sentence about unlisted topics, if there are any.
pub fn unlisted(survey: &Survey) -> Option<String> {
    (survey.unlisted() > 0).then(|| {
        format!(
            "only {} are listed: {} came on further ones; name a pattern, or set --limit",
            counted(survey.limit() as u64, "topic", "topics"),
            counted(survey.unlisted(), "message", "messages")
        )
    })
}
