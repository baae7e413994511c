//! The tables of the chain.

use super::figures::jitter;
use super::{Layout, Run, Way};
use crate::table::{Table, deviation, groups, mean, median, quantile};

/// Runs with equal settings.
struct Group<'a> {
    runs: Vec<&'a Run>,
}

impl<'a> Group<'a> {
    /// Returns the groups, in the order of their first runs.
    fn all(runs: &'a [Run]) -> Vec<Group<'a>> {
        let mut groups: Vec<Group<'a>> =
            groups(runs, key).into_iter().map(|(_, runs)| Group { runs }).collect();
        // The runs without a monitor first, whichever came first.
        groups.sort_by_key(|group| {
            let run = group.runs[0];
            (run.network.name(), run.chains, run.layout as u8, run.limit.clone(), run.monitored)
        });
        groups
    }

    /// Returns the group with these settings.
    fn find<'b>(groups: &'b [Group<'a>], wanted: Key<'_>) -> Option<&'b Group<'a>> {
        groups.iter().find(|group| key(group.runs[0]) == wanted)
    }

    /// Returns the median, over the turns, of the ratios of a figure of the latencies to that of another group.
    fn ratio(&self, other: &Group<'_>, of: fn(&[f64]) -> f64) -> f64 {
        // Runs of one turn are neighbours.
        let pairs = self.runs.iter().zip(&other.runs);
        median(&pairs.map(|(run, other)| of(&run.latency_us) / of(&other.latency_us)).collect::<Vec<_>>())
    }

    /// Returns the values of all runs.
    fn values(&self, of: fn(&Run) -> &[f64]) -> Vec<f64> {
        self.runs.iter().flat_map(|run| of(run).iter().copied()).collect()
    }

    /// Returns the median of a figure of the runs.
    fn median(&self, of: fn(&Run) -> f64) -> f64 {
        median(&self.runs.iter().map(|run| of(run)).collect::<Vec<_>>())
    }

    /// Returns the median of a number of bytes, in megabytes, or `-`.
    fn megabytes(&self, of: fn(&Run) -> Option<u64>) -> String {
        let bytes: Vec<f64> = self.runs.iter().filter_map(|run| Some(of(run)? as f64)).collect();
        if bytes.is_empty() { "-".to_owned() } else { format!("{:.1}", median(&bytes) / 1e6) }
    }

    /// Returns network, chains, layout, limit and monitor.
    fn name(&self) -> [String; 5] {
        let run = self.runs[0];
        let monitor = if run.monitored { "with" } else { "without" };
        let limit = run.limit.as_deref().map_or("-", |limit| limit.trim_start_matches('-'));
        [run.network.name(), &run.chains.to_string(), run.layout.name(), limit, monitor].map(str::to_owned)
    }
}

/// The settings of a run.
type Key<'a> = (Way, usize, Layout, Option<&'a str>, bool);

fn key(run: &Run) -> Key<'_> {
    (run.network, run.chains, run.layout, run.limit.as_deref(), run.monitored)
}

/// Returns the tables: latency, age and reaction time; CPU and memory; the cost of the monitor; containers beside bare
/// processes, if there were both.
pub fn tables(runs: &[Run]) -> Vec<Table> {
    let groups = Group::all(runs);
    let mut tables = vec![times(&groups), resources(&groups), cost(&groups)];
    tables.extend(containers(&groups));
    tables
}

