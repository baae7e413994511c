//! Elements of arrays in a message are tested and measured.

use rondel_decode::json::JsonDecoder;
use rondel_event::{
    Block, Comparison, Condition, Field, Path, Projection, Quantifier, Read, Slot, Test, TimeUnit, TopicId,
    Value,
};

use crate::{LAYOUT, field};

#[test]
fn elements_of_arrays_are_tested() {
    let condition = |path: &str, test| Condition { alternative: 0, path: Path::keys([path]), test };
    let both = vec![
        condition("kind", Test::Equals(Value::String("car".into()))),
        condition("speed", Test::Number(Comparison::Greater, 3.0)),
    ];
    let elements = |quantifier| Read::Elements(quantifier, both.clone());
    let projection = Projection {
        fields: vec![
            field(Path::keys(["seen"]), elements(Quantifier::Any), Slot::Bool(0)),
            field(Path::keys(["seen"]), elements(Quantifier::All), Slot::Bool(1)),
            field(Path::keys(["seen"]), elements(Quantifier::Count), Slot::Int(0)),
        ],
    };
    let mut decoder = JsonDecoder::new(TopicId(0), &projection, None, TimeUnit::Seconds);
    let mut check = |text: &str, any: (u64, u64), all: (u64, u64)| {
        let mut block = Block::new(LAYOUT);
        decoder.decode(text.as_bytes(), rondel_event::Timestamp::ZERO, &mut block).unwrap();
        for (i, expected) in [(0, any), (1, all)] {
            assert_eq!((block.bools(i).valid, block.bools(i).values), expected, "{text}");
        }
        let ints = block.ints(0);
        (ints.valid == 1).then(|| ints.values[0])
    };
    assert_eq!(
        check(r#"{"seen":[{"kind":"car","speed":4},{"kind":"dog","speed":9}]}"#, (1, 1), (1, 0)),
        Some(1)
    );
    assert_eq!(
        check(r#"{"seen":[{"kind":"car","speed":4},{"speed":3.5,"kind":"c\u0061r"}]}"#, (1, 1), (1, 1)),
        Some(2)
    );
    assert_eq!(check(r#"{"seen":[]}"#, (1, 0), (1, 1)), Some(0));
    assert_eq!(check(r#"{"seen":[3,{"kind":"car"}]}"#, (1, 0), (1, 0)), Some(0));
    assert_eq!(check(r#"{"seen":{}}"#, (0, 0), (0, 0)), None);
    assert_eq!(check("{}", (0, 0), (0, 0)), None);
}

/// Numbers are tested in the first pass over the array, everything else in a second one, with equal results.
#[test]
fn numbers_in_arrays_are_tested() {
    let condition = |test| Condition { alternative: 0, path: Path::default(), test };
    let below = condition(Test::Number(Comparison::Less, 3.0));
    let above = condition(Test::Number(Comparison::Greater, -1.5));
    let integer = condition(Test::Integer(Comparison::Less, 3.0));
    let of = |conditions: &[&Condition]| {
        Read::Elements(Quantifier::Count, conditions.iter().map(|c| (*c).clone()).collect())
    };
    let count = |reads: &[Read], text: &str| {
        let field = |(i, read): (usize, &Read)| field(Path::keys(["a"]), read.clone(), Slot::Int(i as u32));
        let projection = Projection { fields: reads.iter().enumerate().map(field).collect() };
        let layout = rondel_event::Layout { ints: reads.len(), ..LAYOUT };
        let mut decoder = JsonDecoder::new(TopicId(0), &projection, None, TimeUnit::Seconds);
        let mut block = Block::new(layout);
        let result = decoder.decode(text.as_bytes(), rondel_event::Timestamp::ZERO, &mut block);
        result.map(|()| {
            let value = |i: usize| {
                let ints = block.ints(i as u32);
                (ints.valid == 1).then(|| ints.values[0])
            };
            (0..reads.len()).map(value).collect::<Vec<_>>()
        })
    };
    for (text, expected) in [
        (r#"{"a":[1,2.5,3,-2,1e2]}"#, [Some(3), Some(4), Some(2), Some(2)]),
        (r#"{"a":[ 1 , "1", null, [1], {"b":1}, -0.5e0 ]}"#, [Some(2), Some(2), Some(2), Some(1)]),
        (r#"{"a":[1.0, 9223372036854775807, 9223372036854775808, -1e19, -2e0]}"#, [3, 3, 1, 2].map(Some)),
        (r#"{"a":[]}"#, [Some(0); 4]),
        (r#"{"a":null}"#, [None; 4]),
        (r#"{"a":2}"#, [None; 4]),
        (r#"{"b":[1]}"#, [None; 4]),
        (r#"{"a":[1],"a":[1,2]}"#, [Some(2); 4]),
    ] {
        let reads = [of(&[&below]), of(&[&above]), of(&[&below, &above]), of(&[&integer])];
        assert_eq!(count(&reads, text).unwrap(), expected, "{text}");
        // A length with the tests, and more tests than the first pass supports.
        let five = [&reads[..], &reads[..2]].concat();
        assert_eq!(count(&five, text).unwrap()[..4], expected, "{text}");
        let beside = [&reads[..], &[Read::Length]].concat();
        assert_eq!(count(&beside, text).unwrap()[..4], expected, "{text}");
    }
    for text in
        [r#"{"a":[1,]}"#, r#"{"a":[01]}"#, r#"{"a":[1."#, r#"{"a":[-]}"#, r#"{"a":[1 2]}"#, r#"{"a":[1.e3]}"#]
    {
        let (fused, apart) = ([of(&[&below])], [of(&[&below]), Read::Length]);
        assert_eq!(
            count(&fused, text).unwrap_err().to_string(),
            count(&apart, text).unwrap_err().to_string()
        );
    }
    let deep = format!("{{\"a\":[{}1{}]}}", "[".repeat(200), "]".repeat(200));
    assert!(count(&[of(&[&below])], &deep).is_err());
}

/// Measures are computed in the first pass over the array, or in a second one with other reads, with equal results.
#[test]
fn elements_of_arrays_are_measured() {
    use Quantifier::{Max, Mean, Min, Sum};
    let measures = [Min, Max, Sum, Mean];
    let measured = |text: &str, beside: bool| {
        let read = |quantifier| Read::Elements(quantifier, Vec::new());
        let mut fields: Vec<Field> = (0..)
            .zip(measures)
            .map(|(i, measure)| field(Path::keys(["a"]), read(measure), Slot::Float(i)))
            .collect();
        if beside {
            fields.push(field(Path::keys(["a"]), Read::Length, Slot::Int(0)));
        }
        let layout = rondel_event::Layout { floats: 4, ints: 1, ..LAYOUT };
        let projection = Projection { fields };
        let mut decoder = JsonDecoder::new(TopicId(0), &projection, None, TimeUnit::Seconds);
        let mut block = Block::new(layout);
        decoder.decode(text.as_bytes(), rondel_event::Timestamp::ZERO, &mut block).unwrap();
        let value = |i: u32| (block.floats(i).valid == 1).then(|| block.floats(i).values[0]);
        ([0, 1, 2, 3].map(value), decoder.refused().mistyped() - u64::from(beside && text.contains(":2")))
    };
    for (text, expected, mistyped) in [
        (r#"{"a":[3,-1.5,1e1, 2 ]}"#, [Some(-1.5), Some(10.0), Some(13.5), Some(3.375)], 0),
        (r#"{"a":[7]}"#, [Some(7.0); 4], 0),
        (r#"{"a":[]}"#, [None; 4], 0),
        (r#"{"a":[1,null,2]}"#, [Some(1.0), Some(2.0), None, Some(1.5)], 0),
        (r#"{"a":[null,null]}"#, [None; 4], 0),
        (r#"{"a":[1,"2"]}"#, [None; 4], 4),
        (r#"{"a":[[1],{"b":1},true]}"#, [None; 4], 4),
        (r#"{"a":[1e999,-1e999]}"#, [Some(f64::NEG_INFINITY), Some(f64::INFINITY), None, None], 0),
        (r#"{"a":null}"#, [None; 4], 0),
        (r#"{"a":2}"#, [None; 4], 4),
        (r#"{"b":[1]}"#, [None; 4], 0),
        (r#"{"a":["x"],"a":[1]}"#, [Some(1.0); 4], 4),
    ] {
        for beside in [false, true] {
            assert_eq!(measured(text, beside), (expected, mistyped), "{text} {beside}");
        }
    }
}
