//! Random formulas of each operator, in each time model.

use rondel_testkit::Random;

/// A time model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Model {
    Dense,
    Steps,
    Points,
}

/// An operator under test.
pub(crate) struct Operator {
    pub(crate) model: Model,
    pub(crate) name: &'static str,
    /// Limits of late verdicts, per thousand certain ones: those inconclusive for more than one time unit
    /// (one message in steps and points) after all completions agree. First with the notice before the later
    /// messages, then with the notice after them.
    pub(crate) late: [u64; 2],
}

const fn dense(name: &'static str, late: [u64; 2]) -> Operator {
    Operator { model: Model::Dense, name, late }
}

const fn steps(name: &'static str, late: [u64; 2]) -> Operator {
    Operator { model: Model::Steps, name, late }
}

const fn points(name: &'static str, late: [u64; 2]) -> Operator {
    Operator { model: Model::Points, name, late }
}

/// The operators under test.
///
/// Reasons for verdicts that are later than the completions: three-valued logic ignores that two subformulas
/// depend on the same value (`once-age` of a topic without messages), and that messages have gaps (`hold`,
/// `steady`, `since` over `on(a)`). Windows other than counts wait for their whole length. A machine waits
/// for a message that leads from every state into one. A monitor with a late notice no longer has the state
/// before the span.
pub(crate) const OPERATORS: &[Operator] = &[
    dense("age", [0, 30]),
    dense("once-age", [50, 540]),
    dense("rate-age", [0, 630]),
    dense("on", [0, 0]),
    dense("field", [0, 0]),
    dense("once", [0, 30]),
    dense("historically", [20, 110]),
    dense("since", [10, 160]),
    dense("unbounded", [0, 70]),
    dense("count", [10, 110]),
    dense("rate", [0, 70]),
    dense("window", [60, 210]),
    dense("statistics", [400, 350]),
    dense("prev", [0, 300]),
    dense("steady", [30, 110]),
    dense("hold", [0, 20]),
    dense("nested", [60, 220]),
    dense("machine", [100, 50]),
    dense("after", [400, 470]),
    dense("machines", [710, 940]),
    steps("on", [20, 0]),
    steps("field", [0, 0]),
    steps("once", [70, 50]),
    steps("historically", [50, 40]),
    steps("since", [50, 30]),
    steps("unbounded", [50, 90]),
    steps("count", [180, 150]),
    steps("window", [80, 80]),
    steps("statistics", [630, 1040]),
    steps("prev", [160, 190]),
    steps("steady", [200, 150]),
    steps("nested", [210, 140]),
    steps("machines", [670, 770]),
    points("on", [40, 20]),
    points("field", [0, 0]),
    points("once", [80, 50]),
    points("historically", [80, 50]),
    points("since", [140, 120]),
    points("unbounded", [70, 250]),
    points("count", [90, 80]),
    points("rate", [130, 160]),
    points("window", [70, 90]),
    points("statistics", [420, 400]),
    points("prev", [110, 90]),
    points("steady", [150, 340]),
    points("nested", [120, 330]),
    points("machines", [690, 660]),
];

/// A random property `p`.
pub(crate) fn property(numbers: &mut Random, operator: &Operator) -> String {
    Writer { numbers, model: operator.model }.property(operator.name)
}

struct Writer<'a> {
    numbers: &'a mut Random,
    model: Model,
}

