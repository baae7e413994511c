//! Screens of injected states, without a server and without a terminal.

use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use serde_json::{Value, json};

use super::answers::{Overview, RunState, TopicRow, list};
use super::detail::{DetailLine, Tone};
use super::draw::{Look, draw};
use super::model::{Link, Model, Tab};
use super::watch::{Loaded, Subject};

/// 2027-01-15 08:00:00 UTC.
const NOW: f64 = 1_800_000_000.0;
const WALL: i64 = 1_800_000_000_000_000_000;
const COLOURED: Look = Look { colour: true, unicode: true };

/// A screen with a model, and the time of its last answer.
struct Shown {
    terminal: Terminal<TestBackend>,
    model: Model,
    began: Instant,
}

fn row(name: &str, verdict: &str) -> Value {
    let verdict = if verdict == "none" { Value::Null } else { json!(verdict) };
    json!({"name": name, "verdict": verdict, "since": NOW - 65.0, "severity": "critical", "requirement": "R-7",
           "violations": 1234, "instances": {"total": 3, "violated": 2}, "acknowledged_by": "ada"})
}

/// The answer to a request of a model: the rows of its window, of all these.
fn answer(model: &Model, rows: &[Value]) -> Loaded {
    let wanted = model.wanted();
    let offset = wanted.overview.offset;
    let counted = |name: &str| rows.iter().filter(|row| row["verdict"].as_str() == Some(name)).count();
    let window: Vec<&Value> = rows.iter().skip(offset).take(400).collect();
    let overview = Overview::of(&json!({
        "now": NOW, "total": rows.len(), "offset": offset, "properties": window,
        "counts": {"violated": counted("violated"), "inconclusive": counted("inconclusive"),
                   "none": 0, "satisfied": counted("satisfied")},
    }));
    let state = RunState::of(&json!({"kind": "run", "name": "car-7", "is_ready": true, "reasons": []}));
    Loaded { wanted, state, overview, topics: None, open: None }
}

impl Shown {
    fn new(width: u16, height: u16, rows: &[Value]) -> Shown {
        let mut shown = Shown {
            terminal: Terminal::new(TestBackend::new(width, height)).unwrap(),
            model: Model::new("127.0.0.1:8080".to_owned()),
            began: Instant::now(),
        };
        shown.load(rows);
        shown
    }

    fn load(&mut self, rows: &[Value]) {
        let loaded = answer(&self.model, rows);
        self.model.load(loaded, self.began, WALL);
    }

    fn key(&mut self, code: KeyCode) -> bool {
        self.model.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn keys(&mut self, keys: &str) {
        keys.chars().for_each(|key| assert!(!self.key(KeyCode::Char(key))));
    }

    /// Draws some seconds after the last answer, and returns the lines.
    fn lines_after(&mut self, seconds: u64, look: Look) -> Vec<String> {
        let (model, now) = (&mut self.model, self.began + Duration::from_secs(seconds));
        self.terminal.draw(|frame| draw(model, frame.buffer_mut(), now, look)).unwrap();
        let buffer = self.terminal.backend().buffer();
        let line = |y: u16| {
            let line: String = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect();
            line.trim_end().to_owned()
        };
        (0..buffer.area.height).map(line).collect()
    }

    fn lines(&mut self) -> Vec<String> {
        self.lines_after(0, COLOURED)
    }

    fn has(&self, colour: Color) -> bool {
        self.terminal.backend().buffer().content().iter().any(|cell| cell.fg == colour)
    }
}

#[test]
fn properties_fit_into_80_columns() {
    let rows = [row("door_shut", "violated"), row("speed_known", "inconclusive"), row("lit", "satisfied")];
    let mut shown = Shown::new(80, 24, &rows);
    let lines = shown.lines();
    assert!(
        lines[0].starts_with("rondel top 127.0.0.1:8080 car-7") && lines[0].ends_with("live"),
        "{lines:#?}"
    );
    assert_eq!(lines[1], "◆ 1 violated  ▲ 1 inconclusive  □ 0 no verdict  ● 1 satisfied");
    assert!(
        lines[2].starts_with("[Properties]  Topics   sort: worst") && lines[2].ends_with(" 3"),
        "{lines:#?}"
    );
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&lines[3]), ["verdict", "property", "since", "severity", "count", "instances"]);
    assert_eq!(words(&lines[4]), ["◆", "violated", "door_shut", "65", "s", "critical", "1,234", "2/3"]);
    assert!(lines[5].starts_with("▲ inconclusive") && lines[6].starts_with("● satisfied"), "{lines:#?}");
    assert!(lines[23].starts_with("q end"), "{lines:#?}");
    assert!([Color::Red, Color::Yellow, Color::Green].iter().all(|colour| shown.has(*colour)));
    let wide = Shown::new(140, 24, &rows).lines();
    assert!(wide[4].contains("by ada") && wide[4].ends_with("R-7"), "{wide:#?}");
}

