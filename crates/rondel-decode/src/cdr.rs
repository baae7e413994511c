//! The encodings of DDS-XTypes: CDR, which ROS 2 uses, and its second version.
//!
//! [`CdrDecoder`] reads messages of any type, [`write_json`] converts them to JSON. The functions of this module read
//! and write the one type that needs no schema, a structure with one string.

mod compile;
mod decoder;
mod error;
mod json;
mod optional;
mod plan;
mod walk;
mod wide;
mod write;

pub use decoder::{CdrDecoder, Check};
pub use error::{CdrError, CdrErrorKind, PlanError, PlanErrorKind};
pub use json::{write_json, write_key, write_packed_json};
pub use wide::WideForm;

/// Encodings by the first two bytes of a sample, which are always big-endian.
mod encoding {
    pub(super) const CDR_BE: u16 = 0x0000;
    pub(super) const CDR_LE: u16 = 0x0001;
    pub(super) const CDR2_BE: u16 = 0x0006;
    pub(super) const CDR2_LE: u16 = 0x0007;
    /// With the length of the structure before it, as for extensible types.
    pub(super) const D_CDR2_BE: u16 = 0x0008;
    pub(super) const D_CDR2_LE: u16 = 0x0009;
}

/// Whether bytes begin like a serialised sample, and unlike a text.
pub fn is_encapsulated(payload: &[u8]) -> bool {
    matches!(payload, [0, 0..=0x0b, 0, _, ..])
}

/// Returns the string in a serialised sample, without its terminating zero.
///
/// # Errors
/// The reason why the sample is not such a structure.
pub fn string(sample: &[u8]) -> Result<&[u8], &'static str> {
    let Some((header, body)) = sample.split_first_chunk::<4>() else {
        return Err("it is shorter than the four bytes that say how it is encoded");
    };
    let (little_endian, delimited) = match u16::from_be_bytes([header[0], header[1]]) {
        encoding::CDR_BE | encoding::CDR2_BE => (false, false),
        encoding::CDR_LE | encoding::CDR2_LE => (true, false),
        encoding::D_CDR2_BE => (false, true),
        encoding::D_CDR2_LE => (true, true),
        // Parameter lists, the encoding of mutable types.
        0x0002 | 0x0003 | 0x000a | 0x000b => return Err("it is a list of parameters, not a plain structure"),
        _ if header[0] == b'{' => return Err("it begins as JSON does, without anything around it"),
        _ => return Err("its first bytes name no encoding of DDS"),
    };
    string_of(body, little_endian, delimited)
        .ok_or("no terminated string of the length that it names is in it")
}

fn string_of(body: &[u8], little_endian: bool, delimited: bool) -> Option<&[u8]> {
    let number = |bytes: [u8; 4]| {
        if little_endian { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    };
    let body = if delimited {
        let (length, rest) = body.split_first_chunk::<4>()?;
        rest.get(..usize::try_from(number(*length)).ok()?)?
    } else {
        body
    };
    let (length, rest) = body.split_first_chunk::<4>()?;
    let bytes = rest.get(..usize::try_from(number(*length)).ok()?)?;
    match bytes {
        [text @ .., 0] => Some(text),
        // Not in the standard, but some writers write an empty string so.
        [] => Some(bytes),
        _ => None,
    }
}

/// Returns the encoding and the length that precede this string.
///
/// # Errors
/// The reason why it cannot be a string of DDS.
pub fn header(text: &[u8]) -> Result<[u8; 8], &'static str> {
    if memchr::memchr(0, text).is_some() {
        return Err("a string of DDS cannot contain a zero byte");
    }
    let with_zero = u32::try_from(text.len()).ok().and_then(|length| length.checked_add(1));
    let l = with_zero.ok_or("a string of DDS is at most 4 GiB long")?.to_le_bytes();
    let [_, padding] = u16::try_from(padding(text.len())).unwrap_or_default().to_be_bytes();
    // The last two bits of the options are the number of padding bytes.
    Ok([0, encoding::CDR_LE as u8, 0, padding, l[0], l[1], l[2], l[3]])
}

