//! CBOR, RFC 8949.

use super::{Format, Reader, Token};
use crate::error::{Fault, MessageErrorKind, Parsed};
use crate::json::MAX_DEPTH;
use crate::sink::Scalar;

pub(crate) struct Cbor;

// The major types: the upper three bits of the first byte.
const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;

/// Lower five bits of a value of indefinite length, whose parts extend to an end.
const OPEN: u8 = 31;
/// End of these parts.
const END: u8 = 0xff;

const TAG_EPOCH: u64 = 1;
const TAG_BIGNUM: u64 = 2;
const TAG_NEGATIVE_BIGNUM: u64 = 3;

/// Integers, floating-point and other plain values, and texts and byte strings below 24 bytes.
const fn sizes() -> [u8; 256] {
    let mut sizes = [0; 256];
    let mut first = 0;
    while first < 256 {
        let (major, info) = (first as u8 >> 5, first as u8 & 31);
        sizes[first] = match (major, info) {
            (UNSIGNED | NEGATIVE | 7, 0..24) => 1,
            (UNSIGNED | NEGATIVE | 7, 24..28) => 1 + (1 << (info - 24)),
            (BYTES | TEXT, 0..24) => 1 + info,
            _ => 0,
        };
        first += 1;
    }
    sizes
}

impl Format for Cbor {
    const SIZES: [u8; 256] = sizes();
    const SHORT_TEXT: (u8, u8) = (0x60, 24);

    #[inline(always)]
    fn token<'m>(reader: &mut Reader<'m>) -> Parsed<Token<'m>> {
        reader.is_epoch = false;
        loop {
            let at = reader.at;
            let first = reader.byte()?;
            let (major, info) = (first >> 5, first & 31);
            if info == OPEN {
                return open(reader, major, at);
            }
            let argument = argument(reader, info, at)?;
            return Ok(match major {
                UNSIGNED => Token::Scalar(match i64::try_from(argument) {
                    Ok(value) => Scalar::Int(value),
                    Err(_) => Scalar::Large(argument as f64),
                }),
                NEGATIVE => Token::Scalar(match i64::try_from(argument) {
                    Ok(value) => Scalar::Int(-1 - value),
                    Err(_) => Scalar::Large(-1.0 - argument as f64),
                }),
                BYTES => {
                    reader.take(argument)?;
                    Token::Scalar(Scalar::Bytes(argument))
                }
                TEXT => Token::Scalar(Scalar::Text(reader.take(argument)?)),
                ARRAY => {
                    reader.room(argument)?;
                    Token::Array(Some(argument))
                }
                MAP => {
                    reader.room(argument.saturating_mul(2))?;
                    Token::Map(Some(argument))
                }
                TAG => match argument {
                    TAG_BIGNUM | TAG_NEGATIVE_BIGNUM => {
                        Cbor::skip(reader, 1, 0)?;
                        Token::Scalar(Scalar::Other)
                    }
                    _ => {
                        reader.is_epoch = argument == TAG_EPOCH;
                        continue;
                    }
                },
                _ => Token::Scalar(match (info, argument) {
                    (20, _) => Scalar::Bool(false),
                    (21, _) => Scalar::Bool(true),
                    (22 | 23, _) => Scalar::Null,
                    (25, bits) => Scalar::Float(half(bits as u16)),
                    (26, bits) => Scalar::Float(f32::from_bits(bits as u32).into()),
                    (27, bits) => Scalar::Float(f64::from_bits(bits)),
                    _ => Scalar::Other,
                }),
            });
        }
    }

    fn skip(reader: &mut Reader<'_>, count: u64, depth: u32) -> Parsed<()> {
        // Every remaining value has at least one byte: claimed numbers of elements cannot cause more work than the
        // message has bytes.
        reader.room(count)?;
        let mut left = count;
        while left > 0 {
            left -= 1;
            if reader.skip_plain::<Cbor>() {
                continue;
            }
            let at = reader.at;
            let first = reader.byte()?;
            let (major, info) = (first >> 5, first & 31);
            if info == OPEN {
                skip_open(reader, major, at, depth)?;
                continue;
            }
            let argument = argument(reader, info, at)?;
            left = match major {
                BYTES | TEXT => {
                    reader.take(argument)?;
                    continue;
                }
                ARRAY => left.saturating_add(argument),
                MAP => left.saturating_add(argument.saturating_mul(2)),
                TAG => left + 1,
                _ => continue,
            };
            if left > reader.rest() {
                return Err(Fault::new(at, MessageErrorKind::LengthBeyondEnd(left)));
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn end(reader: &mut Reader<'_>) -> bool {
        let is_end = reader.bytes.get(reader.at) == Some(&END);
        reader.at += usize::from(is_end);
        is_end
    }

    fn text_parts(reader: &mut Reader<'_>, text: &mut Vec<u8>) -> Parsed<()> {
        parts(reader, TEXT, |part| text.extend_from_slice(part))
    }

    fn bytes(reader: &mut Reader<'_>, bytes: &mut Vec<u8>) -> Parsed<()> {
        loop {
            let at = reader.at;
            let first = reader.byte()?;
            if first & 31 == OPEN {
                return parts(reader, BYTES, |part| bytes.extend_from_slice(part));
            }
            let argument = argument(reader, first & 31, at)?;
            if first >> 5 != TAG {
                bytes.extend_from_slice(reader.take(argument)?);
                return Ok(());
            }
        }
    }
}

/// Reads the number after the first byte of a value.
#[inline(always)]
fn argument(reader: &mut Reader<'_>, info: u8, at: usize) -> Parsed<u64> {
    Ok(match info {
        0..24 => info.into(),
        24 => reader.byte()?.into(),
        25 => u16::from_be_bytes(reader.array()?).into(),
        26 => u32::from_be_bytes(reader.array()?).into(),
        27 => u64::from_be_bytes(reader.array()?),
        _ => return Err(unknown(reader, at)),
    })
}

#[cold]
fn unknown(reader: &Reader<'_>, at: usize) -> Box<Fault> {
    Fault::new(at, MessageErrorKind::UnknownByte(reader.bytes.get(at).copied().unwrap_or_default()))
}

/// Reads the beginning of a value of indefinite length.
fn open<'m>(reader: &mut Reader<'m>, major: u8, at: usize) -> Parsed<Token<'m>> {
    Ok(match major {
        BYTES => {
            let mut length = 0;
            parts(reader, BYTES, |part| length += part.len() as u64)?;
            Token::Scalar(Scalar::Bytes(length))
        }
        TEXT => Token::OpenText,
        ARRAY => Token::Array(None),
        MAP => Token::Map(None),
        UNSIGNED | NEGATIVE | TAG => return Err(unknown(reader, at)),
        _ => Token::End,
    })
}

