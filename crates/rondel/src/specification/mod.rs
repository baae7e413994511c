//! Getting a specification from a file or the command line, with its diagnostics shown.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rondel_engine::Program;
#[cfg(feature = "repl")]
use rondel_spec::Span;
use rondel_spec::{Diagnostic, Outcome, ParseOptions, SourcePlace, Sources};

use crate::schemas::Schemas;
use crate::schemas::text_files::{read_text, text_of};

mod claims;
pub mod files;

pub use claims::claims;

/// The languages in which a property can be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Syntax {
    /// Rondel's own language
    #[default]
    Rondel,
    /// Reelay's expressions, with Reelay's meaning
    Rye,
}

/// The models of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TimeModel {
    /// Every event is one step, and bounds count steps
    Steps,
    /// Bounds are times between events; truth changes at events only
    Points,
    /// Bounds are times, and properties have a truth value at every time
    Dense,
    /// As dense, and numbers between messages are interpolated linearly
    Linear,
}

/// Options for reading a specification.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Reading {
    /// The language of the specification
    #[arg(long, value_enum, default_value = "rondel")]
    pub syntax: Syntax,
    /// The time model of properties that do not name one (default: dense where bounds have units of time,
    /// otherwise steps)
    #[arg(long, value_enum)]
    pub time: Option<TimeModel>,
    /// Let quantified formulas keep every value that ever arrived, as `@unbounded` does before a property
    #[arg(long)]
    pub unbounded: bool,
    /// A file or folder with definitions of message types: *.msg, *.idl, *.desc, *.binpb, *.pb, *.fbs, *.bfbs, *.avsc (may be repeated)
    #[arg(long, value_name = "PATH")]
    pub schemas: Vec<PathBuf>,
    /// Recordings whose types are known too, after those of the files and of an installation of ROS 2.
    #[arg(skip)]
    pub recordings: Vec<PathBuf>,
}

impl Reading {
    /// The options, and whether they were given: a deployment file has these settings itself.
    pub fn given(&self) -> [(bool, &'static str); 4] {
        [
            (self.syntax != Syntax::Rondel, "--syntax"),
            (self.time.is_some(), "--time"),
            (self.unbounded, "--unbounded"),
            (!self.schemas.is_empty(), "--schemas"),
        ]
    }

    /// Adds the attributes that the options stand for.
    fn complete(&self, mut outcome: Outcome) -> Outcome {
        let properties = outcome.spec.iter_mut().flat_map(|spec| &mut spec.properties);
        for property in properties.filter(|_| self.unbounded) {
            if !property.attributes.iter().any(|(name, _)| name == "unbounded") {
                property.attributes.push(("unbounded".to_owned(), String::new()));
            }
        }
        outcome
    }

    /// Reads the definitions of message types.
    ///
    /// # Errors
    /// [`Refused`], after the mistake was shown on standard error.
    fn read_schemas(&self) -> Result<Schemas, Refused> {
        let schemas = Schemas::read(&self.schemas).map_err(|error| {
            crate::complain(&error);
            Refused
        })?;
        Ok(schemas.with_recordings(&self.recordings))
    }

    fn options(&self) -> ParseOptions {
        ParseOptions {
            time: self.time.map(|time| match time {
                TimeModel::Steps => rondel_spec::TimeModel::Steps,
                TimeModel::Points => rondel_spec::TimeModel::Points,
                TimeModel::Dense | TimeModel::Linear => rondel_spec::TimeModel::Dense,
            }),
            linear: self.time == Some(TimeModel::Linear),
        }
    }
}

/// A specification, ready to run, with its text.
#[derive(Clone, Debug)]
pub struct Specification {
    checked: rondel_runtime::Specification,
    /// The definitions of message types.
    pub schemas: Arc<Schemas>,
    /// Its origin, mostly a file.
    pub source: String,
    /// Its text, with those of the files that it imports.
    pub sources: Arc<Sources>,
}

impl std::ops::Deref for Specification {
    type Target = rondel_runtime::Specification;

    fn deref(&self) -> &rondel_runtime::Specification {
        &self.checked
    }
}

/// Whether a file is a deployment, by its name.
pub fn is_deployment(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml")
}

/// Whether a file is a specification, by its name.
pub fn is_specification(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "rondel" || ending == "rye")
}

/// Whether a file is a recording, by its name.
pub fn is_recording(path: &Path) -> bool {
    let endings = ["jsonl", "ndjson", "mcap", "bag", "ulg", "db3", "csv", "parquet"];
    path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known))
}

/// Returns the message about a deployment in the place of a specification.
pub fn wants_specification(deployment: &str) -> String {
    format!(
        "{deployment} is a deployment, and this command takes a specification: name the file that stands behind \
         `specification:` in it"
    )
}

