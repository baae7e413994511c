//! `rondel topics`: lists the topics of a network or a recording. What it looks at, `rondel init` looks at, too.

mod live;
mod looking;
pub mod recorded;
mod ros2_patterns;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use clap::Args;
use rondel_recording::Library;
use rondel_runtime::survey::{self, Survey};
use rondel_runtime::text::counted;

use crate::commands::table_arguments::{TableReading, in_shell};
use crate::live::networks::NetworkArguments;
use crate::output::Format;
use crate::schemas::Schemas;
use crate::specification::is_deployment;
use crate::{complain, exit, say, warn};

/// List the topics of a network or a recording: name, type, encoding, rate, size, publishers, quality of service
#[derive(Debug, Args)]
pub struct Topics {
    #[command(flatten)]
    look: Look,
    /// The format of the list
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Options that select topics.
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

/// Result of looking at networks or recordings.
pub struct Seen {
    /// The topics.
    pub survey: Survey,
    /// Description of the networks or recordings.
    pub origin: String,
    /// The recordings, if they were some.
    pub recordings: Vec<PathBuf>,
    /// Whether a part of them could not be read; the error was reported.
    pub is_damaged: bool,
    /// Places of the first line of each recording that could not be read.
    pub unreadable: Vec<String>,
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
    // A closed standard output cannot be reported anywhere.
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

    /// Options for reading recordings, as arguments of another command, each after a space.
    pub fn table_arguments(&self) -> String {
        let span = [("--from", &self.from), ("--to", &self.to)];
        let span = span.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)));
        let given = self.tables.given().into_iter().chain(span);
        given.map(|(name, value)| format!(" {name} {}", in_shell(&value))).collect()
    }

    /// Options for reading tables.
    pub fn tables(&self) -> &TableReading {
        &self.tables
    }

    /// The first and the last time to look at, as they were written.
    pub fn span(&self) -> (Option<&str>, Option<&str>) {
        (self.from.as_deref(), self.to.as_deref())
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
            unreadable: Vec::new(),
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
            seen.unreadable.extend(surveyed.unreadable);
        }
        seen.recordings = recordings;
        Ok(seen)
    }
}

/// Whether a pattern is one of a network.
fn is_address(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(network, _)| ["zenoh", "dds", "mqtt", "kafka", "ros2"].contains(&network))
}

/// Whether an argument names a recording.
fn is_recording(text: &str) -> bool {
    !is_address(text) && (!text.contains(':') || Path::new(text).exists())
}
