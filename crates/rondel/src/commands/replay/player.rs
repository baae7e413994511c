//! Sending the messages of a recording at their times.

use std::ops::ControlFlow;
use std::time::Duration;

use rondel_event::Timestamp;
use rondel_net::ros2::clock;
use rondel_recording::{RecordedMessage, Recording, RecordingError};

use crate::live::outgoing::{Outgoing, Schedule};
use crate::live::signals::StopFlag;
use crate::output::time_text::TimeText;
use crate::{say, warn};

/// Lateness above which a message counts as late.
pub(super) const LATE: Duration = Duration::from_millis(10);
/// Number of messages between two checks for losses.
const STEP: u64 = 64;
/// Maximum number of unreadable parts that are reported one by one.
const SHOWN: u64 = 5;
/// Length from which a wait is reported.
const SILENCE: Duration = Duration::from_secs(30);
/// Maximum number of ticks sent at once to bring the clock to the next message.
const TICKS: u32 = 100_000;
/// Time for which the clock stands still at the beginning, so that its subscribers receive it before the first message.
const LEAD: Duration = Duration::from_millis(500);
/// The longest time until a message is due: a hundred years.
const LONGEST: f64 = 3.2e9;

/// The publisher of `/clock`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockSink {
    /// Index of the sink.
    pub(super) sink: usize,
    /// Time between two ticks: on this machine, or in the recording if it is replayed as fast as possible.
    pub(super) interval: Duration,
}

/// Counts and result of a replay.
#[derive(Clone, Debug, Default)]
pub(super) struct Played {
    /// Number of messages given to the publishers.
    pub(super) messages: u64,
    /// The times of the first and the latest message.
    pub(super) span: Option<(Timestamp, Timestamp)>,
    /// Number of messages sent late, and the worst lateness of all messages.
    pub(super) late: u64,
    pub(super) worst: Duration,
    /// Messages with an earlier time than one before them.
    pub(super) unordered: u64,
    /// Parts of the recording that could not be read.
    pub(super) damaged: u64,
    /// Number of times the recording was played to its end.
    pub(super) passes: u32,
    /// Whether it was interrupted before the end.
    pub(super) is_stopped: bool,
    /// Reason for which a network was given up.
    pub(super) failure: Option<String>,
    /// Reason for which reading the recording stopped.
    pub(super) unreadable: Option<String>,
}

/// Plays a recording.
pub(super) struct Player<'p> {
    outgoing: &'p mut Outgoing,
    /// Index of the sink of each topic of the recording.
    routes: &'p [Option<usize>],
    /// Speed relative to the recording; `None` is as fast as possible.
    rate: Option<f64>,
    clock: Option<ClockSink>,
    interrupted: &'p StopFlag,
    schedule: Schedule,
    played: Played,
    /// Beginning of the pass, relative to the beginning of the schedule.
    begins: Duration,
    /// Time of the next tick: relative to the beginning of the schedule (`next_tick`), or in the recording if it is
    /// replayed as fast as possible (`next_time`).
    next_tick: Duration,
    next_time: Timestamp,
    /// Index of the sink of the last message.
    last: Option<usize>,
}

/// Error that ends playing; `Played` has the reason.
struct Over;

