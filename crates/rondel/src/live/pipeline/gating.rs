//! Gates in the pipeline: messages of their topics are evaluated one by one, and passed on if the gate is open then.

use std::time::Duration;

use rondel_event::TopicId;

use super::{Pipeline, State};
use crate::live::gate::GateFigures;

impl Pipeline {
    /// The state of each gate.
    pub fn gates(&self) -> Vec<GateFigures> {
        self.state().gate_figures()
    }

    /// Returns [`Pipeline::gates`]; `None` if the evaluating thread holds the lock for longer than `limit`.
    pub fn gates_within(&self, limit: Duration) -> Option<Vec<GateFigures>> {
        self.state_within(limit).map(|state| state.gate_figures())
    }
}

impl State {
    /// Evaluates a message that was received, with all before it, and decides whether it is passed on. `before` is the
    /// number of evaluated messages before it.
    #[inline(never)]
    pub(super) fn decide(&mut self, topic: TopicId, payload: &[u8], before: u64) {
        self.session.flush();
        let is_evaluated = self.session.events() > before;
        if let Some(gates) = &mut self.gates {
            gates.message(topic, payload, is_evaluated, &self.session);
        }
    }

    /// Reports gates that have opened or closed, and records them in the audit file.
    #[cold]
    pub(super) fn report_gates(&mut self) {
        let Some(gates) = &mut self.gates else { return };
        let changes: Vec<_> = gates.changes().collect();
        for change in &changes {
            self.sinks.record("gate", &change.json());
        }
        self.notices.take(changes.into_iter(), &mut self.sinks.stdout);
    }

    /// Lets gates publish from now on, in an epoch of the group.
    pub(super) fn take_over_gates(&mut self, epoch: u64) {
        let Some(gates) = &mut self.gates else { return };
        gates.take_over(epoch, self.traffic.first.is_some());
        if gates.has_changes() {
            self.report_gates();
        }
    }

    /// Lets gates continue with a session that has the state of another member.
    pub(super) fn join_gates(&mut self) {
        if let Some(gates) = &mut self.gates {
            gates.join(&self.session);
        }
    }

    /// Lets gates publish nothing until they take over.
    pub(super) fn stop_gates(&mut self) {
        if let Some(gates) = &mut self.gates {
            gates.stop_publishing();
        }
    }

    /// Shows the state of the gates in diagnostics.
    pub(super) fn show_gates(&mut self) {
        if let Some(gates) = &self.gates {
            self.sinks.parts = gates.figures().iter().map(GateFigures::part).collect();
        }
    }

    /// Passes nothing on any more.
    pub(super) fn end_gates(&mut self) {
        if let Some(gates) = &mut self.gates {
            gates.look(&self.session);
            gates.end();
        }
        self.show_gates();
    }

    /// The state of each gate.
    pub(super) fn gate_figures(&self) -> Vec<GateFigures> {
        self.gates.as_ref().map_or_else(Vec::new, |gates| gates.figures())
    }
}
