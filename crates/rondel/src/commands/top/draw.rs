//! Drawing of the screen, from 20 columns and 5 lines on. All texts pass through [`Canvas::put`], which escapes them.

use std::time::Instant;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;
use rondel_event::terminal::escaped_beginning;
use rondel_event::{Timestamp, Verdict};
use rondel_runtime::text::grouped;

use super::answers::{PropertyRow, RunState, TopicRow};
use super::detail::{Tone, verdict_name};
use super::model::{Link, Model, Tab};
use super::text::{duration, figure, since, wrapped};
use super::watch::Subject;
use crate::output::time_text::TimeText;

/// Most characters of a cell.
const LONGEST: usize = 1024;
/// Lines above and below a list.
const AROUND: u16 = 5;

/// Abilities of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whether there are colours.
    pub colour: bool,
    /// Whether there are characters beyond ASCII.
    pub unicode: bool,
}

/// A part of the screen.
struct Canvas<'b> {
    buffer: &'b mut Buffer,
    look: Look,
    /// Whether the present verdicts are not known: nothing has a colour then.
    is_lost: bool,
}

/// A column of a list: title, width, whether it is aligned to the right.
type Column = (&'static str, u16, bool);

const KEYS: &[(&str, &str)] = &[
    ("Tab, 1, 2", "properties, topics"),
    ("up, down, j, k", "choose a row"),
    ("page up, page down", "a screen further"),
    ("Home, End, g, G", "first row, last row"),
    ("Enter, right", "open: text, values, violations with their explanations"),
    ("Esc, left", "back"),
    ("/", "search in names; Enter keeps the search, Esc clears it"),
    ("s", "next order"),
    ("f", "next verdict: show properties with this one only"),
    ("?", "these keys"),
    ("q, Ctrl-C", "end"),
];

impl Canvas<'_> {
    fn style(&self, tone: Tone) -> Style {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let coloured = |colour: Color, other: Style| if self.look.colour { other.fg(colour) } else { other };
        match tone {
            Tone::Head => bold,
            _ if self.is_lost => plain.add_modifier(Modifier::DIM),
            Tone::Plain | Tone::Verdict(None) => plain,
            Tone::Dim => plain.add_modifier(Modifier::DIM),
            Tone::Warning => coloured(Color::Yellow, bold),
            Tone::Verdict(Some(Verdict::Violated)) => coloured(Color::Red, bold),
            Tone::Verdict(Some(Verdict::Inconclusive)) => coloured(Color::Yellow, plain),
            Tone::Verdict(Some(Verdict::Satisfied)) => coloured(Color::Green, plain),
        }
    }

    /// Writes a text, cut to a width. Returns the column behind it.
    fn put(&mut self, x: u16, y: u16, width: u16, text: &str, tone: Tone) -> u16 {
        let area = self.buffer.area;
        let width = width.min(area.right().saturating_sub(x));
        if width == 0 || y >= area.bottom() {
            return x;
        }
        let (text, style) = (escaped_beginning(text, LONGEST), self.style(tone));
        if Span::raw(text.as_str()).width() <= usize::from(width) {
            return self.buffer.set_stringn(x, y, &text, usize::from(width), style).0;
        }
        let mark = if self.look.unicode { "…" } else { "~" };
        let (after, _) = self.buffer.set_stringn(x, y, &text, usize::from(width - 1), style);
        self.buffer.set_stringn(after, y, mark, 1, style).0
    }

    /// Writes a text that ends at the right of a width.
    fn put_right(&mut self, x: u16, y: u16, width: u16, text: &str, tone: Tone) {
        let own = u16::try_from(Span::raw(text).width()).unwrap_or(u16::MAX).min(width);
        self.put(x + (width - own), y, own, text, tone);
    }

    /// Writes a text in place of a list.
    fn note(&mut self, text: &str, tone: Tone) {
        self.put(2, 4, u16::MAX, text, tone);
    }

    /// Writes a row of cells.
    fn row(&mut self, y: u16, columns: &[Column], cells: &[(String, Tone)]) {
        let mut x = 0;
        for ((_, width, is_right), (text, tone)) in columns.iter().zip(cells) {
            if *is_right {
                self.put_right(x, y, *width, text, *tone);
            } else {
                self.put(x, y, *width, text, *tone);
            }
            x += width + 1;
        }
    }

    fn heads(&mut self, y: u16, columns: &[Column]) {
        let cells: Vec<_> = columns.iter().map(|(title, ..)| ((*title).to_owned(), Tone::Head)).collect();
        self.row(y, columns, &cells);
        let line = Rect { y, height: 1, ..self.buffer.area };
        self.buffer.set_style(line, Style::new().add_modifier(Modifier::UNDERLINED));
    }

    fn choose(&mut self, y: u16) {
        let line = Rect { y, height: 1, ..self.buffer.area };
        self.buffer.set_style(line, Style::new().add_modifier(Modifier::REVERSED));
    }

    /// The shape of a verdict: that of the page.
    fn shape(&self, verdict: Option<Verdict>) -> &'static str {
        match (verdict, self.look.unicode) {
            (Some(Verdict::Violated), true) => "◆",
            (Some(Verdict::Inconclusive), true) => "▲",
            (None, true) => "□",
            (Some(Verdict::Satisfied), true) => "●",
            (Some(Verdict::Violated), false) => "X",
            (Some(Verdict::Inconclusive), false) => "?",
            (None, false) => "-",
            (Some(Verdict::Satisfied), false) => "o",
        }
    }
}

