//! `rondel topics`: lists the topics of a network or a recording. What it looks at, `rondel init` looks at, too.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use clap::Args;
use rondel_net::adapter::now;
use rondel_net::observe::{Observation, Observed, Observer, matches_dds, ros2_on_dds};
use rondel_net::ros2::keys::{DataKey, subscription_key};
use rondel_net::{dds, ros2};
use rondel_recording::TraceReader;
use rondel_runtime::survey::{self, RecordedSurvey, Survey};
use rondel_runtime::text::counted;

use crate::deployment::Address;
use crate::networks::{NetworkArguments, Networks};
use crate::output::Format;
use crate::{complain, exit, say, signals, warn};

/// How long nothing new must be discovered on DDS before its topics are subscribed to.
const QUIET: Duration = Duration::from_millis(1_200);
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
    /// Patterns of topics: zenoh:KEY, mqtt:FILTER, dds:PATTERN; or one recording (default: everything on Zenoh and
    /// DDS, or on the networks that have options)
    #[arg(value_name = "PATTERN")]
    what: Vec<String>,
    /// Look at networks for this many seconds
    #[arg(long = "for", value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// List at most N topics
    #[arg(long, value_name = "N", default_value_t = survey::TOPICS as u32, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    #[command(flatten)]
    pub network: NetworkArguments,
}

/// What was seen, and where.
pub struct Seen {
    /// The topics.
    pub survey: Survey,
    /// What was looked at, in words.
    pub origin: String,
    /// The recording, if it was one.
    pub recording: Option<PathBuf>,
}

impl Topics {
    /// Lists the topics, and returns the exit status.
    pub fn run(self) -> u8 {
        let seen = match self.look.look() {
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
        exit::SATISFIED
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
    pub fn look(&self) -> Result<Seen, u8> {
        let is_address = |text: &str| {
            text.split_once(':').is_some_and(|(network, _)| ["zenoh", "dds", "mqtt"].contains(&network))
        };
        match &self.what[..] {
            [file] if !is_address(file) && (!file.contains(':') || Path::new(file).exists()) => {
                self.recording(Path::new(file))
            }
            patterns => match patterns.iter().find(|text| !is_address(text)) {
                Some(text) => {
                    complain(&format!(
                        "{text}: name patterns (zenoh:KEY, mqtt:FILTER, dds:PATTERN) or one recording"
                    ));
                    Err(exit::USAGE)
                }
                None => self.live(),
            },
        }
    }

    fn recording(&self, file: &Path) -> Result<Seen, u8> {
        let failed = |error: &dyn std::fmt::Display| {
            complain(&error.to_string());
            exit::TRACE
        };
        let mut survey = RecordedSurvey::new(self.limit as usize);
        let mut reader = TraceReader::open(file).map_err(|error| failed(&error))?;
        while let Some(piece) = reader.lines().map_err(|error| failed(&error))? {
            let end = piece.end;
            piece.text[piece.start..end]
                .split_inclusive(|byte| *byte == b'\n')
                .for_each(|line| survey.line(line));
            reader.used(end);
        }
        let (survey, unreadable) = survey.end();
        if unreadable > 0 {
            let lines = counted(unreadable, "line", "lines");
            warn(&format!("{}: {lines} could not be read as messages and are left out", file.display()));
        }
        Ok(Seen { survey, origin: file.display().to_string(), recording: Some(file.to_owned()) })
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
        let dds = *dds_domain != 0 || dds_interface.is_some() || !dds_peer.is_empty();
        let mqtt = mqtt_broker.is_some();
        let none = !zenoh && !dds && !mqtt;
        let all = [(zenoh || none, "zenoh:**"), (dds || none, "dds:*"), (mqtt, "mqtt:#")];
        all.iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, pattern)| (*pattern).to_owned()).collect()
    }

