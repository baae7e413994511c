//! The drive: what the vehicle does at each time, without faults.

use super::messages::{Body, Topic, Vehicle};

/// Seconds that the drive takes.
pub const SECONDS: f64 = 60.0;

/// Codes of `GearReport`.
pub const GEAR_NEUTRAL: u8 = 1;
/// The same: drive.
pub const GEAR_DRIVE: u8 = 2;
/// The same: park.
pub const GEAR_PARK: u8 = 22;
/// Codes of `ControlModeReport`.
pub const MODE_AUTONOMOUS: u8 = 1;
/// The same: manual.
pub const MODE_MANUAL: u8 = 4;
/// Code of reports of lights: off.
pub const LIGHT_OFF: u8 = 1;
/// The same: hazard lights on, or the left turn indicator.
pub const LIGHT_ON: u8 = 2;
/// The same: the right turn indicator.
pub const LIGHT_RIGHT: u8 = 3;
/// Codes of `FailSafeState`: normal.
pub const SAFE_NORMAL: u8 = 1;
/// The same: a minimal-risk manoeuvre is going on.
pub const SAFE_OPERATING: u8 = 3;
/// The same: it has succeeded.
pub const SAFE_SUCCEEDED: u8 = 4;
/// The same: it has failed.
pub const SAFE_FAILED: u8 = 5;
/// Codes of `GearShift`: parking.
pub const SHIFT_PARKING: u8 = 1;

/// Delay of the status for operators behind the vehicle, in seconds.
const STATUS_LAG: f64 = 0.1;
const WHEELBASE: f64 = 2.79;

/// The state of the vehicle at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    /// The speed in m/s.
    pub speed: f64,
    /// The steering angle in rad.
    pub angle: f64,
    /// The code of the gear.
    pub gear: u8,
    /// The code of the mode of control.
    pub mode: u8,
    /// The code of the turn indicators.
    pub turn: u8,
    /// The code of the hazard lights.
    pub hazard: u8,
    /// Whether the vehicle is engaged.
    pub engage: bool,
    /// The code of the fail-safe state.
    pub fail_safe: u8,
    /// Whether there is an emergency.
    pub emergency: bool,
    /// The code of the gear in the status for operators.
    pub shift: u8,
}

impl State {
    /// Returns the state `t` seconds after the begin: parked; engaged; a left and a right turn; an emergency, which stops
    /// the vehicle; on again, and parked.
    pub fn at(t: f64) -> State {
        let within = |from: f64, until: f64| t >= from && t < until;
        let turn = if within(16.5, 23.0) {
            LIGHT_ON
        } else if within(27.5, 32.5) {
            LIGHT_RIGHT
        } else {
            LIGHT_OFF
        };
        let fail_safe = if within(36.3, 41.0) {
            SAFE_OPERATING
        } else if within(41.0, 44.3) {
            SAFE_SUCCEEDED
        } else {
            SAFE_NORMAL
        };
        State {
            speed: FIRST_DRIVE.speed(t) + SECOND_DRIVE.speed(t),
            angle: bump(t, 17.5, 22.5) * 0.2 - bump(t, 28.0, 32.0) * 0.25 + 0.004 * (t * 1.7).sin(),
            gear: gear(t),
            mode: if within(4.0, 59.0) { MODE_AUTONOMOUS } else { MODE_MANUAL },
            turn,
            hazard: if within(36.5, 44.6) { LIGHT_ON } else { LIGHT_OFF },
            engage: within(5.0, 41.5) || within(46.0, 57.5),
            fail_safe,
            emergency: within(36.0, 44.0),
            shift: if gear(t - STATUS_LAG) == GEAR_PARK { SHIFT_PARKING } else { 4 },
        }
    }

    /// Returns the content of a message about this state.
    pub fn body(&self, topic: Topic) -> Body {
        match topic {
            Topic::Steering => Body::Angle(self.angle as f32),
            Topic::Gear => Body::Report(self.gear),
            Topic::ControlMode => Body::Mode(self.mode),
            Topic::Turn => Body::Report(self.turn),
            Topic::Hazard => Body::Report(self.hazard),
            Topic::Engage => Body::Engage(self.engage),
            Topic::FailSafe => Body::FailSafe(self.fail_safe),
            Topic::Emergency => Body::Emergency(self.emergency),
            Topic::Vehicle => Body::Vehicle(Vehicle {
                speed: self.speed,
                yaw_rate: self.speed * self.angle.tan() / WHEELBASE,
                angle: self.angle as f32,
                turn_signal: if self.hazard == LIGHT_ON { 3 } else { self.turn - LIGHT_OFF },
                gear_shift: self.shift,
            }),
        }
    }
}

fn gear(t: f64) -> u8 {
    if (6.0..58.0).contains(&t) { GEAR_DRIVE } else { GEAR_PARK }
}

/// Acceleration from a time up to a speed, and braking from another time on: in seconds, m/s and m/s².
struct Trapezium {
    start: f64,
    top: f64,
    acceleration: f64,
    brake: f64,
    deceleration: f64,
}

const FIRST_DRIVE: Trapezium =
    Trapezium { start: 7.0, top: 10.0, acceleration: 1.5, brake: 36.3, deceleration: 2.5 };
const SECOND_DRIVE: Trapezium =
    Trapezium { start: 47.0, top: 6.0, acceleration: 1.5, brake: 53.0, deceleration: 1.5 };

impl Trapezium {
    fn speed(&self, t: f64) -> f64 {
        let speed = (self.acceleration * (t - self.start)).min(self.top);
        speed.min(self.top - self.deceleration * (t - self.brake)).max(0.0)
    }
}

/// Returns a number that rises from 0 to 1 within a second of `from`, and falls back up to `until`.
fn bump(t: f64, from: f64, until: f64) -> f64 {
    (t - from).min(until - t).clamp(0.0, 1.0)
}
