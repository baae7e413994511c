//! Annotations of GitHub Actions: workflow commands on standard output, which mark the line of the specification.

use crate::results::{Outcome, Results};

/// The number of annotations of one kind that GitHub shows for a step.
const SHOWN: usize = 10;

/// The lines. If `strict`, a premise that was never true is an error and not a notice.
pub fn write(results: &Results, strict: bool) -> String {
    let mut text = String::new();
    let mut errors = 0;
    for recording in &results.recordings {
        for (claim, judged) in results.judged(recording) {
            if judged.outcome == Outcome::Satisfied {
                continue;
            }
            let fails = judged.fails(strict);
            errors += usize::from(fails);
            let mut parameters = vec![("file", results.file_of(claim).to_owned())];
            if let Some(place) = claim.place {
                parameters.push(("line", place.line.to_string()));
                parameters.push(("col", place.column.to_string()));
                parameters.push(("endColumn", place.end_column.to_string()));
            }
            parameters.push(("title", format!("{} {}", claim.name, judged.outcome.as_str())));
            let mut message = format!("{} in {}", judged.sentence(&claim.name), recording.name);
            for violation in judged.violations.iter().take(1) {
                message += &format!("\n{}", violation.sentence(&claim.name, recording));
                violation.evidence_lines(recording).iter().for_each(|line| message += &format!("\n{line}"));
            }
            text += &command(if fails { "error" } else { "notice" }, &parameters, &message);
        }
        for remark in &recording.remarks {
            text += &command("warning", &[], &format!("{}: {remark}", recording.name));
        }
        if let Some(problem) = &recording.problem {
            errors += 1;
            let file = vec![("file", recording.name.clone()), ("title", "recording not read".to_owned())];
            text += &command("error", &file, problem);
        }
    }
    if errors > SHOWN {
        let message = format!("GitHub shows the first {SHOWN} of {errors} errors; all are in the log");
        text += &command("notice", &[], &message);
    }
    text
}

fn command(kind: &str, parameters: &[(&str, String)], message: &str) -> String {
    let parameter = |(name, value): &(&str, String)| {
        format!("{name}={}", escaped(value).replace(':', "%3A").replace(',', "%2C"))
    };
    let parameters: Vec<String> = parameters.iter().map(parameter).collect();
    let space = if parameters.is_empty() { "" } else { " " };
    format!("::{kind}{space}{}::{}\n", parameters.join(","), escaped(message))
}

/// Escapes a text so that no character ends the command.
fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}
