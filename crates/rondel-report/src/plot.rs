//! Plots as SVG: verdicts and signals over the time of a recording.
//!
//! The colours are those of Okabe and Ito, which people with any kind of colour vision can distinguish. Verdicts have a
//! shape of their own as well: a low bar where satisfied, a full one where violated, a hatched one where undecided.

mod axis;
mod signal;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::results::{Change, Judged, Outcome, Recording, Results};
use axis::{Times, width_of, wrapped};

/// The width of the part with data.
const DATA: i32 = 640;
/// The room right of it, for the names of thresholds.
const RIGHT: i32 = 64;
/// The height of a verdict, and the distance of two.
const BAR: i32 = 18;
const ROW: i32 = BAR + 8;
/// The height of a signal.
const SIGNAL: i32 = 96;
/// The height of an axis of time.
const AXIS: i32 = 30;
/// The room for names and the ticks of signals: at least, and at most.
const NAMES: [i32; 2] = [120, 440];
/// The room for the ticks of signals.
const TICKS: i32 = 44;
/// Minimum width of a visible bar.
const SEEN: i32 = 2;

const TEXT: RGBColor = RGBColor(0x33, 0x33, 0x33);
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
/// Bluish green, vermilion, yellow and sky blue.
const GREEN: RGBColor = RGBColor(0x00, 0x9e, 0x73);
const VERMILION: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const YELLOW: RGBColor = RGBColor(0xf0, 0xe4, 0x42);
const SKY: RGBColor = RGBColor(0x56, 0xb4, 0xe9);
/// Blue, for signals, and reddish purple, for thresholds.
const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
const PURPLE: RGBColor = RGBColor(0xcc, 0x79, 0xa7);

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Text of a size, with its anchor at the middle of its height.
fn text<'t>(size: i32, at: HPos) -> TextStyle<'t> {
    ("sans-serif", size).into_font().color(&TEXT).pos(Pos::new(at, VPos::Center))
}

/// Draws a picture of this size on white: the colours are not legible on a dark page. Drawing into memory does not fail.
fn picture(width: i32, height: i32, draw: impl FnOnce(&Area<'_>)) -> String {
    let mut svg = String::new();
    {
        let area =
            SVGBackend::with_string(&mut svg, (width as u32, height.max(1) as u32)).into_drawing_area();
        let _ = area.fill(&WHITE);
        draw(&area);
        let _ = area.present();
    }
    svg
}

/// The room for these names.
fn room_for<'n>(names: impl Iterator<Item = &'n str>) -> i32 {
    let longest = names.map(|name| width_of(name, 12)).max().unwrap_or(0);
    (longest + TICKS + 16).clamp(NAMES[0], NAMES[1])
}

/// Writes a name left of the data, in up to `lines` lines around a height.
fn write_name(area: &Area<'_>, name: &str, room: i32, middle: i32, lines: usize) {
    let parts = wrapped(name, room - 12, 12, lines);
    let first = middle - (parts.len() as i32 - 1) * 7;
    for (i, part) in (0..).zip(parts) {
        let _ = area.draw(&Text::new(part, (4, first + i * 14), text(12, HPos::Left)));
    }
}

/// The verdict over a span of time, as a bar between two columns.
fn band(area: &Area<'_>, changes: &[Change], times: &Times, top: i32) {
    let ends = changes.iter().skip(1).map(|change| change.time_ns).chain([times.end]);
    let mut bars: Vec<(&Change, i64)> = changes.iter().zip(ends).collect();
    // The worst last, because a later bar would cover that of an instant.
    bars.sort_by_key(|(change, _)| match change.verdict {
        Outcome::Satisfied => 0,
        Outcome::Vacuous | Outcome::Inconclusive => 1,
        Outcome::Violated => 2,
    });
    for (change, until) in bars {
        let (mut from, mut until) = (times.x(change.time_ns), times.x(until));
        if change.verdict != Outcome::Satisfied {
            // A verdict of an instant is visible too, also at the end.
            from = from.min(times.right - SEEN);
            until = until.max(from + SEEN);
        }
        mark(area, change.verdict, from, until, top);
    }
}

