//! Points: the engine agrees with the definitions, for all block sizes and advances of time.

#![allow(clippy::panic, clippy::unwrap_used)]

use crate::definition;

use definition::drive::{agree, agree_at_the_ends, config};
use definition::timed::{Palette, case};
use proptest::prelude::*;
use rondel_spec::TimeModel;

const PAST: Palette = Palette { model: TimeModel::Points, future: false, measures: false, extreme: false };

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn past_operators_agree_with_definition(case in case(PAST, 1..10, 0..16)) {
        agree(&case)?;
    }

    #[test]
    fn measurements(case in case(Palette { measures: true, ..PAST }, 1..8, 0..14)) {
        agree(&case)?;
    }

    #[test]
    fn extreme_times(case in case(Palette { measures: true, extreme: true, ..PAST }, 1..8, 0..10)) {
        agree_at_the_ends(&case)?;
    }
}
