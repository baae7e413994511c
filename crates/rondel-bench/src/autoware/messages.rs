//! The nine topics of the case study, and their messages in CDR and JSON.
//!
//! The writer of CDR knows these nine types and nothing else: it shares no code with the decoder that is tested with it.

use std::fmt::Write as _;

/// A topic of the case study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    Steering,
    Gear,
    ControlMode,
    Turn,
    Hazard,
    Engage,
    FailSafe,
    Emergency,
    Vehicle,
}

/// All topics, in the order of the specification.
pub const TOPICS: [Topic; 9] = [
    Topic::Steering,
    Topic::Gear,
    Topic::ControlMode,
    Topic::Turn,
    Topic::Hazard,
    Topic::Engage,
    Topic::FailSafe,
    Topic::Emergency,
    Topic::Vehicle,
];

impl Topic {
    /// Returns the name in the specification.
    pub fn name(self) -> &'static str {
        match self {
            Topic::Steering => "steering",
            Topic::Gear => "gear",
            Topic::ControlMode => "control_mode",
            Topic::Turn => "turn",
            Topic::Hazard => "hazard",
            Topic::Engage => "engage",
            Topic::FailSafe => "fail_safe",
            Topic::Emergency => "emergency",
            Topic::Vehicle => "vehicle",
        }
    }

    /// Returns the name in ROS 2.
    pub fn address(self) -> &'static str {
        match self {
            Topic::Steering => "/vehicle/status/steering_status",
            Topic::Gear => "/vehicle/status/gear_status",
            Topic::ControlMode => "/vehicle/status/control_mode",
            Topic::Turn => "/vehicle/status/turn_indicators_status",
            Topic::Hazard => "/vehicle/status/hazard_lights_status",
            Topic::Engage => "/autoware/engage",
            Topic::FailSafe => "/api/external/get/fail_safe/state",
            Topic::Emergency => "/api/external/get/emergency",
            Topic::Vehicle => "/api/external/get/vehicle/status",
        }
    }

    /// Returns the message type in ROS 2.
    pub fn message_type(self) -> &'static str {
        match self {
            Topic::Steering => "autoware_vehicle_msgs/msg/SteeringReport",
            Topic::Gear => "autoware_vehicle_msgs/msg/GearReport",
            Topic::ControlMode => "autoware_vehicle_msgs/msg/ControlModeReport",
            Topic::Turn => "autoware_vehicle_msgs/msg/TurnIndicatorsReport",
            Topic::Hazard => "autoware_vehicle_msgs/msg/HazardLightsReport",
            Topic::Engage => "autoware_vehicle_msgs/msg/Engage",
            Topic::FailSafe => "tier4_external_api_msgs/msg/FailSafeStateStamped",
            Topic::Emergency => "tier4_external_api_msgs/msg/Emergency",
            Topic::Vehicle => "tier4_external_api_msgs/msg/VehicleStatusStamped",
        }
    }

    /// Returns the rate of the published case study, in messages a second.
    pub fn rate(self) -> f64 {
        match self {
            Topic::Engage | Topic::FailSafe | Topic::Emergency => 10.0,
            Topic::Vehicle => 5.0,
            _ => 25.0,
        }
    }

    /// Returns the rate that the published case study has between two hosts.
    pub fn rate_between_hosts(self) -> f64 {
        match self {
            Topic::Engage | Topic::FailSafe | Topic::Emergency => 8.0,
            Topic::Vehicle => 3.0,
            _ => 23.0,
        }
    }
}

/// Content of a message besides its stamp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Body {
    /// The angle of the steered wheels in rad.
    Angle(f32),
    /// The code of a report.
    Report(u8),
    /// The mode of control.
    Mode(u8),
    /// Whether the vehicle is engaged.
    Engage(bool),
    /// The state of the fail-safe system.
    FailSafe(u8),
    /// Whether there is an emergency.
    Emergency(bool),
    /// The status for operators.
    Vehicle(Vehicle),
}

/// The status for operators.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vehicle {
    /// The speed in m/s.
    pub speed: f64,
    /// The yaw rate in rad/s.
    pub yaw_rate: f64,
    /// The steering angle in rad.
    pub angle: f32,
    /// The code of the turn signal.
    pub turn_signal: u8,
    /// The code of the gear.
    pub gear_shift: u8,
}

/// A message and its times, in nanoseconds since the begin of the drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Message {
    /// The topic.
    pub topic: Topic,
    /// The time in the message.
    pub stamp_ns: u64,
    /// The time of arrival.
    pub arrival_ns: u64,
    /// The content.
    pub body: Body,
}

impl Message {
    /// Returns it in CDR (XCDR1, little endian, with the header of four bytes), of a drive that began at `base_ns`.
    pub fn cdr(&self, base_ns: u64) -> Vec<u8> {
        let at = base_ns + self.stamp_ns;
        let mut cdr = vec![0, 1, 0, 0];
        cdr.extend(u32::try_from(at / 1_000_000_000).unwrap_or(u32::MAX).to_le_bytes());
        cdr.extend(((at % 1_000_000_000) as u32).to_le_bytes());
        match self.body {
            Body::Angle(angle) => cdr.extend(angle.to_le_bytes()),
            Body::Report(code) | Body::Mode(code) | Body::FailSafe(code) => cdr.push(code),
            Body::Engage(on) | Body::Emergency(on) => cdr.push(u8::from(on)),
            Body::Vehicle(vehicle) => {
                // The stamp has eight bytes, so that the numbers that follow are aligned.
                for number in [vehicle.speed, 0.0, 0.0, 0.0, 0.0, vehicle.yaw_rate] {
                    cdr.extend(number.to_le_bytes());
                }
                cdr.extend(vehicle.angle.to_le_bytes());
                cdr.extend([vehicle.turn_signal, vehicle.gear_shift]);
            }
        }
        cdr
    }

    /// Returns it as a line of a recording.
    pub fn json(&self, base_ns: u64) -> String {
        let (stamp, arrival) = (base_ns + self.stamp_ns, base_ns + self.arrival_ns);
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let mut line = format!(
            r#"{{"topic":"{}","time":{},"arrival":{},"data":{{"stamp":{{"sec":{},"nanosec":{}}},"#,
            self.topic.name(),
            seconds(stamp),
            seconds(arrival),
            stamp / 1_000_000_000,
            stamp % 1_000_000_000
        );
        // Writing to a text cannot fail.
        _ = match self.body {
            Body::Angle(angle) => write!(line, r#""steering_tire_angle":{angle}"#),
            Body::Report(code) => write!(line, r#""report":{code}"#),
            Body::Mode(code) => write!(line, r#""mode":{code}"#),
            Body::Engage(on) => write!(line, r#""engage":{on}"#),
            Body::FailSafe(code) => write!(line, r#""state":{{"state":{code}}}"#),
            Body::Emergency(on) => write!(line, r#""emergency":{on}"#),
            Body::Vehicle(v) => write!(
                line,
                r#""status":{{"twist":{{"linear":{{"x":{},"y":0.0,"z":0.0}},"angular":{{"x":0.0,"y":0.0,"z":{}}}}},"steering":{{"data":{}}},"turn_signal":{{"data":{}}},"gear_shift":{{"data":{}}}}}"#,
                v.speed, v.yaw_rate, v.angle, v.turn_signal, v.gear_shift
            ),
        };
        line.push_str("}}");
        line
    }
}
