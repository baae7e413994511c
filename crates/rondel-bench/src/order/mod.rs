//! The ordering experiment: one sender publishes on two topics over separate connections, or a node on each topic, and
//! each setting of alignment orders the messages that arrive.
//!
//! Arrivals are recorded once. Every setting replays the same arrivals, with the recorded clock, through the code of
//! `rondel run`: [`rondel_align::Order`].

mod instants;
pub mod record;
mod sender;
pub mod setting;

use std::time::Duration;

use serde::Serialize;

use self::instants::Instants;
pub use self::instants::Node;
use self::record::Recording;
pub use self::sender::Sender;
use self::setting::{SETTINGS, Setting};
use crate::child::{Child, Stdout};
use crate::failure::Result;
use crate::link::{Link, Network};
use crate::program;
use crate::report::Mark;
use crate::say;
use crate::table::{Table, quantile};

/// The topics.
const TOPICS: [&str; 2] = ["order/a", "order/b"];
/// The topic of markers.
const PROGRESS: &str = "order/progress";
/// The number of messages in a burst, on the topics in turn.
const BURST: u64 = 4;
/// The time limit for arrivals once all messages are sent.
const ARRIVE: Duration = Duration::from_secs(10);
/// The time limit for a sender, besides its bursts.
const SEND: Duration = Duration::from_secs(60);

/// The plan of the experiment.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The networks.
    pub networks: Vec<Network>,
    /// The times from one burst to the next.
    pub periods: Vec<Duration>,
    /// The delays of the second topic.
    pub delays: Vec<Duration>,
    /// The largest number of events for each network, period and delay.
    pub events: u64,
    /// The most seconds for each of them; at least one burst is sent.
    pub seconds: f64,
    /// The times from one instant of two nodes to the next.
    pub instants: Vec<Duration>,
}

/// The results.
#[derive(Debug, Default)]
pub struct Measured {
    /// Bursts of one sender.
    pub cells: Vec<Cell>,
    /// Instants of two nodes.
    pub instants: Vec<Instants>,
}

/// The results for one network, period and delay.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The network.
    pub network: Network,
    /// Microseconds from one burst to the next.
    pub period_us: f64,
    /// Milliseconds by which the second topic is delayed.
    pub delay_ms: f64,
    /// The number of events sent.
    pub events: u64,
    /// The number of events that arrived.
    pub arrived: u64,
    /// The result of each setting.
    pub settings: Vec<Released>,
}

/// The result of one setting.
#[derive(Clone, Debug, Serialize)]
pub struct Released {
    /// The setting.
    pub setting: Setting,
    /// The number of events released after one with a later time.
    pub misordered: u64,
    /// The number of late events, which were dropped.
    pub late: u64,
    /// The number of events that were not released, late ones included.
    pub never: u64,
    /// Microseconds from the time of an event until its release: median, 99th percentile, maximum.
    pub latency_us: [f64; 3],
    #[serde(skip)]
    latencies: Vec<f64>,
}

/// Runs the experiment, cell by cell.
///
/// # Errors
/// When a network cannot be used.
pub fn measure(plan: &Plan, measured: &mut Measured) -> Result<()> {
    for &network in &plan.networks {
        let link = Link::open(network)?;
        let ended = on_network(&link, network, plan, measured);
        link.close();
        ended?;
    }
    Ok(())
}

fn on_network(link: &Link, network: Network, plan: &Plan, measured: &mut Measured) -> Result<()> {
    for &delay in &plan.delays {
        for &period in &plan.periods {
            let cell = cell(link, network, period, delay, plan)?;
            say(&cell.line());
            measured.cells.push(cell);
        }
    }
    for &period in &plan.instants {
        let instants = instants::measure(link, network, period, plan)?;
        say(&instants.line());
        measured.instants.push(instants);
    }
    Ok(())
}

