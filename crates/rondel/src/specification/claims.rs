//! The properties of a specification as reports name them, with their places in its files.

use rondel_report::{Claim, Place};
use rondel_spec::SourcePlace;

use super::Specification;

/// The properties as they are claimed.
pub fn claims(specification: &Specification) -> Vec<Claim> {
    let claim = |(i, property): (usize, &rondel_spec::Property)| {
        let values = |name: &str| {
            let own = property.attributes.iter().filter(|(own, value)| own == name && !value.is_empty());
            own.map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        let span = specification.spec.places.property(i);
        let found = span.map(|span| (specification.place(span.start), span));
        let place = found.map(|(SourcePlace { line, column, .. }, span)| {
            let name = specification.sources.text().get(span.start..span.end).unwrap_or_default();
            Place { line, column, end_column: column + name.chars().count() }
        });
        let file = found.map(|(place, _)| place.file).filter(|file| *file != specification.source);
        Claim {
            name: property.name.clone(),
            file: file.map(str::to_owned),
            place,
            text: found.map_or("", |(place, _)| place.text).trim().to_owned(),
            severity: values("severity").into_iter().next(),
            requirements: values("requirement"),
        }
    };
    specification.spec.properties.iter().enumerate().map(claim).collect()
}
