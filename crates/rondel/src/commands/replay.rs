//! `rondel replay`: publishes the messages of a recording at their times.

mod as_json;
mod lines;
mod player;
mod source;
mod summary;
mod targets;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use rondel_decode::schema::{Library, Schema};
use rondel_event::Timestamp;
use rondel_net::ros2;
use rondel_recording::{RecordedTopic, Recording, RecordingError, Selection};
use rondel_runtime::text::counted;
use rondel_runtime::{Options, TimeSource};

use super::from_deployment;
use super::listen::only_listens;
use super::selecting::{is_named, names, no_such_topic, span};
use crate::commands::table_arguments::TableReading;
use crate::deployment::{Address, Binding, Deployment, Encoding, time_unit};
use crate::live::networks::{self, NetworkArguments, NetworkSettings};
use crate::live::outgoing::Outgoing;
use crate::live::signals::{self, StopFlag};
use crate::output::Format;
use crate::output::time_text::TimeText;
use crate::recorder::{EVENTS, VERDICTS};
use crate::schemas::Schemas;
use crate::schemas::recorded_types::type_name;
use crate::specification::is_deployment;
use crate::{complain, exit, say, warn};
use player::{ClockSink, Player};
use source::Source;
use summary::{LeftOut, Summary};
use targets::{Destination, Mapped, Place, Target, Targets};

/// Default rate of `/clock`, in messages per second.
const CLOCK_RATE: f64 = 40.0;
/// Maximum number of reasons in one error.
const REASONS: usize = 5;

/// Publish the messages of a recording on a network, at the times at which they were recorded
///
/// Payloads, types and quality of service are those of the recording. JSON lines, tables, and messages of ROS 1 and PX4 are
/// published as JSON.
#[derive(Debug, Args)]
pub struct Replay {
    /// The recordings: MCAP files, bags, logs of PX4 and tables, merged by time, or one file of JSON lines (.gz and .zst are
    /// decompressed). A deployment (.yaml) before them: its topics go to its addresses on its networks
    #[arg(value_name = "TRACE", required = true)]
    recordings: Vec<PathBuf>,
    /// The destination of topics, under their own names: zenoh, dds, mqtt or ros2, or below a part of it, such as zenoh:vehicle
    /// (default: the addresses that were recorded)
    #[arg(long, value_name = "NETWORK[:PREFIX]", visible_alias = "network", value_parser = place)]
    to: Option<Place>,
    /// The address of one topic, such as /odom=zenoh:vehicle/odom (may be repeated)
    #[arg(long, value_name = "TOPIC=ADDRESS", value_parser = Mapped::parse)]
    map: Vec<Mapped>,
    /// Publish only these topics: names or patterns, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    topics: Vec<String>,
    /// Begin with messages recorded at this time: seconds, a date and time, or +SECONDS after the beginning
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// End with messages recorded at this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,
    /// Publish FACTOR times as fast as recorded
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor, allow_hyphen_values = true)]
    rate: f64,
    /// Publish as fast as the network takes the messages
    #[arg(long, conflicts_with = "rate")]
    as_fast_as_possible: bool,
    /// Replay the recordings N times, or `forever`
    #[arg(long = "loop", value_name = "N", default_value = "1", value_parser = passes)]
    passes: Passes,
    /// Wait up to SECONDS until every topic has a subscriber
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    wait: u64,
    /// Wait for SECONDS after that
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = delay)]
    start_delay: f64,
    /// Publish the time of the recording on /clock of ROS 2, in the place of a recorded one
    #[arg(long)]
    clock: bool,
    /// Rate of /clock, in messages per second
    #[arg(long, value_name = "HZ", default_value_t = CLOCK_RATE, value_parser = clock_rate, requires = "clock")]
    clock_rate: f64,
    #[command(flatten)]
    tables: TableReading,
    /// The unit of times in JSON lines and tables that are plain numbers (default: s, of tables by their size)
    #[arg(long, value_name = "UNIT", value_parser = ["s", "ms", "us", "ns"])]
    time_unit: Option<String>,
    /// A file or folder with definitions of message types that the recording does not have (may be repeated)
    #[arg(long, value_name = "PATH")]
    schemas: Vec<PathBuf>,
    /// The format of the closing summary on standard error
    #[arg(long, value_enum, default_value = "text")]
    summary: Format,
    #[command(flatten)]
    network: NetworkArguments,
}