fn cell(link: &Link, network: Network, period: Duration, delay: Duration, plan: &Plan) -> Result<Cell> {
    let in_time = plan.seconds / period.as_secs_f64().max(1e-9);
    let bursts = (plan.events / BURST).min(in_time as u64).max(1);
    let recording = Recording::start(link)?;
    let number = |value: u128| value.to_string();
    let mut arguments: Vec<String> = ["peer", "bursts", "--on", network.scheme()].map(str::to_owned).into();
    for (option, value) in [("period", number(period.as_nanos())), ("delay", number(delay.as_nanos()))] {
        arguments.push(format!("--{option}={value}"));
    }
    arguments.push(format!("--bursts={bursts}"));
    arguments.extend(link.join());
    let limit = SEND + period * u32::try_from(bursts).unwrap_or(u32::MAX) * 2;
    let sender = Child::start("sender", &program::own()?, &arguments, Stdout::Nothing)?;
    sender.wait(limit)?.succeeded("sender")?;
    let events = bursts * BURST;
    // A marker for each topic after every burst, and before the first.
    let arrivals = recording.end((events + (bursts + 1) * TOPICS.len() as u64) as usize);
    let settings = SETTINGS.map(|setting| {
        let outcome = setting::replay(&arrivals, setting);
        let latencies: Vec<f64> = outcome.latencies().map(|ns| ns as f64 / 1e3).collect();
        Released {
            setting,
            misordered: outcome.misordered(),
            late: outcome.late,
            never: events.saturating_sub(latencies.len() as u64),
            latency_us: [0.5, 0.99, 1.0].map(|part| quantile(&latencies, part)),
            latencies,
        }
    });
    Ok(Cell {
        network,
        period_us: period.as_secs_f64() * 1e6,
        delay_ms: delay.as_secs_f64() * 1e3,
        events,
        arrived: record::events(&arrivals),
        settings: settings.into(),
    })
}

impl Cell {
    fn of(&self, setting: Setting) -> Option<&Released> {
        self.settings.iter().find(|result| result.setting == setting)
    }

    /// Returns a line for people.
    pub fn line(&self) -> String {
        let misordered = self.of(Setting::Arrival).map_or(0, |result| result.misordered);
        let markers = self.of(Setting::Markers).map_or(f64::NAN, |result| result.latency_us[0]);
        format!(
            "{}, a burst every {}, b {} ms later: {} events, {misordered} misordered as they come; with markers p50 {markers:.0} us",
            self.network.name(),
            period(self.period_us),
            self.delay_ms,
            self.events,
        )
    }

    /// Returns the median latency with markers minus the shortest of a setting by time that lost no event, if one lost none.
    fn excess_us(&self) -> Option<f64> {
        let markers = self.of(Setting::Markers)?.latency_us[0];
        let others = self.settings.iter().filter(|result| {
            matches!(result.setting, Setting::Wait { .. })
                && result.never == 0
                && result.latency_us[0].is_finite()
        });
        others.map(|result| result.latency_us[0]).min_by(f64::total_cmp).map(|least| markers - least)
    }
}

fn period(us: f64) -> String {
    if us < 1e3 { format!("{us} us") } else { format!("{} ms", us / 1e3) }
}

/// Returns the marks.
pub fn marks(cells: &[Cell]) -> Vec<Mark> {
    let mut marks = Vec::new();
    for network in networks(cells) {
        let here = || cells.iter().filter(move |cell| cell.network == network);
        let sum = |wanted: fn(Setting) -> bool, value: fn(&Released) -> u64| {
            let of = |cell: &Cell| cell.settings.iter().filter(|r| wanted(r.setting)).map(value).sum::<u64>();
            here().map(of).sum::<u64>() as f64
        };
        let name = network.name();
        let arrival = sum(|setting| setting == Setting::Arrival, |result| result.misordered);
        marks.push(Mark::at_least(format!("{name}: misordered as they come"), arrival, 1.0, ""));
        let by_time = sum(|setting| setting != Setting::Arrival, |result| result.misordered);
        marks.push(Mark::at_most(format!("{name}: misordered in the order of times"), by_time, 0.0, ""));
        let lost = sum(|setting| setting == Setting::Markers, |result| result.late.max(result.never));
        marks.push(Mark::at_most(format!("{name}: late or never released with markers"), lost, 0.0, ""));
        let excess = here().filter_map(Cell::excess_us).max_by(f64::total_cmp);
        let what =
            "median with markers minus the shortest of a setting that lost nothing, worst period and delay";
        marks.extend(excess.map(|excess| Mark::at_most(format!("{name}: {what}"), excess, 0.0, "us")));
    }
    marks
}

fn networks(cells: &[Cell]) -> Vec<Network> {
    let mut networks: Vec<Network> = cells.iter().map(|cell| cell.network).collect();
    networks.dedup();
    networks
}

/// Returns the tables.
pub fn tables(cells: &[Cell]) -> Vec<Table> {
    vec![by_setting(cells), by_period(cells)]
}

