use super::*;
use proptest::prelude::*;

/// A row: time since the row before, and its sample.
type Row = (u64, Option<Option<i64>>);

fn trace() -> impl Strategy<Value = Vec<Row>> {
    let extreme = proptest::sample::select(vec![i64::MAX, i64::MIN, i64::MIN + 1]);
    let value = prop_oneof![20 => (-9..9_i64).boxed(), 1 => extreme.boxed()];
    let sample = proptest::option::weighted(0.7, proptest::option::weighted(0.95, value));
    let later = prop_oneof![2 => 0..3_u64, 1 => 0..9_u64];
    proptest::collection::vec((later, sample), 1..150)
}

/// Stamp and samples in the window for every row; none where a sample is unknown or dropped.
fn windows(trace: &[Row], over: u64, limit: usize, start: i64) -> Vec<(i64, Option<Vec<i64>>)> {
    let mut now = start;
    let mut seen: Vec<(i64, Option<i64>)> = Vec::new();
    let mut out = Vec::new();
    for (later, sample) in trace {
        now = now.saturating_add_unsigned(*later);
        seen.extend(sample.map(|value| (now, value)));
        let in_window = |stamp: i64| i128::from(stamp) > i128::from(now) - i128::from(over);
        let values: Vec<Option<i64>> =
            seen.iter().filter(|(stamp, _)| in_window(*stamp)).map(|s| s.1).collect();
        let known = values.iter().flatten().count();
        let values = values.into_iter().collect::<Option<Vec<i64>>>();
        out.push((now, values.filter(|_| known <= limit)));
    }
    out
}

fn float(x: i64) -> f64 {
    match x {
        i64::MAX => f64::INFINITY,
        i64::MIN => f64::NEG_INFINITY,
        -9223372036854775807 => f64::NAN,
        0 => -0.0,
        x => x as f64 / 8.0,
    }
}

fn fold(values: &[i64], f: impl Fn(f64, f64) -> f64) -> Option<f64> {
    let mut values = values.iter().map(|&x| float(x));
    let first = values.next()?;
    Some(values.fold(first, |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { f(a, b) }))
}

fn same(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a == b || a.is_nan() && b.is_nan(),
        (a, b) => a.is_none() && b.is_none(),
    }
}

proptest! {
    #[test]
    fn aggregates_agree_with_definition(
        trace in trace(),
        over in 1..20_u64,
        limit in proptest::sample::select(vec![1_000, 3]),
        start in proptest::sample::select(vec![0, i64::MIN, i64::MAX - 40]),
    ) {
        let mut count = Count::new(over, limit);
        let mut ints = SumInt::new(over, limit);
        let mut floats = SumFloat::new(over, limit);
        let mut extremes = [true, false].map(|least| Extreme::new(least, over, 1_000));
        let mut float_extremes = extremes.clone();
        let unlimited = windows(&trace, over, usize::MAX, start);
        for ((row, (now, values)), (_, all)) in trace.iter().zip(windows(&trace, over, limit, start)).zip(unlimited) {
            let known = count.row(now, row.1.is_some_and(|value| value.is_some()));
            if let Some(values) = &values {
                prop_assert_eq!(known, Some(values.len() as i64));
            }
            let sum = values.as_ref().map(|v| v.iter().map(|&x| i128::from(x)).sum::<i128>());
            prop_assert_eq!(ints.row(now, row.1), sum.and_then(|sum| i64::try_from(sum).ok()));
            let sum = values.map(|v| v.iter().map(|&x| float(x)).sum::<f64>());
            let found = floats.row(now, row.1.map(|value| value.map(float)));
            prop_assert!(same(found, sum), "{:?} {:?}", found, sum);

            let expected = [all.as_ref().and_then(|v| v.iter().min()), all.as_ref().and_then(|v| v.iter().max())];
            for (extreme, expected) in extremes.iter_mut().zip(expected) {
                prop_assert_eq!(extreme.int_row(now, row.1), expected.copied());
            }
            let all = all.unwrap_or_default();
            for (extreme, expected) in float_extremes.iter_mut().zip([fold(&all, f64::min), fold(&all, f64::max)]) {
                let found = extreme.float_row(now, row.1.map(|value| value.map(float)));
                prop_assert!(same(found, expected), "{:?} {:?}", found, expected);
            }
        }
    }

    /// The result does not change between a row and the predicted change, and the prediction does not depend
    /// on rows without samples.
    #[test]
    fn next_change_is_exact(trace in trace(), over in 1..20_u64) {
        let mut sum = SumFloat::new(over, 5);
        let mut rows_between = sum.clone();
        let mut least = Extreme::new(true, over, 5);
        let mut now = 0;
        for (later, sample) in trace {
            let next = now + later as i64;
            let (held, held_least) = (sum.clone().row(now, None), least.clone().int_row(now, None));
            for t in now..next {
                rows_between.row(t, None);
                let before = |change: Option<i64>| change.is_none_or(|change| t < change);
                if before(sum.next_change()) {
                    prop_assert_eq!(sum.clone().row(t, None), held);
                }
                if before(least.next_change()) {
                    prop_assert_eq!(least.clone().int_row(t, None), held_least);
                }
            }
            now = next;
            let value = sample.map(|value| value.map(|x| x as f64 * 0.1));
            let found = sum.row(now, value);
            prop_assert_eq!(found.map(f64::to_bits), rows_between.row(now, value).map(f64::to_bits));
            least.int_row(now, sample);
            for change in [sum.next_change(), least.next_change()].into_iter().flatten() {
                prop_assert!(change > now);
            }
        }
    }
}