    fn live(&self) -> Result<Seen, u8> {
        let patterns = self.patterns();
        let usage = |error: String| {
            complain(&error);
            exit::USAGE
        };
        let address = |text: &String| match text.strip_prefix("dds:") {
            Some(pattern) => dds::check_pattern(pattern)
                .map(|()| {
                    Address::Dds(pattern.to_owned(), dds::TopicType::default(), dds::TopicQos::default())
                })
                .map_err(|error| error.to_string()),
            None => Address::parse(text),
        };
        let addresses = patterns.iter().map(address).collect::<Result<Vec<_>, _>>().map_err(usage)?;
        let (stop, stopped) = mpsc::channel();
        let asked = signals::listen(move || _ = stop.send(())).map_err(|error| {
            complain(&format!("cannot listen for signals: {error}"));
            exit::NETWORK
        })?;
        let networks = self.network.open(addresses.iter(), || asked.yet())?;
        let until = Instant::now() + Duration::from_secs(self.seconds.into());
        let survey = Arc::new(Mutex::new(Survey::new(self.limit as usize)));
        let mut looking =
            Looking { networks: &networks, survey: Arc::clone(&survey), kept: Vec::new(), dds: Vec::new() };
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
        looking.discover(until.saturating_duration_since(Instant::now()) / 2);
        // Also ends when the command is asked to.
        let _ = stopped.recv_timeout(until.saturating_duration_since(Instant::now()));
        let is_alone =
            addresses.iter().any(|a| matches!(a, Address::Zenoh(..))) && !networks.wait_zenoh(Duration::ZERO);
        looking.describe();
        drop(looking);
        networks.close_within(Duration::from_secs(1));
        let mut survey =
            std::mem::replace(&mut *survey.lock().unwrap_or_else(PoisonError::into_inner), Survey::new(0));
        survey.pass(now());
        survey.end();
        let alone = if is_alone { " (no other participant of Zenoh was found)" } else { "" };
        let domain = if addresses.iter().any(|a| matches!(a, Address::Dds(..))) {
            format!(" (domain {})", self.network.dds_domain)
        } else {
            String::new()
        };
        let broker = match &self.network.mqtt_broker {
            Some(broker) if patterns.iter().any(|text| text.starts_with("mqtt:")) => {
                format!(" (broker {broker})")
            }
            _ => String::new(),
        };
        let said = |text: &String| {
            let more = match text.split(':').next() {
                Some("zenoh") => alone,
                Some("dds") => &domain,
                _ => &broker,
            };
            format!("{text}{more}")
        };
        let places: Vec<String> = patterns.iter().map(said).collect();
        let time = counted(self.seconds.into(), "second", "seconds");
        Ok(Seen { survey, origin: format!("{time} at {}", places.join(", ")), recording: None })
    }
}

/// A look at networks.
struct Looking<'n> {
    networks: &'n Networks,
    survey: Arc<Mutex<Survey>>,
    kept: Vec<Observation>,
    /// The patterns of DDS.
    dds: Vec<String>,
}

impl Looking<'_> {
    /// Counts messages; `address` returns the address of a topic.
    fn observer(&self, address: impl Fn(&str) -> String + Send + Sync + 'static) -> Observer {
        let survey = Arc::clone(&self.survey);
        Arc::new(move |observed: Observed<'_>| {
            let address = address(observed.topic);
            let mut survey = survey.lock().unwrap_or_else(PoisonError::into_inner);
            survey.message(&address, now(), observed.payload, observed.publisher);
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

    fn endpoints(&self, quiet: Duration, limit: Duration) -> Vec<dds::DiscoveredEndpoint> {
        if self.dds.is_empty() {
            return Vec::new();
        }
        let listed = self.networks.dds_endpoints(quiet, limit);
        let mut listed =
            listed.map_err(|error| warn(&format!("cannot list DDS: {error}"))).unwrap_or_default();
        listed.retain(|end| end.publishes && self.dds.iter().any(|pattern| matches_dds(pattern, &end.topic)));
        listed
    }

    /// Subscribes to what is discovered on DDS.
    fn discover(&mut self, limit: Duration) {
        let endpoints = self.endpoints(QUIET, limit);
        let observer = self.observer(|topic| format!("dds:{topic}"));
        let (observation, failed) = self.networks.observe_dds(&endpoints, &observer);
        self.kept.push(observation);
        failed.iter().for_each(|(topic, reason)| warn(&format!("cannot read dds:{topic}: {reason}")));
    }

    /// Adds what the networks announce.
    fn describe(&self) {
        let endpoints = self.endpoints(Duration::from_millis(100), Duration::from_secs(1));
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
