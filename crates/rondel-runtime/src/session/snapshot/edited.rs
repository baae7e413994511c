//! Resuming from the snapshot of an edited specification: unchanged properties keep their states.

use std::collections::HashSet;
use std::sync::Arc;

use rondel_engine::{EditOutcome, Monitor, Program, RestartReason, Snapshot};
use rondel_event::SnapshotError;
use rondel_spec::Spec;
use serde_json::json;

use super::saved::{Known, Saved, StartError};
use crate::ordering::align::{AlignedMonitor, Rule};
use crate::ordering::progress::Waiting;
use crate::report::notice::Notice;
use crate::session::SessionPlan;
use crate::session::results::emitter::Emitter;
use crate::session::route::aligned::{Planned, planned};
use crate::session::time::laps::NONE;
use crate::specification::Specification;
use crate::statistics::missing::SavedMissing;
use crate::text::counted;

/// Outcome of an edit for the properties when a session resumes from a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edited {
    /// The properties that continue with their states.
    pub continued: Vec<String>,
    /// Properties that restart with the next message, with the reason.
    pub restarted: Vec<(String, RestartReason)>,
    /// Removed properties of the snapshot.
    pub removed: Vec<String>,
}

impl Edited {
    /// For each property: whether it restarts.
    pub(in crate::session) fn joining(&self, names: impl Iterator<Item = impl AsRef<str>>) -> Vec<bool> {
        names.map(|name| self.restarted.iter().any(|(restarted, _)| restarted == name.as_ref())).collect()
    }

    /// Notice of the outcome for the properties.
    pub(in crate::session) fn notice(&self) -> Notice {
        let Edited { continued, restarted, removed } = self;
        let mut sentence = format!(
            "the specification was edited since the snapshot: {} with {} state",
            match &continued[..] {
                [one] => format!("`{one}` continues"),
                several => format!("{} continue", counted(several.len() as u64, "property", "properties")),
            },
            if continued.len() == 1 { "its" } else { "their" }
        );
        for (name, why) in restarted {
            sentence += &format!("; `{name}` restarts: {why}");
        }
        if !removed.is_empty() {
            sentence += &format!("; removed: {}", removed.join(", "));
        }
        let begun =
            |(name, why): &(String, RestartReason)| json!({"property": name, "reason": why.to_string()});
        let members = vec![
            ("continued", json!(continued)),
            ("anew", json!(restarted.iter().map(begun).collect::<Vec<_>>())),
            ("removed", json!(removed)),
        ];
        Notice::new("edited", None, members, sentence)
    }

    /// Whether anything differs from the snapshot.
    pub(in crate::session) fn is_any(&self) -> bool {
        !self.restarted.is_empty() || !self.removed.is_empty()
    }
}

/// The state of a monitor in a snapshot, and the events that waited for it.
struct Kept {
    snapshot: Snapshot,
    waiting: Option<Vec<u8>>,
}

impl Kept {
    fn read(state: &[u8], is_aligned: bool) -> Result<Kept, SnapshotError> {
        let (monitor, waiting) = match is_aligned {
            true => AlignedMonitor::parts(state).map(|(monitor, waiting)| (monitor, Some(waiting)))?,
            false => (state.to_vec(), None),
        };
        Ok(Kept { snapshot: Snapshot::read(&monitor)?, waiting })
    }
}