#[test]
fn sum_does_not_drift() {
    let mut sum = SumFloat::new(7, LIMIT);
    for i in 0..100_000_i64 {
        let x = |i: i64| if i % 5 == 0 { 1e17 } else { 0.1 * i as f64 };
        let found = sum.row(i, Some(Some(x(i)))).unwrap();
        let large = (i - 6..=i).filter(|i| *i >= 0 && i % 5 == 0).count() as f64 * 1e17;
        let small: f64 = (i - 6..=i).filter(|i| *i >= 0 && i % 5 != 0).map(x).sum();
        let error = (found - large) - small;
        assert!(error.abs() <= 16.0, "{i}: {found} is off by {error}");
    }
    // The large samples have left.
    let found = sum.row(100_004, Some(Some(0.25))).unwrap();
    assert!((found - (0.1 * 99_998.0 + 0.1 * 99_999.0 + 0.25)).abs() < 1e-10);
}

#[test]
fn overflow_is_counted() {
    let mut count = Count::new(10, 3);
    let known: Vec<_> = (0..6).map(|t| count.row(t, true)).collect();
    assert_eq!(known, [Some(1), Some(2), Some(3), None, None, None]);
    assert_eq!(count.blind.dropped, 3);
    assert_eq!((count.row(11, false), count.row(12, false)), (None, Some(3)));
    assert_eq!(count.row(13, false), Some(2));
}

/// A sample has left by the predicted time. Otherwise the same time would be predicted again and again.
#[test]
fn sample_has_left_at_next_change() {
    let windows = || {
        let of = |measure, kind| Window::new(measure, kind, 5);
        [
            of(Measure::Count, Kind::Int),
            of(Measure::Sum, Kind::Int),
            of(Measure::Sum, Kind::Float),
            of(Measure::Least, Kind::Int),
            of(Measure::Greatest, Kind::Float),
        ]
    };
    for known in [Rows::MAX, 0] {
        for mut window in windows() {
            let step = |window: &mut Window, now: i64, samples: Rows| {
                let (rows, stamps) = ([samples, known], [now]);
                match window.kind() {
                    Kind::Float => {
                        let (mut out, x) = ([0.0; _], [0.0; _]);
                        window.step_floats(&mut out, Some(&x), rows, Stamps::Times(&stamps), 1);
                    }
                    _ => {
                        let (mut out, x) = ([0; _], [0; _]);
                        window.step_ints(&mut out, Some(&x), rows, Stamps::Times(&stamps), 1);
                    }
                }
            };
            step(&mut window, 10, 1);
            step(&mut window, 12, 1);
            let mut changes = Vec::new();
            while let Some(due) = window.next_change().filter(|_| changes.len() < 5) {
                changes.push(due);
                step(&mut window, due, 0);
            }
            // Of two equal or unknown samples, some windows keep the later one only.
            assert!(changes == [15, 17] || changes == [17], "{changes:?} of {window:?}");
            assert!(window.is_over(17));
        }
    }
}

