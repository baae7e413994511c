//! `rondel tap`: prints messages as they arrive or as alignment releases them.

mod members;
mod printer;
mod view;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use clap::Args;
use rondel_decode::Encoding;
use rondel_decode::json::JsonForm;
use rondel_event::{Read, TimeUnit, TopicId, ValueType};
use rondel_net::adapter::{Outage, Problems};
use rondel_net::dds;
use rondel_runtime::Input;
use rondel_runtime::text::counted;

use super::from_deployment;
use super::listen::{Listening, named_deployment, only_listens};
use crate::console::Console;
use crate::deployment::{Address, Binding, Deployment, time_source, time_unit};
use crate::discover::{self, Learning};
use crate::live::{Options, Running};
use crate::losses::{Seen, Undelivered, outage_text};
use crate::networks::NetworkArguments;
use crate::output::Format;
use crate::pipeline::{self, Simulated, Stop, sentence};
use crate::sinks::Sink;
use crate::specification::Specification;
use crate::spool::Spools;
use crate::time_text::TimeText;
use crate::{complain, exit, say, signals, terminal, warn};
use printer::{Printer, Reading, Screen};
use view::{Form, View};

/// How long to wait at the end for messages that are on their way.
const DRAIN: Duration = Duration::from_secs(2);
/// Interval of looking for losses.
const EVERY: Duration = Duration::from_secs(1);
/// How long no message must come for a subscription to be drained.
const QUIET: Duration = Duration::from_millis(20);
/// How long a receiver may take to return from its last message.
const CLOSE: Duration = Duration::from_secs(5);

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
        let prepared = self.deployment().and_then(|deployment| Ok((self.form(&deployment)?, deployment)));
        match prepared {
            Ok((form, deployment)) => match self.tap(form, deployment) {
                Ok(status) | Err(status) => status,
            },
            Err(error) => {
                if !error.is_empty() {
                    complain(&error);
                }
                exit::USAGE
            }
        }
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
        match named_deployment(&self.sources) {
            Some(file) if self.sources.len() == 1 => {
                let given = [
                    (self.time_from.is_some(), "--time-from"),
                    (self.time_unit.is_some(), "--time-unit"),
                    (self.message_type.is_some(), "--type"),
                    (!self.schemas.is_empty(), "--schemas"),
                ];
                from_deployment("tap", given.into_iter().chain(self.network.given()))?;
                let deployment = Deployment::from_file(Path::new(file)).map_err(|_| String::new())?;
                Ok(only_listens(deployment, self.network.exit_on_unreachable, self.aligned))
            }
            Some(file) => Err(format!("either addresses or one deployment, not {file} and others")),
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

    fn tap(&self, form: Form, mut deployment: Deployment) -> Result<u8, u8> {
        let network = |error: String| {
            complain(&error);
            exit::NETWORK
        };
        let (stop, stopped) = mpsc::channel();
        let asking = stop.clone();
        // The receiver lives as long as this function: a later signal has nothing to stop.
        let asked = signals::listen(move || _ = asking.send(Stop::Asked))
            .map_err(|e| network(format!("cannot listen for signals: {e}")))?;
        if form != Form::Raw {
            discover::types(&mut deployment, || asked.yet())?;
        }
        let topics: Vec<String> =
            deployment.specification.spec.declared().iter().map(|topic| topic.name.clone()).collect();
        let view = View::new(form, terminal::colours_stdout(), &self.field, &topics);
        let out = Console::new(deployment.slow_consumer, None);
        let dropped = out.drops();
        let readings = self.readings(form, &deployment)?;
        let Deployment { networks, exit_on_unreachable, sources, .. } = &deployment;
        let networks = crate::networks::open(networks, *exit_on_unreachable, || asked.yet())?;
        let ready = format!("ready{}", discover::read_now(&deployment));
        if self.aligned {
            let screen = Screen::new(view, out, stop.clone());
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
                screen: Some(Sink::Network(Arc::new(screen.clone()))),
                simulated: simulation.map(|simulation| Simulated::new(simulation, Arc::clone(&plan))),
            };
            let session = plan.start().map_err(|error| network(error.to_string()))?;
            let running =
                Running::start(&deployment, (&plan, session), clock, networks, options, || asked.yet())
                    .map_err(network)?;
            say(&ready);
            let Some(summary) = running.end(stopped.recv().unwrap_or(Stop::Asked)) else {
                return Err(network("standard output does not accept data: messages are lost".to_owned()));
            };
            say(&summary.text(terminal::colours_stderr()));
            let (missing, failure) = screen.end();
            missing.iter().for_each(|sentence| say(&format!("  {sentence}")));
            return Ok(status(failure, summary.is_complete()));
        }
        let count = self.count.unwrap_or(u64::MAX);
        let printer = Printer::new((view, out), topics, (sources, readings), self.once, count, stop);
        let printer = Arc::new(printer.with_events(self.events));
        let asks_for_none = |address: &Address| match address {
            Address::Dds(_, _, qos) => qos.deadline.is_none(),
            Address::Ros2(topic, _) => topic.qos.deadline.is_none(),
            _ => false,
        };
        if self.events && deployment.sources.iter().any(|binding| asks_for_none(&binding.address)) {
            warn(
                "no deadline is asked for, so that `missed_deadline` is not recorded; a deployment asks for one with \
                 `qos: {deadline: 100 ms}`",
            );
        }
        let networks = Arc::new(networks);
        let subscribe = |(i, binding): (usize, &Binding)| {
            let topic = TopicId(i as u32);
            match &binding.address {
                Address::Dds(name, topic_type, qos) if dds::is_pattern(name) => {
                    let printer = Arc::clone(&printer);
                    let select =
                        move |name: &str| Some((Arc::new(printer.named(format!("dds:{name}"))), None));
                    networks.subscribe_matching((name, topic_type, qos), None, topic, select)
                }
                address => networks.subscribe(address, topic, Arc::clone(&printer)),
            }
        };
        let is_read = |(_, binding): &(usize, &Binding)| form == Form::Raw || !discover::is_open(binding);
        let known = sources.iter().enumerate().filter(is_read);
        let subscriptions: Vec<_> = known.map(subscribe).collect::<Result<_, _>>().map_err(network)?;
        let subscriptions = Arc::new(Mutex::new(subscriptions));
        let learning = if form == Form::Raw {
            None
        } else {
            let (networks_of, printer) = (Arc::downgrade(&networks), Arc::clone(&printer));
            let (subscriptions, largest) = (Arc::clone(&subscriptions), deployment.limits.message);
            let specification = deployment.specification.clone();
            let begin = move |topic: usize, binding: &Binding| {
                let Some(networks) = networks_of.upgrade() else { return Ok(()) };
                let id = TopicId(topic as u32);
                let form = json_form(form, reads_names(&specification, topic, binding));
                let reading = Reading::new(id, binding, form, largest);
                printer.learn(id, reading.map_err(|error| error.to_string())?);
                let subscription = networks.subscribe(&binding.address, id, Arc::clone(&printer))?;
                subscriptions.lock().unwrap_or_else(PoisonError::into_inner).push(subscription);
                Ok(())
            };
            Learning::start(&deployment, Arc::clone(&networks), begin)
                .map_err(|error| network(format!("cannot start a thread: {error}")))?
        };
        say(&ready);
        // What nobody reads is counted below.
        let undelivered = Undelivered::default();
        let mut seen = Seen::new(&undelivered, printer.names().to_vec());
        while stopped.recv_timeout(EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
            let notices = printer.losses().into_iter().chain(seen.notices(
                &undelivered,
                networks.recovered(),
                networks.outages(),
            ));
            notices.for_each(|notice| crate::warn(&sentence(&notice)));
        }
        let unread = learning.map_or_else(Vec::new, Learning::end);
        let subscriptions =
            std::mem::take(&mut *subscriptions.lock().unwrap_or_else(PoisonError::into_inner));
        let drained = Instant::now() + DRAIN;
        let closed = drained + CLOSE;
        let mut problems = Problems::default();
        for subscription in &subscriptions {
            if asked.yet() {
                subscription.drain(QUIET, drained.saturating_duration_since(Instant::now()));
            }
        }
        for subscription in &subscriptions {
            subscription.close(closed.saturating_duration_since(Instant::now()));
            let seen = subscription.problems();
            problems.malformed += seen.malformed;
            problems.empty += seen.empty;
            problems.instance_events += seen.instance_events;
            problems.lost += seen.lost;
            problems.duplicates += seen.duplicates;
        }
        drop(subscriptions);
        let (received, missing, failure) = printer.end();
        let (mut accounts, mut times) = (printer.accounts(), TimeText::default());
        for (topic, recovered) in networks.recovered() {
            accounts[topic.index()].1.recovered = recovered.count;
        }
        let outages = networks.outages();
        if let Some(networks) = Arc::into_inner(networks) {
            networks.close();
        }
        let Problems { malformed, empty, lost, duplicates, .. } = problems;
        let of_network = [
            (malformed, "malformed"),
            (empty, "without payload"),
            (lost, "lost"),
            (duplicates, "possibly received twice"),
        ];
        let of_network = of_network.iter().filter(|(count, _)| *count > 0);
        let of_network: String = of_network
            .map(|(count, what)| format!(", {} {what}", counted(*count, "message", "messages")))
            .collect();
        let unprinted = match dropped.count() {
            0 => String::new(),
            count => format!(
                ", {} dropped because nobody read standard output",
                counted(count, "message", "messages")
            ),
        };
        let events = match problems.instance_events {
            0 => String::new(),
            count => format!(
                ", {} disposed of or without publishers",
                counted(count, "instance was", "instances were")
            ),
        };
        say(&format!("{received}{of_network}{events}{unprinted}"));
        // Nothing in what was printed tells that messages are missing.
        let is_missed =
            |outage: &Outage| deployment.sources.iter().any(|binding| binding.address.is_missed(outage));
        let was_cut_off = outages.iter().any(is_missed);
        let mut time = |time| times.text(time);
        let losses = accounts.iter().filter_map(|(name, account)| account.sentence(name, &mut time));
        let losses: Vec<String> = losses.collect();
        let outages = outages.iter().map(|outage| outage_text(outage, &mut times));
        unread.iter().for_each(|unread| say(&format!("  {}", unread.sentence())));
        missing.into_iter().chain(losses).chain(outages).for_each(|sentence| say(&format!("  {sentence}")));
        let lost: u64 = accounts.iter().map(|(_, account)| account.lost).sum();
        let is_complete = unread.is_empty() && !was_cut_off && dropped.count() + lost + problems.lost == 0;
        Ok(status(failure, is_complete))
    }
}

