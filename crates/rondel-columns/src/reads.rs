//! The columns that a specification reads.

use arrow_schema::DataType;
use rondel_event::{Projection, Read, Segment, ValueType};

use crate::error::{ColumnsError, ErrorKind};
use crate::listed;

/// The fields of a topic that a specification reads, as the names from the message down to the first array.
pub struct Reads<'p> {
    topic: &'p str,
    fields: Vec<Vec<&'p str>>,
    /// The types of the plain values among them.
    types: Vec<(String, ValueType)>,
}

impl<'p> Reads<'p> {
    /// The fields of a projection, without the parameters of the topic's address.
    pub fn new(topic: &'p rondel_spec::Topic, projection: &'p Projection) -> Reads<'p> {
        let names = |segments: &'p [Segment]| -> Vec<&'p str> {
            let names = segments.iter().map_while(|segment| match segment {
                Segment::Key(name) => Some(&**name),
                _ => None,
            });
            names.collect()
        };
        let fields = projection.fields.iter().map(|field| names(&field.path.0));
        let is_parameter = |field: &[&str]| match field {
            [name] => topic.address.contains(&format!("{{{name}}}")),
            _ => false,
        };
        let types = projection.fields.iter().filter_map(|field| match field.read {
            Read::Value(value_type) => Some((field.path.to_string(), value_type)),
            _ => None,
        });
        Reads {
            topic: &topic.name,
            fields: fields.filter(|field| !is_parameter(field)).collect(),
            types: types.collect(),
        }
    }

    /// Whether a column has a field that is read, or a part of one.
    pub fn includes(&self, column: &str) -> bool {
        self.fields.iter().any(|field| is_same(field, column))
    }

    /// Checks that a column can contain the values of its field.
    ///
    /// # Errors
    /// [`ColumnsError`] names the column and both types.
    pub fn check_type(&self, column: &str, kind: &DataType) -> Result<(), ColumnsError> {
        let of_column = self.types.iter().filter(|(field, _)| field == column);
        for (_, value_type) in of_column {
            if let Some(wanted) = wanted(*value_type, kind) {
                let is_number = wanted == "int" && kind.is_floating();
                return Err(ColumnsError::new(
                    if is_number { ErrorKind::NoIntegers } else { ErrorKind::Type },
                    format!(
                        "the column '{column}' has the type {kind}, and the specification reads values of the type \
                         {wanted} from topic '{}'",
                        self.topic
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Checks that each field has a column.
    ///
    /// # Errors
    /// [`ColumnsError`] names the first field without one.
    pub fn check(&self, columns: &[&str]) -> Result<(), ColumnsError> {
        match self.fields.iter().find(|field| !columns.iter().any(|column| is_same(field, column))) {
            Some(field) => Err(ColumnsError::new(
                ErrorKind::Value,
                format!(
                    "the table has no column '{}', which the specification reads from topic '{}'; it has {}",
                    field.join("."),
                    self.topic,
                    listed(columns)
                ),
            )),
            None => Ok(()),
        }
    }
}

/// The name of a type if a column cannot contain its values; for times and durations, the values decide.
fn wanted(value_type: ValueType, column: &DataType) -> Option<&'static str> {
    let column = if let DataType::Dictionary(_, values) = column { values } else { column };
    let is_text = matches!(column, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let (fits, name) = match value_type {
        ValueType::Bool => (*column == DataType::Boolean, "bool"),
        ValueType::Int => (column.is_integer(), "int"),
        ValueType::Float => (column.is_numeric(), "float"),
        ValueType::String => (is_text, "string"),
        ValueType::Time | ValueType::Duration => (true, ""),
    };
    (!fits && *column != DataType::Null).then_some(name)
}

/// Whether the field contains the column or the other way round: a column `pose.x` is the member `x` of `pose`.
fn is_same(field: &[&str], column: &str) -> bool {
    field.iter().zip(column.split('.')).all(|(own, other)| *own == other)
}
