//! Records of Kafka that are checked as a recording: read once into a temporary file.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use rondel_event::{Timestamp, TopicId};
use rondel_net::kafka;
use rondel_recording::{McapWriter, MessageHead, Temporary, WriterOptions};
use rondel_runtime::SessionPlan;
use rondel_runtime::text::counted;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::Check;
use crate::deployment::{Address, Encoding};
use crate::recorder::ADDRESS;
use crate::{complain, exit, warn};

/// Options of recordings that are topics of Kafka.
#[derive(Debug, Default, Args)]
pub(super) struct KafkaArguments {
    /// A broker of Kafka, HOST:PORT, for recordings named kafka:TOPIC (may be repeated; default: localhost:9092)
    #[arg(long, value_name = "BROKER")]
    kafka_broker: Vec<String>,
    /// A file with further settings of the client of Kafka: NAME=VALUE in each line
    #[arg(long, value_name = "FILE")]
    kafka_config: Option<PathBuf>,
    /// Read only these offsets of a partition of kafka:TOPIC, without the last one, such as 0:1000..2000 or 0:1000.. (may be
    /// repeated)
    #[arg(long, value_name = "PARTITION:FROM..TO", value_parser = kafka::parse_offsets)]
    kafka_offsets: Vec<(i32, Range<i64>)>,
}

impl KafkaArguments {
    /// The options, and whether they were given.
    fn given(&self) -> [(bool, &'static str); 3] {
        [
            (!self.kafka_broker.is_empty(), "--kafka-broker"),
            (self.kafka_config.is_some(), "--kafka-config"),
            (!self.kafka_offsets.is_empty(), "--kafka-offsets"),
        ]
    }

    fn settings(&self) -> Result<kafka::Settings, String> {
        let mut settings = kafka::Settings::default();
        if !self.kafka_broker.is_empty() {
            settings.brokers.clone_from(&self.kafka_broker);
        }
        if let Some(path) = &self.kafka_config {
            settings.settings = kafka::read_settings(path)?;
        }
        settings.check().map_err(|error| error.to_string())?;
        Ok(settings)
    }
}

/// Records of an address in a temporary file, which is an empty recording until they are read.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) path: PathBuf,
    /// The address.
    pub(super) name: String,
    /// The address without its prefix.
    place: String,
    /// The encoding that the address names.
    encoding: Option<Encoding>,
    /// Removes the file.
    _folder: Temporary,
}

/// Recordings that are addresses on Kafka, and how their records are read.
#[derive(Debug)]
pub(super) struct KafkaRecordings {
    settings: kafka::Settings,
    selection: kafka::Selection,
    pub(super) all: Vec<Fetched>,
}

/// Whether the name of a recording is an address on Kafka, and no file.
fn is_address(trace: &Path) -> bool {
    let text = trace.to_str().unwrap_or_default();
    (text.starts_with("kafka:") || text.starts_with("kafka+")) && !trace.exists()
}

