//! Declarations of the topics of a survey, in the language of specifications.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rondel_decode::sparkplug;

use super::fields::{Field, FieldKind};
use super::names::{self, is_name};
use super::roles::{Role, role};
use super::{PayloadKind, Survey, Topic};
use crate::specification::formula::quoted;
use crate::text::counted;

/// A topic as the language can declare it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The name.
    pub name: String,
    /// The declaration with every field that was seen and has a type.
    pub listed: String,
    /// The declaration without fields, if the survey may lack some: their types then follow from their uses.
    pub open: Option<String>,
    /// The names of the fields of messages that are single values.
    pub fields: Vec<String>,
}

/// Declares the topics of a survey, at most `most`. `knows` returns whether the definition of a message type is known.
/// Also returns the omissions, in words.
pub fn declarations(
    survey: &Survey,
    most: usize,
    knows: impl Fn(&str) -> bool,
) -> (Vec<Declaration>, Vec<String>) {
    let (drafted, omitted) = topics(survey, most, knows);
    let declared = drafted.iter().map(|drafted| {
        let fields = drafted.topic.fields.fields();
        let is_whole = drafted.is_typed || !drafted.topic.fields.is_cut() && fields.iter().all(is_listed);
        let values = fields.iter().filter(|field| field.kind.name().is_some());
        Declaration {
            name: drafted.name.clone(),
            listed: declaration(drafted, Listed::Arrays),
            open: (!is_whole).then(|| declaration(drafted, Listed::Nothing)),
            fields: values.map(|field| field.name.clone()).collect(),
        }
    });
    (declared.collect(), omitted)
}

/// A topic of a draft.
pub(super) struct Drafted<'s> {
    pub(super) name: String,
    /// The address with its network, such as `zenoh:demo/gear`.
    pub(super) source: String,
    /// The address as it was seen, which may lack the network.
    pub(super) seen: &'s str,
    /// The address as a specification writes it.
    address: &'s str,
    pub(super) topic: &'s Topic,
    /// Whether its messages are of a type whose definition is known by name.
    pub(super) is_typed: bool,
    /// Reason why the source only stands for an address of a network; `None` if it is one.
    pub(super) lacks_address: Option<String>,
}

impl Drafted<'_> {
    /// Whether the deployment has to say that numbers come as texts.
    pub(super) fn has_number_texts(&self) -> bool {
        !self.is_typed && self.topic.fields.has_number_texts()
    }
}

/// Which fields a declaration lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    /// None: their types follow from their uses.
    Nothing,
    /// Single values.
    Values,
    /// Single values, and arrays of them.
    Arrays,
}

/// Returns the topics of a survey that can be read, at most so many, and what was left out.
pub(super) fn topics(
    survey: &Survey,
    most: usize,
    knows: impl Fn(&str) -> bool,
) -> (Vec<Drafted<'_>>, Vec<String>) {
    let (mut usable, mut omitted) = (Vec::new(), Vec::new());
    for (source, topic) in survey.topics() {
        let name = topic.name.as_deref().unwrap_or(source);
        let reason = if name.contains(['{', '}']) {
            Some("braces in an address stand for parameters, so that no specification can name it".to_owned())
        } else {
            unusable(topic, &knows)
        };
        match reason {
            Some(reason) => omitted.push(format!("{name}: {reason}")),
            None => usable.push((source, topic)),
        }
    }
    if usable.len() > most {
        omitted.push(format!(
            "{}, as a draft has at most {most}",
            counted((usable.len() - most) as u64, "further topic", "further topics")
        ));
        usable.truncate(most);
    }
    if survey.unlisted() > 0 {
        omitted.push(format!("{} on further topics", counted(survey.unlisted(), "message", "messages")));
    }
    let names =
        names::topics(usable.iter().map(|(source, topic)| topic.name.as_deref().unwrap_or(plain(source))));
    let mut used: BTreeMap<String, &str> = BTreeMap::new();
    let drafted = usable.iter().zip(names).map(|(&(source, topic), name)| {
        let address = address(source, &mut used);
        Drafted {
            lacks_address: address.clone().err(),
            source: address.unwrap_or_else(|_| format!("zenoh:unknown/{name}")),
            name,
            seen: source,
            address: topic.name.as_deref().unwrap_or(plain(source)),
            topic,
            is_typed: topic.kind() == Some(PayloadKind::Cdr)
                && topic.message_type.as_deref().is_some_and(&knows),
        }
    });
    (drafted.collect(), omitted)
}

