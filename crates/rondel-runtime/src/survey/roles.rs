//! Roles of fields by their names: the rules for a number depend on whether it is a velocity or a counter.

/// The role of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// No rule: covariances.
    Ignored,
    /// A time.
    Stamp,
    /// A part of a whole: between 0 and 1, or 0 and 100.
    Percentage,
    /// False, 0 or empty while all is well.
    Fault,
    /// One of several states.
    State,
    /// Counts up.
    Count,
    /// A velocity, an acceleration or an effort: 0 at rest, and limited in both directions.
    Motion,
    /// An angle, which may wrap.
    Angle,
    /// A distance that a sensor measures, infinite where nothing is in reach.
    Distance,
    /// A quantity that changes slowly, such as a temperature or a voltage.
    Slow,
    /// A place, which has no limits but changes steadily.
    Position,
    /// A name or an identifier.
    Identity,
    /// Any other.
    Other,
}

/// Words of names with the role that they give a field, in the order in which they count.
const WORDS: &[(Role, &[&str])] = &[
    (Role::Ignored, &["covariance", "cov"]),
    (Role::Percentage, &["percent", "percentage", "pct", "soc", "confidence", "probability"]),
    (Role::Stamp, &["stamp", "timestamp", "time", "clock", "date", "sec", "nanosec", "nsec"]),
    (Role::Fault, &["error", "errors", "fault", "faults", "failure", "failures", "alarm", "alarms"]),
    (
        Role::State,
        &["state", "status", "mode", "phase", "gear", "health", "code", "report", "stage", "activity"],
    ),
    (
        Role::Count,
        &[
            "seq", "sequence", "counter", "count", "number", "index", "uptime", "total", "odometer", "ticks",
            "num",
        ],
    ),
    (
        Role::Motion,
        &[
            "velocity",
            "velocities",
            "vel",
            "speed",
            "twist",
            "linear",
            "angular",
            "acceleration",
            "accel",
            "rate",
            "rpm",
            "omega",
            "gyro",
            "effort",
            "torque",
            "force",
            "wrench",
            "current",
            "throttle",
            "power",
        ],
    ),
    (Role::Distance, &["ranges", "range", "distances", "depth"]),
    (
        Role::Angle,
        &[
            "yaw",
            "heading",
            "theta",
            "bearing",
            "azimuth",
            "course",
            "roll",
            "pitch",
            "angle",
            "orientation",
            "steering",
        ],
    ),
    (
        Role::Slow,
        &[
            "temperature",
            "temp",
            "voltage",
            "volt",
            "charge",
            "capacity",
            "energy",
            "fuel",
            "level",
            "pressure",
            "humidity",
            "battery",
            "distance",
        ],
    ),
    (
        Role::Position,
        &[
            "position",
            "positions",
            "pos",
            "pose",
            "translation",
            "latitude",
            "longitude",
            "altitude",
            "lat",
            "lon",
            "alt",
            "point",
            "location",
        ],
    ),
    (Role::Identity, &["frame", "id", "name", "unit", "units", "model", "serial", "version", "type"]),
];

/// Returns the role of a field by its path: the last meaningful name in it decides.
pub(super) fn role(path: &[String]) -> Role {
    let named = |name: &String| {
        let words = words(name);
        WORDS
            .iter()
            .find(|(_, known)| words.iter().any(|word| known.contains(&&**word)))
            .map(|(role, _)| *role)
    };
    let is_coordinate = path.last().is_some_and(|name| ["x", "y", "z"].contains(&&**name));
    match path.iter().rev().find_map(named) {
        Some(role) => role,
        None if is_coordinate => Role::Position,
        None => Role::Other,
    }
}

/// The words of a name in small letters: `motorTemp_2` has `motor`, `temp` and `2`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || letter.is_uppercase() && was_small {
            words.push(String::new());
        }
        was_small = letter.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_roles() {
        for (path, expected) in [
            ("twist.twist.linear.x", Role::Motion),
            ("twist.covariance", Role::Ignored),
            ("pose.pose.position.y", Role::Position),
            ("percentage", Role::Percentage),
            ("batteryTemp", Role::Slow),
            ("power_supply_status", Role::State),
            ("header.seq", Role::Count),
            ("header.frame_id", Role::Identity),
            ("yaw_rate", Role::Motion),
            ("heading", Role::Angle),
            ("ranges", Role::Distance),
            ("error_count", Role::Fault),
            ("x", Role::Position),
            ("value", Role::Other),
        ] {
            let path: Vec<String> = path.split('.').map(str::to_owned).collect();
            assert_eq!(role(&path), expected, "{path:?}");
        }
    }
}
