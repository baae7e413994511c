//! Walk of a plan over the parts of a message that are read.
//!
//! Offsets only lead forward, and the recursion is as deep as the paths of the plan.

use super::buffer::{Buffer, Table};
use super::plan::{
    Action, FieldPlan, NamedElement, Parallel, StructPlan, TablePlan, TimePlan, Value, VectorPlan,
};
use super::schema::Number;
use crate::error::{Fault, Parsed};
use crate::sink::{ElementTest, Scalar, Sink, Target, span, sum};

/// State of a walk over a message.
pub(super) struct Walk<'m, 'w> {
    pub(super) buffer: Buffer<'m>,
    pub(super) sink: Sink<'w>,
}

impl Walk<'_, '_> {
    #[inline(always)]
    fn write(&mut self, targets: &[Target], value: Scalar<'_>, at: usize) -> Parsed<()> {
        for target in targets {
            self.sink.write(target, value).map_err(|kind| Fault::new(at, kind))?;
        }
        Ok(())
    }

    pub(super) fn table(&mut self, plan: &TablePlan, at: usize) -> Parsed<()> {
        let table = self.buffer.table(at)?;
        self.write(&plan.present, Scalar::Other, at)?;
        for field in &plan.fields {
            self.field(field, table).map_err(|fault| fault.in_member(&field.name))?;
        }
        for parallel in &plan.parallel {
            self.parallel(parallel, table).map_err(|fault| fault.in_member(&parallel.member))?;
        }
        let Some(time) = &plan.time else { return Ok(()) };
        let part = |(entry, number, default): (u16, Number, i64)| match self.buffer.field(table, entry)? {
            Some(at) => scalar(self.buffer, number, at),
            None => Ok(Scalar::Int(default)),
        };
        let value = time_of(part(time.seconds)?, part(time.nanos)?);
        self.write(&time.targets, value, at)
    }

    fn parallel(&mut self, parallel: &Parallel, table: Table) -> Parsed<()> {
        let Parallel { names, array, element, .. } = parallel;
        let Some(at) = self.buffer.field(table, names.0)? else { return Ok(()) };
        let (count, start) = self.buffer.vector(self.buffer.follow(at)?, names.1)?;
        let mut found = None;
        for index in 0..count {
            if self.has_name(element, start + index * names.1, index)? {
                found = Some(index);
            }
        }
        let (Some(index), Some(at)) = (found, self.buffer.field(table, array.0)?) else { return Ok(()) };
        let (count, start) = self.buffer.vector(self.buffer.follow(at)?, array.1)?;
        for slot in &element.slots {
            self.sink.block.set_invalid(*slot, self.sink.row);
        }
        if index < count {
            let at = start + index * array.1;
            self.value(&element.value, at).map_err(|fault| fault.in_element(index as u64))?;
        }
        Ok(())
    }

    /// Whether the element at `at` has the name.
    fn has_name(&mut self, named: &NamedElement, at: usize, index: usize) -> Parsed<bool> {
        let outer = (std::mem::take(&mut self.sink.met), self.sink.unknown);
        self.value(&named.name, at).map_err(|fault| fault.in_element(index as u64))?;
        let met = std::mem::replace(&mut self.sink.met, outer.0);
        self.sink.unknown = outer.1;
        Ok(named.alternatives.hold(met))
    }

    #[inline(always)]
    fn field(&mut self, field: &FieldPlan, table: Table) -> Parsed<()> {
        let at = self.buffer.field(table, field.entry)?;
        match (&field.action, at) {
            (Action::Number(number, targets, _), Some(at)) => {
                let value = scalar(self.buffer, *number, at)?;
                self.write(targets, value, at)
            }
            (Action::Number(_, targets, Some(default)), None) => self.write(targets, *default, table.at),
            (Action::Value(value), Some(at)) => self.value(value, at),
            (Action::Union { case, present, cases }, Some(at)) => {
                let Some(case) = self.buffer.field(table, *case)? else { return Ok(()) };
                let [case] = self.buffer.array(case)?;
                if case == 0 {
                    return Ok(());
                }
                self.write(present, Scalar::Other, at)?;
                match cases.iter().find(|(number, ..)| *number == case) {
                    Some((_, name, value)) => self.value(value, at).map_err(|fault| fault.in_member(name)),
                    None => Ok(()),
                }
            }
            (_, None) => Ok(()),
        }
    }

