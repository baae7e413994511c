//! Round trips, one message at a time: through an echo, and through the monitor, which adds its own work.

use std::hint::spin_loop;
use std::path::Path;
use std::time::{Duration, Instant};

use rondel_net::adapter::Publisher;
use serde::Serialize;

use crate::child::{Child, Stdout};
use crate::failure::{Failure, Result, same};
use crate::link::{Counted, Counter, Link, Network, PATIENCE, wait_subscribed};
use crate::network::{Gate, Monitor, Role};
use crate::table::{Table, median, quantile};
use crate::timescales::Property;
use crate::traces::{Folder, Trace};

/// The time to wait for an answer without yielding the processor.
const SPIN: Duration = Duration::from_micros(20);
/// The number of pings at the beginning that are not measured.
const WARM_UP: usize = 1000;

/// Round trips of one network, in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// The network.
    pub network: Network,
    /// The number of pings to each participant.
    pub pings: usize,
    /// Through the echo: median and 99th percentile.
    pub echo_us: [f64; 2],
    /// Through the monitor: median and 99th percentile.
    pub monitor_us: [f64; 2],
    /// The time that the monitor adds: the median, over the pairs of batches, of the difference of their medians.
    pub difference_us: f64,
}

/// A child that answers, with a publisher to it and a subscription to its answers.
pub struct Partner {
    child: Child,
    publisher: Box<dyn Publisher>,
    back: Counted,
    sent: u64,
}

impl Partner {
    /// Starts the child.
    ///
    /// # Errors
    /// When it cannot be started, or the network refuses.
    pub fn start(link: &Link, network: Network, role: Role<'_>, name: &str) -> Result<Partner> {
        let (input, output) = (format!("ping/{name}"), format!("pong/{name}"));
        let back = link.count(&output, u64::MAX)?;
        // Each message by itself: a batch would never fill.
        let publisher = link.publisher(&input, false)?;
        let arguments = role.arguments(network, link, &input, &output, None);
        let mut child = Child::start(name, &role.program()?, &arguments, Stdout::Nothing)?;
        child.wait_for("ready", PATIENCE)?;
        wait_subscribed(&*publisher)?;
        Ok(Partner { child, publisher, back, sent: 0 })
    }

    /// Sends a message and returns the time until its answer, in microseconds.
    ///
    /// # Errors
    /// When no answer comes.
    pub fn ping(&mut self, line: &[u8]) -> Result<f64> {
        self.sent += 1;
        ping(&*self.publisher, &self.back.counter, self.sent, line)
    }

    /// Ends the child, which must have received and answered every message.
    ///
    /// # Errors
    /// When it has not.
    pub fn end(self, name: &str) -> Result<()> {
        let summary = self.child.end()?.summary(name)?;
        same(|| format!("{name}: received"), self.sent, summary.received)?;
        same(|| format!("{name}: answers"), self.sent, self.back.counter.received())
    }
}

/// Publishes the message with this number, from 1, and returns the time until as many answers have come, in microseconds.
///
/// # Errors
/// When no answer comes.
pub fn ping(publisher: &dyn Publisher, answers: &Counter, sent: u64, line: &[u8]) -> Result<f64> {
    let started = Instant::now();
    publisher.publish(line).map_err(|e| Failure::Network(e.to_string()))?;
    loop {
        if answers.received() >= sent {
            return Ok(started.elapsed().as_secs_f64() * 1e6);
        }
        spin_loop();
        let elapsed = started.elapsed();
        if elapsed > SPIN {
            std::thread::yield_now();
        }
        if elapsed > PATIENCE {
            return Err(Failure::Late { what: format!("answer {sent}"), limit: PATIENCE });
        }
    }
}

/// Measures as many pings to the echo as to the monitor, in batches by turns. Both run all the time.
///
/// # Errors
/// When a message is lost, or the network cannot be used.
pub fn measure(rondel: &Path, network: Network, pings: usize, batch: usize) -> Result<Latency> {
    let property = property()?;
    let monitored = Monitor::of(rondel, property);
    let link = Link::open(network)?;
    Turns { link, network, property, role: Role::MonitorEvery(&monitored), name: "monitor", pings, batch }
        .measure()
}