/// Standard deviation and integral depend on the samples in the window, even if large ones have left it.
#[test]
fn deviation_and_integral_do_not_drift() {
    let (mut deviation, mut integral) = (Deviation::new(7, LIMIT), Integral::new(7, LIMIT));
    for i in 0..100_000_i64 {
        let x = |i: i64| if i % 1000 < 5 { 1e15 } else { 1000.0 + (i % 3) as f64 };
        let (spread, area) =
            (deviation.row(i, Some(Some(x(i)))).unwrap(), integral.row(i, Some(Some(x(i)))).unwrap());
        if i % 1000 < 12 {
            continue;
        }
        let values: Vec<f64> = (i - 6..=i).map(x).collect();
        let mean = values.iter().sum::<f64>() / 7.0;
        let expected = (values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 7.0).sqrt();
        assert!((spread - expected).abs() < 1e-12, "{i}: {spread} and not {expected}");
        let expected = values.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).sum::<f64>() / 1e9;
        assert!((area - expected).abs() < 1e-18, "{i}: {area} and not {expected}");
    }
}

// Regression: the mean of a large and a small value lost the small one.
#[test]
fn large_values_cancel_out_in_integral() {
    let mut integral = Integral::new(5, LIMIT);
    let large = 2_f64.powi(63);
    let areas = [(5, -large), (7, 1.0), (8, large), (9, 0.0)]
        .map(|(now, x)| integral.row(now, Some(Some(x))).unwrap());
    assert_eq!(areas[3], 1.5e-9);
}

#[test]
fn infinity_and_nan_leave_with_their_sample() {
    for strange in [f64::INFINITY, f64::NAN] {
        let (mut deviation, mut integral) = (Deviation::new(3, LIMIT), Integral::new(3, LIMIT));
        let mut median = OrderedSamples::new(3, LIMIT);
        let found: Vec<_> = [1.0, strange, 2.0, 3.0, 4.0]
            .into_iter()
            .zip(0..)
            .map(|(x, now)| {
                let sample = Some(Some(x));
                let spread = deviation.row(now, sample).unwrap();
                let area = integral.row(now, sample).unwrap();
                (spread.is_finite(), area.is_finite(), median.quantile_row(HUNDRED / 2, now, sample))
            })
            .collect();
        assert!(!found[3].0 && !found[3].1);
        assert_eq!(found[4], (true, true, Some(3.0)));
    }
}

/// A restored window of ordered samples returns the results of the original.
#[test]
fn restored_samples_give_the_same_results() {
    let mut original = OrderedSamples::new(9, 7);
    for i in 0..40_i64 {
        original.quantile_row(HUNDRED / 4, i, Some(Some(((i * 7) % 11) as f64)));
        let copy = original.again();
        let row = |ordered: &mut OrderedSamples| ordered.quantile_row(HUNDRED / 4, i + 1, Some(None));
        assert_eq!(row(&mut copy.clone()), row(&mut original.clone()));
        let row = |ordered: &mut OrderedSamples| ordered.quantile_row(HUNDRED / 4, i + 4, Some(Some(2.5)));
        assert_eq!(row(&mut copy.clone()), row(&mut original.clone()));
    }
}

/// `cargo test --release -p rondel-engine --lib window_of_ten_thousand -- --ignored --nocapture`
#[test]
#[ignore = "a measurement, and not a test"]
#[allow(clippy::print_stdout)]
fn window_of_ten_thousand() {
    let mut state = 88_172_645_463_325_252_u64;
    let mut values = Vec::new();
    for _ in 0..1 << 20 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        values.push(state as f64 / 1e19);
    }
    for width in [100, 10_000, 1_000_000] {
        let mut window = OrderedSamples::new(width, LIMIT);
        let mut sum = 0.0;
        let mut events = 0_i64;
        let mut feed = |count: usize, window: &mut OrderedSamples| {
            for x in values.iter().cycle().take(count) {
                sum += window.quantile_row(950_000, events, Some(Some(*x))).unwrap_or(0.0);
                events += 1;
            }
        };
        feed(width as usize, &mut window);
        let begin = std::time::Instant::now();
        feed(2_000_000, &mut window);
        println!("{width}: {} ns per event ({sum})", begin.elapsed().as_nanos() / 2_000_000);
    }
}
