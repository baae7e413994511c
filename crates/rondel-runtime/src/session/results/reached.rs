//! Limits of instances and parameters that a monitor reaches, each said once.

use rondel_engine::Monitor;
use rondel_spec::Spec;

use crate::report::notice::Notice;

/// The divisions by parameter whose limits were not reached yet: of the number of instances, and of the length of a
/// parameter.
#[derive(Clone, Debug)]
pub(crate) struct Reached {
    watched: Vec<[bool; 2]>,
}

impl Reached {
    /// Watches all divisions of a monitor, except those that have reached their limit in another run.
    pub(crate) fn new(monitor: &Monitor) -> Reached {
        Reached { watched: monitor.refused().map(|refused| refused.map(|count| count == 0)).collect() }
    }

    /// Emits a notice for every limit reached since the last call. Costs nothing without `for each`.
    #[inline]
    pub(crate) fn look(&mut self, monitor: &Monitor, spec: &Spec, emit: impl FnMut(Notice)) {
        if self.has_reached(monitor.refused()) {
            self.emit(monitor, spec, emit);
        }
    }

    /// Whether a limit was reached since the last call, by the [numbers of events](Monitor::refused) left out at limits.
    #[inline]
    pub(crate) fn has_reached(&self, refused: impl Iterator<Item = [u64; 2]>) -> bool {
        let mut both = self.watched.iter().zip(refused);
        both.any(|([a, b], [beyond, long])| *a && beyond > 0 || *b && long > 0)
    }

    #[cold]
    fn emit(&mut self, monitor: &Monitor, spec: &Spec, mut emit: impl FnMut(Notice)) {
        for (watched, slice) in self.watched.iter_mut().zip(monitor.slices()) {
            let is_limit = slice.refused > 0 && std::mem::take(&mut watched[0]);
            let is_long = slice.too_long > 0 && std::mem::take(&mut watched[1]);
            // The parts watched for explanations are no properties of the specification.
            let names =
                slice.properties.iter().filter_map(|property| spec.properties.get(*property as usize));
            for property in names {
                if is_limit {
                    let first = slice.first_refused.unwrap_or_default();
                    emit(Notice::limit(&property.name, slice.instances, slice.full, first));
                }
                if is_long {
                    emit(Notice::long_parameter(&property.name));
                }
            }
        }
    }
}
