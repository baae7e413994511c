//! The study of MESA: copies of sfdps-seq-order on messages about flights, from a file.
//!
//! All messages about the state of a flight with one call sign have strictly increasing dates; `completed` ends a flight.
//! A few messages with an older date are planted: every run must report each of them once for each copy.

mod flights;

use std::path::Path;

use serde::Serialize;

use crate::failure::{Result, same};
use crate::file::{self, Measured};
use crate::runs::Runs;
use crate::say;
use crate::table::{Table, median};
use crate::traces::Folder;
pub use flights::Form;
use flights::{Flights, flights};

/// An arrangement of copies and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// One thread reads, decodes, finds the instance, and evaluates.
    Index,
    /// Messages are decoded and handed over to one thread, which finds the instance and evaluates.
    Dispatcher,
    /// The instances are divided among this number of threads by their call signs.
    Bounded(usize),
}

/// The arrangements that are measured.
pub const ARRANGEMENTS: [Arrangement; 5] = [
    Arrangement::Index,
    Arrangement::Dispatcher,
    Arrangement::Bounded(2),
    Arrangement::Bounded(4),
    Arrangement::Bounded(8),
];

impl Arrangement {
    fn name(self) -> &'static str {
        match self {
            Arrangement::Index => "index in the monitor",
            Arrangement::Dispatcher => "dispatcher",
            Arrangement::Bounded(_) => "bounded",
        }
    }

    fn workers(self) -> usize {
        match self {
            Arrangement::Index | Arrangement::Dispatcher => 1,
            Arrangement::Bounded(workers) => workers,
        }
    }

    /// Returns the arguments of `rondel check`, without specification and trace.
    fn arguments(self) -> Vec<String> {
        let mut arguments = vec!["--emit=violations".to_owned(), format!("--workers={}", self.workers())];
        match self {
            Arrangement::Index => arguments.push("--jobs=1".to_owned()),
            Arrangement::Dispatcher => arguments.push("--jobs=2".to_owned()),
            Arrangement::Bounded(_) => {}
        }
        arguments
    }
}

/// The plan of the study.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The number of messages.
    pub messages: u64,
    /// The number of copies of the property.
    pub copies: u64,
    /// The numbers of call signs.
    pub keys: Vec<u64>,
    /// The number of runs of each arrangement, by turns.
    pub repeat: usize,
    /// The form of the trace.
    pub form: Form,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The form of the trace.
    pub form: Form,
    /// The arrangement.
    pub arrangement: &'static str,
    /// The number of threads for evaluation.
    pub workers: usize,
    /// The number of call signs.
    pub keys: u64,
    /// The number of copies of the property.
    pub copies: u64,
    /// The number of messages.
    pub messages: u64,
    /// The number of violations reported, those that were planted for each copy.
    pub violations: u64,
    /// The turn, from 0.
    pub turn: usize,
    /// Seconds from the start of the process to its end.
    pub seconds: f64,
    /// CPU seconds of the process.
    pub cpu_seconds: f64,
    /// Peak of its resident memory, in bytes.
    pub peak_bytes: u64,
}

/// Measures every arrangement with every number of call signs, by turns.
///
/// # Errors
/// When `rondel` fails, has not checked all messages, or does not report the planted violations.
pub fn measure(rondel: &Path, plan: &Plan, runs: &mut Runs) -> Result<Vec<Run>> {
    let folder = Folder::new("mesa")?;
    let path = folder.write("flights.rondel", plan.form.specification(plan.copies).as_bytes())?;
    let mut all = Vec::new();
    for &keys in &plan.keys {
        let Flights { name, content, violations } = flights(plan.form, plan.messages, keys)?;
        let trace = folder.write(name, &content)?;
        for turn in 0..plan.repeat.max(1) {
            for arrangement in ARRANGEMENTS {
                let arguments = [arrangement.arguments(), vec![path.display().to_string()]].concat();
                let Measured { checked, peak_bytes, verdicts } =
                    file::measure(rondel, &arguments, &trace, plan.messages)?;
                let (name, workers) = (arrangement.name(), arrangement.workers());
                let planted = violations * plan.copies;
                same(|| format!("{name}, {workers} workers: violations"), planted, verdicts)?;
                let run = Run {
                    form: plan.form,
                    arrangement: name,
                    workers,
                    keys,
                    copies: plan.copies,
                    messages: plan.messages,
                    violations: verdicts,
                    turn,
                    seconds: checked.seconds,
                    cpu_seconds: checked.cpu_seconds,
                    peak_bytes,
                };
                say(&format!("{keys} call signs, {name}, {workers} workers: {:.2} s", run.seconds));
                runs.add(&run)?;
                all.push(run);
            }
        }
        folder.remove(&trace);
    }
    Ok(all)
}

