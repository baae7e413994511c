//! The round trip of the DDS study: the time there and back against the size of the payload, beside an echo of datagrams.

use serde::Serialize;

use crate::failure::Result;
use crate::latency::Partner;
use crate::link::{Link, Network};
use crate::network::Role;
use crate::runs::Runs;
use crate::say;
use crate::table::{Table, mean, median, quantile};
use crate::udp::Datagrams;

/// The number of pings of each size at the beginning that are not measured.
const WARM_UP: usize = 100;

/// The plan of the measurement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The networks.
    pub networks: Vec<Network>,
    /// The sizes of payloads, in bytes.
    pub sizes: Vec<usize>,
    /// The number of pings of each size in a turn.
    pub pings: usize,
    /// The number of turns.
    pub repeat: usize,
}

/// The pings of a size in a turn.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Network name, or UDP.
    pub network: &'static str,
    /// The size of the payload.
    pub bytes: usize,
    /// The turn, from 0.
    pub turn: usize,
    /// Every round trip, in microseconds.
    pub us: Vec<f64>,
}

/// A participant that echoes.
#[allow(clippy::large_enum_variant)] // there are a few
enum Echo {
    Udp(Datagrams),
    Network(Network, Partner, Link),
}

impl Echo {
    fn name(&self) -> &'static str {
        match self {
            Echo::Udp(_) => UDP,
            Echo::Network(network, ..) => network.name(),
        }
    }

    fn ping(&mut self, payload: &[u8]) -> Result<f64> {
        match self {
            Echo::Udp(datagrams) => datagrams.ping(payload),
            Echo::Network(_, partner, _) => partner.ping(payload),
        }
    }

    fn end(self) -> Result<()> {
        match self {
            Echo::Udp(datagrams) => datagrams.end(),
            Echo::Network(_, partner, link) => {
                partner.end("echo")?;
                link.close();
                Ok(())
            }
        }
    }
}

/// The name of datagrams.
const UDP: &str = "UDP";

/// Measures all sizes on all networks, by turns. All echoes run all the time.
///
/// # Errors
/// When a message is lost, or a network cannot be used.
pub fn measure(plan: &Plan, runs: &mut Runs) -> Result<Vec<Run>> {
    let mut echoes = vec![Echo::Udp(Datagrams::start()?)];
    for &network in &plan.networks {
        let link = Link::open(network)?;
        let partner = Partner::start(&link, network, Role::Echo, "echo")?;
        echoes.push(Echo::Network(network, partner, link));
    }
    let mut all = Vec::new();
    for turn in 0..plan.repeat.max(1) {
        for &bytes in &plan.sizes {
            let payload = vec![b'x'; bytes];
            // Each comes first as often as the others.
            let count = echoes.len();
            for place in 0..count {
                let echo = &mut echoes[(place + turn) % count];
                for _ in 0..WARM_UP.min(plan.pings) {
                    echo.ping(&payload)?;
                }
                let us = (0..plan.pings).map(|_| echo.ping(&payload)).collect::<Result<Vec<f64>>>()?;
                let run = Run { network: echo.name(), bytes, turn, us };
                runs.add(&run)?;
                all.push(run);
            }
        }
        say(&format!("round trips: turn {} of {}", turn + 1, plan.repeat.max(1)));
    }
    for echo in echoes {
        echo.end()?;
    }
    Ok(all)
}

/// Medians of a network, by size.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Network name, or UDP.
    pub network: &'static str,
    /// Size in bytes; median and 99th percentile in microseconds, over all turns.
    pub sizes: Vec<(usize, f64, f64)>,
    /// Constant part of the line through the medians, in microseconds.
    pub constant_us: f64,
    /// Slope of that line, in microseconds per 1,000 bytes.
    pub slope_us: f64,
}

/// Returns the line of each network, UDP first.
pub fn lines(runs: &[Run]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for run in runs {
        if lines.iter().all(|line| line.network != run.network) {
            lines.push(line(run.network, runs));
        }
    }
    lines.sort_by_key(|line| line.network != UDP);
    lines
}

