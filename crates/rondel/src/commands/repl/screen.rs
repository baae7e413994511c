//! Results as lines of text.

use rondel_event::Timestamp;
use rondel_report::{Change, Judged, Outcome, Recording};

use crate::commands::reports::ROBUSTNESS;
use crate::commands::selecting::span;
use crate::output::blocks::{self, Axis, Range};
use crate::output::time_text::TimeText;

/// The fewest and the most columns of a line.
const WIDTHS: std::ops::RangeInclusive<usize> = 10..=1_000;

/// Settings for showing results.
#[derive(Clone, Debug)]
pub struct Screen {
    /// The number of columns.
    pub width: usize,
    /// Whether lines are coloured.
    pub colour: bool,
    /// The stretch to show, as it was typed.
    pub from: Option<String>,
    /// Its end.
    pub to: Option<String>,
}

impl Screen {
    /// Checks the stretch of time to show.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn check(&self) -> Result<(), String> {
        self.stretch(Timestamp::default()).map(drop)
    }

    fn stretch(&self, first: Timestamp) -> Result<(Timestamp, Timestamp), String> {
        span([(":from", self.from.as_deref()), (":to", self.to.as_deref())], first)
    }

    /// The axis of a recording.
    ///
    /// # Errors
    /// The reason why there is none.
    fn axis(&self, recording: &Recording) -> Result<Axis, String> {
        let (Some(begin), Some(end)) = (recording.begin, recording.end) else {
            return Err("the recording has no message".to_owned());
        };
        let (from, to) = self.stretch(Timestamp::from_nanos(begin))?;
        let (from, to) = (begin.max(from.as_nanos()), end.min(to.as_nanos()));
        let width = self.width.clamp(*WIDTHS.start(), *WIDTHS.end());
        match from <= to {
            true => Ok(Axis { begin: from, end: to, width }),
            false => Err("nothing of the recording is between :from and :to; :all shows it all".to_owned()),
        }
    }

    /// The verdict on a recording over time.
    pub fn verdicts(&self, recording: &Recording, judged: &Judged) -> String {
        let mut text = String::new();
        match self.axis(recording) {
            Ok(axis) => {
                text += &blocks::bar(&blocks::verdicts(&shown(judged), axis), self.colour);
                text += &format!("\n{}\n", times(axis));
            }
            Err(reason) => text += &format!("{reason}\n"),
        }
        text + &self.verdict(judged) + &vacuous(judged)
    }

    /// The verdict in words.
    fn verdict(&self, judged: &Judged) -> String {
        if judged.outcome == Outcome::Vacuous {
            // Its reasons begin with the word.
            return String::new();
        }
        let (word, remark) = (judged.outcome.as_str(), judged.remark.as_str());
        let rest = match (judged.outcome, remark) {
            (_, "") => String::new(),
            // The remark begins with the same word.
            (_, remark) if remark.starts_with(word) => remark[word.len()..].to_owned(),
            (Outcome::Satisfied, remark) => format!(", {remark}"),
            (_, remark) => format!(": {remark}"),
        };
        let (_, code) = blocks::block(judged.outcome);
        // The stretch limits the display; counts cover the whole recording.
        let of = if self.from.is_some() || self.to.is_some() { "whole recording: " } else { "" };
        match self.colour {
            true => format!("{of}\x1b[{code}m{word}\x1b[0m{rest}\n"),
            false => format!("{of}{word}{rest}\n"),
        }
    }

    /// A number over time.
    pub fn number(&self, recording: &Recording, judged: &Judged, unit: &str) -> String {
        let axis = match self.axis(recording) {
            Ok(axis) => axis,
            Err(reason) => return format!("{reason}\n"),
        };
        let signal = recording.signals.iter().find(|signal| signal.name == ROBUSTNESS);
        let course: Vec<(i64, Option<f64>)> = signal
            .map(|signal| signal.values.iter().map(|(time, value)| (*time, value.as_f64())).collect())
            .unwrap_or_default();
        match blocks::values(&course, axis) {
            None => format!("no value in this stretch\n{}", vacuous(judged)),
            Some((line, Range { least, greatest, last })) => format!(
                "{line}\n{}\nmin {}{unit}, max {}{unit}, last {}{unit}\n",
                times(axis),
                decimal(least),
                decimal(greatest),
                decimal(last)
            ),
        }
    }
}

/// The first and the last time below a line.
fn times(axis: Axis) -> String {
    let mut times = TimeText::default();
    let mut text = |time: i64| times.text(Timestamp::from_nanos(time));
    blocks::axis(&text(axis.begin), &text(axis.end), axis.width)
}

/// Verdicts to show: a vacuous property must not look satisfied.
fn shown(judged: &Judged) -> Vec<Change> {
    let is_vacuous = judged.outcome == Outcome::Vacuous;
    let shown = |change: &Change| match change.verdict {
        Outcome::Satisfied if is_vacuous => Change { verdict: Outcome::Vacuous, ..*change },
        _ => *change,
    };
    judged.changes.iter().map(shown).collect()
}

/// A line for each reason for which a property is vacuous.
fn vacuous(judged: &Judged) -> String {
    judged.vacuous.iter().map(|reason| format!("vacuous: {reason}\n")).collect()
}

/// Formats a number for display.
fn decimal(number: f64) -> String {
    let magnitude = number.abs();
    if number != 0.0 && !(1e-4..1e15).contains(&magnitude) {
        return format!("{number:.3e}");
    }
    let text = format!("{number:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (13.9, "13.9"),
            (0.1 + 0.2, "0.3"),
            (1_200.0, "1200"),
            (1e300, "1.000e300"),
            (-2.5e-9, "-2.500e-9"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(decimal(number), expected, "{number}");
        }
    }
}
