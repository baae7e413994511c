//! Random properties.

use rondel_testkit::Random;

/// Syntax of a time model: bounds, and undefined operators.
#[derive(Clone, Copy, PartialEq)]
enum Model {
    Steps,
    Points,
    Dense,
}

struct Writer<'a> {
    numbers: &'a mut Random,
    model: Model,
    topics: usize,
}

/// A specification with some properties.
pub(crate) fn specification(numbers: &mut Random, topics: usize) -> String {
    let mut text: String =
        (0..topics).map(|i| format!("topic t{i} {{ x: float, ok: bool, k: int }}\n")).collect();
    let count = 1 + numbers.int(3);
    for i in 0..count {
        let model = numbers.pick(&[Model::Steps, Model::Points, Model::Dense, Model::Dense]);
        let mut writer = Writer { numbers, model, topics };
        text += &writer.property(i);
        text.push('\n');
    }
    text
}

impl Writer<'_> {
    fn property(&mut self, i: i64) -> String {
        let attribute = match self.model {
            Model::Steps => "@time(steps) ",
            Model::Points => "@time(points) ",
            Model::Dense => "@time(dense) ",
        };
        match self.numbers.int(12) {
            0 | 1 => {
                let until =
                    if self.numbers.one_in(3) { format!(" until {}", self.atom()) } else { String::new() };
                let formula = self.whole();
                let keys = if self.numbers.one_in(2) { "t0.k" } else { "(t0.k, t1.k)" };
                format!("{attribute}property p{i} for each k in {keys}{until} = {formula}")
            }
            2 => {
                let bounds = self.bounds();
                format!("{attribute}property p{i} = forall y. t1{{k: y}} -> once{bounds} t0{{k: y}}")
            }
            3 => self.machine(i, attribute),
            4 if self.model == Model::Dense => {
                let formula = self.past(1);
                format!("@interpolate(linear) property p{i} = {formula}")
            }
            _ => {
                let formula = self.whole();
                format!("{attribute}property p{i} = {formula}")
            }
        }
    }

    /// A machine. Most have messages that determine the state, whatever it was before.
    fn machine(&mut self, i: i64, attribute: &str) -> String {
        let is_dense = self.model == Model::Dense;
        let body = match self.numbers.int(if is_dense { 4 } else { 1 }) {
            0 => {
                let lasting = if is_dense && self.numbers.one_in(2) { " for 15 ms" } else { "" };
                format!("initial u u -> v when on(t0) and t0.ok v -> u when on(t1) error v{lasting}")
            }
            1 => {
                let (a, b) = (self.atom(), self.atom());
                format!("initial u u -> v when {a} v -> u when {b} v -> w after 20 ms w -> u when on(t0) error w")
            }
            2 => "initial u u -> v when on(t0) v -> u when on(t1) v -> w after 20 ms w -> u when on(t1) error w"
                .to_owned(),
            _ => "initial u u -> v when t0.x < 2.0 v -> u when t0.x >= 2.0 v -> w when t0.ok and t0.x < 2.0 \
                  w -> u when on(t1) error w for 10 ms"
                .to_owned(),
        };
        format!("{attribute}machine m{i} {{ {body} }}")
    }

    fn whole(&mut self) -> String {
        match self.numbers.int(4) {
            0 => {
                let (premise, ahead) = (self.past(1), self.ahead(1));
                format!("({premise}) -> {ahead}")
            }
            1 => self.ahead(2),
            _ => self.past(3),
        }
    }

    fn ahead(&mut self, depth: i64) -> String {
        let bounds = self.bounds();
        let of = |writer: &mut Self| if depth > 1 { writer.ahead(depth - 1) } else { writer.past(1) };
        match self.numbers.int(5) {
            0 => format!("eventually{bounds} ({})", of(self)),
            1 => format!("always{bounds} ({})", of(self)),
            2 => {
                let (a, b) = (self.past(1), of(self));
                format!("(({a}) until{bounds} ({b}))")
            }
            3 if self.model != Model::Dense => format!("next ({})", of(self)),
            _ => {
                let past = self.past(1);
                format!("(({past}) or eventually{bounds} ({}))", of(self))
            }
        }
    }

    fn past(&mut self, depth: i64) -> String {
        if depth == 0 || self.numbers.one_in(5) {
            return self.atom();
        }
        let bounds = self.bounds();
        let unbounded = self.numbers.one_in(8);
        let bounds = if unbounded { String::new() } else { bounds };
        let a = self.past(depth - 1);
        match self.numbers.int(12) {
            11 => format!("known(t{}.x) and ({a})", self.numbers.int(self.topics as i64)),
            0 | 1 => format!("once{bounds} ({a})"),
            2 | 3 => format!("historically{bounds} ({a})"),
            4 => {
                let b = self.past(depth - 1);
                format!("(({a}) since{bounds} ({b}))")
            }
            // In dense time it also depends on events of the same time on other topics.
            5 if self.model != Model::Dense => format!("previously ({a})"),
            6 => format!("not ({a})"),
            7 => {
                let b = self.past(depth - 1);
                format!("(({a}) or ({b}))")
            }
            8 => {
                let length = 1 + self.numbers.int(4);
                let length = if self.model == Model::Steps {
                    length.to_string()
                } else {
                    format!("{} ms", 5 * length)
                };
                let word = self.numbers.pick(&["stable", "debounce"]);
                format!("({word}({a}) for {length})")
            }
            9 => format!("hysteresis(t{}.x, 1.0, 3.0)", self.numbers.int(self.topics as i64)),
            _ => {
                let b = self.past(depth - 1);
                format!("(({a}) and ({b}))")
            }
        }
    }

    fn atom(&mut self) -> String {
        let t = self.numbers.int(self.topics as i64);
        let c = self.numbers.int(5);
        let over = match self.model {
            Model::Steps => (1 + self.numbers.int(6)).to_string(),
            _ => format!("{} ms", 5 + self.numbers.int(30)),
        };
        match self.numbers.int(12) {
            0 | 1 => format!("t{t}.x < {c}.0"),
            2 | 3 => format!("t{t}.ok"),
            4 | 5 => format!("on(t{t})"),
            6 if self.model != Model::Steps => format!("age(t{t}) < {} ms", 3 + self.numbers.int(20)),
            7 => format!("changed(t{t}.x)"),
            8 => format!("rising(t{t}.ok)"),
            9 => format!("count(t{t}) over {over} < {c}"),
            10 => format!("max(t{t}.x) over {over} < {c}.5"),
            _ => format!("prev(t{t}.x) < t{t}.x"),
        }
    }

    fn bounds(&mut self) -> String {
        let lower = if self.numbers.one_in(3) { self.numbers.int(4) } else { 0 };
        let upper = lower + 1 + self.numbers.int(4);
        match self.model {
            Model::Steps => format!("[{lower}, {upper}]"),
            _ => format!("[{} ms, {} ms]", 5 * lower, 5 * upper),
        }
    }
}
