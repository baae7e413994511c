//! Axes: positions of times and numbers, their ticks, and space for names.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use rondel_event::Timestamp;

use super::{Area, GRID, TEXT, text};
use crate::results::Recording;
use crate::time_text;

/// A second in nanoseconds.
const SECOND: i128 = 1_000_000_000;
/// The distance between two ticks of time, at least.
const APART: i32 = 80;

/// A span of time between two columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) begin: i64,
    pub(super) end: i64,
    pub(super) left: i32,
    pub(super) right: i32,
}

impl Times {
    /// The column of a time.
    pub(super) fn x(&self, time: i64) -> i32 {
        let wide = |time: i64| i128::from(time) - i128::from(self.begin);
        let share = wide(time) as f64 / (wide(self.end).max(1)) as f64;
        self.left + (share.clamp(0.0, 1.0) * f64::from(self.right - self.left)).round() as i32
    }

    /// Draws the axis below the data: ticks with times, of the calendar as offsets from the beginning of the recording,
    /// and what these are counted from.
    pub(super) fn axis(&self, area: &Area<'_>, recording: &Recording, top: i32) {
        let begin = recording.begin.unwrap_or(self.begin);
        let is_calendar = time_text::is_calendar(Timestamp::from_nanos(begin));
        let origin = if is_calendar { i128::from(begin) } else { 0 };
        let line = [(self.left, top), (self.right, top)];
        let _ = area.draw(&PathElement::new(line, TEXT.stroke_width(1)));
        let step = step_of_time(i128::from(self.end) - i128::from(self.begin), self.right - self.left);
        let first = (i128::from(self.begin) - origin).div_euclid(step);
        for number in first..first + 200 {
            let offset = number * step;
            let Ok(time) = i64::try_from(offset + origin) else { continue };
            if time < self.begin {
                continue;
            }
            if time > self.end {
                break;
            }
            let x = self.x(time);
            let _ = area.draw(&PathElement::new([(x, top), (x, top + 4)], TEXT.stroke_width(1)));
            let seconds = Timestamp::from_nanos(i64::try_from(offset).unwrap_or(i64::MAX));
            let label =
                if is_calendar && offset >= 0 { format!("+{seconds} s") } else { format!("{seconds} s") };
            let _ = area.draw(&Text::new(label, (x, top + 11), text(10, HPos::Center)));
        }
        if is_calendar {
            let label = format!("from {}", time_text::TimeText::default().text(Timestamp::from_nanos(begin)));
            let _ = area.draw(&Text::new(label, (self.left, top + 23), text(10, HPos::Left)));
        }
    }
}

/// A distance of ticks: one, two or five of a power of ten nanoseconds, or whole minutes, hours or days.
fn step_of_time(span: i128, width: i32) -> i128 {
    let ticks = i128::from((width / APART).max(1));
    let least = (span.max(1) + ticks - 1) / ticks;
    let longer = [60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400].map(|s| s * SECOND);
    if least > 50 * SECOND {
        if let Some(step) = longer.into_iter().find(|step| *step >= least) {
            return step;
        }
        return (least + 86_400 * SECOND - 1) / (86_400 * SECOND) * (86_400 * SECOND);
    }
    let mut power = 1;
    loop {
        if let Some(step) = [1, 2, 5].map(|n| n * power).into_iter().find(|step| *step >= least) {
            return step;
        }
        power *= 10;
    }
}

/// Up to four numbers between two others, at one, two or five of a power of ten.
pub(super) fn ticks(least: f64, most: f64) -> Vec<f64> {
    let span = most - least;
    if !span.is_finite() || span <= 0.0 {
        return vec![least];
    }
    let power = 10_f64.powf((span / 4.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * power).find(|step| span / step <= 4.0);
    let step = step.unwrap_or(span);
    let first = (least / step).ceil();
    let all = (0..8).map(|i| (first + f64::from(i)) * step);
    // Adding zero makes a negative zero a positive one.
    all.take_while(|tick| *tick <= most + step * 1e-9).map(|tick| tick + 0.0).collect()
}

/// A number in few digits.
pub(super) fn short(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e7).contains(&size) {
        return format!("{number:.3e}");
    }
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A horizontal line between two columns.
pub(super) fn level(area: &Area<'_>, left: i32, right: i32, y: i32) {
    let _ = area.draw(&PathElement::new([(left, y), (right, y)], GRID.stroke_width(1)));
}

/// The columns that a text takes, roughly: letters of most fonts are narrower.
pub(super) fn width_of(text: &str, size: i32) -> i32 {
    let count = i32::try_from(text.chars().count()).unwrap_or(i32::MAX / 1000);
    count.saturating_mul(size).saturating_mul(56) / 100
}

/// Wraps a text into at most `most` lines of this width at word ends; of a longer text, the end is kept.
pub(super) fn wrapped(text: &str, width: i32, size: i32, most: usize) -> Vec<String> {
    let columns = (width * 100 / (size * 56)).max(8) as usize;
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_inclusive([' ', '.', '_', '/']) {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let last = lines.last().map_or(0, |line| line.chars().count());
            if last + word.len() <= columns {
                lines.iter_mut().last().into_iter().for_each(|line| line.extend(&word));
                break;
            }
            if last > 0 {
                lines.push(String::new());
                continue;
            }
            let rest = word.split_off(columns);
            lines.iter_mut().last().into_iter().for_each(|line| line.extend(&word));
            lines.push(String::new());
            word = rest;
        }
    }
    if lines.len() > most {
        let left_out = lines.len() - most;
        lines.drain(..left_out);
        if let Some(first) = lines.first_mut() {
            *first = std::iter::once('…').chain(first.chars().skip(1)).collect();
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_within() {
        assert_eq!(ticks(0.0, 10.0), [0.0, 5.0, 10.0]);
        assert_eq!(ticks(-1.5, 1.5), [-1.0, 0.0, 1.0]);
        assert_eq!(ticks(3.0, 3.0), [3.0]);
        assert_eq!(ticks(44.0, 51.0), [44.0, 46.0, 48.0, 50.0]);
        for (least, most) in [(1e-9, 3e-9), (-7e12, 8e15), (0.1, 0.3), (f64::MIN, f64::MAX)] {
            assert!((1..=8).contains(&ticks(least, most).len()), "{least} {most}");
        }
        let second = 1_000_000_000;
        for (span, step) in
            [(second, second / 5), (10 * second, 2 * second), (3600 * second, 600 * second), (1, 1)]
        {
            assert_eq!(step_of_time(span, 640), step, "{span}");
        }
        assert!(step_of_time(i128::from(i64::MAX) * 2, 640) > 0);
    }

    #[test]
    fn names_are_wrapped_and_not_cut_where_there_is_room() {
        assert_eq!(wrapped("velocity.longitudinal", 400, 12, 1), ["velocity.longitudinal"]);
        assert_eq!(wrapped("velocity.longitudinal", 100, 12, 3), ["velocity.", "longitudinal"]);
        assert_eq!(wrapped("a very long name of many words", 70, 12, 2), ["…f many", "words"]);
        assert_eq!(wrapped("", 70, 12, 2), [""]);
    }
}