impl Check {
    /// Checks the recordings that are addresses on Kafka, and puts empty recordings in their place. No broker is
    /// connected before [`fetch`](Check::fetch): a mistake in the specification is shown first.
    ///
    /// # Errors
    /// The exit status, after the reason was shown.
    pub(super) fn find_kafka(&mut self) -> Result<(), u8> {
        let fail = |reason: &str, status: u8| {
            complain(reason);
            status
        };
        let count = self.traces.iter().filter(|trace| is_address(trace)).count();
        if count == 0 {
            return match self.kafka.given().into_iter().find(|(is_given, _)| *is_given) {
                Some((_, option)) => {
                    let reason = format!(
                        "{option} is for recordings named kafka:TOPIC, and none is one: leave it out"
                    );
                    Err(fail(&reason, exit::USAGE))
                }
                None => Ok(()),
            };
        }
        if !kafka::IS_AVAILABLE {
            return Err(fail(kafka::UNAVAILABLE, exit::USAGE));
        }
        if self.page.is_some() {
            let reason = "--page reads recordings again, and records of Kafka may be gone then: record them with \
                          `rondel record`, and check the file";
            return Err(fail(reason, exit::USAGE));
        }
        if count > 1 && !self.kafka.kafka_offsets.is_empty() {
            return Err(fail("--kafka-offsets is for one topic of Kafka: name one", exit::USAGE));
        }
        let settings = self.kafka.settings().map_err(|reason| fail(&reason, exit::USAGE))?;
        let selection = self.kafka_selection().map_err(|reason| fail(&reason, exit::USAGE))?;
        let folders = Arc::<Mutex<Vec<PathBuf>>>::default();
        remove_at_signal(Arc::clone(&folders))
            .map_err(|error| fail(&format!("cannot listen for signals: {error}"), exit::TRACE))?;
        let mut all = Vec::new();
        for trace in self.traces.iter_mut().filter(|trace| is_address(trace)) {
            let name = trace.to_string_lossy().into_owned();
            let address = Address::parse(&name).map_err(|reason| fail(&reason, exit::USAGE))?;
            let Address::Kafka(place, encoding) = address else { continue };
            let kept = |error: io::Error| fail(&unkept(&name, &error), exit::TRACE);
            let folder = Temporary::new().map_err(kept)?;
            folders.lock().unwrap_or_else(PoisonError::into_inner).push(folder.path(""));
            let path = folder.path("records.mcap");
            let empty = McapWriter::create(&path, &WriterOptions::default());
            empty.and_then(|mut writer| writer.finish()).map_err(kept)?;
            trace.clone_from(&path);
            let encoding = name.starts_with("kafka+").then_some(encoding);
            all.push(Fetched { path, name, place, encoding, _folder: folder });
        }
        self.kafka_recordings = Some(KafkaRecordings { settings, selection, all });
        Ok(())
    }

    /// Reads the records of the recordings that are addresses on Kafka. An address without an encoding has that of the topic
    /// in the plan.
    ///
    /// # Errors
    /// The exit status, after the reason was shown.
    pub(super) fn fetch(&self, plan: &SessionPlan) -> Result<(), u8> {
        let Some(KafkaRecordings { settings, selection, all }) = &self.kafka_recordings else {
            return Ok(());
        };
        let is_stopped = || self.interrupted.load(Ordering::Relaxed);
        for recording in all {
            if let Some(reason) = lacks_type(recording, plan) {
                complain(&reason);
                return Err(exit::USAGE);
            }
        }
        for recording in all {
            fetch(settings, recording, selection, plan, &is_stopped).map_err(|reason| {
                complain(&reason);
                exit::TRACE
            })?;
        }
        Ok(())
    }

    /// The records to read: those of the options, whose times may lie before the first record or behind the last one.
    fn kafka_selection(&self) -> Result<kafka::Selection, String> {
        let (from, until) = self.span(Timestamp::default())?;
        // Seconds after the beginning are known once it is.
        let absolute =
            |text: Option<&str>, time: Timestamp| text.filter(|text| !text.starts_with('+')).map(|_| time);
        let mut offsets = BTreeMap::new();
        for (partition, range) in &self.kafka.kafka_offsets {
            if offsets.insert(*partition, range.clone()).is_some() {
                return Err(format!("--kafka-offsets has the partition {partition} twice"));
            }
        }
        let (from, until) = (absolute(self.from.as_deref(), from), absolute(self.to.as_deref(), until));
        Ok(kafka::Selection { from, until, offsets })
    }
}

/// Removes these folders when a signal ends the check, which does not drop them.
fn remove_at_signal(folders: Arc<Mutex<Vec<PathBuf>>>) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let thread = std::thread::Builder::new().name("signals".to_owned());
    let end = move || {
        let Some(signal) = signals.forever().next() else { return };
        for folder in folders.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // A folder that cannot be removed stays in the system's folder for temporary files.
            let _ = std::fs::remove_dir_all(folder);
        }
        // The status that a shell reports for a process ended by a signal.
        std::process::exit(128 + signal)
    };
    thread.spawn(end).map(drop)
}

