//! The percentage of `percentile(x, 95)`.

use rondel_event::Value;

use super::Checker;
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::spec::{Aggregate, TimeModel};
use crate::syntax::ast::NodeId;

impl Checker<'_> {
    /// Translates a percentage, which has to be a constant.
    pub(super) fn lower_percentage(&mut self, percentage: NodeId, model: TimeModel) -> Option<Aggregate> {
        let id = self.lowered_to(percentage, model)?;
        // The argument of a definition is what is wrong.
        let span = self.span(self.ast.given(percentage));
        let number = match self.graph.constant(id) {
            Some(Value::Int(whole)) => *whole as f64,
            Some(Value::Float(number)) => *number,
            _ => {
                let message = format!("a percentage is a constant, found `{}`", span.of(self.text));
                let diagnostic = Diagnostic::new(Code::NotConstant, span, message);
                let help = "write a number, `percentile(x, 95) over 10 s`, or the name of a `const`";
                self.diagnostics.push(diagnostic.help(help));
                return None;
            }
        };
        let written = span.of(self.text);
        let found = if written.parse() == Ok(number) {
            String::new()
        } else {
            format!(", and '{written}' is {number}")
        };
        let part = number * 10_000.0;
        let (message, help) = if !(0.0..=1e6).contains(&part) {
            (
                format!("a percentage is a number from 0 to 100{found}"),
                "write the percentage as a number after the value: `percentile(x, 95) over 10 s`",
            )
        } else if (part - part.round()).abs() >= 1e-6 {
            // Beyond the fourth digit a float may be off.
            (
                format!("a percentage has at most four digits after the point{found}"),
                "write fewer digits: `percentile(x, 99.9) over 10 s`",
            )
        } else {
            if 0.0 < part && part < 10_000.0 {
                self.diagnostics.push(quantile(number, part, span));
            }
            return Some(Aggregate::Percentile(part.round() as u32));
        };
        self.diagnostics.push(Diagnostic::new(Code::WrongArguments, span, message).help(help));
        None
    }
}

/// Returns the warning about a percentage that is a share elsewhere: 0.95 for 95 percent.
fn quantile(number: f64, part: f64, span: Span) -> Diagnostic {
    let percent = part / 100.0;
    // The ending is right for the usual percentiles only.
    let meant = match part.rem_euclid(100.0) == 0.0 && ![1.0, 2.0, 3.0].contains(&(percent % 10.0)) {
        true => format!("write `{percent}` for the {percent}th percentile"),
        false => format!("write `{percent}` for {percent} percent"),
    };
    let message = format!("{number} is less than one percent");
    Diagnostic::new(Code::SuspiciousNumber, span, message).help(meant)
}