/// Number of times a recording is replayed; `None` is without end.
#[derive(Clone, Copy, Debug)]
struct Passes(Option<u32>);

fn place(text: &str) -> Result<Place, String> {
    if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-')) {
        return Err("this is no network; the end of the time span is --until".to_owned());
    }
    Place::parse(text)
}

fn passes(text: &str) -> Result<Passes, &'static str> {
    if text == "forever" {
        return Ok(Passes(None));
    }
    let number = text.parse().ok().filter(|number| *number > 0);
    number.map(|number| Passes(Some(number))).ok_or("a whole number from 1, or `forever`")
}

fn number(text: &str, range: std::ops::RangeInclusive<f64>) -> Option<f64> {
    text.parse().ok().filter(|number| range.contains(number))
}

fn factor(text: &str) -> Result<f64, &'static str> {
    number(text, 1e-3..=1e6)
        .ok_or("a number from 0.001 to 1,000,000; --as-fast-as-possible does not wait at all")
}

fn delay(text: &str) -> Result<f64, &'static str> {
    number(text, 0.0..=86_400.0).ok_or("a number of seconds up to a day")
}

fn clock_rate(text: &str) -> Result<f64, &'static str> {
    number(text, 0.1..=10_000.0).ok_or("a number from 0.1 to 10,000")
}

/// Whether a topic carries simulated time.
fn is_clock(topic: &RecordedTopic) -> bool {
    let is_named =
        matches!(topic.name.as_str(), "/clock" | "clock" | "rt/clock" | "ros2:/clock" | "dds:rt/clock");
    is_named && topic.schema.as_ref().is_none_or(|schema| type_name(&schema.name) == "rosgraph_msgs/Clock")
}

/// A publisher to create.
struct PlannedSink {
    address: Address,
    schema: Option<Schema>,
}

/// Assignment of the topics of a recording to sinks.
#[derive(Default)]
struct Plan {
    sinks: Vec<PlannedSink>,
    /// Index of the sink of each topic of the recording; `None` for a topic that is not published.
    routes: Vec<Option<usize>>,
    left_out: Vec<LeftOut>,
}

impl Plan {
    /// Adds a topic with its target; without one, the topic is left out.
    fn add(&mut self, topic: &RecordedTopic, target: Result<Option<Target>, String>) {
        let sink = match target {
            Ok(Some(target)) => {
                let warnings = target.warnings.clone();
                warnings.iter().for_each(|warning| warn(&format!("{}: {warning}", topic.name)));
                self.sink(target)
            }
            Ok(None) => {
                self.leave_out(topic, "the deployment does not have it".to_owned(), false);
                return self.routes.push(None);
            }
            Err(reason) => Err(reason),
        };
        match sink {
            Ok(sink) => self.routes.push(Some(sink)),
            Err(reason) => {
                self.leave_out(topic, reason, true);
                self.routes.push(None);
            }
        }
    }

    fn leave_out(&mut self, topic: &RecordedTopic, reason: String, is_failure: bool) {
        if self.left_out.iter().all(|left| left.topic != topic.name || left.reason != reason) {
            self.left_out.push(LeftOut { topic: topic.name.clone(), reason, is_failure });
        }
    }

    /// Error message if no topic can be published.
    fn emptiness(&self, topics: &[RecordedTopic]) -> String {
        let mut text = format!("no topic of the recording can be published; it has {}", names(topics));
        // Topics often share a reason.
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for LeftOut { topic, reason, .. } in &self.left_out {
            match reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, topics)) => topics.push(topic),
                None => reasons.push((reason, vec![topic])),
            }
        }
        let is_common = reasons.len() == 1;
        for (reason, topics) in reasons.iter().take(REASONS) {
            let which = if is_common { String::new() } else { format!("{}: ", topics.join(", ")) };
            text += &format!("; {which}{reason}");
        }
        text
    }

    /// Index of the sink of an address; topics with the same type and encoding share it.
    fn sink(&mut self, Target { address, schema, .. }: Target) -> Result<usize, String> {
        let Some(known) = self.sinks.iter().position(|sink| sink.address.meets(&address)) else {
            self.sinks.push(PlannedSink { address, schema });
            return Ok(self.sinks.len() - 1);
        };
        let kind = |address: &Address| match address {
            Address::Dds(_, topic_type, _) => (address.encoding(), topic_type.name().map(str::to_owned)),
            Address::Ros2(topic, _) => {
                (address.encoding(), topic.message_type.as_ref().map(ToString::to_string))
            }
            _ => (address.encoding(), None),
        };
        let other = &self.sinks[known].address;
        if kind(other) == kind(&address) {
            return Ok(known);
        }
        Err(format!("messages of another type or encoding already go to {other}"))
    }
}