    fn value(&mut self, value: &Value, at: usize) -> Parsed<()> {
        match value {
            Value::Number(number, targets) => {
                let value = scalar(self.buffer, *number, at)?;
                self.write(targets, value, at)
            }
            Value::Text(targets) => {
                let at = self.buffer.follow(at)?;
                let text = self.buffer.text(at)?;
                self.write(targets, Scalar::Text(text), at)
            }
            Value::Struct(plan) => self.structure(plan, at),
            Value::FarStruct(plan) => self.structure(plan, self.buffer.follow(at)?),
            Value::Table(plan) => self.table(plan, self.buffer.follow(at)?),
            Value::Vector(plan) => {
                let (count, start) = self.buffer.vector(self.buffer.follow(at)?, plan.size)?;
                self.elements(plan, start, count)
            }
            Value::Array(plan, count) => {
                self.buffer.need(at, plan.size.saturating_mul(*count))?;
                self.elements(plan, at, *count)
            }
        }
    }

    fn structure(&mut self, plan: &StructPlan, at: usize) -> Parsed<()> {
        self.buffer.need(at, plan.size)?;
        self.write(&plan.present, Scalar::Other, at)?;
        for (offset, name, value) in &plan.members {
            self.value(value, at + offset).map_err(|fault| fault.in_member(name))?;
        }
        let Some(TimePlan { seconds, nanos, targets }) = &plan.time else { return Ok(()) };
        let part = |offset: u16, number| scalar(self.buffer, number, at + usize::from(offset));
        let value = time_of(part(seconds.0, seconds.1)?, part(nanos.0, nanos.1)?);
        self.write(targets, value, at)
    }

    fn elements(&mut self, plan: &VectorPlan, start: usize, count: usize) -> Parsed<()> {
        for target in &plan.whole {
            match target {
                Target::Length(..) => self.sink.length(target, count as u64),
                target => self.write(std::slice::from_ref(target), Scalar::Other, start)?,
            }
        }
        for (index, value) in &plan.picks {
            if (*index as usize) < count {
                let at = start + *index as usize * plan.size;
                self.value(value, at).map_err(|fault| fault.in_element((*index).into()))?;
            }
        }
        for (from_end, value) in &plan.ends {
            if let Some(index) = count.checked_sub(*from_end as usize) {
                self.value(value, start + index * plan.size)
                    .map_err(|fault| fault.in_element(index as u64))?;
            }
        }
        let mut left_out = 0;
        for test in &plan.tests {
            left_out = left_out.max(self.test(test, plan.size, start, count)?);
        }
        for named in &plan.named {
            for index in 0..count {
                let at = start + index * plan.size;
                if !self.has_name(named, at, index)? {
                    continue;
                }
                for slot in &named.slots {
                    self.sink.block.set_invalid(*slot, self.sink.row);
                }
                self.value(&named.value, at).map_err(|fault| fault.in_element(index as u64))?;
            }
        }
        self.sink.left_out += left_out;
        Ok(())
    }

    /// Tests every element. Returns the number of omitted ones.
    fn test(&mut self, test: &ElementTest<Value>, size: usize, start: usize, count: usize) -> Parsed<u64> {
        let mut all = self.sink.begin_elements(test);
        for index in 0..count {
            self.sink.begin_element();
            self.value(&test.element, start + index * size)
                .map_err(|fault| fault.in_element(index as u64))?;
            self.sink.end_element(test, &mut all);
        }
        Ok(self.sink.end_elements(test, &all))
    }
}

/// Returns a time of seconds and nanoseconds.
fn time_of(seconds: Scalar<'_>, nanos: Scalar<'_>) -> Scalar<'static> {
    match (seconds, nanos) {
        (Scalar::Int(seconds), Scalar::Int(nanos)) => span(sum(seconds, nanos)),
        (Scalar::Large(_), _) => Scalar::Beyond,
        _ => Scalar::Other,
    }
}

#[inline(always)]
pub(super) fn scalar(buffer: Buffer<'_>, number: Number, at: usize) -> Parsed<Scalar<'static>> {
    Ok(match number {
        Number::Bool => Scalar::Bool(buffer.array::<1>(at)? != [0]),
        Number::I8 => Scalar::Int(i8::from_le_bytes(buffer.array(at)?).into()),
        Number::U8 => Scalar::Int(u8::from_le_bytes(buffer.array(at)?).into()),
        Number::I16 => Scalar::Int(i16::from_le_bytes(buffer.array(at)?).into()),
        Number::U16 => Scalar::Int(u16::from_le_bytes(buffer.array(at)?).into()),
        Number::I32 => Scalar::Int(i32::from_le_bytes(buffer.array(at)?).into()),
        Number::U32 => Scalar::Int(u32::from_le_bytes(buffer.array(at)?).into()),
        Number::I64 => Scalar::Int(i64::from_le_bytes(buffer.array(at)?)),
        Number::U64 => {
            let value = u64::from_le_bytes(buffer.array(at)?);
            i64::try_from(value).map_or(Scalar::Large(value as f64), Scalar::Int)
        }
        Number::F32 => Scalar::Float(f32::from_le_bytes(buffer.array(at)?).into()),
        Number::F64 => Scalar::Float(f64::from_le_bytes(buffer.array(at)?)),
    })
}
