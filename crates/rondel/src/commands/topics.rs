//! `rondel topics`: lists the topics of a network or a recording. What it looks at, `rondel init` looks at, too.

pub mod recorded;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use clap::Args;
use rondel_decode::MessageType;
use rondel_decode::lines::{is_matched, is_pattern};
use rondel_net::adapter::now;
use rondel_net::observe::{Observation, Observed, Observer, matches_dds, ros2_on_dds};
use rondel_net::ros2::keys::{DataKey, subscription_key};
use rondel_net::{dds, ros2};
use rondel_recording::Library;
use rondel_runtime::survey::{self, Survey};
use rondel_runtime::text::counted;

use crate::deployment::Address;
use crate::networks::{NetworkArguments, Networks};
use crate::output::Format;
use crate::schemas::Schemas;
use crate::specification::is_deployment;
use crate::table_arguments::{TableReading, in_shell};
use crate::{complain, exit, say, signals, warn};

/// How long nothing new must be discovered on DDS before its topics are subscribed to.
const QUIET: Duration = Duration::from_millis(200);
/// How long to wait until publishers on DDS are looked for again.
const AGAIN: Duration = Duration::from_millis(200);
/// How long to wait for the description of a type.
const DESCRIBED: Duration = Duration::from_secs(1);
/// How long the graph of ROS 2 is waited for.
const GRAPH: Duration = Duration::from_secs(1);

