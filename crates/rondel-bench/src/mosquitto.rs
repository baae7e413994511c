//! MQTT beside mosquitto's own clients: the same broker, the same messages, quality of service 1.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::child::{Child, Stdout};
use crate::failure::{Failure, Result, io_error, same};
use crate::latency::ping;
use crate::link::{Link, Network, PATIENCE, wait_subscribed};
use crate::network::{Monitor, Role};
use crate::peer::publish;
use crate::table::{Table, median, quantile};
use crate::timescales::Property;
use crate::traces::Trace;

/// The time limit for one run.
const LIMIT: Duration = Duration::from_secs(300);
/// The time to get ready for a client that does not report it.
const FOREIGN: Duration = Duration::from_secs(1);
/// The number of pings at the beginning that are not measured.
const WARM_UP: usize = 500;

/// The figures of one client.
#[derive(Clone, Debug, Serialize)]
pub struct Client {
    /// Its task.
    pub does: &'static str,
    /// Its name.
    pub who: &'static str,
    /// Messages per second, turn by turn.
    pub rates: Vec<f64>,
    /// Round trips in microseconds: median and 99th percentile.
    pub round_us: Option<[f64; 2]>,
}

/// A client of mosquitto. Dropping it kills it.
struct Foreign(std::process::Child);

impl Foreign {
    fn start(program: &str, link: &Link, arguments: &[&str], stdin: Stdio, stdout: Stdio) -> Result<Foreign> {
        let port = link.broker_port().unwrap_or(1883).to_string();
        let mut command = Command::new(program);
        // Without stdbuf, lines wait in a buffer before they enter a pipe.
        if program == "stdbuf" {
            command.args(["-oL", "mosquitto_sub"]);
        }
        let started = command
            .args(["-h", "127.0.0.1", "-p", &port, "-q", "1"])
            .args(arguments)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(Stdio::null())
            .spawn();
        started.map(Foreign).map_err(|error| {
            Failure::Usage(format!(
                "mosquitto's clients cannot be started ({program}: {error}); install them"
            ))
        })
    }

