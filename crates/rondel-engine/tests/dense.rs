//! Dense time: the engine says what the definitions say, whatever the blocks and however time passes.

#![allow(clippy::panic, clippy::unwrap_used)]

mod definition;

use definition::drive::{agree, agree_at_the_ends, config};
use definition::timed::{Palette, case};
use proptest::prelude::*;
use rondel_spec::TimeModel;

const PAST: Palette = Palette { model: TimeModel::Dense, future: false, measures: false, extreme: false };

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn the_past(case in case(PAST, 1..10, 0..16)) {
        agree(&case)?;
    }

    #[test]
    fn measurements(case in case(Palette { measures: true, ..PAST }, 1..8, 0..14)) {
        agree(&case)?;
    }

    #[test]
    fn at_the_ends_of_time(case in case(Palette { measures: true, extreme: true, ..PAST }, 1..8, 0..10)) {
        agree_at_the_ends(&case)?;
    }
}