/// List the topics of a network or a recording: name, type, encoding, rate, size, publishers, quality of service
#[derive(Debug, Args)]
pub struct Topics {
    #[command(flatten)]
    look: Look,
    /// The format of the list
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// What to look at.
#[derive(Debug, Args)]
pub struct Look {
    /// Patterns of topics: zenoh:KEY, mqtt:FILTER, dds:PATTERN, ros2:/PATTERN; or recordings: MCAP files, bags, tables, JSON lines, and folders of them
    /// (default: everything on Zenoh and DDS, or on the networks that have options)
    #[arg(value_name = "PATTERN")]
    what: Vec<String>,
    /// Look only at messages recorded from this time on: seconds, a date and time, or +SECONDS after the beginning of each recording
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// Look only at messages recorded up to this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, visible_alias = "until")]
    to: Option<String>,
    /// Look at networks for this many seconds
    #[arg(long = "for", value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// List at most N topics
    #[arg(long, value_name = "N", default_value_t = survey::TOPICS as u32, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    #[command(flatten)]
    tables: TableReading,
    #[command(flatten)]
    pub network: NetworkArguments,
}

/// What was seen, and where.
pub struct Seen {
    /// The topics.
    pub survey: Survey,
    /// What was looked at, in words.
    pub origin: String,
    /// The recordings, if they were some.
    pub recordings: Vec<PathBuf>,
    /// Whether a part of them could not be read, which was said.
    pub is_damaged: bool,
}

impl Topics {
    /// Lists the topics, and returns the exit status.
    pub fn run(self) -> u8 {
        let seen = match self.look.look(None) {
            Ok(seen) => seen,
            Err(status) => return status,
        };
        let survey = &seen.survey;
        match self.format {
            Format::Json => print(&survey::json(survey)),
            Format::Text if survey.topics().len() > 0 => print(&survey::text(survey)),
            Format::Text => {}
        }
        say(&match survey.topics().len() as u64 {
            0 => {
                format!("no topic: no message came, and no publisher is announced; looked at {}", seen.origin)
            }
            count => format!("{} in {}", counted(count, "topic", "topics"), seen.origin),
        });
        survey::unlisted(survey).iter().for_each(|sentence| warn(sentence));
        if seen.is_damaged { exit::TRACE } else { exit::SATISFIED }
    }
}

fn print(text: &str) {
    use std::io::Write as _;
    // Where nobody reads there is nobody to tell.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

impl Look {
    /// Looks at the recording, or at the networks for a time.
    ///
    /// # Errors
    /// The exit status, after the reason was shown.
    pub fn look(&self, schemas: Option<&Arc<Mutex<Schemas>>>) -> Result<Seen, u8> {
        let (files, patterns): (Vec<&String>, Vec<&String>) =
            self.what.iter().partition(|text| is_recording(text));
        match (files.first(), patterns.first()) {
            (Some(file), Some(pattern)) => {
                complain(&format!(
                    "{file} is a recording and {pattern} a pattern of topics on a network: name recordings or patterns"
                ));
                Err(exit::USAGE)
            }
            (Some(_), None) => self.recorded(schemas),
            _ => match patterns.iter().find(|text| !is_address(text)) {
                Some(text) => {
                    complain(&format!(
                        "{text}: name patterns (zenoh:KEY, mqtt:FILTER, dds:PATTERN, ros2:/PATTERN) or recordings"
                    ));
                    Err(exit::USAGE)
                }
                None if self.from.is_some() || self.to.is_some() => {
                    complain(
                        "--from and --to choose a part of a recording: name one, or look at networks with --for SECONDS",
                    );
                    Err(exit::USAGE)
                }
                None => {
                    self.tables.check(&[]).map_err(|error| {
                        complain(&error);
                        exit::USAGE
                    })?;
                    self.live(schemas)
                }
            },
        }
    }

    /// The options with which recordings are looked at, as arguments of another command, each after a space.
    pub fn table_arguments(&self) -> String {
        let span = [("--from", &self.from), ("--to", &self.to)];
        let span = span.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
        let given = self.tables.given().into_iter().chain(span);
        given.map(|(name, value)| format!(" {name} {}", in_shell(&value))).collect()
    }

    /// The recordings to look at, as they were named.
    pub fn recordings(&self) -> Vec<PathBuf> {
        self.what.iter().filter(|text| is_recording(text)).map(PathBuf::from).collect()
    }

    fn recorded(&self, schemas: Option<&Arc<Mutex<Schemas>>>) -> Result<Seen, u8> {
        let named = self.recordings();
        if let Some(file) = named.iter().find(|file| is_deployment(file)) {
            complain(&format!(
                "{} is a deployment: name a recording, or topics on a network such as zenoh:KEY",
                file.display()
            ));
            return Err(exit::USAGE);
        }
        let mut recordings = Vec::new();
        for file in &named {
            match Library::find(file, &self.tables.options()) {
                Ok(Some(library)) => recordings.extend(library.recordings),
                Ok(None) => recordings.push(file.clone()),
                Err(error) => {
                    complain(&error.to_string());
                    return Err(exit::TRACE);
                }
            }
        }
        self.tables.check(&recordings).map_err(|error| {
            complain(&error);
            exit::USAGE
        })?;
        let mut seen = Seen {
            survey: Survey::new(self.limit as usize),
            origin: match &recordings[..] {
                [file] => file.display().to_string(),
                all => format!("{} recordings", all.len()),
            },
            recordings: Vec::new(),
            is_damaged: false,
        };
        let part = recorded::Part {
            most: u64::MAX,
            from: self.from.as_deref(),
            to: self.to.as_deref(),
            tables: self.tables.options(),
        };
        for file in &recordings {
            let survey = std::mem::replace(&mut seen.survey, Survey::new(0));
            let surveyed = recorded::survey(file, survey, schemas, part)?;
            seen.survey = surveyed.survey;
            seen.is_damaged |= surveyed.is_damaged;
        }
        seen.recordings = recordings;
        Ok(seen)
    }

    /// The patterns on each network.
    fn patterns(&self) -> Vec<String> {
        let NetworkArguments { zenoh_connect, zenoh_listen, zenoh_mode, zenoh_config, .. } = &self.network;
        let NetworkArguments { dds_domain, dds_interface, dds_peer, mqtt_broker, .. } = &self.network;
        if !self.what.is_empty() {
            return self.what.clone();
        }
        let zenoh = !zenoh_connect.is_empty()
            || !zenoh_listen.is_empty()
            || zenoh_mode.is_some()
            || zenoh_config.is_some();
        let dds = dds_domain.is_some() || dds_interface.is_some() || !dds_peer.is_empty();
        let mqtt = mqtt_broker.is_some();
        let none = !zenoh && !dds && !mqtt;
        let all = [(zenoh || none, "zenoh:**"), (dds || none, "dds:*"), (mqtt, "mqtt:#")];
        all.iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, pattern)| (*pattern).to_owned()).collect()
    }

