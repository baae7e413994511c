//! Seeds of random tests: which ones run, and what remains of one that fails.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Folder in a crate with the seeds of cases that failed once, a file per test.
const FOLDER: &str = "random-regressions";

/// Returns the seeds of a random test: those that failed before, then `0..usual`.
///
/// `RONDEL_SEED=17` runs one seed alone, `RONDEL_CASES=10` runs ten times as many. If the test fails before it takes the
/// next seed, the current one is printed, and kept in `random-regressions/NAME.txt` of the crate.
pub fn seeds(name: &str, usual: u64) -> Seeds {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(|root| Path::new(&root).join(FOLDER));
    Seeds::new(folder, name, setting("RONDEL_SEED"), cases(usual))
}

/// Returns the seeds of a random test that has other ones in every run: those that failed before, then `usual` ones that
/// begin at the time of the clock. The rest is as in [`seeds`].
pub fn fresh_seeds(name: &str, usual: u64) -> Seeds {
    let clock = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let mut seeds = seeds(name, usual);
    seeds.usual = clock.saturating_add(seeds.usual.start)..clock.saturating_add(seeds.usual.end);
    seeds
}

/// Returns the number of random cases: `usual`, multiplied by `RONDEL_CASES`.
pub fn cases(usual: u64) -> u64 {
    usual.saturating_mul(setting("RONDEL_CASES").unwrap_or(1))
}

/// Whether one seed runs alone: then counts over all seeds are not checked.
pub fn is_replay() -> bool {
    setting("RONDEL_SEED").is_some()
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// The seeds of a random test, in order.
pub struct Seeds {
    name: String,
    /// File of the seeds that failed before. None if the test was not started by Cargo.
    file: Option<PathBuf>,
    kept: std::vec::IntoIter<u64>,
    usual: std::ops::Range<u64>,
    current: Option<u64>,
}

impl Seeds {
    fn new(folder: Option<PathBuf>, name: &str, replayed: Option<u64>, count: u64) -> Seeds {
        let file = folder.map(|folder| folder.join(format!("{name}.txt")));
        let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        let (kept, usual) = match replayed {
            Some(seed) => (vec![seed], 0..0),
            None => (kept(&text), 0..count),
        };
        Seeds { name: name.to_owned(), file, kept: kept.into_iter(), usual, current: None }
    }

    /// Returns the number of seeds that are left.
    pub fn left(&self) -> u64 {
        self.kept.len() as u64 + self.usual.end - self.usual.start
    }

    /// Adds a seed to the file of failed ones, unless it is there already. Only a test that collects its failures calls
    /// this. Returns whether the seed is in the file now.
    pub fn keep(&self, seed: u64) -> bool {
        let Some(file) = &self.file else { return false };
        let mut text = std::fs::read_to_string(file).unwrap_or_default();
        if kept(&text).contains(&seed) {
            return true;
        }
        if text.is_empty() {
            text += "# Seeds of random cases that failed once. They run first, always: keep this file in the repository.\n";
        }
        let _ = writeln!(text, "{seed}");
        let _ = std::fs::create_dir_all(file.parent().unwrap());
        std::fs::write(file, text).is_ok()
    }
}

/// Returns the seeds in a file, one a line. A comment begins with `#`.
fn kept(text: &str) -> Vec<u64> {
    text.lines().filter_map(|line| line.split('#').next().unwrap_or_default().trim().parse().ok()).collect()
}

impl Iterator for Seeds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.current = self.kept.next().or_else(|| self.usual.next());
        self.current
    }
}

impl Drop for Seeds {
    fn drop(&mut self) {
        let Some(seed) = self.current.filter(|_| std::thread::panicking()) else { return };
        let is_kept = self.keep(seed);
        eprintln!("{}: seed {seed} fails: RONDEL_SEED={seed} runs it alone", self.name);
        match &self.file {
            Some(file) if is_kept => eprintln!("it is kept in {}", file.display()),
            _ => eprintln!("it could not be kept"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::Folder;

    fn seeds_in(folder: &Folder, replayed: Option<u64>) -> Seeds {
        Seeds::new(Some(folder.as_path().join(FOLDER)), "some", replayed, 5)
    }

    #[test]
    fn failing_seeds_are_kept_and_run_first() {
        let folder = Folder::new();
        assert_eq!(seeds_in(&folder, None).collect::<Vec<u64>>(), [0, 1, 2, 3, 4]);
        assert!(folder.names().is_empty(), "nothing has failed");
        for _ in 0..2 {
            let run = || seeds_in(&folder, None).for_each(|seed| assert_ne!(seed, 3));
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        }
        let again = seeds_in(&folder, None);
        assert_eq!(again.left(), 6);
        assert_eq!(again.collect::<Vec<u64>>(), [3, 0, 1, 2, 3, 4]);
        assert_eq!(seeds_in(&folder, Some(17)).collect::<Vec<u64>>(), [17]);
    }
}