/// Returns the number of zero bytes after the string's own terminating zero, up to a multiple of four.
pub fn padding(length: usize) -> usize {
    length.wrapping_add(1).wrapping_neg() % 4
}

/// Replaces the contents of `sample` with a string as a sample.
///
/// # Errors
/// The reason why it cannot be a string of DDS.
pub fn write_string(text: &[u8], sample: &mut Vec<u8>) -> Result<(), &'static str> {
    let header = header(text)?;
    sample.clear();
    sample.extend_from_slice(&header);
    sample.extend_from_slice(text);
    sample.resize(sample.len() + 1 + padding(text.len()), 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn write(text: &[u8]) -> Vec<u8> {
        let mut sample = Vec::new();
        write_string(text, &mut sample).unwrap();
        sample
    }

    #[test]
    fn reads_every_encoding() {
        let le: &[u8] = &[3, 0, 0, 0, b'h', b'i', 0];
        let be: &[u8] = &[0, 0, 0, 3, b'h', b'i', 0];
        let sample = |id: [u8; 2], parts: &[&[u8]]| {
            let mut s = vec![id[0], id[1], 0, 0];
            parts.iter().for_each(|p| s.extend_from_slice(p));
            s
        };
        for (id, parts) in [
            ([0, 0], &[be] as &[&[u8]]),
            ([0, 1], &[le]),
            ([0, 6], &[be]),
            ([0, 7], &[le]),
            ([0, 8], &[&[0, 0, 0, 7], be]),
            ([0, 9], &[&[7, 0, 0, 0], le]),
            // A later version of an extensible type has further members, which are ignored.
            ([0, 9], &[&[12, 0, 0, 0], le, &[0, 9, 9, 9, 9]]),
        ] {
            assert_eq!(string(&sample(id, parts)), Ok(b"hi".as_slice()), "{id:?}");
        }
        assert_eq!(string(&sample([0, 1], &[&[0, 0, 0, 0]])), Ok(b"".as_slice()));
        assert_eq!(string(&sample([0, 1], &[&[1, 0, 0, 0, 0]])), Ok(b"".as_slice()));
    }

    #[test]
    fn other_samples_are_refused_with_a_reason() {
        for (bad, why) in [
            (&[] as &[u8], "four bytes"),
            (&[0, 1], "four bytes"),
            (&[0, 1, 0, 0], "length"),
            (&[0, 1, 0, 0, 1, 0], "length"),
            (&[0, 1, 0, 0, 3, 0, 0, 0, b'h', b'i'], "length"),
            (&[0, 1, 0, 0, 2, 0, 0, 0, b'h', b'i'], "length"),
            (&[0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff, 0], "length"),
            (&[0, 9, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0], "length"),
            (&[0, 0x0b, 0, 0, 1, 0, 0, 0, 0], "parameters"),
            (&[0xff, 0xff, 0, 0, 1, 0, 0, 0, 0], "no encoding"),
            (b"{\"v\":1}", "JSON"),
        ] {
            assert!(string(bad).is_err_and(|text| text.contains(why)), "{bad:?}: {:?}", string(bad));
        }
    }

    proptest! {
        #[test]
        fn written_strings_are_read_back(text in proptest::collection::vec(1_u8.., 0..40)) {
            let sample = write(&text);
            prop_assert_eq!(sample.len() % 4, 0);
            prop_assert!(is_encapsulated(&sample));
            prop_assert_eq!(string(&sample), Ok(text.as_slice()));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(mut sample in proptest::collection::vec(any::<u8>(), 0..40), id in 0..12_u8) {
            _ = string(&sample);
            if sample.len() > 1 {
                (sample[0], sample[1]) = (0, id);
                _ = string(&sample);
            }
        }
    }
}