/// Returns the address of a topic on a network. `used` are those of the topics before it, with their names there.
///
/// # Errors
/// A sentence: no network has the address, or another topic has it.
fn address<'s>(source: &'s str, used: &mut BTreeMap<String, &'s str>) -> Result<String, String> {
    let Some(address) = with_network(source) else {
        return Err(format!("{} is no address of a network", quoted(source)));
    };
    match used.get(&address) {
        Some(other) => {
            Err(format!("{} would have the address of {}, {address}", quoted(source), quoted(other)))
        }
        None => {
            used.insert(address.clone(), source);
            Ok(address)
        }
    }
}

/// Why a topic cannot be read, if it cannot.
fn unusable(topic: &Topic, knows: impl Fn(&str) -> bool) -> Option<String> {
    let kind = topic.kind();
    match (kind, &topic.message_type) {
        (None, _) => Some("no message came".to_owned()),
        (Some(PayloadKind::Cdr), None) => {
            Some("its messages are CDR of a type that is not announced".to_owned())
        }
        (Some(PayloadKind::Cdr), Some(message_type)) if !knows(message_type) && !topic.is_described() => {
            Some(format!(
                "the definition of its type {message_type} is not known; name its file with --schemas"
            ))
        }
        (Some(PayloadKind::Registered), _) => {
            let ids = topic.schemas().unwrap_or_default();
            Some(format!(
                "its messages are Avro of a schema registry ({ids}), which has the fields: write the topic by hand, with \
                 `encoding: avro, registry: \"http://HOST:8081\"` in the deployment"
            ))
        }
        (Some(kind @ (PayloadKind::Text | PayloadKind::Other | PayloadKind::Empty)), _) => {
            Some(format!("its payloads ({}) cannot be decoded", kind.name()))
        }
        (Some(kind), _) if topic.unreadable() == topic.messages => {
            Some(format!("none of its messages can be decoded as {}", kind.name()))
        }
        _ => None,
    }
}

/// An address without its network.
fn plain(source: &str) -> &str {
    match source.split_once(':') {
        Some((network, rest)) if ["zenoh", "dds", "mqtt", "kafka", "ros2"].contains(&network) => rest,
        _ => source,
    }
}

/// A sentence on the fields of a topic with values of several types, which no declaration lists; `None` without any.
pub(super) fn several_types(drafted: &Drafted<'_>) -> Option<String> {
    const MOST: usize = 5;
    let mixed = if drafted.is_typed { Vec::new() } else { drafted.topic.fields.mixed() };
    let (first, more) = mixed.split_at(mixed.len().min(MOST));
    let mut fields: Vec<String> =
        first.iter().map(|(path, kinds)| format!("`{}` ({kinds})", written(path))).collect();
    if !more.is_empty() {
        fields.push(counted(more.len() as u64, "further field", "further fields"));
    }
    (!mixed.is_empty())
        .then(|| format!("{}: values of several types in {}", drafted.address, fields.join(", ")))
}

/// An address with a network, which a recording does not always name; `None` if no network has this address.
fn with_network(source: &str) -> Option<String> {
    if plain(source).len() < source.len() {
        return is_address(plain(source)).then(|| source.to_owned());
    }
    let source = source.trim_matches('/');
    if sparkplug::Address::names_node(source) {
        return Some(format!("mqtt:{source}"));
    }
    // A key has no empty parts and no wildcards.
    let is_key = is_address(source) && !source.contains("//") && !source.contains(['*', '$', '#', '?']);
    is_key.then(|| format!("zenoh:{source}"))
}

/// Whether a text may be the address of a topic.
fn is_address(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.contains(char::is_control)
}

/// The declaration of a topic.
pub(super) fn declaration(drafted: &Drafted<'_>, listed: Listed) -> String {
    let Drafted { name, topic, address, is_typed, .. } = drafted;
    let address = if address == name { String::new() } else { format!(" {}", quoted(address)) };
    let message_type = topic.message_type.as_deref().filter(|_| *is_typed);
    let message_type = message_type
        .map(|name| match name.contains("::") {
            true => format!(" : {}", quoted(name)),
            false => format!(" : {name}"),
        })
        .unwrap_or_default();
    let has_schema = !is_typed && listed != Listed::Nothing;
    let fields = topic.fields.fields();
    let schema = if has_schema { schema(fields, listed, &mut Vec::new()) } else { String::new() };
    let schema = if schema.is_empty() { schema } else { format!(" {schema}") };
    format!("topic {name}{address}{message_type}{schema}")
}

