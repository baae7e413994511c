//! Instances of a topic that were disposed of, or have no publisher any more.

use std::collections::BTreeSet;

use cyclors::{dds_instance_handle_t, dds_sample_info_t};

use crate::adapter::{Change, Instance};

/// Limit of remembered instances that are gone.
const GONE: usize = 65_536;

/// Reported states of the instances of a reader. The library reports a change of an instance with its last sample, or
/// with an empty one if there is none.
#[derive(Debug, Default)]
pub(super) struct Instances {
    /// Instances reported as gone.
    gone: BTreeSet<dds_instance_handle_t>,
    /// Instances of the current samples that had been gone before, with the number of times.
    reborn: Vec<(dds_instance_handle_t, u32)>,
}

/// Returns the instance of a sample.
fn named<'d>(info: &dds_sample_info_t, data: &'d [u8], has_keys: bool) -> Instance<'d> {
    match (info.valid_data, has_keys) {
        (_, false) => Instance::Unnamed,
        (true, true) => Instance::Sample(data),
        (false, true) => Instance::Key(data),
    }
}

impl Instances {
    /// Begins with new samples.
    pub(super) fn begin(&mut self) {
        self.reborn.clear();
    }

    /// Whether a sample may come with a change of its instance.
    #[inline]
    pub(super) fn concerns(info: &dds_sample_info_t) -> bool {
        info.instance_state != cyclors::dds_instance_state_DDS_IST_ALIVE
            || info.disposed_generation_count | info.no_writers_generation_count != 0
    }

    /// Returns the change of an instance before a sample of it, which names the instance.
    pub(super) fn before<'d>(
        &mut self,
        info: &dds_sample_info_t,
        data: &'d [u8],
        has_keys: bool,
    ) -> Option<Change<'d>> {
        let times = info.disposed_generation_count.wrapping_add(info.no_writers_generation_count);
        if times == 0 || info.view_state != cyclors::dds_view_state_DDS_VST_NEW {
            return None;
        }
        let handle = info.instance_handle;
        let seen = match self.reborn.iter_mut().find(|(instance, _)| *instance == handle) {
            Some((_, seen)) => std::mem::replace(seen, times),
            None => {
                self.reborn.push((handle, times));
                0
            }
        };
        let is_known = self.gone.remove(&handle) || seen >= times;
        (!is_known).then_some(if info.disposed_generation_count > 0 {
            Change::Disposed(named(info, data, has_keys))
        } else {
            Change::Unregistered(named(info, data, has_keys))
        })
    }

    /// Returns the change of an instance after a sample of it.
    pub(super) fn after<'d>(
        &mut self,
        info: &dds_sample_info_t,
        data: &'d [u8],
        has_keys: bool,
    ) -> Option<Change<'d>> {
        // Further samples of the instance follow.
        if info.sample_rank != 0 {
            return None;
        }
        let instance = named(info, data, has_keys);
        let change = match info.instance_state {
            cyclors::dds_instance_state_DDS_IST_NOT_ALIVE_DISPOSED => Change::Disposed(instance),
            cyclors::dds_instance_state_DDS_IST_NOT_ALIVE_NO_WRITERS => Change::Unregistered(instance),
            _ => return None,
        };
        if self.gone.len() < GONE {
            self.gone.insert(info.instance_handle);
        }
        Some(change)
    }
}
