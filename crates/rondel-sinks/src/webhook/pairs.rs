//! Violations of instances that have not ended: which verdicts begin and end one.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use crate::entry::{RunKey, Truth, VerdictEntry};

/// Largest number of instances in memory.
const LARGEST: usize = 1 << 16;

/// Open violations by a hash of their instance.
#[derive(Default)]
pub(super) struct Pairs {
    open: HashMap<(u64, u64), String>,
    hashers: (RandomState, RandomState),
    /// Whether violations that another one mutes are left out.
    skips_muted: bool,
    run: RunKey,
    lap: u32,
    /// Whether violations may be open that are not known: of an earlier run, or because there are too many.
    may_be_more: bool,
    /// Instances that have no open violation, while others may have an unknown one.
    closed: HashSet<(u64, u64)>,
}

/// Relation of a verdict to the violations of its instance.
pub(super) struct Link {
    instance: (u64, u64),
    /// Id of the verdict that began the violation, if it is known.
    pub(super) begin: Option<String>,
    /// Whether it is violated, or ends a violation.
    pub(super) is_part: bool,
}

impl Pairs {
    pub(super) fn new(skips_muted: bool) -> Pairs {
        Pairs { skips_muted, ..Pairs::default() }
    }

    /// A run begins. It may find violations of an earlier run ended if it resumes from a snapshot.
    pub(super) fn begin(&mut self, run: RunKey, resumes: bool) {
        if !resumes {
            self.open.clear();
        }
        self.closed.clear();
        (self.run, self.lap, self.may_be_more) = (run, 0, resumes);
    }

    /// Relates a verdict with this id, without a change.
    pub(super) fn link(&self, verdict: &VerdictEntry<'_>, id: &str) -> Link {
        let instance = (verdict.property, verdict.parameters);
        let instance = (self.hashers.0.hash_one(instance), self.hashers.1.hash_one(instance));
        // A new lap begins without violations.
        let open = if self.is_new_lap(verdict) { None } else { self.open.get(&instance) };
        match verdict.verdict {
            Truth::Violated => {
                let begin = Some(open.map_or(id, String::as_str).to_owned());
                Link { instance, begin, is_part: !self.skips(verdict) }
            }
            Truth::Satisfied => {
                let is_unknown = self.may_be_more && !self.closed.contains(&instance);
                Link { instance, begin: open.cloned(), is_part: open.is_some() || is_unknown }
            }
            Truth::Inconclusive => Link { instance, begin: open.cloned(), is_part: false },
        }
    }

    /// Whether a verdict is the first of a lap. Verdicts of an earlier run may have waited in a file.
    fn is_new_lap(&self, verdict: &VerdictEntry<'_>) -> bool {
        verdict.run == self.run && self.lap > 0 && verdict.lap > self.lap
    }

    fn skips(&self, verdict: &VerdictEntry<'_>) -> bool {
        self.skips_muted && !verdict.because_of.is_empty()
    }

    /// Enters a verdict that was sent or need not be sent.
    pub(super) fn settle(&mut self, verdict: &VerdictEntry<'_>, link: Link) {
        if self.is_new_lap(verdict) {
            self.open.clear();
            self.may_be_more = false;
        }
        if verdict.run == self.run {
            self.lap = self.lap.max(verdict.lap);
        }
        match verdict.verdict {
            // A stamp of a chain is judged once: nothing ends its violation.
            Truth::Violated if verdict.missing.is_empty() && !self.skips(verdict) => {
                self.closed.remove(&link.instance);
                if self.open.len() < LARGEST || self.open.contains_key(&link.instance) {
                    self.open.insert(link.instance, link.begin.unwrap_or_default());
                } else {
                    self.may_be_more = true;
                }
            }
            Truth::Satisfied => {
                self.open.remove(&link.instance);
                if self.may_be_more && self.closed.len() < LARGEST {
                    self.closed.insert(link.instance);
                }
            }
            Truth::Violated | Truth::Inconclusive => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use Truth::{Inconclusive, Satisfied, Violated};

    use super::*;

    /// Enters a verdict. Returns the id of the begin of its violation, and whether it is part of one.
    fn enter(pairs: &mut Pairs, parameters: &str, verdict: Truth, id: &str) -> (Option<String>, bool) {
        let verdict = VerdictEntry {
            parameters,
            verdict,
            missing: "",
            because_of: "",
            lap: 1,
            ..crate::entry::sample()
        };
        let link = pairs.link(&verdict, id);
        let found = (link.begin.clone(), link.is_part);
        pairs.settle(&verdict, link);
        found
    }

    #[test]
    fn verdicts_are_paired_by_instance() {
        let mut pairs = Pairs::default();
        let some = |id: &str| Some(id.to_owned());
        pairs.begin(RunKey(7), false);
        let steps = [
            ("1", Satisfied, "a", None, false),
            ("1", Violated, "b", some("b"), true),
            ("2", Violated, "c", some("c"), true),
            ("1", Inconclusive, "d", some("b"), false),
            ("1", Violated, "e", some("b"), true),
            ("2", Satisfied, "f", some("c"), true),
            ("2", Satisfied, "g", None, false),
            ("1", Satisfied, "h", some("b"), true),
            ("1", Violated, "i", some("i"), true),
        ];
        for (parameters, verdict, id, begin, is_part) in steps {
            assert_eq!(enter(&mut pairs, parameters, verdict, id), (begin, is_part), "{id}");
        }
        let waited = VerdictEntry { run: RunKey(6), lap: 5, ..crate::entry::sample() };
        let link = pairs.link(&waited, "w");
        pairs.settle(&waited, link);
        let later = VerdictEntry { parameters: "1", verdict: Satisfied, lap: 2, ..crate::entry::sample() };
        assert!(!pairs.link(&later, "j").is_part, "a lap ends all violations");
    }

    #[test]
    fn resumed_run_ends_violations_that_it_does_not_know() {
        let mut pairs = Pairs::default();
        pairs.begin(RunKey(7), true);
        assert_eq!(enter(&mut pairs, "1", Satisfied, "a"), (None, true));
        assert_eq!(enter(&mut pairs, "1", Satisfied, "b"), (None, false));
        pairs.begin(RunKey(7), false);
        assert_eq!(enter(&mut pairs, "1", Satisfied, "c"), (None, false));
    }

    #[test]
    fn memory_is_bounded_and_no_end_is_left_out() {
        let mut pairs = Pairs::default();
        pairs.begin(RunKey(7), false);
        for i in 0..LARGEST + 10 {
            enter(&mut pairs, &i.to_string(), Violated, "a");
        }
        assert_eq!(pairs.open.len(), LARGEST);
        let last = (LARGEST + 5).to_string();
        assert_eq!(enter(&mut pairs, &last, Satisfied, "b"), (None, true));
        assert_eq!(enter(&mut pairs, &last, Satisfied, "c"), (None, false));
    }
}
