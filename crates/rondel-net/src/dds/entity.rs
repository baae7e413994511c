//! Handles, return codes and QoS of CycloneDDS.

use std::ffi::{CStr, CString};
use std::time::Duration;

use cyclors::{dds_duration_t, dds_entity_t, dds_qos_t, dds_return_t};

use super::{DeclareError, Durability, Liveliness, Ownership, Reliability, TopicQos};

/// An owned handle of CycloneDDS. Deleting it deletes its children.
///
/// Handles are numbers that the library looks up under its own locks in every call: a stale one results
/// in an error, and any thread may use any handle.
#[derive(Debug)]
pub(super) struct Entity(dds_entity_t);

impl Entity {
    /// Takes ownership of a handle returned by the library; negative numbers are errors.
    pub(super) fn own(returned: dds_entity_t, what: &'static str) -> Result<Entity, DeclareError> {
        check(returned, what).map(Entity)
    }

    pub(super) fn handle(&self) -> dds_entity_t {
        self.0
    }
}

impl Drop for Entity {
    fn drop(&mut self) {
        // SAFETY: takes a number; one whose parent is deleted already is refused, which is fine.
        unsafe { cyclors::dds_delete(self.0) };
    }
}

/// Converts a return code of the library into a result.
pub(super) fn check(code: dds_return_t, what: &'static str) -> Result<dds_return_t, DeclareError> {
    if code >= 0 { Ok(code) } else { Err(DeclareError::Network { what, reason: message(code) }) }
}

/// Returns the library's description of a return code.
pub(super) fn message(code: dds_return_t) -> String {
    // SAFETY: returns a pointer to a constant, terminated text for every number.
    unsafe { CStr::from_ptr(cyclors::dds_strretcode(code)) }.to_string_lossy().into_owned()
}

/// Returns a name as a C string; refuses empty names and zero bytes.
pub(super) fn c_name(name: &str) -> Result<CString, DeclareError> {
    let refuse = || DeclareError::Name(name.to_owned());
    if name.is_empty() { Err(refuse()) } else { CString::new(name).map_err(|_| refuse()) }
}

/// Returns a duration in the library's unit, nanoseconds; durations beyond 292 years are infinite.
pub(super) fn duration(d: Duration) -> dds_duration_t {
    dds_duration_t::try_from(d.as_nanos()).unwrap_or(dds_duration_t::MAX)
}

/// Whether a reader of a topic may have samples in both versions of the encoding. The library accepts those of an
/// extensible derived type only in the second version, while others write them in the first.
pub(super) fn has_both_versions(topic: &Entity) -> bool {
    let mut kind: *const cyclors::ddsi_sertype = std::ptr::null();
    // SAFETY: a live handle and a place for the type, which lives as long as its topic.
    let kind = unsafe {
        (cyclors::dds_get_entity_sertype(topic.handle(), &mut kind) >= 0).then_some(kind.as_ref()).flatten()
    };
    // The bits of the ids 0 and 2.
    kind.is_none_or(|kind| kind.allowed_data_representation & 0b101 == 0b101)
}

/// QoS settings for creating an entity.
pub(super) struct Qos(*mut dds_qos_t);

impl Qos {
    pub(super) fn new() -> Qos {
        // SAFETY: allocates; the library ends the process when there is no memory, as Rust does.
        Qos(unsafe { cyclors::dds_create_qos() })
    }

    /// Sets reliable delivery with the history "keep all": no sample is lost. A write blocks for at most
    /// `max_blocking`; a reader's cache holds at most `max_samples`.
    pub(super) fn reliable(self, max_blocking: Duration, max_samples: Option<u32>) -> Qos {
        let limit = max_samples.map_or(-1, |n| i32::try_from(n.max(1)).unwrap_or(i32::MAX));
        // SAFETY: `self.0` is a live object of `dds_create_qos`; the rest are plain numbers.
        unsafe {
            cyclors::dds_qset_reliability(
                self.0,
                cyclors::dds_reliability_kind_DDS_RELIABILITY_RELIABLE,
                duration(max_blocking),
            );
            cyclors::dds_qset_history(self.0, cyclors::dds_history_kind_DDS_HISTORY_KEEP_ALL, 0);
            cyclors::dds_qset_resource_limits(self.0, limit, -1, -1);
        }
        self
    }

    /// Sets the durability: a writer keeps this number of its last samples for later readers; a reader requests the
    /// kept ones.
    pub(super) fn keeping(self, samples: Option<u32>) -> Qos {
        // SAFETY: as above.
        unsafe {
            cyclors::dds_qset_durability(self.0, cyclors::dds_durability_kind_DDS_DURABILITY_TRANSIENT_LOCAL);
            if let Some(samples) = samples {
                let depth = i32::try_from(samples.max(1)).unwrap_or(i32::MAX);
                let kind = cyclors::dds_history_kind_DDS_HISTORY_KEEP_LAST;
                cyclors::dds_qset_durability_service(self.0, 0, kind, depth, -1, -1, -1);
            }
        }
        self
    }

