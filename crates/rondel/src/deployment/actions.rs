//! The section `actions:`: messages, programs and calls of services on verdicts.

mod known;
mod message;
mod publish;

use std::path::Path;
use std::time::Duration;

use rondel_net::ros2::{Service, ServiceType};
use rondel_runtime::Emit;
use rondel_spec::Property;

use self::known::{Kind, Known};
use super::Address;
use super::alignment::duration;
use super::choice;
use super::places::Place;
use super::yaml::{Item, Members, Mistakes, Synonyms};
use crate::sinks::actions::{Act, ActionSettings, CallAct, Limit, On, RunAct, Template};
use crate::specification::Specification;

/// Names that people write for settings of an action.
const ACTION: Synonyms = &[
    (&["when", "if", "verdict"], "write `on: violated`"),
    (&["property", "of"], "write `properties`"),
    (&["exec", "execute", "program", "command", "shell"], "write `run: [PROGRAM, ARGUMENT, …]`"),
    (&["service"], "write `call: { service: ros2:/NAME, type: std_srvs/srv/Trigger }`"),
    (&["send", "to", "message"], "write `publish: { to: ADDRESS, message: … }`"),
    (&["rate", "per_minute", "total"], "write `limit: { per_minute: 60, total: 1000 }`"),
];
/// Names that people write for settings of a call.
const CALL: Synonyms = &[
    (&["name", "to", "address"], "write `service`"),
    (&["data", "arguments", "args"], "write `request: { data: true }`"),
];

/// Default time limits of programs and of calls, and the limits of both.
const RUN: Duration = Duration::from_secs(10);
const CALL_LIMIT: Duration = Duration::from_secs(5);
const LIMITS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(3600));
/// Default rate of programs.
const RUN_RATE: u32 = 60;

/// Facts by which actions are selected and checked.
pub(super) struct Selecting<'s> {
    /// The specification, if it can be read.
    pub(super) specification: Option<&'s Specification>,
    /// The verdicts that are emitted.
    pub(super) emit: Emit,
    /// Whether verdicts have ids.
    pub(super) has_ids: bool,
}

/// The settings of an action that its effect depends on.
struct Context<'c> {
    selecting: &'c Selecting<'c>,
    known: Option<&'c Known>,
}

/// Checks that the verdicts that cause actions are emitted.
///
/// # Errors
/// The reason why they are not, and the way out.
pub fn check_actions(emit: Emit, actions: &[ActionSettings]) -> Result<(), &'static str> {
    if emit == Emit::Violations && actions.iter().any(|action| action.on != On::Violated) {
        return Err("only violations cause actions then: write `emit: change`, or `on: violated`");
    }
    Ok(())
}

/// Reads the section.
pub(super) fn actions<'y>(
    item: Item<'y>,
    selecting: &Selecting<'_>,
    places: &mut Vec<Place<'y>>,
    mistakes: &mut Mistakes,
) -> Vec<ActionSettings> {
    let read = |item| action(item, selecting, places, mistakes);
    let actions: Vec<ActionSettings> = item.items().into_iter().filter_map(read).collect();
    if let Err(why) = check_actions(selecting.emit, &actions) {
        mistakes.at(item, format!("`emit: violations`: {why}"));
    }
    actions
}

