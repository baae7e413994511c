//! Settings of the client.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rondel_event::kafka::{RefusedSetting, check_brokers, check_setting};

use super::{OpenError, check_topic};

/// Settings that cannot be chosen, beside those of every client, and why.
const REFUSED: [RefusedSetting; 11] = [
    ("group.id", "write `group: NAME` and `state: FOLDER` beside the settings"),
    ("group.instance.id", "write `member` beside `group`"),
    ("group.protocol", ASSIGNMENT),
    ("partition.assignment.strategy", ASSIGNMENT),
    ("auto.offset.reset", "`start` states where a run without a snapshot begins"),
    ("enable.auto.commit", BY_SNAPSHOT),
    ("enable.auto.offset.store", BY_SNAPSHOT),
    ("enable.partition.eof", "Rondel does not use it"),
    ("allow.auto.create.topics", "Rondel creates no topics to read from"),
    ("message.timeout.ms", WAITS),
    ("delivery.timeout.ms", WAITS),
];

const BY_SNAPSHOT: &str = "the snapshot states where the next run goes on, and not the broker";
const WAITS: &str = "messages wait until they are delivered; limit the queue by `slow_consumer` instead";
const ASSIGNMENT: &str = "members of a group have the strategy `cooperative-sticky`, by which a partition stays where it is \
                          if it can";

/// First record of a topic in a run without a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// The first record published after the subscription.
    #[default]
    Latest,
    /// The oldest record that the broker still has.
    Earliest,
}

impl std::str::FromStr for Start {
    type Err = ();

    fn from_str(text: &str) -> Result<Start, ()> {
        match text {
            "latest" => Ok(Start::Latest),
            "earliest" => Ok(Start::Earliest),
            _ => Err(()),
        }
    }
}

/// Maximum length of the name of a group and of a member.
const LONGEST: usize = 249;

/// A consumer group, whose members have some partitions of a topic each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The name.
    pub name: String,
    /// The folder of the states of partitions, which all members share.
    pub state: PathBuf,
    /// Name of this member, unique in the group, which keeps its partitions while it restarts (static membership).
    pub member: Option<String>,
}

/// Settings of the client.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    /// Addresses of brokers, `HOST:PORT`. The client finds the others of their cluster.
    pub brokers: Vec<String>,
    /// First record of topics without a mark.
    pub start: Start,
    /// Settings of librdkafka by their names, such as `fetch.max.bytes`.
    pub settings: Vec<(String, String)>,
    /// Marks of the previous run, from [`Session::freeze`](super::Session::freeze); empty without one.
    pub marks: Vec<u8>,
    /// Whether topics are read only after [`Session::begin`](super::Session::begin), and once a snapshot with marks of them
    /// is [durable](super::Session::release).
    pub waits: bool,
    /// Maximum time for which publishing waits for a broker that accepts nothing or cannot be reached, before messages
    /// are dropped. Default: without limit.
    pub slow_consumer: Option<Duration>,
    /// The group to join; without one, all partitions are read.
    pub group: Option<Group>,
    /// The topic to which records are written that cannot be decoded.
    pub dead_letters: Option<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            brokers: vec!["localhost:9092".to_owned()],
            start: Start::default(),
            settings: Vec::new(),
            marks: Vec::new(),
            waits: false,
            slow_consumer: None,
            group: None,
            dead_letters: None,
        }
    }
}

impl fmt::Debug for Settings {
    /// Without the values of settings, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { brokers, start, settings, marks, waits, slow_consumer, group, dead_letters } = self;
        let names: Vec<&str> = settings.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Settings")
            .field("brokers", brokers)
            .field("start", start)
            .field("settings", &names)
            .field("marks", &marks.len())
            .field("waits", waits)
            .field("slow_consumer", slow_consumer)
            .field("group", group)
            .field("dead_letters", dead_letters)
            .finish()
    }
}

impl Settings {
    /// Returns the addresses of the brokers, for messages.
    pub fn place(&self) -> String {
        self.brokers.join(",")
    }

    /// Checks these settings without connecting. Without the feature `kafka`, names and values of the client's settings
    /// are not checked.
    ///
    /// # Errors
    /// [`OpenError::Setting`]
    pub fn check(&self) -> Result<(), OpenError> {
        check_brokers(&self.brokers).map_err(OpenError::Setting)?;
        for (name, value) in &self.settings {
            check_setting(name, value, &REFUSED).map_err(OpenError::Setting)?;
        }
        self.group.iter().try_for_each(check_group)?;
        if let Some(topic) = &self.dead_letters {
            check_topic(topic).map_err(|error| OpenError::Setting(error.to_string()))?;
            if self.group.is_some() {
                let text = "`dead_letters` of Kafka cannot be used with `group`";
                return Err(OpenError::Setting(text.to_owned()));
            }
        }
        #[cfg(feature = "kafka")]
        super::client::check(self)?;
        Ok(())
    }
}