    fn live(&self, schemas: Option<&Arc<Mutex<Schemas>>>) -> Result<Seen, u8> {
        let patterns = self.patterns();
        let usage = |error: String| {
            complain(&error);
            exit::USAGE
        };
        let address = |text: &String| match text.strip_prefix("dds:") {
            Some(pattern) if !pattern.contains(['{', '}']) => dds::check_pattern(pattern)
                .map(|()| {
                    Address::Dds(pattern.to_owned(), dds::TopicType::default(), dds::TopicQos::default())
                })
                .map_err(|error| error.to_string()),
            _ => Address::parse(text).map(|address| address.subscribed().into_owned()),
        };
        let ros2 = OfRos2::new(&patterns).map_err(usage)?;
        // Patterns of ROS 2 are those of its middleware, which is joined as ROS 2 joins it.
        let carried = patterns.iter().map(|text| ros2.as_ref().and_then(|ros2| ros2.carried(text)));
        let carried: Vec<String> =
            carried.zip(&patterns).map(|(carried, text)| carried.unwrap_or_else(|| text.clone())).collect();
        let addresses = carried.iter().map(address).collect::<Result<Vec<_>, _>>().map_err(usage)?;
        let joined = patterns.iter().zip(&addresses).map(|(text, address)| match is_of_ros2(text) {
            true => Address::parse("ros2:/rondel"),
            false => Ok(address.clone()),
        });
        let joined = joined.collect::<Result<Vec<_>, _>>().map_err(usage)?;
        let (stop, stopped) = mpsc::channel();
        let asked = signals::listen(move || _ = stop.send(())).map_err(|error| {
            complain(&format!("cannot listen for signals: {error}"));
            exit::NETWORK
        })?;
        let networks = self.network.open(joined.iter(), || asked.yet())?;
        let until = Instant::now() + Duration::from_secs(self.seconds.into());
        let survey = Arc::new(Mutex::new(Survey::new(self.limit as usize)));
        let mut looking = Looking {
            networks: &networks,
            survey: Arc::clone(&survey),
            schemas: schemas.map(Arc::clone),
            kept: Vec::new(),
            dds: Vec::new(),
            discovered: BTreeMap::new(),
            subscribed: BTreeSet::new(),
            asks: schemas.is_some() && addresses.iter().any(|a| matches!(a, Address::Zenoh(..))),
            asked: BTreeSet::new(),
        };
        for address in &addresses {
            looking.observe(address).map_err(|error| {
                complain(&error);
                exit::NETWORK
            })?;
        }
        say(&format!(
            "looking at {} for {}",
            patterns.join(", "),
            counted(self.seconds.into(), "second", "seconds")
        ));
        loop {
            looking.discover(until);
            looking.ask(until);
            let left = until.saturating_duration_since(Instant::now());
            // Publishers on DDS, and topics without a type, are looked for again and again; where there are none, only the
            // end is waited for. That also comes when the command is asked to end.
            let wait = if looking.dds.is_empty() && !looking.asks { left } else { left.min(AGAIN) };
            if stopped.recv_timeout(wait) != Err(mpsc::RecvTimeoutError::Timeout) || Instant::now() >= until {
                break;
            }
        }
        let is_alone =
            addresses.iter().any(|a| matches!(a, Address::Zenoh(..))) && !networks.wait_zenoh(Duration::ZERO);
        looking.describe();
        drop(looking);
        networks.close_within(Duration::from_secs(1));
        let mut survey =
            std::mem::replace(&mut *survey.lock().unwrap_or_else(PoisonError::into_inner), Survey::new(0));
        survey.pass(now());
        survey.end();
        if let Some(ros2) = &ros2 {
            ros2.name(&mut survey, &patterns);
        }
        let alone = if is_alone { " (no other participant of Zenoh was found)" } else { "" };
        let domain = if addresses.iter().any(|a| matches!(a, Address::Dds(..))) {
            format!(" (domain {})", self.network.domain().unwrap_or_default())
        } else {
            String::new()
        };
        let broker = match &self.network.mqtt_broker {
            Some(broker) if patterns.iter().any(|text| text.starts_with("mqtt:")) => {
                format!(" (broker {broker})")
            }
            _ => String::new(),
        };
        let of_ros2 = ros2.as_ref().map_or_else(String::new, |ros2| {
            let ros2::Settings { domain, middleware, .. } = ros2.settings;
            format!(" (domain {domain} over {middleware}){alone}")
        });
        let said = |text: &String| {
            let more = match text.split(':').next() {
                Some("zenoh") => alone,
                Some("dds") => &domain,
                Some("ros2") => &of_ros2,
                _ => &broker,
            };
            format!("{text}{more}")
        };
        let places: Vec<String> = patterns.iter().map(said).collect();
        let time = counted(self.seconds.into(), "second", "seconds");
        Ok(Seen {
            survey,
            origin: format!("{time} at {}", places.join(", ")),
            recordings: Vec::new(),
            is_damaged: false,
        })
    }
}

