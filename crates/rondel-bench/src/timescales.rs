//! The Timescales benchmark: ten families of past-time properties, three bounds each, and traces on
//! which they hold.
//!
//! Families and formulas are those of Ulus, "Timescales: A Benchmark Generator for MTL Monitoring
//! Tools" (RV 2019), in the form of the study that Rondel is compared with. The generator is Rondel's
//! own; a trace is a function of family, bound, length and seed.

use std::io::{self, Write};

/// One property family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// No p for a while after q.
    AbsentAQ,
    /// No p between q and r.
    AbsentBQR,
    /// No p for a while before r.
    AbsentBR,
    /// Always p for a while after q.
    AlwaysAQ,
    /// Always p between q and r.
    AlwaysBQR,
    /// Always p for a while before r.
    AlwaysBR,
    /// p again and again between q and r.
    RecurBQR,
    /// p again and again.
    RecurGLB,
    /// s answers p between q and r.
    RespondBQR,
    /// s answers p.
    RespondGLB,
}

/// A family with its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Property {
    /// The family.
    pub family: Family,
    /// The nearer bound, in steps.
    pub lower: u64,
    /// The farther bound, in steps.
    pub upper: u64,
}

const FAMILIES: [Family; 10] = [
    Family::AbsentAQ,
    Family::AbsentBQR,
    Family::AbsentBR,
    Family::AlwaysAQ,
    Family::AlwaysBQR,
    Family::AlwaysBR,
    Family::RecurBQR,
    Family::RecurGLB,
    Family::RespondBQR,
    Family::RespondGLB,
];

const BOUNDS: [(u64, u64); 3] = [(3, 10), (30, 100), (300, 1000)];

/// Returns the thirty properties, family by family.
pub fn all() -> impl Iterator<Item = Property> {
    FAMILIES.into_iter().flat_map(|family| BOUNDS.map(|(lower, upper)| Property { family, lower, upper }))
}

impl Property {
    /// Returns the name: family and farther bound, as in `RecurBQR100`.
    pub fn name(self) -> String {
        format!("{:?}{}", self.family, self.upper)
    }

    /// Returns the property of this name.
    pub fn by_name(name: &str) -> Option<Property> {
        all().find(|p| p.name().eq_ignore_ascii_case(name))
    }

    /// Returns the formula in Reelay's format.
    pub fn formula(self) -> String {
        let (l, u) = (self.lower, self.upper);
        let between = |x: &str| format!("historically(({{r}} && !{{q}} && once{{q}}) -> {x})");
        let respond = format!("({{s}} -> once[{l}:{u}]{{p}}) and not((not{{s}}) since[{u}:]{{p}})");
        match self.family {
            Family::AbsentAQ => format!("historically((once[:{u}]{{q}}) -> ((not{{p}}) since {{q}}))"),
            Family::AbsentBR => format!("historically({{r}} -> historically[:{u}](not{{p}}))"),
            // As published: the parenthesis closes before the implication.
            Family::AbsentBQR => {
                format!("historically({{r}} && !{{q}} && once{{q}}) -> ((not{{p}}) since[{l}:{u}]{{q}})")
            }
            Family::AlwaysAQ => format!("historically((once[:{u}]{{q}}) -> ({{p}} since {{q}}))"),
            Family::AlwaysBR => format!("historically({{r}} -> historically[:{u}]{{p}})"),
            Family::AlwaysBQR => between(&format!("({{p}} since[{l}:{u}]{{q}})")),
            Family::RecurBQR => between(&format!("((once[:{u}]({{p}} or {{q}})) since {{q}})")),
            Family::RespondBQR => between(&format!("(({respond}) since {{q}})")),
            Family::RecurGLB => format!("historically(once[:{u}]{{p}})"),
            Family::RespondGLB => format!("historically({respond})"),
        }
    }

