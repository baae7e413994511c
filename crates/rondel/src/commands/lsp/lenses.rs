//! Code lenses above tests: whether they pass.

use rondel_runtime::{Options, SessionPlan, Specification, testing};
use rondel_spec::{ParseOptions, Span};
use serde_json::{Value, json};

use super::super::test::expected;
use super::view::View;

/// Maximum number of tests that are run for one answer.
const TESTS: usize = 200;

impl View<'_> {
    /// A line above each test of the document with its result; none while the specification has errors.
    pub(super) fn lenses(&self) -> Value {
        let outcome = rondel_spec::parse_sources(self.sources, &ParseOptions::default(), Some(self.schemas));
        let Some(specification) = outcome.spec.and_then(|spec| Specification::new(spec).ok()) else {
            return json!([]);
        };
        let plan = SessionPlan::of(specification.clone(), Options::default());
        let spec = &specification.spec;
        let own = spec.tests.iter().filter_map(|test| Some((test, test.offset.checked_sub(self.start)?)));
        own.enumerate()
            .map(|(number, (test, offset))| {
                let ran = (number < TESTS).then(|| testing::run(&plan, test));
                let title = match ran {
                    None => "not run: run `rondel test`".to_owned(),
                    Some(Err(error)) => format!("cannot run: {error}"),
                    Some(Ok(ran)) if ran.is_ok() => "passed".to_owned(),
                    Some(Ok(ran)) => match ran.unmet.first() {
                        Some(first) => {
                            let more = ran.unmet.len() - 1;
                            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
                            format!("failed: expected {}{more}", expected(spec, &test.expectations[*first]))
                        }
                        None => match ran.undecodable.first() {
                            Some(message) => format!("failed: cannot decode the message {message}"),
                            None => "failed: run `rondel test`".to_owned(),
                        },
                    },
                };
                json!({
                    "range": self.lines.range(Span::new(offset, offset)),
                    "command": { "title": title, "command": "" },
                })
            })
            .collect()
    }
}
