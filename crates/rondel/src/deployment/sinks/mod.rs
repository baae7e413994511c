//! The section `sinks:` of a deployment: databases, message brokers and HTTP servers beside networks.

mod common;
mod kinds;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod url;

use std::path::Path;

use rondel_event::terminal::is_obeyed;
use rondel_runtime::Emit;
use rondel_spec::Spec;

pub(super) use common::{days, file, spool, wait};
use common::{name_of, pairs};
pub(super) use kinds::kafka_brokers;

use super::choice;
use super::metrics::PushSettings;
use super::yaml::{Item, Members, Mistakes, Synonyms};
use crate::sinks::driven::targets::{KINDS, Kind, Pair, Target, WebhookEmit};
use crate::sinks::driven::{Filter, MOST_SINKS, SinkSettings, WAIT};

/// The largest number of characters of a name.
const LONGEST_NAME: usize = 100;

/// Names that people write for settings of an item.
const ITEM: Synonyms = &[
    (&["postgresql", "timescale", "timescaledb"], "write `postgres`"),
    (&["jetstream"], "write `nats`"),
    (&["http", "https", "hook", "cloudevents", "slack"], "write `webhook`"),
    (&["opentelemetry", "otel"], "write `otlp`"),
    (&["sqlite", "store"], "write it as the section `store`"),
    (&["mqtt", "zenoh", "dds", "ros2", "stdout"], "write its topic in the section `verdicts`"),
    (&["property", "only"], "write `properties`, such as `properties: [too_fast]`"),
    (&["level", "least", "min_severity"], "write `severity`, such as `severity: critical`"),
    (&["wait", "timeout"], "write `slow_consumer`, such as `slow_consumer: 1 s`"),
    (&["buffer", "queue", "file"], "write `spool`, such as `spool: { directory: spool, limit: 64 MiB }`"),
];

/// Surroundings of an item: its settings refer to them.
#[derive(Clone, Copy)]
struct Context<'a> {
    /// Folder of the deployment.
    folder: &'a Path,
    /// The specification, if it can be used.
    spec: Option<&'a Spec>,
    /// Whether the deployment is to be run: then environment variables must be set.
    joins: bool,
}

/// Reads settings of a client of Kafka, whose secrets are in environment variables.
pub(super) fn client_settings(
    members: &mut Members<'_>,
    folder: &Path,
    joins: bool,
    mistakes: &mut Mistakes,
) -> Vec<Pair> {
    pairs(members, "settings", Some("settings_env"), Context { folder, spec: None, joins }, mistakes)
}

/// Reads the section. `joins`: whether the deployment is to be run, and not only its recordings to be checked.
pub(super) fn driven(
    item: Item<'_>,
    folder: &Path,
    spec: Option<&Spec>,
    joins: bool,
    mistakes: &mut Mistakes,
) -> Vec<SinkSettings> {
    let items = item.items();
    if items.is_empty() {
        mistakes.at(
            item,
            "`sinks` needs an item, such as `- webhook: { url: \"https://example/hook\" }`; or remove it",
        );
    }
    if let Some(further) = items.get(MOST_SINKS) {
        mistakes.at(*further, format!("`sinks` has at most {MOST_SINKS} items"));
    }
    let context = Context { folder, spec, joins };
    let mut all: Vec<SinkSettings> = Vec::new();
    for item in items {
        let Some(settings) = sink(item, context, mistakes) else { continue };
        if all.iter().any(|known| known.name == settings.name) {
            mistakes.at(
                item,
                format!("two items of `sinks` are named '{}': give one of them a `name`", settings.name),
            );
        }
        all.push(settings);
    }
    all
}

/// Reads the collector that gets the metrics of a run. `joins` is as of [`driven`].
pub(super) fn pushed(
    item: Item<'_>,
    folder: &Path,
    joins: bool,
    mistakes: &mut Mistakes,
) -> Option<PushSettings> {
    let before = mistakes.errors.len();
    if joins && !PushSettings::IS_AVAILABLE {
        mistakes.at(item, PushSettings::UNAVAILABLE);
    }
    let context = Context { folder, spec: None, joins };
    let (target, place, interval) = kinds::collector(item, context, mistakes)?;
    if joins
        && mistakes.errors.len() == before
        && let Err(why) = target.check_metrics()
    {
        mistakes.at(item, why);
    }
    Some(PushSettings { target, place, interval })
}

/// Violations in a store if only violations are emitted.
pub const NEVER_END: &str =
    "violations that never end, since `emit: violations` emits no verdict that ends one";

