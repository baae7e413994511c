//! The closing summary of a check, as text and in JSON.

use std::time::Duration;

use rondel_event::Timestamp;
use rondel_runtime::text::counted;
use rondel_runtime::{
    AlignmentStatistics, ChainStatistics, Omission, PropertyInfo, PropertyStatistics, Summary,
};

use super::checking::Checking;
use super::parallel::Row;
use crate::output::summary::{claims, not_evaluated, standing, with_figures};
use crate::output::time_text::TimeText;
use crate::output::{Format, colour_of};

impl Checking<'_> {
    /// One JSON object.
    pub(super) fn json(&self, elapsed: Duration) -> String {
        let Summary { counts, properties, backwards, missing, chains, alignment, topics, .. } =
            &self.found.summary;
        let seconds = |time: Timestamp| time.as_nanos() as f64 / 1e9;
        let resumed = self
            .found
            .summary
            .seam
            .map(|(from, until)| serde_json::json!({"from": seconds(from), "until": seconds(until)}));
        let reasons = self.reasons();
        let verdicts = self.plan.properties().iter().zip(properties).enumerate();
        let verdicts = verdicts.map(|(i, (property, statistics))| {
            with_figures(
                serde_json::json!({
                    "property": property.name,
                    "verdict": standing(statistics).0.as_str(),
                    "violations": statistics.violations,
                    "vacuous": reasons.json(i),
                }),
                statistics,
            )
        });
        serde_json::json!({
            "events": self.found.events,
            "seconds": elapsed.as_secs_f64(),
            "resumed": resumed,
            "unread": self.found.unread,
            "skipped": self.found.skipped,
            "damaged": self.found.damaged,
            "cut": self.found.cut,
            "lost": self.found.summary.lost(),
            "undecodable": counts.undecodable,
            "empty": self.found.empty,
            "refused": counts.refused,
            "mistyped": counts.mistyped,
            "backwards": backwards,
            "not_evaluated": self.found.summary.omitted().iter().map(Omission::json).collect::<Vec<_>>(),
            "left_out": self.found.summary.left_out(),
            "missing_topics": self.found.summary.missing_topics(),
            "missing_fields": missing.fields(),
            "unused_topics": self.found.unused,
            "duplicated": topics.iter().map(|topic| topic.repeats).sum::<u64>(),
            "unstamped": topics.iter().map(|topic| topic.unstamped).sum::<u64>(),
            "recordings": self.found.rows.iter().map(row_json).collect::<Vec<_>>(),
            "properties": verdicts.collect::<Vec<_>>(),
            "chains": chains.iter().map(ChainStatistics::json).collect::<Vec<_>>(),
            "alignment": alignment.as_ref().map(AlignmentStatistics::json),
        })
        .to_string()
    }

    /// The first line: counts, duration, and what was left out.
    fn counts_text(&self, elapsed: Duration) -> String {
        let Summary { properties, backwards, .. } = &self.found.summary;
        let mut text = format!(
            "\n{} checked against {} in {:.3} s",
            counted(self.found.events, "event", "events"),
            claims(properties),
            elapsed.as_secs_f64(),
        );
        if let Some((from, until)) = self.found.summary.seam {
            let mut times = TimeText::default();
            text += &format!("; resumed between {} and {}", times.text(from), times.text(until));
        }
        if *backwards > 0 {
            text += &format!("; time went backwards {}", counted(*backwards, "time", "times"));
        }
        if self.found.summary.lost() > 0 {
            text += &format!("; {} lost", counted(self.found.summary.lost(), "message", "messages"));
        }
        if self.found.skipped > 0 {
            text += &format!("; {} skipped", counted(self.found.skipped, "line", "lines"));
        }
        if self.found.empty > 0 {
            text += &format!("; {} ignored", counted(self.found.empty, "empty message", "empty messages"));
        }
        if self.found.damaged > 0 {
            text += &format!("; {} skipped", counted(self.found.damaged, "damaged part", "damaged parts"));
        }
        if !self.found.cut.is_empty() {
            text += &format!("; cut: {}", self.found.cut.join(", "));
        }
        if !self.found.unread.is_empty() {
            text += &format!("; NOT read to the end: {}", self.found.unread.join(", "));
        }
        text
    }

    /// The line of a property: its verdict and the reason.
    fn property_text(
        &self,
        i: usize,
        property: &PropertyInfo,
        statistics: &PropertyStatistics,
        colour: bool,
    ) -> String {
        let (verdict, mut detail) = standing(statistics);
        if statistics.is_asserted {
            detail += if detail.is_empty() { "its asserts decide" } else { "; its asserts decide" };
        }
        if statistics.is_assert()
            && let Some(row) =
                self.found.rows.iter().find(|row| row.judgements.get(i) == Some(&(verdict, detail.clone())))
        {
            // The value shown was measured in the worst recording.
            detail += &format!(", in {}", row.name);
        }
        let (on, off) = if colour { (colour_of(verdict), "\x1b[0m") } else { ("", "") };
        // The name of an assert may be long.
        let gap = if property.name.chars().count() > 32 { " " } else { "" };
        let name = &property.name;
        format!("  {on}{:<12}{off}  {name:<32}{gap} {detail}", verdict.as_str())
    }

    /// Lines of text.
    pub(super) fn text(&self, elapsed: Duration) -> String {
        let Summary { properties, chains, alignment, .. } = &self.found.summary;
        let mut text = self.counts_text(elapsed);
        text.push('\n');
        if self.found.rows.len() > 1 {
            for row in &self.found.rows {
                let events = counted(row.events, "event", "events");
                let violated = match row.violated {
                    0 => String::new(),
                    violated => format!(", {violated} violated"),
                };
                text += &format!("  {:<12}  {}: {events}{violated}\n", row.word(), row.name);
            }
            text.push('\n');
        }
        let colour = self.colour && self.options.format == Format::Text;
        let reasons = self.reasons();
        for (i, (property, statistics)) in self.plan.properties().iter().zip(properties).enumerate() {
            text += self.property_text(i, property, statistics, colour).trim_end();
            text.push('\n');
            for line in reasons.lines(i) {
                text += &line;
                text.push('\n');
            }
        }
        for sentence in not_evaluated(&self.found.summary) {
            text += &format!("  {sentence}\n");
        }
        if let Some(sentence) = reasons.unused() {
            text += &format!("  {sentence}\n");
        }
        for chain in chains {
            text += &chain.text();
            text.push('\n');
        }
        for sentence in alignment.iter().flat_map(AlignmentStatistics::sentences) {
            text += &format!("  {sentence}\n");
        }
        text
    }
}

/// Result of a recording, as JSON.
fn row_json(row: &Row) -> serde_json::Value {
    serde_json::json!({
        "recording": row.name, "result": row.word(), "events": row.events, "violated": row.violated,
    })
}
