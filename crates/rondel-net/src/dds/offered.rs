//! Quality of service that publishers offer, and the resulting request of a subscription.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::time::Duration;

use cyclors::dds_qos_t;

use super::matching::fits;
use super::{Durability, Liveliness, Ownership, Reliability, TopicQos};

/// The quality of service that a publisher offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedQos {
    /// Policy for lost samples.
    pub reliability: Reliability,
    /// Policy for samples published before a subscription.
    pub durability: Durability,
    /// Policy for several publishers of an instance.
    pub ownership: Ownership,
    /// Maximum time between two samples of an instance.
    pub deadline: Option<Duration>,
    /// Time after which a sample is no longer delivered; `None` for never.
    pub lifespan: Option<Duration>,
    /// Source of its signs of life.
    pub liveliness: Liveliness,
    /// Maximum time without a sign of life.
    pub lease: Option<Duration>,
    /// Time that it may take to send a sample; [`Duration::MAX`] without a limit.
    pub latency_budget: Duration,
    /// Its partitions; the one without a name if there are none.
    pub partitions: Vec<String>,
}

impl OfferedQos {
    /// Reads the quality of service of a discovered publisher.
    ///
    /// # Safety
    /// The pointer is null or a QoS of the library, valid for the call.
    pub(super) unsafe fn read(qos: *const dds_qos_t) -> OfferedQos {
        let mut offered = OfferedQos {
            reliability: Reliability::BestEffort,
            durability: Durability::Volatile,
            ownership: Ownership::Shared,
            deadline: None,
            lifespan: None,
            liveliness: Liveliness::Automatic,
            lease: None,
            latency_budget: Duration::ZERO,
            partitions: Vec::new(),
        };
        if qos.is_null() {
            return offered;
        }
        let (mut kind, mut time) = (0, 0);
        // SAFETY: a QoS by this function's contract, and places for numbers; as for all that follow. For an unset
        // policy the call returns `false` and does not change them.
        if unsafe { cyclors::dds_qget_reliability(qos, &mut kind, &mut time) }
            && kind == cyclors::dds_reliability_kind_DDS_RELIABILITY_RELIABLE
        {
            offered.reliability = Reliability::Reliable;
        }
        // SAFETY: as above.
        if unsafe { cyclors::dds_qget_durability(qos, &mut kind) } {
            offered.durability = match kind {
                cyclors::dds_durability_kind_DDS_DURABILITY_TRANSIENT_LOCAL => Durability::TransientLocal,
                cyclors::dds_durability_kind_DDS_DURABILITY_TRANSIENT => Durability::Transient,
                cyclors::dds_durability_kind_DDS_DURABILITY_PERSISTENT => Durability::Persistent,
                _ => Durability::Volatile,
            };
        }
        // SAFETY: as above.
        if unsafe { cyclors::dds_qget_ownership(qos, &mut kind) }
            && kind == cyclors::dds_ownership_kind_DDS_OWNERSHIP_EXCLUSIVE
        {
            offered.ownership = Ownership::Exclusive;
        }
        // SAFETY: as above.
        if unsafe { cyclors::dds_qget_deadline(qos, &mut time) } {
            offered.deadline = finite(time);
        }
        // SAFETY: as above.
        if unsafe { cyclors::dds_qget_liveliness(qos, &mut kind, &mut time) } {
            offered.lease = finite(time);
            offered.liveliness = match kind {
                cyclors::dds_liveliness_kind_DDS_LIVELINESS_MANUAL_BY_TOPIC => Liveliness::ManualByTopic,
                cyclors::dds_liveliness_kind_DDS_LIVELINESS_MANUAL_BY_PARTICIPANT => {
                    Liveliness::ManualByParticipant
                }
                _ => Liveliness::Automatic,
            };
        }
        // SAFETY: as above.
        if unsafe { cyclors::dds_qget_lifespan(qos, &mut time) } {
            offered.lifespan = finite(time);
        }
        // SAFETY: as above.
        if unsafe { cyclors::dds_qget_latency_budget(qos, &mut time) } {
            offered.latency_budget = finite(time).unwrap_or(Duration::MAX);
        }
        let (mut count, mut names): (u32, *mut *mut c_char) = (0, ptr::null_mut());
        // SAFETY: as above; the library allocates an array of `count` texts, which is ours.
        if unsafe { cyclors::dds_qget_partition(qos, &mut count, &mut names) } && !names.is_null() {
            for i in 0..count as usize {
                // SAFETY: one of the terminated texts of the array, freed once.
                unsafe {
                    let name = *names.add(i);
                    offered.partitions.push(CStr::from_ptr(name).to_string_lossy().into_owned());
                    cyclors::dds_free(name.cast::<c_void>());
                }
            }
            // SAFETY: the array itself, freed once.
            unsafe { cyclors::dds_free(names.cast::<c_void>()) };
        }
        offered
    }

