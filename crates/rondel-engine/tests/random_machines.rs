//! Machines: the engine does what the definitions say, whatever the blocks and however time passes.

#![allow(clippy::panic, clippy::unwrap_used)]

mod definition;

use definition::drive::{agree, config};
use definition::machines::case;
use definition::timed::Palette;
use proptest::prelude::*;
use rondel_spec::TimeModel;

fn past(model: TimeModel) -> Palette {
    Palette { model, future: false, measures: false, extreme: false }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn in_steps(case in case(past(TimeModel::Steps), 0..16)) {
        agree(&case)?;
    }

    #[test]
    fn in_points(case in case(past(TimeModel::Points), 0..16)) {
        agree(&case)?;
    }

    #[test]
    fn in_dense_time(case in case(past(TimeModel::Dense), 0..12)) {
        agree(&case)?;
    }
}