/// Draws everything.
pub fn draw(model: &mut Model, buffer: &mut Buffer, now: Instant, look: Look) {
    let area = buffer.area;
    buffer.reset();
    model.set_rows(usize::from(area.height.saturating_sub(AROUND)));
    let link = model.link(now);
    let is_lost = link != Link::Live || model.has_ended || model.behind_since().is_some();
    let mut canvas = Canvas { buffer, look, is_lost };
    draw_title(&mut canvas, model, &link);
    draw_counts(&mut canvas, model);
    if model.is_help {
        for (y, (key, meaning)) in (3..).zip(KEYS) {
            canvas.put(2, y, 20, key, Tone::Head);
            canvas.put(22, y, area.width.saturating_sub(22), meaning, Tone::Plain);
        }
    } else if model.open.is_some() {
        draw_detail(&mut canvas, model);
    } else {
        draw_settings(&mut canvas, model);
        match model.tab {
            Tab::Properties => draw_properties(&mut canvas, model, now),
            Tab::Topics => draw_topics(&mut canvas, model),
        }
    }
    draw_foot(&mut canvas, model, &link);
}

/// A time of day in whole seconds.
fn second_of_day(nanos: i64) -> Option<String> {
    TimeText::default().time_of_day(Timestamp::from_nanos(nanos - nanos.rem_euclid(1_000_000_000)))
}

/// Text about the connection, for the title.
fn link_text(model: &Model, link: &Link) -> (String, Tone) {
    match link {
        Link::Lost(at, unseen, _) => {
            let at = second_of_day(*at).unwrap_or_else(|| "the start".to_owned());
            let what = if model.has_ended { "ended" } else { "connection lost" };
            (format!("{what}, not seen since {at} ({})", duration(unseen.as_secs_f64().floor())), Tone::Head)
        }
        Link::Live if model.has_ended => ("ended".to_owned(), Tone::Head),
        Link::Live => match model.loaded.as_ref().map(|loaded| &loaded.state) {
            None => ("loading".to_owned(), Tone::Plain),
            Some(state) if state.kind != "run" => (state.kind.clone(), Tone::Plain),
            Some(RunState { behind_since: Some(since), .. }) => {
                let at = second_of_day((since * 1e9) as i64).unwrap_or_default();
                (format!("lags behind since {at}"), Tone::Head)
            }
            Some(state) if !state.is_ready => ("not ready".to_owned(), Tone::Warning),
            Some(_) => ("live".to_owned(), Tone::Plain),
        },
    }
}

fn draw_title(canvas: &mut Canvas<'_>, model: &Model, link: &Link) {
    let width = canvas.buffer.area.width;
    let (text, tone) = link_text(model, link);
    let own = u16::try_from(text.chars().count()).unwrap_or(width).min(width);
    canvas.put_right(width - own, 0, own, &text, tone);
    let name = model.loaded.as_ref().map_or("", |loaded| loaded.state.name.as_str());
    canvas.put(
        0,
        0,
        width.saturating_sub(own + 1),
        &format!("rondel top {} {name}", model.address),
        Tone::Head,
    );
}

fn draw_counts(canvas: &mut Canvas<'_>, model: &Model) {
    let Some(loaded) = &model.loaded else { return };
    let order = [Some(Verdict::Violated), Some(Verdict::Inconclusive), None, Some(Verdict::Satisfied)];
    let mut x = 0;
    for (verdict, count) in order.into_iter().zip(loaded.overview.counts) {
        let tone = if count > 0 { Tone::Verdict(verdict) } else { Tone::Dim };
        let text = format!("{} {} {}", canvas.shape(verdict), grouped(count), verdict_name(verdict));
        x = canvas.put(x, 1, u16::MAX, &text, tone) + 2;
    }
}

