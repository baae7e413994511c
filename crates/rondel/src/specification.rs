//! Getting a specification from a file or the command line, with its diagnostics shown.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rondel_engine::Program;
use rondel_spec::{Outcome, Spec};

/// The languages in which a property can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Syntax {
    /// Rondel's own language
    Rondel,
    /// Reelay's expressions, with Reelay's meaning
    Rye,
}

/// The models of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TimeModel {
    /// Positions: every event is one step, and bounds count steps
    Steps,
}

/// A specification, ready to run.
#[derive(Clone, Debug)]
pub struct Specification {
    /// What was written.
    pub spec: Spec,
    /// What runs.
    pub program: Arc<Program>,
    /// Whether it is a bare formula: its one topic has no name, and stands for any.
    pub is_formula: bool,
}

/// The specification cannot be used; the reasons have been shown.
#[derive(Debug)]
pub struct Refused;

impl Specification {
    /// Reads a file; `.rye` or [`Syntax::Rye`] is one Reelay expression.
    ///
    /// # Errors
    /// [`Refused`], after every mistake was shown on standard error.
    pub fn from_file(path: &Path, syntax: Syntax) -> Result<Specification, Refused> {
        let source = path.display().to_string();
        let read = if path == Path::new("-") {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        } else {
            std::fs::read_to_string(path)
        };
        let text = match read {
            Ok(text) => text,
            Err(error) => {
                crate::complain(&format!("cannot read the specification {source}: {error}"));
                return Err(Refused);
            }
        };
        let rye = syntax == Syntax::Rye || path.extension().is_some_and(|e| e == "rye");
        let outcome =
            if rye { rondel_spec::parse_rye(&text, None, &stem(path)) } else { rondel_spec::parse(&text) };
        Specification::build(outcome, &text, &source, rye)
    }

    /// Takes a text in Rondel's language that came from `source`.
    ///
    /// # Errors
    /// [`Refused`], after every mistake was shown on standard error.
    pub fn from_text(text: &str, source: &str) -> Result<Specification, Refused> {
        Specification::build(rondel_spec::parse(text), text, source, false)
    }

    /// Takes one formula.
    ///
    /// # Errors
    /// [`Refused`], after every mistake was shown on standard error.
    pub fn from_formula(formula: &str, syntax: Syntax) -> Result<Specification, Refused> {
        let outcome = match syntax {
            Syntax::Rondel => rondel_spec::parse_formula(formula),
            Syntax::Rye => rondel_spec::parse_rye(formula, None, "formula"),
        };
        Specification::build(outcome, formula, "formula", true)
    }

    /// Takes what the arguments give: a file or a formula.
    ///
    /// # Errors
    /// [`Refused`], after every mistake was shown on standard error.
    pub fn from_arguments(
        file: Option<&PathBuf>,
        formula: Option<&str>,
        syntax: Syntax,
    ) -> Result<Specification, Refused> {
        match (file, formula) {
            (Some(path), _) => Specification::from_file(path, syntax),
            (None, Some(formula)) => Specification::from_formula(formula, syntax),
            (None, None) => {
                crate::complain("nothing to check: give a specification file or --formula");
                Err(Refused)
            }
        }
    }

    /// Whether time brings verdicts by itself.
    pub fn is_timed(&self) -> bool {
        !self.spec.machines.is_empty()
            || self.spec.properties.iter().any(|p| p.time != rondel_spec::TimeModel::Steps)
    }

    fn build(outcome: Outcome, text: &str, source: &str, is_formula: bool) -> Result<Specification, Refused> {
        let colour = std::io::stderr().is_terminal();
        for diagnostic in &outcome.diagnostics {
            crate::say(diagnostic.render(source, text, colour).trim_end());
        }
        let spec = outcome.spec.ok_or(Refused)?;
        if spec.properties.is_empty() {
            crate::complain(&format!("{source} has no property, so there is nothing to check"));
            return Err(Refused);
        }
        match Program::compile(&spec) {
            Ok(program) => Ok(Specification { spec, program: Arc::new(program), is_formula }),
            Err(error) => {
                crate::complain(&format!("{source}: {error}"));
                Err(Refused)
            }
        }
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "formula".to_owned(), |s| s.to_string_lossy().into_owned())
}
