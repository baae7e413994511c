//! Simulated time: a clock set by messages, which may jump or stop coming.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rondel_event::Timestamp;

use crate::statistics::Cause;
use crate::time::GRACE;
use crate::time::clock::{Clock, NO_TIME, Ticks};

/// Minimum length of a jump, in nanoseconds. Messages that are back by less are out of order.
const JUMP: i64 = 500_000_000;
/// Minimum ratio of a jump to the shorter one of the two steps before it: a simulation may run fast, or set its clock
/// rarely.
const UNUSUAL: i64 = 4;
/// A step that differs from the one before by at most this fraction repeats it, and is no jump.
const ALIKE: i64 = 8;
/// Time without a call of [`Simulation::alive`] from which on the process counts as paused, in nanoseconds.
const STALL: i64 = 500_000_000;

/// A clock that shows the time of the last message that set it, and stands still in between. Before the first message it
/// shows zero. [`Simulation`] sets it.
pub struct SimulatedClock {
    machine: Arc<dyn Clock>,
    /// Time shown, in nanoseconds; that of [`NO_TIME`] before the first message.
    shown: AtomicI64,
    /// The time of the last message, which it may not show yet.
    latest: AtomicI64,
    /// Progress since the first message, in nanoseconds.
    ticks: AtomicI64,
}

impl SimulatedClock {
    fn new(machine: Arc<dyn Clock>) -> SimulatedClock {
        let [shown, latest] = [(); 2].map(|()| AtomicI64::new(NO_TIME.as_nanos()));
        SimulatedClock { machine, shown, latest, ticks: AtomicI64::new(0) }
    }

    fn read(cell: &AtomicI64) -> Option<Timestamp> {
        Some(Timestamp::from_nanos(cell.load(Ordering::Relaxed))).filter(|time| *time != NO_TIME)
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        SimulatedClock::read(&self.shown).unwrap_or(Timestamp::ZERO)
    }

    fn ticks(&self) -> Ticks {
        self.ticks.load(Ordering::Relaxed)
    }

    fn latest(&self) -> Option<Timestamp> {
        SimulatedClock::read(&self.latest)
    }

    fn time_of_day(&self) -> Timestamp {
        self.machine.time_of_day()
    }
}

/// Effect of a message on the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Stands,
    /// It was the first one.
    Began,
    /// Time passed.
    Passed,
    /// Time leapt forward from this time and this reading of [`Clock::ticks`]: call
    /// [`Session::leapt`](crate::Session::leapt).
    Leapt(Timestamp, Ticks, Cause),
    /// The clock was set back from this time: the simulation was restarted, and the session must be too.
    Returned(Timestamp),
}

/// Sets a [`SimulatedClock`] by the messages of a simulation.
///
/// After a time in which the process did not run, the clock stands still for [`GRACE`], so that messages that waited
/// come before time passes.
pub struct Simulation {
    clock: Arc<SimulatedClock>,
    /// When the process last ran, by the clock of the machine.
    ran: Ticks,
    /// When the last message came, or the simulation was first waited for.
    came: Ticks,
    held_until: Option<Ticks>,
    /// Last two steps, in nanoseconds, without those during pauses of the process.
    steps: [Option<i64>; 2],
}

impl Simulation {
    /// Creates a simulation without messages so far; `machine` is the clock of the machine.
    pub fn new(machine: Arc<dyn Clock>) -> Simulation {
        let now = machine.ticks();
        let clock = Arc::new(SimulatedClock::new(machine));
        Simulation { clock, ran: now, came: now, held_until: None, steps: [None; 2] }
    }

    /// The clock that it sets.
    pub fn clock(&self) -> Arc<SimulatedClock> {
        Arc::clone(&self.clock)
    }

    /// Whether a message has come.
    pub fn has_begun(&self) -> bool {
        self.clock.latest().is_some()
    }

    /// Reading of the machine's clock.
    pub fn machine_ticks(&self) -> Ticks {
        self.clock.machine.ticks()
    }

    /// Time since the last message, in nanoseconds of the machine's clock.
    pub fn silence(&self) -> i64 {
        self.machine_ticks().saturating_sub(self.came)
    }

    /// Records that the process runs. Call it several times in half a second.
    pub fn alive(&mut self) {
        let now = self.clock.machine.ticks();
        if now.saturating_sub(std::mem::replace(&mut self.ran, now)) >= STALL {
            self.held_until = Some(now.saturating_add(GRACE));
        }
    }

    /// Whether a step is much longer than those before it, of which none may be known.
    fn is_unusual(&self, step: i64) -> bool {
        let repeats = |last: i64| step.saturating_sub(last).saturating_abs() <= last / ALIKE;
        let usual = self.steps.into_iter().flatten().min();
        !self.steps[1].is_some_and(repeats) && usual.is_none_or(|usual| step > usual.saturating_mul(UNUSUAL))
    }