fn draw_settings(canvas: &mut Canvas<'_>, model: &Model) {
    let mut x = 0;
    for (tab, name) in [(Tab::Properties, "Properties"), (Tab::Topics, "Topics")] {
        let (text, tone) = match tab == model.tab {
            true => (format!("[{name}]"), Tone::Head),
            false => (format!(" {name} "), Tone::Plain),
        };
        x = canvas.put(x, 2, u16::MAX, &text, tone) + 1;
    }
    x = canvas.put(x + 1, 2, u16::MAX, &format!("sort: {}", model.sort()), Tone::Plain) + 2;
    if model.tab == Tab::Properties && !model.verdict().is_empty() {
        x = canvas.put(x, 2, u16::MAX, &format!("only: {}", model.verdict()), Tone::Head) + 2;
    }
    if model.is_searching || !model.search().is_empty() {
        let cursor = if model.is_searching { "_" } else { "" };
        x = canvas.put(x, 2, u16::MAX, &format!("search: {}{cursor}", model.search()), Tone::Head) + 2;
    }
    let total = grouped(model.total() as u64);
    let left = canvas.buffer.area.width.saturating_sub(x);
    canvas.put_right(x, 2, left, &total, Tone::Dim);
}

/// The columns of properties for a width.
fn property_columns(width: u16) -> Vec<Column> {
    let mut columns = vec![("verdict", 14, false), ("property", 0, false), ("since", 10, true)];
    for (column, least) in [
        (("severity", 9, false), 60),
        (("count", 7, true), 50),
        (("instances", 11, true), 80),
        (("note", 16, false), 100),
        (("requirement", 14, false), 120),
    ] {
        if width >= least {
            columns.push(column);
        }
    }
    stretch(columns, width)
}

/// Gives the second column all that the others leave.
fn stretch(mut columns: Vec<Column>, width: u16) -> Vec<Column> {
    let used: u16 = columns.iter().map(|(_, width, _)| width + 1).sum();
    if let Some(column) = columns.get_mut(1) {
        column.1 = width.saturating_sub(used).saturating_add(column.1 + 1).max(4);
    }
    columns
}

fn property_cells(canvas: &Canvas<'_>, row: &PropertyRow, now: f64) -> [(&'static str, String, Tone); 8] {
    let tone = Tone::Verdict(row.verdict);
    let instances = match row.instances {
        0 | 1 => String::new(),
        all => format!("{}/{}", grouped(row.violated), grouped(all)),
    };
    [
        ("verdict", format!("{} {}", canvas.shape(row.verdict), verdict_name(row.verdict)), tone),
        ("property", row.name.clone(), Tone::Plain),
        ("since", row.since.map_or(String::new(), |time| since(time, now)), Tone::Plain),
        ("severity", row.severity.clone(), Tone::Plain),
        ("count", grouped(row.violations), Tone::Plain),
        ("instances", instances, Tone::Plain),
        ("note", row.note(), Tone::Plain),
        ("requirement", row.requirement.clone(), Tone::Plain),
    ]
}

fn draw_properties(canvas: &mut Canvas<'_>, model: &Model, now: Instant) {
    let columns = property_columns(canvas.buffer.area.width);
    canvas.heads(3, &columns);
    let Some(overview) = model.loaded.as_ref().map(|loaded| &loaded.overview) else { return };
    let (now, cursor) = (model.server_now(now), model.cursor());
    for (y, at) in (4_u16..).zip(cursor.top..overview.total.min(cursor.top + model.rows)) {
        let cells: Vec<(String, Tone)> = match overview.row(at) {
            None => vec![("loading".to_owned(), Tone::Dim)],
            Some(row) => {
                let cells = property_cells(canvas, row, now);
                let shown = |(title, ..): &Column| cells.iter().find(|(own, ..)| own == title);
                columns.iter().filter_map(shown).map(|(_, text, tone)| (text.clone(), *tone)).collect()
            }
        };
        canvas.row(y, &columns, &cells);
        if at == cursor.at {
            canvas.choose(y);
        }
    }
    if overview.total == 0 {
        canvas.note("no property matches", Tone::Dim);
    }
}

/// The columns of topics for a width.
fn topic_columns(width: u16) -> Vec<Column> {
    let mut columns = vec![("", 1, false), ("topic", 0, false), ("rate", 8, true), ("age", 8, true)];
    for (column, least) in [
        (("messages", 10, true), 50),
        (("size", 7, true), 110),
        (("late", 6, true), 64),
        (("lost", 6, true), 56),
        (("undecodable", 11, true), 90),
        (("network", 8, false), 76),
        (("type", 24, false), 120),
    ] {
        if width >= least {
            columns.push(column);
        }
    }
    stretch(columns, width)
}

