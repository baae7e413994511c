//! Selection of the records of an address by key and headers, and the names of their topics.

use super::Place;
use super::place::has_parameter;

/// Selects the records of an address.
pub(super) struct Filter {
    pub(super) place: Place,
    /// Whether the key or a header has parameters.
    has_parameters: bool,
    /// Name of the last record: the topic, with key and headers if the address has parameters.
    name: String,
}

/// Result of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selected<'f> {
    /// The record has another key or header.
    Other,
    /// Its key or a header is no text for a parameter.
    Malformed,
    /// The record has this name.
    Named(&'f str),
}

impl Filter {
    pub(super) fn new(place: Place) -> Filter {
        let (name, has_parameters) = (place.topic.clone(), place.has_parameters());
        Filter { place, has_parameters, name }
    }

    /// Selects a record by its key; `header` returns the value of its header with a name.
    #[inline]
    pub(super) fn select<'m>(
        &mut self,
        key: Option<&[u8]>,
        header: impl Fn(&str) -> Option<&'m [u8]>,
    ) -> Selected<'_> {
        let Filter { place, has_parameters, name } = self;
        if let Some(own) = &place.key
            && !has_parameter(own)
            && key != Some(own.as_bytes())
        {
            return Selected::Other;
        }
        let is_other =
            |own: &str, value: &str| !has_parameter(value) && header(own) != Some(value.as_bytes());
        if place.headers.iter().any(|(own, value)| is_other(own, value)) {
            return Selected::Other;
        }
        if *has_parameters {
            name.truncate(place.topic.len());
            if !append(name, place, key, header) {
                return Selected::Malformed;
            }
        }
        Selected::Named(name)
    }

    /// The part of a malformed record that is no text, for messages.
    pub(super) fn missing_part(&self) -> &'static str {
        if self.place.headers.is_empty() { "a key" } else { "a key or headers" }
    }
}

/// Appends the key and the headers of a record to its topic, as far as the address has them. Returns false if one of them is
/// no text for a parameter.
fn append<'m>(
    name: &mut String,
    place: &Place,
    key: Option<&[u8]>,
    header: impl Fn(&str) -> Option<&'m [u8]>,
) -> bool {
    fn text(bytes: Option<&[u8]>) -> Option<&str> {
        bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()).filter(|text| !text.is_empty())
    }
    if place.key.is_some() {
        // A semicolon would begin a header.
        let is_clear = |key: &&str| place.headers.is_empty() || !key.contains(';');
        let Some(key) = text(key).filter(is_clear) else { return false };
        name.push('/');
        name.push_str(key);
    }
    for (own, value) in &place.headers {
        let is_clear = |text: &&str| !has_parameter(value) || !text.contains([';', '/']);
        let Some(text) = text(header(own)).filter(is_clear) else { return false };
        name.push(';');
        name.push_str(own);
        name.push('=');
        name.push_str(text);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key and headers of a record.
    type Record = (Option<&'static [u8]>, &'static [(&'static str, &'static [u8])]);

    /// The names of records that an address selects, and the number of malformed ones.
    fn selected(address: &str, records: &[Record]) -> (Vec<String>, u64) {
        let mut filter = Filter::new(Place::parse(address).unwrap());
        let (mut names, mut malformed) = (Vec::new(), 0);
        for (key, headers) in records {
            let header = |name: &str| headers.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
            match filter.select(*key, header) {
                Selected::Other => {}
                Selected::Malformed => malformed += 1,
                Selected::Named(name) => names.push(name.to_owned()),
            }
        }
        (names, malformed)
    }

    #[test]
    fn headers_select_records_and_are_parameters() {
        let records: [Record; 7] = [
            (Some(b"a"), &[("type", b"order"), ("tenant", b"north")]),
            (Some(b"b"), &[("tenant", b"south")]),
            (None, &[("type", b"order"), ("tenant", b"north")]),
            (Some(b"c"), &[("type", b"order"), ("tenant", b"\xff")]),
            (Some(b"d"), &[("type", b"order"), ("tenant", b"x;y=z")]),
            (Some(b"e;tenant=y"), &[("type", b"order"), ("tenant", b"z")]),
            (Some(b"f"), &[("type", b"order")]),
        ];
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        // The key is not named: a record without one is read.
        assert_eq!(selected("t;type=order", &records), (vec!["t".to_owned(); 6], 0));
        let all = selected("t/{k};tenant={tenant}", &records);
        assert_eq!(all, (names(&["t/a;tenant=north", "t/b;tenant=south"]), 5));
        let of_type = selected("t/{k};type=order;tenant={tenant}", &records);
        assert_eq!(of_type, (names(&["t/a;type=order;tenant=north"]), 5));
        assert_eq!(selected("t/b;tenant={tenant}", &records), (names(&["t/b;tenant=south"]), 0));
        assert_eq!(selected("t/{k}", &records[1..2]), (names(&["t/b"]), 0));
    }
}
