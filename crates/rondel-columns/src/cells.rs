//! Cells of a row as JSON.

use std::io::Write as _;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, Float32Array, Float64Array, Int64Array};
use arrow_schema::DataType;

use crate::error::{ColumnsError, ErrorKind};
use crate::json::{write_float, write_int, write_text};
use crate::members;
use crate::times::timestamps;

/// The largest depth of structures and lists in a column.
const DEPTH: u32 = 32;

/// The columns of a batch as a tree of fields: a column `pose.x` is the member `x` of `pose`.
#[derive(Default)]
pub(crate) struct Fields {
    members: Vec<Member>,
}

struct Member {
    /// The name in quotes, with the colon.
    label: Vec<u8>,
    name: String,
    content: Content,
}

enum Content {
    Column(Cells),
    Fields(Fields),
}

/// A column, by the form of its cells.
enum Cells {
    Null,
    Bool(ArrayRef),
    Int(Int64Array),
    SmallInt(ArrayRef, fn(&dyn Array, usize, &mut Vec<u8>)),
    Float(Float64Array),
    Single(Float32Array),
    /// Counts of so many nanoseconds.
    Time(Int64Array, i64),
    Text(ArrayRef, fn(&dyn Array, usize) -> &str),
    /// Numbers of cells among others.
    Dictionary(ArrayRef, Vec<usize>, Box<Cells>),
    Struct(ArrayRef, Fields),
    List(ArrayRef, fn(&dyn Array, usize) -> (usize, usize), Box<Cells>),
}

impl Fields {
    /// Arranges columns.
    ///
    /// # Errors
    /// [`ColumnsError`] names a column whose type has no form in a message, or whose name is taken.
    pub(crate) fn new<'c>(
        columns: impl Iterator<Item = (&'c str, &'c ArrayRef)>,
    ) -> Result<Fields, ColumnsError> {
        let mut fields = Fields::default();
        for (name, column) in columns {
            let cells = Cells::new(column, 0).map_err(|kind| {
                let text = format!("the column '{name}' has the type {kind}, which has no form in a message");
                ColumnsError::new(ErrorKind::Type, text)
            })?;
            let taken = || {
                let text = format!("the column '{name}' and another one are the same field");
                ColumnsError::new(ErrorKind::Type, text)
            };
            let mut place = &mut fields;
            let mut parts = name.split('.').peekable();
            while let Some(part) = parts.next() {
                let is_last = parts.peek().is_none();
                let at = place.members.iter().position(|member| member.name == part);
                if is_last {
                    if at.is_some() {
                        return Err(taken());
                    }
                    place.members.push(Member::new(part, Content::Column(cells)));
                    break;
                }
                let at = at.unwrap_or_else(|| {
                    place.members.push(Member::new(part, Content::Fields(Fields::default())));
                    place.members.len() - 1
                });
                let Content::Fields(inner) = &mut place.members[at].content else { return Err(taken()) };
                place = inner;
            }
        }
        Ok(fields)
    }

    /// Appends the row at `i` as an object. A cell that is null is a field that is not there, as in recordings of tables, and
    /// so is an object without any. Returns whether a field is there.
    pub(crate) fn write(&self, i: usize, out: &mut Vec<u8>) -> bool {
        out.push(b'{');
        let begin = out.len();
        for Member { label, content, .. } in &self.members {
            let end = out.len();
            if end > begin {
                out.push(b',');
            }
            out.extend_from_slice(label);
            let is_there = match content {
                Content::Column(cells) => cells.write_present(i, out),
                Content::Fields(fields) => fields.write(i, out),
            };
            if !is_there {
                out.truncate(end);
            }
        }
        let is_any = out.len() > begin;
        out.push(b'}');
        is_any
    }
}

impl Member {
    fn new(name: &str, content: Content) -> Member {
        let mut label = Vec::new();
        write_text(name, &mut label);
        label.push(b':');
        Member { label, name: name.to_owned(), content }
    }
}

impl Cells {
    /// Prepares a column. The error is its type.
    fn new(column: &ArrayRef, depth: u32) -> Result<Cells, DataType> {
        let own = || ArrayRef::clone(column);
        let refused = || Err(column.data_type().clone());
        if depth > DEPTH {
            return refused();
        }
        Ok(match column.data_type() {
            DataType::Null => Cells::Null,
            DataType::Boolean => Cells::Bool(own()),
            DataType::Int8 => Cells::SmallInt(own(), int::<Int8Type>),
            DataType::Int16 => Cells::SmallInt(own(), int::<Int16Type>),
            DataType::Int32 => Cells::SmallInt(own(), int::<Int32Type>),
            DataType::Int64 => Cells::Int(column.as_primitive::<Int64Type>().clone()),
            DataType::UInt8 => Cells::SmallInt(own(), int::<UInt8Type>),
            DataType::UInt16 => Cells::SmallInt(own(), int::<UInt16Type>),
            DataType::UInt32 => Cells::SmallInt(own(), int::<UInt32Type>),
            DataType::UInt64 => Cells::SmallInt(own(), int::<UInt64Type>),
            DataType::Float32 => Cells::Single(column.as_primitive::<Float32Type>().clone()),
            DataType::Float64 => Cells::Float(column.as_primitive::<Float64Type>().clone()),
            DataType::Utf8 => Cells::Text(own(), |array, i| array.as_string::<i32>().value(i)),
            DataType::LargeUtf8 => Cells::Text(own(), |array, i| array.as_string::<i64>().value(i)),
            DataType::Utf8View => Cells::Text(own(), |array, i| array.as_string_view().value(i)),
            DataType::Timestamp(unit, _) => {
                let (counts, factor) = timestamps(column, *unit);
                Cells::Time(counts, factor)
            }
            // `normalized_keys` panics without values; every cell is null then.
            DataType::Dictionary(..) if column.as_any_dictionary().values().is_empty() => Cells::Null,
            DataType::Dictionary(..) => {
                let dictionary = column.as_any_dictionary();
                let values = Cells::new(dictionary.values(), depth + 1)?;
                Cells::Dictionary(own(), dictionary.normalized_keys(), Box::new(values))
            }
            DataType::Struct(_) => {
                let fields = Fields::new(members(column.as_struct()));
                Cells::Struct(own(), fields.map_err(|_| column.data_type().clone())?)
            }
            DataType::List(_) => {
                Cells::List(own(), range::<i32>, elements(column.as_list::<i32>().values(), depth)?)
            }
            DataType::LargeList(_) => {
                Cells::List(own(), range::<i64>, elements(column.as_list::<i64>().values(), depth)?)
            }
            DataType::FixedSizeList(..) => {
                let values = elements(column.as_fixed_size_list().values(), depth)?;
                Cells::List(own(), fixed_range, values)
            }
            _ => return refused(),
        })
    }

