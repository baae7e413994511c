//! Participants of DDS that lose each other and are matched again.
//!
//! A participant that is stopped for longer than its lease of 10 s counts as gone: its readers and writers are
//! unmatched, and unacknowledged samples are dropped. When it runs again, they match again. A participant that was
//! closed and restarted has other ids, so an id that returns was lost.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use cyclors::{dds_builtintopic_endpoint_t, dds_entity_t, dds_instance_handle_t};
use rondel_event::Timestamp;

use super::entity::Entity;
use crate::adapter::{Outage, now};

/// Limit of remembered participants.
const KNOWN: usize = 1024;
/// Limit of participants considered at a time.
const AT_ONCE: usize = 256;

/// Time between two beats, in nanoseconds, at which this process counts as stopped.
const STOPPED: i64 = 1_000_000_000;
/// Time after a stop, in nanoseconds, in which departures are attributed to the stop.
const AFTER: i64 = 5_000_000_000;

/// Times at which this process ran, by [beats](Heartbeat::beat): a process that was stopped notices the silence of
/// others only afterwards.
static HEARTBEAT: Heartbeat = Heartbeat::new();

#[derive(Debug)]
struct Heartbeat(Mutex<Beats>);

/// Times in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
struct Beats {
    last: Option<i64>,
    /// Beginning and end of the last stop.
    stop: Option<(i64, i64)>,
}

impl Heartbeat {
    const fn new() -> Heartbeat {
        Heartbeat(Mutex::new(Beats { last: None, stop: None }))
    }

    /// Records that the process runs. Returns its last stop.
    fn beat(&self, now: i64) -> Option<(i64, i64)> {
        // Another thread may be recording a stop, which this call must not miss.
        let mut beats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = beats.last.replace(now).filter(|last| now - last >= STOPPED) {
            beats.stop = Some((last, now));
        }
        beats.stop
    }

    /// Returns the time at which a participant left whose departure is noticed now.
    fn left(&self, now: i64) -> i64 {
        self.beat(now).filter(|(_, until)| now - until < AFTER).map_or(now, |(from, _)| from)
    }
}

/// Records that this process runs. Must be called regularly.
pub(super) fn beat() {
    HEARTBEAT.beat(now().as_nanos());
}

/// A matching reader or writer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    pub(super) id: [u8; 16],
    pub(super) handle: dds_instance_handle_t,
    /// Whether it keeps samples for later readers.
    pub(super) keeps: bool,
}

/// The library's counts of the matches of an entity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    /// Number of matches so far: one that left and returned counts twice.
    pub(super) total: u32,
    /// Handle of the last one that matched or left.
    pub(super) last: dds_instance_handle_t,
}

/// Readers of a writer, or writers of a reader, matched so far.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// Handle of each, and the time at which it left, unless it matches now.
    known: BTreeMap<[u8; 16], (dds_instance_handle_t, Option<Timestamp>)>,
    /// Number of matches so far, by their ids and handles.
    seen: u32,
}

impl Matches {
    /// Updates the matches; the library has `counted` as many before, or more. Returns those that have returned, with
    /// their former handle and the time at which they left.
    pub(super) fn update(
        &mut self,
        present: &[Match],
        counted: Counted,
    ) -> Vec<(Match, dds_instance_handle_t, Timestamp)> {
        let now = || Timestamp::from_nanos(HEARTBEAT.left(now().as_nanos()));
        for (id, (handle, left)) in &mut self.known {
            // An endpoint that left and returned between two looks may have another handle.
            if left.is_none() && !present.iter().any(|one| one.id == *id && one.handle == *handle) {
                *left = Some(now());
            }
        }
        let (mut returned, mut same) = (Vec::new(), Vec::new());
        for one in present {
            if let Some((handle, left)) = self.known.get_mut(&one.id) {
                if let Some(from) = left.take() {
                    self.seen += 1;
                    returned.push((*one, std::mem::replace(handle, one.handle), from));
                } else {
                    same.push(*one);
                }
            } else {
                self.seen += 1;
                if self.known.len() < KNOWN {
                    self.known.insert(one.id, (one.handle, None));
                }
            }
        }
        // The library reuses the handle while something refers to it.
        let hidden = i64::from(counted.total) - i64::from(self.seen);
        if hidden > 0 {
            self.seen = counted.total;
            let is_last = |one: &Match| hidden > 1 || one.handle == counted.last;
            // An incomplete list says nothing about the others.
            if present.len() < AT_ONCE && self.known.len() < KNOWN {
                let last = same.into_iter().filter(is_last);
                returned.extend(last.map(|one| (one, one.handle, now())));
            }
        }
        returned
    }
}

/// Returns the outage of a topic's match that was lost and restored.
pub(super) fn outage(topic: &str, from: Timestamp) -> Outage {
    tracing::warn!(
        %topic,
        "a DDS participant was silent for longer than its lease, and is back; messages meanwhile may be lost"
    );
    Outage { network: "dds", neighbour: Some(topic.to_owned()), from, until: Some(now()), carried: false }
}

/// Returns the readers that match a writer.
pub(super) fn readers(writer: &Entity) -> Vec<Match> {
    // SAFETY: the functions of the library for writers, called with a live one.
    unsafe { ids(writer, cyclors::dds_get_matched_subscriptions, cyclors::dds_get_matched_subscription_data) }
}

