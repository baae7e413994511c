//! Definitions of message types for specifications: a library of schemas as the checker sees it.

use std::collections::HashMap;

use rondel_decode::schema::{self, Library, SchemaError};
use rondel_decode::{MessageType, Outline, Part};
use rondel_event::ValueType;
use rondel_spec::{Definition, Definitions, NoDefinition, Schema, SchemaType, TypeConstant};

/// The message types that specifications can name.
#[derive(Clone, Debug, Default)]
pub struct Types {
    /// Their definitions.
    pub library: Library,
}

impl Types {
    /// The common interfaces of ROS 2 and Autoware.
    pub fn ros() -> Types {
        // A test of the library parses all of them.
        Types { library: Library::ros().unwrap_or_default() }
    }

    /// Returns the schema of a type, named as in a specification: `package/msg/Type`, `package.Type` or a name in DDS.
    ///
    /// # Errors
    /// [`SchemaError`] if it is not defined or cannot be used.
    pub fn schema(&self, name: &str) -> Result<schema::Schema, SchemaError> {
        self.library.schema(&name.replace('.', "/"))
    }
}

impl Definitions for Types {
    fn definition(&self, name: &str) -> Result<Definition, NoDefinition> {
        let invalid = |error: SchemaError| NoDefinition::Invalid(error.to_string());
        match self.schema(name) {
            Ok(schema) => {
                let found = definition(&MessageType::Cdr(schema));
                found.map_err(|reason| NoDefinition::Invalid(reason.to_owned()))
            }
            Err(error) => {
                let parts: Vec<&str> = name.split(['/', '.', ':']).filter(|part| !part.is_empty()).collect();
                let (Some(package), Some(own)) = (parts.first(), parts.last()) else {
                    return Err(invalid(error));
                };
                let prefix = format!("{package}::");
                let known = self.library.names().filter(|known| known.starts_with(&prefix));
                let mut types: Vec<String> = known.map(|known| known.replace("::", "/")).collect();
                if types.iter().any(|known| known.rsplit('/').next() == Some(own)) {
                    // The type is defined, so its definition is unusable.
                    return Err(invalid(error));
                }
                if types.is_empty() {
                    let all = self.library.names().map(|known| known.replace("::", "/"));
                    let alike = all.filter(|known| known.rsplit('/').next() == Some(own));
                    return Err(NoDefinition::UnknownPackage { alike: alike.collect() });
                }
                types.sort();
                Err(NoDefinition::NotInPackage { types })
            }
        }
    }
}

/// A message type as the checker sees it.
///
/// # Errors
/// A description of why its fields cannot be listed.
pub fn definition(message_type: &MessageType) -> Result<Definition, &'static str> {
    let Outline { fields, constants } = message_type.outline()?;
    let constants = constants.into_iter().map(|constant| TypeConstant {
        owner: constant.owner.into(),
        name: constant.name.into(),
        value: constant.value,
    });
    let short_name = message_type.short_name().to_owned();
    let mut enumerations = HashMap::new();
    let schema = schema(fields, "", &mut enumerations);
    Ok(Definition { schema, short_name, constants: constants.collect(), enumerations })
}

/// The fields at a place, whose elements are named `place[]`; `enumerations` takes the places of enumerations with
/// their names.
fn schema(fields: Vec<(Box<str>, Part)>, place: &str, enumerations: &mut HashMap<String, String>) -> Schema {
    let dot = if place.is_empty() { "" } else { "." };
    let fields = fields.into_iter().map(|(name, part)| {
        let found = schema_type(part, &format!("{place}{dot}{name}"), enumerations);
        (name.into(), found)
    });
    Schema { fields: fields.collect() }
}

