//! Steps under construction: possible positions, and the open run.

use super::super::plan::{Load, Number, Place, Run, Step, Target};

/// Set of the position at which a body begins.
pub(super) const START: u8 = 1;
/// Set of all positions.
pub(super) const EVERYWHERE: u8 = 0xff;

/// Steps of a part, up to a position.
pub(super) struct Block {
    steps: Vec<Step>,
    run: Option<OpenRun>,
    /// Possible positions modulo 8: bit `i` is set for `i`.
    pub(super) phases: u8,
}

#[derive(Default)]
struct OpenRun {
    align: u32,
    size: u32,
    loads: Vec<Load>,
    members: Vec<(u32, Place)>,
}

/// Maximum size of a run: offsets in it have 32 bits.
const MAX_RUN: u32 = 1 << 30;

impl Block {
    pub(super) fn new(phases: u8) -> Block {
        Block { steps: Vec::new(), run: None, phases }
    }

    pub(super) fn finish(mut self) -> Vec<Step> {
        self.close();
        self.steps
    }

    /// Adds a step after which these positions are possible.
    pub(super) fn push(&mut self, step: Step, phases: u8) {
        self.close();
        self.steps.push(step);
        self.phases = phases;
    }

    fn close(&mut self) {
        if let Some(OpenRun { align, size, loads, members }) = self.run.take() {
            let check = loads.iter().map(Load::end).fold(size as usize, usize::max);
            self.steps.push(Step::Run(Run {
                align: align as usize,
                size: size as usize,
                check,
                loads: loads.into(),
                members: members.into(),
            }));
        }
    }

    /// Returns the open run, with space for another `size` bytes.
    fn open(&mut self, size: u32) -> &mut OpenRun {
        if self.run.as_ref().is_some_and(|run| run.size.saturating_add(size) > MAX_RUN) {
            self.close();
        }
        self.run.get_or_insert_with(|| OpenRun { align: 1, ..OpenRun::default() })
    }

    /// Adds a member and returns its offset in the run.
    pub(super) fn member(&mut self, align: u32, size: u32, place: Place) -> u32 {
        let padding = |phase: u32| phase.wrapping_neg() & (align - 1);
        let mut paddings = phases(self.phases).map(padding);
        let first = paddings.next().unwrap_or(0);
        let known = paddings.all(|padding| padding == first).then_some(first);
        if let Some(padding) = known {
            let run = self.open(size.saturating_add(8));
            run.size += padding;
        } else {
            self.close();
            self.run = Some(OpenRun { align, ..OpenRun::default() });
        }
        let mut after = 0_u8;
        for phase in phases(self.phases) {
            after |= 1 << ((phase + padding(phase) + size) % 8);
        }
        self.phases = after;
        let run = self.open(0);
        let offset = run.size;
        run.members.push((offset, place));
        run.size += size;
        offset
    }

    /// Adds an unread member with this reach, if it reaches equally far from all possible positions.
    pub(super) fn known(&mut self, reach: &[u32; 8], place: Place) -> bool {
        let mut sizes = phases(self.phases).map(|phase| reach[phase as usize]);
        let first = sizes.next().unwrap_or(0);
        if !sizes.all(|size| size == first) || first > MAX_RUN / 2 {
            return false;
        }
        let run = self.open(first);
        run.members.push((run.size, place));
        run.size += first;
        self.phases = self.phases.rotate_left(first % 8);
        true
    }

    pub(super) fn load(&mut self, offset: u32, number: Number, to: Target, place: Place) {
        if let Some(run) = &mut self.run {
            run.loads.push(Load { offset, number, to, place });
        }
    }

    /// Adds the presence of the next member.
    pub(super) fn look(&mut self, to: Target, place: Place) {
        let run = self.open(8);
        let offset = run.size;
        run.members.push((offset, place));
        run.loads.push(Load { offset, number: Number::U8, to, place });
    }
}

/// Returns the positions in a set.
pub(super) fn phases(set: u8) -> impl Iterator<Item = u32> {
    (0..8).filter(move |phase| set >> phase & 1 == 1)
}
