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