/// Whether a pattern is one of a network.
fn is_address(text: &str) -> bool {
    text.split_once(':').is_some_and(|(network, _)| ["zenoh", "dds", "mqtt", "ros2"].contains(&network))
}

/// Whether a pattern is one of ROS 2.
fn is_of_ros2(text: &str) -> bool {
    text.starts_with("ros2:")
}

/// Patterns of ROS 2, as its middleware has them.
struct OfRos2 {
    settings: ros2::Settings,
}

impl OfRos2 {
    /// The middleware and the domain in the environment, if a pattern is one of ROS 2.
    fn new(patterns: &[String]) -> Result<Option<OfRos2>, String> {
        if !patterns.iter().any(|text| is_of_ros2(text)) {
            return Ok(None);
        }
        let settings = ros2::Settings::from_environment(|name| std::env::var(name).ok());
        let settings = settings.map_err(|error| format!("cannot join ROS 2: {error}"))?;
        Ok(Some(OfRos2 { settings }))
    }

    /// The name or pattern of topics with a slash before it, and without names of parameters.
    fn pattern(text: &str) -> Option<String> {
        let mut rest = text.strip_prefix("ros2:")?.trim_start_matches('/');
        let mut pattern = "/".to_owned();
        while let Some((before, (_, after))) =
            rest.split_once('{').and_then(|(before, inner)| Some((before, inner.split_once('}')?)))
        {
            pattern += before;
            pattern.push('*');
            rest = after;
        }
        Some(pattern + rest)
    }

    /// A pattern of ROS 2 as the middleware writes it.
    fn carried(&self, text: &str) -> Option<String> {
        let pattern = OfRos2::pattern(text)?;
        Some(match self.settings.middleware {
            // The pattern of DDS does not stop at slashes: what it finds besides is left out later.
            ros2::Middleware::Dds => format!("dds:rt{}", pattern.replace("**", "*")),
            // Behind the topic come the type and its hash; Zenoh wants `**` behind them.
            ros2::Middleware::Zenoh => {
                let (topic, rest) =
                    pattern.strip_suffix("/**").map_or((&*pattern, ""), |topic| (topic, "/**"));
                format!("zenoh:{}{topic}/*/*{rest}", self.settings.domain)
            }
        })
    }

    /// Gives the topics of a survey their addresses of ROS 2, and leaves out what no pattern means.
    fn name(&self, survey: &mut Survey, patterns: &[String]) {
        let found = survey.topics().filter_map(|(address, topic)| {
            let name = topic.name.as_ref().filter(|name| name.starts_with('/'))?;
            Some((address.to_owned(), format!("ros2:{name}")))
        });
        let found: Vec<(String, String)> = found.collect();
        let own: Vec<String> = patterns.iter().filter_map(|text| OfRos2::pattern(text)).collect();
        let is_meant = |to: &str| {
            let name = to.trim_start_matches("ros2:");
            own.iter().any(|pattern| pattern == name || is_pattern(pattern) && is_matched(pattern, name))
        };
        for (address, to) in &found {
            if is_meant(to) {
                survey.rename(address, to);
            }
        }
        if own.len() == patterns.len() {
            survey.retain(is_of_ros2);
        }
    }
}

/// Whether an argument names a recording.
fn is_recording(text: &str) -> bool {
    !is_address(text) && (!text.contains(':') || Path::new(text).exists())
}

