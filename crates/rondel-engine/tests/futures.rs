//! Operators of the future: about every event the engine says what the definitions say, once it is certain.

#![allow(clippy::panic, clippy::unwrap_used)]

mod definition;

use definition::drive::{agree_in_time, config};
use definition::timed::{Palette, case};
use proptest::prelude::*;
use rondel_spec::TimeModel;

fn future(model: TimeModel) -> Palette {
    Palette { model, future: true, measures: false, extreme: false }
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    #[ignore = "operators of the future are not there yet"]
    fn in_steps(case in case(future(TimeModel::Steps), 1..10, 0..20)) {
        agree_in_time(&case)?;
    }

    #[test]
    #[ignore = "operators of the future are not there yet"]
    fn in_points(case in case(future(TimeModel::Points), 1..10, 0..16)) {
        agree_in_time(&case)?;
    }
}