fn line(network: &'static str, runs: &[Run]) -> Line {
    let of: Vec<&Run> = runs.iter().filter(|run| run.network == network).collect();
    let mut bytes: Vec<usize> = of.iter().map(|run| run.bytes).collect();
    bytes.sort_unstable();
    bytes.dedup();
    let sizes: Vec<(usize, f64, f64)> = bytes
        .into_iter()
        .map(|bytes| {
            let us: Vec<f64> =
                of.iter().filter(|run| run.bytes == bytes).flat_map(|run| run.us.iter().copied()).collect();
            (bytes, median(&us), quantile(&us, 0.99))
        })
        .collect();
    let points: Vec<(f64, f64)> = sizes.iter().map(|&(bytes, us, _)| (bytes as f64 / 1e3, us)).collect();
    let (constant_us, slope_us) = fit(&points);
    Line { network, sizes, constant_us, slope_us }
}

/// Returns constant part and slope of the line with the least squares.
fn fit(points: &[(f64, f64)]) -> (f64, f64) {
    let x = mean(&points.iter().map(|point| point.0).collect::<Vec<_>>());
    let y = mean(&points.iter().map(|point| point.1).collect::<Vec<_>>());
    let covariance: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let variance: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let slope = covariance / variance;
    (y - slope * x, slope)
}

/// Returns the tables: by size, and the lines.
pub fn tables(lines: &[Line]) -> Vec<Table> {
    let Some((udp, others)) = lines.split_first() else { return Vec::new() };
    let mut heads = vec!["payload, bytes".to_owned(), "UDP p50 us".to_owned(), "UDP p99 us".to_owned()];
    for line in others {
        let name = line.network;
        heads.extend([format!("{name} p50 us"), format!("{name} p99 us"), format!("{name} : UDP")]);
    }
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut sizes = Table::new("Round trip by payload", &heads);
    for (place, &(bytes, p50, p99)) in udp.sizes.iter().enumerate() {
        let mut cells = vec![bytes.to_string(), format!("{p50:.1}"), format!("{p99:.1}")];
        for line in others {
            let (_, own, own_p99) = line.sizes.get(place).copied().unwrap_or((0, f64::NAN, f64::NAN));
            cells.extend([format!("{own:.1}"), format!("{own_p99:.1}"), format!("{:.2}", own / p50)]);
        }
        sizes.row(cells);
    }
    sizes.note("One message at a time between two processes on loopback, by turns.");
    let heads =
        ["", "constant part, us", "us per 1,000 bytes", "factor, least payload", "factor, largest payload"];
    let mut fitted = Table::new("Lines", &heads);
    for line in lines {
        let factor = |at: Option<&(usize, f64, f64)>, of: Option<&(usize, f64, f64)>| match (at, of) {
            (Some(at), Some(of)) => format!("{:.2}", at.1 / of.1),
            _ => "-".to_owned(),
        };
        fitted.row(vec![
            line.network.to_owned(),
            format!("{:.1}", line.constant_us),
            format!("{:.2}", line.slope_us),
            factor(line.sizes.first(), udp.sizes.first()),
            factor(line.sizes.last(), udp.sizes.last()),
        ]);
    }
    let paper = ["DDS over ICMP (paper)", "3700 more", "-", "4.8 at 0 B", "1.8 at 20 KB"];
    fitted.row(paper.map(str::to_owned).to_vec());
    fitted.note(
        "Lines with the least squares through the medians; factors are those of medians. The study compares DDS with ICMP \
         between two controllers on Ethernet (paper): only factors and linearity compare, not times.",
    );
    vec![sizes, fitted]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(network: &'static str, bytes: usize, us: f64) -> Run {
        Run { network, bytes, turn: 0, us: vec![us; 3] }
    }

    #[test]
    fn a_line_has_a_constant_part_and_a_slope() {
        let (constant, slope) = fit(&[(0.0, 10.0), (1.0, 12.0), (2.0, 14.0)]);
        assert!((constant - 10.0).abs() < 1e-9 && (slope - 2.0).abs() < 1e-9);
    }

    #[test]
    fn networks_are_compared_with_datagrams() {
        let runs = [run("DDS", 0, 40.0), run("UDP", 0, 10.0), run("DDS", 1000, 50.0), run("UDP", 1000, 20.0)];
        let all = lines(&runs);
        assert_eq!(all[0].network, UDP);
        let text: String = tables(&all).iter().map(Table::markdown).collect();
        assert!(text.contains("| 1000 | 20.0 | 20.0 | 50.0 | 50.0 | 2.50 |"), "{text}");
        assert!(text.contains("| DDS | 40.0 | 10.00 | 4.00 | 2.50 |"), "{text}");
    }
}
