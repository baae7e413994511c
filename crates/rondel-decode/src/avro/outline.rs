//! The fields of a type.

use rondel_event::ValueType;

use super::AvroType;
use super::schema::{Field, Kind, Logical};
use crate::outline::{Outliner, Part, object};

impl AvroType {
    pub(crate) fn outline(&self, outliner: &mut Outliner) -> Result<Vec<(Box<str>, Part)>, &'static str> {
        let of_record = |of: &usize| match &self.types.node(*of).kind {
            Kind::Record(fields) => Some((*of, fields)),
            _ => None,
        };
        // A union of several records has no fields of its own.
        let mut records = self.types.branches(&self.root).iter().filter_map(of_record);
        match (records.next(), records.next()) {
            (Some((of, fields)), None) => self.fields(of, fields, &mut Vec::new(), outliner),
            (_, Some(_)) => Err("it is a union of several records"),
            (None, None) => Err("it is no record"),
        }
    }

    /// Returns the fields of a record; `open` are the enclosing ones.
    fn fields(
        &self,
        of: usize,
        fields: &[Field],
        open: &mut Vec<usize>,
        outliner: &mut Outliner,
    ) -> Result<Vec<(Box<str>, Part)>, &'static str> {
        open.push(of);
        let part = |field: &Field| Ok((field.name.clone(), self.part(field.of, open, outliner)?));
        let all = fields.iter().map(part).collect();
        open.pop();
        all
    }

    fn part(&self, of: usize, open: &mut Vec<usize>, outliner: &mut Outliner) -> Result<Part, &'static str> {
        outliner.count()?;
        let types = &*self.types;
        let mut others = types.branches(&of).iter().filter(|branch| !types.is_null(**branch));
        let (Some(of), None) = (others.next(), others.next()) else { return Ok(Part::Open) };
        let node = types.node(*of);
        Ok(match (&node.kind, node.logical) {
            (_, Logical::Time(_)) => Part::Value(ValueType::Time),
            (_, Logical::TimeOfDay(_)) => Part::Value(ValueType::Duration),
            (_, Logical::Decimal(0)) | (Kind::Int | Kind::Long, _) => Part::Value(ValueType::Int),
            (_, Logical::Decimal(_)) | (Kind::Float | Kind::Double, _) => Part::Value(ValueType::Float),
            (Kind::Boolean, _) => Part::Value(ValueType::Bool),
            (Kind::String | Kind::Enum(_), _) => Part::Value(ValueType::String),
            (Kind::Array(element), _) => Part::Array(Box::new(self.part(*element, open, outliner)?), None),
            (Kind::Record(fields), _) if !open.contains(of) => {
                object(types.name(*of), self.fields(*of, fields, open, outliner)?)
            }
            (Kind::Null | Kind::Bytes | Kind::Fixed(_), _) => Part::Open,
            (Kind::Record(_) | Kind::Map(_) | Kind::Union(_), _) => Part::Open,
        })
    }
}