    /// Sets the clock to the time of a message.
    pub fn set(&mut self, time: Timestamp) -> Step {
        self.alive();
        let SimulatedClock { machine, shown, latest, ticks } = &*self.clock;
        self.came = machine.ticks();
        latest.store(time.as_nanos(), Ordering::Relaxed);
        let Some(from) = SimulatedClock::read(shown) else {
            shown.store(time.as_nanos(), Ordering::Relaxed);
            self.held_until = None;
            return Step::Began;
        };
        if self.held_until.is_some_and(|until| self.came < until) {
            return Step::Stands;
        }
        let was_held = self.held_until.take().is_some();
        let step = time.as_nanos().saturating_sub(from.as_nanos());
        if step <= -JUMP {
            shown.store(time.as_nanos(), Ordering::Relaxed);
            self.steps = [None; 2];
            return Step::Returned(from);
        }
        if step <= 0 {
            return Step::Stands;
        }
        shown.store(time.as_nanos(), Ordering::Relaxed);
        let before = ticks.load(Ordering::Relaxed);
        ticks.store(before.saturating_add(step), Ordering::Relaxed);
        if was_held {
            return Step::Leapt(from, before, Cause::Stopped);
        }
        let is_jump = step >= JUMP && self.is_unusual(step);
        self.steps = [self.steps[1], Some(step)];
        if is_jump { Step::Leapt(from, before, Cause::Simulation) } else { Step::Passed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::clock::ManualClock;

    fn millis(ms: i64) -> Timestamp {
        Timestamp::from_nanos(ms * 1_000_000)
    }

    struct Case {
        machine: Arc<ManualClock>,
        simulation: Simulation,
        passed: i64,
    }

    impl Case {
        fn new() -> Case {
            let machine = Arc::new(ManualClock::default());
            Case { simulation: Simulation::new(machine.clone()), machine, passed: 0 }
        }

        /// A message of this time, so long after the one before it.
        fn set(&mut self, after: i64, time: i64) -> Step {
            self.passed += after;
            self.machine.set(millis(self.passed));
            self.simulation.set(millis(time))
        }

        fn shows(&self) -> (Timestamp, Ticks) {
            let clock = self.simulation.clock();
            (clock.now(), clock.ticks() / 1_000_000)
        }
    }

    #[test]
    fn simulated_time_is_that_of_messages_and_stands_between_them() {
        let mut case = Case::new();
        assert_eq!((case.simulation.clock().latest(), case.shows()), (None, (Timestamp::ZERO, 0)));
        assert!(!case.simulation.has_begun());
        assert_eq!(case.set(400, 70_000), Step::Began);
        assert_eq!(case.shows(), (millis(70_000), 0), "it is not known how long it was until then");
        assert_eq!(case.set(100, 70_100), Step::Passed);
        // A paused simulation.
        for _ in 0..100 {
            assert_eq!(case.set(100, 70_100), Step::Stands);
        }
        assert_eq!(case.set(100, 70_200), Step::Passed);
        assert_eq!(case.shows(), (millis(70_200), 200));
        // One that came late.
        assert_eq!(case.set(10, 69_900), Step::Stands);
        assert_eq!(case.shows(), (millis(70_200), 200));
    }

    #[test]
    fn a_jump_differs_from_a_fast_simulation() {
        let mut case = Case::new();
        case.set(0, 1_000);
        case.set(100, 1_100);
        case.set(100, 1_200);
        assert_eq!(case.set(100, 9_200), Step::Leapt(millis(1_200), 200_000_000, Cause::Simulation));
        assert_eq!(case.set(100, 9_300), Step::Passed);
        assert_eq!(case.set(100, 19_300), Step::Leapt(millis(9_300), 8_300_000_000, Cause::Simulation));
        assert_eq!(case.set(100, 300), Step::Returned(millis(19_300)));
        assert_eq!(case.shows(), (millis(300), 18_300), "ticks do not go back");
        // Twenty times as fast as the machine.
        let step = |i: i64| case.set(100, 300 + 2_000 * i);
        let steps: Vec<bool> = (1..9).map(step).map(|step| step == Step::Passed).collect();
        assert_eq!(steps, [false, true, true, true, true, true, true, true]);
    }

    #[test]
    fn a_second_step_of_the_same_length_is_no_jump() {
        for length in [600, 1_000, 10_000] {
            let mut case = Case::new();
            assert_eq!(case.set(0, 5_000), Step::Began);
            let steps = (1..6).map(|i| case.set(100, 5_000 + length * i) == Step::Passed);
            assert_eq!(
                steps.collect::<Vec<_>>(),
                [false, true, true, true, true],
                "{length}: no step before the first"
            );
            // It becomes slower, then fine.
            let at = 5_000 + length * 5;
            assert_eq!(case.set(100, at + 3 * length), Step::Passed);
            assert_eq!(case.set(100, at + 3 * length + 100), Step::Passed);
            assert!(matches!(case.set(100, at + 5 * length + 100), Step::Leapt(..)));
            assert!(matches!(case.set(100, at + 8 * length + 100), Step::Leapt(..)), "another one");
            assert_eq!(case.set(100, at + 11 * length + 100), Step::Passed, "the same one");
        }
    }

    #[test]
    fn simulated_time_stands_after_a_stop_until_waiting_messages_arrive() {
        let mut case = Case::new();
        case.set(0, 1_000);
        case.set(100, 1_100);
        for i in 0..10 {
            assert_eq!(case.set(if i == 0 { 5_000 } else { 100 }, 6_100 + 100 * i), Step::Stands);
        }
        assert_eq!(case.shows().0, millis(1_100));
        assert_eq!(case.simulation.clock().latest(), Some(millis(7_000)));
        assert_eq!(case.set(100, 7_100), Step::Leapt(millis(1_100), 100_000_000, Cause::Stopped));
        assert_eq!(case.set(100, 7_200), Step::Passed);
    }
}