/// The sentence about records that cannot be written to a temporary file.
fn unkept(name: &str, error: &io::Error) -> String {
    let way_out = match error.kind() {
        io::ErrorKind::StorageFull => "; set TMPDIR to a folder with more room, or select fewer records",
        _ => "",
    };
    format!("{name}: cannot keep its records in a temporary file: {error}{way_out}")
}

/// Returns the reason if the encoding in an address needs types, and nothing states one: records have none.
fn lacks_type(Fetched { name, encoding, .. }: &Fetched, plan: &SessionPlan) -> Option<String> {
    let Some(Encoding::Of(encoding)) = *encoding else { return None };
    let of_deployment = |topic: TopicId| {
        let message_type = plan.input(topic).and_then(|input| input.message_type.as_ref());
        message_type.is_some_and(|of| of.encoding() == encoding)
    };
    let mut topics = (0..).map(TopicId).zip(plan.specification().spec.declared());
    let is_stated = topics.any(|(id, topic)| topic.type_name.is_some() || of_deployment(id));
    (encoding.needs_schema() && !is_stated).then(|| {
        let registry = match encoding {
            rondel_decode::Encoding::Avro => {
                "; or check with a deployment whose topic has a schema registry: `encoding: avro` and `registry: \
                 http://HOST:8081`"
            }
            _ => "",
        };
        format!(
            "{name}: messages in {encoding} can be read only with the definition of their type: name it in the \
             specification, `topic car: NAME`, and give the file with --schemas{registry}"
        )
    })
}

/// Reads records into their temporary file.
fn fetch(
    settings: &kafka::Settings,
    Fetched { path, name, place, encoding, .. }: &Fetched,
    selection: &kafka::Selection,
    plan: &SessionPlan,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), String> {
    let failed = |error: io::Error| unkept(name, &error);
    // A writer replaces no file.
    std::fs::remove_file(path).map_err(failed)?;
    let mut writer = McapWriter::create(path, &WriterOptions::default()).map_err(failed)?;
    let encoding_of = |topic: &str| {
        let stated = || plan.input(plan.topic_in_recording(topic)?).map(|input| Encoding::Of(input.encoding));
        match encoding.or_else(stated).unwrap_or(Encoding::JSON) {
            Encoding::Of(rondel_decode::Encoding::Flatbuffers) => "flatbuffer",
            other => other.name(),
        }
    };
    let metadata = [(ADDRESS.to_owned(), name.clone())];
    let mut channels: HashMap<String, u16> = HashMap::new();
    let mut take = |record: kafka::SelectedRecord<'_>| -> Result<(), String> {
        let channel = match channels.get(record.name) {
            Some(channel) => *channel,
            None => {
                let channel = writer.channel(record.name, encoding_of(record.name), 0, &metadata);
                let channel = channel.ok_or("its records have too many keys and headers")?;
                channels.insert(record.name.to_owned(), channel);
                channel
            }
        };
        // Times before 1970 have no place in the format.
        let time = u64::try_from(record.time.as_nanos()).unwrap_or(0);
        let head = MessageHead { channel, sequence: 0, log_time: time, publish_time: time };
        writer.message(&head, record.payload).map_err(failed)
    };
    let counts = kafka::read_selection(settings, place, selection, is_stopped, &mut take)?;
    let kafka::SelectionCounts { empty, malformed, lost, .. } = counts;
    let note = |name: &str, value: u64| (name.to_owned(), value.to_string());
    let notes = [note("received", counts.records), note("lost", lost), note("refused", malformed)];
    writer.metadata("rondel", &notes).map_err(failed)?;
    writer.finish().map_err(failed)?;
    if empty > 0 {
        let records = counted(empty, "record", "records");
        warn(&format!("{name}: {records} without a value (tombstones) are ignored"));
    }
    if lost > 0 {
        let records = counted(lost, "record", "records");
        warn(&format!("{name}: {records} of the selected ones have expired"));
    }
    Ok(())
}