/// The median figures of an arrangement with a number of call signs.
struct Medians {
    seconds: f64,
    cpu_seconds: f64,
    peak_bytes: f64,
    messages: u64,
    copies: u64,
}

fn medians(runs: &[Run], arrangement: Arrangement, keys: u64) -> Option<Medians> {
    let of: Vec<&Run> = runs
        .iter()
        .filter(|run| run.keys == keys && run.arrangement == arrangement.name())
        .filter(|run| run.workers == arrangement.workers())
        .collect();
    let first = of.first()?;
    let median_of = |figure: fn(&Run) -> f64| median(&of.iter().map(|run| figure(run)).collect::<Vec<_>>());
    Some(Medians {
        seconds: median_of(|run| run.seconds),
        cpu_seconds: median_of(|run| run.cpu_seconds),
        peak_bytes: median_of(|run| run.peak_bytes as f64),
        messages: first.messages,
        copies: first.copies,
    })
}

/// Seconds of the study with a number of actors, on 20 hardware threads (paper).
const PAPER_ACTORS: [(u64, f64); 6] =
    [(125, 169.0), (250, 161.0), (500, 167.0), (1000, 169.0), (2000, 183.0), (3215, 208.0)];
/// Speed of an arrangement over that of the one before it (paper): dispatcher, concurrent, bounded.
const PAPER_STEPS: [f64; 3] = [1.78, 2.63, 1.22];

/// Returns the tables: all arrangements, the arrangements of the study, its numbers of actors.
pub fn tables(runs: &[Run]) -> [Table; 3] {
    let mut keys: Vec<u64> = runs.iter().map(|run| run.keys).collect();
    keys.sort_unstable();
    keys.dedup();
    [figures(runs, &keys), steps(runs, &keys), actors(runs, &keys)]
}

fn figures(runs: &[Run], keys: &[u64]) -> Table {
    let heads = [
        "call signs",
        "arrangement",
        "workers",
        "s",
        "CPU s",
        "service time, us per message",
        "M steps per s",
        "peak memory, MB (10^6 bytes)",
    ];
    let mut table = Table::new("sfdps-seq-order", &heads);
    for &keys in keys {
        for arrangement in ARRANGEMENTS {
            let Some(of) = medians(runs, arrangement, keys) else { continue };
            table.row(vec![
                keys.to_string(),
                arrangement.name().to_owned(),
                arrangement.workers().to_string(),
                format!("{:.2}", of.seconds),
                format!("{:.2}", of.cpu_seconds),
                format!("{:.2}", of.cpu_seconds * 1e6 / of.messages as f64),
                format!("{:.1}", of.messages as f64 * of.copies as f64 / of.seconds / 1e6),
                format!("{:.1}", of.peak_bytes / 1e6),
            ]);
        }
    }
    table.note(
        "`rondel check --emit violations` as a process from start to end, messages decoded, medians of the turns. The \
         service time is the CPU time of the process over its messages. A step is one copy of the property evaluated for \
         one message; the study has 2.5 M steps per second at best on 20 hardware threads (paper).",
    );
    table
}

