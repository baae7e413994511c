//! A pipeline in simulation time, which messages on `/clock` of ROS 2 set.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rondel_event::{Timestamp, TopicId};
use rondel_net::adapter::{Receiver, Sample};
use rondel_net::ros2;
use rondel_runtime::{Cause, Clock, Notice, SessionPlan, Simulation, Step, Summary, SystemClock};

use super::clock_account::{ClockAccount, Jumps, SILENCE};
use super::{Pipeline, State};
use crate::warn;

/// A simulation, and the plan from which a session restarts when the simulation does.
pub struct Simulated {
    simulation: Simulation,
    plan: Arc<SessionPlan>,
    /// Statistics of the sessions before the last restart.
    before: Option<Summary>,
    /// Whether the present silence was reported.
    is_said: bool,
    account: ClockAccount,
}

impl Simulated {
    /// Creates a simulation for sessions of a plan whose clock is that of the simulation.
    pub fn new(simulation: Simulation, plan: Arc<SessionPlan>) -> Simulated {
        let account = ClockAccount::new(plan.specification().is_timed());
        Simulated { simulation, plan, before: None, is_said: false, account }
    }
}

impl Simulated {
    /// Counts a jump of the clock.
    fn jumped(&mut self, which: fn(&mut ClockAccount) -> &mut Jumps, from: Timestamp, to: Timestamp) {
        which(&mut self.account).add(from, to);
        if self.account.jumped(self.simulation.machine_ticks()) {
            warn("the time on /clock jumps again and again: are there two publishers of /clock?");
        }
    }
}

/// Returns the clock of a run, and the simulation that sets it if `is_simulated`.
pub fn clock(is_simulated: bool) -> (Arc<dyn Clock>, Option<Simulation>) {
    let machine = Arc::new(SystemClock);
    if !is_simulated {
        return (machine, None);
    }
    let simulation = Simulation::new(machine);
    (simulation.clock(), Some(simulation))
}

/// Receives the messages on `/clock`.
pub struct ClockReceiver(pub Arc<Pipeline>);

impl Receiver for ClockReceiver {
    fn receive(&self, _: TopicId, samples: &[Sample<'_>]) {
        samples.iter().for_each(|sample| self.0.set_clock(sample.payload));
    }
}

impl Pipeline {
    /// Sets the clock from a message on `/clock`.
    pub fn set_clock(&self, payload: &[u8]) {
        if self.ending.load(Ordering::Relaxed) {
            return;
        }
        let state = &mut *self.state();
        // Earlier messages arrived before this time.
        self.flush(state);
        let Some(simulated) = &mut state.simulated else { return };
        let Some(time) = ros2::clock::read(payload) else {
            simulated.account.unread += 1;
            if simulated.account.unread == 1 {
                warn("a message on /clock is not a rosgraph_msgs/msg/Clock: it and further ones are ignored");
            }
            return;
        };
        let began = simulated.simulation.clock().now();
        simulated.is_said = false;
        simulated.account.messages += 1;
        match simulated.simulation.set(time) {
            Step::Stands => return,
            Step::Passed => {}
            // The simulation time between the earlier messages and this one is unknown.
            Step::Began if state.traffic.received > 0 => {
                state.session.leapt(began, 0, Cause::Begun);
            }
            Step::Began => {}
            Step::Leapt(from, ticks, cause) => {
                if cause == Cause::Simulation {
                    simulated.jumped(|account| &mut account.leaps, from, time);
                }
                state.session.leapt(from, ticks, cause);
            }
            Step::Returned(from) => {
                simulated.jumped(|account| &mut account.restarts, from, time);
                state.restart(Notice::simulation_restarted(from, time));
            }
        }
        state.emit();
        if self.batches() {
            state.release();
        }
        if state.session.due().is_some_and(|due| due <= self.clock.ticks()) {
            self.sooner.notify_one();
        }
    }
}

impl State {
    /// Whether a simulation sets the time.
    pub(super) fn is_simulated(&self) -> bool {
        self.simulated.is_some()
    }

    /// The time of the simulation, if one sets the time.
    pub(super) fn simulated_time(&self) -> Option<Timestamp> {
        self.simulated.as_ref().map(|simulated| simulated.simulation.clock().now())
    }

    /// Marks the process as running, and reports a silent `/clock`.
    pub(super) fn look_for_clock(&mut self) {
        let Some(simulated) = &mut self.simulated else { return };
        simulated.simulation.alive();
        let silence = simulated.simulation.silence();
        if silence >= SILENCE && !std::mem::replace(&mut simulated.is_said, true) {
            let notice = Notice::no_clock(SILENCE, simulated.simulation.has_begun());
            self.notices.take(std::iter::once(notice), &mut self.sinks.stdout);
        }
    }

    /// Records the time since the last message on `/clock`, at the end.
    pub(super) fn end_clock(&mut self) {
        if let Some(simulated) = &mut self.simulated {
            simulated.account.silence = simulated.simulation.silence();
        }
    }

    /// Returns the statistics of `/clock`, if a simulation sets the time.
    pub(super) fn clock_account(&self) -> Option<&ClockAccount> {
        self.simulated.as_ref().map(|simulated| &simulated.account)
    }

    /// Ends the session as at the end of a recording, and starts another.
    fn restart(&mut self, notice: Notice) {
        self.notices.take(std::iter::once(notice), &mut self.sinks.stdout);
        let Some(simulated) = &mut self.simulated else { return };
        let mut next = match simulated.plan.start() {
            Ok(next) => next,
            Err(error) => return warn(&format!("checking cannot restart: {error}")),
        };
        for (topic, message_type) in &self.resolved {
            // The session before could read it.
            _ = next.resolve_type(*topic, message_type);
        }
        for (topic, of) in &self.further {
            // In the same order, so that their indices stay.
            _ = next.add_type(*topic, of.clone());
        }
        self.session.finish();
        next.continue_workers(&mut self.session);
        let mut before = self.session.summary();
        if let Some(mut first) = simulated.before.take() {
            first.continue_with(before);
            before = first;
        }
        simulated.before = Some(before);
        self.emit();
        let losses = self.session.losses();
        self.notices.take(losses.into_iter(), &mut self.sinks.stdout);
        self.session = next;
        self.armed = None;
    }

    /// Returns the statistics of all sessions, including those before restarts.
    pub(super) fn all(&self) -> Summary {
        let now = self.summary_of_sessions();
        match self.simulated.as_ref().and_then(|simulated| simulated.before.clone()) {
            None => now,
            Some(mut before) => {
                before.continue_with(now);
                before
            }
        }
    }
}