    /// Waits until it ends by itself.
    fn wait(mut self, name: &str) -> Result<()> {
        let deadline = Instant::now() + LIMIT;
        loop {
            match self.0.try_wait().map_err(io_error(name))? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    let (name, status) = (name.to_owned(), status.to_string());
                    return Err(Failure::Child { name, status, log: String::new() });
                }
                None if Instant::now() >= deadline => {
                    return Err(Failure::Late { what: name.to_owned(), limit: LIMIT });
                }
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures each client `repeat` times, by turns.
///
/// # Errors
/// When a message is lost, or a client cannot be started.
pub fn measure(rondel: &Path, length: u64, pings: usize, repeat: usize, file: &Path) -> Result<Vec<Client>> {
    let property =
        Property::by_name("RespondBQR10").ok_or_else(|| Failure::Usage("no such property".to_owned()))?;
    let trace = Trace::of(property, length, 1)?;
    let mut text = File::create(file).map_err(io_error(file.display().to_string()))?;
    property
        .write_trace(length, 1, &mut std::io::BufWriter::new(&mut text))
        .map_err(io_error("the trace"))?;
    let monitor = Monitor::of(rondel, property);
    let client = |does, who| Client { does, who, rates: Vec::new(), round_us: None };
    let mut clients = vec![
        client("receives", "rondel run, verdicts on change"),
        client("receives", "Rondel's subscriber that only counts"),
        client("receives", "mosquitto_sub"),
        client("publishes", "Rondel's publisher"),
        client("publishes", "mosquitto_pub -l"),
        client("both", "rondel run, a verdict for every message"),
        client("both", "Rondel's echo"),
        client("both", "mosquitto_sub to mosquitto_pub -l"),
    ];
    for turn in 0..repeat {
        // The first may find the machine in another state.
        let forward = 0..5;
        let order: Vec<usize> = if turn % 2 == 0 { forward.collect() } else { forward.rev().collect() };
        for which in order {
            let seconds = match which {
                0 => ours(&trace, Role::MonitorChange(&monitor))?,
                1 => ours(&trace, Role::Count)?,
                2 => theirs(&trace)?,
                3 => sends(&trace, None)?,
                _ => sends(&trace, Some(file))?,
            };
            clients[which].rates.push(trace.len() as f64 / seconds);
        }
    }
    let lines: Vec<&[u8]> = trace.lines().take(pings + WARM_UP).collect();
    for (at, role) in [Some(Role::MonitorEvery(&monitor)), Some(Role::Echo), None].into_iter().enumerate() {
        clients[5 + at].round_us = Some(round_trips(&lines, role)?);
    }
    Ok(clients)
}

/// Returns the seconds from before the first message is published until a subscriber of Rondel has received all and ended.
fn ours(trace: &Trace, role: Role<'_>) -> Result<f64> {
    let link = Link::open(Network::Mqtt)?;
    let publisher = link.publisher("bench/in", true)?;
    let arguments = role.arguments(Network::Mqtt, &link, "bench/in", "bench/out", Some(trace.len()));
    let verdicts = link.count("bench/out", u64::MAX)?;
    let mut child = Child::start("subscriber", &role.program()?, &arguments, Stdout::Nothing)?;
    child.kill_after(LIMIT);
    child.wait_for("ready", PATIENCE)?;
    // The subscriber of verdicts is there because `rondel run` waits for one; from now on it would only cost.
    drop(verdicts);
    wait_subscribed(&*publisher)?;
    let started = Instant::now();
    publish(&*publisher, trace)?;
    let ended = child.wait(LIMIT)?;
    let seconds = started.elapsed().as_secs_f64();
    same(|| "received".to_owned(), trace.len(), ended.summary("subscriber")?.received)?;
    drop(publisher);
    link.close();
    Ok(seconds)
}

/// Returns the same for `mosquitto_sub`.
fn theirs(trace: &Trace) -> Result<f64> {
    let link = Link::open(Network::Mqtt)?;
    let publisher = link.publisher("bench/in", true)?;
    let count = trace.len().to_string();
    let arguments = ["-t", "bench/in", "-C", &count];
    let child = Foreign::start("mosquitto_sub", &link, &arguments, Stdio::null(), Stdio::null())?;
    wait_subscribed(&*publisher)?;
    std::thread::sleep(FOREIGN);
    let started = Instant::now();
    publish(&*publisher, trace)?;
    child.wait("mosquitto_sub")?;
    let seconds = started.elapsed().as_secs_f64();
    drop(publisher);
    link.close();
    Ok(seconds)
}

/// Returns the seconds from before the first message is published until the last has arrived here. With a file,
/// `mosquitto_pub` publishes it, and its start counts.
fn sends(trace: &Trace, file: Option<&Path>) -> Result<f64> {
    let link = Link::open(Network::Mqtt)?;
    let counted = link.count("bench/in", trace.len())?;
    let seconds = match file {
        None => {
            let publisher = link.publisher("bench/in", true)?;
            wait_subscribed(&*publisher)?;
            let started = Instant::now();
            publish(&*publisher, trace)?;
            counted.counter.wait("received", LIMIT)?.duration_since(started).as_secs_f64()
        }
        Some(file) => {
            let text = File::open(file).map_err(io_error(file.display().to_string()))?;
            let started = Instant::now();
            let arguments = ["-t", "bench/in", "-l"];
            let child = Foreign::start("mosquitto_pub", &link, &arguments, text.into(), Stdio::null())?;
            let ended = counted.counter.wait("received", LIMIT)?;
            child.wait("mosquitto_pub")?;
            ended.duration_since(started).as_secs_f64()
        }
    };
    drop(counted);
    link.close();
    Ok(seconds)
}

/// Measures round trips, one message at a time: through a participant of Rondel, or through mosquitto's two clients and a pipe.
fn round_trips(lines: &[&[u8]], role: Option<Role<'_>>) -> Result<[f64; 2]> {
    let link = Link::open(Network::Mqtt)?;
    let back = link.count("bench/out", u64::MAX)?;
    let publisher = link.publisher("bench/in", false)?;
    let mut kept = (None, Vec::new());
    match role {
        Some(role) => {
            let arguments = role.arguments(Network::Mqtt, &link, "bench/in", "bench/out", None);
            let mut child = Child::start("echo", &role.program()?, &arguments, Stdout::Nothing)?;
            child.wait_for("ready", PATIENCE)?;
            kept.0 = Some(child);
        }
        None => {
            let arguments = ["-t", "bench/in"];
            let mut from = Foreign::start("stdbuf", &link, &arguments, Stdio::null(), Stdio::piped())?;
            let pipe = from.0.stdout.take().map_or_else(Stdio::null, Stdio::from);
            let arguments = ["-t", "bench/out", "-l"];
            kept.1.push(Foreign::start("mosquitto_pub", &link, &arguments, pipe, Stdio::null())?);
            kept.1.push(from);
            std::thread::sleep(FOREIGN);
        }
    }
    wait_subscribed(&*publisher)?;
    let mut times = Vec::with_capacity(lines.len());
    for (sent, line) in (1..).zip(lines) {
        times.push(ping(&*publisher, &back.counter, sent, line)?);
    }
    drop((kept, publisher, back));
    link.close();
    let measured = &times[WARM_UP.min(times.len() - 1)..];
    Ok([median(measured), quantile(measured, 0.99)])
}

/// Returns the table.
pub fn table(clients: &[Client]) -> Table {
    let mut table = Table::new(
        "MQTT beside mosquitto's own clients",
        &["does", "client", "messages/s", "least", "most", "round trip p50 us", "p99 us"],
    );
    for Client { does, who, rates, round_us } in clients {
        let rate = |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.0}"));
        let us = |us: Option<f64>| us.map_or_else(|| "–".to_owned(), |us| format!("{us:.0}"));
        table.row(vec![
            (*does).to_owned(),
            (*who).to_owned(),
            rate((!rates.is_empty()).then(|| median(rates))),
            rate(rates.iter().copied().reduce(f64::min)),
            rate(rates.iter().copied().reduce(f64::max)),
            us(round_us.map(|us| us[0])),
            us(round_us.map(|us| us[1])),
        ]);
    }
    table.note(
        "Quality of service 1, one broker (mosquitto) on loopback, which is started for each turn. A subscriber is measured \
         from before Rondel's publisher publishes the first message until the subscriber has ended, a publisher until \
         Rondel's subscriber has received all messages. Medians of the turns.",
    );
    table
}
