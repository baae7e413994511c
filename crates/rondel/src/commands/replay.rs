//! `rondel replay`: publishes the messages of a recording at their times.

mod as_json;
mod lines;
mod player;
mod summary;
mod targets;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use rondel_decode::schema::{Library, Schema};
use rondel_event::{TimeUnit, Timestamp};
use rondel_net::ros2;
use rondel_recording::{
    OpenError, Opened, RecordedTopic, Recording, RecordingError, Selection, TableOptions, shown,
};
use rondel_runtime::text::counted;
use rondel_runtime::{Options, TimeSource};

use super::from_deployment;
use super::listen::only_listens;
use super::selecting::{is_named, names, no_such_topic, span};
use crate::deployment::{Address, Binding, Deployment, Encoding, time_unit};
use crate::networks::{self, NetworkArguments, NetworkSettings};
use crate::outgoing::Outgoing;
use crate::output::Format;
use crate::recorded_types::type_name;
use crate::recorder::{EVENTS, VERDICTS};
use crate::schemas::Schemas;
use crate::signals::Asked;
use crate::specification::is_deployment;
use crate::table_arguments::TableReading;
use crate::time_text::TimeText;
use crate::{complain, exit, say, signals, warn};
use as_json::AsJson;
use lines::{LineRecording, Survey};
use player::{ClockOutlet, Player};
use summary::{LeftOut, Summary};
use targets::{Destination, Mapped, Place, Target, Targets};

/// How often `/clock` is published.
const CLOCK_RATE: f64 = 40.0;
/// The reasons that one error names.
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
    /// Where topics go, under their own names: zenoh, dds, mqtt or ros2, or below a part of it, such as zenoh:vehicle
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
    /// How many times as fast as recorded
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor, allow_hyphen_values = true)]
    rate: f64,
    /// Publish as fast as the network takes the messages
    #[arg(long, conflicts_with = "rate")]
    as_fast_as_possible: bool,
    /// Replay it so many times, or `forever`
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
    /// How often /clock is published, in messages per second
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

/// How often a recording is replayed; without a number, for ever.
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

/// Whether a topic has the time of a simulation.
fn is_clock(topic: &RecordedTopic) -> bool {
    let is_named =
        matches!(topic.name.as_str(), "/clock" | "clock" | "rt/clock" | "ros2:/clock" | "dds:rt/clock");
    is_named && topic.schema.as_ref().is_none_or(|schema| type_name(&schema.name) == "rosgraph_msgs/Clock")
}

/// A publisher that is to be made.
struct Outlet {
    address: Address,
    schema: Option<Schema>,
}

/// Where the topics of a recording go.
#[derive(Default)]
struct Plan {
    outlets: Vec<Outlet>,
    /// For each topic of the recording its outlet.
    routes: Vec<Option<usize>>,
    left_out: Vec<LeftOut>,
}