    /// Sets the requests of a subscription. By default no sample is lost, and earlier ones are not requested.
    pub(super) fn requesting(self, qos: &TopicQos, max_samples: u32) -> Result<Qos, DeclareError> {
        let limit = i32::try_from(max_samples.max(1)).unwrap_or(i32::MAX);
        let reliability = match qos.reliability {
            Some(Reliability::BestEffort) => cyclors::dds_reliability_kind_DDS_RELIABILITY_BEST_EFFORT,
            Some(Reliability::Reliable) | None => cyclors::dds_reliability_kind_DDS_RELIABILITY_RELIABLE,
        };
        let durability = match qos.durability {
            Some(Durability::Volatile) | None => cyclors::dds_durability_kind_DDS_DURABILITY_VOLATILE,
            Some(Durability::TransientLocal) => cyclors::dds_durability_kind_DDS_DURABILITY_TRANSIENT_LOCAL,
            Some(Durability::Transient) => cyclors::dds_durability_kind_DDS_DURABILITY_TRANSIENT,
            Some(Durability::Persistent) => cyclors::dds_durability_kind_DDS_DURABILITY_PERSISTENT,
        };
        // SAFETY: `self.0` is a live object of `dds_create_qos`; the rest are plain numbers. Deadline and separation
        // fit together, which `TopicQos::check` has seen to.
        unsafe {
            // The blocking time has no effect on a reader. Bridges copy it to the writers that they create for it,
            // though, and a writer with a blocking time of zero drops samples under load.
            cyclors::dds_qset_reliability(self.0, reliability, duration(Duration::MAX));
            cyclors::dds_qset_durability(self.0, durability);
            match qos.depth {
                Some(depth) => {
                    let kind = cyclors::dds_history_kind_DDS_HISTORY_KEEP_LAST;
                    let depth = i32::try_from(depth).unwrap_or(i32::MAX).min(limit);
                    cyclors::dds_qset_history(self.0, kind, depth);
                }
                None => {
                    let kind = cyclors::dds_history_kind_DDS_HISTORY_KEEP_ALL;
                    cyclors::dds_qset_history(self.0, kind, 0);
                    cyclors::dds_qset_resource_limits(self.0, limit, -1, -1);
                }
            }
            if qos.ownership == Some(Ownership::Exclusive) {
                let kind = cyclors::dds_ownership_kind_DDS_OWNERSHIP_EXCLUSIVE;
                cyclors::dds_qset_ownership(self.0, kind);
            }
            if let Some(deadline) = qos.deadline {
                cyclors::dds_qset_deadline(self.0, duration(deadline));
            }
            if let Some(lease) = qos.lease {
                let kind = cyclors::dds_liveliness_kind_DDS_LIVELINESS_AUTOMATIC;
                cyclors::dds_qset_liveliness(self.0, kind, duration(lease));
            }
            if let Some(budget) = qos.latency_budget {
                cyclors::dds_qset_latency_budget(self.0, duration(budget));
            }
            if let Some(separation) = qos.min_separation {
                cyclors::dds_qset_time_based_filter(self.0, duration(separation));
            }
        }
        self.in_partitions(&qos.partitions)
    }

    /// Sets the offers of a publisher beyond reliable delivery.
    pub(super) fn offering(self, qos: &TopicQos) -> Result<Qos, DeclareError> {
        // SAFETY: as above.
        unsafe {
            if qos.reliability == Some(Reliability::BestEffort) {
                let kind = cyclors::dds_reliability_kind_DDS_RELIABILITY_BEST_EFFORT;
                cyclors::dds_qset_reliability(self.0, kind, 0);
            }
            if qos.ownership == Some(Ownership::Exclusive) {
                let kind = cyclors::dds_ownership_kind_DDS_OWNERSHIP_EXCLUSIVE;
                cyclors::dds_qset_ownership(self.0, kind);
            }
            if let Some(strength) = qos.strength {
                cyclors::dds_qset_ownership_strength(self.0, strength);
            }
            if let Some(deadline) = qos.deadline {
                cyclors::dds_qset_deadline(self.0, duration(deadline));
            }
            if let Some(lease) = qos.lease {
                let kind = match qos.liveliness.unwrap_or(Liveliness::Automatic) {
                    Liveliness::Automatic => cyclors::dds_liveliness_kind_DDS_LIVELINESS_AUTOMATIC,
                    Liveliness::ManualByParticipant => {
                        cyclors::dds_liveliness_kind_DDS_LIVELINESS_MANUAL_BY_PARTICIPANT
                    }
                    Liveliness::ManualByTopic => cyclors::dds_liveliness_kind_DDS_LIVELINESS_MANUAL_BY_TOPIC,
                };
                cyclors::dds_qset_liveliness(self.0, kind, duration(lease));
            }
            if let Some(budget) = qos.latency_budget {
                cyclors::dds_qset_latency_budget(self.0, duration(budget));
            }
        }
        self.in_partitions(&qos.partitions)
    }