/// A look at networks.
struct Looking<'n> {
    networks: &'n Networks,
    survey: Arc<Mutex<Survey>>,
    /// The definitions of message types, if the fields of messages are looked at.
    schemas: Option<Arc<Mutex<Schemas>>>,
    kept: Vec<Observation>,
    /// The patterns of DDS.
    dds: Vec<String>,
    /// The publishers on DDS that were there at some time.
    discovered: BTreeMap<[u8; 16], dds::DiscoveredEndpoint>,
    /// The topics of DDS that were subscribed to, or cannot be.
    subscribed: BTreeSet<String>,
    /// Whether nodes of ROS 2 over Zenoh are asked for types.
    asks: bool,
    /// The addresses for which they were.
    asked: BTreeSet<String>,
}

impl Looking<'_> {
    /// Counts messages; `address` returns the address of a topic.
    fn observer(&self, address: impl Fn(&str) -> String + Send + Sync + 'static) -> Observer {
        let (survey, schemas) = (Arc::clone(&self.survey), self.schemas.clone());
        Arc::new(move |observed: Observed<'_>| {
            let address = address(observed.topic);
            let mut survey = survey.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(schemas) = &schemas
                && let Some(topic) = survey.topic(&address)
                && topic.messages == 0
                && let Some(key) = DataKey::parse(observed.topic)
            {
                describe(topic, schemas, &key.message_type.to_string());
            }
            let publisher = observed.origin.map(|origin| origin.publisher);
            survey.message(&address, now(), observed.payload, publisher);
        })
    }

    fn observe(&mut self, address: &Address) -> Result<(), String> {
        match address {
            Address::Zenoh(key, _) => {
                self.kept.push(self.networks.observe_zenoh(key, &self.observer(zenoh_address))?)
            }
            Address::Mqtt(filter, ..) => {
                let observer = self.observer(|topic| format!("mqtt:{topic}"));
                self.kept.push(self.networks.observe_mqtt(filter, &observer)?);
            }
            Address::Dds(pattern, ..) => self.dds.push(pattern.clone()),
            Address::Ros2(..) | Address::Stdout => {}
        }
        Ok(())
    }

    /// Subscribes to what is newly discovered on DDS.
    fn discover(&mut self, until: Instant) {
        if self.dds.is_empty() {
            return;
        }
        let limit = until.saturating_duration_since(Instant::now()).min(QUIET);
        let listed = self.networks.dds_endpoints(QUIET, limit);
        let mut listed =
            listed.map_err(|error| warn(&format!("cannot list DDS: {error}"))).unwrap_or_default();
        listed.retain(|end| {
            let is_new = !self.discovered.contains_key(&end.id);
            is_new && end.publishes && self.dds.iter().any(|pattern| matches_dds(pattern, &end.topic))
        });
        for end in &listed {
            if !self.subscribed.contains(&end.topic) {
                self.describe_dds(end, until);
            }
        }
        let observer = self.observer(|topic| format!("dds:{topic}"));
        let (observation, failed) = self.networks.observe_dds(&listed, &mut self.subscribed, &observer);
        self.kept.push(observation);
        self.discovered.extend(listed.into_iter().map(|end| (end.id, end)));
        failed.iter().for_each(|(topic, reason)| warn(&format!("cannot read dds:{topic}: {reason}")));
    }

    /// Asks nodes of ROS 2 over Zenoh for the types of their topics that are not known.
    fn ask(&mut self, until: Instant) {
        if !self.asks {
            return;
        }
        let open: Vec<String> = {
            let mut survey = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
            let all: Vec<String> = survey.topics().map(|(address, _)| address.to_owned()).collect();
            let is_open = |address: &String| survey.topic(address).is_some_and(|topic| !topic.is_described());
            all.into_iter().filter(is_open).collect()
        };
        for address in open {
            let Some(key) = address.strip_prefix("zenoh:").and_then(DataKey::parse) else { continue };
            let limit = until.saturating_duration_since(Instant::now()).min(DESCRIBED);
            if limit.is_zero() || !self.asked.insert(address.clone()) {
                continue;
            }
            let Ok(Some(schema)) = self.networks.ros2_type(&key, limit) else { continue };
            let mut survey = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(topic) = survey.topic(&address) {
                topic.describe(Arc::new(MessageType::Cdr(schema)));
            }
        }
    }

    /// Says of what type a topic on DDS is: by a definition that is known, otherwise as its publisher describes it.
    fn describe_dds(&self, end: &dds::DiscoveredEndpoint, until: Instant) {
        let Some(schemas) = &self.schemas else { return };
        let name = ros2_on_dds(&end.topic, &end.type_name)
            .map_or_else(|| end.type_name.clone(), |(_, name)| name.to_string());
        let address = format!("dds:{}", end.topic);
        {
            let mut survey = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(topic) = survey.topic(&address) else { return };
            describe(topic, schemas, &name);
            if topic.is_described() || !end.is_described {
                return;
            }
        }
        let raw = dds::RawType { name: Some(end.type_name.clone()), keyed: Some(end.keyed) };
        let of = Address::Dds(end.topic.clone(), dds::TopicType::Raw(raw), dds::TopicQos::default());
        let limit = until.saturating_duration_since(Instant::now()).min(DESCRIBED);
        let Ok(Some(dds::DiscoveredType { schema: Ok(schema), .. })) =
            self.networks.discovered_type(&of, limit, |_| true)
        else {
            return;
        };
        let mut survey = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(topic) = survey.topic(&address) {
            topic.describe(Arc::new(MessageType::Cdr(schema)));
        }
    }

    /// Adds what the networks announce.
    fn describe(&self) {
        let endpoints: Vec<_> = self.discovered.values().collect();
        let settings = ros2::Settings::from_environment(|name| std::env::var(name).ok());
        let domain = settings.map_or(0, |settings| settings.domain);
        let graph = self.networks.ros2_graph(domain, GRAPH).unwrap_or_default();
        let mut survey = self.survey.lock().unwrap_or_else(PoisonError::into_inner);
        for end in &endpoints {
            let Some(topic) = survey.topic(&format!("dds:{}", end.topic)) else { continue };
            let of_topic = endpoints.iter().filter(|other| other.topic == end.topic);
            topic.publishers = Some(of_topic.count());
            let qos = format!("{:?}, {:?}", end.qos.reliability, end.qos.durability);
            topic.qos = Some(in_words(&qos));
            let ros2 = ros2_on_dds(&end.topic, &end.type_name);
            topic.name = ros2.as_ref().map(|(name, _)| name.to_string());
            topic.message_type = Some(ros2.map_or(end.type_name.clone(), |(_, name)| name.to_string()));
        }
        for (name, ends) in graph.topics() {
            for (_, end) in &ends.publishers {
                let address = format!("zenoh:{}", subscription_key(domain, name, &end.message_type));
                let Some(topic) = survey.topic(&address) else { continue };
                let alike =
                    ends.publishers.iter().filter(|(_, other)| other.message_type == end.message_type);
                topic.publishers = Some(alike.count());
                topic.qos = Some(end.qos.to_string());
            }
        }
        let addresses: Vec<String> = survey.topics().map(|(address, _)| address.to_owned()).collect();
        for address in addresses {
            if let Some(key) = address.strip_prefix("zenoh:").and_then(DataKey::parse)
                && let Some(topic) = survey.topic(&address)
            {
                topic.name = Some(key.topic.to_string());
                topic.message_type = Some(key.message_type.to_string());
            }
        }
    }
}

/// Says of what type a topic is, if the definition is known by this name.
fn describe(topic: &mut survey::Topic, schemas: &Mutex<Schemas>, name: &str) {
    let schema = schemas.lock().unwrap_or_else(PoisonError::into_inner).schema(name);
    if let Ok(schema) = schema {
        topic.describe(Arc::new(MessageType::Cdr(schema)));
    }
}

/// Returns the address of a key; that of a topic of ROS 2 holds for any hash of its type.
fn zenoh_address(key: &str) -> String {
    match DataKey::parse(key) {
        Some(of) => format!("zenoh:{}", subscription_key(of.domain, &of.topic, &of.message_type)),
        None => format!("zenoh:{key}"),
    }
}

/// `BestEffort` as `best_effort`.
fn in_words(text: &str) -> String {
    let mut words = String::new();
    for letter in text.chars() {
        if letter.is_ascii_uppercase() && words.ends_with(|c: char| c.is_ascii_lowercase()) {
            words.push('_');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}
