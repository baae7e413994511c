//! What has been decided of tuples, on its way to the properties that wait for it.

use super::asking::{Asking, News};
use crate::future::{Decision, Pending, Plan, Scratch};

/// Tells a property what has been decided by the event in a row, in steps or points.
pub(crate) fn hear<'a>(
    pending: &mut Pending,
    plan: &Plan,
    asked: impl Iterator<Item = (u32, &'a Asking)>,
    row: usize,
) {
    for (given, asking) in asked {
        let number = asking.number(row);
        let news = asking.news();
        let from = news.partition_point(|news| news.row < row);
        let of_row = || news[from..].iter().take_while(|news| news.row == row);
        for News { moment, rail, value, .. } in of_row().filter(|news| news.moment != number) {
            pending.hear(plan, given, *moment, *rail, *value);
        }
        let now = known(of_row().filter(|news| news.moment == number));
        pending.expect(plan, given, number, now);
    }
}

/// In dense time: takes in what has been decided by the moment in a row, in the order in which it became certain.
pub(crate) fn learn<'a>(
    pending: &mut Pending,
    plan: &Plan,
    asked: impl Iterator<Item = (u32, &'a Asking)>,
    row: usize,
    room: &mut Scratch,
    out: &mut Vec<Decision>,
) {
    let mut news: Vec<(u32, News)> = Vec::new();
    for (given, asking) in asked {
        let number = asking.number(row);
        let of_row = asking.news().iter().filter(|news| news.row == row);
        let (now, earlier): (Vec<&News>, Vec<&News>) = of_row.partition(|news| news.moment == number);
        pending.expect(plan, given, number, known(now.into_iter()));
        news.extend(earlier.into_iter().map(|news| (given, *news)));
    }
    news.sort_by_key(|(_, news)| news.axis);
    for together in news.chunk_by(|(_, a), (_, b)| a.axis == b.axis) {
        let axis = together[0].1.axis;
        let news = together.iter().map(|(given, news)| (*given, news.moment, news.rail, news.value));
        pending.learn(plan, axis, news, room, out);
    }
}

/// What the news of a moment says of both rails.
fn known<'a>(news: impl Iterator<Item = &'a News>) -> [Option<bool>; 2] {
    let mut known = [None; 2];
    news.for_each(|news| known[news.rail] = Some(news.value));
    known
}