fn times(groups: &[Group<'_>]) -> Table {
    let heads = [
        "network",
        "chains",
        "participants",
        "limit",
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
        "Five processes in each chain: bare ones in one network namespace on loopback, those in containers, as the monitor \
         in its own, on a bridge network. A limit holds for each container of participants. Latency is from the stamp of \
         the sensor until the actuator has the message, over all runs; jitter the mean difference of successive latencies. \
         Data age is from the stamp of an output until the next output, reaction time from a stamp until an output with it \
         or a later one. In the study the mean is 5 to 8 % lower with a container for each participant than without, and \
         maxima are lower in a single one (paper).",
    );
    let incomplete: u32 = groups.iter().flat_map(|group| &group.runs).map(|run| run.incomplete).sum();
    if incomplete > 0 {
        table.note(format!(
            "Runs that were repeated, as not every message came to the actuator: {incomplete}."
        ));
    }
    table
}

fn resources(groups: &[Group<'_>]) -> Table {
    let heads = [
        "network",
        "chains",
        "participants",
        "limit",
        "monitor",
        "participants, % of a core",
        "memory, MB (10^6 bytes)",
        "containers, MB",
        "monitor, % of a core",
        "memory, MB",
        "container, MB",
    ];
    let mut table = Table::new("CPU and memory", &heads);
    for group in groups {
        let mut cells = group.name().to_vec();
        cells.extend([
            format!("{:.1}", group.median(|run| run.cpu_seconds / run.seconds * 100.0)),
            format!("{:.1}", group.median(|run| run.peak_bytes as f64) / 1e6),
            group.megabytes(|run| run.container_bytes),
        ]);
        let of_monitor = group.runs.iter().filter_map(|run| Some((run.monitor.as_ref()?, run.seconds)));
        let of_monitor: Vec<_> = of_monitor.collect();
        if of_monitor.is_empty() {
            cells.extend(["-"; 3].map(str::to_owned));
        } else {
            let cpu: Vec<f64> =
                of_monitor.iter().map(|(m, seconds)| m.cpu_seconds / seconds * 100.0).collect();
            let bytes: Vec<f64> = of_monitor.iter().map(|(m, _)| m.peak_bytes as f64).collect();
            cells.extend([
                format!("{:.1}", median(&cpu)),
                format!("{:.1}", median(&bytes) / 1e6),
                group.megabytes(|run| run.monitor.as_ref().and_then(|monitor| monitor.container_bytes)),
            ]);
        }
        table.row(cells);
    }
    table.note(
        "Medians of the runs. The CPU time of bare processes includes their start and end; that of containers is the time of \
         their control groups from the start of the sensors on. Memory is the peak of the resident memory of the processes, \
         which counts shared pages once for each; memory of containers the peak of their control groups, with that of the \
         kernel and of cached files.",
    );
    table
}

fn cost(groups: &[Group<'_>]) -> Table {
    let heads = [
        "network",
        "chains",
        "participants",
        "limit",
        "mean, with : without",
        "p99, with : without",
        "late, participants",
        "late or lost, monitor",
        "messages at the monitor",
        "sent",
    ];
    let mut table = Table::new("Cost and verdicts of the monitor", &heads);
    for with in groups.iter().filter(|group| group.runs[0].monitored) {
        let (network, chains, layout, limit, _) = key(with.runs[0]);
        let Some(without) = Group::find(groups, (network, chains, layout, limit, false)) else { continue };
        let sum = |of: fn(&Run) -> u64| with.runs.iter().map(|run| of(run)).sum::<u64>().to_string();
        let [network, chains, layout, limit, _] = with.name();
        table.row(vec![
            network,
            chains,
            layout,
            limit,
            format!("{:.2}", with.ratio(without, mean)),
            format!("{:.2}", with.ratio(without, |us| quantile(us, 0.99))),
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

/// Returns the ratios of runs in containers to those of bare processes, if there are both.
fn containers(groups: &[Group<'_>]) -> Option<Table> {
    let heads =
        ["network", "chains", "participants", "limit", "monitor", "mean, to bare", "p50", "p99", "max"];
    let mut table = Table::new("Latency in containers to that of bare processes", &heads);
    let mut is_empty = true;
    for group in groups.iter().filter(|group| group.runs[0].layout != Layout::Bare) {
        let (network, chains, .., monitored) = key(group.runs[0]);
        let Some(bare) = Group::find(groups, (network, chains, Layout::Bare, None, monitored)) else {
            continue;
        };
        let mut cells = group.name().to_vec();
        let figures: [fn(&[f64]) -> f64; 4] =
            [mean, |us| quantile(us, 0.5), |us| quantile(us, 0.99), |us| quantile(us, 1.0)];
        cells.extend(figures.map(|of| format!("{:.2}", group.ratio(bare, of))));
        table.row(cells);
        is_empty = false;
    }
    table.note("Medians over the turns. In the study the mean in a container for each is 0.92 to 0.95 of that of bare processes (paper).");
    (!is_empty).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(monitored: bool, us: f64) -> Run {
        Run {
            network: Way::Dds,
            chains: 1,
            layout: Layout::Bare,
            limit: None,
            monitored,
            turn: 0,
            incomplete: 0,
            seconds: 10.0,
            latency_us: vec![us, us + 20.0],
            age_us: vec![10_000.0],
            reaction_us: vec![us],
            late: 0,
            cpu_seconds: 1.0,
            peak_bytes: 50_000_000,
            container_bytes: None,
            monitor: None,
        }
    }

    #[test]
    fn runs_are_compared_with_those_without_a_monitor() {
        let runs = [run(true, 110.0), run(false, 90.0)];
        let tables: Vec<String> = tables(&runs).iter().map(Table::markdown).collect();
        let [times, resources, cost] = tables.as_slice() else { panic!("{tables:?}") };
        let row = "| DDS | 1 | bare | - | without | 100 | 100 | 110 | 110 | 110 | 10 | 20 | 10000 | 10000 | 90 | 90 |";
        assert!(times.contains(row), "{times}");
        assert!(
            resources.contains("| DDS | 1 | bare | - | with | 10.0 | 50.0 | - | - | - | - |"),
            "{resources}"
        );
        assert!(cost.contains("| DDS | 1 | bare | - | 1.20 | 1.18 | 0 | 0 | 0 | 0 |"), "{cost}");
    }

    #[test]
    fn containers_are_compared_with_bare_processes() {
        let contained = Run {
            layout: Layout::Each,
            limit: Some("--cpus=1".to_owned()),
            container_bytes: Some(9_000_000),
            ..run(false, 190.0)
        };
        let runs = [run(false, 90.0), contained.clone()];
        let tables: Vec<String> = tables(&runs).iter().map(Table::markdown).collect();
        let [_, resources, _, containers] = tables.as_slice() else { panic!("{tables:?}") };
        let row = "| DDS | 1 | one container each | cpus=1 | without | 10.0 | 50.0 | 9.0 | - | - | - |";
        assert!(resources.contains(row), "{resources}");
        let row = "| DDS | 1 | one container each | cpus=1 | without | 2.00 | 2.00 | 1.91 | 1.91 |";
        assert!(containers.contains(row), "{containers}");
        // Without bare processes there is nothing to compare with.
        assert_eq!(super::tables(&[contained]).len(), 3);
    }
}