/// Properties, each as a specification of its own, and warnings.
#[cfg(feature = "repl")]
pub type Found = (Vec<Specification>, Vec<Diagnostic>);

/// Reasons why properties cannot be used.
#[cfg(feature = "repl")]
#[derive(Debug)]
pub struct Mistakes {
    /// Mistakes in the text, and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Refusals of the engine for reasons without a place in the text.
    pub further: Vec<String>,
}

/// A text that is edited.
#[cfg(feature = "page")]
#[derive(Debug)]
pub struct Edited {
    /// The specification; `None` if it cannot be used, or has no property yet.
    pub specification: Option<Specification>,
    /// Mistakes and warnings, in order.
    pub diagnostics: Vec<Diagnostic>,
    /// Refusals of the engine for reasons without a place in the text.
    pub further: Vec<String>,
}

/// The specification cannot be used; the reasons have been shown.
#[derive(Debug)]
pub struct Refused;

/// Outcome of parsing and compiling a text: the specification if it can be used, mistakes and warnings
/// in order, and refusals of the engine without a place.
type Judgement = (Option<rondel_runtime::Specification>, Vec<Diagnostic>, Vec<String>);

impl Specification {
    /// Reads a file; `.rye` or [`Syntax::Rye`] is one Reelay expression.
    ///
    /// # Errors
    /// [`Refused`], after every mistake was shown on standard error.
    pub fn from_file(path: &Path, reading: &Reading) -> Result<Specification, Refused> {
        let source = path.display().to_string();
        if is_deployment(path) {
            crate::complain(&wants_specification(&source));
            return Err(Refused);
        }
        if is_recording(path) {
            crate::complain(&format!("{source} is a recording, and a specification should stand here"));
            return Err(Refused);
        }
        let read = if path == Path::new("-") { text_of(std::io::stdin().lock()) } else { read_text(path) };
        let text = match read {
            Ok(text) => text,
            Err(error) => {
                crate::complain(&format!("cannot read the specification {source}: {error}"));
                return Err(Refused);
            }
        };
        let rye = reading.syntax == Syntax::Rye || path.extension().is_some_and(|e| e == "rye");
        let schemas = reading.read_schemas()?;
        let options = &reading.options();
        let sources = if rye || path == Path::new("-") {
            Sources::alone(&source, &text)
        } else {
            files::load(path, &source, text)
        };
        let outcome = if rye {
            rondel_spec::parse_rye_with(sources.text(), None, &stem(path), options)
        } else {
            rondel_spec::parse_sources(&sources, options, Some(&schemas))
        };
        let specification = Specification::build(reading.complete(outcome), sources, rye)?;
        Ok(Specification { schemas: Arc::new(schemas), ..specification })
    }

    /// Takes a text in Rondel's language that came from `source`.
    ///
    /// # Errors
    /// [`Refused`], after every mistake was shown on standard error.
    pub fn from_text(text: &str, source: &str) -> Result<Specification, Refused> {
        Specification::build(rondel_spec::parse(text), Sources::alone(source, text), false)
    }

    /// Takes one formula.
    ///
    /// # Errors
    /// [`Refused`], after every mistake was shown on standard error.
    pub fn from_formula(formula: &str, reading: &Reading) -> Result<Specification, Refused> {
        let schemas = reading.read_schemas()?;
        let options = &reading.options();
        let outcome = match reading.syntax {
            Syntax::Rondel => rondel_spec::parse_formula_with(formula, options),
            Syntax::Rye => rondel_spec::parse_rye_with(formula, None, "formula", options),
        };
        let sources = Sources::alone("formula", formula);
        let specification = Specification::build(reading.complete(outcome), sources, true)?;
        Ok(Specification { schemas: Arc::new(schemas), ..specification })
    }

    /// Takes each property that is `wanted`, by its name and the place of that in the text, as a specification of its own;
    /// also returns the warnings. Asserts judge whole recordings, and are left out.
    ///
    /// # Errors
    /// The mistakes.
    #[cfg(feature = "repl")]
    pub fn of_properties(
        sources: &Sources,
        schemas: &Arc<Schemas>,
        wanted: impl Fn(&str, Span) -> bool,
    ) -> Result<Found, Mistakes> {
        let Outcome { spec, diagnostics } =
            rondel_spec::parse_sources(sources, &ParseOptions::default(), Some(&**schemas));
        let Some(whole) = spec else { return Err(Mistakes { diagnostics, further: Vec::new() }) };
        let mut own = Vec::new();
        for (i, property) in whole.properties.iter().enumerate() {
            let place = whole.places.property(i);
            if property.criterion.is_some() || !place.is_some_and(|place| wanted(&property.name, place)) {
                continue;
            }
            let (spec, _) = whole.part(property);
            let Ok(program) = Program::compile(&spec) else {
                let (mut refused, mut further) = (Vec::new(), Vec::new());
                for refusal in Program::refusals(&spec) {
                    match refusal.diagnose(&spec) {
                        Some(diagnostic) => refused.push(diagnostic),
                        None => further.push(refusal.to_string()),
                    }
                }
                return Err(Mistakes { diagnostics: refused, further });
            };
            let (spec, program) = (Arc::new(spec), Arc::new(program));
            own.push(Specification {
                checked: rondel_runtime::Specification { spec, program, is_formula: false },
                schemas: Arc::clone(schemas),
                source: sources.name().to_owned(),
                sources: Arc::new(sources.clone()),
            });
        }
        Ok((own, diagnostics))
    }

