//! The footprint of a monitor: the time until it is ready, and its memory.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::child::{Child, Stdout};
use crate::failure::{Failure, Result, same};
use crate::link::{Link, Network, PATIENCE, wait_subscribed};
use crate::network::{Monitor, Role};
use crate::peer::publish;
use crate::table::{Table, median};
use crate::timescales::Property;
use crate::traces::Trace;

/// The number of messages after which memory is measured.
pub const MESSAGES: u64 = 100_000;
/// The time limit for these messages.
const LIMIT: Duration = Duration::from_secs(60);

/// The footprint on one network.
#[derive(Clone, Debug, Serialize)]
pub struct Footprint {
    /// The network.
    pub network: Network,
    /// Milliseconds from the start of the process until it is ready, median.
    pub ready_ms: f64,
    /// Peak resident memory in bytes, median.
    pub peak_bytes: f64,
    /// The number of measurements.
    pub repeat: usize,
}

/// Measures on one network.
///
/// # Errors
/// When a message is lost, or the network cannot be used.
pub fn measure(rondel: &Path, network: Network, repeat: usize) -> Result<Footprint> {
    let property =
        Property::by_name("RespondBQR1000").ok_or_else(|| Failure::Usage("no such property".to_owned()))?;
    let monitor = Monitor::of(rondel, property);
    let trace = Trace::of(property, MESSAGES, 1)?;
    let (mut ready, mut peak) = (Vec::new(), Vec::new());
    for _ in 0..repeat.max(1) {
        let link = Link::open(network)?;
        let name = format!("monitor on {}", network.name());
        let back = link.count("bench/out", MESSAGES)?;
        let publisher = link.publisher("bench/in", true)?;
        // Without --wait-subscribers: the time of discovery is not that of the monitor.
        let arguments = Role::MonitorEvery(&monitor)
            .arguments(network, &link, "bench/in", "bench/out", None)
            .into_iter()
            .filter(|argument| !argument.starts_with("--wait-subscribers"))
            .collect::<Vec<_>>();
        let mut child = Child::start(&name, rondel, &arguments, Stdout::Nothing)?;
        let (_, at) = child.wait_for("ready", PATIENCE)?;
        ready.push(at.duration_since(child.started()).as_secs_f64() * 1e3);
        wait_subscribed(&*publisher)?;
        let sent = Instant::now();
        publish(&*publisher, &trace)?;
        back.counter.wait(&format!("{name}: answers"), LIMIT.saturating_sub(sent.elapsed()))?;
        peak.push(child.peak_memory()? as f64);
        let summary = child.end()?.summary(&name)?;
        same(|| format!("{name}: received"), MESSAGES, summary.received)?;
        drop((back, publisher));
        link.close();
    }
    Ok(Footprint { network, ready_ms: median(&ready), peak_bytes: median(&peak), repeat: repeat.max(1) })
}

/// Returns the table.
pub fn table(results: &[Footprint]) -> Table {
    let mut table = Table::new(
        "Footprint of the monitor",
        &["network", "ready after ms", "peak resident memory, MB (10^6 bytes)"],
    );
    for r in results {
        table.row(vec![
            r.network.name().to_owned(),
            format!("{:.0}", r.ready_ms),
            format!("{:.1}", r.peak_bytes / 1e6),
        ]);
    }
    table.note(format!(
        "RespondBQR1000, a verdict for every message; memory after {MESSAGES} messages at full rate, as the \
         system reports it (VmHWM). Ready: from the start of the process until it has subscribed."
    ));
    table
}
