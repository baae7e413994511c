//! The machine, the date and the command of a measurement: without them no figure means anything.

use std::time::{SystemTime, UNIX_EPOCH};

use rondel_event::calendar;
use serde::Serialize;

/// The head of a report.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// The number of cores that this process may use.
    pub cores: usize,
    /// The kernel and its version.
    pub kernel: String,
    /// The load average of the minute before: on a quiet machine it is well below 1.
    pub load: String,
    /// The command line.
    pub command: String,
    /// The day, in UTC.
    pub date: String,
    /// Rondel's version.
    pub version: String,
}

impl Machine {
    /// Reads the state of this machine.
    pub fn this() -> Machine {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let unknown = || "unknown".to_owned();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Machine {
            cpu: cpu(&read("/proc/cpuinfo")).unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: format!(
                "{} {}",
                read("/proc/sys/kernel/ostype").trim(),
                read("/proc/sys/kernel/osrelease").trim()
            ),
            load: read("/proc/loadavg").split(' ').next().map_or_else(unknown, str::to_owned),
            command: command(std::env::args()),
            date: date(since.as_secs()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Returns a line for a report.
    pub fn line(&self) -> String {
        let Machine { cpu, cores, kernel, load, command, date, version } = self;
        format!(
            "Rondel {version}, {date}: {cpu}, {cores} cores, {kernel}, load {load} before the start. `{command}`"
        )
    }
}

fn cpu(info: &str) -> Option<String> {
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Returns the command line without the folder of the program.
fn command(mut arguments: impl Iterator<Item = String>) -> String {
    arguments.next();
    std::iter::once("rondel-bench".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Returns the date of a time, given in seconds since 1970.
fn date(seconds: u64) -> String {
    let (year, month, day) = calendar::date_of_day((seconds / 86_400) as i64);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_date() {
        assert_eq!(date(20_788 * 86_400 + 86_399), "2026-12-01");
    }

    #[test]
    fn the_processor_has_a_name() {
        assert_eq!(cpu("processor\t: 0\nmodel name\t: A B\n"), Some("A B".to_owned()));
        assert_eq!(cpu(""), None);
    }

    #[test]
    fn command_has_no_folder() {
        let arguments = ["/some/where/rondel-bench", "all"].map(str::to_owned);
        assert_eq!(command(arguments.into_iter()), "rondel-bench all");
    }
}
