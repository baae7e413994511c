//! Python, for independent clients, readers and writers.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::notice;

/// Returns the Python of `RONDEL_TEST_PYTHON`, or else of `.venv`, if it imports `modules`, such as `zenoh, cyclonedds`.
///
/// Without one, prints that the test is skipped; fails the test on CI (`CI` is set) or if `RONDEL_TEST_PYTHON` is set.
pub fn python(test: &str, modules: &str) -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python3");
    let candidate = std::env::var_os("RONDEL_TEST_PYTHON").map(PathBuf::from);
    let candidate = candidate.or_else(|| Some(own).filter(|path| path.exists()));
    let works = |path: &PathBuf| {
        let imported = Command::new(path).args(["-c", &format!("import {modules}")]).output();
        imported.is_ok_and(|output| output.status.success())
    };
    if let Some(python) = candidate.filter(works) {
        return Some(python);
    }
    let message = format!(
        "{test}: SKIPPED, NOT TESTED: no Python that imports {modules}; `make .venv/ready` installs it, or set \
         RONDEL_TEST_PYTHON"
    );
    assert!(["CI", "RONDEL_TEST_PYTHON"].iter().all(|name| std::env::var_os(name).is_none()), "{message}");
    notice(&message);
    None
}