impl<'p> Player<'p> {
    /// Creates a player that publishes each topic on its sink.
    pub(super) fn new(
        outgoing: &'p mut Outgoing,
        routes: &'p [Option<usize>],
        rate: Option<f64>,
        clock: Option<ClockSink>,
        interrupted: &'p StopFlag,
    ) -> Player<'p> {
        Player {
            outgoing,
            routes,
            rate,
            clock,
            interrupted,
            schedule: Schedule::begin(),
            played: Played::default(),
            begins: Duration::ZERO,
            next_tick: Duration::ZERO,
            next_time: Timestamp::from_nanos(i64::MIN),
            last: None,
        }
    }

    /// Plays the recording `passes` times, or without end. `open` opens the recording from the beginning; with a clock,
    /// each pass lasts until the time `until` of the recording.
    pub(super) fn play(
        mut self,
        passes: Option<u32>,
        delay: Duration,
        until: Option<Timestamp>,
        mut open: impl FnMut() -> Result<Box<dyn Recording>, String>,
    ) -> (Played, Duration) {
        // The clock stands still during the delay.
        let delay = if self.clock.is_some() { delay.max(LEAD) } else { delay };
        let mut is_first = true;
        while passes.is_none_or(|passes| self.played.passes < passes) {
            let mut recording = match open() {
                Ok(recording) => recording,
                Err(reason) => {
                    self.played.unreadable = Some(reason);
                    break;
                }
            };
            let before = self.played.messages;
            let played = self.pass(&mut *recording, std::mem::take(&mut is_first).then_some(delay), until);
            // An endless replay without messages would spin.
            if played.is_err() || self.played.messages == before {
                break;
            }
            self.played.passes += 1;
        }
        self.outgoing.release();
        (self.played, self.schedule.elapsed())
    }

    /// Plays the recording once, after `delay`.
    fn pass(
        &mut self,
        recording: &mut dyn Recording,
        mut delay: Option<Duration>,
        until: Option<Timestamp>,
    ) -> Result<(), Over> {
        let mut span: Option<(Timestamp, Timestamp)> = None;
        loop {
            match recording.next() {
                Ok(Some(RecordedMessage { topic, log_time, payload, .. })) => {
                    let Some(sink) = self.routes.get(topic).copied().flatten() else { continue };
                    let (first, latest) = span.unwrap_or((log_time, log_time));
                    if span.is_none() {
                        self.begin(first, delay.take())?;
                    }
                    self.played.unordered += u64::from(log_time < latest);
                    let latest = latest.max(log_time);
                    span = Some((first, latest));
                    let lateness = self.reach(first, latest)?;
                    self.played.late += u64::from(lateness > LATE);
                    self.played.worst = self.played.worst.max(lateness);
                    self.played.messages += 1;
                    self.played.span = Some((first, latest));
                    // Messages held back on another topic are released first, to keep the order of the recording.
                    if let Some(last) = self.last.replace(sink).filter(|last| *last != sink) {
                        self.outgoing.release_of(last);
                    }
                    self.outgoing.publish(sink, payload);
                    if self.played.messages.is_multiple_of(STEP) {
                        self.look()?;
                    }
                }
                Ok(None) => break,
                Err(error) => self.unread(error)?,
            }
        }
        let Some((first, latest)) = span else { return Ok(()) };
        if self.clock.is_some() {
            let end = until.map_or(latest, |until| until.max(latest));
            self.reach(first, end)?;
            self.tick(end);
        }
        self.begins = self.due(first, latest);
        Ok(())
    }

    /// Begins a pass whose first message has this time.
    fn begin(&mut self, first: Timestamp, delay: Option<Duration>) -> Result<(), Over> {
        self.next_time = first;
        let Some(delay) = delay else {
            self.next_tick = self.begins;
            return Ok(());
        };
        self.schedule = Schedule::begin();
        if let Some(ClockSink { interval, .. }) = self.clock {
            while self.next_tick < delay {
                self.tick(first);
                self.next_tick += interval;
                self.wait(self.next_tick.min(delay))?;
            }
        } else {
            self.wait(delay)?;
        }
        self.schedule = Schedule::begin();
        self.next_tick = Duration::ZERO;
        Ok(())
    }

    /// Time at which a message is due, relative to the beginning of the schedule.
    fn due(&self, first: Timestamp, time: Timestamp) -> Duration {
        let Some(rate) = self.rate else { return Duration::ZERO };
        let nanos = i128::from(time.as_nanos()) - i128::from(first.as_nanos());
        let after = if rate == 1.0 {
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
        } else {
            Duration::from_secs_f64((nanos.max(0) as f64 / 1e9 / rate).min(LONGEST))
        };
        self.begins.saturating_add(after)
    }

    /// Waits until a message of this time is due, while the clock ticks; returns the lateness.
    fn reach(&mut self, first: Timestamp, time: Timestamp) -> Result<Duration, Over> {
        let Some(rate) = self.rate else { return self.tick_to(time).map(|()| Duration::ZERO) };
        let due = self.due(first, time);
        let left = due.saturating_sub(self.schedule.elapsed());
        if left >= SILENCE {
            let at = TimeText::default().text(time);
            say(&format!("waiting {} s for what was recorded at {at}", left.as_secs()));
        }
        if let Some(ClockSink { interval, .. }) = self.clock {
            while self.next_tick < due {
                self.wait(self.next_tick)?;
                let since = self.next_tick.saturating_sub(self.begins).as_secs_f64() * rate * 1e9;
                self.tick(Timestamp::from_nanos(first.as_nanos().saturating_add(since as i64)));
                // Missed ticks are sent at once, so that subscribers see no jump; after a long pause they are skipped.
                let missed = self.schedule.elapsed().saturating_sub(self.next_tick).as_nanos();
                let ticks = missed.checked_div(interval.as_nanos()).unwrap_or(0);
                let ticks = if ticks > TICKS.into() { ticks } else { 1 };
                let step = interval.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX));
                self.next_tick = self.next_tick.saturating_add(step);
            }
        }
        self.wait(due)
    }

    /// Lets the clock tick up to a time, as fast as possible.
    fn tick_to(&mut self, time: Timestamp) -> Result<(), Over> {
        if self.interrupted.is_set() {
            self.played.is_stopped = true;
            return Err(Over);
        }
        let Some(ClockSink { interval, .. }) = self.clock else { return Ok(()) };
        let step = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX).max(1);
        let mut ticks = 0;
        while self.next_time <= time {
            if ticks >= TICKS {
                self.next_time = time;
            }
            ticks += 1;
            self.tick(self.next_time);
            self.next_time = Timestamp::from_nanos(self.next_time.as_nanos().saturating_add(step));
            if self.interrupted.is_set() {
                self.played.is_stopped = true;
                return Err(Over);
            }
        }
        Ok(())
    }

    fn tick(&mut self, time: Timestamp) {
        if let Some(ClockSink { sink, .. }) = self.clock {
            self.outgoing.publish(sink, &clock::write(time));
        }
    }

    /// Waits until `after` the beginning of the schedule; returns the lateness.
    fn wait(&mut self, after: Duration) -> Result<Duration, Over> {
        let (outgoing, mut failure) = (&mut *self.outgoing, None);
        let waited = self.schedule.wait(after, self.interrupted, || match outgoing.look() {
            Ok(()) => ControlFlow::Continue(()),
            Err(reason) => {
                failure = Some(reason);
                ControlFlow::Break(())
            }
        });
        self.played.is_stopped |= self.interrupted.is_set();
        self.played.failure = failure.or(self.played.failure.take());
        waited.ok_or(Over)
    }

    fn look(&mut self) -> Result<(), Over> {
        self.outgoing.look().map_err(|reason| {
            self.played.failure = Some(reason);
            Over
        })
    }

    /// Counts an unreadable part, and ends playing if nothing can follow it.
    fn unread(&mut self, error: RecordingError) -> Result<(), Over> {
        self.played.damaged += 1;
        match error {
            RecordingError::Damage { .. } => {
                if self.played.damaged <= SHOWN {
                    warn(&error.to_string());
                } else if self.played.damaged == SHOWN + 1 {
                    warn("further parts of the recording cannot be read, and are only counted");
                }
                Ok(())
            }
            // Another of the recordings that are merged may go on.
            RecordingError::Cut { .. } => {
                warn(&format!("{error}; it is replayed up to there"));
                Ok(())
            }
            other => {
                self.played.unreadable = Some(other.to_string());
                Err(Over)
            }
        }
    }
}