    fn is_null(&self, i: usize) -> bool {
        match self {
            Cells::Null => true,
            Cells::Bool(array)
            | Cells::SmallInt(array, _)
            | Cells::Text(array, _)
            | Cells::Struct(array, _)
            | Cells::List(array, ..) => array.is_null(i),
            Cells::Int(numbers) | Cells::Time(numbers, _) => numbers.is_null(i),
            Cells::Float(numbers) => numbers.is_null(i),
            Cells::Single(numbers) => numbers.is_null(i),
            Cells::Dictionary(array, keys, values) => array.is_null(i) || values.is_null(keys[i]),
        }
    }

    /// Appends a cell of a field, unless it is null or a structure of nulls; the caller removes what was written then. Returns
    /// whether it is there.
    #[inline]
    fn write_present(&self, i: usize, out: &mut Vec<u8>) -> bool {
        match self {
            _ if self.is_null(i) => false,
            Cells::Struct(_, fields) => fields.write(i, out),
            Cells::Dictionary(_, keys, values) => values.write_present(keys[i], out),
            _ => {
                self.write_valid(i, out);
                true
            }
        }
    }

    /// Appends an element of a list.
    #[inline]
    fn write(&self, i: usize, out: &mut Vec<u8>) {
        if self.is_null(i) {
            out.extend_from_slice(b"null");
        } else {
            self.write_valid(i, out);
        }
    }

    /// Appends a cell that is not null.
    #[inline]
    fn write_valid(&self, i: usize, out: &mut Vec<u8>) {
        match self {
            Cells::Null => {}
            Cells::Bool(array) => {
                out.extend_from_slice(if array.as_boolean().value(i) { b"true" } else { b"false" });
            }
            Cells::Int(numbers) => write_int(numbers.value(i), out),
            Cells::SmallInt(array, write) => write(array, i, out),
            Cells::Float(numbers) => write_float(numbers.value(i), out),
            Cells::Single(numbers) => write_float(numbers.value(i).into(), out),
            Cells::Time(counts, factor) => {
                write_seconds(i128::from(counts.value(i)) * i128::from(*factor), out)
            }
            Cells::Text(array, read) => write_text(read(array, i), out),
            Cells::Dictionary(_, keys, values) => values.write(keys[i], out),
            Cells::Struct(_, fields) => _ = fields.write(i, out),
            Cells::List(array, range, values) => {
                out.push(b'[');
                let (start, end) = range(array, i);
                for k in start..end {
                    if k > start {
                        out.push(b',');
                    }
                    values.write(k, out);
                }
                out.push(b']');
            }
        }
    }
}

fn elements(values: &ArrayRef, depth: u32) -> Result<Box<Cells>, DataType> {
    Cells::new(values, depth + 1).map(Box::new)
}

fn int<T: ArrowPrimitiveType>(array: &dyn Array, i: usize, out: &mut Vec<u8>)
where
    T::Native: std::fmt::Display,
{
    // Writing to a vector does not fail.
    let _ = write!(out, "{}", array.as_primitive::<T>().value(i));
}

/// Writes nanoseconds as seconds.
fn write_seconds(nanoseconds: i128, out: &mut Vec<u8>) {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let (seconds, rest) =
        (nanoseconds.unsigned_abs() / 1_000_000_000, nanoseconds.unsigned_abs() % 1_000_000_000);
    // Writing to a vector does not fail.
    let _ = write!(out, "{sign}{seconds}.{rest:09}");
}

/// The places of the elements of a list.
fn range<O: arrow_array::OffsetSizeTrait>(array: &dyn Array, i: usize) -> (usize, usize) {
    let offsets = array.as_list::<O>().value_offsets();
    (offsets[i].as_usize(), offsets[i + 1].as_usize())
}

fn fixed_range(array: &dyn Array, i: usize) -> (usize, usize) {
    let list = array.as_fixed_size_list();
    let start = list.value_offset_at(i);
    (start, start + list.value_length() as usize)
}
