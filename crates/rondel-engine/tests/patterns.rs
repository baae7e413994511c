//! The library of specification patterns agrees with its authors' definitions, scope by scope: random traces,
//! the engine, and the naive evaluator of the language.
//!
//! `RONDEL_SEED=17 cargo test -p rondel-engine --test suite patterns` runs one seed alone, `RONDEL_CASES`
//! multiplies them.

#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use crate::definition;

use definition::drive::drive;
use definition::timed::Delivery;
use definition::{Content, Event, Timed, verdicts};
use rondel_event::{Value, Verdict};
use rondel_spec::{ParseOptions, Sources, Spec, parse_sources};
use rondel_testkit::Random;

const NAMES: [&str; 5] = ["p", "s", "t", "q", "r"];

/// A truth; none if the trace ends before it is decided.
type Truth = Option<bool>;

/// A trace: where p, s, t hold, and where q and r delimit scopes.
struct Trace {
    columns: [Vec<bool>; 5],
    /// The limit of patterns that have one.
    limit: usize,
}

/// The requirement on a scope.
#[derive(Clone, Copy)]
enum Pattern {
    Absence,
    Universality,
    Existence,
    Precedence,
    Response,
    Chain,
    Recurrence,
}

impl Trace {
    fn len(&self) -> usize {
        self.columns[0].len()
    }

    fn has(&self, name: usize, at: usize) -> bool {
        self.columns[name][at]
    }

    /// Scopes that begin with q, and the r that ends each.
    fn scopes(&self) -> Vec<(usize, Option<usize>)> {
        let (mut scopes, mut open) = (Vec::new(), None);
        for at in 0..self.len() {
            if self.has(4, at) {
                scopes.extend(open.take().map(|begin| (begin, Some(at))));
            } else if self.has(3, at) && open.is_none() {
                open = Some(at);
            }
        }
        scopes.extend(open.map(|begin| (begin, None)));
        scopes
    }