    /// Topics of these names, with nothing to check.
    ///
    /// # Errors
    /// [`Refused`] never, unless the engine refuses a program without properties.
    pub fn of_topics(names: impl Iterator<Item = String>) -> Result<Specification, Refused> {
        let checked = rondel_runtime::Specification::of_topics(names).map_err(|_| Refused)?;
        Ok(Specification { checked, schemas: Arc::default(), source: String::new(), sources: Arc::default() })
    }

    /// Reads the specification in the arguments: a file or a formula.
    ///
    /// # Errors
    /// [`Refused`], after every mistake was shown on standard error.
    pub fn from_arguments(
        file: Option<&PathBuf>,
        formula: Option<&str>,
        reading: &Reading,
    ) -> Result<Specification, Refused> {
        match (file, formula) {
            (Some(path), _) => Specification::from_file(path, reading),
            (None, Some(formula)) => Specification::from_formula(formula, reading),
            (None, None) => {
                crate::complain("nothing to check: give a specification file or --formula");
                Err(Refused)
            }
        }
    }

    /// The file, the line and the column of a place in the text.
    pub fn place(&self, offset: usize) -> SourcePlace<'_> {
        self.sources.place(offset)
    }

    /// The specification without its text.
    pub fn checked(&self) -> rondel_runtime::Specification {
        self.checked.clone()
    }

    /// Takes a text that is edited, with its mistakes; nothing is shown.
    #[cfg(feature = "page")]
    pub fn edited(sources: Sources, reading: &Reading, schemas: Schemas) -> Edited {
        let outcome = rondel_spec::parse_sources(&sources, &reading.options(), Some(&schemas));
        let (checked, diagnostics, further) = Specification::judge(reading.complete(outcome), false);
        let checked = checked.filter(|checked| !checked.spec.properties.is_empty());
        let specification = checked.map(|checked| Specification {
            checked,
            schemas: Arc::new(schemas),
            source: sources.name().to_owned(),
            sources: Arc::new(sources),
        });
        Edited { specification, diagnostics, further }
    }

    fn judge(outcome: Outcome, is_formula: bool) -> Judgement {
        let Outcome { spec, mut diagnostics } = outcome;
        let program = spec.as_ref().and_then(|spec| Program::compile(spec).ok());
        let mut further = Vec::new();
        if let (Some(spec), None) = (&spec, &program) {
            for refusal in Program::refusals(spec) {
                match refusal.diagnose(spec) {
                    Some(diagnostic) if diagnostics.contains(&diagnostic) => {}
                    Some(diagnostic) => diagnostics.push(diagnostic),
                    None => further.push(refusal.to_string()),
                }
            }
        }
        diagnostics.sort_by_key(|diagnostic| diagnostic.span);
        let checked = spec.zip(program).map(|(spec, program)| {
            let (spec, program) = (Arc::new(spec), Arc::new(program));
            rondel_runtime::Specification { spec, program, is_formula }
        });
        (checked, diagnostics, further)
    }

    fn build(outcome: Outcome, sources: Sources, is_formula: bool) -> Result<Specification, Refused> {
        let source = sources.name().to_owned();
        let (checked, diagnostics, further) = Specification::judge(outcome, is_formula);
        let colour = crate::output::terminal::colours_stderr();
        for diagnostic in &diagnostics {
            crate::say(diagnostic.render_in(&sources, colour).trim_end());
        }
        further.iter().for_each(|refusal| crate::complain(&format!("{source}: {refusal}")));
        let checked = checked.ok_or(Refused)?;
        if checked.spec.properties.is_empty() {
            crate::complain(&format!("{source} has no property, so there is nothing to check"));
            return Err(Refused);
        }
        Ok(Specification { checked, schemas: Arc::default(), source, sources: Arc::new(sources) })
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "formula".to_owned(), |s| s.to_string_lossy().into_owned())
}
