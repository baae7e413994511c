//! The places on networks that a deployment names: nothing may be read where something else is published.

use super::Address;
use super::yaml::{Item, Mistakes};

/// Use of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Messages of a topic are read.
    Source,
    /// Progress markers are read.
    Progress,
    /// The time of a simulation is read.
    Clock,
    /// Verdicts are published.
    Verdicts,
    /// Reports of the alignment are published.
    Reports,
    /// Synchronized messages are published.
    Synchronized,
    /// The state of the run is published.
    Heartbeat,
    /// A gate passes messages on.
    Gate,
    /// Messages of actions are published.
    Action,
    /// Members of a group find each other.
    Group,
}

impl Role {
    fn reads(self) -> bool {
        matches!(self, Role::Source | Role::Progress | Role::Clock)
    }

    /// Returns what is published or read, in messages of errors.
    fn contents(self) -> &'static str {
        match self {
            Role::Source => "messages",
            Role::Progress => "progress markers",
            Role::Clock => "the time",
            Role::Verdicts => "verdicts",
            Role::Reports => "reports",
            Role::Synchronized => "synchronized messages",
            Role::Heartbeat => "the state of the run",
            Role::Gate => "the messages of a gate",
            Role::Action => "messages of actions",
            Role::Group => "signs of life",
        }
    }
}

/// An address in a deployment, and the setting that names it.
#[derive(Clone, Debug)]
pub(super) struct Place<'y> {
    role: Role,
    setting: String,
    address: Address,
    item: Item<'y>,
}

impl<'y> Place<'y> {
    /// Returns the place of this address, which `setting` names at `item`.
    pub(super) fn new(role: Role, setting: &str, address: &Address, item: Item<'y>) -> Place<'y> {
        Place { role, setting: setting.to_owned(), address: address.clone(), item }
    }

    /// Returns why the two places cannot be used together, if they cannot.
    fn clash(&self, other: &Place<'_>) -> Option<String> {
        // A specification may check the time of a simulation, too.
        let is_checked_clock =
            matches!((self.role, other.role), (Role::Source, Role::Clock) | (Role::Clock, Role::Source));
        // A run leaves out its own diagnostics where it reads those of others.
        let is_shared = |reading: &Place<'_>, publishing: &Place<'_>| {
            let of_ros2 = publishing.address.ros2_type();
            reading.role == Role::Source
                && publishing.role == Role::Verdicts
                && of_ros2.as_deref() == Some(rondel_runtime::ros2::DIAGNOSTICS)
        };
        let is_shared = is_shared(self, other) || is_shared(other, self);
        let is_same = self.role == other.role && self.role != Role::Gate;
        if is_same || is_checked_clock || is_shared || !self.address.meets(&other.address) {
            return None;
        }
        let (reading, publishing) = match (self.role.reads(), other.role.reads()) {
            (true, false) => (self, other),
            (false, true) => (other, self),
            (both_read, _) => {
                let verb = if both_read { "reads" } else { "publishes" };
                let (a, b) = (self.role.contents(), other.role.contents());
                return Some(format!(
                    "{} {verb} {a} on {}, where {} {verb} {b}; use different topics",
                    self.setting, self.address, other.setting
                ));
            }
        };
        let effect = match reading.role {
            Role::Progress => "be read as progress markers from",
            Role::Clock => "be read as the time on",
            _ => "come back as messages of",
        };
        let way_out = match publishing.role {
            Role::Action => "publish them elsewhere, or allow that by `loop: true` and a `limit`",
            _ => "publish them elsewhere",
        };
        Some(format!(
            "{} on {} would {effect} {}: {} publishes where {} reads; {way_out}",
            publishing.role.contents(),
            publishing.address,
            reading.address,
            publishing.setting,
            reading.setting
        ))
    }
}

/// Adds an error for each setting that names a place which another setting uses for something else.
pub(super) fn check(places: &[Place<'_>], mistakes: &mut Mistakes) {
    let mut reported: Option<(usize, usize)> = None;
    for (index, place) in places.iter().enumerate() {
        // With several properties, one item names several places.
        let position = place.item.position();
        if reported == Some(position) {
            continue;
        }
        if let Some(message) = places[..index].iter().find_map(|earlier| place.clash(earlier)) {
            mistakes.at(place.item, message);
            reported = Some(position);
        }
    }
}