    /// Whether the goal is met within the limit from here on, before r if `stops`.
    fn ahead(&self, from: usize, stops: bool, goal: impl Fn(usize) -> Truth) -> Truth {
        let mut missed = Some(false);
        for at in from..=from + self.limit {
            if at == self.len() {
                return None;
            }
            if stops && self.has(4, at) {
                return missed;
            }
            match goal(at) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => missed = None,
            }
        }
        missed
    }

    /// Whether a completed scope satisfies the pattern.
    fn scope(&self, pattern: Pattern, begin: usize, end: usize) -> bool {
        let some = |name, from, to| (from..to).any(|at| self.has(name, at));
        let all = |demand: &dyn Fn(usize) -> bool| (begin..end).all(demand);
        match pattern {
            Pattern::Absence => !some(0, begin, end),
            Pattern::Universality => all(&|at| self.has(0, at)),
            Pattern::Existence => some(0, begin, end),
            Pattern::Precedence => all(&|at| !self.has(1, at) || some(0, begin, at + 1)),
            Pattern::Response => all(&|at| !self.has(0, at) || some(1, at, end)),
            Pattern::Chain => all(&|at| {
                let answered = |first| self.has(1, first) && some(2, first, end);
                !self.has(0, at) || (at..end).any(answered)
            }),
            Pattern::Recurrence => all(&|at| at < begin + self.limit || some(0, at - self.limit, at + 1)),
        }
    }

    /// Whether a place of a scope satisfies the pattern, as far as it is decided there.
    fn place(&self, pattern: Pattern, begin: usize, at: usize, stops: bool) -> Truth {
        let ahead = |name: usize| self.ahead(at, stops, |at| Some(self.has(name, at)));
        match pattern {
            Pattern::Absence => Some(!self.has(0, at)),
            Pattern::Universality => Some(self.has(0, at)),
            Pattern::Existence if at == begin => ahead(0),
            Pattern::Precedence if self.has(1, at) => Some((begin..=at).any(|at| self.has(0, at))),
            Pattern::Response if self.has(0, at) => ahead(1),
            Pattern::Chain if self.has(0, at) => self.ahead(at, stops, |at| {
                if !self.has(1, at) {
                    return Some(false);
                }
                self.ahead(at, stops, |at| Some(self.has(2, at)))
            }),
            Pattern::Recurrence if at >= begin + self.limit => {
                Some((at - self.limit..=at).any(|at| self.has(0, at)))
            }
            _ => Some(true),
        }
    }

    /// Verdicts of a pattern that is judged at the ends of its scopes.
    fn judged(&self, pattern: Pattern, scopes: impl IntoIterator<Item = (usize, usize)>) -> Vec<Truth> {
        let mut truths = vec![Some(true); self.len()];
        for (begin, end) in scopes {
            truths[end] = Some(self.scope(pattern, begin, end));
        }
        truths
    }

    /// Verdicts of a pattern that is judged at every place of its scopes.
    fn judged_everywhere(
        &self,
        pattern: Pattern,
        scopes: impl IntoIterator<Item = (usize, usize)>,
        stops: bool,
    ) -> Vec<Truth> {
        let mut truths = vec![Some(true); self.len()];
        for (begin, end) in scopes {
            for (at, truth) in truths.iter_mut().enumerate().take(end).skip(begin) {
                *truth = self.place(pattern, begin, at, stops);
            }
        }
        truths
    }

    /// A formula for each pattern and scope, and its truth at each place.
    fn expected(&self) -> Vec<(String, Vec<Truth>)> {
        let (len, limit) = (self.len(), self.limit);
        let first = |name: usize| (0..len).find(|&at| self.has(name, at));
        let mut all = Vec::new();
        for (pattern, name, arguments, within, always) in [
            (Pattern::Absence, "absence", "m.p", "within", false),
            (Pattern::Universality, "universality", "m.p", "within", false),
            (Pattern::Existence, "existence", "m.p", "within", false),
            (Pattern::Precedence, "precedence", "m.p, m.s", "within", false),
            (Pattern::Response, "response", "m.p, m.s", "within", false),
            (Pattern::Chain, "response_chain", "m.p, m.s, m.t", "within", false),
            (Pattern::Recurrence, "recurrence", "m.p", "every", true),
        ] {
            // The limit applies where nothing else ends the scope, and everywhere if it belongs to the
            // pattern.
            let has_limit = matches!(pattern, Pattern::Existence | Pattern::Response | Pattern::Chain);
            let limited = |is_open: bool| match always || has_limit && is_open {
                true => format!(", {within}: {limit}"),
                false => String::new(),
            };
            let scopes = self.scopes();
            let ended: Vec<_> =
                scopes.iter().filter_map(|&(begin, end)| end.map(|end| (begin, end))).collect();
            let open: Vec<_> = scopes.iter().map(|&(begin, end)| (begin, end.unwrap_or(len))).collect();
            let (after, before) = ("after: m.q", "before: m.r");
            all.extend([
                (
                    format!("{name}({arguments}{})", limited(true)),
                    self.judged_everywhere(pattern, [(0, len)], false),
                ),
                (
                    format!("{name}_before({arguments}, {before}{})", limited(false)),
                    self.judged(pattern, first(4).map(|end| (0, end))),
                ),
                (
                    format!("{name}_after({arguments}, {after}{})", limited(true)),
                    self.judged_everywhere(pattern, first(3).map(|begin| (begin, len)), false),
                ),
                (
                    format!("{name}_between({arguments}, {after}, {before}{})", limited(false)),
                    self.judged(pattern, ended),
                ),
                (
                    format!("{name}_after_until({arguments}, {after}, {before}{})", limited(true)),
                    self.judged_everywhere(pattern, open, true),
                ),
            ]);
        }
        let p = |at: usize| self.has(0, at);
        let each = |truth: &dyn Fn(usize) -> Truth| (0..len).map(truth).collect();
        let least = |at: usize| match p(at) && (at == 0 || !p(at - 1)) {
            true => self.ahead(at, false, |at| Some(!p(at))).map(|ends| !ends),
            false => Some(true),
        };
        let most = |at: usize| Some(at < limit || !(at - limit..=at).all(p));
        let lately = |at: usize| at.saturating_sub(limit)..=at;
        let invariant = |at: usize| Some(!lately(at).any(|at| self.has(3, at)) || p(at));
        let ready = |at: usize| Some(!self.has(4, at) || lately(at).all(p));
        all.extend([
            (format!("minimum_duration(m.p, least: {limit})"), each(&least)),
            (format!("maximum_duration(m.p, most: {limit})"), each(&most)),
            (format!("invariance(m.q, m.p, lasts: {limit})"), each(&invariant)),
            (format!("readiness(m.r, m.p, lasted: {limit})"), each(&ready)),
        ]);
        all
    }
}

