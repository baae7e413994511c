//! The limits that a monitor reached.

use rondel_engine::{Ambiguity, Monitor, SliceStatus};
use rondel_spec::Spec;

use crate::report::notice::limit_text;
use crate::text::{counted, grouped, parameters_text};

/// For the properties with parameters of a monitor: number of messages that did not count because of a limit, and of
/// events that named no instance. The latter count for properties that read events, or for all without a specification.
pub(crate) fn unchecked<'m>(
    monitor: &'m Monitor,
    spec: Option<&'m Spec>,
) -> impl Iterator<Item = (u32, u64)> {
    let slices = monitor.slices();
    slices.flat_map(move |slice| {
        let beyond = slice.refused + slice.too_long;
        slice.properties.iter().map(move |property| {
            let reads_events = |spec: &Spec| {
                let found = spec.properties.get(*property as usize);
                found.is_some_and(|property| !spec.events_read(property.formula).is_empty())
            };
            let is_meant = slice.unnamed > 0 && spec.is_none_or(reads_events);
            (*property, beyond + if is_meant { slice.unnamed } else { 0 })
        })
    })
}

/// The limits that a monitor reached, as sentences.
pub(crate) fn omissions(monitor: &Monitor, spec: &Spec) -> Vec<String> {
    let mut sentences = Vec::new();
    for slice in monitor.slices() {
        add_slice(&mut sentences, &slice, spec);
    }
    for Ambiguity { machine, transitions: [first, second] } in monitor.ambiguities() {
        sentences.push(format!(
            "{machine}: the machine could take two transitions at once, `{first}` and `{second}`, and has taken none \
             since"
        ));
    }
    if monitor.dropped_samples() > 0 {
        let samples = counted(monitor.dropped_samples(), "sample", "samples");
        sentences.push(format!("windows had no room for {samples}, and were unknown meanwhile"));
    }
    if monitor.given_up() > 0 {
        let verdicts = counted(monitor.given_up(), "verdict is", "verdicts are");
        sentences.push(format!("{verdicts} inconclusive because too many obligations were pending"));
    }
    if monitor.forgotten() > 0 {
        let values = counted(monitor.forgotten(), "value", "values");
        sentences.push(format!(
            "{values} of quantified formulas forgotten at their @limit: verdicts that depend on them are inconclusive"
        ));
    }
    if monitor.hurried() > 0 {
        let messages = counted(monitor.hurried(), "message was", "messages were");
        sentences.push(format!(
            "linear interpolation: {messages} evaluated with unknown numbers, as too many waited for the next sample"
        ));
    }
    if monitor.leaps() > 0 {
        let times = counted(monitor.leaps(), "time", "times");
        sentences.push(format!(
            "{times} a machine that moves by itself was not followed through a pause, and was unknown in it"
        ));
    }
    if monitor.beyond_range() > 0 {
        let events = counted(monitor.beyond_range(), "event is", "events are");
        sentences.push(format!("{events} more than 146 years from time zero, and were moved to that limit"));
    }
    sentences
}

/// Adds the limits that the instances of some properties reached.
fn add_slice(sentences: &mut Vec<String>, slice: &SliceStatus<'_>, spec: &Spec) {
    let names: Vec<&str> = slice
        .properties
        .iter()
        .filter_map(|property| spec.properties.get(*property as usize))
        .map(|property| property.name.as_str())
        .collect();
    // Skips the parts watched for explanations: their property reaches the same limits.
    if names.is_empty() {
        return;
    }
    let names = names.join(", ");
    if slice.unnamed > 0 {
        let events = counted(slice.unnamed, "event names", "events name");
        sentences.push(format!("{names}: {events} no instance by its parameters, and did not count"));
    }
    let unkeyed = slice.unkeyed.saturating_sub(slice.unnamed);
    if unkeyed > 0 {
        let messages = match slice.of_elements {
            true => counted(unkeyed, "element or message has", "elements or messages have"),
            false => counted(unkeyed, "message has", "messages have"),
        };
        sentences
            .push(format!("{names}: {messages} no parameter, or one of another type, and did not count"));
    }
    if let (Some([names_of, other]), 1..) = (slice.first_unequal, slice.unequal) {
        let messages = counted(slice.unequal, "message has", "messages have");
        sentences.push(format!(
            "{names}: {messages} arrays of other lengths than that of the parameter, so that values are missing or left \
             over; the first has {} and {} elements",
            grouped(names_of),
            grouped(other)
        ));
    }
    if slice.too_long > 0 {
        let messages = counted(slice.too_long, "message has", "messages have");
        sentences.push(format!("{names}: {messages} a parameter of more than 64 KiB, and did not count"));
    }
    if slice.refused > 0 {
        let messages = match slice.of_elements {
            true => counted(slice.refused, "element", "elements"),
            false => counted(slice.refused, "message", "messages"),
        };
        let instances = limit_text(slice.instances, slice.full);
        let first = parameters_text(slice.first_refused.unwrap_or_default());
        sentences.push(format!(
            "{names}: {messages} with a new parameter did not count, as the limit of {instances} was reached; \
             the first parameter was {first}"
        ));
    }
}
