//! Built-in interfaces of ROS 2 (Jazzy) and Autoware.
//!
//! Only fields and constants. The definitions are in the form of recordings; a definition added to a library replaces
//! the built-in one.

use super::{Library, SchemaError};

const PACKAGES: [&str; 11] = [
    include_str!("ros/builtin_interfaces.msg"),
    include_str!("ros/std_msgs.msg"),
    include_str!("ros/geometry_msgs.msg"),
    include_str!("ros/sensor_msgs.msg"),
    include_str!("ros/nav_msgs.msg"),
    include_str!("ros/diagnostic_msgs.msg"),
    include_str!("ros/tf2_msgs.msg"),
    include_str!("ros/rosgraph_msgs.msg"),
    include_str!("ros/unique_identifier_msgs.msg"),
    include_str!("ros/autoware.msg"),
    include_str!("ros/rondel_msgs.msg"),
];

impl Library {
    /// Creates a library with the built-in interfaces of ROS 2 and Autoware: `builtin_interfaces`, `std_msgs`,
    /// `geometry_msgs`, `sensor_msgs`, `nav_msgs`, `diagnostic_msgs`, `tf2_msgs`, `rosgraph_msgs/Clock`,
    /// `unique_identifier_msgs`, `rondel_msgs`, and Autoware's reports, states and commands.
    ///
    /// # Errors
    /// None: a test parses all of them.
    pub fn ros() -> Result<Library, SchemaError> {
        let mut library = Library::new();
        for package in PACKAGES {
            library.add_known(package)?;
        }
        Ok(library)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_type_is_complete() {
        let library = Library::ros().unwrap();
        let names: Vec<String> = library.names().map(str::to_owned).collect();
        assert!(names.len() > 110, "{}", names.len());
        for name in names {
            let schema = library.schema(&name).unwrap();
            assert!(schema.rihs01().is_some(), "{name}");
        }
    }

    /// In ROS 2, `char` is another name of `uint8`.
    #[test]
    fn hashes_are_those_of_ros() {
        let hash = Library::ros().unwrap().schema("std_msgs/Char").unwrap().rihs01();
        let known = "RIHS01_3ad2d04dd29ba19d04b16659afa3ccaedd691914b02a64e82e252f2fa6a586a9";
        assert_eq!(hash.as_deref(), Some(known));
    }

    #[test]
    fn own_messages_are_those_of_the_package_for_ros() {
        let mut library = Library::ros().unwrap();
        let known = library.schema("rondel_msgs/msg/Verdict").unwrap().rihs01();
        let text = include_str!("../../../../deploy/ros2/rondel_msgs/msg/Verdict.msg");
        library.add_msg("rondel_msgs/msg/Verdict", text).unwrap();
        assert_eq!(library.schema("rondel_msgs/msg/Verdict").unwrap().rihs01(), known);
    }

    #[test]
    fn an_added_definition_replaces_a_built_in_one() {
        let mut library = Library::ros().unwrap();
        library.add_msg("std_msgs/msg/Bool", "uint8 data").unwrap();
        let schema = library.schema("std_msgs/msg/Bool").unwrap();
        assert_eq!(
            schema.root().members[0].member_type,
            crate::schema::Type::Primitive(crate::schema::Primitive::Uint8)
        );
        assert!(library.add_msg("std_msgs/msg/Bool", "int8 data").is_err());
    }
}
