//! Columns of Parquet tables: leaves of the schema, and the conversion of their values to cells.

use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::schema::types::{SchemaDescriptor, Type};
use rondel_event::ValueType;

use crate::table::layout::Form;

/// A leaf of the schema.
pub(super) struct Column {
    /// Path, with dots.
    pub(super) name: String,
    pub(super) form: Form,
    pub(super) meaning: Meaning,
    /// Definition levels of a value, and of an element of a list.
    pub(super) defined: i16,
    pub(super) element: i16,
    pub(super) is_list: bool,
    /// Whether texts have a mark before them, which distinguishes empty texts from missing ones.
    pub(super) is_marked: bool,
    /// Whether it can be read: lists of structures and of lists cannot.
    pub(super) is_read: bool,
}

/// Logical type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Values of the physical type; texts.
    Plain,
    /// Unsigned integers.
    Unsigned,
    /// Floating-point numbers of 16 bits.
    Half,
    /// Decimal numbers with this number of decimal places.
    Decimal(u32),
    /// Times in units of this number of nanoseconds.
    Stamp(i64),
    /// Like `Stamp`, written as numbers of nanoseconds.
    Nanos(i64),
    /// Days since 1970.
    Day,
}

impl Column {
    /// Reads times as plain numbers; returns whether they are nanoseconds.
    pub(super) fn as_time(&mut self) -> bool {
        self.is_marked = false;
        if let Meaning::Stamp(nanos) = self.meaning {
            self.meaning = Meaning::Nanos(nanos);
        }
        matches!(self.meaning, Meaning::Nanos(_))
    }
}

/// Returns the columns of a schema.
pub(super) fn of(schema: &SchemaDescriptor) -> Vec<Column> {
    let root = schema.root_schema();
    let column = |i: usize| {
        let leaf = schema.column(i);
        let (name, is_plain) = name(root, leaf.path().parts());
        let is_list = leaf.max_rep_level() > 0;
        let meaning = meaning(leaf.self_type());
        let physical = leaf.physical_type();
        let is_text = meaning == Meaning::Plain && physical == Physical::BYTE_ARRAY;
        let kind = match (meaning, physical) {
            (Meaning::Stamp(_) | Meaning::Day, _) => Some(ValueType::String),
            (Meaning::Half | Meaning::Decimal(_), _) | (_, Physical::FLOAT | Physical::DOUBLE) => {
                Some(ValueType::Float)
            }
            (_, Physical::INT32 | Physical::INT64) => Some(ValueType::Int),
            (_, Physical::BOOLEAN) => Some(ValueType::Bool),
            _ => Some(ValueType::String),
        };
        let is_marked = is_text && !is_list;
        let form = match (is_list, is_marked) {
            (true, _) => Form::Json,
            (false, true) => Form::Marked,
            (false, false) => Form::Cell(kind),
        };
        let is_known = physical != Physical::FIXED_LEN_BYTE_ARRAY || meaning != Meaning::Plain;
        Column {
            name,
            form,
            meaning,
            defined: leaf.max_def_level(),
            element: leaf.repeated_ancestor_def_level(),
            is_list,
            is_marked,
            is_read: is_plain && leaf.max_rep_level() <= 1 && is_known,
        }
    };
    (0..schema.num_columns()).map(column).collect()
}

/// Returns the path of a leaf with dots, without the names of list levels; and whether it is a value or a list of
/// values.
fn name(root: &Type, parts: &[String]) -> (String, bool) {
    let (mut node, mut names): (&Type, Vec<&str>) = (root, Vec::new());
    for (i, part) in parts.iter().enumerate() {
        let Some(child) = node.get_fields().iter().find(|field| field.name() == part) else {
            return (parts.join("."), false);
        };
        let info = child.get_basic_info();
        let is_list = info.logical_type_ref() == Some(&LogicalType::List)
            || info.converted_type() == ConvertedType::LIST;
        let below = parts.len() - i - 1;
        names.push(part);
        if is_list {
            return (names.join("."), below <= 2);
        }
        if info.has_repetition() && info.repetition() == Repetition::REPEATED {
            return (names.join("."), below == 0);
        }
        if !child.is_group() {
            break;
        }
        node = child;
    }
    (names.join("."), true)
}

/// Returns the logical type of a leaf.
fn meaning(leaf: &Type) -> Meaning {
    let info = leaf.get_basic_info();
    let nanos = |unit: &TimeUnit| match unit {
        TimeUnit::MILLIS => 1_000_000,
        TimeUnit::MICROS => 1_000,
        TimeUnit::NANOS => 1,
    };
    let scale = |scale: i32| Meaning::Decimal(u32::try_from(scale).unwrap_or(0).min(76));
    match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::Timestamp(stamp)), _) => Meaning::Stamp(nanos(&stamp.unit)),
        (Some(LogicalType::Decimal(decimal)), _) => scale(decimal.scale),
        (Some(LogicalType::Integer(integer)), _) if !integer.is_signed => Meaning::Unsigned,
        (Some(LogicalType::Float16), _) => Meaning::Half,
        (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => Meaning::Day,
        (None, ConvertedType::TIMESTAMP_MILLIS) => Meaning::Stamp(1_000_000),
        (None, ConvertedType::TIMESTAMP_MICROS) => Meaning::Stamp(1_000),
        (None, ConvertedType::DECIMAL) => scale(leaf.get_scale()),
        (
            None,
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64,
        ) => Meaning::Unsigned,
        _ if leaf.get_physical_type() == Physical::INT96 => Meaning::Stamp(1),
        _ => Meaning::Plain,
    }
}