fn topic_cells(row: &TopicRow, unicode: bool) -> [(&'static str, String, Tone); 11] {
    let tone = |count: u64| if count > 0 { Tone::Warning } else { Tone::Plain };
    let sign = match (row.missed() > 0, row.age.is_none(), unicode) {
        (true, _, true) => "▲",
        (false, true, true) => "□",
        (true, _, false) => "!",
        (false, true, false) => "-",
        (false, false, _) => "",
    };
    let optional = |number: Option<f64>| number.map_or(String::new(), figure);
    [
        ("", sign.to_owned(), tone(row.missed())),
        ("topic", row.name.clone(), Tone::Plain),
        ("rate", row.rate.map_or(String::new(), |rate| format!("{}/s", figure(rate))), Tone::Plain),
        ("age", row.age.map_or("none yet".to_owned(), duration), Tone::Plain),
        ("messages", grouped(row.messages), Tone::Plain),
        ("size", optional(row.size), Tone::Plain),
        ("late", grouped(row.late), tone(row.late)),
        ("lost", grouped(row.lost), tone(row.lost)),
        ("undecodable", grouped(row.undecodable), tone(row.undecodable)),
        ("network", row.network.clone(), Tone::Plain),
        ("type", row.kind.clone().unwrap_or_default(), Tone::Plain),
    ]
}

fn draw_topics(canvas: &mut Canvas<'_>, model: &Model) {
    let columns = topic_columns(canvas.buffer.area.width);
    canvas.heads(3, &columns);
    let topics = match model.topics() {
        None => return canvas.note("loading", Tone::Dim),
        Some(Err(why)) => return canvas.note(why, Tone::Warning),
        Some(Ok([])) => return canvas.note("no topic matches", Tone::Dim),
        Some(Ok(topics)) => topics,
    };
    let cursor = model.cursor();
    for (y, (at, row)) in (4_u16..).zip(topics.iter().enumerate().skip(cursor.top).take(model.rows)) {
        let cells = topic_cells(row, canvas.look.unicode);
        let shown = |(title, ..): &Column| cells.iter().find(|(own, ..)| own == title);
        let cells: Vec<_> =
            columns.iter().filter_map(shown).map(|(_, text, tone)| (text.clone(), *tone)).collect();
        canvas.row(y, &columns, &cells);
        if at == cursor.at {
            canvas.choose(y);
        }
    }
}

fn draw_detail(canvas: &mut Canvas<'_>, model: &mut Model) {
    let (kind, name) = match &model.open {
        Some(Subject::Property(name)) => ("property", name.as_str()),
        Some(Subject::Topic(name)) => ("topic", name.as_str()),
        None => return,
    };
    canvas.put(0, 2, u16::MAX, &format!("{kind} {name}"), Tone::Head);
    let answer = model.loaded.as_ref().filter(|loaded| loaded.wanted.open == model.open);
    let lines = match answer.and_then(|loaded| loaded.open.as_ref()) {
        None => return canvas.note("loading", Tone::Dim),
        Some(Err(why)) => return canvas.note(why, Tone::Warning),
        Some(Ok(lines)) => lines,
    };
    let width = usize::from(canvas.buffer.area.width);
    let shown: Vec<(String, Tone)> = lines
        .iter()
        .flat_map(|line| {
            let text = escaped_beginning(&line.text, LONGEST * 16);
            wrapped(&text, width).into_iter().map(|piece| (piece, line.tone))
        })
        .collect();
    let most = shown.len().saturating_sub(model.rows);
    let scroll = model.scroll.min(most);
    for (y, (text, tone)) in (3_u16..).zip(shown.iter().skip(scroll).take(model.rows + 1)) {
        canvas.put(0, y, u16::MAX, text, *tone);
    }
    (model.scroll, model.lines) = (scroll, shown.len());
}

fn draw_foot(canvas: &mut Canvas<'_>, model: &Model, link: &Link) {
    let Some(y) = canvas.buffer.area.height.checked_sub(1) else { return };
    let reasons = model.loaded.as_ref().map(|loaded| loaded.state.reasons.join("; ")).unwrap_or_default();
    let (text, tone) = match link {
        Link::Lost(_, _, why) => (format!("{why}; connecting again"), Tone::Head),
        Link::Live if model.is_searching => {
            ("type to search; Enter keeps, Esc clears".to_owned(), Tone::Plain)
        }
        Link::Live if model.open.is_some() => ("Esc back  up, down scroll  q end".to_owned(), Tone::Plain),
        Link::Live if !reasons.is_empty() => (reasons, Tone::Warning),
        Link::Live => {
            ("q end  Tab list  Enter open  / search  s sort  f verdict  ? keys".to_owned(), Tone::Plain)
        }
    };
    canvas.put(0, y, u16::MAX, &text, tone);
}
