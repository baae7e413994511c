//! Messages as they arrive: subscriptions, losses, and the closing lines.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use rondel_decode::DecoderError;
use rondel_decode::json::JsonForm;
use rondel_event::{Read, TopicId, ValueType};
use rondel_net::adapter::{Drops, Problems};
use rondel_net::dds;
use rondel_runtime::text::counted;

use super::printer::{Printer, Reading};
use super::status;
use super::view::Form;
use crate::deployment::{Address, Binding, Deployment};
use crate::live::discover;
use crate::live::listener::{DRAIN, Listener, Outcome};
use crate::live::losses::{Seen, Undelivered, missed, outage_text};
use crate::live::networks::Networks;
use crate::live::pipeline::Stop;
use crate::live::reader::{Reader, Subscribed};
use crate::output::time_text::TimeText;
use crate::say;
use crate::specification::Specification;

/// Interval of checking for losses.
const EVERY: Duration = Duration::from_secs(1);
/// Time limit for messages in transit at the end, and for receivers to return from the last one.
const CLOSE: Duration = Duration::from_secs(7);
/// Time limit for leaving the networks.
const LEAVE: Duration = Duration::from_secs(3);

/// Reads messages that are printed as they arrive.
pub(super) struct Prints {
    /// The form of messages.
    pub(super) form: Form,
    pub(super) specification: Specification,
    /// The largest text that is written, in bytes.
    pub(super) largest: usize,
    /// The receiver.
    pub(super) printer: Arc<Printer>,
}

impl Reader for Prints {
    /// Subscribes to the topics of an address; on a pattern of DDS, messages show the name of their topic.
    fn subscribe(&self, networks: &Networks, topic: TopicId, binding: &Binding) -> Subscribed {
        let printer = Arc::clone(&self.printer);
        match &binding.address {
            Address::Dds(name, topic_type, qos) if dds::is_pattern(name) => {
                let select = move |name: &str| Some((Arc::new(printer.named(format!("dds:{name}"))), None));
                networks.subscribe_matching((name, topic_type, qos), None, topic, select)
            }
            address => networks.subscribe(address, topic, printer),
        }
    }

    fn resolve(&self, topic: TopicId, binding: &Binding) -> Result<(), String> {
        let reading = reading(self.form, &self.specification, topic, binding, self.largest);
        self.printer.resolve(topic, reading.map_err(|error| error.to_string())?);
        Ok(())
    }
}

/// Prints messages until the end is requested, shows what was received and what is missing, and returns the exit status.
/// `dropped` are the messages that standard output did not accept.
///
/// # Errors
/// The topic that cannot be subscribed to, or the thread that cannot be started, and the reason.
pub(super) fn run(
    deployment: &Deployment,
    networks: Networks,
    reader: Prints,
    dropped: &Drops,
    stopped: &mpsc::Receiver<Stop>,
) -> Result<u8, String> {
    let printer = Arc::clone(&reader.printer);
    let listener = Listener::start(deployment, Arc::new(networks), reader)?;
    say(&format!("ready{}", discover::read_now(deployment)));
    // Messages that standard output drops are counted at the end.
    let mut seen = Seen::new(Undelivered::default(), printer.names().to_vec());
    let why = listener.wait(stopped, EVERY, |networks| seen.warn(printer.losses(), networks));
    let closed = listener.close(why, DRAIN, CLOSE);
    let (received, missing, failure) = printer.end();
    let (mut accounts, mut times) = (printer.accounts(), TimeText::default());
    let outcome = closed.leave(LEAVE);
    outcome.add_recovered(&mut accounts, |topic| Some(topic.index()));
    let Outcome { problems, unread, outages, .. } = outcome;
    say(&format!("{received}{}", problems_text(problems, dropped.count())));
    // The printed messages do not show that others are missing.
    let sources = || deployment.sources.iter().map(|binding| &binding.address);
    let was_cut_off = outages.iter().any(|outage| !missed(outage, sources()).is_empty());
    let mut time = |time| times.text(time);
    let losses = printer.names().iter().zip(&accounts);
    let losses = losses.filter_map(|(name, account)| account.sentence(name, &mut time));
    let losses: Vec<String> = losses.collect();
    let outages = outages.iter().map(|outage| outage_text(outage, &mut times));
    unread.iter().for_each(|unread| say(&format!("  {}", unread.sentence())));
    missing.into_iter().chain(losses).chain(outages).for_each(|sentence| say(&format!("  {sentence}")));
    let lost: u64 = accounts.iter().map(|account| account.lost).sum();
    let is_complete = unread.is_empty() && !was_cut_off && dropped.count() + lost + problems.lost == 0;
    Ok(status(failure, is_complete && why != Stop::GivenUp))
}

/// The decoding of the messages of a topic, to be shown in a form.
///
/// # Errors
/// A time field that the type does not have.
pub(super) fn reading(
    form: Form,
    specification: &Specification,
    topic: TopicId,
    binding: &Binding,
    largest: usize,
) -> Result<Reading, DecoderError> {
    let form = match form {
        Form::Json => JsonForm { names: reads_names(specification, topic, binding), ..JsonForm::EXACT },
        Form::Raw | Form::Text => JsonForm::READABLE,
    };
    Reading::new(topic, binding, form, largest)
}

/// Whether the specification reads names of enumerations, as it does without a definition of the type.
fn reads_names(specification: &Specification, topic: TopicId, binding: &Binding) -> bool {
    let outline = binding.input.message_type.as_ref().and_then(|of| of.outline().ok());
    let (Some(outline), Some(projection)) = (outline, specification.program.projections().get(topic.index()))
    else {
        return false;
    };
    let mut fields = projection.fields.iter();
    fields.any(|field| field.read == Read::Value(ValueType::String) && outline.is_enumeration(&field.path))
}

/// The counts of messages with problems, each after a comma.
fn problems_text(problems: Problems, dropped: u64) -> String {
    let Problems { malformed, empty, lost, duplicates, instance_events, .. } = problems;
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
    let unprinted = match dropped {
        0 => String::new(),
        count => {
            format!(
                ", {} dropped because standard output was not read",
                counted(count, "message", "messages")
            )
        }
    };
    let events = match instance_events {
        0 => String::new(),
        count => {
            format!(
                ", {} disposed of or without publishers",
                counted(count, "instance was", "instances were")
            )
        }
    };
    format!("{of_network}{events}{unprinted}")
}