fn steps(runs: &[Run], keys: &[u64]) -> Table {
    let heads = ["arrangement", "s", "speed over the one before", "the same (paper)"];
    let mut table = Table::new("The four arrangements", &heads);
    let Some(&most) = keys.last() else { return table };
    let seconds = |arrangement| medians(runs, arrangement, most).map(|of| of.seconds);
    let bounded =
        ARRANGEMENTS.iter().filter(|a| matches!(a, Arrangement::Bounded(_))).filter_map(|a| seconds(*a));
    let bounded = bounded.fold(f64::INFINITY, f64::min);
    let [index, dispatcher] =
        [Arrangement::Index, Arrangement::Dispatcher].map(|a| seconds(a).unwrap_or(f64::NAN));
    let [to_dispatcher, to_concurrent, to_bounded] = PAPER_STEPS.map(|step| format!("{step:.2}"));
    let time = |s: f64| format!("{s:.2}");
    let row = |name: &str, own: String, step: String, paper: String| vec![name.to_owned(), own, step, paper];
    let none = || "-".to_owned();
    table.row(row("index in the monitor", time(index), none(), none()));
    table.row(row("dispatcher", time(dispatcher), time(index / dispatcher), to_dispatcher));
    table.row(row("concurrent: an actor per key", none(), none(), to_concurrent));
    table.row(row("bounded, fastest", time(bounded), time(dispatcher / bounded), to_bounded));
    table.note(format!(
        "With {most} call signs. An instance of `for each` is no thread, so that nothing here is the concurrent \
         arrangement; the step to the bounded one is taken from the dispatcher."
    ));
    table
}

fn actors(runs: &[Run], keys: &[u64]) -> Table {
    let heads = [
        "monitors",
        "index, s",
        "over the first",
        "bounded, 2 workers, s",
        "over the first",
        "actors (paper), s",
        "over the first",
    ];
    let mut table = Table::new("From 125 to 3,215 monitors", &heads);
    let first = |arrangement| {
        keys.first().and_then(|&keys| medians(runs, arrangement, keys)).map_or(f64::NAN, |of| of.seconds)
    };
    let arrangements = [Arrangement::Index, Arrangement::Bounded(2)];
    for &keys in keys {
        let mut cells = vec![keys.to_string()];
        for arrangement in arrangements {
            let seconds = medians(runs, arrangement, keys).map_or(f64::NAN, |of| of.seconds);
            cells.extend([format!("{seconds:.2}"), format!("{:.2}", seconds / first(arrangement))]);
        }
        let paper = PAPER_ACTORS.iter().find(|(actors, _)| *actors == keys).map(|(_, seconds)| *seconds);
        cells.extend(paper.map_or(["-".to_owned(), "-".to_owned()], |seconds| {
            [format!("{seconds:.0}"), format!("{:.2}", seconds / PAPER_ACTORS[0].1)]
        }));
        table.row(cells);
    }
    table.note(
        "Here a monitor is the state of one call sign in all copies, and the trace has as many call signs. In the study \
         the trace always has 3,215 call signs, which the actors share (paper).",
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrangements_have_arguments() {
        assert_eq!(Arrangement::Index.arguments(), ["--emit=violations", "--workers=1", "--jobs=1"]);
        assert_eq!(Arrangement::Bounded(4).arguments(), ["--emit=violations", "--workers=4"]);
    }

    #[test]
    fn tables_have_the_figures_of_the_paper() {
        let run = |arrangement: Arrangement, seconds| Run {
            form: Form::default(),
            arrangement: arrangement.name(),
            workers: arrangement.workers(),
            keys: 125,
            copies: 2000,
            messages: 200_000,
            violations: 0,
            turn: 0,
            seconds,
            cpu_seconds: seconds,
            peak_bytes: 1_000_000,
        };
        let runs: Vec<Run> =
            ARRANGEMENTS.into_iter().zip([4.0, 4.0, 2.0, 3.0, 5.0]).map(|(a, s)| run(a, s)).collect();
        let [figures, steps, actors] = tables(&runs).map(|table| table.markdown());
        assert!(
            figures.contains("| 125 | index in the monitor | 1 | 4.00 | 4.00 | 20.00 | 100.0 | 1.0 |"),
            "{figures}"
        );
        assert!(steps.contains("| bounded, fastest | 2.00 | 2.00 | 1.22 |"), "{steps}");
        assert!(actors.contains("| 125 | 4.00 | 1.00 | 2.00 | 1.00 | 169 | 1.00 |"), "{actors}");
    }
}
