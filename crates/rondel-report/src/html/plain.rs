//! The verdicts as plain tables, for readers without scripts.

use maud::{Markup, html};
use rondel_runtime::text::counted;

use crate::results::{Claim, Judged, Outcome, Recording, Results, seconds};

/// The tables: of several recordings, and of the properties in each.
pub(super) fn tables(results: &Results) -> Markup {
    html! {
        div.plain {
            h1 { "Verdicts on " code { (results.specification) } }
            p.note {
                (counted(results.properties.len() as u64, "property", "properties")) ", "
                (counted(results.recordings.len() as u64, "recording", "recordings"))
                ", checked by Rondel " (results.version)
                ". With JavaScript, this file shows timelines, signals and explanations too."
            }
            @if results.recordings.len() > 1 { (recordings(results)) }
            @for (i, recording) in results.recordings.iter().enumerate() { (section(results, i, recording)) }
        }
    }
}

/// A table of recordings and the number of their properties by outcome.
fn recordings(results: &Results) -> Markup {
    html! {
        table {
            tr { th { "recording" } th { "messages" } th { "satisfied" } th { "violated" } th { "not decided" } }
            @for (i, recording) in results.recordings.iter().enumerate() {
                @let number = |outcomes: &[Outcome]| {
                    // As in the summary, an assert decides instead of the property that it judges.
                    let deciding = recording.properties.iter().filter(|judged| !judged.is_asserted);
                    deciding.filter(|judged| outcomes.contains(&judged.outcome)).count()
                };
                tr {
                    td {
                        a href=(format!("#r{i}")) { (recording.name) }
                        @if let Some(problem) = &recording.problem { div.bad { (problem) } }
                    }
                    td { (recording.events) }
                    td { (number(&[Outcome::Satisfied])) }
                    td { (number(&[Outcome::Violated])) }
                    td { (number(&[Outcome::Inconclusive, Outcome::Vacuous])) }
                }
            }
        }
    }
}

fn section(results: &Results, i: usize, recording: &Recording) -> Markup {
    html! {
        h2 id=(format!("r{i}")) { (recording.name) }
        p.note {
            (counted(recording.events, "message", "messages"))
            @if let Some((begin, end)) = recording.begin.zip(recording.end) {
                ", from " (recording.time(begin)) " to " (recording.time(end))
            }
        }
        @if let Some(problem) = &recording.problem { p.bad { "Not read to its end: " (problem) } }
        @for remark in &recording.remarks { p.note { (remark) } }
        @if !recording.properties.is_empty() {
            table {
                tr { th { "property" } th { "verdict" } }
                @for (claim, judged) in results.judged(recording) { (row(recording, claim, judged)) }
            }
        }
    }
}

fn row(recording: &Recording, claim: &Claim, judged: &Judged) -> Markup {
    let sign = match judged.outcome {
        Outcome::Vacuous => "is-none",
        Outcome::Satisfied => "is-satisfied",
        Outcome::Inconclusive => "is-inconclusive",
        Outcome::Violated => "is-violated",
    };
    html! {
        tr {
            td {
                code { (claim.name) }
                @for requirement in &claim.requirements { div.note { (requirement) } }
                @if let Some(severity) = &claim.severity { div.note { "severity " (severity) } }
            }
            td {
                b class=(sign) { (judged.outcome.as_str()) }
                @if !judged.remark.is_empty() { div.note { (judged.remark) } }
                @for reason in &judged.vacuous { div.note { (reason) } }
                @if judged.is_asserted { div.note { "an assert decides" } }
                @if let (1.., Some((all, longest))) = (judged.count, judged.violated_ns.zip(judged.longest_ns)) {
                    div.note {
                        "violated for " @if judged.is_at_least { "at least " } (seconds(all)) " in all, for "
                        (seconds(longest)) " at most"
                        @if let Some(from) = judged.longest_from_ns { ", from " (recording.time(from)) }
                    }
                }
            }
        }
    }
}
