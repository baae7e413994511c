//! The tables of the chain.

use super::Run;
use super::figures::jitter;
use crate::table::{Table, deviation, mean, median, quantile};

/// Runs with equal settings.
struct Group<'a> {
    runs: Vec<&'a Run>,
}

impl<'a> Group<'a> {
    /// Returns the groups, in the order of their first runs.
    fn all(runs: &'a [Run]) -> Vec<Group<'a>> {
        let key = |run: &Run| (run.network, run.chains, run.monitored);
        let mut groups: Vec<Group<'a>> = Vec::new();
        for run in runs {
            match groups.iter_mut().find(|group| key(group.runs[0]) == key(run)) {
                Some(group) => group.runs.push(run),
                None => groups.push(Group { runs: vec![run] }),
            }
        }
        // The runs without a monitor first, whichever came first.
        groups.sort_by_key(|group| {
            let (network, chains, monitored) = key(group.runs[0]);
            (network.name(), chains, monitored)
        });
        groups
    }

    /// Returns the values of all runs.
    fn values(&self, of: fn(&Run) -> &[f64]) -> Vec<f64> {
        self.runs.iter().flat_map(|run| of(run).iter().copied()).collect()
    }

    /// Returns the median of a figure of the runs.
    fn median(&self, of: fn(&Run) -> f64) -> f64 {
        median(&self.runs.iter().map(|run| of(run)).collect::<Vec<_>>())
    }

    fn name(&self) -> [String; 3] {
        let run = self.runs[0];
        let monitor = if run.monitored { "with" } else { "without" };
        [run.network.name().to_owned(), run.chains.to_string(), monitor.to_owned()]
    }
}

/// Returns the tables: latency, age and reaction time; CPU and memory; the cost of the monitor.
pub fn tables(runs: &[Run]) -> [Table; 3] {
    let groups = Group::all(runs);
    [times(&groups), resources(&groups), cost(&groups)]
}

fn times(groups: &[Group<'_>]) -> Table {
    let heads = [
        "network",
        "chains",
        "monitor",
        "latency mean us",
        "p50",
        "p99",
        "p99.9",
        "max",
        "sd",
        "jitter",
        "data age mean us",
        "p99",
        "reaction p99 us",
        "max",
    ];
    let mut table = Table::new("Sensor -> filter -> fusion -> planner -> actuator", &heads);
    let us = |us: f64| format!("{us:.0}");
    for group in groups {
        let latency = group.values(|run| &run.latency_us);
        let (age, reaction) = (group.values(|run| &run.age_us), group.values(|run| &run.reaction_us));
        let mut cells = group.name().to_vec();
        cells.extend([
            us(mean(&latency)),
            us(quantile(&latency, 0.5)),
            us(quantile(&latency, 0.99)),
            us(quantile(&latency, 0.999)),
            us(quantile(&latency, 1.0)),
            us(deviation(&latency)),
            us(group.median(|run| jitter(&run.latency_us))),
            us(mean(&age)),
            us(quantile(&age, 0.99)),
            us(quantile(&reaction, 0.99)),
            us(quantile(&reaction, 1.0)),
        ]);
        table.row(cells);
    }
    table.note(
        "Five processes in one network namespace, without containers. Latency is from the stamp of the sensor until the \
         actuator has the message, over all runs; jitter the mean difference of successive latencies. Data age is from \
         the stamp of an output until the next output, reaction time from a stamp until an output with it or a later one. \
         In the study the mean is 5 to 8 % lower with a container for each participant than without, and maxima are lower \
         in a single one (paper).",
    );
    table
}

fn resources(groups: &[Group<'_>]) -> Table {
    let heads = [
        "network",
        "chains",
        "monitor",
        "participants, % of a core",
        "memory, MB (10^6 bytes)",
        "monitor, % of a core",
        "memory, MB",
    ];
    let mut table = Table::new("CPU and memory", &heads);
    for group in groups {
        let mut cells = group.name().to_vec();
        cells.extend([
            format!("{:.1}", group.median(|run| run.cpu_seconds / run.seconds * 100.0)),
            format!("{:.1}", group.median(|run| run.peak_bytes as f64) / 1e6),
        ]);
        let of_monitor = group.runs.iter().filter_map(|run| Some((run.monitor.as_ref()?, run.seconds)));
        let of_monitor: Vec<_> = of_monitor.collect();
        if of_monitor.is_empty() {
            cells.extend(["-".to_owned(), "-".to_owned()]);
        } else {
            let cpu: Vec<f64> =
                of_monitor.iter().map(|(m, seconds)| m.cpu_seconds / seconds * 100.0).collect();
            let bytes: Vec<f64> = of_monitor.iter().map(|(m, _)| m.peak_bytes as f64).collect();
            cells.extend([format!("{:.1}", median(&cpu)), format!("{:.1}", median(&bytes) / 1e6)]);
        }
        table.row(cells);
    }
    table.note("Medians of the runs; start and end of the processes are included in their CPU time.");
    table
}

fn cost(groups: &[Group<'_>]) -> Table {
    let heads = [
        "network",
        "chains",
        "mean, with : without",
        "p99, with : without",
        "late, participants",
        "late or lost, monitor",
        "messages at the monitor",
        "sent",
    ];
    let mut table = Table::new("Cost and verdicts of the monitor", &heads);
    for with in groups.iter().filter(|group| group.runs[0].monitored) {
        let first = with.runs[0];
        let same = |group: &&Group<'_>| {
            let run = group.runs[0];
            !run.monitored && run.network == first.network && run.chains == first.chains
        };
        let Some(without) = groups.iter().find(same) else { continue };
        // Runs of one turn are neighbours.
        let ratio = |of: fn(&[f64]) -> f64| {
            let pairs = with.runs.iter().zip(&without.runs);
            median(&pairs.map(|(w, o)| of(&w.latency_us) / of(&o.latency_us)).collect::<Vec<_>>())
        };
        let sum = |of: fn(&Run) -> u64| with.runs.iter().map(|run| of(run)).sum::<u64>().to_string();
        let [network, chains, _] = with.name();
        table.row(vec![
            network,
            chains,
            format!("{:.2}", ratio(mean)),
            format!("{:.2}", ratio(|us| quantile(us, 0.99))),
            sum(|run| run.late as u64),
            sum(|run| run.monitor.as_ref().map_or(0, super::Monitored::late)),
            sum(|run| run.monitor.as_ref().map_or(0, |monitor| monitor.received)),
            sum(|run| run.monitor.as_ref().map_or(0, |monitor| monitor.sent)),
        ]);
    }
    table.note(
        "Ratios are medians over the turns. Late stamps took more than the 100 ms that the chain allows: by the clocks of \
         the participants, and by the arrival of the messages at the monitor.",
    );
    table
}

#[cfg(test)]
mod tests {
    use super::super::Way;
    use super::*;

    fn run(monitored: bool, us: f64) -> Run {
        Run {
            network: Way::Dds,
            chains: 1,
            monitored,
            turn: 0,
            seconds: 10.0,
            latency_us: vec![us, us + 20.0],
            age_us: vec![10_000.0],
            reaction_us: vec![us],
            late: 0,
            cpu_seconds: 1.0,
            peak_bytes: 50_000_000,
            monitor: None,
        }
    }

    #[test]
    fn runs_are_compared_with_those_without_a_monitor() {
        let runs = [run(true, 110.0), run(false, 90.0)];
        let [times, resources, cost] = tables(&runs).map(|table| table.markdown());
        let row = "| DDS | 1 | without | 100 | 100 | 110 | 110 | 110 | 10 | 20 | 10000 | 10000 | 90 | 90 |";
        assert!(times.contains(row), "{times}");
        assert!(resources.contains("| DDS | 1 | with | 10.0 | 50.0 | - | - |"), "{resources}");
        assert!(cost.contains("| DDS | 1 | 1.20 | 1.18 | 0 | 0 | 0 | 0 |"), "{cost}");
    }
}
