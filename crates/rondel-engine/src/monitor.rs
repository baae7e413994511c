use std::sync::Arc;

use rondel_event::{Block, Rows, Timestamp};

use crate::program::Program;
use crate::report::Report;
use crate::run::{Outcome, Rowed, Serial};
use crate::section::{Moments, Section};

/// A program on its way over a trace: all that it remembers of the events so far.
///
/// The verdicts are a function of the events alone; how they are cut into blocks does not matter.
/// A step allocates nothing once queues and texts have reached the size they need.
#[derive(Clone, Debug)]
pub struct Monitor {
    program: Arc<Program>,
    sections: Vec<Serial>,
    /// Whether the verdict at every event is reported, and not only changes.
    every: bool,
    position: u64,
    /// The latest time so far.
    time: i64,
    /// The times of the block's events; one that is earlier than the event before counts as that one's.
    times: [i64; Block::CAPACITY],
    /// What is evaluated where time alone brings a change.
    no_event: Block,
    outcomes: Vec<Outcome>,
    reports: Vec<Report>,
}

impl Monitor {
    /// A monitor before the first event. It reports changes of verdicts.
    pub fn new(program: Arc<Program>) -> Monitor {
        let no_event = Block::new(program.layout());
        Monitor {
            sections: program.sections.iter().map(|section| Serial::new(section, &no_event)).collect(),
            every: false,
            position: 0,
            time: i64::MIN,
            times: [0; Block::CAPACITY],
            no_event,
            outcomes: Vec::new(),
            reports: Vec::new(),
            program,
        }
    }

    /// Whether it reports the verdict at every event (and the changes in between), or changes only.
    pub fn report_every(&mut self, every: bool) {
        self.every = every;
    }

    /// The program it runs.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Takes the events of a block and reports, in the order of the events, what became of the
    /// properties. Of an event that is earlier than the one before the time is that one's.
    ///
    /// # Panics
    /// When the block has not the [layout](Program::layout) of the program: a mistake of the caller,
    /// never of the input.
    pub fn step(&mut self, block: &Block) -> &[Report] {
        self.reports.clear();
        if block.is_empty() {
            return &self.reports;
        }
        let len = block.len();
        for (row, time) in self.times[..len].iter_mut().enumerate() {
            self.time = self.time.max(block.time(row).as_nanos());
            *time = self.time;
        }
        let program = Arc::clone(&self.program);
        for (i, section) in program.sections.iter().enumerate() {
            match section.moments {
                Moments::Events => self.events(i, section, block),
                Moments::Dense => self.dense(i, section, block),
            }
        }
        // Those of a single section of events come in order.
        if program.sections.len() > 1 || program.sections.iter().any(|s| s.moments == Moments::Dense) {
            self.sort();
        }
        self.position = self.position.saturating_add(len as u64);
        &self.reports
    }

    /// Lets time pass up to `now` without an event, and reports what that brings: what becomes certain
    /// *before* `now`, since an event at `now` may still come. An event that is earlier than `now` counts
    /// as of `now` from here on.
    pub fn advance(&mut self, now: Timestamp) -> &[Report] {
        self.reports.clear();
        let now = now.as_nanos();
        if self.position > 0 && now > self.time {
            let program = Arc::clone(&self.program);
            for (i, section) in program.sections.iter().enumerate() {
                if section.moments == Moments::Dense {
                    self.fire(i, section, now, 0);
                    self.span(i, section, now, 0);
                }
            }
            self.sort();
            self.time = now;
        }
        &self.reports
    }

    /// Ends the trace, and reports what is then left open.
    pub fn end(&mut self) -> &[Report] {
        self.reports.clear();
        &self.reports
    }

