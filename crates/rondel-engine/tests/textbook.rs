//! Cases by hand, each small enough to be checked with a pencil.

#![allow(clippy::panic, clippy::unwrap_used)]

use crate::definition;

use definition::build::{Build, EVER, show_changes, show_events, time, trace};
use definition::outcome::outcomes;
use rondel_event::Comparison;
use rondel_spec::Aggregate::{Count, Max, Mean, Min, Rate, Sum};
use rondel_spec::{Expr, ExprId, TimeModel};

/// Subject, formula, trace, time at the end, and verdicts.
type Case = (&'static str, fn(&Build) -> ExprId, &'static str, &'static str, &'static str);

fn check(model: TimeModel, cases: &[Case]) {
    for (name, formula, text, now, expected) in cases {
        let build = Build::default();
        let formula = formula(&build);
        let spec = build.spec(model, formula);
        let spots = outcomes(&spec, &trace(text), time(now)).remove(0);
        let found = match model {
            TimeModel::Dense => show_changes(&spots),
            TimeModel::Steps | TimeModel::Points => show_events(&spots),
        };
        assert_eq!(found, *expected, "{name}: {text}");
    }
}

#[test]
fn past_in_points() {
    check(
        TimeModel::Points,
        &[
            ("both bounds are included", |b| b.once(2, 5, b.on(0)), "0:a 1:b 2:b 5:b 6:b", "0", "F F T T F"),
            (
                "what is before the first event does not exist",
                |b| b.historically(1, 9, b.on(1)),
                "0:b 1:b 2:a",
                "0",
                "T T T",
            ),
            ("a point", |b| b.once(3, 3, b.on(0)), "0:a 2:b 3:b 4:b", "0", "F F T F"),
            ("an empty interval", |b| b.once(4, 3, b.on(0)), "0:a 3:b 4:b", "0", "F F F"),
            ("everything about an empty interval", |b| b.historically(4, 3, b.on(2)), "0:a 3:b", "0", "T T"),
            (
                "equal times: the earlier is the past of the later",
                |b| b.once(0, 0, b.on(0)),
                "0:b 0:a 0:b 1:b",
                "0",
                "F T T F",
            ),
            ("equal times: not one step apart", |b| b.once(1, 9, b.on(0)), "0:a 0:b 1:b", "0", "F F T"),
            ("a long gap", |b| b.once(0, 9, b.on(0)), "0:a 9:b 9y:b", "0", "T T F"),
            (
                "years",
                |b| b.once(0, 31_536_000_000_000_000 * 100, b.on(0)),
                "1y:a 101y:b 102y:b",
                "0",
                "T T F",
            ),
            (
                "since: the witness needs no first",
                |b| b.since(b.p(), 0, EVER, b.on(1)),
                "0:a{!p} 1:b 2:a{p} 3:a{!p}",
                "0",
                "F T T F",
            ),
            (
                "since: the first at every event after the witness",
                |b| b.since(b.p(), 2, 4, b.on(1)),
                "0:b 1:a{p} 2:c 4:c 5:c",
                "0",
                "F F T T F",
            ),
            (
                "unknown stays unknown",
                |b| b.once(0, 5, b.p()),
                "0:b 1:a{p=null} 2:a{p} 9:b{x=1}",
                "0",
                "? ? T T",
            ),
            ("a value of another type is unknown", |b| b.p(), "0:a{p} 1:a{p=3} 2:a 3:a{!p}", "0", "T ? ? F"),
            (
                "previously is the event before, whatever the time",
                |b| b.previously(b.on(0)),
                "0:a 9y:b 9y:b",
                "0",
                "F T F",
            ),
            (
                "an interval beyond all times",
                |b| b.once(u64::MAX - 2, u64::MAX - 1, b.on(0)),
                "0:a 9:a",
                "0",
                "F F",
            ),
            ("no events, no verdicts", |b| b.once(0, 5, b.on(0)), "", "9", ""),
        ],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn past_in_dense_time() {
    check(
        TimeModel::Dense,
        &[
            ("an update is an instant", |b| b.on(0), "0:b 3:a 5:b", "9", "0 F, 3 T, 3+ F"),
            ("a field holds", |b| b.p(), "0:b 3:a{p} 5:b 7:a{!p}", "9", "0 ?, 3 T, 7 F"),
            ("both bounds are included", |b| b.once(2, 5, b.on(0)), "0:a", "9", "0 F, 2 T, 5+ F"),
            ("a point of a point is a point", |b| b.once(3, 3, b.on(0)), "0:a 4:b", "9", "0 F, 3 T, 3+ F"),
            (
                "a point of a span is open where the span is",
                |b| b.once(3, 3, b.not(b.on(1))),
                "0:a 2:b",
                "9",
                "0 F, 3 T, 5 F, 5+ T",
            ),
            (
                "an open end and a bound",
                |b| b.once(0, 2, b.not(b.p())),
                "0:a{!p} 3:a{p} 9:b",
                "9",
                "0 T, 5 F",
            ),
            ("an empty interval", |b| b.once(4, 3, b.on(0)), "0:a", "9", "0 F"),
            ("true for a while", |b| b.historically(0, 3, b.p()), "0:a{!p} 1:a{p} 5:b", "9", "0 F, 4 T"),
            (
                "an instant breaks it, and is gone after its time",
                |b| b.historically(0, 3, b.not(b.on(1))),
                "0:a 2:b",
                "9",
                "0 T, 2 F, 5+ T",
            ),
            (
                "since: the first need not hold at the witness",
                |b| b.since(b.not(b.on(0)), 0, EVER, b.on(0)),
                "0:b 1:a",
                "4",
                "0 F, 1 T",
            ),
            (
                "since: but at once after it",
                |b| b.since(b.p(), 0, EVER, b.on(1)),
                "0:b 1:a{p} 2:b 3:a{!p}",
                "4",
                "0 T, 0+ ?, 2 T, 3 F",
            ),
            ("since: with bounds", |b| b.since(b.p(), 2, 4, b.on(1)), "0:a{p} 1:b", "9", "0 F, 3 T, 5+ F"),
            (
                "since: in the span of the witness",
                |b| b.since(b.p(), 1, 9, b.p()),
                "0:a{p} 3:a{!p}",
                "9",
                "0 F, 1 T, 3 F",
            ),
            (
                "since: over two successive states",
                |b| b.since(b.not(b.p()), 0, EVER, b.p()),
                "0:a{p} 3:a{!p} 5:b",
                "9",
                "0 T",
            ),
            (
                "since: over two successive states, with bounds",
                |b| b.since(b.not(b.p()), 1, 4, b.p()),
                "0:a{p} 3:a{!p} 5:b",
                "9",
                "0 F, 4 T, 7 F",
            ),
            (
                "since: over two states with an instant in between",
                |b| b.since(b.not(b.or(b.p(), b.on(1))), 0, EVER, b.p()),
                "0:a{p} 3:b 3:a{!p} 5:c",
                "9",
                "0 T",
            ),
            (
                "since: from the end of the state on",
                |b| b.since(b.not(b.on(1)), 0, EVER, b.not(b.or(b.on(1), b.p()))),
                "0:a{!p} 2:b 3:a{p} 4:b",
                "9",
                "0 T, 2 F, 2+ T, 4 F",
            ),
            (
                "previously: just before",
                |b| b.previously(b.p()),
                "0:a{p} 3:a{!p} 5:b",
                "9",
                "0 F, 0+ T, 3+ F",
            ),
            ("previously of an instant is nothing", |b| b.previously(b.on(0)), "0:a 3:b", "9", "0 F"),
            (
                "previously, equal times: the time point before",
                |b| b.previously(b.on(0)),
                "0:c 3:a 3:b 3:b",
                "9",
                "0 F, 3 T, 3 F",
            ),
            (
                "equal times: values between are there for no time",
                |b| b.once(0, 2, b.p()),
                "0:a{!p} 3:a{p} 3:a{!p}",
                "9",
                "0 F, 3 T, 5+ F",
            ),
            ("years", |b| b.once(0, 31_536_000_000_000_000, b.on(0)), "1y:a 200y:b", "200y", "1y T, 2y+ F"),
            (
                "unknown for a while",
                |b| b.once(0, 2, b.p()),
                "0:a{!p} 1:a{p=null} 2:a{!p}",
                "9",
                "0 F, 1 ?, 4 F",
            ),
            (
                "changes only where the truth does",
                |b| b.once(0, 2, b.on(0)),
                "0:a 2:a 4:a 6:b",
                "9",
                "0 T, 6+ F",
            ),
            (
                "prev holds from message to message",
                |b| b.equals(b.prev(b.x(0)), b.int(1)),
                "0:a{x=1} 2:b 3:a{x=2} 5:a{x=3}",
                "9",
                "0 ?, 3 T, 5 F",
            ),
            ("no events, no truth", |b| b.not(b.on(0)), "", "9", ""),
        ],
    );
}

#[test]
fn future_in_steps() {
    check(
        TimeModel::Steps,
        &[
            ("next", |b| b.next(b.on(0)), "0:b 0:a 0:b", "0", "T F ."),
            ("eventually", |b| b.eventually(1, 2, b.on(0)), "0:a 0:b 0:b 0:a 0:b", "0", "F T T . ."),
            ("a witness is enough", |b| b.eventually(0, 9, b.on(0)), "0:b 0:a 0:b", "0", "T T ."),
            (
                "always is certain at the first no",
                |b| b.always(0, 9, b.on(0)),
                "0:a 0:a 0:b 0:a",
                "0",
                "F F F .",
            ),
            ("until", |b| b.until(b.on(0), 1, 3, b.on(1)), "0:a 0:a 0:b 0:b 0:a", "0", "T T F F ."),
            ("until: the second needs no first", |b| b.until(b.on(2), 0, 3, b.on(1)), "0:b 0:a", "0", "T F"),
            ("an empty interval is never pending", |b| b.eventually(3, 2, b.on(0)), "0:a", "0", "F"),
            (
                "unknown and pending",
                |b| b.and(b.p(), b.eventually(0, 5, b.on(1))),
                "0:b 0:a{!p} 0:a{p=null}",
                "0",
                "? F .",
            ),
        ],
    );
}

#[test]
fn future_in_points() {
    check(
        TimeModel::Points,
        &[
            (
                "an event exactly at the bound still counts",
                |b| b.eventually(0, 5, b.on(0)),
                "0:b 5:a 6:b",
                "0",
                "T T .",
            ),
            ("and so may one that did not come yet", |b| b.eventually(0, 5, b.on(0)), "0:b 5:b", "0", ". ."),
            ("no is certain beyond the bound", |b| b.eventually(0, 5, b.on(0)), "0:b 5:b 6:b", "0", "F . ."),
            ("also when only time has passed", |b| b.eventually(0, 5, b.on(0)), "0:b 2:b", "6", "F ."),
            ("time at the bound is not beyond it", |b| b.eventually(0, 5, b.on(0)), "0:b", "5", "."),
            (
                "equal times: only what comes later",
                |b| b.eventually(0, 0, b.on(0)),
                "0:a 0:b 1:c",
                "0",
                "T F .",
            ),
            ("always of nothing", |b| b.always(1, 2, b.on(0)), "0:a 3:b 9:b", "0", "T T ."),
            (
                "until",
                |b| b.until(b.not(b.on(2)), 2, 5, b.on(0)),
                "0:b 1:a 3:c 4:a 6:a 9:b",
                "20",
                "F F F T F F",
            ),
            (
                "until: pending while the first holds",
                |b| b.until(b.on(1), 2, 5, b.on(0)),
                "0:b 1:c 2:b",
                "0",
                "F F .",
            ),
            (
                "past of the future",
                |b| b.once(0, 2, b.eventually(0, 2, b.on(0))),
                "0:b 2:a 3:b 9:b",
                "9",
                "T T T .",
            ),
        ],
    );
}

#[test]
fn future_in_dense_time() {
    check(
        TimeModel::Dense,
        &[
            ("eventually", |b| b.eventually(1, 3, b.on(0)), "0:b 5:a", "12", "0 F, 2 T, 4+ F, 9 ."),
            ("always", |b| b.always(0, 2, b.p()), "0:a{p} 5:a{!p} 6:a{p}", "12", "0 T, 3 F, 6 T, 10 ."),
            ("until", |b| b.until(b.p(), 0, 3, b.on(1)), "0:a{p} 5:b 7:a{!p}", "12", "0 F, 2 T, 5+ F"),
            (
                "until: the second just after the first",
                |b| b.until(b.p(), 0, 9, b.not(b.p())),
                "0:a{p} 5:a{!p} 7:b",
                "8",
                "0 T",
            ),
            ("the time at the bound is open", |b| b.eventually(0, 5, b.on(0)), "0:b", "5", "0 ."),
            ("what is beyond it is not", |b| b.eventually(0, 5, b.on(0)), "0:b", "6", "0 F, 1 ."),
        ],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn windows() {
    check(
        TimeModel::Points,
        &[
            (
                "a sample exactly so old is out",
                |b| b.equals(b.window(Count, 5, None), b.int(1)),
                "0:a 4:b 5:b 6:a",
                "0",
                "T T F T",
            ),
            (
                "equal times are equally old",
                |b| b.equals(b.window(Count, 1, None), b.int(2)),
                "0:a 0:a 0:b 1:b",
                "0",
                "F T T F",
            ),
            (
                "count of what is certain",
                |b| b.equals(b.window(Count, 9, Some(b.p())), b.int(1)),
                "0:a 1:a{p} 2:a{!p} 3:a{p=null}",
                "0",
                "F T T T",
            ),
            (
                "sum of none is 0",
                |b| b.equals(b.window(Sum, 3, Some(b.x(0))), b.int(0)),
                "0:b 1:a{x=2} 3:b 4:b",
                "0",
                "T F F T",
            ),
            (
                "mean",
                |b| b.equals(b.window(Mean, 9, Some(b.x(0))), b.float(1.5)),
                "0:b 1:a{x=1} 2:a{x=2}",
                "0",
                "? F T",
            ),
            (
                "min and max",
                |b| b.equals(b.window(Min, 3, Some(b.x(0))), b.window(Max, 2, Some(b.x(0)))),
                "0:a{x=2} 1:a{x=1} 2:a{x=1} 3:a{x=1} 9:b",
                "0",
                "T F T T ?",
            ),
            (
                "rate",
                |b| b.equals(b.window(Rate, 2_000_000_000, None), b.float(1.0)),
                "0:a 1s:a 2s:a 3s:b",
                "0",
                "F T T F",
            ),
        ],
    );
    check(
        TimeModel::Steps,
        &[
            (
                "the last steps",
                |b| b.equals(b.window(Count, 2, None), b.int(1)),
                "0:a 0:b 0:b 0:a 0:a",
                "0",
                "T T F T F",
            ),
            (
                "the present alone",
                |b| b.equals(b.window(Count, 1, None), b.int(1)),
                "0:a 0:b 0:a",
                "0",
                "T F T",
            ),
        ],
    );
    check(
        TimeModel::Dense,
        &[(
            "samples leave by themselves",
            |b| b.equals(b.window(Count, 5, None), b.int(1)),
            "0:b 1:a 3:a",
            "20",
            "0 F, 1 T, 3 F, 6 T, 8 F",
        )],
    );
}

#[test]
fn age_latency_and_jitter() {
    check(
        TimeModel::Dense,
        &[
            ("age is exact", |b| b.at_most(b.age(0), b.ns(3)), "0:b 1:a 2:b", "9", "0 ?, 1 T, 4+ F"),
            (
                "age the other way round",
                |b| b.compare(Comparison::Less, b.ns(3), b.age(0)),
                "0:a 9:a",
                "20",
                "0 F, 3+ T, 9 F, 12+ T",
            ),
            ("age is exactly so much", |b| b.equals(b.age(0), b.ns(3)), "0:a", "9", "0 F, 3 T, 3+ F"),
            (
                "an age that is a quantity is that of the last event",
                |b| b.at_most(b.age(0), b.add(Expr::If(b.p(), b.ns(3), b.ns(3)))),
                "0:a{p} 3:b 4:b",
                "9",
                "0 T, 4 F",
            ),
        ],
    );
    check(
        TimeModel::Points,
        &[
            ("age", |b| b.at_most(b.age(0), b.ns(3)), "0:b 1:a 4:b 5:b", "0", "? T T F"),
            ("latency", |b| b.at_most(b.latency(0), b.ns(3)), "0:a 1<3:a 2:b 5<9:a", "0", "? T T F"),
            ("jitter", |b| b.equals(b.jitter(0), b.ns(2)), "0:a 3:a 4:a 9:b 9:a", "0", "? ? T T F"),
        ],
    );
    check(
        TimeModel::Steps,
        &[("age is time, also in steps", |b| b.at_most(b.age(0), b.ns(3)), "0:a 3:b 4:b", "0", "T T F")],
    );
}