fn action<'y>(
    item: Item<'y>,
    selecting: &Selecting<'_>,
    places: &mut Vec<Place<'y>>,
    mistakes: &mut Mistakes,
) -> Option<ActionSettings> {
    let mut members = item.members("an action", mistakes);
    let on = on(members.get("on"), mistakes);
    let (named, severity) = (members.get("properties"), members.get("severity"));
    let (publish, run, call) = (members.get("publish"), members.get("run"), members.get("call"));
    let (limit_item, timeout) = (members.get("limit"), members.get("timeout"));
    members.finish(ACTION, mistakes);
    let properties = selected(item, [named, severity], selecting, mistakes);
    let spec = selecting.specification.map(|specification| &*specification.spec);
    let known = spec.map(|spec| {
        let own = spec.properties.iter().zip(&properties).filter(|(_, is_selected)| **is_selected);
        Known::of(spec, own.map(|(property, _)| property), on, selecting.has_ids)
    });
    let context = Context { selecting, known: known.as_ref() };
    let mut limit = limit_item.map_or_else(Limit::default, |item| limit(item, mistakes));
    if [publish, run, call].into_iter().flatten().count() != 1 {
        mistakes.at(item, "an action needs one of `publish`, `run` and `call`");
        return None;
    }
    if let (Some(item), Some(_)) = (timeout, publish) {
        mistakes.at(item, "`timeout` belongs to `run` and `call`; remove it here");
    }
    let act = match (publish, run, call) {
        (Some(item), ..) => {
            let is_limited = limit != Limit::default();
            publish::publish(item, &context, is_limited, places, mistakes)?
        }
        (_, Some(item), _) => {
            limit.per_minute = limit.per_minute.or(Some(RUN_RATE));
            Act::Run(run_act(item, time_limit(timeout, RUN, mistakes), &context, mistakes)?)
        }
        (.., Some(item)) => Act::Call(Box::new(call_act(
            item,
            time_limit(timeout, CALL_LIMIT, mistakes),
            &context,
            mistakes,
        )?)),
        // Counted above.
        (None, None, None) => return None,
    };
    let mut action = ActionSettings { on, properties, act, limit, explains: false };
    let mut explains = false;
    action.placeholders(&mut |of| explains |= known.as_ref().is_some_and(|known| known.is_explained(of)));
    action.explains = explains;
    Some(action)
}

fn on(item: Option<Item<'_>>, mistakes: &mut Mistakes) -> On {
    let Some((item, text)) = item.and_then(|item| Some((item, item.text("on", mistakes)?))) else {
        return On::default();
    };
    match text.as_str() {
        "violated" => On::Violated,
        "satisfied" => On::Satisfied,
        "inconclusive" => On::Inconclusive,
        "change" => On::Change,
        _ => {
            mistakes.at(item, "`on` must be violated, satisfied, inconclusive or change");
            On::default()
        }
    }
}

