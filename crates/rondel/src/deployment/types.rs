//! The types of DDS topics: which ones Rondel can read.

use rondel_net::dds;

/// The type of a topic on DDS, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DdsType {
    /// It has one string; this is its name on DDS.
    String(String),
    /// Its members are not known here; this is its name on DDS.
    Unknown(String),
    /// It is known to have other fields.
    Other,
    /// It is not the name of a type.
    Invalid,
}

impl DdsType {
    /// Reads a name as on DDS (`std_msgs::msg::dds_::String_`) or as in ROS 2 (`std_msgs/msg/String`).
    pub(super) fn parse(name: &str) -> DdsType {
        if dds::check_topic(name).is_err() {
            return DdsType::Invalid;
        }
        let parts: Vec<&str> = name.split('/').collect();
        let (package, message) = match parts[..] {
            [package, "msg", message] | [package, message] => (package, message),
            [_] => {
                let parts: Vec<&str> = name.split("::").collect();
                match parts[..] {
                    [package, "msg", "dds_", message] => {
                        (package, message.strip_suffix('_').unwrap_or(message))
                    }
                    [package, "msg", message] => (package, message),
                    _ => return DdsType::Unknown(name.to_owned()),
                }
            }
            _ => return DdsType::Invalid,
        };
        if package.is_empty() || message.is_empty() {
            return DdsType::Invalid;
        }
        // Names without `::` are those of ROS 2, which has names of its own on DDS.
        let on_dds =
            if name.contains('/') { format!("{package}::msg::dds_::{message}_") } else { name.to_owned() };
        if matches!(package, "std_msgs" | "example_interfaces") && message == "String" {
            return DdsType::String(on_dds);
        }
        let known = KNOWN.iter().find(|(known, _)| *known == package);
        if known.is_some_and(|(_, messages)| messages.contains(&message)) {
            return DdsType::Other;
        }
        DdsType::Unknown(on_dds)
    }
}

/// What Rondel reads, in messages.
const READS: &str = "Rondel reads std_msgs/msg/String and types with one string on DDS in this version";

/// The error about a type that has other fields.
pub(super) fn refused(name: &str) -> String {
    format!("{READS}; {name} has other fields")
}

/// The warning about a type that is not known.
pub(super) fn unknown(name: &str) -> String {
    format!("{READS}; make sure that {name} has one string and no other field")
}

/// Message types of ROS 2 that are not one string, by package.
const KNOWN: [(&str, &[&str]); 4] = [
    (
        "std_msgs",
        &[
            "Bool",
            "Byte",
            "ByteMultiArray",
            "Char",
            "ColorRGBA",
            "Empty",
            "Float32",
            "Float32MultiArray",
            "Float64",
            "Float64MultiArray",
            "Header",
            "Int16",
            "Int16MultiArray",
            "Int32",
            "Int32MultiArray",
            "Int64",
            "Int64MultiArray",
            "Int8",
            "Int8MultiArray",
            "MultiArrayDimension",
            "MultiArrayLayout",
            "UInt16",
            "UInt16MultiArray",
            "UInt32",
            "UInt32MultiArray",
            "UInt64",
            "UInt64MultiArray",
            "UInt8",
            "UInt8MultiArray",
        ],
    ),
    (
        "geometry_msgs",
        &[
            "Accel",
            "AccelStamped",
            "AccelWithCovariance",
            "AccelWithCovarianceStamped",
            "Inertia",
            "InertiaStamped",
            "Point",
            "Point32",
            "PointStamped",
            "Polygon",
            "PolygonInstance",
            "PolygonInstanceStamped",
            "PolygonStamped",
            "Pose",
            "Pose2D",
            "PoseArray",
            "PoseStamped",
            "PoseWithCovariance",
            "PoseWithCovarianceStamped",
            "Quaternion",
            "QuaternionStamped",
            "Transform",
            "TransformStamped",
            "Twist",
            "TwistStamped",
            "TwistWithCovariance",
            "TwistWithCovarianceStamped",
            "Vector3",
            "Vector3Stamped",
            "VelocityStamped",
            "Wrench",
            "WrenchStamped",
        ],
    ),
    (
        "sensor_msgs",
        &[
            "BatteryState",
            "CameraInfo",
            "ChannelFloat32",
            "CompressedImage",
            "FluidPressure",
            "Illuminance",
            "Image",
            "Imu",
            "JointState",
            "Joy",
            "JoyFeedback",
            "JoyFeedbackArray",
            "LaserEcho",
            "LaserScan",
            "MagneticField",
            "MultiDOFJointState",
            "MultiEchoLaserScan",
            "NavSatFix",
            "NavSatStatus",
            "PointCloud",
            "PointCloud2",
            "PointField",
            "Range",
            "RegionOfInterest",
            "RelativeHumidity",
            "Temperature",
            "TimeReference",
        ],
    ),
    (
        "nav_msgs",
        &[
            "Goals",
            "GridCells",
            "MapMetaData",
            "OccupancyGrid",
            "Odometry",
            "Path",
            "Trajectory",
            "TrajectoryPoint",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::DdsType;

    #[test]
    fn names_of_types_are_read() {
        let on_dds = || "std_msgs::msg::dds_::String_".to_owned();
        for name in ["std_msgs/msg/String", "std_msgs/String", "std_msgs::msg::dds_::String_"] {
            assert_eq!(DdsType::parse(name), DdsType::String(on_dds()), "{name}");
        }
        for name in ["geometry_msgs/msg/PoseStamped", "nav_msgs::msg::dds_::Odometry_", "std_msgs/Header"] {
            assert_eq!(DdsType::parse(name), DdsType::Other, "{name}");
        }
        assert_eq!(DdsType::parse("demo::Text"), DdsType::Unknown("demo::Text".to_owned()));
        assert_eq!(DdsType::parse("demo/msg/Text"), DdsType::Unknown("demo::msg::dds_::Text_".to_owned()));
        for name in ["", "a b", "a/b/c/d", "/", "a/"] {
            assert_eq!(DdsType::parse(name), DdsType::Invalid, "{name}");
        }
    }
}