/// A verdict between two columns: its colour and its shape.
fn mark(area: &Area<'_>, verdict: Outcome, from: i32, until: i32, top: i32) {
    let (colour, from_top) = match verdict {
        Outcome::Satisfied => (GREEN, BAR - 7),
        Outcome::Violated => (VERMILION, 0),
        Outcome::Inconclusive => (YELLOW, 0),
        Outcome::Vacuous => (SKY, BAR / 2 - 2),
    };
    let bar = [(from, top + from_top), (until, top + BAR)];
    let _ = area.draw(&Rectangle::new(bar, colour.filled()));
    if verdict != Outcome::Inconclusive {
        return;
    }
    // Strokes from below to above, cut at the ends.
    let mut foot = from - BAR + 4;
    while foot < until {
        let (start, end) = (foot.max(from), (foot + BAR).min(until));
        if start < end {
            let height = |x: i32| top + BAR - (x - foot);
            let _ = area
                .draw(&PathElement::new([(start, height(start)), (end, height(end))], TEXT.stroke_width(1)));
        }
        foot += 6;
    }
    let sides = [[(from, top), (until, top)], [(from, top + BAR), (until, top + BAR)]];
    for side in sides {
        let _ = area.draw(&PathElement::new(side, TEXT.stroke_width(1)));
    }
}

/// Changes to draw: a property that is vacuous or inconclusive as a whole must not look satisfied.
pub(crate) fn shown_changes(judged: &Judged) -> Vec<Change> {
    let uncertain = matches!(judged.outcome, Outcome::Vacuous | Outcome::Inconclusive);
    let shown = |change: &Change| match change.verdict {
        Outcome::Satisfied if uncertain => Change { verdict: judged.outcome, ..*change },
        _ => *change,
    };
    judged.changes.iter().map(shown).collect()
}

/// Legend of the bar shapes, for the outcomes that occur.
fn legend(area: &Area<'_>, outcomes: &[Outcome], mut left: i32, top: i32) {
    for outcome in outcomes {
        mark(area, *outcome, left, left + 24, top);
        let _ = area.draw(&Text::new(outcome.as_str(), (left + 30, top + BAR / 2), text(11, HPos::Left)));
        left += 44 + width_of(outcome.as_str(), 11);
    }
}

/// The outcomes that bars show, the best first.
fn outcomes<'j>(all: impl Iterator<Item = &'j Judged>) -> Vec<Outcome> {
    let mut found: Vec<Outcome> =
        all.flat_map(|judged| shown_changes(judged).into_iter().map(|change| change.verdict)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The verdicts of all properties in all recordings, and the fields: for each recording a bar for each property, below the
/// name of the recording and above the axis of its time.
pub(crate) fn verdicts(results: &Results) -> String {
    let names = results.properties.iter().map(|claim| claim.name.as_str());
    let signals = results.recordings.iter().flat_map(|recording| &recording.signals);
    let left = room_for(names.chain(signals.map(|signal| signal.name.as_str())));
    let height = |recording: &Recording| {
        let rows = i32::try_from(recording.properties.len()).unwrap_or(i32::MAX / ROW - 2);
        let signals = i32::try_from(recording.signals.len()).unwrap_or(0);
        ROW.saturating_mul(rows + 1).saturating_add(signals.saturating_mul(SIGNAL)).saturating_add(AXIS)
    };
    let all = results.recordings.iter().map(height).fold(ROW, i32::saturating_add);
    picture(left + DATA + RIGHT, all.min(1 << 20), |area| {
        let mut top = 0;
        for recording in &results.recordings {
            draw_recording(area, results, recording, left, top);
            top = top.saturating_add(height(recording));
        }
        let judged = results.recordings.iter().flat_map(|recording| &recording.properties);
        legend(area, &outcomes(judged), left, top + 2);
    })
}

fn draw_recording(area: &Area<'_>, results: &Results, recording: &Recording, left: i32, mut top: i32) {
    let span = recording.begin.zip(recording.end);
    let (name, style) = (&recording.name, text(12, HPos::Left));
    let (title, style) = match (&recording.problem, span) {
        (None, _) => (name.clone(), style),
        (Some(why), None) => (format!("{name}: NOT read: {why}"), style.color(&VERMILION)),
        (Some(why), Some(_)) => {
            (format!("{name}: a part only, NOT read to its end: {why}"), style.color(&VERMILION))
        }
    };
    let _ = area.draw(&Text::new(title, (4, top + ROW / 2), style));
    top += ROW;
    let right = left + DATA;
    for (claim, judged) in results.judged(recording) {
        write_name(area, &claim.name, left, top + BAR / 2, 1);
        if let Some((begin, end)) = span {
            band(area, &shown_changes(judged), &Times { begin, end, left, right }, top);
        }
        top += ROW;
    }
    for signal in &recording.signals {
        if let Some((begin, end)) = span {
            let times = Times { begin, end, left, right };
            signal::draw(area, recording, signal, &times, top);
        }
        top += SIGNAL;
    }
    match span {
        Some((begin, end)) => Times { begin, end, left, right }.axis(area, recording, top),
        None => {
            let _ = area.draw(&Text::new("no message", (left, top + 8), text(11, HPos::Left)));
        }
    }
}
