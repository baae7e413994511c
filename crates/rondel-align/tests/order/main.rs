//! [`rondel_align::Order`] against its definition and in single cases.

#![allow(clippy::unwrap_used)]

mod cases;
mod extremes;
mod markers;
mod naive;
mod random;

use rondel_align::{Notice, Order, OrderSettings, Released};

/// Returns the events released since the last call.
pub(crate) fn released<T>(order: &mut Order<T>) -> Vec<Released<T>> {
    std::iter::from_fn(|| order.pop()).collect()
}

/// Returns the notices since the last call.
pub(crate) fn notices<T>(order: &mut Order<T>) -> Vec<Notice> {
    order.notices().collect()
}

/// Returns the order restored from its snapshot.
pub(crate) fn again(order: &Order<u64>, settings: &OrderSettings) -> Order<u64> {
    let bytes = order.snapshot(|item, to| to.extend_from_slice(&item.to_le_bytes()));
    let read = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_le_bytes);
    let again = Order::restore(settings.clone(), &bytes, read).unwrap();
    assert_eq!(order.statistics(), again.statistics());
    assert_eq!((order.waiting(), order.deadline()), (again.waiting(), again.deadline()));
    assert_eq!(order.complete_up_to(), again.complete_up_to());
    again
}

/// Pseudorandom numbers, determined by the seed.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// Returns `true` once in `times` calls on average.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}
