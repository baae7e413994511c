//! Reception: samples of the networks into the session, and the first message that cannot be decoded.

use std::fmt;
use std::sync::atomic::Ordering;

use rondel_decode::avro::unframe;
use rondel_decode::cdr;
use rondel_decode::schema::Schema;
use rondel_event::{Timestamp, TopicId, TypeIndex, terminal};
use rondel_net::adapter::{Change, ChangeTime, Receiver, Sample, now};
use rondel_runtime::text::size;
use rondel_runtime::{DecodeError, Stamp};

use super::{PROGRESS, Pipeline, State, Stop};
use crate::warn;

/// Reason why a record of Kafka was not evaluated.
pub(super) enum Refusal {
    /// It cannot be decoded.
    Undecodable(DecodeError),
    /// It is larger than this limit in bytes.
    TooLarge(usize),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Undecodable(error) => error.fmt(f),
            Refusal::TooLarge(limit) => write!(f, "larger than the limit of {}", size(*limit)),
        }
    }
}

impl Receiver for Pipeline {
    fn receive(&self, slot: TopicId, samples: &[Sample<'_>]) {
        if self.ending.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state();
        if slot == PROGRESS {
            samples.iter().for_each(|sample| state.session.progress(sample.payload));
            return;
        }
        let before = state.traffic.received;
        self.place.evaluating(before);
        state.receive(slot, samples);
        if state.refusal.is_some() {
            self.has_refusal.store(true, Ordering::Relaxed);
        }
        self.end_if_failed(&state);
        self.stop_at_count(before, &mut state);
    }

    fn refusal(&self, slot: TopicId) -> Option<Box<str>> {
        // Without the lock unless there is one.
        if !self.has_refusal.load(Ordering::Relaxed) {
            return None;
        }
        let mut state = self.state();
        let refused = state.refusal.take_if(|(refused, _)| *refused == slot);
        self.has_refusal.store(state.refusal.is_some(), Ordering::Relaxed);
        refused.map(|(_, why)| why.to_string().into())
    }

    fn receive_unnamed(&self, slot: TopicId, sample: Sample<'_>, why: &str) -> bool {
        if self.ending.load(Ordering::Relaxed) {
            return true;
        }
        let mut state = self.state();
        let before = state.traffic.received;
        state.receive_unnamed(slot, &sample, why);
        self.end_if_failed(&state);
        self.stop_at_count(before, &mut state);
        true
    }

    fn idle(&self) {
        let mut state = self.state();
        self.flush(&mut state);
        if let Some(meter) = &mut state.meter {
            meter.idle();
        }
        if self.batches() {
            state.release();
        }
    }

    fn missed(&self, slot: TopicId, from: Timestamp, until: Option<Timestamp>) {
        self.cut_off(&[slot], from, until);
    }

    fn changed(&self, slot: TopicId, change: Change<'_>, time: ChangeTime) {
        let (event, holds) = change.event();
        if self.ending.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.known_slot(slot);
        let Some(topic) = state.slots.topic(slot) else { return };
        let time = match state.is_simulated() {
            true => self.clock.now(),
            false => time.among(state.session.has_source_times(topic)),
        };
        // An event is evaluated at once, since no message need follow.
        let instance = change.instance().and_then(|instance| instance.payload());
        let is_read = match (change.owner(), instance) {
            (Some(publisher), instance) => state.session.owner(topic, &publisher, instance, time),
            (None, Some(instance)) => state.session.instance_event(topic, event, instance, time),
            (None, None) => state.session.event(topic, event, holds, time),
        };
        if is_read {
            state.disturb_seam("an event of a topic came meanwhile");
            self.flush(&mut state);
            if self.batches() {
                state.release();
            }
        }
    }

    fn wants_owner(&self, slot: TopicId) -> bool {
        slot < PROGRESS && self.reads_owner.load(Ordering::Relaxed)
    }

    fn wants_types(&self, slot: TopicId) -> bool {
        slot < PROGRESS
    }

    fn further_type(&self, slot: TopicId, publisher: &str, schema: &Schema) -> Option<TypeIndex> {
        self.add_type(slot, publisher, schema)
    }

    fn wants_idle(&self) -> bool {
        true
    }
}

impl Pipeline {
    /// Requests the end of the run if the last wanted message has come since `before` messages.
    #[inline]
    pub(super) fn stop_at_count(&self, before: u64, state: &mut State) {
        if before < self.stop_after && state.traffic.received >= self.stop_after {
            self.flush(state);
            state.traffic.last = Some(now());
            state.traffic.until_last = state.traffic.received;
            // The receiver is gone when the run is ending already.
            let _ = self.stop.send(Stop::Count);
        }
    }
}

impl State {
    /// Pushes samples of a subscription into the session and emits its reports.
    pub(super) fn receive(&mut self, slot: TopicId, samples: &[Sample<'_>]) {
        let Some(topic) = self.slots.topic(slot) else { return self.slots.hold(slot, samples) };
        if let Some(partition) = samples.first().and_then(|sample| sample.partition)
            && !self.turn_to(partition)
        {
            // Another member receives it.
            return;
        }
        self.traffic.received += samples.len() as u64;
        if let Some(meter) = &mut self.meter {
            meter.receive(topic, samples);
        }
        if let Some(tap) = &self.tap {
            tap.receive(topic, samples);
        }
        if let Some(copies) = &self.copies
            && copies.wants_messages()
        {
            copies.receive(topic, samples, self.simulated_time());
        }
        // Networks know the time of day.
        let is_simulated = self.is_simulated();
        let is_gated = self.gates.as_ref().is_some_and(|gates| gates.reads(topic));
        let is_at_seam = self.is_at_seam();
        for sample in samples {
            let mut arrival = sample.known_arrival();
            if let Some(recorder) = &mut self.recorder {
                // The session need not read the clock again.
                let time = sample.arrival();
                arrival = Some(time);
                recorder.keep(slot, sample, time);
            }
            if is_simulated {
                arrival = None;
            }
            if is_at_seam && self.is_contained(topic, sample) {
                continue;
            }
            let stamp = Stamp {
                source: sample.source_time,
                arrival,
                origin: sample.origin,
                name: sample.name,
                of_type: sample.of_type,
            };
            let before = if is_gated { self.session.events() } else { 0 };
            let is_record = sample.partition.is_some();
            match self.session.push(topic, stamp, sample.payload) {
                Err(error) => {
                    self.undecodable(topic, sample, &error);
                    if is_record {
                        self.refusal = Some((slot, Refusal::Undecodable(error)));
                    }
                }
                Ok(()) if is_record && sample.payload.len() > self.session.largest_message() => {
                    self.refusal = Some((slot, Refusal::TooLarge(self.session.largest_message())));
                }
                Ok(()) => {}
            }
            if is_gated {
                self.decide(topic, sample.payload, before);
            }
        }
        // Gates have looked when they decided about the last message, unless the state that was taken contains it.
        if is_gated && !is_at_seam && !samples.is_empty() {
            self.send()
        } else {
            self.emit()
        }
        if let Some(meter) = &mut self.meter
            && !self.session.has_workers()
        {
            meter.pushed();
        }
        if self.traffic.first.is_none()
            && let Some(sample) = samples.first()
        {
            self.note_first(sample);
        }
    }

    /// Notes the first sample of the run.
    #[cold]
    fn note_first(&mut self, sample: &Sample<'_>) {
        // The clock is not read again before the end: that costs more than a step.
        self.traffic.first = Some(sample.arrival());
        if let Some(gates) = &mut self.gates {
            gates.note_first();
        }
    }

    /// Counts a sample of a subscription without a name as undecodable.
    #[cold]
    fn receive_unnamed(&mut self, slot: TopicId, sample: &Sample<'_>, why: &str) {
        let Some(topic) = self.slots.topic(slot) else {
            return self.slots.drop_awaited(slot, sample.arrival());
        };
        if let Some(partition) = sample.partition
            && !self.turn_to(partition)
        {
            return;
        }
        self.traffic.received += 1;
        if let Some(meter) = &mut self.meter {
            meter.receive(topic, std::slice::from_ref(sample));
        }
        let arrival = if self.is_simulated() { None } else { sample.known_arrival() };
        let stamp = Stamp { source: sample.source_time, arrival, origin: sample.origin, ..Stamp::default() };
        self.session.push_unnamed(topic, stamp, sample.payload.len(), why);
        self.emit();
        if self.traffic.first.is_none() {
            self.note_first(sample);
        }
    }

    /// Warns of the first message that cannot be decoded.
    #[cold]
    fn undecodable(&mut self, topic: TopicId, sample: &Sample<'_>, error: &DecodeError) {
        self.undecodable += 1;
        if self.undecodable > 1 {
            return;
        }
        let is_json = matches!(error, DecodeError::Json(_));
        let payload = sample.payload;
        // On Kafka, these bytes are rather the framing of a registry than that of CDR.
        let hint = if is_json && sample.partition.is_some() && unframe(payload).is_some() {
            "; it begins like a message of a schema registry: `encoding: avro` with `registry:` reads those in Avro"
        } else if is_json && cdr::is_encapsulated(payload) {
            "; it begins like CDR: `encoding: cdr` reads messages by their type, `encoding: cdr_string` JSON that a bridge \
             passes on"
        } else {
            ""
        };
        let what = match error.is_about_time() {
            true => "its time cannot be used",
            false if is_json => "it is not JSON",
            false => "it is not a message of its type",
        };
        let shown = if is_json { format!(": {}", excerpt(payload, error.offset())) } else { String::new() };
        warn(&format!(
            "cannot decode a message of {} bytes on {}: {what} ({error}){shown}{hint}; further ones are only counted",
            payload.len(),
            self.topics[topic.index()],
        ));
    }
}

/// Returns the part of a payload around an offset.
fn excerpt(payload: &[u8], offset: usize) -> String {
    let start = offset.min(payload.len()).saturating_sub(20);
    let end = (start + 40).min(payload.len());
    let mut out = String::new();
    if start > 0 {
        out.push('…');
    }
    out.push_str(&terminal::escaped(&String::from_utf8_lossy(&payload[start..end])));
    if end < payload.len() {
        out.push('…');
    }
    out
}