    /// Returns the propositions of a line, in their order.
    fn propositions(self) -> &'static [u8] {
        match self.family {
            Family::AbsentAQ | Family::AlwaysAQ => b"qp",
            Family::AbsentBR | Family::AlwaysBR => b"rp",
            Family::RecurGLB => b"p",
            Family::RespondGLB => b"sp",
            Family::RespondBQR => b"qpsr",
            Family::AbsentBQR | Family::AlwaysBQR | Family::RecurBQR => b"qpr",
        }
    }

    /// Writes a trace of `length` lines on which the property holds at every step.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write_trace(self, length: u64, seed: u64, out: &mut impl Write) -> io::Result<()> {
        self.write_condensed(length, seed, 1, out).map(drop)
    }

    /// Writes the same trace condensed: of successive equal lines the first, and then one in `condensation`. Returns the
    /// number of lines.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write_condensed(
        self,
        length: u64,
        seed: u64,
        condensation: u64,
        out: &mut impl Write,
    ) -> io::Result<u64> {
        let mut trace = Trace {
            out,
            propositions: self.propositions(),
            time: 0,
            length,
            random: Random(seed),
            condensation,
            last: None,
            left_out: 0,
            written: 0,
        };
        while trace.time < length {
            self.block(&mut trace)?;
        }
        Ok(trace.written)
    }

    /// Writes one block: the pattern of the family once.
    fn block<W: Write>(self, t: &mut Trace<'_, W>) -> io::Result<()> {
        let (l, u) = (self.lower, self.upper);
        let always = matches!(self.family, Family::AlwaysAQ | Family::AlwaysBQR | Family::AlwaysBR);
        let clean = if always { b"p".as_slice() } else { b"" };
        match self.family {
            Family::AbsentAQ | Family::AlwaysAQ => {
                t.line(if always { b"qp" } else { b"q" })?;
                t.lines(u, clean)?;
                t.random_lines(u)
            }
            Family::AbsentBR | Family::AlwaysBR => {
                t.random_lines(u)?;
                t.lines(u, clean)?;
                t.line(if always { b"rp" } else { b"r" })
            }
            Family::AbsentBQR | Family::AlwaysBQR => {
                t.line(b"q")?;
                let between = t.random.within(l, u - 1);
                t.lines(between, clean)?;
                t.line(if always { b"rp" } else { b"r" })?;
                t.random_lines(1)
            }
            Family::RecurGLB => {
                // The first p is at the first line: it has none before it.
                let gap = if t.time == 0 { 1 } else { t.random.within(1, u) };
                t.lines(gap - 1, b"")?;
                t.line(b"p")
            }
            Family::RecurBQR => {
                t.line(b"q")?;
                for _ in 0..t.random.within(1, 7) {
                    let gap = t.random.within(1, u);
                    t.lines(gap - 1, b"")?;
                    t.line(b"p")?;
                }
                t.line(b"r")?;
                t.random_lines(1)
            }
            Family::RespondGLB => t.response(l, u),
            Family::RespondBQR => {
                t.line(b"q")?;
                for _ in 0..t.random.within(1, 7) {
                    t.response(l, u)?;
                }
                t.line(b"r")?;
                // Not p: it would wait for its own answer.
                t.line(b"")
            }
        }
    }
}

/// A trace that is being written.
struct Trace<'w, W> {
    out: &'w mut W,
    propositions: &'static [u8],
    time: u64,
    length: u64,
    random: Random,
    condensation: u64,
    /// The propositions that held on the line before, as bits.
    last: Option<u8>,
    /// The number of lines left out since the last one written.
    left_out: u64,
    written: u64,
}