/// Returns the writers that match a reader.
pub(super) fn writers(reader: &Entity) -> Vec<Match> {
    // SAFETY: the functions of the library for readers, called with a live one.
    unsafe { ids(reader, cyclors::dds_get_matched_publications, cyclors::dds_get_matched_publication_data) }
}

type Handles = unsafe extern "C" fn(dds_entity_t, *mut dds_instance_handle_t, usize) -> i32;
type Data = unsafe extern "C" fn(dds_entity_t, dds_instance_handle_t) -> *mut dds_builtintopic_endpoint_t;

/// Returns the endpoints that match an entity.
///
/// # Safety
/// The functions must be those of the library for this kind of entity.
unsafe fn ids(entity: &Entity, handles: Handles, data: Data) -> Vec<Match> {
    let mut all: [dds_instance_handle_t; AT_ONCE] = [0; AT_ONCE];
    // SAFETY: a live entity, and room for the stated number of handles.
    let count = unsafe { handles(entity.handle(), all.as_mut_ptr(), AT_ONCE) };
    let count = usize::try_from(count).unwrap_or(0).min(AT_ONCE);
    let id = |handle: &dds_instance_handle_t| {
        // SAFETY: a live entity; a handle of something that has left gives null.
        let endpoint = unsafe { data(entity.handle(), *handle) };
        // SAFETY: null, or a description that is ours until it is freed.
        let described = unsafe { endpoint.as_ref() }?;
        let id = described.key.v;
        let mut durability = cyclors::dds_durability_kind_DDS_DURABILITY_VOLATILE;
        // SAFETY: the QoS belongs to the description; a place for a number.
        let keeps = !described.qos.is_null()
            && unsafe { cyclors::dds_qget_durability(described.qos, &mut durability) }
            && durability != cyclors::dds_durability_kind_DDS_DURABILITY_VOLATILE;
        // SAFETY: made by the library for us, freed once.
        unsafe { cyclors::dds_builtintopic_free_endpoint(endpoint) };
        Some(Match { id, handle: *handle, keeps })
    };
    all[..count].iter().filter_map(id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn departures_during_a_stop_of_this_process_date_from_its_beginning() {
        let (heartbeat, second) = (Heartbeat::new(), 1_000_000_000);
        assert_eq!(heartbeat.left(50 * second), 50 * second);
        (500..600).for_each(|tenth| _ = heartbeat.beat(tenth * second / 10));
        assert_eq!(heartbeat.left(60 * second), 60 * second);
        // The first thread to run after the stop.
        assert_eq!(heartbeat.left(73 * second), 60 * second);
        (730..735).for_each(|tenth| _ = heartbeat.beat(tenth * second / 10));
        assert_eq!(heartbeat.left(73 * second + second / 2), 60 * second);
        (735..790).for_each(|tenth| _ = heartbeat.beat(tenth * second / 10));
        assert_eq!(heartbeat.left(79 * second), 79 * second);
    }

    #[test]
    fn an_endpoint_that_returns_was_lost() {
        let mut matches = Matches::default();
        let mut returned = Vec::new();
        let (mut total, mut before) = (0, Vec::new());
        let is_same = |one: &Match, other: &Match| one.id == other.id && one.handle == other.handle;
        // Ids with their handles.
        let looks =
            [&[(1, 10), (2, 20)][..], &[(2, 20)], &[(2, 20), (3, 30)], &[(1, 11), (2, 20)], &[], &[(3, 30)]];
        for look in looks {
            let one = |&(id, handle): &(u8, u64)| Match { id: [id; 16], handle, keeps: false };
            let present: Vec<Match> = look.iter().map(one).collect();
            total +=
                present.iter().filter(|one| before.iter().all(|other| !is_same(one, other))).count() as u32;
            let back = matches.update(&present, Counted { total, last: 0 });
            before = present;
            returned.extend(back.into_iter().map(|(one, former, _)| (one.id[0], former, one.handle)));
        }
        assert_eq!(returned, [(1, 10, 11), (3, 30, 30)]);
        // Returned between two looks.
        let again = [Match { id: [3; 16], handle: 31, keeps: false }];
        assert_eq!(matches.update(&again, Counted { total: total + 1, last: 31 }).len(), 1);
    }

    #[test]
    fn a_match_that_returns_with_its_handle_between_two_looks_was_lost() {
        let mut matches = Matches::default();
        let present = [1, 2].map(|id| Match { id: [id; 16], handle: u64::from(id), keeps: false });
        let mut returned = |total, last| {
            let back = matches.update(&present, Counted { total, last });
            back.into_iter().map(|(one, former, _)| (one.id[0], former)).collect::<Vec<_>>()
        };
        assert_eq!(returned(2, 2), []);
        assert_eq!(returned(3, 2), [(2, 2)]);
        assert_eq!(returned(3, 2), []);
        // Only the last one is known.
        assert_eq!(returned(5, 2), [(1, 1), (2, 2)]);
    }

    #[test]
    fn a_match_listed_before_the_library_counts_it_is_new() {
        let mut matches = Matches::default();
        let one = Match { id: [1; 16], handle: 1, keeps: false };
        assert_eq!(matches.update(&[one], Counted { total: 0, last: 0 }).len(), 0);
        assert_eq!(matches.update(&[one], Counted { total: 1, last: 1 }).len(), 0);
    }
}
