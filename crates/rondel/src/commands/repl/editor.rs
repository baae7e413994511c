//! Lines from a terminal: editing, history, completion.

use rustyline::completion::{Completer, Pair};
use rustyline::config::{CompletionType, Config};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};

use super::vocabulary::Vocabulary;

/// Prompt before each line.
const PROMPT: &str = "> ";

/// Maximum number of lines in the history.
const REMEMBERED: usize = 1_000;

/// Input at the prompt.
pub enum Typed {
    /// A line.
    Line(String),
    /// A cancelled line (Ctrl-C).
    Dropped,
    /// The end of input (Ctrl-D).
    End,
}

/// Reads lines from a terminal.
pub struct Terminal {
    editor: Editor<Completing, MemHistory>,
}

impl Terminal {
    /// Creates an editor on the terminal of this process.
    ///
    /// # Errors
    /// The reason why the terminal cannot be used.
    pub fn open() -> Result<Terminal, String> {
        let failed = |error: ReadlineError| format!("cannot read from the terminal: {error}");
        let config = Config::builder().completion_type(CompletionType::List).build();
        // No history is written to a file: formulas may be confidential.
        let history = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, history).map_err(failed)?;
        rustyline::history::History::set_max_len(editor.history_mut(), REMEMBERED).map_err(failed)?;
        Ok(Terminal { editor })
    }

    /// The number of columns.
    pub fn width(&mut self) -> Option<usize> {
        self.editor.dimensions().map(|(columns, _)| usize::from(columns)).filter(|columns| *columns > 0)
    }

    /// Reads a line, with completion of words of this vocabulary.
    ///
    /// # Errors
    /// The reason why no line could be read.
    pub fn read(&mut self, vocabulary: &Vocabulary) -> Result<Typed, String> {
        self.editor.set_helper(Some(Completing { vocabulary: vocabulary.clone() }));
        match self.editor.readline(PROMPT) {
            Ok(line) => {
                // A history that takes no line is no reason to refuse it.
                let _ = self.editor.add_history_entry(line.as_str());
                Ok(Typed::Line(line))
            }
            Err(ReadlineError::Interrupted) => Ok(Typed::Dropped),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(error) => Err(format!("cannot read from the terminal: {error}")),
        }
    }
}

/// Completes words.
struct Completing {
    vocabulary: Vocabulary,
}

impl Completer for Completing {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _: &Context<'_>,
    ) -> Result<(usize, Vec<Pair>), ReadlineError> {
        let (start, candidates) = self.vocabulary.complete(line, cursor);
        let pair = |candidate: super::vocabulary::Candidate| Pair {
            display: match candidate.detail.is_empty() {
                true => candidate.text.clone(),
                false => format!("{}: {}", candidate.text, candidate.detail),
            },
            replacement: candidate.text,
        };
        Ok((start, candidates.into_iter().map(pair).collect()))
    }
}

impl Hinter for Completing {
    type Hint = String;
}

impl Highlighter for Completing {}
impl Validator for Completing {}
impl Helper for Completing {}