impl Tap {
    /// How the messages of each topic are read and shown.
    ///
    /// # Errors
    /// The exit status, after the reason was shown.
    fn readings(&self, form: Form, deployment: &Deployment) -> Result<Vec<Reading>, u8> {
        let largest = deployment.limits.message;
        let reading = |(i, binding): (usize, &Binding)| {
            let mut binding = binding.clone();
            if form == Form::Raw {
                // Nothing is looked into.
                binding.input = Input::default();
            }
            let of = json_form(form, reads_names(&deployment.specification, i, &binding));
            Reading::new(TopicId(i as u32), &binding, of, largest).map_err(|error| {
                complain(&format!("{}: {error}", binding.address));
                exit::USAGE
            })
        };
        deployment.sources.iter().enumerate().map(reading).collect()
    }
}

/// The form of messages that are not JSON.
fn json_form(form: Form, names: bool) -> JsonForm {
    match form {
        Form::Json => JsonForm { names, ..JsonForm::EXACT },
        Form::Raw | Form::Text => JsonForm::READABLE,
    }
}

/// Whether the specification reads names of enumerations, as it does without a definition of the type.
fn reads_names(specification: &Specification, topic: usize, binding: &Binding) -> bool {
    let outline = binding.input.message_type.as_ref().and_then(|of| of.outline().ok());
    let Some(outline) = outline else { return false };
    let projections = specification.program.projections();
    projections.get(topic).is_some_and(|projection| {
        projection
            .fields
            .iter()
            .any(|field| field.read == Read::Value(ValueType::String) && outline.is_enumeration(&field.path))
    })
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
