//! The present state of single properties, for callers that act on it while a session runs.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use rondel_engine::{EndedInstance, Monitor, Report};
use rondel_event::Verdict;

use crate::session::Session;
use crate::statistics::{PropertyStatistics, Standing};

/// Maximum number of violated instances that are known one by one; with more, a property counts as violated until the next
/// lap.
const INSTANCES: usize = 1 << 16;

/// The properties that a caller watches.
pub(in crate::session) struct Standings {
    /// For each property of the specification its place in `watched`, or [`NONE`].
    places: Vec<u32>,
    watched: Vec<Watched>,
}

const NONE: u32 = u32::MAX;

/// The present state of one property.
struct Watched {
    /// Its position in the specification.
    property: u32,
    by_key: bool,
    /// The last verdict of a property without parameters.
    verdict: Option<Verdict>,
    /// The violated instances.
    violated: HashSet<Box<[u64]>, RandomState>,
    /// Whether instances are violated that are not among them.
    is_over_limit: bool,
    /// Whether verdicts on some instance may be withheld because messages were missed.
    is_uncertain: bool,
    /// Whether messages were missed since the last event was evaluated.
    has_missed: bool,
    /// Number of times that the property or an instance became violated.
    violations: u64,
}

impl Watched {
    fn of(property: u32, statistics: &PropertyStatistics) -> Watched {
        Watched {
            property,
            by_key: statistics.by_key,
            verdict: statistics.last,
            violated: statistics.violated_keys().map(Box::from).collect(),
            is_over_limit: false,
            is_uncertain: false,
            has_missed: false,
            violations: 0,
        }
    }

    fn take(&mut self, report: &Report, key: Option<&[u64]>) {
        let is_violated = report.verdict == Verdict::Violated;
        self.violations += u64::from(is_violated && report.changed);
        self.verdict = Some(report.verdict);
        let Some(key) = key else { return };
        if !is_violated {
            self.violated.remove(key);
        } else if self.violated.len() >= INSTANCES {
            self.is_over_limit |= !self.violated.contains(key);
        } else if !self.violated.contains(key) {
            self.violated.insert(key.into());
        }
    }

    fn standing(&self) -> Standing {
        let is_violated = match self.by_key {
            true => self.is_over_limit || !self.violated.is_empty(),
            false => self.verdict == Some(Verdict::Violated),
        };
        let is_blind = self.has_missed
            || match self.by_key {
                true => self.is_uncertain,
                false => self.verdict != Some(Verdict::Satisfied),
            };
        let verdict = match (is_violated, is_blind) {
            (true, _) => Verdict::Violated,
            (false, true) => Verdict::Inconclusive,
            (false, false) => Verdict::Satisfied,
        };
        Standing { verdict, violations: self.violations }
    }
}

impl Standings {
    /// Watches these properties, by their positions in the specification.
    fn new(properties: &[u32], statistics: &[PropertyStatistics]) -> Standings {
        let mut standings = Standings { places: vec![NONE; statistics.len()], watched: Vec::new() };
        for &property in properties {
            if let Some(statistics) = statistics.get(property as usize)
                && standings.places[property as usize] == NONE
            {
                standings.places[property as usize] = standings.watched.len() as u32;
                standings.watched.push(Watched::of(property, statistics));
            }
        }
        standings
    }

    /// Takes the reports of a monitor's last call, which evaluates these properties, in their order: about events, or about
    /// the passing of time and missed messages.
    pub(in crate::session) fn take(&mut self, at_events: bool, monitor: &Monitor, properties: &[u32]) {
        let (places, watched) = (&self.places, &mut self.watched[..]);
        let place = |own: u32| {
            let property = properties.get(own as usize)?;
            places.get(*property as usize).copied().filter(|place| *place != NONE)
        };
        let end = |watched: &mut [Watched], ended: &EndedInstance<'_>| {
            if let Some(of) = place(ended.property).and_then(|place| watched.get_mut(place as usize)) {
                of.violated.remove(ended.key);
            }
        };
        let mut ended = monitor.ended().peekable();
        for report in monitor.reports() {
            while let Some(ended) = ended.next_if(|ended| ended.is_before(report)) {
                end(watched, &ended);
            }
            if let Some(of) = place(report.property).and_then(|place| watched.get_mut(place as usize)) {
                of.take(report, monitor.instance(report).map(|(_, key)| key));
            }
        }
        ended.for_each(|ended| end(watched, &ended));
        // Few properties are watched, of many.
        for of in &mut *watched {
            if let Ok(own) = properties.binary_search(&of.property) {
                of.is_uncertain = monitor.is_uncertain(own as u32);
                of.has_missed &= !at_events;
            }
        }
        for missed in monitor.missed().iter().filter(|missed| missed.is_read) {
            if let Some(of) = place(missed.property).and_then(|place| watched.get_mut(place as usize)) {
                of.has_missed = true;
            }
        }
    }

    /// Begins a lap, in which nothing has a verdict yet.
    pub(in crate::session) fn begin_lap(&mut self) {
        for of in &mut self.watched {
            *of = Watched {
                verdict: None,
                violated: HashSet::default(),
                is_over_limit: false,
                is_uncertain: false,
                has_missed: false,
                ..*of
            };
        }
    }
}

impl Session {
    /// Starts to follow the present state of these properties, by their positions in the specification, for
    /// [`Session::standing`]. It replaces those that were watched before.
    pub fn watch_properties(&mut self, properties: &[u32]) {
        let emitter = &mut self.shared.emitter;
        emitter.standings = Some(Box::new(Standings::new(properties, &emitter.statistics)));
    }

    /// The properties that are watched, by their positions in the specification.
    pub(in crate::session) fn watched_properties(&self) -> Option<Vec<u32>> {
        let standings = self.shared.emitter.standings.as_ref()?;
        Some(standings.watched.iter().map(|watched| watched.property).collect())
    }

    /// The present state of a property after all messages that were [evaluated](Session::flush); `None` unless it is
    /// [watched](Session::watch_properties).
    pub fn standing(&self, property: u32) -> Option<Standing> {
        let standings = self.shared.emitter.standings.as_ref()?;
        let place = standings.places.get(property as usize).filter(|place| **place != NONE)?;
        Some(standings.watched.get(*place as usize)?.standing())
    }
}
