//! The Test Anything Protocol, version 14: a line for each property of each recording.

use rondel_event::terminal;
use serde_json::json;

use crate::results::Results;

/// The file. If `strict`, a premise that was never true is not ok.
pub fn write(results: &Results, strict: bool) -> String {
    let mut lines = Vec::new();
    let mut number = 0;
    let mut line = |ok: bool, name: &str, recording: &str| {
        number += 1;
        format!("{} {number} - {} ({})", if ok { "ok" } else { "not ok" }, escaped(name), escaped(recording))
    };
    for recording in &results.recordings {
        for (claim, judged) in results.judged(recording) {
            let ok = !judged.fails(strict);
            lines.push(line(ok, &claim.name, &recording.name));
            if !ok {
                let mut details = json!({"message": judged.sentence(&claim.name), "outcome": judged.outcome});
                let first: Vec<String> = judged
                    .violations
                    .iter()
                    .map(|violation| violation.sentence(&claim.name, recording))
                    .collect();
                if !first.is_empty() {
                    details["violations"] = first.into();
                }
                if !claim.requirements.is_empty() {
                    details["requirements"] = claim.requirements.clone().into();
                }
                // JSON is YAML.
                lines.push(format!("  ---\n  {details}\n  ..."));
            }
        }
        lines.extend(
            recording.remarks.iter().map(|remark| format!("# {}", remark.replace(['\n', '\r'], " "))),
        );
        if let Some(problem) = &recording.problem {
            lines.push(line(false, "the recording was read to its end", &recording.name));
            lines.push(format!("  ---\n  {}\n  ...", json!({"message": problem})));
        }
    }
    let tests = number;
    let head = ["TAP version 14".to_owned(), format!("1..{tests}")];
    head.into_iter().chain(lines).map(|line| line + "\n").collect()
}

/// A description in one line, in which `#` begins no directive.
fn escaped(text: &str) -> String {
    terminal::escaped(&text.replace(['\n', '\r'], " ")).replace('\\', "\\\\").replace('#', "\\#")
}