impl SessionPlan {
    /// Resumes from the snapshot of another specification. Returns the plan of the session, its state, and the outcome
    /// for the properties.
    pub(in crate::session) fn edited(
        &self,
        saved: &Saved,
    ) -> Result<(SessionPlan, Saved, Edited), StartError> {
        let (known, is_aligned) = (&saved.known, self.options.alignment.is_needed());
        if known.properties.is_empty() || known.waiting.is_some() != is_aligned {
            // Its error states what does not fit.
            self.session(Some(saved))?;
            return Err("it belongs to another specification".into());
        }
        let kept: Vec<Kept> =
            saved.states.iter().map(|state| Kept::read(state, is_aligned)).collect::<Result<_, _>>()?;
        let generation = kept.iter().map(|kept| kept.snapshot.next_generation()).max().unwrap_or(0);
        let mut spec = Spec::clone(&self.specification.spec);
        let (mut outcomes, origins) = assign(&kept, &mut spec, generation);
        let (plan, groups) = loop {
            if !is_aligned {
                Snapshot::restart_chains(&mut spec, generation, &mut outcomes);
            }
            if !outcomes.contains(&EditOutcome::Continues) {
                return Err(StartError::Unrelated);
            }
            let plan = self.marked(&spec)?;
            let groups = plan.monitors(is_aligned)?;
            let lost = lost(&groups, &kept, &outcomes, &origins);
            if lost.is_empty() {
                break (plan, groups);
            }
            Snapshot::restart(&mut spec, &lost, generation, &mut outcomes);
        };
        let mut states = Vec::new();
        for Planned { properties, program, rule } in groups {
            let from =
                properties.iter().find(|property| outcomes[**property as usize] == EditOutcome::Continues);
            let from = from.and_then(|property| origins[*property as usize]);
            // The properties of a group have one origin, or none.
            let own = from.and_then(|from| saved.states.get(from)).map(|state| Kept::read(state, is_aligned));
            states.push(match (own.transpose()?, rule) {
                (Some(Kept { snapshot, .. }), None) => Monitor::adopt(program, snapshot)?.snapshot(),
                (Some(Kept { snapshot, waiting }), Some(rule)) => {
                    if matches!(rule, Rule::Sets { .. }) && known.topics != topic_names(&spec) {
                        return Err(
                            "the topics are others, and messages wait to be put into sets with them".into()
                        );
                    }
                    AlignedMonitor::adopt(program, rule, snapshot, &waiting.unwrap_or_default())?.snapshot()
                }
                (None, None) => Monitor::new(program).snapshot(),
                (None, Some(rule)) => AlignedMonitor::new(program, rule).snapshot(),
            });
        }
        let saved = Saved { known: plan.moved(known, &outcomes), states };
        let edited = Edited::new(&spec, &outcomes, known);
        Ok((plan, saved, edited))
    }

    /// The plan of the specification with the generations of its properties.
    fn marked(&self, spec: &Spec) -> Result<SessionPlan, StartError> {
        let program = Arc::new(Program::compile(spec)?);
        let is_formula = self.specification.is_formula;
        let specification = Specification { spec: Arc::new(spec.clone()), program, is_formula };
        // The ids of verdicts are those of the specification as it is written, and networks know the names of this plan.
        let (properties, names) = (Arc::clone(&self.properties), Arc::clone(&self.names));
        let plan = SessionPlan::of(specification, self.options.clone());
        Ok(SessionPlan { properties, names, workers: self.workers, ..plan })
    }

    /// The monitors of a session.
    fn monitors(&self, is_aligned: bool) -> Result<Vec<Planned>, StartError> {
        if is_aligned {
            return planned(self);
        }
        let properties = (0..self.specification.spec.properties.len() as u32).collect();
        Ok(vec![Planned { properties, program: Arc::clone(&self.specification.program), rule: None }])
    }

    /// Transfers the state outside of the monitors to the properties and topics of this plan.
    fn moved(&self, known: &Known, outcomes: &[EditOutcome]) -> Known {
        let spec = &self.specification.spec;
        let names = topic_names(spec);
        // For each topic its position in the snapshot, and the reverse.
        let origins: Vec<Option<usize>> =
            names.iter().map(|name| known.topics.iter().position(|other| other == name)).collect();
        let here = |topic: u32| {
            let name = known.topics.get(topic as usize)?;
            names.iter().position(|own| own == name).map(|at| at as u32)
        };
        let emitter = Emitter::new(spec, self.options.emit);
        let statistics = spec.properties.iter().zip(outcomes).zip(&emitter.statistics).map(
            |((property, outcome), new)| {
                let from = known.properties.iter().position(|name| *name == property.name);
                let from = from
                    .filter(|_| *outcome == EditOutcome::Continues)
                    .and_then(|from| known.statistics.get(from));
                from.cloned().unwrap_or_else(|| new.saved())
            },
        );
        let waiting = known.waiting.as_ref().map(|waiting| Waiting {
            publishers: (waiting.publishers.iter())
                .filter_map(|(topic, name, time)| Some((here(*topic)?, name.clone(), *time)))
                .collect(),
            ..waiting.clone()
        });
        let recorded = |origin: &Option<usize>| {
            origin.and_then(|at| known.recorded.get(at).cloned()).unwrap_or_default()
        };
        let continued =
            spec.properties.iter().zip(outcomes).filter(|(_, outcome)| **outcome == EditOutcome::Continues);
        let continued: HashSet<&str> = continued.map(|(property, _)| property.name.as_str()).collect();
        Known {
            program: self.fingerprint,
            topics: names.clone(),
            properties: spec.properties.iter().map(|property| property.name.clone()).collect(),
            statistics: statistics.collect(),
            missing: self.missing_in(known, outcomes, &origins, &here),
            waiting,
            muting: known.muting.as_ref().map(|muting| muting.of(&continued)),
            numbers: known.numbers.moved(&origins),
            unseen: (known.unseen.0.iter().filter_map(|topic| here(*topic)).collect(), known.unseen.1),
            recorded: if known.recorded.is_empty() {
                Vec::new()
            } else {
                origins.iter().map(recorded).collect()
            },
            latest: (origins.iter())
                .map(|origin| origin.and_then(|at| known.latest.get(at).copied()).unwrap_or(NONE))
                .collect(),
            ..known.clone()
        }
    }