impl Replay {
    /// Replays, and returns the exit status.
    pub fn run(self) -> u8 {
        match self.replay() {
            Ok(status) | Err(status) => status,
        }
    }

    fn replay(&self) -> Result<u8, u8> {
        let usage = |error: String| {
            complain(&error);
            exit::USAGE
        };
        let unreadable = |error: String| {
            complain(&error);
            exit::TRACE
        };
        span(self.times(), Timestamp::default()).map_err(usage)?;
        let (deployment, files) = self.deployment()?;
        let unit = self.time_unit.as_deref().and_then(time_unit);
        // A monitor that reads the time of messages from a field needs that field in the payload.
        let reads_time =
            |binding: &Binding| binding.input.time == TimeSource::Field(rondel_event::Path::keys(["time"]));
        let keep_time =
            deployment.as_ref().is_some_and(|deployment| deployment.sources.iter().any(reads_time));
        let source =
            Source::find(files, unit, self.tables.clone(), keep_time).map_err(|(error, status)| {
                complain(&error);
                status
            })?;
        let recording = source.open().map_err(unreadable)?;
        let topics = recording.topics().to_vec();
        if topics.is_empty() {
            return Err(usage("the recording has no messages".to_owned()));
        }
        let chosen = self.chosen(&topics).map_err(usage)?;
        let plan = self.plan(&topics, &chosen, deployment.as_ref()).map_err(usage)?;
        let first = recording.span().map(|(first, _)| first).unwrap_or_default();
        let mut selection = Selection::of_topics(plan.routes.iter().map(Option::is_some).collect());
        (selection.from, selection.until) = span(self.times(), first).map_err(usage)?;
        let recorded = recording.end();
        let until = recorded.until.map(|until| until.min(selection.until));
        let whole = recording.span();
        if !has_message(recording, &selection).map_err(unreadable)? {
            return Err(usage(nothing(&topics, whole)));
        }
        let interrupted = signals::listen(|| ()).map_err(networks::failed)?;
        let (mut outgoing, clock) = self.join(&plan, deployment.as_ref(), &interrupted)?;
        if source.survey.as_ref().is_some_and(|survey| survey.untimed > 0) && !self.as_fast_as_possible {
            warn("the recording begins with messages without a time: they are published at once");
        }
        let routed = plan.routes.iter().flatten().count() as u64;
        say(&format!("ready: {} of the recording", counted(routed, "topic", "topics")));
        outgoing.wait_for_subscribers(Duration::from_secs(self.wait), &interrupted);
        let pace = (!self.as_fast_as_possible).then_some(self.rate);
        let player = Player::new(&mut outgoing, &plan.routes, pace, clock, &interrupted);
        let open = || {
            let mut recording = source.open()?;
            recording.select(selection.clone());
            Ok(recording)
        };
        let delay = Duration::from_secs_f64(self.start_delay);
        let (played, elapsed) = player.play(self.passes.0, delay, until, open);
        let ended = outgoing.end();
        let mut named: Vec<(String, usize)> = Vec::new();
        for (topic, sink) in topics.iter().zip(&plan.routes) {
            let Some(sink) = *sink else { continue };
            // Each publisher may have been recorded as a topic of its own.
            if !named.iter().any(|(name, to)| *name == topic.name && *to == sink) {
                named.push((topic.name.clone(), sink));
            }
        }
        let summary = Summary {
            played,
            seconds: elapsed.as_secs_f64(),
            topics: named,
            clock: clock.map(|clock| clock.sink),
            left_out: plan.left_out,
            recorded,
            events: source.survey.as_ref().map_or(0, |survey| survey.events),
            ended,
        };
        Ok(self.end(&summary))
    }