fn schema_type(part: Part, place: &str, enumerations: &mut HashMap<String, String>) -> SchemaType {
    match part {
        Part::Value(value_type) => SchemaType::Value(value_type),
        Part::Enumeration(name) => {
            enumerations.insert(place.to_owned(), name.into());
            SchemaType::Value(ValueType::Int)
        }
        Part::Object(fields) => SchemaType::Object(schema(fields, place, enumerations)),
        Part::Array(element, size) => {
            SchemaType::Array(Box::new(schema_type(*element, &format!("{place}[]"), enumerations)), size)
        }
        Part::Stamp(value_type, fields) => SchemaType::Stamp(value_type, schema(fields, place, enumerations)),
        Part::Open => SchemaType::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> rondel_spec::Outcome {
        rondel_spec::parse_typed(text, &rondel_spec::ParseOptions::default(), &Types::ros())
    }

    #[test]
    fn fields_and_constants_come_from_the_definition() {
        let outcome = parse(
            "topic gear : autoware_vehicle_msgs/msg/GearReport
             topic odom : nav_msgs.Odometry
             topic scan : sensor_msgs/LaserScan
             property standstill = gear.report == GearReport.REVERSE -> abs(odom.twist.twist.linear.x) < 0.1
             property fresh = odom.header.stamp >= gear.stamp and odom.header.stamp.sec >= 0
             property near = scan.ranges[0] > 0.5 and odom.pose.covariance[35] >= 0",
        );
        assert!(outcome.diagnostics.is_empty(), "{}", outcome.render("test", "", false));
    }

    #[test]
    fn an_element_beyond_a_fixed_array_is_an_error() {
        let mut types = Types::ros();
        let idl = "module m { struct Grid { long cells[2][3]; sequence<long, 4> list; }; };";
        types.library.add_idl(idl, &|_| None).unwrap();
        let said = |formula: &str| {
            let text = format!("topic odom : nav_msgs/msg/Odometry topic g : m/Grid property p = {formula}");
            let outcome = rondel_spec::parse_typed(&text, &rondel_spec::ParseOptions::default(), &types);
            outcome.diagnostics.into_iter().next().map(|first| (first.message, first.help))
        };
        let elements = |array: &str, size: u32, index: u32| {
            let message = format!("'{array}' has {size} elements, and none at [{index}]");
            Some((message, Some(format!("the last one is [{}]", size - 1))))
        };
        assert_eq!(said("odom.pose.covariance[36] > 0"), elements("odom.pose.covariance", 36, 36));
        assert_eq!(said("odom.pose.covariance[35] > 0 and g.cells[1][2] > 0 and g.list[100] > 0"), None);
        assert_eq!(said("g.cells[2][0] > 0"), elements("g.cells", 2, 2));
        assert_eq!(said("g.cells[1][3] > 0"), elements("g.cells[]", 3, 3));
    }

    #[test]
    fn a_misspelt_package_has_a_suggestion() {
        let first = parse("topic pose : geometri_msgs/msg/Pose property p = pose.position.x > 1")
            .diagnostics
            .remove(0);
        assert_eq!(
            first.message,
            "no definition of 'geometri_msgs/msg/Pose' is known, so its fields are not checked; \
             did you mean 'geometry_msgs/msg/Pose'?"
        );
    }

    #[test]
    fn the_name_of_a_constant_is_no_text() {
        let text =
            "topic gear : autoware_vehicle_msgs/msg/GearReport property p = gear.report == \"REVERSE\"";
        let first = parse(text).diagnostics.remove(0);
        let meant = "the message type has a constant of this name: write `GearReport.REVERSE` without quotes";
        assert_eq!(first.help.as_deref(), Some(meant));
    }

    #[test]
    fn a_misspelt_type_or_field_is_an_error() {
        let text = "topic odom : nav_msgs/msg/Odometri property p = odom.x > 1";
        let first = parse(text).diagnostics.remove(0);
        assert_eq!(
            first.message,
            "unknown message type 'nav_msgs/msg/Odometri'; did you mean 'nav_msgs/msg/Odometry'?"
        );
        let text = "topic odom : nav_msgs/msg/Odometry property p = odom.twist.twist.liner.x > 1";
        let first = parse(text).diagnostics.remove(0);
        assert_eq!(first.message, "unknown field 'liner' in 'odom.twist.twist'; did you mean 'linear'?");
    }

    #[test]
    fn an_enumeration_compared_with_a_name_names_the_constant() {
        let mut types = Types::default();
        let idl = "module m { enum Mode { MANUAL, AUTO }; typedef Mode Alias;
            struct Part { Mode mode; sequence<Mode> modes; Alias grid[2][3]; };
            struct State { Mode mode; Part part; sequence<Part> parts; long level; }; };";
        types.library.add_idl(idl, &|_| None).unwrap();
        let advice = |formula: &str| {
            let text = format!("topic s : m/State property p = {formula}");
            let options = rondel_spec::ParseOptions::default();
            let outcome = rondel_spec::parse_typed(&text, &options, &types);
            outcome.diagnostics.into_iter().next().map(|first| (first.message, first.help))
        };
        let compared = "cannot compare a number with a string".to_owned();
        let meant = "the field is an enumeration: write `Mode.AUTO` without quotes".to_owned();
        for field in ["s.mode", "s.part.mode", "s.part.modes[2]", "s.parts[0].grid[1][2]"] {
            let found = advice(&format!("{field} == \"AUTO\""));
            assert_eq!(found, Some((compared.clone(), Some(meant.clone()))), "{field}");
            assert_eq!(advice(&format!("{field} == Mode.AUTO")), None, "{field}");
        }
        assert_eq!(
            advice("\"Auto\" != s.mode"),
            Some(("cannot compare a string with a number".to_owned(), Some(meant)))
        );
        let listed =
            "the field is an enumeration: write one of its constants as `Mode.NAME`: 'MANUAL', 'AUTO'";
        assert_eq!(advice("s.mode == \"stopped\""), Some((compared.clone(), Some(listed.to_owned()))));
        assert_eq!(advice("s.level == \"AUTO\""), Some((compared, None)));
    }

    #[test]
    fn a_type_that_contains_too_much_is_refused() {
        let mut types = Types::default();
        let mut add = |name: &str, text: &str| types.library.add_msg(name, text).unwrap();
        add("big/msg/A0", "uint8 x");
        for i in 1..20 {
            add(&format!("big/msg/A{i}"), &format!("A{} left\nA{} right", i - 1, i - 1));
        }
        let error = types.definition("big/msg/A19").unwrap_err();
        assert_eq!(error, NoDefinition::Invalid("it has more than 65,536 fields".to_owned()));
        assert_eq!(types.definition("other/msg/A"), Err(NoDefinition::UnknownPackage { alike: Vec::new() }));
    }
}
