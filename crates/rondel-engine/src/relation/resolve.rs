//! Passes decisions about tuples on to the properties that wait for them.

use super::obligations::{Obligations, Resolution};
use crate::future::{Decision, Pending, Plan, Scratch};

/// Passes on the decisions made by the event in a row, in steps or points. `relations` are the external truths of
/// the property, each with the obligations that decide it.
pub(crate) fn resolve<'a>(
    pending: &mut Pending,
    plan: &Plan,
    relations: impl Iterator<Item = (u32, &'a Obligations)>,
    row: usize,
) {
    for (external, obligations) in relations {
        let number = obligations.number(row);
        let resolutions = obligations.resolutions();
        let from = resolutions.partition_point(|resolution| resolution.row < row);
        let of_row = || resolutions[from..].iter().take_while(|resolution| resolution.row == row);
        for Resolution { point, bound, value, .. } in of_row().filter(|resolution| resolution.point != number)
        {
            pending.resolve(plan, external, *point, *bound, *value);
        }
        let now = known(of_row().filter(|resolution| resolution.point == number));
        pending.expect(plan, external, number, now);
    }
}

/// Dense time: passes on the decisions made by the time point in a row, in the order in which they became certain.
pub(crate) fn resolve_dense<'a>(
    pending: &mut Pending,
    plan: &Plan,
    relations: impl Iterator<Item = (u32, &'a Obligations)>,
    row: usize,
    room: &mut Scratch,
    out: &mut Vec<Decision>,
) {
    let mut resolutions: Vec<(u32, Resolution)> = Vec::new();
    for (external, obligations) in relations {
        let number = obligations.number(row);
        let of_row = obligations.resolutions().iter().filter(|resolution| resolution.row == row);
        let (now, earlier): (Vec<&Resolution>, Vec<&Resolution>) =
            of_row.partition(|resolution| resolution.point == number);
        pending.expect(plan, external, number, known(now.into_iter()));
        resolutions.extend(earlier.into_iter().map(|resolution| (external, *resolution)));
    }
    resolutions.sort_by_key(|(_, resolution)| resolution.axis);
    for together in resolutions.chunk_by(|(_, a), (_, b)| a.axis == b.axis) {
        let axis = together[0].1.axis;
        let decisions = together
            .iter()
            .map(|(external, Resolution { point, bound, value, .. })| (*external, *point, *bound, *value));
        pending.resolve_at(plan, axis, decisions, room, out);
    }
}

/// Returns the lower and the upper truth of a time point, as far as resolved.
fn known<'a>(resolutions: impl Iterator<Item = &'a Resolution>) -> [Option<bool>; 2] {
    let mut known = [None; 2];
    resolutions.for_each(|resolution| known[resolution.bound] = Some(resolution.value));
    known
}
