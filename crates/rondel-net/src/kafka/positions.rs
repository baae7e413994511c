//! Marks of a snapshot: where the next run goes on in each partition.

use std::collections::BTreeMap;

use rondel_event::Timestamp;

/// Mark of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Offset of the next record.
    pub(super) next: i64,
    /// Time of arrival of the last record, or at which the partition was found.
    pub(super) last: Timestamp,
}

/// Marks of the partitions of topics, by topic and number.
pub(super) type Marks = BTreeMap<String, BTreeMap<i32, Mark>>;

/// Returns marks as bytes.
pub(super) fn write<'a>(topics: impl Iterator<Item = (&'a str, Vec<(i32, Mark)>)>) -> Vec<u8> {
    let mut out = Vec::new();
    for (topic, partitions) in topics {
        out.extend_from_slice(&(topic.len() as u32).to_le_bytes());
        out.extend_from_slice(topic.as_bytes());
        out.extend_from_slice(&(partitions.len() as u32).to_le_bytes());
        for (number, Mark { next, last }) in partitions {
            out.extend_from_slice(&number.to_le_bytes());
            out.extend_from_slice(&next.to_le_bytes());
            out.extend_from_slice(&last.as_nanos().to_le_bytes());
        }
    }
    out
}

/// Parses marks. The snapshot with them has a checksum.
pub(super) fn read(mut bytes: &[u8]) -> Option<Marks> {
    fn number<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
        let (first, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(first)
    }
    let mut all = Marks::new();
    while !bytes.is_empty() {
        let length = u32::from_le_bytes(*number(&mut bytes)?) as usize;
        let (topic, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        let partitions = all.entry(String::from_utf8(topic.to_vec()).ok()?).or_default();
        for _ in 0..u32::from_le_bytes(*number(&mut bytes)?) {
            let partition = i32::from_le_bytes(*number(&mut bytes)?);
            let next = i64::from_le_bytes(*number(&mut bytes)?);
            let last = Timestamp::from_nanos(i64::from_le_bytes(*number(&mut bytes)?));
            partitions.insert(partition, Mark { next, last });
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_written_and_read() {
        let mark = |next: i64| Mark { next, last: Timestamp::from_nanos(-next) };
        let all =
            [("a", vec![(0, mark(7)), (3, mark(i64::MAX))]), ("b.c", Vec::new()), ("d", vec![(1, mark(0))])];
        let bytes = write(all.iter().cloned());
        let expected: Marks =
            all.into_iter().map(|(topic, marks)| (topic.to_owned(), marks.into_iter().collect())).collect();
        assert_eq!(read(&bytes), Some(expected));
        assert_eq!(read(&[]), Some(Marks::new()));
        (1..bytes.len()).for_each(|end| drop(read(&bytes[..end])));
    }
}
