//! The declared type of a subscription, compared with those that publishers announce.

use std::collections::BTreeSet;

use rondel_decode::schema::Schema;

use super::described::{AnnouncedType, Descriptor, RESOLVE};
use super::domain::Domain;
use super::publishers::DescribedType;

/// Limit of remembered reasons, each of which is logged once.
const LOGGED: usize = 64;

/// Difference between the type of a publisher and the declared one.
#[derive(Debug, PartialEq)]
pub(super) struct Difference {
    /// Description, a clause.
    pub(super) reason: String,
    /// Type of the publisher, if it is described.
    pub(super) schema: Option<Box<Schema>>,
}

/// The type by which the samples of a subscription are read.
#[derive(Debug)]
pub(super) struct Declared {
    schema: Schema,
    /// Hash of the type in ROS 2, which publishers there announce.
    hash: Option<String>,
    /// A description found to be equal.
    agreed: Option<DescribedType>,
    logged: BTreeSet<String>,
}

impl Declared {
    pub(super) fn new(schema: Schema) -> Declared {
        let hash = schema.rihs01();
        Declared { schema, hash, agreed: None, logged: BTreeSet::new() }
    }

    /// Compares the type that a publisher announces, requesting its description, which may take some time.
    ///
    /// # Errors
    /// The first difference. Unknown parts do not differ.
    pub(super) fn check(
        &mut self,
        domain: &Domain,
        announced: &AnnouncedType,
        is_stopping: impl Fn() -> bool,
    ) -> Result<(), Difference> {
        let Some(described) = &announced.described else { return self.compare(announced, None) };
        if self.agreed.as_ref().is_some_and(|agreed| agreed.is_same(described)) {
            return Ok(());
        }
        let descriptor = Descriptor::resolve(domain, described, RESOLVE, is_stopping).ok();
        self.compare(announced, descriptor.as_ref())?;
        if descriptor.is_some() {
            self.agreed = described.copy();
        }
        Ok(())
    }

    /// Compares the type that a publisher announces: by its description, or else by its hash.
    ///
    /// # Errors
    /// The first difference. Unknown parts do not differ.
    pub(super) fn compare(
        &self,
        announced: &AnnouncedType,
        descriptor: Option<&Descriptor>,
    ) -> Result<(), Difference> {
        let (theirs, ours) = (announced.name.to_string_lossy(), self.schema.name());
        let described = descriptor.and_then(|descriptor| descriptor.schema().ok());
        if let Some(described) = described {
            let difference = self.schema.difference(&described);
            return difference.map_or(Ok(()), |difference| {
                let reason = format!("its type {theirs} is not the declared {ours}: {difference}");
                Err(Difference { reason, schema: Some(Box::new(described)) })
            });
        }
        match (&self.hash, &announced.hash) {
            (Some(ours_hash), Some(hash)) if ours_hash != hash => Err(Difference {
                reason: format!(
                    "its type {theirs} is not the declared {ours}: its hash is {hash}, not {ours_hash}"
                ),
                schema: None,
            }),
            _ => Ok(()),
        }
    }

    /// Logs a reason why messages of a topic are refused, once for each reason.
    pub(super) fn log_once(&mut self, topic: &str, reason: &str) {
        if self.logged.len() < LOGGED && self.logged.insert(reason.to_owned()) {
            tracing::warn!(%topic, "messages of a publisher cannot be received: {reason}; further ones are only counted");
        } else {
            tracing::debug!(%topic, "messages of another publisher cannot be received: {reason}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_compared_without_a_description() {
        let schema = rondel_decode::schema::Library::ros().unwrap().schema("std_msgs/msg/String").unwrap();
        let own = schema.rihs01();
        let declared = Declared::new(schema);
        let announced = |hash: Option<String>| AnnouncedType {
            name: c"std_msgs::msg::dds_::String_".to_owned(),
            keyed: false,
            described: None,
            hash,
        };
        assert_eq!(declared.compare(&announced(own.clone()), None), Ok(()));
        assert_eq!(declared.compare(&announced(None), None), Ok(()));
        let other = format!("RIHS01_{}", "0".repeat(64));
        let expected = format!(
            "its type std_msgs::msg::dds_::String_ is not the declared std_msgs/msg/String: its hash is {other}, not {}",
            own.unwrap()
        );
        let expected = Difference { reason: expected, schema: None };
        assert_eq!(declared.compare(&announced(Some(other)), None), Err(expected));
    }
}