/// Reads settings of the client from a file with `NAME=VALUE` in each line; lines that begin with `#` are comments.
///
/// # Errors
/// The file cannot be read, or the line that is wrong.
pub fn read_settings(path: &Path) -> Result<Vec<(String, String)>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the settings of Kafka in {}: {error}", path.display()))?;
    let mut settings = Vec::new();
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        // A value may be a secret: the line is not shown.
        let (name, value) = text.split_once('=').ok_or_else(|| {
            format!("line {line} of {}: write NAME=VALUE, such as fetch.max.bytes=1000000", path.display())
        })?;
        settings.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(settings)
}

/// Checks the names of a group and of its member.
fn check_group(group: &Group) -> Result<(), OpenError> {
    let names = [("group", Some(&group.name)), ("member", group.member.as_ref())];
    for (setting, name) in names.into_iter().filter_map(|(setting, name)| Some((setting, name?))) {
        if !(1..=LONGEST).contains(&name.len()) || name.chars().any(char::is_control) {
            let text = format!("`{setting}` of Kafka must be a name of 1 to {LONGEST} bytes");
            return Err(OpenError::Setting(text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<(), String> {
        let settings =
            Settings { settings: vec![(name.to_owned(), value.to_owned())], ..Settings::default() };
        settings.check().map_err(|error| error.to_string())
    }

    #[test]
    fn settings_of_the_client_are_checked() {
        // The rules of every client have tests of their own.
        for (name, value, reason) in [
            ("acks", "1", "always `all`"),
            ("group.id", "x", "`group: NAME`"),
            ("partition.assignment.strategy", "range", "cooperative-sticky"),
            ("auto.offset.reset", "latest", "`start`"),
        ] {
            let error = with(name, value).unwrap_err();
            assert!(error.contains(reason) && error.contains(name), "{error}");
        }
        for (name, value) in [
            ("fetch.max.bytes", "1000000"),
            ("security.protocol", "sasl_plaintext"),
            ("sasl.mechanism", "PLAIN"),
            ("compression.type", "gzip"),
            ("client.id", "car-7"),
        ] {
            assert_eq!(with(name, value), Ok(()), "{name}");
        }
    }

    #[test]
    fn settings_are_read_from_a_file() {
        let path = std::env::temp_dir().join(format!("rondel-kafka-{}", std::process::id()));
        std::fs::write(&path, "# a comment\n\nclient.id = car\nsasl.password=a=b\n").unwrap();
        let read = read_settings(&path);
        std::fs::write(&path, "client.id=car\nsecret\n").unwrap();
        let wrong = read_settings(&path).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read, Ok(vec![pair("client.id", "car"), pair("sasl.password", "a=b")]));
        assert!(wrong.starts_with("line 2") && !wrong.contains("secret"), "{wrong}");
        assert!(read_settings(&path).unwrap_err().contains("cannot read"));
    }

    #[test]
    fn names_of_groups_and_addresses_of_brokers_are_checked() {
        let error = |settings: Settings| settings.check().unwrap_err().to_string();
        let brokers = vec!["kafka://a:9092".to_owned()];
        assert!(error(Settings { brokers, ..Settings::default() }).contains("HOST:PORT"));
        for (name, member, setting) in [
            ("", None, "`group`"),
            ("a\n", None, "`group`"),
            ("a", Some(""), "`member`"),
            ("a", Some(&*"x".repeat(250)), "`member`"),
        ] {
            let member = member.map(str::to_owned);
            let group = Some(Group { name: name.to_owned(), state: PathBuf::new(), member });
            let error = error(Settings { group, ..Settings::default() });
            assert!(error.contains(setting) && error.contains("1 to 249 bytes"), "{error}");
        }
    }

    #[test]
    fn values_of_settings_are_not_shown() {
        let settings = vec![("sasl.password".to_owned(), "hidden".to_owned())];
        let shown = format!("{:?}", Settings { settings, ..Settings::default() });
        assert!(shown.contains("sasl.password") && !shown.contains("hidden"), "{shown}");
    }
}
