//! State that a session takes over from the one before it, beside its snapshot.

use super::Aligned;

impl Aligned {
    /// Takes over the clock, the limits of times and missed time of another session, and, if the programs are equal, the
    /// histories of explanations. `origins` has for each topic its position there.
    pub(in crate::session) fn inherit(
        &mut self,
        before: &mut Aligned,
        origins: &[Option<usize>],
        is_same: bool,
    ) {
        self.intake.inherit(&mut before.intake);
        if let Some(mut absence) = before.absence.take() {
            absence.move_to(origins);
            self.absence = Some(absence);
        }
        if is_same {
            for (group, known) in self.groups.iter_mut().zip(&mut before.groups) {
                group.evaluated.latest = known.evaluated.latest;
                group.evaluated.explainer = known.evaluated.explainer.take();
            }
        }
    }
}
