//! SARIF 2.1.0 (OASIS), which code hosts show beside the lines of the specification: a rule for each property, a result
//! for each violation, and for each property that is inconclusive or vacuous.

use std::collections::BTreeSet;

use rondel_runtime::Severity;
use rondel_runtime::text::grouped;
use serde_json::{Value, json};

use crate::results::{Claim, Judged, Outcome, Recording, Results, Violation};

/// The file. If `strict`, a premise that was never true fails.
pub fn write(results: &Results, strict: bool) -> String {
    let rules: Vec<Value> = results.properties.iter().map(rule).collect();
    let mut found = Vec::new();
    let mut notifications = Vec::new();
    let mut is_whole = true;
    for recording in &results.recordings {
        for (i, (claim, judged)) in results.judged(recording).enumerate() {
            found.extend(findings(results, recording, i, claim, judged, strict));
        }
        let place = || json!([{"physicalLocation": {"artifactLocation": {"uri": uri(&recording.name)}}}]);
        notifications.extend(
            recording
                .remarks
                .iter()
                .map(|remark| json!({"level": "warning", "message": {"text": remark}, "locations": place()})),
        );
        if let Some(problem) = &recording.problem {
            is_whole = false;
            notifications.push(json!({
                "level": "error",
                "message": {"text": problem},
                "locations": place(),
            }));
        }
    }
    let imported: BTreeSet<&String> =
        results.properties.iter().filter_map(|claim| claim.file.as_ref()).collect();
    let artifacts: Vec<Value> = std::iter::once(&results.specification)
        .chain(imported)
        .chain(results.recordings.iter().map(|recording| &recording.name))
        .map(|name| json!({"location": {"uri": uri(name)}}))
        .collect();
    let sarif = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "rondel", "version": results.version, "rules": rules}},
            "artifacts": artifacts,
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": is_whole,
                "toolExecutionNotifications": notifications,
            }],
            "results": found,
        }],
    });
    // A structure of texts and numbers always has a JSON form.
    serde_json::to_string_pretty(&sarif).unwrap_or_default() + "\n"
}

/// The results about a property in a recording: its violations, and what it leaves open.
fn findings(
    results: &Results,
    recording: &Recording,
    i: usize,
    claim: &Claim,
    judged: &Judged,
    strict: bool,
) -> Vec<Value> {
    // An assert decides instead.
    let own = if judged.is_asserted { "note" } else { level(claim) };
    let result = |sentence: String, level: &str| {
        json!({
            "ruleId": claim.name,
            "ruleIndex": i,
            "kind": if level == "none" { "open" } else { "fail" },
            "level": level,
            "message": {"text": format!("{sentence} in {}", recording.name)},
            "locations": [location(results, claim)],
            "properties": facts(claim, recording, judged),
        })
    };
    let explained = judged.violations.iter().map(|violation| {
        let mut result = result(violation.sentence(&claim.name, recording), own);
        result["partialFingerprints"] = json!({"violation/v1": fingerprint(claim, recording, violation)});
        let evidence = violation.evidence_lines(recording);
        if !evidence.is_empty() {
            result["message"]["text"] = format!(
                "{}\n{}",
                result["message"]["text"].as_str().unwrap_or_default(),
                evidence.join("\n")
            )
            .into();
        }
        result
    });
    let mut found: Vec<Value> = explained.collect();
    let more = judged.count.saturating_sub(judged.violations.len() as u64);
    if more > 0 {
        found.push(result(format!("{} violated {} more times", claim.name, grouped(more)), own));
    }
    if matches!(judged.outcome, Outcome::Inconclusive | Outcome::Vacuous) {
        let level = if judged.fails(strict) { own } else { "none" };
        found.push(result(judged.sentence(&claim.name), level));
    }
    found
}

fn rule(claim: &Claim) -> Value {
    json!({
        "id": claim.name,
        "shortDescription": {"text": if claim.text.is_empty() { &claim.name } else { &claim.text }},
        "defaultConfiguration": {"level": level(claim)},
        "properties": {"tags": claim.requirements},
    })
}

/// The level that belongs to a severity: an error, unless it is named a warning or a note.
fn level(claim: &Claim) -> &'static str {
    match Severity::of(claim.severity.as_deref()) {
        Severity::Info => "note",
        Severity::Warning => "warning",
        Severity::Error | Severity::Critical => "error",
    }
}

fn location(results: &Results, claim: &Claim) -> Value {
    let mut place = json!({"artifactLocation": {"uri": uri(results.file_of(claim))}});
    if let Some(at) = claim.place {
        place["region"] = json!({"startLine": at.line, "startColumn": at.column, "endColumn": at.end_column});
    }
    json!({"physicalLocation": place})
}

fn facts(claim: &Claim, recording: &Recording, judged: &Judged) -> Value {
    json!({
        "recording": recording.name,
        "outcome": judged.outcome,
        "violations": judged.count,
        "requirements": claim.requirements,
        "severity": claim.severity,
    })
}

/// Fingerprint by which a violation is recognised in the next run.
fn fingerprint(claim: &Claim, recording: &Recording, violation: &Violation) -> String {
    format!("{}:{}{}:{}", recording.name, claim.name, violation.parameters, violation.time_ns)
}

/// A path as a reference in a URI: with everything but common characters as percent and two digits.
fn uri(path: &str) -> String {
    let mut uri = if path.starts_with('/') { "file://".to_owned() } else { String::new() };
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(byte as char)
            }
            b'\\' => uri.push('/'),
            other => uri += &format!("%{other:02X}"),
        }
    }
    uri
}
