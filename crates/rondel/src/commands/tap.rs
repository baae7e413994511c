//! `rondel tap`: prints messages as they arrive or as alignment releases them.

mod members;
mod printer;
mod printing;
mod view;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rondel_decode::Encoding;
use rondel_event::{TimeUnit, TopicId};
use rondel_net::dds;
use rondel_runtime::Input;

use super::listen::{Listening, misused, named_deployment, only_listens, read_named};
use crate::deployment::{Address, Binding, Deployment, time_source, time_unit};
use crate::live::discover;
use crate::live::networks::{self, NetworkArguments, Networks};
use crate::live::pipeline::{self, Simulated, Stop};
use crate::live::running::{END_WITHIN, Options, Running};
use crate::live::signals::End;
use crate::output::Format;
use crate::output::terminal;
use crate::sinks::Sink;
use crate::sinks::actions::PROGRAMS;
use crate::sinks::console::Console;
use crate::sinks::driven::Destinations;
use crate::sinks::spool::Spools;
use crate::{complain, exit, say, warn};
use printer::{Printer, ReadTopics, Reading, Screen};
use printing::{Prints, reading};
use view::{Form, View};

/// Print the messages on topics, one per line
#[derive(Debug, Args)]
pub struct Tap {
    /// The topics: zenoh:KEY or mqtt:TOPIC (wildcards allowed), dds:TOPIC or ros2:/TOPIC, with an encoding
    /// that is not JSON dds+cdr:TOPIC; or a deployment (.yaml) for all its topics
    #[arg(value_name = "ADDRESS", required = true)]
    sources: Vec<String>,
    /// Print the messages or sets that alignment releases, in order
    #[arg(long, conflicts_with = "once")]
    aligned: bool,
    /// Print only these fields of each message, such as header.stamp (may be repeated, or several with commas)
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    field: Vec<String>,
    /// The format of messages (default: raw for one address with JSON, otherwise text)
    #[arg(long, value_enum)]
    format: Option<Form>,
    /// Print only the first message of every topic, and stop; a pattern counts as one topic
    #[arg(long)]
    once: bool,
    /// Print events of topics on DDS too, such as a missed deadline
    #[arg(long, conflicts_with_all = ["aligned", "once"])]
    events: bool,
    /// Stop after N messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// The time of a message: arrival, source, or a field of the message (default: arrival)
    #[arg(long, value_name = "WHICH", alias = "time")]
    time_from: Option<String>,
    /// The unit of times in messages that are plain numbers (default: s)
    #[arg(long, value_name = "UNIT", value_parser = ["s", "ms", "us", "ns"])]
    time_unit: Option<String>,
    /// The type of the messages, such as nav_msgs/msg/Odometry (default on DDS: that of the publisher)
    #[arg(long = "type", value_name = "TYPE")]
    message_type: Option<String>,
    /// A file or folder with definitions of message types (may be repeated)
    #[arg(long, value_name = "PATH")]
    schemas: Vec<PathBuf>,
    #[command(flatten)]
    network: NetworkArguments,
}

impl Tap {
    /// Prints messages until a signal or a limit, and returns the exit status.
    pub fn run(self) -> u8 {
        self.tap().unwrap_or_else(|status| status)
    }

    /// The format of messages.
    fn form(&self, deployment: &Deployment) -> Result<Form, String> {
        let several = |text: &String| text.strip_prefix("dds:").is_some_and(dds::is_pattern);
        let plain = self.sources.len() == 1
            && named_deployment(&self.sources).is_none()
            && !self.sources.iter().any(several)
            && deployment.sources.iter().all(|binding| binding.input.encoding == Encoding::Json);
        let looks_inside = !self.field.is_empty() || self.aligned || self.time_from.is_some();
        let form = self.format.unwrap_or(if plain && !looks_inside { Form::Raw } else { Form::Text });
        if form == Form::Raw && (self.aligned || !self.field.is_empty()) {
            return Err(
                "raw messages are printed as they are; --field and --aligned need --format json or text"
                    .to_owned(),
            );
        }
        if let Some(field) = self.field.iter().find(|field| field.split('.').any(str::is_empty)) {
            return Err(format!("--field {field}: write the path of a field, such as header.stamp"));
        }
        Ok(form)
    }

    /// The deployment to subscribe to. The error is empty if it has been shown.
    fn deployment(&self) -> Result<Deployment, String> {
        let given = [
            (self.time_from.is_some(), "--time-from"),
            (self.time_unit.is_some(), "--time-unit"),
            (self.message_type.is_some(), "--type"),
            (!self.schemas.is_empty(), "--schemas"),
        ];
        match read_named("tap", &self.sources, &given, &self.network)? {
            Some(deployment) => Ok(only_listens(deployment, self.network.exit_on_unreachable, self.aligned)),
            None => self.addresses(),
        }
    }

    fn addresses(&self) -> Result<Deployment, String> {
        let time = self.time_from.as_deref().unwrap_or("arrival");
        if time.split('.').any(str::is_empty) {
            return Err("--time-from must be arrival, source or a field such as header.stamp".to_owned());
        }
        if self.aligned && (self.time_from.is_none() || self.sources.len() < 2) {
            return Err(
                "--aligned needs a deployment, or several addresses and --time-from, which says where their \
                        times are"
                    .to_owned(),
            );
        }
        let unit = self.time_unit.as_deref().and_then(time_unit).unwrap_or(TimeUnit::Seconds);
        Listening {
            sources: &self.sources,
            input: Input { time: time_source(time), time_unit: unit, ..Input::default() },
            message_type: self.message_type.as_deref(),
            schemas: &self.schemas,
            network: &self.network,
            patterns: if self.aligned {
                Err("--aligned needs to know all topics from the beginning; name topics of DDS one by one")
            } else {
                Ok(())
            },
        }
        .deployment()
    }

