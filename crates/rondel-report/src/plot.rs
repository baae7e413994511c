//! Small plots as SVG: a verdict over time, and the signals around a violation.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::results::{Change, Judged, Outcome, Recording, Results, Signal};

const WIDTH: u32 = 640;
/// The height of a verdict, and of one signal.
const BAR: u32 = 18;
const SIGNAL: u32 = 84;
/// The room for the name of a signal and its scale.
const MARGIN: i32 = 190;

fn colour(verdict: Outcome) -> RGBColor {
    match verdict {
        Outcome::Satisfied => RGBColor(0x4c, 0xaf, 0x72),
        Outcome::Violated => RGBColor(0xd6, 0x45, 0x45),
        Outcome::Inconclusive | Outcome::Vacuous => RGBColor(0xc9, 0xc3, 0xb0),
    }
}

/// The verdict over the time of a recording, as a bar.
pub(crate) fn timeline(changes: &[Change], begin: i64, end: i64) -> String {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, BAR)).into_drawing_area();
        band(&area, changes, (begin, end), (0, WIDTH as i32), 0);
        let _ = area.present();
    }
    svg
}

/// The verdict over a span of time, as a bar between two columns.
fn band(area: &Area<'_>, changes: &[Change], (begin, end): (i64, i64), (left, right): (i32, i32), top: i32) {
    let span = end.saturating_sub(begin).max(1) as f64;
    let (left, right) = (f64::from(left), f64::from(right));
    let x = |time: i64| (left + time.saturating_sub(begin) as f64 / span * (right - left)).clamp(left, right);
    let ends = changes.iter().skip(1).map(|change| change.time_ns).chain([end]);
    let bars: Vec<(&Change, i64)> = changes.iter().zip(ends).collect();
    // Violations last: what comes after one of an instant would cover it.
    let is_violated = |change: &Change| change.verdict == Outcome::Violated;
    let (last, first): (Vec<_>, Vec<_>) = bars.into_iter().partition(|(change, _)| is_violated(change));
    for (change, until) in first.into_iter().chain(last) {
        let (from, until) = (x(change.time_ns), x(until));
        // A violation of an instant is seen, too, and at the end.
        let from = if is_violated(change) { from.min(right - 2.0) } else { from };
        let until = if is_violated(change) { until.max(from + 2.0) } else { until };
        let bar = [(from as i32, top), (until.ceil() as i32, top + BAR as i32)];
        // Drawing into memory does not fail.
        let _ = area.draw(&Rectangle::new(bar, colour(change.verdict).filled()));
    }
}

/// The changes to draw where nothing else shows the outcome: what is vacuous or inconclusive must not look satisfied.
fn shown_changes(judged: &Judged) -> Vec<Change> {
    let doubtful = matches!(judged.outcome, Outcome::Vacuous | Outcome::Inconclusive);
    let shown = |change: &Change| match change.verdict {
        Outcome::Satisfied if doubtful => Change { verdict: judged.outcome, ..*change },
        _ => *change,
    };
    judged.changes.iter().map(shown).collect()
}

/// The verdicts of all properties in all recordings: a bar for each, below the name of its recording and above the
/// axis of its time.
pub(crate) fn verdicts(results: &Results) -> String {
    const ROW: i32 = BAR as i32 + 8;
    let rows: usize = results.recordings.iter().map(|recording| recording.properties.len() + 2).sum();
    let drawn: usize = results.recordings.iter().map(|recording| recording.signals.len()).sum();
    let height = |rows: usize, each: i32| each.saturating_mul(i32::try_from(rows).unwrap_or(i32::MAX));
    let height = height(rows.max(1), ROW).saturating_add(height(drawn, SIGNAL as i32));
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height as u32)).into_drawing_area();
        let text = |size: i32, h: HPos| {
            ("sans-serif", size).into_font().color(&RGBColor(0x44, 0x44, 0x44)).pos(Pos::new(h, VPos::Center))
        };
        let right = WIDTH as i32 - 10;
        let mut top = 0;
        for recording in &results.recordings {
            let problem = recording.problem.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            let title = format!("{}{problem}", recording.name);
            let _ = area.draw(&Text::new(title, (4, top + ROW / 2), text(12, HPos::Left)));
            top += ROW;
            let span = recording.begin.zip(recording.end);
            for (claim, judged) in results.judged(recording) {
                let name = shortened(&claim.name);
                let _ = area.draw(&Text::new(name, (4, top + BAR as i32 / 2), text(12, HPos::Left)));
                if let Some(span) = span {
                    band(&area, &shown_changes(judged), span, (MARGIN, right), top);
                }
                top += ROW;
            }
            for signal in &recording.signals {
                if let Some((begin, end)) = span {
                    course(&area, signal, (begin, end), top, &text);
                }
                top += SIGNAL as i32;
            }
            let (begin, end) = match span {
                Some((begin, end)) => (recording.time(begin), recording.time(end)),
                None => ("no message".to_owned(), String::new()),
            };
            let _ = area.draw(&Text::new(begin, (MARGIN, top + 4), text(11, HPos::Left)));
            let _ = area.draw(&Text::new(end, (right, top + 4), text(11, HPos::Right)));
            top += ROW;
        }
        let _ = area.present();
    }
    svg
}

/// The fields of a recording over its whole time.
pub(crate) fn courses(signals: &[Signal], begin: i64, end: i64) -> String {
    let height = SIGNAL.saturating_mul(u32::try_from(signals.len()).unwrap_or(u32::MAX)) + 4;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        let text = |size: i32, h: HPos| {
            ("sans-serif", size).into_font().color(&RGBColor(0x44, 0x44, 0x44)).pos(Pos::new(h, VPos::Center))
        };
        for (i, signal) in signals.iter().enumerate() {
            course(&area, signal, (begin, end), (i as u32 * SIGNAL) as i32, &text);
        }
        let _ = area.present();
    }
    svg
}

