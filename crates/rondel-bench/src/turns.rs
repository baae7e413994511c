//! Two programs by turns, so that whatever else the machine does is the same for both.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::failure::Result;
use crate::file::{self, Checked};
use crate::table::{Table, median};

/// The measured program, and the one that it is compared with.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The measured program.
    pub rondel: PathBuf,
    /// The program that it is compared with.
    pub against: Option<PathBuf>,
}

/// The runs of one check by both programs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Turns {
    /// The measured program, turn by turn.
    pub rondel: Vec<Checked>,
    /// The program that it is compared with, turn by turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<Checked>,
}

impl Turns {
    /// Checks a trace once with each program. Each program comes first as often as the other.
    ///
    /// # Errors
    /// When a program fails, or has not checked all events.
    pub fn check(
        &mut self,
        programs: &Programs,
        arguments: &[String],
        trace: &Path,
        events: u64,
    ) -> Result<()> {
        let measured_first = self.rondel.len().is_multiple_of(2);
        for measured in [measured_first, !measured_first] {
            if measured {
                self.rondel.push(file::check(&programs.rondel, arguments, trace, events)?);
            } else if let Some(against) = &programs.against {
                self.against.push(file::check(against, arguments, trace, events)?);
            }
        }
        Ok(())
    }

    /// Adds the times of another trace, turn by turn.
    pub fn add(&mut self, other: &Turns) {
        for (own, other) in [(&mut self.rondel, &other.rondel), (&mut self.against, &other.against)] {
            own.resize(own.len().max(other.len()), Checked::default());
            for (own, other) in own.iter_mut().zip(other) {
                own.seconds += other.seconds;
                own.cpu_seconds += other.cpu_seconds;
                own.events += other.events;
            }
        }
    }

    /// Returns the CPU seconds of the measured program, turn by turn.
    pub fn cpu_seconds(&self) -> Vec<f64> {
        self.rondel.iter().map(|run| run.cpu_seconds).collect()
    }

    /// Returns the measured program's CPU time over that of the other: the median over the turns.
    fn ratio(&self) -> f64 {
        let turns = self.rondel.iter().zip(&self.against);
        median(&turns.map(|(rondel, against)| rondel.cpu_seconds / against.cpu_seconds).collect::<Vec<_>>())
    }
}

/// Returns the table that compares two programs, where two ran.
pub fn table(rows: &[(String, Turns)]) -> Option<Table> {
    if rows.iter().all(|(_, turns)| turns.against.is_empty()) {
        return None;
    }
    let heads = ["trace", "events", "median ns", "against", "ratio", "least ns", "against", "ratio"];
    let mut table = Table::new("By turns", &heads);
    for (name, turns) in rows {
        let all = [&turns.rondel, &turns.against]
            .map(|runs| runs.iter().copied().map(Checked::cpu_ns).collect::<Vec<_>>());
        let medians = all.each_ref().map(|ns| median(ns));
        let least = all.each_ref().map(|ns| ns.iter().copied().fold(f64::INFINITY, f64::min));
        let events = turns.rondel.first().map_or(0, |run| run.events);
        let mut cells = vec![name.clone(), events.to_string()];
        for ([rondel, against], ratio) in [(medians, turns.ratio()), (least, least[0] / least[1])] {
            cells.extend([format!("{rondel:.1}"), format!("{against:.1}"), format!("{ratio:.3}")]);
        }
        table.row(cells);
    }
    table.note(
        "CPU time of the whole process per event, of the measured program and of the one named with `--against`. Both \
         check the same trace in each turn; the first ratio is the median of the ratios of all turns. Below 1 the \
         measured program takes less time.",
    );
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(cpu_us: f64) -> Checked {
        Checked { seconds: 1.0, cpu_seconds: cpu_us / 1e6, events: 1000 }
    }

    #[test]
    fn turns_are_compared_one_by_one() {
        // The second turn is that of a busy machine.
        let rondel = [10.0, 30.0, 9.0].map(checked).into();
        let against = [20.0, 60.0, 10.0].map(checked).into();
        let turns = Turns { rondel, against };
        let mut sum = turns.clone();
        sum.add(&turns);
        let text = table(&[("a".to_owned(), turns), ("all".to_owned(), sum)]).unwrap().markdown();
        assert!(text.contains("| a | 1000 | 10.0 | 20.0 | 0.500 | 9.0 | 10.0 | 0.900 |"), "{text}");
        assert!(text.contains("| all | 2000 | 10.0 | 20.0 | 0.500 | 9.0 | 10.0 | 0.900 |"), "{text}");
    }

    #[test]
    fn one_program_has_nothing_to_be_compared_with() {
        let alone = Turns { rondel: vec![checked(1.0)], against: Vec::new() };
        assert!(table(&[("a".to_owned(), alone)]).is_none());
    }
}
