//! `rondel demo --live`: a vehicle and its monitor on a real Zenoh network, in one process.

use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rondel_event::{Path, TimeUnit};
use rondel_net::adapter::Publisher;
use rondel_net::zenoh;
use rondel_runtime::alignment::Policy;
use rondel_runtime::{Alignment, Clock, Input, SystemClock, TimeSource};

use crate::deployment::{Address, AlignmentSection, Binding, Deployment, Encoding};
use crate::live::networks::{self, NetworkSettings};
use crate::live::pipeline::Stop;
use crate::live::running::{END_WITHIN, Options, Running};
use crate::live::signals::{End, StopFlag};
use crate::output::Format;
use crate::output::terminal;
use crate::sinks::actions::PROGRAMS;
use crate::sinks::driven::Destinations;
use crate::sinks::spool::Spools;
use crate::specification::Specification;
use crate::{complain, exit, say};

use super::vehicle::{LENGTH, RATE, Vehicle};

/// The specification of the demo.
const SPECIFICATION: &str = include_str!("../../../vehicle.rondel");

/// The deployment of the demo: the topics on Zenoh, verdicts on standard output.
fn deployment(specification: Specification, addresses: &[Address], networks: NetworkSettings) -> Deployment {
    let binding = |address: &Address| Binding {
        address: address.clone(),
        input: Input {
            time: TimeSource::Field(Path::keys(["time"])),
            time_unit: TimeUnit::Seconds,
            ..Input::default()
        },
    };
    let sources: Vec<Binding> = addresses.iter().map(binding).collect();
    let sinks = vec![vec![Address::Stdout]; specification.program.properties().len()];
    Deployment {
        // The vehicle publishes in order.
        alignment: AlignmentSection {
            alignment: Alignment::new(Policy::Arrival),
            ..AlignmentSection::by_default(&[])
        },
        sinks,
        ..Deployment::of(specification, networks, sources)
    }
}

/// Runs the demo, as fast as possible if `is_fast`, and returns the exit status.
pub fn run(is_fast: bool) -> u8 {
    match demo(is_fast) {
        Ok(()) => exit::SATISFIED,
        Err(error) => {
            complain(&error);
            exit::NETWORK
        }
    }
}

fn demo(is_fast: bool) -> Result<(), String> {
    let specification = Specification::from_text(SPECIFICATION, "examples/vehicle.rondel")
        .map_err(|_| "the specification of the demo cannot be used".to_owned())?;
    let End { stop, stopped, .. } = End::on_signal()?;

    // Binds a free port to find it, and releases it for Zenoh.
    let port =
        TcpListener::bind(("127.0.0.1", 0)).and_then(|l| l.local_addr()).map_err(|e| e.to_string())?.port();
    let endpoint = vec![format!("tcp/127.0.0.1:{port}")];
    let on_zenoh = |settings| NetworkSettings { zenoh: Some(settings), ..NetworkSettings::default() };
    let listen = zenoh::Settings { listen: endpoint.clone(), ..zenoh::Settings::default() };
    let connect = zenoh::Settings { connect: endpoint.clone(), ..zenoh::Settings::default() };
    let (vehicle_side, monitor_side) = (on_zenoh(listen), on_zenoh(connect));
    let vehicle = networks::open(&vehicle_side, true, &StopFlag::default())
        .map_err(|_| "the vehicle cannot join Zenoh".to_owned())?;
    let monitor = networks::open(&monitor_side, true, &StopFlag::default())
        .map_err(|_| "the monitor cannot join Zenoh".to_owned())?;

    let topics = specification.spec.declared();
    let addresses: Vec<Address> =
        topics.iter().map(|t| Address::Zenoh(t.address.clone(), Encoding::JSON)).collect();
    let deployment = deployment(specification, &addresses, monitor_side);
    let publishers: Result<Vec<Box<dyn Publisher>>, String> =
        addresses.iter().map(|address| vehicle.publisher(address, false)).collect();
    let publishers = publishers?;
    let clock = Arc::new(SystemClock);
    let plan = deployment.plan(rondel_runtime::Options {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        live: true,
        ..rondel_runtime::Options::default()
    });
    let session = plan.start().map_err(|error| error.to_string())?;
    let options = Options {
        format: Format::Text,
        colour: terminal::colours_stdout(),
        snapshots: None,
        count: None,
        wait_subscribers: Duration::ZERO,
        stop,
        spools: Spools::default(),
        audit: None,
        destinations: Destinations::default(),
        feed: None,
        screen: None,
        simulated: None,
        metrics: None,
        tap: None,
        copies: None,
        read: Vec::new(),
        end_within: END_WITHIN,
        programs: PROGRAMS,
        resumes: false,
    };
    let running = Running::start(&deployment, &plan, session, clock, monitor, options, &StopFlag::default())?;
    for publisher in &publishers {
        if !publisher.wait_matched(Duration::from_secs(5)) {
            return Err("the monitor does not see the vehicle".to_owned());
        }
    }

    say(&format!("A vehicle publishes on Zenoh ({}), and Rondel watches:\n", endpoint[0]));
    for line in SPECIFICATION.lines() {
        say(&format!("    {line}"));
    }
    say("");
    drive(is_fast, &publishers, &stopped)?;
    for publisher in &publishers {
        publisher.flush(Duration::from_secs(5));
    }
    drop(publishers);
    let summary = running.end(Stop::Requested).ok_or("the verdicts could not be printed")?;
    vehicle.close();
    say("");
    say(&summary.text(terminal::colours_stderr()));
    say("\nNext: rondel check --formula 'speed <= 8.5' TRACE.jsonl, or rondel run --help");
    Ok(())
}

/// Publishes the state of the vehicle until the drive ends or `stopped` receives.
fn drive(
    is_fast: bool,
    publishers: &[Box<dyn Publisher>],
    stopped: &mpsc::Receiver<Stop>,
) -> Result<(), String> {
    let started = Instant::now();
    let dim = if terminal::colours_stderr() { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
    let mut last_gear = None;
    for tick in 0..LENGTH {
        if !is_fast {
            let due = started + Duration::from_secs(1) * tick / RATE;
            let left = due.saturating_duration_since(Instant::now());
            if stopped.recv_timeout(left).is_ok() {
                return Ok(());
            }
        }
        let Vehicle { velocity, gear, brake, remark } = Vehicle::at(tick);
        if let Some(remark) = remark {
            say(&format!("{}{:>5.1} s  {remark}{}", dim.0, f64::from(tick) / f64::from(RATE), dim.1));
        }
        let time = f64::from(tick) / f64::from(RATE);
        let velocity = format!("{{\"time\": {time}, \"longitudinal\": {velocity:.3}}}");
        publishers[1].publish(velocity.as_bytes()).map_err(|e| e.to_string())?;
        // Brake and gear are published when they change, and once per second.
        if tick % RATE == 0 || brake != Vehicle::at(tick.saturating_sub(1)).brake {
            let brake = format!("{{\"time\": {time}, \"pressed\": {brake}}}");
            publishers[2].publish(brake.as_bytes()).map_err(|e| e.to_string())?;
        }
        if last_gear != Some(gear) || tick % RATE == 0 {
            let report = format!("{{\"time\": {time}, \"report\": {gear}}}");
            publishers[0].publish(report.as_bytes()).map_err(|e| e.to_string())?;
        }
        last_gear = Some(gear);
    }
    Ok(())
}