#[test]
fn shapes_stay_without_colours_and_without_unicode() {
    let rows = [row("a", "violated"), row("b", "inconclusive"), row("c", "none"), row("d", "satisfied")];
    let mut shown = Shown::new(80, 24, &rows);
    let lines = shown.lines_after(0, Look { colour: false, unicode: false });
    for (line, start) in
        lines[4..].iter().zip(["X violated", "? inconclusive", "- no verdict", "o satisfied"])
    {
        assert!(line.starts_with(start), "{lines:#?}");
        assert!(line.is_ascii(), "{line}");
    }
    assert!(![Color::Red, Color::Yellow, Color::Green].iter().any(|colour| shown.has(*colour)));
}

#[test]
fn nothing_is_green_that_is_not_seen() {
    let rows = [row("a", "satisfied"), row("b", "violated")];
    let mut shown = Shown::new(80, 24, &rows);
    shown.lines();
    assert!(shown.has(Color::Green));
    // Nothing has arrived.
    let lines = shown.lines_after(9, COLOURED);
    assert!(
        lines[0].contains("connection lost, not seen since ") && lines[0].ends_with("(9.0 s)"),
        "{lines:#?}"
    );
    assert!(lines[4].contains(" 65 s "), "ages stand still: {lines:#?}");
    assert!(![Color::Red, Color::Yellow, Color::Green].iter().any(|colour| shown.has(*colour)));
    // The server answers again.
    shown.load(&rows);
    let lines = shown.lines_after(1, COLOURED);
    assert!(
        lines[0].ends_with("live") && lines[4].contains(" 66 s ") && shown.has(Color::Green),
        "{lines:#?}"
    );
    // The connection is refused.
    shown.model.fail("nothing listens there".to_owned());
    let lines = shown.lines_after(1, COLOURED);
    assert!(
        lines[0].contains("connection lost") && lines[23].starts_with("nothing listens there"),
        "{lines:#?}"
    );
    assert!(!shown.has(Color::Green));
    // The run has ended; the server still answers.
    shown.load(&rows);
    shown.model.has_ended = true;
    let lines = shown.lines();
    assert!(lines[0].ends_with("ended") && !shown.has(Color::Green), "{lines:#?}");
    assert!(matches!(shown.model.link(shown.began), Link::Live));
}

#[test]
fn run_that_is_not_ready_has_its_reasons() {
    let mut shown = Shown::new(80, 24, &[row("a", "satisfied")]);
    let mut loaded = answer(&shown.model, &[row("a", "satisfied")]);
    loaded.state.is_ready = false;
    loaded.state.reasons = vec!["zenoh is not connected".to_owned()];
    shown.model.load(loaded, shown.began, WALL);
    let lines = shown.lines();
    assert!(lines[0].ends_with("not ready") && lines[23].starts_with("zenoh is not connected"), "{lines:#?}");
}

#[test]
fn run_whose_verdicts_are_missing_has_no_colours() {
    let mut shown = Shown::new(80, 24, &[row("a", "satisfied")]);
    shown.lines_after(0, COLOURED);
    assert!(shown.has(Color::Green));
    let mut loaded = answer(&shown.model, &[row("a", "satisfied")]);
    (loaded.state.is_ready, loaded.state.behind_since) = (false, Some(NOW));
    loaded.state.reasons = vec!["the store v.db has not accepted verdicts".to_owned()];
    shown.model.load(loaded, shown.began, WALL);
    let lines = shown.lines_after(0, COLOURED);
    assert!(lines[0].contains("lags behind since ") && lines[23].starts_with("the store v.db"), "{lines:#?}");
    assert!(!shown.has(Color::Green) && !shown.has(Color::Yellow));
    shown.load(&[row("a", "satisfied")]);
    shown.lines_after(0, COLOURED);
    assert!(shown.has(Color::Green));
}

