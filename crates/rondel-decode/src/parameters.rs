//! Parameters of addresses: fields that get their values from the name of a message's topic.

use rondel_event::{AddressPattern, Block, Countable, Path, Projection, Read, Segment, Slot, ValueType};

use crate::lines::without_network;
use crate::plain::decimal;
use crate::sink::Scalar;

/// Fields of a topic that are parameters of its address, such as `fleet/{robot}/pose`: their values come from the name
/// of a matching topic, whichever members the message has.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// Names of the parameters.
    names: Vec<String>,
    /// Addresses of the topic, in the specification and in the deployment, each with the indices of its parameters
    /// among the names.
    patterns: Vec<(AddressPattern, Vec<usize>)>,
    /// Index of the parameter, for each field.
    fields: Vec<(usize, ParameterTarget)>,
}

/// Form in which a parameter is written.
#[derive(Clone, Copy, Debug)]
enum ParameterTarget {
    /// Text, in a column of texts.
    Text(u32),
    /// Number in the text, in a column of floats.
    Number(u32),
    /// Number of characters, in a column of integers.
    Length(u32),
    /// Presence, in a column of booleans.
    Presence(u32),
}

impl Parameters {
    /// Returns the parameters of a topic with these names; `None` if none of them is an address with parameters.
    pub fn of(names: &[String], projection: &Projection) -> Option<Parameters> {
        let mut patterns: Vec<AddressPattern> = Vec::new();
        for pattern in names.iter().filter_map(|name| AddressPattern::parse(name).ok().flatten()) {
            let pattern = pattern.without_slash();
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
        let parameters: Vec<String> = patterns.first()?.parameters().map(str::to_owned).collect();
        let place = |name: &str| parameters.iter().position(|parameter| parameter == name);
        // A parameter missing in an address has no text.
        let places = |pattern: AddressPattern| {
            let places = pattern.parameters().map(place).collect::<Option<Vec<usize>>>()?;
            (places.len() == parameters.len()).then_some((pattern, places))
        };
        let patterns = patterns.into_iter().filter_map(places).collect();
        let field = |field: &rondel_event::Field| {
            let [Segment::Key(key)] = &field.path.0[..] else { return None };
            let at = place(key)?;
            let what = match (&field.read, field.slot) {
                (Read::Value(ValueType::String), Slot::String(column)) => ParameterTarget::Text(column),
                (Read::Number(ValueType::Float), Slot::Float(column)) => ParameterTarget::Number(column),
                (Read::Length | Read::LengthOf(Countable::Text), Slot::Int(column)) => {
                    ParameterTarget::Length(column)
                }
                (Read::Presence, Slot::Bool(column)) => ParameterTarget::Presence(column),
                // A field of another type stays without a value.
                _ => return None,
            };
            Some((at, what))
        };
        let fields = projection.fields.iter().filter_map(field).collect();
        Some(Parameters { patterns, fields, names: parameters })
    }

    /// Whether a field at this path is a parameter.
    pub fn has(&self, path: &Path) -> bool {
        matches!(&path.0[..], [Segment::Key(key)] if self.names.iter().any(|name| **name == **key))
    }

    /// Returns the texts of the parameters in a name; `None` if it does not match. The name may begin with a slash that
    /// the address does not have, or with its network, as in recordings.
    pub fn captures<'n>(&self, name: &'n str) -> Option<Vec<&'n str>> {
        let whole = std::iter::once(name).chain(without_network(name));
        let mut names = whole.map(|name| name.strip_prefix('/').unwrap_or(name));
        names.find_map(|name| {
            self.patterns.iter().find_map(|(pattern, places)| {
                let texts = pattern.captures(name)?;
                let mut ordered = vec![""; texts.len()];
                places.iter().zip(texts).for_each(|(place, text)| ordered[*place] = text);
                Some(ordered)
            })
        })
    }

    /// Writes the fields of a row from the texts of the parameters.
    #[inline]
    pub fn write<T: AsRef<str>>(&self, texts: &[T], block: &mut Block, row: usize) {
        for (at, what) in &self.fields {
            let Some(text) = texts.get(*at).map(AsRef::as_ref) else { continue };
            match *what {
                ParameterTarget::Text(column) => block.set_string(column, row, text),
                ParameterTarget::Number(column) => match decimal(text.as_bytes()) {
                    Scalar::Int(value) => block.set_float(column, row, value as f64),
                    Scalar::Float(value) | Scalar::Large(value) => block.set_float(column, row, value),
                    _ => block.set_invalid(Slot::Float(column), row),
                },
                ParameterTarget::Length(column) => block.set_int(column, row, text.chars().count() as i64),
                ParameterTarget::Presence(column) => block.set_bool(column, row, true),
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_a_topic_gives_the_same_parameters() {
        let names = ["pose", "fleet/{robot}/{part}", "/site/{part}/of/{robot}", "other/{robot}"];
        let names = names.map(str::to_owned);
        let parameters = Parameters::of(&names, &Projection::default()).unwrap();
        for (name, expected) in [
            ("fleet/r1/arm", Some(vec!["r1", "arm"])),
            ("/fleet/r1/arm", Some(vec!["r1", "arm"])),
            ("zenoh:fleet/r1/arm", Some(vec!["r1", "arm"])),
            ("site/arm/of/r2", Some(vec!["r2", "arm"])),
            ("other/r1", None),
            ("pose", None),
        ] {
            assert_eq!(parameters.captures(name), expected, "{name}");
        }
        assert!(Parameters::of(&names[..1], &Projection::default()).is_none());
    }
}
