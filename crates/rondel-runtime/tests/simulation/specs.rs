//! Monitored specifications.

use std::sync::{Arc, LazyLock};

use rondel_engine::Program;
use rondel_runtime::align::{Division, divide, together};
use rondel_spec::Spec;

/// A specification and the parts that it can be monitored in.
pub(crate) struct Watched {
    pub(crate) topics: usize,
    /// Divisions, each with only the topics that it needs.
    pub(crate) divided: Vec<(Division, Arc<Program>)>,
    /// For sets: properties over joined events, and properties with parameters.
    pub(crate) joined: Vec<(Division, Arc<Program>)>,
}

/// Number of topics, and the properties over them.
const TEXTS: &[(usize, &str)] = &[
    (
        1,
        "property near = t0.ok -> once[0, 3] t0.x < 2.0
        property ahead = on(t0) -> eventually[1, 3] t0.ok
        property alive = age(t0) <= 12 ms
        property measured = mean(t0.x) over 30 ms < 2.0 or count(t0) over 30 ms > 4
        property keyed for each k in t0.k = t0.ok -> not previously once[0, 4] t0.ok",
    ),
    (
        2,
        "property answered = t1.ok -> once[0, 20 ms] t0.ok
        property will_be = rising(t0.ok) -> eventually[0, 15 ms] t1.ok
        property soon = on(t0) -> eventually[2 ms, 25 ms] on(t1)
        @time(points) property at_points = on(t1) -> (not t0.ok) until[0, 20 ms] on(t0)
        @time(points) property lately = historically[1 ms, 18 ms] (t0.x < 3.0)
        property followed = on(t1) -> next (on(t0) or t1.ok)
        property served for each k in (t0.k, t1.k) until t1.ok = on(t0) -> eventually[0, 30 ms] on(t1)
        machine work {
            initial idle
            idle -> busy when t0.ok
            busy -> idle when t1.ok within 20 ms
            busy -> late after 20 ms
            late -> idle when on(t1) and not t1.ok
            error late while t0.x > 1.0 for 5 ms
        }
        property while_busy = in(work, busy) -> t0.x < 3.5",
    ),
    (
        3,
        "property three = t2.x - t1.x < t0.x + 2.0
        @robust @time(dense) property sums = t0.x + t1.x + t2.x < 6.0
        property window = max(t0.x) over 25 ms - min(t1.x) over 25 ms < 3.0
        property held = (t0.ok since[0, 30 ms] on(t1)) or t2.ok
        property stays = on(t2) -> always[0, 20 ms] t0.x < 3.5
        property keyed for each k in (t0.k, t2.k) = on(t2) -> once[0, 25 ms] (on(t0) and t1.ok)
        property related = forall y. t2{k: y} -> once[0, 30 ms] t0{k: y}",
    ),
    (
        4,
        "property gathered = on(t3) -> once[0, 30 ms] on(t0) and once[0, 30 ms] on(t1) and once[0, 30 ms] on(t2)
        @time(dense) property settled = changed(t3.k) -> t1.x < 3.0
        @time(points) property rate = rate(t2) over 50 ms < 200.0
        property in_turn = on(t1) -> once[1, 6] on(t2)
        property delayed = rising(t0.ok) -> eventually[5 ms, 40 ms] (t1.ok and t2.ok)",
    ),
    (
        6,
        "property of_all = t0.x + t1.x + t2.x + t3.x + t4.x + t5.x < 16.0
        @time(dense) property all_alive =
            age(t0) < 90 ms and age(t1) < 90 ms and age(t2) < 90 ms and age(t3) < 90 ms and age(t4) < 90 ms
        property chained = on(t5) -> once[0, 20 ms] (on(t4) and once[0, 20 ms] on(t3))
        property ends = on(t0) -> eventually[0, 60 ms] on(t5)
        property served for each k in (t1.k, t2.k, t4.k) = on(t1) -> eventually[0, 50 ms] (on(t2) or on(t4))
        @time(points) property counted = count(t1.ok or t3.ok) over 40 ms < 6",
    ),
];

fn parts(divisions: Vec<Division>) -> Vec<(Division, Arc<Program>)> {
    let program = |division: &Division| Arc::new(Program::compile(&division.spec).unwrap());
    divisions.into_iter().map(|division| (program(&division), division)).map(|(p, d)| (d, p)).collect()
}

/// All monitored specifications.
pub(crate) static WATCHED: LazyLock<Vec<Watched>> = LazyLock::new(|| {
    let watched = |(topics, text): &(usize, &str)| {
        let declared: String =
            (0..*topics).map(|i| format!("topic t{i} {{ x: float, ok: bool, k: int }}\n")).collect();
        let outcome = rondel_spec::parse(&format!("{declared}{text}"));
        let spec: Spec = outcome.spec.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics));
        let mut divided = parts(divide(&spec));
        divided.extend(parts(together(&spec, false)));
        Watched { topics: *topics, divided, joined: parts(together(&spec, true)) }
    };
    TEXTS.iter().map(watched).collect()
});
