//! Reports, notices and released messages of the session on their way to the sinks.

use super::State;
use crate::sinks::{self, release};
use crate::warn;

impl State {
    /// Lets gates look at the session, and sends reports, notices and released messages of it to their sinks.
    #[inline]
    pub(super) fn emit(&mut self) {
        // Before verdicts are sent, which may take longer.
        if let Some(gates) = &mut self.gates {
            gates.look(&self.session);
        }
        self.send();
    }

    /// Sends reports, notices and released messages of the session to their sinks. Gates have looked at the session since
    /// its last evaluation.
    #[inline]
    pub(super) fn send(&mut self) {
        if self.session.has_reports() {
            if self.sinks.withholds() {
                return self.withhold();
            }
            let copies = self.copies.as_deref().filter(|copies| copies.wants_verdicts());
            match (&mut self.recorder, &mut self.meter, copies) {
                (None, None, None) => self.sinks.take(self.session.reports()),
                (recorder, meter, copies) => {
                    self.sinks.take(self.session.reports().inspect(|report| {
                        if let Some(recorder) = recorder.as_mut() {
                            recorder.take(report);
                        }
                        if let Some(meter) = meter.as_mut() {
                            meter.see(report);
                        }
                        if let Some(copies) = copies {
                            copies.verdict(report);
                        }
                    }));
                }
            }
            self.sinks.take_unmuted(self.session.unmuted());
            // Sending may have waited for a consumer.
            self.session.alive();
        }
        self.send_others();
    }

    /// Sends everything but reports to its sinks.
    #[inline]
    pub(super) fn send_others(&mut self) {
        if self.session.has_notices() {
            // Gaps in the numbers of publishers are reported as `lost`, whatever the route.
            let notices = self.session.notices().filter(|notice| notice.kind != "gap");
            self.notices.take(notices, &mut self.sinks.stdout);
        }
        if self.gates.as_ref().is_some_and(|gates| gates.has_changes()) {
            self.report_gates();
        }
        if !self.released.is_empty() {
            while let Some(line) = self.session.released() {
                let (taken, failure) = sinks::publish(&self.released, line, &mut self.sinks.stdout);
                self.traffic.published += taken;
                if let Some(error) = failure {
                    self.traffic.unpublished += 1;
                    if self.traffic.unpublished == 1 {
                        warn(&format!("cannot publish a set: {error}; further ones are only counted"));
                    }
                }
            }
        }
    }

    /// Releases payloads that publishers hold back to fill a packet.
    pub(super) fn release(&self) {
        self.sinks.release();
        self.notices.sinks.iter().chain(&self.released).for_each(release);
    }
}
