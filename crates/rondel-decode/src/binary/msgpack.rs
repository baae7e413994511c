//! MessagePack.

use super::{Format, Reader, Token};
use crate::error::{Fault, MessageErrorKind, Parsed};
use crate::sink::{Scalar, instant, sum};

pub(super) struct Msgpack;

/// Type of the timestamp extension.
const TIMESTAMP: i8 = -1;

/// Sizes of integers, floating-point numbers, nil, booleans, short texts, and extensions of fixed size.
const fn sizes() -> [u8; 256] {
    let mut sizes = [0; 256];
    let mut first = 0;
    while first < 256 {
        sizes[first] = match first {
            0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => 1,
            0xa0..=0xbf => 1 + (first as u8 & 0x1f),
            0xcc | 0xd0 => 2,
            0xcd | 0xd1 => 3,
            0xca | 0xce | 0xd2 => 5,
            0xcb | 0xcf | 0xd3 => 9,
            0xd4..=0xd8 => 2 + (1 << (first - 0xd4)),
            _ => 0,
        };
        first += 1;
    }
    sizes
}

impl Format for Msgpack {
    const SIZES: [u8; 256] = sizes();
    const SHORT_TEXT: (u8, u8) = (0xa0, 32);

    #[inline(always)]
    fn token<'m>(reader: &mut Reader<'m>) -> Parsed<Token<'m>> {
        let at = reader.at;
        let first = reader.byte()?;
        Ok(Token::Scalar(match first {
            0x00..=0x7f => Scalar::Int(first.into()),
            0x80..=0x8f => return map(reader, u64::from(first & 0x0f)),
            0x90..=0x9f => return array(reader, u64::from(first & 0x0f)),
            0xa0..=0xbf => Scalar::Text(reader.take(u64::from(first & 0x1f))?),
            0xc0 => Scalar::Null,
            0xc1 => return Err(Fault::new(at, MessageErrorKind::UnknownByte(first))),
            0xc2 => Scalar::Bool(false),
            0xc3 => Scalar::Bool(true),
            0xc4..=0xc6 => {
                let length = length(reader, first - 0xc4)?;
                reader.take(length)?;
                Scalar::Bytes(length)
            }
            0xc7..=0xc9 => {
                let length = length(reader, first - 0xc7)?;
                extension(reader, length)?
            }
            0xca => Scalar::Float(f32::from_be_bytes(reader.array()?).into()),
            0xcb => Scalar::Float(f64::from_be_bytes(reader.array()?)),
            0xcc => Scalar::Int(reader.byte()?.into()),
            0xcd => Scalar::Int(u16::from_be_bytes(reader.array()?).into()),
            0xce => Scalar::Int(u32::from_be_bytes(reader.array()?).into()),
            0xcf => {
                let value = u64::from_be_bytes(reader.array()?);
                i64::try_from(value).map_or(Scalar::Large(value as f64), Scalar::Int)
            }
            0xd0 => Scalar::Int(i8::from_be_bytes(reader.array()?).into()),
            0xd1 => Scalar::Int(i16::from_be_bytes(reader.array()?).into()),
            0xd2 => Scalar::Int(i32::from_be_bytes(reader.array()?).into()),
            0xd3 => Scalar::Int(i64::from_be_bytes(reader.array()?)),
            0xd4..=0xd8 => extension(reader, 1 << (first - 0xd4))?,
            0xd9..=0xdb => {
                let length = length(reader, first - 0xd9)?;
                Scalar::Text(reader.take(length)?)
            }
            0xdc | 0xdd => {
                let count = length(reader, first - 0xdb)?;
                return array(reader, count);
            }
            0xde | 0xdf => {
                let count = length(reader, first - 0xdd)?;
                return map(reader, count);
            }
            0xe0..=0xff => Scalar::Int((first as i8).into()),
        }))
    }

    fn skip(reader: &mut Reader<'_>, count: u64, _: u32) -> Parsed<()> {
        // Every remaining value has at least one byte: claimed numbers of elements cannot cause more work than the
        // message has bytes.
        reader.room(count)?;
        let mut left = count;
        while left > 0 {
            left -= 1;
            if reader.skip_plain::<Msgpack>() {
                continue;
            }
            let at = reader.at;
            let first = reader.byte()?;
            let more = match first {
                0x80..=0x8f => u64::from(first & 0x0f) * 2,
                0x90..=0x9f => u64::from(first & 0x0f),
                0xdc | 0xdd => length(reader, first - 0xdb)?,
                0xde | 0xdf => length(reader, first - 0xdd)? * 2,
                _ => {
                    reader.at = at;
                    Msgpack::token(reader)?;
                    continue;
                }
            };
            left = left.saturating_add(more);
            if left > reader.rest() {
                return Err(Fault::new(at, MessageErrorKind::LengthBeyondEnd(left)));
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn end(_: &mut Reader<'_>) -> bool {
        false
    }

    fn text_parts(_: &mut Reader<'_>, _: &mut Vec<u8>) -> Parsed<()> {
        // All texts of MessagePack have one part.
        Ok(())
    }

    fn bytes(reader: &mut Reader<'_>, bytes: &mut Vec<u8>) -> Parsed<()> {
        let first = reader.byte()?;
        let length = length(reader, first.wrapping_sub(0xc4))?;
        bytes.extend_from_slice(reader.take(length)?);
        Ok(())
    }
}

/// Reads a length of one, two or four bytes.
#[inline(always)]
fn length(reader: &mut Reader<'_>, size: u8) -> Parsed<u64> {
    Ok(match size {
        0 => reader.byte()?.into(),
        1 => u16::from_be_bytes(reader.array()?).into(),
        _ => u32::from_be_bytes(reader.array()?).into(),
    })
}

#[inline(always)]
fn array<'m>(reader: &mut Reader<'m>, count: u64) -> Parsed<Token<'m>> {
    reader.room(count)?;
    Ok(Token::Array(Some(count)))
}

#[inline(always)]
fn map<'m>(reader: &mut Reader<'m>, count: u64) -> Parsed<Token<'m>> {
    reader.room(count * 2)?;
    Ok(Token::Map(Some(count)))
}

fn extension<'m>(reader: &mut Reader<'m>, length: u64) -> Parsed<Scalar<'m>> {
    let extension_type = i8::from_be_bytes(reader.array()?);
    let bytes = reader.take(length)?;
    if extension_type != TIMESTAMP {
        return Ok(Scalar::Other);
    }
    let (seconds, nanos) = match *bytes {
        [a, b, c, d] => (u32::from_be_bytes([a, b, c, d]).into(), 0),
        [a, b, c, d, e, f, g, h] => {
            let both = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
            ((both & ((1 << 34) - 1)) as i64, (both >> 34) as i64)
        }
        [n0, n1, n2, n3, a, b, c, d, e, f, g, h] => {
            (i64::from_be_bytes([a, b, c, d, e, f, g, h]), u32::from_be_bytes([n0, n1, n2, n3]).into())
        }
        _ => return Ok(Scalar::Other),
    };
    Ok(instant(sum(seconds, nanos)))
}