impl<W: Write> Trace<'_, W> {
    /// Writes one line on which the propositions `held` are true and the others false.
    fn line(&mut self, held: &[u8]) -> io::Result<()> {
        if self.time == self.length {
            return Ok(());
        }
        let truths = self.propositions.iter().fold(0, |bits, p| bits << 1 | u8::from(held.contains(p)));
        if self.last == Some(truths) && self.left_out + 1 < self.condensation {
            self.left_out += 1;
            self.time += 1;
            return Ok(());
        }
        (self.last, self.left_out) = (Some(truths), 0);
        self.written += 1;
        write!(self.out, "{{\"time\": {}", self.time)?;
        for &proposition in self.propositions {
            write!(self.out, ", \"{}\": {}", proposition as char, held.contains(&proposition))?;
        }
        self.time += 1;
        self.out.write_all(b"}\n")
    }

    fn lines(&mut self, count: u64, held: &[u8]) -> io::Result<()> {
        (0..count).try_for_each(|_| self.line(held))
    }

    /// Writes lines on which p is random and nothing else holds.
    fn random_lines(&mut self, count: u64) -> io::Result<()> {
        (0..count).try_for_each(|_| {
            let p = self.random.next() & 1 == 1;
            self.line(if p { b"p" } else { b"" })
        })
    }

    /// Writes p, and s between l+1 and u lines later.
    fn response(&mut self, lower: u64, upper: u64) -> io::Result<()> {
        self.line(b"p")?;
        let after = self.random.within(lower + 1, upper);
        self.lines(after - 1, b"")?;
        self.line(b"s")
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same on every machine and in every version, as
/// traces must be.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns a sequence of its own for each seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number of `low..=high`. The ranges are tiny, so the remainder's bias is too.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rondel_decode::lines::{Lines, TraceTopic};
    use rondel_engine::{Monitor, Program};
    use rondel_event::{Block, TimeUnit, Verdict};

    use super::*;

    /// Returns the number of verdicts on a trace, and the number of those that are not satisfied.
    fn run(property: Property, trace: &[u8]) -> (u64, u64) {
        let spec = rondel_spec::parse_rye(&property.formula(), None, "p").spec.unwrap();
        let program = Arc::new(Program::compile(&spec).unwrap());
        let topic = TraceTopic::new(vec![], program.projections()[0].clone());
        let mut lines = Lines::new(&[topic], true, TimeUnit::Seconds);
        let mut monitor = Monitor::new(Arc::clone(&program));
        monitor.report_every(true);
        let mut block = Block::new(program.layout());
        let (mut at, mut failed) = (0, 0);
        while at < trace.len() {
            at = lines.decode(trace, at, trace.len(), &mut block).unwrap();
            failed += monitor.step(&block).iter().filter(|r| r.verdict != Verdict::Satisfied).count();
            block.clear();
        }
        (monitor.position(), failed as u64)
    }

    #[test]
    fn every_property_holds_on_its_own_trace() {
        for property in all() {
            let mut trace = Vec::new();
            property.write_trace(20_000, 7, &mut trace).unwrap();
            assert_eq!(run(property, &trace), (20_000, 0), "{}", property.name());
        }
    }

    #[test]
    fn a_broken_trace_is_caught() {
        // AbsentBQR, as published, cannot fail: its antecedent is a `historically`.
        for property in all().filter(|p| p.family != Family::AbsentBQR) {
            let mut trace = Vec::new();
            property.write_trace(20_000, 7, &mut trace).unwrap();
            let text = String::from_utf8(trace).unwrap();
            let broken = match property.family {
                Family::AbsentAQ | Family::AbsentBR => text.replace("\"p\": false", "\"p\": true"),
                _ => text.replace("\"p\": true", "\"p\": false"),
            };
            assert!(run(property, broken.as_bytes()).1 > 0, "{}", property.name());
        }
    }

    #[test]
    fn lines_look_as_the_others_write_them() {
        let mut trace = Vec::new();
        Property::by_name("AbsentBQR10").unwrap().write_trace(1, 0, &mut trace).unwrap();
        assert_eq!(
            String::from_utf8(trace).unwrap(),
            "{\"time\": 0, \"q\": true, \"p\": false, \"r\": false}\n"
        );
    }
}
