//! One signal over time: steps of a number, a band between two numbers, or texts.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use rondel_event::Timestamp;
use serde_json::Value;

use super::axis::{Times, level, short, ticks, width_of, wrapped};
use super::{Area, BLUE, GRID, PURPLE, SIGNAL, TEXT, TICKS, text, write_name};
use crate::results::{Recording, Signal, SignalKind};
use crate::time_text;

/// The distance from the end of one text to the next.
const APART: i32 = 4;

/// Draws a signal below `top`, with its name, ticks and thresholds.
pub(super) fn draw(area: &Area<'_>, recording: &Recording, signal: &Signal, times: &Times, top: i32) {
    let (top, bottom) = (top + 8, top + SIGNAL - 8);
    write_name(area, &signal.name, times.left - TICKS, (top + bottom) / 2, 5);
    let frame = [(times.left, top), (times.right, bottom)];
    let _ = area.draw(&Rectangle::new(frame, GRID.stroke_width(1)));
    let numbers = signal.values.iter().chain(&signal.upper).filter_map(|(_, value)| number(value));
    let (least, most) = numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), n| (a.min(n), b.max(n)));
    if least > most {
        return texts(area, signal, times, top, bottom);
    }
    let is_truth = signal.values.iter().all(|(_, value)| matches!(value, Value::Bool(_) | Value::Null));
    // Both values of a truth have their places, even if it never changes.
    let range = if is_truth { (0.0, 1.0) } else { with_thresholds(least, most, &signal.thresholds) };
    let y = |n: f64| {
        let share = if range.1 > range.0 { (n - range.0) / (range.1 - range.0) } else { 0.5 };
        bottom - 8 - (share.clamp(0.0, 1.0) * f64::from(bottom - top - 16)).round() as i32
    };
    // Times of the calendar are offsets from the beginning.
    let origin = if signal.kind == SignalKind::Time { origin(recording, range.0, range.1) } else { None };
    let marks: Vec<f64> = match (is_truth, origin) {
        (true, _) => vec![0.0, 1.0],
        (_, None) => ticks(range.0, range.1),
        (_, Some(origin)) => {
            ticks(range.0 - origin, range.1 - origin).into_iter().map(|tick| tick + origin).collect()
        }
    };
    for mark in marks {
        let label = match signal.kind {
            _ if is_truth => (mark != 0.0).to_string(),
            SignalKind::Number => short(mark),
            SignalKind::Duration | SignalKind::Time => match origin {
                Some(origin) if mark >= origin => format!("+{} s", short(mark - origin)),
                _ => format!("{} s", short(mark - origin.unwrap_or(0.0))),
            },
        };
        level(area, times.left, times.right, y(mark));
        let _ = area.draw(&Text::new(label, (times.left - 4, y(mark)), text(10, HPos::Right)));
    }
    match signal.upper.is_empty() {
        true => steps(area, &signal.values, times, &y),
        false => between(area, signal, times, &y),
    }
    for threshold in signal.thresholds.iter().filter(|n| (range.0..=range.1).contains(*n)) {
        let at = y(*threshold);
        let mut left = times.left;
        while left < times.right {
            let dash = [(left, at), ((left + 8).min(times.right), at)];
            let _ = area.draw(&PathElement::new(dash, PURPLE.stroke_width(2)));
            left += 14;
        }
        let _ = area.draw(&Text::new(short(*threshold), (times.right + 4, at), text(10, HPos::Left)));
    }
}

/// The range of values, extended to thresholds that are not far away.
fn with_thresholds(least: f64, most: f64, thresholds: &[f64]) -> (f64, f64) {
    let span = if most > least { most - least } else { least.abs().max(1.0) };
    let is_near = |n: &&f64| **n >= least - 2.0 * span && **n <= most + 2.0 * span;
    thresholds.iter().filter(is_near).fold((least, most), |(a, b), n| (a.min(*n), b.max(*n)))
}

/// The beginning of the recording in seconds, if times are of the calendar and near it.
fn origin(recording: &Recording, least: f64, most: f64) -> Option<f64> {
    const YEAR: f64 = 3.2e7;
    let begin = recording.begin? as f64 / 1e9;
    let is_calendar = time_text::is_calendar(Timestamp::from_nanos((least * 1e9) as i64));
    (is_calendar && (least - begin).abs() < YEAR && (most - begin).abs() < YEAR).then_some(begin)
}

/// Number of a value; 0 or 1 for a boolean.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        value => value.as_f64().filter(|number| number.is_finite()),
    }
}