    fn tap(&self) -> Result<u8, u8> {
        let mut deployment = self.deployment().map_err(misused)?;
        let form = self.form(&deployment).map_err(misused)?;
        let end = End::on_signal().map_err(networks::failed)?;
        if form == Form::Raw {
            // Payloads are not decoded.
            deployment.sources.iter_mut().for_each(|binding| binding.input = Input::default());
        }
        discover::types(&mut deployment, &end.interrupted)?;
        let names: Vec<String> =
            deployment.specification.spec.declared().iter().map(|topic| topic.name.clone()).collect();
        let view = View::new(form, terminal::colours_stdout(), &self.field, &names);
        let out = Console::new(deployment.slow_consumer, None);
        let dropped = out.drops();
        let readings = readings(form, &deployment)?;
        let Deployment { networks, exit_on_unreachable, sources, .. } = &deployment;
        let networks = networks::open(networks, *exit_on_unreachable, &end.interrupted)?;
        if self.aligned {
            let screen = Screen::new(view, out, end.stop.clone());
            return self.print_aligned(&deployment, networks, screen, end);
        }
        let count = self.count.unwrap_or(u64::MAX);
        let topics = ReadTopics { names, bindings: sources, readings };
        let printer = Printer::new(view, out, topics, self.once, count, end.stop.clone());
        let printer = Arc::new(printer.with_events(self.events));
        if self.events && sources.iter().any(|binding| lacks_deadline(&binding.address)) {
            warn(
                "no deadline is requested, so that `missed_deadline` is not recorded; a deployment requests one with \
                 `qos: {deadline: 100 ms}`",
            );
        }
        let specification = deployment.specification.clone();
        let reader = Prints { form, specification, largest: deployment.limits.message, printer };
        printing::run(&deployment, networks, reader, &dropped, &end.stopped).map_err(networks::failed)
    }

    /// Prints the messages or sets that alignment releases.
    fn print_aligned(
        &self,
        deployment: &Deployment,
        networks: Networks,
        screen: Screen,
        end: End,
    ) -> Result<u8, u8> {
        let End { stop, stopped, interrupted } = end;
        let (clock, simulation) = pipeline::clock(deployment.clock.is_some());
        let plan = Arc::new(deployment.plan(rondel_runtime::Options {
            clock: Arc::clone(&clock),
            live: true,
            ..rondel_runtime::Options::default()
        }));
        let options = Options {
            format: Format::Text,
            colour: false,
            snapshots: None,
            count: self.count,
            wait_subscribers: Duration::ZERO,
            stop,
            spools: Spools::default(),
            audit: None,
            destinations: Destinations::default(),
            feed: None,
            screen: Some(Sink::Network(Arc::new(screen.clone()))),
            simulated: simulation.map(|simulation| Simulated::new(simulation, Arc::clone(&plan))),
            metrics: None,
            tap: None,
            copies: None,
            read: Vec::new(),
            end_within: END_WITHIN,
            programs: PROGRAMS,
            resumes: false,
        };
        let session = plan.start().map_err(networks::failed)?;
        let running = Running::start(deployment, &plan, session, clock, networks, options, &interrupted)
            .map_err(networks::failed)?;
        say(&format!("ready{}", discover::read_now(deployment)));
        let why = running.wait(&stopped, || ());
        let Some(summary) = running.end(why) else {
            return Err(networks::failed("standard output does not accept data: messages are lost"));
        };
        say(&summary.text(terminal::colours_stderr()));
        let (missing, failure) = screen.end();
        missing.iter().for_each(|sentence| say(&format!("  {sentence}")));
        Ok(status(failure, summary.is_complete() && why != Stop::GivenUp))
    }
}

/// Whether an address could have a deadline, and requests none.
fn lacks_deadline(address: &Address) -> bool {
    match address {
        Address::Dds(_, _, qos) => qos.deadline.is_none(),
        Address::Ros2(topic, _) => topic.qos.deadline.is_none(),
        _ => false,
    }
}

/// Decoding and presentation of the messages of each topic.
///
/// # Errors
/// The exit status, after the reason was shown.
fn readings(form: Form, deployment: &Deployment) -> Result<Vec<Reading>, u8> {
    let Deployment { specification, limits, sources, .. } = deployment;
    let of_topic = |(topic, binding): (TopicId, &Binding)| {
        reading(form, specification, topic, binding, limits.message).map_err(|error| {
            complain(&format!("{}: {error}", binding.address));
            exit::USAGE
        })
    };
    (0..).map(TopicId).zip(sources).map(of_topic).collect()
}

/// The exit status; shows why the output could not be written.
fn status(failure: Option<String>, flushed: bool) -> u8 {
    match failure {
        Some(error) => {
            complain(&format!("cannot write the output: {error}"));
            exit::TRACE
        }
        None if flushed => exit::SATISFIED,
        None => exit::NETWORK,
    }
}