/// Whether a declaration can list a field with all that it contains.
fn is_listed(field: &Field) -> bool {
    match field.kind {
        FieldKind::Array => field.element().name().is_some(),
        FieldKind::Mixed => false,
        _ => field.fields.iter().all(is_listed),
    }
}

/// The schema of fields below a path, in braces; empty without fields.
fn schema(fields: &[Field], listed: Listed, path: &mut Vec<String>) -> String {
    let depth = path.len() + 1;
    let indent = "    ".repeat(depth);
    let mut members = Vec::new();
    for field in fields {
        path.push(field.name.clone());
        let element = field.element().name().filter(|_| field.kind == FieldKind::Array);
        let kind = match (field.kind.name(), element) {
            (Some(_), _) if listed == Listed::Values && is_quantity(path, field) => "float".to_owned(),
            (Some(kind), _) => kind.to_owned(),
            (None, Some(element)) if listed != Listed::Nothing => format!("[{element}]"),
            (None, _) => schema(&field.fields, listed, path),
        };
        path.pop();
        if !kind.is_empty() {
            members.push(format!("{}: {kind}", key(&field.name)));
        }
    }
    let line = members.join(", ");
    match members.len() {
        0 => String::new(),
        _ if line.len() <= 60 && !line.contains('\n') => format!("{{ {line} }}"),
        _ => {
            let mut text = "{\n".to_owned();
            for member in members {
                // Writing to a string does not fail.
                let _ = writeln!(text, "{indent}{member},");
            }
            text.push_str(&"    ".repeat(depth - 1));
            text.push('}');
            text
        }
    }
}

/// Whether a number may come with a fraction though all that were seen are whole: as a text, or as a quantity.
fn is_quantity(path: &[String], field: &Field) -> bool {
    let is_measured = matches!(
        role(path),
        Role::Percentage | Role::Motion | Role::Angle | Role::Distance | Role::Slow | Role::Position
    );
    match field.kind {
        FieldKind::Text => field.has_number_texts(),
        FieldKind::Int => is_measured,
        _ => false,
    }
}

/// A path below a topic.
pub(super) fn written(path: &[String]) -> String {
    path.iter().map(|name| key(name)).collect::<Vec<_>>().join(".")
}

/// A name of a field, in quotes where it needs them.
pub(super) fn key(name: &str) -> String {
    if is_name(name) { name.to_owned() } else { quoted(name) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rondel_event::Timestamp;

    fn declared(messages: &[&str]) -> Declaration {
        let mut survey = Survey::new(10);
        messages.iter().for_each(|text| survey.message("x/scan", Timestamp::ZERO, text.as_bytes(), None));
        survey.end();
        let (mut declared, omitted) = declarations(&survey, 10, |_| false);
        assert!(omitted.is_empty(), "{omitted:?}");
        declared.remove(0)
    }

    #[test]
    fn arrays_of_values_are_declared() {
        let scan = declared(&["{\"n\": 1, \"ranges\": [1, 2.5], \"pose\": {\"x\": 1.5}, \"none\": []}"]);
        assert_eq!((scan.name.as_str(), &scan.fields[..]), ("scan", &["n".to_owned()][..]));
        let listed = "topic scan \"x/scan\" { n: int, pose: { x: float }, ranges: [float] }";
        assert_eq!(scan.listed, listed);
        // Nothing is known of the elements of an array without any.
        assert_eq!(scan.open.as_deref(), Some("topic scan \"x/scan\""));
        assert_eq!(declared(&["{\"ranges\": [1, 2.5]}"]).open, None);
    }

    #[test]
    fn fields_of_several_types_leave_the_topic_open() {
        for messages in [
            &["{\"a\": 1}", "{\"a\": \"x\"}"][..],
            &["{\"a\": {\"b\": [{\"c\": 1}]}}"],
            &["{\"a\": [1, \"x\"]}"],
        ] {
            let topic = declared(messages);
            assert_eq!(topic.open.as_deref(), Some("topic scan \"x/scan\""), "{messages:?}");
            let parsed = rondel_spec::parse(&topic.listed);
            assert!(!parsed.diagnostics.iter().any(rondel_spec::Diagnostic::is_error), "{}", topic.listed);
        }
    }
}
