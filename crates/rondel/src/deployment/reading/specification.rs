//! The specification of a deployment: a file, a formula, or the topics of a synchronizer.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::Sections;
use crate::deployment::yaml::Mistakes;
use crate::specification::{Reading, Specification, Syntax, TimeModel};

impl Sections<'_> {
    /// The specification, or that of a synchronizer: only its topics.
    pub(super) fn read_specification(
        &self,
        folder: &Path,
        recordings: &[PathBuf],
        mistakes: &mut Mistakes,
    ) -> Option<Specification> {
        let schemas = self.schemas.map_or_else(Vec::new, |item| item.items());
        let schemas =
            schemas.iter().filter_map(|item| Some(folder.join(item.text("schemas", mistakes)?))).collect();
        let Some(item) = self.synchronize else {
            return self.load_specification(folder, schemas, recordings, mistakes);
        };
        if self.file.or(self.formula).is_some() {
            mistakes.at(item, "use either `synchronize:` or `specification:` (or `formula:`), not both: a synchronizer checks nothing");
        }
        let names =
            self.topics.map_or_else(Vec::new, |item| item.entries("topics", &mut Mistakes::default()));
        if names.is_empty() {
            mistakes.at(item, "nothing to synchronize: name the source of each topic under `topics:`");
        }
        Specification::of_topics(names.into_iter().map(|(name, ..)| name)).ok()
    }

    /// Loads the file or the formula.
    fn load_specification(
        &self,
        folder: &Path,
        schemas: Vec<PathBuf>,
        recordings: &[PathBuf],
        mistakes: &mut Mistakes,
    ) -> Option<Specification> {
        let (syntax, time) = (self.read_syntax(mistakes), self.read_time_model(mistakes));
        let reading = &Reading { syntax, time, unbounded: false, schemas, recordings: recordings.to_owned() };
        match (self.file, self.formula) {
            (Some(item), Some(_)) => {
                mistakes.at(item, "use either `specification:` or `formula:`, not both");
                None
            }
            (None, None) => {
                mistakes.at(
                    self.root,
                    "nothing to check: name a file with `specification:`, or write a formula with `formula:`",
                );
                None
            }
            (Some(item), None) => {
                let path = folder.join(item.text("specification", mistakes)?);
                let loaded = Specification::from_file(&path, reading);
                loaded
                    .map_err(|_| {
                        mistakes.at(item, format!("the specification {} cannot be used", path.display()))
                    })
                    .ok()
            }
            (None, Some(item)) => {
                let text = item.text("formula", mistakes)?;
                let loaded = Specification::from_formula(&text, reading);
                loaded.map_err(|_| mistakes.at(item, "the formula cannot be used")).ok()
            }
        }
    }

    fn read_syntax(&self, mistakes: &mut Mistakes) -> Syntax {
        match self.syntax.map(|item| (item, item.text("syntax", mistakes))) {
            None => Syntax::Rondel,
            Some((_, Some(text))) if text == "rondel" => Syntax::Rondel,
            Some((_, Some(text))) if text == "rye" => Syntax::Rye,
            Some((item, text)) => {
                if text.is_some() {
                    mistakes.at(item, "`syntax` must be rondel or rye");
                }
                Syntax::Rondel
            }
        }
    }

    fn read_time_model(&self, mistakes: &mut Mistakes) -> Option<TimeModel> {
        self.time.and_then(|item| {
            let text = item.text("time", mistakes)?;
            let model = TimeModel::from_str(&text, false);
            model.map_err(|_| mistakes.at(item, "`time` must be steps, points, dense or linear")).ok()
        })
    }
}