    /// Missing topics and fields: all fields of restarted properties count as missing.
    fn missing_in(
        &self,
        known: &Known,
        outcomes: &[EditOutcome],
        origins: &[Option<usize>],
        here: &dyn Fn(u32) -> Option<u32>,
    ) -> SavedMissing {
        let (topics, fields) = &known.missing;
        let new = (0..).zip(origins).filter(|(_, origin)| origin.is_none()).map(|(topic, _)| topic);
        let topics = topics.iter().filter_map(|topic| here(*topic)).chain(new).collect();
        let before = fields.iter().filter_map(|((topic, path, value), has_come)| {
            Some(((here(*topic)?, path.clone(), *value), *has_come))
        });
        let restarted = (0..).zip(outcomes).filter(|(_, outcome)| **outcome != EditOutcome::Continues);
        let of_new =
            restarted.flat_map(|(property, _)| self.needed.fields_of(property)).map(|key| (key, false));
        (topics, before.chain(of_new).collect())
    }
}

/// Outcome of the edit for each property, and the monitor of the snapshot that contained it.
fn assign(kept: &[Kept], spec: &mut Spec, generation: u32) -> (Vec<EditOutcome>, Vec<Option<usize>>) {
    let count = spec.properties.len();
    let (mut outcomes, mut origins) =
        (vec![EditOutcome::Restarts(RestartReason::New); count], vec![None; count]);
    for (k, kept) in kept.iter().enumerate() {
        let names: HashSet<&str> = kept.snapshot.properties().collect();
        let mut marked = spec.clone();
        let own = kept.snapshot.assign_from(&mut marked, generation);
        for (i, outcome) in own.into_iter().enumerate() {
            if names.contains(&*spec.properties[i].name) {
                (outcomes[i], origins[i]) = (outcome, Some(k));
                spec.properties[i].generation = marked.properties[i].generation;
            }
        }
    }
    for (property, outcome) in spec.properties.iter_mut().zip(&outcomes) {
        if *outcome != EditOutcome::Continues {
            property.generation = generation;
        }
    }
    (outcomes, origins)
}

/// Properties that should continue, but whose states are not in the snapshot in the form that they need.
fn lost(groups: &[Planned], kept: &[Kept], outcomes: &[EditOutcome], origins: &[Option<usize>]) -> Vec<u32> {
    let mut all = Vec::new();
    for Planned { properties, program, .. } in groups {
        let continues = |property: &&u32| outcomes[**property as usize] == EditOutcome::Continues;
        let Some(first) = properties.iter().find(continues) else { continue };
        let from = origins[*first as usize];
        all.extend(properties.iter().filter(continues).filter(|of| origins[**of as usize] != from));
        if let Some(kept) = from.and_then(|from| kept.get(from)) {
            // The parts watched for explanations are not among them.
            let lost = kept.snapshot.lost(program).into_iter();
            all.extend(lost.filter_map(|own| properties.get(own as usize)).filter(|of| continues(of)));
        }
    }
    all
}

fn topic_names(spec: &Spec) -> Vec<String> {
    spec.topics.iter().map(|topic| topic.name.clone()).collect()
}

impl Edited {
    fn new(spec: &Spec, outcomes: &[EditOutcome], known: &Known) -> Edited {
        let mut edited = Edited::default();
        for (property, outcome) in spec.properties.iter().zip(outcomes) {
            match *outcome {
                EditOutcome::Continues => edited.continued.push(property.name.clone()),
                EditOutcome::Restarts(why) => edited.restarted.push((property.name.clone(), why)),
            }
        }
        let is_gone = |name: &&String| !spec.properties.iter().any(|property| property.name == **name);
        edited.removed = known.properties.iter().filter(is_gone).cloned().collect();
        edited
    }
}