/// A field over a span of time, below `top`.
fn course<'t>(
    area: &Area<'_>,
    signal: &Signal,
    (begin, end): (i64, i64),
    top: i32,
    text: &dyn Fn(i32, HPos) -> TextStyle<'t>,
) {
    let span = end.saturating_sub(begin).max(1) as f64;
    let room = f64::from(WIDTH as i32 - 10 - MARGIN);
    let x = |time: i64| {
        let share = (time.saturating_sub(begin) as f64 / span).clamp(0.0, 1.0);
        MARGIN + (share * room) as i32
    };
    let (top, bottom) = (top + 6, top + SIGNAL as i32 - 10);
    let _ = area.draw(&Text::new(shortened(&signal.name), (4, (top + bottom) / 2), text(12, HPos::Left)));
    draw_signal(area, signal, &x, (top, bottom), end, text);
}

/// The signals as steps over one axis of time, with a line at the violation.
pub(crate) fn signals(recording: &Recording, signals: &[Signal], at: i64) -> String {
    let times = signals.iter().flat_map(|signal| signal.values.iter().map(|(time, _)| *time));
    let (Some(first), Some(last)) = (times.clone().min(), times.chain([at]).max()) else {
        return String::new();
    };
    let (begin, end) = (first.min(at), last.max(at));
    let margin = (end.saturating_sub(begin) / 20).max(1);
    let (begin, end) = (begin.saturating_sub(margin), end.saturating_add(margin));
    let height = SIGNAL * signals.len() as u32 + 20;
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        let x = |time: i64| {
            let room = f64::from(WIDTH as i32 - MARGIN - 10);
            MARGIN
                + ((time.saturating_sub(begin)) as f64 / end.saturating_sub(begin).max(1) as f64 * room)
                    as i32
        };
        let text = |size: i32, h: HPos| {
            ("sans-serif", size).into_font().color(&RGBColor(0x44, 0x44, 0x44)).pos(Pos::new(h, VPos::Center))
        };
        for (i, signal) in signals.iter().enumerate() {
            let top = (i as u32 * SIGNAL) as i32 + 8;
            let bottom = top + SIGNAL as i32 - 16;
            let _ =
                area.draw(&Text::new(shortened(&signal.name), (4, (top + bottom) / 2), text(12, HPos::Left)));
            draw_signal(&area, signal, &x, (top, bottom), end, &text);
        }
        let line = [(x(at), 0), (x(at), height as i32 - 18)];
        let _ = area.draw(&PathElement::new(line, colour(Outcome::Violated).stroke_width(1)));
        let _ = area.draw(&Text::new(recording.time(at), (x(at), height as i32 - 8), text(11, HPos::Center)));
        let _ = area.present();
    }
    svg
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw_signal<'t>(
    area: &Area<'_>,
    signal: &Signal,
    x: &dyn Fn(i64) -> i32,
    (top, bottom): (i32, i32),
    end: i64,
    text: &dyn Fn(i32, HPos) -> TextStyle<'t>,
) {
    let _ = area.draw(&Rectangle::new(
        [(MARGIN, top), (WIDTH as i32 - 10, bottom)],
        RGBColor(0xdd, 0xdd, 0xdd).stroke_width(1),
    ));
    let number = |value: &serde_json::Value| match value {
        serde_json::Value::Bool(value) => Some(f64::from(u8::from(*value))),
        value => value.as_f64().filter(|number| number.is_finite()),
    };
    let numbers = signal.values.iter().filter_map(|(_, value)| number(value));
    let (least, most) = numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), n| (a.min(n), b.max(n)));
    let is_number = least <= most;
    let y = |n: f64| {
        let share = if most > least { (n - least) / (most - least) } else { 0.5 };
        bottom - 6 - (share * f64::from(bottom - top - 12)) as i32
    };
    let blue = RGBColor(0x2f, 0x6f, 0xb0);
    let ends = signal.values.iter().skip(1).map(|(time, _)| *time).chain([end]);
    let mut before: Option<i32> = None;
    for ((time, value), until) in signal.values.iter().zip(ends) {
        let (from, until) = (x(*time), x(until));
        match number(value) {
            Some(n) => {
                let y = y(n);
                let start = before.map_or((from, y), |before| (from, before));
                let _ = area.draw(&PathElement::new([start, (from, y), (until, y)], blue.stroke_width(2)));
                before = Some(y);
            }
            None => {
                before = None;
                let shown = value.as_str().unwrap_or("?");
                let _ = area.draw(&PathElement::new([(from, top), (from, bottom)], blue.mix(0.5)));
                let at = (from + 3, (top + bottom) / 2);
                let _ = area.draw(&Text::new(shortened(shown), at, text(11, HPos::Left)));
            }
        }
    }
    if is_number {
        let _ = area.draw(&Text::new(short(most), (MARGIN - 4, top + 6), text(10, HPos::Right)));
        if most > least {
            let _ = area.draw(&Text::new(short(least), (MARGIN - 4, bottom - 6), text(10, HPos::Right)));
        }
    }
}

/// A number in few digits.
fn short(number: f64) -> String {
    let text = format!("{number:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The end of a long name, which says most.
fn shortened(name: &str) -> String {
    const MOST: usize = 24;
    let length = name.chars().count();
    if length <= MOST {
        name.to_owned()
    } else {
        format!("…{}", name.chars().skip(length - MOST + 1).collect::<String>())
    }
}
