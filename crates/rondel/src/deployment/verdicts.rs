//! The section `verdicts`: where they are published, and when.

use rondel_runtime::Emit;
use rondel_runtime::ros2::DIAGNOSTICS;
use rondel_spec::Spec;

use super::choice;
use super::places::{Place, Role};
use super::yaml::{Item, Mistakes, Synonyms};
use super::{Address, addresses, spread};

/// Names that people write for settings of verdicts.
const VERDICTS: Synonyms = &[
    (&["publish", "sink", "sinks", "address", "topic", "output", "source"], "write `to`"),
    (&["when", "mode"], "write `emit`"),
    (&["property"], "write `properties`"),
];

/// Reads when verdicts are published, and where those of each property.
pub(super) fn sinks<'y>(
    verdicts: Option<Item<'y>>,
    spec: Option<&Spec>,
    used: &mut Vec<Place<'y>>,
    mistakes: &mut Mistakes,
) -> (Emit, Vec<Vec<Address>>) {
    let names = &spec.map(Spec::address_names).unwrap_or_default()[..];
    let Some(item) = verdicts else {
        return (Emit::Change, vec![vec![Address::Stdout]; names.len()]);
    };
    let mut members = item.members("verdicts", mistakes);
    let mut emit = Emit::Change;
    if let Some(item) = members.get("emit") {
        match item.text("emit", mistakes).as_deref() {
            Some("change") => {}
            Some("every") => emit = Emit::Every,
            Some("violations") => emit = Emit::Violations,
            Some(_) => mistakes.at(item, "`emit` must be change, every or violations"),
            None => {}
        }
    }
    let to = members.get("to");
    let own = members.get("properties");
    members.finish(VERDICTS, mistakes);
    let (places, items): (Vec<Address>, Vec<Item<'_>>) = to
        .map_or_else(Vec::new, |item| addresses("to", item, Address::parse_verdicts, mistakes))
        .into_iter()
        .unzip();
    let mut sinks = match spread(&places, names) {
        Ok(sinks) => sinks,
        Err(error) => {
            mistakes.at(to.unwrap_or(item), error);
            vec![Vec::new(); names.len()]
        }
    };
    // Every property has the addresses of `to` in their order.
    let mut items = vec![items; names.len()];
    let mut settings = vec!["`to` of `verdicts`".to_owned(); names.len()];
    for (name, key, item) in own.map_or_else(Vec::new, |item| item.entries("properties", mistakes)) {
        let own = addresses(&name, item, Address::parse_verdicts, mistakes);
        if let Some(index) = spec.and_then(|spec| choice::named(spec, &name, key, mistakes)) {
            (sinks[index], items[index]) = own.into_iter().unzip();
            settings[index] = format!("property '{name}' of `verdicts`");
        }
    }
    if to.is_none() && own.is_none() {
        sinks = vec![vec![Address::Stdout]; names.len()];
    }
    if let Err(why) = check_emit(emit, &sinks) {
        mistakes.at(item, why);
    }
    for ((setting, items), sinks) in settings.iter().zip(&items).zip(&sinks) {
        let sinks = sinks.iter().zip(items);
        used.extend(sinks.map(|(address, item)| Place::new(Role::Verdicts, setting, address, *item)));
    }
    (emit, sinks)
}

/// Checks that the sinks can show the emitted verdicts.
///
/// # Errors
/// The reason why a sink cannot, and the way out.
pub fn check_emit(emit: Emit, sinks: &[Vec<Address>]) -> Result<(), &'static str> {
    let diagnoses = |address: &Address| address.ros2_type().as_deref() == Some(DIAGNOSTICS);
    if emit == Emit::Violations && sinks.iter().flatten().any(diagnoses) {
        return Err("diagnostics would never show that a violation is over: with them, write `emit: change`");
    }
    Ok(())
}
