//! Single runs of a study, as lines of JSON: the machine first, then a line for each run.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;

use crate::failure::{Result, io_error};
use crate::machine::Machine;

/// The file of a study's runs.
#[derive(Debug)]
pub struct Runs {
    study: &'static str,
    out: Option<(File, PathBuf)>,
}

impl Runs {
    /// Creates the file, if one is named, and writes the machine.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(study: &'static str, path: Option<&Path>) -> Result<Runs> {
        let Some(path) = path else { return Ok(Runs { study, out: None }) };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(io_error(folder.display().to_string()))?;
        }
        let file = File::create(path).map_err(io_error(path.display().to_string()))?;
        let mut runs = Runs { study, out: Some((file, path.to_owned())) };
        runs.line(&json!({ "study": study, "machine": Machine::this() }))?;
        Ok(runs)
    }

    /// Writes a run. Runs before a failure stay in the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, run: &impl Serialize) -> Result<()> {
        self.line(&json!({ "study": self.study, "run": run }))
    }

    fn line(&mut self, value: &serde_json::Value) -> Result<()> {
        let Some((file, path)) = &mut self.out else { return Ok(()) };
        file.write_all(format!("{value}\n").as_bytes()).map_err(io_error(path.display().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::Folder;

    #[test]
    fn a_run_is_a_line() {
        let folder = Folder::new("runs").unwrap();
        let path = folder.write("runs.jsonl", b"").unwrap();
        let mut runs = Runs::create("mesa", Some(&path)).unwrap();
        runs.add(&[1, 2]).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0]["machine"]["cores"].is_u64(), "{text}");
        assert_eq!(lines[1], json!({ "study": "mesa", "run": [1, 2] }));
        Runs::create("mesa", None).unwrap().add(&3).unwrap();
    }
}