/// Returns the mark of the instants.
pub fn mark_of_instants(all: &[Instants]) -> Mark {
    instants::mark(all)
}

/// Returns the table of the instants.
pub fn table_of_instants(all: &[Instants]) -> Table {
    instants::table(all)
}

fn groups(cells: &[Cell]) -> Vec<&[Cell]> {
    cells.chunk_by(|a, b| a.network == b.network && a.delay_ms == b.delay_ms).collect()
}

fn later(delay_ms: f64) -> String {
    if delay_ms == 0.0 { "-".to_owned() } else { format!("{delay_ms} ms") }
}

fn by_setting(cells: &[Cell]) -> Table {
    let mut table = Table::new(
        "Released events, over all periods",
        &[
            "network",
            "b later",
            "setting",
            "events",
            "misordered",
            "late",
            "never released",
            "p50 ms",
            "p99 ms",
            "max ms",
        ],
    );
    for group in groups(cells) {
        for setting in SETTINGS {
            let results: Vec<&Released> = group.iter().filter_map(|cell| cell.of(setting)).collect();
            let sum = |value: fn(&Released) -> u64| results.iter().map(|r| value(r)).sum::<u64>().to_string();
            let latencies: Vec<f64> =
                results.iter().flat_map(|result| result.latencies.iter().copied()).collect();
            let mut row = vec![
                group[0].network.name().to_owned(),
                later(group[0].delay_ms),
                setting.name(),
                group.iter().map(|cell| cell.events).sum::<u64>().to_string(),
                sum(|result| result.misordered),
                sum(|result| result.late),
                sum(|result| result.never),
            ];
            row.extend([0.5, 0.99, 1.0].map(|part| {
                let us = quantile(&latencies, part);
                if us.is_nan() { "-".to_owned() } else { format!("{:.2}", us / 1e3) }
            }));
            table.row(row);
        }
    }
    table.note(
        "All settings replay the same arrivals, with the recorded clock. Latency is from the time of an event, before it is delayed or sent, until it \
         is released; an event that is never released has none. Late events are dropped (`late: drop`).",
    );
    table
}

fn by_period(cells: &[Cell]) -> Table {
    let periods: Vec<f64> =
        groups(cells).first().map_or(Vec::new(), |g| g.iter().map(|c| c.period_us).collect());
    let mut heads = vec!["network".to_owned(), "b later".to_owned(), "what".to_owned()];
    heads.extend(periods.iter().map(|us| period(*us)));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::new("By period: from one burst to the next", &heads);
    for group in groups(cells) {
        let mut row = |what: String, value: &dyn Fn(&Cell) -> String| {
            let mut cells = vec![group[0].network.name().to_owned(), later(group[0].delay_ms), what];
            cells.extend(group.iter().map(value));
            table.row(cells);
        };
        row("arrival: misordered %".to_owned(), &|cell| {
            let misordered = cell.of(Setting::Arrival).map_or(0, |result| result.misordered);
            format!("{:.1}", misordered as f64 / cell.events as f64 * 100.0)
        });
        for setting in [Setting::Arrival, Setting::Wait { ms: 20, known: true }, Setting::Markers] {
            row(format!("{}: p50 ms", setting.name()), &|cell| {
                cell.of(setting)
                    .map_or_else(String::new, |result| format!("{:.2}", result.latency_us[0] / 1e3))
            });
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(setting: Setting, never: u64, p50: f64) -> Released {
        let latencies = vec![p50];
        Released { setting, misordered: 0, late: never, never, latency_us: [p50; 3], latencies }
    }

    #[test]
    fn marks_compare_with_settings_without_misordering() {
        let wait = |ms| Setting::Wait { ms, known: false };
        let settings =
            vec![result(wait(1), 2, 1.0), result(wait(20), 0, 20.0), result(Setting::Markers, 0, 2.5)];
        let cell =
            Cell { network: Network::Zenoh, period_us: 10.0, delay_ms: 2.0, events: 4, arrived: 4, settings };
        assert_eq!(cell.excess_us(), Some(-17.5));
        let marks = marks(std::slice::from_ref(&cell));
        assert_eq!(marks.iter().map(Mark::met).collect::<Vec<_>>(), [false, true, true, true]);
        let table = tables(&[cell])[0].markdown();
        assert!(
            table.contains("| Zenoh | 2 ms | max_wait 1 ms | 4 | 0 | 2 | 2 | 0.00 | 0.00 | 0.00 |"),
            "{table}"
        );
    }
}
