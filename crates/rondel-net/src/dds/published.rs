//! Topics to publish serialised samples on.

use rondel_decode::schema::Schema;

use super::described::{Descriptor, opaque};
use super::domain::Domain;
use super::dynamic;
use super::entity::{Entity, c_name};
use super::{DeclareError, RawType};

/// Form of the payloads of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Strings.
    Text,
    /// Samples in the first version of the encoding.
    FirstVersion,
    /// Samples in the second one.
    SecondVersion,
}

impl Form {
    /// Splits a sample after its encapsulation header of four bytes, whose last bits become the number of padding bytes
    /// at its end.
    ///
    /// # Errors
    /// The reason why it cannot be published.
    #[inline]
    pub(super) fn split(self, payload: &[u8]) -> Result<([u8; 4], &[u8]), &'static str> {
        let Some((header, body)) = payload.split_first_chunk::<4>() else {
            return Err("it is shorter than the four bytes that say how it is encoded");
        };
        let expected = if self == Form::SecondVersion { 0x06..=0x0b } else { 0x00..=0x03 };
        if header[0] != 0 || !expected.contains(&header[1]) {
            return Err("its first bytes do not name the version of the encoding that the publisher offers");
        }
        let mut header = *header;
        let missing = body.len().wrapping_neg() % 4;
        if missing > 0 {
            header[3] = header[3] & !3 | missing as u8;
        }
        Ok((header, body))
    }
}

/// A topic with the form of its payloads.
pub(super) struct PublishedTopic {
    pub(super) topic: Entity,
    pub(super) type_name: String,
    pub(super) form: Form,
    /// Whether its only instance can be registered.
    pub(super) is_registered: bool,
}

/// Creates a topic of a type. A type that the library cannot describe has only a name.
pub(super) fn create(
    domain: &Domain,
    name: &str,
    raw: &RawType,
    schema: Option<&Schema>,
) -> Result<PublishedTopic, DeclareError> {
    let own = raw.name.clone().or_else(|| schema.map(|schema| schema.name().replace('/', "::")));
    let Some(type_name) = own else {
        return Err(DeclareError::Network {
            what: "DDS publisher",
            reason: "its type needs a name".to_owned(),
        });
    };
    let c_type = c_name(&type_name)?;
    let reason = match schema.map(|schema| (schema, dynamic::register(domain, &type_name, schema))) {
        Some((schema, Ok(registered))) => {
            let descriptor = Descriptor::local(domain, &registered)?;
            let is_second = dynamic::needs_second_version(schema);
            return Ok(PublishedTopic {
                topic: descriptor.topic(domain, name, &c_type)?,
                type_name,
                form: if is_second { Form::SecondVersion } else { Form::FirstVersion },
                // The library finds the keys of extensible types by a walk through all members.
                is_registered: !descriptor.is_keyed() && !is_second,
            });
        }
        Some((_, Err(reason))) => reason,
        None => "there is no definition of it".to_owned(),
    };
    tracing::debug!(topic = %name, %type_name, "the type is published by its name only: {reason}");
    let topic = opaque(domain, name, &c_type, raw.keyed.unwrap_or(false))?;
    Ok(PublishedTopic { topic, type_name, form: Form::FirstVersion, is_registered: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_end_at_a_multiple_of_four_bytes() {
        let first = Form::FirstVersion;
        assert_eq!(first.split(&[0, 1, 0, 0, 7]), Ok(([0, 1, 0, 3], [7].as_slice())));
        assert_eq!(first.split(&[0, 1, 0, 2, 7, 7, 7, 7]), Ok(([0, 1, 0, 2], [7; 4].as_slice())));
        assert!(first.split(&[0, 9, 0, 0]).is_err() && first.split(&[0, 1, 0]).is_err());
        assert!(first.split(b"{\"a\": 1}").is_err());
        assert!(Form::SecondVersion.split(&[0, 9, 0, 0]).is_ok());
        assert!(Form::SecondVersion.split(&[0, 1, 0, 0]).is_err());
    }
}
