//! JUnit XML, which most CI systems and `colcon test-result` read: a suite for each recording, a case for each
//! property. A violation is a failure; an inconclusive or vacuous property, and a recording that could not be read, is
//! an error.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::results::{Claim, Judged, Outcome, Recording, Results};

/// The file. If `strict`, a premise that was never true counts as an error.
pub fn write(results: &Results, strict: bool) -> String {
    let mut report = Report::new(results.specification.clone());
    let suites = results.recordings.iter().map(|recording| suite(results, recording, strict));
    report.add_test_suites(suites);
    // Writing does not fail: characters that XML does not allow are left out.
    report.to_string().unwrap_or_default()
}

fn suite(results: &Results, recording: &Recording, strict: bool) -> TestSuite {
    let mut suite = TestSuite::new(recording.name.clone());
    suite.set_time(Duration::try_from_secs_f64(recording.seconds).unwrap_or_default());
    suite.add_property(("events", recording.events.to_string().as_str()));
    for (claim, judged) in results.judged(recording) {
        suite.add_test_case(case(results, recording, claim, judged, strict));
    }
    if let Some(problem) = &recording.problem {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_type("unread").set_message(problem.clone());
        suite.add_test_case(TestCase::new("the recording was read to its end", status));
    }
    if !recording.remarks.is_empty() {
        suite.set_system_out(recording.remarks.join("\n"));
    }
    suite
}

fn case(results: &Results, recording: &Recording, claim: &Claim, judged: &Judged, strict: bool) -> TestCase {
    let kind = match judged.outcome {
        _ if judged.is_asserted => None,
        Outcome::Violated => Some(NonSuccessKind::Failure),
        _ => judged.fails(strict).then_some(NonSuccessKind::Error),
    };
    let mut status = kind.map_or_else(TestCaseStatus::success, TestCaseStatus::non_success);
    if kind.is_some() {
        status.set_type(judged.outcome.as_str()).set_message(judged.sentence(&claim.name));
        status.set_description(details(recording, claim, judged));
    }
    let mut case = TestCase::new(claim.name.clone(), status);
    case.set_classname(results.stem());
    for requirement in &claim.requirements {
        case.add_property(("requirement", requirement.as_str()));
    }
    if let Some(severity) = &claim.severity {
        case.add_property(("severity", severity.as_str()));
    }
    if let Some(least) = judged.least_robustness {
        case.add_property(("least_robustness", least.to_string().as_str()));
    }
    if let Some(place) = claim.place {
        case.extra.insert("file".into(), results.file_of(claim).to_owned().into());
        case.extra.insert("line".into(), place.line.to_string().into());
    }
    case
}

/// The violations with their evidence, as lines.
fn details(recording: &Recording, claim: &Claim, judged: &Judged) -> String {
    let mut lines = Vec::new();
    for violation in &judged.violations {
        lines.push(violation.sentence(&claim.name, recording));
        lines.extend(violation.evidence_lines(recording).into_iter().map(|line| format!("    {line}")));
    }
    let more = judged.count.saturating_sub(judged.violations.len() as u64);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}
