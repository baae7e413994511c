//! Reads of random messages, and their expected values.

use rondel_decode::cdr::{CdrDecoder, CdrErrorKind, Check};
use rondel_decode::schema::{Definition, Library, Primitive, Schema, Type};
use rondel_event::{
    Block, Condition, FROM_END, Field, Layout, Path, Projection, Quantifier, Read, Segment, Slot, Test,
    TimeUnit, Timestamp, TopicId, Value, ValueType,
};

use crate::conditions::{Coverage, alternatives, meets_number, number_test};
use crate::measures::{MEASURES, measured};
use crate::random::Tree;
use rondel_testkit::Random;

/// Value of a field in a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found {
    Absent,
    Invalid,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

#[derive(Debug)]
pub(crate) struct Reads {
    projection: Projection,
    layout: Layout,
    /// Type at each path.
    types: Vec<Type>,
    pub(crate) coverage: Coverage,
}

impl Reads {
    pub(crate) fn random(random: &mut Random, schema: &Schema) -> Reads {
        let mut reads = Reads {
            projection: Projection::default(),
            layout: Layout { topics: 1, ..Layout::default() },
            types: Vec::new(),
            coverage: Coverage::default(),
        };
        for _ in 0..random.index(8) {
            let mut path = Vec::new();
            if let Some(found) = walk(random, schema, &mut path) {
                reads.add(random, schema, Path(path), found);
            }
        }
        reads
    }

