//! `rondel demo`: a vehicle and its monitor on a real Zenoh network, in one process.

use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use clap::Args;
use rondel_event::{Path, TimeUnit};
use rondel_net::adapter::Publisher;
use rondel_net::zenoh;
use rondel_runtime::alignment::Policy;
use rondel_runtime::{Alignment, Clock, Emit, Input, SystemClock, TimeSource};

use crate::deployment::{Address, AlignmentSection, Binding, Deployment, Encoding, Limits};
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

/// The specification of the demo.
const SPECIFICATION: &str = include_str!("../../../../examples/vehicle.rondel");
/// The ticks of the vehicle per second.
const RATE: u32 = 20;
/// The length of the drive in ticks.
const LENGTH: u32 = 9 * RATE;

/// Watch Rondel check a live network, without any set-up
///
/// A vehicle model publishes over real Zenoh on this machine, three properties watch it, and one of
/// them is violated.
#[derive(Debug, Args)]
pub struct Demo {
    /// Run as fast as possible instead of in real time
    #[arg(long)]
    fast: bool,
}

/// The state of the vehicle at a tick: a function of the tick alone.
struct Vehicle {
    velocity: f64,
    gear: i64,
    brake: bool,
    remark: Option<&'static str>,
}

impl Vehicle {
    fn at(tick: u32) -> Vehicle {
        let t = f64::from(tick) / f64::from(RATE);
        let remark = match tick {
            0 => Some("the vehicle pulls out of its space, in drive"),
            60 => Some("brakes"),
            100 => Some("stands, and changes to reverse: as it should be"),
            120 => Some("rolls backwards"),
            150 => Some("changes to drive while it still rolls: that is the mistake"),
            _ => None,
        };
        // Up to 8 m/s in 2 s, on, braking from 3 s to 4.5 s, standing, backwards from 6 s, slower
        // from 7 s.
        let velocity = if t < 2.0 {
            4.0 * t
        } else if t < 3.0 {
            8.0
        } else if t < 4.5 {
            8.0 - 8.0 * (t - 3.0) / 1.5
        } else if t < 6.0 {
            0.0
        } else if t < 7.0 {
            -1.5 * (t - 6.0)
        } else {
            (-1.5 + (t - 7.0)).min(0.0)
        };
        let gear = if (100..150).contains(&tick) { 20 } else { 2 };
        Vehicle { velocity, gear, brake: (60..110).contains(&tick), remark }
    }
}

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
    Deployment {
        // The vehicle publishes in order.
        alignment: AlignmentSection {
            alignment: Alignment::new(Policy::Arrival),
            ..AlignmentSection::by_default(&[])
        },
        synchronized: None,
        sources,
        networks,
        emit: Emit::Change,
        sinks: vec![vec![Address::Stdout]; specification.program.properties().len()],
        slow_consumer: crate::deployment::SLOW_CONSUMER_WAIT,
        spool: None,
        heartbeat: None,
        gates: Vec::new(),
        record: None,
        audit: None,
        text: None,
        metrics: None,
        page: None,
        store: None,
        driven: Vec::new(),
        actions: Vec::new(),
        exit_on_unreachable: true,
        missing_after: None,
        limits: Limits::default(),
        durability: None,
        ids: false,
        blind: Default::default(),
        reset: Default::default(),
        clock: None,
        watch: false,
        specification,
    }
}

impl Demo {
    /// Runs the demo, and returns the exit status.
    pub fn run(self) -> u8 {
        match self.demo() {
            Ok(()) => exit::SATISFIED,
            Err(error) => {
                complain(&error);
                exit::NETWORK
            }
        }
    }

    fn demo(&self) -> Result<(), String> {
        let specification = Specification::from_text(SPECIFICATION, "examples/vehicle.rondel")
            .map_err(|_| "the specification of the demo cannot be used".to_owned())?;
        let End { stop, stopped, .. } = End::on_signal()?;

        // Binds a free port to find it, and releases it for Zenoh.
        let port = TcpListener::bind(("127.0.0.1", 0))
            .and_then(|l| l.local_addr())
            .map_err(|e| e.to_string())?
            .port();
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
            read: Vec::new(),
            end_within: END_WITHIN,
            programs: PROGRAMS,
        };
        let running =
            Running::start(&deployment, &plan, session, clock, monitor, options, &StopFlag::default())?;
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
        self.drive(&publishers, &stopped)?;
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
    fn drive(&self, publishers: &[Box<dyn Publisher>], stopped: &mpsc::Receiver<Stop>) -> Result<(), String> {
        let started = Instant::now();
        let dim = if terminal::colours_stderr() { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        let mut last_gear = None;
        for tick in 0..LENGTH {
            if !self.fast {
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
}