/// Passes the parts of a text or byte string of indefinite length: all of the same kind and of definite length.
fn parts<'m>(reader: &mut Reader<'m>, kind: u8, mut part: impl FnMut(&'m [u8])) -> Parsed<()> {
    while !Cbor::end(reader) {
        let at = reader.at;
        let first = reader.byte()?;
        let (major, info) = (first >> 5, first & 31);
        if major != kind || info == OPEN {
            return Err(Fault::new(at, MessageErrorKind::Misplaced));
        }
        let length = argument(reader, info, at)?;
        part(reader.take(length)?);
    }
    Ok(())
}

fn skip_open(reader: &mut Reader<'_>, major: u8, at: usize, depth: u32) -> Parsed<()> {
    match major {
        BYTES | TEXT => parts(reader, major, |_| {}),
        ARRAY | MAP if depth >= MAX_DEPTH => Err(Fault::new(at, MessageErrorKind::TooDeep)),
        ARRAY | MAP => {
            while !Cbor::end(reader) {
                Cbor::skip(reader, if major == MAP { 2 } else { 1 }, depth + 1)?;
            }
            Ok(())
        }
        UNSIGNED | NEGATIVE | TAG => Err(unknown(reader, at)),
        _ => Err(Fault::new(at, MessageErrorKind::Misplaced)),
    }
}

/// Returns the value of a number of 16 bits: a sign, five bits of exponent and ten of fraction.
fn half(bits: u16) -> f64 {
    let bits = u32::from(bits);
    let (sign, exponent, fraction) = (bits >> 15 << 31, bits >> 10 & 0x1f, bits & 0x3ff);
    let exponent = match exponent {
        // Subnormal: a multiple of 2^-24.
        0 => {
            let size = f64::from(fraction) / f64::from(1 << 24);
            return if sign == 0 { size } else { -size };
        }
        31 => 0xff,
        _ => exponent + 127 - 15,
    };
    f32::from_bits(sign | exponent << 23 | fraction << 13).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_is_read_as_another_library_does() {
        for bits in 0..=u16::MAX {
            let message = [0xf9, (bits >> 8) as u8, bits as u8];
            let expected: f64 = ciborium::from_reader(&message[..]).unwrap();
            let found = half(bits);
            assert!(found == expected || found.is_nan() && expected.is_nan(), "{bits:#06x}");
        }
    }
}