/// Measures like [`measure`] a gate that passes every message on, in the place of the monitor.
///
/// # Errors
/// When a message is lost, or the network cannot be used.
pub fn measure_gate(rondel: &Path, network: Network, pings: usize, batch: usize) -> Result<Latency> {
    let property = property()?;
    let link = Link::open(network)?;
    let (from, to) = (network.address("ping/gate"), network.address("pong/gate"));
    let text = format!(
        "formula: '{}'\nsyntax: rye\n{}topics: {{ trace: \"{from}\" }}\nverdicts: {{ emit: violations }}\n\
         gates: {{ from: trace, to: \"{to}\", unless: formula, substitute: drop }}\n",
        property.formula(),
        link.section()
    );
    let folder = Folder::new("gate")?;
    let deployment = folder.write("rondel.yaml", text.as_bytes())?;
    let gate = Gate { program: rondel.to_owned(), deployment };
    Turns { link, network, property, role: Role::Gate(&gate), name: "gate", pings, batch }.measure()
}

/// The property that is checked: it holds throughout its trace.
fn property() -> Result<Property> {
    Property::by_name("RespondBQR10").ok_or_else(|| Failure::Usage("no such property".to_owned()))
}

/// An echo and another participant, which are measured by turns.
struct Turns<'a> {
    link: Link,
    network: Network,
    /// The property of the trace.
    property: Property,
    /// The other participant.
    role: Role<'a>,
    name: &'static str,
    pings: usize,
    batch: usize,
}

impl Turns<'_> {
    fn measure(self) -> Result<Latency> {
        let Turns { link, network, property, role, name, pings, batch } = self;
        let trace = Trace::of(property, (pings + WARM_UP) as u64, 1)?;
        let lines: Vec<&[u8]> = trace.lines().collect();
        let mut echo = Partner::start(&link, network, Role::Echo, "echo")?;
        let mut monitor = Partner::start(&link, network, role, name)?;
        let (warm_up, measured) = lines.split_at(WARM_UP);
        for line in warm_up {
            echo.ping(line)?;
            monitor.ping(line)?;
        }
        let (mut by_echo, mut by_monitor, mut differences) = (Vec::new(), Vec::new(), Vec::new());
        for (turn, lines) in measured.chunks(batch.max(1)).enumerate() {
            let round = |partner: &mut Partner| {
                lines.iter().map(|line| partner.ping(line)).collect::<Result<Vec<f64>>>()
            };
            // The second may find the machine in another state: each comes first as often as the other.
            let (e, m) = if turn % 2 == 0 {
                let e = round(&mut echo)?;
                (e, round(&mut monitor)?)
            } else {
                let m = round(&mut monitor)?;
                (round(&mut echo)?, m)
            };
            differences.push(median(&m) - median(&e));
            by_echo.extend(e);
            by_monitor.extend(m);
        }
        echo.end("echo")?;
        monitor.end(name)?;
        link.close();
        let both = |times: &[f64]| [median(times), quantile(times, 0.99)];
        Ok(Latency {
            network,
            pings: measured.len(),
            echo_us: both(&by_echo),
            monitor_us: both(&by_monitor),
            difference_us: median(&differences),
        })
    }
}

/// Returns the table of an echo and another participant of this name.
pub fn table(results: &[Latency], name: &str) -> Table {
    let columns = [format!("{name} p50 us"), format!("{name} p99 us"), format!("{name} adds us")];
    let mut table = Table::new(
        "Round trip, one message at a time",
        &["network", "pings", "echo p50 us", "echo p99 us", &columns[0], &columns[1], &columns[2]],
    );
    for r in results {
        let us = |us: f64| format!("{us:.1}");
        table.row(vec![
            r.network.name().to_owned(),
            r.pings.to_string(),
            us(r.echo_us[0]),
            us(r.echo_us[1]),
            us(r.monitor_us[0]),
            us(r.monitor_us[1]),
            us(r.difference_us),
        ]);
    }
    table.note(format!(
        "Echo and {name} are there all the time and take turns. What the {name} adds is the median, over the pairs of \
         turns, of the difference of their medians."
    ));
    table
}
