//! The vehicle of the demos, and a recording of its drive with planted faults.

use std::fmt::Write as _;

/// The ticks of the vehicle per second.
pub const RATE: u32 = 20;
/// The length of the drive in ticks.
pub const LENGTH: u32 = 9 * RATE;
/// The ticks without messages of the velocity in the recording: a sensor that is silent.
const SILENCE: std::ops::Range<u32> = 42..52;
/// The tick with a velocity above the limit in the recording, and this velocity.
const SPIKE: (u32, f64) = (56, 9.4);

/// The state of the vehicle at a tick: a function of the tick alone.
pub struct Vehicle {
    /// In m/s.
    pub velocity: f64,
    /// 2 is drive, 20 reverse.
    pub gear: i64,
    /// Whether the brake is pressed.
    pub brake: bool,
    /// Event that begins at this tick, as a remark for people who watch.
    pub remark: Option<&'static str>,
}

impl Vehicle {
    /// The state at a tick.
    pub fn at(tick: u32) -> Vehicle {
        let t = f64::from(tick) / f64::from(RATE);
        let remark = match tick {
            0 => Some("the vehicle pulls out of its space, in drive"),
            60 => Some("brakes"),
            100 => Some("stands, and changes to reverse: as it should be"),
            120 => Some("rolls backwards"),
            150 => Some("changes to drive while it still rolls: that is the mistake"),
            _ => None,
        };
        // Up to 8 m/s in 2 s, on, braking from 3 s to 4.5 s, standing, backwards from 6 s, slower
        // from 7 s.
        let velocity = if t < 2.0 {
            4.0 * t
        } else if t < 3.0 {
            8.0
        } else if t < 4.5 {
            8.0 - 8.0 * (t - 3.0) / 1.5
        } else if t < 6.0 {
            0.0
        } else if t < 7.0 {
            -1.5 * (t - 6.0)
        } else {
            (-1.5 + (t - 7.0)).min(0.0)
        };
        let gear = if (100..150).contains(&tick) { 20 } else { 2 };
        Vehicle { velocity, gear, brake: (60..110).contains(&tick), remark }
    }
}

/// The drive as JSON lines, with three faults: a silent sensor, a velocity above the limit, and a change of the gear while
/// the vehicle rolls.
pub fn recording() -> String {
    let mut lines = String::new();
    let mut line = |topic: &str, tick: u32, member: &str| {
        let time = f64::from(tick) / f64::from(RATE);
        // Writing to a string does not fail.
        let _ = writeln!(lines, "{{\"topic\": \"{topic}\", \"time\": {time}, {member}}}");
    };
    for tick in 0..LENGTH {
        let (now, before) = (Vehicle::at(tick), Vehicle::at(tick.saturating_sub(1)));
        let velocity = if tick == SPIKE.0 { SPIKE.1 } else { now.velocity };
        if !SILENCE.contains(&tick) {
            line("velocity", tick, &format!("\"longitudinal\": {velocity:.3}"));
        }
        // Brake and gear are published when they change, and once per second.
        if tick % RATE == 0 || now.brake != before.brake {
            line("brake", tick, &format!("\"pressed\": {}", now.brake));
        }
        if tick % RATE == 0 || now.gear != before.gear {
            line("gear", tick, &format!("\"report\": {}", now.gear));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_has_its_faults() {
        let recording = recording();
        assert_eq!(recording, super::recording(), "it is always the same");
        let times = |topic: &str| {
            let name = format!("\"topic\": \"{topic}\"");
            recording.lines().filter(|line| line.contains(&name)).count()
        };
        assert_eq!(times("velocity"), (LENGTH - SILENCE.len() as u32) as usize);
        assert!(recording.contains("\"time\": 2.8, \"longitudinal\": 9.400"));
        assert!(recording.contains("\"topic\": \"gear\", \"time\": 7.5, \"report\": 2"));
    }
}