#[test]
fn hostile_texts_are_escaped() {
    let hostile = "a\x1b]0;owned\x07\u{9b}2J\n\u{202e}b";
    let mut shown = Shown::new(140, 24, &[row(hostile, "violated")]);
    shown.lines();
    shown.model.open = Some(Subject::Property(hostile.to_owned()));
    let mut loaded = answer(&shown.model, &[row(hostile, "violated")]);
    loaded.open = Some(Ok(vec![DetailLine { tone: Tone::Plain, text: hostile.to_owned() }]));
    shown.model.load(loaded, shown.began, WALL);
    let detail = shown.lines();
    shown.model.open = None;
    for lines in [shown.lines(), detail] {
        let text = lines.concat();
        assert!(text.contains("a\\u{1b}]0;owned\\u{7}\\u{9b}2J\\n\\u{202e}b"), "{lines:#?}");
        assert!(!text.contains(|c: char| c.is_control() || c == '\u{202e}'), "{lines:#?}");
    }
}

#[test]
fn thousands_of_properties_are_scrolled() {
    let rows: Vec<Value> = (0..5000).map(|i| row(&format!("p{i}"), "satisfied")).collect();
    let mut shown = Shown::new(80, 24, &rows);
    shown.lines();
    shown.key(KeyCode::PageDown);
    assert_eq!(shown.model.cursor().at, 18);
    shown.key(KeyCode::End);
    let lines = shown.lines();
    assert_eq!(shown.model.cursor().at, 4999);
    assert!(lines[4].starts_with("loading"), "{lines:#?}");
    shown.load(&rows);
    let lines = shown.lines();
    assert!(lines[22].contains("p4999") && lines[4].contains("p4981"), "{lines:#?}");
    shown.key(KeyCode::Char('k'));
    // The list shrinks, and the row moves.
    shown.load(&rows[4900..]);
    shown.lines();
    shown.load(&rows[4900..]);
    let lines = shown.lines();
    assert_eq!(shown.model.cursor().at, 98);
    assert!(lines.iter().any(|line| line.contains("p4998")), "{lines:#?}");
    shown.load(&[]);
    assert!(shown.lines()[4].contains("no property matches"));
    assert!(!shown.key(KeyCode::Enter) && shown.model.open.is_none());
}

#[test]
fn cursor_follows_its_row_but_stays_on_the_first() {
    let [a, b, c] = ["a", "b", "c"].map(|name| row(name, "violated"));
    let mut shown = Shown::new(80, 24, &[a.clone(), b.clone(), c.clone()]);
    shown.load(&[c.clone(), a.clone(), b.clone()]);
    assert_eq!(shown.model.cursor().at, 0);
    shown.key(KeyCode::Down);
    shown.load(&[c, b, a]);
    assert_eq!(shown.model.cursor().at, 2);
}

#[test]
fn keys_search_sort_and_filter() {
    let mut shown = Shown::new(80, 24, &[row("a", "violated")]);
    shown.keys("sf/qd?");
    let wanted = shown.model.wanted().overview;
    assert_eq!((wanted.search.as_str(), wanted.verdict, wanted.sort), ("qd?", "violated", "name"));
    let lines = shown.lines();
    assert!(lines[2].contains("sort: name  only: violated  search: qd?_"), "{lines:#?}");
    shown.key(KeyCode::Backspace);
    shown.key(KeyCode::Enter);
    assert_eq!(shown.model.wanted().overview.search, "qd");
    shown.key(KeyCode::Esc);
    assert_eq!(shown.model.wanted().overview.search, "");
    shown.keys("?");
    assert!(shown.lines().iter().any(|line| line.contains("Ctrl-C")));
    shown.keys("x");
    assert!(shown.key(KeyCode::Char('q')));
    assert!(shown.model.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    assert!(!shown.model.key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::CONTROL)));
}