    fn add(&mut self, random: &mut Random, schema: &Schema, path: Path, found: Type) {
        let value = |value_type| Read::Value(value_type);
        let read = match &found {
            _ if random.one_in(6) => Read::Presence,
            Type::String { .. } | Type::Array { .. } | Type::Sequence { .. } if random.one_in(4) => {
                Read::Length
            }
            Type::Primitive(Primitive::Bool) => value(ValueType::Bool),
            Type::Primitive(Primitive::Float32 | Primitive::Float64) if random.one_in(4) => Read::IsNan,
            Type::Primitive(Primitive::Float32 | Primitive::Float64) => value(ValueType::Float),
            Type::Primitive(Primitive::Char | Primitive::WChar) if random.one_in(2) => {
                value(ValueType::String)
            }
            Type::Primitive(_) if random.one_in(3) => value(ValueType::Float),
            Type::Primitive(_) => value(ValueType::Int),
            Type::String { .. } => value(ValueType::String),
            Type::Named(id) => match schema.definition(*id) {
                Definition::Enum(_) if random.one_in(2) => value(ValueType::String),
                Definition::Enum(_) | Definition::Bitmask(_) => value(ValueType::Int),
                _ => Read::Presence,
            },
            Type::Array { element, .. } | Type::Sequence { element, .. } => {
                let is_number = matches!(&**element, Type::Primitive(p) if *p != Primitive::Bool);
                let is_one = !matches!(&found, Type::Array { dimensions, .. } if dimensions.len() > 1);
                let tests: Vec<_> = (0..4).filter_map(|_| test(random, schema, element)).collect();
                let quantifier = match (random.one_in(3), random.one_in(2)) {
                    _ if is_number && random.one_in(3) => MEASURES[random.index(4)],
                    (true, _) => Quantifier::Count,
                    (_, true) => Quantifier::Any,
                    _ => Quantifier::All,
                };
                match quantifier.is_measure() {
                    _ if !is_one || tests.is_empty() => Read::Presence,
                    true => Read::Elements(quantifier, Vec::new()),
                    false => Read::Elements(quantifier, alternatives(|end| random.index(end), &tests)),
                }
            }
        };
        let next = |count: &mut usize| {
            *count += 1;
            *count as u32 - 1
        };
        let slot = match read {
            Read::Value(ValueType::Int) | Read::Length | Read::Elements(Quantifier::Count, _) => {
                Slot::Int(next(&mut self.layout.ints))
            }
            Read::Elements(quantifier, _) if quantifier.is_measure() => {
                Slot::Float(next(&mut self.layout.floats))
            }
            Read::Value(ValueType::Float) => Slot::Float(next(&mut self.layout.floats)),
            Read::Value(ValueType::String) => Slot::String(next(&mut self.layout.strings)),
            _ => Slot::Bool(next(&mut self.layout.bools)),
        };
        self.projection.fields.push(Field { path, read, slot, exact: false });
        self.types.push(found);
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn decoder(&self, schema: &Schema, check: Check) -> CdrDecoder {
        CdrDecoder::new(TopicId(0), schema, &self.projection, None, TimeUnit::Seconds, check).unwrap()
    }

    pub(crate) fn found(&self, block: &Block) -> Vec<Found> {
        self.found_in(block, 0)
    }

    pub(crate) fn found_in(&self, block: &Block, row: usize) -> Vec<Found> {
        let found = |field: &Field| {
            let is_in = |rows: u64| rows >> row & 1 == 1;
            if !is_in(block.present(field.slot)) {
                return Found::Absent;
            }
            if is_in(block.invalid(field.slot)) {
                return Found::Invalid;
            }
            match field.slot {
                Slot::Bool(at) => Found::Bool(is_in(block.bools(at).values)),
                Slot::Int(at) => Found::Int(block.ints(at).values[row]),
                Slot::Float(at) => Found::Float(block.floats(at).values[row]),
                Slot::String(at) => Found::Text(String::from_utf8(block.text(at, row).to_vec()).unwrap()),
            }
        };
        self.projection.fields.iter().map(found).collect()
    }

    /// Returns the mask of the rows with any field.
    pub(crate) fn all(&self, block: &Block) -> u64 {
        self.projection.fields.iter().fold(0, |rows, field| rows | block.present(field.slot))
    }

    pub(crate) fn expected(&self, schema: &Schema, tree: &Tree) -> Vec<Found> {
        let fields = self.projection.fields.iter().zip(&self.types);
        fields.map(|(field, found)| expected(field, schema, found, tree, &self.coverage)).collect()
    }
}

fn expected(field: &Field, schema: &Schema, found: &Type, tree: &Tree, coverage: &Coverage) -> Found {
    let left_out = if field.read == Read::Presence { Found::Absent } else { Found::Invalid };
    let Some(value) = find(&field.path.0, schema, None, tree) else { return left_out };
    match (&field.read, value) {
        (Read::Presence, _) => Found::Bool(true),
        (Read::Length, Tree::Text(text)) => Found::Int(text.chars().count() as i64),
        (Read::Length, Tree::List(values)) => match found {
            Type::Array { dimensions, .. } => Found::Int(dimensions[0].into()),
            _ => Found::Int(values.len() as i64),
        },
        (Read::Elements(quantifier, _), Tree::List(values)) if quantifier.is_measure() => {
            let number = |value: &Tree| match value {
                Tree::Int(value) => *value as f64,
                Tree::Float(value) => *value,
                other => panic!("{other:?} is no number"),
            };
            let numbers: Vec<f64> = values.iter().map(number).collect();
            measured(*quantifier, &numbers).map_or(Found::Invalid, Found::Float)
        }
        (Read::Elements(quantifier, conditions), Tree::List(values)) => {
            let (Type::Array { element, .. } | Type::Sequence { element, .. }) = found else {
                panic!("{found:?}");
            };
            let met = coverage.met(conditions, values, |condition, value| {
                let found = find(&condition.path.0, schema, Some(element), value);
                found.map_or(Some(false), |found| meets(condition, schema, element, found))
            });
            let Some(decided) = met.decided() else { return Found::Invalid };
            match quantifier {
                Quantifier::Any => Found::Bool(met.met > 0),
                Quantifier::All => Found::Bool(met.met == decided),
                _ => Found::Int(met.met as i64),
            }
        }
        (Read::IsNan, Tree::Float(value)) => Found::Bool(value.is_nan()),
        (Read::Value(ValueType::Float), Tree::Float(value)) if value.is_nan() => Found::Invalid,
        (Read::Value(ValueType::Float), Tree::Float(value)) => Found::Float(*value),
        (Read::Value(ValueType::Float), Tree::Int(value)) => Found::Float(*value as f64),
        (Read::Value(ValueType::Int), Tree::Int(value)) => {
            i64::try_from(*value).map_or(Found::Invalid, Found::Int)
        }
        (Read::Value(ValueType::Bool), Tree::Bool(value)) => Found::Bool(*value),
        (Read::Value(ValueType::String), Tree::Text(text)) => Found::Text(text.clone()),
        (Read::Value(ValueType::String), Tree::Int(value)) => match found {
            Type::Named(id) => match schema.definition(*id) {
                Definition::Enum(enumeration) => {
                    let named = |(_, constant): &&(Box<str>, i32)| i128::from(*constant) == *value;
                    Found::Text(enumeration.constants.iter().find(named).unwrap().0.to_string())
                }
                other => panic!("{other:?}"),
            },
            _ => Found::Text(char::from_u32(*value as u32).unwrap().to_string()),
        },
        other => panic!("{other:?}"),
    }
}

/// Whether the value at the path of a condition meets it, in an element of this type.
fn meets(condition: &Condition, schema: &Schema, element: &Type, value: &Tree) -> Option<bool> {
    let label = |number: i128| {
        let mut at = element.clone();
        for segment in &condition.path.0 {
            let (Type::Named(id), Segment::Key(key)) = (&at, segment) else { panic!("{at:?}") };
            let Definition::Struct(structure) = schema.definition(*id) else { panic!("{at:?}") };
            at = structure.members.iter().find(|m| m.name == *key).unwrap().member_type.clone();
        }
        let Type::Named(id) = at else { panic!("{at:?}") };
        let Definition::Enum(enumeration) = schema.definition(id) else { panic!() };
        enumeration.constants.iter().find(|(_, constant)| i128::from(*constant) == number).unwrap().0.clone()
    };
    Some(match (&condition.test, value) {
        (Test::Present, _) => true,
        (Test::Equals(Value::Bool(wanted)), Tree::Bool(value)) => wanted == value,
        (Test::Equals(Value::String(wanted)), Tree::Text(text)) => **wanted == **text,
        (Test::OtherText(other), Tree::Text(text)) => **other != **text,
        (Test::Equals(Value::String(wanted)), Tree::Int(number)) => *wanted == label(*number),
        (Test::OtherText(other), Tree::Int(number)) => *other != label(*number),
        (test, Tree::Int(value)) => return meets_number(test, *value as f64),
        (test, Tree::Float(value)) => return meets_number(test, *value),
        other => panic!("{other:?}"),
    })
}

/// Returns a test of an element of this type, or of a member of it; `None` if it has nothing to test.
fn test(random: &mut Random, schema: &Schema, element: &Type) -> Option<(Path, Test)> {
    let (mut path, mut at) = (Vec::new(), element.clone());
    loop {
        let is = |text: &str, is_other| match is_other {
            true => Test::OtherText(text.into()),
            false => Test::Equals(Value::String(text.into())),
        };
        let test = match &at {
            Type::Primitive(Primitive::Bool) => Test::Equals(Value::Bool(random.one_in(2))),
            Type::Primitive(_) => number_test(|end| random.index(end)),
            Type::String { .. } => is(["", "a", " "][random.index(3)], random.one_in(2)),
            Type::Named(id) => match schema.definition(*id) {
                Definition::Struct(structure) => {
                    let member = &structure.members[random.index(structure.members.len())];
                    path.push(Segment::Key(member.name.clone()));
                    at = member.member_type.clone();
                    continue;
                }
                Definition::Enum(of) if random.one_in(2) => {
                    is(&of.constants[random.index(of.constants.len())].0, random.one_in(2))
                }
                Definition::Enum(_) | Definition::Bitmask(_) => number_test(|end| random.index(end)),
                Definition::Union(_) | Definition::Alias(_) => Test::Present,
            },
            _ => Test::Present,
        };
        return Some((Path(path), test));
    }
}

/// Returns the value at a path; `None` as the type is the root.
fn find<'t>(
    path: &[Segment],
    schema: &Schema,
    value_type: Option<&Type>,
    tree: &'t Tree,
) -> Option<&'t Tree> {
    let Some((first, rest)) = path.split_first() else { return Some(tree) };
    let definition = match value_type {
        None => Some(Definition::Struct(schema.root().clone())),
        Some(Type::Named(id)) => Some(schema.definition(*id).clone()),
        Some(_) => None,
    };
    match (first, tree, definition) {
        (Segment::Key(key), Tree::Struct(values), Some(Definition::Struct(structure))) => {
            let at = structure.members.iter().position(|member| member.name == *key).unwrap();
            find(rest, schema, Some(&structure.members[at].member_type), values[at].as_ref()?)
        }
        (Segment::Key(key), Tree::Union(label, case), Some(Definition::Union(union))) => {
            if &**key == "discriminator" {
                // A separate value, which the tree does not contain.
                return Some(&*Box::leak(Box::new(Tree::Int(*label))));
            }
            let (at, value) = case.as_ref()?;
            (union.cases[*at].name == *key).then_some(())?;
            find(rest, schema, Some(&union.cases[*at].member_type), value)
        }
        (Segment::Index(_) | Segment::FromEnd(_), Tree::List(values), _) => match value_type? {
            Type::Sequence { element, .. } => {
                let value = match first {
                    Segment::FromEnd(index) => values.iter().nth_back(*index as usize - 1)?,
                    Segment::Index(index) => values.get(*index as usize)?,
                    Segment::Key(_) | Segment::Named(_) => return None,
                };
                find(rest, schema, Some(element), value)
            }
            Type::Array { element, dimensions } => {
                let mut at = 0;
                for (segment, size) in path.iter().zip(dimensions) {
                    let index = match segment {
                        Segment::FromEnd(index) => size - index,
                        Segment::Index(index) => *index,
                        Segment::Key(_) | Segment::Named(_) => return None,
                    };
                    at = at * size + index;
                }
                find(&path[dimensions.len()..], schema, Some(element), &values[at as usize])
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Returns a random path into a type, and the type there.
fn walk(random: &mut Random, schema: &Schema, path: &mut Vec<Segment>) -> Option<Type> {
    let mut at = {
        let members = &schema.root().members;
        let member = &members[random.index(members.len())];
        path.push(Segment::Key(member.name.clone()));
        member.member_type.clone()
    };
    loop {
        if random.one_in(12) {
            return Some(at);
        }
        at = match &at {
            Type::Array { element, dimensions } => {
                if random.one_in(3) {
                    return Some(at);
                }
                for size in dimensions {
                    let index = random.index(*size as usize) as u32;
                    let is_near = random.one_in(3) && size - index <= FROM_END;
                    path.push(if is_near { Segment::FromEnd(size - index) } else { Segment::Index(index) });
                }
                (**element).clone()
            }
            Type::Sequence { element, .. } => {
                if random.one_in(3) {
                    return Some(at);
                }
                let index = random.index(4) as u32;
                let is_from_end = random.one_in(3);
                path.push(if is_from_end { Segment::FromEnd(index + 1) } else { Segment::Index(index) });
                (**element).clone()
            }
            Type::Named(id) => match schema.definition(*id) {
                Definition::Struct(structure) => {
                    let member = &structure.members[random.index(structure.members.len())];
                    path.push(Segment::Key(member.name.clone()));
                    member.member_type.clone()
                }
                Definition::Union(union) if random.one_in(4) => {
                    path.push(Segment::Key("discriminator".into()));
                    return Some(union.discriminator.clone());
                }
                Definition::Union(union) => {
                    let case = &union.cases[random.index(union.cases.len())];
                    path.push(Segment::Key(case.name.clone()));
                    case.member_type.clone()
                }
                _ => return Some(at),
            },
            _ => return Some(at),
        };
    }
}

/// Until some messages have ended where their type ends, a message of a longer type is refused and not misread.
#[test]
fn messages_of_a_longer_type_are_refused() {
    let mut library = Library::new();
    library.add_msg("t/msg/Report", "int32 sec\nstring name\nuint8 report\nfloat32[] more").unwrap();
    let schema = library.schema("t/msg/Report").unwrap();
    let field = Field {
        path: Path::keys(["report"]),
        read: Read::Value(ValueType::Int),
        slot: Slot::Int(0),
        exact: false,
    };
    let projection = Projection { fields: vec![field] };
    let new = || {
        CdrDecoder::new(TopicId(0), &schema, &projection, None, TimeUnit::Seconds, Check::Trusted).unwrap()
    };
    let mut good = vec![0, 1, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, b'a', 0, 5, 0, 1, 0, 0, 0, 0, 0, 128, 63];
    let mut block = Block::new(Layout { topics: 1, ints: 1, ..Layout::default() });
    let mut decoder = new();
    let mut decode = |decoder: &mut CdrDecoder, message: &[u8]| {
        block.clear();
        decoder.decode(message, Timestamp::ZERO, &mut block).map_err(|error| error.kind)
    };
    let long = [good.as_slice(), &[0; 8]].concat();
    let short = &good[..good.len() - 2];
    for _ in 0..100 {
        assert_eq!(decode(&mut decoder, &long), Err(CdrErrorKind::TrailingBytes));
        assert_eq!(decode(&mut decoder, short), Err(CdrErrorKind::Truncated));
    }
    // Bytes after the last field are not accessed any more once the type was confirmed.
    for _ in 0..16 {
        assert_eq!(decode(&mut decoder, &good), Ok(()));
    }
    assert_eq!(decode(&mut decoder, &long), Ok(()));
    // Padding of up to three bytes is no further field.
    good.extend([0; 3]);
    assert_eq!(decode(&mut new(), &good), Ok(()));
}