    /// Shows the summary of the replay; returns the exit status.
    fn end(&self, summary: &Summary) -> u8 {
        say(&match self.summary {
            Format::Text => summary.text(),
            Format::Json => summary.json(),
        });
        if let Some(reason) = summary.played.failure.as_ref().or(summary.played.unreadable.as_ref()) {
            complain(reason);
        } else if summary.status() == exit::NETWORK && !summary.left_out.iter().any(|left| left.is_failure) {
            complain("the subscribers did not take every message");
        }
        summary.status()
    }

    fn times(&self) -> [(&'static str, Option<&str>); 2] {
        [("--from", self.from.as_deref()), ("--until", self.until.as_deref())]
    }

    /// The deployment, if one is named, and the recordings.
    fn deployment(&self) -> Result<(Option<Deployment>, Vec<PathBuf>), u8> {
        let is_deployment =
            |path: &&PathBuf| is_deployment(path) && path.file_name() != Some("metadata.yaml".as_ref());
        let (deployments, files): (Vec<&PathBuf>, Vec<&PathBuf>) =
            self.recordings.iter().partition(is_deployment);
        let mut files: Vec<PathBuf> = files.into_iter().cloned().collect();
        for file in &mut files {
            // The folder of a bag may be named by the file that describes it.
            if file.file_name() == Some("metadata.yaml".as_ref()) {
                *file =
                    file.parent().filter(|path| *path != Path::new("")).unwrap_or(Path::new(".")).to_owned();
            }
        }
        let refuse = |error: &str| {
            complain(error);
            Err(exit::USAGE)
        };
        let Some(file) = deployments.first() else { return Ok((None, files)) };
        if files.is_empty() {
            return refuse("no recording to replay: name one after the deployment");
        }
        if deployments.len() > 1 {
            return refuse("name one deployment at most");
        }
        let given = [(self.to.is_some(), "--to"), (!self.schemas.is_empty(), "--schemas")];
        if let Err(why) = from_deployment("replay", given.into_iter().chain(self.network.given())) {
            return refuse(&why);
        }
        let deployment = Deployment::for_recordings(file, &files).map_err(|_| exit::USAGE)?;
        let clock = deployment.clock.clone();
        let deployment = only_listens(deployment, self.network.exit_on_unreachable, false);
        Ok((Some(Deployment { clock, ..deployment }), files))
    }

    /// Returns for each topic of the recording whether it is selected.
    fn chosen(&self, topics: &[RecordedTopic]) -> Result<Vec<bool>, String> {
        let wanted: Vec<&str> =
            self.topics.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
        let is_there = |name: &str| topics.iter().any(|topic| is_named(name, &topic.name));
        if let Some(name) = wanted.iter().find(|name| !is_there(name)) {
            return Err(no_such_topic(name, topics));
        }
        if let Some(mapped) = self
            .map
            .iter()
            .find(|mapped| !topics.iter().any(|topic| targets::is_same(&mapped.topic, &topic.name)))
        {
            let (name, all) = (&mapped.topic, names(topics));
            return Err(format!("--map {name}=…: no topic of the recording has this name; it has {all}"));
        }
        let is_chosen = |topic: &RecordedTopic| match wanted.is_empty() {
            // Verdicts and events of the flight recorder are no messages of the system.
            true => ![VERDICTS, EVENTS].contains(&topic.name.as_str()),
            false => wanted.iter().any(|name| is_named(name, &topic.name)),
        };
        Ok(topics.iter().map(is_chosen).collect())
    }

    /// Plans the sinks of the selected topics.
    fn plan(
        &self,
        topics: &[RecordedTopic],
        chosen: &[bool],
        deployment: Option<&Deployment>,
    ) -> Result<Plan, String> {
        let own = Schemas::read(&self.schemas)?;
        let sessions = deployment.map(|deployment| deployment.plan(Options::default()));
        let destination = match (deployment, &sessions, &self.to) {
            (Some(deployment), Some(sessions), _) => Destination::Deployment(sessions, &deployment.sources),
            (.., Some(place)) => Destination::Below(place.clone()),
            _ => Destination::Recorded,
        };
        let schemas = deployment.map_or(&own, |deployment| &*deployment.specification.schemas);
        let again =
            (1..self.map.len()).find(|&i| self.map[..i].iter().any(|other| other.topic == self.map[i].topic));
        if let Some(again) = again {
            return Err(format!("--map {}=…: this topic has an address already", self.map[again].topic));
        }
        let targets = Targets { destination, mapped: &self.map, schemas };
        let clock = deployment.and_then(|deployment| deployment.clock.as_ref());
        let mut plan = Plan::default();
        for (topic, is_chosen) in topics.iter().zip(chosen) {
            if !is_chosen {
                plan.routes.push(None);
            } else if self.clock && is_clock(topic) {
                plan.leave_out(topic, "--clock publishes the time".to_owned(), false);
                plan.routes.push(None);
            } else if let Some(address) = clock.filter(|_| is_clock(topic)) {
                plan.add(topic, targets.at(address, topic).map(Some));
            } else {
                plan.add(topic, targets.target(topic));
            }
        }
        if plan.sinks.is_empty() {
            return Err(plan.emptiness(topics));
        }
        for LeftOut { topic, reason, .. } in plan.left_out.iter().filter(|left| left.is_failure) {
            warn(&format!("{topic} is not published: {reason}"));
        }
        let is_on_ros2 = plan.sinks.iter().any(|sink| matches!(sink.address, Address::Ros2(..)));
        if self.clock && !is_on_ros2 {
            return Err(
                "--clock publishes on ROS 2, and no topic goes there: add --to ros2, or leave --clock out"
                    .to_owned(),
            );
        }
        let has_clock = || topics.iter().zip(&plan.routes).any(|(topic, to)| is_clock(topic) && to.is_some());
        if clock.is_some() && !self.clock && !has_clock() {
            warn(
                "the time of the deployment is that of /clock, which the recording does not have: add --clock",
            );
        }
        Ok(plan)
    }

    /// Joins the networks and creates the publishers.
    fn join(
        &self,
        plan: &Plan,
        deployment: Option<&Deployment>,
        interrupted: &StopFlag,
    ) -> Result<(Outgoing, Option<ClockSink>), u8> {
        let clock = self.clock.then(ros2::clock::published).transpose();
        let clock = clock.map_err(networks::failed)?;
        let clock = clock.map(|topic| Address::Ros2(Box::new(topic), Encoding::CDR));
        let addresses = plan.sinks.iter().map(|sink| &sink.address).chain(&clock);
        let networks = match deployment {
            None => self.network.open(addresses, interrupted)?,
            Some(deployment) => {
                let mut settings: NetworkSettings = deployment.networks.clone();
                addresses.for_each(|address| settings.need(address));
                networks::open(&settings, deployment.exit_on_unreachable, interrupted)?
            }
        };
        let mut outgoing = Outgoing::new(networks, interrupted.clone(), self.network.slow_consumer.is_none());
        for PlannedSink { address, schema } in &plan.sinks {
            outgoing.add(address, schema.as_ref(), self.as_fast_as_possible).map_err(networks::failed)?;
        }
        let Some(clock) = clock else { return Ok((outgoing, None)) };
        let schema = Library::ros().and_then(|library| library.schema(ros2::clock::TYPE)).ok();
        let sink = outgoing.add(&clock, schema.as_ref(), false).map_err(networks::failed)?;
        let interval = Duration::from_secs_f64(1.0 / self.clock_rate);
        Ok((outgoing, Some(ClockSink { sink, interval })))
    }
}

/// Whether a recording has a message of the selection.
fn has_message(mut recording: Box<dyn Recording>, selection: &Selection) -> Result<bool, String> {
    recording.select(selection.clone());
    loop {
        match recording.advance() {
            Ok(next) => return Ok(next.is_some()),
            // The replay reports it.
            Err(RecordingError::Damage { .. } | RecordingError::Cut { .. }) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// Error message for a recording without a message of the selection.
fn nothing(topics: &[RecordedTopic], span: Option<(Timestamp, Timestamp)>) -> String {
    let mut times = TimeText::default();
    let span = span.map_or_else(
        || "it has no messages at all".to_owned(),
        |(first, last)| format!("it has messages from {} to {}", times.text(first), times.text(last)),
    );
    let all = if topics.is_empty() { "none".to_owned() } else { names(topics) };
    format!("no message of the recording is selected: {span}; its topics are: {all}")
}
