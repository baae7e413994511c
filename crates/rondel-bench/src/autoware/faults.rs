//! The faults that are planted, each with the properties that must find it.

use super::drive::{
    GEAR_DRIVE, GEAR_NEUTRAL, LIGHT_OFF, LIGHT_ON, MODE_MANUAL, SAFE_FAILED, SHIFT_PARKING, State,
};
use super::messages::Topic;

/// A planted fault. Times are seconds since the begin of the drive.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The begin.
    pub from: f64,
    /// The end.
    pub until: f64,
    /// Description of the fault.
    pub what: &'static str,
    /// Effect on the messages.
    pub effect: Effect,
    /// The properties that become violated, all of them and no others.
    pub found_by: &'static [&'static str],
    /// Seconds after the end within which they still may become violated.
    pub echo: f64,
}

/// Effect of a fault on messages with stamps in its span.
#[derive(Clone, Copy, Debug)]
pub enum Effect {
    /// They carry the changed state.
    Says(fn(&mut State)),
    /// Each, or each second, message of a topic is lost.
    Loses(Topic, u64),
    /// The messages of a topic take this many seconds longer.
    Delays(Topic, f64),
}

const fn says(
    from: f64,
    until: f64,
    what: &'static str,
    effect: fn(&mut State),
    found_by: &'static [&'static str],
) -> Fault {
    Fault { from, until, what, effect: Effect::Says(effect), found_by, echo: 0.5 }
}

/// All faults, in the order of their times.
pub const FAULTS: &[Fault] = &[
    says(
        2.0,
        2.25,
        "engaged in manual mode",
        |s| s.engage = true,
        &["engage_in_autonomous_mode", "manual_mode_disengages"],
    ),
    says(
        4.4,
        4.65,
        "drive is selected before the vehicle is engaged",
        |s| s.gear = GEAR_DRIVE,
        &["drive_gear_only_engaged"],
    ),
    says(
        9.0,
        9.1,
        "the gear drops to neutral at 3 m/s",
        |s| s.gear = GEAR_NEUTRAL,
        &["gear_change_at_standstill"],
    ),
    says(11.0, 11.25, "engaged again at 6 m/s", |s| s.engage = false, &["engage_at_standstill"]),
    Fault {
        from: 14.0,
        until: 15.5,
        what: "every second report of the hazard lights is lost",
        effect: Effect::Loses(Topic::Hazard, 2),
        found_by: &["report_rates"],
        echo: 1.2,
    },
    says(19.0, 19.2, "hazard lights blink in a left turn", |s| s.hazard = LIGHT_ON, &["lights_exclusive"]),
    says(20.0, 20.1, "the steering sensor shows 0.9 rad", |s| s.angle = 0.9, &["steering_within_limits"]),
    Fault {
        from: 24.0,
        until: 24.6,
        what: "the gear is not reported",
        effect: Effect::Loses(Topic::Gear, 1),
        found_by: &["report_rates", "reports_are_fresh"],
        echo: 1.2,
    },
    says(25.0, 27.0, "manual mode, and still engaged", |s| s.mode = MODE_MANUAL, &["manual_mode_disengages"]),
    says(27.2, 33.0, "a right turn without turn indicators", |s| s.turn = LIGHT_OFF, &["turn_is_indicated"]),
    says(
        33.5,
        33.75,
        "a manoeuvre fails that never began",
        |s| s.fail_safe = SAFE_FAILED,
        &["fail_safe_transitions"],
    ),
    says(
        36.0,
        37.8,
        "the hazard lights come 1.5 s after the manoeuvre",
        |s| s.hazard = LIGHT_OFF,
        &["mrm_switches_hazard_on"],
    ),
    says(
        36.2,
        43.0,
        "the manoeuvre ends, and the vehicle creeps on",
        |s| s.speed = s.speed.max(0.5),
        &["mrm_stops", "mrm_succeeds_at_standstill"],
    ),
    says(43.5, 43.75, "engaged in an emergency", |s| s.engage = true, &["no_engage_in_emergency"]),
    Fault {
        from: 45.0,
        until: 45.7,
        what: "the fail-safe state is not reported",
        effect: Effect::Loses(Topic::FailSafe, 1),
        found_by: &["state_rates", "states_are_fresh"],
        echo: 1.2,
    },
    Fault {
        from: 48.0,
        until: 48.3,
        what: "the status for operators takes 1.4 s",
        effect: Effect::Delays(Topic::Vehicle, 1.4),
        found_by: &["status_latency"],
        echo: 0.5,
    },
    says(
        50.0,
        50.9,
        "the status for operators shows an old gear",
        |s| s.shift = SHIFT_PARKING,
        &["status_shows_gear"],
    ),
    says(
        52.0,
        52.3,
        "an emergency to which nothing reacts",
        |s| s.emergency = true,
        &["emergency_starts_mrm", "emergency_switches_hazard_on"],
    ),
    Fault {
        from: 53.4,
        until: 55.0,
        what: "the status for operators is not reported",
        effect: Effect::Loses(Topic::Vehicle, 1),
        found_by: &["status_rate", "states_are_fresh"],
        echo: 2.5,
    },
];

impl Fault {
    /// Whether a violation of this property at this time comes from this fault.
    pub fn explains(&self, property: &str, time: f64) -> bool {
        self.found_by.contains(&property) && time >= self.from && time <= self.until + self.echo
    }
}
