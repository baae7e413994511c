//! Records of a topic that are read once: a range of times, or of offsets.

use std::collections::BTreeMap;
use std::ops::Range;

use rondel_event::Timestamp;

/// Selection of the records of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The first time of records. Reading a partition begins at its first record with this time or a later one.
    pub from: Option<Timestamp>,
    /// The last time of records. Reading a partition ends before its first record with a later time.
    pub until: Option<Timestamp>,
    /// Offsets by partition; if there are any, other partitions are not read.
    pub offsets: BTreeMap<i32, Range<i64>>,
}

/// A record that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectedRecord<'r> {
    /// Its topic, with key and headers if the address has parameters.
    pub name: &'r str,
    /// Its time: that of its producer or of the broker.
    pub time: Timestamp,
    /// Its value.
    pub payload: &'r [u8],
}

/// Numbers of records of a selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelectionCounts {
    /// Records with a value.
    pub records: u64,
    /// Tombstones.
    pub empty: u64,
    /// Records without the key or the headers of the address.
    pub malformed: u64,
    /// Records that have expired; in a compacted topic an upper bound.
    pub lost: u64,
}

/// Reads offsets of a partition as `PARTITION:FROM..TO`, without the last one; without it, up to the end.
///
/// # Errors
/// The form that is expected.
pub fn parse_offsets(text: &str) -> Result<(i32, Range<i64>), String> {
    let read = || {
        let (partition, offsets) = text.split_once(':')?;
        let (from, to) = offsets.split_once("..")?;
        let number = |text: &str, otherwise: i64| match text {
            "" => Some(otherwise),
            text => text.parse().ok().filter(|number| *number >= 0),
        };
        let (from, to) = (number(from, 0)?, number(to, i64::MAX)?);
        let partition = partition.parse().ok().filter(|partition| *partition >= 0)?;
        (from < to).then_some((partition, from..to))
    };
    read().ok_or_else(|| "must be PARTITION:FROM..TO, such as 0:1000..2000 or 0:1000..".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_a_partition_and_a_range() {
        assert_eq!(parse_offsets("3:10..20"), Ok((3, 10..20)));
        assert_eq!(parse_offsets("0:10.."), Ok((0, 10..i64::MAX)));
        assert_eq!(parse_offsets("0:..7"), Ok((0, 0..7)));
        for wrong in ["", "3", "3:10", "a:1..2", "-1:1..2", "0:2..2", "0:3..2", "0:-1..2", "0:1..x", "1..2"] {
            assert!(parse_offsets(wrong).is_err(), "{wrong}");
        }
    }
}