impl Plan {
    /// Adds a topic with its target, or leaves it out.
    fn add(&mut self, topic: &RecordedTopic, target: Result<Option<Target>, String>) {
        let outlet = match target {
            Ok(Some(target)) => {
                let doubts = target.doubts.clone();
                doubts.iter().for_each(|doubt| warn(&format!("{}: {doubt}", topic.name)));
                self.outlet(target)
            }
            Ok(None) => {
                self.leave_out(topic, "the deployment does not have it".to_owned(), false);
                return self.routes.push(None);
            }
            Err(reason) => Err(reason),
        };
        match outlet {
            Ok(outlet) => self.routes.push(Some(outlet)),
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

    /// Why no topic can be published, in words.
    fn emptiness(&self, topics: &[RecordedTopic]) -> String {
        let mut text = format!("no topic of the recording can be published; it has {}", names(topics));
        // Several topics mostly have one reason.
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

    /// The outlet of an address, which topics with the same type and encoding share.
    fn outlet(&mut self, Target { address, schema, .. }: Target) -> Result<usize, String> {
        let Some(known) = self.outlets.iter().position(|outlet| outlet.address.meets(&address)) else {
            self.outlets.push(Outlet { address, schema });
            return Ok(self.outlets.len() - 1);
        };
        let kind = |address: &Address| match address {
            Address::Dds(_, topic_type, _) => (address.encoding(), topic_type.name().map(str::to_owned)),
            Address::Ros2(topic, _) => {
                (address.encoding(), topic.message_type.as_ref().map(ToString::to_string))
            }
            _ => (address.encoding(), None),
        };
        let other = &self.outlets[known].address;
        if kind(other) == kind(&address) {
            return Ok(known);
        }
        Err(format!("messages of another type or encoding already go to {other}"))
    }
}

/// The recordings to replay.
struct Source {
    files: Vec<PathBuf>,
    unit: TimeUnit,
    /// How tables are read, and the unit of their times if it was given.
    tables: (TableReading, Option<TimeUnit>),
    /// Of JSON lines.
    survey: Option<Survey>,
}

impl Source {
    /// Opens the recordings, from the beginning.
    fn open(&self) -> Result<Box<dyn Recording>, String> {
        let (tables, unit) = &self.tables;
        let options = TableOptions { unit: *unit, ..tables.options() };
        match (&self.survey, &self.files[..]) {
            (Some(survey), [file, ..]) => {
                let recording = LineRecording::open(file, self.unit, survey.clone());
                Ok(Box::new(recording.map_err(|error| error.to_string())?))
            }
            (None, [file]) => match rondel_recording::open_messages_with(file, &options) {
                Ok(Some(recording)) => Ok(AsJson::of(file.clone(), recording)),
                Ok(None) => Err(format!("{} is no recording any more", shown(file))),
                Err(error) => Err(error.to_string()),
            },
            (_, files) => match rondel_recording::merge_with(files, &options) {
                Ok(Opened::Messages(recording)) => {
                    Ok(AsJson::of(files.first().cloned().unwrap_or_default(), recording))
                }
                Ok(Opened::Lines(_)) => Err("lines cannot be merged".to_owned()),
                Err(error) => Err(error.to_string()),
            },
        }
    }

    /// Finds out what the recordings are. `keep_time` says whether messages of JSON lines have their time as a field.
    ///
    /// # Errors
    /// Why they cannot be replayed, and the exit status.
    fn find(
        files: Vec<PathBuf>,
        unit: TimeUnit,
        tables: (TableReading, Option<TimeUnit>),
        keep_time: bool,
    ) -> Result<Source, (String, u8)> {
        tables.0.check(&files).map_err(|error| (error, exit::USAGE))?;
        let lines = |file: &&PathBuf| file.as_os_str() == "-" || rondel_recording::has_lines(file);
        if files.len() > 1
            && let Some(file) = files.iter().find(lines)
        {
            let reason = "has JSON lines: only MCAP files and folders of rosbag2 can be replayed together";
            return Err((format!("{} {reason}", shown(file)), exit::USAGE));
        }
        let survey = match &files[..] {
            [file] if !is_lasting(file) => {
                let reason = "is no file: a recording is read twice, for its topics and for its messages; write it to a \
                              file, or send its lines to one topic with `rondel publish`";
                return Err((format!("{} {reason}", shown(file)), exit::USAGE));
            }
            [file] => {
                let unreadable = |error: String| (error, exit::TRACE);
                let options = TableOptions { unit: tables.1, ..tables.0.options() };
                match rondel_recording::open_with(file, &options).map_err(|error| match error {
                    OpenError::Messages(RecordingError::Choice { .. }) => (error.to_string(), exit::USAGE),
                    _ => unreadable(error.to_string()),
                })? {
                    Opened::Lines(_) => Some(Survey::of(file, unit, keep_time).map_err(unreadable)?),
                    Opened::Messages(_) => None,
                }
            }
            _ => None,
        };
        Ok(Source { files, unit, tables, survey })
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
        let given = self.time_unit.as_deref().and_then(time_unit);
        let (unit, tables) = (given.unwrap_or_default(), (self.tables.clone(), given));
        // What the monitor at the other end takes for the time of a message must be in it.
        let reads_time =
            |binding: &Binding| binding.input.time == TimeSource::Field(rondel_event::Path::keys(["time"]));
        let keep_time =
            deployment.as_ref().is_some_and(|deployment| deployment.sources.iter().any(reads_time));
        let source = Source::find(files, unit, tables, keep_time).map_err(|(error, status)| {
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
        let asked = signals::listen(|| ()).map_err(|error| {
            complain(&format!("cannot listen for signals: {error}"));
            exit::NETWORK
        })?;
        let (mut outgoing, clock) = self.join(&plan, deployment.as_ref(), &asked)?;
        if source.survey.as_ref().is_some_and(|survey| survey.untimed > 0) && !self.as_fast_as_possible {
            warn("the recording begins with messages without a time: they are published at once");
        }
        let routed = plan.routes.iter().flatten().count() as u64;
        say(&format!("ready: {} of the recording", counted(routed, "topic", "topics")));
        outgoing.wait_for_subscribers(Duration::from_secs(self.wait), &asked);
        let pace = (!self.as_fast_as_possible).then_some(self.rate);
        let player = Player::new(&mut outgoing, &plan.routes, (pace, clock), &asked);
        let open = || {
            let mut recording = source.open()?;
            recording.select(selection.clone());
            Ok(recording)
        };
        let delay = Duration::from_secs_f64(self.start_delay);
        let (played, elapsed) = player.play(self.passes.0, delay, until, open);
        let ended = outgoing.end();
        let mut named: Vec<(String, usize)> = Vec::new();
        for (topic, outlet) in topics.iter().zip(&plan.routes) {
            let Some(outlet) = *outlet else { continue };
            // Each publisher may have been recorded as a topic of its own.
            if !named.iter().any(|(name, to)| *name == topic.name && *to == outlet) {
                named.push((topic.name.clone(), outlet));
            }
        }
        let summary = Summary {
            played,
            seconds: elapsed.as_secs_f64(),
            topics: named,
            clock: clock.map(|clock| clock.outlet),
            left_out: plan.left_out,
            recorded,
            events: source.survey.as_ref().map_or(0, |survey| survey.events),
            ended,
        };
        Ok(self.end(&summary))
    }

    /// Shows what became of the replay; returns the exit status.
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

    /// Which topics of the recording are chosen.
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

    /// Where the chosen topics go.
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
        if plan.outlets.is_empty() {
            return Err(plan.emptiness(topics));
        }
        for LeftOut { topic, reason, .. } in plan.left_out.iter().filter(|left| left.is_failure) {
            warn(&format!("{topic} is not published: {reason}"));
        }
        let is_on_ros2 = plan.outlets.iter().any(|outlet| matches!(outlet.address, Address::Ros2(..)));
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

    /// Joins the networks, and makes the publishers.
    fn join(
        &self,
        plan: &Plan,
        deployment: Option<&Deployment>,
        asked: &Asked,
    ) -> Result<(Outgoing, Option<ClockOutlet>), u8> {
        let network = |error: String| {
            complain(&error);
            exit::NETWORK
        };
        let clock = self.clock.then(ros2::clock::published).transpose();
        let clock = clock.map_err(|error| network(error.to_string()))?;
        let clock = clock.map(|topic| Address::Ros2(Box::new(topic), Encoding::CDR));
        let addresses = plan.outlets.iter().map(|outlet| &outlet.address).chain(&clock);
        let networks = match deployment {
            None => self.network.open(addresses, || asked.yet())?,
            Some(deployment) => {
                let mut settings: NetworkSettings = deployment.networks.clone();
                addresses.for_each(|address| settings.need(address));
                networks::open(&settings, deployment.exit_on_unreachable, || asked.yet())?
            }
        };
        let mut outgoing = Outgoing::new(networks, asked.clone(), self.network.slow_consumer.is_none());
        for Outlet { address, schema } in &plan.outlets {
            outgoing.add(address, schema.as_ref(), self.as_fast_as_possible).map_err(network)?;
        }
        let Some(clock) = clock else { return Ok((outgoing, None)) };
        let schema = Library::ros().and_then(|library| library.schema(ros2::clock::TYPE)).ok();
        let outlet = outgoing.add(&clock, schema.as_ref(), false).map_err(network)?;
        let interval = Duration::from_secs_f64(1.0 / self.clock_rate);
        Ok((outgoing, Some(ClockOutlet { outlet, interval })))
    }
}

/// Whether what has this name can be read twice, or is not there at all: no pipe, nor standard input.
fn is_lasting(path: &Path) -> bool {
    // Why it is not there is said by whoever opens it.
    let is_lasting = path.metadata().map_or(true, |metadata| metadata.is_file() || metadata.is_dir());
    is_lasting && path.as_os_str() != "-"
}

/// Whether a recording has a message of the selection.
fn has_message(mut recording: Box<dyn Recording>, selection: &Selection) -> Result<bool, String> {
    recording.select(selection.clone());
    loop {
        match recording.advance() {
            Ok(next) => return Ok(next.is_some()),
            // It is reported when it is replayed.
            Err(RecordingError::Damage { .. } | RecordingError::Cut { .. }) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// That a recording has no message of the selection, in words.
fn nothing(topics: &[RecordedTopic], span: Option<(Timestamp, Timestamp)>) -> String {
    let mut times = TimeText::default();
    let span = span.map_or_else(
        || "it has no messages at all".to_owned(),
        |(first, last)| format!("it has messages from {} to {}", times.text(first), times.text(last)),
    );
    let all = if topics.is_empty() { "none".to_owned() } else { names(topics) };
    format!("no message of the recording is selected: {span}; its topics are: {all}")
}