impl Writer<'_> {
    /// A number of units, or of steps.
    fn length(&self, units: i64) -> String {
        if self.model == Model::Steps { units.to_string() } else { format!("{} ms", 10 * units) }
    }

    fn duration(&mut self) -> String {
        let units = 1 + self.numbers.int(8);
        self.length(units)
    }

    fn bounds(&mut self) -> String {
        let lower = if self.numbers.one_in(3) { 1 + self.numbers.int(3) } else { 0 };
        let upper = lower + 1 + self.numbers.int(7);
        format!("[{}, {}]", self.length(lower), self.length(upper))
    }

    fn topic(&mut self) -> &'static str {
        self.numbers.pick(&["a", "a", "b"])
    }

    fn atom(&mut self) -> String {
        let topic = self.topic();
        match self.numbers.int(4) {
            0 | 1 => format!("on({topic})"),
            2 => format!("{topic}.x < {}", 1 + self.numbers.int(4)),
            _ => format!("{topic}.k"),
        }
    }

    fn counted(&mut self) -> String {
        let (topic, over) = (self.topic(), self.duration());
        let comparison = self.numbers.pick(&["<", "<=", ">", ">="]);
        format!("count({topic}) over {over} {comparison} {}", self.numbers.int(5))
    }

    fn aged(&mut self) -> String {
        let (topic, bound) = (self.topic(), self.duration());
        let comparison = self.numbers.pick(&["<", "<=", ">", ">="]);
        format!("age({topic}) {comparison} {bound}")
    }

    fn past(&mut self, depth: i64) -> String {
        if depth == 0 {
            return match self.numbers.int(6) {
                0 if self.model == Model::Dense => self.aged(),
                1 => self.counted(),
                _ => self.atom(),
            };
        }
        let a = self.past(depth - 1);
        let bounds = if self.numbers.one_in(4) { String::new() } else { self.bounds() };
        match self.numbers.int(6) {
            0 => format!("once{bounds} ({a})"),
            1 => format!("historically{bounds} ({a})"),
            2 => format!("(({a}) since{bounds} ({}))", self.past(depth - 1)),
            3 => format!("(({a}) or ({}))", self.past(depth - 1)),
            4 => format!("(({a}) and ({}))", self.past(depth - 1)),
            _ => format!("not ({a})"),
        }
    }

    fn property(&mut self, operator: &str) -> String {
        let formula = match operator {
            "age" => self.aged(),
            "once-age" => format!("once on(a) -> {}", self.aged()),
            "rate-age" => {
                let (over, bound) = (self.duration(), self.duration());
                format!("once[{over},] on(a) -> rate(a) over {over} >= 20 and age(a) <= {bound}")
            }
            "on" => format!("not on({})", self.topic()),
            "field" => self.numbers.pick(&["a.x < 3", "a.k", "a.x < b.x", "b.x + 1 > 2"]).to_owned(),
            "once" => format!("once{} {}", self.bounds(), self.atom()),
            "historically" => format!("historically{} {}", self.bounds(), self.atom()),
            "since" => format!("({}) since{} ({})", self.atom(), self.bounds(), self.atom()),
            "unbounded" => match self.numbers.int(4) {
                0 => format!("once {}", self.atom()),
                1 => format!("historically {}", self.atom()),
                2 => format!("once[{},] {}", self.duration(), self.atom()),
                _ => format!("({}) since ({})", self.atom(), self.atom()),
            },
            "count" => self.counted(),
            "rate" => {
                let over = self.duration();
                let comparison = self.numbers.pick(&["<", "<=", ">", ">="]);
                format!("rate(a) over {over} {comparison} {}", 10 * self.numbers.int(8))
            }
            "window" => {
                let (function, over) =
                    (self.numbers.pick(&["max", "min", "sum", "mean", "last"]), self.duration());
                format!("{function}(a.x) over {over} < {}", 1 + self.numbers.int(4))
            }
            "statistics" => self.statistics(),
            "prev" => self
                .numbers
                .pick(&["changed(a.x)", "rising(a.k)", "prev(a.x) < a.x", "not falling(b.k)"])
                .to_owned(),
            "steady" => match self.numbers.int(2) {
                0 => format!("(stable({}) for {})", self.atom(), self.duration()),
                _ => "hysteresis(a.x, 1, 3)".to_owned(),
            },
            "hold" => {
                let attribute = match self.numbers.int(3) {
                    0 => "@latch".to_owned(),
                    1 => format!("@hold({})", self.duration()),
                    _ => format!("@warmup({})", self.duration()),
                };
                return format!("@time(dense) {attribute} property p = {}", self.atom());
            }
            "machine" => {
                return "@time(dense) machine p { initial u u -> v when on(a) v -> u when on(b) error v }"
                    .to_owned();
            }
            "after" => {
                let after = self.duration();
                return format!(
                    "@time(dense) machine p {{ initial u u -> u when on(a) u -> v after {after} v -> u when on(a) error v }}"
                );
            }
            "machines" => return self.machine(),
            _ => self.past(2),
        };
        format!("@time({}) property p = {formula}", self.model())
    }

    fn model(&self) -> &'static str {
        match self.model {
            Model::Dense => "dense",
            Model::Steps => "steps",
            Model::Points => "points",
        }
    }

    fn statistics(&mut self) -> String {
        let over = self.duration();
        let (full, bound) = (self.numbers.pick(&["", "", "full "]), self.numbers.int(5));
        let comparison = self.numbers.pick(&["<", ">="]);
        let functions = [
            "median(a.x)",
            "percentile(a.x, 90)",
            "stddev(a.x)",
            "distinct(a.x)",
            "first(a.x)",
            "max(a.x)",
            "mean(a.x)",
            "count(a.k)",
            "derivative(a.x)",
            "integral(a.x)",
        ];
        let functions = &functions[..if self.model == Model::Steps { 8 } else { 10 }];
        format!("{} over {full}{over} {comparison} {bound}", self.numbers.pick(functions))
    }

    fn machine(&mut self) -> String {
        let states = ["u", "v", "w"];
        let mut text = format!("@time({}) machine p {{ initial u; state u, v, w;", self.model());
        for place in 0..2 + self.numbers.int(3) {
            // The error state is reachable.
            let (from, to) = match place {
                0 => ("u", self.numbers.pick(&["v", "w"])),
                _ => (self.numbers.pick(&states), self.numbers.pick(&states)),
            };
            let guard = match self.numbers.int(5) {
                0 => format!("on(a) and a.x < {}", 1 + self.numbers.int(4)),
                1 => format!("on(a) and {}a.k", self.numbers.pick(&["", "not "])),
                2 => format!("{}a.k", self.numbers.pick(&["", "not "])),
                _ => format!("on({})", self.topic()),
            };
            let within = match self.numbers.int(4) {
                0 => format!(" within {}", self.duration()),
                1 => format!(" after {}", self.duration()),
                _ => String::new(),
            };
            let guard = if within.starts_with(" after") && self.numbers.one_in(2) {
                String::new()
            } else {
                format!(" when {guard}")
            };
            text += &format!(" {from} -> {to}{guard}{within};");
        }
        text + " error v }"
    }
}