    /// The number of the step, from 0, that the first event of the next block will be.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// When time will bring something by itself, if no event comes before: the least `now` for which
    /// [`Monitor::advance`] does something.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let sections = self.program.sections.iter().zip(&self.sections);
        let next = sections.filter_map(|(section, serial)| {
            let dense = section.moments == Moments::Dense;
            if dense && serial.has_span() { Some(serial.time) } else { serial.next_deadline(section) }
        });
        let next = next.min();
        next.map(|time| Timestamp::from_nanos(time.saturating_add(1)))
    }

    /// How many samples of windows there was no room for: while so many are in a window, what it measures
    /// is unknown.
    pub fn dropped_samples(&self) -> u64 {
        self.sections.iter().map(Serial::dropped_samples).sum()
    }

    /// The longest queue that any bounded operator keeps at the moment, in entries: what its memory
    /// grows with.
    pub fn longest_queue(&self) -> usize {
        self.sections.iter().map(Serial::longest_queue).max().unwrap_or(0)
    }

    /// The order of the reports is that of the events, and of the properties.
    fn sort(&mut self) {
        self.reports.sort_by_key(|report| (report.order, report.time, report.property));
    }

    /// Evaluates a block whose rows are the moments.
    fn events(&mut self, i: usize, section: &Section, block: &Block) {
        let (serial, len) = (&mut self.sections[i], block.len() as u32);
        let times = if section.reads_time { &self.times[..len as usize] } else { &[] };
        serial.run(section, Rowed { block, start: 0, len, times });
        let mut reported: Rows = if self.every { block.rows() } else { 0 };
        self.outcomes.clear();
        for property in 0..section.formulas.len() {
            let outcome = serial.outcome(section, property, len);
            reported |= outcome.changed;
            self.outcomes.push(outcome);
        }
        while reported != 0 {
            let row = reported.trailing_zeros() as usize;
            reported &= reported - 1;
            for (outcome, &property) in self.outcomes.iter().zip(&section.properties) {
                let changed = outcome.changed >> row & 1 == 1;
                if changed || self.every {
                    self.reports.push(Report {
                        property,
                        verdict: outcome.verdict(row),
                        changed,
                        row: Some(row as u8),
                        step: self.position + row as u64,
                        time: block.time(row),
                        about: None,
                        robustness: None,
                        order: at(row),
                    });
                }
            }
        }
    }

    /// Evaluates a block, and in between the times at which something changes by itself.
    fn dense(&mut self, i: usize, section: &Section, block: &Block) {
        let mut row = 0;
        while row < block.len() {
            let first = self.times[row];
            let deadline = self.fire(i, section, first, before(row));
            // What the rows to come bring about by themselves is not known before they are evaluated; but
            // it is not sooner than so long after the first of them.
            let span = i64::try_from(section.shortest).unwrap_or(i64::MAX);
            let limit = first.saturating_add(span).min(deadline.unwrap_or(i64::MAX));
            let times = &self.times[row..block.len()];
            let len = times.iter().take_while(|&&time| time <= limit).count().max(1);
            self.moments(i, section, Some((block, row, len)), first, at(row));
            row += len;
        }
    }

    /// Evaluates the deadlines before `time`, and gives the next one.
    fn fire(&mut self, i: usize, section: &Section, time: i64, order: u32) -> Option<i64> {
        loop {
            let deadline = self.sections[i].next_deadline(section);
            match deadline {
                Some(due) if due < time => self.moments(i, section, None, due, order),
                _ => return deadline,
            }
        }
    }

    /// Evaluates moments: rows of a block, or the one that time itself brings.
    fn moments(
        &mut self,
        i: usize,
        section: &Section,
        rows: Option<(&Block, usize, usize)>,
        due: i64,
        order: u32,
    ) {
        self.span(i, section, due, order.min(rows.map_or(order, |(_, start, _)| before(start))));
        let step_before = self.step_before(order);
        let serial = &mut self.sections[i];
        let time_alone = [due];
        let rowed = match rows {
            Some((block, start, len)) => {
                Rowed { block, start: start as u32, len: len as u32, times: &self.times[start..start + len] }
            }
            None => Rowed { block: &self.no_event, start: 0, len: 1, times: &time_alone },
        };
        let mut together = Rows::from(due == serial.time);
        for (row, pair) in rowed.times.windows(2).enumerate() {
            together |= Rows::from(pair[0] == pair[1]) << (row + 1);
        }
        serial.run(section, rowed);
        let len = rowed.times.len();
        let first = rows.map(|(_, start, _)| start);
        for (formula, &property) in section.properties.iter().enumerate() {
            let [now, after] = serial.outcomes(section, formula, len as u32, together);
            let every = if self.every && first.is_some() { crate::words::low(len as u64) } else { 0 };
            let mut reported = now.changed | after.changed | every;
            while reported != 0 {
                let row = reported.trailing_zeros() as usize;
                reported &= reported - 1;
                let report = Report {
                    property,
                    verdict: now.verdict(row),
                    changed: now.changed >> row & 1 == 1,
                    row: first.map(|first| (first + row) as u8),
                    step: match first {
                        Some(first) => self.position + (first + row) as u64,
                        None => step_before,
                    },
                    time: Timestamp::from_nanos(rowed.times[row]),
                    about: None,
                    robustness: None,
                    order: order + at(row) - at(0),
                };
                if report.changed || every >> row & 1 == 1 {
                    self.reports.push(report);
                }
                if after.changed >> row & 1 == 1 {
                    let order = report.order + 1;
                    let verdict = after.verdict(row);
                    self.reports.push(Report { verdict, changed: true, row: None, order, ..report });
                }
            }
        }
    }

    /// Reports what is otherwise on the span after the last moment, if there is time before the next at `time`.
    fn span(&mut self, i: usize, section: &Section, time: i64, order: u32) {
        let step = self.step_before(order);
        let serial = &mut self.sections[i];
        if time <= serial.time {
            return;
        }
        for (formula, &property) in section.properties.iter().enumerate() {
            if let Some(verdict) = serial.span(formula) {
                self.reports.push(Report {
                    property,
                    verdict,
                    changed: true,
                    row: None,
                    step,
                    time: Timestamp::from_nanos(serial.time),
                    about: None,
                    robustness: None,
                    order,
                });
            }
        }
    }

    /// The number of the last event before this place in the order of reports.
    fn step_before(&self, order: u32) -> u64 {
        (self.position + u64::from(order / 4)).saturating_sub(1)
    }
}

/// The place in the order of reports of what happens at a row; right after it comes the span that follows.
fn at(row: usize) -> u32 {
    4 * row as u32 + 2
}

/// The place of what time brings before a row.
fn before(row: usize) -> u32 {
    4 * row as u32
}