    fn in_partitions(self, partitions: &[String]) -> Result<Qos, DeclareError> {
        if partitions.is_empty() {
            return Ok(self);
        }
        let no_name = |_| DeclareError::Qos("the name of a partition has a zero byte".to_owned());
        let names: Vec<CString> = partitions
            .iter()
            .map(|name| CString::new(name.as_str()))
            .collect::<Result<_, _>>()
            .map_err(no_name)?;
        let mut pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        // SAFETY: a live object, and the stated number of terminated texts, which the call copies.
        unsafe { cyclors::dds_qset_partition(self.0, pointers.len() as u32, pointers.as_mut_ptr()) };
        Ok(self)
    }

    /// Sets the data representations that a writer offers or a reader accepts.
    pub(super) fn representations(self, ids: &[i16]) -> Qos {
        // SAFETY: as above; the library copies the numbers of the given count.
        unsafe { cyclors::dds_qset_data_representation(self.0, ids.len() as u32, ids.as_ptr()) };
        self
    }

    /// Sets the user data of an entity, which others can read.
    pub(super) fn user_data(self, text: &str) -> Qos {
        // SAFETY: as above; the library copies the stated number of bytes.
        unsafe { cyclors::dds_qset_userdata(self.0, text.as_ptr().cast(), text.len()) };
        self
    }

    /// Sets properties of a participant, such as those of DDS Security.
    pub(super) fn properties(self, properties: &[(&str, String)]) -> Result<Qos, DeclareError> {
        for (name, value) in properties {
            let no_text = |_| DeclareError::Qos(format!("the property {name} has a zero byte"));
            let (name, value) =
                (CString::new(*name).map_err(no_text)?, CString::new(value.as_str()).map_err(no_text)?);
            // SAFETY: a live object and two terminated texts, which the call copies.
            unsafe { cyclors::dds_qset_prop(self.0, name.as_ptr(), value.as_ptr()) };
        }
        Ok(self)
    }

    /// Sets whether a writer buffers samples until they fill a packet.
    pub(super) fn batching(self, on: bool) -> Qos {
        // SAFETY: as above.
        unsafe { cyclors::dds_qset_writer_batching(self.0, on) };
        self
    }

    /// Sets that the end of a writer does not dispose of its instances: they become unregistered, which is another
    /// event.
    pub(super) fn keeping_instances(self) -> Qos {
        // SAFETY: as above.
        unsafe { cyclors::dds_qset_writer_data_lifecycle(self.0, false) };
        self
    }

    pub(super) fn as_ptr(&self) -> *const dds_qos_t {
        self.0
    }
}

/// Returns the name of a QoS policy for messages.
pub(super) fn policy_name(id: u32) -> &'static str {
    match id {
        cyclors::dds_qos_policy_id_DDS_DURABILITY_QOS_POLICY_ID => "durability",
        cyclors::dds_qos_policy_id_DDS_PRESENTATION_QOS_POLICY_ID => "presentation",
        cyclors::dds_qos_policy_id_DDS_DEADLINE_QOS_POLICY_ID => "deadline",
        cyclors::dds_qos_policy_id_DDS_LATENCYBUDGET_QOS_POLICY_ID => "latency budget",
        cyclors::dds_qos_policy_id_DDS_OWNERSHIP_QOS_POLICY_ID => "ownership",
        cyclors::dds_qos_policy_id_DDS_LIVELINESS_QOS_POLICY_ID => "liveliness",
        cyclors::dds_qos_policy_id_DDS_RELIABILITY_QOS_POLICY_ID => "reliability",
        cyclors::dds_qos_policy_id_DDS_DESTINATIONORDER_QOS_POLICY_ID => "destination order",
        cyclors::dds_qos_policy_id_DDS_DATA_REPRESENTATION_QOS_POLICY_ID => "data representation",
        _ => "unknown policy",
    }
}

impl Drop for Qos {
    fn drop(&mut self) {
        // SAFETY: made by `dds_create_qos`, freed once; calls that were given it made their copies.
        unsafe { cyclors::dds_delete_qos(self.0) };
    }
}
