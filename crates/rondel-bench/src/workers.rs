//! The time of checks whose evaluation is spread over threads.

use serde::Serialize;

use crate::failure::Result;
use crate::file;
use crate::language::{SPREAD, work};
use crate::table::{Table, median};
use crate::traces::Folder;
use crate::turns::Programs;

/// The numbers of workers.
const COUNTS: [usize; 4] = [1, 2, 4, 8];

/// The time of a workload with a number of workers.
#[derive(Clone, Debug, Serialize)]
pub struct Spread {
    /// The name of the workload.
    pub name: String,
    /// The number of workers.
    pub workers: usize,
    /// The number of events in the trace.
    pub events: u64,
    /// Seconds from the start of the process to its end, median.
    pub seconds: f64,
    /// CPU seconds of the process, median.
    pub cpu_seconds: f64,
    /// The seconds of one worker over these.
    pub speed: f64,
}

/// Measures the workloads of requests, dates and a thousand properties, each `repeat` times with each number of workers,
/// by turns.
///
/// # Errors
/// When `rondel` fails, or has not checked all events.
pub fn measure(programs: &Programs, length: u64, repeat: usize) -> Result<Vec<Spread>> {
    let folder = Folder::new("workers")?;
    let mut results: Vec<Spread> = Vec::new();
    for number in SPREAD {
        let Some(work) = work(number, length)? else { continue };
        let trace = folder.write("work.jsonl", &work.trace)?;
        let specification = folder.write("work.rondel", work.specification.as_bytes())?;
        let mut runs = [(); COUNTS.len()].map(|()| Vec::new());
        for _ in 0..repeat.max(1) {
            for (workers, runs) in COUNTS.into_iter().zip(&mut runs) {
                let mut arguments: Vec<String> =
                    work.options.iter().map(|&option| option.to_owned()).collect();
                arguments.extend([format!("--workers={workers}"), specification.display().to_string()]);
                runs.push(file::check(&programs.rondel, &arguments, &trace, work.events)?);
            }
        }
        folder.remove(&trace);
        let of_one = median(&runs[0].iter().map(|run| run.seconds).collect::<Vec<_>>());
        for (workers, runs) in COUNTS.into_iter().zip(runs) {
            let seconds = median(&runs.iter().map(|run| run.seconds).collect::<Vec<_>>());
            let cpu_seconds = median(&runs.iter().map(|run| run.cpu_seconds).collect::<Vec<_>>());
            let (name, speed) = (work.name.to_owned(), of_one / seconds);
            crate::say(&format!(
                "{name}, {workers} workers: {seconds:.3} s, {speed:.2} times the speed of one"
            ));
            results.push(Spread { name, workers, events: work.events, seconds, cpu_seconds, speed });
        }
    }
    Ok(results)
}

/// Returns the table.
pub fn table(results: &[Spread]) -> Table {
    let mut table = Table::new("Workers", &["what", "workers", "events", "s", "CPU s", "speed"]);
    for r in results {
        table.row(vec![
            r.name.clone(),
            r.workers.to_string(),
            r.events.to_string(),
            format!("{:.3}", r.seconds),
            format!("{:.3}", r.cpu_seconds),
            format!("{:.2}", r.speed),
        ]);
    }
    table.note(
        "`rondel check --emit violations --workers N` as a process, medians of its time from start to end. Lines are decoded \
         on as many threads as there are cores. The speed is that of one worker, which is the thread that reads, as 1.",
    );
    table
}