    /// Whether a subscription with these partitions receives its samples.
    pub(super) fn is_in(&self, partitions: &[String]) -> bool {
        let unnamed = [String::new()];
        let or_unnamed = |names: &'_ [String]| -> Vec<String> {
            if names.is_empty() { unnamed.to_vec() } else { names.to_vec() }
        };
        let theirs = or_unnamed(&self.partitions);
        or_unnamed(partitions)
            .iter()
            .any(|ours| theirs.iter().any(|theirs| fits(ours, theirs) || fits(theirs, ours)))
    }
}

fn finite(time: cyclors::dds_duration_t) -> Option<Duration> {
    u64::try_from(time).ok().filter(|_| time != cyclors::dds_duration_t::MAX).map(Duration::from_nanos)
}

/// Returns the quality of service of a subscription, completed so that all of the publishers match: the weakest of
/// their offers.
pub(super) fn requested(wanted: &TopicQos, offers: &[OfferedQos]) -> TopicQos {
    let mut qos = wanted.clone();
    let weakest = |is_reliable: bool| {
        if is_reliable { Reliability::Reliable } else { Reliability::BestEffort }
    };
    let all_reliable = offers.iter().all(|offer| offer.reliability == Reliability::Reliable);
    qos.reliability.get_or_insert(weakest(all_reliable));
    // Samples kept by a service are rare; publishers keep their own last ones.
    let durability = offers.iter().map(|offer| offer.durability).min().unwrap_or(Durability::Volatile);
    qos.durability.get_or_insert(durability.min(Durability::TransientLocal));
    // Unlike a deadline, an unset budget is 0, which no publisher with a budget matches.
    if qos.latency_budget.is_none() {
        qos.latency_budget = offers.iter().map(|offer| offer.latency_budget).max();
    }
    if qos.ownership.is_none() {
        qos.ownership = offers.first().map(|offer| offer.ownership);
    }
    qos
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(reliability: Reliability, durability: Durability) -> OfferedQos {
        OfferedQos {
            reliability,
            durability,
            ownership: Ownership::Shared,
            deadline: None,
            lifespan: None,
            liveliness: Liveliness::Automatic,
            lease: None,
            latency_budget: Duration::ZERO,
            partitions: Vec::new(),
        }
    }

    #[test]
    fn the_weakest_offer_is_requested() {
        let latched = offer(Reliability::Reliable, Durability::Persistent);
        let plain = offer(Reliability::BestEffort, Durability::Volatile);
        let of = |offers: &[OfferedQos]| {
            let qos = requested(&TopicQos::default(), offers);
            (qos.reliability, qos.durability)
        };
        assert_eq!(
            of(std::slice::from_ref(&latched)),
            (Some(Reliability::Reliable), Some(Durability::TransientLocal))
        );
        assert_eq!(
            of(&[latched.clone(), plain]),
            (Some(Reliability::BestEffort), Some(Durability::Volatile))
        );
        let set = TopicQos { durability: Some(Durability::Volatile), ..TopicQos::default() };
        assert_eq!(requested(&set, &[latched]).durability, Some(Durability::Volatile));
    }

    #[test]
    fn the_greatest_latency_budget_is_requested() {
        let slow = |latency_budget| OfferedQos {
            latency_budget,
            ..offer(Reliability::Reliable, Durability::Volatile)
        };
        let (ms, wanted) = (Duration::from_millis(20), TopicQos::default());
        let of = |offers: &[OfferedQos]| requested(&wanted, offers).latency_budget;
        assert_eq!(of(&[slow(Duration::ZERO), slow(ms)]), Some(ms));
        assert_eq!(of(&[slow(ms), slow(Duration::MAX)]), Some(Duration::MAX));
        let set = TopicQos { latency_budget: Some(Duration::ZERO), ..wanted.clone() };
        assert_eq!(requested(&set, &[slow(ms)]).latency_budget, Some(Duration::ZERO));
    }

    #[test]
    fn partitions_meet_with_wildcards_on_either_side() {
        let there = |names: &[&str]| OfferedQos {
            partitions: names.iter().map(|name| (*name).to_owned()).collect(),
            ..offer(Reliability::Reliable, Durability::Volatile)
        };
        let ours = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        assert!(there(&[]).is_in(&[]) && there(&["a", "b"]).is_in(&ours(&["b"])));
        assert!(there(&["front/left"]).is_in(&ours(&["front/*"])) && there(&["*"]).is_in(&ours(&["x"])));
        assert!(!there(&["a"]).is_in(&[]) && !there(&[]).is_in(&ours(&["a"])));
    }
}