/// A specification with a property for each formula.
fn specification(formulas: impl Iterator<Item = String>) -> Spec {
    let mut text = "use std.patterns\ntopic m { p: bool, s: bool, t: bool, q: bool, r: bool }\n".to_owned();
    for (i, formula) in formulas.enumerate() {
        text += &format!("property p{i} = {formula}\n");
    }
    let sources = Sources::alone("patterns", &text);
    let outcome = parse_sources(&sources, &ParseOptions::default(), None);
    let shown = outcome.render_in(&sources, false);
    outcome.spec.unwrap_or_else(|| panic!("{shown}"))
}

fn random(numbers: &mut Random) -> Trace {
    let len = 1 + numbers.index(40);
    let mut column = || {
        let rarity = 2 + numbers.index(7);
        let often = numbers.index(4) == 0;
        (0..len).map(|_| (numbers.index(rarity) == 0) != often).collect::<Vec<bool>>()
    };
    let columns = [(); 5].map(|()| column());
    Trace { columns, limit: 1 + numbers.index(5) }
}

#[test]
fn patterns_agree_with_authors_definitions() {
    // Number of places per formula at which it was violated, open and satisfied.
    let mut seen = vec![[0; 3]; 39];
    for seed in rondel_testkit::seeds("patterns", 400) {
        let mut numbers = Random::new(seed);
        let trace = random(&mut numbers);
        let expected = trace.expected();
        let spec = specification(expected.iter().map(|(formula, _)| formula.clone()));
        let event = |at: usize| {
            let value = |name: usize| Content::Value(Value::Bool(trace.has(name, at)));
            Event { topic: 0, fields: (0..5).map(|name| (NAMES[name], value(name))).collect() }
        };
        let events: Vec<Event> = (0..trace.len()).map(event).collect();
        let naive = verdicts(&spec, &events);
        let timed =
            |(at, event): (usize, &Event)| Timed { time: at as i64, arrival: None, event: event.clone() };
        let timed: Vec<Timed> = events.iter().enumerate().map(timed).collect();
        let delivery = Delivery {
            cuts: (0..3).map(|_| 1 + numbers.index(9)).collect(),
            advances: (0..3).map(|_| numbers.index(8) as u8).collect(),
        };
        let mut engine = vec![vec![None; trace.len()]; expected.len()];
        for given in drive(&spec, &timed, trace.len() as i64 - 1, &delivery) {
            let about = given.report.about.unwrap_or(given.report.time).as_nanos();
            engine[given.report.property as usize][about as usize] = Some(given.report.verdict);
        }
        for (i, (formula, truths)) in expected.iter().enumerate() {
            for (at, truth) in truths.iter().enumerate() {
                let verdict = match truth {
                    Some(true) => Verdict::Satisfied,
                    Some(false) => Verdict::Violated,
                    None => Verdict::Inconclusive,
                };
                let found = (naive[i][at], engine[i][at]);
                assert_eq!(
                    found,
                    (verdict, Some(verdict)),
                    "seed {seed}: {formula} at {at} of {:?}",
                    NAMES.iter().zip(&trace.columns).collect::<Vec<_>>()
                );
                seen[i][usize::from(*truth == Some(true)) * 2 + usize::from(truth.is_none())] += 1;
            }
        }
    }
    println!("{seen:?} places violated, open and satisfied");
    if !rondel_testkit::is_replay() {
        assert!(seen.iter().all(|[violated, _, satisfied]| *violated > 20 && *satisfied > 20), "{seen:?}");
    }
}
