//! Snapshots of a monitor with the events that wait for it.

use std::sync::Arc;

use rondel_event::{Event, Slot, Timestamp, TopicId};

use super::monitor::slots_of;
use super::{AlignedMonitor, Rule};
use rondel_engine::{Monitor, Program, Snapshot};
use rondel_event::SnapshotError;
use rondel_event::snapshot::{self, Kind, checksum};

const ALIGNED: &Kind = b"RONDELal";
/// The version of the saved form.
const VERSION: u32 = 14;

/// The fingerprint of a program behind a rule. The settings of the rule have their own fingerprint.
fn fingerprint(program: &Program, rule: &Rule) -> u64 {
    let what = match rule {
        Rule::Order(_) => "order".to_owned(),
        Rule::Sets { topics, joined, .. } => format!("sets {topics:?} {joined}"),
    };
    checksum(format!("{} {what}", program.fingerprint()).as_bytes())
}

impl AlignedMonitor {
    /// The state of the monitor and the waiting events, as bytes. A monitor [restored](AlignedMonitor::restore) from
    /// them returns the same reports and notices from there on. Notices that were not taken are not included.
    pub fn snapshot(&self) -> Vec<u8> {
        let write = |event: &Arc<Event>, to: &mut Vec<u8>| event.write(to);
        let rule = match self.rule() {
            Rule::Order(order) => order.snapshot(write),
            Rule::Sets { sets, .. } => sets.snapshot(write),
        };
        let monitor = self.monitor();
        let parts = postcard::to_stdvec(&(monitor.snapshot(), rule)).unwrap_or_default();
        snapshot::seal(ALIGNED, VERSION, fingerprint(monitor.program(), self.rule()), &parts)
    }

    /// A monitor that continues from a snapshot, behind a new rule with the same settings.
    ///
    /// # Errors
    /// [`SnapshotError`] when the bytes are no snapshot, not whole, of another program, or of a rule with other
    /// settings.
    pub fn restore(program: Arc<Program>, rule: Rule, bytes: &[u8]) -> Result<AlignedMonitor, SnapshotError> {
        let (fingerprint, other) = (fingerprint(&program, &rule), SnapshotError::OtherProgram);
        let parts = snapshot::open(ALIGNED, VERSION, fingerprint, other, bytes)?;
        let (monitor, waiting): (Vec<u8>, Vec<u8>) =
            postcard::from_bytes(parts).map_err(|_| SnapshotError::Altered)?;
        let slots = slots_of(&program);
        let read = |bytes: &[u8]| Event::read(bytes).filter(|event| is_of(event, &slots)).map(Arc::new);
        let rule = match rule {
            Rule::Order(order) => Rule::Order(order.restored(&waiting, read)?),
            Rule::Sets { sets, topics, joined } => {
                Rule::Sets { sets: sets.restored(&waiting, read)?, topics, joined }
            }
        };
        let mut restored = AlignedMonitor::new(Arc::clone(&program), rule);
        *restored.monitor_mut() = Monitor::restore(program, &monitor)?;
        Ok(restored)
    }

    /// The parts of a snapshot of any program and rule: of the monitor, and of what waits.
    ///
    /// # Errors
    /// [`SnapshotError`] when the bytes are no snapshot, or not whole.
    pub(crate) fn parts(bytes: &[u8]) -> Result<(Vec<u8>, Vec<u8>), SnapshotError> {
        let (_, parts) = snapshot::open_any(ALIGNED, VERSION, bytes)?;
        postcard::from_bytes(parts).map_err(|_| SnapshotError::Altered)
    }

    /// A monitor that takes over from the snapshot of another program what its properties [continue](Monitor::adopt),
    /// with the events that waited there.
    ///
    /// # Errors
    /// Those of [`AlignedMonitor::restore`].
    pub(crate) fn adopt(
        program: Arc<Program>,
        rule: Rule,
        snapshot: Snapshot,
        waiting: &[u8],
    ) -> Result<AlignedMonitor, SnapshotError> {
        let (places, slots) = (snapshot.rearranged(&program), slots_of(&program));
        let read = |bytes: &[u8]| {
            let event = Event::read(bytes)?;
            let (topic, fields) = places.get(event.topic()?.index())?.as_ref()?;
            Some(Arc::new(event.rearranged(*topic, fields))).filter(|event| is_of(event, &slots))
        };
        let rule = match rule {
            Rule::Order(order) => {
                let topics: Vec<_> = places.iter().map(|place| Some(place.as_ref()?.0)).collect();
                Rule::Order(order.rearranged(waiting, &topics, read)?)
            }
            Rule::Sets { sets, topics, joined } => {
                Rule::Sets { sets: sets.restored(waiting, read)?, topics, joined }
            }
        };
        let mut adopted = AlignedMonitor::new(Arc::clone(&program), rule);
        *adopted.monitor_mut() = Monitor::adopt(program, snapshot)?;
        Ok(adopted)
    }

    /// Ends a pause that lasted until `now`: evaluates events whose wait is over, but reports no topic as absent for
    /// its silence during the pause.
    pub fn unheard_until(&mut self, now: Timestamp) {
        match self.rule_mut() {
            Rule::Order(order) => order.advance_after_gap(now),
            Rule::Sets { sets, .. } => sets.advance_after_gap(now),
        }
    }
}

/// Whether an event has the fields of a program with these slots.
fn is_of(event: &Event, slots: &[Vec<Slot>]) -> bool {
    let slots = event.topic().and_then(|topic: TopicId| slots.get(topic.index()));
    slots.is_some_and(|slots| event.fits(slots))
}
