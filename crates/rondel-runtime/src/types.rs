//! Definitions of message types for specifications: a library of schemas as the checker sees it.

use std::collections::HashMap;

use rondel_decode::schema::{self, DISCRIMINATOR, Library, Schema, SchemaError, Struct, Type, TypeId};
use rondel_event::{Value, ValueType};
use rondel_spec::{Definition, Definitions, NoDefinition, SchemaType, TypeConstant};

/// A message may have this many fields, those of nested types included.
const MAX_FIELDS: usize = 1 << 16;

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
    pub fn schema(&self, name: &str) -> Result<Schema, SchemaError> {
        self.library.schema(&name.replace('.', "/"))
    }
}

impl Definitions for Types {
    fn definition(&self, name: &str) -> Result<Definition, NoDefinition> {
        let invalid = |error: SchemaError| NoDefinition::Invalid(error.to_string());
        match self.schema(name) {
            Ok(schema) => definition(&schema).map_err(|reason| NoDefinition::Invalid(reason.to_owned())),
            Err(error) => {
                let parts: Vec<&str> = name.split(['/', '.', ':']).filter(|part| !part.is_empty()).collect();
                let (Some(package), Some(own)) = (parts.first(), parts.last()) else {
                    return Err(invalid(error));
                };
                let prefix = format!("{package}::");
                let known = self.library.names().filter(|known| known.starts_with(&prefix));
                let mut types: Vec<String> = known.map(|known| known.replace("::", "/")).collect();
                if types.iter().any(|known| known.rsplit('/').next() == Some(own)) {
                    // It is defined, so it is the definition that cannot be used.
                    return Err(invalid(error));
                }
                if types.is_empty() {
                    return Err(NoDefinition::UnknownPackage);
                }
                types.sort();
                Err(NoDefinition::NotInPackage { types })
            }
        }
    }
}

/// A schema as the checker sees it.
///
/// # Errors
/// Why it is too large.
fn definition(schema: &Schema) -> Result<Definition, &'static str> {
    let mut reading = Reading {
        schema,
        left: MAX_FIELDS,
        owners: Vec::new(),
        place: String::new(),
        enumerations: HashMap::new(),
    };
    let fields = reading.structure(schema.root())?;
    let short_name = short(schema.name()).to_owned();
    let mut constants = Vec::new();
    let mut add = |owner: &str, name: &str, value: Value| {
        constants.push(TypeConstant { owner: owner.to_owned(), name: name.to_owned(), value });
    };
    for constant in schema.constants() {
        add(&short_name, &constant.name, constant.value.clone());
    }
    for id in reading.owners {
        let owner = short(schema.type_name(id));
        match schema.definition(id) {
            schema::Definition::Struct(of) => {
                of.constants.iter().for_each(|c| add(owner, &c.name, c.value.clone()));
            }
            schema::Definition::Enum(of) => {
                of.constants.iter().for_each(|(name, value)| add(owner, name, Value::Int((*value).into())));
            }
            schema::Definition::Union(_) | schema::Definition::Bitmask(_) | schema::Definition::Alias(_) => {}
        }
    }
    Ok(Definition { schema: fields, short_name, constants, enumerations: reading.enumerations })
}

/// The name without its package or modules.
fn short(name: &str) -> &str {
    name.rsplit(['/', ':']).next().unwrap_or(name)
}

struct Reading<'s> {
    schema: &'s Schema,
    left: usize,
    /// The types that occur and may have constants.
    owners: Vec<TypeId>,
    /// The path of the current field; elements of arrays are named `field[]`.
    place: String,
    /// The fields that are enumerations, with the names of these.
    enumerations: HashMap<String, String>,
}

impl Reading<'_> {
    fn structure(&mut self, structure: &Struct) -> Result<rondel_spec::Schema, &'static str> {
        let mut fields = Vec::with_capacity(structure.members.len());
        for member in &structure.members {
            fields.push((member.name.to_string(), self.member(&member.name, &member.member_type)?));
        }
        Ok(rondel_spec::Schema { fields })
    }

    /// Returns the type of a field below the current place.
    fn member(&mut self, name: &str, value_type: &Type) -> Result<SchemaType, &'static str> {
        let dot = if self.place.is_empty() { "" } else { "." };
        self.below(&format!("{dot}{name}"), value_type)
    }

    fn below(&mut self, step: &str, value_type: &Type) -> Result<SchemaType, &'static str> {
        let length = self.place.len();
        self.place.push_str(step);
        let found = self.value(value_type)?;
        self.place.truncate(length);
        Ok(found)
    }

    fn value(&mut self, value_type: &Type) -> Result<SchemaType, &'static str> {
        use rondel_decode::schema::Primitive;
        self.left = self.left.checked_sub(1).ok_or("it has more than 65,536 fields")?;
        Ok(match value_type {
            Type::Primitive(Primitive::Bool) => SchemaType::Value(ValueType::Bool),
            Type::Primitive(Primitive::Float32 | Primitive::Float64) => SchemaType::Value(ValueType::Float),
            Type::Primitive(_) => SchemaType::Value(ValueType::Int),
            Type::String { .. } => SchemaType::Value(ValueType::String),
            Type::Array { element, dimensions } => {
                let element = self.below(&"[]".repeat(dimensions.len()), element)?;
                dimensions.iter().fold(element, |element, _| SchemaType::Array(Box::new(element)))
            }
            Type::Sequence { element, .. } => SchemaType::Array(Box::new(self.below("[]", element)?)),
            Type::Named(id) => self.named(*id)?,
        })
    }

    fn named(&mut self, id: TypeId) -> Result<SchemaType, &'static str> {
        if !self.owners.contains(&id) {
            self.owners.push(id);
        }
        Ok(match self.schema.definition(id) {
            schema::Definition::Struct(structure) => {
                let fields = self.structure(structure)?;
                let is_duration = short(self.schema.type_name(id)).starts_with("Duration");
                match structure.stamp() {
                    Some(_) if is_duration => SchemaType::Stamp(ValueType::Duration, fields),
                    Some(_) => SchemaType::Stamp(ValueType::Time, fields),
                    None => SchemaType::Object(fields),
                }
            }
            schema::Definition::Union(union) => {
                let mut fields = vec![(DISCRIMINATOR.to_owned(), SchemaType::Value(ValueType::Int))];
                for case in &union.cases {
                    fields.push((case.name.to_string(), self.member(&case.name, &case.member_type)?));
                }
                SchemaType::Object(rondel_spec::Schema { fields })
            }
            schema::Definition::Enum(_) => {
                let name = short(self.schema.type_name(id)).to_owned();
                self.enumerations.insert(self.place.clone(), name);
                SchemaType::Value(ValueType::Int)
            }
            schema::Definition::Bitmask(_) => SchemaType::Value(ValueType::Int),
            schema::Definition::Alias(other) => self.value(other)?,
        })
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
        assert_eq!(types.definition("other/msg/A"), Err(NoDefinition::UnknownPackage));
    }
}