/// Returns what a sink lacks if only violations are emitted; `None` if it needs no other verdicts.
pub fn lacks_ends(sink: &SinkSettings) -> Option<String> {
    let SinkSettings { name, target, .. } = sink;
    match target {
        Target::Alertmanager(_) => Some(format!("'{name}' never resolves an alert")),
        Target::Postgres(_) => Some(format!("'{name}' stores {NEVER_END}")),
        Target::Webhook(hook) if hook.emit == WebhookEmit::Violations => {
            Some(format!("'{name}' posts {NEVER_END}"))
        }
        _ => None,
    }
}

/// Warns of each sink that needs verdicts which are not emitted.
pub(super) fn check_emit(item: Item<'_>, sinks: &[SinkSettings], emit: Emit, mistakes: &mut Mistakes) {
    if emit == Emit::Violations {
        for lacks in sinks.iter().filter_map(lacks_ends) {
            mistakes.warn(item, format!("{lacks}: for that, write `emit: change` in `verdicts`"));
        }
    }
}

/// Reads an item.
fn sink(item: Item<'_>, context: Context<'_>, mistakes: &mut Mistakes) -> Option<SinkSettings> {
    if !item.is_mapping() {
        mistakes.at(
            item,
            "an item of `sinks` must be a mapping, such as `webhook: { url: \"https://example/hook\" }`; topics and \
             stdout belong in the section `verdicts`",
        );
        return None;
    }
    let before = mistakes.errors.len();
    let mut members = item.members("an item of `sinks`", mistakes);
    let kinds: Vec<(Kind, Item<'_>)> =
        KINDS.into_iter().filter_map(|kind| Some((kind, members.get(kind.name)?))).collect();
    let (name, slow_consumer, kept) =
        (members.get("name"), members.get("slow_consumer"), members.get("spool"));
    let (properties, severity) = (members.get("properties"), members.get("severity"));
    members.finish(ITEM, mistakes);
    let (kind, own) = match kinds[..] {
        [(kind, own)] => (kind, own),
        [] => {
            if mistakes.errors.len() == before {
                let names = KINDS.map(|kind| kind.name).join(", ");
                mistakes.at(item, format!("an item of `sinks` needs a kind, one of {names}"));
            }
            return None;
        }
        [(first, _), (second, own), ..] => {
            mistakes.at(
                own,
                format!(
                    "an item of `sinks` has one kind, and this has `{}` and `{}`: write each as an item of its own",
                    first.name, second.name
                ),
            );
            return None;
        }
    };
    let name = name.and_then(|item| read_name(item, mistakes));
    let wait = slow_consumer.map_or(Some(WAIT), |item| wait("an item of `sinks`", item, mistakes));
    let spool = kept.and_then(|item| spool(item, context.folder, mistakes));
    let filter = Filter {
        properties: properties.map_or_else(Vec::new, |item| read_properties(item, context.spec, mistakes)),
        severity: severity.and_then(|item| choice::read_severity(item, mistakes)),
    };
    if context.joins && !kind.is_available {
        mistakes.at(own, kind.unavailable());
    }
    let read = kinds::read(kind, own, context, mistakes)?;
    if context.joins
        && mistakes.errors.len() == before
        && let Err(why) = read.target.sink()
    {
        mistakes.at(own, why);
    }
    let name = name.unwrap_or_else(|| format!("{} {}", kind.name, read.place));
    Some(SinkSettings { name, kind, target: read.target, series: read.series, wait, spool, filter })
}

fn read_name(item: Item<'_>, mistakes: &mut Mistakes) -> Option<String> {
    let name = name_of("name", item, mistakes)?;
    if name.chars().count() > LONGEST_NAME || name.contains(is_obeyed) {
        mistakes.at(item, format!("`name` must be one line of at most {LONGEST_NAME} characters"));
        return None;
    }
    Some(name)
}

/// Reads names of properties, which must exist.
fn read_properties(item: Item<'_>, spec: Option<&Spec>, mistakes: &mut Mistakes) -> Vec<String> {
    let mut names = Vec::new();
    for item in item.items() {
        let Some(name) = item.text("properties", mistakes) else { continue };
        let found = match spec {
            Some(spec) => {
                choice::named(spec, &name, item, mistakes).map(|at| spec.properties[at].name.clone())
            }
            None => Some(name),
        };
        names.extend(found);
    }
    if item.items().is_empty() {
        mistakes
            .at(item, "`properties` needs the name of a property; without it, a sink receives all verdicts");
    }
    names
}