/// Returns whether each property is selected by name and by severity.
fn selected(
    action: Item<'_>,
    [named, severity]: [Option<Item<'_>>; 2],
    selecting: &Selecting<'_>,
    mistakes: &mut Mistakes,
) -> Vec<bool> {
    let Some(spec) = selecting.specification.map(|specification| &*specification.spec) else {
        return Vec::new();
    };
    let mut selected = vec![named.is_none(); spec.properties.len()];
    for item in named.map_or_else(Vec::new, Item::items) {
        let Some(name) = item.text("properties", mistakes) else { continue };
        if let Some(position) = choice::named(spec, &name, item, mistakes) {
            selected[position] = true;
        }
    }
    if let Some((item, least)) =
        severity.and_then(|item| Some((item, choice::read_severity(item, mistakes)?)))
    {
        let is_severe = |property: &Property| choice::severity_of(property) >= least;
        if !spec.properties.iter().any(is_severe) {
            let least = least.as_str();
            mistakes.at(
                item,
                format!("no property has at least the severity {least}: add `@severity({least})` to one"),
            );
            return selected;
        }
        for (property, is_selected) in spec.properties.iter().zip(&mut selected) {
            *is_selected &= is_severe(property);
        }
        if !selected.contains(&true) {
            mistakes.at(action, "no property has both this name and at least this severity");
        }
    }
    selected
}

fn limit(item: Item<'_>, mistakes: &mut Mistakes) -> Limit {
    let mut members = item.members("limit", mistakes);
    let (rate, total) = (members.get("per_minute"), members.get("total"));
    members.finish(
        &[(&["rate", "per_second"], "write `per_minute`"), (&["max", "count"], "write `total`")],
        mistakes,
    );
    let rate = rate.and_then(|item| item.integer("per_minute", 1..=60_000, mistakes));
    let total = total.and_then(|item| item.integer("total", 1..=1_000_000_000, mistakes));
    Limit {
        per_minute: rate.and_then(|rate| u32::try_from(rate).ok()),
        total: total.and_then(|total| u64::try_from(total).ok()),
    }
}

fn time_limit(item: Option<Item<'_>>, default: Duration, mistakes: &mut Mistakes) -> Duration {
    let Some((item, nanos)) =
        item.and_then(|item| Some((item, duration(item, "timeout", "10 s", "", mistakes)?)))
    else {
        return default;
    };
    let timeout = Duration::from_nanos(u64::try_from(nanos).unwrap_or(0));
    if !(LIMITS.0..=LIMITS.1).contains(&timeout) {
        mistakes.at(item, "`timeout` must be from 10 ms to 1 h");
        return default;
    }
    timeout
}

/// Reads `run`: the program and its arguments.
fn run_act(
    item: Item<'_>,
    timeout: Duration,
    context: &Context<'_>,
    mistakes: &mut Mistakes,
) -> Option<RunAct> {
    let items = item.items();
    let Some((first, rest)) = items.split_first() else {
        mistakes.at(item, "`run` needs a program, such as `run: [/usr/local/bin/notify, \"{property}\"]`");
        return None;
    };
    let program = first.text("run", mistakes)?;
    if program.is_empty() || program.contains(['{', '}', '\0']) {
        mistakes.at(*first, "the program is fixed: only its arguments have placeholders");
        return None;
    }
    if rest.is_empty() && program.contains(char::is_whitespace) && !Path::new(&program).exists() {
        mistakes.at(
            *first,
            "there is no shell that divides this line: write the program and each argument as an item of a list",
        );
        return None;
    }
    let arguments: Vec<Option<_>> =
        rest.iter().map(|item| message::text(*item, "run", context.known, mistakes)).collect();
    mistakes.uncertain(item, "this program runs only with `rondel run --allow-run`");
    if program.starts_with('/') && !Path::new(&program).exists() {
        mistakes.uncertain(*first, format!("the program {program} does not exist on this machine"));
    }
    Some(RunAct { program, arguments: arguments.into_iter().collect::<Option<_>>()?, timeout })
}

/// Reads `call`: the service, its type and the request.
fn call_act(
    item: Item<'_>,
    timeout: Duration,
    context: &Context<'_>,
    mistakes: &mut Mistakes,
) -> Option<CallAct> {
    let mut members = item.members("call", mistakes);
    let (service, of) = (members.get("service"), members.get("type"));
    let request = members.get("request");
    members.finish(CALL, mistakes);
    let (Some(service), Some(of)) = (service, of) else {
        mistakes.at(
            item,
            "`call` needs `service` and `type`, such as `service: ros2:/stop, type: std_srvs/srv/Trigger`",
        );
        return None;
    };
    let type_name = of.text("type", mistakes)?;
    let of_service = ServiceType::parse(&type_name).map_err(|error| mistakes.at(of, error.to_string())).ok();
    let address = service.text("service", mistakes)?;
    let to = match Address::parse(&address) {
        Ok(Address::Ros2(topic, encoding)) if topic.name.pattern().is_none() => {
            Address::Ros2(topic, encoding)
        }
        Ok(_) => {
            mistakes.at(
                service,
                "only services of ROS 2 are called: write `service: ros2:/NAME`, without parameters",
            );
            return None;
        }
        Err(error) => {
            mistakes.at(service, error);
            return None;
        }
    };
    let of_service = of_service?;
    let data = call_data(item, request, of_service, context, mistakes)?;
    let name = match &to {
        Address::Ros2(topic, _) => topic.name.clone(),
        _ => return None,
    };
    Some(CallAct { to, service: Service { name, of: of_service }, data, timeout })
}

/// Reads the value of `data`, which only `std_srvs/srv/SetBool` has.
fn call_data(
    call: Item<'_>,
    request: Option<Item<'_>>,
    of: ServiceType,
    context: &Context<'_>,
    mistakes: &mut Mistakes,
) -> Option<Option<Template>> {
    let mut data = None;
    if let Some(item) = request {
        let mut members: Members<'_> = item.members("request", mistakes);
        if of == ServiceType::SetBool {
            data = members.get("data");
        } else if !item.is_empty() {
            mistakes.at(item, format!("a request of {of} has no fields: leave `request` out"));
            return None;
        }
        members.finish(&[], mistakes);
    }
    let Some(item) = data else {
        if of == ServiceType::SetBool {
            mistakes
                .at(call, "a request of std_srvs/srv/SetBool needs `data`: write `request: { data: true }`");
            return None;
        }
        return Some(None);
    };
    let template = message::template(item, context.known, mistakes)?;
    let is_boolean = match &template {
        Template::Fixed(value) => value.is_boolean(),
        Template::Text(text) => text.only().is_some_and(|of| {
            let kind = context.known.map(|known| known.kind(of));
            // Another mistake is known.
            matches!(kind, None | Some(Err(_)) | Some(Ok(Kind::Boolean | Kind::Any)))
        }),
        Template::List(_) | Template::Mapping(_) => false,
    };
    if !is_boolean {
        mistakes.at(item, "`data` must be true or false, or a placeholder of a boolean");
    }
    Some(Some(template))
}