#[test]
fn open_property_is_scrolled_and_closed() {
    let rows = [row("a", "violated")];
    let mut shown = Shown::new(80, 24, &rows);
    shown.key(KeyCode::Enter);
    assert_eq!(shown.model.wanted().open, Some(Subject::Property("a".to_owned())));
    assert!(shown.lines()[4].contains("loading"), "the answer was to another request");
    let line = |i: usize| DetailLine { tone: Tone::Plain, text: format!("line {i} {}", "x".repeat(100)) };
    let mut loaded = answer(&shown.model, &rows);
    loaded.open = Some(Ok((0..50).map(line).collect()));
    shown.model.load(loaded, shown.began, WALL);
    let lines = shown.lines();
    assert!(lines[2] == "property a" && lines[3].starts_with("line 0"), "{lines:#?}");
    shown.key(KeyCode::End);
    let lines = shown.lines();
    assert!(lines.iter().any(|line| line.starts_with("line 49")), "{lines:#?}");
    shown.key(KeyCode::Esc);
    assert_eq!(shown.model.open, None);
    // A reload has removed it.
    shown.key(KeyCode::Enter);
    let mut loaded = answer(&shown.model, &rows);
    loaded.open = Some(Err("there is no property a".to_owned()));
    shown.model.load(loaded, shown.began, WALL);
    assert!(shown.lines()[4].contains("there is no property a"));
}

#[test]
fn topics_are_ordered_and_marked() {
    let mut shown = Shown::new(80, 24, &[row("a", "satisfied")]);
    shown.key(KeyCode::Tab);
    assert!(shown.lines()[4].contains("loading"));
    assert_eq!(shown.model.wanted().topics.as_deref(), Some(""));
    let topic = |name: &str, rate: Value, age: Value, lost: u64| {
        json!({"name": name, "address": name, "network": "zenoh", "type": null, "messages": 12_345, "rate": rate,
               "size": 10.0, "age": age, "late": 0, "lost": lost, "undecodable": 0})
    };
    let topics = json!({"topics": [
        topic("slow", json!(0.5), json!(7), 3), topic("fast", json!(1000.0), json!(0.1), 0),
        topic("never", Value::Null, Value::Null, 0),
    ]});
    let mut loaded = answer(&shown.model, &[row("a", "satisfied")]);
    loaded.topics = Some(Ok(list(&topics, "topics", TopicRow::of)));
    shown.model.load(loaded, shown.began, WALL);
    let order = |shown: &mut Shown| -> Vec<String> {
        let lines = shown.lines();
        let name =
            |line: &String| line.chars().skip(2).collect::<String>().split(' ').next().map(str::to_owned);
        lines[4..7].iter().filter_map(name).collect()
    };
    assert_eq!(order(&mut shown), ["fast", "never", "slow"]);
    let lines = shown.lines();
    assert!(
        lines[4].contains("1.0k/s") && lines[4].contains("12,345") && lines[4].ends_with("zenoh"),
        "{lines:#?}"
    );
    assert!(lines[5].starts_with("□ never") && lines[5].contains("none yet"), "{lines:#?}");
    assert!(lines[6].starts_with("▲ slow"), "{lines:#?}");
    for expected in [["fast", "slow", "never"], ["never", "slow", "fast"], ["slow", "fast", "never"]] {
        shown.keys("s");
        assert_eq!(order(&mut shown), expected);
    }
    assert_eq!(shown.model.tab, Tab::Topics);
    shown.key(KeyCode::Enter);
    assert_eq!(shown.model.open, Some(Subject::Topic("slow".to_owned())));
    shown.key(KeyCode::Esc);
    let mut loaded = answer(&shown.model, &[]);
    loaded.topics = Some(Err("the run does not answer".to_owned()));
    shown.model.load(loaded, shown.began, WALL);
    assert!(shown.lines()[4].contains("the run does not answer"));
}

#[test]
fn every_size_is_drawn() {
    let rows: Vec<Value> = (0..50).map(|i| row(&format!("property {i} 門"), "violated")).collect();
    let mut shown = Shown::new(80, 24, &rows);
    for (width, height) in [(1, 1), (3, 2), (20, 5), (21, 6), (300, 100), (80, 4), (500, 3)] {
        shown.terminal.backend_mut().resize(width, height);
        for keys in ["", "1", "2", "?", "x", "1"] {
            shown.keys(keys);
            shown.lines();
        }
        shown.key(KeyCode::Enter);
        shown.lines();
        shown.key(KeyCode::Esc);
    }
    shown.terminal.backend_mut().resize(20, 6);
    let lines = shown.lines();
    assert!(lines[4].starts_with("◆ violated"), "{lines:#?}");
}
