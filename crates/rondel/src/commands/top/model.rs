//! State of the screen: what is shown, where the cursor is, and whether the monitor is seen.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::answers::{TopicRow, TopicSort};
use super::watch::{Loaded, OverviewQuery, Subject, WINDOW, Wanted};

/// Time without an answer after which present verdicts are no longer known.
const UNSEEN: Duration = Duration::from_secs(6);
/// Longest text to search for, in characters.
const SEARCH: usize = 100;

/// Verdicts that are shown; empty for all.
const VERDICTS: [&str; 5] = ["", "violated", "inconclusive", "none", "satisfied"];
/// Orders of properties.
const SORTS: [&str; 4] = ["worst", "name", "since", "count"];
/// Orders of topics.
const TOPIC_SORTS: [(TopicSort, &str); 4] = [
    (TopicSort::Name, "name"),
    (TopicSort::Rate, "rate"),
    (TopicSort::Age, "age"),
    (TopicSort::Lost, "lost"),
];

/// A list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    /// Properties with their verdicts.
    #[default]
    Properties,
    /// Topics with their figures.
    Topics,
}

/// Position in a list.
#[derive(Clone, Debug, Default)]
pub struct Cursor {
    /// Position of the chosen row.
    pub at: usize,
    /// Position of the first row on the screen.
    pub top: usize,
    /// Name of the chosen row, which the cursor stays on when rows move. On the first row it stays there.
    name: Option<String>,
}

/// State of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// The monitor answers.
    Live,
    /// It does not, since this time of day in nanoseconds, for this time, for this reason.
    Lost(i64, Duration, String),
}

/// Everything that is shown.
#[derive(Debug, Default)]
pub struct Model {
    /// The address of the page.
    pub address: String,
    /// The list.
    pub tab: Tab,
    /// The search in properties and in topics.
    search: [String; 2],
    /// Index into `VERDICTS`.
    verdict: usize,
    /// Indices into `SORTS` and `TOPIC_SORTS`.
    sorts: [usize; 2],
    cursors: [Cursor; 2],
    /// Whether keys are letters of the search.
    pub is_searching: bool,
    /// Whether the keys are shown.
    pub is_help: bool,
    /// The open subject.
    pub open: Option<Subject>,
    /// The first line of it on the screen.
    pub scroll: usize,
    /// Number of lines of it, as they are drawn.
    pub lines: usize,
    /// Rows of the list on the screen.
    pub rows: usize,
    /// The last answer.
    pub loaded: Option<Loaded>,
    /// Time of the last answer, also as time of day in nanoseconds.
    seen: Option<(Instant, i64)>,
    failure: Option<String>,
    /// Whether the run has ended.
    pub has_ended: bool,
}

impl Model {
    /// A screen before the first answer.
    pub fn new(address: String) -> Model {
        Model { address, rows: 20, ..Model::default() }
    }

    /// Sets filters and the order of the list by their names in the API. Returns whether the list has the order.
    pub fn choose(&mut self, search: &str, verdict: Option<&str>, sort: Option<&str>) -> bool {
        let index = self.index();
        search.clone_into(&mut self.search[index]);
        self.verdict = VERDICTS.iter().position(|own| Some(*own) == verdict).unwrap_or(0);
        let Some(sort) = sort else { return true };
        let names = if index == 0 { SORTS } else { TOPIC_SORTS.map(|(_, name)| name) };
        let found = names.iter().position(|own| *own == sort);
        self.sorts[index] = found.unwrap_or(0);
        found.is_some()
    }

    fn index(&self) -> usize {
        usize::from(self.tab == Tab::Topics)
    }

    /// The cursor of the list.
    pub fn cursor(&self) -> &Cursor {
        &self.cursors[self.index()]
    }

    /// The search of the list.
    pub fn search(&self) -> &str {
        &self.search[self.index()]
    }

