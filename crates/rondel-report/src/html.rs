//! One self-contained page: the properties, their verdicts over time, and the evidence of each violation with a small
//! plot of the signals before it. It loads nothing and runs no script.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use rondel_runtime::text::counted;

use crate::plot;
use crate::results::{Claim, Judged, Outcome, Recording, Results, Violation, seconds};

const STYLE: &str = "
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; color: #222; background: #fff }
h1 { font-size: 1.4rem } h2 { font-size: 1.15rem; margin-top: 2.2rem } h3 { font-size: 1rem; margin: 1.6rem 0 .3rem }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #e4e4e4; vertical-align: top }
code, pre { font: 13px/1.4 ui-monospace, monospace } pre { background: #f6f6f4; padding: .6rem; overflow-x: auto }
.satisfied { color: #00704f } .violated { color: #a84a00; font-weight: 600 } .inconclusive, .vacuous { color: #6b6100; font-weight: 600 }
.satisfied::before { content: \"✓ \" } .violated::before { content: \"✗ \" } .inconclusive::before, .vacuous::before { content: \"? \" }
.note { color: #666; font-size: .9em } svg { display: block; max-width: 100%; height: auto } details { margin: .4rem 0 }
.evidence { width: auto; font-size: .9em }
";

/// The page.
pub fn write(results: &Results) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Rondel: " (results.specification) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Verdicts on " code { (results.specification) } }
                p.note {
                    (counted(results.properties.len() as u64, "property", "properties")) ", "
                    (counted(results.recordings.len() as u64, "recording", "recordings"))
                    ", checked by Rondel " (results.version)
                }
                (PreEscaped(plot::key(results)))
                @if results.recordings.len() > 1 { (overview(results)) }
                @for (i, recording) in results.recordings.iter().enumerate() { (section(results, i, recording)) }
            }
        }
    };
    page.into_string()
}

/// A table of recordings and their worst results.
fn overview(results: &Results) -> Markup {
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
                        @if let Some(problem) = &recording.problem { div.violated { (problem) } }
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
        @if let Some(problem) = &recording.problem { p.violated { "Not read to its end: " (problem) } }
        @for remark in &recording.remarks { p.note { (remark) } }
        @if !recording.properties.is_empty() {
            table {
                tr { th { "property" } th { "verdict" } th { "over time" } }
                @for (claim, judged) in results.judged(recording) { (row(recording, claim, judged)) }
            }
        }
        @if let Some((begin, end)) = recording.begin.zip(recording.end).filter(|_| !recording.signals.is_empty()) {
            h3 { "Fields" }
            (PreEscaped(plot::courses(recording, begin, end)))
        }
        @for (claim, judged) in results.judged(recording).filter(|(_, judged)| !judged.violations.is_empty()) {
            h3 { (claim.name) }
            @if !claim.text.is_empty() { pre { (claim.text) } }
            @for (i, violation) in judged.violations.iter().enumerate() { (evidence(recording, claim, violation, i == 0)) }
            @let more = judged.count.saturating_sub(judged.violations.len() as u64);
            @if more > 0 { p.note { "and " (more) " more" } }
        }
    }
}

fn row(recording: &Recording, claim: &Claim, judged: &Judged) -> Markup {
    html! {
        tr {
            td {
                code { (claim.name) }
                @for requirement in &claim.requirements { div.note { (requirement) } }
                @if let Some(severity) = &claim.severity { div.note { "severity " (severity) } }
            }
            td {
                span class=(judged.outcome.as_str()) { (judged.outcome.as_str()) }
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
            td {
                @if let Some((begin, end)) = recording.begin.zip(recording.end) {
                    (PreEscaped(plot::timeline(judged, begin, end)))
                }
            }
        }
    }
}

fn evidence(recording: &Recording, claim: &Claim, violation: &Violation, open: bool) -> Markup {
    html! {
        details open[open] {
            summary { (violation.sentence(&claim.name, recording)) }
            @if !violation.signals.is_empty() {
                (PreEscaped(plot::signals(recording, &violation.signals, violation.time_ns)))
            }
            @if !violation.evidence.is_empty() { (evidence_table(recording, violation)) }
        }
    }
}

/// The time points that caused a violation: a column for each, a row for each value.
fn evidence_table(recording: &Recording, violation: &Violation) -> Markup {
    let names = violation.evidence.first().map(|point| point.values.iter().map(|(name, _)| name));
    html! {
        table.evidence {
            tr {
                th { "time" }
                @for point in &violation.evidence {
                    th { @if point.after { "after " } (recording.time(point.time_ns)) }
                }
            }
            tr {
                td { "message" }
                @for point in &violation.evidence { td { (point.topic.as_deref().unwrap_or("")) } }
            }
            @for (i, name) in names.into_iter().flatten().enumerate() {
                tr {
                    td { code { (name) } }
                    @for point in &violation.evidence {
                        td { (point.values.get(i).and_then(|(_, value)| value.as_deref()).unwrap_or("?")) }
                    }
                }
            }
        }
    }
}
