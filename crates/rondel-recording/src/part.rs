//! Parts of a recording that was split into several files.

use std::collections::BTreeMap;

/// One of the files of a recording, as its recorder notes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SplitPart {
    /// Identifies the recording by its beginning, in nanoseconds since 1970.
    pub recording: i64,
    /// Number of the part, from 0.
    pub number: u32,
    /// Whether no part follows.
    pub is_last: bool,
}

impl SplitPart {
    /// Returns the note of a recorder: `RECORDING NUMBER last`, or `more` if another part follows.
    pub fn text(&self) -> String {
        let SplitPart { recording, number, is_last } = self;
        format!("{recording} {number} {}", if *is_last { "last" } else { "more" })
    }

    /// Parses the result of [`text`](SplitPart::text).
    pub(crate) fn read(text: &str) -> Option<SplitPart> {
        let mut words = text.split(' ');
        let (recording, number) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(SplitPart { recording, number, is_last: words.next()? == "last" })
    }

    /// Returns a sentence for each recording with missing parts.
    pub fn missing(parts: &[SplitPart]) -> Vec<String> {
        let mut all: BTreeMap<i64, Vec<SplitPart>> = BTreeMap::new();
        parts.iter().for_each(|part| all.entry(part.recording).or_default().push(*part));
        let mut sentences = Vec::new();
        for mut parts in all.into_values() {
            parts.sort_unstable();
            let (Some(first), Some(last)) = (parts.first(), parts.last()) else { continue };
            if first.number > 0 {
                sentences
                    .push(format!("a recording begins before part {}, the first of it here", first.number));
            }
            for pair in parts.windows(2).filter(|pair| pair[1].number - pair[0].number > 1) {
                sentences.push(format!(
                    "between parts {} and {} of a recording others are missing",
                    pair[0].number, pair[1].number
                ));
            }
            if !last.is_last {
                sentences
                    .push(format!("a recording goes on after part {}, the last of it here", last.number));
            }
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(recording: i64, number: u32, is_last: bool) -> SplitPart {
        SplitPart { recording, number, is_last }
    }

    #[test]
    fn missing_parts_are_reported() {
        let whole = [part(7, 1, true), part(9, 0, true), part(7, 0, false)];
        assert_eq!(SplitPart::missing(&whole), [""; 0]);
        let few = [part(7, 1, false), part(7, 4, false)];
        assert_eq!(
            SplitPart::missing(&few),
            [
                "a recording begins before part 1, the first of it here",
                "between parts 1 and 4 of a recording others are missing",
                "a recording goes on after part 4, the last of it here"
            ]
        );
    }

    #[test]
    fn extreme_numbers_are_handled() {
        let last = part(7, u32::MAX, true);
        assert_eq!(SplitPart::missing(&[last, last, part(7, 0, false)]).len(), 1);
    }

    #[test]
    fn parts_are_restored_from_text() {
        for known in [part(-3, 0, true), part(i64::MAX, u32::MAX, false)] {
            assert_eq!(SplitPart::read(&known.text()), Some(known));
        }
        for wrong in ["", "1", "1 2", "a 2 last", "1 -2 more"] {
            assert_eq!(SplitPart::read(wrong), None, "{wrong}");
        }
    }
}