/// Least, greatest and last number in a column between two times; `None` while it is unknown.
struct Column {
    x: i32,
    least: f64,
    most: f64,
    last: Option<f64>,
}

/// Numbers over the columns of the picture, one entry per column.
fn columns(values: &[(i64, Value)], times: &Times) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for (time, value) in values {
        let (x, value) = (times.x(*time), number(value));
        match columns.last_mut().filter(|last| last.x == x) {
            Some(last) => {
                if let Some(value) = value {
                    (last.least, last.most) = (last.least.min(value), last.most.max(value));
                }
                last.last = value;
            }
            None => {
                let (least, most) = (value.unwrap_or(f64::INFINITY), value.unwrap_or(f64::NEG_INFINITY));
                columns.push(Column { x, least, most, last: value });
            }
        }
    }
    columns
}

/// A number as steps.
fn steps(area: &Area<'_>, values: &[(i64, Value)], times: &Times, y: &dyn Fn(f64) -> i32) {
    let columns = columns(values, times);
    let ends = columns.iter().skip(1).map(|column| column.x).chain([times.right]);
    let mut path: Vec<(i32, i32)> = Vec::new();
    let draw = |path: &mut Vec<(i32, i32)>| {
        if !path.is_empty() {
            path.dedup();
            let _ = area.draw(&PathElement::new(std::mem::take(path), BLUE.stroke_width(2)));
        }
    };
    for (column, end) in columns.iter().zip(ends) {
        if column.least <= column.most {
            path.extend([(column.x, y(column.least)), (column.x, y(column.most))]);
        }
        match column.last {
            Some(last) => path.extend([(column.x, y(last)), (end, y(last))]),
            None => draw(&mut path),
        }
    }
    draw(&mut path);
}

/// The band between the least and the greatest elements of an array.
fn between(area: &Area<'_>, signal: &Signal, times: &Times, y: &dyn Fn(f64) -> i32) {
    let (lower, upper) = (columns(&signal.values, times), columns(&signal.upper, times));
    let mut at: Vec<i32> = lower.iter().chain(&upper).map(|column| column.x).collect();
    at.sort_unstable();
    at.dedup();
    let value = |columns: &[Column], x: i32| {
        let index = columns.partition_point(|column| column.x <= x);
        columns.get(index.checked_sub(1)?).and_then(|column| column.last)
    };
    let ends = at.iter().skip(1).copied().chain([times.right]);
    for (x, end) in at.iter().copied().zip(ends) {
        let (Some(low), Some(high)) = (value(&lower, x), value(&upper, x)) else { continue };
        let extreme = |columns: &[Column], pick: fn(&Column) -> f64, or: f64| {
            columns.iter().find(|column| column.x == x).map(pick).filter(|n| n.is_finite()).unwrap_or(or)
        };
        let low = extreme(&lower, |column| column.least, low);
        let high = extreme(&upper, |column| column.most, high);
        let area_of = [(x, y(high)), (end.max(x + 1), y(low) + 1)];
        let _ = area.draw(&Rectangle::new(area_of, BLUE.mix(0.3).filled()));
    }
    steps(area, &signal.values, times, y);
    steps(area, &signal.upper, times, y);
}

/// A text over time: each where it begins, if there is room, and a mark where there is none.
fn texts(area: &Area<'_>, signal: &Signal, times: &Times, top: i32, bottom: i32) {
    let mut free = i32::MIN;
    let mut marked = i32::MIN;
    let ends = signal.values.iter().skip(1).map(|(time, _)| times.x(*time)).chain([times.right]);
    for ((time, value), end) in signal.values.iter().zip(ends) {
        let x = times.x(*time);
        if x > marked {
            let _ = area.draw(&PathElement::new([(x, top), (x, bottom)], BLUE.stroke_width(1)));
            marked = x;
        }
        let shown = value.as_str().unwrap_or("?");
        let room = end - x - 2 * APART;
        if x >= free && room >= width_of("…xx", 11) {
            let label = wrapped(shown, room.max(45), 11, 1).into_iter().next().unwrap_or_default();
            free = x + width_of(&label, 11) + 2 * APART;
            let _ = area.draw(&Text::new(label, (x + APART, (top + bottom) / 2), text(11, HPos::Left)));
        }
    }
    let _ = area.draw(&PathElement::new([(times.left, bottom), (times.right, bottom)], TEXT.mix(0.3)));
}
