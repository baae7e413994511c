//! Sinks of a member of a group: nothing reaches them while it is a standby.

use std::io::Write as _;
use std::sync::Arc;

use rondel_net::adapter::now;
use rondel_runtime::{KeptReport, PropertyInfo, Report, Session};

use super::withheld::{Permit, Withheld, WithheldReport};
use super::{Sink, Sinks, number};

impl Sinks {
    /// Withholds all verdicts until the permit allows to publish them. `lease` is that of the group in nanoseconds.
    pub fn join_group(&mut self, permit: Arc<Permit>, lease: i64) {
        self.withheld = Some(Box::new(Withheld::new(permit, lease)));
    }

    /// Whether the next verdicts are withheld.
    #[inline]
    pub fn withholds(&mut self) -> bool {
        self.withheld.as_mut().is_some_and(|withheld| withheld.is_withholding())
    }

    /// Withholds a report. Present verdicts and the state that diagnostics show change all the same: they are shown from a
    /// take-over on.
    pub fn withhold(&mut self, kept: KeptReport, was_muted: bool) {
        if !was_muted {
            self.show_later(&kept);
        }
        if let Some(withheld) = &mut self.withheld {
            let time = kept.report().time();
            withheld.push(WithheldReport { report: kept, was_muted }, time);
        }
    }

    fn show_later(&mut self, kept: &KeptReport) {
        let report = kept.report();
        let Sinks { sinks, diagnostics, publishers, text, .. } = self;
        for sink in &sinks[report.property().position as usize] {
            let Some(publisher) = sink.publisher() else { continue };
            let known = number(publishers, publisher).and_then(|at| publishers[at].present.as_ref());
            if let Some(present) = known.filter(|_| matches!(sink, Sink::Network(_))) {
                text.clear();
                report.json(text);
                present.note(&report, text);
            }
            if matches!(sink, Sink::Diagnostics(_))
                && let Some((_, state)) = diagnostics.iter_mut().find(|(own, _)| Arc::ptr_eq(own, publisher))
            {
                text.clear();
                state.take(&report, now(), text);
            }
        }
    }

    /// Whether verdicts are withheld, and none of them is about to be published.
    pub fn stands_by(&self) -> bool {
        self.withheld.as_ref().is_some_and(|withheld| withheld.stands_by())
    }

    /// Continues after the state of another member, whose destinations beside networks have its lost messages. Verdicts so
    /// far are forgotten, also present ones: they are those of another state.
    pub fn continue_from(&mut self, session: &Session, properties: &[PropertyInfo]) {
        self.forget_withheld();
        self.publishers
            .iter()
            .filter_map(|entry| entry.present.as_ref())
            .for_each(|present| present.forget());
        self.diagnostics.clear();
        self.diagnose(properties);
        if let Some(driven) = &mut self.driven {
            driven.continue_from(&session.summary());
        }
    }

    /// Makes the withheld verdicts inconclusive, unless they are about to be published.
    pub fn set_withheld_inconclusive(&mut self) {
        if let Some(withheld) = &mut self.withheld {
            withheld.change(|withheld| withheld.report.set_inconclusive());
        }
    }

    /// Forgets the withheld verdicts, unless they are about to be published.
    fn forget_withheld(&mut self) {
        if let Some(withheld) = &mut self.withheld {
            withheld.forget();
        }
    }

    /// Publishes nothing more.
    pub fn stop_publishing(&mut self) {
        if let Some(withheld) = &mut self.withheld {
            withheld.stop();
        }
    }

    /// Begins to publish in an epoch, with the withheld verdicts first. Returns their number.
    pub fn begin_publishing(&mut self, epoch: u64) -> usize {
        self.withheld.as_mut().map_or(0, |withheld| withheld.begin(epoch))
    }

    /// Publishes up to `most` withheld verdicts, and calls `see` with each. Returns whether there may be more.
    pub fn publish_withheld(&mut self, most: usize, see: impl Fn(&Report<'_>)) -> bool {
        let Some(reports) = self.withheld.as_mut().and_then(|withheld| withheld.take(most)) else {
            return false;
        };
        let of = |was_muted: bool| {
            let those = reports.iter().filter(move |kept: &&WithheldReport| kept.was_muted == was_muted);
            those.map(|kept| kept.report.report())
        };
        self.take(of(false).inspect(see));
        self.take_unmuted(of(true));
        true
    }
}

/// Adds the epoch to a verdict in JSON, also to one with a line break; a line of text stays as it is.
pub(super) fn write_epoch(epoch: Option<u64>, text: &mut Vec<u8>) {
    let Some(epoch) = epoch else { return };
    let (end, rest): (usize, &[u8]) = match &text[..] {
        [b'{', .., b'}', b'\n'] => (2, b"}\n"),
        [b'{', .., b'}'] => (1, b"}"),
        _ => return,
    };
    text.truncate(text.len() - end);
    // Writing to a vector does not fail.
    let _ = write!(text, ",\"epoch\":{epoch}");
    text.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_in_json_have_the_epoch() {
        let with = |epoch: Option<u64>, text: &str| {
            let mut text = text.as_bytes().to_vec();
            write_epoch(epoch, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        };
        assert_eq!(with(Some(12), "{\"time\":1}"), "{\"time\":1,\"epoch\":12}");
        assert_eq!(with(Some(1), "{\"time\":1}\n"), "{\"time\":1,\"epoch\":1}\n");
        assert_eq!(with(None, "{\"time\":1}"), "{\"time\":1}");
        assert_eq!(with(Some(1), "violated  p\n"), "violated  p\n");
    }
}
