//! A monitor and what waits for it, as they go into a snapshot.

use std::sync::Arc;

use rondel_event::{Event, Slot, Timestamp, TopicId};

use super::monitor::slots_of;
use super::{AlignedMonitor, Rule};
use rondel_engine::{Monitor, Program};
use rondel_event::SnapshotError;
use rondel_event::snapshot::{self, Kind, checksum};

const ALIGNED: &Kind = b"RONDELal";
/// The version of the saved form.
const VERSION: u32 = 12;

/// What tells a program behind a rule from others. The settings of the rule are told by its own part.
fn fingerprint(program: &Program, rule: &Rule) -> u64 {
    let what = match rule {
        Rule::Order(_) => "order".to_owned(),
        Rule::Sets { topics, joined, .. } => format!("sets {topics:?} {joined}"),
    };
    checksum(format!("{} {what}", program.fingerprint()).as_bytes())
}

impl AlignedMonitor {
    /// All that the monitor remembers, and all that waits for it, as bytes. One that is
    /// [restored](AlignedMonitor::restore) from them gives the same reports and notices from there on; notices that were not
    /// taken are not in it.
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

    /// A monitor that goes on where the one went on that the snapshot is of, behind a rule of these settings, which is
    /// new.
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

    /// Nobody has listened since the last call until the clock shows `now`: what is not waited for any longer is
    /// evaluated, but no topic is absent for not having been heard meanwhile.
    pub fn unheard_until(&mut self, now: Timestamp) {
        match self.rule_mut() {
            Rule::Order(order) => order.unheard_until(now),
            Rule::Sets { sets, .. } => sets.unheard_until(now),
        }
    }
}

/// Whether it is an event of such a program.
fn is_of(event: &Event, slots: &[Vec<Slot>]) -> bool {
    let slots = event.topic().and_then(|topic: TopicId| slots.get(topic.index()));
    slots.is_some_and(|slots| event.fits(slots))
}