    /// The name of the verdict that is shown; empty for all.
    pub fn verdict(&self) -> &'static str {
        VERDICTS[self.verdict]
    }

    /// The name of the order of the list.
    pub fn sort(&self) -> &'static str {
        match self.tab {
            Tab::Properties => SORTS[self.sorts[0]],
            Tab::Topics => TOPIC_SORTS[self.sorts[1]].1,
        }
    }

    /// The order of topics.
    pub fn topic_sort(&self) -> TopicSort {
        TOPIC_SORTS[self.sorts[1]].0
    }

    /// The topics, or why there are none; `None` before they are loaded.
    pub fn topics(&self) -> Option<Result<&[TopicRow], &str>> {
        let topics = self.loaded.as_ref()?.topics.as_ref()?;
        Some(topics.as_deref().map_err(String::as_str))
    }

    /// Everything to load.
    pub fn wanted(&self) -> Wanted {
        let top = self.cursors[0].top;
        // In steps, so that a row further is not another request.
        let step = WINDOW / 4;
        Wanted {
            overview: OverviewQuery {
                search: self.search[0].clone(),
                verdict: self.verdict(),
                sort: SORTS[self.sorts[0]],
                offset: (top / step).saturating_sub(1) * step,
            },
            topics: (self.tab == Tab::Topics).then(|| self.search[1].clone()),
            open: self.open.clone(),
        }
    }

    /// Takes an answer, at this time.
    pub fn load(&mut self, mut loaded: Loaded, now: Instant, wall: i64) {
        self.order(&mut loaded);
        self.seen = Some((now, wall));
        self.failure = None;
        self.loaded = Some(loaded);
        self.follow();
    }

    /// Notes that there is no answer.
    pub fn fail(&mut self, why: String) {
        self.failure = Some(why);
    }

    /// State of the connection at this time.
    pub fn link(&self, now: Instant) -> Link {
        let (seen, wall) = self.seen.unwrap_or((now, 0));
        let unseen = now.saturating_duration_since(seen);
        match &self.failure {
            Some(why) => Link::Lost(wall, unseen, why.clone()),
            None if unseen > UNSEEN => Link::Lost(wall, unseen, "no answer".to_owned()),
            None => Link::Live,
        }
    }

    /// Time of day in seconds since which the answers lack verdicts; `None` while they have all.
    pub fn behind_since(&self) -> Option<f64> {
        self.loaded.as_ref()?.state.behind_since
    }

    /// Time of day of the server in seconds. It stands still while the monitor is not seen.
    pub fn server_now(&self, now: Instant) -> f64 {
        let at = self.loaded.as_ref().map_or(0.0, |loaded| loaded.overview.now);
        match (self.link(now), self.seen) {
            (Link::Live, Some((seen, _))) => at + now.saturating_duration_since(seen).as_secs_f64(),
            _ => at,
        }
    }

    fn order(&self, loaded: &mut Loaded) {
        if let Some(Ok(topics)) = &mut loaded.topics {
            self.topic_sort().order(topics);
        }
    }

    /// Number of rows of the list.
    pub fn total(&self) -> usize {
        match self.tab {
            Tab::Properties => self.loaded.as_ref().map_or(0, |loaded| loaded.overview.total),
            Tab::Topics => self.topics().and_then(Result::ok).map_or(0, <[TopicRow]>::len),
        }
    }

    /// The name of the row at a position of the list, if it is loaded.
    fn name_at(&self, at: usize) -> Option<String> {
        match self.tab {
            Tab::Properties => self.loaded.as_ref()?.overview.row(at).map(|row| row.name.clone()),
            Tab::Topics => self.topics()?.ok()?.get(at).map(|row| row.name.clone()),
        }
    }

    /// The position of a name, if it is loaded.
    fn position(&self, name: &str) -> Option<usize> {
        match self.tab {
            Tab::Properties => {
                let overview = &self.loaded.as_ref()?.overview;
                let at = overview.rows.iter().position(|row| row.name == name)?;
                Some(overview.offset.saturating_add(at))
            }
            Tab::Topics => self.topics()?.ok()?.iter().position(|row| row.name == name),
        }
    }

    /// Keeps the cursor on its row after the rows have moved.
    fn follow(&mut self) {
        let (at, name) = (self.cursor().at, self.cursor().name.clone());
        let followed = name.and_then(|name| self.position(&name));
        self.place(followed.unwrap_or(at));
        // The name of a row that is not loaded is known with the next answer.
        if followed.is_none()
            && let Some(name) = self.name_at(self.cursor().at)
        {
            self.set_name(name);
        }
    }

    /// Moves the cursor to a row, as a key does.
    fn move_to(&mut self, at: usize) {
        self.place(at);
        match self.name_at(self.cursor().at) {
            Some(name) => self.set_name(name),
            None => {
                let index = self.index();
                self.cursors[index].name = None;
            }
        }
    }

    fn set_name(&mut self, name: String) {
        let index = self.index();
        let cursor = &mut self.cursors[index];
        cursor.name = (cursor.at > 0).then_some(name);
    }

    /// Moves the cursor to a position of the list, and the screen to the cursor.
    fn place(&mut self, at: usize) {
        let at = at.min(self.total().saturating_sub(1));
        let (index, rows) = (self.index(), self.rows.max(1));
        let cursor = &mut self.cursors[index];
        cursor.top = cursor.top.min(at).max((at + 1).saturating_sub(rows));
        cursor.at = at;
    }

    fn reset(&mut self) {
        let index = self.index();
        self.cursors[index] = Cursor::default();
    }

    /// Sets the number of rows on the screen.
    pub fn set_rows(&mut self, rows: usize) {
        self.rows = rows;
        self.place(self.cursor().at);
    }

    /// Handles a key. Returns whether the command ends.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        if key.kind == KeyEventKind::Release {
            return false;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return key.code == KeyCode::Char('c');
        }
        if self.is_searching {
            self.search_key(key.code);
            return false;
        }
        if self.is_help {
            self.is_help = false;
            return key.code == KeyCode::Char('q');
        }
        match key.code {
            KeyCode::Char('q') => return true,
            KeyCode::Char('?') => self.is_help = true,
            _ if self.open.is_some() => self.detail_key(key.code),
            _ => self.list_key(key.code),
        }
        false
    }

    fn search_key(&mut self, code: KeyCode) {
        let index = self.index();
        match code {
            KeyCode::Enter => self.is_searching = false,
            KeyCode::Esc => {
                self.is_searching = false;
                self.search[index].clear();
            }
            KeyCode::Backspace => {
                self.search[index].pop();
            }
            KeyCode::Char(c) if self.search[index].chars().count() < SEARCH => self.search[index].push(c),
            _ => return,
        }
        self.reset();
    }

    /// Rows of a step of a key; `None` for other keys.
    fn step(&self, code: KeyCode) -> Option<isize> {
        let page = isize::try_from(self.rows.saturating_sub(1).max(1)).unwrap_or(1);
        Some(match code {
            KeyCode::Down | KeyCode::Char('j') => 1,
            KeyCode::Up | KeyCode::Char('k') => -1,
            KeyCode::PageDown | KeyCode::Char(' ') => page,
            KeyCode::PageUp => -page,
            KeyCode::Home | KeyCode::Char('g') => isize::MIN,
            KeyCode::End | KeyCode::Char('G') => isize::MAX,
            _ => return None,
        })
    }

    fn detail_key(&mut self, code: KeyCode) {
        if let Some(step) = self.step(code) {
            let most = self.lines.saturating_sub(self.rows);
            self.scroll = self.scroll.saturating_add_signed(step).min(most);
        } else if matches!(code, KeyCode::Esc | KeyCode::Enter | KeyCode::Left | KeyCode::Backspace) {
            self.open = None;
        }
    }

    fn list_key(&mut self, code: KeyCode) {
        if let Some(step) = self.step(code) {
            self.move_to(self.cursor().at.saturating_add_signed(step));
            return;
        }
        match code {
            KeyCode::Tab | KeyCode::BackTab => {
                self.tab = if self.tab == Tab::Topics { Tab::Properties } else { Tab::Topics };
            }
            KeyCode::Char('1') => self.tab = Tab::Properties,
            KeyCode::Char('2') => self.tab = Tab::Topics,
            KeyCode::Char('/') => self.is_searching = true,
            KeyCode::Char('s') => {
                let index = self.index();
                self.sorts[index] = (self.sorts[index] + 1) % SORTS.len();
                if let Some(mut loaded) = self.loaded.take() {
                    self.order(&mut loaded);
                    self.loaded = Some(loaded);
                }
                self.reset();
            }
            KeyCode::Char('f') if self.tab == Tab::Properties => {
                self.verdict = (self.verdict + 1) % VERDICTS.len();
                self.reset();
            }
            KeyCode::Esc if !self.search().is_empty() => {
                let index = self.index();
                self.search[index].clear();
                self.reset();
            }
            KeyCode::Enter | KeyCode::Right => {
                let Some(name) = self.name_at(self.cursor().at) else { return };
                self.scroll = 0;
                self.open = Some(match self.tab {
                    Tab::Properties => Subject::Property(name),
                    Tab::Topics => Subject::Topic(name),
                });
            }
            _ => {}
        }
    }
}
