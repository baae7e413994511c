//! Writes CBOR, to which decoders of other encodings convert their messages, so that one walk reads all of them.

use crate::error::{Fault, MessageErrorKind, Parsed};

/// Maximum size of a converted message, in bytes.
const LARGEST: usize = 64 << 20;

const TEXT: u8 = 3;
const BYTES: u8 = 2;
const ARRAY: u8 = 4;

/// Begins an array, which [`close`] ends.
pub(crate) fn open_array(out: &mut Vec<u8>) {
    out.push(0x9f);
}

/// The beginning of an array of so many elements.
pub(crate) fn open_array_of(count: u64, out: &mut Vec<u8>) {
    head(ARRAY, count, out);
}

/// Begins a map, which [`close`] ends.
pub(crate) fn open_map(out: &mut Vec<u8>) {
    out.push(0xbf);
}

/// Ends an array or a map.
pub(crate) fn close(out: &mut Vec<u8>) {
    out.push(0xff);
}

pub(crate) fn null(out: &mut Vec<u8>) {
    out.push(0xf6);
}

pub(crate) fn boolean(value: bool, out: &mut Vec<u8>) {
    out.push(0xf4 | u8::from(value));
}

pub(crate) fn unsigned(value: u64, out: &mut Vec<u8>) {
    head(0, value, out);
}

pub(crate) fn integer(value: i64, out: &mut Vec<u8>) {
    match u64::try_from(value) {
        Ok(value) => head(0, value, out),
        // -1 - value, which is not negative.
        Err(_) => head(1, !value as u64, out),
    }
}

pub(crate) fn single(value: f32, out: &mut Vec<u8>) {
    out.push(0xfa);
    out.extend(value.to_be_bytes());
}

pub(crate) fn double(value: f64, out: &mut Vec<u8>) {
    out.push(0xfb);
    out.extend(value.to_be_bytes());
}

/// Writes a text, which need not be UTF-8: the walk checks the texts that it reads.
pub(crate) fn text(text: &[u8], out: &mut Vec<u8>) {
    head(TEXT, text.len() as u64, out);
    out.extend_from_slice(text);
}

pub(crate) fn bytes(bytes: &[u8], out: &mut Vec<u8>) {
    head(BYTES, bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

#[inline]
fn head(major: u8, number: u64, out: &mut Vec<u8>) {
    let major = major << 5;
    match number {
        0..24 => out.push(major | number as u8),
        24..0x100 => out.extend([major | 24, number as u8]),
        0x100..0x1_0000 => {
            out.push(major | 25);
            out.extend((number as u16).to_be_bytes());
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(major | 26);
            out.extend((number as u32).to_be_bytes());
        }
        _ => {
            out.push(major | 27);
            out.extend(number.to_be_bytes());
        }
    }
}

/// Writes a text of two parts.
pub(crate) fn joined(first: &[u8], second: &[u8], out: &mut Vec<u8>) {
    head(TEXT, (first.len() + second.len()) as u64, out);
    out.extend_from_slice(first);
    out.extend_from_slice(second);
}

/// Checks that the message may grow. Called before everything that may repeat a part of the payload.
pub(crate) fn room(at: usize, out: &[u8]) -> Parsed<()> {
    match out.len() > LARGEST {
        true => Err(Fault::new(at, MessageErrorKind::TooLarge(LARGEST))),
        false => Ok(()),
    }
}
